"""Answers that people randomise themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.accounting.events.base import Event, SimpleEvent, both_orders, event_epsilon, flatten, nested
from tacit.accounting.events.mechanisms import RandomizedResponseEvent
from tacit.accounting.events.sampled import PoissonSampledEvent, SampledWithoutReplacementEvent
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import positive, settle, whole
from tacit.guarantees.arguments import how_many
from tacit.guarantees.units import Neighbours
from tacit.pld import ApproximatePair, BalancedResponsePair, Pair, ShuffledPair

__all__ = ["BalancedResponseEvent", "ShuffledEvent"]

_MOST_COMPANIONS = 10**9
"""More people hide no less: beyond this many the bound of this many is taken."""
_LARGEST = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedResponseEvent(SimpleEvent):
    """One answer of one person, where an outcome that supports the truth has odds e^epsilon against one that does not.

    Every category is supported by `supporting` of `outcomes`, every two of them together by `shared`: subset selection
    and Hadamard response are of this kind. Only the ratios of the three numbers matter.
    """

    kind: ClassVar[str] = "balanced_response"
    epsilon: float
    outcomes: int
    supporting: int
    shared: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        settle(
            self, outcomes=how_many("outcomes", self.outcomes, least=2),
            supporting=how_many("supporting", self.supporting), shared=whole("shared", self.shared, least=0),
        )  # fmt: skip
        if not (self.shared < self.supporting and 2 * self.supporting - self.shared <= self.outcomes):
            raise InvalidParameter(
                parameter="shared", value=self.shared,
                must="be below supporting, and 2 supporting - shared at most outcomes",
            )  # fmt: skip

    def pure(self) -> float:
        """Its epsilon."""
        return self.epsilon

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """A respondent's answer is exchanged; leaving one out is a change of another kind."""
        if neighbours is not Neighbours.REPLACE_ONE:
            return both_orders(ApproximatePair(epsilon=self.epsilon, delta=0.0))
        return both_orders(
            BalancedResponsePair(
                epsilon=self.epsilon, outcomes=self.outcomes, supporting=self.supporting, shared=self.shared
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEvent(SimpleEvent):
    """Local answers of `people`, one message each, of which only the multiset is seen: in random order, unsigned.

    `event` is what one person runs on their own data, by themselves: any event with a pure epsilon, or a composition of
    such, whose messages stay together. Randomised response, subset selection and Hadamard response have bounds of their
    own, others the one of all mechanisms with their epsilon. Neighbours replace one person's data; everybody must
    answer by the rule. What each person has without a shuffler, the local epsilon, stays true beside it: it is
    `pure()`. Theorem `shuffled-responses`.
    """

    kind: ClassVar[str] = "shuffled"
    event: Event
    people: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise InvalidParameter(parameter="event", value=type(self.event).__name__, must="be an event")
        settle(self, people=how_many("people", self.people))
        nested(self.event)
        parts = [simple for simple, _ in flatten(self.event)]
        if any(
            isinstance(one, ShuffledEvent | PoissonSampledEvent | SampledWithoutReplacementEvent)
            for one in parts
        ):
            raise InvalidParameter(
                parameter="event",
                value="sampled or shuffled",
                must="be what one person runs on their own data",
            )
        for simple in parts:
            # The pure epsilon must hold where a person's data are replaced: what has no law for that says so.
            simple.pairs(Neighbours.REPLACE_ONE)
            if simple.pure() is None:
                raise NoLaw(
                    operation=f"shuffling of {simple.kind} answers",
                    reason="the theorem is about local answers with a pure epsilon: with a delta an answer may give "
                    "its sender away for certain, and then no crowd hides it",
                    hint="state a local mechanism with a pure epsilon, such as randomised response",
                )

    @property
    def depth(self) -> int:
        """How deep events are nested in it, a mechanism alone not counted."""
        return nested(self.event) if not isinstance(self.event, SimpleEvent) else 0

    def pure(self) -> float:
        """The local epsilon, which needs no shuffler."""
        return event_epsilon(self.event) or 0.0

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """One pair above both orders of a replacement."""
        if neighbours is not Neighbours.REPLACE_ONE:
            raise NoLaw(
                operation="shuffling under add-or-remove",
                reason="the number of messages is seen, so that somebody more or less shows for certain",
                hint="account for replace-one neighbours: who takes part is public, what they answer is not",
            )
        epsilon = self.pure()
        if epsilon > _LARGEST or self.people == 1:
            return both_orders(ApproximatePair(epsilon=epsilon, delta=0.0))
        design = _design(self.event)
        pair = ShuffledPair(epsilon=epsilon, people=min(self.people, _MOST_COMPANIONS), **design)
        return both_orders(pair)


def _design(event: Event) -> dict[str, int]:
    """Outcomes, supporting and shared ones of a local answer, in their smallest numbers; nothing for other events."""
    if isinstance(event, RandomizedResponseEvent):
        return {"outcomes": event.categories}
    if not isinstance(event, BalancedResponseEvent):
        return {}
    common = math.gcd(event.outcomes, event.supporting, event.shared)
    return {name: getattr(event, name) // common for name in ("outcomes", "supporting", "shared")}
