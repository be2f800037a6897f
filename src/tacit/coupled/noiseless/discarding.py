"""Samples of a fixed size: a few rows are discarded at random first, so that the number of rows tells nothing.

Of n independent rows of one law N are kept, N = n - d, 0 <= d <= D (D even), uniformly chosen:

    Pr[N = n - d]  proportional to  e^{-epsilon_N |d - D/2|} / (n - d)

Theorem `truncated-histogram-fixed-size`: the truncated histogram of the kept rows is (epsilon_N + epsilon_C, delta)-
private against the same done without the row, if k D <= n, with

    delta = delta_N + max( delta_k(epsilon_C),  sup over means l of Pr[Bin(n - D - 1, l/(n - 1)) <= k - 1]
                                                (1 - e^{epsilon_C} R(l))+ ),    R(l) = Pr[Po(l) <= k-2]/Pr[Po(l) <= k-1]

    delta_N = x^{D/2} (1 - x)/(1 + x - 2 x^{D/2 + 1}),   x = e^{-epsilon_N},

delta_k that of Poisson sampling. The supremum is over a continuum: the first factor falls in l and the second rises,
so that on a cell [l0, l1] the product is at most the first at l0 times the second at l1.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.coupled.noiseless.thresholds import Poisson, at_most, binomial_cell, delta_of_cell, poisson_cell
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.balls import Ball, ball, positive_ball, precision
from tacit.exact.checks import non_negative, positive, whole
from tacit.exact.rounding import Interval, down, up
from tacit.noise.distributions.uniform import uniform_draws
from tacit.noise.lazy_inversion import Uniform
from tacit.noise.source import Source

__all__ = ["FixedSize"]

_BITS = 128
_FIRST_CELLS, _MOST_CELLS = 32, 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """n rows, of which at most `discards` (even) are left out; `size_epsilon` hides how many were kept."""

    rows: int
    discards: int
    size_epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", whole("rows", self.rows, least=2))
        object.__setattr__(self, "discards", whole("discards", self.discards, least=2))
        object.__setattr__(self, "size_epsilon", positive("size_epsilon", self.size_epsilon))
        if self.discards % 2 or self.discards + 2 > self.rows:
            raise InvalidParameter(
                parameter="discards", value=self.discards, must="be even, and leave at least two rows"
            )

    @classmethod
    def hiding(cls, *, rows: int, size_epsilon: float, delta: float) -> FixedSize:
        """With the fewest discards for which delta_N is at most this delta."""
        n = whole("rows", rows, least=4)
        discards = 2
        while discards + 2 <= n:
            made = cls(rows=n, discards=discards, size_epsilon=size_epsilon)
            if made.size_delta.high <= delta:
                return made
            discards += 2 if discards < 64 else 2 * (discards // 64)
        raise NoLaw(
            operation="a truncated histogram of a sample of fixed size",
            reason=f"{n} rows are too few to hide how many were kept",
            hint="allow a larger size_epsilon or delta",
        )

    @property
    def size_delta(self) -> Interval:
        """delta_N: the chance of either end of the number of kept rows, seen by somebody who was kept."""
        half = self.discards // 2
        with precision(_BITS):
            x = (-ball(Fraction(self.size_epsilon))).exp()
            value = x**half * (1 - x) / (1 + x - 2 * x ** (half + 1))
            return Interval(low=down(value), high=up(value))

    def weights(self) -> tuple[Ball, ...]:
        """What the probabilities of keeping n, n - 1, ..., n - D rows are proportional to, at the working precision."""
        x, half = (-ball(Fraction(self.size_epsilon))).exp(), self.discards // 2
        return tuple(x ** abs(d - half) / (self.rows - d) for d in range(self.discards + 1))

    def number(self, source: Source) -> int:
        """How many rows to discard: exactly the law of the theorem, by lazy inversion of one uniform number."""
        uniform = Uniform(value=int(source.words(1)[0]), bits=64, source=source)

        def at_least(d: int) -> Ball:
            weights = self.weights()
            return sum(weights[d:], ball(0)) / sum(weights, ball(0))

        low, high = 0, self.discards
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if uniform.below(partial(at_least, middle)) else (low, middle - 1)
        return low

    def chosen(self, source: Source) -> NDArray[np.int64]:
        """Which rows to discard, as places 0..n-1: a uniform set of `number` of them. It looks at no row."""
        wanted = self.number(source)
        found: set[int] = set()
        while len(found) < wanted:
            found.update(int(k) for k in uniform_draws(self.rows, wanted - len(found), source))
        return np.array(sorted(found), dtype=np.int64)

    def kept(self, counts: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        """The counts of cells after discarding; rows that are in none of them may be discarded too.

        Rows of one cell are alike, so that it does not matter which places they have: they stand cell after cell.
        """
        ends = np.cumsum(np.ravel(counts))
        if len(ends) and int(ends[-1]) > self.rows:
            raise InvalidParameter(parameter="counts", value="more rows", must=f"be of {self.rows} rows")
        cells = np.searchsorted(ends, self.chosen(source), side="right")
        gone = np.bincount(cells, minlength=len(ends) + 1)[: len(ends)]
        return np.asarray(counts - gone.reshape(np.shape(counts)))

    def delta(self, threshold: int, cell_epsilon: float, *, enough: float = 0.0) -> Interval:
        """The theorem's delta at size_epsilon + cell_epsilon; cells of the supremum are refined until it is certainly
        at most `enough`, or no larger than the other term."""
        k = whole("threshold", threshold, least=2)
        c = non_negative("cell_epsilon", cell_epsilon)
        if k * self.discards > self.rows:
            raise NoLaw(
                operation="a truncated histogram of a sample of fixed size",
                reason="the theorem needs threshold * discards <= rows, and "
                f"{k} * {self.discards} is above {self.rows}",
                hint=f"{k * self.discards} rows would do; or a larger size_epsilon, which discards fewer",
            )
        ends = self.size_delta
        with precision(_BITS):
            factor = ball(Fraction(c)).exp()
            cell = delta_of_cell(Poisson(), k, factor)
            cells = _FIRST_CELLS
            while True:
                hidden = self._hidden(k, factor, cells)
                high = up(ball(ends.high) + cell.max(hidden))
                if bool(hidden <= cell) or high <= enough or cells >= _MOST_CELLS:
                    return Interval(low=min(down(ball(ends.low) + cell), high), high=min(high, 1.0))
                cells *= 4

    def _hidden(self, threshold: int, factor: Ball, cells: int) -> Ball:
        """The supremum over the mean l of a cell that is hidden, for 0 < l <= k e^{epsilon_C}; zero for small l."""
        a, n = threshold - 1, self.rows
        top = threshold * factor
        out = ball(0)
        means = [top * j / cells for j in range(cells + 1)]
        for left, right in itertools.pairwise(means):
            law = poisson_cell(right)
            less = positive_ball(1 - factor * (1 - law.chance(a) / at_most(law, a)))
            if bool(less == 0):
                continue
            rate = Fraction(down(left)) / (n - 1) if bool(left > 0) else Fraction(0)
            if rate >= 1:
                continue
            chance = at_most(binomial_cell(n - self.discards - 1, rate), a) if rate > 0 else ball(1)
            out = out.max(chance * less)
        return out
