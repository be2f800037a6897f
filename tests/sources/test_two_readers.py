"""A Parquet file has two readers, and one row decides which of them is used: both must see the same other rows."""

from __future__ import annotations

import datetime
import struct
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.guarantees import people, rows
from tacit.sources.opening import parquet
from tacit.sources.schema import category, date, integer, number
from tacit.sources.tables import open_table

NOON = datetime.datetime(2020, 1, 1, 12)
LAST = datetime.date(9999, 12, 31)
JULIAN = 2_440_588
"""The Julian day of 1970-01-01."""


def texts(count: int, odd: bool) -> pa.Array:
    """Text, of which the last value is no UTF-8: DuckDB's reader stops there."""
    values = [b"x"] * (count - 1) + [b"\xff" if odd else b"x"]
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    )


def written(path, array, *, odd, **options):
    pq.write_table(pa.table({"v": array, "s": texts(len(array), odd)}), path, compression="NONE", **options)
    return path


def read(path, column=None, engine=None):
    """The other column's values, as the engine has them."""
    unit = people("v", at_most=1) if column is None else rows()
    schema = {"s": category(["x"])} | ({} if column is None else {"v": column})
    with open_table(str(path), schema=schema, unit=unit, engine=engine) as table:
        return table.read(
            lambda: [v for b in table.dialect.batches(table.relation)() for v in b.column("v").to_pylist()]
        )


def moments_of_96_bits(path, odd):
    """2020-01-01 at noon, and the last day of the year 9999, which nanoseconds do not hold."""
    written(
        path, pa.array([NOON] * 3, pa.timestamp("ns")), odd=odd, use_dictionary=False, write_statistics=False,
        use_deprecated_int96_timestamps=True,
    )  # fmt: skip
    day = (NOON.date() - datetime.date(1970, 1, 1)).days
    noon = 43_200 * 10**9
    found, far = (
        struct.pack("<qi", noon, JULIAN + d) for d in (day, (LAST - datetime.date(1970, 1, 1)).days)
    )
    data = path.read_bytes()
    assert data.count(found) == 3
    path.write_bytes(data.replace(found, far, 1))
    return path


def words_of_an_enumeration(path, odd):
    """Text that the footer calls an enumeration, as writers of Avro do."""
    written(path, pa.array(["é", "b", "é"]), odd=odd, store_schema=False)
    data = path.read_bytes()
    plain, named = b"\x18\x01v\x25\x00\x4c\x1c", b"\x18\x01v\x25\x08\x4c\x4c"
    assert data.count(plain) == 1
    path.write_bytes(data.replace(plain, named))
    return path


def made(array):
    return lambda path, odd: written(path, array, odd=odd)


IDS = pa.array([uuid.UUID(int=k).bytes for k in (1, 2**127, 2**128 - 1)], pa.binary(16))
CASES = {
    "int96": (
        moments_of_96_bits, date("1900-01-01", "9999-12-31"), [datetime.datetime(9999, 12, 31, 12), NOON, NOON],
    ),
    "enum": (words_of_an_enumeration, category(["é", "b"]), ["é", "b", "é"]),
    "decimal of 60 digits": (
        made(pa.array([Decimal("1.5"), None, Decimal("-2.25")], pa.decimal256(60, 4))), number(-10, 10),
        [1.5, None, -2.25],
    ),
    "uint32 of old": (made(pa.array([1, None, 2**32 - 1], pa.uint32())), integer(0, 10), [1, None, 2**32 - 1]),
    "uuid": (
        made(pa.ExtensionArray.from_storage(pa.uuid(), IDS)), None, [str(uuid.UUID(bytes=v.as_py())) for v in IDS],
    ),
    "duration": (made(pa.array([1, None, 3], pa.duration("us"))), integer(0, 10), [1, None, 3]),
    "nothing": (made(pa.nulls(3)), integer(0, 10), [None] * 3),
}  # fmt: skip


@pytest.mark.parametrize("odd", [False, True], ids=["plain", "odd"])
@pytest.mark.parametrize("case", CASES)
def test_one_odd_row_changes_no_other_value(tmp_path, case, odd):
    make, column, wanted = CASES[case]
    assert sorted(map(str, read(make(tmp_path / "t.parquet", odd), column))) == sorted(map(str, wanted))


@pytest.mark.parametrize("odd", [False, True], ids=["plain", "odd"])
def test_a_type_that_the_readers_see_differently_is_read_by_one_of_them(tmp_path, monkeypatch, odd):
    """Whatever they are called: here Arrow has words for what DuckDB sees as numbers."""
    plain = parquet.plain_type
    monkeypatch.setattr(
        parquet, "plain_type", lambda kind: pa.string() if kind == pa.int64() else plain(kind)
    )
    path = written(tmp_path / "t.parquet", pa.array([1, 2, 3], pa.int64()), odd=odd)
    assert read(path, category(["1", "2"])) == ["1", "2", "3"]


def test_a_file_that_arrow_reads_from_the_start_is_read_again_when_it_changes(tmp_path):
    path = written(tmp_path / "t.parquet", pa.array([1, 2], pa.decimal256(60, 0)), odd=False)
    with open_table(str(path), schema={"v": integer(0, 10)}, unit=rows()) as table:
        for values in ([1, 2], [3, 4, 5]):
            written(path, pa.array(values, pa.decimal256(60, 0)), odd=False)
            found = table.read(lambda: [b.column("v") for b in table.dialect.batches(table.relation)()])
            assert sorted(v for c in found for v in c.to_pylist()) == values
