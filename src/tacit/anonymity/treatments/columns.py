"""Columns of Arrow tables as numbers and as codes, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import UnknownColumn, WrongType
from tacit.exact.arrays import Floats

__all__ = ["codes", "finite", "is_number", "known", "matrix", "numbers", "replaced"]


def known(table: Any, columns: Sequence[str]) -> tuple[str, ...]:
    """These columns, each of which the table has."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    for name in names:
        if name not in table.column_names:
            raise UnknownColumn(column=str(name), known=table.column_names, where="the table")
    return names


def is_number(table: Any, column: str) -> bool:
    """Is the column stored as numbers that a float holds, or is every text of it one?"""
    import pyarrow as pa

    kind = table.column(column).type
    try:
        found = numbers(table, column)
    except WrongType:
        return False
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return not text or bool(np.isfinite(found).any())


def numbers(table: Any, column: str) -> Floats:
    """A column as floats, NaN where it is missing."""
    import pyarrow as pa

    known(table, [column])
    stored = table.column(column)
    kind = stored.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (plain or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise WrongType(column=column, found=f"stored as {kind}", wanted="a column of numbers")
    failed = False
    try:
        found = np.asarray(stored.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        failed = True
    if failed:
        # Outside the handler: Arrow's words hold the value.
        found_words = "with whole numbers beyond 2^53" if plain else "text that is no number"
        raise WrongType(column=column, found=found_words, wanted="a column of numbers")
    return found


def finite(table: Any, column: str) -> Floats:
    """A column as floats, NaN where it is missing; it has a number, and none is infinite."""
    found = numbers(table, column)
    if np.isinf(found).any() or np.isnan(found).all():
        raise WrongType(
            column=column, found="with infinite values, or without any", wanted="finite numbers",
            hint="top-code it, or leave it out",
        )  # fmt: skip
    return found


def matrix(table: Any, columns: Sequence[str]) -> Floats:
    """Several columns as floats; none may have missing values."""
    made = np.stack([numbers(table, name) for name in known(table, columns)], axis=1)
    for i, name in enumerate(columns):
        if not np.isfinite(made[:, i]).all():
            raise WrongType(
                column=name, found="with missing or infinite values", wanted="a number in every row",
                hint="remove these rows, or fill them in, before this treatment",
            )  # fmt: skip
    return made


def replaced(table: Any, columns: dict[str, Any]) -> Any:
    """The table with some columns replaced: by an Arrow array, or by floats (NaN is missing).

    A column of whole numbers whose new values are whole too keeps its type, so that a hierarchy of 30, 31, ... has a
    place for them; texts of whole numbers become whole numbers.
    """
    import pyarrow as pa

    for name, values in columns.items():
        at = table.column_names.index(name)
        if isinstance(values, np.ndarray):
            missing = np.isnan(values)
            kept = values[~missing]
            kind = _whole_type(table.column(name))
            if kind is not None and (np.abs(kept) < 2.0**53).all() and (kept == np.rint(kept)).all():
                made = pa.array(np.where(missing, 0.0, values).astype(np.int64), mask=missing)
                values = made.cast(kind) if _fits(kept, kind) else made
            else:
                values = pa.array(values, mask=missing)
        table = table.set_column(at, name, values)
    return table


def _whole_type(column: Any) -> Any:
    """The type of a column of whole numbers; 64 bits for texts of them; None for all others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type):
        return column.type
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if text and pc.all(pc.match_substring_regex(column, r"^[+-]?[0-9]+$")).as_py():
        return pa.int64()
    return None


def _fits(values: Floats, kind: Any) -> bool:
    """Does the type hold all of these?"""
    info = np.iinfo(kind.to_pandas_dtype())
    return bool(((values >= info.min) & (values <= info.max)).all())


def codes(table: Any, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """For each row a number that tells the combinations of values in these columns apart, missing being a value."""
    import pyarrow as pa

    key = np.zeros(table.num_rows, dtype=np.int64)
    for name in known(table, columns):
        coded = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        here = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        key = np.unique(key * (int(here.max(initial=0)) + 1) + here, return_inverse=True)[1].astype(np.int64)
    return key
