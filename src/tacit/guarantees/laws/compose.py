"""Composition, and the verbs of the algebra: what several releases about the same data reveal together.

Kinds form a lattice, and a mixed composition happens in the least kind above all its members:

    Pure < Pointwise < Approximate < Profile
    Pure, GaussianDP < Concentrated < Renyi < Profile

Within one kind composition is a closed formula, associative and commutative. `law="profile"` composes the
curves themselves (the tightest, for bounds fixed in advance), `law="advanced"` and `law="optimal"` are the
classical theorems for (epsilon, delta). All hold for adaptively chosen *mechanisms*; adaptively chosen *parameters*
need filters, which are in another room. The verbs at the end (compose, repeat, parallel, group, subsample,
post_process) apply the laws to bounds and to whole guarantees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, UnitMismatch, UnknownName
from tacit.exact.checks import flag, how_many, instance, positive, probability, text
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
from tacit.guarantees.conditions import (
    DISJOINT_ROWS,
    FIXED_MECHANISMS,
    FIXED_PARAMETERS,
    FIXED_PARTS,
    MUTUAL_KNOWLEDGE,
    PARTS_ARE_GROUPS,
    Always,
    Condition,
)
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.implication import bound_implies
from tacit.guarantees.laws import conditions as condition_laws
from tacit.guarantees.laws.amplify import Sampling, amplify_bound
from tacit.guarantees.laws.conditions import ASSUMPTIONS
from tacit.guarantees.laws.convert import convert, open_probability
from tacit.guarantees.laws.group import group_bound
from tacit.guarantees.laws.registry import LAWS, largest, law, post_process_bound
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


# The verbs of the algebra, on bounds and on whole guarantees.


Part = Bound | Guarantee


@overload
def compose(*parts: Bound, law: str | None = None, slack: float | None = None) -> Bound: ...
@overload
def compose(
    *parts: Guarantee,
    law: str | None = None,
    slack: float | None = None,
    adaptive: bool = True,
    assume: str | None = None,
) -> Guarantee: ...
def compose(
    *parts: Any,
    law: str | None = None,
    slack: float | None = None,
    adaptive: bool = True,
    assume: str | None = None,
) -> Any:
    """The joint loss of several releases about the same data.

    `law` names a theorem ("basic", "advanced" with `slack`, "optimal", "profile"); without it the closed
    formula of the least common kind is used. Mechanisms may be chosen adaptively unless `adaptive=False`
    says that all were fixed in advance, which composition under `RandomData` needs. `assume` declares the
    hypothesis of a theorem under `Priors`: "disjoint-independent-rows", "mutual-auxiliary-knowledge".
    """
    return _compose([(p, 1) for p in parts], law=law, slack=slack, adaptive=adaptive, assume=assume)


@overload
def repeat(part: Bound, times: int, *, law: str | None = None, slack: float | None = None) -> Bound: ...
@overload
def repeat(
    part: Guarantee, times: int, *, law: str | None = None, slack: float | None = None, adaptive: bool = True
) -> Guarantee: ...
def repeat(
    part: Any, times: int, *, law: str | None = None, slack: float | None = None, adaptive: bool = True
) -> Any:
    """The composition of `times` copies: exactly compose(part, part, ...)."""
    return _compose([(part, how_many("times", times))], law=law, slack=slack, adaptive=adaptive, assume=None)


def _compose(
    parts: Sequence[tuple[Any, int]],
    *,
    law: str | None,
    slack: float | None,
    adaptive: bool,
    assume: str | None,
) -> Part:
    if not parts:
        raise EmptyComposition(what="the composition")
    check_assumption(assume)
    flag("adaptive", adaptive)
    if all(isinstance(p, Bound) for p, _ in parts):
        if assume is not None:
            raise InvalidParameter(parameter="assume", value=assume, must="go with guarantees under Priors")
        return compose_bounds(parts, law=law, slack=slack)[0]
    for part, _ in parts:
        # What is no guarantee and knows why it has no law (a property of a table) says so itself.
        if callable(refuse := getattr(part, "no_law", None)):
            refuse()
    if not all(isinstance(p, Guarantee) for p, _ in parts):
        raise InvalidParameter(
            parameter="parts",
            value=[type(p).__name__ for p, _ in parts],
            must="be all bounds or all guarantees",
        )
    return _compose_guarantees(parts, law, slack, adaptive, assume)


def check_assumption(assume: str | None) -> None:
    """Refuse a word that names no theorem."""
    if assume is not None and text("assume", assume) not in ASSUMPTIONS:
        raise UnknownName(what="assumption", name=assume, known=ASSUMPTIONS)


def _compose_guarantees(
    parts: Sequence[tuple[Guarantee, int]],
    law: str | None,
    slack: float | None,
    adaptive: bool,
    assume: str | None,
) -> Guarantee:
    first = parts[0][0]
    for other, _ in parts:
        if other.unit != first.unit:
            raise UnitMismatch(left=str(first.unit), right=str(other.unit))
    declared = [d for g, _ in parts for d in g.declared]
    if assume == condition_laws.DISJOINT:
        bound = condition_laws.compose_disjoint(parts)
        return replace(first, bound=bound, declared=(*declared, DISJOINT_ROWS))
    if assume == condition_laws.AUXILIARY:
        bound = condition_laws.compose_coupled(parts)
        return replace(first, bound=bound, declared=(*declared, MUTUAL_KNOWLEDGE))
    if len(parts) == 1 and parts[0][1] == 1:
        return first
    condition: Condition
    condition, theorems = condition_laws.compose_conditions(parts, adaptive=adaptive)
    if theorems and not adaptive:
        declared.append(FIXED_MECHANISMS)
    bound, used = compose_bounds([(_either_order(g), n) for g, n in parts], law=law, slack=slack)
    if used in _IN_ADVANCE:
        declared.append(FIXED_PARAMETERS)
    return replace(first, bound=bound, condition=condition, declared=tuple(declared))


def _either_order(part: Guarantee) -> Bound:
    """Under replacement two neighbours have no order: releases may turn opposite ways.

    A profile in two directions is then the larger of both. Where a unit is added or removed, the directions of all
    releases are the same two.
    """
    bound = part.bound
    if part.unit.neighbours is Neighbours.REPLACE_ONE and isinstance(bound, Profile):
        return bound if len(bound.directions) == 1 else Profile.worst([bound])
    return bound


_IN_ADVANCE = {"compose-approximate-advanced", "compose-approximate-optimal", "compose-profile"}


def parallel(*parts: Guarantee, fixed: bool = False) -> Guarantee:
    """The joint loss of releases from disjoint parts of the table: McSherry 2009.

    `fixed=True` declares that the part of a row does not depend on its data. For people in at most this many
    groups the parts are taken to be those groups; the guarantee says so.
    """
    if not parts:
        raise EmptyComposition(what="the composition")
    for part in parts:
        instance(
            "parts", part, Guarantee, must="be guarantees", hint="parallel composition depends on the unit"
        )
    flag("fixed", fixed)
    first = parts[0]
    for other in parts:
        if other.unit != first.unit:
            raise UnitMismatch(left=str(first.unit), right=str(other.unit))
        if not isinstance(other.condition, Always):
            raise NoLaw(
                operation=f"parallel composition under {type(other.condition).__name__}",
                reason="the theorem is about every data set",
                hint="under Priors, compose(..., assume='disjoint-independent-rows') is Thm 6.8",
            )
    touched = parts_touched(first.unit, fixed=fixed)
    declared = [d for p in parts for d in p.declared]
    if fixed and first.unit.neighbours is Neighbours.REPLACE_ONE:
        declared.append(FIXED_PARTS)
    base = first.unit.of if isinstance(first.unit, GroupOf) else first.unit
    if isinstance(base, People) and base.reach < base.at_most and len(parts) > 1:
        declared.append(PARTS_ARE_GROUPS)
    return replace(first, bound=parallel_bound([p.bound for p in parts], touched), declared=tuple(declared))


@overload
def group(what: Bound, *, size: int) -> Bound: ...
@overload
def group(what: Guarantee, *, size: int) -> Guarantee: ...
def group(what: Part, *, size: int) -> Part:
    """The promise to any `size` units at once."""
    if isinstance(what, Guarantee):
        return what.group(size)
    return group_bound(_a_bound(what), size)[0]


@overload
def subsample(what: Bound, *, rate: float, scheme: str | Sampling) -> Bound: ...
@overload
def subsample(what: Guarantee, *, rate: float, scheme: str | Sampling) -> Guarantee: ...
def subsample(what: Part, *, rate: float, scheme: str | Sampling) -> Part:
    """The promise of a mechanism that sees a secret random part of the units."""
    if isinstance(what, Guarantee):
        return what.subsampled(rate=rate, scheme=scheme)
    return amplify_bound(_a_bound(what), rate=rate, scheme=scheme)[0]


@overload
def post_process(what: Bound) -> Bound: ...
@overload
def post_process(what: Guarantee) -> Guarantee: ...
def post_process(what: Part) -> Part:
    """The promise of anything computed from the release without the data."""
    if isinstance(what, Guarantee):
        return what.post_processed()
    return post_process_bound(_a_bound(what))


def _a_bound(what: Bound) -> Bound:
    return instance("what", what, Bound, must="be a bound or a guarantee")
