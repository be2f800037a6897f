"""The interface of all discrete distributions: exact draws by lazy inversion, and certified probabilities.

Lazy inversion asks one uniform word against certified binary expansions, longer only on a boundary. A distribution on
0, 1, 2, ... is given by its survival function S(k) = Pr[X >= k] as balls of any precision. With U uniform on [0, 1),
X = #{k >= 1 : U < S(k)} has that distribution exactly. The first word gives v = floor(2^b U), and
T_k = floor(2^b S(k)) is certified once: v < T_k settles U < S(k), v > T_k settles the contrary, and only
v = T_k (chance 2^-b for each boundary) asks for further words and a longer expansion, without limit.

A vector of words is looked up with a fixed number of operations for each word: a guide table indexed by
the leading bits of v (linear), or by its exponent and leading mantissa bits (logarithmic, for thin tails),
names the one or two boundaries that can matter. If no guide is that short, binary search is used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Protocol, TypeAlias

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import NotCertified
from tacit.exact.arrays import AnyArray, Words
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    Ball,
    CertifiedReal,
    ball,
    bisected,
    exact_parameter,
    least,
    outward,
    precision,
    scaled_floor,
    working_precision,
)
from tacit.noise.source import Source, default_source

__all__ = ["DiscreteDistribution"]


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

    def below(self, probability: Callable[[], Ball]) -> bool:
        """Whether U < p, where `probability()` gives a ball around p at the working precision."""
        return not self.at_least(probability)

    def at_least(self, probability: Callable[..., Ball], *place: int) -> bool:
        """Whether U >= p, where `probability(*place)` gives a ball around p at the working precision."""
        while True:
            with precision(self.bits + GUARD):
                scaled = probability(*place) * flint.arb(1 << self.bits)
                if flint.arb(self.value + 1) <= scaled:
                    return False
                if flint.arb(self.value) >= scaled:
                    return True
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
        at_least = partial(uniform.at_least, self.distribution.survival)
        low, high = 0, self._span or self._find_span()
        if value <= self._lowest():
            while not at_least(high):
                low, high = high, 2 * high
                if high.bit_length() > SUPPORT_BITS:
                    raise NotCertified(
                        what="a random draw", reason=f"the law has mass beyond 2^{SUPPORT_BITS}"
                    )
        return bisected(at_least, low, high)[0]

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
                return _integers(list(map(self.resolve, values.tolist(), repeat(source))))
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


# Discrete distributions: exact draws, and certified probabilities for error bars.


Shape = int | tuple[int, ...] | None

READING_BITS = 128
MOST_BITS = 1 << 14


def shape_of(size: Shape) -> tuple[int, ...]:
    """The shape asked for; None is a single draw."""
    if size is None:
        return ()
    if isinstance(size, tuple):
        return tuple(whole("size", s, least=0) for s in size)
    return (whole("size", size, least=0),)


def certify(evaluate: Callable[[], Ball], decided: Callable[[Ball], bool], *, what: str) -> Ball:
    """The first ball, over growing precision, that is good enough."""
    bits = READING_BITS
    while bits <= MOST_BITS:
        with precision(bits):
            ball = evaluate()
            if ball.is_finite() and decided(ball):
                return ball
        bits *= 2
    raise NotCertified(what=what, reason=f"the ball is too wide even at {MOST_BITS} bits")


def _sharp(ball: Ball) -> bool:
    """Good to about a float, or certainly below every float."""
    return bool(ball.rel_accuracy_bits() >= 60 or ball.is_zero() or abs(ball) < flint.arb(2) ** -1100)


class DiscreteDistribution(ABC):
    """An exact distribution on the integers.

    Guarantee: `sample` has exactly this distribution if the source's words are uniform; there is no numerical
    error to count. Probabilities are pairs of floats that certainly enclose the true number.
    """

    __slots__ = ()

    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters of one right call, for the contract tests."""

    # -- draws -------------------------------------------------------------------------------------

    @abstractmethod
    def _draw(self, count: int, source: Source) -> AnyArray:
        """`count` independent draws."""

    def sample(self, *, size: Shape = None, source: Source | None = None) -> AnyArray:
        """Independent exact draws: int64 if all of them fit, otherwise Python integers."""
        shape = shape_of(size)
        count = math.prod(shape)
        if count == 0:
            return np.empty(shape, dtype=np.int64)
        return self._draw(count, source if source is not None else default_source()).reshape(shape)

    # -- certified numbers: balls at the working precision ------------------------------------------

    @abstractmethod
    def probability_ball(self, k: int) -> Ball:
        """A ball around Pr[X = k]."""

    @abstractmethod
    def survival_ball(self, k: int) -> Ball:
        """A ball around Pr[X >= k]."""

    @abstractmethod
    def mean_ball(self) -> Ball:
        """A ball around E X."""

    @abstractmethod
    def variance_ball(self) -> Ball:
        """A ball around Var X."""

    # -- the same for readers ------------------------------------------------------------------------

    @property
    def mean(self) -> float:
        """The expectation, to the nearest float or the one beside it."""
        return float(certify(self.mean_ball, _sharp, what="the mean").mid())

    @property
    def std(self) -> float:
        """The standard deviation, rounded up."""
        return outward(certify(lambda: self.variance_ball().sqrt(), _sharp, what="the standard deviation"))[1]

    @property
    def variance(self) -> float:
        """The variance, rounded up."""
        return outward(certify(self.variance_ball, _sharp, what="the variance"))[1]

    def probability(self, k: int) -> tuple[float, float]:
        """Floats that enclose Pr[X = k]."""
        return self._read(lambda: self.probability_ball(int(k)), "a probability")

    def survival(self, k: int) -> tuple[float, float]:
        """Floats that enclose Pr[X >= k]."""
        return self._read(lambda: self.survival_ball(int(k)), "a survival probability")

    def cumulative(self, k: int) -> tuple[float, float]:
        """Floats that enclose Pr[X <= k]."""
        return self._read(lambda: flint.arb(1) - self.survival_ball(int(k) + 1), "a cumulative probability")

    def tail_ball(self, k: int) -> Ball:
        """A ball around Pr[|X| >= k]."""
        if k <= 0:
            return flint.arb(1)
        return self.survival_ball(k) + (flint.arb(1) - self.survival_ball(1 - k))

    def tail(self, k: int) -> tuple[float, float]:
        """Floats that enclose Pr[|X| >= k]."""
        return self._read(lambda: self.tail_ball(int(k)), "a tail probability")

    def survival_real(self, k: int) -> CertifiedReal:
        """Pr[X >= k] as a number for other distributions, for instance the chance of a Binomial."""
        return CertifiedReal(evaluate=lambda: self.survival_ball(k), name=f"Pr[{self!r} >= {k}]")

    def quantile(self, p: float | Fraction) -> int:
        """The least k with Pr[X <= k] >= p, certified; if equality cannot be decided, the next k."""
        level = _level("p", p)

        def reached(k: int) -> bool:
            return _certainly_at_most(lambda: self.survival_ball(k + 1), 1 - level)

        return least(reached, what="a quantile")

    def error_bound(self, *, confidence: float | Fraction, coordinates: int = 1) -> int:
        """The least t with Pr[max_i |X_i| <= t] >= confidence for independent X_1..X_d, certified.

        Pr[max_i |X_i| <= t] = (1 - Pr[|X| > t])^d, so no union bound is lost.
        """
        level = _level("confidence", confidence)
        d = whole("coordinates", coordinates, least=1)

        def miss(t: int) -> Ball:
            inside = flint.arb(1) - self.tail_ball(t + 1)
            return flint.arb(1) - inside ** flint.arb(d) if d > 1 else flint.arb(1) - inside

        return least(lambda t: t >= 0 and _certainly_at_most(lambda: miss(t), 1 - level), what="a quantile")

    def _read(self, evaluate: Callable[[], Ball], what: str) -> tuple[float, float]:
        low, high = outward(certify(evaluate, _sharp, what=what))
        return max(low, 0.0), min(high, 1.0)


def _level(name: str, p: float | Fraction) -> Fraction:
    level = exact_parameter(name, p, any_size=True)
    refuse_if(level >= 1, name, p, "lie strictly between 0 and 1")
    return level


def _certainly_at_most(evaluate: Callable[[], Ball], bound: Fraction) -> bool:
    """Whether the number is certainly at most the bound; False if 2048 bits do not decide."""
    bits = READING_BITS
    while bits <= 2048:
        with precision(bits):
            ball = evaluate()
            limit = flint.arb(flint.fmpq(bound.numerator, bound.denominator))
            if ball <= limit:
                return True
            if ball > limit:
                return False
        bits *= 4
    return False


# Distributions given by weights whose sum is certified: finite lists, or series with a bound on what is cut off.

Terms: TypeAlias = Callable[[], tuple[Sequence[Ball], Ball]]
"""Weights w_0..w_{K-1} and a ball around the sum of all later ones, at the working precision."""

MOST_TERMS = 1 << 22


def between_zero_and(bound: Ball) -> Ball:
    """The ball around [0, bound]."""
    half = bound.upper() / 2
    return flint.arb(half, half)


class Series:
    """Pr[X = k] = w_k / sum of w, with survival probabilities as suffix sums, kept for each precision."""

    __slots__ = ("_kept", "_terms")

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._kept: dict[int, tuple[list[Ball], list[Ball]]] = {}

    def _sums(self) -> tuple[list[Ball], list[Ball]]:
        """Probabilities, and survival probabilities from k = 0 on."""
        bits = working_precision()
        kept = self._kept.get(bits)
        if kept is None:
            weights, rest = self._terms()
            suffix, suffixes = rest, [rest]
            for weight in reversed(weights):
                suffix = suffix + weight
                suffixes.append(suffix)
            suffixes.reverse()
            kept = [w / suffix for w in weights], [s / suffix for s in suffixes]
            if len(self._kept) >= 24:
                self._kept.clear()
            self._kept[bits] = kept
        return kept

    def survival(self, k: int) -> Ball:
        """Pr[X >= k] as a ball."""
        suffixes = self._sums()[1]
        return suffixes[k] if k < len(suffixes) else between_zero_and(suffixes[-1])

    def survivals(self) -> Iterator[Ball]:
        """Pr[X >= k] for k = 1, 2, ... as balls."""
        yield from self._sums()[1][1:]

    def probability(self, k: int) -> Ball:
        """Pr[X = k] as a ball."""
        probabilities, suffixes = self._sums()
        return probabilities[k] if k < len(probabilities) else between_zero_and(suffixes[-1])


def gaussian_terms(coefficient: Callable[[], Ball], *, double: bool) -> Terms:
    """exp(-a k^2) for k = 0, 1, ...; every term but the first doubled if asked.

    The rest is below exp(-a K^2) / (1 - exp(-a (2K+1))), since later ratios are smaller still.
    """

    def terms() -> tuple[list[Ball], Ball]:
        a = coefficient()
        cut = flint.arb(2) ** -(working_precision() + 8)
        ratio, step = (-a).exp(), (-2 * a).exp()
        weights, weight = [flint.arb(1)], ratio
        factor = flint.arb(2 if double else 1)
        while not weight < cut:
            weights.append(weight * factor)
            ratio = ratio * step
            weight = weight * ratio
            if len(weights) > MOST_TERMS:
                raise NotCertified(what="a Gaussian sum", reason="it has too many terms at this scale")
        return weights, between_zero_and(factor * weight / (1 - ratio * step))

    return terms


# Exact rejection from a step envelope, for wide unimodal distributions.
#
# The integers away from the mode are cut into blocks of 2^b. A block is drawn by lazy inversion with weight
# (probability at its end nearest the mode), a place in it uniformly, and the pair is kept with chance
# p(k) / p(nearest end). What is kept has exactly the distribution p. Each keep-or-not is one word against a number
# that a float bound decides almost always and a ball the rest of the time. The number of tries depends on
# the words only, never on data.

ExactCoin = Callable[[AnyArray, AnyArray, Words, Source], npt.NDArray[np.bool_]]
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
    """blocks: 63-bit inverter of the block index, whose low bit remains for a sign; quick: floor(2^64 r) for r
    at most the keeping probability anywhere in the block; exact: the exact choice; combine: (block, place,
    word) to the value, and whether the pair is valid; wide: values may exceed 64 bits.
    """

    blocks: Inverter
    width_bits: int
    quick: Words
    exact: ExactCoin
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
            keep[open_] = self.exact(block[open_], place[open_], choice[open_], source)
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
    """floor(2^64 exp(-x)) for each exponent, rounded down; 0 after the last one, which means undecided."""
    with precision(160):
        found = [scaled_floor((-ball(x)).exp(), 64)[0] for x in exponents]
    return np.array([*(min(f, (1 << 64) - 1) for f in found), 0], dtype=np.uint64)


def exact_exponential_coin(coefficient: Fraction, bits: int, *, quadratic: bool) -> ExactCoin:
    """Keep with chance exp(-a y (2h + y)) if quadratic, else exp(-a y), where y = place / 2^bits."""
    a = float(coefficient)

    def exactly(h: int, place: int, word: int, source: Source) -> bool:
        y = Fraction(place, 1 << bits)
        exponent = coefficient * y * (2 * h + y) if quadratic else coefficient * y
        return Uniform(value=word, bits=64, source=source).below(lambda: (-ball(exponent)).exp())

    def decide(block: AnyArray, place: AnyArray, choice: Words, source: Source) -> npt.NDArray[np.bool_]:
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

    return decide
