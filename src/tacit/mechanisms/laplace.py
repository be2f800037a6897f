"""Laplace noise on a grid: the discrete Laplace distribution, exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import add_exact, check_fields, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, exact_parameter, exact_value, up, upper
from tacit.guarantees import Pure
from tacit.mechanisms.base import (
    L1,
    AdditiveMechanism,
    CellNoise,
    CountSensitivity,
    Mechanism,
    Pivot,
    Released,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    epsilon_value,
    in_units,
    need,
    one_value,
    shown,
)
from tacit.mechanisms.spreads import apart, laplace_log_tail, laplace_move
from tacit.noise import DiscreteLaplace, DiscreteStaircase, grid_spacing
from tacit.noise.source import Source, default_source

if TYPE_CHECKING:
    from tacit.guarantees import Profile

__all__ = ["Geometric", "Laplace", "Staircase", "TruncatedGeometric"]

_HINT = (
    "Laplace noise is sized by the sum of the coordinates' moves; Linf(...).to_l1(dimension=...) gives one"
)
_DIRECT_TERMS = 1 << 16


@lru_cache(maxsize=1024)
def _distribution(noise_scale: Fraction) -> DiscreteLaplace:
    """Made once: a release asks for its distribution some twenty times."""
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
        check_fields(self, noise_scale=exact_value)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        self.sensitivity.steps(self.step)

    @classmethod
    def for_target(cls, *, epsilon: Exact, sensitivity: L1, spacing: Exact = 1) -> Laplace:
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
        """The distribution of one coordinate's noise, in grid steps."""
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
            # The curve of the discrete distribution is above the continuous one; this shift covers the difference.
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
        """Discrete Laplace noise; for moves of very many steps, the continuous distribution, which dominates it."""
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

    def to_dict(self, parts: Sequence[str] = ()) -> dict[str, Any]:
        return {
            "parts": list(parts),
            "distribution": "discrete Laplace",
            "noise_scale": shown(1 / self.distribution.rate),
            "epsilon": shown(self.exact_epsilon),
            "sensitivity": {"norm": "L1", "steps": self.sensitivity.steps(self.step)},
            "exact": True,
        }

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


# Geometric noise for one count, plain and truncated to a public range.

_GEOMETRIC_HINT = (
    "geometric noise is for one integer count: CountSensitivity(1) if a unit changes it by at most 1"
)
_ONE = Fraction(1)
_COUNT = CountSensitivity(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric(AdditiveMechanism):
    """Two-sided geometric noise on one count, Pr[X = k] = (1-q)/(1+q) q^|k|, q = e^(-epsilon / sensitivity).

    Guarantee: Pure(epsilon), reached by every output outside the two counts. For sensitivity 1 it is universally
    optimal: the best mechanism for any loss that grows with the distance, and any prior, is a remap of its output.
    Theorem `geometric`. Source: Ghosh, Roughgarden, Sundararajan 2012.
    """

    epsilon: Exact
    sensitivity: CountSensitivity = CountSensitivity(1)

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        need("geometric", self.sensitivity, (CountSensitivity,), _GEOMETRIC_HINT)

    @classmethod
    def for_target(cls, *, epsilon: Exact, sensitivity: CountSensitivity = _COUNT) -> Geometric:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, sensitivity=sensitivity)

    @property
    def step(self) -> Fraction:
        return _ONE

    @property
    def distribution(self) -> DiscreteLaplace:
        """The distribution of the noise."""
        return DiscreteLaplace(noise_scale=self.sensitivity.exact / epsilon_parameter(self.epsilon))

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def profile(self) -> Profile:
        """The exact curve of the noise."""
        from tacit.guarantees import Profile
        from tacit.pld import DiscreteLaplacePair

        return Profile.of_pair(
            DiscreteLaplacePair(rate=up(self.distribution.rate), sensitivity=int(self.sensitivity.value))
        )

    @property
    def event(self) -> Event:
        """Discrete Laplace noise."""
        return events.DiscreteLaplaceEvent(
            epsilon=float(self.bound.epsilon), sensitivity=int(self.sensitivity.exact)
        )

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("geometric",) if self.sensitivity.exact == 1 else ("discrete-laplace",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "two-sided geometric",
            "noise_scale": shown(self.sensitivity.exact / epsilon_parameter(self.epsilon)),
            "spacing": "1",
            "exact": True,
        }

    def _checked(self, values: npt.ArrayLike) -> AnyArray:
        return one_value(values, "geometric")

    def expected_error(self) -> float:
        """E |X| = 1 / sinh(epsilon / sensitivity), which is also the minimax risk over all long ranges."""
        rate = self.distribution.rate
        return upper(lambda: 1 / ball(rate).sinh())

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least integer t with Pr[|X| <= t] >= confidence."""
        return in_units(self.distribution.error_bound(confidence=confidence_level(confidence)), _ONE)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` counts released side by side (which composes their epsilons)."""
        level, d = confidence_level(confidence), dimension_parameter(dimension)
        return in_units(self.distribution.error_bound(confidence=level, coordinates=d), _ONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometric(Mechanism):
    """Geometric noise, then clamped to the public range low..high: the ends collect what falls beyond them.

    Guarantee: Pure(epsilon), as post-processing of geometric noise; reached (by the output `low` already).
    Assumption: low and high are public. A true count outside is clamped first, which never increases the distance of
    two counts. Theorem `geometric`. Source: Ghosh, Roughgarden, Sundararajan 2012; Hall 2012, section 1.3.5.
    """

    epsilon: Exact
    low: int
    high: int
    sensitivity: CountSensitivity = CountSensitivity(1)

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        need("truncated geometric", self.sensitivity, (CountSensitivity,), _GEOMETRIC_HINT)
        check_fields(self, low=partial(whole, least=None), high=partial(whole, least=None))
        refuse_if(
            self.low >= self.high, "high", self.high, f"be above low = {self.low}", "the range is public"
        )

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, low: int, high: int, sensitivity: CountSensitivity = _COUNT
    ) -> TruncatedGeometric:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, low=low, high=high, sensitivity=sensitivity)

    @property
    def distribution(self) -> DiscreteLaplace:
        """The distribution of the noise before clamping."""
        return DiscreteLaplace(noise_scale=self.sensitivity.exact / epsilon_parameter(self.epsilon))

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def event(self) -> Event:
        """Discrete Laplace noise, and a cut, which is post-processing."""
        return events.DiscreteLaplaceEvent(
            epsilon=float(self.bound.epsilon), sensitivity=int(self.sensitivity.exact)
        )

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("geometric" if self.sensitivity.exact == 1 else "discrete-laplace", "post-processing")

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "truncated geometric",
            "noise_scale": shown(self.sensitivity.exact / epsilon_parameter(self.epsilon)),
            "spacing": "1",
            "low": int(self.low),
            "high": int(self.high),
            "exact": True,
        }

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """The clamped noisy count."""
        source = source if source is not None else default_source()
        array = one_value(values, "truncated geometric")
        clamp = np.vectorize(lambda v: min(max(int(v), self.low), self.high), otypes=[object])
        noisy = add_exact(clamp(array), self.distribution.sample(size=array.shape, source=source))
        out = clamp(noisy)
        fits = self.low >= -(1 << 63) and self.high < 1 << 63
        return Released(
            values=out.astype(np.int64) if fits else out, spacing=_ONE, publishable=source.publishable
        )

    def probability(self, output: int, *, count: int) -> tuple[float, float]:
        """Floats that enclose Pr[output | count]."""
        x = min(max(count, self.low), self.high)
        if not self.low <= output <= self.high:
            return 0.0, 0.0
        if output == self.high:
            return self.distribution.survival(output - x)
        return (
            self.distribution.cumulative(output - x)
            if output == self.low
            else self.distribution.probability(output - x)
        )

    def expected_error(self, *, count: int | None = None) -> float:
        """E |Y - x| = q (2 - q^(x - low) - q^(high - x)) / (1 - q^2); without a count, the worst: the middle."""
        x = (self.low + self.high) // 2 if count is None else min(max(count, self.low), self.high)
        rate = self.distribution.rate

        def formula() -> Any:
            a = ball(rate)
            inner = -(-a * (x - self.low)).expm1() - (-a * (self.high - x)).expm1()
            return inner / (2 * a.sinh())

        return upper(formula)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least t with Pr[|Y - x| <= t] >= confidence for every count x; the worst x is in the middle."""
        level = confidence_level(confidence)
        width = self.high - self.low
        both = self.distribution.error_bound(confidence=level)
        if 2 * (both + 1) <= width:
            return in_units(both, _ONE)
        # From width/2 steps on no count can be missed on both sides: one tail, Pr[X > t] = q^(t+1)/(1+q).
        one = max(width // 2, self.distribution.quantile(level))
        return in_units(min(one, both, width), _ONE)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` counts side by side: the untruncated bound, cut at the length of the range."""
        level, d = confidence_level(confidence), dimension_parameter(dimension)
        t = self.distribution.error_bound(confidence=level, coordinates=d)
        return in_units(min(t, self.high - self.low), _ONE)


# Staircase noise on a grid: the best noise for one number when the sensitivity is many grid steps.


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(AdditiveMechanism, CellNoise):
    """Noise that is flat on steps as wide as the sensitivity and falls by e^-epsilon from step to step.

    Guarantee: Pure(epsilon), reached at every edge of a step. Among noises added to one number it has the least
    E |X| for its epsilon, on fine grids; for small epsilon it is close to Laplace, for large it wins:
    E |X| / sensitivity = e^(epsilon/2) / (e^epsilon - 1) against 1 / epsilon.
    Assumption: one number on a grid, moved by at most the sensitivity. Theorem `staircase-mechanism`.
    Source: Geng, Viswanath 2014.
    """

    epsilon: Exact
    sensitivity: L1 | CountSensitivity
    spacing: Exact = 1
    gamma: Exact | None = None

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        set_fields(self, gamma=self.gamma)
        need(
            "staircase",
            self.sensitivity,
            (L1, CountSensitivity),
            "it is for one number: the size of its largest move",
        )
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        _ = self.distribution

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        sensitivity: CountSensitivity | L1,
        spacing: Exact = 1,
        gamma: Exact | None = None,
    ) -> Staircase:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, sensitivity=sensitivity, spacing=spacing, gamma=gamma)

    @property
    def step(self) -> Fraction:
        return Fraction(self.spacing)

    @property
    def distribution(self) -> DiscreteStaircase:
        """The distribution of the noise, in grid steps."""
        steps = self.sensitivity.steps(self.step)
        return DiscreteStaircase(epsilon=epsilon_parameter(self.epsilon), sensitivity=steps, gamma=self.gamma)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "staircase",
            "epsilon": shown(epsilon_parameter(self.epsilon)),
            "sensitivity_steps": self.sensitivity.steps(self.step),
            "plateau_steps": self.distribution.plateau,
            "spacing": shown(self.step),
            "exact": True,
        }

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("staircase-mechanism",)

    @property
    def exact_epsilon(self) -> Fraction:
        return epsilon_parameter(self.epsilon)

    def to_dict(self, parts: Sequence[str] = ()) -> dict[str, Any]:
        return {
            "parts": list(parts),
            "distribution": "staircase",
            "epsilon": shown(self.exact_epsilon),
            "plateau_steps": str(self.distribution.plateau),
            "sensitivity": {"norm": "L1", "steps": self.sensitivity.steps(self.step)},
            "exact": True,
        }

    def _checked(self, values: npt.ArrayLike) -> AnyArray:
        return one_value(values, "staircase")

    def expected_error(self) -> float:
        """E |X|, a sum of two geometric series."""
        return in_units(Fraction(self.distribution.mean_absolute) * (1 + Fraction(1, 1 << 50)), self.step)

    @property
    def variance(self) -> float:
        return self.distribution.variance

    def step_error(self) -> float:
        return self.expected_error() / float(self.step)

    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        return int(self.distribution.error_bound(confidence=confidence, coordinates=coordinates))

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        return self.release(values, source=source).values

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least grid value t with Pr[|X| <= t] >= confidence."""
        return in_units(self.distribution.error_bound(confidence=confidence_level(confidence)), self.step)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` numbers released side by side (which composes their epsilons)."""
        level, d = confidence_level(confidence), dimension_parameter(dimension)
        return in_units(self.distribution.error_bound(confidence=level, coordinates=d), self.step)


# Tails of weighted sums of Laplace variables, rounded up: what prefixes and fits of noisy counts can be off by.

POINTS = 1024
CHUNK = 1 << 18
"""The largest product of weights and rows in one step."""
GRID_STEPS = 1 << 14
FLOAT_SLACK = 1e-13
OFF_GRID = 1e-3
_RATES = np.linspace(0.05, 0.95, 19)


class Weighted(NamedTuple):
    """Sums of independent Laplace variables of scale 1, one a row: distinct |w|, and the number of terms with each."""

    weights: Floats
    counts: Floats

    @property
    def squares(self) -> Floats:
        """|w|^2 of each sum; its variance is twice that."""
        return np.asarray((self.counts * self.weights**2).sum(axis=1))

    @property
    def largest(self) -> Floats:
        """The largest |w| in each sum, 0 in an empty one."""
        return np.asarray((self.weights * (self.counts > 0)).max(axis=1))

    def some(self, chosen: slice | npt.NDArray[np.bool_]) -> Weighted:
        """Some of the rows."""
        return Weighted(self.weights[chosen], self.counts[chosen])

    def log_waves(self, waves: Floats) -> Floats:
        """ln E e^(i s S) = -sum n ln(1 + w^2 s^2), a row of s for each sum."""
        out = np.zeros_like(waves)
        for weight, count in zip(self.weights.T, self.counts.T, strict=True):
            out -= count[:, None] * np.log1p((weight[:, None] * waves) ** 2)
        return out

    def log_moments(self, rates: Floats) -> Floats:
        """ln E e^(r S) = -sum n ln(1 - w^2 r^2)."""
        out = np.zeros_like(rates)
        for weight, count in zip(self.weights.T, self.counts.T, strict=True):
            live = (count > 0)[:, None]
            out -= count[:, None] * np.log1p(-np.minimum((weight[:, None] * rates) ** 2, 0.99) * live)
        return out


def _weighted(sums: Floats) -> Weighted:
    rows = np.asarray(sums, dtype=np.float64)
    theta = rows[:, 0]
    return Weighted(np.stack([1 - theta, theta, np.ones_like(theta)], axis=1), rows[:, 1:])


def sum_quantiles(sums: Floats, tail: float) -> Floats:
    """c with Pr[S >= c] <= tail for each sum S of independent Laplace variables of scale 1, for tail < 1/2.

    Discrete Laplace noise on a grid of at least 2^14 steps a scale is covered too: with D in (-1, 1) steps independent
    of it, noise + D is Laplace (the fraction of an exponential is independent of its whole part), so c grows by d and
    Pr by Pr[w.D <= -d] <= exp(-d^2 / (2 |w|^2)) = tail / 1000. Source: Hoeffding 1963.
    """
    rows = _weighted(sums)
    return weighted_quantiles(rows, tail * (1 - OFF_GRID)) + _shift(rows, tail)


def weighted_quantiles(rows: Weighted, tail: float) -> Floats:
    """c with Pr[S >= c] <= tail for each row's sum S, for tail < 1/2; 0 for an empty one.

    Fourier inversion, Pr[S >= c] = 1/2 - sum_k sin(s_k c) phi(s_k) / (pi (k + 1/2)) with s_k = (k + 1/2) 2 pi / P:
    the error is at most Pr[|S| > P - c] (a Chernoff bound) plus the truncation error, both added. S is unimodal, so its
    tail is convex on c > 0 and the chord between two grid points lies above it. Source: Davies 1973.
    """
    size, step = len(rows.weights), max(CHUNK // (POINTS * max(rows.weights.shape[1], 1)), 1) * 16
    parts = [_quantiles(rows.some(slice(i, i + step)), tail) for i in range(0, size, step)]
    return np.concatenate(parts) if parts else np.empty(0)


def mean_sizes(rows: Weighted) -> Floats:
    """E |S| = (2/pi) int_0^inf (1 - phi(t)) / t^2 dt for each row's sum, with t = tan(s) / std; in floats."""
    nodes, weights = np.polynomial.legendre.leggauss(96)
    u = np.tan((nodes + 1) * np.pi / 4)
    std = np.sqrt(2 * rows.squares)
    phi = np.exp(
        rows.log_waves(
            np.divide(u[None, :], std[:, None], where=std[:, None] > 0, out=np.zeros((len(std), 96)))
        )
    )
    terms = (1 - phi) * (1 + 1 / u**2) * weights * (np.pi / 4)
    return np.asarray(2 / np.pi * terms.sum(axis=1) * std)


def squared_weights(sums: Floats) -> Floats:
    """|w|^2 of each sum; its variance is twice that."""
    return _weighted(sums).squares


def chernoff(sums: Floats, tail: float) -> Floats:
    """A simple c with Pr[S >= c] <= tail, above the sharp one; 0 for an empty sum."""
    rows = _weighted(sums)
    return _chernoff(rows, tail * (1 - OFF_GRID)) + _shift(rows, tail)


def _chernoff(rows: Weighted, tail: float) -> Floats:
    largest = rows.largest
    rates = _RATES[None, :] / np.where(largest > 0, largest, 1.0)[:, None]
    best = ((rows.log_moments(rates) - math.log(tail)) / rates).min(axis=1)
    return np.where(largest > 0, best, 0.0)


def _shift(rows: Weighted, tail: float) -> Floats:
    """d = |w| sqrt(2 ln(1000 / tail)) grid steps."""
    return np.sqrt(rows.squares) * (math.sqrt(2 * math.log(1 / (OFF_GRID * tail))) / GRID_STEPS)


def _quantiles(rows: Weighted, tail: float) -> Floats:
    live = rows.largest > 0
    out = np.zeros(live.size)
    if not live.any():
        return out
    rows = rows.some(live)
    largest = rows.largest
    period = 10 * np.sqrt(2 * rows.squares) + 22 * largest
    waves = (np.arange(POINTS) + 0.5)[None, :] * (2 * math.pi / period)[:, None]
    phi = np.exp(rows.log_waves(waves))
    rates = _RATES[None, :] / largest[:, None]
    # Only c up to half a period is read, so that what wraps around lies beyond the other half.
    wrapped = 2 * np.exp((rows.log_moments(rates) - rates * (period / 2)[:, None]).min(axis=1))
    cut = phi[:, -1] * (1 + 1 / (largest * waves[:, -1]) ** 2) / (2 * math.pi)
    chord, sure = read_quantiles(phi, period, wrapped + cut + FLOAT_SLACK, tail)
    # A single variable has a closed form, and a distribution whose Fourier series falls too slowly for the sum above.
    single = (rows.counts * (rows.weights > 0)).sum(axis=1) == 1
    chord = np.where(single, -largest * math.log(2 * tail), chord)
    simple = _chernoff(rows, tail)
    out[live] = np.where(sure | single, np.minimum(chord, simple), simple)
    return out


def read_quantiles(
    phi: Floats, period: Floats, spare: Floats, tail: float
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """c with Pr[S >= c] <= tail, from E cos(s S) at s = (k + 1/2) 2 pi / P, a row for each S; and where it is sure.

    S is symmetric, with a tail that is convex on c > 0; `spare` bounds the error of the sum, and is added to it.
    """
    points = phi.shape[1]
    order = np.arange(points) + 0.5
    turn = np.exp(1j * math.pi * np.arange(points) / points)[None, :]
    curve = 0.5 - (turn * np.fft.ifft(phi / (math.pi * order), axis=1)).imag * points
    tails = curve[:, : points // 2] + spare[:, None]
    reached = tails <= tail
    at = np.argmax(reached, axis=1)
    sure = reached.any(axis=1) & (at > 0)
    at = np.maximum(at, 1)
    index = np.arange(len(phi))
    before, after = tails[index, at - 1], tails[index, at]
    chord = period / points * (at - 1 + (before - tail) / np.where(sure, before - after, 1.0))
    return chord, sure
