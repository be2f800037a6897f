"""Theorem `hidden-groups`: exact answers that hide several rows at once, by writing all other rows out."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from tacit import coupled
from tacit.coupled.noiseless import exact_count, exact_mean, exact_sum
from tacit.coupled.noiseless.histograms import truncated_histogram
from tacit.errors import InvalidInput, NoLaw

Law = dict[int, Fraction]


def total_law(row: Law, rows: int) -> Law:
    """The sum of so many independent rows, one after another."""
    now: Law = {0: Fraction(1)}
    for _ in range(rows):
        following: Law = {}
        for (s, p), (v, w) in itertools.product(now.items(), row.items()):
            following[s + v] = following.get(s + v, Fraction(0)) + p * w
        now = following
    return now


def moved(law: Law, by: dict[int, float]) -> dict[int, float]:
    out: dict[int, float] = {}
    for (s, p), (t, w) in itertools.product(law.items(), by.items()):
        out[s + t] = out.get(s + t, 0.0) + float(p) * w
    return out


def apart(p: dict[int, float], q: dict[int, float], epsilon: float) -> float:
    e = math.exp(epsilon)
    return max(
        sum(max(0.0, a.get(k, 0.0) - e * b.get(k, 0.0)) for k in {*a, *b}) for a, b in ((p, q), (q, p))
    )


def simulated(text: str) -> dict[int, float]:
    """The simulator's total, read from its words: a number, or a coin between two."""
    tail = text.split(" plus ")[1] if " plus " in text else text.split("with ", 1)[1].split(" in place")[0]
    numbers = [int(float(x)) for x in tail.replace(", by a coin", "").split(" or ")]
    return {n: 1 / len(numbers) for n in numbers}


@pytest.mark.parametrize("seed", range(40))
def test_sums_hide_the_total_of_a_group(seed: int) -> None:
    dice = random.Random(seed)
    values = sorted(dice.sample(range(4), dice.randint(2, 4))) if seed % 2 else [0, 1]
    parts = [dice.randint(1, 6) for _ in values]
    row = {v: Fraction(p, sum(parts)) for v, p in zip(values, parts, strict=True)}
    n, group = dice.randint(5, 9), dice.randint(2, 3)
    unknown = dice.choice([n, n - 1])
    rest = total_law(row, unknown - group)
    delta = dice.choice([0.3, 0.1, 0.03])
    text = "table(" + ", ".join(f"{v}: {w}" for v, w in row.items()) + ", grid=1)"
    try:
        found = exact_sum(text, n=n, unknown_rows=unknown, delta=delta, group=group)
    except NoLaw:
        # Then no simulator with one total has an epsilon, however large: some total shows for certain too often.
        for s in range(group * max(values) + 1):
            assert max(
                apart(moved(rest, {t: 1.0}), moved(rest, {s: 1.0}), 40.0) for t in total_law(row, group)
            ) > delta * (1 - 1e-9)
        return
    assert found.theorem == "hidden-groups"
    totals = total_law(row, group)
    if found.epsilon_pair is not None:
        worst = max(
            apart(moved(rest, {t: 1.0}), moved(rest, {s: 1.0}), found.epsilon_pair)
            for t in totals
            for s in totals
        )
        assert worst <= delta * (1 + 1e-9)
    weights = found.simulator
    if "probability" not in weights:
        stand_in = simulated(weights)
        worst = max(apart(moved(rest, {t: 1.0}), moved(rest, stand_in), found.epsilon) for t in totals)
        assert worst <= delta * (1 + 1e-9)
        every = range(group * min(values), group * max(values) + 1)
        if found.epsilon > 1e-6 and set(every) == set(totals):
            less = max(
                apart(moved(rest, {t: 1.0}), moved(rest, stand_in), found.epsilon * 0.995) for t in every
            )
            assert less > delta * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(14))
def test_counts_hide_groups_and_agree_with_sums(seed: int) -> None:
    dice = random.Random(500 + seed)
    p = Fraction(dice.randint(2, 8), 10)
    n, group = dice.randint(6, 12), dice.randint(2, 3)
    rest = total_law({0: 1 - p, 1: p}, n - group)
    delta = 0.2
    try:
        found = exact_count(p, n=n, delta=delta, group=group)
    except NoLaw:
        return
    if found.epsilon_pair is None:
        # Some pair of totals shows for certain too often.
        assert apart(moved(rest, {0: 1.0}), moved(rest, {group: 1.0}), 40.0) > delta
        return
    for t, s in itertools.permutations(range(group + 1), 2):
        assert apart(moved(rest, {t: 1.0}), moved(rest, {s: 1.0}), found.epsilon_pair) <= delta * (1 + 1e-9)
    ends = apart(moved(rest, {0: 1.0}), moved(rest, {group: 1.0}), found.epsilon_pair * 0.995)
    assert found.epsilon_pair < 1e-6 or ends > delta * (1 - 1e-9)
    assert found.details["epsilon_floor"] <= found.epsilon


def test_the_checker_of_coupled_worlds_agrees() -> None:
    """Two rows of eight, of a household that answers alike: the checker's best simulator is no worse than ours."""
    fair = {0: "1/2", 1: "1/2"}
    prior = coupled.iid_rows(fair, rows=8)
    count = coupled.FiniteMechanism.of(sum, [prior])
    household = coupled.CoupledWorlds(priors=(prior,), pairs=(coupled.person_rows([0, 1]),))
    student = coupled.CoupledWorlds(priors=(prior,), pairs=(coupled.student_of_school(0, [0, 1]),))
    row = coupled.CoupledWorlds(priors=(prior,), pairs=(coupled.one_row(0),))
    for delta in (0.05, 0.1):
        found = exact_count("1/2", n=8, delta=delta, group=2)
        checked = household.delta(count, epsilon=found.epsilon)
        assert float(checked.low) <= delta * (1 + 1e-9)
        alone = exact_count("1/2", n=8, delta=delta)
        assert float(student.delta(count, epsilon=alone.epsilon).low) <= delta * (1 + 1e-9)
        assert alone.epsilon < found.epsilon
    # A household is much harder to hide than a row.
    two, one = household.delta(count, epsilon="ln 3").interval, row.delta(count, epsilon="ln 3").interval
    assert two.low > 5 * one.high


def test_shapes_and_intervals_take_groups() -> None:
    for assume in ("known", "rectangle"):
        alone = exact_mean("uniform(0, 1)", n=400, delta=1e-4, assume=assume)
        both = exact_mean("uniform(0, 1)", n=400, delta=1e-4, assume=assume, group=2)
        assert 1.9 * alone.epsilon < both.epsilon < 2.5 * alone.epsilon
    wide = exact_count((0.2, 0.8), n=400, delta=1e-4, group=3)
    for p in (0.2, 0.5, 0.8):
        assert exact_count(p, n=400, delta=1e-4, group=3).epsilon <= wide.epsilon * (1 + 1e-9)
    assert "any group of 3 rows" in wide.sentence
    assert "at most 3 rows" in wide.sentence
    assert wide.to_dict()["group"] == 3
    assert "group" not in exact_count(0.5, n=400, delta=1e-4).to_dict()


def poisson(mean: float, most: int) -> list[float]:
    return [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(most)]


@pytest.mark.parametrize("mean", [0.3, 2.0, 8.0, 20.0, 40.0, 80.0])
def test_truncated_histograms_hide_groups(mean: float) -> None:
    """Poisson cells from the definition: the whole group in one cell, and divided between two."""
    found = truncated_histogram(sampling="poisson", epsilon=2, delta=1e-3, group=2)
    assert found.threshold is not None
    assert found.group == 2
    # One step has half of epsilon and its part of delta, beside one more known row.
    step = truncated_histogram(
        sampling="poisson", epsilon=1 - 1e-15, delta=1e-3 / (1 + math.e) * (1 - 1e-11), known_rows=1
    )
    assert found.threshold == step.threshold
    k, cell = found.threshold, poisson(mean, 400)

    def shown(extra: int) -> dict[int, float]:
        out: dict[int, float] = {}
        for count, p in enumerate(cell):
            told = count + extra if count + extra >= k else 0
            out[told] = out.get(told, 0.0) + p
        return out

    assert apart(shown(2), shown(0), 2.0) <= 1e-3
    one = {(a, b): p * q for a, p in shown(1).items() for b, q in shown(1).items() if p * q > 1e-14}
    none = {(a, b): p * q for a, p in shown(0).items() for b, q in shown(0).items() if p * q > 1e-14}
    e = math.exp(2.0)
    for p, q in ((one, none), (none, one)):
        assert sum(max(0.0, w - e * q.get(t, 0.0)) for t, w in p.items()) <= 1e-3 * (1 + 1e-9)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: exact_sum("uniform(0, 1)", n=10, delta=0.1, group=10),
        lambda: exact_count(0.5, n=10, unknown_rows=4, delta=0.1, group=4),
        lambda: exact_count(0.5, n=10, delta=0.1, group=0),
        lambda: exact_mean("uniform(0, 1)", n=10, delta=0.1, group=2.5),
        lambda: truncated_histogram(sampling="poisson", epsilon=1, threshold=30, group=2),
        lambda: truncated_histogram(sampling="fixed", n=1000, epsilon=1, delta=1e-6, group=2),
    ],
)
def test_a_group_larger_than_the_table_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="group"):
        bad()
