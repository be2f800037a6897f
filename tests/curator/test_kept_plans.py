"""The same question at the same price is planned once, and is still paid for and noised each time."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tacit
from tacit.curator import planning as kept_plans
from tacit.errors import UnknownColumn
from tacit.exact.canonical import sha256


def test_the_same_question_at_the_same_price_is_planned_once(make: Any) -> None:
    with make() as held, make(analyst="other") as other:
        plan = held.preview(tacit.count(by="state"), epsilon=0.1)
        assert held.preview(tacit.count(by=["state"]), epsilon=0.1) is plan
        assert held.preview([tacit.count(by="state")], epsilon=0.1) is plan
        assert held.preview(tacit.count(by="state"), epsilon=0.2) is not plan
        assert held.preview(tacit.query(tacit.count(by="state"), consistent=True), epsilon=0.1) is not plan
        assert other.preview(tacit.count(by="state"), epsilon=0.1) is not plan


def test_what_is_equal_and_prints_otherwise_is_another_plan_of_one_question(make: Any) -> None:
    """0 == 0.0: one question, whose plans say which of them was typed."""
    with make() as held, make(analyst="other") as other:
        for edges in ([0, 50, 99], [0.0, 50.0, 99.0]):
            here = held.preview(tacit.histogram("age", edges), epsilon=0.1)
            assert here.digest == other.preview(tacit.histogram("age", edges), epsilon=0.1).digest
        first = held.preview(tacit.histogram("age", [0, 50, 99]), epsilon=0.1)
        assert first is not here
        assert first.digest == here.digest


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
        many = [tacit.query(tacit.count(), name=str(n)) for n in range(kept_plans.LONGEST + 1)]
        assert held.preview(many, epsilon=0.1) is not held.preview(many, epsilon=0.1)


def test_what_a_certificate_says_is_nobodys_to_change_for_the_next(make: Any) -> None:
    with make() as held:
        one = held.release(tacit.count(by="state"), epsilon=0.25, key="a").certificate
        said = {name: repr(value) for name, value in one.items()}
        one["guarantee"]["unit"] = one["mechanism"]["noise"] = "another"
        one["schema"].clear()
        two = held.release(tacit.count(by="state"), epsilon=0.25, key="b").certificate
        differ = {name for name in said if repr(two[name]) != said[name]}
        assert differ <= {"made", "values", "ledger", "digest"}
        plan = held.preview(tacit.count(by="state"), epsilon=0.25)
        plan.event_record.clear()
        assert plan.event_record


def test_a_kept_certificate_says_what_one_made_anew_says(make: Any) -> None:
    """For every way in which an answer can be made: with looks, and noise of another source."""
    from tacit.curator.certificate import ORDER, certify

    ledger = {"id": "x", "sequence": 1, "time": "t", "digest": "d", "answer": "e"}
    with make() as held:
        asks = [tacit.count(by="state"), tacit.mean("income"), tacit.quantiles("age")]
        plan = held.preview(asks, epsilon=1.0)
        said = []
        for noise, bounded, seen in itertools.product(
            ("AES-256-CTR", "seeded, for tests"), (False, True), ((), ("somebody had seen the data",))
        ):
            data = {"bounded": bounded, **({"seen": list(seen)} if seen else {})}
            made = {"time": "t", "noise": noise, "data": data, "versions": {}}
            for planned in plan.releases:
                one = certify(plan, planned, ledger=ledger, made=made, values="a")
                said.append((planned, made, one))
                assert list(one) == [*ORDER, "digest"]
                assert one["publishable"] is (noise == "AES-256-CTR")
                assert ("contribution-bounding" in one["theorems"]) is bounded
                assert ("somebody had seen" in repr(one["guarantee"])) is bool(seen)
        for planned, made, one in said:
            plan.kept.clear()
            assert certify(plan, planned, ledger=ledger, made=made, values="a") == one


def test_one_plan_is_another_request_for_another_key_version_or_analyst(make: Any) -> None:
    """What is kept of the last request is used for that request alone."""
    with make(tacit.Pure(epsilon=1.0)) as held:
        plan = held.preview(tacit.count(by="state"), epsilon=0.125)
        first, asked = held.release(plan, key="a"), held._asked
        assert held.preview(plan) is plan
        again = held.release(plan, key="b")
        held.version = "next"
        other = held.release(plan, key="a")
        held.analyst = "somebody else"
        third = held.release(plan, key="c")
        assert not any(one[0].replayed for one in (first, again, other, third))
        told = [(c.key, c.version, c.analyst) for c in held.ledger.charges()]
        assert told == [
            ("a", "", "curator"), ("b", "", "curator"), ("a", "next", "curator"), ("c", "next", "somebody else"),
        ]  # fmt: skip
        assert asked is not None
        assert held.ledger.charges()[0].files == held.ledger.charges()[3].files


def test_a_certificate_binds_the_text_of_values_that_is_written(make: Any) -> None:
    with make() as held:
        release = held.release(tacit.count(by="state"), epsilon=0.1)
        written = release.to_csv()
        assert release.certificate["values"]["sha256"] == sha256(written)
        assert release.to_csv() == written
        assert written.splitlines()[1].split(",")[1] == str(release.table["value"][0])
