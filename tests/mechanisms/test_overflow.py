"""Large integers: nothing wraps around, nothing is lost to a float before it cancels, types tell only the sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from tacit.exact.checks import add_exact, integer_array, narrowed
from tacit.mechanisms import (
    L1,
    InterquartileRangeByTest,
    Laplace,
    MedianByTest,
    RandomizedResponse,
    RangeTree,
    StableHistogram,
    smooth_bound,
)
from tacit.mechanisms.propose_test_release import distance_to_instability
from tacit.noise import SeededSource

HUGE = 1 << 70


def _median(values: tuple[int, ...]) -> int:
    return sorted(values)[(len(values) + 1) // 2 - 1]


def _local(values: tuple[int, ...]) -> int:
    """How far replacing one row by anything moves the lower median: far values are enough, by monotony."""
    here = _median(values)
    moves = [
        abs(_median((*values[:i], new, *values[i + 1 :])) - here)
        for i in range(len(values))
        for new in (-HUGE, HUGE, *values)
    ]
    return max(moves)


def _distance(values: tuple[int, ...], steps: int) -> int:
    """The least number of replaced rows that give data whose local sensitivity is above `steps`."""
    for k in range(len(values) + 1):
        for places in itertools.combinations(range(len(values)), k):
            for news in itertools.product((-HUGE, HUGE, *values), repeat=k):
                changed = list(values)
                for place, new in zip(places, news, strict=True):
                    changed[place] = new
                if _local(tuple(changed)) > steps:
                    return k
    raise AssertionError


@pytest.mark.parametrize(
    "values",
    [
        (-(1 << 62), -(1 << 62), 1 << 62, 1 << 62, 1 << 62),
        (-(1 << 63), 0, (1 << 63) - 1),
        (-(1 << 63), -(1 << 63), (1 << 63) - 1, (1 << 63) - 1),
        (0, 1, 2, 3, 4),
        (5, 5, 5, 5, 5),
    ],
)
def test_distances_to_instability_by_definition(values: tuple[int, ...]) -> None:
    """Spans of 2^63 and more once read as negative, hence as perfectly stable."""
    rank = (len(values) + 1) // 2
    for steps in (1, 1000, (1 << 63) - 1):
        assert distance_to_instability(list(values), rank=rank, steps=steps) == _distance(values, steps)


@pytest.mark.parametrize(("kind", "below"), [(MedianByTest, 100), (InterquartileRangeByTest, 50)])
def test_data_at_both_ends_of_64_bits_do_not_pass_as_stable(kind: type[MedianByTest], below: int) -> None:
    mechanism = kind(proposed=L1(1), test_epsilon=1, release_epsilon=1, delta=1e-6)
    halves = np.array([-(1 << 62)] * below + [1 << 62] * (201 - below), dtype=np.int64)
    assert mechanism._distance(np.sort(halves)) == 0
    told = [mechanism.release(halves, source=SeededSource(seed=s)).passed for s in range(50)]
    assert not any(told)


def _smooth(values: list[int], low: int, high: int, beta: Fraction) -> Fraction:
    """max over i <= m <= j of (x_j - x_i) e^(-beta (j - i - 1)): the definition, in balls of 300 bits."""
    x = [low, *sorted(min(max(v, low), high) for v in values), high]
    m = (len(values) + 1) // 2
    with flint.ctx.workprec(300):
        rate = flint.arb(flint.fmpq(beta.numerator, beta.denominator))
        best = max(
            (
                (x[j] - x[i]) * (-rate * (j - i - 1)).exp()
                for i in range(m + 1)
                for j in range(m, len(x))
                if i < j
            ),
            key=lambda b: b.mid(),
        )
        return Fraction(int((best * 2**80).mid().floor().unique_fmpz()), 2**80)


@pytest.mark.parametrize("beta", [Fraction(1, 2), Fraction(3)])
def test_smooth_bounds_of_nanoseconds(beta: Fraction) -> None:
    """Floats of 1.7e18 are 256 apart: taken before the subtraction, they lost gaps of some hundred nanoseconds."""
    start = 1_700_000_000_000_000_000
    low, high = start - (1 << 60), start + (1 << 60)
    near = [start + 100 * k for k in range(40)]
    for values in (near, [*near[:-1], high], [*near[:-1], low], [*near[1:], start + 10]):
        found = smooth_bound(values, beta=beta, low=low, high=high).exact
        true = _smooth(values, low, high, beta)
        assert true * (1 - Fraction(1, 1 << 40)) <= found <= true * (1 + Fraction(1, 1 << 20))


def test_smooth_bounds_of_very_long_integers() -> None:
    low, high = 0, 10**300
    values = [10**300 // 2 + k for k in range(9)]
    found = smooth_bound(np.array(values, dtype=object), beta=3, low=low, high=high).exact
    true = _smooth(values, low, high, Fraction(3))
    assert true * (1 - Fraction(1, 1 << 40)) <= found <= true * (1 + Fraction(1, 1 << 20))


def test_trees_add_up_without_wrapping() -> None:
    tree = RangeTree.plan(cells=4, epsilon=1, branching=2)
    cells = [1 << 62, 1 << 62, 1 << 62, 5]
    out = tree.release(cells, source=SeededSource(seed=1))
    root = out.levels[0]
    assert root is not None
    assert abs(int(root.values[0]) - sum(cells)) < 10**6
    assert math.isclose(out.range(0, 3), float(sum(cells)), rel_tol=1e-9)


def test_types_follow_from_the_sums() -> None:
    """Neighbours at 2^62 once had int64 on one side and Python integers on the other."""
    mechanism = Laplace.for_target(epsilon=1, sensitivity=L1(1))
    for edge in (1 << 62, -(1 << 62)):
        kinds = {
            mechanism.release(np.array([edge + move]), source=SeededSource(seed=4)).values.dtype
            for move in (-1, 0, 1)
        }
        assert kinds == {np.dtype(np.int64)}
    top = (1 << 63) - 1
    assert add_exact(np.array([top]), np.array([0])).dtype == np.int64
    assert add_exact(np.array([top], dtype=object), np.array([0])).dtype == np.int64
    assert (
        add_exact(np.array([1 << 70], dtype=object), np.array([-(1 << 70)], dtype=object)).dtype == np.int64
    )
    assert add_exact(np.array([top]), np.array([1])).tolist() == [top + 1]
    assert narrowed(np.array([1, 1 << 63], dtype=object)).dtype == object
    assert narrowed(np.array([-(1 << 63), top], dtype=object)).dtype == np.int64


def test_hidden_cells_do_not_widen_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = StableHistogram.for_target(epsilon=1, delta=1e-6, sensitivity=L1(1))
    noise = np.array([0, -(1 << 90)], dtype=object)
    monkeypatch.setattr(type(mechanism.noise.distribution), "sample", lambda *_, **__: noise)
    out = mechanism.release([1000, 1000])
    assert out.positions.tolist() == [0]
    assert out.values.dtype == np.int64


def test_many_categories_do_not_wrap() -> None:
    many = (1 << 63) - 1
    mechanism = RandomizedResponse(epsilon=Fraction(1, 1000), categories=many)
    for seed in range(20):
        told = mechanism.release([many - 1], source=SeededSource(seed=seed)).values
        assert 0 <= int(told[0]) < many
        assert told.dtype == np.int64


@pytest.mark.parametrize(
    "masked",
    [
        np.ma.masked_array([5, 6], mask=[True, False]),
        [np.ma.masked_array([5], mask=[True])],
    ],
)
def test_masks_are_not_dropped(masked: object) -> None:
    from tacit.errors import InvalidParameter

    with pytest.raises(InvalidParameter, match="mask"):
        integer_array(masked)  # type: ignore[arg-type]
