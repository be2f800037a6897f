"""The distribution of a sum of independent rows on a lattice, between two certified ends at every point.

    p(s) = (1/N) sum_k phi(k)^m e^{2 pi i k s / N},     phi(k) = sum_j w_j e^{-2 pi i k j / N}

Ball arithmetic computes the few frequencies k that matter, so that a large power m loses no precision. The
others are bounded by their modulus. Mass beyond the N points wraps around. It is a tail, bounded by Chernoff.
Deep tails are computed again under a tilt w_j e^{t j}, which moves them to the middle (theorem `lattice-sums`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import UNIT, Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, bisected, down, precision, up
from tacit.pld.fourier import good_size

_BITS = 128
_DEAD = -85.0
MOST_POINTS = 1 << 23
MOST_WORK = 3e8
_RATES = 2.0 ** np.linspace(-3.0, 3.0, 49)


Weights: TypeAlias = tuple[Fraction, ...]
"""Probabilities of 0, 1, 2, ..."""


@dataclass(frozen=True, slots=True, eq=False)
class SumLaw:
    """low(s) <= p(s) <= high(s) for s = start, start + 1, ...; all other values have at most `outside` in total."""

    start: int
    low: Floats
    high: Floats
    outside: float

    def at(self, first: int, size: int, *, upper: bool) -> Floats:
        """One end of p on `size` points from `first`: 0 for unknown points, which `outside` covers."""
        values = self.high if upper else self.low
        out = np.zeros(size)
        a, b = max(first, self.start), min(first + size, self.start + len(values))
        if a < b:
            out[a - first : b - first] = values[a - self.start : b - self.start]
        return out


def sum_law(weights: Weights, count: int, *, delta: float) -> SumLaw:
    """The distribution of the sum of this many independent rows with these weights, near enough for deltas of
    this size.
    """
    return sum_laws([weights], [(count,)], delta=delta)[0]


def sum_laws(weights: Sequence[Weights], counts: Sequence[tuple[int, ...]], *, delta: float) -> list[SumLaw]:
    """The distributions of several sums; each tuple of counts has the number of rows for each of the weights."""
    rows = [_Row(w) for w in weights]
    middle = counts[len(counts) // 2]
    std = _moments(rows, middle, 0.0).std
    far = math.log(delta) - 12.0 - math.log(40.0 * std + 40.0)
    found = [_solved(rows, counts, 0.0, far)]
    if delta < 1e-8 and std > 0:
        # Where the tail of about this delta begins; the tilt puts the middle of the distribution there.
        z = math.sqrt(2 * -math.log(delta)) / std
        deep = min(far - math.log(delta) / 2, -40.0)
        found += [_solved(rows, counts, sign * z, deep) for sign in (1.0, -1.0)]
    return [_joined([laws[j] for laws in found]) for j in range(len(counts))]


def _joined(found: Sequence[SumLaw]) -> SumLaw:
    """The better end at every point."""
    if len(found) == 1:
        return found[0]
    first = min(f.start for f in found)
    last = max(f.start + len(f.low) for f in found)
    low, high = np.zeros(last - first), np.full(last - first, math.inf)
    for f in found:
        place = slice(f.start - first, f.start - first + len(f.low))
        low[place] = np.maximum(low[place], f.low)
        high[place] = np.minimum(high[place], f.high)
    return SumLaw(first, low, high, found[0].outside)


class _Row:
    """One distribution of a row, in floats, as its logarithms."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.k = np.arange(len(weights), dtype=np.float64)
        with np.errstate(divide="ignore"):
            self.logs = np.log(np.array([float(w) for w in weights]))

    def tilted(self, tilt: float) -> Floats:
        """The weights times e^{tilt k}, adding up to 1."""
        w = self.logs + tilt * self.k
        w = np.exp(w - np.max(w))
        return np.asarray(w / np.sum(w))


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Tilted weights with centred values and counts; the mean and the standard deviation of the sum."""

    rows: list[tuple[Floats, Floats, int]]
    mean: float
    std: float

    def reach(self, log_tail: float, sign: float) -> float:
        """A distance from the mean with a tail of at most e^log_tail on one side: min over t of (K(t) - log_tail)/t."""
        best = math.inf
        for t in _RATES * math.sqrt(2 * -log_tail) / max(self.std, 1e-6):
            total = 0.0
            for w, k, count in self.rows:
                exponent = sign * t * k
                peak = float(np.max(exponent))
                with np.errstate(under="ignore"):
                    total += count * (math.log(float(w @ np.exp(exponent - peak))) + peak)
            # The margin is far more than sums of floats of this length can be wrong by.
            best = min(best, (total * (1 + 1e-6) + 0.01 - log_tail) / t)
        return best


def _moments(rows: Sequence[_Row], counts: tuple[int, ...], tilt: float) -> _Moments:
    found, mean, variance = [], 0.0, 0.0
    for row, count in zip(rows, counts, strict=True):
        w = row.tilted(tilt)
        m = float(w @ row.k)
        found.append((w, row.k - m, count))
        mean += count * m
        variance += count * float(w @ (row.k - m) ** 2)
    return _Moments(found, mean, math.sqrt(variance))


def _solved(
    rows: Sequence[_Row], counts: Sequence[tuple[int, ...]], tilt: float, log_tail: float
) -> list[SumLaw]:
    """The distributions by their transforms under one tilt, untilted again; all at the same number of frequencies."""
    windows = []
    for each in counts:
        about = _moments(rows, each, tilt)
        top = sum((len(r.weights) - 1) * c for r, c in zip(rows, each, strict=True))
        first = max(0, math.floor(about.mean - about.reach(log_tail, -1.0)) - 1)
        last = min(top, math.ceil(about.mean + about.reach(log_tail, 1.0)) + 1)
        outside = math.exp(log_tail) * ((first > 0) + (last < top)) * (1 + 1e-9)
        windows.append((first, last, outside))
    widest = max(last - first + 1 for first, last, _ in windows)
    if widest > MOST_POINTS:
        raise NotCertified(
            what="the law of a sum",
            reason=f"it spreads over more than {MOST_POINTS} points of the grid; record the rows on a coarser grid",
        )
    size = good_size(max(widest, 2))
    transform = _Transform(rows, counts, tilt, size)
    out = []
    for each, (first, last, outside) in zip(counts, windows, strict=True):
        coefficients, error, scale = transform.of(each, first)
        masses = np.fft.irfft(coefficients, size)[: last - first + 1]
        modulus = 2 * float(np.sum(np.abs(coefficients)))
        # Every output is a sum over frequencies, each through log2(size) stages of the transform.
        spread = (error + UNIT * (8 + 16 * math.log2(size)) * modulus) / size + 1e-300
        low, high = np.maximum(masses - spread - outside, 0.0), np.maximum(masses, 0.0) + spread
        if tilt != 0.0:
            s = np.arange(first, last + 1, dtype=np.float64)
            margin = 1e-12 + 8 * UNIT * (abs(scale) + np.abs(tilt * s))
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                # Far outside of the tilted distribution the factor may overflow where nothing is left to multiply.
                low = np.where(low > 0, low * np.exp(scale - tilt * s - margin), 0.0)
                high = high * np.exp(scale - tilt * s + margin) + 1e-300
        out.append(SumLaw(first, low, high, outside if tilt == 0.0 else 0.0))
    return out


class _Transform:
    """phi of each distribution of a row at the frequencies that are alive for some of the sums, as balls."""

    def __init__(
        self, rows: Sequence[_Row], counts: Sequence[tuple[int, ...]], tilt: float, size: int
    ) -> None:
        import flint

        self.size = size
        blur = UNIT * (32 + 16 * math.log2(size))
        moduli = [np.abs(np.fft.rfft(_folded(r.tilted(tilt), size))) + blur for r in rows]
        self.bounds = [np.log(np.minimum(m, 1.0)) for m in moduli]
        alive = np.zeros(size // 2 + 1, dtype=bool)
        for each in counts:
            alive |= self.alive(each)
        self.frequencies = np.flatnonzero(alive)
        if len(self.frequencies) * sum(len(r.weights) for r in rows) > MOST_WORK:
            raise NotCertified(
                what="the law of a sum", reason="its rows have too many values; record them on a coarser grid"
            )
        self.hats: list[list[Any]] = []
        self.scales: list[Any] = []
        with precision(_BITS):
            for row in rows:
                if tilt == 0.0 and len(set(row.weights)) == 1 and len(row.weights) > 8:
                    hats = [_geometric(int(k), len(row.weights), size) for k in self.frequencies]
                    total = ball(1)
                else:
                    lift, power, weights = ball(tilt).exp(), ball(1), []
                    for w in row.weights:
                        weights.append(ball(w) * power)
                        power = power * lift
                    total = sum(weights[1:], weights[0])
                    polynomial = flint.acb_poly([w / total for w in weights])
                    hats = [polynomial(_turn(-2 * int(k), size)) for k in self.frequencies]
                self.hats.append(hats)
                self.scales.append(total.log())

    def alive(self, counts: tuple[int, ...]) -> NDArray[np.bool_]:
        """The frequencies at which the product of the powers is not known to be negligible."""
        return np.asarray(sum(c * b for c, b in zip(counts, self.bounds, strict=True)) > _DEAD)

    def of(self, counts: tuple[int, ...], first: int) -> tuple[NDArray[np.complex128], float, float]:
        """(Transform of a sum, from the point `first`; bound on the sum of its errors; log of the tilt's scale)."""
        out = np.zeros(self.size // 2 + 1, dtype=np.complex128)
        alive = self.alive(counts)[self.frequencies]
        error = 2 * math.exp(_DEAD) * self.size
        with precision(_BITS):
            scale = sum((c * t for c, t in zip(counts, self.scales, strict=True)), ball(0))
            for place in np.flatnonzero(alive):
                k = int(self.frequencies[place])
                value = _turn(2 * k * first % (2 * self.size), self.size)
                for hats, count in zip(self.hats, counts, strict=True):
                    value = value * hats[place] ** count
                real, imaginary = value.real, value.imag
                out[k] = complex(float(real.mid()), float(imaginary.mid()))
                error += 2 * (float(real.rad()) + float(imaginary.rad()) + 4 * UNIT * abs(out[k]))
            ends = down(scale), up(scale)
        return out, error, (ends[0] + ends[1]) / 2


def _geometric(k: int, values: int, size: int) -> Any:
    """The transform of equal weights: a quotient of sines, turned by half of the range."""
    import flint

    if k == 0:
        return flint.acb(1)
    angle = flint.arb(flint.fmpq(k, size))
    ratio = (angle * values).sin_pi() / (angle.sin_pi() * values)
    return _turn(-k * (values - 1) % (2 * size), size) * ratio


def _turn(numerator: int, denominator: int) -> Any:
    """e^{i pi numerator/denominator}."""
    import flint

    return flint.acb(flint.arb(flint.fmpq(numerator, denominator))).exp_pi_i()


def _folded(weights: Floats, size: int) -> Floats:
    turns = -(-len(weights) // size)
    return np.asarray(np.pad(weights, (0, turns * size - len(weights))).reshape(turns, size).sum(axis=0))


# How far a shift of a sum can be told: the smallest epsilon for a delta, from above, over all values of one row.
#
# The real world is S + x, the ideal one S + U with U drawn by the simulator: S is the sum of the other rows, x the
# protected row. With low <= p <= high,
#
#     H_E(S + x || S + U)  <=  sum over s of max(0, high(s - x) - E low_U(s)) + outside,
#
# a convex, falling function of E = e^epsilon that is solved by Newton's method from the left and then checked once
# more on the safe side. If the distribution of S is log-concave the worst x are the ends of the support
# (theorem `shifted-
# sums`); otherwise all are looked at, many at a time: the hull of a run of shifts bounds each of them.

Offsets = Mapping[int, float]
"""The simulator's place for the protected row: steps above the smallest value, with exact (dyadic) probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundShift:
    """The smallest factor e^epsilon (infinite if none is enough) and the delta that remains at any factor."""

    factor: float
    floor: float

    @property
    def epsilon(self) -> float:
        """ln factor, rounded up."""
        return log_up(self.factor)

    def or_worse(self, other: FoundShift) -> FoundShift:
        """The larger of both, in both respects."""
        return FoundShift(factor=max(self.factor, other.factor), floor=max(self.floor, other.floor))


def log_up(factor: float) -> float:
    """A float that is not below ln(factor), for factor >= 1."""
    if factor <= 1.0:
        return 0.0
    if math.isinf(factor):
        return math.inf
    near = factor - 1.0
    value = math.log1p(near) if near < 0.5 else math.log(factor)
    return value * (1 + 8 * UNIT) + 8 * UNIT * min(near, 1.0)


def _sum_up(values: Floats) -> float:
    """A float that is not below the sum of numbers of at least 0."""
    return float(np.sum(values)) * (1 + UNIT * (len(values) + 8)) + 5e-324


def excess(above: Floats, below: Floats, factor: float) -> float:
    """A float that is not below the sum of max(0, above - factor below)."""
    gap = above - (factor * (1 - 4 * UNIT)) * below
    return _sum_up(np.maximum(gap, 0.0)) * (1 + 4 * UNIT)


def factor_for(above: Floats, below: Floats, delta: float, start: float = 1.0) -> FoundShift:
    """The smallest factor of at least `start` whose excess is at most delta, and the remainder at any factor."""
    floor = _sum_up(above[below <= 0.0])
    if excess(above, below, start) <= delta:
        return FoundShift(factor=start, floor=floor)
    if floor > delta:
        return FoundShift(factor=math.inf, floor=floor)
    factor = start
    for _ in range(200):
        # A point that is not above at this factor is not above at any larger one.
        inside = above > (factor * (1 - 8 * UNIT)) * below
        above, below = above[inside], below[inside]
        a, b = float(np.sum(above)), float(np.sum(below))
        if b <= 0.0:
            break
        following = (a - delta) / b
        if not following > factor * (1 + 1e-13):
            break
        factor = following
    for _ in range(400):
        if excess(above, below, factor) <= delta:
            return FoundShift(factor=factor, floor=floor)
        factor += (factor - 1.0) * 1e-9 + 1e-13
    return FoundShift(factor=math.inf, floor=floor)


class Shifted:
    """The worlds S + x for x from `first` to `last`, and S + U, on common points; S has one distribution, or one of
    several.

    Where S is one of several, with weights, the divergence is at most the weighted sum of theirs (joint convexity);
    the weights are upper ends. `certain` is the probability of rows that hide nothing, and `slack` the distance
    of each world from the stated distribution.
    """

    def __init__(
        self,
        laws: Sequence[tuple[float, SumLaw]],
        first: int,
        last: int,
        simulator: Offsets,
        *,
        certain: float = 0.0,
        slack: float = 0.0,
    ) -> None:
        if not simulator or sum(simulator.values()) != 1.0 or any(w <= 0 for w in simulator.values()):
            raise InvalidParameter(
                parameter="simulator", value="another law", must="be a law of where the row is put"
            )
        self.laws = laws
        self.lowest = min(first, *simulator)
        self.extra = max(last, *simulator) - self.lowest
        self.certain = certain
        self.rest = slack + sum(weight * law.outside for weight, law in laws) * (1 + 1e-9)
        self.ideal = [
            sum((w * self._at(u, upper=side) for u, w in simulator.items()), np.zeros(1))
            for side in (False, True)
        ]
        self.ideal[0] = self.ideal[0] * (1 - 4 * UNIT * len(simulator))
        self.ideal[1] = self.ideal[1] * (1 + 4 * UNIT * len(simulator))

    def _at(self, x: int, *, upper: bool) -> Floats:
        """One end of the distribution of S + x, times the weight, one distribution after the other."""
        rows = []
        for weight, law in self.laws:
            row = law.at(law.start + self.lowest - x, len(law.low) + self.extra, upper=upper)
            rows.append(row if weight == 1.0 else row * weight)
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def _hull(self, first: int, last: int) -> tuple[Floats, Floats]:
        """The smallest low and the largest high of S + x over x from first to last."""
        low, high = self._at(first, upper=False), self._at(first, upper=True)
        if last == first:
            return low, high
        from scipy.ndimage import maximum_filter1d, minimum_filter1d

        n = last - first + 1
        # A window that ends at each point: shifts move the distribution to the right.
        origin = (n - 1) // 2 if n % 2 else n // 2 - 1
        lows, highs, at = [], [], 0
        for _, law in self.laws:
            place = slice(at, at + len(law.low) + self.extra)
            lows.append(minimum_filter1d(low[place], n, mode="constant", cval=0.0, origin=origin))
            highs.append(maximum_filter1d(high[place], n, mode="constant", cval=0.0, origin=origin))
            at = place.stop
        return np.concatenate(lows), np.concatenate(highs)

    def found(self, first: int, last: int, delta: float, start: float = 1.0) -> FoundShift:
        """The sufficient factor for all shifts from first to last, in both directions; None if there is none."""
        low, high = self._hull(first, last)
        answer = FoundShift(factor=start, floor=0.0)
        for above, below in ((high, self.ideal[0]), (self.ideal[1], low)):
            answer = answer.or_worse(self._solved(above, below, delta, start))
        return answer

    def _solved(self, above: Floats, below: Floats, delta: float, start: float) -> FoundShift:
        """The solution when both worlds are off by `rest` at most: the divergence changes by rest (1 + e^epsilon)."""
        spare = self.certain + self.rest * 4.0
        found = factor_for(above, below, delta - spare, start)
        # e^epsilon above 3 is rare: then what is spared grows with it.
        while math.isfinite(found.factor) and self.certain + self.rest * (1 + found.factor) > spare:
            spare = self.certain + self.rest * (2 + 2 * found.factor)
            found = factor_for(above, below, delta - spare, start)
        return FoundShift(factor=found.factor, floor=found.floor + spare)


def worst(shifted: Shifted, places: Sequence[int], delta: float, *, log_concave: bool) -> FoundShift:
    """A factor that is enough for every place of the protected row. It tries the ends first, since the worst place is
    mostly an end.
    """
    first, last = places[0], places[-1]
    found = shifted.found(first, first, delta)
    found = found.or_worse(
        shifted.found(last, last, delta, found.factor if math.isfinite(found.factor) else 1.0)
    )
    if log_concave or math.isinf(found.factor):
        return found
    allowed = set(places)
    runs = [(first + 1, last - 1)] if last - first > 1 else []
    while runs:
        a, b = runs.pop()
        if not any(x in allowed for x in range(a, b + 1)):
            continue
        here = shifted.found(a, b, delta, found.factor)
        if here.factor <= found.factor:
            continue
        if a == b:
            found = found.or_worse(here)
            if math.isinf(found.factor):
                return found
            continue
        middle = (a + b) // 2
        runs += [(a, middle), (middle + 1, b)]
    return found


# What no simulator can better: a lower end of epsilon, from the two values of a row that are hardest to hide.
#
# If F given x and F given x' are both (epsilon, delta)-close to one distribution, they are (2 epsilon, (1 +
# e^epsilon) delta)-
# close to each other (theorem `simulator-to-pair`). So epsilon is at least the solution of
#
#     H_{2 epsilon}(S + x || S + x') = (1 + e^epsilon) delta,
#
# here with the lower end on the left. For a count with p_i = lambda the value 0 alone gives (1 - lambda)^{m} =
# (1 + e^epsilon) delta.

MOST_EPSILON = 700.0


def least_epsilon(law: SumLaw, gap: int, delta: float) -> float:
    """An epsilon below which no simulator hides two values of a row that are `gap` steps apart."""
    size = len(law.low) + gap
    left = law.at(law.start, size, upper=False), law.at(law.start, size, upper=True)
    right = law.at(law.start - gap, size, upper=False), law.at(law.start - gap, size, upper=True)
    # Beyond the points an upper end is not 0, but `outside` altogether.
    rest = law.outside

    def shown(epsilon: float) -> bool:
        """Whether it is proved that this epsilon is too small."""
        factor = math.exp(2 * epsilon) * (1 + 1e-14 * (1 + 2 * epsilon))
        most = (1 + math.exp(epsilon)) * (1 + 1e-14 * (1 + epsilon)) * delta
        for low, high in ((left[0], right[1]), (right[0], left[1])):
            with np.errstate(over="ignore"):
                gained = np.maximum(low - factor * high, 0.0)
            if float(np.sum(gained)) * (1 - UNIT * size) - factor * rest > most:
                return True
        return False

    if not shown(0.0):
        return 0.0
    low, high = 0.0, 1e-6
    while shown(high) and high < MOST_EPSILON / 2:
        low, high = high, 2 * high
    return bisected(lambda epsilon: not shown(epsilon), low, high, halvings=60)[0]


# Which value a simulator puts in place of the protected row: on the grid, and well inside.
#
# A simulator whose value lies off the lattice of the sums is distinguished at once (delta = 1). The middle of the range
# is best where both ends are equally far; elsewhere the value is moved, and a coin is thrown between two neighbours.

_FEW = 16
_PARTS = 16
_GOLDEN = 0.6180339887498949
_MUCH = 1.6


def middle(top: int) -> dict[int, float]:
    """The middle of the range, kept on the grid: one value, or a fair coin between two."""
    return {top // 2: 1.0} if top % 2 == 0 else {top // 2: 0.5, top // 2 + 1: 0.5}


def _between(place: int, parts: int) -> dict[int, float]:
    """The distribution of mean place/parts on the two values around it."""
    whole, part = divmod(place, parts)
    return {whole: 1.0} if part == 0 else {whole: 1.0 - part / parts, whole + 1: part / parts}


def chosen(top: int, factor: Callable[[dict[int, float]], float], *, even: bool = False) -> dict[int, float]:
    """The best simulator of two kinds: one value or a coin between two neighbours (by golden section), or a
    fair coin between the ends.

    `factor` is the e^epsilon of a simulator, quasi-convex in its mean. Any choice is valid; a better one gives
    a smaller factor.
    """
    best = middle(top)
    least = factor(best)
    if not even:
        parts = _PARTS if top < _FEW else 1
        a, b = 0, top * parts
        known: dict[int, float] = {}

        def at(place: int) -> float:
            if place not in known:
                known[place] = factor(_between(place, parts))
            return known[place]

        while b - a > 2:
            left = a + max(1, round((b - a) * (1 - _GOLDEN)))
            right = max(left + 1, a + round((b - a) * _GOLDEN))
            if at(left) <= at(right):
                b = right
            else:
                a = left
        place = min(range(a, b + 1), key=at)
        if at(place) < least:
            best, least = _between(place, parts), at(place)
    if least > _MUCH and top > 1:
        ends = {0: 0.5, top: 0.5}
        if factor(ends) < least:
            best = ends
    return best
