"""After the release: the nearest density, its distribution function, quantiles, samples, and what bands cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.functions import Box
from tacit.functions.bases import FourierBasis, HistogramBasis
from tacit.functions.densities import (
    CoefficientNoise,
    DensityPlan,
    EuclideanLaplaceNoise,
    GaussianKDE,
    GaussianNoise,
    GriddedDensity,
    LaplaceNoise,
    nearest_probabilities,
)
from tacit.functions.densities.released import order_statistic
from tacit.noise import SeededSource

UNIT = Box.unit()


def test_the_nearest_density_meets_its_conditions() -> None:
    """Karush, Kuhn, Tucker: v - p is t where p > 0 and at most t elsewhere; and sums are one."""
    draw = np.random.default_rng(2)
    for size in (1, 2, 3, 50, 1000):
        for spread in (0.01, 1.0, 100.0):
            v = draw.normal(0, spread, size)
            p = nearest_probabilities(v)
            assert p.min() >= 0
            assert p.sum() == pytest.approx(1, abs=1e-12)
            gap = v - p
            t = gap[p > 0].mean()
            assert np.abs(gap[p > 0] - t).max() < 1e-9 * max(spread, 1)
            assert (gap[p == 0] <= t + 1e-9 * max(spread, 1)).all()
    assert nearest_probabilities([0.25, 0.75]).tolist() == [0.25, 0.75]
    assert nearest_probabilities([5.0, 5.0]).tolist() == [0.5, 0.5]
    assert nearest_probabilities([1e18, 0.0]).tolist() == [1.0, 0.0]
    for bad in ([], [np.nan], [np.inf, 0]):
        with pytest.raises(InvalidParameter):
            nearest_probabilities(bad)


def test_the_nearest_density_is_nearer_to_every_density() -> None:
    draw = np.random.default_rng(4)
    for _ in range(50):
        q = draw.dirichlet(np.ones(20))
        v = q + draw.normal(0, 0.05, 20)
        assert ((nearest_probabilities(v) - q) ** 2).sum() <= ((v - q) ** 2).sum()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_distribution_functions_and_samples(d: int) -> None:
    """cdf against brute-force sums at edges; samples against the cells' probabilities, at 6.5 standard errors."""
    draw = np.random.default_rng(d)
    shape = (5, 4, 3)[:d]
    box = Box(low=[-1.0] * d, high=[2.0 + k for k in range(d)])
    table = draw.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    density = GriddedDensity(domain=box, probabilities=table)
    for index in np.ndindex(*shape):
        corner = [density.edges(k)[i] for k, i in enumerate(index)]
        below = table[tuple(slice(0, i) for i in index)].sum()
        assert density.cdf([corner])[0] == pytest.approx(below, abs=1e-12)
    assert density.cdf([[9.0] * d])[0] == pytest.approx(1)
    assert density.cdf([[-9.0] * d])[0] == 0
    assert float((density.values * density.cell_volume).sum()) == pytest.approx(1)
    sample = density.sample(200_000, source=SeededSource(seed=3))
    cells = [density.edges(k) for k in range(d)]
    found = np.histogramdd(sample, bins=cells)[0] / 200_000
    assert (np.abs(found - table) < 6.5 * np.sqrt(table / 200_000) + 1e-4).all()
    middle = np.stack(np.meshgrid(*[density.middles(k) for k in range(d)], indexing="ij"), axis=-1).reshape(
        -1, d
    )
    assert np.allclose(density(middle), density.values.ravel())
    assert density.mean() == pytest.approx(sample.mean(axis=0), abs=0.03)
    if d == 3:
        assert np.allclose(density.marginal([2, 0]).probabilities, table.sum(axis=1).T)


def test_quantiles_undo_the_distribution_function() -> None:
    density = GriddedDensity(domain=Box(low=0, high=10), probabilities=np.array([0.1, 0.0, 0.6, 0.3]))
    assert density.quantile([0, 0.05, 0.1, 0.4, 1]).tolist() == pytest.approx([0, 1.25, 2.5, 6.25, 10])
    p = np.linspace(0.01, 0.99, 99)
    assert np.allclose(density.cdf(density.quantile(p)), p)
    with pytest.raises(InvalidParameter):
        density.quantile([1.1])
    with pytest.raises(InvalidParameter):
        GriddedDensity(domain=UNIT, probabilities=np.array([0.5, 0.4]))
    with pytest.raises(InvalidParameter):
        GriddedDensity(domain=Box.unit(2), probabilities=np.array([[0.5, 0.5]])).quantile([0.5])


def test_a_released_curve_becomes_a_density() -> None:
    """Noise enough for negative values: none is left, the integral is one, and quantiles rise."""
    for d, family in (
        (1, GaussianKDE(domain=UNIT, bandwidth=0.05)),
        (2, GaussianKDE(domain=Box.unit(2), bandwidth=0.2)),
    ):
        released = DensityPlan(family=family, size=100, mu=0.3).release(
            np.full((100, d), 0.3), source=SeededSource(seed=1)
        )
        grid = released.on_grid(32)
        raw = released(
            np.stack(np.meshgrid(*[grid.middles(k) for k in range(d)], indexing="ij"), axis=-1).reshape(-1, d)
        )
        assert raw.min() < 0
        assert grid.values.min() >= 0
        assert grid.probabilities.sum() == pytest.approx(1)
        wanted = nearest_probabilities(raw * grid.cell_volume)
        assert np.abs(grid.probabilities.ravel() - wanted).max() < 1e-9
    one = DensityPlan(family=GaussianKDE(domain=UNIT, bandwidth=0.05), size=100, mu=0.3).release([0.3] * 100)
    assert (np.diff(one.quantile(np.linspace(0, 1, 50))) >= 0).all()
    assert one.cdf([1.0])[0] == pytest.approx(1)
    assert one.sample(10).shape == (10, 1)


@pytest.mark.parametrize(
    "noise",
    [GaussianNoise(noise_std=2.0), LaplaceNoise(noise_scale=0.7), EuclideanLaplaceNoise(noise_scale=0.3)],
    ids=lambda n: n.kind,
)
def test_simulated_noise_has_the_stated_size(noise: CoefficientNoise) -> None:
    drawn = noise.draws(20_000, 6, seed=5)
    assert np.abs(drawn.std(axis=0) / noise.stds(6) - 1).max() < 6.5 * math.sqrt(6 / 4 / 20_000)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(6)).max() < 6.5 * math.sqrt(3 / 20_000)


def test_order_statistics_are_sure_enough() -> None:
    """By direct sums of binomial probabilities: k is the least that is sure."""
    for draws, c in ((200, 0.9), (1000, 0.95)):
        k = order_statistic(draws, c)

        def below(k: int, draws: int = draws, c: float = c) -> float:
            return math.fsum(math.comb(draws, i) * c**i * (1 - c) ** (draws - i) for i in range(k))

        assert below(k) >= 0.999 > below(k - 1)
    with pytest.raises(InvalidParameter):
        order_statistic(10, 0.95)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "gamma"])
def test_noise_bands_cover_what_they_say(mechanism: str) -> None:
    """400 releases: coverage at a point 95%, at all points at once 95% or a little more; 6.5 standard errors."""
    given = {"mu": 0.5} if mechanism == "gaussian" else {"epsilon": 0.5}
    plan = DensityPlan(family=FourierBasis(domain=UNIT, order=3), size=200, mechanism=mechanism, **given)  # type: ignore[arg-type]
    rows = np.random.default_rng(1).beta(2, 3, 200)
    silent = DensityPlan(family=plan.family, size=200, mu=1e9).release(rows, source=SeededSource(seed=0))
    at = np.linspace(0, 1, 41)
    truth = silent(at)
    first = plan.release(rows, source=SeededSource(seed=0))
    point, every = first.band(at, draws=2000), first.band(at, simultaneous=True, draws=2000)
    assert every.factor > point.factor
    assert (every.draws, every.certainty) == (2000, 0.999)
    assert (point.draws == 0) == (mechanism == "gaussian")
    hits, all_hits = 0, 0
    for seed in range(400):
        curve = plan.release(rows, source=SeededSource(seed=seed + 1))(at)
        hits += abs(curve[20] - truth[20]) <= point.factor * point.std[20]
        all_hits += bool((np.abs(curve - truth) <= every.factor * every.std).all())
    low = 0.95 - 6.5 * math.sqrt(0.95 * 0.05 / 400)
    assert hits / 400 >= low
    assert all_hits / 400 >= low
    assert np.allclose(point.high - point.low, 2 * point.factor * point.std)


def test_sampling_bands_cover_the_mean_of_the_curve() -> None:
    """500 samples of 400 rows from a known density, hardly any noise: the mean curve is covered 95% of the time."""
    draw, family, at = (
        np.random.default_rng(8),
        GaussianKDE(domain=UNIT, bandwidth=0.1),
        np.array([0.3, 0.5, 0.8]),
    )
    plan = DensityPlan(family=family, size=400, mu=1000)
    kept = [plan.release(draw.beta(4, 4, 400), source=SeededSource(seed=s)) for s in range(500)]
    mean = np.mean([r(at) for r in kept], axis=0)
    spread = np.std([r(at) for r in kept], axis=0)
    bands = [r.band(at, covers="sampling") for r in kept[:200]]
    assert np.abs(np.mean([b.std for b in bands], axis=0) / spread - 1).max() < 0.2
    share = np.mean([(b.low <= mean) & (mean <= b.high) for b in bands], axis=0)
    assert share.min() >= 0.95 - 6.5 * math.sqrt(0.95 * 0.05 / 200)
    assert "sample" in bands[0].summary()
    noisy = DensityPlan(family=family, size=400, mu=0.2).release(
        draw.beta(4, 4, 400), source=SeededSource(seed=1)
    )
    both, noise, sample = (noisy.band(at, covers=c) for c in ("both", "noise", "sampling"))
    assert np.allclose(both.std**2, noise.std**2 + sample.std**2)
    at_once = noisy.band(np.linspace(0, 1, 30), covers="both", simultaneous=True, draws=1000)
    assert at_once.factor > both.factor
    with pytest.raises(InvalidParameter):
        noisy.band(at, covers="everything")
    with pytest.raises(InvalidParameter):
        noisy.band(at, confidence=1)


def test_a_histogram_is_a_histogram() -> None:
    released = DensityPlan(family=HistogramBasis(domain=Box(low=0, high=8), bins=4), size=8, mu=1e7).release(
        [0, 1, 1, 3, 5, 7, 7.5, 8], source=SeededSource(seed=1)
    )
    assert released([0.5, 2.5, 4.5, 6.5]).tolist() == pytest.approx(
        [3 / 16, 1 / 16, 1 / 16, 3 / 16], abs=1e-5
    )
