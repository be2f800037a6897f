"""Several versions of one table: which rows of a person are kept is that person's business and the key's alone.

Neighbours are built from the definition: a list of rows, with and without a person, written by the programs that people
use. Those choose the type of a column by all its rows, so that one odd row changes how everybody is stored.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import random
from collections import Counter
from fractions import Fraction

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import tacit.statistics as ask
from support.bounded import kept_rows
from tacit.guarantees import people
from tacit.guarantees import rows as each_row
from tacit.sources import Schema, bounding, category, date, derived, files, flag, integer, number, open_table
from tacit.sources.engines import NARROW_DECIMAL

KEY = b"0123456789abcdef-secret"
SCHEMA = Schema({
    "group": category(["a", "b", "c"]), "code": category([1, 2, 3]), "grade": category(["1", "2", "3"]),
    "word": category(), "x": number(0, 9), "n": integer(0, 9), "free": integer(),
    "yes": flag(), "day": date("2020-01-01", "2020-12-31"),
    "twice": derived("2 * x", number(0, 18)),
})  # fmt: skip
WAYS = [(False, 0), (False, 100), (True, 0)]
"""DuckDB's own hash with wide and with narrow rows, and the portable one."""


def crowd(people=40, rows=6, seed=2):
    """Rows of whole numbers: every program stores them as such, until one row is no whole number."""
    rng = random.Random(seed)
    first = datetime.date(2020, 1, 1)
    return [
        {
            "id": who, "group": rng.choice("abcz"), "code": rng.randrange(5), "grade": rng.randrange(5),
            "word": rng.choice("vw"), "x": rng.randrange(-1, 5), "n": rng.randrange(4),
            "free": rng.randrange(3), "yes": rng.randrange(2),
            "day": first + datetime.timedelta(days=rng.randrange(3)),
        }
        for who in range(1, people + 1) for _ in range(rng.randrange(rows + 1))
    ]  # fmt: skip


def same(value):
    """A stored value as the number, day or word that it is."""
    if isinstance(value, datetime.datetime):
        return value.date()
    if value is None or value != value or isinstance(value, datetime.date):
        return None if value != value else value
    try:
        return Fraction(str(value)) if not isinstance(value, bool) else Fraction(int(value))
    except ValueError:
        return value


def kept(data, *, portable=False, by=(), schema=SCHEMA, unit=None):
    unit = unit or people("id", at_most=2, **({"groups": 1} if by else {}))
    with open_table(data, schema=schema, unit=unit, portable=portable) as table:
        found = kept_rows(table, KEY, by)
    return Counter(tuple((name, same(row[name])) for name in sorted(row)) for row in found)


def of(found, who):
    return Counter({row: n for row, n in found.items() if dict(row)["id"] == same(who)})


ODD = {
    "id": [77, 77.5, "kim", None, 2**62, decimal.Decimal("77.25"), True],
    "x": [2.5, None, "a word", 10**30, float("inf"), -0.0, 2],
    "n": [None, 2.5, "two", 2, 10**30, 0.5, 1], "free": [1e-9, None, 2, "-", 2**60, 0.5, 1],
    "code": [None, "one", 2, 1.5, 2**60, None, 1], "grade": [None, 2, "one", 1.5, 3, "1.0", 2**60],
    "yes": ["maybe", None, 0.5, 2, 1, None, 0],
    "group": [None, 7, "a", "", "a", None, "c"], "word": [None, "v", 7, "", "v", None, "w"],
    "day": ["never", None, datetime.datetime(2020, 1, 2, 3), "2020-01-02", None, datetime.date(1, 1, 1), "x"],
}  # fmt: skip
WORLDS = [{name: values[i] for name, values in ODD.items()} for i in range(7)]


def written(rows, way, folder):
    """The rows as a program hands them over: the type of a column is its choice."""
    table = pd.DataFrame(rows)
    for name in table:
        # What one text or day among numbers makes of a column in a file: text.
        kinds = {type(v) for v in table[name].tolist() if v == v and v is not None}
        if table[name].dtype == object or kinds - {int, float, str}:
            table[name] = [None if v is None or v != v else str(v) for v in table[name]]
    if way == "frame":
        return table
    path = folder / f"t.{way}"
    table.to_parquet(path) if way == "parquet" else table.to_csv(path, index=False)
    return files(str(path))


@pytest.mark.parametrize("way", ["frame", "parquet", "csv"])
@pytest.mark.parametrize(("portable", "narrow"), WAYS)
def test_one_odd_row_changes_what_is_kept_of_nobody_else(way, portable, narrow, tmp_path, monkeypatch):
    monkeypatch.setattr(bounding, "NARROW", narrow)
    base = crowd()
    for by in ((), ("group",)) if way == "frame" and not narrow else ((),):
        before = kept(written(base, way, tmp_path), portable=portable, by=by)
        assert sum(before.values()) > 30
        for odd in WORLDS:
            new = [{**base[0], **odd}, {**base[1], "id": odd["id"]}, odd | {"group": "b"}]
            after = kept(written([*base, *new], way, tmp_path), portable=portable, by=by)
            more = after - before
            assert before <= after, odd
            assert sum(more.values()) <= 2, odd


@pytest.mark.parametrize("way", ["frame", "parquet", "csv"])
def test_one_odd_row_moves_every_count_of_declared_keys_by_at_most_one(way, tmp_path):
    """A row without a code makes the codes of all others "1.0" in a CSV; they are still the codes that they were."""
    base = crowd()
    questions = [ask.count(by=name).on(SCHEMA, each_row()) for name in ("grade", "code", "group", "yes")]

    def counts(rows):
        with open_table(written(rows, way, tmp_path), schema=SCHEMA, unit=each_row()) as table:
            return [parts["count"] for parts in ask.read(table, questions)]

    before = counts(base)
    assert all(cells.sum() > 50 for cells in before)
    for odd in WORLDS:
        for now, then in zip(counts([*base, odd]), before, strict=True):
            assert abs(now - then).sum() <= 1, odd


def test_words_with_a_point_that_are_declared_stay_two_words():
    given = pd.DataFrame({"c": ["62", "62.0", "7.0", "7", "a.0"]})
    for words, expected in (
        (["62", "62.0", "7"], [1, 1, 1]),
        (["62", "7", "a"], [2, 2, 0]),
        (["a", "b"], [0, 0]),
    ):
        schema = Schema({"c": category(words)})
        for unit in (each_row(), people("c", at_most=1)):
            with open_table(given, schema=schema, unit=unit) as table:
                (parts,) = ask.read(table, [ask.count(by="c").on(schema, unit)], key=KEY)
            assert parts["count"].tolist() == expected


STORED = {
    "id": ["int16", "int64", "uint64", "double", "decimal(20,0)", "decimal(38,18)", "hugeint", "varchar",
           "double as varchar", "decimal(9,2) as varchar"],
    "x": ["tinyint", "bigint", "float", "double", "decimal(9,2)", "decimal(38,18)", "varchar", "double as varchar"],
    "n": ["utinyint", "bigint", "ubigint", "hugeint", "double", "decimal(38,18)", "varchar", "double as varchar"],
    "free": ["tinyint", "double", "float", "decimal(38,18)", "varchar", "double as varchar"],
    "code": ["tinyint", "ubigint", "double", "decimal(38,18)", "varchar", "double as varchar"],
    "grade": ["tinyint", "ubigint", "double", "decimal(38,18)", "varchar", "double as varchar"],
    "yes": ["boolean", "tinyint", "double", "decimal(9,2)", "varchar", "boolean as varchar", "double as varchar"],
    "day": ["date", "timestamp", "timestamp_s", "timestamp_ns", "timestamptz", "varchar", "timestamp as varchar"],
    "group": ["varchar", "enum('c', 'z', 'b', 'a')"],
    "word": ["varchar", "enum('w', 'v')"],
}  # fmt: skip


def stored(rows, types):
    """A table of DuckDB with each column in a type, by way of another where it is said."""
    import ibis

    connection = ibis.duckdb.connect()
    connection.raw_sql("SET TimeZone = 'UTC'")
    connection.con.register("given", pa.Table.from_pylist(rows))
    casts = []
    for name in rows[0]:
        *first, last = types.get(name, STORED[name][0]).split(" as ")
        made = f'"{name}"'
        for one in [*first, last]:
            made = f"CAST({made} AS {one})"
        casts.append(f'{made} AS "{name}"')
    connection.raw_sql(f"CREATE TABLE t AS SELECT {', '.join(casts)} FROM given")
    return connection.table("t")


@pytest.mark.parametrize(("portable", "narrow"), WAYS)
def test_the_type_of_a_column_changes_nothing(portable, narrow, monkeypatch):
    monkeypatch.setattr(bounding, "NARROW", narrow)
    rows = crowd(people=25)
    for by in ((), ("group", "n")) if not narrow else ((),):
        before = kept(stored(rows, {}), portable=portable, by=by)
        for i in range(1, max(map(len, STORED.values()))):
            types = {name: ways[(i + k) % len(ways)] for k, (name, ways) in enumerate(STORED.items())}
            assert kept(stored(rows, types), portable=portable, by=by) == before, types


@pytest.mark.parametrize(("portable", "narrow"), WAYS)
def test_undeclared_columns_the_order_of_rows_and_what_is_asked_change_nothing(portable, narrow, monkeypatch):
    monkeypatch.setattr(bounding, "NARROW", narrow)
    rows = crowd()
    before = kept(pd.DataFrame(rows), portable=portable)
    more = pd.DataFrame([{"secret": i % 7, **row} for i, row in enumerate(rows)])
    assert kept(more[::-1], portable=portable) == before
    unit, states = people("id", at_most=2), []
    for statistics in ([ask.count()], [ask.count(), ask.sum("x"), ask.mean("n", by="group")]):
        questions = [s.on(SCHEMA, unit) for s in statistics]
        with open_table(more, schema=SCHEMA, unit=unit, portable=portable) as table:
            ask.read(table, questions, key=KEY)
            states.append(Counter(str(sorted(row.items())) for row in kept_rows(table, KEY)))
    assert states[0] == states[1]


def test_what_is_outside_of_the_declaration_is_as_good_as_its_declared_value():
    """Two tables with the same declared values keep the same rows, whatever was stored: clamped, missing, unlisted."""
    rows = crowd()
    other = [
        row | {
            "group": row["group"] if row["group"] in "abc" else "another",
            "code": row["code"] if 1 <= row["code"] <= 3 else 99,
            "x": -77 if row["x"] < 0 else row["x"],
        } for row in rows
    ]  # fmt: skip
    assert other != rows
    for portable, by in itertools.product((False, True), ((), ("group",))):
        assert kept(pd.DataFrame(rows), portable=portable, by=by) == kept(
            pd.DataFrame(other), portable=portable, by=by
        )


def test_two_versions_with_and_without_a_person_differ_in_that_person_alone(tmp_path):
    """All worlds of two versions: in each a person has no row, ordinary rows or odd ones; the others stay."""
    others = crowd(people=12)
    row = others[0]
    lives = [
        [], [row], [row | {"x": 2.5}], [row | {"x": None}, row | {"x": 1}, row], [row | {"n": 0.5}] * 3, [row] * 4
    ]  # fmt: skip
    for portable, at_most in ((False, 1), (True, 2)):
        unit = people("id", at_most=at_most)
        states = []
        for version, life in enumerate(lives):
            mine = [r | {"id": 500} for r in life]
            # Versions have people of their own besides: what is theirs is the same with and without the person.
            extra = [row | {"id": 900, "x": 0.5}] * (version % 2)
            found = kept(written([*others, *mine, *extra], "parquet", tmp_path), portable=portable, unit=unit)
            assert sum(of(found, 500).values()) == min(at_most, len(life)), version
            assert sum(of(found, 900).values()) == len(extra), version
            states.append(found - of(found, 500) - of(found, 900))
        assert all(state == states[0] for state in states)


def test_the_same_rows_of_a_person_are_kept_in_every_version_that_has_the_same_rows():
    """A change in a person's own rows changes at most that many of the kept ones: a row that comes displaces one."""
    mine = [{"id": 1, "n": n, "x": n / 4} for n in (1, 2, 3, 3, 4, 5)]
    schema = Schema({"n": integer(0, 9), "x": number(0, 9)})
    for portable, m in itertools.product((False, True), (1, 3)):
        unit = people("id", at_most=m)
        before = kept(pd.DataFrame(mine), portable=portable, unit=unit, schema=schema)
        for gone in range(len(mine)):
            fewer = pd.DataFrame(mine[:gone] + mine[gone + 1 :])
            after = kept(fewer, portable=portable, unit=unit, schema=schema)
            assert sum((before - after).values()) <= 1
            assert sum((after - before).values()) <= 1


def test_people_whose_ids_have_one_form_are_still_two_people():
    """In text "7", "07" and "7.0" are three people, whose rows are counted apart."""
    rows = [{"id": who, "n": i % 10} for who in ("7", "07", "7.0", "7e+0", " 7") for i in range(9)]
    schema = Schema({"n": integer(0, 9)})
    for portable in (False, True):
        found = Counter()
        with open_table(
            pd.DataFrame(rows), schema=schema, unit=people("id", at_most=2), portable=portable
        ) as table:
            for row in kept_rows(table, KEY):
                found[row["id"]] += 1
        assert found == Counter({"7": 2, "07": 2, "7.0": 2, "7e+0": 2, " 7": 2})


def test_rows_are_chosen_evenly():
    """Each of a person's rows has the same chance: no value is preferred for all people at once."""
    rows = [{"id": who, "n": i} for who in range(3000) for i in range(4)]
    schema = Schema({"n": integer(0, 9)})
    for portable in (False, True):
        unit = people("id", at_most=1)
        found = Counter()
        for row, n in kept(pd.DataFrame(rows), portable=portable, schema=schema, unit=unit).items():
            found[dict(row)["n"]] += n
        # 750 each; 160 is 6.7 standard deviations.
        assert all(abs(found[i] - 750) < 160 for i in range(4)), found


@pytest.mark.parametrize(("precision", "scale"), [(38, 37), (38, 18), (19, 18), (18, 17), (16, 15)])
def test_decimals_of_any_width_are_the_nearest_double(precision, scale):
    # Only those that the engine's own cast puts a step too high: errors of both signs could cancel in a sum.
    steps = 1 << 48
    rng = random.Random(4)
    exact = decimal.Context(prec=60)
    drawn = [decimal.Decimal(rng.randrange(10 ** (scale + 1))).scaleb(-scale, exact) for _ in range(4000)]
    connection = duckdb.connect()
    connection.register("drawn", pa.table({"x": pa.array(drawn, type=pa.decimal128(precision, scale))}))
    cast = connection.sql("select x::double, x::varchar from drawn").fetchall()
    values = [
        decimal.Decimal(text) for found, text in cast if round(found * steps) > round(float(text) * steps)
    ]
    assert values, "the engine's own cast would do"
    given = pa.table({"x": pa.array(values, type=pa.decimal128(precision, scale))})
    schema = Schema({"x": number(0, 10, spacing=Fraction(1, steps))})
    with open_table(given, schema=schema, unit=each_row()) as table:
        (parts,) = ask.read(table, [ask.sum("x").on(schema, each_row())])
    assert parts["sum"] == sum(round(float(v) * steps) for v in values)


@pytest.mark.parametrize("scale", [0, 1, 7, 14, 15])
def test_decimals_that_a_double_holds_need_no_detour_through_text(scale):
    rng = random.Random(5)
    exact = decimal.Context(prec=60)
    drawn = [decimal.Decimal(rng.randrange(10**15)).scaleb(-scale, exact) for _ in range(20_000)]
    connection = duckdb.connect()
    connection.register("drawn", pa.table({"x": pa.array(drawn, type=pa.decimal128(NARROW_DECIMAL, scale))}))
    cast = connection.sql("select x::double, x::varchar from drawn").fetchall()
    assert all(found == float(text) for found, text in cast)
