"""Tails of weighted sums of Laplace variables, rounded up: what a prefix of noisy counts can be off by."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["GRID_STEPS", "Sums", "chernoff", "sum_quantiles"]

Floats = npt.NDArray[np.float64]
Sums = npt.NDArray[np.float64]
"""Rows (theta, n1, n2, n3): n1 terms of weight 1 - theta, n2 of weight -theta, n3 of weight 1."""

POINTS = 1024
CHUNK_ROWS = 256
GRID_STEPS = 1 << 14
FLOAT_SLACK = 1e-13
OFF_GRID = 1e-3
_RATES = np.linspace(0.05, 0.95, 19)


def sum_quantiles(sums: Sums, tail: float) -> Floats:
    """c with Pr[S >= c] <= tail for each sum S of independent Laplace variables of scale 1, for tail < 1/2.

    Fourier inversion, Pr[S >= c] = 1/2 - sum_k sin(s_k c) phi(s_k) / (pi (k + 1/2)) with s_k = (k + 1/2) 2 pi / P:
    the error is at most Pr[|S| > P - c] (a Chernoff bound) plus what is cut off, both added. S is unimodal, so its
    tail is convex on c > 0 and the chord between two grid points lies above it. Discrete Laplace noise on a grid of
    at least 2^14 steps a scale is covered too: with D in (-1, 1) steps independent of it, noise + D is Laplace
    (the fraction of an exponential is independent of its whole part), so c grows by d and Pr by
    Pr[w.D <= -d] <= exp(-d^2 / (2 |w|^2)) = tail / 1000. Source: Davies 1973; Hoeffding 1963.
    """
    rows = np.asarray(sums, dtype=np.float64)
    parts = [_quantiles(rows[i : i + CHUNK_ROWS], tail) for i in range(0, len(rows), CHUNK_ROWS)]
    return np.concatenate(parts) if parts else np.empty(0)


def squared_weights(sums: Sums) -> Floats:
    """|w|^2 of each sum; its variance is twice that."""
    theta, n1, n2, n3 = sums.T
    return np.asarray(n1 * (1 - theta) ** 2 + n2 * theta**2 + n3)


def largest_weight(sums: Sums) -> Floats:
    """The largest |w| in each sum, 0 in an empty one."""
    return np.asarray((weights_of(sums) * (sums[:, 1:] > 0)).max(axis=1))


def weights_of(sums: Sums) -> Floats:
    """The three |w| of each sum."""
    theta = sums[:, 0]
    return np.stack([1 - theta, theta, np.ones_like(theta)], axis=1)


def log_moment(sums: Sums, rate: Floats) -> Floats:
    """ln E e^(rate S) = -sum ln(1 - rate^2 w^2)."""
    theta, n1, n2, n3 = (column[:, None] for column in sums.T)
    square = rate**2
    return np.asarray(
        -n1 * np.log1p(-np.minimum(square * (1 - theta) ** 2, 0.99) * (n1 > 0))
        - n2 * np.log1p(-np.minimum(square * theta**2, 0.99) * (n2 > 0))
        - n3 * np.log1p(-np.minimum(square, 0.99) * (n3 > 0))
    )


def chernoff(sums: Sums, tail: float) -> Floats:
    """A simple c with Pr[S >= c] <= tail, above the sharp one; 0 for an empty sum."""
    rows = np.asarray(sums, dtype=np.float64)
    largest = largest_weight(rows)
    rates = _RATES[None, :] / np.where(largest > 0, largest, 1.0)[:, None]
    best = ((log_moment(rows, rates) - math.log(tail * (1 - OFF_GRID))) / rates).min(axis=1)
    return np.where(largest > 0, best + _shift(rows, tail), 0.0)


def _shift(sums: Sums, tail: float) -> Floats:
    """d = |w| sqrt(2 ln(1000 / tail)) grid steps."""
    return np.sqrt(squared_weights(sums)) * (math.sqrt(2 * math.log(1 / (OFF_GRID * tail))) / GRID_STEPS)


def _quantiles(rows: Sums, tail: float) -> Floats:
    largest, square = largest_weight(rows), squared_weights(rows)
    live = largest > 0
    out = np.zeros(len(rows))
    if not live.any():
        return out
    rows, largest, square = rows[live], largest[live], square[live]
    period = 10 * np.sqrt(2 * square) + 22 * largest
    order = np.arange(POINTS) + 0.5
    waves = order[None, :] * (2 * math.pi / period)[:, None]
    theta, n1, n2, n3 = (column[:, None] for column in rows.T)
    s2 = waves**2
    log_phi = -n1 * np.log1p((1 - theta) ** 2 * s2) - n2 * np.log1p(theta**2 * s2) - n3 * np.log1p(s2)
    phi = np.exp(log_phi)
    turn = np.exp(1j * math.pi * np.arange(POINTS) / POINTS)[None, :]
    curve = 0.5 - (turn * np.fft.ifft(phi / (math.pi * order), axis=1)).imag * POINTS
    rates = _RATES[None, :] / largest[:, None]
    # Only c up to half a period is read, so that what wraps around lies beyond the other half.
    wrapped = 2 * np.exp((log_moment(rows, rates) - rates * (period / 2)[:, None]).min(axis=1))
    last = waves[:, -1]
    cut = phi[:, -1] * (1 + 1 / (largest * last) ** 2) / (2 * math.pi)
    spare = wrapped + cut + OFF_GRID * tail + FLOAT_SLACK
    half = POINTS // 2
    tails = curve[:, :half] + spare[:, None]
    reached = tails <= tail
    at = np.argmax(reached, axis=1)
    sure = reached.any(axis=1) & (at > 0)
    at = np.maximum(at, 1)
    index = np.arange(len(rows))
    before, after = tails[index, at - 1], tails[index, at]
    step = period / POINTS
    chord = step * (at - 1 + (before - tail) / np.where(sure, before - after, 1.0))
    # A single variable has a closed form, and a law whose Fourier series falls too slowly for the sum above.
    single = (rows[:, 1:] * (weights_of(rows) > 0)).sum(axis=1) == 1
    chord = np.where(single, -largest * math.log(2 * tail * (1 - OFF_GRID)), chord)
    exact = chord + _shift(rows, tail)
    sure |= single
    out[live] = np.where(sure, np.minimum(exact, chernoff(rows, tail)), chernoff(rows, tail))
    return out
