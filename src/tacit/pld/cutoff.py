"""Frequencies at which the transform of very many parts is proved to be nothing.

Of each part ln|phi| is bounded on whole intervals of frequencies, from its moments, from a uniform share of its
density, or, where its losses are atoms, from |phi|^2 and its slope at the middle of the interval. Every factor
is at most 1 in modulus, so that a few hundred of the parts (witnesses) speak for all:
`docs/theory/negligible-frequencies.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Floats
from tacit.pld.quadrature import Quadrature

__all__ = [
    "GONE",
    "MOST_FREQUENCIES",
    "SMOOTHED",
    "Witness",
    "alive",
    "integer_bound",
    "moment_falls",
    "moments_of",
    "part_bound",
]

GONE = 30.0
"""Products below e^-30 are left out, and bounded."""
SMOOTHED = 44.0
"""The smoothing alone leaves e^-44 at the last frequency."""
MOST_FREQUENCIES = 4096
_FURTHEST, _MOST_MULTIPLES = 1 << 20, 1 << 40
_GROWTH = 1.15
_PIECES = 4
_SHORT = 8
"""So few frequencies are computed sooner than shown negligible."""
_WORK = 8e6
"""Turns of single atoms that may be spent on showing frequencies negligible."""


def moments_of(weights: Floats, centred: Floats, soft: Floats | None) -> Floats:
    """Of the whole law and of softened parts of it, each row: mass, second and fourth moment about the parts'
    own means, and about 0."""
    factors = np.ones((weights.shape[1], 1)) if soft is None else np.insert(soft, 0, 1.0, axis=1)
    raised, sums = weights, [weights @ factors]
    for _ in range(4):
        raised = raised * centred
        sums.append(raised @ factors)
    m1, m2, m3, m4 = (total / np.maximum(sums[0], 1e-300) for total in sums[1:])
    second = m2 - m1 * m1
    fourth = m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1**4
    return np.stack([sums[0], second, fourth, m2, m4]).transpose(2, 1, 0)


def part_bound(
    nodes: Quadrature,
    tilt: float,
    scales: Floats,
    moments: Floats,
    off: Floats,
    disc: float,
    w: Floats,
    closely: bool = True,
) -> Floats:
    """ln|phi| of each row on each [w_k, w_k+1], from above; `closely` also by the variation of densities.

    -E (moment_falls) for the whole law; or, with a softened part of mass p and uniform shares s_i of the density
    on cells of length d_i, of which the softened part leaves l_i, ln(1 - p (1 - e^-E) - sum_i l_i s_i (1 -
    |sin(w d_i/2)/(w d_i/2)|)); or the shares alone, with l_i = 1.
    """
    gains = _gains(nodes, tilt, scales, off, w)
    best = np.zeros((len(nodes.counts), len(w) - 1)) if gains is None else -gains[:, :, 0]
    for k, kind in enumerate(moments):
        rest = off * (nodes.softer if k else 1.0)
        falls = moment_falls(kind, rest, disc, w)
        if k == 0:
            best = np.minimum(best, -falls)
        else:
            kept = np.clip(kind[:, 0] - rest - 1e-9, 0.0, 1.0)[:, None]
            falls = -kept * np.expm1(-falls) * (1 - 1e-9)
            if gains is not None and nodes.left is not None:
                falls = falls + gains[:, :, k]
            best = np.minimum(best, np.log1p(-np.minimum(falls, 1 - 1e-16)))
    if nodes.integers is not None:
        best = np.minimum(best, integer_bound(*nodes.integers, w[:-1], w[1:]))
    if closely and nodes.variation is not None:
        best = np.minimum(best, variation_bound(*nodes.variation(tilt), scales, off, w))
    return best


def variation_bound(log_variation: Floats, atoms: Floats, scales: Floats, off: Floats, w: Floats) -> Floats:
    """ln|phi| <= ln((atoms + V/w)/A) of each row on each [w_k, w_k+1]: densities of total variation V."""
    with np.errstate(divide="ignore"):
        smooth = np.exp(np.minimum((log_variation - scales)[:, None] - np.log(w[:-1]), 1.0))
        still = np.exp(np.minimum(np.log(atoms) - scales, 1.0))
    # A is known to `off` only.
    total = (still[:, None] + smooth) * (1 + 1e-6 + 4 * np.minimum(off, 1.0))[:, None]
    return np.where((off < 1e-3)[:, None], np.log(np.clip(total, 1e-300, 1.0)), 0.0)


def moment_falls(moments: Floats, off: Floats, disc: float, w: Floats) -> Floats:
    """E >= 0 with |psi| <= e^-E on each [w_k, w_k+1], psi the transform of a part that is normed to mass 1:
    E = w^2 m2/2 - w^4 (m4/24 + m2^2/8).

    The transform is right to `off` within `disc`, hence by Cauchy its k-th derivative to k! off/disc^k. With
    every raw moment at most r^k, m4 = r^4, and 1/disc <= R, r <= R, that moves the second central moment by at
    most 200 R^2 off/p and the fourth by 2000 R^4 off/p.
    """
    mass, second, fourth, m2, m4 = (column[:, None] for column in moments.T)
    share = np.minimum(off[:, None] / np.maximum(mass, 1e-300), 1.0)
    off2 = 1e-9 * m2 + 200 * share * np.maximum(m2, disc**-2)
    off4 = 1e-9 * m4 + 2000 * share * np.maximum(m4, disc**-4)
    low, high = np.maximum(second * (1 - 1e-6) - off2, 0.0), second * (1 + 1e-6) + off2
    top = fourth * (1 + 1e-6) + off4
    falls = np.maximum(low * w[:-1] ** 2 / 2 - (top / 24 + high**2 / 8) * w[1:] ** 4, 0.0)
    return np.asarray(np.where(share < 1e-6, falls, 0.0))


def _gains(nodes: Quadrature, tilt: float, scales: Floats, off: Floats, w: Floats) -> Floats | None:
    """The part of 1 - |phi| that uniform shares of cells contribute (rows, intervals, kinds): all of it, and what
    each softened part leaves of it."""
    if nodes.edges is None or nodes.floors is None:
        return None
    ends = tilt * nodes.edges
    with np.errstate(divide="ignore"):
        # In logarithms: a tiny floor times an overflow would be an infinite one.
        logs = np.log(nodes.floors) + np.minimum(ends[:, :-1], ends[:, 1:])
    length = np.abs(np.diff(nodes.edges, axis=1))
    # A is known to `off` only.
    share = np.exp(logs - scales[:, None]) * length * np.maximum(1 - 1e-6 - 2 * off, 0.0)[:, None]
    heavy = np.max(share, axis=0) > 1e-4
    left = np.ones((share.shape[1], 1))
    if nodes.left is not None:
        left = np.concatenate([left, nodes.left], axis=1)
    turns = (length[:, heavy] / 6)[:, None, :] * w[:-1, None]
    gains = share[:, None, heavy] * np.minimum(turns * turns, 0.75)
    return np.asarray(gains @ left[heavy])


def integer_bound(noise_std: Floats, sensitivity: float, low: Floats, high: Floats) -> Floats:
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

    def __init__(self, nodes: Quadrature, tilt: float) -> None:
        log_a, weights, blur = nodes.tilted(tilt)
        self.rest = blur[0] + 2 * nodes.error * np.exp(np.minimum(np.maximum(0.0, -log_a), 600.0))
        # The phases of far atoms count in the slope of T: the root of their mean square, not the mean.
        self.turning = 8 * UNIT * np.sqrt(np.sum(weights * nodes.sizes**2, axis=1))
        self.losses = nodes.losses - np.sum(weights * nodes.losses, axis=1, keepdims=True)
        self.variances = np.sum(weights * self.losses**2, axis=1) * (1 + 1e-6)
        self.counts = np.where(self.rest < 1e-7, nodes.counts, 0.0)
        self.integers = nodes.integers
        self.both = np.stack([weights, weights * self.losses], axis=2).astype(np.complex128)
        self.work = 0.1 * len(weights) if nodes.integers is not None else float(weights.size)

    def log_moduli(self, low: Floats, high: Floats) -> Floats:
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
        rounding = 4 * self.rest[:, None] + UNIT * (64 + 3 * self.losses.shape[1])
        rounding = rounding + 4 * self.turning[:, None] * middle[None, :]
        top = square + slope * half * (1 + 1e-9) + self.variances[:, None] * half**2 + 8 * rounding
        return np.asarray(np.log(np.minimum(np.sqrt(top) + rounding, 1.0)))

    def bound(self, low: Floats, high: Floats) -> Floats:
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
    coarse: Callable[[Floats], tuple[Floats, Floats]],
    witnesses: Sequence[Witness],
) -> tuple[NDArray[np.bool_] | None, float]:
    """(Which multiples of the gap are alive, a bound on the sum of |phi| over the negligible ones up to `last`, of both
    signs); None where too many are alive.

    `coarse` bounds ln|phi| of all parts, and of those without witnesses, on the intervals between given
    frequencies; on pieces of these the witnesses stand for the rest. A normal factor comes on top.
    """
    if not last / gap < 1e15:
        return None, 0.0
    if not last / gap < _MOST_MULTIPLES:
        return None, 0.0
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
        negligible = bounds <= -GONE
        dropped += 2 * float(np.sum((stop - first)[negligible] * np.exp(bounds[negligible])))
        short = ~negligible & (stop - first <= _SHORT)
        found = np.append(found[0], first[short]), np.append(found[1], stop[short])
        first, stop, parent = (x[~negligible & ~short] for x in (first, stop, parent))
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
