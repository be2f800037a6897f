"""The book behind a ledger: its end is checked when it is opened, and each page that is added since.

Everything here happens inside a transaction of the store, and knows nothing of what is admitted.
"""

from __future__ import annotations

import hmac
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tacit.errors import LedgerCorrupt, TacitError
from tacit.ledger.canonical import canonical, mac, sha256
from tacit.ledger.chain import Committed, History, Row, walk
from tacit.ledger.entries import Entry, protected_files, read_entry
from tacit.ledger.header import FORMAT, READABLE, Header, head_mac, index_mac, version_error
from tacit.ledger.state import State
from tacit.ledger.statements import change, first
from tacit.ledger.store import ANSWERS, ENTRIES, HEADER, INDEX, Store

__all__ = ["PAGE", "Book", "answer_name", "closed_name", "correction_name", "now", "pages"]

T = TypeVar("T")
PAGE = 500
OWN = 64
"""Entries of its own that a book knows without reading them anew, where they still are what it wrote."""


# Built once: a release puts some twenty of these to the database.
_HEAD = sa.select(HEADER.c.header, HEADER.c.sequence, HEADER.c.digest, HEADER.c.mac, HEADER.c.state)
_TOP = sa.select(sa.func.max(ENTRIES.c.sequence))
_ENTRY = sa.select(ENTRIES.c.digest, ENTRIES.c.content).where(ENTRIES.c.sequence == sa.bindparam("at"))
_NAMED = sa.select(INDEX.c.sequence, INDEX.c.digest, INDEX.c.mac).where(
    INDEX.c.name == sa.bindparam("wanted")
)
_NEW_ENTRY, _NEW_HEAD, _NEW_NAME = sa.insert(ENTRIES), sa.update(HEADER), sa.insert(INDEX)


class Book:
    """A store whose header was read and whose end is followed as it grows."""

    def __init__(self, store: Store) -> None:
        self._store, self._unsound = store, ""
        self._written: tuple[str, int, str, State] | None = None
        self._own: OrderedDict[int, Entry] = OrderedDict()
        store.read(self._open)

    def _open(self, connection: Connection) -> None:
        self._store.check_format(connection)
        # The format first, by itself: another format may have other columns.
        found = connection.execute(sa.select(HEADER.c.format)).scalar_one_or_none()
        if found is None:
            self._corrupt("has lost its header")
        if found not in READABLE:
            raise version_error(self._store.name, found)
        row = connection.execute(sa.select(HEADER)).mappings().one()
        self._header, self._secret = str(row["header"]), bytes(row["secret"])
        header = Header.read(self._header, self._secret)
        if header is None:
            self._corrupt("has a header that was changed")
        self.id, self.created, self.table, self.rehearsal = (
            header.id, header.created, header.table, header.rehearsal,
        )  # fmt: skip
        self.budget, self.exact = header.budget, header.exact
        self._start, self._first = sha256(self._header), _first(header)
        self._sequence, self._digest, self._state = -1, "", self._first
        self._all = self._at_the_start()
        self._earlier: bool | None = None  # has it charges of 0.1.0? Found out when somebody must know
        self._sync(connection)

    @property
    def name(self) -> str:
        """Where it lies, without a password."""
        return self._store.name

    @property
    def path(self) -> Path | None:
        """Its file, where it is one."""
        return self._store.path

    @property
    def place(self) -> str:
        """Its path, or its URL without user, password and options."""
        return self._store.place

    # --- the end -------------------------------------------------------------------------------------
    def _write(self, work: Callable[[Connection], T], *, patience: float | None = None) -> T:
        """Do this in a transaction that writes; what it wrote is known from its end on, so that its loss is noticed."""

        def noted(connection: Connection) -> tuple[T, tuple[str, int, str, State] | None]:
            self._written = None
            return work(connection), self._written

        done, wrote = self._store.write(noted, patience=patience)
        with self._store.alone():
            # Unless another thread has caught up, or written, in the meantime.
            if wrote is not None and self._written is wrote and wrote[0] == self._digest:
                _, self._sequence, self._digest, self._state = wrote
        return done

    def _sync(self, connection: Connection) -> None:
        """Read what others appended since; a book that was once found unsound stays so until it is opened anew."""
        if self._unsound:
            self._corrupt(self._unsound)
        try:
            self._catch_up(connection)
        except LedgerCorrupt as problem:
            self._unsound = problem.reason
            raise

    def _catch_up(self, connection: Connection) -> None:
        """The keyed head, the entry that it names and the state that this one names; and every new link to there."""
        head = first(connection, _HEAD, {})
        if head is None or head[0] != self._header:
            self._corrupt("is not the one that was opened: its header is another")
        _, at, digest, signed, state = head
        keyed = head_mac(self._secret, self._start, at, digest)
        if not hmac.compare_digest(keyed, str(signed)):
            self._corrupt("has a head that was not written by tacit")
        if at < self._sequence:
            self._corrupt("has lost entries since it was opened")
        top = first(connection, _TOP, {})
        if ((top and top[0]) or 0) != at:
            self._corrupt("ends elsewhere than its head says")
        if (self._sequence, self._digest) == (at, digest):
            return
        written = self._written
        if written is not None and written[:3] == (self._digest, at, digest):
            # What this book wrote itself, right after what it knew: the keyed head says that it stands.
            _, self._sequence, self._digest, self._state = written
            return
        last = self._linked(connection, int(at))
        if (last.digest if last else self._start) != digest:
            self._corrupt("ends elsewhere than its head says")
        self._state = self._stated(last, str(state))
        self._sequence, self._digest = int(at), str(digest)

    def _linked(self, connection: Connection, top: int) -> Entry | None:
        """The last entry: the only one that is read when a book is opened, and reached link by link from then on."""
        if top == 0:
            return None
        after, digest = (top - 1, "") if self._sequence < 0 else (self._sequence, self._digest)
        entry = None
        for row in pages(connection, after=after, up_to=top):
            entry, wrong = read_entry(sequence=row[0], digest=row[1], content=row[2])
            if entry is None or row[0] != after + 1 or (digest and entry.body["previous"] != digest):
                self._corrupt(f"was changed: entry {row[0]} {wrong or 'does not follow the one before it'}")
            after, digest = row[0], row[1]
        if entry is None or after != top:
            self._corrupt("ends elsewhere than its head says")
        return entry

    def _stated(self, last: Entry | None, text: str) -> State:
        if last is None:
            if text != self._first.text:
                self._corrupt("has a state that was changed")
            return self._first
        if not hmac.compare_digest(sha256(text), str(last.body["state"])):
            self._corrupt("has a state that was changed")
        try:
            return State.read(self.budget, last.body["total"], text, ledger=self.id)
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, TacitError):
            self._corrupt("has a state that cannot be read")

    # --- all of it -----------------------------------------------------------------------------------
    def _checked(self, connection: Connection, history: History) -> Iterator[Entry]:
        """Every entry from where `history` stands to the end, each checked."""
        rows = pages(connection, after=history.sequence, up_to=self._sequence)
        for entry, problem in walk(history, rows):
            if problem is not None or entry is None:
                self._unsound = f"was changed: {problem}"
                self._corrupt(self._unsound)
            yield entry
        if (history.sequence, history.digest) != (self._sequence, self._digest):
            self._corrupt("ends elsewhere than its head says")

    def _history(self, connection: Connection) -> History:
        """All charges; read and checked at the first use, and from then on only what is new."""
        self._sync(connection)
        for _ in self._checked(connection, self._all):
            pass
        return self._all

    def _at_the_start(self, *, keep: bool = True) -> History:
        return History(digest=self._start, state=self._first, keep=keep)

    # --- writing -------------------------------------------------------------------------------------
    def _next(self, kind: str, state: State, **body: Any) -> Entry:
        said = {"time": now(), **state.words, **body}
        return Entry.new(sequence=self._sequence + 1, previous=self._digest, kind=kind, **said)

    def _append(self, connection: Connection, entry: Entry, state: State) -> None:
        row = {"sequence": entry.sequence, "digest": entry.digest}
        change(connection, _NEW_ENTRY, {"content": entry.content, **row})
        keyed = head_mac(self._secret, self._start, entry.sequence, entry.digest)
        changed = {} if state is self._state else {"state": state.text}
        # What this version writes an older one may not know: from here on it refuses the ledger, and loses nothing.
        change(connection, _NEW_HEAD, {"mac": keyed, "format": FORMAT, **changed, **row})
        self._written = (self._digest, entry.sequence, entry.digest, state)
        self._own[entry.sequence] = entry
        while len(self._own) > OWN:
            self._own.popitem(last=False)

    # --- looking up ----------------------------------------------------------------------------------
    def _entry_at(self, connection: Connection, sequence: int, digest: str) -> Entry:
        """One entry, which must have this digest."""
        row = first(connection, _ENTRY, {"at": sequence})
        entry: Entry | None = None
        wrong = "is missing"
        own = self._own.get(sequence)
        if row is not None and own is not None and (own.digest, own.content) == (row[0], row[1]):
            entry, wrong = own, ""  # letter by letter what this book wrote
        elif row is not None:
            entry, wrong = read_entry(sequence=sequence, digest=row[0], content=row[1])
        if entry is None or entry.digest != digest:
            self._corrupt(
                f"was changed: entry {sequence} {wrong or 'is not the one that its reference names'}"
            )
        return entry

    def _digest_of(self, connection: Connection, sequence: int) -> str:
        """The digest of an entry of a chain that was read whole in this transaction."""
        row = first(connection, _ENTRY, {"at": sequence})
        return "" if row is None else str(row[0])

    def _find(self, connection: Connection, name: str) -> Entry | None:
        """The entry that the index names."""
        row = first(connection, _NAMED, {"wanted": name})
        if row is None:
            return None
        sequence, digest, kept = row
        keyed = index_mac(self._secret, self._start, name, sequence, digest)
        if not hmac.compare_digest(keyed, str(kept)):
            self._corrupt("was changed: a row of its index was not written by tacit")
        return self._entry_at(connection, int(sequence), str(digest))

    def _note(self, connection: Connection, name: str, entry: Entry) -> None:
        keyed = index_mac(self._secret, self._start, name, entry.sequence, entry.digest)
        row = {"name": name, "sequence": entry.sequence, "digest": entry.digest, "mac": keyed}
        change(connection, _NEW_NAME, row)

    def _body(self, connection: Connection, known: Committed) -> Any:
        query = sa.select(ANSWERS.c.body).where(ANSWERS.c.sequence == known.sequence)
        body = connection.execute(query).scalar_one_or_none()
        if body is None or sha256(bytes(body)) != known.sha256:
            self._corrupt(
                f"was changed: the answer of entry {known.sequence} is not the one that was recorded"
            )
        return bytes(body) if known.kind == "bytes" else json.loads(bytes(body))

    def _read(self, pick: Callable[[State], T]) -> T:
        # `pick` runs before the lock is given back, so that no other thread moves the state under it.
        def work(connection: Connection) -> T:
            self._sync(connection)
            return pick(self._state)

        return self._store.read(work)

    def _read_all(self, pick: Callable[[History], T]) -> T:
        return self._store.read(lambda connection: pick(self._history(connection)))

    def _corrupt(self, reason: str) -> NoReturn:
        raise LedgerCorrupt(
            ledger=self._store.name,
            reason=reason,
            hint="nothing was charged; `tacit ledger verify` names every change",
        )


def _first(header: Header) -> State:
    return State.start(header.budget, header.shares, ledger=header.id)


def correction_name(about: int, number: int) -> str:
    """The index's name for the so-manieth thing that was said about a charge later."""
    return f"corrected {about} {number}"


def closed_name(sequence: int) -> str:
    """The index's name for what became of a reservation."""
    return f"closed {sequence}"


def answer_name(
    secret: bytes, key: str, table: str, version: str, files: Mapping[str, Any] | None = None
) -> str:
    """The index's name for the answer to a question about a version of a table, and about a declared set of files.

    Entries of 0.1.0 have no set of files, and keep the name that they have.
    """
    about: list[Any] = [key, table, version, *([] if files is None else [files])]
    return "answer " + mac(secret, "answer", canonical(about))


def file_names(secret: bytes, key: str, table: str, version: str, files: Mapping[str, Any]) -> list[str]:
    """The index's names for a question about a version of a table, and for each file that it was declared for."""
    about = [key, table, version]
    place = "asked " + mac(secret, "asked", canonical(about))
    each = protected_files(files)
    return [place, *("file " + mac(secret, "file", canonical([*about, one])) for one in each)]


def pages(connection: Connection, *, after: int, up_to: int | None = None) -> Iterator[Row]:
    """The rows of the chain in order, some at a time, so that no more than those are in memory."""
    columns = (ENTRIES.c.sequence, ENTRIES.c.digest, ENTRIES.c.content)
    while up_to is None or after < up_to:
        query = sa.select(*columns).where(ENTRIES.c.sequence > after).order_by(ENTRIES.c.sequence)
        if up_to is not None:
            query = query.where(ENTRIES.c.sequence <= up_to)
        found: Sequence[Any] = connection.execute(query.limit(PAGE)).all()
        if not found:
            return
        for row in found:
            yield row.sequence, row.digest, row.content
        after = found[-1].sequence


def now() -> str:
    """The time as text, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
