"""The check of a budget under random differential privacy: epsilon, delta and gamma add up, for one plan.

Gamma is a probability over the data for mechanisms that were there before the data. A release that is chosen after
another was seen has no law (theorem `compose-random-data`); so a second plan is refused, unless it is declared to have
been fixed before the first was seen. Releases that hold always may be chosen as one goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw
from tacit.exact.rounding import down, up
from tacit.guarantees import Guarantee, RandomData
from tacit.guarantees.declarations import FIXED_BEFORE
from tacit.ledger.budget import ChargeCheck, Limit, running_total
from tacit.ledger.entries import Charge

__all__ = ["on_random_data"]


def on_random_data(budget: Guarantee) -> ChargeCheck:
    """The check for a budget under `RandomData(gamma)`: `ledger.reserve(request, on_random_data(budget))`.

    Exact sums of the bound's numbers and of the gammas, each at most the budget's. A charge under RandomData whose plan
    is not that of all charges before it must carry the declaration `FIXED_BEFORE` in its guarantee.
    """
    condition = budget.condition
    if not isinstance(condition, RandomData):
        raise InvalidParameter(
            parameter="budget", value=str(condition), must="be a budget under RandomData(gamma=...)"
        )
    ceiling = max(Fraction(condition.gamma), Fraction(repr(condition.gamma)))

    def check(charges: Sequence[Charge], limit: Limit) -> None:
        asked = charges[-1]
        own = _gamma(asked)
        if own is not None:
            _fixed(charges)
        running_total(charges, limit)
        before = sum((_gamma(c) or Fraction(0) for c in charges[:-1]), Fraction(0))
        if before + (own or 0) > ceiling:
            left = max(Fraction(0), ceiling - before)
            raise BudgetExceeded(
                spent=f"gamma = {up(before)!r}",
                asked=f"gamma = {up(own or Fraction(0))!r}",
                left=f"gamma = {down(left)!r}",
                whose=limit.whose,
                hint="divide gamma like epsilon: a plan's gamma is the total of its releases",
            )

    return check


def _gamma(charge: Charge) -> Fraction | None:
    condition = charge.guarantee.condition
    return Fraction(condition.gamma) if isinstance(condition, RandomData) else None


def _fixed(charges: Sequence[Charge]) -> None:
    """Refuse a plan that may have been chosen after something was seen."""
    asked = charges[-1]
    seen = any(c.plan_digest != asked.plan_digest for c in charges[:-1])
    if seen and FIXED_BEFORE not in asked.guarantee.declared:
        raise NoLaw(
            operation="a second plan under RandomData",
            reason="it may have been chosen after the first was seen, and gamma is a probability over the data for "
            "mechanisms fixed before them",
            counterexample="publish a random cell's name J, then the exact count of cell J: each J is private for most "
            "data, the pair is private for none",
            hint=f"if it is true, declare in the guarantee: {FIXED_BEFORE!r}",
        )
