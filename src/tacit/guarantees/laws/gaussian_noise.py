"""How much Gaussian noise: the exact answer, and the classic ones beside it as named references.

All answers are noise multipliers noise_std / l2_sensitivity, rounded up. `for_releases` compares three ways
of paying for k releases at once, which is the closing example of lecture 7's section 7.1.1:

    advanced composition   sqrt(16 k ln(2.5 k/delta) ln(2/delta)) / epsilon
    Rényi                  sqrt(k (2 ln(1/delta)/epsilon + 1) / epsilon)
    exact                  sqrt(k) times the exact multiplier of one release
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import positive, probability, whole
from tacit.guarantees.bounds import GaussianDP
from tacit.guarantees.laws.registry import law
from tacit.guarantees.laws.search import largest

if TYPE_CHECKING:
    from flint import arb

__all__ = ["NoiseComparison", "classic_multiplier", "for_releases", "gaussian_budget", "gaussian_multiplier"]


@law("gaussian-budget", operation="budget", rests_on="gaussian-profile")
def gaussian_budget(*, epsilon: float, delta: float) -> GaussianDP:
    """The largest mu that is certified to give (epsilon, delta): what one release, or many, may spend."""
    return GaussianDP(mu=_largest_mu(*_target(epsilon, delta)))


@lru_cache(maxsize=1024)
def _largest_mu(epsilon: float, delta: float) -> float:
    """Solved once: one release after the other is paid for with the same price."""
    return largest(lambda mu: GaussianDP(mu=mu).delta_at(epsilon) <= delta, 0.0, max(1.0, epsilon))


def gaussian_multiplier(*, epsilon: float, delta: float) -> float:
    """The smallest noise_std / l2_sensitivity for (epsilon, delta): 4.2247 for (1, 1e-6)."""
    mu = gaussian_budget(epsilon=epsilon, delta=delta).mu
    return upper(lambda: 1 / ball(mu))


@law("gaussian-classic", operation="budget")
def classic_multiplier(*, epsilon: float, delta: float, constant: float = 2.0) -> float:
    """sqrt(2 ln(constant/delta)) / epsilon: Hall 2012 has constant 2, Dwork and Roth 2014 have 1.25.

    A theorem for epsilon <= 1 only; beyond that it may promise too much, and is refused.
    """
    e, d = _target(epsilon, delta)
    if e > 1:
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must="be at most 1 for the classic constant",
            hint="gaussian_multiplier() is exact for every epsilon",
        )
    constant = positive("constant", constant)
    if constant < 1.25:
        raise InvalidParameter(
            parameter="constant", value=constant, must="be at least 1.25", hint="no proof gives less noise"
        )
    return upper(lambda: (2 * (ball(constant) / ball(d)).log()).sqrt() / ball(e))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseComparison:
    """Noise multipliers that three theorems ask of each of k releases for one (epsilon, delta)."""

    advanced: float
    renyi: float
    exact: float


def for_releases(*, epsilon: float, delta: float, releases: int) -> NoiseComparison:
    """Lecture 7's comparison, with the exact answer beside it. `advanced` assumes epsilon <= 1 per release."""
    e, d = _target(epsilon, delta)
    k = whole("releases", releases)

    def advanced() -> arb:
        return (16 * k * (ball(2.5) * k / ball(d)).log() * (2 / ball(d)).log()).sqrt() / ball(e)

    def renyi() -> arb:
        return (k * (1 - 2 * ball(d).log() / ball(e)) / ball(e)).sqrt()

    mu = gaussian_budget(epsilon=e, delta=d).mu
    return NoiseComparison(
        advanced=upper(advanced), renyi=upper(renyi), exact=upper(lambda: ball(k).sqrt() / ball(mu))
    )


def _target(epsilon: float, delta: float) -> tuple[float, float]:
    d = probability("delta", delta, below_one=True)
    if d == 0:
        raise InvalidParameter(
            parameter="delta", value=delta, must="lie in (0, 1)", hint="no Gaussian noise gives pure epsilon"
        )
    return positive("epsilon", epsilon), d
