"""CSV and TSV files: text, line by line, until the declared types are given to it, after the charge.

Nothing is guessed from the lines: neither marks nor types. The header alone is read when the file is opened. Where the
separator is not said, it is the one under which the header names all declared columns; of several, the one that gives
the most columns.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import BadData, UnknownColumn
from tacit.sources import door
from tacit.sources.facts import Facts
from tacit.sources.opening import Opened, Wish
from tacit.sources.opening.encodings import UNITS
from tacit.sources.opening.files import Files
from tacit.sources.opening.lines import fields_of, header_line, records
from tacit.sources.opening.meaning import rewriter
from tacit.sources.opening.texts import open_texts
from tacit.sources.opening.words import SEPARATORS
from tacit.sources.twins import MARK

__all__ = ["ENDED", "MULTILINE", "names_in", "open_text"]

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
    """The separator and the names of all columns, from the headers alone; an error where a wanted one is not there.

    A column without a name has an empty one.
    """
    paths = asked.found()
    lines = [_line(asked, path) for path in paths]
    mark, names = _separated(asked, lines[0], wanted, tab=paths[0].name.lower().endswith((".tsv", ".tsv.gz")))
    if any(_fields(line, mark) != names for line in lines[1:]):
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
    return door.metadata(read, source=asked.path, problem=PROBLEM, hint=hint)


def _fields(line: str, mark: str) -> list[str] | None:
    try:
        return fields_of(line, mark)
    except Exception:
        return None


def _separated(asked: Files, line: str, wanted: Sequence[str], *, tab: bool) -> tuple[str, list[str]]:
    order = ["\t", *SEPARATORS] if tab else list(SEPARATORS)
    readings = [(mark, names) for mark in dict.fromkeys(order) if (names := _fields(line, mark)) is not None]
    fitting = [(mark, names) for mark, names in readings if all(name in names for name in wanted)]
    if asked.separator is not None:
        said = _fields(line, asked.separator)
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
