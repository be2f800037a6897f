"""No lower bound may exceed the error of a mechanism, nor the exact optimum where that can be computed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidParameter, UnknownName
from tacit.guarantees import Neighbours
from tacit.risk import (
    expected_errors,
    lower_bound,
    lower_bounds,
    optimal_count,
    optimal_finite,
    uniform_count,
)
from tacit.risk.minimax import margins_cube, sparse_packing, sparse_product

GRID = [
    (problem, n, e, p, q, k)
    for problem, n, e, (p, q), k in itertools.product(
        ("count", "histogram", "sparse-histogram", "margins"),
        (1, 3, 20, 120),
        (0.02, 0.3, 1.0, 4.0),
        ((2, 1), (7, 3), (64, 22), (1000, 4)),
        (1, 3, 30),
    )
    # One value of what the problem does not use is enough.
    if (problem in ("histogram", "sparse-histogram") or p == 2) and (problem == "margins" or k == 1)
]


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_every_bound_is_below_every_mechanism(neighbours: Neighbours) -> None:
    for problem, n, e, p, q, k in GRID:
        about = {"n": n, "epsilon": e, "cells": p, "occupied": q, "attributes": k, "neighbours": neighbours}
        errors = expected_errors(problem, **about)
        for found in lower_bounds(problem, **about):
            assert 0 <= found.value <= min(errors.values()), (found, problem, about, errors)


def test_every_count_bound_is_below_the_optimum() -> None:
    for n, e in itertools.product((1, 2, 7, 30, 100), (0.01, 0.1, 0.5, 1.5, 5.0)):
        best = optimal_count(n=n, epsilon=e).certificate.risk
        for found in lower_bounds("count", n=n, epsilon=e):
            assert found.value <= best


@given(
    n=st.integers(1, 40),
    e=st.floats(0.01, 6),
    p=st.integers(2, 50),
    q=st.integers(1, 50),
    k=st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_bounds_hold_at_random_places(n: int, e: float, p: int, q: int, k: int) -> None:
    for problem in ("count", "histogram", "sparse-histogram", "margins"):
        about = {"n": n, "epsilon": e, "cells": p, "occupied": min(p, q), "attributes": k}
        errors = expected_errors(problem, **about)
        assert all(b.value <= min(errors.values()) for b in lower_bounds(problem, **about))


# --- exact optima on small data -------------------------------------------------------------------------


def histograms(n: int, cells: int) -> list[tuple[int, ...]]:
    return [h for h in itertools.product(range(n + 1), repeat=cells) if sum(h) == n]


def replaced(states: list[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Pairs of histograms that differ by one row."""
    return [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(states), 2)
        if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 2
    ]


@pytest.mark.parametrize(("n", "cells", "epsilon"), [(2, 3, 0.5), (3, 3, 1.0), (2, 4, 0.2), (4, 3, 0.3)])
def test_histogram_bounds_are_below_the_exact_optimum(n: int, cells: int, epsilon: float) -> None:
    states = histograms(n, cells)
    # Outputs on a larger set than the states: the optimum may want other points.
    outputs = list(itertools.product(range(n + 1), repeat=cells)) if cells == 3 else states
    loss = np.array(
        [[sum(abs(a - b) for a, b in zip(s, o, strict=True)) for o in outputs] for s in states], dtype=float
    )
    best = optimal_finite(loss=loss, neighbours=replaced(states), epsilon=epsilon).certificate
    assert best.relative_gap < 1e-6
    for found in lower_bounds("histogram", n=n, cells=cells, epsilon=epsilon):
        assert found.value <= best.risk + 1e-9
    for occupied in range(1, cells + 1):
        allowed = [i for i, s in enumerate(states) if sum(v > 0 for v in s) <= occupied]
        # The worst case over sparse histograms only; privacy still holds over all.
        sparse = loss.copy()
        sparse[[i for i in range(len(states)) if i not in allowed]] = 0.0
        exact = optimal_finite(loss=sparse, neighbours=replaced(states), epsilon=epsilon).certificate.risk
        for found in lower_bounds("sparse-histogram", n=n, cells=cells, occupied=occupied, epsilon=epsilon):
            assert found.value <= exact + 1e-9, (found, occupied)


@pytest.mark.parametrize(("n", "attributes", "epsilon"), [(2, 2, 0.5), (3, 2, 1.0), (2, 3, 0.3), (1, 3, 1.0)])
def test_margin_bounds_are_below_the_exact_optimum(n: int, attributes: int, epsilon: float) -> None:
    corners = list(itertools.product((0, 1), repeat=attributes))
    states = histograms(n, len(corners)) if attributes == 2 else _tables(n, corners)
    outputs = list(itertools.product(range(n + 1), repeat=attributes))

    def margins(state: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sum(c[i] * v for c, v in zip(corners, state, strict=True)) for i in range(attributes))

    loss = np.array(
        [[sum(abs(a - b) for a, b in zip(margins(s), o, strict=True)) for o in outputs] for s in states],
        dtype=float,
    )
    best = optimal_finite(loss=loss, neighbours=replaced(states), epsilon=epsilon).certificate.risk
    for found in lower_bounds("margins", n=n, attributes=attributes, epsilon=epsilon):
        assert found.value <= best + 1e-9


def _tables(n: int, corners: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    found = set()
    for rows in itertools.combinations_with_replacement(range(len(corners)), n):
        found.add(tuple(rows.count(c) for c in range(len(corners))))
    return sorted(found)


# --- how good they are ----------------------------------------------------------------------------------


def test_bounds_reach_half_of_the_best_error() -> None:
    for n, e in ((1, 0.5), (50, 0.05), (250, 0.1), (250, 2.0)):
        assert (
            lower_bound("count", n=n, epsilon=e).value >= 0.5 * optimal_count(n=n, epsilon=e).certificate.risk
        )
    for p, n, e in ((2, 200, 0.5), (10, 1500, 0.3), (64, 6400, 1.0)):
        best = min(expected_errors("histogram", n=n, epsilon=e, cells=p).values())
        # Noise costs p/sinh(e/2) and the bound tends to p/sinh(e): half of it, up to cosh(e/2).
        assert lower_bound("histogram", n=n, epsilon=e, cells=p).value >= 0.5 / math.cosh(e / 2) * best * 0.97


def test_bounds_are_not_vacuous() -> None:
    found = lower_bound("sparse-histogram", n=21574, epsilon=1.0, cells=65536, occupied=3152)
    assert found.name == "sparse-product"
    assert found.value > 4000
    assert lower_bound("margins", n=10_000, epsilon=1.0, attributes=100).name == "margins-cube"
    assert margins_cube(100, 10_000, 1.0) > 0.04 * 100**2
    assert sparse_packing(65536, 3152, 21574, 1.0) > 1000
    assert sparse_product(10**9, 2, 1000, 1.0) > 10


def test_halls_bound_only_where_it_holds() -> None:
    named = {b.name: b.value for b in lower_bounds("count", n=10, epsilon=0.01)}
    assert named["count-rate"] == 0.0
    assert optimal_count(n=10, epsilon=0.01).certificate.risk < math.exp(-2) / 0.01
    named = {b.name: b.value for b in lower_bounds("count", n=600, epsilon=0.01)}
    assert named["count-rate"] == pytest.approx(math.exp(-2) / 0.01, rel=1e-8)
    assert named["count-rate"] <= named["count-packing"] <= named["optimal-count-remap"]


def test_the_uniform_bound_holds_at_every_count() -> None:
    for n, e in ((20, 0.2), (60, 0.1), (30, 1.0)):
        found = optimal_count(n=n, epsilon=e)
        risks = found.risks()
        least = uniform_count(n=n, epsilon=e, worst_error=float(risks.max()))
        assert 0 < least <= risks.min()
        assert uniform_count(n=n, epsilon=e, worst_error=float(risks.max()), delta=1e-3) <= least
    # A mechanism that is perfect somewhere is bad elsewhere: saying 0 always has worst error n.
    assert uniform_count(n=20, epsilon=0.2, worst_error=20) == 0.0


def test_bad_input() -> None:
    with pytest.raises(UnknownName, match="histogram"):
        lower_bound("histogramm", n=1, epsilon=1)
    for about in (
        {"n": 0, "epsilon": 1},
        {"n": 5, "epsilon": 0},
        {"n": 5, "epsilon": math.nan},
        {"n": 5, "epsilon": 1e4},
    ):
        with pytest.raises(InvalidParameter):
            lower_bound("count", **about)
    with pytest.raises(InvalidParameter, match="cells"):
        lower_bound("histogram", n=5, epsilon=1, cells=1)
    with pytest.raises(InvalidParameter, match="occupied"):
        lower_bound("sparse-histogram", n=5, epsilon=1, cells=3, occupied=4)
    with pytest.raises(InvalidParameter, match="worst_error"):
        uniform_count(n=5, epsilon=1, worst_error=-1)
    with pytest.raises(InvalidParameter, match="delta"):
        uniform_count(n=5, epsilon=1, worst_error=1, delta=1)
