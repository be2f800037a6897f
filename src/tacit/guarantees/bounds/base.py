"""Bounds on the privacy loss in closed form: pure, approximate, pointwise, concentrated, Gaussian and Rényi.

Every bound is a curve delta(epsilon), with its inverse and its Rényi divergences. All three are upper bounds, rounded
against us: the mechanism never reveals more. A curve without a closed form is a `Profile` (profile.py).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.checks import (
    Numbers,
    check_fields,
    each,
    is_number,
    listed,
    non_negative,
    order_above_one,
    probability,
    refuse_if,
)
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, bisected, digits_down, digits_up, up, upper

if TYPE_CHECKING:
    from flint import arb

    from tacit.exact.rounding import Interval


class Level(float):
    """A stated number that also answers for its curve.

    `Approximate(epsilon=1, delta=1e-6).epsilon` is the number 1.0; `.epsilon(1e-3)` is the curve's value.
    """

    __slots__ = ("_curve",)
    _curve: Callable[[float], float]

    def __new__(cls, value: float, curve: Callable[[float], float]) -> Level:
        self = super().__new__(cls, value)
        self._curve = curve
        return self

    def __call__(self, at: Numbers) -> Numbers:
        return self._curve(at)  # type: ignore[arg-type, return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)


BoundT = TypeVar("BoundT", bound="Bound")


class Bound(ABC):
    """How much may be revealed. Subclasses are frozen data classes, valid from birth.

    `delta_at(epsilon)` is the smallest certified delta such that the mechanism is (epsilon, delta)-private;
    `epsilon_at(delta)` its inverse (infinite where no epsilon will do); `renyi(order)` a bound on the Rényi
    divergence of that order between neighbours, or NoLaw where no theorem gives one. `delta(epsilon)` and
    `epsilon(delta)` are short for the first two.
    """

    __slots__ = ("_remains",)
    kind: ClassVar[str]

    if TYPE_CHECKING:
        # What a law returns is a bound of some kind: typed code may ask it for the numbers that bounds have, and a
        # name that none of them has is an error.
        @property
        def epsilon(self) -> Level: ...

        @property
        def delta(self) -> Level: ...

        @property
        def rho(self) -> float: ...

        @property
        def mu(self) -> float: ...

        @property
        def orders(self) -> tuple[float, ...]: ...

        @property
        def epsilons(self) -> tuple[float, ...]: ...

        def delta_between(self, epsilon: float, *, tolerance: float = 2e-4) -> Interval: ...

        def epsilon_between(self, delta: float, *, tolerance: float = 2e-4) -> Interval: ...

    def delta_at(self, epsilon: Numbers) -> Numbers:
        """The smallest certified delta such that (epsilon, delta)-privacy holds: a point of the privacy profile.

        An array of epsilons gives the array of deltas.
        """
        return each(  # type: ignore[no-any-return]
            "epsilon", epsilon, lambda e: self._delta(non_negative("epsilon", e, finite=False))
        )

    def epsilon_at(self, delta: Numbers) -> Numbers:
        """The smallest certified epsilon such that (epsilon, delta)-privacy holds; infinite if no epsilon is enough.

        An array of deltas gives the array of epsilons.
        """

        def one(given: object) -> float:
            level = probability("delta", given)
            return 0.0 if level == 1 else self._epsilon(level)

        return each("delta", delta, one)  # type: ignore[no-any-return]

    def renyi(self, order: Numbers) -> Numbers:
        """Upper bound on the Rényi divergence D_order between the outputs on neighbours, for orders of at least 1.

        Order 1 is the Kullback-Leibler divergence E_P ln(dP/dQ), the limit from above (theorem `kullback-leibler`).
        """

        def one(given: object) -> float:
            if is_number(given) and given == 1:
                return self._kullback_leibler()
            return self._renyi(order_above_one(given))

        return each("order", order, one)  # type: ignore[no-any-return]

    @abstractmethod
    def _delta(self, epsilon: float) -> float: ...

    @abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abstractmethod
    def _renyi(self, order: float) -> float: ...

    @abstractmethod
    def _kullback_leibler(self) -> float: ...

    @property
    def parameters(self) -> dict[str, Any]:
        """The stated parameters as plain values, in the order of the constructor."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @abstractmethod
    def describe(self) -> str:
        """The bound as a short phrase: three significant digits, rounded up."""

    def _short(self, value: float) -> str:
        """A number in three significant digits, rounded up; rounded down in the rest of a budget."""
        return (digits_down if getattr(self, "_remains", False) else digits_up)(float(value))

    def __str__(self) -> str:
        return self.describe()

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self.parameters)


def rebuild(cls: type[Bound], parameters: dict[str, Any]) -> Bound:
    """Make a bound anew from its plain parameters (for pickling and copying)."""
    return cls(**parameters)


def remainder(bound: BoundT) -> BoundT:
    """The same bound as the rest of a budget. Its text rounds down, so that nobody asks for more than the rest."""
    own: BoundT = rebuild(type(bound), bound.parameters)  # type: ignore[assignment]
    object.__setattr__(own, "_remains", True)
    return own


def no_renyi(kind: str) -> NoLaw:
    """The refusal of every bound that allows an outright failure with positive probability."""
    return NoLaw(
        operation=f"the Rényi divergence of {kind}",
        reason="with probability delta the output may give the data away, and then every order above 1 is infinite",
        counterexample="publish the table with probability delta, and nothing otherwise",
        hint="compose such bounds by their profile",
    )


def solve_epsilon(delta_at: Callable[[float], float], delta: float, *, start: float = 1.0) -> float:
    """The smallest float epsilon >= 0 (to within rounding) with delta_at(epsilon) <= delta.

    `delta_at` must be a non-increasing certified upper bound; the returned epsilon is always a point at
    which the inequality was checked, so that the search cannot err on the unsafe side. Guesses a point where
    the logarithm of delta, as a straight line, crosses (log delta is nearly one for the curves that are solved
    here), a little towards the side that has not moved. A guess that does not halve the bracket is followed by
    a halving.
    """
    above, below = delta_at(0.0), 0.0
    if above <= delta:
        return 0.0
    low, high = 0.0, start
    while (below := delta_at(high)) > delta:
        low, high, above = high, high * 2, below
        if math.isinf(high):
            return math.inf
    width = math.inf
    while True:
        middle = low + (high - low) / 2 if low else high / 2
        if (low and high - low <= 2e-16 * high) or middle <= 5e-324 or not low < middle < high:
            return high
        width, last = high - low, width
        if 2 * width <= last and 0 < below < above:
            middle = _crossing(low, high, math.log(above / delta), math.log(below / delta), middle)
        value = delta_at(middle)
        if value <= delta:
            high, below = middle, value
        else:
            low, above = middle, value


def _crossing(low: float, high: float, above: float, below: float, middle: float) -> float:
    """The zero of the line from (low, above > 0) to (high, below <= 0), moved towards the middle by a
    thousandth of the way, or by a few floats, so that the next point is on the other side and the bracket
    closes on both.
    """
    width = high - low
    found = low + width * (above / (above - below))
    step = min(max(1e-3 * abs(middle - found), 4e-16 * high), width / 2)
    found = found + step if found < middle else found - step
    return found if low < found < high else middle


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, float) else value


# Pure epsilon: no output is more than e^epsilon times likelier on one neighbour than on the other.


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(Bound):
    """epsilon-differential privacy.

    Randomised response with the same epsilon is the worst case (theorem `approximate-profile`), so that
        delta(e) = (e^epsilon - e^e) / (1 + e^epsilon) for e < epsilon, else 0,
        D_a = ln( cosh((a - 1/2) epsilon) / cosh(epsilon/2) ) / (a - 1)     (theorem `pure-to-renyi`).
    Source: Dwork, McSherry, Nissim, Smith 2006; Kairouz, Oh, Viswanath 2015; Groce 2014, Def. 3.3.
    """

    kind: ClassVar[str] = "pure"
    epsilon: Level

    def __init__(self, *, epsilon: float) -> None:
        value = non_negative("epsilon", epsilon)
        object.__setattr__(self, "epsilon", Level(value, self.epsilon_at))

    def delta(self, epsilon: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest delta at this epsilon."""
        return self.delta_at(epsilon)

    def _delta(self, epsilon: float) -> float:
        own = float(self.epsilon)
        if epsilon >= own:
            return 0.0
        # (e^own - e^e)/(1 + e^own), written so that large epsilons cannot overflow and small ones cancel.
        return upper(lambda: -(ball(epsilon) - ball(own)).expm1() / (1 + (-ball(own)).exp()))

    def _epsilon(self, delta: float) -> float:
        own = float(self.epsilon)
        if delta == 0 or own == 0:
            return own

        def inverse() -> arb:
            return ball(own) + (-ball(delta) * (1 + (-ball(own)).exp())).log1p()

        if delta * (1 + math.exp(-own)) >= 1 - 1e-12:
            return 0.0 if self._delta(0.0) <= delta else own
        return min(own, max(0.0, upper(inverse)))

    def _renyi(self, order: float) -> float:
        own = float(self.epsilon)
        if math.isinf(order) or own == 0:
            return own

        def divergence() -> arb:
            e, a = ball(own), ball(order)
            # ln cosh(x) = x + ln(1 + e^{-2x}) - ln 2 for x >= 0
            top = (a - 0.5) * e + (-(2 * a - 1) * e).exp().log1p()
            return (top - e / 2 - (-e).exp().log1p()) / (a - 1)

        return min(own, upper(divergence))

    def _kullback_leibler(self) -> float:
        own = float(self.epsilon)
        return min(own, upper(lambda: ball(own) * (ball(own) / 2).tanh()))

    def describe(self) -> str:
        return f"epsilon = {self._short(self.epsilon)}"


# (epsilon, delta) in two strengths: for every event, and pointwise.


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximate(Bound):
    """(epsilon, delta)-differential privacy: P(S) <= e^epsilon Q(S) + delta for every event S.

    The worst case gives the data away with probability delta and is randomised response otherwise
    (Kairouz, Oh, Viswanath 2015; theorem `approximate-profile`), so that for e < epsilon
        delta(e) = delta + (1 - delta) (e^epsilon - e^e) / (1 + e^epsilon).
    delta is not a 'probability of failure' in general: see `Pointwise`.
    """

    kind: ClassVar[str] = "approximate"
    epsilon: Level
    delta: Level

    def __init__(self, *, epsilon: float, delta: float) -> None:
        object.__setattr__(self, "epsilon", Level(non_negative("epsilon", epsilon), self.epsilon_at))
        object.__setattr__(self, "delta", Level(probability("delta", delta, below_one=True), self.delta_at))

    def _delta(self, epsilon: float) -> float:
        own, stated = float(self.epsilon), float(self.delta)
        if epsilon >= own:
            return stated
        return upper(
            lambda: (
                ball(stated)
                - (1 - ball(stated)) * (ball(epsilon) - ball(own)).expm1() / (1 + (-ball(own)).exp())
            )
        )

    def _epsilon(self, delta: float) -> float:
        own, stated = float(self.epsilon), float(self.delta)
        if delta < stated:
            return math.inf
        if delta == stated or own == 0:
            return own
        if self._delta(0.0) <= delta:
            return 0.0

        def inverse() -> arb:
            rest = (ball(delta) - ball(stated)) / (1 - ball(stated))
            return ball(own) + (-rest * (1 + (-ball(own)).exp())).log1p()

        return min(own, max(0.0, upper(inverse)))

    def _renyi(self, order: float) -> float:
        if self.delta > 0:
            raise no_renyi("an (epsilon, delta) bound")
        return Pure(epsilon=float(self.epsilon)).renyi(order)

    def _kullback_leibler(self) -> float:
        if self.delta > 0:
            raise no_renyi("an (epsilon, delta) bound")
        return Pure(epsilon=float(self.epsilon))._kullback_leibler()

    def describe(self) -> str:
        return f"epsilon = {self._short(self.epsilon)} with delta = {self._short(self.delta)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise(Approximate):
    """Pointwise (epsilon, delta): outside an event of probability delta the loss is at most epsilon.

    For all neighbours there is a set A with P(A) >= 1 - delta on whose subsets P <= e^epsilon Q
    (Hall 2012, Prop. 1.2.3; Kasiviswanathan, Smith 2008). It implies `Approximate` with the same numbers
    and not conversely. It is what Groce's eq. (6.26) asks of a sample size. It is *not* closed under
    post-processing: merging outputs may spread the bad event (theorem `pointwise-post-processing`).
    """

    kind: ClassVar[str] = "pointwise"

    def __init__(self, *, epsilon: float, delta: float) -> None:
        Approximate.__init__(self, epsilon=epsilon, delta=delta)

    def describe(self) -> str:
        return (
            f"a loss of at most {self._short(self.epsilon)} except with probability {self._short(self.delta)}"
        )


# Zero-concentrated differential privacy: the Rényi divergence of every order a is at most a * rho.


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


# Gaussian differential privacy: telling neighbours apart is as hard as telling N(0,1) from N(mu,1).


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianDP(Bound):
    """mu-Gaussian differential privacy; Gaussian noise has mu = l2_sensitivity / noise_std exactly.

        delta(e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu),       D_a = a mu^2 / 2.
    The discrete Gaussian does not have this curve.
    Source: Balle, Wang 2018, Thm 8; Dong, Roth, Su 2022; theorem `gaussian-profile`.
    """

    kind: ClassVar[str] = "gaussian"
    mu: float

    def __post_init__(self) -> None:
        check_fields(self, mu=non_negative)

    def delta(self, epsilon: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest delta at this epsilon."""
        return self.delta_at(epsilon)

    def epsilon(self, delta: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest epsilon at this delta."""
        return self.epsilon_at(delta)

    def _delta(self, epsilon: float) -> float:
        if self.mu == 0 or math.isinf(epsilon):
            return 0.0

        def curve() -> arb:
            m, e = ball(self.mu), ball(epsilon)
            return normal_cdf(m / 2 - e / m) - e.exp() * normal_cdf(-m / 2 - e / m)

        return min(1.0, max(0.0, upper(curve)))

    def _epsilon(self, delta: float) -> float:
        if self.mu == 0:
            return 0.0
        if delta == 0:
            return math.inf
        return _epsilon_of(self.mu, delta)

    def _renyi(self, order: float) -> float:
        if self.mu == 0:
            return 0.0
        return math.inf if math.isinf(order) else upper(lambda: ball(order) * ball(self.mu) ** 2 / 2)

    def _kullback_leibler(self) -> float:
        return upper(lambda: ball(self.mu) ** 2 / 2)

    def describe(self) -> str:
        return f"mu = {self._short(self.mu)}"


@lru_cache(maxsize=1024)
def _epsilon_of(mu: float, delta: float) -> float:
    """Solved once, because the meaning of one guarantee is computed at the same delta again and again."""
    return solve_epsilon(GaussianDP(mu=mu)._delta, delta, start=max(mu, 1e-300))


def normal_cdf(x: arb) -> arb:
    """The standard normal distribution function as a ball, accurate in both tails."""
    return (-x / ball(2).sqrt()).erfc() / 2


# Rényi differential privacy: bounds on the divergence at some orders.


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
