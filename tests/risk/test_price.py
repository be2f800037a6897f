"""The price of privacy, the decomposition of risk, and bad input to optimal counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.mechanisms import Geometric
from tacit.risk import (
    Loss,
    curve,
    decompose,
    expected_errors,
    optimal_count,
    optimal_finite,
    price,
    sampling_error,
)
from tacit.risk.count import risk_body


def test_errors_in_closed_form() -> None:
    found = expected_errors("count", n=100, epsilon=0.1)
    assert found["geometric"] == Geometric(epsilon=0.1).expected_error()
    assert found["truncated geometric"] == pytest.approx(9.916085, abs=1e-6)
    assert found["laplace"] >= 10
    # E|X| of the two-sided geometric, from the definition.
    q = math.exp(-0.05)
    direct = 64 * sum(2 * k * (1 - q) / (1 + q) * q**k for k in range(2000))
    assert expected_errors("histogram", n=10**6, epsilon=0.1, cells=64)["geometric"] == pytest.approx(
        direct, rel=1e-9
    )


def test_a_price_names_both_numbers() -> None:
    found = price("count", n=1000, epsilon=1.0)
    assert found.mechanism in ("geometric", "truncated geometric")
    assert found.ratio == pytest.approx(1.0, abs=1e-6)
    assert set(found.to_dict()) == {
        "mechanism",
        "error",
        "lower_bound",
        "lower_bound_theorem",
        "assumptions",
        "ratio",
    }
    assert price("count", n=1000, epsilon=1.0, mechanism="laplace").ratio == pytest.approx(
        math.sinh(1), rel=1e-6
    )
    assert price("count", n=1000, epsilon=1.0, error=2.0).error == 2.0
    with pytest.raises(UnknownName):
        price("count", n=10, epsilon=1.0, mechanism="magic")
    with pytest.raises(InvalidParameter):
        price("count", n=10, epsilon=1.0, error=-1.0)


def test_a_curve_of_prices() -> None:
    points = curve("count", [0.1, 1.0], n=50)
    assert [e for e, _ in points] == [0.1, 1.0]
    assert points[0][1].error > points[1][1].error
    with pytest.raises(EmptyComposition):
        curve("count", [], n=50)


def test_sampling_error_from_the_definition() -> None:
    for n, p in ((1, 0.5), (10, 0.3), (7, 0.99), (50, 0.5), (20, 1e-3)):
        direct = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) * abs(k / n - p) for k in range(n + 1))
        assert sampling_error(n=n, share=p) == pytest.approx(direct, rel=1e-9)
        assert direct <= sampling_error(n=n) + 1e-12
    assert sampling_error(n=5, share=0.0) == 0.0


def test_decomposition() -> None:
    found = decompose(privacy=0.01, sampling=0.02)
    assert found.total == pytest.approx(0.03)
    assert found.benign
    with pytest.raises(InvalidParameter):
        decompose(privacy=-1, sampling=0)


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def test_the_risk_body_by_enumeration() -> None:
    """Random private 2 by 2 matrices lie inside the polygon, and its corners are private."""
    for epsilon in (0.05, 0.5, 1.0, 5.0):
        corners = risk_body(epsilon=epsilon)
        factor = math.exp(epsilon)
        generator = np.random.default_rng(5)
        for a, b in generator.uniform(0, 1, size=(300, 2)):
            private = (
                a <= factor * b
                and b <= factor * a
                and 1 - a <= factor * (1 - b)
                and 1 - b <= factor * (1 - a)
            )
            point = np.array([1 - a, b])
            turns = [_turn(corners[i], corners[(i + 1) % 4], point) for i in range(4)]
            inside = max(turns) <= 1e-12 or min(turns) >= -1e-12
            assert private == inside


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "ten"])
def test_bad_ranges(n: object) -> None:
    with pytest.raises(InvalidParameter, match="n must"):
        optimal_count(n=n, epsilon=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e5, "one", True])
def test_bad_epsilons(epsilon: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilon must"):
        optimal_count(n=5, epsilon=epsilon)  # type: ignore[arg-type]


def test_bad_losses() -> None:
    for table in ([[0.0, -1.0], [1.0, 0.0]], [[0.0, math.inf], [1.0, 0.0]], [[0.0, math.nan], [1.0, 0.0]]):
        with pytest.raises(InvalidParameter, match="finite and at least 0"):
            optimal_count(n=1, epsilon=1, loss=table)
    with pytest.raises(UnknownName, match="absolute"):
        optimal_count(n=1, epsilon=1, loss="absolut")
    with pytest.raises(InvalidParameter, match="row for each"):
        optimal_count(n=3, epsilon=1, loss=[[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InvalidParameter, match="matrix"):
        optimal_count(n=1, epsilon=1, loss=[[0.0, "x"], [1.0, 0.0]])  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="two rows"):
        optimal_count(n=1, epsilon=1, loss=[0.0, 1.0])  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="be a matrix here"):
        optimal_finite(loss="absolute", neighbours=[(0, 1)], epsilon=1)
    assert Loss(name="absolute").is_convex()


def test_bad_priors_and_criteria() -> None:
    for prior, words in (
        ([0.5, 0.6], "sum to 1"),
        ([1.0], "one number for each"),
        ([1.5, -0.5], "at least 0"),
        ("x", "list"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            optimal_count(n=1, epsilon=1, criterion="bayes", prior=prior)
    with pytest.raises(InvalidParameter, match="left out"):
        optimal_count(n=1, epsilon=1, prior=[0.5, 0.5])
    with pytest.raises(UnknownName, match="minimax"):
        optimal_count(n=1, epsilon=1, criterion="minimaxi")


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="full linear program"):
        optimal_count(n=300, epsilon=1, delta=1e-6)
    with pytest.raises(InvalidParameter, match="prior"):
        optimal_count(n=10**9, epsilon=1, criterion="bayes")
    with pytest.raises(InvalidParameter, match="delta"):
        optimal_count(n=3, epsilon=1, delta=1)
    with pytest.raises(InvalidParameter, match="different states"):
        optimal_finite(loss=[[0.0, 1.0], [1.0, 0.0]], neighbours=[(0, 0)], epsilon=1)
    with pytest.raises(InvalidParameter, match="whole matrix"):
        _ = optimal_count(n=10**7, epsilon=3).matrix
