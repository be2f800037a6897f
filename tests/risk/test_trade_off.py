"""Lower bounds with a delta, in mu and in rho: below exact optima, at what is attained, and by a second computation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidParameter
from tacit.guarantees import Neighbours
from tacit.risk import optimal_count, release_price
from tacit.risk.releases import (
    ApproximateOverlap,
    ConcentratedOverlap,
    GaussianOverlap,
    ReleaseOverlap,
    count_trade_off,
    least_count,
)


@pytest.mark.parametrize(
    ("n", "epsilon", "delta"),
    [(3, 1.0, 0.3), (6, 1.0, 0.01), (10, 0.5, 0.1), (14, 0.2, 0.05), (12, 2.0, 0.2), (20, 0.5, 1e-3)],
)
def test_it_is_below_the_best_mechanism_by_the_full_program(n: int, epsilon: float, delta: float) -> None:
    best = optimal_count(n=n, epsilon=epsilon, delta=delta, loss="absolute", criterion="minimax")
    floor = count_trade_off(ApproximateOverlap(epsilon=epsilon, delta=delta), n)
    assert 0.4 * best.certificate.risk < floor < best.certificate.lower_bound


def test_for_a_long_range_pure_noise_and_gaussian_noise_attain_it() -> None:
    for epsilon in (1e-4, 0.1, 1.0, 4.0):
        floor = count_trade_off(ApproximateOverlap(epsilon=epsilon), None)
        assert 0.9999 / math.sinh(epsilon) < floor <= 1 / math.sinh(epsilon)
    for mu in (1e-3, 0.1, 0.5):
        floor, error = count_trade_off(GaussianOverlap(mu=mu), None), math.sqrt(2 / math.pi) / mu
        assert 0.98 * error < floor <= error
    for rho in (1e-6, 1e-3):
        floor, error = count_trade_off(ConcentratedOverlap(rho=rho), None), 1 / math.sqrt(math.pi * rho)
        assert 0.5 * error < floor < error


def iterated(power: Any, distance: int) -> float:
    """1 - TV by going through all levels of a fixed event, from the definition."""
    start = np.linspace(0, 1, 200_001)
    level = start
    for _ in range(distance):
        level = power(level)
    return float(np.min(1 - (level - start)))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (0.5, 0.02), (1.0, 0.1), (2.0, 1e-4)])
def test_the_overlap_of_approximate_privacy_by_iterating_the_definition(epsilon: float, delta: float) -> None:
    def power(p: Any) -> Any:
        return np.minimum(
            1, np.minimum(delta + math.exp(epsilon) * p, 1 - math.exp(-epsilon) * (1 - delta - p))
        )

    for distance in (1, 3, 5, 9):
        assert ApproximateOverlap(epsilon=epsilon, delta=delta).at(distance) == pytest.approx(
            iterated(power, distance), abs=1e-4
        )


def test_the_overlaps_are_below_those_of_real_noise() -> None:
    from scipy.special import ndtr

    for distance in (1, 3, 7):
        for std in (1.0, 4.0):
            real = 2 * ndtr(-distance / std / 2)
            assert GaussianOverlap(mu=1 / std).at(distance) <= real
            assert ConcentratedOverlap(rho=1 / (2 * std**2)).at(distance) <= real


@pytest.mark.parametrize(
    "overlap",
    [ApproximateOverlap(epsilon=0.1, delta=1e-3), GaussianOverlap(mu=0.02), ConcentratedOverlap(rho=1e-3)],
)
def test_it_grows_with_the_range_and_holds_from_the_n_that_it_names(overlap: ReleaseOverlap) -> None:
    values = [count_trade_off(overlap, n) for n in (1, 3, 10, 30, 100, 1000, 10**6)]
    assert values == sorted(values)
    assert values[-1] <= count_trade_off(overlap, None) * (1 + 1e-9)
    value, least = least_count(overlap, 0.9)
    assert value <= count_trade_off(overlap, least) * (1 + 1e-6)
    # By all odd distances one after the other, with the range written out.
    n = 100
    plain = sum((1 - t / (n + 1)) * overlap.at(t) for t in range(1, n + 1, 2))
    assert count_trade_off(overlap, n) == pytest.approx(plain, rel=1e-6)


def test_prices_of_releases_have_it() -> None:
    about: dict[str, Any] = {"error": 4.0, "neighbours": Neighbours.ADD_OR_REMOVE}
    for promise in ({"epsilon": 0.5, "delta": 1e-6}, {"mu": 0.2}, {"rho": 0.02}):
        found = release_price("histogram", cells=4, **about, **promise)
        assert found.theorem == "count-trade-off"
        assert found.lower_bound is not None
        assert 1 <= (found.ratio or 0) < 3
    for bad in (
        {},
        {"epsilon": 1, "mu": 1},
        {"mu": 1, "delta": 0.1},
        {"epsilon": 1, "delta": 1},
        {"rho": -1},
    ):
        with pytest.raises(InvalidParameter):
            release_price("count", **about, **bad)
    # More delta is worth more: the floor sinks.
    floors = [release_price("count", **about, epsilon=0.5, delta=d).lower_bound for d in (1e-9, 1e-3, 0.05)]
    assert floors == sorted(floors, reverse=True)


def test_plans_say_how_near_gaussian_noise_is_to_the_best() -> None:
    curator = tacit.Curator(
        "nowhere.csv", protect=tacit.rows(), schema={"g": tacit.category(["a", "b"])},
        budget=tacit.GaussianDP(mu=1),
    )  # fmt: skip
    planned = curator.preview(tacit.count(by="g"), mu=0.2).releases[0]
    assert planned.expected.floor_record["ratio"] == pytest.approx(1.0, abs=0.01)
