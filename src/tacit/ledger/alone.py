"""The ledger's check under priors: one charge, and no other beside it.

Under `Priors` two releases about the same rows compose only where a theorem's conditions are shown (Groce 2014, Thm
5.6, 6.8); a ledger cannot see that they are. So it takes one charge: the first. Who publishes two exact answers from
disjoint parts of a table keeps them as two tables, each with its ledger, and declares the independence there
(`compose(..., assume="disjoint-independent-rows")`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.errors import NoLaw
from tacit.guarantees import Approximate, Guarantee
from tacit.ledger import budget as totals
from tacit.ledger.budget import Limit, running_total
from tacit.ledger.entries import Charge

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger

__all__ = ["alone", "standing_alone"]


def alone(charges: Sequence[Charge], limit: Limit) -> None:
    """The check for a budget under `Priors`: the asked charge is the first, and within the limit."""
    if len(charges) > 1:
        raise NoLaw(
            operation="a second release about rows of which an exact answer was published",
            reason="every other release about the same rows, a differentially private one included, is auxiliary "
            "knowledge for this one",
            counterexample="the exact count of all rows, and the exact count of all rows but one",
            hint="the same question is answered from the record, free",
        )
    running_total(charges, limit)


def standing_alone(ledger: Ledger) -> tuple[Guarantee, Guarantee]:
    """What the one charge was, and what is left: the whole budget before it, and nothing after it."""
    charges = ledger.charges()
    spent = totals.spent(charges, ledger.limit)
    left = Approximate(epsilon=0.0, delta=0.0) if charges else ledger.budget.bound
    return replace(ledger.budget, bound=spent, declared=()), replace(ledger.budget, bound=left, declared=())
