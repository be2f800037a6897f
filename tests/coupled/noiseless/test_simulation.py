"""Rows that are simulated, and laws whose weights were rounded: what is off is counted."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.coupled.noiseless import row_law
from tacit.coupled.noiseless.quantised import exact_quantised
from tacit.coupled.noiseless.simulation import changes, drawn_counts
from tacit.coupled.noiseless.stable import exact_map, exact_test
from tacit.errors import InvalidParameter
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
    found = changes(laws, scores, [0, 0], 1, 40_000, source=SeededSource(seed=3))
    # Under law 1 the hidden row is a 1 with probability 3/4; a 0 beside it ties, and the answer turns to law 0.
    assert abs(found["changed"] / 40_000 - 0.75) < 7 * math.sqrt(0.75 * 0.25 / 40_000)
    assert found["changed"] / 40_000 < found["upper"] < 0.8
    with pytest.raises(InvalidParameter, match="draws times rows"):
        changes(laws, scores, [0, 0], 10**6, 10**4)


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
