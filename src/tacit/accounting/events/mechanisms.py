"""Events: their interface, their repetition and composition, and one run of one mechanism.

The events of subsampled mechanisms are in sampled.py.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import check_fields, how_many, listed, non_negative, positive, probability, set_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, down, up, upper
from tacit.guarantees import Concentrated, GaussianDP, Profile, Pure, convert
from tacit.guarantees.running_sum import PURE, summed
from tacit.guarantees.units import Neighbours
from tacit.pld import (
    ApproximatePair,
    ConcentratedPair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    ExponentialPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    MaximumPair,
    ObjectivePair,
    Pair,
    Product,
    RandomizedResponsePair,
    SkellamPair,
    StaircasePair,
)
from tacit.pld.pairs.laplace import TruncatedLaplacePair

__all__ = [
    "ApproximateEvent",
    "ComposedEvent",
    "ConcentratedEvent",
    "DiscreteGaussianEvent",
    "DiscreteGaussianVectorEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "ObjectivePerturbationEvent",
    "PermuteAndFlipEvent",
    "PureEvent",
    "RandomizedResponseEvent",
    "RepeatedEvent",
    "SimpleEvent",
    "SkellamEvent",
    "StaircaseEvent",
    "TabulatedEvent",
    "TruncatedDiscreteLaplaceEvent",
    "flatten",
]


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


# One run of one mechanism: the simple events.


WIDEST = 1000
"""The largest noise_std, in steps, of a discrete Gaussian vector whose curve is summed."""
LONGEST = 64
"""The largest square of a move whose patterns are listed."""
MOST_PATTERNS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent(SimpleEvent):
    """Gaussian noise with noise_std = noise_multiplier * l2_sensitivity."""

    kind: ClassVar[str] = "gaussian"
    meaning: ClassVar[str] = "Gaussian noise"
    noise_multiplier: float

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive)

    @property
    def mu(self) -> float:
        """1 / noise_multiplier, rounded up."""
        return up(1 / Fraction(self.noise_multiplier))

    @property
    def squared(self) -> Fraction:
        """mu^2 as a binary fraction of 256 digits, rounded up: sums of many stay short."""
        noise, unit = (x * x for x in self.noise_multiplier.as_integer_ratio())
        digits = max(0, 256 + noise.bit_length() - unit.bit_length())
        return Fraction(-(-(unit << digits) // noise), 1 << digits)

    def concentrated(self) -> float:
        """1 / (2 noise_multiplier^2)."""
        return upper(lambda: 1 / (2 * ball(self.noise_multiplier) ** 2))

    def gaussian_squared(self) -> Fraction:
        """mu^2 itself."""
        return self.squared

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """One symmetric pair of normal distributions, kept by its mu^2."""
        return both_orders(GaussianPair(squared=self.squared))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbationEvent(SimpleEvent):
    """The minimiser of a sum of convex losses, a ridge and a random linear term with Gaussian coefficients.

    noise_multiplier = noise_std / largest gradient of one row, curvature = its largest second derivative / ridge
    (`loss` "logistic": radius^2 / ridge), rows = how many rows are added or taken away between neighbours: twice a
    unit's rows where units are replaced. Theorems `objective-perturbation`, `objective-groups`, `objective-bounded`,
    `objective-log-cosh`.
    """

    kind: ClassVar[str] = "objective_perturbation"
    called: ClassVar[str] = (
        "objective perturbation (Chaudhuri et al. 2011; Kifer et al. 2012) by its own curve"
    )
    example: ClassVar[Mapping[str, Any]] = {
        "noise_multiplier": 4.0, "curvature": 0.4, "rows": 2, "loss": "logistic",
    }  # fmt: skip
    noise_multiplier: float
    curvature: float
    rows: int = 1
    loss: str = "logistic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", positive("noise_multiplier", self.noise_multiplier))
        object.__setattr__(self, "curvature", positive("curvature", self.curvature))
        set_fields(self, rows=how_many("rows", self.rows))
        self._pair()

    def _pair(self) -> ObjectivePair:
        mu = up(1 / Fraction(self.noise_multiplier))
        return ObjectivePair(mu=mu, curvature=self.curvature, rows=self.rows, loss=self.loss)

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """One curve for both orders: that of Gaussian noise outside a middle part, and its chord inside."""
        return both_orders(self._pair())


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithEpsilon(SimpleEvent):
    """A mechanism that is stated by the pure epsilon it has."""

    epsilon: float

    def __post_init__(self) -> None:
        check_fields(self, epsilon=positive)

    def pure(self) -> float:
        """Its epsilon."""
        return self.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceEvent(_WithEpsilon):
    """Laplace noise with noise_scale = l1_sensitivity / epsilon."""

    kind: ClassVar[str] = "laplace"
    meaning: ClassVar[str] = "Laplace noise"

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """Two Laplace distributions, a sensitivity apart."""
        return both_orders(LaplacePair(epsilon=self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceEvent(_WithEpsilon):
    """Discrete Laplace noise, Pr ~ exp(-epsilon |k| / sensitivity), on integers that move by `sensitivity`."""

    kind: ClassVar[str] = "discrete_laplace"
    meaning: ClassVar[str] = "Laplace noise on integers (geometric)"
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _WithEpsilon.__post_init__(self)
        check_fields(self, sensitivity=how_many)

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """Two discrete Laplace distributions. The rate is rounded up, which only enlarges the stated loss."""
        rate = up(Fraction(self.epsilon) / self.sensitivity)
        return both_orders(DiscreteLaplacePair(rate=rate, sensitivity=self.sensitivity))


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedDiscreteLaplaceEvent(SimpleEvent):
    """Discrete Laplace noise, Pr ~ exp(-epsilon |k| / sensitivity), on -largest_noise..largest_noise alone.

    The integers move by at most `sensitivity` altogether (theorem `truncated-discrete-laplace`). An output beyond the
    range of one neighbour's noise identifies the other neighbour; its probability is the delta.
    """

    kind: ClassVar[str] = "truncated_discrete_laplace"
    meaning: ClassVar[str] = "bounded Laplace noise on integers"
    sought: ClassVar[bool] = False
    called: ClassVar[str] = (
        "truncated discrete Laplace (bounded noise); `mechanisms.TruncatedDiscreteLaplace` draws"
    )
    example: ClassVar[Mapping[str, Any]] = {"epsilon": 0.6, "largest_noise": 80, "sensitivity": 2}
    epsilon: float
    largest_noise: int
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, epsilon=positive, sensitivity=how_many, largest_noise=how_many)
        _ = self._pair

    @property
    def _pair(self) -> TruncatedLaplacePair:
        return TruncatedLaplacePair(
            epsilon=self.epsilon, largest_noise=self.largest_noise, sensitivity=self.sensitivity
        )

    def approximate(self) -> tuple[float, float]:
        """Its epsilon, and the chance of an output that one neighbour alone can have."""
        return self.epsilon, self._pair.infinite_mass.high

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """The distribution, and the same one shifted by the sensitivity."""
        return both_orders(self._pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianEvent(SimpleEvent):
    """Discrete Gaussian noise with noise_std = noise_multiplier * sensitivity, on integers."""

    kind: ClassVar[str] = "discrete_gaussian"
    meaning: ClassVar[str] = "Gaussian noise on integers"
    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive, sensitivity=how_many)

    @property
    def rho(self) -> float:
        """The concentrated bound that it shares with continuous noise: 1 / (2 noise_multiplier^2)."""
        return upper(lambda: 1 / (2 * ball(self.noise_multiplier) ** 2))

    def concentrated(self) -> float:
        """Its rho."""
        return self.rho

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """The pair of its own summed probabilities; never the continuous curve."""
        std = down(Fraction(self.noise_multiplier) * self.sensitivity)
        return both_orders(DiscreteGaussianPair(noise_std=std, sensitivity=self.sensitivity))


@lru_cache(maxsize=256)
def largest_moves(square: int, coordinates: int) -> tuple[tuple[int, ...], ...]:
    """The maximal integer moves v with |v|^2 <= square, up to order and sign; an empty list if they are too many.

    A move is dominated by one that is at least as large in every coordinate, since each coordinate's noise is
    log-concave and independent (theorem `discrete-gaussian`).
    """

    def visit(rest: int, most: int, left: int) -> Iterator[tuple[int, ...]]:
        if left == 0 or rest == 0 or most == 0:
            yield ()
            return
        for first in range(min(most, math.isqrt(rest)), 0, -1):
            for tail in visit(rest - first * first, first, left - 1):
                yield (first, *tail)

    if coordinates == 1:
        return ((math.isqrt(square),),)
    if square > LONGEST:
        return ()
    found: list[tuple[int, ...]] = []
    for pattern in visit(square, math.isqrt(square), coordinates):
        if not any(_within(pattern, other) for other in found):
            found = [other for other in found if not _within(other, pattern)]
            found.append(pattern)
    return tuple(found) if len(found) <= MOST_PATTERNS else ()


def _within(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return len(left) <= len(right) and all(a <= b for a, b in zip(left, right, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianVectorEvent(SimpleEvent):
    """Independent discrete Gaussian noise of this noise_std on integers, of which at most `coordinates` move at once.

    The squares of the moves add up to at most `squared_sensitivity`. Its curve is the largest over all such integer
    moves, each the product of its coordinates' curves, where these can be listed; elsewhere it is the curve of
    rho = squared_sensitivity / (2 noise_std^2) (theorem `discrete-gaussian`).
    """

    kind: ClassVar[str] = "discrete_gaussian_vector"
    meaning: ClassVar[str] = "Gaussian noise on several integers"
    noise_std: float
    squared_sensitivity: int
    coordinates: int

    def __post_init__(self) -> None:
        check_fields(self, noise_std=positive)
        square = how_many("squared_sensitivity", self.squared_sensitivity)
        # No more coordinates can move than there are units of the square.
        set_fields(
            self,
            squared_sensitivity=square,
            coordinates=min(how_many("coordinates", self.coordinates), square),
        )

    @property
    def moves(self) -> tuple[tuple[int, ...], ...]:
        """The worst moves, largest coordinate first; an empty list if they are too many to sum or the noise is too
        wide.
        """
        return largest_moves(self.squared_sensitivity, self.coordinates) if self.noise_std <= WIDEST else ()

    def concentrated(self) -> float:
        """squared_sensitivity / (2 noise_std^2), rounded up."""
        return up(Fraction(self.squared_sensitivity) / (2 * Fraction(self.noise_std) ** 2))

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """The worst move at every epsilon."""
        if not self.moves:
            return both_orders(ConcentratedPair(rho=self.concentrated()))
        products = tuple(
            Product(
                pairs=[(DiscreteGaussianPair(noise_std=self.noise_std, sensitivity=s), n) for s, n in counts]
            )
            for counts in (sorted(Counter(move).items()) for move in self.moves)
        )
        return both_orders(MaximumPair(products=products))

    def beside_others(self) -> Event:
        """The composition rule: one worst move composes coordinate by coordinate, several moves compose by their common
        rho.

        The largest of several curves is known at its points only, and a product of such curves loses more than rho.
        """
        if len(self.moves) != 1:
            return ConcentratedEvent(rho=self.concentrated())
        each: list[Event] = []
        for steps, times in sorted(Counter(self.moves[0]).items()):
            one = DiscreteGaussianEvent(
                noise_multiplier=down(Fraction(self.noise_std) / steps), sensitivity=steps
            )
            each.append(one if times == 1 else RepeatedEvent(event=one, times=times))
        return each[0] if len(each) == 1 else ComposedEvent(events=tuple(each))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamEvent(SimpleEvent):
    """Skellam noise of this variance on one integer that moves by at most `sensitivity`; closed under sums."""

    kind: ClassVar[str] = "skellam"
    meaning: ClassVar[str] = "Skellam noise on integers"
    noise_variance: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, noise_variance=positive, sensitivity=how_many)

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """Its own summed probabilities."""
        return both_orders(SkellamPair(noise_variance=self.noise_variance, sensitivity=self.sensitivity))


@dataclass(frozen=True, slots=True, kw_only=True)
class StaircaseEvent(_WithEpsilon):
    """Staircase noise with steps of width `gamma`; 1/(1 + e^{epsilon/2}) is best for the mean absolute error."""

    kind: ClassVar[str] = "staircase"
    meaning: ClassVar[str] = "staircase noise"
    gamma: float

    def __post_init__(self) -> None:
        _WithEpsilon.__post_init__(self)
        check_fields(self, gamma=probability)

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """Losses -epsilon, 0 and epsilon."""
        return both_orders(StaircasePair(epsilon=self.epsilon, gamma=self.gamma))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialEvent(_WithEpsilon):
    """The exponential mechanism with Pr ~ exp(epsilon score / (2 sensitivity)): losses range over epsilon."""

    kind: ClassVar[str] = "exponential"
    meaning: ClassVar[str] = "the exponential mechanism"

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """The worst pair among those whose losses lie in an interval of length epsilon."""
        return both_orders(ExponentialPair(epsilon=self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlipEvent(_WithEpsilon):
    """Permute-and-flip: pure epsilon, without the exponential mechanism's bounded range."""

    kind: ClassVar[str] = "permute_and_flip"
    meaning: ClassVar[str] = "permute-and-flip"

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """The worst pair of pure epsilon."""
        return both_orders(ApproximatePair(epsilon=self.epsilon, delta=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponseEvent(_WithEpsilon):
    """Gives the true one of `categories` answers with odds e^epsilon against each other one."""

    kind: ClassVar[str] = "randomized_response"
    meaning: ClassVar[str] = "one of several answers"
    categories: int = 2

    def __post_init__(self) -> None:
        _WithEpsilon.__post_init__(self)
        check_fields(self, categories=partial(how_many, least=2))

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """A respondent's answer is replaced; leaving an answer out is another kind of change."""
        if neighbours is not Neighbours.REPLACE_ONE and self.categories > 2:
            return both_orders(ApproximatePair(epsilon=self.epsilon, delta=0.0))
        return both_orders(RandomizedResponsePair(epsilon=self.epsilon, categories=self.categories))


@dataclass(frozen=True, slots=True, kw_only=True)
class PureEvent(_WithEpsilon):
    """Any mechanism with this pure epsilon."""

    kind: ClassVar[str] = "pure"
    meaning: ClassVar[str] = "anything with this epsilon"

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """Randomised response, the worst of them."""
        return both_orders(ApproximatePair(epsilon=self.epsilon, delta=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateEvent(SimpleEvent):
    """Any mechanism with this (epsilon, delta)."""

    kind: ClassVar[str] = "approximate"
    meaning: ClassVar[str] = "anything with this (epsilon, delta)"
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_fields(self, epsilon=non_negative, delta=partial(probability, below_one=True))

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
        """The worst pair of Kairouz, Oh and Viswanath."""
        if self.epsilon == 0 and self.delta == 0:
            return None
        return both_orders(ApproximatePair(epsilon=self.epsilon, delta=self.delta))

    def pure(self) -> float | None:
        """Its epsilon, if delta = 0."""
        return self.epsilon if self.delta == 0 else None

    def approximate(self) -> tuple[float, float]:
        """What it states."""
        return self.epsilon, self.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcentratedEvent(SimpleEvent):
    """Any mechanism with this rho."""

    kind: ClassVar[str] = "concentrated"
    meaning: ClassVar[str] = "anything with this rho (zCDP)"
    rho: float

    def __post_init__(self) -> None:
        check_fields(self, rho=positive)

    def concentrated(self) -> float:
        """Its rho."""
        return self.rho

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """The best curve that follows from rho."""
        return both_orders(ConcentratedPair(rho=self.rho))


@dataclass(frozen=True, slots=True, kw_only=True)
class TabulatedEvent(SimpleEvent):
    """A mechanism whose worst neighbours have these two distributions of outcomes.

    If a unit is added or removed, `p` is the distribution of the outcomes with it and `q` without it. For a replaced
    unit neither order comes first: another release may reveal more in the opposite order, so the worse order is taken
    at every epsilon.
    """

    kind: ClassVar[str] = "tabulated"
    p: tuple[float, ...]
    q: tuple[float, ...]
    _pair: FinitePair = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fields(self, p=listed, q=listed)
        object.__setattr__(self, "_pair", FinitePair(p=self.p, q=self.q))

    def pure(self) -> float | None:
        """The largest loss in either order, if every outcome has a finite one."""
        if self._pair.infinite_mass.high > 0 or self._pair.reverse_infinite_mass.high > 0:
            return None
        return max(self._pair.largest_loss.high, -self._pair.smallest_loss.low, 0.0)

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair] | None:
        """The table and its swap for removals and additions; one table above both for replacements."""
        if self._pair.p == self._pair.q:
            return None
        if neighbours is Neighbours.REPLACE_ONE:
            return both_orders(_above_both_orders(self._pair))
        return both_orders(self._pair)


def _above_both_orders(pair: FinitePair) -> FinitePair:
    """The pair of the larger of h(t) = sup_S P(S) - t Q(S) and its swap h'(t) = sup_S Q(S) - t P(S) at each t; exact.

    Both are convex and straight between the likelihood ratios, and so is their maximum. At a corner t, Q has
    the change of slope as its mass, and P has t times as much. The pair is its own swap, so the corners above 1
    determine the others: 1/t has the exchanged masses of t, and 1 the remaining mass.
    """
    if pair.symmetric:
        return pair
    points, whole = _larger_points(pair)
    slopes = [
        Fraction(v * m - u * k, whole * (n * m - j * k))
        for (j, m, u), (n, k, v) in pairwise(points)
    ]  # fmt: skip
    # Beyond the last ratio the curve is flat: what is left there Q never gives. At 0 lies what P never gives.
    infinite_mass = Fraction(points[-1][2], whole * points[-1][1])
    masses = [after - before for before, after in pairwise([*slopes, Fraction(0)])]
    above = [
        (mass * Fraction(n, m), mass) for (n, m, _), mass in zip(points[1:], masses, strict=True) if mass
    ]
    if infinite_mass:
        above.append((infinite_mass, Fraction(0)))
    middle = 1 - sum((a + b for a, b in above), Fraction(0))
    rows = [*((b, a) for a, b in reversed(above)), *([(middle, middle)] if middle else []), *above]
    return FinitePair.rising(p=tuple(a for a, _ in rows), q=tuple(b for _, b in rows))


def _larger_points(pair: FinitePair) -> tuple[list[tuple[int, int, int]], int]:
    """The larger of both curves at every corner from 1 on, as (n, m, v) for the value v / (whole m) at n / m."""
    whole = math.lcm(*(x.denominator for x in (*pair.p, *pair.q)))
    p, q = ([x.numerator * (whole // x.denominator) for x in side] for side in (pair.p, pair.q))
    below, under = [0, *accumulate(p)], [0, *accumulate(q)]
    ratios = {(1, 1)}
    for a, b in zip(p, q, strict=True):
        if divisor := math.gcd(a, b) if a and b else 0:
            ratios.add((max(a, b) // divisor, min(a, b) // divisor))
    # Different ratios with denominators below 2^d are 2^-2d apart.
    digits = 2 * max(m.bit_length() for _, m in ratios)
    out: list[tuple[int, int, int]] = []
    start, stop, last = 0, len(p), (0, 0, 0, 0)
    for n, m in sorted(ratios, key=lambda r: (r[0] << digits) // r[1]):
        while start < len(p) and p[start] * m <= n * q[start]:
            start += 1
        while stop and q[stop - 1] * m <= n * p[stop - 1]:
            stop -= 1
        # P - t Q of the outcomes with p > t q, and Q - t P of those with q > t p.
        ahead = (whole - below[start]) * m - n * (whole - under[start])
        back = under[stop] * m - n * below[stop]
        j, k, high, gap = last
        if gap * (ahead - back) < 0:
            # The curves meet on the way.
            to = ahead - back
            found, over = j * to - n * gap, k * to - m * gap
            value = high * to - ahead * gap
            out.append((found, over, value) if over > 0 else (-found, -over, -value))
        out.append((n, m, max(ahead, back)))
        last = (n, m, ahead, ahead - back)
    return out, whole
