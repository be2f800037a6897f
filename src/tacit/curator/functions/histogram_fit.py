"""Pure densities from counts: Laplace noise on the cells of a grid, and a kernel at the centre of each cell.

A row at the centre of its cell is off by an error that is nearly uniform on the cell, of variance w^2 / 12.
So kernels of bandwidth h' with h'^2 = h^2 - w^2 / 12 give nearly the estimate of bandwidth h (theorem
`histogram-density`). Cells may be wider than the bandwidth, so that few of them get noise.

A declared bandwidth is that of a Gaussian kernel. Where it is left out, the same counts get kernels of order four,
2 phi_h - phi_(sqrt 2 h), which have no bias of order h^2 (theorem `fourth-order-density`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

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
"""The compared bandwidths, in units of the best one without noise."""
FACTOR = 0.15
KERNELS = {2: ((1.0, 1.0),), 4: ((2.0, 1.0), (-1.0, 2.0))}
"""By order: the weight of each normal density, and its variance over h^2."""
WIDER = 1.25
"""The bandwidth of kernels of order four, over the best one of order two."""
MOST_CELLS = 1 << 18
PIECE = 2048
"""Points that are evaluated at once."""
FAR = 1e-4
"""The least part of the largest load that counts for the law of the noise at a point."""
LOAD_DIGITS = 12
NODES, REACH = 1600, 40.0
TEN_THOUSANDTHS = 10_000


def _left(width: float) -> float:
    """h'/h for cells of this width in bandwidths."""
    return math.sqrt(1 - width**2 / 12)


def roughness(bandwidths: Floats, cells: Floats, order: int) -> float:
    """The integral of the squared kernel: sum_jk a_j a_k prod over the coordinates of 1 / sqrt(2 pi (v_j + v_k)).

    v_j is the variance h_j^2 - w^2 / 12 of the j-th normal density, with weight a_j.
    """
    parts = [(a, times * bandwidths**2 - 1 / (12 * cells**2)) for a, times in KERNELS[order]]
    return math.fsum(
        a * b / float(np.prod(np.sqrt(2 * math.pi * (v + u)))) for (a, v), (b, u) in product(parts, parts)
    )


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
    which the engine counted; without it rows are counted here. `order` is that of the kernel.
    """

    box: Box
    bandwidths: tuple[float, ...]
    cells: tuple[int, ...]
    size: int
    l1: int
    epsilon: Fraction
    inputs: InputColumns
    keys: tuple[Cut, ...] = ()
    order: ClassVar[int] = 2

    @property
    def theorems(self) -> tuple[str, ...]:
        kernels = ("fourth-order-density",) if self.order == 4 else ()
        return (*kernels, "histogram-density", "discrete-laplace", "laplace")

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
    def _kernels(self, coordinates: Floats) -> list[tuple[float, list[Floats]]]:
        """For each normal density of the kernel its weight, and for each column its values at each point.

        They are those of the densities at the centres of the column's cells, in the column's unit.
        """
        inside = np.clip(in_units(self.box, coordinates), self.box.lows, self.box.highs)
        found = []
        for weight, times in KERNELS[self.order]:
            columns = []
            for j, (cells, h) in enumerate(zip(self.cells, self.bandwidths, strict=True)):
                side = float(self.box.sides[j])
                share = (inside[:, j] - self.box.lows[j]) / side
                width = math.sqrt(times * h**2 - 1 / (12 * cells**2))
                z = (share[:, None] - (np.arange(cells) + 0.5) / cells) / width
                columns.append(np.exp(-(z**2) / 2) / (math.sqrt(2 * math.pi) * width * side))
            found.append((weight, columns))
        return found

    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        table = np.asarray(numbers, dtype=np.float64).reshape(self.cells) / self.size
        out = np.zeros(len(coordinates))
        for start in range(0, len(coordinates), PIECE):
            piece = slice(start, start + PIECE)
            for weight, (first, *others) in self._kernels(coordinates[piece]):
                found = np.tensordot(first, table, axes=1)
                for kernel in others:
                    found = np.einsum("pi,pi...->p...", kernel, found)
                out[piece] += weight * found
        return out[:, None]

    @property
    def _variance(self) -> float:
        return float(self.mechanism.distribution.std) ** 2

    def stds(self, coordinates: Floats) -> Floats:
        kernels = self._kernels(coordinates)
        squares = np.zeros(len(coordinates))
        for (a, one), (b, other) in product(kernels, kernels):
            overlaps = [(k * m).sum(axis=1) for k, m in zip(one, other, strict=True)]
            squares += a * b * np.prod(overlaps, axis=0)
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

    def _bounds(self) -> Floats:
        """The corner of the box, and for several columns the middle of each side next to it."""
        corner = -np.ones(len(self.cells))
        middle = self._extremes()[0]
        sides = [np.where(np.arange(len(corner)) == j, middle, corner) for j in range(len(corner))]
        return np.array([corner, *sides] if len(corner) > 1 else [corner])

    @property
    def widest(self) -> float:
        return float(self.stds(self._extremes()).max())

    def spread(self, confidence: float, coordinates: int = 1) -> float:
        return self._law(1 - (1 - confidence) / coordinates)

    def _law(self, level: float) -> float:
        """The quantile of |noise| / std at a middle cell's centre or corner and at the bounds, where the fewest
        cells count: the largest of them, by characteristic functions.
        """
        found = 0.0
        for point in (*self._extremes(), *self._bounds()):
            loads = self._loads(point)
            # Cells at one distance have one load.
            each, times = np.unique(
                np.round(loads / np.sqrt((loads**2).sum()), LOAD_DIGITS), return_counts=True
            )
            found = max(found, _quantile(tuple(each), tuple(times.tolist()), self._noise_std, level))
        return math.ceil(found * TEN_THOUSANDTHS) / TEN_THOUSANDTHS

    def _loads(self, point: Floats) -> Floats:
        """The curve's value at a point for one row in each cell; cells far from it are left out."""
        kernels = self._kernels(point[None, :])
        near = [
            np.flatnonzero(np.max([k[j][0] / k[j][0].max() for _, k in kernels], axis=0) > FAR)
            for j in range(len(self.cells))
        ]
        loads = np.zeros([len(cells) for cells in near])
        for weight, columns in kernels:
            found = np.ones(1)
            for kernel, cells in zip(columns, near, strict=True):
                found = np.multiply.outer(found, kernel[0][cells])
            loads += weight * found[0]
        loads = np.abs(loads.ravel())
        return np.asarray(loads[loads > FAR * loads.max()])

    @property
    def _noise_std(self) -> float:
        return math.sqrt(self._variance)

    @property
    def scale(self) -> float | None:
        return 1 / float(np.prod([float(s) for s in self.box.sides]))

    def expected_noise_error(self) -> float:
        """The expected integral of the squared noise, in the columns' units."""
        wide, cells = np.array(self.bandwidths), np.array(self.cells, dtype=np.float64)
        found = self._variance * math.prod(self.cells) / self.size**2 * roughness(wide, cells, self.order)
        return found * (self.scale or 1.0)

    @property
    def about(self) -> str:
        return (
            "the density at any one point; the expected integral of the squared noise is "
            f"{self.expected_noise_error():.3g}"
        )

    def to_dict(self) -> dict[str, Any]:
        wide = [h * float(s) for h, s in zip(self.bandwidths, self.box.sides, strict=True)]
        told = {
            "family": "histogram with kernels",
            "low": list(self.box.lows),
            "high": list(self.box.highs),
            "bandwidth": wide,
            "cells": list(self.cells),
            "size": self.size,
        }
        if self.order == 2:
            return told
        kernels = [
            {"weight": weight, "bandwidth": [math.sqrt(times) * h for h in wide]}
            for weight, times in KERNELS[self.order]
        ]
        return {**told, "order": self.order, "kernels": kernels}


@dataclass(frozen=True, slots=True, kw_only=True)
class FourthOrderDensityFit(HistogramDensityFit):
    """The same with two Gaussian kernels at each centre, 2 phi_h - phi_(sqrt 2 h): a kernel of order four."""

    order: ClassVar[int] = 4


@lru_cache(maxsize=256)
def _noise(epsilon: Fraction, l1: int) -> Laplace:
    return Laplace.for_target(epsilon=epsilon, sensitivity=L1(l1))


@lru_cache(maxsize=256)
def _quantile(loads: tuple[float, ...], times: tuple[int, ...], noise_std: float, level: float) -> float:
    """The quantile of |X|, X = sum a_c L_c of variance 1, L_c discrete Laplace: inversion after Gil-Pelaez (1951).

    Each load a_c comes `times` times.
    """
    # Variance 2 q / (1 - q)^2 = s^2 of one discrete Laplace variable with ratio q.
    s2 = noise_std**2
    q = 1 + 1 / s2 - math.sqrt((1 + 1 / s2) ** 2 - 1)
    t = (np.arange(NODES) + 0.5) * (REACH / NODES)
    phase = np.cos(np.multiply.outer(t, np.array(loads)) / noise_std)
    transform = np.exp(np.log((1 - q) ** 2 / (1 - 2 * q * phase + q * q)) @ np.array(times))

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
    kind, widths = HistogramDensityFit, shape.bandwidths
    if given is None:
        # The counts stay those of order two; a kernel of order four may be wider.
        kind, widths = FourthOrderDensityFit, tuple(float(f"{WIDER * h:.3g}") for h in widths)
    keys = tuple(axis for axis in getattr(question.requests[0], "axes", ()) if isinstance(axis, Cut))
    return kind(
        box=box, bandwidths=widths, cells=shape.cells, size=statistic.size, l1=l1, epsilon=epsilon, inputs=inputs,
        keys=keys,
    )  # fmt: skip
