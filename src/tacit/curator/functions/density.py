"""Densities as statistics: kernel density estimates of declared columns, and how they are fitted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.curator.functions.fits import Fit
from tacit.curator.functions.inputs import InputColumns
from tacit.curator.functions.statistics import NOTHING, FunctionStatistic, ends
from tacit.errors import InvalidParameter, UnknownName, WrongType
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, positive, settle, whole
from tacit.functions.boxes import Box
from tacit.functions.densities import DensityPlan, GaussianKDE, ReleasedDensity, public_bandwidth
from tacit.functions.fourier import FourierKDE, fourier_bandwidth, fourier_order
from tacit.guarantees import Unit
from tacit.mechanisms import RoundedGaussian
from tacit.sources.aggregates import CountRows
from tacit.sources.axes import Cut
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation
from tacit.sources.schema import Measured, Schema
from tacit.sources.training import TrainingRows
from tacit.statistics.base import Question, by_columns, filter_of
from tacit.statistics.sensitivity import base_unit, row_limit

__all__ = ["Density", "DensityFit", "PureDensity", "density", "density_fit", "in_units"]

MOST_COLUMNS = 3
MOST_KEYS = {1: 1 << 16, 2: 1 << 10, 3: 1 << 7}
"""So many keys a column has at most where rows are counted, for this many columns."""
KEYS_A_WAVE = 16
"""So many keys a column has at least for each frequency, or one for each of its values."""
MARGIN = 0.0625
"""Of the circle on each side of the box, so that bumps do not go round it."""
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
            settle(self, bandwidth=positive("bandwidth", self.bandwidth))
        elif self.bandwidth is not None:
            each = tuple(positive("bandwidth", v) for v in members("bandwidth", self.bandwidth))
            if len(each) != len(self.columns):
                raise InvalidParameter(
                    parameter="bandwidth", value=len(each), must="be one number, or one for each column"
                )
            settle(self, bandwidth=each)

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
    row comes into this process. Bandwidth and order are public, from `size` and the bounds where they are left out.
    """

    order: int | None = None
    guarantee: str = "pure"

    def __post_init__(self) -> None:
        Density.__post_init__(self)
        if self.order is not None:
            settle(self, order=whole("order", self.order, least=1))
        if self.guarantee != "pure":
            raise InvalidParameter(parameter="guarantee", value=str(self.guarantee), must="be pure")

    def family(self, inputs: InputColumns) -> FourierKDE:
        """The series; three digits of a bandwidth, so that no float of another machine decides about a plan."""
        box, width, order = _box(inputs), self.bandwidth, self.order
        sides = [float(side) for side in box.sides]
        if width is None:
            share = fourier_bandwidth(size=self.size, dimension=len(sides))
            width = tuple(float(f"{share * side:.3g}") for side in sides)
        if order is None:
            # The bandwidth is judged first, in the words of whoever gave it.
            FourierKDE(domain=box, bandwidth=width, order=1, margin=MARGIN)
            each = width if isinstance(width, tuple) else (width,) * len(sides)
            order = max(
                fourier_order(bandwidth=h * (1 - 2 * MARGIN) / side)
                for h, side in zip(each, sides, strict=True)
            )
        return FourierKDE(domain=box, bandwidth=width, order=order, margin=MARGIN)

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question: how many rows there are for each key of the grid. A row with a gap has no key."""
        inputs = self._measured(schema)
        base_unit(unit)
        family, most = self.family(inputs), MOST_KEYS[len(inputs.names)]
        keys = []
        for name, column, cells in zip(inputs.names, inputs.columns, family.cells, strict=True):
            assert isinstance(column, Measured)
            levels = column.width + 1
            count = min(levels, cells, most)
            if count < levels:
                # So many keys are told apart exactly in doubles.
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
class DensityFit(Fit):
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
        """No density is negative, and neither is the estimate without noise."""
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

    @property
    def words(self) -> dict[str, Any]:
        return self.plan.words

    def released(self, numbers: Floats, *, publishable: bool) -> ReleasedDensity:
        """The density with all that can be read from it: nearest density, quantiles, samples, bands."""
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


def _box(inputs: InputColumns) -> Box:
    """The declared bounds, in the columns' units."""
    low, high = zip(*(ends(c) for c in inputs.columns if isinstance(c, Measured)), strict=True)
    return Box(low=low, high=high)


def density_fit(question: Question, mu: float) -> DensityFit:
    """The fit of a density at this mu; a bandwidth that is left out follows from the size, the bounds and mu."""
    statistic, inputs = question.statistic, question.details["inputs"]
    assert isinstance(statistic, Density)
    box = _box(inputs)
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
