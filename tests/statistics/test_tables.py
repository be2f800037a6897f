"""What a counting question says of itself holds between neighbours: tables, their sums, and what cannot move."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.sources.schema import Schema

SCHEMA = Schema(
    {
        "g": tacit.category(["p", "q"], missing="p"),
        "h": tacit.category(["r", "s", "z"], missing="r"),
        "f": tacit.flag(),
        "v": tacit.number(0, 8, spacing=1, missing=0),
    }
)
ASKED: dict[str, Any] = {
    "margins": tacit.margins(["g", "h"]),
    "margins with gaps": tacit.margins(["g", "f"]),
    "filtered margins": tacit.margins(["g", "h"], where="f"),
    "pairs": tacit.margins(["g", "h", "f"], order=2),
    "hierarchy": tacit.hierarchy(["g", "h"]),
    "count": tacit.count(by=["g", "h"]),
    "filtered count": tacit.count(by="g", where="f"),
    "count with gaps": tacit.count(by="f"),
    "ranges": tacit.ranges("v", 3),
    "filtered ranges": tacit.ranges("v", 3, where="f"),
}
ROWS = [
    {"g": g, "h": h, "f": f, "v": v}
    for g, h, f, v in itertools.product(["p", "q"], ["r", "s", "z"], [True, False, None], [0, 4, 8])
]
RELATIONS = ("add-or-remove", "replace-one")


def tables(statistic: Any, row: dict[str, Any]) -> list[np.ndarray]:
    """The counts of one row, by definition: one array a table."""
    where = statistic.where is None or row["f"] is True

    def one(columns: Any) -> np.ndarray:
        keys = {"g": ["p", "q"], "h": ["r", "s", "z"], "f": [False, True]}
        out = np.zeros([len(keys[c]) for c in columns], dtype=int)
        if where and all(row[c] is not None for c in columns):
            out[tuple(keys[c].index(row[c]) for c in columns)] = 1
        return out.ravel()

    if statistic.kind == "margins":
        return [one(c) for c in itertools.combinations(statistic.columns, statistic.order)]
    if statistic.kind == "hierarchy":
        return [one(statistic.columns[:d]) for d in range(len(statistic.columns) + 1)]
    if statistic.kind == "ranges":
        bin_of = {0: 0, 4: 1, 8: 2}[row["v"]]
        spans = [(i, j) for i in range(3) for j in range(i, 3)]
        return [np.array([int(where and i <= bin_of <= j) for i, j in spans])]
    return [one(statistic.by)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ASKED)
def test_the_number_of_rows_is_fixed_only_where_no_neighbour_moves_it(name: str, relation: str) -> None:
    facts = ASKED[name].on(SCHEMA, tacit.rows(neighbours=relation)).tables
    found = [tables(ASKED[name], row) for row in ROWS]
    none = [t * 0 for t in found[0]]
    same = all(len({int(t.sum()) for t in row}) == 1 for row in found)
    if name != "ranges" and name != "filtered ranges":
        assert facts.complete <= same
        counted = {int(row[0].sum()) for row in found}
        moves = relation == "add-or-remove" or counted != {1}
        assert facts.fixed == (not moves and facts.complete)
    else:
        assert not facts.complete
        assert facts.fixed == (relation == "replace-one" and name == "ranges")
    others = [none] if relation == "add-or-remove" else found
    moved = {abs(int(x)) for a in found for b in others for s, t in zip(a, b, strict=True) for x in s - t}
    assert moved <= {0, 1}
    assert facts.times == 1
    assert facts.replaced == (relation == "replace-one")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ASKED)
def test_movement_is_the_largest_between_neighbours(name: str, relation: str) -> None:
    question = ASKED[name].on(SCHEMA, tacit.rows(neighbours=relation))
    found = [np.concatenate(tables(ASKED[name], row)) for row in ROWS]
    others = [found[0] * 0] if relation == "add-or-remove" else found
    moves = [np.abs(a - b) for a in found for b in others]
    assert question.sensitivity.l1 >= max(m.sum() for m in moves)
    assert question.sensitivity.l2_squared >= max((m**2).sum() for m in moves)
    if "ranges" in name:
        assert question.sensitivity.l1 == max(m.sum() for m in moves)


@pytest.mark.parametrize("name", ["margins", "pairs", "hierarchy", "filtered margins"])
def test_tables_are_the_sums_that_they_say(name: str) -> None:
    question = ASKED[name].on(SCHEMA, tacit.rows())
    sums = question.tables.sums
    if sums is None:
        assert name == "pairs"  # a flag may be missing: no table of all columns has every row
        return
    for row in ROWS:
        cell = np.zeros(6, dtype=int)
        if ASKED[name].where is None or row["f"] is True:
            cell[["p", "q"].index(row["g"]) * 3 + ["r", "s", "z"].index(row["h"])] = 1
        for part, table in zip(question.parts, tables(ASKED[name], row), strict=True):
            added = np.zeros(table.size, dtype=int)
            np.add.at(added, sums[part.name], cell)
            assert (added == table).all()
    assert question.tables.sensitivity.l1 == 1


def test_units_of_several_rows_bring_as_many_vectors() -> None:
    people = tacit.people("id", at_most=4, neighbours="replace-one")
    assert ASKED["margins"].on(SCHEMA, people).tables.times == 4
    assert not ASKED["margins"].on(SCHEMA, people).tables.fixed
    assert ASKED["ranges"].on(SCHEMA, tacit.group_of(people, size=3)).tables.times == 12
    counted = tacit.count(by="g", of="people").on(SCHEMA, tacit.group_of(people, size=3)).tables
    assert (counted.times, counted.complete, counted.fixed) == (3, False, False)
