"""What is handed to an estimator, as floats: value by value, so that no odd row decides about the others.

Shape and kind of the table are the caller's and public. A value that is no number counts as missing, a row with a
missing value as absent, a label that was not declared as absent: nothing is raised that one row could cause.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats

__all__ = ["class_numbers", "float_column", "float_table", "object_column"]


def number_or_nan(value: Any) -> float:
    """The number, or NaN for anything that is none."""
    try:
        return float(value)
    except Exception:  # whatever one value raises, it is no number
        return np.nan


def _floats(array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    flat = [number_or_nan(v) for v in array.ravel()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def _array(values: Any) -> npt.NDArray[Any]:
    """NumPy's own array, without letting one text turn all numbers of a list into text."""
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if hasattr(values, "__array__") or hasattr(values, "dtype"):
        return np.asarray(values)
    return np.asarray(values, dtype=object)


def float_table(values: Any) -> Any:
    """A two-dimensional array of floats; what is not a table of numbers is left for scikit-learn to name.

    Refused by its kind, which no row decides: sparse matrices and arrays of complex numbers.
    """
    if hasattr(values, "tocsr"):
        return values
    array = _array(values)
    if array.dtype.kind == "c" or array.ndim != 2:
        return array
    return _floats(array)


def float_column(values: Any, *, low: float, high: float) -> Floats:
    """Targets, moved into [low, high] and scaled to [-1, 1]; NaN where there is none."""
    column = _floats(_array(values))
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    return np.asarray((np.clip(column, low, high) - middle) / half)


def object_column(values: Any) -> npt.NDArray[Any]:
    """Labels as they are, one by one."""
    array = _array(values)
    if array.dtype.kind == "f":
        return array
    return array if array.dtype.kind in "iubUS" else array.astype(object)


def class_numbers(values: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The place of each label among the classes, and -1 for labels that are not declared."""
    column = object_column(values)
    out = np.full(column.shape, -1, dtype=np.int64)
    if column.dtype.kind in "fiubUS" and classes.dtype.kind in "fiubUS":
        same_kind = (column.dtype.kind in "US") == (classes.dtype.kind in "US")
        for place, name in enumerate(classes if same_kind else []):
            out[column == name] = place
        return out
    known = {name: place for place, name in enumerate(classes.tolist())}
    for i, value in enumerate(column.ravel()):
        try:
            out.ravel()[i] = known.get(value, -1)
        except Exception:  # what cannot be looked up is no class
            continue
    return out


def declared_classes(classes: Any) -> npt.NDArray[Any]:
    """The declared classes, sorted; there must be at least two different ones of one kind."""
    array = _array(list(classes) if isinstance(classes, tuple | list | range) else classes)
    names = np.asarray(array.tolist())
    if (
        names.ndim != 1
        or names.dtype.kind not in "iubUf"
        or len(np.unique(names)) != array.size
        or array.size < 2
    ):
        raise InvalidParameter(
            parameter="classes", value=classes, must="be at least two different numbers, or two different texts",
            hint="classes are declared, never read from the labels",
        )  # fmt: skip
    return np.unique(names)
