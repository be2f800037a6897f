"""The gridded histogram, as a family of densities: the simple rival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import settle
from tacit.functions.bases.series import SeriesBasis, orders_of

__all__ = ["HistogramBasis"]

MOST_BINS = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBasis(SeriesBasis):
    """`bins` equal cells along each coordinate: phi is 1 in a row's cell and 0 elsewhere, times the root of `bins`.

    One replaced row moves two cells: sqrt(2) in Euclidean length and 2 in absolute sum, times that root.
    """

    kind: ClassVar[str] = "histogram"
    _width: ClassVar[str] = "bins"
    bins: int | Sequence[int]

    def __post_init__(self) -> None:
        self._check()
        settle(self, bins=orders_of("bins", self.bins, self.dimension, least=1, most=MOST_BINS))
        self._check_size()

    @property
    def cells(self) -> tuple[int, ...]:
        assert isinstance(self.bins, tuple)
        return self.bins

    @property
    def parameters(self) -> dict[str, Any]:
        return {"bins": list(self.cells)}

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.cells

    def _axis_unit(self, axis: int, u: Floats) -> Floats:
        count = self.cells[axis]
        cell = np.clip((u * count).astype(int), 0, count - 1)
        out = np.zeros((u.size, count))
        out[np.arange(u.size), cell] = np.sqrt(count)
        return out

    def _axis_kernel(self, axis: int) -> tuple[float, float]:
        """Two cells share nothing."""
        return float(self.cells[axis]), 0.0

    def _one_move(self) -> float | None:
        return None

    def _l1_ends(self) -> tuple[float, float]:
        from tacit.functions.bases.families import INFLATED

        length = float(np.prod([np.sqrt(c) for c in self.cells])) * INFLATED
        return length, 2 * length
