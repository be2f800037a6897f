"""Malformed requests are refused with a hint, extreme ones are answered; none hangs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter, TacitError, UnknownName
from tacit.mechanisms import (
    L1,
    L2,
    CountSensitivity,
    Exponential,
    Gamma,
    Gauge,
    Gaussian,
    Geometric,
    IntervalExponential,
    KNorm,
    Laplace,
    MedianByTest,
    PermuteAndFlip,
    RandomizedResponse,
    RoundedGaussian,
    Score,
    Selection,
    SmoothLaplace,
    SmoothStudent,
    Staircase,
    TruncatedGeometric,
)
from tacit.noise import LinfBall, SeededSource

BY_EPSILON = {
    "Laplace": lambda e: Laplace.for_target(epsilon=e, sensitivity=L1(1)),
    "Geometric": lambda e: Geometric(epsilon=e),
    "TruncatedGeometric": lambda e: TruncatedGeometric(epsilon=e, low=0, high=10),
    "Staircase": lambda e: Staircase(epsilon=e, sensitivity=L1(3)),
    "Gamma": lambda e: Gamma.for_target(epsilon=e, sensitivity=L2(1), dimension=1),
    "KNorm": lambda e: KNorm.for_target(epsilon=e, sensitivity=Gauge(1, LinfBall(coordinates=1))),
    "Gaussian": lambda e: Gaussian.for_target(epsilon=e, delta=1e-6, sensitivity=L2(1)),
    "RoundedGaussian": lambda e: RoundedGaussian.for_target(
        epsilon=e, delta=1e-6, sensitivity=L2(1), dimension=1
    ),
    "IntervalExponential": lambda e: IntervalExponential.for_target(
        epsilon=e, sensitivity=L1(1), low=0, high=10
    ),
    "RandomizedResponse": lambda e: RandomizedResponse(epsilon=e),
    "Exponential": lambda e: Exponential(epsilon=e, sensitivity=Score(1)),
    "PermuteAndFlip": lambda e: PermuteAndFlip(epsilon=e, sensitivity=Score(1)),
    "SmoothLaplace": lambda e: SmoothLaplace.for_target(epsilon=e, delta=1e-6),
    "SmoothStudent": lambda e: SmoothStudent.for_target(epsilon=e),
    "MedianByTest": lambda e: MedianByTest(proposed=L1(1), test_epsilon=e, release_epsilon=e, delta=1e-6),
}


@pytest.mark.parametrize("name", BY_EPSILON)
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None])
def test_epsilon_must_be_finite_and_above_zero(name, epsilon) -> None:
    with pytest.raises(InvalidParameter) as caught:
        BY_EPSILON[name](epsilon)
    assert "epsilon" in caught.value.parameter


@pytest.mark.parametrize("name", BY_EPSILON)
@pytest.mark.parametrize("epsilon", [1e-12, 1e3])
def test_tiny_and_vast_epsilons_have_answers(name, epsilon) -> None:
    mechanism = BY_EPSILON[name](epsilon)
    assert mechanism.bound is not None
    source = SeededSource(seed=6)
    if name in ("Exponential", "PermuteAndFlip"):
        assert mechanism.choose([1, 2, 3], source=source).index in range(3)
        assert 0 <= mechanism.expected_error(candidates=3) < math.inf
    elif name.startswith("Smooth"):
        from tacit.mechanisms import smooth_bound

        smooth = smooth_bound([3, 4, 5], beta=mechanism.beta, low=0, high=10)
        mechanism.release(4, smooth, source=source)
    elif name == "MedianByTest":
        mechanism.release([1, 2, 3], source=source)
    else:
        assert mechanism.release(1, source=source).values.size == 1
        assert 0 <= mechanism.expected_error() < math.inf
        assert 0 <= mechanism.error_quantile() < math.inf


def test_shapes_that_are_empty_or_have_no_dimension() -> None:
    source = SeededSource(seed=1)
    laplace, gaussian = (
        Laplace.for_target(epsilon=1, sensitivity=L1(1)),
        Gaussian(sensitivity=L2(1), noise_std=2),
    )
    for mechanism in (laplace, gaussian):
        assert mechanism.release([], source=source).values.shape == (0,)
        assert mechanism.release(5, source=source).values.shape == ()
        assert mechanism.release(np.zeros((0, 3), dtype=int), source=source).values.shape == (0, 3)
    assert laplace.release(np.zeros((2, 3), dtype=int), source=source).values.shape == (2, 3)
    assert RandomizedResponse(epsilon=1).release([], source=source).values.shape == (0,)
    for mechanism in (
        Geometric(epsilon=1),
        Staircase(epsilon=1, sensitivity=L1(2)),
        TruncatedGeometric(epsilon=1, low=0, high=5),
    ):
        for bad in ([], [1, 2]):
            with pytest.raises(InvalidParameter, match="one number"):
                mechanism.release(bad, source=source)
    with pytest.raises(InvalidParameter, match="dimension"):
        gaussian.release([1, 2], source=source)
    with pytest.raises(InvalidParameter, match="dimension"):
        Gamma(sensitivity=L2(1), noise_scale=1)
    with pytest.raises(InvalidParameter):
        Gamma(sensitivity=L2(1), noise_scale=1, dimension=3).release([1, 2], source=source)
    for kind in (Exponential, PermuteAndFlip):
        with pytest.raises(EmptyComposition):
            kind(epsilon=1, sensitivity=Score(1)).choose([], source=source)
    with pytest.raises(EmptyComposition):
        Selection(epsilon=1, sensitivity=Score(1), candidates=[])


@pytest.mark.parametrize("values", [[1.0], [math.nan], [math.inf], ["a"], [None], [True], [1 + 2j]])
def test_only_integers_are_released(values) -> None:
    for mechanism in (
        Laplace.for_target(epsilon=1, sensitivity=L1(1)),
        Geometric(epsilon=1),
        RandomizedResponse(epsilon=1),
    ):
        with pytest.raises(InvalidParameter) as caught:
            mechanism.release(values, source=SeededSource(seed=1))
        assert caught.value.hint


@pytest.mark.parametrize("scores", [[1, math.nan], [math.inf, 1], [-math.inf, 0], ["a", 1], [True, 2]])
def test_scores_must_be_finite_and_are_not_shown(scores) -> None:
    for kind in (Exponential, PermuteAndFlip):
        with pytest.raises(InvalidParameter) as caught:
            kind(epsilon=1, sensitivity=Score(1)).choose(scores)
        assert "inf" not in str(caught.value.value)
        assert caught.value.hint


def test_vast_scores_and_gaps_are_exact() -> None:
    source = SeededSource(seed=2)
    for kind in (Exponential, PermuteAndFlip):
        mechanism = kind(epsilon=1, sensitivity=Score(1))
        assert mechanism.choose([1 << 200, 0, -(1 << 300)], source=source).index == 0
        assert mechanism.choose([1e308, -1e308], source=source).index == 0
        assert mechanism.probabilities([1 << 200, 0]).tolist() == [1.0, 0.0]
        assert mechanism.choose(np.array([1, 2, 3]), source=source).index in range(3)


def test_other_parameters() -> None:
    bad = [
        lambda: Laplace(sensitivity=L1(1), noise_scale=0),
        lambda: Laplace(sensitivity=L1(1), noise_scale=math.nan),
        lambda: Laplace(sensitivity=L1(1), noise_scale=1, spacing=0.3),
        lambda: Gaussian(sensitivity=L2(1), noise_std=-1),
        lambda: Gaussian(sensitivity=L2(1), noise_std=1, dimension=0),
        lambda: Gaussian(sensitivity=L2(1), noise_std=1).delta(-1),
        lambda: TruncatedGeometric(epsilon=1, low=3, high=3),
        lambda: TruncatedGeometric(epsilon=1, low=0.5, high=3),
        lambda: RandomizedResponse(epsilon=1, categories=1),
        lambda: RandomizedResponse(epsilon=1).release([0, 2]),
        lambda: RandomizedResponse(epsilon=1).estimate([0, 5]),
        lambda: RandomizedResponse(epsilon=1).estimate([0, -1]),
        lambda: RandomizedResponse(epsilon=1).estimate([[0, 1], [1, 1]]),  # two questions, not one
        lambda: RandomizedResponse(epsilon=1).release([[0, 1], [1, 1]]),
        lambda: RandomizedResponse(epsilon=1).variance(people=3, count=4),
        lambda: Staircase(epsilon=1, sensitivity=L1(1), gamma=2),
        lambda: Geometric(epsilon=1, sensitivity=CountSensitivity(1.5)),
        lambda: IntervalExponential(sensitivity=L1(1), noise_scale=1, low=0.5, high=3),
        lambda: IntervalExponential(sensitivity=L1(1), noise_scale=1, low=3, high=3),
        lambda: SmoothStudent(noise_multiplier=1, beta=1, degrees=0),
        lambda: SmoothLaplace(epsilon=1, noise_multiplier=0.5, beta=1),
        lambda: SmoothLaplace.for_target(epsilon=1, delta=0),
        lambda: Gaussian.for_target(epsilon=1, delta=0, sensitivity=L2(1)),
        lambda: Laplace.for_target(epsilon=1, sensitivity=L1(1)).error_quantile(1),
        lambda: Geometric(epsilon=1).error_quantile(0),
        lambda: Laplace.for_target(epsilon=1, sensitivity=L1(1)).max_error(confidence=0.9, dimension=0),
        lambda: Selection(epsilon=1, sensitivity=Score(1), candidates=["a", "a"]),
        lambda: Selection(epsilon=1, sensitivity=Score(1), candidates=["a"]).choose({"b": 1}),
        lambda: KNorm.for_target(epsilon=1, sensitivity=Gauge(1, LinfBall(coordinates=2))).max_error(
            dimension=3
        ),
    ]
    for make in bad:
        with pytest.raises(InvalidParameter):
            make()
    with pytest.raises(UnknownName):
        Selection(epsilon=1, sensitivity=Score(1), candidates=["a"], method="best")  # type: ignore[arg-type]
    for make in bad:
        with pytest.raises(TacitError):
            make()


def test_integers_beyond_64_bits_stay_exact() -> None:
    source = SeededSource(seed=5)
    vast = 10**40
    mechanism = TruncatedGeometric(epsilon=1, low=-vast, high=vast)
    assert abs(int(mechanism.release(vast - 3, source=source).values) - vast) < 100
    assert int(mechanism.release(10 * vast, source=source).values) <= vast
    wide = Laplace.for_target(epsilon=1e-30, sensitivity=L1(1))
    assert wide.release([0], source=source).values.dtype == object
    assert wide.expected_error() == pytest.approx(1e30)
    interval = IntervalExponential(sensitivity=L1(1), noise_scale=1, low=-vast, high=vast)
    assert abs(int(interval.release(7, source=source).values) - 7) < 100
