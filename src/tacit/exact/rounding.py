"""Exact numbers inside, one rounding against ourselves at the edge: directed rounding, ball arithmetic, one search.

`up(x)` is the smallest float >= x and `down(x)` the largest float <= x, for exact rationals, integers,
floats, and for both ends of a ball. Positive values below the smallest float round up to 5e-324, never to 0.

`upper(f)` evaluates a formula of balls (python-flint) with growing precision until the float just above its value is
known, so that the result is the *smallest* float that is not below the exact value. Monotone formulas therefore stay
monotone after rounding, and epsilons of 1e-12 and 1e3 are as accurate as those around 1. An input float counts as
exactly the binary number that it stores. The precision is one setting of the whole process. `precision` changes
it under the only lock, and restores it. No other code in tacit sets it. Other threads may make a ball outside
of it wider or narrower, but never wrong.

`bisected` finds the point at which a monotone condition becomes true, by halving. A monotone condition that
holds at a point holds at every larger one. The search keeps two ends: at the first the condition does not hold,
at the second it does. Take the end on the safe side, so that the result is directed: the second if the
predicate must hold, the first if it must not be exceeded. The given ends are never tried; the condition is
tested once for each halving.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.checks import MOST, is_number, plain, refuse_if
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    from flint import arb

    from tacit.exact.arrays import AnyArray


# Parameters as exact rationals: what the caller typed, to the last digit.

Exact: TypeAlias = int | float | Fraction

# Parameters that a float can hold, and whose digits Python prints.
LEAST, MOST_BITS = Fraction(1, 1 << 1022), 8192
SHORT = 1000


def exact_parameter(name: str, value: object, *, positive: bool = True, any_size: bool = False) -> Fraction:
    """The exact rational that the caller typed; finite, and positive where asked.

    Declared values must be of ordinary size. `any_size` is for values that follow from data: there no size is refused.
    """
    if type(value) is Fraction or type(value) is int:
        # Short ones are of ordinary size, and need no comparison of fractions.
        above, below = value.numerator, value.denominator
        if (above > 0 or not positive) and above.bit_length() <= SHORT and below.bit_length() <= SHORT:
            return value if type(value) is Fraction else Fraction(value)
    must = "be a finite number above 0" if positive else "be a finite number"
    refuse_if(not is_number(value), name, value, must, "give an int, float or Fraction")
    number = plain(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise InvalidParameter(parameter=name, value=value, must=must)
    refuse_if(positive and number <= 0, name, value, must)
    exact = Fraction(number)
    long = max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MOST_BITS
    if not any_size and (long or (exact and not LEAST <= abs(exact) <= MOST)):
        raise InvalidParameter(
            parameter=name, value=value, must="be of ordinary size: between 2^-1022 and 2^1023, if not 0",
            hint="rescale the statistic",
        )  # fmt: skip
    return exact


def grid_spacing(spacing: object) -> Fraction:
    """A positive power of two, exactly."""
    exact = exact_parameter("spacing", spacing)
    if (exact.numerator & (exact.numerator - 1)) or (exact.denominator & (exact.denominator - 1)):
        raise InvalidParameter(
            parameter="spacing", value=spacing, must="be a power of two", hint="for instance 2.0**-10"
        )
    return exact


def exact_value(name: str, value: object) -> Any:
    """The given number, if `exact_parameter` accepts it: a field keeps the typed number."""
    exact_parameter(name, value)
    return plain(value)


_LARGEST = 1.7976931348623157e308


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A certified enclosure: the true value is at least `low` and at most `high`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        refuse_if(not self.low <= self.high, "low", self.low, f"be at most high = {self.high!r}")

    @property
    def width(self) -> float:
        """high - low (0 if both are the same infinity)."""
        return 0.0 if self.low == self.high else self.high - self.low

    def __neg__(self) -> Interval:
        return Interval(low=-self.high, high=-self.low)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def hull(self, other: Interval) -> Interval:
        """The smallest interval with both inside."""
        return Interval(low=min(self.low, other.low), high=max(self.high, other.high))

    def maximum(self, other: Interval) -> Interval:
        """The enclosure of the larger of two enclosed values."""
        return Interval(low=max(self.low, other.low), high=max(self.high, other.high))


def _dyadic_up(mantissa: int, exponent: int) -> float:
    """Smallest float >= mantissa * 2**exponent."""
    if mantissa == 0:
        return 0.0
    # A float has 53 digits, and none below 2^-1074: the others are cut, upwards.
    cut = max(mantissa.bit_length() - 53, -1074 - exponent, 0)
    kept = -(-mantissa >> cut)
    try:
        return math.ldexp(kept, exponent + cut) if kept else -0.0
    except OverflowError:
        return math.inf if mantissa > 0 else -_LARGEST


def _fraction_up(exact: Fraction) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -_LARGEST
    if math.isinf(nearest):
        return nearest if nearest > 0 else -_LARGEST
    top, bottom = nearest.as_integer_ratio()
    enough = top * exact.denominator >= exact.numerator * bottom
    return nearest if enough else math.nextafter(nearest, math.inf)


def up(x: Any) -> float:
    """Smallest float that is >= every point of x (a ball, a Fraction, an int or a float)."""
    if isinstance(x, float):
        return x
    if isinstance(x, int):
        return _fraction_up(Fraction(x))
    if isinstance(x, Fraction):
        return _fraction_up(x)
    if x.is_nan() or not x.is_finite():
        return math.inf
    mantissa, exponent = x.upper().mid().man_exp()
    high = _dyadic_up(int(mantissa), int(exponent))
    # `upper` is itself rounded: step on if the ball still reaches beyond the float.
    return high if math.isinf(high) or bool(x <= high) else math.nextafter(high, math.inf)


def down(x: Any) -> float:
    """Largest float that is <= every point of x."""
    return -up(-x)


_WIDE = Context(prec=60)
_DECIMAL = Decimal("1e-12")


def digits_up(value: Exact, digits: int = 3) -> str:
    """A non-negative number with this many significant digits, rounded up: a printed bound is a bound.

    A decimal that became the next larger float prints as itself; the text is below it by at most a part in 1e12.
    """
    return _digits(value, digits, ROUND_CEILING, 1 - _DECIMAL)


def digits_down(value: Exact, digits: int = 3) -> str:
    """The same, rounded down, so that nobody can ask for more than the printed remainder."""
    return _digits(value, digits, ROUND_FLOOR, 1 + _DECIMAL)


def _digits(value: Exact, digits: int, rounding: str, slack: Decimal) -> str:
    if not value or (isinstance(value, float) and not math.isfinite(value)):
        return f"{float(value):g}"
    top, bottom = Fraction(value).as_integer_ratio()
    exact = _WIDE.multiply(_WIDE.divide(Decimal(top), Decimal(bottom)), slack)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    shown = exact.quantize(step, rounding=rounding, context=_WIDE)
    # By way of a float a number below the smallest one would be 0.
    return f"{float(shown):.{digits}g}" if LEAST <= Fraction(shown) <= MOST else f"{shown:.{digits}g}"


def product(a: float, b: float) -> Interval:
    """The adjacent floats around a b, or a b itself if it is a float."""
    near = a * b
    if math.isinf(near):
        return Interval(low=min(near, _LARGEST), high=max(near, -_LARGEST))
    (a, over_a), (b, over_b), (top, bottom) = (x.as_integer_ratio() for x in (a, b, near))
    rest = a * b * bottom - top * over_a * over_b
    return Interval(
        low=near if rest >= 0 else math.nextafter(near, -math.inf),
        high=near if rest <= 0 else math.nextafter(near, math.inf),
    )


def sum_up(values: Iterable[float | int | Fraction]) -> float:
    """The exact rational sum, rounded up once; infinite terms give infinity."""
    total = Fraction(0)
    for value in values:
        if isinstance(value, float) and math.isinf(value):
            return value
        total += Fraction(value)
    return up(total)


# --- Ball arithmetic ----------------------------------------------------------------------------------------


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


# --- One search ---------------------------------------------------------------------------------------------


Place = TypeVar("Place", int, float, Fraction)

FAR = 1 << 4096
"""The search stops beyond this value."""


def bisected(
    holds: Callable[[Place], bool],
    low: Place,
    high: Place,
    *,
    halvings: int | None = None,
    relative: float | Fraction = 0.0,
    absolute: float | Fraction = 0.0,
    logarithmic: bool = False,
) -> tuple[Place, Place]:
    """The ends (does not hold, holds) of the rest of low..high after at most `halvings`.

    Integers become neighbours. Floats and fractions are halved until high - low is at most `relative` times the
    larger of them in size, or at most `absolute`, or until no float is between. `logarithmic` searches halve
    positive floats by their geometric mean, until high / low is at most `relative`.
    """
    left = math.inf if halvings is None else halvings
    if isinstance(low, int) and isinstance(high, int):
        while high - low > 1 and left > 0:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
            left -= 1
        return low, high
    while left > 0:
        if (
            (high / low <= relative)
            if logarithmic
            else high - low <= max(relative * max(-low, high), absolute)
        ):
            break
        between: Any = math.sqrt(low * high) if logarithmic else (low + high) / 2
        if not low < between < high:
            break
        low, high = (low, between) if holds(between) else (between, high)
        left -= 1
    return low, high


def bisected_arrays(
    holds: Callable[[AnyArray], AnyArray], low: AnyArray, high: AnyArray, *, halvings: int
) -> tuple[AnyArray, AnyArray]:
    """The same for arrays, each place separately: `holds` tests all places at once."""
    import numpy as np

    for _ in range(halvings):
        middle = (low + high) / 2
        true = holds(middle)
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return low, high


def least(holds: Callable[[int], bool], *, start: int = 0, what: str = "a search") -> int:
    """The least integer for which a monotone condition holds, at any distance from the start: by doubling, then
    halving.
    """
    step = 1
    if holds(start):
        high = start
        while holds(high - step):
            high, step = high - step, 2 * step
            if step > FAR:
                raise NotCertified(what=what, reason="it has no lower end that can be found")
        low = high - step
    else:
        low = start
        while not holds(low + step):
            low, step = low + step, 2 * step
            if step > FAR:
                raise NotCertified(what=what, reason="it has no upper end that can be found")
        high = low + step
    return bisected(holds, low, high)[1]
