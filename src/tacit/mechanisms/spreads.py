"""Laws of sums of noise, for errors and intervals: uniform variables under a Gamma radius, and Laplace variables.

No privacy claim uses these numbers: they are computed in floats, rounded against the reader if that is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.rounding import bisected

GRID = 128
NODES = 400
SHAPES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256)
SAFE = 1 + 1e-12
"""A margin for quantiles of the normal distribution, which are correct to about 1e-15; no privacy depends on it."""
APART = 1e-3
MOST_BOXES = 24
"""Above this number of boxes, those with less than this part of the variance are joined as one normal distribution."""


class BoxSum:
    """W = sum of independent uniform variables, each on an interval of length w_i around 0: E |W| and its tail."""

    __slots__ = ("_distribution", "_grid", "mean_size", "reach", "variance")

    def __init__(self, widths: tuple[float, ...]) -> None:
        live = [w for w in widths if w > 0]
        self.variance = sum(w * w for w in live) / 12
        self.reach = sum(live) / 2
        if not live:
            self.mean_size, grid, law = 0.0, np.zeros(1), [0.0]
        else:
            grid, density = _listed(live) if len(live) <= MOST_BOXES else _around(live, self.variance)
            self.mean_size = float((density * grid).sum())
            order = np.argsort(grid)
            grid = grid[order]
            law = [*np.cumsum(density[order][::-1])[::-1][1:].tolist(), 0.0]
        self._grid, self._distribution = grid, np.concatenate([[1.0], law])

    def tail(self, w: Floats) -> Floats:
        """Pr[|W| > w]; between grid points the larger one."""
        return np.asarray(self._distribution[np.searchsorted(self._grid, w, side="left")])


def _listed(live: list[float]) -> tuple[Floats, Floats]:
    """Positions of |W| on a grid, with their probabilities."""
    step = min(live) / GRID
    density = np.ones(1)
    for w in live:
        density = np.convolve(density, np.full(max(round(w / step), 1), 1.0))
        density /= density.sum()
    return np.abs(np.arange(density.size) - (density.size - 1) / 2) * step, density


def _around(live: list[float], variance: float) -> tuple[Floats, Floats]:
    """The same for many boxes: those with a large part of the variance one by one, and the others as one normal
    distribution.
    """
    step = math.sqrt(variance) / (4 * GRID)
    wide = [w for w in live if w * w > 12 * variance / MOST_BOXES]
    rest = math.sqrt(max(variance - sum(w * w for w in wide) / 12, 0.0)) / step
    reach = math.ceil(9 * rest)
    places = np.arange(-reach, reach + 1)
    density = np.exp(-((places / max(rest, 1e-9)) ** 2) / 2)
    for w in wide:
        density = np.convolve(density / density.sum(), np.full(math.ceil(w / step), 1.0))
    density = density / density.sum()
    return np.abs(np.arange(density.size) - (density.size - 1) / 2) * step, density


@lru_cache(maxsize=256)
def box_sum(widths: tuple[float, ...]) -> BoxSum:
    """The sum, computed once."""
    return BoxSum(widths)


@lru_cache(maxsize=1024)
def radial_quantile(widths: tuple[float, ...], shape: int, miss: float) -> float:
    """t with Pr[T |W| > t] <= miss, T ~ Gamma(shape, 1) independent of the sum of boxes W; slices of T rounded up."""
    from scipy.special import gammaincinv

    found = box_sum(widths)
    edges = 1 - np.concatenate(
        [np.linspace(1, 0.01, NODES), np.geomspace(0.01, 1e-3 * miss, NODES)[1:], [0.0]]
    )
    weights, radius = np.diff(edges), gammaincinv(shape, np.minimum(edges[1:], 1 - 1e-16))
    most = float(found.reach * gammaincinv(shape, 1 - miss / 2))
    holds: Callable[[float], bool] = lambda t: not float((weights * found.tail(t / radius)).sum()) > miss  # noqa: E731
    return bisected(holds, 0.0, most, relative=1e-6)[1]


def normal_factor(miss: float) -> float:
    """z with Pr[|N| > z] = miss."""
    from scipy.special import ndtri

    return float(-ndtri(miss / 2))


def laplace_factor(terms: float, miss: float) -> float:
    """t / std with Pr[|X| > t] <= miss, X a sum of `terms` equal Laplace variables.

    Sums of unlike ones have an effective number, (sum c^2)^2 / sum c^4, which gives them the same first four moments.
    Between two tabulated numbers it takes the larger factor.
    """
    below = [k for k in SHAPES if k <= terms] or [1]
    above = [k for k in SHAPES if k > terms]
    return max(_laplace(below[-1], miss), _laplace(above[0], miss) if above else normal_factor(miss))


@lru_cache(maxsize=512)
def _laplace(terms: int, miss: float) -> float:
    """X = sqrt(V) N with V ~ Gamma(terms, 1 / terms): Pr[|X| > t] is the mean of Pr[|N| > t / sqrt(V)]."""
    from scipy.special import gammaincinv, ndtr

    if terms == 1:
        return -math.log(miss) / math.sqrt(2)
    edges = 1 - np.concatenate(
        [np.linspace(1, 0.01, NODES), np.geomspace(0.01, 1e-3 * miss, NODES)[1:], [0.0]]
    )
    weights, spread = np.diff(edges), np.sqrt(gammaincinv(terms, np.minimum(edges[1:], 1 - 1e-16)) / terms)
    holds: Callable[[float], bool] = lambda t: not float((weights * 2 * ndtr(-t / spread)).sum()) > miss  # noqa: E731
    return bisected(holds, 0.0, -math.log(miss) + 2, relative=1e-6)[1]


# --- weighted sums, many cells at once: what exact intervals of ratios need (theorem `pivot-intervals`) -------
def normal_quantile(confidence: float, coordinates: int = 1) -> float:
    """z with (2 Phi(z) - 1)^coordinates = confidence, rounded up."""
    miss = -math.expm1(math.log(confidence) / coordinates) if coordinates > 1 else 1 - confidence
    return -NormalDist().inv_cdf(miss / 2) * SAFE


def laplace_move(noise_scale: float) -> float:
    """The distance of a discrete Laplace draw from its continuous one: 1 - b ln(2 / (1 + e^(-1/b)))."""
    return 1.0 + noise_scale * math.log1p(math.expm1(-1.0 / noise_scale) / 2)


def laplace_log_tail(scales: Floats, t: Floats) -> Floats:
    """log Pr[|sum of independent Laplace| > t]; a row of `scales` for each summand, all distinct, falling (`apart`).

    Relative to the widest summand's e^(-t/s), so that it stays a slope at any distance.
    """
    squares, rate = scales * scales, t / scales[0]
    total = np.zeros_like(t)
    for i, square in enumerate(squares):
        weight = np.exp(rate - t / scales[i]) if i else np.ones_like(t)
        for j, other in enumerate(squares):
            if j != i:
                weight *= square / (square - other)
        total += weight
    return np.asarray(np.log(np.maximum(total, 1e-300)) - rate)


def apart(scales: Floats) -> Floats:
    """The scales in falling order, moved apart upwards: the tail can only grow, and the formula stays stable."""
    ordered = np.sort(scales, axis=0)
    tiny = ordered[-1] * 1e-6
    ordered[0] = np.maximum(ordered[0], tiny)
    for i in range(1, len(ordered)):
        ordered[i] = np.maximum(ordered[i], ordered[i - 1] * (1 + APART))
    return ordered[::-1].copy()


def gaussian_pivot(stds: Floats, confidence: float) -> Floats:
    """t with Pr[|T| > t] = 1 - confidence for independent normal noise of these standard deviations."""
    stds = np.atleast_2d(np.asarray(stds, dtype=np.float64))
    return np.asarray(normal_quantile(confidence) * np.sqrt((stds**2).sum(axis=0)))


# Noise for the parts of a question: tables of integers in, as many noisy ones out, with the errors of every cell.
#
# `CellNoise` is independent and alike on any number of cells (Laplace, Gaussian, staircase). Mechanisms for several
# tables at once (`tacit.mechanisms.tables`) answer the same questions, so that whoever runs them needs not know which
# it is. All lengths are in steps of the grid.
