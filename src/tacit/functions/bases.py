"""Basis expansions of densities: Fourier, Hermite, wavelets, and the histogram as the simple rival."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.functions.density_families import DensityFamily

__all__ = ["FourierBasis", "HermiteBasis", "HistogramBasis", "SeriesBasis", "WaveletBasis"]

# What all orthonormal bases share: coefficients are means of the basis functions, and errors come in two parts.

CELLS = {1: 1024, 2: 512, 3: 256}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesBasis(DensityFamily):
    """f_D(x) = sum_j theta_j psi_j(x), theta_j = (1 / size) sum_i psi_j(x_i): an orthogonal series estimate.

    psi is orthonormal in the unit of the box, phi = psi, and `height` turns a density of the unit box into one of the
    box itself. Sensitivities are maxima over all pairs of points of the lattice for rows: theorem
    `density-lattice`. Source: Hall 2012, 3.1.1.
    """

    orthonormal: ClassVar[bool] = True

    @property
    def cells(self) -> tuple[int, ...]:
        return (CELLS.get(self.dimension, 64),) * self.dimension

    @property
    def height(self) -> float:
        return 1 / self.volume

    @abstractmethod
    def _axis_unit(self, axis: int, u: Floats) -> Floats:
        """The functions of one coordinate, at u in [0, 1]."""

    def _axis_features(self, axis: int, x: Floats) -> Floats:
        u = (x - self.box.lows[axis]) / float(self.box.sides[axis])
        return self._axis_unit(axis, u)

    def square_weights(self) -> Floats:
        """g with integral of f_D^2 = sum_j g_j w_j^2 / size^2."""
        return np.full(self.coefficients, self.height)

    def pair_range(self, size: int) -> tuple[float, float]:
        """The least and largest of ((size - 1)/size - 2) B(x, y), B(x, y) = height phi(x) . phi(y)."""
        length, against = self._products_of_ends()
        factor = (1 + 1 / size) * self.height
        return -factor * length, factor * against

    def square_top(self) -> float:
        """sup of the integral of B(x, .)^2."""
        return self.height * self._ends()[0]


def orders_of(name: str, value: object, dimension: int, *, least: int = 0, most: int) -> tuple[int, ...]:
    """One order for all coordinates, or one each."""
    given = (value,) * dimension if is_number(value) or isinstance(value, bool) else members(name, value)
    if len(given) != dimension:
        raise InvalidParameter(parameter=name, value=f"{len(given)} numbers", must=f"be one, or {dimension}")
    found = tuple(whole(name, v, least=least) for v in given)
    if max(found) > most:
        raise InvalidParameter(parameter=name, value=max(found), must=f"be at most {most}")
    return found


def hermite_functions(count: int, t: Floats) -> Floats:
    """psi_0 .. psi_{count-1} at t: orthonormal on the line, by their three-term recursion."""
    out = np.empty((t.size, count))
    before = np.zeros_like(t)
    now = np.exp(-0.5 * t * t) / math.pi**0.25
    for k in range(count):
        out[:, k] = now
        before, now = now, math.sqrt(2 / (k + 1)) * t * now - math.sqrt(k / (k + 1)) * before
    return out


# The Fourier basis on a box.

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
        set_fields(self, order=orders_of("order", self.order, self.dimension, most=MOST_ORDER))
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


# Hermite functions, centred in the box.

MOST_HERMITE_ORDER = 200
REACH = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HermiteBasis(SeriesBasis):
    """The first `order` Hermite functions of (x - middle) / scale along each coordinate, and their products.

    They are orthonormal on the whole line. The box covers the region of the first `order` of them: its ends are
    at the turning point of the last one, sqrt(2 order + 1). For densities with one hump and light tails.
    Source: Hall 2012, 3.1.1; Schwartz 1967.
    """

    kind: ClassVar[str] = "hermite"
    order: int | Sequence[int]

    def __post_init__(self) -> None:
        self._check()
        set_fields(
            self, order=orders_of("order", self.order, self.dimension, least=1, most=MOST_HERMITE_ORDER)
        )
        self._check_size()

    @property
    def orders(self) -> tuple[int, ...]:
        """The number of functions along each coordinate."""
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


# The gridded histogram, as a family of densities: the simple rival.

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
        set_fields(self, bins=orders_of("bins", self.bins, self.dimension, least=1, most=MOST_BINS))
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
        from tacit.functions.density_families import INFLATED

        length = float(np.prod([np.sqrt(c) for c in self.cells])) * INFLATED
        return length, 2 * length


# Wavelets on a box, by the periodic discrete wavelet transform of a lattice.

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
        set_fields(self, levels=whole("levels", self.levels, least=0), wavelet=text("wavelet", self.wavelet))
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
