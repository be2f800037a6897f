"""A mechanism that a coin chooses."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tacit.accounting.events.base import Event, SimpleEvent, event_epsilon, joined_pairs, nested
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import probability, settle
from tacit.guarantees.arguments import listed
from tacit.guarantees.units import Neighbours
from tacit.pld import ApproximatePair, CoinPair, Pair

__all__ = ["MixedEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedEvent(SimpleEvent):
    """One of `events` is run, the i-th with probability `weights`[i], whatever the data are.

    The account is exact where the coin is published with the answer, and an upper bound where it is kept secret
    (theorem `coin-mixture`). A member may be a composition. What a coin that chose no member reveals is nothing: for
    "run it or do not", leave the rest of 1 out; missing weight is the probability that nothing is run.
    """

    kind: ClassVar[str] = "mixed"
    events: tuple[Event, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        settle(self, events=listed("events", self.events, must="be a list of events"))
        if not self.events:
            raise EmptyComposition(what="the mixture")
        for event in self.events:
            if not isinstance(event, Event):
                raise InvalidParameter(parameter="events", value=type(event).__name__, must="be events")
        nested(*self.events)
        weights = tuple(probability("weights", w) for w in listed("weights", self.weights))
        total = sum(map(Fraction, weights), Fraction(0))
        if len(weights) != len(self.events) or not 0 < total <= 1 + Fraction(1, 10**12):
            raise InvalidParameter(
                parameter="weights", value=len(weights), must="be one an event, with a sum in (0, 1]"
            )
        object.__setattr__(self, "weights", weights)

    @property
    def depth(self) -> int:
        """How deep events are nested in it."""
        return nested(*self.events)

    def must_hold_for(self, neighbours: Neighbours) -> None:
        """Every member that may be chosen must."""
        for event, weight in zip(self.events, self.weights, strict=True):
            for simple, _ in event.parts() if weight > 0 else ():
                simple.must_hold_for(neighbours)

    def pure(self) -> float | None:
        """The largest of the members' epsilons: any of them may be chosen."""
        own = [
            event_epsilon(event)
            for event, weight in zip(self.events, self.weights, strict=True)
            if weight > 0
        ]
        known = [epsilon for epsilon in own if epsilon is not None]
        return max(known) if len(known) == len(own) else None

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
        """The members' pairs, by their weights, in each order of neighbours."""
        exact = [Fraction(w) for w in self.weights]
        total = max(sum(exact, Fraction(0)), Fraction(1))
        removal: list[Pair] = []
        addition: list[Pair] = []
        weights: list[Fraction] = []
        for event, weight in zip(self.events, exact, strict=True):
            pairs = joined_pairs(event, neighbours) if weight > 0 else None
            if pairs is not None:
                removal.append(pairs[0])
                addition.append(pairs[1])
                weights.append(weight / total)
        if not removal:
            return None
        rest = 1 - sum(weights, Fraction(0))
        if rest > 0:  # a member that reveals nothing
            nothing = ApproximatePair(epsilon=0.0, delta=0.0)
            removal.append(nothing)
            addition.append(nothing)
            weights.append(rest)
        forward = CoinPair(pairs=tuple(removal), weights=tuple(weights))
        if removal == addition:
            return forward, forward
        return forward, CoinPair(pairs=tuple(addition), weights=tuple(weights))
