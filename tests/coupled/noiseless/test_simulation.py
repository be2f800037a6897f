"""Rows that are simulated, and laws whose weights were rounded: what is off is counted."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.coupled.noiseless import row_law
from tacit.coupled.noiseless.decisions import changes, drawn_counts, exact_map, exact_test, limit_of
from tacit.coupled.noiseless.sums import exact_quantised
from tacit.errors import InvalidParameter, NoLaw
from tacit.noise.source import SeededSource


@pytest.mark.parametrize(("rows", "tables"), [(7, 4000), ((1 << 20) + 5, 3)])
def test_rows_are_drawn_from_their_law(rows: int, tables: int) -> None:
    weights = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    counts = drawn_counts(weights, rows, tables, SeededSource(seed=11))
    assert counts.shape == (tables, 3)
    assert np.all(counts.sum(axis=1) == rows)
    for k, w in enumerate(weights):
        spread = math.sqrt(rows * tables * float(w * (1 - w)))
        # Seven standard deviations of a fixed seed.
        assert abs(counts[:, k].sum() - rows * tables * float(w)) < 7 * spread


def test_how_often_a_row_decides_is_as_enumerated() -> None:
    """Two laws, one row beside the protected one: the estimate without it is its own likelier law."""
    laws = [row_law("bernoulli(0.25)"), row_law("bernoulli(0.75)")]
    # Scores 1 and -1: with one hidden row of 0 (law 0 ahead by 1) a 1 makes a tie, which goes to law 0; and so on.
    scores = [{0: 1, 1: -1}, {0: -1, 1: 1}]
    found = changes(laws, scores, [0, 0], 1, 40_000, wrong=1e-6, source=SeededSource(seed=3))
    # Under law 1 the hidden row is a 1 with probability 3/4; a 0 beside it ties, and the answer turns to law 0.
    assert abs(found["changed"] / 40_000 - 0.75) < 7 * math.sqrt(0.75 * 0.25 / 40_000)
    assert found["changed"] / 40_000 < found["upper"] < 0.8
    with pytest.raises(InvalidParameter, match="draws times rows"):
        changes(laws, scores, [0, 0], 10**6, 10**4, wrong=1e-6)


def test_what_a_written_law_is_off_by_is_counted() -> None:
    """A law that may be off by 1e-7 a row: a decision or a rounded sum of 50 such rows is off by 5e-6 at least."""
    off = Fraction(1, 10**7)
    one, other = row_law("bernoulli(0.4)"), row_law("bernoulli(0.6)")
    rough = [replace(law, rounding=off) for law in (one, other)]
    for exact, given in (
        (exact_map([one, other], n=50, delta=1e-3), exact_map(rough, n=50, delta=1e-3)),
        (
            exact_test(one, other, n=50, level=0.05, delta=1e-3),
            exact_test(*rough, n=50, level=0.05, delta=1e-3),
        ),
    ):
        assert given.details["stability"] >= exact.details["stability"] + 49 * float(off)
        assert given.epsilon > exact.epsilon
    plain = exact_quantised(one, n=50, delta=1e-3, steps=3)
    assert exact_quantised(rough[0], n=50, delta=1e-3, steps=3).epsilon > plain.epsilon


# --- theorem `simulated-stability` -----------------------------------------------------------------------
def exact_binomial(draws: int, chance: Fraction) -> list[Fraction]:
    return [math.comb(draws, c) * chance**c * (1 - chance) ** (draws - c) for c in range(draws + 1)]


@pytest.mark.parametrize(("draws", "wrong"), [(12, 0.01), (25, 0.2), (30, 1e-6)])
def test_simulated_stability_from_its_definition(draws: int, wrong: float) -> None:
    """Whatever mu is: the limit is too low with probability `wrong` at most, and the whole procedure keeps delta."""
    limits = [limit_of(c, draws, wrong) for c in range(draws + 1)]
    assert limits == sorted(limits)
    assert limits[-1] == 1
    # Just above a limit is where it is most often too low.
    chances = [Fraction(u) + Fraction(1, 10**15) for u in limits[:-1]] + [Fraction(k, 40) for k in range(41)]
    closest = 0.0
    for mu in chances:
        law = exact_binomial(draws, mu)
        low = sum((p for p, u in zip(law, limits, strict=True) if Fraction(u) < mu), Fraction(0))
        assert low <= Fraction(wrong)
        closest = max(closest, float(low))
        for delta in (wrong, 2 * wrong, 0.3, 0.6, 0.9):
            told = [Fraction(u) + Fraction(wrong) <= Fraction(delta) for u in limits]
            published = sum((p for p, yes in zip(law, told, strict=True) if yes), Fraction(0))
            assert published * mu <= Fraction(delta)
    assert closest > 0.99 * wrong, "no larger than it must be"


THREE = ("table(0: 1/2, 1: 1/4, 2: 1/4)", "table(0: 1/4, 1: 1/4, 2: 1/2)", "table(0: 1/4, 1: 1/2, 2: 1/4)")


def worst_change(n: int) -> Fraction:
    """Over all tables of n - 1 rows: how likely one row changes the first of the largest sums of rounded scores."""
    laws = [row_law(text) for text in THREE]
    scores = [
        [round(64 * math.log(w / v)) for w, v in zip(f.weights, laws[0].weights, strict=True)] for f in laws
    ]

    def estimate(rows: tuple[int, ...]) -> int:
        sums = [sum(s[x] for x in rows) for s in scores]
        return sums.index(max(sums))

    found = Fraction(0)
    for law, x in itertools.product(laws, range(3)):
        found = max(
            found,
            sum(
                (
                    math.prod((law.weights[y] for y in rest), start=Fraction(1))
                    for rest in itertools.product(range(3), repeat=n - 1)
                    if estimate(rest) != estimate((*rest, x))
                ),
                Fraction(0),
            ),
        )
    return found


def test_a_simulation_certifies_what_the_union_does_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.noise.source.default_source", lambda: SeededSource(seed=71))
    # As if the table were not small: otherwise the law of the estimate is summed exactly.
    monkeypatch.setattr("tacit.coupled.noiseless.largest.MOST_SCORES", 0)
    exact = float(worst_change(7))
    between = 1.1 * exact
    with pytest.raises(NoLaw, match="smallest delta"):
        exact_map(THREE, n=7, delta=between)
    found = exact_map(THREE, n=7, delta=between, draws=20_000)
    told = found.details["simulated"]
    assert exact <= told["upper"] < told["delta"] <= between < found.details["stability"]
    assert told["delta"] == pytest.approx(told["upper"] + 0.01 * between, rel=1e-12)
    assert (found.epsilon, found.epsilon_pair, found.delta) == (0, None, between)
    assert found.theorem == "simulated-stability"
    assert "a simulation of 20000 tables" in found.sentence
    assert "was run once" in found.sentence
    with pytest.raises(NoLaw, match="smallest delta"):
        exact_map(THREE, n=7, delta=0.99 * exact, draws=20_000)
    # Where the union does, the simulation is no part of the claim.
    plain = exact_map(THREE, n=7, delta=0.9, draws=1000)
    assert plain.theorem == "stable-functions"
    assert "simulation" not in plain.sentence
