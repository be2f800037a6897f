"""Integer noise of a thousand steps: priced at all, and by the curve of its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.accounting import account
from tacit.accounting import events as e


def losses_of(epsilon: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses and P-masses of discrete Laplace noise, Pr ~ exp(-epsilon |x|/steps), moved by `steps`."""
    rate = epsilon / steps
    x = np.arange(-100 * steps, 101 * steps)
    masses = math.tanh(rate / 2) * np.exp(-rate * np.abs(x))
    return rate * (np.abs(x - steps) - np.abs(x)), masses


def delta_of(parts: list[tuple[float, int]], epsilon: float) -> float:
    """H_epsilon of the product of two, from the two lists of losses."""
    (first, p), (second, q) = (losses_of(*part) for part in parts)
    # Equal losses are put together before the product is made.
    at, back = np.unique(np.round(second, 12), return_inverse=True)
    weights = np.bincount(back, weights=q)
    total = 0.0
    for loss, mass in zip(at, weights, strict=True):
        total += mass * float(np.sum(p * np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss - first, 0.0)))))
    return total


@pytest.mark.parametrize("steps", [512, 1020, 1024, 1300])
def test_a_thousand_steps_beside_two(steps: int) -> None:
    plan = [
        e.DiscreteLaplaceEvent(epsilon=0.5, sensitivity=steps),
        e.DiscreteLaplaceEvent(epsilon=0.5, sensitivity=2),
    ]
    exact = delta_of([(0.5, steps), (0.5, 2)], 0.5)
    found = account(plan, epsilon=0.5, neighbours="replace-one")
    assert found.delta.low * (1 - 1e-9) <= exact <= found.delta.high * (1 + 1e-9)
    assert found.delta.width <= 1e-3 * exact
    assert account(plan, delta=1e-6).epsilon.high <= 1.0


def test_means_of_two_replaced_people_at_once_have_a_price() -> None:
    unit = tacit.group_of(tacit.people("id", at_most=1, neighbours="replace-one"), size=2)
    for high in (128, 255, 256, 300, 512):
        curator = tacit.Curator(
            "/nowhere/at/all.parquet",
            protect=unit,
            schema={"age": tacit.integer(0, high)},
            budget=tacit.Approximate(epsilon=2, delta=1e-5),
        )
        plan = curator.preview([tacit.mean("age"), tacit.count()], epsilon=1.0, delta=1e-6)
        assert plan.charged.bound.epsilon_at(1e-6) <= 1.0
