"""Theorem `random-kernel-density`: kernel estimates from histograms, and what pairs of rows cannot gain."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidInput
from tacit.noise import SeededSource
from tacit.random_data import RandomDensity, RandomHistogram, pairs_gain


@pytest.mark.parametrize("seed", range(50))
def test_the_curve_is_that_of_the_released_counts(seed: int) -> None:
    """The same histogram with the same words of noise, and kernels written out one by one."""
    dice = random.Random(seed)
    rows, bins = dice.randint(50, 400), dice.randint(4, 12)
    low, high = -1.0, dice.choice([1.0, 3.0])
    made = RandomDensity(
        rows=rows, low=low, high=high, bins=bins, bandwidth=(high - low) / bins * dice.uniform(1, 3),
        epsilon=dice.choice([0.5, 1, 4]), gamma=dice.choice([0.05, 0.2, 0.6]),
    )  # fmt: skip
    values = [dice.uniform(low - 0.5, high + 0.5) for _ in range(rows)]
    counts = [0] * bins
    for v in values:
        counts[min(max(math.floor((v - low) / ((high - low) / bins)), 0), bins - 1)] += 1
    told = RandomHistogram(rows=rows, cells=bins, epsilon=made.epsilon, gamma=made.gamma).release(
        counts, source=SeededSource(seed=seed)
    )
    curve = made.release(values, source=SeededSource(seed=seed))
    assert not curve.publishable
    width = (high - low) / bins
    std = math.sqrt(made.bandwidth**2 - width**2 / 12)
    for x in (low, 0.1, high):
        expected = sum(
            int(c)
            / rows
            * math.exp(-(((x - low - (j + 0.5) * width) / std) ** 2) / 2)
            / (std * math.sqrt(2 * math.pi))
            for j, c in enumerate(np.asarray(told.counts).tolist())
        )
        assert float(curve(x)) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert str(made.guarantee) == str(made.histogram.guarantee)


def test_without_noise_it_is_the_kernel_estimate() -> None:
    """A large epsilon: the smoothed histogram against the kernel estimate of the rows themselves."""
    rows = np.random.default_rng(4).normal(0.5, 0.12, 4000)
    made = RandomDensity(rows=4000, low=0, high=1, bins=100, bandwidth=0.04, epsilon=500, gamma=0.1)
    curve = made.release(rows, source=SeededSource(seed=1))
    x = np.linspace(0.1, 0.9, 41)
    plain = np.exp(-(((x[:, None] - rows) / 0.04) ** 2) / 2).mean(axis=1) / (0.04 * math.sqrt(2 * math.pi))
    assert np.abs(curve(x) - plain).max() < 0.01 * plain.max()


def test_the_noise_is_as_large_as_stated() -> None:
    """All rows in one cell: only its noise is left, integrated over the line, 400 releases."""
    made = RandomDensity(rows=1000, low=0, high=1, bins=40, bandwidth=0.05, epsilon=1, gamma=0.1)
    values = np.full(1000, 0.51)
    x = np.linspace(-0.5, 1.5, 1601)
    true = np.exp(-(((x - 0.5125) / made.kernel_std) ** 2) / 2) / (made.kernel_std * math.sqrt(2 * math.pi))
    squares = [
        float(((made.release(values, source=SeededSource(seed=s))(x) - true) ** 2).sum() * (x[1] - x[0]))
        for s in range(400)
    ]
    assert math.sqrt(np.mean(squares)) == pytest.approx(made.noise_error(noisy_cells=1), rel=0.15)
    told = made.to_dict(occupied=10)
    assert told["plain_noise_error"] / told["noise_error"] == pytest.approx(2.0)


def test_pairs_gain_nothing_at_bandwidths_that_show_a_shape() -> None:
    """The 90% quantile of the distances of 200,000 pairs, and the norm of the change by numerical integration."""
    random_ = np.random.default_rng(9)
    for rows, bandwidth, least in (
        (random_.uniform(0, 1, (2, 200_000)), 0.05, 0.9999),
        (random_.normal(0, 1, (2, 200_000)), 0.3, 0.9999),
        (random_.normal(0, 1, (2, 200_000)), 1.0, 0.96),
    ):
        distance = float(np.quantile(np.abs(rows[0] - rows[1]), 0.9))
        assert least < pairs_gain(distance=distance, bandwidth=bandwidth) <= 1
    # The norm from the definition: the Fourier transform of the normal kernel is e^(-b^2 t^2 / 2).
    b, r = 0.7, 1.1
    t = np.linspace(-40, 40, 400_001)
    # |1 - e^(irt)|^2 times the kernel's transform, over 2 pi: the squared norm of k_x - k_x' in its own space.
    squared = float(
        (np.abs(1 - np.exp(1j * r * t)) ** 2 * np.exp(-((b * t) ** 2) / 2)).sum() * (t[1] - t[0])
    ) / (2 * math.pi)
    worst = 2 / (b * math.sqrt(2 * math.pi))
    assert math.sqrt(squared / worst) == pytest.approx(pairs_gain(distance=r, bandwidth=b), rel=1e-6)
    # A density of at most M = 1: the named distance is exceeded by more than gamma of the pairs.
    uniform = random_.uniform(0, 1, (2, 200_000))
    assert (np.abs(uniform[0] - uniform[1]) > 0.45).mean() > 0.1


@pytest.mark.parametrize(
    "bad",
    [
        {"bins": 10},
        {"low": 2.0},
        {"low": math.nan},
        {"bandwidth": 0.0},
        {"gamma": 1.5},
        {"epsilon": 0},
        {"bins": 1},
    ],
)
def test_what_is_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "rows": 100,
        "low": 0,
        "high": 1,
        "bins": 25,
        "bandwidth": 0.05,
        "epsilon": 1,
        "gamma": 0.2,
    }
    RandomDensity(**good)
    with pytest.raises(InvalidInput):
        RandomDensity(**{**good, **bad})
    with pytest.raises(InvalidInput):
        RandomDensity(**good).release([0.5] * 99)
    with pytest.raises(InvalidInput):
        RandomDensity(**good).release([math.nan] * 100)
    with pytest.raises(InvalidInput):
        RandomDensity(**good).to_dict(occupied=26)
