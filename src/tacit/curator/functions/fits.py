"""How a function is fitted: from rows to whole numbers on a grid, from noisy ones back to a function of any point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.functions.inputs import InputColumns
from tacit.curator.functions.statistics import Classifier, MachineStatistic, RegressionFunction, ends
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.functions.machines import FourierFeatures, LinearFeatures, MachinePlan, PublicBall, PublicBox
from tacit.functions.machines.features import FeatureMap
from tacit.functions.machines.training import balanced_penalty
from tacit.mechanisms import RoundedGaussian, on_grid
from tacit.mechanisms.fourier import FourierMechanism
from tacit.mechanisms.spreads import normal_quantile
from tacit.sources.training import TrainingRows
from tacit.statistics.base import Question
from tacit.statistics.sensitivity import base_unit, row_limit

__all__ = ["Fit", "MachineFit", "machine_fit"]


class Fit(ABC):
    """A function before and after its noise; everything here but `integers` is public."""

    @property
    @abstractmethod
    def mechanism(self) -> FourierMechanism:
        """The noise on its numbers."""

    @property
    @abstractmethod
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""

    @property
    @abstractmethod
    def spacing(self) -> Fraction:
        """The grid of the numbers that get noise."""

    @property
    @abstractmethod
    def moves(self) -> dict[str, str]:
        """How far one unit can move them together, for a certificate."""

    @abstractmethod
    def integers(self, rows: Any) -> Any:
        """The true numbers in grid steps, of what its question reads. PRIVATE: to be given to the mechanism only."""

    def spread(self, confidence: float, coordinates: int = 1) -> float:
        """What the noise at a point stays within, in standard deviations; at so many points at once."""
        return normal_quantile(confidence, coordinates)

    @property
    def mean_spread(self) -> float:
        """The mean size of the noise at a point, in standard deviations."""
        return float(np.sqrt(2 / np.pi))

    @abstractmethod
    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        """The function at points, from its numbers: one column for each value that it has."""

    @abstractmethod
    def stds(self, coordinates: Floats) -> Floats:
        """The standard deviation of the noise in each of them."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """What 1 of the function is worth in the unit of what is shown."""

    @property
    @abstractmethod
    def widest(self) -> float:
        """The largest of these at any point, in the unit of what is shown."""

    @property
    @abstractmethod
    def scale(self) -> float | None:
        """A public size that errors are judged by; None where a value is judged by itself."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What the noise costs, in a sentence."""

    @property
    @abstractmethod
    def words(self) -> dict[str, Any]:
        """The fit in plain values, for a certificate."""

    @abstractmethod
    def shown(self, values: Floats) -> Floats:
        """Values in the unit and within the range of what is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFit(Fit):
    """A classifier or a regression function: weights of a public feature map."""

    plan: MachinePlan
    inputs: InputColumns
    target: str
    classes: tuple[Any, ...] = ()
    bounds: tuple[float, float] | None = None
    width: int = 1

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("machine-sensitivity", "machine-gap", "machine-excess", "rounded-gaussian")

    @property
    def mechanism(self) -> RoundedGaussian:
        return self.plan.mechanism

    @property
    def spacing(self) -> Fraction:
        return self.plan.spacing

    @property
    def l2_sensitivity(self) -> Fraction:
        """How far one unit can move the weights: in L2, with the solver's tolerance."""
        return Fraction(self.plan.l2_sensitivity)

    @property
    def moves(self) -> dict[str, str]:
        return {"l2": str(self.l2_sensitivity)}

    def integers(self, rows: TrainingRows) -> Any:
        given = rows.rows[self.target]
        if self.classes:
            heads = [1] if len(self.classes) == 2 else range(len(self.classes))
            known = np.isfinite(given)
            targets = [np.where(known, np.where(given == h, 1.0, -1.0), np.nan) for h in heads]
        else:
            targets = [given * (2.0 / self.width) - 1.0]
        found = self.plan.train(self.inputs.of_rows(rows.rows), targets)
        return on_grid(np.concatenate(found), spacing=self.spacing)

    def weights(self, numbers: Floats) -> Floats:
        """One row of weights for each machine."""
        return np.asarray(numbers).reshape(self.plan.heads, self.plan.features.dimension)

    def values(self, numbers: Floats, coordinates: Floats) -> Floats:
        return np.asarray(self.plan.features.of(coordinates) @ self.weights(numbers).T)

    def stds(self, coordinates: Floats) -> Floats:
        phi = self.plan.features.of(coordinates)
        return np.asarray(float(self.plan.noise_std) * np.sqrt((phi**2).sum(axis=1)) * self.unit)

    @property
    def unit(self) -> float:
        return 1.0 if self.bounds is None else (self.bounds[1] - self.bounds[0]) / 2

    def shown(self, values: Floats) -> Floats:
        if self.bounds is None:
            return values
        low, high = self.bounds
        return np.asarray(np.clip(low / 2 + high / 2 + self.unit * values, low, high))

    @property
    def widest(self) -> float:
        return float(self.plan.noise_std) * self.plan.features.radius * self.unit

    @property
    def scale(self) -> float | None:
        if isinstance(self.plan.features, LinearFeatures):
            return None
        return 1.0 if self.bounds is None else self.bounds[1] - self.bounds[0]

    @property
    def about(self) -> str:
        cost = f"the noise raises the expected {self.plan.loss.name} loss by at most"
        return f"the function's value at any one point; {cost} {self.plan.expected_excess_error():.3g}"

    @property
    def words(self) -> dict[str, Any]:
        return {**self.plan.words, "expected_excess_error": self.plan.expected_excess_error()}


def _map(statistic: MachineStatistic, inputs: InputColumns) -> FeatureMap:
    count, constant = inputs.coordinates, float(statistic.intercept or 0.0)
    if statistic.kernel == "linear":
        return LinearFeatures(features=count, domain=PublicBall(radius=inputs.radius), intercept=constant)
    return FourierFeatures(
        features=count, domain=PublicBox(low=-1, high=1), gamma=statistic.gamma, pairs=statistic.pairs,
        intercept=constant,
    )  # fmt: skip


def machine_fit(question: Question, mu: float) -> MachineFit:
    """The fit of a classifier or a regression function at this mu; every number of it is public."""
    statistic = question.statistic
    assert isinstance(statistic, Classifier | RegressionFunction)
    inputs: InputColumns = question.details["inputs"]
    classes: Sequence[Any] = question.details.get("classes", ())
    heads = len(classes) if len(classes) > 2 else 1
    base, group = base_unit(question.unit)
    features, loss, rows = _map(statistic, inputs), statistic.machine_loss(), row_limit(question.unit) * group
    if statistic.penalty is None:
        penalty = balanced_penalty(
            loss=loss, radius=features.radius, size=statistic.size, mu=mu, heads=heads, rows=rows
        )
    else:
        penalty = statistic.penalty
    try:
        plan = MachinePlan(
            loss=loss, features=features, penalty=penalty, size=statistic.size, mu=mu, heads=heads, rows=rows,
            neighbours=base.neighbours,
        )  # fmt: skip
    except InvalidParameter as problem:
        raise InvalidParameter(
            parameter=problem.parameter, value=statistic.kind, must="leave room for a machine at this price",
            hint="a larger penalty or size, or a larger epsilon",
        ) from None  # fmt: skip
    if isinstance(statistic, Classifier):
        return MachineFit(plan=plan, inputs=inputs, target=statistic.label, classes=tuple(classes))
    column = question.details["outcome"]
    return MachineFit(
        plan=plan, inputs=inputs, target=statistic.outcome, bounds=ends(column), width=column.width
    )
