"""Poisson-sampled Gaussian noise where one unit is exchanged (theorem poisson-gaussian-replace-one)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import tacit
from tacit.accounting.events import GaussianEvent, PoissonSampledEvent
from tacit.pld import SampledReplacementPair

Array = NDArray[np.float64]

EPSILONS = (-1.0, -0.2, 0.0, 0.1, 0.5, 1.5)
STEP = 0.05
AXIS = np.arange(-8.0, 8.0, STEP) + STEP / 2
X, Y = np.meshgrid(AXIS, AXIS)
MEASURED = 1e-4
"""Above what sums over this grid miss of an integral with a kink."""


def _mass(centre: tuple[float, float]) -> Array:
    """What a normal law in the plane gives to the cells."""
    return np.exp(-((X - centre[0]) ** 2 + (Y - centre[1]) ** 2) / 2) / (2 * math.pi) * STEP**2


def _turned(length: float, angle: float) -> tuple[float, float]:
    return length * math.cos(angle), length * math.sin(angle)


@pytest.mark.parametrize("rate", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_no_two_directions_are_told_apart_better(mu: float, rate: float) -> None:
    """poisson-gaussian-replace-one (a), (b): moves of any two directions and lengths lie below the pair's curve, and
    opposite ones of full length on it."""
    pair = SampledReplacementPair(mu=mu, rate=rate)
    curve = {e: pair.hockey_stick(e) for e in EPSILONS}
    still = _mass((0.0, 0.0))
    reached = 0
    for (one, other), turn in itertools.product(
        [(1.0, 1.0), (1.0, 0.4), (0.0, 1.0)], (0.0, 0.7, 2.0, math.pi)
    ):
        p = (1 - rate) * still + rate * _mass(_turned(mu * one, 0.3))
        q = (1 - rate) * still + rate * _mass(_turned(mu * other, 0.3 + turn))
        for e in EPSILONS:
            found = float(np.sum(np.maximum(p - math.exp(e) * q, 0.0)))
            assert found <= curve[e].high + MEASURED
            if one == other == 1.0 and turn == math.pi:
                assert found >= curve[e].low - MEASURED
                reached += 1
    assert reached == len(EPSILONS)
    # A little less noise is not covered: the test is able to fail.
    tighter = SampledReplacementPair(mu=0.97 * mu, rate=rate)
    assert curve[0.0].low > tighter.hockey_stick(0.0).high + MEASURED


def test_sets_of_every_shape_lie_between_two_half_lines() -> None:
    """poisson-gaussian-replace-one, proof: Phi(z - mu) <= N(u)(S) <= Phi(z + mu) for S of probability Phi(z)."""
    rng = np.random.default_rng(5)
    mu, still = 1.2, _mass((0.0, 0.0))
    moved = [_mass(_turned(mu * share, turn)) for share, turn in ((1.0, 0.0), (1.0, 2.5), (0.5, 4.0))]
    shapes = [X > 0.3, X < -1.0, X**2 + Y**2 < 1, np.abs(X) > 1.1, (X > 0) ^ (Y > 0)]
    shapes += [rng.random(X.shape) < 0.3, np.sin(3 * X + Y) > rng.random(X.shape)]
    for shape in shapes:
        z = norm.ppf(float(np.sum(still[shape])))
        for law in moved:
            found = float(np.sum(law[shape]))
            assert norm.cdf(z - mu) - MEASURED <= found <= norm.cdf(z + mu) + MEASURED
    half = float(np.sum(moved[0][X > 0.3]))
    assert half == pytest.approx(norm.cdf(mu - 0.3), abs=1e-3)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_sampled_sums_of_few_records_lie_below_the_account(rate: float) -> None:
    """poisson-gaussian-replace-one (a): all samples of small tables are counted out, from the definition of sampling
    to what `account` says of the event; a table of one record reaches it."""
    noise, norm_of_one = 1.3, 2.0
    event = PoissonSampledEvent(event=GaussianEvent(noise_multiplier=noise / norm_of_one), sampling_rate=rate)
    line = np.arange(-16.0, 16.0, 0.004) + 0.002

    def law(records: tuple[float, ...]) -> Array:
        density = np.zeros_like(line)
        for kept in itertools.product((False, True), repeat=len(records)):
            weight = math.prod(rate if k else 1 - rate for k in kept)
            total = sum(r for r, k in zip(records, kept, strict=True) if k)
            density += weight * norm.pdf(line, total, noise)
        return density * 0.004

    for epsilon in (0.05, 0.3, 1.0):
        told = tacit.account([event], epsilon=epsilon, neighbours="replace-one").delta
        worst = 0.0
        for others in ((), (2.0,), (-1.0, 0.5), (2.0, 2.0, -2.0)):
            for x, y in itertools.permutations((-2.0, -0.7, 0.0, 2.0), 2):
                gap = law((x, *others)) - math.exp(epsilon) * law((y, *others))
                worst = max(worst, float(np.sum(np.maximum(gap, 0.0))))
        assert told.low - 1e-5 <= worst <= told.high + 1e-5


def test_divergences_lie_above_integrals() -> None:
    """poisson-gaussian-replace-one (d)."""
    line = np.arange(-20.0, 20.0, 0.002)
    for mu, rate, order in itertools.product((0.3, 1.0), (0.1, 0.6, 1.0), (1.5, 2.0, 4.0)):
        p, q = ((1 - rate) * norm.pdf(line) + rate * norm.pdf(line, shift) for shift in (mu, -mu))
        true = math.log(float(np.sum(p**order * q ** (1 - order))) * 0.002) / (order - 1)
        told = SampledReplacementPair(mu=mu, rate=rate).renyi(order)
        assert true <= told * (1 + 1e-9)
        if rate == 1.0:
            assert told <= true * (1 + 1e-6)
