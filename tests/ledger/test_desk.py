"""Who may do what: names, shares, requests with signed approvals, notes, withdrawals, and what verify says of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from support.ledgers import ask, promise, tamper
from tacit.curator.certificate import SigningKey
from tacit.errors import (
    BudgetExceeded,
    InvalidParameter,
    LedgerCorrupt,
    LedgerVersion,
    NotAllowed,
    TacitError,
    UnknownName,
)
from tacit.exact.canonical import canonical, sha256
from tacit.guarantees import Pure
from tacit.ledger import Ledger, Recorded, Request, Ticket, log, overview, verify_ledger
from tacit.ledger.entries import Person, read_entry
from tacit.ledger.log import head_mac
from tacit.ledger.register import APPROVAL, Open, Register

ADA, EVE = SigningKey(Ed25519PrivateKey.generate()), SigningKey(Ed25519PrivateKey.generate())


@pytest.fixture
def desk(tmp_path: Path) -> Ledger:
    """Ann asks, ada and eve approve, every charge needs an approval."""
    ledger = Ledger.create(tmp_path / "survey.ledger", budget=promise(1.0), table="survey")
    ledger.enrol("ann", "analyst")
    ledger.enrol("ada", "approver", key=ADA.public.text)
    ledger.enrol("eve", ["approver", "analyst"], key=EVE.public.text)
    ledger.demand(True)
    return ledger


def untouched(ledger: Ledger, act: Callable[[], Any], error: type[TacitError], match: str) -> None:
    """The act is refused with the reason, and nothing is charged or written."""
    before = ledger.anchor, ledger.spent()
    with pytest.raises(error, match=match):
        act()
    assert (ledger.anchor, ledger.spent()) == before


def approved(ledger: Ledger, request: Request) -> int:
    number, _ = ledger.request(request)
    ledger.approve(number, by="ada", key=ADA)
    return number


def test_a_ledger_may_demand_approvals(desk: Ledger) -> None:
    untouched(desk, lambda: desk.reserve(ask()), NotAllowed, "nobody approved it")
    number, _ = desk.request(ask(), note="for the annual report")
    assert desk.request(ask())[0] == number
    untouched(desk, lambda: desk.reserve(ask()), NotAllowed, f"request {number} waits")
    desk.approve(number, by="ada", key=ADA)
    ticket = desk.reserve(ask())
    assert isinstance(ticket, Ticket)
    assert ticket.approved_by == ("ada",)
    assert desk.requests() == {}
    desk.commit(ticket, 1)
    assert desk.verify().ok
    assert isinstance(desk.reserve(ask()), Recorded)
    assert overview(desk)["charges"][0]["approved_by"] == ["ada"]


def test_an_approved_charge_reads_what_came_since_it_was_asked_for(
    desk: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not the whole chain, in a process that has just opened the ledger."""
    for number in range(12):
        approved(desk, ask(f"q{number}", 2**-10))
        desk.run(ask(f"q{number}", 2**-10), lambda: 1)
    number, _ = desk.request(ask("last"))
    desk.approve(number, by="ada", key=ADA, signed="server")
    seen: list[int] = []

    def counted(**row: Any) -> Any:
        seen.append(row["sequence"])
        return read_entry(**row)

    monkeypatch.setattr(log, "read_entry", counted)
    ticket = Ledger.open(desk.place).reserve(ask("last"))
    assert isinstance(ticket, Ticket)
    assert ticket.signed == {"ada": "server"}
    assert min(seen) > number - 2
    assert len(seen) < 6


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tacit_entries SET content = replace(content, 'server', 'elsewhere')",
        "DELETE FROM tacit_entries",
    ],
)
def test_a_changed_approval_is_noticed_when_it_is_used(desk: Ledger, change: str) -> None:
    number, _ = desk.request(ask())
    desk.approve(number, by="ada", key=ADA, signed="server")
    desk.note("a later entry")
    opened = Ledger.open(desk.place)
    tamper(desk, f"{change} WHERE sequence = {number + 1}")
    with pytest.raises(LedgerCorrupt):
        opened.reserve(ask())


def test_an_approval_says_who_keeps_its_key(desk: Ledger) -> None:
    number, _ = desk.request(ask())
    untouched(
        desk,
        lambda: desk.approve(number, by="ada", key=ADA, signed="here"),
        UnknownName,
        "place of a signature",
    )
    desk.approve(number, by="ada", key=ADA, signed="server")
    desk.approve(number, by="eve", key=EVE)
    with Ledger.open(desk.place) as again:
        ticket = again.reserve(ask())
        assert isinstance(ticket, Ticket)
        assert ticket.signed == {"ada": "server"}
        assert again.verify().ok


def test_who_asks_does_not_approve(desk: Ledger) -> None:
    number, _ = desk.request(ask(analyst="eve"))
    untouched(
        desk, lambda: desk.approve(number, by="eve", key=EVE), NotAllowed, "they asked for it themselves"
    )
    untouched(
        desk,
        lambda: desk.approve(number, by="Eve", key=EVE),
        NotAllowed,
        "the name is read as 'eve', who asked",
    )
    desk.approve(number, by="ada", key=ADA)
    assert isinstance(desk.reserve(ask(analyst="eve")), Ticket)


def test_only_an_approver_approves(desk: Ledger) -> None:
    key = SigningKey(Ed25519PrivateKey.generate())
    desk.enrol("bob", "analyst", key=key.public.text)
    number, _ = desk.request(ask())
    for name in ("bob", "mallory"):
        untouched(
            desk, lambda name=name: desk.approve(number, by=name, key=key), NotAllowed, "as no approver"
        )
    untouched(desk, lambda: desk.approve(99, by="ada", key=ADA), NotAllowed, "no request of this number")


def test_an_approval_is_signed_by_the_name_for_this_request(desk: Ledger, tmp_path: Path) -> None:
    number, _ = desk.request(ask())
    untouched(desk, lambda: desk.approve(number, by="ada"), NotAllowed, "is not signed")
    untouched(desk, lambda: desk.approve(number, by="ada", key=EVE), NotAllowed, "not theirs")
    # For eve's name, for another request, for another ledger, and as a certificate.
    other, _ = desk.request(ask("other"))
    twin = Ledger.create(tmp_path / "twin.ledger", budget=promise(1.0), table="survey")
    for name, roles, key in (
        ("ann", "analyst", ""),
        ("ada", "approver", ADA.public.text),
        ("eve", ["approver", "analyst"], EVE.public.text),
    ):
        twin.enrol(name, roles, key=key)
    twin.demand(True)
    assert twin.request(ask())[0] == number
    strange = {
        "eve": ADA.sign(APPROVAL, desk.approval(number, "eve")),
        "other": ADA.sign(APPROVAL, desk.approval(other, "ada")),
        "certificate": ADA.sign("tacit certificate 3", desk.approval(number, "ada")),
        "nothing": {"algorithm": "Ed25519", "key": ADA.public.fingerprint, "value": "00" * 64},
    }
    for signature in strange.values():
        untouched(
            desk, lambda s=signature: desk.approve(number, by="ada", signature=s), NotAllowed, "not theirs"
        )
    # Even with the same time on both requests, a signature is about one ledger.
    from tacit.ledger.register import approval_digest

    open_here = desk.requests()[number]
    for foreign in (twin.id, "", "0" * 32):
        signature = ADA.sign(APPROVAL, approval_digest(foreign, number, open_here, "ada"))
        untouched(
            desk, lambda s=signature: desk.approve(number, by="ada", signature=s), NotAllowed, "not theirs"
        )
    desk.approve(number, by="ada", signature=ADA.sign(APPROVAL, desk.approval(number, "ada")))
    untouched(desk, lambda: desk.approve(number, by="ada", key=ADA), NotAllowed, "approved it already")


def test_an_approval_is_used_once(desk: Ledger) -> None:
    approved(desk, ask())
    ticket = desk.reserve(ask())
    assert isinstance(ticket, Ticket)
    desk.fail(ticket)
    untouched(desk, lambda: desk.reserve(ask()), NotAllowed, "nobody approved it")
    assert desk.spent() == Pure(epsilon=0.25)


@pytest.mark.parametrize(
    "change",
    [
        {"plan_digest": "another plan"},
        {"key": "another key"},
        {"charge": promise(0.125)},
        {"analyst": "eve"},
        {"version": "2026-12"},
        {"event": {"kind": "laplace", "noise_scale": 2.0, "times": 1}},
        {"told": [{"release": "a", "statistic": "b", "price": "c"}]},
    ],
)
def test_an_approval_is_for_one_plan_price_asker_table_and_version(
    desk: Ledger, change: dict[str, Any]
) -> None:
    approved(desk, ask())
    wanted = Request(**({f: getattr(ask(), f) for f in Request.__slots__} | change))
    untouched(desk, lambda: desk.reserve(wanted), NotAllowed, "nobody approved it")


def test_an_approver_who_lost_the_role_or_the_key_does_not_count(desk: Ledger) -> None:
    approved(desk, ask())
    desk.enrol("ada", "analyst", key=ADA.public.text)
    untouched(desk, lambda: desk.reserve(ask()), NotAllowed, "waits for an approver")
    fresh = SigningKey(Ed25519PrivateKey.generate())
    desk.enrol("ada", "approver", key=fresh.public.text, change=True)
    untouched(desk, lambda: desk.reserve(ask()), NotAllowed, "waits for an approver")
    # What was approved under the old key does not come back with it; a new approval counts.
    desk.enrol("ada", "approver", key=ADA.public.text, change=True)
    untouched(desk, lambda: desk.reserve(ask()), NotAllowed, "waits for an approver")
    assert desk.verify().ok
    (number,) = desk.requests()
    desk.approve(number, by="ada", key=ADA)
    # An approver who stays one, with the same key, is not asked again.
    desk.enrol("ada", ["approver", "analyst"], key=ADA.public.text)
    assert isinstance(desk.reserve(ask()), Ticket)
    assert desk.verify().ok


def test_an_approval_in_an_earlier_ledger_counts_by_its_key() -> None:
    """Entries of earlier versions revoke nothing: an approval stays, and counts if its key is the approver's."""
    old, new = (SigningKey(Ed25519PrivateKey.generate()).public.text for _ in range(2))
    register = Register(people={"ada": Person(name="ada", roles=("approver",), key=new)})
    for key, counts in ((old, False), (new, True)):
        request = Open(asked="0" * 64, analyst="ann", time="2026-11-17", approved={"ada": key})
        assert register._approves("ada", request.approved["ada"], request) is counts


def test_names_without_a_role_do_not_ask(desk: Ledger) -> None:
    for name in ("mallory", "ada", "Ann"):
        untouched(desk, lambda name=name: desk.reserve(ask(analyst=name)), NotAllowed, "as no analyst")
        untouched(desk, lambda name=name: desk.request(ask(analyst=name)), NotAllowed, "as no analyst")


def test_two_people_do_not_share_a_name(desk: Ledger) -> None:
    key = SigningKey(Ed25519PrivateKey.generate()).public.text
    untouched(desk, lambda: desk.enrol("ann", "analyst"), InvalidParameter, "somebody's already")
    untouched(desk, lambda: desk.enrol("ada", "approver", key=key), InvalidParameter, "somebody's already")
    for spelling in ("Ann", "an n", "ａｎｎ"):
        untouched(desk, lambda s=spelling: desk.enrol(s, "analyst"), InvalidParameter, "not be read as 'ann'")
    untouched(
        desk,
        lambda: desk.enrol("ada2", "approver", key=ADA.public.text),
        InvalidParameter,
        "be that of 'ada'",
    )
    desk.enrol("ada", ["approver", "custodian"], key=ADA.public.text)
    assert desk.people()["ada"].roles == ("approver", "custodian")


@pytest.mark.parametrize(
    ("roles", "key", "error", "match"),
    [
        ("aprover", "", UnknownName, "aprover"),
        (["analyst", "king"], "", UnknownName, "king"),
        ("approver", "", InvalidParameter, "given for an approver"),
        ("analyst", "zz", InvalidParameter, "hexadecimal"),
        (7, "", InvalidParameter, "list of roles"),
        # Points of small order, for which anybody can make a signature up; no point; a second spelling.
        ("approver", "01" + "00" * 31, InvalidParameter, "Ed25519"),
        ("approver", "00" * 32, InvalidParameter, "Ed25519"),
        ("approver", "ec" + "ff" * 30 + "7f", InvalidParameter, "Ed25519"),
        (
            "approver",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            InvalidParameter,
            "Ed25519",
        ),
        ("approver", "ee" + "ff" * 30 + "7f", InvalidParameter, "Ed25519"),
        ("approver", "ff" * 32, InvalidParameter, "Ed25519"),
    ],
)
def test_bad_roles(desk: Ledger, roles: Any, key: str, error: type[TacitError], match: str) -> None:
    untouched(desk, lambda: desk.enrol("zoe", roles, key=key), error, match)


def test_keys_that_are_made_are_taken() -> None:
    from tacit.ledger.entries import is_key

    assert all(is_key(Ed25519PrivateKey.generate().public_key().public_bytes_raw()) for _ in range(50))


@pytest.mark.parametrize("signature", ["abc", [1], 7, {"algorithm": "Ed25519"}, {"value": "00", "more": 1}])
def test_what_is_no_signature_is_refused_in_words(desk: Ledger, signature: Any) -> None:
    number, _ = desk.request(ask())
    untouched(
        desk, lambda: desk.approve(number, by="ada", signature=signature), InvalidParameter, "algorithm, key"
    )


def test_where_there_is_a_custodian_one_must_say_so(desk: Ledger) -> None:
    desk.enrol("cora", "custodian")
    for act in (
        lambda: desk.enrol("mallory", "approver", key=SigningKey(Ed25519PrivateKey.generate()).public.text),
        lambda: desk.demand(False, by="ann"),
        lambda: desk.share("ann", Pure(epsilon=1), by="ann"),
    ):
        untouched(desk, act, NotAllowed, "role of custodian")
    desk.share("ann", Pure(epsilon=0.25), by="cora")
    untouched(
        desk, lambda: desk.enrol("cora", [], change=True, by="cora"), InvalidParameter, "leave .* a custodian"
    )
    untouched(desk, lambda: desk.request(ask(charge=0.5)), BudgetExceeded, "the share of 'ann'")


def test_approvals_are_not_demanded_of_nobody(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    untouched(ledger, lambda: ledger.demand(True), InvalidParameter, "another may approve")


def test_a_request_is_taken_back(desk: Ledger) -> None:
    number = approved(desk, ask())
    desk.close_request(number, by="ann", note="not needed")
    untouched(desk, lambda: desk.reserve(ask()), NotAllowed, "nobody approved it")
    untouched(desk, lambda: desk.close_request(number, by="ann"), InvalidParameter, "open request")


def test_what_is_withdrawn_stays_paid_and_says_so(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    told = [{"release": "a", "statistic": "how many", "price": {}}]
    first = ledger.reserve(ask("one", told=told))
    second = ledger.reserve(ask("two"))
    assert isinstance(first, Ticket)
    assert isinstance(second, Ticket)
    untouched(ledger, lambda: ledger.withdraw(1, note="x"), InvalidParameter, "that was answered")
    ledger.commit(first, 1)
    ledger.commit(second, 2)
    untouched(
        ledger,
        lambda: ledger.withdraw(1, note="x", release="b"),
        InvalidParameter,
        "be a release of charge 1",
    )
    untouched(ledger, lambda: ledger.withdraw(1, note=""), InvalidParameter, "note")
    ledger.withdraw(first.sequence, note="rows were counted twice")
    untouched(ledger, lambda: ledger.withdraw(1, note="x"), InvalidParameter, "withdrawn already")
    ledger.supersede(first.sequence, with_=second.sequence)
    for bad in (lambda: ledger.supersede(2, with_=1), lambda: ledger.supersede(1, with_=2)):
        untouched(ledger, bad, InvalidParameter, "later charge|replaced already")
    assert ledger.spent() == Pure(epsilon=0.5)
    again = ledger.reserve(ask("one", told=told))
    assert isinstance(again, Recorded)
    assert [(c.kind, c.replaced_by) for c in again.corrections] == [("withdraw", None), ("supersede", 2)]
    assert "rows were counted twice" in str(again.corrections[0])
    assert ledger.verify().ok
    assert ledger.recorded(ask("two")).corrections == ()  # type: ignore[union-attr]


def test_notes_are_entries(desk: Ledger) -> None:
    desk.note("audited by the office", by="cora", about=1)
    untouched(desk, lambda: desk.note("x", about=99), InvalidParameter, "number of an entry")
    untouched(desk, lambda: desk.note("a\x1b[2J"), InvalidParameter, "printable")
    assert overview(desk)["notes"][0]["note"] == "audited by the office"


def test_one_approval_and_two_at_once_is_one_charge(desk: Ledger) -> None:
    approved(desk, ask())
    outcomes: list[Any] = []

    def go() -> None:
        with Ledger.open(desk.name) as own:
            try:
                outcomes.append(own.reserve(ask()))
            except NotAllowed as problem:
                outcomes.append(problem)

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(o, Ticket) for o in outcomes) == 1
    assert desk.spent() == Pure(epsilon=0.25)


def rewritten(ledger: Ledger, change: Callable[[dict[str, Any]], None]) -> None:
    """Somebody with the file and its secret rewrites the chain consistently, except for what they cannot sign."""
    import sqlite3

    with sqlite3.connect(ledger.name) as file:
        rows = file.execute("SELECT sequence, content FROM tacit_entries ORDER BY sequence").fetchall()
        digest = sha256(ledger._header)
        for sequence, content in rows:
            body = json.loads(content)
            change(body)
            body["previous"] = digest
            text = canonical(body)
            digest = sha256(text)
            file.execute(
                "UPDATE tacit_entries SET digest=?, content=? WHERE sequence=?", (digest, text, sequence)
            )
        mac = head_mac(ledger._secret, ledger._start, rows[-1][0], digest)
        file.execute("UPDATE tacit_ledger SET digest=?, mac=?", (digest, mac))


def test_verify_finds_a_forged_approval(desk: Ledger) -> None:
    approved(desk, ask())

    def forged(body: dict[str, Any]) -> None:
        if body["kind"] == "approve":
            body["signature"] = {**body["signature"], "value": "00" * 64}

    rewritten(desk, forged)
    found = verify_ledger(desk.name)
    assert any("says what was not allowed" in p.what for p in found.problems)


def test_an_older_ledger_is_read_and_an_older_program_refuses_a_newer_one(tmp_path: Path) -> None:
    import sqlite3

    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    with sqlite3.connect(ledger.name) as file:
        file.execute("UPDATE tacit_ledger SET format = 2")
    ledger = Ledger.open(tmp_path / "a.ledger")
    assert ledger.verify().ok
    ledger.note("hello")
    with sqlite3.connect(ledger.name) as file:
        assert file.execute("SELECT format FROM tacit_ledger").fetchone() == (3,)
        file.execute("UPDATE tacit_ledger SET format = 4")
    with pytest.raises(LedgerVersion):
        Ledger.open(tmp_path / "a.ledger")


def test_dust_is_told_as_nothing_and_never_granted(tmp_path: Path) -> None:
    from fractions import Fraction

    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    almost = Fraction(1) - Fraction(8, 10**14)
    ledger.reserve(ask("most", promise(float(almost))))
    assert ledger.remaining() == Pure(epsilon=0.0)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        ledger.reserve(ask("more", 1e-3))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("dust", 9e-14))
