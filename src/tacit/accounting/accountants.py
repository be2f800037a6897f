"""Accountants: folds over events, each by one theorem. `account` takes the best and says which it was.

    pld            the product of the pairs (PLDs), certified from both sides; removal and addition stay
    separate throughout
    gaussian       exact, where every event is Gaussian noise
    pure           the sum of the epsilons, where every event has one
    concentrated   the sum of the rhos, where every event has one
    approximate    the sums of the epsilons and of the deltas, if every event has both
    renyi          the sum of the divergences at each order, if they are finite

They are for plans whose parameters are fixed in advance; for parameters chosen after earlier results use filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.events import (
    ConcentratedEvent,
    DiscreteGaussianVectorEvent,
    Event,
    RepeatedEvent,
    SimpleEvent,
    flatten,
)
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, NotCertified, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.checks import instance, listed, non_negative, numbers, probability, text
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, sum_up
from tacit.guarantees import Approximate, Bound, Concentrated, GaussianDP, Profile, Pure, Renyi
from tacit.guarantees.bounds.base import COMMON_ORDERS
from tacit.guarantees.running_sum import APPROXIMATE, CONCENTRATED, GAUSSIAN, PURE, Currency, summed
from tacit.guarantees.units import Neighbours
from tacit.pld import Pair, Product

Counted = Sequence[tuple[SimpleEvent, int]]
Several = list[float] | tuple[float, ...] | NDArray[Any]

TOLERANCE = 4e-4
"""The requested width of the grid; the result is certified for any width."""

MANY = 256
"""For plans with more distinct events, sums of epsilons, rhos and divergences are skipped, since the product
of curves is never above them. Only its computed end may be: epsilons and rhos are tried if its two ends lie
far apart, and rhos if an event is known by its rho only.
"""

ENOUGH = 1e-3
"""A certified enclosure this narrow is not improved upon: absolutely below an epsilon of 1, relatively above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The cost of a plan: the enclosure of one coordinate of its curve, and the method that found it.

    `low` is a certified lower end of the exact composed curve (0 where none is known), `high` the promise.
    """

    epsilon: Interval
    delta: Interval
    accountant: str
    neighbours: Neighbours


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Enclosures:
    """Certified ends of several numbers, as arrays of the requested shape."""

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accounts:
    """The cost of a plan at several deltas (or epsilons): as `Account`, with arrays for its ends."""

    epsilon: Enclosures
    delta: Enclosures
    accountants: tuple[str, ...]
    neighbours: Neighbours


def profile_of(
    events: Event | Sequence[Event], *, neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE
) -> Profile:
    """The composed curve, as a product of pairs for each direction; it answers numbers and arrays."""
    return _pld(flatten(events), Neighbours.parse(neighbours))


def _pld(parts: Counted, neighbours: Neighbours) -> Profile:
    parts = _composing(parts)
    removal: list[tuple[Pair, int]] = []
    addition: list[tuple[Pair, int]] = []
    # Rhos add (theorem `compose-zcdp`), and the curve of the sum is below the product of the curves.
    rho = sum_up(Fraction(e.rho) * n for e, n in parts if isinstance(e, ConcentratedEvent))
    merged: Counted = [(ConcentratedEvent(rho=rho), 1)] if rho > 0 else []
    for event, count in [*(p for p in parts if not isinstance(p[0], ConcentratedEvent)), *merged]:
        pairs = event.pairs(neighbours)
        if pairs is not None:
            removal.append((pairs[0], count))
            addition.append((pairs[1], count))
    if not removal:
        return Profile.of(Pure(epsilon=0.0))
    forward = Product(pairs=removal)
    backward = forward if addition == removal else Product(pairs=addition)
    return Profile(directions=(forward,) if forward == backward else (forward, backward))


def _composing(parts: Counted) -> Counted:
    """The parts as they compose: a vector of discrete Gaussian noise alone has the curve of its worst move."""
    vectors = [e for e, _ in parts if isinstance(e, DiscreteGaussianVectorEvent)]
    if not vectors or (len(parts) == 1 and parts[0][1] == 1):
        return parts
    return flatten(
        [
            RepeatedEvent(
                event=e.beside_others() if isinstance(e, DiscreteGaussianVectorEvent) else e, times=n
            )
            for e, n in parts
        ]
    )


def _gaussian(parts: Counted, neighbours: Neighbours) -> Bound | None:
    """Exact for Gaussian noise alone. Other events also have a mu, which is only a bound."""
    if any(event.gaussian_squared() is None for event, _ in parts):
        return None
    return _folded(GAUSSIAN, parts, neighbours)


def _pure(parts: Counted, neighbours: Neighbours) -> Bound | None:
    return _folded(PURE, parts, neighbours)


def _concentrated(parts: Counted, neighbours: Neighbours) -> Bound | None:
    return _folded(CONCENTRATED, parts, neighbours)


def _approximate(parts: Counted, neighbours: Neighbours) -> Bound | None:
    """Covers a computed curve slightly above the events' own deltas, where only these are allowed."""
    deltas = [(event.approximate(), count) for event, count in parts]
    if sum(Fraction(found[1]) * count for found, count in deltas if found is not None) >= 1:
        return None
    return _folded(APPROXIMATE, parts, neighbours)


def _folded(currency: Currency, parts: Counted, neighbours: Neighbours) -> Bound | None:
    """The sum of the events' costs in this currency; None if one event has no such cost."""
    found = []
    for event, count in parts:
        own = currency.of_release(event, neighbours=neighbours)
        if own is None:
            return None
        event.must_hold_for(neighbours)
        found.append((own, count))
    return currency.bound(summed(currency, found))


def _renyi(parts: Counted, neighbours: Neighbours, orders: Sequence[float] = COMMON_ORDERS) -> Renyi | None:
    curve = _pld(parts, neighbours)
    values = {a: curve.renyi(a) for a in orders}
    finite = {a: v for a, v in values.items() if math.isfinite(v)}
    return Renyi(orders=tuple(finite), epsilons=tuple(finite.values())) if finite else None


def _renyi_below(parts: Counted, neighbours: Neighbours, delta: float, epsilon: float) -> Renyi | None:
    """The Rényi bound at the orders that could give less than epsilon at this delta.

    The part that an order adds to its divergence is known in advance, and divergences rise with the order. So
    if one order is too large, all higher ones are. Divergences of high orders are by far the slowest to
    compute, and some can be excluded without computing them.
    """
    curve = _pld(parts, neighbours)
    found: dict[float, float] = {}
    for a in sorted(COMMON_ORDERS):
        shrunk = math.log1p(-1 / a)
        if delta == 0:
            continue
        room = epsilon - shrunk + (math.log(delta) + math.log(a)) / (a - 1)
        if room <= 0:
            continue
        if _reaches(curve, a, room):
            if _reaches(curve, a, epsilon - shrunk):
                break
            continue
        value = curve.renyi(a)
        if value + shrunk >= epsilon:
            break
        found[a] = value
    return Renyi(orders=tuple(found), epsilons=tuple(found.values())) if found else None


def _reaches(curve: Profile, order: float, value: float) -> bool:
    return any(isinstance(d, Product) and d.renyi_reaches(order, value) for d in curve.directions)


ACCOUNTANTS: dict[str, Callable[[Counted, Neighbours], Bound | None]] = {
    "gdp": _gaussian,
    "pld": _pld,
    "pure": _pure,
    "zcdp": _concentrated,
    "approximate": _approximate,
    "renyi": _renyi,
}

ELSEWHERE = {"rdp": "renyi", "moments": "renyi", "prv": "pld", "fft": "pld", "cdp": "zcdp", "basic": "pure"}
"""What other tools call them."""


def bound_of(
    events: Event | Sequence[Event],
    *,
    accountant: str,
    neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
) -> Bound:
    """The composed bound by one accountant; NoLaw if its theorem does not cover an event."""
    if text("accountant", accountant) not in ACCOUNTANTS:
        here = ELSEWHERE.get(accountant.lower())
        raise UnknownName(
            what="accountant",
            name=accountant,
            known=ACCOUNTANTS,
            hint=f"here it is called {here!r}" if here else "",
        )
    parts = flatten(events)
    bound = ACCOUNTANTS[accountant](parts, Neighbours.parse(neighbours))
    if bound is None:
        kinds = ", ".join(sorted({e.kind for e, _ in parts}))
        raise NoLaw(
            operation=f"the {accountant} accountant on {kinds}",
            reason="not every event has a bound of that kind",
            hint="use accountant='pld', which covers all events",
        )
    return bound


@overload
def account(
    events: Event | Sequence[Event],
    *,
    delta: float | None = ...,
    epsilon: float | None = ...,
    neighbours: str | Neighbours = ...,
    accountant: str | None = ...,
) -> Account: ...
@overload
def account(
    events: Event | Sequence[Event],
    *,
    delta: Several,
    neighbours: str | Neighbours = ...,
    accountant: str | None = ...,
) -> Accounts: ...
@overload
def account(
    events: Event | Sequence[Event],
    *,
    epsilon: Several,
    neighbours: str | Neighbours = ...,
    accountant: str | None = ...,
) -> Accounts: ...
def account(
    events: Event | Sequence[Event],
    *,
    delta: float | Several | None = None,
    epsilon: float | Several | None = None,
    neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
    accountant: str | None = None,
) -> Account | Accounts:
    """The cost of a plan at a delta (or at an epsilon): the best valid bound, and the accountant that gave it.

    A list or an array of deltas (or epsilons) gives `Accounts`, whose ends are arrays.
    """
    if (delta is None) == (epsilon is None):
        raise InvalidParameter(
            parameter="delta and epsilon", value=(delta, epsilon), must="be given one at a time"
        )
    relation = Neighbours.parse(neighbours)
    at_delta = delta is not None
    level = delta if at_delta else epsilon
    if isinstance(level, list | tuple) or int(getattr(level, "ndim", 0)) > 0:
        return _each(events, level, at_delta, relation, accountant)
    return _one(events, level, at_delta, relation, accountant)


def _each(
    events: Event | Sequence[Event], levels: Any, at_delta: bool, relation: Neighbours, accountant: str | None
) -> Accounts:
    """Computes one level at a time, so that each answer equals that for one number alone."""
    name = "delta" if at_delta else "epsilon"
    given = numbers(name, levels)
    if not given.size:
        raise EmptyComposition(what=f"the array of {name}s", hint="name at least one")
    found = [_one(events, x, at_delta, relation, accountant) for x in given.reshape(-1).tolist()]
    pairs = [(one.epsilon, one.delta) for one in found]
    ends = np.array([[(i.low, i.high) for i in pair] for pair in pairs], dtype=np.float64)
    epsilon, delta = (
        Enclosures(low=ends[:, i, 0].reshape(given.shape), high=ends[:, i, 1].reshape(given.shape))
        for i in (0, 1)
    )
    return Accounts(
        epsilon=epsilon, delta=delta, accountants=tuple(one.accountant for one in found), neighbours=relation
    )


def _one(
    events: Event | Sequence[Event], given: Any, at_delta: bool, relation: Neighbours, accountant: str | None
) -> Account:
    level = probability("delta", given, below_one=True) if at_delta else non_negative("epsilon", given)
    parts = flatten(events)
    if accountant is not None:
        bound = bound_of(events, accountant=accountant, neighbours=relation)
        return _made(_read(bound, level, at_delta), level, at_delta, accountant, relation)
    exact = _gaussian(parts, relation)
    if exact is not None:
        return _made(_read(Profile.of(exact), level, at_delta), level, at_delta, "gdp", relation)
    best = _read_pld(parts, relation, level, at_delta)
    found, name = best if best is not None else (Interval(low=0.0, high=math.inf), "pld")
    enough = ENOUGH * (max(1.0, found.high) if at_delta else found.high)
    if found.width > enough or math.isinf(found.high):
        many = len(parts) > MANY and math.isfinite(found.high)
        wide = 0 < found.low < 0.95 * found.high
        by_rho = any(isinstance(e, ConcentratedEvent | DiscreteGaussianVectorEvent) for e, _ in parts)
        for other in ("pure", "zcdp", "approximate", "renyi"):
            wanted = (wide and other != "renyi") or (by_rho and other == "zcdp")
            if many and not wanted:
                continue
            try:
                if other == "renyi" and at_delta:
                    folded: Bound | None = _renyi_below(parts, relation, level, found.high)
                else:
                    folded = ACCOUNTANTS[other](parts, relation)
                value = math.inf if folded is None else _read(folded, level, at_delta).high
            except NotCertified:
                continue  # what could not be computed is no better; what was found stands
            if value < found.high:
                found, name = Interval(low=min(found.low, value), high=value), other
    return _made(found, level, at_delta, name, relation)


def _read_pld(
    parts: Counted, relation: Neighbours, level: float, at_delta: bool
) -> tuple[Interval, str] | None:
    try:
        return _read(_pld(parts, relation), level, at_delta), "pld"
    except NotCertified:
        return None


def _read(bound: Bound, level: float, at_delta: bool) -> Interval:
    if isinstance(bound, Profile):
        if at_delta:
            return bound.epsilon_between(level, tolerance=TOLERANCE)
        return bound.delta_between(level, tolerance=TOLERANCE)
    high = bound.epsilon_at(level) if at_delta else bound.delta_at(level)
    return Interval(low=0.0, high=high)


def _made(found: Interval, level: float, at_delta: bool, name: str, relation: Neighbours) -> Account:
    point = Interval(low=level, high=level)
    return Account(
        epsilon=found if at_delta else point,
        delta=point if at_delta else found,
        accountant=name,
        neighbours=relation,
    )


# Is a stated bound at least the account of what was run? Asked where plans are made, and wherever a record is read.
#
# Pure, Concentrated, Gaussian   the sum of the events' epsilons, rhos or squares of mu
# Renyi                          the sum of the divergences at each order
# Approximate                    the sums of epsilons and deltas, or the composed curve, read at either number

ROUNDING_SLACK = Fraction(1, 10**9)
"""Directed rounding of an event's floats adds at most this much to the exact numbers of the drawn noise."""


def covers(bound: Bound, events: Sequence[Event], *, neighbours: str | Neighbours) -> bool:
    """Whether the account of these events is at most this bound, by any theorem.

    False if no accountant has a number of this kind, because nothing covers an unproved claim. An empty plan
    reveals nothing, so every bound covers it.
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
    return math.isfinite(found) and Fraction(found) <= Fraction(stated) * (1 + ROUNDING_SLACK)


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
