"""The exponential mechanism on an interval of the line, with the distance as its loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.balls import Ball, ball, upper
from tacit.exact.checks import settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.guarantees import Pure
from tacit.mechanisms.base import (
    Mechanism,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    one_value,
    shown,
)
from tacit.mechanisms.calibrate import least
from tacit.mechanisms.grid import Released
from tacit.mechanisms.sensitivity import L1, need
from tacit.noise import ComputableDistribution, grid_spacing
from tacit.noise.source import Source, default_source

__all__ = ["IntervalExponential"]

CENTRES = 513


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalExponential(Mechanism):
    """Pr[x] proportional to e^(-|x - value| / noise_scale) over the grid points of a public interval; exact.

    Guarantee: Pure(epsilon) with epsilon = D / noise_scale + ln(Z(low + D) / Z(low)), D the sensitivity and Z the
    normaliser, which is what the losses really reach. The general theorem would charge 2 D / noise_scale: on a long
    interval that is twice too much. Assumption: one number on the grid, the interval public; values are clamped.
    Theorem `exponential-interval` (sharper). Source: Hall 2012, Prop. 1.3.5 and the remark after it.
    """

    sensitivity: L1
    noise_scale: Exact
    low: Exact
    high: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need(
            "interval exponential",
            self.sensitivity,
            (L1,),
            "it is sized by the distance that the value moves",
        )
        exact_parameter("noise_scale", self.noise_scale)
        settle(self, noise_scale=self.noise_scale)
        step = grid_spacing(self.spacing)
        object.__setattr__(self, "spacing", step)
        for name in ("low", "high"):
            end = exact_parameter(name, getattr(self, name), positive=False)
            if (end / step).denominator != 1:
                raise InvalidParameter(
                    parameter=name, value=getattr(self, name), must=f"be a multiple of the spacing {step}"
                )
            object.__setattr__(self, name, end)
        if not Fraction(self.low) < Fraction(self.high):
            raise InvalidParameter(parameter="high", value=self.high, must="be above low")

    @classmethod
    def for_epsilon(
        cls, *, epsilon: Exact, sensitivity: L1, low: Exact, high: Exact, spacing: Exact = 1
    ) -> IntervalExponential:
        """The smallest noise (to one part in 10^5) whose exact epsilon is at most this one."""
        target = epsilon_parameter(epsilon)
        need("interval exponential", sensitivity, (L1,), "it is sized by the distance that the value moves")

        def make(scale: Fraction) -> IntervalExponential:
            return cls(sensitivity=sensitivity, noise_scale=scale, low=low, high=high, spacing=spacing)

        start = 2 * sensitivity.exact / target
        return make(least(lambda scale: make(scale).bound.epsilon <= target, start))

    @property
    def step(self) -> Fraction:
        """The grid's spacing."""
        return Fraction(self.spacing)

    @property
    def rate(self) -> Fraction:
        """Grid step over noise_scale."""
        return self.step / exact_parameter("noise_scale", self.noise_scale)

    @property
    def _first(self) -> int:
        return int(Fraction(self.low) / self.step)

    @property
    def _width(self) -> int:
        return int((Fraction(self.high) - Fraction(self.low)) / self.step)

    def _mass(self, centre: int) -> Ball:
        """(1 - q) Z(centre) = 1 + q - q^(c+1) - q^(W-c+1), as a sum of positive terms."""
        a = ball(self.rate)
        left, right = (-a * (centre + 1)).expm1(), (-a * (self._width - centre)).expm1()
        return -left - (-a).exp() * right

    @property
    def bound(self) -> Pure:
        moved = min(self.sensitivity.steps(self.step), self._width)

        def formula() -> Any:
            return ball(self.rate * moved) + (self._mass(moved) / self._mass(0)).log()

        return Pure(epsilon=upper(formula))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("exponential-interval",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "exponential mechanism on an interval",
            "noise_scale": shown(exact_parameter("noise_scale", self.noise_scale)),
            "low": shown(Fraction(self.low)),
            "high": shown(Fraction(self.high)),
            "spacing": shown(self.step),
            "exact": True,
        }

    def distribution(self, centre: int) -> ComputableDistribution:
        """The law of the output, in grid steps above `low`, for a true value `centre` steps above `low`."""
        width, c, rate = self._width, min(max(int(centre), 0), self._width), self.rate

        def cumulative(k: int) -> Ball:
            if k < 0:
                return ball(0)
            if k >= width:
                return ball(1)
            a = ball(rate)
            if k < c:
                return -(-a * (c - k)).exp() * (-a * (k + 1)).expm1() / self._mass(c)
            return 1 + (-a * (k + 1 - c)).exp() * (-a * (width - k)).expm1() / self._mass(c)

        return ComputableDistribution(cumulative_ball=cumulative, name="exponential mechanism on an interval")

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """A grid point of the interval; the value is clamped to it first."""
        source = source if source is not None else default_source()
        array = one_value(values, "interval exponential")
        drawn = (
            int(self.distribution(int(array.ravel()[0]) - self._first).sample(source=source)) + self._first
        )
        dtype = np.int64 if -(1 << 63) <= drawn < 1 << 63 else object
        return Released(
            values=np.array(drawn, dtype=dtype).reshape(array.shape),
            spacing=self.step,
            publishable=source.publishable,
        )

    def _centres(self) -> npt.NDArray[np.float64]:
        return np.unique(np.rint(np.linspace(0, self._width, min(CENTRES, self._width + 1))))

    def expected_error(self) -> float:
        """The worst E |output - value| over true values (looked for on a grid of 513 of them)."""
        a, c, width = float(self.rate), self._centres(), float(self._width)
        mass = -np.expm1(-a * (c + 1)) - np.exp(-a) * np.expm1(-a * (width - c))
        total = (_weighted(a, c) + _weighted(a, width - c)) / mass
        return float(total.max() * (1 + 1e-9) * float(self.step))

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """What |output - value| stays within for every true value (looked for on a grid of 513 of them)."""
        a, c, width = float(self.rate), self._centres(), float(self._width)
        allowed = float(1 - confidence_level(confidence))
        mass = -np.expm1(-a * (c + 1)) - np.exp(-a) * np.expm1(-a * (width - c))

        def miss(t: int) -> float:
            side = [np.exp(-a * (t + 1)) * -np.expm1(-a * np.maximum(m - t, 0)) for m in (c, width - c)]
            return float(((side[0] + side[1]) / mass).max())

        low, high = -1, self._width
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if miss(middle) > allowed else (low, middle)
        return float(high * self.step)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` numbers released side by side (which composes their epsilons)."""
        return self.error_quantile(
            float(confidence_level(confidence)) ** (1 / dimension_parameter(dimension))
        )


def _weighted(a: float, m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(1 - q) sum_{i=1..m} i q^i = q (1 - q^m) / (1 - q) - m q^(m+1)."""
    geometric = np.exp(-a) * np.expm1(-a * m) / np.expm1(-a)
    return np.asarray(geometric - m * np.exp(-a * (m + 1)))
