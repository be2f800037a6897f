"""The verbs of the algebra, on bounds and on whole guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, UnitMismatch
from tacit.exact.checks import flag, how_many, instance
from tacit.guarantees.bounds import Bound, Profile
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
from tacit.guarantees.laws import conditions as condition_laws
from tacit.guarantees.laws.amplify import Sampling, amplify_bound
from tacit.guarantees.laws.compose import compose_bounds, parallel_bound, parts_touched
from tacit.guarantees.laws.group import group_bound
from tacit.guarantees.laws.registry import post_process_bound
from tacit.guarantees.units import GroupOf, Neighbours, People

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
    condition_laws.check_assumption(assume)
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
