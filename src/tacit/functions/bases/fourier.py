"""The Fourier basis on a box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import settle
from tacit.functions.bases.series import SeriesBasis, orders_of

__all__ = ["FourierBasis"]

MOST_ORDER = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierBasis(SeriesBasis):
    """1, sqrt(2) cos(2 pi j u), sqrt(2) sin(2 pi j u) for j = 1 .. order along each coordinate, and their products.

    |phi(x)|^2 = prod (2 order_k + 1), for every row. The curve is periodic: it has the same value at both ends of a
    side. Source: Hall 2012, 3.1.1; Wasserman, Zhou 2010.
    """

    kind: ClassVar[str] = "fourier"
    order: int | Sequence[int]

    def __post_init__(self) -> None:
        self._check()
        settle(self, order=orders_of("order", self.order, self.dimension, most=MOST_ORDER))
        self._check_size()

    @property
    def orders(self) -> tuple[int, ...]:
        """The highest frequency along each coordinate."""
        assert isinstance(self.order, tuple)
        return self.order

    @property
    def parameters(self) -> dict[str, Any]:
        return {"order": list(self.orders)}

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return tuple(2 * j + 1 for j in self.orders)

    def _axis_unit(self, axis: int, u: Floats) -> Floats:
        angle = 2 * math.pi * np.mod(np.outer(u, np.arange(1, self.orders[axis] + 1)), 1.0)
        out = np.empty((u.size, self.axis_sizes[axis]))
        out[:, 0] = 1.0
        out[:, 1::2] = math.sqrt(2) * np.cos(angle)
        out[:, 2::2] = math.sqrt(2) * np.sin(angle)
        return out
