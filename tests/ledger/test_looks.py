"""Looks at the data, and plans that are older than them: order is that of the chain, and nothing else can claim it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Pure, rows
from tacit.guarantees.conditions import SEEN, SEEN_ANOTHER
from tacit.ledger import Ledger, Request, export, looked, overview, record_plan, seen, verify_ledger
from tacit.ledger.looks import seen_in

OLD, YOUNG = "a" * 64, "b" * 64


def price(epsilon: float) -> Guarantee:
    return Guarantee(bound=Pure(epsilon=epsilon), unit=rows())


def request(plan: str, **more: Any) -> Request:
    given = {"key": plan, "analyst": "curator", "event": {"kind": "x"}, "version": "1"} | more
    return Request(plan_digest=plan, charge=price(0.125), **given)


@pytest.fixture
def ledger(place: str) -> Ledger:
    return Ledger.create(place, budget=price(1.0))


def test_without_a_look_nothing_is_told(ledger: Ledger) -> None:
    ledger.run(request(OLD), lambda: 1)
    assert seen(ledger, OLD, version="1") == seen(ledger, YOUNG, version="1") == ()


def test_a_plan_that_was_charged_before_the_look_is_older(ledger: Ledger) -> None:
    ledger.run(request(OLD), lambda: 1)
    looked(ledger, analyst="curator", version="1")
    ledger.run(request(YOUNG), lambda: 2)
    assert seen(ledger, OLD, version="1") == ()
    assert seen(ledger, YOUNG, version="1") == (SEEN,)
    # A second charge of the old plan, under another key, is still the old plan.
    ledger.run(request(OLD, key="again"), lambda: 3)
    assert seen(ledger, OLD, version="1") == ()


def test_a_recorded_plan_is_older_and_a_later_record_makes_none_older(ledger: Ledger) -> None:
    assert record_plan(ledger, OLD, analyst="curator", version="1") == 1
    looked(ledger, analyst="curator", version="1")
    assert record_plan(ledger, OLD, analyst="curator", version="1") == 1, "it is there already"
    assert record_plan(ledger, YOUNG, analyst="curator", version="1") == 3
    assert seen(ledger, OLD, version="1") == ()
    assert seen(ledger, YOUNG, version="1") == (SEEN,)
    assert ledger.spent() == Pure(epsilon=0.0)


def test_another_version_or_name_is_told_as_such(place: str) -> None:
    """Otherwise a look would be forgotten by whoever writes another version into the plan."""
    ledger = Ledger.create(place, budget=price(1.0))
    looked(ledger, analyst="curator", version="1")
    assert seen(ledger, YOUNG, version="2") == (SEEN_ANOTHER,)
    assert seen(ledger, YOUNG, version="1", table="renamed") == (SEEN_ANOTHER,)
    looked(ledger, analyst="curator", version="2")
    assert seen(ledger, YOUNG, version="2") == (SEEN, SEEN_ANOTHER)


def test_the_mark_is_known_when_the_ledger_is_opened_anew_and_by_the_bare_chain(
    ledger: Ledger, place: str
) -> None:
    record_plan(ledger, OLD, analyst="curator")
    looked(ledger, analyst="curator", version="1")
    ledger.close()
    again = Ledger.open(place)
    assert seen(again, YOUNG, version="1") == (SEEN,)
    for digest in (OLD, YOUNG):
        known = seen(again, digest, version="1")
        assert seen_in(again.entries(), digest, table="", version="1") == known
    assert verify_ledger(place).ok
    assert [look["version"] for look in overview(again)["looks"]] == ["1"]


def test_an_entry_of_a_look_holds_names_and_no_finding(ledger: Ledger) -> None:
    looked(ledger, analyst="ann", version="1")
    entry = json.loads(list(export(ledger))[-1])["entry"]
    assert set(entry) == {
        "sequence",
        "previous",
        "time",
        "kind",
        "total",
        "state",
        "analyst",
        "table",
        "version",
    }
    assert (entry["kind"], entry["analyst"], entry["version"]) == ("look", "ann", "1")


def test_a_look_that_is_cut_out_of_the_state_is_noticed(place: str) -> None:
    if "://" in place:
        pytest.skip("the file is edited by hand")
    import sqlite3

    with Ledger.create(place, budget=price(1.0)) as ledger:
        looked(ledger, analyst="curator", version="1")
        state = ledger._state
    with sqlite3.connect(place) as connection:
        text = state.start(state.budget, {}).text
        connection.execute("UPDATE tacit_ledger SET state = ?", (text,))
    assert not verify_ledger(place).ok
    with pytest.raises(Exception, match="changed"):
        Ledger.open(place)


@pytest.mark.parametrize("digest", ["", "A" * 64, "a" * 63, None, 7, "a" * 63 + "\n"])
def test_what_is_no_digest_is_not_recorded(ledger: Ledger, digest: Any) -> None:
    with pytest.raises(InvalidParameter):
        record_plan(ledger, digest, analyst="curator")
    assert not ledger.entries()


def test_a_charge_names_an_earlier_form_only_if_the_chain_has_it(ledger: Ledger) -> None:
    """Otherwise a young plan would borrow the age of whatever it says that it was called."""
    record_plan(ledger, OLD, analyst="curator", version="1")
    looked(ledger, analyst="curator", version="1")
    ledger.run(request(YOUNG, known_as=("c" * 64,)), lambda: 1)
    ledger.run(request("d" * 64, known_as=("c" * 64, OLD)), lambda: 2)
    bodies = [entry.body for entry, _ in ledger.entries_with_answers() if entry.kind == "reserve"]
    assert "earlier" not in bodies[0]
    assert bodies[1]["earlier"]["plan"] == OLD
