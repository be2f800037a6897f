"""Clamping bounds: the threshold by its definition, and no empty range taken more often than stated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import L1, L2, Gaussian, Laplace
from tacit.mechanisms.quantiles import bounds_from_counts, clamping_threshold
from tacit.noise import DiscreteLaplace, SeededSource
from tacit.sources.axes import Magnitudes

LABELS = Magnitudes(column="x").labels
EDGES = [LABELS[0][0], *(high for _, high in LABELS)]


@pytest.mark.parametrize("scale", [0.5, 1, 20, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_threshold_is_the_least_by_the_geometric_tail(scale, confidence):
    c = clamping_threshold(DiscreteLaplace(noise_scale=scale), ranges=161, confidence=confidence)
    q = math.exp(-1 / scale)

    def all_below(t):
        return (1 - q**t / (1 + q)) ** 161

    assert all_below(c) >= confidence * (1 - 1e-12)
    assert all_below(c - 1) < confidence


def test_reads_the_ranges_that_hold_rows():
    counts = np.zeros(161, dtype=int)
    counts[80 + 20] = 10_000  # [2^-1, 2^0)
    counts[80 + 30] = 5_000
    counts[80 - 22] = 400
    noise = Laplace.for_target(epsilon=0.5, sensitivity=L1(1))
    found = bounds_from_counts(
        noise.release(counts, source=SeededSource(seed=1)).values, edges=EDGES, noise=noise
    )
    assert (found.low, found.high) == (LABELS[80 - 22][0], LABELS[80 + 30][1])
    assert found.found
    assert found.low == -4.0
    assert found.high == 1024.0


@pytest.mark.parametrize(
    "noise",
    [
        Laplace.for_target(epsilon=1, sensitivity=L1(2)),
        Gaussian(sensitivity=L2(1), noise_std=5, dimension=161),
    ],
)
def test_empty_ranges_are_taken_as_rarely_as_stated(noise):
    runs, taken = 2000, 0
    source = SeededSource(seed=2)
    law = noise.distribution
    draws = law.sample(size=(runs, 161), source=source)
    c = clamping_threshold(noise, ranges=161, confidence=0.9)
    taken = (draws >= c).any(axis=1).mean()
    # Five standard deviations of 2000 runs; and the threshold is not needlessly high.
    assert taken <= 0.1 + 5 * math.sqrt(0.09 / runs)
    assert (draws >= c - 1).any(axis=1).mean() > 0.1 - 5 * math.sqrt(0.09 / runs)
    nothing = bounds_from_counts(np.zeros(161, dtype=int), edges=EDGES, noise=noise)
    assert (nothing.low, nothing.high, nothing.found) == (None, None, False)


def test_bad_input():
    law = DiscreteLaplace(noise_scale=2)
    for wrong in (
        {"edges": EDGES[:-1]},
        {"edges": EDGES[::-1]},
        {"noisy_counts": np.zeros(161)},
        {"noisy_counts": np.zeros((1, 161), dtype=int)},
        {"noise": "laplace"},
        {"noise": Laplace(sensitivity=L1(1), noise_scale=1, spacing=0.5)},
        {"confidence": 1},
    ):
        given = {"noisy_counts": np.zeros(161, dtype=int), "edges": EDGES, "noise": law, **wrong}
        counts = given.pop("noisy_counts")
        with pytest.raises(InvalidParameter):
            bounds_from_counts(counts, **given)
