"""Laws of outputs, as the referee compares them: coordinates that are exact or noisy, and tabulated laws.

`breaks` decides whether two laws are (epsilon, delta)-indistinguishable, in both directions: exactly for pure
epsilon and coordinates with the same noise, by sums for tabulated laws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = [
    "Exactly",
    "Noisy",
    "breaks",
    "divergence",
    "laplace_divergence",
    "laplace_table",
]


@dataclass(frozen=True, slots=True)
class Exactly:
    """A coordinate that is published as it is."""

    value: int


@dataclass(frozen=True, slots=True)
class Noisy:
    """A coordinate with discrete Laplace noise, Pr[value + k] proportional to e^(-rate |k|)."""

    value: int
    rate: Fraction


Coordinate = Exactly | Noisy


def loss(p: Coordinate, q: Coordinate) -> Fraction | None:
    """The larger of sup ln p/q and sup ln q/p; None where it is infinite."""
    if isinstance(p, Noisy) and isinstance(q, Noisy) and p.rate == q.rate:
        return p.rate * abs(p.value - q.value)
    # Exact against noisy, or two scales of noise: some outcomes of one are (in the limit) impossible under the other.
    return Fraction(0) if p == q else None


def breaks(p: Sequence[Coordinate], q: Sequence[Coordinate], epsilon: Fraction) -> bool:
    """Do two products of independent coordinates fail to be epsilon-indistinguishable? Exact."""
    total = Fraction(0)
    for a, b in zip(p, q, strict=True):
        if a == b:
            continue
        part = loss(a, b)
        if part is None:
            return True
        total += part
    return total > epsilon


def divergence(p: Mapping[object, float], q: Mapping[object, float], epsilon: float) -> float:
    """The larger of the two hockey-stick divergences of two tabulated laws; what is not tabulated has probability 0."""
    factor = math.exp(epsilon)
    keys = set(p) | set(q)
    one = math.fsum(max(0.0, p.get(k, 0.0) - factor * q.get(k, 0.0)) for k in keys)
    other = math.fsum(max(0.0, q.get(k, 0.0) - factor * p.get(k, 0.0)) for k in keys)
    return max(one, other)


def laplace_table(value: int, rate: float, reach: int) -> dict[object, float]:
    """Discrete Laplace probabilities around a value, cut `reach` steps away from 0."""
    q = math.exp(-rate)
    top = (1 - q) / (1 + q)
    return {k: top * q ** abs(k - value) for k in range(-reach, reach + 1)}


def laplace_divergence(
    *, value: float, scale: float, other: float, other_scale: float, epsilon: float
) -> float:
    """H_epsilon(Laplace(value, scale) || Laplace(other, other_scale)), for continuous noise, in closed form.

    ln p/q is piecewise linear with corners at the two values, so that the set where it exceeds epsilon is a union of
    intervals; on each piece both densities are integrated exactly.
    """
    if value > other:  # mirror, so that value <= other
        return laplace_divergence(
            value=-value, scale=scale, other=-other, other_scale=other_scale, epsilon=epsilon
        )

    def gap(z: float) -> float:
        return math.log(other_scale / scale) - abs(z - value) / scale + abs(z - other) / other_scale - epsilon

    def mass(a: float, b: float, centre: float, width: float) -> float:
        """The probability of (a, b)."""

        def below(z: float) -> float:
            x = (z - centre) / width
            return 0.5 * math.exp(x) if x < 0 else 1 - 0.5 * math.exp(-x)

        def above(z: float) -> float:
            x = (z - centre) / width
            return 0.5 * math.exp(-x) if x > 0 else 1 - 0.5 * math.exp(x)

        return above(a) - above(b) if a >= centre else below(b) - below(a)

    total = 0.0
    pieces = [(-math.inf, value), (value, other), (other, math.inf)]
    for low, high in pieces:
        if low >= high:
            continue
        start = high - 1 if math.isinf(low) else low
        stop = low + 1 if math.isinf(high) else high
        at_start, at_stop = gap(start), gap(stop)
        slope = (at_stop - at_start) / (stop - start)
        cut = start - at_start / slope if slope else None
        begin, end = low, high
        if cut is not None and slope > 0:
            begin = max(low, cut)
        elif cut is not None:
            end = min(high, cut)
        elif at_start <= 0:
            continue
        if begin < end:
            more = mass(begin, end, value, scale) - math.exp(epsilon) * mass(begin, end, other, other_scale)
            total += max(0.0, more)
    return total
