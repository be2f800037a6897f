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

import numpy as np
from numpy.typing import NDArray

from tacit.pld.curves import CurvePLD
from tacit.pld.distributions import UNIT, AtomicPLD, PrivacyLossDistribution, TailPLD
from tacit.pld.pair import FloatArray

__all__ = ["Gridded", "chord_masses", "gridded", "pld_curve"]

_LARGEST_LOSS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gridded:
    """Rows of P-masses at the losses (start + k) step, rounded up; what lies at infinity; error accounts."""

    start: int
    masses: FloatArray
    infinite_high: FloatArray
    infinite_low: FloatArray
    slack: float
    """True losses may lie this far above the stated ones."""
    kappa: FloatArray
    """For each cell (the k-th touches nodes k and k + 1), the relative excess of its mass."""
    cell_masses: FloatArray
    """P-mass of each cell: what is unresolved if the cell's kappa is too large."""
    bottom: FloatArray
    """P-mass lifted from below the grid to its first node."""


def gridded(law: PrivacyLossDistribution, step: float, low: float, high: float) -> Gridded:
    """Put a law on the multiples of `step` that cover [low, high]."""
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    if isinstance(law, AtomicPLD):
        return _atoms(law, step, first, last)
    if isinstance(law, TailPLD):
        return _tails(law, step, first, last)
    assert isinstance(law, CurvePLD)
    return _curve(law, step, first, last)


def _atoms(law: AtomicPLD, step: float, first: int, last: int) -> Gridded:
    rows, count = len(law.losses), last - first + 1
    above = law.losses > last * step
    below = law.losses < first * step
    p = np.where(above | below, 0.0, law.p * (1 + law.error))
    clipped = np.clip(law.losses, first * step, last * step)
    cell = np.clip(np.floor(clipped / step).astype(np.int64), first, last - 1)
    offset = np.clip(clipped - cell * step, 0.0, step)
    unit = UNIT * (8 + 4 * (np.abs(clipped) + step)) + 2 * law.slack
    fraction = np.clip((np.expm1(-offset) - unit) / math.expm1(-step), 0.0, 1.0)
    place: NDArray[np.int64] = (cell - first) + count * np.arange(rows, dtype=np.int64)[:, None]

    def spread(index: NDArray[np.int64], weights: FloatArray) -> FloatArray:
        flat = np.bincount(index.ravel(), weights=weights.ravel(), minlength=rows * count)
        return np.asarray(flat, dtype=np.float64).reshape(rows, count)

    masses = np.asarray(spread(place + 1, p * fraction) + spread(place, p * (1 - fraction)))
    bottom = np.sum(np.where(below, law.p, 0.0), axis=1) * (1 + 1e-9)
    masses[:, 0] += bottom
    cut = np.sum(np.where(above, law.p, 0.0), axis=1) * (1 + 1e-9)
    return Gridded(
        start=first,
        masses=masses * (1 + 8 * UNIT),
        infinite_high=np.minimum(1.0, law.infinite[:, 1] + cut),
        infinite_low=law.infinite[:, 0],
        slack=law.slack + 4 * UNIT * (abs(first) + abs(last)) * step,
        kappa=np.full((rows, count - 1), 2 * law.error + 4 * float(np.max(unit)) + 16 * UNIT),
        cell_masses=spread(place, p)[:, :-1],
        bottom=bottom,
    )


def _tails(law: TailPLD, step: float, first: int, last: int) -> Gridded:
    edges = np.arange(first, last + 1, dtype=np.float64)[None, :] * step
    ends = law.tails(edges[:, [0, -1]])
    whole_slack = law.tails(edges).slack if law.closed_cells is None else ends.slack
    cells = law.cells(edges)
    p, q, p_error, q_error = cells.p, cells.q, cells.p_error, cells.q_error
    left = edges[:, :-1]
    ratio = np.exp(np.clip(left, -700.0, _LARGEST_LOSS))
    slack = whole_slack + 4 * UNIT * (abs(first) + abs(last)) * step
    noise = p_error + ratio * q_error + 8 * UNIT * (1 + np.abs(left)) * (p + ratio * q) + 2 * slack * p
    total = p + p_error
    far = left > _LARGEST_LOSS - 1
    raised = np.clip((p - ratio * q + noise) / -math.expm1(-step), 0.0, total)
    raised = np.where(far, total, raised)
    masses = np.zeros((len(p), p.shape[1] + 1))
    masses[:, 1:] += raised
    masses[:, :-1] += total - raised
    bottom = ends.values[1][:, 0] + ends.errors[1][:, 0]
    masses[:, 0] += bottom
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kappa = np.where(p > p_error, (4 * noise + 4 * p_error) / np.maximum(p - p_error, 1e-320), np.inf)
        # Beyond the range of e^l all mass is lifted to the upper end: at most a step too high.
        kappa = np.where(far & (p > p_error), math.expm1(min(step, 600.0)) + 8 * p_error / p, kappa)
    return Gridded(
        start=first,
        masses=masses * (1 + 8 * UNIT),
        infinite_high=np.minimum(1.0, ends.values[0][:, 1] + ends.errors[0][:, 1]),
        infinite_low=np.zeros(len(p)),
        slack=slack,
        kappa=kappa + 4 * slack + 16 * UNIT,
        cell_masses=total,
        bottom=bottom,
    )


def _curve(law: CurvePLD, step: float, first: int, last: int) -> Gridded:
    losses = np.arange(first, last + 1, dtype=np.float64) * step
    masses, infinite = chord_masses(losses, law.values(losses))
    return Gridded(
        start=first,
        masses=masses[None, :],
        infinite_high=np.array([infinite]),
        infinite_low=np.zeros(1),
        slack=4 * UNIT * (abs(first) + abs(last)) * step,
        kappa=np.full((1, len(losses) - 1), np.inf),
        cell_masses=np.ones((1, len(losses) - 1)),
        bottom=np.zeros(1),
    )


def chord_masses(losses: FloatArray, values: FloatArray) -> tuple[FloatArray, float]:
    """P-masses, rounded up, of the chords of the lower convex hull of upper values at nodes (and 1 at t = 0)."""
    t = np.exp(np.clip(losses, -700.0, _LARGEST_LOSS + 100))
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


def _hull(x: FloatArray, y: FloatArray) -> NDArray[np.int64]:
    """Indices of points with rising x, first and last included, whose chords are convex.

    Chords between any upper values of a convex curve lie above it: points above the chord of their neighbours
    are left out, every other one at a time, until none is.
    """
    keep = np.flatnonzero(np.concatenate([[True], np.diff(np.maximum.accumulate(x)) > 0]))
    if len(keep) > 256:
        # Long bulges go at once: what lies above the chords of a coarser choice is of no use.
        coarse = np.unique(np.concatenate([keep[::16], keep[-1:]]))
        coarse = coarse[_hull(x[coarse], y[coarse])]
        useful = y[keep] < np.interp(x[keep], x[coarse], y[coarse])
        keep = np.union1d(keep[useful], coarse)
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


def pld_curve(law: PrivacyLossDistribution, epsilons: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Float enclosures of H_epsilon from the law of one pair: P(L > e) - e^e Q(L > e), with its errors."""
    if isinstance(law, CurvePLD):
        return np.zeros_like(epsilons), law.values(epsilons)
    t = np.exp(np.minimum(epsilons, 700.0))
    if isinstance(law, TailPLD):
        got = law.tails(epsilons[None, :])
        p, q, p_error, q_error = got.values[0][0], got.values[2][0], got.errors[0][0], got.errors[2][0]
        value = p - t * q
        error = p_error + t * q_error + 8 * UNIT * (p + t * q) + got.slack * p
        high = np.where(epsilons > _LARGEST_LOSS, p + p_error, value + error)
        low = np.where(epsilons > _LARGEST_LOSS, 0.0, value - error)
        high = np.where(epsilons > law.bounds[1] + 1e-12 * (1 + abs(law.bounds[1])), 0.0, high)
    else:
        assert isinstance(law, AtomicPLD)
        above = np.concatenate([np.cumsum(law.p[0, ::-1])[::-1], [0.0]])
        above_q = np.concatenate([np.cumsum(law.q[0, ::-1])[::-1], [0.0]])
        index = np.searchsorted(law.losses[0], epsilons, side="right")
        size = law.error + UNIT * (8 + 2 * law.p.shape[1]) + law.slack
        error = (above[index] + t * above_q[index]) * size
        # Where every atom above weighs tiny amounts the two sums cancel: the sum of P alone bounds it too.
        value = np.clip(above[index] - t * above_q[index], 0.0, None)
        high = np.minimum(value + error, above[index] * (1 + size)) + law.infinite[0, 1]
        low = value - error + law.infinite[0, 0]
        low = np.where(epsilons > _LARGEST_LOSS, law.infinite[0, 0], low)
    floor = np.maximum(-np.expm1(np.minimum(epsilons, 0.0)) * (1 - 4 * UNIT), 0.0)
    low = np.clip(np.maximum(low, floor), 0.0, 1.0)
    return low, np.maximum(np.clip(high, 0.0, 1.0), low)
