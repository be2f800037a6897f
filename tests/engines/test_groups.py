"""people(..., groups=g) limits the keys of `by=` and nothing else, and every sensitivity holds behind the engine."""

from __future__ import annotations

import itertools
import random
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest

import tacit.statistics as ask
from fuzz.quick import sped_up
from support.naive import parts
from tacit.guarantees import people
from tacit.sources import Schema, bins, category, integer, open_table

KEY = b"0123456789abcdef-secret"
SCHEMA = Schema({"state": category(["a", "b"]), "age": integer(0, 3), "town": category()})
TYPES = [("id", pa.string()), ("state", pa.string()), ("age", pa.int64()), ("town", pa.string())]
ROWS = [
    {"state": "a", "age": 0, "town": "x"},
    {"state": "a", "age": 3, "town": "y"},
    {"state": "b", "age": 1, "town": "x"},
    {"state": "b", "age": 3, "town": "y"},
]
SPREAD = {
    "histogram": ask.histogram("age", 4),
    "histogram of two bins": ask.histogram("age", [0, 2, 3]),
    "histogram of keys": ask.histogram("state"),
    "contingency": ask.contingency(["state", bins("age", 2)]),
    "quantiles": ask.quantiles("age", at=[0.5]),
    "margins": ask.margins(["state", "age"]),
    "hierarchy": ask.hierarchy(["state", "age"]),
}
"""Statistics over the whole table: their cells are no groups."""
GROUPED = {
    "count": ask.count(by="state"),
    "count of bins": ask.count(by=bins("age", 2)),
    "sum": ask.sum("age", by="state"),
    "mean": ask.mean("age", by="state"),
    "histogram by": ask.histogram("age", 4, by="state"),
    "quantiles by": ask.quantiles("age", at=[0.5], by="state"),
}
COUNTED = {
    "people": ask.count(of="people", by=["state", "age"]),
    "sparse people": ask.sparse_histogram(["state", "age"], of="people"),
    "sparse rows": ask.sparse_histogram(["state", "age"]),
    "unknown keys": ask.count(by="town"),
    "unknown keys of a histogram": ask.histogram("town"),
    "unknown keys by bins": ask.histogram("age", 4, by="town"),
}
"""Here a sensitivity or a threshold rests on the limit, over all axes."""
ALL = SPREAD | GROUPED | COUNTED


def engine_parts(data, questions, unit, *, portable=False, engine=None):
    """The integers of each question behind the engine's own bounding, by part and cell."""
    table = pa.Table.from_pylist(data, schema=pa.schema(TYPES))
    with (
        sped_up() if engine is None else nullcontext(),
        open_table(table, schema=SCHEMA, unit=unit, portable=portable, engine=engine) as opened,
    ):
        answers = ask.read_cells(opened, questions, key=KEY)
    return [cells_of(q, c) for q, c in zip(questions, answers, strict=True)]


def cells_of(question, answer):
    first = answer[0]
    if first.keys is not None:
        names = list(zip(*(k.tolist() for k in first.keys), strict=True))
        values = question.integers(answer)
        out = {p: dict(zip(names, v.ravel().tolist(), strict=True)) for p, v in values.items()}
        if question.support is not None:
            out["support"] = dict(zip(names, first.values[question.support].tolist(), strict=True))
        return out
    return {
        p: {c: int(v[c]) for c in np.ndindex(v.shape) if v[c]} for p, v in question.integers(answer).items()
    }


def largest(found, part, neighbours):
    cells = sorted({c for f in found for c in f[part]}, key=str)
    table = np.array([[f[part].get(c, 0) for c in cells] for f in found], dtype=np.int64)
    empty = np.zeros_like(table[:1])
    other = table if neighbours == "replace-one" else empty
    size = np.abs((table[:, None, :] - other[None, :, :]).reshape(-1, table.shape[1]))
    return [int(x.max(initial=0)) for x in (size.sum(1), (size**2).sum(1), size)]


@pytest.mark.parametrize("portable", [False, True])
def test_every_sensitivity_holds_behind_the_engine_for_all_tiny_people(portable):
    """One person with any rows at all, more than allowed too: what the engine keeps of them moves as claimed.

    What others add does not enter: each of these integers is a sum over people, and bounding looks at one at a time.
    """
    found = {neighbours: [] for neighbours in ("add-or-remove", "replace-one")}
    units = {n: people("id", at_most=2, groups=1, neighbours=n) for n in found}
    questions = {n: [s.on(SCHEMA, u) for s in ALL.values()] for n, u in units.items()}
    for size in range(4):
        for chosen in itertools.combinations_with_replacement(ROWS[1:], size):
            data = [{**r, "id": "me"} for r in chosen]
            here = engine_parts(data, questions["add-or-remove"], units["add-or-remove"], portable=portable)
            found["add-or-remove"].append(here)
            found["replace-one"].append(here)
    for neighbours, asked in questions.items():
        for i, (name, question) in enumerate(zip(ALL, asked, strict=True)):
            claims = dict(question.sensitivities)
            if question.support is not None:
                claims["support"] = question.support_sensitivity
            for part, m in claims.items():
                moved = largest([f[i] for f in found[neighbours]], part, neighbours)
                claimed = [m.l1, m.l2_squared, m.linf]
                assert all(a <= b for a, b in zip(moved, claimed, strict=True)), (name, part, neighbours)
                if name in SPREAD or name in COUNTED:
                    assert moved == claimed, (name, part, neighbours)


def crowd(seed=5):
    rng = random.Random(seed)
    data = [{**rng.choice(ROWS), "id": f"p{i % 40}"} for i in range(120)]
    data += [{"id": "p3", "state": None, "age": None, "town": None}, {"id": None, **ROWS[0]}]
    return data


def test_only_named_groups_lose_rows(opened):
    """No person has more rows than allowed, so what is missing is missing for the limit on groups alone."""
    data, unit = crowd(), people("id", at_most=9, groups=1)
    questions = [s.on(SCHEMA, unit) for s in (*SPREAD.values(), *GROUPED.values())]
    with opened(data, TYPES, schema=SCHEMA, unit=unit) as table:
        answers = ask.read_cells(table, questions, key=KEY)
    known = [r for r in data if r["id"] is not None]
    for name, question, answer in zip([*SPREAD, *GROUPED], questions, answers, strict=True):
        here, whole = question.integers(answer), parts(question, known, "id")
        for part, values in here.items():
            total = sum(whole[part].values())
            if name in SPREAD:
                assert values.sum() == total, (name, part)
            else:
                assert 0 < values.sum() < total, (name, part)
    counts = [
        q.integers(a)["counts"]
        for q, a in zip(questions, answers, strict=True)
        if "counts" in q.sensitivities
    ]
    assert counts[1].sum() < counts[0].sum()


def test_within_a_group_all_rows_of_a_person_are_in_the_histogram():
    """Somebody whose values lie in many bins of one state keeps them all; the other state goes as a whole."""
    data = [{"id": "me", "state": s, "age": a, "town": "x"} for s in "ab" for a in range(4)]
    unit = people("id", at_most=8, groups=1)
    questions = [s.on(SCHEMA, unit) for s in (GROUPED["histogram by"], GROUPED["quantiles by"])]
    for found in engine_parts(data, questions, unit):
        (counts,) = found.values()
        assert sorted({c[0] for c in counts}) in ([0], [1])
        assert sum(counts.values()) == 4


def test_the_columns_that_are_limited_are_named():
    unit = people("id", at_most=2, groups=1)
    named = {name: s.on(SCHEMA, unit).limited for name, s in ALL.items()}
    assert all(named[name] == () for name in SPREAD)
    assert ask.clamping_bounds("age").on(SCHEMA, unit).limited == ()
    assert named["histogram by"] == named["quantiles by"] == named["count"] == ("state",)
    assert named["people"] == named["sparse rows"] == ("state", "age")
    assert named["unknown keys by bins"] == ("town", "age")
    for plain in (people("id", at_most=2), people("id", at_most=2, groups=2)):
        assert ask.count(by="state").on(SCHEMA, plain).limited == ()
