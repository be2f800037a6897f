"""Bounded rows beside a ledger: written once for each version of a table, where a custodian asked for it.

Bounding sorts all rows, which takes several times as long as a question. Without a request its result is let go with
the table. In the folder of `tacit.ledger.keep_rows` it is a file of DuckDB. Later readers of the same table
take it from there: three analysts, twenty plans, a restarted program.

The name of a file is a keyed digest of everything that its rows depend on: the state of the files that were read, how
they were read, the declared columns, the person and the limit, the key, and the releases of tacit and of
DuckDB. So rows are found only for exactly their original state; any other state makes them anew. If the last
change is more recent than the file system's clock can resolve, the rows are not kept. The next writer removes
files whose data have changed or gone. If rows cannot be kept (a full disk, another process's lock), they are
used from memory, as without a request.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from tacit.exact.data_classes import dataclass
from tacit.ledger.ledger import ABOUT, LOCK
from tacit.sources.facts import FileState, settled
from tacit.sources.opening.databases import VIEW
from tacit.sources.tables import Table, keyed, people_of

FORM = 1
PART = ".part"
ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """A folder for rows, the beginning of their names for a version, and how the data are read."""

    folder: Path
    mark: str
    reading: Any = None


def held_rows(table: Table, key: bytes, make: Callable[[], str]) -> Any:
    """The bounded rows: from the folder, or made (as a temporary table, by its name) and kept there, or only
    made.
    """
    place, backend = table.keep, table.relation.get_backend()
    if place is None or not _settled(table):
        return backend.table(make())
    file = place.folder / f"{place.mark}-{_name(table, place, key)}"
    if (found := _found(table, file)) is not None:
        return found
    with _alone(place.folder) as lock:
        if lock is not None:
            _sweep(place.folder)
            if (found := _found(table, file)) is not None:
                return found
        # Only bounding itself may fail here: what cannot be kept stops no release.
        made = make()
        if lock is not None:
            with contextlib.suppress(Exception):
                _write(table, made, file, lock)
                found = _found(table, file)
    if found is None:
        return backend.table(made)
    backend.con.execute(f"DROP TABLE {made}")
    return found


def _found(table: Table, file: Path) -> Any:
    """The kept rows, if they exist and can be opened; unreadable files are removed."""
    with contextlib.suppress(OSError):
        if file.exists():
            try:
                return _shown(table, file)
            except Exception:
                file.unlink(missing_ok=True)
    return None


def _settled(table: Table) -> bool:
    """Are the data files in place, in a state that every later change would differ from?

    A view reads other files, whose state is unknown.
    """
    facts = table.facts
    if VIEW in table.conditions or not facts.files or len(facts.files) != len(facts.state):
        return False
    return settled(facts.files, table.taken_at)


def _name(table: Table, place: KeptRows, key: bytes) -> str:
    import duckdb
    import ibis

    released, whose = import_module("tacit").__version__, people_of(table.unit)
    told = {
        "form": FORM, "tacit": released, "duckdb": duckdb.__version__, "ibis": ibis.__version__,
        "schema": table.schema.to_dict(), "unit": str(table.unit), "at_most": whose and whose.at_most,
        "person": table.person, "reading": place.reading, "public": table.facts.public,
        "single": table.facts.single, "files": [_state(f) for f in table.facts.files],
    }  # fmt: skip
    digest = keyed(key, "tacit kept rows")
    digest.update(json.dumps(told, sort_keys=True, default=str).encode())
    return str(digest.hexdigest())


def _state(file: FileState) -> dict[str, Any]:
    return {**asdict(file), "path": os.path.abspath(file.path)}


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[int | None]:
    """One writer at a time: the next one waits, and finds the rows of the first. None where nothing locks."""
    with contextlib.ExitStack() as stack:
        lock = None
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            lock = handle if _wanted(folder, handle) else None
        yield lock


def _wanted(folder: Path, lock: int) -> bool:
    """Whether rows are still to be kept: anybody who removes rows first removes the lock."""
    try:
        return os.path.samestat((folder / LOCK).lstat(), os.fstat(lock))
    except OSError:
        return False


def _write(table: Table, made: str, file: Path, lock: int) -> None:
    """The rows, and beside them the names of their source files. The files get their names when they are
    complete.
    """
    backend, part = table.relation.get_backend(), file.with_name(file.name + PART)
    about = file.with_name(file.name + ABOUT)
    alias = f"__tacit_{secrets.token_hex(8)}"
    try:
        backend.con.execute(f"ATTACH {_text(str(part))} AS {alias}")
        try:
            part.chmod(0o600)
            backend.con.execute(f"CREATE TABLE {alias}.{ROWS} AS FROM {made}")
            # Detaching would pass over a disk that is full now, and leave rows in a journal.
            backend.con.execute(f"CHECKPOINT {alias}")
        finally:
            backend.con.execute(f"DETACH {alias}")
        handle = os.open(about, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as out:
            json.dump([_state(f) for f in table.facts.files], out)
        if not _wanted(file.parent, lock):
            raise OSError
        part.rename(file)
    except BaseException:
        for left in (part, part.with_name(part.name + ".wal"), about):
            with contextlib.suppress(OSError):
                left.unlink()
        raise


def _shown(table: Table, file: Path) -> Any:
    """The kept rows as a table of the same connection, which is closed with it."""
    backend, alias = table.relation.get_backend(), f"__tacit_{secrets.token_hex(8)}"
    backend.con.execute(f"ATTACH {_text(str(file))} AS {alias} (READ_ONLY)")
    table.on_close(lambda: backend.con.execute(f"DETACH {alias}"))
    table.kept_in = file
    return backend.table(ROWS, database=(alias, "main"))


def _sweep(folder: Path) -> None:
    """Removes rows of data that have changed or gone, and the remains of a killed writer."""
    for path in [*folder.glob("*-*")]:
        with contextlib.suppress(OSError):
            if path.suffix == ABOUT:
                if not _of_now(path):
                    path.with_suffix("").unlink(missing_ok=True)
                    path.unlink()
            elif path.suffix in (PART, ".wal") or not path.with_name(path.name + ABOUT).exists():
                path.unlink()


def _of_now(about: Path) -> bool:
    """Whether the files that it names are unchanged."""
    try:
        return all(_still(f) for f in json.loads(about.read_text()))
    except Exception:
        return False


def _still(said: dict[str, Any]) -> bool:
    try:
        now = Path(said["path"]).stat()
    except OSError:
        return False
    found = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    return found == tuple(said[n] for n in ("device", "inode", "size", "modified_ns", "changed_ns"))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
