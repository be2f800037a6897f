"""Convex losses with a slope of at most M: what a machine minimises the mean of, and all that privacy needs of it.

A loss is a function of one number, the machine's value t at a row, for a given target y. Its slope bounds how far one
row can pull the machine; its turn, how much zero-mean noise can cost.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import non_negative, positive, settle

__all__ = ["EpsilonInsensitive", "Hinge", "Huber", "Logistic", "Loss", "PiecewiseLoss", "SmoothLoss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss(ABC):
    """A convex function of the machine's value with slopes in [-lipschitz, lipschitz], for targets in [-1, 1]."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """M, the largest size of a slope."""

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """The largest loss of the machine that is 0 everywhere; no minimiser is longer than sqrt(at_zero / penalty)."""

    @abstractmethod
    def values(self, machine: Floats, target: Floats) -> Floats:
        """The loss at each row."""

    @abstractmethod
    def excess(self, noise_std: float) -> float:
        """A bound on E loss(t + g) - loss(t) for g ~ N(0, noise_std^2) and every t: what the noise costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLoss(Loss):
    """A loss with a derivative, whose own slope is at most `curvature`."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The largest second derivative."""

    @abstractmethod
    def slopes(self, machine: Floats, target: Floats) -> Floats:
        """The derivative in t at each row."""

    @abstractmethod
    def bends(self, machine: Floats, target: Floats) -> Floats:
        """The second derivative in t at each row (any of them at a corner of the slope)."""

    def excess(self, noise_std: float) -> float:
        """min(curvature noise_std^2 / 2, turn noise_std / sqrt(2 pi)): the mean of the noise is 0."""
        return min(self.curvature * noise_std**2 / 2, 2 * self.lipschitz * noise_std / math.sqrt(2 * math.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseLoss(Loss):
    """A loss that is a sum of hinges (g - b t)+ with b = -1 or 1."""

    @abstractmethod
    def hinges(self, target: Floats) -> tuple[Floats, Floats]:
        """The b and the g of each hinge, as arrays of shape (hinges, rows)."""

    @property
    @abstractmethod
    def turn(self) -> float:
        """The total change of slope."""

    def values(self, machine: Floats, target: Floats) -> Floats:
        b, g = self.hinges(target)
        return np.asarray(np.maximum(g - b * machine, 0.0).sum(axis=0))

    def excess(self, noise_std: float) -> float:
        """turn noise_std / sqrt(2 pi): a hinge loses most at its corner, where E (g)+ = noise_std / sqrt(2 pi)."""
        return self.turn * noise_std / math.sqrt(2 * math.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinge(PiecewiseLoss):
    """(1 - y t)+ for labels y = -1 and 1: the support vector machine. M = 1 (Hall 2012, 3.3.3)."""

    name: ClassVar[str] = "hinge"

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def at_zero(self) -> float:
        return 1.0

    @property
    def turn(self) -> float:
        return 1.0

    def hinges(self, target: Floats) -> tuple[Floats, Floats]:
        return target[None, :], np.ones((1, target.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonInsensitive(PiecewiseLoss):
    """(|t - y| - tube)+: support vector regression. M = 1."""

    name: ClassVar[str] = "epsilon-insensitive"
    tube: float = 0.0

    def __post_init__(self) -> None:
        settle(self, tube=non_negative("tube", self.tube))

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def at_zero(self) -> float:
        return 1.0

    @property
    def turn(self) -> float:
        return 2.0

    def hinges(self, target: Floats) -> tuple[Floats, Floats]:
        ones = np.ones(target.size)
        return np.stack([ones, -ones]), np.stack([target - self.tube, -target - self.tube])


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic(SmoothLoss):
    """ln(1 + e^(-y t)) for labels y = -1 and 1. M = 1, curvature 1/4."""

    name: ClassVar[str] = "logistic"

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def curvature(self) -> float:
        return 0.25

    @property
    def at_zero(self) -> float:
        return math.nextafter(math.log(2.0), 1.0)

    def values(self, machine: Floats, target: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, -target * machine))

    def slopes(self, machine: Floats, target: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(-target * expit(-target * machine))

    def bends(self, machine: Floats, target: Floats) -> Floats:
        from scipy.special import expit

        chance = expit(machine)
        return np.asarray(chance * (1 - chance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Huber(SmoothLoss):
    """r^2/2 for |r| <= threshold, else threshold |r| - threshold^2/2, where r = t - y. M = threshold, curvature 1."""

    name: ClassVar[str] = "huber"
    threshold: float = 0.1

    def __post_init__(self) -> None:
        settle(self, threshold=positive("threshold", self.threshold))

    @property
    def lipschitz(self) -> float:
        return self.threshold

    @property
    def curvature(self) -> float:
        return 1.0

    @property
    def at_zero(self) -> float:
        return float(min(0.5, self.threshold))

    def values(self, machine: Floats, target: Floats) -> Floats:
        r = np.abs(machine - target)
        h = self.threshold
        return np.asarray(np.where(r <= h, r**2 / 2, h * r - h**2 / 2))

    def slopes(self, machine: Floats, target: Floats) -> Floats:
        return np.asarray(np.clip(machine - target, -self.threshold, self.threshold))

    def bends(self, machine: Floats, target: Floats) -> Floats:
        return np.asarray(np.abs(machine - target) <= self.threshold, dtype=np.float64)
