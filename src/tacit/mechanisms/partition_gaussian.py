"""Unknown keys by Gaussian noise and a threshold, for units that support many keys; and the better of the forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import AnyArray, Booleans
from tacit.exact.balls import ball, lower, upper
from tacit.exact.checks import flag, settle, whole
from tacit.exact.integers import add_exact
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import down, up
from tacit.guarantees import Approximate, GaussianDP
from tacit.mechanisms.base import confidence_level, epsilon_parameter, event_of, shown
from tacit.mechanisms.partition import OptimalSelection, PartitionSelection, selection_delta, shape_parameter
from tacit.noise import GaussianVector
from tacit.noise.source import Source

__all__ = ["GaussianSelection", "partition_selection"]

TRIALS = 24
MOST_TRIES = 64
MOST_NEW = 256
HALF = Fraction(1, 2)

# scipy.special takes longer to import than all searches here take to run.
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _normal(x: Any) -> Any:
    """The normal distribution function, for searches; what is claimed is certified by balls."""
    return _erfc(-np.asarray(x) / math.sqrt(2)) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSelection(PartitionSelection):
    """A key is named where its support plus Gaussian noise, rounded, reaches a threshold; the sum may be told too.

    `epsilon` is where the bound reads its curve; None for the concentrated form.
    Guarantee: Composed(GaussianDP(mu), Approximate(0, new)) with mu = group sqrt(keys moved) / noise_std and `new` the
    probability that a key of the differing unit alone is named, 1 - (1 - Pr[1 + Z >= threshold])^keys. In terms of
    (epsilon, delta): max over i new keys of b_i + (1 - b_i) delta_rest(epsilon + ln((1 - b) / (1 - b_i))).
    Theorem `partition-threshold`. Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Wilkins et al. 2024.
    """

    noise_std: Exact
    threshold: int
    keys: int = 1
    replaced: bool = False
    group: int = 1
    epsilon: Exact | None = None

    def __post_init__(self) -> None:
        exact_parameter("noise_std", self.noise_std)
        settle(self, noise_std=self.noise_std)
        if self.epsilon is not None:
            epsilon_parameter(self.epsilon)
            settle(self, epsilon=self.epsilon)
        settle(self, threshold=whole("threshold", self.threshold, least=1))
        settle(self, keys=shape_parameter("keys", self.keys), group=shape_parameter("group", self.group))
        settle(self, replaced=flag("replaced", self.replaced))

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, keys: int = 1, replaced: bool = False, group: int = 1
    ) -> GaussianSelection:
        """The lowest threshold (over a scan of noises) with delta(epsilon) <= delta; certified."""
        target, limit = up(epsilon_parameter(epsilon)), selection_delta(delta)
        shape: dict[str, Any] = {"keys": keys, "replaced": replaced, "group": group}
        probe = cls(noise_std=1, threshold=1, **shape)
        least = probe._moves() / _best_mu(target, float(limit))
        scan = [float(least * factor) for factor in np.geomspace(1.0002, 1.4, TRIALS)]
        std, threshold = min(
            ((s, probe._lowest(s, target, float(limit))) for s in scan), key=lambda x: (x[1], x[0])
        )
        found = cls(noise_std=Fraction(std), threshold=threshold, epsilon=epsilon, **shape)
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
        return cls(noise_std=std, threshold=first, **shape)._raised(lambda m: Fraction(m.new) <= limit)

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
        """How many keys change between neighbours that differ in one unit."""
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
        """About the lowest threshold with delta(epsilon) <= limit for this noise, in floats; certified later."""
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
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if meets(middle) else (middle, high)
        return high

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
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > 1e6:
                raise NotCertified(
                    what="the bound of a selection", reason="no epsilon below 10^6 meets its delta"
                )
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
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
        """(epsilon, delta) where it was made for them; else Gaussian noise, and a chance of `new` that all is told."""
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
        """The noise of one support before it is rounded; `law.marginal().rounded(1)` is what is added."""
        return GaussianVector(coordinates=1, noise_std=self.noise_std)

    def _offsets(self, supports: AnyArray, source: Source) -> tuple[Booleans, AnyArray]:
        noise = self.law.sample(spacing=1, size=supports.size, source=source).values.reshape(supports.shape)
        return np.asarray(add_exact(supports, noise) >= self.threshold).astype(np.bool_), noise

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        tail = float((1 - confidence_level(confidence)) / 2)
        return math.ceil(-NormalDist().inv_cdf(tail) * float(self.noise_std) - 0.5 + 1e-9)


def _best_mu(epsilon: float, delta: float) -> float:
    """About the largest mu with delta(epsilon) <= delta, in floats."""
    low, high = 0.0, 1.0

    def meets(mu: float) -> bool:
        return bool(
            _normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2 - epsilon / mu) <= delta
        )

    while meets(high):
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


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
    (best for many). rho and delta: the Gaussian form. Laplace noise with a threshold is never better than the first:
    it is an (epsilon/k, delta_k) selection of each key, and the optimal one names at least as often.
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
        # So many keys one by one need a support of thousands, and a long law.
        return GaussianSelection.for_target(epsilon=epsilon, delta=delta, **shape)
    best = OptimalSelection(epsilon=epsilon, delta=delta, **shape)
    if moved == 1 and not replaced:
        return best
    normal = GaussianSelection.for_target(epsilon=epsilon, delta=delta, **shape)
    if normal.support_for(HALF) >= best.support_for(HALF):
        return best
    return normal
