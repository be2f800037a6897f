"""Models: classifiers and regression functions trained on rows and released with Gaussian noise on their weights.

The estimators load at first use: they need scikit-learn, which no other module here needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tacit.functions.models.columns import CategoryColumn, NumberColumn
from tacit.functions.models.features import (
    Domain,
    FeatureMap,
    FourierFeatures,
    LinearFeatures,
    PublicBall,
    PublicBox,
)
from tacit.functions.models.shapes import Shapes
from tacit.functions.models.solvers import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from tacit.functions.models.training import (
    ChosenPenalty,
    KernelModelPlan,
    PenaltyChoice,
    ReleasedModel,
    balanced_penalty,
    model_sensitivity,
    solver_distance,
)
from tacit.functions.models.trees import ReleasedTree, SplitColumn, TreePlan, TreeShape

if TYPE_CHECKING:
    from tacit.functions.models.estimators import (
        PrivateKernelRegressor,
        PrivateLogisticRegression,
        PrivateSVC,
        PrivateSVR,
    )
    from tacit.functions.models.holdout import HoldoutReport, holdout_report
    from tacit.functions.models.regressions import (
        PrivateAdditiveClassifier,
        PrivateAdditiveRegressor,
        PrivateLinearRegression,
        PrivatePoissonRegression,
    )
    from tacit.functions.models.tree_estimator import PrivateDecisionTreeClassifier

__all__ = [
    "CategoryColumn",
    "ChosenPenalty",
    "Domain",
    "EpsilonInsensitive",
    "FeatureMap",
    "FourierFeatures",
    "Hinge",
    "HoldoutReport",
    "Huber",
    "KernelModelPlan",
    "LinearFeatures",
    "Logistic",
    "Loss",
    "NumberColumn",
    "PenaltyChoice",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateDecisionTreeClassifier",
    "PrivateKernelRegressor",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivatePoissonRegression",
    "PrivateSVC",
    "PrivateSVR",
    "PublicBall",
    "PublicBox",
    "ReleasedModel",
    "ReleasedTree",
    "Shapes",
    "SplitColumn",
    "TreePlan",
    "TreeShape",
    "balanced_penalty",
    "holdout_report",
    "model_sensitivity",
    "solver_distance",
]

_LATER = {
    "HoldoutReport": "holdout",
    "PrivateAdditiveClassifier": "regressions",
    "PrivateAdditiveRegressor": "regressions",
    "PrivateDecisionTreeClassifier": "tree_estimator",
    "PrivateKernelRegressor": "estimators",
    "PrivateLinearRegression": "regressions",
    "PrivateLogisticRegression": "estimators",
    "PrivatePoissonRegression": "regressions",
    "PrivateSVC": "estimators",
    "PrivateSVR": "estimators",
    "holdout_report": "holdout",
}


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one that exists.
    def __getattr__(name: str) -> object:
        if name in _LATER:
            return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
