"""Regression on one regressor with known laws: the exact law of a recorded pair of products, as rationals.

Columns are recorded on a fine grid; the products (g, h) or (g^2, g h) of a row are rounded to a coarse one, on which
the law of the sums is computed (`plane`). The coarse grid is the finest that keeps the sums on few enough points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.coupled.noiseless.designs import Density, Design
from tacit.coupled.noiseless.plane import MOST_POINTS, PairLaw, plane_epsilon
from tacit.coupled.noiseless.row_laws import RowLaw, laplace, normal, uniform
from tacit.exact.rounding import up

__all__ = ["known_means", "known_part", "pair_law", "places", "recorded"]

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


@lru_cache(maxsize=16)
def places(design: Design, part: int, slope: float, coarse: tuple[int, int]) -> NDArray[np.int64]:
    """[i, j] -> the recorded pair of products of the i-th value of the regressor and the j-th value of the error.

    In exact arithmetic; what is published is added up from this table, so that its law is the one that is claimed.
    """
    g, e = recorded(design.regressors[0]), recorded(design.error)
    b = Fraction(repr(slope))
    lows, widths = _ranges(part, g.high, e.high + abs(b) * g.high)
    out = np.zeros((len(g.weights), len(e.weights), 2), dtype=np.int64)
    for i in range(len(g.weights)):
        x = g.low + i * g.step
        for j in range(len(e.weights)):
            y = b * x + e.low + j * e.step
            pair = (x, y) if part == 0 else (x * x, x * y)
            for axis in (0, 1):
                out[i, j, axis] = _rounded((pair[axis] - lows[axis]) / widths[axis] * coarse[axis])
    out.flags.writeable = False
    return out


def pair_law(design: Design, part: int, slope: float, coarse: tuple[int, int]) -> tuple[PairLaw, Fraction]:
    """(The law of the recorded pair on so many steps a coordinate; how far it may be from the named one, a row)."""
    g, e = recorded(design.regressors[0]), recorded(design.error)
    where = places(design, part, slope, coarse)
    out: dict[tuple[int, int], Fraction] = {}
    for i, p in enumerate(g.weights):
        row: dict[tuple[int, int], Fraction] = {}
        for j, q in enumerate(e.weights):
            place = (int(where[i, j, 0]), int(where[i, j, 1]))
            row[place] = row.get(place, Fraction(0)) + q
        for place, q in row.items():
            out[place] = out.get(place, Fraction(0)) + p * q
    return PairLaw(weights=out, half_ranges=(coarse[0] // 2, coarse[1] // 2)), g.rounding + e.rounding


def known_means(
    design: Design, part: int, slope: float, coarse: tuple[int, int], columns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(Means of the recorded products of centred columns (g, h), the steps they are recorded in).

    The regressor and the error around the known line are put on the grids of `recorded` first.
    """
    g, e = recorded(design.regressors[0]), recorded(design.error)
    i = _nearest(columns[:, 0], g)
    j = _nearest(columns[:, 1] - slope * (float(g.low) + i * float(g.step)), e)
    total = places(design, part, slope, coarse)[i, j].sum(axis=0, dtype=np.int64)
    lows, widths = _ranges(part, g.high, e.high + abs(Fraction(repr(slope))) * g.high)
    steps = np.array([float(w) / c for w, c in zip(widths, coarse, strict=True)])
    return np.array([float(x) for x in lows]) + steps * (total / len(columns)), steps


def _nearest(values: NDArray[np.float64], law: RowLaw) -> NDArray[np.int64]:
    found = np.rint((values - float(law.low)) / float(law.step))
    return np.clip(found, 0, len(law.weights) - 1).astype(np.int64)


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
