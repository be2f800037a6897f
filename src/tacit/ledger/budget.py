"""The ledger's running totals: exact sums of the charges, compared with a limit fixed in advance.

`tacit.guarantees.running_sum` adds up under each kind of budget. All of these sums stay valid if parameters are chosen
after earlier results. `spent` is rounded up and `left` down, so that the asker never gains by a rounding. A profile has
no running total of this kind: a plan fixed in advance enters as one charge. Source: Rogers, Roth, Ullman, Vadhan 2016;
Feldman, Zrnic 2021; Smith, Thakurta 2022 (filters).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw, UnitMismatch
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down, up
from tacit.guarantees import Always, Bound, Guarantee, Priors, RandomData, Renyi
from tacit.guarantees.running_sum import Amounts, Currency, added, currency_of, exceeds, rest, summed
from tacit.ledger.entries import Charge

if TYPE_CHECKING:
    from tacit.accounting import Filter


DUST = Fraction(1, 10**9)
"""A remainder below this part of its limit is shown as nothing."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit, its exact numbers if they are known, and its owner."""

    bound: Bound
    exact: Mapping[str, Fraction] = field(default_factory=dict)
    whose: str = "the budget"


ChargeCheck = Callable[[Sequence[Charge], Limit], None]
"""Called inside the transaction with every charge so far, the new one last, and the limit. It must be a
pure function that returns None if all of them together fit, and raises BudgetExceeded if they do not."""


def in_currency(charge: Guarantee, budget: Guarantee) -> None:
    """Refuse a charge that is not of the budget's kind, unit and condition."""
    kinds = ("pure", "approximate") if budget.bound.kind == "approximate" else (budget.bound.kind,)
    if charge.bound.kind not in kinds:
        raise InvalidParameter(
            parameter="charge",
            value=charge.bound.kind,
            must=f"be of the budget's kind, {budget.bound.kind}",
            hint="convert it first",
        )
    if isinstance(budget.bound, Renyi) and budget.bound.orders != getattr(charge.bound, "orders", ()):
        raise InvalidParameter(
            parameter="charge", value="its orders", must="have exactly the orders of the budget"
        )
    if charge.unit != budget.unit:
        raise UnitMismatch(left=str(charge.unit), right=str(budget.unit))
    if not _within(charge, budget):
        raise InvalidParameter(
            parameter="charge",
            value=str(charge.condition),
            must="hold always, or under the budget's condition",
        )


def _within(charge: Guarantee, budget: Guarantee) -> bool:
    """Whether it holds always, under the budget's condition, or under RandomData with no larger gamma."""
    own, given = charge.condition, budget.condition
    if isinstance(own, RandomData) and isinstance(given, RandomData):
        # A decimal that is rounded up may be one float above the budget's; the sums are compared as fractions.
        return own.gamma <= math.nextafter(given.gamma, math.inf)
    return own == given or isinstance(own, Always)


def share(bound: Bound, budget: Guarantee) -> Bound:
    """Refuse an analyst's share that is not a bound of the budget's own kind."""
    if not isinstance(bound, Bound) or bound.kind != budget.bound.kind:
        raise InvalidParameter(
            parameter="share", value=str(bound), must=f"be a bound of the budget's kind, {budget.bound.kind}"
        )
    in_currency(replace(budget, bound=bound), budget)
    return bound


def zero(budget: Guarantee) -> Amounts:
    """The running sum before the first charge; empty for a kind of budget without one."""
    currency = currency_of(budget.bound)
    return currency.zero() if currency is not None and isinstance(budget.condition, Always) else {}


def plus(total: Amounts, charge: Charge, budget: Guarantee) -> Amounts:
    """The running sum with one further charge."""
    return (
        added(total, _currency(budget.bound).of_bound(charge.guarantee.bound, charge.exact)) if total else {}
    )


def fits(before: Amounts, after: Amounts, charge: Charge, limit: Limit) -> None:
    """Refuse a charge after which a running sum passes the limit."""
    if exceeds(after, _ceiling(limit)):
        done, left = reading(before, limit)
        raise BudgetExceeded(
            spent=done,
            asked=charge.guarantee.bound,
            left=left,
            whose=limit.whose,
            hint=_would_fit(left, before, charge, limit),
        )


def reading(total: Amounts, limit: Limit) -> tuple[Bound, Bound]:
    """The spent amount of a running sum, rounded up, and the rest, rounded down. A tiny rest is nothing."""
    currency = _currency(limit.bound)
    return currency.bound(total, up), currency.bound(_undusted(total, limit), down)


def _undusted(total: Amounts, limit: Limit) -> Amounts:
    """The remainder, or 0 if it is less than a billionth of the limit: no release could be bought for it.

    For display only: a charge is compared with the exact sums.
    """
    ceiling = _ceiling(limit)
    left = rest(total, ceiling)
    return {
        name: Fraction(0) if value is not None and (top := ceiling[name]) and value < top * DUST else value
        for name, value in left.items()
    }


def parts_of(bound: Bound, exact: Mapping[str, Fraction], limit: Limit) -> dict[str, float]:
    """A price as parts of a limit, by the currency that adds up: of epsilon and of delta, of rho, of mu squared;
    rounded up.

    For Rényi divergences, the largest part over the orders. A number that is missing in the limit has no part.
    """
    currency = _currency(limit.bound)
    ceiling, own = _ceiling(limit), currency.of_bound(bound, exact)
    found = {
        name: math.inf if (value := own[name]) is None else up(value / top)
        for name, top in ceiling.items()
        if top
    }
    return {"divergence": max(found.values(), default=0.0)} if isinstance(limit.bound, Renyi) else found


def parts_words(parts: Mapping[str, float]) -> str:
    """Parts of a budget for people: percentages; untouched parts are left out."""
    said = [
        f"{_percent(value)} of {name.replace(' squared', '^2')}" for name, value in parts.items() if value
    ]
    return ", ".join(said) or "nothing"


def _percent(part: float) -> str:
    if not math.isfinite(part):
        return "all"
    if part > 1:
        return f"{part:.3g} times all" if part >= 1.005 else "more than all"
    if part < 1e-5:
        return "less than 0.001%"
    # An almost is not a whole: what is rounded to 100% is all of it.
    return "99.9%" if 0.9995 <= part < 1 - float(DUST) else f"{100 * part:.3g}%"


def running_total(charges: Sequence[Charge], limit: Limit) -> None:
    """The built-in check: exact sums, each at most the limit's."""
    after = _sum(limit.bound, charges)
    if exceeds(after, _ceiling(limit)):
        fits(_sum(limit.bound, charges[:-1]), after, charges[-1], limit)


def spent(charges: Sequence[Charge], limit: Limit) -> Bound:
    """The sum of the charges in the limit's own kind, rounded up."""
    return reading(_sum(limit.bound, charges), limit)[0]


def left(charges: Sequence[Charge], limit: Limit) -> Bound:
    """The largest next charge, rounded down. Nothing is left of an overspent budget."""
    return reading(_sum(limit.bound, charges), limit)[1]


def _ceiling(limit: Limit) -> Amounts:
    return _currency(limit.bound).of_bound(limit.bound, limit.exact)


def _sum(currency: Bound, charges: Iterable[Charge]) -> Amounts:
    kept = _currency(currency)
    return summed(kept, ((kept.of_bound(c.guarantee.bound, c.exact), 1) for c in charges))


def _currency(bound: Bound) -> Currency:
    """The currency of the sums; `addable` stops bounds of other kinds earlier."""
    found = currency_of(bound)
    if found is None:
        raise _no_total(bound)
    return found


def smaller(one: Bound, other: Bound) -> Bound:
    """The numbers of two bounds of one kind, each the smaller of the two."""
    if isinstance(one, Renyi) and isinstance(other, Renyi):
        pairs = zip(one.epsilons, other.epsilons, strict=True)
        return Renyi(orders=one.orders, epsilons=tuple(min(p) for p in pairs))
    return type(one)(**{k: min(v, other.parameters[k]) for k, v in one.parameters.items()})


def recount(decode: Callable[[Mapping[str, Any]], T], total: Callable[[Sequence[T]], Bound]) -> ChargeCheck:
    """A check that ignores the prices and adds up the events anew: it decodes each record, adds them up, and
    compares.

    `total` must give a bound of the budget's kind, and must be a valid filter if parameters depend on earlier
    results. A total for plans fixed in advance is no filter.
    """

    def check(charges: Sequence[Charge], limit: Limit) -> None:
        events = [decode(c.event) for c in charges]
        folded = total(events)
        if folded.kind != limit.bound.kind:
            raise InvalidParameter(
                parameter="total", value=folded.kind, must=f"be of the budget's kind, {limit.bound.kind}"
            )
        if exceeds(_currency(limit.bound).of_bound(folded), _ceiling(limit)):
            raise BudgetExceeded(
                spent=total(events[:-1]) if events[:-1] else "nothing",
                asked=charges[-1].guarantee.bound,
                left="less than that",
                whose=limit.whose,
                hint="ask for a cheaper release",
            )

    return check


def filtered(make: Callable[[Any], Filter]) -> ChargeCheck:
    """A check by a filter of the accounting room, filled anew with the prices so far: `filtered(AdvancedFilter)`.

    Use the same filter for every charge of the ledger: two filters in turn do not form a valid one.
    """

    def check(charges: Sequence[Charge], limit: Limit) -> None:
        spending = make(limit.bound)
        for charge in charges:
            spending.admit(charge.guarantee.bound)

    return check


def addable(budget: Guarantee) -> None:
    """Refuse a budget that has no running total, with the reason."""
    if currency_of(budget.bound) is None:
        raise _no_total(budget.bound)
    if isinstance(budget.condition, Priors):
        raise NoLaw(
            operation=f"a running total {budget.condition}",
            reason="every other release about the same rows, a differentially private one included, is auxiliary "
            "knowledge for this one",
            counterexample="the exact count of all rows, and the exact count of all rows but one",
            hint="give the ledger a check of your own that knows why these releases compose: see tacit.coupled",
        )
    if not isinstance(budget.condition, Always):
        raise NoLaw(
            operation=f"a running total {budget.condition}",
            reason="releases chosen after earlier results compose without further declarations under Always only",
            hint="give the ledger a check that knows why these releases compose: on_random_data(budget), or your own",
        )


def _no_total(bound: Bound) -> NoLaw:
    return NoLaw(
        operation=f"a running total of {bound.kind} bounds",
        reason="parameters may depend on earlier results, and no filter for this kind is known here",
        hint="state the budget as Pure, Approximate, Concentrated, Gaussian or Renyi",
    )


def _would_fit(left: Bound, before: Amounts, charge: Charge, limit: Limit) -> str:
    """The remainder in at most twelve digits: the nearest such number if it fits, else the next below."""
    numbers = {k: v for k, v in left.parameters.items() if isinstance(v, float)}
    several = getattr(left, "epsilons", ())
    if not any((*numbers.values(), *several)):
        return "nothing is left; a new budget is a new decision of the custodian"
    if several:
        return f"{left} would fit"
    currency = _currency(limit.bound)

    def fit(said: dict[str, str]) -> bool:
        # Who states prices as decimals pays decimals; otherwise the float that is written so.
        exact = {k: Fraction(v) for k, v in said.items()} if charge.exact else {}
        bound = type(left)(**{k: float(v) for k, v in said.items()})
        return not exceeds(added(before, currency.of_bound(bound, exact)), _ceiling(limit))

    said = {k: _decimal(v, ROUND_HALF_EVEN) for k, v in numbers.items()}
    if not fit(said):
        said = {k: _decimal(v, ROUND_DOWN) for k, v in numbers.items()}
    return ", ".join(f"{k}={v}" for k, v in said.items()) + " would fit"


def _decimal(value: float, rounding: str) -> str:
    return str(float(Context(prec=12, rounding=rounding).create_decimal(repr(value))))
