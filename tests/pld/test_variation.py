"""Transforms of sampled normal noise stay below the variation of its density over the frequency."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.pld.pairs.gaussian import log_variation
from tacit.pld.transforms import variation_bound

MU, RATE, POWER = (0.3, 1.0, 1.9), (1e-4, 0.02, 0.6), (-6.0, 0.5, 2.0, 9.0, 30.0)


def density(mu: float, rate: float, power: float, start: float | None) -> tuple[float, np.ndarray]:
    """The density phi(x) g^k/(mu q Z) on a fine grid of x, by its logarithmic peak and its shares of that."""
    x = np.linspace(-14.0 - 6 * mu, 14.0 + 32 * mu, 400_001)
    x = x if start is None else np.concatenate([[start], x[x > start]])
    log_z = mu * x - mu * mu / 2
    log_g = np.logaddexp(math.log1p(-rate), math.log(rate) + log_z)
    logs = -x * x / 2 + power * log_g - log_z - math.log(mu * rate * math.sqrt(2 * math.pi))
    return float(np.max(logs)), np.exp(logs - np.max(logs))


@pytest.mark.parametrize("mu", MU)
@pytest.mark.parametrize("rate", RATE)
@pytest.mark.parametrize("half", [False, True])
def test_the_variation_of_densities(mu: float, rate: float, half: bool) -> None:
    for power in POWER:
        start = mu / 2 if half else None
        peak, f = density(mu, rate, power, start)
        true = float(f[0] + f[-1] + np.sum(np.abs(np.diff(f))))
        column = None if start is None else np.array([[start]])
        found = math.exp(log_variation(np.array([[mu]]), np.array([[rate]]), power, column)[0] - peak)
        assert true <= found * (1 + 1e-9)
        assert found <= true * (1.2 if abs(power) < 10 else 4.0)


@pytest.mark.parametrize(("mu", "rate", "tilt"), [(1.25, 0.01, 8.0), (0.5, 0.1, 3.0), (1.0, 0.3, 0.0)])
def test_transforms_stay_below_the_variation(mu: float, rate: float, tilt: float) -> None:
    """|phi| of the tilted loss, summed from the definition: x normal under Q, the loss ln g, P-masses g."""
    x = np.linspace(-12.0, 12.0 + (tilt + 2) * mu, 200_001)
    g = 1 - rate + rate * np.exp(mu * x - mu * mu / 2)
    weights = np.exp(-x * x / 2 + (tilt + 1) * np.log(g)) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    scale = float(np.sum(weights))
    w = np.array([1.0, 5.0, 20.0, 60.0, 100.0, 200.0])
    logs = log_variation(np.array([[mu]]), np.array([[rate]]), tilt + 2)
    bound = variation_bound(logs, np.zeros(1), np.array([math.log(scale)]), np.zeros(1), np.append(w, 300.0))
    shown = 0
    for at, low in zip(w, bound[0], strict=True):
        phi = abs(np.sum(weights * np.exp(1j * at * np.log(g)))) / scale
        assert math.log(phi) <= low + 1e-12
        shown += low < -0.5
    assert shown, "the bound says something"


def test_an_atom_does_not_fade() -> None:
    bound = variation_bound(
        np.array([math.log(2.0)]), np.array([0.25]), np.zeros(1), np.zeros(1), np.array([1e6, 1e7])
    )
    assert math.log(0.25) <= bound[0, 0] <= math.log(0.25 + 1e-5)
    unsure = variation_bound(np.zeros(1), np.zeros(1), np.zeros(1), np.full(1, 0.1), np.array([1e6, 1e7]))
    assert unsure[0, 0] == 0.0
