"""Sampling without replacement (replace-one)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Floats, column
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    Interval,
    ball,
    bisected_arrays,
    bracket,
    positive_ball,
    product,
    up,
    working_precision,
)
from tacit.pld.distributions import PrivacyLossDistribution, TailPLD, Tails, unsampled_loss
from tacit.pld.pairs.base import MOST_RATE, NOTHING, UNBOUNDED, Layers, Pair, batch_pld, check_order
from tacit.pld.pairs.derived import WorstPair, product_key, worst_renyi
from tacit.pld.pairs.gaussian import float_normal_cdf, normal_cdf
from tacit.pld.product import Product, families, rebuilt
from tacit.pld.quadrature import (
    Quadrature,
    QuadratureRange,
    Rule,
    Variation,
    WithoutReplacementRule,
    replaced_rule,
)

# Enclosing the root of a rising function in ball arithmetic.


def rising_root(
    function: Callable[[Any], Any], level: Any, *, reach: float = 2.0**40
) -> tuple[Any, Any] | None:
    """Points low < high with function(low) < level < function(high), as near as the precision can tell.

    Three points split the bracket in four; where a comparison is undecided (the point may be the root itself)
    the neighbouring points still narrow it. None if the function stays on one side up to `reach`.
    """
    low, high = ball(-1), ball(1)
    while not bool(function(low) < level):
        low = low * 2
        if low < -reach:
            return None
    while not bool(function(high) > level):
        high = high * 2
        if high > reach:
            return None
    for _ in range(2 * working_precision()):
        before = (low, high)
        width = high - low
        for share in (1, 2, 3):
            point = (before[0] + width * share / 4).mid()
            value = function(point)
            if bool(value < level):
                low = point
            elif bool(value > level):
                high = point
                break
        if (low, high) == before or not bool(low < high):
            break
    return low, high


# Mixtures of Gaussians against one Gaussian: what several partly overlapping contributions look like.


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturePair(Pair):
    """A mixture of Gaussians against one: sum_i weight_i N(shift_i, 1) against N(0, 1), shifts >= 0.

    The likelihood ratio rises with the output, so that the best test is a threshold x on it.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        ok = len(self.shifts) == len(self.weights) > 0
        require(ok, parameter="weights", value=self.weights, must="match the shifts, at least one")
        require(
            all(0 <= s < math.inf for s in self.shifts) and max(self.shifts) > 0,
            parameter="shifts",
            value=self.shifts,
            must="be finite, non-negative and not all zero",
        )
        total = abs(sum((Fraction(w) for w in self.weights), Fraction(0)) - 1)
        require(
            all(w >= 0 for w in self.weights) and total <= Fraction(1, 10**12),
            parameter="weights",
            value=self.weights,
            must="be non-negative and sum to 1",
        )
        positive = any(w > 0 and s > 0 for w, s in zip(self.weights, self.shifts, strict=True))
        require(positive, parameter="weights", value=self.weights, must="put mass on a positive shift")

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    @property
    def smallest_loss(self) -> Interval:
        still = [w for w, s in zip(self._weights(), self.shifts, strict=True) if s == 0]
        if not still:
            return Interval(low=-math.inf, high=-math.inf)
        return bracket(lambda: ball(sum(still, Fraction(0))).log(), what="a loss")

    def _weights(self) -> list[Fraction]:
        exact = [Fraction(w) for w in self.weights]
        total = sum(exact)
        return [w / total for w in exact]

    def _loss(self, x: Any) -> Any:
        ratio = ball(0)
        for w, s in zip(self._weights(), self.shifts, strict=True):
            ratio += ball(w) * (ball(s) * x - ball(s) ** 2 / 2).exp()
        return ratio

    def curve(self, t: Any) -> Any:
        """sup over thresholds x of P(X > x) - t Q(X > x): any x bounds below, the root above too."""
        still = sum((w for w, s in zip(self._weights(), self.shifts, strict=True) if s == 0), Fraction(0))
        if not bool(t > ball(still)):
            return 1 - t if bool(t <= ball(still)) else positive_ball(1 - t)
        ends = rising_root(self._loss, t)
        if ends is None:
            return positive_ball(1 - t)
        low, high = ends
        # The gain is flat at the root: over [low, high] it varies by at most (the ratio's change) Q(X in it).
        middle = ((low + high) / 2).mid()
        value = -t * normal_cdf(-middle)
        for w, s in zip(self._weights(), self.shifts, strict=True):
            value += ball(w) * normal_cdf(ball(s) - middle)
        excess = (self._loss(high) - self._loss(low)) * (normal_cdf(high) - normal_cdf(low))
        return positive_ball(value.union(value + positive_ball(excess)))

    def pld(self) -> PrivacyLossDistribution:
        shifts, weights = np.array(self.shifts), np.array([float(w) for w in self._weights()])

        def loss_at(x: Floats) -> Floats:
            terms = shifts[:, None] * x - shifts[:, None] ** 2 / 2
            peak = np.max(terms, axis=0, keepdims=True)
            with np.errstate(divide="ignore"):
                total = np.sum(weights[:, None] * np.exp(terms - peak), axis=0, keepdims=True)
                return np.asarray(peak + np.log(total))

        def tails(losses: Floats) -> Tails:
            far = np.full_like(losses, 2.0**12)
            low, high = bisected_arrays(lambda x: ~(loss_at(x) < losses), -far, far, halvings=80)
            x = (low + high) / 2
            reached = np.abs(loss_at(x) - losses)
            inside = np.abs(x) < 2.0**11
            reach = float(np.max(np.abs(x[inside]), initial=0.0))
            spread = np.full_like(x, 1.0 + reach)
            slack = float(np.max(reached[inside], initial=0.0)) + 64 * UNIT * (
                1 + reach * float(shifts.max())
            )
            q = [float_normal_cdf(-x, spread), float_normal_cdf(x, spread)]
            above = [float_normal_cdf(s - x, spread) for s in shifts]
            below = [float_normal_cdf(x - s, spread) for s in shifts]
            values = np.array(
                [
                    sum(w * a[0] for w, a in zip(weights, above, strict=True)),
                    sum(w * b[0] for w, b in zip(weights, below, strict=True)),
                    q[0][0],
                    q[1][0],
                ]
            )
            errors = np.array(
                [
                    sum(w * a[1] for w, a in zip(weights, above, strict=True)),
                    sum(w * b[1] for w, b in zip(weights, below, strict=True)),
                    q[0][1],
                    q[1][1],
                ]
            )
            return Tails(values=values, errors=errors + 8 * UNIT * values, slack=slack)

        still = float(weights[shifts == 0].sum())
        return TailPLD(tails=tails, bounds=(math.log(still) if still > 0 else -np.inf, np.inf))

    def renyi(self, order: float) -> float:
        from tacit.pld.renyi import mixture_renyi

        return mixture_renyi(self, order)

    def reverse_renyi(self, order: float) -> float:
        from tacit.pld.renyi import mixture_renyi

        return mixture_renyi(self, order, reverse=True)


# Poisson-sampled Gaussian noise when a record is exchanged: one mixture of normals against its mirror image.

_FARTHEST = 2.0**12


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledReplacementPair(Pair):
    """(1-q) N(0,1) + q N(mu,1) against (1-q) N(0,1) + q N(-mu,1).

    A record that moves a sum by mu noise deviations in one direction is exchanged for one that moves it equally
    far in the other, and takes part with probability q. The likelihood ratio rises with the output, because the
    first mixture over the standard density rises and the second falls, so that thresholds are best tests.
    Reflection of the outputs exchanges the two: the pair is its own swap. No other two directions are easier to
    distinguish (theorem `poisson-gaussian-replace-one`).
    """

    mu: float
    rate: float

    def __post_init__(self) -> None:
        require(0 < self.mu < math.inf, parameter="mu", value=self.mu, must="be positive and finite")
        require(0 < self.rate <= 1, parameter="rate", value=self.rate, must="lie in (0, 1]")

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def _ratio(self, x: Any) -> Any:
        q, mu = ball(self.rate), ball(self.mu)
        top = 1 - q + q * (mu * x - mu**2 / 2).exp()
        return top / (1 - q + q * (-mu * x - mu**2 / 2).exp())

    def _gain(self, x: Any, t: Any) -> Any:
        """P(X > x) - t Q(X > x)."""
        q, mu = ball(self.rate), ball(self.mu)
        still = (1 - q) * normal_cdf(-x)
        return still + q * normal_cdf(mu - x) - t * (still + q * normal_cdf(-mu - x))

    def curve(self, t: Any) -> Any:
        ends = rising_root(self._ratio, t)
        if ends is None:
            return positive_ball(1 - t).union(ball(1))
        low, high = ends
        # The gain is flat at the root: over [low, high] it varies by at most (the ratio's change) Q(X in it).
        value = self._gain(((low + high) / 2).mid(), t)
        excess = (self._ratio(high) - self._ratio(low)) * (high - low)
        return positive_ball(value.union(value + positive_ball(excess)))

    def pld(self) -> PrivacyLossDistribution:
        mu, q = self.mu, self.rate

        def half(x: Floats, sign: float) -> Floats:
            exponent = sign * mu * x - mu**2 / 2
            with np.errstate(divide="ignore"):
                return np.asarray(np.logaddexp(np.log1p(-q), np.log(q) + exponent))

        def loss_at(x: Floats) -> Floats:
            return half(x, 1.0) - half(x, -1.0)

        def tails(losses: Floats) -> Tails:
            far = np.full_like(losses, _FARTHEST)
            low, high = bisected_arrays(lambda x: ~(loss_at(x) < losses), -far, far, halvings=80)
            x = (low + high) / 2
            inside = np.abs(x) < _FARTHEST / 2
            reach = float(np.max(np.abs(x[inside]), initial=0.0))
            missed = float(np.max(np.abs(loss_at(x) - losses)[inside], initial=0.0))
            spread = np.full_like(x, 1.0 + reach)
            rows = []
            for shift in (mu, -mu):
                for side in (-1.0, 1.0):
                    still, moved = (
                        float_normal_cdf(side * x, spread),
                        float_normal_cdf(side * (x - shift), spread),
                    )
                    rows.append([(1 - q) * still[k] + q * moved[k] for k in (0, 1)])
            values, errors = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
            slack = missed + 64 * UNIT * (1 + reach * mu + mu**2)
            return Tails(values=values, errors=errors + 8 * UNIT * values, slack=slack)

        return TailPLD(tails=tails)

    def renyi(self, order: float) -> float:
        """At most that of the record surely taking part, order (2 mu)^2 / 2: divergences are quasi-convex."""
        check_order(order)
        if order == math.inf:
            return math.inf
        return up(Fraction(order) * 2 * Fraction(self.mu) ** 2)

    has_density = True

    def rule_key(self, *, sampled: bool) -> Hashable:
        # A mixture of a ratio of mixtures turns by twice the angle, and may vanish in the strip.
        return None if sampled or self.rate > MOST_RATE else 0

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        mu = column([p.mu for p in pairs])
        rule = replaced_rule(mu, column([p.rate for p in pairs]), reach)
        if rule is None:
            return None
        # Two mixtures against each other: no node is worse than the furthest.
        return replace(rule, cancelled=float(np.max(np.abs(rule.ratio))) + 2 * float(np.max(mu)) ** 2)


# Poisson sampling of a pair, exactly: each record takes part with probability `rate`, independently.


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampledPair(Pair):
    """((1 - rate) Q + rate P, Q) for a pair (P, Q): the record removed; its `swapped()` is the record added.

    h(t) = rate h0((t - 1 + rate)/rate) for t > 1 - rate, else 1 - t. If (P, Q) dominates a mechanism's
    removals, this dominates those of the sampled mechanism (Zhu, Dong, Wang 2022, Theorem 11).
    """

    pair: Pair
    rate: float

    def __post_init__(self) -> None:
        require(
            0 < self.rate <= 1,
            parameter="rate",
            value=self.rate,
            must="lie in (0, 1]",
            hint="a rate of 0 reads no record: leave the event out",
        )

    @property
    def sort_key(self) -> tuple[Any, ...]:
        return ("PoissonSampledPair", self.pair.sort_key, self.rate)

    @property
    def symmetric(self) -> bool:
        return self.rate == 1 and self.pair.symmetric

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
        return self if self.symmetric else Pair.swapped(self)

    def curve(self, t: Any) -> Any:
        rate = ball(self.rate)
        inner = (t - 1 + rate) / rate
        if bool(inner <= 0):
            return 1 - t
        if not bool(inner > 0):
            # The kink itself: h lies between 1 - t and 1 - t + (its slope's change) times the radius.
            return (1 - t).union(1 - t + 2 * rate * positive_ball(inner))
        return rate * self.pair.curve(inner)

    def pld(self) -> PrivacyLossDistribution:
        return self.pair.pld().sampled(self.rate) if self.rate < 1 else self.pair.pld()

    def _map(self, loss: Interval) -> Interval:
        def image(value: float) -> Interval:
            if value == math.inf:
                return UNBOUNDED
            if value == -math.inf:
                if self.rate == 1:
                    return Interval(low=-math.inf, high=-math.inf)
                if self.rate < 0.5:
                    near = math.log1p(-self.rate)
                    return Interval(low=near - abs(near) * 2.0**-48, high=near + abs(near) * 2.0**-48)
                exact = 1 - Fraction(self.rate)
                return bracket(lambda: ball(exact).log(), what="a loss")
            grown = self.rate * math.expm1(value) if value < 700 else math.inf
            if -0.5 < grown < math.inf:
                # expm1, the product and log1p are right to a few units, and none of them amplifies those here
                # (log1p nowhere above 0).
                near = math.log1p(grown)
                return Interval(low=near - abs(near) * 2.0**-48, high=near + abs(near) * 2.0**-48)
            rate = ball(self.rate)
            return bracket(lambda: (rate * ball(value).expm1()).log1p(), what="a loss")

        low = image(loss.low)
        return low if loss.low == loss.high else Interval(low=low.low, high=image(loss.high).high)

    @property
    def largest_loss(self) -> Interval:
        return self._map(self.pair.largest_loss)

    @property
    def smallest_loss(self) -> Interval:
        if self.pair.reverse_infinite_mass.high > 0:
            return self._map(Interval(low=-math.inf, high=-math.inf))
        return self._map(self.pair.smallest_loss)

    @property
    def top_mass(self) -> float:
        return self.rate * self.pair.top_mass * (1 - 2.0**-52)

    @property
    def infinite_mass(self) -> Interval:
        inner = self.pair.infinite_mass
        if inner.high == 0:
            return inner
        return Interval(low=product(self.rate, inner.low).low, high=product(self.rate, inner.high).high)

    @property
    def reverse_infinite_mass(self) -> Interval:
        return self.pair.reverse_infinite_mass if self.rate == 1 else NOTHING

    def renyi(self, order: float) -> float:
        from tacit.pld.renyi import sampled_renyi

        return sampled_renyi(self.pair, self.rate, order)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return self.pair.has_density

    def reduced(self) -> Pair:
        return self.pair.reduced() if self.rate == 1 else self

    def reverse_renyi(self, order: float) -> float:
        """D(Q||mix) <= D(mix||Q) where P and Q are mirror images (Mironov, Talwar, Zhang 2019, Theorem 5)."""
        from tacit.pld.renyi import sampled_renyi

        check_order(order)
        if self.pair.symmetric:
            return sampled_renyi(self.pair, self.rate, order)
        inner = self.pair.swapped().renyi(order)
        if order == math.inf or math.isinf(inner):
            return inner

        def value() -> Any:
            # x^(1-a) is convex: E_mix (Q/mix)^a <= 1 - q + q e^((a-1) D_a(Q||P)).
            a = ball(order)
            return (ball(self.rate) * ((a - 1) * ball(inner)).expm1()).log1p() / (a - 1)

        return bracket(value, what="a Rényi divergence").high

    @property
    def magnitude(self) -> float | None:
        return self.pair.magnitude

    def batch_key(self) -> tuple[Any, ...] | None:
        inner = self.pair.batch_key()
        return None if inner is None else ("PoissonSampledPair", inner)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return batch_pld([p.pair for p in pairs]).sampled(column([p.rate for p in pairs]))

    def layers(self) -> Layers:
        base, rate, swapped = self.pair.layers()
        # Layers inside are not taken apart: only a base pair has a rule.
        plain = rate is None and not swapped
        return Layers(base=base if plain else self.pair, rate=self.rate, swapped=False)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = self.pair.family()
        return None if inner is None else (("PoissonSampledPair", inner[0]), (self.rate, *inner[1]))

    def with_parameters(self, values: Iterator[float]) -> Pair:
        rate = next(values)
        return PoissonSampledPair(pair=self.pair.with_parameters(values), rate=rate)


# A mechanism that sees the exchanged unit with probability `rate` only, and may tell whether it did.


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinnedPair(WorstPair):
    """rate * delta(e) for e >= 0: with probability 1 - rate both neighbours give one and the same output.

    Poisson sampling under replace-one (theorem `poisson-replace-one`): reached by mechanisms that print the size of
    their sample.
    """

    products: tuple[Product, ...]
    rate: float

    def __post_init__(self) -> None:
        self._check()
        require(0 < self.rate <= 1, parameter="rate", value=self.rate, must="lie in (0, 1]")

    def _image(self, top: float) -> float:
        return top

    def _inner(self, epsilon: Floats) -> Floats:
        return epsilon

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        return min(1.0, self.rate * delta * (1 + 1e-15))

    def renyi(self, order: float) -> float:
        """ln(1 - q + q e^((a-1) D_a)) / (a-1), the divergence of the mixture of both cases."""
        check_order(order)
        whole = worst_renyi(self.products, order)
        if order == math.inf or math.isinf(whole):
            return whole

        def value() -> Any:
            grown = (ball(order) - 1) * ball(whole)
            # q (e^x - 1) + 1 = e^x (q + (1-q) e^-x), which cannot overflow
            rest = ball(self.rate) + (1 - ball(self.rate)) * (-grown).exp()
            return (grown + rest.log()) / (ball(order) - 1)

        return min(whole, max(0.0, bracket(value, what="a Rényi divergence").high))

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families(self.products)
        return None if inner is None else (("ThinnedPair", inner[0]), (self.rate, *inner[1]))

    def with_parameters(self, values: Iterator[float]) -> Pair:
        rate = next(values)
        return ThinnedPair(products=tuple(rebuilt(p, values) for p in self.products), rate=rate)


# Quadrature of many pairs that are sampled without replacement, from one half of the pair that is sampled.
#
# With Z the likelihood ratio of a symmetric pair under Q and g(Z) = 1 - q + q Z: the losses above 0 are ln g(Z) for
# Z > 1, with the Q-masses of Z and the P-masses g times those; the losses below 0 are their mirror image; the rest
# sits at 0 (`docs/theory/without-replacement-pair.md`). Transforms are therefore Q-integrals of g^(z+1) and g^-z over
# Z > 1: by Gauss's rule on panels, whose error is bounded on ellipses in which |arg Z| <= pi/2, or by the same rule
# for sums over consecutive integers.

_FURTHEST = 600.0


def without_replacement_quadrature(
    members: Sequence[tuple[WithoutReplacementPair, int]], reach: QuadratureRange
) -> Quadrature | None:
    """Quadrature of pairs sampled without replacement of one shape; None if a rule would need too many."""
    pairs = [pair for pair, _ in members]
    rates = column([pair.rate for pair in pairs])
    base = [pair for pair in (p.single or p.either for p in pairs) if pair is not None]
    half = type(base[0]).without_replacement_rule(base, rates, reach)
    if half is None or float(np.max(half.ratio)) > _FURTHEST:
        return None
    moved = rates * np.expm1(half.ratio)
    grown = 1 + moved
    losses = np.log1p(moved)
    p, q, lost = half.q * grown, half.q, half.lost * rates
    rest = 1 - lost - np.sum(p + q, axis=1, keepdims=True)
    # d loss = slope d ratio, slope = 1 - (1 - rate)/grown; log1p adds units of 1 - 1/grown.
    sizes = (1 - (1 - rates) / grown + 1e-15) * (half.ratio + half.blur) + moved / grown + losses
    furthest = float(np.max(half.ratio, initial=1.0))
    edges = floors = None
    if half.edges is not None and half.density is not None:
        ends = np.log1p(rates * np.expm1(half.edges))
        g = np.exp(ends)
        # The slope of the loss in ln Z, q Z/g, rises with Z.
        least = half.density / (rates * np.exp(half.edges[:, 1:]) / g[:, 1:])
        edges = np.concatenate([-ends[:, :0:-1], ends], axis=1)
        floors = np.concatenate([least[:, ::-1], least * g[:, :-1]], axis=1)
    zero = np.zeros_like(rates)
    return Quadrature(
        losses=np.concatenate([-losses[:, ::-1], zero, losses], axis=1),
        masses=np.concatenate([q[:, ::-1], np.maximum(rest, 0.0), p], axis=1),
        counts=np.array([float(n) for _, n in members]),
        infinite=np.concatenate([lost * (1 - 1e-12), lost * (1 + 1e-12)], axis=1),
        # The mass at 0 inherits the errors of both halves, and the rounding of their sum.
        error=np.full(len(pairs), 4 * half.error + 256 * UNIT),
        sizes=np.concatenate([sizes[:, ::-1], zero, sizes], axis=1),
        relative=UNIT
        * (256 + 32 * (reach.power + reach.frequency) * (1 + furthest + float(np.max(half.blur)))),
        edges=edges,
        floors=floors,
        variation=_variation(half, np.maximum(rest[:, 0], 0.0) + 1e-12),
    )


def _variation(half: WithoutReplacementRule, rest: Floats) -> Variation | None:
    """The total variation with the atom at 0, where both halves begin."""
    inner = half.variation
    return None if inner is None else lambda tilt: (inner(tilt), rest)


def _in_both_orders(products: tuple[Product, ...]) -> Pair | None:
    if len(products) != 2 or (one := products[0].single) is None or (other := products[1].single) is None:
        return None
    return one if one.meets_both_orders and type(other) is type(one) and other == one.swapped() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacementPair(WorstPair):
    """A uniform part of fixed size, replace-one: q delta(ln(1 + (e^e - 1)/q)) (Balle et al. 2018)."""

    products: tuple[Product, ...]
    rate: float
    single: Pair | None = field(init=False, repr=False, compare=False)
    """The single sampled pair, if it equals its swap; else None."""
    either: Pair | None = field(init=False, repr=False, compare=False)
    """The sampled table, if both orders of neighbours occur; else None."""

    def __post_init__(self) -> None:
        self._check()
        require(0 < self.rate <= 1, parameter="rate", value=self.rate, must="lie in (0, 1]")
        pair, count = self.products[0].pairs[0]
        alone = len(self.products) == len(self.products[0].pairs) == count == 1 and pair.symmetric
        object.__setattr__(self, "single", pair if alone else None)
        object.__setattr__(self, "either", _in_both_orders(self.products))

    def __hash__(self) -> int:
        return hash((self.rate, self.single or self.products))

    @property
    def sort_key(self) -> tuple[Any, ...]:
        # What is sampled first, so that near pairs stand together.
        return (type(self).__name__, *(product_key(p) for p in self.products), self.rate)

    @property
    def infinite_mass(self) -> Interval:
        if self.single is not None and self.single.infinite_mass.high == 0:
            return NOTHING
        return super().infinite_mass

    @property
    def largest_loss(self) -> Interval:
        if self.single is None:
            return super().largest_loss
        top = self.single.largest_loss.high
        return Interval(low=0.0, high=self._image(top)) if math.isfinite(top) else UNBOUNDED

    def _image(self, top: float) -> float:
        if top < 1 and (grown := self.rate * math.expm1(top)) < 0.5:
            # expm1, the product and log1p are right to a few units, and none of them amplifies those here.
            return math.log1p(grown) * (1 + 2.0**-48)
        return bracket(lambda: (ball(self.rate) * ball(top).expm1()).log1p(), what="a loss").high

    def _inner(self, epsilon: Floats) -> Floats:
        return np.maximum(unsampled_loss(epsilon, self.rate) * (1 - 3e-15), 0.0)

    def _shift_delta(self, epsilon: float, delta: float) -> float:
        return min(1.0, self.rate * delta * (1 + 1e-15))

    def pld(self) -> PrivacyLossDistribution:
        """The sampled distribution above 0 and its mirror image below; the larger of several through their curves."""
        inner = self.single.pld() if self.single is not None else None
        if inner is not None and inner.known_from_below and self.rate < 1:
            return inner.sampled(self.rate).mirrored()
        return WorstPair.pld(self)

    def renyi(self, order: float) -> float:
        """Never above that of the whole; integer orders by the published expansion (replace-one)."""
        from tacit.pld.renyi import without_replacement_renyi

        return without_replacement_renyi(self.products, self.rate, order)

    def renyi_at_least(self, order: float) -> float:
        from tacit.pld.renyi import without_replacement_at_least

        return without_replacement_at_least(self.products, self.rate, order)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        sampled = self.single or self.either
        return sampled is not None and sampled.has_density

    def batch_key(self) -> tuple[Any, ...] | None:
        inner = None if self.single is None or self.rate == 1 else self.single.batch_key()
        return None if inner is None else ("WithoutReplacementPair", inner)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        inner = batch_pld([p.single for p in pairs if p.single is not None])
        return inner.sampled(column([p.rate for p in pairs])).mirrored()

    def quadrature_key(self) -> tuple[Hashable, ...] | None:
        sampled = self.single or self.either
        if sampled is None or self.rate > MOST_RATE or sampled.layers().base is not sampled:
            return None
        key = sampled.rule_key(sampled=True)
        return None if key is None else (type(sampled).__name__, key, self.single is None)

    @classmethod
    def quadrature(cls, members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
        return without_replacement_quadrature(
            [(pair, count) for pair, count in members if isinstance(pair, cls)], reach
        )

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        inner = families(self.products)
        return (
            None
            if inner is None
            else (
                ("WithoutReplacementPair", inner[0]),
                (
                    self.rate,
                    *inner[1],
                ),
            )
        )

    def with_parameters(self, values: Iterator[float]) -> Pair:
        rate = next(values)
        return WithoutReplacementPair(products=tuple(rebuilt(p, values) for p in self.products), rate=rate)
