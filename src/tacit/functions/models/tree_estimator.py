"""A private decision tree as a scikit-learn estimator: it reads nothing from the data without a charge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number
from tacit.functions.models.conventions import (
    SECRET_SEED,
    class_numbers,
    declared_classes,
    number_or_nan,
    object_column,
)
from tacit.functions.models.trees import (
    Codes,
    ReleasedTree,
    SplitColumn,
    TreePlan,
    TreeShape,
    default_cuts,
    planned_depth,
)
from tacit.guarantees import Guarantee, Neighbours, Unit, people, rows
from tacit.noise.source import default_source
from tacit.sources.columns import Category, Measured

HINT = "(low, high) declares a number, a list its values; bounds and values are never read from the rows"


def split_column(name: str, declared: Any) -> SplitColumn:
    """The public splits of one declared column: (low, high), a list of values, or a column of a schema."""
    if isinstance(declared, SplitColumn):
        return declared
    if isinstance(declared, Category) and declared.values is not None:
        return SplitColumn(name=name, values=tuple(declared.values))
    if isinstance(declared, Measured):
        low, high = (float(v * declared.spacing) for v in (declared.lowest, declared.highest))
        return SplitColumn(name=name, cuts=default_cuts(low, high) or (low,))
    if isinstance(declared, list) and declared and len(set(map(str, declared))) == len(declared):
        return SplitColumn(name=name, values=tuple(declared))
    if isinstance(declared, tuple) and len(declared) == 2 and all(is_number(v) for v in declared):
        low, high = map(float, declared)
        if math.isfinite(low) and math.isfinite(high) and low < high:
            return SplitColumn(name=name, cuts=default_cuts(low, high) or (low,))
    raise InvalidParameter(
        parameter="columns",
        value=name,
        must="be declared: two bounds, or a list of different values",
        hint=HINT,
    )


class PrivateDecisionTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A decision tree: splits by permute-and-flip on Gini's gain, leaves with Laplace noise.

        PrivateDecisionTreeClassifier(1, columns=[(17, 90), ["f", "m"]], classes=["no", "yes"], max_depth=4).fit(X, y)

    Guarantee: pure epsilon (so (epsilon, delta) for every delta), for one row added or taken away, or replaced with
    neighbours="replace-one"; for people with at most `rows` rows each if `rows` is above 1. `columns` declares the
    columns of X in order (or by name, for a table with names), `classes` the labels, `max_depth` the depth; without it
    the depth follows from `size`, a public number of rows. A missing or undeclared value is on the "no" side of every
    split; a row with an undeclared label is not counted. Theorems `tree-scores`, `tree-levels`.
    Source: Friedman, Schuster 2010; Groce 2014, 3.3.3.
    """

    def __init__(
        self, epsilon: Any = None, *, columns: Any = None, classes: Any = None, max_depth: Any = None,
        size: Any = None, rows: Any = 1, neighbours: Any = "add-or-remove", source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.columns = columns
        self.classes = classes
        self.max_depth = max_depth
        self.size = size
        self.rows = rows
        self.neighbours = neighbours
        self.source = source

    def plan(self) -> TreePlan:
        """The plan of fit: its splits, its noise and its price. No row is read."""
        if self.epsilon is None:
            raise InvalidParameter(
                parameter="epsilon", value=None, must="be given",
                hint="give one: the largest privacy loss is your decision, so there is no default",
            )  # fmt: skip
        for name, given, hint in (
            ("columns", self.columns, HINT),
            ("classes", self.classes, "classes=[0, 1]"),
        ):
            if given is None:
                raise InvalidParameter(parameter=name, value=None, must="be declared", hint=hint)
        if isinstance(self.columns, Mapping):
            named = list(self.columns.items())
        elif isinstance(self.columns, Sequence) and not isinstance(self.columns, str):
            named = [(f"column {k}", c) for k, c in enumerate(self.columns)]
        else:
            raise InvalidParameter(
                parameter="columns", value=type(self.columns).__name__, must="be a list", hint=HINT
            )
        columns = tuple(split_column(str(name), c) for name, c in named)
        classes = tuple(declared_classes(self.classes).tolist())
        about = {"rows": self.rows, "neighbours": Neighbours.parse(self.neighbours)}
        depth = self.max_depth
        if depth is None:
            if self.size is None:
                raise InvalidParameter(
                    parameter="max_depth", value=None, must="be given, or size=, a public number of rows",
                    hint="the depth is planned before a row is read",
                )  # fmt: skip
            depth = planned_depth(
                columns=columns, classes=classes, size=self.size, epsilon=self.epsilon, **about
            )
        shape = TreeShape(columns=columns, classes=classes, depth=depth, **about)
        plan = TreePlan.for_target(shape=shape, epsilon=self.epsilon)
        if self.size is not None:
            plan.check(self.size)
        return plan

    def _codes(self, X: Any, shape: TreeShape, *, reset: bool) -> list[Codes]:
        """Rows as codes, value by value: no odd value decides about another."""
        validate_data(self, X, reset=reset, skip_check_array=True)
        wanted = [c.name for c in shape.columns]
        if isinstance(self.columns, Mapping) and hasattr(X, "columns"):
            missing = [n for n in wanted if n not in X.columns]
            if missing:
                raise InvalidParameter(parameter="X", value=missing, must="have every declared column")
            held = [object_column(X[n]) for n in wanted]
        else:
            array = object_column(X)
            if array.ndim != 2 or array.shape[1] != len(wanted):
                raise InvalidParameter(
                    parameter="X",
                    value=f"an array of shape {array.shape}",
                    must=f"have {len(wanted)} columns",
                )
            held = [array[:, k] for k in range(len(wanted))]
        return [_coded(column, values) for column, values in zip(shape.columns, held, strict=True)]

    def fit(self, X: Any, y: Any) -> PrivateDecisionTreeClassifier:
        """Chooses the splits, counts the leaves with noise, and keeps no row."""
        plan = self.plan()
        codes = self._codes(X, plan.shape, reset=True)
        if y is None:
            raise InvalidParameter(parameter="y", value=None, must="be given")
        labels = column_or_1d(object_column(y), warn=True)
        if len(labels) != len(codes[0]):
            raise InvalidParameter(parameter="y", value=f"{len(labels)} values", must="have one for each row")
        self.classes_ = declared_classes(self.classes)
        source = self.source if self.source is not None else default_source()
        chosen, counts = plan.release(codes, class_numbers(labels, self.classes_), source=source)
        self.plan_ = plan
        self.tree_ = ReleasedTree(shape=plan.shape, chosen=chosen, counts=counts, leaf_error=plan.leaf_error)
        unit: Unit = rows(neighbours=plan.shape.neighbours)
        if plan.shape.rows > 1:
            unit = people("person", at_most=plan.shape.rows, neighbours=plan.shape.neighbours)
        declared = () if source.publishable else (SECRET_SEED,)
        self.guarantee_ = Guarantee(bound=plan.bound, unit=unit, declared=declared)
        self.events_ = plan.events
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The share of each class in the leaf of each row, from its noisy counts."""
        check_is_fitted(self, "tree_")
        return np.asarray(
            self.tree_.chances[self.tree_.leaves(self._codes(X, self.plan_.shape, reset=False))]
        )

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the largest noisy count in the leaf of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.poor_score = True
        return tags


def _coded(column: SplitColumn, values: npt.NDArray[Any]) -> Codes:
    if column.cuts:
        plain = values.dtype.kind in "fiub"
        return column.of_numbers(
            values.astype(np.float64) if plain else np.array([number_or_nan(v) for v in values])
        )
    places = {v: k + 1 for k, v in enumerate(column.values)}
    return np.array([_place(places, v) for v in values], dtype=np.int64)


def _place(places: Mapping[Any, int], value: Any) -> int:
    try:
        return places.get(value, 0)
    except Exception:  # what cannot be looked up was not declared
        return 0
