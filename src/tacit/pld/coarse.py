"""Where to look and what to roundoff: coarse laws, windows, and cells whose round-off is too large."""

from __future__ import annotations

import math

import numpy as np

from tacit.pld.curves import CurvePLD
from tacit.pld.distributions import AtomicPLD, PrivacyLossDistribution, TailPLD
from tacit.pld.grid import Gridded, chord_masses, gridded
from tacit.pld.pair import FloatArray

__all__ = ["coarse_pld", "roundoff", "window"]


def coarse_pld(law: PrivacyLossDistribution, right: float, left: float) -> tuple[FloatArray, FloatArray]:
    """Losses and P-masses of a coarse version of the law, fine near 0: only says where to look."""
    if isinstance(law, AtomicPLD) and law.losses.shape[1] <= 4096:
        return law.losses[0], np.maximum(law.p[0], 1e-300)
    low, high = law.extent(right, left)
    reach = max(abs(low), abs(high), 1e-300)
    scales = reach * np.concatenate([np.geomspace(1e-8, 1.0, 400), np.linspace(0.0, 1.0, 200)])
    edges = np.unique(np.concatenate([-scales, scales, [low, high]]))
    # An atom may sit on the lowest edge: begin just below it.
    edges = np.concatenate([[low - 1e-9 * reach], edges[(edges >= low) & (edges <= high)]])
    if isinstance(law, TailPLD):
        cells = law.cells(edges[None, :])
        p, q = np.maximum(cells.p[0], 1e-300), np.maximum(cells.q[0], 1e-300)
        # The merged cell's loss lies between its edges, wherever round-off puts it.
        return np.clip(np.log(p) - np.log(q), edges[:-1], edges[1:]), p / p.sum()
    if isinstance(law, CurvePLD):
        masses = np.maximum(chord_masses(edges, law.values(edges))[0], 1e-300)
        return edges, masses / masses.sum()
    step = (high - low + 1e-12) / 4000
    grid = gridded(law, step, low, high)
    masses = np.maximum(grid.masses[0], 1e-300)
    return np.arange(grid.start, grid.start + len(masses), dtype=np.float64) * step, masses / masses.sum()


def window(
    shifts: list[float],
    rises: FloatArray,
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


def roundoff(
    grid: Gridded, cells: FloatArray, bottoms: FloatArray, counts: FloatArray
) -> tuple[float, float]:
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
