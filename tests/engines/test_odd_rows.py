"""One odd row: for every declared type and every stored type that may hold it, no value stops a reading.

Each odd value lies in a group of its own, so that what it adds is seen by itself, and held against the claim.
"""

from __future__ import annotations

import datetime
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import tacit.statistics as ask
from support import engine, odd
from support.spark import needs_spark
from tacit.errors import WrongType
from tacit.guarantees import people, rows
from tacit.sources import Schema, bins, category, date, flag, integer, number, open_table

KEY = b"an ordinary secret of the tests."
STORED = odd.columns()
MOST = max(map(len, STORED.values())) + 1
DECLARED = {
    "number": number(-3, 2),
    "number or missing": number(-3, 2, outside="missing", missing=-1),
    "wide number": number(-(2.0**40), 2.0**30, spacing=2.0**-10),
    "free number": number(),
    "integer": integer(-5, 3),
    "integer or missing": integer(-5, 3, outside="missing"),
    "wide integer": integer(-(2**51), 2**52 - 1),
    "free integer": integer(),
    "numbers": category([1, 2, 3, 0, 2**60 + 1, 2**53 + 1, -(2**63)]),
    "words": category(["1", "a", "é", "'; drop", "1.0"], missing="a"),
    "unknown": category(),
    "flag": flag(),
    "date": date("2020-01-02", "2020-01-09"),
    "old date": date("0001-01-01", "1960-01-09", outside="missing"),
}
FILTERS = {
    "number": "{} > 0.5",
    "integer": "{} >= 2",
    "numbers": "{} = 2",
    "words": "{} != 'a'",
    "unknown": "{} = 'a'",
    "flag": "{}",
    "date": "{} <= '2020-01-05'",
}


@cache
def accepted(name):
    """The stored types that may hold what is declared, by their declaration alone."""
    found = []
    with engine.shared():
        for stored, array in STORED.items():
            try:
                open_table(pa.table({"x": array[:0]}), schema={"x": DECLARED[name]}, unit=rows()).close()
            except WrongType:
                continue
            found.append(stored)
    return found


def table_of(name):
    """A column for each stored type, a group for each place; what is too short ends in missing values."""
    columns = {}
    for stored in accepted(name):
        array = STORED[stored]
        array = array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array
        columns[stored] = pa.concat_arrays([array, pa.nulls(MOST - len(array), array.type)])
    which = pa.array(range(MOST), pa.int32())
    schema = Schema({"which": category(list(range(MOST))), **dict.fromkeys(columns, DECLARED[name])})
    return pa.table({"which": which, "id": which, **columns}), schema, list(columns)


def asked(name, x):
    """What can be asked of a column, in each group."""
    declared, by = DECLARED[name], "which"
    kind = declared.to_dict()["type"]
    test = FILTERS[name if kind == "category" else kind].format(x)
    out = [ask.count(by=by, where=test), ask.count(by=by, where=f"{x} is missing or {test}")]
    if kind in ("number", "integer") and declared.bounded:
        out += [ask.sum(x, by=by), ask.mean(x, by=by), ask.histogram(x, [-3, 0, 2], by=by)]
        if declared.width < 1 << 31:
            out += [ask.variance(x, by=by), ask.count(by=[by, bins(x, 3)])]
            out.append(ask.sparse_histogram([by, bins(x, 2)]))
    if kind in ("flag", "date"):
        out += [ask.mean(x, by=by), ask.variance(x, by=by), ask.count(by=[by, bins(x, 2)])]
    if kind == "category":
        out += [ask.count(by=[by, x])] + ([ask.sparse_histogram([by, x])] if declared.known else [])
    return out


def held(question, cells):
    """No group, which is one row, adds more than one row may; what it adds comes back."""
    claims = question.statistic.on(question.schema, rows()).sensitivities
    out = {}
    for part, values in question.integers(cells).items():
        array = np.asarray(values)
        flat = array.reshape(MOST, -1) if cells[0].keys is None else array.reshape(-1, 1)
        for row in flat:
            sizes = [abs(int(v)) for v in row.ravel()]
            assert sum(sizes) <= claims[part].l1, (question.statistic, part)
            assert sum(s * s for s in sizes) <= claims[part].l2_squared, (question.statistic, part)
            assert max(sizes, default=0) <= claims[part].linf, (question.statistic, part)
        out[part] = [] if cells[0].keys is None else [k.tolist() for k in cells[0].keys]
        out[part].append(array.tolist())
    return out


def read_all(table, schema, statistics, *, unit=None, **options):
    unit = unit or rows()
    with open_table(table, schema=schema, unit=unit, **options) as opened:
        questions = [s.on(schema, unit) for s in statistics]
        answers = ask.read_cells(opened, questions, key=KEY)
    return [held(q, c) for q, c in zip(questions, answers, strict=True)]


@pytest.mark.parametrize("name", DECLARED)
def test_no_odd_value_stops_a_reading_or_adds_more_than_one_row_may(name):
    table, schema, columns = table_of(name)
    assert len(columns) >= 3
    statistics = [s for x in columns for s in asked(name, x)]
    by_rows = read_all(table, schema, statistics)
    # A person each: the engine's own bounding and the portable one must pass over the same values.
    unit = people("id", at_most=2)
    some = statistics[:: max(1, len(statistics) // 12)]
    expected = by_rows[:: max(1, len(statistics) // 12)]
    for portable in (False, True):
        assert read_all(table, schema, some, unit=unit, portable=portable) == expected


def test_clamping_bounds_count_every_row_at_most_once():
    for name in ("free number", "free integer"):
        table, schema, _ = table_of(name)
        columns = ["int64", "uint64", "float64", "decimal38_10", "string"]
        with open_table(table, schema=schema, unit=rows()) as opened:
            read = ask.read(opened, [ask.clamping_bounds(x).on(schema, rows()) for x in columns])
        for x, parts in zip(columns, read, strict=True):
            assert parts["count"].sum() <= len(STORED[x]), x


BROKEN = ["number", "integer", "numbers", "words", "unknown", "flag", "date"]


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_bytes_that_are_no_text_are_missing(name, portable):
    """Handed to the engine without a check, as a view of the user's own may do it."""
    import ibis

    array = odd.broken_text()
    array = pa.concat_arrays([array, pa.nulls(MOST - len(array), pa.string())])
    connection = ibis.duckdb.connect()
    connection.con.register("broken", pa.table({"which": pa.array(range(MOST), pa.int32()), "x": array}))
    schema = Schema({"which": category(list(range(MOST))), "x": DECLARED[name]})
    for unit in (rows(), people("x", at_most=3), people("which", at_most=3)):
        read_all(connection.table("broken"), schema, asked(name, "x"), unit=unit, portable=portable)


def test_unknown_keys_are_text():
    import ibis

    connection = ibis.duckdb.connect()
    connection.con.register("broken", pa.table({"x": odd.broken_text()}))
    schema = Schema({"x": category()})
    with open_table(connection.table("broken"), schema=schema, unit=rows()) as opened:
        (cells,) = ask.read_cells(opened, [ask.count(by="x").on(schema, rows())])[0]
    assert sorted(cells.keys[0].tolist()) == ["1", "2020-01-05", "yes"]
    assert all(type(k) is str for k in cells.keys[0])


def counts(values, kind, declared):
    schema = Schema({"x": declared})
    with open_table(pa.table({"x": pa.array(values, kind)}), schema=schema, unit=rows()) as table:
        return ask.read(table, [ask.count(by="x").on(schema, rows())])[0]["count"].tolist()


def test_a_large_number_is_no_category():
    for kind in (pa.int64(), pa.uint64()):
        assert counts([1, 1, 2**60 + 1, 2], kind, category([1, 2, 3])) == [2, 1, 0]


def test_zero_with_a_sign_is_zero():
    for values in ([-0.0, 0.0, 0.0, 1.0], [0.0, 0.0, -0.0, 1.0]):
        assert counts(values, pa.float64(), category([0, 1])) == [3, 1]


def test_whole_numbers_are_told_apart_exactly():
    declared = category([2**53, 2**53 + 1, -(2**63)])
    assert counts([2**53, 2**53 + 1, 2**53 + 1, -(2**63)], pa.int64(), declared) == [1, 2, 1]
    assert counts([str(2**53), str(2**53 + 1), f" {2**53 + 1} "], pa.string(), declared) == [1, 2, 0]


def test_bounds_below_zero_hold_for_columns_without_a_sign():
    for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        schema = Schema({"x": integer(-5, 3)})
        with open_table(pa.table({"x": pa.array([0, 2, 200], kind)}), schema=schema, unit=rows()) as table:
            assert int(ask.read(table, [ask.sum("x").on(schema, rows())])[0]["sum"]) == 0 + 2 + 3


def test_days_of_moments_with_a_zone_are_those_of_utc():
    late = datetime.datetime(2020, 1, 5, 23, 30, tzinfo=datetime.UTC)
    table = pa.table({"x": pa.array([late], pa.timestamp("us", tz="Asia/Tokyo"))})
    schema = Schema({"x": date("2020-01-01", "2020-01-09")})
    with open_table(table, schema=schema, unit=rows()) as opened:
        opened.relation.get_backend().con.execute("SET timezone = 'Asia/Tokyo'")
        assert ask.read(opened, [ask.mean("x").on(schema, rows())])[0]["above"] == 4


@pytest.mark.slow
@needs_spark
@pytest.mark.parametrize("name", ["number", "wide integer", "numbers", "words", "flag", "date"])
def test_no_odd_value_stops_spark(name):
    table, schema, columns = table_of(name)
    if name == "words":
        # Spark holds these as decimals, which are no words: the type says so, before anything is read.
        table, columns = table.drop(["uint64"]), [c for c in columns if c != "uint64"]
        schema = Schema({n: c for n, c in schema.items() if n != "uint64"})
    unit = people("id", at_most=1)
    kind = DECLARED[name].to_dict()["type"]
    statistics = [
        ask.count(by=["which", c]) if kind == "category" else ask.mean(c, by="which") for c in columns
    ]
    here, there = (read_all(table, schema, statistics, unit=unit, engine=e) for e in (None, "spark"))
    for column, left, right in zip(columns, here, there, strict=True):
        # Spark's times are of microseconds, so that the ends of other units differ.
        assert left == right or column.startswith("timestamp"), column
