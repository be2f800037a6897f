"""Running totals: exact sums of what was charged, compared with a limit fixed in advance.

    kind            what adds up                     valid when parameters are chosen as one goes
    pure            epsilon                          yes
    approximate     epsilon, and delta               yes (basic composition)
    concentrated    rho                              yes
    gaussian        mu^2                             yes
    renyi           the divergence at each order     yes (each order by itself; all must fit)

Sums are exact rationals. `spent` is rounded up and `left` down, so that the asker never gains by a
rounding. A profile has no running total of this kind: a plan fixed in advance enters as one charge.
Source: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Smith, Thakurta 2022 (filters).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw, UnitMismatch
from tacit.exact.rounding import down, up
from tacit.guarantees import (
    Always,
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Guarantee,
    Pure,
    Renyi,
)
from tacit.ledger.entries import Charge

if TYPE_CHECKING:
    from tacit.accounting import Filter

__all__ = ["Amounts", "ChargeCheck", "Limit", "filtered", "recount", "running_total"]

T = TypeVar("T")
Amounts = dict[str, Fraction | None]  # None is infinity
SUM_BITS = 4096
"""A running sum whose denominator is longer is rounded up to this many binary places: fractions of ever new
denominators would make each entry longer than the one before. Sums of floats and of decimals never come near."""
_ADDS_UP = ("approximate", "concentrated", "gaussian", "pure", "renyi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A bound that may not be exceeded, its exact numbers where they are known, and whose limit it is."""

    bound: Bound
    exact: Mapping[str, Fraction] = field(default_factory=dict)
    whose: str = "the budget"


ChargeCheck = Callable[[Sequence[Charge], Limit], None]
"""Called inside the transaction with every charge so far, the asked one last, and the limit. It must be a
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
    if charge.condition != budget.condition and not isinstance(charge.condition, Always):
        raise InvalidParameter(
            parameter="charge",
            value=str(charge.condition),
            must="hold always, or under the budget's condition",
        )


def share(bound: Bound, budget: Guarantee) -> Bound:
    """Refuse an analyst's share that is not a bound of the budget's own kind."""
    if not isinstance(bound, Bound) or bound.kind != budget.bound.kind:
        raise InvalidParameter(
            parameter="share", value=str(bound), must=f"be a bound of the budget's kind, {budget.bound.kind}"
        )
    in_currency(replace(budget, bound=bound), budget)
    return bound


def typed(bound: Bound) -> dict[str, Fraction]:
    """What the numbers of a limit stand for where nobody said: the float, or the decimal that it prints as, if larger.

    Who grants 0.6 means six tenths, and the float is a little less; who grants the float 0.1 grants a little more.
    """
    if isinstance(bound, Renyi):
        return {}
    given = {k: v for k, v in bound.parameters.items() if isinstance(v, float) and math.isfinite(v)}
    return {name: max(Fraction(value), Fraction(repr(value))) for name, value in given.items()}


def zero(budget: Guarantee) -> Amounts:
    """The running sum before the first charge; empty where the budget's kind has none."""
    if budget.bound.kind not in _ADDS_UP or not isinstance(budget.condition, Always):
        return {}
    return dict.fromkeys(_amounts(budget.bound, {}, budget.bound), Fraction(0))


def plus(total: Amounts, charge: Charge, budget: Guarantee) -> Amounts:
    """The running sum with one charge more."""
    if not total:
        return {}
    asked = _amounts(budget.bound, charge.exact, charge.guarantee.bound)
    return {name: _added(total[name], asked[name]) for name in total}


def _added(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    if one is None or other is None:
        return None
    total = one + other
    if total.denominator.bit_length() <= SUM_BITS:
        return total
    return Fraction(-(-total.numerator * 2**SUM_BITS // total.denominator), 2**SUM_BITS)


def fits(before: Amounts, after: Amounts, charge: Charge, limit: Limit) -> None:
    """Refuse a charge after which a running sum passes the limit."""
    ceiling = _amounts(limit.bound, limit.exact, limit.bound)
    if _exceeds(after, ceiling):
        rest = _left(limit, before, ceiling)
        raise BudgetExceeded(
            spent=_bound(limit.bound, before, up),
            asked=charge.guarantee.bound,
            left=rest,
            whose=limit.whose,
            hint=_would_fit(rest),
        )


def reading(total: Amounts, limit: Limit) -> tuple[Bound, Bound]:
    """What a running sum says was spent, rounded up, and what it leaves, rounded down."""
    ceiling = _amounts(limit.bound, limit.exact, limit.bound)
    return _bound(limit.bound, total, up), _left(limit, total, ceiling)


def running_total(charges: Sequence[Charge], limit: Limit) -> None:
    """The built-in check: exact sums, each at most the limit's."""
    if not _exceeds(_sum(limit.bound, charges), _amounts(limit.bound, limit.exact, limit.bound)):
        return
    rest = left(charges[:-1], limit)
    raise BudgetExceeded(
        spent=spent(charges[:-1], limit),
        asked=charges[-1].guarantee.bound,
        left=rest,
        whose=limit.whose,
        hint=_would_fit(rest),
    )


def spent(charges: Sequence[Charge], limit: Limit) -> Bound:
    """The sum of the charges in the limit's own kind, rounded up."""
    return _bound(limit.bound, _sum(limit.bound, charges), up)


def left(charges: Sequence[Charge], limit: Limit) -> Bound:
    """What a next charge may be at most, rounded down; nothing is left of an overspent budget."""
    total, ceiling = _sum(limit.bound, charges), _amounts(limit.bound, limit.exact, limit.bound)
    return _left(limit, total, ceiling)


def _left(limit: Limit, total: Amounts, ceiling: Amounts) -> Bound:
    over = _exceeds(total, ceiling)
    rest: Amounts = {}
    for name, top in ceiling.items():
        done = total[name] or Fraction(0)
        rest[name] = Fraction(0) if over else None if top is None else top - done
    return _bound(limit.bound, rest, down)


def smaller(one: Bound, other: Bound) -> Bound:
    """The numbers of two bounds of one kind, each the smaller of the two."""
    if isinstance(one, Renyi) and isinstance(other, Renyi):
        pairs = zip(one.epsilons, other.epsilons, strict=True)
        return Renyi(orders=one.orders, epsilons=tuple(min(p) for p in pairs))
    return type(one)(**{k: min(v, other.parameters[k]) for k, v in one.parameters.items()})


def recount(decode: Callable[[Mapping[str, Any]], T], total: Callable[[Sequence[T]], Bound]) -> ChargeCheck:
    """A check that forgets the prices and folds the events anew: decode each record, total them, compare.

    `total` must give a bound of the budget's kind, and must be a valid filter if parameters are chosen as
    one goes; a total that is only valid for a plan fixed in advance is not.
    """

    def check(charges: Sequence[Charge], limit: Limit) -> None:
        events = [decode(c.event) for c in charges]
        folded = total(events)
        if folded.kind != limit.bound.kind:
            raise InvalidParameter(
                parameter="total", value=folded.kind, must=f"be of the budget's kind, {limit.bound.kind}"
            )
        ceiling = _amounts(limit.bound, limit.exact, limit.bound)
        if _exceeds(_amounts(limit.bound, {}, folded), ceiling):
            raise BudgetExceeded(
                spent=total(events[:-1]) if events[:-1] else "nothing",
                asked=charges[-1].guarantee.bound,
                left="less than that",
                whose=limit.whose,
                hint="ask for a cheaper release",
            )

    return check


def filtered(make: Callable[[Bound], Filter]) -> ChargeCheck:
    """A check by a filter of the accounting room, filled anew with the prices so far: `filtered(AdvancedFilter)`.

    The same filter must be used for every charge of the ledger: two filters in turn are no filter.
    """

    def check(charges: Sequence[Charge], limit: Limit) -> None:
        spending = make(limit.bound)
        for charge in charges:
            spending.admit(charge.guarantee.bound)

    return check


def addable(budget: Guarantee) -> None:
    """Refuse a budget that has no running total, with the reason."""
    if budget.bound.kind not in _ADDS_UP:
        raise NoLaw(
            operation=f"a running total of {budget.bound.kind} bounds",
            reason="parameters may be chosen as one goes, and no filter for this kind is known here",
            hint="state the budget as Pure, Approximate, Concentrated, Gaussian or Renyi",
        )
    if not isinstance(budget.condition, Always):
        raise NoLaw(
            operation=f"a running total {budget.condition}",
            reason="releases that are chosen as one goes compose without further declarations under Always only",
            hint="give the ledger a check of your own that knows why these releases compose",
        )


def _would_fit(rest: Bound) -> str:
    numbers = [v for v in rest.parameters.values() if isinstance(v, float)]
    if not numbers or all(v == 0 for v in numbers):
        return "nothing is left; a new budget is a new decision of the custodian"
    said = ", ".join(f"{k}={v!r}" for k, v in rest.parameters.items() if isinstance(v, float))
    return f"{said} would fit"


def _amounts(currency: Bound, exact: Mapping[str, Fraction], bound: Bound) -> Amounts:
    """The numbers of a bound that add up, in the currency of another."""

    def number(name: str) -> Fraction | None:
        if name in exact:
            return exact[name]
        if name == "delta" and bound.kind == "pure":
            return Fraction(0)
        return Fraction(float(getattr(bound, name)))

    if isinstance(currency, Renyi):
        values = bound.epsilons if isinstance(bound, Renyi) else ()
        return {
            f"epsilon at order {a:g}": None if math.isinf(e) else Fraction(e)
            for a, e in zip(currency.orders, values, strict=True)
        }
    if currency.kind == "gaussian":
        mu = number("mu")
        return {"mu squared": None if mu is None else mu * mu}
    names = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "concentrated": ("rho",)}
    return {name: number(name) for name in names[currency.kind]}


def _exceeds(total: Amounts, ceiling: Amounts) -> bool:
    """Does any sum pass its ceiling?"""
    for name, top in ceiling.items():
        done = total[name]
        if top is not None and (done is None or done > top):
            return True
    return False


def _sum(currency: Bound, charges: Iterable[Charge]) -> Amounts:
    """Exact. Numerators are added up by denominator first: charges of a plan's few prices are many, fractions slow."""
    parts: dict[str, dict[int, int]] = {n: {} for n in _amounts(currency, {}, currency)}
    endless: set[str] = set()
    for charge in charges:
        for name, value in _amounts(currency, charge.exact, charge.guarantee.bound).items():
            if value is None:
                endless.add(name)
                continue
            held, below = parts[name], value.denominator
            held[below] = held.get(below, 0) + value.numerator
    return {
        name: None if name in endless else sum((Fraction(n, d) for d, n in held.items()), Fraction(0))
        for name, held in parts.items()
    }


def _bound(currency: Bound, amounts: Amounts, rounded: Callable[[Any], float]) -> Bound:
    values = [math.inf if v is None else rounded(v) for v in amounts.values()]
    if isinstance(currency, Renyi):
        return Renyi(orders=currency.orders, epsilons=tuple(values))
    if currency.kind == "gaussian":
        square = next(iter(amounts.values())) or Fraction(0)
        return GaussianDP(mu=_root(square, rounded))
    if currency.kind == "approximate":
        if values[1] >= 1:
            raise NoLaw(operation="the sum of the charges", reason="their deltas add up to 1 or more")
        return Approximate(epsilon=values[0], delta=values[1])
    return Pure(epsilon=values[0]) if currency.kind == "pure" else Concentrated(rho=values[0])


def _root(square: Fraction, rounded: Callable[[Any], float]) -> float:
    """The square root of a rational as a float, in the direction of `rounded`."""
    if square == 0:
        return 0.0
    # Scaled so that the integer root has more than 64 bits; its error is then far below one float.
    shift = max(0, 80 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    whole = math.isqrt(square.numerator * 4**shift // square.denominator)
    exact = Fraction(whole, 2**shift) ** 2 == square
    root = Fraction(whole if exact or rounded is down else whole + 1, 2**shift)
    return rounded(root)
