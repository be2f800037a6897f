"""From a target guarantee to the smallest noise, for one mechanism or a whole plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tacit.accounting.accountants import TOLERANCE, Account, account
from tacit.accounting.events import Event, flatten
from tacit.errors import InvalidParameter, NoLaw, TacitError
from tacit.exact.checks import LARGEST, flag, how_many, non_negative, positive, probability
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import bisected
from tacit.guarantees.units import Neighbours

Plan = Callable[[float], Event | Sequence[Event]]

PRECISION = 1e-6
_FURTHEST = 80 * math.log(2)
_STEEP = 40.0
"""Larger heights count as this one, as do points where epsilon is 0 or unbounded."""
_MOST_PARABOLAS = 10
"""After this many tries every second try halves the bracket."""
_SAMPLE = 16
"""This many distinct events of a plan suffice to choose a starting point."""
_MOST_WHOLE = 16
"""After this many tries a whole number is near enough if the account cannot distinguish it from its neighbours."""


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
    whole: bool = False,
    least: int = 1,
    most: float | None = None,
) -> Calibration:
    """The value of the plan's one free parameter that just meets (epsilon, delta): to a part in a million, or as
    closely as the account itself is known (within a tenth of the width of its enclosure).

    With `more_noise=True` a larger value means more noise (a noise multiplier), and the search returns the smallest
    sufficient value; with False it means less noise (an epsilon, a rho), and the search returns the largest. The
    certified upper end at the returned value was computed, and lies within the target. `whole=True` seeks a whole
    number of at least `least` (a number of steps), and gives the plan integers; `most` is the largest value that makes
    sense (1 for a sampling rate).
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

    top = math.inf if most is None else positive("most", most)
    first = how_many("least", least)

    def cost(value: float) -> Account:
        return account(plan(value), delta=level, neighbours=relation)

    integers = flag("whole", whole)

    def rough(value: float) -> float:
        return _rough(
            plan(min(max(round(value), first), LARGEST) if integers else min(value, top)), level, relation
        )

    begin = _begin(rough, target, more_noise)
    if integers:
        found = _whole(cost, target, more_noise, first, top, begin)
    else:
        found = _Search(cost, target, more_noise, top, begin, rough).run()
    if found is None:
        raise _out_of_reach(target, level)
    return found


def _begin(rough: Callable[[float], float], target: float, more_noise: bool) -> float | None:
    """An estimate of the value from a rough account at a few points; None if that does not help.

    An account far from the target may take a thousand times as long as one near it.
    """
    wanted, sign = math.log(target) if target > 0 else -math.inf, 1.0 if more_noise else -1.0
    if math.isinf(wanted):
        return None

    def height(x: float) -> float:
        found = rough(math.exp(sign * x))
        return math.log(found) - wanted if found > 0 else -_STEEP

    try:
        x, step, here = 0.0, 1.0, height(0.0)
        way = 1.0 if here > 0 else -1.0
        while (height(x + way * step) > 0) == (here > 0):
            x, step = x + way * step, 2 * step
            if abs(x) > _FURTHEST / 2:
                return None
        low, high = min(x, x + way * step), max(x, x + way * step)
        low, high = bisected(lambda at: not height(at) > 0, low, high, halvings=8)
    except (TacitError, OverflowError):
        return None
    return math.exp(sign * (low + high) / 2)


def _rough(events: Event | Sequence[Event], delta: float, relation: Neighbours) -> float:
    """About the epsilon: rho + 2 sqrt(rho ln 1/delta) with divergences of order 2 in the place of 2 rho, and no more
    than all largest losses together. It only chooses where a search begins, so no result depends on it."""
    parts = flatten(events)
    chosen = parts[:: max(1, len(parts) // _SAMPLE)]
    rho = top = 0.0
    for event, count in chosen:
        pairs = event.pairs(relation)
        if pairs is None:
            continue
        if pairs[0].measured:
            raise NoLaw(operation="a rough look", reason="it would take as long as the account")
        rho += count * pairs[0].renyi(2.0) / 2
        top += count * pairs[0].largest_loss.high
    rho, top = rho * len(parts) / len(chosen), top * len(parts) / len(chosen)
    return min(top, rho + 2 * math.sqrt(rho * -math.log(delta))) if delta > 0 else top


class _Search:
    """A root of ln(epsilon/target) in x, the logarithm of the noise: falling, smooth, and nearly straight.

    Keeps the account of each point on the side of too much noise, since one of them is the answer. Parabolas
    through the last three points (x as a function of the height) find the root in a few steps; the search aims
    slightly at the side of too much noise, so that the first point that is near enough is an answer. If they do
    not, the bracket is halved.
    """

    def __init__(
        self,
        cost: Callable[[float], Account],
        target: float,
        more_noise: bool,
        most: float = math.inf,
        begin: float | None = None,
        rough: Callable[[float], float] | None = None,
    ) -> None:
        self.rough = None if begin is None else rough
        self.cost, self.target, self.sign = cost, target, 1.0 if more_noise else -1.0
        self.most, self.begin = most, min(1.0 if begin is None else begin, most)
        self.best: Calibration | None = None
        self.good: float | None = None
        self.bad: float | None = None
        self.known = 0.0
        self.tried: list[tuple[float, float]] = []

    def try_at(self, x: float) -> float:
        """ln(epsilon/target) there, and the bracket made narrower by it."""
        value = min(math.exp(self.sign * x), self.most)
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
        """Tries until the answer is near enough; None if no noise within the limits is enough."""
        height = self.try_at(self.sign * math.log(self.begin))
        if (x := self._second(height)) is not None:
            self.try_at(x)
        while not self._near_enough() and not self._at_most():
            x = self._next()
            if abs(x) > _FURTHEST:
                return self.best
            self.try_at(x)
        return self.best

    def _second(self, height: float) -> float | None:
        """The root by the rough account, corrected by its known error; None if the correction does not help."""
        if self.rough is None or self._near_enough() or abs(height) >= _STEEP:
            return None
        try:
            there = self.rough(self.begin)
            value = _begin(self.rough, there * math.exp(-height), self.sign > 0)
        except (TacitError, OverflowError):
            return None
        if value is None or not 0 < value < self.most:
            return None
        moved = self.sign * math.log(value) - self.tried[-1][0]
        return self.tried[-1][0] + moved if 0 < moved * (1 if height > 0 else -1) < 4 else None

    def _at_most(self) -> bool:
        """Whether the search is over: the largest sensible value is the answer, or no value is."""
        if not self.tried or math.exp(self.sign * self.tried[-1][0]) < self.most * (1 - 1e-15):
            return False
        return self.good == self.tried[-1][0] if self.sign < 0 else self.good is None

    def _near_enough(self) -> bool:
        """The tolerance: a part in a million, or a tenth of the known width of the account."""
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
        """Steps of growing length; the first assumes that epsilon is inversely proportional to the noise."""
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
        """The next point: the root, moved a little to the side of too much noise, or to the other one if that
        is known."""
        (x, u), (y, v) = self.tried[-2:]
        slope = abs((u - v) / (x - y)) if x != y else 1.0
        room = 0.05 * self.known / (self.target * slope) if self.target > 0 and slope > 0 else 0.0
        if room > PRECISION:
            return root + room
        beside = self.good is not None and self.good - root <= PRECISION
        return root - 0.45 * PRECISION if beside else root + 0.45 * PRECISION

    def _root(self) -> float | None:
        """The zero of the parabola through the last three points, or of the line through the last two."""
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


def _whole(
    cost: Callable[[float], Account],
    target: float,
    more_noise: bool,
    least: int,
    most: float,
    begin: float | None = None,
) -> Calibration | None:
    """The largest whole number that meets the target, or the smallest where larger ones mean more noise.

    The steps grow until they reach the other side. Then steps alternate between the root predicted by a power
    of the number and the middle. If the accounts of such large numbers cannot be distinguished, the answer is
    the last one that meets the target within a tenth of the width.
    """
    top = LARGEST if math.isinf(most) else int(most)
    kept: dict[int, Account] = {}

    def height(value: int) -> float:
        kept[value] = cost(value)
        high = kept[value].epsilon.high
        if high <= 0 or target <= 0:
            return -_STEEP if high <= target else _STEEP
        return min(max(math.log(high / target) if math.isfinite(high) else _STEEP, -_STEEP), _STEEP)

    def low_side(height: float) -> bool:
        """True if the wanted number is larger (or, where larger numbers mean less noise, at least this one)."""
        return (height > 0) == more_noise

    start = min(max(round(begin), least), top) if begin is not None and begin < top else least
    low = high = None
    at_low = at_high = 0.0
    value, slope, last = start, 0.75, (0, 0.0)
    while low is None or high is None:
        at = height(value)
        if last[0] and 0 < abs(last[1]) < _STEEP and abs(at) < _STEEP:
            slope = min(max(abs((at - last[1]) / math.log(value / last[0])), 0.2), 4.0)
        last = value, at
        # As far as the slope so far says, and a little further.
        jump = math.exp(min(1.15 * abs(at) / slope + 0.02, 8.0))
        if low_side(at):
            low, at_low = value, at
            if high is None and value == top:
                return None if more_noise else Calibration(value=value, account=kept[value])
            value = min(max(value + 1, round(value * jump)), top)
        else:
            high, at_high = value, at
            if low is None and value == least:
                return Calibration(value=value, account=kept[value]) if more_noise else None
            value = max(min(value - 1, round(value / jump)), least)
    bisect = False
    while high - low > 1 and not (
        len(kept) > _MOST_WHOLE and _alike(kept, high if more_noise else low, target)
    ):
        middle = math.isqrt(low * high) if high > 2 * low else (low + high) // 2
        if not bisect and at_low != at_high:
            share = at_low / (at_low - at_high)
            middle = round(low * (high / low) ** share)
        middle, bisect = min(max(middle, low + 1), high - 1), not bisect
        at = height(middle)
        if low_side(at):
            low, at_low = middle, at
        else:
            high, at_high = middle, at
    found = high if more_noise else low
    return Calibration(value=found, account=kept[found])


def _alike(kept: dict[int, Account], value: int, target: float) -> bool:
    found = kept[value].epsilon
    return target - found.high <= 0.1 * min(found.width, TOLERANCE * max(1.0, found.high))


def _out_of_reach(epsilon: float, delta: float) -> NoLaw:
    return NoLaw(
        operation=f"calibration to epsilon = {epsilon:g}, delta = {delta:g}",
        reason="no amount of noise in the free parameter meets the target",
        hint="perhaps the other events of the plan spend more than the target, or delta is 0 with Gaussian noise",
    )
