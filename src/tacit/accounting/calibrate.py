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
_MOST_PARABOLAS = 10
"""After so many tries every other one halves the bracket."""


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
    found = search.run()
    if found is None:
        raise _out_of_reach(target, level)
    return found


class _Search:
    """A root of ln(epsilon/target) in x, the logarithm of the noise: falling, smooth, and nearly straight.

    Points on the side of too much noise are kept with their account: the answer is one of them. Parabolas through the
    last three points (x as a function of the height) find the root in a few steps; what is sought lies a little on
    the side of too much noise, so that the first point that is near enough is an answer. Where they do not, the
    bracket is halved.
    """

    def __init__(self, cost: Callable[[float], Account], target: float, more_noise: bool) -> None:
        self.cost, self.target, self.sign = cost, target, 1.0 if more_noise else -1.0
        self.best: Calibration | None = None
        self.good: float | None = None
        self.bad: float | None = None
        self.known = 0.0
        self.tried: list[tuple[float, float]] = []

    def try_at(self, x: float) -> float:
        """ln(epsilon/target) there, and the bracket made narrower by it."""
        value = math.exp(self.sign * x)
        found = self.cost(value)
        high = found.epsilon.high
        if high <= self.target:
            height = math.log(high / self.target) if high > 0 and self.target > 0 else -_STEEP
            self.good, self.best = x, Calibration(value=value, account=found)
        else:
            height = math.log(high / self.target) if math.isfinite(high) and self.target > 0 else _STEEP
            self.bad = x
        # Where the lower end is 0 because nothing is known, the upper one is as fine as any.
        if math.isfinite(high):
            self.known = min(found.epsilon.width, TOLERANCE * max(1.0, high))
        self.tried.append((x, min(max(height, -_STEEP), _STEEP)))
        return self.tried[-1][1]

    def run(self) -> Calibration | None:
        """Tries until the answer is near enough; None where no noise in reach is enough."""
        self.try_at(0.0)
        while not self._near_enough():
            x = self._next()
            if abs(x) > _FURTHEST:
                return self.best
            self.try_at(x)
        return self.best

    def _near_enough(self) -> bool:
        """To a part in a million, or a tenth of the width to which the account is known."""
        if self.best is None or self.good is None:
            return False
        if self.target - self.best.account.epsilon.high <= 0.1 * self.known:
            return True
        return self.bad is not None and self.good - self.bad <= PRECISION

    def _next(self) -> float:
        root = self._root()
        if self.good is None or self.bad is None:
            return self._further(root)
        bisects = len(self.tried) > _MOST_PARABOLAS and len(self.tried) % 2 == 0
        if root is None or bisects:
            return (self.good + self.bad) / 2
        wanted = self._wanted(root)
        return wanted if self.bad < wanted < self.good else (self.good + self.bad) / 2

    def _further(self, root: float | None) -> float:
        """Steps of growing length, at first as long as epsilon inversely proportional to noise asks for."""
        x, height = self.tried[-1]
        if root is not None and len(self.tried) > 1:
            wanted = self._wanted(root)
            # Towards the other side only, and not much further than what was seen so far.
            if 0 < (wanted - x if self.good is None else x - wanted) <= 4 * abs(x - self.tried[-2][0]):
                return wanted
        last = abs(x - self.tried[-2][0]) if len(self.tried) > 1 else 0.0
        step = max(2 * last, min(abs(height) * 1.1 + 0.05, 4.0))
        return x + step if self.good is None else x - step

    def _wanted(self, root: float) -> float:
        """The middle of what is near enough; where that is a part in a million, on either side of the root in turn."""
        (x, u), (y, v) = self.tried[-2:]
        slope = abs((u - v) / (x - y)) if x != y else 1.0
        room = 0.05 * self.known / (self.target * slope) if self.target > 0 and slope > 0 else 0.0
        if room > PRECISION:
            return root + room
        beside = self.good is not None and self.good - root <= PRECISION
        return root - 0.45 * PRECISION if beside else root + 0.45 * PRECISION

    def _root(self) -> float | None:
        """Where the parabola through the last three points, or the line through the last two, is 0."""
        points = [p for p in self.tried if abs(p[1]) < _STEEP][-3:]
        if len(points) < 2 or len({height for _, height in points}) < len(points):
            return None
        root = 0.0
        for x, u in points:
            share = 1.0
            for y, v in points:
                if y != x:
                    share *= v / (v - u)
            root += x * share
        return root


def _out_of_reach(epsilon: float, delta: float) -> NoLaw:
    return NoLaw(
        operation=f"calibration to epsilon = {epsilon:g}, delta = {delta:g}",
        reason="no amount of noise in the free parameter meets the target",
        hint="the other events of the plan may spend more than the target; or delta is 0 with Gaussian noise",
    )
