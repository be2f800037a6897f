"""The header: what was decided when the ledger was made. It is the link before the first entry."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import LedgerVersion, TacitError
from tacit.guarantees import Guarantee
from tacit.guarantees.record import from_record, to_record
from tacit.ledger.canonical import canonical, mac
from tacit.ledger.state import Share, read_share, share_body

__all__ = ["FORMAT", "READABLE", "Header", "head_mac", "index_mac", "version_error"]

FORMAT = 3
OLDER = 2
"""The format before names, approvals and corrections: it is read, and becomes the present one when it is written."""
READABLE = (OLDER, FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Identity, time, table, budget (with its exact numbers) and first shares of a ledger.

    `table` is the declared name of the table that it belongs to, empty if none was declared; a ledger of a
    `rehearsal` belongs to made-up rows.
    """

    id: str
    created: str
    budget: Guarantee
    exact: Mapping[str, Fraction]
    shares: Mapping[str, Share]
    table: str = ""
    rehearsal: bool = False

    def write(self, secret: bytes) -> str:
        """The header's text, with a commitment to the secret, so that another secret would be noticed."""
        return canonical(
            {
                "ledger": self.id,
                "created": self.created,
                "budget": to_record(self.budget),
                "exact": {k: str(v) for k, v in self.exact.items()},
                "shares": {k: share_body(s, self.budget) for k, s in self.shares.items()},
                "table": self.table,
                "rehearsal": self.rehearsal,
                "secret_commitment": mac(secret, "commitment", ""),
            }
        )

    @classmethod
    def read(cls, text: str, secret: bytes) -> Header | None:
        """The header of this text, or None if it is not one, or not one of this secret."""
        try:
            data = json.loads(text)
            if not hmac.compare_digest(data["secret_commitment"], mac(secret, "commitment", "")):
                return None
            return cls(
                id=str(data["ledger"]),
                created=str(data["created"]),
                budget=from_record(data["budget"]),
                exact={k: Fraction(v) for k, v in data["exact"].items()},
                shares={k: read_share(v) for k, v in data["shares"].items()},
                table=str(data["table"]),
                rehearsal=data["rehearsal"] is True,
            )
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, TacitError):
            return None


def head_mac(secret: bytes, start: str, sequence: int, digest: str) -> str:
    """The keyed mark on the end of the chain: this ledger, this many entries, this last digest."""
    return mac(secret, "head", f"{start}:{sequence}:{digest}")


def index_mac(secret: bytes, start: str, name: str, sequence: int, digest: str) -> str:
    """The keyed mark on a row of the index."""
    return mac(secret, "index", f"{start}:{name}:{sequence}:{digest}")


def version_error(name: str, found: object) -> LedgerVersion:
    """The refusal of a ledger in another format."""
    older = isinstance(found, int) and found < OLDER
    return LedgerVersion(
        ledger=name,
        reason=f"has format {found}, and this version of tacit knows {FORMAT}",
        hint="use the version of tacit that wrote it"
        + ("; a new ledger starts with what that one has left" if older else ", or a later one"),
    )
