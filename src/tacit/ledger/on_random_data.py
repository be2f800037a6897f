"""The ledger's check under random differential privacy: epsilon, delta and gamma add, for one plan fixed in advance.

Gamma is a probability over the data, for mechanisms that were chosen before the data. Two releases compose under
random data only if both were fixed in advance (theorem `compose-random-data`). So a second plan is refused, unless it
is declared to have been fixed before the first was seen.
A plan that is younger than a look at the data is refused. Releases that hold
always may be chosen after earlier results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw
from tacit.exact.rounding import down, up
from tacit.guarantees import Guarantee, RandomData
from tacit.guarantees.conditions import FIXED_BEFORE
from tacit.ledger import budget as totals
from tacit.ledger.budget import ChargeCheck, Limit, running_total
from tacit.ledger.entries import Charge

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger
    from tacit.ledger.log import History


def on_random_data(budget: Guarantee) -> ChargeCheck:
    """The check for a budget under `RandomData(gamma)`: `ledger.reserve(request, on_random_data(budget))`.

    Exact sums of the bound's numbers and of the gammas, each at most the budget's. A charge's gamma is the
    fraction of its request (`exact`), or the exact value of its float. A charge under RandomData whose plan is
    not that of all charges before it must carry the declaration `FIXED_BEFORE` in its guarantee.
    """
    ceiling = _ceiling(budget)

    def check(charges: Sequence[Charge], limit: Limit) -> None:
        asked = charges[-1]
        own = _gamma(asked)
        if own is not None:
            _fixed(charges)
        running_total(charges, limit)
        before = _gammas(charges[:-1])
        most = limit.exact.get("gamma", ceiling)
        if before + (own or 0) > most:
            left = max(Fraction(0), most - before)
            raise BudgetExceeded(
                spent=f"gamma = {up(before)!r}",
                asked=f"gamma = {up(own or Fraction(0))!r}",
                left=f"gamma = {down(left)!r}",
                whose=limit.whose,
                hint="divide gamma like epsilon: a plan's gamma is the total of its releases",
            )

    return check


def standing_on_random_data(ledger: Ledger, analyst: str | None = None) -> tuple[Guarantee, Guarantee]:
    """The sum of all charges of a budget under RandomData, rounded up, and the rest, rounded down.

    Both are guarantees under RandomData: their gammas are the spent and the remaining gamma. For an
    analyst with a share the bound that is left is the smaller of both limits.
    """
    _ceiling(ledger.budget)

    def look(history: History) -> tuple[Guarantee, Guarantee]:
        return standing_of(ledger, history, None)[0], standing_of(ledger, history, analyst)[1]

    return ledger._read_all(look)


def standing_of(ledger: Ledger, history: History, analyst: str | None) -> tuple[Guarantee, Guarantee]:
    """The spent amount of one analyst, or of everybody (None), and the rest, from a history in memory."""
    budget, charges = ledger.budget, list(history.charges.values())
    own = [c for c in charges if analyst in (None, c.analyst)]
    left = totals.left(charges, ledger.limit)
    share = None if analyst is None else history.state.share_of(analyst)
    if share is not None:
        left = totals.smaller(left, totals.left(own, share))
    most = ledger.exact.get("gamma", _ceiling(budget))
    gamma, rest = _gammas(own), max(Fraction(0), most - _gammas(charges))
    spent = totals.spent(own, ledger.limit)
    return (
        replace(budget, bound=spent, condition=RandomData(gamma=min(1.0, up(gamma))), declared=()),
        replace(budget, bound=left, condition=RandomData(gamma=down(rest)), declared=()),
    )


def refuse_seen(asked: Charge, looks: Mapping[str, int], plans: Callable[[], Mapping[str, int]]) -> None:
    """Refuses a plan under RandomData that is younger than a look at the data, in any version or name.

    `plans` maps each plan's digest to its first entry, a charge or a record.
    """
    if not isinstance(asked.guarantee.condition, RandomData):
        return
    first = plans().get(asked.plan_digest)
    if first is None or min(looks.values()) < first:
        raise NoLaw(
            operation="a plan under RandomData after a look at the data",
            reason="gamma is a probability over the data for mechanisms fixed before they were seen, and the ledger "
            "knows of a look that is older than this plan",
            counterexample="look for a cell with a single row, then publish the count of that cell, which is exact: "
            "the cell was chosen for its inhabitant",
            hint="record plans before anybody looks (tacit plan --record), or leave given= out",
        )


def _ceiling(budget: Guarantee) -> Fraction:
    """The gamma that was granted: the float, or the decimal that it prints as, if that is larger."""
    condition = budget.condition
    if not isinstance(condition, RandomData):
        raise InvalidParameter(
            parameter="budget", value=str(condition), must="be a budget under RandomData(gamma=...)"
        )
    return max(Fraction(condition.gamma), Fraction(repr(condition.gamma)))


def _gammas(charges: Iterable[Charge]) -> Fraction:
    return sum((_gamma(c) or Fraction(0) for c in charges), Fraction(0))


def _gamma(charge: Charge) -> Fraction | None:
    condition = charge.guarantee.condition
    if not isinstance(condition, RandomData):
        return None
    return charge.exact.get("gamma", Fraction(condition.gamma))


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
            hint=f"if it is true, declare in the guarantee: {FIXED_BEFORE!r}; for a curator, fixed_before in given",
        )
