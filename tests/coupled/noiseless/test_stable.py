"""Stable functions: estimates, tests, modes and quantised sums, against enumeration and the checker."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tacit import coupled
from tacit.coupled.noiseless.answer import row_law
from tacit.coupled.noiseless.decisions import (
    RESOLUTION,
    exact_map,
    exact_mode,
    exact_test,
    log_scores,
    noisy_map,
    stable_epsilon,
    thesis_map,
    thesis_map_epsilon,
)
from tacit.errors import InvalidInput, NoLaw
from tacit.noise import SeededSource

THREE = ("table(0: 1/2, 1: 1/4, 2: 1/4)", "table(0: 1/4, 1: 1/4, 2: 1/2)", "table(0: 1/4, 1: 1/2, 2: 1/4)")


@cache
def logarithms(laws: tuple[str, ...]) -> list[list[int]]:
    made = [row_law(law) for law in laws]
    return [
        [round(RESOLUTION * math.log(law.weights[x] / made[0].weights[x])) for x in range(len(law.weights))]
        for law in made
    ]


def estimates(laws: tuple[str, ...], rows: tuple[int, ...], weights: tuple[float, ...]) -> int:
    """The estimator from its definition: rounded logarithms, the first of the largest."""
    totals = [
        round(RESOLUTION * math.log(weight / weights[0])) + sum(scores[x] for x in rows)
        for scores, weight in zip(logarithms(laws), weights, strict=True)
    ]
    return totals.index(max(totals))


def changes(laws: tuple[str, ...], n: int, weights: tuple[float, ...]) -> tuple[float, dict[float, float]]:
    """Over all data sets: (largest chance that a row changes the estimate, delta at several epsilons)."""
    worst, curve = 0.0, dict.fromkeys((0.1, 0.3, 0.8), 0.0)
    for name in laws:
        law = row_law(name)
        rests = [
            (estimates(laws, rest, weights), rest, math.prod(float(law.weights[x]) for x in rest))
            for rest in itertools.product(law.support, repeat=n - 1)
        ]
        for x in law.support:
            real, ideal = np.zeros(len(laws)), np.zeros(len(laws))
            apart = 0.0
            for before, rest, chance in rests:
                after = estimates(laws, (*rest, x), weights)
                real[after] += chance
                ideal[before] += chance
                apart += chance * (after != before)
            worst = max(worst, apart)
            for e in curve:
                for p, q in ((real, ideal), (ideal, real)):
                    curve[e] = max(curve[e], float(np.maximum(p - math.exp(e) * q, 0).sum()))
    return worst, curve


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 2.5)])
def test_two_hypotheses_are_exact(weights: tuple[float, ...]) -> None:
    laws = THREE[:2]
    worst, curve = changes(laws, 7, weights)
    found = exact_map(laws, n=7, delta=min(0.5, worst * 1.001), weights=weights)
    assert found.details["stability"] == pytest.approx(worst, rel=1e-9)
    assert found.epsilon == 0
    for e, d in curve.items():
        if 1e-6 < d < worst:
            assert exact_map(laws, n=7, delta=d, weights=weights).epsilon == pytest.approx(e, rel=1e-6)


def test_three_hypotheses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.noise.source.default_source", lambda: SeededSource(seed=20240607))
    monkeypatch.setattr("tacit.coupled.noiseless.largest.MOST_SCORES", 0)
    worst, _ = changes(THREE, 6, (1.0, 1.0, 1.0))
    with pytest.raises(NoLaw, match="smallest delta"):
        exact_map(THREE, n=6, delta=worst / 2)
    found = exact_map(THREE, n=400, delta=1e-3, draws=20_000)
    assert found.epsilon == 0
    told = found.details
    assert told["simulated"]["changed"] / 20_000 <= told["stability"] + 6 * math.sqrt(
        told["stability"] / 20_000
    )
    assert told["simulated"]["upper"] > told["simulated"]["changed"] / 20_000


def test_the_checker_agrees_with_the_estimate() -> None:
    laws = ("bernoulli(0.3)", "bernoulli(0.6)")
    priors = [
        coupled.iid_rows({0: "7/10", 1: "3/10"}, rows=5, name="first"),
        coupled.iid_rows({0: "2/5", 1: "3/5"}, rows=5, name="second"),
    ]

    def estimate(rows: tuple[object, ...]) -> int:
        return estimates(laws, tuple(int(str(r)) for r in rows if r in (0, 1)), (1.0, 1.0))

    mechanism = coupled.FiniteMechanism.of(estimate, priors)
    simulator = coupled.Simulator(name="without", answer=lambda pair, rest: {estimate(rest): Fraction(1)})
    checked = coupled.Distributional(priors=tuple(priors)).delta(mechanism, epsilon=0, simulator=simulator)
    found = exact_map(laws, n=5, delta=1e-9)
    assert checked.interval.high == pytest.approx(found.details["stability"], rel=1e-9)
    assert found.epsilon > 0.1


def test_the_theorem_of_the_thesis_is_looser() -> None:
    laws = [row_law("bernoulli(0.4)"), row_law("bernoulli(0.6)")]
    found = exact_map(laws, n=1000, delta=1e-8)
    printed = thesis_map(laws, [1.0, 1.0], 999)
    assert found.details["stability"] < printed / 10
    assert printed == pytest.approx(2.5 * math.exp(999 * math.log(2 * math.sqrt(0.24))), rel=1e-6)
    assert 0 < thesis_map_epsilon(laws, [1.0, 1.0], 999, 0.1) < 1e-5
    assert thesis_map_epsilon(laws, [1.0, 1.0], 3, 0.1) == math.inf
    assert stable_epsilon(least=0.1, change=0.01) == pytest.approx(math.log(0.11 / 0.09))
    with pytest.raises(InvalidInput):
        stable_epsilon(least=0.1, change=0.2)


def test_known_rows_can_put_the_estimate_on_an_edge() -> None:
    """Corollary 6.1 as printed replaces n by n - L. With half of 40 rows known, and all 0, it is false."""
    laws, n, known = ("bernoulli(0.4)", "bernoulli(0.6)"), 40, 20
    made = [row_law(law) for law in laws]
    scores = log_scores(made[0], made[1])
    # Under .6 the 19 others have 11.4 ones on average; 4 zeros more than ones among the known balance the rest.
    best = 0.0
    for ones in range(known + 1):
        edge = ones * scores[1] + (known - ones) * scores[0]
        chance = 0.0
        for k in range(n - known):
            before = edge + k * scores[1] + (n - known - 1 - k) * scores[0] >= 0
            after = edge + (k + 1) * scores[1] + (n - known - 1 - k) * scores[0] >= 0
            chance += (before != after) * math.comb(n - known - 1, k) * 0.6**k * 0.4 ** (n - known - 1 - k)
        best = max(best, chance)
    assert exact_map(laws, n=n, unknown_rows=n - known, delta=0.3).details["stability"] >= best * (1 - 1e-9)
    shorter = thesis_map(made, [1.0, 1.0], 10 * n - 10 * known - 1)
    wide = exact_map(laws, n=10 * n, unknown_rows=10 * (n - known), delta=0.3).details["stability"]
    assert shorter < 0.05 < wide


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_tests_keep_their_level_and_their_epsilon(level: float) -> None:
    laws, n = THREE[:2], 8
    made = [row_law(law) for law in laws]
    found = exact_test(*laws, n=n, level=level, delta=1e-3)
    scores = log_scores(made[1], made[0])
    threshold = round(found.details["score_threshold"] * RESOLUTION)
    middle = (min(scores.values()) + max(scores.values())) // 2
    size = sum(
        math.prod(float(made[0].weights[x]) for x in rows)
        for rows in itertools.product(range(3), repeat=n)
        if sum(scores[x] for x in rows) >= threshold
    )
    assert size <= level
    assert size == pytest.approx(found.details["level"], rel=1e-9)
    worst = 0.0
    for law in made:
        rests = [
            (sum(scores[x] for x in rest), math.prod(float(law.weights[x]) for x in rest))
            for rest in itertools.product(range(3), repeat=n - 1)
        ]
        q = sum(p for s, p in rests if s + middle >= threshold)
        for x in range(3):
            p = sum(w for s, w in rests if s + scores[x] >= threshold)
            for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
                worst = max(worst, a - math.exp(found.epsilon) * b)
    assert worst == pytest.approx(1e-3, rel=1e-6)
    assert found.epsilon_pair is not None
    apart = 0.0
    for law in made:
        chances = [
            sum(
                math.prod(float(law.weights[y]) for y in rest)
                for rest in itertools.product(range(3), repeat=n - 1)
                if sum(scores[y] for y in rest) + scores[x] >= threshold
            )
            for x in range(3)
        ]
        for p, q in itertools.permutations(chances, 2):
            for a, b in ((p, q), (1 - p, 1 - q)):
                apart = max(apart, a - math.exp(found.epsilon_pair) * b)
    assert apart == pytest.approx(1e-3, rel=1e-6)


def test_modes_by_enumeration() -> None:
    chances = {"a": "3/5", "b": "3/10", "c": "1/10"}
    p, n, worst = [0.6, 0.3, 0.1], 7, 0.0

    def mode(rows: tuple[int, ...]) -> int:
        counts = [rows.count(c) for c in range(3)]
        return counts.index(max(counts))

    for x in range(3):
        worst = max(
            worst,
            sum(
                math.prod(p[c] for c in rest)
                for rest in itertools.product(range(3), repeat=n - 1)
                if mode(rest) != mode((*rest, x))
            ),
        )
    assert exact_mode(chances, n=n, delta=worst * 0.99).details["epsilon_without_the_row"] > 0
    assert worst <= exact_mode(chances, n=n, delta=0.6).details["stability"] <= 2 * worst
    assert exact_mode(chances, n=1000, delta=1e-9).epsilon == 0


def test_quantised_sums_tell_no_more_than_sums() -> None:
    from tacit.coupled.noiseless import exact_sum
    from tacit.coupled.noiseless.sums import exact_quantised

    whole = exact_sum("uniform(0, 1)", n=400, delta=1e-5, grid="0.1").epsilon
    rough = exact_quantised("uniform(0, 1)", n=400, delta=1e-5, steps=400, grid="0.1").epsilon
    assert rough <= whole * 1.001
    fine = exact_quantised("uniform(0, 1)", n=400, delta=1e-5, steps=1, grid="0.1").epsilon
    assert fine == pytest.approx(whole, rel=1e-3)


def test_a_little_noise_makes_it_differentially_private() -> None:
    """Neighbours differ in one row: the ratio of the chances of every answer is at most e^epsilon."""
    made = noisy_map(THREE, epsilon=0.7)
    rows = [0, 1, 2, 2, 0]
    for place, value in itertools.product(range(5), range(3)):
        other = [*rows[:place], value, *rows[place + 1 :]]
        p, q = (made.mechanism.probabilities(made.totals(r)) for r in (rows, other))
        assert np.all(p <= math.exp(0.7) * q * (1 + 1e-9))
    assert made.choose([2] * 200, source=SeededSource(seed=3)) == 1


@pytest.mark.parametrize(
    "bad",
    [
        lambda: exact_map(["bernoulli(0.4)"], n=10, delta=0.1),
        lambda: exact_map(["bernoulli(0.4)", "bernoulli(0.4)"], n=10, delta=0.1),
        lambda: exact_map(["uniform(0, 1)", "uniform(0, 2)"], n=10, delta=0.1),
        lambda: exact_map(["bernoulli(0.4)", "bernoulli(0.6)"], n=10, delta=0.1, weights=(1.0, 0.0)),
        lambda: exact_map(["bernoulli(0.4)", "bernoulli(0.6)"], n=10, unknown_rows=11, delta=0.1),
        lambda: exact_test("bernoulli(0.4)", "bernoulli(0.6)", n=10, level=0.0, delta=0.1),
        lambda: exact_mode({"a": "1/2", "b": "1/3"}, n=10, delta=0.1),
    ],
)
def test_bad_input_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput):
        bad()  # type: ignore[operator]
