"""Gaussian noise on a grid: the discrete Gaussian with its own curve, and rounded continuous Gaussians."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event, GaussianEvent
from tacit.accounting.events.mechanisms import WIDEST, largest_moves
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import integer_array, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, bisected, down, exact_parameter, precision, up, upper
from tacit.guarantees import Bound, Concentrated, GaussianDP, gaussian_budget
from tacit.guarantees.running_sum import root
from tacit.mechanisms.base import (
    L2,
    AdditiveMechanism,
    CellNoise,
    Pivot,
    ShapedMechanism,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    float_noise_std,
    in_units,
    need,
    short_up,
    shown,
)
from tacit.mechanisms.bodies import Mahalanobis
from tacit.mechanisms.spreads import gaussian_pivot, normal_quantile
from tacit.noise import DiscreteGaussian, GaussianVector, GridVector, grid_spacing
from tacit.noise.marginals import Normal
from tacit.noise.source import Source

if TYPE_CHECKING:
    from tacit.guarantees import Profile

__all__ = ["Gaussian", "RoundedGaussian"]

# The least parameter that meets a target, where the answer is checked at the point that is returned.

RELATIVE = 1e-5
DOUBLINGS = 200


def least(meets: Callable[[Fraction], bool], start: Fraction, guess: float | None = None) -> Fraction:
    """A parameter that meets a target, within one part in 10^5 of one that does not.

    Parameters are floats taken exactly. The answer is valid even if the condition is not monotone, since it was
    evaluated at the returned parameter. A good `guess` saves most of the evaluations, a bad one costs some.
    """
    if guess is not None and math.isfinite(guess) and guess > 0:
        near = _around(meets, guess)
        if near is not None:
            return near
    high = float(start)
    for _ in range(DOUBLINGS):
        if meets(Fraction(high)):
            break
        high *= 2.0
    else:
        raise NotCertified(what="a calibration", reason="no parameter in reach meets the target")
    low = high / 2.0
    for _ in range(DOUBLINGS):
        if not meets(Fraction(low)):
            break
        high, low = low, low / 2.0
    return _between(meets, low, high)


def _around(meets: Callable[[Fraction], bool], guess: float) -> Fraction | None:
    """The answer, if it lies within a thousandth of the guess, by a search in growing steps around the guess."""
    step, high, low = RELATIVE / 2, None, None
    while step < 1e-3 and (high is None or low is None):
        if high is None and meets(Fraction(guess * (1 + step))):
            high = guess * (1 + step)
        if low is None and not meets(Fraction(guess * (1 - step))):
            low = guess * (1 - step)
        step *= 8
    return None if high is None or low is None else _between(meets, low, high)


def _between(meets: Callable[[Fraction], bool], low: float, high: float) -> Fraction:
    return Fraction(bisected(lambda std: meets(Fraction(std)), low, high, relative=RELATIVE)[1])


def greatest(meets: Callable[[Fraction], bool], limit: Fraction) -> Fraction:
    """The greatest parameter in (0, limit] that meets a target, within one part in 10^5; checked."""
    if meets(limit):
        return limit
    return 1 / least(lambda inverse: meets(1 / inverse), 1 / limit)


HINT = "Gaussian noise is sized by the Euclidean norm; L1(...).to_l2() and Linf(...).to_l2(dimension=...) give one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(AdditiveMechanism):
    """Independent discrete Gaussian noise, Pr[X = k] proportional to e^(-(k spacing)^2 / (2 noise_std^2)).

    Guarantee: the curve summed from the law's own probabilities, for every integer move that the sensitivity
    allows; where these are too many (long moves of vectors), Concentrated(rho = sensitivity^2 / (2 noise_std^2)).
    Never the continuous curve: at noise_std = spacing / 2 the true delta can be five times larger.
    Assumptions: integers on a grid of this spacing, `dimension` of them at most, L2 sensitivity as given.
    Theorem `discrete-gaussian`. Source: Canonne, Kamath, Steinke 2020; Hall 2012, Prop. 1.3.3.
    """

    sensitivity: L2
    noise_std: float
    dimension: int = 1
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("Gaussian", self.sensitivity, (L2,), HINT)
        set_fields(self, noise_std=float_noise_std(self.noise_std))
        set_fields(self, dimension=dimension_parameter(self.dimension))
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        self.sensitivity.squared_steps(self.step)

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, sensitivity: L2, dimension: int = 1, spacing: Exact = 1
    ) -> Gaussian:
        """The smallest noise (to one part in 10^4) whose own curve has delta(epsilon) <= delta; certified."""
        target, limit = up(epsilon_parameter(epsilon)), delta_parameter(delta)
        need("Gaussian", sensitivity, (L2,), HINT)

        def make(noise_std: Fraction) -> Gaussian:
            return cls(
                sensitivity=sensitivity, noise_std=float(noise_std), dimension=dimension, spacing=spacing
            )

        start = sensitivity.exact * Fraction(math.sqrt(2 * math.log(2 / limit)) / min(target, 1e6) + 1e-3)
        # The continuous curve is close to that of the distribution for all but the smallest noise.
        mu = gaussian_budget(epsilon=target, delta=float(limit)).mu
        guess = float(sensitivity.exact) / mu if mu > 0 else None
        return make(least(lambda std: make(std).delta(target) <= limit, start, guess))

    @classmethod
    def for_rho(cls, *, rho: Exact, sensitivity: L2, dimension: int = 1, spacing: Exact = 1) -> Gaussian:
        """noise_std = sensitivity / sqrt(2 rho), rounded up."""
        target = epsilon_parameter(rho, "rho")
        square = need("Gaussian", sensitivity, (L2,), HINT).squared_steps(grid_spacing(spacing))
        exact = square * grid_spacing(spacing) ** 2 / (2 * target)
        noise_std = upper(lambda: ball(exact).sqrt())
        return cls(sensitivity=sensitivity, noise_std=noise_std, dimension=dimension, spacing=spacing)

    @property
    def step(self) -> Fraction:
        return Fraction(self.spacing)

    @property
    def distribution(self) -> DiscreteGaussian:
        """The distribution of one coordinate's noise, in grid steps."""
        return DiscreteGaussian(noise_std=exact_parameter("noise_std", self.noise_std) / self.step)

    @property
    def rho(self) -> float:
        """sensitivity^2 / (2 noise_std^2), rounded up: zero-concentrated privacy, any dimension."""
        return up(Fraction(self.sensitivity.squared_steps(self.step)) / (2 * self.distribution.parameter))

    @property
    def patterns(self) -> tuple[tuple[int, ...], ...]:
        """The worst integer moves, in grid steps; an empty list if there are too many to sum."""
        return largest_moves(self.sensitivity.squared_steps(self.step), self.dimension)

    @property
    def bound(self) -> Bound:
        return self.profile if self.patterns and self._summable() else Concentrated(rho=self.rho)

    def _summable(self) -> bool:
        return float(self.distribution.noise_std) <= WIDEST

    @property
    def profile(self) -> Profile:
        """The curve of the discrete distribution itself: over the worst moves, the product of the coordinates'
        pairs.
        """
        from tacit.guarantees import Profile
        from tacit.pld import DiscreteGaussianPair

        if not self.patterns:
            raise NotCertified(
                what="the curve of a discrete Gaussian vector",
                reason="the sensitivity allows too many different integer moves",
                hint="use the concentrated bound, a coarser grid, or RoundedGaussian, whose curve is known",
            )
        std = -up(-Fraction(self.distribution.noise_std))

        def one(shift: int) -> Profile:
            return Profile.of_pair(DiscreteGaussianPair(noise_std=std, sensitivity=shift))

        curves = [
            Profile.product([(one(shift), count) for shift, count in Counter(pattern).items()])
            if len(pattern) > 1
            else one(pattern[0])
            for pattern in self.patterns
        ]
        return curves[0] if len(curves) == 1 else Profile.worst(curves)

    def delta(self, epsilon: Exact) -> float:
        """The certified delta at this epsilon: in one dimension at every scale, by certified tails of the
        distribution.
        """
        exact = exact_parameter("epsilon", epsilon, positive=False)
        refuse_if(exact < 0, "epsilon", epsilon, "be at least 0")
        if self.dimension == 1:
            return scalar_delta(
                self.distribution, math.isqrt(self.sensitivity.squared_steps(self.step)), exact
            )
        return self.bound.delta_at(up(exact))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("discrete-gaussian",)

    @property
    def exact_epsilon(self) -> None:
        """None, since Gaussian noise never has one."""
        return None

    @property
    def exact_rho(self) -> Fraction:
        """sensitivity^2 / (2 noise_std^2), to 80 binary digits, rounded up."""
        return short_up(
            Fraction(self.sensitivity.squared_steps(self.step)) / (2 * self.distribution.parameter)
        )

    def log_survival(self, t: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """ln Pr[X >= t] in grid steps, by the normal distribution: for intervals, no privacy rests on it."""
        from scipy.special import log_ndtr

        std = float(self.distribution.std)
        return np.asarray(log_ndtr(-(np.asarray(t, dtype=np.float64) - 0.5) / std))

    @property
    def event(self) -> Event:
        """Discrete Gaussian noise: on one number that moves by a known number of steps, or on a vector."""
        std = Fraction(self.distribution.noise_std)
        if self._summable() and len(self.patterns) == 1 and len(self.patterns[0]) == 1:
            steps = self.patterns[0][0]
            return events.DiscreteGaussianEvent(noise_multiplier=down(std / steps), sensitivity=steps)
        return events.DiscreteGaussianVectorEvent(
            noise_std=down(std),
            squared_sensitivity=self.sensitivity.squared_steps(self.step),
            coordinates=self.dimension,
        )

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "discrete Gaussian",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std)),
            "spacing": shown(self.step),
            "exact": True,
        }

    def _checked(self, values: npt.ArrayLike) -> AnyArray:
        return at_most(values, self.dimension)

    def expected_error(self) -> float:
        """E |X| = 2 spacing sum_{k >= 1} Pr[X >= k]; sqrt(2/pi) noise_std + spacing / 4 bounds it on fine grids."""
        std, step = Fraction(self.distribution.noise_std), self.step
        if std <= 64:
            with precision(128):
                terms = [self.distribution.survival_ball(k) for k in range(1, math.ceil(16 * std) + 24)]
                total = sum(terms, ball(0)) * 2 * ball(step)
            return upper(lambda: total * (1 + ball(Fraction(1, 10**30))))
        # Sum of k e^{-k^2/2v} <= v + 1/12 by Euler-Maclaurin, over Z >= sqrt(2 pi v).
        return upper(
            lambda: (
                ball(step)
                * 2
                * (ball(std) ** 2 + ball(Fraction(1, 6)))
                / ((2 * ball(1).pi()).sqrt() * ball(std))
            )
        )

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least grid value t with Pr[|X| <= t] >= confidence."""
        return self.max_error(confidence=confidence, dimension=1)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """The least grid value t with Pr[max_i |X_i| <= t] >= confidence, exactly."""
        level, d = confidence_level(confidence), dimension_parameter(dimension)
        return in_units(self.distribution.error_bound(confidence=level, coordinates=d), self.step)


def delta_parameter(value: object) -> float:
    """A delta strictly between 0 and 1, rounded down, since a smaller delta than requested is allowed and a larger one
    is not.
    """
    exact = exact_parameter("delta", value, positive=False)
    if not 0 < exact < 1:
        raise InvalidParameter(
            parameter="delta",
            value=value,
            must="lie strictly between 0 and 1",
            hint="this noise has no pure epsilon; choose delta far below 1 / number of units, or Laplace noise",
        )
    return -up(-exact)


def at_most(values: npt.ArrayLike, dimension: int) -> AnyArray:
    """The integers; refuses more of them than the curve was computed for."""
    array = integer_array(values)
    if array.size > dimension:
        raise InvalidParameter(
            parameter="values",
            value=f"{array.size} numbers",
            must=f"have at most dimension = {dimension} entries",
            hint="declare dimension=...: the curve of a vector's noise differs from that of one number",
        )
    return array


def scalar_delta(law: DiscreteGaussian, shift: int, epsilon: Fraction) -> float:
    """sup_S P(S) - e^epsilon P(S + shift): S = {k < m} with m = shift/2 - v epsilon/shift, tails certified.

    With X shifted by -s, the likelihood ratio falls with k; H = Pr[X >= c] - e^epsilon Pr[X >= c + s] for the
    least integer c >= v epsilon / s - s/2, by the symmetry of the distribution.
    """
    cut = math.ceil(law.parameter * epsilon / shift - Fraction(shift, 2))

    def formula() -> Ball:
        return law.survival_ball(cut) - ball(epsilon).exp() * law.survival_ball(cut + shift)

    return min(1.0, max(0.0, upper(formula)))


# Continuous Gaussian noise, with a covariance, drawn exactly and rounded to the grid.


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedGaussian(ShapedMechanism, CellNoise):
    """N(0, noise_std^2 Sigma) rounded to the grid: a continuous draw, exact, known to the cell.

    Guarantee: GaussianDP(mu = sensitivity / noise_std), the exact continuous curve, by post-processing; any dimension,
    any grid. (The *discrete* Gaussian has another, larger curve: see `Gaussian`.)
    Assumption: an L2 sensitivity (then `dimension` says d), or a Mahalanobis one. Theorem `rounded-gaussian`.
    Source: Hall 2012, Prop. 1.3.3; Balle, Wang 2018.
    """

    sensitivity: L2 | Mahalanobis
    noise_std: float
    dimension: int | None = None
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("Gaussian", self.sensitivity, (L2, Mahalanobis), HINT)
        set_fields(self, noise_std=float_noise_std(self.noise_std))
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "dimension", euclidean_dimension(self.sensitivity, self.dimension))

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, sensitivity: L2 | Mahalanobis, dimension: int | None = None,
        spacing: Exact = 1,
    ) -> RoundedGaussian:  # fmt: skip
        """The smallest noise (to one part in 10^5) whose curve has delta(epsilon) <= delta; certified."""
        target, limit = up(epsilon_parameter(epsilon)), delta_parameter(delta)
        need("Gaussian", sensitivity, (L2, Mahalanobis), HINT)
        size = euclidean_size(sensitivity, grid_spacing(spacing))
        std = least(lambda s: GaussianDP(mu=up(size / s)).delta(target) <= limit, size)
        return cls(sensitivity=sensitivity, noise_std=float(std), dimension=dimension, spacing=spacing)

    @classmethod
    def for_mu_squared(cls, *, mu_squared: Exact, squared_steps: int, dimension: int = 1) -> RoundedGaussian:
        """The smallest noise of this mu^2 on the integers: noise_std^2 = l2^2 / mu^2, rounded up."""
        steps = whole("squared_steps", squared_steps, least=1)
        std = root(steps / exact_parameter("mu_squared", mu_squared), up)
        return cls(sensitivity=L2.root(steps), noise_std=std, dimension=dimension)

    @property
    def coordinates(self) -> int:
        assert self.dimension is not None
        return self.dimension

    @property
    def mu_squared(self) -> Fraction:
        """(sensitivity / noise_std)^2: exact for an L2 sensitivity, which is kept by its square."""
        std = exact_parameter("noise_std", self.noise_std)
        if isinstance(self.sensitivity, L2):
            return self.sensitivity.squared_steps(self.step) * (self.step / std) ** 2
        return (euclidean_size(self.sensitivity, self.step) / std) ** 2

    @property
    def bound(self) -> GaussianDP:
        return GaussianDP(mu=root(self.mu_squared, up))

    @property
    def event(self) -> Event:
        return GaussianEvent(noise_multiplier=root(1 / self.mu_squared, down))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("rounded-gaussian",)

    @property
    def exact_rho(self) -> Fraction:
        """mu^2 / 2, rounded up."""
        return short_up(self.mu_squared / 2)

    @property
    def exact_mu_squared(self) -> Fraction:
        """Its own value, rounded up, since the event's float is further above it."""
        return short_up(self.mu_squared)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Gaussian, rounded",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std)),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    def to_dict(self, parts: Sequence[str] = ()) -> dict[str, Any]:
        steps = self.sensitivity.squared_steps(self.step) if isinstance(self.sensitivity, L2) else None
        return {
            "parts": list(parts),
            "distribution": "Gaussian, rounded to the grid",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std) / self.step),
            "sensitivity": {"norm": "L2", "steps_squared": steps},
            "exact": True,
        }

    @property
    def law(self) -> GaussianVector:
        factor = self.sensitivity.factor if isinstance(self.sensitivity, Mahalanobis) else None
        return GaussianVector(coordinates=self.coordinates, noise_std=self.noise_std, factor=factor)

    def _draw(self, source: Source) -> GridVector:
        if not isinstance(self.sensitivity, Mahalanobis):
            # Independent coordinates: only those whose rounding is open are drawn to more digits.
            one = GaussianVector(coordinates=1, noise_std=self.noise_std)
            drawn = one.sample(spacing=self.step, size=self.coordinates, source=source)
            return replace(drawn, values=drawn.values[:, 0])
        return self.law.sample(spacing=self.step, source=source)

    def _widest(self) -> float:
        if isinstance(self.sensitivity, Mahalanobis):
            rows = np.array([[float(v) for v in row] for row in self.sensitivity.factor])
            return float(np.sqrt((rows**2).sum(axis=1).max()) * float(self.noise_std))
        return float(self.noise_std)

    def expected_error(self) -> float:
        """max_i E |X_i| <= sqrt(2/pi) noise_std sqrt(Sigma_ii): rounding makes it no larger.

        E |X| is a sum of Pr[|Z| > t] over the middles of the cells, and that tail is convex.
        """
        return float(np.sqrt(2 / np.pi) * self._widest())

    @property
    def variance(self) -> float:
        """The variance of a drawn cell: noise_std^2 plus the rounding's 1/12; less below two steps of noise."""
        return Normal(scale=self._widest()).rounded(self.step).variance

    @property
    def interval_variance(self) -> float:
        """noise_std^2 and 1/12: never below the variance, for intervals of sums of few steps."""
        return (self._widest() / float(self.step)) ** 2 + 1 / 12

    def step_error(self) -> float:
        return self.expected_error() / float(self.step)

    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        """|round(Z)| <= t if and only if |Z| < t + 1/2."""
        z = normal_quantile(float(confidence), coordinates)
        return max(0, math.ceil(z * self._widest() / float(self.step) - 0.5))

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        """Coordinates are independent: there may be any number of them."""
        fitting = self if values.size == self.dimension else replace(self, dimension=values.size)
        return fitting.release(values, source=source).values

    def pivot(self, noises: Sequence[RoundedGaussian]) -> Pivot:
        """By the normal quantile of the sum; rounding moves each draw by at most 1/2."""
        stds = [float(n.noise_std) / float(n.step) for n in noises]

        def margin(weights: Sequence[Floats], value: Floats, confidence: float) -> Floats:
            moved = sum(0.5 * w for w in weights)
            scales = np.stack([s * w for s, w in zip(stds, weights, strict=True)])
            return gaussian_pivot(scales, confidence) + moved - np.abs(value)

        return margin

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The normal quantile of the widest coordinate, on the grid."""
        return self.max_error(confidence=confidence, dimension=1)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """Pr[max_i |X_i| <= t] >= (2 Phi(t) - 1)^d, equality for independent coordinates (Sidak); on the grid."""
        d = self.coordinates if dimension is None else dimension_parameter(dimension)
        return in_units(self.steps_within(confidence_level(confidence), d), self.step)


def euclidean_dimension(sensitivity: L2 | Mahalanobis, dimension: int | None) -> int:
    """The dimension, from the covariance or as given."""
    if isinstance(sensitivity, Mahalanobis):
        if dimension not in (None, sensitivity.dimension):
            raise InvalidParameter(
                parameter="dimension",
                value=dimension,
                must=f"be {sensitivity.dimension}, that of the covariance",
            )
        return sensitivity.dimension
    if dimension is None:
        raise InvalidParameter(
            parameter="dimension", value=None, must="be given with an L2 sensitivity",
            hint="the noise of this mechanism grows with the length of the vector",
        )  # fmt: skip
    return dimension_parameter(dimension)


def euclidean_size(sensitivity: L2 | Mahalanobis, step: Fraction) -> Fraction:
    """The sensitivity in the norm of the noise, rounded up; an L2 one counts in whole squared steps."""
    if isinstance(sensitivity, Mahalanobis):
        return sensitivity.factor_value
    square = sensitivity.squared_steps(step) * step**2
    return Fraction(upper(lambda: ball(square).sqrt()))
