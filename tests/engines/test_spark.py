"""What is Spark's own: the same rows kept, the same texts read, sums beyond 64 bits, sessions left as they were."""

from __future__ import annotations

import datetime
import math
import random
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tacit.statistics as ask
from support.bounded import kept_rows
from support.documents import page, run
from support.spark import frame, needs_spark, session
from tacit.errors import BadData, InvalidParameter, UnknownColumn, UnknownName
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, date, derived, flag, integer, number, open_table, spark

KEY = b"an ordinary secret of the tests."
PEOPLE = pa.schema([
    ("id", pa.string()), ("state", pa.string()), ("cost", pa.float64()), ("sick", pa.bool_()),
    ("n", pa.int32()), ("at", pa.timestamp("us")), ("word", pa.string()),
])  # fmt: skip
SCHEMA = Schema({
    "state": category(["CA", "NY", "TX"]), "cost": number(0, 100, spacing=1), "sick": flag(), "n": integer(0, 9),
    "at": date("2020-01-01", "2020-12-31"), "word": category(),
})  # fmt: skip


def crowd(n=900):
    rng = random.Random(5)
    start = datetime.datetime(2020, 1, 1)

    def maybe(value):
        return None if rng.random() < 0.15 else value

    return pa.Table.from_pylist(
        [
            {
                "id": maybe(f"p{rng.randrange(40)}é"),
                "state": maybe(rng.choice(["CA", "NY", "ZZ", "AA"])),
                "cost": maybe(rng.choice([0.25, 0.75, -0.0, float("nan"), math.inf, rng.uniform(-9, 200)])),
                "sick": maybe(rng.random() < 0.5),
                "n": maybe(rng.randrange(3)),
                "at": maybe(start + datetime.timedelta(hours=rng.randrange(60))),
                "word": maybe(rng.choice(["", "ä", "z", "Z", "a|b", "\x1e"])),
            }
            for _ in range(n)
        ],
        schema=PEOPLE,
    )


def plain(found):
    """Rows as declared: a word outside the list is as good as none, and so is NaN."""

    def value(name, x):
        gone = name == "state" and x not in ("CA", "NY", "TX")
        return None if gone or (isinstance(x, float) and math.isnan(x)) else x

    return Counter(tuple((n, value(n, row[n])) for n in sorted(row)) for row in found)


@needs_spark
@pytest.mark.parametrize("by", [(), ("state", "sick")])
def test_the_same_rows_of_each_person_are_kept_as_in_portable_duckdb(by):
    unit, data = people("id", at_most=5, groups=2), crowd()
    kept = []
    for engine in ("duckdb", "spark"):
        with open_table(data, schema=SCHEMA, unit=unit, engine=engine, portable=True) as table:
            kept.append(plain(kept_rows(table, KEY, by)))
    assert kept[0] == kept[1]
    given = Counter(i for i in data["id"].to_pylist() if i is not None)
    size = Counter()
    for row, n in kept[0].items():
        size[dict(row)["id"]] += n
    assert all(size[i] <= min(5, n) for i, n in given.items())
    if not by:
        assert size == Counter({i: min(5, n) for i, n in given.items()})


STORAGE = [
    {
        "id": pa.decimal128(38, 18),
        "x": pa.decimal128(38, 18),
        "n": pa.decimal128(38, 0),
        "at": pa.timestamp("us"),
    },
    {"id": pa.int64(), "x": pa.float64(), "n": pa.int8(), "at": pa.timestamp("us", tz="UTC")},
    {"id": pa.float64(), "x": pa.string(), "n": pa.float32(), "at": pa.date32()},
    {"id": pa.string(), "x": pa.decimal128(12, 3), "n": pa.string(), "at": pa.string()},
]


@needs_spark
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("by", [(), ("n",)])
def test_the_same_rows_are_kept_in_every_type_under_every_dialect_of_spark(by, ansi):
    """Spark without ANSI writes small decimals as powers of ten, and a session may have any time zone."""
    rng = random.Random(8)
    day = datetime.date(2020, 1, 1)
    given = [
        {"id": i % 30, "x": Decimal(rng.randrange(9000)) / 1000, "n": rng.randrange(3), "at": day}
        for i in range(150)
    ] + [{"id": 7, "x": Decimal(1).scaleb(-3), "n": 1, "at": day + datetime.timedelta(days=1)}]
    schema = Schema({
        "x": number(0, 9), "n": integer(0, 9), "at": date("2020-01-01", "2020-12-31"),
        "free": derived("x / 3", number()),
    })  # fmt: skip

    def stored(types):
        table = pa.Table.from_pylist([{**r, "x": str(r["x"])} for r in given])
        texts = {"id": pa.string(), "n": pa.string(), "at": pa.string()}
        table = table.cast(pa.schema([(f.name, texts.get(f.name, f.type)) for f in table.schema]))
        if types["at"] != pa.string():
            table = table.set_column(3, "at", table["at"].cast(pa.timestamp("us")).cast(types["at"]))
        return table.cast(pa.schema([(name, types[name]) for name in table.column_names]))

    def plain(found):
        return Counter(
            (float(r["id"]), float(r["x"]), int(r["n"]), r["at"], round(r["free"], 9)) for r in found
        )

    unit, kept = people("id", at_most=2, **({"groups": 1} if by else {})), []
    with open_table(stored(STORAGE[1]), schema=schema, unit=unit, portable=True) as table:
        kept.append(plain(kept_rows(table, KEY, by)))
    own = session()
    before = {name: own.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    try:
        own.conf.set("spark.sql.ansi.enabled", ansi)
        own.conf.set(
            "spark.sql.session.timeZone", "Pacific/Kiritimati" if ansi == "true" else "America/Los_Angeles"
        )
        for types in STORAGE:
            with open_table(stored(types), schema=schema, unit=unit, engine="spark") as table:
                kept.append(plain(kept_rows(table, KEY, by)))
    finally:
        for name, value in before.items():
            own.conf.set(name, value)
    assert all(one == kept[0] for one in kept), [sum((one - kept[0]).values()) for one in kept]


@needs_spark
def test_a_person_changes_nobody_else():
    unit, data = people("id", at_most=3), crowd(300)
    without = data.filter(pa.compute.fill_null(pa.compute.not_equal(data["id"], "p7é"), False))
    kept = []
    for some in (data, without):
        with open_table(some, schema=SCHEMA, unit=unit, engine="spark") as table:
            kept.append(plain(kept_rows(table, KEY)))
    others = Counter({row: n for row, n in kept[0].items() if dict(row)["id"] != "p7é"})
    assert others == kept[1]
    assert others != kept[0]


@needs_spark
def test_every_form_of_a_table_and_its_digest(tmp_path):
    data = pa.table({"s": ["a", "b", None, "b"], "x": [1, 2, 3, None]})
    schema = Schema({"s": category(["a", "b"]), "x": integer(0, 9)})
    odd = tmp_path / "a [1] {b} é"
    odd.mkdir()
    pa.parquet.write_table(data, odd / "t*.parquet")
    pa.csv.write_csv(data, odd / "t.csv")
    import ibis

    relation = ibis.pyspark.connect(session()).create_view("__test_forms", frame_view(data), overwrite=True)
    forms = [odd / "t*.parquet", odd / "t.csv", data, data.to_pandas(), frame(data), relation]
    digests, questions = [], [s.on(schema, rows()) for s in (ask.count(by="s"), ask.sum("x"))]
    for form in forms:
        with open_table(form, schema=schema, unit=rows(), engine="spark") as table:
            assert table.engine == "pyspark"
            count, total = ask.read(table, questions)
            digests.append(table.digest(KEY))
        assert count["count"].tolist() == [1, 2]
        assert total["sum"] == 6
    assert len(set(digests[2:3] + digests[4:])) == 1, "the same rows in Spark have the same digest"
    session().catalog.dropTempView("__test_forms")


def frame_view(data):
    import ibis

    frame(data).createOrReplaceTempView("__test_rows")
    return ibis.pyspark.connect(session()).table("__test_rows")


@needs_spark
def test_texts_mean_the_same_on_both_engines():
    texts = ["1", "-2.5", "+3", " 4 ", "1e1", ".5", "5.", "abc", "", "1d", "1f", "0x1p3", "NaN", "inf", "-Infinity",
             "2020", "2020-02", "2020-02-30", "2020-02-29", "2020-2-3", " 2020-03-01 ", "yes", "NO", "T", "1.0", None,
             "true ", "\tf", "1_000", "2020/05/06",
             "2020-07-08 10:00:00", "2020-07-09T10:00", "fv", "xvf", "1e400", "+inf", "\x0b8\x0c"]  # fmt: skip
    # DuckDB alone knows infinitely late days.
    days = [None if t and "inf" in t.lower() else t for t in texts]
    data = pa.table({"x": texts, "d": days, "f": texts})
    schema = Schema({"x": number(-10, 10), "d": date("2020-01-01", "2020-12-31"), "f": flag()})
    asked = [
        ask.count(where="x is missing"), ask.sum("x"), ask.count(where="d is missing"), ask.mean("d"),
        ask.count(where="f is missing"), ask.sum("f"), ask.histogram("x", 20), ask.histogram("d", 12),
    ]  # fmt: skip
    seen = []
    for engine in ("duckdb", "spark"):
        with open_table(data, schema=schema, unit=rows(), engine=engine) as table:
            read = ask.read(table, [s.on(schema, rows()) for s in asked])
            seen.append([{k: v.tolist() for k, v in r.items()} for r in read])
    assert seen[0] == seen[1]


@needs_spark
def test_sums_and_magnitudes_are_exact():
    top = 2**51
    values = [top - 1] * 3000 + [-top + 1] * 7 + [None]
    near = (
        [math.nextafter(2.0**p, 0) for p in range(-18, 50)] + [2.0**p for p in range(-18, 50)] + [-0.0, -8.0]
    )
    schema = Schema({"x": integer(-top, top), "y": number(), "z": integer(0, 2**31 - 2)})
    n = len(values)
    data = pa.table({"x": values, "y": (near * 30)[:n], "z": pa.array([2**31 - 2] * n, pa.int64())})
    asked = [ask.sum("x"), ask.mean("x"), ask.clamping_bounds("y"), ask.variance("z")]
    seen = []
    for engine in ("duckdb", "spark"):
        with open_table(data, schema=schema, unit=rows(), engine=engine) as table:
            read = ask.read(table, [s.on(schema, rows()) for s in asked])
            seen.append([{k: v.tolist() for k, v in r.items()} for r in read])
    assert seen[0] == seen[1]
    assert seen[1][0]["sum"] == sum(v for v in values if v is not None)
    power = next(iter(seen[1][2].values()))
    expected = [0] * len(power)
    for y in (near * 30)[:n]:
        k = min(max(math.frexp(abs(y))[1] + 20, 0), 80) if y else 0
        expected[80 + (k if y >= 0 else -k)] += 1
    assert power == expected


@needs_spark
def test_a_file_that_changes_is_read_anew(tmp_path):
    path, schema = tmp_path / "t.parquet", Schema({"x": integer(0, 9)})
    unit = people("id", at_most=1)
    question = ask.count().on(schema, unit)
    pa.parquet.write_table(pa.table({"id": [1, 2, 2], "x": [1, 2, 3]}), path)
    with open_table(path, schema=schema, unit=unit, engine="spark") as table:
        assert ask.read(table, [question], key=KEY)[0]["count"] == 2
        pa.parquet.write_table(pa.table({"id": list(range(50)), "x": [1] * 50}), path)
        assert ask.read(table, [question], key=KEY)[0]["count"] == 50


@needs_spark
def test_the_users_session_is_left_as_it_was():
    own = session().newSession()
    own.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    data = own.createDataFrame([(1, 2)], "id long, x long")
    before = {
        name: own.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
    }
    schema, unit = Schema({"x": integer(0, 9)}), people("id", at_most=1)
    with open_table(data, schema=schema, unit=unit) as table:
        ask.read(table, [ask.count().on(schema, unit)], key=KEY)
        assert [v.name for v in own.catalog.listTables() if v.name.startswith("__tacit")]
    assert {name: own.conf.get(name) for name in before} == before
    assert not [v.name for v in own.catalog.listTables() if v.name.startswith("__tacit")]
    assert data.count() == 1


@needs_spark
def test_the_page_about_spark_shows_true_numbers():
    path = Path(__file__).parents[2] / "docs" / "spark.md"
    assert run(page(path), "spark.md", shown=False).checked == 1


@needs_spark
def test_bad_tables_are_refused_without_their_words(tmp_path):
    schema = Schema({"x": integer(0, 9)})
    path = tmp_path / "secret-word.parquet"
    path.write_bytes(b"not parquet at all")
    with pytest.raises(BadData, match="not a readable Parquet file"):
        open_table(path, schema=schema, unit=rows(), engine="spark")
    with pytest.raises(UnknownColumn, match="'x'"):
        open_table(frame(pa.table({"y": [1]})), schema=schema, unit=rows())
    with pytest.raises(InvalidParameter, match="lives in pyspark"):
        open_table(frame(pa.table({"x": [1]})), schema=schema, unit=rows(), engine="duckdb")


def test_engines_and_sizes_have_names():
    with pytest.raises(UnknownName, match="spark"):
        open_table("t.csv", schema={"x": integer(0, 9)}, unit=rows(), engine="sparc")
    assert [spark.memory_in_mib(m) for m in ("1GB", "2 GiB", "100MB", "1.5g")] == [1024, 2048, 1024, 1536]
    with pytest.raises(InvalidParameter, match="size such as"):
        spark.memory_in_mib("lots")


@needs_spark
@pytest.mark.parametrize("form", ["parquet", "csv", "arrow"])
def test_files_are_not_read_beside_a_session_of_spark_connect(form, tmp_path, monkeypatch):
    """PySpark's functions speak to the remote session alone; a whole file was called unreadable."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    table = pa.table({"x": [1]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    pa.csv.write_csv(table, tmp_path / "t.csv")
    source = table if form == "arrow" else tmp_path / f"t.{form}"
    with pytest.raises(InvalidParameter, match="no session of Spark Connect"):
        open_table(source, schema={"x": integer(0, 9)}, unit=rows(), engine="spark")


ABSENT = """
import sys
import tacit.errors, pyarrow
from tacit.sources import open_table, integer
from tacit.guarantees import rows
if sys.argv[1] == "pyspark":
    sys.modules["pyspark"] = None
try:
    open_table(pyarrow.table({"x": [1]}), schema={"x": integer(0, 9)}, unit=rows(), engine="spark")
except tacit.errors.InvalidParameter as problem:
    print(problem.message, "/", problem.hint)
"""


@pytest.mark.parametrize(
    ("absent", "sentence"),
    [
        ("pyspark", "engine must find PySpark installed"),
        pytest.param(
            "java", "engine must find Java 17 or later, and there is no Java here", marks=needs_spark
        ),
        pytest.param("a Java that starts", "engine must find a Java that starts it", marks=needs_spark),
    ],
)
def test_what_is_missing_is_named_in_one_sentence(absent, sentence, tmp_path):
    (tmp_path / "bin").mkdir()
    if absent.startswith("a Java"):
        broken = tmp_path / "bin" / "java"
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)
    process = subprocess.run(
        [sys.executable, "-c", ABSENT, absent],
        env={"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.stdout.startswith(sentence), process.stderr
    assert process.stderr == ""
