"""The noise of a joint release: each holder's part, the sum of the remaining parts, and its cost.

A holder draws a share. The guarantee counts h shares, the error counts the shares of all remaining holders (theorem
`honest-survivors`). Errors are computed in floats, rounded against the reader; no privacy depends on them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from tacit.accounting import account, events
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import add_exact, non_negative, positive, probability, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, bisected, down, up, upper
from tacit.guarantees import Always, Approximate, Bound, BoundedAdversary, Guarantee, Pure
from tacit.guarantees.conditions import Indistinguishability
from tacit.mechanisms.base import CellNoise, Pivot
from tacit.mechanisms.spreads import laplace_factor
from tacit.noise import DiscreteDistribution, PolyaDifference, Skellam
from tacit.noise.source import Source

FINE = 2048
"""Beyond this scale the law of sums is read on a grid of this many steps a scale, and rounded outwards."""
ROUNDED = 1 + 2.0**-9
THEOREMS = ("honest-survivors", "secure-sum", "one-list-of-survivors")


@dataclass(frozen=True, slots=True, kw_only=True)
class JointNoise(CellNoise):
    """Shares of noise that are complete for `honest` holders together; each of the `remaining` holders adds one."""

    honest: int
    remaining: int

    @property
    @abstractmethod
    def share(self) -> DiscreteDistribution:
        """The noise of one holder on each number."""

    @property
    @abstractmethod
    def distribution(self) -> DiscreteDistribution:
        """The noise of all remaining holders on each number."""

    @abstractmethod
    def _tail(self) -> Floats:
        """Pr[|noise| >= t], t = 0, 1, ..., of the sum of all that remain, in units of `_unit` steps."""

    @property
    @abstractmethod
    def _unit(self) -> float:
        """Steps for one place of the tail."""

    def left(self, remaining: int) -> Self:
        """The same noise for this number of remaining holders."""
        return replace(self, remaining=remaining)

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        """The values of one holder with its share."""
        return add_exact(values, self.share.sample(size=np.shape(values), source=source))

    @property
    def variance(self) -> float:
        return self.share.variance * self.remaining

    @property
    def ratio(self) -> Fraction:
        """The ratio of the variance to one curator's."""
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
        """By the distribution of a sum of Laplace variables with the same first four moments, plus half a step each
        for the grid.
        """
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
        """The number of Laplace variables whose sum has this kurtosis."""

    def to_dict(self, parts: Sequence[str] = ()) -> dict[str, Any]:
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
    """By bisection on ln variance. Every candidate is accounted, so an error only costs accuracy."""
    target, size = down(epsilon), down(delta)

    def fits(variance: Fraction) -> bool:
        return account(_event(variance, steps, moved), delta=size).epsilon.high <= target

    guess = 2 * math.log(1.25 / size) * moved * steps**2 / target**2
    # Beyond this the sums of the distribution are too long, and Laplace shares serve.
    if not 0.5 < guess < 1e9:
        return None
    low, high = guess / 64, guess
    while not fits(Fraction(high)):
        low, high = high, 2 * high
        if high > 1e9:
            return None
    _, high = bisected(lambda value: fits(Fraction(value)), low, high, relative=1.01, logarithmic=True)
    return Fraction(high).limit_denominator(1 << 20) + Fraction(1, 1 << 19)


def root_below(square: Fraction) -> Fraction:
    """The square root, rounded down to 60 binary digits."""
    digits = 1 << 60
    return Fraction(math.isqrt(int(square * digits * digits)), digits)


# From computational to statistical privacy in concrete numbers (Groce 2014, Thm 4.2), and why little is gained.
#
# A mechanism F with outputs on a grid and error of moment err that no efficient test tells from an (epsilon, delta)
# private G with advantage above eta becomes (epsilon, delta') private, statistically, if uniform noise on a box of
# radius c is added. On a grid of spacing s with a cut z > 0, and sigma_v = E |F^ - q|^v (sup norm) of the output F^,
#
#     delta' = (1 + e^epsilon) [((2z + s)/(2c + s))^d eta + sigma_v / z^v] + e^epsilon eta + delta
#
# for every z: the best one is taken (theorem `smoothing`). Integers need no added noise at all: c = 0.

STEPS = 200


def smoothed_delta(
    *,
    epsilon: float,
    advantage: float,
    dimension: int,
    error: float,
    delta: float = 0.0,
    moment: float = 1.0,
    radius: float = 0.0,
    spacing: float = 1.0,
) -> float:
    """The delta' of the sharper form, rounded up; `error` is sigma_v of the output with the added noise in it."""
    e, eta, d = (
        non_negative("epsilon", epsilon),
        probability("advantage", advantage),
        whole("dimension", dimension),
    )
    err, v, start = positive("error", error), positive("moment", moment), probability("delta", delta)
    c, s = non_negative("radius", radius), positive("spacing", spacing)
    if (Fraction(c) / Fraction(s)).denominator != 1:
        raise InvalidParameter(
            parameter="radius", value=radius, must="be a multiple of the spacing",
            hint="otherwise the box has fewer grid points than the formula divides by",
        )  # fmt: skip

    def size(log_z: float) -> float:
        """ln of the bracket, in floats; any z is valid, so it need only be near the best one."""
        first = d * (math.log(2 * math.exp(log_z) + s) - math.log(2 * c + s)) + (
            math.log(eta) if eta else -math.inf
        )
        second = math.log(err) - v * log_z
        high = max(first, second)
        return high + math.log(math.exp(first - high) + math.exp(second - high))

    low, high = -50.0, 600.0 / max(v, 1.0)
    for _ in range(STEPS):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if size(a) <= size(b) else (a, high)
    z = math.exp((low + high) / 2)

    def formula() -> Any:
        grown = (1 + ball(e).exp()) * (
            ((2 * ball(z) + ball(s)) / (2 * ball(c) + ball(s))) ** d * ball(eta)
            + ball(err) / ball(z) ** ball(v)
        )
        return grown + ball(e).exp() * ball(eta) + ball(start)

    return min(1.0, upper(formula))


def smoothed_delta_printed(
    *, epsilon: float, advantage: float, dimension: int, error: float, delta: float = 0.0
) -> float:
    """The same with the constants of the printed proof: c = eta^(1/4d), v = 1, for d c <= err.

    (e^epsilon + 1)(3^d sqrt(eta) + 2 err eta^(1/4d)) + e^epsilon eta + delta.
    """
    e, eta, d = (
        non_negative("epsilon", epsilon),
        probability("advantage", advantage),
        whole("dimension", dimension),
    )
    err, start = positive("error", error), probability("delta", delta)
    root = Fraction(1, 4 * d)

    def radius() -> Any:
        return ball(eta) ** ball(root) if eta else ball(0)

    if d * upper(radius) > err:
        raise InvalidParameter(
            parameter="error", value=error, must="be at least the added noise, d eta^(1/4d)",
            hint="smoothed_delta has no such condition",
        )  # fmt: skip

    def formula() -> Any:
        inner = ball(3) ** d * ball(eta).sqrt() + 2 * ball(err) * radius()
        return (ball(e).exp() + 1) * inner + ball(e).exp() * ball(eta) + ball(start)

    return min(1.0, upper(formula))


def black_box_delta(
    *, delta: float = 0.0, advantage: float, queries: int, bits: int, inverted: float
) -> float:
    """The delta of a mechanism whose one-way function is replaced by a random one, rounded up.

    delta + a + 2 (q + 1) / ((2^n - q) p), for a reduction that inverts with q queries and a probability above p =
    `inverted` anybody who breaks the privacy by more than `advantage` (theorem `black-box-oracle`; Groce 2014, Thm
    4.1).
    """
    start, a = probability("delta", delta), probability("advantage", advantage)
    q, n, p = whole("queries", queries, least=0), whole("bits", bits), probability("inverted", inverted)
    if p <= 0 or n > 1 << 16 or q >= 1 << n:
        raise InvalidParameter(
            parameter="queries",
            value=queries,
            must="be fewer than 2^bits, with inverted above 0 and bits up to 65536",
        )
    broken = Fraction(2 * (q + 1), (1 << n) - q) / Fraction(p)
    return up(min(Fraction(1), Fraction(start) + Fraction(a) + broken))


def smoothed(
    guarantee: Guarantee,
    *,
    dimension: int,
    error: float,
    moment: float = 1.0,
    radius: float = 0.0,
    spacing: float = 1.0,
) -> Guarantee:
    """The statistical guarantee of a mechanism that has a computational one of the kind SIM, and a bounded error."""
    condition = guarantee.condition
    if not isinstance(condition, BoundedAdversary):
        raise NoLaw(operation="smoothing", reason="the guarantee does not rest on a bounded adversary")
    if condition.definition is Indistinguishability.IND:
        raise NoLaw(
            operation="smoothing an IND guarantee",
            reason="the proof compares with a private stand-in, and whether IND has one is an open question",
        )
    parameters = guarantee.bound.parameters
    if guarantee.bound.kind not in ("pure", "approximate"):
        raise NoLaw(
            operation=f"smoothing a {guarantee.bound.kind} bound", reason="read it at one epsilon first"
        )
    epsilon, delta = float(parameters["epsilon"]), float(parameters.get("delta", 0.0))
    found = smoothed_delta(
        epsilon=epsilon, delta=delta, advantage=condition.advantage, dimension=dimension, error=error, moment=moment,
        radius=radius, spacing=spacing,
    )  # fmt: skip
    return Guarantee(bound=Approximate(epsilon=epsilon, delta=found), unit=guarantee.unit, condition=Always())
