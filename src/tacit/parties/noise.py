"""The noise of a joint release: what each holder adds, what the sum of those who remain has, and what it costs.

A holder draws a share; the promise is that of h shares, the error that of all that remain (theorem
`honest-survivors`). Errors are computed in floats, rounded against the reader: no privacy rests on them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from tacit.accounting import account, events
from tacit.accounting.events import Event
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.integers import add_exact
from tacit.exact.rounding import down, up
from tacit.guarantees import Approximate, Bound, Pure
from tacit.mechanisms.part_noise import CellNoise, Pivot
from tacit.mechanisms.spreads import laplace_factor
from tacit.noise import DiscreteDistribution, PolyaDifference, Skellam
from tacit.noise.source import Source

__all__ = ["JointNoise", "JointPolya", "JointSkellam", "root_below"]

FINE = 2048
"""Beyond this scale the law of sums is read on a grid of so many steps a scale, and rounded outwards."""
ROUNDED = 1 + 2.0**-9
THEOREMS = ("honest-survivors", "secure-sum", "one-list-of-survivors")


@dataclass(frozen=True, slots=True, kw_only=True)
class JointNoise(CellNoise):
    """Shares of noise that `honest` holders together make whole; `remaining` add one each."""

    honest: int
    remaining: int

    @property
    @abstractmethod
    def share(self) -> DiscreteDistribution:
        """What one holder adds to each number."""

    @property
    @abstractmethod
    def distribution(self) -> DiscreteDistribution:
        """What all that remain add to each number together."""

    @abstractmethod
    def _tail(self) -> Floats:
        """Pr[|noise| >= t], t = 0, 1, ..., of the sum of all that remain, in units of `_unit` steps."""

    @property
    @abstractmethod
    def _unit(self) -> float:
        """Steps for one place of the tail."""

    def left(self, remaining: int) -> Self:
        """The same noise when so many remain."""
        return replace(self, remaining=remaining)

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        """The values of one holder with its share."""
        return add_exact(values, self.share.sample(size=np.shape(values), source=source))

    @property
    def variance(self) -> float:
        return self.share.variance * self.remaining

    @property
    def ratio(self) -> Fraction:
        """How much larger than one curator's the variance is."""
        return Fraction(self.remaining, self.honest)

    def step_error(self) -> float:
        return float(self._tail()[1:].sum()) * self._unit

    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        miss = -math.expm1(math.log(float(confidence)) / coordinates)
        tail = self._tail()
        at = (
            int(np.argmax(tail <= miss * (1 - 1e-9)))
            if bool((tail <= miss * (1 - 1e-9)).any())
            else tail.size
        )
        return math.ceil((at - 1) * self._unit * (1.0 if self._unit == 1.0 else ROUNDED)) if at else 0

    def pivot(self, noises: Sequence[JointNoise]) -> Pivot:
        """By the law of a sum of Laplace variables with the same first four moments; half a step each for the grid."""
        stds = [math.sqrt(n.variance) for n in noises]
        terms = self._terms()

        def margin(weights: Sequence[Floats], value: Floats, confidence: float) -> Floats:
            each = np.stack([s * w for s, w in zip(stds, weights, strict=True)]) ** 2
            total = each.sum(axis=0)
            effective = total**2 / np.maximum((each**2).sum(axis=0), 1e-300) * terms
            least = float(np.min(effective)) if effective.size else terms
            factor = laplace_factor(max(least, 1.0), 1 - confidence)
            moved = sum(np.asarray(w, dtype=np.float64) for w in weights)
            return np.asarray(factor * np.sqrt(total) + moved - np.abs(value))

        return margin

    @abstractmethod
    def _terms(self) -> float:
        """How many Laplace variables have this kurtosis in their sum."""

    def stated(self, parts: Sequence[str]) -> dict[str, Any]:
        return {
            **self.noise_distribution,
            "parts": list(parts),
            "share": f"1/{self.honest}",
            "remaining": self.remaining,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JointPolya(JointNoise):
    """Pólya shares of discrete Laplace noise: pure epsilon = steps / noise_scale, exactly."""

    steps: int
    noise_scale: Fraction

    @property
    def share(self) -> PolyaDifference:
        return PolyaDifference(shape=Fraction(1, self.honest), noise_scale=self.noise_scale)

    @property
    def distribution(self) -> PolyaDifference:
        return PolyaDifference(shape=Fraction(self.remaining, self.honest), noise_scale=self.noise_scale)

    @property
    def exact_epsilon(self) -> Fraction:
        return self.steps / self.noise_scale

    @property
    def bound(self) -> Bound:
        return Pure(epsilon=up(self.exact_epsilon))

    @property
    def event(self) -> Event:
        if self.steps > 1 << 16:
            return events.PureEvent(epsilon=up(self.exact_epsilon))
        return events.DiscreteLaplaceEvent(epsilon=up(self.exact_epsilon), sensitivity=self.steps)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("polya-shares", "discrete-laplace", "laplace", *THEOREMS)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "discrete Laplace in Pólya shares",
            "noise_scale": str(self.noise_scale),
            "epsilon": str(self.exact_epsilon),
            "sensitivity": {"norm": "L1", "steps": self.steps},
            "exact": True,
        }

    @property
    def _unit(self) -> float:
        return max(1.0, float(self.noise_scale) / FINE)

    def _tail(self) -> Floats:
        return _polya_tail(float(self.noise_scale) / self._unit, self.remaining / self.honest)

    def _terms(self) -> float:
        return self.remaining / self.honest


@lru_cache(maxsize=64)
def _polya_tail(scale: float, shape: float) -> Floats:
    """From the characteristic function |(1-q)/(1-q e^it)|^(2 shape), on a circle far longer than the noise."""
    reach = scale * (60 + 12 * math.sqrt(shape) + 4 * shape) + 64
    size = 1 << math.ceil(math.log2(2 * reach))
    q = math.exp(-1 / scale)
    t = 2 * np.pi * np.arange(size // 2 + 1) / size
    square = (1 - q) ** 2 / ((1 - q) ** 2 + 4 * q * np.sin(t / 2) ** 2)
    law = np.fft.irfft(square**shape, size)
    half = np.maximum(law[: size // 2], 0.0)
    two = np.concatenate([half[:1], 2 * half[1:]])
    return np.minimum(np.cumsum(two[::-1])[::-1] + 1e-12, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointSkellam(JointNoise):
    """Skellam shares: (epsilon, delta) by the composed curve of `moved` numbers that move by `steps` each."""

    steps: int
    moved: int
    noise_variance: Fraction
    epsilon: Fraction
    delta: Fraction

    @property
    def share(self) -> Skellam:
        return Skellam(noise_variance=self.noise_variance / self.honest)

    @property
    def distribution(self) -> Skellam:
        return Skellam(noise_variance=self.noise_variance * self.remaining / self.honest)

    @property
    def exact_epsilon(self) -> None:
        return None

    @property
    def exact_rho(self) -> None:
        return None

    @property
    def bound(self) -> Bound:
        return Approximate(epsilon=up(self.epsilon), delta=up(self.delta))

    @property
    def event(self) -> Event:
        return _event(self.noise_variance, self.steps, self.moved)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("skellam-noise", "compose-profile", *THEOREMS)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Skellam shares",
            "noise_variance": str(self.noise_variance),
            "sensitivity": {"norm": "Linf", "steps": self.steps, "numbers": self.moved},
            "exact": True,
        }

    @property
    def _unit(self) -> float:
        return max(1.0, math.sqrt(float(self.noise_variance) * self.remaining / self.honest) / FINE)

    def _tail(self) -> Floats:
        return _skellam_tail(float(self.noise_variance) * self.remaining / self.honest / self._unit**2)

    def _terms(self) -> float:
        # The kurtosis above the normal law's is 1/v; that of k Laplace variables 3/k.
        return max(1.0, 3 * float(self.noise_variance) * self.remaining / self.honest)

    @classmethod
    def within(
        cls, *, epsilon: Fraction, delta: Fraction, steps: int, moved: int, honest: int, remaining: int
    ) -> JointSkellam | None:
        """The smallest noise whose composed curve keeps to (epsilon, delta), to one part in a hundred."""
        variance = _calibrated(epsilon, delta, steps, moved)
        if variance is None:
            return None
        return cls(
            honest=honest, remaining=remaining, steps=steps, moved=moved, noise_variance=variance,
            epsilon=epsilon, delta=delta,
        )  # fmt: skip


@lru_cache(maxsize=64)
def _skellam_tail(variance: float) -> Floats:
    from scipy.special import ive

    reach = int(40 * math.sqrt(variance) + 60)
    law = ive(np.arange(reach), variance)
    two = np.concatenate([law[:1], 2 * law[1:]])
    return np.minimum(np.cumsum(two[::-1])[::-1] + 1e-12, 1.0)


def _event(variance: Fraction, steps: int, moved: int) -> Event:
    one = events.SkellamEvent(noise_variance=down(variance), sensitivity=steps)
    return one if moved == 1 else events.RepeatedEvent(event=one, times=moved)


@lru_cache(maxsize=64)
def _calibrated(epsilon: Fraction, delta: Fraction, steps: int, moved: int) -> Fraction | None:
    """By bisection on ln variance; every candidate is accounted, so that an error only costs accuracy."""
    target, size = down(epsilon), down(delta)

    def fits(variance: Fraction) -> bool:
        return account(_event(variance, steps, moved), delta=size).epsilon.high <= target

    guess = 2 * math.log(1.25 / size) * moved * steps**2 / target**2
    # Beyond this the sums of the law are too long, and Laplace shares serve.
    if not 0.5 < guess < 1e9:
        return None
    low, high = guess / 64, guess
    while not fits(Fraction(high)):
        low, high = high, 2 * high
        if high > 1e9:
            return None
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(Fraction(middle)) else (middle, high)
    return Fraction(high).limit_denominator(1 << 20) + Fraction(1, 1 << 19)


def root_below(square: Fraction) -> Fraction:
    """A root that is not above, to 60 binary digits."""
    digits = 1 << 60
    return Fraction(math.isqrt(int(square * digits * digits)), digits)
