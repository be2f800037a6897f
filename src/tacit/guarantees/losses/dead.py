"""Frequencies at which the transform of very many parts is proved to be nothing.

Of each part ln|phi| is bounded on whole intervals of frequencies, from its moments, from a uniform share of its
density, or, where its losses are atoms, from |phi|^2 and its slope at the middle of the interval. Every factor
is at most 1 in modulus, so that a few hundred of the parts (witnesses) speak for all:
`docs/theory/dead-frequencies.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees.losses.laws import UNIT
from tacit.guarantees.losses.nodes import Nodes
from tacit.guarantees.losses.pair import FloatArray

__all__ = ["GONE", "MOST_FREQUENCIES", "Witness", "alive", "chunk_bound", "integer_bound"]

GONE = 40.0
"""Products below e^-40 are left out, and bounded."""
MOST_FREQUENCIES = 4096
_FURTHEST = 1 << 20
_GROWTH = 1.15
_PIECES = 4
_SHORT = 8
"""So few frequencies are computed sooner than shown dead."""
_WORK = 8e6
"""Turns of single atoms that may be spent on showing frequencies dead."""


def chunk_bound(
    nodes: Nodes,
    tilt: float,
    scales: FloatArray,
    moments: FloatArray,
    rest: FloatArray,
    disc: float,
    w: FloatArray,
) -> FloatArray:
    """Sum over rows of n ln|phi| on each [w_k, w_k+1], from above.

    ln|phi| <= -w^2 m2/2 + w^4 (m4/24 + m2^2/8), or the law has a uniform share p on an interval of length d and
    |phi| <= 1 - p (1 - |sin(wd/2)/(wd/2)|). `rest` is the error of the transform within `disc`, by which the
    moments are off (Cauchy's bound on derivatives).
    """
    m2 = np.maximum(moments[:, 0] * (1 - 1e-6) - 4 * rest / disc**2, 0.0)
    high = moments[:, 0] * (1 + 1e-6) + 4 * rest / disc**2
    m4 = moments[:, 1] * (1 + 1e-6) + 48 * rest / disc**4
    best = np.minimum(0.0, np.outer(m2, -(w[:-1] ** 2) / 2) + np.outer(m4 / 24 + high**2 / 8, w[1:] ** 4))
    if nodes.edges is not None and nodes.floors is not None:
        ends = tilt * nodes.edges
        floors = nodes.floors * np.exp(np.minimum(ends[:, :-1], ends[:, 1:]) - scales[:, None])
        floors *= 1 - 1e-6
        for width in (1, 2, 3):
            count = floors.shape[1] // width
            part = floors[:, : count * width].reshape(len(floors), count, width).min(axis=2)
            length = np.abs(np.diff(nodes.edges[:, : count * width + 1 : width], axis=1))
            share = part * length
            gain = np.zeros_like(best)
            for k in range(count):
                turns = np.outer(length[:, k] / 2, w[:-1])
                gain += share[:, k : k + 1] * np.minimum(turns**2 / 9, 0.75)
            best = np.minimum(best, -gain)
    if nodes.integers is not None:
        best = np.minimum(best, integer_bound(*nodes.integers, w[:-1], w[1:]))
    return np.asarray(nodes.counts @ best)


def integer_bound(noise_std: FloatArray, sensitivity: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """ln|phi| of discrete Gaussian losses, tilted or not, on each [low, high], from above (noise_std >= 1).

    By Poisson's summation |phi| <= sum_k e^(-std^2 (t + 2 pi k)^2/2)/(1 - 2 sum_(k>=1) e^(-2 pi^2 std^2 k^2)) with
    t = w sensitivity/std^2, wherever the noise is centred. At distance d <= pi of t from the multiples of 2 pi that
    is at most e^(-std^2 d^2/2) times e^0.75, and times 1 + 4 e^(-pi^2 std^2) while d <= pi/2.
    """
    variance = noise_std[:, None] ** 2
    low, high = low[None, :] * (sensitivity / variance), high[None, :] * (sensitivity / variance)
    below = np.floor(low / (2 * math.pi)) * (2 * math.pi)
    # Where a multiple lies inside, the distance to the next one is negative.
    distance = np.minimum(low - below, below + 2 * math.pi - high) - 1e-9 * (1 + high)
    excess = np.where(high <= math.pi / 2, 4 * np.exp(-(math.pi**2) * variance), 0.75)
    bound = -variance * np.maximum(distance, 0.0) ** 2 / 2 * (1 - 1e-9) + excess
    return np.asarray(np.minimum(bound, 0.0))


class Witness:
    """Rows whose nodes are their true atoms: ln|phi| on intervals of any length, at any frequency."""

    def __init__(self, nodes: Nodes, tilt: float) -> None:
        log_a, weights = nodes.tilted(tilt)
        self.rest = nodes.relative + 2 * nodes.error * np.exp(np.minimum(np.maximum(0.0, -log_a), 600.0))
        self.losses = nodes.losses - np.sum(weights * nodes.losses, axis=1, keepdims=True)
        self.variances = np.sum(weights * self.losses**2, axis=1) * (1 + 1e-6)
        self.counts = np.where(self.rest < 1e-7, nodes.counts, 0.0)
        self.integers = nodes.integers
        self.both = np.stack([weights, weights * self.losses], axis=2).astype(np.complex128)
        self.work = 0.1 * len(weights) if nodes.integers is not None else float(weights.size)

    def log_moduli(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Upper bounds on ln|phi| of each row (rows, intervals), at all frequencies from low to high.

        T = |phi|^2 has |T''| <= 2 Var, hence T(w + h) <= T + |T'| |h| + Var h^2 around the middle.
        """
        if self.integers is not None:
            return integer_bound(*self.integers, low, high)
        middle, half = (low + high) / 2, (high - low) / 2 * (1 + 1e-12) + 4 * UNIT * high
        turned = np.exp(1j * (self.losses[:, None, :] * middle[None, :, None]))
        phi = np.matmul(turned, self.both)
        square = np.abs(phi[:, :, 0]) ** 2
        slope = 2 * np.abs(np.imag(np.conj(phi[:, :, 0]) * phi[:, :, 1]))
        reach = UNIT * np.max(np.abs(self.losses), axis=1)[:, None] * middle[None, :]
        rounding = 4 * self.rest[:, None] + UNIT * (64 + self.losses.shape[1]) + 8 * reach
        top = square + slope * half * (1 + 1e-9) + self.variances[:, None] * half**2 + 8 * rounding
        return np.asarray(np.log(np.minimum(np.sqrt(top) + rounding, 1.0)))

    def bound(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Sum over rows of n ln|phi| on each [low, high], from above."""
        size = max(1, int(4e5 / self.losses.size))
        parts = [self.log_moduli(low[i : i + size], high[i : i + size]) for i in range(0, len(low), size)]
        return np.asarray(self.counts @ np.concatenate(parts, axis=1)) if parts else np.zeros(0)


def alive(
    *,
    start: float,
    last: float,
    gap: float,
    variance: float,
    coarse: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    witnesses: Sequence[Witness],
) -> tuple[NDArray[np.bool_] | None, float]:
    """(Which multiples of the gap are alive, a bound on the sum of |phi| over the dead ones up to `last`, of both
    signs); None where too many are alive.

    `coarse` bounds ln|phi| of all parts, and of those without witnesses, on the intervals between given
    frequencies; on pieces of these the witnesses stand for the rest. A normal factor comes on top.
    """
    edges = [max(1, math.ceil(start / gap))]
    end = max(math.ceil(last / gap), edges[0]) + 1
    while edges[-1] < end:
        edges.append(min(end, max(edges[-1] + 1, int(edges[-1] * _GROWTH))))
    ends = np.array(edges)
    whole, others = coarse(ends * gap)
    # Pieces [first, stop) of indices, each inside an interval `parent`.
    first, stop, parent = ends[:-1], ends[1:], np.arange(len(ends) - 1)
    sums, dropped, work = whole, 0.0, _WORK
    each = sum(witness.work for witness in witnesses)
    found = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    while True:
        bounds = sums - variance * (first * gap) ** 2 / 2 * (1 - 1e-9)
        dead = bounds <= -GONE
        dropped += 2 * float(np.sum((stop - first)[dead] * np.exp(bounds[dead])))
        short = ~dead & (stop - first <= _SHORT)
        found = np.append(found[0], first[short]), np.append(found[1], stop[short])
        first, stop, parent = (x[~dead & ~short] for x in (first, stop, parent))
        work -= len(first) * _PIECES * each
        if not witnesses or not len(first) or work < 0:
            break
        cuts = first[:, None] + (stop - first)[:, None] * np.arange(_PIECES + 1) // _PIECES
        first, stop, parent = cuts[:, :-1].ravel(), cuts[:, 1:].ravel(), np.repeat(parent, _PIECES)
        sums = others[parent]
        for witness in witnesses:
            sums = sums + witness.bound(first * gap, (stop - 1) * gap)
        sums = np.minimum(sums, whole[parent])
    starts, stops = np.append(found[0], first), np.append(found[1], stop)
    count = edges[0] + int(np.sum(stops - starts))
    length = max(edges[0], int(np.max(stops, initial=0)))
    if count > MOST_FREQUENCIES or length > _FURTHEST:
        return None, 0.0
    mask = np.zeros(length, dtype=bool)
    mask[: edges[0]] = True
    for a, b in zip(starts, stops, strict=True):
        mask[a:b] = True
    return mask, dropped * (1 + 1e-9)
