"""The theorems of chapter 5 on random finite mechanisms, and the checker against a second implementation."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from support import coupled_worlds as independent
from tacit.coupled import (
    Distributional,
    FiniteMechanism,
    InferenceDistributional,
    InferencePufferfish,
    Prior,
    Pufferfish,
    SimulationDP,
    Simulator,
    filling_in,
    mixture,
    one_row,
    pair_of_values,
    posterior_coupled,
    posterior_coupled_printed,
    posterior_pufferfish,
    value_secret,
)
from tacit.coupled.best import blocks_of, lower_end, solve
from tacit.coupled.numbers import Level, distance, smallest_factor
from tacit.errors import NoLaw

DATA = [(a, b) for a in (0, 1) for b in (0, 1)]
# No shrinking: exact linear programs are slow, and a failure is to be told at once.
few = settings(max_examples=25, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))


@st.composite
def laws(draw: Any, outcomes: Any, zeros: bool = True) -> dict[Any, Fraction]:
    """Weights 1..9, a third of them 0 where zeros may be: by a seed, since lists of small numbers are mostly alike."""
    source = random.Random(draw(st.integers(0, 2**40)))
    weights = [source.randint(1, 9) * (not zeros or source.random() > 1 / 3) for _ in outcomes]
    weights[source.randrange(len(weights))] += 1
    return {o: Fraction(w, sum(weights)) for o, w in zip(outcomes, weights, strict=True)}


@st.composite
def mechanisms(draw: Any, outputs: int = 3, zeros: bool = True) -> FiniteMechanism:
    return FiniteMechanism(table={x: draw(laws(range(outputs), zeros)) for x in DATA})


@st.composite
def priors(draw: Any, name: str = "prior") -> Prior:
    return Prior(name=name, weights=draw(laws([(x, z) for x in DATA for z in ("y", "z")])))


@st.composite
def simulators(draw: Any, outputs: int = 3, zeros: bool = True) -> Simulator:
    table = {
        (f"row {i}", tuple("gone" if j == i else v for j in range(2))): draw(laws(range(outputs), zeros))
        for i in (0, 1)
        for v in (0, 1)
    }
    return Simulator.of_table(table)


factors = st.fractions(min_value=1, max_value=4, max_denominator=6)


def told(simulator: Simulator, i: int, rest: Any) -> Any:
    return simulator(f"row {i}", (*rest[:i], "gone", *rest[i:]))


# --- the checker against the definitions ---------------------------------------------------------------
@few
@given(mechanisms(), priors(), simulators(), factors)
def test_delta_against_a_simulator_is_the_largest_over_all_events(
    mechanism: FiniteMechanism, prior: Prior, simulator: Simulator, factor: Fraction
) -> None:
    found = Distributional(priors=(prior,)).delta(
        mechanism, epsilon=Level.of_factor(factor), simulator=simulator
    )
    wanted = independent.distributional_delta(
        prior.weights, mechanism.__getitem__, lambda i, rest: told(simulator, i, rest), factor
    )
    assert found.low == found.high == wanted
    # With epsilon as a float the ends enclose the same curve.
    near = Distributional(priors=(prior,)).delta(mechanism, epsilon=math.log(factor), simulator=simulator)
    assert near.high - near.low < Fraction(1, 10**30)
    assert abs(near.high - wanted) < Fraction(1, 10**14)


@few
@given(mechanisms(), priors(), simulators(), factors)
def test_no_simulator_is_better_than_the_certified_ends(
    mechanism: FiniteMechanism, prior: Prior, simulator: Simulator, factor: Fraction
) -> None:
    definition, level = Distributional(priors=(prior,)), Level.of_factor(factor)
    best = definition.delta(mechanism, epsilon=level)
    other = definition.delta(mechanism, epsilon=level, simulator=simulator)
    assert best.low <= other.high
    assert best.low <= best.high
    assert best.high - best.low < Fraction(1, 10**7)
    # The upper end is the exact delta of a simulator that can be run.
    chosen = definition.simulator(mechanism, epsilon=level)
    wanted = independent.distributional_delta(
        prior.weights, mechanism.__getitem__, lambda i, rest: told(chosen, i, rest), factor
    )
    assert wanted <= best.high


@few
@given(mechanisms(), simulators(), factors, st.lists(st.integers(0, 30), min_size=12, max_size=12))
def test_weights_of_any_size_prove_no_more_than_is_true(
    mechanism: FiniteMechanism, simulator: Simulator, factor: Fraction, weights: list[int]
) -> None:
    """Whatever a solver hands over as its dual, the lower end is below the delta of every simulator."""
    definition = SimulationDP(values=(0, 1), rows=2)
    (block, *_) = blocks_of(definition.cells(mechanism))
    forward = {(c, t): Fraction(weights[3 * c + t]) for c in (0, 1) for t in range(3)}
    backward = {(c, t): Fraction(weights[6 + 3 * c + t]) for c in (0, 1) for t in range(3)}
    answers = {a: simulator(block.cells[0].pair, a) for a in block.inputs}
    worst = max(independent.smallest_delta(c.real, answers[block.inputs[0]], factor) for c in block.cells)
    assert lower_end(block, forward, backward, factor) <= worst
    # The solver's own weights, seven times as large, prove what they proved.
    solved = solve([block], factor, factor)[0]
    larger = [{k: 7 * w for k, w in side.items()} for side in (solved.forward, solved.backward)]
    assert lower_end(block, *larger, factor) == solved.low <= solved.high <= worst + Fraction(1, 10**9)


def test_a_claim_about_posteriors_is_not_decided_where_simulators_matter() -> None:
    """Rows that lean towards each other: what the other row says is part of the ideal belief."""
    weights = {((a, b), None): Fraction(2 if a == b else 1, 6) for a in (0, 1) for b in (0, 1)}
    prior = Prior(name="leaning", weights=weights)
    tells = FiniteMechanism.of(lambda x: x[1], [prior])
    first = InferenceDistributional(priors=(prior,), pairs=(one_row(0),))
    # The simulator that repeats the other row has the same posterior: no claim may be refuted for all simulators.
    repeats = Simulator(name="the other row", answer=lambda pair, a: a[1])
    assert first.delta(tells, epsilon=0, simulator=repeats).high == 0
    assert first.check(tells, epsilon=0).holds is not False


@few
@given(laws([0, 1]), laws([0, 1]), laws([0, 1]), factors)
def test_the_best_simulator_of_one_bit_by_search(p: Any, q: Any, r: Any, factor: Fraction) -> None:
    """One input and two outputs: delta is convex and piecewise linear in one unknown, which is searched."""
    mechanism = FiniteMechanism(table={(0,): p, (1,): q, (2,): r})
    found = SimulationDP(values=(0, 1, 2), rows=1).delta(mechanism, epsilon=Level.of_factor(factor))
    # Corners of the curve lie where one term of one divergence vanishes, or two lines meet.
    lines = []
    for law in (p, q, r):
        for t in (0, 1):
            a = law.get(t, Fraction(0))
            lines += (
                [(a, -factor), (-factor * a, Fraction(1))]
                if t
                else [
                    (a - factor, factor),
                    (1 - factor * a, Fraction(-1)),
                ]
            )
    points = {Fraction(0), Fraction(1)}
    for i, (a, b) in enumerate(lines):
        points.add(-a / b)
        points |= {(c - a) / (b - d) for c, d in lines[:i] if b != d}
    candidates = [x for x in points if 0 <= x <= 1]
    best = min(
        max(independent.smallest_delta(law, {0: 1 - x, 1: x}, factor) for law in (p, q, r))
        for x in candidates
    )
    assert found.low <= best <= found.high


@few
@given(laws(range(4)), laws(range(4)), st.fractions(min_value=0, max_value=1, max_denominator=12), factors)
def test_the_smallest_factor_is_where_delta_is_met(
    p: Any, q: Any, delta: Fraction, any_factor: Fraction
) -> None:
    p, q = ({t: w for t, w in law.items() if w} for law in (p, q))
    assert distance(p, q, any_factor) == independent.smallest_delta(p, q, any_factor)
    one, two = smallest_factor(p, q, delta), smallest_factor(q, p, delta)
    if one is None or two is None:
        assert independent.smallest_delta(p, q, Fraction(10**9)) > delta
        return
    factor = max(one, two)
    assert independent.smallest_delta(p, q, factor) <= delta
    if factor > 1:
        assert independent.smallest_delta(p, q, factor * (1 - Fraction(1, 10**6))) > delta


@settings(few, max_examples=10)
@given(mechanisms(zeros=False), priors(), st.sampled_from([Fraction(0), Fraction(1, 20)]))
def test_epsilon_of_the_best_simulator_lies_between_its_ends(
    mechanism: FiniteMechanism, prior: Prior, delta: Fraction
) -> None:
    definition = Distributional(priors=(prior,))
    found = definition.epsilon(mechanism, delta=delta)
    assert found is not None
    assert found.width < 1e-5
    assert definition.delta(mechanism, epsilon=found.high + 1e-6).high <= delta
    if found.low > 1e-4:
        assert definition.delta(mechanism, epsilon=found.low - 1e-4).low > delta


# --- Thm 5.3, 5.4, 5.5 ---------------------------------------------------------------------------------
@few
@given(mechanisms(), priors(), simulators(), st.tuples(laws("ab"), laws("ab"), laws("ab")), factors)
def test_post_processing(
    mechanism: FiniteMechanism, prior: Prior, simulator: Simulator, after: Any, factor: Fraction
) -> None:
    definition, level = Distributional(priors=(prior,)), Level.of_factor(factor)
    processed = mechanism.then(lambda t: after[t])

    def answer(pair: str, a: Any) -> dict[str, Fraction]:
        said = simulator(pair, a)
        return {k: sum((p * after[t].get(k, 0) for t, p in said.items()), Fraction(0)) for k in "ab"}

    same = Simulator(name="processed", answer=answer)
    before = definition.delta(mechanism, epsilon=level, simulator=simulator).high
    assert definition.delta(processed, epsilon=level, simulator=same).high <= before
    assert definition.delta(processed, epsilon=level).low <= definition.delta(mechanism, epsilon=level).high


@few
@given(mechanisms(), priors(), factors, st.integers(0, 1))
def test_differential_privacy_is_enough_for_every_prior(
    mechanism: FiniteMechanism, prior: Prior, factor: Fraction, filled: int
) -> None:
    """always-implies-priors: rows that lean on each other and on what is known; the simulator fills a value in. Its
    delta is never above the largest over neighbours, by all sets of outputs."""
    worst = max(
        independent.smallest_delta(mechanism.table[one], mechanism.table[other], factor)
        for one in DATA
        for other in DATA
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    )
    found = Distributional(priors=(prior,)).delta(
        mechanism, epsilon=Level.of_factor(factor), simulator=filling_in(mechanism, filled)
    )
    assert found.high <= worst


@few
@given(mechanisms(), priors("one"), priors("two"), simulators(), factors, st.integers(0, 6))
def test_mixtures_of_priors(
    mechanism: FiniteMechanism, one: Prior, two: Prior, simulator: Simulator, factor: Fraction, k: int
) -> None:
    level = Level.of_factor(factor)
    both = mixture([one, two], [Fraction(k, 6), Fraction(6 - k, 6)])
    apart = Distributional(priors=(one, two)).delta(mechanism, epsilon=level, simulator=simulator).high
    assert Distributional(priors=(both,)).delta(mechanism, epsilon=level, simulator=simulator).high <= apart
    best = Distributional(priors=(one, two)).delta(mechanism, epsilon=level).high
    assert Distributional(priors=(both,)).delta(mechanism, epsilon=level).low <= best


@few
@given(mechanisms(), priors(), simulators(), laws("pq"), laws("pq"), factors)
def test_less_auxiliary_knowledge(
    mechanism: FiniteMechanism, prior: Prior, simulator: Simulator, y: Any, z: Any, factor: Fraction
) -> None:
    level = Level.of_factor(factor)
    less: dict[Any, Fraction] = {}
    for (x, known), w in prior.weights.items():
        for now, p in (y if known == "y" else z).items():
            less[x, now] = less.get((x, now), Fraction(0)) + w * p
    knows = Distributional(priors=(prior,)).delta(mechanism, epsilon=level, simulator=simulator).high
    after = Distributional(priors=(Prior(name="less", weights=less),))
    assert after.delta(mechanism, epsilon=level, simulator=simulator).high <= knows


# --- Thm 5.2, 5.7 and two values -----------------------------------------------------------------------
@few
@given(mechanisms(zeros=False), priors(), simulators(zeros=False), factors)
def test_posteriors_in_coupled_worlds(
    mechanism: FiniteMechanism, prior: Prior, simulator: Simulator, factor: Fraction
) -> None:
    """The corrected Thm 5.2 with |G| = 2, and the printed one where it is proved."""
    found = Distributional(priors=(prior,)).delta(
        mechanism, epsilon=Level.of_factor(factor), simulator=simulator
    )
    epsilon, delta = math.log(factor), float(found.high)
    for law in (posterior_coupled, posterior_coupled_printed):
        try:
            bound = law(epsilon=epsilon, delta=delta, family=2)
        except NoLaw:
            continue
        wide, least = float(bound.parameters["epsilon"]), float(bound.parameters.get("delta", 0.0))
        verdict = InferenceDistributional(priors=(prior,)).delta(
            mechanism, epsilon=wide * (1 + 1e-12), simulator=simulator
        )
        assert verdict.high <= Fraction(least) + Fraction(1, 10**12)


@few
@given(mechanisms(), priors(), factors)
def test_posteriors_in_pufferfish(mechanism: FiniteMechanism, prior: Prior, factor: Fraction) -> None:
    assume({x[0] for x in prior.data} == {0, 1})
    secrets = (value_secret(0, 0, 1),)
    found = Pufferfish(priors=(prior,), secrets=secrets).delta(mechanism, epsilon=Level.of_factor(factor))
    assume(found.high < 1)
    assume(factor > 1 or found.high == 0)
    try:
        bound = posterior_pufferfish(epsilon=math.log(factor) * (1 + 1e-12), delta=float(found.high))
    except NoLaw:
        return
    wide, least = float(bound.parameters["epsilon"]), float(bound.parameters.get("delta", 0.0))
    after = InferencePufferfish(priors=(prior,), secrets=secrets).delta(mechanism, epsilon=wide * (1 + 1e-12))
    assert after.high <= Fraction(least) + Fraction(1, 10**12)


@few
@given(mechanisms(), factors)
def test_two_values_are_twice_as_far_apart(mechanism: FiniteMechanism, factor: Fraction) -> None:
    found = SimulationDP(values=(0, 1), rows=2).delta(mechanism, epsilon=Level.of_factor(factor))
    reached = independent.dp_delta(mechanism.table, factor * factor)
    assert reached <= (1 + factor) * found.high
    # And back: filling in a value is a simulator.
    assert found.low <= independent.dp_delta(mechanism.table, factor)
    try:
        bound = pair_of_values(epsilon=math.log(factor), delta=float(found.high))
    except NoLaw:
        return
    assert float(reached) <= bound.parameters.get("delta", 0.0) + 1e-12


@few
@given(mechanisms(), priors(), simulators(), factors)
def test_exact_posteriors_by_bayes(
    mechanism: FiniteMechanism, prior: Prior, simulator: Simulator, factor: Fraction
) -> None:
    """The smallest d with Pr[beliefs are not (epsilon, d)-close] <= d, by trying all thresholds."""
    found = InferenceDistributional(priors=(prior,)).delta(
        mechanism, epsilon=Level.of_factor(factor), simulator=simulator
    )

    def failing(d: Fraction) -> Fraction:
        bad = Fraction(0)
        for t in mechanism.outputs:
            for z in ("y", "z"):
                chance, worst = Fraction(0), Fraction(0)
                for i in (0, 1):
                    real: dict[Any, Fraction] = {}
                    ideal: dict[Any, Fraction] = {}
                    for (x, known), w in prior.weights.items():
                        if known == z:
                            rest = told(simulator, i, independent.without(x, i)).get(t, Fraction(0))
                            real[x[i]] = real.get(x[i], Fraction(0)) + w * mechanism[x].get(t, Fraction(0))
                            ideal[x[i]] = ideal.get(x[i], Fraction(0)) + w * rest
                    chance, other = sum(real.values()), sum(ideal.values())  # type: ignore[assignment]
                    if chance == 0:
                        continue
                    if other == 0:
                        worst = Fraction(2)
                        continue
                    one = {v: w / chance for v, w in real.items()}
                    two = {v: w / other for v, w in ideal.items()}
                    worst = max(worst, independent.smallest_delta(one, two, factor))
                if worst > d:
                    bad += chance
        return bad

    assert found.low == found.high
    d = found.high
    assert d == 1 or failing(d) <= d
    if d > 0:
        below = d * (1 - Fraction(1, 10**9))
        assert failing(below) > below
