"""Running totals by a factorisation on a grid: C x with whole entries of C, Gaussian noise, and totals read from it.

The running totals of x_1..x_n are A x, A the triangle of ones. The noise is added to C x for a lower triangular C, and
A C^-1 turns it into totals. Here C is the root of A with its columns scaled to norm 1, or the first `bands` diagonals
of the root where a unit takes part several times, and its entries are rounded to multiples of 2^-GRID: so that C x is
exact on that grid, its sensitivity is a sum of squares of whole numbers, and no numerical delta is left. Theorem
`running-totals`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.accounting.correlated import CorrelatedNoise
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import set_fields, whole
from tacit.exact.data_classes import dataclass

__all__ = ["GridFactor"]

GRID = 14
"""Entries of C are multiples of 2^-GRID."""
MOST_STEPS = 1024


@dataclass(frozen=True, kw_only=True)
class GridFactor:
    """C for this many steps, in units of 2^-GRID; a unit with several `participations` has them `separation` steps
    apart.

    One participation: columns of norm 1 (normalised square root). Several: the square root with as many bands as the
    separation, whose worst schedule is known (`participation-schedules`).
    """

    steps: int
    participations: int = 1
    separation: int = 1

    def __post_init__(self) -> None:
        set_fields(
            self, steps=whole("steps", self.steps), participations=whole("participations", self.participations),
            separation=whole("separation", self.separation),
        )  # fmt: skip
        if not 1 <= self.steps <= MOST_STEPS:
            raise InvalidParameter(parameter="steps", value=self.steps, must=f"be 1 to {MOST_STEPS}")
        for name in ("participations", "separation"):
            if getattr(self, name) < 1:
                raise InvalidParameter(parameter=name, value=getattr(self, name), must="be at least 1")

    @property
    def several(self) -> bool:
        """Can a unit take part more than once?"""
        return min(self.participations, -(-self.steps // self.separation)) > 1

    @property
    def strategy(self) -> str:
        """Its name among the strategies of `CorrelatedNoise`."""
        return "banded_square_root" if self.several else "normalised_square_root"

    @cached_property
    def whole_matrix(self) -> npt.NDArray[np.int64]:
        """C in units of 2^-GRID: lower triangular, no entry below 0."""
        n, one = self.steps, 1 << GRID
        root = np.ones(n)
        for k in range(1, n):
            root[k] = root[k - 1] * (2 * k - 1) / (2 * k)
        matrix = np.zeros((n, n), dtype=np.int64)
        if self.several:
            root[max(self.separation, 1) :] = 0.0
        for j in range(n):
            column = root[: n - j]
            norm = 1.0 if self.several else math.sqrt(float(column @ column))
            matrix[j:, j] = np.rint(column / norm * one)
        return matrix

    @cached_property
    def squared_steps(self) -> int:
        """The squared move of C x by a unit that moves each of its steps by 1, in squared units; rounded up."""
        matrix = self.whole_matrix
        if not self.several:
            return max(int(v) for v in (matrix.astype(object) ** 2).sum(axis=0))
        coefficients = [Fraction(int(v), 1 << GRID) for v in matrix[:, 0] if v > 0]
        found = CorrelatedNoise(
            strategy="toeplitz", steps=self.steps, participations=self.participations, separation=self.separation,
            coefficients=coefficients,
        ).sensitivity  # fmt: skip
        return math.ceil((Fraction(found) * (1 << GRID)) ** 2)

    @cached_property
    def readout(self) -> Floats:
        """A C^-1 in units of 2^-GRID: its row t turns the noisy numbers up to step t into the running total there."""
        from scipy.linalg import solve_triangular

        inverse = solve_triangular(self.whole_matrix.astype(np.float64), np.eye(self.steps), lower=True)
        return np.cumsum(inverse, axis=0)

    def combined(self, counts: npt.NDArray[np.int64], step: int) -> npt.NDArray[np.int64]:
        """(C x) at a step, a number from 1, of the true counts of all steps up to it (first axis); in units."""
        return np.asarray(np.tensordot(self.whole_matrix[step - 1, :step], counts[:step], axes=1))

    def total(self, noisy: Floats, step: int) -> Floats:
        """The running total at a step, of the noisy numbers up to it."""
        return np.asarray(np.tensordot(self.readout[step - 1, :step], noisy[:step], axes=1))

    def spread(self, step: int) -> float:
        """The standard deviation of the total at a step, if that of the noise on C x is 1 unit."""
        return float(np.linalg.norm(self.readout[step - 1, :step]))

    @property
    def largest_error(self) -> float:
        """The largest standard deviation of a total at mu = 1."""
        worst = max(self.spread(t) for t in range(1, self.steps + 1))
        return worst * math.sqrt(self.squared_steps)
