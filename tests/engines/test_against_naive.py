"""The engine's integers equal those of a plain loop over the rows, for every statistic and every form of table."""

from __future__ import annotations

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest

import tacit.statistics as ask
from support.naive import parts
from tacit.errors import BadData
from tacit.guarantees import people, rows
from tacit.sources import Schema, bins, category, date, flag, integer, number, open_table

KEY = b"an ordinary secret of the tests."
TYPES = [
    ("id", pa.int64()),
    ("state", pa.string()),
    ("ward", pa.int32()),
    ("age", pa.int64()),
    ("cost", pa.float64()),
    ("visits", pa.int16()),
    ("sick", pa.bool_()),
    ("day", pa.date32()),
]
PLAIN = Schema(
    {
        "state": category(["CA", "NY", "TX"]),
        "ward": category([1, 2, 7]),
        "age": integer(0, 99),
        "cost": number(-50, 1000),
        "visits": integer(1, 20),
        "sick": flag(),
        "day": date("2020-01-01", "2020-03-31"),
    }
)
FILLED = Schema(
    {
        "state": category(["CA", "NY", "TX"], missing="TX"),
        "ward": category([1, 2, 7], missing=7),
        "age": integer(10, 60, missing=30),
        "cost": number(0, 100, spacing=0.5, missing=12.25, outside="missing"),
        "visits": integer(1, 5, outside="missing"),
        "sick": flag(missing=True),
        "day": date("2020-01-15", "2020-03-01", missing="2020-02-01"),
    }
)
STATISTICS = [
    ask.count(),
    ask.count(by="state"),
    ask.count(by=["state", "ward", "sick"], where="age >= 18 and not (cost > 500 or sick)"),
    ask.count(where="state != 'CA' and day between '2020-01-20' and '2020-02-28'"),
    ask.count(where="cost is missing or visits in (1, 2, 3) or ward = 7"),
    ask.histogram("age", [0, 18, 65, 99]),
    ask.histogram("cost", 7, by="state"),
    ask.histogram("day", 3),
    ask.histogram("day", ["2020-01-20", "2020-02-10", "2020-02-20"]),
    ask.contingency(["state", bins("age", 4), "sick"]),
    ask.margins(["state", "ward", "sick"], order=2, where="age > 20"),
    ask.sum("cost"),
    ask.sum("cost", by="ward", where="sick"),
    ask.sum("visits", by="state"),
    ask.sum("sick"),
    ask.mean("cost", by="state"),
    ask.mean("day"),
    ask.mean("sick", by="ward"),
    ask.variance("cost", by="state"),
    ask.standard_deviation("age", where="cost < 100"),
    ask.proportion("sick", by="state"),
    ask.proportion("cost >= 10 and age < 50"),
    ask.ratio("cost", "visits", by="state", where="not sick"),
    ask.quantiles("age", by="state"),
    ask.quantiles("cost", resolution=300),
    ask.quantiles("day", at=[0.5]),
]


def sample(n, seed=7):
    rng = random.Random(seed)

    def maybe(value, chance=0.1):
        return None if rng.random() < chance else value

    return [
        {
            "id": rng.randrange(n // 3 + 1),
            "state": maybe(rng.choice(["CA", "NY", "TX", "ZZ"])),
            "ward": maybe(rng.choice([1, 2, 3, 7])),
            "age": maybe(rng.choice([-(2**62), -1, 0, 17, 18, 40, 64, 65, 99, 2**62, rng.randrange(120)])),
            "cost": maybe(rng.choice([float("nan"), float("inf"), -1e300, 0.1, 12.25, rng.gauss(100, 300)])),
            "visits": maybe(rng.randrange(0, 22)),
            "sick": maybe(rng.random() < 0.4),
            "day": maybe(datetime.date(2019, 12, 1) + datetime.timedelta(days=rng.randrange(150))),
        }
        for _ in range(n)
    ]


def check(question, seen, data, person=None):
    expected = parts(question, data, person)
    for part in question.parts:
        array = seen[part.name]
        assert array.shape == tuple(a.size for a in part.axes)
        dense = np.zeros(array.shape, dtype=object)
        for cell, value in expected[part.name].items():
            dense[cell] = value
        assert (array == dense).all(), (question.statistic, part.name)


@pytest.mark.parametrize("schema", [PLAIN, FILLED], ids=["plain", "filled"])
def test_all_statistics_in_one_go(opened, schema):
    data = sample(400)
    questions = [s.on(schema, rows()) for s in STATISTICS]
    with opened(data, TYPES, schema=schema, unit=rows()) as table:
        for question, seen in zip(questions, ask.read(table, questions), strict=True):
            check(question, seen, data)


WEIGHTED = [
    ask.mean("age", survey_weight="visits", by="state"),
    ask.mean("cost", survey_weight="visits", where="not sick"),
    ask.proportion("sick", survey_weight="visits", by="ward"),
    ask.count(survey_weight="visits", by="sick"),
    ask.sum("cost", survey_weight="age"),
    ask.ratio("cost", "age", survey_weight="visits", by="state"),
    ask.rate("sick", "visits", by="state"),
    ask.rate("sick", "age", standard={"state": {"CA": 1, "NY": 2, "TX": 3}}),
    ask.mean("cost"),
    ask.proportion("sick"),
]


@pytest.mark.parametrize("schema", [PLAIN, FILLED], ids=["plain", "filled"])
def test_sums_of_products(opened, schema):
    """The same integers on every engine, as the definition says: the parts of estimates for a population."""
    data = sample(120, seed=9)
    questions = [s.drawn(schema, rows()) for s in WEIGHTED]
    with opened(data, TYPES, schema=schema, unit=rows()) as table:
        for question, seen in zip(questions, ask.read(table, questions), strict=True):
            check(question, seen, data)


def test_rows_above_the_bound(opened):
    """Stored values above the bound, NaN and missing ones not among them."""
    data = sample(300, seed=10)
    schema = Schema({**PLAIN, "cost": number(0, 100)})
    question = ask.mean("cost", by="state", beyond={"pareto": 2}).drawn(schema, rows())
    with opened(data, TYPES, schema=schema, unit=rows()) as table:
        (seen,) = ask.read(table, [question])
    states = ["CA", "NY", "TX"]
    wanted = [
        sum(r["state"] == s and r["cost"] is not None and r["cost"] > 100 for r in data) for s in states
    ]
    assert (seen["outside"] // question.details["steps"]).tolist() == wanted


@pytest.mark.parametrize("empty", ["no rows", "all missing"])
def test_nothing_to_count(opened, empty):
    data = [] if empty == "no rows" else [dict.fromkeys([n for n, _ in TYPES]) for _ in range(5)]
    questions = [s.on(PLAIN, rows()) for s in STATISTICS]
    with opened(data, TYPES, schema=PLAIN, unit=rows()) as table:
        for question, seen in zip(questions, ask.read(table, questions), strict=True):
            check(question, seen, data)
            assert np.isfinite(question.assemble(seen)).all() or isinstance(question.statistic, ask.Ratio)


def test_people_are_bounded_and_counted(opened):
    data = sample(300)
    unit = people("id", at_most=2)
    with opened(data, TYPES, schema=PLAIN, unit=unit) as table:
        questions = [
            s.on(PLAIN, unit)
            for s in [ask.count(), ask.count(of="people"), ask.count(by="state", of="people")]
        ]
        total, persons, by_state = (q["count"] for q in ask.read(table, questions, key=KEY))
    held = {}
    for r in data:
        held[r["id"]] = held.get(r["id"], 0) + 1
    assert total == sum(min(2, n) for n in held.values())
    assert persons == len(held)
    assert by_state.sum() <= total


def test_unknown_keys_come_with_their_support(opened):
    data = sample(300)
    schema = Schema({**PLAIN, "state": category()})
    unit = people("id", at_most=100)
    question = ask.mean("age", by=["state", "sick"]).on(schema, unit)
    assert not question.known_keys
    with opened(data, TYPES, schema=schema, unit=unit) as table:
        cells = ask.read_cells(table, [question], key=KEY)[0]
    support: dict = {}
    for r in data:
        if r["state"] is not None and r["sick"] is not None:
            support.setdefault((r["state"], r["sick"]), set()).add(r["id"])
    found = dict(zip(zip(*cells[0].keys, strict=True), cells[0].values[question.support], strict=True))
    assert found == {k: len(v) for k, v in support.items()}
    above = question.integers(cells)["above"]
    expected = parts(question, data)["above"]
    assert {(k[0], bool(k[1])): v for k, v in expected.items()} == dict(zip(found, above, strict=True))


def test_another_engine_gives_the_same_integers_or_a_clear_no():
    """Ibis on Polars: the portable forms of casts, rounding and sums. It has no windows, so people are refused."""
    import ibis

    data = sample(300)
    relation = ibis.polars.connect().create_table("t", pa.Table.from_pylist(data, schema=pa.schema(TYPES)))
    questions = [s.on(PLAIN, rows()) for s in STATISTICS]
    with open_table(relation, schema=PLAIN, unit=rows()) as table:
        assert table.engine == "polars"
        for question, seen in zip(questions, ask.read(table, questions), strict=True):
            check(question, seen, data)
    # Known from the engine alone, so that it is said before anything is paid.
    with pytest.raises(BadData, match="cannot put a person's rows in order"):
        open_table(relation, schema=PLAIN, unit=people("id", at_most=2))
