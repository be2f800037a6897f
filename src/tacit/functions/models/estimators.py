"""Private models as scikit-learn estimators: fit releases noisy weights, all the rest is post-processing.

    PrivateSVC(epsilon=1, delta=1e-5, domain=PublicBox(low=-3, high=3), classes=[0, 1]).fit(X, y).predict(Z)

Privacy is for one row replaced by any other; the number of rows, of columns and of classes is public. `guarantee_` does
not cover anything learned from rows before fit: a scaler, a selection of columns, a search for parameters.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, positive, whole
from tacit.exact.rounding import exact_parameter
from tacit.functions.models.conventions import (
    SECRET_SEED,
    BoundedRegressor,
    ChancesMixin,
    HeadsClassifier,
    declared_classes,
    float_table,
    keep,
    price_of,
    relation,
    unit_of,
)
from tacit.functions.models.features import FeatureMap, FourierFeatures, LinearFeatures
from tacit.functions.models.objective import DenseDesign
from tacit.functions.models.perturbed import PerturbedParts, perturbed_head
from tacit.functions.models.rivals import ModelChoice, perturbation
from tacit.functions.models.solvers import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from tacit.functions.models.training import KernelModelPlan, PenaltyChoice, ReleasedModel
from tacit.guarantees import Guarantee, Neighbours, compose, rows
from tacit.mechanisms.objective import CERTIFIED

# What private estimators share: the plan, the check of inputs, the release, and reading it.

KERNELS = ("gaussian", "linear")


class PrivateModel(BaseEstimator):  # type: ignore[misc]
    """The common base of private models: the plan, the check of inputs, the release."""

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
        """The plan of fit for a table of this size: its noise, its price and its errors. No row is read."""
        price_of(self)
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

    def _table(self, X: Any, *, reset: bool) -> Floats:
        """The table as floats; missing values stay, since fit must not reveal them."""
        table = float_table(X)
        name = type(self).__name__
        # Where the number of rows is private, an error at 0 rows would tell it.
        given = getattr(self, "neighbours", Neighbours.REPLACE_ONE)
        least = 0 if reset and relation(given) is Neighbours.ADD_OR_REMOVE else 1
        checked = check_array(
            table, dtype=np.float64, ensure_all_finite=not reset, ensure_min_samples=least, estimator=name,
            input_name="X",
        )  # fmt: skip
        validate_data(self, X, reset=reset, skip_check_array=True)
        if checked.shape[1] != self.n_features_in_:
            raise InvalidParameter(
                parameter="X", value=f"{checked.shape[1]} columns", must=f"have {self.n_features_in_}"
            )
        return np.asarray(checked)

    def choice(self, *, n_samples: int, n_features: int, n_classes: int = 2) -> PenaltyChoice | None:
        """The private choice of the penalty that comes before the fit, if `penalty` is a list of candidates."""
        if self.penalty is None or is_number(self.penalty):
            return None
        if self.choice_epsilon is None:
            raise InvalidParameter(
                parameter="choice_epsilon", value=None, must="be given with several penalties",
                hint="a choice by the data has a separate price, which adds to that of the fit",
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
        return np.asarray(self.model_(self._table(X, reset=False)))

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


class PrivateClassifier(HeadsClassifier, PrivateModel):
    """Classifiers: one model for two classes, one against the rest for each of more."""

    def expected_excess_error(
        self, *, n_samples: int, n_features: int, n_classes: int | None = None
    ) -> float:
        """An upper bound on the increase of each model's expected loss by the noise. No row is read."""
        count = n_classes
        if count is None:
            public = self.classes is None or isinstance(self.classes, str)
            count = 2 if public else len(declared_classes(self.classes))
        return self.plan(n_samples=n_samples, n_features=n_features, n_classes=count).expected_excess_error()


class PrivateRegressor(BoundedRegressor, PrivateModel):
    """Regressors: targets are moved into declared bounds and scaled to [-1, 1]."""

    def _scaled(self, slopes: Floats, constants: Floats) -> tuple[Floats, Floats]:
        middle, half = self._middle_and_half()
        return half * slopes, middle + half * constants

    def expected_excess_error(self, *, n_samples: int, n_features: int) -> float:
        """An upper bound on the increase of the expected loss by the noise, for targets scaled to [-1, 1]."""
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
        keep(self, locals())

    def _loss(self) -> Loss:
        return Hinge()


class PrivateLogisticRegression(ChancesMixin, PrivateClassifier):
    """Logistic regression by objective perturbation: logistic loss + ridge + a random linear term, certified minima.

    Guarantee: (epsilon, delta) for `neighbours`, by the composed curve of the events (`guarantee_`). Linear by
    default. A constant feature of size `intercept` is penalised like the others. mechanism="output" is Gaussian
    noise on the weights, for one replaced row; a list of penalties needs it. Theorems `objective-perturbation`,
    `objective-groups`, `objective-exactness`; `machine-sensitivity`, `machine-gap`. Source: Chaudhuri,
    Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012; Hall 2012, 3.3.3.
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, domain: Any = None, classes: Any = None,
        kernel: Any = "linear", gamma: Any = 1.0, pairs: Any = 256, penalty: Any = None, intercept: Any = 0.5,
        choice_epsilon: Any = None, tolerance: Any = None, source: Any = None, mechanism: Any = "objective",
        neighbours: Any = "replace-one", rows: Any = 1,
    ) -> None:  # fmt: skip
        keep(self, locals())

    def _loss(self) -> Loss:
        return Logistic()

    def _objective(self) -> bool:
        """Whether the objective is perturbed. Otherwise the output gets noise."""
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

    def perturbation(self, *, n_samples: int, n_features: int, n_classes: int = 2) -> ModelChoice:
        """The noise of one output and the reason for its size, without reading a row. `penalty` counts for a
        mean of losses.
        """
        price_of(self)
        self._objective()
        features = self._features(n_features)
        public, ridge = relation(self.neighbours) is Neighbours.REPLACE_ONE, None
        if self.penalty is not None:
            ridge = 2 * positive("penalty", self.penalty) * whole("n_samples", n_samples)
        more: dict[str, Any] = {"reference_rows": max(whole("n_samples", n_samples), 1)} if public else {}
        return perturbation(
            epsilon=exact_parameter("epsilon", self.epsilon), delta=self.delta, dimension=features.dimension,
            loss=Logistic(), radius=features.radius + features.rounding, ridge=ridge,
            rows=whole("rows", self.rows) * (2 if public else 1), heads=n_classes if n_classes > 2 else 1,
            tolerance=None if self.tolerance is None else positive("tolerance", self.tolerance), **more,
        )  # fmt: skip

    def _release(
        self, X: Floats, targets: list[Floats], n_classes: int, declared: tuple[str, ...] = ()
    ) -> None:
        if not self._objective():
            super()._release(X, targets, n_classes, declared)
            return
        shape = {"n_samples": X.shape[0], "n_features": X.shape[1], "n_classes": n_classes}
        mechanism, features = self.perturbation(**shape).mechanism, self._features(X.shape[1])
        parts = PerturbedParts(model=mechanism, heads=len(targets), histogram=None, calibration=None)
        finite = np.asarray(np.isfinite(X).all(axis=1))
        inside = np.array(X)
        inside[~finite] = 0.0
        phi = features.of(inside)
        found, publishable = [], True
        for target in targets:
            used = finite & np.isfinite(target)
            design = DenseDesign(table=phi[used], radius=mechanism.gradient)
            released = mechanism.release(
                perturbed_head(Logistic(), design, target[used], mechanism, None), source=self.source
            )
            found.append(released.to_floats())
            publishable = publishable and released.publishable
        declared = (*declared, CERTIFIED)
        if not publishable:
            declared = (*declared, SECRET_SEED)
        bound = parts.bound
        # The penalty of a mean of losses tells the number of rows; where that is private, it is that of their sum.
        relative = relation(self.neighbours)
        losses = X.shape[0] if relative is Neighbours.REPLACE_ONE else 1
        self.model_ = ReleasedModel(
            features=features, weights=np.array(found), noise_std=float(mechanism.output.noise_std), bound=bound,
            loss="logistic", penalty=mechanism.ridge / (2 * max(losses, 1)), publishable=publishable,
        )  # fmt: skip
        self.plan_ = mechanism
        self.events_ = parts.events
        self.guarantee_ = Guarantee(bound=bound, unit=unit_of(relative, self.rows), declared=declared)


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
        keep(self, locals())

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
        keep(self, locals())

    def _loss(self) -> Loss:
        return EpsilonInsensitive(tube=self.tube)
