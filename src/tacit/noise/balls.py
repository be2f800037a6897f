"""Ball arithmetic for the samplers: exact parameters in, rigorous intervals out.

Precision is a global setting of python-flint. It is changed here under a lock and restored; if another
thread changes it meanwhile, balls only become wider or narrower, never wrong, and every reader of a ball
in this room asks again at a higher precision when a ball does not decide.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import flint
import numpy as np

from tacit.errors import InvalidParameter, NotCertified

__all__ = [
    "Ball",
    "CertifiedReal",
    "Exact",
    "ball_of",
    "entries",
    "exact_parameter",
    "flag_parameter",
    "integer_parameter",
    "outward",
    "plain",
    "precision",
    "scaled_floor",
    "settle",
    "working_precision",
]

Ball: TypeAlias = "flint.arb"
Exact: TypeAlias = int | float | Fraction

_LOCK = threading.RLock()
# Parameters that a float can hold, and whose digits Python prints.
LEAST, MOST, MOST_BITS = Fraction(1, 1 << 1022), 1 << 1023, 8192


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
    """Work with balls of `bits` bits, alone in this room."""
    with _LOCK, flint.ctx.workprec(bits):
        yield


def working_precision() -> int:
    """The precision in force."""
    return int(flint.ctx.prec)


def ball_of(value: Fraction | int | CertifiedReal) -> Ball:
    """A ball around an exact number at the working precision."""
    if isinstance(value, CertifiedReal):
        return value.evaluate()
    if isinstance(value, int):
        return flint.arb(value)
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def scaled_floor(ball: Ball, bits: int) -> tuple[int, int]:
    """Least and greatest possible value of floor(2^bits x) for x in the ball."""
    if not ball.is_finite():
        raise NotCertified(what="a probability", reason="its ball is not finite at this precision")
    scaled = ball * flint.arb(1 << bits)
    floor = scaled.floor().unique_fmpz()
    if floor is not None:
        return int(floor), int(floor)
    return int(scaled.lower().floor().unique_fmpz()), int(scaled.upper().floor().unique_fmpz())


def outward(ball: Ball) -> tuple[float, float]:
    """Floats below and above every number of the ball."""
    if not ball.is_finite():
        raise NotCertified(what="a probability", reason="the ball at this precision is not finite")
    low, high = float(ball.lower()), float(ball.upper())
    # arb to float rounds to nearest: one step outwards makes the pair certain.
    low = math.nextafter(low, -math.inf) if low != 0.0 or ball.lower() != 0 else 0.0
    high = math.nextafter(high, math.inf) if high != 0.0 or ball.upper() != 0 else 0.0
    return low, high


def exact_parameter(name: str, value: object, *, positive: bool = True, any_size: bool = False) -> Fraction:
    """The exact rational that the caller typed; finite, and positive where asked.

    What is declared must be of ordinary size. `any_size` is for what follows from data: there no size is refused.
    """
    must = "be a finite number above 0" if positive else "be a finite number"
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | np.integer | np.floating):
        raise InvalidParameter(parameter=name, value=value, must=must, hint="give an int, float or Fraction")
    number = plain(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise InvalidParameter(parameter=name, value=value, must=must)
    if positive and number <= 0:
        raise InvalidParameter(parameter=name, value=value, must=must)
    exact = Fraction(number)
    long = max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MOST_BITS
    if not any_size and (long or (exact and not LEAST <= abs(exact) <= MOST)):
        raise InvalidParameter(
            parameter=name, value=value, must="be of ordinary size: between 2^-1022 and 2^1023, if not 0",
            hint="rescale the statistic",
        )  # fmt: skip
    return exact


def plain(value: Any) -> Any:
    """NumPy's scalars as Python's own numbers, exactly: theirs wrap around and lose digits. Others stay."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        number = float(value)
        if not math.isfinite(value) or number == value:
            return number
        return Fraction(*value.as_integer_ratio())
    return value


def integer_parameter(name: str, value: object, *, least: int | None) -> int:
    """An integer that is at least `least`, as Python's own kind."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or (least is not None and int(value) < least)
    ):
        must = "be an integer" if least is None else f"be an integer that is at least {least}"
        raise InvalidParameter(parameter=name, value=value, must=must)
    if abs(int(value)) > MOST:
        raise InvalidParameter(parameter=name, value=value, must="be at most 2^1023 in size")
    return int(value)


def entries(name: str, values: Any) -> tuple[Any, ...]:
    """The members of a list, tuple or array; text, masked arrays and what has no members are refused."""
    listed = isinstance(values, list | tuple) or (
        isinstance(values, np.ndarray) and values.ndim > 0 and not isinstance(values, np.ma.MaskedArray)
    )
    if not listed:
        raise InvalidParameter(
            parameter=name, value=type(values).__name__, must="be a list, a tuple or an array without a mask"
        )
    return tuple(values)


def flag_parameter(name: str, value: object) -> bool:
    """True or False: "no" and 0 are neither, and every text but the empty one would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameter(
            parameter=name, value=value, must="be True or False", hint="a text or a number is not one"
        )
    return bool(value)


def settle(instance: object, **values: object) -> None:
    """Puts checked values into the fields of a frozen object, NumPy's scalars as Python's own numbers.

    What was checked is then what is computed with.
    """
    for name, value in values.items():
        object.__setattr__(instance, name, plain(value))
