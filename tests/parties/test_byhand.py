"""Files carried by hand: state that survives, answers that are given once, messages that arrive late or altered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from support.parties import Room, room
from tacit.errors import BadMessage, InvalidParameter, JointRefused
from tacit.parties.agreement import KINDS, collect, recomputed
from tacit.parties.holder import KeptHolder, locked
from tacit.parties.session import AGGREGATOR, Sizes, write


def kept(at: Room, i: int, folder: Path, contribute: Callable[[], np.ndarray] | None = None) -> KeptHolder:
    """A holder as a new process would have it: from its file alone."""

    def usual() -> np.ndarray:
        at.charges[i] = at.charges.get(i, 0) + 1
        return at.vectors[i].view(np.uint64)

    return KeptHolder(
        folder / f"{i}.state", session=at.session, index=i, key=at.keys[i], contribute=contribute or usual
    )


def carried(at: Room, folder: Path, *, until: str = "", gone: dict[str, set[int]] | None = None):
    """All stages, each holder anew from its file for every message; stops after a stage was closed."""
    waiting = {i: kept(at, i, folder).start() for i in range(at.sizes.holders)}
    for kind in KINDS:
        lost = (gone or {}).get(kind, set())
        raws = [raw for i, raw in waiting.items() if i not in lost]
        found = collect(at.session, folder / "agg", raws[::-1], go_on=bool(lost))
        if kind == until or found.result is not None:
            return found
        assert found.closed
        waiting = {i: kept(at, i, folder).handle(raw) for i, raw in found.sent.items() if i not in lost}
    raise AssertionError("no end")


def test_from_files_alone(tmp_path: Path) -> None:
    at = room()
    found = carried(at, tmp_path, gone={"masked": {2}})
    assert found.result is not None
    assert found.result.remaining == (0, 1, 3, 4, 5)
    assert (found.result.values == at.truth(found.result.remaining)).all()
    assert at.charges == dict.fromkeys(range(6), 1)
    again = collect(at.session, tmp_path / "agg", [])
    assert again.result is not None
    assert again.result.transcript == found.result.transcript
    assert found.messages is not None
    parts = {k: list(m.values()) for k, m in found.messages.items()}
    assert (recomputed(at.session, parts, found.members).values == found.result.values).all()
    with pytest.raises(BadMessage, match="signed it"):
        recomputed(at.session, {**parts, "confirm": parts["confirm"][:2]}, found.members)
    bent = [parts["reveal"][0][:-1] + bytes([parts["reveal"][0][-1] ^ 1]), *parts["reveal"][1:]]
    with pytest.raises(BadMessage, match="signature"):
        recomputed(at.session, {**parts, "reveal": bent}, found.members)
    with pytest.raises(BadMessage, match="lies among"):
        recomputed(at.session, {**parts, "masked": parts["keys"]}, found.members)
    with pytest.raises((BadMessage, JointRefused)):
        recomputed(at.session, parts, found.members[:-1])


def test_no_secret_in_the_clear_on_disk(tmp_path: Path) -> None:
    at, secrets = room(3, 3, 1), []
    holders = [kept(at, i, tmp_path) for i in range(3)]
    waiting = [h.start() for h in holders]
    for h in holders:
        secrets += list(h.holder._private.values())
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    waiting = [h.handle(sent[i]) for i, h in enumerate(holders)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    waiting = [h.handle(sent[i]) for i, h in enumerate(holders)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    for i, h in enumerate(holders):
        h.handle(sent[i])
        secrets += [h.holder._kept[j] for j in range(3)] + [h.holder.pair_seed(j) for j in range(3) if j != i]
    on_disk = b"".join(p.read_bytes() for p in sorted(tmp_path.rglob("*")) if p.is_file())
    for secret in secrets:
        assert secret not in on_disk
        assert secret.hex().encode() not in on_disk
    for i, vector in enumerate(at.vectors):
        assert i == 0 or vector.tobytes() not in on_disk
    state = tmp_path / "0.state"
    assert state.stat().st_mode & 0o077 == 0
    body = state.read_bytes()
    state.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
    with pytest.raises(InvalidParameter, match="in this session"):
        kept(at, 0, tmp_path).handle(sent[0])
    state.write_bytes(body)
    other = KeptHolder(
        state, session=Room(at.sizes, nonce=b"\2" * 32).session, index=0, key=at.keys[0],
        contribute=lambda: at.vectors[0].view(np.uint64),
    )  # fmt: skip
    with pytest.raises(InvalidParameter, match="in this session"):
        other.handle(sent[0])


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_at_the_charge_is_not_charged_again(tmp_path: Path, crash: str) -> None:
    """The process dies before or after the charge: the file says ended, and no second vector is ever made."""
    at = room(3, 3, 1)
    waiting = [kept(at, i, tmp_path).start() for i in range(3)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    waiting = [kept(at, i, tmp_path).handle(sent[i]) for i in range(3)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    waiting = [kept(at, i, tmp_path).handle(sent[i]) for i in range(3)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    charges: list[int] = []

    class Died(BaseException):
        pass

    def dies() -> np.ndarray:
        if crash == "after":
            charges.append(1)
        raise Died

    with pytest.raises(Died):
        kept(at, 0, tmp_path, dies).handle(sent[0])
    with pytest.raises(JointRefused, match="its ledger says whether it was charged"):
        kept(at, 0, tmp_path).handle(sent[0])
    assert at.charges.get(0, 0) == 0
    assert len(charges) == (1 if crash == "after" else 0)


def test_the_state_is_ended_on_disk_before_the_charge(tmp_path: Path) -> None:
    """Power fails inside the charge: what lies on the disk at that moment must refuse a second one."""
    at = room(3, 3, 1)
    waiting = [kept(at, i, tmp_path).start() for i in range(3)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    waiting = [kept(at, i, tmp_path).handle(sent[i]) for i in range(3)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    waiting = [kept(at, i, tmp_path).handle(sent[i]) for i in range(3)]
    sent = collect(at.session, tmp_path / "agg", waiting).sent
    seen: list[bytes] = []

    def looks() -> np.ndarray:
        seen.append((tmp_path / "0.state").read_bytes())
        return at.vectors[0].view(np.uint64)

    kept(at, 0, tmp_path, looks).handle(sent[0])
    (tmp_path / "0.state").write_bytes(seen[0])
    with pytest.raises(JointRefused, match="its ledger says"):
        kept(at, 0, tmp_path).handle(sent[0])


def test_two_lists_are_not_confirmed_by_two_processes(tmp_path: Path) -> None:
    at = room()
    found = carried(at, tmp_path, until="masked")
    first = kept(at, 1, tmp_path).handle(found.sent[1])
    assert kept(at, 1, tmp_path).handle(found.sent[1]) == first
    other = write("survivors", session=at.session.id, sender=AGGREGATOR, key=None, survivors=[1, 2, 3, 4, 5])
    with pytest.raises(JointRefused, match="two different messages"):
        kept(at, 1, tmp_path).handle(other)
    with pytest.raises(JointRefused, match="left the session"):
        kept(at, 1, tmp_path).handle(found.sent[1])
    with (
        locked(tmp_path),
        pytest.raises(JointRefused, match="another process"),
        locked(tmp_path),
    ):
        raise AssertionError("two at once")


def test_joining_twice_is_one_set_of_keys(tmp_path: Path) -> None:
    at = room()
    first = kept(at, 0, tmp_path).start()
    assert kept(at, 0, tmp_path).start() == first
    with pytest.raises(JointRefused, match="has not joined"):
        kept(at, 1, tmp_path).handle(first)


def test_late_doubled_and_altered_files(tmp_path: Path) -> None:
    at = room()
    keys = [kept(at, i, tmp_path).start() for i in range(6)]
    altered = keys[5][:-2] + b"x" + keys[5][-1:]
    found = collect(at.session, tmp_path / "agg", [keys[1], keys[1], keys[0], altered])
    assert (found.taken, found.closed, found.missing) == ([0, 1], False, [2, 3, 4, 5])
    assert len(found.refused) == 1
    found = collect(at.session, tmp_path / "agg", keys[2:5], go_on=True)
    assert found.closed
    assert sorted(found.sent) == [0, 1, 2, 3, 4]
    # Holder 5 comes too late: the roster that was sent stays as it was.
    late = collect(at.session, tmp_path / "agg", [keys[5]])
    assert "the stage is shares" in late.refused[0]
    assert late.sent == found.sent
    # What lies in the folder beside what was accepted changes nothing either, and what was accepted is not altered.
    (tmp_path / "agg" / "received" / "keys" / "5.msg").write_bytes(keys[5])
    assert collect(at.session, tmp_path / "agg", []).sent == found.sent
    (tmp_path / "agg" / "received" / "keys" / "0.msg").write_bytes(keys[5])
    with pytest.raises(InvalidParameter, match="combine wrote"):
        collect(at.session, tmp_path / "agg", [])


def test_another_session_in_the_same_folder(tmp_path: Path) -> None:
    at, other = room(), Room(Sizes(holders=6, fewest=4, colluding=1), nonce=b"\7" * 32)
    collect(at.session, tmp_path / "agg", [kept(at, i, tmp_path).start() for i in range(6)])
    with pytest.raises(InvalidParameter, match="combine wrote"):
        collect(other.session, tmp_path / "agg", [])


def test_a_strangers_key_has_no_state(tmp_path: Path) -> None:
    at = room()
    with pytest.raises(InvalidParameter, match="place of this holder"):
        KeptHolder(
            tmp_path / "x", session=at.session, index=0, key=Ed25519PrivateKey.generate(),
            contribute=lambda: at.vectors[0].view(np.uint64),
        )  # fmt: skip
