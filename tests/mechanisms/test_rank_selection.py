"""Quantiles by selection: the law of the draws from the definition, the claim by enumeration, ranges around them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.mechanisms import PermuteAndFlip, RankSelection, Score
from tacit.mechanisms.rank_selection import edges_around, ranges_around, row_cost, turns
from tacit.noise import SeededSource

QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
QUARTILES = (QUARTER, HALF, Fraction(3, 4))


def one_choice(counts, share, rate, first, last):
    """Permute-and-flip over the bins first..last, from its definition: {bin: probability}."""
    below = [0, *itertools.accumulate(counts)]
    target = share * below[-1]
    scores = []
    for t in range(first, last + 1):
        left = -math.inf if t == first else below[t]
        right = math.inf if t == last else below[t + 1]
        scores.append(-float(max(left - target, target - right, 0)))
    law = PermuteAndFlip(epsilon=rate, sensitivity=Score(HALF)).probabilities(scores)
    return {first + i: float(p) for i, p in enumerate(law)}


def law(counts, m):
    """The law of all choices of one histogram: {bins: probability}."""
    found = {(): 1.0}
    shares, k = [Fraction(q) for q in m.shares], len(m.shares)
    for turn in turns(k):
        after = {}
        for chosen, p in found.items():
            held = dict(chosen)
            first = held.get(turn.after, 0)
            last = held.get(turn.before, m.bins - 1)
            for t, q in one_choice(counts, shares[turn.share], m.rate, first, last).items():
                after[(*chosen, (turn.share, t))] = p * q
        found = after
    return {tuple(dict(c)[j] for j in range(k)): p for c, p in found.items()}


def worst(m, pairs):
    out = 0.0
    for one, other in pairs:
        p, q = law(one, m), law(other, m)
        out = max(out, *(abs(math.log(p[k] / q[k])) for k in p))
    return out


def tables(bins, most):
    return itertools.product(range(most + 1), repeat=bins)


def added(bins, most):
    for counts in tables(bins, most):
        for k in range(bins):
            more = list(counts)
            more[k] += 1
            yield counts, more


def moved(bins, most):
    for counts in tables(bins, most):
        for i, j in itertools.permutations(range(bins), 2):
            if counts[i]:
                other = list(counts)
                other[i] -= 1
                other[j] += 1
                yield counts, other


def test_private_from_both_sides():
    """All tables of some bins with a few rows in each: never above epsilon; and tables that come near it."""
    for shares, bins, most in (((HALF,), 4, 3), ((QUARTER,), 4, 3), (QUARTILES, 3, 2)):
        m = RankSelection(bins=bins, shares=shares, epsilon=1)
        assert 0.4 < worst(m, added(bins, most)) <= 1 + 1e-9
        both = RankSelection(bins=bins, shares=shares, epsilon=1, replaced=True)
        assert 0.4 < worst(both, moved(bins, most)) <= 1 + 1e-9
    # A unit of several rows, and a row that changes cells: the costs of both cells add up.
    many = RankSelection(bins=3, shares=(HALF,), epsilon=1, rows=2)
    pairs = [(c, [c[0] + 2, *c[1:]]) for c in tables(3, 3)]
    assert 0.4 < worst(many, pairs) <= 1 + 1e-9
    crossing = RankSelection(bins=3, shares=(QUARTER,), epsilon=1, replaced=True, grouped=True)
    assert 0.2 < worst(crossing, added(3, 3)) <= 0.5 + 1e-9
    assert worst(crossing, moved(3, 3)) <= 1 + 1e-9


@pytest.mark.parametrize(("share", "behind"), [(HALF, 4), (QUARTER, 16)])
def test_the_cost_is_reached(share, behind):
    """Most candidates lie in a gap on one side, and the chosen one on the other: both distances move against it."""
    before = [5, 0, 3, *[0] * 300, behind]
    m = RankSelection(bins=len(before), shares=(share,), epsilon=1)
    one, other = law(before, m), law([6, *before[1:]], m)
    assert 0.95 < abs(math.log(one[(1,)] / other[(1,)])) <= 1 + 1e-9


def test_costs():
    assert row_cost((HALF,)) == 1
    assert row_cost((QUARTER,)) == Fraction(3, 2)
    assert row_cost(QUARTILES) == 3
    for shares in (QUARTILES, (QUARTER,), tuple(Fraction(i, 10) for i in range(1, 10))):
        k, alone = len(shares), row_cost(shares)
        assert alone <= sum(2 * max(q, 1 - q) for q in shares)
        made = {
            (r, g): RankSelection(bins=4, shares=shares, epsilon=1, replaced=r, grouped=g).cost
            for r in (False, True)
            for g in (False, True)
        }
        assert made[False, False] == made[False, True] == alone
        assert made[True, False] == min(2 * k, 2 * alone)
        assert made[True, True] == max(2 * k, 2 * alone)
    three = RankSelection(bins=4, shares=(HALF,), epsilon=1, rows=3)
    assert three.rate == Fraction(1, 3)


@pytest.mark.parametrize("counts", [[3, 0, 2, 0, 4, 1], [0, 0, 0, 0, 0, 0], [0, 30, 0, 0, 1, 0]])
def test_draws_follow_the_law(counts):
    m = RankSelection(bins=6, shares=(QUARTER, HALF), epsilon=1)
    runs, expected = 20_000, law(counts, m)
    source = SeededSource(seed=1)
    drawn = m.release(np.broadcast_to(np.array(counts), (runs, 6)), source=source).bins
    seen = dict.fromkeys(expected, 0)
    for row in drawn.tolist():
        seen[tuple(row)] += 1
    for bins, p in expected.items():
        assert abs(seen[bins] / runs - p) <= 6 * math.sqrt(p * (1 - p) / runs) + 1e-12


def test_coins_that_floats_cannot_decide_are_decided_exactly(monkeypatch):
    """With a huge slack every coin goes through balls, and nothing changes."""
    m = RankSelection(bins=5, shares=(HALF,), epsilon=Fraction(1, 2))
    counts = np.broadcast_to(np.array([4, 1, 0, 2, 6]), (200, 5))
    usual = m.release(counts, source=SeededSource(seed=3)).bins
    monkeypatch.setattr("tacit.mechanisms.rank_selection.SLACK", 1.0)
    assert (m.release(counts, source=SeededSource(seed=3)).bins == usual).all()


class Counted(SeededSource):
    """How many words each call asked for."""

    def __init__(self, seed):
        super().__init__(seed=seed)
        self.calls = []

    def words(self, count):
        self.calls.append(count)
        return super().words(count)


def test_how_many_words_are_drawn_does_not_depend_on_the_rows():
    """Nor on the number of heads, which is not published: all of them where there are no rows."""
    m = RankSelection(bins=7, shares=QUARTILES, epsilon=1)
    calls = []
    for counts in ([0] * 7, [1, 0, 2, 0, 0, 1, 0], [3] * 7, [0, 400, 0, 0, 0, 400, 0]):
        for seed in range(5):
            source = Counted(seed)
            m.release(counts, source=source)
            calls.append(source.calls)
    assert all(c == [7, 1] * 3 for c in calls)


def test_how_many_words_a_choice_draws_does_not_depend_on_the_scores():
    """One for each candidate and one more: an order that ends at the first head would tell how soon it came."""
    m = PermuteAndFlip(epsilon=1, sensitivity=Score(1))
    for scores in ([0] * 5, [9, 0, 0, 0, 0], [1, 2, 3, 4, 5], [0, 10**9, 0, 0, 10**400]):
        for seed in range(5):
            source = Counted(seed)
            m.choose(scores, source=source)
            assert source.calls == [5, 1]


class Told(SeededSource):
    """These words first, then seeded ones."""

    def __init__(self, *words):
        super().__init__(seed=1)
        self.first = list(words)

    def words(self, count):
        mine = [self.first.pop(0) for _ in range(min(count, len(self.first)))]
        return np.array([*mine, *super().words(count - len(mine))], dtype=np.uint64)


def test_coins_near_their_chance_are_decided_exactly():
    """A word beside e^-gap 2^64: below it heads, above it none, whatever floats would say."""
    from decimal import Decimal, localcontext

    m = PermuteAndFlip(epsilon=2, sensitivity=Score(1))
    for gap in (Fraction(1), Fraction(1, 3), Fraction(17, 2), Fraction(1, 10**6)):
        with localcontext(prec=60):
            edge = int((-Decimal(gap.numerator) / Decimal(gap.denominator)).exp() * 2**64)
        for beside in (1, 2, 400):
            # Of two heads a last word of 0 takes the first; without its head it is the best one.
            assert m.choose([-gap, 0], source=Told(edge - beside, 5, 0)).index == 0
            assert m.choose([-gap, 0], source=Told(edge + beside, 5, 0)).index == 1


def test_the_error_of_even_rows():
    """1 / rate ranks on the average, ln 20 / rate at 95%."""
    m = RankSelection(bins=4096, shares=(HALF,), epsilon=0.5)
    counts = np.ones(4096, dtype=np.int64)
    drawn = m.release(np.broadcast_to(counts, (4000, 4096)), source=SeededSource(seed=5)).bins[:, 0]
    off = np.abs(drawn - 2047.5)
    assert off.mean() == pytest.approx(m.expected_error(), rel=0.1)
    assert np.mean(off <= m.error_quantile(0.95)) == pytest.approx(0.95, abs=0.02)
    assert m.max_error(confidence=0.95, dimension=3) > m.error_quantile(0.95)


def test_ranges_around():
    found = edges_around([[5], [0], [1023]], bins=1024)
    assert found.shape == (3, ranges_around(1, bins=1024) + 1)
    assert (np.diff(found, axis=-1) >= 0).all()
    assert (found[:, 0] == 0).all()
    assert (found[:, -1] == 1024).all()
    assert {4, 5, 6, 7}.issubset(found[0].tolist())
    coarse = edges_around([500], bins=1024, finest=8)
    assert sorted(set(coarse.tolist()))[:3] == [0, 252, 380]
    assert len(coarse) == ranges_around(1, bins=1024, finest=8) + 1
    assert edges_around([0, 0], bins=1).tolist()[-1] == 1


def test_bad_input():
    good = {"bins": 4, "shares": (0.5,), "epsilon": 1}
    for wrong in (
        {"bins": 0}, {"shares": (0,)}, {"shares": (0.5, 0.5)}, {"shares": (0.5, 0.25)}, {"shares": "1/2"},
        {"shares": tuple(np.linspace(0.0001, 0.9, 1001))}, {"epsilon": 0}, {"rows": 0}, {"replaced": 1},
        {"grouped": None},
    ):  # fmt: skip
        with pytest.raises(InvalidParameter):
            RankSelection(**{**good, **wrong})
    with pytest.raises(EmptyComposition):
        RankSelection(**{**good, "shares": ()})
    m = RankSelection(**good)
    for counts in ([1, 2], 3, [1, 2, 3, -1]):
        with pytest.raises(InvalidParameter):
            m.release(counts)
