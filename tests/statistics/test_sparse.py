"""Sparse histograms as statistics: keys, impossible cells, what one unit can do, and bad input."""

from __future__ import annotations

import datetime
import itertools
import math
import random

import numpy as np
import pytest

import tacit.statistics as ask
from tacit.errors import (
    EmptyComposition,
    InvalidInput,
    InvalidParameter,
    MissingBounds,
    TooManyCells,
    UnitMismatch,
    UnknownName,
    WrongType,
)
from tacit.guarantees import group_of, people, rows
from tacit.mechanisms import L1, KeysOfAUnit
from tacit.mechanisms.sparse_keys import combine_codes, key_integers
from tacit.sources import Schema, bins, category, date, flag, integer, number
from tacit.sources.axes import codes_of, encode, labels_of

SCHEMA = Schema(
    {
        "state": category(["a", "b", "c"]),
        "age": integer(-1, 2),
        "cost": number(0, 100),
        "sick": flag(),
        "wide": integer(0, 10**9),
        "free": integer(),
        "word": category(),
    }
)
WIDE = Schema({f"q{i:03d}": flag(missing=False) for i in range(210)})


def test_keys_are_mixed_radix_numbers() -> None:
    question = ask.sparse_histogram(["state", "sick", "age"]).on(SCHEMA, rows())
    assert question.domain == question.cells == 24
    cells = np.array(list(itertools.product(range(3), range(2), range(4))))
    keys = encode(list(cells.T), question.axes)
    assert keys.tolist() == list(range(24))
    assert np.array(codes_of(keys, question.axes)).T.tolist() == cells.tolist()
    labels = labels_of(keys[[0, 23]], question.axes)
    assert {c: v.tolist() for c, v in labels.items()} == {
        "state": ["a", "c"],
        "sick": [False, True],
        "age": [-1, 2],
    }


@pytest.mark.parametrize("columns", [64, 65, 200])
def test_wide_keys_go_there_and_back(columns) -> None:
    question = ask.sparse_histogram(list(WIDE)[:columns]).on(WIDE, rows())
    assert question.domain == 2**columns
    rng = np.random.default_rng(columns)
    codes = [rng.integers(0, 2, size=50) for _ in range(columns)]
    keys = encode(codes, question.axes)
    assert [c.tolist() for c in codes_of(keys, question.axes)] == [c.tolist() for c in codes]
    value = sum(int(codes[i][7]) << (columns - 1 - i) for i in range(columns))
    assert int(key_integers(keys)[7]) == value


def test_impossible_cells_are_counted_exactly() -> None:
    """Inclusion and exclusion against a list of all cells."""
    patterns = [
        {"state": "a", "sick": True},
        {"state": ["a", "b"], "age": [0, 1]},
        {"age": 2},
    ]
    question = ask.sparse_histogram(["state", "sick", "age"], impossible=patterns).on(SCHEMA, rows())
    states, ages = ["a", "b", "c"], [-1, 0, 1, 2]
    barred = [
        (s == "a" and f) or (s in ("a", "b") and a in (0, 1)) or a == 2
        for s, f, a in itertools.product(states, [False, True], ages)
    ]
    assert question.impossible is not None
    assert question.impossible.count == sum(barred)
    assert question.impossible.holds(np.arange(24, dtype=np.uint64)).tolist() == barred
    mechanism = question.mechanism(epsilon=1)
    assert mechanism.cells == 24 - sum(barred)


UNITS = [
    (rows(), "rows", KeysOfAUnit(), 1),
    (rows(neighbours="replace-one"), "rows", KeysOfAUnit(), 2),
    (people("id", at_most=4), "rows", KeysOfAUnit(keys=4, each=4, total=4), 4),
    (people("id", at_most=4, groups=2), "rows", KeysOfAUnit(keys=2, each=4, total=4), 4),
    (people("id", at_most=4, groups=2), "people", KeysOfAUnit(keys=2, each=1), 2),
    (people("id", at_most=4, neighbours="replace-one"), "people", KeysOfAUnit(keys=4), 8),
    (group_of(rows(), size=3), "rows", KeysOfAUnit(keys=3, each=3, total=3), 3),
]


@pytest.mark.parametrize(("unit", "of", "contribution", "l1"), UNITS)
def test_what_one_unit_can_do(unit, of, contribution, l1) -> None:
    question = ask.sparse_histogram(["state", "wide"], of=of).on(SCHEMA, unit)
    assert question.contribution == contribution
    assert question.l1_sensitivity == L1(l1)
    mechanism = question.mechanism(epsilon=0.5)
    assert float(mechanism.noise.noise_scale) == 2 * l1
    assert mechanism.threshold == math.floor(2 * l1 * math.log(question.domain))
    if l1 <= 2:
        assert question.mechanism(epsilon=1, delta=1e-6).bound.delta_at(1.0) <= 1e-6


def test_described_in_plain_values() -> None:
    statistic = ask.sparse_histogram(["state", bins("cost", 4)], where="sick")
    assert statistic.to_dict()["kind"] == "sparse_histogram"
    assert statistic.to_dict()["where"] == "sick"


@pytest.mark.parametrize(
    ("columns", "more", "kind"),
    [
        ([], {}, EmptyComposition),
        (["state", "state"], {}, InvalidParameter),
        (["nobody"], {}, UnknownName),
        (["free"], {}, MissingBounds),
        (["word"], {}, MissingBounds),
        (["cost"], {}, WrongType),
        (["state"], {"of": "cats"}, UnknownName),
        (["state"], {"of": "people"}, UnitMismatch),
        (["state"], {"where": "nobody = 1"}, UnknownName),
        (["state"], {"impossible": [{"sick": True}]}, UnknownName),
        (["state"], {"impossible": [{"state": "z"}]}, InvalidParameter),
        (["state"], {"impossible": [{}]}, InvalidParameter),
        (["state"], {"impossible": [{"state": []}]}, EmptyComposition),
        (["state"], {"impossible": [{"state": ["a", "b", "c"]}]}, InvalidParameter),
        (["state"], {"impossible": [{"state": "a"}] * 15}, InvalidParameter),
        (["state"], {"impossible": ["a"]}, InvalidParameter),
        ([bins("free", 3)], {}, InvalidInput),
    ],
)
def test_bad_input(columns, more, kind) -> None:
    with pytest.raises(kind):
        ask.sparse_histogram(columns, **more).on(SCHEMA, rows())


def test_more_columns_than_a_key_can_hold() -> None:
    with pytest.raises(TooManyCells, match="200 bits"):
        ask.sparse_histogram(list(WIDE)[:201]).on(WIDE, rows())


def test_wide_products_against_python() -> None:
    """Radices of every length up to 62 bits, codes at their ends and at random."""
    rng, tried = random.Random(4), 0
    for _ in range(60):
        sizes = [
            rng.randrange(1, 1 << rng.choice([1, 8, 31, 32, 33, 62])) for _ in range(rng.randrange(2, 6))
        ]
        domain = math.prod(sizes)
        if not 1 << 64 < domain <= 1 << 200:
            continue
        cells = [
            [0] * len(sizes),
            [s - 1 for s in sizes],
            *([rng.randrange(s) for s in sizes] for _ in range(9)),
        ]
        codes = [(np.array([c[i] for c in cells], dtype=np.int64), s) for i, s in enumerate(sizes)]
        expected = []
        for cell in cells:
            total = 0
            for code, size in zip(cell, sizes, strict=True):
                total = total * size + code
            expected.append(total)
        assert key_integers(combine_codes(codes, domain)).tolist() == expected
        tried += 1
    assert tried > 20


def test_impossible_values_of_a_wide_column_are_reckoned_and_not_listed() -> None:
    """A column of 2^50 keys; a list of them would fill any memory."""
    schema = Schema(
        {"n": integer(-5, (1 << 50) - 6), "flag": flag(), "day": date("2020-01-01", "2020-03-01")}
    )
    first = {"n": [-5, 0, (1 << 50) - 6], "flag": True}
    question = ask.sparse_histogram(["n", "flag"], impossible=[first, {"n": 7}]).on(schema, rows())
    assert question.impossible is not None
    assert question.impossible.count == 3 + 2
    keys = np.array([0, 1, 2, 11, 24, 25, 26, (1 << 51) - 1, (1 << 51) - 2], dtype=np.uint64)
    barred = [False, True, False, True, True, True, False, True, False]
    assert question.impossible.holds(keys).tolist() == barred
    days = ask.sparse_histogram([bins("day", 61)], impossible=[{"day": datetime.date(2020, 1, 3)}]).on(
        schema, rows()
    )
    assert days.impossible is not None
    assert days.impossible.holds(np.arange(4, dtype=np.uint64)).tolist() == [False, False, True, False]
    for wrong in (-6, (1 << 50) - 5, 1.5, "7", None, float("nan"), [1]):
        with pytest.raises(InvalidParameter, match="declared key"):
            ask.sparse_histogram(["n"], impossible=[{"n": (wrong,)}]).on(schema, rows())
    for wrong in ("2020-01-03", datetime.date(2019, 12, 31), 3):
        with pytest.raises(InvalidParameter, match="declared key"):
            ask.sparse_histogram([bins("day", 61)], impossible=[{"day": wrong}]).on(schema, rows())
