"""Whether one bound contains another, decided by a theorem and a certified number, or not at all.

`implies` may answer no although the truth is unknown; it never answers yes against a curve.
"""

from __future__ import annotations

import math
from enum import Enum

from tacit.errors import NoLaw
from tacit.exact.data_classes import dataclass
from tacit.guarantees.bounds import Approximate, Bound, Concentrated, GaussianDP, Pointwise, Pure, Renyi
from tacit.guarantees.bounds.profile import Curve, Profile
from tacit.guarantees.laws.convert import convert
from tacit.guarantees.theorems import Theorem, theorem

# Is one curve below another at every real epsilon? Decided by parameters that rise, or at finitely many points.
#
# Curves fall in epsilon. So if delta(e_{i-1}) <= delta'(e_i) at points 0 = e_0 < e_1 < ... < e_m, and delta(e_m) is
# at most the limit of delta', then delta <= delta' on all of [0, infinity): between two points delta is at most its
# left value, and delta' at least its right one. Below 0 the same is asked of the swapped pairs. Theorem `curve-
# order`.

MOST_POINTS = 400
"""The number of compared values of each curve before the question stays open."""


class Order(Enum):
    """What was found out."""

    BELOW = "it is below at every epsilon"
    ABOVE = "its delta is larger at some epsilon"
    UNDECIDED = (
        "the curves are too near each other, or bend without end, to be told apart at finitely many points"
    )


def compare(known: Profile, wanted: Profile) -> tuple[Order, float | None]:
    """Whether `known` is below `wanted` in every direction; if not, an epsilon where it is above."""
    found: tuple[Order, float | None] = (Order.BELOW, None)
    for index in range(max(len(known.directions), len(wanted.directions))):
        one = known.directions[min(index, len(known.directions) - 1)]
        other = wanted.directions[min(index, len(wanted.directions) - 1)]
        verdict = _below(one, other)
        if verdict[0] is Order.ABOVE:
            return verdict
        if verdict[0] is Order.UNDECIDED:
            found = verdict
    return found


def _below(one: Curve, other: Curve) -> tuple[Order, float | None]:
    if one.rises_to(other):
        return Order.BELOW, None
    first = _right_half(one, other)
    if first[0] is not Order.BELOW or (one.symmetric and other.symmetric):
        return first
    back = _right_half(one.swapped(), other.swapped())
    return back if back[0] is not Order.ABOVE else (Order.ABOVE, -(back[1] or 0.0))


def _right_half(one: Curve, other: Curve) -> tuple[Order, float | None]:
    """Whether the order holds on [0, infinity)."""
    left = MOST_POINTS
    last = one.epsilon(other.delta(math.inf).low).high
    if math.isinf(last):
        # No last point: the answer can only be no.
        for at in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0):
            if one.delta(at).low > other.delta(at).high:
                return Order.ABOVE, at
        return Order.UNDECIDED, None
    waiting = [(0.0, last)] if last else []
    if one.delta(last).high > other.delta(math.inf).low:
        return Order.UNDECIDED, None
    if not last and one.delta(0.0).high > other.delta(0.0).low:
        return Order.UNDECIDED, None
    while waiting:
        start, end = waiting.pop()
        left -= 1
        if one.delta(start).high <= other.delta(end).low:
            continue
        middle = (start + end) / 2
        here, there = one.delta(middle), other.delta(middle)
        if here.low > there.high:
            return Order.ABOVE, middle
        if left < 0 or not start < middle < end:
            return Order.UNDECIDED, None
        waiting += [(middle, end), (start, middle)]
    return Order.BELOW, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Implication:
    """A verdict that is true or false like a boolean, with the chain of theorems or the reason against."""

    holds: bool
    chain: tuple[str, ...] = ()
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds

    @property
    def theorems(self) -> tuple[Theorem, ...]:
        """The theorems of the chain."""
        return tuple(theorem(name) for name in self.chain)


def bound_implies(known: Bound, wanted: Bound) -> Implication:
    """Does every mechanism with the bound `known` have the bound `wanted`?"""
    if known == wanted:
        return Implication(holds=True)
    match wanted:
        case Pure():
            return _pure(known, wanted)
        case Pointwise():
            return _pointwise(known, wanted)
        case Approximate():
            return _at_most(
                known._delta(float(wanted.epsilon)),
                float(wanted.delta),
                _curve_theorem(known),
                f"delta at epsilon = {float(wanted.epsilon):g}",
            )
        case GaussianDP():
            return _converted(known, GaussianDP, wanted.mu, "mu")
        case Concentrated():
            return _converted(known, Concentrated, wanted.rho, "rho")
        case Renyi():
            return _renyi(known, wanted)
        case Profile():
            return _profile(known, wanted)
    return Implication(holds=False, reason=f"no theorem decides about {type(wanted).__name__}")


def _pure(known: Bound, wanted: Pure) -> Implication:
    return _at_most(known._epsilon(0.0), float(wanted.epsilon), _pure_theorem(known), "epsilon at delta = 0")


def _pure_theorem(known: Bound) -> tuple[str, ...]:
    return ("renyi-interpolation",) if isinstance(known, Renyi) else _curve_theorem(known)


def _pointwise(known: Bound, wanted: Pointwise) -> Implication:
    if isinstance(known, Pointwise):
        ok = known.epsilon <= wanted.epsilon and known.delta <= wanted.delta
        return Implication(holds=ok, reason="" if ok else "its epsilon or its delta is larger")
    verdict = _pure(known, Pure(epsilon=float(wanted.epsilon)))
    if verdict:
        return Implication(holds=True, chain=(*verdict.chain, "pure-to-approximate"))
    if wanted.delta > 0:
        try:
            reached = convert(known, Pointwise, delta=float(wanted.delta), law="profile-to-pointwise")
        except NoLaw as problem:
            return Implication(holds=False, reason=problem.message)
        if reached.epsilon <= wanted.epsilon:
            return Implication(holds=True, chain=(*_curve_theorem(known), "profile-to-pointwise"))
    return Implication(
        holds=False, reason="its curve does not show that the loss is so small with that probability"
    )


def _converted(
    known: Bound, kind: type[GaussianDP] | type[Concentrated], level: float, name: str
) -> Implication:
    """Through the default law to the wanted kind, by the number it gives."""
    chain: tuple[str, ...] = ()
    if not isinstance(known, kind):
        # A pure epsilon hides in every bound that is finite at delta = 0.
        hidden = known._epsilon(0.0)
        if isinstance(known, GaussianDP) and kind is Concentrated:
            chain = ("gdp-to-zcdp",)
        elif math.isfinite(hidden):
            last = "pure-to-zcdp" if kind is Concentrated else "pure-to-gdp"
            chain = (*(() if isinstance(known, Pure) else _pure_theorem(known)), last)
            known = Pure(epsilon=hidden)
        else:
            return Implication(holds=False, reason=f"no {name} follows from {known}")
        known = convert(known, kind)
    return _at_most(getattr(known, name), level, chain, name)


def _renyi(known: Bound, wanted: Renyi) -> Implication:
    for order, level in zip(wanted.orders, wanted.epsilons, strict=True):
        if math.isinf(level):
            continue
        try:
            reached = known.renyi(order)
        except NoLaw as problem:
            return Implication(holds=False, reason=problem.message)
        if not reached <= level:
            return Implication(
                holds=False, reason=f"its divergence at order {order:g} is {reached:g} > {level:g}"
            )
    return Implication(holds=True, chain=_renyi_theorem(known))


def _profile(known: Bound, wanted: Profile) -> Implication:
    """Below the wanted curve everywhere: checked at its kinks, where it has finitely many, else by `curve_order`.

    Both curves are convex in e^epsilon, and the wanted one is linear between its kinks, so being below at the
    kinks is enough. Below 0 both are mirror images: H_{-e} = 1 - e^{-e} + e^{-e} H_e.
    """
    kinks = wanted.kinks()
    if kinks is None:
        level = wanted.gaussian_mu()
        own = known.gaussian_mu() if isinstance(known, Profile) else None
        if level is not None:
            inner: Bound = GaussianDP(mu=own) if own is not None else known
            return bound_implies(inner, GaussianDP(mu=level))
        verdict, at = compare(Profile.of(known), wanted)
        if verdict is Order.BELOW:
            return Implication(holds=True, chain=(*_curve_theorem(known), "curve-order"))
        if at is not None:
            return Implication(holds=False, reason=f"its delta at epsilon = {at:g} is larger")
        return Implication(holds=False, reason=f"{verdict.value}; compare at a delta")
    for product, points in kinks:
        for epsilon in points:
            if not known._delta(epsilon) <= product.delta(epsilon).low:
                return Implication(holds=False, reason=f"its delta at epsilon = {epsilon:g} is larger")
    return Implication(holds=True, chain=(*_curve_theorem(known), "dominating-pair"))


def _at_most(value: float, level: float, chain: tuple[str, ...], what: str) -> Implication:
    if value <= level:
        return Implication(holds=True, chain=chain)
    return Implication(holds=False, reason=f"its {what} is {value:g} > {level:g}")


def _curve_theorem(bound: Bound) -> tuple[str, ...]:
    names: dict[type[Bound], tuple[str, ...]] = {
        Pure: ("pure-to-approximate", "approximate-profile"),
        Pointwise: ("pointwise-to-approximate", "approximate-profile"),
        Approximate: ("approximate-profile",),
        GaussianDP: ("gaussian-profile",),
        Concentrated: ("zcdp-to-approximate",),
        Renyi: ("renyi-to-approximate",),
        Profile: ("dominating-pair",),
    }
    return names[type(bound)]


def _renyi_theorem(bound: Bound) -> tuple[str, ...]:
    names: dict[type[Bound], tuple[str, ...]] = {
        Pure: ("pure-to-renyi",),
        GaussianDP: ("gdp-to-zcdp", "zcdp-to-renyi"),
        Concentrated: ("zcdp-to-renyi",),
        Renyi: ("renyi-interpolation",),
        Profile: ("dominating-pair",),
    }
    return names.get(type(bound), ("pure-to-approximate", "pure-to-renyi"))
