"""How far one unit moves a sum of trigonometric features, in each norm that sizes a noise.

Psi(x) = (cos 2 pi k x, sin 2 pi k x)_{k = 1..m} in one dimension; in d >= 2 the products of the orthonormal functions
1, sqrt(2) cos, sqrt(2) sin up to frequency m in each coordinate, without the constant. Theorem `fourier-sensitivity`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import flag, whole
from tacit.mechanisms.sensitivity import L1, L2
from tacit.mechanisms.shapes import Contribution
from tacit.noise import CaratheodoryBody

__all__ = ["MOST_COEFFICIENTS", "feature_count", "fourier_contribution", "fourier_l1", "fourier_l2"]

MOST_COEFFICIENTS = 1 << 17
MOST_SEARCHED = 512
FLOAT_ROOM = 1e-9
"""What the float evaluation of a supremum is raised by, relatively: far above its error, which is below 1e-11."""


def feature_count(*, frequencies: int, dimension: int = 1) -> int:
    """(2m + 1)^d - 1; refused beyond 2^17, or for d > 3."""
    m, d = whole("frequencies", frequencies, least=1), whole("dimension", dimension, least=1)
    if d > 3:
        raise InvalidParameter(
            parameter="dimension", value=d, must="be 1, 2 or 3",
            hint="the number of coefficients grows as (2m + 1)^d; release margins of fewer columns",
        )  # fmt: skip
    if m > MOST_COEFFICIENTS or (2 * m + 1) ** d - 1 > MOST_COEFFICIENTS:
        raise InvalidParameter(
            parameter="frequencies", value=m, must=f"give at most {MOST_COEFFICIENTS} coefficients",
            hint=f"in {d} dimensions that is (2m + 1)^{d} - 1: take a larger bandwidth",
        )  # fmt: skip
    return int((2 * m + 1) ** d - 1)


def fourier_contribution(*, frequencies: int, replace: bool) -> Contribution:
    """Psi(x) is in the Caratheodory body: gauge 1. For the difference form of K-norm noise; d = 1 only."""
    return Contribution(1, CaratheodoryBody(frequencies=frequencies), flag("replace", replace))


def fourier_l2(*, frequencies: int, dimension: int = 1, replace: bool) -> L2:
    """The largest Euclidean length of Psi(x), or of Psi(x) - Psi(y).

    d = 1: sqrt(m), or sqrt(2m - 2 min_t sum_k cos kt). d >= 2, with N = 2m + 1 and D = 1 + 2 sum_k cos kt:
    sqrt(N^d - 1), or sqrt(2 N^(d-1) (N - min D)).
    """
    feature_count(frequencies=frequencies, dimension=dimension)
    m, d = int(frequencies), int(dimension)
    if not flag("replace", replace):
        return L2.root(m if d == 1 else (2 * m + 1) ** d - 1)
    fall = -_least_cosines(m)
    if d == 1:
        return L2.root(2 * m + 2 * fall)
    wide = 2 * m + 1
    return L2.root(2 * wide ** (d - 1) * (wide - 1 + 2 * fall))


def fourier_l1(*, frequencies: int, dimension: int = 1, replace: bool) -> L1:
    """The largest sum of sizes of Psi(x), or of Psi(x) - Psi(y); to 1 in 10^3 in one dimension, m <= 64.

    In d >= 2 it is a bound: (1 + sqrt(2) s)^d - 1 with s the value for one dimension, and twice that under replace-one.
    """
    feature_count(frequencies=frequencies, dimension=dimension)
    m, d = int(frequencies), int(dimension)
    if d == 1:
        return L1(_moved_l1(m) if flag("replace", replace) else _l1(m))
    root_two = Fraction(upper(lambda: ball(2).sqrt()))
    return L1(((1 + root_two * _l1(m)) ** d - 1) * (2 if flag("replace", replace) else 1))


def _squares(m: int) -> int:
    return m * (m + 1) * (2 * m + 1) // 6


def _raised(value: float, slack: float) -> Fraction:
    return Fraction(value * (1 + FLOAT_ROOM) + slack * (1 + FLOAT_ROOM))


@lru_cache(maxsize=128)
def _least_cosines(m: int) -> Fraction:
    """A lower bound of min_t sum_k cos kt, by a grid: at the minimum f' = 0, and |f''| <= sum k^2.

    A grid point within h/2 of it has a value of at most min + (h^2 / 8) sum k^2.
    """
    # Beyond t = 4 pi / (2m + 1) the sum is -1/2 + sin((m + 1/2) t) / (2 sin(t / 2)) >= -1/2 - 1 / (2 sin(t / 2)),
    # which is above the value at 3 pi / (2m + 1); so that the grid covers [0, 4 pi / (2m + 1)];
    # before a quarter of that the sum is at least -1/2, since sin((m + 1/2) t) >= 0.
    end = min(4 * math.pi / (2 * m + 1), math.pi)
    points = 1 << 12
    t = np.linspace(0.0, end, points + 1)[points // 4 :]
    total = np.sin((m + 0.5) * t) / (2 * np.sin(t / 2)) - 0.5
    slack = (end / points) ** 2 / 8 * _squares(m)
    return max(-_raised(-float(total.min()), slack), Fraction(-m))


@lru_cache(maxsize=128)
def _l1(m: int) -> Fraction:
    """sup_x sum_k |cos kx| + |sin kx|: for the signs at the maximum a smooth sum with |f''| <= sqrt(2) sum k^2."""
    if m > MOST_SEARCHED:
        return m * Fraction(upper(lambda: ball(2).sqrt()))
    points = max(256, 32 * m)
    s, h = np.linspace(0.0, math.pi / 4, points + 1), math.pi / 4 / points
    total = np.zeros_like(s)
    for k in range(1, m + 1):
        total += np.abs(np.cos(k * s)) + np.abs(np.sin(k * s))
    return _raised(float(total.max()), h**2 / 8 * math.sqrt(2) * _squares(m))


@lru_cache(maxsize=128)
def _moved_l1(m: int) -> Fraction:
    """sup over x = s + t, y = s - t of sum_k 2 |sin kt| (|cos ks| + |sin ks|), by a grid in s and t.

    For the signs at the maximum it is P(x) - P(y), P a sum of frequencies up to m with |P''| <= sqrt(2) sum k^2, and
    both derivatives are 0 there. A grid point has |s - s*|, |t - t*| <= h/2, so that x and y are off by h at most
    and the value by h^2 sqrt(2) sum k^2. Both factors repeat: s in [0, pi/4], t in [0, pi/2] hold every value.
    """
    most = Fraction(upper(lambda: 2 * ball(2).sqrt() * m))
    if m > MOST_SEARCHED:
        return most
    fine = 24 if m <= 64 else 8
    h = math.pi / 4 / (fine * m)
    k = np.arange(1, m + 1)
    at = np.arange(fine * m + 1) * h
    middle = np.abs(np.cos(np.outer(at, k))) + np.abs(np.sin(np.outer(at, k)))
    best = 0.0
    half = np.arange(2 * fine * m + 1) * h
    for start in range(0, half.size, 512):
        apart = 2.0 * np.abs(np.sin(np.outer(half[start : start + 512], k)))
        best = max(best, float((apart @ middle.T).max()))
    slack = h**2 * math.sqrt(2) * _squares(m)
    return min(_raised(best, slack), most)
