"""Running totals are exact, and round against the asker."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ledgers import ask, promise
from tacit.accounting import AdvancedFilter, bound_of, codec, events, filter_for
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw
from tacit.guarantees import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Pointwise,
    Pure,
    Renyi,
)
from tacit.ledger import Charge, Ledger, Limit, filtered, recount, running_total
from tacit.ledger.budget import in_currency, left, spent

AMOUNTS = st.one_of(
    st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 1e-9, 5e-324]),
    st.floats(min_value=0, max_value=2, allow_subnormal=False),
)


def charged(*bounds: Bound | float, **exact: Fraction) -> list[Charge]:
    return [
        Charge(
            sequence=n, time="", analyst="ann", key=str(n), plan_digest="p", event={}, guarantee=promise(b),
            exact=exact,
        )
        for n, b in enumerate(bounds)
    ]  # fmt: skip


def fits(limit: Bound, *bounds: Bound | float) -> bool:
    try:
        running_total(charged(*bounds), Limit(bound=limit))
    except BudgetExceeded:
        return False
    return True


@given(amounts=st.lists(AMOUNTS, min_size=1, max_size=8), budget=AMOUNTS)
def test_sums_are_those_of_the_exact_rationals(amounts: list[float], budget: float) -> None:
    total = sum(map(Fraction, amounts))
    assert fits(Pure(epsilon=budget), *amounts) == (total <= Fraction(budget))
    rho = [Concentrated(rho=a) for a in amounts]
    assert fits(Concentrated(rho=budget), *rho) == (total <= Fraction(budget))
    mu = [GaussianDP(mu=a) for a in amounts]
    squares = sum(Fraction(a) ** 2 for a in amounts)
    assert fits(GaussianDP(mu=budget), *mu) == (squares <= Fraction(budget) ** 2)


@given(
    epsilons=st.lists(AMOUNTS, min_size=1, max_size=5),
    deltas=st.lists(st.sampled_from([0.0, 1e-6, 1e-7, 0.1]), min_size=5, max_size=5),
    budget=AMOUNTS,
)
def test_both_numbers_of_an_approximate_budget_bind(
    epsilons: list[float], deltas: list[float], budget: float
) -> None:
    limit = Approximate(epsilon=budget, delta=1e-6)
    asked = [Approximate(epsilon=e, delta=d) for e, d in zip(epsilons, deltas, strict=False)]
    expected = sum(map(Fraction, epsilons)) <= Fraction(budget) and sum(
        Fraction(d) for d in deltas[: len(epsilons)]
    ) <= Fraction(1e-6)
    assert fits(limit, *asked) == expected


@given(amounts=st.lists(AMOUNTS, max_size=6), budget=AMOUNTS)
def test_what_is_said_to_be_left_does_fit_and_hardly_more_does(amounts: list[float], budget: float) -> None:
    for kind, name in ((Pure, "epsilon"), (Concentrated, "rho"), (GaussianDP, "mu")):
        limit = Limit(bound=kind(**{name: budget}))
        done = charged(*(kind(**{name: a}) for a in amounts))
        if amounts and not fits(limit.bound, *(c.guarantee.bound for c in done)):
            assert left(done, limit) == kind(**{name: 0.0})
            continue
        rest = left(done, limit)
        assert fits(limit.bound, *(c.guarantee.bound for c in done), rest)
        more = kind(**{name: math.nextafter(rest.parameters[name], math.inf) * (1 + 1e-15)})
        assert not fits(limit.bound, *(c.guarantee.bound for c in done), more)


@given(amounts=st.lists(AMOUNTS, max_size=6))
def test_what_is_said_to_be_spent_is_never_less_than_the_sum(amounts: list[float]) -> None:
    total = Fraction(spent(charged(*amounts), Limit(bound=Pure(epsilon=1))).epsilon)
    assert total >= sum(map(Fraction, amounts))
    squares = sum(Fraction(a) ** 2 for a in amounts)
    mu = spent(charged(*(GaussianDP(mu=a) for a in amounts)), Limit(bound=GaussianDP(mu=1))).mu
    assert Fraction(mu) ** 2 >= squares
    assert mu == 0 or Fraction(math.nextafter(math.nextafter(mu, 0), 0)) ** 2 < squares


def test_floats_are_the_numbers_that_they_are() -> None:
    assert fits(Pure(epsilon=1), *[0.2] * 4)
    assert not fits(Pure(epsilon=1), *[0.2] * 5), "five times the float 0.2 is more than 1"
    running_total(charged(*[0.2] * 5, epsilon=Fraction(1, 5)), Limit(bound=Pure(epsilon=1)))


def test_a_pure_charge_is_paid_from_an_approximate_budget() -> None:
    limit = Approximate(epsilon=1, delta=1e-6)
    in_currency(promise(0.5), promise(limit))
    assert fits(limit, 0.5, Approximate(epsilon=0.5, delta=1e-6))
    assert not fits(limit, 0.5, Approximate(epsilon=0.5, delta=2e-6))


def test_renyi_budgets_bind_at_every_order() -> None:
    limit = Renyi(orders=(2, 8), epsilons=(1, 4))
    part = Renyi(orders=(2, 8), epsilons=(0.5, 1))
    assert fits(limit, part, part)
    assert not fits(limit, part, part, part)
    open_order = Renyi(orders=(2, 8), epsilons=(1, math.inf))
    assert fits(open_order, Renyi(orders=(2, 8), epsilons=(1, math.inf)))
    assert not fits(limit, Renyi(orders=(2, 8), epsilons=(0, math.inf)))
    assert left(charged(part), Limit(bound=limit)) == Renyi(orders=(2, 8), epsilons=(0.5, 3))
    with pytest.raises(InvalidParameter, match="orders"):
        in_currency(promise(Renyi(orders=(2,), epsilons=(0.1,))), promise(limit))


def test_kinds_without_a_filter_are_refused(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", budget=promise(Pointwise(epsilon=1, delta=1e-6)))
    with pytest.raises(NoLaw):
        ledger.reserve(ask("a", Pointwise(epsilon=0.1, delta=0)))
    with pytest.raises(NoLaw):
        spent(charged(Approximate(epsilon=0, delta=0.9), Approximate(epsilon=0, delta=0.9)),
              Limit(bound=Approximate(epsilon=1, delta=0.5)))  # fmt: skip


@pytest.mark.parametrize("exact", [Fraction(1, 3), 0.25, -1, Fraction(10**400)])
def test_exact_numbers_must_be_those_of_the_float(exact: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        ask("a", 0.2, exact={"epsilon": exact})
    with pytest.raises(InvalidParameter):
        ask("a", 0.2, exact={"rho": Fraction(1, 5)})


def test_either_rounding_of_a_fraction_is_its_float() -> None:
    for text in ("0.1", "0.2", "0.3", "0.7"):
        exact = Fraction(text)
        ask("a", float(text), exact={"epsilon": exact})
        ask("a", Pure(epsilon=exact), exact={"epsilon": exact})  # type: ignore[arg-type]


# --- against the accounting room, which was written independently ----------------------------------------
@given(
    amounts=st.lists(AMOUNTS, min_size=1, max_size=6),
    budget=AMOUNTS,
    kind=st.sampled_from([(Pure, "epsilon"), (Concentrated, "rho"), (GaussianDP, "mu")]),
)
def test_the_filters_of_accounting_admit_the_same(
    amounts: list[float], budget: float, kind: tuple[type[Bound], str]
) -> None:
    cls, name = kind
    limit = Limit(bound=cls(**{name: budget}))
    charges = charged(*(cls(**{name: a}) for a in amounts))
    try:
        filtered(filter_for)(charges, limit)
        admitted = True
    except BudgetExceeded:
        admitted = False
    assert admitted == fits(limit.bound, *(c.guarantee.bound for c in charges))


def test_a_filter_with_more_room(tmp_path: Path) -> None:
    """Advanced composition admits more small releases than the sum of epsilons does."""
    budget = Approximate(epsilon=1, delta=1e-6)
    ledger = Ledger.create(tmp_path / "a", budget=promise(budget))
    check = filtered(lambda bound: AdvancedFilter(bound))  # type: ignore[arg-type]
    price = Pure(epsilon=1 / 64)
    for number in range(80):
        ledger.reserve(ask(f"q{number}", price), check)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("plain", price))


def test_events_of_the_accounting_room_are_read_back(tmp_path: Path) -> None:
    event = events.RepeatedEvent(event=events.LaplaceEvent(epsilon=0.125), times=4)
    ledger = Ledger.create(tmp_path / "a", budget=promise(1.0))
    check = recount(codec.from_record, lambda found: bound_of(found, accountant="pure"))
    ledger.reserve(ask("a", 0.5, event=codec.to_record(event)), check)
    ledger.reserve(ask("b", 0.5, event=codec.to_record(event)), check)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask("c", 0.5, event=codec.to_record(event)), check)
    assert ledger.events(codec.from_record) == (event, event)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("first", "words"), [(0.3, "0.7"), (0.7, "0.3"), (0.8, "0.2"), (0.1, "0.9"), (1 / 3, "0.66666666666")]
)
def test_what_would_fit_is_told_in_few_digits_and_fits(
    place: str, first: float, words: str, exact: bool
) -> None:
    """Left over is 0.19999999999999996 as a float: who is told so asks for less than they may, or for dust."""
    ledger = Ledger.create(place, budget=promise(1.0))
    ledger.reserve(ask("a", first, exact={"epsilon": Fraction(str(first))} if exact else {}))
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(ask("b", 0.95, exact={"epsilon": Fraction("0.95")} if exact else {}))
    told = re.search(r"; epsilon=(\S+) would fit", str(caught.value))
    assert told is not None
    assert len(told[1]) <= 14
    assert told[1].startswith(words) or not exact
    ledger.reserve(ask("c", float(told[1]), exact={"epsilon": Fraction(told[1])} if exact else {}))
