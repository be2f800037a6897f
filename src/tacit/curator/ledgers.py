"""The ledger of a table, beside its data or named in a note there.

Beside `visits.parquet` lie

    visits.ledger       the ledger, unless another place was named (of a table that is declared as `survey`:
                        survey.ledger)
    visits.ledger-at    a line for each ledger of the table that lies elsewhere: its id and its place, no password

so that a copied or renamed plan, a second plan, another spelling of the path or a link to the file all find the same
budget. So does another name of the same file in its folder (a hard link), by device and inode. A file with names
outside of its folder gets no new ledger unless it is asked for: its ledger may lie beside one of those names. A
table also gets no existing ledger that knows none of its names, here or beside that ledger. A second ledger for
a table with one is refused in the same way. It never depends on the contents of the data. A copy of the data in
another folder is not known as such (docs/known-limits.md).
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from tacit.curator.charging import exact_numbers
from tacit.errors import BadData, InvalidParameter, LedgerError
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Bound, Guarantee
from tacit.ledger import Ledger, Ticket
from tacit.ledger.budget import share
from tacit.ledger.entries import text
from tacit.ledger.store import without_credentials
from tacit.sources.engines import new_folder, remove_folder
from tacit.sources.facts import Facts, is_twin
from tacit.sources.opening import files as words

try:
    import fcntl
except ImportError:  # pragma: no cover - not a Unix
    fcntl = None  # type: ignore[assignment]


ENDINGS = (".gz", *(ending for kind in words.ENDINGS.values() for ending in kind))
ENDING = ".ledger"
UNWRITTEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR)


class Beside:
    """The ledger that lies beside the data; created at the first charge."""

    def __repr__(self) -> str:
        return "the ledger beside the data"


BESIDE: Final = Beside()


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The folders that are searched for the ledgers of a table on disk."""

    places: tuple[Path, ...]
    away: tuple[Path, ...] = ()
    """Files of the table that have more names than their folders show: hard links from elsewhere."""

    @property
    def default(self) -> Path:
        """The default place of a new ledger."""
        return self.places[0]

    def here(self) -> list[Path]:
        """The ledgers that lie beside the data."""
        return [path for path in self.places if os.path.lexists(path)]

    def elsewhere(self) -> dict[str, str]:
        """The ledgers in the notes here, by their ids."""
        found: dict[str, str] = {}
        for path in map(_note, self.places):
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError):
                raise LedgerError(
                    ledger=str(path), reason="cannot be read, although it names the table's ledger",
                    hint="ask who keeps the table",
                ) from None  # fmt: skip
            for line in lines:
                number, _, place = line.partition("  ")
                found[number] = place
        return found

    def only(self) -> str | None:
        """The table's only ledger; None if it has none. Refuses if several are possible."""
        here, noted = self.here(), self.elsewhere()
        places = {p if "://" in p else str(Path(p).resolve()): p for p in (*map(str, here), *noted.values())}
        if len(places) > 1:
            raise LedgerError(
                ledger=", ".join(sorted(places.values())),
                reason="are all of this table",
                hint="name the intended one",
            )
        if not places:
            return None
        place = next(iter(places.values()))
        if "://" in place:
            raise LedgerError(
                ledger=place, reason="is that of this table, and is not named here",
                hint="name it, with its user and password",
            )  # fmt: skip
        return place

    def admits(self, place: str | None, number: str | None) -> None:
        """Refuses a ledger (its place, and its id if it exists) if the table has another one.

        With several files each must agree: a file of this ledger does not admit one with another.
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
        """Refuses to make a ledger for a file with other names elsewhere, because it would be a second budget."""
        if self.away:
            raise LedgerError(
                ledger=str(self.default),
                reason=f"would be a new one, and {self.away[0].name!r} has names in other folders (hard links): if "
                "there is a ledger beside one of those, it is this table's",
                hint="name that one; if there is none, say so: another_ledger=True, in a plan `another = true`",
            )

    def admits_a_known_one(self, ledger: Ledger) -> None:
        """Refuses an existing ledger for a file with names elsewhere, if it knows none of the names visible here."""
        for path in self.away:
            folders = [path.parent, *([ledger.path.parent] if ledger.path is not None else [])]
            if not any(_has(_beside(name), ledger) for folder in folders for name in _names_in(folder, path)):
                raise LedgerError(
                    ledger=ledger.name,
                    reason=f"exists, but nothing says that it is the ledger of {path.name!r}, which has names in "
                    "other folders (hard links): if there is a ledger beside one of those, it is this table's",
                    hint="name that ledger; if there is none, or it is this one, use another_ledger=True, in a plan "
                    "`another = true`",
                )

    @contextmanager
    def alone(self, wait_seconds: float) -> Iterator[None]:
        """Lets only one process at a time find or make the ledger of a table here, because two at once would
        make two budgets.

        The lock is on the folders themselves, and ends with its process. On file systems without locks there is no
        lock.
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
        """Leaves a note beside the data, under every name whose folder lacks the ledger."""
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
                        ledger=str(note), reason="cannot be written, although it names the table's ledger",
                        hint="make room there",
                    ) from None  # fmt: skip


def home_of_files(paths: Iterable[Path]) -> Home | None:
    """The folders that may contain the ledgers of these files, read now."""
    named, away = _all_names(_real(path.expanduser()) for path in paths)
    places = tuple(dict.fromkeys(map(_beside, named)))
    return Home(places=places, away=away) if places else None


def home_of(data: Any, table: str) -> Home | None:
    """The folders that may hold a table's ledgers; None for a table that is not in files.

    A table of several files has its home beside each of them; the files of a pattern (`tacit.files(...,
    pattern=True)`) also in the folder before it.
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
    """Refuses a join with a table that is declared public and has a ledger, since the people in it have a
    budget that would not be charged.
    """
    if not hasattr(type(data), "open_to_all"):
        return
    mine = home_of(data, "")
    for one in data.open_to_all:
        home = home_of(one, "")
        if home is None or (mine is not None and set(home.places) & set(mine.places)):
            continue  # another sheet of the same file: it has the ledger of the protected one
        if known := [*map(str, home.here()), *home.elsewhere().values()]:
            raise BadData(
                source=Path(os.fspath(one)).name, problem="has a ledger, so it describes people and is not public",
                hint=f"its ledger is {known[0]}; publish the needed part of it first, and join that",
            )  # fmt: skip


def _locked(folder: Path, held: ExitStack, until: float) -> bool:
    """Whether this process holds the folder until `held` ends. False if somebody else's time was too long."""
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
    """These files, each followed by its other names in its folder, and the files with names in other folders.

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


def _names_in(folder: Path, path: Path) -> list[Path]:
    """The names that a file has in a folder."""
    try:
        inode = os.stat(path).st_ino
    except (OSError, ValueError):
        return []
    return [name for n in _by_inode(folder).get(inode, ()) if _same(name := folder / n, path)]


def _has(place: Path, ledger: Ledger) -> bool:
    """Whether this ledger lies at the place, or a note there names it."""
    lies = ledger.path is not None and _same(place, ledger.path)
    return lies or ledger.id in Home(places=(place,)).elsewhere()


def _by_inode(folder: Path) -> dict[int, list[str]]:
    """The names in a folder by their target files, without links."""
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


# The one ledger of a curator: found, or made once, whichever thread asks first.

Named = str | os.PathLike[str] | Ledger | Beside | None


class LedgerResolver:
    """Finds the ledger of a table, and makes it at the first charge.

    A named ledger must be the table's only one, unless `another` is given. Without a name it is the table's existing
    ledger; if there is none, a ledger for the life of this object, or one beside the data (`BESIDE`).
    """

    def __init__(
        self,
        data: Any,
        *,
        named: Named,
        budget: Guarantee,
        table: str,
        another: bool,
        wait_seconds: float,
        shares: Mapping[str, Bound] | None = None,
    ) -> None:
        if not isinstance(another, bool):
            raise InvalidParameter(parameter="another_ledger", value=another, must="be True or False")
        if not isinstance(named, str | os.PathLike | Ledger | Beside | None):
            raise InvalidParameter(
                parameter="ledger",
                value=type(named).__name__,
                must="be a path, a URL or a Ledger, or be left out",
            )
        self.table = text("table", table, empty=True)
        refuse_protected(data)
        self._data, self._named, self._budget, self._another = data, named, budget, another
        self._wait = wait_seconds
        self.shares = {text("analyst", name): share(bound, budget) for name, bound in (shares or {}).items()}
        self._lock = threading.RLock()
        self._drop: weakref.finalize[Any, LedgerResolver] | None = None
        self._ledger: Ledger | None = None
        self._places: set[Path] = set()
        self._read: tuple[Any, ...] = ()
        if isinstance(named, Ledger):
            named.check(budget=budget, table=self.table)

    def glance(self) -> Ledger | None:
        """An existing ledger, to show the amount left; creates nothing, and leaves no note."""
        with self._lock:
            return self._ledger if self._ledger is not None else self._found(make=False, note=False)

    def existing(self) -> Ledger | None:
        """An existing ledger, or None; creates nothing."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self._found(make=False)
            return self._ledger

    def made(self) -> Ledger:
        """The ledger, created if the table has none."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self._found(make=True)
            assert self._ledger is not None
            return self._ledger

    def for_charging(self, facts: Facts | None = None) -> Ledger:
        """The ledger, if these rows may be charged to it: a twin's to a rehearsal's, and real ones to a real one.

        facts: those of the table that was opened. Each of its files must have this ledger and no other, and
        gets a note of it: a pattern may match more files now than when the ledger was found.
        """
        ledger = self.made()
        # A table that was public when the curator was made may have a ledger by now.
        refuse_protected(self._data)
        # What was opened is what counts: the files may have been others when they were looked at before.
        twin = is_twin(self._data) and (facts is None or facts.made_up)
        if ledger.rehearsal is not twin:
            raise ledger.not_for(twin)
        with self._lock:
            # Another file under the same name may be one that has a ledger under its other name.
            read = None if facts is None else tuple((s.path, s.device, s.inode) for s in facts.files)
            if facts is not None and (facts.protected, read) != self._read:
                home = home_of_files(facts.protected)
                if home is not None and (self._read or not self._places.issuperset(home.places)):
                    with home.alone(self._wait):
                        # A session's ledger leaves no note: it is gone with its process.
                        self._settled(ledger, home, note=self._drop is None)
                self._read = (facts.protected, read)
        return ledger

    def for_looking(self, facts: Facts) -> Ledger:
        """The ledger, if its mark lasts as long as the table: a file's ledger, but not that of a session."""
        if home_of(self._data, self.table) is not None and self._named is None and self.existing() is None:
            raise InvalidParameter(
                parameter="ledger", value=None, must="be named before somebody looks at a file",
                hint="the mark must last as long as the file: ledger='survey.ledger'",
            )  # fmt: skip
        return self.for_charging(facts)

    def known_of(self, paid: Ticket) -> dict[str, Any]:
        """The table's name, and the ledger's remark about the plan: an earlier look at the data."""
        request = paid.request
        return {
            "table": self.table,
            "asked_by": request.analyst,
            **({"approved_by": list(paid.approved_by)} if paid.approved_by else {}),
            **({"signed": dict(paid.signed)} if paid.signed else {}),
            **({"seen": list(paid.seen)} if paid.seen else {}),
        }

    def folder(self, ledger: Ledger) -> Path | None:
        """The folder from which files are named: the ledger's own; None for a database or a session."""
        return None if ledger.path is None or self._drop is not None else ledger.path.parent

    def close(self) -> None:
        """Give the database back, and a session's ledger with it."""
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()
            if self._drop is not None:
                self._drop()

    # --- finding ----------------------------------------------------------------------------------------
    def _found(self, *, make: bool, note: bool = True) -> Ledger | None:
        twin = is_twin(self._data)
        # A twin is not the table that a plan declares, and gets no place under its name.
        home = home_of(self._data, "" if twin else self.table)
        with nullcontext() if home is None else home.alone(self._wait):
            if isinstance(self._named, Ledger):
                return self._settled(self._named, home, note=note)
            place: str | os.PathLike[str] | None
            if self._named is None or self._named is BESIDE or isinstance(self._named, Beside):
                place = None if home is None else home.only()
                if place is None and self._named is not None and home is not None:
                    place = home.default
            else:
                place = self._named
            if place is None:
                return self._session(twin) if make else None
            if not Ledger.exists_at(place, wait_seconds=self._wait):
                if not make:
                    return None
                if home is not None and not self._another:
                    home.admits(os.fspath(place), None)
                    home.admits_a_new_one()
            exact = exact_numbers(self._budget)
            given: dict[str, Any] = {"budget": self._budget, "table": self.table, "wait_seconds": self._wait}
            if make:
                found = Ledger.at(place, exact=exact, rehearsal=twin, shares=self.shares, **given)
            else:
                found = Ledger.open(place, wait_seconds=self._wait)
                found.check(budget=self._budget, table=self.table)
            return self._settled(found, home, note=note)

    def _settled(self, ledger: Ledger, home: Home | None, *, note: bool = True) -> Ledger:
        ledger.check_shares(self.shares)
        if home is not None:
            if not self._another:
                home.admits(ledger.place, ledger.id)
                if self._drop is None:
                    home.admits_a_known_one(ledger)
            if note:
                home.remember(ledger)
                self._places.update(home.places)
        return ledger

    def _session(self, twin: bool) -> Ledger:
        # A folder that goes with the process, however it ends: the ledger has a secret, and lasts for a session.
        folder = new_folder()
        self._drop = weakref.finalize(self, remove_folder, folder)
        return Ledger.create(
            folder / "session.ledger",
            budget=self._budget,
            exact=exact_numbers(self._budget),
            table=self.table,
            rehearsal=twin,
            shares=self.shares,
            wait_seconds=self._wait,
        )

    def __str__(self) -> str:
        if self._named is None:
            return (
                "for this session only" if self._ledger is None or self._drop else f"in {self._ledger.name}"
            )
        if isinstance(self._named, Ledger):
            return f"in {self._named.name}"
        if isinstance(self._named, Beside):
            return "beside the data"
        return f"in {without_credentials(os.fspath(self._named))}"
