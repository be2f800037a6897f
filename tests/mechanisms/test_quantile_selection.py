"""One quantile by selection: its law against the exponential mechanism, its claim, and the cover of its interval."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.accounting import events
from tacit.errors import InvalidParameter
from tacit.mechanisms.quantiles import QuantileSelection
from tacit.noise import SeededSource


def law(m, counts, target):
    """The exponential mechanism from its definition."""
    ranks = np.concatenate([[0], np.cumsum(counts)]).astype(float)
    rank = float(m.share) * ranks[-1] + target
    left, right = ranks[:-1].copy(), ranks[1:].copy()
    left[0], right[-1] = -np.inf, np.inf
    weights = np.exp(-float(m._choice.rate) * np.maximum(np.maximum(left - rank, rank - right), 0))
    return weights / weights.sum()


def test_each_choice_is_private_by_enumeration():
    m = QuantileSelection(bins=4, share=Fraction(1, 4), rank_sensitivity=Fraction(3, 4), epsilon=3)
    worst = 0.0
    for counts in itertools.product(range(4), repeat=4):
        for k in range(4):
            more = np.array(counts)
            more[k] += 1
            for target in (0, -m.reach, m.reach, 1):
                ratio = np.abs(np.log(law(m, np.array(counts), target) / law(m, more, target)))
                worst = max(worst, ratio.max())
    assert 0.4 < worst <= 1 + 1e-12
    assert m.bound.epsilon == 3
    assert m.event == events.RepeatedEvent(event=events.ExponentialEvent(epsilon=1.0), times=3)


def test_draws_follow_the_law():
    m = QuantileSelection(bins=6, share=0.5, rank_sensitivity=0.5, epsilon=1.5)
    counts, runs = np.array([3, 0, 2, 0, 4, 1]), 6_000
    source = SeededSource(seed=1)
    for target in (0, 3):
        found = np.bincount(
            [m._bin(counts, Fraction(1, 2), target, source) for _ in range(runs)], minlength=6
        )
        p = law(m, counts, target)
        assert (np.abs(found / runs - p) <= 6 * np.sqrt(p * (1 - p) / runs) + 1e-12).all()


@pytest.mark.parametrize("kind", ["dense", "clumps", "few", "empty"])
def test_intervals_cover(kind):
    rng = np.random.default_rng(1)
    bins, runs, share = 256, 200, 0.25
    edges = np.linspace(0.0, 1.0, bins + 1)
    data = {
        "dense": rng.random(5000), "clumps": np.repeat([0.2, 0.8], [300, 900]), "few": rng.random(5),
        "empty": np.empty(0),
    }[kind]  # fmt: skip
    counts = np.histogram(data, edges)[0]
    star = int(np.argmax(np.cumsum(counts) >= share * counts.sum()))
    m = QuantileSelection(bins=bins, share=share, rank_sensitivity=0.75, epsilon=1)
    source = SeededSource(seed=2)
    found = [m.release(counts, edges=edges, source=source) for _ in range(runs)]
    covered = np.mean([(r.low[0] <= edges[star]) and (r.high[0] >= edges[star + 1]) for r in found])
    assert covered >= 0.95
    assert all(r.low[0] <= r.value[0] <= r.high[0] for r in found)
    if kind == "dense":
        rank = np.array([np.searchsorted(np.sort(data), r.value[0]) for r in found]) - share * 5000
        assert math.sqrt((rank**2).mean()) < 20


def test_bad_input():
    m = QuantileSelection(bins=4, share=0.5, rank_sensitivity=1, epsilon=1)
    for counts, edges in (([1, 2], range(5)), ([1, 2, 3, -1], range(5)), ([1, 2, 3, 4], range(4))):
        with pytest.raises(InvalidParameter):
            m.release(counts, edges=edges)
    for wrong in ({"share": 1}, {"bins": 0}, {"rank_sensitivity": 0}, {"epsilon": 0}, {"confidence": 1}):
        with pytest.raises(InvalidParameter):
            QuantileSelection(**{"bins": 4, "share": 0.5, "rank_sensitivity": 1, "epsilon": 1, **wrong})
