"""Sizes, prices, shares and messages one step beside their limits: what a joint promise rests on is refused by name."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import tacit
from support.parties import room
from tacit.errors import BadMessage, InvalidParameter, JointRefused, NoLaw
from tacit.noise import SeededSource
from tacit.parties import Joint, JointPolya, JointSkellam, Sizes
from tacit.parties import agreement as byhand
from tacit.parties import session as graph
from tacit.parties import session as messages
from tacit.parties.aggregator import Aggregator
from tacit.parties.holder import SEALED
from tacit.parties.masks import PRIME, join, split
from tacit.parties.noise import root_below
from tacit.parties.session import pack, unpack

SCHEMA = {"state": tacit.category(["a", "b", "c"]), "age": tacit.integer(0, 90)}


def joint(asked: Any, **more: Any) -> Joint:
    given: dict[str, Any] = {
        "schema": SCHEMA, "protect": tacit.rows(), "epsilon": 1,
        "sizes": Sizes(holders=4, fewest=3, colluding=1, appearances=1),
    }  # fmt: skip
    return Joint.of(asked, **(given | more))


GOOD = [(2, 1, 0, 0, 0), (5, 5, 4, 5, 5), (5, 3, 2, 4, 1), (4, 3, 1, 3, 4), (10_000, 1, 0, 0, 0)]
BAD = [
    ((1, 1, 0, 0, 0), "between 2 and"), ((10_001, 9_000, 0, 0, 0), "between 2 and"),
    ((5, 6, 0, 0, 0), "at most holders"),
    ((5, 2, 2, 0, 0), "above colluding"), ((5, 2, 3, 0, 0), "above colluding"), ((5, 3, 2, 3, 0), "threshold"),
    ((5, 3, 0, 6, 0), "threshold"), ((4, 3, 1, 2, 0), "threshold"), ((4, 3, 0, 2, 0), "threshold"),
    ((4, 3, 1, 0, 5), "appearances"),
]  # fmt: skip


def sizes(n: int, s: int, c: int, t: int, k: int) -> Sizes:
    return Sizes(holders=n, fewest=s, colluding=c, threshold=t, appearances=k)


@pytest.mark.parametrize("given", GOOD, ids=str)
def test_sizes_that_hold(given: tuple[int, ...]) -> None:
    """Two lists of survivors cannot both be confirmed, and noise is sized for the honest ones that remain."""
    n, s, c, t, k = given
    made = sizes(*given)
    assert made.honest == s - c
    assert made.share == Fraction(1, s - c)
    assert made.threshold == (t or math.floor((n + c) / 2) + 1)
    assert 2 * made.threshold > n + c
    assert made.appearances == (k or n)
    assert made.excess(n) == pytest.approx(math.sqrt(n / (s - c)))


@pytest.mark.parametrize(("given", "word"), BAD, ids=str)
def test_sizes_that_do_not_hold(given: tuple[int, ...], word: str) -> None:
    with pytest.raises(InvalidParameter, match=word):
        sizes(*given)


def test_weights_divide_a_joint_price_and_own_prices_stay() -> None:
    asked = [
        tacit.query(tacit.count(), weight=1), tacit.query(tacit.sum("age"), weight=3),
        tacit.query(tacit.count(by="state"), epsilon=0.25),
    ]  # fmt: skip
    plan = joint(asked)._plan
    epsilons = [r.assignment.pure() for r in plan.releases]
    assert epsilons == [Fraction(1, 4), Fraction(3, 4), Fraction(1, 4)]
    assert plan.charged.bound == tacit.Pure(epsilon=1.25)
    squares = [r.assignment.price.mu for r in joint(asked[:2], epsilon=None, mu=1)._plan.releases]
    assert 1 - Fraction(1, 10**9) < sum(m**2 for m in squares) <= 1  # type: ignore[operator]
    rhos = [r.assignment.price.rho for r in joint(asked[:2], epsilon=None, rho=1)._plan.releases]
    assert rhos == [Fraction(1, 4), Fraction(3, 4)]


def test_a_root_is_not_above() -> None:
    for square in (Fraction(2), Fraction(1, 3), Fraction(9, 4), Fraction(1, 10**12)):
        root = root_below(square)
        assert root**2 <= square < (root + Fraction(1, 1 << 59)) ** 2


@pytest.mark.parametrize("appearances", [1, 2, 4])
def test_shares_are_for_all_that_a_person_moves_in_all_holders(appearances: int) -> None:
    """k holders with the person: k times the move; numbers that move are no more than there are."""
    size = Sizes(holders=4, fewest=3, colluding=1, appearances=appearances)
    for unit, moved, most in ((tacit.rows(), 1, 1), (tacit.people("who", at_most=3), 3, 3)):
        plan = joint(tacit.count(by="state"), sizes=size, protect=unit)._plan
        (noise,) = (a.mechanism for a in plan.releases[0].assignment.noise)
        assert isinstance(noise, JointPolya)
        assert noise.steps == moved * appearances
        assert noise.noise_scale == noise.steps
        assert noise.share.shape == Fraction(1, 2)
        normal = joint(tacit.count(by="state"), sizes=size, protect=unit)._skellam(
            plan.releases[0].question, (("count",), moved, moved**2), Fraction(1), Fraction(1, 10**5),
            {"honest": 2, "remaining": 4},
        )  # fmt: skip
        assert normal is not None
        assert isinstance(normal.mechanism, JointSkellam)
        assert normal.mechanism.steps == most * appearances
        assert normal.mechanism.moved == min(moved * appearances, 3)
        assert normal.mechanism.share.noise_variance == normal.mechanism.noise_variance / 2


def test_the_field_has_room_for_the_sums_of_all_holders() -> None:
    """A count of 4 holders: 2^60 rows each fill 2^62, and one more does not fit; a sum of 90 a row has less room."""
    joint(tacit.count(), most_rows=1 << 60)
    joint(tacit.sum("age"), most_rows=(1 << 60) // 90)
    for asked, rows in ((tacit.count(), (1 << 60) + 1), (tacit.sum("age"), (1 << 60) // 90 + 1)):
        with pytest.raises(InvalidParameter, match="leave room"):
            joint(asked, most_rows=rows)


def test_a_joint_sparse_histogram_spans_so_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tacit.parties.joint")  # the room exports a function of that name
    monkeypatch.setattr(module, "MOST_CELLS", 91 * 3)
    joint(tacit.sparse_histogram(["state", "age"]))
    monkeypatch.setattr(module, "MOST_CELLS", 91 * 3 - 1)
    with pytest.raises(InvalidParameter, match="span at most"):
        joint(tacit.sparse_histogram(["state", "age"]))
    asked = tacit.query(tacit.count(by="state"), public=tacit.public_totals(total=5))
    with pytest.raises(NoLaw, match="not derived here"):
        joint(asked, protect=tacit.rows(neighbours="replace-one"))


def test_fewer_shares_than_the_threshold_give_another_secret_and_none_lies_at_zero() -> None:
    secret = bytes(range(32))
    for threshold in (1, 2, 3, 5):
        shares = split(secret, threshold=threshold, points=range(1, 6), source=SeededSource(seed=threshold))
        for some in itertools.combinations(shares, threshold):
            assert join({x: shares[x] for x in some}) == secret
        if threshold > 1:
            for few in itertools.combinations(shares, threshold - 1):
                assert join({x: shares[x] for x in few}) != secret
    assert all(int.from_bytes(s, "little") < PRIME for s in shares.values())
    for bad in (range(5), [1, 1, 2]):
        with pytest.raises(InvalidParameter, match="different, from 1 on"):
            split(secret, threshold=2, points=list(bad), source=SeededSource(seed=1))
    for threshold in (0, 4):
        with pytest.raises(InvalidParameter, match="number of shares"):
            split(secret, threshold=threshold, points=[1, 2, 3], source=SeededSource(seed=1))


def test_a_ring_is_refused_where_its_chance_or_its_failures_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph, "COMPLETE", 20)
    monkeypatch.setattr(graph, "TRIES", 1)
    graph.ring_for.cache_clear()
    size = Sizes(holders=60, fewest=57, colluding=2, appearances=1)
    found = graph.ring_for(size, 1e-4)
    assert found.delta <= 1e-4
    assert found.failing <= graph.MOST_FAILING
    assert found.delta == graph.surrounded(holders=60, corrupt=2, side=found.side, threshold=found.side + 1)
    smaller = graph.surrounded(holders=60, corrupt=2, side=found.side - 1, threshold=found.side)
    fails = graph.refused(holders=60, gone=3, side=found.side - 1)
    assert smaller > 1e-4 or fails > graph.MOST_FAILING
    with pytest.raises(InvalidParameter, match="graph_delta"):
        graph.ring_for(Sizes(holders=60, fewest=57, colluding=28, appearances=1), 1e-9)
    with pytest.raises(InvalidParameter, match="nearer to holders"):
        graph.ring_for(Sizes(holders=60, fewest=31, colluding=2, appearances=1), 1e-4)
    graph.ring_for.cache_clear()


def test_messages_of_another_form_session_or_sender_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    key, session = Ed25519PrivateKey.generate(), bytes(32)
    keys = [key.public_key().public_bytes_raw()]
    good = messages.write("keys", session=session, sender=0, key=key, x=1)
    assert messages.read(good, session=session, keys=keys).said == {"x": 1}
    head = len(good) - messages.SIGNATURE - 1
    monkeypatch.setattr(messages, "MOST_HEAD", head)
    messages.read(good, session=session, keys=keys)
    monkeypatch.setattr(messages, "MOST_HEAD", head - 1)
    with pytest.raises(BadMessage, match="not of the form"):
        messages.read(good, session=session, keys=keys)
    monkeypatch.undo()
    with pytest.raises(BadMessage, match="not bytes"):
        messages.read("x", session=session, keys=keys)  # type: ignore[arg-type]
    with pytest.raises(BadMessage, match="another session"):
        messages.read(good, session=bytes([1]) * 32, keys=keys)
    forged = good[: messages.SIGNATURE] + good[messages.SIGNATURE :].replace(b'"x":1', b'"x":2')
    with pytest.raises(BadMessage, match="signature of holder 0"):
        messages.read(forged, session=session, keys=keys)
    for change in (
        {"sender": 1},
        {"sender": -2},
        {"sender": True},
        {"kind": 3},
        {"said": []},
        {"format": "tacit joint 0"},
    ):
        told = json.loads(good[messages.SIGNATURE :]) | change
        signed = json.dumps(told, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        with pytest.raises(BadMessage, match="not of the form"):
            messages.read(key.sign(signed) + signed, session=session, keys=keys)


def test_a_message_file_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"12345")
    reader = next(
        f for f in vars(byhand).values() if callable(f) and "bytes of a message file" in (f.__doc__ or "")
    )
    monkeypatch.setattr(byhand, "MOST_MESSAGE", 5)
    assert reader(path) == b"12345"
    monkeypatch.setattr(byhand, "MOST_MESSAGE", 4)
    with pytest.raises(InvalidParameter, match="at most 1 GiB"):
        reader(path)
    with pytest.raises(InvalidParameter, match="readable file"):
        reader(tmp_path / "none")


class Told:
    """Honest holders at one stage, and an aggregator that says to holder 0 what it likes."""

    def __init__(self) -> None:
        self.at = room(4, 3, 1)
        self.session, self.holders = self.at.session, self.at.holders()
        self.first = {i: h.start() for i, h in self.holders.items()}
        self.aggregator = Aggregator(session=self.session)

    def said(self, kind: str, body: bytes = b"", **said: Any) -> bytes:
        return messages.write(
            kind, session=self.session.id, sender=messages.AGGREGATOR, key=None, body=body, **said
        )

    def roster(self, raws: list[bytes]) -> bytes:
        lengths, body = pack(raws)
        return self.said("roster", body, lengths=lengths)

    def until(self, stage: str) -> dict[int, bytes]:
        """What an honest aggregator sends when this stage closes; the holders have answered all before."""
        waiting = self.first
        while True:
            for raw in waiting.values():
                self.aggregator.handle(raw)
            done, sent = self.aggregator.stage, self.aggregator.advance()
            if done == stage:
                return sent
            waiting = {i: self.holders[i].handle(raw) for i, raw in sent.items()}

    def refused(self, raw: bytes, kind: type[Exception], word: str) -> None:
        with pytest.raises(kind, match=word):
            self.holders[0].handle(raw)


def test_a_roster_lists_the_keys_of_each_holder_once_in_order() -> None:
    told = Told()
    keys = [told.first[i] for i in range(4)]
    other = messages.write("shares", session=told.session.id, sender=3, key=told.at.keys[3])
    mine = told.said("keys")
    wrong = "each holder's keys once"
    for raws in ([keys[1], keys[0], *keys[2:]], [*keys, keys[3]], [*keys[:3], other], [mine, *keys]):
        told.refused(told.roster(raws), BadMessage, wrong)
    told.refused(told.roster(keys[1:]), JointRefused, "holders joined")
    told.refused(told.roster(keys[:2]), JointRefused, "2 holders joined, and 3 are needed")
    lengths, body = pack(keys)
    for bad, word in (
        (3, "no lengths"),
        ([*lengths[:-1], -1], "no lengths"),
        ([*lengths, 1], "other lengths"),
    ):
        told.refused(told.said("roster", body, lengths=bad), BadMessage, word)
    told.refused(keys[1], BadMessage, "through the aggregator only")
    told.refused(told.said("members", members=[0, 1, 2]), BadMessage, "turn")
    with pytest.raises(BadMessage, match="once a session"):
        told.holders[0].start()
    assert told.holders[0].handle(told.roster(keys))
    told.refused(told.roster(keys[:3]), JointRefused, "two different messages")
    told.refused(told.roster(keys), JointRefused, "left the session")
    with pytest.raises(TypeError, match="not copied"):
        copy.copy(told.holders[1])


def test_members_are_of_the_roster_and_enough() -> None:
    told = Told()
    sent = told.until("shares")
    for members in ([1, 0, 2, 3], [1, 2, 3], [0, 1, 2, 4]):
        told.refused(told.said("members", members=members), BadMessage, "not a part of the roster")
    told.refused(told.said("members", members=[0, 1]), JointRefused, "2 holders shared")
    for broken in ("x", [0, True], [0, 0, 1, 2]):
        told.refused(told.said("members", members=broken), BadMessage, "missing or broken")
    assert told.holders[0].handle(sent[0])
    assert told.at.charges == {}


def test_sealed_shares_are_one_of_each_neighbour_and_the_list_is_signed() -> None:
    """Nothing is charged before enough holders signed the one list of members."""
    told = Told()
    sent = told.until("agree")
    message = messages.read(sent[0], session=told.session.id, keys=list(told.session.keys))
    parts = unpack(message, message.said["lengths"])
    for of, shares in (([1, 2], parts[0]), ([1, 3, 2], parts[0]), ([1, 2, 3], parts[0][:-1])):
        lengths, body = pack([shares, *parts[1:]])
        told.refused(told.said("sealed", body, lengths=lengths, of=of), BadMessage, "one of each neighbour")
    assert told.at.charges == {}
    lengths, body = pack(parts[: told.session.sizes.threshold])
    told.refused(
        told.said("sealed", body, lengths=lengths, of=[1, 2, 3]), JointRefused, "agree to the list of members"
    )
    assert told.at.charges == {}
    told.refused(sent[0], JointRefused, "left the session")


def test_survivors_are_members_and_enough_for_the_noise() -> None:
    for survivors, kind, word in (
        ([1, 0, 2, 3], BadMessage, "not a part of the members"),
        ([0, 1, 2, 4], BadMessage, "not a part of the members"),
        ([1, 2, 3], JointRefused, "as gone"), ([0, 1], JointRefused, "noise was sized for 3"),
    ):  # fmt: skip
        told = Told()
        sent = told.until("masked")
        told.refused(told.said("survivors", survivors=survivors), kind, word)
        if kind is BadMessage:
            assert told.holders[0].handle(sent[0])
        else:
            told.refused(sent[0], JointRefused, "left the session")


def test_an_aggregator_takes_one_message_of_each_holder_and_of_the_right_form() -> None:
    told = Told()
    aggregator, session = told.aggregator, told.session

    def refused(i: int, kind: str, word: str, body: bytes = b"", **said: Any) -> None:
        raw = messages.write(kind, session=session.id, sender=i, key=told.at.keys[i], body=body, **said)
        with pytest.raises(BadMessage, match=word):
            aggregator.handle(raw)

    with pytest.raises(BadMessage, match="not one of a holder"):
        aggregator.handle(told.said("keys"))
    for raw in told.first.values():
        aggregator.handle(raw)
        aggregator.handle(raw)
    refused(1, "keys", "sent another", seal="00" * 32, mask="00" * 32, table="", rehearsal=False)
    refused(1, "shares", "the stage is keys")
    sent = aggregator.advance()
    refused(1, "shares", "one for each neighbour", to=[0, 2], body=bytes(2 * SEALED))
    refused(1, "shares", "one for each neighbour", to=[0, 2, 3], body=bytes(3 * SEALED - 1))
    for i, raw in sent.items():
        aggregator.handle(told.holders[i].handle(raw))
    sent = aggregator.advance()
    refused(1, "agree", "another list", view="00" * 32)
    for i, raw in sent.items():
        aggregator.handle(told.holders[i].handle(raw))
    sent = aggregator.advance()
    refused(
        1, "masked", "another list of members", view="00" * 32, seed="00" * 32, body=bytes(8 * session.length)
    )
    view = messages.read(told.holders[0].handle(sent[0]), session=session.id, keys=list(session.keys)).said[
        "view"
    ]
    refused(1, "masked", "words", view=view, seed="00" * 32, body=bytes(8 * session.length + 8))
    for i, raw in sent.items():
        aggregator.handle(told.holders[i].handle(raw))
    sent = aggregator.advance()
    refused(1, "confirm", "another list of survivors", list="00" * 32)
    for i, raw in sent.items():
        aggregator.handle(told.holders[i].handle(raw))
    sent = aggregator.advance()
    for i, raw in sent.items():
        aggregator.handle(told.holders[i].handle(raw))
    with pytest.raises(BadMessage, match="the stage reveal"):
        aggregator.result()
    aggregator.advance()
    assert (aggregator.result().values == told.at.truth(aggregator.result().remaining)).all()
    with pytest.raises(BadMessage, match="session is over"):
        aggregator.advance()


def test_a_session_is_of_so_many_keys_and_some_numbers() -> None:
    made = room(4, 3, 1).session
    for changes, word in (
        ({"keys": made.keys[:3]}, "keys"), ({"keys": (*made.keys[:3], b"x")}, "keys"), ({"length": 0}, "at least 1"),
        ({"nonce": bytes(31)}, "32 bytes"), ({"about": bytes(33)}, "32 bytes"),
    ):  # fmt: skip
        with pytest.raises(InvalidParameter, match=word):
            dataclasses.replace(made, **changes)
