"""Machines: classifiers and regression functions trained on rows and released with Gaussian noise on their weights.

The estimators are loaded when they are first used: they need scikit-learn, and nothing else here does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tacit.functions.machines.features import (
    Domain,
    FeatureMap,
    FourierFeatures,
    LinearFeatures,
    PublicBall,
    PublicBox,
)
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
    from tacit.functions.machines.tree_estimator import PrivateDecisionTreeClassifier

__all__ = [
    "ChosenPenalty",
    "Domain",
    "EpsilonInsensitive",
    "FeatureMap",
    "FourierFeatures",
    "Hinge",
    "Huber",
    "LinearFeatures",
    "Logistic",
    "Loss",
    "MachinePlan",
    "PenaltyChoice",
    "PrivateDecisionTreeClassifier",
    "PrivateKernelRegressor",
    "PrivateLogisticRegression",
    "PrivateSVC",
    "PrivateSVR",
    "PublicBall",
    "PublicBox",
    "ReleasedMachine",
    "ReleasedTree",
    "SplitColumn",
    "TreePlan",
    "TreeShape",
    "balanced_penalty",
    "machine_sensitivity",
    "solver_distance",
]

_ESTIMATORS = ("PrivateKernelRegressor", "PrivateLogisticRegression", "PrivateSVC", "PrivateSVR")


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one that exists.
    def __getattr__(name: str) -> object:
        if name == "PrivateDecisionTreeClassifier":
            return getattr(importlib.import_module("tacit.functions.machines.tree_estimator"), name)
        if name in _ESTIMATORS:
            return getattr(importlib.import_module("tacit.functions.machines.estimators"), name)
        raise AttributeError(f"module 'tacit.functions.machines' has no attribute {name!r}")
