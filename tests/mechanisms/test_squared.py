"""Theorem `squared-metrics`: by integration for bodies, and by sums over outputs."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi

from tacit.errors import InvalidInput
from tacit.mechanisms.squared import SquaredExponential, chi_delta, squared_norm_scale
from tacit.noise import SeededSource


def test_the_scale_of_the_chi_bound() -> None:
    for d, epsilon, delta in ((1, 0.5, 1e-3), (3, 1.0, 1e-6), (20, 1.0, 1e-6), (100, 0.1, 1e-9)):
        s = squared_norm_scale(dimension=d, epsilon=epsilon, delta=delta)
        assert chi.sf(epsilon * s - 0.5 / s, d) == pytest.approx(delta, rel=1e-6)
        assert chi_delta(dimension=d, noise_scale=s, epsilon=epsilon) <= delta
    s = squared_norm_scale(dimension=20, epsilon=1, delta=1e-6)
    assert s * s / 21 == pytest.approx(3.1627, abs=1e-4)


@pytest.mark.parametrize(("s", "epsilon"), [(2.0, 1.0), (3.0, 0.7), (1.2, 2.0), (5.0, 0.4)])
def test_a_square_in_the_plane_stays_below_the_bound(s: float, epsilon: float) -> None:
    """The cube with moves (1, 1), (1, 0) and (1, -1): H_epsilon on a fine grid of outputs, from the densities."""
    x = np.linspace(-9 * s, 9 * s, 1201)
    a, b = np.meshgrid(x, x)
    p = np.exp(-(np.maximum(np.abs(a), np.abs(b)) ** 2) / (2 * s * s))
    p /= p.sum()
    claimed = chi_delta(dimension=2, noise_scale=s, epsilon=epsilon)
    for v in ((1, 1), (1, 0), (1, -1)):
        q = np.exp(-(np.maximum(np.abs(a - v[0]), np.abs(b - v[1])) ** 2) / (2 * s * s))
        q /= q.sum()
        found = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        assert found <= claimed
    # In one dimension and for one move the loss itself is (2x + 1)/(2 s^2): the bound counts how often it is large.
    loss = quad(lambda t: math.exp(-t * t / 2) / math.sqrt(2 * math.pi), epsilon * s - 0.5 / s, 60)[0]
    assert chi_delta(dimension=1, noise_scale=s, epsilon=epsilon) == pytest.approx(2 * loss, rel=1e-9)


@pytest.mark.parametrize("seed", range(50))
def test_choices_with_their_normaliser(seed: int) -> None:
    """Random finite metrics: points in the plane, states and outputs among them; every sum written out."""
    dice = random.Random(seed)
    points = [(dice.randint(0, 6), dice.randint(0, 6)) for _ in range(dice.randint(3, 7))]
    table = [[abs(a - c) + abs(b - d) for c, d in points] for a, b in points]
    pairs = [(i, i + 1) for i in range(len(points) - 1)]
    epsilon, delta = dice.choice([0.3, 1.0, 2.0]), dice.choice([0.1, 1e-2, 1e-5])
    made = SquaredExponential.for_target(epsilon=epsilon, delta=delta, distances=table, neighbours=pairs)
    s = float(made.noise_scale)

    def worst(scale: float) -> float:
        laws = []
        for row in table:
            weights = [math.exp(-(v**2) / (2 * scale**2)) for v in row]
            laws.append([w / sum(weights) for w in weights])
        return max(
            sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(laws[i], laws[j], strict=True))
            for a, b in pairs
            for i, j in ((a, b), (b, a))
        )

    assert worst(s) <= delta
    assert worst(s * 0.99) > delta * 0.99 or worst(s * 0.5) > delta
    assert made.bound(epsilon).delta <= delta
    weights = np.exp(-(np.array(table[0], dtype=float) ** 2) / (2 * s * s))
    assert made.probabilities(0) == pytest.approx(weights / weights.sum(), rel=1e-9)


def test_forgetting_the_normaliser_would_claim_too_little() -> None:
    line = [[abs(i - j) for j in range(21)] for i in range(21)]
    made = SquaredExponential(
        distances=tuple(map(tuple, line)), neighbours=tuple((i, i + 1) for i in range(20)), noise_scale=3.844
    )
    p, q = made.probabilities(0), made.probabilities(1)
    assert math.log(p[0] / q[0]) == pytest.approx(0.2009, abs=1e-4)
    alone = 1 / (2 * 3.844**2)
    assert alone == pytest.approx(0.0338, abs=1e-4)


def test_draws_follow_the_law() -> None:
    made = SquaredExponential(distances=((0, 1, 2), (1, 0, 1)), neighbours=((0, 1),), noise_scale=1)
    source = SeededSource(seed=8)
    seen = np.bincount([made.choose(1, source=source) for _ in range(4000)], minlength=3) / 4000
    assert np.abs(seen - made.probabilities(1)).max() < 6.8 * 0.5 / math.sqrt(4000)


@pytest.mark.parametrize(
    "bad",
    [
        {"distances": ((0, 1),), "neighbours": ((0, 1),)},
        {"distances": ((0, 1), (1,)), "neighbours": ((0, 1),)},
        {"distances": ((0, -1), (1, 0)), "neighbours": ((0, 1),)},
        {"distances": ((0, 1), (1, 0)), "neighbours": ((0, 2),)},
        {"distances": ((0, 1), (1, 0)), "neighbours": ()},
        {"distances": ((0, 1), (1, 0)), "neighbours": ((0, 1),), "noise_scale": 0},
    ],
)
def test_what_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        SquaredExponential(**{"noise_scale": 1, **bad})


def test_a_state_out_of_range() -> None:
    made = SquaredExponential(distances=((0, 1), (1, 0)), neighbours=((0, 1),), noise_scale=1)
    with pytest.raises(InvalidInput):
        made.choose(2)


def test_the_energies_of_the_table_are_those_of_draws() -> None:
    """K-norm and squared K-norm noise of the cube, from r u: 200,000 draws, within 2%."""
    from tacit.reproduce.hall_1 import energies, gaussian_scale

    d, random_ = 5, np.random.default_rng(3)
    found = energies(d, 1.0, 1e-6)
    u = random_.uniform(-1, 1, size=(200_000, d))
    plain = (random_.gamma(d + 1, 1.0, size=200_000)[:, None] * u) ** 2
    assert plain.sum(axis=1).mean() == pytest.approx(found["K-norm"]["cube"], rel=0.02)
    s = squared_norm_scale(dimension=d, epsilon=1, delta=1e-6)
    radius = s * np.sqrt(random_.chisquare(d + 2, size=200_000))
    squared = (radius[:, None] * u) ** 2
    assert squared.sum(axis=1).mean() == pytest.approx(found["squared K-norm"]["cube"], rel=0.02)
    # The gauge of r u is s chi_d, as the proof says.
    gauge = np.abs(radius[:, None] * u).max(axis=1) / s
    assert (gauge**2).mean() == pytest.approx(d, rel=0.02)
    assert gaussian_scale(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-3)
