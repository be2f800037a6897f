"""A density on the cells of a grid: non-negative, with integral one; its distribution function, quantiles, samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import members, whole
from tacit.functions.boxes import Box, as_points
from tacit.noise.source import Source, default_source

__all__ = ["GriddedDensity", "nearest_probabilities"]

MOST_SAMPLES = 10**7


def nearest_probabilities(values: npt.ArrayLike) -> Floats:
    """The nearest vector of probabilities in Euclidean distance: max(v - t, 0) with the t that makes the sum one.

    The values are sorted; t follows from the largest k of them that stay above it. Theorem `density-projection`.
    """
    v = np.asarray(values, dtype=np.float64).ravel()
    if v.size == 0 or not bool(np.isfinite(v).all()):
        raise InvalidParameter(parameter="values", value="an array", must="hold finite numbers")
    # The answer does not change when all values move together; near the largest one no digits are lost.
    v = v - v.max()
    ordered = np.sort(v)[::-1]
    shift = (np.cumsum(ordered) - 1) / np.arange(1, v.size + 1)
    kept = int(np.flatnonzero(ordered > shift)[-1])
    found = np.maximum(v - shift[kept], 0.0)
    return np.asarray(found / found.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GriddedDensity:
    """Probabilities of equal cells of a box; the density is constant within each. All of it is post-processing."""

    domain: Box
    probabilities: Floats

    def __post_init__(self) -> None:
        array = np.ascontiguousarray(self.probabilities, dtype=np.float64)
        if array.ndim != self.domain.dimension or array.size == 0:
            raise InvalidParameter(
                parameter="probabilities",
                value=f"{array.ndim} dimensions",
                must=f"have {self.domain.dimension}",
            )
        if not bool((array >= 0).all()) or abs(float(array.sum()) - 1) > 1e-9:
            raise InvalidParameter(
                parameter="probabilities", value="an array", must="be at least 0 and sum to one"
            )
        array.setflags(write=False)
        object.__setattr__(self, "probabilities", array)

    @classmethod
    def nearest(cls, domain: Box, values: npt.ArrayLike) -> GriddedDensity:
        """From any values of a density in the cells: the nearest ones that are non-negative with integral one."""
        array = np.asarray(values, dtype=np.float64)
        cell = float(np.prod(domain.sides)) / array.size
        return cls(domain=domain, probabilities=nearest_probabilities(array * cell).reshape(array.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each coordinate."""
        return self.probabilities.shape

    @property
    def cell_volume(self) -> float:
        """Of one cell."""
        return float(np.prod(self.domain.sides)) / self.probabilities.size

    @property
    def values(self) -> Floats:
        """The density in each cell."""
        return self.probabilities / self.cell_volume

    def edges(self, axis: int = 0) -> Floats:
        """Where the cells begin and end along a coordinate."""
        return np.linspace(self.domain.lows[axis], self.domain.highs[axis], self.shape[axis] + 1)

    def middles(self, axis: int = 0) -> Floats:
        """The middles of the cells along a coordinate."""
        edges = self.edges(axis)
        return np.asarray((edges[1:] + edges[:-1]) / 2)

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The density at points of the box."""
        at = self.domain.inside(points)
        place = (at - np.array(self.domain.lows)) / self.domain.sides * np.array(self.shape)
        cell = np.minimum(place.astype(int), np.array(self.shape) - 1)
        return np.asarray(self.values[tuple(cell.T)])

    def cdf(self, points: npt.ArrayLike) -> Floats:
        """Pr[X_1 <= x_1, ..., X_d <= x_d]; points outside of the box are answered as what they mean."""
        at = as_points(points, self.domain.dimension)
        below = self.probabilities
        for axis in range(below.ndim):
            below = np.concatenate(
                [np.zeros_like(below.take([0], axis=axis)), np.cumsum(below, axis=axis)], axis=axis
            )
        share = np.clip((at - np.array(self.domain.lows)) / self.domain.sides, 0.0, 1.0) * np.array(
            self.shape
        )
        left = np.minimum(share.astype(int), np.array(self.shape) - 1)
        part = share - left
        total = np.zeros(at.shape[0])
        # The distribution function is linear in each coordinate within a cell.
        for corner in np.ndindex(*(2,) * below.ndim):
            step = np.array(corner)
            total += np.prod(np.where(step == 1, part, 1 - part), axis=1) * below[tuple((left + step).T)]
        return np.asarray(np.clip(total, 0.0, 1.0))

    def quantile(self, probabilities: npt.ArrayLike) -> Floats:
        """The least x with cdf(x) >= p; in one dimension."""
        self._one()
        p = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
        if not bool(((p >= 0) & (p <= 1)).all()):
            raise InvalidParameter(parameter="probabilities", value="an array", must="lie in [0, 1]")
        total = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        total /= total[-1]
        cell = np.clip(np.searchsorted(total, p, side="left") - 1, 0, self.shape[0] - 1)
        height = np.maximum(total[cell + 1] - total[cell], 1e-300)
        share = np.clip((p - total[cell]) / height, 0.0, 1.0)
        edges = self.edges()
        return np.asarray(edges[cell] + share * (edges[cell + 1] - edges[cell]))

    def mean(self) -> Floats:
        """The mean of each coordinate."""
        d = self.domain.dimension
        return np.array([float(self.marginal([k]).probabilities @ self.middles(k)) for k in range(d)])

    def marginal(self, axes: Any) -> GriddedDensity:
        """The density of some of the coordinates."""
        wanted = [whole("axes", a, least=0) for a in members("axes", axes)]
        d = self.domain.dimension
        if not wanted or len(set(wanted)) != len(wanted) or max(wanted) >= d:
            raise InvalidParameter(
                parameter="axes", value=axes, must=f"be different numbers from 0 to {d - 1}"
            )
        rest = tuple(k for k in range(d) if k not in wanted)
        kept = [k for k in range(d) if k in wanted]
        table = self.probabilities.sum(axis=rest).transpose([kept.index(k) for k in wanted])
        low, high = [self.domain.lows[k] for k in wanted], [self.domain.highs[k] for k in wanted]
        return GriddedDensity(domain=Box(low=low, high=high), probabilities=table / table.sum())

    def sample(self, count: int, *, source: Source | None = None) -> Floats:
        """Made-up rows from the density, an array (count, d): post-processing, as many as one likes."""
        count = whole("count", count, least=0)
        if count > MOST_SAMPLES:
            raise InvalidParameter(parameter="count", value=count, must=f"be at most {MOST_SAMPLES}")
        source = source if source is not None else default_source()
        d = self.domain.dimension
        words = source.words(count * (d + 1)).reshape(d + 1, count) >> np.uint64(11)
        u = (words.astype(np.float64) + 0.5) * 2.0**-53
        total = np.cumsum(self.probabilities.ravel())
        cell = np.minimum(np.searchsorted(total / total[-1], u[0], side="left"), total.size - 1)
        place = np.stack(np.unravel_index(cell, self.shape), axis=1) + u[1:].T
        low, high = np.array(self.domain.lows), np.array(self.domain.highs)
        return np.asarray(np.clip(low + place / np.array(self.shape) * self.domain.sides, low, high))

    def _one(self) -> None:
        if self.domain.dimension != 1:
            raise InvalidParameter(
                parameter="dimension", value=self.domain.dimension, must="be 1 for quantiles",
                hint="take marginal([k]) first",
            )  # fmt: skip
