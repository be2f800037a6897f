"""Hierarchies: sensitivities over all neighbours of tiny tables, exact sums from the engine, bad maps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tacit.statistics as ask
from support.neighbours import moves
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.guarantees import group_of, people, rows
from tacit.sources import Schema, bins, category, flag, integer, open_table
from tacit.statistics.hierarchy import hierarchy

OTHERS = [[], [{"state": "b", "age": 1, "sick": None, "id": "other"}]]
KEYS = ["a", "b", "c"]
GAPS = Schema({"state": category(KEYS), "age": integer(0, 3), "sick": flag()})
FULL = Schema(
    {"state": category(KEYS, missing="a"), "age": integer(0, 3, missing=0), "sick": flag(missing=False)}
)
ONE = Schema({"state": category(["a"], missing="a"), "age": integer(0, 3), "sick": flag()})
ROWS = [
    {"state": s, "age": a, "sick": f}
    for s in ["a", "b", "c", None]
    for a, f in [(0, True), (3, False), (None, None)]
]
DEEP = {"a": "north", "b": "north", "c": "south", "north": "nation", "south": "nation", "nation": None}
RAGGED = {"a": "x", "b": "y", "x": "nation", "y": "x2", "x2": "nation", "c": "nation", "nation": None}
FOREST = {"a": None, "b": "r", "c": "r", "r": None}
STATISTICS = {
    "one column": hierarchy("state"),
    "two columns": hierarchy(["state", "sick"]),
    "bins": hierarchy(["sick", bins("age", 2)], where="age > 0 or sick"),
    "map": hierarchy("state", parents=DEEP),
    "ragged": hierarchy("state", parents=RAGGED),
    "forest": hierarchy("state", parents=FOREST.items()),
}
UNITS = {
    "rows": rows(),
    "rows replaced": rows(neighbours="replace-one"),
    "people": people("id", at_most=2),
    "people replaced": people("id", at_most=2, neighbours="replace-one"),
    "two rows": group_of(rows(), size=1),
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
@pytest.mark.parametrize("schema", [GAPS, FULL], ids=["gaps", "full"])
@pytest.mark.parametrize("name", STATISTICS)
def test_moves_are_never_above_the_claim_and_attain_it(name, schema, unit):
    question = STATISTICS[name].on(schema, unit)
    seen = moves(question, unit, ROWS, OTHERS)
    claimed = question.sensitivity
    assert seen[""] == [claimed.l1, claimed.l2_squared, claimed.linf]
    for part in question.parts:
        single = question.sensitivities[part.name]
        assert seen[part.name] == [single.l1, single.l2_squared, single.linf], part.name
        assert part.exact == single.none


def test_one_leaf_that_every_row_is_in_does_not_move():
    lone = hierarchy("state").on(ONE, rows(neighbours="replace-one"))
    assert lone.sensitivity.none
    assert all(p.exact for p in lone.parts)
    top = hierarchy("state", parents=DEEP).on(FULL, rows(neighbours="replace-one"))
    assert [p.exact for p in top.parts] == [True, False, False]
    assert top.sensitivity.l1 == 4


def test_the_engine_adds_up():
    frame = pd.DataFrame({"state": [*"aabbbc", None], "age": [1] * 7, "sick": [True, False] * 3 + [True]})
    data = open_table(frame, schema=GAPS, unit=rows())
    question = hierarchy("state", parents=DEEP).on(GAPS, rows())
    (parts,) = ask.read(data, [question])
    assert parts["level 0"].tolist() == [6]
    names = [question.details["levels"][1]]
    assert dict(zip(names[0], parts["level 1"].tolist(), strict=True)) == {"north": 5, "south": 1}
    nested = hierarchy(["state", "sick"]).on(GAPS, rows())
    (parts,) = ask.read(data, [nested])
    assert parts["level 2"].shape == (3, 2)
    np.testing.assert_array_equal(parts["level 2"].sum(axis=1), parts["level 1"])
    assert int(parts["level 0"]) == 6
    noisy = {k: v + np.arange(v.size).reshape(v.shape) - 2 for k, v in parts.items()}
    found = nested.statistic.consistent(nested, noisy, dict.fromkeys(parts, 2.0), exact={(): 6})
    assert found[()] == 6
    assert found["a",] == found["a", False] + found["a", True]
    assert nested.assemble(noisy).size == 1 + 3 + 6


def test_bad_hierarchies():
    with pytest.raises(InvalidParameter, match="one parent"):
        hierarchy("state", parents=[("a", "r"), ("a", "s"), ("r", None), ("s", None)])
    with pytest.raises(InvalidParameter, match="cycle"):
        hierarchy("state", parents={"a": "r", "r": "s", "s": "r"})
    with pytest.raises(UnknownName):
        hierarchy("state", parents={"a": "r"})
    with pytest.raises(UnknownName):
        hierarchy("state", parents={"a": "r", "b": "r", "r": None}).on(GAPS, rows())
    with pytest.raises(UnknownName):
        hierarchy("state", parents={**DEEP, "d": "south"}).on(GAPS, rows())
    with pytest.raises(InvalidParameter, match="leaves"):
        hierarchy("state", parents={"b": "a", "c": "a", "a": None}).on(GAPS, rows())
    with pytest.raises(InvalidParameter):
        hierarchy(["state", "sick"], parents=DEEP)
    with pytest.raises(EmptyComposition):
        hierarchy([])
    with pytest.raises(InvalidParameter, match="known keys"):
        hierarchy("state").on(Schema({"state": category()}), rows())


@pytest.mark.parametrize("columns", [["town", "state"], ["state", "town"]])
def test_every_column_of_a_hierarchy_has_known_keys(columns):
    schema = Schema({"state": category(["a", "b"]), "town": category()})
    with pytest.raises(InvalidParameter, match="have known keys"):
        hierarchy(columns).on(schema, rows())
