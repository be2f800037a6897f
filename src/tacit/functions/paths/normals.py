"""Standard normal numbers whose bits are kept: an exact real each, of which more bits can be drawn at any time."""

from __future__ import annotations

from collections.abc import Sequence

import flint
import numpy as np

from tacit.exact.balls import Ball
from tacit.noise.reals import BLOCK_BITS, Normals
from tacit.noise.source import Source

__all__ = ["KeptNormal", "balls_of", "draw_normals"]

MORE_WORDS = 3


class KeptNormal:
    """sign, block and the first `bits` bits of the place in the block; the bits to come are uniform."""

    __slots__ = ("bits", "block", "sign", "value")

    def __init__(self, sign: int, block: int, value: int, bits: int) -> None:
        self.sign, self.block, self.value, self.bits = sign, block, value, bits

    def ball(self) -> Ball:
        """The interval in which the number is known to lie."""
        middle = flint.arb(((self.block << self.bits) | self.value) * 2 + 1) * flint.arb(2) ** (
            -self.bits - 1 - BLOCK_BITS
        )
        size = flint.arb(middle, flint.arb(2) ** (-self.bits - 1 - BLOCK_BITS))
        return -size if self.sign else size

    def extend(self, source: Source) -> None:
        """Draw one more word of it."""
        self.value = (self.value << 64) | int(source.words(1)[0])
        self.bits += 64

    def packed(self) -> list[int | str]:
        """What a record needs, as plain JSON values."""
        return [self.sign, self.block, self.bits, f"{self.value:x}"]

    @classmethod
    def from_packed(cls, record: Sequence[int | str]) -> KeptNormal:
        """The number of a record."""
        sign, block, bits, value = record
        return cls(int(sign), int(block), int(str(value), 16), int(bits))


def balls_of(normals: Sequence[KeptNormal]) -> list[Ball]:
    """The intervals of many at the working precision; those of one length share their constants."""
    units: dict[int, tuple[Ball, Ball]] = {}
    out = []
    for n in normals:
        if n.bits not in units:
            units[n.bits] = (
                flint.arb(2) ** (-n.bits - 1 - BLOCK_BITS),
                -(flint.arb(2) ** (-n.bits - 1 - BLOCK_BITS)),
            )
        radius, minus = units[n.bits]
        size = ((n.block << n.bits) | n.value) * 2 + 1
        out.append(flint.arb((minus if n.sign else radius) * size, radius))
    return out


def draw_normals(count: int, source: Source, *, words: int = MORE_WORDS) -> list[KeptNormal]:
    """Independent standard normals, each known to 64 bits and those of `words` words more."""
    drawn = Normals.draw((count,), source)
    extra = source.words(count * words).reshape(count, words)
    out = []
    place, block, sign = drawn.place.tolist(), drawn.block.tolist(), drawn.sign.tolist()
    for i, low in enumerate(np.ascontiguousarray(extra)):
        value, bits = drawn.more.get(i, (place[i], 64))
        value = (value << (64 * words)) | int.from_bytes(low.tobytes(), "little")
        out.append(KeptNormal(sign[i], block[i], value, bits + 64 * words))
    return out
