"""Ed25519 signatures under a digest: what is signed, and whether a signature is that of a key."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["ALGORITHM", "KEY_DIGITS", "fingerprint", "holds", "is_key", "message"]

ALGORITHM = "Ed25519"
KEY_DIGITS = 64
"""Hexadecimal digits of the 32 bytes of a public key."""


def message(format: str, digest: str) -> bytes:
    """What is signed: a line that names the format, and the digest of the content."""
    return f"signed by the custodian: {format}\n{digest}\n".encode()


def fingerprint(key: bytes) -> str:
    """SHA-256 of a public key's 32 bytes, in hexadecimal."""
    return hashlib.sha256(key).hexdigest()


_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


def is_key(key: bytes) -> bool:
    """Is it a point of the curve, written in the one way, whose order does not divide 8?

    For a point of small order signatures can be made up by anybody, without a private key.
    """
    y = int.from_bytes(key, "little") & (2**255 - 1)
    if len(key) != 32 or y >= _P:
        return False
    # -x^2 + y^2 = 1 + d x^2 y^2
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x * x % _P != square:
        return False
    for _ in range(3):
        x, y = _doubled(x, y)
    return (x, y) != (0, 1)


def _doubled(x: int, y: int) -> tuple[int, int]:
    """A point added to itself; the curve's law has no exceptions."""
    product = _D * x * x * y * y % _P
    return (
        2 * x * y * pow(1 + product, -1, _P) % _P,
        (y * y + x * x) * pow(1 - product, -1, _P) % _P,
    )


def holds(key: bytes, signature: Any, format: str, digest: str) -> bool:
    """Is this the signature of the public key with these 32 bytes under that digest?"""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not isinstance(signature, dict) or signature.get("algorithm") != ALGORITHM:
        return False
    if signature.get("key") != fingerprint(key):
        return False
    try:
        value = bytes.fromhex(str(signature.get("value")))
        Ed25519PublicKey.from_public_bytes(key).verify(value, message(format, digest))
    except (InvalidSignature, ValueError):
        return False
    return True
