"""The same question at the same price is planned once, and is still paid for and noised each time."""

from __future__ import annotations

from typing import Any

import pytest

import tacit
from tacit.curator import kept_plans
from tacit.errors import UnknownColumn


def test_the_same_question_at_the_same_price_is_planned_once(make: Any) -> None:
    with make() as held, make(analyst="other") as other:
        plan = held.preview(tacit.count(by="state"), epsilon=0.1)
        assert held.preview(tacit.count(by=["state"]), epsilon=0.1) is plan
        assert held.preview([tacit.count(by="state")], epsilon=0.1) is plan
        assert held.preview(tacit.count(by="state"), epsilon=0.2) is not plan
        assert held.preview(tacit.ask(tacit.count(by="state"), consistent=True), epsilon=0.1) is not plan
        assert other.preview(tacit.count(by="state"), epsilon=0.1) is not plan


def test_what_is_equal_and_prints_otherwise_is_another_question(make: Any) -> None:
    """0 == 0.0, and a certificate says which of them was asked for."""
    with make() as held, make(analyst="other") as other:
        for edges in ([0, 50, 99], [0.0, 50.0, 99.0]):
            here = held.preview(tacit.histogram("age", edges), epsilon=0.1)
            assert here.digest == other.preview(tacit.histogram("age", edges), epsilon=0.1).digest
        assert held.preview(tacit.histogram("age", [0, 50, 99]), epsilon=0.1).digest != here.digest


def test_a_kept_plan_is_charged_and_noised_anew(make: Any) -> None:
    with make(tacit.Pure(epsilon=1.0)) as held:
        one, two = (held.release(tacit.count(by="state"), epsilon=0.25, key=key) for key in "ab")
        assert one.planned is two.planned
        assert [float(c.exact["epsilon"]) for c in held.ledger.charges()] == [0.25, 0.25]
        assert one.table["value"].tolist() != two.table["value"].tolist()
        again = held.release(tacit.count(by="state"), epsilon=0.25, key="a")
        assert again.replayed
        assert again.table["value"].tolist() == one.table["value"].tolist()


def test_what_is_refused_is_refused_again_and_few_are_kept(make: Any) -> None:
    with make() as held:
        for _ in range(2):
            with pytest.raises(UnknownColumn):
                held.preview(tacit.count(by="absent"), epsilon=0.1)
        first = held.preview(tacit.count(), epsilon=0.1)
        for turn in range(kept_plans.MOST):
            held.preview(tacit.count(), epsilon=1 + turn)
        assert held.preview(tacit.count(), epsilon=0.1) is not first
        assert held.preview(tacit.count(), epsilon=0.1).digest == first.digest
        many = [tacit.ask(tacit.count(), name=str(n)) for n in range(kept_plans.LONGEST + 1)]
        assert held.preview(many, epsilon=0.1) is not held.preview(many, epsilon=0.1)
