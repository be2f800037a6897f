"""The law of a sum of independent rows on a lattice, between two certified ends at every point.

    p(s) = (1/N) sum_k phi(k)^m e^{2 pi i k s / N},     phi(k) = sum_j w_j e^{-2 pi i k j / N}

Few frequencies k are alive: those are taken in ball arithmetic, so that the power m loses nothing however large it is;
the others are bounded by their modulus. What N points leave out wraps around: it is a tail, bounded by Chernoff. Deep
tails are computed again under a tilt w_j e^{t j}, which moves them to the middle (theorem `lattice-sums`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import NotCertified
from tacit.exact.arrays import UNIT, Floats
from tacit.exact.balls import ball, precision
from tacit.exact.rounding import down, up
from tacit.pld.fourier import good_size

__all__ = ["SumLaw", "Weights", "sum_law", "sum_laws"]

_BITS = 128
_DEAD = -85.0
MOST_POINTS = 1 << 23
MOST_WORK = 3e8
_RATES = 2.0 ** np.linspace(-3.0, 3.0, 49)


Weights: TypeAlias = tuple[Fraction, ...]
"""Probabilities of 0, 1, 2, ..."""


@dataclass(frozen=True, slots=True, eq=False)
class SumLaw:
    """low(s) <= p(s) <= high(s) for s = start, start + 1, ...; elsewhere there is `outside` altogether, at most."""

    start: int
    low: Floats
    high: Floats
    outside: float

    def at(self, first: int, size: int, *, upper: bool) -> Floats:
        """One end of p on `size` points from `first`: 0 where nothing is known, for which `outside` answers."""
        values = self.high if upper else self.low
        out = np.zeros(size)
        a, b = max(first, self.start), min(first + size, self.start + len(values))
        if a < b:
            out[a - first : b - first] = values[a - self.start : b - self.start]
        return out


def sum_law(weights: Weights, count: int, *, delta: float) -> SumLaw:
    """The law of the sum of so many independent rows with these weights, near enough for deltas of this size."""
    return sum_laws([weights], [(count,)], delta=delta)[0]


def sum_laws(weights: Sequence[Weights], counts: Sequence[tuple[int, ...]], *, delta: float) -> list[SumLaw]:
    """The laws of several sums: each tuple of counts says how many rows of each of the weights are added up."""
    rows = [_Row(w) for w in weights]
    middle = counts[len(counts) // 2]
    std = _moments(rows, middle, 0.0).std
    far = math.log(delta) - 12.0 - math.log(40.0 * std + 40.0)
    found = [_solved(rows, counts, 0.0, far)]
    if delta < 1e-8 and std > 0:
        # Where the tail of about this delta begins; the tilt puts the middle of the law there.
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
    """One law of a row, in floats, as its logarithms."""

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
        """How far from the mean all but e^log_tail lies on one side: min over t of (K(t) - log_tail)/t."""
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
    """The laws by their transforms under one tilt, untilted again; all on one number of frequencies."""
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
            with np.errstate(over="ignore", under="ignore"):
                low = low * np.exp(scale - tilt * s - margin)
                high = high * np.exp(scale - tilt * s + margin) + 1e-300
        out.append(SumLaw(first, low, high, outside if tilt == 0.0 else 0.0))
    return out


class _Transform:
    """phi of each law of a row at the frequencies that are alive for some of the sums, as balls."""

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
        """Where the product of the powers is not seen to be negligible."""
        return np.asarray(sum(c * b for c, b in zip(counts, self.bounds, strict=True)) > _DEAD)

    def of(self, counts: tuple[int, ...], first: int) -> tuple[NDArray[np.complex128], float, float]:
        """(Transform of a sum, from the point `first` on; bound on the sum of its errors; log of the tilt's scale)."""
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
