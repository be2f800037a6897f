"""Continuous Gaussian noise, with a covariance, drawn exactly and rounded to the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.exact.checks import settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import up
from tacit.guarantees import GaussianDP
from tacit.mechanisms.base import confidence_level, dimension_parameter, epsilon_parameter, shown
from tacit.mechanisms.calibrate import least
from tacit.mechanisms.gamma import euclidean_dimension, euclidean_size
from tacit.mechanisms.gaussian import HINT, delta_parameter
from tacit.mechanisms.sensitivity import L2, need
from tacit.mechanisms.shaped import ShapedMechanism
from tacit.mechanisms.shapes import Mahalanobis
from tacit.noise import GaussianVector, GridVector, grid_spacing
from tacit.noise.source import Source

__all__ = ["RoundedGaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedGaussian(ShapedMechanism):
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

    @property
    def coordinates(self) -> int:
        assert self.dimension is not None
        return self.dimension

    @property
    def bound(self) -> GaussianDP:
        size = euclidean_size(self.sensitivity, self.step)
        return GaussianDP(mu=up(size / exact_parameter("noise_std", self.noise_std)))

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Gaussian, rounded",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std)),
            "dimension": self.coordinates,
            "spacing": shown(self.step),
            "exact": True,
        }

    def _draw(self, source: Source) -> GridVector:
        factor = self.sensitivity.factor if isinstance(self.sensitivity, Mahalanobis) else None
        law = GaussianVector(coordinates=self.coordinates, noise_std=self.noise_std, factor=factor)
        return law.sample(spacing=self.step, source=source)

    def _widest(self) -> float:
        if isinstance(self.sensitivity, Mahalanobis):
            rows = np.array([[float(v) for v in row] for row in self.sensitivity.factor])
            return float(np.sqrt((rows**2).sum(axis=1).max()) * float(self.noise_std))
        return float(self.noise_std)

    def expected_error(self) -> float:
        """max_i E |X_i| <= sqrt(2/pi) noise_std sqrt(Sigma_ii), plus half a grid step."""
        return float(np.sqrt(2 / np.pi) * self._widest() + self.step / 2)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The normal quantile of the widest coordinate, plus half a grid step."""
        return self.max_error(confidence=confidence, dimension=1)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None) -> float:
        """Pr[max_i |X_i| <= t] >= (2 Phi(t) - 1)^d, equality for independent coordinates (Sidak)."""
        from scipy.special import ndtri

        d = self.coordinates if dimension is None else dimension_parameter(dimension)
        miss = -np.expm1(np.log(float(confidence_level(confidence))) / d)
        return float(-ndtri(miss / 2) * self._widest() + self.step / 2)
