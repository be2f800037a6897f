"""Models in the curator: logistic, linear and additive, by objective perturbation over declared columns.

The query (`ModelStatistic`) and its fit (`PerturbedFit`): rows as places of bins or as scaled numbers, one perturbed
objective, its released minimiser, and the model made from it. Everything except the rows is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.curator.functions.fits import FunctionFit
from tacit.curator.functions.statistics import FunctionStatistic, InputColumns, Points, class_column, ends
from tacit.errors import InvalidParameter, WrongType
from tacit.exact.arrays import Floats
from tacit.exact.checks import members, non_negative, positive, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.functions.models.columns import BINS, LONGEST, OTHER, CategoryColumn, DeclaredColumns, NumberColumn
from tacit.functions.models.contrasts import SMOOTH, Contrasts
from tacit.functions.models.losses import LogCosh
from tacit.functions.models.objective import DenseDesign, ModelRows
from tacit.functions.models.perturbed import perturbed_head
from tacit.functions.models.rivals import ModelChoice, perturbation
from tacit.functions.models.solvers import Logistic, SmoothLoss
from tacit.guarantees import Neighbours, Unit
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.objective import PerturbedMinimiser
from tacit.noise.source import Source
from tacit.sources.columns import Category, Date, Flag, Measured
from tacit.sources.expressions import Expression
from tacit.sources.query import TrainingRows
from tacit.sources.schema import Schema
from tacit.statistics.base import Question, base_unit, by_columns, filter_of, row_limit

CONSTANT = "(constant)"
MOST_BINS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatistic(FunctionStatistic):
    """A model of some columns, released by its coefficients; no number of rows is needed."""

    size: int = 1
    target: str
    ridge: float | None = None

    coding: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        FunctionStatistic.__post_init__(self)
        text("target", self.target, empty=False)
        if self.target in self.columns:
            raise InvalidParameter(parameter="target", value=self.target, must="be none of the columns")
        set_fields(self, ridge=None if self.ridge is None else positive("ridge", self.ridge))

    def _classes(self, schema: Schema) -> tuple[tuple[Any, ...], dict[str, tuple[str, ...]]] | None:
        """The two classes of a flag or category, and how they are read; None for a number."""
        return class_column(schema, self.target, most=2)

    def _outcome(self, schema: Schema) -> Measured:
        column = schema.measured(self.target)
        if isinstance(column, Date | Flag) or column.width == 0:
            raise WrongType(
                column=self.target, found=column.kind, wanted="a number with two different bounds"
            )
        return column

    def loss(self, question: Question) -> SmoothLoss:
        """The loss that is minimised."""
        return Logistic()

    def _features(self, inputs: InputColumns) -> tuple[str, ...]:
        return (*inputs.features, CONSTANT)

    def _asked(self, schema: Schema, unit: Unit, more: dict[str, Any], wanted: dict[str, Any]) -> Question:
        inputs = self._inputs(schema)
        axes = (Points(column="term", values=self._features(inputs)),)
        return self._question(schema, unit, inputs, axes, more, **wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticModel(ModelStatistic):
    """Logistic regression of a flag, or of a category with two values."""

    kind: ClassVar[str] = "logistic"

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the target has two declared values."""
        found = self._classes(schema)
        if found is None:
            raise WrongType(
                column=self.target, found=schema[self.target].kind,
                wanted="a flag, or a category with two declared values",
                hint='category(["no", "yes"]) lists them',
            )  # fmt: skip
        return self._asked(schema, unit, {"classes": found[0]}, found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearModel(ModelStatistic):
    """Linear regression of a number within its declared bounds, by the log-cosh loss."""

    kind: ClassVar[str] = "linear"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        ModelStatistic.__post_init__(self)
        set_fields(self, threshold=positive("threshold", self.threshold))

    def loss(self, question: Question) -> SmoothLoss:
        return LogCosh(threshold=self.threshold)

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the target is a number with two different bounds."""
        outcome = self._outcome(schema)
        return self._asked(schema, unit, {"outcome": outcome}, {"measured": (self.target,)})


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveModel(ModelStatistic):
    """One shape a column, over even bins of its declared range: of a logit for two classes, else of a number.

    `interactions` are pairs of columns with a term of their own, `monotone` pairs of a column and its direction.
    """

    kind: ClassVar[str] = "additive"
    coding: ClassVar[str] = "binned"
    bins: int = BINS
    smooth: float = SMOOTH
    threshold: float = 0.5
    interactions: tuple[tuple[str, str], ...] = ()
    monotone: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        ModelStatistic.__post_init__(self)
        set_fields(
            self, bins=whole("bins", self.bins), smooth=non_negative("smooth", self.smooth),
            threshold=positive("threshold", self.threshold),
        )  # fmt: skip
        if self.bins > MOST_BINS:
            raise InvalidParameter(parameter="bins", value=self.bins, must=f"be at most {MOST_BINS}")

    def to_dict(self) -> dict[str, Any]:
        """Terms that are not asked for are left out."""
        said = ModelStatistic.to_dict(self)
        return {k: v for k, v in said.items() if v or k not in ("interactions", "monotone")}

    def loss(self, question: Question) -> SmoothLoss:
        return Logistic() if "classes" in question.details else LogCosh(threshold=self.threshold)

    def _features(self, inputs: InputColumns) -> tuple[str, ...]:
        return (*bin_names(inputs, self.bins, self.terms(inputs)), CONSTANT)

    def terms(self, inputs: InputColumns) -> DeclaredColumns:
        """Bins, pairs and directions of the columns, by their places."""
        return bin_layout(inputs, self.bins).with_terms(
            interactions=self.interactions, monotone=dict(self.monotone)
        )

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the target is a flag, a category with two values, or a number with bounds."""
        found = self._classes(schema)
        if found is not None:
            return self._asked(schema, unit, {"classes": found[0]}, found[1])
        return self._asked(schema, unit, {"outcome": self._outcome(schema)}, {"measured": (self.target,)})


def bin_sizes(inputs: InputColumns, bins: int) -> tuple[int, ...]:
    """The number of bins of each column. The last one is for missing values."""
    return tuple(
        1 + (len(c.values or ()) if isinstance(c, Category) else min(bins, c.width + 1))
        for c in inputs.columns
    )


def bin_layout(inputs: InputColumns, bins: int) -> DeclaredColumns:
    """The columns as numbered bins, with the names and ends that the schema declares."""
    made = tuple(
        CategoryColumn(values=tuple(range(size - 1)))
        if isinstance(c, Category)
        else NumberColumn(low=0, high=1, bins=size - 1)
        for c, size in zip(inputs.columns, bin_sizes(inputs, bins), strict=True)
    )
    return DeclaredColumns(names=tuple(inputs.names), columns=made)


def bin_names(inputs: InputColumns, bins: int, layout: DeclaredColumns | None = None) -> tuple[str, ...]:
    """A name for each bin, and for each cell of a pair."""
    out: list[str] = []
    for name, column, size in zip(inputs.names, inputs.columns, bin_sizes(inputs, bins), strict=True):
        out += _bin_names(name, column, size, size - 1)
    for pair in () if layout is None else layout.pair_columns:
        one, two = (
            _bin_names(inputs.names[k], inputs.columns[k], layout.sizes[k], groups - 1)  # type: ignore[union-attr]
            for k, groups in zip(pair.places, pair.groups, strict=True)
        )
        out += [f"{a} & {b}" for a in one for b in two]
    return tuple(out)


def _bin_names(name: str, column: Any, size: int, groups: int) -> list[str]:
    """A name for each group of neighbouring bins, and for missing values."""
    if isinstance(column, Category):
        own = [f"{name} = {v}" for v in column.values or ()]
    else:
        bins, steps = size - 1, column.width + 1
        # The first step of each bin, of bins the first of each group.
        bins_before = [-(-k * bins // groups) for k in range(groups + 1)]
        firsts = [-(-k * steps // bins) for k in bins_before]
        own = [
            f"{name} {column.label(column.lowest + a)}"
            if b - a == 1
            else f"{name} {column.label(column.lowest + a)} to {column.label(column.lowest + b - 1)}"
            for a, b in pairwise(firsts)
        ]
    return [*own, f"{name} {OTHER}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbedFit(FunctionFit):
    """One released minimiser of a perturbed objective, and its model."""

    noise: PerturbedMinimiser
    inputs: InputColumns
    target: str
    coding: str
    loss: SmoothLoss
    classes: tuple[Any, ...] = ()
    bounds: tuple[float, float] | None = None
    width: int = 1
    bins: int = BINS
    smooth: float = 0.0
    interactions: tuple[tuple[str, str], ...] = ()
    monotone: tuple[tuple[str, str], ...] = ()
    learned: Contrasts | None = None

    def __post_init__(self) -> None:
        if self.coding == "binned" and self.learned is None:
            set_fields(self, learned=Contrasts.plain(self.layout))

    @property
    def layout(self) -> DeclaredColumns:
        """Bins, pairs and directions of the columns, by their places."""
        return bin_layout(self.inputs, self.bins).with_terms(
            interactions=self.interactions, monotone=dict(self.monotone)
        )

    def spread(self, confidence: float, coordinates: int = 1) -> float:
        """The size of the covering noise: normal, or one coordinate of noise that falls with its length."""
        output = self.noise.output
        if isinstance(output, KNorm):
            return float(output.error_quantile(1 - (1 - confidence) / coordinates) / output.noise_std)
        return FunctionFit.spread(self, confidence, coordinates)

    @property
    def mean_spread(self) -> float:
        output = self.noise.output
        if isinstance(output, KNorm):
            return min(1.0, float(output.expected_error() / output.noise_std))
        return float(np.sqrt(2 / np.pi))

    @property
    def mechanism(self) -> Any:
        return self.noise

    @property
    def theorems(self) -> tuple[str, ...]:
        return self.noise.theorems

    @property
    def spacing(self) -> Fraction:
        return self.noise.spacing

    @property
    def moves(self) -> dict[str, str]:
        return {"gradient_l2": str(Fraction(self.noise.gradient)), "rows": str(self.noise.rows)}

    @property
    def height(self) -> float:
        """The entry of a linear model's row in each place."""
        return 1 / math.sqrt(len(self.inputs.names) + 1)

    def integers(self, rows: TrainingRows) -> Any:
        """The coded rows and their targets. PRIVATE: to be given to the mechanism only."""
        given = rows.rows[self.target]
        known = np.isfinite(given)
        target = np.where(given == 1, 1.0, -1.0) if self.classes else given * (2.0 / self.width) - 1.0
        if self.coding == "binned":
            return self._codes({n: rows.rows[n] for n in self.inputs.names})[known], target[known]
        table = self._linear(self.inputs.of_rows(rows.rows))
        # A gap moves a linear model by nothing.
        return np.where(np.isfinite(table), table, 0.0)[known], target[known]

    def noisy(self, true: Any, source: Source | None) -> npt.NDArray[Any]:
        coded, target = true
        design: ModelRows = DenseDesign(table=coded, radius=LONGEST)
        extra = None
        if self.learned is not None:
            design, extra = self.learned.design(coded), self.learned.penalty(self.noise.ridge)
        head = perturbed_head(self.loss, design, target, self.noise, extra)
        return np.asarray(self.noise.release(head, source=source).values)

    def _linear(self, coordinates: Floats) -> Floats:
        return np.hstack([coordinates, np.ones((len(coordinates), 1))]) * self.height

    def _codes(self, steps: dict[str, Floats]) -> npt.NDArray[np.int64]:
        """Places of bins, from steps above the lowest value and places of categories; gaps lie in the last bin."""
        places = []
        for name, column, size in zip(
            self.inputs.names, self.inputs.columns, bin_sizes(self.inputs, self.bins), strict=True
        ):
            given = steps[name]
            known = np.isfinite(given)
            whole_steps = np.where(known, given, 0).astype(np.int64)
            if isinstance(column, Category):
                place = np.clip(whole_steps, 0, size - 2)
            else:
                place = np.clip(whole_steps, 0, column.width) * (size - 1) // (column.width + 1)
            places.append(np.where(known, place, size - 1))
        layout = self.layout
        places += [pair.cells(places) for pair in layout.pair_columns]
        parts = [place + start for place, start in zip(places, layout.starts, strict=False)]
        return np.column_stack([*parts, np.full(len(parts[0]), layout.dimension - 1, dtype=np.int64)])

    def _coded(self, coordinates: Floats) -> Floats:
        """Public points as rows of the model."""
        if self.coding == "linear":
            return self._linear(coordinates)
        steps, at = {}, 0
        for name, column in zip(self.inputs.names, self.inputs.columns, strict=True):
            if isinstance(column, Category):
                count = len(column.values or ())
                steps[name] = coordinates[:, at : at + count].argmax(axis=1).astype(np.float64)
                at += count
            else:
                steps[name] = np.rint((coordinates[:, at] + 1) / 2 * column.width)
                at += 1
        codes = self._codes(steps)
        table = np.zeros((len(codes), self.layout.dimension))
        for j in range(codes.shape[1]):
            table[np.arange(len(codes)), codes[:, j]] = 1.0
        return table

    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        return np.asarray(self._coded(coordinates) @ self._shaped(numbers))[:, None]

    def _shaped(self, numbers: Floats, *, shaped: bool = True) -> Floats:
        """The weights of linear models; values of all places of additive ones, with the declared directions."""
        if self.learned is None:
            return np.asarray(numbers)
        values = self.learned.matrix @ numbers
        return self.layout.monotone(values, None) if self.monotone and shaped else np.asarray(values)

    def terms(self, numbers: Floats, *, shaped: bool = True) -> Floats:
        """The contribution of each place: to the logit, or to the outcome in its unit."""
        height = self.height if self.learned is None else 1.0
        out = np.array(self._shaped(numbers, shaped=shaped)) * height * self.unit
        if self.bounds is not None:
            out[-1] += (self.bounds[0] + self.bounds[1]) / 2
        return out

    def evaluated(self, numbers: Floats) -> dict[str, Any]:
        """The terms of an additive model in the order of its table: they add up to what it says."""
        return {} if self.learned is None else {"terms": [float(v) for v in self.terms(numbers)]}

    @property
    def term_std(self) -> float | Floats:
        """The standard deviation of the covering noise in each term."""
        lengths = self.height if self.learned is None else np.sqrt((self.learned.matrix**2).sum(axis=1))
        return float(self.noise.output.noise_std) * self.unit * lengths

    def stds(self, coordinates: Floats) -> Floats:
        table = self._coded(coordinates)
        if self.learned is not None:
            table = table @ self.learned.matrix
        return np.asarray(float(self.noise.output.noise_std) * np.sqrt((table**2).sum(axis=1)) * self.unit)

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
        return float(self.noise.output.noise_std) * self.unit

    @property
    def scale(self) -> float | None:
        return None

    @property
    def about(self) -> str:
        return (
            "the minimiser of the objective with its random term; how far that term moves it depends on the data "
            f"(its standard deviation is {self.noise.term_std:.3g} for a ridge of {self.noise.ridge:.3g})"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "loss": self.loss.name, "coding": self.coding, "bins": self.bins, "smooth": self.smooth,
            "noise": self.noise.noise_distribution,
            **({"interactions": [list(p) for p in self.interactions]} if self.interactions else {}),
            **({"monotone": dict(self.monotone)} if self.monotone else {}),
        }  # fmt: skip


def perturbed_fit(question: Question, epsilon: Fraction, delta: Fraction) -> tuple[PerturbedFit, ModelChoice]:
    """The fit of a model at this price (delta = 0 means pure), with the reason; all its numbers are public."""
    statistic = question.statistic
    assert isinstance(statistic, ModelStatistic)
    inputs: InputColumns = question.details["inputs"]
    rows = moved_rows(question)
    loss, additive = statistic.loss(question), statistic if isinstance(statistic, AdditiveModel) else None
    choice = perturbation(
        epsilon=epsilon, delta=delta, loss=loss, radius=LONGEST, rows=rows, ridge=statistic.ridge,
        **({"dimension": inputs.coordinates + 1} if additive is None else
           {"columns": additive.terms(inputs), "smooth": additive.smooth}),
    )  # fmt: skip
    outcome = question.details.get("outcome")
    terms: dict[str, Any] = {} if additive is None else {
        "bins": additive.bins, "smooth": additive.smooth, "interactions": additive.interactions,
        "monotone": additive.monotone,
    }  # fmt: skip
    fit = PerturbedFit(
        noise=choice.mechanism, inputs=inputs, target=statistic.target, coding=statistic.coding, loss=loss,
        classes=tuple(question.details.get("classes", ())), bounds=None if outcome is None else ends(outcome),
        width=1 if outcome is None else outcome.width, learned=choice.contrasts, **terms,
    )  # fmt: skip
    return fit, choice


def moved_rows(question: Question) -> int:
    """The number of rows that are added or taken away between neighbours."""
    base, group = base_unit(question.unit)
    return row_limit(question.unit) * group * (2 if base.neighbours is Neighbours.REPLACE_ONE else 1)


def made_for_model(fit: PerturbedFit, question: Question) -> bool:
    """Whether this fit is what was declared, and its noise covers what a unit can move.

    Free are the form of a number's loss, a ridge that is not declared, and contrasts: they may be an earlier choice.
    """
    statistic, noise, loss = question.statistic, fit.noise, fit.loss
    assert isinstance(statistic, ModelStatistic)
    outcome, inputs = question.details.get("outcome"), question.details["inputs"]
    additive = isinstance(statistic, AdditiveModel)
    numbers = inputs.coordinates + 1 if fit.learned is None else fit.learned.dimension
    same = (
        (fit.target, fit.coding, fit.inputs) == (statistic.target, statistic.coding, inputs)
        and fit.classes == tuple(question.details.get("classes", ()))
        and fit.bounds == (None if outcome is None else ends(outcome))
        and fit.width == (1 if outcome is None else outcome.width)
        and (not isinstance(statistic, AdditiveModel) or _terms_of(fit) == _terms_of(statistic))
        and loss.lipschitz == statistic.loss(question).lipschitz
        and statistic.ridge in (None, noise.ridge)
    )
    places = fit.learned is None or [len(b) for b in fit.learned.blocks] == [*fit.layout.sizes, 1]
    second = 1.0 if loss.signs == "logistic" else loss.curvature
    return bool(
        same and places and additive == (fit.learned is not None) and (loss.name == "logistic") == bool(fit.classes)
        and noise.loss == loss.signs and noise.rows >= moved_rows(question) and noise.dimension == numbers
        and noise.gradient >= loss.lipschitz * LONGEST and noise.second >= second * LONGEST**2
    )  # fmt: skip


def _terms_of(one: PerturbedFit | AdditiveModel) -> tuple[Any, ...]:
    return one.bins, one.smooth, one.interactions, one.monotone


def logistic_regression(
    columns: Any, target: str, *, ridge: float | None = None, where: str | Expression | None = None
) -> LogisticModel:
    """Logistic regression of a flag or a two-valued category: `logistic_regression(["age", "sex"], "employed")`.

    Released by its terms; a price with epsilon and delta. The ridge that is left out follows from the price.
    """
    return LogisticModel(columns=by_columns(columns), target=target, ridge=ridge, where=filter_of(where))


def linear_regression(
    columns: Any, target: str, *, threshold: float = 0.5, ridge: float | None = None,
    where: str | Expression | None = None,
) -> LinearModel:  # fmt: skip
    """Linear regression of a number within its bounds: `linear_regression(["age", "sex"], "income")`.

    The log-cosh loss, a smooth Huber loss, with this threshold, for outcomes scaled to [-1, 1].
    """
    return LinearModel(
        columns=by_columns(columns), target=target, threshold=threshold, ridge=ridge, where=filter_of(where)
    )


def additive_model(
    columns: Any, target: str, *, bins: int = BINS, smooth: float = SMOOTH, threshold: float = 0.5,
    interactions: Any = (), monotone: Any = None, ridge: float | None = None, where: str | Expression | None = None,
) -> AdditiveModel:  # fmt: skip
    """One shape a column: `additive_model(["age", "sex"], "employed", bins=12)`; released by its bins.

    Numbers have `bins` even bins of their declared range; `smooth` weighs squared differences of neighbouring ones in
    what is expected of shapes.
    interactions=[("age", "sex")] adds terms of two columns, monotone={"age": "increasing"} makes a shape rise.
    """
    return AdditiveModel(
        columns=by_columns(columns), target=target, bins=bins, smooth=smooth, threshold=threshold, ridge=ridge,
        interactions=_name_pairs(interactions), monotone=_named_ways(monotone), where=filter_of(where),
    )  # fmt: skip


def _name_pairs(given: Any) -> tuple[tuple[str, str], ...]:
    """Pairs of names, each in the order of the alphabet: one question, one form."""
    out = []
    for pair in members("interactions", given):
        two = members("interactions", pair)
        if len(two) != 2 or not all(isinstance(n, str) for n in two):
            raise InvalidParameter(
                parameter="interactions", value=len(two), must="be pairs of names of columns"
            )
        first, second = sorted(two)
        out.append((first, second))
    return tuple(sorted(out))


def _named_ways(given: Any) -> tuple[tuple[str, str], ...]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidParameter(
            parameter="monotone", value=type(given).__name__, must='be like {"age": "increasing"}'
        )
    return tuple(sorted((text("monotone", n), text("monotone", w)) for n, w in (given or {}).items()))
