"""Pairs on a grid of losses: connect-the-dots, with all that is needed to bound it from both sides.

Each cell (l_k, l_k+1] of the loss keeps its P- and its Q-mass by splitting them between its two ends
(Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): in the variable t = e^l that joins the points of the
convex curve h by chords, so the gridded pair dominates. Float errors only ever move mass upwards.
Seen from below, the gridded ratio is Z~ = Z M with M in a set of two points whose logarithms lie a step
apart and E[M|Z] <= 1 + kappa: what `below` in engine.py needs. Cells in which round-off is too large for
that are unresolved: their mass counts above and not below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Floats

if TYPE_CHECKING:
    from tacit.pld.distributions.base import PrivacyLossDistribution

__all__ = ["LARGEST_LOSS", "Gridded", "chord_masses", "gridded", "pld_curve"]

LARGEST_LOSS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gridded:
    """Rows of P-masses at the losses (start + k) step, rounded up; what lies at infinity; error accounts."""

    start: int
    masses: Floats
    infinite_high: Floats
    infinite_low: Floats
    slack: float
    """True losses may lie this far above the stated ones."""
    kappa: Floats
    """For each cell (the k-th touches nodes k and k + 1), the relative excess of its mass."""
    cell_masses: Floats
    """P-mass of each cell: what is unresolved if the cell's kappa is too large."""
    bottom: Floats
    """P-mass lifted from below the grid to its first node."""
    hidden: Floats | float = 0.0
    """P-mass of each cell that is unresolved whatever its kappa: of single members of a mixture."""


def gridded(law: PrivacyLossDistribution, step: float, low: float, high: float) -> Gridded:
    """Put a law on the multiples of `step` that cover [low, high]."""
    first, last = math.floor(low / step), math.ceil(high / step)
    return law.on_grid(step, first, max(last, first + 1))


def chord_masses(losses: Floats, values: Floats) -> tuple[Floats, float]:
    """P-masses, rounded up, of the chords of the lower convex hull of upper values at nodes (and 1 at t = 0)."""
    t = np.exp(np.clip(losses, -700.0, LARGEST_LOSS + 100))
    points_t = np.concatenate([[0.0], t])
    heights = np.concatenate([[1.0], np.minimum(values, 1.0)])
    keep = _hull(points_t, heights)
    tk, vk = points_t[keep], heights[keep]
    gaps = np.diff(tk)
    slopes = np.minimum(np.concatenate([np.diff(vk) / gaps, [0.0]]), 0.0)
    inner = slopes[1:] - slopes[:-1]
    scale = vk[1:] * 8 * UNIT / gaps + 8 * UNIT * np.abs(slopes[:-1])
    after = np.concatenate([scale[1:], [0.0]])
    masses = np.zeros(len(losses))
    masses[keep[1:] - 1] = tk[1:] * (np.maximum(inner, 0.0) + scale + after + 4 * UNIT * np.abs(slopes[1:]))
    return masses, float(vk[-1])


def _hull(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Indices of points with rising x, first and last included, whose chords are convex.

    Chords between any upper values of a convex curve lie above it: points above the chord of their neighbours
    are left out, every other one at a time, until none is.
    """
    keep = np.flatnonzero(np.concatenate([[True], np.diff(np.maximum.accumulate(x)) > 0]))
    if len(keep) > 256:
        # Long bulges go at once: what lies above the chords of a coarser choice is of no use.
        coarse = keep[::16] if (len(keep) - 1) % 16 == 0 else np.append(keep[::16], keep[-1])
        coarse = coarse[_hull(x[coarse], y[coarse])]
        # A mask, since numpy's unions of long arrays are a hundred times as slow.
        chosen = np.zeros(len(x), dtype=bool)
        chosen[keep[y[keep] < np.interp(x[keep], x[coarse], y[coarse])]] = True
        chosen[coarse] = True
        keep = np.flatnonzero(chosen)
    while len(keep) > 2:
        a, b, c = keep[:-2], keep[1:-1], keep[2:]
        over = (y[b] - y[a]) * (x[c] - x[a]) >= (y[c] - y[a]) * (x[b] - x[a])
        if not np.any(over):
            break
        drop = np.flatnonzero(over)
        # Of neighbours that are both above, only those at even distance from the first of them go.
        starts = np.concatenate([[True], np.diff(drop) > 1])
        first = np.maximum.accumulate(np.where(starts, np.arange(len(drop)), 0))
        keep = np.delete(keep, drop[(np.arange(len(drop)) - first) % 2 == 0] + 1)
    return np.asarray(keep, dtype=np.int64)


def pld_curve(law: PrivacyLossDistribution, epsilons: Floats) -> tuple[Floats, Floats]:
    """Float enclosures of H_epsilon from the law of one pair: P(L > e) - e^e Q(L > e), with its errors."""
    low, high = law.ends(epsilons, np.exp(np.minimum(epsilons, 700.0)))
    floor = np.maximum(-np.expm1(np.minimum(epsilons, 0.0)) * (1 - 4 * UNIT), 0.0)
    low = np.clip(np.maximum(low, floor), 0.0, 1.0) if law.known_from_below else np.zeros_like(epsilons)
    return low, np.maximum(np.clip(high, 0.0, 1.0), low)
