"""Keys that an engine gave, as places on the declared axes; and its integers, exactly.

No cast here can fail: keys are text, compared as they are, or integers of at most 64 bits with a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray
from tacit.sources.axes import Axis, Listed

__all__ = ["Lists", "integers", "positions", "texts", "words_of"]

Lists = dict[Listed, Any]
"""Declared lists as Arrow arrays, made once for a table; they are public, and stay when rows are let go."""


def positions(
    axis: Axis, column: Any, *, coded: bool, lists: Lists
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where on the axis each key lies, and whether it lies on it.

    Arrow makes a table of the whole list for every call: a long list is asked for many keys at once.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    size = axis.size or 0
    if isinstance(axis, Listed) and not coded:
        declared = words_of(axis, lists)
        column = pc.index_in(column.cast(declared.type), value_set=declared)
    good = np.asarray(column.is_valid())
    here = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
    inside = (here >= 0) & (here < size)
    return np.where(inside, here, 0), good & inside


def words_of(axis: Listed, lists: Lists) -> Any:
    """The declared list as an Arrow array, of text or of integers."""
    import pyarrow as pa

    if axis not in lists:
        kind: Any = pa.string() if isinstance(axis.values[0], str) else pa.int64()
        lists[axis] = pa.array(axis.values, type=kind)
    return lists[axis]


def integers(column: Any, *, wide: bool) -> AnyArray:
    """The engine's integers: Python's where the declared bounds may need them (`wide`), else of 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.fill_null(column, 0) if column.null_count else column
    if not wide:
        return np.asarray(column.cast(pa.int64()))
    out = np.empty(len(column), dtype=object)
    out[:] = [int(v) for v in column.to_pylist()]
    return out


def texts(column: Any) -> Any:
    """Unknown keys as Arrow text; null where there is none, or bytes that are no text. However long: 64-bit offsets."""
    import pyarrow as pa

    raw = column.cast(pa.large_binary())
    raw = raw.combine_chunks() if isinstance(raw, pa.ChunkedArray) else raw
    try:
        return raw.cast(pa.large_string())  # looks at every byte
    except pa.ArrowInvalid:
        return pa.array([_text(value) for value in raw.to_pylist()], type=pa.large_string())


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
