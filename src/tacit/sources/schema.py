"""What is declared about a table: the constructors of columns, and the schema that holds them by name.

Nothing is inferred. See `columns` for what a declaration turns a stored value into.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit.errors import EmptyComposition, MissingBounds, UnknownColumn, WrongType
from tacit.ledger.canonical import canonical
from tacit.sources.checks import finite, refuse
from tacit.sources.columns import (
    Category,
    Column,
    Date,
    Flag,
    Integer,
    Measured,
    Number,
    Outside,
)
from tacit.sources.deriving import Node, check_derived, parse

__all__ = [
    "Category",
    "Column",
    "Date",
    "Flag",
    "Integer",
    "Measured",
    "Number",
    "Schema",
    "category",
    "check_names",
    "date",
    "derived",
    "flag",
    "integer",
    "number",
]


def number(
    low: float | None = None,
    high: float | None = None,
    *,
    spacing: float | Fraction | None = None,
    missing: float | None = None,
    outside: Outside = "clamp",
) -> Number:
    """A number in [low, high]; without bounds it can be filtered by, and clamping bounds for it can be released.

    spacing is a power of two; by default the largest one that leaves at least 2^20 steps between the bounds.
    """
    finite("spacing", 1 if spacing is None else spacing)
    grid = None if spacing is None else Fraction(spacing)
    return Number(low=low, high=high, grid=grid, missing=missing, outside=outside)


def integer(
    low: int | None = None, high: int | None = None, *, missing: int | None = None, outside: Outside = "clamp"
) -> Integer:
    """A whole number in low..high, both included."""
    return Integer(low=low, high=high, missing=missing, outside=outside)


def category(
    values: Sequence[str] | Sequence[int] | None = None, *, missing: str | int | None = None
) -> Category:
    """One of these values; without a list, values that are not known in advance."""
    if isinstance(values, str):
        refuse("values", values, "be a list", 'for example category(["CA", "NY"])')
    listed = isinstance(values, Iterable) and not isinstance(values, bytes) and not hasattr(values, "mask")
    given = tuple(values) if listed and getattr(values, "ndim", 1) else values  # type: ignore[arg-type]
    return Category(values=given, missing=missing)  # type: ignore[arg-type]


def flag(*, missing: bool | None = None) -> Flag:
    """Yes or no."""
    return Flag(missing=missing)


def date(
    low: datetime.date | str,
    high: datetime.date | str,
    *,
    missing: datetime.date | str | None = None,
    outside: Outside = "clamp",
) -> Date:
    """A day in low..high, both included; days are dates or ISO text."""
    return Date(low=low, high=high, missing=missing, outside=outside)  # type: ignore[arg-type]


def derived(expression: str, column: Column) -> Column:
    """A column that is computed from others of its row: `derived("weight * income", number(0, 1e6))`.

    The expression is in a small closed language (`tacit.sources.deriving.language`) and works on declared values.
    Bounds are the column's own, as for a stored one.
    """
    if not isinstance(column, Column):
        refuse("column", type(column).__name__, "be a declaration", 'derived("a + b", number(0, 10))')
    if not str(expression).strip():
        refuse("from", expression, "be an expression", 'for example "weight * income"')
    return replace(column, derived=str(parse(expression)))


OURS = "__tacit"


def check_names(names: Iterable[str]) -> None:
    """Names of columns: none is our own, and no two are one name to an engine that does not look at case."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded.startswith(OURS):
            refuse("column", name, f"not begin with {OURS}", "such names are used inside: rename the column")
        if seen.setdefault(folded, name) != name:
            refuse(
                "column", name, f"differ from {seen[folded]!r} in more than case",
                "to some engines these are one name: rename one of them",
            )  # fmt: skip


class Schema(Mapping[str, Column]):
    """The declared columns by name; asking for another one is an error that names the nearest."""

    __slots__ = ("_columns", "_derived", "_text")

    def __init__(self, columns: Mapping[str, Column]) -> None:
        if not isinstance(columns, Mapping):
            refuse(
                "schema",
                type(columns).__name__,
                "map column names to declarations",
                "{'age': number(0, 120)}",
            )
        if not columns:
            raise EmptyComposition(
                what="the schema",
                hint="declare at least one column of the table, for example {'age': number(0, 120)}: none is inferred",
            )
        for name, column in columns.items():
            if not isinstance(name, str) or not name:
                refuse("schema", name, "have column names as keys", "{'age': number(0, 120)}")
            if not isinstance(column, Column):
                refuse(
                    f"schema[{name!r}]", type(column).__name__, "be a declaration",
                    "number(low, high), integer(low, high), category([...]), flag() or date(low, high)",
                )  # fmt: skip
        check_names(columns)
        self._columns = dict(columns)
        trees = {name: parse(column.derived) for name, column in columns.items() if column.derived}
        self._derived = {name: trees[name] for name in check_derived(trees, self._columns)}
        self._text = ""

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except (KeyError, TypeError):
            raise UnknownColumn(column=str(name), known=self._columns) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __repr__(self) -> str:
        return f"Schema({', '.join(self._columns)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._columns == other._columns

    def __hash__(self) -> int:
        return hash(tuple(self._columns.items()))

    def measured(self, name: str) -> Measured:
        """A column with an order and bounds: a number, an integer, a date or a flag."""
        column = self[name]
        if not isinstance(column, Measured):
            raise WrongType(
                column=name, found=column.kind, wanted="a number",
                hint="declare number(low, high) or integer(low, high), or count by the category instead",
            )  # fmt: skip
        if not column.bounded:
            raise MissingBounds(column=name)
        return column

    def describe(self) -> dict[str, dict[str, Any]]:
        """All declarations as plain values."""
        return {
            name: column.describe() | ({"from": column.derived} if column.derived else {})
            for name, column in self._columns.items()
        }

    @property
    def derived(self) -> Mapping[str, Node]:
        """The columns that are computed, each behind those that it is computed from."""
        return self._derived

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns that the table itself has."""
        return tuple(name for name in self._columns if name not in self._derived)

    def behind(self, names: Iterable[str]) -> set[str]:
        """These columns, and those that they are computed from."""
        found = set(names)
        for name in reversed(self._derived):
            found |= self._derived[name].columns() if name in found else set()
        return found

    @property
    def text(self) -> str:
        """All declarations as one canonical text, made once; numbers that JSON does not have are written as text."""
        if not self._text:
            self._text = canonical(_written(self.describe()), what="schema")
        return self._text


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _written(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return list(value) if WRITTEN.issuperset(map(type, value)) else [_written(v) for v in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)


WRITTEN = frozenset({str, int, bool, type(None)})
