"""Boxes: the public domain on which a function is released, and points in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import members, unmasked
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import exact_parameter

MOST_DIMENSIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The product of the intervals [low_i, high_i]: public, declared, never read from data."""

    low: Sequence[float] | float
    high: Sequence[float] | float

    def __post_init__(self) -> None:
        low, high = _ends("low", self.low), _ends("high", self.high)
        if len(low) != len(high):
            raise InvalidParameter(parameter="high", value=len(high), must=f"have {len(low)} numbers, as low")
        if not all(a < b for a, b in zip(low, high, strict=True)):
            raise InvalidParameter(parameter="high", value=high, must="be above low in every coordinate")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @classmethod
    def unit(cls, dimension: int = 1) -> Box:
        """[0, 1]^d."""
        return cls(low=(0.0,) * dimension, high=(1.0,) * dimension)

    @property
    def lows(self) -> tuple[float, ...]:
        """The lower ends."""
        assert isinstance(self.low, tuple)
        return self.low

    @property
    def highs(self) -> tuple[float, ...]:
        """The upper ends."""
        assert isinstance(self.high, tuple)
        return self.high

    @property
    def dimension(self) -> int:
        """d."""
        return len(self.lows)

    @property
    def sides(self) -> Floats:
        """high - low."""
        return np.asarray(np.array(self.highs) - np.array(self.lows), dtype=np.float64)

    @property
    def middle(self) -> Floats:
        """The centre, as floats."""
        return np.asarray(np.array(self.lows) + self.sides / 2, dtype=np.float64)

    def inside(self, points: npt.ArrayLike) -> Floats:
        """Questions as an array (m, d) of floats; those outside of the box are refused.

        Raises for points outside; questions are public, so that the refusal reveals nothing about the data.
        """
        array = as_points(points, self.dimension)
        if not bool(((array >= np.array(self.lows)) & (array <= np.array(self.highs))).all()):
            raise InvalidParameter(
                parameter="points",
                value="a point outside of the box",
                must="lie in the declared domain",
                hint=f"it is {list(zip(self.lows, self.highs, strict=True))}; the function is not released beyond",
            )
        return array

    def grid(self, count: int) -> Floats:
        """`count` equally spaced points along each side, ends included: an array (count^d, d)."""
        axes = [np.linspace(a, b, count) for a, b in zip(self.lows, self.highs, strict=True)]
        return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


def _ends(name: str, given: Sequence[float] | float) -> tuple[float, ...]:
    values = members(name, given) if np.ndim(given) else (given,)
    if not 1 <= len(values) <= MOST_DIMENSIONS:
        raise InvalidParameter(
            parameter=name, value=f"{len(values)} numbers", must=f"have 1 to {MOST_DIMENSIONS} of them"
        )
    return tuple(float(exact_parameter(name, v, positive=False)) for v in values)


def as_points(points: npt.ArrayLike, dimension: int) -> Floats:
    """Points as an array (m, d) of finite floats; for d = 1 a plain list of numbers will do.

    An error about a point does not show it: it may be a person's.
    """
    array = unmasked(points)
    if array.dtype.kind not in "iuf":
        raise InvalidParameter(parameter="points", value=f"array of {array.dtype}", must="hold numbers")
    array = np.ascontiguousarray(array, dtype=np.float64)
    if array.ndim <= 1 and (dimension == 1 or array.size == dimension):
        array = array.reshape(-1, dimension)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InvalidParameter(
            parameter="points", value=f"an array of shape {array.shape}", must=f"have {dimension} columns"
        )
    if not bool(np.isfinite(array).all()):
        raise InvalidParameter(parameter="points", value="a coordinate that is not finite", must="be finite")
    return array
