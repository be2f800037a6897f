"""Public domains: where rows are put before a machine sees them, so that no row is longer than was declared."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, positive, settle

__all__ = ["Domain", "PublicBall", "PublicBox"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain(ABC):
    """A bounded set that everybody knows; rows outside of it are moved to its edge, whoever they belong to."""

    @abstractmethod
    def inside(self, rows: Floats) -> Floats:
        """The rows, those outside moved to the edge. Rows must be finite."""

    @abstractmethod
    def scaled(self, rows: Floats) -> Floats:
        """The rows inside, scaled about the centre so that none is longer than 1."""

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
        settle(self, radius=positive("radius", self.radius), center=_coordinates("center", self.center))

    def _unit(self, rows: Floats) -> Floats:
        """(row - center) / radius, cut to length 1; the largest coordinate is taken out first, so nothing overflows."""
        centre = _spread("center", self.center, rows.shape[1])
        # Halves cannot overflow where their difference would.
        moved = rows / 2 - centre / 2
        largest = np.abs(moved).max(axis=1, initial=0.0)
        largest[largest == 0] = 1.0
        direction = moved / largest[:, None]
        length = np.sqrt((direction**2).sum(axis=1))
        with np.errstate(over="ignore"):
            longest = 2 * largest * (length / self.radius)
        factor = np.where(longest > 1.0, 1 / np.maximum(length, 1e-300), largest * (2 / self.radius))
        # Where the row is far outside, largest / radius may be infinite: that branch is not taken.
        return np.asarray(direction * factor[:, None])

    def inside(self, rows: Floats) -> Floats:
        return np.asarray(_spread("center", self.center, rows.shape[1]) + self.radius * self._unit(rows))

    def scaled(self, rows: Floats) -> Floats:
        return self._unit(rows)

    def reach(self, features: int) -> float:
        return float(np.abs(_spread("center", self.center, features)).max(initial=0.0) + self.radius)

    def corners(self, features: int) -> tuple[Floats, Floats]:
        centre = _spread("center", self.center, features)
        return centre - self.radius, centre + self.radius


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicBox(Domain):
    """All points with every coordinate between `low` and `high`; a coordinate outside is moved to the nearer bound."""

    low: Any
    high: Any

    def __post_init__(self) -> None:
        low, high = _coordinates("low", self.low), _coordinates("high", self.high)
        if isinstance(low, tuple) and isinstance(high, tuple) and len(low) != len(high):
            raise InvalidParameter(parameter="high", value=self.high, must="have as many numbers as low")
        below, above = np.asarray(low), np.asarray(high)
        if not bool((below < above).all()) or not bool(np.isfinite(above - below).all()):
            raise InvalidParameter(parameter="low", value=self.low, must="be below high in every coordinate")
        settle(self, low=low, high=high)

    def inside(self, rows: Floats) -> Floats:
        low, high = self.corners(rows.shape[1])
        return np.asarray(np.clip(rows, low, high))

    def scaled(self, rows: Floats) -> Floats:
        low, high = self.corners(rows.shape[1])
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        return np.asarray((self.inside(rows) - middle) / (half * math.sqrt(rows.shape[1])))

    def reach(self, features: int) -> float:
        low, high = self.corners(features)
        return float(max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0)))

    def corners(self, features: int) -> tuple[Floats, Floats]:
        return _spread("low", self.low, features), _spread("high", self.high, features)
