"""Noise is never smaller than the claim needs: scales are the exact quotients, and roots are rounded up."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.mechanisms import (
    L1,
    L2,
    CountSensitivity,
    CumulativeTree,
    Gaussian,
    Geometric,
    Laplace,
    MedianByTest,
    PolytopeNorm,
    RangeNorm,
    TruncatedGeometric,
)
from tacit.mechanisms.strategies import Budget, block_mechanism

THIRDS = [Fraction(1, 3), Fraction(3), Fraction(7, 11), Fraction(10**20 + 1, 3)]


@pytest.mark.parametrize("epsilon", THIRDS)
def test_laplace_scales_are_exact_quotients(epsilon: Fraction) -> None:
    """No third is a float: a scale that went through one would be too small for every second epsilon."""
    for sensitivity in (1, 5):
        one = Laplace.for_target(epsilon=epsilon, sensitivity=L1(sensitivity))
        assert Fraction(one.noise_scale) == one.distribution.noise_scale == sensitivity / epsilon
        assert (
            Geometric(epsilon=epsilon, sensitivity=CountSensitivity(sensitivity)).distribution.noise_scale
            == sensitivity / epsilon
        )
        cut = TruncatedGeometric(epsilon=epsilon, low=0, high=5, sensitivity=CountSensitivity(sensitivity))
        assert cut.distribution.noise_scale == sensitivity / epsilon
        fine = Laplace.for_target(epsilon=epsilon, sensitivity=L1(sensitivity), spacing=Fraction(1, 8))
        assert fine.distribution.noise_scale == 8 * sensitivity / epsilon
        points = PolytopeNorm.for_target(epsilon=epsilon, points=[(1, 0), (0, 1)], times=sensitivity)
        assert points.noise_scale == sensitivity / epsilon
        assert (
            RangeNorm.for_target(epsilon=epsilon, dimension=2, times=sensitivity).noise_scale
            == sensitivity / epsilon
        )
    tree = CumulativeTree(bins=64, l1=2, epsilon=epsilon)
    assert tree.distribution.noise_scale * tree.spacing == len(tree.widths) * 2 / epsilon
    tested = MedianByTest(proposed=L1(3), test_epsilon=epsilon, release_epsilon=2 * epsilon, delta=1e-6)
    assert tested._test_distribution.noise_scale == 1 / epsilon
    assert tested.distribution.noise_scale == 3 / (2 * epsilon)


@pytest.mark.parametrize("rho", [Fraction(1, 3), Fraction(1, 7), Fraction(5, 11), Fraction(1, 10)])
def test_gaussian_roots_are_rounded_up(rho: Fraction) -> None:
    """rho = sensitivity^2 / (2 noise_std^2) must not exceed what was asked for, in exact numbers."""
    for square in (1, 2, 3, 7):
        noise = Gaussian.for_rho(rho=rho, sensitivity=L2.root(square))
        assert square / (2 * Fraction(noise.noise_std) ** 2) <= rho
        assert square / (2 * Fraction(noise.noise_std) ** 2) >= rho * (1 - Fraction(1, 1 << 40))


def test_blocks_of_a_budget_round_up_too() -> None:
    budget = Budget(epsilon=Fraction(1), delta=1e-6, mu=Fraction(1, 3))
    for share in (Fraction(1), Fraction(1, 3), Fraction(2, 7)):
        for move in (1, 2, 3):
            noise = block_mechanism(4, move, share, budget, gaussian=True)
            assert move / Fraction(noise.noise_std) ** 2 <= budget.mu**2 * share  # type: ignore[union-attr]


def test_roots_in_sensitivities_are_rounded_up() -> None:
    for square in (2, 3, 5, Fraction(1, 3)):
        assert L2.root(square).exact ** 2 >= square
        assert L2.root(square).square == square
