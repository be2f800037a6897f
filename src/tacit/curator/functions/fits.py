"""The fit of a function: from rows to whole numbers on a grid, and from noisy numbers back to a function of any
point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.curator.functions.statistics import (
    NOTHING,
    Classifier,
    FunctionStatistic,
    InputColumns,
    KernelModelStatistic,
    RegressionFunction,
    ends,
)
from tacit.errors import InvalidParameter, UnknownName, WrongType
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, positive, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.functions.boxes import Box
from tacit.functions.densities import DensityPlan, GaussianKDE, ReleasedDensity, public_bandwidth
from tacit.functions.densities.noises import FourierSeriesNoise
from tacit.functions.densities.released import order_statistic
from tacit.functions.fourier import FourierKDE, FourierPlan, fourier_bandwidth, fourier_order
from tacit.functions.fourier.plan import grid_sums
from tacit.functions.models import FourierFeatures, KernelModelPlan, LinearFeatures, PublicBall, PublicBox
from tacit.functions.models.features import FeatureMap
from tacit.functions.models.training import balanced_penalty
from tacit.guarantees import Unit
from tacit.mechanisms import Gamma, KNorm, KNormDifference, Laplace, RoundedGaussian, on_grid
from tacit.mechanisms.bodies import Contribution
from tacit.mechanisms.fourier import FourierMechanism
from tacit.mechanisms.spreads import normal_quantile
from tacit.noise.source import Source
from tacit.sources.axes import CountRows, Cut
from tacit.sources.columns import Measured
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells, TrainingRows
from tacit.sources.schema import Schema
from tacit.statistics.base import Question, base_unit, by_columns, filter_of, row_limit


class FunctionFit(ABC):
    """A function before and after its noise; every field except `integers` is public."""

    @property
    @abstractmethod
    def mechanism(self) -> FourierMechanism:
        """The noise on its numbers."""

    @property
    @abstractmethod
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""

    @property
    @abstractmethod
    def spacing(self) -> Fraction:
        """The grid of the numbers that get noise."""

    @property
    @abstractmethod
    def moves(self) -> dict[str, str]:
        """The sensitivity of all of them together, for a certificate."""

    @abstractmethod
    def integers(self, rows: Any) -> Any:
        """The true numbers in grid steps, for its question's sums. PRIVATE: to be given to the mechanism only."""

    def noisy(self, true: Any, source: Source | None) -> npt.NDArray[Any]:
        """The numbers with their noise, in grid steps."""
        return np.asarray(self.mechanism.release(true, source=source).values)

    def evaluated(self, numbers: Floats) -> dict[str, Any]:
        """More values of a certificate: the meaning of the numbers if they are not values of the function."""
        return {}

    def spread(self, confidence: float, coordinates: int = 1) -> float:
        """The bound on the noise at a point, in standard deviations, for this many points at once."""
        return normal_quantile(confidence, coordinates)

    @property
    def mean_spread(self) -> float:
        """The mean size of the noise at a point, in standard deviations."""
        return float(np.sqrt(2 / np.pi))

    @abstractmethod
    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        """The function at points, from its numbers: one column for each of its values."""

    @abstractmethod
    def stds(self, coordinates: Floats) -> Floats:
        """The standard deviation of the noise in each of them."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """The size of 1 of the function in the unit of the picture."""

    @property
    @abstractmethod
    def widest(self) -> float:
        """The largest of these at any point, in the unit of the answer."""

    @property
    @abstractmethod
    def scale(self) -> float | None:
        """The public scale that errors are compared with; None if a value is compared with itself."""

    @property
    @abstractmethod
    def about(self) -> str:
        """The cost of the noise, in a sentence."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The fit in plain values, for a certificate."""

    @abstractmethod
    def shown(self, values: Floats) -> Floats:
        """Values in the unit and within the range of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelModelFit(FunctionFit):
    """A classifier or a regression function: weights of a public feature map."""

    plan: KernelModelPlan
    inputs: InputColumns
    target: str
    classes: tuple[Any, ...] = ()
    bounds: tuple[float, float] | None = None
    width: int = 1

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("machine-sensitivity", "machine-gap", "machine-excess", "rounded-gaussian")

    @property
    def mechanism(self) -> RoundedGaussian:
        return self.plan.mechanism

    @property
    def spacing(self) -> Fraction:
        return self.plan.spacing

    @property
    def l2_sensitivity(self) -> Fraction:
        """The sensitivity of the weights: in L2, with the solver's tolerance."""
        return Fraction(self.plan.l2_sensitivity)

    @property
    def moves(self) -> dict[str, str]:
        return {"l2": str(self.l2_sensitivity)}

    def integers(self, rows: TrainingRows) -> Any:
        given = rows.rows[self.target]
        if self.classes:
            heads = [1] if len(self.classes) == 2 else range(len(self.classes))
            known = np.isfinite(given)
            targets = [np.where(known, np.where(given == h, 1.0, -1.0), np.nan) for h in heads]
        else:
            targets = [given * (2.0 / self.width) - 1.0]
        # Releases of earlier versions are answered again with the same numbers: by the solver that they had.
        found = self.plan.train(self.inputs.of_rows(rows.rows), targets, near_corners=False)
        return on_grid(np.concatenate(found), spacing=self.spacing)

    def weights(self, numbers: Floats) -> Floats:
        """One row of weights for each model."""
        return np.asarray(numbers).reshape(self.plan.heads, self.plan.features.dimension)

    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        return np.asarray(self.plan.features.of(coordinates) @ self.weights(numbers).T)

    def stds(self, coordinates: Floats) -> Floats:
        phi = self.plan.features.of(coordinates)
        return np.asarray(float(self.plan.noise_std) * np.sqrt((phi**2).sum(axis=1)) * self.unit)

    @property
    def unit(self) -> float:
        return 1.0 if self.bounds is None else (self.bounds[1] - self.bounds[0]) / 2

    def shown(self, values: Floats) -> Floats:
        if self.bounds is None:
            return values
        low, high = self.bounds
        return np.asarray(np.clip(low / 2 + high / 2 + self.unit * values, low, high))

    @property
    def widest(self) -> float:
        return float(self.plan.noise_std) * self.plan.features.radius * self.unit

    @property
    def scale(self) -> float | None:
        if isinstance(self.plan.features, LinearFeatures):
            return None
        return 1.0 if self.bounds is None else self.bounds[1] - self.bounds[0]

    @property
    def about(self) -> str:
        cost = f"the noise raises the expected {self.plan.loss.name} loss by at most"
        return f"the function's value at any one point; {cost} {self.plan.expected_excess_error():.3g}"

    def to_dict(self) -> dict[str, Any]:
        return {**self.plan.to_dict(), "expected_excess_error": self.plan.expected_excess_error()}


def _map(statistic: KernelModelStatistic, inputs: InputColumns) -> FeatureMap:
    count, constant = inputs.coordinates, float(statistic.intercept or 0.0)
    if statistic.kernel == "linear":
        return LinearFeatures(features=count, domain=PublicBall(radius=inputs.radius), intercept=constant)
    return FourierFeatures(
        features=count, domain=PublicBox(low=-1, high=1), gamma=statistic.gamma, pairs=statistic.pairs,
        intercept=constant,
    )  # fmt: skip


def kernel_model_fit(question: Question, mu: float) -> KernelModelFit:
    """The fit of a classifier or a regression function at this mu; every number of it is public."""
    statistic = question.statistic
    assert isinstance(statistic, Classifier | RegressionFunction)
    inputs: InputColumns = question.details["inputs"]
    classes: Sequence[Any] = question.details.get("classes", ())
    heads = len(classes) if len(classes) > 2 else 1
    base, group = base_unit(question.unit)
    features, loss, rows = _map(statistic, inputs), statistic.model_loss(), row_limit(question.unit) * group
    if statistic.penalty is None:
        penalty = balanced_penalty(
            loss=loss, radius=features.radius, size=statistic.size, mu=mu, heads=heads, rows=rows
        )
    else:
        penalty = statistic.penalty
    try:
        plan = KernelModelPlan(
            loss=loss, features=features, penalty=penalty, size=statistic.size, mu=mu, heads=heads, rows=rows,
            neighbours=base.neighbours,
        )  # fmt: skip
    except InvalidParameter as problem:
        raise InvalidParameter(
            parameter=problem.parameter, value=statistic.kind, must="leave room for a model at this price",
            hint="a larger penalty or size, or a larger epsilon",
        ) from None  # fmt: skip
    if isinstance(statistic, Classifier):
        return KernelModelFit(plan=plan, inputs=inputs, target=statistic.label, classes=tuple(classes))
    column = question.details["outcome"]
    return KernelModelFit(
        plan=plan, inputs=inputs, target=statistic.outcome, bounds=ends(column), width=column.width
    )


# Densities as statistics: kernel density estimates of declared columns, and how they are fitted.

MOST_COLUMNS = 3
MOST_KEYS = {1: 1 << 16, 2: 1 << 10, 3: 1 << 7}
"""The largest number of keys of a column in a count of rows, for this many columns."""
KEYS_A_WAVE = 16
"""The least number of keys of a column for each frequency, unless each of its values is a key."""
MARGIN = 0.0625
"""The part of the circle on each side of the box, so that bumps do not go round it."""
GUARANTEES = ("gaussian", "pure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Density(FunctionStatistic):
    """The density of one to three measured columns: a Gaussian kernel density estimate, and noise like its kernel."""

    kind: ClassVar[str] = "density"

    bandwidth: float | tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        FunctionStatistic.__post_init__(self)
        if len(self.columns) > MOST_COLUMNS:
            raise InvalidParameter(
                parameter="columns", value=len(self.columns), must=f"be at most {MOST_COLUMNS}",
                hint="a density in many dimensions needs more rows than there are; release margins",
            )  # fmt: skip
        if is_number(self.bandwidth):
            set_fields(self, bandwidth=positive("bandwidth", self.bandwidth))
        elif self.bandwidth is not None:
            each = tuple(positive("bandwidth", v) for v in members("bandwidth", self.bandwidth))
            if len(each) != len(self.columns):
                raise InvalidParameter(
                    parameter="bandwidth", value=len(each), must="be one number, or one for each column"
                )
            set_fields(self, bandwidth=each)

    def _measured(self, schema: Schema) -> InputColumns:
        inputs = self._inputs(schema)
        for name, column in zip(inputs.names, inputs.columns, strict=True):
            if not isinstance(column, Measured) or column.width == 0:
                raise WrongType(column=name, found=column.kind, wanted="a number with two different bounds")
        return inputs

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; every column has two different bounds."""
        inputs = self._measured(schema)
        return self._question(schema, unit, inputs, inputs.axes(self.points), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDensity(Density):
    """The same with a pure epsilon: a Fourier series, whose cosines and sines get the least noisy pure noise.

    Rows are counted by the keys of a public grid inside the engine, and the sums follow from the counts exactly: no
    row enters this process. Bandwidth and order are public, from `size` and the bounds where they are left out.
    """

    order: int | None = None
    guarantee: str = "pure"

    def __post_init__(self) -> None:
        Density.__post_init__(self)
        if self.order is not None:
            set_fields(self, order=whole("order", self.order, least=1))
        if self.guarantee != "pure":
            raise InvalidParameter(parameter="guarantee", value=str(self.guarantee), must="be pure")

    def family(self, inputs: InputColumns) -> FourierKDE:
        """The series; a bandwidth has three digits, so that the floats of another machine cannot change a plan."""
        box, width, order = box_of(inputs), self.bandwidth, self.order
        sides = [float(side) for side in box.sides]
        if width is None:
            share = fourier_bandwidth(size=self.size, dimension=len(sides))
            width = tuple(float(f"{share * side:.3g}") for side in sides)
        if order is None:
            # The bandwidth is judged first, in the words of anybody who gave it.
            FourierKDE(domain=box, bandwidth=width, order=1, margin=MARGIN)
            each = width if isinstance(width, tuple) else (width,) * len(sides)
            order = max(
                fourier_order(bandwidth=h * (1 - 2 * MARGIN) / side)
                for h, side in zip(each, sides, strict=True)
            )
        return FourierKDE(domain=box, bandwidth=width, order=order, margin=MARGIN)

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question: the number of rows for each key of the grid. A row with a gap has no key."""
        inputs = self._measured(schema)
        base_unit(unit)
        family, most = self.family(inputs), MOST_KEYS[len(inputs.names)]
        keys = []
        for name, column, cells in zip(inputs.names, inputs.columns, family.cells, strict=True):
            assert isinstance(column, Measured)
            levels = column.width + 1
            count = min(levels, cells, most)
            if count < levels:
                # This many keys are told apart exactly in doubles.
                count = min(count, ((1 << 52) - 1) // levels)
            if count < min(levels, most, KEYS_A_WAVE * family.order):
                raise InvalidParameter(
                    parameter="columns", value=name, must="have fewer values for a pure density of this order",
                    hint="a coarser spacing or nearer bounds; a lower order",
                )  # fmt: skip
            keys.append(Cut(column=name, values=column, count=count))
        counted = Aggregation(axes=tuple(keys), aggregates=(CountRows(where=self.where),), groups=())
        return Question(
            statistic=self, schema=schema, unit=unit, axes=inputs.axes(self.points), requests=(counted,), parts=(),
            sensitivity=NOTHING, sensitivities={}, form=None, details={"inputs": inputs, "family": family},
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityFit(FunctionFit):
    """Noisy coefficients of a kernel density estimate, in the columns' own units."""

    plan: DensityPlan
    inputs: InputColumns

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("density-kde", "density-lattice", "density-bands", "rounded-gaussian")

    @property
    def mechanism(self) -> RoundedGaussian:
        found = self.plan.noise_mechanism
        assert isinstance(found, RoundedGaussian)
        return found

    @property
    def spacing(self) -> Fraction:
        return self.mechanism.step

    @property
    def moves(self) -> dict[str, str]:
        return {"l2": str(Fraction(self.plan.sensitivity.value))}

    def _points(self, coordinates: Floats) -> Floats:
        return in_units(self.plan.family.box, coordinates)

    def integers(self, rows: TrainingRows) -> Any:
        return self.plan.family.sums(self._points(self.inputs.of_rows(rows.rows)), outside=self.plan.outside)

    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        family = self.plan.family
        inside = np.clip(self._points(coordinates), family.box.lows, family.box.highs)
        return np.asarray(family.synthesis(inside) @ numbers / self.plan.size)[:, None]

    def stds(self, coordinates: Floats) -> Floats:
        box = self.plan.family.box
        return self.plan.noise_std_at(np.clip(self._points(coordinates), box.lows, box.highs))

    @property
    def unit(self) -> float:
        return 1.0

    def shown(self, values: Floats) -> Floats:
        """No density is negative, with or without noise."""
        return np.asarray(np.maximum(values, 0.0))

    @property
    def widest(self) -> float:
        return self.plan.noise_std

    @property
    def scale(self) -> float | None:
        return 1 / self.plan.family.volume

    @property
    def about(self) -> str:
        cost = f"the expected integral of the squared noise is {self.plan.expected_noise_error():.3g}"
        return f"the density at any one point; {cost}"

    def to_dict(self) -> dict[str, Any]:
        return self.plan.to_dict()

    def released(self, numbers: Floats, *, publishable: bool) -> ReleasedDensity:
        """The density with everything computed from it: nearest density, quantiles, samples, bands."""
        spacing = self.spacing
        return ReleasedDensity(
            family=self.plan.family, values=np.array([round(Fraction(v) / spacing) for v in numbers], dtype=object),
            spacing=spacing, size=self.plan.size, noise=self.plan.noise, bound=self.plan.bound,
            neighbours=self.plan.neighbours, rows=self.plan.rows, outside=self.plan.outside, numerical_delta=0.0,
            publishable=publishable,
        )  # fmt: skip


def in_units(box: Box, coordinates: Floats) -> Floats:
    """Coordinates in [-1, 1] as values of the columns."""
    low, side = np.array(box.lows), np.array(box.sides, dtype=np.float64)
    return np.asarray(low + (coordinates + 1.0) * (side / 2))


def box_of(inputs: InputColumns) -> Box:
    """The declared bounds, in the columns' units."""
    low, high = zip(*(ends(c) for c in inputs.columns if isinstance(c, Measured)), strict=True)
    return Box(low=low, high=high)


def density_fit(question: Question, mu: float) -> DensityFit:
    """The fit of a density at this mu; a bandwidth that is left out follows from the size, the bounds and mu."""
    statistic, inputs = question.statistic, question.details["inputs"]
    assert isinstance(statistic, Density)
    box = box_of(inputs)
    base, group = base_unit(question.unit)
    width = statistic.bandwidth
    if width is None:
        # Three digits: no float of another machine decides about a plan.
        width = tuple(float(f"{h:.3g}") for h in public_bandwidth(size=statistic.size, domain=box, mu=mu))
    plan = DensityPlan(
        family=GaussianKDE(domain=box, bandwidth=width), size=statistic.size, mu=mu,
        rows=row_limit(question.unit) * group, neighbours=base.neighbours,
    )  # fmt: skip
    return DensityFit(plan=plan, inputs=inputs)


def density(
    columns: Any, *, size: int, bandwidth: Any = None, order: int | None = None, guarantee: str = "gaussian",
    points: int | None = None, where: str | Expression | None = None,
) -> Density:  # fmt: skip
    """The density of one to three columns, released as a whole: `density("age", size=5000)`.

    `size` is the public number of rows. `bandwidth` is in the columns' units, one number or one each; left out, it is
    found from size, bounds and price. guarantee="pure" is a Fourier series with a pure epsilon, which takes an `order`
    (the highest frequency on each side of the box).
    """
    if not isinstance(guarantee, str) or guarantee not in GUARANTEES:
        raise UnknownName(what="guarantee", name=str(guarantee), known=GUARANTEES)
    if guarantee == "pure":
        return PureDensity(
            columns=by_columns(columns), size=size, bandwidth=bandwidth, order=order, points=points,
            where=filter_of(where),
        )  # fmt: skip
    if order is not None:
        raise InvalidParameter(
            parameter="order", value=order, must='be left out without guarantee="pure"',
            hint="a bandwidth says how fine the curve is",
        )  # fmt: skip
    return Density(
        columns=by_columns(columns), size=size, bandwidth=bandwidth, points=points, where=filter_of(where)
    )


# How a pure density is fitted: counts by the keys of a public grid, sums of cosines and sines, pure noise on them.

DRAWS, MOST_DRAWS = 4000, 1 << 16
FEW = 64
TEN_THOUSANDTHS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDensityFit(FunctionFit):
    """Noisy sums of cosines and sines of a Fourier series density, in the columns' own units.

    Guarantee: that of its mechanism, Pure(epsilon). A row has at most one key of the grid, and the key alone
    decides whose features it adds. A row that becomes absent takes its features away, which is never a larger
    move than a replacement (theorems `fourier-sensitivity`, `caratheodory-noise`).
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
        """Values below 0 become 0: noise and the cut at a frequency can make a density negative."""
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

        Gamma noise and that of a disc are spherical: every combination of their coordinates has the
        distribution of one coordinate. Noise of the Caratheodory body is equally likely in all rotations of the
        circle: its distribution is the same at every point, and simulated at one. For the rest, and far out,
        |X| <= 2 std / (3 sqrt(miss)), which holds for every symmetric unimodal law (Gauss); E |X| <= std.
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

    def to_dict(self) -> dict[str, Any]:
        return {**self.plan.to_dict(), "keys": [key.count for key in self.keys]}

    def released(self, numbers: Floats, *, publishable: bool) -> ReleasedDensity:
        """The density with everything computed from it: nearest density, quantiles, samples, bands."""
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

    Both are free of the noise's scale and rounded up to four digits, so that all machines agree on them.
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
