"""Machines: classifiers and regression functions trained on rows and released with Gaussian noise on their weights.

The estimators are loaded when they are first used: they need scikit-learn, and nothing else here does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tacit.functions.machines.columns import CategoryColumn, NumberColumn
from tacit.functions.machines.features import (
    Domain,
    FeatureMap,
    FourierFeatures,
    LinearFeatures,
    PublicBall,
    PublicBox,
)
from tacit.functions.machines.shapes import Shapes
from tacit.functions.machines.solvers import EpsilonInsensitive, Hinge, Huber, Logistic, Loss
from tacit.functions.machines.training import (
    ChosenPenalty,
    MachinePlan,
    PenaltyChoice,
    ReleasedMachine,
    balanced_penalty,
    machine_sensitivity,
    solver_distance,
)
from tacit.functions.machines.trees import ReleasedTree, SplitColumn, TreePlan, TreeShape

if TYPE_CHECKING:
    from tacit.functions.machines.estimators import (
        PrivateKernelRegressor,
        PrivateLogisticRegression,
        PrivateSVC,
        PrivateSVR,
    )
    from tacit.functions.machines.holdout import HoldoutReport, holdout_report
    from tacit.functions.machines.regressions import (
        PrivateAdditiveClassifier,
        PrivateAdditiveRegressor,
        PrivateLinearRegression,
        PrivatePoissonRegression,
    )
    from tacit.functions.machines.tree_estimator import PrivateDecisionTreeClassifier

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
    "LinearFeatures",
    "Logistic",
    "Loss",
    "MachinePlan",
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
    "ReleasedMachine",
    "ReleasedTree",
    "Shapes",
    "SplitColumn",
    "TreePlan",
    "TreeShape",
    "balanced_penalty",
    "holdout_report",
    "machine_sensitivity",
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
