"""Laws of many pairs as a few weighted losses each, from the rules of rules.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.guarantees.losses.continuous import ExponentialPair, GaussianPair, LaplacePair
from tacit.guarantees.losses.discrete import (
    ApproximatePair,
    DiscreteLaplacePair,
    FinitePair,
    RandomizedResponsePair,
    StaircasePair,
)
from tacit.guarantees.losses.discrete_gaussian import DiscreteGaussianPair
from tacit.guarantees.losses.laws import UNIT
from tacit.guarantees.losses.pair import FloatArray, Pair, SwappedPair
from tacit.guarantees.losses.replacement import SampledReplacementPair
from tacit.guarantees.losses.rules import Reach, rule_of
from tacit.guarantees.losses.sampled import PoissonSampledPair

__all__ = ["Nodes", "Reach", "nodes_of", "shape"]

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
class Nodes:
    """Rows of losses with P-masses, E_P e^(zL) = sum_j mass_j e^(z loss_j) to `error`, absolutely, over the
    stated reach; and cells of a coordinate x of which the loss is a monotone function, for its density."""

    losses: FloatArray
    masses: FloatArray
    counts: FloatArray
    infinite: FloatArray
    error: FloatArray
    relative: float = 0.0
    """Relative error of the masses, and of e^(zL), within the reach."""
    edges: FloatArray | None = None
    """Losses at the edges of cells (rows, cells + 1)."""
    floors: FloatArray | None = None
    """Of each cell, the least P-density of x over the greatest slope of the loss (rows, cells), at tilt 0."""
    integers: tuple[FloatArray, float] | None = None
    """Discrete Gaussian noise: noise_std >= 1 of each row, and the sensitivity."""

    def tilted(self, tilt: float) -> tuple[FloatArray, FloatArray]:
        """(ln A, weights): A = sum_j mass_j e^(tilt loss_j), weights the shares in it."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + tilt * self.losses
        peaks = np.max(logs, axis=1, keepdims=True)
        weights = np.exp(logs - peaks)
        sums = np.sum(weights, axis=1, keepdims=True)
        return (peaks + np.log(sums))[:, 0], weights / sums


def shape(pair: Pair) -> tuple[object, ...] | None:
    """Pairs of equal shape are made into nodes together; None where there is no rule."""
    swapped = isinstance(pair, SwappedPair)
    inner = pair.pair if isinstance(pair, SwappedPair) else pair
    rate = isinstance(inner, PoissonSampledPair)
    base = inner.pair if isinstance(inner, PoissonSampledPair) else inner
    if isinstance(inner, PoissonSampledPair | SampledReplacementPair) and inner.rate > 0.999:
        return None
    size = 0
    if isinstance(base, FinitePair | RandomizedResponsePair | DiscreteLaplacePair):
        size = base.atom_count
        if size > 64 or (isinstance(base, DiscreteLaplacePair) and base.rate * base.sensitivity > 100):
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


def nodes_of(members: Sequence[tuple[Pair, int]], reach: Reach) -> Nodes | None:
    """Nodes of pairs of one shape; None where the rule would need too many."""
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
    losses, p = ratio, q * np.exp(ratio)
    if sampled:
        losses = np.log1p(rates * np.expm1(ratio))
        p = (1 - rates) * q + rates * p
        # Q-mass that P cannot reach now has the loss ln(1 - rate); it is listed as a node of its own.
        losses = np.concatenate([losses, np.log1p(-rates)], axis=1)
        lost = infinite[1]
        p, q = np.concatenate([p, (1 - rates) * lost], axis=1), np.concatenate([q, lost], axis=1)
        infinite = (infinite[0] * rates, np.zeros_like(lost))
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
    furthest = float(np.max(np.abs(ratio), initial=1.0))
    return Nodes(
        losses=losses,
        masses=np.maximum(p, 0.0),
        counts=counts,
        infinite=np.concatenate([infinite[0] * (1 - 1e-12), infinite[0] * (1 + 1e-12)], axis=1),
        error=error,
        relative=UNIT * (128 + 16 * (reach.power + reach.frequency) * (1 + furthest)),
        edges=edges,
        floors=floors,
        integers=_lattice(base) if not sampled else None,
    )


def _lattice(base: Sequence[Pair]) -> tuple[FloatArray, float] | None:
    members = [p for p in base if isinstance(p, DiscreteGaussianPair)]
    if len(members) < len(base) or min(p.noise_std for p in members) < 1:
        return None
    return np.array([p.noise_std for p in members]), float(members[0].sensitivity)
