"""Arrow columns made fit for an engine, by rules that no value can break.

Which type a column gets is decided by its type alone. A value that the type cannot hold (bytes that are not UTF-8, a
moment out of range, a decimal with too many digits, a place outside of a dictionary) becomes missing, alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["careful", "careful_table", "plain_type"]

PIECE = 1 << 16
PER_SECOND = {"s": 1_000_000, "ms": 1_000}
DAY = 86_400_000


def plain_type(kind: Any) -> Any:
    """The type in which an engine gets values of this one."""
    import pyarrow as pa

    is_ = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if is_.is_dictionary(kind) or is_.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if is_.is_null(kind):
        # A column without any value has no type; as text it can be declared as anything.
        return pa.string()
    if is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.large_string()
    if is_.is_binary_view(kind):
        return pa.large_binary()
    if is_.is_float16(kind):
        return pa.float32()
    if is_.is_timestamp(kind) and kind.unit in PER_SECOND:
        return pa.timestamp("us", kind.tz)
    if is_.is_date64(kind):
        return pa.date32()
    if is_.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else pa.float64()
    return kind


def careful_table(table: Any) -> Any:
    """All columns of an Arrow table."""
    import pyarrow as pa

    return pa.table({name: careful(table.column(name)) for name in table.column_names})


def careful(column: Any) -> Any:
    """A column, whole or in chunks, in its plain type."""
    import pyarrow as pa

    target = plain_type(column.type)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    pieces = [_fit(chunk.slice(at, PIECE), target) for chunk in chunks for at in range(0, len(chunk), PIECE)]
    return pa.chunked_array(pieces, type=target)


def _fit(array: Any, target: Any) -> Any:
    import pyarrow as pa

    array.validate()
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _fit(array.storage, target)
    if pa.types.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        return _fit(pc.run_end_decode(array), target)
    if pa.types.is_dictionary(kind):
        return _looked_up(array, target)
    try:
        made = _converted(array, target)
        made.validate(full=True)
        return made
    except (pa.ArrowInvalid, OverflowError):
        pass
    return _one_by_one(array, target)


def _looked_up(array: Any, target: Any) -> Any:
    """The values of a dictionary, which may be of any type; a place that it does not have is missing."""
    import numpy as np
    import pyarrow as pa

    values = _fit(array.dictionary, target)
    good = np.asarray(array.indices.is_valid())
    at = np.asarray(array.indices.fill_null(0)).astype(np.uint64)
    good &= at < len(values)
    return values.take(pa.array(np.where(good, at, 0).astype(np.int64), mask=~good))


def _converted(array: Any, target: Any) -> Any:
    import pyarrow as pa

    kind = array.type
    if kind == target:
        return array
    if pa.types.is_timestamp(kind):
        factor = PER_SECOND[kind.unit]
        return _scaled(array, lambda v: v * factor, ((1 << 63) - 1) // factor, pa.int64()).cast(target)
    if pa.types.is_date64(kind):
        return _scaled(array, lambda v: v // DAY, ((1 << 31) - 2) * DAY, pa.int32()).cast(target)
    return array.cast(target)


def _scaled(array: Any, scale: Callable[[Any], Any], most: int, target: Any) -> Any:
    """Whole numbers behind moments, in another unit; missing where that does not hold them."""
    import numpy as np
    import pyarrow as pa

    numbers = np.asarray(array.view(pa.int64()).fill_null(0))
    good = np.asarray(array.is_valid()) & (numbers <= most) & (numbers >= -most)
    made = scale(np.where(good, numbers, 0)).astype(target.to_pandas_dtype())
    return pa.array(made, type=target, mask=~good)


def _one_by_one(array: Any, target: Any) -> Any:
    """The slow way, for the few pieces in which something does not fit."""
    import pyarrow as pa

    text = pa.types.is_string(target) or pa.types.is_large_string(target)
    if text:
        views = pa.types.is_string_view(array.type)
        raw = array.cast(pa.binary_view() if views else pa.large_binary() if _large(array) else pa.binary())
        return pa.array([None if v is None else _text(v) for v in raw.to_pylist()], type=target)
    return pa.array([_value(array, i, target) for i in range(len(array))], type=target)


def _large(array: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_large_string(array.type))


def _text(value: bytes) -> str | None:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _value(array: Any, place: int, target: Any) -> Any:
    import pyarrow as pa

    try:
        made = pa.array([array[place].as_py()], type=target)
        made.validate(full=True)
        return made[0].as_py()
    except Exception:
        return None
