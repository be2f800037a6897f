"""Densities under random differential privacy: a kernel estimate made of a histogram whose empty cells are exact.

For a kernel estimate it gains nothing to size the noise by the distance of each pair of rows. One replaced row moves
it by sqrt(2 k(0) (1 - e^(-r^2/(2 b^2))))/n in its own norm, r the distance of the two rows and b the bandwidth.
A bandwidth that shows any shape is smaller than most distances, and then the root is at its largest
(`pairs_gain`).

A histogram gains: its empty cells need no noise. Smoothing it with kernels at the cells' centres is post-processing,
and with bandwidth sqrt(b^2 - w^2/12) and cells of width w it has the mean of the kernel estimate up to O(w^4). Theorem
`random-kernel-density`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import positive, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, exact_parameter
from tacit.guarantees import Guarantee
from tacit.noise.source import Source
from tacit.random_data.histogram import RandomHistogram

__all__ = ["RandomCurve", "RandomDensity", "pairs_gain"]


def pairs_gain(*, distance: float, bandwidth: float) -> float:
    """The ratio of noise sized by pairs to noise for the worst pair, if most rows are at most this far apart.

    sqrt(1 - e^(-distance^2 / (2 bandwidth^2))): 1 is no gain.
    """
    ratio = positive("distance", distance) / positive("bandwidth", bandwidth)
    return math.sqrt(-math.expm1(-ratio * ratio / 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomCurve:
    """A released density: normal kernels at the centres of the cells, with noisy shares as weights."""

    centres: Floats
    shares: Floats
    kernel_std: float
    publishable: bool

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The density at these points, which noise may make slightly negative."""
        x = np.asarray(points, dtype=np.float64)
        apart = (x[..., None] - self.centres) / self.kernel_std
        bumps = np.exp(-apart * apart / 2) / (self.kernel_std * math.sqrt(2 * math.pi))
        return np.asarray(bumps @ self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomDensity:
    """A kernel estimate of the density of a column on [low, high], for rows that are independent draws.

    Guarantee: that of the histogram, (epsilon, 0) under RandomData(gamma), for cells that are fixed in advance. Values
    outside of the range count as its ends. Assumptions: as for `RandomHistogram`. Theorem `random-kernel-density`.
    """

    rows: int
    low: float
    high: float
    bins: int
    bandwidth: float
    epsilon: Exact
    gamma: Exact

    def __post_init__(self) -> None:
        low, high = (
            float(exact_parameter(name, getattr(self, name), positive=False)) for name in ("low", "high")
        )
        if low >= high:
            raise InvalidParameter(parameter="low", value=low, must=f"be below high = {high:g}")
        set_fields(self, low=low, high=high, bins=whole("bins", self.bins, least=2))
        set_fields(self, bandwidth=positive("bandwidth", self.bandwidth), rows=whole("rows", self.rows))
        set_fields(self, epsilon=self.epsilon, gamma=self.gamma)
        if self.width > self.bandwidth:
            raise InvalidParameter(
                parameter="bins", value=self.bins,
                must=f"be at least (high - low)/bandwidth = {(high - low) / self.bandwidth:.4g}",
                hint="cells wider than the bandwidth blur more than the kernel does",
            )  # fmt: skip
        self.histogram  # noqa: B018  (refused here if epsilon or gamma do not fit)

    @property
    def width(self) -> float:
        """The width of a cell."""
        return (self.high - self.low) / self.bins

    @property
    def histogram(self) -> RandomHistogram:
        """The released values. Everything else is computed from them."""
        return RandomHistogram(rows=self.rows, cells=self.bins, epsilon=self.epsilon, gamma=self.gamma)

    @property
    def guarantee(self) -> Guarantee:
        """The bound of the histogram: smoothing is post-processing."""
        return self.histogram.guarantee

    @property
    def kernel_std(self) -> float:
        """The bandwidth without the blur of the cells."""
        return self.bandwidth * math.sqrt(1 - (self.width / self.bandwidth) ** 2 / 12)

    def noise_error(self, *, noisy_cells: int) -> float:
        """Root of the expected integrated squared noise of the curve, if this many cells get noise.

        sqrt(m v / (2 sqrt(pi) kernel_std)) / n, v the variance of the noise of a cell.
        """
        cells = whole("noisy_cells", noisy_cells, least=0)
        std = float(self.histogram.noise.noise_std)
        return math.sqrt(cells * std**2 / (2 * math.sqrt(math.pi) * self.kernel_std)) / self.rows

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> RandomCurve:
        """The curve, from exactly `rows` values."""
        array = np.asarray(values, dtype=np.float64).ravel()
        if array.size != self.rows or not bool(np.isfinite(array).all()):
            raise InvalidParameter(
                parameter="values", value="other values", must=f"be {self.rows} finite numbers",
                hint="decide what a missing value counts as, before anything is computed",
            )  # fmt: skip
        places = np.clip(np.floor((array - self.low) / self.width), 0, self.bins - 1).astype(np.int64)
        made = self.histogram.release(np.bincount(places, minlength=self.bins), source=source)
        counts = np.asarray(made.counts, dtype=np.float64)
        centres = np.asarray(self.low + (np.arange(self.bins) + 0.5) * self.width, dtype=np.float64)
        return RandomCurve(
            centres=centres,
            shares=counts / self.rows,
            kernel_std=self.kernel_std,
            publishable=made.publishable,
        )

    def to_dict(self, *, occupied: int | None = None) -> dict[str, Any]:
        """Errors without data: with this many occupied cells, and for differential privacy at the same epsilon."""
        below = self.histogram.exact_below
        named = self.bins if occupied is None else whole("occupied", occupied, least=0)
        if named > self.bins:
            raise InvalidParameter(parameter="occupied", value=occupied, must="be at most the number of bins")
        noisy = named if below else self.bins
        return {
            "exact_below": below,
            "bins": self.bins,
            "noisy_cells": noisy,
            "kernel_std": self.kernel_std,
            "noise_error": self.noise_error(noisy_cells=noisy),
            "plain_noise_error": self.noise_error(noisy_cells=self.bins),
        }

    describe = formerly("describe", method=True)
