"""Sequential composition: what several releases about the same data reveal together.

Kinds form a lattice, and a mixed composition happens in the least kind above all its members:

    Pure < Pointwise < Approximate < Profile
    Pure, GaussianDP < Concentrated < Renyi < Profile

Within one kind composition is a closed formula, associative and commutative. `law="profile"` composes the
curves themselves (the tightest, for bounds fixed in advance), `law="advanced"` and `law="optimal"` are the
classical theorems for (epsilon, delta). All hold for adaptively chosen *mechanisms*; adaptively chosen *parameters*
need filters, which are in another room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, UnknownName
from tacit.exact.checks import flag, how_many, positive, probability, text
from tacit.exact.rounding import ball, lower, up, upper
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
from tacit.guarantees.implication import bound_implies
from tacit.guarantees.laws.convert import convert, open_probability
from tacit.guarantees.laws.registry import LAWS, largest, law
from tacit.guarantees.running_sum import (
    APPROXIMATE,
    CONCENTRATED,
    GAUSSIAN,
    PURE,
    Amounts,
    Currency,
    Divergences,
    summed,
)
from tacit.guarantees.units import Coupled, GroupOf, Neighbours, People, Unit

if TYPE_CHECKING:
    from flint import arb

Weighted = Sequence[tuple[Any, int]]

A = TypeVar("A", Approximate, Pointwise)

_ABOVE: dict[type[Bound], frozenset[type[Bound]]] = {
    Pure: frozenset({Pure, Pointwise, Approximate, Concentrated, Renyi, Profile}),
    Pointwise: frozenset({Pointwise, Approximate, Profile}),
    Approximate: frozenset({Approximate, Profile}),
    GaussianDP: frozenset({GaussianDP, Concentrated, Renyi, Profile}),
    Concentrated: frozenset({Concentrated, Renyi, Profile}),
    Renyi: frozenset({Renyi, Profile}),
    Profile: frozenset({Profile}),
}
# Small kinds first: the least common upper bound is the first that all members lie below.
_LINE: tuple[type[Bound], ...] = (Pure, Pointwise, Approximate, GaussianDP, Concentrated, Renyi, Profile)


def join(*kinds: type[Bound]) -> type[Bound]:
    """The least kind into which all of these convert without a choice of parameters."""
    common = frozenset.intersection(*(_ABOVE[k] for k in kinds))
    return next(k for k in _LINE if k in common)


@law("compose-pure", operation="compose")
def compose_pure(parts: Weighted) -> Pure:
    """Epsilons add."""
    return PURE.bound(_total(PURE, parts))


@law("compose-pointwise", operation="compose")
def compose_pointwise(parts: Weighted) -> Pointwise:
    """Epsilons add; delta = 1 - prod(1 - delta_i)."""
    return _reported(Pointwise, _epsilon(parts), upper(lambda: 1 - _survival(parts)))


@law("compose-approximate-basic", operation="compose")
def compose_approximate(parts: Weighted) -> Approximate:
    """Epsilons add and deltas add."""
    delta = _total(APPROXIMATE, parts)["delta"]
    return _reported(Approximate, _epsilon(parts), math.inf if delta is None else up(delta))


@law("compose-approximate-advanced", operation="compose")
def compose_advanced(parts: Weighted, *, slack: float) -> Approximate:
    """Dwork, Rothblum, Vadhan in the form of Kairouz, Oh, Viswanath, for unequal parts; never above basic.

    epsilon = sum e_i tanh(e_i/2) + sqrt(2 ln(1/slack) sum e_i^2), delta = 1 - (1-slack) prod(1-delta_i).
    """
    s = probability("slack", slack, below_one=True)
    basic = _epsilon(parts)
    delta = upper(lambda: 1 - (1 - ball(s)) * _survival(parts))
    if s == 0:
        return _reported(Approximate, basic, delta)

    def advanced() -> arb:
        mean, square = ball(0), ball(0)
        for bound, times in parts:
            e = ball(float(bound.epsilon))
            mean += times * e * (e / 2).tanh()
            square += times * e**2
        return mean + (-2 * ball(s).log() * square).sqrt()

    return _reported(Approximate, min(basic, upper(advanced)), delta)


@law("compose-approximate-optimal", operation="compose")
def compose_optimal(parts: Weighted) -> Profile:
    """The whole curve of Kairouz, Oh, Viswanath, certified from both sides."""
    return compose_profile(
        [(convert(b, Approximate) if isinstance(b, Pure | Pointwise) else b, n) for b, n in parts]
    )


@law("compose-gdp", operation="compose")
def compose_gaussian(parts: Weighted) -> GaussianDP:
    """mu = sqrt(sum mu_i^2)."""
    return GAUSSIAN.bound(_total(GAUSSIAN, parts))


@law("compose-zcdp", operation="compose")
def compose_concentrated(parts: Weighted) -> Concentrated:
    """Rhos add."""
    return CONCENTRATED.bound(_total(CONCENTRATED, parts))


@law("compose-renyi", operation="compose")
def compose_renyi(parts: Weighted) -> Renyi:
    """Divergences add at each order; the result has the orders that some part lists and all parts know."""
    curves = [b for b, _ in parts if isinstance(b, Renyi)]
    top = min(c.orders[-1] for c in curves)
    currency = Divergences(tuple(sorted({a for c in curves for a in c.orders if a <= top})))
    return currency.bound(_total(currency, parts))


@law("compose-profile", operation="compose")
def compose_profile(parts: Weighted) -> Profile:
    """Losses add as independent random variables: the curves are convolved, add and remove apart."""
    return Profile.product([(convert(b, Profile), n) for b, n in parts])


_LAW_OF: dict[type[Bound], str] = {
    Pure: "compose-pure",
    Pointwise: "compose-pointwise",
    Approximate: "compose-approximate-basic",
    GaussianDP: "compose-gdp",
    Concentrated: "compose-zcdp",
    Renyi: "compose-renyi",
    Profile: "compose-profile",
}
_BY_NAME: dict[str, str] = {
    "basic": "compose-approximate-basic",
    "advanced": "compose-approximate-advanced",
    "optimal": "compose-approximate-optimal",
    "profile": "compose-profile",
}


def compose_bounds(
    parts: Weighted, *, law: str | None = None, slack: float | None = None
) -> tuple[Bound, str]:
    """The composed bound and the id of its law; `parts` are (bound, number of runs)."""
    if not parts:
        raise EmptyComposition(what="the composition")
    parts = [(bound, how_many("times", times)) for bound, times in parts]
    kinds = {type(b) for b, _ in parts}
    if law is None:
        if slack is not None:
            raise InvalidParameter(parameter="slack", value=slack, must="go with law='advanced'")
        kind = join(*kinds)
        chosen = _LAW_OF[kind]
        # Below Renyi every kind answers at every order: no table is needed.
        ready = list(parts) if kind is Renyi else [(convert(b, kind), n) for b, n in parts]
        return LAWS[chosen].apply(ready), chosen
    chosen = _BY_NAME.get(text("law", law), law)
    if chosen not in LAWS or LAWS[chosen].operation != "compose":
        raise UnknownName(what="law of composition", name=law, known=[*_BY_NAME, *_LAW_OF.values()])
    if chosen.startswith("compose-approximate"):
        if not kinds <= {Pure, Pointwise, Approximate}:
            raise NoLaw(
                operation=f"{law} composition of {', '.join(sorted(k.__name__ for k in kinds))}",
                reason="this theorem is about (epsilon, delta) bounds",
                hint="convert each part to Approximate at a delta first, or use law='profile'",
            )
        ready = [(convert(b, Approximate), n) for b, n in parts]
        if chosen.endswith("advanced"):
            if slack is None:
                raise InvalidParameter(
                    parameter="slack",
                    value=None,
                    must="be given",
                    hint="the extra delta that advanced composition spends",
                )
            return LAWS[chosen].apply(ready, slack=slack), chosen
        return LAWS[chosen].apply(ready), chosen
    target = next(k for k, name in _LAW_OF.items() if name == chosen)
    if target is Renyi:
        ready = [(convert(b, Renyi) if not isinstance(b, Renyi) else b, n) for b, n in parts]
    else:
        ready = [(convert(b, target), n) for b, n in parts]
    return LAWS[chosen].apply(ready), chosen


def repeat_bound(
    bound: Bound, times: int, *, law: str | None = None, slack: float | None = None
) -> tuple[Bound, str]:
    """The composition of `times` copies; the same value as composing them one by one in one call."""
    return compose_bounds([(bound, how_many("times", times))], law=law, slack=slack)


def _total(currency: Currency, parts: Weighted) -> Amounts:
    """sum of times * numbers, exact."""
    return summed(currency, [(currency.of_bound(bound), times) for bound, times in parts])


def _epsilon(parts: Weighted) -> float:
    """The sum of the epsilons alone; the caller adds up their deltas."""
    return float(PURE.bound(_total(PURE, [(Pure(epsilon=bound.epsilon), n) for bound, n in parts])).epsilon)


def _survival(parts: Weighted) -> arb:
    product = ball(1)
    for bound, times in parts:
        product *= (1 - ball(float(bound.delta))) ** times
    return product


def _reported(kind: type[A], epsilon: float, delta: float) -> A:
    if delta >= 1 or math.isinf(epsilon):
        raise NoLaw(
            operation="this composition",
            reason="the deltas add up to 1 or more, and then nothing is promised",
            hint="compose fewer or stronger parts, or use law='optimal'",
        )
    return kind(epsilon=epsilon, delta=up(Fraction(delta)))


# Parallel composition: releases from disjoint parts of the table.


def parts_touched(unit: Unit, *, fixed: bool) -> int:
    """The largest number of disjoint parts that one step of the unit can change.

    A row lies in one part. A person's rows may lie in as many parts as they have rows, or declared groups where
    the parts are those groups (which is then declared, and carried with the guarantee).
    Replacing a row may move it between parts, unless the parts are fixed independently of the data.
    """
    if isinstance(unit, Coupled):
        raise NoLaw(
            operation="parallel composition for coupled worlds", reason="alt and priv may span the parts"
        )
    if isinstance(unit, GroupOf):
        return unit.size * parts_touched(unit.of, fixed=fixed)
    if unit.neighbours is Neighbours.REPLACE_ONE and not fixed:
        raise NoLaw(
            operation="parallel composition under replace-one",
            reason="replacing a row can move it from one part to another, which changes two parts by an addition "
            "and a removal; replace-one guarantees say nothing of those",
            hint="state the parts for add-or-remove, or say fixed=True where membership does not depend on the data",
        )
    if isinstance(unit, People):
        once = unit.reach
        # Under replace-one the old rows and the new ones may lie in different parts.
        return once if unit.neighbours is Neighbours.ADD_OR_REMOVE else 2 * once
    return 1


@law("parallel-composition", operation="parallel")
def parallel_bound(bounds: Sequence[Bound], touched: int) -> Bound:
    """The worst of the bounds, composed as often as one unit touches parts."""
    largest = worst(bounds)
    times = min(touched, len(bounds))
    return largest if times == 1 else compose_bounds([(largest, times)])[0]


def worst(bounds: Sequence[Bound]) -> Bound:
    """A bound that every one of these implies: the largest numbers, in their least common kind."""
    for candidate in bounds:
        if all(bound_implies(b, candidate) for b in bounds):
            return candidate
    kind = join(*{type(b) for b in bounds})
    if kind is Renyi:
        curves = [b for b in bounds if isinstance(b, Renyi)]
        top = min(c.orders[-1] for c in curves)
        orders = tuple(sorted({a for c in curves for a in c.orders if a <= top}))
        return Renyi(orders=orders, epsilons=tuple(max(b.renyi(a) for b in bounds) for a in orders))
    ready: list[Any] = [convert(b, kind) for b in bounds]
    if kind is Profile:
        return Profile.worst([b for b in ready if isinstance(b, Profile)])
    if kind in (Approximate, Pointwise):
        return kind(
            epsilon=max(float(b.epsilon) for b in ready),
            delta=max(float(b.delta) for b in ready),
        )
    names: dict[type[Bound], str] = {Pure: "epsilon", GaussianDP: "mu", Concentrated: "rho"}
    largest: Bound = max(ready, key=lambda b: float(getattr(b, names[kind])))
    return largest


# Budgets: the most of a Rényi divergence, or of a rho, that an (epsilon, delta) allows.


def renyi_budget(*, epsilon: float, delta: float) -> Renyi:
    """The Rényi bound that suffices for (epsilon, delta): lecture 7, Cor. 7.12.

    Order 1 + 2 ln(1/delta)/epsilon (rounded up) with divergence epsilon/2.
    """
    e, d = positive("epsilon", epsilon), open_probability(delta)
    return Renyi(orders=(upper(lambda: 1 - 2 * ball(d).log() / ball(e)),), epsilons=(e / 2,))


def concentrated_budget(*, epsilon: float, delta: float, printed: bool = False) -> Concentrated:
    """The largest rho that is certified to give (epsilon, delta).

    Printed (lecture 7): (sqrt(epsilon + ln(1/delta)) - sqrt(ln(1/delta)))^2. The unprinted one is sharper: it inverts
    the default conversion.
    """
    e, d = positive("epsilon", epsilon), open_probability(delta)
    low = _printed_rho(e, d)
    if flag("printed", printed):
        return Concentrated(rho=low)
    # An epsilon near 0 leaves a rho that delta alone allows.
    return Concentrated(rho=largest(lambda rho: Concentrated(rho=rho).delta_at(e) <= d, low, max(low, 1e-30)))


def _printed_rho(epsilon: float, delta: float) -> float:
    def formula() -> arb:
        b = -ball(delta).log()
        return (ball(epsilon) / ((ball(epsilon) + b).sqrt() + b.sqrt())) ** 2

    return lower(formula)
