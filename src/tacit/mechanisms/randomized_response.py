"""Randomised response: each person's bit or category is told with a known chance of a lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import SimpleEvent
from tacit.exact.balls import ball, upper
from tacit.exact.checks import settle, whole
from tacit.exact.rationals import Exact
from tacit.mechanisms.base import confidence_level, epsilon_parameter, shown
from tacit.mechanisms.grid import Released
from tacit.mechanisms.local import LocalMechanism, settle_categories
from tacit.noise import Bernoulli, CertifiedReal, uniform_integer
from tacit.noise.source import Source, default_source

__all__ = ["RandomizedResponse", "ResponseComparison"]


@lru_cache(maxsize=64)
def _lie(epsilon: Fraction, categories: int) -> Bernoulli:
    """The coin of a lie: (k - 1) / (e^epsilon + k - 1)."""
    k = categories - 1
    chance = CertifiedReal(evaluate=lambda: k / (ball(epsilon).exp() + k), name="the chance of a lie")
    return Bernoulli(probability_of_one=chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseComparison:
    """Errors of an estimated share of ones among n people, by randomised response and by central Laplace noise."""

    response_std: float
    laplace_std: float
    response_error: float
    laplace_error: float

    @property
    def ratio(self) -> float:
        """How many times larger the local error is; it grows as sqrt(n)."""
        return self.response_std / self.laplace_std


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(LocalMechanism):
    """The truth with probability p = e^epsilon / (e^epsilon + k - 1), else one of the k - 1 others, uniformly.

    Categories are 0..k-1, or `labels`: then values and answers are labels.
    Guarantee: Pure(epsilon) for each answer of each person, without a trusted curator; reached. Sampling is exact.
    Estimates are unbiased: (c - n q) / (p - q), q = 1 / (e^epsilon + k - 1); for a bit the variance of the estimated
    count is exactly n e^epsilon / (e^epsilon - 1)^2, whatever the data. Theorems `randomised-response`,
    `local-intervals`. Source: Warner 1965; lecture 2, Thm 2.3 to 2.5 (whose variance is a bound, four times larger).
    """

    epsilon: Exact
    categories: int = 2
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        settle_categories(self)

    @property
    def event(self) -> SimpleEvent:
        """Randomised response of one person's answer."""
        return events.RandomizedResponseEvent(epsilon=float(self.bound.epsilon), categories=self.categories)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("randomised-response",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "randomised response",
            "epsilon": shown(epsilon_parameter(self.epsilon)),
            "categories": int(self.categories),
            "exact": True,
        }

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """One answer for each person; values are categories, one a person: labels, or 0..k-1."""
        source = source if source is not None else default_source()
        truth = self._column("values", values)
        k = int(self.categories)
        lie = _lie(epsilon_parameter(self.epsilon), k).sample(size=truth.shape, source=source)
        # A uniform other category: 1..k-1 further round, drawn for everyone so that time tells nothing.
        turn = 1 + uniform_integer(k - 1, size=truth.shape, source=source)
        # From 2^62 categories on the turns are Python integers; the type of the answers is that of the categories.
        answers = np.asarray((truth + lie * turn) % k, dtype=np.int64 if k <= 1 << 63 else object)
        return self._named(answers, source.publishable)

    def supports(self, answers: object) -> npt.NDArray[np.bool_]:
        """The category that was answered."""
        given = self._column("answers", answers)  # type: ignore[arg-type]
        return np.asarray(given[:, None] == np.arange(self.categories)[None, :])

    def supported(self, answers: object) -> tuple[npt.NDArray[np.int64], int]:
        given = self._column("answers", answers)  # type: ignore[arg-type]
        return np.bincount(given.ravel().astype(np.int64), minlength=self.categories), given.size

    def _ball_chances(self) -> tuple[Any, Any, Any]:
        grown, k = ball(epsilon_parameter(self.epsilon)).exp(), self.categories
        total = grown + (k - 1)
        return grown / total, 1 / total, ball(epsilon_parameter(self.epsilon)).expm1() / total

    def _chances(self) -> tuple[float, float, float]:
        """p, q and p - q as floats."""
        e, k = float(epsilon_parameter(self.epsilon)), self.categories
        shrink = math.exp(-e)
        total = 1 + (k - 1) * shrink
        return 1 / total, shrink / total, -math.expm1(-e) / total

    def variance(self, *, people: int, count: int | None = None) -> float:
        """Var of the estimated count of one category: [n_j p(1-p) + (n - n_j) q(1-q)] / (p-q)^2, rounded up.

        For a bit this is n e^epsilon / (e^epsilon - 1)^2 whatever the count; else without a count, the worst one.
        """
        n, inside = self._counts(people, count)
        exact, k = epsilon_parameter(self.epsilon), self.categories

        def formula(members: int) -> float:
            def value() -> Any:
                # With w = e^-epsilon: p(1-p) = (k-1) w / t^2, q(1-q) = w (1 + (k-2) w) / t^2, p-q = (1-w)/t.
                w = (-ball(exact)).exp()
                return (members * (k - 1) * w + (n - members) * w * (1 + (k - 2) * w)) / (
                    -ball(exact)
                ).expm1() ** 2

            return upper(value)

        return max(formula(0), formula(n)) if inside is None else formula(inside)

    def expected_error(self) -> float:
        """The chance that one answer is a lie: (k - 1) / (e^epsilon + k - 1)."""
        exact, k = epsilon_parameter(self.epsilon), self.categories
        return upper(lambda: (k - 1) / (ball(exact).exp() + (k - 1)))

    def compared_with_laplace(self, *, people: int, confidence: Exact = 0.95) -> ResponseComparison:
        """Lecture 2's comparison for the share of ones: sqrt(n) / epsilon locally, 1 / epsilon with a curator.

        Laplace noise of scale 1 / (n epsilon) for the share, replace-one neighbours, error b ln(1/miss).
        """
        n = whole("people", people, least=1)
        e, miss = float(epsilon_parameter(self.epsilon)), float(1 - confidence_level(confidence))
        return ResponseComparison(
            response_std=math.sqrt(self.variance(people=n)) / n,
            laplace_std=math.sqrt(2) / (n * e),
            response_error=self.count_error(people=n, confidence=confidence) / n,
            laplace_error=math.log(1 / miss) / (n * e),
        )
