"""Stated errors against exact enumeration of the laws, and against large samples where there is no sum to make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special

from tacit.mechanisms import (
    L1,
    L2,
    Box,
    Contribution,
    CountSensitivity,
    Exponential,
    Gamma,
    Gauge,
    Gaussian,
    Geometric,
    IntervalExponential,
    KNorm,
    KNormDifference,
    Laplace,
    Mahalanobis,
    PermuteAndFlip,
    RandomizedResponse,
    RoundedGaussian,
    Score,
    Simplex,
    Staircase,
    TruncatedGeometric,
)
from tacit.noise import Difference, EuclideanBall, KNormVector, L1Ball, LinfBall, SeededSource


def enumerated(law, reach: int) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-reach, reach + 1)
    return k, np.array([np.mean(law.probability(int(i))) for i in k])


ADDITIVE = [
    (Laplace.for_target(epsilon=0.5, sensitivity=L1(2)), 300),
    (Laplace.for_target(epsilon=3, sensitivity=L1(1)), 60),
    (Laplace.for_target(epsilon=1, sensitivity=L1(1), spacing=0.125), 600),
    (Geometric(epsilon=0.7, sensitivity=CountSensitivity(2)), 200),
    (Gaussian(sensitivity=L2(1), noise_std=0.4), 20),
    (Gaussian(sensitivity=L2(1), noise_std=6, spacing=0.5), 300),
    (Staircase(epsilon=2, sensitivity=L1(5)), 200),
    (Staircase(epsilon=0.5, sensitivity=L1(1), spacing=0.25), 500),
]


@pytest.mark.parametrize(("mechanism", "reach"), ADDITIVE)
def test_additive_errors_are_exact(mechanism, reach) -> None:
    k, p = enumerated(mechanism.distribution, reach)
    size, step = np.abs(k), float(mechanism.step)
    assert mechanism.expected_error() == pytest.approx(float((size * p).sum()) * step, rel=1e-10)
    for confidence in (0.5, 0.95, 0.999):
        for d in (1, 10, 1000):
            inside = [p[size <= t].sum() ** d for t in range(reach)]
            least = next(t for t, c in enumerate(inside) if c >= confidence)
            assert mechanism.max_error(confidence=confidence, dimension=d) == least * step
        assert mechanism.error_quantile(confidence) == mechanism.max_error(confidence=confidence, dimension=1)


def test_laplace_closed_forms_of_the_lecture() -> None:
    fine = Laplace(sensitivity=L1(1), noise_scale=10, spacing=2.0**-20)
    assert fine.expected_error() == pytest.approx(10)
    assert fine.noise_std == pytest.approx(10 * math.sqrt(2))
    assert fine.error_quantile(0.95) == pytest.approx(10 * math.log(20), rel=1e-5)
    for d in (1, 50):
        t = fine.max_error(confidence=0.95, dimension=d)
        assert t == pytest.approx(-10 * math.log(-math.expm1(math.log(0.95) / d)), rel=1e-5)
        assert t <= 10 * (math.log(d) + math.log(20)) + 2.0**-20  # Lemma 2.8 (2b), up to one grid step
        harmonic = sum(1 / i for i in range(1, d + 1))
        assert fine.expected_max_error(dimension=d) == pytest.approx(10 * harmonic, rel=1e-6)
        assert fine.expected_max_error(dimension=d) <= 10 * (math.log(d) + 1) + 1e-5  # Lemma 2.8 (2c)
    coarse = Laplace(sensitivity=L1(1), noise_scale=1.5)
    k, p = enumerated(coarse.distribution, 200)
    for d in (1, 7, 100):
        exact = sum(1 - p[np.abs(k) <= t].sum() ** d for t in range(199))
        assert exact - 1e-9 <= coarse.expected_max_error(dimension=d) <= exact * (1 + 1e-8)


def test_truncated_geometric_against_known_values() -> None:
    assert TruncatedGeometric(epsilon=0.1, low=0, high=100).expected_error() == pytest.approx(
        9.916085, abs=1e-6
    )
    for low, high, epsilon in ((0, 10, 0.3), (-3, 4, 1.0), (0, 1, 0.5), (0, 60, 0.4)):
        mechanism = TruncatedGeometric(epsilon=epsilon, low=low, high=high)
        outputs = np.arange(low, high + 1)
        rows = np.array(
            [[np.mean(mechanism.probability(int(y), count=int(x))) for y in outputs] for x in outputs]
        )
        gaps = np.abs(outputs[None, :] - outputs[:, None])
        errors = (rows * gaps).sum(axis=1)
        assert mechanism.expected_error() == pytest.approx(errors.max(), rel=1e-9)
        assert mechanism.expected_error(count=low) == pytest.approx(errors[0], rel=1e-9)
        for confidence in (0.3, 0.6, 0.9, 0.99):
            inside = [(rows * (gaps <= t)).sum(axis=1).min() for t in range(high - low + 1)]
            least = next(t for t, share in enumerate(inside) if share >= confidence - 1e-12)
            assert mechanism.error_quantile(confidence) == least


def test_interval_errors() -> None:
    mechanism = IntervalExponential.for_target(epsilon=0.5, sensitivity=L1(1), low=-5, high=20)
    x = np.arange(26)
    gaps = np.abs(x[:, None] - x[None, :])
    rows = np.exp(-gaps / float(mechanism.noise_scale))
    rows /= rows.sum(axis=1, keepdims=True)
    assert mechanism.expected_error() == pytest.approx((rows * gaps).sum(axis=1).max(), rel=1e-8)
    for confidence in (0.5, 0.95):
        least = next(t for t in range(26) if (rows * (gaps <= t)).sum(axis=1).min() >= confidence)
        assert mechanism.error_quantile(confidence) == least


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_selection_errors_are_worst_cases_that_are_reached(kind) -> None:
    mechanism = kind(epsilon=1.3, sensitivity=Score(1))
    generator = np.random.default_rng(2)
    for k in (2, 5, 9):
        claim = mechanism.expected_error(candidates=k)
        gaps = np.linspace(0, 25, 400)
        reached = max(mechanism.loss([0.0] + [-g] * (k - 1)) for g in gaps)
        assert reached <= claim <= reached * 1.001
        for _ in range(60):
            assert mechanism.loss((generator.exponential(size=k) * generator.uniform(1, 9)).tolist()) <= claim
        t = mechanism.error_quantile(0.9, candidates=k)
        assert mechanism.probabilities([0.0] + [-t] * (k - 1))[1:].sum() == pytest.approx(0.1, rel=1e-6)
        for _ in range(40):
            scores = -generator.exponential(size=k) * 8
            bad = scores < scores.max() - t
            assert mechanism.probabilities(scores.tolist())[bad].sum() <= 0.1 + 1e-9
    for k in (1, 2, 10, 1000):
        assert PermuteAndFlip(epsilon=1, sensitivity=Score(1)).expected_error(candidates=k) <= Exponential(
            epsilon=1, sensitivity=Score(1)
        ).expected_error(candidates=k) * (1 + 1e-5)
    halves = PermuteAndFlip(epsilon=1, sensitivity=Score(1)).loss([0, -30]) / Exponential(
        epsilon=1, sensitivity=Score(1)
    ).loss([0, -30])
    assert halves == pytest.approx(0.5, rel=1e-5)


def test_randomized_response_variances_by_enumeration() -> None:
    from math import comb

    def law(n: int, p: float) -> np.ndarray:
        return np.array([comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)])

    for epsilon, k, n, ones in ((1.0, 2, 12, 5), (0.3, 2, 9, 0), (1.5, 4, 10, 3)):
        mechanism = RandomizedResponse(epsilon=epsilon, categories=k)
        p, q, gap = mechanism._chances()
        counts = np.convolve(law(ones, p), law(n - ones, q))
        c = np.arange(n + 1)
        estimates = (c - n * q) / gap
        assert (estimates * counts).sum() == pytest.approx(ones, abs=1e-9)  # unbiased
        variance = ((estimates - ones) ** 2 * counts).sum()
        assert mechanism.variance(people=n, count=ones) == pytest.approx(variance, rel=1e-9)
        assert variance <= mechanism.variance(people=n) * (1 + 1e-12)
        if k == 2:
            assert variance == pytest.approx(n * math.exp(epsilon) / math.expm1(epsilon) ** 2)
            lecture = n * (1 + 2 / math.expm1(epsilon)) ** 2
            assert variance <= lecture / 4 * (1 + 1e-9)  # the lecture's bound is four times larger or more
        t = mechanism.count_error(people=n, confidence=0.9)
        assert counts[np.abs(estimates - ones) > t].sum() <= 0.1


def test_the_comparison_of_the_lecture() -> None:
    """Local noise grows as sqrt(n), central noise does not."""
    mechanism = RandomizedResponse(epsilon=0.5)
    ratios = [mechanism.compared_with_laplace(people=n).ratio for n in (100, 10_000, 1_000_000)]
    assert ratios[1] / ratios[0] == pytest.approx(10)
    assert ratios[2] / ratios[1] == pytest.approx(10)
    shown = mechanism.compared_with_laplace(people=10_000, confidence=0.95)
    assert shown.laplace_error == pytest.approx(math.log(20) / 5000)
    assert shown.response_std == pytest.approx(math.sqrt(math.exp(0.5) * 10_000) / math.expm1(0.5) / 10_000)


def test_estimates_from_answers() -> None:
    mechanism = RandomizedResponse(epsilon=1.2, categories=3)
    truth = np.repeat([0, 1, 2], [6000, 3000, 1000])
    answers = mechanism.release(truth, source=SeededSource(seed=12)).values
    estimates = mechanism.estimate(answers)
    assert estimates.sum() == pytest.approx(10_000)
    for found, true in zip(estimates, (6000, 3000, 1000), strict=True):
        assert abs(found - true) < 6.5 * math.sqrt(mechanism.variance(people=10_000, count=true))  # 1e-10


SHAPED = [
    KNorm.for_target(epsilon=1, sensitivity=Gauge(1, L1Ball(coordinates=3)), spacing=2.0**-12),
    KNorm.for_target(epsilon=1, sensitivity=Gauge(1, LinfBall(coordinates=4)), spacing=2.0**-12),
    KNorm.for_target(epsilon=1, sensitivity=Gauge(1, Box(low=[-1, -3], high=[1, 3])), spacing=2.0**-12),
    KNorm.for_target(epsilon=1, sensitivity=Gauge(1, EuclideanBall(coordinates=5)), spacing=2.0**-12),
    Gamma.for_target(epsilon=1, sensitivity=Mahalanobis(1, [[2, 1], [1, 3]]), spacing=2.0**-12),
]


@pytest.mark.parametrize("mechanism", SHAPED)
def test_shaped_errors_against_large_samples(mechanism) -> None:
    n = 60_000
    law = KNormVector(body=mechanism.body, noise_scale=mechanism.noise_scale)
    drawn = np.abs(law.sample(spacing=mechanism.step, size=n, source=SeededSource(seed=3)).to_floats())
    widest = drawn[:, int(np.argmax(drawn.mean(axis=0)))]
    assert mechanism.expected_error() == pytest.approx(
        widest.mean(), rel=6.5 * widest.std() / widest.mean() / n**0.5
    )
    assert mechanism.noise_std == pytest.approx(math.sqrt((widest**2).mean()), rel=0.05)
    for confidence in (0.5, 0.95, 0.99):
        inside = (widest <= mechanism.error_quantile(confidence)).mean()
        assert abs(inside - confidence) < 6.5 * math.sqrt(confidence * (1 - confidence) / n) + 1e-3
        joint = (drawn.max(axis=1) <= mechanism.max_error(confidence=confidence)).mean()
        assert joint >= confidence - 6.5 * math.sqrt(confidence * (1 - confidence) / n)


def test_the_largest_coordinate_of_cube_noise_is_exact() -> None:
    cube = KNorm(sensitivity=Gauge(1, LinfBall(coordinates=4)), noise_scale=2, spacing=2.0**-20)
    assert cube.max_error(confidence=0.9, dimension=4) == pytest.approx(
        2 * special.gammaincinv(4, 0.9), rel=1e-5
    )


def test_euclidean_laplace_has_the_variance_gamma_marginal() -> None:
    """E |X_1| by integrating the density |x|^(d/2) K_(d/2)(|x|), a second route to the same number."""
    for d in (1, 2, 3, 8):
        mechanism = Gamma(sensitivity=L2(1), noise_scale=1, dimension=d, spacing=2.0**-30)
        f = lambda x, d=d: x ** (d / 2) * special.kv(d / 2, x)  # noqa: E731
        total = integrate.quad(f, 0, np.inf)[0]
        mean = integrate.quad(lambda x, f=f: x * f(x), 0, np.inf)[0] / total
        assert mechanism.expected_error() == pytest.approx(mean, rel=1e-6)
        t = mechanism.error_quantile(0.95)
        assert integrate.quad(f, t, np.inf)[0] / total == pytest.approx(0.05, rel=0.02)


def miss_of_sum(t: float, *, twice: float, once: float) -> float:
    """Pr[|X| > t] for X a sum of three Laplace noises, of scales twice, twice and once: by partial fractions.

    Its characteristic function is 1 / ((1 + a^2 u^2)^2 (1 + b^2 u^2)), a = twice, b = once.
    """
    ratio = once**2 / twice**2
    square, last = 1 / (1 - ratio), (ratio / (1 - ratio)) ** 2
    pair = (2 + t / twice) / 2 * math.exp(-t / twice)
    return square * pair + (1 - square - last) * math.exp(-t / twice) + last * math.exp(-t / once)


@pytest.mark.parametrize(
    ("body", "scales"),
    [
        (Box(low=[-1, -1], high=[3, 1]), {"twice": 3.0, "once": 1.0}),
        (Simplex(vertices=[[-1, -1], [3, -1], [-1, 3]]), {"twice": 1.0, "once": 3.0}),
    ],
)
def test_difference_errors_hold(body, scales) -> None:
    """Against draws, and the quantile against the first coordinate's law by hand, to a step of the grid.

    A_1 of the box is Gamma(3) times uniform on [-1, 3], of characteristic function (1 - iu) / ((1 - 3iu)(1 + iu))^2;
    that of the simplex has 1 / ((1 + iu)^2 (1 - 3iu)), three exponentials. Both are the widest coordinates.
    """
    mechanism = KNormDifference.for_target(epsilon=1, sensitivity=Contribution(1, body), spacing=2.0**-10)
    law = Difference(distribution=KNormVector(body=body, noise_scale=mechanism.noise_scale))
    runs, scale, half = 40_000, float(mechanism.noise_scale), float(mechanism.step) / 2
    drawn = law.sample(spacing=mechanism.step, size=runs, source=SeededSource(seed=5)).to_floats()
    first = np.abs(drawn[:, 0])
    assert mechanism.noise_std == pytest.approx(drawn[:, 0].std(), rel=0.05)
    assert first.mean() <= mechanism.expected_error()
    for confidence in (0.5, 0.95, 0.999):
        stated, together = mechanism.error_quantile(confidence), mechanism.max_error(confidence=confidence)
        # The least step that is enough: half a step is what rounding adds on either side.
        assert miss_of_sum((stated + half) / scale, **scales) <= (1 - confidence) * (1 + 1e-9)
        assert miss_of_sum((stated - half) / scale, **scales) > 1 - confidence
        slack = 6 * math.sqrt(confidence * (1 - confidence) / runs)
        assert (first <= stated).mean() == pytest.approx(confidence, abs=slack)
        assert (np.abs(drawn).max(axis=1) <= together).mean() >= confidence - slack
        assert stated <= together <= mechanism.error_quantile((1 + confidence) / 2)


def test_rounded_gaussian_errors() -> None:
    mechanism = RoundedGaussian(sensitivity=L2(1), noise_std=3, dimension=6, spacing=2.0**-20)
    assert mechanism.expected_error() == pytest.approx(3 * math.sqrt(2 / math.pi), rel=1e-5)
    assert mechanism.error_quantile() == pytest.approx(3 * 1.959964, rel=1e-5)
    assert mechanism.max_error() == pytest.approx(3 * special.ndtri(1 - (1 - 0.95 ** (1 / 6)) / 2), rel=1e-5)
