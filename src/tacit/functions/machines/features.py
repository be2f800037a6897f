"""Finite feature maps: a row becomes a vector of bounded length, and a machine is a vector of weights.

The machine is trained *in* the finite space that the map spans, so that its weights are all there is to release, and
their Euclidean length is the norm of the function. Each map states the exact length that no row exceeds (`radius`,
the root of sup K(x, x)) and how far its floats may be from the exact map (`rounding`); training counts that.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import non_negative, positive, settle, whole
from tacit.functions.machines.domains import Domain, PublicBall, PublicBox

__all__ = ["FeatureMap", "FourierFeatures", "LinearFeatures"]


UNIT: float = 2.0**-53
LATTICE_FEATURES = 6
MOST_FEATURES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureMap(ABC):
    """phi with |phi(x)| <= radius for every row, and K(x, y) = phi(x) . phi(y).

    `intercept` appends a constant feature of that size: it is penalised like every other weight, since the theorem
    needs that.
    """

    features: int
    domain: Domain
    intercept: float = 0.0

    def __post_init__(self) -> None:
        settle(
            self,
            features=whole("features", self.features),
            intercept=non_negative("intercept", self.intercept),
        )
        if not isinstance(self.domain, PublicBall | PublicBox):
            raise InvalidParameter(
                parameter="domain",
                value=type(self.domain).__name__,
                must="be a PublicBall or a PublicBox",
                hint="where rows may lie is declared, never read from them",
            )
        self.domain.corners(self.features)

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of weights."""

    @property
    def radius(self) -> float:
        """The root of sup K(x, x), rounded up: sqrt(1 + intercept^2)."""
        if not self.intercept:
            return 1.0
        return math.nextafter(math.sqrt(1 + self.intercept**2) * (1 + 4 * UNIT), math.inf)

    @property
    @abstractmethod
    def rounding(self) -> float:
        """How far the floats of `of` may lie from the exact phi(x), in Euclidean length."""

    @abstractmethod
    def _of(self, rows: Floats) -> Floats: ...

    def of(self, rows: Floats) -> Floats:
        """phi of each row, in floats; rows are first put into the domain."""
        inner = self._of(rows)
        if not self.intercept:
            return inner
        return np.hstack([inner, np.full((rows.shape[0], 1), self.intercept)])

    @property
    def words(self) -> dict[str, Any]:
        """The map in plain values, for a certificate."""
        return {"map": type(self).__name__, "dimension": self.dimension, "radius": self.radius}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFeatures(FeatureMap):
    """The row itself, scaled about the domain's centre into the unit ball: linear machines. K(x, y) = x . y."""

    @property
    def dimension(self) -> int:
        return self.features + bool(self.intercept)

    @property
    def rounding(self) -> float:
        # A few operations each coordinate, and a length that is a sum of `features` squares.
        return (self.features + 16) * UNIT * self._offset()

    def _offset(self) -> float:
        """Subtracting the centre loses digits where it is far from 0 compared with the domain's size."""
        low, high = self.domain.corners(self.features)
        return float(1 + (np.maximum(np.abs(low), np.abs(high)) / (high - low)).max())

    def _of(self, rows: Floats) -> Floats:
        return self.domain.scaled(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierFeatures(FeatureMap):
    """Waves cos(w x), sin(w x) with public frequencies w: stands for the Gaussian kernel exp(-gamma |x - y|^2).

    phi(x) has length 1 for every x, and phi(x) . phi(y) tends to the kernel as `pairs` grows. Frequencies are N(0, 2
    gamma) numbers: from a lattice for few features, else from a hash of the public `seed`. Privacy does not depend on
    them. Source: Rahimi, Recht 2007.
    """

    gamma: float
    pairs: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        FeatureMap.__post_init__(self)
        settle(
            self,
            gamma=positive("gamma", self.gamma),
            pairs=whole("pairs", self.pairs),
            seed=whole("seed", self.seed, least=0),
        )
        if self.pairs > MOST_FEATURES:
            raise InvalidParameter(parameter="pairs", value=self.pairs, must=f"be at most {MOST_FEATURES}")

    @property
    def dimension(self) -> int:
        return 2 * self.pairs + bool(self.intercept)

    @property
    def frequencies(self) -> Floats:
        """One column a wave."""
        return math.sqrt(2 * self.gamma) * standard_normals(self.features, self.pairs, self.seed)

    @property
    def rounding(self) -> float:
        # The phase is a sum of products, each off by some units of its size; sine and cosine add a few units.
        largest = float(np.abs(self.frequencies).sum(axis=0).max()) * self.domain.reach(self.features)
        return ((self.features + 8) * largest + 16) * UNIT

    def _of(self, rows: Floats) -> Floats:
        phase = self.domain.inside(rows) @ self.frequencies
        scale = 1 / math.sqrt(self.pairs)
        return np.hstack([np.cos(phase) * scale, np.sin(phase) * scale])


@lru_cache(maxsize=8)
def standard_normals(features: int, count: int, seed: int) -> Floats:
    """Public numbers that are spread like independent standard normal ones, shape (features, count)."""
    from scipy.special import ndtri

    if features <= LATTICE_FEATURES:
        # The generalised golden ratio: g^(features + 1) = g + 1; multiples of its powers fill the cube evenly.
        ratio = 2.0
        for _ in range(60):
            ratio = (1 + ratio) ** (1 / (features + 1))
        steps = ratio ** -np.arange(1, features + 1)
        uniform = np.mod(np.outer(steps, np.arange(1, count + 1)) + uniforms(features, 1, seed), 1.0)
    else:
        uniform = uniforms(features, count, seed)
    normal = ndtri(np.clip(uniform, 2.0**-40, 1 - 2.0**-40))
    normal.setflags(write=False)
    return np.asarray(normal)


def uniforms(features: int, count: int, seed: int) -> Floats:
    """Public numbers in (0, 1) from a hash of the seed."""
    stream = hashlib.shake_256(f"tacit features {seed}".encode()).digest(8 * features * count)
    words = np.frombuffer(stream, dtype="<u8") >> np.uint64(11)
    return np.asarray((words.astype(np.float64) + 0.5) * 2.0**-53).reshape(features, count)
