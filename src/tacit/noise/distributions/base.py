"""What every discrete law offers: exact draws, and certified probabilities for error bars."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction

import flint
import numpy as np

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball, CertifiedReal, outward, precision
from tacit.exact.checks import whole
from tacit.exact.rationals import exact_parameter
from tacit.noise.source import Source, default_source

__all__ = ["DiscreteDistribution", "Shape", "certify", "shape_of"]

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
    """An exact law on the integers.

    Guarantee: `sample` has exactly this law when the source's words are uniform; there is no numerical
    error to count. Probabilities are pairs of floats that certainly enclose the true number.
    """

    __slots__ = ()

    # -- draws -------------------------------------------------------------------------------------

    @abstractmethod
    def _draw(self, count: int, source: Source) -> AnyArray:
        """`count` independent draws."""

    def sample(self, *, size: Shape = None, source: Source | None = None) -> AnyArray:
        """Independent exact draws: int64 where all of them fit, otherwise Python integers."""
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
        """Pr[X >= k] as a number that other laws take, for instance the chance of a Binomial."""
        return CertifiedReal(evaluate=lambda: self.survival_ball(k), name=f"Pr[{self!r} >= {k}]")

    def quantile(self, p: float | Fraction) -> int:
        """The least k with Pr[X <= k] >= p, certified; where equality cannot be told, the next k."""
        level = _level("p", p)

        def reached(k: int) -> bool:
            return _certainly_at_most(lambda: self.survival_ball(k + 1), 1 - level)

        return _least(reached)

    def error_bound(self, *, confidence: float | Fraction, coordinates: int = 1) -> int:
        """The least t with Pr[max_i |X_i| <= t] >= confidence for independent X_1..X_d, certified.

        Pr[max_i |X_i| <= t] = (1 - Pr[|X| > t])^d, so no union bound is lost.
        """
        level = _level("confidence", confidence)
        d = whole("coordinates", coordinates, least=1)

        def miss(t: int) -> Ball:
            inside = flint.arb(1) - self.tail_ball(t + 1)
            return flint.arb(1) - inside ** flint.arb(d) if d > 1 else flint.arb(1) - inside

        return _least(lambda t: t >= 0 and _certainly_at_most(lambda: miss(t), 1 - level))

    def _read(self, evaluate: Callable[[], Ball], what: str) -> tuple[float, float]:
        low, high = outward(certify(evaluate, _sharp, what=what))
        return max(low, 0.0), min(high, 1.0)


def _level(name: str, p: float | Fraction) -> Fraction:
    level = exact_parameter(name, p, any_size=True)
    if level >= 1:
        raise InvalidParameter(parameter=name, value=p, must="lie strictly between 0 and 1")
    return level


def _certainly_at_most(evaluate: Callable[[], Ball], bound: Fraction) -> bool:
    """Whether the number is certainly at most the bound; undecided at 2048 bits counts as no."""
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


def _least(reached: Callable[[int], bool]) -> int:
    """The least integer from which a monotone condition holds."""
    if reached(0):
        high, step = 0, 1
        while reached(high - step):
            high -= step
            step *= 2
            if step > 1 << 4096:
                raise NotCertified(what="a quantile", reason="the law has no lower end that can be found")
        low = high - step
    else:
        low, step = 0, 1
        while not reached(low + step):
            low += step
            step *= 2
            if step > 1 << 4096:
                raise NotCertified(what="a quantile", reason="the law has no upper end that can be found")
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
