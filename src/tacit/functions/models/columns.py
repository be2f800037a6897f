"""Declared columns of a model: bounds, categories and bins, which are public and never read from rows.

A row becomes one bin of each column (additive models), or numbers in [-1, 1] and one place of each category (linear
models). A constant is added, and everything is scaled so that every row has length at most 1.
A missing, non-numeric or undeclared value goes into the column's last bin, "(other)", and adds 0 to a linear
model. Declared pairs of columns add one bin each, of the two columns' bins merged to at most 8; declared
directions make released shapes rise or fall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.functions.models.features import PublicBox

BINS = 24
MOST_GROUPS = 8
"""Groups of a number's bins in a pair."""
MOST_CELLS = 4096
DIRECTIONS = {"increasing": 1, "decreasing": -1}
OTHER = "(other)"
LONGEST = 1 + 2.0**-40
"""No row is longer in floats, since each of its entries is 1/sqrt(columns + 1), rounded once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberColumn:
    """A number within declared bounds, in `bins` even bins or between declared inner edges; values outside are moved.

    A bin holds its lower end.
    """

    low: float
    high: float
    bins: int = BINS
    edges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        ok = all(is_number(v) and math.isfinite(v) for v in (self.low, self.high)) and self.low < self.high
        if not ok:
            raise InvalidParameter(
                parameter="columns", value=(self.low, self.high), must="have two finite bounds, low below high",
                hint="bounds are never read from the data",
            )  # fmt: skip
        set_fields(self, low=float(self.low), high=float(self.high), bins=whole("bins", self.bins))
        if self.edges is not None:
            given = tuple(float(v) for v in members("edges", self.edges))
            inside = all(self.low < v <= self.high for v in given)
            if not inside or list(given) != sorted(set(given)) or not given:
                raise InvalidParameter(
                    parameter="edges", value=given, must="rise, above low and at most high"
                )
            set_fields(self, edges=given, bins=len(given) + 1)

    @property
    def cuts(self) -> Floats:
        """The inner edges."""
        if self.edges is not None:
            return np.array(self.edges)
        return self.low + (self.high - self.low) * np.arange(1, self.bins) / self.bins

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each bin."""
        ends = [self.low, *self.cuts.tolist(), self.high]
        return (*(f"{a:.6g} to {b:.6g}" for a, b in pairwise(ends)), OTHER)

    def places(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The bin of each value."""
        numbers = _numbers(values)
        known = np.isfinite(numbers)
        inside = np.clip(np.where(known, numbers, self.low), self.low, self.high)
        found = np.searchsorted(self.cuts, inside, side="right")
        return np.where(known, found, self.bins).astype(np.int64)

    def numbers(self, values: npt.NDArray[Any]) -> Floats:
        """Each value in [-1, 1], 0 for a missing one."""
        numbers = _numbers(values)
        known = np.isfinite(numbers)
        inside = np.clip(np.where(known, numbers, self.low), self.low, self.high)
        middle, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
        return np.asarray(np.where(known, np.clip((inside - middle) / half, -1.0, 1.0), 0.0))[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryColumn:
    """A column with declared values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        given = tuple(members("values", self.values))
        if not given or len(set(given)) != len(given):
            raise InvalidParameter(
                parameter="columns", value=len(given), must="list at least one category, each once"
            )
        set_fields(self, values=given)

    @property
    def bins(self) -> int:
        """The number of declared values."""
        return len(self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each bin."""
        return (*(str(v) for v in self.values), OTHER)

    def places(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The place of each value in the list."""
        known = {v: i for i, v in enumerate(self.values)}
        out = np.full(len(values), len(self.values), dtype=np.int64)
        if values.dtype.kind in "iufbUS":
            for value, place in known.items():
                if isinstance(value, str) == (values.dtype.kind in "US"):
                    out[values == value] = place
            return out
        for i, value in enumerate(values):
            try:
                out[i] = known.get(value, len(self.values))
            except Exception:  # what cannot be looked up is no category
                continue
        return out

    def numbers(self, values: npt.NDArray[Any]) -> Floats:
        """One place for each category."""
        return np.asarray(self.places(values)[:, None] == np.arange(self.bins)[None, :], dtype=np.float64)


Column = NumberColumn | CategoryColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class PairColumn:
    """Two declared columns together: a cell for each pair of groups of their bins, gaps being a group of their own."""

    places: tuple[int, int]
    columns: tuple[Column, Column]

    def __post_init__(self) -> None:
        if self.bins > MOST_CELLS:
            raise InvalidParameter(
                parameter="interactions",
                value=f"{self.bins} cells",
                must=f"have at most {MOST_CELLS} cells each",
            )

    @property
    def groups(self) -> tuple[int, int]:
        """The number of groups of each column. The last one is for other values."""
        one, two = (_groups(c) + 1 for c in self.columns)
        return one, two

    @property
    def bins(self) -> int:
        """The number of cells."""
        one, two = self.groups
        return one * two

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each cell."""
        one, two = (_group_labels(c) for c in self.columns)
        return tuple(f"{a} & {b}" for a in one for b in two)

    @property
    def bin_groups(self) -> list[list[int]]:
        """The group of each bin of both columns; the last bin has all other values."""
        return [[int(g) for g in _grouped(c, np.arange(c.bins + 1))] for c in self.columns]

    def cells(self, found: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """The cell of each row, from the bins of all columns."""
        one, two = (
            _grouped(column, found[place]) for column, place in zip(self.columns, self.places, strict=True)
        )
        return one * self.groups[1] + two


def _groups(column: Column) -> int:
    return min(column.bins, MOST_GROUPS) if isinstance(column, NumberColumn) else column.bins


def _grouped(column: Column, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The group of each bin; undeclared values have the last group."""
    count = _groups(column)
    return np.where(places >= column.bins, count, places * count // column.bins)


def _group_labels(column: Column) -> tuple[str, ...]:
    if not isinstance(column, NumberColumn):
        return column.labels
    ends = [column.low, *column.cuts.tolist(), column.high]
    group = _grouped(column, np.arange(column.bins)).tolist()
    firsts = [group.index(k) for k in range(_groups(column))]
    return (*(f"{ends[a]:.6g} to {ends[b]:.6g}" for a, b in pairwise([*firsts, column.bins])), OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumns:
    """The columns of a model, in order, with a constant; pairs of them, and directions of shapes (1, -1 or 0)."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    directions: tuple[int, ...] = ()

    @classmethod
    def of(cls, declared: Any, *, bins: int = BINS, count: int | None = None) -> DeclaredColumns:
        """The columns from {"age": (17, 90), "sex": ["F", "M"]}, from such a list, or from one PublicBox for all
        columns.
        """
        if declared is None:
            raise InvalidParameter(
                parameter="columns", value=None, must="be declared: bounds of numbers, values of categories",
                hint='columns={"age": (17, 90), "sex": ["F", "M"]}; nothing is read from the rows',
            )  # fmt: skip
        if isinstance(declared, DeclaredColumns):
            return declared
        if isinstance(declared, PublicBox):
            size = 1 if count is None else count
            low, high = declared.corners(size)
            declared = [
                NumberColumn(low=float(a), high=float(b), bins=bins) for a, b in zip(low, high, strict=True)
            ]
        if isinstance(declared, Mapping):
            names, given = tuple(str(n) for n in declared), list(declared.values())
        else:
            given = list(members("columns", declared))
            names = tuple(f"x{j}" for j in range(len(given)))
        if not given:
            raise EmptyComposition(what="the list of columns", hint='columns={"age": (17, 90)}')
        return cls(names=names, columns=tuple(_column(g, bins) for g in given))

    def with_terms(self, *, interactions: Any = None, monotone: Any = None) -> DeclaredColumns:
        """The same with pairs of names, and with {"age": "increasing"}."""
        found: list[tuple[int, int]] = []
        for given in members("interactions", () if interactions is None else interactions):
            two = members("interactions", given)
            if len(two) != 2 or two[0] == two[1]:
                raise InvalidParameter(
                    parameter="interactions", value=given, must="be pairs of two different columns"
                )
            one, other = sorted(self._place("interactions", n) for n in two)
            found.append((one, other))
        if len(set(found)) != len(found):
            raise InvalidParameter(parameter="interactions", value=len(found), must="list each pair once")
        ways = [0] * len(self.columns)
        if monotone is not None and not isinstance(monotone, Mapping):
            raise InvalidParameter(
                parameter="monotone", value=type(monotone).__name__, must='be like {"age": "increasing"}'
            )
        for name, way in (monotone or {}).items():
            place = self._place("monotone", name)
            if not isinstance(way, str) or way not in DIRECTIONS:
                raise InvalidParameter(
                    parameter="monotone", value=way, must=f"be one of {', '.join(DIRECTIONS)}"
                )
            if not isinstance(self.columns[place], NumberColumn):
                raise InvalidParameter(
                    parameter="monotone", value=name, must="name numbers, which have an order"
                )
            if any(place in pair for pair in found):
                raise InvalidParameter(
                    parameter="monotone", value=name, must="name columns of no pair",
                    hint="a term of two columns can undo the direction of one",
                )  # fmt: skip
            ways[place] = DIRECTIONS[way]
        made = replace(self, pairs=tuple(found), directions=tuple(ways) if any(ways) else ())
        assert len(made.pair_columns) == len(found)
        return made

    def _place(self, parameter: str, name: Any) -> int:
        if not isinstance(name, str) or name not in self.names:
            raise InvalidParameter(
                parameter=parameter, value=name, must=f"name declared columns: {', '.join(self.names)}"
            )
        return self.names.index(name)

    @property
    def pair_columns(self) -> tuple[PairColumn, ...]:
        """The pairs with their columns."""
        return tuple(
            PairColumn(places=(i, j), columns=(self.columns[i], self.columns[j])) for i, j in self.pairs
        )

    @property
    def height(self) -> float:
        """The entry of a row in each of its bins: one over the root of the number of columns, pairs and 1."""
        return 1 / math.sqrt(len(self.columns) + len(self.pairs) + 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each column, the last for other values, and cells of each pair."""
        return (*(c.bins + 1 for c in self.columns), *(p.bins for p in self.pair_columns))

    @property
    def starts(self) -> tuple[int, ...]:
        """The first bin of each column and pair. The constant comes last."""
        return tuple(int(v) for v in np.cumsum([0, *self.sizes]))

    @property
    def dimension(self) -> int:
        """All bins and the constant."""
        return sum(self.sizes) + 1

    @property
    def linear_names(self) -> tuple[str, ...]:
        """A name for each number of the linear coding, the constant left out."""
        out: list[str] = []
        for name, column in zip(self.names, self.columns, strict=True):
            out += [name] if isinstance(column, NumberColumn) else [f"{name} = {v}" for v in column.values]
        return tuple(out)

    def table(self, X: Any) -> list[npt.NDArray[Any]]:
        """One array for each column, of a frame with these names or an array with this many columns."""
        if (
            hasattr(X, "columns")
            and hasattr(X, "__getitem__")
            and all(n in list(X.columns) for n in self.names)
        ):
            return [_plain(X[n]) for n in self.names]
        array = np.asarray(X) if not hasattr(X, "to_numpy") else np.asarray(X.to_numpy())
        if array.ndim != 2 or array.shape[1] != len(self.columns):
            raise InvalidParameter(
                parameter="X", value=f"an array of shape {array.shape}",
                must=f"have one column for each of the {len(self.columns)} declared ones",
            )  # fmt: skip
        return [array[:, j] for j in range(array.shape[1])]

    def codes(self, X: Any) -> npt.NDArray[np.int64]:
        """The bins of each row, counted over all columns, and the constant's place."""
        table = self.table(X)
        places = [c.places(v) for c, v in zip(self.columns, table, strict=True)]
        places += [p.cells(places) for p in self.pair_columns]
        parts = [p + s for p, s in zip(places, self.starts, strict=False)]
        last = np.full(len(table[0]), self.dimension - 1, dtype=np.int64)
        return np.column_stack([*parts, last])

    def linear(self, X: Any) -> Floats:
        """Numbers in [-1, 1], categories by places, and the constant; no row is longer than 1."""
        table = self.table(X)
        parts = [c.numbers(v) for c, v in zip(self.columns, table, strict=True)]
        return np.hstack([*parts, np.ones((len(table[0]), 1))]) * self.height

    def monotone(self, weights: Floats, counts: Floats | None) -> Floats:
        """The nearest weights whose declared shapes rise or fall: post-processing of the release.

        Bins have equal weights, or their noisy counts if those were bought.
        """
        from scipy.optimize import isotonic_regression

        out = np.array(weights)
        for way, column, start in zip(self.directions, self.columns, self.starts, strict=False):
            if way:
                own = slice(start, start + column.bins)
                heavy = None if counts is None else np.maximum(counts[own], 1.0)
                out[own] = isotonic_regression(out[own], weights=heavy, increasing=way > 0).x
        return out


def _column(given: Any, bins: int) -> Column:
    if isinstance(given, NumberColumn | CategoryColumn):
        return given
    if isinstance(given, tuple) and len(given) in (2, 3) and all(is_number(v) for v in given[:2]):
        if len(given) == 3 and not is_number(given[2]):
            return NumberColumn(low=given[0], high=given[1], edges=tuple(given[2]))
        return NumberColumn(low=given[0], high=given[1], bins=bins if len(given) == 2 else given[2])
    if isinstance(given, list | Sequence) and not isinstance(given, str | tuple):
        return CategoryColumn(values=tuple(given))
    raise InvalidParameter(
        parameter="columns", value=type(given).__name__, must="be (low, high), (low, high, bins) or a list of values",
        hint='columns={"age": (17, 90), "sex": ["F", "M"]}',
    )  # fmt: skip


def _plain(values: Any) -> npt.NDArray[Any]:
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def _numbers(values: npt.NDArray[Any]) -> Floats:
    """Floats, with NaN for values that are no number. It converts value by value, so that one odd value does
    not affect the others.
    """
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    out = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        try:
            out[i] = float(value)
        except Exception:  # whatever one value raises, it is no number
            continue
    return out
