"""Occupied cells only: one group-by over declared columns, which returns a mixed-radix key for each cell.

With axes of sizes s_1, ..., s_d the cell (k_1, ..., k_d) has the key (...(k_1 s_2 + k_2) s_3 + ...) s_d + k_d, an
integer below the product of the sizes. The engine computes the key of as many neighbouring columns as fit in 62 bits.
If there are more, or a list is too long for a CASE, several such numbers are returned and combined here, for
occupied cells alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.errors import MissingBounds
from tacit.exact.arrays import AnyArray
from tacit.mechanisms.sparse_keys import combine_codes, domain_size, key_integers, pack_keys
from tacit.sources.axes import Axis, Cut, Listed, OpenAxis
from tacit.sources.compiling import Reader

if TYPE_CHECKING:
    from tacit.sources.axes import Aggregate

# Keys that an engine gave, as places on the declared axes; and its integers, exactly.
#
# No cast here can fail: keys are text, compared as they are, or integers of at most 64 bits with a sign.

Lists = dict[Listed, Any]
"""Declared lists as Arrow arrays, made once for a table; they are public, and stay when rows are let go."""


def positions(
    axis: Axis, column: Any, *, coded: bool, lists: Lists
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The place of each key on the axis, and whether it has one.

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
    """Unknown keys as Arrow text; null for a missing one, or for bytes that are no text.
    However long: 64-bit offsets."""
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


LIMB_BITS = 62
MOST_BRANCHES = 128
TABLED = 1 << 16


def domain_of(axes: Sequence[Axis]) -> int:
    """The number of cells that the axes span: at most 2^200, all of them declared."""
    for axis in axes:
        if isinstance(axis, OpenAxis):
            raise MissingBounds(
                column=axis.column, hint="the keys of a sparse histogram are declared: category([...])"
            )
    return domain_size(math.prod(a.size or 1 for a in axes), "the product of the columns' keys")


def _in_engine(axis: Axis, reader: Reader) -> bool:
    listed = isinstance(axis, Listed) and axis.column not in reader.coded
    return not listed or (axis.size or 0) <= MOST_BRANCHES


def key_packs(axes: Sequence[Axis], reader: Reader) -> list[tuple[Axis, ...]]:
    """Neighbouring axes whose joint key the engine computes; a long list of words forms a group of its own."""
    packs: list[tuple[Axis, ...]] = []
    for axis in axes:
        joined = (*packs[-1], axis) if packs else (axis,)
        fits = math.prod(a.size or 1 for a in joined) < 1 << LIMB_BITS
        if packs and fits and all(_in_engine(a, reader) for a in joined):
            packs[-1] = joined
        else:
            packs.append((axis,))
    return packs


def _code(axis: Axis, reader: Reader) -> Any:
    """The row's place on the axis as a 64-bit integer; null if it has none."""
    import ibis

    key = reader.key(axis)
    if not isinstance(axis, Listed) or axis.column in reader.coded:
        return key.cast("int64")
    branches = [(key == v, i) for i, v in enumerate(axis.values)]
    return ibis.cases(*branches, else_=ibis.null("int64")).cast("int64")


def pack_key(pack: tuple[Axis, ...], reader: Reader) -> Any:
    """The joint key of a pack's axes, or the values of a long list as they are."""
    if not _in_engine(pack[0], reader):
        return reader.key(pack[0])
    key = _code(pack[0], reader)
    for axis in pack[1:]:
        key = key * (axis.size or 1) + _code(axis, reader)
    return key


class Occupied:
    """Gathers the engine's batches into occupied cells: keys and their integers, sorted, each key once."""

    def __init__(
        self,
        axes: Sequence[Axis],
        packs: Sequence[tuple[Axis, ...]],
        columns: Mapping[Aggregate, str],
        reader: Reader,
        lists: Lists,
    ) -> None:
        self.lists = lists
        self.domain = domain_of(axes)
        self.packs = list(packs)
        self.columns = dict(columns)
        self.reader = reader
        self.waiting: list[Any] = []
        self.rows = 0
        self.enough = max((pack[0].size or 0 for pack in packs if not _in_engine(pack[0], reader)), default=0)
        self.keys: list[AnyArray] = []
        self.values: dict[Aggregate, list[AnyArray]] = {a: [] for a in columns}

    def add(self, batch: Any) -> None:
        """Adds one batch. A long list is searched once for as many keys as its length, a public number."""
        self.waiting.append(batch)
        self.rows += batch.num_rows
        if self.rows >= self.enough:
            self._add_up()

    def _add_up(self) -> None:
        """Rows without a key are left out."""
        import pyarrow as pa

        if not self.waiting:
            return
        table = pa.Table.from_batches(self.waiting)
        self.waiting, self.rows = [], 0
        valid = np.ones(table.num_rows, dtype=bool)
        codes: list[tuple[AnyArray, int]] = []
        for i, pack in enumerate(self.packs):
            column, size = table.column(f"k{i}"), math.prod(a.size or 1 for a in pack)
            if _in_engine(pack[0], self.reader):
                here, good = _numbers(column, size)
            else:
                here, good = positions(pack[0], column, coded=False, lists=self.lists)
            valid &= good
            codes.append((here, size))
        self.keys.append(combine_codes([(c[valid], size) for c, size in codes], self.domain))
        for aggregate, name in self.columns.items():
            self.values[aggregate].append(integers(table.column(name), wide=False)[valid])

    def cells(self, wanted: Sequence[Aggregate]) -> tuple[AnyArray, dict[Aggregate, AnyArray]]:
        """The cells occupied for one request: equal keys are one cell. A cell is omitted if none of the
        requested aggregates counts anything in it, even if another request found rows there.
        """
        self._add_up()
        keys = np.concatenate(self.keys) if self.keys else pack_keys([], self.domain)
        values = {
            a: np.concatenate(self.values[a]) if self.values[a] else np.empty(0, dtype=np.int64)
            for a in wanted
        }
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if keys.size else order[:0]
        summed = {a: np.add.reduceat(v[order], starts) if keys.size else v for a, v in values.items()}
        there = np.zeros(starts.size, dtype=bool)
        for v in summed.values():
            there |= np.asarray(v != 0, dtype=bool)
        return pack_keys(keys[starts][there], self.domain), {a: v[there] for a, v in summed.items()}


def _numbers(column: Any, size: int) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    good = np.asarray(column.is_valid())
    here = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
    inside = (here >= 0) & (here < size)
    return np.where(inside, here, 0), good & inside


def encode(codes: Sequence[npt.ArrayLike], axes: Sequence[Axis]) -> AnyArray:
    """The keys of cells given by their place on each axis."""
    pairs = [(np.asarray(c), axis.size or 1) for c, axis in zip(codes, axes, strict=True)]
    return combine_codes(pairs, domain_of(axes))


def codes_of(keys: AnyArray, axes: Sequence[Axis]) -> list[AnyArray]:
    """The place on each axis of each key: mixed-radix digits, first axis first."""
    return list(_digits(keys, axes))[::-1]


def _digits(keys: AnyArray, axes: Sequence[Axis]) -> Iterator[AnyArray]:
    rest = key_integers(keys)
    for axis in reversed(axes):
        size: Any = axis.size or 1
        size = size if rest.dtype == object else np.uint64(size)
        yield np.asarray(rest % size).astype(np.int64)
        rest = np.asarray(rest // size)


def labels_of(keys: AnyArray, axes: Sequence[Axis]) -> dict[str, AnyArray]:
    """The meaning of the keys, column by column, in the words of the declaration."""
    return {
        axis.column: labels_at(axis, codes) for axis, codes in zip(axes, codes_of(keys, axes), strict=True)
    }


def labels_at(axis: Axis, codes: AnyArray) -> AnyArray:
    """The meaning of places on an axis. Only these are made, since all keys of a wide axis would fill the memory."""
    out = np.empty(codes.size, dtype=object)
    if isinstance(axis, Cut) and axis.count == axis.levels and axis.levels > TABLED:
        out[:] = [axis.values.label(axis.values.lowest + int(k)) for k in codes]
        return out
    table = axis.labels
    out[:] = [table[int(k)] for k in codes]
    return out
