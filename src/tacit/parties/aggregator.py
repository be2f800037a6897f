"""The aggregator of the secure sum: a state machine that learns the sum of the remaining holders' vectors.

It collects the messages of one kind until `advance` is called, and then returns the messages to send. It may see
signed keys, sealed shares and masked vectors. At the end it sees shares that reveal, for each member, either the self
seed or the mask key. It verifies every secret that it opens against the signed digest.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import BadMessage, BudgetExceeded, InvalidParameter, JointRefused, TacitError
from tacit.exact.arrays import Words
from tacit.exact.checks import positive
from tacit.exact.data_classes import dataclass
from tacit.parties.holder import SEALED, Holder, KeptHolder, list_digest, locked, write_private
from tacit.parties.masks import SHARE_BYTES, add_mask, agreed, commitment, derive, join, public_of, weights
from tacit.parties.session import AGGREGATOR, Message, Session, pack, read, write

STAGES = ("keys", "shares", "agree", "masked", "confirm", "reveal", "done")
CHARGED = "holders that sent a masked vector have charged for it, and keep that charge"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureSum:
    """The sum of the remaining holders' vectors, as signed integers, and the digest of its messages.

    `commitments` are those in the first messages of the remaining holders. It is a `rehearsal` if one of them
    signed that its noise comes from a seed or its rows are made up.
    """

    values: npt.NDArray[np.int64]
    remaining: tuple[int, ...]
    transcript: bytes
    commitments: dict[int, str] = field(default_factory=dict)
    rehearsal: bool = False


class Aggregator:
    """Runs one session from the middle; it learns no holder's secret except the revealed ones."""

    def __init__(self, *, session: Session) -> None:
        self.session = session
        self.stage = "keys"
        self._got: dict[str, dict[int, Message]] = {kind: {} for kind in STAGES}
        self._total: Words = np.zeros(session.length, dtype=np.uint64)
        self._roster: list[int] = []
        self._members: list[int] = []
        self._agreed: list[int] = []
        self._survivors: list[int] = []
        self._survivors_digest = ""
        self._view = b""
        self._ring: list[list[int]] | None = None
        self._result: SecureSum | None = None

    # --- collecting ---------------------------------------------------------------------------------------
    def handle(self, raw: bytes) -> None:
        """Takes a holder's message, ignores repeated and late ones, and refuses altered ones."""
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
        """Facts that are visible in a message at once."""
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
            roster = set(self._roster)
            to = [j for j in self.keepers(sender) if j in roster and j != sender]
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
            if message.said.get("list") != self._survivors_digest:
                raise BadMessage(
                    what=f"a message of the kind {kind}", reason="it is about another list of survivors"
                )
            if kind == "reveal" and len(message.body) != SHARE_BYTES * len(message.numbers("of")):
                raise BadMessage(what="revealed shares", reason="they have another length")

    @property
    def arrived(self) -> int:
        """The number of answers in this stage."""
        return len(self._got[self.stage]) if self.stage != "done" else 0

    # --- going on -----------------------------------------------------------------------------------------
    def advance(self) -> dict[int, bytes]:
        """Closes the stage; returns the messages to send. The last one gives the result."""
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
        """Closes the stage of shares with these members; a recomputation of a sum has a list and no sealed
        shares.
        """
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
        self._survivors, self._survivors_digest = senders, list_digest("survivors", senders).hex()
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
        """The secret of a member, checked against its signature."""
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
        """The holders who share masks with a holder and keep its shares, and the holder itself."""
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


# The driver in one process: for tests, for rehearsals, and with faults that a seed draws.


@dataclass(slots=True)
class Wire:
    """The effect of the network on messages: a function from the sent bytes to the received ones (none, one,
    several, changed ones).
    """

    carry: Callable[[str, int, bytes], list[bytes]] = field(default=lambda stage, holder, raw: [raw])
    told: list[str] = field(default_factory=list)


def run_in_process(session: Session, holders: Mapping[int, Holder], wire: Wire | None = None) -> SecureSum:
    """Carries all messages until the session ends in a sum or a refusal.
    A holder that fails or receives nothing counts as gone."""
    wire = wire or Wire()
    aggregator = Aggregator(session=session)
    waiting = {}
    for i, holder in holders.items():
        try:
            waiting[i] = holder.start()
        except TacitError as problem:
            wire.told.append(str(problem))
    while True:
        for i, raw in waiting.items():
            for arrived in wire.carry(aggregator.stage, i, raw):
                try:
                    aggregator.handle(arrived)
                except BadMessage as problem:
                    wire.told.append(str(problem))
        stage = aggregator.stage
        sent = aggregator.advance()
        if aggregator.stage == "done":
            return aggregator.result()
        waiting = {}
        for i, raw in sent.items():
            for arrived in wire.carry(f"to {stage}", i, raw):
                try:
                    waiting[i] = holders[i].handle(arrived)
                except (BadMessage, JointRefused, BudgetExceeded) as problem:
                    wire.told.append(str(problem))


# The driver over sockets with TLS 1.3: one aggregator, and each holder in a process of its own.
#
# The aggregator has a certificate that holders are given beforehand and compare: nothing else is trusted. Messages
# are signed anyway, so that TLS hides who takes part and what fails, and stops nobody that signatures would not stop.


def make_certificate(folder: Path, *, host: str = "127.0.0.1", days: int = 30) -> tuple[Path, Path]:
    """A self-made certificate of the aggregator and its private key, as PEM files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tacit aggregator")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    paths = folder / "aggregator.pem", folder / "aggregator.key"
    write_private(paths[0], made.public_bytes(form.Encoding.PEM))
    write_private(
        paths[1],
        key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()),
    )
    return paths


def _most(session: Session) -> int:
    """The largest length of a message in this session, as agreed."""
    return 8 * session.length + 4096 * session.sizes.holders + (1 << 16)


def _send(link: socket.socket, raw: bytes) -> None:
    link.sendall(len(raw).to_bytes(8, "big") + raw)


def _receive(link: socket.socket, most: int) -> bytes:
    size = int.from_bytes(_exactly(link, 8), "big")
    if size > most:
        raise BadMessage(what="a message", reason="it is longer than any message of this session")
    return _exactly(link, size)


def _exactly(link: socket.socket, count: int) -> bytes:
    body = bytearray()
    while len(body) < count:
        part = link.recv(min(count - len(body), 1 << 20))
        if not part:
            raise ConnectionError("the other side is gone")
        body += part
    return bytes(body)


def serve(
    session: Session,
    *,
    certificate: Path,
    key: Path,
    host: str = "127.0.0.1",
    port: int = 0,
    patience: float = 60.0,
    ready: Callable[[int], None] | None = None,
) -> SecureSum:
    """Collects each stage until all have answered or `patience` seconds are over, then continues with the holders
    present.
    """
    wait, most = positive("patience", patience), _most(session)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError):
        raise InvalidParameter(
            parameter="certificate", value=str(certificate), must="be a certificate with its key, in PEM"
        ) from None
    arrived: queue.Queue[tuple[socket.socket, bytes]] = queue.Queue()
    links: dict[int, socket.socket] = {}
    opened: list[socket.socket] = []

    def listen(link: socket.socket) -> None:
        """Everything sent by one connection; a broken message ends this connection only."""
        with contextlib.suppress(OSError, BadMessage, ssl.SSLError):
            inside = context.wrap_socket(link, server_side=True)
            opened.append(inside)
            while True:
                arrived.put((inside, _receive(inside, most)))

    def accept(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = server.accept()
                link.settimeout(wait * 6)
                threading.Thread(target=listen, args=(link,), daemon=True).start()

    aggregator = Aggregator(session=session)
    with socket.create_server((host, port), backlog=session.sizes.holders) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        if ready is not None:
            ready(server.getsockname()[1])
        try:
            expected = session.sizes.holders
            while True:
                until = time.monotonic() + wait
                while aggregator.arrived < expected and (left := until - time.monotonic()) > 0:
                    try:
                        link, raw = arrived.get(timeout=left)
                        message = read(raw, session=session.id, keys=list(session.keys))
                        aggregator.handle(raw)
                    except (queue.Empty, BadMessage):
                        continue
                    if message.kind == "keys":
                        links.setdefault(message.sender, link)
                sent = aggregator.advance()
                if aggregator.stage == "done":
                    return aggregator.result()
                expected = 0
                for i, raw in sent.items():
                    with contextlib.suppress(OSError):
                        _send(links[i], raw)
                        expected += 1
        finally:
            for link in opened:
                with contextlib.suppress(OSError):
                    # A thread that waits for bytes would keep a socket open that is only closed.
                    link.shutdown(socket.SHUT_RDWR)
                link.close()


def take_part(
    holder: KeptHolder, *, address: tuple[str, int], certificate: Path, patience: float = 360.0
) -> None:
    """Answers the aggregator at this address, which must have that certificate, until this holder has revealed.

    The holder's state is in a file: a restarted process continues with the lists that it signed.
    """
    if not isinstance(holder, KeptHolder):
        raise InvalidParameter(
            parameter="holder", value=type(holder).__name__, must="be one whose state is kept in a file",
            hint="agreement.kept_holder(curator, state=..., ...): one that forgot what it signed could sign twice",
        )  # fmt: skip
    inner = holder.holder
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(certificate)
    except (OSError, ssl.SSLError):
        raise InvalidParameter(
            parameter="certificate", value=str(certificate), must="be the aggregator's certificate, in PEM"
        ) from None
    try:
        with (
            locked(holder.path.parent),
            socket.create_connection(address, timeout=positive("patience", patience)) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as link,
        ):
            _send(link, holder.start())
            while inner.state != "revealed":
                _send(link, holder.handle(_receive(link, _most(inner.session))))
            with contextlib.suppress(OSError):
                _exactly(
                    link, 1
                )  # until the aggregator hangs up: else it might not have read the last message
    except ssl.SSLCertVerificationError:
        raise BadMessage(
            what="the aggregator's certificate", reason="it is not the one that was given beforehand"
        ) from None
    except (OSError, ssl.SSLError):
        raise inner._refused("the connection to the aggregator is lost") from None
