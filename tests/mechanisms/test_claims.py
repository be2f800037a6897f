"""Every claim against the definition: ratios of probabilities over neighbours, on a dense set of outputs.

Two sides each time: no output exceeds e^epsilon (or e^epsilon Q + delta), and some output reaches 95% of epsilon.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from support.claims import ROUND, mass, tight, worst_loss
from tacit.mechanisms import (
    L1,
    L2,
    CountSensitivity,
    Gaussian,
    Geometric,
    Laplace,
    RandomizedResponse,
    RoundedGaussian,
    Staircase,
    TruncatedGeometric,
)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 8])
@pytest.mark.parametrize(("value", "spacing"), [(1, 1), (3, 1), (0.75, 0.25), (2.5, 1)])
def test_laplace_in_one_dimension(epsilon, value, spacing) -> None:
    mechanism = Laplace.for_target(epsilon=epsilon, sensitivity=L1(value), spacing=spacing)
    assert float(mechanism.bound.epsilon) == pytest.approx(epsilon, rel=1e-15)
    assert tight(worst_loss(mechanism.distribution, math.floor(value / spacing), 12), mechanism.bound.epsilon)


def test_laplace_in_three_dimensions_splits_its_move() -> None:
    mechanism = Laplace.for_target(epsilon=1, sensitivity=L1(2))
    log = {k: math.log(mass(mechanism.distribution, k)) for k in range(-8, 9)}
    worst = 0.0
    for move in itertools.product(range(-2, 3), repeat=3):
        if sum(map(abs, move)) <= 2:
            for out in itertools.product(range(-4, 5), repeat=3):
                worst = max(worst, sum(log[o] - log[o - m] for o, m in zip(out, move, strict=True)))
    assert tight(worst, mechanism.bound.epsilon)


def test_the_laplace_curve_is_its_own_sum() -> None:
    """delta(e) = sum over outputs of max(0, P - e^e Q), and a vector's move is no worse than a scalar's."""
    for steps in (1, 2, 5):
        mechanism = Laplace.for_target(epsilon=1.5, sensitivity=L1(steps))
        p = np.array([mass(mechanism.distribution, k) for k in range(-200, 201)])
        for e in (0.0, 0.3, 1.0, 1.49):
            summed = float(np.maximum(p - math.exp(e) * np.roll(p, steps), 0).sum())
            assert mechanism.profile.delta(e) == pytest.approx(summed, rel=1e-9, abs=1e-12)
            assert mechanism.profile.delta(e) >= summed * (1 - 1e-12)
            assert mechanism.profile.delta(e) <= mechanism.bound.delta(e) * ROUND
    two = np.outer(p, p)
    split = np.maximum(two - math.exp(0.3) * np.roll(np.roll(two, 2, 0), 3, 1), 0).sum()
    assert split <= mechanism.profile.delta(0.3)


def test_the_laplace_curve_on_fine_grids_covers_the_discrete_law() -> None:
    """The discrete curve is above the continuous one with the same epsilon; the wider one is above both."""
    rate = Fraction(1, 2)
    coarse = Laplace(sensitivity=L1(4), noise_scale=1 / rate)
    continuous = lambda e, own: 1 - math.exp((e - own) / 2)  # noqa: E731
    above = False
    for e in np.linspace(0, 1.99, 40):
        exact = coarse.profile.delta(float(e))
        above |= exact > continuous(e, 2.0) * (1 + 1e-9)
        assert exact <= continuous(e, 2.0 + 2 * math.log(math.cosh(0.25))) + 1e-12
    assert above
    fine = Laplace.for_target(epsilon=1, sensitivity=L1(1), spacing=2.0**-20)
    assert fine.profile.delta(0.5) == pytest.approx(1 - math.exp(-0.25), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 1, 5])
@pytest.mark.parametrize("steps", [1, 3])
def test_geometric_and_staircase(epsilon, steps) -> None:
    geometric = Geometric(epsilon=epsilon, sensitivity=CountSensitivity(steps))
    assert tight(worst_loss(geometric.distribution, steps, 10), geometric.bound.epsilon)
    for spacing in (1, 0.125):
        stairs = Staircase(epsilon=epsilon, sensitivity=L1(steps), spacing=spacing)
        shift = int(steps / spacing)
        assert tight(worst_loss(stairs.distribution, shift, 3 * shift), stairs.bound.epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_truncated_geometric(epsilon) -> None:
    mechanism = TruncatedGeometric(epsilon=epsilon, low=-2, high=7)
    matrix = np.array(
        [[np.mean(mechanism.probability(y, count=x)) for y in range(-2, 8)] for x in range(-2, 8)]
    )
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-14)
    losses = np.abs(np.log(matrix[1:]) - np.log(matrix[:-1]))
    assert tight(float(losses.max()), mechanism.bound.epsilon)


@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_randomized_response(epsilon, categories) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)
    lie = mechanism.expected_error()
    rows = np.full((categories, categories), lie / (categories - 1)) + np.eye(categories) * (
        1 - lie - lie / (categories - 1)
    )
    losses = [np.abs(np.log(a / b)).max() for a, b in itertools.permutations(rows, 2)]
    assert tight(max(losses), mechanism.bound.epsilon)
    for e in (0.0, epsilon / 2):
        summed = max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in itertools.permutations(rows, 2))
        assert mechanism.profile.delta(e) == pytest.approx(summed, rel=1e-9)


@pytest.mark.parametrize(("std", "steps"), [(0.5, 1), (1.0, 2), (3.0, 1), (20.0, 7)])
def test_gaussian_in_one_dimension_sums_its_own_curve(std, steps) -> None:
    mechanism = Gaussian(sensitivity=L2(steps), noise_std=std)
    x = np.arange(-int(40 * std) - 40, int(40 * std) + 41)
    w = np.exp(-(x**2) / (2 * std**2))
    p = w / math.fsum(w)
    for e in (0.0, 0.5, 1.0, 3.0):
        summed = max(
            math.fsum(np.maximum(p - math.exp(e) * np.roll(p, s), 0).tolist()) for s in range(1, steps + 1)
        )
        assert mechanism.delta(e) == pytest.approx(summed, rel=1e-9, abs=1e-15)
        assert mechanism.delta(e) >= summed * (1 - 1e-11)
        assert mechanism.bound.delta(e) == pytest.approx(summed, rel=1e-9, abs=1e-15)
    loss = steps * (x + steps / 2) / std**2  # of the output x, moved by all the steps
    order = 3.0
    renyi = math.log(math.fsum((p * np.exp((order - 1) * -loss)).tolist())) / (order - 1)
    assert renyi <= order * mechanism.rho * (1 + 1e-9)


def test_the_discrete_gaussian_is_not_the_continuous_one() -> None:
    from tacit.guarantees import GaussianDP as Curve

    mechanism = Gaussian(sensitivity=L2(1), noise_std=0.5)
    ratios = [mechanism.delta(e) / Curve(mu=2.0).delta(float(e)) for e in np.linspace(0.1, 30, 60)]
    assert max(ratios) > 5


@pytest.mark.parametrize(("square", "std", "dimension"), [(2, 1.5, 2), (2, 2.0, 3), (4, 2.0, 2), (5, 2.0, 2)])
def test_gaussian_vectors_over_all_integer_moves(square, std, dimension) -> None:
    mechanism = Gaussian(sensitivity=L2.root(square), noise_std=std, dimension=dimension)
    x = np.arange(-14, 15) if dimension == 3 else np.arange(-40, 41)
    w = np.exp(-(x**2) / (2 * std**2))
    p = w / w.sum()
    joint = p
    for _ in range(dimension - 1):
        joint = np.multiply.outer(joint, p)
    reach = math.isqrt(square)
    for e in (0.2, 1.0):
        worst = 0.0
        for move in itertools.combinations_with_replacement(range(reach + 1), dimension):
            if 0 < sum(m * m for m in move) <= square:
                other = joint
                for axis, m in enumerate(move):
                    other = np.roll(other, m, axis)
                worst = max(worst, float(np.maximum(joint - math.exp(e) * other, 0).sum()))
        claim = mechanism.bound.delta(e)
        assert worst * (1 - 1e-9) - 1e-11 <= claim <= worst * 1.01 + 1e-9


def test_many_moves_fall_back_to_the_concentrated_bound() -> None:
    from tacit.guarantees import Concentrated

    mechanism = Gaussian(sensitivity=L2(1), noise_std=4, dimension=100, spacing=2.0**-10)
    assert isinstance(mechanism.bound, Concentrated)
    assert mechanism.bound.rho == pytest.approx(1 / 32)
    vast = Gaussian(sensitivity=L2(1), noise_std=4, spacing=2.0**-30)
    assert vast.delta(1) == pytest.approx(
        Gaussian(sensitivity=L2(1), noise_std=4, spacing=2.0**-7).delta(1), rel=1e-3
    )


def test_gaussian_calibration_is_least_and_certified() -> None:
    for spacing in (1, 2.0**-4, 2.0**-24):
        found = Gaussian.for_target(epsilon=0.7, delta=1e-5, sensitivity=L2(1), spacing=spacing)
        assert found.delta(0.7) <= 1e-5
        smaller = Gaussian(
            sensitivity=L2(1), noise_std=Fraction(found.noise_std) * Fraction(999, 1000), spacing=spacing
        )
        assert smaller.delta(0.7) > 1e-5
    vector = Gaussian.for_target(epsilon=1, delta=1e-5, sensitivity=L2.root(2), dimension=5)
    assert vector.bound.delta(1.0) <= 1e-5
    assert Gaussian.for_rho(rho=0.1, sensitivity=L2(1)).rho <= 0.1
    rounded = RoundedGaussian.for_target(epsilon=1, delta=1e-5, sensitivity=L2(1), dimension=9)
    assert rounded.bound.delta(1.0) <= 1e-5
    assert float(rounded.noise_std) < float(
        Gaussian.for_target(epsilon=1, delta=1e-5, sensitivity=L2(1)).noise_std
    )
