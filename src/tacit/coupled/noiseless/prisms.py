"""Exact sums of vectors whose law contains a prism: how far a shift in every coordinate can be told.

A row has k recorded values, each on its own grid. If its law gives every point of a box of L_1 x ... x L_k grid
points a probability of at least v/(L_1...L_k), then M ~ Bin(m, v) of the m other unknown rows are uniform on the
box, the rest is told, and given M the coordinates of their sum are independent: theorem `prism-sums`. The privacy
losses of the coordinates add up; they are rounded up to a grid of losses, so that

    delta(epsilon) <= sum over losses l > epsilon of mass(l) (1 - e^{epsilon - l}) + what is told for certain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.coupled.noiseless.lattice import SumLaw, sum_law, sum_laws
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import whole

__all__ = ["LossTable", "Prism", "pair_epsilon", "prism_epsilon", "prism_losses", "sides"]

_NODES = 24
_LOSSES = 1200
_MORE = 1 + 1e-11


@dataclass(frozen=True, slots=True, kw_only=True)
class Prism:
    """`mass` spread evenly over a box; `points` of the grid a side, and the half range of each coordinate in steps."""

    mass: Fraction
    points: tuple[int, ...]
    half_ranges: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 < self.mass <= 1:
            raise InvalidParameter(
                parameter="prism",
                value=float(self.mass),
                must="have a mass above 0 and at most 1",
                hint="a constant column, or one that others determine, leaves no prism",
            )
        if not self.points or len(self.points) != len(self.half_ranges):
            raise InvalidParameter(parameter="prism", value=len(self.points), must="have a side a coordinate")
        for name, values, least in (("points", self.points, 2), ("half_ranges", self.half_ranges, 1)):
            object.__setattr__(self, name, tuple(whole(name, x, least=least) for x in values))

    def strength(self, rows: int) -> float:
        """About the size of the privacy loss: the norm of (half range)/(standard deviation of the hidden sum)."""
        hidden = max(1.0, float(self.mass) * rows)
        return math.sqrt(
            sum(12 * h**2 / (hidden * (n**2 - 1)) for n, h in zip(self.points, self.half_ranges, strict=True))
        )


@dataclass(frozen=True, slots=True, eq=False)
class LossTable:
    """Masses of privacy losses first step, ..., in steps, upper ends; `certain` is the mass of an unbounded loss."""

    first: int
    step: float
    masses: Floats
    certain: float

    def delta(self, epsilon: float) -> float:
        """A float that is not below the divergence."""
        losses = (self.first + np.arange(len(self.masses))) * self.step
        with np.errstate(under="ignore"):
            kept = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        return (float(np.sum(self.masses * kept)) + self.certain) * _MORE

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon, but for 10^-12, whose delta is at most this one; infinite if none is."""
        if self.certain * _MORE > delta:
            return math.inf
        low, high = 0.0, max((self.first + len(self.masses)) * self.step, 0.0)
        if self.delta(0.0) <= delta:
            return 0.0
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def prism_losses(prism: Prism, *, hidden: int, delta: float) -> LossTable:
    """The losses of the protected row at a corner of the range against the middle, `hidden` other rows unknown.

    A uniform sum is symmetric and log-concave: the corner is the worst place, all corners and both directions are
    alike (theorem `prism-sums`).
    """
    nodes, certain = _numbers(prism.mass, hidden, delta)
    if not nodes:
        return LossTable(0, 1.0, np.zeros(1), 1.0)
    strength = prism.strength(max(2, nodes[0][1]))
    reach = strength * (math.sqrt(2 * -math.log(delta)) + 3.0) + strength**2
    step = reach / _LOSSES
    laws = [sum_laws([(Fraction(1, n),) * n], [(m,) for _, m in nodes], delta=delta) for n in prism.points]
    size = len(prism.points)
    total = np.zeros(2 * _LOSSES * size + 1)
    for place, (share, _) in enumerate(nodes):
        table = np.ones(1)
        left = 0.0
        for coordinate, half in zip(laws, prism.half_ranges, strict=True):
            masses, lost = _losses(coordinate[place], half, step)
            table = np.convolve(table, masses) * _MORE
            left += lost
        total += share * table
        certain += share * left
    return LossTable(-_LOSSES * size, step, total, certain * _MORE)


def _losses(law: SumLaw, half: int, step: float) -> tuple[Floats, float]:
    """(Masses of the losses of S + half against S, rounded up to the grid of losses; the mass beyond it)."""
    size = len(law.low) + half
    above = law.at(law.start - half, size, upper=True)
    below = law.at(law.start, size, upper=False)
    lost = law.outside + float(np.sum(above[below <= 0.0]))
    inside = (below > 0.0) & (above > 0.0)
    above, below = above[inside], below[inside]
    places = np.ceil(np.log(above / below) / step + 1e-6)
    beyond = places > _LOSSES
    lost += float(np.sum(above[beyond]))
    places = np.maximum(places[~beyond], -_LOSSES).astype(np.int64) + _LOSSES
    masses = np.bincount(places, weights=above[~beyond], minlength=2 * _LOSSES + 1)
    return np.asarray(masses * _MORE), lost * _MORE


def _numbers(mass: Fraction, hidden: int, delta: float) -> tuple[list[tuple[float, int]], float]:
    """(Shares of runs of the number of uniform rows, each with its first member; the chance of too few)."""
    if mass == 1:
        return [(1.0, hidden)], 0.0
    few = 1e-3 * delta
    number = sum_law((1 - mass, mass), hidden, delta=few)
    below = np.cumsum(number.high) * (1 + 1e-12)
    lowest = max(int(np.searchsorted(below + number.outside, few)), 1 - number.start)
    if lowest >= len(number.high):
        return [], 1.0
    certain = (float(below[lowest - 1]) if lowest > 0 else 0.0) + number.outside
    middle = int(np.argmax(number.high))
    last = min(len(number.high) - 1, middle + int(4 * math.sqrt(float(mass * (1 - mass)) * hidden)) + 1)
    step = max(1, -(-(last - lowest) // _NODES))
    starts = [*range(lowest, last + 1, step), len(number.high)]
    shares = [
        (math.fsum(number.high[a:b]) * (1 + 1e-12), number.start + a) for a, b in itertools.pairwise(starts)
    ]
    return shares, certain * (1 + 1e-12)


def prism_epsilon(prism: Prism, *, hidden: int, delta: float) -> tuple[float, float]:
    """(epsilon at this delta, the delta that no epsilon goes below)."""
    table = prism_losses(prism, hidden=hidden, delta=delta)
    return table.epsilon(delta), table.certain


def pair_epsilon(prism: Prism, *, hidden: int, delta: float) -> float:
    """The epsilon between any two values of a row: two opposite corners are the worst, twice as far apart."""
    wide = Prism(mass=prism.mass, points=prism.points, half_ranges=tuple(2 * h for h in prism.half_ranges))
    return prism_losses(wide, hidden=hidden, delta=delta).epsilon(delta)


def sides(
    values: Sequence[tuple[float, float]], low: Sequence[float], step: Sequence[float]
) -> tuple[int, ...]:
    """How many grid points of low + j step have their rounding cell inside each interval."""
    out = []
    for (a, b), start, s in zip(values, low, step, strict=True):
        first = math.ceil((a - start) / s + 0.5 - 1e-9)
        last = math.floor((b - start) / s - 0.5 + 1e-9)
        out.append(max(0, last - first + 1))
    return tuple(out)
