"""Windows of a grid, and cells whose round-off is too large."""

from __future__ import annotations

import math

import numpy as np

from tacit.exact.arrays import Floats
from tacit.pld.grid import Gridded

__all__ = ["roundoff", "window"]


def window(
    shifts: list[float],
    rises: Floats,
    step: float,
    epsilon: float,
    reach: float,
    support: tuple[int, int],
) -> tuple[tuple[int, int], float]:
    """Nodes outside which the tilted mass is below 1e-14 on each side: Chernoff, at the best shift."""
    goal = math.log(1e14)
    high = min((rise + goal) / shift for shift, rise in zip(shifts, rises, strict=True) if shift > 0)
    low = max((rise + goal) / shift for shift, rise in zip(shifts, rises, strict=True) if shift < 0)
    first = max(math.floor(min(low, reach) / step) - 2, support[0] - 2)
    last = min(math.ceil(max(high, epsilon + 8 * step) / step) + 2, support[1] + 2)
    return (first, max(last, first + 8)), 2.1e-14


def roundoff(grid: Gridded, cells: Floats, bottoms: Floats, counts: Floats) -> tuple[float, float]:
    """(ln K, tilted mass below round-off): per row, relative excess is traded against unresolved mass."""
    rows = len(counts)
    best = np.full(rows, np.inf)
    gain, unresolved = np.zeros(rows), np.zeros(rows)
    worst = np.max(grid.kappa, axis=1)
    for threshold in (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2):
        safe = grid.kappa <= threshold
        kappa = np.max(np.where(safe, grid.kappa, 0.0), axis=1)
        mass = np.sum(np.where(safe, 0.0, cells), axis=1)
        better = kappa + mass < best
        best = np.where(better, kappa + mass, best)
        gain, unresolved = np.where(better, kappa, gain), np.where(better, mass, unresolved)
        if bool(np.all(worst <= threshold)):
            break
    return float(counts @ gain), float(counts @ (unresolved * (1 + 1e-6) + bottoms))
