"""Noise for trigonometric features: sensitivities, the energies that the choice rests on, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from support.verblunsky import as_real
from tacit.errors import InvalidParameter
from tacit.mechanisms import (
    Gamma,
    KNorm,
    KNormDifference,
    Laplace,
    RoundedGaussian,
    fourier_contribution,
    fourier_l1,
    fourier_l2,
    fourier_noise,
    fourier_spacing,
    gauge,
)
from tacit.noise import CaratheodoryBody, SeededSource


def features(x: np.ndarray, m: int) -> np.ndarray:
    return as_real(np.exp(2j * np.pi * np.outer(x, np.arange(1, m + 1))))


def tensor(x: np.ndarray, m: int) -> np.ndarray:
    """Products of 1, sqrt(2) cos, sqrt(2) sin over the coordinates, the constant left out."""
    out = np.ones((x.shape[0], 1))
    for column in x.T:
        one = np.concatenate([np.ones((x.shape[0], 1)), math.sqrt(2) * features(column, m)], axis=1)
        out = (out[:, :, None] * one[:, None, :]).reshape(x.shape[0], -1)
    return out[:, 1:]


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 16])
def test_sensitivities_hold_and_are_reached(m: int) -> None:
    """Every pair of a fine grid, from the definition: never above, and somewhere within 1 in 200."""
    x = np.arange(720) / 720
    psi = features(x, m)
    for replace in (False, True):
        moves = psi if not replace else (psi[:, None, :] - psi[None, ::3, :]).reshape(-1, 2 * m)
        for size, claim in (
            (np.abs(moves).sum(axis=1).max(), fourier_l1(frequencies=m, replace=replace).exact),
            (np.sqrt((moves**2).sum(axis=1)).max(), fourier_l2(frequencies=m, replace=replace).exact),
        ):
            assert float(claim) * 0.995 < size <= float(claim) * (1 + 1e-14)


@pytest.mark.parametrize(("m", "d"), [(1, 2), (3, 2), (1, 3), (2, 3)])
def test_sensitivities_of_products(m: int, d: int) -> None:
    rng = np.random.default_rng(m + d)
    x, y = rng.uniform(size=(4000, d)), rng.uniform(size=(4000, d))
    # Neighbours that differ in one coordinate only, where the kernel of the features is least, are the worst.
    theta = np.linspace(0, 1, 4001)
    kernel = 1 + 2 * np.cos(2 * np.pi * np.outer(theta, np.arange(1, m + 1))).sum(axis=1)
    y[0], x[0] = 0.0, 0.0
    x[0, 0] = theta[kernel.argmin()]
    one, moved = tensor(x, m), tensor(x, m) - tensor(y, m)
    l2 = lambda v: np.sqrt((v**2).sum(axis=1)).max()  # noqa: E731
    l1 = lambda v: np.abs(v).sum(axis=1).max()  # noqa: E731
    for replace, v in ((False, one), (True, moved)):
        claim = float(fourier_l2(frequencies=m, dimension=d, replace=replace).exact)
        assert claim * 0.9999 < l2(v) <= claim * (1 + 1e-14)
        assert l1(v) <= float(fourier_l1(frequencies=m, dimension=d, replace=replace).exact)


def test_large_orders_have_sensitivities_too() -> None:
    for m in (600, 10_000):
        x = np.array([0.0, 0.5, 1 / 3, 0.123, 1.43 / (2 * m + 1)])
        psi = features(x, m)
        moves = (psi[:, None] - psi[None]).reshape(-1, 2 * m)
        assert np.abs(moves).sum(axis=1).max() <= float(fourier_l1(frequencies=m, replace=True).exact)
        l2 = float(fourier_l2(frequencies=m, replace=True).exact)
        assert 0.99 * l2 < np.sqrt((moves**2).sum(axis=1)).max() <= l2


@pytest.mark.parametrize("m", [2, 7, 20])
def test_rounded_records_stay_within_the_claimed_gauge(m: int) -> None:
    """Each feature of each record is rounded to the grid: a record's integers may lie outside of the body."""
    step = Fraction(1, 8)
    psi = features(np.random.default_rng(1).uniform(size=3000), m)
    rounded = np.rint(psi / float(step)) * float(step)
    claim = fourier_contribution(frequencies=m, replace=True).rounded(spacing=step).exact
    found = gauge(CaratheodoryBody(frequencies=m), rounded)
    assert 1 < found.max() <= float(claim)


def energy_by_hand(name: str, m: int, epsilon: float) -> float:
    """From textbook formulas; sensitivities by brute force."""
    psi = features(np.arange(1440) / 1440, m)
    moves = psi[:1] - psi
    l2 = math.sqrt((moves**2).sum(axis=1).max())
    d = 2 * m
    if name == "gamma":
        return d * (d + 1) * (l2 / epsilon) ** 2
    apart = psi[:, None, :] - psi[None, ::4, :]
    l1 = max(np.abs(apart[i : i + 64]).sum(axis=2).max() for i in range(0, 1440, 64))
    return 2 * d * (l1 / epsilon) ** 2


@pytest.mark.parametrize(("m", "laplace", "gamma"), [(8, 4.0, 2.6), (16, 8.0, 5.0)])
def test_noise_energy_is_far_below_laplace(m: int, laplace: float, gamma: float) -> None:
    """The energy of what is really released, against the others' with sensitivities found by brute force."""
    chosen = fourier_noise(frequencies=m, epsilon=0.7, replace=True)
    assert chosen.name == "caratheodory"
    assert "Caratheodory" in chosen.reason
    mechanism = chosen.mechanism
    assert isinstance(mechanism, KNormDifference)
    source = SeededSource(seed=4)
    zero = np.zeros(2 * m, dtype=int)
    runs = [(mechanism.release(zero, source=source).to_floats() ** 2).sum() for _ in range(400)]
    ours, error = float(np.mean(runs)), float(np.std(runs) / math.sqrt(len(runs)))
    assert abs(ours - chosen.energy) < 7 * error < 0.25 * ours
    assert energy_by_hand("laplace", m, 0.7) / chosen.energy > laplace
    assert energy_by_hand("gamma", m, 0.7) / chosen.energy > gamma
    assert chosen.energies["laplace"] == pytest.approx(energy_by_hand("laplace", m, 0.7), rel=0.01)
    assert chosen.energies["gamma"] == pytest.approx(energy_by_hand("gamma", m, 0.7), rel=0.01)


def test_the_choice_and_its_reason() -> None:
    one = fourier_noise(frequencies=1, epsilon=1, replace=True)
    assert "disc" in one.reason
    assert one.energies["caratheodory"] == pytest.approx(24, rel=3e-3)
    assert isinstance(
        fourier_noise(frequencies=1, epsilon=1, replace=True, only="caratheodory").mechanism, KNorm
    )
    assert fourier_noise(frequencies=2, epsilon=1, replace=True).name == "gamma"
    assert fourier_noise(frequencies=2, epsilon=1, replace=False).name == "caratheodory"
    assert fourier_noise(frequencies=3, epsilon=1, replace=True).name == "caratheodory"
    plane = fourier_noise(frequencies=4, epsilon=1, replace=True, dimension=2)
    assert plane.name == "gamma"
    assert isinstance(plane.mechanism, Gamma)
    assert "2 dimensions" in plane.reason
    easy = fourier_noise(frequencies=6, epsilon=1, delta=1e-3, replace=True, dimension=2)
    assert easy.name == "gaussian"
    assert isinstance(easy.mechanism, RoundedGaussian)
    assert isinstance(
        fourier_noise(frequencies=9, epsilon=1, replace=True, only="laplace").mechanism, Laplace
    )


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("name", ["laplace", "gamma", "caratheodory"])
@pytest.mark.parametrize("m", [1, 6])
def test_bounds_are_what_was_asked(m: int, name: str, replace: bool) -> None:
    noise = fourier_noise(frequencies=m, epsilon=Fraction(1, 3), replace=replace, only=name)
    assert 0.999 / 3 < float(noise.mechanism.bound.epsilon) <= math.nextafter(1 / 3, 1)
    several = fourier_noise(frequencies=m, epsilon=Fraction(1, 3), replace=replace, only=name, records=4)
    assert several.energy == pytest.approx(16 * noise.energy, rel=3e-3)


def test_gaussian_meets_its_target() -> None:
    noise = fourier_noise(frequencies=5, epsilon=1, delta=1e-6, replace=True, only="gaussian")
    assert noise.mechanism.bound.delta(1.0) <= 1e-6


def test_weights_count() -> None:
    m = 4
    weights = np.repeat([1.0, 0.5, 0.1, 0.0], 2)
    noise = fourier_noise(frequencies=m, epsilon=1, replace=True, weights=weights)
    plain = fourier_noise(frequencies=m, epsilon=1, replace=True, only=noise.name)
    assert noise.energy < plain.energy
    assert (noise.spacing, fourier_spacing(4, body=False)) == (Fraction(1, 2**15), Fraction(1, 2**12))


@pytest.mark.parametrize(
    "bad",
    [
        {"frequencies": 0}, {"frequencies": 10**6}, {"dimension": 4}, {"dimension": 0}, {"epsilon": 0},
        {"epsilon": float("nan")}, {"only": "student"}, {"only": "gaussian"}, {"records": 0}, {"weights": [1.0]},
        {"dimension": 2, "only": "caratheodory"}, {"spacing": 0.3}, {"delta": 2}, {"replace": 1},
        {"frequencies": 40, "dimension": 3},
    ],
)  # fmt: skip
def test_what_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        fourier_noise(**({"frequencies": 3, "epsilon": 1, "replace": True} | bad))


def test_ten_thousand_frequencies_are_noised_in_bounded_memory() -> None:
    noise = fourier_noise(frequencies=10_000, epsilon=1, replace=True)
    assert noise.name == "gamma"
    assert noise.mechanism.release(np.zeros(20_000, dtype=int), source=SeededSource(seed=1)).values.shape == (
        20_000,
    )
