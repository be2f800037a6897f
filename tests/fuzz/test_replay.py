"""The road from true numbers to noisy ones is the same for neighbours, line by line and word by word."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from fuzz import forms, pairs
from fuzz.quick import sped_up
from fuzz.replay import Tape, audited, parted, roads_of
from fuzz.trials import KEY, Asked, asked
from fuzz.worlds import Column, World
from tacit import statistics as st
from tacit.guarantees import Unit, people, rows
from tacit.sources import category, date, flag, integer, number, open_table
from tacit.statistics import read_cells

COLUMNS = (
    Column(name="id", label="id", stored="string", words=tuple(b"p%d" % i for i in range(9))),
    Column(name="ward", label="words", stored="string", declared=category(["a", "b", "c"]), words=(b"a", b"b", b"c")),
    Column(name="age", label="integer", stored="int64", declared=integer(0, 9)),
    Column(name="far", label="integer", stored="int64", declared=integer(-(2**51), 2**51)),
    Column(name="pay", label="number", stored="float64", declared=number(0, 8, spacing=0.25)),
    Column(name="sick", label="flag", stored="bool", declared=flag()),
    Column(name="day", label="date", stored="date32", declared=date("2020-01-01", "2020-01-10")),
    Column(name="town", label="open", stored="string", declared=category(), words=(b"u", b"v")),
)  # fmt: skip
KNOWN = (
    st.count(), st.count(by="ward"), st.count(by=["ward", "age"], where="sick"), st.count(of="people"),
    st.sum("age"), st.sum("far", by="ward"), st.mean("pay", by="ward"), st.mean("day"), st.mean("far"),
    st.variance("age"), st.standard_deviation("pay", by="ward"), st.ratio("pay", "age"), st.proportion("sick"),
    st.quantiles("pay", resolution=32), st.median("age", where="ward = 'a'"), st.histogram("pay", 4, by="ward"),
    st.contingency(["ward", "sick"]), st.margins(["ward", "age", "sick"], order=2), st.hierarchy(["ward", "sick"]),
    st.clamping_bounds("far"),
)  # fmt: skip
OCCUPIED = (
    st.count(by="town"), st.mean("pay", by="town"), st.variance("sick", by="town"),
    st.sparse_histogram(["ward", "age"]), st.sparse_histogram(["ward", "age"], where="sick"),
)  # fmt: skip
PRICES = ((("epsilon", 1.0),), (("epsilon", 1.0), ("delta", 1e-6)), (("rho", 0.1),))
UNITS = (
    rows(), rows(neighbours="replace-one"), people("id", at_most=3), people("id", at_most=2, neighbours="replace-one")
)  # fmt: skip


def questions(unit: Unit, statistics: Any, prices: Any) -> tuple[World, list[Asked]]:
    """Everything that this unit allows, at every price that pays for it."""
    world = World(columns=COLUMNS, unit=unit, asked=())
    made = [asked(world, s, p) for s in statistics for p in prices]
    return world, [a for a in made if a is not None]


def neighbours(world: World, wanted: list[Asked], seed: int) -> list[Any]:
    """The cells of two tables that differ in one unit."""
    pair = pairs.draw_pair(random.Random(seed), world, form="arrow")
    found = []
    for given in pair.tables():
        with (
            sped_up(),
            open_table(forms.arrow_table(world, given), schema=world.schema, unit=world.unit) as table,
        ):
            found.append(read_cells(table, [a.question for a in wanted], key=KEY))
    return found


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_neighbours_take_the_same_road_to_noisy_numbers(unit: Unit) -> None:
    """Same lines, same words, same types: for every statistic with known cells, every noise, odd units among them."""
    world, wanted = questions(unit, KNOWN, PRICES)
    assert {a.statistic.kind for a in wanted} >= {"count", "sum", "mean", "variance", "quantiles", "margins"}
    for seed in (3, 4):
        left, right = neighbours(world, wanted, seed)
        assert audited(wanted, left, right, seed=seed) == []


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_occupied_cells_get_their_words_whatever_is_in_them(unit: Unit) -> None:
    """Unknown keys and sparse histograms: two tables that occupy the same cells draw the same words."""
    world, wanted = questions(unit, OCCUPIED, PRICES[1:2])
    checked = 0
    for seed in range(3):
        left, right = neighbours(world, wanted, seed)
        for one, a, b in zip(wanted, left, right, strict=True):
            if not _same_cells(one, a, b):
                continue
            roads = roads_of(one, (a, b), Tape(seed))
            assert [r.error for r in roads] == ["", ""]
            # What follows the noise is a choice among noisy numbers; before it, and in words, nothing differs.
            assert roads[0].calls[0] == roads[1].calls[0]
            checked += 1
    assert checked


def _same_cells(one: Asked, a: Any, b: Any) -> bool:
    if hasattr(one.question, "occupied"):
        keys = [one.question.occupied(c)[0] for c in (a, b)]
        return keys[0].size == keys[1].size and bool(np.all(keys[0] == keys[1]))
    named = [set(zip(*c[0].keys, strict=True)) for c in (a, b)]
    return named[0] == named[1]


def test_a_road_that_parts_is_seen() -> None:
    """An assignment that looks at a true number, draws a word more, or changes a type: each is told."""
    world, (one,) = questions(rows(), [st.count()], PRICES[:1])
    left, right = neighbours(world, [one], 3)
    plain = roads_of(one, (left[0], right[0]), Tape(1))
    assert parted(*plain) == ""
    longer, other, typed = (roads_of(one, (right[0],), Tape(1))[0] for _ in range(3))
    longer.calls.append(1)
    assert "words" in parted(plain[0], longer)
    other.lines.insert(5, other.lines[0])
    assert "after" in parted(plain[0], other)
    typed.types = []
    assert "types" in parted(plain[0], typed)
