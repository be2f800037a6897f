"""Very many parts under one tilt: scale, window, the frequencies that are not negligible, and the transform there.

Each number carries the error of the nodes (quadrature) and of the floats (rounding), as
`docs/theory/characteristic-function-composition.md` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.data_classes import dataclass
from tacit.pld.fourier import CertifiedCurve, times_exp
from tacit.pld.quadrature import Quadrature, QuadratureRange

# Fourier inversion: a smoothed composed distribution, repeated periodically, and its curve at any epsilon.


@dataclass(slots=True, eq=False)
class FourierInversion:
    """E k(X - epsilon) under the tilted distribution, from its transform at the frequencies of its period."""

    step: float
    tilt: float
    bottom: float
    top: float
    log_scale: float
    scale_error: float
    mean: float
    coefficients: NDArray[np.complex128]
    error: float
    """Bound on the sum over all frequencies of the absolute errors of the transform."""
    outside: float = 2.1e-11
    _cache: dict[float, tuple[float, float]] = field(default_factory=dict)

    @property
    def base(self) -> int:
        """The lowest multiple of the step where the curve is searched."""
        return math.floor(self.bottom / self.step)

    @property
    def size(self) -> int:
        """The number of multiples of the step that are searched."""
        return math.ceil(self.top / self.step) - self.base

    def weigh(self, mass: float, node: int) -> float:
        """Nothing is below round-off here: errors are in the transform."""
        return 0.0 if mass == 0 else math.inf

    def finite_part(self, epsilon: float) -> tuple[float, float]:
        """Enclosure of sum P (1 - e^(epsilon - l))_+ over finite losses l of the smoothed product."""
        if epsilon not in self._cache:
            value, error = self._sum(epsilon)
            shift = self.tilt * epsilon
            exponent = self.log_scale - shift
            margin = self.scale_error + 8 * UNIT * (abs(exponent) + abs(shift) + 4)
            high = times_exp(max(value, 0.0) + error + self.outside, exponent + margin, upward=True)
            low = times_exp(max(value - error - self.outside, 0.0), exponent - margin, upward=False)
            self._cache[epsilon] = (min(low, 1.0), min(high, 1.0))
        return self._cache[epsilon]

    def _sum(self, epsilon: float) -> tuple[float, float]:
        start = max(epsilon, self.bottom)
        length, around, lead = self.top - start, self.top - self.bottom, start - epsilon
        if length <= 0:
            return 0.0, 0.0
        w = np.arange(len(self.coefficients), dtype=np.float64) * (2 * math.pi / around)
        kernel = math.exp(-self.tilt * lead) * _geometric(self.tilt + 1j * w, length)
        kernel -= math.exp(-(self.tilt + 1) * lead) * _geometric(self.tilt + 1 + 1j * w, length)
        terms = self.coefficients * np.exp(1j * w * (self.mean - start)) * kernel
        value = (2 * float(np.sum(terms.real)) - float(terms[0].real)) / around
        weight = min(length, 1 / max(self.tilt * (self.tilt + 1), 1e-300))
        reach = abs(self.mean) + abs(start) + around
        moduli = np.abs(self.coefficients)
        rounding = (
            UNIT * float(np.sum(moduli * (64 + 8 * w * reach))) * min(length, 1 / max(self.tilt, 1e-300))
        )
        return value, (weight * self.error + 4 * rounding) / around + 1e-300


def _geometric(rate: NDArray[Any], length: float) -> NDArray[np.complex128]:
    """Integral of e^(-rate x) over [0, length]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        total = -np.expm1(-rate * length) / rate
    return np.asarray(np.where(rate == 0, length, total))


class SmoothedCurve(CertifiedCurve):
    """A solved composition whose curve is read at any epsilon."""

    __slots__ = ()

    def _between(self, epsilon: float, end: int) -> float:
        return self.composed.finite_part(epsilon)[end]  # type: ignore[arg-type]


# Log-moments of gridded losses: where the composed loss lies, and how far it can stray.

_LEAST_SEEN = 1e-13
"""Smaller deltas are below the rounding of an untilted law."""
_MOST_SEEN, _SEEN = 1 << 15, 1 << 22
"""The longest grid, and the largest number of nodes of all grids together, for a first look."""


class LogMoments:
    """K(tilt) = sum_i n_i ln sum_k p_ik e^(tilt l_k), over parts laid end to end."""

    def __init__(self, parts: list[tuple[Floats, Floats, float]]) -> None:
        self.losses = np.concatenate([p[0] for p in parts])
        with np.errstate(divide="ignore"):
            self.logs = np.concatenate([np.log(p[1]) for p in parts])
        self.counts = np.array([p[2] for p in parts], dtype=np.float64)
        sizes = np.array([len(p[0]) for p in parts])
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.owner = np.repeat(np.arange(len(parts)), sizes)

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K, K' (the tilted mean) and K'' (the tilted variance)."""
        exponents = self.logs + tilt * self.losses
        peaks = np.maximum.reduceat(exponents, self.starts)
        weights = np.exp(exponents - peaks[self.owner])
        sums = np.add.reduceat(weights, self.starts)
        means = np.add.reduceat(weights * self.losses, self.starts) / sums
        centred = self.losses - means[self.owner]
        variances = np.add.reduceat(weights * centred * centred, self.starts) / sums
        k = float(np.dot(self.counts, peaks + np.log(sums)))
        return k, float(np.dot(self.counts, means)), float(np.dot(self.counts, variances))

    def log_moment(self, tilt: float) -> float:
        """K alone."""
        exponents = self.logs + tilt * self.losses
        peaks = np.maximum.reduceat(exponents, self.starts)
        sums = np.add.reduceat(np.exp(exponents - peaks[self.owner]), self.starts)
        return float(np.dot(self.counts, peaks + np.log(sums)))

    def crossing(self, delta: float, top: float) -> tuple[float, float] | None:
        """The approximate crossing of the curve with delta, below `top`, and the slope of ln delta there; None
        if not found.

        The sum's law, untilted, on a grid: each loss is split among three nodes with its mean and variance kept.
        """
        step = math.sqrt(self.moments(0.0)[2]) / 8
        if not step > 0 or delta < _LEAST_SEEN:
            return None
        size = 1 << max(8, math.ceil(math.log2(2 * (top / step + 16))))
        if size > _MOST_SEEN or size * len(self.counts) > _SEEN:
            return None
        places = np.minimum(self.losses, 1.2 * top) / step
        nodes = np.rint(places)
        off = places - nodes
        total = np.zeros(len(self.counts) * size)
        for shift, share in ((-1, (off * off - off) / 2), (0, 1 - off * off), (1, (off * off + off) / 2)):
            where = self.owner * size + (nodes.astype(np.int64) + shift) % size
            total += np.bincount(where, np.exp(self.logs) * share, minlength=len(total))
        hats = np.fft.rfft(total.reshape(-1, size), axis=1)
        with np.errstate(divide="ignore"):
            law = np.fft.irfft(np.exp(self.counts @ np.log(hats + 1e-300)), size)[: size * 3 // 4]
        x = np.arange(len(law)) * step
        above = np.cumsum(law[::-1])[::-1]
        curve = above - np.exp(x) * np.cumsum((law * np.exp(-x))[::-1])[::-1]
        over = np.flatnonzero(curve > delta)
        last = int(over[-1]) if len(over) else -1
        if not 1 <= last < len(curve) - 2 or not np.all(curve[last - 1 : last + 2] > 0):
            return None
        logs = np.log(curve[last - 1 : last + 2])
        share = (logs[1] - math.log(delta)) / max(logs[1] - logs[2], 1e-300)
        return float(x[last] + min(share, 1.0) * step), float((logs[0] - logs[2]) / (2 * step))


def row_moments(masses: Floats, losses: Floats, tilt: float) -> Floats:
    """ln sum_k p_k e^(tilt l_k) of each row."""
    exponents = tilt * losses
    peak = float(np.max(exponents))
    if peak - float(np.min(exponents)) < 600.0:
        return np.asarray(peak + np.log(masses @ np.exp(exponents - peak)))
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + exponents
    peaks = np.max(logs, axis=1)
    return np.asarray(peaks + np.log(np.sum(np.exp(logs - peaks[:, None]), axis=1)))


def tilted(masses: Floats, losses: Floats, tilt: float, log_a: Floats) -> Floats:
    """p_k e^(tilt l_k)/A of each row, without overflow of the factors."""
    exponents = tilt * losses
    if float(np.max(np.abs(exponents))) < 300.0 and float(np.max(np.abs(log_a))) < 300.0:
        return np.asarray(masses * np.exp(exponents)[None, :] * np.exp(-log_a)[:, None])
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(masses) + exponents[None, :] - log_a[:, None]))


def log_one_minus(values: Floats) -> Floats:
    """ln(1 - x), finite at x = 1."""
    return np.log1p(-np.minimum(values, 1 - 2.0**-53))


def clipped_exp(x: float) -> float:
    """e^x, at most e^700."""
    return math.exp(min(x, 700.0))


# Where to look at a composition of very many parts: the tilt, and the shifts that bound the window.
#
# Nothing here is claimed: a bad saddle costs time or width, never truth.

OUTSIDE = math.log(1e11)
"""All but e^-OUTSIDE of the tilted law is to lie in the window."""
_SHIFTS = (0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0)
_RARE_SHIFTS = (0.03, 0.06, 0.12, *_SHIFTS)
_VISIBLE = 1e-5
"""Round-off below this share of delta does not show in epsilon."""
_ORDINARY, _MOST_BEYOND = 6.0, 12.0
"""A tail appears at about e^-6 of its weight at its own saddle point, so windows are widened for e^-12 more."""
_CALMER = (1.0, 0.9, 0.8, 0.7, 0.55, 0.4, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaddlePoint:
    """A tilt, the deviation there, and the two shifts with the narrowest window."""

    tilt: float
    sigma: float
    up: float
    down: float
    beyond: float = 0.0
    """The reduction, in powers of e, of the mass outside the window."""
    rare: bool = False
    """Whether sums are to be rounded less than usual."""


def saddle_point(
    rough: LogMoments, spread: float, tilt: float, epsilon: float, delta: float, total: float, rare: bool
) -> SaddlePoint:
    """The tilt, at most the given one, with a narrow window that still sees epsilon well.

    Rarely sampled noise has moments that explode: at the saddle point of delta the tilted distribution may lie
    far beyond
    epsilon, or have a second, distant hump. A somewhat smaller tilt sees the same tail, e^-lost as large. With
    `total` releases sums are right to about total times 1e-14 only: then little may be lost. If even the given
    tilt sees far less than it weighs, that is lost as well, and the window is wider.
    """
    shifts = _RARE_SHIFTS if rare else _SHIFTS
    seen = rough.log_moment(tilt) - tilt * epsilon - math.log(max(delta, 1e-305))
    before = max(0.0, seen - _ORDINARY) if rare else 0.0
    most = math.log(_VISIBLE / (total * 1e-14))
    variance_added = spread**2
    first = rough.log_moment(tilt)
    best: tuple[float, SaddlePoint] | None = None
    for factor in _CALMER if tilt > 0 else (1.0,):
        c = tilt * factor
        k, _, variance = rough.moments(c)
        sigma = math.sqrt(variance + variance_added)

        def end(t: float, c: float = c, k: float = k) -> float:
            smooth = t * variance_added * (c + 0.5 + t / 2)
            return (rough.log_moment(c + t) - k + smooth + OUTSIDE + before) / t

        # Smaller shifts need fewer nodes: the least one whose window is nearly the narrowest.
        highs, lows = [end(f / sigma) for f in shifts], [end(-f / sigma) for f in shifts]
        near = 0.1 * max(min(highs) - max(lows), 0.0)
        high, up = next((h, f / sigma) for h, f in zip(highs, shifts, strict=True) if h <= min(highs) + near)
        low, down = next((h, f / sigma) for h, f in zip(lows, shifts, strict=True) if h >= max(lows) - near)
        lost = before + (tilt - c) * epsilon - (first - k)
        cost = math.log(max(high - low, 1e-300)) + max(0.0, lost - 3.0) / 12
        cost += max(0.0, lost + (_ORDINARY - math.log1p(c * (c + 1)) if rare else 0.0) - most)
        if best is None or cost < best[0]:
            beyond = min(max(0.0, lost - _ORDINARY), _MOST_BEYOND) if rare else 0.0
            best = cost, SaddlePoint(tilt=c, sigma=sigma, up=up, down=down, beyond=beyond, rare=rare)
    assert best is not None
    return best[1]


# Frequencies at which the transform of very many parts is proved to be nothing.
#
# Of each part ln|phi| is bounded on whole intervals of frequencies, from its moments, from a uniform share of its
# density, or, where its losses are atoms, from |phi|^2 and its slope at the middle of the interval. Every factor
# is at most 1 in modulus, so that a few hundred of the parts (witnesses) speak for all:
# `docs/theory/negligible-frequencies.md`.

GONE = 30.0
"""Products below e^-30 are left out, and bounded."""
SMOOTHED = 44.0
"""The smoothing alone leaves e^-44 at the last frequency."""
MOST_FREQUENCIES = 4096
_FURTHEST, _MOST_MULTIPLES = 1 << 20, 1 << 40
_GROWTH = 1.15
_PIECES = 4
_SHORT = 8
"""At most this number of frequencies is faster to compute than to prove negligible."""
_WORK = 8e6
"""Turns of single atoms that may be spent on showing frequencies negligible."""


def moments_of(weights: Floats, centred: Floats, soft: Floats | None) -> Floats:
    """Of the whole distribution and of softened parts of it, each row: mass, second and fourth moment about the parts'
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

    -E (moment_falls) for the whole distribution; or, with a softened part of mass p and uniform shares s_i of
    the density
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


class TransformWitness:
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
    witnesses: Sequence[TransformWitness],
) -> tuple[NDArray[np.bool_] | None, float]:
    """Two answers: the relevant multiples of the gap, and a bound on the sum of |phi| over the negligible ones
    up to `last`, of both signs. The first is None if too many are relevant.

    `coarse` bounds ln|phi| of all parts, and of those without witnesses, on the intervals between given
    frequencies. On pieces of these the witnesses represent the other parts. A normal factor comes on top.
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


_FEW = 16.0
"""Frequencies up to this many times the inverse deviation are few."""
_BLOCK = 32
"""The number of rows whose tables of powers fit into a cache."""
_BRIDGE = 16
"""Short gaps between frequencies that are not negligible are computed as well."""
_BUDGET = 1e9
"""Turns of single nodes that may be computed before the grid of losses is the cheaper way."""
_TERMS = 64
"""The number of terms added at once; longer sums are sums of such sums."""
_NOTHING, _LESS = 1e-16, 0.01
"""Nodes that weigh less than this in every row are left out of the transforms, and counted."""


class TooWide(Exception):
    """The parts are so few or so wide that the grid of losses is cheaper."""


class _Members(Protocol):
    nodes: list[Quadrature]
    atomic: list[bool]
    reach: QuadratureRange
    normal: float

    def witnesses(self, frequency: float) -> list[Quadrature]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransformPart:
    """A chunk of rows under the tilt."""

    nodes: Quadrature
    log_a: Floats
    means: Floats
    moments: Floats
    weights: Floats
    centres: Floats
    errors: Floats
    """Rows (a, b): the transform at frequency w is right to a + b w."""
    off: Floats
    """The error of the transform on the disc around the tilt where moments are compared."""


class Tilted:
    """Very many parts under one tilt: moments, windows, frequencies."""

    def __init__(self, composition: _Members, spread: float, saddle: SaddlePoint) -> None:
        self.composition, self.tilt, self.sigma, self.spread = composition, saddle.tilt, saddle.sigma, spread
        self.outside, self.fine = OUTSIDE + saddle.beyond, saddle.rare
        self.smooth = composition.normal + spread**2
        c, v = saddle.tilt, self.smooth
        self.log_scale, self.scale_error = c * (c + 1) * v / 2, 8 * UNIT * abs(c) * (abs(c) + 1) * v
        self.shifts = [saddle.up, -saddle.down]
        self.disc = min(saddle.up, saddle.down, 0.5 * composition.reach.frequency)
        self.rises = np.array([t * v * (c + 0.5) + t * t * v / 2 for t in self.shifts])
        self.mean, self.mean_error = v * (c + 0.5), 8 * UNIT * v * (abs(c) + 1)
        self.kept = [0.0, 0.0]
        self.budget = _BUDGET
        # Worst-case rounding of sums over the rows of a chunk, and over chunks.
        rows = max((len(nodes.counts) for nodes in composition.nodes), default=1)
        self.unit = UNIT * (2 * rows + 2 * len(composition.nodes))
        self.parts = [self._part(nodes) for nodes in composition.nodes]

    def _part(self, nodes: Quadrature) -> TransformPart:
        log_a, weights, blur = nodes.tilted(self.tilt)
        n = nodes.counts
        # The rule's error is that share of the transform at frequency 0, or of 1 where that is less.
        rule = 2 * nodes.error * np.exp(np.minimum(np.maximum(0.0, -log_a), 600.0))
        means = np.sum(weights * nodes.losses, axis=1)
        centred = nodes.losses - means[:, None]
        swing = np.zeros(len(n))
        for k, shift in enumerate(self.shifts):
            grown = _log_mean(weights, shift * centred)
            rise = grown + shift * means
            there = 2 * nodes.error * np.exp(np.clip(-log_a - rise, 0.0, 600.0))
            self.rises[k] += float(n @ (rise + 2 * (rule + there) + 4 * nodes.relative))
            swing = np.maximum(swing, grown)
        steady = np.exp(np.minimum(self.disc * np.abs(means) - log_a, 600.0))
        off = 2 * nodes.error * (np.exp(np.minimum(swing, 600.0)) + steady)
        self.log_scale += float(n @ log_a)
        self.scale_error += float(n @ (2 * (rule + blur[0]) + self.unit * np.abs(log_a)))
        self.mean += float(n @ means)
        self.mean_error += self.unit * float(n @ np.abs(means))
        self.kept[0] += float(n @ log_one_minus(nodes.infinite[:, 1]))
        self.kept[1] += float(n @ log_one_minus(nodes.infinite[:, 0]))
        # Far nodes serve the shifts; under this tilt most of them weigh nothing.
        nothing = _NOTHING * (_LESS if self.fine else 1.0)
        heavy = np.flatnonzero(np.max(weights, axis=0) > nothing)
        held = slice(int(heavy[0]), int(heavy[-1]) + 1)
        left = nothing * (weights.shape[1] - (held.stop - held.start))
        return TransformPart(
            nodes=nodes,
            log_a=log_a,
            means=means,
            moments=moments_of(weights, centred, nodes.soft),
            weights=weights[:, held],
            centres=centred[:, held],
            errors=np.stack([2 * (rule + blur[0]) + left, 2 * blur[1]]),
            off=off,
        )

    def window(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """The window around epsilon, which holds all but 1e-11 of the tilted distribution."""
        high = (self.rises[0] + self.outside) / self.shifts[0]
        low = (self.rises[1] + self.outside) / self.shifts[1]
        far = (math.sqrt(2 * (math.log(1e9) - math.log(max(delta, 1e-305)))) + 3) * self.spread
        top, bottom = max(high, epsilon + 9 * self.spread), min(low, epsilon - far)
        return (bottom, top) if math.isfinite(top) and math.isfinite(bottom) else None

    def inversion(
        self, epsilon: float, delta: float
    ) -> tuple[FourierInversion, tuple[float, float]] | float | None:
        """The composed distribution around epsilon, with the logarithms of the finite masses; a frequency if one
        beyond the reach of the nodes is alive."""
        if (window := self.window(epsilon, delta)) is None:
            return None
        bottom, top = window
        gap = 2 * math.pi / (top - bottom)
        living, dropped = self.alive(gap)
        if living is None:
            return None
        if len(living) * gap > self.composition.reach.frequency:
            return float(len(living) * gap * 1.02)
        product, errors = self._product(np.arange(len(living), dtype=np.float64) * gap, living)
        inversion = FourierInversion(
            step=self.spread / 4,
            tilt=self.tilt,
            bottom=bottom,
            top=top,
            log_scale=self.log_scale,
            scale_error=self.scale_error,
            mean=self.mean,
            coefficients=product,
            error=2 * float(np.sum(errors)) + dropped,
            outside=2.1 * math.exp(-self.outside) if self.fine else 2.1e-11,
        )
        return inversion, (self.kept[0], self.kept[1])

    def alive(self, gap: float) -> tuple[NDArray[np.bool_] | None, float]:
        """(Multiples of the gap that are not negligible, bound on the sum of |phi| over all others, both signs)."""
        last = math.sqrt(2 * SMOOTHED) / self.spread

        def coarse(w: Floats, closely: bool) -> tuple[Floats, Floats]:
            whole, others = np.zeros(len(w) - 1), np.zeros(len(w) - 1)
            for part, atomic in zip(self.parts, self.composition.atomic, strict=True):
                bound = self.bound(part, w, closely)
                whole, others = whole + bound, others + (0.0 if atomic else bound)
            return whole, others

        witnesses = [TransformWitness(nodes, self.tilt) for nodes in self.composition.witnesses(last)]
        # The variation of densities is asked only where their moments leave much alive.
        for closely in (False, True):
            kept, dropped = alive(
                start=4 / self.sigma,
                last=last,
                gap=gap,
                variance=self.smooth,
                coarse=partial(coarse, closely=closely),
                witnesses=witnesses,
            )
            if kept is not None and len(kept) * gap <= _FEW / self.sigma:
                break
        beyond = 2 * math.exp(-SMOOTHED) * (1 + 1 / (self.spread * math.sqrt(2 * SMOOTHED) * gap))
        return kept, dropped + beyond

    def bound(self, part: TransformPart, w: Floats, closely: bool = True) -> Floats:
        """Sum over the rows of a part of n ln|phi| on each [w_k, w_k+1], from above."""
        rows = part_bound(part.nodes, self.tilt, part.log_a, part.moments, part.off, self.disc, w, closely)
        return np.asarray(part.nodes.counts @ rows)

    def _product(self, w: Floats, living: NDArray[np.bool_]) -> tuple[NDArray[np.complex128], Floats]:
        """The transform of the centred sum at the multiples w of a gap, and its error."""
        count, gap = len(w), float(w[1]) if len(w) > 1 else 1.0
        logs, angles = -self.smooth * w * w / 2, np.zeros(count)
        log_bound = -self.smooth * w * w / 2
        spread = np.zeros(count)
        size = np.zeros(count)
        kept = living.copy()
        order: Sequence[TransformPart] = sorted(
            self.parts, key=lambda part: -float(part.nodes.counts @ part.moments[0, :, 1])
        )
        for part in order:
            # Other factors are at most 1 in modulus: what is negligible stays so.
            kept &= log_bound > -GONE
            n = part.nodes.counts
            for run in _runs(kept):
                hats, error = self.hats(part, run.start, run.stop - run.start, gap)
                moduli = np.abs(hats)
                modulus = np.minimum(moduli + error, 1.0 + error)
                # Real and imaginary parts apart: products of matrices of mixed kinds are slow.
                each, turns = np.log(np.maximum(moduli, 1e-300)), np.angle(hats)
                logs[run] += n @ each
                angles[run] += n @ turns
                log_bound[run] += n @ np.log(modulus)
                spread[run] += n @ (error / modulus)
                size[run] += n @ (np.abs(each) + np.abs(turns))
        bound = np.exp(np.minimum(log_bound, 600.0))
        product = np.where(kept, np.exp(logs + 1j * angles), 0.0)
        rounding = (32 * UNIT + self.unit * size + w * self.mean_error) * np.abs(product)
        errors = np.minimum(bound * spread, 2 * bound) * (1 + 1e-6) + rounding
        # What was negligible before is counted elsewhere.
        return product, np.where(kept, errors, np.where(living, bound * (1 + 1e-6), 0.0))

    def hats(
        self, part: TransformPart, start: int, count: int, gap: float
    ) -> tuple[NDArray[np.complex128], Floats]:
        """Transforms of the rows of a part at `count` multiples of the gap from the start-th, and their errors."""
        rows, nodes = part.weights.shape
        self.budget -= rows * nodes * count
        if self.budget < 0:
            raise TooWide
        blocks = [slice(i, i + _BLOCK) for i in range(0, rows, _BLOCK)]
        turned = part.weights if start == 0 else part.weights * np.exp(1j * (start * gap) * part.centres)
        made = _fine_transforms if self.fine else _transforms
        hats = np.concatenate([made(turned[b], part.centres[b], count, gap) for b in blocks])
        k = start + np.arange(count, dtype=np.float64)
        fixed, turning = part.errors
        rounding = fine_rounding(nodes, count) if self.fine else UNIT * (16 + 3 * nodes + 8 * k)
        return hats, fixed[:, None] + np.outer(turning, gap * k) + rounding


def _runs(kept: NDArray[np.bool_]) -> list[slice]:
    """Few runs of frequencies that contain all the kept ones."""
    found = np.flatnonzero(kept)
    ends = np.flatnonzero(np.diff(found) > _BRIDGE)
    starts, stops = found[np.append(0, ends + 1)], found[np.append(ends, len(found) - 1)] + 1
    return [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]


def _transforms(
    weights: NDArray[np.float64] | NDArray[np.complex128], losses: Floats, count: int, gap: float
) -> NDArray[np.complex128]:
    """sum_j weight_j e^(i k gap loss_j) of each row for k < count.

    e^(i(a + Ab)x) is a product of two powers of e^(ix): two short tables and one matrix product a row. Each
    multiplication adds at most three units to the error of a power, the error of e^(ix) is multiplied by it.
    """
    rows, nodes = weights.shape
    short, long = _tables(count)
    turn = np.exp(1j * gap * losses)
    baby = np.empty((rows, short, nodes), dtype=np.complex128)
    baby[:, 0] = weights
    for a in range(1, short):
        np.multiply(baby[:, a - 1], turn, out=baby[:, a])
    giant = np.empty((rows, long, nodes), dtype=np.complex128)
    giant[:, 0] = 1.0
    leap = np.exp(1j * (gap * short) * losses)
    for b in range(1, long):
        np.multiply(giant[:, b - 1], leap, out=giant[:, b])
    product = np.matmul(giant, baby.transpose(0, 2, 1))
    return np.asarray(product.reshape(rows, short * long)[:, :count])


def _tables(count: int) -> tuple[int, int]:
    """The lengths of the two tables of powers."""
    short = max(1, math.ceil(math.sqrt(count)))
    return short, -(-count // short)


def _fine_transforms(
    weights: NDArray[np.float64] | NDArray[np.complex128], losses: Floats, count: int, gap: float
) -> NDArray[np.complex128]:
    """The same with tables made by doubling and sums of sums: less rounding of many nodes at many frequencies."""
    rows, nodes = weights.shape
    short, long = _tables(count)
    product = np.zeros((rows, long, short), dtype=np.complex128)
    # Each sum is off by as many units as it has terms; and tables of so few nodes fit into a cache.
    for j in range(0, nodes, _TERMS):
        at = slice(j, j + _TERMS)
        baby = _turns(weights[:, at], losses[:, at], short, gap)
        giant = _turns(1.0, losses[:, at], long, gap * short)
        product += np.matmul(giant, baby.transpose(0, 2, 1))
    return np.asarray(product.reshape(rows, short * long)[:, :count])


def fine_rounding(nodes: int, count: int) -> float:
    """The largest error by rounding in each of `_fine_transforms` of weights that add up to 1, apart from that of
    their angles.
    """
    turns = sum(size.bit_length() for size in _tables(count))
    return UNIT * (24 + 3 * (min(nodes, _TERMS) + -(-nodes // _TERMS)) + 8 * turns)


def _turns(
    first: NDArray[np.float64] | NDArray[np.complex128] | float, losses: Floats, length: int, gap: float
) -> NDArray[np.complex128]:
    """first e^(i k gap loss) for k < length: each is a product of at most length.bit_length() factors.

    A multiplication adds at most three units to the error, and a factor five; `Quadrature.tilted` describes the error
    of its angle.
    """
    out = np.empty((losses.shape[0], length, losses.shape[1]), dtype=np.complex128)
    out[:, 0] = first
    done = 1
    while done < length:
        more = min(done, length - done)
        turn = np.exp(1j * (gap * done) * losses)
        np.multiply(out[:, :more], turn[:, None, :], out=out[:, done : done + more])
        done += more
    return out


def _log_mean(weights: Floats, exponents: Floats) -> Floats:
    """ln sum_j weight_j e^(exponent_j) of each row."""
    if float(np.max(np.abs(exponents))) < 600:
        return np.asarray(np.log(np.sum(weights * np.exp(exponents), axis=1)))
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + exponents
    peaks = np.max(logs, axis=1)
    return np.asarray(np.log(np.sum(np.exp(logs - peaks[:, None]), axis=1)) + peaks)
