"""Facts: the preconditions of the numbers of a read, established on the state of the data that gives them.

A sensitivity, a public number or a budget rests on more than the schema: every file is read once, the keys of a
public table do not repeat, no row decides the number of rows, and the rows belong to the table of the charged
ledger. Code that opens data establishes all of these facts and passes them on as one object, `Facts`. Nobody
asks the file system again afterwards.

The facts stay true when the data change:

- `state` is the state of the data on the disk (or in the engine) before their first byte is read.
- Before every read this state is compared with the present one. If it differs, the data are opened anew, and all
  facts are established again: before the charge if the curator notices first, with the words of the error; after it
  with the one fixed sentence of the error boundary.
- After every read it is compared once more. If the data were changed meanwhile the numbers are thrown away, and read
  again from the beginning.

So each release reads one state of the data, and the facts hold for it. A copy in an engine of our own (text,
workbooks, statistics files, databases, frames) is compared until it is whole. After that nobody else can change it.

One fact is whether the rows are made up: programs that make up a table mark it, and readers find the mark in metadata.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import BadData
from tacit.exact.data_classes import dataclass
from tacit.sources.compiling import check_columns
from tacit.sources.error_boundary import metadata
from tacit.sources.schema import Schema

if TYPE_CHECKING:
    import pyarrow


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
    twin, or have the mark below. single: the joined public tables, in each of which no key
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


# Every way to open a table gets a `Wish` and gives an `Opened`: a table of an engine with its types, and no row read.
# `load` brings rows into the engine at the first question, after its charge.


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Rules for every way to open a table."""

    columns: tuple[str, ...]
    memory: str
    spark: bool
    schema: Schema

    def check(self, names: Iterable[str], source: str, *, but: Collection[str] = ()) -> None:
        """The wanted columns are there, each once."""
        check_columns([name for name in self.columns if name not in but], names, source=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A table in an engine, with its known facts and its remaining steps.

    facts: the facts established about the data, with their state. now: that state at this moment; None if
    nobody can change the data. in_place: the data are read in place, at every question, so that their state
    matters for as long as the table is open; otherwise it matters until they are loaded. load: brings the rows,
    once. rescue: brings them in a slower way that no row can stop, if the engine's own reader failed. owned:
    nobody else can change the data without a change of their state. conditions: assumptions about the data.
    """

    relation: Any
    source: str
    close: Callable[[], None] | None = None
    facts: Facts = field(default_factory=Facts)
    now: Now | None = None
    in_place: bool = False
    load: Callable[[], None] | None = None
    rescue: Callable[[], None] | None = None
    owned: bool = True
    conditions: tuple[str, ...] = ()


# The mark of a table that describes nobody. Programs that make up a table write it, and readers find it in
# metadata alone.
#
# A twin is known by a column of its own (`MARK`). The survey of the demo, released like any
# table, has its mark in the metadata of the Arrow schema, and so in the footer of its Parquet file. Anybody who
# wants to can forge either. They keep people from showing the truth of a real table by mistake.


# How a twin is known: by a column that `tacit twin` writes into the file, under a name that no real column may have.
#
# A column survives renaming, copying, and being rewritten by another program as another kind of file. Only names are
# looked at, in a footer or a first line; no row is read.

MARK = "__tacit_twin"
PARQUET = (".parquet", ".pq", ".parq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
LONGEST_LINE = 1 << 20
MARKS = ",;\t|"
WIDE = (b"\xff\xfe", b"\xfe\xff")


def marked(table: pyarrow.Table) -> pyarrow.Table:
    """The table with the twins' column, added if it is missing."""
    import pyarrow

    if MARK in table.column_names:
        return table
    return table.append_column(MARK, pyarrow.array([True]).take(pyarrow.array([0] * table.num_rows)))


def is_twin(data: Any) -> bool:
    """Were these rows made up by `tacit twin`? A file that cannot be looked at is no twin. Opening it will say why."""
    if hasattr(type(data), "private"):
        # The type is asked, here as elsewhere: a frame has an attribute for each column, whose values are people's.
        # Of joined tables all that tell of people must be made up.
        return all(map(is_twin, data.private))
    try:
        return metadata(lambda: MARK in _names(data), source="the table", problem="cannot be read")
    except BadData:
        return False


def _names(data: Any) -> set[str]:
    if isinstance(data, str | os.PathLike):
        places = getattr(data, "paths", (os.fspath(data),))
        found = [set(_columns(path)) for place in places for path in _files(place)]
        # Of several files all must be made up: one twin among them makes nobody else up.
        return set.intersection(*found) if found else set()
    if hasattr(type(data), "collect_schema"):
        return set(data.collect_schema().names())
    names: Any = data.column_names if hasattr(type(data), "column_names") else getattr(data, "columns", ())
    return {str(name) for name in names}


def _files(text: str) -> list[Path]:
    place = Path(text)
    if place.is_dir():
        return sorted(p for p in place.rglob("*") if p.is_file())
    if place.exists():
        return [place]
    return [Path(p) for p in sorted(glob.glob(text))]


def _columns(path: Path) -> Iterable[str]:
    found = path.stat()
    return _first_line(
        path, (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)
    )


@lru_cache(maxsize=256)
def _first_line(path: Path, stamp: tuple[int, ...]) -> Iterable[str]:
    """The names of the columns, looked up once for each state of the file."""
    lower = path.name.lower()
    if lower.endswith(PARQUET):
        import pyarrow.parquet

        return tuple(pyarrow.parquet.read_schema(path).names)
    if not lower.endswith(TEXT):
        return ()
    opened: Any = gzip.open if lower.endswith(".gz") else open
    with opened(path, "rb") as file:
        encoding = "utf-16" if file.read(2) in WIDE else "utf-8-sig"
    with opened(path, "rt", encoding=encoding, errors="replace", newline="") as file:
        line = file.readline(LONGEST_LINE)
    return tuple(name for mark in MARKS for name in next(csv.reader([line], delimiter=mark), ()))


KEY, WORDS = b"tacit", b"made up: describes nobody"


def marked_file(table: pyarrow.Table) -> pyarrow.Table:
    """The same table with the mark."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: WORDS})


def bears_the_mark(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Is the mark in these metadata, of an Arrow schema or of a Parquet footer?"""
    return metadata is not None and metadata.get(KEY) == WORDS


def is_made_up(data: Any) -> bool:
    """Whether it is a twin, or has the mark itself or in each Parquet file at this path. No row is read.

    Whether the data are made up, in their present state.
    The read may have seen other rows; `Facts.made_up` describes those.
    """
    import pyarrow
    import pyarrow.parquet

    if hasattr(type(data), "private"):
        return all(map(is_made_up, data.private))
    if is_twin(data):
        return True
    try:
        if isinstance(data, str | os.PathLike):
            # Of several files all must bear it: one that does makes nobody else up.
            return all(map(_marked_file, getattr(data, "paths", (os.fspath(data),))))
        return isinstance(data, pyarrow.Table) and bears_the_mark(data.schema.metadata)
    except (OSError, ValueError, TypeError, pyarrow.ArrowException):
        return False


def _marked_file(place: str) -> bool:
    state = Path(place).stat()
    stamp = (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev)
    return _bears_the_mark(Path(place), stamp)


@lru_cache(maxsize=256)
def _bears_the_mark(path: Path, stamp: tuple[int, ...]) -> bool:
    """Looked up once for each state of the file."""
    import pyarrow.parquet

    return bears_the_mark(pyarrow.parquet.read_metadata(path).metadata)
