"""Noise shaped by a convex body: the K-norm mechanism, and its difference form for bodies that are not symmetric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import Approximate, Bound, Pure
from tacit.mechanisms.base import confidence_level, epsilon_parameter, shown
from tacit.mechanisms.sensitivity import need
from tacit.mechanisms.shaped import Radial, ShapedMechanism
from tacit.mechanisms.shapes import Contribution, Gauge, HullGauge
from tacit.noise import (
    Body,
    ContinuousDistribution,
    Difference,
    GridVector,
    KNormVector,
    SampledBody,
    SeededSource,
    grid_spacing,
)
from tacit.noise.source import Source

__all__ = ["KNorm", "KNormDifference"]

_DIFFERENCE_HINT = "it is sized by the gauge of one contribution (or of the move, in the hull of K and -K)"


@dataclass(frozen=True, slots=True, kw_only=True)
class KNorm(Radial):
    """K-norm noise for a symmetric body: density proportional to e^(-gauge(x) / noise_scale), rounded to the grid.

    r u with r ~ Gamma(d + 1, noise_scale), u uniform in K. Guarantee: Pure(epsilon = sensitivity / noise_scale); for a
    body sampled in floats Approximate(epsilon, (1 + e^epsilon) numerical_delta). Assumption: K = -K. For other
    bodies the gauge of a difference is larger than one thinks: use `KNormDifference`. Theorem `k-norm`.
    Source: Hardt, Talwar 2010; Hall 2012, Prop. 1.3.4 (which does not ask for symmetry).
    """

    sensitivity: Gauge
    noise_scale: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("K-norm", self.sensitivity, (Gauge,), "it is sized by the gauge of a body: Gauge(value, body)")
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        body = self.sensitivity.body
        if isinstance(body, Body) and not body.symmetric:
            raise InvalidParameter(
                parameter="body", value=type(body).__name__, must="be symmetric (K = -K) for the K-norm mechanism",
                hint="KNormDifference takes bodies that are not, with a Contribution(value, body)",
            )  # fmt: skip

    @classmethod
    def for_epsilon(cls, *, epsilon: Exact, sensitivity: Gauge, spacing: Exact = 1) -> KNorm:
        """The smallest noise with this epsilon."""
        target = epsilon_parameter(epsilon)
        need("K-norm", sensitivity, (Gauge,), "it is sized by the gauge of a body: Gauge(value, body)")
        return cls(sensitivity=sensitivity, noise_scale=sensitivity.exact / target, spacing=spacing)

    @property
    def body(self) -> Body | SampledBody:
        return self.sensitivity.body

    @property
    def numerical_delta(self) -> float:
        """The distance in total variation from the ideal noise: 0 where sampling is exact."""
        if isinstance(self.body, Body):
            return 0.0
        # It depends on the parameters only, so that a draw that is thrown away tells it.
        return self._draw(SeededSource(seed=0)).numerical_delta

    @property
    def exact_epsilon(self) -> Fraction | None:
        return self.sensitivity.exact / self._scale if isinstance(self.body, Body) else None

    @property
    def bound(self) -> Bound:
        epsilon, cost = up(self.sensitivity.exact / self._scale), self.numerical_delta
        if cost == 0.0:
            return Pure(epsilon=epsilon)
        return Approximate(epsilon=epsilon, delta=upper(lambda: (1 + ball(epsilon).exp()) * ball(cost)))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("k-norm",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "K-norm, rounded",
            "body": type(self.body).__name__,
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": isinstance(self.body, Body),
        }


def _moved(sensitivity: Contribution | HullGauge) -> Fraction:
    """What neighbours can differ by, in the gauge of the hull of K and -K."""
    two = isinstance(sensitivity, Contribution) and sensitivity.replace
    return sensitivity.exact * (2 if two else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class KNormDifference(ShapedMechanism):
    """A - B with A, B independent K-norm noise of one body, which need not be symmetric; rounded to the grid.

    Guarantee: Pure(epsilon = 2 contribution / noise_scale) under replace-one, half of it under add-or-remove; or
    Pure(value / noise_scale) for a HullGauge, the gauge of the move in the hull of K and -K, which is reached.
    Assumptions: the statistic is a sum of contributions whose gauges are bounded as given; 0 is inside K.
    Theorem `k-norm-difference` (sharper and corrected: see there). Compare Hall 2012, Prop. 1.3.4 and chapter 4.
    """

    sensitivity: Contribution | HullGauge
    noise_scale: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("K-norm difference", self.sensitivity, (Contribution, HullGauge), _DIFFERENCE_HINT)
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        if not isinstance(self.sensitivity.body, Body):
            raise InvalidParameter(
                parameter="body",
                value=type(self.sensitivity.body).__name__,
                must="be a body whose sampler is exact",
                hint="give the sampler as a formula: FormulaBody(...)",
            )

    @classmethod
    def for_epsilon(
        cls, *, epsilon: Exact, sensitivity: Contribution | HullGauge, spacing: Exact = 1
    ) -> KNormDifference:
        """The smallest noise with this epsilon."""
        target = epsilon_parameter(epsilon)
        need("K-norm difference", sensitivity, (Contribution, HullGauge), _DIFFERENCE_HINT)
        return cls(sensitivity=sensitivity, noise_scale=_moved(sensitivity) / target, spacing=spacing)

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def coordinates(self) -> int:
        return self.sensitivity.body.dimension

    @property
    def exact_epsilon(self) -> Fraction:
        return _moved(self.sensitivity) / self._scale

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.exact_epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("k-norm-difference",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "difference of K-norm noises, rounded",
            "body": type(self.sensitivity.body).__name__,
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    @property
    def law(self) -> ContinuousDistribution:
        return Difference(distribution=KNormVector(body=self.sensitivity.body, noise_scale=self._scale))

    def _draw(self, source: Source) -> GridVector:
        return self.law.sample(spacing=self.step, source=source)

    def _one(self) -> _Side:
        return _Side(shape=self.sensitivity.body, noise_scale=self._scale, spacing=self.step)

    @property
    def noise_std(self) -> float:
        """The largest standard deviation of a coordinate of what is drawn, grid included: about sqrt(2 Var A_i)."""
        return self._largest_std()

    def _continuous_std(self) -> float:
        return float(self.law.stds.max())

    def expected_error(self) -> float:
        """max_i E |X_i| <= the standard deviation, and half a grid step at most."""
        return self._continuous_std() + float(self.step) / 2

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """A bound: the better of two.

        |A_i - B_i| is within the sum of what both stay within, each with half the miss; and it is symmetric and
        unimodal, so that Pr[|X| > t] <= (2 std / 3t)^2 for t >= sqrt(8/3) std (Gauss; Vysochanskij, Petunin 1980).
        """
        level = confidence_level(confidence)
        both = 2 * self._one().error_quantile((1 + level) / 2)
        factor = max(2 / (3 * math.sqrt(float(1 - level))), math.sqrt(8 / 3))
        return min(both, factor * self._continuous_std() + float(self.step) / 2)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """A bound, in the same way."""
        level = confidence_level(confidence)
        both = 2 * self._one().max_error(confidence=(1 + level) / 2, dimension=dimension)
        return min(both, self.error_quantile(1 - (1 - level) / self.coordinates))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side(Radial):
    """One of the two noises of a difference, for its errors only."""

    shape: Body
    noise_scale: Exact
    spacing: Exact

    @property
    def body(self) -> Body:
        return self.shape

    @property
    def bound(self) -> Bound:
        raise NotImplementedError

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {}
