"""Gaussian noise on a grid: the discrete Gaussian with its own curve, and rounded continuous Gaussians."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.accounting.events.mechanisms import WIDEST, largest_moves
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball, ball, precision, upper
from tacit.exact.checks import settle
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import down, up
from tacit.guarantees import Bound, Concentrated, gaussian_budget
from tacit.mechanisms.base import (
    AdditiveMechanism,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    in_units,
    short_up,
    shown,
)
from tacit.mechanisms.sensitivity import L2, need
from tacit.noise import DiscreteGaussian, grid_spacing
from tacit.noise.source import Source

if TYPE_CHECKING:
    from tacit.guarantees import Profile

__all__ = ["Gaussian"]

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
    noise_std: Exact
    dimension: int = 1
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("Gaussian", self.sensitivity, (L2,), HINT)
        exact_parameter("noise_std", self.noise_std)
        settle(self, noise_std=self.noise_std)
        settle(self, dimension=dimension_parameter(self.dimension))
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        self.sensitivity.squared_steps(self.step)

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, sensitivity: L2, dimension: int = 1, spacing: Exact = 1
    ) -> Gaussian:
        """The smallest noise (to one part in 10^4) whose own curve has delta(epsilon) <= delta; certified."""
        from tacit.mechanisms.calibrate import least

        target, limit = up(epsilon_parameter(epsilon)), delta_parameter(delta)
        need("Gaussian", sensitivity, (L2,), HINT)

        def make(noise_std: Fraction) -> Gaussian:
            return cls(sensitivity=sensitivity, noise_std=noise_std, dimension=dimension, spacing=spacing)

        start = sensitivity.exact * Fraction(math.sqrt(2 * math.log(2 / limit)) / min(target, 1e6) + 1e-3)
        # The continuous curve is close to that of the law for all but the smallest noise.
        mu = gaussian_budget(epsilon=target, delta=float(limit)).mu
        guess = float(sensitivity.exact) / mu if mu > 0 else None
        return make(least(lambda std: make(std).delta(target) <= limit, start, guess))

    @classmethod
    def for_rho(cls, *, rho: Exact, sensitivity: L2, dimension: int = 1, spacing: Exact = 1) -> Gaussian:
        """noise_std = sensitivity / sqrt(2 rho), rounded up."""
        target = epsilon_parameter(rho, "rho")
        square = need("Gaussian", sensitivity, (L2,), HINT).squared_steps(grid_spacing(spacing))
        exact = square * grid_spacing(spacing) ** 2 / (2 * target)
        noise_std = Fraction(upper(lambda: ball(exact).sqrt()))
        return cls(sensitivity=sensitivity, noise_std=noise_std, dimension=dimension, spacing=spacing)

    @property
    def step(self) -> Fraction:
        return Fraction(self.spacing)

    @property
    def distribution(self) -> DiscreteGaussian:
        """The law of one coordinate's noise, in grid steps."""
        return DiscreteGaussian(noise_std=exact_parameter("noise_std", self.noise_std) / self.step)

    @property
    def rho(self) -> float:
        """sensitivity^2 / (2 noise_std^2), rounded up: zero-concentrated privacy, any dimension."""
        return up(Fraction(self.sensitivity.squared_steps(self.step)) / (2 * self.distribution.parameter))

    @property
    def patterns(self) -> tuple[tuple[int, ...], ...]:
        """The worst integer moves, in grid steps; empty if there are too many to sum."""
        return largest_moves(self.sensitivity.squared_steps(self.step), self.dimension)

    @property
    def bound(self) -> Bound:
        return self.profile if self.patterns and self._summable() else Concentrated(rho=self.rho)

    def _summable(self) -> bool:
        return float(self.distribution.noise_std) <= WIDEST

    @property
    def profile(self) -> Profile:
        """The curve of the discrete law itself: over the worst moves, the product of the coordinates' pairs."""
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
        """The certified delta at this epsilon: in one dimension at every scale, by certified tails of the law."""
        exact = exact_parameter("epsilon", epsilon, positive=False)
        if exact < 0:
            raise InvalidParameter(parameter="epsilon", value=epsilon, must="be at least 0")
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
        """It has none, which is known without its curve."""
        return None

    @property
    def exact_rho(self) -> Fraction:
        """sensitivity^2 / (2 noise_std^2), to 80 binary digits, rounded up."""
        return short_up(
            Fraction(self.sensitivity.squared_steps(self.step)) / (2 * self.distribution.parameter)
        )

    def log_survival(self, t: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """ln Pr[X >= t] in grid steps, by the normal law: for intervals, no privacy rests on it."""
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

    def _noise(self, shape: tuple[int, ...], source: Source) -> AnyArray:
        return self.distribution.sample(size=shape, source=source)

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
    """A delta strictly between 0 and 1, rounded down: less than was asked for is allowed, more is not."""
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
    """The integers, of which there may be at most as many as the curve was computed for."""
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
    least integer c >= v epsilon / s - s/2, by the symmetry of the law.
    """
    cut = math.ceil(law.parameter * epsilon / shift - Fraction(shift, 2))

    def formula() -> Ball:
        return law.survival_ball(cut) - ball(epsilon).exp() * law.survival_ball(cut + shift)

    return min(1.0, max(0.0, upper(formula)))
