"""Which keys may be named: selection of unknown keys by how many units support them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray, Booleans
from tacit.exact.checks import flag, settle, whole
from tacit.exact.integers import add_exact, integer_array, narrowed
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import down, up
from tacit.guarantees import Approximate
from tacit.mechanisms.base import Mechanism, confidence_level, epsilon_parameter, shown
from tacit.mechanisms.partition_distribution import KeyDistribution, delta_of_group, key_distribution, split
from tacit.noise.source import Source, default_source

__all__ = ["Kept", "OptimalSelection", "PartitionSelection"]

MOST_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Which of the given keys may be named, and, where asked for, their noisy supports (0 for keys not kept)."""

    mask: Booleans
    counts: AnyArray | None
    publishable: bool
    numerical_delta: float = 0.0


def selection_delta(value: object) -> Fraction:
    """A delta strictly between 0 and 1: without one no unknown key can be named."""
    exact = exact_parameter("delta", value, positive=False)
    if not 0 < exact < 1:
        raise InvalidParameter(
            parameter="delta", value=value, must="lie strictly between 0 and 1",
            hint="a key that one unit alone supports is named with probability delta at most; or declare the keys",
        )  # fmt: skip
    return exact


def shape_parameter(name: str, value: object) -> int:
    """How many keys or units at once: from 1 to 2^20."""
    number = whole(name, value, least=1)
    if number > MOST_AT_ONCE:
        raise InvalidParameter(parameter=name, value=number, must=f"be at most {MOST_AT_ONCE:,}")
    return number


class PartitionSelection(Mechanism):
    """What both forms share. `keys` is how many keys one unit supports at most, each of them once.

    `replaced`: neighbours replace a unit, so that as many keys again can change; `group`: so many units at once.
    Keys that nobody supports are never seen, hence never named.
    """

    __slots__ = ()

    keys: int
    replaced: bool
    group: int

    @property
    @abstractmethod
    def method(self) -> str:
        """What was chosen, in words."""

    @abstractmethod
    def keep_probability(self, support: int) -> float:
        """The probability that a key with this support is named, rounded down."""

    @abstractmethod
    def _offsets(self, supports: AnyArray, source: Source) -> tuple[Booleans, AnyArray]:
        """Who is kept, and the noise of the supports."""

    @property
    @abstractmethod
    def noise_tail(self) -> tuple[Callable[[Any], Any], int, int]:
        """ln Pr[noise >= t], the threshold, and how far the noise reaches: for intervals of supports."""

    @property
    def exact_epsilon(self) -> None:
        """Naming an unknown key has no pure epsilon."""
        return None

    @property
    def exact_rho(self) -> None:
        """And no rho."""
        return None

    @abstractmethod
    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """What the noise of a support stays within, with this probability, whether or not the key is kept."""

    def support_for(self, probability: Exact) -> int:
        """The least support that is named with at least this probability."""
        level = confidence_level(probability)
        high = 1
        while Fraction(self.keep_probability(high)) < level:
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if Fraction(self.keep_probability(middle)) >= level else (middle, high)
        return high

    def select(self, supports: npt.ArrayLike, *, source: Source | None = None) -> Kept:
        """Which keys may be named, given how many units support each key that occurs."""
        source = source if source is not None else default_source()
        array = checked_supports(supports)
        return Kept(mask=self._mask(array, source), counts=None, publishable=source.publishable)

    def _mask(self, supports: AnyArray, source: Source) -> Booleans:
        return self._offsets(supports, source)[0]

    def release_counts(self, supports: npt.ArrayLike, *, source: Source | None = None) -> Kept:
        """The keys that may be named with their noisy supports, at the same price as the names alone."""
        source = source if source is not None else default_source()
        array = checked_supports(supports)
        mask, noise = self._offsets(array, source)
        counts = narrowed(np.where(mask, add_exact(array, noise), 0))
        return Kept(mask=mask, counts=counts, publishable=source.publishable)


def checked_supports(supports: npt.ArrayLike) -> AnyArray:
    """Integers of at least 1, below 2^61; the message does not say which."""
    array = integer_array(supports, name="supports")
    if array.dtype == object or (array.size and not 1 <= int(array.min()) <= int(array.max()) < 1 << 61):
        raise InvalidParameter(
            parameter="supports", value="an array", must="hold integers that are at least 1",
            hint="give only keys that occur: a key without support must not be seen",
        )  # fmt: skip
    return array


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalSelection(PartitionSelection):
    """A key with support n is named with the largest probability that (epsilon, delta) allows, independently.

    pi(n+1) = min(e^e pi(n) + d, 1 - e^-e (1 - pi(n) - d), 1), in integers of 128 bits rounded down, at the level (e, d)
    of one key. One key a unit: (e, d) = (epsilon, delta), optimal. More keys: the (e, d) whose composition is
    (epsilon, delta) by the optimal composition theorem and that names a key soonest.
    Guarantee: Approximate(epsilon, delta), also for `release_counts`: with J of the law pi(j) - pi(j-1) a key is
    named where J <= n, and n - J then is (e, d)-private itself, so the count comes with the name. This is sharper than
    truncated geometric noise, which needs a delta that fits.
    Theorem `partition-selection`. Source: Desfontaines, Voss, Gipson, Mandayam 2022; Kairouz, Oh, Viswanath 2017.
    """

    epsilon: Exact
    delta: Exact
    keys: int = 1
    replaced: bool = False
    group: int = 1

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        selection_delta(self.delta)
        settle(self, delta=self.delta)
        settle(self, keys=shape_parameter("keys", self.keys), group=shape_parameter("group", self.group))
        settle(self, replaced=flag("replaced", self.replaced))
        _ = self.distribution

    @property
    def moved(self) -> int:
        """How many keys change between neighbours that differ in one unit."""
        return self.keys * (2 if self.replaced else 1)

    @property
    def level(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta) for one key."""
        epsilon, delta = epsilon_parameter(self.epsilon), selection_delta(self.delta)
        one = (epsilon / self.group, delta_of_group(epsilon, delta, self.group))
        return split(one[0], one[1], self.moved)

    @property
    def distribution(self) -> KeyDistribution:
        """The probabilities, as integers over 2^128."""
        return key_distribution(*self.level)

    @property
    def method(self) -> str:
        e, d = self.level
        return f"optimal selection, one key at epsilon = {float(e):.4g}, delta = {float(d):.4g}"

    @property
    def bound(self) -> Approximate:
        return Approximate(epsilon=up(epsilon_parameter(self.epsilon)), delta=up(selection_delta(self.delta)))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("partition-selection",)

    @property
    def noise_tail(self) -> tuple[Callable[[Any], Any], int, int]:
        law = self.distribution
        table = np.log(np.array([float(Fraction(r, law.reached[-1])) for r in law.reached]))

        def survival(t: Any) -> Any:
            place = law.center - np.asarray(t)
            inside = table[np.clip(place, 1, len(table)) - 1]
            return np.where(place < 1, -np.inf, inside)

        return survival, law.center, len(table) + 1

    @property
    def noise_distribution(self) -> dict[str, Any]:
        e, d = self.level
        return {
            "distribution": "optimal partition selection",
            "key_epsilon": shown(e),
            "key_delta": shown(d),
            "longest": len(self.distribution.reached),
            "exact": True,
        }

    def keep_probability(self, support: int) -> float:
        n = whole("support", support, least=0)
        return down(self.distribution.kept(n)) if n else 0.0

    def support_for(self, probability: Exact) -> int:
        return self.distribution.first(confidence_level(probability))

    def _mask(self, supports: AnyArray, source: Source) -> Booleans:
        return self.distribution.below(supports, source)

    def _offsets(self, supports: AnyArray, source: Source) -> tuple[Booleans, AnyArray]:
        drawn = self.distribution.draw(supports.shape, source)
        return np.asarray(drawn <= supports), np.asarray(self.distribution.center - drawn)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        return float(self.distribution.error_bound(confidence_level(confidence)))
