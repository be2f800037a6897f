"""Exact numbers of the checker: probabilities as rationals, and e^epsilon between two rationals.

A hockey-stick divergence falls as e^epsilon grows. So the lower end of e^epsilon gives a delta that is not too
small, and the upper end one that is not too large. If e^epsilon is itself rational ("ln 3"), both ends are the
same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from tacit.errors import InvalidParameter
from tacit.exact.checks import is_number, plain, refuse_if
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    MOST_BITS,
    Interval,
    ball,
    down,
    exact_parameter,
    lower,
    precision,
    scaled_floor,
    up,
    upper,
)

__all__ = ["Level"]

Distribution: TypeAlias = Mapping[Any, Fraction]

_BITS = 128
_LOGARITHM = re.compile(r"\s*ln\s*\(?\s*([0-9./]+)\s*\)?\s*")
_EXPONENT = re.compile(r"[eE]([-+]?[0-9_]+)")
MOST_EPSILON = 1000


def as_probability(parameter: str, value: object) -> Fraction:
    """A rational in [0, 1], as given: a text such as "1/3" or "0.1" is that number, a float its binary value."""
    must = 'be a probability: a whole number, a fraction, or a text such as "1/3"'
    if isinstance(value, str):
        number = _read(parameter, value, value, must)
    elif is_number(value) and (not isinstance(plain(value), float) or math.isfinite(plain(value))):
        number = Fraction(plain(value))
    else:
        raise InvalidParameter(parameter=parameter, value=value, must=must)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MOST_BITS:
        raise InvalidParameter(
            parameter=parameter,
            value="a fraction of more digits than that",
            must=f"have at most {MOST_BITS} binary digits above and below the line",
        )
    refuse_if(not 0 <= number <= 1, parameter, value, "lie in [0, 1]")
    return number


def _read(parameter: str, number: str, value: str, must: str) -> Fraction:
    """A text as a rational; a very large exponent is refused before it is written out."""
    power = _EXPONENT.search(number)
    try:
        if len(number) > MOST_BITS or (power and abs(int(power[1])) > MOST_BITS):
            raise ValueError
        return Fraction(number)
    except (ValueError, ZeroDivisionError):
        raise InvalidParameter(parameter=parameter, value=value[:60], must=must) from None


def as_distribution(parameter: str, values: object) -> Distribution:
    """Outcomes with their probabilities, which add up to exactly 1; outcomes of probability 0 are left out."""
    if not isinstance(values, Mapping) or not values:
        raise InvalidParameter(
            parameter=parameter,
            value=type(values).__name__,
            must="map at least one outcome to its probability",
        )
    found = {outcome: as_probability(parameter, weight) for outcome, weight in values.items()}
    total = sum(found.values(), Fraction(0))
    if total != 1:
        told = short(total, 40) or f"about {float(total)!r}"
        raise InvalidParameter(
            parameter=parameter,
            value=float(total),
            must="add up to exactly 1",
            hint=f'it adds up to {told}; write "1/10" as text: the float 0.1 is not a tenth',
        )
    return MappingProxyType({outcome: weight for outcome, weight in found.items() if weight})


def short(number: Fraction, most: int) -> str | None:
    """The fraction as text; None if the text is longer than this."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 4 * most:
        return None
    text = str(number)
    return text if len(text) <= most else None


def hashable(parameter: str, value: object) -> Hashable:
    """The value itself; lists become tuples, so that it can be a key."""
    if isinstance(value, list):
        value = tuple(hashable(parameter, v) for v in value)
    if not isinstance(value, Hashable):
        raise InvalidParameter(
            parameter=parameter, value=type(value).__name__, must="be hashable", hint="use tuples"
        )
    try:
        hash(value)
    except TypeError:
        raise InvalidParameter(
            parameter=parameter, value=type(value).__name__, must="be hashable", hint="use tuples"
        ) from None
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """An epsilon, with e^epsilon between two rationals (equal ones if it is rational)."""

    epsilon: str
    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, epsilon: object) -> Level:
        """A level from a number, or from "ln 3", which makes e^epsilon = 3 exactly."""
        if isinstance(epsilon, Level):
            return epsilon
        if isinstance(epsilon, str):
            return cls._of_text(epsilon)
        exact = exact_parameter("epsilon", epsilon, positive=False)
        refuse_if(not 0 <= exact <= MOST_EPSILON, "epsilon", epsilon, f"lie between 0 and {MOST_EPSILON}")
        if exact == 0:
            return cls(epsilon="0", low=Fraction(1), high=Fraction(1))
        with precision(_BITS + 64 + 2 * MOST_EPSILON):
            below, above = scaled_floor(ball(exact).exp(), _BITS)
        scale = 1 << _BITS
        return cls(
            epsilon=repr(plain(epsilon)) if isinstance(plain(epsilon), float) else str(exact),
            low=Fraction(below, scale),
            high=Fraction(above + 1, scale),
        )

    @classmethod
    def _of_text(cls, epsilon: str) -> Level:
        must = 'be a number of at least 0, or the logarithm of one of at least 1, such as "ln 3"'
        match = _LOGARITHM.fullmatch(epsilon)
        number = _read("epsilon", match[1] if match else epsilon, epsilon, must)
        if not match:
            return cls.of(number)
        if number < 1 or max(number.numerator.bit_length(), number.denominator.bit_length()) > MOST_BITS:
            raise InvalidParameter(parameter="epsilon", value=epsilon, must=must)
        return cls.of_factor(number)

    @classmethod
    def of_factor(cls, factor: Fraction) -> Level:
        """The epsilon whose e^epsilon is this rational."""
        told = short(factor, 3000)
        text = f"ln({told})" if told is not None else repr(log_interval(factor).high)
        return cls(epsilon="0" if factor == 1 else text, low=factor, high=factor)

    @property
    def exact(self) -> bool:
        """Is e^epsilon known exactly?"""
        return self.low == self.high

    @property
    def interval(self) -> Interval:
        """Epsilon between two floats."""
        return Interval(low=log_interval(self.low).low, high=log_interval(self.high).high)


def log_interval(factor: Fraction) -> Interval:
    """The natural logarithm of a rational of at least 1, between two floats."""
    if factor == 1:
        return Interval(low=0.0, high=0.0)
    return Interval(low=lower(lambda: ball(factor).log()), high=upper(lambda: ball(factor).log()))


def ends(low: Fraction, high: Fraction) -> Interval:
    """Two rationals as floats, rounded outwards."""
    return Interval(low=down(low) + 0.0, high=up(high) + 0.0)


def total(weights: Iterable[Fraction]) -> Fraction:
    """The exact sum."""
    return sum(weights, Fraction(0))


# Hockey-stick divergences of finite distributions, in exact rationals.
#
#     H_E(P || Q) = sum over t of max(0, P(t) - E Q(t)),   E = e^epsilon
#
# P and Q are (epsilon, delta)-indistinguishable if H_E in both directions is at most delta. H_E is convex, falling
# and piecewise linear in E, with corners at the ratios P(t)/Q(t): so the smallest E for a delta is rational too.

ZERO = Fraction(0)


def excess(p: Distribution, q: Distribution, factor: Fraction) -> Fraction:
    """H_E(P || Q)."""
    out = ZERO
    for outcome, weight in p.items():
        other = q.get(outcome)
        more = weight if other is None else weight - factor * other
        if more > 0:
            out += more
    return out


def distance(p: Distribution, q: Distribution, factor: Fraction) -> Fraction:
    """The larger of both directions: the smallest delta of P and Q at this factor."""
    return max(excess(p, q, factor), excess(q, p, factor))


def total_variation(p: Distribution, q: Distribution) -> Fraction:
    """Statistical distance: H_1."""
    return excess(p, q, Fraction(1))


def event(p: Distribution, q: Distribution, factor: Fraction) -> tuple[Any, ...]:
    """The outcomes at which P exceeds E Q: the event that attains the excess."""
    return tuple(t for t, weight in p.items() if weight > factor * q.get(t, ZERO))


def smallest_factor(p: Distribution, q: Distribution, delta: Fraction) -> Fraction | None:
    """The smallest E >= 1 with H_E(P || Q) <= delta; None if no E is enough.

    Outcomes that Q never gives count in the excess for every E. Between two corners the sum runs over a fixed
    set S: P(S) - E Q(S) = delta is solved there.
    """
    kept = sum((w for t, w in p.items() if t not in q), ZERO)
    if kept > delta:
        return None
    if excess(p, q, Fraction(1)) <= delta:
        return Fraction(1)
    ratios = sorted(((w / q[t], w, q[t]) for t, w in p.items() if t in q), reverse=True)
    above, below = kept, ZERO
    for place, (_, w, other) in enumerate(ratios):
        above, below = above + w, below + other
        solution = (above - delta) / below
        following = ratios[place + 1][0] if place + 1 < len(ratios) else ZERO
        if solution >= following:
            return max(solution, Fraction(1))
    return Fraction(1)


def mixed(weights: Distribution, kernel: Any) -> dict[Any, Fraction]:
    """The distribution of a kernel's answer to a random input: sum over a of w(a) K(a)."""
    if len(weights) == 1:
        (only,) = weights
        return dict(kernel[only])
    out: dict[Any, Fraction] = {}
    for given, weight in weights.items():
        for outcome, chance in kernel[given].items():
            out[outcome] = out.get(outcome, ZERO) + weight * chance
    return out
