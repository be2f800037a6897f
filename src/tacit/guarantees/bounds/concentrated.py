"""Zero-concentrated differential privacy: the Rényi divergence of every order a is at most a * rho."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from tacit.exact.checks import Numbers, check_fields, non_negative
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, bisected, upper
from tacit.guarantees.bounds.base import Bound

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, slots=True, kw_only=True)
class Concentrated(Bound):
    """rho-zCDP: D_a <= a * rho at all orders a > 1.

    The curve is the best that follows from it order by order (Canonne, Kamath, Steinke 2020):
        delta(e) = min over a > 1 of exp((a-1)(a rho - e)) / (a-1) * (1 - 1/a)^a.
    Any order gives a valid bound, so that an inexact minimum costs tightness only.
    Source: Bun, Steinke 2016, Def. 1.1; lecture 7, Def. 7.16; theorem `zcdp-to-approximate`.
    """

    kind: ClassVar[str] = "concentrated"
    rho: float

    def __post_init__(self) -> None:
        check_fields(self, rho=non_negative)

    def delta(self, epsilon: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest delta at this epsilon."""
        return self.delta_at(epsilon)

    def epsilon(self, delta: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest epsilon at this delta."""
        return self.epsilon_at(delta)

    def _delta(self, epsilon: float) -> float:
        if self.rho == 0 or math.isinf(epsilon):
            return 0.0
        return min(1.0, delta_at_order(self.rho, epsilon, _order_for_epsilon(self.rho, epsilon)))

    def _epsilon(self, delta: float) -> float:
        if self.rho == 0:
            return 0.0
        if delta == 0:
            return math.inf
        return epsilon_at_order(self.rho, delta, _order_for_delta(self.rho, delta))

    def _renyi(self, order: float) -> float:
        if self.rho == 0:
            return 0.0
        return math.inf if math.isinf(order) else upper(lambda: ball(order) * ball(self.rho))

    def _kullback_leibler(self) -> float:
        return self.rho

    def describe(self) -> str:
        return f"rho = {self._short(self.rho)}"


def delta_at_order(rho: float, epsilon: float, above: Fraction) -> float:
    """exp((a-1)(a rho - e)) (a-1)^(a-1) / a^a at the order a = 1 + above, rounded up."""

    def formula() -> arb:
        t, e, r = ball(above), ball(epsilon), ball(rho)
        a = 1 + t
        # (a-1) ln(a-1) - a ln a, without cancellation between large terms
        return (t * (a * r - e) - t * (1 / t).log1p() - a.log()).exp()

    return upper(formula)


def epsilon_at_order(rho: float, delta: float, above: Fraction) -> float:
    """a rho + ln(1 - 1/a) - (ln delta + ln a)/(a-1) at a = 1 + above, rounded up, at least 0."""

    def formula() -> arb:
        t, d, r = ball(above), ball(delta), ball(rho)
        a = 1 + t
        return a * r - (1 / t).log1p() - (d.log() + a.log()) / t

    return max(0.0, upper(formula))


def _order_for_epsilon(rho: float, epsilon: float) -> Fraction:
    """a - 1 at the root of (2a-1) rho - e + ln(1 - 1/a), which increases in a."""

    def slope(t: float) -> float:
        return (2 * t + 1) * rho - epsilon - math.log1p(1 / t)

    return _increasing_root(slope)


def _order_for_delta(rho: float, delta: float) -> Fraction:
    """a - 1 at the root of rho (a-1)^2 + ln(a delta), which increases in a."""
    log_delta = math.log(delta)

    def slope(t: float) -> float:
        return rho * t * t + log_delta + math.log1p(t)

    return _increasing_root(slope)


def _increasing_root(f: Callable[[float], float]) -> Fraction:
    """A float near the root of an increasing function on (0, inf), by bisection of the exponent."""
    low, high = bisected(lambda log2: not f(2.0**log2) < 0, -200.0, 200.0, absolute=1e-12)
    return Fraction(2.0 ** ((low + high) / 2))
