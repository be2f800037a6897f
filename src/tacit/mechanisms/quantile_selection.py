"""One quantile by selection: for pure epsilon the best value, with an interval from further selections."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.balls import Ball, ball
from tacit.exact.checks import settle
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.mechanisms.base import Mechanism, confidence_level, epsilon_parameter, shown
from tacit.mechanisms.cumulative import checked_bins
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.quantiles import NoisyQuantiles, increasing_edges
from tacit.mechanisms.sensitivity import Score
from tacit.noise import uniform_integer
from tacit.noise.lazy_inversion import Uniform
from tacit.noise.source import Source, default_source

__all__ = ["QuantileSelection"]

SLACK = 2.0**-48


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileSelection(Mechanism):
    """Three choices by the exponential mechanism at epsilon / 3: a bin for the quantile, and one for each end.

    The score of bin t is minus the distance of a target rank from [F(t-1), F(t)] - q N (the first and the last bin go
    on for ever), which one unit moves by rank_sensitivity at most (`rank-score`); the best score is 0. The targets are
    0, -c and c, c being what a choice among K stays within at 1 - (1 - confidence) / 2, so that each end lies on its
    side of the true bin.
    Guarantee: Pure(epsilon). Assumptions: one histogram over K public bins; rank_sensitivity as declared.
    Against the tree at the same epsilon = 1 on 10^4 rows over 4096 bins: the value's rank is off by 4.5 (root mean
    square) instead of 12, the interval spans 77 ranks instead of 60. For several quantiles the tree is better.
    Theorems `exponential-mechanism`, `compose-pure`, `quantile-intervals`. Source: Smith 2011; McSherry, Talwar 2007.
    """

    bins: int
    share: Exact
    rank_sensitivity: Exact
    epsilon: Exact
    confidence: Exact = 0.95

    def __post_init__(self) -> None:
        settle(self, bins=checked_bins(self.bins))
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        exact_parameter("rank_sensitivity", self.rank_sensitivity)
        settle(self, rank_sensitivity=self.rank_sensitivity)
        confidence_level(self.confidence)
        settle(self, confidence=self.confidence)
        share = exact_parameter("share", self.share, positive=False)
        if not 0 < share < 1:
            raise InvalidParameter(parameter="share", value=self.share, must="lie strictly between 0 and 1")
        settle(self, share=self.share)

    @property
    def _choice(self) -> Exponential:
        return Exponential(
            epsilon=epsilon_parameter(self.epsilon) / 3, sensitivity=Score(self.rank_sensitivity)
        )

    @property
    def reach(self) -> int:
        """c: ranks that an end's choice stays within, with probability 1 - (1 - confidence) / 2."""
        level = 1 - (1 - confidence_level(self.confidence)) / 2
        return math.ceil(self._choice.error_quantile(level, candidates=self.bins) * (1 + 1e-9))

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def event(self) -> Event:
        """Three exponential mechanisms."""
        return events.RepeatedEvent(event=self._choice.event, times=3)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("exponential-mechanism", "compose-pure", "quantile-intervals")

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "exponential mechanism on ranks, three times",
            "rate": shown(self._choice.rate),
            "exact": True,
        }

    def release(
        self, counts: npt.ArrayLike, *, edges: npt.ArrayLike, source: Source | None = None
    ) -> NoisyQuantiles:
        """The middle of the chosen bin, and the outer edges of the ends' bins (widened to hold it)."""
        source = source if source is not None else default_source()
        array = integer_array(counts, name="counts")
        if array.shape != (self.bins,):
            raise InvalidParameter(
                parameter="counts", value=f"shape {array.shape}", must=f"be one histogram over {self.bins} bins",
                hint="a unit's rows may lie in several cells: use the cumulative counts for those",
            )  # fmt: skip
        if array.min() < 0:
            raise InvalidParameter(parameter="counts", value="an array", must="hold integers of at least 0")
        borders = increasing_edges(self.bins, edges)
        share = exact_parameter("share", self.share, positive=False)
        at, low, high = (self._bin(array, share, target, source) for target in (0, -self.reach, self.reach))
        value = (borders[at] + borders[at + 1]) / 2
        return NoisyQuantiles(
            value=np.array([value]),
            low=np.array([borders[min(low, at)]]),
            high=np.array([borders[max(high, at) + 1]]),
            publishable=source.publishable,
        )

    def _bin(self, counts: npt.NDArray[Any], share: Fraction, target: int, source: Source) -> int:
        """The exponential mechanism by rejection: a uniform bin, kept with probability e^(-rate distance).

        The best distance is 0, so that a round of 16 tries for each bin fails with probability e^-16 at most.
        """
        ranks = np.concatenate([[0], np.cumsum(counts.astype(object))])
        rank, rate = share * int(ranks[-1]) + target, self._choice.rate
        left, right, middle = ranks[:-1].astype(np.float64), ranks[1:].astype(np.float64), float(rank)
        left[0], right[-1] = -np.inf, np.inf
        size = abs(middle) + float(ranks[-1])
        near = np.exp(-float(rate) * np.maximum(np.maximum(left - middle, middle - right), 0.0))

        def exactly(k: int) -> Ball:
            before = int(ranks[k]) - rank if k else Fraction(0)
            after = rank - int(ranks[k + 1]) if k < self.bins - 1 else Fraction(0)
            return (-ball(rate * max(before, after, Fraction(0)))).exp()

        while True:
            tried = uniform_integer(self.bins, size=16 * self.bins, source=source)
            words = source.words(tried.size)
            chance, drawn = near[tried], words.astype(np.float64) * 2.0**-64
            # Floats decide all but what lies within their error; that is settled by balls.
            error = SLACK * (1 + size * float(rate)) * chance + 2.0**-62
            for i in np.flatnonzero(drawn < chance + error):
                k = int(tried[i])
                if drawn[i] < chance[i] - error[i]:
                    return k
                if Uniform(value=int(words[i]), bits=64, source=source).below(partial(exactly, k)):
                    return k
