"""Answers to range queries from noisy bins, or from a noisy tree over them, with the error of every answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact
from tacit.guarantees import Bound
from tacit.mechanisms.base import confidence_level, rho_of_epsilon
from tacit.mechanisms.budgets import Budget
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.ranges import BRANCHINGS, RangeTree
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.spreads import laplace_factor, normal_factor
from tacit.mechanisms.strategies import variance_of
from tacit.mechanisms.tables import ReleasedTables, TableMechanism, mean_factor
from tacit.noise.source import Source, default_source

__all__ = ["RangeAnswers", "best_trees"]

SAMPLE = 200
FEW = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeAnswers(TableMechanism):
    """The counts of ranges first..last of ordered bins: sums of noisy bins, or of the fitted bins of a noisy tree.

    Guarantee: that of the noise on the bins, or of the levels of the tree together. The rest is post-processing.
    """

    noise: Laplace | RoundedGaussian | RangeTree
    ranges: npt.NDArray[np.int64]
    cells: int

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | RoundedGaussian | RangeTree):
            raise InvalidParameter(
                parameter="noise", value=type(self.noise).__name__, must="be Laplace, RoundedGaussian or a RangeTree"
            )  # fmt: skip
        found = np.asarray(self.ranges)
        if found.ndim != 2 or found.shape[1] != 2 or not found.size or int(found.max()) >= self.cells:
            raise InvalidParameter(
                parameter="ranges", value=str(found.shape), must="be pairs of bins, first and last"
            )

    @property
    def _mechanisms(self) -> tuple[Laplace | RoundedGaussian, ...]:
        if isinstance(self.noise, RangeTree):
            return tuple(m for m in self.noise.mechanisms if m is not None)
        return (self.noise,)

    @property
    def bound(self) -> Bound:
        return self.noise.bound

    @property
    def event(self) -> Event:
        """That of the bins; a tree has several (`events`)."""
        (only,) = self.events
        return only

    @property
    def events(self) -> tuple[Event, ...]:
        """One for the bins, or one for each level of the tree."""
        return tuple(m.event for m in self._mechanisms)

    @property
    def theorems(self) -> tuple[str, ...]:
        found = self._mechanisms[0].theorems
        if len(self._mechanisms) == 1:
            return found
        return (*found, "linear-strategies", "compose-gdp" if self.gaussian else "compose-pure")

    @property
    def exact_epsilon(self) -> Fraction | None:
        """Summed over the levels of a tree."""
        each = [m.exact_epsilon for m in self._mechanisms]
        return None if None in each else sum((e for e in each if e is not None), Fraction(0))

    @property
    def exact_rho(self) -> Fraction:
        if self.exact_epsilon is not None:
            return rho_of_epsilon(self.exact_epsilon)
        return sum((m.exact_rho or Fraction(0) for m in self._mechanisms), Fraction(0))

    @property
    def gaussian(self) -> bool:
        """Is the noise Gaussian?"""
        return isinstance(self._mechanisms[0], RoundedGaussian)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {**self.noise.noise_distribution, "on": f"{self.cells} bins, of which the ranges are sums"}

    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        source = source if source is not None else default_source()
        bins = integer_array(counts).ravel()
        if bins.size != self.cells:
            raise InvalidParameter(
                parameter="counts", value=f"{bins.size} numbers", must=f"have {self.cells} bins"
            )
        if isinstance(self.noise, RangeTree):
            fitted: Any = self.noise.release(bins, source=source).cells
        else:
            fitted = np.asarray(self.noise.release(bins, source=source).values)
            if fitted.dtype != object and float(np.abs(fitted.astype(np.float64)).sum()) >= 2.0**62:
                fitted = fitted.astype(object)
        below = np.concatenate([np.zeros(1, dtype=fitted.dtype), np.cumsum(fitted)])
        first, last = self.ranges.T
        return ReleasedTables(values=(below[last + 1] - below[first],), publishable=source.publishable)

    # --- errors -----------------------------------------------------------------------------------------
    def _spread(self) -> tuple[Floats, Floats, Floats]:
        """The variance of each answer, how many alike Laplace variables its noise is like, and how many at the least:
        as if all of it came from variables as wide as its widest."""
        if isinstance(self.noise, RangeTree):
            return self.noise.range_spreads(self.ranges)
        lengths = (self.ranges[:, 1] - self.ranges[:, 0] + 1).astype(np.float64)
        return lengths * self.noise.variance, lengths, lengths

    def _lumps(self) -> float:
        """Coarse noise is lumpy: the variance of its continuous counterpart, whose tail is above it, over its own."""
        found = [
            (2 * float(m.distribution.noise_scale) ** 2, variance_of(m))
            for m in self._mechanisms
            if isinstance(m, Laplace)
        ]
        # Noise of less variance than this is never seen.
        return max((wide / own for wide, own in found if own > 1e-200), default=1.0)

    def mean_sizes(self) -> list[float]:
        variance, terms, _ = self._spread()
        factor = math.sqrt(2 / math.pi) if self.gaussian else mean_factor(terms)
        return [float((np.sqrt(variance) * factor).mean())]

    def variances(self) -> list[float]:
        return [float(self._spread()[0].mean())]

    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """Of the normal law, or of Laplace variables, as many as it is like or at the least, whichever is wider;
        half a step for the grid.

        A sum of unlike Laplace variables is a normal one whose variance is a sum of weighted exponential ones. Fewer
        and equal weights, as large as the largest, majorise these, so that far out its tail is the heavier one; near
        the middle the law with the same four moments is nearer.
        """
        miss = float(1 - confidence_level(confidence))
        variance, terms, least = self._spread()
        if isinstance(self.noise, RoundedGaussian):
            variance = terms * self.noise.interval_variance
        if self.gaussian:
            return [normal_factor(miss) * np.sqrt(variance) + 0.5]
        factor = np.maximum(*(_factors(np.floor(numbers), miss) for numbers in (terms, least)))
        return [factor * np.sqrt(variance * self._lumps()) + 0.5]


def _factors(numbers: Floats, miss: float) -> Floats:
    each, place = np.unique(numbers, return_inverse=True)
    return np.asarray([laplace_factor(float(k), miss) for k in each])[place.reshape(numbers.shape)]


def best_trees(
    ranges: npt.NDArray[np.int64], cells: int, budget: Budget, *, replaced: bool, rows: int, absent: bool
) -> Iterator[tuple[str, RangeTree]]:
    """The best tree of Laplace noise within epsilon, and of Gaussian noise within mu where there is one.

    Trees are compared by the mean error of the asked ranges, of many of them by some at even distances.
    """
    some = ranges[np.linspace(0, len(ranges) - 1, min(len(ranges), SAMPLE)).astype(np.int64)]
    few = [(int(a), int(b)) for a, b in some[:: max(len(some) // FEW, 1)]]
    # One level and the sum of all bins: where that is public, it helps.
    widths = [*(b for b in BRANCHINGS if b < cells), *([cells] if cells > 1 else [])]
    for gaussian in (False, True) if budget.mu > 0 else (False,):
        made = [
            RangeTree._made(cells, b, budget, gaussian, replaced, rows, absent or rows > 1, few)
            for b in widths
        ]
        if made:
            yield (
                "Gaussian noise on a tree of sums" if gaussian else "Laplace noise on a tree of sums",
                min(made, key=lambda t: RangeAnswers(noise=t, ranges=some, cells=cells).mean_sizes()[0]),
            )
