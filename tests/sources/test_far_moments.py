"""Moments that no day holds are missing, alone, in whatever unit a table of the engine's own stores them."""

from __future__ import annotations

import ibis
import pyarrow as pa
import pytest

from tacit.guarantees import People, Unit, people, rows
from tacit.sources import category, date, open_table
from tacit.statistics import count, mean, read

FAR = (-(1 << 63), -(1 << 63) + 1, -(1 << 62), 1 << 62, (1 << 63) - 1)
KINDS = {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}
SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@pytest.mark.parametrize("unit", [rows(), people("who", at_most=2)], ids=["rows", "people"])
@pytest.mark.parametrize("stored", KINDS)
def test_a_far_moment_stops_nothing(stored: str, unit: Unit) -> None:
    """The engine looks at the least and the largest moment before any row: casts fail there that are total on rows."""
    day = 18_263 * 86_400 * SECOND[stored]
    moments = [day] * 6 + list(FAR)
    table = pa.table(
        {
            "who": [str(i) for i in range(len(moments))],
            "ward": ["a"] * len(moments),
            "day": pa.array(moments, pa.int64()).view(pa.timestamp(stored)),
        }
    )
    connection = ibis.duckdb.connect()
    connection.con.register("given", table)
    connection.con.execute(
        f"CREATE TABLE t AS SELECT who, ward, CAST(day AS {KINDS[stored]}) AS day FROM given"
    )
    schema = {"ward": category(["a", "b"]), "day": date("2020-01-01", "2020-01-10", outside="missing")}
    with open_table(connection.table("t"), schema=schema, unit=unit) as opened:
        asked = [
            s.on(opened.schema, unit) for s in (count(by="ward", where="day = '2020-01-02'"), mean("day"))
        ]
        found = read(opened, asked, key=b"k" * 32)
    assert found[0]["count"].tolist() == [6, 0]
    assert int(found[1]["above"]) == 6
    assert isinstance(unit, People) == (opened.person is not None)
