"""Workbooks of Excel, read with openpyxl (extra `formats`): one sheet, whose first row names the columns.

A sheet has no types, so that every cell is text until the declared types are given to it: a number is written in full,
a day as 2024-01-31, a truth value as true or false; formulas are what they last gave, errors are missing. A row of the
sheet in which no cell has a value is no record, wherever it stands. A cell that cannot be read is missing, alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import BadData, UnknownName
from tacit.sources import door
from tacit.sources.facts import Facts
from tacit.sources.opening import Opened, Wish
from tacit.sources.opening.files import Files
from tacit.sources.opening.frames import text_of_object
from tacit.sources.opening.meaning import rewriter
from tacit.sources.opening.texts import open_texts
from tacit.sources.twins import MARK

__all__ = ["EMPTY", "names_of", "open_workbook"]

EMPTY = (
    "no record of the sheet is without any value: a row in which no cell has one is not counted as a record"
)
PIECE = 20_000
Row = dict[int, str]


def open_workbook(asked: Files, wish: Wish) -> Opened:
    """The sheet as a table, which is filled at the first question."""
    states = asked.states()
    paths = tuple(state.path for state in states)
    heads = [_head(asked, path) for path in paths]
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


def names_of(asked: Files) -> list[str]:
    """All columns, from the first row of the sheet."""
    return [name for name in _head(asked, asked.found()[0]).values() if name]


def _head(asked: Files, path: Path) -> dict[int, str]:
    """The names by place; the first row that has a value, and nothing behind it."""
    found: dict[int, str] = door.metadata(
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
