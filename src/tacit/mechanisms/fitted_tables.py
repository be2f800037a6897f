"""Tables of noisy counts that are made to agree: least squares over everything that the tables have in common.

Levels of a hierarchy add up, margins agree on what they share, and a number of rows that nobody can move is known.
Independent noise on every count is fitted to that (constrained inference), which is post-processing: no count costs
more, and each errs less. See docs/theory/fitted-tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import flag, settle
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact
from tacit.mechanisms.base import confidence_level
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.laplace_sums import Weighted, mean_sizes, weighted_quantiles
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.sensitivity import L1, L2
from tacit.mechanisms.spreads import normal_factor
from tacit.mechanisms.tables import ReleasedTables, TableMechanism
from tacit.noise.source import Source, default_source

__all__ = ["Agreement", "FittedTables", "agreement_of"]

MOST_FITTED = 640
FINE = 64
"""Steps of the noise's grid in one count: fitted counts are no whole numbers anyway, and on a fine grid the laws of
weighted sums are the continuous ones, nearly."""
MOST_STEPS = 1 << 16
TINY = 1e-9
CLASSES = 256
OFF_GRID = 1.6
MISSED = math.exp(-6 * OFF_GRID**2)
"""Pr[a sum of uniform variables on the last digits is below -1.6 of their weights' norm]: e^(-6 h^2)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """All that tables of these counts have in common: they are sums of the same cells.

    `places` says for each table where each of some cells is counted (-1: nowhere), cells whose counts span all that
    the tables can be. `fixed` says that their sum is known. The nearest tables that agree are y - (I - P)(y - base),
    P a projection; errors are P times the noise.
    """

    places: tuple[npt.NDArray[np.int64], ...]
    sizes: tuple[int, ...]
    fixed: bool = False
    projection: Floats = field(init=False, repr=False)
    first: npt.NDArray[np.int64] = field(init=False, repr=False)
    _rows: Weighted = field(init=False, repr=False)
    _row: npt.NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        settle(self, fixed=flag("fixed", self.fixed))
        if not self.places or len(self.places) != len(self.sizes) or not 1 <= sum(self.sizes) <= MOST_FITTED:
            raise InvalidParameter(
                parameter="sizes", value=sum(self.sizes), must=f"be 1 to {MOST_FITTED} counts in all, with places"
            )  # fmt: skip
        blocks = []
        for to, size in zip(self.places, self.sizes, strict=True):
            block = np.zeros((size, to.size))
            block[to[to >= 0], np.flatnonzero(to >= 0)] = 1
            blocks.append(block)
        counted = np.concatenate(blocks)
        object.__setattr__(self, "first", counted[:, 0].astype(np.int64))
        spanning = counted[:, 1:] - counted[:, :1] if self.fixed else counted
        object.__setattr__(self, "projection", _projection(spanning))
        rows, row = _classes(self.projection)
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_row", row)

    @property
    def counts(self) -> int:
        """How many counts there are."""
        return sum(self.sizes)

    @property
    def tells(self) -> bool:
        """Do the tables tell anything about each other?"""
        return bool(np.trace(self.projection) < self.counts - 0.5)

    @property
    def shares(self) -> Floats:
        """The variance of each fitted count, as a share of that of the noise."""
        return np.asarray(np.maximum(self.projection.diagonal(), 0.0))

    def fitted(self, noisy: Floats, total: float) -> Floats:
        """The nearest tables that agree."""
        base = self.first * total if self.fixed else np.zeros(self.counts)
        return np.asarray(base + self.projection @ (noisy - base))

    def mean_sizes(self, *, gaussian: bool) -> Floats:
        """E |error| of each fitted count, for noise of standard deviation 1 or Laplace noise of scale 1."""
        return _unit_sizes(self, gaussian)

    def laplace_quantiles(self, miss: float) -> Floats:
        """What each fitted count stays within but with this probability, for Laplace noise of scale 1."""
        return weighted_quantiles(self._rows, miss / 2)[self._row]

    def split(self, each: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Numbers of all counts, table by table."""
        return list(np.split(each, np.cumsum(self.sizes)[:-1]))


def agreement_of(
    places: tuple[npt.NDArray[np.int64], ...], sizes: tuple[int, ...], fixed: bool
) -> Agreement | None:
    """What tables have in common, made once for all who ask; None where they tell nothing about each other."""
    return _agreement(tuple(p.astype(np.int64).tobytes() for p in places), sizes, fixed)


@lru_cache(maxsize=16)
def _agreement(places: tuple[bytes, ...], sizes: tuple[int, ...], fixed: bool) -> Agreement | None:
    arrays = tuple(np.frombuffer(p, dtype=np.int64) for p in places)
    found = Agreement(places=arrays, sizes=sizes, fixed=fixed)
    return found if found.tells else None


@lru_cache(maxsize=64)
def _unit_sizes(agreement: Agreement, gaussian: bool) -> Floats:
    """They depend on no price: a question that is asked again, for more or for less, finds them made."""
    if gaussian:
        return np.sqrt(2 / math.pi * agreement.shares)
    return mean_sizes(agreement._rows)[agreement._row]


def _projection(spanning: Floats) -> Floats:
    """Onto the span of the columns, which are of whole numbers: from the eigenvectors of their products."""
    values, vectors = np.linalg.eigh(spanning @ spanning.T)
    kept = vectors[:, values > TINY * max(float(values[-1]), 1.0)]
    return np.asarray(kept @ kept.T)


def _classes(projection: Floats) -> tuple[Weighted, npt.NDArray[np.int64]]:
    """The different rows as weights with how often each occurs, and which of them each row is.

    Weights are rounded up to a part of the largest of their row, which can only make its law wider.
    """
    size = np.abs(projection)
    largest = np.maximum(size.max(axis=1, keepdims=True), 1e-300)
    for parts in (1 << 12, 1 << 10, CLASSES):
        units = np.sort(np.ceil(size / largest * parts - TINY * parts).astype(np.int64), axis=1)
        units[largest[:, 0] < TINY] = 0
        keyed = np.concatenate([units, np.rint(largest / TINY).astype(np.int64)], axis=1)
        _, first, row = np.unique(keyed, axis=0, return_index=True, return_inverse=True)
        tallies = [np.unique(u[u > 0], return_counts=True) for u in units[first]]
        width = max(max((t[0].size for t in tallies), default=1), 1)
        if width <= CLASSES // 2 or parts == CLASSES:
            break
    weights, counts = np.zeros((len(first), width)), np.zeros((len(first), width))
    for i, (values, times) in enumerate(tallies):
        weights[i, : values.size] = (values / parts + TINY) * float(largest[first[i], 0])
        counts[i, : values.size] = times
    return Weighted(weights=weights, counts=counts), row.reshape(-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedTables(TableMechanism):
    """Independent noise on every count of every table, fitted by least squares to what the tables have in common.

    Guarantee: that of the noise, which is sized for all tables at once; the fit is post-processing. Each fitted count
    is the best linear unbiased estimate. Its error is a weighted sum of the noise; half-widths come from the law of
    that sum, rounded up (theorem `fitted-tables`).
    """

    noise: Laplace | RoundedGaussian
    agreement: Agreement

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | RoundedGaussian):
            raise InvalidParameter(
                parameter="noise", value=type(self.noise).__name__, must="be Laplace or RoundedGaussian"
            )
        if not isinstance(self.agreement, Agreement):
            raise InvalidParameter(
                parameter="agreement", value=type(self.agreement).__name__, must="be an Agreement"
            )

    @classmethod
    def for_epsilon(cls, *, epsilon: Exact, l1: int, agreement: Agreement) -> FittedTables:
        """The smallest Laplace noise with this epsilon, on a fine grid."""
        noise = Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(l1), spacing=Fraction(1, _fine(l1)))
        return cls(noise=noise, agreement=agreement)

    @classmethod
    def for_mu_squared(cls, *, mu_squared: Exact, l2_squared: int, agreement: Agreement) -> FittedTables:
        """The smallest Gaussian noise with this mu^2, on a fine grid."""
        std = RoundedGaussian.for_mu_squared(mu_squared=mu_squared, squared_steps=l2_squared).noise_std
        noise = RoundedGaussian(
            sensitivity=L2.root(l2_squared), noise_std=std, dimension=agreement.counts, spacing=Fraction(1, FINE)
        )  # fmt: skip
        return cls(noise=noise, agreement=agreement)

    @property
    def theorems(self) -> tuple[str, ...]:
        """Those of the noise, and that of the fit."""
        return (*self.noise.theorems, "fitted-tables")

    @property
    def gaussian(self) -> bool:
        """Is the noise Gaussian?"""
        return isinstance(self.noise, RoundedGaussian)

    @property
    def _unit(self) -> float:
        """The noise's size, in counts: its standard deviation, or its Laplace scale."""
        return float(
            self.noise.noise_std if isinstance(self.noise, RoundedGaussian) else self.noise.noise_scale
        )

    @property
    def noise_distribution(self) -> dict[str, Any]:
        said = {**self.noise.noise_distribution, "on": f"{self.agreement.counts} counts, then least squares"}
        return {**said, "tables": list(self.agreement.sizes), "known_total": self.agreement.fixed}

    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        """Noise on the tables themselves."""
        return list(self.release(parts, source=source).values)

    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        source = source if source is not None else default_source()
        tables = [integer_array(c).ravel() for c in counts]
        if tuple(t.size for t in tables) != self.agreement.sizes:
            raise InvalidParameter(
                parameter="counts", value=f"{len(tables)} tables", must="have the cells that were declared"
            )
        flat = np.concatenate([t.astype(object) for t in tables])
        steps = int(1 / self.noise.step)
        noisy = np.asarray(self.noise.release_cells(flat * steps, source=source)).astype(np.float64) / steps
        total = float(tables[0].astype(object).sum()) if self.agreement.fixed else 0.0
        values = self.agreement.split(self.agreement.fitted(noisy, total))
        return ReleasedTables(values=tuple(values), publishable=source.publishable)

    # --- errors -----------------------------------------------------------------------------------------
    def mean_sizes(self) -> list[float]:
        each = self.agreement.mean_sizes(gaussian=self.gaussian) * self._unit
        return [float(t.mean()) for t in self.agreement.split(each)]

    def variances(self) -> list[float]:
        each = self.agreement.shares * (self.noise.variance * float(self.noise.step) ** 2)
        return [float(t.mean()) for t in self.agreement.split(each)]

    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """Gaussian: the normal law, and the rounding of every draw. Laplace: by theorem `fitted-tables`."""
        miss, step = float(1 - confidence_level(confidence)), float(self.noise.step)
        if self.gaussian:
            rounded = np.abs(self.agreement.projection).sum(axis=1) * step / 2
            half = normal_factor(miss) * self._unit * np.sqrt(self.agreement.shares) + rounded
        else:
            wider = step / (2 * math.tanh(step / (2 * self._unit)))
            half = wider * self.agreement.laplace_quantiles(miss * (1 - MISSED))
            half = half + OFF_GRID * step * np.sqrt(self.agreement.shares)
        return self.agreement.split(half * (1 + TINY))


def _fine(l1: int) -> int:
    """Steps of the grid in one count: at most 64, and so few that a move is no more than some ten thousand steps."""
    return max(1, min(FINE, 1 << max(0, (MOST_STEPS // l1).bit_length() - 1)))
