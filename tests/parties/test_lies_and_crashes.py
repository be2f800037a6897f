"""A lying holder, a second try, a race, a failed read: no wrong number, no charge too many, no condition lost."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

import tacit
from support.parties import Room, room
from tacit.curator.contributing import SharePlan
from tacit.errors import BadMessage, InvalidParameter, JointRefused, NoLaw, TacitError
from tacit.ledger import Ledger
from tacit.parties import Joint, Sizes, joint_release, smoothed_delta
from tacit.parties.aggregator import Aggregator
from tacit.parties.holder import Holder
from tacit.parties.masks import SHARE_BYTES, commitment
from tacit.parties.session import read, write

SCHEMA = {"age": tacit.integer(0, 90)}


def curator(i: int = 0, **more: object) -> tacit.Curator:
    given = {"protect": tacit.rows(), "budget": tacit.Pure(epsilon=10.0)} | more
    return tacit.Curator(pd.DataFrame({"age": [30, 60] * 50}), schema=SCHEMA, table=f"t{i}", **given)  # type: ignore[arg-type]


def until(stage: str, at: Room, holders: dict[int, Holder]) -> tuple[Aggregator, dict[int, bytes]]:
    aggregator = Aggregator(session=at.session)
    waiting = {i: h.start() for i, h in holders.items()}
    while True:
        for raw in waiting.values():
            aggregator.handle(raw)
        done, sent = aggregator.stage, aggregator.advance()
        if done == stage:
            return aggregator, sent
        waiting = {i: holders[i].handle(raw) for i, raw in sent.items()}


def test_a_step_that_is_refused_and_tried_again_gives_the_right_sum() -> None:
    """Holder 3 leaves a share out: three reveals do not do, and with the fourth the masks come off once."""
    at = room(4, 3, 0)
    holders = at.holders()
    aggregator, sent = until("confirm", at, holders)
    answers = {i: holders[i].handle(raw) for i, raw in sent.items()}
    whole = read(answers[3], session=at.session.id, keys=list(at.session.keys))
    body = whole.body[: 2 * SHARE_BYTES] + whole.body[3 * SHARE_BYTES :]
    said = {"of": [0, 1, 3], "list": whole.said["list"]}
    lie = write("reveal", session=at.session.id, sender=3, key=at.keys[3], body=body, **said)
    for raw in (answers[0], answers[1], lie):
        aggregator.handle(raw)
    with pytest.raises(JointRefused, match="2 shares"):
        aggregator.advance()
    aggregator.handle(answers[2])
    aggregator.advance()
    found = aggregator.result()
    assert (found.values == at.truth(found.remaining)).all()


def test_a_mask_key_of_low_order_is_found_before_the_charge() -> None:
    at = room(4, 3, 1)
    holders, aggregator = at.holders(), Aggregator(session=at.session)
    waiting = {i: h.start() for i, h in holders.items()}
    seal = read(waiting[3], session=at.session.id, keys=list(at.session.keys)).said["seal"]
    waiting[3] = write(
        "keys",
        session=at.session.id,
        sender=3,
        key=at.keys[3],
        seal=seal,
        mask=bytes(32).hex(),
        table="",
        rehearsal=False,
    )
    holders[3]._first = commitment("message", waiting[3])  # the liar believes itself
    for raw in waiting.values():
        aggregator.handle(raw)
    for i, raw in aggregator.advance().items():
        aggregator.handle(holders[i].handle(raw))
    for i, raw in aggregator.advance().items():
        aggregator.handle(holders[i].handle(raw))
    sent = aggregator.advance()
    for i in range(3):
        with pytest.raises(BadMessage, match="low order"):
            holders[i].handle(sent[i])
    assert at.charges == {}


def test_a_vector_that_could_not_be_made_is_not_said_to_be_free() -> None:
    at = room(4, 3, 0)

    def fails() -> np.ndarray:
        raise InvalidParameter(parameter="table", value="", must="be there")

    holders = at.holders()
    holders[0] = Holder(session=at.session, index=0, key=at.keys[0], contribute=fails)
    _, sent = until("agree", at, holders)
    with pytest.raises(InvalidParameter):
        holders[0].handle(sent[0])
    with pytest.raises(JointRefused, match="its ledger says"):
        holders[0].handle(sent[0])


def test_two_contributions_at_once_are_one_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    one, both, reserve = curator(), threading.Barrier(2), Ledger.reserve

    def together(self: Ledger, *given: object, **more: object) -> object:
        both.wait(10)
        return reserve(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "reserve", together)
    plan, found = shared(one), []

    def contribute() -> None:
        try:
            found.append(one.contribute(plan, key="ab" * 32))
        except TacitError as problem:
            found.append(problem)

    threads = [threading.Thread(target=contribute) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert sorted(isinstance(f, JointRefused) for f in found) == [False, True]
    assert one.spent == tacit.Pure(epsilon=0.5)


def test_what_it_rests_on_stands_in_release_text_certificate_and_ledger() -> None:
    holders = [curator(i) for i in range(3)]
    (found,) = joint_release(holders, tacit.count(), fewest=3, colluding=1, appearances=2, epsilon=1)
    assert found.guarantee.declared == (
        "at most 1 of the 3 holders collude with the aggregator",
        "one person is in at most 2 of the 3 holders",
    )
    text = str(found)
    assert "as long as nobody breaks X25519" in text
    assert "at most 1 of the 3 holders collude" in text
    assert "left: epsilon" not in text
    assert "its own ledger" in text
    with pytest.raises(NoLaw, match="budget of its own"):
        _ = found.remaining
    (entry,) = [e for e in holders[0].ledger.entries() if e.kind == "reserve"]
    declared = " ".join(entry.charge().guarantee.declared)
    assert "nobody breaks X25519" in declared
    assert "collude" in declared
    assert "one person" in declared


def test_replaced_people_are_in_the_same_holders() -> None:
    agreed = Joint.of(
        tacit.count(), schema=SCHEMA, protect=tacit.rows(neighbours="replace-one"), epsilon=1,
        sizes=Sizes(holders=3, fewest=3, colluding=0),
    )  # fmt: skip
    assert any("in the same ones" in d for d in agreed.declared)


def test_a_radius_between_grid_points_is_refused() -> None:
    """A box of radius 0.9 holds one integer: the formula would divide by 2.8."""
    with pytest.raises(InvalidParameter, match="multiple of the spacing"):
        smoothed_delta(epsilon=1, advantage=2**-60, dimension=3, error=10, radius=0.9)


# --- a holder's share is no release -----------------------------------------------------------------------------
def shared(c: tacit.Curator, asked: object = None) -> SharePlan:
    sizes = Sizes(holders=20, fewest=20, colluding=0, appearances=1)
    return Joint.of(
        asked or tacit.count(), schema=SCHEMA, protect=tacit.rows(), sizes=sizes, epsilon=0.5
    ).check(c)


@pytest.mark.parametrize("unwrapped", [False, True])
@pytest.mark.parametrize("verb", ["release", "preview", "fit", "request", "inspect"])
def test_a_holders_share_is_taken_by_contribute_alone(verb: str, unwrapped: bool) -> None:
    """A share has 1/20 of the noise: published, most counts would be exact."""
    c = curator()
    for asked in (None, tacit.density("age", size=100, guarantee="pure", order=2), [tacit.count()] * 2):
        share = shared(c, asked)
        given = share._plan if unwrapped else share
        with pytest.raises(InvalidParameter, match="be given to contribute, and to no other method"):
            tacit.inspect(c, given) if verb == "inspect" else getattr(c, verb)(given)  # type: ignore[arg-type]
        with pytest.raises(TacitError):
            c.release([given], epsilon=1)  # type: ignore[list-item]
    assert not c.ledger.charges()
    assert not c.ledger.requests()
    whole = c.preview(tacit.count(), epsilon=0.5)
    assert c.fit(whole).fits
    with pytest.raises(InvalidParameter, match="be a holder's share of a joint plan"):
        c.contribute(whole, key="k")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="be a holder's share of a joint plan"):
        c.contribute(share._plan, key="k")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="be a plan of shares"):
        SharePlan(whole)
    assert not c.ledger.charges()


@pytest.mark.parametrize("verb", ["fit", "request"])
def test_what_is_no_plan_is_one_sentence(verb: str) -> None:
    for given in ("x", None, tacit.count(), 3):
        with pytest.raises(InvalidParameter, match="be a plan"):
            getattr(curator(), verb)(given)


def test_the_key_of_a_session_is_no_key_of_a_release() -> None:
    """What is on record under it is no answer; a plan that an earlier version let contribute has this digest."""
    c = curator()
    share = shared(c)
    c.contribute(share, key="session")
    with pytest.raises(InvalidParameter, match="given to contribute"):
        c.release(share, key="session")  # type: ignore[call-overload]
    with pytest.raises(InvalidParameter, match="be the key of a release"):
        c._releases(share._plan, {"joint": "session"})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="key must belong to one plan"):
        c.release(tacit.count(), epsilon=0.5, key="session")
    assert len(c.ledger.charges()) == 1
