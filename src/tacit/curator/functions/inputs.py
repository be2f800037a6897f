"""The columns that a function is a function of: from declared values to coordinates, and to public points of a grid.

A measured column (number, integer, date, flag) is scaled by its declared bounds to [-1, 1]; a category becomes one
coordinate for each of its values, 1 where it is that and else 0. So no row is longer than the root of the number of
columns, whatever it holds.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter, WrongType
from tacit.exact.arrays import Floats
from tacit.sources.axes import Axis, cell_count
from tacit.sources.schema import Category, Date, Measured, Number, Schema

__all__ = ["InputColumns", "Points"]

POINTS = {1: 101, 2: 20, 3: 7, 4: 5}
FEW_POINTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(Axis):
    """Public points along one column, at which a function is shown."""

    values: tuple[Any, ...]

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.values

    @property
    def always(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class InputColumns:
    """Declared columns in order, and the coordinates that they span."""

    names: tuple[str, ...]
    columns: tuple[Measured | Category, ...]

    @classmethod
    def of(cls, names: Sequence[Any], schema: Schema) -> InputColumns:
        """The columns with these names; measured ones have bounds, categories have declared values."""
        found: list[Measured | Category] = []
        for name in names:
            column = schema[name] if isinstance(name, str) else None
            if isinstance(column, Category):
                if column.values is None:
                    raise WrongType(
                        column=name, found="a category without declared values", wanted="a declared list",
                        hint='category(["a", "b"]) lists its values',
                    )  # fmt: skip
                found.append(column)
            else:
                found.append(schema.measured(name))
        return cls(names=tuple(names), columns=tuple(found))

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns on a scale."""
        return tuple(n for n, c in zip(self.names, self.columns, strict=True) if isinstance(c, Measured))

    @property
    def categories(self) -> tuple[str, ...]:
        """The columns of words."""
        return tuple(n for n, c in zip(self.names, self.columns, strict=True) if isinstance(c, Category))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many coordinates each column has."""
        return tuple(len(c.values or ()) if isinstance(c, Category) else 1 for c in self.columns)

    @property
    def coordinates(self) -> int:
        """How many there are in all."""
        return sum(self.sizes)

    @property
    def radius(self) -> float:
        """No row is longer: the root of the number of columns, rounded up."""
        return math.nextafter(math.sqrt(len(self.names)), math.inf)

    @property
    def features(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        out: list[str] = []
        for name, column in zip(self.names, self.columns, strict=True):
            values = column.values if isinstance(column, Category) else None
            out += [name] if values is None else [f"{name} = {v}" for v in values]
        return tuple(out)

    def of_rows(self, rows: Mapping[str, Floats]) -> Floats:
        """The coordinates of rows in steps and places (`tacit.sources.training`); NaN all over a row with a gap."""
        parts: list[Floats] = []
        for name, column in zip(self.names, self.columns, strict=True):
            given = rows[name]
            if isinstance(column, Category):
                places = np.arange(len(column.values or ()), dtype=np.float64)
                block = (given[:, None] == places[None, :]).astype(np.float64)
                block[np.isnan(given)] = np.nan
                parts.append(block)
            else:
                parts.append((given * (2.0 / max(column.width, 1)) - 1.0)[:, None])
        return np.hstack(parts)

    def of_values(self, values: Any) -> Floats:
        """The coordinates of public points: a table with these columns, or an array with one column each.

        Numbers outside the bounds are moved to them, as rows are; a word that was not declared is refused.
        """
        if hasattr(values, "to_dict") and hasattr(values, "columns"):
            values = {str(n): list(values[n]) for n in values.columns}
        if isinstance(values, Mapping):
            missing = [n for n in self.names if n not in values]
            if missing:
                raise InvalidParameter(parameter="points", value=missing, must="have every column")
            columns = [list(np.atleast_1d(np.asarray(values[n], dtype=object))) for n in self.names]
        else:
            array = np.asarray(values, dtype=object)
            if array.ndim == 1 and len(self.names) == 1:
                array = array[:, None]
            if array.ndim != 2 or array.shape[1] != len(self.names):
                raise InvalidParameter(
                    parameter="points",
                    value=f"an array of shape {array.shape}",
                    must=f"have one column for each of {', '.join(self.names)}",
                )
            columns = [list(array[:, j]) for j in range(len(self.names))]
        if len({len(c) for c in columns}) > 1:
            raise InvalidParameter(parameter="points", value="columns", must="be of one length")
        rows = {n: _steps(n, c, v) for n, c, v in zip(self.names, self.columns, columns, strict=True)}
        return self.of_rows(rows)

    def axes(self, points: int | None) -> tuple[Points, ...]:
        """A grid: so many points along each measured column, every value of a category."""
        count = POINTS.get(len(self.measured), FEW_POINTS) if points is None else points
        found = []
        for name, column in zip(self.names, self.columns, strict=True):
            if isinstance(column, Category):
                found.append(Points(column=name, values=tuple(column.values or ())))
                continue
            found.append(Points(column=name, values=_spread(column, count)))
        cell_count(found)
        return tuple(found)

    def grid(self, axes: Sequence[Points]) -> Floats:
        """The coordinates of all points of the grid, the last column running fastest."""
        table = list(itertools.product(*(a.values for a in axes)))
        return self.of_values({n: [row[j] for row in table] for j, n in enumerate(self.names)})


def _spread(column: Measured, count: int) -> tuple[Any, ...]:
    """Points from the lowest to the highest value; of numbers six digits, of others the nearest value that there is."""
    if isinstance(column, Number):
        low, high = float(column.lowest * column.spacing), float(column.highest * column.spacing)
        values = [low + (high - low) * k / (count - 1) for k in range(count)]
        return tuple(dict.fromkeys(float(f"{v:.6g}") + 0.0 for v in values))
    steps = [column.lowest + round(column.width * k / (count - 1)) for k in range(count)]
    return tuple(column.label(s) for s in dict.fromkeys(steps))


def _steps(name: str, column: Measured | Category, values: Sequence[Any]) -> Floats:
    """Values that somebody typed, as steps above the lowest, or places in the list."""
    if isinstance(column, Category):
        places = {v: i for i, v in enumerate(column.values or ())}
        for value in values:
            if not isinstance(value, str | int | np.integer) or value not in places:
                raise InvalidParameter(parameter=name, value=value, must="be a declared value")
        return np.array([float(places[v]) for v in values])
    if isinstance(column, Date):
        days = [v.date() if isinstance(v, datetime.datetime) else v for v in values]
        if not all(isinstance(d, datetime.date) for d in days):
            raise InvalidParameter(parameter=name, value="a value", must="be a day")
        numbers = np.array([float(column.steps_of(d)) for d in days])
    else:
        try:
            numbers = np.array([float(v) for v in values]) / float(column.spacing)
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter(parameter=name, value="a value", must="be a number") from None
    if not bool(np.isfinite(numbers).all()):
        raise InvalidParameter(parameter=name, value="a value that is not finite", must="be finite")
    return np.asarray(np.clip(numbers, column.lowest, column.highest) - column.lowest)
