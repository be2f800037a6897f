"""Signatures on certificates: Ed25519, with a key that the custodian keeps.

What is signed is a line that names the format, and the digest of the content. The key is named in the certificate by
its fingerprint, the SHA-256 of the 32 bytes of the public key; whoever checks must have the public key from the
custodian, by another way than the release itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.ledger import signatures
from tacit.ledger.signatures import ALGORITHM, message

__all__ = ["ALGORITHM", "PublicKey", "SigningKey", "make_key"]

MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, to check signatures with."""

    key: Any = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> PublicKey:
        """The key in a PEM file."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        return cls(_loaded("key", path, load_pem_public_key, Ed25519PublicKey, "a public key"))

    @property
    def text(self) -> str:
        """The key's 32 bytes in hexadecimal, as a ledger keeps them."""
        return str(self.key.public_bytes_raw().hex())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the key's 32 bytes, in hexadecimal."""
        return signatures.fingerprint(self.key.public_bytes_raw())

    def holds(self, signature: Any, format: str, digest: str) -> bool:
        """Is this the key's signature under that digest?"""
        return signatures.holds(self.key.public_bytes_raw(), signature, format, digest)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; it is never printed, and nothing but signatures leaves it."""

    key: Any = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> SigningKey:
        """The key in a PEM file that nobody else may read."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        found = _loaded(
            "--sign", path, lambda pem: load_pem_private_key(pem, None), Ed25519PrivateKey, "a private key"
        )
        if os.name == "posix" and Path(path).stat().st_mode & 0o077:
            raise InvalidParameter(
                parameter="--sign", value=str(path), must="be readable by its owner alone",
                hint="chmod 600; a key that others have read signs for them",
            )  # fmt: skip
        return cls(found)

    @property
    def public(self) -> PublicKey:
        """The key to check its signatures with."""
        return PublicKey(self.key.public_key())

    def sign(self, format: str, digest: str) -> dict[str, str]:
        """The signature as it stands in a certificate."""
        value = self.key.sign(message(format, digest)).hex()
        return {"algorithm": ALGORITHM, "key": self.public.fingerprint, "value": value}


def make_key(path: Path) -> tuple[Path, str]:
    """A new pair: the private key to a new file that its owner alone may read, the public one beside it (.pub)."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    beside = path.with_name(path.name + ".pub")
    for place in (path, beside):
        if place.exists() or place.is_symlink():
            raise InvalidParameter(
                parameter="FILE", value=str(place), must="not be there yet",
                hint="a key is never overwritten: what it signed could no longer be checked",
            )  # fmt: skip
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    try:
        for place, body, mode in ((beside, public, 0o644), (path, private, 0o600)):
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as file:
                file.write(body)
    except OSError as problem:
        raise InvalidParameter(
            parameter="FILE", value=str(path), must="be writable", hint=(problem.strerror or "").lower()
        ) from None
    return beside, SigningKey(key).public.fingerprint


def _loaded(parameter: str, path: str | Path, load: Any, kind: type, what: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with Path(path).open("rb") as file:
            found = load(file.read(MOST_BYTES))
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, kind):
        raise InvalidParameter(
            parameter=parameter, value=str(path), must=f"be {what} for {ALGORITHM}, in PEM without a password",
            hint="tacit key make writes one, and the public key beside it (.pub)",
        )  # fmt: skip
    return found
