"""Sums of products in pairs of floats: some 100 bits, vectorised, for the few values that floats leave open.

Knuth's sum and Dekker's product are exact: a + b = s + e and a b = p + e. What is kept is hi + lo.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import flint
import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.exact.balls import precision

__all__ = ["Pair", "add", "multiply", "roots_of_unity", "total"]

Pair: TypeAlias = tuple[Floats, Floats]
SPLIT = 2.0**27 + 1.0
TABLE_BITS = 11


def _two_sum(a: Floats, b: Floats) -> Pair:
    s = a + b
    back = s - a
    return s, (a - (s - back)) + (b - back)


def _two_product(a: Floats, b: Floats) -> Pair:
    p = a * b
    wide, other = SPLIT * a, SPLIT * b
    a1, b1 = wide - (wide - a), other - (other - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def add(x: Pair, y: Pair) -> Pair:
    """x + y, within 2^-104 (|x| + |y|)."""
    s, e = _two_sum(x[0], y[0])
    return _two_sum(s, e + (x[1] + y[1]))


def multiply(x: Pair, y: Pair) -> Pair:
    """x y, within 2^-100 |x y|."""
    p, e = _two_product(x[0], y[0])
    return _two_sum(p, e + (x[0] * y[1] + x[1] * y[0]))


def total(x: Pair) -> tuple[float, float]:
    """The sum of all, by halves: within 2^-100 sum |x| for up to 2^26 terms."""
    hi, lo = x[0].ravel(), x[1].ravel()
    while hi.size > 1:
        if hi.size % 2:
            hi, lo = np.append(hi, 0.0), np.append(lo, 0.0)
        half = hi.size // 2
        hi, lo = add((hi[:half], lo[:half]), (hi[half:], lo[half:]))
    return (float(hi[0]), float(lo[0])) if hi.size else (0.0, 0.0)


def roots_of_unity(numerators: npt.NDArray[np.int64], size: int) -> tuple[Pair, Pair]:
    """cos and sin of 2 pi m / size for a power of two, within 2^-98, from two short tables of exact values."""
    fine = min(size, 1 << TABLE_BITS)
    m = numerators % size
    coarse_cos, coarse_sin = _table(size // fine, size // fine)
    fine_cos, fine_sin = _table(fine, size)
    a, b = m // fine, m % fine
    c1, s1 = (coarse_cos[0][a], coarse_cos[1][a]), (coarse_sin[0][a], coarse_sin[1][a])
    c2, s2 = (fine_cos[0][b], fine_cos[1][b]), (fine_sin[0][b], fine_sin[1][b])
    minus = (-s1[0], -s1[1])
    return add(multiply(c1, c2), multiply(minus, s2)), add(multiply(s1, c2), multiply(c1, s2))


@lru_cache(maxsize=64)
def _table(count: int, size: int) -> tuple[Pair, Pair]:
    """cos and sin of 2 pi m / size for m < count."""
    columns = np.empty((4, count))
    with precision(192):
        for m in range(count):
            sine, cosine = flint.arb.sin_cos_pi_fmpq(flint.fmpq(2 * m, size))
            for at, value in ((0, cosine), (2, sine)):
                hi = float(value.mid())
                columns[at, m], columns[at + 1, m] = hi, float((value - flint.arb(hi)).mid())
    return (columns[0], columns[1]), (columns[2], columns[3])
