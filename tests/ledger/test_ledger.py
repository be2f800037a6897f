"""Reserve, run, commit, replay: what a caller relies on, on both databases."""

from __future__ import annotations

import json
import os
import pickle
import stat
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import ask, promise, tamper
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerCorrupt, LedgerError, NoLaw, UnitMismatch
from tacit.exact.canonical import canonical, sha256
from tacit.guarantees import Approximate, Concentrated, Guarantee, Pure, RandomData, people, rows
from tacit.ledger import Ledger, Recorded, Ticket, export, overview, recount, verify_ledger
from tacit.ledger.export import screen


def reserved(ledger: Ledger, *arguments: Any, **changes: Any) -> Ticket:
    ticket = ledger.reserve(ask(*arguments, **changes))
    assert isinstance(ticket, Ticket)
    return ticket


def test_a_charge_is_there_for_others_before_it_is_run(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    other = Ledger.open(place)
    ticket = reserved(ledger, "a", 0.5)
    assert other.spent() == Pure(epsilon=0.5)
    assert other.state(ticket.sequence) == "reserved"
    ledger.commit(ticket, {"value": 3})
    assert other.state(ticket.sequence) == "committed"
    assert other.remaining() == Pure(epsilon=0.5)


def test_the_same_request_on_the_same_data_is_free(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.commit(reserved(ledger, "a", 1.0), {"value": [1, 2.5, None, "ü"]})
    again = Ledger.open(place).reserve(ask("a", 1.0, analyst="bob"))
    assert isinstance(again, Recorded)
    assert again.answer == {"value": [1, 2.5, None, "ü"]}
    assert again.charge.analyst == "ann"
    assert len(ledger.charges()) == 1
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("a", 1.0, version="2026-12"))
    with pytest.raises(InvalidParameter, match="one plan"):
        ledger.reserve(ask("a", 1.0, plan_digest="another"))


def test_answers_may_be_bytes(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    body = bytes(range(256))
    assert ledger.run(ask("a"), lambda: body) == body
    again = ledger.reserve(ask("a"))
    assert isinstance(again, Recorded)
    assert again.answer == body


def test_a_retry_without_an_answer_is_a_new_charge(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    reserved(ledger, "a", 0.5)  # crashed, say
    ledger.fail(reserved(ledger, "a", 0.5))
    assert ledger.spent() == Pure(epsilon=1)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("a", 0.5))


def test_run_records_success_and_failure(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    runs: list[int] = []

    def compute() -> dict[str, Any]:
        runs.append(1)
        return {"value": (1, 2)}

    assert ledger.run(ask("a"), compute) == {"value": [1, 2]}
    assert ledger.run(ask("a"), compute) == {"value": [1, 2]}
    assert len(runs) == 1

    def broken() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.run(ask("b"), broken)
    assert ledger.state(ledger.charges()[-1].sequence) == "failed"
    assert ledger.spent() == Pure(epsilon=0.5)


def test_over_budget_spends_nothing_and_says_what_fits(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    reserved(ledger, "a", 0.75)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(ask("b", 0.5))
    assert caught.value.spent == Pure(epsilon=0.75)
    assert caught.value.asked == Pure(epsilon=0.5)
    assert caught.value.left == Pure(epsilon=0.25)
    assert "epsilon=0.25 would fit" in str(caught.value)
    assert caught.value.exit_code == 1
    assert len(ledger.entries()) == 1
    reserved(ledger, "c", 0.25)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        ledger.reserve(ask("d", 1e-300))
    reserved(ledger, "e", 0.0)


def test_shares_bind_single_analysts(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0), shares={"bob": Pure(epsilon=0.5)})
    reserved(ledger, "a", 0.25, analyst="bob")
    with pytest.raises(BudgetExceeded, match="the share of 'bob'"):
        ledger.reserve(ask("b", 0.375, analyst="bob"))
    assert ledger.remaining("bob") == Pure(epsilon=0.25)
    assert ledger.remaining("ann") == Pure(epsilon=0.75)
    ledger.share("bob", Pure(epsilon=1))
    ledger.share("*", Pure(epsilon=0.125))
    assert Ledger.open(place).remaining("bob") == Pure(epsilon=0.75)
    with pytest.raises(BudgetExceeded, match="the share of 'eve'"):
        ledger.reserve(ask("b", 0.25, analyst="eve"))
    reserved(ledger, "b", 0.75, analyst="bob")
    with pytest.raises(BudgetExceeded, match="the budget"):
        ledger.reserve(ask("c", 0.125, analyst="eve"))
    with pytest.raises(InvalidParameter):
        ledger.share("eve", Concentrated(rho=1))
    with pytest.raises(InvalidParameter):
        Ledger.create(f"{place}2", budget=promise(1.0), shares={"bob": Concentrated(rho=1)})


def test_a_check_of_the_callers_own_sees_events_and_may_be_tighter(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))

    def decode(record: Any) -> float:
        return float(record["loss"])

    def largest(losses: Any) -> Pure:
        return Pure(epsilon=max(losses))

    check = recount(decode, largest)
    for number in range(3):
        ledger.reserve(ask(f"q{number}", 0.75, event={"loss": 0.5}), check)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("big", 0.75, event={"loss": 1.5}), check)
    assert ledger.events(decode) == (0.5, 0.5, 0.5)
    assert len(ledger.charges()) == 3
    with pytest.raises(InvalidParameter):
        ledger.reserve(ask("kind", event={"loss": 1.5}), recount(decode, lambda _: Concentrated(rho=1)))


def test_a_check_that_breaks_leaves_no_trace(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.reserve(ask("a"), broken)
    assert ledger.entries() == ()
    reserved(ledger, "a")


def test_charges_must_be_in_the_budgets_own_terms(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    with pytest.raises(InvalidParameter, match="kind"):
        ledger.reserve(ask("a", Concentrated(rho=0.1)))
    with pytest.raises(InvalidParameter, match="kind"):
        ledger.reserve(ask("a", Approximate(epsilon=0.1, delta=1e-9)))
    unit = people("id", at_most=2)
    with pytest.raises(UnitMismatch):
        ledger.reserve(ask("a", charge=Guarantee(bound=Pure(epsilon=0.1), unit=unit)))
    assert ledger.entries() == ()


def test_a_budget_under_a_condition_has_no_running_total(place: str) -> None:
    sampled = Guarantee(
        bound=Pure(epsilon=1), unit=rows(neighbours="replace-one"), condition=RandomData(gamma=0.01)
    )
    ledger = Ledger.create(place, budget=sampled)
    with pytest.raises(NoLaw):
        ledger.reserve(ask("a", charge=sampled))
    with pytest.raises(NoLaw):
        ledger.spent()
    assert isinstance(ledger.reserve(ask("a", charge=sampled), lambda *_: None), Ticket)
    assert overview(ledger)["spent"] == {"kind": "pure", "epsilon": 1.0, "gamma": 0.01}
    assert overview(ledger)["remaining"] == {"kind": "pure", "epsilon": 0.0, "gamma": 0.0}


@pytest.mark.parametrize("closing", ["commit", "fail"])
def test_a_ticket_is_closed_once(place: str, closing: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    ticket = reserved(ledger)
    ledger.commit(ticket, 1) if closing == "commit" else ledger.fail(ticket)
    for again in (lambda: ledger.commit(ticket, 2), lambda: ledger.fail(ticket)):
        with pytest.raises(InvalidParameter, match="open"):
            again()
    assert len(ledger.entries()) == 2


def test_a_ticket_of_another_ledger_is_refused(tmp_path: Path) -> None:
    one, two = (Ledger.create(tmp_path / n, budget=promise(1.0)) for n in "ab")
    reserved(two)
    with pytest.raises(InvalidParameter, match="of this ledger"):
        two.commit(reserved(one), 1)


def test_at_opens_or_creates_and_insists_on_the_budget(place: str) -> None:
    first = Ledger.at(place, budget=promise(1.0))
    reserved(first, "a", 0.5)
    assert Ledger.at(place, budget=promise(1.0)).spent() == Pure(epsilon=0.5)
    with pytest.raises(InvalidParameter, match="decided once"):
        Ledger.at(place, budget=promise(2.0))
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(place, budget=promise(1.0))
    assert first.spent() == Pure(epsilon=0.5)


def test_two_requests_at_once_both_pay_and_the_first_answer_is_kept(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    one, two = reserved(ledger, "a"), reserved(ledger, "a")
    ledger.commit(two, "second ticket")
    ledger.commit(one, "first ticket")
    again = ledger.reserve(ask("a"))
    assert isinstance(again, Recorded)
    assert again.answer == "second ticket"
    assert ledger.spent() == Pure(epsilon=0.5)
    lines = [json.loads(line) for line in export(ledger)]
    assert [line["answer"] for line in lines if "answer" in line] == ["second ticket", "first ticket"]


def test_threads_share_one_ledger(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    outcomes: list[str] = []

    def work(name: str) -> None:
        for number in range(3):
            try:
                ledger.run(ask(f"{name}{number}", 0.125), lambda: 1)
                outcomes.append("paid")
            except BudgetExceeded:
                outcomes.append("refused")

    threads = [threading.Thread(target=work, args=(n,)) for n in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["paid"] * 8 + ["refused"] * 4
    assert ledger.verify().ok


# --- secrets -------------------------------------------------------------------------------------------
def test_the_secret_stays_inside(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.commit(reserved(ledger), 1, data_digest="0123456789abcdef")
    secret, key = ledger._secret, ledger.bounding_key
    assert len(key) == len(secret) == 32
    assert key != secret
    assert Ledger.open(place).bounding_key == key
    shown = "\n".join([*export(ledger), json.dumps(overview(ledger)), repr(ledger), str(ledger.verify())])
    for hidden in (secret.hex(), key.hex(), "0123456789abcdef"):
        assert hidden not in shown
    with pytest.raises(TypeError):
        pickle.dumps(ledger)


def test_two_ledgers_have_different_secrets(tmp_path: Path) -> None:
    one, two = (Ledger.create(tmp_path / n, budget=promise(1.0)) for n in "ab")
    assert one.bounding_key != two.bounding_key
    marks = []
    for ledger in (one, two):
        ledger.commit(reserved(ledger), 1, data_digest="the same data")
        with ledger._store.reading() as connection:
            marks.append(connection.first("SELECT mark FROM tacit_data")[0])
    assert len({*marks, "the same data"}) == 3


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Ledger.create(tmp_path / "a", budget=promise(1.0))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_password_is_never_shown() -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open("postgresql://someone:hunter2@127.0.0.1:1/nowhere")
    assert "hunter2" not in str(caught.value)
    assert "cannot be reached" in str(caught.value)


# --- what an auditor gets ------------------------------------------------------------------------------
def test_the_export_can_be_checked_without_the_ledger(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.run(ask("a"), lambda: {"value": 1.5})
    ledger.run(ask("b"), lambda: b"\x00\xff")
    header, *entries = [json.loads(line) for line in export(ledger)]
    previous = sha256(canonical(header["header"]))
    for line in entries:
        assert line["entry"]["previous"] == previous
        previous = sha256(canonical(line["entry"]))
        assert line["digest"] == previous
    assert ledger.anchor == f"{len(entries)}:{previous}"
    assert [line.get("answer") for line in entries] == [None, {"value": 1.5}, None, "AP8="]
    assert not any("answer" in json.loads(line) for line in export(ledger, answers=False))


def test_the_overview_adds_up(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0), shares={"eve": Pure(epsilon=0.5)})
    ledger.run(ask("a", 0.25), lambda: 1)
    ledger.fail(reserved(ledger, "b", 0.125, analyst="bob"))
    reserved(ledger, "c", 0.125, analyst="bob")
    found = json.loads(json.dumps(overview(ledger)))
    assert found["spent"] == {"kind": "pure", "epsilon": 0.5}
    assert found["remaining"] == {"kind": "pure", "epsilon": 0.5}
    assert {n: a["spent"]["epsilon"] for n, a in found["analysts"].items()} == {
        "ann": 0.25,
        "bob": 0.25,
        "eve": 0,
    }
    assert [c["state"] for c in found["charges"]] == ["committed", "failed", "reserved"]


def test_the_last_charges_are_those_of_the_overview(place: str) -> None:
    """What `tacit ledger show` prints adds nothing up anew, and says the same."""
    ledger = Ledger.create(place, budget=promise(1.0), shares={"eve": Pure(epsilon=0.5)})
    for number, who in enumerate(["ann", "bob", "ann", "bob", "bob"]):
        ledger.run(ask(f"q{number}", 0.0625, analyst=who), lambda number=number: number)
    ledger.fail(reserved(ledger, "f", 0.125, analyst="bob"))
    reserved(ledger, "open", 0.125, analyst="bob")
    ledger.withdraw(3, note="a column was wrong")
    ledger.supersede(1, with_=9, note="new rows")
    ledger.note("audited", about=5)
    whole = json.loads(json.dumps(overview(ledger)))
    for opened in (ledger, Ledger.open(place)):
        for most in (0, 1, 3, 99):
            found = json.loads(json.dumps(screen(opened, most=most)))
            last = whole["charges"][-most:] if most else []
            assert found == {**whole, "charges": last, "older": 7 - len(last)}
        found = screen(opened, most=1, wanted=lambda body: body["analyst"] == "ann")
        assert (found["charges"], found["older"]) == ([whole["charges"][2]], 1)
        assert found["analysts"]["bob"]["charges"] == 5


def test_declarations_stay_with_the_charge(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    sentence = "the sample was secret"
    reserved(ledger, "a", replace(promise(0.25), declared=(sentence,)))
    assert Ledger.open(place).charges()[0].guarantee.declared == (sentence,)
    assert overview(ledger)["declared"] == [f"charge 1: {sentence}"]


# --- replaced, rolled back -----------------------------------------------------------------------------
def test_an_older_copy_is_noticed_by_whoever_knew_more(tmp_path: Path) -> None:
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0))
    reserved(ledger, "a")
    older = path.read_bytes()
    reserved(ledger, "b")
    anchor = ledger.anchor
    path.write_bytes(older)
    for _ in range(2):
        with pytest.raises(LedgerCorrupt, match="lost entries"):
            ledger.reserve(ask("c"))
    assert verify_ledger(path).ok, "an older copy is consistent in itself: the documented limit"
    assert not verify_ledger(path, [anchor]).ok


def test_another_ledger_in_its_place_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    Ledger.create(tmp_path / "b", budget=promise(1.0))
    (tmp_path / "b").replace(tmp_path / "a")
    for _ in range(2):
        with pytest.raises(LedgerCorrupt, match="another"):
            ledger.reserve(ask("c"))
    (tmp_path / "a").unlink()
    with pytest.raises(LedgerError, match="does not exist"):
        ledger.reserve(ask("c"))
    assert not (tmp_path / "a").exists()


def test_a_sound_ledger_is_left_alone_by_a_tampered_history(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    reserved(ledger, "a")
    tamper(ledger, "DELETE FROM tacit_entries WHERE sequence = 1")
    for call in (lambda: Ledger.open(place), lambda: Ledger.open(place).reserve(ask("b"))):
        with pytest.raises(LedgerCorrupt):
            call()


def test_exact_numbers_add_up_as_on_paper(place: str) -> None:
    tenth, budget = Fraction(1, 10), promise(0.3)
    ledger = Ledger.create(place, budget=budget, exact={"epsilon": Fraction(3, 10)})
    for number in range(3):
        reserved(ledger, f"q{number}", 0.1, exact={"epsilon": tenth})
    assert ledger.remaining() == Pure(epsilon=0)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("more", 1e-12))
    assert Ledger.open(place).charges()[0].exact == {"epsilon": tenth}
