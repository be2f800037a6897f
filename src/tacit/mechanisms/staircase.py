"""Staircase noise on a grid: the best noise for one number when the sensitivity is many grid steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy.typing as npt

from tacit.exact.arrays import AnyArray
from tacit.exact.checks import settle
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.mechanisms.base import (
    AdditiveMechanism,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    in_units,
    one_value,
    shown,
)
from tacit.mechanisms.part_noise import CellNoise
from tacit.mechanisms.sensitivity import L1, CountSensitivity, need
from tacit.noise import DiscreteStaircase, grid_spacing
from tacit.noise.source import Source

__all__ = ["Staircase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(AdditiveMechanism, CellNoise):
    """Noise that is flat on steps as wide as the sensitivity and falls by e^-epsilon from step to step.

    Guarantee: Pure(epsilon), reached at every edge of a step. Among noises added to one number it has the least
    E |X| for its epsilon, on fine grids; for small epsilon it is close to Laplace, for large it wins:
    E |X| / sensitivity = e^(epsilon/2) / (e^epsilon - 1) against 1 / epsilon.
    Assumption: one number on a grid, moved by at most the sensitivity. Theorem `staircase-mechanism`.
    Source: Geng, Viswanath 2014.
    """

    epsilon: Exact
    sensitivity: L1 | CountSensitivity
    spacing: Exact = 1
    gamma: Exact | None = None

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon, gamma=self.gamma)
        need(
            "staircase",
            self.sensitivity,
            (L1, CountSensitivity),
            "it is for one number: the size of its largest move",
        )
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        _ = self.distribution

    @property
    def step(self) -> Fraction:
        return Fraction(self.spacing)

    @property
    def distribution(self) -> DiscreteStaircase:
        """The law of the noise, in grid steps."""
        steps = self.sensitivity.steps(self.step)
        return DiscreteStaircase(epsilon=epsilon_parameter(self.epsilon), sensitivity=steps, gamma=self.gamma)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "staircase",
            "epsilon": shown(epsilon_parameter(self.epsilon)),
            "sensitivity_steps": self.sensitivity.steps(self.step),
            "plateau_steps": self.distribution.plateau,
            "spacing": shown(self.step),
            "exact": True,
        }

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("staircase-mechanism",)

    @property
    def exact_epsilon(self) -> Fraction:
        return epsilon_parameter(self.epsilon)

    def stated(self, parts: Sequence[str]) -> dict[str, Any]:
        return {
            "parts": list(parts),
            "distribution": "staircase",
            "epsilon": shown(self.exact_epsilon),
            "plateau_steps": str(self.distribution.plateau),
            "sensitivity": {"norm": "L1", "steps": self.sensitivity.steps(self.step)},
            "exact": True,
        }

    def _checked(self, values: npt.ArrayLike) -> AnyArray:
        return one_value(values, "staircase")

    def _noise(self, shape: tuple[int, ...], source: Source) -> AnyArray:
        return self.distribution.sample(size=shape, source=source)

    def expected_error(self) -> float:
        """E |X|, a sum of two geometric series."""
        return in_units(Fraction(self.distribution.mean_absolute) * (1 + Fraction(1, 1 << 50)), self.step)

    @property
    def variance(self) -> float:
        return self.distribution.variance

    def step_error(self) -> float:
        return self.expected_error() / float(self.step)

    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        return int(self.distribution.error_bound(confidence=confidence, coordinates=coordinates))

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        return self.release(values, source=source).values

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least grid value t with Pr[|X| <= t] >= confidence."""
        return in_units(self.distribution.error_bound(confidence=confidence_level(confidence)), self.step)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` numbers released side by side (which composes their epsilons)."""
        level, d = confidence_level(confidence), dimension_parameter(dimension)
        return in_units(self.distribution.error_bound(confidence=level, coordinates=d), self.step)
