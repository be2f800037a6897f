"""Ball arithmetic (python-flint): formulas at rising precision, rounded once and against ourselves.

`upper(f)` evaluates a formula with growing precision until the float just above its value is known, so that the
result is the *smallest* float that is not below the exact value. Monotone formulas therefore stay monotone after
rounding, and epsilons of 1e-12 and 1e3 are as accurate as those around 1. An input float counts as exactly the binary
number that it stores.

The precision is one setting of the whole process. `precision` changes it under the only lock, and restores it;
nothing else in tacit sets it. A ball that is computed outside of it may be wider or narrower by the work of other
threads, but never wrong.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.errors import NotCertified
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, down, up

if TYPE_CHECKING:
    from flint import arb

Ball: TypeAlias = "arb"
Number: TypeAlias = "int | float | Fraction"

_LOCK = threading.RLock()
_PRECISIONS = (64, 128, 256, 512, 1024, 2048)
_SMALLEST = 5e-324


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedReal:
    """A real number known by a rule: `evaluate()` gives a ball around it at the working precision,
    and the balls shrink to the number as the precision grows."""

    evaluate: Callable[[], Ball]
    name: str = "certified real"

    def __repr__(self) -> str:
        return f"CertifiedReal({self.name})"


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with balls of `bits` bits, as the only thread that does."""
    import flint

    with _LOCK, flint.ctx.workprec(bits):
        yield


def working_precision() -> int:
    """The precision in force."""
    import flint

    return int(flint.ctx.prec)


def ball(value: Number | CertifiedReal) -> Ball:
    """A ball around an exact number at the working precision (a float counts as its exact dyadic rational)."""
    import flint

    if isinstance(value, Fraction):
        return flint.arb(flint.fmpq(value.numerator, value.denominator))
    return value.evaluate() if isinstance(value, CertifiedReal) else flint.arb(value)


def positive_ball(value: Any) -> Any:
    """max(0, ball)."""
    return value.max(ball(0))


def upper(formula: Callable[[], Ball]) -> float:
    """The smallest float not below the formula's exact value, or a safe float above it."""
    return _settled(formula, up, lambda b: up(b.lower()))


def lower(formula: Callable[[], Ball]) -> float:
    """The largest float not above the formula's exact value, or a safe float below it."""
    return _settled(formula, down, lambda b: down(b.upper()))


def _settled(
    formula: Callable[[], Ball], safe: Callable[[Ball], float], other: Callable[[Ball], float]
) -> float:
    """Raises the precision until both ends of the ball round to one float; else returns the safe end."""
    best = math.nan
    for bits in _PRECISIONS:
        with precision(bits):
            value = formula()
            if not value.is_finite():
                continue
            best = safe(value)
            if best == other(value):
                return best
    if math.isnan(best):
        raise NotCertified(what="a formula", reason="ball arithmetic gave no finite enclosure")
    return best


def bracket(
    function: Callable[[], Any], *, bits: int = 60, limit: int = 1 << 14, what: str = "a value"
) -> Interval:
    """Evaluate a ball-valued function at rising precision until `bits` relative bits are known.

    At the precision limit the wider, still valid, ball is returned; an infinite one raises NotCertified.
    """
    working = 96
    while True:
        with precision(working):
            value = function()
            done = value.is_finite() and (
                value.is_exact() or value.rel_accuracy_bits() >= bits or bool(abs(value) < _SMALLEST)
            )
            if done or working >= limit:
                if not value.is_finite():
                    raise NotCertified(what=what, reason="its ball is infinite at the highest precision")
                return Interval(low=down(value), high=up(value))
        working *= 2


def scaled_floor(value: Ball, bits: int) -> tuple[int, int]:
    """Least and greatest possible value of floor(2^bits x) for x in the ball."""
    if not value.is_finite():
        raise NotCertified(what="a probability", reason="its ball is not finite at this precision")
    scaled = value * ball(1 << bits)
    floor = scaled.floor().unique_fmpz()
    if floor is not None:
        return int(floor), int(floor)
    return int(scaled.lower().floor().unique_fmpz()), int(scaled.upper().floor().unique_fmpz())


def outward(value: Ball) -> tuple[float, float]:
    """The nearest floats that enclose the ball."""
    if not value.is_finite():
        raise NotCertified(what="a probability", reason="the ball at this precision is not finite")
    return down(value), up(value)


# The masses of the Skellam law, Pr[X = k] = e^-v I_k(v), as balls: for draws, curves and error bars.

MOST_TERMS = 1 << 20


def skellam_reach(variance: Fraction, bits: int) -> int:
    """A K beyond which less than 2^-bits of the law lies.

    By Bernstein's inequality Pr[X > K] <= exp(-K^2 / (2 (v + K/3))): jumps of size 1, variance v.
    """
    size, want = float(variance), 0.7 * (bits + 8)
    third = want / 3
    return int(third + (third * third + 2 * want * size) ** 0.5) + 4


@lru_cache(maxsize=32)
def skellam_masses(variance: Fraction, bits: int, tail_bits: int) -> tuple[list[Ball], list[Ball]]:
    """Balls of Pr[X = k] and Pr[X >= k], k = 0..K, right to about `bits`; the tail beyond K is below 2^-tail_bits.

    I_{k-1} = I_{k+1} + (2k/v) I_k downwards from two certified values: a sum of positive terms, which loses nothing.
    The law is log-concave (a convolution of two that are), so beyond K the masses fall at least as I_{K+1}/I_K.
    """
    reach = skellam_reach(variance, tail_bits)
    if reach > MOST_TERMS:
        raise NotCertified(
            what="the sum of a Skellam law",
            reason=f"a variance of {float(variance):g} needs more than a million terms",
            hint="use a coarser grid",
        )
    with precision(bits + 2 * reach.bit_length() + 32):
        v = ball(variance)
        high, mass = v.bessel_i(ball(reach + 1), scaled=True), v.bessel_i(ball(reach), scaled=True)
        edge = high / (1 - high / mass)
        masses, factor = [mass], 2 / v
        for k in range(reach, 0, -1):
            high, mass = mass, high + k * factor * mass
            masses.append(mass)
        masses.reverse()
        tails = [ball(0).union(edge)]
        for mass in reversed(masses):
            tails.append(tails[-1] + mass)
        tails.reverse()
    return masses, tails
