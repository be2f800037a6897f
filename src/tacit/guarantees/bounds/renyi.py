"""Rényi differential privacy: bounds on the divergence at some orders."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeVar

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.checks import Numbers, listed, non_negative, order_above_one, refuse_if
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, up, upper
from tacit.guarantees.bounds.base import Bound
from tacit.guarantees.bounds.pure import Pure

if TYPE_CHECKING:
    from flint import arb


Q = TypeVar("Q", float, Fraction)

COMMON_ORDERS: tuple[float, ...] = (
    *(1 + k / 20 for k in range(1, 20)),
    *(2 + k / 4 for k in range(32)),
    *(float(k) for k in range(10, 64, 2)),
    *(float(2**k) for k in range(6, 21)),
)
"""The default orders at which a curve is tabulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renyi(Bound):
    """D_a <= epsilon_a at each listed order a (infinity allowed: pure epsilon).

    Between orders: (a-1) D_a is convex in a and 0 at a = 1, so that chords bound it (theorem
    `renyi-interpolation`; van Erven, Harremoës 2014). Above the largest order nothing is known.
        delta(e) = min over a of exp((a-1)(epsilon_a - e)) / a * (1 - 1/a)^(a-1)
    (Canonne, Kamath, Steinke 2020; theorem `renyi-to-approximate`).
    Source: Mironov 2017; lecture 7, Def. 7.3.
    """

    kind: ClassVar[str] = "renyi"
    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        orders = tuple(order_above_one(a) for a in listed("orders", self.orders))
        epsilons = tuple(non_negative("epsilon", e, finite=False) for e in listed("epsilons", self.epsilons))
        if not orders:
            raise EmptyComposition(what="the list of Rényi orders")
        if len(orders) != len(epsilons):
            raise InvalidParameter(
                parameter="epsilons", value=len(epsilons), must=f"have one value per order ({len(orders)})"
            )
        refuse_if(len(set(orders)) != len(orders), "orders", orders, "name each order once")
        pairs = sorted(zip(orders, epsilons, strict=True))
        object.__setattr__(self, "orders", tuple(a for a, _ in pairs))
        object.__setattr__(self, "epsilons", tuple(e for _, e in pairs))

    def delta(self, epsilon: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest delta at this epsilon."""
        return self.delta_at(epsilon)

    def epsilon(self, delta: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest epsilon at this delta."""
        return self.epsilon_at(delta)

    def _delta(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            return 0.0 if self._has_finite() else 1.0
        return min((self._delta_at_order(a, e, epsilon) for a, e in self._finite()), default=1.0)

    def _epsilon(self, delta: float) -> float:
        return min((self._epsilon_at_order(a, e, delta) for a, e in self._finite()), default=math.inf)

    def _finite(self) -> list[tuple[float, float]]:
        return [(a, e) for a, e in zip(self.orders, self.epsilons, strict=True) if math.isfinite(e)]

    def _has_finite(self) -> bool:
        return any(math.isfinite(e) for e in self.epsilons)

    @staticmethod
    def _delta_at_order(order: float, divergence: float, epsilon: float) -> float:
        if divergence == 0:
            return 0.0
        if math.isinf(order):
            return Pure(epsilon=divergence).delta(epsilon)

        def formula() -> arb:
            a, d, e = ball(order), ball(divergence), ball(epsilon)
            return ((a - 1) * (d - e) - a.log() - (a - 1) * (1 / (a - 1)).log1p()).exp()

        return min(1.0, upper(formula))

    @staticmethod
    def _epsilon_at_order(order: float, divergence: float, delta: float) -> float:
        if divergence == 0:
            return 0.0
        if math.isinf(order):
            return Pure(epsilon=divergence).epsilon(delta)
        if delta == 0:
            return math.inf

        def formula() -> arb:
            a, d, t = ball(order), ball(divergence), ball(delta)
            return d - (1 / (a - 1)).log1p() - (t.log() + a.log()) / (a - 1)

        return max(0.0, upper(formula))

    def _renyi(self, order: float) -> float:
        finite = self._finite()
        known = [(a, e) for a, e in finite if a >= order]
        if not known:
            if order <= self.orders[-1]:
                return math.inf
            raise NoLaw(
                operation=f"the Rényi divergence of order {order:g}",
                reason=f"the bound lists no order above {self.orders[-1]:g}",
                hint="list a larger order when the curve is made",
            )
        best = min(e for _, e in known)  # D_a does not decrease in a
        if math.isinf(order):
            return best
        below = [(1.0, 0.0), *((a, e) for a, e in finite if a < order)]
        above = [(a, e) for a, e in known if order < a < math.inf]
        chords = [(left, right) for left in below for right in above]
        # Floats choose the chord, exact rationals evaluate it: a poor choice would cost tightness only.
        chosen = min(chords, key=lambda c: _chord(c[0][0], c[0][1], c[1][0], c[1][1], order), default=None)
        if chosen is None:
            return best
        left, low, right, high = _exactly(*chosen)
        return min(best, up(_chord(left, low, right, high, Fraction(order))))

    def _kullback_leibler(self) -> float:
        """Divergences do not fall with the order: the least of the known ones."""
        return min(self.epsilons)

    def describe(self) -> str:
        shown = ", ".join(
            f"{self._short(e)} at order {a:g}"
            for a, e in list(zip(self.orders, self.epsilons, strict=True))[:3]
        )
        more = f" and {len(self.orders) - 3} more orders" if len(self.orders) > 3 else ""
        return f"Rényi divergence {shown}{more}"


def _chord(left: Q, at_left: Q, right: Q, at_right: Q, order: Q) -> Q:
    """The chord of (a-1) D_a between two orders, divided by order - 1."""
    low, high = (left - 1) * at_left, (right - 1) * at_right
    return (low + (high - low) * (order - left) / (right - left)) / (order - 1)


def _exactly(
    left: tuple[float, float], right: tuple[float, float]
) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    return Fraction(left[0]), Fraction(left[1]), Fraction(right[0]), Fraction(right[1])
