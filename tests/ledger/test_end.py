"""The end of the chain states the sum: opening reads the end alone, and a change of it is found there."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import ask, promise, tamper
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerCorrupt, UnitMismatch
from tacit.exact.canonical import canonical, sha256
from tacit.guarantees import (
    Approximate,
    Concentrated,
    Guarantee,
    Pure,
    RandomData,
    Renyi,
    rows,
    running_sum,
)
from tacit.ledger import Ledger, Recorded, Ticket, budget, filtered, running_total, verify_ledger
from tacit.ledger import log as book


@pytest.fixture
def written(place: str) -> Ledger:
    """Five entries: two answered requests of two analysts, and a share."""
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.run(ask("a", 0.25), lambda: 1)
    ledger.run(ask("b", 0.25, analyst="bob"), lambda: 2)
    ledger.share("bob", Pure(epsilon=0.5))
    return ledger


def test_opening_and_charging_read_the_end_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    ledger = Ledger.create(path, budget=promise(1.0))
    for number in range(60):
        ledger.run(ask(f"q{number}", 0.0), lambda: 1)
    read: list[int] = []

    def counted(real: Any = book.read_entry, **given: Any) -> Any:
        read.append(given["sequence"])
        return real(**given)

    monkeypatch.setattr(book, "read_entry", counted)
    again = Ledger.open(path)
    assert read == [120]
    ticket = again.reserve(ask("another", 0.5))
    assert isinstance(ticket, Ticket)
    again.commit(ticket, 1)
    assert again.spent() == Pure(epsilon=0.5)
    assert set(read) <= {120, 121, 122}
    assert len(read) <= 6
    read.clear()
    assert isinstance(again.reserve(ask("q7", 0.0)), Recorded)
    assert sorted(set(read)) == [15, 16], "an answer is found by the index, and checked by itself"


def test_every_entry_states_the_sum_up_to_it(written: Ledger) -> None:
    said = [(e.kind, e.body["total"]) for e in written.entries()]
    quarter, half = {"epsilon": "1/4"}, {"epsilon": "1/2"}
    assert said == [
        ("reserve", quarter),
        ("commit", quarter),
        ("reserve", half),
        ("commit", half),
        ("share", half),
    ]


def last_with(ledger: Ledger, **changes: Any) -> tuple[str, str]:
    """The last entry with some of its words changed, and the digest of that."""
    content = canonical({**ledger.entries()[-1].body, **changes})
    return content, sha256(content)


def test_a_changed_last_entry_is_found_when_the_ledger_is_opened(written: Ledger, place: str) -> None:
    """Content and digest agree with each other; the keyed head names another digest."""
    content, digest = last_with(written, time="2001-01-01")
    tamper(written, f"UPDATE tacit_entries SET content = '{content}', digest = '{digest}' WHERE sequence = 5")
    with pytest.raises(LedgerCorrupt, match="ends elsewhere"):
        Ledger.open(place)


def test_a_changed_sum_is_found(written: Ledger, place: str) -> None:
    content, digest = last_with(written, total={"epsilon": "0"})
    tamper(written, f"UPDATE tacit_entries SET content = '{content}' WHERE sequence = 5")
    with pytest.raises(LedgerCorrupt):
        Ledger.open(place)
    # Even by somebody who can key the head anew: `verify` adds up.
    from tacit.ledger.log import head_mac

    keyed = head_mac(written._secret, sha256(written._header), 5, digest)
    tamper(
        written,
        f"UPDATE tacit_entries SET digest = '{digest}' WHERE sequence = 5",
        f"UPDATE tacit_ledger SET digest = '{digest}', mac = '{keyed}'",
    )
    assert "entry 5 states another sum" in str(verify_ledger(place))
    with pytest.raises(LedgerCorrupt, match="another sum"):
        Ledger.open(place).charges()


@pytest.mark.parametrize("old", ['"bob":{"epsilon":"1/4"}', '"exact":{"epsilon":"1/2"}'])
def test_a_changed_state_beside_the_head_is_found(written: Ledger, place: str, old: str) -> None:
    new = old.replace("1/4", "0/4").replace("1/2", "9/1")
    tamper(written, f"UPDATE tacit_ledger SET state = replace(state, '{old}', '{new}')")
    with pytest.raises(LedgerCorrupt, match="state that was changed"):
        Ledger.open(place)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(place).reserve(ask("d", 0.25))
    assert "the state beside the head was changed" in str(verify_ledger(place))


def test_a_state_of_a_fresh_ledger_is_checked_too(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0), shares={"bob": Pure(epsilon=0.5)})
    tamper(ledger, 'UPDATE tacit_ledger SET state = \'{"analysts":{},"shares":{}}\'')
    with pytest.raises(LedgerCorrupt):
        Ledger.open(place)


INDEX_CHANGES = {
    "another mac": (
        "UPDATE tacit_index SET mac = 'x' WHERE substr(name, 1, 6) = 'answer'",
        "not where the index says",
    ),
    "another entry": (
        "UPDATE tacit_index SET sequence = 4 WHERE substr(name, 1, 6) = 'answer' AND sequence = 2",
        "that the index does not name",
    ),
    "deleted": (
        "DELETE FROM tacit_index WHERE substr(name, 1, 6) = 'answer' AND sequence = 2",
        "does not name",
    ),
    "a close deleted": ("DELETE FROM tacit_index WHERE name = 'closed 1'", "not where the index says"),
    "added": ("INSERT INTO tacit_index VALUES ('closed 77', 2, 'x', 'y')", "does not account for"),
}


@pytest.mark.parametrize("change", INDEX_CHANGES)
def test_a_changed_index_gives_no_other_answer(written: Ledger, place: str, change: str) -> None:
    statement, said = INDEX_CHANGES[change]
    tamper(written, statement)
    assert said in str(verify_ledger(place))
    if change in ("another mac", "another entry"):
        with pytest.raises(LedgerCorrupt, match="index"):
            Ledger.open(place).reserve(ask("a", 0.25))


def test_an_answer_cannot_be_moved_to_another_question(written: Ledger, place: str) -> None:
    """The rows of two questions with all that belongs to them, their names exchanged."""
    names = [name for (name,) in written._store.read(lambda c: c.rows(
        "SELECT name FROM tacit_index WHERE substr(name, 1, 6) = 'answer' ORDER BY sequence"))]  # fmt: skip
    tamper(
        written,
        f"UPDATE tacit_index SET name = 'x' WHERE name = '{names[0]}'",
        f"UPDATE tacit_index SET name = '{names[0]}' WHERE name = '{names[1]}'",
        f"UPDATE tacit_index SET name = '{names[1]}' WHERE name = 'x'",
    )
    with pytest.raises(LedgerCorrupt, match="index"):
        Ledger.open(place).reserve(ask("a", 0.25))


# --- sums ------------------------------------------------------------------------------------------------
def test_a_share_of_six_tenths_is_two_of_three_tenths(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0), shares={"bob": Pure(epsilon=0.6)})
    part = {"epsilon": Fraction(3, 10)}
    for number in range(2):
        assert isinstance(ledger.reserve(ask(f"q{number}", 0.3, analyst="bob", exact=part)), Ticket)
    assert ledger.remaining("bob") == Pure(epsilon=0)
    with pytest.raises(BudgetExceeded, match="the share of 'bob'"):
        ledger.reserve(ask("more", 1e-300, analyst="bob"))
    ledger.share("bob", Pure(epsilon=0.7))
    assert isinstance(
        Ledger.open(place).reserve(ask("q3", 0.1, analyst="bob", exact={"epsilon": Fraction(1, 10)})), Ticket
    )
    ledger.share("eve", Pure(epsilon=0.1), exact={"epsilon": Fraction(1, 10)})
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("float", 0.1, analyst="eve"))  # the float is a little more than a tenth


def test_a_budget_takes_the_float_that_it_is_and_the_decimal_that_it_prints_as(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "a", budget=promise(0.1)).reserve(ask("a", 0.1))
    other = Ledger.create(tmp_path / "b", budget=promise(0.6))
    for key in "ab":
        other.reserve(ask(key, 0.3, exact={"epsilon": Fraction(3, 10)}))
    with pytest.raises(BudgetExceeded):
        other.reserve(ask("c", 1e-300))


def test_sums_of_ever_new_fractions_stay_short_and_never_fall_short(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(1e6))
    primes = [p for p in range(2, 8000) if all(p % q for q in range(2, int(p**0.5) + 1))]
    total, state = Fraction(0), ledger._state
    for n, prime in enumerate(primes):
        exact = Fraction(1, prime)
        request = ask("q", float(exact), exact={"epsilon": exact})
        charge = ledger._next("reserve", state, **budget_body(request)).charge()
        state = state.charged(charge)
        total += exact
        held = state.total["epsilon"]
        assert held is not None
        assert 0 <= held - total <= Fraction(n + 1, 2**running_sum.SUM_BITS)
        assert held.denominator.bit_length() <= running_sum.SUM_BITS + 1
    assert state.total["epsilon"] != total


def budget_body(request: Any) -> dict[str, Any]:
    from tacit.ledger.entries import reserve_body

    return reserve_body(request, "")


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (Approximate(epsilon=1, delta=1e-6), Approximate(epsilon=0.5, delta=2.5e-7)),
        (Concentrated(rho=1), Concentrated(rho=0.5)),
        (Renyi(orders=(2, 10), epsilons=(1, 8)), Renyi(orders=(2, 10), epsilons=(0.5, 1))),
    ],
)
def test_a_reopened_ledger_goes_on_with_the_same_sum(place: str, whole: Any, part: Any) -> None:
    Ledger.create(place, budget=promise(whole)).close()
    for key in "ab":
        with Ledger.open(place) as ledger:
            ledger.reserve(ask(key, part))
    ledger = Ledger.open(place)
    assert ledger.spent() == budget.spent(ledger.charges(), ledger.limit)
    assert ledger.remaining() == budget.left(ledger.charges(), ledger.limit)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(ask("c", part))
    with pytest.raises(BudgetExceeded) as other:
        ledger.reserve(ask("c", part), lambda charges, limit: running_total(charges, limit))
    assert str(caught.value) == str(other.value)


def test_a_check_of_ones_own_sees_what_others_charged(place: str) -> None:
    from tacit.accounting import filter_for

    one, two, check = Ledger.create(place, budget=promise(1.0)), Ledger.open(place), filtered(filter_for)
    for number in range(4):
        (one if number % 2 else two).reserve(ask(f"q{number}", 0.25), check)
    for ledger in (one, two, Ledger.open(place)):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(ask("more", 0.25), check)


# --- in whose terms --------------------------------------------------------------------------------------
def test_a_charge_under_a_condition_is_not_paid_from_an_unconditional_budget(place: str) -> None:
    unit = rows(neighbours="replace-one")
    ledger = Ledger.create(place, budget=Guarantee(bound=Pure(epsilon=1), unit=unit))
    sampled = Guarantee(bound=Pure(epsilon=0.5), unit=unit, condition=RandomData(gamma=0.01))
    for check in (None, lambda *_: None):
        with pytest.raises(InvalidParameter, match="hold always"):
            ledger.reserve(ask("a", charge=sampled), check)
    assert ledger.entries() == ()


def test_another_unit_is_refused_under_a_condition_too(place: str) -> None:
    condition = RandomData(gamma=0.01)
    unit = rows(neighbours="replace-one")
    ledger = Ledger.create(place, budget=Guarantee(bound=Pure(epsilon=1), unit=unit, condition=condition))
    other = rows()
    for under in (condition, None):
        given: dict[str, Any] = {} if under is None else {"condition": under}
        with pytest.raises(UnitMismatch):
            ledger.reserve(
                ask("a", charge=Guarantee(bound=Pure(epsilon=0.5), unit=other, **given)), lambda *_: None
            )
    assert ledger.entries() == ()


# --- whose answer ----------------------------------------------------------------------------------------
def test_an_answer_belongs_to_a_question_a_table_and_a_version(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0), table="survey")
    ledger.run(ask("a", 0.25), lambda: 1)
    assert isinstance(ledger.recorded(ask("a", 0.25, table="survey")), Recorded)
    assert ledger.recorded(ask("a", 0.25, version="2026-12")) is None
    assert ledger.recorded(ask("b", 0.25)) is None
    with pytest.raises(InvalidParameter, match="that of the ledger, 'survey'"):
        ledger.reserve(ask("a", 0.25, table="census"))
    assert isinstance(ledger.reserve(ask("a", 0.25, version="2026-12")), Ticket)
    assert ledger.spent() == Pure(epsilon=0.5), "a new version is paid from the same budget"
    nameless = Ledger.open(place)
    assert nameless.table == "survey"


def test_texts_that_look_alike_are_not_one_question(place: str) -> None:
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.run(ask("a", 0.0, table="b", version="c"), lambda: 1)
    for other in (("a", "bc", ""), ("ab", "", "c"), ('a","b', "", "c"), ("a", "b", "")):
        assert ledger.recorded(ask(other[0], 0.0, table=other[1], version=other[2])) is None


def test_whether_the_data_changed_is_told_to_the_custodian_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    ledger = Ledger.create(path, budget=promise(1.0))
    for number, (version, digest) in enumerate(
        [("v1", "x"), ("v1", "x"), ("v1", "y"), ("v2", "x"), ("v1", "y")]
    ):
        ticket = ledger.reserve(ask(f"q{number}", 0.0, version=version))
        assert isinstance(ticket, Ticket)
        ledger.commit(ticket, 1, data_digest=digest)
    note = tmp_path / "a.ledger-data"
    lines = note.read_text().splitlines()
    assert [line.split("  data ")[1].split("  version")[0].strip() for line in lines] == [
        "seen first", "as before", "CHANGED", "seen first", "as before",
    ]  # fmt: skip
    assert note.stat().st_mode & 0o777 == 0o600
    assert len({len(line) - len(line.split("  ")[1]) for line in lines}) == 1, "no length tells"
    from tacit.ledger import export, overview

    shown = "\n".join([*export(ledger), json.dumps(overview(ledger))])
    marks = ledger._store.read(lambda c: c.rows("SELECT mark, version FROM tacit_data"))
    assert len(marks) == 5
    assert not [m for row in marks for m in row if m in shown]
    assert "CHANGED" not in shown


def test_what_was_not_committed_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One book's charge comes to nothing; another's takes its place in the chain: the first sees that one."""
    path = tmp_path / "a"
    one = Ledger.create(path, budget=promise(1.0))
    other = Ledger.open(path)
    one.run(ask("a", 0.25), lambda: 1)

    def broken(*_: Any) -> None:
        raise InvalidParameter(parameter="disk", value="full", must="have room")

    with monkeypatch.context() as patched:
        patched.setattr(one._store, "_commit", broken)
        with pytest.raises(InvalidParameter):
            one.reserve(ask("lost", 0.0))
    assert isinstance(other.reserve(ask("b", 0.5)), Ticket)
    assert one.spent() == Pure(epsilon=0.75)
    with pytest.raises(BudgetExceeded):
        one.reserve(ask("c", 0.5))
