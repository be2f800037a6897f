"""Sums of integers that never wrap around."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.noise.exact import Integers

__all__ = ["add_exact", "integer_array"]

HALF = 1 << 62


def integer_array(values: npt.ArrayLike, *, name: str = "values") -> Integers:
    """Integers of any length as an array: int64 where they fit, otherwise Python integers.

    Floats are refused, even whole ones: rounding to the grid is a decision that belongs to the caller.
    """
    array: npt.NDArray[Any] = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        return array.astype(np.int64) if int(array.max()) < 1 << 63 else array.astype(object)
    if array.dtype.kind == "O" and all(type(v) is int for v in array.ravel()):
        return array
    raise InvalidParameter(
        parameter=name,
        value=f"array of {array.dtype}",
        must="hold integers",
        hint="put real numbers on a grid first and give the integer multiples",
    )


def add_exact(values: npt.ArrayLike, noise: Integers) -> Integers:
    """values + noise without overflow: int64 where every sum surely fits, otherwise Python integers."""
    left, right = integer_array(values), integer_array(noise, name="noise")
    small = left.dtype != object and right.dtype != object
    if small and all(a.size == 0 or (a.max() < HALF and a.min() >= -HALF) for a in (left, right)):
        return np.asarray(left + right)
    return np.asarray(left.astype(object) + right.astype(object))
