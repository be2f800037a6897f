"""Finite feature maps: a row becomes a vector of bounded length, and a model is a vector of weights.

The model is trained *in* the finite space of the map, so that its weights determine it, and their Euclidean
length is the norm of the function. `radius`, the root of sup K(x, x), bounds the exact length of a mapped
row. `rounding` bounds the distance of the floats from the exact map. Training counts both.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import is_number, members, non_negative, positive, set_fields, whole
from tacit.exact.data_classes import dataclass

# Public domains: where rows are put before a model sees them, so that no row is longer than was declared.


def _coordinates(parameter: str, value: Any) -> tuple[float, ...] | float:
    """One finite number for all coordinates, or one each."""
    if is_number(value):
        number = float(value)
        if not math.isfinite(number):
            raise InvalidParameter(parameter=parameter, value=value, must="be finite")
        return number
    numbers = members(parameter, value)
    if not numbers or not all(is_number(v) and math.isfinite(v) for v in numbers):
        raise InvalidParameter(
            parameter=parameter, value=value, must="be a finite number, or a list of finite numbers"
        )
    return tuple(float(v) for v in numbers)


def _spread(parameter: str, value: tuple[float, ...] | float, features: int) -> Floats:
    if isinstance(value, tuple) and len(value) != features:
        raise InvalidParameter(
            parameter=parameter,
            value=f"{len(value)} numbers",
            must=f"have one number for each of {features} features",
        )
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (features,))


BLOCK = 512
"""Rows that are scaled together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain(ABC):
    """A bounded public set; rows outside of it are moved to its edge, for every person."""

    @abstractmethod
    def inside(self, rows: Floats) -> Floats:
        """The rows, those outside moved to the edge. Rows must be finite."""

    @abstractmethod
    def scaled(self, rows: Floats) -> Floats:
        """The rows inside, scaled about the centre so that none is longer than 1."""

    @abstractmethod
    def scaling(self, features: int) -> tuple[Floats, Floats]:
        """The centre, and the factor of each coordinate: `scaled` is (row - centre) * factor for a row inside."""

    @abstractmethod
    def reach(self, features: int) -> float:
        """The largest size of a coordinate."""

    @abstractmethod
    def corners(self, features: int) -> tuple[Floats, Floats]:
        """The lowest and highest value of each coordinate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicBall(Domain):
    """All points within `radius` of `center`; a row outside is drawn towards the centre."""

    radius: float
    center: Any = 0.0

    def __post_init__(self) -> None:
        set_fields(self, radius=positive("radius", self.radius), center=_coordinates("center", self.center))

    def _unit(self, rows: Floats) -> Floats:
        """(row - center) / radius, cut to length 1; divides by the largest coordinate first, so that nothing
        overflows.
        """
        centre = _spread("center", self.center, rows.shape[1])
        out = np.empty(rows.shape)
        for i in range(0, len(rows), BLOCK):
            # Halves cannot overflow where their difference would. Each pass stays within the processor's cache.
            moved = rows[i : i + BLOCK] / 2
            moved -= centre / 2
            largest = np.maximum(moved.max(axis=1, initial=0.0), -moved.min(axis=1, initial=0.0))
            largest[largest == 0] = 1.0
            moved /= largest[:, None]
            length = np.sqrt(np.einsum("ij,ij->i", moved, moved))
            with np.errstate(over="ignore"):
                longest = 2 * largest * (length / self.radius)
                # Where the row is far outside, largest / radius may be infinite: that branch is not taken.
                factor = np.where(longest > 1.0, 1 / np.maximum(length, 1e-300), largest * (2 / self.radius))
            np.multiply(moved, factor[:, None], out=out[i : i + BLOCK])
        return out

    def inside(self, rows: Floats) -> Floats:
        return np.asarray(_spread("center", self.center, rows.shape[1]) + self.radius * self._unit(rows))

    def scaled(self, rows: Floats) -> Floats:
        return self._unit(rows)

    def scaling(self, features: int) -> tuple[Floats, Floats]:
        return _spread("center", self.center, features), np.full(features, 1 / self.radius)

    def reach(self, features: int) -> float:
        return float(np.abs(_spread("center", self.center, features)).max(initial=0.0) + self.radius)

    def corners(self, features: int) -> tuple[Floats, Floats]:
        centre = _spread("center", self.center, features)
        return centre - self.radius, centre + self.radius


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicBox(Domain):
    """All points with every coordinate between `low` and `high`; an outside coordinate is moved to the nearer bound."""

    low: Any
    high: Any

    def __post_init__(self) -> None:
        low, high = _coordinates("low", self.low), _coordinates("high", self.high)
        if isinstance(low, tuple) and isinstance(high, tuple) and len(low) != len(high):
            raise InvalidParameter(parameter="high", value=self.high, must="have as many numbers as low")
        below, above = np.asarray(low), np.asarray(high)
        if not bool((below < above).all()) or not bool(np.isfinite(above - below).all()):
            raise InvalidParameter(parameter="low", value=self.low, must="be below high in every coordinate")
        set_fields(self, low=low, high=high)

    def inside(self, rows: Floats) -> Floats:
        low, high = self.corners(rows.shape[1])
        return np.asarray(np.clip(rows, low, high))

    def scaled(self, rows: Floats) -> Floats:
        low, high = self.corners(rows.shape[1])
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        return np.asarray((self.inside(rows) - middle) / (half * math.sqrt(rows.shape[1])))

    def scaling(self, features: int) -> tuple[Floats, Floats]:
        low, high = self.corners(features)
        return low / 2 + high / 2, 1 / ((high / 2 - low / 2) * math.sqrt(features))

    def reach(self, features: int) -> float:
        low, high = self.corners(features)
        return float(max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0)))

    def corners(self, features: int) -> tuple[Floats, Floats]:
        return _spread("low", self.low, features), _spread("high", self.high, features)


UNIT: float = 2.0**-53
LATTICE_FEATURES = 6
MOST_FEATURES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureMap(ABC):
    """phi with |phi(x)| <= radius for every row, and K(x, y) = phi(x) . phi(y).

    `intercept` appends a constant feature of that size, penalised like every other weight, as the theorem requires.
    """

    features: int
    domain: Domain
    intercept: float = 0.0

    def __post_init__(self) -> None:
        set_fields(
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
        """The largest error of the floats of `of` against the exact phi(x), in Euclidean length."""

    @abstractmethod
    def _of(self, rows: Floats) -> Floats: ...

    def of(self, rows: Floats) -> Floats:
        """phi of each row, in floats; rows are first put into the domain."""
        inner = self._of(rows)
        if not self.intercept:
            return inner
        return np.hstack([inner, np.full((rows.shape[0], 1), self.intercept)])

    def to_dict(self) -> dict[str, Any]:
        """The map in plain values, for a certificate."""
        return {"map": type(self).__name__, "dimension": self.dimension, "radius": self.radius}

    words = formerly("words")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFeatures(FeatureMap):
    """The row itself, scaled about the domain's centre into the unit ball: linear models. K(x, y) = x . y."""

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

    def linear(self, weights: Floats) -> tuple[Floats, Floats]:
        """A and b with weights . phi(x) = A x + b for every x in the domain; one row a head.

        phi(x) = (x - centre) * scale, and the constant feature if the map has one.
        """
        centre, scale = self.domain.scaling(self.features)
        slopes = weights[:, : self.features] * scale
        constant = weights[:, self.features] * self.intercept if self.intercept else 0.0
        return slopes, np.asarray(constant - slopes @ centre)


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
        set_fields(
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
