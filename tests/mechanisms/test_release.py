"""Outputs: which are reachable, what they cost to sample, and that nothing wraps around or leaves the grid."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from tacit.guarantees import Approximate, Pure
from tacit.mechanisms import (
    L1,
    L2,
    Box,
    Contribution,
    Exponential,
    Gamma,
    Gauge,
    Gaussian,
    Geometric,
    IntervalExponential,
    KNorm,
    KNormDifference,
    Laplace,
    PermuteAndFlip,
    RandomizedResponse,
    RoundedGaussian,
    Score,
    Selection,
    SmoothBound,
    SmoothLaplace,
    SmoothStudent,
    Staircase,
    TruncatedGeometric,
)
from tacit.noise import CryptographicSource, LinfBall, SampledBody, SeededSource

ADDITIVE = [
    Laplace.for_target(epsilon=0.5, sensitivity=L1(1), spacing=2.0**-8),
    Geometric(epsilon=0.3),
    Gaussian(sensitivity=L2(1), noise_std=7.3, spacing=0.25),
    Staircase(epsilon=1, sensitivity=L1(3)),
    Gamma.for_target(epsilon=1, sensitivity=L2(1), dimension=1, spacing=2.0**-4),
    RoundedGaussian(sensitivity=L2(1), noise_std=2, dimension=1, spacing=2.0**-4),
    KNorm.for_target(epsilon=1, sensitivity=Gauge(1, LinfBall(coordinates=1)), spacing=2.0**-4),
    KNormDifference.for_target(
        epsilon=1, sensitivity=Contribution(1, Box(low=[-1], high=[2])), spacing=2.0**-4
    ),
]
VALUES = [0, 1, -1, 3, 1 << 20, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1, 1 << 63, 1 << 100, -(3**80)]


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda m: type(m).__name__)
def test_the_reachable_outputs_do_not_depend_on_the_true_value(mechanism) -> None:
    """Floats leak the value through which sums they can reach (Mironov 2012). Here output - value is the same integer
    noise for every value, of any size, so that the set of outputs is the grid for all of them."""
    noise = {int(mechanism.release(v, source=SeededSource(seed=21)).values) - v for v in VALUES}
    assert len(noise) == 1
    out = mechanism.release(np.array([5]), source=SeededSource(seed=21))
    assert out.spacing == mechanism.step
    assert out.numerical_delta == 0.0


@pytest.mark.parametrize("mechanism", ADDITIVE[:4], ids=lambda m: type(m).__name__)
def test_every_integer_is_reachable(mechanism) -> None:
    low = [mechanism.distribution.probability(k)[0] for k in range(-40, 41)]
    assert min(low) > 0


def test_smooth_noise_reaches_the_whole_grid_whatever_its_scale() -> None:
    """The scale depends on the data, so that a float product would show it in its last bits; a cell does not."""
    seen = []
    for size in (Fraction(7, 3), Fraction(31, 7)):
        mechanism = SmoothLaplace.for_target(epsilon=1, delta=1e-3)
        law = mechanism._distribution(mechanism._noise_scale(SmoothBound(value=size, beta=0)))
        drawn = law.sample(spacing=1, size=60_000, source=SeededSource(seed=2)).values.ravel()
        seen.append(set(drawn.tolist()))
    middle = set(range(-15, 16))
    assert middle <= seen[0]
    assert middle <= seen[1]


def test_only_the_cryptographic_source_makes_publishable_noise() -> None:
    for mechanism in ADDITIVE:
        assert not mechanism.release(1, source=SeededSource(seed=1)).publishable
        assert mechanism.release(1, source=CryptographicSource()).publishable
        assert mechanism.release(1).publishable
    assert Exponential(epsilon=1, sensitivity=Score(1)).choose([1, 2]).publishable
    assert not RandomizedResponse(epsilon=1).release([0, 1], source=SeededSource(seed=1)).publishable


def test_draws_follow_the_law() -> None:
    """Chi-square of releases against the stated probabilities: 6.5 standard deviations, chance 1e-10."""
    cases = [
        (
            TruncatedGeometric(epsilon=0.5, low=0, high=6),
            lambda m, y: np.mean(m.probability(y, count=2)),
            range(7),
        ),
        (
            IntervalExponential(sensitivity=L1(1), noise_scale=2, low=0, high=6),
            lambda m, y: np.mean(m.distribution(2).probability(y)),
            range(7),
        ),
    ]
    for mechanism, chance, outputs in cases:
        source, n = SeededSource(seed=17), 1000
        counts = Counter(int(mechanism.release(2, source=source).values) for _ in range(n))
        assert set(counts) <= set(outputs)
        for y in outputs:
            p = float(chance(mechanism, y))
            assert abs(counts[y] - n * p) < 6.5 * math.sqrt(n * p * (1 - p)) + 1
    for kind in (Exponential, PermuteAndFlip):
        mechanism = kind(epsilon=2, sensitivity=Score(1))
        source, n, scores = SeededSource(seed=18), 1000, [0.5, 1.25, 2, -3]
        counts = Counter(mechanism.choose(scores, source=source).index for _ in range(n))
        for i, p in enumerate(mechanism.probabilities(scores)):
            assert abs(counts[i] - n * p) < 6.5 * math.sqrt(n * p * (1 - p)) + 1


def test_selection_by_name() -> None:
    for method in ("permute-and-flip", "exponential"):
        ask = Selection(epsilon=50, sensitivity=Score(1), candidates=["red", "green", "blue"], method=method)
        source = SeededSource(seed=3)
        assert ask.choose({"red": 1, "green": 90, "blue": -4}, source=source).name == "green"
        assert isinstance(ask.bound, Pure)
        assert ask.expected_error() < ask.error_quantile(0.999)


def test_a_float_sampler_costs_a_delta() -> None:
    """The claim of a body sampled in floats is approximate, by (1 + e^epsilon) times its distance."""
    body = SampledBody(
        coordinates=2,
        sampler=lambda n, source: (source.words(2 * n).reshape(n, 2) >> np.uint64(11)) * 2.0**-52 - 1.0,
        absolute_error=2.0**-50,
        marginal_density_bound=0.5,
        reach=1.0,
    )
    mechanism = KNorm.for_target(epsilon=1, sensitivity=Gauge(1, body), spacing=2.0**-10)
    assert isinstance(mechanism.bound, Approximate)
    out = mechanism.release([3, 4], source=SeededSource(seed=1))
    assert out.numerical_delta == mechanism.numerical_delta > 0
    assert mechanism.bound.delta == pytest.approx((1 + math.e) * out.numerical_delta)
    assert not mechanism.noise_distribution["exact"]


def test_the_laws_of_noise_are_plain_values() -> None:
    import json

    everything = [
        *ADDITIVE,
        TruncatedGeometric(epsilon=1, low=0, high=3),
        RandomizedResponse(epsilon=1),
        Exponential(epsilon=1, sensitivity=Score(1)),
        PermuteAndFlip(epsilon=1, sensitivity=Score(1)),
        IntervalExponential(sensitivity=L1(1), noise_scale=1, low=0, high=3),
        SmoothStudent.for_target(epsilon=1),
        SmoothLaplace.for_target(epsilon=1, delta=1e-6),
    ]
    for mechanism in everything:
        assert json.loads(json.dumps(mechanism.noise_distribution))["distribution"]
        hash(mechanism)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace.for_target(epsilon=0.01, sensitivity=L1(1), spacing=2.0**-20),
        Gaussian(sensitivity=L2(1), noise_std=1000, dimension=10_000_000, spacing=2.0**-10),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_ten_million_draws_are_integers_on_the_grid(mechanism) -> None:
    """int64 all of them: no NaN, no overflow (they stay far from the ends), nothing between grid points."""
    values = np.zeros(10_000_000, dtype=np.int64)
    out = mechanism.release(values, source=SeededSource(seed=99))
    assert out.values.dtype == np.int64
    assert out.values.shape == values.shape
    reach = mechanism.max_error(confidence=1 - 1e-9, dimension=10_000_000)
    assert np.abs(out.values).max() * float(mechanism.step) <= reach
    assert abs(out.values.mean()) < 6.5 * mechanism.distribution.std / math.sqrt(values.size)
