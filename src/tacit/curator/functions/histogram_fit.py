"""Pure densities from counts: Laplace noise on the cells of a grid, and a kernel at the centre of each cell.

A row that is put at the centre of its cell is off by an error that is nearly uniform on the cell, of variance w^2 / 12.
So kernels of bandwidth h' with h'^2 = h^2 - w^2 / 12 give nearly the estimate of bandwidth h (theorem
`histogram-density`). Cells may be wider than the bandwidth, so that few of them get noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.curator.functions.fits import Density, FunctionFit, box_of, in_units
from tacit.curator.functions.statistics import InputColumns
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.functions.boxes import Box
from tacit.functions.fourier import fourier_bandwidth
from tacit.mechanisms import L1, Laplace
from tacit.sources.axes import Cut
from tacit.statistics.base import Question, base_unit, replaced, row_limit

WIDTHS = tuple(k / 20 for k in range(10, 61))
"""The compared cell widths, in bandwidths: below sqrt(12), where the kernel would vanish."""
LARGER = tuple(2 ** (k / 4) for k in range(17))
"""Bandwidths that are compared, in units of the one without noise."""
FACTOR = 0.15
MOST_CELLS = 1 << 18
PIECE = 2048
"""Points that are evaluated at once."""
NODES, REACH = 1600, 40.0
TEN_THOUSANDTHS = 10_000


def _left(width: float) -> float:
    """h'/h for cells of this width in bandwidths."""
    return math.sqrt(1 - width**2 / 12)


def noise_error(*, variance: float, size: int, cells: int, kernels: Floats) -> float:
    """The expected integral of the squared noise on a unit box: variance cells / (n^2 prod sqrt(4 pi) h')."""
    return float(variance * cells / size**2 / np.prod(math.sqrt(4 * math.pi) * kernels))


def aliasing(width: float, dimension: int) -> float:
    """The squared ripple of kernels on a lattice, on a flat density: 2 d e^(-4 pi^2 h'^2 / w^2)."""
    return 2 * dimension * math.exp(-4 * math.pi**2 * (_left(width) / width) ** 2)


def _cells(bandwidths: Floats, width: float) -> npt.NDArray[np.int64]:
    """Cells along each side of the unit box, at most this many bandwidths wide."""
    return np.ceil(1 / (width * bandwidths) - 1e-9).astype(np.int64)


@dataclass(frozen=True, slots=True)
class GridOfCells:
    """Bandwidths in sides of the box, and the number of cells along each side."""

    bandwidths: tuple[float, ...]
    cells: tuple[int, ...]


@lru_cache(maxsize=256)
def best_shape(size: int, dimension: int, variance: float, given: tuple[float, ...] | None) -> GridOfCells:
    """Cells, and the bandwidth where it is not given, with the least computed error.

    The error is aliasing, noise, the variance 1/(n (sqrt(4 pi) h')^d) and, where the bandwidth is free, the bias b h^4
    with the b for which h = 0.15 n^(-1/(d+4)) is best without noise.
    """
    best, least = None, math.inf
    first = fourier_bandwidth(size=size, dimension=dimension, factor=FACTOR)
    roughness = (4 * math.pi) ** (-dimension / 2)
    for times in LARGER if given is None else (1.0,):
        wide = np.full(dimension, min(first * times, 1.0)) if given is None else np.array(given)
        h = float(wide[0])
        own = 0.0
        if given is None:
            own = roughness / (size * h**dimension)
            own += dimension * roughness / (4 * FACTOR ** (dimension + 4)) * h**4
        for width in WIDTHS:
            cells = _cells(wide, width)
            if np.prod(cells.astype(np.float64)) > MOST_CELLS:
                continue
            kernels = np.sqrt(wide**2 - 1 / (12 * cells.astype(np.float64) ** 2))
            noise = noise_error(variance=variance, size=size, cells=int(np.prod(cells)), kernels=kernels)
            # Rows of one cell share a narrower kernel, which raises the variance of the estimate.
            shared = roughness / size * float(1 / np.prod(kernels) - 1 / np.prod(wide))
            found = own + noise + shared + aliasing(width, dimension)
            if found < 0.999 * least:
                best, least = GridOfCells(tuple(wide.tolist()), tuple(cells.tolist())), found
    if best is None:
        # A bandwidth for which the grid would be too fine: the finest grid there may be.
        each = int(MOST_CELLS ** (1 / dimension))
        best = GridOfCells(tuple(np.maximum(given or (first,), 1 / each).tolist()), (each,) * dimension)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramDensityFit(FunctionFit):
    """Noisy counts of cells, and Gaussian kernels at their centres, in the columns' own units.

    Guarantee: Pure(epsilon) by Laplace noise: a row lies in one cell or none, so a unit of m rows moves the counts by
    m in L1 under add-or-remove and by 2 m under replace-one. Assumption: the size is public. `keys` is the grid by
    which the engine counted; without it rows are counted here.
    """

    box: Box
    bandwidths: tuple[float, ...]
    cells: tuple[int, ...]
    size: int
    l1: int
    epsilon: Fraction
    inputs: InputColumns
    keys: tuple[Cut, ...] = ()

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("histogram-density", "discrete-laplace", "laplace")

    @property
    def mechanism(self) -> Laplace:
        return _noise(self.epsilon, self.l1)

    @property
    def spacing(self) -> Fraction:
        return Fraction(1)

    @property
    def moves(self) -> dict[str, str]:
        return {"l1": str(self.l1)}

    def integers(self, rows: Any) -> Any:
        if self.keys:
            (counted,) = rows.request.aggregates
            counts = np.asarray(rows.values[counted])
            found = np.nonzero(counts)
            places = tuple(self._places(axis)[at] for axis, at in enumerate(found))
            weights = counts[found].astype(np.int64)
        else:
            at = self.inputs.of_rows(rows.rows)
            at = at[np.isfinite(at).all(axis=1)]
            share = (at + 1.0) / 2
            places = tuple(
                np.clip((share[:, j] * c).astype(np.int64), 0, c - 1) for j, c in enumerate(self.cells)
            )
            weights = np.ones(len(at), dtype=np.int64)
        out = np.zeros(self.cells, dtype=np.int64)
        np.add.at(out, places, weights)
        return out.ravel()

    def _places(self, axis: int) -> npt.NDArray[np.int64]:
        """The cell that the middle of each key lies in; public."""
        key, cells = self.keys[axis], self.cells[axis]
        first = np.array(key.first_steps(), dtype=np.float64) - key.values.lowest
        middle = (first[:-1] + first[1:] - 1) / 2
        return np.minimum((middle / key.values.width * cells).astype(np.int64), cells - 1)

    # --- the curve ----------------------------------------------------------------------------------------------
    def _kernels(self, coordinates: Floats) -> list[Floats]:
        """For each column the kernels of its cells at each point, in the column's unit."""
        inside = np.clip(in_units(self.box, coordinates), self.box.lows, self.box.highs)
        found = []
        for j, (cells, h) in enumerate(zip(self.cells, self.bandwidths, strict=True)):
            side = float(self.box.sides[j])
            share = (inside[:, j] - self.box.lows[j]) / side
            width = math.sqrt(h**2 - 1 / (12 * cells**2))
            z = (share[:, None] - (np.arange(cells) + 0.5) / cells) / width
            found.append(np.exp(-(z**2) / 2) / (math.sqrt(2 * math.pi) * width * side))
        return found

    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        table = np.asarray(numbers, dtype=np.float64).reshape(self.cells) / self.size
        out = np.empty(len(coordinates))
        for start in range(0, len(coordinates), PIECE):
            piece = slice(start, start + PIECE)
            first, *others = self._kernels(coordinates[piece])
            found = np.tensordot(first, table, axes=1)
            for kernel in others:
                found = np.einsum("pi,pi...->p...", kernel, found)
            out[piece] = found
        return out[:, None]

    @property
    def _variance(self) -> float:
        return float(self.mechanism.distribution.std) ** 2

    def stds(self, coordinates: Floats) -> Floats:
        squares = np.prod([(k**2).sum(axis=1) for k in self._kernels(coordinates)], axis=0)
        return np.asarray(np.sqrt(self._variance * squares) / self.size)

    @property
    def unit(self) -> float:
        return 1.0

    def shown(self, values: Floats) -> Floats:
        """No density is negative."""
        return np.asarray(np.maximum(values, 0.0))

    def _extremes(self) -> Floats:
        """The centre and a corner of a middle cell, the places at which the kernels differ least and most."""
        return np.array([[2 * (c // 2 + move) / c - 1 for c in self.cells] for move in (0.5, 0.0)])

    @property
    def widest(self) -> float:
        return float(self.stds(self._extremes()).max())

    def spread(self, confidence: float, coordinates: int = 1) -> float:
        return self._law(1 - (1 - confidence) / coordinates)

    def _law(self, level: float) -> float:
        """The quantile of |noise| / std at a middle cell's centre or corner, by its characteristic function."""
        found = 0.0
        for point in self._extremes():
            loads = np.ones(1)
            for kernel in self._kernels(point[None, :]):
                loads = np.multiply.outer(loads, kernel[0]).ravel()
                loads = loads[loads > 1e-4 * loads.max()]
            found = max(found, _quantile(tuple(loads / np.sqrt((loads**2).sum())), self._noise_std, level))
        return math.ceil(found * TEN_THOUSANDTHS) / TEN_THOUSANDTHS

    @property
    def _noise_std(self) -> float:
        return math.sqrt(self._variance)

    @property
    def scale(self) -> float | None:
        return 1 / float(np.prod([float(s) for s in self.box.sides]))

    def expected_noise_error(self) -> float:
        """The expected integral of the squared noise, in the columns' units."""
        wide, cells = np.array(self.bandwidths), np.array(self.cells, dtype=np.float64)
        kernels = np.sqrt(wide**2 - 1 / (12 * cells**2))
        found = noise_error(
            variance=self._variance, size=self.size, cells=math.prod(self.cells), kernels=kernels
        )
        return found * (self.scale or 1.0)

    @property
    def about(self) -> str:
        return (
            "the density at any one point; the expected integral of the squared noise is "
            f"{self.expected_noise_error():.3g}"
        )

    @property
    def words(self) -> dict[str, Any]:
        return {
            "family": "histogram with kernels",
            "low": list(self.box.lows),
            "high": list(self.box.highs),
            "bandwidth": [h * float(s) for h, s in zip(self.bandwidths, self.box.sides, strict=True)],
            "cells": list(self.cells),
            "size": self.size,
        }


@lru_cache(maxsize=256)
def _noise(epsilon: Fraction, l1: int) -> Laplace:
    return Laplace.for_target(epsilon=epsilon, sensitivity=L1(l1))


@lru_cache(maxsize=256)
def _quantile(loads: tuple[float, ...], noise_std: float, level: float) -> float:
    """The quantile of |X|, X = sum a_c L_c of variance 1, L_c discrete Laplace: inversion after Gil-Pelaez (1951)."""
    # Variance 2 q / (1 - q)^2 = s^2 of one discrete Laplace variable with ratio q.
    s2 = noise_std**2
    q = 1 + 1 / s2 - math.sqrt((1 + 1 / s2) ** 2 - 1)
    t = (np.arange(NODES) + 0.5) * (REACH / NODES)
    phase = np.cos(np.multiply.outer(t, np.array(loads)) / noise_std)
    transform = np.exp(np.log((1 - q) ** 2 / (1 - 2 * q * phase + q * q)).sum(axis=1))

    def inside(x: float) -> float:
        return float(2 / math.pi * (np.sin(t * x) / t * transform).sum() * (REACH / NODES))

    low, high = 0.0, 2 / (3 * math.sqrt(1 - level)) + math.sqrt(8 / 3)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < level else (low, middle)
    return high


def histogram_fit(question: Question, epsilon: Fraction) -> HistogramDensityFit:
    """The fit of a density at this epsilon by counts of cells; every number of it is public."""
    statistic, inputs = question.statistic, question.details["inputs"]
    assert isinstance(statistic, Density)
    box, unit = box_of(inputs), question.unit
    sides = [float(side) for side in box.sides]
    l1 = row_limit(unit) * base_unit(unit)[1] * (2 if replaced(unit) else 1)
    given = statistic.bandwidth
    if given is not None and not isinstance(given, tuple):
        given = (given,) * len(sides)
    wanted = None if given is None else tuple(h / side for h, side in zip(given, sides, strict=True))
    variance = float(_noise(epsilon, l1).distribution.std) ** 2
    # Three digits: no float of another machine decides about a plan.
    shape = best_shape(statistic.size, len(sides), float(f"{variance:.3g}"), wanted)
    widths = shape.bandwidths if given is not None else tuple(float(f"{h:.3g}") for h in shape.bandwidths)
    keys = tuple(axis for axis in getattr(question.requests[0], "axes", ()) if isinstance(axis, Cut))
    return HistogramDensityFit(
        box=box, bandwidths=widths, cells=shape.cells, size=statistic.size, l1=l1, epsilon=epsilon, inputs=inputs,
        keys=keys,
    )  # fmt: skip
