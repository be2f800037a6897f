"""A hiding commitment to a table: published before answering, so that nobody changes rows between two answers.

C = SHA-256("table" | 32 random bytes | digest of the table | version). The random bytes stay with the holder: without
them C tells nothing of the table, and with them a later auditor sees whether it is the same one (Groce 2014, sec. 4.1).
No zero-knowledge is claimed: nobody is shown that an answer was computed from what was committed to.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from tacit.errors import InvalidParameter
from tacit.exact.checks import text
from tacit.noise.source import Source, default_source
from tacit.parties.masks import commitment, random_bytes

__all__ = ["Opening", "commit_to"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the holder keeps: the random bytes, the table's digest and its declared version."""

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
        """What is published, in hexadecimal; as `table` of `Joint.holder` it is signed and certificates name it."""
        return commitment("table", self.secret, self.digest.encode(), self.version.encode()).hex()

    def opens(self, published: str) -> bool:
        """Is this what was committed to?"""
        return hmac.compare_digest(self.commitment, str(published))


def commit_to(*, digest: str, version: str, source: Source | None = None) -> Opening:
    """A fresh commitment to a table's digest and version."""
    return Opening(
        digest=digest,
        version=version,
        secret=random_bytes(source if source is not None else default_source()),
    )
