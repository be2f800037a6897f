"""Ball arithmetic (python-flint): formulas at rising precision, rounded once and against ourselves.

`upper(f)` evaluates a formula with growing precision until the float just above its value is known, so that the
result is the *smallest* float that is not below the exact value. Monotone formulas therefore stay monotone after
rounding, and epsilons of 1e-12 and of 1e3 are as right as those around 1. A float that comes in is taken as the
exact binary number that it is.

The precision is one setting of the whole process. `precision` changes it under the one lock that there is, and
restores it; nothing else in tacit sets it. A ball that is computed outside of it is wider or narrower by what
other threads do, never wrong.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.errors import NotCertified
from tacit.exact.rounding import Interval, down, up

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "Ball",
    "CertifiedReal",
    "Number",
    "ball",
    "bracket",
    "lower",
    "outward",
    "positive_ball",
    "precision",
    "scaled_floor",
    "upper",
    "working_precision",
]

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
    """A ball around an exact number at the working precision (a float is the dyadic rational that it stands for)."""
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
    """Raise the precision until both ends of the ball round to one float; else return the safe end."""
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
    """The nearest floats that no number of the ball lies beyond."""
    if not value.is_finite():
        raise NotCertified(what="a probability", reason="the ball at this precision is not finite")
    return down(value), up(value)
