"""Messages as bytes: a signature, a line of JSON, and a body. Each names its session, its kind and who sends it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import BadMessage
from tacit.parties.masks import commitment

__all__ = ["AGGREGATOR", "Message", "read", "write"]

AGGREGATOR = -1
FORMAT = "tacit joint 1"
MOST_HEAD = 1 << 26
SIGNATURE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message whose signature was checked; the aggregator's are not signed: what they carry of holders is."""

    kind: str
    sender: int
    said: dict[str, Any]
    body: bytes = field(repr=False)
    raw: bytes = field(repr=False)

    @property
    def digest(self) -> bytes:
        """Of all its bytes."""
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
        """A field that is so many bytes in hexadecimal."""
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
