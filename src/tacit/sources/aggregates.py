"""What the engine adds up: integers, one for each cell. Everything that is released is made of these.

Two statistics that need the same aggregate share it, and aggregates over the same rows are computed in one pass.
Sums over rows are additive: the integer of a cell is the sum of those of the finer cells it is made of. A count of
people is not, since one person may stand in several of the finer cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.sources.expressions import Expression
from tacit.sources.schema import Schema

__all__ = ["Aggregate", "CountPeople", "CountRows", "Squares", "Steps", "is_wide"]

MOST_ROWS_BITS = 40
"""A table has fewer than 2^40 rows: a public limit, from which the width of integers follows."""
NARROW_BITS = 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A sum over the rows that pass `where` and have a value in each of the `present` columns.

    `additive`: may it be added up over a finer grouping?
    """

    additive: ClassVar[bool] = False

    where: Expression | None = None
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRows(Aggregate):
    """How many rows."""

    additive: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPeople(Aggregate):
    """How many different people. Never added up: somebody in two cells is one person in their union."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Aggregate):
    """Sum of value - lowest, in steps of the column's grid: whole numbers from 0 to width."""

    additive: ClassVar[bool] = True

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares(Aggregate):
    """Sum of (value - lowest)^2, in squared steps."""

    additive: ClassVar[bool] = True

    column: str


def is_wide(aggregate: Aggregate, schema: Schema) -> bool:
    """Could the integers need more than 64 bits? By the declared bounds alone, so that no row decides on a type."""
    if not isinstance(aggregate, Steps | Squares):
        return False
    width = schema.measured(aggregate.column).width
    most = width if isinstance(aggregate, Steps) else width**2
    return most.bit_length() + MOST_ROWS_BITS > NARROW_BITS
