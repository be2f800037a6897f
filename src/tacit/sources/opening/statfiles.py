"""Files of Stata, SPSS and SAS, read with pyreadstat (extra `formats`).

When a file is opened its metadata are read: names, types, formats, labels. Rows come after the charge, in
pieces. In two cases the reader lets one value decide for all: it stops at text outside of the file's encoding,
and at days outside of Python's calendar. Text is therefore read byte by byte and decoded here, each value by
itself; days arrive as the stored numbers. An unreadable value is missing, and no other value is affected.

A number with labels is its label if the column was declared as a category of words, else the number.

SAS transport files of version 5 do not say how many rows they have. Blanks at their end may be padding, or rows of
people who answered nothing; the reader treats them as padding. So tacit skips a row of blank bytes in any place, and
whether a row counts depends on that row alone. No number of rows is public then (`Facts`).
"""

from __future__ import annotations

import codecs
import contextlib
import datetime
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tacit.errors import BadData, UnknownName
from tacit.exact.data_classes import dataclass
from tacit.sources import error_boundary
from tacit.sources.columns import Category
from tacit.sources.facts import MARK, Facts, Opened, Wish
from tacit.sources.opening.files import Files
from tacit.sources.opening.frames import text_of_object
from tacit.sources.opening.values import open_texts, open_typed, rewriter

CHUNK = 200_000
FIRST, LAST = -719_162, 2_932_896
"""The days of years 1 to 9999, counted from 1970-01-01."""
YEAR_1960, YEAR_1582 = -3653, -141_428
SECONDS = 86_400.0
SPSS_DAYS = ("DATE", "ADATE", "EDATE", "SDATE", "JDATE", "DATETIME", "YMDHMS")
SAS_DAYS = (
    "DATE", "DAY", "DDMMYY", "DDMMYYB", "DDMMYYC", "DDMMYYD", "DDMMYYN", "DDMMYYP", "DDMMYYS", "MMDDYY", "MMDDYYB",
    "MMDDYYC", "MMDDYYD", "MMDDYYN", "MMDDYYP", "MMDDYYS", "YYMMDD", "YYMMDDB", "YYMMDDC", "YYMMDDD", "YYMMDDN",
    "YYMMDDP", "YYMMDDS", "E8601DA", "B8601DA", "IS8601DA", "WEEKDATE", "WEEKDATX", "WORDDATE", "WORDDATX", "MONYY",
)  # fmt: skip
SAS_MOMENTS = ("DATETIME", "E8601DT", "B8601DT", "IS8601DT", "DATEAMPM", "DTDATE")
Read = Callable[..., tuple[Any, Any]]
VERSION_5 = b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!"
BLANK = frozenset(int("20" * n, 16) * 2.0 ** (-8 * n - 128) for n in range(1, 8))
"""Two to eight blanks as a number of SAS: sign and power of 16 in the first byte (0x20 - 64 = -32), then a fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A column as the file has it."""

    raw: str
    text: bool
    whole: bool
    days: tuple[float, int] | None
    labels: dict[float, str]

    def type_for(self, column: Any) -> Any:
        """Its Arrow type, by its type and format in the file and its declaration alone."""
        import pyarrow as pa

        if self.text or self.labelled(column):
            return pa.large_string()
        return pa.date32() if self.days else pa.int64() if self.whole else pa.float64()

    def labelled(self, column: Any) -> bool:
        """Are its labels meant?"""
        return bool(self.labels) and not self.text and isinstance(column, Category) and column.of_words


def open_statistics(asked: Files, wish: Wish) -> Opened:
    """The files as one table, which is filled at the first question."""
    import pyarrow as pa

    states = asked.states()
    paths = tuple(state.path for state in states)
    heads = [_head(asked, path) for path in paths]
    declared = dict(wish.schema.items())
    for columns, _ in heads:
        wish.check(columns, asked.path)
    kinds = [{n: c[n].type_for(declared.get(n)) for n in wish.columns} for c, _ in heads]
    schema = pa.schema([(n, _common({k[n] for k in kinds})) for n in wish.columns])
    padded = {path for path in paths if _padded(path)}

    def batches() -> Iterator[Any]:
        for path, (columns, encoding) in zip(paths, heads, strict=True):
            for chunk in _chunks(path, [columns[n].raw for n in wish.columns], padded=path in padded):
                made = {
                    n: _column(
                        columns[n], declared.get(n), chunk[columns[n].raw], encoding, schema.field(n).type
                    )
                    for n in wish.columns
                }
                yield pa.record_batch(made, schema=schema)

    facts = Facts(
        state=states,
        protected=paths,
        counted=not padded,
        made_up=all(MARK in columns for columns, _ in heads),
    )
    return replace(open_typed(batches, schema, wish, source=asked.path), facts=facts, now=asked.states)


def _common(kinds: set[Any]) -> Any:
    """A type for the values of columns of all these types; text if one of them is text, or only one has days."""
    import pyarrow as pa

    if len(kinds) == 1:
        return next(iter(kinds))
    return pa.float64() if kinds == {pa.int64(), pa.float64()} else pa.large_string()


def columns_of(asked: Files) -> dict[str, Stored]:
    """All columns of the first file, from its metadata."""
    return _head(asked, asked.found()[0])[0]


def names_of(asked: Files) -> list[str]:
    """Their names."""
    return list(columns_of(asked))


def _reader(path: Path) -> Read:
    try:
        import pyreadstat
    except ImportError:
        raise BadData(
            source=str(path), problem="needs pyreadstat to be read", hint="pip install 'tacit[formats]'"
        ) from None
    ending = path.suffix.lower()
    name = {".dta": "read_dta", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}.get(ending, "read_sav")
    read: Read = getattr(pyreadstat, name)
    return read


def _head(asked: Files, path: Path) -> tuple[dict[str, Stored], str]:
    """The columns by name, and the encoding of text."""
    read = _reader(path)

    def known() -> tuple[dict[str, Stored], str]:
        _, meta = read(str(path), metadataonly=True, encoding="LATIN1")
        encoding = asked.encoding or _encoding(asked, path, read)
        columns: dict[str, Stored] = {}
        for raw in meta.column_names:
            kind, form = str(meta.readstat_variable_types[raw]), str(meta.original_variable_types[raw] or "")
            labels = {
                float(value): text
                for value, label in meta.variable_value_labels.get(raw, {}).items()
                if isinstance(value, int | float) and (text := _decoded(str(label), encoding)) is not None
            }
            name = _decoded(raw, encoding) or raw
            if name in columns:
                raise BadData(
                    source=asked.path, problem="has two columns of one name", hint="rename one of them"
                )
            columns[name] = Stored(
                raw=raw, text=kind == "string", whole=kind.startswith("int"), labels=labels,
                days=None if kind == "string" else _days(asked.kind, form),
            )  # fmt: skip
        return columns, encoding

    return error_boundary.metadata(
        known, source=asked.path, problem=f"is not a readable {asked.kind} file",
        hint="is it another kind of file, or was it cut off?",
    )  # fmt: skip


def _encoding(asked: Files, path: Path, read: Read) -> str:
    """The file's encoding by its own record; Stata's by its version."""
    said = ""
    # Names that are not in the file's own encoding stop the reader: they are then taken for UTF-8.
    with contextlib.suppress(Exception):
        said = str(read(str(path), metadataonly=True)[1].file_encoding or "")
    if asked.kind == "Stata":
        with path.open("rb") as file:
            found = re.match(rb"<stata_dta><header><release>(\d+)", file.read(64))
        said = "utf-8" if found and int(found[1]) >= 118 else "cp1252"
    try:
        return codecs.lookup(said or "utf-8").name
    except LookupError:
        raise BadData(
            source=asked.path,
            problem="has text in an unknown encoding",
            hint='encoding = "cp1252"',
        ) from None


def _days(kind: str, form: str) -> tuple[float, int] | None:
    """The unit and the zero of a day in this format; None for other formats."""
    form = form.upper()
    if kind == "Stata":
        form = form.replace("-", "")
        if form.startswith(("%TC",)):
            return SECONDS * 1000, YEAR_1960
        return (1.0, YEAR_1960) if form.startswith(("%TD", "%D")) else None
    base = re.sub(r"[0-9.]*$", "", form)
    if kind == "SPSS":
        return (SECONDS, YEAR_1582) if base in SPSS_DAYS else None
    if base in SAS_MOMENTS:
        return SECONDS, YEAR_1960
    return (1.0, YEAR_1960) if base in SAS_DAYS else None


def _padded(path: Path) -> bool:
    """Is this a transport file whose rows end where the blanks begin? Those of version 8 state their number."""
    if path.suffix.lower() != ".xpt":
        return False
    with path.open("rb") as file:
        return file.read(len(VERSION_5)) == VERSION_5


def _chunks(path: Path, raw: list[str], *, padded: bool) -> Iterator[dict[str, list[Any]]]:
    read, at = _reader(path), 0
    wanted = partial(
        read,
        str(path),
        # Whether a row is blank is a question about all of its columns.
        usecols=None if padded else raw,
        encoding="LATIN1",
        disable_datetime_conversion=True,
        output_format="dict",
    )
    while True:
        chunk, _ = wanted(row_offset=at, row_limit=CHUNK)
        rows = len(chunk[raw[0]]) if raw and raw[0] in chunk else 0
        if rows:
            yield _records(chunk, raw) if padded else chunk
        at += rows
        if rows < CHUNK:
            return


def _records(chunk: dict[str, list[Any]], raw: list[str]) -> dict[str, list[Any]]:
    """The wanted columns of the rows that are not blank in all their bytes."""
    kept = [not all(v == "" or v in BLANK for v in row) for row in zip(*chunk.values(), strict=True)]
    return {name: [v for v, good in zip(chunk[name], kept, strict=True) if good] for name in raw}


def _column(stored: Stored, declared: Any, values: list[Any], encoding: str, kind: Any) -> Any:
    import pyarrow as pa

    if stored.text:
        made: list[Any] = [_decoded(v, encoding) if isinstance(v, str) and v else None for v in values]
    elif stored.labelled(declared):
        made = [stored.labels.get(v) if isinstance(v, int | float) else None for v in values]
    elif stored.days:
        made = [_day(v, *stored.days) for v in values]
    elif stored.whole:
        made = [int(v) if isinstance(v, int | float) and v == v else None for v in values]
    else:
        made = [float(v) if isinstance(v, int | float) else None for v in values]
    if pa.types.is_large_string(kind) and not (stored.text or stored.labelled(declared)):
        # Other files have text there, or labels.
        key = isinstance(declared, Category)
        made = [text_of_object(_as_day(v) if stored.days else v, key=key) for v in made]
    return pa.array(made, kind)


def _as_day(day: int | None) -> datetime.date | None:
    return None if day is None else datetime.date(1970, 1, 1) + datetime.timedelta(days=day)


def _day(value: Any, length: float, zero: int) -> int | None:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    day = math.floor(value / length) + zero
    return day if FIRST <= day <= LAST else None


def _decoded(text: str, encoding: str) -> str | None:
    """The text of bytes that were read as one character each; None if they are not valid text."""
    try:
        return text.encode("latin-1").decode(encoding)
    except UnicodeError:
        return None


# Workbooks of Excel, read with openpyxl (extra `formats`): one sheet, whose first row names the columns.
#
# A sheet has no types, so that every cell is text until the declared types are given to it: a number is written in
# full, a day as 2024-01-31, a truth value as true or false; formulas are what they last gave, errors are missing. A
# row of the sheet in which no cell has a value is no record, wherever it stands. A cell that cannot be read is
# missing, alone.

EMPTY = (
    "no record of the sheet is without any value: a row in which no cell has one is not counted as a record"
)
PIECE = 20_000
Row = dict[int, str]


def open_workbook(asked: Files, wish: Wish) -> Opened:
    """The sheet as a table, which is filled at the first question."""
    states = asked.states()
    paths = tuple(state.path for state in states)
    heads = [_head_of_workbook(asked, path) for path in paths]
    names = [name for name in heads[0].values() if name]
    if any(head != heads[0] for head in heads):
        raise BadData(
            source=asked.path,
            problem="is several files whose headers differ",
            hint="write the same columns to all",
        )
    wish.check(names, asked.path)
    places = {name: place for place, name in heads[0].items() if name in wish.columns}
    rewrite = rewriter(asked, wish.schema)

    def batches() -> Iterator[Any]:
        for path in paths:
            held: list[Row] = []
            for i, row in enumerate(_rows(path, asked)):
                if i:
                    held.append(row)
                if len(held) >= PIECE:
                    yield rewrite(_batch(held, places, wish.columns))
                    held = []
            yield rewrite(_batch(held, places, wish.columns))

    # A sheet does not say how many rows it has: a row without a value is not there, and at the end leaves no gap.
    facts = Facts(
        state=states, protected=paths, counted=False, made_up=all(MARK in head.values() for head in heads)
    )
    opened = open_texts(batches, wish, source=asked.path, conditions=(EMPTY,))
    return replace(opened, facts=facts, now=asked.states)


def names_of_workbook(asked: Files) -> list[str]:
    """All columns, from the first row of the sheet."""
    return [name for name in _head_of_workbook(asked, asked.found()[0]).values() if name]


def _head_of_workbook(asked: Files, path: Path) -> dict[int, str]:
    """The names by place; reads the first row that has a value, and no further."""
    found: dict[int, str] = error_boundary.metadata(
        lambda: next(_rows(path, asked), {}), source=asked.path, problem="is not a readable Excel workbook",
        hint="is it another kind of file? save it as .xlsx",
    )  # fmt: skip
    if not found:
        raise BadData(source=asked.path, problem="has an empty sheet", hint="its first row names the columns")
    return found


def _rows(path: Path, asked: Files) -> Iterator[Row]:
    """The rows that have a value, each as texts by place."""
    with contextlib.ExitStack() as stack:
        book = _opened(path)
        stack.callback(book.close)
        sheet = _sheet(book, asked)
        source = stack.enter_context(sheet._get_source())
        parser = _parser(source, sheet, book)
        from openpyxl.worksheet._reader import ROW_TAG
        from openpyxl.xml.functions import iterparse

        for _, element in iterparse(source):
            if element.tag != ROW_TAG:
                continue
            _, cells = parser.parse_row(element)
            element.clear()
            texts = {c["column"]: t for c in cells if c is not None and (t := _text(c)) is not None}
            if texts:
                yield texts


def _opened(path: Path) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise BadData(
            source=str(path), problem="needs openpyxl to be read", hint="pip install 'tacit[formats]'"
        ) from None
    return openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)


def _sheet(book: Any, asked: Files) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if asked.sheet is None and len(sheets) != 1:
        raise BadData(
            source=asked.path, problem=f"has {len(sheets)} sheets, and none was named", hint='sheet = "..."'
        )
    if asked.sheet is not None and asked.sheet not in sheets:
        raise UnknownName(what="sheet", name=asked.sheet, known=tuple(sheets))
    return next(iter(sheets.values())) if asked.sheet is None else sheets[asked.sheet]


def _parser(source: Any, sheet: Any, book: Any) -> Any:
    from openpyxl.worksheet._reader import WorkSheetParser

    class Total(WorkSheetParser):  # type: ignore[misc]
        """No cell stops it."""

        def parse_cell(self, element: Any) -> Any:
            try:
                return super().parse_cell(element)
            except Exception:
                return None

    return Total(
        source, sheet._shared_strings, data_only=True, epoch=book.epoch, date_formats=book._date_formats,
        timedelta_formats=book._timedelta_formats,
    )  # fmt: skip


def _text(cell: Any) -> str | None:
    value = cell["value"]
    if value is None or cell["data_type"] == "e" or not isinstance(cell["column"], int):
        return None
    return text_of_object(value) or None


def _batch(rows: list[Row], places: dict[str, int], columns: tuple[str, ...]) -> Any:
    import pyarrow as pa

    return pa.record_batch(
        {n: pa.array([row.get(places[n]) for row in rows], pa.large_string()) for n in columns}
    )
