"""The least parameter that meets a target: the same whatever was guessed, and checked where it is returned."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.mechanisms import L2, Gaussian
from tacit.mechanisms.gaussian import RELATIVE, least


@pytest.mark.parametrize("truth", [3e-9, 0.37, 1.0, 41.0, 7e8])
@pytest.mark.parametrize(
    "off", [None, 0.0, 1e-7, -1e-7, 1e-5, -1e-5, 3e-4, -3e-4, 0.01, -0.5, 20.0, -1.0, -2.0]
)
def test_a_guess_changes_the_work_and_not_the_answer(truth: float, off: float | None) -> None:
    asked: list[Fraction] = []

    def meets(value: Fraction) -> bool:
        asked.append(value)
        return value >= Fraction(truth)

    found = least(meets, Fraction(1), None if off is None else truth * (1 + off))
    assert found in asked
    assert Fraction(truth) <= found <= Fraction(truth) * (1 + Fraction(2 * RELATIVE))
    if off == 0.0:
        assert len(asked) == 2


@pytest.mark.parametrize("square", [1, 2, 5])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (8.0, 1e-5)])
def test_gaussian_noise_for_a_target_is_the_least_whose_own_curve_meets_it(
    square: int, epsilon: float, delta: float
) -> None:
    found = Gaussian.for_target(epsilon=epsilon, delta=delta, sensitivity=L2.root(square), dimension=3)
    assert found.delta(epsilon) <= delta
    smaller = Gaussian(
        sensitivity=L2.root(square), noise_std=Fraction(found.noise_std) * Fraction(9998, 10000), dimension=3
    )
    assert smaller.delta(epsilon) > delta
