"""From real numbers that are known as floats with radii, or as balls, to the grid: exactly.

Floats settle all but a few; those are computed again in balls, from the same random numbers with more of their bits,
until nothing is open. So the integers are the roundings of the exact reals, whatever the floats lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball, ball, precision
from tacit.exact.enclosures import Enclosure
from tacit.noise.reals import LazyReal, Normals
from tacit.noise.source import Source

__all__ = ["SharedNormals", "float_constant", "round_exactly", "rounded"]

ROUNDS = 64
FIRST_BITS = 160


def rounded(value: Ball, step: Fraction, bits: int = 512) -> int:
    """floor(value / step + 1/2), where the ball leaves no doubt."""
    floor = _floor(value, step, bits)
    if floor is None:
        raise NotCertified(what="the rounding of a path", reason=f"it is still open at {bits} bits")
    return floor


def _floor(value: Ball, step: Fraction, bits: int) -> int | None:
    with precision(bits):
        floor = (value / ball(step) + flint.arb("0.5")).floor().unique_fmpz()
    return None if floor is None else int(floor)


def float_constant(value: Fraction) -> Enclosure:
    """An exact number as a float with its radius."""
    middle = float(value)
    return Enclosure(np.asarray(middle), abs(middle) * 2.0**-52 + 1e-300)


class SharedNormals:
    """Standard normals of which several values are made: what one value draws of their bits, the others see."""

    __slots__ = ("_drawn", "_lazy", "_source", "count")

    def __init__(self, count: int, source: Source) -> None:
        self.count, self._source = count, source
        self._drawn = Normals.draw((count,), source)
        self._lazy: dict[int, LazyReal] = {}

    def enclosure(self) -> Enclosure:
        """Floats with radii."""
        return self._drawn.enclosure()

    @property
    def drawn(self) -> Normals:
        """Signs, blocks and the first 64 bits."""
        return self._drawn

    def _at(self, index: int) -> LazyReal:
        if index not in self._lazy:
            self._lazy[index] = self._drawn.lazy((index,), self._source)
        return self._lazy[index]

    def ball(self, index: int) -> Ball:
        """One of them, to the bits that are drawn."""
        return self._at(index).ball()

    def extend(self, indices: Sequence[int] | range) -> None:
        """Draw more bits of these."""
        for i in indices:
            self._at(i).extend()


def round_exactly(
    reals: Enclosure, step: Fraction, exact: Callable[[int], Ball], extend: Callable[[int], None]
) -> AnyArray:
    """floor(x / step + 1/2) for each real; `exact(i)` gives the i-th at the working precision, `extend(i)` its bits."""
    values, settled = settled_floats(reals, step)
    still = np.flatnonzero(~settled)
    if not still.size:
        return values
    found = [_exactly(int(i), step, exact, extend) for i in still]
    if any(abs(v) >= 1 << 62 for v in found):
        values = values.astype(object)
    values[still] = found
    return values


def _exactly(index: int, step: Fraction, exact: Callable[[int], Ball], extend: Callable[[int], None]) -> int:
    bits = FIRST_BITS
    for _ in range(ROUNDS):
        with precision(bits):
            value = exact(index)
        floor = _floor(value, step, bits + 64)
        if floor is not None:
            return floor
        extend(index)
        bits += 64
    raise NotCertified(what="the rounding of a path", reason=f"it is still open at {bits} bits")


def settled_floats(reals: Enclosure, step: Fraction) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    """floor(x / step + 1/2), and where the radius leaves no doubt of it."""
    inverse = float(1 / step)
    with np.errstate(over="ignore", invalid="ignore"):
        mid, rad = reals.mid * inverse, reals.rad * inverse
        slack = (np.abs(mid) + 1.0) * 2.0**-51
        low, high = np.floor(mid + 0.5 - (rad + slack)), np.floor(mid + 0.5 + (rad + slack))
        settled = (low == high) & (np.abs(low) < 2.0**52)
    return np.where(settled, low, 0.0).astype(np.int64), settled
