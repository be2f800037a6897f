"""Geometric noise for one count, plain and truncated to a public range."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import ball, upper
from tacit.exact.checks import settle, whole
from tacit.exact.integers import add_exact
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.mechanisms.base import (
    AdditiveMechanism,
    Mechanism,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    in_units,
    one_value,
    shown,
)
from tacit.mechanisms.grid import Released
from tacit.mechanisms.sensitivity import CountSensitivity, need
from tacit.noise import DiscreteLaplace
from tacit.noise.source import Source, default_source

if TYPE_CHECKING:
    from tacit.guarantees import Profile

__all__ = ["Geometric", "TruncatedGeometric"]

_HINT = "geometric noise is for one integer count: CountSensitivity(1) if a unit changes it by at most 1"
_ONE = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric(AdditiveMechanism):
    """Two-sided geometric noise on one count, Pr[X = k] = (1-q)/(1+q) q^|k|, q = e^(-epsilon / sensitivity).

    Guarantee: Pure(epsilon), reached by every output outside the two counts. For sensitivity 1 it is universally
    optimal: the best mechanism for any loss that grows with the distance, and any prior, is a remap of its output.
    Theorem `geometric`. Source: Ghosh, Roughgarden, Sundararajan 2012.
    """

    epsilon: Exact
    sensitivity: CountSensitivity = CountSensitivity(1)  # noqa: RUF009

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        need("geometric", self.sensitivity, (CountSensitivity,), _HINT)

    @property
    def step(self) -> Fraction:
        return _ONE

    @property
    def distribution(self) -> DiscreteLaplace:
        """The law of the noise."""
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

    def _noise(self, shape: tuple[int, ...], source: Source) -> AnyArray:
        return self.distribution.sample(size=shape, source=source)

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
    Assumption: low and high are public. A true count outside is clamped first, which moves no two counts apart.
    Theorem `geometric`. Source: Ghosh, Roughgarden, Sundararajan 2012; Hall 2012, section 1.3.5.
    """

    epsilon: Exact
    low: int
    high: int
    sensitivity: CountSensitivity = CountSensitivity(1)  # noqa: RUF009

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        need("truncated geometric", self.sensitivity, (CountSensitivity,), _HINT)
        settle(self, low=whole("low", self.low, least=None))
        settle(self, high=whole("high", self.high, least=None))
        if self.low >= self.high:
            raise InvalidParameter(
                parameter="high",
                value=self.high,
                must=f"be above low = {self.low}",
                hint="the range is public",
            )

    @property
    def distribution(self) -> DiscreteLaplace:
        """The law of the noise before clamping."""
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
