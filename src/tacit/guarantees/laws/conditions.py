"""Composition of conditions: the joint assumptions of several releases.

The bound composes by the laws of its kind; this file decides whether it may compose, and the condition of the result.
If the sources have no theorem, the answer is `NoLaw`, with a counterexample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.errors import NoLaw, UnitMismatch
from tacit.exact.checks import how_many, non_negative, probability
from tacit.exact.rounding import ball, lower, product, sum_up, up, upper
from tacit.guarantees.bounds import Approximate, Bound, Pure
from tacit.guarantees.conditions import (
    Always,
    BoundedAdversary,
    Condition,
    Indistinguishability,
    Priors,
    RandomData,
)
from tacit.guarantees.laws.group import group_bound
from tacit.guarantees.laws.registry import law
from tacit.guarantees.units import Rows, Unit

if TYPE_CHECKING:
    from flint import arb

    from tacit.guarantees.guarantee import Guarantee

DISJOINT = "disjoint-independent-rows"
AUXILIARY = "mutual-auxiliary-knowledge"
ASSUMPTIONS = (AUXILIARY, DISJOINT)


def compose_conditions(
    parts: Sequence[tuple[Guarantee, int]], *, adaptive: bool
) -> tuple[Condition, tuple[str, ...]]:
    """The condition of a sequential composition, and the theorems used."""
    conditions = {type(g.condition) for g, _ in parts} - {Always}
    if not conditions:
        return Always(), ()
    if len(conditions) > 1:
        raise NoLaw(
            operation="composition under " + " and ".join(sorted(c.__name__ for c in conditions)),
            reason="no theorem covers two different conditions at once",
        )
    kind = conditions.pop()
    if kind is RandomData:
        return compose_random_data(parts, adaptive=adaptive), ("compose-random-data",)
    if kind is BoundedAdversary:
        return compose_bounded(parts, adaptive=adaptive), ("compose-bounded-adversary",)
    raise NoLaw(
        operation="composition under Priors",
        reason="each release may be harmless and the pair may tell everything, because one is auxiliary "
        "knowledge for the other",
        counterexample="the exact count of all rows, and the exact count of all rows but one",
        hint=f"declare assume={DISJOINT!r} (Thm 6.8) or assume={AUXILIARY!r} (Thm 5.6) where it is true",
    )


@law("compose-random-data", operation="condition")
def compose_random_data(parts: Sequence[tuple[Guarantee, int]], *, adaptive: bool) -> RandomData:
    """Gammas add, by a union bound over the data, for mechanisms fixed in advance."""
    if adaptive:
        raise NoLaw(
            operation="adaptive composition under RandomData",
            reason="gamma is a probability over the data for a mechanism fixed before they were drawn; a mechanism "
            "chosen after seeing an output may single out the data on which it fails",
            counterexample="publish a random cell's name J, then the exact count of cell J: each J is private for "
            "most data, the pair is private for none",
            hint="if all mechanisms were fixed in advance, say adaptive=False",
        )
    gammas = []
    for guarantee, times in parts:
        if isinstance(guarantee.condition, RandomData):
            gammas += [guarantee.condition.gamma] * times
    return RandomData(gamma=min(1.0, sum_up(gammas)))


def single_rows(unit: Unit) -> None:
    """Refuse units of several rows: the definition speaks of one row among independent draws."""
    if not isinstance(unit, Rows):
        raise NoLaw(
            operation=f"random differential privacy for {unit.noun}",
            reason="gamma is a probability over rows drawn independently, and the rows of one unit are not",
            counterexample="publish every value that two rows share: of independent draws from a continuous population "
            "this tells nothing, ever; of people with two equal rows each it tells every value",
            hint="protect rows(): one row a person, drawn independently",
        )


@law("replace-on-random-data", operation="condition")
def replace_on_random_data(bound: Bound, condition: RandomData) -> tuple[Bound, RandomData]:
    """Carries a bound from add-or-remove to replace-one. It takes two steps of the bound's group law, and gamma
    doubles.
    """
    gamma = min(1.0, sum_up([condition.gamma, condition.gamma]))
    return group_bound(bound, 2)[0], RandomData(gamma=gamma)


@law("compose-bounded-adversary", operation="condition")
def compose_bounded(parts: Sequence[tuple[Guarantee, int]], *, adaptive: bool) -> BoundedAdversary:
    """SIM: advantages add. IND: a_1 + e^{epsilon_1}(a_2 + ...), for pure bounds fixed in advance."""
    bounded = [g.condition for g, _ in parts if isinstance(g.condition, BoundedAdversary)]
    first = bounded[0]
    if any(c.assumption != first.assumption for c in bounded):
        raise NoLaw(
            operation="composition under different computational assumptions",
            reason="the result would rest on both, and no single named assumption says so",
            hint="name one assumption that contains them",
        )
    if any(c.definition != first.definition for c in bounded):
        raise NoLaw(
            operation="composition of SIM with IND",
            reason="the two definitions differ; IND does not give a private stand-in",
            hint="restate SIM as IND first (law sim-implies-ind)",
        )
    if first.definition is Indistinguishability.SIM:
        advantages = [(_advantage(g.condition), times) for g, times in parts]
        total = upper(lambda: _weighted(advantages))
        return BoundedAdversary(assumption=first.assumption, advantage=min(1.0, total))
    if adaptive or not all(isinstance(g.bound, Pure) for g, _ in parts):
        raise NoLaw(
            operation="composition under IND",
            reason="the proof exchanges one output at a time with the others fixed: it needs pure bounds and "
            "mechanisms fixed in advance",
            hint="say adaptive=False, or use the simulation-based definition",
        )

    def folded() -> arb:
        total = ball(0)
        for guarantee, times in reversed(parts):
            e = ball(guarantee.bound._epsilon(0.0))
            own = ball(_advantage(guarantee.condition))
            chain = (times * e).expm1() / e.expm1() if e != 0 else ball(times)
            total = own * chain + (times * e).exp() * total
        return total

    return BoundedAdversary(
        assumption=first.assumption, advantage=min(1.0, upper(folded)), definition=first.definition
    )


@law("group-bounded-adversary", operation="condition")
def group_bounded(bound: Bound, condition: BoundedAdversary, size: int) -> tuple[Bound, BoundedAdversary]:
    """SIM: the stand-in's group bound, and the same advantage. IND, pure: a (e^{k epsilon} - 1)/(e^epsilon - 1)."""
    grouped = group_bound(bound, size)[0]
    if condition.definition is Indistinguishability.SIM:
        return grouped, condition
    if not isinstance(bound, Pure):
        raise NoLaw(operation="a group under IND", reason="the walk of a test is proved for pure bounds only")

    def total() -> arb:
        e = ball(float(bound.epsilon))
        return ball(condition.advantage) * ((size * e).expm1() / e.expm1() if e != 0 else ball(size))

    advantage = min(1.0, upper(total))
    return grouped, BoundedAdversary(
        assumption=condition.assumption, advantage=advantage, definition=condition.definition
    )


@law("sim-implies-ind", operation="condition")
def sim_to_ind(condition: BoundedAdversary, bound: Bound) -> BoundedAdversary:
    """SIM with advantage a gives IND with (1 + e^epsilon) a."""
    if condition.definition is Indistinguishability.IND:
        return condition
    epsilon = bound._epsilon(0.0)
    if math.isinf(epsilon):
        raise NoLaw(operation="SIM to IND", reason="the factor e^epsilon needs a pure epsilon")
    total = upper(lambda: (1 + ball(epsilon).exp()) * ball(condition.advantage))
    return BoundedAdversary(
        assumption=condition.assumption, advantage=min(1.0, total), definition=Indistinguishability.IND
    )


def _advantage(condition: Condition) -> float:
    return condition.advantage if isinstance(condition, BoundedAdversary) else 0.0


def _weighted(advantages: Sequence[tuple[float, int]]) -> arb:
    total = ball(0)
    for advantage, times in advantages:
        total += times * ball(advantage)
    return total


@law("compose-priors-disjoint", operation="condition")
def compose_disjoint(parts: Sequence[tuple[Guarantee, int]]) -> Bound:
    """Groce 2014, Thm 6.8: the largest epsilon and the largest delta."""
    if any(times != 1 for _, times in parts):
        raise NoLaw(
            operation="repeating a release on disjoint rows",
            reason="the same rows cannot be disjoint from themselves",
        )
    _same_priors([g for g, _ in parts])
    epsilon, delta = _epsilon_delta([g for g, _ in parts])
    return (
        Pure(epsilon=max(epsilon)) if not any(delta) else Approximate(epsilon=max(epsilon), delta=max(delta))
    )


@law("compose-priors", operation="condition")
def compose_coupled(parts: Sequence[tuple[Guarantee, int]]) -> Bound:
    """Groce 2014, Thm 5.6, for exactly two releases."""
    guarantees = [g for g, times in parts for _ in range(times)]
    if len(guarantees) != 2:
        raise NoLaw(operation=f"Thm 5.6 with {len(guarantees)} releases", reason="the theorem is about two")
    _same_priors(guarantees)
    (e_f, e_g), (d_f, d_g) = _epsilon_delta(guarantees)
    delta = max(
        upper(lambda: ball(d_f) * ball(e_g).exp() + ball(d_g)),
        upper(lambda: ball(d_f) + ball(d_g) * ball(e_f).exp()),
    )
    total = sum_up([e_f, e_g])
    if delta >= 1:
        raise NoLaw(operation="this composition", reason="its delta reaches 1, and then nothing is promised")
    return Approximate(epsilon=total, delta=delta) if delta else Pure(epsilon=total)


def _same_priors(guarantees: Sequence[Guarantee]) -> None:
    if any(not isinstance(g.condition, Priors) for g in guarantees):
        raise NoLaw(
            operation="Thm 5.6 or 6.8 outside Priors", reason="these theorems are about classes of priors"
        )
    if len({g.condition for g in guarantees}) > 1:
        raise UnitMismatch(
            left=str(guarantees[0].condition),
            right=str(next(g.condition for g in guarantees if g.condition != guarantees[0].condition)),
            hint="state both for one class of priors",
        )


def _epsilon_delta(guarantees: Sequence[Guarantee]) -> tuple[list[float], list[float]]:
    pairs = []
    for g in guarantees:
        if isinstance(g.bound, Pure):
            pairs.append((float(g.bound.epsilon), 0.0))
        elif isinstance(g.bound, Approximate):
            pairs.append((float(g.bound.epsilon), float(g.bound.delta)))
        else:
            raise NoLaw(
                operation=f"{type(g.bound).__name__} bounds under Priors",
                reason="the theorems are about (epsilon, delta)",
                hint="convert to Approximate first",
            )
    return [e for e, _ in pairs], [d for _, d in pairs]


# Laws of coupled worlds on (epsilon, delta): from simulators to posteriors and to pairs of values.
#
# Each takes the numbers of one definition and gives those of another, rounded against ourselves. What they are about
# is in `tacit.coupled`; here are only the constants.


@law("simulator-to-pair", operation="coupled")
def pair_of_values(*, epsilon: float, delta: float = 0.0) -> Bound:
    """(2 epsilon, (1 + e^epsilon) delta) between two values with the same scrubbed data."""
    e, d = non_negative("epsilon", epsilon), probability("delta", delta)
    return _bound("two values", product(2.0, e).high, upper(lambda: (1 + ball(e).exp()) * ball(d)))


@law("posteriors-in-coupled-worlds", operation="coupled")
def posterior_coupled(*, epsilon: float, delta: float = 0.0, family: int = 1) -> Bound:
    """(2 epsilon + ln(1/(1 - d)), d) for posteriors, d = sqrt((1 + e^epsilon) family delta)."""
    e, d, g = non_negative("epsilon", epsilon), probability("delta", delta), how_many("family", family)
    wider = upper(lambda: ((1 + ball(e).exp()) * g * ball(d)).sqrt())
    if wider >= 1:
        raise NoLaw(operation="posteriors", reason="delta would reach 1, and then nothing is promised")
    return _bound("posteriors", upper(lambda: 2 * ball(e) - (1 - ball(wider)).log()), wider)


@law("posteriors-in-coupled-worlds-printed", operation="coupled", rests_on="posteriors-in-coupled-worlds")
def posterior_coupled_printed(*, epsilon: float, delta: float = 0.0, family: int = 1) -> Bound:
    """The printed (3 epsilon, 2 sqrt(family delta)), in the cases with a proof; NoLaw with the counterexample in
    others.
    """
    e, d, g = non_negative("epsilon", epsilon), probability("delta", delta), how_many("family", family)
    wider = upper(lambda: 2 * (g * ball(d)).sqrt())
    if upper(lambda: ball(e).exp()) > 3 or wider > lower(lambda: 1 - (-ball(e)).exp()):
        raise NoLaw(
            operation="the printed form of Thm 5.2",
            reason="it was proved for e^epsilon <= 3 and 2 sqrt(family delta) <= 1 - e^-epsilon only",
            counterexample="at epsilon = ln 6, delta = 1/400 a row with nine values, whose posterior excludes one "
            "of them with probability 0.12 where at most 0.1 is allowed",
            hint="use the corrected form, posterior_coupled",
        )
    return _bound("posteriors", product(3.0, e).high, wider)


@law("posteriors-in-pufferfish", operation="coupled")
def posterior_pufferfish(*, epsilon: float, delta: float = 0.0, wider: float | None = None) -> Bound:
    """(c, (1 + e^-c) delta / (1 - e^(epsilon - c))), c = wider or 2 epsilon; epsilon itself for delta = 0."""
    e, d = non_negative("epsilon", epsilon), probability("delta", delta)
    c = product(2.0, e).high if wider is None else non_negative("wider", wider)
    if d == 0:
        return Pure(epsilon=e)
    if c <= e:
        raise NoLaw(
            operation="posteriors",
            reason="with a delta the epsilon of posteriors must be above the one of outputs",
        )

    def failing() -> arb:
        return (1 + (-ball(c)).exp()) * ball(d) / (1 - (ball(e) - ball(c)).exp())

    return _bound("posteriors", c, upper(failing))


@law("semantic-implies-dp", operation="coupled")
def semantic_to_dp(*, shift: float, delta: float = 0.0) -> Bound:
    """(ln((1 + 2s)/(1 - 2s)), 2 delta) for replaced rows."""
    s, d = probability("shift", shift), probability("delta", delta)
    if s >= 0.5:
        raise NoLaw(
            operation="semantic privacy to differential privacy",
            reason="beliefs between two data sets can never be more than 1/2 away from a fair coin",
        )
    wide = upper(lambda: ((1 + 2 * ball(s)) / (1 - 2 * ball(s))).log())
    return _bound("neighbours", wide, product(2.0, d).high)


def _bound(what: str, epsilon: float, delta: float) -> Bound:
    if delta >= 1:
        raise NoLaw(operation=what, reason="delta would reach 1, and then nothing is promised")
    return Pure(epsilon=epsilon) if delta == 0 else Approximate(epsilon=epsilon, delta=up(delta))
