"""The price of a release in closed form: below the exact values, near them where it should be, and quick."""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.guarantees import Neighbours
from tacit.mechanisms import Geometric
from tacit.report.figures import draw_prices, price_table
from tacit.risk import ReleasePrice, optimal_finite, quick_count, release_price
from tacit.risk.minimax import exact_count

ADD, REPLACE = Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE_ONE


def test_the_closed_form_is_below_the_exact_value() -> None:
    for n, e in itertools.product((1, 2, 5, 17, 60), (0.01, 0.1, 0.5, 1.0, 3.0)):
        exact = exact_count(n, e)
        assert 0 < quick_count(n, e) <= exact * (1 + 1e-6), (n, e)
        assert quick_count(n, e) >= 0.75 * exact, (n, e)


def test_the_closed_form_from_its_proof() -> None:
    """The sum over pairs before it is closed, added up term by term."""
    for n, e in ((50, 0.5), (200, 0.1), (60, 1.0)):
        q = math.exp(-e)
        c = (1 - q) / (1 + q)
        pairs = sum(2 * c * d * q**d * (1 - 2 * d / (n + 1)) for d in range(1, n // 2 + 1))
        assert (
            1 / math.sinh(e) - 1 / ((n + 1) * math.sinh(e / 2) ** 2)
            <= pairs
            <= exact_count(n, e) * (1 + 1e-6)
        )


def test_geometric_noise_is_best_without_a_largest_count() -> None:
    for e in (0.01, 0.3, 2.0, 10.0):
        error = Geometric(epsilon=e).expected_error()
        assert quick_count(None, e) <= error
        found = release_price("count", error=error, epsilon=e, neighbours=ADD)
        assert found.ratio == pytest.approx(1.0, abs=1e-8)
        assert found.least_n is None
        # And every finite range stays below its limit.
        assert quick_count(10**9, e) <= quick_count(None, e)


@given(e=st.floats(0.01, 5), p=st.integers(1, 300), n=st.one_of(st.none(), st.integers(1, 10**7)))
@settings(max_examples=80, deadline=None)
def test_dense_histograms_under_add_or_remove_are_near_the_best(e: float, p: int, n: int | None) -> None:
    error = 1 / math.sinh(e)
    found = release_price("histogram", error=error, epsilon=e, neighbours=ADD, cells=p, n=n)
    if n is None:
        assert found.ratio == pytest.approx(1.0, abs=1e-7)
    elif found.lower_bound is not None:
        assert found.lower_bound <= error
        if n >= p * 80 / e + 80 * p:
            assert found.ratio is not None
            assert found.ratio <= 1.1


def test_replace_one_says_from_which_n_on() -> None:
    found = release_price("histogram", error=20.0, epsilon=0.1, neighbours=REPLACE, cells=10)
    assert found.lower_bound == pytest.approx(0.9 / math.sinh(0.1), rel=1e-6)
    assert found.least_n is not None
    # At that n the bound with n known is at least as large.
    again = release_price("histogram", error=20.0, epsilon=0.1, neighbours=REPLACE, cells=10, n=found.least_n)
    assert again.lower_bound is not None
    assert found.lower_bound is not None
    assert again.lower_bound >= found.lower_bound * (1 - 1e-8)
    one = release_price("count", error=10.0, epsilon=0.8, neighbours=REPLACE)
    assert one.least_n is not None
    assert one.lower_bound is not None
    assert exact_count(one.least_n, 0.8) >= one.lower_bound


def _rows(n: int, values: list[int]) -> list[tuple[int, ...]]:
    return [s for s in itertools.product(range(n + 1), repeat=len(values)) if sum(s) == n]


@pytest.mark.parametrize(("n", "low", "high", "epsilon"), [(2, 0, 2, 0.5), (3, -1, 1, 1.0), (3, 1, 3, 0.3)])
def test_sums_and_means_are_below_the_exact_optimum(n: int, low: int, high: int, epsilon: float) -> None:
    """All data sets of n rows with whole values in [low, high], by the full program."""
    values = list(range(low, high + 1))
    states = _rows(n, values)
    sums = [sum(v * k for v, k in zip(values, s, strict=True)) for s in states]
    outputs = np.arange(n * low, n * high + 1)
    loss = np.abs(np.array(sums)[:, None] - outputs).astype(float)
    pairs = [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(states), 2)
        if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 2
    ]
    best = optimal_finite(loss=loss, neighbours=pairs, epsilon=epsilon).certificate.risk
    found = release_price(
        "sum", error=10 * best, epsilon=epsilon, neighbours=REPLACE, n=n, low=float(low), high=float(high)
    )
    assert found.lower_bound is not None
    assert 0.3 * best <= found.lower_bound <= best
    mean = release_price(
        "mean", error=10 * best, epsilon=epsilon, neighbours=REPLACE, n=n, low=float(low), high=float(high)
    )
    assert mean.lower_bound == pytest.approx(found.lower_bound / n, rel=1e-9)


@pytest.mark.parametrize(("people", "rows", "epsilon"), [(1, 2, 0.5), (2, 2, 1.0), (2, 3, 0.4)])
def test_counts_of_people_with_several_rows(people: int, rows: int, epsilon: float) -> None:
    """Up to so many people with 1..rows rows each, add-or-remove: states are multisets of sizes."""
    states = [s for s in itertools.product(range(people + 1), repeat=rows) if sum(s) <= people]
    counts = [sum((i + 1) * k for i, k in enumerate(s)) for s in states]
    loss = np.abs(np.array(counts)[:, None] - np.arange(people * rows + 1)).astype(float)
    pairs = [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(states), 2)
        if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 1
    ]
    best = optimal_finite(loss=loss, neighbours=pairs, epsilon=epsilon).certificate.risk
    found = release_price("count", error=10 * best, epsilon=epsilon, neighbours=ADD, n=people, at_most=rows)
    assert found.lower_bound is not None
    assert 0.3 * best <= found.lower_bound <= best
    assert found.theorem == "embedded-counts"


def test_margins() -> None:
    wide = release_price("margins", error=9.0, epsilon=0.5, neighbours=ADD, cells=6, attributes=3)
    assert wide.lower_bound == pytest.approx(0.5 / math.sinh(0.5), rel=1e-8)
    ones = release_price("margins", error=9.0, epsilon=0.5, neighbours=REPLACE, cells=3, attributes=3, n=50)
    assert ones.lower_bound == pytest.approx(quick_count(50, 0.5), rel=1e-8)


def test_where_nothing_is_known_it_says_so() -> None:
    about = {"error": 1.0, "epsilon": 1.0, "neighbours": REPLACE}
    for problem, more, word in (
        ("mean", {}, "unknown number"),
        ("mean", {"n": 100, "cells": 3}, "groups"),
        ("count", {"epsilon": 700.0}, "above 500"),
        ("histogram", {"cells": 1, "n": 5}, "too few"),
        ("count", {"error": 0.01, "n": 100}, "not the worst case"),
    ):
        found = release_price(problem, **{**about, **more})  # type: ignore[arg-type]
        assert isinstance(found, ReleasePrice)
        assert found.ratio is None
        assert found.reason is not None
        assert word in found.reason
        assert found.to_dict()["reason"] == found.reason
    with pytest.raises(UnknownName):
        release_price("quantile", **about)  # type: ignore[arg-type]
    for more in ({"error": 0.0}, {"epsilon": -1}, {"cells": 0}, {"n": 0}, {"low": 2.0}, {"at_most": 0}):
        with pytest.raises(InvalidParameter):
            release_price("count", **{**about, **more})  # type: ignore[arg-type]


def test_it_is_quick() -> None:
    """Two milliseconds each, with room for a busy machine: a linear program would take a thousand times that."""
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for n in (None, 10, 10**6):
            release_price("histogram", error=50.0, epsilon=0.1, neighbours=REPLACE, cells=1000, n=n)
        best = min(best, time.perf_counter() - start)
    assert best < 0.006


def test_the_drawn_table_is_in_order(tmp_path: Path) -> None:
    """Mechanisms above the lower bound at every epsilon, for every problem; the best count upon it."""
    for problem, n, about in (
        ("count", 40, {}),
        ("count", 5000, {}),
        ("histogram", 5000, {"cells": 8, "neighbours": ADD}),
        ("margins", 5000, {"attributes": 12}),
        ("sparse-histogram", 5000, {"cells": 4096, "occupied": 30}),
    ):
        at, errors, floors = price_table(problem, n=n, epsilons=[0.05, 0.4, 3.0], **about)
        assert at == [0.05, 0.4, 3.0]
        assert min(floors) > 0
        for values in errors.values():
            assert all(floor <= value for floor, value in zip(floors, values, strict=True)), problem
        if n == 40:
            assert errors["best for this range"] == pytest.approx(floors, rel=1e-6)
    draw_prices("histogram", tmp_path / "prices.svg", n=900, epsilons=[0.1, 1.0], cells=5)
    assert (tmp_path / "prices.svg").stat().st_size > 5000
    with pytest.raises(EmptyComposition):
        price_table("count", n=5, epsilons=[])
