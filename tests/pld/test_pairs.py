"""Each pair's curve against its definition: integrals of densities and sums of masses, written out anew."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from tacit.exact.arrays import UNIT
from tacit.pld import (
    ApproximatePair,
    ConcentratedPair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    ExponentialPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    MixturePair,
    Pair,
    PoissonSampledPair,
    Product,
    RandomizedResponsePair,
    RenyiPair,
    SkellamPair,
    StaircasePair,
    SwappedPair,
)
from tacit.pld.pairs.gaussian import float_normal_cdf

EPSILONS = (-3.0, -0.7, 0.0, 0.2, 1.0, 2.5)


def integral(p: Callable[[np.ndarray], np.ndarray], q: Callable[[np.ndarray], np.ndarray], e: float) -> float:
    """The hockey-stick of two densities by the midpoint rule on a fine grid."""
    edges = np.linspace(-60.0, 60.0, 600_001)
    x = (edges[1:] + edges[:-1]) / 2
    return float(np.sum(np.maximum(p(x) - math.exp(e) * q(x), 0.0)) * (edges[1] - edges[0]))


def normal(mean: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)


def laplace(mean: float, scale: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.exp(-np.abs(x - mean) / scale) / (2 * scale)


def staircase(mean: float, epsilon: float, gamma: float) -> Callable[[np.ndarray], np.ndarray]:
    height = -math.expm1(-epsilon) / (2 * (gamma + math.exp(-epsilon) * (1 - gamma)))

    def density(x: np.ndarray) -> np.ndarray:
        whole, part = np.divmod(np.abs(x - mean), 1.0)
        return height * np.exp(-epsilon * (whole + (part >= gamma)))

    return density


def mixed(
    rate: float, p: Callable[..., np.ndarray], q: Callable[..., np.ndarray]
) -> Callable[..., np.ndarray]:
    return lambda x: (1 - rate) * q(x) + rate * p(x)


DENSITIES: list[tuple[Pair, Callable[..., np.ndarray], Callable[..., np.ndarray]]] = [
    (GaussianPair(mu=0.8), normal(0.8), normal(0.0)),
    (LaplacePair(epsilon=1.5), laplace(0.0, 1.0), laplace(1.5, 1.0)),
    (StaircasePair(epsilon=1.0, gamma=0.3), staircase(0.0, 1.0, 0.3), staircase(1.0, 1.0, 0.3)),
    (StaircasePair(epsilon=0.7, gamma=0.8), staircase(0.0, 0.7, 0.8), staircase(1.0, 0.7, 0.8)),
    (
        PoissonSampledPair(pair=GaussianPair(mu=1.2), rate=0.3),
        mixed(0.3, normal(1.2), normal(0.0)),
        normal(0.0),
    ),
    (
        PoissonSampledPair(pair=LaplacePair(epsilon=2.0), rate=0.2).swapped(),
        laplace(0.0, 0.5),
        mixed(0.2, laplace(1.0, 0.5), laplace(0.0, 0.5)),
    ),
    (
        MixturePair(shifts=(0.0, 1.0, 2.0), weights=(0.5, 0.25, 0.25)),
        lambda x: 0.5 * normal(0.0)(x) + 0.25 * normal(1.0)(x) + 0.25 * normal(2.0)(x),
        normal(0.0),
    ),
]


@pytest.mark.parametrize(("pair", "p", "q"), DENSITIES, ids=lambda v: type(v).__name__)
def test_densities(pair: Pair, p: Callable[..., np.ndarray], q: Callable[..., np.ndarray]) -> None:
    for e in EPSILONS:
        got = pair.hockey_stick(e)
        assert got.low == pytest.approx(integral(p, q, e), abs=2e-5)
        assert got.width <= 1e-14
        other = pair.swapped().hockey_stick(e)
        assert other.high == pytest.approx(integral(q, p, e), abs=2e-5)


@pytest.mark.parametrize(("noise_std", "s"), [(0.5, 1), (1.0, 1), (2.5, 3)])
def test_discrete_gaussian_by_its_own_sum(noise_std: float, s: int) -> None:
    x = np.arange(-80, 81 + s)
    p, q = (np.exp(-((x - m) ** 2) / (2 * noise_std**2)) for m in (0, s))
    total = p[np.abs(x) <= 80].sum()
    pair = DiscreteGaussianPair(noise_std=noise_std, sensitivity=s)
    for e in EPSILONS:
        expected = float(np.maximum(p - math.exp(e) * q, 0).sum() / total)
        assert pair.hockey_stick(e).high == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("rate", "s"), [(0.3, 1), (0.5, 4)])
def test_discrete_laplace_by_its_own_sum(rate: float, s: int) -> None:
    x = np.arange(-400, 401)
    p, q = np.exp(-rate * np.abs(x)), np.exp(-rate * np.abs(x - s))
    pair = DiscreteLaplacePair(rate=rate, sensitivity=s)
    for e in EPSILONS:
        expected = float(np.maximum(p - math.exp(e) * q, 0).sum() / p.sum())
        assert pair.hockey_stick(e).high == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_the_exponential_mechanism_stays_below_its_pair_and_touches_it() -> None:
    """All two-point mechanisms of bounded range, and random ones with more outcomes."""
    epsilon = 1.1
    pair = ExponentialPair(epsilon=epsilon)
    rng = np.random.default_rng(5)
    best = dict.fromkeys(EPSILONS, 0.0)
    for k in range(2000):
        scores = rng.uniform(0, 1, 2 if k < 1000 else 4)
        shift = rng.uniform(-0.5, 0.5, len(scores)) if k >= 1000 else np.array([-0.5, 0.5])
        base = rng.uniform(-4, 4, len(scores)) + scores
        p, q = np.exp(base + epsilon * shift), np.exp(base)
        p, q = p / p.sum(), q / q.sum()
        for e in EPSILONS:
            value = float(np.maximum(p - math.exp(e) * q, 0).sum())
            assert value <= pair.hockey_stick(e).high + 1e-12
            best[e] = max(best[e], value)
    for e in (-0.7, 0.0, 0.2, 1.0):
        assert best[e] >= pair.hockey_stick(e).low - 2e-3


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=6),
    st.lists(st.integers(0, 20), min_size=2, max_size=6),
    st.floats(-4, 4),
)
def test_tabulated_pairs(left: list[int], right: list[int], e: float) -> None:
    size = min(len(left), len(right))
    p, q = np.array(left[:size], float), np.array(right[:size], float)
    if p.sum() == 0 or q.sum() == 0:
        return
    p, q = p / p.sum(), q / q.sum()
    pair = FinitePair(p=list(p), q=list(q))
    got = pair.hockey_stick(e)
    assert got.high == pytest.approx(float(np.maximum(p - math.exp(e) * q, 0).sum()), abs=1e-12)
    assert pair.swapped().hockey_stick(-e).high == pytest.approx(
        float(np.maximum(q - math.exp(-e) * p, 0).sum()), abs=1e-12
    )
    assert FinitePair(p=pair.p, q=pair.q) == pair


ALL = [pair for pair, _, _ in DENSITIES] + [
    ApproximatePair(epsilon=0.5, delta=0.01),
    RandomizedResponsePair(epsilon=0.9, categories=5),
    DiscreteLaplacePair(rate=0.4, sensitivity=3),
    DiscreteGaussianPair(noise_std=1.5),
    SkellamPair(noise_variance=3.0, sensitivity=2),
    ExponentialPair(epsilon=0.8),
    FinitePair(p=(0.5, 0.3, 0.2, 0.0), q=(0.0, 0.3, 0.3, 0.4)),
    ConcentratedPair(rho=0.1),
    RenyiPair(orders=(1.5, 2.0, 8.0), epsilons=(0.2, 0.3, 1.0)),
    PoissonSampledPair(pair=DiscreteGaussianPair(noise_std=1.0), rate=0.25),
    PoissonSampledPair(pair=ApproximatePair(epsilon=1.0, delta=0.05), rate=0.5).swapped(),
]


@pytest.mark.parametrize("pair", ALL, ids=lambda p: type(p).__name__)
def test_a_curve_is_convex_falls_from_one_and_mirrors(pair: Pair) -> None:
    grid = np.linspace(-4, 4, 81)
    high = np.array([pair.hockey_stick(float(e)).high for e in grid])
    t = np.exp(grid)
    slopes = np.diff(high) / np.diff(t)
    if pair.exact:
        assert np.all(np.diff(slopes) >= -1e-9)
    assert np.all(high >= np.maximum(0, 1 - t) - 1e-12)
    assert pair.hockey_stick(-math.inf).low == 1.0
    if pair.exact:
        for e in (-1.0, 0.3, 2.0):
            mirrored = 1 - math.exp(e) + math.exp(e) * pair.hockey_stick(-e).high
            assert pair.swapped().hockey_stick(e).high == pytest.approx(mirrored, abs=1e-12)


@pytest.mark.parametrize("pair", ALL, ids=lambda p: type(p).__name__)
def test_the_float_law_encloses_the_ball(pair: Pair) -> None:
    grid = np.linspace(-3, 3, 41)
    low, high = pair.hockey_stick_grid(grid)
    for e, a, b in zip(grid, low, high, strict=True):
        exact = pair.hockey_stick(float(e))
        assert a <= exact.high
        assert b >= exact.low
        assert b - exact.high <= 1e-9 + 1e-6 * exact.high


def test_far_tails_and_tiny_and_huge_epsilons() -> None:
    tiny = GaussianPair(mu=1e-12).hockey_stick(1e-12)
    assert tiny.low > 0
    assert tiny.width <= 1e-15 * tiny.high
    assert GaussianPair(mu=1.0).hockey_stick(1e3).high == 5e-324
    assert LaplacePair(epsilon=1e3).hockey_stick(1e3).high == 0.0
    far = GaussianPair(mu=0.1).hockey_stick(3.0)
    with ctx.workprec(300):
        mu, e = arb(0.1), arb(3.0)
        z = [-(mu / 2 - e / mu) / arb(2).sqrt(), (mu / 2 + e / mu) / arb(2).sqrt()]
        exact = float(z[0].erfc() / 2 - e.exp() * z[1].erfc() / 2)
    assert far.low <= exact <= far.high
    assert far.width <= 1e-15 * far.high


def test_the_normal_distribution_function_keeps_its_stated_error() -> None:
    z = np.random.default_rng(1).uniform(-37, 8, 3000)
    value, error = float_normal_cdf(z, np.zeros_like(z))
    assert np.array_equal(value, ndtr(z))
    with ctx.workprec(160):
        for x, got, bound in zip(z.tolist(), value.tolist(), error.tolist(), strict=True):
            exact = (-arb(x) / arb(2).sqrt()).erfc() / 2
            assert abs(arb(got) - exact) <= arb(bound)


def test_the_exponential_function_keeps_its_stated_error() -> None:
    x = np.random.default_rng(2).uniform(-700, 700, 3000)
    with ctx.workprec(160):
        for a, e, m in zip(x.tolist(), np.exp(x).tolist(), np.expm1(x / 700).tolist(), strict=True):
            assert abs(arb(e) - arb(a).exp()) <= 2 * UNIT * arb(a).exp()
            assert abs(arb(m) - (arb(a) / 700).expm1()) <= 8 * UNIT * abs((arb(a) / 700).expm1())


def test_sampling_in_two_steps_is_sampling_once() -> None:
    once = PoissonSampledPair(pair=LaplacePair(epsilon=1.0), rate=0.125)
    twice = PoissonSampledPair(pair=PoissonSampledPair(pair=LaplacePair(epsilon=1.0), rate=0.5), rate=0.25)
    for e in (-0.05, 0.0, 0.1):
        assert once.hockey_stick(e).high == pytest.approx(twice.hockey_stick(e).high, rel=1e-13)
    assert isinstance(once.swapped(), SwappedPair)
    assert once.swapped().swapped() == once


def test_gaussians_merge_exactly() -> None:
    product = Product.of(GaussianPair(mu=0.1), 100)
    assert product.pairs[0][1] == 1
    assert product == Product(pairs=[(GaussianPair(mu=0.1), 1)] * 100)
    assert product.epsilon(1e-6).high == pytest.approx(4.886, abs=1e-3)
