"""From a target guarantee to the smallest noise, for one mechanism or a whole plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.accounting.accountants import Account, account
from tacit.accounting.events import Event
from tacit.errors import NoLaw
from tacit.guarantees.checks import non_negative, probability
from tacit.guarantees.units import Neighbours

__all__ = ["Calibration", "calibrate"]

Plan = Callable[[float], Event | Sequence[Event]]

PRECISION = 1e-6
_FURTHEST = 2.0**80


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The free parameter found, and the certified account of the plan at exactly that parameter."""

    value: float
    account: Account


def calibrate(
    plan: Plan,
    *,
    epsilon: float,
    delta: float,
    more_noise: bool = True,
    neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
) -> Calibration:
    """The value of the plan's one free parameter that just meets (epsilon, delta), to a part in a million.

    `more_noise=True` says that a larger value means more noise (a noise multiplier), and the smallest such
    value is sought; False that it means less (an epsilon, a rho), and the largest is. The returned value is
    one at which the certified upper end was computed and found within the target.
    """
    target, level = non_negative("epsilon", epsilon), probability("delta", delta, below_one=True)
    relation = Neighbours.parse(neighbours)

    def cost(value: float) -> Account:
        return account(plan(value), delta=level, neighbours=relation)

    def meets(value: float) -> Account | None:
        found = cost(value)
        return found if found.epsilon.high <= target else None

    factor = 4.0 if more_noise else 0.25
    good, bad = 1.0, 1.0
    best = meets(good)
    if best is None:
        while best is None:
            bad, good = good, good * factor
            if not 1 / _FURTHEST < good < _FURTHEST:
                raise _out_of_reach(target, level)
            best = meets(good)
    else:
        while True:
            bad = bad / factor
            if not 1 / _FURTHEST < bad < _FURTHEST:
                return Calibration(value=good, account=best)
            found = meets(bad)
            if found is None:
                break
            good, best = bad, found
    while abs(good - bad) > PRECISION * min(good, bad):
        middle = math.sqrt(good * bad)
        found = meets(middle)
        if found is None:
            bad = middle
        else:
            good, best = middle, found
    return Calibration(value=good, account=best)


def _out_of_reach(epsilon: float, delta: float) -> NoLaw:
    return NoLaw(
        operation=f"calibration to epsilon = {epsilon:g}, delta = {delta:g}",
        reason="no amount of noise in the free parameter meets the target",
        hint="the other events of the plan may spend more than the target; or delta is 0 with Gaussian noise",
    )
