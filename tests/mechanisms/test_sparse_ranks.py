"""Quantiles among millions of ranges: the law of the draws from the definition, the claim by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.mechanisms import SparseRankSelection
from tacit.mechanisms.rank_selection import turns
from tacit.noise import SeededSource

QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
QUARTILES = (QUARTER, HALF, Fraction(3, 4))
ROUND = {"origin": Fraction(1, 2), "unit": Fraction(1, 5)}
"""Ten is at place 2.5, a hundred at 20.5."""


@lru_cache
def weights_of(m):
    """1 each, and for every power of ten the same for each multiple, a 32nd of all in sum, at least 1."""
    out = [1] * m.bins
    power = 10 ** math.floor(math.log10(m.bins / m.unit)) if m.unit else 0
    while power and power * m.unit > 1:
        reach = range(-500, 501)
        places = [math.floor(m.origin + k * power * m.unit) for k in reach]
        inside = [p for p in places if 0 <= p < m.bins]
        for p in inside:
            out[p] += max(1, m.bins // (32 * len(inside)))
        power = Fraction(power) / 10
    return out


def one_choice(counts, share, m, first, last):
    """w(t) e^(-rate d(t)) / Z over the ranges first..last, each by itself."""
    below = [0, *itertools.accumulate(counts)]
    target, weights = share * below[-1], weights_of(m)
    chances = []
    for t in range(first, last + 1):
        left = -math.inf if t == first else below[t] - target
        right = -math.inf if t == last else target - below[t + 1]
        chances.append(weights[t] * math.exp(-float(m.rate * max(left, right, 0))))
    return {first + i: c / math.fsum(chances) for i, c in enumerate(chances)}


def law(counts, m):
    """The law of all choices of one histogram: {ranges: probability}."""
    found = {(): 1.0}
    for turn in turns(len(m.shares)):
        after = {}
        for chosen, p in found.items():
            held = dict(chosen)
            first, last = held.get(turn.after, 0), held.get(turn.before, m.bins - 1)
            for t, q in one_choice(counts, Fraction(m.shares[turn.share]), m, first, last).items():
                after[(*chosen, (turn.share, t))] = p * q
        found = after
    return {tuple(dict(c)[j] for j in range(len(m.shares))): p for c, p in found.items()}


def worst(m, pairs):
    out = 0.0
    for one, other in pairs:
        p, q = law(one, m), law(other, m)
        out = max(out, *(abs(math.log(p[k] / q[k])) for k in p))
    return out


def added(bins, most):
    for counts in itertools.product(range(most + 1), repeat=bins):
        for k in range(bins):
            yield counts, [c + (i == k) for i, c in enumerate(counts)]


def moved(bins, most):
    for counts in itertools.product(range(most + 1), repeat=bins):
        for i, j in itertools.permutations(range(bins), 2):
            if counts[i]:
                yield counts, [c - (k == i) + (k == j) for k, c in enumerate(counts)]


def histogram(counts):
    at = np.flatnonzero(counts)
    return at, np.asarray(counts)[at]


def drawn(m, counts, runs, seed):
    source = SeededSource(seed=seed)
    return m.release([histogram(counts)] * runs, source=source).bins


@pytest.mark.claim("SparseRankSelection")
def test_private_from_both_sides():
    """All tables of some ranges with a few rows in each: never above epsilon; and tables that come near it."""
    for shares, bins, most in (((HALF,), 4, 3), ((QUARTER,), 4, 3), (QUARTILES, 3, 2)):
        for weighted in ({}, {"unit": Fraction(2, 5), "origin": 1}):
            m = SparseRankSelection(bins=bins, shares=shares, epsilon=1, **weighted)
            assert 0.4 < worst(m, added(bins, most)) <= 1 + 1e-9
            both = SparseRankSelection(bins=bins, shares=shares, epsilon=1, replaced=True, **weighted)
            assert 0.3 < worst(both, moved(bins, most)) <= 1 + 1e-9
    many = SparseRankSelection(bins=3, shares=(HALF,), epsilon=1, rows=2)
    pairs = [(c, [c[0] + 2, *c[1:]]) for c in itertools.product(range(4), repeat=3)]
    assert 0.4 < worst(many, pairs) <= 1 + 1e-9
    crossing = SparseRankSelection(bins=3, shares=(QUARTER,), epsilon=1, replaced=True, grouped=True)
    assert 0.2 < worst(crossing, added(3, 3)) <= 0.5 + 1e-9


@pytest.mark.parametrize(("share", "behind"), [(HALF, 4), (QUARTER, 16)])
def test_the_cost_is_reached(share, behind):
    """Most candidates lie in a gap on one side, and the chosen one on the other: both distances move against it."""
    before = [5, 0, 3, *[0] * 300, behind]
    m = SparseRankSelection(bins=len(before), shares=(share,), epsilon=1)
    one, other = law(before, m), law([6, *before[1:]], m)
    assert 0.95 < abs(math.log(one[(1,)] / other[(1,)])) <= 1 + 1e-9


@pytest.mark.parametrize("weighted", [{}, ROUND])
@pytest.mark.parametrize("shares", [(QUARTER, HALF), (QUARTER, HALF, 1 - QUARTER)], ids=["two", "three"])
@pytest.mark.parametrize(
    "counts", [[3, 0, 0, 2, 0, 4, 1, 0], [0] * 8, [0, 30, 0, 0, 0, 0, 1, 0], [2, 0, 0, 0, 0, 0, 0, 2]]
)
def test_draws_follow_the_law(counts, shares, weighted):
    """What `release` draws, choices inside choices included."""
    m = SparseRankSelection(bins=8, shares=shares, epsilon=1, **weighted)
    runs, expected = 2500, law(counts, m)
    seen = dict.fromkeys(expected, 0)
    for row in drawn(m, counts, runs, 1).tolist():
        seen[tuple(row)] += 1
    for bins, p in expected.items():
        assert abs(seen[bins] / runs - p) <= 6 * math.sqrt(p * (1 - p) / runs) + 1e-12


@pytest.mark.parametrize(
    ("bins", "origin", "unit"),
    [
        (300, Fraction(1, 2), Fraction(1, 5)),
        (97, Fraction(68, 5), Fraction(7, 3)),
        (64, -20, 3),
        (50, 70, 2),
        (9, 0, 0),
    ],
)
def test_weights(bins, origin, unit):
    """The weight before a place is the sum of the weights; the place of a weight is the range that holds it."""
    m = SparseRankSelection(bins=bins, shares=(HALF,), epsilon=1, origin=origin, unit=unit)
    expected = [0, *itertools.accumulate(weights_of(m))]
    assert m.weight_below(np.arange(bins + 1)).tolist() == expected
    for t in range(bins):
        assert {m._at_weight(expected[t]), m._at_weight(expected[t + 1] - 1)} == {t}


def test_draws_that_floats_cannot_decide_are_decided_exactly(monkeypatch):
    """With a huge slack every draw goes through balls, and nothing changes."""
    m = SparseRankSelection(bins=40, shares=(QUARTER, HALF), epsilon=HALF, **ROUND)
    counts = [0, 4, *[0] * 20, 1, 2, *[0] * 10, 6, *[0] * 5]
    usual = drawn(m, counts, 60, 3)
    monkeypatch.setattr("tacit.mechanisms.sparse_ranks.SLACK", 1.0)
    assert (drawn(m, counts, 60, 3) == usual).all()


class Counted(SeededSource):
    """How many words each call asked for."""

    def __init__(self, seed):
        super().__init__(seed=seed)
        self.calls = []

    def words(self, count):
        self.calls.append(count)
        return super().words(count)


def test_how_many_words_are_drawn_does_not_depend_on_the_rows():
    m = SparseRankSelection(bins=1 << 30, shares=QUARTILES, epsilon=1, unit=1000)
    for at in ([], [5], [0, 7, 1 << 29, (1 << 30) - 1], list(range(1000))):
        source = Counted(len(at))
        m.release([(at, [3] * len(at))], source=source)
        assert source.calls == [1, 1] * 3


def test_the_error_of_even_rows():
    """1 / rate ranks on the average, ln 20 / rate at 95%."""
    m = SparseRankSelection(bins=1 << 24, shares=(HALF,), epsilon=0.5)
    at, one = np.arange(4096) << 12, np.ones(4096, dtype=np.int64)
    places = m.release([(at, one)] * 1500, source=SeededSource(seed=5)).bins[:, 0]
    off = np.abs(places / (1 << 12) - 2048)
    assert off.mean() == pytest.approx(m.expected_error(), rel=0.12)
    assert np.mean(off <= m.error_quantile(0.95)) == pytest.approx(0.95, abs=0.025)


def test_a_repeated_round_number_is_found_on_a_fine_grid():
    """Forty of a hundred rows are 5.0: with weights for round numbers it is named, without them a gap beside it."""
    bins = 1 << 30
    about = {"bins": bins, "shares": (HALF,), "epsilon": 0.9}
    at = np.sort(np.random.default_rng(2).choice(bins, 60, replace=False))
    at, counts = np.append(at, bins // 2), np.append(np.ones(60, dtype=np.int64), 40)
    order = np.argsort(at)
    held = [(at[order], counts[order])] * 200
    round_ = SparseRankSelection(**about, unit=Fraction(bins, 10))
    assert np.mean(round_.release(held, source=SeededSource(seed=1)).bins == bins // 2) > 0.95
    plain = SparseRankSelection(**about)
    assert np.mean(plain.release(held, source=SeededSource(seed=1)).bins == bins // 2) < 0.5


def test_bad_input():
    good = {"bins": 4, "shares": (0.5,), "epsilon": 1}
    for wrong in (
        {"bins": 0}, {"bins": (1 << 40) + 1}, {"shares": (0,)}, {"epsilon": 0}, {"rows": 0}, {"unit": -1},
        {"unit": math.nan}, {"origin": math.inf}, {"origin": "x"},
    ):  # fmt: skip
        with pytest.raises(InvalidParameter):
            SparseRankSelection(**{**good, **wrong})
    with pytest.raises(EmptyComposition):
        SparseRankSelection(**{**good, "shares": ()})
    m = SparseRankSelection(**good)
    for at, counts in (
        ([1, 1], [1, 1]),
        ([2, 1], [1, 1]),
        ([1], [-1]),
        ([1], [1, 2]),
        ([4], [1]),
        ([-1], [1]),
        (1, 1),
    ):
        with pytest.raises(InvalidParameter):
            m.release([(at, counts)])
    assert SparseRankSelection(**{**good, "bins": 1 << 40}).release([([], [])]).bins.shape == (1, 1)
