"""The Gaussian kernel exp(-|x - y|^2 / (2 bandwidth^2))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball
from tacit.exact.checks import settle
from tacit.functions.kernels.base import (
    LIBRARY,
    UNIT,
    Balls,
    Kernel,
    dimension_parameter,
    length_parameter,
    squared_distance,
)

__all__ = ["GaussianKernel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianKernel(Kernel):
    """K(x, y) = exp(-|x - y|^2 / (2 bandwidth^2)) on R^d; K(x, x) = 1. Source: Hall 2012, 3.3.1."""

    kind: ClassVar[str] = "gaussian"
    stationary: ClassVar[bool] = True
    bandwidth: float
    dimension: int = 1

    def __post_init__(self) -> None:
        settle(self, bandwidth=length_parameter("bandwidth", self.bandwidth))
        dimension_parameter(self, self.dimension)

    @property
    def sup_diagonal(self) -> float:
        return 1.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {"bandwidth": self.bandwidth}

    @property
    def gram_error(self) -> float:
        """t e^-t <= 1/2 times the relative error of t, and the exponential's own."""
        return (8 + self.dimension) * UNIT / 2 + LIBRARY

    def _gram(self, left: Floats, right: Floats) -> Floats:
        return np.exp(-0.5 * squared_distance(left, right, 1.0 / self.bandwidth))

    def ball(self, left: Balls, right: Balls) -> Ball:
        square = sum(((x - y) ** 2 for x, y in zip(left, right, strict=True)), ball(0))
        return (-square / (2 * ball(self.bandwidth) ** 2)).exp()
