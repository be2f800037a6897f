"""Models by objective perturbation as scikit-learn estimators: logistic, linear, Poisson and additive.

    PrivateLinearRegression(1, 1e-6, columns={"age": (17, 90), "sex": ["F", "M"]}, target_bounds=(0, 100)).fit(X, y)

Columns, classes and bounds are declared. A value that is missing or was not declared counts as "(other)", a row without
a usable target as absent. `neighbours` is "add-or-remove" (the default: the number of rows is private) or
"replace-one"; `rows` is the most that one person has.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, positive
from tacit.functions.models.columns import BINS, DeclaredColumns, NumberColumn
from tacit.functions.models.estimators import (
    PUBLIC_LABELS,
    SECRET_SEED,
    class_numbers,
    declared_classes,
    float_column,
    float_table,
    object_column,
    relation,
)
from tacit.functions.models.losses import ClippedPoisson
from tacit.functions.models.perturbed import SMOOTH, PerturbedPlan, PerturbedRelease
from tacit.functions.models.solvers import Huber, Logistic, SmoothLoss
from tacit.guarantees import Guarantee, Unit, group_of, rows


def public_classes(column: Any) -> npt.NDArray[Any]:
    """The labels that occur: for who states that everybody knows them."""
    from sklearn.utils.multiclass import check_classification_targets

    labels = np.asarray(column.tolist())
    check_classification_targets(labels)
    return np.unique(labels)


class PerturbedModel(BaseEstimator):  # type: ignore[misc]
    """What these models share: declared columns, the plan, the release."""

    coding = "linear"

    def _loss(self) -> SmoothLoss:
        raise NotImplementedError

    def _declared(self, count: int) -> DeclaredColumns:
        found = DeclaredColumns.of(self.columns, bins=getattr(self, "bins", BINS), count=count)
        if len(found.columns) != count:
            raise InvalidParameter(
                parameter="columns", value=len(found.columns), must=f"declare every column of X, which has {count}",
                hint="bounds of numbers and values of categories are declared for each",
            )  # fmt: skip
        return found

    def plan(self, *, n_features: int, n_classes: int = 2) -> PerturbedPlan:
        """What fit would run on a table with these columns: its noise and its price. No row is read."""
        for name in ("epsilon", "delta"):
            if getattr(self, name) is None:
                raise InvalidParameter(
                    parameter=name, value=None, must="be given",
                    hint="there is no default: how much may be revealed is for you to say",
                )  # fmt: skip
        return PerturbedPlan(
            columns=self._declared(n_features), coding=self.coding, loss=self._loss(), epsilon=self.epsilon,
            delta=self.delta, neighbours=relation(self.neighbours), rows=self.rows,
            heads=n_classes if n_classes > 2 else 1, ridge=self.ridge, smooth=getattr(self, "smooth", 0.0),
            bought=bool(getattr(self, "buy_bins", False)), bins=getattr(self, "bins", BINS),
            tolerance=None if self.tolerance is None else positive("tolerance", self.tolerance),
        )  # fmt: skip

    def _table(self, X: Any, *, reset: bool) -> Any:
        """X as columns that can be coded; numbers only where no names are given. Shape and names are the caller's."""
        if hasattr(X, "tocsr"):
            raise TypeError("Sparse data was passed, but dense data is required: X.toarray() gives it")
        if hasattr(X, "columns") and hasattr(X, "iloc"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not X.shape[0]:
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required."
                )
            return X
        text = any(not isinstance(c, NumberColumn) for c in self._listed())
        array = np.asarray(X, dtype=object) if text else np.asarray(float_table(X))
        if not text and array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {array.ndim}D array instead. Reshape your data either using "
                "array.reshape(-1, 1) or array.reshape(1, -1)"
            )
        if not array.shape[0]:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required."
            )
        if not array.shape[1]:
            raise ValueError(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return array

    def _listed(self) -> tuple[Any, ...]:
        try:
            return DeclaredColumns.of(self.columns).columns
        except InvalidParameter:
            return ()

    def _column(self, X: Any, y: Any) -> Any:
        if y is None:
            raise InvalidParameter(
                parameter="y", value=None, must="be given: requires y to be passed, but the target y is None"
            )
        column = column_or_1d(object_column(y), warn=True)
        if column.shape[0] != X.shape[0]:
            raise InvalidParameter(
                parameter="y",
                value=f"{column.shape[0]} values",
                must=f"have one for each of {X.shape[0]} rows",
            )
        return column

    def _release(self, X: Any, targets: list[Floats], n_classes: int, declared: tuple[str, ...] = ()) -> None:
        plan = self.plan(n_features=X.shape[1], n_classes=n_classes)
        released = plan.release(X, targets, source=self.source)
        self.plan_, self.model_ = plan, released
        self.columns_ = released.columns
        self.events_ = plan.events(released.mechanism)
        if not released.publishable:
            declared = (*declared, SECRET_SEED)
        unit: Unit = rows(neighbours=plan.neighbours)
        if plan.rows > 1:
            unit = group_of(unit, size=plan.rows)
        self.guarantee_ = Guarantee(bound=plan.bound(released.mechanism), unit=unit, declared=declared)

    def _values(self, X: Any) -> Floats:
        check_is_fitted(self, "model_")
        table = self._table(X, reset=False)
        if table.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features"
            )
        found: PerturbedRelease = self.model_
        return found(table)

    def _coefficients(self) -> tuple[Floats, Floats]:
        """In the columns' own units, one row a head: slopes of numbers, and a term for each category."""
        check_is_fitted(self, "model_")
        found: PerturbedRelease = self.model_
        slopes = found.weights[:, :-1] * found.columns.height
        constants = found.weights[:, -1] * found.columns.height
        out, at = slopes.copy(), 0
        for column in found.columns.columns:
            if isinstance(column, NumberColumn):
                middle, half = column.low / 2 + column.high / 2, column.high / 2 - column.low / 2
                out[:, at] = slopes[:, at] / half
                constants = constants - out[:, at] * middle
                at += 1
            else:
                at += column.bins
        return out, constants

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags


class PerturbedClassifier(ClassifierMixin, PerturbedModel):  # type: ignore[misc]
    """Classes by logistic loss: one function for two classes, one against the rest for each of more."""

    def _loss(self) -> SmoothLoss:
        return Logistic()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Any:
        """Draws the noise, minimises, and keeps what was released; rows and labels are not kept."""
        if self.classes is None:
            raise InvalidParameter(
                parameter="classes", value=None, must='be declared, such as classes=[0, 1], or be "public"',
                hint='"public" takes the labels that occur, and states that everybody knows them',
            )  # fmt: skip
        table = self._table(X, reset=True)
        column = self._column(table, y)
        public = isinstance(self.classes, str) and self.classes == "public"
        classes = public_classes(column) if public else declared_classes(self.classes)
        places = class_numbers(column, classes)
        heads = [1] if len(classes) <= 2 else list(range(len(classes)))
        known = places >= 0
        targets = [np.where(known, np.where(places == h, 1.0, -1.0), np.nan) for h in heads]
        self._release(table, targets, len(classes), (PUBLIC_LABELS,) if public else ())
        self.classes_ = classes
        return self

    def decision_function(self, X: Any) -> Floats:
        """The released function: above 0 means the second class; for more classes, one column each."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict_proba(self, X: Any) -> Floats:
        """1 / (1 + e^-f) for two classes; for more, the chances of all heads scaled to add up to 1."""
        from scipy.special import expit

        chances = expit(self._values(X))
        if chances.shape[1] == 1:
            return (
                np.hstack([1 - chances, chances]) if len(self.classes_) == 2 else np.ones((len(chances), 1))
            )
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of predict_proba."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each row of X."""
        values = self._values(X)
        chosen = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        # One known class leaves nothing to choose.
        return np.asarray(self.classes_[np.minimum(chosen, len(self.classes_) - 1)])


class PerturbedRegressor(RegressorMixin, PerturbedModel):  # type: ignore[misc]
    """Targets within declared bounds, by Huber's loss on them scaled to [-1, 1]."""

    def _loss(self) -> SmoothLoss:
        return Huber(threshold=positive("threshold", self.threshold))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _bounds(self) -> tuple[float, float]:
        if self.target_bounds is None:
            raise InvalidParameter(
                parameter="target_bounds", value=None, must="be declared as (low, high)",
                hint="bounds are never read from the data; targets outside are moved to the nearer bound",
            )  # fmt: skip
        numbers = members("target_bounds", self.target_bounds)
        fine = len(numbers) == 2 and all(is_number(v) and math.isfinite(v) for v in numbers)
        if not fine or not numbers[0] < numbers[1]:
            raise InvalidParameter(
                parameter="target_bounds",
                value=self.target_bounds,
                must="be two finite numbers, low below high",
            )
        return float(numbers[0]), float(numbers[1])

    def fit(self, X: Any, y: Any) -> Any:
        """Draws the noise, minimises, and keeps what was released; rows and targets are not kept."""
        low, high = self._bounds()
        table = self._table(X, reset=True)
        self._release(table, [float_column(self._column(table, y), low=low, high=high)], 2)
        return self

    def predict(self, X: Any) -> Floats:
        """The released function at each row of X, in the target's unit and within its bounds."""
        low, high = self._bounds()
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        return np.asarray(np.clip(middle + half * self._values(X)[:, 0], low, high))


class PrivateLinearRegression(PerturbedRegressor):
    """Linear regression of a bounded target on declared columns, by a perturbed Huber loss and a ridge.

    Guarantee: (epsilon, delta), the composed curve of what is drawn (`guarantee_`). A `threshold` of 1 is least
    squares for targets within half of their range of the fit. Theorems `objective-bounded`, `objective-exactness`.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, target_bounds: Any = None,
        threshold: Any = 0.5, neighbours: Any = "add-or-remove", rows: Any = 1, ridge: Any = None,
        tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.target_bounds = target_bounds
        self.threshold = threshold
        self.neighbours = neighbours
        self.rows = rows
        self.ridge = ridge
        self.tolerance = tolerance
        self.source = source

    @property
    def coef_(self) -> Floats:
        """One number a column, and one a category, in the target's unit."""
        low, high = self._bounds()
        return np.asarray(self._coefficients()[0][0] * (high / 2 - low / 2))

    @property
    def intercept_(self) -> float:
        """The value where all numbers are 0 and no category is declared."""
        low, high = self._bounds()
        return float(low / 2 + high / 2 + (high / 2 - low / 2) * self._coefficients()[1][0])


class PrivatePoissonRegression(RegressorMixin, PerturbedModel):  # type: ignore[misc]
    """Counts with a rate e^f, f linear in declared columns; counts and rates are clipped at `most`.

    Guarantee: (epsilon, delta), the composed curve of what is drawn (`guarantee_`). Theorems `objective-bounded`,
    `objective-exactness`.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, most: Any = None,
        neighbours: Any = "add-or-remove", rows: Any = 1, ridge: Any = None, tolerance: Any = None,
        source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.most = most
        self.neighbours = neighbours
        self.rows = rows
        self.ridge = ridge
        self.tolerance = tolerance
        self.source = source

    def _most(self) -> float:
        if self.most is None:
            raise InvalidParameter(
                parameter="most", value=None, must="be declared: the largest count and rate that matter",
                hint="it is never read from the data; larger counts are moved to it",
            )  # fmt: skip
        return positive("most", self.most)

    def _loss(self) -> SmoothLoss:
        return ClippedPoisson(most=self._most())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Any:
        """Draws the noise, minimises, and keeps what was released; rows and counts are not kept."""
        most = self._most()
        table = self._table(X, reset=True)
        scaled = float_column(self._column(table, y), low=0.0, high=most)
        self._release(table, [(scaled + 1) * (most / 2)], 2)
        return self

    def predict(self, X: Any) -> Floats:
        """The rate at each row of X, at most `most`."""
        return np.asarray(np.minimum(np.exp(np.minimum(self._values(X)[:, 0], 700.0)), self._most()))

    @property
    def coef_(self) -> Floats:
        """Of the logarithm of the rate: one number a column, and one a category."""
        return np.asarray(self._coefficients()[0][0])

    @property
    def intercept_(self) -> float:
        """The logarithm of the rate where all numbers are 0 and no category is declared."""
        return float(self._coefficients()[1][0])


class PrivateAdditiveClassifier(PerturbedClassifier):
    """An additive model of declared bins: logit = constant + one shape a column, by a perturbed logistic loss.

    Guarantee: (epsilon, delta), the composed curve of what is drawn (`guarantee_`). Numbers have `bins` even bins of
    their declared range, or declared edges; `buy_bins` chooses them by a noisy histogram instead, for a tenth of mu^2.
    `smooth` weighs squared differences of neighbouring bins, in ridges. Theorems `objective-perturbation`,
    `objective-groups`, `objective-exactness`.
    """

    coding = "binned"

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, classes: Any = None, bins: Any = BINS,
        buy_bins: Any = False, smooth: Any = SMOOTH, neighbours: Any = "add-or-remove", rows: Any = 1,
        ridge: Any = None, tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.classes = classes
        self.bins = bins
        self.buy_bins = buy_bins
        self.smooth = smooth
        self.neighbours = neighbours
        self.rows = rows
        self.ridge = ridge
        self.tolerance = tolerance
        self.source = source

    @property
    def shapes_(self) -> Any:
        """The released shapes: `shapes_["age"].values`, pictures, a scorecard, JSON."""
        from tacit.functions.models.shapes import Shapes

        check_is_fitted(self, "model_")
        return Shapes.of(self.model_, outcomes=tuple(str(c) for c in self.classes_))


class PrivateAdditiveRegressor(PerturbedRegressor):
    """An additive model of declared bins for a bounded target, by a perturbed Huber loss.

    Guarantee: (epsilon, delta), the composed curve of what is drawn (`guarantee_`). Theorems `objective-bounded`,
    `objective-exactness`.
    """

    coding = "binned"

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, target_bounds: Any = None,
        threshold: Any = 0.5, bins: Any = BINS, buy_bins: Any = False, smooth: Any = SMOOTH,
        neighbours: Any = "add-or-remove", rows: Any = 1, ridge: Any = None, tolerance: Any = None,
        source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.target_bounds = target_bounds
        self.threshold = threshold
        self.bins = bins
        self.buy_bins = buy_bins
        self.smooth = smooth
        self.neighbours = neighbours
        self.rows = rows
        self.ridge = ridge
        self.tolerance = tolerance
        self.source = source

    @property
    def shapes_(self) -> Any:
        """The released shapes, in the target's unit: pictures, a table, JSON."""
        from tacit.functions.models.shapes import Shapes

        check_is_fitted(self, "model_")
        low, high = self._bounds()
        return Shapes.of(self.model_, unit=high / 2 - low / 2, middle=low / 2 + high / 2)
