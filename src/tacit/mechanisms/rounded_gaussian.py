"""Continuous Gaussian noise, with a covariance, drawn exactly and rounded to the grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event, GaussianEvent
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import settle, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import down, up
from tacit.guarantees import GaussianDP
from tacit.guarantees.running_sum import root
from tacit.mechanisms.base import (
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    in_units,
    short_up,
    shown,
)
from tacit.mechanisms.calibrate import least
from tacit.mechanisms.gamma import euclidean_dimension, euclidean_size
from tacit.mechanisms.gaussian import HINT, delta_parameter
from tacit.mechanisms.part_noise import CellNoise, Pivot
from tacit.mechanisms.sensitivity import L2, need
from tacit.mechanisms.shaped import ShapedMechanism
from tacit.mechanisms.shapes import Mahalanobis
from tacit.mechanisms.spreads import gaussian_pivot, normal_quantile
from tacit.noise import GaussianVector, GridVector, grid_spacing
from tacit.noise.marginal_laws import Normal
from tacit.noise.source import Source

__all__ = ["RoundedGaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedGaussian(ShapedMechanism, CellNoise):
    """N(0, noise_std^2 Sigma) rounded to the grid: a continuous draw, exact, known to the cell.

    Guarantee: GaussianDP(mu = sensitivity / noise_std), the exact continuous curve, by post-processing; any dimension,
    any grid. (The *discrete* Gaussian has another, larger curve: see `Gaussian`.)
    Assumption: an L2 sensitivity (then `dimension` says d), or a Mahalanobis one. Theorem `rounded-gaussian`.
    Source: Hall 2012, Prop. 1.3.3; Balle, Wang 2018.
    """

    sensitivity: L2 | Mahalanobis
    noise_std: Exact
    dimension: int | None = None
    spacing: Exact = 1

    def __post_init__(self) -> None:
        need("Gaussian", self.sensitivity, (L2, Mahalanobis), HINT)
        exact_parameter("noise_std", self.noise_std)
        settle(self, noise_std=self.noise_std)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        object.__setattr__(self, "dimension", euclidean_dimension(self.sensitivity, self.dimension))

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, sensitivity: L2 | Mahalanobis, dimension: int | None = None,
        spacing: Exact = 1,
    ) -> RoundedGaussian:  # fmt: skip
        """The smallest noise (to one part in 10^5) whose curve has delta(epsilon) <= delta; certified."""
        target, limit = up(epsilon_parameter(epsilon)), delta_parameter(delta)
        need("Gaussian", sensitivity, (L2, Mahalanobis), HINT)
        size = euclidean_size(sensitivity, grid_spacing(spacing))
        std = least(lambda s: GaussianDP(mu=up(size / s)).delta(target) <= limit, size)
        return cls(sensitivity=sensitivity, noise_std=std, dimension=dimension, spacing=spacing)

    @classmethod
    def for_mu_squared(cls, *, mu_squared: Exact, squared_steps: int, dimension: int = 1) -> RoundedGaussian:
        """The smallest noise of this mu^2 on the integers: noise_std^2 = l2^2 / mu^2, rounded up."""
        steps = whole("squared_steps", squared_steps, least=1)
        std = Fraction(root(steps / exact_parameter("mu_squared", mu_squared), up))
        return cls(sensitivity=L2.root(steps), noise_std=std, dimension=dimension)

    @property
    def coordinates(self) -> int:
        assert self.dimension is not None
        return self.dimension

    @property
    def mu_squared(self) -> Fraction:
        """(sensitivity / noise_std)^2: exact for an L2 sensitivity, which is kept by its square."""
        std = exact_parameter("noise_std", self.noise_std)
        if isinstance(self.sensitivity, L2):
            return self.sensitivity.squared_steps(self.step) * (self.step / std) ** 2
        return (euclidean_size(self.sensitivity, self.step) / std) ** 2

    @property
    def bound(self) -> GaussianDP:
        return GaussianDP(mu=root(self.mu_squared, up))

    @property
    def event(self) -> Event:
        return GaussianEvent(noise_multiplier=root(1 / self.mu_squared, down))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("rounded-gaussian",)

    @property
    def exact_rho(self) -> Fraction:
        """mu^2 / 2, rounded up."""
        return short_up(self.mu_squared / 2)

    @property
    def exact_mu_squared(self) -> Fraction:
        """Its own, rounded up: the event's float is further above it."""
        return short_up(self.mu_squared)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Gaussian, rounded",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std)),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    def stated(self, parts: Sequence[str]) -> dict[str, Any]:
        steps = self.sensitivity.squared_steps(self.step) if isinstance(self.sensitivity, L2) else None
        return {
            "parts": list(parts),
            "distribution": "Gaussian, rounded to the grid",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std) / self.step),
            "sensitivity": {"norm": "L2", "steps_squared": steps},
            "exact": True,
        }

    @property
    def law(self) -> GaussianVector:
        factor = self.sensitivity.factor if isinstance(self.sensitivity, Mahalanobis) else None
        return GaussianVector(coordinates=self.coordinates, noise_std=self.noise_std, factor=factor)

    def _draw(self, source: Source) -> GridVector:
        if not isinstance(self.sensitivity, Mahalanobis):
            # Independent coordinates: only those whose rounding is open are drawn to more digits.
            one = GaussianVector(coordinates=1, noise_std=self.noise_std)
            drawn = one.sample(spacing=self.step, size=self.coordinates, source=source)
            return replace(drawn, values=drawn.values[:, 0])
        return self.law.sample(spacing=self.step, source=source)

    def _widest(self) -> float:
        if isinstance(self.sensitivity, Mahalanobis):
            rows = np.array([[float(v) for v in row] for row in self.sensitivity.factor])
            return float(np.sqrt((rows**2).sum(axis=1).max()) * float(self.noise_std))
        return float(self.noise_std)

    def expected_error(self) -> float:
        """max_i E |X_i| <= sqrt(2/pi) noise_std sqrt(Sigma_ii): rounding makes it no larger.

        E |X| is a sum of Pr[|Z| > t] over the middles of the cells, and that tail is convex.
        """
        return float(np.sqrt(2 / np.pi) * self._widest())

    @property
    def variance(self) -> float:
        """Of a cell of what is drawn: noise_std^2 and the rounding's 1/12; below two steps of noise, less."""
        return Normal(scale=self._widest()).rounded(self.step).variance

    @property
    def interval_variance(self) -> float:
        """noise_std^2 and 1/12: never below the variance, for intervals of sums of few steps."""
        return (self._widest() / float(self.step)) ** 2 + 1 / 12

    def step_error(self) -> float:
        return self.expected_error() / float(self.step)

    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        """|round(Z)| <= t if and only if |Z| < t + 1/2."""
        z = normal_quantile(float(confidence), coordinates)
        return max(0, math.ceil(z * self._widest() / float(self.step) - 0.5))

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        """Coordinates are independent: there may be any number of them."""
        fitting = self if values.size == self.dimension else replace(self, dimension=values.size)
        return fitting.release(values, source=source).values

    def pivot(self, noises: Sequence[RoundedGaussian]) -> Pivot:
        """By the normal quantile of the sum; rounding moves each draw by at most 1/2."""
        stds = [float(n.noise_std) / float(n.step) for n in noises]

        def margin(weights: Sequence[Floats], value: Floats, confidence: float) -> Floats:
            moved = sum(0.5 * w for w in weights)
            scales = np.stack([s * w for s, w in zip(stds, weights, strict=True)])
            return gaussian_pivot(scales, confidence) + moved - np.abs(value)

        return margin

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The normal quantile of the widest coordinate, on the grid."""
        return self.max_error(confidence=confidence, dimension=1)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """Pr[max_i |X_i| <= t] >= (2 Phi(t) - 1)^d, equality for independent coordinates (Sidak); on the grid."""
        d = self.coordinates if dimension is None else dimension_parameter(dimension)
        return in_units(self.steps_within(confidence_level(confidence), d), self.step)
