"""One mechanism, or a whole composition, on a secret random part of the units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.accounting.events.base import Event, SimpleEvent, both_orders, event_epsilon, joined_pairs, nested
from tacit.accounting.events.mechanisms import GaussianEvent
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import probability
from tacit.guarantees.units import Neighbours
from tacit.pld import Pair, PoissonSampledPair, Product, SampledReplacementPair, WithoutReplacementPair

__all__ = ["PoissonSampledEvent", "SampledWithoutReplacementEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampledEvent(SimpleEvent):
    """A secret sample in which each unit takes part with probability `sampling_rate`, and what is run on it.

    `event` is one mechanism, or a composition: then one sample is drawn, and all of it is run on that sample (theorem
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
        object.__setattr__(self, "sampling_rate", probability("sampling_rate", self.sampling_rate))

    @property
    def depth(self) -> int:
        """How deep events are nested in it, a mechanism alone not counted."""
        return nested(self.event) if not isinstance(self.event, SimpleEvent) else 0

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
        """(qP + (1-q)Q, Q) for removals and its swap for additions; for Gaussian noise also replacements.

        Under replace-one the noise multiplier is noise_std over the largest norm of one record (theorem
        `poisson-gaussian-replace-one`); the distance of two records would not do.
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
        """It is proved for add-or-remove: a release may tell the sample's size, and so whether somebody is in it."""
        if neighbours is Neighbours.REPLACE_ONE and self.sampling_rate > 0:
            raise NoLaw(
                operation=f"Poisson sampling of {self.event.kind} under replace-one",
                reason="the theorem is about add-or-remove neighbours",
                hint="account for add-or-remove neighbours, or sample without replacement",
            )

    def pure(self) -> float | None:
        """ln(1 + q (e^epsilon - 1)) where the mechanism has a pure epsilon."""
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
        object.__setattr__(self, "sampling_rate", probability("sampling_rate", self.sampling_rate))

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
