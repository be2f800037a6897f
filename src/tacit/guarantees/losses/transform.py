"""The composed loss of many gridded pairs, by its Fourier coefficients, tilted, with every error bounded.

Under the tilted weights w_k = p_k e^(tilt l_k)/A the composed loss is centred where the answer lies, so
that even deltas of 1e-300 keep their digits. Its transform is the product of the parts' transforms to the
power of their counts. Frequencies whose product has died out are dropped (the other factors are at most 1
in modulus, so what is dropped is bounded by what was seen), which leaves a few hundred of millions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees.losses.grid import Gridded
from tacit.guarantees.losses.laws import UNIT
from tacit.guarantees.losses.pair import FloatArray

__all__ = ["Composed", "LogMoments", "compose"]

_DEAD = 1e-26
_BLOCK = 128


class LogMoments:
    """K(tilt) = sum_i n_i ln sum_k p_ik e^(tilt l_k), over parts laid end to end."""

    def __init__(self, parts: list[tuple[FloatArray, FloatArray, float]]) -> None:
        self.losses = np.concatenate([p[0] for p in parts])
        with np.errstate(divide="ignore"):
            self.logs = np.concatenate([np.log(p[1]) for p in parts])
        self.counts = np.array([p[2] for p in parts], dtype=np.float64)
        sizes = np.array([len(p[0]) for p in parts])
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.owner = np.repeat(np.arange(len(parts)), sizes)

    def parts(self, tilt: float) -> FloatArray:
        """ln A_i(tilt) of each part."""
        exponents = self.logs + tilt * self.losses
        peaks = np.maximum.reduceat(exponents, self.starts)
        sums = np.add.reduceat(np.exp(exponents - peaks[self.owner]), self.starts)
        return np.asarray(peaks + np.log(sums))

    def value(self, tilt: float) -> float:
        """K(tilt)."""
        return float(np.dot(self.counts, self.parts(tilt)))

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K, K' (the tilted mean) and K'' (the tilted variance)."""
        exponents = self.logs + tilt * self.losses
        peaks = np.maximum.reduceat(exponents, self.starts)
        weights = np.exp(exponents - peaks[self.owner])
        sums = np.add.reduceat(weights, self.starts)
        means = np.add.reduceat(weights * self.losses, self.starts) / sums
        centred = self.losses - means[self.owner]
        variances = np.add.reduceat(weights * centred * centred, self.starts) / sums
        k = float(np.dot(self.counts, peaks + np.log(sums)))
        return k, float(np.dot(self.counts, means)), float(np.dot(self.counts, variances))


@dataclass(slots=True, eq=False)
class Composed:
    """The composed tilted law on `size` nodes from `base` on: the finite part of the curve at nodes."""

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
    _table: FloatArray | None = None

    def finite_part(self, node: int) -> tuple[float, float]:
        """ln-free enclosure (low, high) of sum_k P_k (1 - e^(l_node - l_k))_+ over finite losses."""
        if node not in self._cache:
            value, error = self._sum(node)
            exponent = self.log_scale - self.tilt * node * self.step
            margin = self.scale_error + 8 * UNIT * (abs(exponent) + self.tilt * abs(node) * self.step + 4)
            high = _times_exp(max(value, 0.0) + error + self.outside, exponent + margin, upward=True)
            low = _times_exp(max(value - error - self.outside, 0.0), exponent - margin, upward=False)
            # Curves never exceed 1: where the scale overflows, that is all that is known.
            self._cache[node] = (min(low, 1.0), min(high, 1.0))
        return self._cache[node]

    def weigh(self, mass: float, node: int) -> float:
        """Upper value of mass e^(ln A - tilt l_node): the most that tilted mass above the node can count."""
        exponent = self.log_scale - self.tilt * node * self.step
        margin = self.scale_error + 8 * UNIT * (abs(exponent) + self.tilt * abs(node) * self.step + 4)
        return _times_exp(mass, exponent + margin, upward=True)

    def _sum(self, node: int) -> tuple[float, float]:
        """sum over nodes above of C_k e^(-tilt (l_k - l_node)) (1 - e^-(l_k - l_node)), and its error."""
        first = max(node + 1, self.base)
        terms = self.base + self.size - first
        if terms <= 0:
            return 0.0, 0.0
        if self._table is None and len(self.frequencies) > 20000:
            self._table = self._inverse()
        lead = first - node
        weight = min(float(terms), 1.0 / max(-math.expm1(-self.tilt * self.step), 1e-300))
        error = weight / self.size * (self.error + 128 * UNIT * self._modulus()) + 1e-300
        if self._table is not None:
            m = np.arange(lead, lead + terms, dtype=np.float64) * self.step
            kernel = np.exp(-self.tilt * m) * -np.expm1(-m)
            value = float(np.dot(self._table[first - self.base :], kernel))
            levels = 16 * math.log2(self.size)
            return value, error + weight / self.size * UNIT * levels * self._modulus() + 4 * UNIT * abs(value)
        turn = 2 * np.pi / self.size
        j = self.frequencies
        phase = np.exp(1j * turn * ((j * ((first - self.offset) % self.size)) % self.size))
        kernel_hat = self._geometric(self.tilt, lead, terms) - self._geometric(self.tilt + 1.0, lead, terms)
        doubled = np.where((j == 0) | (2 * j == self.size), 1.0, 2.0)
        value = float(np.sum((self.coefficients * phase * kernel_hat).real * doubled)) / self.size
        return value, error

    def masses(self) -> tuple[FloatArray, float]:
        """Tilted masses at the nodes of the window, and a bound on the error of each."""
        error = (self.error + UNIT * (128 + 16 * math.log2(self.size)) * self._modulus()) / self.size
        return self._inverse(), error + 1e-300

    def _modulus(self) -> float:
        return 2 * float(np.sum(np.abs(self.coefficients)))

    def _geometric(self, rate: float, lead: int, terms: int) -> NDArray[np.complex128]:
        """sum over m < terms of e^(-rate (lead + m) step + i w m)."""
        j = self.frequencies
        turn = 2 * np.pi / self.size
        near = -rate * self.step + 1j * turn * _centred(j, self.size)
        far = -rate * self.step * terms + 1j * turn * _centred(
            (j * (terms % self.size)) % self.size, self.size
        )
        below = np.expm1(near)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.expm1(far) / below
        return np.asarray(np.where(below == 0, float(terms), total) * math.exp(-rate * lead * self.step))

    def _inverse(self) -> FloatArray:
        full = np.zeros(self.size // 2 + 1, dtype=np.complex128)
        full[self.frequencies] = self.coefficients
        table = np.fft.irfft(full, self.size)
        return np.roll(table, -((self.base - self.offset) % self.size))


def _times_exp(value: float, exponent: float, *, upward: bool) -> float:
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


def _centred(j: NDArray[np.int64], size: int) -> FloatArray:
    return np.where(2 * j > size, j - size, j).astype(np.float64)


def compose(
    parts: list[tuple[Gridded, int]],
    step: float,
    tilt: float,
    log_a: FloatArray,
    window: tuple[int, int],
    outside: float,
) -> Composed:
    """Multiply the transforms of all parts, widest first, keeping the frequencies that are alive."""
    base, size = window[0], _good_size(window[1] - window[0] + 1)
    weights, errors, spread = [], [], []
    for (grid, _), a in zip(parts, log_a, strict=True):
        losses = np.arange(grid.start, grid.start + len(grid.masses), dtype=np.float64) * step
        w = grid.masses * np.exp(tilt * losses - a)
        weights.append(w)
        biggest = max(abs(float(losses[0])), abs(float(losses[-1])))
        errors.append(UNIT * (16 + 4 * tilt * biggest + 4 * abs(float(a))))
        mean = float(np.dot(w, losses))
        spread.append(float(np.dot(w, (losses - mean) ** 2)))
    counts = [n for _, n in parts]
    order = sorted(range(len(parts)), key=lambda i: -counts[i] * spread[i])
    frequencies = np.arange(size // 2 + 1, dtype=np.int64)
    product = np.ones(len(frequencies), dtype=np.complex128)
    error = np.zeros(len(frequencies))
    dropped = 0.0
    position = 0
    while position < len(order):
        batch = order[position : position + _BLOCK]
        longest = max(len(weights[i]) for i in batch)
        # Seconds, about: a table of sines costs 25 ns an entry, a transform 60 ns a node.
        if longest * len(frequencies) * 25e-9 > min(len(batch), 3) * size * 60e-9:
            batch = batch[:1]
            hats = [np.fft.rfft(_folded(weights[batch[0]], size))[frequencies]]
            noise = [UNIT * 16 * math.log2(size) + errors[batch[0]]]
        else:
            hats, noise = _direct([weights[i] for i in batch], frequencies, size, [errors[i] for i in batch])
        for i, hat, unit in zip(batch, hats, noise, strict=True):
            product, error = _times_power(product, error, hat, unit, counts[i])
        position += len(batch)
        alive = np.abs(product) + error > _DEAD
        alive[0] = True
        if not alive.all():
            dropped += 2 * float(np.sum((np.abs(product) + error)[~alive]))
            frequencies, product, error = frequencies[alive], product[alive], error[alive]
    offset = sum(n * g.start for g, n in parts)
    log_scale = math.fsum(float(n) * float(a) for n, a in zip(counts, log_a, strict=True))
    scale_error = 4 * UNIT * math.fsum(float(n) * abs(float(a)) for n, a in zip(counts, log_a, strict=True))
    return Composed(
        step=step,
        tilt=tilt,
        base=base,
        size=size,
        offset=offset,
        log_scale=log_scale,
        scale_error=scale_error,
        frequencies=frequencies,
        coefficients=product,
        error=2 * float(np.sum(error)) + dropped,
        outside=outside,
    )


def _times_power(
    product: NDArray[np.complex128], error: FloatArray, hat: NDArray[np.complex128], unit: float, count: int
) -> tuple[NDArray[np.complex128], FloatArray]:
    """product * hat^count with its error: hat is known to `unit`, its modulus is at most 1."""
    modulus = np.minimum(np.abs(hat) + unit, 1.0 + unit)
    if count == 1:
        power, power_error = hat, np.full(len(hat), unit)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(np.where(hat == 0, 1.0, hat))
            power = np.where(hat == 0, 0.0, np.exp(count * log))
            bound = np.exp((count - 1) * np.log(modulus))
        relative = UNIT * (16 + 8 * count * np.abs(log))
        power_error = count * unit * bound + relative * np.abs(power)
    out = product * power
    grown = np.abs(product) * power_error + error * (np.abs(power) + power_error) + 8 * UNIT * np.abs(out)
    return out, grown


def _direct(
    weights: list[FloatArray], frequencies: NDArray[np.int64], size: int, errors: list[float]
) -> tuple[list[NDArray[np.complex128]], list[float]]:
    """Transforms at few frequencies, as one matrix product."""
    longest = max(len(w) for w in weights)
    chunk = max(1, min(longest, 4_000_000 // max(len(frequencies), 1)))
    total = np.zeros((len(weights), len(frequencies)), dtype=np.complex128)
    turn = -2 * np.pi / size
    for start in range(0, longest, chunk):
        k = np.arange(start, min(start + chunk, longest), dtype=np.int64)
        angle = turn * _centred((k[:, None] % size * frequencies[None, :]) % size, size)
        rows = np.zeros((len(weights), len(k)))
        for row, w in zip(rows, weights, strict=True):
            part = w[start : start + len(k)]
            row[: len(part)] = part
        total += rows @ np.cos(angle) + 1j * (rows @ np.sin(angle))
    noise = [UNIT * (32 + 2 * len(w)) + e for w, e in zip(weights, errors, strict=True)]
    return list(total), noise


def _folded(weights: FloatArray, size: int) -> FloatArray:
    if len(weights) <= size:
        return np.pad(weights, (0, size - len(weights)))
    turns = -(-len(weights) // size)
    return np.asarray(np.pad(weights, (0, turns * size - len(weights))).reshape(turns, size).sum(axis=0))


def _good_size(least: int) -> int:
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
