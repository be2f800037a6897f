"""The custodian's secret records beside the chain: sealed parts under names, in the ledger's own database.

    tacit_sealed    name, part, body: parts are inserted and never changed

A body is encrypted and authenticated (AES-256-GCM) under a key that is derived from the ledger's secret, and bound to
the ledger, its name and its part. So a body in the wrong place is noticed.
Transactions are those of the ledger, so that
writers take turns and an ended transaction is on the disk. Nothing of it is exported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tacit.errors import LedgerCorrupt
from tacit.exact.canonical import canonical, derived_key
from tacit.ledger.store import SEALED, Connection

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger

T = TypeVar("T")
NONCE = 12

_PARTS = SEALED.selection("part", "body", where="name = :name AND part > :after", order="part")


class StoreTransaction:
    """The sealed parts inside one transaction."""

    def __init__(self, store: EncryptedStore, connection: Connection, *, there: bool) -> None:
        self._encrypted, self._connection, self._there = store, connection, there

    def parts(self, name: str, *, after: int = -1) -> list[bytes]:
        """The parts of this name beyond `after`, in order; they must follow each other without a gap."""
        if not self._there:
            return []
        found = self._connection.rows(_PARTS, {"name": name, "after": after})
        if [part for part, _ in found] != list(range(after + 1, after + 1 + len(found))):
            raise self._encrypted.corrupt()
        return [self._encrypted.opened(name, part, bytes(body)) for part, body in found]

    def names(self) -> list[str]:
        """All names, sorted."""
        if not self._there:
            return []
        return sorted({str(name) for (name,) in self._connection.rows(SEALED.selection("name"))})

    def append(self, name: str, part: int, body: bytes) -> None:
        """Keep a part; it is durable when the transaction has ended."""
        row = {"name": name, "part": part, "body": self._encrypted.sealed(name, part, body)}
        self._connection.change(SEALED.insertion, row)


class EncryptedStore:
    """Sealed parts beside a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._store, self._ledger = ledger._store, ledger.id
        self._key = derived_key(ledger._secret, "sealed parts")
        self._made = False

    def read(self, work: Callable[[StoreTransaction], T]) -> T:
        """Runs this work in a transaction that sees one state and writes nothing."""

        def look(connection: Connection) -> T:
            return work(StoreTransaction(self, connection, there=connection.has(SEALED)))

        return self._store.read(look)

    def write(self, work: Callable[[StoreTransaction], T]) -> T:
        """Runs this work in an exclusive transaction, and returns when it is durable.

        `work` must have no other effect, because it runs again if the database says that it did not commit.
        """

        def inside(connection: Connection) -> T:
            if not self._made:
                connection.create(SEALED)
            return work(StoreTransaction(self, connection, there=True))

        result = self._store.write(inside)
        self._made = True
        return result

    def _bound(self, name: str, part: int) -> bytes:
        return canonical([self._ledger, name, part]).encode("ascii")

    def sealed(self, name: str, part: int, body: bytes) -> bytes:
        """The body, encrypted."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE)
        return nonce + AESGCM(self._key).encrypt(nonce, body, self._bound(name, part))

    def opened(self, name: str, part: int, sealed: bytes) -> bytes:
        """The body, or an error that it was changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._key).decrypt(sealed[:NONCE], sealed[NONCE:], self._bound(name, part))
        except (InvalidTag, ValueError):
            raise self.corrupt() from None

    def corrupt(self) -> LedgerCorrupt:
        """The error for damaged parts."""
        return LedgerCorrupt(
            ledger=self._store.name,
            reason="was changed: a sealed part is not the one that was kept",
            hint="restore the ledger from a copy; paths that it keeps cannot be made anew",
        )

    def __repr__(self) -> str:
        return f"EncryptedStore({self._store.name!r})"
