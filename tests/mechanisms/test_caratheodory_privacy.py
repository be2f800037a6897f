"""The densities of Caratheodory noise over neighbours: the difference form keeps epsilon, the printed form does not.

Sums under replace-one: neighbours differ by Psi(x) - Psi(y). The noise scale is read off the mechanism that is
released; gauges, densities and integrals are computed here, from definitions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaincinv

from support.verblunsky import as_real, coefficients, levinson
from tacit.errors import InvalidParameter
from tacit.mechanisms import (
    Contribution,
    Gauge,
    KNorm,
    KNormDifference,
    fourier_contribution,
    fourier_noise,
    gauge,
)
from tacit.noise import CaratheodoryBody


def psi(x: float, m: int) -> np.ndarray:
    return as_real(np.exp(2j * np.pi * x * np.arange(1, m + 1))[None])[0]


def gauge_by_hand(x: np.ndarray) -> np.ndarray:
    """-(smallest eigenvalue) of the Toeplitz matrix of (0, c): in closed form for m = 1, 2, else by numpy."""
    c = x[..., 0::2] + 1j * x[..., 1::2]
    m = c.shape[-1]
    if m == 1:
        return np.abs(c[..., 0])
    if m == 2:
        # lambda^3 - 3 p lambda - 2 q = 0
        p = (2 * np.abs(c[..., 0]) ** 2 + np.abs(c[..., 1]) ** 2) / 3
        q = (c[..., 0] ** 2 * c[..., 1].conj()).real
        with np.errstate(divide="ignore", invalid="ignore"):
            angle = np.arccos(np.clip(np.where(p > 0, q / p**1.5, 0.0), -1, 1))
        return -2 * np.sqrt(p) * np.cos(angle / 3 + 2 * np.pi / 3)
    full = np.concatenate([c[..., ::-1].conj(), np.zeros((*c.shape[:-1], 1)), c], axis=-1)
    places = np.arange(m + 1)[None, :] - np.arange(m + 1)[:, None] + m
    return -np.linalg.eigvalsh(full[..., places])[..., 0]


def difference_scale(m: int, epsilon: float) -> float:
    """The scale of what is released; rounding of records adds less than 1 in 1000."""
    noise = fourier_noise(frequencies=m, epsilon=epsilon, replace=True, only="caratheodory")
    scale = float(noise.mechanism.noise_scale)
    if m > 1:
        assert isinstance(noise.mechanism, KNormDifference)
        assert scale == pytest.approx(2 / epsilon, rel=1e-3)
        assert scale >= 2 / epsilon
    return scale


def on_lattice(m: int, reach: float, step: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The density of A - B on a lattice, by the trapezium rule for the convolution; and the axis."""
    axis = np.arange(-reach, reach, step)
    density = np.exp(-gauge_by_hand(np.stack(np.meshgrid(*[axis] * (2 * m), indexing="ij"), -1)) / scale)
    spectrum = np.fft.rfftn(density)
    both = np.fft.irfftn(np.abs(spectrum) ** 2, s=density.shape, axes=range(2 * m))
    return np.fft.fftshift(both), axis


def worst_ratio(density: np.ndarray, axis: np.ndarray, move: np.ndarray, within: float) -> float:
    """max log p(y - v) / p(y) over lattice outputs with |y|_inf <= within; v is on the lattice."""
    step = axis[1] - axis[0]
    steps = np.rint(move / step).astype(int)
    assert np.abs(steps * step - move).max() < 1e-9
    moved = np.roll(density, steps, axis=tuple(range(density.ndim)))
    middle = np.flatnonzero(np.abs(axis) <= within)
    near = np.ix_(*[middle] * density.ndim)
    return float(np.log(moved[near] / density[near]).max())


def test_difference_keeps_epsilon_for_one_frequency() -> None:
    """A disc; 160 000 lattice points, 40 000 outputs."""
    mechanism = KNormDifference.for_target(
        epsilon=2, sensitivity=Contribution(1, CaratheodoryBody(frequencies=1), True)
    )
    density, axis = on_lattice(1, 25.0, 0.125, float(mechanism.noise_scale))
    worst = max(
        worst_ratio(density, axis, v, 12.0) for v in (psi(0, 1) - psi(0.5, 1), psi(0, 1) - psi(0.25, 1))
    )
    assert 0.85 * 2 < worst <= 2 * (1 + 1e-9)


@pytest.mark.slow
def test_difference_keeps_epsilon_for_two_frequencies() -> None:
    """5 000 000 lattice points for the convolution in four dimensions, 28 000 outputs."""
    epsilon = 4.0
    density, axis = on_lattice(2, 12.0, 0.5, difference_scale(2, epsilon))
    pairs = [(0.0, 0.5), (0.25, 0.75), (0.0, 0.25), (0.5, 0.25)]
    found = [worst_ratio(density, axis, psi(x, 2) - psi(y, 2), 3.0) for x, y in pairs]
    assert 0.75 * epsilon < max(found) <= epsilon


def randomised(m: int, scale: float, outputs: np.ndarray, move: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p(y - v) / p(y) and its standard error: p(y) = E h(A - y) / c, A by scrambled Sobol points, eight scrambles."""
    from scipy.stats import qmc

    ratios = []
    for seed in range(8):
        u = qmc.Sobol(2 * m + 1, seed=seed).random(1 << 12)
        u = np.clip(u, 1e-12, 1 - 1e-12)
        a = as_real(levinson(coefficients(u[:, : 2 * m]))) * gammaincinv(2 * m + 1, u[:, -1:]) * scale
        near = np.exp(-gauge_by_hand(a[None] - outputs[:, None]) / scale).mean(axis=1)
        far = np.exp(-gauge_by_hand(a[None] - outputs[:, None] + move) / scale).mean(axis=1)
        ratios.append(far / near)
    table = np.array(ratios)
    return table.mean(axis=0), table.std(axis=0, ddof=1) / math.sqrt(8)


@pytest.mark.slow
def test_difference_keeps_epsilon_for_three_frequencies() -> None:
    """20 outputs: 10 drawn from the release, 10 far out where the ratio is largest; error bars below 5%."""
    m, epsilon = 3, 1.0
    scale = difference_scale(m, epsilon)
    rng = np.random.default_rng(12)
    u = rng.uniform(size=(20, 2 * m + 1))
    noise = as_real(levinson(coefficients(u[:, : 2 * m]))) * gammaincinv(2 * m + 1, u[:, -1:]) * scale
    move = psi(0.0, m) - psi(0.25, m)
    away = np.linspace(0.4, 4, 10)[:, None] * move
    outputs = np.concatenate([noise[:10] - noise[10:], away])
    ratio, error = randomised(m, scale, outputs, move)
    assert (error < 0.05 * ratio).all()
    assert (ratio - 8 * error <= math.exp(epsilon)).all()
    assert (ratio <= math.exp(epsilon) * 1.05).all()
    assert ratio.max() > math.exp(0.75 * epsilon)


@pytest.mark.parametrize("m", [1, 2, 3, 8, 20])
def test_moves_have_gauge_up_to_m_plus_one(m: int) -> None:
    x = np.linspace(0, 1, 61)
    curve = np.array([psi(t, m) for t in x])
    apart = curve - psi(0.0, m)
    found = gauge(CaratheodoryBody(frequencies=m), apart)
    # sqrt((m + 1)^2 - |<v_x, v_y>|^2)
    inner = np.abs(np.exp(2j * np.pi * np.outer(x, np.arange(m + 1))).sum(axis=1)) ** 2
    assert found == pytest.approx(np.sqrt(np.maximum((m + 1) ** 2 - inner, 0)), abs=1e-6)
    worst = gauge(CaratheodoryBody(frequencies=m), psi(1 / (m + 1), m) - psi(0.0, m))[0]
    assert worst == pytest.approx(m + 1)


@pytest.mark.parametrize("m", [2, 3, 8])
def test_caratheodory_noise_as_printed_exceeds_epsilon(m: int) -> None:
    """Hall 2012, 4.4.2: K-norm noise with Delta = 2 for a sum. At the output f(D') the ratio is e^(epsilon (m+1)/2)."""
    epsilon, move = 1.0, psi(1 / (m + 1), m) - psi(0.0, m)
    printed_scale = 2 / epsilon
    at = np.random.default_rng(0).normal(size=(200, 2 * m)) * 3
    at[0] = 0.0
    loss = (gauge_by_hand(at + move) - gauge_by_hand(at)) / printed_scale
    assert loss.max() == pytest.approx(epsilon * (m + 1) / 2)
    assert loss.max() > 1.4 * epsilon
    with pytest.raises(InvalidParameter, match="symmetric"):
        KNorm.for_target(epsilon=epsilon, sensitivity=Gauge(2, CaratheodoryBody(frequencies=m)))


@pytest.mark.parametrize("m", [2, 3])
def test_caratheodory_noise_as_printed_exceeds_where_the_difference_does_not(m: int) -> None:
    """The check above can tell: on the same lattice and outputs the printed density breaks epsilon."""
    if m == 3:
        outputs = np.concatenate([np.zeros((1, 6)), np.random.default_rng(1).normal(size=(19, 6))])
        move = psi(0.0, 3) - psi(0.25, 3)
        loss = (gauge_by_hand(outputs) - gauge_by_hand(outputs - move)) / 2.0
        assert max(loss.max(), (-loss).max()) > 1.2
        return
    axis = np.arange(-12, 12, 1.0)
    density = np.exp(-gauge_by_hand(np.stack(np.meshgrid(*[axis] * 4, indexing="ij"), -1)) / 0.5)
    found = max(worst_ratio(density, axis, s * (psi(0.0, 2) - psi(0.25, 2)), 3.0) for s in (1, -1))
    assert found > 1.3 * 4.0


def test_contributions_under_add_or_remove_need_half() -> None:
    for replace, scale in ((True, 2.0), (False, 1.0)):
        one = fourier_contribution(frequencies=4, replace=replace)
        assert float(KNormDifference.for_target(epsilon=1, sensitivity=one).noise_scale) == scale
