"""Exact sums of pairs with a known law: the law of the sum on a lattice in the plane, between certified ends.

    p(s) = (1/N1 N2) sum over k of phi(k)^m e^{2 pi i (k1 s1/N1 + k2 s2/N2)}

as in `lattice`, in two dimensions: frequencies that are alive are taken in ball arithmetic, the others are bounded by
their modulus, what lies outside of the window is bounded by Bernstein's inequality. Then every value x of the
protected row is compared with the middle of the range, in both directions (theorem `prism-sums`, known law).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.coupled.noiseless.shifts import Found, excess, factor_for
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import UNIT, Floats
from tacit.exact.balls import precision
from tacit.pld.fourier import good_size

__all__ = ["PairLaw", "plane_epsilon"]

_BITS = 128
_DEAD = -85.0
_MORE = 1 + 1e-11
MOST_POINTS = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLaw:
    """Probabilities of steps (i, j), 0 <= i <= 2 half_1, 0 <= j <= 2 half_2; the middle is (half_1, half_2)."""

    weights: Mapping[tuple[int, int], Fraction]
    half_ranges: tuple[int, int]

    def __post_init__(self) -> None:
        if sum(self.weights.values(), Fraction(0)) != 1:
            raise InvalidParameter(parameter="weights", value="others", must="add up to exactly 1")
        if any(
            not (0 <= i <= 2 * self.half_ranges[0] and 0 <= j <= 2 * self.half_ranges[1])
            for i, j in self.weights
        ):
            raise InvalidParameter(parameter="weights", value="others", must="lie inside the declared range")

    def degenerate(self) -> bool:
        """Do all pairs lie on one line? Then one sum gives the other away, or shows every row."""
        points = list(self.weights)
        (a, b) = points[0]
        steps = [(i - a, j - b) for i, j in points[1:]]
        return all(p[0] * q[1] == p[1] * q[0] for p in steps for q in steps)


def plane_epsilon(
    law: PairLaw, *, hidden: int, delta: float, most_points: int = MOST_POINTS
) -> tuple[float, float]:
    """(epsilon at this delta against the middle of the range, the delta that no epsilon goes below)."""
    low, high, outside = _sum_of(law, hidden, delta, most_points)
    one, two = law.half_ranges
    middle = _placed(low, (one, two), law.half_ranges), _placed(high, (one, two), law.half_ranges)
    found = Found(factor=1.0, floor=0.0)
    # The corners of the range need most, as a rule: they come first, and the others are only checked.
    places = sorted(law.weights, key=lambda x: -abs(x[0] - one) / one - abs(x[1] - two) / two)
    for x in places:
        near = _placed(low, x, law.half_ranges), _placed(high, x, law.half_ranges)
        for above, below in ((near[1], middle[0]), (middle[1], near[0])):
            spare = outside * (1 + found.factor) * _MORE
            if excess(above, below, found.factor) + spare <= delta:
                continue
            start = found.factor
            for _ in range(8):
                here = factor_for(above, below, delta - outside * (2 + 2 * start), start)
                if not math.isfinite(here.factor) or here.factor <= 1 + 2 * start:
                    break
                start = here.factor
            found = found.or_worse(here)
            if math.isinf(found.factor):
                return math.inf, max(here.floor, delta)
    return found.epsilon, outside


def _placed(values: Floats, x: tuple[int, int], half: tuple[int, int]) -> Floats:
    """The values moved by x, on the points that all moves share."""
    wide = np.zeros((values.shape[0] + 2 * half[0], values.shape[1] + 2 * half[1]))
    wide[x[0] : x[0] + values.shape[0], x[1] : x[1] + values.shape[1]] = values
    return wide.ravel()


def _window(weights: Mapping[int, Fraction], count: int, log_tail: float) -> tuple[int, int]:
    """All but 2 e^log_tail of a sum lies between these, by Bernstein's inequality."""
    mean = sum((k * w for k, w in weights.items()), Fraction(0))
    variance = float(sum(((k - mean) ** 2 * w for k, w in weights.items()), Fraction(0))) * count * (1 + 1e-9)
    most = float(max(abs(k - mean) for k in weights)) * -log_tail / 3
    reach = (most + math.sqrt(most**2 + 2 * variance * -log_tail)) * (1 + 1e-9) + 1
    centre = float(mean) * count
    top = max(weights) * count
    return max(0, math.floor(centre - reach)), min(top, math.ceil(centre + reach))


def _sum_of(law: PairLaw, count: int, delta: float, most: int) -> tuple[Floats, Floats, float]:
    import flint

    log_tail = math.log(delta) - 11.0
    margins: list[dict[int, Fraction]] = [{}, {}]
    for point, w in law.weights.items():
        for margin, k in zip(margins, point, strict=True):
            margin[k] = margin.get(k, Fraction(0)) + w
    ends = [_window(margin, count, log_tail) for margin in margins]
    outside = 4 * math.exp(log_tail) * (1 + 1e-9)
    sizes = tuple(good_size(max(last - first + 1, 2)) for first, last in ends)
    if sizes[0] * sizes[1] > most:
        raise NotCertified(
            what="the law of a sum of pairs",
            reason=f"it spreads over more than {most} points; record the values on a coarser grid, or assume a prism",
        )
    table = np.zeros(sizes)
    for (i, j), w in law.weights.items():
        table[i % sizes[0], j % sizes[1]] += float(w)
    blur = UNIT * (32 + 16 * math.log2(sizes[0] * sizes[1]))
    bound = count * np.log(np.minimum(np.abs(np.fft.rfft2(table)) + blur, 1.0))
    alive = np.argwhere(bound > _DEAD)
    spectrum = np.zeros(bound.shape, dtype=np.complex128)
    error = 2 * math.exp(_DEAD) * sizes[0] * sizes[1]
    with precision(_BITS):
        weights = [
            (i, j, flint.arb(flint.fmpq(w.numerator, w.denominator))) for (i, j), w in law.weights.items()
        ]
        for k1, k2 in alive:
            turns = [
                flint.acb(flint.arb(flint.fmpq(-2 * int(k), n))).exp_pi_i()
                for k, n in zip((k1, k2), sizes, strict=True)
            ]
            powers = [
                _powers(turn, max(margin) if margin else 0)
                for turn, margin in zip(turns, margins, strict=True)
            ]
            hat = flint.acb(0)
            for i, j, w in weights:
                hat += powers[0][i] * powers[1][j] * w
            angle = flint.fmpq(2 * int(k1) * ends[0][0], sizes[0]) + flint.fmpq(
                2 * int(k2) * ends[1][0], sizes[1]
            )
            value = hat**count * flint.acb(flint.arb(angle)).exp_pi_i()
            real, imaginary = value.real, value.imag
            spectrum[k1, k2] = complex(float(real.mid()), float(imaginary.mid()))
            error += 2 * (float(real.rad()) + float(imaginary.rad()) + 4 * UNIT * abs(spectrum[k1, k2]))
    masses = np.fft.irfft2(spectrum, sizes)[: ends[0][1] - ends[0][0] + 1, : ends[1][1] - ends[1][0] + 1]
    points = sizes[0] * sizes[1]
    modulus = 2 * float(np.sum(np.abs(spectrum)))
    spread = (error + UNIT * (8 + 16 * math.log2(points)) * modulus) / points + 1e-300
    # What wraps around is in `masses` too: at most `outside` altogether, which the caller charges to both worlds.
    return np.maximum(masses - spread, 0.0), np.maximum(masses, 0.0) + spread, outside


def _powers(base: Any, most: int) -> list[Any]:
    import flint

    out: list[Any] = [flint.acb(1)]
    for _ in range(most):
        out.append(out[-1] * base)
    return out
