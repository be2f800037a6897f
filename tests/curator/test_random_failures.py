"""How often a promise given random data fails, counted over every table from what an assignment really lets out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.guarantees import Guarantee, Pure, RandomData
from tacit.noise import SeededSource
from tacit.sources.axes import CountRows
from tacit.sources.query import Cells

from .random_rows import ADD, REPLACE, planned


def answers(plan: Any, counts: tuple[int, ...], hidden: int) -> tuple[Any, Any]:
    """Which cells are exact and what is published, of a table with these counts and so many rows in no cell."""
    one = plan.releases[0]
    first, *rest = one.question.requests
    read = [Cells(request=first, values={a: np.array(counts).reshape(-1) for a in first.aggregates})]
    read += [Cells(request=r, values={CountRows(): np.array(sum(counts) + hidden)}) for r in rest]
    noisy = one.assignment.run(one.question, read, source=SeededSource(seed=3))
    exact = one.assignment.exact_cells(noisy)["count"]
    value = np.asarray(noisy.parts["count"])
    assert (value[exact] == np.array(counts)[exact]).all()
    return exact, value


def compositions(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    for cuts in itertools.combinations(range(total + cells - 1), cells - 1):
        ends = [-1, *cuts, total + cells - 1]
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def worst_failure(plan: Any, n: int, cells: int, *, hidden: bool, replaced: bool) -> Fraction:
    """The largest share of orders of any rows for which neighbours are told apart by an exact number."""
    kinds = cells + hidden
    seen: dict[tuple[int, ...], Any] = {}

    def mask(table: tuple[int, ...]) -> Any:
        if table not in seen:
            seen[table] = answers(plan, table[:cells], sum(table[cells:]))[0]
        return seen[table]

    def less(table: tuple[int, ...], place: int) -> tuple[int, ...]:
        return tuple(c - (i == place) for i, c in enumerate(table))

    def broken(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        a, b = mask(one), mask(other)
        moved = np.array(one[:cells]) != np.array(other[:cells])
        return bool((a != b).any() or (moved & a).any())

    worst = Fraction(0)
    for table in compositions(n + 1 if replaced else n, kinds):
        failing = 0
        for a in range(kinds):
            if not replaced and table[a] and broken(table, less(table, a)):
                failing += table[a]
            for b in range(kinds) if replaced else ():
                if a != b and table[a] and table[b] and broken(less(table, b), less(table, a)):
                    failing += table[a] * table[b]
        worst = max(worst, Fraction(failing, n * (n + 1) if replaced else n))
    return worst


SETTINGS = [
    # n, column, cells, rows in no cell, gamma, small cells
    (20, "all", 3, False, "0.3", False),
    (20, "all", 3, False, "0.6", True),
    (16, "k", 3, True, "0.4", False),
    (16, "k", 3, True, "0.75", True),
]


@pytest.mark.parametrize("unit", [REPLACE, ADD], ids=["replace-one", "add-or-remove"])
@pytest.mark.parametrize(("n", "column", "cells", "hidden", "gamma", "small"), SETTINGS)
def test_no_rows_break_the_promise_more_often_than_gamma(
    unit: Any, n: int, column: str, cells: int, hidden: bool, gamma: str, small: bool
) -> None:
    given = {"random_data": float(gamma), "rows": n, "small_cells": small}
    plan = planned(tacit.count(by=column), unit=unit, given=given)
    replaced = unit is REPLACE
    assert plan.releases[0].assignment.exact_below(n) >= (2 if small else 1)
    found = worst_failure(plan, n, cells, hidden=hidden, replaced=replaced)
    assert 0 < found <= Fraction(gamma)


def test_a_count_of_one_cell_fails_no_more_often_than_gamma() -> None:
    for unit, gamma in itertools.product((REPLACE, ADD), ("0.2", "0.3")):
        plan = planned(tacit.count(where="f"), unit=unit, given={"random_data": float(gamma), "rows": 30})
        found = worst_failure(plan, 30, 1, hidden=True, replaced=unit is REPLACE)
        assert 0 < found <= Fraction(gamma)
        # one count more would be too many: the next share is above gamma
        most = max(c for c in range(15) if answers(plan, (c,), 30 - c)[0].all())
        loose = 2 * (most + 2) * (31 - most - 2) if unit is REPLACE else 31 * (most + 2)
        assert Fraction(loose, 30 * 31) > Fraction(gamma)


def test_noise_is_that_of_differential_privacy_at_the_same_price() -> None:
    given = {"random_data": 0.1, "rows": 8000}
    for unit, scale in ((REPLACE, "10"), (ADD, "5")):
        one = planned(tacit.count(by="c"), unit=unit, epsilon=0.2, given=given).releases[0]
        assert one.assignment.to_dict()["noise"][0]["noise_scale"] == scale
        assert one.assignment.pure() == Fraction(1, 5)
    one = planned(tacit.count(where="f"), epsilon=0.2, given=given).releases[0]
    assert one.assignment.to_dict()["noise"][0]["noise_scale"] == "5"


@pytest.mark.parametrize("unit", [REPLACE, ADD], ids=["replace-one", "add-or-remove"])
def test_an_odd_row_is_a_row(tmp_path: Path, unit: Any) -> None:
    """A line that is broken, empty or no text takes no row away: the number of rows decides what is exact."""
    budget = Guarantee(bound=Pure(epsilon=1.0), unit=unit, condition=RandomData(gamma=0.5))
    given = {"random_data": 0.5} if unit is REPLACE else {"random_data": 0.5, "rows": 12}
    found = []
    for name, last in enumerate((b"z,2", b"b,2,3,4", b"", b"nobody,9", b'"b,1', b"\xff\xfe,1")):
        place = tmp_path / f"{name}.csv"
        place.write_bytes(b"k,v\n" + b"a,1\n" * 11 + last + b"\n")
        schema = {"k": tacit.category(["a", "b", "z"])}
        with tacit.Curator(
            place, protect=unit, schema=schema, budget=budget, source=SeededSource(seed=1)
        ) as one:
            made = one.release(tacit.count(by="k"), epsilon=0.5, given=given)
        said = made.certificate["random_data"]
        found.append((said["rows"], said["exact_below"], made.table.dtypes.to_list(), made.table.k.to_list()))
        assert said["exact_cells"] == (1 if last == b"z,2" else 2)
    assert all(f == found[0] for f in found)
