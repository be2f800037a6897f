"""What all sides of one secure sum agree on before it begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from tacit.errors import BadMessage, InvalidParameter
from tacit.parties.graph import Ring, ring_for
from tacit.parties.masks import commitment
from tacit.parties.messages import Message
from tacit.parties.sizes import Sizes

__all__ = ["PROTOCOL", "Session", "pack", "unpack"]

PROTOCOL = 2
"""2: members are agreed and signed before any vector is made. 1 had no such round; its releases are only verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One run: its sizes, the holders' long-lived Ed25519 public keys in order, the length of the vectors.

    `about` is the digest of whatever the sum is for, `nonce` makes the run one of its own. The id of the run covers
    all of them and the protocol, and every signature covers the id: no message of another run is ever taken.
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
        if len(set(keys)) != len(keys):
            raise InvalidParameter(
                parameter="keys", value="a key twice", must="be different: a holder joins once"
            )
        if not isinstance(self.length, int) or self.length < 1:
            raise InvalidParameter(parameter="length", value=self.length, must="be at least 1")
        if len(self.about) != 32 or len(self.nonce) != 32:
            raise InvalidParameter(parameter="nonce", value=len(self.nonce), must="be 32 bytes, as `about`")
        if self.protocol not in (1, PROTOCOL):
            raise InvalidParameter(parameter="protocol", value=self.protocol, must=f"be 1 or {PROTOCOL}")
        object.__setattr__(self, "keys", keys)
        sizes = repr(sorted(self.sizes.describe().items())).encode()
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
        """Refuse to take part in a session of the first protocol: its releases can be verified, and that is all."""
        if self.protocol != PROTOCOL:
            raise InvalidParameter(
                parameter="session", value=f"protocol {self.protocol}", must=f"be of protocol {PROTOCOL}",
                hint="it was begun by an earlier version, in which the members were not agreed before vectors left; "
                "begin a new one with tacit joint init",
            )  # fmt: skip

    @property
    def least(self) -> int:
        """How many must be left for it to be worth going on: those of the noise, and those who open secrets."""
        return max(self.sizes.fewest, self.sizes.threshold)


def pack(parts: list[bytes]) -> tuple[list[int], bytes]:
    """Parts as their lengths and one body."""
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
