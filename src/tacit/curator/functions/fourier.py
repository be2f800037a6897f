"""How a pure density is fitted: counts by the keys of a public grid, sums of cosines and sines, pure noise on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.curator.functions.density import PureDensity, in_units
from tacit.curator.functions.fits import Fit
from tacit.curator.functions.inputs import InputColumns
from tacit.exact.arrays import Floats
from tacit.functions.densities import ReleasedDensity
from tacit.functions.densities.bands import order_statistic
from tacit.functions.densities.noises import FourierSeriesNoise
from tacit.functions.fourier import FourierKDE, FourierPlan
from tacit.functions.fourier.plan import grid_sums
from tacit.mechanisms import Gamma, KNorm, KNormDifference, Laplace
from tacit.mechanisms.fourier import FourierMechanism
from tacit.mechanisms.shapes import Contribution
from tacit.sources.axes import Cut
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.sensitivity import base_unit, row_limit

__all__ = ["PureDensityFit", "pure_density_fit"]

DRAWS, MOST_DRAWS = 4000, 1 << 16
FEW = 64
TEN_THOUSANDTHS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDensityFit(Fit):
    """Noisy sums of cosines and sines of a Fourier series density, in the columns' own units.

    Guarantee: that of its mechanism, Pure(epsilon). A row has one key of the grid at most, and the key alone decides
    which lattice cell's features it adds; a row that comes to count as absent takes its features away, which is never
    further than replacing it (theorems `fourier-sensitivity`, `caratheodory-noise`).
    """

    plan: FourierPlan
    inputs: InputColumns
    keys: tuple[Cut, ...]

    @property
    def theorems(self) -> tuple[str, ...]:
        own = ("fourier-sensitivity", "fourier-series-density", "density-lattice", "density-bands")
        match self.mechanism:
            case KNorm():
                # The body of one frequency is a disc, whose plain K-norm noise is taken.
                return ("k-norm", *own)
            case Laplace():
                return ("discrete-laplace", "laplace", *own)
            case Gamma():
                return ("gamma-mechanism", *own)
        return ("caratheodory-noise", "k-norm-difference", *own)

    @property
    def mechanism(self) -> FourierMechanism:
        return self.plan.choice.mechanism

    @property
    def spacing(self) -> Fraction:
        return self.plan.choice.spacing

    @property
    def moves(self) -> dict[str, str]:
        found = self.mechanism
        match found:
            case Laplace():
                return {"l1": str(found.sensitivity.exact)}
            case Gamma():
                return {"l2": str(found.sensitivity.value)}
            case KNorm() | KNormDifference():
                each = found.sensitivity
                name = "contribution" if isinstance(each, Contribution) else "gauge"
                return {name: str(each.exact), "body": type(each.body).__name__}
        raise AssertionError("the noise of a pure density is pure")

    def integers(self, rows: Cells) -> Any:
        (counted,) = rows.request.aggregates
        counts = np.asarray(rows.values[counted])
        found = np.nonzero(counts)
        places = [self._lattice(axis)[at] for axis, at in enumerate(found)]
        where = np.stack(places, axis=1).astype(np.int64)
        return grid_sums(self.plan.family, where, counts[found].astype(np.int64), self.spacing)

    def _lattice(self, axis: int) -> npt.NDArray[np.int64]:
        """The lattice cell that the middle of each key lies in; public."""
        key, cells = self.keys[axis], self.plan.family.cells[axis]
        first = np.array(key.first_steps(), dtype=np.float64) - key.values.lowest
        middle = (first[:-1] + first[1:] - 1) / 2
        return np.minimum((middle / key.values.width * cells).astype(np.int64), cells - 1)

    def _inside(self, coordinates: Floats) -> Floats:
        box = self.plan.family.box
        return np.asarray(np.clip(in_units(box, coordinates), box.lows, box.highs))

    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        # The first coefficient is the declared size, without noise.
        means = np.concatenate([[1.0], numbers / self.plan.size])
        return np.asarray(self.plan.family.synthesis(self._inside(coordinates)) @ means)[:, None]

    def stds(self, coordinates: Floats) -> Floats:
        return self.plan.noise_std_at(self._inside(coordinates))

    @property
    def unit(self) -> float:
        return 1.0

    def shown(self, values: Floats) -> Floats:
        """No density is negative: noise and the cut at a frequency may have made it so."""
        return np.asarray(np.maximum(values, 0.0))

    @property
    def widest(self) -> float:
        return self.plan.noise_std

    def spread(self, confidence: float, coordinates: int = 1) -> float:
        return self._spreads(1 - (1 - confidence) / coordinates)[1]

    @property
    def mean_spread(self) -> float:
        return self._spreads(0.95)[0]

    def _spreads(self, level: float) -> tuple[float, float]:
        """The mean and the quantile of |noise at a point| over its standard deviation, by the noise's own law.

        Gamma noise and that of a disc are spherical: every combination of their coordinates is as one coordinate.
        Noise of the Caratheodory body is as likely turned round the circle: its law is the same at every point, and
        simulated at one. For the rest, and far out, |X| <= 2 std / (3 sqrt(miss)), which holds for every symmetric
        unimodal law (Gauss); E |X| <= std.
        """
        found, noise = self.mechanism, self.plan.noise
        widest = 1.0, max(2 / (3 * math.sqrt(1 - level)), math.sqrt(8 / 3))
        if isinstance(found, Gamma | KNorm):
            std = float(noise.stds(self.plan.family.coefficients)[1])
            return min(1.0, found.expected_error() / std), found.error_quantile(level) / std
        if isinstance(found, KNormDifference) and 20 / (1 - level) <= MOST_DRAWS:
            return _simulated(self.plan.family, level)
        return widest

    @property
    def scale(self) -> float | None:
        return 1 / self.plan.family.volume

    @property
    def about(self) -> str:
        cost = f"the expected integral of the squared noise is {self.plan.expected_noise_error():.3g}"
        return f"the density at any one point; {cost}"

    @property
    def words(self) -> dict[str, Any]:
        return {**self.plan.words, "keys": [key.count for key in self.keys]}

    def released(self, numbers: Floats, *, publishable: bool) -> ReleasedDensity:
        """The density with all that can be read from it: nearest density, quantiles, samples, bands."""
        plan, spacing = self.plan, self.spacing
        steps = [int(plan.size / spacing), *(round(Fraction(float(v)) / spacing) for v in numbers)]
        return ReleasedDensity(
            family=plan.family, values=np.array(steps, dtype=object), spacing=spacing, size=plan.size,
            noise=plan.noise, bound=plan.bound, neighbours=plan.neighbours, rows=plan.rows, outside=plan.outside,
            numerical_delta=0.0, publishable=publishable,
        )  # fmt: skip


@lru_cache(maxsize=64)
def _simulated(family: FourierKDE, level: float) -> tuple[float, float]:
    """Mean and quantile of |noise at a point| / std from public draws; the quantile is not below with 0.999.

    Both are free of the noise's scale, and rounded up to four digits: no float of another machine decides them.
    """
    noise = FourierSeriesNoise(mechanism="caratheodory", noise_scale=1.0, order=family.order)
    middle = np.array([[family.box.lows[0] + float(family.box.sides[0]) / 2]])
    row = family.synthesis(middle)[0]
    std = math.sqrt(float(row**2 @ noise.stds(row.size) ** 2))
    # Draws of many frequencies are slow: fewer of them, and a quantile that is a little wider.
    usual = DRAWS if family.order <= FEW else DRAWS * FEW**2 // family.order**2
    draws = max(usual, math.ceil(20 / (1 - level)))
    size = np.abs(noise.draws(draws, row.size, 0) @ row) / std
    found = float(np.sort(size)[order_statistic(draws, level) - 1])
    mean, quantile = (math.ceil(v * TEN_THOUSANDTHS) / TEN_THOUSANDTHS for v in (float(size.mean()), found))
    return mean, quantile


def pure_density_fit(question: Question, epsilon: Fraction) -> PureDensityFit:
    """The fit of a pure density at this epsilon; every number of it is public."""
    statistic, inputs = question.statistic, question.details["inputs"]
    assert isinstance(statistic, PureDensity)
    base, group = base_unit(question.unit)
    plan = FourierPlan(
        family=question.details["family"], size=statistic.size, epsilon=epsilon,
        rows=row_limit(question.unit) * group, neighbours=base.neighbours,
    )  # fmt: skip
    (counted,) = question.requests
    keys = tuple(axis for axis in counted.axes if isinstance(axis, Cut))
    return PureDensityFit(plan=plan, inputs=inputs, keys=keys)
