"""A plan to begin with: from the header or the metadata of a file, and from answers; no row is read.

    print(tacit.suggest("survey.csv", person="id", at_most=3, epsilon=1, schema={"age": tacit.integer(0, 120)}).text)

Asks for everything that a header does not show: who is protected, bounds, keys, the budget. An unanswered question
stays in the plan as a comment. Values never fill it in.
"""

from __future__ import annotations

import datetime
import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn

from tacit.curator.charging import Number as Paid
from tacit.curator.charging import price
from tacit.curator.curator import Curator, whole
from tacit.curator.planning import Plan, Planned
from tacit.curator.release import Releases
from tacit.curator.request import RESERVED, Query, folded, query
from tacit.curator.text import digits
from tacit.errors import EmptyComposition, InvalidParameter, UnknownColumn, UnknownName, visible
from tacit.exact.canonical import formerly
from tacit.exact.checks import instance
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.guarantees import people as people_unit
from tacit.ledger import looked
from tacit.sources.columns import Category, Column, Date, Flag, Integer, Measured
from tacit.sources.error_boundary import tell
from tacit.sources.expressions import And, Compare, Expression, IsIn, IsMissing, Not, Or
from tacit.sources.headings import Heading, headings, looks_like_a_row
from tacit.sources.opening.files import Files
from tacit.sources.proposing import (
    CellsSeen,
    ColumnSeen,
    PeopleSeen,
    TextSeen,
    as_text,
    cells_seen,
    column_seen,
    encoding_proposed,
    is_text,
    people_seen,
    proposed,
    stored_names,
    texts_of,
)
from tacit.sources.query import Aggregation
from tacit.sources.schema import Schema, category, date, integer, number, schema_to_tables
from tacit.sources.tables import Table, people_of
from tacit.statistics import proportion

# Notes for the custodian's eyes only: each is one line, and each line says so.

MARK = "NOT FOR PUBLICATION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One observation for the custodian. `what` is a stable word for programs; `attention` marks a loss.

    Sentences may contain values of people, so their control characters are spelled out.
    """

    about: str
    what: str
    sentence: str
    attention: bool = False
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The note as plain values."""
        return {
            "mark": MARK.lower(), "about": self.about, "what": self.what, "attention": self.attention,
            "sentence": self.sentence, "numbers": dict(self.numbers),
        }  # fmt: skip

    record = formerly("record")

    def __str__(self) -> str:
        sign = "!" if self.attention else " "
        return visible(f"{MARK} | {sign} {self.about}: {self.sentence}")


# What was seen, in words: shares against the declarations, means before and after, cells against errors.

MUCH = 0.01
"""From this share of the rows on a loss is marked for attention."""
LONGEST = 60


def share(part: int, of: int) -> str:
    """A share of all rows, for people: 0 means none, and a small share is never rounded to 0."""
    if not of or not part:
        return "none"
    return f"{part / of:.1%}" if part / of >= 0.001 else "less than 0.1%"


def column_notes(column: Column, seen: ColumnSeen, text: TextSeen | None) -> Iterator[Note]:
    """The notes about one declared column."""
    rows, name = seen.rows, seen.name
    read = rows - seen.missing
    bare = rows - (text.texts if text is not None else read)
    unread = rows - bare - read
    none = "no row is without a value" if not bare else f"{share(bare, rows)} of the rows have no value"
    yield _note(name, "missing", bare, rows, none)
    if unread > 0:
        what = "date" if isinstance(column, Date) else "flag" if isinstance(column, Flag) else "number"
        told = (
            f"{share(unread, rows)} of the rows have a text that parses as no {what}: they count as missing"
        )
        yield _note(name, "unreadable", unread, rows, told)
    if text is not None:
        for one in proposed(column, text, read):
            yield Note(about=name, what="setting", attention=True, sentence=f"{one.reason}: try {one.words}")
    if isinstance(column, Category):
        yield from _keys(column, seen)
    elif isinstance(column, Measured) and column.bounded and not isinstance(column, Flag):
        yield from _bounds(column, seen, read)


def _keys(column: Category, seen: ColumnSeen) -> Iterator[Note]:
    if column.values is None:
        return
    rows = seen.rows
    if seen.outside:
        named = "; ".join(_out_of_domain(word, n, rows, column) for word, n in seen.out_of_domain)
        told = f"{share(seen.outside, rows)} of the rows are outside of the declared keys: {named}"
        yield Note(
            about=seen.name, what="outside keys", attention=True, sentence=told,
            numbers={"rows": seen.outside, "share": seen.outside / rows, "strangers": dict(seen.out_of_domain)},
        )  # fmt: skip
    else:
        yield Note(about=seen.name, what="outside keys", sentence="no row is outside of the declared keys")
    if seen.unused:
        told = f"{seen.unused:,} of the {len(column.values):,} declared keys occur in no row"
        yield Note(
            about=seen.name, what="unused keys", attention=bool(seen.outside), sentence=told,
            numbers={"keys": seen.unused},
        )  # fmt: skip


def _out_of_domain(word: str, count: int, rows: int, column: Category) -> str:
    shown = word if len(word) <= LONGEST else word[:LONGEST] + "..."
    known = [str(v) for v in column.values or ()]
    folded = {v.strip().casefold(): v for v in known}
    near = folded.get(word.strip().casefold())
    if near is None:
        # Long lists are compared with what begins alike: comparing all would take longer than reading.
        some = known if len(known) <= 2000 else [v for v in known if v[:1] == word[:1]][:2000]
        near = next(iter(difflib.get_close_matches(word, some, n=1, cutoff=0.7)), None)
    meant = f", declared is {near!r}" if near is not None else ""
    return f"{shown!r} ({share(count, rows)}{meant})"


def _bounds(column: Measured, seen: ColumnSeen, read: int) -> Iterator[Note]:
    rows, out = seen.rows, seen.below + seen.above
    does = "clamped" if column.outside == "clamp" else "counted as missing"
    if out:
        told = (
            f"{share(out, rows)} of the rows are outside of the declared bounds and are {does}: "
            f"{share(seen.below, rows)} below, {share(seen.above, rows)} above"
        )
        if out == read:
            told += "; the bounds cut everything off"
        yield _note(seen.name, "outside bounds", out, rows, told)
    else:
        yield Note(
            about=seen.name, what="outside bounds", sentence="no row is outside of the declared bounds"
        )
    if seen.mean is None or (not out and not (column.fill is not None)):
        return
    before, after = _value(column, seen.mean), _value(column, seen.clamped_mean)
    yield Note(
        about=seen.name, what="clamped mean", attention=out >= MUCH * rows,
        sentence=f"the mean of the stored values is {before}, and of the declared ones {after}",
        numbers={"mean": seen.mean, "as_declared": seen.clamped_mean},
    )  # fmt: skip


def _value(column: Measured, value: float | None) -> str:
    if value is None:
        return "none"
    if isinstance(column, Date):
        try:
            return str(column.label(round(value)))
        except (OverflowError, ValueError):
            return "no day of the calendar"
    return digits(value)


def people_notes(unit: Unit, seen: PeopleSeen) -> Iterator[Note]:
    """The notes about rows a person."""
    who = people_of(unit)
    assert who is not None
    each = (seen.rows - seen.nobody) / seen.people if seen.people else 0.0
    told = f"{seen.people:,} people with {each:.2f} rows each on average, at most {seen.most:,}"
    yield Note(
        about=who.column, what="rows a person", sentence=told,
        numbers={"people": seen.people, "most": seen.most, "mean": each},
    )  # fmt: skip
    lost = f"{share(seen.dropped, seen.rows)} of the rows are beyond the declared {who.at_most} a person"
    told = f"{lost} and are not used; {share(seen.beyond, seen.people)} of the people have more"
    yield _note(who.column, "beyond the limit", seen.dropped, seen.rows, told)
    if seen.most < who.at_most:
        told = f"nobody has as many rows as the declared {who.at_most}: the noise is larger than it need be"
        yield Note(about=who.column, what="limit not reached", sentence=told, numbers={"most": seen.most})
    if seen.nobody:
        told = f"{share(seen.nobody, seen.rows)} of the rows name nobody and are not used"
        yield _note(who.column, "nobody", seen.nobody, seen.rows, told)


def cells_notes(planned: Planned, seen: CellsSeen) -> Iterator[Note]:
    """The notes about the cells of one release, against the error that the plan will have."""
    name, within = planned.name, planned.expected.within
    total = planned.question.cells
    empty = "" if total is None else f", {max(total - seen.occupied, 0):,} of {total:,} are empty"
    if not seen.occupied:
        told = "no row falls into any cell, so the release would be empty"
        yield Note(about=name, what="cells", attention=True, sentence=told, numbers={"occupied": 0})
        return
    smallest = "; ".join(f"{label[:LONGEST]} ({n:,})" for label, n in seen.smallest)
    yield Note(
        about=name, what="cells", attention=total is not None and seen.occupied < total,
        sentence=f"{seen.occupied:,} {'cell holds' if seen.occupied == 1 else 'cells hold'} {seen.of}{empty}; "
        f"the smallest: {smallest}",
        numbers={"occupied": seen.occupied, "cells": total, "smallest": [n for _, n in seen.smallest]},
    )  # fmt: skip
    if within is None:
        return
    error = f"± {digits(within)} at {planned.expected.confidence:.0%}"
    if not planned.question.statistic.whole:
        yield Note(
            about=name, what="error", sentence=f"a cell errs within {error}", numbers={"within": within}
        )
        return
    small = sum(1 for n in seen.sizes if n <= within)
    told = f"{small:,} of {seen.occupied:,} cells are not larger than their error, {error}"
    yield Note(
        about=name, what="cells below the error", attention=small > 0, sentence=told,
        numbers={"cells": small, "within": within},
    )  # fmt: skip


def _note(about: str, what: str, part: int, of: int, sentence: str) -> Note:
    ratio = part / of if of else 0.0
    return Note(
        about=about,
        what=what,
        attention=ratio >= MUCH,
        sentence=sentence,
        numbers={"rows": part, "share": ratio},
    )


# For the custodian's eyes only: what the declarations of a plan lose of the data at hand.
#
#     found = tacit.inspect(survey, survey.preview(tacit.count(by="state"), epsilon=0.5))
#     print(found)                      # every line is marked as not for publication
#     found.write("seen.txt")           # readable by its owner alone
#
# Anybody who has looked may have fitted bounds, keys and bins to the data. So the ledger has an entry before a row is
# read, and certificates of plans that are younger than it say so (`tacit.ledger.looks`). What was found goes into no
# ledger, certificate or report. `inspect_privately` pays for noisy shares instead, as any release does, and leaves no
# such mark.


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The observations, as notes: true numbers about people, to be printed or written privately, and not pickled."""

    notes: tuple[Note, ...] = field(repr=False)
    entry: int

    @property
    def lines(self) -> tuple[str, ...]:
        """Every note as a line that says that it is not for publication."""
        last = f"the ledger has entry {self.entry}: certificates of later plans will state the look"
        return (*(str(n) for n in self.notes), f"{MARK} | {last}")

    @property
    def attention(self) -> tuple[Note, ...]:
        """The notes about losses."""
        return tuple(n for n in self.notes if n.attention)

    def to_dict(self) -> dict[str, Any]:
        """The plan's fields as plain values."""
        return {"not_for_publication": True, "entry": self.entry, "notes": [n.to_dict() for n in self.notes]}

    record = formerly("record")

    def write(self, path: str | os.PathLike[str]) -> Path:
        """The lines in a new file that only its owner can read."""
        place = Path(path)
        body = "".join(f"{line}\n" for line in self.lines).encode("utf-8", "backslashreplace")
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise InvalidParameter(
                parameter="out", value=str(place), must="be a new file in a folder that can be written to",
                hint=(problem.strerror or "").lower(),
            ) from None  # fmt: skip
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(body)
        except OSError as problem:
            place.unlink(missing_ok=True)
            raise InvalidParameter(
                parameter="out", value=str(place), must="be writable", hint=(problem.strerror or "").lower()
            ) from None
        return place

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "observations about people are not pickled; write() makes a file that only you can read"
        )


def inspect(curator: Curator, plan: Plan | None = None) -> Inspection:
    """The loss of data by the declarations, and the sizes of cells against the errors of the plan.

    For the custodian with the data at hand. The ledger must be one that lasts. It records the look before a row
    is read. A ledger refuses looks by everybody who asks paid questions (`tacit.ledger.looks`): they get plans,
    or refusals, by declarations alone.
    """
    instance("curator", curator, Curator, must="be a Curator", hint="tacit.inspect(survey, plan)")
    if plan is not None:
        whole(plan)
        if plan.schema != curator.schema or plan.unit != curator.unit:
            raise InvalidParameter(
                parameter="plan", value=plan.digest[:12], must="be made for this schema and unit"
            )
    table = curator._open()
    ledger = curator._resolver.for_looking(table.facts)
    entry = looked(ledger, analyst=curator.analyst, table=curator._resolver.table, version=curator.version)
    return Inspection(notes=tuple(_notes(curator, table, plan)), entry=entry.sequence)


def _notes(curator: Curator, table: Table, plan: Plan | None) -> Iterator[Note]:
    names, steps = list(table.schema), len(table.schema) + 2
    texts: dict[str, TextSeen] = {}
    data, options = curator._data, curator._options
    if is_text(data):
        there = stored_names(data)
        typed = [n for n in names if n in there and not isinstance(table.schema[n], Category)]
        tell("looking at the file's text", 0, steps)
        for one in encoding_proposed(data):
            yield Note(
                about="the file", what="setting", attention=True, sentence=f"{one.reason}: try {one.words}"
            )
        if typed:
            with as_text(data, typed, unit=curator.unit, **options) as bare:
                texts = texts_of(bare, typed)
    rows = 0
    for at, name in enumerate(names, 1):
        tell(f"looking at {name}", at, steps)
        seen = column_seen(table, name)
        rows = seen.rows
        if at == 1:
            yield Note(
                about="the table", what="rows", sentence=f"{seen.rows:,} rows", numbers={"rows": seen.rows}
            )
        yield from column_notes(table.schema[name], seen, texts.get(name))
    tell("looking at people", steps - 1, steps)
    people = people_seen(table)
    if people is not None:
        yield from people_notes(table.unit, people)
    tell("looking at cells", steps, steps)
    for planned in plan.releases if plan is not None else ():
        requests = [r for r in planned.question.requests if isinstance(r, Aggregation)]
        cells = cells_seen(table, requests[0], rows=rows, shown=planned.question.axes) if requests else None
        if cells is not None:
            yield from cells_notes(planned, cells)


# What the declarations lose, paid for: noisy shares of rows outside of keys and bounds, or without a value.
#
# An ordinary plan, charged before a row is read, over a schema of its own in which nothing is clamped: columns
# without bounds or keys can be filtered by. What comes out is a release like any other, and nobody has seen the data.

LONGEST_PRIVATE = 60
"""The number of letters of a column's name in the name of its release."""


def inspect_privately(
    curator: Curator,
    *,
    epsilon: Paid | None = None,
    delta: Paid | None = None,
    rho: Paid | None = None,
    mu: Paid | None = None,
    rows: int | None = None,
) -> Releases:
    """Noisy shares of the rows that each declaration loses, for one price; charged to the curator's ledger.

    `rows` is a public guess of the number of rows, for the expected errors.
    """
    instance(
        "curator", curator, Curator, must="be a Curator", hint="tacit.inspect_privately(survey, epsilon=0.1)"
    )
    if epsilon is None and rho is None and mu is None:
        raise InvalidParameter(
            parameter="epsilon", value=None, must="be given: there is no default price",
            hint="or rho, or mu; `inspect` without --private shows exact numbers and records the look",
        )  # fmt: skip
    # What is made of other columns would be made of columns without their declarations: it is left out.
    stored = {name: column for name, column in curator.schema.items() if not column.derived}
    asks = [
        a for word, (name, column) in zip(_release_names(stored), stored.items(), strict=True)
        for a in _asks(word, name, column, rows)
    ]  # fmt: skip
    if not asks:
        raise EmptyComposition(
            what="the list of declarations that can lose a row", hint="declare bounds or keys"
        )
    plain = Curator(
        curator._data, protect=curator.unit, schema=Schema({n: _bare(c) for n, c in stored.items()}),
        budget=curator.budget, ledger=curator._resolver.for_charging(), table=curator._resolver.table,
        version=curator.version, analyst=curator.analyst, source=curator._source, **curator._options,
    )  # fmt: skip
    try:
        return plain.release(asks, epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    finally:
        # The ledger is the caller's: only the engine is given back.
        if plain._table is not None:
            plain._table.close()


def _bare(column: Column) -> Column:
    """The column without the declaration under inspection: nothing is clamped, replaced or left out."""
    if isinstance(column, Flag):
        return Flag()
    if isinstance(column, Date):
        return date(datetime.date.min, datetime.date.max)
    if isinstance(column, Category):
        return category() if column.of_words else integer()
    return integer() if isinstance(column, Integer) else number()


def _release_names(names: Iterable[str]) -> Iterator[str]:
    """A word for each column that a release can be named by: a column may have a name that no file can."""
    taken: set[str] = set()
    for name in names:
        base = re.sub(r"[^\w .-]", "_", name)[:LONGEST_PRIVATE].strip(" .") or "column"
        if folded(base).split(".")[0] in RESERVED:
            base = base.replace(".", "_")
        word, number = base, 2
        while folded(word) in taken:
            word, number = f"{base} {number}", number + 1
        taken.add(folded(word))
        yield word


def _asks(word: str, name: str, column: Column, rows: int | None) -> Iterator[Query]:
    outside = _outside(name, column)
    if outside is not None:
        # Of all rows: those without a value are not outside.
        there = And(parts=(Not(inner=IsMissing(column=name)), outside))
        yield query(proportion(there), name=f"{word} outside", rows=rows)
    yield query(proportion(IsMissing(column=name)), name=f"{word} missing", rows=rows)


def _outside(name: str, column: Column) -> Expression | None:
    if isinstance(column, Category):
        return None if column.values is None else Not(inner=IsIn(column=name, values=column.values))
    if not isinstance(column, Measured) or isinstance(column, Flag) or not column.bounded:
        return None
    low, high = column.low, column.high  # type: ignore[attr-defined]
    ends = (low.isoformat(), high.isoformat()) if isinstance(column, Date) else (low, high)
    below = Compare(column=name, operator="<", value=ends[0])
    return Or(parts=(below, Compare(column=name, operator=">", value=ends[1])))


# The lines of a plan that begins: TOML that parses, whatever characters a header has, and comments that ask.

BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
QUESTIONS = {
    "number": ["low = ...                 # a lower limit, by the meaning of the column",
               "high = ...                # what nobody is above"],
    "integer": ["low = ...                 # a lower limit, by the meaning of the column",
                "high = ...                # what nobody is above"],
    "date": ['low = "..."               # the first day that counts', 'high = "..."              # the last day'],
    "category": ['keys = ["..."]            # the public list of its values; without it keys cost delta'],
    "flag": [],
}  # fmt: skip


def toml_string(text: str) -> str:
    """A text in TOML's quotes; control characters and marks of writing direction are escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain)


def toml_key(name: str) -> str:
    """A name as TOML writes it."""
    return name if BARE.fullmatch(name) else toml_string(name)


def header_lines(name: str) -> list[str]:
    """The first lines of the file."""
    return [
        f"# A plan for {visible(name)}, from its header or metadata alone: no row was read.",
        "# Answer what is commented out, then: tacit plan (price and error), tacit release (values and report).",
        "",
    ]


def schema_lines(
    found: Sequence[Heading],
    tables: Mapping[str, Mapping[str, Any]],
    *,
    skipped: set[str],
    unanswered: list[str],
) -> list[str]:
    """The declared columns, and the others as comments."""
    lines = [
        "# Columns. Undeclared columns are not read. Bounds and keys come from what a column means, never from its",
        "# values: they are public, and whatever lies outside of them is clamped or counted as missing.",
    ]
    for one in found:
        if one.name in skipped and one.name not in tables:
            continue
        if one.name in tables:
            lines.append(f"[schema.{toml_key(one.name)}]")
            lines += [f"{word} = {toml_value(value)}" for word, value in tables[one.name].items()]
        else:
            kind = one.kind or "category"
            flag = f"--{kind}" if one.kind else "--category, --number, --integer, --date or --flag"
            unanswered.append(f"{flag} {visible(one.name)}")
            guess = "" if one.kind else "       # or number, integer, date, flag"
            lines.append(f"# [schema.{toml_key(one.name)}]  # stored as {visible(one.stored)}")
            lines.append(f'# kind = "{kind}"{guess}')
            asked = [f"keys = {toml_value(list(one.keys))}"] if one.keys else QUESTIONS[kind]
            lines += [f"# {line}" for line in asked]
        lines.append("")
    return lines


def release_lines(declared: Mapping[str, Column]) -> list[str]:
    """Counts to begin with: of all rows, and by each column that has declared keys."""
    lines = [
        "# What is released. The budget is divided among these, unless [spend] says how much of it is used."
    ]
    groups = [
        name
        for name, column in declared.items()
        if isinstance(column, Flag) or (isinstance(column, Category) and column.values is not None)
    ]
    lines += ["[[release]]", 'name = "all"', 'kind = "count"', ""]
    for name in groups:
        lines += ["[[release]]", 'kind = "count"', f"by = {toml_string(name)}", ""]
    others = '# kind = "mean"             # or sum, histogram, quantiles; a proportion says of = "age > 65"'
    return [*lines, "# [[release]]", others, '# column = "..."', '# by = "..."']


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    return repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """The text of a plan, the columns that were found, and the questions that are still open."""

    text: str = field(repr=False)
    columns: tuple[Heading, ...]
    unanswered: tuple[str, ...]

    def write(self, path: str | os.PathLike[str]) -> Path:
        """The plan in a new file; an existing one is never touched."""
        place = Path(path)
        try:
            with place.open("x", encoding="utf-8") as file:
                file.write(self.text)
        except OSError as problem:
            raise InvalidParameter(
                parameter="out", value=str(place), must="be a new file in a folder that can be written to",
                hint=(problem.strerror or "").lower(),
            ) from None  # fmt: skip
        return place

    def __str__(self) -> str:
        return self.text


def suggest(
    data: str | os.PathLike[str] | Files,
    *,
    protect: str | None = None,
    person: str | None = None,
    at_most: int | None = None,
    schema: Mapping[str, Column] | None = None,
    skip: Sequence[str] = (),
    epsilon: Paid | None = None,
    delta: Paid | None = None,
    rho: Paid | None = None,
    mu: Paid | None = None,
    table: str = "",
    version: str = "",
    trust_header: bool = False,
    beside: str | os.PathLike[str] | None = None,
) -> Suggestion:
    """A commented plan for a file, from its header or metadata and from the answers given here. Reads no row.

    `data` is a path, or `tacit.files(...)` with its options. `protect` is "rows" or "people"; for people
    `person` is the column that identifies people, and `at_most` the largest number of rows of one person.
    `schema` declares columns,
    `skip` leaves some out. The price is the budget. A header in which a name looks like a value may be somebody's row,
    and is refused unless `trust_header` says that it is none. Paths are written as seen from the folder `beside`.
    """
    files = data if isinstance(data, Files) else Files(path=os.fspath(data))
    found = tuple(h for h in headings(files) if h.name)
    if not trust_header and looks_like_a_row(found):
        raise InvalidParameter(
            parameter="data", value=files.path, must="name its columns in its first line",
            hint="a name looks like a value, and the line like somebody's row; if it is none: trust_header=True, "
            "--trust-header",
        )  # fmt: skip
    declared = dict(schema or {})
    for name in [*declared, *skip, *([person] if person else [])]:
        if name not in {h.name for h in found}:
            raise UnknownColumn(column=name, known=[h.name for h in found], where=files.path)
    protect = _protected(protect, person, at_most)
    # A boolean has no bounds and no keys to ask for: its type says all.
    declared |= {
        h.name: Flag() for h in found if h.kind == "flag" and h.name not in (*declared, *skip, person)
    }
    open_: list[str] = []
    lines = header_lines(Path(files.path).name)
    lines += _data(files, beside, table, version)
    lines += _protect(protect, person, at_most, open_)
    tables = schema_to_tables(declared)
    lines += schema_lines(found, tables, skipped={*skip, *([person] if person else [])}, unanswered=open_)
    lines += _budget({"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}, open_)
    lines += release_lines(declared)
    return Suggestion(text="\n".join(lines) + "\n", columns=found, unanswered=tuple(open_))


def _protected(protect: str | None, person: str | None, at_most: int | None) -> str | None:
    if protect is None and person is not None:
        protect = "people"
    if protect not in (None, "people", "rows"):
        raise UnknownName(what="unit to protect", name=str(protect), known=("people", "rows"))
    if protect == "rows" and (person is not None or at_most is not None):
        raise InvalidParameter(
            parameter="protect", value=protect, must="be people, where a person is named or limited"
        )
    if at_most is not None:
        people_unit(person or "person", at_most=at_most)
    return protect


def _data(files: Files, beside: str | os.PathLike[str] | None, table: str, version: str) -> list[str]:
    named = [_seen_from(beside, Path(p)) for p in files.paths]
    words: dict[str, Any] = {"path": named if files.more else named[0], "table": table, "version": version}
    words |= {"pattern": files.pattern} | files.to_dict()
    lines = ["[data]", *(f"{word} = {toml_value(value)}" for word, value in words.items() if value)]
    if not version:
        lines.append(
            '# version = "2024-01"      # a public name of this state of the data; under a new name '
            "queries are charged anew"
        )
    return [*lines, ""]


def _seen_from(folder: str | os.PathLike[str] | None, path: Path) -> str:
    if folder is None:
        return path.as_posix()
    here, there = Path(folder).resolve(), path.resolve()
    return (there.relative_to(here) if there.is_relative_to(here) else there).as_posix()


def _protect(protect: str | None, person: str | None, at_most: int | None, open_: list[str]) -> list[str]:
    lines = [
        "# Who is protected: each row by itself, or each person with all of their rows, of which at most at_most are",
        "# used. This number is the promise, and nothing in the data decides it.",
    ]
    if protect is None:
        open_.append("--protect")
        return [
            *lines,
            "# [protect]",
            '# unit = "people"          # or "rows"',
            "# column = ...",
            "# at_most = ...",
            "",
        ]
    lines += ["[protect]", f'unit = "{protect}"']
    if protect == "people":
        for word, value, flag in (("column", person, "--person"), ("at_most", at_most, "--at-most")):
            if value is None:
                open_.append(flag)
                lines.append(f"# {word} = ...")
            else:
                lines.append(f"{word} = {toml_string(value) if isinstance(value, str) else value}")
    return [*lines, ""]


def _budget(given: dict[str, Paid | None], open_: list[str]) -> list[str]:
    lines = ["# What may be revealed in all, for the life of this table: decided once, kept in the ledger."]
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not said:
        open_.append("--epsilon")
        return [
            *lines,
            "# [budget]",
            "# epsilon = ...",
            "# delta = ...               # leave out for pure epsilon",
            "",
        ]
    price(**said)
    return [*lines, "[budget]", *(f"{name} = {_number(value)}" for name, value in said.items()), ""]


def _number(value: Paid) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
