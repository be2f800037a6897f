"""Very many parts under one tilt: scale, window, the frequencies that are not negligible, and the transform there.

Each number carries the error of the nodes (quadrature) and of the floats (rounding), as
`docs/theory/characteristic-function-composition.md` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Floats
from tacit.pld.cutoff import GONE, SMOOTHED, Witness, alive, moments_of, part_bound
from tacit.pld.inversion import FourierInversion
from tacit.pld.moments import log_one_minus
from tacit.pld.quadrature import Quadrature
from tacit.pld.quadrature_rules import QuadratureRange
from tacit.pld.saddle import OUTSIDE, SaddlePoint

__all__ = ["Part", "Tilted", "TooWide"]

_FEW = 16.0
"""Frequencies up to so many times the inverse deviation are few."""
_BLOCK = 32
"""Rows whose tables of powers fit into a cache."""
_BRIDGE = 16
"""Shorter gaps between frequencies that are not negligible are computed along."""
_BUDGET = 1e9
"""Turns of single nodes that may be computed before the grid of losses is the cheaper way."""
_NOTHING = 1e-16
"""Nodes that weigh less than this in every row are left out of the transforms, and counted."""


class TooWide(Exception):
    """The parts are so few or so wide that the grid of losses is cheaper."""


class _Members(Protocol):
    nodes: list[Quadrature]
    atomic: list[bool]
    reach: QuadratureRange
    normal: float

    def witnesses(self, frequency: float) -> list[Quadrature]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """A chunk of rows under the tilt."""

    nodes: Quadrature
    log_a: Floats
    means: Floats
    moments: Floats
    weights: Floats
    centres: Floats
    errors: Floats
    """Rows (a, b): the transform at frequency w is right to a + b w."""
    off: Floats
    """On the disc around the tilt on which moments are compared, the transform is right to this."""


class Tilted:
    """Very many parts under one tilt: moments, windows, frequencies."""

    def __init__(self, composition: _Members, spread: float, saddle: SaddlePoint) -> None:
        self.composition, self.tilt, self.sigma, self.spread = composition, saddle.tilt, saddle.sigma, spread
        self.smooth = composition.normal + spread**2
        c, v = saddle.tilt, self.smooth
        self.log_scale, self.scale_error = c * (c + 1) * v / 2, 8 * UNIT * abs(c) * (abs(c) + 1) * v
        self.shifts = [saddle.up, -saddle.down]
        self.disc = min(saddle.up, saddle.down, 0.5 * composition.reach.frequency)
        self.rises = np.array([t * v * (c + 0.5) + t * t * v / 2 for t in self.shifts])
        self.mean, self.mean_error = v * (c + 0.5), 8 * UNIT * v * (abs(c) + 1)
        self.kept = [0.0, 0.0]
        self.budget = _BUDGET
        # Worst-case rounding of sums over the rows of a chunk, and over chunks.
        rows = max((len(nodes.counts) for nodes in composition.nodes), default=1)
        self.unit = UNIT * (2 * rows + 2 * len(composition.nodes))
        self.parts = [self._part(nodes) for nodes in composition.nodes]

    def _part(self, nodes: Quadrature) -> Part:
        log_a, weights, blur = nodes.tilted(self.tilt)
        n = nodes.counts
        # The rule's error is that share of the transform at frequency 0, or of 1 where that is less.
        rule = 2 * nodes.error * np.exp(np.minimum(np.maximum(0.0, -log_a), 600.0))
        means = np.sum(weights * nodes.losses, axis=1)
        centred = nodes.losses - means[:, None]
        swing = np.zeros(len(n))
        for k, shift in enumerate(self.shifts):
            grown = _log_mean(weights, shift * centred)
            rise = grown + shift * means
            there = 2 * nodes.error * np.exp(np.clip(-log_a - rise, 0.0, 600.0))
            self.rises[k] += float(n @ (rise + 2 * (rule + there) + 4 * nodes.relative))
            swing = np.maximum(swing, grown)
        steady = np.exp(np.minimum(self.disc * np.abs(means) - log_a, 600.0))
        off = 2 * nodes.error * (np.exp(np.minimum(swing, 600.0)) + steady)
        self.log_scale += float(n @ log_a)
        self.scale_error += float(n @ (2 * (rule + blur[0]) + self.unit * np.abs(log_a)))
        self.mean += float(n @ means)
        self.mean_error += self.unit * float(n @ np.abs(means))
        self.kept[0] += float(n @ log_one_minus(nodes.infinite[:, 1]))
        self.kept[1] += float(n @ log_one_minus(nodes.infinite[:, 0]))
        # Far nodes serve the shifts; under this tilt most of them weigh nothing.
        heavy = np.flatnonzero(np.max(weights, axis=0) > _NOTHING)
        held = slice(int(heavy[0]), int(heavy[-1]) + 1)
        left = _NOTHING * (weights.shape[1] - (held.stop - held.start))
        return Part(
            nodes=nodes,
            log_a=log_a,
            means=means,
            moments=moments_of(weights, centred, nodes.soft),
            weights=weights[:, held],
            centres=centred[:, held],
            errors=np.stack([2 * (rule + blur[0]) + left, 2 * blur[1]]),
            off=off,
        )

    def window(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """Around epsilon, and all but 1e-11 of the tilted law on either side."""
        high = (self.rises[0] + OUTSIDE) / self.shifts[0]
        low = (self.rises[1] + OUTSIDE) / self.shifts[1]
        far = (math.sqrt(2 * (math.log(1e9) - math.log(max(delta, 1e-305)))) + 3) * self.spread
        top, bottom = max(high, epsilon + 9 * self.spread), min(low, epsilon - far)
        return (bottom, top) if math.isfinite(top) and math.isfinite(bottom) else None

    def inversion(
        self, epsilon: float, delta: float
    ) -> tuple[FourierInversion, tuple[float, float]] | float | None:
        """The composed law around epsilon, with the logarithms of the finite masses; a frequency if one
        beyond the reach of the nodes is alive."""
        if (window := self.window(epsilon, delta)) is None:
            return None
        bottom, top = window
        gap = 2 * math.pi / (top - bottom)
        living, dropped = self.alive(gap)
        if living is None:
            return None
        if len(living) * gap > self.composition.reach.frequency:
            return float(len(living) * gap * 1.02)
        product, errors = self._product(np.arange(len(living), dtype=np.float64) * gap, living)
        inversion = FourierInversion(
            step=self.spread / 4,
            tilt=self.tilt,
            bottom=bottom,
            top=top,
            log_scale=self.log_scale,
            scale_error=self.scale_error,
            mean=self.mean,
            coefficients=product,
            error=2 * float(np.sum(errors)) + dropped,
        )
        return inversion, (self.kept[0], self.kept[1])

    def alive(self, gap: float) -> tuple[NDArray[np.bool_] | None, float]:
        """(Which multiples of the gap are alive, bound on the sum of |phi| over all others, both signs)."""
        last = math.sqrt(2 * SMOOTHED) / self.spread

        def coarse(w: Floats, closely: bool) -> tuple[Floats, Floats]:
            whole, others = np.zeros(len(w) - 1), np.zeros(len(w) - 1)
            for part, atomic in zip(self.parts, self.composition.atomic, strict=True):
                bound = self.bound(part, w, closely)
                whole, others = whole + bound, others + (0.0 if atomic else bound)
            return whole, others

        witnesses = [Witness(nodes, self.tilt) for nodes in self.composition.witnesses(last)]
        # The variation of densities is asked only where their moments leave much alive.
        for closely in (False, True):
            kept, dropped = alive(
                start=4 / self.sigma,
                last=last,
                gap=gap,
                variance=self.smooth,
                coarse=partial(coarse, closely=closely),
                witnesses=witnesses,
            )
            if kept is not None and len(kept) * gap <= _FEW / self.sigma:
                break
        beyond = 2 * math.exp(-SMOOTHED) * (1 + 1 / (self.spread * math.sqrt(2 * SMOOTHED) * gap))
        return kept, dropped + beyond

    def bound(self, part: Part, w: Floats, closely: bool = True) -> Floats:
        """Sum over the rows of a part of n ln|phi| on each [w_k, w_k+1], from above."""
        rows = part_bound(part.nodes, self.tilt, part.log_a, part.moments, part.off, self.disc, w, closely)
        return np.asarray(part.nodes.counts @ rows)

    def _product(self, w: Floats, living: NDArray[np.bool_]) -> tuple[NDArray[np.complex128], Floats]:
        """The transform of the centred sum at the multiples w of a gap, and its error."""
        count, gap = len(w), float(w[1]) if len(w) > 1 else 1.0
        logs, angles = -self.smooth * w * w / 2, np.zeros(count)
        log_bound = -self.smooth * w * w / 2
        spread = np.zeros(count)
        size = np.zeros(count)
        kept = living.copy()
        order: Sequence[Part] = sorted(
            self.parts, key=lambda part: -float(part.nodes.counts @ part.moments[0, :, 1])
        )
        for part in order:
            # Other factors are at most 1 in modulus: what is negligible stays so.
            kept &= log_bound > -GONE
            n = part.nodes.counts
            for run in _runs(kept):
                hats, error = self.hats(part, run.start, run.stop - run.start, gap)
                moduli = np.abs(hats)
                modulus = np.minimum(moduli + error, 1.0 + error)
                # Real and imaginary parts apart: products of matrices of mixed kinds are slow.
                each, turns = np.log(np.maximum(moduli, 1e-300)), np.angle(hats)
                logs[run] += n @ each
                angles[run] += n @ turns
                log_bound[run] += n @ np.log(modulus)
                spread[run] += n @ (error / modulus)
                size[run] += n @ (np.abs(each) + np.abs(turns))
        bound = np.exp(np.minimum(log_bound, 600.0))
        product = np.where(kept, np.exp(logs + 1j * angles), 0.0)
        rounding = (32 * UNIT + self.unit * size + w * self.mean_error) * np.abs(product)
        errors = np.minimum(bound * spread, 2 * bound) * (1 + 1e-6) + rounding
        # What was negligible before is counted elsewhere.
        return product, np.where(kept, errors, np.where(living, bound * (1 + 1e-6), 0.0))

    def hats(self, part: Part, start: int, count: int, gap: float) -> tuple[NDArray[np.complex128], Floats]:
        """Transforms of the rows of a part at `count` multiples of the gap from the start-th, and their errors."""
        rows, nodes = part.weights.shape
        self.budget -= rows * nodes * count
        if self.budget < 0:
            raise TooWide
        blocks = [slice(i, i + _BLOCK) for i in range(0, rows, _BLOCK)]
        turned = part.weights if start == 0 else part.weights * np.exp(1j * (start * gap) * part.centres)
        hats = np.concatenate([_transforms(turned[b], part.centres[b], count, gap) for b in blocks])
        k = start + np.arange(count, dtype=np.float64)
        fixed, turning = part.errors
        return hats, fixed[:, None] + np.outer(turning, gap * k) + UNIT * (16 + 3 * nodes + 8 * k)


def _runs(kept: NDArray[np.bool_]) -> list[slice]:
    """Runs of frequencies that hold all the kept ones, and few others."""
    found = np.flatnonzero(kept)
    ends = np.flatnonzero(np.diff(found) > _BRIDGE)
    starts, stops = found[np.append(0, ends + 1)], found[np.append(ends, len(found) - 1)] + 1
    return [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]


def _transforms(
    weights: NDArray[np.float64] | NDArray[np.complex128], losses: Floats, count: int, gap: float
) -> NDArray[np.complex128]:
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
    return np.asarray(product.reshape(rows, short * long)[:, :count])


def _log_mean(weights: Floats, exponents: Floats) -> Floats:
    """ln sum_j weight_j e^(exponent_j) of each row."""
    if float(np.max(np.abs(exponents))) < 600:
        return np.asarray(np.log(np.sum(weights * np.exp(exponents), axis=1)))
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + exponents
    peaks = np.max(logs, axis=1)
    return np.asarray(np.log(np.sum(np.exp(logs - peaks[:, None]), axis=1)) + peaks)
