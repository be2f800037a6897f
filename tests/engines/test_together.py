"""What is read together is what is read alone, for every set of questions; and no one counts twice in either."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit.statistics as ask
from support.spark import needs_spark, session
from tacit.guarantees import people, rows
from tacit.sources import Schema, bins, category, date, flag, integer, number, open_table
from tacit.sources.axes import integers
from tacit.sources.query import run
from tacit.statistics.base import integer_map

KEY = b"an ordinary secret of the tests."
TYPES = [
    ("id", pa.int64()),
    ("ward", pa.int64()),
    ("state", pa.string()),
    ("age", pa.int64()),
    ("cost", pa.float64()),
    ("sick", pa.bool_()),
    ("day", pa.date32()),
    ("town", pa.string()),
]
SCHEMA = Schema(
    {
        "ward": category(list(range(1, 13))),
        "state": category(["CA", "NY", "TX"], missing="TX"),
        "age": integer(-40, 9),
        "cost": number(-3, 2),
        "sick": flag(),
        "day": date("2020-01-01", "2020-01-20"),
        "town": category(),
    }
)
FILTERS = [None, "age >= 0", "not sick", "state = 'CA' or cost < 0", "cost is missing", "age > 5 and sick"]
KEYS = ["ward", "state", "sick", "age", bins("age", 3), bins("cost", 4), bins("day", 2)]


def sample(n=150, seed=11):
    rng = random.Random(seed)

    def maybe(value):
        return None if rng.random() < 0.1 else value

    return [
        {
            "id": rng.randrange(n // 6),
            "ward": maybe(rng.randrange(0, 14)),
            "state": maybe(rng.choice(["CA", "NY", "TX", "ca", "ZZ"])),
            "age": maybe(rng.choice([2**60 + 1, -(2**60), *range(-3, 12)])),
            "cost": maybe(rng.choice([float("nan"), float("inf"), rng.uniform(-5, 5)])),
            "sick": maybe(rng.random() < 0.5),
            "day": maybe(18262 + rng.randrange(25)),
            "town": maybe(rng.choice(["x", "y", "z", "Y"])),
        }
        for _ in range(n)
    ]


def tabled(data):
    return pa.Table.from_pylist(data, schema=pa.schema(TYPES))


@st.composite
def statistics(draw, unit_is_people):
    where = draw(st.sampled_from(FILTERS))
    by = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique_by=lambda k: getattr(k, "column", k)))
    columns = by or ["state"]
    measured = draw(st.sampled_from(["age", "cost"]))
    of = draw(st.sampled_from(["rows", "people"])) if unit_is_people else "rows"
    unknown = draw(st.booleans())
    made = [
        lambda: ask.count(by=[*by, "town"] if unknown else by, where=where, of=of),
        lambda: ask.sum(measured, by=by, where=where),
        lambda: ask.mean(measured, by=[*by, "town"] if unknown else by, where=where),
        lambda: ask.variance("age", by=by, where=where),
        lambda: ask.proportion("age > 2", by=by, where=where),
        lambda: ask.ratio("cost", "age", by=by, where=where),
        lambda: ask.quantiles(
            "day", at=[0.5], by=[b for b in by if getattr(b, "column", b) != "day"], where=where
        ),
        lambda: ask.histogram(
            "cost", 5, by=[b for b in by if getattr(b, "column", b) != "cost"], where=where
        ),
        lambda: ask.contingency(columns, where=where),
        lambda: ask.margins(["state", "sick", "ward"], order=draw(st.integers(1, 2)), where=where),
        lambda: ask.hierarchy(["state", "sick"], where=where),
        lambda: ask.clamping_bounds("cost", where=where),
        lambda: ask.sparse_histogram(columns, where=where, of=of),
    ]
    return draw(st.sampled_from(made))()


def exactly(cells):
    """Everything that a reading says: keys, values, shapes and types."""
    out = []
    for one in cells:
        keys = None if one.keys is None else [(k.dtype, k.tolist()) for k in one.keys]
        out.append((keys, {a: (v.dtype, v.shape, v.tolist()) for a, v in one.values.items()}))
    return out


UNITS = {
    "rows": rows(),
    "people": people("id", at_most=12),
    "people in few groups": people("id", at_most=5, groups=2),
}


@pytest.fixture(scope="module")
def opened_tables():
    data = tabled(sample())
    tables = {name: open_table(data, schema=SCHEMA, unit=unit) for name, unit in UNITS.items()}
    yield tables
    for table in tables.values():
        table.close()


@pytest.mark.parametrize("name", UNITS)
def test_together_is_alone(name, opened_tables):
    unit, table = UNITS[name], opened_tables[name]
    alone = {}

    @given(st.lists(statistics(unit_is_people=name != "rows"), min_size=2, max_size=5))
    @settings(max_examples=20)
    def check(asked):
        questions = [s.on(SCHEMA, unit) for s in asked]
        for question, cells in zip(questions, ask.read_cells(table, questions, key=KEY), strict=True):
            if question.statistic not in alone:
                alone[question.statistic] = exactly(ask.read_cells(table, [question], key=KEY)[0])
            assert exactly(cells) == alone[question.statistic], question.statistic

    check()


TOGETHER = [
    ask.count(),
    ask.count(by="ward"),
    ask.count(of="people"),
    ask.count(of="people", by="ward"),
    ask.count(of="people", by="state", where="age >= 0"),
    ask.sum("cost", by=["state", "ward"]),
    ask.sparse_histogram(["state", "ward"], where="sick"),
    ask.sparse_histogram(["state", "ward"], where="not sick"),
    ask.sparse_histogram(["state", "ward"], of="people"),
    ask.count(by="town", where="age > 5 and sick"),
    ask.mean("age", by="town"),
    ask.margins(["state", "sick"]),
    ask.quantiles("age", at=[0.5]),
    ask.clamping_bounds("cost"),
]


@pytest.mark.slow
@needs_spark
@pytest.mark.parametrize(("name", "part"), [("people", 0), ("people in few groups", 1)])
def test_together_is_alone_on_spark(name, part):
    """All at once, and every second one by itself."""
    unit = UNITS[name]
    session()
    with open_table(tabled(sample(80)), schema=SCHEMA, unit=unit, engine="spark") as table:
        questions = [s.on(SCHEMA, unit) for s in TOGETHER]
        together = ask.read_cells(table, questions, key=KEY)
        for question, cells in list(zip(questions, together, strict=True))[part::2]:
            assert exactly(cells) == exactly(ask.read_cells(table, [question], key=KEY)[0]), (
                question.statistic
            )


def test_one_person_is_one_in_every_plan():
    """Twelve rows of one person in twelve wards: alone and beside a count by ward they are one person."""
    unit = people("id", at_most=12)
    data = [{"id": 1, "ward": w} for w in range(1, 13)]
    asked = [ask.count(), ask.count(by="ward"), ask.count(of="people")]
    with open_table(tabled(data), schema=SCHEMA, unit=unit) as table:
        for plan in (asked, asked[::-1], [asked[1], asked[2], asked[0]], [asked[2]]):
            read = ask.read(table, [s.on(SCHEMA, unit) for s in plan], key=KEY)
            people_counts = [r["count"] for s, r in zip(plan, read, strict=True) if s.of == "people"]
            assert people_counts == [1]


def test_a_cell_of_one_sparse_histogram_is_not_one_of_another():
    data = [{"ward": 1, "sick": True}, {"ward": 2, "sick": False}, {"ward": 3, "sick": None}]
    asked = [ask.sparse_histogram("ward", where=w).on(SCHEMA, rows()) for w in ("sick", "not sick")]
    with open_table(tabled(data), schema=SCHEMA, unit=rows()) as table:
        found = [q.occupied(c) for q, c in zip(asked, ask.read_cells(table, asked), strict=True)]
    assert [(k.tolist(), n.tolist()) for k, n in found] == [([0], [1]), ([1], [1])]


def test_sums_over_rows_share_a_pass_and_people_do_not():
    """One pass where one grouping contains the others, as long as only sums over rows are added up."""
    unit = people("id", at_most=3)
    with open_table(tabled(sample(40)), schema=SCHEMA, unit=unit) as table:

        def passes(*asked):
            table.prepared.clear()
            run(table, [r for s in asked for r in s.on(SCHEMA, unit).requests], key=KEY)
            return len(table.prepared)

        assert passes(ask.count(), ask.count(by="ward"), ask.sum("age", by=["ward", "state"])) == 1
        assert passes(ask.count(by="ward"), ask.count(by="ward", of="people")) == 1
        assert passes(ask.count(by="ward", of="people"), ask.count(), ask.sum("age", by="ward")) == 1
        assert passes(ask.count(by="ward", of="people"), ask.count(by="state")) == 2
        assert passes(ask.count(), ask.count(by="ward"), ask.count(of="people")) == 2


def test_a_key_that_nobody_behind_the_filter_has_is_not_there():
    data = [{"town": "x", "sick": True}, {"town": "y", "sick": False}]
    question = ask.count(by="town", where="sick").on(SCHEMA, rows())
    with open_table(tabled(data), schema=SCHEMA, unit=rows()) as table:
        (cells,) = ask.read_cells(table, [question])[0]
    assert [k.tolist() for k in cells.keys] == [["x"]]
    # Beside a question without the filter the rows are read unfiltered, and each question keeps its own keys.
    everybody = ask.count(by="town").on(SCHEMA, rows())
    with open_table(tabled(data), schema=SCHEMA, unit=rows()) as table:
        read = ask.read_cells(table, [question, everybody])
    assert [sorted(cells.keys[0].tolist()) for (cells,) in read] == [["x"], ["x", "y"]]


@pytest.mark.parametrize("value", [0, 5, 2**40])
def test_types_of_integers_come_from_the_declaration(value):
    """The same dtype whatever the rows hold: narrow where 2^40 rows cannot leave 64 bits, else Python's integers."""
    schema = Schema({"a": integer(0, 2**40), "b": integer(-5, 5), "c": integer(-(2**40), 7)})
    asked = [ask.sum("a"), ask.mean("a"), ask.sum("b"), ask.mean("b"), ask.sum("c"), ask.variance("b")]
    table = pa.table({n: pa.array([value] * 3, pa.int64()) for n in "abc"})
    with open_table(table, schema=schema, unit=rows()) as opened:
        read = ask.read(opened, [s.on(schema, rows()) for s in asked])
    kinds = [{str(v.dtype) for v in parts.values()} for parts in read]
    assert kinds == [{"object"}, {"object"}, {"int64"}, {"int64"}, {"object"}, {"object"}]
    assert all(isinstance(np.asarray(parts[p]).item(), int) for parts in read for p in parts)
    assert integer_map(np.zeros(2, dtype=np.int64), 1 << 30).dtype == object
    assert integer_map(np.zeros(2, dtype=np.int64), 1 << 20).dtype == np.int64


def test_wide_integers_are_pythons_own_whatever_they_are():
    """By the declaration alone: small values in a wide column, and values beyond 64 bits."""
    small = integers(pa.array([1, None, -3], pa.int64()), wide=True)
    assert small.dtype == object
    assert small.tolist() == [1, 0, -3]
    large = integers(pa.array([2**64, -(2**70)], pa.decimal128(38, 0)), wide=True)
    assert large.tolist() == [2**64, -(2**70)]
    assert integers(pa.array([5], pa.int32()), wide=False).dtype == np.int64
