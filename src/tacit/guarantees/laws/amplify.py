"""Amplification: a mechanism that sees a secret random part of the units reveals less about each.

Two schemes, each with its own neighbour relation: Poisson sampling (each unit kept with probability q, independently)
under add-or-remove, and a uniform subset of fixed size under replace-one. Under replace-one Poisson sampling
multiplies delta alone, because a mechanism may reveal the sample's size. A subset of fixed size has no law under
add-or-remove. A group of k units counts as one, which takes part with the probability that any of its units does.
Zero-concentrated privacy has no law at all: the sampled mechanism's divergence grows faster than any multiple of the
order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from tacit.errors import NoLaw, UnknownName
from tacit.exact.checks import rate as sampling_rate
from tacit.exact.rounding import ball, upper
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
from tacit.guarantees.units import Coupled, GroupOf, Neighbours, Unit

if TYPE_CHECKING:
    from flint import arb


class Sampling(StrEnum):
    """How the part is drawn."""

    POISSON = "poisson"
    WITHOUT_REPLACEMENT = "without-replacement"

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation for which the scheme's theorems hold."""
        return Neighbours.ADD_OR_REMOVE if self is Sampling.POISSON else Neighbours.REPLACE_ONE

    @classmethod
    def parse(cls, value: str | Sampling) -> Sampling:
        """The scheme with this name."""
        try:
            return cls(value)
        except ValueError:
            raise UnknownName(what="sampling scheme", name=str(value), known=[s.value for s in cls]) from None


@law("poisson-pure", operation="amplify", rests_on="poisson-approximate")
@law("without-replacement-pure", operation="amplify", rests_on="without-replacement-approximate")
def amplify_pure(bound: Pure, rate: float) -> Pure:
    """epsilon' = ln(1 + q (e^epsilon - 1))."""
    return Pure(epsilon=_amplified(float(bound.epsilon), rate))


@law("poisson-approximate", operation="amplify")
@law("without-replacement-approximate", operation="amplify")
def amplify_approximate(bound: Approximate, rate: float) -> Approximate:
    """epsilon' = ln(1 + q (e^epsilon - 1)), delta' = q delta."""
    return Approximate(
        epsilon=_amplified(float(bound.epsilon), rate),
        delta=upper(lambda: ball(rate) * ball(float(bound.delta))),
    )


def _amplified(epsilon: float, rate: float) -> float:
    if rate == 0 or epsilon == 0:
        return 0.0
    if rate == 1:
        return epsilon
    # ln(1 + q(e^epsilon - 1)) = epsilon + ln(q + (1-q) e^{-epsilon}), which cannot overflow
    if epsilon > 30:
        return min(
            epsilon,
            upper(lambda: ball(epsilon) + (ball(rate) + (1 - ball(rate)) * (-ball(epsilon)).exp()).log()),
        )
    return min(epsilon, upper(lambda: (ball(rate) * ball(epsilon).expm1()).log1p()))


@law("poisson-profile", operation="amplify")
def poisson_profile(bound: Profile, rate: float) -> Profile:
    """The exact curves of removal and of addition, kept apart."""
    return bound.poisson_sampled(rate)


@law("without-replacement-profile", operation="amplify", rests_on="without-replacement-approximate")
def without_replacement_profile(bound: Profile, rate: float) -> Profile:
    """delta'(e) = q delta(ln(1 + (e^e - 1)/q)), the point law at every epsilon of the curve."""
    return bound.sampled_without_replacement(rate)


@law("poisson-renyi", operation="amplify")
def poisson_renyi(bound: Renyi, rate: float) -> Renyi:
    """Integer orders: both directions by a binomial expansion, the larger reported."""

    def moment(order: int, divergence: Callable[[int], float], top: float) -> arb:
        q = ball(rate)
        removal = (1 - q) ** (order - 1) * (1 + (order - 1) * q)
        addition = ball(1)
        for j in range(2, order + 1):
            weight = math.comb(order, j) * q**j
            grown = ((j - 1) * ball(divergence(j))).exp()
            removal += weight * (1 - q) ** (order - j) * grown
            spread = grown - 1
            if math.isfinite(top):
                e = ball(top)
                spread = spread.min(e.expm1() ** j * (1 + ((1 - j) * e).exp()) / (1 + e.exp()))
            addition += weight * spread
        return removal.max(addition)

    return _integer_orders(bound, rate, moment)


@law("without-replacement-renyi", operation="amplify")
def without_replacement_renyi(bound: Renyi, rate: float) -> Renyi:
    """Integer orders: Wang, Balle, Kasiviswanathan 2019, with e^{r(2)} - 1 where the lecture prints r(2) - 1."""

    def moment(order: int, divergence: Callable[[int], float], top: float) -> arb:
        q = ball(rate)
        two = ball(divergence(2))
        cap = ball(top).expm1() if math.isfinite(top) else None
        second = 4 * two.expm1()
        rest = two.exp() * (2 if cap is None else (cap**2).min(ball(2)))
        total = 1 + q**2 * math.comb(order, 2) * second.min(rest)
        for j in range(3, order + 1):
            factor = ball(2) if cap is None else (cap**j).min(ball(2))
            grown = ((j - 1) * ball(divergence(j))).exp()
            total += q**j * math.comb(order, j) * (grown * factor).min(2**j * (grown - 1))
        return total

    return _integer_orders(bound, rate, moment)


@law("poisson-replace-one-pure", operation="amplify", rests_on="poisson-replace-one")
def thinned_pure(bound: Pure, rate: float) -> Pure:
    """epsilon itself, since a mechanism may reveal whether the unit took part, and then sampling protects nothing."""
    return Pure(epsilon=0.0) if rate == 0 else bound


@law("poisson-replace-one-approximate", operation="amplify", rests_on="poisson-replace-one")
def thinned_approximate(bound: Approximate, rate: float) -> Approximate:
    """(epsilon, q delta)."""
    return Approximate(
        epsilon=0.0 if rate == 0 else float(bound.epsilon),
        delta=upper(lambda: ball(rate) * ball(float(bound.delta))),
    )


@law("poisson-replace-one-profile", operation="amplify", rests_on="poisson-replace-one")
def thinned_profile(bound: Profile, rate: float) -> Profile:
    """q delta(e) at every e >= 0."""
    return bound.thinned(rate)


@law("poisson-replace-one-renyi", operation="amplify", rests_on="poisson-replace-one")
def thinned_renyi(bound: Renyi, rate: float) -> Renyi:
    """ln(1 - q + q e^{(a-1) D_a})/(a-1) at each order."""

    def mixed(order: float, divergence: float) -> float:
        if rate == 0:
            return 0.0
        if math.isinf(order) or math.isinf(divergence) or rate == 1:
            return divergence

        def value() -> arb:
            grown = (ball(order) - 1) * ball(divergence)
            rest = ball(rate) + (1 - ball(rate)) * (-grown).exp()
            return (grown + rest.log()) / (ball(order) - 1)

        return min(divergence, max(0.0, upper(value)))

    return Renyi(
        orders=bound.orders,
        epsilons=tuple(mixed(a, e) for a, e in zip(bound.orders, bound.epsilons, strict=True)),
    )


_MOST_TERMS = 1024


def _integer_orders(
    bound: Renyi, rate: float, moment: Callable[[int, Callable[[int], float], float], arb]
) -> Renyi:
    """ln(moment)/(a-1) at the integer orders whose divergences 2..a are all known; never above the original."""
    largest = bound.orders[-1]
    finite = [a for a, e in zip(bound.orders, bound.epsilons, strict=True) if e < math.inf]
    if not finite or finite[-1] < 2:
        raise NoLaw(
            operation="subsampling of this Rényi bound",
            reason="the theorem speaks of integer orders from 2, and no such order has a finite divergence",
        )
    top = bound.renyi(math.inf) if math.isinf(largest) else math.inf
    most = _MOST_TERMS if math.isinf(finite[-1]) else int(min(finite[-1], _MOST_TERMS))
    known: dict[int, float] = {}

    def divergence(j: int) -> float:
        if j not in known:
            known[j] = bound.renyi(float(j))
        return known[j]

    wanted = sorted({int(a) for a in finite if 2 <= a <= most} | {2, most})
    epsilons = []
    for order in wanted:
        if rate == 0:
            epsilons.append(0.0)
            continue
        sampled = upper(lambda order=order: moment(order, divergence, top).log() / (order - 1))  # type: ignore[misc]
        epsilons.append(min(divergence(order), max(0.0, sampled)))
    orders = [float(a) for a in wanted]
    if math.isinf(largest) and math.isfinite(top):
        orders.append(math.inf)
        epsilons.append(_amplified(top, rate))
    return Renyi(orders=tuple(orders), epsilons=tuple(epsilons))


def amplify_bound(bound: Bound, *, rate: float, scheme: str | Sampling) -> tuple[Bound, str]:
    """The bound of the mechanism on a secret random part, and its law."""
    return _applied(bound, sampling_rate("rate", rate), Sampling.parse(scheme).value)


def amplify_for(bound: Bound, unit: Unit, *, rate: float, scheme: Sampling) -> tuple[Bound, str]:
    """The same for a unit: with its neighbours, and for groups of units.

    Of k units at least one takes part with probability w = 1 - (1 - q)^k (Poisson), at most k q (fixed size), and
    the three laws with, without and with other units in their place are then pairwise k steps apart (`group-sampling`).
    """
    q, size = sampling_rate("rate", rate), unit.size if isinstance(unit, GroupOf) else 1
    if unit.neighbours is scheme.neighbours and size == 1:
        return _applied(bound, q, scheme.value)
    if isinstance(unit, Coupled):
        raise NoLaw(
            operation=f"{scheme.value} subsampling for {unit}",
            reason="the theorems are about units that are drawn",
        )
    if scheme is Sampling.WITHOUT_REPLACEMENT and unit.neighbours is not scheme.neighbours:
        raise NoLaw(
            operation=f"{scheme.value} subsampling for {unit}",
            reason="a share of the units is a different number once a unit is added, so the size of "
            "the sample reveals it; the theorem assumes a public size, that is replace-one",
            counterexample="print the size of the sample, half of the units",
            hint=f"state the guarantee for {scheme.neighbours.value} neighbours, or sample by poisson",
        )
    if scheme is Sampling.POISSON:
        taken = q if size == 1 else min(1.0, upper(lambda: 1 - (1 - ball(q)) ** size))
        replaced = unit.neighbours is Neighbours.REPLACE_ONE
        return _applied(
            bound, taken, "poisson-replace-one" if replaced else Sampling.WITHOUT_REPLACEMENT.value
        )
    return _applied(bound, min(1.0, upper(lambda: size * ball(q))), scheme.value)


def _applied(bound: Bound, q: float, laws: str) -> tuple[Bound, str]:
    if isinstance(bound, Concentrated):
        raise NoLaw(
            operation="subsampling a concentrated bound",
            reason="zero-concentrated privacy is not preserved in a useful form: the divergence of the sampled "
            "mechanism is not bounded by a smaller multiple of the order",
            counterexample="Gaussian noise sampled at rate q: at orders above about ln(1/q) * noise_std^2 the "
            "divergence returns to that of the unsampled mechanism",
            hint="convert to Renyi or Profile first, or describe the mechanism itself",
        )
    if isinstance(bound, GaussianDP):
        bound = Profile.of(bound)
    if isinstance(bound, Pointwise):
        bound = Approximate(epsilon=float(bound.epsilon), delta=float(bound.delta))
    kind = {Pure: "pure", Approximate: "approximate", Renyi: "renyi", Profile: "profile"}[type(bound)]
    chosen = f"{laws}-{kind}"
    return LAWS[chosen].apply(bound, q), chosen
