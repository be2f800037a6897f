"""What was seen, in words: shares against the declarations, means before and after, cells against errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from tacit.curator.notes import Note
from tacit.curator.plan import Planned
from tacit.curator.text import digits
from tacit.guarantees import Unit
from tacit.sources.looking import CellsSeen, ColumnSeen, PeopleSeen
from tacit.sources.proposing import TextSeen, proposed
from tacit.sources.schema import Category, Column, Date, Flag, Measured
from tacit.sources.tables import people_of

__all__ = ["cells_notes", "column_notes", "people_notes"]

MUCH = 0.01
"""From this share of the rows on a loss is marked for attention."""
LONGEST = 60


def share(part: int, of: int) -> str:
    """A part of all rows, for people: 0 is none, and little is never rounded to none."""
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
        named = "; ".join(_stranger(word, n, rows, column) for word, n in seen.strangers)
        told = f"{share(seen.outside, rows)} of the rows are outside of the declared keys: {named}"
        yield Note(
            about=seen.name, what="outside keys", attention=True, sentence=told,
            numbers={"rows": seen.outside, "share": seen.outside / rows, "strangers": dict(seen.strangers)},
        )  # fmt: skip
    else:
        yield Note(about=seen.name, what="outside keys", sentence="no row is outside of the declared keys")
    if seen.unused:
        told = f"{seen.unused:,} of the {len(column.values):,} declared keys stand in no row"
        yield Note(
            about=seen.name, what="unused keys", attention=bool(seen.outside), sentence=told,
            numbers={"keys": seen.unused},
        )  # fmt: skip


def _stranger(word: str, count: int, rows: int, column: Category) -> str:
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
        sentence=f"the mean as it stands is {before}, and as declared {after}",
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
        told = "no row falls into any cell: the release would be of nothing"
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
