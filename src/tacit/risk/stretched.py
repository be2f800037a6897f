"""Long ranges at a small epsilon: the solution of a shorter range, stretched, is a solution.

With n epsilon fixed and epsilon small the problem tends to one on a continuum: outputs 0 and n weigh a half
each there, the others form a density, and that counts are whole numbers costs a relative epsilon^2 or so. So a
range of c counts with n epsilon / c is solved, and carried over by what has a meaning on the continuum: the
mass of the prior in each cell, the heights, and at the end output the part of its weight that is the atom's.
As everywhere the result is certified afterwards, and thrown away where its gap is too wide.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.exact.arrays import Floats
from tacit.risk.interior import FLAT, Solution, absolute_minimax, unfold

__all__ = ["shorter_range", "stretched_minimax"]

# The gap left by stretching is about 0.1 epsilon^2 for the epsilon of the shorter range.
COARSE_EPSILON = 0.0017
SHORTEST, SHORTEST_FLAT = 1_000, 500
WORTH_IT = 0.8
SMOOTHING = 4


def shorter_range(n: int, epsilon: float) -> int | None:
    """The range that is solved instead of 0..n; None where that saves nothing."""
    least = SHORTEST_FLAT if n * epsilon < FLAT else SHORTEST
    c = max(least, math.ceil(n * epsilon / COARSE_EPSILON))
    return c if c <= WORTH_IT * n else None


def stretched_minimax(n: int, c: int, epsilon: float, tolerance: float) -> tuple[list[Floats], Floats]:
    """Two candidates for h (as it is, and smoothed) and a prior, from the range 0..c."""
    solution = absolute_minimax(c, epsilon * n / c, tolerance)
    h = _heights(n, c, epsilon, solution)
    return [_whole(n, v) for v in (h, _smooth(n, c, h))], _prior(n, c, solution)


def _whole(n: int, half: Floats) -> Floats:
    rising = np.minimum(np.maximum.accumulate(half), n / 2)
    return unfold(n, Solution(h=rising, prior=np.ones(n // 2 + 1), steps=0))[0]


def _heights(n: int, c: int, epsilon: float, solution: Solution) -> Floats:
    factor = n / c
    coarse = np.append(solution.h, c / 2 if c % 2 == 0 else c - solution.h[-1])
    edge = max(0.0, 2 * coarse[1] - coarse[2])
    coarse[0] = edge
    h = factor * np.interp(np.arange((n + 1) // 2) / factor, np.arange(coarse.size), coarse)
    # The end output weighs 1/(1+q): an atom of 1/2, and half a cell of the density, whose height is `edge`.
    there, here = 1 / (1 + math.exp(-epsilon * factor)), 1 / (1 + math.exp(-epsilon))
    atom = 2 * (there * solution.h[0] - (there - 0.5) * edge)
    h[0] = factor * (0.5 * atom + (here - 0.5) * edge) / here
    return np.asarray(h)


def _smooth(n: int, c: int, h: Floats) -> Floats:
    """A moving average over a few cells of the shorter range, which takes out its whole numbers."""
    width = int(SMOOTHING * n / c) | 1
    inner = h[1:]
    padded = np.concatenate([2 * inner[0] - inner[:width][::-1], inner, n - inner[-width:][::-1]])
    out = h.copy()
    out[1:] = np.convolve(padded, np.full(width, 1 / width), "same")[width:-width]
    return out


def _prior(n: int, c: int, solution: Solution) -> Floats:
    """The mass of each cell of the shorter range spread over its part of the longer one; atoms stay atoms."""
    coarse = unfold(c, solution)[1]
    atom = coarse[0]
    inner = np.concatenate([[0.0], coarse[1:-1], [0.0]])
    # The method leaves a trace of mass everywhere; where the solution has none, none is carried over.
    inner[inner < 1e-6 / c] = 0.0
    below = np.concatenate([[0.0], np.cumsum(inner)])
    cuts = (np.arange(n + 2) - 0.5) * (c / n)
    prior = np.diff(np.interp(cuts, np.arange(c + 2) - 0.5, below))
    prior[[0, -1]] += atom
    return np.asarray(prior / prior.sum())
