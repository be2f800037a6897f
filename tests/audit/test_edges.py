"""The second opinion where its two orders differ, and where noise is wide only for its sensitivity."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from typing import Any

import pytest

import tacit
from tacit.accounting import account
from tacit.accounting import events as ev
from tacit.accounting.codec import to_record
from tacit.audit import opinion_on_certificate, opinion_on_noise
from tacit.curator.certificate import CIPHER, certify
from tacit.curator.planning import make_plan
from tacit.guarantees import Neighbours

MADE = {"time": "2026-01-01T00:00:00+00:00", "noise": CIPHER, "data": {"bounded": True}, "versions": {}}


def gaussian(low: float, high: float) -> dict[str, Any]:
    plan = make_plan(
        [tacit.query(tacit.sum("v"), mu=0.5)], schema=tacit.Schema({"v": tacit.integer(int(low), int(high))}),
        unit=tacit.rows(), budget=tacit.GaussianDP(mu=1.0),
    )  # fmt: skip
    made: dict[str, Any] = json.loads(
        json.dumps(certify(plan, plan.releases[0], ledger={}, made=MADE, values=None))
    )
    return made


def test_gaussian_noise_is_weighed_against_its_sensitivity() -> None:
    """Values up to 50: noise that is wide enough for a count is 50 times too narrow for them."""
    honest = gaussian(0, 50)
    (noise,), (record,) = honest["mechanism"]["noise"], honest["event"]
    assert record["event"]["kind"] == "gaussian"
    steps = noise["sensitivity"]["steps_squared"]
    assert steps > 1
    assert opinion_on_noise(honest).confirmed is True  # type: ignore[union-attr]
    multiplier = Fraction(record["event"]["noise_multiplier"])
    for share, holds in ((Fraction(1, 50), False), (Fraction(99, 100), False), (Fraction(101, 100), True)):
        changed = copy.deepcopy(honest)
        wide = Fraction(math.isqrt(steps)) * multiplier * share
        assert math.isqrt(steps) ** 2 == steps
        changed["mechanism"]["noise"][0]["noise_std"] = str(wide)
        assert opinion_on_noise(changed).confirmed is holds, share  # type: ignore[union-attr]
    more = copy.deepcopy(honest)
    more["mechanism"]["noise"][0]["sensitivity"]["steps_squared"] = steps * 4
    assert opinion_on_noise(more).confirmed is False  # type: ignore[union-attr]


def stated(delta: float, neighbours: str, *tables: tuple[list[float], list[float]]) -> dict[str, Any]:
    """As much of a certificate as the second opinion reads: (ln 8, delta) for these pairs of laws."""
    bound = {"kind": "approximate", "epsilon": math.log(8), "delta": delta}
    records = [{"version": 1, "event": {"kind": "tabulated", "p": p, "q": q}} for p, q in tables]
    guarantee = {"bound": bound, "condition": {"kind": "always"}}
    return {"guarantee": guarantee, "event": records, "neighbours": neighbours, "mechanism": {}}


def delta_of(left: list[float], right: list[float]) -> float:
    return sum(max(a - 8 * b, 0.0) for a, b in zip(left, right, strict=True))


LEFT, RIGHT = [0.5, 0.5], [0.96, 0.04]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
@pytest.mark.parametrize("table", [(LEFT, RIGHT), (RIGHT, LEFT)], ids=["this order", "the other"])
def test_a_table_is_weighed_in_the_order_that_tells_more(table: Any, neighbours: str) -> None:
    """At epsilon ln 8 one order has delta 0.18, the other 0: neither order of writing them down hides it."""
    orders = delta_of(*table), delta_of(*reversed(table))
    worst = max(orders)
    assert min(orders) < worst / 2
    for delta, holds in ((worst * 1.001, True), (worst * 0.9, False), (min(orders) + 1e-6, False)):
        assert opinion_on_certificate(stated(delta, neighbours, table)).confirmed is holds, delta


def test_two_tables_that_lean_to_opposite_sides_are_not_weighed_order_by_order() -> None:
    """(p, q) and (q, p) together: a replaced unit may meet each pair in its worse order, both at once.

    Order by order the two would partly cancel.
    """

    def product(x: list[float], y: list[float]) -> list[float]:
        return [a * b for a in x for b in y]

    p, q = [0.5, 0.5], [0.9, 0.1]
    apart = max(delta_of(product(p, q), product(q, p)), delta_of(product(q, p), product(p, q)))
    together = max(delta_of(product(p, p), product(q, q)), delta_of(product(q, q), product(p, p)))
    assert apart < 0.8 * together
    between = stated((apart + together) / 2, "replace-one", (p, q), (q, p))
    assert opinion_on_certificate(between).confirmed is False
    # What it weighs is the larger curve of each: above both products, and not far.
    assert opinion_on_certificate(stated(together * 1.5, "replace-one", (p, q), (q, p))).confirmed is True


SHUFFLED = [
    ev.ShuffledEvent(event=ev.RandomizedResponseEvent(epsilon=1.5, categories=2), people=40),
    ev.ShuffledEvent(event=ev.RandomizedResponseEvent(epsilon=1.5, categories=4), people=20),
    ev.ShuffledEvent(event=ev.LaplaceEvent(epsilon=1.25), people=60),
]


@pytest.mark.parametrize("event", SHUFFLED, ids=["two answers", "four answers", "any mechanism"])
def test_shuffled_answers_are_weighed_by_a_program_of_its_own(event: ev.ShuffledEvent) -> None:
    """What the accountant finds is confirmed, a tenth less is not, and the local epsilon is not what it confirms."""
    delta = 1e-3
    epsilon = account(event, delta=delta, neighbours=Neighbours.REPLACE_ONE).epsilon.high
    assert epsilon < 0.9 * event.pure(), "shuffling helps, so that there is something to weigh"
    for stated_epsilon, holds in ((epsilon * 1.01, True), (epsilon * 0.9, False)):
        bound = {"kind": "approximate", "epsilon": stated_epsilon, "delta": delta}
        said = {
            "guarantee": {"bound": bound, "condition": {"kind": "always"}},
            "event": json.loads(json.dumps([to_record(event)])), "neighbours": "replace-one", "mechanism": {},
        }  # fmt: skip
        assert opinion_on_certificate(said).confirmed is holds, stated_epsilon
