"""The book behind a ledger: its pages are read in order, each checked against the one before, and added to.

Everything here happens inside a transaction of the store, and knows nothing of budgets.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tacit.errors import LedgerCorrupt, LedgerVersion
from tacit.ledger.canonical import sha256
from tacit.ledger.chain import Committed, History, walk
from tacit.ledger.entries import Entry
from tacit.ledger.header import FORMAT, Header, head_mac
from tacit.ledger.store import ANSWERS, ENTRIES, HEADER, Store

__all__ = ["Book", "now"]

T = TypeVar("T")


class Book:
    """A store whose header was read and whose chain is followed as it grows."""

    def __init__(self, store: Store) -> None:
        self._store, self._unsound = store, ""
        with store.reading() as connection:
            store.check_format(connection)
            row = connection.execute(sa.select(HEADER)).mappings().one_or_none()
            if row is None:
                self._corrupt("has lost its header")
            if row["format"] != FORMAT:
                raise LedgerVersion(
                    ledger=store.name,
                    reason=f"has format {row['format']}, and this version of tacit knows {FORMAT}",
                    hint="use the version of tacit that wrote it, or a later one",
                )
            self._header, self._secret = str(row["header"]), bytes(row["secret"])
            header = Header.read(self._header, self._secret)
            if header is None:
                self._corrupt("has a header that was changed")
            self.id, self.created = header.id, header.created
            self.budget, self.exact, self._shares = header.budget, header.exact, header.shares
            self._history = self._at_the_start()
            self._sync(connection)

    @property
    def name(self) -> str:
        """Where it lies, without a password."""
        return self._store.name

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
        """Every new link is checked, and the end against the keyed head."""
        columns = (HEADER.c.header, HEADER.c.sequence, HEADER.c.digest, HEADER.c.mac)
        head = connection.execute(sa.select(*columns)).mappings().one_or_none()
        if head is None or head["header"] != self._header:
            self._corrupt("is not the one that was opened: its header is another")
        start = sha256(self._header)
        history = self._history
        if not hmac.compare_digest(
            head_mac(self._secret, start, head["sequence"], head["digest"]), str(head["mac"])
        ):
            self._corrupt("has a head that was not written by tacit")
        if head["sequence"] < history.sequence:
            self._corrupt("has lost entries since it was opened")
        self._checked(connection, history, up_to=head["sequence"])
        if (history.sequence, history.digest) != (head["sequence"], head["digest"]):
            self._corrupt("ends elsewhere than its head says")

    def _checked(self, connection: Connection, history: History, *, up_to: int) -> Sequence[Entry]:
        query = sa.select(ENTRIES.c.sequence, ENTRIES.c.digest, ENTRIES.c.content)
        query = query.where(ENTRIES.c.sequence > history.sequence, ENTRIES.c.sequence <= up_to)
        query = query.order_by(ENTRIES.c.sequence)
        found: list[Entry] = []
        for entry, problem in walk(history, (tuple(r) for r in connection.execute(query))):
            if problem is not None or entry is None:
                self._corrupt(f"was changed: {problem}")
            found.append(entry)
        return found

    def _next(self, kind: str, **body: Any) -> Entry:
        history = self._history
        return Entry.new(
            sequence=history.sequence + 1, previous=history.digest, time=now(), kind=kind, **body
        )

    def _append(self, connection: Connection, entry: Entry) -> None:
        row = {"sequence": entry.sequence, "digest": entry.digest}
        connection.execute(sa.insert(ENTRIES).values(content=entry.content, **row))
        keyed = head_mac(self._secret, sha256(self._header), entry.sequence, entry.digest)
        connection.execute(sa.update(HEADER).values(mac=keyed, **row))

    def _body(self, connection: Connection, known: Committed) -> Any:
        query = sa.select(ANSWERS.c.body).where(ANSWERS.c.sequence == known.sequence)
        body = connection.execute(query).scalar_one_or_none()
        if body is None or sha256(bytes(body)) != known.sha256:
            self._corrupt(
                f"was changed: the answer of entry {known.sequence} is not the one that was recorded"
            )
        return bytes(body) if known.kind == "bytes" else json.loads(bytes(body))

    def _read(self, pick: Callable[[History], T]) -> T:
        # `pick` runs before the lock is given back, so that no other thread moves the history under it.
        with self._store.reading() as connection:
            self._sync(connection)
            return pick(self._history)

    def _at_the_start(self) -> History:
        return History(digest=sha256(self._header), shares=dict(self._shares))

    def _corrupt(self, reason: str) -> NoReturn:
        raise LedgerCorrupt(
            ledger=self._store.name,
            reason=reason,
            hint="nothing was charged; `tacit ledger verify` names every change",
        )


def now() -> str:
    """The time as text, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
