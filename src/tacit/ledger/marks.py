"""What an answer was made from: a keyed mark of the data, for the custodian alone.

A mark is made inside a release that was charged, kept beside the chain, and never exported. Whether it is that of
the last answer about the same version goes into a line for the custodian, and changes nothing else: one line is
written each time, and all lines that differ in this word alone are of one length.
"""

from __future__ import annotations

import hmac
import os
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tacit.ledger.canonical import canonical, mac
from tacit.ledger.entries import Charge, Entry
from tacit.ledger.statements import change, first
from tacit.ledger.store import DATA

__all__ = ["note_data", "write_line"]

_LAST = (
    sa.select(DATA.c.mark)
    .where(DATA.c.version == sa.bindparam("wanted"))
    .order_by(DATA.c.sequence.desc())
    .limit(1)
)
_NEW = sa.insert(DATA)
FIRST, SAME, OTHER = "seen first", "as before ", "CHANGED   "


def note_data(connection: Connection, secret: bytes, entry: Entry, charge: Charge, digest: str) -> str:
    """Keep the mark of what an answer was made from; returns the custodian's line."""
    version = mac(secret, "version", canonical([charge.table, charge.version]))
    mark = mac(secret, "data", digest)
    last = first(connection, _LAST, {"wanted": version})
    said = FIRST if last is None else SAME if hmac.compare_digest(str(last[0]), mark) else OTHER
    row = {"sequence": entry.sequence, "version": version, "mark": mark, "said": said.strip()}
    change(connection, _NEW, row)
    return f"{entry.body['time']}  entry {entry.sequence}  data {said}  version {charge.version!r}\n"


def write_line(ledger: Path, line: str) -> None:
    """Append a line to the custodian's file beside the ledger."""
    with suppress(OSError):  # an answer that was paid for is not lost for a note
        handle = os.open(f"{ledger}-data", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(handle)
