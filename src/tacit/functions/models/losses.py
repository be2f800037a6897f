"""Smooth convex losses of models for objective perturbation, beside those of models."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import positive, set_fields
from tacit.exact.data_classes import dataclass
from tacit.functions.models.solvers import Logistic, SmoothLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCosh(SmoothLoss):
    """threshold^2 ln cosh(r / threshold) with r = t - y: Huber's loss with smooth corners. M = threshold, curvature 1.

    The slope is M a with a = tanh(r / M), and the second derivative 1 - a^2: what theorem `objective-log-cosh` needs.
    """

    name: ClassVar[str] = "log-cosh"
    signs: ClassVar[str] = "log-cosh"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        set_fields(self, threshold=positive("threshold", self.threshold))

    @property
    def lipschitz(self) -> float:
        return self.threshold

    @property
    def curvature(self) -> float:
        return 1.0

    @property
    def at_zero(self) -> float:
        return float(min(0.5, self.threshold))

    def values(self, model: Floats, target: Floats) -> Floats:
        r = np.abs(model - target) / self.threshold
        # cosh r = 1 + 2 sinh(r/2)^2 keeps small residuals exact under a large threshold.
        near = np.log1p(2 * np.sinh(np.minimum(r, 20.0) / 2) ** 2)
        return np.asarray(self.threshold**2 * np.where(r < 20, near, r - math.log(2)))

    def slopes(self, model: Floats, target: Floats) -> Floats:
        return np.asarray(self.threshold * np.tanh((model - target) / self.threshold))

    def bends(self, model: Floats, target: Floats) -> Floats:
        return np.asarray(1 - np.tanh((model - target) / self.threshold) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedPoisson(SmoothLoss):
    """min(e^t, most) - y as the slope: Poisson's loss e^t - y t, linear where the rate would exceed `most`.

    Counts y lie in [0, most]. M = most, curvature most.
    """

    name: ClassVar[str] = "poisson"
    most: float = 10.0

    def __post_init__(self) -> None:
        set_fields(self, most=positive("most", self.most))

    @property
    def lipschitz(self) -> float:
        return self.most

    @property
    def curvature(self) -> float:
        return self.most

    @property
    def at_zero(self) -> float:
        return 1.0

    @property
    def highest(self) -> float:
        """Counts are at most this."""
        return self.most

    @property
    def lowest(self) -> float:
        """And at least this."""
        return 0.0

    def values(self, model: Floats, target: Floats) -> Floats:
        top = math.log(self.most)
        inside = np.minimum(model, top)
        return np.asarray(np.exp(inside) + self.most * np.maximum(model - top, 0.0) - target * model)

    def slopes(self, model: Floats, target: Floats) -> Floats:
        return np.asarray(np.minimum(np.exp(np.minimum(model, math.log(self.most))), self.most) - target)

    def bends(self, model: Floats, target: Floats) -> Floats:
        top = math.log(self.most)
        return np.asarray(np.where(model <= top, np.exp(np.minimum(model, top)), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftedLogistic(Logistic):
    """Logistic loss at t + by, `by` being a number of each row: the slope is p and the second derivative p (1 - p)."""

    by: Floats

    def values(self, model: Floats, target: Floats) -> Floats:
        return Logistic().values(model + self.by, target)

    def slopes(self, model: Floats, target: Floats) -> Floats:
        return Logistic().slopes(model + self.by, target)

    def bends(self, model: Floats, target: Floats) -> Floats:
        return Logistic().bends(model + self.by, target)
