"""Types of arrays, and the unit round-off of float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
AnyArray = npt.NDArray[Any]
"""Also exact integers of Python, in an array of objects."""

UNIT = 2.0**-53
Column: TypeAlias = "float | Floats"
"""A parameter: one number, or one for each pair, as a column."""


def column(values: Sequence[float]) -> Floats:
    """One number a row."""
    return np.array(values, dtype=np.float64)[:, None]
