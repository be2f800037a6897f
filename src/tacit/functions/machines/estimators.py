"""Private machines as scikit-learn estimators: fit releases noisy weights, all the rest is post-processing.

    PrivateSVC(epsilon=1, delta=1e-5, domain=PublicBox(low=-3, high=3), classes=[0, 1]).fit(X, y).predict(Z)

Privacy is for one row replaced by any other; the number of rows, of columns and of classes is public. What is learned
from rows before fit (a scaler, a selection of columns, a search for parameters) is not covered by `guarantee_`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.exact.arrays import Floats
from tacit.functions.machines.base import PrivateClassifier, PrivateRegressor
from tacit.functions.machines.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss

__all__ = ["PrivateKernelRegressor", "PrivateLogisticRegression", "PrivateSVC", "PrivateSVR"]


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
    """Logistic regression with Gaussian noise on its weights: logistic loss + penalty |f|^2, no free intercept.

    Guarantee: (epsilon, delta) for one row replaced, by mu-Gaussian privacy (`guarantee_`). Linear by default; a
    constant feature of size `intercept` is penalised like the others. Theorems `machine-sensitivity`, `machine-gap`.
    Source: Hall 2012, 3.3.3; Chaudhuri, Monteleoni, Sarwate 2011 (output perturbation).
    """

    def __init__(
        self, epsilon: Any = None, delta: Any = None, *, domain: Any = None, classes: Any = None,
        kernel: Any = "linear", gamma: Any = 1.0, pairs: Any = 256, penalty: Any = None, intercept: Any = 0.5,
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
        return Logistic()

    def predict_proba(self, X: Any) -> Floats:
        """1 / (1 + e^-f) for two classes; for more, the machines' chances scaled to add up to 1."""
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
