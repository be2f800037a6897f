"""A guarantee: bound, unit and condition. No part is ever dropped."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any

from tacit.errors import InvalidParameter, NoLaw, UnitMismatch
from tacit.exact.checks import text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import meaning
from tacit.guarantees.arguments import Numbers, how_many, instance, listed
from tacit.guarantees.bounds import Bound
from tacit.guarantees.conditions import (
    SECRET_SAMPLE,
    Always,
    BoundedAdversary,
    Condition,
    Indistinguishability,
    RandomData,
)
from tacit.guarantees.explain import explain
from tacit.guarantees.implication import Implication, bound_implies
from tacit.guarantees.laws.amplify import Sampling, amplify_for
from tacit.guarantees.laws.conditions import group_bounded, replace_on_random_data, sim_to_ind, single_rows
from tacit.guarantees.laws.group import group_bound
from tacit.guarantees.meaning import Incentive
from tacit.guarantees.units import GroupOf, Neighbours, Unit, group_of, rows, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """bound (how much) + unit (for whom) + condition (given what); `Always` is differential privacy.

    `declared` lists what somebody declared on the way and no program can check ("the parameters were fixed in
    advance"): it is printed and recorded with the guarantee, and carried through every law.
    """

    bound: Bound
    unit: Unit
    condition: Condition = field(default_factory=Always)
    declared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (("bound", Bound), ("unit", Unit), ("condition", Condition)):
            if not isinstance(getattr(self, name), kind):
                raise InvalidParameter(
                    parameter=name, value=getattr(self, name), must=f"be a {kind.__name__.lower()}"
                )

        declared = [
            text("declared", d) for d in listed("declared", self.declared, must="be a list of sentences")
        ]
        object.__setattr__(self, "declared", tuple(sorted(set(declared))))
        if isinstance(self.condition, RandomData):
            single_rows(_plain_unit(self.unit))

    # --- reading -------------------------------------------------------------------------------------
    def delta_at(self, epsilon: Numbers) -> Numbers:
        """The bound's delta at this epsilon."""
        return self.bound.delta_at(epsilon)

    def epsilon_at(self, delta: Numbers) -> Numbers:
        """The bound's epsilon at this delta."""
        return self.bound.epsilon_at(delta)

    def delta(self, epsilon: Numbers) -> Numbers:
        """Short for `delta_at`."""
        return self.delta_at(epsilon)

    def epsilon(self, delta: Numbers) -> Numbers:
        """Short for `epsilon_at`."""
        return self.epsilon_at(delta)

    def renyi(self, order: Numbers) -> Numbers:
        """The bound's Rényi divergence at this order."""
        return self.bound.renyi(order)

    def power(self, size: float) -> float:
        """The largest power of any test of this size about one unit (Hall 2012, Prop. 1.2.2)."""
        return meaning.reading_of_power(self.bound, self.unit, self.condition, size)

    def best_guess(self, prior: float = 0.5) -> float:
        """The largest probability of guessing rightly between two values, before odds of `prior`."""
        return meaning.reading_of_best_guess(self.bound, self.unit, self.condition, prior)

    def average_guess(self, prior: float = 0.5) -> float:
        """The same, averaged over data drawn at random: the form of `best_guess` under `RandomData`."""
        return meaning.average_guess(self.bound, self.unit, self.condition, prior)

    def posterior_shift(self) -> float:
        """tanh(epsilon/2) for pure epsilon; NoLaw otherwise."""
        return meaning.reading_of_posterior_shift(self.bound, self.unit, self.condition)

    def incentive(self, *, delta: float | None = None) -> Incentive:
        """The largest factor by which one unit's data raise the expectation of any harm (Hall 2012, sec. 1.2.1).

        `delta` names a level of the bound's curve; without it the bound's own is taken.
        """
        return meaning.reading_of_incentive(self.bound, self.unit, self.condition, delta)

    def explain(self) -> str:
        """Plain sentences for a disclosure officer."""
        return explain(self.bound, self.unit, self.condition, self.declared)

    def __str__(self) -> str:
        text = f"{self.bound} for {self.unit}"
        if not isinstance(self.condition, Always):
            text += f"; {self.condition}"
        return text + (f"; declared: {'; '.join(self.declared)}" if self.declared else "")

    # --- comparing -----------------------------------------------------------------------------------
    def implies(self, other: Guarantee) -> Implication:
        """Does this promise contain the other? With the chain of theorems, or the reason why not."""
        if not isinstance(other, Guarantee):
            raise InvalidParameter(parameter="other", value=other, must="be a guarantee")
        try:
            restated = self.for_unit(other.unit)
            _, chain = steps(self.unit, other.unit)
        except (UnitMismatch, NoLaw) as problem:
            return Implication(holds=False, reason=str(problem))
        if isinstance(self.condition, RandomData) and _relaxed(self.unit, other.unit):
            chain = (*chain, "replace-on-random-data")
        holds, used = restated._condition_implies(other.condition)
        if not holds and _ind_to_sim(self.condition, other.condition):
            return Implication(
                holds=False, reason="whether IND implies SIM is an open question (Groce 2014, ch. 4)"
            )
        if not holds:
            return Implication(
                holds=False,
                reason=f"it holds {self.condition}, which does not give: {other.condition}",
            )
        more = set(self.declared) - set(other.declared)
        if more:
            return Implication(holds=False, reason=f"it rests on a declaration: {'; '.join(sorted(more))}")
        verdict = bound_implies(restated.bound, other.bound)
        return replace(verdict, chain=tuple(dict.fromkeys((*chain, *used, *verdict.chain))))

    def _condition_implies(self, other: Condition) -> tuple[bool, tuple[str, ...]]:
        mine = self.condition
        if (
            isinstance(mine, BoundedAdversary)
            and isinstance(other, BoundedAdversary)
            and mine.definition is Indistinguishability.SIM
            and other.definition is Indistinguishability.IND
            and math.isfinite(self.bound._epsilon(0.0))
        ):
            holds, used = sim_to_ind(mine, self.bound).implies(other)
            return holds, ("sim-implies-ind", *used)
        return mine.implies(other)

    # --- restating -----------------------------------------------------------------------------------
    def for_unit(self, unit: Unit) -> Guarantee:
        """The same mechanism's guarantee for another unit, by walking the steps between its neighbours."""
        instance("unit", unit, Unit, must="be a unit", hint="such as tacit.rows()")
        count, _ = steps(self.unit, unit)
        if isinstance(self.condition, RandomData) and _relaxed(self.unit, unit):
            bound, condition = replace_on_random_data(self.bound, self.condition)
            return replace(self, bound=bound, condition=condition, unit=unit)
        if isinstance(self.condition, BoundedAdversary) and count > 1:
            bound, kept_condition = group_bounded(self.bound, self.condition, count)
            return replace(self, bound=bound, condition=kept_condition, unit=unit)
        # Fewer neighbours are fewer pairs of data sets; only a condition that speaks of single ones is kept by that.
        kept = isinstance(self.condition, Always) or (
            count == 1 and isinstance(self.condition, BoundedAdversary)
        )
        if not kept and _plain_unit(unit) != _plain_unit(self.unit):
            raise NoLaw(
                operation=f"another unit under {type(self.condition).__name__}",
                reason="the data sets of the walk, or of the other unit, need not satisfy the condition",
            )
        bound, _ = group_bound(self.bound, count)
        return replace(self, bound=bound, unit=unit)

    def group(self, size: int) -> Guarantee:
        """The guarantee for any `size` units at once."""
        base = self.unit.of if isinstance(self.unit, GroupOf) else self.unit
        already = self.unit.size if isinstance(self.unit, GroupOf) else 1
        return self.for_unit(group_of(base, size=already * how_many("size", size)))

    def subsampled(self, *, rate: float, scheme: str | Sampling) -> Guarantee:
        """The guarantee when the mechanism sees a secret random part of the units."""
        how = Sampling.parse(scheme)
        if not isinstance(self.condition, Always):
            raise NoLaw(
                operation="subsampling under a condition", reason="the theorems are about every data set"
            )
        bound, _ = amplify_for(self.bound, self.unit, rate=rate, scheme=how)
        return replace(self, bound=bound, declared=(*self.declared, SECRET_SAMPLE))

    def post_processed(self) -> Guarantee:
        """The guarantee of whatever is computed from the release without the data.

        Against a `BoundedAdversary` the computation must itself be efficient.
        """
        from tacit.guarantees.laws.registry import post_process_bound

        return replace(self, bound=post_process_bound(self.bound))

    @property
    def record(self) -> dict[str, Any]:
        """The guarantee as plain data, for certificates (see record.py)."""
        from tacit.guarantees.record import to_record

        return to_record(self)


def _ind_to_sim(mine: Condition, other: Condition) -> bool:
    return (
        isinstance(mine, BoundedAdversary)
        and isinstance(other, BoundedAdversary)
        and mine.assumption == other.assumption
        and mine.definition is Indistinguishability.IND
        and other.definition is Indistinguishability.SIM
    )


def _relaxed(known: Unit, wanted: Unit) -> bool:
    """From one row added or taken away to one row replaced."""
    return _plain_unit(known) == rows() and _plain_unit(wanted) == rows(neighbours=Neighbours.REPLACE_ONE)


def _plain_unit(unit: Unit) -> Unit:
    """A group of one is the unit itself."""
    return unit.of if isinstance(unit, GroupOf) and unit.size == 1 else unit
