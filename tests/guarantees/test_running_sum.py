"""The one running sum, against sums made here of whole numbers, and the definitions.

Roots are compared by their squares, floats with their two neighbours; nothing of the code under test sizes what is
expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw
from tacit.exact.rounding import down, up
from tacit.guarantees import Approximate, Concentrated, GaussianDP, Pure, Renyi
from tacit.guarantees.running_sum import (
    APPROXIMATE,
    CONCENTRATED,
    GAUSSIAN,
    PURE,
    SUM_BITS,
    Amounts,
    Currency,
    Divergences,
    added,
    currency_of,
    exceeds,
    rational_root,
    rest,
    root,
    summed,
)
from tacit.ledger import Ledger, Request

ORDERS = Divergences((1.5, 4.0, 32.0))
CLOSE = Divergences((2.0000001, 2.0000002))
CURRENCIES: dict[str, Currency] = {
    "pure": PURE, "approximate": APPROXIMATE, "concentrated": CONCENTRATED, "gaussian": GAUSSIAN, "renyi": ORDERS,
    "close orders": CLOSE,
}  # fmt: skip
every = pytest.mark.parametrize("currency", CURRENCIES.values(), ids=CURRENCIES)

numbers = st.builds(Fraction, st.integers(0, 10**15), st.integers(1, 10**9))
positive = st.builds(Fraction, st.integers(1, 10**15), st.integers(1, 10**9))
addends = st.none() | numbers


def of(currency: Currency, values: Any) -> Amounts:
    return dict(zip(currency.names, values, strict=True))


def by_hand(currency: Currency, parts: list[tuple[Amounts, int]]) -> Amounts:
    """Over one common denominator, as whole numbers; infinity where any addend is."""
    out: Amounts = {}
    for name in currency.names:
        each = [(a[name], n) for a, n in parts]
        known = [(x, n) for x, n in each if x is not None]
        below = math.lcm(1, *(x.denominator for x, _ in known))
        above = sum(x.numerator * (below // x.denominator) * n for x, n in known)
        out[name] = Fraction(above, below) if len(known) == len(each) else None
    return out


# --- sums are exact, whatever their order --------------------------------------------------------------------
@every
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_sums_are_exact_and_have_no_order(currency: Currency, data: st.DataObject) -> None:
    one = st.tuples(
        st.lists(addends, min_size=len(currency.names), max_size=len(currency.names)), st.integers(1, 10**9)
    )
    parts = [(of(currency, values), n) for values, n in data.draw(st.lists(one, max_size=6))]
    shuffled = data.draw(st.permutations(parts))
    expected = by_hand(currency, parts)
    assert summed(currency, parts) == summed(currency, shuffled) == expected
    total = currency.zero()
    for amounts, _ in shuffled:
        total = added(total, amounts)
    assert total == by_hand(currency, [(a, 1) for a, _ in parts])


def test_ten_tenths_are_one_and_ten_floats_of_a_tenth_are_not() -> None:
    tenth = PURE.of_bound(Pure(epsilon=0.1), {"epsilon": Fraction(1, 10)})
    assert summed(PURE, [(tenth, 10)]) == {"epsilon": 1}
    assert PURE.bound(summed(PURE, [(tenth, 10)])) == Pure(epsilon=1.0)
    nearest = PURE.of_bound(Pure(epsilon=0.1))
    assert nearest == {"epsilon": Fraction(3602879701896397, 2**55)}
    assert PURE.bound(summed(PURE, [(nearest, 10)])).epsilon == math.nextafter(1.0, 2.0)


def test_long_sums_are_rounded_up_and_by_less_than_a_place_each() -> None:
    total, exact = PURE.zero(), Fraction(0)
    for k in range(1, 9):
        addend = Fraction(1, 3**700 + 2 * k)
        total, exact = added(total, {"epsilon": addend}), exact + addend
        held = total["epsilon"]
        assert held is not None
        assert held.denominator.bit_length() <= SUM_BITS + 1
        assert 0 <= held - exact <= Fraction(k, 2**SUM_BITS)
    assert total["epsilon"] != exact


# --- reading a sum as a bound: up for what was spent, down for what is left ------------------------------------
KINDS: list[tuple[Currency, Callable[[Any], float]]] = [
    (PURE, lambda b: b.epsilon), (APPROXIMATE, lambda b: b.epsilon), (CONCENTRATED, lambda b: b.rho),
    (ORDERS, lambda b: b.epsilons[2]),
]  # fmt: skip


@pytest.mark.parametrize(("currency", "read"), KINDS, ids=[c.kind for c, _ in KINDS])
@given(value=positive)
@settings(max_examples=60, deadline=None)
def test_a_sum_is_between_its_two_readings(
    currency: Currency, read: Callable[[Any], float], value: Fraction
) -> None:
    share = Fraction(1, 10**16)
    amounts = of(
        currency, [value, value * share][: len(currency.names)] if currency is not ORDERS else [value] * 3
    )
    high, low = read(currency.bound(amounts, up)), read(currency.bound(amounts, down))
    assert Fraction(low) <= value <= Fraction(high)
    assert math.nextafter(low, math.inf) >= high  # the nearest floats on either side
    if low == high:
        assert Fraction(low) == value
    if currency is APPROXIMATE:
        spent, left = currency.bound(amounts, up), currency.bound(amounts, down)
        assert isinstance(spent, Approximate)
        assert isinstance(left, Approximate)
        assert Fraction(left.delta) <= value * share <= Fraction(spent.delta)


def tenth_power(exponent: int) -> Fraction:
    return Fraction(10) ** exponent


squares = st.one_of(
    positive,
    st.builds(lambda x, e: x * tenth_power(e), positive, st.integers(-300, 290)),
    st.builds(lambda n: Fraction(n) ** 2, st.integers(1, 10**30)),
    st.builds(lambda n: Fraction(n) ** 2 + Fraction(1, 10**80), st.integers(1, 10**9)),
    st.builds(lambda n: Fraction(n) ** 2 - Fraction(1, 10**80), st.integers(1, 10**9)),
)


@given(square=squares)
@settings(max_examples=200, deadline=None)
def test_roots_are_the_nearest_floats_on_either_side(square: Fraction) -> None:
    low, high = root(square, down), root(square, up)
    below, above = rational_root(square, down), rational_root(square)
    assert below**2 <= square <= above**2
    assert above - below <= above / 2**150
    assert (below == above) is (above**2 == square)
    assert GAUSSIAN.exact({"mu squared": square}) == {"mu": above}
    # Comparing squares is comparing roots, without any root.
    assert Fraction(low) ** 2 <= square <= Fraction(high) ** 2
    assert Fraction(math.nextafter(low, math.inf)) ** 2 > square or low == high
    assert Fraction(math.nextafter(high, 0.0)) ** 2 < square


def test_mu_is_the_root_of_the_sum_of_squares() -> None:
    three, four = (GAUSSIAN.of_bound(GaussianDP(mu=m)) for m in (3.0, 4.0))
    assert GAUSSIAN.bound(added(three, four)) == GaussianDP(mu=5.0)
    two = summed(GAUSSIAN, [(GAUSSIAN.of_bound(GaussianDP(mu=1.0)), 2)])
    assert GAUSSIAN.bound(two, up) == GaussianDP(
        mu=1.4142135623730951
    )  # the float is above the root, which ends ...0488
    assert GAUSSIAN.bound(two, down).mu < GAUSSIAN.bound(two, up).mu
    assert root(Fraction(0)) == root(Fraction(0), down) == 0.0


# --- infinity -------------------------------------------------------------------------------------------------
@every
def test_infinity_stays_infinite_and_fits_nothing_but_itself(currency: Currency) -> None:
    one, endless = of(currency, [Fraction(1, 3)] * len(currency.names)), dict.fromkeys(currency.names)
    assert added(one, endless) == added(endless, one) == endless
    assert summed(currency, [(one, 5), (endless, 1)]) == endless
    assert exceeds(endless, one)
    assert not exceeds(endless, endless)
    assert not exceeds(one, endless)
    assert rest(one, endless) == endless
    assert rest(endless, one) == currency.zero()
    assert "inf" in currency.summary(endless)


def test_an_infinite_divergence_comes_back_as_it_is() -> None:
    bound = Renyi(orders=ORDERS.orders, epsilons=(1.0, 2.0, math.inf))
    assert ORDERS.of_bound(bound) == of(ORDERS, [Fraction(1), Fraction(2), None])
    assert ORDERS.bound(ORDERS.of_bound(bound)) == bound


# --- ceilings: every number has its own --------------------------------------------------------------------------
@every
def test_each_number_alone_can_pass_its_ceiling(currency: Currency) -> None:
    ceiling = of(currency, [Fraction(1, 10)] * len(currency.names))
    assert not exceeds(ceiling, ceiling)  # exactly at the ceiling fits
    assert rest(ceiling, ceiling) == currency.zero()
    for name in currency.names:
        over = {**currency.zero(), name: Fraction(1, 10) + Fraction(1, 10**60)}
        assert exceeds(over, ceiling)
        assert rest(over, ceiling) == currency.zero()  # nothing is left of any number
        below = {**currency.zero(), name: Fraction(1, 30)}
        assert rest(below, ceiling) == {**ceiling, name: Fraction(1, 15)}


def test_orders_that_print_alike_keep_sums_and_ceilings_of_their_own(tmp_path: Path) -> None:
    assert len(set(CLOSE.names)) == 2
    assert ORDERS.names == tuple(f"epsilon at order {a}" for a in ("1.5", "4", "32"))
    budget = tacit.Guarantee(bound=Renyi(orders=CLOSE.orders, epsilons=(1.0, 100.0)), unit=tacit.rows())
    asked = tacit.Guarantee(bound=Renyi(orders=CLOSE.orders, epsilons=(50.0, 50.0)), unit=tacit.rows())
    ledger = Ledger.create(tmp_path / "ledger", budget=budget)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Request(key="k", plan_digest="00", analyst="ada", event={"kind": "x"}, charge=asked))


def test_divergences_are_read_by_their_names() -> None:
    """A sum that was sorted by name, as JSON does, is the same sum."""
    amounts = of(ORDERS, [Fraction(1), Fraction(2), Fraction(3)])
    assert ORDERS.bound(dict(sorted(amounts.items()))) == Renyi(
        orders=ORDERS.orders, epsilons=(1.0, 2.0, 3.0)
    )
    assert ORDERS.summary(dict(sorted(amounts.items()))) == ORDERS.summary(amounts)


def test_divergences_of_other_bounds_are_their_own_at_these_orders() -> None:
    assert ORDERS.of_bound(Concentrated(rho=0.25)) == of(ORDERS, [Fraction(3, 8), Fraction(1), Fraction(8)])


# --- kinds --------------------------------------------------------------------------------------------------------
BOUNDS: dict[str, Any] = {
    "pure": Pure(epsilon=0.25), "approximate": Approximate(epsilon=0.25, delta=0.125),
    "concentrated": Concentrated(rho=0.25), "gaussian": GaussianDP(mu=0.25),
}  # fmt: skip


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("currency", [PURE, APPROXIMATE, CONCENTRATED, GAUSSIAN], ids=lambda c: c.kind)
def test_a_sum_takes_bounds_of_its_own_kind(currency: Currency, kind: str) -> None:
    """(epsilon, delta) in a sum of epsilons would lose its delta; pure is (epsilon, 0)."""
    fits = kind == currency.kind or (kind, currency.kind) == ("pure", "approximate")
    if not fits:
        with pytest.raises(InvalidParameter, match="kind"):
            currency.of_bound(BOUNDS[kind])
        return
    quarter = Fraction(1, 4)
    expected = {"pure": [quarter], "approximate": [quarter, Fraction(1, 8)], "concentrated": [quarter],
                "gaussian": [quarter**2]}[kind]  # fmt: skip
    assert currency.of_bound(BOUNDS[kind]) == of(currency, [*expected, 0][: len(currency.names)])
    assert currency_of(BOUNDS[kind]).kind == kind  # type: ignore[union-attr]


def test_a_curve_has_no_running_sum() -> None:
    assert currency_of(tacit.Profile.laplace(epsilon=1)) is None


def test_deltas_that_reach_one_are_no_bound() -> None:
    with pytest.raises(NoLaw, match="add up to 1"):
        APPROXIMATE.bound({"epsilon": Fraction(1), "delta": Fraction(1)})


@dataclass(frozen=True)
class Told:
    """A release that says what it costs."""

    value: Any
    pair: Any = None

    def pure(self) -> Any:
        return self.value

    concentrated = mu_squared = pure

    def approximate(self) -> Any:
        return self.pair

    def renyi(self, order: float, *, neighbours: Any) -> Any:
        return None if self.value is None or order > self.value else float(order)


def test_releases_add_what_they_say_or_nothing_is_added() -> None:
    for currency in (PURE, CONCENTRATED, GAUSSIAN):
        assert currency.of_release(Told(None), neighbours="replace-one") is None
        assert currency.of_release(Told(0.5), neighbours="replace-one") == of(currency, [Fraction(1, 2)])
        assert currency.of_release(Told(math.inf), neighbours="replace-one") == of(currency, [None])
    pair = Told(None, pair=(math.inf, Fraction(1, 7)))
    assert APPROXIMATE.of_release(pair, neighbours="replace-one") == of(APPROXIMATE, [None, Fraction(1, 7)])
    assert APPROXIMATE.of_release(Told(1), neighbours="replace-one") is None
    # One order without a divergence: none of the sums is known.
    assert ORDERS.of_release(Told(10), neighbours="replace-one") is None
    assert ORDERS.of_release(Told(99), neighbours="replace-one") == of(ORDERS, [Fraction(3, 2), 4, 32])
