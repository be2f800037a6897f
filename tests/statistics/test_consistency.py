"""Projections to valid histograms: true minima on small cases, idempotent, and nothing valid is moved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.statistics.consistency import is_valid_histogram, nearest_histogram, nearest_rows

entries = st.one_of(
    st.integers(-6, 6),
    st.sampled_from([-2.5, -0.5, -0.25, 0.25, 0.5, 0.75, 1.5, 2.25, 3.9]),
    st.floats(-5, 5),
)


def compositions(n: int, cells: int):
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, cells - 1):
            yield (first, *rest)


def cost(t, z, w, norm) -> float:
    d = np.abs(np.asarray(t, dtype=float) - np.asarray(z, dtype=float))
    return float((np.asarray(w) * (d if norm == "l1" else d**2)).sum())


@settings(max_examples=300, deadline=None)
@given(z=st.lists(entries, min_size=1, max_size=4), n=st.integers(0, 7), norm=st.sampled_from(["l1", "l2"]))
def test_the_true_minimum_for_a_total(z, n, norm):
    found = nearest_histogram(z, total=n, norm=norm)
    assert is_valid_histogram(found, total=n)
    best = min(cost(t, z, 1, norm) for t in compositions(n, len(z)))
    assert cost(found, z, 1, norm) <= best + 1e-12
    np.testing.assert_array_equal(nearest_histogram(found, total=n, norm=norm), found)


@settings(max_examples=400, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(entries, st.sampled_from([0.1, 0.5, 1.0, 2.0, 7.0])), min_size=1, max_size=4
    ),
    n=st.integers(0, 7),
    norm=st.sampled_from(["l1", "l2"]),
)  # fmt: skip
def test_the_true_minimum_with_weights(pairs, n, norm):
    z, w = zip(*pairs, strict=True)
    found = nearest_histogram(z, total=n, norm=norm, weights=w)
    assert is_valid_histogram(found, total=n)
    best = min(cost(t, z, w, norm) for t in compositions(n, len(z)))
    assert cost(found, z, w, norm) <= best + 1e-9
    np.testing.assert_array_equal(nearest_histogram(found, total=n, norm=norm, weights=w), found)


@given(z=st.lists(entries, min_size=0, max_size=4), norm=st.sampled_from(["l1", "l2"]))
def test_without_a_total_each_cell_goes_to_its_nearest(z, norm):
    found = nearest_histogram(z, norm=norm)
    assert is_valid_histogram(found)
    for t, v in zip(found, z, strict=True):
        assert abs(int(t) - v) <= min(abs(k - v) for k in range(8)) + 1e-12
    np.testing.assert_array_equal(nearest_histogram(found, norm=norm), found)


@given(
    valid=st.lists(st.integers(0, 10**6), min_size=1, max_size=30),
    weighted=st.booleans(),
    norm=st.sampled_from(["l1", "l2"]),
)
def test_a_valid_histogram_never_moves(valid, weighted, norm):
    w = 1.0 + np.arange(len(valid)) % 3 if weighted else None
    found = nearest_histogram(valid, total=sum(valid), norm=norm, weights=w)
    np.testing.assert_array_equal(found, valid)
    np.testing.assert_array_equal(nearest_histogram(valid, norm=norm), valid)


def test_rows_are_projected_one_by_one():
    rng = np.random.default_rng(3)
    z = rng.integers(-9, 9, (40, 5))
    totals = rng.integers(0, 30, 40)
    both = nearest_rows(z, totals)
    for row, n, found in zip(z, totals, both, strict=True):
        np.testing.assert_array_equal(found, nearest_histogram(row, total=int(n)))


def test_shapes_large_numbers_and_even_ties():
    z = np.array([[3, -2], [5, 0]])
    assert nearest_histogram(z, total=4).shape == (2, 2)
    huge = nearest_histogram([1 << 80, -(1 << 70), 7], total=(1 << 80) + 1)
    assert sum(int(v) for v in huge) == (1 << 80) + 1
    assert nearest_histogram([2.0**70, 1.0], total=1 << 70).tolist() in ([2**70 - 1, 1], [2**70, 0])
    spread = nearest_histogram(np.full(100, 5), total=504)
    assert np.diff(np.flatnonzero(spread == 6)).tolist() == [32, 32, 32]
    assert nearest_histogram([], total=0).size == 0


def test_the_two_norms_meet_in_one_answer_and_weights_change_it():
    z = [9, 1, -4]
    assert nearest_histogram(z, total=6).tolist() == nearest_histogram(z, total=6, norm="l1").tolist()
    heavy = nearest_histogram(z, total=6, norm="l1", weights=[9.0, 1.0, 1.0])
    assert heavy.tolist() == [6, 0, 0]
    assert nearest_histogram([9, 5, 0], total=12, norm="l1", weights=[9.0, 1.0, 1.0]).tolist() == [9, 3, 0]


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"total": -1}, InvalidParameter),
        ({"total": 1.5}, InvalidParameter),
        ({"total": True}, InvalidParameter),
        ({"norm": "l3"}, UnknownName),
        ({"total": 3, "weights": [1.0]}, InvalidParameter),
        ({"total": 3, "weights": [1.0, 0.0]}, InvalidParameter),
        ({"total": 3, "weights": [1.0, np.nan]}, InvalidParameter),
    ],
)
def test_bad_input(keywords, error):
    with pytest.raises(error):
        nearest_histogram([1, 2], **keywords)


def test_more_bad_input():
    for noisy in ([np.nan, 1.0], ["a", "b"], [np.inf]):
        with pytest.raises(InvalidParameter):
            nearest_histogram(noisy, total=1)
    with pytest.raises(EmptyComposition):
        nearest_histogram([], total=2)
    with pytest.raises(InvalidParameter):
        nearest_histogram([1 << 70, 3], total=5, weights=[1.0, 2.0])


def test_a_million_cells_take_less_than_a_second():
    import time

    rng = np.random.default_rng(1)
    z = rng.geometric(0.1, 10**6) - rng.geometric(0.1, 10**6) + 3
    times = []
    for _ in range(3):
        start = time.process_time()
        found = nearest_histogram(z, total=10**6)
        times.append(time.process_time() - start)
    assert is_valid_histogram(found, total=10**6)
    assert min(times) < 1.0, times
