"""The law of a perturbed minimiser from its definition: densities on a grid, in one and two dimensions.

w is the minimiser for b = -(gradient of the losses + ridge w), so its density is that of b there times the determinant
of the second derivatives. Nothing here is taken from tacit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit, ndtr

Rows = Sequence[tuple[tuple[float, ...], int]]
"""(the row times its label or with its target, how many of them)."""


def gaussian_delta(epsilon: float, mu: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def logistic(z: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
    """Slope and second derivative of ln(1 + e^-t)."""
    p = expit(-z)
    return -p, p * (1 - p)


def huber(z: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
    """Of Huber's loss with threshold 1."""
    r = z - target
    return np.clip(r, -1, 1), (np.abs(r) <= 1).astype(float)


def log_cosh(z: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
    """Of the log-cosh loss with threshold 1."""
    slope = np.tanh(z - target)
    return slope, 1 - slope**2


def _derivatives(
    rows: Rows, ridge: float, points: np.ndarray, loss: Callable[..., object]
) -> tuple[np.ndarray, np.ndarray]:
    """|b| and the determinant of the second derivatives at points (count, dimension)."""
    count, dimension = points.shape
    gradient = ridge * points
    second = np.repeat(ridge * np.eye(dimension)[None], count, axis=0)
    for row, times in rows:
        x, target = np.array(row[:dimension]), row[-1]
        slope, bend = loss(points @ x, target)
        gradient = gradient + times * slope[:, None] * x
        second = second + times * bend[:, None, None] * np.outer(x, x)
    volume = second[:, 0, 0] if dimension == 1 else np.abs(np.linalg.det(second))
    return np.sqrt((gradient**2).sum(axis=1)), volume


def density(
    rows: Rows, ridge: float, std: float, points: np.ndarray, loss: Callable[..., object] = logistic
) -> np.ndarray:
    """With a Gaussian term, at points (count, dimension); the last entry of a row is its target."""
    length, volume = _derivatives(rows, ridge, points, loss)
    return np.exp(-((length / std) ** 2) / 2) / (2 * math.pi * std**2) ** (points.shape[1] / 2) * volume


def log_density(
    rows: Rows, ridge: float, scale: float, points: np.ndarray, loss: Callable[..., object] = logistic
) -> np.ndarray:
    """With a term of density e^(-|b| / scale) / (its integral), in one or two dimensions: the logarithm."""
    length, volume = _derivatives(rows, ridge, points, loss)
    whole = 2 * scale if points.shape[1] == 1 else 2 * math.pi * scale**2
    return -length / scale - math.log(whole) + np.log(volume)


def largest_losses(
    rows: Rows, other: Rows, *, ridge: float, scale: float, dimension: int = 1, count: int = 0,
    loss: Callable[..., object] = logistic,
) -> tuple[float, float, float]:  # fmt: skip
    """The largest |ln of the ratio of densities| on a wide grid, both ways, and the mass of the first law."""
    total = max(
        (sum(np.linalg.norm(r[:dimension]) * n for r, n in part) for part in (rows, other)), default=0
    )
    far = ((40 if dimension == 1 else 16) * scale + total) / ridge
    if dimension == 1:
        # Dense around 0, where the second derivatives change, and wide.
        grid = np.sinh(np.linspace(-1, 1, count or 40_001) * math.asinh(10 * far)) / 10
        points, cells = grid[:, None], np.gradient(grid)
    else:
        grid = np.linspace(-far, far, count or 301)
        points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
        cells = np.full(len(points), (grid[1] - grid[0]) ** 2)
    p, q = (log_density(r, ridge, scale, points, loss) for r in (rows, other))
    mass = float((np.exp(p) * cells).sum())
    return float((p - q).max()), float((q - p).max()), mass


def axis(
    rows: Rows, other: Rows, ridge: float, std: float, count: int, loss: Callable[..., object] = logistic
) -> np.ndarray:
    """Where the minimisers of both tables may lie in one dimension, points evenly spaced in the term b."""
    total = max(sum(abs(r[0]) * n for r, n in part) for part in (rows, other)) if rows or other else 0.0
    far = (12 * std + total) / ridge
    wide = np.linspace(-far, far, 20001)
    mass = density(rows, ridge, std, wide[:, None], loss) + density(other, ridge, std, wide[:, None], loss)
    kept = wide[mass > 1e-30 * mass.max()]
    step = wide[1] - wide[0]
    return np.linspace(kept[0] - step, kept[-1] + step, count)


def line_deltas(
    rows: Rows, other: Rows, *, ridge: float, std: float, epsilon: float, count: int = 60_001,
    loss: Callable[..., object] = logistic,
) -> tuple[float, float, float]:  # fmt: skip
    """delta(epsilon) of both orders in one dimension, and the whole mass, which is 1 where the grid is fine enough."""
    w = axis(rows, other, ridge, std, count, loss)
    p, q = (density(r, ridge, std, w[:, None], loss) for r in (rows, other))
    step, t = w[1] - w[0], math.exp(epsilon)
    both = [float(np.maximum(a - t * b, 0).sum() * step) for a, b in ((p, q), (q, p))]
    return both[0], both[1], float(p.sum() * step)


def plane_deltas(
    rows: Rows, other: Rows, *, ridge: float, std: float, epsilon: float, count: int = 401,
    loss: Callable[..., object] = logistic,
) -> tuple[float, float, float]:  # fmt: skip
    """The same in two dimensions."""
    far = 9 * std / ridge
    grid = np.linspace(-far, far, 201)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = density(rows, ridge, std, points, loss) + density(other, ridge, std, points, loss)
    kept = points[mass > 1e-12 * mass.max()]
    low, high = kept.min(axis=0) - far / 100, kept.max(axis=0) + far / 100
    axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    p, q = (density(r, ridge, std, points, loss) for r in (rows, other))
    cell, t = float(np.prod([a[1] - a[0] for a in axes])), math.exp(epsilon)
    both = [float(np.maximum(a - t * b, 0).sum() * cell) for a, b in ((p, q), (q, p))]
    return both[0], both[1], float(p.sum() * cell)
