"""The staircase law on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball, ball, precision
from tacit.exact.checks import settle, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.noise.distributions.base import DiscreteDistribution
from tacit.noise.distributions.geometric import geometric_digits
from tacit.noise.distributions.uniform import uniform_draws
from tacit.noise.lazy_inversion import CHUNK, Inverter, bernoulli, joined
from tacit.noise.source import Source

__all__ = ["DiscreteStaircase"]


@lru_cache(maxsize=256)
def _low_coin(epsilon: Fraction, plateau: int, rest: int) -> Inverter:
    """The coin for the lower part of a step: chance b(D-r) / (r + b(D-r)), b = exp(-epsilon)."""
    return bernoulli(lambda: rest / (rest + plateau * ball(epsilon).exp()))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteStaircase(DiscreteDistribution):
    """Pr[X = i] proportional to b^j for j D <= |i| < j D + r, b^(j+1) for j D + r <= |i| < (j+1) D.

    D = sensitivity (in grid steps), b = exp(-epsilon), r = plateau in 1..D. Guarantee: moving an integer
    query by at most D changes |i| by at most D, hence the level by at most one: epsilon-DP for every r.
    `gamma` = r/D may be given; by default r is the one of the two grid neighbours of D/(1 + e^(epsilon/2))
    with the smaller E|X|. Source: Geng, Viswanath 2014.
    """

    epsilon: Exact
    sensitivity: int
    gamma: Exact | None = None
    plateau: int = field(init=False)
    """r: how many of a step's D points stand on its upper level."""

    def __post_init__(self) -> None:
        exact_parameter("epsilon", self.epsilon)
        settle(self, epsilon=self.epsilon)
        settle(self, sensitivity=whole("sensitivity", self.sensitivity, least=1))
        if self.gamma is not None and not 0 < exact_parameter("gamma", self.gamma) <= 1:
            raise InvalidParameter(parameter="gamma", value=self.gamma, must="lie in (0, 1]")
        settle(self, gamma=self.gamma)
        object.__setattr__(self, "plateau", self._chosen())

    def _chosen(self) -> int:
        d = self.sensitivity
        if self.gamma is not None:
            return min(d, max(1, round(exact_parameter("gamma", self.gamma) * d)))
        best = Fraction(1.0 / (1.0 + math.exp(min(float(self.rate), 1400.0) / 2))) * d
        low = min(d, max(1, math.floor(best)))
        with precision(256):
            return min((low, min(d, low + 1)), key=lambda r: float(self._moment(1, r).mid()))

    @property
    def rate(self) -> Fraction:
        """epsilon, exactly."""
        return exact_parameter("epsilon", self.epsilon)

    def _draw(self, count: int, source: Source) -> AnyArray:
        parts: list[AnyArray] = []
        missing = count
        while missing > 0:
            kept = self._attempt(min(CHUNK, 2 * missing + 8), source)[:missing]
            parts.append(kept)
            missing -= kept.size
        return joined(parts)

    def _attempt(self, n: int, source: Source) -> AnyArray:
        """Step, place in the step and sign are independent; minus zero is drawn again."""
        d, r = self.sensitivity, self.plateau
        step = geometric_digits(self.rate).draw(n, source)
        place = uniform_draws(r, n, source)
        if d > r:
            low = _low_coin(self.rate, r, d - r).invert(source.words(n), source) == 1
            place = np.where(low, uniform_draws(d - r, n, source) + r, place)
        if d > 1 << 40 or int(step.max()) * d > 1 << 61:
            step, place = step.astype(object), place.astype(object)
        magnitude = step * d + place
        sign = (source.words(n) & np.uint64(1)).view(np.int64)
        legal = ((magnitude != 0) | (sign == 0)).astype(np.bool_)
        signed: AnyArray = np.asarray((magnitude ^ -sign) + sign)
        return np.compress(legal, signed)

    def _b(self) -> Ball:
        return (-ball(self.rate)).exp()

    def _step_mass(self, r: int) -> Ball:
        return r + self._b() * (self.sensitivity - r)

    def _total(self, r: int) -> Ball:
        return 2 * self._step_mass(r) / (1 - self._b()) - 1

    def probability_ball(self, k: int) -> Ball:
        r = self.plateau
        step, place = divmod(abs(k), self.sensitivity)
        return (-ball(self.rate * (step + (place >= r)))).exp() / self._total(r)

    def survival_ball(self, k: int) -> Ball:
        if k <= 0:
            return 1 - self.survival_ball(1 - k)
        r, b = self.plateau, self._b()
        step, place = divmod(k, self.sensitivity)
        here = max(r - place, 0) + b * (self.sensitivity - max(place, r))
        later = b * self._step_mass(r) / (1 - b)
        return (-ball(self.rate * step)).exp() * (here + later) / self._total(r)

    def tail_ball(self, k: int) -> Ball:
        return flint.arb(1) if k <= 0 else 2 * self.survival_ball(k)

    def mean_ball(self) -> Ball:
        return flint.arb(0)

    @property
    def mean_absolute(self) -> float:
        """E|X|, to the nearest float or the one beside it."""
        with precision(256):
            return float(self._moment(1, self.plateau).mid())

    def variance_ball(self) -> Ball:
        return self._moment(2, self.plateau)

    def _moment(self, power: int, r: int) -> Ball:
        """E|X|^power, power 1 or 2: sum over steps j of b^j sum over places p of w_p (jD + p)^power."""
        d, b = self.sensitivity, self._b()
        upper = [Fraction(r), Fraction(r * (r - 1), 2), Fraction((r - 1) * r * (2 * r - 1), 6)]
        whole = [Fraction(d), Fraction(d * (d - 1), 2), Fraction((d - 1) * d * (2 * d - 1), 6)]
        w = [ball(u) + b * ball(t - u) for u, t in zip(upper, whole, strict=True)]
        s0, s1, s2 = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
        if power == 1:
            return 2 * (d * w[0] * s1 + w[1] * s0) / self._total(r)
        return 2 * (d * d * w[0] * s2 + 2 * d * w[1] * s1 + w[2] * s0) / self._total(r)
