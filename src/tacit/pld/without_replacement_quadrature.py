"""Quadrature of many pairs that are sampled without replacement, from one half of the pair that is sampled.

With Z the likelihood ratio of a symmetric pair under Q and g(Z) = 1 - q + q Z: the losses above 0 are ln g(Z) for
Z > 1, with the Q-masses of Z and the P-masses g times those; the losses below 0 are their mirror image; the rest
sits at 0 (`docs/theory/without-replacement-pair.md`). Transforms are therefore Q-integrals of g^(z+1) and g^-z over
Z > 1: by Gauss's rule on panels, whose error is bounded on ellipses in which |arg Z| <= pi/2, or by the same rule
for sums over consecutive integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.exact.arrays import UNIT, Floats, column
from tacit.pld.quadrature import Quadrature
from tacit.pld.quadrature_rules import QuadratureRange, Variation
from tacit.pld.without_replacement_rules import WithoutReplacementRule

if TYPE_CHECKING:
    from tacit.pld.pairs.without_replacement import WithoutReplacementPair

__all__ = ["without_replacement_quadrature"]

_FURTHEST = 600.0


def without_replacement_quadrature(
    members: Sequence[tuple[WithoutReplacementPair, int]], reach: QuadratureRange
) -> Quadrature | None:
    """Quadrature of pairs sampled without replacement of one shape; None where a rule would need too many."""
    pairs = [pair for pair, _ in members]
    rates = column([pair.rate for pair in pairs])
    base = [pair for pair in (p.single or p.either for p in pairs) if pair is not None]
    half = type(base[0]).without_replacement_rule(base, rates, reach)
    if half is None or float(np.max(half.ratio)) > _FURTHEST:
        return None
    moved = rates * np.expm1(half.ratio)
    grown = 1 + moved
    losses = np.log1p(moved)
    p, q, lost = half.q * grown, half.q, half.lost * rates
    rest = 1 - lost - np.sum(p + q, axis=1, keepdims=True)
    # d loss = slope d ratio, slope = 1 - (1 - rate)/grown; log1p adds units of 1 - 1/grown.
    sizes = (1 - (1 - rates) / grown + 1e-15) * (half.ratio + half.blur) + moved / grown + losses
    furthest = float(np.max(half.ratio, initial=1.0))
    edges = floors = None
    if half.edges is not None and half.density is not None:
        ends = np.log1p(rates * np.expm1(half.edges))
        g = np.exp(ends)
        # The slope of the loss in ln Z, q Z/g, rises with Z.
        least = half.density / (rates * np.exp(half.edges[:, 1:]) / g[:, 1:])
        edges = np.concatenate([-ends[:, :0:-1], ends], axis=1)
        floors = np.concatenate([least[:, ::-1], least * g[:, :-1]], axis=1)
    zero = np.zeros_like(rates)
    return Quadrature(
        losses=np.concatenate([-losses[:, ::-1], zero, losses], axis=1),
        masses=np.concatenate([q[:, ::-1], np.maximum(rest, 0.0), p], axis=1),
        counts=np.array([float(n) for _, n in members]),
        infinite=np.concatenate([lost * (1 - 1e-12), lost * (1 + 1e-12)], axis=1),
        # The mass at 0 inherits the errors of both halves, and the rounding of their sum.
        error=np.full(len(pairs), 4 * half.error + 256 * UNIT),
        sizes=np.concatenate([sizes[:, ::-1], zero, sizes], axis=1),
        relative=UNIT
        * (256 + 32 * (reach.power + reach.frequency) * (1 + furthest + float(np.max(half.blur)))),
        edges=edges,
        floors=floors,
        variation=_variation(half, np.maximum(rest[:, 0], 0.0) + 1e-12),
    )


def _variation(half: WithoutReplacementRule, rest: Floats) -> Variation | None:
    """With the atom at 0, where both halves begin."""
    inner = half.variation
    return None if inner is None else lambda tilt: (inner(tilt), rest)
