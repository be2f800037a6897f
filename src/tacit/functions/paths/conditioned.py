"""A path of any kernel, extended point by point by conditioning on all the points before.

Cholesky in the order of the questions, in ball arithmetic: Y_i = sum_{j <= i} L_ij W_j with the white coordinates
W_j = (L^-1 f_D)_j + noise_std z_j. Where the conditional variance of a new point is below 2^-64 sup K(x, x), the Gram
matrix is singular for all purposes: the point gets no noise of its own, and its answer is the interpolation
sum_j l_j W_j of the noisy values that were there before. That is post-processing, so privacy is untouched; it is off
the ideal path by at most 2^-32 sqrt(sup K) times (|f_D| + a normal number's size times noise_std). Where balls grow too
wide, all is computed again with twice the bits. Theorem `gaussian-process-online`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball, precision
from tacit.functions.kernels import Kernel
from tacit.functions.means import Mean
from tacit.functions.paths.normals import KeptNormal, draw_normals
from tacit.noise.source import Source

__all__ = ["ConditionedPath"]

BITS = 320
SINGULAR = 2.0**-64
MOST_BITS = 1 << 15
MOST_BASIS = 600


class _Wide(Exception):
    """The balls are too wide to decide."""


class ConditionedPath:
    """Noisy values at points asked one after the other; the same point always has the same value."""

    def __init__(self, *, kernel: Kernel, mean: Mean, noise_std: Fraction) -> None:
        self.kernel, self.mean, self.noise_std = kernel, mean, noise_std
        self._points: list[Floats] = []
        self._rows: list[list[Ball]] = []
        self._normals: list[KeptNormal] = []
        self._mean: list[Ball] = []
        self._white: list[Ball] = []
        self.dropped_std, self.bits = 0.0, BITS

    @property
    def rank(self) -> int:
        """How many points have noise of their own."""
        return len(self._rows)

    def value(self, point: Floats, source: Source) -> Ball:
        """f_D + noise at a point that was not asked before."""
        while True:
            try:
                with precision(self.bits):
                    return self._extended(point, source)
            except _Wide:
                self._deepen()

    def normals(self, start: int) -> list[KeptNormal]:
        """Those of the points with noise of their own, from the `start`-th on."""
        return self._normals[start:]

    def forget(self, rank: int) -> None:
        """Go back to the first `rank` points with noise of their own: what came after was never told."""
        for column in (self._points, self._rows, self._normals, self._mean, self._white):
            del column[rank:]

    def restore(self, points: Floats, normals: Sequence[KeptNormal]) -> None:
        """Add points that have noise of their own, with the normals that were kept."""
        for x, normal in zip(points, normals, strict=True):
            while True:
                try:
                    with precision(self.bits):
                        row, pivot = self._row([ball(float(v)) for v in x])
                        self._join(x, row, pivot, normal)
                    break
                except _Wide:
                    self._deepen()
            self._normals.append(normal)

    def _deepen(self) -> None:
        """Compute all again with twice the bits; the points and their normal numbers stay."""
        self.bits *= 2
        if self.bits > MOST_BITS:
            raise NotCertified(
                what="a path's conditional variance", reason=f"{MOST_BITS} bits do not determine it",
                hint="ask fewer points that lie close together",
            )  # fmt: skip
        points, self._points = self._points, []
        self._rows, self._mean, self._white = [], [], []
        try:
            with precision(self.bits):
                for x, normal in zip(points, self._normals, strict=True):
                    row, pivot = self._row([ball(float(v)) for v in x])
                    self._join(x, row, pivot, normal)
        except _Wide:
            self._points = points
            self._deepen()

    def _row(self, x: list[Ball]) -> tuple[list[Ball], Ball]:
        """L^-1 k(x), and what is left of K(x, x)."""
        row: list[Ball] = []
        for known, before in zip(self._points, self._rows, strict=True):
            total = self.kernel.ball(x, [ball(float(v)) for v in known])
            for a, b in zip(before, row, strict=False):
                total -= a * b
            row.append(total / before[-1])
        pivot = self.kernel.ball(x, x) - sum((a * a for a in row), ball(0))
        if not pivot.is_finite() or float(pivot.rad()) > SINGULAR * self.kernel.sup_diagonal / 1024:
            raise _Wide
        return row, pivot

    def _extended(self, point: Floats, source: Source) -> Ball:
        row, pivot = self._row([ball(float(v)) for v in point])
        middle, limit = float(pivot.mid()), SINGULAR * self.kernel.sup_diagonal
        if middle < -limit:
            raise InvalidParameter(
                parameter="kernel", value=type(self.kernel).__name__, must="be positive definite",
                hint="the Gram matrix of the points asked has a negative eigenvalue",
            )  # fmt: skip
        if middle <= limit:
            # The weights are fixed public numbers, whatever their error: this is post-processing.
            self.dropped_std = max(self.dropped_std, float(np.sqrt(max(middle, 0.0))))
            return sum((a.mid() * w for a, w in zip(row, self._white, strict=True)), ball(0))
        if len(self._rows) >= MOST_BASIS:
            raise NotCertified(
                what="a path", reason=f"its kernel needs more than {MOST_BASIS} independent points",
                hint="ask at fewer points, or release the expansion",
            )  # fmt: skip
        normal = draw_normals(1, source)[0]
        value = self._join(point, row, pivot, normal)
        self._normals.append(normal)
        return value

    def _join(self, point: Floats, row: list[Ball], pivot: Ball, normal: KeptNormal) -> Ball:
        """Give the point noise of its own; the noisy value there."""
        own = pivot.sqrt()
        white = self.mean.ball(point) - sum((a * m for a, m in zip(row, self._mean, strict=True)), ball(0))
        white /= own
        self._points.append(point)
        self._rows.append([*row, own])
        self._mean.append(white)
        self._white.append(white + ball(self.noise_std) * normal.ball())
        return sum((a * w for a, w in zip(self._rows[-1], self._white, strict=True)), ball(0))
