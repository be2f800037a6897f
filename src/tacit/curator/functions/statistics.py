"""Functions as statistics: what is asked, checked against the schema and the unit before anything is paid.

`size` is the public number that losses and kernels are divided by. Under replace-one neighbours of rows it is the
number of rows; otherwise any public number near it. Privacy holds for every `size`, whatever the number of rows is: it
is never read from the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tacit.curator.functions.inputs import InputColumns, Points
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName, WrongType
from tacit.exact.checks import non_negative, positive, settle, text, whole
from tacit.functions.machines.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from tacit.guarantees import Unit
from tacit.sources.expressions import Expression
from tacit.sources.schema import Category, Date, Flag, Measured, Schema
from tacit.sources.training import RowsWanted
from tacit.statistics.base import Question, Statistic, by_columns, filter_of
from tacit.statistics.sensitivity import GlobalSensitivity, base_unit

__all__ = [
    "Classifier",
    "FunctionStatistic",
    "MachineStatistic",
    "RegressionFunction",
    "classifier",
    "regression_function",
]

KERNELS = ("gaussian", "linear")
NOTHING = GlobalSensitivity(l1=Fraction(0), l2_squared=Fraction(0), linf=Fraction(0))


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
                parameter="by", value=list(map(str, self.by)), must="be left out: a function is of all rows",
                hint="ask with where= for each group, or make the column one of `columns`",
            )  # fmt: skip
        if not self.columns:
            raise EmptyComposition(what="the list of columns", hint='columns=["age"]')
        for name in self.columns:
            if not isinstance(name, str):
                raise InvalidParameter(parameter="columns", value=str(name), must="be names of columns")
        settle(self, size=whole("size", self.size))
        if self.points is not None:
            settle(self, points=whole("points", self.points, least=2))

    def integers(self, question: Question, cells: Any) -> Any:
        raise NotImplementedError  # a function's weights are trained, not added up

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
class MachineStatistic(FunctionStatistic):
    """A machine: a kernel, a penalty that is balanced from public numbers where it is left out, and a loss."""

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
        settle(
            self,
            gamma=positive("gamma", self.gamma),
            pairs=whole("pairs", self.pairs),
            penalty=None if self.penalty is None else positive("penalty", self.penalty),
            intercept=constant if self.intercept is None else non_negative("intercept", self.intercept),
        )

    def machine_loss(self) -> Loss:
        """The loss that is minimised."""
        made: Loss = self.LOSSES[self.loss]()
        return made

    def _axes(self, inputs: InputColumns, classes: tuple[Any, ...]) -> tuple[Points, ...]:
        """A linear machine is its weights; others are shown on a grid. Several classes have a value each."""
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
class Classifier(MachineStatistic):
    """Which value of a declared category (or flag) a row has, told from its other columns.

    For two classes the function is above 0 where the second one is more likely; for more there is one function each.
    """

    kind: ClassVar[str] = "classifier"
    LOSSES: ClassVar[Mapping[str, Any]] = {"hinge": Hinge, "logistic": Logistic}

    label: str
    loss: str = "hinge"

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the label must have at least two declared values, and be none of the columns."""
        inputs = self._inputs(schema)
        column = schema[text("label", self.label, empty=False)]
        if self.label in self.columns:
            raise InvalidParameter(parameter="label", value=self.label, must="be none of the columns")
        if isinstance(column, Flag):
            classes: tuple[Any, ...] = (False, True)
            wanted = {"measured": (self.label,)}
        elif isinstance(column, Category) and column.values is not None and len(column.values) > 1:
            classes, wanted = tuple(column.values), {"categories": (self.label,)}
        else:
            raise WrongType(
                column=self.label, found=column.kind, wanted="a flag, or a category with at least two declared values",
                hint='category(["no", "yes"]) lists them',
            )  # fmt: skip
        axes = self._axes(inputs, classes)
        return self._question(schema, unit, inputs, axes, {"classes": classes}, **wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionFunction(MachineStatistic):
    """What value of a column to expect, told from other columns: within its declared bounds."""

    kind: ClassVar[str] = "regression_function"
    LOSSES: ClassVar[Mapping[str, Any]] = {"huber": Huber, "epsilon-insensitive": EpsilonInsensitive}

    outcome: str
    loss: str = "huber"

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the outcome is a number with bounds, and none of the columns."""
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
    """A function that tells the label of a row from its columns: `classifier(["age", "income"], "vote", size=5000)`.

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
    """A function that tells the outcome of a row from its columns: `regression_function("age", "income", size=5000)`.

    `size` is the public number of rows; kernel, gamma, pairs and penalty are as for `classifier`.
    """
    return RegressionFunction(
        columns=by_columns(columns), outcome=outcome, size=size, loss=loss, kernel=kernel, gamma=gamma, pairs=pairs,
        penalty=penalty, intercept=intercept, points=points, where=filter_of(where),
    )  # fmt: skip
