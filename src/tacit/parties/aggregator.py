"""The aggregator of the secure sum: a state machine that learns the sum of the vectors of those who remain.

It collects the messages of one kind until it is told to go on (`advance`), and then says what to send to whom. What
it may see are signed keys, sealed shares, masked vectors, and at the end shares that open for each member either the
self seed or the mask key. It verifies every secret that it opens against what was signed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import BadMessage, JointRefused
from tacit.exact.arrays import Words
from tacit.parties.holder import SEALED, list_digest
from tacit.parties.masks import add_mask, agreed, commitment, derive, public_of
from tacit.parties.messages import AGGREGATOR, Message, read, write
from tacit.parties.session import Session, pack
from tacit.parties.shamir import SHARE_BYTES, join, weights

__all__ = ["Aggregator", "SecureSum"]

STAGES = ("keys", "shares", "agree", "masked", "confirm", "reveal", "done")
CHARGED = "holders that sent a masked vector have charged for it, and keep that charge"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureSum:
    """The sum of the vectors of those who remain, as signed integers, and the digest of what led to it.

    `commitments` are those that the holders that remain signed in their first messages, and it is a `rehearsal` if one
    of them signed that its noise comes from a seed or its rows are made up.
    """

    values: npt.NDArray[np.int64]
    remaining: tuple[int, ...]
    transcript: bytes
    commitments: dict[int, str] = field(default_factory=dict)
    rehearsal: bool = False


class Aggregator:
    """Runs one session from the middle; holds no holder's secret that was not opened to it."""

    def __init__(self, *, session: Session) -> None:
        self.session = session
        self.stage = "keys"
        self._got: dict[str, dict[int, Message]] = {kind: {} for kind in STAGES}
        self._total: Words = np.zeros(session.length, dtype=np.uint64)
        self._roster: list[int] = []
        self._members: list[int] = []
        self._agreed: list[int] = []
        self._survivors: list[int] = []
        self._view = b""
        self._ring: list[list[int]] | None = None
        self._result: SecureSum | None = None

    # --- collecting ---------------------------------------------------------------------------------------
    def handle(self, raw: bytes) -> None:
        """Take a holder's message; doubles and late ones are left out, altered ones are an error."""
        message = read(raw, session=self.session.id, keys=list(self.session.keys))
        if message.sender == AGGREGATOR or message.kind not in STAGES:
            raise BadMessage(what="a message", reason="it is not one of a holder")
        known = self._got[message.kind].get(message.sender)
        if known is not None:
            if known.digest != message.digest:
                raise BadMessage(
                    what=f"a second message of the kind {message.kind}",
                    reason=f"holder {message.sender} sent another",
                )
            return
        if message.kind != self.stage:
            raise BadMessage(
                what=f"a message of the kind {message.kind}", reason=f"the stage is {self.stage}"
            )
        self._check(message)
        self._got[message.kind][message.sender] = message

    def _check(self, message: Message) -> None:
        """What can be seen of a message at once."""
        kind, sender = message.kind, message.sender
        allowed = {"shares": self._roster, "agree": self._members, "masked": self._agreed}.get(kind)
        if kind in ("confirm", "reveal"):
            allowed = self._survivors
        if allowed is not None and sender not in allowed:
            raise BadMessage(
                what=f"a message of the kind {kind}", reason=f"holder {sender} is not in this stage"
            )
        if kind == "keys":
            message.bytes_of("seal"), message.bytes_of("mask"), message.text("table")
            message.flag("rehearsal")
        elif kind == "shares":
            to = [j for j in self.keepers(sender) if j in set(self._roster) and j != sender]
            if message.numbers("to") != to or len(message.body) != SEALED * len(to):
                raise BadMessage(what="sealed shares", reason="they are not one for each neighbour")
        elif kind == "agree":
            if message.bytes_of("view") != self._view:
                raise BadMessage(what="an agreement to the members", reason="its holder saw another list")
        elif kind == "masked":
            message.bytes_of("seed")
            if message.bytes_of("view") != self._view:
                raise BadMessage(what="a masked vector", reason="its holder saw another list of members")
            if len(message.body) != 8 * self.session.length:
                raise BadMessage(
                    what="a masked vector",
                    reason=f"it has {len(message.body) // 8} words, and {self.session.length} were agreed",
                )
            np.add(self._total, np.frombuffer(message.body, dtype="<u8"), out=self._total)
        elif kind in ("confirm", "reveal"):
            if message.said.get("list") != list_digest("survivors", self._survivors).hex():
                raise BadMessage(
                    what=f"a message of the kind {kind}", reason="it is about another list of survivors"
                )
            if kind == "reveal" and len(message.body) != SHARE_BYTES * len(message.numbers("of")):
                raise BadMessage(what="revealed shares", reason="they have another length")

    @property
    def arrived(self) -> int:
        """How many have answered in this stage."""
        return len(self._got[self.stage]) if self.stage != "done" else 0

    # --- going on -----------------------------------------------------------------------------------------
    def advance(self) -> dict[int, bytes]:
        """Close the stage; what to send to whom. The last one gives the result."""
        senders = sorted(self._got.get(self.stage, {}))
        step = {"keys": self._to_roster, "shares": self._to_members, "agree": self._to_sealed}
        step |= {"masked": self._to_survivors, "confirm": self._to_confirmed, "reveal": self._to_result}
        if self.stage == "done":
            raise BadMessage(what="another step", reason="the session is over")
        return step[self.stage](senders)

    def _to_roster(self, senders: list[int]) -> dict[int, bytes]:
        self._need(senders, self.session.least, "joined", charged="nobody was charged")
        self._roster = senders
        found = [self._got["keys"][i] for i in senders]
        self._view = commitment("roster", *(m.digest for m in found))
        lengths, body = pack([m.raw for m in found])
        self.stage = "shares"
        return dict.fromkeys(senders, self._write("roster", body=body, lengths=lengths))

    def settle_members(self, senders: list[int]) -> None:
        """Close the stage of shares with these members; whoever recomputes a sum has a list and no sealed shares."""
        self._need(senders, self.session.least, "shared their secrets", charged="nobody was charged")
        if self.stage != "shares" or senders != sorted(set(senders)) or not set(senders) <= set(self._roster):
            raise BadMessage(what="the list of members", reason="it is not a part of the roster, in order")
        self._members = senders
        self._view = commitment("view", self._view, list_digest("members", senders))
        self.stage = "agree"
        if self.session.protocol == 1:
            self._agreed, self.stage = senders, "masked"

    def settle_agreed(self, senders: list[int]) -> None:
        """Close the stage of agreements: enough signed the one list of members."""
        self._need(
            senders, self.session.sizes.threshold, "agreed to the members", charged="nobody was charged"
        )
        self._agreed, self.stage = senders, "masked"

    def _to_members(self, senders: list[int]) -> dict[int, bytes]:
        self.settle_members(senders)
        return dict.fromkeys(senders, self._write("members", members=senders))

    def _to_sealed(self, senders: list[int]) -> dict[int, bytes]:
        self.settle_agreed(senders)
        cut: dict[int, dict[int, bytes]] = {}
        for i in self._members:
            message = self._got["shares"][i]
            cut[i] = {
                j: message.body[SEALED * at : SEALED * (at + 1)] for at, j in enumerate(message.numbers("to"))
            }
        out = {}
        signed = [self._got["agree"][i].raw for i in senders]
        for j in senders:
            of = [i for i in self.keepers(j) if i in cut and i != j]
            body = b"".join(cut[i][j] for i in of)
            lengths, body = pack([body, *signed])
            out[j] = self._write("sealed", body=body, lengths=lengths, of=of)
        self._got["shares"].clear()
        return out

    def _to_survivors(self, senders: list[int]) -> dict[int, bytes]:
        self._need(senders, self.session.sizes.fewest, "sent their vectors")
        self._survivors = senders
        self.stage = "confirm"
        return dict.fromkeys(senders, self._write("survivors", survivors=senders))

    def _to_confirmed(self, senders: list[int]) -> dict[int, bytes]:
        self._need(senders, self.session.sizes.threshold, "confirmed the list")
        lengths, body = pack([self._got["confirm"][i].raw for i in senders])
        self.stage = "reveal"
        return dict.fromkeys(senders, self._write("confirmed", body=body, lengths=lengths))

    def _to_result(self, senders: list[int]) -> dict[int, bytes]:
        self._need(senders, self.session.sizes.threshold, "opened the masks")
        shares: dict[int, dict[int, bytes]] = {i: {} for i in self._members}
        for j in senders:
            message = self._got["reveal"][j]
            for at, i in enumerate(message.numbers("of")):
                if i in shares and j in self.keepers(i):
                    shares[i][j + 1] = message.body[SHARE_BYTES * at : SHARE_BYTES * (at + 1)]
        left, known = set(self._survivors), dict[tuple[int, ...], list[int]]()
        # On a copy: a step that is refused and tried again, with more reveals, begins at the masked sum.
        total = self._total.copy()
        for i in self._members:
            secret = self._opened(i, shares[i], known, remained=i in left)
            if i in left:
                seed = derive(secret, session=self.session.id, purpose=f"self {i}")
                add_mask(total, seed, sign=-1)
                continue
            for j in self.keepers(i):
                if j in left:
                    a, b = sorted((i, j))
                    other = self._got["keys"][j].bytes_of("mask")
                    seed = agreed(secret, other, session=self.session.id, purpose=f"mask {a} {b}")
                    # What j added for i: + if j < i, and it is taken off again.
                    add_mask(total, seed, sign=-1 if j < i else 1)
        confirmed = (self._got["confirm"][i].digest for i in sorted(self._got["confirm"]))
        vectors = (self._got["masked"][i].digest for i in self._survivors)
        self._result = SecureSum(
            values=total.view(np.int64),
            remaining=tuple(self._survivors),
            transcript=commitment("transcript", self._view, *vectors, *confirmed),
            commitments={i: t for i in self._survivors if (t := self._got["keys"][i].text("table"))},
            rehearsal=any(self._got["keys"][i].flag("rehearsal") for i in self._survivors),
        )
        self.stage = "done"
        return {}

    def _opened(
        self, i: int, shares: dict[int, bytes], known: dict[tuple[int, ...], list[int]], *, remained: bool
    ) -> bytes:
        """The secret of a member, checked against what it signed."""
        threshold = self.session.ring.threshold
        if len(shares) < threshold:
            raise JointRefused(
                reason=f"{len(shares)} shares of a secret are left of {threshold}", charged=CHARGED
            )
        points = tuple(sorted(shares)[:threshold])
        if points not in known:
            known[points] = weights(points)
        secret = join({x: shares[x] for x in points}, known=known)
        if remained:
            right = secret is not None and commitment("self seed", secret) == self._got["masked"][i].bytes_of(
                "seed"
            )
        else:
            right = secret is not None and public_of(secret) == self._got["keys"][i].bytes_of("mask")
        if secret is None or not right:
            raise JointRefused(
                reason="a secret that was opened is not the one that was signed", charged=CHARGED
            )
        return secret

    def result(self) -> SecureSum:
        """The sum, after the last step."""
        if self._result is None:
            raise BadMessage(what="the sum", reason=f"the session is at the stage {self.stage}")
        return self._result

    # --- the parts ----------------------------------------------------------------------------------------
    def keepers(self, index: int) -> list[int]:
        """Those who share masks with a holder and keep its shares, itself among them."""
        if self.session.ring.side == 0:
            return list(range(self.session.sizes.holders))
        if self._ring is None:
            publics = [self._got["keys"][i] for i in self._roster]
            seed = commitment("ring", *(m.bytes_of("seal") + m.bytes_of("mask") for m in publics))
            self._ring = self.session.ring.keepers(self.session.sizes, seed)
        return self._ring[index]

    def _need(self, senders: list[int], least: int, what: str, *, charged: str = CHARGED) -> None:
        if len(senders) < least:
            raise JointRefused(
                reason=f"{len(senders)} holders {what}, and {least} are needed", charged=charged
            )

    def _write(self, kind: str, *, body: bytes = b"", **said: Any) -> bytes:
        return write(kind, session=self.session.id, sender=AGGREGATOR, key=None, body=body, **said)
