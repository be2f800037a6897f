"""Matrices of exact numbers, applied to rows of random reals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.balls import ball
from tacit.exact.checks import members
from tacit.exact.enclosures import Enclosure, Reals
from tacit.exact.rationals import Exact, exact_parameter

__all__ = ["Matrix"]


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
