"""An ordered pair of distributions (P, Q), seen through its curve h(t) = sup_S P(S) - t Q(S).

With t = e^epsilon this is the hockey-stick divergence H_epsilon(P||Q); h is convex and falls from 1 at
t = 0, never below max(0, 1 - t), and each such curve belongs to a pair (Zhu, Dong, Wang 2022). All that
privacy accounting asks of a mechanism is a pair that dominates its outputs on neighbours.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval

if TYPE_CHECKING:
    from tacit.pld.distributions import PrivacyLossDistribution

__all__ = ["NOTHING", "UNBOUNDED", "FloatArray", "Pair", "SwappedPair"]

FloatArray = NDArray[np.float64]

NOTHING = Interval(low=0.0, high=0.0)
UNBOUNDED = Interval(low=math.inf, high=math.inf)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


class Pair:
    """A pair (P, Q) of distributions; subclasses are frozen, keyword-only and valid from birth.

    Accounts of thousands of pairs ask each for its kind many times over, which an `ABC` answers ten times as
    slowly as a plain class: what is abstract here, the type checker refuses to leave out.
    """

    __slots__ = ()

    exact: ClassVar[bool] = True
    """False where the curve only bounds the true one from above: lower ends are then 0."""

    exact_in_products: ClassVar[bool] = True
    """False where products of the pair bound the composed mechanism from above only."""

    @property
    def symmetric(self) -> bool:
        """Whether (Q, P) has the same curve."""
        return True

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """A total order on pairs: equal keys mean equal pairs."""
        kind: Any = type(self)
        return (kind.__name__, *[getattr(self, name) for name in _names(kind)])

    @abstractmethod
    def curve(self, t: Any) -> Any:
        """The ball of h(t) = sup_S P(S) - t Q(S), for a ball t > 0, at the working precision."""

    @abstractmethod
    def pld(self) -> PrivacyLossDistribution:
        """The law of the loss ln(dP/dQ) under P and Q, in floats with error bounds, for the grid."""

    @property
    @abstractmethod
    def largest_loss(self) -> Interval:
        """Enclosure of the essential supremum of the finite losses (math.inf where unbounded)."""

    @property
    def smallest_loss(self) -> Interval:
        """Enclosure of the essential infimum of the finite losses."""
        return -self.largest_loss

    @property
    def top_mass(self) -> float:
        """A lower bound on the P-mass that sits exactly at the largest loss."""
        return 0.0

    @property
    def infinite_mass(self) -> Interval:
        """Enclosure of P(dP/dQ = infinity), the limit of the curve."""
        return NOTHING

    @property
    def reverse_infinite_mass(self) -> Interval:
        """Enclosure of Q(dP/dQ = 0)."""
        return self.infinite_mass

    @abstractmethod
    def renyi(self, order: float) -> float:
        """An upper bound, rounded up, on D_order(P||Q) for order > 1 (math.inf included)."""

    def swapped(self) -> Pair:
        """The pair (Q, P)."""
        return self if self.symmetric else SwappedPair(pair=self)

    def hockey_stick(self, epsilon: float) -> Interval:
        """Certified enclosure of H_epsilon(P||Q) for any real epsilon, infinities included."""
        require(not math.isnan(epsilon), parameter="epsilon", value=epsilon, must="be a number")
        if epsilon == -math.inf:
            return Interval(low=1.0, high=1.0)
        top, infinite = self.largest_loss, self.infinite_mass
        if epsilon >= top.high or epsilon == math.inf:
            value = infinite
        else:
            value = bracket(lambda: self.curve(ball(epsilon).exp()), what="a hockey-stick divergence")
        low = min(max(value.low, 0.0), 1.0) if self.exact else 0.0
        return Interval(low=low, high=min(max(value.high, low), 1.0))

    def hockey_stick_grid(self, epsilons: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of H_epsilon(P||Q) at many points, from the float law and its errors."""
        from tacit.pld.grid import pld_curve

        low, high = pld_curve(self.pld(), np.asarray(epsilons, dtype=np.float64))
        return (low if self.exact else np.zeros_like(low)), high

    @property
    def atom_count(self) -> int | Pair:
        """How many atoms the loss has, where laws of equally many may be stacked; else the pair itself."""
        return self

    def kinks(self) -> list[float] | None:
        """The epsilons between which the curve is linear in e^epsilon; None where it bends everywhere."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwappedPair(Pair):
    """(Q, P) for a pair (P, Q): h_swapped(t) = 1 - t + t h(1/t)."""

    pair: Pair

    @property
    def sort_key(self) -> tuple[Any, ...]:
        return ("SwappedPair", self.pair.sort_key)

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.pair.exact

    @property
    def exact_in_products(self) -> bool:  # type: ignore[override]
        return self.pair.exact_in_products

    def swapped(self) -> Pair:
        return self.pair

    def curve(self, t: Any) -> Any:
        return positive_ball(1 - t + t * self.pair.curve(1 / t))

    def pld(self) -> PrivacyLossDistribution:
        return self.pair.pld().swapped()

    @property
    def largest_loss(self) -> Interval:
        return -self.pair.smallest_loss

    @property
    def smallest_loss(self) -> Interval:
        return -self.pair.largest_loss

    @property
    def infinite_mass(self) -> Interval:
        return self.pair.reverse_infinite_mass

    @property
    def reverse_infinite_mass(self) -> Interval:
        return self.pair.infinite_mass

    def renyi(self, order: float) -> float:
        from tacit.pld.renyi import reverse_renyi

        return reverse_renyi(self.pair, order)
