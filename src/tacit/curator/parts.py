"""What each release of a plan costs by itself in the budget's own terms, as parts of the budget.

A release alone is read at the delta that the whole plan is charged at, so that prices compare. Together they may cost
less than their sum, and never more: what is charged is the plan's one price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.curator.charges import Charged, Shared, charge
from tacit.errors import TacitError
from tacit.ledger import Limit, parts_of, parts_words
from tacit.ledger.budget import typed

if TYPE_CHECKING:
    from tacit.curator.plan import Plan
    from tacit.guarantees import Bound

__all__ = ["Alone", "alone", "together"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A price in the budget's kind, and its parts of the budget; nothing where no theorem gives one."""

    charged: Charged | None = None
    parts: dict[str, float] | None = None

    @property
    def record(self) -> dict[str, Any] | None:
        """Plain values."""
        if self.charged is None:
            return None
        return {"kind": self.charged.bound.kind, **self.charged.bound.parameters, "of_budget": self.parts}

    def __str__(self) -> str:
        return "–" if self.parts is None else parts_words(self.parts)


def alone(plan: Plan, budget: Bound | None) -> tuple[Alone, ...]:
    """Each release by itself."""
    if budget is None:
        return tuple(Alone() for _ in plan.releases)
    delta = plan.charged.exact.get("delta")
    shared = None if delta is None else Shared(members=(0,), epsilon=None, delta=delta)
    found = []
    for release in plan.releases:
        try:
            own = charge([release.treatment], budget, neighbours=plan.unit.neighbours, shared=shared)
            found.append(_of(own, budget))
        except TacitError:
            found.append(Alone())
    return tuple(found)


def together(plan: Plan, budget: Bound | None) -> Alone:
    """The plan's own price, which is what is charged."""
    return Alone() if budget is None else _of(plan.charged, budget)


def _of(charged: Charged, budget: Bound) -> Alone:
    limit = Limit(bound=budget, exact=typed(budget))
    return Alone(charged=charged, parts=parts_of(charged.bound, charged.exact, limit))
