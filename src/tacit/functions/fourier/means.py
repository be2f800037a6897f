"""Other pointwise means by the same route: a distribution function, and a regression function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import settle, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.functions.bases.rows import as_rows, cells_of
from tacit.functions.densities.released import ReleasedDensity
from tacit.functions.fourier.family import FourierKDE
from tacit.functions.fourier.plan import FourierPlan, grid_sums
from tacit.guarantees import Neighbours, Pure
from tacit.mechanisms.base import epsilon_parameter
from tacit.mechanisms.budgets import sum_of_epsilons
from tacit.mechanisms.fourier import fourier_spacing
from tacit.mechanisms.knorm import KNormDifference
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.sensitivity import L1
from tacit.mechanisms.shapes import HullGauge
from tacit.noise import CaratheodoryBody
from tacit.noise.source import Source

__all__ = ["CumulativeCurve", "FourierRegression", "ReleasedRegression"]

LEVELS = 1 << 10
SHARES = (Fraction(9, 20), Fraction(9, 20), Fraction(1, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeCurve:
    """x -> the integral of a released `FourierKDE` curve from the box's low end to x, term by term; d = 1.

    Post-processing. It is linear in the noise, so that its standard deviation is public and its bands come from the
    same simulation; unlike `released.cdf` it is not made monotone.
    """

    released: ReleasedDensity

    def __post_init__(self) -> None:
        if not isinstance(self.released.family, FourierKDE) or self.released.dimension != 1:
            raise InvalidParameter(
                parameter="released", value="a density", must="be a FourierKDE in one dimension"
            )

    def _rows(self, points: npt.ArrayLike) -> Floats:
        family = self.released.family
        assert isinstance(family, FourierKDE)
        x = family.box.inside(points)[:, 0]
        u, low = family.on_circle(0, x), family.margin
        k = 2 * math.pi * np.arange(1, family.order + 1)
        weights = 2 * family.axis_weights(0)[1::2] / k
        out = np.empty((x.size, family.coefficients))
        out[:, 0] = u - low
        out[:, 1::2] = weights * (np.sin(np.outer(u, k)) - np.sin(low * k))
        out[:, 2::2] = weights * (np.cos(low * k) - np.cos(np.outer(u, k)))
        return out

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The integral up to each point."""
        return np.asarray(self._rows(points) @ self.released.coefficients)

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise at each point; public."""
        rows = self._rows(points) / self.released.size
        return np.asarray(np.sqrt(rows**2 @ self.released.noise.stds(rows.shape[1]) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedRegression:
    """x -> the noisy mean of the response near x: a quotient of two released curves, kept within the declared range."""

    density: ReleasedDensity
    weighted: Floats
    low: float
    high: float
    bound: Pure
    publishable: bool

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The regression function; where the released density is below a tenth of uniform, that tenth is taken."""
        family = self.density.family
        at = family.box.inside(points)
        below = np.maximum(self.density(at), 0.1 / family.volume)
        share = (family.synthesis(at) @ self.weighted) / below
        half = (self.high - self.low) / 2
        return np.asarray(self.low + half * (1 + np.clip(share, -1.0, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierRegression:
    """The mean of a response in [low, high] given one column: sum y_i K(x_i, .) over sum K(x_i, .), both by series.

    A record's terms y Psi(x), |y| <= 1, lie in the hull of the Caratheodory body and its mirror image, so that the
    difference form of its noise is private for them too: HullGauge 2 under replace-one, 1 under add-or-remove.
    Guarantee: Pure(epsilon), of which the weighted sums and the density take 9/20 each and the total a tenth.
    Responses are put on 2049 levels of their range. Theorem `caratheodory-noise`. Compare Hall 2012, chapter 6.
    """

    family: FourierKDE
    size: int
    epsilon: Exact
    low: float
    high: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE

    def __post_init__(self) -> None:
        if not isinstance(self.family, FourierKDE) or self.family.dimension != 1 or self.family.order < 2:
            raise InvalidParameter(
                parameter="family", value=type(self.family).__name__,
                must="be a FourierKDE in one dimension, of order 2 at least",
            )  # fmt: skip
        low, high = (
            exact_parameter(n, v, positive=False) for n, v in (("low", self.low), ("high", self.high))
        )
        if low >= high:
            raise InvalidParameter(parameter="high", value=self.high, must="be above low")
        settle(self, size=whole("size", self.size, least=1), low=float(low), high=float(high))
        settle(self, neighbours=Neighbours.parse(self.neighbours), epsilon=self.epsilon)
        epsilon_parameter(self.epsilon)

    def _share(self, part: int) -> Fraction:
        return epsilon_parameter(self.epsilon) * SHARES[part]

    @property
    def density_plan(self) -> FourierPlan:
        """The plan of the denominator."""
        return FourierPlan(
            family=self.family, size=self.size, epsilon=self._share(0), neighbours=self.neighbours
        )

    @property
    def weighted_noise(self) -> KNormDifference:
        """The noise of sum y_i Psi(x_i)."""
        spacing = fourier_spacing(self.family.order)
        moved = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
        one = HullGauge(moved, CaratheodoryBody(frequencies=self.family.order))
        return KNormDifference.for_epsilon(
            epsilon=self._share(1),
            sensitivity=one.rounded(spacing=spacing, records=2),
            spacing=spacing / LEVELS,
        )

    @property
    def total_noise(self) -> Laplace:
        """The noise of sum y_i."""
        moved = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
        return Laplace.for_epsilon(epsilon=self._share(2), sensitivity=L1(moved), spacing=Fraction(1, LEVELS))

    @property
    def bound(self) -> Pure:
        """The three losses add."""
        density = self.density_plan.bound
        assert isinstance(density, Pure)
        parts = (density, self.weighted_noise.bound, self.total_noise.bound)
        return Pure(epsilon=sum_of_epsilons(*(float(p.epsilon) for p in parts)))

    def release(self, rows: Any, responses: Any, *, source: Source | None = None) -> ReleasedRegression:
        """Reads rows and responses once. A row without a number in either is moved to the low ends."""
        x, y = as_rows(rows, 1), as_rows(responses, 1)
        n = x.shape[0]
        if y.shape[0] != n:
            raise InvalidParameter(parameter="responses", value="another number", must="be one for each row")
        if self.neighbours is Neighbours.REPLACE_ONE and n != self.size:
            raise InvalidParameter(parameter="rows", value=f"{n} rows", must=f"have {self.size}, as planned")
        x = np.where(np.isnan(x), self.family.box.lows[0], x)
        y = np.where(np.isnan(y), self.low, np.clip(y, self.low, self.high))
        share = 2 * (y[:, 0] / 2 - self.low / 2) / (self.high / 2 - self.low / 2) - 1
        level = np.clip(np.rint(share * LEVELS), -LEVELS, LEVELS).astype(np.int64)
        where, counts = cells_of(x, self.family.box, self.family.cells, "edge")
        density = self.density_plan.release_cells(where, counts, source=source)
        place = _cell_numbers(x, self.family)
        sums = np.bincount(place, weights=level, minlength=self.family.cells[0]).astype(np.int64)
        used = np.flatnonzero(sums)
        noise, total = self.weighted_noise, self.total_noise
        spacing = noise.step * LEVELS
        weighted = noise.release(grid_sums(self.family, used[:, None], sums[used], spacing), source=source)
        whole_sum = total.release([int(level.sum())], source=source)
        values = np.concatenate([whole_sum.to_floats(), weighted.to_floats()]) / self.size
        return ReleasedRegression(
            density=density,
            weighted=values,
            low=self.low,
            high=self.high,
            bound=self.bound,
            publishable=density.publishable and weighted.publishable and whole_sum.publishable,
        )


def _cell_numbers(x: Floats, family: FourierKDE) -> npt.NDArray[np.int64]:
    """The lattice cell of each row, as `cells_of` counts them."""
    low, high, count = family.box.lows[0], family.box.highs[0], family.cells[0]
    inside = np.clip(x[:, 0], low, high)
    share = (inside / 2 - low / 2) / (high / 2 - low / 2)
    return np.minimum((share * count).astype(np.int64), count - 1)
