"""An ordered pair of distributions (P, Q), known by its curve h(t) = sup_S P(S) - t Q(S).

With t = e^epsilon this is the hockey-stick divergence H_epsilon(P||Q); h is convex and falls from 1 at
t = 0, never below max(0, 1 - t), and each such curve belongs to a pair (Zhu, Dong, Wang 2022). All that
privacy accounting asks of a mechanism is a pair that dominates its outputs on neighbours.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, ball, bracket, positive_ball

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tacit.pld.distributions import PrivacyLossDistribution
    from tacit.pld.quadrature import Quadrature, QuadratureRange, Rule, WithoutReplacementRule

NOTHING = Interval(low=0.0, high=0.0)
UNBOUNDED = Interval(low=math.inf, high=math.inf)
MOST_RATE = 0.999
"""Near a sampling rate of 1 a rule of quadrature would lose its digits."""


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def check_order(order: float) -> None:
    """Rényi orders are real and > 1; infinity is the largest loss."""
    require(order > 1, parameter="order", value=order, must="be greater than 1")


class Layers(NamedTuple):
    """A base pair, its rate of Poisson sampling (None without sampling), and whether it is swapped."""

    base: Pair
    rate: float | None
    swapped: bool


class Pair:
    """A pair (P, Q) of distributions; subclasses are frozen, keyword-only and valid from birth.

    Accounts of thousands of pairs ask each for its kind many times over, which takes ten times as long with an
    `ABC` as with a plain class. The type checker refuses a missing method.
    """

    __slots__ = ()

    exact: ClassVar[bool] = True
    """False if the curve only bounds the true one from above: lower ends are then 0."""

    exact_in_products: ClassVar[bool] = True
    """False if products of the pair bound the composed mechanism from above only."""

    measured: ClassVar[bool] = False
    """Whether each value of an upper bound needs an expensive separate account."""

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
        """The distribution of the loss ln(dP/dQ) under P and Q, in floats with error bounds, for the grid."""

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

    def renyi_at_least(self, order: float) -> float:
        """A lower bound on `renyi` that is cheap: high orders may take long to compute."""
        return 0.0

    def swapped(self) -> Pair:
        """The pair (Q, P)."""
        return self if self.symmetric else SwappedPair(pair=self)

    def starts_near(self, delta: float) -> float | None:
        """About the epsilon at which the curve crosses delta, for measured pairs; None if it is unknown."""
        return None

    def hockey_stick(self, epsilon: float) -> Interval:
        """Certified enclosure of H_epsilon(P||Q) for any real epsilon, infinities included."""
        require(not math.isnan(epsilon), parameter="epsilon", value=epsilon, must="be a number")
        if epsilon == -math.inf:
            return Interval(low=1.0, high=1.0)
        top, infinite = self.largest_loss, self.infinite_mass
        if epsilon >= top.high or epsilon == math.inf:
            value = infinite
        else:
            # What is measured gets no sharper by more digits.
            most = 96 if self.measured else 1 << 14
            value = bracket(
                lambda: self.curve(ball(epsilon).exp()), limit=most, what="a hockey-stick divergence"
            )
        low = min(max(value.low, 0.0), 1.0) if self.exact else 0.0
        return Interval(low=low, high=min(max(value.high, low), 1.0))

    def reverse_renyi(self, order: float) -> float:
        """An upper bound on D_order(Q||P), for pairs that are not symmetric."""
        return math.inf

    def sampled_fractional_renyi(self, rate: float, order: float) -> float | None:
        """An upper bound on D_order of the Poisson-sampled pair at a fractional order, if it is known better
        than by the neighbouring integer orders."""
        return None

    def hockey_stick_grid(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Lower and upper ends of H_epsilon(P||Q) at many points, from the float distribution and its errors."""
        from tacit.pld.distributions import pld_curve

        low, high = pld_curve(self.pld(), np.asarray(epsilons, dtype=np.float64))
        return (low if self.exact else np.zeros_like(low)), high

    @property
    def atom_count(self) -> int | None:
        """The number of finite losses of the pair, if it lists them; else None."""
        return None

    def kinks(self) -> list[float] | None:
        """The epsilons between which the curve is linear in e^epsilon; None if it bends everywhere."""
        return None

    # -- what composition asks for: a new kind answers what it can ------------------------------------

    has_density: ClassVar[bool] = False
    """Whether the nodes of its quadrature represent a density; else they are atoms."""

    meets_both_orders: ClassVar[bool] = False
    """Whether half of a quadrature can use the larger of its curve and its swap's curve."""

    @property
    def gaussian_squared(self) -> Fraction | None:
        """mu^2 if the pair is Gaussian; these add up."""
        return None

    @property
    def approximate_point(self) -> tuple[float, float] | None:
        """The (epsilon, delta) whose worst pair this is."""
        return None

    @property
    def has_closed_form(self) -> bool:
        """Whether the ball of its curve is quick enough; if not, even a single pair is composed."""
        return True

    def reduced(self) -> Pair:
        """The pair without layers that change nothing."""
        return self

    @property
    def magnitude(self) -> float | None:
        """About how large losses are before sampling. Near pairs are handled together; None if all are near."""
        return None

    def batch_key(self) -> tuple[Any, ...] | None:
        """Pairs of equal keys may share one privacy-loss distribution, a row for each; None for a pair that cannot
        share.
        """
        return None

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        """The distribution of pairs of one key, a row for each."""
        raise NotImplementedError

    def layers(self) -> Layers:
        """What quadrature starts from."""
        return Layers(base=self, rate=None, swapped=False)

    def rule_key(self, *, sampled: bool) -> Hashable:
        """The key of base pairs with a common rule of quadrature; None without a rule."""
        return None

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        """The rule of quadrature of base pairs, sampled at `rates`; None if it would need too many nodes."""
        return None

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        """The rule for the half Z > 1 of base pairs, for sampling without replacement."""
        return None

    def quadrature_key(self) -> tuple[Hashable, ...] | None:
        """Pairs of equal keys get nodes together; None without a rule."""
        base, rate, swapped = self.layers()
        if rate is not None and rate > MOST_RATE:
            return None
        key = base.rule_key(sampled=rate is not None)
        return None if key is None else (swapped, rate is not None, type(base).__name__, key)

    @classmethod
    def quadrature(cls, members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
        """Nodes of pairs of one key; None if the rule would need too many."""
        from tacit.pld.quadrature import layered

        return layered(members, reach)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        """(Common facts of near pairs, the parameters with which their curves rise), where known."""
        return None

    def with_parameters(self, values: Iterator[float]) -> Pair:
        """The pair with other parameters, in the order of `family`."""
        raise NotImplementedError


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
    def measured(self) -> bool:  # type: ignore[override]
        return self.pair.measured

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
        return self.pair.reverse_renyi(order)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.pair.has_density

    @property
    def magnitude(self) -> float | None:
        return self.pair.magnitude

    def batch_key(self) -> tuple[Any, ...] | None:
        inner = self.pair.batch_key()
        return None if inner is None else ("SwappedPair", inner)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return batch_pld([p.pair for p in pairs]).swapped()

    def layers(self) -> Layers:
        return self.pair.layers()._replace(swapped=True)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = self.pair.family()
        return None if inner is None else (("SwappedPair", inner[0]), inner[1])

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return self.pair.with_parameters(values).swapped()


def grouped(parts: Sequence[tuple[Pair, int]]) -> list[list[tuple[Pair, int]]]:
    """The parts, sorted, so that parts of one kind with near parameters are neighbours."""
    return [list(group) for _, group in groupby(parts, key=lambda part: part[0].batch_key() or part[0])]


_NEAR, _SHORTEST = 1.5, 4


def stretches(members: Sequence[tuple[Pair, int]], most: int) -> list[Sequence[tuple[Pair, int]]]:
    """A group cut into stretches of at most `most` with near parameters.

    A rule for all rows of a stretch must be as wide and as fine as its largest parameter requires.
    """
    cuts: list[int] = [0]
    first: float | None = None
    for k, (pair, _) in enumerate(members):
        own = pair.magnitude
        far = own is not None and first is not None and not first / _NEAR <= own <= first * _NEAR
        if k - cuts[-1] >= most or (far and k - cuts[-1] >= _SHORTEST):
            cuts.append(k)
            first = own
        first = own if k == cuts[-1] else first
    return [members[a:b] for a, b in pairwise([*cuts, len(members)])]


def batch_pld(pairs: Sequence[Pair]) -> PrivacyLossDistribution:
    """The distribution of pairs of one kind, a row for each."""
    return pairs[0].pld() if len(pairs) == 1 else type(pairs[0]).batch(pairs)


# Pairs known only through an upper curve, from Rényi divergences.


class UpperCurvePair(Pair):
    """Upper bounds in both directions: the pair equals its own swap."""

    __slots__ = ()
    exact = False
    exact_in_products = False

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def order_for(self, epsilon: float) -> tuple[float, float]:
        """A good order for this epsilon, and an upper bound on the divergence at it."""
        raise NotImplementedError

    def curve(self, t: Any) -> Any:
        if bool(t < 1):
            return (1 - t + t * self._from_order(1 / t)).min(ball(1))
        return self._from_order(t).min(ball(1))

    def _from_order(self, t: Any) -> Any:
        epsilon = t.log()
        order, divergence = self.order_for(float(epsilon.mid()))
        if math.isinf(divergence):
            return ball(1)
        a = ball(order)
        bound = ((a - 1) * (self.ball_at(order, divergence) - epsilon) + a * (-1 / a).log1p()).exp() / (a - 1)
        return positive_ball(bound)

    def ball_at(self, order: float, divergence: float) -> Any:
        """The divergence bound at an order, as a ball."""
        return ball(divergence)
