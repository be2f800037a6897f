"""Is a stated bound at least the account of what was run? Asked where plans are made, and wherever a record is read.

Pure, Concentrated, Gaussian   the sum of the events' epsilons, rhos or squares of mu
Renyi                          the sum of the divergences at each order
Approximate                    the sums of epsilons and deltas, or the composed curve, read at either number
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from tacit.accounting.accountants import ACCOUNTANTS, account, profile_of
from tacit.accounting.events import Event, SimpleEvent, flatten
from tacit.errors import NoLaw, NotCertified
from tacit.guarantees import Approximate, Bound, Concentrated, GaussianDP, Pure, Renyi
from tacit.guarantees.arguments import instance, listed
from tacit.guarantees.running_sum import GAUSSIAN, summed
from tacit.guarantees.units import Neighbours

__all__ = ["HAIR", "covers"]

HAIR = Fraction(1, 10**9)
"""What the directed roundings of an event's floats may add to the exact numbers of the noise that was drawn."""


def covers(bound: Bound, events: Sequence[Event], *, neighbours: str | Neighbours) -> bool:
    """Is the account of these events at most this bound, whichever theorem shows it?

    What cannot be shown is not covered: False where no accountant has a number of this kind. No events reveal nothing,
    which every bound covers.
    """
    instance("bound", bound, Bound, must="be a bound")
    given = listed("events", events, must="be a list of events")
    for event in given:
        instance("events", event, Event, must="be a list of events")
    return not given or _covers(bound, given, Neighbours.parse(neighbours))


@lru_cache(maxsize=4096)
def _covers(bound: Bound, events: tuple[Event, ...], neighbours: Neighbours) -> bool:
    parts = flatten(events)
    try:
        match bound:
            case Pure():
                return _below(ACCOUNTANTS["pure"](parts, neighbours), bound.epsilon, Pure, "epsilon")
            case Concentrated():
                return _below(ACCOUNTANTS["zcdp"](parts, neighbours), bound.rho, Concentrated, "rho")
            case GaussianDP():
                return _by_mu(bound, parts, neighbours)
            case Renyi():
                return _by_divergences(bound, parts, neighbours)
            case Approximate():
                return _by_curve(bound, events, neighbours)
    except (NoLaw, NotCertified):
        return False
    raise NoLaw(operation=f"comparing events with a {bound.kind} bound", reason="it is no list of numbers")


def _at_most(found: float | Fraction, stated: float) -> bool:
    if math.isinf(stated):
        return True
    return math.isfinite(found) and Fraction(found) <= Fraction(stated) * (1 + HAIR)


def _below(found: Bound | None, stated: float, kind: type[Bound], name: str) -> bool:
    return isinstance(found, kind) and _at_most(float(found.parameters[name]), stated)


def _by_mu(bound: GaussianDP, parts: Sequence[tuple[SimpleEvent, int]], neighbours: Neighbours) -> bool:
    found = []
    for event, count in parts:
        event.must_hold_for(neighbours)
        own = GAUSSIAN.of_release(event, neighbours=neighbours)
        if own is None:
            return False
        found.append((own, count))
    return _below(GAUSSIAN.bound(summed(GAUSSIAN, found)), bound.mu, GaussianDP, "mu")


def _by_divergences(bound: Renyi, parts: Sequence[tuple[SimpleEvent, int]], neighbours: Neighbours) -> bool:
    for order, stated in zip(bound.orders, bound.epsilons, strict=True):
        total = Fraction(0)
        for event, count in parts:
            own = event.renyi(order, neighbours=neighbours)
            if own is None:
                return math.isinf(stated)
            total += Fraction(own) * count
        if not _at_most(total, stated):
            return False
    return True


def _by_curve(bound: Approximate, events: tuple[Event, ...], neighbours: Neighbours) -> bool:
    own = ACCOUNTANTS["approximate"](flatten(events), neighbours)
    if (
        isinstance(own, Approximate)
        and _at_most(own.epsilon, bound.epsilon)
        and _at_most(own.delta, bound.delta)
    ):
        return True
    # Read at the epsilon first: noise is calibrated by the curve's delta there, which is then known already.
    if _at_most(profile_of(events, neighbours=neighbours).delta_between(bound.epsilon).high, bound.delta):
        return True
    return bound.delta > 0 and _at_most(
        account(events, delta=bound.delta, neighbours=neighbours).epsilon.high, bound.epsilon
    )
