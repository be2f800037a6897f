"""The Gaussian kernel exp(-|x - y|^2 / (2 bandwidth^2))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.exact.balls import Ball, ball
from tacit.exact.checks import settle
from tacit.functions.boxes import Floats
from tacit.functions.kernels.base import (
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

    def _gram(self, left: Floats, right: Floats) -> Floats:
        scale = 1.0 / self.bandwidth
        return np.exp(-0.5 * squared_distance(left * scale, right * scale))

    def ball(self, left: Balls, right: Balls) -> Ball:
        square = sum(((x - y) ** 2 for x, y in zip(left, right, strict=True)), ball(0))
        return (-square / (2 * ball(self.bandwidth) ** 2)).exp()
