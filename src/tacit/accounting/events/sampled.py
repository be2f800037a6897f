"""One mechanism, or a whole composition, on a secret random part of the units."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import ClassVar

from tacit.accounting.events.mechanisms import (
    Event,
    GaussianEvent,
    RandomizedResponseEvent,
    SimpleEvent,
    both_orders,
    event_epsilon,
    flatten,
    joined_pairs,
    nested,
)
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.checks import check_fields, how_many, listed, positive, probability, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees.units import Neighbours
from tacit.pld import (
    ApproximatePair,
    BalancedResponsePair,
    CoinPair,
    Pair,
    PoissonSampledPair,
    Product,
    SampledReplacementPair,
    ShuffledPair,
    WithoutReplacementPair,
)

__all__ = [
    "BalancedResponseEvent",
    "MixedEvent",
    "PoissonSampledEvent",
    "SampledWithoutReplacementEvent",
    "ShuffledEvent",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampledEvent(SimpleEvent):
    """Runs an event on a secret sample, in which each unit takes part with probability `sampling_rate`.

    `event` is one mechanism or a composition. A composition runs on one common sample (theorem
    `sampled-composition`). A sample drawn anew for each of several runs is a repetition of sampled events.
    """

    kind: ClassVar[str] = "poisson_sampled"
    event: Event
    sampling_rate: float

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise InvalidParameter(parameter="event", value=type(self.event).__name__, must="be an event")
        if isinstance(self.event, SimpleEvent):
            _sampled(self.event)
        nested(self.event)
        check_fields(self, sampling_rate=probability)

    @property
    def depth(self) -> int:
        """The depth of nesting in it; a mechanism alone counts as 0."""
        return nested(self.event) if not isinstance(self.event, SimpleEvent) else 0

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
        """(qP + (1-q)Q, Q) for removals and its swap for additions; for Gaussian noise also replacements.

        Under replace-one the noise multiplier is noise_std over the largest norm of one record (theorem
        `poisson-gaussian-replace-one`), not over the distance of two records.
        """
        if self.sampling_rate == 0:
            return None
        replaced = neighbours is Neighbours.REPLACE_ONE
        if replaced and isinstance(self.event, GaussianEvent):
            return both_orders(SampledReplacementPair(mu=self.event.mu, rate=self.sampling_rate))
        inner = joined_pairs(self.event, neighbours)
        if inner is None:
            return None
        self.must_hold_for(neighbours)
        removal, mirrored = inner[0], inner[1].swapped()
        sampled = PoissonSampledPair(pair=removal, rate=self.sampling_rate)
        if mirrored is removal:
            return both_orders(sampled)
        return sampled, PoissonSampledPair(pair=mirrored, rate=self.sampling_rate).swapped()

    def must_hold_for(self, neighbours: Neighbours) -> None:
        """It is proved for add-or-remove: a release may reveal the sample's size, and so whether somebody is in it."""
        if neighbours is Neighbours.REPLACE_ONE and self.sampling_rate > 0:
            raise NoLaw(
                operation=f"Poisson sampling of {self.event.kind} under replace-one",
                reason="the theorem is about add-or-remove neighbours",
                hint="account for add-or-remove neighbours, or sample without replacement",
            )

    def pure(self) -> float | None:
        """ln(1 + q (e^epsilon - 1)), if the mechanism has a pure epsilon."""
        from tacit.guarantees import Pure, subsample

        own = event_epsilon(self.event)
        if own is None:
            return None
        sampled = subsample(Pure(epsilon=own), rate=self.sampling_rate, scheme="poisson")
        return sampled.epsilon_at(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledWithoutReplacementEvent(SimpleEvent):
    """One mechanism on a secret uniform sample of a fixed share `sampling_rate` of the units."""

    kind: ClassVar[str] = "without_replacement"
    event: SimpleEvent
    sampling_rate: float

    def __post_init__(self) -> None:
        _sampled(self.event)
        check_fields(self, sampling_rate=probability)

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
        """delta'(e) = q delta(ln(1 + (e^e - 1)/q)), for replacements."""
        inner = self.event.pairs(neighbours)
        if self.sampling_rate == 0 or inner is None:
            return None
        if neighbours is not Neighbours.REPLACE_ONE:
            raise NoLaw(
                operation="sampling without replacement under add-or-remove",
                reason="the theorem is about replace-one neighbours: the size of the sample is public",
                hint="account for replace-one neighbours, or use Poisson sampling",
            )
        if self.sampling_rate == 1:
            return inner
        chosen = inner[:1] if inner[0] is inner[1] else inner
        products = tuple(dict.fromkeys(Product.of(pair) for pair in chosen))
        return both_orders(WithoutReplacementPair(products=products, rate=self.sampling_rate))


def _sampled(event: object) -> None:
    if not isinstance(event, SimpleEvent) or isinstance(
        event, PoissonSampledEvent | SampledWithoutReplacementEvent
    ):
        raise InvalidParameter(
            parameter="event",
            value=getattr(event, "kind", type(event).__name__),
            must="be one mechanism, not yet sampled",
            hint="sample each mechanism of a composition",
        )


# Answers that people randomise themselves.

_MOST_COMPANIONS = 10**9
"""More people hide an answer at least as well, so the bound for this number is used for larger ones."""
_LARGEST = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedResponseEvent(SimpleEvent):
    """One answer of one person. An outcome that supports the truth has odds e^epsilon against one that does not.

    `supporting` of `outcomes` support each category, and `shared` support each pair of categories, as in subset
    selection and Hadamard response. Only the ratios of the three numbers matter.
    """

    kind: ClassVar[str] = "balanced_response"
    epsilon: float
    outcomes: int
    supporting: int
    shared: int

    def __post_init__(self) -> None:
        check_fields(
            self,
            epsilon=positive,
            outcomes=partial(how_many, least=2),
            supporting=how_many,
            shared=partial(whole, least=0),
        )
        if not (self.shared < self.supporting and 2 * self.supporting - self.shared <= self.outcomes):
            raise InvalidParameter(
                parameter="shared", value=self.shared,
                must="be below supporting, and 2 supporting - shared at most outcomes",
            )  # fmt: skip

    def pure(self) -> float:
        """Its epsilon."""
        return self.epsilon

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """A respondent's answer is replaced; leaving an answer out is another kind of change."""
        if neighbours is not Neighbours.REPLACE_ONE:
            return both_orders(ApproximatePair(epsilon=self.epsilon, delta=0.0))
        return both_orders(
            BalancedResponsePair(
                epsilon=self.epsilon, outcomes=self.outcomes, supporting=self.supporting, shared=self.shared
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEvent(SimpleEvent):
    """Local answers of `people`, one message each. Readers see only the multiset of messages, in random order
    and unsigned.

    `event` is what one person runs on their own data, separately: any event with a pure epsilon, or a composition of
    such, whose messages stay together. Randomised response, subset selection and Hadamard response have bounds of their
    own, others the one of all mechanisms with their epsilon. Neighbours replace one person's data; everybody must
    answer by the rule. Without a shuffler each person still has the local epsilon, `pure()`.
    Theorem `shuffled-responses`.
    """

    kind: ClassVar[str] = "shuffled"
    event: Event
    people: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise InvalidParameter(parameter="event", value=type(self.event).__name__, must="be an event")
        check_fields(self, people=how_many)
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
        """The depth of nesting in it; a mechanism alone counts as 0."""
        return nested(self.event) if not isinstance(self.event, SimpleEvent) else 0

    def pure(self) -> float:
        """The local epsilon, which needs no shuffler."""
        return event_epsilon(self.event) or 0.0

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """One pair above both orders of a replacement."""
        if neighbours is not Neighbours.REPLACE_ONE:
            raise NoLaw(
                operation="shuffling under add-or-remove",
                reason="the number of messages is visible, and reveals whether somebody was added or removed",
                hint="account for replace-one neighbours: who takes part is public, what they answer is not",
            )
        epsilon = self.pure()
        if epsilon > _LARGEST or self.people == 1:
            return both_orders(ApproximatePair(epsilon=epsilon, delta=0.0))
        design = _design(self.event)
        pair = ShuffledPair(epsilon=epsilon, people=min(self.people, _MOST_COMPANIONS), **design)
        return both_orders(pair)


def _design(event: Event) -> dict[str, int]:
    """The smallest numbers of outcomes, supporting outcomes and shared outcomes of a local answer; zeros for other
    events.
    """
    if isinstance(event, RandomizedResponseEvent):
        return {"outcomes": event.categories}
    if not isinstance(event, BalancedResponseEvent):
        return {}
    common = math.gcd(event.outcomes, event.supporting, event.shared)
    return {name: getattr(event, name) // common for name in ("outcomes", "supporting", "shared")}


# A mechanism that a coin chooses.


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedEvent(SimpleEvent):
    """One of `events` is run, the i-th with probability `weights`[i], for any data.

    The account is exact where the coin is published with the answer, and an upper bound where it is kept secret
    (theorem `coin-mixture`). A member may be a composition. If the coin chooses no member, nothing runs and nothing is
    revealed. Missing weight is the probability of running nothing.
    """

    kind: ClassVar[str] = "mixed"
    events: tuple[Event, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        check_fields(self, events=partial(listed, must="be a list of events"))
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
        """The largest of the members' epsilons, since any member may be chosen."""
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
