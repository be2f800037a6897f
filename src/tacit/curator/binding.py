"""What binds a certificate: a digest of its own content, of the values it is about, and of the ledger's entry.

    values.sha256    of the file of values, byte by byte (the same for CSV and, read and written again, for Parquet)
    plan.digest      of all that was asked, of its noise and its price
    ledger.digest    of the ledger's entry that charged for it; ledger.answer of the answer that was recorded
    digest           of everything above in canonical JSON; this is what a signature signs

A digest shows that a file was changed by accident, or by somebody who forgot one. Whoever can write the certificate
can write its digest as well: only a signature, or the ledger itself, shows that nobody did
(docs/decisions/0014-what-binds-a-certificate.md).
"""

from __future__ import annotations

from typing import Any

from tacit.curator.signing import SigningKey
from tacit.errors import TacitError
from tacit.ledger.canonical import canonical, sha256

__all__ = ["MANIFEST", "bound", "content_digest", "is_bound", "manifest", "signed"]

MANIFEST = "tacit release 1"
_OUTSIDE = ("digest", "signature")


def content_digest(content: dict[str, Any]) -> str:
    """The digest of a certificate or manifest: of all of it but the digest and the signature."""
    return sha256(canonical({k: v for k, v in content.items() if k not in _OUTSIDE}, what="certificate"))


def bound(content: dict[str, Any]) -> dict[str, Any]:
    """The same with its digest at the end."""
    inner = {k: v for k, v in content.items() if k not in _OUTSIDE}
    return {**inner, "digest": content_digest(inner)}


def is_bound(content: dict[str, Any]) -> bool:
    """Has it the digest that it states?"""
    try:
        return content.get("digest") == content_digest(content)
    except TacitError:
        return False


def signed(content: dict[str, Any], key: SigningKey | None) -> dict[str, Any]:
    """The same with its digest, and signed where there is a key. Signing again gives the same bytes."""
    whole = bound(content)
    return whole if key is None else {**whole, "signature": key.sign(whole["format"], whole["digest"])}


def manifest(
    files: dict[str, str], *, plan: str, ledger: dict[str, Any], written: dict[str, Any]
) -> dict[str, Any]:
    """All files of a release with their digests, by their names in the folder, and what they were written from."""
    listed = dict(sorted(files.items()))
    return {"format": MANIFEST, "plan": plan, "ledger": ledger, "written": written, "files": listed}
