"""Members are agreed before a vector leaves: aggregators that tell each holder something else read nothing."""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path

import numpy as np
import pytest

from support.parties import Room, room
from tacit.cli import main
from tacit.errors import BadMessage, InvalidParameter, JointRefused
from tacit.parties import session as graph
from tacit.parties.aggregator import Aggregator, run_in_process
from tacit.parties.agreement import recomputed
from tacit.parties.holder import SEALED, Holder
from tacit.parties.masks import SHARE_BYTES, add_mask, agreed, derive, join
from tacit.parties.session import AGGREGATOR, Message, Ring, Session, Sizes, pack, read, ring_for, write

OLD = Path(__file__).parent / "joint-session-1.zip"


class Liar:
    """An aggregator that may tell each holder something else, and knows no secret of anybody."""

    def __init__(self, at: Room) -> None:
        self.at, self.session, self.holders = at, at.session, at.holders()
        self.keys = {i: h.start() for i, h in self.holders.items()}

    def write(self, kind: str, body: bytes = b"", **said: object) -> bytes:
        return write(kind, session=self.session.id, sender=AGGREGATOR, key=None, body=body, **said)

    def read(self, raw: bytes) -> Message:
        return read(raw, session=self.session.id, keys=list(self.session.keys))

    def roster(self, senders: list[int]) -> bytes:
        lengths, body = pack([self.keys[i] for i in senders])
        return self.write("roster", body, lengths=lengths)

    def shared(self) -> dict[int, dict[int, bytes]]:
        """All share under one roster: for each holder what it sealed to whom."""
        raw, out = self.roster(sorted(self.holders)), {}
        for i, h in self.holders.items():
            message = self.read(h.handle(raw))
            to = message.numbers("to")
            out[i] = {j: message.body[SEALED * at : SEALED * (at + 1)] for at, j in enumerate(to)}
        return out

    def members(self, i: int, members: list[int]) -> bytes:
        return self.holders[i].handle(self.write("members", members=members))

    def sealed(
        self, i: int, members: list[int], cut: dict[int, dict[int, bytes]], signed: list[bytes]
    ) -> bytes:
        of = [j for j in self.holders[i].keepers(i) if j in members and j != i]
        lengths, body = pack([b"".join(cut[j][i] for j in of), *signed])
        return self.holders[i].handle(self.write("sealed", body, lengths=lengths, of=of))


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch):
    """Forty holders on a ring with six neighbours each way."""
    monkeypatch.setattr(graph, "COMPLETE", 10)
    ring_for.cache_clear()
    found = Ring(side=6, threshold=7, delta=0.0)
    monkeypatch.setattr(Session, "ring", property(lambda self: found))
    yield found
    ring_for.cache_clear()


def row_of(liar: Liar, target: int, side: int) -> list[int]:
    holder = liar.holders[target]
    order = holder.session.ring.order(holder.session.sizes, holder._ring_seed())
    place = order.index(target)
    return [order[(place + k) % len(order)] for k in range(-side, side + 1) if k]


def read_by_lies(liar: Liar, target: int, side: int) -> np.ndarray | None:
    """One holder's vector, without a colluder; None if it refuses to send it.

    The target's list of members lacks half of its neighbours, everybody else's lacks nobody, and the other half is
    named as gone: both lists keep the rule about gaps. Then the self seed of the target and the mask keys of those
    who are gone are opened, and nothing else hides its vector.
    """
    cut, everybody = liar.shared(), sorted(liar.holders)
    row = row_of(liar, target, side)
    left_out, gone = set(row[::2]), set(row[1::2])
    short = [i for i in everybody if i not in left_out]
    signed = [liar.members(i, short if i == target else everybody) for i in everybody]
    try:
        masked = liar.read(liar.sealed(target, short, cut, signed))
    except JointRefused:
        return None
    for i in everybody:
        if i != target:
            liar.sealed(i, everybody, cut, signed)
    survivors = [i for i in everybody if i not in gone]
    raw = liar.write("survivors", survivors=survivors)
    confirms = [liar.holders[i].handle(raw) for i in survivors if i != target]
    lengths, body = pack(confirms)
    raw = liar.write("confirmed", body, lengths=lengths)
    shares: dict[int, dict[int, bytes]] = {}
    for i in survivors:
        if i == target:
            continue
        message = liar.read(liar.holders[i].handle(raw))
        for at, j in enumerate(message.numbers("of")):
            shares.setdefault(j, {})[i + 1] = message.body[SHARE_BYTES * at : SHARE_BYTES * (at + 1)]

    def opened(i: int) -> bytes:
        some = sorted(shares[i])[: liar.session.ring.threshold]
        secret = join({x: shares[i][x] for x in some})
        assert secret is not None
        return secret

    vector = np.frombuffer(masked.body, dtype="<u8").copy()
    add_mask(vector, derive(opened(target), session=liar.session.id, purpose=f"self {target}"), sign=-1)
    mask = liar.read(liar.keys[target]).bytes_of("mask")
    for j in gone:
        a, b = sorted((target, j))
        seed = agreed(opened(j), mask, session=liar.session.id, purpose=f"mask {a} {b}")
        add_mask(vector, seed, sign=-1 if target < j else 1)
    return vector.view(np.int64)


def test_a_holder_that_is_shown_other_members_keeps_its_vector(ring: Ring) -> None:
    at = Room(Sizes(holders=40, fewest=28, colluding=0))
    found = read_by_lies(Liar(at), 7, ring.side)
    assert found is None or not (found == at.vectors[7]).any()
    assert at.charges == {}


def test_nobody_signs_a_list_of_members_with_a_gap(ring: Ring) -> None:
    """All twelve neighbours left out: refused before it is signed, and a list that keeps the rule still is."""
    at = Room(Sizes(holders=40, fewest=28, colluding=0))
    liar = Liar(at)
    liar.shared()
    row, everybody = row_of(liar, 7, 6), list(range(40))
    for left_out in (row, row[:6], row[1:5]):
        with pytest.raises(JointRefused, match="no members"):
            liar.members(7, [i for i in everybody if i not in left_out])
    assert liar.holders[7].state == "shared"
    # Another place of the ring is no better: two stretches would part the others.
    far = row_of(liar, 7, 15)[:4]
    with pytest.raises(JointRefused, match="no members"):
        liar.members(7, [i for i in everybody if i not in far])
    assert liar.read(liar.members(7, [i for i in everybody if i not in row[::2]])).kind == "agree"


@pytest.mark.parametrize("told", ["roster", "members"])
def test_few_holders_who_are_told_different_things(told: str) -> None:
    """The complete graph: one holder sees another roster, or other members, and sends nothing; the rest go on."""
    at = room(6, 4, 1)
    liar, everybody = Liar(at), list(range(6))
    short = [0, 1, 2, 3, 4]
    if told == "roster":
        cut = {}
        for i, h in liar.holders.items():
            message = liar.read(h.handle(liar.roster(short if i == 0 else everybody)))
            to = message.numbers("to")
            cut[i] = {j: message.body[SEALED * at_ : SEALED * (at_ + 1)] for at_, j in enumerate(to)}
    else:
        cut = liar.shared()
    signed = [liar.members(i, short if i == 0 else everybody) for i in everybody]
    with pytest.raises(JointRefused, match="1 holders agree to the list of members, and 4 must"):
        liar.sealed(0, short, cut, signed)
    assert at.charges == {}
    with pytest.raises(JointRefused, match="left the session"):
        liar.sealed(0, short, cut, signed)
    if told == "members":
        for i in everybody[1:]:
            liar.sealed(i, everybody, cut, signed)
        assert at.charges == dict.fromkeys(range(1, 6), 1)


def test_what_does_not_count_as_an_agreement() -> None:
    """Three of four signatures, and beside them: doubles, another kind, another view, one who is no member."""
    at = room(6, 4, 1)
    liar = Liar(at)
    cut, members = liar.shared(), [0, 1, 2, 3, 4]
    signed = {i: liar.members(i, members) for i in members}
    view = liar.read(signed[0]).said["view"]

    def by(i: int, kind: str = "agree", about: str = view) -> bytes:
        return write(kind, session=at.session.id, sender=i, key=at.keys[i], view=about)

    weak = [signed[0], signed[1], signed[2], signed[2], by(3, "confirm"), by(4, about="00" * 32), by(5)]
    with pytest.raises(JointRefused, match="3 holders agree"):
        liar.sealed(0, members, cut, weak)
    liar.sealed(1, members, cut, [*weak, signed[3]])
    assert at.charges == {1: 1}
    # A signature that is none ends nothing: the right message may still come.
    broken = bytes([signed[3][0] ^ 1]) + signed[3][1:]
    with pytest.raises(BadMessage, match="signature"):
        liar.sealed(2, members, cut, [broken, *signed.values()])
    liar.sealed(2, members, cut, list(signed.values()))


def test_one_list_is_signed_also_by_a_process_that_starts_again(tmp_path: Path) -> None:
    at = room(6, 4, 1)
    everybody = list(range(6))
    keys = {i: at.kept(i, tmp_path).start() for i in everybody}
    lengths, body = pack(list(keys.values()))
    roster = write("roster", session=at.session.id, sender=AGGREGATOR, key=None, body=body, lengths=lengths)
    at.kept(0, tmp_path).handle(roster)
    first, other = (
        write("members", session=at.session.id, sender=AGGREGATOR, key=None, members=some)
        for some in (everybody, everybody[:5])
    )
    answer = at.kept(0, tmp_path).handle(first)
    assert at.kept(0, tmp_path).handle(first) == answer
    with pytest.raises(JointRefused, match="two different messages of the kind members"):
        at.kept(0, tmp_path).handle(other)
    with pytest.raises(JointRefused, match="left the session"):
        at.kept(0, tmp_path).handle(first)
    assert at.kept(0, tmp_path).start() == keys[0]


@pytest.mark.parametrize("n", range(2, 8))
def test_by_enumeration_two_lists_are_never_both_agreed(n: int) -> None:
    """Each honest holder signs A, B or nothing, corrupt ones both: with one signature fewer it would happen."""
    for c in range(n - 1):
        sizes = Sizes(holders=n, fewest=c + 1, colluding=c)
        most = max(
            min(told.count("A"), told.count("B")) + c for told in itertools.product("AB-", repeat=n - c)
        )
        assert most == sizes.threshold - 1


def test_the_aggregator_and_the_verifier_want_as_many_signatures() -> None:
    at = room(6, 4, 1)
    holders, total = at.holders(), Aggregator(session=at.session)
    waiting = {i: h.start() for i, h in holders.items()}
    while total.stage != "agree":
        for raw in waiting.values():
            total.handle(raw)
        waiting = {i: holders[i].handle(raw) for i, raw in total.advance().items()}
    for i in range(3):
        total.handle(waiting[i])
    lie = write("agree", session=at.session.id, sender=4, key=at.keys[4], view="00" * 32)
    with pytest.raises(BadMessage, match="saw another list"):
        total.handle(lie)
    with pytest.raises(JointRefused, match="3 holders agreed to the members, and 4 are needed; nobody was"):
        total.advance()
    total.handle(waiting[3])
    while True:
        sent = total.advance()
        if total.stage == "done":
            break
        for i, raw in sent.items():
            total.handle(holders[i].handle(raw))
    # Those who signed the members, and nobody else, were asked for a vector.
    assert total.result().remaining == (0, 1, 2, 3)
    parts = {k: [m.raw for m in some.values()] for k, some in total._got.items()}
    assert (recomputed(at.session, parts, range(6)).values == total.result().values).all()
    with pytest.raises(JointRefused, match="agreed to the members"):
        recomputed(at.session, {**parts, "agree": parts["agree"][:3]}, range(6))
    with pytest.raises(BadMessage, match="saw another list"):
        recomputed(at.session, parts, range(5))


# --- sessions of the first protocol ---------------------------------------------------------------------------
def test_an_old_release_is_verified_and_an_old_session_goes_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that version 0.1.0 wrote: session and release of three holders, and one holder in the middle of it."""
    with zipfile.ZipFile(OLD) as file:
        file.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("north.key").chmod(0o600)
    assert main(["joint", "verify", "session", "mail/release"]) == 0
    assert "everything that could be checked holds" in capsys.readouterr().out
    at = ["--plan", "north/plan.toml", "--key", "north.key", "--state", "north/state", "--out", "mail"]
    ways = [
        ["joint", "contribute", "session", "mail/to-0-shares.msg", *at],
        ["joint", "join", "session", "--trusted", "trusted", *at],
        ["joint", "combine", "session", "mail/keys-0.msg", "--state", "agg", "--out", "mail"],
    ]
    for words in ways:
        assert main(words) == 2
        assert "begin a new one with tacit joint init" in capsys.readouterr().err


def test_the_protocol_is_part_of_the_sessions_id() -> None:
    at = room(3, 2, 0)
    given = {"sizes": at.sizes, "keys": at.session.keys, "length": 6, "about": bytes(32), "nonce": bytes(32)}
    first = Session(**given, protocol=1)
    assert first.id != Session(**given).id
    with pytest.raises(InvalidParameter, match="protocol"):
        Session(**given, protocol=3)
    with pytest.raises(InvalidParameter, match="protocol 2"):
        Holder(session=first, index=0, key=at.keys[0], contribute=lambda: at.vectors[0].view(np.uint64))
    assert run_in_process(at.session, at.holders()).remaining == (0, 1, 2)
