"""Selection of unknown keys by the number of units that support them."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from statistics import NormalDist
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Booleans
from tacit.exact.checks import add_exact, check_fields, flag, integer_array, narrowed, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    Ball,
    Exact,
    ball,
    bisected,
    down,
    exact_parameter,
    lower,
    precision,
    up,
    upper,
)
from tacit.guarantees import Approximate, GaussianDP
from tacit.mechanisms.base import (
    Mechanism,
    confidence_level,
    epsilon_parameter,
    epsilon_value,
    event_of,
    float_noise_std,
    shown,
)
from tacit.noise import GaussianVector
from tacit.noise.source import Source, default_source

__all__ = ["GaussianSelection", "Kept", "OptimalSelection", "PartitionSelection", "partition_selection"]

# The distribution of the optimal selection of one key, in integers, and how a price is split over several keys.

BITS = 128
ONE = 1 << BITS
FACTOR_BITS = 192
SPARE = Fraction(1, 1 << 104)
LEAST_DELTA = Fraction(1, 1 << 72)
MOST_EPSILON = Fraction(16)
MOST_STEPS = 1 << 21
TRIALS = 48
MOST_SPLIT = 512


@dataclass(frozen=True, slots=True)
class KeyDistribution:
    """J on 1..L with Pr[J <= n] = reached[n-1] / 2^128; the last entry is 2^128."""

    reached: tuple[int, ...]
    high: npt.NDArray[np.uint64]
    low: npt.NDArray[np.uint64]
    center: int

    def kept(self, n: int) -> Fraction:
        """Pr[J <= n]."""
        return Fraction(self.reached[min(n, len(self.reached)) - 1] if n > 0 else 0, ONE)

    @property
    def mean(self) -> float:
        """E [center - J], the addition to a support."""
        return float(self.center - self._moment(1))

    @property
    def variance(self) -> float:
        """Var J."""
        return float(self._moment(2) - self._moment(1) ** 2)

    def _moment(self, power: int) -> Fraction:
        steps = zip((0, *self.reached), self.reached, strict=False)
        return Fraction(sum(n**power * (b - a) for n, (a, b) in enumerate(steps, start=1)), ONE)

    def first(self, probability: Fraction) -> int:
        """The least n with Pr[J <= n] >= probability."""
        return bisect_left(self.reached, probability * ONE) + 1

    def error_bound(self, confidence: Fraction) -> int:
        """The least t with Pr[|center - J| <= t] >= confidence."""

        def holds(t: int) -> bool:
            return self.kept(self.center + t) - self.kept(self.center - t - 1) >= confidence

        return bisected(holds, -1, len(self.reached) + 1)[1]

    def below(self, supports: AnyArray, source: Source) -> npt.NDArray[np.bool_]:
        """Coins with probability Pr[J <= n], exactly: one word each, and a second one on a tie."""
        words = source.words(supports.size).reshape(supports.shape)
        sure = supports >= len(self.reached)
        index = np.minimum(supports, len(self.reached) - 1) - 1 if len(self.reached) > 1 else None
        if index is None:
            return np.asarray(sure)
        high = self.high[index]
        out = np.asarray((words < high) | sure)
        for place in np.argwhere((words == high) & ~sure):
            at = tuple(place)
            out[at] = int(source.words(1)[0]) < int(self.low[index[at]])
        return out

    def draw(self, shape: tuple[int, ...], source: Source) -> AnyArray:
        """J itself: one more than the number of entries up to the uniform number."""
        words = source.words(math.prod(shape))
        found = np.searchsorted(self.high, words, side="left")
        after = np.searchsorted(self.high, words, side="right")
        for place in np.flatnonzero(found != after):
            second = int(source.words(1)[0])
            found[place] += sum(int(self.low[k]) <= second for k in range(found[place], after[place]))
        return np.asarray(found + 1, dtype=np.int64).reshape(shape)


def _factors(epsilon: Fraction) -> tuple[int, int]:
    """floor(2^192 e^epsilon) and ceil(2^192 e^-epsilon), certified to a unit."""
    bits = FACTOR_BITS + 64 + 2 * math.ceil(abs(float(epsilon)))
    with precision(bits):
        grow = ball(epsilon).exp() * flint.arb(1 << FACTOR_BITS)
        fall = (-ball(epsilon)).exp() * flint.arb(1 << FACTOR_BITS)
        return int(grow.lower().floor().unique_fmpz()) - 1, int(fall.upper().ceil().unique_fmpz()) + 1


@lru_cache(maxsize=64)
def key_distribution(epsilon: Fraction, delta: Fraction) -> KeyDistribution:
    """pi(1), pi(2), ... up to 1, every step rounded down, and checked as a distribution of counts.

    The steps pi(n) - pi(n-1) are a distribution of noise whose excess over e^epsilon times its neighbour, to
    either side, adds up to at most delta (theorem `partition-selection`). Rounding costs
    2^-104 e^epsilon of delta, and the sums are checked.
    """
    if delta < LEAST_DELTA:
        raise InvalidParameter(
            parameter="delta", value=float(delta), must="be at least 2^-72 for each key",
            hint="no key would ever be named; fewer keys a unit, or a larger delta",
        )  # fmt: skip
    # A smaller epsilon is safe, and beyond 16 the rounding of one step would be felt in the next.
    grow, fall = _factors(min(epsilon, MOST_EPSILON))
    step = math.floor((delta - SPARE * Fraction(grow, 1 << FACTOR_BITS)) * ONE)
    reached: list[int] = []
    p = 0
    while p < ONE:
        up_ = (grow * p >> FACTOR_BITS) + step
        rest = ONE - p - step
        over = ONE if rest <= 0 else ONE - (-(-fall * rest >> FACTOR_BITS))
        p = min(up_, over, ONE)
        reached.append(p)
        if len(reached) > MOST_STEPS:
            raise InvalidParameter(
                parameter="epsilon", value=float(epsilon), must="be larger for each key",
                hint=f"a key would need more than {MOST_STEPS} supporters; fewer keys a unit, or a larger epsilon",
            )  # fmt: skip
    _check(reached, grow, delta)
    inner = reached[:-1]
    return KeyDistribution(
        reached=tuple(reached),
        high=np.array([r >> 64 for r in inner], dtype=np.uint64),
        low=np.array([r & ((1 << 64) - 1) for r in inner], dtype=np.uint64),
        center=bisect_left(reached, ONE // 2) + 1,
    )


def _check(reached: list[int], grow: int, delta: Fraction) -> None:
    """Both hockey-stick sums of the steps against their shift by one, exactly."""
    steps = [b - a for a, b in zip([0, *reached], reached, strict=False)]
    limit = math.floor(delta * ONE) << FACTOR_BITS
    for left, right in ((steps, [0, *steps]), (steps, [*steps[1:], 0])):
        excess = sum(max((a << FACTOR_BITS) - grow * b, 0) for a, b in zip(left, right, strict=False))
        if excess > limit:
            raise NotCertified(
                what="the law of a key's selection", reason="rounding exceeds what was set aside"
            )


def delta_of_group(epsilon: Fraction, delta: Fraction, group: int) -> Fraction:
    """The delta for one unit that gives `delta` for a group: delta (e^(epsilon/g) - 1) / (e^epsilon - 1)."""
    if group == 1:
        return delta
    one = epsilon / group
    return Fraction(lower(lambda: ball(delta) * ball(one).expm1() / ball(epsilon).expm1()))


def response_delta(key_epsilon: Fraction, keys: int, epsilon: Fraction) -> float:
    """The delta at epsilon of `keys` randomised responses: sum_l C(k, l) (e^((k-l)a) - e^(epsilon+la))+ / (1+e^a)^k."""
    if keys * key_epsilon <= epsilon:
        return 0.0

    def formula() -> Ball:
        a, target = ball(key_epsilon), ball(epsilon)
        total = ball(0)
        for wrong in range(keys + 1):
            if (keys - 2 * wrong) * key_epsilon <= epsilon:
                break
            total += math.comb(keys, wrong) * (((keys - wrong) * a).exp() - (target + wrong * a).exp())
        return total / (1 + a.exp()) ** keys

    return max(0.0, upper(formula))


def _needed(epsilon: float, delta: float) -> float:
    """Approximately the support at which a key is named half of the time."""
    if delta <= 0:
        return math.inf
    return math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon


@lru_cache(maxsize=256)
def split(epsilon: Fraction, delta: Fraction, keys: int) -> tuple[Fraction, Fraction]:
    """The (epsilon, delta) of one key that names keys at the smallest support, among those whose composition is
    within the price.

    The k-fold composition of (a, d) is (epsilon, 1 - (1 - d)^k (1 - r)), r the delta at epsilon of k randomised
    responses at a. Only a is found by search; the results are certified.
    """
    if keys == 1:
        return epsilon, delta
    best = (math.inf, Fraction(0), Fraction(0))
    # Beyond some hundred keys the search is long and the Gaussian form far better: the plain split will do.
    for factor in np.geomspace(1.0, float(keys), TRIALS if keys <= MOST_SPLIT else 1):
        one = epsilon / keys if factor == 1.0 else Fraction(down(epsilon / keys * Fraction(factor)))
        rest = response_delta(one, keys, epsilon)
        if rest >= float(delta):
            break
        each = _share(delta, Fraction(rest), keys)
        found = _needed(float(one), float(each))
        if found < best[0]:
            best = (found, one, each)
    return best[1], best[2]


def _share(delta: Fraction, rest: Fraction, keys: int) -> Fraction:
    """d with (1 - d)^k = (1 - delta) / (1 - rest), rounded down."""
    return Fraction(lower(lambda: -((((1 - ball(delta)) / (1 - ball(rest))).log()) / keys).expm1()))


MOST_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The keys that may be named and, if asked for, their noisy supports (0 for keys not kept)."""

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
    """A number of keys or units: from 1 to 2^20."""
    number = whole(name, value, least=1)
    if number > MOST_AT_ONCE:
        raise InvalidParameter(parameter=name, value=number, must=f"be at most {MOST_AT_ONCE:,}")
    return number


class PartitionSelection(Mechanism):
    """What both forms share. `keys` is the largest number of different keys that one unit supports.

    `replaced`: neighbours replace a unit, so twice as many keys can change; `group`: the number of units that change
    together.
    Keys without support are never seen, and so never named.
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
        """The kept keys, and the noise of the supports."""

    @property
    @abstractmethod
    def noise_tail(self) -> tuple[Callable[[Any], Any], int, int]:
        """ln Pr[noise >= t], the threshold, and the reach of the noise, for intervals of supports."""

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
        """The bound on the noise of a support, with this probability, whether or not the key is kept."""

    def support_for(self, probability: Exact) -> int:
        """The least support that is named with at least this probability."""
        level = confidence_level(probability)
        high = 1
        while Fraction(self.keep_probability(high)) < level:
            high *= 2
        return bisected(lambda n: Fraction(self.keep_probability(n)) >= level, high // 2, high)[1]

    def select(self, supports: npt.ArrayLike, *, source: Source | None = None) -> Kept:
        """The keys that may be named, given the number of units that support each occurring key."""
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
    """Checks for integers of at least 1, below 2^61, without naming a wrong one."""
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
    of one key. One key a unit: (e, d) = (epsilon, delta), optimal. More keys: the (e, d) that names a key
    soonest among those whose composition is (epsilon, delta) by the optimal composition theorem. Guarantee:
    Approximate(epsilon, delta), also for `release_counts`: with J of the distribution pi(j) - pi(j-1) a key is
    named where J <= n, and n - J then is (e, d)-private itself, so the count comes with the name. This is
    sharper than truncated geometric noise, which needs a particular delta. Theorem `partition-selection`.
    Source: Desfontaines, Voss, Gipson, Mandayam 2022; Kairouz, Oh, Viswanath 2017.
    """

    epsilon: Exact
    delta: Exact
    keys: int = 1
    replaced: bool = False
    group: int = 1

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        selection_delta(self.delta)
        set_fields(self, delta=self.delta)
        check_fields(self, keys=shape_parameter, group=shape_parameter, replaced=flag)
        _ = self.distribution

    @property
    def moved(self) -> int:
        """The number of keys that change between neighbours."""
        return self.keys * (2 if self.replaced else 1)

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, keys: int = 1, replaced: bool = False, group: int = 1
    ) -> OptimalSelection:
        """The mechanism of this (epsilon, delta): the constructor itself, under the name that all mechanisms have."""
        return cls(epsilon=epsilon, delta=delta, keys=keys, replaced=replaced, group=group)

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


# Unknown keys by Gaussian noise and a threshold, for units that support many keys; and the better of the forms.

GAUSSIAN_TRIALS = 24
MOST_TRIES = 64
MOST_NEW = 256
HALF = Fraction(1, 2)

# scipy.special takes longer to import than all searches here take to run.
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _normal(x: Any) -> Any:
    """The normal distribution function, for searches; balls certify the claims."""
    return _erfc(-np.asarray(x) / math.sqrt(2)) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSelection(PartitionSelection):
    """A key is named if its support plus Gaussian noise, rounded, reaches a threshold; the noisy sum may be published
    too.

    `epsilon` is the point at which the bound reads its curve; None for the concentrated form.
    Guarantee: Composed(GaussianDP(mu), Approximate(0, new)) with mu = group sqrt(keys moved) / noise_std and `new` the
    probability that a key of the differing unit alone is named, 1 - (1 - Pr[1 + Z >= threshold])^keys. In terms of
    (epsilon, delta): max over i new keys of b_i + (1 - b_i) delta_rest(epsilon + ln((1 - b) / (1 - b_i))).
    Theorem `partition-threshold`. Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Wilkins et al. 2024.
    """

    noise_std: float
    threshold: int
    keys: int = 1
    replaced: bool = False
    group: int = 1
    epsilon: Exact | None = None

    def __post_init__(self) -> None:
        set_fields(self, noise_std=float_noise_std(self.noise_std))
        if self.epsilon is not None:
            check_fields(self, epsilon=epsilon_value)
        check_fields(
            self,
            threshold=partial(whole, least=1),
            keys=shape_parameter,
            group=shape_parameter,
            replaced=flag,
        )

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, keys: int = 1, replaced: bool = False, group: int = 1
    ) -> GaussianSelection:
        """The lowest threshold (over a scan of noises) with delta(epsilon) <= delta; certified."""
        target, limit = up(epsilon_parameter(epsilon)), selection_delta(delta)
        shape: dict[str, Any] = {"keys": keys, "replaced": replaced, "group": group}
        probe = cls(noise_std=1, threshold=1, **shape)
        least = probe._moves() / _best_mu(target, float(limit))
        scan = [float(least * factor) for factor in np.geomspace(1.0002, 1.4, GAUSSIAN_TRIALS)]
        std, threshold = min(
            ((s, probe._lowest(s, target, float(limit))) for s in scan), key=lambda x: (x[1], x[0])
        )
        found = cls(noise_std=std, threshold=threshold, epsilon=epsilon, **shape)
        return found._raised(lambda m: Fraction(m.delta(target)) <= limit)

    @classmethod
    def for_rho(
        cls, *, rho: Exact, delta: Exact, keys: int = 1, replaced: bool = False, group: int = 1
    ) -> GaussianSelection:
        """Noise of this rho, and the lowest threshold that names a new key with probability delta at most."""
        target, limit = epsilon_parameter(rho, "rho"), selection_delta(delta)
        shape: dict[str, Any] = {"keys": keys, "replaced": replaced, "group": group}
        probe = cls(noise_std=1, threshold=1, **shape)
        # A hair more noise, so that what is rounded up on the way to a bound stays within the target.
        square = Fraction(probe.moved * probe.group**2) / (2 * target) * (1 + Fraction(1, 1 << 40))
        std = Fraction(upper(lambda: ball(square).sqrt()))
        first = _threshold(probe, float(std), float(limit))
        return cls(noise_std=float(std), threshold=first, **shape)._raised(lambda m: Fraction(m.new) <= limit)

    def _raised(self, meets: Any) -> GaussianSelection:
        """The least threshold near this one that is certified."""
        t = max(self.threshold - 1, 1)
        for _ in range(MOST_TRIES):
            found = replace(self, threshold=t)
            if meets(found):
                return found
            t += 1
        raise NotCertified(what="a threshold", reason="the curve is not met near the estimate")

    @property
    def moved(self) -> int:
        """The number of keys that change between neighbours."""
        return self.keys * (2 if self.replaced else 1)

    def _moves(self) -> float:
        return self.group * math.sqrt(self.moved)

    def _mu(self, moved: int) -> float:
        std = exact_parameter("noise_std", self.noise_std)
        return upper(lambda: self.group * ball(moved).sqrt() / ball(std)) if moved else 0.0

    def _passes(self, support: int) -> Any:
        """Pr[support + Z >= threshold], Z rounded to the nearest integer: a ball."""
        distance = (self.threshold - support - HALF) / exact_parameter("noise_std", self.noise_std)
        return (ball(distance) / ball(2).sqrt()).erfc() / 2

    def _log_silent(self) -> float:
        """-ln Pr[no new key of one unit of support is named], for each unit of support; rounded up.

        A group's new keys may have any supports up to its size; -ln(1 - p(a)) / a is taken at its worst a.
        """

        def rate(a: int) -> float:
            return upper(lambda: -(1 - self._passes(a)).log() / a)

        return max(rate(a) for a in range(1, self.group + 1))

    def _new(self, keys: int) -> float:
        rate = self._log_silent()
        return min(1.0, upper(lambda: -(-ball(rate) * keys).expm1()))

    @property
    def new(self) -> float:
        """The probability that some key of the differing units alone is named, rounded up."""
        return self._new(self.keys * self.group)

    def _cases(self) -> list[tuple[int, int]]:
        """(new keys, other keys that move): every split, or for groups and very many keys an upper bound."""
        if self.group == 1 and self.keys <= MOST_NEW:
            return [(i, self.moved - i) for i in range(self.keys + 1)]
        return [(self.keys * self.group, self.moved)]

    def delta(self, epsilon: Exact) -> float:
        """The certified delta at this epsilon, over every number of new keys."""
        target, rate = exact_parameter("epsilon", epsilon, positive=False), self._log_silent()

        def case(i: int, moved: int) -> float:
            shift = lower(lambda: ball(target) - ball(rate) * (self.keys * self.group - i))
            if shift < 0:
                return 1.0
            rest = GaussianDP(mu=self._mu(moved)).delta(shift) if moved else 0.0
            new = self._new(i) if i else 0.0
            return upper(lambda: ball(new) + (1 - ball(new)) * ball(rest))

        return min(1.0, max(case(i, moved) for i, moved in self._cases()))

    def _lowest(self, noise_std: float, epsilon: float, limit: float) -> int:
        """Estimates in floats the lowest threshold with delta(epsilon) <= limit. The caller certifies it."""
        new, moved = (np.array(x, dtype=np.float64) for x in zip(*self._cases(), strict=True))
        mu = np.maximum(self.group * np.sqrt(moved) / noise_std, 1e-9)

        def meets(threshold: int) -> bool:
            supports = np.arange(1, self.group + 1)
            p = np.minimum(_normal(-(threshold - supports - 0.5) / noise_std), 1 - 1e-12)
            rate = float((-np.log1p(-p) / supports).max())
            shift = epsilon - rate * (self.keys * self.group - new)
            b = -np.expm1(-rate * new)
            rest = _normal(mu / 2 - shift / mu) - np.exp(shift) * _normal(-mu / 2 - shift / mu)
            return bool((b + (1 - b) * np.maximum(rest, 0.0)).max() <= limit)

        high = 2
        while not meets(high):
            high *= 2
            if high > 1 << 60:
                return 1 << 60
        return bisected(meets, high // 2, high)[1]

    @property
    def rho(self) -> float:
        """mu^2 / 2 of the noise, rounded up; the event adds `new`."""
        mu = self._mu(self.moved)
        return upper(lambda: ball(mu) ** 2 / 2)

    @property
    def method(self) -> str:
        return f"Gaussian noise of {float(self.noise_std):.4g} and threshold {self.threshold}"

    @property
    def bound(self) -> Approximate:
        """The curve at `epsilon`; without one, where delta is twice the probability of a new key."""
        if self.epsilon is not None:
            target = up(epsilon_parameter(self.epsilon))
            return Approximate(epsilon=target, delta=self.delta(target))
        delta = min(2 * max(self.new, 1e-300), 0.5)
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > 1e6:
                raise NotCertified(
                    what="the bound of a selection", reason="no epsilon below 10^6 meets its delta"
                )
        _, high = bisected(lambda epsilon: self.delta(epsilon) <= delta, 0.0, high, halvings=40)
        return Approximate(epsilon=high, delta=delta)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("partition-threshold",)

    @property
    def noise_tail(self) -> tuple[Callable[[Any], Any], int, int]:
        std = float(self.noise_std)

        def normal(t: Any) -> Any:
            from scipy.special import log_ndtr

            return log_ndtr(-(np.asarray(t) - 0.5) / std)

        return normal, self.threshold, int(12 * std) + 2

    @property
    def event(self) -> Event:
        """(epsilon, delta) for a mechanism made for them; else Gaussian noise, and a probability `new` of revealing
        everything.
        """
        if self.epsilon is not None:
            return event_of(self.bound)
        mu = self._mu(self.moved)
        noise = events.GaussianEvent(noise_multiplier=lower(lambda: 1 / ball(mu)))
        return events.ComposedEvent(events=(noise, events.ApproximateEvent(epsilon=0.0, delta=self.new)))

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Gaussian, rounded, with a threshold",
            "noise_std": shown(exact_parameter("noise_std", self.noise_std)),
            "threshold": self.threshold,
            "spacing": "1",
            "exact": True,
        }

    def keep_probability(self, support: int) -> float:
        n = whole("support", support, least=0)
        return down(ball(lower(lambda: self._passes(n)))) if n else 0.0

    @property
    def law(self) -> GaussianVector:
        """The noise of one support before rounding; `law.marginal().rounded(1)` is the added noise."""
        return GaussianVector(coordinates=1, noise_std=self.noise_std)

    def _offsets(self, supports: AnyArray, source: Source) -> tuple[Booleans, AnyArray]:
        noise = self.law.sample(spacing=1, size=supports.size, source=source).values.reshape(supports.shape)
        return np.asarray(add_exact(supports, noise) >= self.threshold).astype(np.bool_), noise

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        tail = float((1 - confidence_level(confidence)) / 2)
        return math.ceil(-NormalDist().inv_cdf(tail) * float(self.noise_std) - 0.5 + 1e-9)


def _best_mu(epsilon: float, delta: float) -> float:
    """About the largest mu with delta(epsilon) <= delta, in floats."""
    high = 1.0

    def meets(mu: float) -> bool:
        return bool(
            _normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2 - epsilon / mu) <= delta
        )

    while meets(high):
        high *= 2
    return bisected(lambda mu: not meets(mu), 0.0, high, halvings=50)[0]


def _threshold(shape: GaussianSelection, noise_std: float, limit: float) -> int:
    """About the threshold at which new keys have this probability."""
    one = -math.expm1(math.log1p(-limit) / shape.keys)
    return max(1, math.ceil(shape.group + HALF + noise_std * -NormalDist().inv_cdf(one)))


def partition_selection(
    *,
    delta: Exact,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    keys: int = 1,
    replaced: bool = False,
    group: int = 1,
) -> PartitionSelection:
    """The form that names a key with the least support (half of the time), for this price; `.method` says which.

    epsilon and delta: optimal selection key by key (best for few keys a unit), or Gaussian noise with a threshold
    (best for many). rho and delta: the Gaussian form. Laplace noise with a threshold is never better than the
    first method: it is an (epsilon/k, delta_k) selection of each key, and the optimal one names at least as
    often.
    """
    shape: dict[str, Any] = {"keys": keys, "replaced": replaced, "group": group}
    if rho is not None:
        if epsilon is not None:
            raise InvalidParameter(
                parameter="rho", value=rho, must="stand alone", hint="or epsilon with delta"
            )
        return GaussianSelection.for_rho(rho=rho, delta=delta, **shape)
    if epsilon is None:
        raise InvalidParameter(parameter="epsilon", value=None, must="be given, or rho", hint="the price")
    replaced = flag("replaced", replaced)
    moved = shape_parameter("keys", keys) * shape_parameter("group", group)
    if moved * (2 if replaced else 1) > MOST_NEW:
        # This many keys one by one need a support of thousands, and a long distribution.
        return GaussianSelection.for_target(epsilon=epsilon, delta=delta, **shape)
    best = OptimalSelection(epsilon=epsilon, delta=delta, **shape)
    if moved == 1 and not replaced:
        return best
    normal = GaussianSelection.for_target(epsilon=epsilon, delta=delta, **shape)
    if normal.support_for(HALF) >= best.support_for(HALF):
        return best
    return normal
