"""The inversion of curves that are dear to evaluate: it ends above the crossing, near it, and soon.

Curves are written down with their crossings; what is counted is how often they are asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tacit.pld.engine import _crossed

CURVES: dict[str, tuple[Callable[[float], float], int]] = {
    "exponential": (lambda e: math.exp(-3 * e), 20),
    "Gaussian": (lambda e: math.exp(-(e**2) / 2 - 0.1 * e), 20),
    "to a power": (lambda e: 1 / (1 + e) ** 8, 25),
    "with a corner": (lambda e: max(math.exp(-20 * e), math.exp(-1 - e)), 30),
    "ends in 0": (lambda e: max(0.0, 1 - e / 7.3), 60),
    "a step": (lambda e: 1.0 if e < math.pi else 1e-300, 75),
    "a cliff": (lambda e: 0.5 * math.exp(-e / 1000) if e < 41.7 else 0.0, 60),
    "far away": (lambda e: math.exp(-e / 1e5), 40),
    "near 0": (lambda e: math.exp(-e * 1e6), 50),
}


@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12])
@pytest.mark.parametrize("name", CURVES)
def test_a_curve_is_crossed_from_above_and_soon(name: str, delta: float) -> None:
    curve, most = CURVES[name]
    asked: list[float] = []

    def upper(epsilon: float) -> float:
        asked.append(epsilon)
        return curve(epsilon)

    found = _crossed(upper, delta)
    assert curve(found) <= delta
    assert curve(found * (1 - 2.1e-9)) > delta
    assert len(asked) <= most


def test_curves_that_start_below_or_never_get_there() -> None:
    assert _crossed(lambda e: 1e-3, 1e-2) == 0.0
    assert _crossed(lambda e: 0.0, 1e-2) == 0.0
    assert _crossed(lambda e: 0.5, 1e-2) == math.inf


@pytest.mark.parametrize("near", [2.0, 2.302585 / 3, 1e-3, 500.0])
def test_a_guess_changes_the_way_and_not_the_answer(near: float) -> None:
    asked: list[float] = []

    def upper(epsilon: float) -> float:
        asked.append(epsilon)
        return math.exp(-3 * epsilon)

    found = _crossed(upper, 0.1, near)
    assert upper(found) <= 0.1
    assert upper(found * (1 - 2.1e-9)) > 0.1
    assert len(asked) <= (12 if abs(near - found) < 1e-3 * found else 40)
