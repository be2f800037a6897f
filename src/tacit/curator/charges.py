"""What a plan costs in the budget's own terms.

The events of a plan are fixed before a row is read, so that the plan is one event, priced by the best theorem:

    Pure          the sum of the epsilons, exactly
    Approximate   the smaller of: the sum of epsilons and deltas; the epsilon of the composed curve at the plan's delta
    Concentrated  the sum of the rhos: mu^2/2 for Gaussian noise, epsilon tanh(epsilon/2) for pure epsilon
    Gaussian      the root of the sum of mu^2, with Phi(mu/2) = e^epsilon/(1+e^epsilon) for pure epsilon
    Renyi         the sum of the divergences at each of the budget's orders

Charges of different plans then add up under a filter that is valid for questions chosen as one goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.accounting import account, events
from tacit.accounting.events import Event
from tacit.curator.treatments import Treatment
from tacit.errors import NoLaw
from tacit.exact.balls import ball, upper
from tacit.exact.rounding import down, sum_up, up
from tacit.guarantees import Approximate, Bound, Concentrated, GaussianDP, Neighbours, Pure, Renyi, convert

__all__ = ["Charged", "Shared", "charge"]

WORTH_A_DELTA = Fraction(95, 100)
WORTH_A_CURVE = 2
"""From this many events on the composed curve is computed; one event alone has its own price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A bound of the budget's kind, its exact numbers, and the theorem that it comes from."""

    bound: Bound
    exact: dict[str, Fraction] = field(default_factory=dict)
    theorem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the releases without a price of their own have together: a delta, and an epsilon that they divide.

    `epsilon` is None where each pays for its own accuracy.
    """

    members: Sequence[int]
    epsilon: Fraction | None
    delta: Fraction


def charge(
    costs: Sequence[Treatment], budget: Bound, *, neighbours: Neighbours, shared: Shared | None = None
) -> Charged:
    """The price of releases that are fixed together; `shared` is the plan's own, where several divide it."""
    match budget:
        case Pure():
            return _pure(costs)
        case Approximate():
            return _approximate(costs, neighbours, shared)
        case Concentrated():
            total = sum((_rho(c) for c in costs), Fraction(0))
            return Charged(bound=Concentrated(rho=up(total)), exact={"rho": total}, theorem="compose-zcdp")
        case GaussianDP():
            return _gaussian(costs)
        case Renyi():
            epsilons = [sum_up(b.renyi(a) for c in costs for b in _bounds(c)) for a in budget.orders]
            return Charged(
                bound=Renyi(orders=budget.orders, epsilons=tuple(epsilons)), theorem="compose-renyi"
            )
    raise NoLaw(
        operation=f"a charge to a {budget.kind} budget", reason="there is no running total of this kind"
    )


def _pure(costs: Sequence[Treatment]) -> Charged:
    total = Fraction(0)
    for cost in costs:
        if cost.pure is None:
            raise NoLaw(
                operation="paying from a pure budget",
                reason="Gaussian noise and unknown keys have no pure epsilon",
                hint="pay with epsilon= alone, or state the budget as Approximate or Concentrated",
            )
        total += cost.pure
    return Charged(bound=Pure(epsilon=up(total)), exact={"epsilon": total}, theorem="compose-pure")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Epsilons (None where one has a curve only), the deltas that go with them, and the delta to read a curve at."""

    epsilon: Fraction | None
    delta: Fraction
    at: Fraction
    theorem: str


def _total(costs: Sequence[Treatment]) -> tuple[Fraction | None, Fraction]:
    epsilon, delta = Fraction(0), Fraction(0)
    unpriced = False
    for cost in costs:
        each = cost.pure if cost.pure is not None else cost.epsilon_at_delta
        unpriced |= each is None
        epsilon += each or 0
        delta += 0 if cost.pure is not None else cost.delta
    return (None if unpriced else epsilon), delta


def _sums(costs: Sequence[Treatment], shared: Shared | None) -> _Sums:
    """What is divided counts as one price, to which its members keep by theorem.

    The deltas of the other releases are their own: they are added to it, and take nothing away from it.
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


def _approximate(costs: Sequence[Treatment], neighbours: Neighbours, shared: Shared | None) -> Charged:
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
            exact = {"epsilon": curve, "delta": total}
            return Charged(bound=_approximate_bound(exact), exact=exact, theorem="compose-profile")
    if epsilon is None:
        raise NoLaw(
            operation="paying from an (epsilon, delta) budget",
            reason="the composed curve has no epsilon at this delta",
            hint="offer a larger delta for the plan",
        )
    exact = {"epsilon": epsilon, "delta": spent}
    if spent == 0:
        return Charged(bound=Pure(epsilon=up(epsilon)), exact={"epsilon": epsilon}, theorem="compose-pure")
    return Charged(bound=_approximate_bound(exact), exact=exact, theorem=sums.theorem)


def _approximate_bound(exact: dict[str, Fraction]) -> Approximate:
    return Approximate(epsilon=up(exact["epsilon"]), delta=up(exact["delta"]))


def _merged(what: Sequence[Event]) -> list[Event]:
    counts: dict[Event, int] = {}
    for event in what:
        counts[event] = counts.get(event, 0) + 1
    return [e if n == 1 else events.RepeatedEvent(event=e, times=n) for e, n in counts.items()]


def _rho(cost: Treatment) -> Fraction:
    if cost.rho is None:
        raise NoLaw(
            operation="paying from a concentrated budget",
            reason="selecting unknown keys has a delta, and no rho",
            hint="declare the keys with category([...]), or state the budget as Approximate",
        )
    return cost.rho


def _bounds(cost: Treatment) -> list[Bound]:
    """A bound with a Rényi divergence for each event."""
    found: list[Bound] = []
    for event in cost.events:
        epsilon = event.pure() if isinstance(event, events.SimpleEvent) else None
        if isinstance(event, events.GaussianEvent):
            found.append(GaussianDP(mu=event.mu))
        elif epsilon is not None:
            found.append(Pure(epsilon=epsilon))
        else:
            raise NoLaw(
                operation="paying from a Rényi budget", reason=f"a {event.kind} event has no divergence"
            )
    return found


def _gaussian(costs: Sequence[Treatment]) -> Charged:
    square = Fraction(0)
    for cost in costs:
        for event in cost.events:
            if isinstance(event, events.GaussianEvent):
                square += event.squared
                continue
            epsilon = event.pure() if isinstance(event, events.SimpleEvent) else None
            if epsilon is None:
                raise NoLaw(
                    operation="paying from a Gaussian budget", reason=f"a {event.kind} event has no mu"
                )
            square += Fraction(convert(Pure(epsilon=epsilon), GaussianDP).mu) ** 2
    total = square
    return Charged(bound=GaussianDP(mu=upper(lambda: ball(total).sqrt())), theorem="compose-gdp")
