"""Sparse histograms have the law of noise on every cell: subsets, values and places, against the dense definition."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import chdtrc

from tacit.errors import InvalidParameter, TooManyCells
from tacit.guarantees import Pure
from tacit.mechanisms import (
    L1,
    L2,
    Gaussian,
    Impossible,
    Laplace,
    SparseHistogram,
    hall_threshold,
    noise_floor,
)
from tacit.mechanisms.sparse import passing_noise
from tacit.mechanisms.sparse_keys import draw_empty, key_integers, pack_keys
from tacit.noise import DiscreteGaussian, DiscreteLaplace, SeededSource


def fits(observed: Counter, expected: dict, total: int) -> bool:
    """Chi-square with small categories pooled; seeds are fixed, so that a right law does not fail by bad luck."""
    assert set(observed) <= set(expected), "an outcome of probability 0"
    large = [k for k, p in expected.items() if p * total >= 8]
    statistic = sum((observed[k] - total * expected[k]) ** 2 / (total * expected[k]) for k in large)
    rest = 1 - sum(expected[k] for k in large)
    others = total - sum(observed[k] for k in large)
    if rest * total >= 8:
        statistic += (others - total * rest) ** 2 / (total * rest)
    return bool(chdtrc(max(len(large) - (rest * total < 8), 1), statistic) > 1e-6)


def middle(pair: tuple[float, float]) -> float:
    return (pair[0] + pair[1]) / 2


NOISES = [
    Laplace(sensitivity=L1(2), noise_scale=2),
    Gaussian(sensitivity=L2.root(2), noise_std=1.5, dimension=5),
]


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("threshold", [1, -1])
def test_which_cells_are_released_has_the_law_of_dense_noise(noise, threshold) -> None:
    mechanism = SparseHistogram(noise=noise, domain=5, threshold=threshold)
    true, source, total = np.array([0, 3, 0, 0, 1]), SeededSource(seed=5), 2500
    chance = [middle(noise.distribution.survival(threshold + 1 - int(c))) for c in true]
    expected = {
        kept: math.prod(p if i in kept else 1 - p for i, p in enumerate(chance))
        for n in range(6)
        for kept in itertools.combinations(range(5), n)
    }
    seen: Counter = Counter()
    values: Counter = Counter()
    for _ in range(total):
        out = mechanism.release([1, 4], [3, 1], source=source)
        seen[tuple(int(k) for k in out.keys)] += 1
        values.update((int(k), int(v)) for k, v in zip(out.keys, out.values, strict=True))
    assert fits(seen, expected, total)
    for cell in range(5):
        here = Counter({v: n for (k, v), n in values.items() if k == cell})
        law = {
            v: middle(noise.distribution.probability(v - int(true[cell]))) for v in range(threshold + 1, 60)
        }
        number = sum(here.values())
        assert fits(here, {v: p / chance[cell] for v, p in law.items()}, number)


def test_empty_cells_are_independent_of_each_other() -> None:
    """Two empty cells both released: their values have the product law, and all pairs of places are alike."""
    mechanism = SparseHistogram(noise=NOISES[0], domain=3, threshold=0)
    source, total, pairs = SeededSource(seed=8), 5000, Counter()
    for _ in range(total):
        out = mechanism.release([], [], source=source)
        pairs[tuple(min(int(v), 4) for v in out.values), tuple(int(k) for k in out.keys)] += 1
    law = {v: middle(NOISES[0].distribution.probability(v)) for v in (1, 2, 3)} | {
        4: middle(NOISES[0].distribution.survival(4))
    }
    none = 1 - sum(law.values())
    expected = {
        (values, kept): none ** (3 - n) * math.prod(law[v] for v in values)
        for n in range(4)
        for kept in itertools.combinations(range(3), n)
        for values in itertools.product(law, repeat=n)
    }
    assert fits(pairs, expected, total)


@pytest.mark.parametrize(
    ("law", "least"),
    [
        (DiscreteLaplace(noise_scale=3), 7),
        (DiscreteLaplace(noise_scale=3), -2),
        (DiscreteGaussian(noise_std=4), 9),
        (DiscreteGaussian(noise_std=4), 2),
        (DiscreteGaussian(noise_std=0.6), 1),
        (DiscreteGaussian(noise_std=30), 150),
    ],
)
def test_values_given_that_they_pass(law, least) -> None:
    drawn = passing_noise(law, 60_000, least, SeededSource(seed=3))
    total = middle(law.survival(least))
    top = least + 400
    expected = {k: middle(law.probability(k)) / total for k in range(least, top)}
    assert fits(Counter(int(x) for x in drawn), expected, 60_000)


@pytest.mark.parametrize("domain", [7, 1 << 70])
@pytest.mark.parametrize("kind", ["keys", "test"])
def test_places_are_uniform_among_free_keys(domain, kind) -> None:
    small = domain == 7
    barred = [1, 2] if small else [0, 5]
    test = None if kind == "keys" else lambda k: np.isin(np.asarray(k, dtype=object), barred)
    impossible = (
        Impossible(keys=np.array(barred)) if test is None else Impossible(test=test, count=len(barred))
    )
    occupied = pack_keys([4], domain)
    source, seen = SeededSource(seed=4), Counter()
    for _ in range(3000 if small else 200):
        keys = key_integers(
            draw_empty(2, domain=domain, occupied=occupied, impossible=impossible, source=source)
        )
        pair = tuple(int(k) for k in keys)
        seen[pair if small else int(pair[0] * 4 >= domain)] += 1
        assert pair[0] < pair[1] < domain
    if small:
        pairs = list(itertools.combinations([0, 3, 5, 6], 2))
        assert fits(seen, {p: 1 / len(pairs) for p in pairs}, 3000)
    else:
        # The smaller of two uniform numbers is above a quarter with probability 9/16.
        assert fits(seen, {1: 9 / 16, 0: 7 / 16}, 200)


def test_all_but_few_cells_released_draws_the_complement() -> None:
    source, seen = SeededSource(seed=9), Counter()
    for _ in range(2000):
        keys = draw_empty(4, domain=6, occupied=pack_keys([2], 6), impossible=None, source=source)
        seen[tuple(int(k) for k in keys)] += 1
    subsets = list(itertools.combinations([0, 1, 3, 4, 5], 4))
    assert fits(seen, dict.fromkeys(subsets, 1 / 5), 2000)


@pytest.mark.parametrize("domain", [1 << 64, (1 << 64) - 59, (1 << 150) - 7, 1 << 200])
def test_huge_domains(domain) -> None:
    rng = np.random.default_rng(1)
    keys = sorted({int.from_bytes(rng.bytes(25), "big") % domain for _ in range(500)})
    array = np.array(keys, dtype=object if domain > 1 << 64 else np.uint64)
    counts = rng.integers(1, 400, size=array.size)
    mechanism = SparseHistogram.for_target(
        epsilon=1,
        sensitivity=L1(2),
        domain=domain,
        threshold=noise_floor(NOISES[0], cells=domain, expected_false=40),
    )
    out = mechanism.release(array, counts, source=SeededSource(seed=2))
    found = [int(k) for k in out.key_integers]
    assert found == sorted(set(found))
    assert found[-1] < domain
    true = dict(zip(keys, counts, strict=True))
    false = [k for k in found if k not in true]
    assert 10 < len(false) < 90
    assert not out.publishable
    large = [k for k, c in true.items() if c > mechanism.threshold + 60]
    assert len(large) > 10
    assert set(large) <= set(found)
    assert all(abs(int(v) - true[k]) < 60 for k, v in zip(found, out.values, strict=True) if k in true)


def test_structural_zeros_are_never_released() -> None:
    impossible = Impossible(keys=np.arange(0, 4000, 2))
    mechanism = SparseHistogram.for_target(
        epsilon=0.5, sensitivity=L1(1), domain=4000, threshold=0, impossible=impossible
    )
    assert mechanism.cells == 2000
    out = mechanism.release([1, 3], [50, 60], source=SeededSource(seed=1))
    assert (out.keys % np.uint64(2) == 1).all()
    # 1998 empty cells pass with q/(1+q) = .378 each: within 8 standard deviations.
    assert abs(out.keys.size - 2 - 1998 * 0.3775) < 8 * math.sqrt(1998 * 0.24)


def test_a_wrong_count_of_impossible_cells_is_found_out() -> None:
    odd = lambda k: k % np.uint64(2) == 1  # noqa: E731
    fine = SparseHistogram(
        noise=NOISES[0], domain=1000, threshold=-30, impossible=Impossible(test=odd, count=500)
    )
    out = fine.release([], [], source=SeededSource(seed=1))
    assert out.keys.size == 500
    assert (out.keys % np.uint64(2) == 0).all()
    with pytest.raises(InvalidParameter, match="be 500"):
        SparseHistogram(noise=NOISES[0], domain=1000, threshold=5, impossible=Impossible(test=odd, count=499))


def test_tested_domains_that_are_too_large_to_list() -> None:
    """All but one in 64 keys impossible, told by a test: draws are repeated until enough are possible."""
    rare = lambda k: k % np.uint64(64) != 0  # noqa: E731
    mechanism = SparseHistogram(
        noise=NOISES[0],
        domain=1 << 30,
        threshold=20,
        impossible=Impossible(test=rare, count=(1 << 30) // 64 * 63),
    )
    out = mechanism.release([64, 128], [100, 3], source=SeededSource(seed=1))
    assert (out.keys % np.uint64(64) == 0).all()
    expected = mechanism.expected_false
    assert abs(out.keys.size - 1 - expected) < 8 * math.sqrt(expected)


def test_thresholds_are_the_sources() -> None:
    noise = Laplace.for_target(epsilon=1, sensitivity=L1(2))
    assert hall_threshold(noise, cells=1 << 16) == math.floor(2 * math.log(2**16)) == 22
    assert hall_threshold(noise, cells=1 << 16, occupied=3152) == math.floor(2 * math.log(2**16 / 3152)) == 6
    assert hall_threshold(noise, cells=64) == math.floor(2 * math.log(64)) == 8
    assert hall_threshold(noise, cells=64, occupied=64) == 0
    floor = noise_floor(noise, cells=1 << 64, expected_false=1000)
    tails = [2.0**64 * noise.distribution.survival(t + 1)[0] for t in (floor - 1, floor)]
    assert tails[0] > 1000 > tails[1]
    normal = Gaussian(sensitivity=L2.root(2), noise_std=4, dimension=1 << 20)
    t = hall_threshold(normal, cells=1 << 20)
    assert 2**20 * normal.distribution.survival(t + 1)[0] <= 0.5 < 2**20 * normal.distribution.survival(t)[1]


def test_guarantee_is_the_noises() -> None:
    mechanism = SparseHistogram.for_target(epsilon=0.7, sensitivity=L1(2), domain=1 << 40)
    assert mechanism.bound == Pure(epsilon=0.7)
    assert mechanism.event == mechanism.noise.event
    assert mechanism.noise_distribution["threshold"] == mechanism.threshold
    normal = SparseHistogram.for_target(epsilon=1, delta=1e-6, sensitivity=L2.root(2), domain=1 << 64)
    assert normal.bound.delta_at(1.0) <= 1e-6


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_errors_against_a_sum_over_the_law(noise) -> None:
    mechanism = SparseHistogram(noise=noise, domain=5, threshold=4)
    for true in (0, 1, 3, 4, 5, 9, 40):
        direct = sum(
            middle(noise.distribution.probability(z)) * (abs(z) if true + z > 4 else true)
            for z in range(-120, 121)
        )
        assert mechanism.cell_error(true) == pytest.approx(direct, rel=1e-9)
    worst = max(mechanism.cell_error(c) for c in range(200))
    q = 2
    assert mechanism.expected_error(occupied=q) == pytest.approx(
        q * worst + 3 * mechanism.cell_error(0), rel=1e-6
    )
    assert mechanism.expected_error(occupied=q) >= q * worst + 3 * mechanism.cell_error(0)


def test_halls_bound_on_the_risk_is_above_ours() -> None:
    for p, q, epsilon in ((64, 22, 1.0), (1 << 16, 3152, 1.0), (1 << 40, 10, 0.1), (1000, 1, 3.0)):
        mechanism = SparseHistogram.for_target(epsilon=epsilon, sensitivity=L1(2), domain=p)
        assert mechanism.expected_error(occupied=q) <= (2 * q + 1) / epsilon * (math.log(p) + 1)
        known = SparseHistogram.for_target(
            epsilon=epsilon, sensitivity=L1(2), domain=p, rule="known", occupied=q
        )
        assert known.expected_error(occupied=q) <= 3 * q / epsilon * (math.log(p / q) + 1)


def test_all_errors_at_once_stay_within_max_error() -> None:
    mechanism = SparseHistogram.for_target(epsilon=1, sensitivity=L1(2), domain=2000, threshold=5)
    source, missed = SeededSource(seed=6), 0
    counts = np.arange(1, 101)
    for _ in range(400):
        out = mechanism.release(np.arange(100), counts, source=source)
        dense = np.zeros(2000)
        dense[out.keys.astype(int)] = out.values
        missed += bool(
            np.abs(dense - np.append(counts, np.zeros(1900))).max() > mechanism.max_error(confidence=0.9)
        )
    assert missed <= 40 + 30


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"domain": 0}, InvalidParameter),
        ({"domain": (1 << 200) + 1}, TooManyCells),
        ({"domain": 1 << 100, "threshold": 0}, TooManyCells),
        ({"threshold": 1.5}, InvalidParameter),
        ({"threshold": True}, InvalidParameter),
        ({"noise": 3}, InvalidParameter),
        ({"noise": Laplace(sensitivity=L1(2), noise_scale=2, spacing=0.5)}, InvalidParameter),
        ({"noise": Gaussian(sensitivity=L2(1), noise_std=2)}, InvalidParameter),
        ({"impossible": Impossible(keys=np.arange(100))}, InvalidParameter),
    ],
)
def test_bad_mechanisms(change, kind) -> None:
    with pytest.raises(kind):
        SparseHistogram(**{"noise": NOISES[0], "domain": 100, "threshold": 5, **change})


@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        ([1, 2], [1]),
        ([2, 1], [1, 1]),
        ([1, 1], [1, 1]),
        ([-1], [1]),
        ([10], [1]),
        ([1.0], [1]),
        ([1], [-1]),
        ([1], [1.5]),
        ([3], [1]),
        ([0, 1, 2, 4, 5, 6, 7, 8, 9, 3], [1] * 10),
        ([[1]], [[1]]),
    ],
)
def test_bad_tables_are_refused_without_a_number_of_theirs(keys, counts) -> None:
    mechanism = SparseHistogram(
        noise=NOISES[0], domain=10, threshold=5, impossible=Impossible(keys=np.array([3]))
    )
    with pytest.raises(InvalidParameter) as told:
        mechanism.release(np.array(keys), np.array(counts), source=SeededSource(seed=1))
    assert "[" not in str(told.value)


def test_wide_keys_are_checked_too() -> None:
    mechanism = SparseHistogram(noise=NOISES[0], domain=1 << 130, threshold=200)
    for keys in ([1 << 130], [5, 4], [5, 5], [-1]):
        with pytest.raises(InvalidParameter):
            mechanism.release(np.array(keys, dtype=object), [1] * len(keys))
    with pytest.raises(InvalidParameter):
        Impossible()
    with pytest.raises(InvalidParameter):
        Impossible(test=lambda k: k)
    with pytest.raises(InvalidParameter):
        SparseHistogram.for_target(epsilon=1, sensitivity=L1(2), domain=10, rule="known")
    with pytest.raises(InvalidParameter):
        SparseHistogram.for_target(epsilon=1, sensitivity=L1(2), domain=10, rule="known", occupied=11)
    with pytest.raises(InvalidParameter):
        SparseHistogram.for_target(epsilon=1, sensitivity=L1(2), domain=10, rule="best")


def test_an_empty_table_is_released_like_any_other() -> None:
    mechanism = SparseHistogram.for_target(epsilon=1, sensitivity=L1(2), domain=1 << 30, rule="floor")
    out = mechanism.release([], [], source=SeededSource(seed=1))
    assert abs(out.keys.size - mechanism.expected_false) < 8 * math.sqrt(mechanism.expected_false)
