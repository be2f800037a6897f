"""Products whose largest loss has a mass of its own, where delta lies below it: the ordinary plan of a few releases."""

from __future__ import annotations

import itertools
import math

import pytest
from scipy.integrate import quad

from tacit.accounting import account, events
from tacit.accounting.accountants import _renyi_below, bound_of
from tacit.accounting.events import RepeatedEvent, flatten
from tacit.guarantees.bounds.base import COMMON_ORDERS
from tacit.guarantees.units import Neighbours
from tacit.pld import LaplacePair, Product


def one(epsilon: float, top: float) -> float:
    """H_epsilon of one Laplace pair with largest loss `top`, for any real epsilon, from the densities."""
    if epsilon >= top:
        return 0.0
    return -math.expm1(epsilon) if epsilon < -top else -math.expm1((epsilon - top) / 2)


def two(epsilon: float, first: float, second: float) -> float:
    """H_epsilon of two: the loss of the first has atoms at both ends and the density e^((l - first)/2)/4 between."""
    ends = 0.5 * one(epsilon - first, second) + 0.5 * math.exp(-first) * one(epsilon + first, second)
    kinks = sorted({-first, first, *(k for k in (epsilon - second, epsilon + second) if abs(k) < first)})
    inner = sum(
        quad(lambda x: math.exp((x - first) / 2) / 4 * one(epsilon - x, second), a, b, epsabs=1e-14)[0]
        for a, b in itertools.pairwise(kinks)
    )
    return ends + inner


def exact(delta: float, first: float, second: float) -> float:
    low, high = 0.0, first + second
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if two(middle, first, second) > delta else (low, middle)
    return high


@pytest.mark.parametrize("delta", [0.1, 1e-2, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(("first", "second"), [(0.354, 0.707), (0.05, 1.0), (0.9, 1.1), (3.0, 0.2)])
def test_two_different_laplace_releases(first: float, second: float, delta: float) -> None:
    found = account(
        [events.LaplaceEvent(epsilon=first), events.LaplaceEvent(epsilon=second)], delta=delta
    ).epsilon
    assert found.low - 1e-9 <= exact(delta, first, second) <= found.high + 1e-9
    assert found.width <= 1e-3


@pytest.mark.parametrize("epsilon", [0.2, 0.8, 1.0, 1.05])
def test_their_delta_too(epsilon: float) -> None:
    pairs = Product(pairs=[(LaplacePair(epsilon=0.354), 1), (LaplacePair(epsilon=0.707), 1)])
    found = pairs.delta(epsilon)
    assert found.low - 1e-12 <= two(epsilon, 0.354, 0.707) <= found.high + 1e-12
    assert found.width <= 1e-3


@pytest.mark.parametrize("times", range(2, 41))
def test_equal_laplace_releases_keep_both_ends(times: int) -> None:
    """Every number of releases: none falls between two ways of computing."""
    for delta in (1e-3, 1e-6, 1e-9, 1e-12):
        found = account(
            [RepeatedEvent(event=events.LaplaceEvent(epsilon=0.1), times=times)], delta=delta
        ).epsilon
        assert found.width <= 1e-3
        assert found.high <= 0.1 * times * (1 + 1e-12)


def test_fifteen_laplace_releases() -> None:
    """0.1-Laplace fifteen times at 1e-6: 1.4702."""
    found = account([RepeatedEvent(event=events.LaplaceEvent(epsilon=0.1), times=15)], delta=1e-6).epsilon
    assert found.low <= 1.4702 <= found.high + 5e-5
    assert found.width <= 1e-3


@pytest.mark.parametrize("kind", [events.LaplaceEvent, events.RandomizedResponseEvent])
@pytest.mark.parametrize("count", [2, 5, 10, 30])
def test_some_different_releases_have_two_ends(kind: type, count: int) -> None:
    plan = [kind(epsilon=0.05 + 0.9 * ((k * 0.618) % 1)) for k in range(count)]
    for delta in (1e-3, 1e-6, 1e-12):
        found = account(plan, delta=delta).epsilon
        assert found.width <= 1e-3 * max(1.0, found.high)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_orders_that_cannot_win_are_left_out_and_no_others(delta: float) -> None:
    """The Rényi bound below a given epsilon is that of all orders, where that is below it; else there is none."""
    sampled = events.PoissonSampledEvent(event=events.ConcentratedEvent(rho=0.05), sampling_rate=0.05)
    parts = flatten([RepeatedEvent(event=sampled, times=20), events.LaplaceEvent(epsilon=0.1)])
    relation = Neighbours.ADD_OR_REMOVE
    every = bound_of([e for e, n in parts for _ in range(n)], accountant="renyi", neighbours=relation)
    whole = every.epsilon(delta)
    some = _renyi_below(parts, relation, delta, whole * 1.01)
    assert some is not None
    assert some.epsilon(delta) == whole
    assert len(some.orders) < len(COMMON_ORDERS)
    less = _renyi_below(parts, relation, delta, whole * 0.99)
    assert less is None or less.epsilon(delta) >= whole * 0.99
