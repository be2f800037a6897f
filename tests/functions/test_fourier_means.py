"""What else follows from a Fourier series: distribution functions, regression, rates, and rivals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special

from tacit.errors import InvalidParameter, UnknownName
from tacit.functions.boxes import Box
from tacit.functions.densities import GaussianKDE
from tacit.functions.fourier import (
    CumulativeCurve,
    FourierKDE,
    FourierPlan,
    FourierRegression,
    component_laplace_energy,
    fourier_bandwidth,
    fourier_order,
    noise_energies,
    noise_rate,
    squared_norm_noise,
)
from tacit.guarantees import Neighbours
from tacit.mechanisms import fourier_noise
from tacit.noise import SeededSource
from tacit.reproduce import hall_4 as fourier_errors
from tacit.reproduce import hall_4 as hall_4_1

BOX = Box(low=10, high=30)
FAMILY = FourierKDE(domain=BOX, order=9, bandwidth=1.2)


def test_distribution_function_is_the_integral_of_the_curve() -> None:
    plan = FourierPlan(family=FAMILY, size=500, epsilon=1)
    released = plan.release(np.random.default_rng(1).normal(20, 3, 500), source=SeededSource(seed=1))
    curve = CumulativeCurve(released=released)
    for x in (10.0, 13.7, 22.0, 30.0):
        direct, _ = integrate.quad(lambda t: float(released([t])[0]), 10, x, limit=200)
        assert curve([x])[0] == pytest.approx(direct, abs=1e-8)
    source = SeededSource(seed=2)
    rows = np.full(500, 20.0)
    values = [CumulativeCurve(released=plan.release(rows, source=source))([24.0])[0] for _ in range(250)]
    assert np.std(values) == pytest.approx(curve.noise_std_at([24.0])[0], rel=0.3)
    other = GaussianKDE(domain=BOX, bandwidth=2.0)
    with pytest.raises(InvalidParameter):
        CumulativeCurve(released=type("Odd", (), {"family": other, "dimension": 1})())


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_regression_finds_the_curve(neighbours: Neighbours) -> None:
    n, rng = 40_000, np.random.default_rng(3)
    x = rng.uniform(10, 30, n)
    y = 2 + np.sin(x / 3) + 0.5 * rng.normal(size=n)
    plan = FourierRegression(family=FAMILY, size=n, epsilon=1, low=-1, high=5, neighbours=neighbours)
    assert 0.999 < float(plan.bound.epsilon) <= 1 + 1e-12
    found = plan.release(x, y, source=SeededSource(seed=5))
    at = np.linspace(12, 28, 30)
    assert np.abs(found(at) - (2 + np.sin(at / 3))).max() < 0.3
    assert not found.publishable


def test_terms_of_a_regression_stay_within_the_hull() -> None:
    """|y| times a point of the body has gauge |y| in the body or in its mirror image: two for a replaced row."""
    plan = FourierRegression(family=FAMILY, size=10, epsilon=1, low=0, high=1)
    scale = float(plan.weighted_noise.noise_scale)
    assert 2 / 0.45 < scale < 2 / 0.45 * 1.01
    added = FourierRegression(
        family=FAMILY, size=10, epsilon=1, low=0, high=1, neighbours=Neighbours.ADD_OR_REMOVE
    )
    assert 1 / 0.45 < float(added.weighted_noise.noise_scale) < 1 / 0.45 * 1.01
    assert float(plan.total_noise.noise_scale) == pytest.approx(20)


def test_a_refusal_says_nothing_of_how_many_rows_there_are_where_that_is_secret() -> None:
    plan = FourierRegression(
        family=FAMILY, size=50, epsilon=1, low=0, high=1, neighbours=Neighbours.ADD_OR_REMOVE
    )
    with pytest.raises(InvalidParameter, match="one for each row") as refusal:
        plan.release(np.full(57, 0.5), np.full(56, 0.5))
    assert not {"56", "57"} & set(str(refusal.value).replace("'", " ").split())


def test_odd_responses_are_taken_and_odd_plans_are_not() -> None:
    plan = FourierRegression(family=FAMILY, size=3, epsilon=1, low=0, high=1)
    found = plan.release(
        [12.0, float("nan"), 1e9], [float("inf"), float("nan"), -7.0], source=SeededSource(seed=1)
    )
    assert np.isfinite(found([15.0, 25.0])).all()
    for bad in ({"low": 1, "high": 0}, {"epsilon": 0}, {"size": 0}, {"family": None}):
        with pytest.raises(InvalidParameter):
            FourierRegression(**({"family": FAMILY, "size": 3, "epsilon": 1, "low": 0, "high": 1} | bad))
    with pytest.raises(InvalidParameter):
        plan.release([12.0], [0.5])


# -- rates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_energies_are_those_of_the_mechanisms(d: int) -> None:
    m, n = 3, 1000
    found = noise_energies(order=m, size=n, epsilon=0.5, delta=1e-6, dimension=d)
    made = fourier_noise(frequencies=m, epsilon=0.5, delta=1e-6, replace=True, dimension=d)
    # In one dimension the mechanisms' features are cosines without the root of 2.
    scale = (2 if d == 1 else 1) / n**2
    assert set(found) == set(made.energies)
    for name, energy in found.items():
        assert energy == pytest.approx(made.energies[name] * scale, rel=5e-3)


def test_rates_by_the_slope_of_the_energies() -> None:
    """m = n^(1/(d+4)); the slope between huge n is the exponent."""
    for d in range(1, 7):
        small, large = 10**3, 10**3 * 8
        n = [m ** (d + 4) for m in (small, large)]
        for name in ("laplace", "gamma", "gaussian", *(["caratheodory"] if d == 1 else [])):
            e = [
                noise_energies(order=m, size=k, epsilon=1, delta=1e-6, dimension=d)[name]
                for m, k in zip((small, large), n, strict=True)
            ]
            slope = math.log(e[1] / e[0]) / math.log(n[1] / n[0])
            assert slope == pytest.approx(float(noise_rate(name, d)), abs=0.02)
    assert noise_rate("laplace", 4) == noise_rate("sampling", 4) == Fraction(-1, 2)
    assert noise_rate("laplace", 5) > noise_rate("sampling", 5)
    assert noise_rate("laplace", 3) < noise_rate("sampling", 3)
    assert all(noise_rate("gaussian", d) < noise_rate("sampling", d) for d in range(1, 7))
    with pytest.raises(UnknownName):
        noise_rate("caratheodory", 2)
    with pytest.raises(InvalidParameter):
        noise_rate("gamma", 7)


def test_component_laplace_process_is_a_weaker_rival() -> None:
    """decay = 1 is Laplace noise before smoothing; the best decay gains, and the Caratheodory body gains more."""
    n = 10**4
    h = fourier_bandwidth(size=n)
    m = fourier_order(bandwidth=h)
    family = FourierKDE(domain=Box(low=0, high=1), order=m, bandwidth=h, margin=0.0)
    weights = family.energy_weights()
    ours = fourier_noise(frequencies=m, epsilon=1, replace=True, weights=weights)
    plain = component_laplace_energy(order=m, bandwidth=h, size=n, epsilon=1, decay=1)
    assert plain == pytest.approx(ours.energies["laplace"] / n**2, rel=0.01)
    best = min(
        component_laplace_energy(order=m, bandwidth=h, size=n, epsilon=1, decay=t)
        for t in np.linspace(0, 1, 11)
    )
    assert ours.energy / n**2 < best / 2 < plain / 2
    with pytest.raises(InvalidParameter):
        component_laplace_energy(order=10**4, bandwidth=h, size=n, epsilon=1)


def test_squaring_the_norm_gains_nothing_over_the_norm() -> None:
    for d in (2, 16, 64, 1000):
        scale, ratio = squared_norm_noise(dimension=d, epsilon=1, delta=1e-6)
        edge = scale - 0.5 / scale
        assert special.gammaincc(d / 2, edge**2 / 2) == pytest.approx(1e-6, rel=1e-3)
        assert ratio > 1
    assert ratio < 1.5


# -- figures ---------------------------------------------------------------------------------------------


def test_expected_errors_are_those_of_simulated_estimates() -> None:
    """The closed form of the table against estimates of rows on a circle, 300 runs."""
    n, rng = 1000, np.random.default_rng(9)
    h = fourier_bandwidth(size=n)
    k = np.arange(1, fourier_order(bandwidth=h) + 1)
    smooth = np.exp(-2 * (np.pi * k * h) ** 2)
    every = np.arange(1, 60)
    true = (
        np.cos(2 * np.pi * every * 0.2) * np.exp(-2 * (np.pi * every * 0.1) ** 2) * np.exp(1j * np.pi * every)
    )
    runs = []
    for _ in range(300):
        rows = np.where(rng.random(n) < 0.5, 0.3, 0.7) + 0.1 * rng.normal(size=n)
        found = np.zeros(59, dtype=complex)
        found[: k.size] = smooth * np.exp(2j * np.pi * np.outer(k, rows)).mean(axis=1)
        runs.append(2 * (np.abs(found - true) ** 2).sum())
    error = np.std(runs) / math.sqrt(300)
    assert abs(np.mean(runs) - fourier_errors.expected_error(n, 1)) < 6 * error < 0.2 * np.mean(runs)


@pytest.mark.parametrize("d", [1, 2])
def test_noise_of_the_table_is_that_of_the_plans(d: int) -> None:
    n = 5000
    h = fourier_bandwidth(size=n, dimension=d)
    box = Box(low=(0.0,) * d, high=(1.0,) * d)
    family = FourierKDE(domain=box, order=fourier_order(bandwidth=h), bandwidth=h, margin=0.0)
    found = fourier_errors.noise_error(n, d, smoothed=True)
    for name in ("laplace", "gamma", "gaussian", *(["caratheodory"] if d == 1 else [])):
        delta = 1e-6 if name == "gaussian" else None
        plan = FourierPlan(family=family, size=n, epsilon=1, delta=delta, mechanism=name)
        assert found[name] == pytest.approx(plan.choice.energy / n**2, rel=0.01)


def test_the_periodic_kernel_of_the_figure_wraps_round() -> None:
    x, gaussian, periodic = hall_4_1.kernels(0.2)
    shifted = sum(np.exp(-0.5 * ((x - 0.2 + j) / 0.1) ** 2) for j in (-1, 0, 1)) / (
        math.sqrt(2 * math.pi) * 0.1
    )
    assert periodic == pytest.approx(shifted, abs=1e-12)
    assert periodic[-1] > 0.5 > 1e-6 > gaussian[-1]
