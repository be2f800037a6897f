"""Tails of weighted sums of Laplace variables, rounded up: what prefixes and fits of noisy counts can be off by."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats

__all__ = [
    "GRID_STEPS",
    "Floats",
    "Weighted",
    "chernoff",
    "mean_sizes",
    "read_quantiles",
    "sum_quantiles",
    "weighted_quantiles",
]


POINTS = 1024
CHUNK = 1 << 18
"""Weights times rows that are worked on at once."""
GRID_STEPS = 1 << 14
FLOAT_SLACK = 1e-13
OFF_GRID = 1e-3
_RATES = np.linspace(0.05, 0.95, 19)


class Weighted(NamedTuple):
    """Sums of independent Laplace variables of scale 1, one a row: |w| of some terms, and how many have each."""

    weights: Floats
    counts: Floats

    @property
    def squares(self) -> Floats:
        """|w|^2 of each sum; its variance is twice that."""
        return np.asarray((self.counts * self.weights**2).sum(axis=1))

    @property
    def largest(self) -> Floats:
        """The largest |w| in each sum, 0 in an empty one."""
        return np.asarray((self.weights * (self.counts > 0)).max(axis=1))

    def some(self, chosen: slice | npt.NDArray[np.bool_]) -> Weighted:
        """Some of the rows."""
        return Weighted(self.weights[chosen], self.counts[chosen])

    def log_waves(self, waves: Floats) -> Floats:
        """ln E e^(i s S) = -sum n ln(1 + w^2 s^2), a row of s for each sum."""
        out = np.zeros_like(waves)
        for weight, count in zip(self.weights.T, self.counts.T, strict=True):
            out -= count[:, None] * np.log1p((weight[:, None] * waves) ** 2)
        return out

    def log_moments(self, rates: Floats) -> Floats:
        """ln E e^(r S) = -sum n ln(1 - w^2 r^2)."""
        out = np.zeros_like(rates)
        for weight, count in zip(self.weights.T, self.counts.T, strict=True):
            live = (count > 0)[:, None]
            out -= count[:, None] * np.log1p(-np.minimum((weight[:, None] * rates) ** 2, 0.99) * live)
        return out


def _weighted(sums: Floats) -> Weighted:
    rows = np.asarray(sums, dtype=np.float64)
    theta = rows[:, 0]
    return Weighted(np.stack([1 - theta, theta, np.ones_like(theta)], axis=1), rows[:, 1:])


def sum_quantiles(sums: Floats, tail: float) -> Floats:
    """c with Pr[S >= c] <= tail for each sum S of independent Laplace variables of scale 1, for tail < 1/2.

    Discrete Laplace noise on a grid of at least 2^14 steps a scale is covered too: with D in (-1, 1) steps independent
    of it, noise + D is Laplace (the fraction of an exponential is independent of its whole part), so c grows by d and
    Pr by Pr[w.D <= -d] <= exp(-d^2 / (2 |w|^2)) = tail / 1000. Source: Hoeffding 1963.
    """
    rows = _weighted(sums)
    return weighted_quantiles(rows, tail * (1 - OFF_GRID)) + _shift(rows, tail)


def weighted_quantiles(rows: Weighted, tail: float) -> Floats:
    """c with Pr[S >= c] <= tail for each row's sum S, for tail < 1/2; 0 for an empty one.

    Fourier inversion, Pr[S >= c] = 1/2 - sum_k sin(s_k c) phi(s_k) / (pi (k + 1/2)) with s_k = (k + 1/2) 2 pi / P:
    the error is at most Pr[|S| > P - c] (a Chernoff bound) plus what is cut off, both added. S is unimodal, so its
    tail is convex on c > 0 and the chord between two grid points lies above it. Source: Davies 1973.
    """
    size, step = len(rows.weights), max(CHUNK // (POINTS * max(rows.weights.shape[1], 1)), 1) * 16
    parts = [_quantiles(rows.some(slice(i, i + step)), tail) for i in range(0, size, step)]
    return np.concatenate(parts) if parts else np.empty(0)


def mean_sizes(rows: Weighted) -> Floats:
    """E |S| = (2/pi) int_0^inf (1 - phi(t)) / t^2 dt for each row's sum, with t = tan(s) / std; in floats."""
    nodes, weights = np.polynomial.legendre.leggauss(96)
    u = np.tan((nodes + 1) * np.pi / 4)
    std = np.sqrt(2 * rows.squares)
    phi = np.exp(
        rows.log_waves(
            np.divide(u[None, :], std[:, None], where=std[:, None] > 0, out=np.zeros((len(std), 96)))
        )
    )
    terms = (1 - phi) * (1 + 1 / u**2) * weights * (np.pi / 4)
    return np.asarray(2 / np.pi * terms.sum(axis=1) * std)


def squared_weights(sums: Floats) -> Floats:
    """|w|^2 of each sum; its variance is twice that."""
    return _weighted(sums).squares


def chernoff(sums: Floats, tail: float) -> Floats:
    """A simple c with Pr[S >= c] <= tail, above the sharp one; 0 for an empty sum."""
    rows = _weighted(sums)
    return _chernoff(rows, tail * (1 - OFF_GRID)) + _shift(rows, tail)


def _chernoff(rows: Weighted, tail: float) -> Floats:
    largest = rows.largest
    rates = _RATES[None, :] / np.where(largest > 0, largest, 1.0)[:, None]
    best = ((rows.log_moments(rates) - math.log(tail)) / rates).min(axis=1)
    return np.where(largest > 0, best, 0.0)


def _shift(rows: Weighted, tail: float) -> Floats:
    """d = |w| sqrt(2 ln(1000 / tail)) grid steps."""
    return np.sqrt(rows.squares) * (math.sqrt(2 * math.log(1 / (OFF_GRID * tail))) / GRID_STEPS)


def _quantiles(rows: Weighted, tail: float) -> Floats:
    live = rows.largest > 0
    out = np.zeros(live.size)
    if not live.any():
        return out
    rows = rows.some(live)
    largest = rows.largest
    period = 10 * np.sqrt(2 * rows.squares) + 22 * largest
    waves = (np.arange(POINTS) + 0.5)[None, :] * (2 * math.pi / period)[:, None]
    phi = np.exp(rows.log_waves(waves))
    rates = _RATES[None, :] / largest[:, None]
    # Only c up to half a period is read, so that what wraps around lies beyond the other half.
    wrapped = 2 * np.exp((rows.log_moments(rates) - rates * (period / 2)[:, None]).min(axis=1))
    cut = phi[:, -1] * (1 + 1 / (largest * waves[:, -1]) ** 2) / (2 * math.pi)
    chord, sure = read_quantiles(phi, period, wrapped + cut + FLOAT_SLACK, tail)
    # A single variable has a closed form, and a law whose Fourier series falls too slowly for the sum above.
    single = (rows.counts * (rows.weights > 0)).sum(axis=1) == 1
    chord = np.where(single, -largest * math.log(2 * tail), chord)
    simple = _chernoff(rows, tail)
    out[live] = np.where(sure | single, np.minimum(chord, simple), simple)
    return out


def read_quantiles(
    phi: Floats, period: Floats, spare: Floats, tail: float
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """c with Pr[S >= c] <= tail, from E cos(s S) at s = (k + 1/2) 2 pi / P, a row for each S; and where it is sure.

    S is symmetric, with a tail that is convex on c > 0; `spare` bounds the error of the sum, and is added to it.
    """
    points = phi.shape[1]
    order = np.arange(points) + 0.5
    turn = np.exp(1j * math.pi * np.arange(points) / points)[None, :]
    curve = 0.5 - (turn * np.fft.ifft(phi / (math.pi * order), axis=1)).imag * points
    tails = curve[:, : points // 2] + spare[:, None]
    reached = tails <= tail
    at = np.argmax(reached, axis=1)
    sure = reached.any(axis=1) & (at > 0)
    at = np.maximum(at, 1)
    index = np.arange(len(phi))
    before, after = tails[index, at - 1], tails[index, at]
    chord = period / points * (at - 1 + (before - tail) / np.where(sure, before - after, 1.0))
    return chord, sure
