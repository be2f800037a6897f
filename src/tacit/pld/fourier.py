"""The composed loss of many gridded pairs, by its Fourier coefficients, tilted, with every error bounded.

Under the tilted weights w_k = p_k e^(tilt l_k)/A the composed loss is centred near the answer, so that even
deltas of 1e-300 keep their digits. Its transform is the product of the parts' transforms to the power of their
counts. Frequencies at which the product has died out are dropped: either they were found negligible (the other
factors are at most 1 in modulus), or they lie beyond a band outside which the product has a proved bound
(`cutoff_frequency`). A few hundred of billions are left.
"""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, bisected

_DEAD = 1e-26
_GONE = 69.0
"""e^-69 = 1e-30: below this a frequency counts as negligible."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """Tilted weights (pairs, nodes) of several parts on the nodes from `start` on, with their counts."""

    start: int
    weights: Floats
    counts: Floats
    variances: Floats
    unit: float
    """Bound on the relative error of the weights."""

    @property
    def spread(self) -> float:
        """Sum of the variances, with counts."""
        return float(np.dot(self.counts, self.variances))


@dataclass(slots=True, eq=False)
class ComposedLosses:
    """The composed tilted distribution on `size` nodes from `base` on: the finite part of the curve at nodes."""

    step: float
    tilt: float
    base: int
    size: int
    offset: int
    log_scale: float
    scale_error: float
    frequencies: NDArray[np.int64]
    coefficients: NDArray[np.complex128]
    error: float
    """Bound on the sum over all frequencies of the absolute errors of the coefficients."""
    outside: float
    """Bound on the tilted mass outside the window."""
    _cache: dict[int, tuple[float, float]] = field(default_factory=dict)
    _table: Floats | None = None
    _modulus: float = -1.0

    def finite_part(self, node: int) -> tuple[float, float]:
        """Enclosure (low, high) of sum_k P_k (1 - e^(l_node - l_k))_+ over finite losses."""
        if node not in self._cache:
            value, error = self._sum(node)
            exponent, margin = self._exponent(node)
            high = times_exp(max(value, 0.0) + error + self.outside, exponent + margin, upward=True)
            low = times_exp(max(value - error - self.outside, 0.0), exponent - margin, upward=False)
            # Curves never exceed 1: where the scale overflows, that is all that is known.
            self._cache[node] = (min(low, 1.0), min(high, 1.0))
        return self._cache[node]

    def weigh(self, mass: float, node: int) -> float:
        """Upper value of mass e^(ln A - tilt l_node): the most that tilted mass above the node can count."""
        exponent, margin = self._exponent(node)
        return times_exp(mass, exponent + margin, upward=True)

    def _exponent(self, node: int) -> tuple[float, float]:
        shift = self.tilt * node * self.step
        exponent = self.log_scale - shift
        return exponent, self.scale_error + 8 * UNIT * (abs(exponent) + abs(shift) + 4)

    def _sum(self, node: int) -> tuple[float, float]:
        """sum over nodes above of C_k e^(-tilt (l_k - l_node)) (1 - e^-(l_k - l_node)), and its error."""
        first = max(node + 1, self.base)
        terms = self.base + self.size - first
        if terms <= 0:
            return 0.0, 0.0
        if self._modulus < 0:
            self._modulus = 2 * float(np.sum(np.abs(self.coefficients)))
        # The inverse table costs a kernel over the window, the sums over frequencies about eight times their number.
        if self._table is None and 8 * len(self.frequencies) > self.size:
            self._table = self._inverse()
        lead = first - node
        weight = min(float(terms), 1.0 / max(-math.expm1(-self.tilt * self.step), 1e-300))
        error = weight / self.size * (self.error + 128 * UNIT * self._modulus) + 1e-300
        if self._table is not None:
            m = np.arange(lead, lead + terms, dtype=np.float64) * self.step
            kernel = np.exp(-self.tilt * m) * -np.expm1(-m)
            value = float(np.dot(self._table[first - self.base :], kernel))
            levels = 16 * math.log2(self.size)
            return value, error + weight / self.size * UNIT * levels * self._modulus + 4 * UNIT * abs(value)
        turn = 2 * np.pi / self.size
        j = self.frequencies
        phase = np.exp(1j * turn * ((j * ((first - self.offset) % self.size)) % self.size))
        kernel_hat = self._geometric(self.tilt, lead, terms) - self._geometric(self.tilt + 1.0, lead, terms)
        doubled = np.where((j == 0) | (2 * j == self.size), 1.0, 2.0)
        value = float(np.sum((self.coefficients * phase * kernel_hat).real * doubled)) / self.size
        return value, error

    def masses(self) -> tuple[Floats, float]:
        """Tilted masses at the nodes of the window, and a bound on the error of each."""
        modulus = 2 * float(np.sum(np.abs(self.coefficients)))
        error = (self.error + UNIT * (128 + 16 * math.log2(self.size)) * modulus) / self.size
        return self._inverse(), error + 1e-300

    def _geometric(self, rate: float, lead: int, terms: int) -> NDArray[np.complex128]:
        """sum over m < terms of e^(-rate (lead + m) step + i w m)."""
        j = self.frequencies
        turn = 2 * np.pi / self.size
        near = -rate * self.step + 1j * turn * _centred(j, self.size)
        turned = _centred((j * (terms % self.size)) % self.size, self.size)
        far = -rate * self.step * terms + 1j * turn * turned
        below = np.expm1(near)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.expm1(far) / below
        return np.asarray(np.where(below == 0, float(terms), total) * math.exp(-rate * lead * self.step))

    def _inverse(self) -> Floats:
        full = np.zeros(self.size // 2 + 1, dtype=np.complex128)
        full[self.frequencies] = self.coefficients
        table = np.fft.irfft(full, self.size)
        return np.roll(table, -((self.base - self.offset) % self.size))


def times_exp(value: float, exponent: float, *, upward: bool) -> float:
    """value e^exponent for value >= 0, rounded to the safe side, without overflow of its factors."""
    if value <= 0.0:
        return 0.0
    total = exponent + math.log(value)
    if total > 700.0:
        return math.inf if upward else 1e300
    margin = 4 * UNIT * (abs(exponent) + abs(total) + 4)
    if upward:
        return math.exp(total) * (1 + margin) + 5e-324
    return math.exp(total) * (1 - margin) if total > -690.0 else 0.0


def _centred(j: NDArray[np.int64], size: int) -> Floats:
    return np.where(2 * j > size, j - size, j).astype(np.float64)


def cutoff_frequency(pieces: list[Piece], step: float, budget: float) -> float | None:
    """A frequency (per unit of loss) beyond which the product is below 1e-30, proved; None if not found.

    Near 0: |phi(w)|^2 = E cos w(X - X') <= 1 - (4/pi^2) w^2 Var X while w times the range of X is at most pi,
    as cos x <= 1 - 2x^2/pi^2 there. Further out: |phi|^2 on a fine grid of frequencies, with its slope.
    """
    best: tuple[float, float] | None = None
    ordered = sorted(pieces, key=lambda p: p.weights.shape[1])
    variance = 0.0
    for index, piece in enumerate(ordered):
        variance += piece.spread
        reach = (piece.weights.shape[1] - 1) * step
        if index + 1 < len(ordered) and ordered[index + 1].weights.shape[1] == piece.weights.shape[1]:
            continue
        edge = math.pi * math.sqrt(_GONE / 2 / max(variance * (1 - 1e-6), 1e-300))
        if edge <= math.pi / reach and (best is None or edge < best[0]):
            best = (edge, math.pi / reach)
    if best is None:
        return None
    ranked = sorted(pieces, key=lambda p: -p.spread / p.weights.shape[1])
    for fineness in (16, 256, 4096, 65536):
        if _gone(ranked, step, best[1], fineness, budget):
            return best[0]
    return None


def _gone(pieces: list[Piece], step: float, edge: float, fineness: int, budget: float) -> bool:
    """Whether the product is below 1e-30 at all frequencies above `edge`.

    T = |phi|^2 at distance d from a grid point is at most T + |T'| d + Var X d^2, as |T''| <= E(X - X')^2.
    """
    points = 1 << (fineness * pieces[0].weights.shape[1] - 1).bit_length()
    spacing = 2 * math.pi / (points * step)
    low = math.floor(edge / spacing) - 1
    if low < 0 or 2 * points > budget:
        return False
    total = np.zeros(points // 2 + 1 - low)
    usable = [p for p in pieces if p.weights.shape[1] <= points]
    half = spacing / 2
    # Round-robin, so that events of different sizes, whose transforms peak at different places, come early.
    for turn in range(8):
        for piece in usable:
            if turn >= len(piece.counts):
                continue
            budget -= 2 * points
            if budget < 0:
                return False
            row = turn * max(1, len(piece.counts) // 8) % len(piece.counts)
            if turn and row == (turn - 1) * max(1, len(piece.counts) // 8) % len(piece.counts):
                continue
            weights = piece.weights[row]
            k = np.arange(len(weights), dtype=np.float64) - (len(weights) - 1) / 2
            hat = np.fft.rfft(weights, points)[low:]
            slope = np.fft.rfft(weights * k, points)[low:]
            # In terms of centred nodes phi is turned, which changes neither |phi| nor Im(phi' conj phi).
            change = 2 * np.abs((slope * np.conj(hat)).imag) * step
            bound = np.abs(hat) ** 2 + change * half + float(piece.variances[row]) * 1.01 * half**2
            total += piece.counts[row] / 2 * np.log(np.minimum(bound * (1 + 1e-9) + 1e-12, 1.0))
            if float(np.max(total)) < -_GONE:
                return True
    return False


def compose(
    pieces: list[Piece],
    step: float,
    tilt: float,
    scale: tuple[float, float],
    window: tuple[int, int],
    outside: float,
    band: float | None,
) -> ComposedLosses:
    """Multiply the transforms of all pieces, widest first, keeping the frequencies that are not negligible."""
    base, size = window[0], window[1] - window[0] + 1
    dropped = 0.0
    if band is None:
        size = good_size(size)
        frequencies = np.arange(size // 2 + 1, dtype=np.int64)
    else:
        size += size % 2
        last = min(size // 2, math.ceil(band * size * step / (2 * math.pi)) + 1)
        frequencies = np.arange(last + 1, dtype=np.int64)
        dropped = 2e-30 * size
    product = np.ones(len(frequencies), dtype=np.complex128)
    error = np.zeros(len(frequencies))
    for piece in sorted(pieces, key=lambda p: -p.spread):
        row, rows = 0, len(piece.counts)
        while row < rows:
            nodes = piece.weights.shape[1]
            # Seconds, about: a table of sines costs 25 ns an entry, a transform 60 ns a node.
            rank = min(_rank(nodes, frequencies, size), nodes, len(frequencies))
            direct = min(rank * (nodes + len(frequencies)), nodes * len(frequencies)) * 25e-9
            if band is None and direct > min(rows - row, 3) * size * 60e-9:
                stop = row + 1
                hats = np.fft.rfft(_folded(piece.weights[row], size))[frequencies][None, :]
                unit = UNIT * 16 * math.log2(size) + piece.unit
            else:
                stop = rows
                hats, noise = _transforms(piece.weights[row:], frequencies, size)
                unit = noise + piece.unit
            product, error = _times_powers(product, error, hats, unit, piece.counts[row:stop])
            row = stop
            alive = np.abs(product) + error > _DEAD
            alive[0] = True
            if not alive.all():
                dropped += 2 * float(np.sum((np.abs(product) + error)[~alive]))
                frequencies, product, error = frequencies[alive], product[alive], error[alive]
    offset = sum(int(n) * p.start for p in pieces for n in p.counts)
    return ComposedLosses(
        step=step,
        tilt=tilt,
        base=base,
        size=size,
        offset=offset,
        log_scale=scale[0],
        scale_error=scale[1],
        frequencies=frequencies,
        coefficients=product,
        error=2 * float(np.sum(error)) + dropped,
        outside=outside,
    )


def _times_powers(
    product: NDArray[np.complex128],
    error: Floats,
    hats: NDArray[np.complex128],
    unit: float,
    counts: Floats,
) -> tuple[NDArray[np.complex128], Floats]:
    """product * prod hats^counts with its error: each hat is known to `unit`, its modulus is at most 1.

    |prod a^n - prod b^n| <= (prod m^n) sum n |a - b|/m for m >= |a|, |b|.
    """
    if len(counts) == 1 and counts[0] == 1:
        # One factor, once: nothing to raise to a power, which is most of the time that a plan of some dozens takes.
        power, size = hats[0], np.abs(hats[0])
        out = product * power
        return out, np.abs(product) * unit + error * (size + unit) + 8 * UNIT * np.abs(out)
    n = counts[:, None]
    modulus = np.minimum(np.abs(hats) + unit, 1.0 + unit)
    logs = np.log(np.where(hats == 0, 1e-300, hats))
    power = np.exp(np.sum(n * logs, axis=0))
    bound = np.exp(np.sum(n * np.log(modulus), axis=0))
    spread = np.sum(n / modulus, axis=0) * unit
    rounding = UNIT * (16 + 8 * np.sum(n * np.abs(logs), axis=0)) * np.abs(power)
    # Beyond the first order only while the spread is small; a large one says nothing anyway.
    power_error = np.minimum(bound * spread, 2 * bound) + rounding
    out = product * power
    grown = np.abs(product) * power_error + error * (np.abs(power) + power_error) + 8 * UNIT * np.abs(out)
    return out, grown


def _half_turns(nodes: int, frequencies: NDArray[np.int64], size: int) -> float:
    return math.pi * float(np.max(_centred(frequencies, size), initial=0.0)) / size * max(nodes - 1, 1)


def _rank(nodes: int, frequencies: NDArray[np.int64], size: int) -> int:
    """The number of Chebyshev nodes for e^(-i c x) on [-1, 1] to 1e-18: 8 sum_(m >= M) (c/2)^m / m!."""
    c = _half_turns(nodes, frequencies, size)
    rank = max(8, math.ceil(1.4 * c) + 8)
    while math.log(16.0) + rank * math.log(max(c / 2, 1e-300)) - math.lgamma(rank + 1) > math.log(1e-18) or (
        rank < c
    ):
        rank += 4
    return rank


def _transforms(
    weights: Floats, frequencies: NDArray[np.int64], size: int
) -> tuple[NDArray[np.complex128], float]:
    """Transforms of all rows at few frequencies, directly or through interpolation of e^(-iwx) in x."""
    nodes = weights.shape[1]
    turn = 2 * math.pi / size
    rank = _rank(nodes, frequencies, size)
    exactly = len(weights) == 1 and nodes * len(frequencies) <= 300_000
    if rank < len(frequencies) and rank < nodes and not exactly:
        half = (nodes - 1) / 2
        x = (np.arange(nodes, dtype=np.float64) - half) / half
        degrees = np.arange(rank, dtype=np.float64)
        places = np.cos((degrees + 0.5) * np.pi / rank)
        moments = weights @ np.cos(np.outer(np.arccos(x), degrees))
        inverse = np.cos(np.outer(degrees, np.arccos(places))) * (2.0 / rank)
        inverse[0] /= 2
        shares = moments @ inverse
        angle = -turn * np.outer((places + 1) * half, _centred(frequencies, size))
        return shares @ np.exp(1j * angle), UNIT * (256 + 8 * nodes + 128 * rank) + 1e-17
    if exactly:
        # One row may have a huge count, by which its error is multiplied: sum it exactly.
        angle = -turn * _centred((np.arange(nodes)[:, None] % size * frequencies[None, :]) % size, size)
        parts = [(weights[0][:, None] * f(angle)).T.tolist() for f in (np.cos, np.sin)]
        sums = [complex(math.fsum(c), math.fsum(s)) for c, s in zip(*parts, strict=True)]
        return np.array([sums]), 8 * UNIT
    total = np.zeros((len(weights), len(frequencies)), dtype=np.complex128)
    chunk = max(1, min(nodes, 4_000_000 // max(len(frequencies), 1)))
    for start in range(0, nodes, chunk):
        k = np.arange(start, min(start + chunk, nodes), dtype=np.int64)
        angle = -turn * _centred((k[:, None] % size * frequencies[None, :]) % size, size)
        rows = weights[:, start : start + len(k)]
        total += rows @ np.cos(angle) + 1j * (rows @ np.sin(angle))
    return total, UNIT * (32 + 2 * nodes)


def _folded(weights: Floats, size: int) -> Floats:
    if len(weights) <= size:
        return np.pad(weights, (0, size - len(weights)))
    turns = -(-len(weights) // size)
    return np.asarray(np.pad(weights, (0, turns * size - len(weights))).reshape(turns, size).sum(axis=0))


def good_size(least: int) -> int:
    """The smallest even 2^a 3^b 5^c >= least: sizes for which the transform needs no padding tricks."""
    best = 1 << max(1, (least - 1).bit_length())
    five = 1
    while five < best:
        three = five
        while three < best:
            quotient = -(-least // three)
            candidate = three << max(1, (quotient - 1).bit_length())
            if least <= candidate < best:
                best = candidate
            three *= 3
        five *= 5
    return best


# One gridded composition, read from above and from below.
#
# From below: with Z the true and Z~ = Z M the gridded likelihood ratio, M has mean 1 given Z and is a product of
# two-point factors a step apart, so E(zM - T)_+ exceeds (z - T)_+ by a bump around T, which chords of the (convex)
# true curve bound: `docs/theory/grid-from-below.md`.


@dataclass(frozen=True, slots=True, eq=False)
class CertifiedCurve:
    """A composition around one target, with the error accounts that both curves need."""

    composed: ComposedLosses
    slack: float
    infinite_high: float
    infinite_low: float
    log_gain: float
    unresolved: float
    spread: float
    """s: the standard deviation that bounds the gridding factor M."""
    deviation: float
    """Square root of the bound on the variance of M."""
    exact: bool

    def _between(self, epsilon: float, end: int) -> float:
        step = self.composed.step
        node = math.floor(epsilon / step)
        share = min(max(math.expm1(epsilon - node * step) / math.expm1(step), 0.0), 1.0)
        left = self.composed.finite_part(node)[end]
        right = self.composed.finite_part(node + 1)[end]
        mixed = left + share * (right - left)
        # Rounding of the interpolation itself, against whichever side is being certified.
        return mixed * (1 + 1e-14) if end == 1 else mixed * (1 - 1e-14)

    def finite_above(self, epsilon: float) -> float:
        """Upper bound on the finite part of the true curve."""
        cut = max(0.0, self.infinite_high - self.infinite_low)
        return min(1.0, self._between(epsilon - self.slack, 1) + cut)

    def above(self, epsilon: float) -> float:
        """Upper bound on the true curve at e^epsilon."""
        return min(1.0, (self._between(epsilon - self.slack, 1) + self.infinite_high) * (1 + 1e-15))

    def below(self, epsilon: float, reach: float) -> float:
        """Lower bound on the true curve at e^epsilon, with chords of `reach` standard deviations."""
        if not self.exact:
            return 0.0
        floor = max(self.infinite_low, -math.expm1(min(epsilon, 0.0)) * (1 - 1e-15), 0.0) + 0.0
        s, c = self.spread, reach
        if s <= 0 or c / s <= 2 or self.log_gain > 0.5:
            return floor
        node = math.floor((epsilon + self.log_gain) / self.composed.step)
        roundoff = self.composed.weigh(self.unresolved, node)
        seen = (self._between(epsilon + self.log_gain, 0) - roundoff) * math.exp(-self.log_gain)
        if seen <= 0:
            return floor
        # All in units of T = e^epsilon: t0 = e^(-cs), t1 = e^(cs) and so on.
        left, right = -math.expm1(-c * s), math.expm1(c * s)
        a0, a1 = self.deviation / 2 / left, self.deviation / 2 / right
        if a0 + a1 >= 0.9:
            return floor
        far = max(c, math.sqrt(2 * (math.log(1e9) - math.log(seen))))
        bump_left, bump_right = _chernoff_call(c, s), _chernoff_put(c, s)
        t00, t000 = math.exp(-far * s), math.exp(-(far + 1) * s)
        rest = bump_left * self.finite_above(epsilon - (far + 1) * s) / (t00 - t000)
        above_left = self.finite_above(epsilon - c * s)
        rest += bump_right * above_left / left
        rest += math.exp(far * s) * _chernoff_call(far, s)
        value = seen - a0 * above_left - a1 * self.finite_above(epsilon + c * s) - rest * (1 + 1e-12)
        return max(floor, value / (1 - a0 - a1) * (1 - 1e-13) + self.infinite_low)


def _chernoff_call(c: float, s: float) -> float:
    """Bound on E(uM - 1)_+ for u = e^(-cs), as E M^r <= e^(r(r-1)s^2/2): (x-1)_+ <= x^r (r-1)^(r-1)/r^r."""
    r = max(0.5 + c / s, 1.0 + 1e-9)
    shape = (r - 1) * math.log(r - 1) - r * math.log(r)
    return math.exp(-r * c * s + r * (r - 1) * s * s / 2 + shape) * (1 + 1e-9)


def _chernoff_put(c: float, s: float) -> float:
    """Bound on E(1 - uM)_+ for u = e^(cs): (1-x)_+ <= x^(-r) r^r/(r+1)^(r+1)."""
    r = max(c / s - 0.5, 1e-9)
    shape = r * math.log(r) - (r + 1) * math.log(r + 1)
    return math.exp(-r * c * s + r * (r + 1) * s * s / 2 + shape) * (1 + 1e-9)


def chord(solved: CertifiedCurve, bottom: int, top: int, delta: float) -> float:
    """The crossing of delta by the chord between two nodes; the curve is convex in e^epsilon, hence below it."""
    step = solved.composed.step
    left, right = solved.above(bottom * step), solved.above(top * step)
    if not left > delta >= right:
        return top * step
    share = (left - delta) / (left - right)
    value = bottom * step + math.log1p(share * math.expm1(step))
    return min(value * (1 + 4e-16) + 1e-300 + 1e-15 * abs(value), top * step)


def _reach(solved: CertifiedCurve, epsilon: float) -> float:
    return max((3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0), key=lambda c: solved.below(epsilon, c))


def read(solved: CertifiedCurve, epsilon: float) -> Interval:
    """Enclosure of delta at epsilon."""
    high = solved.above(epsilon)
    low = solved.below(epsilon, _reach(solved, epsilon)) if solved.exact else 0.0
    return Interval(low=min(low, high), high=high)


def inverted(solved: CertifiedCurve, delta: float, guess: float) -> Interval:
    """Enclosure of epsilon at delta, looked for around the guess."""
    composed = solved.composed
    step = composed.step
    bottom, top = composed.base, composed.base + composed.size
    if solved.above(top * step) > delta:
        high = math.inf
    else:
        if solved.above((bottom + 1) * step) <= delta:
            bottom = min(bottom, 0) - 1
        # The guess is good: look around it first, four times as far each time.
        near, jump = math.floor(guess / step), 8
        while top - bottom > 1:
            guided = bottom < near < top and jump < top - bottom
            middle = near if guided else (bottom + top) // 2
            if solved.above(middle * step) <= delta:
                top, near = middle, middle - jump
            else:
                bottom, near = middle, middle + jump
            jump *= 4
        high = chord(solved, bottom, top, delta)
    if high <= 0:
        return Interval(low=0.0, high=0.0)
    if not solved.exact:
        return Interval(low=0.0, high=high)
    if solved.infinite_low > delta:
        return Interval(low=math.inf, high=math.inf)
    start = min(high, guess) if math.isinf(high) else high
    reach = _reach(solved, start - solved.spread)
    width = solved.spread * 0.01 + 1e-15
    while solved.below(start - width, reach) <= delta:
        width *= 2
        if start - width < min(0.0, composed.base * step):
            return Interval(low=0.0, high=high)
    good, _ = bisected(lambda e: not solved.below(e, reach) > delta, start - width, start, halvings=30)
    return Interval(low=max(0.0, min(good, high)), high=high)
