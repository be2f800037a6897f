"""Variances of continuous noise, by their integrals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import NoLaw
from tacit.noise import (
    ContinuousBeta,
    ContinuousGamma,
    Difference,
    Ellipsoid,
    EuclideanBall,
    FormulaBody,
    GaussianVector,
    KNormVector,
    L1Ball,
    LinfBall,
    SeededSource,
    Sphere,
)


def test_spreads_of_continuous_noise() -> None:
    """Variances by their integrals, and a covariance by the factor's definition."""
    from scipy.integrate import quad

    gamma, beta = ContinuousGamma(shape=2.5, noise_scale=3), ContinuousBeta(a=2, b=3.5)
    laws = (
        (gamma, lambda x: x**1.5 * math.exp(-x / 3), 200.0),
        (beta, lambda x: x * (1 - x) ** 2.5, 1.0),
    )
    for law, weight, end in laws:
        moments = [quad(lambda x, k=k, w=weight: x**k * w(x), 0, end)[0] for k in range(3)]
        assert law.variance == pytest.approx(
            moments[2] / moments[0] - (moments[1] / moments[0]) ** 2, rel=1e-6
        )
    shaped = GaussianVector(coordinates=2, noise_std=2, factor=[[1, 0], [1, 1]])
    assert shaped.covariance.tolist() == [[4, 4], [4, 8]]
    assert GaussianVector(coordinates=2, noise_std=2).covariance.tolist() == [[4, 0], [0, 4]]


def second_moment(inside, d: int) -> np.ndarray:
    """E u u' for u uniform on a body within [-3, 3]^d, by a fine grid of midpoints."""
    line = (np.arange(180) + 0.5) / 30 - 3
    grid = np.stack([m.ravel() for m in np.meshgrid(*[line] * d, indexing="ij")], axis=1)
    points = grid[inside(grid)]
    return points.T @ points / len(points)


SHAPE = [[1.0, 0.0], [0.5, 2.0]]
BODIES = [
    (EuclideanBall(coordinates=2, radius=2), lambda x: (x**2).sum(axis=1) <= 4),
    (EuclideanBall(coordinates=3, radius=2), lambda x: (x**2).sum(axis=1) <= 4),
    (L1Ball(coordinates=3, radius=2.5), lambda x: np.abs(x).sum(axis=1) <= 2.5),
    (LinfBall(coordinates=2, radius=1.5), lambda x: np.abs(x).max(axis=1) <= 1.5),
    (Ellipsoid(factor=SHAPE), lambda x: (np.linalg.solve(SHAPE, x.T) ** 2).sum(axis=0) <= 1),
]


@pytest.mark.parametrize(("body", "inside"), BODIES)
def test_covariances_of_bodies_by_integration(body, inside) -> None:
    """The uniform law on a grid; and K-norm noise, whose density is e^(-gauge), by its own Gamma(d) gauge."""
    d = body.dimension
    exact = second_moment(inside, d)
    assert np.abs(body.covariance - exact).max() < 0.01 * np.abs(exact).max()
    noise = KNormVector(body=body, noise_scale=3)
    # With the gauge g ~ Gamma(d) and a direction apart: E y y' = 9 d (d + 1) E[y y' | gauge 1], and for a uniform point
    # E u u' = d / (d + 2) of the same.
    expected = 9 * d * (d + 1) * (d + 2) / d * exact
    assert np.abs(noise.covariance - expected).max() < 0.01 * np.abs(expected).max()
    assert (Difference(distribution=noise).covariance == 2 * noise.covariance).all()


def test_covariances_of_what_is_drawn() -> None:
    """20,000 draws; a mean of squares within 6.5 of its standard errors (below 1e-9)."""
    for law in (Sphere(coordinates=3, radius=2), KNormVector(body=L1Ball(coordinates=3), noise_scale=2)):
        x = law.sample(spacing=2.0**-20, size=20_000, source=SeededSource(seed=4)).to_floats() ** 2
        error = x.std(axis=0) / math.sqrt(len(x))
        assert (np.abs(x.mean(axis=0) - law.covariance.diagonal()) < 6.5 * error).all()


def test_bodies_without_a_formula_say_so() -> None:
    ball = LinfBall(coordinates=2)
    for symmetric in (True, False):
        body = FormulaBody(
            coordinates=2, primitives=ball.needs(), sampler=ball.formula, is_symmetric=symmetric
        )
        noise = KNormVector(body=body, noise_scale=1)
        for law in (body, noise, Difference(distribution=noise)):
            with pytest.raises(NoLaw):
                _ = law.covariance
    assert Difference(distribution=ContinuousGamma(shape=2, noise_scale=3)).covariance == 2 * 2 * 9
