"""The agreement of all sides of one secure sum before it begins."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import BadMessage, InvalidParameter
from tacit.exact.canonical import formerly
from tacit.exact.checks import refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import up
from tacit.parties.masks import commitment

# How many take part, how many must remain, how many may collude: what shares and thresholds are sized for.

COMPLETE = 200
"""Up to this many holders, each pair has its own mask. Beyond, each holder shares masks with some neighbours."""
MOST_HOLDERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """n holders, of whom at least `fewest` must remain and at most `colluding` share their knowledge.

    Shares of noise are sized for h = fewest - colluding honest ones (theorem `honest-survivors`). Secrets are shared
    so that `threshold` of the holders open them, with colluding < threshold and 2 threshold > holders + colluding:
    then two lists of survivors cannot both be confirmed (theorem `one-list-of-survivors`). A person may be in
    `appearances` of the holders (by default in all of them), and sensitivities are multiplied by that.
    """

    holders: int
    fewest: int
    colluding: int
    threshold: int = 0
    appearances: int = 0
    honest: int = field(init=False)

    def __post_init__(self) -> None:
        n = whole("holders", self.holders, least=None)
        if not 2 <= n <= MOST_HOLDERS:
            raise InvalidParameter(
                parameter="holders", value=n, must=f"be between 2 and {MOST_HOLDERS}",
                hint="one holder alone is a curator: tacit.Curator",
            )  # fmt: skip
        s, c = whole("fewest", self.fewest), whole("colluding", self.colluding, least=0)
        if not c < s <= n:
            raise InvalidParameter(
                parameter="fewest", value=s, must=f"be above colluding ({c}) and at most holders ({n})",
                hint="noise is sized for the fewest that remain less those who collude: at least one must be left",
            )  # fmt: skip
        t = whole("threshold", self.threshold, least=0) or (n + c) // 2 + 1
        if not (c < t <= n and 2 * t > n + c):
            raise InvalidParameter(
                parameter="threshold", value=t, must=f"be above ({n} + {c}) / 2 and at most {n}",
                hint="else an aggregator that lies about who is left could have two lists confirmed",
            )  # fmt: skip
        k = whole("appearances", self.appearances, least=0) or n
        refuse_if(k > n, "appearances", k, f"be at most holders ({n})")
        set_fields(self, holders=n, fewest=s, colluding=c, threshold=t, appearances=k, honest=s - c)

    @property
    def share(self) -> Fraction:
        """The part of the whole noise that each holder adds: 1/h."""
        return Fraction(1, self.honest)

    def excess(self, remaining: int) -> float:
        """The ratio of the noise's standard deviation to one curator's, for this number of remaining holders."""
        return math.sqrt(remaining / self.honest)

    def to_dict(self) -> dict[str, int]:
        """Plain values for digests and certificates."""
        return {
            "holders": self.holders,
            "fewest": self.fewest,
            "colluding": self.colluding,
            "threshold": self.threshold,
            "appearances": self.appearances,
        }

    describe = formerly("describe", method=True)

    def __str__(self) -> str:
        return (
            f"{self.holders} holders, of whom at least {self.fewest} must remain and at most {self.colluding} collude: "
            f"each adds 1/{self.honest} of the noise; if all remain its variance is {self.holders}/{self.honest} "
            f"({self.holders / self.honest:.3g}) times, and its standard deviation {self.excess(self.holders):.3g} "
            f"times, that of one curator; a person may be in {self.appearances} of them"
        )


# Messages as bytes: a signature, a line of JSON, and a body. Each names its session, its kind and who sends it.

AGGREGATOR = -1
FORMAT = "tacit joint 1"
MOST_HEAD = 1 << 26
SIGNATURE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message with a checked signature. The aggregator's own messages are not signed, but contain signed ones."""

    kind: str
    sender: int
    said: dict[str, Any]
    body: bytes = field(repr=False)
    raw: bytes = field(repr=False)

    @property
    def digest(self) -> bytes:
        """The digest of all its bytes."""
        return commitment("message", self.raw)

    def text(self, name: str) -> str:
        """A field that is text."""
        value = self.said.get(name)
        if not isinstance(value, str):
            raise self._broken(name)
        return value

    def flag(self, name: str) -> bool:
        """A field that is true or false."""
        value = self.said.get(name)
        if not isinstance(value, bool):
            raise self._broken(name)
        return value

    def numbers(self, name: str) -> list[int]:
        """A field that is a list of different whole numbers."""
        value = self.said.get(name)
        if (
            not isinstance(value, list)
            or any(type(v) is not int for v in value)
            or len(set(value)) != len(value)
        ):
            raise self._broken(name)
        return value

    def bytes_of(self, name: str, count: int = 32) -> bytes:
        """A field of this many bytes in hexadecimal."""
        try:
            value = bytes.fromhex(self.text(name))
        except ValueError:
            value = b""
        if len(value) != count:
            raise self._broken(name)
        return value

    def _broken(self, name: str) -> BadMessage:
        return BadMessage(
            what=f"a message of the kind {self.kind}", reason=f"its field {name!r} is missing or broken"
        )


def write(
    kind: str, *, session: bytes, sender: int, key: Ed25519PrivateKey | None, body: bytes = b"", **said: Any
) -> bytes:
    """The message as bytes; holders sign."""
    head = {"format": FORMAT, "session": session.hex(), "kind": kind, "sender": sender, "said": said}
    signed = (
        json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
        + b"\n"
        + body
    )
    return (bytes(SIGNATURE) if key is None else key.sign(signed)) + signed


def read(raw: bytes, *, session: bytes, keys: list[bytes]) -> Message:
    """The message in these bytes, if it is of this session and signed by its sender."""
    if not isinstance(raw, bytes | bytearray | memoryview):
        raise BadMessage(what="a message", reason="it is not bytes")
    raw = bytes(raw)
    signature, signed = raw[:SIGNATURE], raw[SIGNATURE:]
    head, newline, body = signed.partition(b"\n")
    try:
        if not newline or len(head) > MOST_HEAD:
            raise ValueError
        told = json.loads(head)
        kind, sender, said = told["kind"], told["sender"], told["said"]
        known = told["format"] == FORMAT and type(kind) is str and type(sender) is int and type(said) is dict
        if not known or not (sender == AGGREGATOR or 0 <= sender < len(keys)):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadMessage(what="a message", reason=f"it is not of the form {FORMAT!r}") from None
    if told.get("session") != session.hex():
        raise BadMessage(
            what=f"a message of the kind {kind}", reason="it is of another session",
            hint="a message of an earlier round is never used again",
        )  # fmt: skip
    if sender != AGGREGATOR:
        try:
            Ed25519PublicKey.from_public_bytes(keys[sender]).verify(signature, signed)
        except InvalidSignature:
            raise BadMessage(
                what=f"a message of the kind {kind}",
                reason=f"the signature of holder {sender} is not under it",
            ) from None
    return Message(kind=kind, sender=sender, said=said, body=body, raw=raw)


# Who shares a mask with whom: everybody up to 200 holders; beyond, neighbours on a ring in an order that is drawn.
#
# The ring's order follows from the digest of all first messages, to which every honest holder adds fresh random keys.
# With m neighbours on either side the honest ones stay connected unless m holders in a row are corrupt or gone. An
# aggregator that names holders as gone knows the order, so holders sign no list on which more than m/2 of any m in a
# row are gone: then as many of them must be corrupt, which the order decides, and a secret stays one unless
# `threshold` of its holder's 2m + 1 share keepers are corrupt. Both chances are hypergeometric (theorem `sparse-
# masks`); they are granted `TRIES` orders, and are added to delta.

MOST_SIDE = 200
TRIES = 1 << 60
"""The number of orders that an aggregator may try with first messages of its own holders; each try takes a hash."""
MOST_FAILING = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """`side` neighbours each way, and a threshold for the shares that they keep; side = 0 is the complete graph.

    `delta` is the chance that an honest holder is exposed, `failing` the chance that holders refuse an honest list of
    survivors, if the largest allowed number of holders is lost by chance.
    """

    side: int
    threshold: int
    delta: float
    failing: float = 0.0

    def order(self, sizes: Sizes, seed: bytes) -> list[int]:
        """The holders in their order on the ring."""
        return sorted(
            range(sizes.holders), key=lambda i: hashlib.sha256(seed + i.to_bytes(4, "little")).digest()
        )

    def keepers(self, sizes: Sizes, seed: bytes) -> list[list[int]]:
        """The others that share a mask with each holder and keep shares of its secrets, and the holder itself."""
        n = sizes.holders
        if self.side == 0:
            return [list(range(n)) for _ in range(n)]
        order = self.order(sizes, seed)
        found: list[list[int]] = [[] for _ in range(n)]
        for place, i in enumerate(order):
            found[i] = sorted(order[(place + step) % n] for step in range(-self.side, self.side + 1))
        return found

    def gaps(self, sizes: Sizes, seed: bytes, left: Collection[int]) -> bool:
        """Are more than half of some `side` holders in a row gone? Such a list of survivors is not signed."""
        if self.side == 0:
            return False
        kept = set(left)
        gone = [i not in kept for i in self.order(sizes, seed)]
        here = sum(gone[: self.side])
        for place in range(sizes.holders):
            if here > most_gone(self.side):
                return True
            here += gone[(place + self.side) % sizes.holders] - gone[place]
        return False

    def to_dict(self) -> dict[str, int | float]:
        """Plain values for certificates."""
        return {
            "neighbours": 2 * self.side,
            "threshold": self.threshold,
            "chance": self.delta,
            "failing": self.failing,
        }


def most_gone(side: int) -> int:
    """The largest number of lost neighbouring holders: at least side + 1 of the 2 side + 1 that keep shares
    always remain.
    """
    return side // 2


def surrounded(*, holders: int, corrupt: int, side: int, threshold: int) -> float:
    """A bound, rounded up, on the probability that honest holders are cut off or that a secret of one is known.

    TRIES n (Pr[Hypergeometric(n, corrupt, side) >= side - side // 2] + Pr[Hypergeometric(n - 1, corrupt, 2 side) >=
    threshold]).
    """
    n = holders
    row = at_least(total=n, marked=corrupt, drawn=side, count=side - most_gone(side))
    known = at_least(total=n - 1, marked=corrupt, drawn=2 * side, count=threshold)
    return up(min(TRIES * n * (row + known), Fraction(1)))


def refused(*, holders: int, gone: int, side: int) -> float:
    """A bound on the probability that randomly lost holders make the others refuse their list."""
    return up(
        min(
            holders * at_least(total=holders, marked=gone, drawn=side, count=most_gone(side) + 1), Fraction(1)
        )
    )


def at_least(*, total: int, marked: int, drawn: int, count: int) -> Fraction:
    """Pr[Hypergeometric >= count]: the chance of at least `count` marked ones among those drawn from a total."""
    ways = sum(
        comb(marked, j) * comb(total - marked, drawn - j) for j in range(count, min(drawn, marked) + 1)
    )
    return Fraction(ways, comb(total, drawn))


@lru_cache(maxsize=64)
def ring_for(sizes: Sizes, delta: float = 0.0) -> Ring:
    """The complete graph up to 200 holders; for more, the smallest ring that fails with chance at most `delta`."""
    if sizes.holders <= COMPLETE:
        return Ring(side=0, threshold=sizes.threshold, delta=0.0)
    gone, best = sizes.holders - sizes.fewest, None
    for side in range(4, min(MOST_SIDE, (sizes.holders - 1) // 2) + 1):
        # More than half of the keepers open a secret: fewer must be corrupt.
        threshold = side + 1
        found = surrounded(holders=sizes.holders, corrupt=sizes.colluding, side=side, threshold=threshold)
        if found > delta:
            continue
        failing = refused(holders=sizes.holders, gone=gone, side=side)
        best = failing if best is None else min(best, failing)
        if failing <= MOST_FAILING:
            return Ring(side=side, threshold=threshold, delta=found, failing=failing)
    if best is not None:
        raise InvalidParameter(
            parameter="fewest", value=sizes.fewest, must=f"be nearer to holders ({sizes.holders})",
            hint=f"if so many are lost, a session on a ring of 400 neighbours fails with a chance of up to {best:.2g}",
        )  # fmt: skip
    raise InvalidParameter(
        parameter="graph_delta", value=delta, must="be a chance that a ring of at most 400 neighbours keeps to",
        hint=f"more than {COMPLETE} holders share masks with neighbours only; offer a larger one, such as 1e-9",
    )  # fmt: skip


PROTOCOL = 2
"""2: members are agreed and signed before any vector is made. 1 had no such round; its releases are only verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One run: its sizes, the holders' long-lived Ed25519 public keys in order, the length of the vectors.

    `about` is the digest of the sum's description, `nonce` makes the run unique. The id of the run covers all
    of them and the protocol, and every signature covers the id, so no message of another run is ever accepted.
    """

    sizes: Sizes
    keys: tuple[bytes, ...]
    length: int
    about: bytes
    nonce: bytes
    graph_delta: float = 0.0
    protocol: int = PROTOCOL
    id: bytes = field(init=False)

    def __post_init__(self) -> None:
        keys = tuple(map(bytes, self.keys))
        if len(keys) != self.sizes.holders or any(len(k) != 32 for k in keys):
            raise InvalidParameter(
                parameter="keys", value=len(keys), must=f"be {self.sizes.holders} Ed25519 keys of 32 bytes"
            )
        refuse_if(len(set(keys)) != len(keys), "keys", "a key twice", "be different: a holder joins once")
        if not isinstance(self.length, int) or self.length < 1:
            raise InvalidParameter(parameter="length", value=self.length, must="be at least 1")
        if len(self.about) != 32 or len(self.nonce) != 32:
            raise InvalidParameter(parameter="nonce", value=len(self.nonce), must="be 32 bytes, as `about`")
        refuse_if(self.protocol not in (1, PROTOCOL), "protocol", self.protocol, f"be 1 or {PROTOCOL}")
        object.__setattr__(self, "keys", keys)
        sizes = repr(sorted(self.sizes.to_dict().items())).encode()
        parts = (
            sizes,
            str(self.length).encode(),
            repr(self.graph_delta).encode(),
            self.about,
            self.nonce,
            *keys,
        )
        object.__setattr__(
            self, "id", commitment("session" if self.protocol == 1 else f"session {self.protocol}", *parts)
        )

    @property
    def ring(self) -> Ring:
        """Who shares masks with whom."""
        return ring_for(self.sizes, self.graph_delta)

    def still_run(self) -> None:
        """Refuses to take part in a session of the first protocol, whose releases can still be verified."""
        if self.protocol != PROTOCOL:
            raise InvalidParameter(
                parameter="session", value=f"protocol {self.protocol}", must=f"be of protocol {PROTOCOL}",
                hint="it was begun by an earlier version, in which the members were not agreed before vectors left; "
                "begin a new one with tacit joint init",
            )  # fmt: skip

    @property
    def least(self) -> int:
        """The smallest number of remaining holders: enough for the noise, and enough to open secrets."""
        return max(self.sizes.fewest, self.sizes.threshold)


def pack(parts: list[bytes]) -> tuple[list[int], bytes]:
    """The lengths of the parts, and the parts as one body."""
    return [len(p) for p in parts], b"".join(parts)


def unpack(message: Message, lengths: object) -> list[bytes]:
    """The parts again."""
    if not isinstance(lengths, list) or any(type(n) is not int or n < 0 for n in lengths):
        raise BadMessage(what=f"a message of the kind {message.kind}", reason="its parts have no lengths")
    if sum(lengths) != len(message.body):
        raise BadMessage(what=f"a message of the kind {message.kind}", reason="its parts have other lengths")
    out, at = [], 0
    for n in lengths:
        out.append(message.body[at : at + n])
        at += n
    return out
