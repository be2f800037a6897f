"""Keys and masks: X25519 agreements, HKDF-SHA-256, AES-256 in counter mode as the stream, AES-GCM for what is sent.

All of it from `cryptography`; nothing below the level of the protocol is made here. A mask is as many 64-bit words as
the vector is long, added modulo 2^64.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.errors import BadMessage
from tacit.exact.arrays import Words
from tacit.noise.source import Source

__all__ = [
    "Words",
    "add_mask",
    "agreed",
    "commitment",
    "derive",
    "open_sealed",
    "public_of",
    "random_bytes",
    "seal",
]

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
    """32 bytes by HKDF, bound to the session and to what they are for: a seed is never used twice."""
    return HKDF(algorithm=SHA256(), length=32, salt=session, info=purpose.encode()).derive(secret)


def agreed(private: Any, other: bytes, *, session: bytes, purpose: str) -> bytes:
    """What both ends of an X25519 agreement derive."""
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
    """What was sealed, or an error if a bit of it or of what it is about was changed."""
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
