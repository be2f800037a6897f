"""What all orthonormal bases share: coefficients are means of the basis functions, and errors come in two parts."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, whole
from tacit.functions.bases.families import DensityFamily

__all__ = ["SeriesBasis", "orders_of"]

CELLS = {1: 1024, 2: 512, 3: 256}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesBasis(DensityFamily):
    """f_D(x) = sum_j theta_j psi_j(x), theta_j = (1 / size) sum_i psi_j(x_i): an orthogonal series estimate.

    psi is orthonormal in the unit of the box, phi = psi, and `height` turns a density of the unit box into one of the
    box itself. Sensitivities are computed over the lattice that rows are moved to, all pairs of it: theorem
    `density-lattice`. Source: Hall 2012, 3.1.1.
    """

    orthonormal: ClassVar[bool] = True

    @property
    def cells(self) -> tuple[int, ...]:
        return (CELLS.get(self.dimension, 64),) * self.dimension

    @property
    def height(self) -> float:
        return 1 / self.volume

    @abstractmethod
    def _axis_unit(self, axis: int, u: Floats) -> Floats:
        """The functions of one coordinate, at u in [0, 1]."""

    def _axis_features(self, axis: int, x: Floats) -> Floats:
        u = (x - self.box.lows[axis]) / float(self.box.sides[axis])
        return self._axis_unit(axis, u)

    def square_weights(self) -> Floats:
        """g with integral of f_D^2 = sum_j g_j w_j^2 / size^2."""
        return np.full(self.coefficients, self.height)

    def pair_range(self, size: int) -> tuple[float, float]:
        """The least and largest of ((size - 1)/size - 2) B(x, y), B(x, y) = height phi(x) . phi(y)."""
        length, against = self._products_of_ends()
        factor = (1 + 1 / size) * self.height
        return -factor * length, factor * against

    def square_top(self) -> float:
        """sup of the integral of B(x, .)^2."""
        return self.height * self._ends()[0]


def orders_of(name: str, value: object, dimension: int, *, least: int = 0, most: int) -> tuple[int, ...]:
    """One order for all coordinates, or one each."""
    given = (value,) * dimension if is_number(value) or isinstance(value, bool) else members(name, value)
    if len(given) != dimension:
        raise InvalidParameter(parameter=name, value=f"{len(given)} numbers", must=f"be one, or {dimension}")
    found = tuple(whole(name, v, least=least) for v in given)
    if max(found) > most:
        raise InvalidParameter(parameter=name, value=max(found), must=f"be at most {most}")
    return found


def hermite_functions(count: int, t: Floats) -> Floats:
    """psi_0 .. psi_{count-1} at t: orthonormal on the line, by their three-term recursion."""
    out = np.empty((t.size, count))
    before = np.zeros_like(t)
    now = np.exp(-0.5 * t * t) / math.pi**0.25
    for k in range(count):
        out[:, k] = now
        before, now = now, math.sqrt(2 / (k + 1)) * t * now - math.sqrt(k / (k + 1)) * before
    return out
