"""What holders agree on has the digest of what is asked: no sentence, no choice and no computed number is in it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import tacit
from tacit.curator.planning import make_plan
from tacit.parties import Joint, Sizes
from tacit.parties import joint as joining
from tacit.parties.joint_0_1_0 import _mechanism
from tacit.parties.joint_assignments import JointAssignment, with_ring
from tacit.parties.noise import JointNoise, JointPolya, JointSkellam
from tacit.parties.session import Ring

SIZES = Sizes(holders=5, fewest=4, colluding=1, appearances=1)
SCHEMA = {"state": tacit.category(["a", "b"]), "age": tacit.integer(0, 99)}


def agreed(**more: Any) -> Joint:
    given: dict[str, Any] = {"sizes": SIZES, "epsilon": 1, "delta": Fraction(1, 10**6), **more}
    asked = given.pop("asked", [tacit.count(by="state"), tacit.mean("age")])
    return Joint.of(asked, schema=SCHEMA, protect=tacit.rows(), **given)


def reword(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another sentence for every noise, and why it was chosen."""
    for kind in (JointPolya, JointSkellam):
        told = kind.noise_distribution.fget  # type: ignore[attr-defined]
        monkeypatch.setattr(
            kind, "noise_distribution", property(lambda m, t=told: {**t(m), "distribution": "some noise"})
        )
    to_dict = JointAssignment.to_dict
    monkeypatch.setattr(JointAssignment, "to_dict", lambda t: {**to_dict(t), "chosen": "It was the best"})


def test_other_sentences_and_another_choice_are_the_same_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    before = agreed()
    reword(monkeypatch)
    assert agreed().about == before.about
    assign = Joint._assign

    def other(self: Joint, a: Any, question: Any, price: Any, left: int) -> Any:
        """Half of every price is left unused."""
        return replace(assign(self, a, question, price.part(Fraction(1, 2)), left), price=price)

    monkeypatch.setattr(Joint, "_assign", other)
    after = agreed()
    assert after._plan.releases[0].assignment.noise != before._plan.releases[0].assignment.noise
    assert after.about == before.about
    assert after._plan.digest == before._plan.digest


def test_who_remains_is_no_part_of_what_was_asked() -> None:
    joint = agreed()
    digests = {joint.summed(joint.price.bound(), remaining=n).digest for n in (4, 5)}
    assert digests == {joint.about.hex()}


@pytest.mark.parametrize(
    "more",
    [
        {"epsilon": 2},
        {"delta": Fraction(1, 10**7)},
        {"sizes": replace(SIZES, colluding=0)},
        {"most_rows": 1 << 20},
        {"graph_delta": 1e-9},
        {"asked": [tacit.count(by="state")]},
        {"asked": [tacit.mean("age"), tacit.count(by="state")]},
    ],
    ids=str,
)
def test_whatever_is_agreed_otherwise_is_another_agreement(more: dict[str, Any]) -> None:
    assert agreed(**more).about != agreed().about


def test_a_request_to_one_holder_is_another_one() -> None:
    """An approval of the one is none of the other."""
    joint = agreed(asked=[tacit.count(by="state")])
    alone = make_plan(
        joint.asks, schema=joint.schema, unit=joint.unit, budget=joint.price.bound(), total=joint.price
    )
    assert joint._plan.digest != alone.digest


def test_the_text_has_no_sentence_and_no_inexact_number() -> None:
    said = agreed(graph_delta=1e-9)._request()
    assert set(said) == {"format", "joint", "sizes", "rows", "graph_delta"}
    assert said["graph_delta"] == str(Fraction(1e-9))
    assert "distribution" not in said["joint"]
    assert "chosen" not in said["joint"]
    assert joining.FORMAT == 1


def test_the_form_of_0_1_0_tells_every_noise_and_why_there_is_none() -> None:
    """Sessions of then are known by a digest of it: noise, the chance of sparse masks, and counts that are public."""
    plan = agreed(asked=[tacit.variance("age")])._plan
    (planned,) = plan.releases
    sparse = with_ring(planned.assignment, Ring(side=1, threshold=2, delta=1e-9))
    assert [isinstance(m, JointNoise) for m in sparse.mechanisms] == [True, False]
    said = _mechanism(plan, replace(planned, assignment=sparse))
    assert [one.get("parts", []) for one in said["noise"]] == [list(a.parts) for a in sparse.noise]
    assert "honest holders" in said["chosen"]
    none = replace(planned, assignment=replace(sparse, noise=sparse.noise[-1:]))
    assert _mechanism(plan, none)["chosen"] == sparse.reason
