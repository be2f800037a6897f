"""The secure sum: the right sum or a clear refusal under faults, and attacks that a naive version lets through."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from support.parties import LENGTH, Room, room
from tacit.errors import BadMessage, InvalidParameter, JointRefused
from tacit.noise import SeededSource
from tacit.parties.aggregator import Aggregator, Wire, run_in_process
from tacit.parties.holder import Holder, list_digest
from tacit.parties.masks import PRIME, SHARE_BYTES, add_mask, join, split
from tacit.parties.session import AGGREGATOR, Session, Sizes, pack, write


def until(stage: str, at: Room) -> tuple[Aggregator, dict[int, Holder], dict[int, bytes]]:
    """All honest up to a stage: the aggregator, the holders, and what the aggregator is about to send."""
    holders, aggregator = at.holders(), Aggregator(session=at.session)
    waiting = {i: h.start() for i, h in holders.items()}
    while True:
        for raw in waiting.values():
            aggregator.handle(raw)
        done = aggregator.stage
        sent = aggregator.advance()
        if done == stage:
            return aggregator, holders, sent
        waiting = {i: holders[i].handle(raw) for i, raw in sent.items()}


def test_all_remain() -> None:
    at = room()
    found = run_in_process(at.session, at.holders())
    assert found.remaining == tuple(range(6))
    assert (found.values == at.truth(found.remaining)).all()
    assert at.charges == dict.fromkeys(range(6), 1)


@pytest.mark.parametrize("stage", ["keys", "shares", "agree", "masked", "confirm", "reveal"])
def test_two_of_six_leave_at_any_stage(stage: str) -> None:
    at = room()
    wire = Wire(carry=lambda s, i, raw: [] if s == stage and i in (1, 4) else [raw])
    found = run_in_process(at.session, at.holders(), wire)
    gone = {1, 4} if stage in ("keys", "shares", "agree", "masked") else set()
    assert set(found.remaining) == set(range(6)) - gone
    assert (found.values == at.truth(found.remaining)).all()


@pytest.mark.parametrize("stage", ["keys", "shares", "agree", "masked", "confirm", "reveal"])
def test_too_many_leave(stage: str) -> None:
    at = room()
    with pytest.raises(JointRefused, match=r"needed|left"):
        run_in_process(
            at.session, at.holders(), Wire(carry=lambda s, i, raw: [] if s == stage and i < 3 else [raw])
        )


def test_a_masked_vector_looks_like_nothing_and_no_seed_is_in_the_clear() -> None:
    at = room()
    seen: list[bytes] = []
    holders = at.holders()
    secrets: list[bytes] = []

    def carry(stage: str, i: int, raw: bytes) -> list[bytes]:
        if stage == "keys":
            secrets.extend(holders[i]._private.values())
        if stage in ("keys", "shares", "agree", "masked"):
            seen.append(raw)
        return [raw]

    run_in_process(at.session, holders, Wire(carry=carry))
    everything = b"".join(seen)
    for secret in secrets:
        assert secret not in everything
        assert secret.hex().encode() not in everything
    for vector in at.vectors[1:]:
        assert vector.tobytes() not in everything


# --- attacks -------------------------------------------------------------------------------------------------
def test_two_sums_that_differ_by_one_holder() -> None:
    """A naive aggregator opens the masks of {all} and of {all but 0}: the difference is holder 0's vector."""
    at = room()
    aggregator, holders, sent = until("masked", at)
    for i, raw in sent.items():
        aggregator.handle(holders[i].handle(raw))
    other = write("survivors", session=at.session.id, sender=AGGREGATOR, key=None, survivors=[1, 2, 3, 4, 5])
    for i in (1, 2):
        with pytest.raises(JointRefused, match="two different messages"):
            holders[i].handle(other)
        assert holders[i].state == "ended"


def test_a_false_list_of_survivors() -> None:
    """Half of the holders are told {all}, half {all but 0}: neither list gets enough signatures."""
    at = room(6, 4, 1)
    _, holders, _ = until("masked", at)
    lists = {i: list(range(6)) if i < 3 else [1, 2, 3, 4, 5] for i in range(6)}
    confirms = {
        i: h.handle(
            write("survivors", session=at.session.id, sender=AGGREGATOR, key=None, survivors=lists[i])
        )
        for i, h in holders.items()
    }
    lengths, body = pack(list(confirms.values()))
    for h in holders.values():
        with pytest.raises(JointRefused, match="confirm the list"):
            h.handle(
                write(
                    "confirmed",
                    session=at.session.id,
                    sender=AGGREGATOR,
                    key=None,
                    body=body,
                    lengths=lengths,
                )
            )
        with pytest.raises(JointRefused):
            h.handle(write("survivors", session=at.session.id, sender=AGGREGATOR, key=None, survivors=[0]))


def test_nobody_is_asked_for_both_shares() -> None:
    """What a holder reveals of a member is one of two secrets: which one follows from the one confirmed list."""
    at = room()
    aggregator, holders, sent = until("confirm", at)
    kept = {j: dict(h._kept) for j, h in holders.items()}
    for j, raw in sent.items():
        answer = holders[j].handle(raw)
        for i in range(6):
            assert kept[j][i][SHARE_BYTES:] in answer
            assert kept[j][i][:SHARE_BYTES] not in answer
        assert holders[j].handle(raw) == answer
        assert not holders[j]._kept
        assert not holders[j]._private
        aggregator.handle(answer)


def test_a_list_without_enough_survivors_is_not_confirmed() -> None:
    at = room()
    _, holders, _ = until("masked", at)
    with pytest.raises(JointRefused, match="noise was sized for 4"):
        holders[0].handle(
            write("survivors", session=at.session.id, sender=AGGREGATOR, key=None, survivors=[0, 1, 2])
        )


def test_a_replayed_round_is_of_another_session() -> None:
    first, second = room(), Room(room().sizes, nonce=b"\1" * 32)
    aggregator, _, _ = until("keys", first)
    old = [m.raw for m in aggregator._got["keys"].values()]
    fresh = Aggregator(session=second.session)
    for raw in old:
        with pytest.raises(BadMessage, match="another session"):
            fresh.handle(raw)


def test_seeds_are_not_used_again() -> None:
    """Same holder, same vector, two sessions: keys, masks and masked vectors all differ."""
    bodies = []
    for nonce in (bytes(32), b"\1" * 32):
        at = Room(room().sizes, nonce=nonce)
        aggregator, _, _ = until("masked", at)
        bodies.append(aggregator._got["masked"][0].body)
    first, second = (np.frombuffer(b, dtype="<u8") for b in bodies)
    assert (first != second).all()


def test_a_roster_with_foreign_keys() -> None:
    at = room()
    aggregator, holders, _ = until("keys", at)
    stranger = Ed25519PrivateKey.generate()
    messages = [m.raw for m in aggregator._got["keys"].values()]
    messages[3] = write("keys", session=at.session.id, sender=3, key=stranger, seal="00" * 32, mask="00" * 32)
    lengths, body = pack(messages)
    raw = write("roster", session=at.session.id, sender=AGGREGATOR, key=None, body=body, lengths=lengths)
    with pytest.raises(BadMessage, match="signature"):
        holders[0].handle(raw)


def test_wrong_shares_are_not_summed() -> None:
    at = room(4, 3, 0)
    aggregator, holders, sent = until("confirm", at)
    for i, raw in sent.items():
        answer = holders[i].handle(raw)
        if i == 0:
            head = list_digest("survivors", [0, 1, 2, 3]).hex()
            answer = write(
                "reveal", session=at.session.id, sender=0, key=at.keys[0], body=bytes(4 * SHARE_BYTES),
                of=[0, 1, 2, 3], list=head,
            )  # fmt: skip
        aggregator.handle(answer)
    with pytest.raises(JointRefused, match="not the one that was signed"):
        aggregator.advance()


@pytest.mark.parametrize("remained", [True, False])
def test_another_secret_than_the_signed_one_is_not_used(remained: bool) -> None:
    """Shares that fit together, of 32 bytes that nobody signed."""
    at = room(4, 3, 0)
    aggregator, _, _ = until("confirm", at)
    shares = split(b"o" * 32, threshold=3, points=[1, 2, 3, 4], source=SeededSource(seed=1))
    with pytest.raises(JointRefused, match="not the one that was signed"):
        aggregator._opened(0, shares, {}, remained=remained)


# --- parts ---------------------------------------------------------------------------------------------------
def test_shamir_by_solving_small_systems() -> None:
    secret = bytes(range(32))
    shares = split(secret, threshold=3, points=[1, 2, 5, 9], source=SeededSource(seed=1))
    for points in ((1, 2, 5), (2, 5, 9), (9, 1, 2)):
        assert join({x: shares[x] for x in points}) == secret
    # Two shares fit every secret: a polynomial through them and any value at 0.
    for guess in (0, 12345):
        a = [(0, guess), *((x, int.from_bytes(shares[x], "little")) for x in (1, 2))]
        value = 0
        for i, (x, y) in enumerate(a):
            term = y
            for j, (z, _) in enumerate(a):
                if j != i:
                    term = term * (5 - z) * pow(x - z, -1, PRIME) % PRIME
            value += term
        assert value % PRIME != int.from_bytes(shares[5], "little")
    assert join({x: shares[x] for x in (1, 2)}) is None


def test_masks_cancel_and_cover_all_words() -> None:
    total = np.zeros(200_000, dtype=np.uint64)
    add_mask(total, b"k" * 32, sign=1)
    assert np.unique(total).size == total.size
    ones = np.unpackbits(total.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.001
    add_mask(total, b"k" * 32, sign=-1)
    assert not total.any()


@pytest.mark.parametrize(
    "bad",
    [
        {"holders": 1, "fewest": 1, "colluding": 0},
        {"holders": 5, "fewest": 6, "colluding": 0},
        {"holders": 5, "fewest": 2, "colluding": 2},
        {"holders": 5, "fewest": 4, "colluding": 1, "threshold": 3},
        {"holders": 5, "fewest": 4, "colluding": -1},
        {"holders": 5, "fewest": 4, "colluding": 1, "appearances": 6},
        {"holders": 5.5, "fewest": 4, "colluding": 1},
    ],
)
def test_bad_sizes(bad: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        Sizes(**bad)


def test_a_holder_twice_and_vectors_of_other_lengths() -> None:
    at = room()
    with pytest.raises(InvalidParameter, match="joins once"):
        Session(sizes=at.sizes, keys=(at.session.keys[0],) * 6, length=1, about=bytes(32), nonce=bytes(32))
    aggregator, holders, sent = until("agree", at)
    holders[0]._contribute = lambda: np.zeros(LENGTH + 1, dtype=np.uint64)
    with pytest.raises(InvalidParameter, match="words of 64 bits"):
        holders[0].handle(sent[0])
    with pytest.raises(JointRefused, match="its ledger says whether it was charged"):
        holders[0].handle(sent[0])
    del aggregator


@pytest.mark.parametrize(
    "junk", [b"", b"x" * 10, b"\0" * 64 + b"{}\n", b"\0" * 64 + b"[" * 5000 + b"\n", "text", None]
)
def test_junk_is_one_clear_error(junk: object) -> None:
    at = room()
    holder = at.holder(0)
    holder.start()
    with pytest.raises(BadMessage):
        holder.handle(junk)  # type: ignore[arg-type]
    with pytest.raises(BadMessage):
        Aggregator(session=at.session).handle(junk)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_thirty_of_a_hundred_leave_at_any_stage(seed: int) -> None:
    """30 of 100 drop out, each at a stage and on a way that a seed draws: the sum of those whose vectors arrived."""
    source = SeededSource(seed=seed)
    at = Room(Sizes(holders=100, fewest=70, colluding=10), nonce=seed.to_bytes(32, "little"))
    stages = ["keys", "shares", "agree", "masked", "confirm", "reveal"]
    ways = [*stages, *(f"to {s}" for s in stages[:-1])]
    words = source.words(130)
    gone = {
        int(i): ways[int(w) % len(ways)]
        for i, w in zip(np.argsort(words[:100])[:30], words[100:], strict=True)
    }
    left: set[int] = set()

    def carry(stage: str, i: int, raw: bytes) -> list[bytes]:
        if i in left or gone.get(i) == stage:
            left.add(i)
            return []
        return [raw, raw]

    found = run_in_process(at.session, at.holders(), Wire(carry=carry))
    early = {
        i
        for i, way in gone.items()
        if way in ("keys", "to keys", "shares", "to shares", "agree", "to agree", "masked")
    }
    assert set(found.remaining) == set(range(100)) - early
    assert (found.values == at.truth(found.remaining)).all()
    assert set(at.charges.values()) == {1}
