"""A budget shared by blocks of queries: Laplace noise by epsilon, Gaussian noise by mu where a delta is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.exact.balls import ball, upper
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Bound, GaussianDP
from tacit.guarantees.running_sum import PURE, currency_of, summed
from tacit.mechanisms.base import Mechanism, epsilon_parameter
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.sensitivity import L1, L2

__all__ = ["Budget", "block_mechanism", "composed_bound", "sum_of_epsilons"]

# Room for the directed rounding of several parts, so that their sum stays within the budget.
SLACK = 1 - Fraction(1, 1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """epsilon alone (Laplace), or with a delta: then Gaussian noise with a total mu is possible too."""

    epsilon: Fraction
    delta: float | None
    mu: Fraction

    @classmethod
    def of(cls, epsilon: Exact, delta: Exact | None) -> Budget:
        """The largest mu whose curve stays within (epsilon, delta), certified."""
        target = epsilon_parameter(epsilon)
        if delta is None:
            return cls(epsilon=target, delta=None, mu=Fraction(0))
        from tacit.mechanisms.calibrate import greatest
        from tacit.mechanisms.gaussian import delta_parameter

        limit = delta_parameter(delta)
        goal = -up(-target)
        mu = greatest(lambda m: GaussianDP(mu=up(m)).delta(goal) <= limit, Fraction(1 << 10)) * SLACK
        return cls(epsilon=target, delta=limit, mu=mu)


def block_mechanism(
    size: int, move: int, share: Fraction, budget: Budget, gaussian: bool
) -> Laplace | RoundedGaussian:
    """Noise for one block: its share of epsilon, or of mu^2; `move` is L1, or squared L2."""
    if not gaussian:
        part = budget.epsilon if share == 1 else budget.epsilon * share * SLACK
        return Laplace.for_epsilon(epsilon=part, sensitivity=L1(move))
    # mu_l^2 = share mu^2, so that the squares add up to mu^2.
    target = budget.mu**2 * share
    std = Fraction(upper(lambda: (ball(move) / ball(target)).sqrt()))
    return RoundedGaussian(sensitivity=L2.root(move), noise_std=std, dimension=size)


def composed_bound(mechanisms: Sequence[Mechanism | None]) -> Bound:
    """Pure epsilons add; the squares of mu add (theorems compose-pure, compose-gdp)."""
    bounds = [m.bound for m in mechanisms if m is not None]
    if len(bounds) == 1:
        return bounds[0]
    currency = currency_of(bounds[0])
    assert currency is not None
    return currency.bound(summed(currency, [(currency.of_bound(b), 1) for b in bounds]))


def sum_of_epsilons(*epsilons: float | Fraction) -> float:
    """The epsilon of the steps of one mechanism together, rounded up."""
    total = summed(PURE, [({"epsilon": Fraction(epsilon)}, 1) for epsilon in epsilons])
    return PURE.bound(total).epsilon_at(0.0)
