"""CSV and TSV files: text, line by line, until the declared types are given to it, after the charge.

tacit guesses nothing from the lines, neither separators nor types. The header alone is read when the file is opened.
Without a given separator, tacit takes the one under which the header names all declared columns, and of several
the one with the most columns.
"""

from __future__ import annotations

import csv
import functools
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import BadData, UnknownColumn
from tacit.sources import error_boundary
from tacit.sources.facts import MARK, Facts, Opened, Wish
from tacit.sources.opening.files import SEPARATORS, Files
from tacit.sources.opening.frames import plain_column
from tacit.sources.opening.values import open_texts, rewriter

# Bytes of a text file as UTF-8, whatever they were written in; a character that is none stays one bad character.
#
# Encodings are of two sorts. Where a character is one byte, each byte is looked up by itself. In UTF-16 a character
# is one or two units of 16 bits, and a half of a pair is bad by itself. What has no character becomes bytes that are
# no UTF-8, so that the field in which it stands is missing, and no other.

UNITS = "the file is made of whole units of 16 bits (UTF-16): half of one would shift the records behind it"
CHUNK = 1 << 16
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
UTF8 = b"\xef\xbb\xbf"


def opened(path: str, encoding: str | None = None) -> Any:
    """The file as a stream of UTF-8: `read(size)` and `readline(size)`."""
    encoding = encoding or "utf-8"
    file = gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")  # noqa: SIM115
    try:
        first = file.read(3)
        _check(path, encoding, first)
    except BaseException:
        file.close()
        raise
    if encoding == "utf-8":
        file.seek(0)
        return file
    if encoding == "utf-16":
        return _TextStream(file, MARKS[first[:2]], first[2:])
    return _TextStream(file, encoding, first)


def _check(path: str, encoding: str, first: bytes) -> None:
    """The first bytes of a file, which belong to its header and not to a row."""
    marked = "utf-8" if first == UTF8 else "utf-16" if first[:2] in MARKS else ""
    if marked and not encoding.startswith(marked):
        raise BadData(
            source=path, problem=f"begins with the mark of {marked.upper()}, but was declared as {encoding}",
            hint=f'encoding = "{marked}"',
        )  # fmt: skip
    if encoding == "utf-16" and not marked:
        raise BadData(
            source=path, problem="does not begin with the mark of UTF-16, which tells the order of bytes",
            hint='encoding = "utf-16-le", "utf-16-be", or another one',
        )  # fmt: skip


class _TextStream:
    """A file read through its encoding."""

    def __init__(self, file: Any, encoding: str, held: bytes) -> None:
        self._file, self._encoding = file, encoding
        self._raw, self._made, self._ended = held, b"", False
        self._wide = encoding.startswith("utf-16")

    def __enter__(self) -> _TextStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """The next bytes, about this many; empty only at the end of the file."""
        self._more(size)
        made, self._made = self._made, b""
        return made

    def readline(self, size: int) -> bytes:
        """The next bytes up to a line feed, or so many of them."""
        while b"\n" not in self._made and len(self._made) < size and not self._ended:
            held, self._made = self._made, b""
            self._more(CHUNK)
            self._made = held + self._made
        end = min(size, self._made.find(b"\n") + 1 or size)
        line, self._made = self._made[:end], self._made[end:]
        return line

    def _more(self, size: int) -> None:
        while not self._made and not self._ended:
            chunk = self._file.read(size)
            self._ended = not chunk
            self._made = self._decoded(self._raw + chunk)

    def _decoded(self, raw: bytes) -> bytes:
        self._raw = b""
        if not self._wide:
            return raw.decode(self._encoding, "surrogateescape").encode("utf-8", "surrogatepass")
        keep = 0 if self._ended else len(raw) % 2
        if not self._ended and len(raw) - keep >= 2:
            high = raw[len(raw) - keep - (1 if self._encoding == "utf-16-le" else 2)]
            # The first half of a pair waits for the second.
            keep += 2 if 0xD8 <= high <= 0xDB else 0
        whole = len(raw) - keep
        self._raw = raw[whole:]
        odd = whole % 2
        text = raw[: whole - odd].decode(self._encoding, "surrogatepass")
        return text.encode("utf-8", "surrogatepass") + b"\xff" * odd


# Lines of text as records: one line in, one record out, whatever its bytes.
#
# A record that is not what the header promises (another number of fields, a quote where none may stand, more than 16
# MiB) is missing in all its columns, and so is a field that is not UTF-8; no other line is touched by it. Line breaks
# inside quotes are read only if that was declared: otherwise a quote that is never closed would swallow the lines of
# others. Quotes stand around a whole field, and double inside of it. An empty field is missing, and an empty line is
# a record that misses everything: where the number of records is public, no line may hide or add one.
#
# Whole blocks are taken apart by comparisons of bytes, without a loop over lines: a field is bounded by two places,
# and Arrow gathers what lies between them.

BLOCK = 8 << 20
LONGEST = 16 << 20
"""A longer line counts as a missing record, since reading it would need it whole in memory."""
HEADER = 1 << 20
WRONG = b'"a"b\n'
"""A record that no header allows."""
NEWLINE, RETURN, QUOTE = 10, 13, 34


def header_line(path: str, encoding: str | None = None) -> str:
    """The first line of the file; reads no further."""
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
    """Pieces of the file with whole records; a record that is too long is replaced by a wrong one."""
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
    """The length of the whole records in it, and whether the next record is too long."""
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
        made[name] = plain_column(kept).combine_chunks()
    return pa.record_batch(made)


def _fields(data: Any, mark: int, multiline: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Starts and ends of all fields; for each record its first field, the number of its fields, and whether it can be
    read.
    """
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


MULTILINE = "no quote is left open in the file, whose fields may hold line breaks: one would hide the records behind it"
ENDED = "every record of the file ends in a line break: an empty last one of the only column is not counted without it"
PROBLEM = "is not a readable CSV file: it has no header"


def open_text(asked: Files, wish: Wish) -> Opened:
    """The files as one table, which is filled at the first question."""
    states = asked.states()
    paths = tuple(state.path for state in states)
    mark, names = names_in(asked, wish.columns)
    wish.check([name for name in names if name], asked.path)
    conditions: tuple[str, ...] = (MULTILINE,) if asked.multiline else ()
    conditions += (UNITS,) if (asked.encoding or "").startswith("utf-16") else ()
    rewrite = rewriter(asked, wish.schema)

    def batches() -> Iterator[Any]:
        for path in paths:
            found = records(
                str(path), names, wish.columns, mark=mark, multiline=asked.multiline, encoding=asked.encoding
            )
            yield from map(rewrite, found)

    facts = Facts(
        state=states, protected=paths, counted_if="" if len(names) > 1 else ENDED, made_up=MARK in names
    )
    opened = open_texts(batches, wish, source=asked.path, conditions=conditions)
    return replace(opened, facts=facts, now=asked.states)


def names_in(asked: Files, wanted: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The separator and the names of all columns, from the headers alone; an error if a wanted one is missing.

    A column without a name has an empty one.
    """
    paths = asked.found()
    lines = [_line(asked, path) for path in paths]
    mark, names = _separated(asked, lines[0], wanted, tab=paths[0].name.lower().endswith((".tsv", ".tsv.gz")))
    if any(_fields_of_text(line, mark) != names for line in lines[1:]):
        raise BadData(
            source=asked.path,
            problem="is several files whose headers differ",
            hint="write the same columns to all",
        )
    return mark, names


def _line(asked: Files, path: Path) -> str:
    said = asked.encoding or "utf-8"
    hint = f"the first line names the columns, in {said}, and lines end in a line feed"
    if asked.encoding is None:
        hint += '; say which encoding it is in, for example encoding = "latin-1", if it is another one'
    read = functools.partial(header_line, str(path), asked.encoding)
    return error_boundary.metadata(read, source=asked.path, problem=PROBLEM, hint=hint)


def _fields_of_text(line: str, mark: str) -> list[str] | None:
    try:
        return fields_of(line, mark)
    except Exception:
        return None


def _separated(asked: Files, line: str, wanted: Sequence[str], *, tab: bool) -> tuple[str, list[str]]:
    order = ["\t", *SEPARATORS] if tab else list(SEPARATORS)
    readings = [
        (mark, names) for mark in dict.fromkeys(order) if (names := _fields_of_text(line, mark)) is not None
    ]
    fitting = [(mark, names) for mark, names in readings if all(name in names for name in wanted)]
    if asked.separator is not None:
        said = _fields_of_text(line, asked.separator)
        if said is not None and all(name in said for name in wanted):
            return asked.separator, said
        if fitting:
            # The header has the declared names, so that telling its separator tells of nobody.
            right, wrong = (SEPARATORS[mark] for mark in (_widest(fitting)[0], asked.separator))
            raise BadData(
                source=asked.path,
                problem=f"has a header that is separated by {right!r}, not by {wrong!r}",
                hint=f'separator = "{right}", or leave it out: it is found from the header',
            )
        readings = [] if said is None else [(asked.separator, said)]
    if fitting:
        return _widest(fitting)
    if not readings:
        raise BadData(source=asked.path, problem=PROBLEM, hint="the first line names the columns")
    names = _widest(readings)[1]
    absent = next(name for name in wanted if name not in names)
    # What was found is not shown: without a header it is somebody's row.
    raise UnknownColumn(
        column=absent, known=(), where=asked.path, hint="the first line must name the columns"
    )


def _widest(readings: list[tuple[str, list[str]]]) -> tuple[str, list[str]]:
    return max(readings, key=lambda reading: len(reading[1]))
