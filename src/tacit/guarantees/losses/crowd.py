"""Very many different parts at once, from their own transforms: no grid of losses, a few dozen frequencies.

The composed loss X is joined by an independent normal one of variance s^2 (Z M with M lognormal of mean 1): the
curve only rises, and falls back by `docs/theory/grid-from-below.md`, whose factor M need only have mean 1 and
ln E M^r <= r (r - 1) s^2/2. Under the tilted law E k(X - e), k(x) = e^(-cx)(1 - e^-x)+, is a sum over the
frequencies of a circle that holds all but 1e-14 of X; each part's transform comes from a few nodes with
bounded error (nodes.py), and beyond the first few frequencies the product is proved to be dead:
ln|phi| <= -w^2 m2/2 + w^4 (m4/24 + m2^2/8), or the law has a uniform share p on an interval of length d and
|phi| <= 1 - p (1 - |sin(wd/2)/(wd/2)|).
"""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees.losses.circle import Circle, Smoothed
from tacit.guarantees.losses.continuous import GaussianPair
from tacit.guarantees.losses.laws import UNIT
from tacit.guarantees.losses.moments import LogMoments, log_one_minus
from tacit.guarantees.losses.nodes import Nodes, Reach, nodes_of, shape
from tacit.guarantees.losses.pair import FloatArray, Pair

__all__ = ["Crowd"]

_SMOOTH = {"ExponentialPair", "LaplacePair", "GaussianPair", "SampledReplacementPair"}
_LATTICE = {"DiscreteGaussianPair"}
_LEAST = 256
_ROWS = 256
_SAMPLE = 256
_GONE = 40.0
_MOST_FREQUENCIES = 4096
_BUDGET = 1e9
"""Turns of single nodes that may be computed before the grid of losses is the cheaper way."""
_FACTORS = (0.5, 1.0, 2.0, 4.0, 6.0, 9.0)
_DISC = 4.0
"""Radius, over sigma, of the disc around the tilt (inside the reach) on which moments are compared."""


class _TooWide(Exception):
    """The parts are so few or so wide that the grid of losses is cheaper."""


class Crowd:
    """Parts of kinds that have nodes, in chunks of near parameters; at most one normal part aside."""

    def __init__(self, parts: list[tuple[Pair, int]], exact: bool) -> None:
        self.exact = exact
        self.total = float(sum(n for _, n in parts))
        self.normal = 0.0
        others = []
        for pair, count in parts:
            if isinstance(pair, GaussianPair):
                self.normal += float(pair.squared) * count
            else:
                others.append((pair, count))
        self.members = others
        grouped = [list(g) for _, g in groupby(others, key=lambda part: shape(part[0]))]
        self.chunks = [g[i : i + _ROWS] for g in grouped for i in range(0, len(g), _ROWS)]
        self._nodes: list[Nodes] = []
        self._reach = Reach(low=0.0, high=0.0, frequency=0.0)

    @staticmethod
    def of(parts: list[tuple[Pair, int]], exact: bool) -> Crowd | None:
        """A crowd, where there are many parts and all of kinds that have nodes."""
        if len(parts) < _LEAST:
            return None
        shapes = [shape(pair) for pair, _ in parts if not isinstance(pair, GaussianPair)]
        # Other atoms have no density to make high frequencies die: the grid serves those.
        known = (s is not None and (s[2] in _SMOOTH or (s[2] in _LATTICE and not s[1])) for s in shapes)
        return Crowd(parts, exact) if all(known) else None

    def rough(self) -> LogMoments | None:
        """Log-moments of an even sample: only says where to look."""
        chosen = self.members[:: max(1, len(self.members) // _SAMPLE)]
        factor = len(self.members) / len(chosen)
        rows: list[tuple[FloatArray, FloatArray, float]] = []
        for _, group in groupby(chosen, key=lambda part: shape(part[0])):
            rows_of = list(group)
            nodes = nodes_of(rows_of, Reach(low=-1.0, high=40.0, frequency=1.0))
            if nodes is None:
                nodes = nodes_of(rows_of, Reach(low=-1.0, high=8.0, frequency=1.0))
            if nodes is None:
                return None
            rows += [
                (loss, mass, n * factor)
                for loss, mass, n in zip(nodes.losses, nodes.masses, nodes.counts, strict=True)
            ]
        if self.normal > 0:
            x, mu = np.linspace(-12, 12, 97), math.sqrt(self.normal)
            rows.append((mu * mu / 2 + mu * x, np.exp(-x * x / 2) / (4 * math.sqrt(2 * math.pi)), 1.0))
        return LogMoments(rows)

    def _prepare(self, reach: Reach) -> bool:
        old = self._reach
        if (
            self._nodes
            and old.low <= reach.low
            and old.high >= reach.high
            and old.frequency >= reach.frequency
        ):
            return True
        self._nodes = []
        for chunk in self.chunks:
            nodes = nodes_of(chunk, reach)
            if nodes is None:
                return False
            self._nodes.append(nodes)
        self._reach = reach
        return True

    def solve(
        self, spread: float, tilt: float, variance: float, epsilon: float, delta: float
    ) -> Smoothed | None:
        """The curve around epsilon, smoothed by `spread`; None where it cannot be certified this way."""
        sigma = math.sqrt(variance + spread**2)
        jump = _FACTORS[-1] / sigma * 1.01
        found: float | tuple[Circle, tuple[float, float]] | None = max(20 / sigma, self._reach.frequency)
        for _ in range(3):
            if not isinstance(found, float):
                break
            if not self._prepare(Reach(low=tilt - jump, high=tilt + jump, frequency=found)):
                return None
            try:
                found = _Tilted(self, spread, tilt, sigma).circle(epsilon, delta)
            except _TooWide:
                return None
        if found is None or isinstance(found, float):
            return None
        circle, kept = found
        return Smoothed(
            composed=circle,  # type: ignore[arg-type]
            slack=0.0,
            infinite_high=min(1.0, -math.expm1(kept[0]) * (1 + 1e-12)),
            infinite_low=max(0.0, -math.expm1(kept[1]) * (1 - 1e-12)),
            log_gain=0.0,
            doubtful=0.0,
            spread=spread * (1 + 1e-12),
            deviation=math.sqrt(math.expm1(min(spread**2, 600.0))) * (1 + 1e-9),
            exact=self.exact,
        )


class _Tilted:
    """The crowd under one tilt: moments, windows, frequencies."""

    def __init__(self, crowd: Crowd, spread: float, tilt: float, sigma: float) -> None:
        self.crowd, self.tilt, self.sigma, self.spread = crowd, tilt, sigma, spread
        self.smooth = crowd.normal + spread**2
        c, v = tilt, self.smooth
        self.log_scale, self.scale_error = c * (c + 1) * v / 2, 8 * UNIT * abs(c) * (abs(c) + 1) * v
        self.shifts = [sign * factor / sigma for sign in (1, -1) for factor in _FACTORS]
        self.rises = np.array([t * v * (c + 0.5) + t * t * v / 2 for t in self.shifts])
        self.mean, self.mean_error = v * (c + 0.5), 8 * UNIT * v * (abs(c) + 1)
        self.kept = [0.0, 0.0]
        self.budget = _BUDGET
        self.moments: list[FloatArray] = []
        self.weights: list[FloatArray] = []
        self.centres: list[FloatArray] = []
        self.relative: list[FloatArray] = []
        self.disc: list[FloatArray] = []
        # Worst-case rounding of sums over the rows of a chunk, and over chunks.
        self.unit = UNIT * (2 * _ROWS + 2 * len(crowd._nodes))
        self.scales: list[FloatArray] = []
        for nodes in crowd._nodes:
            self._add(nodes)

    def _add(self, nodes: Nodes) -> None:
        log_a, weights = nodes.tilted(self.tilt)
        n = nodes.counts
        relative = nodes.relative + 2 * nodes.error * np.exp(np.minimum(np.maximum(0.0, -log_a), 600.0))
        means = np.sum(weights * nodes.losses, axis=1)
        centred = nodes.losses - means[:, None]
        squares = centred * centred
        moments = np.stack([np.sum(weights * squares, axis=1), np.sum(weights * squares**2, axis=1)], axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        # |transform - that of the nodes| on the disc: errors that scale with A(tilt'), and those that do not.
        steady = 2 * nodes.error * np.exp(np.minimum(_DISC / self.sigma * np.abs(means) - log_a, 600.0))
        disc = 2 * (relative + steady)
        for k, shift in enumerate(self.shifts):
            exponents = logs + shift * centred
            peak = np.max(exponents, axis=1)
            grown = np.log(np.sum(np.exp(exponents - peak[:, None]), axis=1)) + peak
            rise = grown + shift * means
            # The nodes' error is absolute: it counts for more where A(tilt + shift) is less than 1.
            there = 2 * nodes.error * np.exp(np.clip(-log_a - rise, 0.0, 600.0))
            self.rises[k] += float(n @ (rise + 2 * (relative + nodes.relative + there)))
            if abs(shift) * self.sigma <= _DISC * (1 + 1e-9):
                disc = np.maximum(disc, 2 * relative * np.exp(np.minimum(grown, 600.0)) + 2 * steady)
        self.disc.append(disc)
        self.log_scale += float(n @ log_a)
        self.scale_error += float(n @ (2 * relative + self.unit * np.abs(log_a)))
        self.mean += float(n @ means)
        self.mean_error += self.unit * float(n @ np.abs(means))
        self.kept[0] += float(n @ log_one_minus(nodes.infinite[:, 1]))
        self.kept[1] += float(n @ log_one_minus(nodes.infinite[:, 0]))
        self.moments.append(moments)
        self.weights.append(weights)
        self.centres.append(centred)
        self.relative.append(relative)
        self.scales.append(log_a)

    def circle(self, epsilon: float, delta: float) -> tuple[Circle, tuple[float, float]] | float | None:
        """The composed law around epsilon, with the logarithms of the finite masses; a frequency if one
        beyond the reach of the nodes is alive."""
        goal = math.log(1e14)
        pairs = list(zip(self.shifts, self.rises, strict=True))
        high = min((rise + goal) / shift for shift, rise in pairs if shift > 0)
        low = max((rise + goal) / shift for shift, rise in pairs if shift < 0)
        far = (math.sqrt(2 * (math.log(1e9) - math.log(max(delta, 1e-305)))) + 3) * self.spread
        top, bottom = max(high, epsilon + 9 * self.spread), min(low, epsilon - far)
        if not (math.isfinite(top) and math.isfinite(bottom)):
            return None
        gap = 2 * math.pi / (top - bottom)
        alive, dropped = self._dead(gap)
        if alive is None:
            return None
        if alive * gap > self.crowd._reach.frequency:
            return float(alive * gap * 1.02)
        product, errors = self._product(np.arange(alive + 1, dtype=np.float64) * gap)
        error = 2 * float(np.sum(errors)) + dropped
        circle = Circle(
            step=self.spread / 4,
            tilt=self.tilt,
            bottom=bottom,
            top=top,
            log_scale=self.log_scale,
            scale_error=self.scale_error,
            mean=self.mean,
            coefficients=product,
            error=error,
        )
        return circle, (self.kept[0], self.kept[1])

    def _dead(self, gap: float) -> tuple[int | None, float]:
        """(last frequency that is alive, bound on the sum of |phi| over all beyond it, both signs)."""
        last = math.sqrt(2 * (_GONE + 4)) / self.spread
        grid = [4 / self.sigma]
        while grid[-1] < last:
            grid.append(grid[-1] * 1.15)
        w = np.array(grid)
        bounds = -self.smooth * w[:-1] ** 2 / 2
        for index, nodes in enumerate(self.crowd._nodes):
            bounds = bounds + self._bound(index, nodes, w)
        numbers = np.ceil(np.diff(w) / gap) + 1
        alive = np.flatnonzero(bounds > -_GONE)
        first = 0 if len(alive) == 0 else int(alive[-1]) + 1
        if first >= len(bounds):
            return None, 0.0
        count = math.ceil(w[first] / gap)
        if count > _MOST_FREQUENCIES:
            return None, 0.0
        dropped = 2 * float(np.sum((numbers * np.exp(bounds))[first:]))
        beyond = 2 * math.exp(-_GONE) * (1 + 1 / (self.spread * math.sqrt(2 * _GONE) * gap))
        return count, dropped + beyond

    def _bound(self, index: int, nodes: Nodes, w: FloatArray) -> FloatArray:
        """Sum over rows of n ln|phi| on each [w_k, w_k+1], from above."""
        moments, rest = self.moments[index], self.disc[index]
        disc = _DISC / self.sigma
        m2 = np.maximum(moments[:, 0] * (1 - 1e-6) - 4 * rest / disc**2, 0.0) * (rest < 1e-7)
        high = moments[:, 0] * (1 + 1e-6) + 4 * rest / disc**2
        m4 = moments[:, 1] * (1 + 1e-6) + 48 * rest / disc**4
        best = np.minimum(0.0, np.outer(m2, -(w[:-1] ** 2) / 2) + np.outer(m4 / 24 + high**2 / 8, w[1:] ** 4))
        if nodes.edges is not None and nodes.floors is not None:
            ends = self.tilt * nodes.edges
            with np.errstate(divide="ignore"):
                # In logarithms: a tiny floor times an overflow would be an infinite one.
                logs = np.log(nodes.floors) + np.minimum(ends[:, :-1], ends[:, 1:])
            # A and the ends of cells are known to `relative`, too.
            sure = np.maximum(1 - 1e-6 - 2 * self.relative[index], 0.0)
            floors = np.exp(logs - self.scales[index][:, None]) * sure[:, None]
            for width in (1, 2, 3):
                count = floors.shape[1] // width
                part = floors[:, : count * width].reshape(len(floors), count, width).min(axis=2)
                length = np.abs(np.diff(nodes.edges[:, : count * width + 1 : width], axis=1))
                share = part * length
                gain = np.zeros_like(best)
                for k in range(count):
                    turns = np.outer(length[:, k] / 2, w[:-1])
                    gain += share[:, k : k + 1] * np.minimum(turns**2 / 9, 0.75)
                best = np.minimum(best, -gain)
        if nodes.integers is not None:
            best = np.minimum(best, _integer_bound(*nodes.integers, w))
        return np.asarray(nodes.counts @ best)

    def _product(self, w: FloatArray) -> tuple[NDArray[np.complex128], FloatArray]:
        """The transform of the centred sum at the multiples w of a gap, and its error."""
        count = len(w)
        logs, angles = -self.smooth * w * w / 2, np.zeros(count)
        log_bound = -self.smooth * w * w / 2
        spread = np.zeros(count)
        size = np.zeros(count)
        kept = np.ones(count, dtype=bool)
        order = sorted(range(len(self.moments)), key=lambda i: -self._variance(i))
        for index in order:
            # Other factors are at most 1 in modulus: what has died stays dead.
            kept &= log_bound > -_GONE
            last = int(np.flatnonzero(kept)[-1]) + 1
            hats, error = self._hats(index, last, float(w[1]))
            n = self.crowd._nodes[index].counts
            moduli = np.abs(hats)
            modulus = np.minimum(moduli + error, 1.0 + error)
            # Real and imaginary parts apart: products of matrices of mixed kinds are slow.
            each, turns = np.log(np.maximum(moduli, 1e-300)), np.angle(hats)
            logs[:last] += n @ each
            angles[:last] += n @ turns
            log_bound[:last] += n @ np.log(modulus)
            spread[:last] += n @ (error / modulus)
            size[:last] += n @ (np.abs(each) + np.abs(turns))
        bound = np.exp(np.minimum(log_bound, 600.0))
        product = np.where(kept, np.exp(logs + 1j * angles), 0.0)
        rounding = (32 * UNIT + self.unit * size + w * self.mean_error) * np.abs(product)
        errors = np.minimum(bound * spread, 2 * bound) * (1 + 1e-6) + rounding
        return product, np.where(kept, errors, bound * (1 + 1e-6))

    def _variance(self, index: int) -> float:
        return float(self.crowd._nodes[index].counts @ self.moments[index][:, 0])

    def _hats(self, index: int, count: int, gap: float) -> tuple[NDArray[np.complex128], FloatArray]:
        """Transforms of the rows of a chunk at 0, gap, ..., and their errors.

        e^(i(a + Ab)x) is a product of two powers of e^(ix): two short tables and one matrix product a row. Each
        multiplication adds at most three units to the error of a power, the error of e^(ix) is multiplied by it.
        """
        weights, centres = self.weights[index], self.centres[index]
        rows, nodes = weights.shape
        short = max(1, math.ceil(math.sqrt(count)))
        long = -(-count // short)
        self.budget -= rows * nodes * count
        if self.budget < 0:
            raise _TooWide
        turn = np.exp(1j * gap * centres)
        baby = np.empty((rows, short, nodes), dtype=np.complex128)
        baby[:, 0] = weights
        for a in range(1, short):
            np.multiply(baby[:, a - 1], turn, out=baby[:, a])
        giant = np.empty((rows, long, nodes), dtype=np.complex128)
        giant[:, 0] = 1.0
        leap = np.exp(1j * (gap * short) * centres)
        for b in range(1, long):
            np.multiply(giant[:, b - 1], leap, out=giant[:, b])
        hats = np.matmul(giant, baby.transpose(0, 2, 1)).reshape(rows, short * long)[:, :count]
        rounding = UNIT * (16 + 3 * nodes + 8 * np.arange(count, dtype=np.float64))
        return hats, 2 * self.relative[index][:, None] + rounding


def _integer_bound(noise_std: FloatArray, sensitivity: float, w: FloatArray) -> FloatArray:
    """ln|phi| of discrete Gaussian losses, tilted or not, on each [w_k, w_k+1], from above (noise_std >= 1).

    By Poisson's summation |phi| <= sum_k e^(-std^2 (t + 2 pi k)^2/2)/(1 - 2 sum_(k>=1) e^(-2 pi^2 std^2 k^2)) with
    t = w sensitivity/std^2, wherever the noise is centred. At distance d <= pi of t from the multiples of 2 pi that
    is at most e^(-std^2 d^2/2) times e^0.75, and times 1 + 4 e^(-pi^2 std^2) while d <= pi/2.
    """
    variance = noise_std[:, None] ** 2
    t = w[None, :] * (sensitivity / variance)
    low, high = t[:, :-1], t[:, 1:]
    below = np.floor(low / (2 * math.pi)) * (2 * math.pi)
    # Where a multiple lies inside, the distance to the next one is negative.
    distance = np.minimum(low - below, below + 2 * math.pi - high) - 1e-9 * (1 + high)
    excess = np.where(high <= math.pi / 2, 4 * np.exp(-(math.pi**2) * variance), 0.75)
    bound = -variance * np.maximum(distance, 0.0) ** 2 / 2 * (1 - 1e-9) + excess
    return np.asarray(np.minimum(bound, 0.0))
