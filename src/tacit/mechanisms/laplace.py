"""Laplace noise on a grid: the discrete Laplace law, exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.balls import ball, upper
from tacit.exact.checks import settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.mechanisms.base import (
    AdditiveMechanism,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    in_units,
    shown,
)
from tacit.mechanisms.part_noise import CellNoise, Pivot
from tacit.mechanisms.sensitivity import L1, need
from tacit.mechanisms.spreads import apart, laplace_log_tail, laplace_move
from tacit.noise import DiscreteLaplace, grid_spacing
from tacit.noise.source import Source

if TYPE_CHECKING:
    from tacit.guarantees import Profile

__all__ = ["Laplace"]

_HINT = (
    "Laplace noise is sized by the sum of the coordinates' moves; Linf(...).to_l1(dimension=...) gives one"
)
_DIRECT_TERMS = 1 << 16


@lru_cache(maxsize=1024)
def _distribution(noise_scale: Fraction) -> DiscreteLaplace:
    """Made once: a release asks for its law some twenty times."""
    return DiscreteLaplace(noise_scale=noise_scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(AdditiveMechanism, CellNoise):
    """Independent discrete Laplace noise on each coordinate, Pr[X = k] proportional to e^(-|k| spacing / noise_scale).

    Guarantee: Pure(epsilon = sensitivity / noise_scale), exactly: the sampler has no numerical error.
    Assumptions: the values are integers on a grid of this spacing, and their L1 sensitivity (in the unit of the
    statistic, rounding included) is the one given. As the values are on the grid it counts in whole steps.
    Tight: reached beyond the two true values. Theorems `laplace`, `discrete-laplace`.
    Source: Dwork, McSherry, Nissim, Smith 2006; Hall 2012, Prop. 1.3.1; lecture 2, Thm 2.7.
    """

    sensitivity: L1
    noise_scale: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("Laplace", self.sensitivity, (L1,), _HINT)
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        self.sensitivity.steps(self.step)

    @classmethod
    def for_epsilon(cls, *, epsilon: Exact, sensitivity: L1, spacing: Exact = 1) -> Laplace:
        """The smallest noise with this epsilon."""
        target = epsilon_parameter(epsilon)
        steps = need("Laplace", sensitivity, (L1,), _HINT).steps(grid_spacing(spacing))
        noise_scale = steps * grid_spacing(spacing) / target
        return cls(sensitivity=sensitivity, noise_scale=noise_scale, spacing=spacing)

    @property
    def step(self) -> Fraction:
        return Fraction(self.spacing)

    @property
    def distribution(self) -> DiscreteLaplace:
        """The law of one coordinate's noise, in grid steps."""
        return _distribution(exact_parameter("noise_scale", self.noise_scale) / self.step)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(self.distribution.rate * self.sensitivity.steps(self.step)))

    @property
    def profile(self) -> Profile:
        """The exact curve, which is below that of any mechanism with the same epsilon (`discrete-laplace`)."""
        from tacit.guarantees import Profile
        from tacit.pld import DiscreteLaplacePair, LaplacePair

        steps = self.sensitivity.steps(self.step)
        if steps > _DIRECT_TERMS:
            # The curve of the discrete law is above the continuous one; this shift covers the difference.
            rate, epsilon = self.distribution.rate, self.distribution.rate * steps
            wider = upper(lambda: ball(epsilon) + 2 * (ball(rate) / 2).cosh().log())
            return Profile.of_pair(LaplacePair(epsilon=wider))
        return Profile.of_pair(DiscreteLaplacePair(rate=up(self.distribution.rate), sensitivity=steps))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("discrete-laplace", "laplace")

    @property
    def exact_epsilon(self) -> Fraction:
        return self.distribution.rate * self.sensitivity.steps(self.step)

    @property
    def event(self) -> Event:
        """Discrete Laplace noise; for moves of very many steps the continuous law that is above it."""
        steps = self.sensitivity.steps(self.step)
        if steps > _DIRECT_TERMS:
            rate, epsilon = self.distribution.rate, self.distribution.rate * steps
            return events.LaplaceEvent(
                epsilon=upper(lambda: ball(epsilon) + 2 * (ball(rate) / 2).cosh().log())
            )
        return events.DiscreteLaplaceEvent(epsilon=float(self.bound.epsilon), sensitivity=steps)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "discrete Laplace",
            "noise_scale": shown(exact_parameter("noise_scale", self.noise_scale)),
            "spacing": shown(self.step),
            "exact": True,
        }

    def stated(self, parts: Sequence[str]) -> dict[str, Any]:
        return {
            "parts": list(parts),
            "distribution": "discrete Laplace",
            "noise_scale": shown(1 / self.distribution.rate),
            "epsilon": shown(self.exact_epsilon),
            "sensitivity": {"norm": "L1", "steps": self.sensitivity.steps(self.step)},
            "exact": True,
        }

    def _noise(self, shape: tuple[int, ...], source: Source) -> AnyArray:
        return self.distribution.sample(size=shape, source=source)

    def expected_error(self) -> float:
        """E |X| = spacing / sinh(spacing / noise_scale); noise_scale in the limit of fine grids (Lemma 2.8)."""
        rate, step = self.distribution.rate, self.step
        return upper(lambda: ball(step) / ball(rate).sinh())

    @property
    def noise_std(self) -> float:
        """The standard deviation: spacing sqrt(2 q) / (1 - q) = spacing / (sqrt(2) sinh(rate / 2))."""
        rate, step = self.distribution.rate, self.step
        return upper(lambda: ball(step) / (ball(2).sqrt() * (ball(rate) / 2).sinh()))

    @property
    def variance(self) -> float:
        return (self.noise_std / float(self.step)) ** 2

    def step_error(self) -> float:
        rate = self.distribution.rate
        return upper(lambda: 1 / ball(rate).sinh())

    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        return int(self.distribution.error_bound(confidence=confidence, coordinates=coordinates))

    def log_survival(self, t: npt.ArrayLike) -> Floats:
        """ln Pr[X >= t] in grid steps: for intervals, no privacy rests on it."""
        rate, at = float(self.distribution.rate), np.asarray(t, dtype=np.float64)
        above = -rate * at - np.log1p(np.exp(-rate))
        below = np.log1p(-np.exp(rate * (np.minimum(at, 0) - 1)) / (1 + np.exp(-rate)))
        return np.asarray(np.where(at >= 1, above, below))

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        return self.release(values, source=source).values

    def pivot(self, noises: Sequence[Laplace]) -> Pivot:
        """By the tail of the continuous sum, so that no quantile is computed; each draw is moved a little from it."""
        scales = [float(n.distribution.noise_scale) for n in noises]
        moves = [laplace_move(s) for s in scales]

        def margin(weights: Sequence[Floats], value: Floats, confidence: float) -> Floats:
            moved = sum(m * w for m, w in zip(moves, weights, strict=True))
            each = np.stack([s * w for s, w in zip(scales, weights, strict=True)])
            tail = laplace_log_tail(apart(each), np.maximum(np.abs(value) - moved, 0.0))
            return np.asarray(tail - math.log1p(-confidence))

        return margin

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least grid value t with Pr[|X| <= t] >= confidence: Pr[|X| >= k] = 2 q^k / (1 + q)."""
        return self.max_error(confidence=confidence, dimension=1)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """The least grid value t with Pr[max_i |X_i| <= t] >= confidence, exactly (no union bound)."""
        d = dimension_parameter(dimension)
        return in_units(
            self.distribution.error_bound(confidence=confidence_level(confidence), coordinates=d), self.step
        )

    def expected_max_error(self, *, dimension: int) -> float:
        """E max_i |X_i|: summed on coarse grids; on fine ones noise_scale (1 + 1/2 + ... + 1/d) + spacing / 2.

        Lemma 2.8 has noise_scale (ln d + 1). The second form is an upper bound, since |X| is stochastically below
        an exponential rounded to the grid: 2 q^k / (1 + q) <= q^(k - 1/2).
        """
        d = dimension_parameter(dimension)
        scale, step = exact_parameter("noise_scale", self.noise_scale), self.step
        if scale <= 256 * step:
            rate = float(self.distribution.rate)
            k = np.arange(1, math.ceil((math.log(d) + 45) / rate) + 2)
            tail = 2 * np.exp(-rate * k) / (1 + math.exp(-rate))
            return float(-np.expm1(d * np.log1p(-tail)).sum() * (1 + 1e-9)) * float(step)

        def formula() -> Any:
            # H_d = digamma(d + 1) + Euler's constant
            harmonic = ball(d + 1).digamma() - ball(1).digamma()
            return ball(scale) * harmonic + ball(step) / 2

        return upper(formula)
