"""Vectors of integers that never wrap around, and whose type depends on the sums alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray

HALF = 1 << 62


def unmasked(values: Any, *, name: str = "values") -> npt.NDArray[Any]:
    """The values as an array; refuses masked values, since numpy would drop the mask and count the hidden numbers."""
    parts = values if isinstance(values, Sequence) and not isinstance(values, str | bytes) else ()
    if any(issubclass(kind, np.ma.MaskedArray) for kind in {type(values), *map(type, parts)}):
        raise InvalidParameter(
            parameter=name,
            value="a masked array",
            must="have no mask",
            hint="say what a masked entry counts as: values.filled(0)",
        )
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise InvalidParameter(
            parameter=name, value="rows of different lengths", must="be an array"
        ) from None


def real_array(values: npt.ArrayLike, *, name: str = "values") -> npt.NDArray[np.float64]:
    """Numbers as floats; text, flags and masked entries are refused."""
    array = unmasked(values, name=name)
    if array.size and (
        array.dtype.kind not in "iufO"
        or (array.dtype.kind == "O" and not all(type(v) in (int, float) for v in array.ravel()))
    ):
        raise InvalidParameter(parameter=name, value=f"array of {array.dtype}", must="hold numbers")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise InvalidParameter(
            parameter=name, value="a number beyond 10^308", must="hold numbers of ordinary size"
        ) from None


def integer_array(values: npt.ArrayLike, *, name: str = "values") -> AnyArray:
    """Integers of any length as an array: int64 if they fit, otherwise Python integers.

    Floats are refused, even whole ones: rounding to the grid is a decision that belongs to the caller.
    """
    array = unmasked(values, name=name)
    if array.size == 0:
        return np.empty(array.shape, dtype=np.int64)
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


def narrowed(values: AnyArray) -> AnyArray:
    """The same integers, as int64 if all of them fit. Only the released integers decide the type.

    Numbers on the way (the true values, the noise, cells that are dropped) must not choose the type of a release.
    """
    array = np.asarray(values)
    if array.dtype != object:
        return array.astype(np.int64, copy=False)
    fits = all(-(1 << 63) <= int(v) < 1 << 63 for v in array.ravel())
    return array.astype(np.int64) if fits else array


def add_exact(values: npt.ArrayLike, noise: AnyArray) -> AnyArray:
    """values + noise without overflow: int64 if every sum fits, otherwise Python integers.

    The sum; its type depends on the sums alone, so that it reveals no more than they do.
    """
    left, right = integer_array(values), integer_array(noise, name="noise")
    small = left.dtype != object and right.dtype != object
    if small and all(a.size == 0 or (a.max() < HALF and a.min() >= -HALF) for a in (left, right)):
        return np.asarray(left + right)
    return narrowed(np.asarray(left.astype(object) + right.astype(object), dtype=object))
