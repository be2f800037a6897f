"""Variances of continuous noise, by their integrals."""

from __future__ import annotations

import math

import pytest

from tacit.noise import ContinuousBeta, ContinuousGamma, GaussianVector


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
