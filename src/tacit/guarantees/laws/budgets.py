"""Budgets: the most of a Rényi divergence, or of a rho, that an (epsilon, delta) allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.exact.balls import ball, lower, upper
from tacit.exact.checks import flag, positive
from tacit.guarantees.bounds import Concentrated, Renyi
from tacit.guarantees.laws.convert import open_probability
from tacit.guarantees.laws.search import largest

if TYPE_CHECKING:
    from flint import arb

__all__ = ["concentrated_budget", "renyi_budget"]


def renyi_budget(*, epsilon: float, delta: float) -> Renyi:
    """The Rényi bound that suffices for (epsilon, delta): lecture 7, Cor. 7.12.

    Order 1 + 2 ln(1/delta)/epsilon (rounded up) with divergence epsilon/2.
    """
    e, d = positive("epsilon", epsilon), open_probability(delta)
    return Renyi(orders=(upper(lambda: 1 - 2 * ball(d).log() / ball(e)),), epsilons=(e / 2,))


def concentrated_budget(*, epsilon: float, delta: float, printed: bool = False) -> Concentrated:
    """The largest rho that is certified to give (epsilon, delta).

    Printed (lecture 7): (sqrt(epsilon + ln(1/delta)) - sqrt(ln(1/delta)))^2. Sharper: by inverting the
    default conversion.
    """
    e, d = positive("epsilon", epsilon), open_probability(delta)
    low = _printed_rho(e, d)
    if flag("printed", printed):
        return Concentrated(rho=low)
    # An epsilon near 0 leaves a rho that delta alone allows.
    return Concentrated(rho=largest(lambda rho: Concentrated(rho=rho).delta_at(e) <= d, low, max(low, 1e-30)))


def _printed_rho(epsilon: float, delta: float) -> float:
    def formula() -> arb:
        b = -ball(delta).log()
        return (ball(epsilon) / ((ball(epsilon) + b).sqrt() + b.sqrt())) ** 2

    return lower(formula)
