"""Matérn kernels of smoothness 1/2, 3/2 and 5/2."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball
from tacit.exact.checks import settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.functions.kernels.base import (
    LIBRARY,
    UNIT,
    Balls,
    Kernel,
    dimension_parameter,
    length_parameter,
    squared_distance,
)

__all__ = ["MaternKernel"]

SMOOTHNESS = (Fraction(1, 2), Fraction(3, 2), Fraction(5, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaternKernel(Kernel):
    """K(x, y) = p(r) e^(-r) with r = sqrt(2 smoothness) |x - y| / length.

    p is 1, 1 + r and 1 + r + r^2/3 for smoothness 1/2, 3/2 and 5/2. K(x, x) = 1; positive definite in every dimension.
    """

    kind: ClassVar[str] = "matern"
    stationary: ClassVar[bool] = True
    length: float
    smoothness: Exact
    dimension: int = 1

    def __post_init__(self) -> None:
        settle(self, length=length_parameter("length", self.length))
        smoothness = exact_parameter("smoothness", self.smoothness)
        if smoothness not in SMOOTHNESS:
            raise InvalidParameter(
                parameter="smoothness", value=self.smoothness, must="be 1/2, 3/2 or 5/2",
                hint="these have closed forms; GaussianKernel is the limit of ever smoother ones",
            )  # fmt: skip
        settle(self, smoothness=float(smoothness))
        dimension_parameter(self, self.dimension)

    @property
    def order(self) -> int:
        """The number of derivatives, and one: the length of the Markov state for d = 1."""
        return int(float(self.smoothness) + 0.5)

    @property
    def sup_diagonal(self) -> float:
        return 1.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {"length": self.length, "smoothness": float(self.smoothness)}

    @property
    def gram_error(self) -> float:
        """|r k'(r)| <= 1 for all three, times the relative error of r; and that of the factors."""
        return (12 + self.dimension) * UNIT + 2 * LIBRARY

    def _gram(self, left: Floats, right: Floats) -> Floats:
        scale = float(np.sqrt(2 * float(self.smoothness)) / self.length)
        # Beyond 10^4 the exponential is 0 in floats, and infinity times 0 would be no number.
        r = np.minimum(np.sqrt(squared_distance(left, right, scale)), 1e4)
        factor = (1.0, 1.0 + r, 1.0 + r + r * r / 3)[self.order - 1]
        return np.asarray(factor * np.exp(-r), dtype=np.float64)

    def ball(self, left: Balls, right: Balls) -> Ball:
        square = sum(((x - y) ** 2 for x, y in zip(left, right, strict=True)), ball(0))
        r = (square.nonnegative_part() * ball(2 * Fraction(self.smoothness))).sqrt() / ball(self.length)
        factor = (ball(1), 1 + r, 1 + r + r * r / 3)[self.order - 1]
        return factor * (-r).exp()
