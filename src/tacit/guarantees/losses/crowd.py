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
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees.losses.circle import Circle, Smoothed
from tacit.guarantees.losses.continuous import GaussianPair
from tacit.guarantees.losses.dead import GONE, Witness, alive, chunk_bound
from tacit.guarantees.losses.laws import UNIT
from tacit.guarantees.losses.moments import LogMoments, log_one_minus
from tacit.guarantees.losses.nodes import Nodes, Reach, nodes_of, shape
from tacit.guarantees.losses.pair import FloatArray, Pair

__all__ = ["Crowd"]

_SMOOTH = {"ExponentialPair", "LaplacePair", "GaussianPair", "SampledReplacementPair"}
_LEAST = 256
_ROWS = 256
_SAMPLE = 256
_WITNESSES, _WITNESS_ATOMS = 512, 16384
_BUDGET = 1e9
"""Turns of single nodes that may be computed before the grid of losses is the cheaper way."""
_FACTORS = (0.5, 1.0, 2.0, 4.0, 6.0, 9.0)


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
        self.atomic = [
            (key := shape(chunk[0][0])) is not None and key[2] not in _SMOOTH for chunk in self.chunks
        ]
        self._nodes: list[Nodes] = []
        self._reach = Reach(low=0.0, high=0.0, frequency=0.0)

    @staticmethod
    def of(parts: list[tuple[Pair, int]], exact: bool) -> Crowd | None:
        """A crowd, where there are many parts and all of kinds that have nodes."""
        if len(parts) < _LEAST:
            return None
        known = (isinstance(pair, GaussianPair) or shape(pair) is not None for pair, _ in parts)
        return Crowd(parts, exact) if all(known) else None

    def witnesses(self, frequency: float) -> list[Nodes]:
        """Some of the parts that have atoms, with those listed."""
        chunks = [chunk for chunk, atomic in zip(self.chunks, self.atomic, strict=True) if atomic]
        reach = replace(self._reach, frequency=max(frequency, self._reach.frequency), listed=True)
        found, due = [], 1.0
        for chunk in chunks:
            one = nodes_of(chunk[:1], reach)
            if one is not None:
                due += min(_WITNESSES, _WITNESS_ATOMS / one.losses.size) / len(chunks)
                nodes = nodes_of(chunk[:: max(1, len(chunk) // int(due))], reach) if due >= 1 else None
                due -= int(due)
                found += [] if nodes is None else [nodes]
        return found

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
        for k, shift in enumerate(self.shifts):
            exponents = logs + shift * centred
            peak = np.max(exponents, axis=1)
            grown = np.log(np.sum(np.exp(exponents - peak[:, None]), axis=1)) + peak
            self.rises[k] += float(n @ (grown + shift * means + 4 * relative))
        self.log_scale += float(n @ log_a)
        self.scale_error += float(n @ (2 * relative + 8 * UNIT * np.abs(log_a)))
        self.mean += float(n @ means)
        self.mean_error += 16 * UNIT * float(n @ np.abs(means))
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
        if len(alive) * gap > self.crowd._reach.frequency:
            return float(len(alive) * gap * 1.02)
        product, errors = self._product(np.arange(len(alive), dtype=np.float64) * gap, alive)
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

    def _dead(self, gap: float) -> tuple[NDArray[np.bool_] | None, float]:
        """(Which multiples of the gap are alive, bound on the sum of |phi| over all others, both signs)."""
        last = math.sqrt(2 * (GONE + 4)) / self.spread
        disc = 0.5 * self.crowd._reach.frequency

        def coarse(w: FloatArray) -> tuple[FloatArray, FloatArray]:
            whole, others = np.zeros(len(w) - 1), np.zeros(len(w) - 1)
            for i, nodes in enumerate(self.crowd._nodes):
                bound = chunk_bound(
                    nodes, self.tilt, self.scales[i], self.moments[i], self.relative[i], disc, w
                )
                whole, others = whole + bound, others + (0.0 if self.crowd.atomic[i] else bound)
            return whole, others

        witnesses = [Witness(nodes, self.tilt) for nodes in self.crowd.witnesses(last)]
        kept, dropped = alive(
            start=4 / self.sigma,
            last=last,
            gap=gap,
            variance=self.smooth,
            coarse=coarse,
            witnesses=witnesses,
        )
        beyond = 2 * math.exp(-GONE) * (1 + 1 / (self.spread * math.sqrt(2 * GONE) * gap))
        return kept, dropped + beyond

    def _product(self, w: FloatArray, alive: NDArray[np.bool_]) -> tuple[NDArray[np.complex128], FloatArray]:
        """The transform of the centred sum at the multiples w of a gap, and its error."""
        count = len(w)
        logs, angles = -self.smooth * w * w / 2, np.zeros(count)
        log_bound = -self.smooth * w * w / 2
        spread = np.zeros(count)
        size = np.zeros(count)
        kept = alive.copy()
        order = sorted(range(len(self.moments)), key=lambda i: -self._variance(i))
        for index in order:
            # Other factors are at most 1 in modulus: what has died stays dead.
            kept &= log_bound > -GONE
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
        # What was dead before is counted elsewhere.
        return product, np.where(kept, errors, np.where(alive, bound * (1 + 1e-6), 0.0))

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
        rounding = UNIT * (16 + nodes + 8 * np.arange(count, dtype=np.float64))
        return hats, 2 * self.relative[index][:, None] + rounding
