"""The polynomial kernel (offset + <x, y>)^degree on a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball, upper
from tacit.exact.checks import non_negative, settle, whole
from tacit.functions.boxes import Box
from tacit.functions.kernels.base import LIBRARY, UNIT, Balls, Kernel, ordinary_size

__all__ = ["PolynomialKernel"]

MOST_DEGREE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PolynomialKernel(Kernel):
    """K(x, y) = (offset + <x, y>)^degree for x, y in a box: finitely many dimensions, those of the monomials.

    The box is part of the kernel, since K(x, x) has no bound without one.
    """

    kind: ClassVar[str] = "polynomial"
    degree: int
    box: Box
    offset: float = 1.0

    def __post_init__(self) -> None:
        settle(self, degree=whole("degree", self.degree), offset=non_negative("offset", self.offset))
        if self.degree > MOST_DEGREE:
            raise InvalidParameter(parameter="degree", value=self.degree, must=f"be at most {MOST_DEGREE}")
        if not isinstance(self.box, Box):
            raise InvalidParameter(parameter="box", value=type(self.box).__name__, must="be a Box")
        if max(abs(v) for v in (*self.box.lows, *self.box.highs, self.offset)) > 2.0**10:
            raise InvalidParameter(
                parameter="box", value=(self.box.lows, self.box.highs), must="lie within 1024 of 0",
                hint="rescale the columns; powers of large numbers drown the noise's grid",
            )  # fmt: skip
        ordinary_size(self)

    @property
    def dimension(self) -> int:
        return self.box.dimension

    @property
    def sup_diagonal(self) -> float:
        far = [max(abs(a), abs(b)) for a, b in zip(self.box.lows, self.box.highs, strict=True)]
        return upper(lambda: (ball(self.offset) + sum((ball(v) ** 2 for v in far), ball(0))) ** self.degree)

    @property
    def parameters(self) -> dict[str, Any]:
        low, high = list(self.box.lows), list(self.box.highs)
        return {"degree": self.degree, "offset": self.offset, "low": low, "high": high}

    @property
    def gram_error(self) -> float:
        """degree times the relative error of a sum of d + 1 products of sizes at most sup K^(1/degree)."""
        return (2 * self.degree * (self.dimension + 2) * UNIT + LIBRARY) * self.sup_diagonal

    def check_domain(self, points: Floats) -> None:
        self.box.inside(points)

    def _gram(self, left: Floats, right: Floats) -> Floats:
        return np.asarray((self.offset + left @ right.T) ** self.degree, dtype=np.float64)

    def _diagonal(self, points: Floats) -> Floats:
        return np.asarray((self.offset + (points * points).sum(axis=1)) ** self.degree, dtype=np.float64)

    def ball(self, left: Balls, right: Balls) -> Ball:
        return (
            ball(self.offset) + sum((x * y for x, y in zip(left, right, strict=True)), ball(0))
        ) ** self.degree
