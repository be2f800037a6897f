"""The law of what `release()` really draws is the law that the claim is about: cell by cell, at the threshold too.

Laws are written down here from their definitions. Releases run on recorded words (fixed seeds), so that every number
below is the same in each run; six standard deviations are less likely than 1e-8 for each outcome.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np
import pytest

from tacit.mechanisms import (
    L1,
    L2,
    Exponential,
    Gaussian,
    GaussianSelection,
    Geometric,
    Impossible,
    KeysOfAUnit,
    Laplace,
    MedianByTest,
    OptimalSelection,
    PermuteAndFlip,
    RandomizedResponse,
    Score,
    SparseHistogram,
    StableHistogram,
    TruncatedGeometric,
)
from tacit.noise import SeededSource, Source

RUNS = 200_000
FEW = 6_000


def laplace(scale: float, reach: int = 60) -> dict[int, float]:
    """Pr[X = k] = (1 - q) / (1 + q) q^|k|, q = e^(-1 / scale)."""
    q = math.exp(-1 / scale)
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def agree(seen: Iterable[Hashable], law: Mapping[Hashable, float]) -> None:
    """Every outcome as often as its probability says, and none that has none."""
    counts = Counter(seen)
    runs = sum(counts.values())
    for outcome, p in law.items():
        assert abs(counts[outcome] - runs * p) <= 6 * math.sqrt(runs * p * (1 - p)) + 1, outcome
    rare = runs - sum(counts[o] for o in law)
    assert rare <= 6 * math.sqrt(runs * max(1 - sum(law.values()), 0)) + 1


def shown(count: int, noise: Mapping[int, float], threshold: int) -> dict[Hashable, float]:
    """A noisy count if it is above the threshold, otherwise nothing."""
    law: dict[Hashable, float] = {None: 0.0}
    for x, p in noise.items():
        if count + x > threshold:
            law[count + x] = p
        else:
            law[None] += p
    return law


def cells(positions: np.ndarray, values: np.ndarray, size: int) -> list[int | None]:
    out: list[int | None] = [None] * size
    for place, value in zip(positions.tolist(), values.tolist(), strict=True):
        out[place] = value
    return out


@pytest.mark.parametrize("count", [1, 3, 4, 5, 9])
def test_stable_histograms(count: int) -> None:
    """Below, at and above the threshold of 4."""
    mechanism = StableHistogram(noise=Laplace(sensitivity=L1(1), noise_scale=2), threshold=4)
    out = mechanism.release(np.full(RUNS, count), source=SeededSource(seed=count))
    agree(cells(out.positions, out.values, RUNS), shown(count, laplace(2.0), 4))


def test_stable_histograms_draw_for_each_cell() -> None:
    """Pairs of cells: the joint law is the product."""
    mechanism = StableHistogram(noise=Laplace(sensitivity=L1(1), noise_scale=2), threshold=4)
    out = mechanism.release(np.full(RUNS, 5), source=SeededSource(seed=7))
    told = np.array([v is not None for v in cells(out.positions, out.values, RUNS)])
    p = 1 - shown(5, laplace(2.0), 4)[None]
    joint = {(a, b): (p if a else 1 - p) * (p if b else 1 - p) for a in (False, True) for b in (False, True)}
    agree(zip(told[::2].tolist(), told[1::2].tolist(), strict=True), joint)


def test_the_delta_of_a_stable_histogram_is_what_shows_alone() -> None:
    """One cell that a unit alone occupies, by two: the chance that it is released."""
    unit = KeysOfAUnit(keys=1, each=2, total=2)
    mechanism = StableHistogram(noise=Laplace(sensitivity=L1(2), noise_scale=2), threshold=5, unit=unit)
    out = mechanism.release(np.full(RUNS, 2), source=SeededSource(seed=3))
    exact = 1 - shown(2, laplace(2.0), 5)[None]
    assert abs(out.positions.size - RUNS * exact) <= 6 * math.sqrt(RUNS * exact)
    assert mechanism.key_delta == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("threshold", [0, 2])
def test_sparse_histograms(threshold: int) -> None:
    """Occupied and empty cells alike: noise on every possible cell, then the threshold."""
    domain, half = 3 * RUNS, RUNS // 2
    mechanism = SparseHistogram(
        noise=Laplace(sensitivity=L1(1), noise_scale=2), domain=domain, threshold=threshold,
        impossible=Impossible(keys=np.arange(RUNS, domain)),
    )  # fmt: skip
    out = mechanism.release(np.arange(0, RUNS, 2), np.full(half, 3), source=SeededSource(seed=5))
    assert int(out.keys.max()) < RUNS
    found = cells(out.keys.astype(np.int64), out.values, RUNS)
    agree(found[::2], shown(3, laplace(2.0), threshold))
    agree(found[1::2], shown(0, laplace(2.0), threshold))
    # Neighbouring empty cells pass independently.
    told = np.array([v is not None for v in found[1::2]])
    p = 1 - shown(0, laplace(2.0), threshold)[None]
    joint = {(a, b): (p if a else 1 - p) * (p if b else 1 - p) for a in (False, True) for b in (False, True)}
    agree(zip(told[::2].tolist(), told[1::2].tolist(), strict=True), joint)


def test_sparse_histograms_with_gaussian_noise() -> None:
    weights = {k: math.exp(-k * k / 8) for k in range(-40, 41)}
    law = {k: w / sum(weights.values()) for k, w in weights.items()}
    noise = Gaussian(sensitivity=L2(1), noise_std=2, dimension=RUNS)
    mechanism = SparseHistogram(noise=noise, domain=RUNS, threshold=3)
    out = mechanism.release(np.arange(0, RUNS, 2), np.full(RUNS // 2, 3), source=SeededSource(seed=6))
    found = cells(out.keys.astype(np.int64), out.values, RUNS)
    agree(found[::2], shown(3, law, 3))
    agree(found[1::2], shown(0, law, 3))


def pi(n: int, epsilon: float, delta: float) -> float:
    """The largest probability that one key of support n can have: from the definition of (epsilon, delta)."""
    p = 0.0
    for _ in range(n):
        p = min(math.exp(epsilon) * p + delta, 1 - math.exp(-epsilon) * (1 - p - delta), 1.0)
    return p


@pytest.mark.parametrize("support", [1, 2, 4, 6])
def test_optimal_selection(support: int) -> None:
    mechanism = OptimalSelection(epsilon=1, delta=0.01)
    p = pi(support, 1, 0.01)
    kept = mechanism.select(np.full(RUNS, support), source=SeededSource(seed=support))
    agree(kept.mask.tolist(), {True: p, False: 1 - p})
    both = mechanism.release_counts(np.full(RUNS, support), source=SeededSource(seed=support))
    # The count is n + c - J for a public c, J of the law pi(j) - pi(j-1), where J <= n.
    steps = [pi(j, 1, 0.01) - pi(j - 1, 1, 0.01) for j in range(1, support + 1)]
    shifted = sorted({int(v) for v in both.counts[both.mask]})
    top = max(shifted)
    law: dict[Hashable, float] = {None: 1 - p}
    law |= {top - j: step for j, step in enumerate(steps)}
    agree([int(c) if m else None for c, m in zip(both.counts, both.mask, strict=True)], law)


@pytest.mark.parametrize("support", [1, 7, 8, 12])
def test_gaussian_selection(support: int) -> None:
    """Named where round(support + Z) reaches the threshold of 8."""
    mechanism = GaussianSelection(noise_std=3, threshold=8)
    law: dict[Hashable, float] = {None: normal((8 - support - 0.5) / 3)}
    for v in range(8, 40):
        law[v] = normal((v + 0.5 - support) / 3) - normal((v - 0.5 - support) / 3)
    both = mechanism.release_counts(np.full(RUNS, support), source=SeededSource(seed=support))
    agree([int(c) if m else None for c, m in zip(both.counts, both.mask, strict=True)], law)
    named = mechanism.select(np.full(RUNS, support), source=SeededSource(seed=support + 100))
    agree(named.mask.tolist(), {False: law[None], True: 1 - law[None]})


def test_propose_test_release() -> None:
    """A median that one more change could move far: passed by test noise alone, then noise of its own."""
    values = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])  # two replacements bring the median to the edge
    mechanism = MedianByTest(proposed=L1(1), test_epsilon=1.5, release_epsilon=0.25, delta=0.2)
    test, noise = laplace(1 / 1.5), laplace(4.0, reach=120)
    threshold = next(t for t in range(50) if sum(p for x, p in test.items() if x > t) <= 0.2)
    # Any bound of 1 holds on data of zeros and ones; beyond them everything is possible: four of five rows away.
    passing = sum(p for x, p in test.items() if 4 + x > threshold)
    seen = []
    source = SeededSource(seed=9)
    for _ in range(FEW):
        out = mechanism.release(values, source=source)
        seen.append(None if out.released is None else int(out.released.values))
    law: dict[Hashable, float] = {None: 1 - passing}
    law |= {1 + x: passing * p for x, p in noise.items()}
    agree(seen, law)


def permute_and_flip(scores: list[float], rate: float) -> dict[Hashable, float]:
    """All orders alike; each candidate in turn is taken with chance e^(-rate gap)."""
    best, law = max(scores), dict.fromkeys(range(len(scores)), 0.0)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0 / len(orders)
        for i in order:
            chance = math.exp(-rate * (best - scores[i]))
            law[i] += left * chance
            left *= 1 - chance
    return dict(law)


def exponential(scores: list[float], rate: float) -> dict[Hashable, float]:
    weights = [math.exp(rate * s) for s in scores]
    return {i: w / sum(weights) for i, w in enumerate(weights)}


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("kind", "law"), [(Exponential, exponential), (PermuteAndFlip, permute_and_flip)])
def test_selections(
    kind: type[Exponential], law: Callable[[list[float], float], dict[Hashable, float]], monotone: bool
) -> None:
    scores = [3.0, 1.5, 0.0, 3.0]
    mechanism = kind(epsilon=1, sensitivity=Score(1, monotone=monotone))
    source = SeededSource(seed=11)
    seen = [mechanism.choose(scores, source=source).index for _ in range(FEW)]
    agree(seen, law(scores, 1.0 if monotone else 0.5))


@pytest.mark.parametrize("categories", [2, 5])
def test_randomised_response(categories: int) -> None:
    mechanism = RandomizedResponse(epsilon=1, categories=categories)
    out = mechanism.release(np.full(RUNS, 1), source=SeededSource(seed=categories)).values
    total = math.e + categories - 1
    law: dict[Hashable, float] = {c: (math.e if c == 1 else 1) / total for c in range(categories)}
    agree(out.tolist(), law)


def test_geometric_noise() -> None:
    source = SeededSource(seed=13)
    mechanism = Geometric(epsilon=0.5)
    seen = [int(mechanism.release(7, source=source).values) for _ in range(FEW)]
    agree(seen, {7 + x: p for x, p in laplace(2.0).items()})
    cut = TruncatedGeometric(epsilon=0.5, low=5, high=9)
    source = SeededSource(seed=14)
    law: dict[Hashable, float] = dict.fromkeys(range(5, 10), 0.0)
    for x, p in laplace(2.0).items():
        law[min(max(7 + x, 5), 9)] += p
    agree([int(cut.release(7, source=source).values) for _ in range(FEW)], law)


def test_vectors_are_noised_one_by_one() -> None:
    mechanism = Laplace(sensitivity=L1(1), noise_scale=2)
    out = mechanism.release(np.zeros(RUNS, dtype=np.int64), source=SeededSource(seed=15)).values
    agree(out.tolist(), laplace(2.0))
    pairs = zip((out[::2] > 0).tolist(), (out[1::2] > 0).tolist(), strict=True)
    p = sum(v for x, v in laplace(2.0).items() if x > 0)
    agree(
        pairs,
        {(a, b): (p if a else 1 - p) * (p if b else 1 - p) for a in (False, True) for b in (False, True)},
    )


class Steered(Source):
    """Recorded words, one of them changed."""

    def __init__(self, seed: int, place: int | None) -> None:
        self._inner, self._place, self._at = SeededSource(seed=seed), place, 0

    @property
    def publishable(self) -> bool:
        return False

    def words(self, count: int) -> np.ndarray:
        out = self._inner.words(count)
        if self._place is not None and self._at <= self._place < self._at + count:
            out[self._place - self._at] ^= np.uint64(1 << 63)
        self._at += count
        return out


@pytest.mark.parametrize(
    "release",
    [
        lambda s: cells(*_stable(s), 64),
        lambda s: OptimalSelection(epsilon=1, delta=0.01).select(np.full(64, 5), source=s).mask.tolist(),
    ],
)
def test_a_word_decides_one_cell(release: Callable[[Source], list[object]]) -> None:
    """With one word changed, one cell changes at most, and each cell is changed by some word."""
    plain, changed = release(Steered(1, None)), set()
    for place in range(64):
        other = release(Steered(1, place))
        differing = [i for i, (a, b) in enumerate(zip(plain, other, strict=True)) if a != b]
        assert len(differing) <= 1
        changed.update(differing)
    assert len(changed) > 20


def _stable(source: Source) -> tuple[np.ndarray, np.ndarray]:
    mechanism = StableHistogram(noise=Laplace(sensitivity=L1(1), noise_scale=2), threshold=4)
    out = mechanism.release(np.full(64, 5), source=source)
    return out.positions, out.values
