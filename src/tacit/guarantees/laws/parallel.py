"""Parallel composition: releases from disjoint parts of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.errors import NoLaw
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
from tacit.guarantees.laws.compose import compose_bounds, join
from tacit.guarantees.laws.convert import convert
from tacit.guarantees.laws.registry import law
from tacit.guarantees.units import Coupled, GroupOf, Neighbours, People, Unit

__all__ = ["parallel_bound", "parts_touched", "worst"]


def parts_touched(unit: Unit, *, fixed: bool) -> int:
    """In how many disjoint parts one step of the unit can change something.

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
