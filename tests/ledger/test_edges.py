"""Single entries that decide: the charge itself, the first of two looks, the plan before the last one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from support.ledgers import ask, promise
from tacit.curator.certificate import SigningKey
from tacit.errors import InvalidParameter, NoLaw, NotAllowed, TacitError
from tacit.guarantees import Approximate, Guarantee, Pure, RandomData, rows
from tacit.guarantees.conditions import FIXED_BEFORE, SEEN
from tacit.ledger import Ledger, looked, on_random_data, record_plan, seen

DIGEST = "a" * 64


def untouched(ledger: Ledger, act: Callable[[], Any], error: type[TacitError], match: str) -> None:
    before = ledger.anchor, ledger.spent()
    with pytest.raises(error, match=match):
        act()
    assert (ledger.anchor, ledger.spent()) == before


def test_a_release_does_not_replace_itself(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    ledger.run(ask("one"), lambda: 1)
    untouched(ledger, lambda: ledger.supersede(1, with_=1), InvalidParameter, "later charge than 1")


def test_a_second_look_does_not_hide_the_first(tmp_path: Path) -> None:
    """Look, plan, look: the plan is younger than the first look, whatever came after it."""
    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    looked(ledger, analyst="curator", version="1")
    record_plan(ledger, DIGEST, analyst="curator", version="1")
    looked(ledger, analyst="curator", version="1")
    assert seen(ledger, DIGEST, version="1") == (SEEN,)
    assert seen(Ledger.open(tmp_path / "a.ledger"), DIGEST, version="1") == (SEEN,)


def test_nobody_but_the_asker_an_approver_or_a_custodian_closes_a_request(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", budget=promise(1.0))
    key = SigningKey(Ed25519PrivateKey.generate()).public.text
    ledger.enrol("cora", "custodian")
    for name, role in (("ann", "analyst"), ("dan", "analyst"), ("ada", "approver")):
        ledger.enrol(name, role, key=key if role == "approver" else "", by="cora")
    for number, by in enumerate(("ann", "ada", "cora")):
        request, _ = ledger.request(ask(f"q{number}"))
        untouched(ledger, lambda r=request: ledger.close_request(r, by="dan"), NotAllowed, "dan")  # type: ignore[misc]
        assert request in ledger.requests()
        ledger.close_request(request, by=by)
        assert request not in ledger.requests()


def test_every_earlier_plan_counts_not_only_the_last(tmp_path: Path) -> None:
    """A, then B (declared to be older), then B again without the declaration: it may have been chosen after A."""
    unit = rows(neighbours="replace-one")
    condition = RandomData(gamma=0.0625)
    budget = Guarantee(bound=Approximate(epsilon=1, delta=1e-6), unit=unit, condition=condition)
    ledger = Ledger.create(tmp_path / "a.ledger", budget=budget)

    def pay(key: str, plan: str, *declared: str) -> object:
        small = RandomData(gamma=0.01)
        price = Guarantee(bound=Pure(epsilon=0.125), unit=unit, condition=small, declared=declared)
        return ledger.reserve(ask(key, charge=price, plan_digest=plan), on_random_data(budget))

    pay("one", "A")
    pay("two", "B", FIXED_BEFORE)
    with pytest.raises(NoLaw, match="chosen after"):
        pay("three", "B")
    assert len(ledger.entries()) == 2
