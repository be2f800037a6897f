"""Which ledger a table has: the one beside its data, or one that was named and is remembered there.

Beside `visits.parquet` lie

    visits.ledger       the ledger, unless another place was named (of a table that is declared as `survey`:
                        survey.ledger)
    visits.ledger-at    a line for each ledger of the table that lies elsewhere: its id and its place, no password

so that a copied or renamed plan, a second plan, another spelling of the path or a link to the file all find the same
budget. So does another name of the same file in its folder (a hard link), by device and inode. A file that has names
which are not in its folder gets no new ledger unless it is asked for: its ledger may lie beside one of those. A second
ledger for a table that has one is refused in the same way. What the data contain plays no part in this. A copy of the
data in another folder is not known as such (docs/known-limits.md).
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.errors import BadData, LedgerError
from tacit.ledger import Ledger
from tacit.sources.opening import words

try:
    import fcntl
except ImportError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]

__all__ = ["BESIDE", "Beside", "Home", "home_of", "home_of_files", "refuse_protected"]

ENDINGS = (".gz", *(ending for kind in words.ENDINGS.values() for ending in kind))
ENDING = ".ledger"
UNWRITTEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR)


class Beside:
    """The ledger that lies beside the data, made if there is none."""

    def __repr__(self) -> str:
        return "the ledger beside the data"


BESIDE: Final = Beside()


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where the ledgers of a table on disk are looked for."""

    places: tuple[Path, ...]
    away: tuple[Path, ...] = ()
    """Files of the table that have more names than their folders show: hard links from elsewhere."""

    @property
    def default(self) -> Path:
        """The ledger's place where none is named and there is none."""
        return self.places[0]

    def here(self) -> list[Path]:
        """The ledgers that lie beside the data."""
        return [path for path in self.places if os.path.lexists(path)]

    def elsewhere(self) -> dict[str, str]:
        """The ledgers that are remembered here, by their ids."""
        found: dict[str, str] = {}
        for path in map(_note, self.places):
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError):
                raise LedgerError(
                    ledger=str(path), reason="cannot be read, and says where the table's ledger is",
                    hint="ask who keeps the table",
                ) from None  # fmt: skip
            for line in lines:
                number, _, place = line.partition("  ")
                found[number] = place
        return found

    def only(self) -> str | None:
        """The one ledger that the table has; None if it has none, and a refusal if it is not clear which."""
        here, noted = self.here(), self.elsewhere()
        places = {p if "://" in p else str(Path(p).resolve()): p for p in (*map(str, here), *noted.values())}
        if len(places) > 1:
            raise LedgerError(
                ledger=", ".join(sorted(places.values())),
                reason="are all of this table",
                hint="name the one that is meant",
            )
        if not places:
            return None
        place = next(iter(places.values()))
        if "://" in place:
            raise LedgerError(
                ledger=place, reason="is that of this table, and is not named here",
                hint="name it, with what it takes to be let in",
            )  # fmt: skip
        return place

    def admits(self, place: str | None, number: str | None) -> None:
        """Refuse a ledger (its place, and its id if there is one already) if the table has another.

        Of several files each has its say: one that has this ledger does not let in one that has another.
        """
        real = None if place is None or "://" in place else Path(place).expanduser().resolve()
        for one in self.places:
            own = Home(places=(one,))
            here, noted = own.here(), own.elsewhere()
            if number is not None and number in noted:
                continue
            if real is not None and any(path.resolve() == real or _same(path, real) for path in here):
                continue
            known = [*map(str, here), *noted.values()]
            if not known:
                continue
            raise LedgerError(
                ledger=", ".join(known),
                reason="is that of this table already, and a second one would be a second budget",
                hint="name that one, or ask for another one: another_ledger=True, in a plan `another = true`",
            )

    def admits_a_new_one(self) -> None:
        """Refuse to make a ledger for a file that has names elsewhere: it would be a second budget if they have one."""
        if self.away:
            raise LedgerError(
                ledger=str(self.default),
                reason=f"would be a new one, and {self.away[0].name!r} has names in other folders (hard links): if "
                "there is a ledger beside one of those, it is this table's",
                hint="name that one; if there is none, say so: another_ledger=True, in a plan `another = true`",
            )

    @contextmanager
    def alone(self, wait_seconds: float) -> Iterator[None]:
        """One at a time looks for the ledger of a table here and makes it: two at once would make two budgets.

        The lock is on the folders themselves, and ends with its process. Where folders have no locks there is none.
        """
        until = time.monotonic() + wait_seconds
        with ExitStack() as held:
            for folder in sorted({place.parent for place in self.places}):
                if not _locked(folder, held, until):
                    raise LedgerError(
                        ledger=str(self.default), reason="is being looked for by another process",
                        hint="wait until that has ended, and try again",
                    )  # fmt: skip
            yield

    def remember(self, ledger: Ledger) -> None:
        """Leave a note beside the data, under every name for which the ledger does not lie there."""
        line = f"{ledger.id}  {ledger.place}\n"
        for place in self.places:
            if ledger.path is not None and _same(place, ledger.path):
                continue
            note = _note(place)
            try:
                if note.exists() and ledger.id in note.read_text(encoding="utf-8", errors="replace"):
                    continue
                handle = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
                try:
                    os.write(handle, line.encode("utf-8", "surrogateescape"))
                finally:
                    os.close(handle)
            except OSError as problem:
                # A folder that cannot be written, or is not there, has no notes: then the ledger must be named each
                # time. On a full disk some files would get a note, and the others would find no ledger.
                if problem.errno not in UNWRITTEN:
                    raise LedgerError(
                        ledger=str(note), reason="cannot be written, and says where the table's ledger is",
                        hint="make room there",
                    ) from None  # fmt: skip


def home_of_files(paths: Iterable[Path]) -> Home | None:
    """Where the ledgers of these very files are looked for: those that are read, whatever a pattern matched before."""
    named, away = _all_names(_real(path.expanduser()) for path in paths)
    places = tuple(dict.fromkeys(map(_beside, named)))
    return Home(places=places, away=away) if places else None


def home_of(data: Any, table: str) -> Home | None:
    """Where a table's ledgers are looked for; None for what does not lie in files.

    Several files that are one table are at home beside each of them, however many; those of a pattern
    (`tacit.files(..., pattern=True)`) in the folder before it, too.
    """
    if hasattr(type(data), "private"):
        # One budget for all tables that tell of the same people: the first one's, remembered beside the others.
        homes = [home for one in data.private if (home := home_of(one, table)) is not None]
        places = tuple(dict.fromkeys(p for h in homes for p in h.places))
        return Home(places=places, away=tuple(p for h in homes for p in h.away)) if homes else None
    if not isinstance(data, str | os.PathLike):
        return None
    path = _real(Path(os.fspath(data)).expanduser())
    files = [_real(Path(p).expanduser()) for p in getattr(data, "paths", (os.fspath(data),))]
    if getattr(data, "pattern", False):
        files = [_real(Path(p)) for p in sorted(glob.glob(os.fspath(data)))]
    named, away = _all_names(files)
    own = [*map(_beside, named)]
    if getattr(data, "pattern", False):
        base = path
        while glob.has_magic(str(base)):
            base = base.parent
        own = [base / f"{base.name or 'table'}{ENDING}", *own]
    declared = _plain(table)
    first = [own[0].with_name(f"{declared}{ENDING}")] if declared else []
    return Home(places=tuple(dict.fromkeys([*first, *own])), away=away)


def refuse_protected(data: Any) -> None:
    """Refuse a join with a table that is declared public and has a ledger: it tells of people, who are not asked."""
    if not hasattr(type(data), "open_to_all"):
        return
    mine = home_of(data, "")
    for one in data.open_to_all:
        home = home_of(one, "")
        if home is None or (mine is not None and set(home.places) & set(mine.places)):
            continue  # another sheet of the same file: it has the ledger of the protected one
        if known := [*map(str, home.here()), *home.elsewhere().values()]:
            raise BadData(
                source=Path(os.fspath(one)).name, problem="has a ledger, and so tells of people: it is not public",
                hint=f"its ledger is {known[0]}; publish what is needed of it first, and join that",
            )  # fmt: skip


def _locked(folder: Path, held: ExitStack, until: float) -> bool:
    """Is the folder ours until `held` ends? False if somebody else's time was too long."""
    if fcntl is None:
        return True
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a folder that is not there, or is closed to us: opening the table says so
        return True
    held.callback(os.close, handle)
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.002)
            continue
        except OSError:  # a file system without locks
            return True
        held.callback(fcntl.flock, handle, fcntl.LOCK_UN)
        return True


def _all_names(paths: Iterable[Path]) -> tuple[list[Path], tuple[Path, ...]]:
    """These files, each followed by its other names in its folder; and those that have names elsewhere, too.

    A file of several names has them by hard links, which the disk counts. Only its own folder is looked through.
    """
    found: list[Path] = []
    away: list[Path] = []
    folders: dict[Path, dict[int, list[str]]] = {}
    for path in paths:
        found.append(path)
        try:
            state = os.stat(path)
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(state.st_mode) or state.st_nlink < 2:
            continue
        if path.parent not in folders:
            folders[path.parent] = _by_inode(path.parent)
        names = [path.with_name(n) for n in folders[path.parent].get(state.st_ino, ())]
        same = [name for name in names if _same(name, path)]
        found += [name for name in same if name != path]
        if len(same) < state.st_nlink:
            away.append(path)
    return found, tuple(away)


def _by_inode(folder: Path) -> dict[int, list[str]]:
    """The names in a folder by the file that they lead to; links that are followed are not among them."""
    found: dict[int, list[str]] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    # Of Windows only the file itself tells, and not its entry in the folder.
                    inode = entry.inode() or os.stat(entry.path).st_ino
                    found.setdefault(inode, []).append(entry.name)
    return {inode: sorted(names) for inode, names in found.items()}


def _real(path: Path) -> Path:
    with suppress(OSError, RuntimeError):
        return path.resolve()
    return path.absolute()


def _beside(path: Path) -> Path:
    stem = path.name
    while Path(stem).suffix.lower() in ENDINGS:
        stem = Path(stem).stem
    return path.parent / f"{_plain(stem) or 'table'}{ENDING}"


def _plain(name: str) -> str:
    return "".join("_" if c in '/*?[]:<>|"\\\0' else c for c in name).strip(". ")


def _note(place: Path) -> Path:
    return place.with_name(f"{place.name}-at")


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
