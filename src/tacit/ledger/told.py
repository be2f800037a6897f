"""What a database says when it fails, in one sentence of ours each: no values, no passwords, no tracebacks."""

from __future__ import annotations

import sqlite3

from sqlalchemy import exc

from tacit.errors import LedgerCorrupt, LedgerError, LedgerLocked
from tacit.ledger.queue import Late

__all__ = ["IN_DOUBT", "as_ledger_error", "busy", "passing"]

IN_DOUBT = "the charge may have been recorded, and then it stands: see `tacit ledger show`"

_LOCKED = (LedgerLocked, "is in use by another process", "try again, or wait longer with wait_seconds")
_READ_ONLY = (LedgerError, "is read-only", "nothing can be charged here; make it writable first")
_FULL = (LedgerError, "cannot grow: the disk is full", "make room; nothing was charged")
_ABSENT = (LedgerError, "cannot be opened", "check that it exists and that you may read it")
_NO_LEDGER = (LedgerError, "is not a ledger", "give the file or the URL that a ledger was created with")
_DAMAGED = (
    LedgerCorrupt,
    "is damaged",
    "restore it from a backup; what was charged since then stays charged",
)
_IO = (LedgerError, "could not be read or written", "check the disk")
_LOST = (LedgerError, "cannot be reached", "check that the server runs and lets you in")

_SQLITE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_CANTOPEN: _ABSENT,
    sqlite3.SQLITE_PERM: _ABSENT,
    sqlite3.SQLITE_NOTADB: _NO_LEDGER,
    sqlite3.SQLITE_ERROR: _NO_LEDGER,  # no such table, no such column
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: _DAMAGED,  # the next sequence number is taken already
    sqlite3.SQLITE_IOERR: _IO,
}
_AGAIN = ("40001", "40P01")  # could not serialise; deadlock
_POSTGRES = {
    "55P03": _LOCKED,
    "57014": _LOCKED,
    "40001": _LOCKED,
    "40P01": _LOCKED,
    "25006": _READ_ONLY,
    "42501": (
        LedgerError,
        "cannot be used: the server does not allow it",
        "ask for the right to write to it",
    ),
    "53100": _FULL,
    "42P01": _NO_LEDGER,
    "42703": _NO_LEDGER,
    "23505": _DAMAGED,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}


def as_ledger_error(problem: BaseException, name: str, *, committing: bool = False) -> LedgerError:
    """The error of ours for one of the driver's; the driver's own text is not repeated."""
    if isinstance(problem, Late):
        return LedgerLocked(ledger=name, reason=_LOCKED[1], hint=_LOCKED[2])
    if isinstance(problem, exc.SQLAlchemyError) and not isinstance(problem, exc.DBAPIError):
        return LedgerError(ledger=name, reason=_LOST[1], hint=_LOST[2])
    original = getattr(problem, "orig", None) or problem
    kind: type[LedgerError]
    if isinstance(original, sqlite3.Error):
        code = _code(original)
        kind, reason, hint = _SQLITE.get(code, _IO)
        settled = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)
    else:
        state = getattr(original, "sqlstate", None)
        kind, reason, hint = _POSTGRES.get(state or "", _LOST)
        settled = state is not None
    in_doubt = committing and not settled
    told = kind(ledger=name, reason=reason, hint=IN_DOUBT if in_doubt else hint)
    if in_doubt:
        told.mark_charged()
    return told


def busy(problem: BaseException) -> bool:
    """Does SQLite say that somebody else is reading or writing?"""
    original = getattr(problem, "orig", None) or problem
    return isinstance(original, sqlite3.Error) and _code(original) == sqlite3.SQLITE_BUSY


def passing(problem: BaseException) -> bool:
    """Does the database say that a transaction came to nothing, and may be tried again?"""
    original = getattr(problem, "orig", None) or problem
    return busy(problem) or getattr(original, "sqlstate", None) in _AGAIN


def _code(problem: sqlite3.Error) -> int:
    return getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
