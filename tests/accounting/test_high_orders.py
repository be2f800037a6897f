"""Rényi orders that cannot give less are not computed, and those that can give what they gave."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.accounting import account
from tacit.accounting import events as e
from tacit.guarantees import Neighbours
from tacit.guarantees.bounds.base import COMMON_ORDERS
from tacit.pld import Product
from tacit.pld.renyi import without_replacement_at_least, without_replacement_renyi

KINDS: dict[str, Any] = {
    "randomised response": lambda s: e.RandomizedResponseEvent(epsilon=1 / s),
    "Gaussian": lambda s: e.GaussianEvent(noise_multiplier=s),
    "Laplace": lambda s: e.LaplaceEvent(epsilon=1 / s),
    "pure": lambda s: e.PureEvent(epsilon=1 / s),
    "approximate": lambda s: e.ApproximateEvent(epsilon=1 / s, delta=1e-9),
    "table": lambda s: e.TabulatedEvent(p=(0.2, 0.3, 0.5), q=(0.25, 0.3, 0.45)),
    "concentrated": lambda s: e.ConcentratedEvent(rho=1 / s**2),
}


def sampled(kind: str, noise: float, rate: float) -> e.Event:
    return e.SampledWithoutReplacementEvent(event=KINDS[kind](noise), sampling_rate=rate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("noise", "rate"), [(0.2, 0.01), (1.0, 0.3), (3.0, 0.05), (30.0, 0.5), (1.0, 1.0)])
def test_a_divergence_is_not_below_what_it_is_said_not_to_be(kind: str, noise: float, rate: float) -> None:
    pairs = sampled(kind, noise, rate).pairs(Neighbours.REPLACE_ONE)  # type: ignore[attr-defined]
    for pair in pairs or ():
        for order in (a for a in COMMON_ORDERS if a <= 64):
            assert pair.renyi_at_least(order) <= pair.renyi(order)


def test_it_is_most_of_the_divergence_where_that_decides() -> None:
    """From the definition: of little noise and rare sampling the first terms are nearly all of the sum."""
    for noise, rate, order in ((3.0, 0.01, 8), (2.0, 0.02, 16), (5.0, 0.01, 64)):
        inner = (Product(pairs=[(KINDS["Gaussian"](noise).pairs(Neighbours.REPLACE_ONE)[0], 1)]),)
        least = without_replacement_at_least(inner, rate, order)
        assert 0.5 < least / without_replacement_renyi(inner, rate, order) <= 1
        second = math.comb(order, 2) * rate**2 * 4 * math.expm1(1 / noise**2)
        assert least * (order - 1) >= math.log1p(second) * (1 - 1e-6)


PLANS = {
    "one": [(2.0, 0.01)],
    "little noise": [(0.3, 0.01)],
    "ten": [(1.0 + 0.2 * k, 0.01 + 0.004 * k) for k in range(10)],
    "much noise": [(20.0 + k, 0.2) for k in range(6)],
}


@pytest.mark.parametrize("kind", ["randomised response", "Gaussian", "table", "concentrated"])
@pytest.mark.parametrize("plan", PLANS)
def test_accounts_are_what_they_are_with_all_orders(
    kind: str, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [sampled(kind, *one) for one in PLANS[plan]]
    for delta in (1e-3, 1e-8):
        found = account(events, delta=delta, neighbours="replace-one")
        with monkeypatch.context() as all_orders:
            all_orders.setattr(Product, "renyi_reaches", lambda *_: False)
            assert account(events, delta=delta, neighbours="replace-one") == found


def test_a_hundred_different_ones_ask_for_few_divergences(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.pld import renyi

    asked: list[float] = []
    real = renyi.without_replacement_renyi
    monkeypatch.setattr(renyi, "without_replacement_renyi", lambda *a: (asked.append(a[2]), real(*a))[1])
    events = [sampled("randomised response", 2.0 + 0.2 * k, 0.01 + 0.0004 * k) for k in range(100)]
    account(events, delta=1e-9, neighbours="replace-one")
    assert sum(asked) < 100 * 64, "expansions of hundreds of terms each take seconds"
