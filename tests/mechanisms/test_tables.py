"""Noise for several tables at once: the law that `release()` draws, what it hides, and how far it errs.

Laws are written down from their densities, and enumerated on a small grid. Releases run on fixed seeds; six standard
deviations are less likely than 1e-8 for each outcome.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import L1, L2, Laplace, RoundedGaussian, ShapedTables, margin_errors
from tacit.mechanisms.tables import CellSums
from tacit.noise import SeededSource

RUNS = 2500
WAYS: list[dict[str, bool]] = [
    {}, {"complete": True}, {"replaced": True}, {"replaced": True, "complete": True},
    {"replaced": True, "complete": True, "fixed": True},
]  # fmt: skip


def span(x: np.ndarray) -> np.ndarray:
    """The gauge of range-norm noise."""
    return np.maximum(x.max(axis=0), 0) - np.minimum(x.min(axis=0), 0)


def largest(x: np.ndarray) -> np.ndarray:
    return np.abs(x).max(axis=0)


def enumerated(gauge: Any, scale: float, reach: int = 12, fine: int = 12) -> dict[tuple[int, int], float]:
    """Pr[rounding of two coordinates] for the density e^(-gauge / scale): the mean over a fine grid in each cell."""
    side = (np.arange((2 * reach + 1) * fine) + 0.5) / fine - reach - 0.5
    mass = np.exp(-gauge(np.stack(np.meshgrid(side, side, indexing="ij"))) / scale)
    cells = mass.reshape(2 * reach + 1, fine, 2 * reach + 1, fine).sum(axis=(1, 3))
    cells /= cells.sum()
    return {(i - reach, j - reach): float(cells[i, j]) for i, j in np.ndindex(cells.shape)}


def agree(seen: Counter[Any], law: dict[Any, float]) -> None:
    for outcome, p in law.items():
        slack = 6 * math.sqrt(RUNS * p * (1 - p)) + 1 + RUNS * p * 0.02
        assert abs(seen[outcome] - RUNS * p) <= slack, outcome


def drawn(mechanism: ShapedTables, counts: list[Any], seed: int) -> list[Any]:
    source = SeededSource(seed=seed)
    return [[v.tolist() for v in mechanism.release(counts, source=source).values] for _ in range(RUNS)]


def test_the_law_of_two_counts_and_their_number_by_enumeration() -> None:
    """One table of two keys, all rows counted: (rows, first key) has range-norm noise, the last is the difference."""
    mechanism = ShapedTables.for_target(epsilon=2, sizes=[2], complete=True)
    seen = drawn(mechanism, [np.array([7, 4])], seed=1)
    agree(Counter((a + b - 11, a - 7) for ((a, b),) in seen), enumerated(span, 0.5))


def test_the_law_of_two_counts_that_are_replaced_by_enumeration() -> None:
    """Two keys that rows may lack: cube noise on both. With rows that never lack one: on the first alone."""
    mechanism = ShapedTables.for_target(epsilon=2, sizes=[2], replaced=True)
    seen = drawn(mechanism, [np.array([7, 4])], seed=2)
    agree(Counter((a - 7, b - 4) for ((a, b),) in seen), enumerated(largest, 0.5))
    fixed = ShapedTables.for_target(epsilon=2, sizes=[2], replaced=True, complete=True, fixed=True)
    seen = drawn(fixed, [np.array([7, 4])], seed=3)
    assert all(a + b == 11 for ((a, b),) in seen)
    # A Laplace variable of scale 1/2, rounded.
    law = {0: 1 - math.exp(-1)} | {
        k: (math.exp(-2 * abs(k) + 1) - math.exp(-2 * abs(k) - 1)) / 2 for k in range(-6, 7) if k
    }
    agree(Counter(a - 7 for ((a, _),) in seen), law)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_gets_noise_is_moved_by_no_more_than_the_claim(way: dict[str, bool]) -> None:
    """All rows that can come, go or be replaced, by definition; the move in the gauge of the law that is drawn."""
    sizes = [2, 3, 2]
    mechanism = ShapedTables.for_target(epsilon=1, sizes=sizes, times=2, **way)
    keys = [range(s) if mechanism.complete else range(-1, s) for s in sizes]
    rows = [
        [np.eye(s, dtype=int)[k] * (k >= 0) for s, k in zip(sizes, row, strict=True)]
        for row in itertools.product(*keys)
    ]
    none = [np.zeros(s, dtype=int) for s in sizes]

    def noised(tables: list[np.ndarray]) -> np.ndarray:
        if not mechanism.complete:
            return np.concatenate(tables)
        total = [] if mechanism.fixed else [tables[0].sum(keepdims=True)]
        return np.concatenate([*total, *(t[:-1] for t in tables)])

    others = rows if mechanism.replaced else [none]
    if mechanism.replaced and not mechanism.fixed:
        others = [*rows, none]
    gauge = largest if mechanism.replaced else span
    moves = [float(gauge(noised(a) - noised(b))) for a in rows for b in others]
    assert max(moves) == 1
    assert len(noised(none)) == mechanism.coordinates == mechanism.noise.coordinates
    # Two rows of one unit: twice the move, which the scale is made for.
    assert mechanism.noise._scale == 2
    assert mechanism.epsilon == 1
    assert mechanism.bound.epsilon == 1


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_errors_are_those_that_are_seen(way: dict[str, bool]) -> None:
    sizes = [2, 3, 4]
    mechanism = ShapedTables.for_target(epsilon=Fraction(1, 2), sizes=sizes, **way)
    source, runs = SeededSource(seed=4), 700
    noise = [
        mechanism.release([np.zeros(s, dtype=int) for s in sizes], source=source).values for _ in range(runs)
    ]
    held = zip(mechanism.mean_sizes(), mechanism.variances(), mechanism.error_quantiles(), strict=True)
    for table, (mean, variance, within) in enumerate(held):
        seen = np.array([n[table] for n in noise], dtype=float)
        std = math.sqrt(variance)
        assert abs(np.abs(seen).mean() - mean) <= 7 * std / math.sqrt(runs) + 0.05 * mean
        assert seen.var() == pytest.approx(variance, rel=0.25)
        for cell, limit in enumerate(within):
            inside = (np.abs(seen[:, cell]) <= limit).mean()
            assert inside >= 0.95 - 6 * math.sqrt(0.95 * 0.05 / runs)
            assert inside <= 0.999


def test_eight_margins_err_as_the_library_knows() -> None:
    apart = ShapedTables.for_target(epsilon=1, sizes=[2] * 8)
    whole = ShapedTables.for_target(epsilon=1, sizes=[2] * 8, complete=True)
    assert apart.mean_sizes() == pytest.approx([6.0] * 8, rel=2e-3)
    assert whole.mean_sizes() == pytest.approx([11 / 3] * 8, rel=2e-3)
    for mechanism, complete in ((apart, False), (whole, True)):
        best = margin_errors(sizes=[2] * 8, order=1, epsilon=1, complete=complete)[0]
        assert np.mean(mechanism.mean_sizes()) == pytest.approx(best.absolute / 16, rel=2e-3)


@pytest.mark.parametrize("gaussian", [False, True])
def test_sums_of_noisy_cells_err_like_their_number(gaussian: bool) -> None:
    places = (np.arange(24) // 8, np.arange(24) % 2, np.array([-1] * 4 + [0] * 20))
    noise: Any = Laplace.for_target(epsilon=Fraction(1, 3), sensitivity=L1(1))
    if gaussian:
        noise = RoundedGaussian(sensitivity=L2(1), noise_std=3, dimension=24)
    mechanism = CellSums(noise=noise, sums=places)
    source, runs, true = SeededSource(seed=6), 3000, np.arange(24)
    released = [mechanism.release(true, source=source).values for _ in range(runs)]
    exact = [np.array([sum(true[p == k]) for k in range(p.max() + 1)]) for p in places]
    errors = zip(mechanism.mean_sizes(), mechanism.variances(), mechanism.error_quantiles(), strict=True)
    for table, (mean, variance, within) in enumerate(errors):
        seen = np.array([r[table] - exact[table] for r in released], dtype=float)
        assert seen.var() == pytest.approx(variance, rel=0.15)
        assert np.abs(seen).mean() == pytest.approx(mean, rel=0.05)
        inside = (np.abs(seen) <= within).mean(axis=0)
        assert (inside >= 0.95 - 6 * math.sqrt(0.95 * 0.05 / runs)).all()
        assert (inside <= 0.975).all()


def test_what_cannot_be_is_refused() -> None:
    for bad in (
        {"sizes": []}, {"sizes": [0]}, {"sizes": [1], "replaced": True, "complete": True, "fixed": True},
        {"sizes": [2], "fixed": True}, {"sizes": [2], "complete": "yes"}, {"sizes": [2], "times": 1.5},
        {"sizes": [1025]},
    ):  # fmt: skip
        with pytest.raises(InvalidParameter):
            ShapedTables.for_target(epsilon=1, **bad)
    mechanism = ShapedTables.for_target(epsilon=1, sizes=[2, 2])
    with pytest.raises(InvalidParameter):
        mechanism.release([np.zeros(2, dtype=int)])
    with pytest.raises(InvalidParameter):
        CellSums(noise=mechanism, sums=(np.zeros(3, dtype=int),))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        CellSums(noise=Laplace.for_target(epsilon=1, sensitivity=L1(1)), sums=())
    large = [np.array([1 << 70, 5]), np.array([3, 4])]
    assert mechanism.release(large, source=SeededSource(seed=1)).values[0][0] > 1 << 69
