"""A holder of the secure sum: a state machine, bytes in and bytes out.

    start() -> keys        fresh X25519 keys, signed
    roster  -> shares      shares of two secrets (the mask key, the self seed), sealed to each keeper
    members -> agree       a signature under the roster and the one list of members that this holder is shown
    sealed  -> masked      vector + self mask + pairwise masks, modulo 2^64; here the holder charges and reads
    survivors -> confirm   a signature under the list of those whose vectors arrived
    confirmed -> reveal for each member one of its two shares: that of the self seed if the member remained,
    else that of the mask key

It answers each kind once: the same bytes again get the same answer, and other bytes get an error. It makes its
vector only under a roster and a list of members that `threshold` holders signed, so that all holders with a
vector have seen the same two lists. It reveals shares only under a list of survivors that includes itself and
that `threshold` holders signed, and never both shares of one member.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.errors import BadMessage, InvalidParameter, JointRefused
from tacit.exact.arrays import Words
from tacit.exact.checks import flag, text
from tacit.noise.source import Source, default_source
from tacit.parties.masks import (
    SHARE_BYTES,
    add_mask,
    agreed,
    commitment,
    derive,
    open_sealed,
    public_of,
    random_bytes,
    seal,
    split,
)
from tacit.parties.session import AGGREGATOR, Message, Session, read, unpack, write

SEALED = 2 * SHARE_BYTES + 16
STRETCHES = "stops an aggregator that names stretches of the ring as gone; honest losses rarely look so"


def list_digest(label: str, members: Sequence[int]) -> bytes:
    """The digest of a list of holders."""
    return commitment(label, *(m.to_bytes(4, "little") for m in members))


class Holder:
    """One holder in one session. `contribute` makes its vector, and is called once, when the masks are agreed."""

    order: ClassVar[dict[str, str]] = {
        "new": "", "keyed": "roster", "shared": "members", "agreed": "sealed", "masked": "survivors",
        "confirmed": "confirmed", "revealed": "",
    }  # fmt: skip

    def __init__(
        self,
        *,
        session: Session,
        index: int,
        key: Ed25519PrivateKey,
        contribute: Callable[[], Words],
        source: Source | None = None,
        table: str = "",
        rehearsal: bool = False,
    ) -> None:
        session.still_run()
        if (
            not 0 <= index < session.sizes.holders
            or key.public_key().public_bytes_raw() != session.keys[index]
        ):
            raise InvalidParameter(
                parameter="index", value=index, must="be the place of this holder's key in the session"
            )
        self.session, self.index, self._key = session, index, key
        self._table, self._rehearsal = text("table", table), flag("rehearsal", rehearsal)
        self._contribute = contribute
        self._source = source if source is not None else default_source()
        self._private: dict[str, bytes] = {}
        self._answered: dict[str, tuple[bytes, bytes]] = {}
        self._publics: dict[int, tuple[bytes, bytes]] = {}
        self._kept: dict[int, bytes] = {}
        self._members: list[int] = []
        self._survivors: list[int] = []
        self._view, self._roster_view = b"", b""
        self._first = b""
        self.state = "new"
        self.asked, self.charged = False, False

    # --- going on -----------------------------------------------------------------------------------------
    def start(self) -> bytes:
        """The first message; the keys in it are used in this session only. It names the holder's commitment."""
        if self.state != "new":
            raise BadMessage(what="a second start", reason="keys are made once a session")
        self._private = {name: random_bytes(self._source) for name in ("seal", "mask", "self")}
        self.state = "keyed"
        publics: dict[str, Any] = {name: public_of(self._private[name]).hex() for name in ("seal", "mask")}
        raw = self._write("keys", **publics, table=self._table, rehearsal=self._rehearsal)
        self._first = commitment("message", raw)
        return raw

    def handle(self, raw: bytes) -> bytes:
        """The answer to a message of the aggregator."""
        if self.state == "ended":
            raise self._refused("this holder left the session")
        message = read(raw, session=self.session.id, keys=list(self.session.keys))
        if message.sender != AGGREGATOR:
            raise BadMessage(what="a message of a holder", reason="it comes through the aggregator only")
        known = self._answered.get(message.kind)
        if known is not None:
            if known[0] == message.digest:
                return known[1]
            self.state = "ended"
            raise self._refused(f"the aggregator sent two different messages of the kind {message.kind}")
        if message.kind != self.order[self.state] or not message.kind:
            raise BadMessage(
                what=f"a message of the kind {message.kind}", reason="it is not this message's turn"
            )
        answers = {"roster": self._roster, "members": self._agree, "sealed": self._sealed}
        answers |= {"survivors": self._confirm}
        answer = answers.get(message.kind, self._confirmed)(message)
        self._answered[message.kind] = (message.digest, answer)
        return answer

    # --- the kinds ----------------------------------------------------------------------------------------
    def _roster(self, message: Message) -> bytes:
        found = [
            read(raw, session=self.session.id, keys=list(self.session.keys))
            for raw in unpack(message, message.said.get("lengths"))
        ]
        senders = [m.sender for m in found]
        if any(m.kind != "keys" for m in found) or senders != sorted(set(senders)) or AGGREGATOR in senders:
            raise BadMessage(what="the roster", reason="it does not list each holder's keys once, in order")
        if self.index not in senders or len(senders) < self.session.least:
            raise self._refused(f"{len(senders)} holders joined, and {self.session.least} are needed")
        self._publics = {m.sender: (m.bytes_of("seal"), m.bytes_of("mask")) for m in found}
        if next(m for m in found if m.sender == self.index).digest != self._first:
            self.state = "ended"
            raise self._refused("the roster has other keys for this holder than it sent")
        self._view = self._roster_view = commitment("roster", *(m.digest for m in found))
        keepers = [j for j in self.keepers(self.index) if j in self._publics]
        threshold = self.session.ring.threshold
        if len(keepers) < threshold:
            raise self._refused("too few neighbours joined to keep this holder's secrets")
        points = [j + 1 for j in keepers]
        shares = [
            split(self._private[name], threshold=threshold, points=points, source=self._source)
            for name in ("mask", "self")
        ]
        own = X25519PrivateKey.from_private_bytes(self._private["seal"])
        sealed = []
        for j in keepers:
            plain = b"".join(s[j + 1] for s in shares)
            if j == self.index:
                self._kept[j] = plain
                continue
            key = agreed(own, self._publics[j][0], session=self.session.id, purpose=f"seal {self.index} {j}")
            sealed.append(seal(key, plain, self._view))
        self.state = "shared"
        return self._write("shares", body=b"".join(sealed), to=[j for j in keepers if j != self.index])

    def _agree(self, message: Message) -> bytes:
        members = message.numbers("members")
        if members != sorted(members) or self.index not in members or not set(members) <= set(self._publics):
            raise BadMessage(
                what="the list of members", reason="it is not a part of the roster with this holder in it"
            )
        if len(members) < self.session.least:
            raise self._refused(
                f"{len(members)} holders shared their secrets, and {self.session.least} are needed"
            )
        # No list of survivors has fewer gaps than its members: what would be refused there is refused before a charge.
        if self.session.ring.gaps(self.session.sizes, self._ring_seed(), members):
            raise self._refused("too many neighbours on the ring are no members", hint=STRETCHES)
        if len(self._with_me(members)) + 1 < self.session.ring.threshold:
            raise self._refused("too few neighbours are members to keep this holder's secrets")
        # One list a session: handle() answers no second message of this kind, and a kept holder's file says so too.
        self._members = members
        self._view = commitment("view", self._view, list_digest("members", members))
        self.state = "agreed"
        return self._write("agree", view=self._view.hex())

    def _sealed(self, message: Message) -> bytes:
        members, senders = self._members, self._with_me(self._members)
        parts = unpack(message, message.said.get("lengths"))
        shares, signed = (parts[0], parts[1:]) if parts else (b"", [])
        if message.numbers("of") != senders or len(shares) != SEALED * len(senders):
            raise BadMessage(what="the sealed shares", reason="they are not one of each neighbour")
        self._signed("agree", signed, members, "agree to the list of members", view=self._view.hex())
        own = X25519PrivateKey.from_private_bytes(self._private["seal"])
        for at, j in enumerate(senders):
            key = agreed(own, self._publics[j][0], session=self.session.id, purpose=f"seal {j} {self.index}")
            self._kept[j] = open_sealed(key, shares[SEALED * at : SEALED * (at + 1)], self._roster_view)
        # A key of somebody else that gives no agreement is found here, before anything is charged.
        seeds = {j: self.pair_seed(j) for j in senders}
        # The vector is made, and charged for, here: whatever fails from here on, it does not begin again.
        self.state, self.asked = "ended", True
        vector = self._vector()
        self.charged = True
        add_mask(vector, self._self_seed(), sign=1)
        for j, seed in seeds.items():
            add_mask(vector, seed, sign=1 if self.index < j else -1)
        self.state = "masked"
        return self._write(
            "masked",
            body=vector.astype("<u8").tobytes(),
            view=self._view.hex(),
            seed=commitment("self seed", self._private["self"]).hex(),
        )

    def _confirm(self, message: Message) -> bytes:
        survivors = message.numbers("survivors")
        if survivors != sorted(survivors) or not set(survivors) <= set(self._members):
            raise BadMessage(what="the list of survivors", reason="it is not a part of the members")
        if self.index not in survivors:
            self.state = "ended"
            raise self._refused("the aggregator counts this holder as gone")
        if len(survivors) < self.session.sizes.fewest:
            self.state = "ended"
            raise self._refused(
                f"{len(survivors)} holders are left, and the noise was sized for {self.session.sizes.fewest}"
            )
        if self.session.ring.gaps(self.session.sizes, self._ring_seed(), survivors):
            self.state = "ended"
            raise self._refused("too many neighbours on the ring are gone", hint=STRETCHES)
        self._survivors = survivors
        self.state = "confirmed"
        return self._write("confirm", view=self._view.hex(), list=list_digest("survivors", survivors).hex())

    def _confirmed(self, message: Message) -> bytes:
        signed, wanted = (
            unpack(message, message.said.get("lengths")),
            list_digest("survivors", self._survivors),
        )
        about = {"view": self._view.hex(), "list": wanted.hex()}
        self._signed("confirm", signed, self._survivors, "confirm the list of survivors", **about)
        of = [j for j in self.keepers(self.index) if j in self._kept and j in set(self._members)]
        left = set(self._survivors)
        # The first half is a share of the mask key, the second of the self seed: one of them, never both.
        parts = [self._kept[j][SHARE_BYTES:] if j in left else self._kept[j][:SHARE_BYTES] for j in of]
        self._kept.clear()
        self._private.clear()
        self.state = "revealed"
        return self._write("reveal", body=b"".join(parts), of=of, list=wanted.hex())

    # --- the parts ----------------------------------------------------------------------------------------
    def keepers(self, index: int) -> list[int]:
        """The holders who share masks with a holder and keep its shares, and the holder itself."""
        if self.session.ring.side == 0:
            return list(range(self.session.sizes.holders))
        return self.session.ring.keepers(self.session.sizes, self._ring_seed())[index]

    def _signed(self, kind: str, raws: Sequence[bytes], among: Sequence[int], what: str, **said: str) -> None:
        """Refuse, and leave the session, unless `threshold` of these holders signed a message with this content."""
        found = [read(raw, session=self.session.id, keys=list(self.session.keys)) for raw in raws]
        listed = set(among)
        signers = {
            m.sender
            for m in found
            if m.kind == kind and m.sender in listed and all(m.said.get(k) == v for k, v in said.items())
        }
        if len(signers) < self.session.sizes.threshold:
            self.state = "ended"
            raise self._refused(
                f"{len(signers)} holders {what}, and {self.session.sizes.threshold} must",
                hint="this check finds an aggregator that shows different lists to different holders",
            )

    def _with_me(self, members: Sequence[int]) -> list[int]:
        """The members with whom this holder shares a mask."""
        listed = set(members)
        return [j for j in self.keepers(self.index) if j in listed and j != self.index]

    def _ring_seed(self) -> bytes:
        return commitment("ring", *(a + b for a, b in self._publics.values()))

    def pair_seed(self, other: int) -> bytes:
        """The seed of the mask with another holder: the same at both ends."""
        a, b = sorted((self.index, other))
        return agreed(
            self._private["mask"], self._publics[other][1], session=self.session.id, purpose=f"mask {a} {b}"
        )

    def _self_seed(self) -> bytes:
        return derive(self._private["self"], session=self.session.id, purpose=f"self {self.index}")

    def _vector(self) -> Words:
        given = np.asarray(self._contribute())
        if given.dtype != np.uint64 or given.shape != (self.session.length,):
            raise InvalidParameter(
                parameter="contribute", value=f"{given.dtype} of shape {given.shape}",
                must=f"give {self.session.length} words of 64 bits",
            )  # fmt: skip
        return given.copy()

    def _write(self, kind: str, *, body: bytes = b"", **said: Any) -> bytes:
        return write(kind, session=self.session.id, sender=self.index, key=self._key, body=body, **said)

    def _refused(self, reason: str, hint: str = "") -> JointRefused:
        charged = "the charge of this holder stays" if self.charged else "this holder was charged nothing"
        if self.asked and not self.charged:
            charged = "its vector could not be made; its ledger says whether it was charged"
        return JointRefused(reason=reason, charged=charged, hint=hint, after_charge=self.charged)

    def __reduce__(self) -> Any:
        raise TypeError("a holder is not copied or pickled: its secrets would be there twice")


# A holder between two messages: its secrets as one sealed file, for a protocol that is carried by hand.
#
# The file is sealed by AES-256-GCM under a key that is derived from the holder's long-lived private key and the
# session: who finds the file alone learns nothing of it. It is written, and flushed to the disk, before an answer
# leaves; and once more, as ended, before the holder is charged. So a crash at any step leaves a holder that goes on,
# or one that refuses.

MAGIC = b"tacit holder 1\n"


def _state_key(key: Ed25519PrivateKey, session: Session) -> bytes:
    return derive(key.private_bytes_raw(), session=session.id, purpose="state of a holder")


def write_private(path: Path, body: bytes) -> None:
    """Writes a file, durably, that only its owner may read. A crash leaves no partial file."""
    beside = path.with_name(path.name + ".new")
    try:
        beside.unlink(missing_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as problem:
        raise InvalidParameter(
            parameter="file", value=str(path), must="be writable", hint=(problem.strerror or "").lower()
        ) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time: two answers at once could confirm two lists."""
    try:
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise InvalidParameter(
            parameter="folder", value=str(folder), must="be writable", hint=(problem.strerror or "").lower()
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise JointRefused(
            reason="another process answers for this holder", charged="this one charged nothing"
        ) from None
    finally:
        os.close(handle)


class KeptHolder:
    """A `Holder` whose state lives in a file, which is written before an answer is given.

    `note` is the owner's note, kept with it from the start: the version and the digest of its table.
    """

    def __init__(
        self,
        path: Path,
        *,
        session: Session,
        index: int,
        key: Ed25519PrivateKey,
        contribute: Callable[[], Words],
        source: Source | None = None,
        table: str = "",
        rehearsal: bool = False,
        note: Mapping[str, str] | None = None,
    ) -> None:
        def once() -> Words:
            self._save()
            return contribute()

        self.path, self._key, self._session = path, key, session
        self.note, self._sent = dict(note or {}), b""
        self.paid = False
        """Whether the ledger was charged for this message, and for none before."""
        self._source = source if source is not None else default_source()
        self.holder = Holder(
            session=session, index=index, key=key, contribute=once, source=self._source, table=table,
            rehearsal=rehearsal,
        )  # fmt: skip

    def start(self) -> bytes:
        """Begins a session; an earlier one gives the same first message, with the same keys."""
        if self.path.exists() or self.path.is_symlink():
            self._load()
            return self._sent
        self._sent = self.holder.start()
        self._save()
        return self._sent

    def handle(self, raw: bytes) -> bytes:
        """The answer to a message of the aggregator, after the new state is on the disk."""
        self._load()
        before = self.holder.charged
        try:
            answer = self.holder.handle(raw)
        finally:
            self._save()
        self.paid = self.holder.charged and not before
        return answer

    # --- the file -----------------------------------------------------------------------------------------
    def _save(self) -> None:
        h = self.holder
        said: dict[str, Any] = {
            "private": {k: v.hex() for k, v in h._private.items()},
            "answered": {k: [d.hex(), a.hex()] for k, (d, a) in h._answered.items()},
            "publics": {str(i): [a.hex(), b.hex()] for i, (a, b) in h._publics.items()},
            "kept": {str(i): v.hex() for i, v in h._kept.items()},
            "members": h._members, "survivors": h._survivors, "view": h._view.hex(), "first": h._first.hex(),
            "roster view": h._roster_view.hex(),
            "state": h.state, "asked": h.asked, "charged": h.charged, "index": h.index,
            "note": self.note, "sent": self._sent.hex(),
        }  # fmt: skip
        nonce = random_bytes(self._source, 12)
        sealed = AESGCM(_state_key(self._key, self._session)).encrypt(nonce, json.dumps(said).encode(), MAGIC)
        write_private(self.path, MAGIC + nonce + sealed)

    def _load(self) -> None:
        try:
            body = self.path.read_bytes()
        except OSError:
            body = b""
        if not body:
            raise JointRefused(
                reason="this holder has not joined this session", charged="it was charged nothing"
            )
        start = len(MAGIC)
        try:
            if not body.startswith(MAGIC):
                raise InvalidTag
            cipher = AESGCM(_state_key(self._key, self._session))
            plain = cipher.decrypt(body[start : start + 12], body[start + 12 :], MAGIC)
        except (InvalidTag, ValueError):
            raise InvalidParameter(
                parameter="state", value=str(self.path), must="be what this holder wrote in this session",
                hint="it was altered, or another key or another session is named",
            ) from None  # fmt: skip
        said = json.loads(plain)
        h = self.holder
        if said["index"] != h.index:
            raise InvalidParameter(parameter="state", value=str(self.path), must="be of this holder")
        h._private = {k: bytes.fromhex(v) for k, v in said["private"].items()}
        h._answered = {k: (bytes.fromhex(d), bytes.fromhex(a)) for k, (d, a) in said["answered"].items()}
        h._publics = {int(i): (bytes.fromhex(a), bytes.fromhex(b)) for i, (a, b) in said["publics"].items()}
        h._kept = {int(i): bytes.fromhex(v) for i, v in said["kept"].items()}
        h._members, h._survivors = said["members"], said["survivors"]
        h._view, h._first = bytes.fromhex(said["view"]), bytes.fromhex(said["first"])
        h._roster_view = bytes.fromhex(said["roster view"])
        h.state, h.asked, h.charged = said["state"], said["asked"], said["charged"]
        self.note, self._sent = said["note"], bytes.fromhex(said["sent"])
