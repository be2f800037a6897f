"""Log-linear forests: scores from the definition, the law of a private choice, and noise that makes no edges."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter, UnknownName
from tacit.mechanisms.forests import (
    CRITERIA,
    ForestSelection,
    chosen_forest,
    heaviest_forest,
    inflation,
    likelihood_ratio,
    pair_score,
    pair_tables,
    penalty,
)
from tacit.noise.source import SeededSource


def test_a_replaced_row_moves_the_score_by_at_most_one_on_all_small_tables() -> None:
    """pair-dependence: all tables of up to six rows, and n n11 - n1. n.1 moves by n - 1 at most, which is reached."""
    kinds = list(itertools.product((0, 1), repeat=2))

    def exact(rows: Any) -> int:
        return len(rows) * sum(x * y for x, y in rows) - sum(x for x, _ in rows) * sum(y for _, y in rows)

    for n in range(1, 7):
        most = 0
        for rows in itertools.combinations_with_replacement(kinds, n):
            table = pair_tables(np.array(rows))[0, 1]
            assert pair_score(table) == abs(exact(rows)) // n
            for k, other in itertools.product(range(n), kinds):
                changed = (*rows[:k], other, *rows[k + 1 :])
                most = max(most, abs(exact(rows) - exact(changed)))
                assert abs(pair_score(pair_tables(np.array(changed))[0, 1]) - pair_score(table)) <= 1
        assert most == n - 1


def flips(values: list[int], rate: float) -> list[float]:
    best, out = max(values), [0.0] * len(values)
    chance = [math.exp(-rate * (best - v)) for v in values]
    orders = list(itertools.permutations(range(len(values))))
    for order in orders:
        left = 1.0
        for i in order:
            out[i] += left * chance[i] / len(orders)
            left *= 1 - chance[i]
    return out


def law(rows: Any, rate: float) -> dict[Any, float]:
    """Two edges among three columns, by all orders and coins."""
    tables = pair_tables(rows)
    pairs = sorted(tables)
    scores = [pair_score(tables[p]) for p in pairs]
    found = {}
    for first, chance in enumerate(flips(scores, rate)):
        rest = [k for k in range(3) if k != first]
        for second, more in zip(rest, flips([scores[k] for k in rest], rate), strict=True):
            found[pairs[first], pairs[second]] = chance * more
    return found


def test_the_law_of_a_forest_on_60_random_neighbours() -> None:
    rng, nearest = np.random.default_rng(2), 0.0
    made = ForestSelection(epsilon=3, columns=3, edges=2)
    for _ in range(60):
        rows = rng.integers(0, 2, (int(rng.integers(2, 9)), 3))
        other = rows.copy()
        other[int(rng.integers(len(rows)))] = rng.integers(0, 2, 3)
        p, q = law(rows, float(made.choice.rate)), law(other, float(made.choice.rate))
        loss = max(abs(math.log(p[k] / q[k])) for k in p)
        assert loss <= 3 + 1e-9
        nearest = max(nearest, loss)
    assert nearest > 0.7
    assert (len(made.events), made.bound.epsilon) == (2, 3)
    # Two choices of one and a half each, by scores that one row moves by 1: halved.
    assert made.choice.rate == Fraction(3, 4)
    rows = rng.integers(0, 2, (20, 3))
    rows[:, 1] = rows[:, 0]
    source, seen = SeededSource(seed=1), Counter()
    for _ in range(1500):
        seen[tuple(made.release(pair_tables(rows), source=source))] += 1
    for key, chance in law(rows, float(made.choice.rate)).items():
        assert abs(seen[key] - 1500 * chance) < 6.5 * math.sqrt(1500 * chance * (1 - chance)) + 1


def test_forests_are_the_heaviest_of_all() -> None:
    rng = np.random.default_rng(3)
    pairs = list(itertools.combinations(range(4), 2))
    for _ in range(50):
        weights = {p: float(w) for p, w in zip(pairs, rng.normal(size=6), strict=True)}
        best = 0.0
        for size in range(4):
            for chosen in itertools.combinations(pairs, size):
                if _is_forest(chosen):
                    best = max(best, sum(weights[p] for p in chosen))
        found = heaviest_forest(weights, 4)
        assert _is_forest(found)
        assert sum(weights[p] for p in found) == pytest.approx(best)


def _is_forest(edges: Any) -> bool:
    groups = [{k} for k in range(4)]
    for a, b in edges:
        one, two = (next(g for g in groups if k in g) for k in (a, b))
        if one is two:
            return False
        groups = [g for g in groups if g not in (one, two)] + [one | two]
    return True


def test_statistics_against_their_definitions() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        table = rng.integers(1, 40, (2, 2))
        n = table.sum()
        expected = np.outer(table.sum(1), table.sum(0)) / n
        assert likelihood_ratio(table) == pytest.approx(
            float(2 * (table * np.log(table / expected)).sum()), abs=1e-9
        )
        # The variance of the dependence under independent noise of variance 4, by differences, over that of sampling.
        slopes = []
        for cell in np.eye(4).reshape(4, 2, 2):
            more, less = table + 1e-4 * cell, table - 1e-4 * cell
            slopes.append((np.linalg.det(more) / n - np.linalg.det(less) / n) / 2e-4)
        added = 4 * float(np.square(slopes).sum()) * float((1 / expected).sum())
        assert inflation(table, 4.0) == pytest.approx(1 + added, rel=1e-5)
        assert inflation(table, 0.0) == 1.0
    assert likelihood_ratio([[0, 0], [0, 0]]) == 0.0
    assert inflation([[-1, 0], [0, 0]], 1.0) == inflation([[3, 4], [0, 0]], 1.0) == math.inf
    assert [round(penalty(c, 100), 3) for c in CRITERIA] == [2.0, 4.605, 3.841]


def test_noise_alone_makes_edges_unless_it_is_counted() -> None:
    """Independent columns and much noise: as if exact most pairs are edges, with the noise counted one in 20."""
    rng = np.random.default_rng(5)
    tables = [
        {(0, 1): np.outer([300, 200], [250, 250]) / 500 + rng.normal(0, 30, (2, 2))} for _ in range(400)
    ]
    naive = np.mean([bool(chosen_forest(t, 2, "likelihood-ratio")) for t in tables])
    aware = np.mean([bool(chosen_forest(t, 2, "likelihood-ratio", noise_variance=900.0)) for t in tables])
    assert naive > 0.4
    assert aware < 0.09


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="no circle"):
        ForestSelection(epsilon=1, columns=3, edges=3)
    with pytest.raises(InvalidParameter):
        ForestSelection(epsilon=0, columns=3, edges=1)
    with pytest.raises(UnknownName):
        penalty("taste", 10)
