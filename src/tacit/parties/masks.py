"""Keys and masks: X25519 agreements, HKDF-SHA-256, AES-256 in counter mode as the stream, AES-GCM for messages.

Its primitives come from `cryptography`; only the protocol itself is written here. A mask has one 64-bit word for each
number of the vector, added modulo 2^64.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.errors import BadMessage, InvalidParameter
from tacit.exact.arrays import Words
from tacit.exact.checks import text
from tacit.exact.data_classes import dataclass
from tacit.noise.source import Source, default_source

NONCE = bytes(12)
BLOCK = 1 << 16
_ZEROS = bytes(8 * BLOCK)


def random_bytes(source: Source, count: int = 32) -> bytes:
    """Bytes of the one source of randomness."""
    return source.words(-(-count // 8)).tobytes()[:count]


def public_of(private: bytes) -> bytes:
    """The X25519 public key of 32 private bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def derive(secret: bytes, *, session: bytes, purpose: str) -> bytes:
    """32 bytes by HKDF, bound to the session and to their purpose: a seed is never used twice."""
    return HKDF(algorithm=SHA256(), length=32, salt=session, info=purpose.encode()).derive(secret)


def agreed(private: Any, other: bytes, *, session: bytes, purpose: str) -> bytes:
    """The common secret of both ends of an X25519 agreement."""
    key = private if isinstance(private, X25519PrivateKey) else X25519PrivateKey.from_private_bytes(private)
    try:
        secret = key.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:
        raise BadMessage(what="a public key", reason="it gives no agreement (a point of low order)") from None
    return derive(secret, session=session, purpose=purpose)


def add_mask(total: Words, seed: bytes, *, sign: int) -> None:
    """total += sign * stream(seed) modulo 2^64, in blocks that stay in the processor's cache."""
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()
    buffer = bytearray(8 * BLOCK + 15)
    for start in range(0, total.size, BLOCK):
        part = total[start : start + BLOCK]
        stream.update_into(memoryview(_ZEROS)[: 8 * part.size], buffer)
        words = np.frombuffer(buffer, dtype="<u8", count=part.size)
        if sign > 0:
            np.add(part, words, out=part)
        else:
            np.subtract(part, words, out=part)


def seal(key: bytes, plain: bytes, about: bytes) -> bytes:
    """AES-256-GCM under a key that is used for one message only."""
    return AESGCM(key).encrypt(NONCE, plain, about)


def open_sealed(key: bytes, sealed: bytes, about: bytes) -> bytes:
    """The sealed content, or an error if a bit of the content or of its context was changed."""
    try:
        return AESGCM(key).decrypt(NONCE, sealed, about)
    except InvalidTag:
        raise BadMessage(what="a sealed share", reason="it was altered, or is of another round") from None


def commitment(label: str, *parts: bytes) -> bytes:
    """SHA-256 of a label and of parts, each with its length."""
    found = hashlib.sha256(label.encode() + b"\0")
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


# Secrets shared t-of-n: Shamir's polynomials over the prime field of 2^521 - 1.
#
# Not constant-time: Python's integers are not. What is multiplied are shares and random coefficients on the holder's
# own machine, and shares that are public by then at the aggregator's; no operation depends on a secret's value by a
# branch of ours.

PRIME = (1 << 521) - 1
SHARE_BYTES = 66
SECRET_BYTES = 32


def _element(source: Source) -> int:
    """A uniform element from 521 bits, drawn again in the single case that is out of range."""
    while True:
        value = int.from_bytes(source.words(9).tobytes(), "little") >> (9 * 64 - 521)
        if value < PRIME:
            return value


def split(secret: bytes, *, threshold: int, points: Sequence[int], source: Source) -> dict[int, bytes]:
    """A share at each point (from 1 on); any `threshold` of them give the secret, and fewer reveal nothing."""
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= len(points):
        raise InvalidParameter(
            parameter="threshold", value=threshold, must=f"be at most the number of shares, {len(points)}"
        )
    if len(set(points)) != len(points) or min(points) < 1:
        raise InvalidParameter(parameter="points", value=len(points), must="be different, from 1 on")
    coefficients = [int.from_bytes(secret, "little"), *(_element(source) for _ in range(threshold - 1))]
    shares = {}
    for x in points:
        value = 0
        for a in reversed(coefficients):
            value = (value * x + a) % PRIME
        shares[x] = value.to_bytes(SHARE_BYTES, "little")
    return shares


def weights(points: Sequence[int]) -> list[int]:
    """Lagrange's weights at 0; one inversion for all."""
    tops, bottoms = [], []
    for i, x in enumerate(points):
        top, bottom = 1, 1
        for j, y in enumerate(points):
            if j != i:
                top, bottom = top * y % PRIME, bottom * (y - x) % PRIME
        tops.append(top)
        bottoms.append(bottom)
    prefix = [1]
    for b in bottoms:
        prefix.append(prefix[-1] * b % PRIME)
    inverse, out = pow(prefix[-1], PRIME - 2, PRIME), [0] * len(points)
    for i in range(len(points) - 1, -1, -1):
        out[i] = tops[i] * inverse * prefix[i] % PRIME
        inverse = inverse * bottoms[i] % PRIME
    return out


def join(
    shares: Mapping[int, bytes], *, known: Mapping[tuple[int, ...], list[int]] | None = None
) -> bytes | None:
    """The secret of these shares; None if they are not shares of 32 bytes (so at least one is wrong)."""
    points = tuple(shares)
    at = (known or {}).get(points) or weights(points)
    value = sum(w * int.from_bytes(s, "little") for w, s in zip(at, shares.values(), strict=True)) % PRIME
    return value.to_bytes(SECRET_BYTES, "little") if value < 1 << (8 * SECRET_BYTES) else None


# A hiding commitment to a table: published before answering, so that nobody changes rows between two answers.
#
# C = SHA-256("table" | 32 random bytes | digest of the table | version). The random bytes stay with the holder:
# without them C tells nothing of the table, and with them a later auditor sees whether it is the same one (Groce
# 2014, sec. 4.1). No zero-knowledge is claimed: nobody is shown that an answer was computed from what was committed
# to.


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The holder's secrets: the random bytes, the table's digest and its declared version."""

    digest: str
    version: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        text("digest", self.digest, empty=False)
        text("version", self.version)
        if not isinstance(self.secret, bytes) or len(self.secret) != 32:
            raise InvalidParameter(parameter="secret", value="other bytes", must="be 32 bytes")

    @property
    def commitment(self) -> str:
        """The published digest, in hexadecimal; as `table` of `Joint.holder` it is signed and certificates name it."""
        return commitment("table", self.secret, self.digest.encode(), self.version.encode()).hex()

    def opens(self, published: str) -> bool:
        """Does it match the commitment?"""
        return hmac.compare_digest(self.commitment, str(published))


def commit_to(*, digest: str, version: str, source: Source | None = None) -> Opening:
    """A fresh commitment to a table's digest and version."""
    return Opening(
        digest=digest,
        version=version,
        secret=random_bytes(source if source is not None else default_source()),
    )
