"""Claims of noise that is shaped by a body, on a dense set of outputs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from support.claims import tight
from tacit.mechanisms import (
    L2,
    Box,
    Contribution,
    Gamma,
    Gauge,
    HullGauge,
    KNorm,
    KNormDifference,
    Mahalanobis,
    RoundedGaussian,
    Simplex,
    gauge,
)
from tacit.noise import EuclideanBall, L1Ball, LinfBall


def dense(d: int, reach: float, points: int) -> np.ndarray:
    axis = np.linspace(-reach, reach, points)
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), -1).reshape(-1, d)


BODIES = [
    (EuclideanBall(coordinates=2, radius=1.5), (1.5, 0)), (L1Ball(coordinates=3), (1, 0, 0)),
    (LinfBall(coordinates=3, radius=2), (2, 2, 2)), (Box(low=[-1, -2], high=[1, 2]), (1, 2)),
    (Mahalanobis(1, [[2, 1], [1, 3]]).body, None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "corner"), BODIES)
def test_k_norms_on_a_dense_set_of_outputs(body, corner) -> None:
    """The densities are proportional to exp(-gauge / scale), with one constant: log ratios are gauge differences."""
    mechanism = KNorm.for_target(epsilon=1.2, sensitivity=Gauge(2, body))
    scale = float(mechanism.noise_scale)
    moves = np.random.default_rng(1).normal(size=(20, body.dimension))
    moves = moves / np.maximum(gauge(body, moves), gauge(body, -moves))[:, None] * 2
    if corner is not None:
        moves = np.vstack([moves, 2 * np.array(corner, dtype=float)])
    outputs = dense(body.dimension, 9.0, 31 if body.dimension == 2 else 13)
    worst = max(float((np.abs(gauge(body, outputs - m) - gauge(body, outputs)) / scale).max()) for m in moves)
    assert tight(worst, mechanism.bound.epsilon)


def test_gamma_mechanism_uses_the_covariance() -> None:
    sigma = np.array([[2.0, 1.0], [1.0, 3.0]])
    inverse = np.linalg.inv(sigma)
    mechanism = Gamma.for_target(epsilon=0.8, sensitivity=Mahalanobis(1.5, sigma))
    norm = lambda x: np.sqrt(np.einsum("ij,jk,ik->i", x, inverse, x))  # noqa: E731
    outputs, worst = dense(2, 12.0, 41), 0.0
    for angle in np.linspace(0, math.pi, 24):
        move = np.array([[math.cos(angle), math.sin(angle)]])
        move = move / norm(move) * 1.5
        worst = max(
            worst, float((np.abs(norm(outputs - move) - norm(outputs)) / float(mechanism.noise_scale)).max())
        )
    assert tight(worst, mechanism.bound.epsilon)
    plain = Gamma.for_target(epsilon=0.8, sensitivity=L2.root(2), dimension=3)
    assert float(plain.noise_scale) == pytest.approx(math.sqrt(2) / 0.8)


def difference_density(low: float, high: float, scale: float, x: np.ndarray) -> np.ndarray:
    """The density of A - B in one dimension from its definition, by quadrature; gauge t/high or t/low."""
    step = 0.01
    t = np.arange(-60 * max(-low, high), 60 * max(-low, high), step)
    f = np.exp(-np.where(t > 0, t / high, t / low) / scale)
    f /= f.sum() * step
    return np.array([np.interp(t - s, t, f) @ f * step for s in x])


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-1.0, 3.0)])
def test_k_norm_difference_in_one_dimension(low, high) -> None:
    """Contributions in [low, high] have gauge 1, and replaced ones move by up to high - low."""
    body = Box(low=[low], high=[high])
    mechanism = KNormDifference.for_target(epsilon=1, sensitivity=Contribution(1, body))
    scale, width = float(mechanism.noise_scale), high - low
    x = np.linspace(-40, 40, 161)
    base, moved = difference_density(low, high, scale, x), difference_density(low, high, scale, x - width)
    worst = float(np.abs(np.log(base / moved)).max())
    assert worst <= 1 * (1 + 1e-6)
    # What is reached is the gauge of the move in the hull of K and -K: all of epsilon only if K is symmetric.
    hull = width / max(-low, high)
    sharper = KNormDifference(sensitivity=HullGauge(Fraction(hull), body), noise_scale=mechanism.noise_scale)
    assert 0.95 * sharper.bound.epsilon <= worst <= sharper.bound.epsilon * (1 + 1e-6)
    assert sharper.bound.epsilon <= mechanism.bound.epsilon
    half = KNormDifference(
        sensitivity=Contribution(1, body, replace=False), noise_scale=mechanism.noise_scale
    )
    assert half.bound.epsilon == pytest.approx(0.5)


def test_the_plain_k_norm_fails_for_a_body_that_is_not_symmetric() -> None:
    """Contributions of gauge 1 do not differ by gauge 2: for a simplex in the plane the true gauge is 3."""
    simplex = Simplex(vertices=[[-1, -1], [2, -1], [-1, 2]])
    v = np.array(simplex.vertices[1], dtype=float) - np.array(simplex.vertices[2], dtype=float)
    assert gauge(simplex, v)[0] == pytest.approx(3)


def test_rounding_to_the_grid_keeps_the_bound_of_continuous_noise() -> None:
    """Cells of rounded Gaussian and Euclidean Laplace noise, integrated: ratios and deltas stay below the claim."""
    gauss = RoundedGaussian(sensitivity=L2(1), noise_std=1.5, dimension=1)
    cells = np.arange(-30, 31)
    cdf = lambda t: 0.5 * math.erfc(-t / (1.5 * math.sqrt(2)))  # noqa: E731
    p = np.array([cdf(k + 0.5) - cdf(k - 0.5) for k in cells])
    for e in (0.1, 0.5, 1.5):
        assert np.maximum(p - math.exp(e) * np.roll(p, 1), 0).sum() <= gauss.bound.delta(e) * (1 + 1e-9)
    radial = Gamma.for_target(epsilon=1, sensitivity=L2(1), dimension=2)
    scale = float(radial.noise_scale)

    def cell(i: int, j: int) -> float:
        f = lambda y, x: math.exp(-math.hypot(x, y) / scale)  # noqa: E731
        return integrate.dblquad(f, i - 0.5, i + 0.5, j - 0.5, j + 0.5, epsabs=1e-12)[0]

    losses = [abs(math.log(cell(i, j) / cell(i - 1, j))) for i in range(-3, 9, 2) for j in (0, 1)]
    assert tight(max(losses), radial.bound.epsilon)
