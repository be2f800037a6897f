"""Bad input: one sentence that says what and what to do, and no value of a record in it."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

import tacit.statistics as ask
from tacit.errors import (
    BadData,
    EmptyComposition,
    InvalidInput,
    InvalidParameter,
    MissingBounds,
    TooManyCells,
    UnitMismatch,
    UnknownColumn,
    UnknownName,
    WrongType,
)
from tacit.guarantees import Coupled, people, rows
from tacit.sources import Schema, bins, category, date, flag, integer, number, open_table

SCHEMA = Schema({"age": integer(0, 99), "state": category(["CA", "NY"]), "free": number(), "sick": flag()})


@pytest.mark.parametrize(
    "declare",
    [
        lambda: number(5, 1),
        lambda: number(1, 1),
        lambda: number(0),
        lambda: number(0, math.inf),
        lambda: number(math.nan, 1),
        lambda: number(0, True),
        lambda: number("0", 1),
        lambda: number(0, 1, spacing=0.3),
        lambda: number(0, 1, spacing=-1),
        lambda: number(0, 1, spacing=4),
        lambda: number(0, 1, spacing=2.0**-80),
        lambda: number(0, 1, missing=3),
        lambda: number(0, 1, missing=math.nan),
        lambda: number(spacing=1),
        lambda: number(missing=1),
        lambda: number(0, 1, outside="drop"),
        lambda: number(0, 1e-310),
        lambda: number(1e300, 1.1e300, spacing=1),
        lambda: integer(3, 1),
        lambda: integer(0.5, 2),
        lambda: integer(0, 2**60),
        lambda: integer(0, 5, missing=9),
        lambda: integer(0, 5, missing=0.5),
        lambda: integer(missing=1),
        lambda: category([]),
        lambda: category("CA"),
        lambda: category(["a", 1]),
        lambda: category(["a", "a"]),
        lambda: category([1.5]),
        lambda: category([True, False]),
        lambda: category(["a"], missing="b"),
        lambda: category(missing=3),
        lambda: flag(missing=1),
        lambda: date("2020-02-30", "2021-01-01"),
        lambda: date("2021-01-01", "2020-01-01"),
        lambda: date("2020-01-01", "2021-01-01", missing="2022-01-01"),
        lambda: Schema({"a": int}),
        lambda: Schema({"": flag()}),
        lambda: Schema(["a"]),
    ],
)
def test_declarations_are_valid_from_birth(declare):
    with pytest.raises(InvalidInput):
        declare()


@pytest.mark.parametrize(
    ("statistic", "error"),
    [
        (lambda: ask.mean("agee"), UnknownColumn),
        (lambda: ask.count(by="stat"), UnknownColumn),
        (lambda: ask.mean("state"), WrongType),
        (lambda: ask.mean("free"), MissingBounds),
        (lambda: ask.sum("free"), MissingBounds),
        (lambda: ask.quantiles("free"), MissingBounds),
        (lambda: ask.variance("free"), MissingBounds),
        (lambda: ask.count(by="free"), WrongType),
        (lambda: ask.histogram("free", 3), MissingBounds),
        (lambda: ask.histogram("age", [5]), EmptyComposition),
        (lambda: ask.histogram("age", [5, 5]), InvalidParameter),
        (lambda: ask.histogram("age", 0), InvalidParameter),
        (lambda: ask.histogram("age", 1000), InvalidParameter),
        (lambda: ask.count(by=["age", "age"]), InvalidParameter),
        (lambda: ask.count(by=3), InvalidParameter),
        (lambda: ask.count(by=[3]), InvalidParameter),
        (lambda: ask.count(of="cats"), UnknownName),
        (lambda: ask.count(of="people"), UnitMismatch),
        (lambda: ask.quantiles("age", at=[]), EmptyComposition),
        (lambda: ask.quantiles("age", at=[1.5]), InvalidParameter),
        (lambda: ask.quantiles("age", at=[0.5, 0.1]), InvalidParameter),
        (lambda: ask.quantiles("age", resolution=1), InvalidParameter),
        (lambda: ask.ratio("age", "age"), InvalidParameter),
        (lambda: ask.margins([]), EmptyComposition),
        (lambda: ask.margins(["age"], order=2), InvalidParameter),
        (lambda: ask.margins(["free"]), WrongType),
        (lambda: ask.contingency([]), EmptyComposition),
        (lambda: ask.proportion("age"), WrongType),
        (lambda: ask.clamping_bounds("state"), WrongType),
        (lambda: ask.clamping_bounds("sick"), InvalidParameter),
        (lambda: bins("age", True), InvalidParameter),
    ],
)
def test_questions_are_checked_before_anything_is_read(statistic, error):
    with pytest.raises(error):
        statistic().on(SCHEMA, rows())


def test_missing_bounds_say_what_to_do():
    with pytest.raises(
        MissingBounds, match=r"declare number\(low, high\); bounds are never read from the data, or"
    ):
        ask.mean("free").on(SCHEMA, rows())


def test_ten_million_groups_are_refused():
    schema = Schema({"a": integer(0, 9_999), "b": integer(0, 999)})
    with pytest.raises(TooManyCells, match="10,000,000 groups"):
        ask.count(by=["a", "b"]).on(schema, rows())
    with pytest.raises(TooManyCells):
        ask.margins(["a", "b"], order=2).on(schema, rows())


def test_units_that_no_table_protects():
    with pytest.raises(UnitMismatch):
        ask.count().on(SCHEMA, Coupled(priv="a row", alt="the rest"))


PRIVATE = "Zebulon"


def refused(make, error, **options):
    with pytest.raises(error) as caught:
        open_table(make, schema=options.get("schema", {"name": category()}), unit=options.get("unit", rows()))
    text = str(caught.value)
    assert PRIVATE not in text
    assert "\n" not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or PRIVATE not in str(caught.value.__context__)
    return text


def test_files_that_cannot_be_read(tmp_path):
    assert "is not there" in refused(tmp_path / "none.parquet", BadData)
    assert "no known ending" in refused(_write(tmp_path / "a.xls", b"x"), BadData)
    for content in (b"", b"PAR1", f"name\n{PRIVATE}\n".encode()):
        assert "not a readable Parquet file" in refused(_write(tmp_path / "bad.parquet", content), BadData)
    pa.parquet.write_table(pa.table({"name": [PRIVATE] * 50_000}), tmp_path / "cut.parquet")
    whole = (tmp_path / "cut.parquet").read_bytes()
    refused(_write(tmp_path / "cut.parquet", whole[: len(whole) // 2]), BadData)
    refused(tmp_path, BadData)
    refused(object(), InvalidParameter)


def test_columns_that_are_not_there_or_stored_as_something_else(tmp_path):
    table = pa.table({"name": [PRIVATE], "when": [datetime.datetime(2020, 1, 1)], "list": [[1]]})
    assert "did you mean 'name'" in refused(table, UnknownColumn, schema={"nam": category()})
    refused(table, UnknownColumn, unit=people("id", at_most=1))
    for name, column in [
        ("when", number(0, 1)),
        ("list", number(0, 1)),
        ("when", flag()),
        ("list", category()),
    ]:
        refused(table, WrongType, schema={name: column})
    path = _write(tmp_path / "a.csv", f"name\n{PRIVATE}\n".encode())
    refused(path, UnknownColumn, schema={"nam": category()})


def test_values_that_are_no_numbers_are_missing_and_none_of_them_is_an_error():
    huge = [None, "9" * 400, "-" + "9" * 400, "12", "nan", "inf", PRIVATE, "1e999", "0x10", "", "3.5"]
    schema = Schema(
        {
            "a": integer(0, 99),
            "b": number(0, 99, spacing=1),
            "c": flag(),
            "d": date("2020-01-01", "2020-01-31"),
            "e": category([3, 12]),
        }
    )
    table = pa.table(dict.fromkeys("abcde", huge))
    with open_table(table, schema=schema, unit=rows()) as opened:
        questions = [
            s.on(schema, rows())
            for s in (ask.sum("a"), ask.sum("b"), ask.count(by="c"), ask.mean("d"), ask.count(by="e"))
        ]
        read = ask.read(opened, questions)
    assert read[0]["sum"] == read[1]["sum"] == sum([99, 0, 12, 99, 99, 4])
    assert read[2]["count"].sum() == 0
    assert read[3]["above"] == read[3]["below"] == 0, "no text stands for an infinite day"
    assert list(read[4]["count"]) == [0, 1]


def test_integers_do_not_wrap_around():
    big = 2**62
    top = 2**52 - 1
    schema = Schema({"x": integer(-top, top), "y": integer(-(2**30), 2**30 - 1)})
    table = pa.table(
        {"x": pa.array([big, -big, big, big] * 3000, pa.int64()), "y": pa.array([big] * 12000, pa.int64())}
    )
    with open_table(table, schema=schema, unit=rows()) as opened:
        questions = [s.on(schema, rows()) for s in (ask.sum("x"), ask.mean("x"), ask.variance("y"))]
        total, mean, spread = ask.read(opened, questions)
    assert int(total["sum"]) == 6000 * top
    assert int(mean["above"]) == 9000 * 2 * top
    assert int(spread["squares_above"]) == 12000 * (2**31 - 1) ** 2


def test_squares_need_a_grid_that_fits():
    with pytest.raises(InvalidParameter, match="coarser grid"):
        ask.variance("x").on(Schema({"x": integer(-(2**40), 2**40)}), rows())


def test_no_engine_is_loaded_before_a_row_is_read():
    code = (
        "import sys, tacit.statistics as ask\n"
        "from tacit.sources import *\n"
        "from tacit.guarantees import people\n"
        "s = Schema({'age': number(0, 9), 'state': category(['a', 'b'])})\n"
        "q = ask.mean('age', by='state', where='age > 1').on(s, people('id', at_most=3))\n"
        "assert q.sensitivity.l1 > 0\n"
        "print([m for m in ('ibis', 'duckdb', 'pyarrow', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _write(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("unit", [rows(), people("id", at_most=2)])
def test_a_schema_without_columns_says_what_to_declare(unit):
    """Before anything is opened, and the same for rows and for people."""
    import tacit

    for made in (
        lambda: Schema({}),
        lambda: open_table(pa.table({"id": ["a"]}), schema={}, unit=unit),
        lambda: tacit.Curator("absent.csv", protect=unit, schema={}, budget=tacit.Pure(epsilon=1)),
    ):
        with pytest.raises(EmptyComposition, match="the schema is empty; declare at least one column"):
            made()
