"""Theorem `largest-best`: modes, estimates and arg-max against the best simulator, from the definition.

Every table of a few rows is written out, and the best simulator is found by a linear program of the test's own.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import tacit.coupled.noiseless.largest as largest_of
from tacit.coupled.noiseless.decisions import exact_argmax, exact_map, exact_mode
from tacit.coupled.noiseless.largest import answer_laws, binomials
from tacit.errors import InvalidInput, NoLaw

Laws = list[list[float]]


def written_out(
    weights: Sequence[Fraction], others: int, answer: Callable[[tuple[int, ...]], int], answers: int
) -> tuple[Laws, list[float]]:
    """(The law of the answer for every value of the row, and without the row), over all tables of the others."""
    given = [[Fraction(0)] * answers for _ in weights]
    without = [Fraction(0)] * answers
    for rest in itertools.product(range(len(weights)), repeat=others):
        chance = math.prod((weights[v] for v in rest), start=Fraction(1))
        without[answer(rest)] += chance
        for x in range(len(weights)):
            given[x][answer((*rest, x))] += chance
    return [[float(p) for p in law] for law in given], [float(p) for p in without]


def best_delta(given: Laws, epsilon: float) -> float:
    """The smallest delta of any fixed distribution of answers, by a program: unknowns q, all excesses, delta."""
    factor, cells, answers = math.exp(epsilon), len(given), len(given[0])
    size = answers + 2 * cells * answers + 1
    left: list[np.ndarray] = []
    right: list[float] = []
    for x, side in itertools.product(range(cells), range(2)):
        total = np.zeros(size)
        for t in range(answers):
            own = answers + (2 * x + side) * answers + t
            row = np.zeros(size)
            row[own], row[t] = -1.0, -factor if side == 0 else 1.0
            left.append(row)
            right.append(-given[x][t] if side == 0 else factor * given[x][t])
            total[own] = 1.0
        total[-1] = -1.0
        left.append(total)
        right.append(0.0)
    whole = np.zeros((1, size))
    whole[0, :answers] = 1.0
    cost = np.zeros(size)
    cost[-1] = 1.0
    found = linprog(cost, A_ub=np.array(left), b_ub=right, A_eq=whole, b_eq=[1.0], method="highs")
    return float(found.fun)


def against(given: Laws, without: list[float], epsilon: float) -> float:
    e = math.exp(epsilon)
    return max(
        max(
            sum(max(0.0, p - e * q) for p, q in zip(law, without, strict=True)),
            sum(max(0.0, q - e * p) for p, q in zip(law, without, strict=True)),
        )
        for law in given
    )


def largest(sums: Sequence[int]) -> int:
    return list(sums).index(max(sums))


def some_weights(dice: random.Random, count: int) -> list[Fraction]:
    parts = [dice.randint(1, 9) for _ in range(count)]
    return [Fraction(p, sum(parts)) for p in parts]


def agrees(found: Any, given: Laws, without: list[float], delta: float) -> None:
    assert best_delta(given, found.epsilon) <= delta + 1e-9
    if found.epsilon > 1e-6:
        assert best_delta(given, found.epsilon * 0.999) > delta - 1e-9
    assert found.details["epsilon_floor"] <= found.epsilon
    assert found.details["delta_at_zero"] == pytest.approx(best_delta(given, 0.0), abs=1e-8)
    assert found.details["delta_at_zero_without_the_row"] == pytest.approx(
        against(given, without, 0.0), abs=1e-8
    )
    alone = found.details["epsilon_without_the_row"]
    if alone is not None:
        assert against(given, without, alone) <= delta + 1e-9
        if alone > 1e-6:
            assert against(given, without, alone * 0.999) > delta - 1e-9


@pytest.mark.parametrize("seed", range(26))
def test_modes_of_random_categories(seed: int) -> None:
    dice = random.Random(seed)
    count = 2 + seed % 3
    n = dice.randint(2, 6)
    weights = some_weights(dice, count)
    given, without = written_out(
        weights, n - 1, lambda rows: largest([rows.count(c) for c in range(count)]), count
    )
    delta = dice.choice([0.01, 0.05, 0.1, 0.2])
    found = exact_mode(dict(enumerate(weights)), n=n, delta=delta)
    assert found.theorem == "largest-best"
    agrees(found, given, without, delta)


@pytest.mark.parametrize("seed", range(18))
def test_columns_of_random_rows(seed: int) -> None:
    dice = random.Random(1000 + seed)
    count = 2 + seed % 2
    n = dice.randint(2, 4)
    laws = [some_weights(dice, dice.randint(2, 3)) for _ in range(count)]
    rows = list(itertools.product(*(range(len(law)) for law in laws)))
    weights = [math.prod((w[v] for w, v in zip(laws, row, strict=True)), start=Fraction(1)) for row in rows]

    def answer(places: tuple[int, ...]) -> int:
        return largest([sum(rows[p][c] for p in places) for c in range(count)])

    given, without = written_out(weights, n - 1, answer, count)
    texts = ["table(" + ", ".join(f"{v}: {w}" for v, w in enumerate(law)) + ", grid=1)" for law in laws]
    delta = dice.choice([0.02, 0.1])
    agrees(exact_argmax(texts, n=n, delta=delta), given, without, delta)


@pytest.mark.parametrize("seed", range(12))
def test_estimates_among_three_laws(seed: int) -> None:
    """One simulator for all laws: what is claimed holds against the one that is named, and no law allows less."""
    dice = random.Random(2000 + seed)
    laws = [some_weights(dice, 3) for _ in range(3)]
    if laws[0] == laws[1] or laws[1] == laws[2] or laws[0] == laws[2]:
        laws[0] = [Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)]
        laws[1], laws[2] = laws[0][::-1], [Fraction(1, 10), Fraction(7, 10), Fraction(2, 10)]
    n, delta = dice.randint(2, 6), 0.01
    texts = ["table(" + ", ".join(f"{v}: {w}" for v, w in enumerate(law)) + ")" for law in laws]
    scores = [[round(64 * math.log(law[v] / laws[0][v])) for v in range(3)] for law in laws]

    def answer(rows: tuple[int, ...]) -> int:
        return largest([sum(s[v] for v in rows) for s in scores])

    try:
        found = exact_map(texts, n=n, delta=delta)
    except NoLaw:
        return
    worlds = [written_out(law, n - 1, answer, 3) for law in laws]
    assert found.details["epsilon_floor"] <= found.epsilon + 1e-12
    assert (
        max(best_delta(given, found.details["epsilon_floor"] * 0.999) for given, _ in worlds) > delta - 1e-9
    )
    if found.simulator == "the answer without the row":
        assert max(against(given, without, found.epsilon) for given, without in worlds) <= delta + 1e-9
    elif "value" in found.simulator and "random" not in found.simulator:
        value = int(found.simulator.split("value ")[1].split()[0]) - 1
        assert max(against(given, given[value], found.epsilon) for given, _ in worlds) <= delta + 1e-9


def test_the_numbers_that_were_printed_wrongly() -> None:
    """Two fair categories, n = 9: .274 is the simulator without the row; the best has .1367, and 0 at epsilon = .5."""
    fair = exact_mode({"a": "1/2", "b": "1/2"}, n=9, delta=0)
    assert fair.details["delta_at_zero_without_the_row"] == pytest.approx(0.2734375, rel=1e-9)
    assert fair.details["delta_at_zero"] == pytest.approx(0.13671875, rel=1e-9)
    assert fair.details["epsilon_without_the_row"] == pytest.approx(0.56115, rel=1e-5)
    assert fair.epsilon == pytest.approx(math.log(1 / (1 - 0.2734375)), rel=1e-9)
    assert fair.epsilon < 0.5
    three = exact_mode({"a": "1/3", "b": "1/3", "c": "1/3"}, n=7, delta=1e-3).details
    assert three["delta_at_zero_without_the_row"] == pytest.approx(0.233196, rel=1e-5)
    assert three["delta_at_zero"] == pytest.approx(0.192044, rel=1e-5)
    assert three["stability"] == pytest.approx(0.386831, rel=1e-5)
    # Without ties the best simulator is a fair coin; at n = 1000 the first category wins them.
    assert exact_mode({"a": "1/2", "b": "1/2"}, n=1001, delta=0).epsilon == pytest.approx(0.02555, abs=5e-6)
    assert exact_mode({"a": "1/2", "b": "1/2"}, n=1000, delta=0).epsilon == pytest.approx(0.02588, abs=5e-6)
    assert exact_mode({"a": "1/2", "b": "1/2"}, n=1000, delta=2e-4).epsilon < 0.0256


def test_the_checker_of_coupled_worlds_agrees() -> None:
    from tacit import coupled

    prior = coupled.iid_rows({"a": "1/3", "b": "1/3", "c": "1/3"}, rows=4)
    mode = coupled.FiniteMechanism.of(lambda rows: largest([list(rows).count(c) for c in "abc"]), [prior])
    verdict = coupled.Distributional(priors=(prior,)).check(mode, epsilon=0, delta="1/2")
    found = exact_mode({"a": "1/3", "b": "1/3", "c": "1/3"}, n=4, delta=0.01).details["delta_at_zero"]
    assert float(verdict.delta.low) - 1e-9 <= found <= float(verdict.delta.high) + 1e-8


def test_with_known_rows_every_threshold_counts() -> None:
    """Six rows, two of them known: for each value of the known ones the best simulator is another."""
    weights = [Fraction(2, 3), Fraction(1, 3)]
    found = exact_mode({"a": "2/3", "b": "1/3"}, n=6, unknown_rows=4, delta=0.05)
    worst = 0.0
    for known in itertools.product(range(2), repeat=2):
        given, _ = written_out(
            weights, 3, lambda rows, known=known: largest([(*rows, *known).count(c) for c in range(2)]), 2
        )
        worst = max(worst, best_delta(given, found.epsilon))
    assert worst <= 0.05 + 1e-9
    assert "known rows" in found.simulator


def test_tables_and_the_lattice_have_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {(1, 0, 0): Fraction(1, 2), (0, 1, 0): Fraction(1, 3), (0, 0, 2): Fraction(1, 6)}
    monkeypatch.setattr(largest_of, "_PIECE", 7)
    listed = answer_laws(values, [0, 1, 0], 9, rounding=Fraction(0))
    monkeypatch.setattr("tacit.coupled.noiseless.largest.MOST_TABLES", 1)
    boxed = answer_laws(values, [0, 1, 0], 9, rounding=Fraction(0))
    monkeypatch.setattr("tacit.coupled.noiseless.largest.MOST_STEPS", 1)
    assert answer_laws(values, [0, 1, 0], 9, rounding=Fraction(0)) is None
    assert listed is not None
    assert boxed is not None
    given, without = written_out(
        list(values.values()),
        9,
        lambda rows: largest([sum(list(values)[r][c] for r in rows) + (c == 1) for c in range(3)]),
        3,
    )
    for found in (listed, boxed):
        assert found.off < 1e-10
        for law, true in zip([*found.given, found.without], [*given, without], strict=True):
            assert [float(law.get(t, 0)) for t in range(3)] == pytest.approx(true, rel=float(found.off))
    assert binomials(5, Fraction(1, 3))[5, 2] == pytest.approx(10 * 4 * 2 / 243, rel=1e-14)


def test_answers_too_rare_for_floats_are_not_forgotten() -> None:
    """At delta = 0 an answer of probability 1e-900 counts: nothing is claimed there."""
    rare = {"a": "999999/1000000", "b": "1/2000000", "c": "1/2000000"}
    with pytest.raises(NoLaw, match="this bound"):
        exact_mode(rare, n=600, delta=0)
    assert exact_mode(rare, n=600, delta=1e-9).epsilon < 1e-6


@pytest.mark.parametrize("bad", [{"delta": -0.1}, {"delta": 1.0}, {"n": 1}, {"unknown_rows": 8}])
def test_bad_input(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        exact_mode({"a": "1/2", "b": "1/2"}, **{"n": 7, "delta": 0.1, **bad})
