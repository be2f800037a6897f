"""Certified Rényi divergences of sampled pairs and Gaussian mixtures, integer and fractional orders.

Integer orders by the binomial sum, with upper bounds on the base pair's own moments; fractional orders of
Gaussian mixtures by rigorous integration in ball arithmetic; of other pairs by the convexity of the
logarithm of the moments in the order, between the neighbouring integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tacit.exact.rounding import ball, bracket, working_precision
from tacit.pld.pairs.base import Pair, check_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.pld.pairs.sampled import MixturePair
    from tacit.pld.product import Product


_MOST_TERMS = 20_000
_MARKS = (2, 3, 5, 9, 17, 33, 65, 129, 257, 513)
"""The orders whose divergences serve, from below, for the orders up to the next one."""


@lru_cache(maxsize=4096)
def sampled_renyi(pair: Pair, rate: float, order: float) -> float:
    """Upper bound on D_order((1-q) Q + q P || Q).

    e^((a-1) D_a) = sum_j C(a, j) (1-q)^(a-j) q^j e^((j-1) D_j(P||Q)) at integer orders (Mironov, Talwar,
    Zhang 2019). Never above the unsampled divergence, by convexity.
    """
    check_order(order)
    whole = pair.renyi(order)
    if rate == 1:
        return whole
    if order == math.inf:
        if math.isinf(whole):
            return whole
        return bracket(lambda: (ball(rate) * ball(whole).expm1()).log1p(), what="a loss").high
    if order != int(order) and (known := pair.sampled_fractional_renyi(rate, order)) is not None:
        return min(whole, known)
    low, high = math.floor(order), math.ceil(order)
    if high > _MOST_TERMS:
        return whole
    if low == high:
        return min(whole, _integer_order(pair, rate, low))
    share = ball(order) - low

    def value() -> Any:
        bottom = ball(_integer_order(pair, rate, low)) * (low - 1) if low > 1 else ball(0)
        top = ball(_integer_order(pair, rate, high)) * (high - 1)
        return (bottom * (1 - share) + top * share) / (ball(order) - 1)

    return min(whole, bracket(value, what="a Rényi divergence").high)


@lru_cache(maxsize=256)
def _divergences(pair: Pair) -> dict[int, float]:
    """Divergences of the pair at the integer orders requested so far, since every order needs all below it."""
    return {}


@lru_cache(maxsize=4096)
def _integer_order(pair: Pair, rate: float, order: int) -> float:
    known = _divergences(pair)
    for j in range(2, order + 1):
        if j not in known:
            known[j] = pair.renyi(float(j))
        if math.isinf(known[j]):
            return math.inf
    divergences = [known[j] for j in range(2, order + 1)]

    def value() -> Any:
        q = ball(rate)
        odds, term, total = q / (1 - q), (1 - q) ** order, ball(0)
        for j in range(1, order + 1):
            term = term * odds * (order - j + 1) / j
            if j >= 2:
                total += term * ((j - 1) * ball(divergences[j - 2])).expm1()
        return total.log1p() / (order - 1)

    return bracket(value, what="a Rényi divergence").high


def mixture_renyi(pair: MixturePair, order: float, *, reverse: bool = False) -> float:
    """Upper bound on D_order of a Gaussian mixture against N(0, 1), or of N(0, 1) against it."""
    check_order(order)
    if order == math.inf:
        return -pair.smallest_loss.low if reverse else math.inf
    return mixture_integral(lambda: [ball(s) for s in pair.shifts], tuple(pair._weights()), order, reverse)


def mixture_integral(shifts: Any, weights: Sequence[Fraction], order: float, reverse: bool) -> float:
    """ln of the integral of phi(x) g(x)^power, over order - 1, with both tails bounded inside the ball."""
    from flint import acb, arb

    power = 1 - Fraction(order) if reverse else Fraction(order)

    def value() -> Any:
        points = [(s, ball(w)) for s, w in zip(shifts(), weights, strict=True) if w > 0]
        exponent = ball(power)
        top = max((s for s, _ in points), key=lambda s: float(s.mid()))
        bottom, weight = min(points, key=lambda point: float(point[0].mid()))
        bits, small = working_precision() + 20, arb(2) ** -working_precision()
        lightest = min(w for w in weights if w > 0)
        steep = abs(float(power)) * max(-math.log(float(lightest)), 0.0)
        margin = math.sqrt(2 * (bits * math.log(2) + steep)) + 2
        if reverse:
            # g >= weight e^(bottom x - bottom^2/2) everywhere, and g rises: right of 0 it is least at 0.
            shift = exponent * bottom
            left, right = float(shift.mid()) - margin, margin
            scale = weight**exponent * ((exponent * exponent - exponent) * bottom**2 / 2).exp()
            lower_tail = scale * _tail(shift - arb(left))
            at_zero = ball(0)
            for s, w in points:
                at_zero += w * (-(s**2) / 2).exp()
            upper_tail = at_zero**exponent * _tail(arb(right))
        else:
            shift = exponent * top
            left, right = -margin, max(float(shift.mid()) + margin, float(top.mid()) + 1)
            upper_tail = ((exponent * exponent - exponent) * top**2 / 2).exp() * _tail(arb(right) - shift)
            # g rises, so that left of 0 it is at most its value there, which is at most 1.
            lower_tail = _tail(arb(-left))

        def integrand(x: Any, analytic: bool) -> Any:
            ratio = acb(0)
            for s, w in points:
                ratio += acb(w) * (x * s - s**2 / 2).exp()
            return (ratio.log(analytic=analytic) * exponent - x * x / 2).exp()

        # The integrand bends on the scale of 1/top as well as of 1: pieces keep the rule's degree low.
        pieces = max(4, math.ceil((right - left) * max(1.0, float(top.mid())) / 8))
        pieces = min(pieces, 400)
        edges = [left + (right - left) * k / pieces for k in range(pieces + 1)]
        total = acb(0)
        for a, b in pairwise(edges):
            total += acb.integral(integrand, a, b, rel_tol=small, abs_tol=small)
        inside = total.real / (2 * arb.pi()).sqrt()
        whole = inside + ball(0).union(lower_tail) + ball(0).union(upper_tail)
        return whole.log() / (ball(order) - 1)

    return max(0.0, bracket(value, bits=40, limit=1024, what="a Rényi divergence").high)


def _tail(x: Any) -> Any:
    """P(N(0,1) > x)."""
    return (x / ball(2).sqrt()).erfc() / 2


@lru_cache(maxsize=128)
def _largest_of(products: tuple[Product, ...]) -> Callable[[float], float]:
    """The largest divergence of any of them, by order, since expansions of all orders ask for the same integer
    ones.
    """

    @cache
    def largest(order: float) -> float:
        return max(p.renyi(order) for p in products)

    return largest


@lru_cache(maxsize=4096)
def without_replacement_renyi(products: tuple[Product, ...], rate: float, order: float) -> float:
    """ln{1 + q^2 C(a,2) min[4(e^D2 - 1), e^D2 min(2, (e^Dinf - 1)^2)]
    + sum_(j>=3) q^j C(a,j) e^((j-1)Dj) min(2, (e^Dinf - 1)^j)} / (a - 1), replace-one neighbours.

    Source: Wang, Balle, Kasiviswanathan 2019, with e^D2 - 1. Fractional orders by convexity in the order.
    """
    check_order(order)
    inner = _largest_of(products)
    whole = inner(order)
    if rate == 1:
        return whole
    top = inner(math.inf)
    if order == math.inf:
        if math.isinf(top):
            return top
        return bracket(lambda: (ball(rate) * ball(top).expm1()).log1p(), what="a loss").high
    low, high = math.floor(order), math.ceil(order)
    if high > _MOST_TERMS:
        return whole

    @cache
    def moment(a: int) -> float:
        """Upper bound on ln of the a-th moment."""
        if a <= 1:
            return 0.0
        known = [inner(float(j)) for j in range(2, a + 1)]
        if any(math.isinf(d) for d in known):
            return math.inf

        def value() -> Any:
            q, total, binomial = ball(rate), ball(0), ball(a)
            cap = ball(top).expm1() if math.isfinite(top) else None
            for j in range(2, a + 1):
                binomial = binomial * (a - j + 1) / j
                grown = ((j - 1) * ball(known[j - 2])).exp()
                term = grown * (ball(2) if cap is None else (cap**j).min(ball(2)))
                if j == 2:
                    term = term.min(4 * ball(known[0]).expm1())
                total += q**j * binomial * term
            return total.log1p()

        return bracket(value, what="a Rényi divergence").high

    if math.isinf(moment(high)):
        return whole

    def value() -> Any:
        share = ball(order) - low
        mixed = ball(moment(low)) * (1 - share) + ball(moment(high)) * share
        return mixed / (ball(order) - 1)

    return min(whole, bracket(value, what="a Rényi divergence").high)


@lru_cache(maxsize=4096)
def without_replacement_at_least(products: tuple[Product, ...], rate: float, order: float) -> float:
    """A lower bound on `without_replacement_renyi`, in floats, from a few divergences; 0 if it is unknown.

    Divergences rise with the order, so that each term of the expansion is at least that of an earlier mark. It
    only decides which orders are skipped.
    """
    import numpy as np
    from scipy.special import gammaln

    if rate in (0, 1) or order < 2 or order > _MOST_TERMS or order != math.floor(order):
        return 0.0
    inner, marks = _largest_of(products), [j for j in _MARKS if j <= order]
    top, known = inner(math.inf), np.array([inner(float(j)) for j in marks])
    if top == 0 or not np.isfinite(known).all():
        return 0.0
    j = np.arange(2, int(order) + 1)
    divergence = known[np.searchsorted(marks, j, side="right") - 1]
    ways = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    cap = math.log(math.expm1(min(top, 700.0)))
    terms = (j - 1) * divergence + np.minimum(math.log(2), j * cap)
    terms[0] = (
        min(terms[0], math.log(4) + math.log(math.expm1(min(known[0], 700.0)))) if known[0] > 0 else -math.inf
    )
    moment = np.logaddexp(0, np.logaddexp.reduce(j * math.log(rate) + ways + terms))
    return max(0.0, min(float(known[0]), float(moment) / (order - 1)) * (1 - 1e-9))
