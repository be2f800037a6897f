"""Noise shaped by a convex body: the K-norm mechanism, and its difference form for bodies that are not symmetric."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import check_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, bisected, exact_parameter, exact_value, up, upper
from tacit.guarantees import Approximate, Bound, Pure
from tacit.mechanisms.base import (
    L2,
    ShapedMechanism,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    need,
    shown,
)
from tacit.mechanisms.bodies import Contribution, Gauge, HullGauge, Mahalanobis, Moments, moments
from tacit.mechanisms.gaussian import euclidean_dimension, euclidean_size
from tacit.noise import (
    Body,
    ContinuousDistribution,
    Difference,
    EuclideanBall,
    GridVector,
    KNormVector,
    SampledBody,
    SeededSource,
    grid_spacing,
)
from tacit.noise.source import Source

__all__ = ["Gamma", "KNorm", "KNormDifference"]

# Continuous noise in many dimensions, drawn exactly and rounded to the grid: what its mechanisms share.
#
# The values are on the grid and rounding commutes with adding a grid point, so that the output is the rounding of
# (value + continuous noise): post-processing of a mechanism whose densities are known.

NODES = 400


class Radial(ShapedMechanism):
    """r u with r ~ Gamma(d + 1, noise_scale) and u uniform in a body: errors from the body's moments."""

    __slots__ = ()

    noise_scale: Exact

    @property
    @abstractmethod
    def body(self) -> Body | SampledBody:
        """The body K."""

    @property
    def _scale(self) -> Fraction:
        return exact_parameter("noise_scale", self.noise_scale)

    @property
    def coordinates(self) -> int:
        return self.body.dimension if isinstance(self.body, Body) else self.body.coordinates

    def _moments(self) -> tuple[Moments, int, float]:
        return moments(self.body), self.coordinates, float(self._scale)

    @property
    def law(self) -> ContinuousDistribution:
        if isinstance(self.body, SampledBody):
            raise NoLaw(
                operation="the law of K-norm noise of a SampledBody",
                reason="its sampler is a black box, of which only bounds are declared",
                hint="give the sampler as a formula with its moments: FormulaBody(..., declared_covariance=...)",
            )
        return KNormVector(body=self.body, noise_scale=self._scale)

    def _draw(self, source: Source) -> GridVector:
        if isinstance(self.body, SampledBody):
            return self.body.sample_knorm(noise_scale=self._scale, spacing=self.step, source=source)
        return self.law.sample(spacing=self.step, source=source)

    def expected_error(self) -> float:
        """max_i E |X_i| = (d + 1) noise_scale max_i E |u_i|, plus half a grid step at most."""
        m, d, scale = self._moments()
        return float((d + 1) * scale * m.size.max() + self.step / 2)

    @property
    def noise_std(self) -> float:
        """The largest standard deviation of a drawn coordinate, grid included: about
        sqrt((d+1)(d+2) E u_i^2) noise_scale."""
        return self._largest_std()

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on every single coordinate with this probability; integrated numerically."""
        m, d, scale = self._moments()
        return self._quantile(m, d, scale, float(1 - confidence_level(confidence)))

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """The bound on all coordinates at once: the better of two bounds.

        gauge(X) is Gamma(d, noise_scale) distributed and |X_i| <= reach * gauge(X), exact for a cube; or the
        union of the coordinates' tails.
        """
        from scipy.special import gammaincinv

        m, d, scale = self._moments()
        if dimension is not None and dimension_parameter(dimension) != d:
            raise InvalidParameter(
                parameter="dimension", value=dimension, must=f"be {d}, the body's dimension"
            )
        level = confidence_level(confidence)
        by_gauge = float(m.reach.max() * scale * gammaincinv(d, float(level)) + self.step / 2)
        return min(by_gauge, self._quantile(m, d, scale, float(1 - level) / d))

    def _quantile(self, m: Moments, d: int, scale: float, miss: float) -> float:
        from scipy.special import gammaincinv

        if m.tails is None:
            return float(m.reach.max() * scale * gammaincinv(d, 1 - miss) + self.step / 2)
        widest = m.tails[int(np.argmax(m.reach))]
        # r at the middle of equally likely slices of Gamma(d + 1), finer in the upper tail.
        edges = 1 - np.concatenate(
            [np.linspace(1, 0.01, NODES), np.geomspace(0.01, 1e-3 * miss, NODES)[1:], [0.0]]
        )
        weights = np.diff(edges)
        radius = gammaincinv(d + 1, np.minimum(edges[1:], 1 - 1e-16))
        _, high = bisected(
            lambda t: not float((weights * widest(t / radius)).sum()) > miss,
            0.0, float(m.reach.max() * gammaincinv(d, 1 - miss / 2)), relative=1e-9,
        )  # fmt: skip
        return float(high * scale + self.step / 2)


_DIFFERENCE_HINT = "it is sized by the gauge of one contribution (or of the move, in the hull of K and -K)"


@dataclass(frozen=True, slots=True, kw_only=True)
class KNorm(Radial):
    """K-norm noise for a symmetric body: density proportional to e^(-gauge(x) / noise_scale), rounded to the grid.

    r u with r ~ Gamma(d + 1, noise_scale), u uniform in K. Guarantee: Pure(epsilon = sensitivity / noise_scale); for a
    body sampled in floats Approximate(epsilon, (1 + e^epsilon) numerical_delta). Assumption: K = -K. For other bodies
    the gauge of a difference exceeds that of one contribution: use `KNormDifference`. Theorem `k-norm`. Source: Hardt,
    Talwar 2010; Hall 2012, Prop. 1.3.4 (which does not ask for symmetry).
    """

    sensitivity: Gauge
    noise_scale: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("K-norm", self.sensitivity, (Gauge,), "it is sized by the gauge of a body: Gauge(value, body)")
        check_fields(self, noise_scale=exact_value)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        body = self.sensitivity.body
        if isinstance(body, Body) and not body.symmetric:
            raise InvalidParameter(
                parameter="body", value=type(body).__name__, must="be symmetric (K = -K) for the K-norm mechanism",
                hint="KNormDifference takes bodies that are not, with a Contribution(value, body)",
            )  # fmt: skip

    @classmethod
    def for_target(cls, *, epsilon: Exact, sensitivity: Gauge, spacing: Exact = 1) -> KNorm:
        """The smallest noise with this epsilon."""
        target = epsilon_parameter(epsilon)
        need("K-norm", sensitivity, (Gauge,), "it is sized by the gauge of a body: Gauge(value, body)")
        return cls(sensitivity=sensitivity, noise_scale=sensitivity.exact / target, spacing=spacing)

    @property
    def body(self) -> Body | SampledBody:
        return self.sensitivity.body

    @property
    def numerical_delta(self) -> float:
        """The distance in total variation from the ideal noise: 0 for exact sampling."""
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
    """The largest difference of neighbours, in the gauge of the hull of K and -K."""
    two = isinstance(sensitivity, Contribution) and sensitivity.replace
    return sensitivity.exact * (2 if two else 1)


MOST_LAWS = 64
"""The number of coordinates with separately computed distributions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KNormDifference(ShapedMechanism):
    """A - B with A, B independent K-norm noise of one body, which need not be symmetric; rounded to the grid.

    Guarantee: Pure(epsilon = 2 contribution / noise_scale) under replace-one, half of it under add-or-remove; or, for
    a HullGauge (the gauge of the move in the hull of K and -K), Pure(value / noise_scale), which is tight.
    Assumptions: the statistic is a sum of contributions whose gauges are bounded as given; 0 is inside K.
    Theorem `k-norm-difference`, sharper and corrected. Compare Hall 2012, Prop. 1.3.4 and chapter 4.
    """

    sensitivity: Contribution | HullGauge
    noise_scale: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("K-norm difference", self.sensitivity, (Contribution, HullGauge), _DIFFERENCE_HINT)
        check_fields(self, noise_scale=exact_value)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        if not isinstance(self.sensitivity.body, Body):
            raise InvalidParameter(
                parameter="body",
                value=type(self.sensitivity.body).__name__,
                must="be a body whose sampler is exact",
                hint="give the sampler as a formula: FormulaBody(...)",
            )

    @classmethod
    def for_target(
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
        """The largest standard deviation of a drawn coordinate, grid included: about sqrt(2 Var A_i)."""
        return self._largest_std()

    def _continuous_std(self) -> float:
        return float(self.law.stds.max())

    def expected_error(self) -> float:
        """max_i E |X_i| <= the standard deviation, and half a grid step at most."""
        return self._continuous_std() + float(self.step) / 2

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on every single coordinate: the quantile of its own distribution (`marginal`), if that is known.

        Otherwise the better of two bounds. |A_i - B_i| is within the sum of the bounds of both, each with half
        the miss; and it is symmetric and unimodal, so that Pr[|X| > t] <= (2 std / 3t)^2 for t >= sqrt(8/3) std
        (Gauss; Vysochanskij, Petunin 1980).
        """
        level = confidence_level(confidence)
        if self.coordinates <= MOST_LAWS:
            try:
                each = [self.marginal(i).quantile((1 + level) / 2) for i in range(self.coordinates)]
            except NoLaw:
                pass
            else:
                return max(each) * float(self.step)
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


# Euclidean Laplace noise, with a covariance.


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma(Radial):
    """Euclidean Laplace noise: density proportional to e^(-|x|_Sigma / noise_scale), rounded to the grid.

    r Sigma^(1/2) u with r ~ Gamma(d, noise_scale) and u uniform on the sphere. Guarantee:
    Pure(epsilon = sensitivity / noise_scale), exactly. Assumption: an L2 sensitivity (then `dimension` says d) or a
    Mahalanobis one. Theorem `gamma-mechanism`. Source: Hall 2012, Prop. 1.3.2.
    """

    sensitivity: L2 | Mahalanobis
    noise_scale: Exact
    dimension: int | None = None
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("Gamma", self.sensitivity, (L2, Mahalanobis), "it is sized by a Euclidean norm")
        check_fields(self, noise_scale=exact_value)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "dimension", euclidean_dimension(self.sensitivity, self.dimension))

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        sensitivity: L2 | Mahalanobis,
        dimension: int | None = None,
        spacing: Exact = 1,
    ) -> Gamma:
        """The smallest noise with this epsilon."""
        target = epsilon_parameter(epsilon)
        need("Gamma", sensitivity, (L2, Mahalanobis), "it is sized by a Euclidean norm")
        size = euclidean_size(sensitivity, grid_spacing(spacing))
        return cls(sensitivity=sensitivity, noise_scale=size / target, dimension=dimension, spacing=spacing)

    @property
    def body(self) -> Body:
        if isinstance(self.sensitivity, Mahalanobis):
            return self.sensitivity.body
        assert self.dimension is not None
        return EuclideanBall(coordinates=self.dimension)

    @property
    def exact_epsilon(self) -> Fraction:
        return euclidean_size(self.sensitivity, self.step) / self._scale

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.exact_epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("gamma-mechanism",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Euclidean Laplace, rounded",
            "noise_scale": shown(self._scale),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }
