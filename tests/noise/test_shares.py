"""Shares of noise: Pólya shares add up to discrete Laplace noise, Skellam shares to Skellam noise; exactly."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import nbinom, poisson, skellam

from tacit.errors import InvalidParameter
from tacit.noise import DiscreteLaplace, NegativeBinomial, Poisson, PolyaDifference, SeededSource, Skellam
from tacit.noise.distributions.base import Inverter, Series
from tacit.noise.distributions.polya import _Blocks, _Sampler

getcontext().prec = 60


def masses(shape: Fraction, rate: Decimal, count: int) -> list[Decimal]:
    """Pr[X = k] of the negative binomial from its definition, by the ratio of successive terms."""
    q = (-rate).exp()
    found = [((1 - q).ln() * Decimal(shape.numerator) / Decimal(shape.denominator)).exp()]
    for k in range(count - 1):
        top = shape + k
        found.append(found[-1] * q * Decimal(top.numerator) / Decimal(top.denominator) / (k + 1))
    return found


def convolved(a: list[Decimal], b: list[Decimal]) -> list[Decimal]:
    return [sum((a[i] * b[k - i] for i in range(k + 1)), Decimal(0)) for k in range(min(len(a), len(b)))]


@pytest.mark.parametrize("holders", [2, 3, 5])
def test_the_definitions_add_up_by_enumeration(holders: int) -> None:
    """Convolving the stated law of a share `holders` times gives the geometric law, term by term."""
    rate = Decimal("0.4")
    share = masses(Fraction(1, holders), rate, 40)
    law = NegativeBinomial(shape=Fraction(1, holders), noise_scale=Fraction(5, 2))
    for k, mass in enumerate(share):
        low, high = law.probability(k)
        assert low <= float(mass) * (1 + 1e-15)
        assert float(mass) * (1 - 1e-15) <= high
    total = share
    for _ in range(holders - 1):
        total = convolved(total, share)
    q = (-rate).exp()
    for k, mass in enumerate(total):
        assert abs(mass - (1 - q) * q**k) < Decimal("1e-50")


def test_the_difference_of_shape_one_is_discrete_laplace() -> None:
    whole, laplace = PolyaDifference(shape=1, noise_scale=3), DiscreteLaplace(noise_scale=3)
    for k in range(-30, 31):
        assert whole.probability(k) == pytest.approx(laplace.probability(k), rel=1e-12)
        assert whole.survival(k) == pytest.approx(laplace.survival(k), rel=1e-12)
    assert whole.std == pytest.approx(laplace.std, rel=1e-12)


def test_a_share_is_drawn_from_the_tree_that_its_law_says(scripted, exhausted) -> None:
    """The random-bit tree of the block table, with words of 4 bits, gives the exact masses to 2^-40."""
    shape, rate = Fraction(1, 3), Fraction(2, 3)
    blocks = _Blocks(shape, rate)
    assert blocks.widest == 0
    inverter = Inverter(Series(blocks.terms), bits=4, step=4)
    exact = masses(shape, Decimal(2) / 3, 40)
    settled: dict[int, Fraction] = {}
    paths, weight = [[w] for w in range(16)], Fraction(1, 16)
    for depth in range(12):
        still = []
        for path in paths:
            try:
                k = inverter.resolve(path[0], scripted(path[1:], width=4))
                settled[k] = settled.get(k, Fraction(0)) + weight
            except exhausted:
                still.append(path)
        paths = [[*p, w] for p in still for w in range(16)] if depth < 11 else still
        weight = weight / 16 if depth < 11 else weight
    unsettled = weight * len(paths)
    assert unsettled < Fraction(1, 1 << 40)
    for k in range(12):
        assert abs(settled.get(k, Fraction(0)) - Fraction(exact[k])) <= unsettled + Fraction(1, 10**50)


def test_floats_that_settle_a_draw_enclose_the_truth() -> None:
    """Chord above, the next chord prolonged below, in every block and place of a law of moderate scale."""
    blocks = _Blocks(Fraction(1, 5), Fraction(1, 700))
    sampler = _Sampler(blocks)
    for index in range(200):
        start, width = blocks.start(index), 1 << blocks.bits(index)
        assert start + width == blocks.start(index + 1)
        for place in {0, 1, width // 2, width - 1}:
            k = start + place
            true = (
                math.lgamma(k + 0.2) - math.lgamma(k + 1) - math.lgamma(start + 0.2) + math.lgamma(start + 1)
            )
            true -= place / 700
            y = place / width
            high = -sampler._chords[index] * y
            low = -(sampler._chords[index] - sampler._next[index] * (1 - y))
            if 0 < place < width:
                assert low - 1e-9 <= true <= high + 1e-9
            assert width == 1 or high - low < 0.02


WIDE = [
    (Fraction(1, 4), 0.7),
    (Fraction(1, 4), 6),
    (Fraction(2, 7), 90),
    (Fraction(1, 10), 5000),
    (Fraction(3, 2), 40),
]


@pytest.mark.parametrize(("shape", "scale"), WIDE, ids=str)
def test_goodness_of_fit_of_a_share(shape: Fraction, scale: float, p_of) -> None:
    """Against scipy's own negative binomial."""
    draws, q = 200_000, math.exp(-1 / scale)
    x = NegativeBinomial(shape=shape, noise_scale=scale).sample(size=draws, source=SeededSource(seed=11))
    edges = np.unique([0, 1, 2, 3, *np.geomspace(4, 30 * scale + 10, 120).astype(int)])
    law = np.diff([0.0, *nbinom.cdf(edges[1:] - 1, float(shape), 1 - q), 1.0])
    counts = np.histogram(x, bins=[*edges, 1 << 62])[0]
    assert p_of(counts, law * draws) > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("holders", "scale"), [(3, 2.5), (7, 60)])
def test_sums_of_shares_are_discrete_laplace(holders: int, scale: float, p_of) -> None:
    """A million sums; and with all shares but one known, what is left has the law of the one."""
    draws = 1_000_000
    law = PolyaDifference(shape=Fraction(1, holders), noise_scale=scale)
    source = SeededSource(seed=5)
    total = np.zeros(draws, dtype=np.int64)
    for _ in range(holders):
        total += law.sample(size=draws, source=source)
    q, reach = math.exp(-1 / scale), int(12 * scale)
    k = np.arange(-reach, reach + 1)
    expected = (1 - q) / (1 + q) * q ** np.abs(k) * draws
    observed = np.bincount(np.clip(total, -reach, reach) + reach, minlength=k.size).astype(float)
    tail = q**reach / (1 + q) * draws
    expected[0], expected[-1] = tail, tail
    assert p_of(observed, expected) > 1e-9
    # A share that is missing is noticed: the same test refutes the law of one share less.
    assert p_of(np.roll(observed, 1), expected) < 1e-9


@pytest.mark.parametrize("mean", [0.2, 7, 2000, 4000, 10**6])
def test_goodness_of_fit_of_poisson(mean: float, p_of) -> None:
    draws = 100_000
    x = Poisson(mean_count=mean).sample(size=draws, source=SeededSource(seed=3))
    low, high = int(poisson.ppf(1e-6, mean)), int(poisson.ppf(1 - 1e-6, mean))
    step = max(1, (high - low) // 150)
    edges = np.arange(low, high + step, step)
    law = np.diff([0.0, *poisson.cdf(edges, mean), 1.0])
    counts = np.diff([0, *np.searchsorted(np.sort(x), edges, side="right"), draws])
    assert p_of(counts, law * draws) > 1e-9


@pytest.mark.parametrize("variance", [0.5, 30, 9000])
def test_sums_of_skellam_shares_are_skellam(variance: float, p_of) -> None:
    draws, holders = 1_000_000, 4
    law = Skellam(noise_variance=Fraction(variance) / holders)
    x = law.sample(size=(holders, draws), source=SeededSource(seed=9)).sum(axis=0)
    reach = int(6 * variance**0.5) + 6
    k = np.arange(-reach, reach + 1)
    expected = skellam.pmf(k, variance / 2, variance / 2) * draws
    observed = np.bincount(np.clip(x, -reach, reach) + reach, minlength=k.size)
    assert p_of(observed, expected) > 1e-9


@pytest.mark.parametrize("variance", [0.3, 5, 700])
def test_skellam_numbers(variance: float) -> None:
    law = Skellam(noise_variance=variance)
    for k in (0, 1, 2, 17):
        assert law.probability(k)[1] == pytest.approx(ive(k, variance), rel=1e-11)
        assert law.survival(k)[1] == pytest.approx(
            skellam.sf(k - 1, variance / 2, variance / 2), rel=1e-8, abs=1e-14
        )
    assert law.variance == pytest.approx(variance)
    t = law.error_bound(confidence=0.95)
    assert law.tail(t + 1)[1] <= 0.05 < law.tail(t)[1]


def test_scales_far_beyond_a_table() -> None:
    law = PolyaDifference(shape=Fraction(1, 5), noise_scale=2**40)
    x = law.sample(size=(5, 40_000), source=SeededSource(seed=2)).sum(axis=0) / 2.0**40
    assert np.mean(np.abs(x)) == pytest.approx(1, abs=0.04)
    assert np.mean(np.abs(x) > 3) == pytest.approx(math.exp(-3), abs=0.008)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None, 10**9])
def test_bad_shapes(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        NegativeBinomial(shape=bad, noise_scale=1)  # type: ignore[arg-type]


def test_scales_beyond_int64_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="coarser grid"):
        PolyaDifference(shape=1, noise_scale=2**60)
    with pytest.raises(InvalidParameter):
        Skellam(noise_variance=2**120)
