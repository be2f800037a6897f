"""Exact rejection from a step envelope, for wide unimodal laws.

The integers away from the mode are cut into blocks of 2^b. A block is drawn by lazy inversion with weight
(probability at its end nearest the mode), a place in it uniformly, and the pair is kept with chance
p(k) / p(nearest end). What is kept has exactly the law p. Each keep-or-not is one word against a number
that a float bound settles almost always and a ball the rest of the time. The number of tries depends on
the words only, never on data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray, Words
from tacit.exact.balls import ball, precision, scaled_floor
from tacit.noise.lazy_inversion import CHUNK, Inverter, Uniform, joined
from tacit.noise.source import Source

__all__ = ["BlockSampler", "exp_minus", "exponential_settle", "quick_table", "random_bits"]

Settle = Callable[[AnyArray, AnyArray, Words, Source], npt.NDArray[np.bool_]]
Combine = Callable[[AnyArray, AnyArray, Words], tuple[AnyArray, npt.NDArray[np.bool_]]]

NARROW_BITS = 50
MARGIN = 2.0**-45


def random_bits(bits: int, count: int, source: Source) -> AnyArray:
    """Uniform integers of `bits` bits."""
    if bits == 0:
        return np.zeros(count, dtype=np.int64)
    if bits <= 62:
        return (source.words(count) >> np.uint64(64 - bits)).view(np.int64)
    size = -(-bits // 64)
    words = source.words(count * size).reshape(count, size)
    values = np.empty(count, dtype=object)
    for i, row in enumerate(words):
        values[i] = int.from_bytes(row.tobytes(), "little") >> (64 * size - bits)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSampler:
    """blocks: 63-bit inverter of the block index, the low bit of its word left over for a sign;
    quick: floor(2^64 r) for r at most the keeping chance anywhere in the block; settle: the exact choice;
    combine: (block, place, word) to the value, and whether the pair is a legal one;
    wide: values may pass 64 bits."""

    blocks: Inverter
    width_bits: int
    quick: Words
    settle: Settle
    combine: Combine
    wide: bool = False

    def draw(self, count: int, source: Source) -> AnyArray:
        """Draw by rejection from the step envelope, exactly."""
        parts: list[AnyArray] = []
        missing = count
        while missing > 0:
            kept = self._attempt(min(CHUNK, missing + missing // 16 + 4), source)[:missing]
            parts.append(kept)
            missing -= kept.size
        return joined(parts)

    def _attempt(self, n: int, source: Source) -> AnyArray:
        first = source.words(n)
        block = self.blocks.invert(first >> np.uint64(1), source)
        if self.wide or self.width_bits > NARROW_BITS or int(block.max()) >= 1 << (61 - self.width_bits):
            block = block.astype(object)
        place = random_bits(self.width_bits, n, source)
        choice = source.words(n)
        if block.dtype == object:
            index = np.array([min(int(b), self.quick.size - 1) for b in block], dtype=np.int64)
        else:
            index = block
        keep = choice < self.quick.take(index, mode="clip")
        open_ = np.flatnonzero(~keep)
        if open_.size:
            keep[open_] = self.settle(block[open_], place[open_], choice[open_], source)
        values, legal = self.combine(block, place, first)
        return values[keep & legal]


def exp_minus(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """exp(-t) for 0 <= t <= 1/2 by its Taylor polynomial of degree 13, with sums and products only.

    Those are correctly rounded by IEEE 754 on every machine: truncation below 2^-50, rounding below 2^-49,
    so the result is within 2^-48 of exp(-t).
    """
    total = np.full_like(t, 1.0)
    for i in range(13, 0, -1):
        total = 1.0 - (t * total) * (1.0 / i)
    return total


def quick_table(exponents: Sequence[Fraction]) -> Words:
    """floor(2^64 exp(-x)) for each exponent, rounded down; 0 after the last, which settles nothing."""
    with precision(160):
        found = [scaled_floor((-ball(x)).exp(), 64)[0] for x in exponents]
    return np.array([*(min(f, (1 << 64) - 1) for f in found), 0], dtype=np.uint64)


def exponential_settle(coefficient: Fraction, bits: int, *, quadratic: bool) -> Settle:
    """Keep with chance exp(-a y (2h + y)) if quadratic, else exp(-a y), where y = place / 2^bits."""
    a = float(coefficient)

    def exactly(h: int, place: int, word: int, source: Source) -> bool:
        y = Fraction(place, 1 << bits)
        exponent = coefficient * y * (2 * h + y) if quadratic else coefficient * y
        return Uniform(value=word, bits=64, source=source).below(lambda: (-ball(exponent)).exp())

    def settle(block: AnyArray, place: AnyArray, choice: Words, source: Source) -> npt.NDArray[np.bool_]:
        leading = min(bits, 52)
        # y is cut to 52 bits and each factor is within a few units of 2^-53: t is off by less than 2^-49.
        y = (place >> (bits - leading)).astype(np.float64) * 2.0**-leading
        t = a * y * (2.0 * block.astype(np.float64) + y) if quadratic else a * y
        target = exp_minus(np.minimum(t, 0.5))
        uniform = (choice >> np.uint64(11)).astype(np.float64) * 2.0**-53
        keep: npt.NDArray[np.bool_] = uniform < target
        for i in np.flatnonzero((np.abs(uniform - target) < MARGIN) | (t > 0.49)):
            keep[i] = exactly(int(block[i]), int(place[i]), int(choice[i]), source)
        return keep

    return settle
