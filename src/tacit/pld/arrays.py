"""Arrays of floats, and the unit round-off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNIT", "Column", "FloatArray", "column"]

FloatArray = NDArray[np.float64]
UNIT = 2.0**-53
Column: TypeAlias = "float | FloatArray"
"""A parameter: one number, or one for each pair, as a column."""


def column(values: Sequence[float]) -> FloatArray:
    """One number a row."""
    return np.array(values, dtype=np.float64)[:, None]
