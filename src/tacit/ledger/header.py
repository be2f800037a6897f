"""The header: what was decided when the ledger was made. It is the link before the first entry."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.errors import TacitError
from tacit.guarantees import Bound, Guarantee
from tacit.guarantees.record import from_record, to_record
from tacit.ledger.canonical import canonical, mac

__all__ = ["FORMAT", "Header", "head_mac"]

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Identity, time, budget (with its exact numbers) and first shares of a ledger."""

    id: str
    created: str
    budget: Guarantee
    exact: Mapping[str, Fraction]
    shares: Mapping[str, Bound]

    def write(self, secret: bytes) -> str:
        """The header's text, with a commitment to the secret, so that another secret would be noticed."""
        return canonical(
            {
                "ledger": self.id,
                "created": self.created,
                "budget": to_record(self.budget),
                "exact": {k: str(v) for k, v in self.exact.items()},
                "shares": {k: to_record(replace(self.budget, bound=b)) for k, b in self.shares.items()},
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
                shares={k: from_record(v).bound for k, v in data["shares"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, TacitError):
            return None


def head_mac(secret: bytes, start: str, sequence: int, digest: str) -> str:
    """The keyed mark on the end of the chain: this ledger, this many entries, this last digest."""
    return mac(secret, "head", f"{start}:{sequence}:{digest}")
