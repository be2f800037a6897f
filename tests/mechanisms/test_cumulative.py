"""Cumulative counts: the claim by enumeration of moves, the law of the error, and the cover of the intervals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.mechanisms.cumulative import (
    CumulativeGaussian,
    CumulativeTree,
    _borders,
    _product,
    _strategy,
    cumulative,
)
from tacit.mechanisms.laplace import chernoff, sum_quantiles
from tacit.mechanisms.quantiles import quantiles
from tacit.noise import SeededSource


def forms(bins, *, public=False):
    twice = 2 if public else 1
    return (
        cumulative(bins=bins, l1=twice, l2_squared=twice, epsilon=1, total_is_public=public),
        cumulative(bins=bins, l1=twice, l2_squared=twice, rho=0.5, total_is_public=public),
    )


def moves(bins, most):
    """All moves p - q of at most `most` rows that come and go, by bin."""
    single = [c for n in range(most + 1) for c in itertools.combinations_with_replacement(range(bins), n)]
    for come, go in itertools.product(single, single):
        p, q = np.bincount(come, minlength=bins), np.bincount(go, minlength=bins)
        yield p.astype(np.int64), q.astype(np.int64)


@pytest.mark.parametrize("bins", [1, 3, 6])
def test_tree_moves_by_levels_times_l1(bins):
    tree = CumulativeTree(bins=bins, l1=2, epsilon=1)
    for widths in {tree.widths, (4, 2, 1), (3, 1), (1,)}:
        worst = 0
        for p, q in moves(bins, 1):
            padded = np.concatenate([p - q, np.zeros(-bins % widths[0], dtype=np.int64)])
            worst = max(worst, sum(np.abs(padded.reshape(-1, w).sum(axis=1)).sum() for w in widths))
        assert worst <= len(widths) * 2
    assert tree.noise_scale * 1 == len(tree.widths) * 2


def test_gaussian_moves_by_its_sensitivity():
    bins, bits = 5, 12
    plan = _strategy(bins, bits)
    for p, q in moves(bins, 2):
        difference = _product(plan, p - q, bins, bits).astype(object)
        square = int(difference @ difference)
        assert square <= plan.square * (int(p.sum()) ** 2 + int(q.sum()) ** 2)
    one = np.zeros(bins, dtype=np.int64)
    one[0] = 1
    exact = _product(plan, one, bins, bits)
    assert int(exact @ exact) == plan.square
    m = CumulativeGaussian.for_rho(bins=bins, l2_squared=8, rho=Fraction(1, 10))
    assert m.bound.mu**2 / 2 <= 0.1 * (1 + 1e-12)
    assert m.bound.mu**2 / 2 > 0.0999
    target = CumulativeGaussian.for_target(bins=bins, l2_squared=1, epsilon=1, delta=1e-6)
    assert 0.99e-6 < target.bound.delta(1.0) <= 1e-6


def test_product_is_exact_for_every_size():
    bins, bits = 700, 16
    plan = _strategy(bins, bits)
    rng = np.random.default_rng(1)
    for top in (10, 1 << 30, 1 << 61):
        h = rng.integers(0, top, bins)
        want = np.convolve(h.astype(object), plan.coefficients.astype(object))[:bins]
        assert (_product(plan, h, bins, bits).astype(object) == want).all()
        assert (_product(plan, -h, bins, bits).astype(object) == -want).all()


def test_borders_walk_to_every_bin():
    for bins, widths in ((4096, (256, 16, 1)), (1000, (100, 10, 1)), (17, (9, 3, 1)), (5, (1,))):
        borders = _borders(bins, widths, range(bins + 1))
        assert (borders[-1][:-1] == np.arange(bins)).all()
        for i in range(1, len(widths)):
            steps = np.abs(borders[i] - borders[i - 1]) / widths[i]
            assert steps.max() <= widths[i - 1] / widths[i] / 2 + 0.5
            assert (steps == np.rint(steps)).all()


def test_sums_of_laplace_variables_against_the_closed_form():
    # n variables of scale 1: Pr[S >= c] for n = 2 is (2 + c) e^-c / 4, for n = 3 (8 + 5c + c^2) e^-c / 16.
    for n, tail in ((1, lambda c: math.exp(-c) / 2), (2, lambda c: (2 + c) * math.exp(-c) / 4),
                    (3, lambda c: (8 + 5 * c + c * c) * math.exp(-c) / 16)):  # fmt: skip
        for level in (0.2, 0.025, 1e-4):
            for row in ([0.0, n, 0, 0], [0.3, 0, 0, n]):
                c = float(sum_quantiles(np.array([row]), level)[0])
                assert 0.99 * level <= tail(c) <= level, (n, level)
                assert tail(float(chernoff(np.array([row]), level)[0])) <= level


def test_error_laws_by_simulation():
    rng = np.random.default_rng(2)
    h = rng.integers(0, 30, 300)
    truth, total = np.cumsum(h), h.sum()
    runs = 4000
    for public in (False, True):
        for m in forms(300, public=public):
            below = m.release(np.broadcast_to(h, (runs, 300)), source=SeededSource(seed=5)).below
            assert below.shape == (runs, 301)
            assert (below[:, 0] == 0).all()
            assert np.allclose((below[:, 1:] - truth).std(axis=0), m.noise_stds()[1:], rtol=0.08, atol=1e-5)
            inside = (np.abs(below[:, 1:] - truth) <= m.error_quantile(0.9) + 1e-9).mean(axis=0)
            # Five standard deviations of a share of 4000 runs around 0.9.
            assert inside.min() >= 0.9 - 0.025
            assert inside[:-1].max() <= 0.9 + 0.025
            if not public:
                error = below[:, 150] - below[:, -1] / 4 - (truth[149] - total / 4)
                c = m.half_widths(0.025, share=Fraction(1, 4))[150]
                assert 0.015 <= (error >= c).mean() <= 0.035
            else:
                assert np.allclose(below[:, -1], total)


@pytest.mark.parametrize("kind", ["dense", "sparse", "clumps", "empty"])
def test_intervals_cover_and_are_in_order(kind):
    rng = np.random.default_rng(3)
    bins, shares, runs = 512, (0.1, 0.25, 0.5, 0.9), 600
    edges = np.linspace(0.0, 10.0, bins + 1)
    data = {
        "dense": rng.normal(5, 1, 20_000).clip(0, 9.99),
        "sparse": rng.uniform(0, 10, 60),
        "clumps": np.repeat([2.001, 7.001, 7.5], [300, 300, 100]),
        "empty": np.empty(0),
    }[kind]
    h = np.histogram(data, edges)[0]
    ranks = np.cumsum(h)
    star = [int(np.argmax(ranks >= Fraction(q) * int(h.sum()))) for q in shares]
    for public in (False, True):
        for m in forms(bins, public=public):
            noisy = m.release(np.broadcast_to(h, (runs, bins)), source=SeededSource(seed=7))
            found = quantiles(noisy, shares=shares, edges=edges)
            covered = ((found.low <= edges[star]) & (found.high >= edges[np.array(star) + 1])).mean(axis=0)
            assert covered.min() >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / runs), covered
            for array in (found.value, found.low, found.high):
                assert (np.diff(array, axis=-1) >= 0).all()
            assert (found.low <= found.value).all()
            assert (found.value <= found.high).all()
            if kind == "dense":
                # Not needlessly wide: the rows between the ends are few times the error of a rank.
                inside = np.searchsorted(np.sort(data), found.high) - np.searchsorted(
                    np.sort(data), found.low
                )
                c = m.half_widths(0.025, share=Fraction(1, 2)).max()
                assert np.median(inside, axis=0).max() <= 4 * c + 3 * h.max()


def test_gaussian_is_better_by_half_and_the_tree_by_four():
    tree, normal = forms(4096)
    assert tree.widths == (256, 16, 1)
    assert tree.expected_std() < 15
    assert normal.expected_std() < 3.75
    flat = math.sqrt(2 * 4096 / 4)
    assert flat / tree.expected_std() > 3
    both = cumulative(bins=4096, l1=10, l2_squared=100, epsilon=2, delta=1e-3)
    assert isinstance(both, CumulativeGaussian)
    assert isinstance(cumulative(bins=4096, l1=1, l2_squared=1, epsilon=1, delta=1e-12), CumulativeTree)


def test_events_and_laws():
    tree, normal = forms(64)
    assert tree.event.epsilon == 1.0
    assert normal.event.noise_multiplier == pytest.approx(1.0, rel=1e-6)
    assert tree.noise_distribution["exact"]
    assert normal.noise_distribution["exact"]
    assert not tree.release(np.zeros(64, dtype=int), source=SeededSource(seed=1)).publishable
    assert tree.release(np.zeros(64, dtype=int)).publishable
    huge = np.full(64, 1 << 58)
    for m in (tree, normal):
        below = m.release(huge).below
        assert below[-1] == pytest.approx(float(64 << 58), rel=1e-9)


def test_bad_input():
    tree = forms(8)[0]
    with pytest.raises(InvalidParameter, match="bins"):
        tree.release([1, 2])
    with pytest.raises(InvalidParameter, match="counts"):
        tree.release(np.zeros(8))
    noisy = tree.release(np.zeros(8, dtype=int), source=SeededSource(seed=1))
    edges = np.arange(9)
    with pytest.raises(InvalidParameter, match="shares"):
        quantiles(noisy, shares=[0.0], edges=edges)
    with pytest.raises(InvalidParameter, match="order"):
        quantiles(noisy, shares=[0.5, 0.2], edges=edges)
    with pytest.raises(InvalidParameter, match="edges"):
        quantiles(noisy, shares=[0.5], edges=edges[:-1])
    with pytest.raises(EmptyComposition):
        quantiles(noisy, shares=[], edges=edges)
    for wrong in ({"bins": 0}, {"bins": 1 << 20}, {"l1": 0}, {"epsilon": 0}, {"epsilon": None}, {"rho": 1.0}):
        with pytest.raises(InvalidParameter):
            cumulative(**{"bins": 8, "l1": 1, "l2_squared": 1, "epsilon": 1, **wrong})
