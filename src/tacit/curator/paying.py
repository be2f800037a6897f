"""How a curator's budget is charged: with the ledger's own sums, or under RandomData with gammas beside them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tacit.errors import BudgetExceeded, InvalidParameter
from tacit.exact.rounding import up
from tacit.guarantees import Guarantee, Priors, RandomData
from tacit.ledger import ChargeCheck, Ledger, alone, on_random_data, standing_alone, standing_on_random_data

__all__ = ["check_of", "payable", "payable_exactly", "standing_of"]


def check_of(budget: Guarantee) -> ChargeCheck | None:
    """The check for a charge to this budget; None for the ledger's own."""
    if isinstance(budget.condition, Priors):
        return alone
    return on_random_data(budget) if isinstance(budget.condition, RandomData) else None


def payable_exactly(charge: Guarantee, budget: Guarantee) -> None:
    """Refuse an exact answer where the budget is not under its very condition, before anything is opened or charged."""
    if isinstance(charge.condition, Priors) and charge.condition != budget.condition:
        raise InvalidParameter(
            parameter="given", value="an exact answer", must="be paid from a budget under its own condition",
            hint="budget=Guarantee(bound=..., unit=..., condition=plan.charge.condition), with plan from preview; such "
            "a table gives this one answer and no other",
        )  # fmt: skip


def payable(gamma: Fraction, budget: Guarantee) -> None:
    """Refuse random data where the budget grants no gamma, or a smaller one, before anything is opened or charged."""
    condition = budget.condition
    if gamma and isinstance(condition, RandomData) and gamma > Fraction(repr(condition.gamma)):
        raise BudgetExceeded(
            spent="what the ledger has",
            asked=f"gamma = {up(gamma)!r}",
            left=f"gamma = {condition.gamma!r} at most",
            whose="the budget",
            hint="ask for a smaller gamma: of a plan it is the total of its releases",
        )
    if gamma and not isinstance(condition, RandomData):
        raise InvalidParameter(
            parameter="given", value=f"random data with gamma = {float(gamma):.3g}",
            must="be paid from a budget that grants a gamma",
            hint="gamma = 0.1 under [budget]; in Python a Guarantee(..., condition=RandomData(gamma=0.1)) as budget=",
        )  # fmt: skip


def standing_of(ledger: Ledger, analyst: str) -> tuple[Guarantee, Guarantee]:
    """What was spent of a budget, and what is left of it for the analyst."""
    if isinstance(ledger.budget.condition, RandomData):
        return standing_on_random_data(ledger, analyst)
    if isinstance(ledger.budget.condition, Priors):
        return standing_alone(ledger)
    spent, left = ledger.standing(analyst)
    return replace(ledger.budget, bound=spent), replace(ledger.budget, bound=left)
