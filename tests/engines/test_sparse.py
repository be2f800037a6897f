"""Occupied cells from the engine equal those of a plain loop, in domains of any size; and through the mechanism."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import tacit.statistics as ask
from engines.test_against_naive import FILLED, KEY, PLAIN, TYPES, sample
from support.naive import parts
from support.shared import shared
from tacit.guarantees import people, rows
from tacit.noise import SeededSource
from tacit.reproduce.hall_2 import MILDEW, MILDEW_CELLS, NLTCS, NLTCS_CELLS
from tacit.sources import Schema, bins, category, flag, integer, open_table
from tacit.sources.axes import codes_of

STATISTICS = [
    ask.sparse_histogram("state"),
    ask.sparse_histogram(["state", "ward", "sick"]),
    ask.sparse_histogram(["state", "age", bins("cost", 7), "visits"], where="age >= 18 and not sick"),
    ask.sparse_histogram([bins("day", 9), bins("age", [0, 18, 65, 99]), "ward"]),
    ask.sparse_histogram(["sick", "state"], impossible=[{"state": ["CA", "TX"], "sick": True}]),
]


def found(question, cells) -> dict[tuple[int, ...], int]:
    keys, counts = question.occupied(cells)
    codes = codes_of(keys, question.axes)
    return dict(zip(zip(*(c.tolist() for c in codes), strict=True), (int(c) for c in counts), strict=True))


@pytest.mark.parametrize("schema", [PLAIN, FILLED], ids=["plain", "filled"])
def test_occupied_cells(opened, schema) -> None:
    data = sample(400)
    questions = [s.on(schema, rows()) for s in STATISTICS]
    with opened(data, TYPES, schema=schema, unit=rows()) as table:
        for question, cells in zip(questions, ask.read_cells(table, questions), strict=True):
            assert found(question, cells) == parts(question, data)["count"], question.statistic
            assert question.integers(cells)["count"].sum() == sum(parts(question, data)["count"].values())


def test_dense_and_sparse_questions_side_by_side() -> None:
    """One reading answers both kinds over the same columns, and repeated questions share a pass."""
    data = sample(300)
    dense = ask.contingency(["state", "sick"]).on(PLAIN, rows())
    sparse = ask.sparse_histogram(["state", "sick"]).on(PLAIN, rows())
    table = pa.Table.from_pylist(data, schema=pa.schema(TYPES))
    with open_table(table, schema=PLAIN, unit=rows()) as opened:
        answers = ask.read_cells(opened, [dense, sparse, sparse])
    full = dense.integers(answers[0])["count"]
    assert found(sparse, answers[1]) == {c: int(full[c]) for c in np.ndindex(3, 2) if full[c]}
    assert found(sparse, answers[2]) == found(sparse, answers[1])


def test_people_are_bounded_first(opened) -> None:
    data = sample(300)
    unit = people("id", at_most=2, groups=1)
    questions = [ask.sparse_histogram(["state", "age"], of=of).on(PLAIN, unit) for of in ("rows", "people")]
    with opened(data, TYPES, schema=PLAIN, unit=unit) as table:
        by_rows, by_people = (
            found(q, c) for q, c in zip(questions, ask.read_cells(table, questions, key=KEY), strict=True)
        )
    assert set(by_rows) == set(by_people)
    assert all(by_people[c] <= by_rows[c] <= 2 * by_people[c] for c in by_rows)
    assert sum(by_people.values()) <= len({r["id"] for r in data})


def wide_table(n: int, columns: int, seed: int = 3):
    rng = random.Random(seed)
    names = [f"q{i:03d}" for i in range(columns)]
    kinds = [rng.getrandbits(columns) for _ in range(20)]
    data = []
    for _ in range(n):
        bits = rng.choice(kinds)
        data.append({name: bool(bits >> i & 1) for i, name in enumerate(names)})
    return Schema({name: flag() for name in names}), data


@pytest.mark.parametrize("columns", [30, 70, 200])
def test_domains_beyond_every_machine_word(columns) -> None:
    schema, data = wide_table(500, columns)
    question = ask.sparse_histogram(list(schema)).on(schema, rows())
    table = pa.Table.from_pylist(data)
    with open_table(table, schema=schema, unit=rows()) as opened:
        cells = ask.read_cells(opened, [question])[0]
    expected: dict = {}
    for row in data:
        cell = tuple(int(row[c]) for c in schema)
        expected[cell] = expected.get(cell, 0) + 1
    assert found(question, cells) == expected
    mechanism = question.mechanism(epsilon=20, rule="floor")
    out = mechanism.release(*question.occupied(cells), source=SeededSource(seed=1))
    labels = question.labels(out.keys)
    shown = {tuple(int(labels[c][i]) for c in schema): int(v) for i, v in enumerate(out.values)}
    large = {c for c, n in expected.items() if n > mechanism.threshold + 20}
    assert large <= set(shown) or columns == 200


def test_long_lists_are_matched_outside_the_engine(opened) -> None:
    """Lists of more values than a CASE should have, of words and of numbers."""
    rng = random.Random(5)
    words, numbers = [f"w{i}" for i in range(300)], list(range(0, 900, 3))
    data = [
        {
            "word": rng.choice([*words[:40], "other", None]),
            "code": rng.choice([*numbers[:30], 1, None]),
            "n": rng.randrange(4),
        }
        for _ in range(500)
    ]
    types = [("word", pa.string()), ("code", pa.int64()), ("n", pa.int64())]
    schema = Schema(
        {"word": category(words), "code": category(numbers), "n": integer(0, 2, outside="missing")}
    )
    question = ask.sparse_histogram(["n", "word", "code", "n"][:3]).on(schema, rows())
    with opened(data, types, schema=schema, unit=rows()) as table:
        cells = ask.read_cells(table, [question])[0]
    assert found(question, cells) == parts(question, data)["count"]


@pytest.mark.parametrize("empty", ["no rows", "all missing"])
def test_nothing_to_count(opened, empty) -> None:
    data = [] if empty == "no rows" else [dict.fromkeys([n for n, _ in TYPES]) for _ in range(5)]
    questions = [s.on(PLAIN, rows()) for s in STATISTICS]
    with opened(data, TYPES, schema=PLAIN, unit=rows()) as table:
        for question, cells in zip(questions, ask.read_cells(table, questions), strict=True):
            keys, counts = question.occupied(cells)
            assert keys.size == counts.size == 0
            question.mechanism(epsilon=1).release(keys, counts, source=SeededSource(seed=1))


def test_another_engine() -> None:
    import ibis

    data = sample(300)
    relation = ibis.polars.connect().create_table("t", pa.Table.from_pylist(data, schema=pa.schema(TYPES)))
    questions = [s.on(PLAIN, rows()) for s in STATISTICS]
    with open_table(relation, schema=PLAIN, unit=rows()) as table:
        for question, cells in zip(questions, ask.read_cells(table, questions), strict=True):
            assert found(question, cells) == parts(question, data)["count"]


@pytest.mark.parametrize(
    ("name", "file", "cells", "counts"),
    [
        ("nltcs", "data/nltcs/nltcs.csv", NLTCS_CELLS, NLTCS),
        ("mildew", "data/mildew/mildew_records.csv", MILDEW_CELLS, MILDEW),
    ],
)
def test_published_tables_have_the_counts_that_are_kept(name, file, cells, counts) -> None:
    """From the rows, through the engine: how many cells hold each count, and then a release."""
    path = shared(file)
    columns = (
        [f"v{i}" for i in range(1, 17)]
        if name == "nltcs"
        else ["la10", "locc", "mp58", "c365", "p53a", "a367"]
    )
    schema = Schema({c: flag() if name == "nltcs" else integer(1, 2) for c in columns})
    question = ask.sparse_histogram(columns).on(schema, rows(neighbours="replace-one"))
    assert question.domain == cells
    with open_table(path, schema=schema, unit=rows(neighbours="replace-one")) as table:
        keys, found = question.occupied(ask.read_cells(table, [question])[0])
    assert Counter(found.tolist()) == Counter(counts)
    out = question.mechanism(epsilon=1).release(keys, found, source=SeededSource(seed=1))
    largest = keys[np.argmax(found)]
    assert abs(int(out.values[out.keys == largest][0]) - int(found.max())) < 60
