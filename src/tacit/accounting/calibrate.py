"""From a target guarantee to the smallest noise, for one mechanism or a whole plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.accounting.accountants import TOLERANCE, Account, account
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import flag, non_negative, probability
from tacit.guarantees.units import Neighbours

__all__ = ["Calibration", "calibrate"]

Plan = Callable[[float], Event | Sequence[Event]]

PRECISION = 1e-6
_FURTHEST = 80 * math.log(2)
_STEEP = 40.0
"""Heights beyond this are taken as this: where epsilon is 0, or has no bound."""


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
    """The value of the plan's one free parameter that just meets (epsilon, delta): to a part in a million, or as
    closely as the account itself is known (within a tenth of the width of its enclosure).

    `more_noise=True` says that a larger value means more noise (a noise multiplier), and the smallest such
    value is sought; False that it means less (an epsilon, a rho), and the largest is. The returned value is
    one at which the certified upper end was computed and found within the target.
    """
    target, level = non_negative("epsilon", epsilon), probability("delta", delta, below_one=True)
    relation = Neighbours.parse(neighbours)
    more_noise = flag("more_noise", more_noise)
    if not callable(plan) or isinstance(plan, type):
        raise InvalidParameter(
            parameter="plan",
            value=getattr(plan, "__name__", type(plan).__name__),
            must="be a function of the free parameter",
            hint="for instance lambda value: tacit.events.GaussianEvent(noise_multiplier=value)",
        )

    search = _Search(lambda value: account(plan(value), delta=level, neighbours=relation), target, more_noise)
    if search.bracket() is None:
        if search.best is None:
            raise _out_of_reach(target, level)
        return search.best
    return search.narrowed()


class _Search:
    """A root of ln(epsilon/target) in x, the logarithm of the noise: falling, and nearly straight.

    Points on the side of too much noise are kept with their account: the answer is one of them. Straight lines
    through both sides find the root in a few steps; where they do not, the bracket is halved.
    """

    def __init__(self, cost: Callable[[float], Account], target: float, more_noise: bool) -> None:
        self.cost, self.target, self.sign = cost, target, 1.0 if more_noise else -1.0
        self.best: Calibration | None = None
        self.good: tuple[float, float] | None = None
        self.bad: tuple[float, float] | None = None
        self.tried: list[tuple[float, float]] = []

    def try_at(self, x: float) -> float:
        """ln(epsilon/target) there, and the bracket made narrower by it."""
        value = math.exp(self.sign * x)
        found = self.cost(value)
        high = found.epsilon.high
        if high <= self.target:
            height = math.log(high / self.target) if high > 0 and self.target > 0 else -_STEEP
            self.good = x, max(height, -_STEEP)
            self.best = Calibration(value=value, account=found)
            self.tried.append(self.good)
            return self.good[1]
        height = math.log(high / self.target) if math.isfinite(high) and self.target > 0 else _STEEP
        self.bad = x, min(height, _STEEP)
        self.tried.append(self.bad)
        return self.bad[1]

    def bracket(self) -> tuple[float, float] | None:
        """Steps of growing length from 1, at first as long as epsilon inversely proportional to noise asks for."""
        height, x, step = self.try_at(0.0), 0.0, 0.0
        while self.good is None or self.bad is None:
            step = max(2 * step, min(abs(height) * 1.1 + 0.05, 4.0))
            x = x + step if self.good is None else x - step
            if abs(x) > _FURTHEST:
                return None
            height = self.try_at(x)
        return self.bad[0], self.good[0]

    def narrowed(self) -> Calibration:
        """The bracket narrowed to a part in a million, or until what is left is a tenth of the account's width."""
        before, slow = math.inf, 0
        while True:
            assert self.good is not None
            assert self.bad is not None
            assert self.best is not None
            (x, f), (y, g) = self.good, self.bad
            epsilon = self.best.account.epsilon
            # Where the lower end is 0 because nothing is known, the upper one is as fine as any.
            known = min(epsilon.width, TOLERANCE * max(1.0, epsilon.high))
            if x - y <= PRECISION or self.target - epsilon.high <= 0.1 * known:
                return self.best
            root = self._root()
            moved, before = abs(root - before), root
            # About as far beyond the root as the line errs, on the side whose end is further away.
            margin = max(0.45 * PRECISION, 0.1 * min(moved, x - y))
            middle = root + margin if x - root > root - y else root - margin
            if slow >= 2 or max(abs(f), abs(g)) >= _STEEP or not y < middle < x:
                middle = (x + y) / 2
            self.try_at(middle)
            slow = 0 if self.good[0] - self.bad[0] < 0.5 * (x - y) else slow + 1

    def _root(self) -> float:
        """Where the line through the last two points is 0, or that through both sides where that lies outside."""
        assert self.good is not None
        assert self.bad is not None
        (x, f), (y, g) = self.good, self.bad
        (a, u), (b, v) = self.tried[-2:]
        if u != v:
            root = a - u * (a - b) / (u - v)
            if y < root < x:
                return root
        return x - f * (x - y) / (f - g)


def _out_of_reach(epsilon: float, delta: float) -> NoLaw:
    return NoLaw(
        operation=f"calibration to epsilon = {epsilon:g}, delta = {delta:g}",
        reason="no amount of noise in the free parameter meets the target",
        hint="the other events of the plan may spend more than the target; or delta is 0 with Gaussian noise",
    )
