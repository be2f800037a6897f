"""Lines of text as records: one line in, one record out, whatever its bytes.

A record that is not what the header promises (another number of fields, a quote where none may stand, more than
16 MiB) is missing in all its columns, and so is a field that is not UTF-8; no other line is touched by it. Line breaks
inside quotes are read only if that was declared: otherwise a quote that is never closed would swallow the lines of
others. Quotes stand around a whole field, and double inside of it. An empty field is missing, and an empty line is a
record that misses everything: where the number of records is public, no line may hide or add one.

Whole blocks are taken apart by comparisons of bytes, without a loop over lines: a field is bounded by two places, and
Arrow gathers what lies between them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tacit.sources.opening.careful import careful
from tacit.sources.opening.encodings import opened

__all__ = ["fields_of", "header", "header_line", "records"]

BLOCK = 8 << 20
LONGEST = 16 << 20
"""A longer line is a missing record: it would have to be held whole."""
HEADER = 1 << 20
WRONG = b'"a"b\n'
"""A record that no header allows."""
NEWLINE, RETURN, QUOTE = 10, 13, 34


def header_line(path: str, encoding: str | None = None) -> str:
    """The first line of the file, and nothing behind it."""
    with opened(path, encoding) as file:
        line = file.readline(HEADER)
        # What is behind the limit would be read as the first record.
        if len(line) == HEADER and not line.endswith(b"\n") and file.read(1):
            raise ValueError
    # A return alone ends no line, not even the only one: the first row would decide whether there is a header.
    text: str = line.decode("utf-8-sig").removesuffix("\r\n").removesuffix("\n")
    if any(c in text for c in "\r\0"):
        raise ValueError
    return text


def fields_of(line: str, mark: str) -> list[str]:
    """The fields of a header; a column without a name (row names of R and pandas) has an empty one."""
    names = next(csv.reader([line], delimiter=mark, strict=True), [])
    if not any(names):
        raise ValueError
    return names


def header(path: str, mark: str, encoding: str | None = None) -> list[str]:
    """The column names."""
    return fields_of(header_line(path, encoding), mark)


def records(
    path: str,
    names: Sequence[str],
    wanted: Sequence[str],
    *,
    mark: str,
    multiline: bool = False,
    encoding: str | None = None,
) -> Iterator[Any]:
    """The wanted columns of all records as text, in Arrow batches."""
    columns = {name: list(names).index(name) for name in wanted}
    with opened(path, encoding) as file:
        file.readline(HEADER)
        for block in _blocks(file, multiline):
            yield _batch(block, len(names), columns, ord(mark), multiline)


def _blocks(file: Any, multiline: bool) -> Iterator[bytes]:
    """Pieces of the file that hold whole records; a record that is too long leaves one that is wrong in its place."""
    held, skipping = b"", False
    while True:
        chunk = file.read(BLOCK)
        end = not chunk
        if skipping and chunk:
            at = chunk.find(b"\n")
            if at < 0:
                continue
            chunk, skipping = chunk[at + 1 :], False
        held += chunk
        if end and held and not held.endswith(b"\n"):
            held += b"\n"
        while True:
            cut, long = _whole(held, multiline)
            if cut:
                yield held[:cut]
                held = held[cut:]
            if not (long or len(held) > LONGEST or (end and held)):
                break
            # A record too long, or a quote left open: its first line is wrong, and what follows begins anew.
            at = held.find(b"\n") + 1
            yield WRONG
            held, skipping = (held[at:], False) if at else (b"", not end)
            if skipping:
                break
        if end:
            return


def _whole(held: bytes, multiline: bool) -> tuple[int, bool]:
    """How much of this is whole records, and whether one that is too long comes next."""
    if not multiline or b'"' not in held:
        return held.rfind(b"\n") + 1, False
    data = np.frombuffer(held, dtype=np.uint8)
    places = np.flatnonzero((data == NEWLINE) | (data == QUOTE))
    quotes = data[places] == QUOTE
    ends = places[~quotes & (np.cumsum(quotes) % 2 == 0)] + 1
    long = np.flatnonzero(np.diff(ends, prepend=0) > LONGEST + 1)
    if len(long):
        return (int(ends[long[0] - 1]) if long[0] else 0), True
    return (int(ends[-1]) if len(ends) else 0), False


def _batch(block: bytes, fields: int, columns: dict[str, int], mark: int, multiline: bool) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    data = np.frombuffer(block, dtype=np.uint8)
    starts, ends, first, count, good = _fields(data, mark, multiline)
    good &= count == fields
    # Places of all fields in one array, with what lies between them: field i is its entry 2 i.
    places = np.empty(2 * len(starts) + 1, dtype=np.int64)
    places[0:-1:2], places[1::2], places[-1] = starts, ends, len(data)
    buffers = [None, pa.py_buffer(places), pa.py_buffer(block)]
    pieces = pa.Array.from_buffers(pa.large_binary(), 2 * len(starts), buffers)
    made = {}
    for name, at in columns.items():
        chosen = pieces.take(pa.array(np.where(good, 2 * (first + at), 0), mask=~good))
        if QUOTE in data:
            chosen = pc.replace_substring(chosen, pattern=b'""', replacement=b'"')
        chosen = pc.if_else(pc.equal(pc.binary_length(chosen), 0), None, chosen)
        kept = pa.Array.from_buffers(pa.large_string(), len(chosen), chosen.buffers(), offset=chosen.offset)
        made[name] = careful(kept).combine_chunks()
    return pa.record_batch(made)


def _fields(data: Any, mark: int, multiline: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Starts and ends of all fields; and of each record its first field, their number, and whether it can be read."""
    places = np.flatnonzero((data == NEWLINE) | (data == mark) | (data == QUOTE))
    kinds = data[places]
    quotes, breaks = kinds == QUOTE, kinds == NEWLINE
    before = np.cumsum(quotes) - quotes
    if not multiline:
        # Quotes are counted from the beginning of each line.
        line = np.cumsum(breaks) - breaks
        before = before - np.concatenate([[0], before[breaks]])[line]
    open_ = before % 2 == 1
    last = breaks if not multiline else breaks & ~open_
    record = np.cumsum(last) - last
    total = int(last.sum())
    wrong = np.zeros(total, dtype=bool)
    if quotes.any():
        wrong[record[last & open_]] = True
        odd, at = open_[quotes], places[quotes]
        left = np.where(at > 0, data[at - 1], NEWLINE)
        right, next_ = data[np.minimum(at + 1, len(data) - 1)], data[np.minimum(at + 2, len(data) - 1)]
        begins = np.isin(left, (mark, NEWLINE, QUOTE))
        finishes = np.isin(right, (mark, NEWLINE, QUOTE)) | ((right == RETURN) & (next_ == NEWLINE))
        wrong[record[quotes][~np.where(odd, finishes, begins)]] = True
    separates = last | (~quotes & ~breaks & ~open_)
    ends = places[separates].copy()
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends.copy()
    owner = record[separates]
    count = np.bincount(owner, minlength=total)
    first = np.cumsum(count) - count
    final = first + count - 1
    # A return before the line break belongs to it.
    tails = ends[final]
    ends[final] = np.where((tails > starts[final]) & (data[tails - 1] == RETURN), tails - 1, tails)
    longest = (tails - starts[first]) > LONGEST
    if quotes.any():
        quoted = (ends > starts) & (data[np.minimum(starts, len(data) - 1)] == QUOTE) & (ends - starts >= 2)
        starts, ends = starts + quoted, ends - quoted
    return starts, ends, first, count, ~wrong & ~longest
