"""A ledger under random differential privacy: three sums, one plan, and what may be chosen as one goes."""

from __future__ import annotations

import pytest

from support.ledgers import ask
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw
from tacit.guarantees import Approximate, Guarantee, Pure, RandomData, rows
from tacit.guarantees.conditions import FIXED_BEFORE
from tacit.ledger import Ledger, Ticket, looked, on_random_data, record_plan

UNIT = rows(neighbours="replace-one")
BUDGET = Guarantee(bound=Approximate(epsilon=1, delta=1e-6), unit=UNIT, condition=RandomData(gamma=0.0625))
CHECK = on_random_data(BUDGET)


def price(epsilon: float, gamma: float | None, delta: float = 0.0, *declared: str) -> Guarantee:
    bound = Approximate(epsilon=epsilon, delta=delta) if delta else Pure(epsilon=epsilon)
    given = {} if gamma is None else {"condition": RandomData(gamma=gamma)}
    return Guarantee(bound=bound, unit=UNIT, declared=declared, **given)  # type: ignore[arg-type]


def pay(ledger: Ledger, key: str, charge: Guarantee, plan: str = "one") -> None:
    assert isinstance(ledger.reserve(ask(key, charge=charge, plan_digest=plan), CHECK), Ticket)


def test_epsilon_delta_and_gamma_add_within_a_plan(place: str) -> None:
    ledger = Ledger.create(place, budget=BUDGET)
    pay(ledger, "a", price(0.25, 0.03125))
    pay(ledger, "b", price(0.25, 0.015625, 2.0**-21))
    with pytest.raises(BudgetExceeded, match=r"gamma = 0\.015625"):  # what is left
        pay(ledger, "c", price(0.25, 0.03125))
    with pytest.raises(BudgetExceeded):
        pay(ledger, "c", price(0.5000001, 0.001))
    with pytest.raises(BudgetExceeded):
        pay(ledger, "c", price(0.1, 0.001, 1e-6))
    assert len(ledger.entries()) == 2
    pay(ledger, "c", price(0.5, 0.015625))
    with pytest.raises(BudgetExceeded):
        pay(ledger, "d", price(0.001, None))


def test_a_second_plan_is_refused_unless_it_was_there_before(place: str) -> None:
    ledger = Ledger.create(place, budget=BUDGET)
    pay(ledger, "a", price(0.125, 0.01))
    with pytest.raises(NoLaw, match="cell J"):
        pay(ledger, "b", price(0.125, 0.01), plan="two")
    assert len(ledger.entries()) == 1
    pay(ledger, "b", price(0.125, 0.01, 0.0, FIXED_BEFORE), plan="two")
    with pytest.raises(NoLaw):
        pay(ledger, "c", price(0.125, 0.01, 0.0, "something else"), plan="three")


def test_what_holds_always_may_be_chosen_as_one_goes_but_not_the_other_way_round(place: str) -> None:
    ledger = Ledger.create(place, budget=BUDGET)
    pay(ledger, "a", price(0.125, 0.01))
    pay(ledger, "b", price(0.125, None), plan="two")
    with pytest.raises(NoLaw):
        pay(ledger, "c", price(0.125, 0.01))  # of the first plan, after another was seen and never declared
    pay(ledger, "d", price(0.125, None), plan="three")


def test_a_plan_after_a_question_of_differential_privacy(place: str) -> None:
    ledger = Ledger.create(place, budget=BUDGET)
    pay(ledger, "a", price(0.125, None), plan="first")
    with pytest.raises(NoLaw):
        pay(ledger, "b", price(0.125, 0.01), plan="second")


def test_what_is_no_charge_of_this_budget(place: str) -> None:
    ledger = Ledger.create(place, budget=BUDGET)
    with pytest.raises(InvalidParameter, match="hold always"):
        pay(ledger, "a", price(0.125, 0.07))
    with pytest.raises(InvalidParameter, match="under RandomData"):
        on_random_data(price(1.0, None))
    with pytest.raises(NoLaw, match="on_random_data"):
        ledger.reserve(ask("a", charge=price(0.125, 0.01)))


def test_a_plan_that_is_younger_than_a_look_is_refused(place: str) -> None:
    """Gamma is for mechanisms fixed before the data were seen, and here the ledger itself knows better."""
    ledger = Ledger.create(place, budget=BUDGET)
    old, new = "0" * 64, "1" * 64
    record_plan(ledger, old, analyst="curator")
    looked(ledger, analyst="curator", version="2025")
    for declared in ((), (FIXED_BEFORE,)):
        with pytest.raises(NoLaw, match="after a look"):
            pay(ledger, "a", price(0.125, 0.01, 0.0, *declared), plan=new)
    record_plan(ledger, new, analyst="curator")  # too late
    with pytest.raises(NoLaw, match="after a look"):
        pay(ledger, "a", price(0.125, 0.01), plan=new)
    assert not ledger.charges()
    pay(ledger, "b", price(0.125, 0.01), plan=old)
    pay(ledger, "c", price(0.125, None), plan=new)  # holds always: the certificate says that somebody looked
