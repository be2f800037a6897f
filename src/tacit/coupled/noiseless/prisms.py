"""Exact sums of vectors whose distribution contains a prism, and the privacy loss of a shift in every coordinate.

A row has k recorded values, each on its own grid. If its distribution gives every point of a box of L_1 x ... x L_k
grid points a probability of at least v/(L_1...L_k), then M ~ Bin(m, v) of the m other unknown rows are uniform on the
box, the adversary knows the rest, and given M the coordinates of their sum are independent: theorem `prism-sums`. The
privacy losses of the coordinates add up; they are rounded up to a grid of losses, so that

    delta(epsilon) <= sum over losses l > epsilon of mass(l) (1 - e^{epsilon - l}) + the probability of a certain
    disclosure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.coupled.noiseless.lattice import FoundShift, SumLaw, excess, factor_for, sum_law, sum_laws
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import UNIT, Floats
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import bisected, precision
from tacit.pld.fourier import good_size

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
    """Upper ends of the masses of privacy losses, in steps from `first` on; `certain` is the mass of an
    unbounded loss.
    """

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
        """An epsilon within 10^-12 of the smallest one whose delta is at most this; infinite if no epsilon is."""
        if self.certain * _MORE > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        top = max((self.first + len(self.masses)) * self.step, 0.0)
        return bisected(lambda epsilon: self.delta(epsilon) <= delta, 0.0, top, relative=1e-12)[1]


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
    """(Shares of runs of the number of uniform rows, each run by its first member; the chance of too few rows.)"""
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
    """(epsilon at this delta, the least delta at any epsilon)."""
    table = prism_losses(prism, hidden=hidden, delta=delta)
    return table.epsilon(delta), table.certain


def pair_epsilon(prism: Prism, *, hidden: int, delta: float) -> float:
    """The epsilon between any two values of a row: two opposite corners are the worst, twice as far apart."""
    wide = Prism(mass=prism.mass, points=prism.points, half_ranges=tuple(2 * h for h in prism.half_ranges))
    return prism_losses(wide, hidden=hidden, delta=delta).epsilon(delta)


def sides(
    values: Sequence[tuple[float, float]], low: Sequence[float], step: Sequence[float]
) -> tuple[int, ...]:
    """The number of grid points low + j step whose rounding cell lies inside each interval."""
    out = []
    for (a, b), start, s in zip(values, low, step, strict=True):
        first = math.ceil((a - start) / s + 0.5 - 1e-9)
        last = math.floor((b - start) / s - 0.5 + 1e-9)
        out.append(max(0, last - first + 1))
    return tuple(out)


# Exact sums of pairs with a known distribution: the distribution of the sum on a lattice in the plane, between
# certified ends.
#
#     p(s) = (1/N1 N2) sum over k of phi(k)^m e^{2 pi i (k1 s1/N1 + k2 s2/N2)}
#
# as in `lattice`, in two dimensions: frequencies that are alive are taken in ball arithmetic, the others are bounded
# by their modulus, what lies outside of the window is bounded by Bernstein's inequality. Then every value x of the
# protected row is compared with the middle of the range, in both directions (theorem `prism-sums`, known distribution).

_BITS = 128
_DEAD = -85.0
_MORE_OF_PLANE = 1 + 1e-11
MOST_POINTS = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLaw:
    """Probabilities of steps (i, j), 0 <= i <= 2 half_1, 0 <= j <= 2 half_2; the middle is (half_1, half_2)."""

    weights: Mapping[tuple[int, int], Fraction]
    half_ranges: tuple[int, int]

    def __post_init__(self) -> None:
        if sum(self.weights.values(), Fraction(0)) != 1:
            raise InvalidParameter(parameter="weights", value="others", must="add up to exactly 1")
        if any(
            not (0 <= i <= 2 * self.half_ranges[0] and 0 <= j <= 2 * self.half_ranges[1])
            for i, j in self.weights
        ):
            raise InvalidParameter(parameter="weights", value="others", must="lie inside the declared range")

    def degenerate(self) -> bool:
        """Do all pairs lie on one line? Then one sum determines the other, or reveals every row."""
        points = list(self.weights)
        (a, b) = points[0]
        steps = [(i - a, j - b) for i, j in points[1:]]
        return all(p[0] * q[1] == p[1] * q[0] for p in steps for q in steps)


def plane_epsilon(
    law: PairLaw, *, hidden: int, delta: float, most_points: int = MOST_POINTS
) -> tuple[float, float]:
    """(epsilon at this delta against the middle of the range, the least delta at any epsilon)."""
    low, high, outside = _sum_of(law, hidden, delta, most_points)
    one, two = law.half_ranges
    middle = _placed(low, (one, two), law.half_ranges), _placed(high, (one, two), law.half_ranges)
    found = FoundShift(factor=1.0, floor=0.0)
    # The corners of the range need most, as a rule: they come first, and the others are only checked.
    places = sorted(law.weights, key=lambda x: -abs(x[0] - one) / one - abs(x[1] - two) / two)
    for x in places:
        near = _placed(low, x, law.half_ranges), _placed(high, x, law.half_ranges)
        for above, below in ((near[1], middle[0]), (middle[1], near[0])):
            spare = outside * (1 + found.factor) * _MORE_OF_PLANE
            if excess(above, below, found.factor) + spare <= delta:
                continue
            start = found.factor
            for _ in range(8):
                here = factor_for(above, below, delta - outside * (2 + 2 * start), start)
                if not math.isfinite(here.factor) or here.factor <= 1 + 2 * start:
                    break
                start = here.factor
            found = found.or_worse(here)
            if math.isinf(found.factor):
                return math.inf, max(here.floor, delta)
    return found.epsilon, outside


def _placed(values: Floats, x: tuple[int, int], half: tuple[int, int]) -> Floats:
    """The values moved by x, on the points that all moves share."""
    wide = np.zeros((values.shape[0] + 2 * half[0], values.shape[1] + 2 * half[1]))
    wide[x[0] : x[0] + values.shape[0], x[1] : x[1] + values.shape[1]] = values
    return wide.ravel()


def _window(weights: Mapping[int, Fraction], count: int, log_tail: float) -> tuple[int, int]:
    """All but 2 e^log_tail of a sum lies between these, by Bernstein's inequality."""
    mean = sum((k * w for k, w in weights.items()), Fraction(0))
    variance = float(sum(((k - mean) ** 2 * w for k, w in weights.items()), Fraction(0))) * count * (1 + 1e-9)
    most = float(max(abs(k - mean) for k in weights)) * -log_tail / 3
    reach = (most + math.sqrt(most**2 + 2 * variance * -log_tail)) * (1 + 1e-9) + 1
    centre = float(mean) * count
    top = max(weights) * count
    return max(0, math.floor(centre - reach)), min(top, math.ceil(centre + reach))


def _sum_of(law: PairLaw, count: int, delta: float, most: int) -> tuple[Floats, Floats, float]:
    import flint

    log_tail = math.log(delta) - 11.0
    margins: list[dict[int, Fraction]] = [{}, {}]
    for point, w in law.weights.items():
        for margin, k in zip(margins, point, strict=True):
            margin[k] = margin.get(k, Fraction(0)) + w
    ends = [_window(margin, count, log_tail) for margin in margins]
    outside = 4 * math.exp(log_tail) * (1 + 1e-9)
    sizes = tuple(good_size(max(last - first + 1, 2)) for first, last in ends)
    if sizes[0] * sizes[1] > most:
        raise NotCertified(
            what="the law of a sum of pairs",
            reason=f"it spreads over more than {most} points; record the values on a coarser grid, or assume a prism",
        )
    table = np.zeros(sizes)
    for (i, j), w in law.weights.items():
        table[i % sizes[0], j % sizes[1]] += float(w)
    blur = UNIT * (32 + 16 * math.log2(sizes[0] * sizes[1]))
    bound = count * np.log(np.minimum(np.abs(np.fft.rfft2(table)) + blur, 1.0))
    alive = np.argwhere(bound > _DEAD)
    spectrum = np.zeros(bound.shape, dtype=np.complex128)
    error = 2 * math.exp(_DEAD) * sizes[0] * sizes[1]
    with precision(_BITS):
        weights = [
            (i, j, flint.arb(flint.fmpq(w.numerator, w.denominator))) for (i, j), w in law.weights.items()
        ]
        for k1, k2 in alive:
            turns = [
                flint.acb(flint.arb(flint.fmpq(-2 * int(k), n))).exp_pi_i()
                for k, n in zip((k1, k2), sizes, strict=True)
            ]
            powers = [
                _powers(turn, max(margin) if margin else 0)
                for turn, margin in zip(turns, margins, strict=True)
            ]
            hat = flint.acb(0)
            for i, j, w in weights:
                hat += powers[0][i] * powers[1][j] * w
            angle = flint.fmpq(2 * int(k1) * ends[0][0], sizes[0]) + flint.fmpq(
                2 * int(k2) * ends[1][0], sizes[1]
            )
            value = hat**count * flint.acb(flint.arb(angle)).exp_pi_i()
            real, imaginary = value.real, value.imag
            spectrum[k1, k2] = complex(float(real.mid()), float(imaginary.mid()))
            error += 2 * (float(real.rad()) + float(imaginary.rad()) + 4 * UNIT * abs(spectrum[k1, k2]))
    masses = np.fft.irfft2(spectrum, sizes)[: ends[0][1] - ends[0][0] + 1, : ends[1][1] - ends[1][0] + 1]
    points = sizes[0] * sizes[1]
    modulus = 2 * float(np.sum(np.abs(spectrum)))
    spread = (error + UNIT * (8 + 16 * math.log2(points)) * modulus) / points + 1e-300
    # What wraps around is in `masses` too: at most `outside` altogether, which the caller charges to both worlds.
    return np.maximum(masses - spread, 0.0), np.maximum(masses, 0.0) + spread, outside


def _powers(base: Any, most: int) -> list[Any]:
    import flint

    out: list[Any] = [flint.acb(1)]
    for _ in range(most):
        out.append(out[-1] * base)
    return out
