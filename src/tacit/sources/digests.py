"""A digest that changes when the data change, so that a repeated question can be answered from the record.

The digest is keyed with the curator's secret: an unkeyed one would let anybody test a guess of a whole small
table. It belongs to the ledger and is never published. Privacy does not rest on it: an unchanged digest gives
an answer that was already paid for, a changed one asks for a new payment.

- Files up to 64 MiB: all bytes.
- Larger files: the size, the time of the last change, the first MiB, the last MiB (in a Parquet file the footer,
  with the place, size and statistics of every column chunk) and 64 blocks of 64 KiB in between. While a table is open,
  they are read again only if the size or the time has changed.
- Frames and engine tables: the number of rows and two order-free sums over a hash of each row, in the engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tacit.sources.engines import Engine

__all__ = ["keyed", "of_files", "of_table", "words"]

WHOLE = 64 << 20
EDGE = 1 << 20
BLOCK = 64 << 10
BLOCKS = 64


def keyed(key: bytes, purpose: str) -> Any:
    """A keyed hash for one purpose, so that no two uses of the key meet."""
    return hashlib.blake2b(key=hashlib.sha256(key).digest(), person=purpose.encode()[:16], digest_size=32)


def words(key: bytes, purpose: str, count: int) -> list[int]:
    """Whole numbers below 2^62 derived from the key, to be mixed into hashes in the engine."""
    out = []
    for i in range(count):
        state = keyed(key, purpose)
        state.update(i.to_bytes(4, "big"))
        out.append(int.from_bytes(state.digest()[:8], "big") >> 2)
    return out


def of_files(paths: Iterable[Path], key: bytes, declared: str) -> str:
    """The digest of files, in their given order."""
    state = keyed(key, "tacit files")
    state.update(declared.encode())
    for path in paths:
        stat = path.stat()
        state.update(stat.st_size.to_bytes(8, "big"))
        with path.open("rb") as file:
            if stat.st_size <= WHOLE:
                while chunk := file.read(1 << 20):
                    state.update(chunk)
                continue
            state.update(stat.st_mtime_ns.to_bytes(12, "big", signed=True))
            state.update(file.read(EDGE))
            stride = (stat.st_size - 2 * EDGE) // BLOCKS
            for i in range(BLOCKS):
                file.seek(EDGE + i * stride)
                state.update(file.read(BLOCK))
            file.seek(-EDGE, 2)
            state.update(file.read(EDGE))
    return str(state.hexdigest())


def of_table(table: Any, columns: Sequence[str], key: bytes, declared: str, *, engine: Engine) -> str:
    """The digest of an engine table, in one pass in the engine; the order of rows does not matter."""
    first, second = words(key, "tacit rows", 2)
    columns = sorted(columns)
    hashed = table.select(
        a=engine.row_hash(table, columns, first) % (1 << 31),
        b=engine.row_hash(table, list(reversed(columns)), second) % (1 << 31),
    )
    totals = hashed.aggregate(n=hashed.count(), a=hashed.a.sum(), b=hashed.b.sum())
    row = next(r for batch in engine.batches(totals)() for r in batch.to_pylist())
    state = keyed(key, "tacit table")
    state.update(declared.encode())
    state.update(repr((row["n"], int(row["a"] or 0), int(row["b"] or 0))).encode())
    return str(state.hexdigest())
