"""Functions that data define, before noise: what a release adds its path to. They are secret."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.balls import Ball, ball
from tacit.exact.enclosures import Enclosure
from tacit.exact.rationals import Exact, exact_parameter
from tacit.functions.boxes import Floats, as_points
from tacit.functions.kernels import Kernel

__all__ = ["KernelCombination", "Mean"]

ROWS = 256
BLOCK = 1 << 21
KERNEL_ERROR = 2.0**-40
"""How far a kernel's floats may be from its value, relative to sup K(x, x); tests compare with balls."""


class Mean(ABC):
    """f_D: known in floats with a radius, and as a ball at any precision."""

    __slots__ = ()

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d."""

    @abstractmethod
    def enclosed(self, points: Floats) -> Enclosure:
        """f_D at the points (m, d), in floats with proved radii."""

    @abstractmethod
    def ball(self, point: Floats) -> Ball:
        """f_D at one point, at the working precision."""

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """f_D at the points, in floats: for the custodian's eyes."""
        return self.enclosed(as_points(points, self.dimension)).mid


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCombination(Mean):
    """f_D = sum_i a_i K(x_i, .): a kernel density estimate, a support vector machine, a ridge regression.

    The floats given are taken as the exact numbers that they are. `absolute_sum` is a public bound on sum |a_i|: it
    is part of what is proved about the family, never computed from the data. No row is ever printed.
    """

    kernel: Kernel
    points: npt.ArrayLike = field(repr=False)
    coefficients: npt.ArrayLike = field(repr=False)
    absolute_sum: Exact

    def __post_init__(self) -> None:
        points = as_points(self.points, self.kernel.dimension)
        weights = np.ascontiguousarray(self.coefficients, dtype=np.float64).ravel()
        if weights.size != points.shape[0] or not bool(np.isfinite(weights).all()):
            raise InvalidParameter(
                parameter="coefficients", value="an array", must="hold one finite number for each point"
            )
        if float(np.abs(weights).sum()) > float(exact_parameter("absolute_sum", self.absolute_sum)) * (
            1 + 2.0**-30
        ):
            raise InvalidParameter(
                parameter="absolute_sum", value="a bound", must="be at least the sum of the coefficients' sizes",
                hint="it is proved for the family: for a density estimate it is sup K(x, x) over its normalisation",
            )  # fmt: skip
        self.kernel.check_domain(points)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "coefficients", weights)

    @property
    def at(self) -> Floats:
        """The x_i, as an array (n, d)."""
        return np.asarray(self.points)

    @property
    def weights(self) -> Floats:
        """The a_i."""
        return np.asarray(self.coefficients)

    @property
    def dimension(self) -> int:
        return self.kernel.dimension

    def squared_norm(self) -> float:
        """|f_D|^2 in the RKHS of its kernel."""
        return self.kernel.squared_norm(self.at, self.weights)

    def enclosed(self, points: Floats) -> Enclosure:
        out = np.zeros(points.shape[0])
        step = max(1, BLOCK // max(1, points.shape[0]))
        for start in range(0, self.at.shape[0], step):
            gram = self.kernel._gram(points, self.at[start : start + step])
            out += gram @ self.weights[start : start + step]
        size = float(np.abs(self.weights).sum()) * self.kernel.sup_diagonal
        rad = size * (KERNEL_ERROR + self.at.shape[0] * 2.0**-51) + 1e-300
        return Enclosure(out, rad)

    def ball(self, point: Floats) -> Ball:
        x = [ball(float(v)) for v in point]
        total = ball(0)
        for row, weight in zip(self.at, self.weights, strict=True):
            total += ball(float(weight)) * self.kernel.ball(x, [ball(float(v)) for v in row])
        return total
