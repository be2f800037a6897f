"""Neighbours, built from the definition of the relation: what a unit has is added, taken away, or replaced.

Nothing here asks the code under test how far a unit may reach. Under rows() a unit is one row, under people(...) all
rows of one id, as many as that person likes; `group_of` takes several units at once. What differs is odd more often
than not, and lies first, last, in the middle, or spread over the table.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import Any

from fuzz import values
from fuzz.worlds import Column, World, base_of
from tacit.guarantees import GroupOf, Neighbours, People

Row = dict[str, Any]
RAW = "raw line of a CSV file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The rows that both tables have, and what the unit has in the one and in the other."""

    base: tuple[Row, ...]
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    place: str
    odd: tuple[str, ...] = ()

    def tables(self) -> tuple[list[Row], list[Row]]:
        """Both tables."""
        return self._with(self.left), self._with(self.right)

    def _with(self, rows: tuple[Row, ...]) -> list[Row]:
        base = list(self.base)
        middle = len(base) // 2
        match self.place:
            case "first":
                return [*rows, *base]
            case "last":
                return [*base, *rows]
            case "spread":
                out = []
                for i, row in enumerate(base):
                    out += [row, *rows[i : i + 1]]
                return out + list(rows[len(base) :])
            case _:
                return [*base[:middle], *rows, *base[middle:]]


PADDED = ("spss", "sas")
"""Files whose texts are filled up with blanks: two ids that differ in blanks at the end are one person's."""


def draw_pair(rng: random.Random, world: World, *, form: str, objects: tuple[str, ...] = ()) -> Pair:
    """Two neighbours. Columns of `objects` may hold any Python object."""
    size = rng.choice([0, 1, 3, 5, 8, 12, 20, 40]) if rng.random() < 0.4 else rng.randint(4, 16)
    strange = rng.random() < 0.12
    odd: list[str] = []
    common: list[str] = []
    base = [_row(rng, world, form, objects, strange and rng.random() < 0.3, common) for _ in range(size)]
    odd += ["odd rows in both"] if common else []
    unit = world.unit
    units = rng.randint(1, unit.size) if isinstance(unit, GroupOf) else 1
    taken = [r[world.person.name] for r in base] if world.person else []
    left: list[Row] = []
    right: list[Row] = []
    replaced = base_of(unit).neighbours is Neighbours.REPLACE_ONE
    for _ in range(units):
        left += _unit(rng, world, form, objects, taken, odd, most=0.85)
        if replaced:
            right += _unit(rng, world, form, objects, taken, odd, most=0.3)
    return Pair(
        base=tuple(base), left=tuple(left), right=tuple(right), odd=tuple(sorted(set(odd))),
        place=rng.choice(["first", "first", "last", "middle", "spread"]),
    )  # fmt: skip


def _unit(
    rng: random.Random,
    world: World,
    form: str,
    objects: tuple[str, ...],
    taken: list[Any],
    odd: list[str],
    *,
    most: float,
) -> list[Row]:
    """What one unit has: one row, or any number of rows of an id that nobody else has."""
    base = base_of(world.unit)
    strange = rng.random() < most
    if not isinstance(base, People):
        return [_row(rng, world, form, objects, strange, odd)]
    assert world.person is not None
    number = rng.choice([1, 1, base.at_most, base.at_most + 1, 2 * base.at_most, rng.randint(0, 8)])
    mine = [_row(rng, world, form, objects, strange and rng.random() < 0.6, odd) for _ in range(number)]
    me = _new_id(rng, world.person, taken, odd, padded=form in PADDED)
    taken.append(me)
    if rng.random() < 0.2 and mine:
        mine = [dict(mine[0]) for _ in mine]
    return [{**r, world.person.name: me} for r in mine]


def _new_id(rng: random.Random, person: Column, taken: list[Any], odd: list[str], *, padded: bool) -> Any:
    """An id that no other row of the table has."""
    taken = [_bare(t) for t in taken] if padded else taken
    for _ in range(20):
        if rng.random() < 0.3:
            what, cell = values.odd(rng, "id", person.stored, person.words)
            if what == "long text" or _same(_bare(cell) if padded else cell, taken):
                continue
            odd.append(f"id: {what}")
            return cell
        cell = values.plain(rng, "id", person.stored, person.words)
        if not _same(cell, taken):
            return cell
    fresh = 50 + len(taken)
    return b"q%d" % fresh if person.stored in values.TEXTS else values.number(person.stored, fresh)


def _bare(cell: Any) -> Any:
    return cell.rstrip(b" ") if isinstance(cell, bytes) else cell


def _same(cell: Any, taken: list[Any]) -> bool:
    """Equal, or both nobody's."""
    nobody = (None, b"")
    if cell in nobody:
        return any(t in nobody for t in taken)
    if isinstance(cell, float) and math.isnan(cell):
        return any(isinstance(t, float) and math.isnan(t) for t in taken)
    return cell in taken


def _row(
    rng: random.Random, world: World, form: str, objects: tuple[str, ...], strange: bool, odd: list[str]
) -> Row:
    row = {c.name: values.plain(rng, c.label, c.stored, c.words) for c in world.columns}
    if not strange:
        return row
    if form.startswith("csv") and rng.random() < 0.35:
        what, mark = rng.choice(BROKEN)
        odd.append(f"line: {what}")
        return {**row, RAW: mark}
    may = [c for c in world.columns if c.label != "id"]
    for column in rng.sample(may, min(len(may), rng.choice([1, 1, 1, 2, len(may)]))):
        if column.name in objects and rng.random() < 0.5:
            what, cell = values.odd_object(rng)
        elif form.endswith("collation") and column.stored in values.TEXTS and rng.random() < 0.5:
            what, cell = values.other_case(rng, column.words)
        else:
            what, cell = values.odd(rng, column.label, column.stored, column.words)
        odd.append(f"{column.label} in {column.stored}: {what}")
        row[column.name] = cell
    return row


BROKEN = (
    ("a field more", "more"), ("a field less", "less"), ("an open quote", "open"), ("a quote inside", "inside"),
    ("text after a quote", "after"), ("a zero byte", "zero"), ("bytes that are no text", "bytes"),
    ("nothing", "empty"), ("a long field", "long"), ("only marks", "marks"), ("quoted mark", "quoted"),
)  # fmt: skip


def broken_line(fields: list[bytes], how: str, mark: bytes, at: int) -> bytes:
    """A line of a CSV file that is not what it should be; never a line break inside.

    What is changed is field `at`, which is not the one that says whose row it is: a line has one owner, or none.
    """

    def with_field(text: bytes) -> bytes:
        return mark.join([*fields[:at], text, *fields[at + 1 :]])

    whole = mark.join(fields)
    match how:
        case "more":
            return whole + mark + b"7"
        case "less":
            return mark.join(fields[:-1])
        case "open":
            return with_field(b'"' + fields[at])
        case "inside":
            return with_field(fields[at] + b'"x')
        case "after":
            return with_field(b'"' + fields[at] + b'"x')
        case "zero":
            return with_field(fields[at] + b"\x00")
        case "bytes":
            return with_field(b"\xff\xfe")
        case "empty":
            return b""
        case "long":
            return with_field(b"y" * 3_000_000)
        case "marks":
            return mark * (len(fields) - 1)
    return with_field(b'"' + fields[at].strip(b'"') + b'"')


def shrunk(pair: Pair) -> list[Pair]:
    """Smaller pairs to try: without some of the common rows, with fewer rows of the unit."""
    half = len(pair.base) // 2
    found = [replace(pair, base=pair.base[:half]), replace(pair, base=pair.base[half:])] if half else []
    found += [replace(pair, base=pair.base[:i] + pair.base[i + 1 :]) for i in range(min(len(pair.base), 6))]
    if len(pair.left) > 1:
        found.append(replace(pair, left=pair.left[:-1]))
    return found
