"""What the engine adds up: integers, one for each cell. Everything that is released is made of these.

An aggregate is a sum over rows (or people) of an integer that depends on one row alone. Two statistics that
need the same aggregate share it, and all aggregates over the same rows are computed in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.sources.expressions import Expression

__all__ = ["Aggregate", "People", "Rows", "Squares", "Steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A sum over the rows that pass `where` and have a value in each of the `present` columns."""

    where: Expression | None = None
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Aggregate):
    """How many rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class People(Aggregate):
    """How many different people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Aggregate):
    """Sum of value - lowest, in steps of the column's grid: whole numbers from 0 to width."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares(Aggregate):
    """Sum of (value - lowest)^2, in squared steps."""

    column: str
