"""Several tables of counts at once: noise shaped by the possible moves of one row, or noise on the cells they add up.

A row is counted at most once in each table, so that it moves the counts of all tables by a vector of zeros and ones.
`ShapedTables` gives them noise of exactly that shape, `CellSums` gives noise to the finest cells and adds up.
Operations on noisy numbers are post-processing. See docs/theory/polytope-noise.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import check_fields, flag, integer_array, members, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, exact_parameter, exact_value
from tacit.guarantees import Bound
from tacit.mechanisms.base import PartNoise, confidence_level, epsilon_parameter, rho_of_epsilon
from tacit.mechanisms.bodies import Gauge
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.polytope import RangeNorm
from tacit.mechanisms.spreads import box_sum, laplace_factor, normal_factor, radial_quantile
from tacit.noise import LinfBall
from tacit.noise.source import Source, default_source

__all__ = ["ReleasedTables", "ShapedTables"]

MOST_SHAPED = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTables:
    """Noisy tables, flat and in order; `publishable` is False for noise from a seeded source."""

    values: tuple[AnyArray, ...]
    publishable: bool


class TableMechanism(PartNoise):
    """Counts of several tables in, noisy counts out, with the errors of every cell."""

    __slots__ = ()

    noise: Any

    @property
    def bound(self) -> Bound:
        found: Bound = self.noise.bound
        return found

    @property
    def event(self) -> Event:
        """The bound of the noise: the rest is post-processing."""
        found: Event = self.noise.event
        return found

    @property
    def theorems(self) -> tuple[str, ...]:
        """Those of the noise."""
        found: tuple[str, ...] = self.noise.theorems
        return found

    @property
    def exact_epsilon(self) -> Fraction | None:
        found: Fraction | None = self.noise.exact_epsilon
        return found

    @property
    def exact_rho(self) -> Fraction | None:
        found: Fraction | None = self.noise.exact_rho
        return found

    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        """By default noise on the cells, of which the parts are sums."""
        return list(self.release(cells(), source=source).values)

    def half_widths(self, parts: int, confidence: Fraction, *, coordinates: int = 1) -> list[Floats]:
        """Several cells at once by adding up the misses."""
        return self.error_quantiles(1 - (1 - confidence) / coordinates)

    def mean_errors(self, parts: int) -> list[float]:
        return self.mean_sizes()

    def mean_variances(self, parts: int) -> list[float]:
        return self.variances()

    @abstractmethod
    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        """The noisy tables."""

    @abstractmethod
    def mean_sizes(self) -> list[float]:
        """E |error| of a cell, for each table: the mean over its cells."""

    @abstractmethod
    def variances(self) -> list[float]:
        """The mean variance of a cell, for each table."""

    @abstractmethod
    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """The bound on each cell, with this probability."""


class WholeTables(TableMechanism):
    """Noise on the tables themselves, not on their finest cells."""

    __slots__ = ()

    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        """Noise on the tables themselves."""
        return list(self.release(parts, source=source).values)


def declared_tables(counts: Any, sizes: tuple[int, ...]) -> list[AnyArray]:
    """The counts of every table as one row of integers; refuses any number of counts that was not declared."""
    tables = [integer_array(c).ravel() for c in counts]
    wrong = tuple(t.size for t in tables) != sizes
    refuse_if(wrong, "counts", f"{len(tables)} tables", "have the cells that were declared")
    return tables


def _sizes(given: object) -> tuple[int, ...]:
    found = tuple(whole("sizes", s) for s in members("sizes", given))
    if not found:
        raise InvalidParameter(parameter="sizes", value=(), must="have one number of cells for each table")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedTables(WholeTables):
    """Noise for vectors of zeros and ones, of which one unit brings or takes `times`, with one count a table
    and row.

    Add-or-remove: range-norm noise, since all counts of a row go the same way. Replace-one: cube noise, since
    each count moves by at most 1, either way. `complete` says that every counted row is counted in every table.
    Then all tables have one sum, and the last cell of each follows by subtraction. The noise is then on that
    sum, unless `fixed` says that no unit can move it, and on all cells but the last of each table. Guarantee:
    Pure(times / noise_scale) for the vector that gets noise. Mean error of a count, of d that get noise: (d +
    2) / 3 (range norm), (d + 1) / 2 (cube) noise scales. Theorems `polytope-noise`, `k-norm`.
    """

    sizes: tuple[int, ...]
    noise_scale: Exact
    times: int = 1
    replaced: bool = False
    complete: bool = False
    fixed: bool = False

    def __post_init__(self) -> None:
        set_fields(self, sizes=_sizes(self.sizes), times=whole("times", self.times))
        check_fields(self, noise_scale=exact_value)
        for name in ("replaced", "complete", "fixed"):
            set_fields(self, **{name: flag(name, getattr(self, name))})
        if self.fixed and not (self.complete and self.replaced):
            raise InvalidParameter(
                parameter="fixed", value=True, must="come with complete and replaced",
                hint="a number of rows that nobody can move needs rows that are replaced and counted in every table",
            )  # fmt: skip
        if not 1 <= self.coordinates <= MOST_SHAPED:
            raise InvalidParameter(
                parameter="sizes",
                value=self.coordinates,
                must=f"leave 1 to {MOST_SHAPED} counts for the noise",
            )

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, sizes: Sequence[int], times: int = 1, replaced: bool = False, complete: bool = False,
        fixed: bool = False,
    ) -> ShapedTables:  # fmt: skip
        """The smallest noise with this epsilon."""
        scale = whole("times", times) / epsilon_parameter(epsilon)
        return cls(
            sizes=_sizes(sizes),
            noise_scale=scale,
            times=times,
            replaced=replaced,
            complete=complete,
            fixed=fixed,
        )

    @property
    def coordinates(self) -> int:
        """How many numbers get noise."""
        if not self.complete:
            return sum(self.sizes)
        return sum(s - 1 for s in self.sizes) + (0 if self.fixed else 1)

    @property
    def epsilon(self) -> Fraction:
        """The exact epsilon."""
        return self.times / exact_parameter("noise_scale", self.noise_scale)

    @property
    def noise(self) -> RangeNorm | KNorm:
        """The mechanism that draws."""
        scale = exact_parameter("noise_scale", self.noise_scale)
        if not self.replaced:
            return RangeNorm(dimension=self.coordinates, noise_scale=scale, times=self.times)
        gauge = Gauge(self.times, LinfBall(coordinates=self.coordinates))
        return KNorm(sensitivity=gauge, noise_scale=scale)

    @property
    def on(self) -> str:
        """What gets noise, in words."""
        counts = "1 count" if self.coordinates == 1 else f"{self.coordinates} counts"
        if not self.complete:
            return counts
        if self.fixed:
            return f"{counts}, the last of each table by subtraction"
        return f"the number of rows and {self.coordinates - 1} counts"

    @property
    def exact_epsilon(self) -> Fraction:
        return self.epsilon

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("k-norm",) if self.replaced else ("polytope-noise",)

    @property
    def exact_rho(self) -> Fraction:
        return rho_of_epsilon(self.epsilon)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {**self.noise.noise_distribution, "on": self.on, "tables": list(self.sizes)}

    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        source = source if source is not None else default_source()
        tables = declared_tables(counts, self.sizes)
        if not self.complete:
            noisy = self.noise.release(_joined(tables), source=source).values
            split = np.split(noisy, np.cumsum(self.sizes)[:-1])
            return ReleasedTables(values=tuple(split), publishable=source.publishable)
        kept = [t[:-1] for t in tables]
        total = tables[0].astype(object).sum()
        head = [] if self.fixed else [np.array([total], dtype=object)]
        noisy = np.asarray(self.noise.release(_joined([*head, *kept]), source=source).values)
        sums = total if self.fixed else noisy[0]
        out, start = [], 0 if self.fixed else 1
        for table in kept:
            some = noisy[start : start + table.size]
            start += table.size
            last = sums - some.sum(dtype=some.dtype) if some.size else sums
            out.append(np.concatenate([some, np.array([last], dtype=noisy.dtype)]))
        return ReleasedTables(values=tuple(out), publishable=source.publishable)

    # --- errors -----------------------------------------------------------------------------------------
    def _widths(self, size: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The boxes whose sum, times the radius, is the noise of a kept cell, and of the last cell of a table."""
        one: tuple[float, ...] = (2.0,) if self.replaced else (1.0, 1.0)
        if not self.complete:
            return one, one
        if self.replaced:
            return one, (2.0,) * (size - 1 if self.fixed else size)
        # n - (c_1 + ... + c_(s-1)) has the noise U_n - sum U_j + (s - 2) U_0; of a table of one cell U_n - U_0.
        return one, (1.0,) * size + (float(abs(size - 2)),)

    @property
    def _shape(self) -> int:
        return self.coordinates + (1 if self.replaced else 2)

    def _each(self, size: int, kept: float, last: float) -> Floats:
        return np.array([kept] * (size - 1) + [last])

    def mean_sizes(self) -> list[float]:
        scale = self._shape * float(exact_parameter("noise_scale", self.noise_scale))
        pairs = [[box_sum(w).mean_size for w in self._widths(s)] for s in self.sizes]
        return [float(self._each(s, *pair).mean()) * scale for s, pair in zip(self.sizes, pairs, strict=True)]

    def variances(self) -> list[float]:
        scale = float(exact_parameter("noise_scale", self.noise_scale))
        second = self._shape * (self._shape + 1) * scale**2
        return [
            float(self._each(s, *(box_sum(w).variance for w in self._widths(s))).mean()) * second + 1 / 12
            for s in self.sizes
        ]

    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """Quantiles of the continuous distribution, and half a step for each rounding."""
        miss = float(1 - confidence_level(confidence))
        scale = float(exact_parameter("noise_scale", self.noise_scale))
        out = []
        for size in self.sizes:
            kept, last = (radial_quantile(w, self._shape, miss) * scale for w in self._widths(size))
            rounded = size - 1 if self.fixed else size
            out.append(self._each(size, kept + 0.5, last + (max(rounded, 1) / 2 if self.complete else 0.5)))
        return out


def _joined(tables: Sequence[AnyArray]) -> AnyArray:
    """One vector: Python's integers if a part has such integers, or if int64 might overflow."""
    return np.concatenate([np.asarray(t, dtype=object) for t in tables])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellSums(TableMechanism):
    """Noise on cells, which the counts of the tables add up. `sums` has the place of each cell in each table.

    Guarantee: that of the noise on the cells. A count that adds up k cells errs like sqrt(k) of them.
    """

    noise: Laplace | RoundedGaussian
    sums: tuple[npt.NDArray[np.int64], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | RoundedGaussian):
            raise InvalidParameter(
                parameter="noise", value=type(self.noise).__name__, must="be Laplace or RoundedGaussian"
            )
        if not self.sums or len({np.shape(s) for s in self.sums}) != 1 or np.ndim(self.sums[0]) != 1:
            raise InvalidParameter(
                parameter="sums", value=len(self.sums), must="say for each table where each cell is counted"
            )

    @property
    def cells(self) -> int:
        """How many cells get noise."""
        return int(self.sums[0].size)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {**self.noise.noise_distribution, "on": f"{self.cells} cells, of which the tables are sums"}

    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        source = source if source is not None else default_source()
        cells = integer_array(counts).ravel()
        refuse_if(cells.size != self.cells, "counts", f"{cells.size} numbers", f"have {self.cells} cells")
        noisy = np.asarray(self.noise.release(cells, source=source).values)
        if max(abs(int(noisy.max())), abs(int(noisy.min()))) * self.cells >= 1 << 62:
            noisy = noisy.astype(object)
        return ReleasedTables(
            values=tuple(_added(noisy, to) for to in self.sums), publishable=source.publishable
        )

    # --- errors -----------------------------------------------------------------------------------------
    def _terms(self) -> list[npt.NDArray[np.int64]]:
        """The number of cells in each count."""
        return [np.bincount(to[to >= 0]) for to in self.sums]

    def mean_sizes(self) -> list[float]:
        std = math.sqrt(self.noise.variance)
        out = []
        for terms in self._terms():
            if isinstance(self.noise, RoundedGaussian):
                out.append(float(np.sqrt(2 / math.pi * terms).mean()) * std)
            else:
                out.append(float((np.sqrt(terms) * mean_factor(terms)).mean()) * std)
        return out

    def variances(self) -> list[float]:
        return [float(terms.mean()) * self.noise.variance for terms in self._terms()]

    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """The bounds of sums of k alike variables; half a step for the grid."""
        miss, noise = float(1 - confidence_level(confidence)), self.noise
        wide = noise.interval_variance if isinstance(noise, RoundedGaussian) else noise.variance
        std = math.sqrt(wide)
        out = []
        for terms in self._terms():
            each, place = np.unique(terms, return_inverse=True)
            if isinstance(self.noise, RoundedGaussian):
                factor = np.full(each.size, normal_factor(miss))
            else:
                # Coarse noise is lumpy: its continuous counterpart, whose tail is above it, has scale l1 / epsilon.
                std = math.sqrt(2) * float(self.noise.distribution.noise_scale)
                factor = np.array([laplace_factor(int(k), miss) for k in each])
            out.append((np.sqrt(each) * factor * std + 0.5)[place.reshape(terms.shape)])
        return out


def mean_factor(terms: npt.NDArray[Any]) -> Floats:
    """E |X| / std of a sum of k alike Laplace variables: Gamma(k + 1/2) / Gamma(k) sqrt(2 / (pi k))."""
    from scipy.special import gammaln

    k = np.maximum(terms, 1).astype(np.float64)
    return np.asarray(np.exp(gammaln(k + 0.5) - gammaln(k)) * np.sqrt(2 / (math.pi * k)))


def _added(noisy: AnyArray, to: npt.NDArray[np.int64]) -> AnyArray:
    """The sums of the cells at each place; a cell with the place -1 is not counted."""
    inside = to >= 0
    out = np.zeros(int(to.max()) + 1, dtype=noisy.dtype)
    np.add.at(out, to[inside], noisy[inside])
    return out
