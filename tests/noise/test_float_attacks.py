"""What can be seen in a release does not depend on the truth except through the proved law.

Mironov (2012): a float Laplace sampler has gaps, and where they lie depends on the true value. Here every
integer can come out, whatever the true value, and nothing but integers does.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.exact.checks import add_exact
from tacit.noise import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase, GaussianVector, SeededSource
from tacit.noise.distributions.gaussian import _direct
from tacit.noise.distributions.geometric import _side, geometric_digits


def laplace_preimages(window: int) -> set[int]:
    """Noise values for which words exist, found by constructing the words from the certified boundaries."""
    rate = Fraction(1, 10)
    (top,) = geometric_digits(rate).inverters
    side = _side(rate)
    top.compile()
    side.compile()
    edges = [1 << 64, *(int(b) for b in top._boundaries)]
    magnitudes = np.array([(edges[k] + edges[k + 1]) // 2 for k in range(window + 1)], dtype=np.uint64)
    sides = np.array([0, (1 << 64) - 1], dtype=np.uint64)
    source = SeededSource(seed=1)
    reached = set()
    for coin in side.invert(sides, source):
        reached |= set((top.invert(magnitudes, source) ^ -coin).tolist())
    return reached


def test_every_integer_is_reachable_from_every_truth() -> None:
    noise = laplace_preimages(120)
    assert noise >= set(range(-120, 121))
    window = set(range(-60, 61))
    for truth in (0, 1, 7, -13):
        assert {truth + k for k in noise} >= window


def test_every_magnitude_of_the_gaussian_is_reachable() -> None:
    table = _direct(Fraction(100))
    table.compile()
    edges = [1 << 63, *(int(b) for b in table._boundaries)]
    words = np.array([(edges[k] + edges[k + 1]) // 2 for k in range(70)], dtype=np.uint64)
    assert table.invert(words, SeededSource(seed=1)).tolist() == list(range(70))


def test_the_same_check_catches_a_float_sampler() -> None:
    """The textbook float sampler fails it: outputs for truth 0 and truth 1 are different sets of floats."""
    u = np.arange(1, 1 << 14) / (1 << 14)
    noise = 10.0 * np.log(u)
    zero, one = set((0.0 + noise).tolist()), set((1.0 + noise).tolist())
    inside = {x for x in zero if -50 < x < 0}
    assert len(inside - one) > 1_000


@pytest.mark.slow
def test_ten_million_draws_stay_on_the_grid() -> None:
    source = SeededSource(seed=99)
    total = 0
    for law in (
        DiscreteLaplace(noise_scale=10),
        DiscreteLaplace(noise_scale=10**9),
        DiscreteGaussian(noise_std=10),
        DiscreteGaussian(noise_std=10**9),
    ):
        # Beyond 60 scales lies less than 2^-86 of either law.
        bound = 60 * int(getattr(law, "noise_scale", getattr(law, "noise_std", 0)))
        x = law.sample(size=2_500_000, source=source)
        assert x.dtype == np.int64
        assert int(x.max()) <= bound
        assert int(x.min()) >= -bound
        assert int(x.min()) < 0 < int(x.max())
        released = add_exact(np.full(x.size, 17), x)
        assert released.dtype == np.int64
        total += x.size
    assert total == 10_000_000


@pytest.mark.slow
def test_a_million_rounded_reals_stay_on_the_grid() -> None:
    drawn = GaussianVector(coordinates=10, noise_std=3).sample(
        spacing=2.0**-16, size=100_000, source=SeededSource(seed=4)
    )
    assert drawn.values.dtype == np.int64
    assert int(np.abs(drawn.values).max()) < 3 * 12 * 2**16
    staircase = DiscreteStaircase(epsilon=1, sensitivity=2**20).sample(
        size=1_000_000, source=SeededSource(seed=4)
    )
    assert staircase.dtype == np.int64
    assert int(np.abs(staircase).max()) < 70 * 2**20
