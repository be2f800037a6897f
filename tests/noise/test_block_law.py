"""block-rejection and exact-grid-rounding: the law of what the code keeps and rounds, from the words it is given."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.noise import (
    Binomial,
    DiscreteGaussian,
    GridVector,
    LinfBall,
    OneSidedGeometric,
    SampledBody,
    SeededSource,
    rounding_delta,
)
from tacit.noise.distributions import gaussian, geometric
from tacit.noise.distributions.base import BlockSampler

FULL = 1 << 64


class Fed:
    """Words in order; what is asked for after them lies in the middle."""

    publishable = False

    def __init__(self, words: list[int]) -> None:
        self.given = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.given = self.given[:count], self.given[count:]
        return np.array([*taken, *[FULL // 2 + 12345] * (count - len(taken))], dtype=np.uint64)


def block_of(sampler: BlockSampler, word: int) -> int:
    return int(sampler.blocks.invert(np.array([word >> 1], dtype=np.uint64), Fed([]))[0])  # type: ignore[arg-type]


def words_of_block(sampler: BlockSampler, index: int) -> tuple[int, int]:
    """The first and the last word + 1 that choose this block: found by bisection, the map is monotone."""
    rising = block_of(sampler, FULL // 4) < block_of(sampler, FULL // 4 * 3)

    def least(reached: Any) -> int:
        # The outermost words belong to blocks too far to be found.
        low, high = 1 << 20, FULL // 2 - (1 << 20)
        if reached(block_of(sampler, 2 * low)):
            return 0
        if not reached(block_of(sampler, 2 * high)):
            return FULL
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(block_of(sampler, 2 * middle)) else (middle, high)
        return 2 * high

    if rising:
        return least(lambda b: b >= index), least(lambda b: b > index)
    return least(lambda b: b <= index), least(lambda b: b < index)


def tried(sampler: BlockSampler, first: int, place: int, choice: int) -> list[int]:
    """What one attempt keeps, nothing or one value."""
    bits = sampler.width_bits
    if bits == 0:
        spelled = []
    elif bits <= 62:
        spelled = [place << (64 - bits)]
    else:
        size = -(-bits // 64)
        shifted = place << (64 * size - bits)
        spelled = [(shifted >> (64 * i)) & (FULL - 1) for i in range(size)]
    return [int(v) for v in sampler._attempt(1, Fed([first, *spelled, choice]))]  # type: ignore[arg-type]


def kept_words(sampler: BlockSampler, first: int, place: int) -> int:
    """How many of the 2^64 choices keep the pair: a word is kept if it is below a number."""
    if not tried(sampler, first, place, 0):
        return 0
    low, high = 0, FULL
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tried(sampler, first, place, middle) else (low, middle)
    return high


def measured(sampler: BlockSampler, index: int, place: int, side: int) -> tuple[int | None, Fraction]:
    """A value, and the share of all words of one attempt that give it by this block, place and side."""
    start, end = words_of_block(sampler, index)
    first = (start + end) // 4 * 2 + side
    kept = kept_words(sampler, first, place)
    value = tried(sampler, first, place, 0)[0] if kept else None
    return value, Fraction(end - start, 2 * FULL) * Fraction(kept, FULL) / (1 << sampler.width_bits)


@pytest.mark.parametrize("std", [60, Fraction(1001, 3), 10**6])
def test_gaussian_blocks(std: Fraction) -> None:
    """What is kept is proportional to e^(-k^2 / 2 std^2), and 0 is counted once."""
    sampler = gaussian._blocks(Fraction(std) ** 2)
    width = 1 << sampler.width_bits
    assert width > 1
    zero, whole = measured(sampler, 0, 0, 0)
    assert zero == 0
    assert measured(sampler, 0, 0, 1) == (None, 0)
    for index in (0, 1, 5, 40):
        for place in {0, 1, width // 3, width - 1}:
            for side in (0, 1):
                value, mass = measured(sampler, index, place, side)
                if (index, place, side) == (0, 0, 1):
                    continue
                k = index * width + place
                assert value == (-k if side else k)
                assert float(mass / whole) == pytest.approx(
                    math.exp(-(k**2) / (2 * float(std) ** 2)), rel=1e-11
                )
    law = DiscreteGaussian(noise_std=std)
    # and one attempt keeps nearly everything: the sum over all k of the mass above
    assert 0.9 < float(whole) / law.probability(0)[0] < 1


def test_geometric_blocks() -> None:
    """Beyond 2^59: proportional to q^k, k of more than 64 bits."""
    scale = 1 << 70
    sampler = geometric.geometric_digits(Fraction(1, scale))
    assert isinstance(sampler, BlockSampler)
    width = 1 << sampler.width_bits
    _, whole = measured(sampler, 0, 0, 0)
    for index in (0, 3, 100):
        for place in (0, width // 5, width - 1):
            value, mass = measured(sampler, index, place, 0)
            assert value == index * width + place
            assert float(mass / whole) == pytest.approx(math.exp(-value / scale), rel=1e-11)
    assert OneSidedGeometric(noise_scale=scale).probability(0)[0] > 0


def test_binomial_blocks() -> None:
    """Both sides of the mode, in proportion to the binomial weights."""
    law = Binomial(trials=4 * 10**6, probability_of_one=Fraction(1, 3))
    sampler = law._sampler
    assert isinstance(sampler, BlockSampler)
    width = 1 << sampler.width_bits
    middle, whole = measured(sampler, 0, 0, 0)
    assert middle is not None
    n, p = law.trials, 1 / 3

    def log_weight(k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p / (1 - p))

    seen = set()
    for index in (0, 1, 2, 7, 20):
        for place in {0, width // 2, width - 1}:
            value, mass = measured(sampler, index, place, 0)
            assert value is not None
            seen.add(value)
            ratio = math.exp(log_weight(value) - log_weight(middle))
            assert float(mass / whole) == pytest.approx(ratio, rel=1e-7)  # lgamma's own error
    assert min(seen) < middle < max(seen)


# --- rounding ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("radius", [1, Fraction(1, 3), Fraction(22, 7)])
@pytest.mark.parametrize("spacing", [1, Fraction(1, 8), Fraction(1, 1 << 40)])
def test_uniform_words_are_rounded_at_the_borders_of_their_cells(radius: Fraction, spacing: Fraction) -> None:
    """radius (2u - 1) and u known by its words: every border of a cell, one word below it, on it and above, and, where
    the border lies inside a word's interval, by the words that follow."""
    law, most = LinfBall(coordinates=1, radius=radius), int(Fraction(radius) / spacing)
    for k in sorted({0, 1, -1, most // 2, -most, most}):
        border = ((k - Fraction(1, 2)) * spacing / radius + 1) / 2
        if not 0 < border < 1:
            continue
        word = int(border * FULL)
        rest = border * FULL - word
        for near in (word - 1, word + 1):
            drawn = law.sample(spacing=spacing, source=Fed([near]))  # type: ignore[arg-type]
            assert int(drawn.values[0]) == (k - 1 if near < word else k)
        # On the border's own word the next one decides, as the real number u does.
        following = int(rest * FULL)
        for after in (following - 1, following + 1) if rest else (0, 1):
            if not 0 <= after < FULL:
                continue
            u = Fraction(word * FULL + after, FULL**2)
            drawn = law.sample(spacing=spacing, source=Fed([word, after, 5, 5]))  # type: ignore[arg-type]
            expected = math.floor(Fraction(radius) * (2 * u - 1) / spacing + Fraction(1, 2))
            assert int(drawn.values[0]) == expected
            assert isinstance(drawn, GridVector)
            assert drawn.numerical_delta == 0.0


CASES = {
    "uniform": (lambda x: min(max(x, 0.0), 1.0), 1.0, 1.0),
    "exponential": (lambda x: -math.expm1(-max(x, 0.0)), 1.0, 12.0),
    "narrow": (lambda x: min(max((x - 0.495) / 0.01, 0.0), 1.0), 100.0, 1.0),
}


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("eta", [2.0**-30, 2.0**-9, 0.004])
def test_rounding_delta_against_the_worst_sampler(name: str, eta: float) -> None:
    """Errors of at most eta that move every number near a border across it, upwards at every other border and downwards
    at the rest: the most that roundings can differ by. The bound is above it, and of its size."""
    cumulative, density, reach = CASES[name]
    g = 2.0**-5
    borders = (np.arange(-2, int(reach / g) + 3) + 0.5) * g
    worst = max(
        sum(
            cumulative(c + eta) - cumulative(c) if (i + odd) % 2 else cumulative(c) - cumulative(c - eta)
            for i, c in enumerate(borders)
        )
        for odd in (0, 1)
    )
    bound = rounding_delta(coordinates=1, absolute_error=eta, spacing=g, marginal_density_bound=density)
    assert worst <= bound <= 2.7 * worst + 9 * eta * density
    three = rounding_delta(coordinates=3, absolute_error=eta, spacing=g, marginal_density_bound=density)
    assert three == pytest.approx(min(1.0, 3 * bound), rel=1e-9)


def test_a_sampled_body_that_moves_all_it_may_stays_within_its_delta() -> None:
    """The same worst sampler through SampledBody: the law of its cells, by 2^14 evenly spread points."""
    eta, g, n = 2.0**-8, 2.0**-5, 1 << 14
    ideal = (np.arange(n) + 0.5) / n - 0.5

    def moved(count: int, source: Any) -> np.ndarray:
        cell = np.floor(ideal / g + 0.5)
        up = (cell + 0.5) * g - ideal <= eta
        down = ideal - (cell - 0.5) * g < eta
        odd = cell % 2 == 1
        return (ideal + np.where(up & odd, eta, 0) - np.where(down & odd, eta, 0))[:, None]

    body = SampledBody(
        coordinates=1, sampler=moved, absolute_error=eta, marginal_density_bound=1.0, reach=0.5
    )
    drawn = body.sample(spacing=g, size=n, source=SeededSource(seed=1)).values[:, 0]
    exact = np.floor(ideal / g + 0.5).astype(int)
    cells = np.arange(-17, 18)
    shares = [np.array([(v == c).sum() for c in cells]) / n for v in (drawn, exact)]
    apart = float(np.abs(shares[0] - shares[1]).sum()) / 2
    one = rounding_delta(coordinates=1, absolute_error=eta, spacing=g, marginal_density_bound=1.0)
    assert 0.1 < apart <= one
