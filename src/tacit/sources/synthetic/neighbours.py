"""Neighbouring made-up tables: equal except for one unit, made from the declarations and the relation alone.

A unit under `rows()` is one row, under `people(...)` all rows of one id, also more than the used number;
`group_of` takes several units at once. The tables follow from the definition of the relation. The tables do not
depend on the sensitivity of any statistic. The rows of the unit are extreme, missing, outside of the
declaration, or ordinary. The other rows are ordinary, or there are none.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.exact.data_classes import dataclass
from tacit.guarantees import GroupOf, Neighbours, People, Unit
from tacit.sources.columns import EPOCH, Category, Column, Date, Flag, Integer, Measured, Number
from tacit.sources.schema import Schema

if TYPE_CHECKING:
    import pyarrow

MOODS = ("high", "low", "mixed", "missing", "outside", "plain")
"""The kind of rows of the unit."""
SIZES = (12, 0, 30, 3)
"""Rows that both tables have."""
UNKNOWN = ("key-a", "key-b", "key-c")
"""Keys of a category whose list is not declared."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbouringTables:
    """Two tables that differ in one unit, and a description of the difference."""

    left: pyarrow.Table
    right: pyarrow.Table
    words: str


def neighbouring_tables(schema: Schema, unit: Unit, *, number: int, seed: int = 0) -> NeighbouringTables:
    """Pair `number` of the list for this schema and unit; the first ones are the extreme ones."""
    draw = random.Random(f"{seed}:{number}")
    base_unit = unit.of if isinstance(unit, GroupOf) else unit
    person = base_unit.column if isinstance(base_unit, People) else None
    most = base_unit.at_most if isinstance(base_unit, People) else 1
    mood = MOODS[number % len(MOODS)]
    size = SIZES[number // len(MOODS) % len(SIZES)]
    shared = [_row(draw, schema, "plain") for _ in range(size)]
    if person is not None:
        for i, row in enumerate(shared):
            row[person] = 1 + draw.randrange(max(1, i // 2 + 1))
    left: list[Row] = []
    right: list[Row] = []
    units = (unit.size if number % 3 else 1) if isinstance(unit, GroupOf) else 1
    replaced = base_unit.neighbours is Neighbours.REPLACE_ONE
    opposite = {"high": "low", "low": "high", "missing": "high", "outside": "low"}.get(mood, "plain")
    for k in range(units):
        own = 1000 + k
        many = 1 if person is None else (most, most + 2, 1, 2 * most)[number % 4]
        left += _unit(draw, schema, mood, person, own, many)
        if replaced:
            fewer = 1 if person is None else (most, 1)[number % 2]
            right += _unit(draw, schema, opposite, person, own if number % 2 else own + 500, fewer)
    place = (0, len(shared), len(shared) // 2)[number % 3]
    names = [*([person] if person is not None else []), *schema.stored]
    what = "person" if person is not None else "row"
    rows = f"{len(left)} {mood} row{'s' * (len(left) != 1)}"
    how = f"replaced by {len(right)} {opposite}" if replaced else "added or removed"
    return NeighbouringTables(
        left=_table(schema, names, [*shared[:place], *left, *shared[place:]]),
        right=_table(schema, names, [*shared[:place], *right, *shared[place:]]),
        words=f"{units} {what}{'s' * (units != 1)} ({rows}), {how}; {size} shared rows",
    )


def _unit(
    draw: random.Random, schema: Schema, mood: str, person: str | None, own: int, many: int
) -> list[Row]:
    rows = [_row(draw, schema, mood) for _ in range(many)]
    return rows if person is None else [{**row, person: own} for row in rows]


def _row(draw: random.Random, schema: Schema, mood: str) -> Row:
    if mood == "mixed":
        return {
            name: _value(draw, schema[name], draw.choice(("high", "low", "plain"))) for name in schema.stored
        }
    return {name: _value(draw, schema[name], mood) for name in schema.stored}


def _value(draw: random.Random, column: Column, mood: str) -> Any:
    """A value of the column: at an end, missing, outside, or any."""
    if mood == "missing":
        return None
    if isinstance(column, Category):
        known: Sequence[Any] = UNKNOWN if column.values is None else column.values
        if mood == "outside":
            return max(known) + 1 if isinstance(known[0], int) else "not declared"
        return known[-1] if mood == "high" else known[0] if mood == "low" else draw.choice(known)
    if isinstance(column, Flag):
        return {"high": True, "low": False}.get(mood, draw.random() < 0.5)
    if isinstance(column, Number | Integer) and not column.bounded:
        found = {"high": 1e6, "low": -1e6, "outside": 1e12}.get(mood, float(draw.randrange(-100, 100)))
        return int(found) if isinstance(column, Integer) else found
    assert isinstance(column, Measured)
    low, width = column.lowest, column.width
    step = {
        "high": low + width,
        "low": low,
        "outside": low + width + 1 + max(1, width // 10) if draw.random() < 0.5 else low - 1,
    }.get(mood, low + draw.randint(0, width))
    if isinstance(column, Date):
        first, last = ((d - EPOCH).days for d in (datetime.date.min, datetime.date.max))
        return EPOCH + datetime.timedelta(days=max(first, min(last, step)))
    return int(step) if isinstance(column, Integer) else step * float(column.spacing)


def _table(schema: Schema, names: Sequence[str], rows: Sequence[Row]) -> pyarrow.Table:
    import pyarrow

    return pyarrow.table(
        {name: pyarrow.array([row[name] for row in rows], type=_stored(schema, name)) for name in names}
    )


def _stored(schema: Schema, name: str) -> Any:
    import pyarrow

    if name not in schema:
        return pyarrow.int64()
    column = schema[name]
    if isinstance(column, Category):
        whole = bool(column.values) and isinstance((column.values or ("",))[0], int)
        return pyarrow.int64() if whole else pyarrow.string()
    if isinstance(column, Flag):
        return pyarrow.bool_()
    if isinstance(column, Date):
        return pyarrow.date32()
    return pyarrow.int64() if isinstance(column, Integer) else pyarrow.float64()
