"""Arrays of floats with a proved bound on the distance of each from its real number.

Only +, -, *, / and square root are used: IEEE 754 rounds them correctly, to within 2^-53 of the result,
on every machine. Radii are inflated at each step by more than their own rounding can lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import members
from tacit.exact.rounding import Exact, ball, exact_parameter

UNIT = 2.0**-52
SLACK = 1.0 + 2.0**-48
TINY = 1e-300


class Enclosure:
    """Reals x with |x - mid| <= rad, elementwise; a NaN or infinity in either means 'not known'."""

    __slots__ = ("mid", "rad")
    __array_ufunc__ = None

    def __init__(self, mid: Floats, rad: Floats | float = 0.0) -> None:
        self.mid = mid
        self.rad: Floats = np.broadcast_to(np.asarray(rad, dtype=np.float64), mid.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the arrays."""
        return self.mid.shape

    def _rounded(self, mid: Floats, rad: Floats) -> Enclosure:
        return Enclosure(mid, (rad + np.abs(mid) * UNIT) * SLACK + TINY)

    def __add__(self, other: Any) -> Enclosure:
        other = _enclosed(other)
        return self._rounded(self.mid + other.mid, self.rad + other.rad)

    __radd__ = __add__

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.mid, self.rad)

    def __sub__(self, other: Any) -> Enclosure:
        return self + (-_enclosed(other))

    def __rsub__(self, other: Any) -> Enclosure:
        return _enclosed(other) + (-self)

    def __mul__(self, other: Any) -> Enclosure:
        other = _enclosed(other)
        rad = np.abs(self.mid) * other.rad + self.rad * (np.abs(other.mid) + other.rad)
        return self._rounded(self.mid * other.mid, rad)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Enclosure:
        other = _enclosed(other)
        # |x/y - m/n| <= (rx + |m/n| ry) / (|n| - ry); a divisor that may be 0 makes the quotient unknown.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            quotient = self.mid / other.mid
            least = np.abs(other.mid) * (1.0 - UNIT) - other.rad
            rad = (self.rad + np.abs(quotient) * SLACK * other.rad + TINY) / np.where(
                least > 0, least, np.nan
            )
        return self._rounded(quotient, rad * SLACK)

    def __getitem__(self, key: Any) -> Enclosure:
        return Enclosure(self.mid[key], self.rad[key])

    def root(self) -> Enclosure:
        """Square root; unknown if the argument may be 0 or negative."""
        with np.errstate(invalid="ignore", divide="ignore"):
            low = self.mid * (1.0 - UNIT) - self.rad
            result = np.sqrt(self.mid)
            rad = self.rad / np.sqrt(np.where(low > 0, low, np.nan))
        return self._rounded(result, rad * SLACK)

    def total(self) -> Enclosure:
        """The sum over the last axis, kept as an axis of length one: error at most n 2^-52 sum |x|."""
        n = self.mid.shape[-1]
        size = np.abs(self.mid).sum(axis=-1, keepdims=True)
        rad = self.rad.sum(axis=-1, keepdims=True) * (1.0 + n * UNIT) + size * (n * UNIT * 2.0)
        return self._rounded(self.mid.sum(axis=-1, keepdims=True), rad)

    def running(self) -> Enclosure:
        """The sums of the first 1, 2, .. n entries of the last axis: the same bound for each."""
        n = self.mid.shape[-1]
        size = np.cumsum(np.abs(self.mid), axis=-1)
        rad = np.cumsum(self.rad, axis=-1) * (1.0 + n * UNIT * 2.0) + size * (n * UNIT * 2.0)
        return self._rounded(np.cumsum(self.mid, axis=-1), rad)

    def apply(self, matrix: Floats) -> Enclosure:
        """The product with the transpose of a matrix of exact floats, over the last axis."""
        n = self.mid.shape[-1]
        size = np.abs(self.mid) @ np.abs(matrix.T)
        rad = (self.rad @ np.abs(matrix.T) + size * (n * UNIT * 2.0)) * (1.0 + n * UNIT * 4.0)
        return self._rounded(self.mid @ matrix.T, rad)


Reals: TypeAlias = Any
"""Enclosure, or a numpy object array of flint balls: formulas are written once for both."""


def _enclosed(value: Any) -> Enclosure:
    if isinstance(value, Enclosure):
        return value
    return Enclosure(np.asarray(float(value)))


def constant(value: float, rad: float) -> Enclosure:
    """One real number known to within rad."""
    return Enclosure(np.asarray(value), rad)


def root(values: Reals) -> Reals:
    """Elementwise square root."""
    if isinstance(values, Enclosure):
        return values.root()
    flat = [v.sqrt() for v in values.ravel()]
    return _objects(flat).reshape(values.shape)


def total(values: Reals) -> Reals:
    """The sum over the last axis, kept as an axis of length one."""
    if isinstance(values, Enclosure):
        return values.total()
    return values.sum(axis=-1, keepdims=True)


def running(values: Reals) -> Reals:
    """The sums of the first 1, 2, .. n entries of the last axis."""
    if isinstance(values, Enclosure):
        return values.running()
    return np.cumsum(values, axis=-1)


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


# Matrices of exact numbers, applied to rows of random reals.


class Matrix:
    """A matrix of exact numbers that multiplies rows of either kind of real."""

    __slots__ = ("_exact", "_floats", "shape")

    def __init__(self, name: str, rows: Sequence[Sequence[Exact]] | npt.NDArray[np.float64]) -> None:
        exact = [
            [exact_parameter(name, v, positive=False) for v in members(name, row)]
            for row in members(name, rows)
        ]
        if not exact or not exact[0] or len({len(row) for row in exact}) != 1:
            raise InvalidParameter(parameter=name, value=rows, must="be a matrix with at least one entry")
        self._exact = exact
        self.shape = (len(exact), len(exact[0]))
        floats = np.array([[float(v) for v in row] for row in exact])
        same = all(Fraction(float(v)) == v for row in exact for v in row)
        self._floats: npt.NDArray[np.float64] | None = floats if same else None

    def apply(self, rows: Reals) -> Reals:
        """Rows times the transpose."""
        if isinstance(rows, Enclosure):
            if self._floats is not None:
                return rows.apply(self._floats)
            floats = np.array([[float(v) for v in row] for row in self._exact])
            product = rows.apply(floats)
            # Entries are rounded once, by at most 2^-53 of themselves.
            reach = (np.abs(rows.mid) + rows.rad) @ np.abs(floats.T)
            return Enclosure(product.mid, product.rad + reach * 2.0**-51 + 1e-300)
        out = np.empty((rows.shape[0], self.shape[0]), dtype=object)
        for i in range(rows.shape[0]):
            for j, row in enumerate(self._exact):
                out[i, j] = sum((ball(v) * rows[i, c] for c, v in enumerate(row)), 0 * rows[i, 0])
        return out

    def is_singular(self) -> bool:
        """Whether the determinant of a square matrix is 0, exactly."""
        entries = [flint.fmpq(v.numerator, v.denominator) for row in self._exact for v in row]
        return bool(flint.fmpq_mat(*self.shape, entries).det() == 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and self._exact == other._exact

    def __hash__(self) -> int:
        return hash(tuple(map(tuple, self._exact)))
