"""Whether a plan fits what is left, before anything is charged: the ledger's own checks, and nothing written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tacit.curator.paying import check_of, standing_of
from tacit.curator.prices import exact_numbers
from tacit.errors import BudgetExceeded, NoLaw, NotAllowed
from tacit.guarantees import Always, Bound, Guarantee, RandomData
from tacit.ledger import Charge, Ledger, Limit, Request, parts_of, parts_words, running_total
from tacit.ledger import budget as totals

__all__ = ["Fit", "fit_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What was spent and what is left at this moment, and whether a plan fits.

    `fits` is True too where the answer is on record (`recorded`), which is free. `waits` says for whom it waits, where
    the ledger has not the role or the approval that the plan needs; `parts` is the price as parts of the budget.
    """

    spent: Guarantee
    left: Guarantee
    fits: bool
    recorded: bool = False
    reason: str = ""
    waits: str = ""
    approved_by: tuple[str, ...] = ()
    parts: Mapping[str, float] | None = None

    @property
    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "spent": _numbers(self.spent),
            "left": _numbers(self.left),
            "fits": self.fits,
            "recorded": self.recorded,
            "reason": self.reason,
            "waits": self.waits,
            "approved_by": list(self.approved_by),
            "of_budget": None if self.parts is None else dict(self.parts),
        }

    def __str__(self) -> str:
        if self.recorded:
            return "it was answered before: the same answer is free"
        if not self.fits:
            return f"it DOES NOT FIT: {self.reason}"
        price = "" if self.parts is None else f", and takes {parts_words(self.parts)}"
        return f"it fits{price}" + (f"; {self.waits}" if self.waits else "")


def fit_of(ledger: Ledger | None, request: Request, budget: Guarantee, shares: Mapping[str, Bound]) -> Fit:
    """The fit of a request to a ledger; where there is none yet, to the whole budget."""
    if ledger is None:
        return _of_all(request, budget, shares)
    spent, left = standing_of(ledger, request.analyst)
    about: dict[str, Any] = {"spent": spent, "left": left, "parts": _parts(request, ledger.limit)}
    if ledger.recorded(request) is not None:
        return Fit(fits=True, recorded=True, **about)
    waits = ""
    approved: tuple[str, ...] = ()
    try:
        approved = ledger.consent(request)
    except NotAllowed as problem:
        waits = problem.reason
    try:
        ledger.try_out(request, check_of(budget))
    except (BudgetExceeded, NoLaw) as problem:
        return Fit(fits=False, reason=problem.message, waits=waits, **about)
    return Fit(fits=True, waits=waits, approved_by=approved, **about)


def _of_all(request: Request, budget: Guarantee, shares: Mapping[str, Bound]) -> Fit:
    whole = Limit(bound=budget.bound, exact=totals.typed(budget.bound) | exact_numbers(budget))
    asked = Charge(
        sequence=1, time="", analyst=request.analyst, key=request.key, plan_digest=request.plan_digest,
        event=request.event, guarantee=request.charge, exact=request.exact, table=request.table,
        version=request.version,
    )  # fmt: skip
    own = shares.get(request.analyst, shares.get("*"))
    limits = [whole]
    if own is not None:
        limits.append(Limit(bound=own, exact=totals.typed(own), whose=f"the share of {request.analyst!r}"))
    nothing = replace(budget, bound=totals.spent([], whole), condition=_nothing(budget))
    left = replace(budget, bound=budget.bound if own is None else totals.smaller(budget.bound, own))
    about: dict[str, Any] = {"spent": nothing, "left": left, "parts": _parts(request, whole)}
    totals.in_currency(request.charge, budget)
    try:
        for limit in limits:
            (check_of(budget) or running_total)([asked], limit)
    except (BudgetExceeded, NoLaw) as problem:
        return Fit(fits=False, reason=problem.message, **about)
    return Fit(fits=True, **about)


def _nothing(budget: Guarantee) -> Any:
    return Always() if isinstance(budget.condition, RandomData) else budget.condition


def _parts(request: Request, limit: Limit) -> dict[str, float] | None:
    try:
        return parts_of(request.charge.bound, request.exact, limit)
    except NoLaw:
        return None


def _numbers(guarantee: Guarantee) -> dict[str, Any]:
    gamma = guarantee.condition.gamma if isinstance(guarantee.condition, RandomData) else None
    return dict(guarantee.bound.parameters) | ({} if gamma is None else {"gamma": gamma})
