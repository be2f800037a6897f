"""Public totals: what they determine is not asked, the rest moves as claimed, contradictions are errors."""

from __future__ import annotations

import numpy as np
import pytest

import tacit.statistics as ask
from support.neighbours import moves
from tacit.errors import InvalidParameter, UnknownName
from tacit.guarantees import Guarantee, Pure, people, rows
from tacit.sources import Schema, category, flag
from tacit.statistics.hierarchy import hierarchy
from tacit.statistics.invariants import public_totals, valid_counts

SCHEMA = Schema({"state": category(["a", "b", "c"], missing="a"), "sick": flag(missing=False)})
ROWS = [{"state": s, "sick": f} for s in "abc" for f in (True, False)]
REST = [[], [{"state": "b", "sick": True, "id": "other"}]]
MAP = {"a": "north", "b": "north", "c": "south", "north": "nation", "south": "nation", "nation": None}
REPLACED = rows(neighbours="replace-one")


@pytest.mark.parametrize(
    "unit", [rows(), REPLACED, people("id", at_most=2, neighbours="replace-one")], ids=str
)
@pytest.mark.parametrize(
    ("statistic", "totals", "left"),
    [
        (hierarchy("state", parents=MAP), public_totals(total=9), ["level 1", "level 2"]),
        (hierarchy("state", parents=MAP), public_totals(nodes={"north": 5, "south": 4}), ["level 2"]),
        (hierarchy(["state", "sick"]), public_totals(nodes={("a",): 1, ("b",): 2, ("c",): 3}), ["level 2"]),
        (ask.margins(["state", "sick"]), public_totals(tables={"sick": [3, 4]}), ["state"]),
        (ask.margins(["state", "sick"], order=2), public_totals(tables={"sick": [3, 4]}), ["state x sick"]),
        (ask.count(by=["state"]), public_totals(total=4), ["count"]),
    ],
)
def test_what_is_known_is_not_asked_and_the_rest_moves_as_claimed(statistic, totals, left, unit):
    question = totals.on(statistic.on(SCHEMA, unit))
    assert [p.name for p in question.parts] == left
    seen = moves(question, unit, ROWS, REST)
    assert seen[""] == [question.sensitivity.l1, question.sensitivity.l2_squared, question.sensitivity.linf]
    assert set(question.sensitivities) == set(left)


def test_everything_known_leaves_nothing_to_ask():
    totals = public_totals(tables={("state", "sick"): [[1, 2], [3, 4], [5, 6]]})
    question = totals.on(ask.margins(["state", "sick"]).on(SCHEMA, rows()))
    assert question.parts == ()
    assert question.requests == ()
    assert question.sensitivity.none
    known = valid_counts(question, {}, {})
    assert known["sick"].tolist() == [9, 12]
    whole = totals.on(ask.contingency(["sick", "state"]).on(SCHEMA, rows()))
    assert valid_counts(whole, {}, {})["count"].tolist() == [[1, 3, 5], [2, 4, 6]]
    tree = public_totals(nodes={"a": 1, "b": 2, "c": 3}).on(
        hierarchy("state", parents=MAP).on(SCHEMA, rows())
    )
    assert valid_counts(tree, {}, {})["level 0"].tolist() == [6]


def test_released_counts_are_made_to_agree_with_the_totals():
    totals = public_totals(total=20, tables={"sick": [13, 7]})
    question = totals.on(ask.margins(["state", "sick"], order=2).on(SCHEMA, REPLACED))
    noisy = {"state x sick": np.array([[9, -3], [4, 2], [5, 1]])}
    found = valid_counts(question, noisy, {"state x sick": 4.0})["state x sick"]
    assert found.min() >= 0
    assert found.sum(axis=0).tolist() == [13, 7]
    tree = public_totals(total=20, nodes={"south": 6}).on(
        hierarchy("state", parents=MAP).on(SCHEMA, REPLACED)
    )
    assert [p.name for p in tree.parts] == ["level 2"]
    found = valid_counts(tree, {"level 2": np.array([7, -1, 3])}, {"level 2": 2.0})
    assert found["level 0"].tolist() == [20]
    assert dict(zip(["a", "b", "c"], found["level 2"], strict=True))["c"] == 6
    assert found["level 2"].sum() == 20
    plain = ask.count(by="state").on(SCHEMA, rows())
    assert valid_counts(plain, {"count": np.array([3, -2, 4])}, {"count": 1.0})["count"].tolist() == [2, 0, 3]


def test_filters_and_people_do_not_add_up_to_the_totals():
    totals = public_totals(total=20, tables={"sick": [13, 7]})
    filtered = ask.count(by="sick", where="state = 'a'").on(SCHEMA, rows())
    assert totals.known(filtered) == {}
    assert valid_counts(totals.on(filtered), {"count": np.array([1, 2])}, {"count": 1.0})[
        "count"
    ].tolist() == [1, 2]
    unit = people("id", at_most=2)
    assert totals.known(ask.count(by="sick", of="people").on(SCHEMA, unit)) == {}


def test_the_guarantee_says_so():
    totals = public_totals(total=20, tables={"sick": [13, 7]})
    plain = Guarantee(bound=Pure(epsilon=1.0), unit=REPLACED)
    told = totals.restrict(plain)
    assert told.bound == plain.bound
    assert "the counts by sick were public and exact" in told.explain()
    assert not told.implies(plain)
    assert plain.implies(told)
    added = Guarantee(bound=Pure(epsilon=1.0), unit=rows())
    assert "replaced but not added" in str(totals.restrict(added))
    restated = totals.restate(added)
    assert restated.unit == REPLACED
    assert float(restated.bound.epsilon) == 2.0
    assert public_totals().restrict(plain) == plain


def test_contradictions_and_nonsense_are_errors():
    with pytest.raises(InvalidParameter, match="agree"):
        public_totals(total=3, tables={"sick": [1, 1]})
    with pytest.raises(InvalidParameter, match="agree"):
        public_totals(tables={"sick": [1, 1], ("sick", "state"): [[1, 1, 1], [0, 0, 0]]})
    for bad in (-1, 2.5, True):
        with pytest.raises(InvalidParameter):
            public_totals(total=bad)
    with pytest.raises(InvalidParameter):
        public_totals(tables={"sick": [1, -1]})
    question = hierarchy("state", parents=MAP).on(SCHEMA, rows())
    with pytest.raises(InvalidParameter, match="add up"):
        public_totals(nodes={"nation": 3, "north": 2, "south": 2}).on(question)
    with pytest.raises(InvalidParameter, match="declared total"):
        public_totals(total=4, nodes={"nation": 3}).on(question)
    with pytest.raises(UnknownName):
        public_totals(nodes={"west": 3}).on(question)
    with pytest.raises(InvalidParameter, match="shape"):
        public_totals(tables={"sick": [1, 1, 1]}).on(ask.margins(["sick"]).on(SCHEMA, rows()))
    with pytest.raises(InvalidParameter):
        valid_counts(ask.proportion("sick").on(SCHEMA, rows()), {}, {})
