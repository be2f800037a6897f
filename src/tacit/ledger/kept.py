"""Connections to ledgers' files that wait for the next transaction: opening one takes longer than most charges.

A connection is handed out again only while the file at its place is the very one, as the last transaction on it left
it: the same file by its number, of the same length and with the same times. A file that was put in its place, copied
over it or written by somebody else is opened anew. Whoever uses a connection has taken it from here, so that no two
have one, and a child of this process finds none: it must not speak on, nor close, what its parent opened.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from tacit.ledger.opening import driver

__all__ = ["MOST", "Stamp", "kept", "stamp_of"]

MOST = 16
"""Connections that are kept in a process; of those that were used longest ago the last ones are closed."""

Stamp = tuple[int, ...]


def stamp_of(path: Path) -> Stamp | None:
    """What tells this file, as it is now, from another one or from what it becomes; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Kept:
    """The connections of this process, each under the store whose it is."""

    def __init__(self) -> None:
        # One that its thread may take again: a store may be collected, and dropped, while another is put away.
        self._lock = threading.RLock()
        self._of: OrderedDict[int, tuple[Path, Connection, Stamp]] = OrderedDict()
        self._parents: list[object] = []

    def take(self, store: int, path: Path) -> Connection | None:
        """The connection of this store, which is the taker's from now on; None if the file is not as it was left."""
        with self._lock:
            found = self._of.pop(store, None)
        if found is None:
            return None
        _, connection, stamp = found
        if stamp == stamp_of(path):
            return connection
        _close(connection)
        return None

    def put(self, store: int, path: Path, connection: Connection, before: Stamp | None) -> None:
        """Keep a connection on which nothing is going on, to the file that was there `before` it was opened or taken.

        The number of a file that is open is given to no other: the same number now is the same file.
        """
        stamp = stamp_of(path)
        if stamp is None or before is None or stamp[:2] != before[:2]:
            _close(connection)
            return
        with self._lock:
            over = [self._of.pop(store)] if store in self._of else []
            self._of[store] = path, connection, stamp
            while len(self._of) > MOST:
                over.append(self._of.popitem(last=False)[1])
        for place, one, left in over:
            _close(one, whole=left == stamp_of(place))

    def drop(self, store: int) -> None:
        """Close what this store has here."""
        with self._lock:
            found = self._of.pop(store, None)
        if found is not None:
            _close(found[1], whole=found[2] == stamp_of(found[0]))

    def drop_all(self) -> None:
        """Close all: the process ends."""
        for store in list(self._of):
            self.drop(store)

    def in_child(self) -> None:
        """What a parent opened is held on to, unused, so that nothing closes it."""
        self._parents.append(self._of)
        self._of, self._lock = OrderedDict(), threading.RLock()


def _close(connection: Connection, *, whole: bool = False) -> None:
    """Give it back; where the file is `whole` as it was left, its journal goes too, and one file lies there at rest."""
    with suppress(SQLAlchemyError, sqlite3.Error):
        if whole:
            driver(connection).execute("PRAGMA journal_mode = DELETE")
    with suppress(SQLAlchemyError):
        connection.close()


kept = _Kept()
atexit.register(kept.drop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=kept.in_child)
