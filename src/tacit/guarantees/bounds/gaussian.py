"""Gaussian differential privacy: telling neighbours apart is as hard as telling N(0,1) from N(mu,1)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from tacit.exact.checks import Numbers, check_fields, non_negative
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, upper
from tacit.guarantees.bounds.base import Bound, solve_epsilon

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianDP(Bound):
    """mu-Gaussian differential privacy; Gaussian noise has mu = l2_sensitivity / noise_std exactly.

        delta(e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu),       D_a = a mu^2 / 2.
    The discrete Gaussian does not have this curve.
    Source: Balle, Wang 2018, Thm 8; Dong, Roth, Su 2022; theorem `gaussian-profile`.
    """

    kind: ClassVar[str] = "gaussian"
    mu: float

    def __post_init__(self) -> None:
        check_fields(self, mu=non_negative)

    def delta(self, epsilon: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest delta at this epsilon."""
        return self.delta_at(epsilon)

    def epsilon(self, delta: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest epsilon at this delta."""
        return self.epsilon_at(delta)

    def _delta(self, epsilon: float) -> float:
        if self.mu == 0 or math.isinf(epsilon):
            return 0.0

        def curve() -> arb:
            m, e = ball(self.mu), ball(epsilon)
            return normal_cdf(m / 2 - e / m) - e.exp() * normal_cdf(-m / 2 - e / m)

        return min(1.0, max(0.0, upper(curve)))

    def _epsilon(self, delta: float) -> float:
        if self.mu == 0:
            return 0.0
        if delta == 0:
            return math.inf
        return _epsilon_of(self.mu, delta)

    def _renyi(self, order: float) -> float:
        if self.mu == 0:
            return 0.0
        return math.inf if math.isinf(order) else upper(lambda: ball(order) * ball(self.mu) ** 2 / 2)

    def _kullback_leibler(self) -> float:
        return upper(lambda: ball(self.mu) ** 2 / 2)

    def describe(self) -> str:
        return f"mu = {self._short(self.mu)}"


@lru_cache(maxsize=1024)
def _epsilon_of(mu: float, delta: float) -> float:
    """Solved once, because the meaning of one guarantee is computed at the same delta again and again."""
    return solve_epsilon(GaussianDP(mu=mu)._delta, delta, start=max(mu, 1e-300))


def normal_cdf(x: arb) -> arb:
    """The standard normal distribution function as a ball, accurate in both tails."""
    return (-x / ball(2).sqrt()).erfc() / 2
