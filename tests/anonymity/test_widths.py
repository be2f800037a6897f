"""Privacy as the width of an interval, and what is left of it: by grids of possible values."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from tacit.anonymity import interval_width, width_left
from tacit.errors import InvalidInput


def shortest(
    released: list[float], low: float, high: float, noise: str, scale: float, confidence: float
) -> float:
    """The posterior on a fine grid, and the shortest run of its points with this mass."""
    x = np.linspace(low, high, 20_001)
    weights = np.ones_like(x)
    for y in released:
        weights *= (np.abs(y - x) <= scale) if noise == "uniform" else np.exp(-(((y - x) / scale) ** 2) / 2)
    mass = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
    ends = np.searchsorted(mass, mass[:-1] + confidence)
    inside = ends < mass.size
    return float((ends[inside] - np.flatnonzero(inside)).min()) * (x[1] - x[0])


@pytest.mark.parametrize("seed", range(50))
def test_what_is_left_is_the_shortest_interval(seed: int) -> None:
    dice = random.Random(seed)
    noise, scale = dice.choice(["uniform", "normal"]), dice.uniform(2, 30)
    true = dice.uniform(0, 100)
    released = [
        true + (dice.uniform(-scale, scale) if noise == "uniform" else dice.gauss(0, scale))
        for _ in range(dice.randint(1, 3))
    ]
    confidence = dice.choice([0.5, 0.9, 0.95])
    found = width_left(released, low=0, high=100, noise=noise, scale=scale, confidence=confidence)
    assert found == pytest.approx(shortest(released, 0, 100, noise, scale, confidence), abs=0.05)
    if len(released) == 1:
        assert found <= interval_width(noise=noise, scale=scale, confidence=confidence) * (1 + 1e-9)


def test_the_measure_and_what_breaks_it() -> None:
    assert interval_width(noise="uniform", scale=20, confidence=0.95) == pytest.approx(38)
    assert interval_width(noise="normal", scale=10, confidence=0.95) == pytest.approx(
        2 * 1.959964 * 10, rel=1e-6
    )
    # The value at the edge of the range, and two releases far apart.
    assert width_left([120.0], low=0, high=100, noise="uniform", scale=20, confidence=0.95) == 0
    assert width_left([31, 69], low=0, high=100, noise="uniform", scale=20, confidence=0.95) == pytest.approx(
        1.9
    )
    assert width_left([900.0], low=0, high=100, noise="normal", scale=5, confidence=0.95) < 1
    # k releases of normal noise leave a root of k less.
    one, many = (
        width_left([50.0] * k, low=-1e4, high=1e4, noise="normal", scale=10, confidence=0.9) for k in (1, 100)
    )
    assert one / many == pytest.approx(10, rel=1e-6)
    assert math.isclose(one, interval_width(noise="normal", scale=10, confidence=0.9), rel_tol=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        {"released": []},
        {"low": 100.0},
        {"noise": "laplace"},
        {"scale": 0.0},
        {"confidence": 1.0},
        {"released": [0.0, 90.0]},
        {"released": [math.nan]},
    ],
)
def test_what_is_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "released": [50.0], "low": 0.0, "high": 100.0, "noise": "uniform", "scale": 20.0, "confidence": 0.95,
    }  # fmt: skip
    made = {**good, **bad}
    with pytest.raises(InvalidInput):
        width_left(made.pop("released"), **made)
