"""Coins, finite distributions with rational weights, and categories with weights exp(score)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import accumulate
from itertools import count as count_from
from math import lcm

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import members, plain, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, CertifiedReal, Exact, ball, exact_parameter
from tacit.noise.distributions.base import (
    CHUNK,
    DiscreteDistribution,
    Inverter,
    Series,
    Shape,
    bernoulli,
    joined,
    random_bits,
    shape_of,
)
from tacit.noise.source import Source, default_source

__all__ = [
    "Bernoulli",
    "Categorical",
    "ComputableDistribution",
    "FiniteDistribution",
    "permutation",
    "uniform_integer",
]


def draw_inverted(inverter: Inverter, count: int, source: Source) -> AnyArray:
    """Draws by one inverter, in chunks that fit the cache."""
    parts = [
        inverter.invert(source.words(min(CHUNK, count - start)), source) for start in range(0, count, CHUNK)
    ]
    return joined(parts)


def probability_parameter(name: str, value: Exact | CertifiedReal) -> Fraction | CertifiedReal:
    """A probability in [0, 1], exact or certified."""
    if isinstance(value, CertifiedReal):
        return value
    exact = exact_parameter(name, value, positive=False, any_size=True)
    refuse_if(not 0 <= exact <= 1, name, value, "lie between 0 and 1")
    return exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Bernoulli(DiscreteDistribution):
    """1 with the given probability, else 0; the probability is an exact rational or a certified real."""

    probability_of_one: Exact | CertifiedReal
    _inverter: Inverter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        p = probability_parameter("probability_of_one", self.probability_of_one)
        set_fields(self, probability_of_one=self.probability_of_one)
        object.__setattr__(self, "_inverter", bernoulli(lambda: ball(p)))

    @classmethod
    def exponential(cls, exponent: Exact) -> Bernoulli:
        """1 with probability exp(-exponent), exactly; exponent >= 0."""
        x = exact_parameter("exponent", exponent, positive=False, any_size=True)
        refuse_if(x < 0, "exponent", exponent, "be at least 0")
        real = CertifiedReal(evaluate=lambda: (-ball(x)).exp(), name="exp(-x)")
        return cls(probability_of_one=1 if x == 0 else real)

    def _p(self) -> Ball:
        return self._inverter.distribution.survival(1)

    def _draw(self, count: int, source: Source) -> AnyArray:
        return draw_inverted(self._inverter, count, source)

    def probability_ball(self, k: int) -> Ball:
        return self._p() if k == 1 else 1 - self._p() if k == 0 else flint.arb(0)

    def survival_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else self._p() if k == 1 else flint.arb(0)

    def mean_ball(self) -> Ball:
        return self._p()

    def variance_ball(self) -> Ball:
        return self._p() * (1 - self._p())


@dataclass(frozen=True, slots=True)
class _Suffixes:
    """Survival probabilities suffix[k] / suffix[0] of a finite distribution with integer weights."""

    suffix: tuple[int, ...]

    def survival(self, k: int) -> Ball:
        return flint.arb(flint.fmpq(self.suffix[k], self.suffix[0])) if k < len(self.suffix) else flint.arb(0)

    def survivals(self) -> Iterator[Ball]:
        for k in range(1, len(self.suffix)):
            yield self.survival(k)


class _Finite(DiscreteDistribution):
    """Shared by the distributions on 0..n-1: moments as finite sums."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def _moment(self, power: int) -> Ball:
        return sum(
            (flint.arb(k**power) * self.probability_ball(k) for k in range(1, len(self))), flint.arb(0)
        )

    def mean_ball(self) -> Ball:
        return self._moment(1)

    def variance_ball(self) -> Ball:
        return self._moment(2) - self._moment(1) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteDistribution(_Finite):
    """Pr[X = k] = weights[k] / sum of weights over k = 0..n-1, the weights being exact rationals."""

    weights: Sequence[Exact]
    _inverter: Inverter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = members("weights", self.weights)
        exact = [exact_parameter("weights", w, positive=False, any_size=True) for w in given]
        if not exact:
            raise EmptyComposition(what="weights", hint="give at least one weight")
        if min(exact) < 0 or not any(exact):
            raise InvalidParameter(
                parameter="weights", value=self.weights, must="be at least 0 and not all be 0"
            )
        common = lcm(*(w.denominator for w in exact))
        integers = [int(w * common) for w in exact]
        suffix = tuple(accumulate(reversed(integers)))[::-1]
        object.__setattr__(self, "weights", tuple(plain(w) for w in given))
        object.__setattr__(self, "_inverter", Inverter(_Suffixes(suffix), limit=len(suffix)))

    def __len__(self) -> int:
        return len(self.weights)

    def _draw(self, count: int, source: Source) -> AnyArray:
        return draw_inverted(self._inverter, count, source)

    def probability_ball(self, k: int) -> Ball:
        if not 0 <= k < len(self):
            return flint.arb(0)
        suffix = (*self._distribution().suffix, 0)
        return flint.arb(flint.fmpq(suffix[k] - suffix[k + 1], suffix[0]))

    def survival_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else self._distribution().survival(k)

    def _distribution(self) -> _Suffixes:
        law = self._inverter.distribution
        assert isinstance(law, _Suffixes)
        return law


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorical(_Finite):
    """Pr[X = i] proportional to exp(log_weights[i]), i = 0..n-1; log-weights are exact rationals.

    This is the exponential mechanism's distribution with log_weights = epsilon * score / (2 * sensitivity).
    Source: McSherry, Talwar 2007.
    """

    log_weights: Sequence[Exact]
    _inverter: Inverter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = members("log_weights", self.log_weights)
        exact = [exact_parameter("log_weights", w, positive=False, any_size=True) for w in given]
        if not exact:
            raise EmptyComposition(what="log_weights", hint="give at least one log-weight")
        top = max(exact)

        def terms() -> tuple[list[Ball], Ball]:
            return [ball(w - top).exp() for w in exact], flint.arb(0)

        object.__setattr__(self, "log_weights", tuple(plain(w) for w in given))
        object.__setattr__(self, "_inverter", Inverter(Series(terms), limit=len(exact)))

    def __len__(self) -> int:
        return len(self.log_weights)

    def _draw(self, count: int, source: Source) -> AnyArray:
        return draw_inverted(self._inverter, count, source)

    def probability_ball(self, k: int) -> Ball:
        return self._distribution().probability(k) if 0 <= k < len(self) else flint.arb(0)

    def survival_ball(self, k: int) -> Ball:
        if k <= 0:
            return flint.arb(1)
        return self._distribution().survival(k) if k < len(self) else flint.arb(0)

    def _distribution(self) -> Series:
        law = self._inverter.distribution
        assert isinstance(law, Series)
        return law


# Any discrete distribution whose cumulative probabilities can be computed.

_NO_MOMENTS = "the law is given by its cumulative probabilities only"


@dataclass(frozen=True, slots=True)
class _FromCumulative:
    cumulative: Callable[[int], Ball]
    start: int

    def survival(self, k: int) -> Ball:
        return 1 - self.cumulative(self.start + k - 1)

    def survivals(self) -> Iterator[Ball]:
        return (self.survival(k) for k in count_from(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputableDistribution(DiscreteDistribution):
    """The distribution on start, start + 1, ... whose Pr[X <= k] lies in the ball `cumulative(k)`.

    Assumptions: the balls enclose a true distribution function at every precision and shrink as
    python-flint's precision grows. Then draws are exact. A distribution that breaks this is refused
    (`NotCertified`) as soon as a draw cannot be decided.
    """

    cumulative_ball: Callable[[int], Ball]
    start: int = 0
    name: str = "computable law"
    _inverter: Inverter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_fields(self, start=whole("start", self.start, least=-(1 << 62)))
        law = _FromCumulative(self.cumulative_ball, self.start)
        object.__setattr__(self, "_inverter", Inverter(law))

    def _draw(self, count: int, source: Source) -> AnyArray:
        return draw_inverted(self._inverter, count, source) + self.start

    def probability_ball(self, k: int) -> Ball:
        if k < self.start:
            return flint.arb(0)
        below = flint.arb(0) if k == self.start else self.cumulative_ball(k - 1)
        return self.cumulative_ball(k) - below

    def survival_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= self.start else 1 - self.cumulative_ball(k - 1)

    def mean_ball(self) -> Ball:
        raise NotCertified(what="the mean", reason=_NO_MOMENTS)

    def variance_ball(self) -> Ball:
        raise NotCertified(
            what="the variance", reason="the law is given by its cumulative probabilities only"
        )


# Uniform integers and permutations, exact for every size.


def uniform_draws(n: int, count: int, source: Source) -> AnyArray:
    """`count` uniform integers in 0..n-1: bits are drawn until they fall below n, at least half do."""
    bits = (n - 1).bit_length()
    if n == 1 << bits:
        return random_bits(bits, count, source)
    parts: list[AnyArray] = []
    missing = count
    while missing > 0:
        tries = min(missing * (1 << bits) // n + 8, 1 << 16)
        drawn = random_bits(bits, tries, source)
        kept = drawn[(drawn < n).astype(np.bool_)][:missing]
        parts.append(kept)
        missing -= kept.size
    return joined(parts)


def uniform_integer(n: int, *, size: Shape = None, source: Source | None = None) -> AnyArray:
    """Exactly uniform integers in 0..n-1, for n of any length; int64 up to n = 2^62."""
    n = whole("n", n, least=1)
    shape = shape_of(size)
    source = source if source is not None else default_source()
    return uniform_draws(n, math.prod(shape), source).reshape(shape)


def uniform_below_secret(n: int, source: Source) -> int:
    """A uniform integer in 0..n-1 where n is not public: one word and the same steps for every n up to 2^64.

    A word w gives floor(w n / 2^64); exactly uniform if it is drawn anew where w n mod 2^64 < 2^64 mod n (Lemire 2019),
    which happens with a chance below n / 2^64.
    """
    while True:
        place, rest = divmod(int(source.words(1)[0]) * n, 1 << 64)
        if rest >= (1 << 64) % n:
            return place


def permutation(n: int, *, source: Source | None = None) -> npt.NDArray[np.intp]:
    """A uniform permutation of 0..n-1: the order of n words, drawn anew if two of them are equal."""
    n = whole("n", n, least=0)
    source = source if source is not None else default_source()
    while True:
        words = source.words(n)
        order = np.argsort(words)
        if n < 2 or bool((np.diff(words[order]) != 0).all()):
            return order
