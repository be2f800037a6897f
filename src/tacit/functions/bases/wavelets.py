"""Wavelets on a box, by the periodic discrete wavelet transform of a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.checks import settle, text, whole
from tacit.functions.bases.series import SeriesBasis

__all__ = ["WaveletBasis"]

LATTICE_LEVELS = {1: 10, 2: 8, 3: 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveletBasis(SeriesBasis):
    """The 2^levels coarsest periodic wavelets along each coordinate, and their products.

    `wavelet` is a name of PyWavelets'. The functions are constant on the cells of a lattice, where the transform is an
    orthogonal matrix: orthonormal exactly. One scaling function and details of `levels` scales. Orthogonal wavelets
    only: haar, db, sym, coif. Source: Hall 2012, 3.1.1.
    """

    kind: ClassVar[str] = "wavelet"
    _width: ClassVar[str] = "levels"
    levels: int
    wavelet: str = "db4"

    def __post_init__(self) -> None:
        self._check()
        settle(self, levels=whole("levels", self.levels, least=0), wavelet=text("wavelet", self.wavelet))
        if self.levels >= self._lattice:
            raise InvalidParameter(
                parameter="levels",
                value=self.levels,
                must=f"be below {self._lattice} in {self.dimension} dimensions",
            )
        _filter(self.wavelet)
        self._check_size()

    @property
    def _lattice(self) -> int:
        return LATTICE_LEVELS.get(self.dimension, 5)

    @property
    def cells(self) -> tuple[int, ...]:
        return (1 << self._lattice,) * self.dimension

    @property
    def parameters(self) -> dict[str, Any]:
        return {"levels": self.levels, "wavelet": self.wavelet}

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return (1 << self.levels,) * self.dimension

    def _axis_unit(self, axis: int, u: Floats) -> Floats:
        count = self.cells[axis]
        cell = np.clip((u * count).astype(int), 0, count - 1)
        return np.asarray(_matrix(self.wavelet, self._lattice)[cell, : 1 << self.levels])


def _filter(name: str) -> Any:
    import pywt

    known = [n for n in pywt.wavelist(kind="discrete") if pywt.Wavelet(n).orthogonal]
    if name not in known:
        raise UnknownName(what="orthogonal wavelet", name=name, known=known)
    return pywt.Wavelet(name)


@lru_cache(maxsize=8)
def _matrix(name: str, lattice: int) -> Floats:
    """The basis at every cell, an array (2^lattice, 2^lattice), coarse functions first; columns have mean square 1."""
    import warnings

    import pywt

    count = 1 << lattice
    with warnings.catch_warnings():
        # Wavelets longer than the coarsest signal are wrapped round, as periodic ones are meant to be.
        warnings.simplefilter("ignore")
        parts = pywt.wavedec(np.eye(count), _filter(name), mode="periodization", level=lattice, axis=1)
    matrix = np.concatenate(parts, axis=1)
    # PyWavelets' filters are rounded to about 12 digits; the nearest orthogonal matrix makes up for it.
    for _ in range(2):
        matrix = matrix @ (1.5 * np.eye(count) - 0.5 * (matrix.T @ matrix))
    matrix = matrix * math.sqrt(count)
    matrix.setflags(write=False)
    return np.asarray(matrix)
