"""Files on Spark: the same rules as on DuckDB, and no row that stops them."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tacit.statistics as ask
from support.spark import frame, needs_spark
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, date, files, integer, open_table

KEY = b"an ordinary secret of the tests."


def read(data, schema, statistic, unit=None, engine="spark"):
    unit, schema = unit or rows(), Schema(schema)
    with open_table(data, schema=schema, unit=unit, engine=engine) as table:
        return np.ravel(
            next(iter(ask.read(table, [statistic.on(schema, unit)], key=KEY)[0].values()))
        ).tolist()


def bytes_as_text(values):
    ends = np.cumsum([0, *(len(v) for v in values)])
    buffers = [None, pa.py_buffer(struct.pack(f"{len(ends)}i", *ends)), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


@needs_spark
def test_odd_rows_and_odd_names(tmp_path):
    path = tmp_path / "a[1].parquet"
    text = bytes_as_text([b"a", b"\xff\xfe", b"b", b"a"])
    pq.write_table(pa.table({"id": text, "s": text}), path)
    for unit in (rows(), people("id", at_most=3)):
        assert read(path, {"s": category(["a", "b"])}, ask.count(by="s"), unit) == [2, 1]
    assert read(path, {"s": category(["a", "b"])}, ask.count()) == [4]
    noon = 1_577_880_000_000
    moments = pa.array([noon, 2**62, noon], pa.int64()).cast(pa.timestamp("ms"))
    pq.write_table(pa.table({"t": moments}), tmp_path / "t.parquet")
    schema = {"t": date("2020-01-01", "2020-01-31", outside="missing")}
    assert read(tmp_path / "t.parquet", schema, ask.count(where="t = '2020-01-01'")) == [2]
    lines = [b"name,x", b"Ann,1", b"Bob,2,3", b'"open,4', b"\xff,5", b"Bob,2"]
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines))
    schema = {"name": category(["Ann", "Bob"]), "x": integer(0, 9)}
    assert read(tmp_path / "t.csv", schema, ask.count(by="name")) == [1, 1]
    assert read(tmp_path / "t.csv", schema, ask.count()) == [5]
    assert read(tmp_path / "t.csv", schema, ask.sum("x")) == [8]


@needs_spark
def test_folders_tell_what_was_asked_by_name(tmp_path):
    for state, values in (("CA", [1, 2]), ("NY", [4])):
        (tmp_path / f"state={state}").mkdir()
        pq.write_table(pa.table({"x": values}), tmp_path / f"state={state}" / "t.parquet")
    both = files(tmp_path / "state=*" / "t.parquet", pattern=True, partitions=["state"])
    schema = {"state": category(["NY", "CA"]), "x": integer(0, 9)}
    assert read(both, schema, ask.sum("x", by="state")) == [4, 3]


@needs_spark
def test_rows_of_a_spark_table_are_bounded_anew_for_each_release():
    data = frame(pa.table({"id": [1, 1, 2], "x": [1, 1, 1]}))
    unit, schema = people("id", at_most=1), Schema({"x": integer(0, 9)})
    with open_table(data, schema=schema, unit=unit) as table:
        for _ in range(2):
            assert int(ask.read(table, [ask.count().on(schema, unit)], key=KEY)[0]["count"]) == 2
            assert not table.bounded
        assert len(table.conditions) == 1
