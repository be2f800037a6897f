"""Private models as scikit-learn estimators: fit releases noisy weights, all the rest is post-processing.

    PrivateSVC(epsilon=1, delta=1e-5, domain=PublicBox(low=-3, high=3), classes=[0, 1]).fit(X, y).predict(Z)

Privacy is for one row replaced by any other; the number of rows, of columns and of classes is public. What is learned
from rows before fit (a scaler, a selection of columns, a search for parameters) is not covered by `guarantee_`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, positive, whole
from tacit.exact.rounding import exact_parameter
from tacit.functions.models.features import FeatureMap, FourierFeatures, LinearFeatures
from tacit.functions.models.objective import DenseDesign
from tacit.functions.models.perturbed import perturbed_head
from tacit.functions.models.solvers import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from tacit.functions.models.training import KernelModelPlan, PenaltyChoice, ReleasedModel
from tacit.guarantees import Guarantee, Neighbours, Profile, Unit, compose, group_of, rows
from tacit.mechanisms.objective import ObjectivePerturbation

# What is handed to an estimator, as floats: value by value, so that no odd row decides about the others.
#
# Shape and kind of the table are the caller's and public. A value that is no number counts as missing, a row with a
# missing value as absent, a label that was not declared as absent: nothing is raised that one row could cause.


def number_or_nan(value: Any) -> float:
    """The number, or NaN for anything that is none."""
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
    """A two-dimensional array of floats; what is not a table of numbers is left for scikit-learn to name.

    Refused by its kind, which no row decides: sparse matrices and arrays of complex numbers.
    """
    if hasattr(values, "tocsr"):
        return values
    array = _array(values)
    if array.dtype.kind == "c" or array.ndim != 2:
        return array
    return _floats(array)


def float_column(values: Any, *, low: float, high: float) -> Floats:
    """Targets, moved into [low, high] and scaled to [-1, 1]; NaN where there is none."""
    column = _floats(_array(values))
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    return np.asarray((np.clip(column, low, high) - middle) / half)


def object_column(values: Any) -> npt.NDArray[Any]:
    """Labels as they are, one by one."""
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
    """The declared classes, sorted; there must be at least two different ones of one kind."""
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


# What private estimators share: the plan, the check of inputs, the release, and reading it.

KERNELS = ("gaussian", "linear")
PUBLIC_LABELS = "the set of labels in the data is public"
SECRET_SEED = "nobody knows the seed of the noise (a seeded source is for tests)"


class PrivateModel(BaseEstimator):  # type: ignore[misc]
    """What all private models share: the plan, the check of inputs, the release."""

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _features(self, columns: int) -> FeatureMap:
        if self.domain is None:
            raise InvalidParameter(
                parameter="domain", value=None, must="be declared: PublicBall(...) or PublicBox(...)",
                hint="where rows may lie is declared, never read from them; rows outside are moved to its edge",
            )  # fmt: skip
        intercept = self.intercept
        if not isinstance(self.kernel, str) or self.kernel not in KERNELS:
            raise InvalidParameter(
                parameter="kernel", value=self.kernel, must=f"be one of {', '.join(KERNELS)}"
            )
        if self.kernel == "linear":
            return LinearFeatures(features=columns, domain=self.domain, intercept=intercept)
        return FourierFeatures(
            features=columns, domain=self.domain, intercept=intercept, gamma=self.gamma, pairs=self.pairs
        )

    def plan(self, *, n_samples: int, n_features: int, n_classes: int = 2) -> KernelModelPlan:
        """What fit would run on a table of this size: its noise, its price and its errors. No row is read."""
        if self.epsilon is None or self.delta is None:
            raise InvalidParameter(
                parameter="epsilon" if self.epsilon is None else "delta", value=None, must="be given",
                hint="there is no default: how much may be revealed is for you to say",
            )  # fmt: skip
        return KernelModelPlan.for_target(
            epsilon=self.epsilon,
            delta=self.delta,
            loss=self._loss(),
            features=self._features(n_features),
            size=n_samples,
            penalty=self._first_penalty(),
            heads=n_classes if n_classes > 2 else 1,
            tolerance=self.tolerance,
        )

    def _first_penalty(self) -> Any:
        if self.penalty is None or is_number(self.penalty):
            return self.penalty
        return next(iter(members("penalty", self.penalty)), None)

    def _rows(self, X: Any, *, reset: bool) -> Floats:
        """The table as floats; missing values stay where fit must not tell of them."""
        table = float_table(X)
        name = type(self).__name__
        checked = check_array(
            table, dtype=np.float64, ensure_all_finite=not reset, estimator=name, input_name="X"
        )
        validate_data(self, X, reset=reset, skip_check_array=True)
        if checked.shape[1] != self.n_features_in_:
            raise InvalidParameter(
                parameter="X", value=f"{checked.shape[1]} columns", must=f"have {self.n_features_in_}"
            )
        return np.asarray(checked)

    def _column(self, X: Floats, y: Any) -> Any:
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

    def choice(self, *, n_samples: int, n_features: int, n_classes: int = 2) -> PenaltyChoice | None:
        """The private choice of the penalty that comes before the fit, if `penalty` is a list of candidates."""
        if self.penalty is None or is_number(self.penalty):
            return None
        if self.choice_epsilon is None:
            raise InvalidParameter(
                parameter="choice_epsilon", value=None, must="be given with several penalties",
                hint="choosing one by the data has a price of its own, which adds to that of the fit",
            )  # fmt: skip
        candidates = members("penalty", self.penalty)
        first = self.plan(n_samples=n_samples, n_features=n_features, n_classes=n_classes)
        return PenaltyChoice(plan=first, candidates=candidates, epsilon=self.choice_epsilon)

    def _release(
        self, X: Floats, targets: list[Floats], n_classes: int, declared: tuple[str, ...] = ()
    ) -> None:
        shape = {"n_samples": X.shape[0], "n_features": X.shape[1], "n_classes": n_classes}
        plan, choice = self.plan(**shape), self.choice(**shape)
        unit, bounds, events = rows(neighbours=Neighbours.REPLACE_ONE), [], []
        if choice is not None:
            plan = choice.choose(X, targets, source=self.source).plan
            bounds.append(choice.bound)
            events.append(choice.event)
        model = plan.release(X, targets, source=self.source)
        if not model.publishable:
            declared = (*declared, SECRET_SEED)
        self.model_ = model
        self.plan_: Any = plan
        self.events_ = (*events, plan.event)
        parts = [Guarantee(bound=b, unit=unit, declared=declared) for b in (*bounds, plan.bound)]
        self.guarantee_ = parts[0] if len(parts) == 1 else compose(*parts)

    @property
    def machine_(self) -> ReleasedModel:
        """The earlier name of `model_`, for one version."""
        warnings.warn("machine_ is model_ now", DeprecationWarning, stacklevel=2)
        check_is_fitted(self, "model_")
        return self.model_

    def _values(self, X: Any) -> Floats:
        check_is_fitted(self, "model_")
        return np.asarray(self.model_(self._rows(X, reset=False)))

    def _linear(self) -> tuple[Floats, Floats]:
        check_is_fitted(self, "model_")
        features = self.model_.features
        if not isinstance(features, LinearFeatures):
            raise AttributeError(
                f"{type(self).__name__} with kernel={self.kernel!r} is no linear function of the columns: it has no "
                'coefficients; kernel="linear" has'
            )
        return self._scaled(*features.linear(self.model_.weights))

    def _scaled(self, slopes: Floats, constants: Floats) -> tuple[Floats, Floats]:
        """The linear function in the unit of its answers."""
        return slopes, constants

    @property
    def coef_(self) -> Floats:
        """The coefficients of a linear model, one row a head: post-processing of the released weights.

        The released function is X @ coef_.T + intercept_ at every row inside `domain`; a row outside is moved to its
        edge first.
        """
        return self._linear()[0]

    @property
    def intercept_(self) -> Floats:
        """The constant of a linear model, one for each head."""
        return self._linear()[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


class PrivateClassifier(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """Classifiers: one model for two classes, one against the rest for each of more."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> Any:
        """Trains, adds the noise, and keeps the noisy weights; rows and labels are not kept."""
        table = self._rows(X, reset=True)
        column = self._column(table, y)
        declared: tuple[str, ...] = ()
        if self.classes is None:
            raise InvalidParameter(
                parameter="classes", value=None, must='be declared, such as classes=[0, 1], or be "public"',
                hint='"public" takes the labels that occur, and states that everybody knows them',
            )  # fmt: skip
        if isinstance(self.classes, str) and self.classes == "public":
            classes = self._public_classes(column)
            declared = (PUBLIC_LABELS,)
        else:
            classes = declared_classes(self.classes)
        places = class_numbers(column, classes)
        known = places >= 0
        heads = [1] if len(classes) <= 2 else list(range(len(classes)))
        targets = [np.where(known, np.where(places == head, 1.0, -1.0), np.nan) for head in heads]
        self._release(table, targets, len(classes), declared)
        self.classes_ = classes
        return self

    def _public_classes(self, column: Any) -> npt.NDArray[Any]:
        from sklearn.utils.multiclass import check_classification_targets

        # Labels that everybody knows may decide about each other's kind.
        labels = np.asarray(column.tolist())
        check_classification_targets(labels)
        return np.unique(labels)

    def decision_function(self, X: Any) -> Floats:
        """The released function: above 0 means the second class; for more classes, one column each."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each row of X."""
        values = self._values(X)
        if values.shape[1] > 1:
            return np.asarray(self.classes_[values.argmax(axis=1)])
        # One known class leaves nothing to choose.
        return np.asarray(self.classes_[np.minimum((values[:, 0] > 0).astype(int), len(self.classes_) - 1)])

    def expected_excess_error(
        self, *, n_samples: int, n_features: int, n_classes: int | None = None
    ) -> float:
        """How much the noise raises the expected loss of each model, at most; no row is read."""
        count = n_classes
        if count is None:
            public = self.classes is None or isinstance(self.classes, str)
            count = 2 if public else len(declared_classes(self.classes))
        return self.plan(n_samples=n_samples, n_features=n_features, n_classes=count).expected_excess_error()


class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """Regressors: targets are moved into declared bounds and scaled to [-1, 1]."""

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
        if (
            len(numbers) != 2
            or not all(is_number(v) and np.isfinite(v) for v in numbers)
            or not numbers[0] < numbers[1]
        ):
            raise InvalidParameter(
                parameter="target_bounds",
                value=self.target_bounds,
                must="be two finite numbers, low below high",
            )
        return float(numbers[0]), float(numbers[1])

    def fit(self, X: Any, y: Any) -> Any:
        """Trains, adds the noise, and keeps the noisy weights; rows and targets are not kept."""
        table = self._rows(X, reset=True)
        low, high = self._bounds()
        column = float_column(self._column(table, y), low=low, high=high)
        self._release(table, [column], 2)
        return self

    def _scaled(self, slopes: Floats, constants: Floats) -> tuple[Floats, Floats]:
        low, high = self._bounds()
        half = high / 2 - low / 2
        return half * slopes, low / 2 + high / 2 + half * constants

    def predict(self, X: Any) -> Floats:
        """The released function at each row of X, in the target's unit and within its bounds."""
        low, high = self._bounds()
        values = self._values(X)[:, 0]
        return np.asarray(np.clip(low / 2 + high / 2 + (high / 2 - low / 2) * values, low, high))

    def expected_excess_error(self, *, n_samples: int, n_features: int) -> float:
        """How much the noise raises the expected loss, at most, for targets scaled to [-1, 1]; no row is read."""
        return self.plan(n_samples=n_samples, n_features=n_features).expected_excess_error()


class PrivateSVC(PrivateClassifier):
    """Support vector classifier with Gaussian noise on its weights: hinge loss + penalty |f|^2, no free intercept.

    Guarantee: (epsilon, delta) for one row replaced, by mu-Gaussian privacy (`guarantee_`). `domain` and `classes` are
    declared; penalty None is balanced from public numbers. Theorems `machine-sensitivity`, `machine-gap`.
    Source: Hall 2012, 3.3.3.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, domain: Any = None, classes: Any = None,
        kernel: Any = "gaussian", gamma: Any = 1.0, pairs: Any = 256, penalty: Any = None, intercept: Any = 0.0,
        choice_epsilon: Any = None, tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.classes = classes
        self.kernel = kernel
        self.gamma = gamma
        self.pairs = pairs
        self.penalty = penalty
        self.intercept = intercept
        self.choice_epsilon = choice_epsilon
        self.tolerance = tolerance
        self.source = source

    def _loss(self) -> Loss:
        return Hinge()


class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression by objective perturbation: logistic loss + ridge + a random linear term, certified minima.

    Guarantee: (epsilon, delta) for `neighbours`, by the composed curve of what is drawn (`guarantee_`). Linear by
    default; a constant feature of size `intercept` is penalised like the others. mechanism="output" is Gaussian noise
    on the weights instead, for one row replaced; a list of penalties needs it. Theorems `objective-perturbation`,
    `objective-groups`, `objective-exactness`; `machine-sensitivity`, `machine-gap`.
    Source: Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012; Hall 2012, 3.3.3.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, domain: Any = None, classes: Any = None,
        kernel: Any = "linear", gamma: Any = 1.0, pairs: Any = 256, penalty: Any = None, intercept: Any = 0.5,
        choice_epsilon: Any = None, tolerance: Any = None, source: Any = None, mechanism: Any = "objective",
        neighbours: Any = "replace-one", rows: Any = 1,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.classes = classes
        self.kernel = kernel
        self.gamma = gamma
        self.pairs = pairs
        self.penalty = penalty
        self.intercept = intercept
        self.choice_epsilon = choice_epsilon
        self.tolerance = tolerance
        self.source = source
        self.mechanism = mechanism
        self.neighbours = neighbours
        self.rows = rows

    def _loss(self) -> Loss:
        return Logistic()

    def _objective(self) -> bool:
        """Whether the objective is perturbed; what only output noise can do is done by that."""
        if not isinstance(self.mechanism, str) or self.mechanism not in ("objective", "output"):
            raise InvalidParameter(parameter="mechanism", value=self.mechanism, must="be objective or output")
        listed = self.penalty is not None and not is_number(self.penalty)
        public = relation(self.neighbours) is Neighbours.REPLACE_ONE
        if (self.mechanism == "output" or listed) and not (public and self.rows == 1):
            raise InvalidParameter(
                parameter="neighbours",
                value=self.neighbours,
                must='be "replace-one" with rows=1 for output noise and for a list of penalties',
            )
        if self.penalty is not None and not public:
            raise InvalidParameter(
                parameter="penalty", value=self.penalty, must="be left out where the number of rows is private",
                hint="it counts for a mean over the rows; the ridge then follows from the price",
            )  # fmt: skip
        return self.mechanism == "objective" and not listed

    def perturbation(self, *, n_samples: int, n_features: int, n_classes: int = 2) -> ObjectivePerturbation:
        """The noise of one head of the perturbed objective; no row is read. `penalty` counts for a mean of losses."""
        for name in ("epsilon", "delta"):
            if getattr(self, name) is None:
                raise InvalidParameter(
                    parameter=name, value=None, must="be given",
                    hint="there is no default: how much may be revealed is for you to say",
                )  # fmt: skip
        self._objective()
        features = self._features(n_features)
        radius = features.radius + features.rounding
        ridge = None
        if self.penalty is not None:
            ridge = 2 * positive("penalty", self.penalty) * whole("n_samples", n_samples)
        steps = whole("rows", self.rows) * (1 if relation(self.neighbours) is Neighbours.ADD_OR_REMOVE else 2)
        return ObjectivePerturbation.for_target(
            epsilon=exact_parameter("epsilon", self.epsilon), delta=self.delta, dimension=features.dimension,
            gradient=radius, second=radius**2 * (1 + 2.0**-50), rows=steps, ridge=ridge,
            heads=n_classes if n_classes > 2 else 1,
            tolerance=None if self.tolerance is None else positive("tolerance", self.tolerance),
        )  # fmt: skip

    def _release(
        self, X: Floats, targets: list[Floats], n_classes: int, declared: tuple[str, ...] = ()
    ) -> None:
        if not self._objective():
            super()._release(X, targets, n_classes, declared)
            return
        shape = {"n_samples": X.shape[0], "n_features": X.shape[1], "n_classes": n_classes}
        mechanism, features = self.perturbation(**shape), self._features(X.shape[1])
        finite = np.asarray(np.isfinite(X).all(axis=1))
        phi = features.of(np.where(finite[:, None], X, 0.0))
        found, publishable = [], True
        for target in targets:
            used = finite & np.isfinite(target)
            design = DenseDesign(table=phi[used], radius=mechanism.gradient)
            released = mechanism.release(
                perturbed_head(Logistic(), design, target[used], mechanism, None), source=self.source
            )
            found.append(released.to_floats())
            publishable = publishable and released.publishable
        if not publishable:
            declared = (*declared, SECRET_SEED)
        bound = mechanism.bound if len(found) == 1 else Profile.product([(mechanism.bound, len(found))])
        # The penalty of a mean of losses tells the number of rows; where that is private, it is that of their sum.
        relative = relation(self.neighbours)
        losses = X.shape[0] if relative is Neighbours.REPLACE_ONE else 1
        self.model_ = ReleasedModel(
            features=features, weights=np.array(found), noise_std=float(mechanism.output.noise_std), bound=bound,
            loss="logistic", penalty=mechanism.ridge / (2 * max(losses, 1)), publishable=publishable,
        )  # fmt: skip
        self.plan_ = mechanism
        self.events_ = tuple(e for _ in found for e in mechanism.events)
        unit: Unit = rows(neighbours=relative)
        if self.rows > 1:
            unit = group_of(unit, size=self.rows)
        self.guarantee_ = Guarantee(bound=bound, unit=unit, declared=declared)

    def predict_proba(self, X: Any) -> Floats:
        """1 / (1 + e^-f) for two classes; for more, the models' chances scaled to add up to 1."""
        from scipy.special import expit

        chances = expit(self._values(X))
        if chances.shape[1] == 1:
            both = np.hstack([1 - chances, chances])
            return both if len(self.classes_) == 2 else np.ones((chances.shape[0], 1))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of predict_proba."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class PrivateKernelRegressor(PrivateRegressor):
    """Kernel regression with the Huber loss and Gaussian noise on its weights.

    Guarantee: (epsilon, delta) for one row replaced, by mu-Gaussian privacy (`guarantee_`). `domain` and
    `target_bounds` are declared; `threshold` is that of the loss, for targets scaled to [-1, 1]: smaller ones need
    less noise. Theorems `machine-sensitivity`, `machine-gap`. Source: Hall 2012, 3.3.3.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, domain: Any = None, target_bounds: Any = None,
        threshold: Any = 0.1, kernel: Any = "gaussian", gamma: Any = 1.0, pairs: Any = 256, penalty: Any = None,
        intercept: Any = 0.0, choice_epsilon: Any = None, tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.target_bounds = target_bounds
        self.threshold = threshold
        self.kernel = kernel
        self.gamma = gamma
        self.pairs = pairs
        self.penalty = penalty
        self.intercept = intercept
        self.choice_epsilon = choice_epsilon
        self.tolerance = tolerance
        self.source = source

    def _loss(self) -> Loss:
        return Huber(threshold=self.threshold)


class PrivateSVR(PrivateRegressor):
    """Support vector regression, (|f(x) - y| - tube)+, with Gaussian noise on its weights.

    Guarantee: (epsilon, delta) for one row replaced, by mu-Gaussian privacy (`guarantee_`). `domain` and
    `target_bounds` are declared; `tube` is for targets scaled to [-1, 1]. Theorems `machine-sensitivity`,
    `machine-gap`. Source: Hall 2012, 3.3.3.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, domain: Any = None, target_bounds: Any = None,
        tube: Any = 0.05, kernel: Any = "gaussian", gamma: Any = 1.0, pairs: Any = 256, penalty: Any = None,
        intercept: Any = 0.0, choice_epsilon: Any = None, tolerance: Any = None, source: Any = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.target_bounds = target_bounds
        self.tube = tube
        self.kernel = kernel
        self.gamma = gamma
        self.pairs = pairs
        self.penalty = penalty
        self.intercept = intercept
        self.choice_epsilon = choice_epsilon
        self.tolerance = tolerance
        self.source = source

    def _loss(self) -> Loss:
        return EpsilonInsensitive(tube=self.tube)
