"""A released machine: a function that anyone may evaluate anywhere, as often as they like. It carries no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.functions.machines.features import FeatureMap
from tacit.guarantees import GaussianDP

__all__ = ["ReleasedMachine"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedMachine:
    """x -> weights . phi(x): one sample path, the same value whenever it is asked.

    It holds the public feature map and the noisy weights, nothing else; evaluating it is post-processing.
    `publishable` is False where the noise came from a seeded source.
    """

    features: FeatureMap
    weights: Floats
    noise_std: float
    bound: GaussianDP
    loss: str
    penalty: float
    publishable: bool
    numerical_delta: float = 0.0

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The value at each point, one column a head; points outside the domain are answered at its edge."""
        return np.asarray(self._phi(points) @ self.weights.T)

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the value at each point; public."""
        return np.asarray(self.noise_std * np.sqrt((self._phi(points) ** 2).sum(axis=1)))

    def _phi(self, points: npt.ArrayLike) -> Floats:
        array = np.asarray(points, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.features.features:
            raise InvalidParameter(
                parameter="points",
                value=f"an array of shape {array.shape}",
                must=f"have one row a point and {self.features.features} columns",
            )
        if not bool(np.isfinite(array).all()):
            raise InvalidParameter(parameter="points", value="a value that is not finite", must="be finite")
        return self.features.of(array)

    @property
    def words(self) -> dict[str, Any]:
        """What it is, in plain values."""
        return {
            "loss": self.loss, "penalty": self.penalty, "features": self.features.words, "noise_std": self.noise_std,
            "heads": int(self.weights.shape[0]),
        }  # fmt: skip
