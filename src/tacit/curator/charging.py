"""The ledger's check of a curator's budget: its own sums, or under RandomData sums with gammas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import account, covers, events
from tacit.accounting.events import Event, flatten
from tacit.curator.assignments import Assignment
from tacit.errors import BudgetExceeded, InternalError, InvalidParameter, NoLaw, TacitError
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down, up
from tacit.guarantees import Approximate, Bound, Guarantee, Neighbours, Priors, RandomData
from tacit.guarantees.running_sum import APPROXIMATE, PURE, Amounts, Currency, currency_of, summed, typed
from tacit.ledger import (
    ChargeCheck,
    Ledger,
    Limit,
    on_random_data,
    parts_of,
    parts_words,
    standing_alone,
    standing_on_random_data,
)
from tacit.ledger import alone as paying_alone

if TYPE_CHECKING:
    from tacit.curator.planning import Plan

# What a plan costs in the budget's own terms.
#
# The events of a plan are fixed before a row is read, so that the plan is one event, priced by the best theorem:
#
#     Pure          the sum of the epsilons, exactly
#     Approximate   the smaller of: the sum of epsilons and deltas; the epsilon of the composed curve at the plan's
#     delta
#     Concentrated  the sum of the rhos: mu^2/2 for Gaussian noise, epsilon tanh(epsilon/2) for pure epsilon
#     Gaussian      the root of the sum of mu^2, with Phi(mu/2) = e^epsilon/(1+e^epsilon) for pure epsilon
#     Renyi         the sum of the divergences at each of the budget's orders
#
# Sums are those of `tacit.guarantees.running_sum`. Charges of different plans then add up under a filter that is
# valid for questions chosen after earlier results.

WORTH_A_DELTA = Fraction(95, 100)
WORTH_A_CURVE = 2
"""The least number of events with a composed curve; a single event has its own price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A bound of the budget's kind, its exact numbers, and the theorem behind it."""

    bound: Bound
    exact: dict[str, Fraction] = field(default_factory=dict)
    theorem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The joint price of the releases without a separate price: a delta, and an epsilon that they divide.

    `epsilon` is None if each release pays for its own accuracy.
    """

    members: Sequence[int]
    epsilon: Fraction | None
    delta: Fraction


def charge(
    costs: Sequence[Assignment], budget: Bound, *, neighbours: Neighbours, shared: Shared | None = None
) -> Charged:
    """The price of releases fixed together; `shared` is the plan's own price, if several releases divide it.

    It is compared with the account of all events before it is returned (`must_cover`).
    """
    found = _priced(costs, budget, neighbours, shared)
    what = [e for c in costs for e in c.events]
    if not _adds_up(costs, found.bound, neighbours, shared):
        must_cover(found.bound, what, neighbours=neighbours, of="the charge of a plan")
    return found


def must_cover(bound: Bound, what: Sequence[Event], *, neighbours: Neighbours, of: str) -> None:
    """Raise InternalError unless the account of these events is at most this bound."""
    if not covers(bound, what, neighbours=neighbours):
        raise InternalError(what=of, reason="the account of its events is above the bound that it states")


def _adds_up(
    costs: Sequence[Assignment], bound: Bound, neighbours: Neighbours, shared: Shared | None
) -> bool:
    """Whether the epsilons and deltas of the releases, each at least the account of its own events, add up to the
    bound.

    The divided price counts as one release here. Epsilons and deltas of any releases add up
    (`compose-approximate-basic`).
    """
    if not isinstance(bound, Approximate):
        return False
    inside = set(shared.members) if shared is not None else set()
    groups: list[tuple[Fraction, Fraction, list[Event]]] = []
    if shared is not None and shared.epsilon is not None and inside:
        together = [e for i in sorted(inside) for e in costs[i].events]
        groups.append((shared.epsilon, shared.delta, together))
    else:
        inside = set()
    for i, cost in enumerate(costs):
        own = None if i in inside else cost.approximate()
        if own is not None:
            groups.append((*own, list(cost.events)))
        elif i not in inside:
            return False
    epsilon, delta = sum((g[0] for g in groups), Fraction(0)), sum((g[1] for g in groups), Fraction(0))
    if epsilon > Fraction(bound.epsilon) or delta > Fraction(bound.delta):
        return False
    return all(
        covers(Approximate(epsilon=up(e), delta=up(d)), found, neighbours=neighbours)
        for e, d, found in groups
    )


def _priced(
    costs: Sequence[Assignment], budget: Bound, neighbours: Neighbours, shared: Shared | None
) -> Charged:
    currency = currency_of(budget)
    if currency is None:
        raise NoLaw(
            operation=f"a charge to a {budget.kind} budget", reason="there is no running total of this kind"
        )
    if currency is APPROXIMATE:
        return _approximate(costs, neighbours, shared)
    each = []
    for cost in costs:
        own = currency.of_release(cost, neighbours=neighbours)
        if own is None:
            raise _no_price(currency, cost)
        each.append((own, 1))
    return _charged(currency, summed(currency, each), theorem=currency.theorem)


def _charged(currency: Currency, total: Amounts, *, theorem: str) -> Charged:
    """The sum as a bound, beside its numbers before they are rounded to floats."""
    return Charged(bound=currency.bound(total), exact=currency.exact(total), theorem=theorem)


_WHY: dict[str, tuple[str, str, str]] = {
    "pure": (
        "a pure", "Gaussian noise and unknown keys have no pure epsilon",
        "pay with epsilon= alone, or state the budget as Approximate or Concentrated",
    ),
    "concentrated": (
        "a concentrated", "selecting unknown keys has a delta, and no rho",
        "declare the keys with category([...]), or state the budget as Approximate",
    ),
    "gaussian": ("a Gaussian", "{kinds} has no mu", "state the budget as Concentrated or Approximate"),
    "renyi": ("a Rényi", "{kinds} has no divergence", "state the budget as Approximate"),
}  # fmt: skip


def _no_price(currency: Currency, cost: Assignment) -> NoLaw:
    whose, reason, hint = _WHY[currency.kind]
    kinds = ", ".join(sorted({f"a {e.kind} event" for e, _ in flatten(cost.events)}))
    return NoLaw(operation=f"paying from {whose} budget", reason=reason.format(kinds=kinds), hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Epsilons (None for a curve alone), their deltas, and the delta for reading a curve."""

    epsilon: Fraction | None
    delta: Fraction
    at: Fraction
    theorem: str


def _total(costs: Sequence[Assignment]) -> tuple[Fraction | None, Fraction]:
    each = [c.approximate() for c in costs]
    known: list[Amounts] = [{"epsilon": e, "delta": d} for e, d in filter(None, each)]
    total = summed(APPROXIMATE, [(amounts, 1) for amounts in known])
    return (None if None in each else total["epsilon"]), total["delta"] or Fraction(0)


def _sums(costs: Sequence[Assignment], shared: Shared | None) -> _Sums:
    """The divided price counts as one price. Its members stay within it by a theorem.

    The other releases have deltas of their own, which are added to this price and take nothing away from it.
    """
    inside = set(shared.members) if shared is not None else set()
    epsilon, delta = _total([c for i, c in enumerate(costs) if i not in inside])
    theorem = "compose-approximate-basic"
    if shared is None:
        return _Sums(epsilon=epsilon, delta=delta, at=delta, theorem=theorem)
    own, spent = _total([c for i, c in enumerate(costs) if i in inside])
    at = delta + max(shared.delta, spent)
    if own is None and shared.epsilon is not None:
        # Divided as squares of mu: the asked price holds for them together.
        own, spent, theorem = shared.epsilon, shared.delta, "compose-gdp"
    together = None if epsilon is None or own is None else epsilon + own
    return _Sums(epsilon=together, delta=delta + spent, at=at, theorem=theorem)


def _approximate(costs: Sequence[Assignment], neighbours: Neighbours, shared: Shared | None) -> Charged:
    sums = _sums(costs, shared)
    epsilon, spent, total = sums.epsilon, sums.delta, sums.at
    what = [e for c in costs for e in c.events]
    if total == 0 and epsilon is None:
        raise NoLaw(
            operation="paying from an (epsilon, delta) budget",
            reason="a concentrated or Gaussian price has a curve, and no delta was named at which to read it",
            hint="pay with epsilon= and delta=, or state the budget as Concentrated",
        )
    if total > 0 and (len(what) >= WORTH_A_CURVE or epsilon is None):
        found = account(_merged(what), delta=down(total), neighbours=neighbours).epsilon.high
        # Where the events' own deltas are all there is, the curve has no room: then the sum holds.
        curve = Fraction(found) if math.isfinite(found) else None
        # A delta is spent where it buys something: a plan is charged its own deltas unless the curve is clearly below.
        if curve is not None and (
            epsilon is None or curve < (epsilon if total == spent else epsilon * WORTH_A_DELTA)
        ):
            return _charged(APPROXIMATE, {"epsilon": curve, "delta": total}, theorem="compose-profile")
    if epsilon is None:
        raise NoLaw(
            operation="paying from an (epsilon, delta) budget",
            reason="the composed curve has no epsilon at this delta",
            hint="offer a larger delta for the plan",
        )
    if spent == 0:
        return _charged(PURE, {"epsilon": epsilon}, theorem=PURE.theorem)
    return _charged(APPROXIMATE, {"epsilon": epsilon, "delta": spent}, theorem=sums.theorem)


def _merged(what: Sequence[Event]) -> list[Event]:
    counts: dict[Event, int] = {}
    for event in what:
        counts[event] = counts.get(event, 0) + 1
    return [e if n == 1 else events.RepeatedEvent(event=e, times=n) for e, n in counts.items()]


# What each release of a plan costs by itself in the budget's own terms, as parts of the budget.
#
# A release alone is read at the delta that the whole plan is charged at, so that prices compare. Together they may
# cost less than their sum, and never more: what is charged is the plan's one price.


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A price in the budget's kind, and its parts of the budget; empty if no theorem gives one."""

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
    """Each release separately."""
    if budget is None:
        return tuple(Alone() for _ in plan.releases)
    delta = plan.charged.exact.get("delta")
    shared = None if delta is None else Shared(members=(0,), epsilon=None, delta=delta)
    found = []
    for release in plan.releases:
        try:
            own = charge([release.assignment], budget, neighbours=plan.unit.neighbours, shared=shared)
            found.append(_of(own, budget))
        except TacitError:
            found.append(Alone())
    return tuple(found)


def together(plan: Plan, budget: Bound | None) -> Alone:
    """The plan's own price, which the ledger charges."""
    return Alone() if budget is None else _of(plan.charged, budget)


def divided_parts(plan: Plan, budget: Bound | None) -> tuple[dict[str, float] | None, ...]:
    """The plan's parts of the budget, divided among its releases in proportion to the cost of each release alone.

    They add up to the plan's parts, which may be less than the sum of the separate costs.
    """
    whole, own = together(plan, budget).parts, [a.parts for a in alone(plan, budget)]
    if whole is None or any(p is None for p in own):
        return tuple(None for _ in own)
    found: list[dict[str, float] | None] = []
    for one in own:
        part = {}
        for name, total in whole.items():
            sums = sum((p or {}).get(name, 0.0) for p in own)
            part[name] = total * (one or {}).get(name, 0.0) / sums if sums else total / len(own)
        found.append(part)
    return tuple(found)


def _of(charged: Charged, budget: Bound) -> Alone:
    limit = Limit(bound=budget, exact=typed(budget))
    return Alone(charged=charged, parts=parts_of(charged.bound, charged.exact, limit))


def check_of(budget: Guarantee) -> ChargeCheck | None:
    """The check for a charge to this budget; None if the ledger's own check is enough."""
    if isinstance(budget.condition, Priors):
        return paying_alone
    return on_random_data(budget) if isinstance(budget.condition, RandomData) else None


def payable_exactly(charge: Guarantee, budget: Guarantee) -> None:
    """Refuses an exact answer unless the budget has exactly its condition, before anything is opened or charged."""
    if isinstance(charge.condition, Priors) and charge.condition != budget.condition:
        raise InvalidParameter(
            parameter="given", value="an exact answer", must="be paid from a budget under its own condition",
            hint="budget=Guarantee(bound=..., unit=..., condition=plan.charge.condition), with plan from preview; such "
            "a table gives this one answer and no other",
        )  # fmt: skip


def payable(gamma: Fraction, budget: Guarantee) -> None:
    """Refuses random data if the budget grants no gamma, or a smaller one, before anything is opened or charged."""
    condition = budget.condition
    if gamma and isinstance(condition, RandomData) and gamma > Fraction(repr(condition.gamma)):
        raise BudgetExceeded(
            spent="what the ledger has",
            asked=f"gamma = {up(gamma)!r}",
            left=f"gamma = {condition.gamma!r} at most",
            whose="the budget",
            hint="ask for a smaller gamma; a plan's gamma is the total of its releases",
        )
    if gamma and not isinstance(condition, RandomData):
        raise InvalidParameter(
            parameter="given", value=f"random data with gamma = {float(gamma):.3g}",
            must="be paid from a budget that grants a gamma",
            hint="gamma = 0.1 under [budget]; in Python a Guarantee(..., condition=RandomData(gamma=0.1)) as budget=",
        )  # fmt: skip


def standing_of(ledger: Ledger, analyst: str) -> tuple[Guarantee, Guarantee]:
    """The spent part of a budget, and the part that is left for the analyst."""
    if isinstance(ledger.budget.condition, RandomData):
        return standing_on_random_data(ledger, analyst)
    if isinstance(ledger.budget.condition, Priors):
        return standing_alone(ledger)
    spent, left = ledger.standing(analyst)
    return replace(ledger.budget, bound=spent), replace(ledger.budget, bound=left)
