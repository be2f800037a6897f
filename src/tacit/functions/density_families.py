"""Families of densities: a row becomes a vector, a sample the sum of its vectors, and a curve a linear map of that.

    w_D = sum_i phi(x_i),     f_D(x) = s(x) . w_D / size

Rows are first moved to the middle of a cell of a public lattice. There phi is rounded to a grid, row by row, so that
sums are exact integers. phi is a product over the coordinates, and so are the bounds on its length and on the
distance of two values (theorem `density-lattice`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import is_number, members, set_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, upper
from tacit.functions.boxes import Box
from tacit.functions.kernels.base import length_parameter
from tacit.functions.models.features import PublicBox
from tacit.guarantees import Neighbours

# Rows as floats, value by value: what is no number counts as missing, and no row decides about an error.

OUTSIDE = ("edge", "absent")
"""The treatment of a row outside of the box: moved to the nearest edge, or ignored."""


def _number(value: Any) -> float:
    try:
        return float(value)
    except Exception:  # whatever a value does when it is asked for its number: it has none
        return np.nan


def _row(value: Any, dimension: int) -> list[float]:
    numbers: list[float] = []
    if not isinstance(value, str | bytes | dict):
        try:
            numbers = [_number(v) for v in islice(value, dimension + 1)]
        except Exception:  # a row that is no list of values is absent, however it says so
            numbers = []
    return numbers if len(numbers) == dimension else [np.nan] * dimension


def as_rows(values: Any, dimension: int) -> Floats:
    """The rows as an array (n, d) of floats, NaN for a missing number. Never to be shown.

    Refused by kind and shape of the whole, which no row decides: complex numbers, dates, another number of columns.
    """
    if isinstance(values, np.ma.MaskedArray):
        array = np.asarray(values.data)
        array = array if array.dtype.kind in "fiubcmMV" else array.astype(object)
        values = np.where(np.ma.getmaskarray(values), np.nan, array)
    if hasattr(values, "to_numpy"):
        array = np.asarray(values.to_numpy())
    elif hasattr(values, "__array__"):
        array = np.asarray(values)
    else:
        array = _listed(values, dimension)
    if array.dtype.kind in "cmMV":
        raise InvalidParameter(parameter="rows", value=f"array of {array.dtype}", must="hold numbers")
    if array.ndim == 1 and dimension == 1:
        array = array.reshape(-1, 1)
    elif array.ndim == 1 and array.dtype == object:
        array = np.array([_row(v, dimension) for v in array], dtype=np.float64).reshape(-1, dimension)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InvalidParameter(
            parameter="rows", value=f"an array of {array.ndim} dimensions", must=f"have {dimension} columns"
        )
    if array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(array, dtype=np.float64)
    numbers = np.array([_number(v) for v in array.ravel()], dtype=np.float64)
    return np.ascontiguousarray(numbers.reshape(array.shape))


def _listed(values: Any, dimension: int) -> npt.NDArray[Any]:
    """A plain list: each member becomes one row, of any kind."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InvalidParameter(
            parameter="rows", value=type(values).__name__, must="be an array or a list of rows"
        )
    given = list(values)
    if dimension == 1:
        # A row of one number may come as a list of one.
        flat = [v[0] if isinstance(v, list | tuple) and len(v) == 1 else v for v in given]
        return np.array([_number(v) for v in flat], dtype=np.float64)
    return np.array([_row(v, dimension) for v in given], dtype=np.float64).reshape(-1, dimension)


def cells_of(
    rows: Floats, box: Box, cells: tuple[int, ...], outside: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The occupied lattice cells, as an array (k, d), and their numbers of rows. It keeps nothing else of the
    rows.
    """
    low, high, count = np.array(box.lows), np.array(box.highs), np.array(cells)
    present = ~np.isnan(rows).any(axis=1)
    if outside == "absent":
        with np.errstate(invalid="ignore"):
            present &= ((rows >= low) & (rows <= high)).all(axis=1)
    inside = np.clip(rows[present], low, high)
    # Halves cannot overflow where differences would.
    share = (inside / 2 - low / 2) / (high / 2 - low / 2)
    at = np.minimum((share * count).astype(np.int64), count - 1)
    flat = np.ravel_multi_index(tuple(at.T), cells) if at.size else np.empty(0, dtype=np.int64)
    if np.prod([float(c) for c in cells]) <= 1 << 20:
        counts = np.bincount(flat, minlength=int(np.prod(cells)))
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(flat, return_counts=True)
    where = np.stack(np.unravel_index(found, cells), axis=1).astype(np.int64)
    return where.reshape(-1, len(cells)), counts.astype(np.int64)


BITS = 32
SPACING = Fraction(1, 1 << BITS)
TABLE_ERROR = 2.0**-40
"""The largest error of an entry of a table of phi. Tests compare it with balls."""
INFLATED = 1 + 2.0**-30
MOST_COEFFICIENTS = 1 << 17
MOST_DIMENSIONS = 6
BLOCK = 1 << 22
LARGE_TABLE = 1 << 22
CELLS_IN_BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityFamily(ABC):
    """phi, s and the largest move of w_D by one row; all public and computed without data.

    A subclass gives, for each coordinate, the table of phi on the lattice and the row of s at points.
    """

    kind: ClassVar[str]
    orthonormal: ClassVar[bool] = False
    domain: Box | PublicBox

    def _check(self) -> None:
        set_fields(self, domain=as_box(self.domain))
        if self.dimension > MOST_DIMENSIONS:
            raise InvalidParameter(
                parameter="domain", value=f"{self.dimension} dimensions", must=f"have at most {MOST_DIMENSIONS}",
                hint="a density in many dimensions needs more rows than there are; release margins",
            )  # fmt: skip

    def _check_size(self) -> None:
        """Refuse too many coefficients, before any of them is made."""
        count = math.prod(float(m) for m in self.axis_sizes)
        if count > MOST_COEFFICIENTS and self._kept() is None:
            raise InvalidParameter(
                parameter=self._width, value=f"{count:.3g} coefficients", must=f"give at most {MOST_COEFFICIENTS}",
                hint="ask for less detail, or for fewer dimensions",
            )  # fmt: skip

    _width: ClassVar[str] = "order"

    @property
    @abstractmethod
    def cells(self) -> tuple[int, ...]:
        """The number of cells of the lattice along each coordinate."""

    @property
    @abstractmethod
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of functions for each coordinate."""

    @abstractmethod
    def _axis_features(self, axis: int, x: Floats) -> Floats:
        """phi of one coordinate at x, an array (len(x), axis_sizes[axis])."""

    def _axis_synthesis(self, axis: int, x: Floats) -> Floats:
        """s of one coordinate; for most families it is phi."""
        return self._axis_features(axis, x)

    @property
    @abstractmethod
    def height(self) -> float:
        """The number that products of the coordinates' s are multiplied by."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The family, as plain JSON values."""

    def _axis_kernel(self, axis: int) -> tuple[float, float]:
        """b >= sup |phi|^2 and a >= -inf phi(x) . phi(y), over the lattice of one coordinate."""
        return lattice_ends(self, axis)[:2]

    def _one_move(self) -> float | None:
        """sup |phi(x) - phi(y)|^2 of the only coordinate, by comparing all pairs of its lattice."""
        return lattice_ends(self, 0)[2]

    def _kept(self) -> npt.NDArray[np.int64] | None:
        """The kept products, an array (m, d); None means all."""
        return None

    @property
    def box(self) -> Box:
        """The domain, with its ends and sides."""
        assert isinstance(self.domain, Box)
        return self.domain

    @property
    def dimension(self) -> int:
        """d."""
        return self.box.dimension

    @property
    def volume(self) -> float:
        """The volume of the box."""
        return float(np.prod(self.box.sides))

    @property
    def coefficients(self) -> int:
        """The number of released numbers."""
        kept = self._kept()
        return math.prod(self.axis_sizes) if kept is None else int(kept.shape[0])

    def to_dict(self) -> dict[str, Any]:
        """The family for a record or a certificate."""
        return {
            "family": self.kind,
            "low": list(self.box.lows),
            "high": list(self.box.highs),
            **self.parameters,
        }

    describe = formerly("describe", method=True)

    # --- how far a row can go -------------------------------------------------------------------------
    def _products_of_ends(self) -> tuple[float, float]:
        """B >= sup |phi(x)|^2 and A >= -inf phi(x) . phi(y), as products over the coordinates."""
        ends = [self._axis_kernel(k) for k in range(self.dimension)]
        whole = math.prod(Fraction(b) for b, _ in ends)
        against = max(Fraction(a) / Fraction(b) for b, a in ends) * whole
        return float(whole) * INFLATED, float(against) * INFLATED

    def _ends(self) -> tuple[float, float]:
        """sup |phi(x)|^2 and sup |phi(x) - phi(y)|^2, before rounding to the grid: theorem `density-lattice`."""
        whole, against = self._products_of_ends()
        compared = self._one_move() if self.dimension == 1 else None
        return whole, compared or 2 * (whole + against) * INFLATED

    def l2_sensitivity(self, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> float:
        """The L2 sensitivity of w_D to one row, rounding to the grid included; rounded up.

        A replaced row may also become absent, which moves w_D by phi alone, never by more.
        """
        length, move = self._ends()
        rounding = (SPACING + Fraction(2 * TABLE_ERROR)) * Fraction(
            upper(lambda: ball(self.coefficients).sqrt())
        )
        added = Neighbours.parse(neighbours) is Neighbours.ADD_OR_REMOVE
        square = Fraction(length if added else max(move, length))
        return upper(lambda: ball(square).sqrt() + ball(rounding))

    def l1_sensitivity(self, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> float:
        """The L1 sensitivity of w_D to one row, rounding included; rounded up."""
        length, move = self._l1_ends()
        added = Neighbours.parse(neighbours) is Neighbours.ADD_OR_REMOVE
        # A replaced row may come to count as absent, which takes its phi away.
        moved = length if added else max(move, length)
        rounding = self.coefficients * (SPACING + Fraction(2 * TABLE_ERROR))
        return upper(lambda: ball(Fraction(moved) + rounding))

    def _l1_ends(self) -> tuple[float, float]:
        """sup |phi(x)|_1 and sup |phi(x) - phi(y)|_1 over the lattice, the second exact for one coordinate."""
        if max(c * m for c, m in zip(self.cells, self.axis_sizes, strict=True)) > LARGE_TABLE:
            # Cauchy and Schwarz: no table is made.
            length, move = (math.sqrt(self.coefficients * v) * INFLATED for v in self._ends())
            return length, move
        tables = [lattice_table(self, k) for k in range(self.dimension)]
        length = math.prod(float(np.abs(t).sum(axis=1).max()) for t in tables) * INFLATED
        if self.dimension > 1 or tables[0].shape[0] ** 2 * tables[0].shape[1] > 1 << 28:
            return length, 2 * length
        return length, lattice_far(self)

    # --- sums and curves ------------------------------------------------------------------------------
    def features(self, cells: npt.NDArray[np.int64]) -> Floats:
        """phi at lattice cells (k, d), in floats."""
        return self._products([axis_rows(self, k, cells[:, k]) for k in range(self.dimension)])

    def features_at(self, points: Floats) -> Floats:
        """phi at any points of the box (k, d), off the lattice: for public points."""
        return self._products([self._axis_features(k, points[:, k]) for k in range(self.dimension)])

    def synthesis(self, points: Floats) -> Floats:
        """s at points of the box (k, d): the value there is s . w_D / size."""
        rows = [self._axis_synthesis(k, points[:, k]) for k in range(self.dimension)]
        return self.height * self._products(rows)

    def on_axes(self, axes: Sequence[Floats], weights: Floats) -> Floats:
        """s . weights at all points of the product of axes, one coordinate after the other: an array with d axes."""
        kept = self._kept()
        tensor = np.zeros(self.axis_sizes)
        if kept is None:
            tensor = weights.reshape(self.axis_sizes)
        else:
            tensor[tuple(kept.T)] = weights
        for k, x in enumerate(axes):
            tensor = np.moveaxis(np.tensordot(self._axis_synthesis(k, x), tensor, axes=(1, k)), 0, k)
        return np.asarray(self.height * tensor)

    def _products(self, parts: Sequence[Floats]) -> Floats:
        kept = self._kept()
        if kept is None:
            out = parts[0]
            for part in parts[1:]:
                out = (out[:, :, None] * part[:, None, :]).reshape(out.shape[0], -1)
            return out
        out = parts[0][:, kept[:, 0]]
        for k, part in enumerate(parts[1:], start=1):
            out = out * part[:, kept[:, k]]
        return out

    def sums(self, rows: Floats, *, outside: str) -> npt.NDArray[Any]:
        """w_D in grid steps: exact integers. Never to be shown without noise."""
        where, counts = cells_of(rows, self.box, self.cells, outside)
        total = np.zeros(self.coefficients, dtype=object)
        step = max(1, BLOCK // self.coefficients)
        for start in range(0, where.shape[0], step):
            block = np.rint(self.features(where[start : start + step]) * 2.0**BITS).astype(np.int64)
            many = counts[start : start + step]
            # Below this many rows in the block no 64-bit sum can wrap; above, Python's integers are used.
            if int(many.sum()) * int(np.abs(block).max(initial=0)) < 1 << 62:
                total = total + (many @ block).astype(object)
            else:
                total = total + many.astype(object) @ block.astype(object)
        return total


@lru_cache(maxsize=64)
def lattice_points(family: DensityFamily, axis: int) -> Floats:
    """The middles of the lattice cells along one coordinate."""
    low, side, count = family.box.lows[axis], float(family.box.sides[axis]), family.cells[axis]
    points = low + side * ((np.arange(count) + 0.5) / count)
    points.setflags(write=False)
    return np.asarray(points)


@lru_cache(maxsize=64)
def lattice_table(family: DensityFamily, axis: int) -> Floats:
    """phi of one coordinate at every lattice cell."""
    table = np.ascontiguousarray(family._axis_features(axis, lattice_points(family, axis)))
    table.setflags(write=False)
    return table


@lru_cache(maxsize=64)
def _block(family: DensityFamily, axis: int, number: int) -> Floats:
    """phi at one block of lattice cells, always computed for the whole block, so that a cell's number is the
    same in every call.
    """
    points = lattice_points(family, axis)[number * CELLS_IN_BLOCK : (number + 1) * CELLS_IN_BLOCK]
    return np.ascontiguousarray(family._axis_features(axis, points))


def axis_rows(family: DensityFamily, axis: int, cells: npt.NDArray[np.int64]) -> Floats:
    """phi of one coordinate at these lattice cells; a cell's number does not depend on the other cells of the call."""
    if family.cells[axis] * family.axis_sizes[axis] <= LARGE_TABLE:
        return np.asarray(lattice_table(family, axis)[cells])
    out = np.empty((cells.size, family.axis_sizes[axis]))
    block = cells // CELLS_IN_BLOCK
    for number in np.unique(block):
        mine = block == number
        out[mine] = _block(family, axis, int(number))[cells[mine] - number * CELLS_IN_BLOCK]
    return out


@lru_cache(maxsize=256)
def lattice_ends(family: DensityFamily, axis: int) -> tuple[float, float, float]:
    """The largest |phi(x)|^2, minus the least phi(x) . phi(y), the largest |phi(x) - phi(y)|^2: over all cells."""
    table = lattice_table(family, axis)
    gram = table @ table.T
    square = gram.diagonal()
    apart = float((square[:, None] + square[None, :] - 2 * gram).max())
    top = float(square.max())
    # What floats lose is far below 2^-30 of the largest square, which is added.
    return top * INFLATED, (max(0.0, -float(gram.min())) + top * 2.0**-30), apart + top * 2.0**-30


@lru_cache(maxsize=64)
def lattice_far(family: DensityFamily) -> float:
    """The largest |phi(x) - phi(y)|_1 over all pairs of lattice cells of the only coordinate."""
    table = lattice_table(family, 0)
    step = max(1, BLOCK // table.size)
    return INFLATED * max(
        float(np.abs(table[s : s + step, None, :] - table[None, :, :]).sum(axis=2).max())
        for s in range(0, table.shape[0], step)
    )


def as_box(domain: object) -> Box:
    """The declared domain; a PublicBox, as models take it, is accepted too."""
    if isinstance(domain, PublicBox):
        return Box(low=domain.low, high=domain.high)
    if not isinstance(domain, Box):
        raise InvalidParameter(
            parameter="domain", value=type(domain).__name__, must="be a PublicBox or a Box",
            hint="where rows may lie is declared, never read from them",
        )  # fmt: skip
    return domain


def per_axis(name: str, value: Any, dimension: int) -> tuple[float, ...]:
    """One positive length for all coordinates, or one each."""
    if is_number(value):
        return (length_parameter(name, value),) * dimension
    numbers = members(name, value)
    if len(numbers) != dimension:
        raise InvalidParameter(
            parameter=name, value=f"{len(numbers)} numbers", must=f"be one, or {dimension}"
        )
    return tuple(length_parameter(name, v) for v in numbers)
