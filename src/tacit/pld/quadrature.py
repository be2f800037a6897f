"""Privacy losses of many pairs as a few weighted nodes each, from the rules of quadrature_rules.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.exact.arrays import UNIT, Floats, column
from tacit.pld.pairs.base import Pair
from tacit.pld.quadrature_rules import QuadratureRange, Variation

__all__ = ["Quadrature", "QuadratureRange", "layered", "mixed", "quadrature_of"]

_FURTHEST = 600.0
"""Losses beyond this leave the range of e^l in floats."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quadrature:
    """Rows of losses with P-masses, E_P e^(zL) = sum_j mass_j e^(z loss_j) to `error`, absolutely, over the
    stated reach; and cells of a coordinate x of which the loss is a monotone function, for its density."""

    losses: Floats
    masses: Floats
    counts: Floats
    infinite: Floats
    error: Floats
    sizes: Floats
    """Rounding: mass e^(zL) of a node is right to UNIT (32 + 8 |ln mass| + 8 (1 + |z|) size), relatively."""
    relative: float = 0.0
    """The largest of these relative errors within the reach."""
    edges: Floats | None = None
    """Losses at the edges of cells (rows, cells + 1)."""
    floors: Floats | None = None
    """Of each cell, the least P-density of x over the greatest slope of the loss (rows, cells), at tilt 0."""
    soft: Floats | None = None
    """Normal noise x: factors e^(-x^2/2T^2) <= 1 that leave out its tails (nodes, kinds), of entire functions."""
    left: Floats | None = None
    """The least 1 - e^(-x^2/2T^2) in each cell (cells, kinds)."""
    softer: float = 1.0
    """How many times `error` is that of sums with these factors."""
    variation: Variation | None = None
    """At a tilt c, of each row: ln V, V the total variation of the density of e^(cL), and the mass of its atoms."""
    integers: tuple[Floats, float] | None = None
    """Discrete Gaussian noise: noise_std >= 1 of each row, and the sensitivity."""

    def tilted(self, tilt: float) -> tuple[Floats, Floats, Floats]:
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


def quadrature_of(members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
    """Nodes of pairs of one key; None where the rule would need too many."""
    return type(members[0][0]).quadrature(members, reach)


def layered(members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
    """Nodes of base pairs by their rule, then sampled, then swapped."""
    layers = [pair.layers() for pair, _ in members]
    counts = np.array([float(n) for _, n in members])
    base, swapped = [layer.base for layer in layers], layers[0].swapped
    sampled = layers[0].rate is not None
    rates = column([1.0 if layer.rate is None else layer.rate for layer in layers])
    rule = type(base[0]).rule(base, rates, replace(reach, swapped=swapped))
    if rule is None:
        return None
    ratio, q, infinite, x, density = rule.ratio, rule.q, rule.infinite, rule.edges, rule.density
    if float(np.max(np.abs(ratio))) > _FURTHEST or (x is not None and float(np.max(np.abs(x))) > _FURTHEST):
        return None
    losses, sizes = ratio, np.abs(ratio) + rule.cancelled
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
        error=rule.error,
        sizes=sizes,
        relative=UNIT * (128 + 32 * (reach.power + reach.frequency) * (1 + furthest)),
        edges=edges,
        floors=floors,
        soft=rule.soft,
        left=rule.left,
        softer=rule.softer,
        variation=rule.variation if sampled else None,
        integers=None if sampled else rule.integers,
    )


def mixed(parts: Sequence[Quadrature], weights: Sequence[Sequence[float]]) -> Quadrature:
    """Nodes of pairs that a coin chooses: those of all parts, by the weights of each part's rows.

    Each part's transform is right to its error times the larger of 1 and its value at frequency 0: together to at most
    twice the largest error in the same measure. Between the cells of two parts lies one in which no density is known.
    """
    shares = [column(list(row)) for row in weights]
    both = list(zip(parts, shares, strict=True))
    infinite = sum((share * part.infinite for part, share in both), np.zeros_like(parts[0].infinite))
    cells = [
        (part.edges, part.floors * share)
        for part, share in both
        if part.edges is not None and part.floors is not None
    ]
    edges = floors = None
    if cells:
        gap = np.zeros((len(parts[0].counts), 1))
        edges = np.concatenate([edge for edge, _ in cells], axis=1)
        floors = np.concatenate([x for _, floor in cells for x in (floor, gap)][:-1], axis=1)
    return Quadrature(
        losses=np.concatenate([part.losses for part in parts], axis=1),
        masses=np.concatenate([part.masses * share for part, share in both], axis=1),
        counts=parts[0].counts,
        infinite=infinite * np.array([[1 - 1e-12, 1 + 1e-12]]),
        error=2 * np.max([part.error for part in parts], axis=0) + 8 * UNIT,
        sizes=np.concatenate([part.sizes for part in parts], axis=1),
        relative=max(part.relative for part in parts) + 8 * UNIT,
        edges=edges,
        floors=floors,
    )
