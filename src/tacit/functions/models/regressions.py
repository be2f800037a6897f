"""Models by objective perturbation as scikit-learn estimators: logistic, linear, Poisson and additive.

    PrivateLinearRegression(1, 1e-6, columns={"age": (17, 90), "sex": ["F", "M"]}, target_bounds=(0, 100)).fit(X, y)

Columns, classes and bounds are declared. A value that is missing or was not declared counts as "(other)", a row without
a usable target as absent. `neighbours` is "add-or-remove" (the default: the number of rows is private) or
"replace-one"; `rows` is the most that one person has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import flag, positive, whole
from tacit.functions.models.columns import BINS, DeclaredColumns, NumberColumn
from tacit.functions.models.contrasts import SMOOTH
from tacit.functions.models.conventions import (
    SECRET_SEED,
    BoundedRegressor,
    ChancesMixin,
    HeadsClassifier,
    PlainRegressor,
    float_column,
    float_table,
    keep,
    price_of,
    relation,
    target_column,
    unit_of,
)
from tacit.functions.models.losses import ClippedPoisson, LogCosh
from tacit.functions.models.perturbed import PerturbedPlan, PerturbedRelease
from tacit.functions.models.rivals import REFERENCE_ROWS
from tacit.functions.models.solvers import Logistic, SmoothLoss
from tacit.guarantees import Guarantee, Neighbours
from tacit.mechanisms.objective import CERTIFIED


class PerturbedModel(BaseEstimator):  # type: ignore[misc]
    """The common base of these models: declared columns, the plan, the release."""

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
        return found.with_terms(
            interactions=getattr(self, "interactions", None), monotone=getattr(self, "monotone", None)
        )

    def plan(self, *, n_features: int, n_classes: int = 2) -> PerturbedPlan:
        """The plan of fit for a table with these columns: its noise and its price. No row is read."""
        price_of(self)
        return PerturbedPlan(
            columns=self._declared(n_features), coding=self.coding, loss=self._loss(), epsilon=self.epsilon,
            delta=self.delta, neighbours=relation(self.neighbours), rows=self.rows,
            heads=n_classes if n_classes > 2 else 1, ridge=self.ridge, smooth=getattr(self, "smooth", SMOOTH),
            bought=flag("buy_bins", getattr(self, "buy_bins", False)), bins=getattr(self, "bins", BINS),
            calibrated=flag("calibrate", getattr(self, "calibrate", False)) and n_classes == 2,
            tolerance=None if self.tolerance is None else positive("tolerance", self.tolerance),
            reference_rows=REFERENCE_ROWS if getattr(self, "size", None) is None else whole("size", self.size),
        )  # fmt: skip

    def _table(self, X: Any, *, reset: bool) -> Any:
        """X as columns that can be coded; numbers only where no names are given. Shape and names are the caller's."""
        if hasattr(X, "tocsr"):
            raise TypeError("Sparse data was passed, but dense data is required: X.toarray() gives it")
        if hasattr(X, "columns") and hasattr(X, "iloc"):
            self._named_as_declared(X)
            self._no_empty(X.shape, reset=reset)
            validate_data(self, X, reset=reset, skip_check_array=True)
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
        self._no_empty(array.shape, reset=reset)
        if not array.shape[1]:
            raise ValueError(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return array

    def _no_empty(self, shape: tuple[int, ...], *, reset: bool) -> None:
        """Refuses a table without rows where their number is public. If that is private, an error would reveal
        it.
        """
        private = reset and relation(self.neighbours) is Neighbours.ADD_OR_REMOVE
        if not shape[0] and not private:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required."
            )

    def _named_as_declared(self, X: Any) -> None:
        """Refuses a table with other names than `columns` declares, since columns are read by position."""
        if not isinstance(self.columns, Mapping):
            return
        names, declared = list(X.columns), list(self.columns)
        if names != declared and all(isinstance(n, str) for n in names):
            raise InvalidParameter(
                parameter="X", value=names, must="have the declared columns in their order",
                hint=f"X[{declared}] has them" if set(declared) <= set(names) else f"declared: {', '.join(declared)}",
            )  # fmt: skip

    def _listed(self) -> tuple[Any, ...]:
        try:
            return DeclaredColumns.of(self.columns).columns
        except InvalidParameter:
            return ()

    def _release(self, X: Any, targets: list[Floats], n_classes: int, declared: tuple[str, ...] = ()) -> None:
        plan = self.plan(n_features=X.shape[1], n_classes=n_classes)
        released = plan.release(X, targets, source=self.source)
        self.plan_, self.model_ = plan, released
        self.columns_ = released.columns
        self.events_ = released.parts.events
        declared = (*declared, CERTIFIED)
        if not released.publishable:
            declared = (*declared, SECRET_SEED)
        self.guarantee_ = Guarantee(
            bound=released.parts.bound, unit=unit_of(plan.neighbours, plan.rows), declared=declared
        )

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
        """Coefficients in the columns' own units, one row for each output: slopes of numbers, and a term for each
        category.
        """
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


class PerturbedClassifier(ChancesMixin, HeadsClassifier, PerturbedModel):
    """Classes by logistic loss."""

    def _loss(self) -> SmoothLoss:
        return Logistic()


class PerturbedRegressor(BoundedRegressor, PerturbedModel):
    """Targets within declared bounds, by the log-cosh loss on them scaled to [-1, 1]."""

    def _loss(self) -> SmoothLoss:
        return LogCosh(threshold=positive("threshold", self.threshold))


class PrivateLinearRegression(PerturbedRegressor):
    """Linear regression of a bounded target on declared columns, by a perturbed log-cosh loss and a ridge.

    Guarantee: (epsilon, delta), the composed curve of the events (`guarantee_`). The loss is about r^2/2 for residuals
    far below `threshold`, in half ranges of the target, and about threshold |r| far above it. Theorems
    `objective-log-cosh`, `objective-groups`, `objective-exactness`.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, target_bounds: Any = None,
        threshold: Any = 0.5, neighbours: Any = "add-or-remove", rows: Any = 1, ridge: Any = None,
        tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        keep(self, locals())

    @property
    def coef_(self) -> Floats:
        """One number a column, and one a category, in the target's unit."""
        return np.asarray(self._coefficients()[0][0] * self._middle_and_half()[1])

    @property
    def intercept_(self) -> float:
        """The value when all numbers are 0 and no category is declared."""
        middle, half = self._middle_and_half()
        return float(middle + half * self._coefficients()[1][0])


class PrivatePoissonRegression(PlainRegressor, PerturbedModel):
    """Counts with a rate e^f, f linear in declared columns; counts and rates are clipped at `most`.

    Guarantee: (epsilon, delta), the composed curve of what is drawn (`guarantee_`). Theorems `objective-bounded`,
    `objective-exactness`.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, most: Any = None,
        neighbours: Any = "add-or-remove", rows: Any = 1, ridge: Any = None, tolerance: Any = None,
        source: Any = None,
    ) -> None:  # fmt: skip
        keep(self, locals())

    def _most(self) -> float:
        if self.most is None:
            raise InvalidParameter(
                parameter="most", value=None, must="be declared: the largest count and rate that matter",
                hint="it is never read from the data; larger counts are moved to it",
            )  # fmt: skip
        return positive("most", self.most)

    def _loss(self) -> SmoothLoss:
        return ClippedPoisson(most=self._most())

    def fit(self, X: Any, y: Any) -> Any:
        """Draws the noise, minimises, and keeps the release without rows and counts."""
        most = self._most()
        table = self._table(X, reset=True)
        scaled = float_column(target_column(table, y), low=0.0, high=most)
        self._release(table, [(scaled + 1) * (most / 2)], 2)
        return self

    def predict(self, X: Any) -> Floats:
        """The rate at each row of X, at most `most`."""
        return np.asarray(np.minimum(np.exp(np.minimum(self._values(X)[:, 0], 700.0)), self._most()))

    @property
    def coef_(self) -> Floats:
        """Coefficients of the logarithm of the rate: one for each number column, and one for each category."""
        return np.asarray(self._coefficients()[0][0])

    @property
    def intercept_(self) -> float:
        """The logarithm of the rate when all numbers are 0 and no category is declared."""
        return float(self._coefficients()[1][0])


class PrivateAdditiveClassifier(PerturbedClassifier):
    """An additive model of declared bins: logit = constant + one shape a column, by a perturbed logistic loss.

    Guarantee: (epsilon, delta), the composed curve of what is drawn (`guarantee_`). Numbers have `bins` even bins of
    their declared range, or declared edges; `buy_bins` chooses them by a noisy histogram instead, for a tenth of mu^2.
    `smooth` weighs squared differences of neighbouring bins in the expected shapes, and `size` guesses the number of
    rows: both affect accuracy, not the price. `interactions` lists pairs of columns with a term of their own,
    `monotone` columns whose shapes rise or fall. `calibrate` fits slope and constant of the released score, for a
    fortieth of mu^2. Theorems `objective-perturbation`, `objective-groups`, `objective-pure`, `objective-exactness`.
    """

    coding = "binned"

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, classes: Any = None, bins: Any = BINS,
        buy_bins: Any = False, smooth: Any = SMOOTH, interactions: Any = None, monotone: Any = None,
        calibrate: Any = True, neighbours: Any = "add-or-remove", rows: Any = 1, size: Any = None, ridge: Any = None,
        tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        keep(self, locals())

    @property
    def shapes_(self) -> Any:
        """The released shapes: `shapes_["age"].values`, pictures, a scorecard, JSON."""
        from tacit.functions.models.shapes import Shapes

        check_is_fitted(self, "model_")
        return Shapes.of(self.model_, outcomes=tuple(str(c) for c in self.classes_))


class PrivateAdditiveRegressor(PerturbedRegressor):
    """An additive model of declared bins for a bounded target, by a perturbed log-cosh loss.

    Guarantee: (epsilon, delta), the composed curve of what is drawn (`guarantee_`). Theorems `objective-log-cosh`,
    `objective-groups`, `objective-exactness`.
    """

    coding = "binned"

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, columns: Any = None, target_bounds: Any = None,
        threshold: Any = 0.5, bins: Any = BINS, buy_bins: Any = False, smooth: Any = SMOOTH,
        interactions: Any = None, monotone: Any = None, neighbours: Any = "add-or-remove", rows: Any = 1,
        size: Any = None, ridge: Any = None, tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        keep(self, locals())

    @property
    def shapes_(self) -> Any:
        """The released shapes, in the target's unit: pictures, a table, JSON."""
        from tacit.functions.models.shapes import Shapes

        check_is_fitted(self, "model_")
        middle, half = self._middle_and_half()
        return Shapes.of(self.model_, unit=half, middle=middle)
