"""The common base of private estimators: scikit-learn's conventions, and inputs read value by value.

Shape and kind of a table are the caller's and public. A value that is no number counts as missing, a row with a
missing value as absent, and so does an undeclared label. No single row can cause an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import column_or_1d

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members
from tacit.guarantees import Guarantee, Neighbours, Unit, group_of, rows

PUBLIC_LABELS = "the set of labels in the data is public"
SECRET_SEED = "nobody knows the seed of the noise (a seeded source is for tests)"


def keep(estimator: Any, given: Mapping[str, Any]) -> None:
    """Stores the parameters of `__init__` as they came, which scikit-learn's clone wants."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def price_of(estimator: Any) -> None:
    """Refuses an estimator without a price."""
    for name in ("epsilon", "delta"):
        if getattr(estimator, name) is None:
            raise InvalidParameter(
                parameter=name, value=None, must="be given",
                hint="give one: the largest privacy loss is your decision, so there is no default",
            )  # fmt: skip


def unit_of(neighbours: Neighbours, most: int) -> Unit:
    """One row, or a person with at most this many of them."""
    unit: Unit = rows(neighbours=neighbours)
    return unit if most == 1 else group_of(unit, size=most)


def number_or_nan(value: Any) -> float:
    """The number, or NaN for any other value."""
    try:
        return float(value)
    except Exception:  # whatever one value raises, it is no number
        return np.nan


def _floats(array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    flat = [number_or_nan(v) for v in array.ravel()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def _array(values: Any) -> npt.NDArray[Any]:
    """NumPy's own array, without letting one text turn all numbers of a list into text."""
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if hasattr(values, "__array__") or hasattr(values, "dtype"):
        return np.asarray(values)
    return np.asarray(values, dtype=object)


def float_table(values: Any) -> Any:
    """A two-dimensional array of floats; for anything else scikit-learn names the fault.

    Refuses sparse matrices and arrays of complex numbers: no row decides the kind of an array.
    """
    if hasattr(values, "tocsr"):
        return values
    array = _array(values)
    if array.dtype.kind == "c" or array.ndim != 2:
        return array
    return _floats(array)


def float_column(values: Any, *, low: float, high: float) -> Floats:
    """Targets, moved into [low, high] and scaled to [-1, 1]; NaN for a missing one."""
    column = _floats(_array(values))
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    return np.asarray((np.clip(column, low, high) - middle) / half)


def object_column(values: Any) -> npt.NDArray[Any]:
    """Unchanged labels, one by one."""
    array = _array(values)
    if array.dtype.kind == "f":
        return array
    return array if array.dtype.kind in "iubUS" else array.astype(object)


def class_numbers(values: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The place of each label among the classes, and -1 for labels that are not declared."""
    column = object_column(values)
    out = np.full(column.shape, -1, dtype=np.int64)
    if column.dtype.kind in "fiubUS" and classes.dtype.kind in "fiubUS":
        same_kind = (column.dtype.kind in "US") == (classes.dtype.kind in "US")
        for place, name in enumerate(classes if same_kind else []):
            out[column == name] = place
        return out
    known = {name: place for place, name in enumerate(classes.tolist())}
    for i, value in enumerate(column.ravel()):
        try:
            out.ravel()[i] = known.get(value, -1)
        except Exception:  # what cannot be looked up is no class
            continue
    return out


def declared_classes(classes: Any) -> npt.NDArray[Any]:
    """The declared classes, sorted; at least two different ones of one type."""
    array = _array(list(classes) if isinstance(classes, tuple | list | range) else classes)
    names = np.asarray(array.tolist())
    if (
        names.ndim != 1
        or names.dtype.kind not in "iubUf"
        or len(np.unique(names)) != array.size
        or array.size < 2
    ):
        raise InvalidParameter(
            parameter="classes", value=classes, must="be at least two different numbers, or two different texts",
            hint="classes are declared, never read from the labels",
        )  # fmt: skip
    return np.unique(names)


def relation(neighbours: Any) -> Neighbours:
    """The neighbour relation by its name."""
    if isinstance(neighbours, Neighbours):
        return neighbours
    known = {n.value: n for n in Neighbours}
    if not isinstance(neighbours, str) or neighbours not in known:
        raise InvalidParameter(
            parameter="neighbours", value=neighbours, must=f"be one of {', '.join(sorted(known))}"
        )
    return known[neighbours]


def public_classes(column: Any) -> npt.NDArray[Any]:
    """The labels that occur, for callers who state that everybody knows them."""
    from sklearn.utils.multiclass import check_classification_targets

    # Labels that everybody knows may decide about each other's kind.
    labels = np.asarray(column.tolist())
    check_classification_targets(labels)
    return np.unique(labels)


def target_column(X: Any, y: Any) -> Any:
    """Labels or targets, one for each row of X."""
    if y is None:
        raise InvalidParameter(
            parameter="y", value=None, must="be given: requires y to be passed, but the target y is None"
        )
    column = column_or_1d(object_column(y), warn=True)
    if column.shape[0] != X.shape[0]:
        raise InvalidParameter(
            parameter="y", value=f"{column.shape[0]} values", must=f"have one for each of {X.shape[0]} rows"
        )
    return column


class HeadsClassifier(ClassifierMixin):  # type: ignore[misc]
    """Classes by one function if there are two of them, otherwise by one function against the rest for each.

    An estimator adds `_table(X, reset=)`, `_release(table, targets, n_classes, declared)` and `_values(X)`.
    """

    guarantee_: Guarantee

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Any:
        """Draws the noise, trains, and keeps the release without rows and labels."""
        if self.classes is None:
            raise InvalidParameter(
                parameter="classes", value=None, must='be declared, such as classes=[0, 1], or be "public"',
                hint='"public" takes the labels that occur, and states that everybody knows them',
            )  # fmt: skip
        table = self._table(X, reset=True)
        column = target_column(table, y)
        public = isinstance(self.classes, str) and self.classes == "public"
        classes = public_classes(column) if public else declared_classes(self.classes)
        places = class_numbers(column, classes)
        known = places >= 0
        heads = [1] if len(classes) <= 2 else list(range(len(classes)))
        targets = [np.where(known, np.where(places == head, 1.0, -1.0), np.nan) for head in heads]
        self._release(table, targets, len(classes), (PUBLIC_LABELS,) if public else ())
        self.classes_ = classes
        return self

    def decision_function(self, X: Any) -> Floats:
        """The released function: above 0 means the second class; with more than two classes, one column for each."""
        values = self._values(X)
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each row of X."""
        values = self._values(X)
        chosen = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        # One known class leaves nothing to choose.
        return np.asarray(self.classes_[np.minimum(chosen, len(self.classes_) - 1)])


class ChancesMixin:
    """Chances of classes from logits."""

    def predict_proba(self, X: Any) -> Floats:
        """1 / (1 + e^-f) for two classes; for more, the chances of all functions scaled to add up to 1."""
        from scipy.special import expit

        chances = expit(self._values(X))  # type: ignore[attr-defined]
        if chances.shape[1] == 1:
            both = np.hstack([1 - chances, chances])
            return both if len(self.classes_) == 2 else np.ones((chances.shape[0], 1))  # type: ignore[attr-defined]
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of predict_proba."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class PlainRegressor(RegressorMixin):  # type: ignore[misc]
    """A regressor that noise may make poor."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class BoundedRegressor(PlainRegressor):
    """Targets are moved into declared bounds and scaled to [-1, 1]."""

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

    def _middle_and_half(self) -> tuple[float, float]:
        low, high = self._bounds()
        return low / 2 + high / 2, high / 2 - low / 2

    def fit(self, X: Any, y: Any) -> Any:
        """Draws the noise, trains, and keeps the release without rows and targets."""
        low, high = self._bounds()
        table = self._table(X, reset=True)
        self._release(table, [float_column(target_column(table, y), low=low, high=high)], 2)
        return self

    def predict(self, X: Any) -> Floats:
        """The released function at each row of X, in the target's unit and within its bounds."""
        middle, half = self._middle_and_half()
        return np.asarray(np.clip(middle + half * self._values(X)[:, 0], *self._bounds()))
