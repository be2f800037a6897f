"""Ed25519 signatures under a digest: what is signed, and whether a signature is that of a key."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["ALGORITHM", "KEY_DIGITS", "fingerprint", "holds", "message"]

ALGORITHM = "Ed25519"
KEY_DIGITS = 64
"""Hexadecimal digits of the 32 bytes of a public key."""


def message(format: str, digest: str) -> bytes:
    """What is signed: a line that names the format, and the digest of the content."""
    return f"signed by the custodian: {format}\n{digest}\n".encode()


def fingerprint(key: bytes) -> str:
    """SHA-256 of a public key's 32 bytes, in hexadecimal."""
    return hashlib.sha256(key).hexdigest()


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
