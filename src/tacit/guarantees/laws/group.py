"""Group privacy: the promise to k units at once, by walking k steps between neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import NoLaw
from tacit.exact.checks import how_many
from tacit.exact.rounding import ball, up, upper
from tacit.guarantees.bounds import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Pointwise,
    Profile,
    Pure,
    Renyi,
)
from tacit.guarantees.laws.registry import LAWS, law

if TYPE_CHECKING:
    from flint import arb


@law("group-pure", operation="group", rests_on="group-privacy")
def group_pure(bound: Pure, size: int) -> Pure:
    """k epsilon."""
    return Pure(epsilon=upper(lambda: size * ball(float(bound.epsilon))))


@law("group-approximate", operation="group", rests_on="group-privacy")
def group_approximate(bound: Approximate, size: int) -> Approximate:
    """(k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1)); not (k epsilon, k delta)."""
    epsilon, delta = group_point(float(bound.epsilon), float(bound.delta), size)
    if delta >= 1:
        raise NoLaw(
            operation=f"a group of {size}",
            reason="the group's delta reaches 1, and then nothing is promised",
            hint="protect smaller groups, or start from a smaller delta",
        )
    return type(bound)(epsilon=epsilon, delta=delta)


def group_point(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """One point of the curve, after `size` steps: delta * sum of e^{i epsilon}, i < size."""
    if size == 1:
        return epsilon, delta

    def total() -> arb:
        e = ball(epsilon)
        factor = (size * e).expm1() / e.expm1() if epsilon else ball(size)
        return ball(delta) * factor

    return upper(lambda: size * ball(epsilon)), upper(total) if delta else 0.0


@law("group-gdp", operation="group", rests_on="group-zcdp")
def group_gaussian(bound: GaussianDP, size: int) -> GaussianDP:
    """k mu."""
    return GaussianDP(mu=upper(lambda: size * ball(bound.mu)))


@law("group-zcdp", operation="group")
def group_concentrated(bound: Concentrated, size: int) -> Concentrated:
    """k^2 rho."""
    return Concentrated(rho=upper(lambda: size**2 * ball(bound.rho)))


@law("group-renyi", operation="group")
def group_renyi(bound: Renyi, size: int) -> Renyi:
    """D_{a/2^c} <= D_a prod_{j<=c} (2 + 1/(2(a/2^j - 1))), for the least c with 2^c >= k, at orders a >= 2^(c+1)."""

    def factor(order: float, c: int) -> Fraction:
        product = Fraction(1)
        for j in range(1, c + 1):
            product *= 2 + 1 / (2 * (Fraction(order) / 2**j - 1))
        return product

    return _halved(bound, size, factor)


@law("group-renyi-printed", operation="group", rests_on="group-renyi")
def group_renyi_printed(bound: Renyi, size: int) -> Renyi:
    """D_{a/2^c} <= 3^c D_a (lecture 7, Thm 7.5)."""
    return _halved(bound, size, lambda order, c: Fraction(3) ** c)


def _halved(bound: Renyi, size: int, factor: Callable[[float, int], Fraction]) -> Renyi:
    c = (size - 1).bit_length()
    kept = [
        (a, e)
        for a, e in zip(bound.orders, bound.epsilons, strict=True)
        if 2 ** (c + 1) <= a < math.inf and e < math.inf
    ]
    orders = [a / 2**c for a, _ in kept]
    epsilons = [up(Fraction(e) * factor(a, c)) for a, e in kept]
    if math.isinf(bound.orders[-1]) and math.isfinite(bound.epsilons[-1]):
        orders.append(math.inf)  # pure epsilon has its own law
        epsilons.append(up(Fraction(bound.epsilons[-1]) * size))
    if not orders:
        raise NoLaw(
            operation=f"a group of {size} under a Rényi bound",
            reason=f"the theorem needs a finite divergence at an order of at least {2 ** (c + 1)}",
        )
    return Renyi(orders=tuple(orders), epsilons=tuple(epsilons))


@law("group-profile", operation="group", rests_on="group-privacy")
def group_profile(bound: Profile, size: int) -> Profile:
    """The sum of e^{e_1 + ... + e_(i-1)} delta(e_i) with the best split e_1 + ... + e_k of e that a grid gives."""
    return bound.grouped(size)


_LAW_OF: dict[type[Bound], str] = {
    Pure: "group-pure",
    Approximate: "group-approximate",
    Pointwise: "group-approximate",
    GaussianDP: "group-gdp",
    Concentrated: "group-zcdp",
    Renyi: "group-renyi",
    Profile: "group-profile",
}


def group_bound(bound: Bound, size: int) -> tuple[Bound, str]:
    """The bound for `size` units at once, and the law behind it."""
    chosen = _LAW_OF[type(bound)]
    size = how_many("size", size)
    if size == 1:
        return bound, chosen
    return LAWS[chosen].apply(bound, size), chosen
