"""Permute-and-flip: the exponential mechanism's better brother."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.exact.balls import ball, precision
from tacit.exact.checks import settle, whole
from tacit.exact.rationals import Exact
from tacit.mechanisms.base import confidence_level, epsilon_parameter, shown
from tacit.mechanisms.exponential import HINT, SelectionMechanism, exact_scores
from tacit.mechanisms.sensitivity import Score, need
from tacit.noise import Bernoulli, permutation
from tacit.noise.source import Source

__all__ = ["PermuteAndFlip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(SelectionMechanism):
    """Candidates in random order, each taken with chance exp(-rate (best - score)); rate = epsilon / (2 sensitivity).

    Guarantee: Pure(epsilon), exactly. Its losses do *not* have the exponential mechanism's bounded range, so that
    only the pure bound is claimed for composition. Its expected error is never above the exponential mechanism's,
    and down to half of it. Reached as the number of candidates grows. Theorem `permute-and-flip`.
    Source: McKenna, Sheldon 2020; Ding et al. 2021 (the same law as noisy maximum with exponential noise).
    """

    epsilon: Exact
    sensitivity: Score

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        need("permute-and-flip", self.sensitivity, (Score,), HINT)

    @property
    def event(self) -> Event:
        """Permute-and-flip: pure epsilon, and no more."""
        return events.PermuteAndFlipEvent(epsilon=float(self.bound.epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("permute-and-flip",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {"distribution": "permute-and-flip", "rate": shown(self.rate), "exact": True}

    def _choose(self, scores: list[Fraction], source: Source) -> int:
        best = max(scores)
        for i in permutation(len(scores), source=source):
            gap = (best - scores[int(i)]) * self.rate
            # The best candidate's coin always shows heads, so the loop ends.
            if gap == 0 or int(Bernoulli.exponential(gap).sample(source=source)):
                return int(i)
        raise AssertionError("unreachable: the best candidate is always taken")

    def probabilities(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Pr[i] = y_i * integral over t in [0, 1] of prod_{j != i} (1 - t y_j), y = exp(-rate gap); O(k^2)."""
        import flint

        exact = exact_scores(scores)
        best = max(exact)
        # Coefficients of the product alternate and may grow like 2^k: as many more bits are kept.
        with precision(128 + 2 * len(exact)):
            chances = [(-ball((best - s) * self.rate)).exp() for s in exact]
            out = []
            for i, y in enumerate(chances):
                product = flint.arb_poly([1])
                for j, other in enumerate(chances):
                    if j != i:
                        product = product * flint.arb_poly([1, -other])
                out.append(float((y * product.integral()(flint.arb(1))).mid()))
        return np.array(out)

    def _miss(self, gap: float, k: int) -> float:
        """The chance of not taking the best of k, if all others are `gap / rate` below it."""
        y = math.exp(-gap)
        if k * y < 1e-8:
            return (k - 1) * y / 2
        return 1 + math.expm1(k * math.log1p(-y) if y < 1 else -math.inf) / (k * y)

    def expected_error(self, *, candidates: int) -> float:
        """max over gaps g of g Pr[not the best] with all others g below it: the worst scores."""
        k = whole("candidates", candidates, least=1)
        if k == 1:
            return 0.0
        gaps = np.linspace(0.0, 2 * math.log(k) + 8, 4001)
        values = [g * self._miss(float(g), k) for g in gaps]
        # The curve is smooth with its maximum inside: the grid's error is of second order.
        return float(max(values)) * (1 + 1e-5) / float(self.rate)

    def error_quantile(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """The gap g with Pr[not the best] = 1 - confidence if all others are g below: exact for the worst scores."""
        k = whole("candidates", candidates, least=1)
        allowed = float(1 - confidence_level(confidence))
        if self._miss(0.0, k) <= allowed:
            return 0.0
        low, high = 0.0, math.log(k / allowed) + 1
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._miss(middle, k) > allowed else (low, middle)
        return high / float(self.rate)
