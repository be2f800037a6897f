"""Rows as floats, value by value: what is no number counts as missing, and no row decides about an error."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.functions.boxes import Box

__all__ = ["OUTSIDE", "as_rows", "cells_of"]

OUTSIDE = ("edge", "absent")
"""What a row outside of the box counts as: moved to the nearest edge, or not there."""


def _number(value: Any) -> float:
    try:
        return float(value)
    except Exception:  # whatever a value does when it is asked for its number: it has none
        return np.nan


def _row(value: Any, dimension: int) -> list[float]:
    numbers: list[float] = []
    if not isinstance(value, str | bytes | dict):
        try:
            numbers = [_number(v) for v in islice(value, dimension + 1)]
        except Exception:  # a row that is no list of values is absent, however it says so
            numbers = []
    return numbers if len(numbers) == dimension else [np.nan] * dimension


def as_rows(values: Any, dimension: int) -> Floats:
    """The rows as an array (n, d) of floats, NaN where there is no number. Never to be shown.

    Refused by kind and shape of the whole, which no row decides: complex numbers, dates, another number of columns.
    """
    if isinstance(values, np.ma.MaskedArray):
        array = np.asarray(values.data)
        array = array if array.dtype.kind in "fiubcmMV" else array.astype(object)
        values = np.where(np.ma.getmaskarray(values), np.nan, array)
    if hasattr(values, "to_numpy"):
        array = np.asarray(values.to_numpy())
    elif hasattr(values, "__array__"):
        array = np.asarray(values)
    else:
        array = _listed(values, dimension)
    if array.dtype.kind in "cmMV":
        raise InvalidParameter(parameter="rows", value=f"array of {array.dtype}", must="hold numbers")
    if array.ndim == 1 and dimension == 1:
        array = array.reshape(-1, 1)
    elif array.ndim == 1 and array.dtype == object:
        array = np.array([_row(v, dimension) for v in array], dtype=np.float64).reshape(-1, dimension)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InvalidParameter(
            parameter="rows", value=f"an array of {array.ndim} dimensions", must=f"have {dimension} columns"
        )
    if array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(array, dtype=np.float64)
    numbers = np.array([_number(v) for v in array.ravel()], dtype=np.float64)
    return np.ascontiguousarray(numbers.reshape(array.shape))


def _listed(values: Any, dimension: int) -> npt.NDArray[Any]:
    """A plain list: each member becomes one row, whatever it holds."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InvalidParameter(
            parameter="rows", value=type(values).__name__, must="be an array or a list of rows"
        )
    given = list(values)
    if dimension == 1:
        # A row of one number may come as a list of one.
        flat = [v[0] if isinstance(v, list | tuple) and len(v) == 1 else v for v in given]
        return np.array([_number(v) for v in flat], dtype=np.float64)
    return np.array([_row(v, dimension) for v in given], dtype=np.float64).reshape(-1, dimension)


def cells_of(
    rows: Floats, box: Box, cells: tuple[int, ...], outside: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Which lattice cells are occupied, as an array (k, d), and by how many rows: all that is kept of the rows."""
    low, high, count = np.array(box.lows), np.array(box.highs), np.array(cells)
    present = ~np.isnan(rows).any(axis=1)
    if outside == "absent":
        with np.errstate(invalid="ignore"):
            present &= ((rows >= low) & (rows <= high)).all(axis=1)
    inside = np.clip(rows[present], low, high)
    # Halves cannot overflow where differences would.
    share = (inside / 2 - low / 2) / (high / 2 - low / 2)
    at = np.minimum((share * count).astype(np.int64), count - 1)
    flat = np.ravel_multi_index(tuple(at.T), cells) if at.size else np.empty(0, dtype=np.int64)
    if np.prod([float(c) for c in cells]) <= 1 << 20:
        counts = np.bincount(flat, minlength=int(np.prod(cells)))
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(flat, return_counts=True)
    where = np.stack(np.unravel_index(found, cells), axis=1).astype(np.int64)
    return where.reshape(-1, len(cells)), counts.astype(np.int64)
