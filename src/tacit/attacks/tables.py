"""Tables as an outsider holds them: columns by name, in classes of rows that agree; no row is visited in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import BadData, EmptyComposition, InvalidParameter, UnknownColumn

if TYPE_CHECKING:
    from tacit.exact.arrays import Integers


__all__ = ["Classes", "Coded", "Columns", "check_roles", "classes", "coded", "height"]

Columns = Mapping[str, Any]
"""A column is a list, a NumPy array or an Arrow column; anything that is read by its name will do."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """A column as numbers: `codes` point into `values`; a missing value has the code -1."""

    codes: Integers
    values: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes:
    """Rows that agree in some columns: the class of each row, and for each class its size and its values."""

    of_row: Integers
    sizes: Integers
    values: list[tuple[Any, ...]]


def height(table: Columns, names: Sequence[str]) -> int:
    """How many rows the named columns have; they must be there and agree."""
    known = list(table.column_names) if hasattr(table, "column_names") else list(table)
    lengths = set()
    for name in names:
        if name not in known:
            raise UnknownColumn(column=name, known=[str(k) for k in known], where="the table")
        lengths.add(len(table[name]))
    if len(lengths) > 1:
        raise BadData(source="the table", problem="has columns of different lengths")
    return lengths.pop() if lengths else 0


def check_roles(table: Columns, quasi: Sequence[str], sensitive: str | None = None) -> int:
    """Quasi-identifiers are named, different, and none of them is the sensitive column; the number of rows."""
    if isinstance(quasi, str) or not quasi:
        raise EmptyComposition(
            what="the list of quasi-identifiers", hint="name the columns that an outsider can know"
        )
    if len(set(quasi)) < len(quasi):
        raise InvalidParameter(parameter="quasi", value=list(quasi), must="name each column once")
    if sensitive is not None and sensitive in quasi:
        raise InvalidParameter(
            parameter="sensitive",
            value=sensitive,
            must="not be a quasi-identifier",
            hint="what an outsider knows already cannot be learned",
        )
    return height(table, [*quasi, *([sensitive] if sensitive else [])])


def coded(*columns: Any) -> list[Coded]:
    """Columns of the same thing, from one table or several, in one code."""
    import numpy as np
    import pyarrow as pa

    arrays = []
    for column in columns:
        if isinstance(column, pa.ChunkedArray):
            arrays.append(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
            continue
        try:
            arrays.append(pa.array(column, from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            arrays.append(pa.array([None if v is None else str(v) for v in column]))
    if any(pa.types.is_nested(a.type) for a in arrays):
        raise BadData(
            source="the table", problem="has lists or records where a plain value is needed",
            hint="make columns of their parts first",
        )  # fmt: skip
    if len({a.type for a in arrays}) > 1:
        arrays = [
            pa.array([None if v is None else str(v) for v in a.to_pylist()], pa.string()) for a in arrays
        ]
    joined = pa.chunked_array(arrays).combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = pa.concat_arrays(joined.chunks)
    if pa.types.is_null(joined.type):
        joined = joined.cast(pa.string())
    found = joined if pa.types.is_dictionary(joined.type) else joined.dictionary_encode()
    codes = np.asarray(found.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    values = found.dictionary.to_pylist()
    ends = np.cumsum([len(a) for a in arrays])[:-1]
    return [Coded(codes=part, values=values) for part in np.split(codes, ends)]


def classes(columns: Sequence[Coded]) -> Classes:
    """Rows that agree in all of the columns; missing values agree with each other."""
    import numpy as np

    combined = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        mixed = combined * (len(column.values) + 1) + (column.codes + 1)
        # Renumbered after each column, so that the products stay small.
        _, combined = np.unique(mixed, return_inverse=True)
    _, first, of_row, sizes = np.unique(combined, return_index=True, return_inverse=True, return_counts=True)
    values = [
        tuple(c.values[code] if (code := int(c.codes[row])) >= 0 else None for c in columns) for row in first
    ]
    return Classes(of_row=of_row.astype(np.int64), sizes=sizes.astype(np.int64), values=values)
