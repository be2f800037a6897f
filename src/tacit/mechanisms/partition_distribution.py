"""The law of the optimal selection of one key, in integers, and how a price is split over several keys."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball, ball, lower, precision, upper
from tacit.exact.rounding import down
from tacit.noise.source import Source

__all__ = ["KeyDistribution", "delta_of_group", "key_distribution", "split"]

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
        """E [center - J], what is added to a support."""
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
        low, high = -1, len(self.reached) + 1
        while high - low > 1:
            t = (low + high) // 2
            inside = self.kept(self.center + t) - self.kept(self.center - t - 1)
            low, high = (low, t) if inside >= confidence else (t, high)
        return high

    def below(self, supports: AnyArray, source: Source) -> npt.NDArray[np.bool_]:
        """Coins that show 1 with probability Pr[J <= n], exactly: one word each, a second one on a tie."""
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
        """J itself: one more than the number of entries that the uniform number reaches."""
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
    """pi(1), pi(2), ... up to 1, every step rounded down, and checked as a law of counts.

    The steps pi(n) - pi(n-1) are a law of noise whose excess over e^epsilon times its neighbour, to either side, adds
    up to delta at most (theorem `partition-selection`); rounding is paid from 2^-104 e^epsilon, the sums are checked.
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
    """About the support that is named half of the time."""
    if delta <= 0:
        return math.inf
    return math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon


@lru_cache(maxsize=256)
def split(epsilon: Fraction, delta: Fraction, keys: int) -> tuple[Fraction, Fraction]:
    """The (epsilon, delta) of one key that names soonest, among those whose composition is within the price.

    The k-fold composition of (a, d) is (epsilon, 1 - (1 - d)^k (1 - r)), r the delta at epsilon of k randomised
    responses at a. Only the choice of a is a search; what follows from it is certified.
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
