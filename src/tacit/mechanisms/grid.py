"""Grids of spacing 2^-k: where statistics live, so that noise can be exact integers.

Floats are never added to floats here. A real statistic is put on the grid record by record (`on_grid`, then
exact integer sums), or once at the end, and then the rounding is counted in the sensitivity (`rounded`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.integers import unmasked
from tacit.exact.rationals import Exact
from tacit.noise import grid_spacing

__all__ = ["Grid", "Released", "on_grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The multiples of a power of two; integers stand for integer * spacing."""

    spacing: Exact = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))

    def put(self, values: npt.ArrayLike) -> AnyArray:
        """The nearest grid points of real numbers, as integers; ties go to the even one."""
        return on_grid(values, spacing=self.spacing)

    def read(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """integer * spacing as floats, for people."""
        return np.asarray(values).astype(np.float64) * float(self.spacing)


def on_grid(values: npt.ArrayLike, *, spacing: Exact) -> AnyArray:
    """Round real numbers to the grid exactly: integers k with k * spacing nearest to each value.

    Ties go to even k. The difference to the value is at most spacing / 2 in each coordinate, so a record that
    is rounded moves a sum by at most spacing / 2 more than before, and a replaced one by at most spacing more. A unit
    of m records moves it by m times as much: `sensitivity.rounded(spacing=..., records=m)` adds m spacings. Values
    must be finite; clip them to declared bounds first.
    """
    step = grid_spacing(spacing)
    array = unmasked(values)
    if array.size == 0:
        return np.empty(array.shape, dtype=np.int64)
    if array.dtype.kind not in "iufO" or any(
        isinstance(v, bool) for v in array.ravel() if array.dtype == object
    ):
        raise InvalidParameter(
            parameter="values",
            value=f"array of {array.dtype}",
            must="hold numbers",
            hint="give ints or floats",
        )
    if array.dtype.kind == "f":
        _finite(array)
        # Division by a power of two is exact unless it leaves the float range, and rint is exact.
        scaled = array.astype(np.float64) / float(step) if _is_float(step) else np.full(array.shape, np.inf)
        small = np.abs(scaled) < 2.0**62
        normal = (np.abs(scaled) > 2.0**-900) | (array == 0)
        if bool((small & normal).all()):
            return np.rint(scaled).astype(np.int64)
    exact = [round(_fraction(v) / step) for v in array.ravel()]
    fits = all(-(1 << 63) <= k < 1 << 63 for k in exact)
    out = np.empty(len(exact), dtype=np.int64 if fits else object)
    out[:] = exact
    return out.reshape(array.shape)


def _is_float(step: Fraction) -> bool:
    return Fraction(1, 1 << 1000) <= step <= 1 << 1000


def _finite(array: npt.NDArray[Any]) -> None:
    if not bool(np.isfinite(array).all()):
        # The offending number is not shown: it may be a person's.
        raise InvalidParameter(
            parameter="values", value="a value that is not finite", must="be finite",
            hint="clip the values to declared bounds and decide what a missing value counts as, before the noise",
        )  # fmt: skip


def _fraction(value: Any) -> Fraction:
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, float | np.floating):
        _finite(np.asarray(float(value)))
        return Fraction(float(value))
    raise InvalidParameter(
        parameter="values", value=type(value).__name__, must="hold ints, floats or Fractions"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Noisy integers on a grid, and what their sampling cost.

    `publishable` is False for noise from a seeded source. `numerical_delta` bounds the total variation
    distance between the law of `values` and the ideal one; 0 means exact.
    """

    values: AnyArray
    spacing: Fraction
    publishable: bool
    numerical_delta: float = 0.0

    def to_floats(self) -> npt.NDArray[np.float64]:
        """values * spacing, for reading; post-processing."""
        return np.asarray(self.values).astype(np.float64) * float(self.spacing)
