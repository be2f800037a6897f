"""Kernel density estimates whose kernel is reflected at the edges of the box: no mass leaves it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.functions.densities.kde import TAIL, WRAPPED, GaussianKDE

__all__ = ["ReflectedKDE"]

WIDEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectedKDE(GaussianKDE):
    """The Gaussian kernel density estimate with every bump's part outside of the box folded back at its edges.

    For densities that do not fall to 0 at the edges, where the plain estimate shows half of them. The kernel is up to
    2^d times as high in a corner as inside, so that the sensitivity is 2^(d/2) times that of `GaussianKDE`:
    sqrt(2) 2^(d/2) / (size (2 pi)^(d/2) prod h_k). The curve has the integral one before noise, exactly.
    Theorem `density-kde`.
    """

    kind: ClassVar[str] = "reflected kde"

    def __post_init__(self) -> None:
        GaussianKDE.__post_init__(self)
        for h, side in zip(self.bandwidths, self.box.sides, strict=True):
            if h > side / WIDEST:
                raise InvalidParameter(
                    parameter="bandwidth", value=h, must=f"be at most 1/{WIDEST} of the side of the box"
                )

    def _period(self, axis: int) -> float:
        return 2 * float(self.box.sides[axis])

    def _around(self, axis: int) -> float:
        return float(self.box.sides[axis])

    def _axis_weights(self, axis: int) -> Floats:
        """The squares of phi's sizes: 2 c_0, then 4 c_j for a cosine."""
        c = self._weights(axis)
        return np.concatenate([2 * c[:1], 4 * c[1:]])

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return tuple(self._weights(k).size for k in range(self.dimension))

    def _axis_features(self, axis: int, x: Floats) -> Floats:
        turn = (x - self.box.lows[axis]) / self._period(axis)
        angle = 2 * math.pi * np.mod(np.outer(turn, np.arange(self.axis_sizes[axis])), 1.0)
        return np.asarray(np.sqrt(self._axis_weights(axis)) * np.cos(angle))

    def _axis_kernel(self, axis: int) -> tuple[float, float]:
        """Two images of a row can meet at an edge; the kernel is never negative."""
        return 2 * WRAPPED, 0.0

    @property
    def truncation(self) -> float:
        return float(2**self.dimension) * self.height * (TAIL + self.dimension * 2.0**-40)

    def pair_range(self, size: int) -> tuple[float, float]:
        """At least -2 sup B, at most sup B2."""
        top = self.height * (2 * WRAPPED) ** self.dimension
        inexact = 4 * self.height * (TAIL + 2.0**-40)
        return -2 * top - inexact, self.square_top() + inexact

    def square_top(self) -> float:
        return GaussianKDE.square_top(self) * float(2**self.dimension)
