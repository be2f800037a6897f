"""Text is compared by its bytes: no collation of a column, or of a session, makes two texts one."""

from __future__ import annotations

import pytest

import tacit.statistics as ask
from support.spark import needs_spark, session
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, open_table

KEY = b"an ordinary secret of the tests."
SCHEMA = Schema(
    {
        "state": category(["CA", "NY"]),
        "town": category(),
        "many": category([f"w{i}" for i in range(200)] + ["CA"]),
    }
)
VALUES = [
    ("ca", "ca", "ca", "p"),
    *[("CA", "CA", "CA", "P")] * 5,
    ("Ca", "Ca", "Ca", "é"),
    ("NY", "NY", "NY", "É"),
]


def duck(setting):
    import ibis

    connection = ibis.duckdb.connect()
    collation = "COLLATE NOCASE.NOACCENT" if setting == "column" else ""
    if setting == "session":
        connection.con.execute("SET default_collation = 'NOCASE.NOACCENT'")
    columns = ", ".join(f"{name} VARCHAR {collation}" for name in ("state", "town", "many", "who"))
    connection.con.execute(f"CREATE TABLE t ({columns})")
    connection.con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", VALUES)
    return connection.table("t")


def spark(_):
    frame = session().createDataFrame(VALUES, "state string, town string, many string, who string")
    names = [f"collate({c}, 'UTF8_LCASE') AS {c}" for c in frame.columns]
    return frame.selectExpr(*names)


def check(relation, unit, portable):
    asked = [
        ask.count(by="state"),
        ask.count(by="town"),
        ask.count(by="many"),
        ask.count(where="state = 'CA'"),
        ask.count(where="town in ('CA', 'x')"),
        ask.count(where="town != 'CA'"),
        ask.sparse_histogram("state"),
        ask.count(by=["state", "many"]),
    ]
    if unit != rows():
        asked.append(ask.count(of="people"))
    with open_table(relation, schema=SCHEMA, unit=unit, portable=portable) as table:
        questions = [s.on(SCHEMA, unit) for s in asked]
        answers = ask.read_cells(table, questions, key=KEY)
    read = [q.integers(c)["count"] for q, c in zip(questions, answers, strict=True)]
    assert read[0].tolist() == [5, 1]
    assert dict(zip(answers[1][0].keys[0], read[1], strict=True)) == {"ca": 1, "CA": 5, "Ca": 1, "NY": 1}
    assert read[2].sum() == read[2][-1] == 5
    assert [int(r) for r in read[3:6]] == [5, 5, 3]
    assert read[6].tolist() == [5, 1]
    assert read[7].sum() == 5
    if unit != rows():
        assert int(read[8]) == 4, "p, P, é and É are four people"


UNITS = [rows(), people("who", at_most=5), people("who", at_most=5, groups=2)]


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("setting", ["column", "session"])
@pytest.mark.parametrize("unit", UNITS, ids=["rows", "people", "groups"])
def test_duckdb_compares_bytes(setting, unit, portable):
    check(duck(setting), unit, portable)


@pytest.mark.slow
@needs_spark
@pytest.mark.parametrize("unit", UNITS[:2], ids=["rows", "people"])
def test_spark_compares_bytes(unit):
    check(spark(None), unit, False)


@pytest.mark.parametrize("portable", [False, True])
def test_who_is_nobody_is_nobody_on_every_engine(portable):
    """Null and NaN are no people; a zero with a sign is the same person as one without."""
    import pyarrow as pa

    ids = [None, float("nan"), 1.0, 1.0, -0.0, 0.0, float("inf")]
    table = pa.table({"who": pa.array(ids, pa.float64()), "state": ["CA"] * 7})
    schema, unit = Schema({"state": category(["CA"])}), people("who", at_most=1)
    questions = [s.on(schema, unit) for s in (ask.count(), ask.count(of="people"))]
    with open_table(table, schema=schema, unit=unit, portable=portable) as opened:
        assert [int(r["count"]) for r in ask.read(opened, questions, key=KEY)] == [3, 3]


@pytest.mark.slow
@needs_spark
def test_who_is_nobody_is_nobody_on_spark():
    import pyarrow as pa

    ids = [None, float("nan"), 1.0, 1.0, -0.0, 0.0, float("inf")]
    table = pa.table({"who": pa.array(ids, pa.float64()), "state": ["CA"] * 7})
    schema, unit = Schema({"state": category(["CA"])}), people("who", at_most=1)
    questions = [s.on(schema, unit) for s in (ask.count(), ask.count(of="people"))]
    with open_table(table, schema=schema, unit=unit, engine="spark") as opened:
        assert [int(r["count"]) for r in ask.read(opened, questions, key=KEY)] == [3, 3]
