"""Regression on one regressor with known laws: the exact law of a recorded pair of products, as rationals.

Columns are recorded on a fine grid; the products (g, h) or (g^2, g h) of a row are rounded to a coarse one, on which
the law of the sums is computed (`plane`). The coarse grid is the finest that keeps the sums on few enough points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tacit.coupled.noiseless.designs import Density, Design
from tacit.coupled.noiseless.laws import RowLaw, laplace, normal, uniform
from tacit.coupled.noiseless.plane import MOST_POINTS, PairLaw, plane_epsilon
from tacit.exact.rounding import up

__all__ = ["known_part", "pair_law"]

_FINE = 60
_SPAN = 16.0


def recorded(law: Density) -> RowLaw:
    """The centred column on a grid of a 60th of its half range."""
    half = Fraction(repr(law.half))
    step = half / _FINE
    if law.kind == "uniform":
        return uniform(-half, half, grid=step)
    make = normal if law.kind == "normal" else laplace
    return make(0, Fraction(repr(law.scale)), clamp=(-half, half), grid=step)


def pair_law(design: Design, part: int, slope: float, coarse: tuple[int, int]) -> tuple[PairLaw, Fraction]:
    """(The law of the recorded pair on so many steps a coordinate; how far it may be from the named one, a row)."""
    g, e = recorded(design.regressors[0]), recorded(design.error)
    b = Fraction(repr(slope))
    limit = e.high + abs(b) * g.high
    out: dict[tuple[int, int], Fraction] = {}
    lows, widths = _ranges(part, g.high, limit)
    for i, p in enumerate(g.weights):
        x = g.low + i * g.step
        row: dict[tuple[int, int], Fraction] = {}
        for j, q in enumerate(e.weights):
            y = b * x + e.low + j * e.step
            pair = (x, y) if part == 0 else (x * x, x * y)
            place = (
                _rounded((pair[0] - lows[0]) / widths[0] * coarse[0]),
                _rounded((pair[1] - lows[1]) / widths[1] * coarse[1]),
            )
            row[place] = row.get(place, Fraction(0)) + q
        for place, q in row.items():
            out[place] = out.get(place, Fraction(0)) + p * q
    return PairLaw(weights=out, half_ranges=(coarse[0] // 2, coarse[1] // 2)), g.rounding + e.rounding


def _ranges(
    part: int, own: Fraction, limit: Fraction
) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    if part == 0:
        return (-own, -limit), (2 * own, 2 * limit)
    return (Fraction(0), -own * limit), (own * own, 2 * own * limit)


def _rounded(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def known_part(
    design: Design,
    part: int,
    slope: float,
    hidden: int,
    delta: float,
    *,
    steps: tuple[int, int] | None = None,
    most_points: int = MOST_POINTS,
) -> tuple[float, float, dict[str, Any]]:
    """(epsilon of a part, the delta that no epsilon goes below, the grid in details)."""
    first, second = steps or _steps(design, part, slope, hidden, most_points)
    law, rounding = pair_law(design, part, slope, (first, second))
    # Both worlds are off by this much at most: 60 is far above 1 + e^epsilon for every epsilon up to 4.
    loss = up(rounding * hidden)
    epsilon, floor = plane_epsilon(law, hidden=hidden, delta=delta - 60 * loss, most_points=2 * most_points)
    return (epsilon if epsilon <= 4 else math.inf), floor, {"steps": [first, second]}


def _steps(design: Design, part: int, slope: float, hidden: int, most_points: int) -> tuple[int, int]:
    """The finest even numbers of steps with which the sums stay on so many points."""
    rough, _ = pair_law(design, part, slope, (20, 20))
    spreads = [_spread(rough.weights, axis) / 20 for axis in (0, 1)]
    # Both windows are about _SPAN standard deviations of the sum; their product is kept below the limit.
    room = math.sqrt(0.7 * most_points) / (_SPAN * math.sqrt(hidden))
    first, second = (max(2, 2 * math.floor(min(room / s, design.points) / 2)) for s in spreads)
    return first, second


def _spread(weights: Mapping[tuple[int, int], Fraction], axis: int) -> float:
    mean = sum((k[axis] * w for k, w in weights.items()), Fraction(0))
    return math.sqrt(float(sum(((k[axis] - mean) ** 2 * w for k, w in weights.items()), Fraction(0))))
