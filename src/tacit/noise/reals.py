"""Random real numbers of which only finitely many bits are drawn; more bits follow on demand.

Uniform: its bits are words. Exponential: floor(2^b E) is geometric with q = exp(-2^-b), and its further
bits are independent truncated geometrics. Normal: a block of width 1/32 by lazy inversion, a uniform place in it,
kept with chance exp(-(x^2 - x0^2)/2). The bits drawn after the decision play no part in it, so they are still
uniform. So each draw is a shrinking random interval around an exact draw.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Words
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Enclosure
from tacit.exact.rounding import Ball, ball, precision
from tacit.noise.distributions.base import (
    CHUNK,
    GUARD,
    MARGIN,
    Inverter,
    Series,
    Uniform,
    exp_minus,
    gaussian_terms,
    quick_table,
)
from tacit.noise.distributions.geometric import geometric_digits, truncated_digit
from tacit.noise.source import Source

EXPONENTIAL_BITS = 46
EXTEND_BITS = 32
BLOCK_BITS = 5


class LazyReal:
    """One random real: `ball()` encloses it at the working precision, and `extend()` draws more digits."""

    __slots__ = ()

    def ball(self) -> Ball:
        """The ball that contains the real, given the bits drawn so far."""
        raise NotImplementedError

    def extend(self) -> None:
        """Draw more bits."""
        raise NotImplementedError


class _LazyUniform(LazyReal):
    __slots__ = ("uniform",)

    def __init__(self, uniform: Uniform) -> None:
        self.uniform = uniform

    def ball(self) -> Ball:
        return self.uniform.ball()

    def extend(self) -> None:
        self.uniform.extend()


class _LazyNormal(LazyReal):
    __slots__ = ("block", "place", "sign")

    def __init__(self, block: int, place: Uniform, sign: int) -> None:
        self.block, self.place, self.sign = block, place, sign

    def ball(self) -> Ball:
        size = (self.block + self.place.ball()) / (1 << BLOCK_BITS)
        return -size if self.sign else size

    def extend(self) -> None:
        self.place.extend()


class _LazyExponential(LazyReal):
    __slots__ = ("_source", "bits", "value")

    def __init__(self, value: int, source: Source) -> None:
        self.value, self.bits, self._source = value, EXPONENTIAL_BITS, source

    def ball(self) -> Ball:
        middle = flint.arb(2 * self.value + 1) / flint.arb(1 << (self.bits + 1))
        return flint.arb(middle, flint.arb(1) / flint.arb(1 << (self.bits + 1)))

    def extend(self) -> None:
        self.bits += EXTEND_BITS
        digit = _extension(self.bits).resolve(int(self._source.words(1)[0]), self._source)
        self.value = (self.value << EXTEND_BITS) | digit


@lru_cache(maxsize=64)
def _extension(bits: int) -> Inverter:
    """The next 32 bits of an exponential after which `bits` are known."""
    return Inverter(truncated_digit(Fraction(1, 1 << bits), 1 << EXTEND_BITS))


@dataclass(frozen=True, slots=True)
class Uniforms:
    """Uniform numbers on [0, 1), 64 bits known."""

    words: Words

    @classmethod
    def draw(cls, shape: tuple[int, ...], source: Source) -> Uniforms:
        """Draw reals to their first bits."""
        return cls(source.words(int(np.prod(shape))).reshape(shape))

    def enclosure(self) -> Enclosure:
        """Floats with radii that contain the reals."""
        leading = (self.words >> np.uint64(11)).astype(np.float64)
        return Enclosure((leading + 0.5) * 2.0**-53, 2.0**-53)

    def lazy(self, index: tuple[int, ...], source: Source) -> LazyReal:
        """One of the reals, able to draw more of its bits."""
        return _LazyUniform(Uniform(value=int(self.words[index]), bits=64, source=source))


@dataclass(frozen=True, slots=True)
class Exponentials:
    """Standard exponential numbers, known to 2^-46."""

    counts: npt.NDArray[np.int64]

    @classmethod
    def draw(cls, shape: tuple[int, ...], source: Source) -> Exponentials:
        """Draw reals to their first bits."""
        digits = geometric_digits(Fraction(1, 1 << EXPONENTIAL_BITS))
        return cls(digits.draw(int(np.prod(shape)), source).reshape(shape))

    def enclosure(self) -> Enclosure:
        """Floats with radii that contain the reals."""
        mid = (self.counts.astype(np.float64) + 0.5) * 2.0**-EXPONENTIAL_BITS
        return Enclosure(mid, 2.0 ** -(EXPONENTIAL_BITS + 1) + mid * 2.0**-51)

    def lazy(self, index: tuple[int, ...], source: Source) -> LazyReal:
        """One of the reals, able to draw more of its bits."""
        return _LazyExponential(int(self.counts[index]), source)


@lru_cache(maxsize=1)
def _blocks() -> tuple[Inverter, Words]:
    a = Fraction(1, 2 << (2 * BLOCK_BITS))
    series = Series(gaussian_terms(lambda: ball(a), double=False))
    return Inverter(series, bits=63), quick_table([a * (2 * h + 1) for h in range(10 << BLOCK_BITS)])


@dataclass(frozen=True, slots=True)
class Normals:
    """Standard normal numbers: sign, block, and 64 bits of the place in the block (a few know more)."""

    block: npt.NDArray[np.int64]
    place: Words
    sign: npt.NDArray[np.int64]
    more: dict[int, tuple[int, int]]

    @classmethod
    def draw(cls, shape: tuple[int, ...], source: Source) -> Normals:
        """Draw reals to their first bits."""
        count = int(np.prod(shape))
        parts: list[tuple[npt.NDArray[np.int64], Words, npt.NDArray[np.int64]]] = []
        more: dict[int, tuple[int, int]] = {}
        done = 0
        while done < count:
            block, place, sign, extra = _attempt(min(CHUNK, (count - done) * 17 // 16 + 4), source)
            more |= {done + i: bits for i, bits in extra.items()}
            parts.append((block, place, sign))
            done += block.size
        if not parts:
            return cls(np.empty(shape, np.int64), np.empty(shape, np.uint64), np.empty(shape, np.int64), {})
        columns = [np.concatenate(column)[:count].reshape(shape) for column in zip(*parts, strict=True)]
        return cls(columns[0], columns[1], columns[2], more)

    def enclosure(self) -> Enclosure:
        """Floats with radii that contain the reals."""
        place = (self.place >> np.uint64(11)).astype(np.float64) * 2.0**-53
        size = (self.block.astype(np.float64) + place) * 2.0**-BLOCK_BITS
        return Enclosure(np.where(self.sign == 1, -size, size), 2.0**-52 + size * 2.0**-50)

    def lazy(self, index: tuple[int, ...], source: Source) -> LazyReal:
        """One of the reals, able to draw more of its bits."""
        flat = int(np.ravel_multi_index(index, self.block.shape))
        value, bits = self.more.get(flat, (int(self.place[index]), 64))
        return _LazyNormal(
            int(self.block[index]), Uniform(value=value, bits=bits, source=source), int(self.sign[index])
        )


def _attempt(
    n: int, source: Source
) -> tuple[npt.NDArray[np.int64], Words, npt.NDArray[np.int64], dict[int, tuple[int, int]]]:
    inverter, quick = _blocks()
    first, place, choice = source.words(n), source.words(n), source.words(n)
    block = inverter.invert(first >> np.uint64(1), source)
    keep = choice < quick.take(block, mode="clip")
    known: dict[int, tuple[int, int]] = {}
    unsettled = np.flatnonzero(~keep)
    if unsettled.size:
        y = (place[unsettled] >> np.uint64(11)).astype(np.float64) * 2.0**-53
        t = y * (2.0 * block[unsettled].astype(np.float64) + y) * 2.0 ** -(2 * BLOCK_BITS + 1)
        target = exp_minus(np.minimum(t, 0.5))
        uniform = (choice[unsettled] >> np.uint64(11)).astype(np.float64) * 2.0**-53
        keep[unsettled] = uniform < target
        for i in unsettled[(np.abs(uniform - target) < MARGIN) | (t > 0.49)]:
            at = Uniform(value=int(place[i]), bits=64, source=source)
            keep[i] = _settle(int(block[i]), at, Uniform(value=int(choice[i]), bits=64, source=source))
            known[int(i)] = (at.value, at.bits)
    order = np.cumsum(keep) - 1
    more = {int(order[i]): bits for i, bits in known.items() if keep[i]}
    return block[keep], place[keep], (first[keep] & np.uint64(1)).view(np.int64), more


def _settle(block: int, place: Uniform, choice: Uniform) -> bool:
    """Whether choice < exp(-(x^2 - x0^2)/2); draws bits of both until that is certain."""
    while True:
        with precision(choice.bits + GUARD):
            y = place.ball()
            target = (-(y * (2 * block + y)) / (2 << (2 * BLOCK_BITS))).exp() * flint.arb(1 << choice.bits)
            if flint.arb(choice.value + 1) <= target:
                return True
            if flint.arb(choice.value) >= target:
                return False
        place.extend()
        choice.extend()
