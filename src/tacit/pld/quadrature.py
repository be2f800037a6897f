"""Laws of many pairs as a few weighted losses each, from the rules of rules.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.pld.continuous import ExponentialPair, GaussianPair, LaplacePair
from tacit.pld.derived import WithoutReplacementPair
from tacit.pld.discrete import (
    ApproximatePair,
    DiscreteLaplacePair,
    RandomizedResponsePair,
    StaircasePair,
)
from tacit.pld.discrete_gaussian import DiscreteGaussianPair
from tacit.pld.distributions import UNIT
from tacit.pld.pair import FloatArray, Pair, SwappedPair
from tacit.pld.quadrature_rules import STRIP, QuadratureRange, rule_of
from tacit.pld.replacement import SampledReplacementPair
from tacit.pld.sampled import PoissonSampledPair
from tacit.pld.tabulated import FinitePair
from tacit.pld.variation import log_variation

__all__ = ["Quadrature", "QuadratureRange", "quadrature_of", "shape"]

_SOFT = (0.8, 1.3, 2.0)
_LEAST = 1e-300
"""Masses below this lose digits, or vanish, in floats."""
_FURTHEST = 600.0
"""Losses beyond this leave the range of e^l in floats."""
_RULED = (
    ApproximatePair,
    ExponentialPair,
    GaussianPair,
    LaplacePair,
    SampledReplacementPair,
    StaircasePair,
)
"""Pairs that have a rule whatever their parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quadrature:
    """Rows of losses with P-masses, E_P e^(zL) = sum_j mass_j e^(z loss_j) to `error`, absolutely, over the
    stated reach; and cells of a coordinate x of which the loss is a monotone function, for its density."""

    losses: FloatArray
    masses: FloatArray
    counts: FloatArray
    infinite: FloatArray
    error: FloatArray
    sizes: FloatArray
    """Rounding: mass e^(zL) of a node is right to UNIT (32 + 8 |ln mass| + 8 (1 + |z|) size), relatively."""
    relative: float = 0.0
    """The largest of these relative errors within the reach."""
    edges: FloatArray | None = None
    """Losses at the edges of cells (rows, cells + 1)."""
    floors: FloatArray | None = None
    """Of each cell, the least P-density of x over the greatest slope of the loss (rows, cells), at tilt 0."""
    soft: FloatArray | None = None
    """Normal noise x: factors e^(-x^2/2T^2) <= 1 that leave out its tails (nodes, kinds), of entire functions."""
    left: FloatArray | None = None
    """The least 1 - e^(-x^2/2T^2) in each cell (cells, kinds)."""
    softer: float = 1.0
    """How many times `error` is that of sums with these factors."""
    variation: Callable[[float], tuple[FloatArray, FloatArray]] | None = None
    """At a tilt c, of each row: ln V, V the total variation of the density of e^(cL), and the mass of its atoms."""
    integers: tuple[FloatArray, float] | None = None
    """Discrete Gaussian noise: noise_std >= 1 of each row, and the sensitivity."""

    def tilted(self, tilt: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(ln A, weights, blur): A = sum_j mass_j e^(tilt loss_j), weights the shares in it.

        With blur_0 and blur_1 of a row, its transform at tilt + iw is right to blur_0 + w blur_1, relatively.
        """
        masses = np.log(np.maximum(self.masses, 1e-300))
        logs = np.where(self.masses > 0, masses + tilt * self.losses, -1e300)
        peaks = np.max(logs, axis=1, keepdims=True)
        weights = np.exp(logs - peaks)
        sums = np.sum(weights, axis=1, keepdims=True)
        # Numbers below the normal range are slow, and these weigh less than their rounding.
        weights[weights < 1e-30] = 0.0
        weights /= sums
        sizes = 8 * UNIT * np.sum(weights * self.sizes, axis=1)
        fixed = UNIT * (32 + 8 * np.sum(weights * np.abs(masses), axis=1)) + (1 + abs(tilt)) * sizes
        return (peaks + np.log(sums))[:, 0], weights, np.stack([fixed, sizes])


def shape(pair: Pair) -> tuple[object, ...] | None:
    """Pairs of equal shape are made into nodes together; None where there is no rule."""
    if isinstance(pair, WithoutReplacementPair):
        sampled = pair.single or pair.either
        half = shape(sampled) if sampled is not None and pair.rate <= 0.999 else None
        if half is None or half[0] or half[1] or half[2] == "SampledReplacementPair":
            return None
        return (False, True, *half[2:], "half" if pair.single is not None else "larger half")
    swapped = isinstance(pair, SwappedPair)
    inner = pair.pair if isinstance(pair, SwappedPair) else pair
    rate = isinstance(inner, PoissonSampledPair)
    base = inner.pair if isinstance(inner, PoissonSampledPair) else inner
    if isinstance(inner, PoissonSampledPair | SampledReplacementPair) and inner.rate > 0.999:
        return None
    if rate and isinstance(base, SampledReplacementPair):
        return None  # a mixture of a ratio of mixtures turns by twice the angle, and may vanish in the strip
    size = 0
    if isinstance(base, FinitePair | RandomizedResponsePair | DiscreteLaplacePair):
        size = base.atom_count
        if size > 64 or (isinstance(base, DiscreteLaplacePair) and base.rate * base.sensitivity > 100):
            return None
        if isinstance(base, FinitePair) and base.least < _LEAST:
            return None
    elif isinstance(base, DiscreteGaussianPair):
        # Far-spread integer noise sums like its integral; otherwise its integers are the nodes.
        size = base.sensitivity
        if base.noise_std < 0.3 or (base.noise_std < 3 * base.sensitivity and base.sensitivity > 8):
            return None
    elif not isinstance(base, _RULED):
        return None
    epsilon = getattr(base, "epsilon", 0.0)
    return None if epsilon > 100 else (swapped, rate, type(base).__name__, size)


def quadrature_of(members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
    """Quadrature of pairs of one shape; None where the rule would need too many."""
    if isinstance(members[0][0], WithoutReplacementPair):
        from tacit.pld.half_quadrature import half_quadrature

        return half_quadrature(members, reach)
    pairs = [pair for pair, _ in members]
    counts = np.array([float(n) for _, n in members])
    swapped = isinstance(pairs[0], SwappedPair)
    inner = [p.pair if isinstance(p, SwappedPair) else p for p in pairs]
    rates = np.array([p.rate if isinstance(p, PoissonSampledPair) else 1.0 for p in inner])[:, None]
    base = [p.pair if isinstance(p, PoissonSampledPair) else p for p in inner]
    sampled = isinstance(inner[0], PoissonSampledPair)
    rule = rule_of(base, rates, replace(reach, swapped=swapped))
    if rule is None:
        return None
    ratio, q, error, infinite, x, density = rule
    if float(np.max(np.abs(ratio))) > _FURTHEST or (x is not None and float(np.max(np.abs(x))) > _FURTHEST):
        return None
    losses, sizes = ratio, np.abs(ratio) + _cancelled(base, ratio)
    if not sampled:
        p = q * np.exp(ratio)
    else:
        moved = rates * np.expm1(ratio)
        grown = 1 + moved
        losses, p = np.log1p(moved), q * grown
        # d loss = slope d ratio, slope = 1 - (1 - rate)/grown; log1p adds units of 1 - 1/grown.
        slopes = np.maximum(1 - (1 - rates) / grown, 0.0) + 1e-15
        sizes = slopes * sizes + np.abs(moved) / grown
        # Q-mass that P cannot reach now has the loss ln(1 - rate); it is listed as a node of its own.
        lost = infinite[1]
        if np.any(lost > 0):
            losses = np.concatenate([losses, np.log1p(-rates)], axis=1)
            sizes = np.concatenate([sizes, rates / (1 - rates)], axis=1)
            p, q = np.concatenate([p, (1 - rates) * lost], axis=1), np.concatenate([q, lost], axis=1)
        infinite = (infinite[0] * rates, np.zeros_like(lost))
    sizes = sizes + np.abs(losses)
    if swapped:
        losses, p, infinite = -losses, q, (infinite[1], infinite[0])
    edges = floors = None
    if x is not None and density is not None:
        edges = np.log1p(rates * np.expm1(x))
        # dP/dx >= density min(g); the slope q e^x/g of the loss in x rises with x.
        g = np.exp(edges)
        slope = rates * np.exp(x[:, 1:]) / g[:, 1:]
        floors = density * (np.ones_like(slope) if swapped else g[:, :-1]) / slope
        edges = -edges if swapped else edges
    # Near rate 1, 1 + rate (e^x - 1) cancels down to 1 - rate.
    furthest = float(np.max(np.abs(ratio), initial=1.0)) + (
        1 / (1 - float(np.max(rates))) if sampled else 0.0
    )
    return Quadrature(
        losses=losses,
        masses=np.maximum(p, 0.0),
        counts=counts,
        infinite=np.concatenate([infinite[0] * (1 - 1e-12), infinite[0] * (1 + 1e-12)], axis=1),
        error=error,
        sizes=sizes,
        relative=UNIT * (128 + 32 * (reach.power + reach.frequency) * (1 + furthest)),
        edges=edges,
        floors=floors,
        soft=_softened(base, ratio),
        left=_left(base, x),
        softer=_growth(base),
        variation=_variation(base, rates, swapped) if sampled else None,
        integers=_lattice(base) if not sampled else None,
    )


def _cancelled(base: Sequence[Pair], ratio: FloatArray) -> FloatArray | float:
    """What the terms of ln Z may exceed its size by: mu|x| + mu^2/2 <= |mu x - mu^2/2| + mu^2."""
    if isinstance(base[0], GaussianPair):
        return np.array([[float(p.squared)] for p in base if isinstance(p, GaussianPair)]) * (1 + 1e-9)
    if isinstance(base[0], DiscreteGaussianPair):
        rows = [float(p.sensitivity / p.noise_std) for p in base if isinstance(p, DiscreteGaussianPair)]
        return np.array(rows)[:, None] ** 2
    if isinstance(base[0], SampledReplacementPair):
        # Two mixtures against each other: no node is worse than the furthest.
        largest = max(p.mu for p in base if isinstance(p, SampledReplacementPair))
        return float(np.max(np.abs(ratio))) + 2 * largest**2
    # The ratio of two masses of a table is right to a unit, however near to 1.
    return 1.0 if isinstance(base[0], FinitePair) else 0.0


def _softened(base: Sequence[Pair], ratio: FloatArray) -> FloatArray | None:
    """e^(-x^2/2T^2) where ln Z = mu x - mu^2/2; in a strip of half-width a at most e^(a^2/2T^2)."""
    if not isinstance(base[0], GaussianPair):
        return None
    mu = base[0].near
    x = ratio[0] / mu + mu / 2
    return np.stack([np.exp(-x * x / (2 * t * t)) for t in _SOFT], axis=1)


def _left(base: Sequence[Pair], edges: FloatArray | None) -> FloatArray | None:
    if edges is None or (soft := _softened(base, edges)) is None:
        return None
    # The factor peaks at x = 0, which is an edge.
    return np.asarray(1 - np.maximum(soft[:-1], soft[1:])) * (1 - 1e-9)


def _growth(base: Sequence[Pair]) -> float:
    widest = max((p.near for p in base if isinstance(p, GaussianPair)), default=math.inf)
    return math.exp(min(math.pi / (2 * widest), STRIP) ** 2 / 2 / _SOFT[0] ** 2)


def _variation(
    base: Sequence[Pair], rates: FloatArray, swapped: bool
) -> Callable[[float], tuple[FloatArray, FloatArray]] | None:
    if not isinstance(base[0], GaussianPair):
        return None
    mu = np.array([[p.near] for p in base if isinstance(p, GaussianPair)])

    def at(tilt: float) -> tuple[FloatArray, FloatArray]:
        return log_variation(mu, rates, 1 - tilt if swapped else tilt + 2), np.zeros(len(mu))

    return at


def _lattice(base: Sequence[Pair]) -> tuple[FloatArray, float] | None:
    members = [p for p in base if isinstance(p, DiscreteGaussianPair)]
    if len(members) < len(base) or min(p.noise_std for p in members) < 1:
        return None
    return np.array([float(p.noise_std) for p in members]), float(members[0].sensitivity)
