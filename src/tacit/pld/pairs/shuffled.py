"""The pair of shuffled local answers: one person's answer among those of many others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, ball, bracket, lower, precision, up
from tacit.pld.distributions import AtomicPLD
from tacit.pld.pairs.base import Pair, check_order

LARGEST_SHUFFLED = 50.0
"""Above this local epsilon nobody else's answer hides a person's."""
_REACH, _FLOOR = 11.5, 40
"""Values of a binomial beyond this many standard deviations, and this many values, are put at the largest loss."""
_MOST_ATOMS = 2_500_000
_NEAR, _FINE, _CHUNK, _FEW = 8.0, 2048, 400_000, 1 << 16
"""Atoms beyond a few are gathered at nodes: a 256th of a standard deviation of the loss apart near 0, and a
2048th of themselves far out."""
_SHARES = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)


class _Law(NamedTuple):
    """Masses of a binomial from `start` on, right to the relative error `error`; the rest is at most `beyond`."""

    start: int
    masses: Floats
    error: float
    beyond: float


def _window(trials: int, chance: float) -> tuple[int, int, int]:
    middle = min(trials, int((trials + 1) * chance))
    reach = int(_REACH * math.sqrt(trials * chance * (1 - chance))) + _FLOOR
    return max(0, middle - reach), middle, min(trials, middle + reach)


def _binomial(trials: int, chance: Any, odds: Any) -> _Law:
    """Bin(trials, chance): its largest mass as a ball, the others by their ratios, each with an error of a few
    units.
    """
    ratio = float(odds.mid())
    low, middle, high = _window(trials, float(chance.mid()))
    with precision(160):
        top = ball(trials + 1).lgamma() - ball(middle + 1).lgamma() - ball(trials - middle + 1).lgamma()
        anchor = float((top.exp() * chance**middle * (1 - chance) ** (trials - middle)).mid())
    up_ = np.arange(middle, high, dtype=np.float64)
    down_ = np.arange(middle, low, -1, dtype=np.float64)
    rising = np.cumprod((trials - up_) / (up_ + 1) * ratio)
    falling = np.cumprod(down_ / (trials - down_ + 1) / ratio)
    masses = np.concatenate([falling[::-1], [1.0], rising]) * anchor
    # Beyond its mode a binomial falls at least geometrically, by the ratio of the last step.
    beyond = 0.0
    for mass, step in (
        (masses[-1], (trials - high) / (high + 1) * ratio),
        (masses[0], low / (trials - low + 1) / ratio),
    ):
        beyond += float(mass) * step / (1 - step) * (1 + 1e-9) if step > 0 else 0.0
    return _Law(low, masses, (6 * len(masses) + 64) * UNIT, beyond)


class _Cell(NamedTuple):
    """`weight` of the pair b_c(j) (a + j) against b_c(j) (a + c - j), both over a + c/2, b_c = Bin(c, 1/2)."""

    weight: float
    c: int
    a: float


@dataclass(frozen=True, slots=True, eq=False)
class _Atoms:
    """Losses, ascending, with masses under P and Q, right to the relative error `error`; losses to `slack`."""

    losses: Floats
    p: Floats
    q: Floats
    p_above: Floats
    q_above: Floats
    error: float
    slack: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledPair(Pair):
    """One of `people` whose local answers are shuffled, each with pure `epsilon`; an upper bound in both directions.

    `outcomes`, `supporting` and `shared` are those of a balanced response (k, 1, 0 for randomised response over k
    categories), whose uniform part is counted; 0 outcomes stand for any mechanism of this epsilon.
    Sums of pairs (c, a): j of c answers are for one's value and c - j for the other one's, with j ~ Bin(c, 1/2)
    apart from the person's own answer. If there are too many values of c, one pair that is worse than all
    replaces each run of them (`docs/theory/shuffled-responses.md`).
    """

    epsilon: float
    people: int
    outcomes: int = 0
    supporting: int = 1
    shared: int = 0

    exact: ClassVar[bool] = False
    exact_in_products: ClassVar[bool] = False
    measured: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ok = 0 < self.epsilon <= LARGEST_SHUFFLED
        require(
            ok, parameter="epsilon", value=self.epsilon, must=f"lie above 0 and up to {LARGEST_SHUFFLED:g}"
        )
        require(self.people >= 1, parameter="people", value=self.people, must="be at least 1")
        ok = self.outcomes == 0 or (
            0 <= self.shared < self.supporting and 2 * self.supporting - self.shared <= self.outcomes
        )
        require(
            ok, parameter="outcomes", value=self.outcomes,
            must="be 0 (any mechanism), or those of sets of these sizes",
        )  # fmt: skip

    @property
    def telling(self) -> int:
        """The number of outcomes that support one of two values and not the other."""
        return 2 * (self.supporting - self.shared)

    @property
    def largest_loss(self) -> Interval:
        top = max(self.epsilon, float(self._atoms().losses[-1]) + self._atoms().slack)
        return Interval(low=0.0, high=top)

    def _atoms(self) -> _Atoms:
        return _atoms(self)

    def curve(self, t: Any) -> Any:
        """P(loss > ln t) - t Q(loss > ln t), with all errors on the upper side; 1 - t + t h(1/t) below 1."""
        if bool(t < 1):
            return (1 - t + t * self.curve(1 / t)).min(ball(1))
        x = float(t.log().mid())
        atoms = self._atoms()
        first = int(np.searchsorted(atoms.losses, x, side="right"))
        p, q = float(atoms.p_above[first]), float(atoms.q_above[first])
        # The best set has the losses above ln t; those that a rounded loss puts on the wrong side add less than slack.
        slack = (1 + t) * (ball(p) + q + 1e-300) * (2 * ball(atoms.slack) + ball(UNIT) * 8 * (1 + abs(x)))
        value = ball(p) * (1 + ball(atoms.error)) - t * ball(q) * (1 - ball(atoms.error)) + slack
        near = int(np.searchsorted(atoms.losses, x - 4 * atoms.slack - 8 * UNIT * (1 + abs(x)), side="left"))
        value += (1 + t) * (ball(float(atoms.p_above[near])) - p) * (4 * ball(atoms.slack))
        return ball(max(0.0, min(1.0, up(value))))

    def pld(self) -> AtomicPLD:
        atoms = self._atoms()
        nothing = Interval(low=0.0, high=0.0)
        return AtomicPLD.single(
            losses=atoms.losses, p=atoms.p, q=atoms.q, infinite=nothing, reverse_infinite=nothing,
            error=atoms.error, slack=atoms.slack,
        )  # fmt: skip

    def renyi(self, order: float) -> float:
        """ln(sum p e^((a-1) loss)) / (a-1), over the atoms; never above the bound by the local epsilon."""
        from tacit.pld.pairs.derived import ApproximatePair

        check_order(order)
        local = ApproximatePair(epsilon=self.epsilon, delta=0.0).renyi(order)
        if order == math.inf:
            return local
        atoms = self._atoms()
        if (order - 1) * (self.epsilon + 1) > 600:  # beyond the range of floats
            return local
        grown = np.expm1((order - 1) * (atoms.losses + atoms.slack))
        # Sums around 1: the masses add up to 1 but for their error.
        inner = float(np.sum(atoms.p * grown)) + atoms.error * float(np.sum(atoms.p * (np.abs(grown) + 2)))
        inner += len(grown) * UNIT * float(np.sum(atoms.p * np.abs(grown)))
        if not math.isfinite(inner):
            return local
        return min(local, bracket(lambda: ball(inner).log1p() / (ball(order) - 1), what="a divergence").high)


def _cells(pair: ShuffledPair, share: float) -> Iterator[tuple[list[_Cell], float, float]]:
    """Cells, the remainder of their weight, and their weights' relative error, in parts."""
    others, size, told = pair.people - 1, pair.outcomes, pair.telling
    with precision(160):
        less = ball(pair.epsilon).expm1()
        chance, odds = 1 / ball(pair.epsilon).exp(), 1 / less
        if size:
            chance, odds = size / (size + pair.supporting * less), size / (pair.supporting * less)
        law = _binomial(others, chance, odds)
    deviation = math.sqrt(others * float(chance.mid()) * (1 - float(chance.mid())))
    runs = _runs(
        law, share * deviation, last=law.start + int(np.argmax(law.masses)) + int(3 * deviation) + _FLOOR
    )
    if size in (0, told):
        made = [
            _Cell(weight, first + 1, lower(lambda m=first + 1: m / ball(pair.epsilon).expm1()))  # type: ignore[misc]
            for first, _, weight in runs
        ]
        yield made, law.beyond, law.error
        return
    for first, _, weight in runs:
        m = first + 1
        with precision(160):
            inner = _binomial(m, ball(told) / size, ball(told) / (size - told))
            unit, half = float(chance.mid()), float((less / m).mid())
        c = inner.start + np.arange(len(inner.masses))
        # Of the answers that are not among the c, this share is for both values.
        weights = c / 2 + (m - c) * (pair.shared / (size - told))
        tilted = _Law(inner.start, inner.masses * unit * (1 + half * weights), inner.error + 16 * UNIT, 0.0)
        a = lower(lambda m=m: m / ball(pair.epsilon).expm1())  # type: ignore[misc]
        width = min(share * math.sqrt(m * (told / size) * (1 - told / size)), a)
        made, lost = [], inner.beyond * math.exp(pair.epsilon)
        for low, high, inside in _runs(tilted, width):
            made.append(_Cell(weight * inside, high, math.nextafter(a - (high - low) / 2, 0.0)))
        yield made, weight * lost, law.error + tilted.error
    yield [], law.beyond, 0.0


def _runs(law: _Law, width: float, last: int | None = None) -> Iterator[tuple[int, int, float]]:
    """(First and last value, mass) of runs of `width` values; all values from `last` on are one run."""
    size, end = max(1, int(width)), len(law.masses)
    stop = end if last is None else min(end, last - law.start)
    starts = [*range(0, stop, size), *([stop] if stop < end else [])]
    sums = np.add.reduceat(law.masses, starts).tolist()
    for i, j, mass in zip(starts, [*starts[1:], end], sums, strict=True):
        yield law.start + i, law.start + j - 1, mass


def _typical(pair: ShuffledPair) -> tuple[float, float, float]:
    """The probability that another person answers at random, the typical number of such answers, and the number
    for either value.
    """
    others, k, less = pair.people - 1, pair.outcomes, math.expm1(pair.epsilon)
    chance = k / (k + pair.supporting * less) if k else 1 / (1 + less)
    about = others * chance + 1
    return chance, about, about * (pair.telling / k if k not in (0, pair.telling) else 1)


def _deviation(pair: ShuffledPair) -> float:
    """About the standard deviation of the loss: c answers for either value move it by 2/(a + c/2) each."""
    _, about, c = _typical(pair)
    return math.sqrt(max(c, 1.0)) / (about / math.expm1(pair.epsilon) + c / 2)


def _share(pair: ShuffledPair) -> float:
    """The width of runs, in standard deviations, that avoids too many atoms."""
    chance, _, c = _typical(pair)
    others, two = pair.people - 1, pair.outcomes not in (0, pair.telling)
    low, middle, high = _window(others, chance)
    deviation = math.sqrt(others * chance * (1 - chance))
    size = 2 * (_REACH * math.sqrt(c) / 2 + _FLOOR)
    for share in _SHARES:
        cells = (min(high, middle + 3 * deviation + _FLOOR) - low) / max(1.0, share * deviation) + 1
        if two:
            spread = math.sqrt(c)
            cells *= 2 * (_REACH * spread + _FLOOR) / max(1.0, share * spread) + 1
        if cells * size <= _MOST_ATOMS:
            return share
    return _SHARES[-1]


class _Gathered:
    """Losses at which atoms are gathered: close together around 0, and in proportion to their size far out.

    An atom between two nodes is split so that its masses under P and under Q stay (connect-the-dots), which rounds the
    curve up by the square of the distance. Rounding of the split is that of the atom's loss.
    """

    def __init__(self, deviation: float, epsilon: float) -> None:
        self.near, self.top = _NEAR * deviation, epsilon
        reach = math.ceil(math.asinh((epsilon + 1.0) / self.near) * _FINE)
        ahead = self.near * np.sinh(np.arange(1, reach + 2) / _FINE)
        # The local epsilon is a node: no loss of a simple answer exceeds it.
        first = int(np.searchsorted(ahead, epsilon))
        ahead = np.insert(ahead, first, epsilon) if ahead[first] != epsilon else ahead
        self.losses = np.concatenate([-ahead[::-1], [0.0], ahead])
        self.masses = np.zeros(len(self.losses))
        self.count = 0
        self.apart: list[tuple[Floats, Floats]] | None = []
        """The atoms themselves, while they are few."""

    def add(self, losses: Floats, masses: Floats) -> None:
        """Atoms of these losses and P-masses, in any order."""
        self.count += len(losses)
        if self.apart is not None:
            self.apart.append((losses, masses))
            if self.count > _FEW:
                kept, self.apart = self.apart, None
                for one in kept:
                    self._gather(*one)
        else:
            self._gather(losses, masses)

    def atoms(self) -> tuple[Floats, Floats]:
        """Losses, ascending, and their P-masses."""
        losses, masses = self.losses, self.masses
        if self.apart is not None:
            losses, masses = (np.concatenate(x) for x in zip(*self.apart, strict=True))
            order = np.argsort(losses, kind="stable")
            losses, masses = losses[order], masses[order]
        return losses[masses > 0], masses[masses > 0]

    def _gather(self, losses: Floats, masses: Floats) -> None:
        place = np.searchsorted(self.losses, losses, side="right") - 1
        place = np.clip(place, 0, len(self.losses) - 2)
        left = self.losses[place]
        share = np.clip(np.expm1(left - losses) / np.expm1(left - self.losses[place + 1]), 0.0, 1.0)
        size = len(self.losses)
        self.masses += np.bincount(place, weights=masses * (1 - share), minlength=size)
        self.masses += np.bincount(place + 1, weights=masses * share, minlength=size)


def _fair(c: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats, Floats, float]:
    """Values and masses of Bin(c, 1/2) for each c, a row each, the omitted mass, and their relative error.

    The largest mass is C(2m, m)/4^m, m = c/2 rounded up: e^(-1/8m + 1/192m^3 - 1/640m^5)/sqrt(pi m), by Stirling's
    series with an error below 2^-8 m^-7; the others by their ratios.
    """
    m = (c + 1) // 2
    far = np.maximum(m, _FLOOR).astype(np.float64)
    top = np.exp(-1 / (8 * far) + 1 / (192 * far**3) - 1 / (640 * far**5)) / np.sqrt(math.pi * far)
    for few in np.unique(m[m <= _FLOOR]):
        top[m == few] = math.comb(2 * int(few), int(few)) / 4 ** int(few)
    reach = int(_REACH * math.sqrt(float(np.max(c))) / 2) + _FLOOR
    k = np.arange(reach, dtype=np.float64)
    rows, middle = c[:, None].astype(np.float64), m[:, None].astype(np.float64)
    rising = np.cumprod(np.maximum(rows - middle - k, 0.0) / (middle + k + 1), axis=1)
    falling = np.cumprod(np.maximum(middle - k, 0.0) / (rows - middle + k + 1), axis=1)
    masses = np.concatenate([falling[:, ::-1], np.ones_like(middle), rising], axis=1) * top[:, None]
    step = np.maximum(rows[:, 0] - m - reach, 0.0) / (m + reach + 1)
    back = np.maximum(middle[:, 0] - reach, 0.0) / (rows[:, 0] - m + reach + 1)
    beyond = (masses[:, -1] * step / (1 - step) + masses[:, 0] * back / (1 - back)) * (1 + 1e-9)
    values = np.clip(m[:, None] + np.arange(-reach, reach + 1), 0, c[:, None])
    return values, masses, beyond, (12 * reach + 128) * UNIT


@lru_cache(maxsize=128)
def _atoms(pair: ShuffledPair) -> _Atoms:
    nodes = _Gathered(_deviation(pair), pair.epsilon)
    over, error, slack = 0.0, 0.0, 32 * UNIT * (2 + pair.epsilon)
    for cells, lost, wrong in _cells(pair, _share(pair)):
        over += lost
        size = 2 * (int(_REACH * math.sqrt(max((cell.c for cell in cells), default=0))) + _FLOOR)
        rows = max(1, _CHUNK // size)
        for chunk in (cells[i : i + rows] for i in range(0, len(cells), rows)):
            c = np.array([cell.c for cell in chunk], dtype=np.int64)
            a, weight = (
                np.array(x)[:, None] for x in zip(*((cell.a, cell.weight) for cell in chunk), strict=True)
            )
            values, masses, beyond, inner = _fair(c)
            held = masses > 0
            for_one, for_other = a + values, a + (c[:, None] - values)
            losses = np.log(for_one / for_other)
            losses = np.where(
                np.abs(np.abs(losses) - pair.epsilon) <= slack, np.sign(losses) * pair.epsilon, losses
            )
            nodes.add(losses[held], (masses * (weight / (a + c[:, None] / 2)) * for_one)[held])
            over += 2 * float(weight[:, 0] @ beyond)
            error = max(error, wrong + inner)
    # What was left out has at most the local loss: the worst pair of that, with a weight that is rounded up.
    top, rest = max(pair.epsilon, float(nodes.atoms()[0][-1])), over * (1 + 1e-6)
    nodes.add(np.array([-top, top]), rest * np.array([math.exp(-top), 1.0]))
    losses, p = nodes.atoms()
    q = p * np.exp(-losses)
    return _Atoms(
        losses=losses, p=p, q=q, p_above=_above(p), q_above=_above(q),
        error=error + (2 * nodes.count + 64) * UNIT, slack=slack,
    )  # fmt: skip


def _above(masses: Floats) -> Floats:
    """The sum of the masses from each place on, and 0 after the last."""
    return np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
