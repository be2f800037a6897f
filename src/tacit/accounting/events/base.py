"""The interface of all events, and their repetition, composition and flattening."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import check_fields, how_many, listed, set_fields
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Concentrated, GaussianDP, Profile, Pure, convert
from tacit.guarantees.running_sum import PURE, summed
from tacit.guarantees.units import Neighbours
from tacit.pld import Pair, Product

__all__ = ["ComposedEvent", "Event", "RepeatedEvent", "SimpleEvent", "flatten"]

DEEPEST = 24
"""The largest depth of nested events, in memory and in records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What was run. `parts` flattens it into simple events with their multiplicities, in one place.

    A class that `tacit.accounting.events` exports is thereby known to records (`kind` and the fields), to the command
    line (its kind is a word, if it has a `meaning`), to the glossary (`called`) and to the contract tests (`example`).
    """

    kind: ClassVar[str]
    meaning: ClassVar[str] = ""
    """The help text of its word on the command line. The word's values are the fields, the noise first."""
    sought: ClassVar[bool] = True
    """Whether calibration may search for its noise: more noise never costs more."""
    called: ClassVar[str] = ""
    """The mechanism in the field's words, for the glossary."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a valid call; five runs of it have a finite epsilon at delta = 1e-6."""

    @abstractmethod
    def parts(self) -> Iterator[tuple[SimpleEvent, int]]:
        """The simple events that it consists of, each with its number of runs."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The stated parameters, in the order of the constructor."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleEvent(Event):
    """One run of one mechanism."""

    def parts(self) -> Iterator[tuple[SimpleEvent, int]]:
        """Itself, once."""
        yield self, 1

    @abstractmethod
    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
        """The dominating pairs of (removal, addition), or of both orders of a replacement; None if the event reveals
        nothing.
        """

    def must_hold_for(self, neighbours: Neighbours) -> None:
        """Raises if the event's own numbers (epsilon, rho, mu) are proved for the other relation only."""

    def pure(self) -> float | None:
        """A valid epsilon with delta = 0; None if the event has none."""
        return None

    def concentrated(self) -> float | None:
        """A valid rho (zCDP): the event's own, or that of its pure epsilon; None if it has neither."""
        epsilon = self.pure()
        return None if epsilon is None else convert(Pure(epsilon=epsilon), Concentrated).rho

    def approximate(self) -> tuple[float, float] | None:
        """The event's stated epsilon and delta, or its pure epsilon with delta 0."""
        epsilon = self.pure()
        return None if epsilon is None else (epsilon, 0.0)

    def gaussian_squared(self) -> Fraction | None:
        """mu^2, rounded up, of an event that is exactly Gaussian noise (Gaussian DP)."""
        return None

    def mu_squared(self) -> Fraction | None:
        """A valid mu^2: the event's own, or that of its pure epsilon (`pure-to-gdp`); None if it has neither."""
        own, epsilon = self.gaussian_squared(), self.pure()
        if own is not None or epsilon is None:
            return own
        return Fraction(convert(Pure(epsilon=epsilon), GaussianDP).mu) ** 2

    def renyi(self, order: float, *, neighbours: Neighbours) -> float | None:
        """The larger Rényi divergence of both orders of neighbours at this order; None if it is infinite."""
        pairs = self.pairs(neighbours)
        if pairs is None:
            return 0.0
        found = Profile(directions=tuple(dict.fromkeys(Product.of(pair) for pair in pairs))).renyi(order)
        return found if math.isfinite(found) else None


def both_orders(pair: Pair) -> tuple[Pair, Pair]:
    """A pair and its swap: the two orders of neighbours."""
    return pair, pair.swapped()


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedEvent(Event):
    """An event that runs `times` times; the mechanisms may be chosen adaptively, the parameters are these."""

    kind: ClassVar[str] = "repeated"
    event: Event
    times: int
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        set_fields(self, times=how_many("times", self.times))
        if not isinstance(self.event, Event):
            raise InvalidParameter(parameter="event", value=type(self.event).__name__, must="be an event")
        set_fields(self, depth=_below([self.event]))

    def parts(self) -> Iterator[tuple[SimpleEvent, int]]:
        """The parts of the event, each `times` as often."""
        for simple, count in self.event.parts():
            yield simple, count * self.times


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedEvent(Event):
    """Several events about the same data."""

    kind: ClassVar[str] = "composed"
    events: tuple[Event, ...]
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fields(self, events=partial(listed, must="be a list of events"))
        if not self.events:
            raise EmptyComposition(what="the composed event")
        for event in self.events:
            if not isinstance(event, Event):
                raise InvalidParameter(parameter="events", value=type(event).__name__, must="be events")
        set_fields(self, depth=_below(self.events))

    def parts(self) -> Iterator[tuple[SimpleEvent, int]]:
        """The parts of all events."""
        for event in self.events:
            yield from event.parts()


def joined_pairs(event: Event, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
    """The dominating pairs of an event with all its parts, read as one mechanism; None if the event reveals nothing."""
    found = [(simple.pairs(neighbours), count) for simple, count in flatten(event)]
    known = [(pairs, count) for pairs, count in found if pairs is not None]
    if not known:
        return None
    if len(known) == 1 and known[0][1] == 1:
        return known[0][0]
    removal = Product(pairs=[(pairs[0], count) for pairs, count in known]).as_pair()
    addition = Product(pairs=[(pairs[1], count) for pairs, count in known]).as_pair()
    return (removal, removal) if addition == removal else (removal, addition)


def event_epsilon(event: Event) -> float | None:
    """The pure epsilon of an event or a composition, rounded up; None if a part has none."""
    found = [(PURE.of_release(simple, neighbours=Neighbours.ADD_OR_REMOVE), n) for simple, n in event.parts()]
    known = [(amounts, n) for amounts, n in found if amounts is not None]
    return PURE.bound(summed(PURE, known)).epsilon_at(0.0) if len(known) == len(found) else None


def nested(*inner: Event) -> int:
    """The depth of nesting of these events, with one more around them."""
    return _below(inner)


def _below(inner: Sequence[Event]) -> int:
    """The nesting depth of an event around these. Events read from a record are no deeper."""
    depth = 1 + max(getattr(event, "depth", 0) for event in inner)
    if depth > DEEPEST:
        raise InvalidParameter(
            parameter="event",
            value=f"nested {depth} deep",
            must=f"be nested at most {DEEPEST} deep",
            hint="compose all events in one list",
        )
    return depth


def flatten(events: Event | Sequence[Event]) -> list[tuple[SimpleEvent, int]]:
    """All simple events with their multiplicities; equal events are counted together."""
    given = (events,) if isinstance(events, Event) else listed("events", events, must="be a list of events")
    if not given:
        raise EmptyComposition(what="the list of events")
    counts: dict[SimpleEvent, int] = {}
    for event in given:
        if not isinstance(event, Event):
            raise InvalidParameter(parameter="events", value=type(event).__name__, must="be events")
        for simple, count in event.parts():
            counts[simple] = counts.get(simple, 0) + count
    return list(counts.items())
