"""Functions as statistics: the queries, checked against the schema and the unit before any charge.

`size` is the public number that losses and kernels are divided by. Under replace-one neighbours of rows it is
the number of rows, otherwise any public number near it. Privacy holds for every `size` and any number of rows:
`size` is never read from the data.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName, WrongType
from tacit.exact.arrays import Floats
from tacit.exact.checks import non_negative, positive, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.functions.models.solvers import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from tacit.guarantees import Unit
from tacit.sources.axes import Axis, cell_count
from tacit.sources.columns import Category, Date, Flag, Measured, Number
from tacit.sources.expressions import Expression
from tacit.sources.query import RowsWanted
from tacit.sources.schema import Schema
from tacit.statistics.base import GlobalSensitivity, Question, Statistic, base_unit, by_columns, filter_of

# The columns that a function is a function of: from declared values to coordinates, and to public points of a grid.
#
# A measured column (number, integer, date, flag) is scaled by its declared bounds to [-1, 1]; a category becomes one
# coordinate for each of its values, 1 where it is that and else 0. So no row is longer than the root of the number of
# columns, whatever it holds.

POINTS = {1: 101, 2: 20, 3: 7, 4: 5}
FEW_POINTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Points(Axis):
    """Public points along one column, at which a function is shown."""

    values: tuple[Any, ...]

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.values

    @property
    def always(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class InputColumns:
    """Declared columns in order, and the coordinates that they span."""

    names: tuple[str, ...]
    columns: tuple[Measured | Category, ...]

    @classmethod
    def of(cls, names: Sequence[Any], schema: Schema) -> InputColumns:
        """The columns with these names; measured ones have bounds, categories have declared values."""
        found: list[Measured | Category] = []
        for name in names:
            column = schema[name] if isinstance(name, str) else None
            if isinstance(column, Category):
                if column.values is None:
                    raise WrongType(
                        column=name, found="a category without declared values", wanted="a declared list",
                        hint='category(["a", "b"]) lists its values',
                    )  # fmt: skip
                found.append(column)
            else:
                found.append(schema.measured(name))
        return cls(names=tuple(names), columns=tuple(found))

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns on a scale."""
        return tuple(n for n, c in zip(self.names, self.columns, strict=True) if isinstance(c, Measured))

    @property
    def categories(self) -> tuple[str, ...]:
        """The columns of words."""
        return tuple(n for n, c in zip(self.names, self.columns, strict=True) if isinstance(c, Category))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of coordinates of each column."""
        return tuple(len(c.values or ()) if isinstance(c, Category) else 1 for c in self.columns)

    @property
    def coordinates(self) -> int:
        """The number of all coordinates."""
        return sum(self.sizes)

    @property
    def radius(self) -> float:
        """The largest length of a row: the root of the number of columns, rounded up."""
        return math.nextafter(math.sqrt(len(self.names)), math.inf)

    @property
    def features(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        out: list[str] = []
        for name, column in zip(self.names, self.columns, strict=True):
            values = column.values if isinstance(column, Category) else None
            out += [name] if values is None else [f"{name} = {v}" for v in values]
        return tuple(out)

    def of_rows(self, rows: Mapping[str, Floats]) -> Floats:
        """The coordinates of rows in steps and places (`tacit.sources.query`); NaN all over a row with a gap."""
        parts: list[Floats] = []
        for name, column in zip(self.names, self.columns, strict=True):
            given = rows[name]
            if isinstance(column, Category):
                places = np.arange(len(column.values or ()), dtype=np.float64)
                block = (given[:, None] == places[None, :]).astype(np.float64)
                block[np.isnan(given)] = np.nan
                parts.append(block)
            else:
                parts.append((given * (2.0 / max(column.width, 1)) - 1.0)[:, None])
        return np.hstack(parts)

    def of_values(self, values: Any) -> Floats:
        """The coordinates of public points: a table with these columns, or an array with one column each."""
        return self.of_rows(self.steps_of_values(values))

    def steps_of_values(self, values: Any) -> dict[str, Floats]:
        """Public points in steps and places, by column: a table with these columns, or an array with one column each.

        Numbers outside the bounds are moved to them, as rows are; a word that was not declared is refused.
        """
        if hasattr(values, "to_dict") and hasattr(values, "columns"):
            values = {str(n): list(values[n]) for n in values.columns}
        if isinstance(values, Mapping):
            missing = [n for n in self.names if n not in values]
            if missing:
                raise InvalidParameter(parameter="points", value=missing, must="have every column")
            columns = [list(np.atleast_1d(np.asarray(values[n], dtype=object))) for n in self.names]
        else:
            array = np.asarray(values, dtype=object)
            if array.ndim == 1 and len(self.names) == 1:
                array = array[:, None]
            if array.ndim != 2 or array.shape[1] != len(self.names):
                raise InvalidParameter(
                    parameter="points",
                    value=f"an array of shape {array.shape}",
                    must=f"have one column for each of {', '.join(self.names)}",
                )
            columns = [list(array[:, j]) for j in range(len(self.names))]
        if len({len(c) for c in columns}) > 1:
            raise InvalidParameter(parameter="points", value="columns", must="be of one length")
        return {n: _steps(n, c, v) for n, c, v in zip(self.names, self.columns, columns, strict=True)}

    def axes(self, points: int | None) -> tuple[Points, ...]:
        """A grid: this many points along each measured column, and every value of a category."""
        count = POINTS.get(len(self.measured), FEW_POINTS) if points is None else points
        found = []
        for name, column in zip(self.names, self.columns, strict=True):
            if isinstance(column, Category):
                found.append(Points(column=name, values=tuple(column.values or ())))
                continue
            found.append(Points(column=name, values=_spread(column, count)))
        cell_count(found)
        return tuple(found)

    def grid(self, axes: Sequence[Points]) -> Floats:
        """The coordinates of all points of the grid, the last column running fastest."""
        table = list(itertools.product(*(a.values for a in axes)))
        return self.of_values({n: [row[j] for row in table] for j, n in enumerate(self.names)})


def _spread(column: Measured, count: int) -> tuple[Any, ...]:
    """Evenly spread points from the lowest to the highest value: numbers with six digits, other types by their
    nearest value.
    """
    if isinstance(column, Number):
        low, high = float(column.lowest * column.spacing), float(column.highest * column.spacing)
        values = [low + (high - low) * k / (count - 1) for k in range(count)]
        return tuple(dict.fromkeys(float(f"{v:.6g}") + 0.0 for v in values))
    steps = [column.lowest + round(column.width * k / (count - 1)) for k in range(count)]
    return tuple(column.label(s) for s in dict.fromkeys(steps))


def _steps(name: str, column: Measured | Category, values: Sequence[Any]) -> Floats:
    """Values that somebody typed, as steps above the lowest, or places in the list."""
    if isinstance(column, Category):
        places = {v: i for i, v in enumerate(column.values or ())}
        for value in values:
            if not isinstance(value, str | int | np.integer) or value not in places:
                raise InvalidParameter(parameter=name, value=value, must="be a declared value")
        return np.array([float(places[v]) for v in values])
    if isinstance(column, Date):
        days = [v.date() if isinstance(v, datetime.datetime) else v for v in values]
        if not all(isinstance(d, datetime.date) for d in days):
            raise InvalidParameter(parameter=name, value="a value", must="be a day")
        numbers = np.array([float(column.steps_of(d)) for d in days])
    else:
        try:
            numbers = np.array([float(v) for v in values]) / float(column.spacing)
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter(parameter=name, value="a value", must="be a number") from None
    if not bool(np.isfinite(numbers).all()):
        raise InvalidParameter(parameter=name, value="a value that is not finite", must="be finite")
    return np.asarray(np.clip(numbers, column.lowest, column.highest) - column.lowest)


KERNELS = ("gaussian", "linear")
NOTHING = GlobalSensitivity(l1=Fraction(0), l2_squared=Fraction(0), linf=Fraction(0))


def class_column(
    schema: Schema, name: str, *, most: int | None = None
) -> tuple[tuple[Any, ...], dict[str, tuple[str, ...]]] | None:
    """The classes of a flag, or of a category with at least two (at most `most`) values, and how they are read."""
    column = schema[name]
    if isinstance(column, Flag):
        return (False, True), {"measured": (name,)}
    values = tuple(column.values or ()) if isinstance(column, Category) else ()
    if len(values) > 1 and (most is None or len(values) <= most):
        return values, {"categories": (name,)}
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionStatistic(Statistic):
    """A function of some columns, released once as a whole."""

    fits: ClassVar[Any] = "function"

    columns: tuple[Any, ...]
    size: int
    points: int | None = None

    def __post_init__(self) -> None:
        self._check_words()
        if self.by:
            raise InvalidParameter(
                parameter="by", value=list(map(str, self.by)), must="be left out: a function uses all rows",
                hint="ask with where= for each group, or make the column one of `columns`",
            )  # fmt: skip
        if not self.columns:
            raise EmptyComposition(what="the list of columns", hint='columns=["age"]')
        for name in self.columns:
            if not isinstance(name, str):
                raise InvalidParameter(parameter="columns", value=str(name), must="be names of columns")
        set_fields(self, size=whole("size", self.size))
        if self.points is not None:
            set_fields(self, points=whole("points", self.points, least=2))

    def integers(self, question: Question, cells: Any) -> Any:
        raise NotImplementedError  # a function's weights are trained, not added up

    def _labels(self, schema: Schema, label: str) -> tuple[tuple[Any, ...], dict[str, tuple[str, ...]]]:
        """The classes of a label outside of the columns, and the way to read it."""
        column = schema[text("label", label, empty=False)]
        if label in self.columns:
            raise InvalidParameter(parameter="label", value=label, must="be none of the columns")
        found = class_column(schema, label)
        if found is None:
            raise WrongType(
                column=label, found=column.kind, wanted="a flag, or a category with at least two declared values",
                hint='category(["no", "yes"]) lists them',
            )  # fmt: skip
        return found

    def _inputs(self, schema: Schema) -> InputColumns:
        if self.where is not None:
            self.where.check(schema)
        return InputColumns.of(self.columns, schema)

    def _question(
        self, schema: Schema, unit: Unit, inputs: InputColumns, axes: tuple[Points, ...], more: Mapping[str, Any],
        *, measured: tuple[str, ...] = (), categories: tuple[str, ...] = (),
    ) -> Question:  # fmt: skip
        base_unit(unit)
        wanted = RowsWanted(
            columns=tuple(dict.fromkeys([*inputs.measured, *measured])),
            categories=tuple(dict.fromkeys([*inputs.categories, *categories])),
            where=self.where,
        )
        return Question(
            statistic=self, schema=schema, unit=unit, axes=axes, requests=(wanted,), parts=(), sensitivity=NOTHING,
            sensitivities={}, form=None, details={"inputs": inputs, **more},
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelModelStatistic(FunctionStatistic):
    """A model: a kernel, a penalty that is balanced from public numbers where it is left out, and a loss."""

    kernel: str = "gaussian"
    gamma: float = 4.0
    pairs: int = 64
    penalty: float | None = None
    intercept: float | None = None

    LOSSES: ClassVar[Mapping[str, Any]] = {}
    loss: str = ""

    def __post_init__(self) -> None:
        FunctionStatistic.__post_init__(self)
        for name, known in (("kernel", KERNELS), ("loss", tuple(self.LOSSES))):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise UnknownName(what=name, name=str(getattr(self, name)), known=known)
        constant = 0.5 if self.kernel == "linear" else 0.0
        set_fields(
            self,
            gamma=positive("gamma", self.gamma),
            pairs=whole("pairs", self.pairs),
            penalty=None if self.penalty is None else positive("penalty", self.penalty),
            intercept=constant if self.intercept is None else non_negative("intercept", self.intercept),
        )

    def model_loss(self) -> Loss:
        """The loss that is minimised."""
        made: Loss = self.LOSSES[self.loss]()
        return made

    def _axes(self, inputs: InputColumns, classes: tuple[Any, ...]) -> tuple[Points, ...]:
        """A linear model is shown by its weights, others on a grid. Several classes have a value each."""
        if self.kernel == "linear":
            names = (*inputs.features, *(["(constant)"] if self.intercept else []))
            axes: tuple[Points, ...] = (Points(column="feature", values=names),)
            taken: tuple[str, ...] = ("feature",)
        else:
            axes, taken = inputs.axes(self.points), inputs.names
        # A column that is called so keeps its name.
        name = "class"
        while name in taken:
            name += "_"
        return (*axes, Points(column=name, values=classes)) if len(classes) > 2 else axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier(KernelModelStatistic):
    """Predicts the value of a declared category (or flag) from the other columns of a row.

    For two classes the function is above 0 where the second one is more likely; for more classes, one function each.
    """

    kind: ClassVar[str] = "classifier"
    LOSSES: ClassVar[Mapping[str, Any]] = {"hinge": Hinge, "logistic": Logistic}

    label: str
    loss: str = "hinge"

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the label must have at least two declared values and differ from every input column."""
        inputs = self._inputs(schema)
        classes, wanted = self._labels(schema, self.label)
        axes = self._axes(inputs, classes)
        return self._question(schema, unit, inputs, axes, {"classes": classes}, **wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionFunction(KernelModelStatistic):
    """Predicts the value of a column from other columns, within its declared bounds."""

    kind: ClassVar[str] = "regression_function"
    LOSSES: ClassVar[Mapping[str, Any]] = {"huber": Huber, "epsilon-insensitive": EpsilonInsensitive}

    outcome: str
    loss: str = "huber"

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the outcome is a number with bounds, and differs from every input column."""
        inputs = self._inputs(schema)
        column = schema.measured(text("outcome", self.outcome, empty=False))
        if self.outcome in self.columns:
            raise InvalidParameter(parameter="outcome", value=self.outcome, must="be none of the columns")
        if isinstance(column, Date) or column.width == 0:
            raise WrongType(
                column=self.outcome, found=column.kind, wanted="a number with two different bounds"
            )
        axes = self._axes(inputs, ())
        return self._question(schema, unit, inputs, axes, {"outcome": column}, measured=(self.outcome,))


def ends(column: Measured) -> tuple[float, float]:
    """The lowest and the highest value, in the column's unit."""
    return float(column.lowest * column.spacing), float(column.highest * column.spacing)


def classifier(
    columns: Any, label: str, *, size: int, loss: str = "hinge", kernel: str = "gaussian", gamma: float = 4.0,
    pairs: int = 64, penalty: float | None = None, intercept: float | None = None, points: int | None = None,
    where: str | Expression | None = None,
) -> Classifier:  # fmt: skip
    """A function that predicts the label of a row from its columns: `classifier(["age", "income"], "vote", size=5000)`.

    `size` is the public number of rows. kernel="gaussian" is exp(-gamma |x - y|^2) for columns scaled to [-1, 1], by
    `pairs` waves; kernel="linear" is shown by its weights. Without a penalty it is balanced from public numbers.
    """
    return Classifier(
        columns=by_columns(columns), label=label, size=size, loss=loss, kernel=kernel, gamma=gamma, pairs=pairs,
        penalty=penalty, intercept=intercept, points=points, where=filter_of(where),
    )  # fmt: skip


def regression_function(
    columns: Any, outcome: str, *, size: int, loss: str = "huber", kernel: str = "gaussian", gamma: float = 4.0,
    pairs: int = 64, penalty: float | None = None, intercept: float | None = None, points: int | None = None,
    where: str | Expression | None = None,
) -> RegressionFunction:  # fmt: skip
    """A function that predicts the outcome of a row from its columns: `regression_function("age", "income",
    size=5000)`.

    `size` is the public number of rows; kernel, gamma, pairs and penalty are as for `classifier`.
    """
    return RegressionFunction(
        columns=by_columns(columns), outcome=outcome, size=size, loss=loss, kernel=kernel, gamma=gamma, pairs=pairs,
        penalty=penalty, intercept=intercept, points=points, where=filter_of(where),
    )  # fmt: skip
