"""Exact rejection from a step envelope, for wide unimodal laws.

The integers away from the mode are cut into blocks of 2^b. A block is drawn by lazy inversion with weight
(probability at its end nearest the mode), a place in it uniformly, and the pair is kept with chance
p(k) / p(nearest end). What is kept has exactly the law p. Each keep-or-not is one word against a number
that a float bound settles almost always and a ball the rest of the time. The number of tries depends on
the words only, never on data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.noise.exact import CHUNK, Integers, Inverter, joined
from tacit.noise.source import Source, Words

__all__ = ["BlockSampler", "random_bits"]

Settle = Callable[[Integers, Integers, Words, Source], npt.NDArray[np.bool_]]
Combine = Callable[[Integers, Integers, Words], tuple[Integers, npt.NDArray[np.bool_]]]

NARROW_BITS = 50


def random_bits(bits: int, count: int, source: Source) -> Integers:
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

    def draw(self, count: int, source: Source) -> Integers:
        parts: list[Integers] = []
        missing = count
        while missing > 0:
            kept = self._attempt(min(CHUNK, missing + missing // 16 + 4), source)[:missing]
            parts.append(kept)
            missing -= kept.size
        return joined(parts)

    def _attempt(self, n: int, source: Source) -> Integers:
        first = source.words(n)
        block = self.blocks.invert(first >> np.uint64(1), source)
        if self.wide or self.width_bits > NARROW_BITS:
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
