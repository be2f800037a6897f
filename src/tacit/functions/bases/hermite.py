"""Hermite functions, centred in the box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import settle
from tacit.functions.bases.series import SeriesBasis, hermite_functions, orders_of

__all__ = ["HermiteBasis"]

MOST_ORDER = 200
REACH = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HermiteBasis(SeriesBasis):
    """The first `order` Hermite functions of (x - middle) / scale along each coordinate, and their products.

    They are orthonormal on the whole line, of which the box sees the part where the first `order` of them live: the
    turning point of the last one, sqrt(2 order + 1), is put at the box's ends. For densities with one hump and light
    tails. Source: Hall 2012, 3.1.1; Schwartz 1967.
    """

    kind: ClassVar[str] = "hermite"
    order: int | Sequence[int]

    def __post_init__(self) -> None:
        self._check()
        settle(self, order=orders_of("order", self.order, self.dimension, least=1, most=MOST_ORDER))
        self._check_size()

    @property
    def orders(self) -> tuple[int, ...]:
        """How many functions there are along each coordinate."""
        assert isinstance(self.order, tuple)
        return self.order

    @property
    def parameters(self) -> dict[str, Any]:
        return {"order": list(self.orders)}

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.orders

    def _axis_unit(self, axis: int, u: Floats) -> Floats:
        # t runs over [-r, r] as u runs over [0, 1]; the root of 2 r keeps the functions orthonormal in u.
        reach = math.sqrt(2 * self.orders[axis] + 1) + REACH
        return np.asarray(math.sqrt(2 * reach) * hermite_functions(self.orders[axis], (2 * u - 1) * reach))
