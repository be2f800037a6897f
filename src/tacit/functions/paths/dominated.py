"""Values at given points: floats factor a covariance that is at least the kernel's, and balls round what they make.

Let M be the Gram matrix and A any matrix of floats. With R = M - AA' and a float b, b^2 >= |R|, the noise A z + b w
(z, w independent standard normals) has the covariance AA' + b^2 I, and this is M + (b^2 I - R) with the bracket
positive semidefinite. More noise than M's is at least as private, whatever A is: theorem `gaussian-process-dominated`.
So A may come from a floating-point Cholesky decomposition of a numerically singular M; b is bounded from the residual
that floats compute, with their own error added. Nothing is dropped, and what is added is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.balls import Ball, ball
from tacit.exact.enclosures import Enclosure
from tacit.exact.threads import one_thread
from tacit.functions.kernels import Kernel
from tacit.functions.means import Mean
from tacit.functions.paths.rounding import SharedNormals, float_constant, round_exactly
from tacit.noise.source import Source

__all__ = ["MOST_POINTS", "DominatingFactor", "batch_values", "dominating_factor"]

MOST_POINTS = 8192
INDEFINITE = 2.0**-16


@dataclass(frozen=True, slots=True, kw_only=True)
class DominatingFactor:
    """AA' + own^2 I - M is positive semidefinite; A has `rank` columns."""

    factor: Floats
    own: float

    @property
    def rank(self) -> int:
        """How many normals all the points share."""
        return int(self.factor.shape[1])


def dominating_factor(kernel: Kernel, points: Floats) -> DominatingFactor:
    """A pivoted Cholesky factor of the Gram matrix of distinct points, and what must be added to dominate it."""
    from scipy.linalg.lapack import dpstrf

    m = points.shape[0]
    if m > MOST_POINTS:
        raise NotCertified(
            what="a path at given points", reason=f"{m} points are more than {MOST_POINTS}",
            hint="on_grid takes millions of points, and an expansion is a function that is asked anywhere",
        )  # fmt: skip
    gram = kernel._gram(points, points)
    largest = float(gram.diagonal().max(initial=0.0)) + kernel.gram_error
    with one_thread():
        packed, pivots, rank, info = dpstrf(gram, tol=2.0**-50 * largest, lower=1)
        if info < 0:
            raise NotCertified(what="a Gram matrix", reason="its decomposition failed")
        factor = np.zeros((m, rank))
        factor[pivots - 1] = np.tril(packed)[:, :rank]
        gram -= factor @ factor.T
    # Whatever order a product of k terms is added in, it errs by at most k 2^-53 |row||row|, and each row is short.
    rows = float(np.sqrt((factor**2).sum(axis=1).max(initial=0.0))) * (1 + 2.0**-30)
    each = kernel.gram_error + (rank + 4) * 2.0**-53 * (rows * rows + largest)
    size = (float(np.abs(gram).sum(axis=1).max(initial=0.0)) + m * each) * (1 + 2.0**-30)
    if size > INDEFINITE * largest:
        raise InvalidParameter(
            parameter="kernel", value=type(kernel).__name__, must="be positive definite",
            hint="the Gram matrix of the points asked has a negative eigenvalue",
        )  # fmt: skip
    return DominatingFactor(factor=factor, own=float(np.sqrt(size)) * (1 + 2.0**-30))


def batch_values(
    *, kernel: Kernel, mean: Mean, points: Floats, noise_std: Fraction, step: Fraction, source: Source
) -> tuple[AnyArray, float]:
    """f_D + noise at distinct points, rounded exactly; and the standard deviation of what was added, at any point."""
    made = dominating_factor(kernel, points)
    m, rank = made.factor.shape
    normals = SharedNormals(rank + m, source)
    drawn, sigma = normals.enclosure(), float_constant(noise_std)
    path = drawn[:rank].apply(made.factor) if rank else Enclosure(np.zeros(m))
    reals = (path + drawn[rank:] * made.own) * sigma + mean.enclosed(points)

    def exact(i: int) -> Ball:
        row = (ball(float(a)) * normals.ball(j) for j, a in enumerate(made.factor[i]) if a)
        noise = sum(row, ball(made.own) * normals.ball(rank + i))
        return mean.ball(points[i]) + ball(noise_std) * noise

    values = round_exactly(reals, step, exact, lambda i: normals.extend([*range(rank), rank + i]))
    return values, made.own * float(noise_std) * (1 + 2.0**-40)
