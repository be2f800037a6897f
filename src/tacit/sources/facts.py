"""Facts: the preconditions of the numbers of a read, established on the state of the data that gives them.

A sensitivity, a public number or a budget rests on more than the schema: every file is read once, the keys of a
public table do not repeat, no row decides the number of rows, and the rows belong to the table of the charged
ledger. Code that opens data establishes all of these facts and passes them on as one object, `Facts`. Nobody
asks the file system again afterwards.

The facts stay true when the data change:

- `state` is the state of the data on the disk (or in the engine) before their first byte is read. - Before every read
this state is compared with the present one. If it differs, the data are opened anew, and all facts are
established again: before the charge if the curator notices first, with the words of the error; after it with
the one fixed sentence of the error boundary. - After every read it is compared once more. If the data were
changed meanwhile the numbers are thrown away, and read
  again from the beginning.

So each release reads one state of the data, and the facts hold for it. A copy in an engine of our own (text,
workbooks, statistics files,
databases, frames) is compared until it is whole. After that nobody else can change it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tacit.errors import BadData
from tacit.exact.data_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """The disk's record of a file. Writing, renaming, linking and resetting the times of a file all change one
    of these.
    """

    path: Path
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


SETTLED = 2_000_000_000
"""Nanoseconds after which a later change of a file shows in its times, on every file system that is in use."""


def settled(files: Iterable[FileState], at: int) -> bool:
    """Whether every later change (after this moment, in nanoseconds) would show in the state of these files."""
    return all(max(f.changed_ns, f.modified_ns) + SETTLED < at for f in files)


def states_of(paths: Iterable[Path], *, source: str, hint: str = "") -> tuple[FileState, ...]:
    """The states of these files; an error if one does not exist, or if two names are one file."""
    found = []
    for path in paths:
        try:
            now = path.stat()
        except OSError:
            now = None
        if now is None or not stat.S_ISREG(now.st_mode):
            raise BadData(
                source=str(path), problem="is not there", hint=hint or "give the path of a file that is there"
            )
        found.append(
            FileState(
                path=path, device=now.st_dev, inode=now.st_ino, size=now.st_size,
                modified_ns=now.st_mtime_ns, changed_ns=now.st_ctime_ns,
            )
        )  # fmt: skip
    if len({(s.device, s.inode) for s in found}) != len(found):
        raise BadData(
            source=source, problem="is one file that was given under two names",
            hint="each row would count twice: give each file once",
        )  # fmt: skip
    if not all(os.access(s.path, os.R_OK) for s in found):
        raise BadData(source=source, problem="cannot be opened", hint="check its permissions")
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about data in one state.

    state: of files, the state of each, all of them different files; of a frame its types; of a table in an
    engine, the types of the tables and views behind it. protected: the files about people, after links, in
    whose ledger a charge must be. counted: the number of rows is public where rows are replaced, because no row
    decides it by its values. counted_if: the assumption for that. made_up: all rows about people are those of a
    twin, or have the mark of `tacit.sources.made_up`. single: the joined public tables, in each of which no key
    stood twice. public: a digest of the columns read of each public table in memory; empty for one in files.
    """

    state: tuple[Any, ...] = ()
    protected: tuple[Path, ...] = ()
    counted: bool = True
    counted_if: str = ""
    made_up: bool = False
    single: tuple[str, ...] = ()
    public: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A link that is led elsewhere is another table under the same name, with another ledger.
        object.__setattr__(self, "protected", tuple(Path(os.path.realpath(p)) for p in self.protected))

    @property
    def files(self) -> tuple[FileState, ...]:
        """The files that are read, each once."""
        return tuple(s for s in self.state if isinstance(s, FileState))

    def admits(self, other: Facts) -> bool:
        """Whether rows with these other facts may be read for a charge on the present ones. The same files, of the
        same people.
        """
        kept = ("protected", "counted", "made_up", "single", "public")
        return all(getattr(self, name) == getattr(other, name) for name in kept)


Now = Callable[[], tuple[Any, ...]]
"""The state at this moment."""
