"""Lazy inversion: one uniform word against certified binary expansions, longer only on a boundary.

A distribution on 0, 1, 2, ... is given by its survival function S(k) = Pr[X >= k] as balls of any precision. With U
uniform on [0, 1), X = #{k >= 1 : U < S(k)} has that distribution exactly. The first word gives v = floor(2^b U), and
T_k = floor(2^b S(k)) is certified once: v < T_k settles U < S(k), v > T_k settles the contrary, and only
v = T_k (chance 2^-b for each boundary) asks for further words and a longer expansion, without limit.

A vector of words is looked up with a fixed number of operations for each word: a guide table indexed by
the leading bits of v (linear), or by its exponent and leading mantissa bits (logarithmic, for thin tails),
names the one or two boundaries that can matter. If no guide is that short, binary search is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import NotCertified
from tacit.exact.arrays import AnyArray, Words
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, bisected, precision, scaled_floor
from tacit.noise.source import Source

CHUNK = 1 << 14
GUARD = 64
SMALL = 32
# Words below 2^-40 of the range are settled one by one: it keeps tables short and is never seen in timing.
FLOOR_BITS = 40
TABLE_LIMIT = 1 << 16
WORD_LIMIT = 256
SUPPORT_BITS = 1 << 13
MOST_COMPARES = 3


class Survival(Protocol):
    """A distribution on the integers from 0, by certified survival probabilities."""

    def survival(self, k: int) -> Ball:
        """A ball around Pr[X >= k], k >= 1, at the working precision; it shrinks to 0 as k grows."""

    def survivals(self) -> Iterator[Ball]:
        """Pr[X >= 1], Pr[X >= 2], ..., until the support ends, if it does."""


class Uniform:
    """A uniform number on [0, 1) whose first `bits` bits are known, and more on demand."""

    __slots__ = ("_source", "bits", "step", "value")

    def __init__(self, *, value: int, bits: int, source: Source, step: int = 64) -> None:
        self.value = value
        self.bits = bits
        self.step = step
        self._source = source

    def extend(self) -> None:
        """Draw one more word."""
        if self.bits > WORD_LIMIT * 64:
            raise NotCertified(
                what="a random draw",
                reason=f"after {WORD_LIMIT} words the law's balls still do not decide",
                hint="the survival function must give balls that shrink as the precision grows",
            )
        word = int(self._source.words(1)[0]) >> (64 - self.step)
        self.value = (self.value << self.step) | word
        self.bits += self.step

    def below(self, probability: Any) -> bool:
        """Whether U < p, where `probability()` gives a ball around p at the working precision."""
        while True:
            with precision(self.bits + GUARD):
                scaled = probability() * flint.arb(1 << self.bits)
                if flint.arb(self.value + 1) <= scaled:
                    return True
                if flint.arb(self.value) >= scaled:
                    return False
            self.extend()

    def ball(self) -> Ball:
        """The interval in which U is known to lie, as a ball at the working precision."""
        middle = flint.arb(2 * self.value + 1) / flint.arb(1 << (self.bits + 1))
        return flint.arb(middle, flint.arb(1) / flint.arb(1 << (self.bits + 1)))


@dataclass(frozen=True, slots=True)
class _Guide:
    """base[key(v)] boundaries lie in higher cells, and at most `compares` more in the cell of v."""

    base: npt.NDArray[np.int32]
    compares: int
    shift: int
    logarithmic: bool

    def keys(self, values: Words) -> npt.NDArray[np.int64]:
        return _keys(values, self.shift, self.logarithmic)


def _keys(values: Words, shift: int, logarithmic: bool) -> npt.NDArray[np.int64]:
    """A non-decreasing function of the value: its leading bits, or its exponent and leading mantissa bits.

    The 53 leading bits convert to a float without rounding, so the key does not depend on the machine.
    """
    if not logarithmic:
        return np.right_shift(values, np.uint64(shift)).view(np.int64)
    leading = np.right_shift(values, np.uint64(11)).view(np.int64).astype(np.float64)
    leading += 1.0
    keys = leading.view(np.int64)
    keys -= np.int64(0x3FF0000000000000)
    return np.right_shift(keys, np.int64(shift), out=keys)


class Inverter:
    """The compiled sampler of one distribution: exact, deterministic in the words, and safe to share."""

    __slots__ = (
        "_ascending",
        "_boundaries",
        "_floor",
        "_guide",
        "_singles",
        "_span",
        "_wide",
        "bits",
        "distribution",
        "limit",
        "step",
    )

    def __init__(self, law: Survival, *, bits: int = 64, step: int = 64, limit: int = TABLE_LIMIT) -> None:
        self.distribution = law
        self.bits = bits
        self.limit = limit
        self.step = step
        self._boundaries: Words | None = None
        self._guide: _Guide | None = None
        self._floor = 0
        self._singles = 0
        self._span = 0
        self._ascending: Words = np.empty(0, dtype=np.uint64)
        self._wide: Words = np.empty(0, dtype=np.uint64)

    def resolve(self, value: int, source: Source) -> int:
        """X for the uniform number whose first bits are `value`, by bisection; the proof of the table.

        All values above the floor take the same number of steps, so time does not reveal the outcome.
        """
        uniform = Uniform(value=value, bits=self.bits, source=source, step=self.step)

        def below(k: int) -> bool:
            return uniform.below(lambda: self.distribution.survival(k))

        low, high = 0, self._span or self._find_span()
        if value <= self._lowest():
            while below(high):
                low, high = high, 2 * high
                if high.bit_length() > SUPPORT_BITS:
                    raise NotCertified(
                        what="a random draw", reason=f"the law has mass beyond 2^{SUPPORT_BITS}"
                    )
        return bisected(lambda k: not below(k), low, high)[0]

    def _lowest(self) -> int:
        return (1 << self.bits) >> FLOOR_BITS

    def _find_span(self) -> int:
        """A power of two beyond which lies less than 2^-40, the same for every draw."""
        span = 1
        with precision(self.bits + GUARD):
            while scaled_floor(self.distribution.survival(span), self.bits)[1] > self._lowest():
                span *= 2
                if span.bit_length() > SUPPORT_BITS:
                    raise NotCertified(
                        what="a random draw", reason=f"the law has mass beyond 2^{SUPPORT_BITS}"
                    )
        self._span = span
        return span

    def invert(self, values: Words, source: Source) -> AnyArray:
        """X for each value; values have `bits` bits. Boundary cases draw further words from the source."""
        if self._boundaries is None:
            self._singles += values.size
            if self._singles < SMALL:
                return _integers([self.resolve(int(v), source) for v in values])
            self.compile()
        result, ambiguous = self._look_up(values)
        if ambiguous.size:
            exact = [self.resolve(int(values[i]), source) for i in ambiguous]
            if any(x >= 1 << 62 for x in exact):
                result = result.astype(object)
            result[ambiguous] = exact
        return result

    def _look_up(self, values: Words) -> tuple[AnyArray, npt.NDArray[np.intp]]:
        boundaries = self._boundaries
        assert boundaries is not None
        if boundaries.size == 2:
            result = (values < boundaries[0]).view(np.int8).astype(np.int64)
            ambiguous = (values == boundaries[0]) | (values == boundaries[1])
        elif self._guide is not None:
            result = self._guide.base.take(self._guide.keys(values)).astype(np.int64)
            ambiguous = np.zeros(values.size, dtype=np.bool_)
            start = result
            for offset in range(self._guide.compares):
                nearest = boundaries.take(start + offset if offset else start)
                ambiguous |= values == nearest
                result = result + (values < nearest)
        else:
            result = boundaries.size - np.searchsorted(self._ascending, values, side="right").astype(np.int64)
            ambiguous = values == boundaries.take(result, mode="clip")
        if self._floor:
            ambiguous |= values <= np.uint64(self._floor)
        if self._wide.size:
            ambiguous |= np.isin(values, self._wide)
        return result, np.flatnonzero(ambiguous)

    def compile(self) -> None:
        """Certifies the leading bits of every boundary that a word can distinguish from 0."""
        found: list[int] = []
        wide: list[int] = []
        floor = self._lowest()
        with precision(self.bits + 2 * GUARD):
            for k, ball in enumerate(self.distribution.survivals(), start=1):
                low, high = scaled_floor(ball, self.bits)
                if low != high:
                    with precision(self.bits + 8 * GUARD):
                        low, high = scaled_floor(self.distribution.survival(k), self.bits)
                if high - low > 1:
                    raise NotCertified(
                        what="a cumulative probability",
                        reason=f"its first {self.bits} bits stay open at {self.bits + 8 * GUARD} bits",
                        hint="the survival function must give balls that shrink as the precision grows",
                    )
                if low != high:
                    wide += [max(low, 0), high]
                # A boundary within 2^-bits of 1 cannot be told from 1 by the first word.
                high = min(high, (1 << self.bits) - 1)
                wide += [high] if low >= 1 << self.bits else []
                if high <= floor or k > self.limit:
                    self._floor = max(floor, high)
                    break
                found.append(high)
        # The last entry stands for all boundaries that are not in the table.
        boundaries = np.array([*found, self._floor], dtype=np.uint64)
        boundaries = np.minimum.accumulate(boundaries)
        guide, padding = _guide_for(boundaries, self.bits) if boundaries.size > 2 else (None, 0)
        self._ascending = boundaries[::-1].copy()
        self._wide = np.unique(np.array(wide, dtype=np.uint64))
        self._guide = guide
        self._boundaries = np.concatenate([boundaries, np.zeros(padding, dtype=np.uint64)])


def _no_decision() -> NotCertified:
    return NotCertified(what="a random draw", reason=f"the law has mass beyond 2^{SUPPORT_BITS}")


def _guide_for(boundaries: Words, bits: int) -> tuple[_Guide | None, int]:
    """The smallest guide table with at most one boundary a cell, or else at most three."""
    size = int(boundaries.size)
    start = max(size - 1, 1).bit_length()
    linear = [(bits - b, False, 1 << b) for b in range(min(start, bits), min(start + 3, bits, 17) + 1)]
    logarithmic = [(52 - b, True, 54 << b) for b in range(2, 13)]
    for most in range(1, MOST_COMPARES + 1):
        for shift, is_log, cells in (*linear, *logarithmic):
            counts = np.bincount(_keys(boundaries, shift, is_log), minlength=cells)
            if counts.max() <= most:
                above = size - np.cumsum(counts)
                return _Guide(above.astype(np.int32), most, shift, is_log), most
    return None, 0


def joined(parts: list[AnyArray]) -> AnyArray:
    """The parts of a draw as one array; without parts, a draw of size 0."""
    if not parts:
        return np.empty(0, dtype=np.int64)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _integers(values: list[int]) -> AnyArray:
    fits = all(-(1 << 63) <= v < 1 << 63 for v in values)
    return np.array(values, dtype=np.int64 if fits else object)


class _Coin:
    """The distribution of a coin, as a survival function with one boundary."""

    __slots__ = ("_probability",)

    def __init__(self, probability: Any) -> None:
        self._probability = probability

    def survival(self, k: int) -> Ball:
        return self._probability() if k == 1 else flint.arb(0)

    def survivals(self) -> Iterator[Ball]:
        yield self.survival(1)


def bernoulli(probability: Any, *, bits: int = 64, step: int = 64) -> Inverter:
    """The sampler of a coin that shows 1 with the probability whose ball `probability()` gives."""
    return Inverter(_Coin(probability), bits=bits, step=step)
