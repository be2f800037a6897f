"""Very many different parts at once, from their own transforms: no grid of losses, a few dozen frequencies.

The composed loss X is joined by an independent normal one of variance s^2 (Z M with M lognormal of mean 1): the
curve only rises, and falls back by `docs/theory/grid-from-below.md`, whose factor M need only have mean 1 and
ln E M^r <= r (r - 1) s^2/2. Under the tilted law E k(X - e), k(x) = e^(-cx)(1 - e^-x)+, is a sum over the
frequencies of a circle that holds all but 1e-11 of X; each part's transform comes from a few nodes with
bounded error (nodes.py), and beyond the first few frequencies the product is proved to be dead:
ln|phi| <= -w^2 m2/2 + w^4 (m4/24 + m2^2/8), or the law has a uniform share p on an interval of length d and
|phi| <= 1 - p (1 - |sin(wd/2)/(wd/2)|).
"""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees.losses.aim import OUTSIDE, Aim, aimed
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
_BLOCK = 32
"""Rows whose tables of powers fit into a cache."""
_SAMPLE = 128
_ROUGH_NODES = 160
_GONE = 40.0
_MOST_FREQUENCIES = 4096
_BUDGET = 1e9
"""Turns of single nodes that may be computed before the grid of losses is the cheaper way."""


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
        self.factor = 1.0
        self._rough: LogMoments | None = None
        self._sample: Crowd | None = None
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

    def _sampled(self) -> Crowd:
        """An even sample, of which each part stands for `factor` of them."""
        chosen = self.members[:: max(1, len(self.members) // _SAMPLE)]
        sample = Crowd(chosen, self.exact)
        sample.normal, sample.factor = self.normal, len(self.members) / max(1, len(chosen))
        return sample

    def rough(self) -> LogMoments | None:
        """Log-moments of an even sample: only says where to look."""
        self._sample = self._sampled()
        rows: list[tuple[FloatArray, FloatArray, float]] = []
        for chunk in self._sample.chunks:
            nodes = None
            for high in (4.0, 10.0, 40.0):
                finer = nodes_of(chunk, Reach(low=-1.0, high=high, frequency=1.0))
                if finer is None or (nodes is not None and finer.losses.shape[1] > _ROUGH_NODES):
                    break
                nodes = finer
            if nodes is None:
                return None
            masses = np.maximum(nodes.masses, 1e-300)
            rows += [
                (loss, mass, n * self._sample.factor)
                for loss, mass, n in zip(nodes.losses, masses, nodes.counts, strict=True)
            ]
        if self.normal > 0:
            x, mu = np.linspace(-12, 12, 97), math.sqrt(self.normal)
            rows.append((mu * mu / 2 + mu * x, np.exp(-x * x / 2) / (4 * math.sqrt(2 * math.pi)), 1.0))
        self._rough = LogMoments(rows)
        return self._rough

    def _last_alive(self, spread: float, aim: Aim, epsilon: float, delta: float) -> float:
        """The last frequency that the sample leaves alive."""
        guess = 20 / aim.sigma
        if self._sample is None or not self._sample.members:
            return guess
        if not self._sample._prepare(aim, guess):
            return guess
        tilted = _Tilted(self._sample, spread, aim)
        window = tilted.window(epsilon, delta)
        alive = None if window is None else tilted._dead(2 * math.pi / (window[1] - window[0]))[0]
        return (
            guess if window is None or alive is None else alive * 2 * math.pi / (window[1] - window[0]) * 1.18
        )

    def _prepare(self, aim: Aim, frequency: float) -> bool:
        reach = Reach(low=aim.tilt - aim.down * 1.01, high=aim.tilt + aim.up * 1.01, frequency=frequency)
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

    def solve(self, spread: float, tilt: float, epsilon: float, delta: float) -> Smoothed | None:
        """The curve around epsilon, smoothed by `spread`; None where it cannot be certified this way."""
        assert self._rough is not None
        aim = aimed(self._rough, spread, tilt, epsilon)
        last = self._last_alive(spread, aim, epsilon, delta)
        found: float | tuple[Circle, tuple[float, float]] | None = last
        for _ in range(3):
            if not isinstance(found, float):
                break
            if not self._prepare(aim, found):
                return None
            try:
                found = _Tilted(self, spread, aim).circle(epsilon, delta)
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

    def __init__(self, crowd: Crowd, spread: float, aim: Aim) -> None:
        tilt, sigma = aim.tilt, aim.sigma
        self.crowd, self.tilt, self.sigma, self.spread = crowd, tilt, sigma, spread
        self.smooth = crowd.normal + spread**2
        c, v = tilt, self.smooth
        self.log_scale, self.scale_error = c * (c + 1) * v / 2, 8 * UNIT * abs(c) * (abs(c) + 1) * v
        self.shifts = [aim.up, -aim.down]
        self.rises = np.array([t * v * (c + 0.5) + t * t * v / 2 for t in self.shifts])
        self.mean, self.mean_error = v * (c + 0.5), 8 * UNIT * v * (abs(c) + 1)
        self.kept = [0.0, 0.0]
        self.budget = _BUDGET
        self.moments: list[FloatArray] = []
        self.weights: list[FloatArray] = []
        self.centres: list[FloatArray] = []
        self.rest: list[FloatArray] = []
        self.means: list[FloatArray] = []
        self.rounding: list[FloatArray] = []
        self.scales: list[FloatArray] = []
        for nodes in crowd._nodes:
            self._add(nodes)

    def _add(self, nodes: Nodes) -> None:
        log_a, weights, blur = nodes.tilted(self.tilt)
        n = nodes.counts * self.crowd.factor
        rest = 2 * nodes.error * np.exp(np.minimum(np.maximum(0.0, -log_a), 600.0))
        relative = nodes.relative + rest
        means = np.sum(weights * nodes.losses, axis=1)
        centred = nodes.losses - means[:, None]
        moments = _moments(weights, centred, nodes.soft)
        for k, shift in enumerate(self.shifts):
            grown = shift * means + _log_mean(weights, shift * centred)
            self.rises[k] += float(n @ (grown + 4 * relative))
        self.log_scale += float(n @ log_a)
        self.scale_error += float(n @ (2 * relative + 8 * UNIT * np.abs(log_a)))
        self.mean += float(n @ means)
        self.mean_error += 16 * UNIT * float(n @ np.abs(means))
        self.kept[0] += float(n @ log_one_minus(nodes.infinite[:, 1]))
        self.kept[1] += float(n @ log_one_minus(nodes.infinite[:, 0]))
        self.moments.append(moments)
        # Far nodes serve the shifts; under this tilt most of them weigh nothing.
        heavy = np.flatnonzero(np.max(weights, axis=0) > 1e-16)
        kept = slice(int(heavy[0]), int(heavy[-1]) + 1)
        rest = rest + 1e-16 * (weights.shape[1] - (kept.stop - kept.start))
        self.weights.append(weights[:, kept])
        self.centres.append(centred[:, kept])
        self.rest.append(rest)
        self.means.append(means)
        self.rounding.append(blur + np.stack([rest, np.zeros_like(rest)]))
        self.scales.append(log_a)

    def window(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """Around epsilon, and all but 1e-11 of the tilted law on either side."""
        pairs = list(zip(self.shifts, self.rises, strict=True))
        high = min((rise + OUTSIDE) / shift for shift, rise in pairs if shift > 0)
        low = max((rise + OUTSIDE) / shift for shift, rise in pairs if shift < 0)
        far = (math.sqrt(2 * (math.log(1e9) - math.log(max(delta, 1e-305)))) + 3) * self.spread
        top, bottom = max(high, epsilon + 9 * self.spread), min(low, epsilon - far)
        return (bottom, top) if math.isfinite(top) and math.isfinite(bottom) else None

    def circle(self, epsilon: float, delta: float) -> tuple[Circle, tuple[float, float]] | float | None:
        """The composed law around epsilon, with the logarithms of the finite masses; a frequency if one
        beyond the reach of the nodes is alive."""
        if (window := self.window(epsilon, delta)) is None:
            return None
        bottom, top = window
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
        reach = self.crowd._reach
        disc = min(0.5 * reach.frequency, reach.high - self.tilt, self.tilt - reach.low)
        gains = self._gains(index, nodes, w)
        best = np.zeros((len(nodes.counts), len(w) - 1))
        if gains is not None:
            best = -np.sum(gains, axis=1)
        for k, moments in enumerate(self.moments[index]):
            rest = self.rest[index] * (nodes.softer if k else 1.0)
            rest = rest * np.exp(np.minimum(disc * np.abs(self.means[index]), 50.0))
            falls = _moment_falls(moments, rest, disc, w)
            if k == 0:
                best = np.minimum(best, -falls)
            else:
                kept = np.clip(moments[:, 0] - rest - 1e-9, 0.0, 1.0)[:, None]
                falls = -kept * np.expm1(-falls) * (1 - 1e-9)
                if gains is not None and nodes.left is not None:
                    falls = falls + np.einsum("rcw,c->rw", gains, nodes.left[:, k - 1])
                best = np.minimum(best, np.log1p(-np.minimum(falls, 1 - 1e-16)))
        if nodes.integers is not None:
            best = np.minimum(best, _integer_bound(*nodes.integers, w))
        return np.asarray(nodes.counts @ best) * self.crowd.factor

    def _gains(self, index: int, nodes: Nodes, w: FloatArray) -> FloatArray | None:
        """Of each cell the part of 1 - |phi| that its uniform share contributes (rows, cells, intervals)."""
        if nodes.edges is None or nodes.floors is None:
            return None
        ends = self.tilt * nodes.edges
        floors = nodes.floors * np.exp(np.minimum(ends[:, :-1], ends[:, 1:]) - self.scales[index][:, None])
        length = np.abs(np.diff(nodes.edges, axis=1))
        share = floors * length * (1 - 1e-6)
        heavy = np.max(share, axis=0) > 1e-4
        gains = np.zeros((*share.shape, len(w) - 1))
        turns = (length[:, heavy] / 2)[:, :, None] * w[:-1]
        gains[:, heavy] = share[:, heavy, None] * np.minimum(turns**2 / 9, 0.75)
        return gains

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
        bound = np.exp(np.minimum(log_bound, 0.0))
        product = np.where(kept, np.exp(logs + 1j * angles), 0.0)
        rounding = (UNIT * (32 + 8 * size) + w * self.mean_error) * np.abs(product)
        errors = np.minimum(bound * spread, 2 * bound) * (1 + 1e-6) + rounding
        return product, np.where(kept, errors, bound * (1 + 1e-6))

    def _variance(self, index: int) -> float:
        return float(self.crowd._nodes[index].counts @ self.moments[index][0, :, 1])

    def _hats(self, index: int, count: int, gap: float) -> tuple[NDArray[np.complex128], FloatArray]:
        """Transforms of the rows of a chunk at 0, gap, ..., and their errors."""
        weights, centres = self.weights[index], self.centres[index]
        rows, nodes = weights.shape
        self.budget -= rows * nodes * count
        if self.budget < 0:
            raise _TooWide
        blocks = [slice(i, i + _BLOCK) for i in range(0, rows, _BLOCK)]
        hats = np.concatenate([_transforms(weights[b], centres[b], count, gap) for b in blocks])
        k = np.arange(count, dtype=np.float64)
        fixed, turning = self.rounding[index]
        return hats, 2 * fixed[:, None] + np.outer(2 * turning, gap * k) + UNIT * (16 + nodes + 8 * k)


def _transforms(weights: FloatArray, losses: FloatArray, count: int, gap: float) -> NDArray[np.complex128]:
    """sum_j weight_j e^(i k gap loss_j) of each row for k < count.

    e^(i(a + Ab)x) is a product of two powers of e^(ix): two short tables and one matrix product a row. Each
    multiplication adds at most three units to the error of a power, the error of e^(ix) is multiplied by it.
    """
    rows, nodes = weights.shape
    short = max(1, math.ceil(math.sqrt(count)))
    long = -(-count // short)
    turn = np.exp(1j * gap * losses)
    baby = np.empty((rows, short, nodes), dtype=np.complex128)
    baby[:, 0] = weights
    for a in range(1, short):
        np.multiply(baby[:, a - 1], turn, out=baby[:, a])
    giant = np.empty((rows, long, nodes), dtype=np.complex128)
    giant[:, 0] = 1.0
    leap = np.exp(1j * (gap * short) * losses)
    for b in range(1, long):
        np.multiply(giant[:, b - 1], leap, out=giant[:, b])
    product = np.matmul(giant, baby.transpose(0, 2, 1))
    return product.reshape(rows, short * long)[:, :count]


def _moments(weights: FloatArray, centred: FloatArray, soft: FloatArray | None) -> FloatArray:
    """Of the whole law and of softened parts of it, each row: mass, second and fourth moment about the parts'
    own means, and about 0."""
    factors = np.ones((weights.shape[1], 1)) if soft is None else np.insert(soft, 0, 1.0, axis=1)
    raised, sums = weights, [weights @ factors]
    for _ in range(4):
        raised = raised * centred
        sums.append(raised @ factors)
    m1, m2, m3, m4 = (total / np.maximum(sums[0], 1e-300) for total in sums[1:])
    second = m2 - m1 * m1
    fourth = m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1**4
    return np.stack([sums[0], second, fourth, m2, m4]).transpose(2, 1, 0)


def _moment_falls(moments: FloatArray, rest: FloatArray, disc: float, w: FloatArray) -> FloatArray:
    """E >= 0 with |psi| <= e^-E on each [w_k, w_k+1], psi the transform of a part that is normed to mass 1:
    E = w^2 m2/2 - w^4 (m4/24 + m2^2/8).

    The transform is right to `rest` within `disc`, hence by Cauchy its k-th derivative to k! rest/disc^k. With
    every raw moment at most r^k, m4 = r^4, and 1/disc <= R, r <= R, that moves the second central moment by at
    most 200 R^2 rest/p and the fourth by 2000 R^4 rest/p.
    """
    mass, second, fourth, m2, m4 = (column[:, None] for column in moments.T)
    share = rest[:, None] / np.maximum(mass, 1e-300)
    off2 = 1e-9 * m2 + 200 * share * np.maximum(m2, disc**-2)
    off4 = 1e-9 * m4 + 2000 * share * np.maximum(m4, disc**-4)
    low, high = np.maximum(second * (1 - 1e-6) - off2, 0.0), second * (1 + 1e-6) + off2
    top = fourth * (1 + 1e-6) + off4
    return np.asarray(np.maximum(low * w[:-1] ** 2 / 2 - (top / 24 + high**2 / 8) * w[1:] ** 4, 0.0))


def _log_mean(weights: FloatArray, exponents: FloatArray) -> FloatArray:
    """ln sum_j weight_j e^(exponent_j) of each row."""
    if float(np.max(np.abs(exponents))) < 600:
        return np.asarray(np.log(np.sum(weights * np.exp(exponents), axis=1)))
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + exponents
    peaks = np.max(logs, axis=1)
    return np.asarray(np.log(np.sum(np.exp(logs - peaks[:, None]), axis=1)) + peaks)


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
