"""Strategies for linear queries: blocks of integer queries with noise, and the answers by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import Floats, Integers
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm
from tacit.mechanisms.rounded_gaussian import RoundedGaussian

__all__ = ["Noise", "Strategy", "covariance_of", "optimised", "total_error"]

Noise = Laplace | RoundedGaussian | PolytopeNorm | RangeNorm | KNorm

_ROUNDS = 25
_ROWS = 256
_NODES = 48


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strategy:
    """Blocks of integer queries, and the variance of each block's noise (0 where it is exact)."""

    blocks: tuple[Integers, ...]
    variances: tuple[float, ...]

    @property
    def stacked(self) -> Floats:
        """All queries, one after the other."""
        return np.vstack(self.blocks).astype(np.float64)

    def solver(self, matrix: Integers) -> Floats | None:
        """The matrix from strategy answers to least-squares answers; None if they do not determine the queries.

        Exact blocks are constraints: x = E^+ e + N z with N a basis of the null space of E, and z by least squares.
        """
        if len(self.blocks) == 1 and self.blocks[0].shape[0] == self.blocks[0].shape[1]:
            block = self.blocks[0]
            if bool((block == np.eye(len(block))).all()):
                return matrix.astype(np.float64)
        exact = np.repeat([v == 0 for v in self.variances], [len(b) for b in self.blocks])
        each = [1 / v if v > 0 else 0.0 for v in self.variances]
        a, w = self.stacked, np.repeat(each, [len(b) for b in self.blocks])[~exact]
        known, free = _null_space(a[exact])
        noisy, wanted = a[~exact] @ free, matrix @ free
        inner = wanted @ _pseudo_inverse((noisy * w[:, None]).T @ noisy) @ (noisy * w[:, None]).T
        solve = np.zeros((len(matrix), len(a)))
        solve[:, ~exact] = inner
        solve[:, exact] = matrix @ known - inner @ (a[~exact] @ known)
        off = np.abs(solve @ a - matrix).max()
        return solve if off <= 1e-6 * np.abs(matrix).max() else None


def _null_space(exact: Floats) -> tuple[Floats, Floats]:
    """The pseudo-inverse of the exact queries, and a basis of what they leave open."""
    cells = exact.shape[1]
    if not len(exact):
        return np.zeros((cells, 0)), np.eye(cells)
    u, sizes, v = np.linalg.svd(exact, full_matrices=True)
    rank = int((sizes > 1e-10 * sizes[0]).sum())
    return (v[:rank].T / sizes[:rank]) @ u[:, :rank].T, v[rank:].T


def _pseudo_inverse(gram: Floats) -> Floats:
    scale = np.sqrt(np.maximum(gram.diagonal(), 1e-300))
    try:
        # Far from singular the plain inverse will do, and is faster.
        if float(np.linalg.cholesky(gram / np.outer(scale, scale)).diagonal().min()) > 1e-4:
            return np.asarray(np.linalg.inv(gram / np.outer(scale, scale)) / np.outer(scale, scale))
    except np.linalg.LinAlgError:
        pass
    eigen, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    inverse = np.where(eigen > 1e-11 * eigen[-1], 1 / np.maximum(eigen, 1e-300), 0.0)
    return np.asarray((vectors * inverse) @ vectors.T / np.outer(scale, scale))


def optimised(
    matrix: Integers, blocks: Sequence[Integers], moved: Floats, shares: Floats, *, gaussian: bool
) -> Floats:
    """Shares of the budget that lower the total squared error: stationary shares of a fixed-point iteration.

    Gaussian noise: the precision of block l is share_l / moved_l (moved = squared L2 sensitivity) and the problem is
    convex. Laplace: share_l^2 / (2 moved_l^2). With g_l = -d error / d precision_l, at the optimum share_l is
    proportional to precision_l * g_l; the best shares met are returned, so that they never lose to equal ones.
    """
    free = moved > 0
    fixed = [b for b, f in zip(blocks, free, strict=True) if not f]
    _, open_ = _null_space(np.vstack(fixed).astype(np.float64) if fixed else np.zeros((0, matrix.shape[1])))
    grams = [(b @ open_).T @ (b @ open_) for b, f in zip(blocks, free, strict=True) if f]
    h = (matrix @ open_).T @ (matrix @ open_)
    move, now = moved[free], shares[free]
    power = 1 if gaussian else 2
    best, least = now, np.inf
    for _ in range(_ROUNDS):
        precision = now / move if gaussian else (now / move) ** 2 / 2
        gram = np.sum([p * g for p, g in zip(precision, grams, strict=True)], axis=0)
        inverse = _pseudo_inverse(gram)
        inner = inverse @ h
        error = float(np.trace(inner))
        if error >= least * (1 - 1e-3):
            break
        best, least = now, error
        slopes = np.array([max(float((g * (inner @ inverse)).sum()), 0.0) for g in grams])
        pull = (precision * slopes * now**power) ** (1 / (1 + power))
        now = pull / pull.sum()
    out = np.zeros(len(blocks))
    out[free] = best
    return out


def covariance_of(mechanism: PolytopeNorm | RangeNorm | KNorm) -> Floats:
    """E X X' of shaped noise, rounding to the grid counted as uniform."""
    return np.asarray(mechanism.covariance + np.eye(mechanism.coordinates) / 12)


def variance_of(mechanism: Laplace | RoundedGaussian | None) -> float:
    """The variance of one coordinate's noise."""
    if mechanism is None:
        return 0.0
    if isinstance(mechanism, RoundedGaussian):
        return float(mechanism.noise_std) ** 2 + 1 / 12
    return mechanism.noise_std**2


def total_error(solve: Floats, strategy: Strategy, mechanisms: Sequence[Noise | None]) -> tuple[float, float]:
    """The expected sums of squared and of absolute errors of all answers."""
    parts = np.split(solve, np.cumsum([len(b) for b in strategy.blocks])[:-1], axis=1)
    for part, shaped in zip(parts, mechanisms, strict=True):
        if isinstance(shaped, PolytopeNorm | RangeNorm | KNorm):
            # Any other block is exact.
            spread = np.einsum("ij,jk,ik->i", part, covariance_of(shaped), part)
            return float(spread.sum()), float(_shaped_sizes(part, spread, shaped).sum())
    spread = np.sum([v * (p**2).sum(axis=1) for v, p in zip(strategy.variances, parts, strict=True)], axis=0)
    if not any(isinstance(m, Laplace) for m in mechanisms):
        return float(spread.sum()), float(np.sqrt(2 / np.pi * spread).sum())
    # Of many queries some, at even distances: this steers a choice and nothing else.
    some = np.linspace(0, len(solve) - 1, min(_ROWS, len(solve))).astype(np.int64)
    loads = np.hstack([np.sqrt(v / 2) * p[some] for v, p in zip(strategy.variances, parts, strict=True)])
    ratio = float(_laplace_sizes(loads).sum() / max(float(np.sqrt(spread[some]).sum()), 1e-300))
    return float(spread.sum()), ratio * float(np.sqrt(spread).sum())


def _laplace_sizes(loads: Floats) -> Floats:
    """E |sum a_k L_k|, L_k standard Laplace: (2/pi) int (1 - prod 1/(1 + a_k^2 t^2)) / t^2 dt."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    u = np.tan((nodes + 1) * np.pi / 4)
    size = np.sqrt(2 * (loads**2).sum(axis=1))
    square = np.divide(loads, size[:, None], out=np.zeros_like(loads), where=size[:, None] > 0) ** 2
    out = np.zeros(len(loads))
    for value, weight in zip(u, weights, strict=True):
        phi = np.exp(-np.log1p(square * value**2).sum(axis=1))
        out += weight * np.pi / 4 * (1 - phi) * (1 + 1 / value**2)
    return np.asarray(2 / np.pi * out * size)


def _shaped_sizes(solve: Floats, spread: Floats, mechanism: PolytopeNorm | RangeNorm | KNorm) -> Floats:
    """E |c X| where it is known; the standard deviation, which is above it, otherwise."""
    if isinstance(mechanism, PolytopeNorm):
        return np.minimum(mechanism.mean_sizes(solve), np.sqrt(spread))
    d, scale = mechanism.coordinates, float(mechanism._scale)
    single = (d + 2) / 3 * scale if isinstance(mechanism, RangeNorm) else (d + 1) / 2 * scale
    alone = (np.abs(solve) > 1e-9).sum(axis=1) == 1
    return np.where(alone, np.abs(solve).max(axis=1) * single, np.sqrt(spread))
