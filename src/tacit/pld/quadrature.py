"""Privacy losses of many pairs as a few weighted nodes each, from the rules of quadrature.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from tacit.exact.arrays import UNIT, Floats, column
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import precision
from tacit.pld.pairs.base import Pair

# Rules of quadrature for losses whose error is bounded for every transform that composition needs.
#
# Q-integrals of F(Z), Z = e^L, for the F that transforms of losses need: Z^(z+1), (1 - q + q Z)^(z+1) and
# (1 - q + q Z)^(-z), z = c + iw. For |arg Z| <= theta each is at most e^(w theta) cos(theta/2)^-(|c|+1) times its
# value at |Z| and w = 0, since |a + b e^(i theta)| >= (a + b) cos(theta/2). With that, the trapezoidal rule (normal
# noise) and Gauss's rule (Laplace, exponential) converge geometrically.

_WANTED = 37.0
"""Errors of e^-37 = 1e-16 are asked of the rules."""


STRIP = 6.0
"""The half-width of the widest strip in which normal noise is followed."""


_MOST_LISTED = 1 << 15


_DEEPEST = 37.0
"""Normal densities beyond this many deviations leave the range of floats, where a tilt may need them."""


LARGEST_EPSILON = 100.0
MOST_ATOMS = 64
LEAST_MASS = 1e-300
"""Masses below this lose digits, or vanish, in floats."""
_SOFT = (0.8, 1.3, 2.0)
AtomRows: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Losses, P-masses, and the P-mass at +infinity and Q-mass at -infinity, a row for each pair."""
Variation: TypeAlias = Callable[[float], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadratureRange:
    """The range that the nodes must serve: tilts from `low` to `high`, frequencies up to `frequency`."""

    low: float
    high: float
    frequency: float
    swapped: bool = False
    listed: bool = False
    """Whether integer noise must be represented by its integers, though fewer nodes would do."""
    most: int = 2048
    """The largest number of nodes of a row."""

    @property
    def power(self) -> float:
        """The largest |tilt| + 1."""
        return max(abs(self.low), abs(self.high)) + 1

    @property
    def powers(self) -> tuple[float, float]:
        """The largest powers of Z (or 1 - q + q Z) and of its inverse that are integrated over Q."""
        if self.swapped:
            return max(0.0, -self.low), max(0.0, self.high)
        return max(0.0, self.high + 1), max(0.0, -self.low - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """ln Z at the nodes with Q-masses of base pairs, a row for each; what quadrature.py needs beside them."""

    ratio: Floats
    q: Floats
    error: Floats
    infinite: tuple[Floats, Floats]
    """P-masses at Z = infinity, Q-masses at Z = 0."""
    edges: Floats | None = None
    """ln Z at the edges of cells."""
    density: Floats | None = None
    """The least Q-density of ln Z in each cell."""
    cancelled: Floats | float = 0.0
    """The terms of ln Z may exceed its size by this much."""
    soft: Floats | None = None
    left: Floats | None = None
    softer: float = 1.0
    variation: Variation | None = None
    """At a tilt c: ln V of each row, V the total variation of the density of e^(cL), sampled; and its atoms."""
    integers: tuple[Floats, float] | None = None
    """Discrete Gaussian noise: noise_std >= 1 of each row, and the sensitivity."""


def atoms_rule(rows: AtomRows) -> Rule:
    """Atoms are their own nodes.

    Losses and masses are right to a few units, which the nodes count as relative errors. Only the staircase's
    middle, at the loss 0, is a difference.
    """
    losses, p, lost, gone = rows
    nothing = np.zeros((len(losses), 1))
    error = np.full(len(losses), 16 * UNIT)
    return Rule(ratio=losses, q=p * np.exp(-losses), error=error, infinite=(lost + nothing, gone + nothing))


def normal_rule(mu: Floats, rates: Floats, reach: QuadratureRange) -> Rule | None:
    """The trapezoidal rule for Q = N(0, 1), ln Z = mu x - mu^2/2, analytic in the strip |Im x| < pi/mu."""
    span = _span(float(np.max(mu)), rates, reach)
    strip, spacing = _strip(float(np.max(mu)), reach)
    left, right = math.ceil(span[0] / spacing), math.ceil(span[1] / spacing)
    if left + right > reach.most or max(span[1], span[0] + float(np.max(mu))) > _DEEPEST:
        return None
    x = np.arange(-left, right + 1, dtype=np.float64)[None, :] * spacing
    ratio = mu * x - mu * mu / 2
    q = np.exp(-x * x / 2) * (spacing / math.sqrt(2 * math.pi)) + np.zeros_like(mu)
    error = np.full(len(mu), _strip_error(float(np.max(mu)), strip, spacing, reach) + 4 * math.exp(-_WANTED))
    cells = np.arange(-3.0, math.ceil(reach.power * float(np.max(mu))) + 3.5, 1.0)[None, :]
    height = np.minimum(np.exp(-(cells[:, :-1] ** 2) / 2), np.exp(-(cells[:, 1:] ** 2) / 2))
    density = height / math.sqrt(2 * math.pi) / mu
    none = np.zeros_like(mu)
    return Rule(
        ratio=ratio, q=q, error=error, infinite=(none, none), edges=mu * cells - mu * mu / 2, density=density
    )


def soften(rule: Rule, mu: Floats) -> Rule:
    """With e^(-x^2/2T^2), where ln Z = mu x - mu^2/2; in a strip of half-width a at most e^(a^2/2T^2)."""

    def factors(ratio: Floats) -> Floats:
        first = float(mu[0, 0])
        x = ratio[0] / first + first / 2
        return np.stack([np.exp(-x * x / (2 * t * t)) for t in _SOFT], axis=1)

    left = None
    if rule.edges is not None:
        soft = factors(rule.edges)
        # The factor peaks at x = 0, which is an edge.
        left = np.asarray(1 - np.maximum(soft[:-1], soft[1:])) * (1 - 1e-9)
    softer = math.exp(min(math.pi / (2 * float(np.max(mu))), STRIP) ** 2 / 2 / _SOFT[0] ** 2)
    return replace(rule, soft=factors(rule.ratio), left=left, softer=softer)


def replaced_rule(mu: Floats, rates: Floats, reach: QuadratureRange) -> Rule | None:
    """The same rule for two mixtures against each other: both turn, hence twice the powers."""
    most = 2 * reach.power
    twice = QuadratureRange(low=-most, high=most, frequency=2 * reach.frequency, most=reach.most)
    widest = float(np.max(mu))
    strip, spacing = _strip(widest, twice)
    span = _span(widest, rates, twice)
    lost = -reach.power * math.log1p(-float(np.max(rates)))
    reached = min(math.hypot(span[1], span[0]), _tail(widest, reach.power, lost))
    side = math.ceil(reached / spacing)
    if 2 * side > reach.most or reached > _DEEPEST:
        return None

    def sides(x: Floats) -> tuple[Floats, Floats]:
        up, down = mu * x - mu * mu / 2, -mu * x - mu * mu / 2
        with np.errstate(over="ignore"):
            still, moved = np.log1p(-rates), np.log(rates)
        return np.logaddexp(still, moved + up), np.logaddexp(still, moved + down)

    x = np.arange(-side, side + 1, dtype=np.float64)[None, :] * spacing
    above, below = sides(x)
    q = np.exp(below - x * x / 2) * (spacing / math.sqrt(2 * math.pi))
    error = np.full(len(mu), _strip_error(widest, strip, spacing, twice) + 4 * math.exp(-_WANTED))
    cells = np.arange(-3.0, 3.5, 1.0)[None, :]
    over, under = sides(cells)
    # Each side's log-slope is mu times the share of its moved part, which rises with |x| on its own side.
    share_up = np.exp(np.log(rates) + mu * cells - mu * mu / 2 - over)
    share_down = np.exp(np.log(rates) - mu * cells - mu * mu / 2 - under)
    slope = mu * (share_up[:, 1:] + share_down[:, :-1])
    height = np.minimum(np.exp(-(cells[:, :-1] ** 2) / 2), np.exp(-(cells[:, 1:] ** 2) / 2))
    density = height / math.sqrt(2 * math.pi) * np.exp(under[:, 1:]) / slope
    none = np.zeros_like(mu)
    return Rule(
        ratio=above - below, q=q, error=error, infinite=(none, none), edges=over - under, density=density
    )


def _span(mu: float, rates: Floats, reach: QuadratureRange) -> tuple[float, float]:
    """The range of the normal variable that is needed, left and right of 0.

    Left, F <= (1 - q)^-C; right, with (a + b)^C <= 2^C (a^C + b^C), F <= 2^C (1 + q^C e^(C ln Z)). The omitted part is
    at most e^-37, or that much of the whole, which is at least 1 and q^C E e^(C ln Z).
    """
    c, inverse = reach.powers
    top = float(np.max(rates))
    lost = -math.log1p(-top) if top < 1 else 0.0
    left = (inverse * mu if top == 1 else 0.0) + math.sqrt(2 * (_WANTED + inverse * lost))
    grown = c * math.log(2 * top) + c * (c + 1) * mu * mu / 2
    right = c * mu + math.sqrt(2 * (_WANTED + max(grown, 0.0)))
    return left, min(max(right, math.sqrt(2 * (_WANTED + c))), _tail(mu, c, 0.0))


def _tail(mu: float, power: float, lost: float) -> float:
    """The point with all but e^-37 of the mean of 2^C e^lost (1 + e^(C ln Z)) behind it."""
    return power * mu + math.sqrt(2 * (_WANTED + power * math.log(2) + lost))


def _strip(mu: float, reach: QuadratureRange) -> tuple[float, float]:
    """Half-width of the strip, and the spacing of nodes that it allows."""
    strip = min(math.pi / (2 * mu), STRIP)
    theta = strip * mu
    cost = strip**2 / 2 - reach.power * math.log(math.cos(theta / 2)) + reach.frequency * theta
    return strip, 2 * math.pi * strip / (_WANTED + cost)


def _strip_error(mu: float, strip: float, spacing: float, reach: QuadratureRange) -> float:
    """2 N/(e^(2 pi a/h) - 1), N = e^(a^2/2 + w theta) cos(theta/2)^-C times the value at w = 0 (set apart)."""
    theta = strip * mu
    cost = strip**2 / 2 - reach.power * math.log(math.cos(theta / 2)) + reach.frequency * theta
    return 2.1 * math.exp(cost - 2 * math.pi * strip / spacing)


def integer_rule(std: Floats, s: float, rates: Floats, reach: QuadratureRange) -> Rule | None:
    """Sums over the integers: directly if they are few, else (by the same strip) the integral, on coarser nodes."""
    mu = s / std
    strip = min(math.pi / (2 * float(np.max(mu))), STRIP)
    own = 2 * math.pi * strip * float(np.min(std))
    theta = strip * float(np.max(mu))
    cost = strip**2 / 2 - reach.power * math.log(math.cos(theta / 2)) + reach.frequency * theta
    none = np.zeros_like(mu)
    if own - cost > _WANTED and not reach.listed:
        rule = normal_rule(mu, rates, reach)
        if rule is None:
            return None
        # Both the sum of F and the norm are integrals to e^(cost - own).
        return replace(rule, error=rule.error + 4.2 * math.exp(cost - own), edges=None, density=None)
    span = _span(float(np.max(mu)), rates, reach)
    left = math.ceil(span[0] * float(np.max(std)))
    right = math.ceil(span[1] * float(np.max(std)))
    if left + right > (_MOST_LISTED if reach.listed else reach.most):
        return None
    if max(span[1], span[0] + float(np.max(mu))) > _DEEPEST:
        return None
    x = np.arange(-left, right + 1, dtype=np.float64)[None, :]
    q = np.exp(-x * x / (2 * std * std))
    q /= np.sum(q, axis=1, keepdims=True)
    ratio = (2 * s * x - s * s) / (2 * std * std)
    error = np.full(len(mu), 8 * math.exp(-_WANTED) * (1 + 1 / float(np.min(std))))
    return Rule(ratio=ratio, q=q, error=error, infinite=(none, none))


@lru_cache(maxsize=128)
def legendre(count: int) -> tuple[Floats, Floats]:
    """Gauss's nodes and weights to the last bit: numpy's weights lose up to five digits at 128 nodes."""
    from flint import arb

    with precision(128):
        rows = [arb.legendre_p_root(count, k, weight=True) for k in range(count)]
        return np.array([float(x.mid()) for x, _ in rows]), np.array([float(w.mid()) for _, w in rows])


def bounded_rule(tops: Floats, atoms: bool, reach: QuadratureRange) -> Rule | None:
    """Gauss's rule on [-epsilon, epsilon] with Q-density ~ e^(-l/2), and the Laplace pair's two atoms.

    With m nodes the error for a function of modulus M in the ellipse of radii (rho +- 1/rho)/2 is at most
    (64/15) M rho^(2 - 2m)/(1 - rho^-2) (Trefethen, Approximation theory, Theorem 19.3).
    """
    e = float(np.max(tops))
    best, count = math.inf, 0
    for m in (8, 12, 16, 24, 32, 48, 64, 96, 128):
        for rho in (1.2, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 200.0, 1000.0):
            theta, wide = e * (rho - 1 / rho) / 2, e * (rho + 1 / rho) / 2
            if theta > math.pi / 2:
                continue
            bound = (reach.power + 0.5) * wide - reach.power * math.log(math.cos(theta / 2))
            bound += reach.frequency * theta + (2 - 2 * m) * math.log(rho) + 2.8
            best, count = min(best, bound), m
        if best < -_WANTED:
            break
    if best > -_WANTED + 6:
        return None
    x, share = legendre(count)
    losses = tops * x[None, :]
    norm = 1.0 if atoms else -2 * np.expm1(-tops)
    height = np.exp(-tops / 2) / 4 if atoms else np.exp(-tops / 2) / norm
    q = share[None, :] * tops * height * np.exp(-losses / 2)
    if atoms:
        losses = np.concatenate([losses, -tops, tops], axis=1)
        q = np.concatenate([q, np.full_like(tops, 0.5), np.exp(-tops) / 2], axis=1)
    cells = tops * np.array([[-1.0, 0.0, 1.0]])
    density = height * np.exp(-cells[:, 1:] / 2)
    # d0 times the half-length is at most 1/2 in both cases (and e^2.8 covers 64/15 over 1 - rho^-2 at 1.2).
    error = np.full(len(tops), math.exp(best))
    none = np.zeros_like(tops)
    return Rule(ratio=losses, q=q, error=error, infinite=(none, none), edges=cells, density=density)


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
    """The least P-density of x over the greatest slope of the loss, for each cell, at tilt 0 (rows, cells)."""
    soft: Floats | None = None
    """Normal noise x: factors e^(-x^2/2T^2) <= 1 that leave out its tails (nodes, kinds), of entire functions."""
    left: Floats | None = None
    """The least 1 - e^(-x^2/2T^2) in each cell (cells, kinds)."""
    softer: float = 1.0
    """The ratio of the error of sums with these factors to `error`."""
    variation: Variation | None = None
    """At a tilt c, of each row: ln V, V the total variation of the density of e^(cL), and the mass of its atoms."""
    integers: tuple[Floats, float] | None = None
    """Discrete Gaussian noise: noise_std >= 1 of each row, and the sensitivity."""

    def tilted(self, tilt: float) -> tuple[Floats, Floats, Floats]:
        """(ln A, weights, blur): A = sum_j mass_j e^(tilt loss_j), with the shares in it as weights.

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
    """Nodes of pairs of one key; None if the rule would need too many."""
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
    """Nodes of pairs chosen by a coin: those of all parts, by the weights of each part's rows.

    Each part's transform is right to its error times the larger of 1 and its value at frequency 0: together to at most
    twice the largest error in the same measure. Between the cells of two parts lies one without a known density.
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


# Rules of quadrature for the half Z > 1 of a pair: Gauss's rule on panels, sums over integers, atoms.

_HALF_WANTED = 37.0
"""Errors of e^-37 = 1e-16 are asked of the rules."""


_MOST_PANEL = 96


_HALF_MOST_LISTED = 1 << 15


_HALF_DEEPEST = 37.0
"""Normal densities beyond this many deviations leave the range of floats, where a tilt may need them."""


_HALF_FURTHEST = 600.0


_RADII = np.array([1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 16.0, 32.0, 64.0, 200.0, 1000.0])[None, :]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithoutReplacementRule:
    """ln Z > 0 at the nodes with Q-masses, their absolute error; the P-mass at infinity before sampling; ln Z at
    the edges of cells, from 0 upwards, and the least Q-density of ln Z in each."""

    ratio: Floats
    q: Floats
    error: float
    lost: Floats
    blur: Floats
    """The error of ln Z of each row in units of the last place of 1, beyond its relative errors."""
    edges: Floats | None = None
    density: Floats | None = None
    variation: Callable[[float], Floats] | None = None
    """At a tilt, ln of the total variation of the densities of both halves together."""


def positive_half(rows: AtomRows) -> WithoutReplacementRule:
    """The positive losses, with their Q-masses, and the P-mass at infinity (columns of others have mass 0)."""
    losses, p, lost, _ = rows
    chosen = np.any(losses > 0, axis=0)
    x = np.maximum(losses[:, chosen], 0.0)
    lost = lost + np.zeros((len(losses), 1))
    q = np.where(x > 0, p[:, chosen] * np.exp(-x), 0.0)
    return WithoutReplacementRule(ratio=x, q=q, error=64 * UNIT, lost=lost, blur=np.ones_like(lost))


def larger_half(rows: AtomRows, rates: Floats, reach: QuadratureRange) -> WithoutReplacementRule:
    """For tables in which both orders of neighbours occur: the larger of both curves."""
    ratio, q, lost = _larger_atoms(rows)
    # Where two curves cross is known to a unit of their height over the angle, which is the mass there.
    top = float(np.max(np.log1p(rates * np.expm1(np.minimum(ratio, _HALF_FURTHEST)))))
    error = 64 * UNIT * ratio.shape[1] * (1 + reach.power + reach.frequency)
    error *= math.exp(min(reach.power * top, _HALF_FURTHEST))
    return WithoutReplacementRule(ratio=ratio, q=q, error=error, lost=lost, blur=np.ones_like(lost))


def _larger_atoms(rows: AtomRows) -> tuple[Floats, Floats, Floats]:
    """Positive losses, their Q-masses, and the P-mass at infinity, for the larger of the curves of a pair and of
    its swap at each t >= 1.

    Both are polygons in t with corners at the ratios; the larger curve has these corners and the crossing points. The
    mass at a corner is the change of slope, and slopes are sums of masses.
    """
    losses, p, lost, gone = rows
    q = p * np.exp(-losses)
    lost, gone = lost + np.zeros((len(losses), 1)), gone + np.zeros((len(losses), 1))

    def apart(at: Floats) -> Floats:
        t = np.exp(at)[:, :, None]
        one = np.sum(np.maximum(p[:, None] - t * q[:, None], 0.0), axis=2) + lost
        return np.asarray(one - np.sum(np.maximum(q[:, None] - t * p[:, None], 0.0), axis=2) - gone)

    corners = np.sort(np.concatenate([np.zeros((len(losses), 1)), np.abs(losses)], axis=1), axis=1)
    gap, t = apart(corners), np.exp(corners)
    gap[:, 0] = 0.0  # both curves are the distance of P and Q at t = 1
    crossed = gap[:, :-1] * gap[:, 1:] < 0
    share = np.where(crossed, gap[:, :-1] / np.where(crossed, gap[:, :-1] - gap[:, 1:], 1.0), 0.0)
    points = np.concatenate([corners, np.log(t[:, :-1] + share * np.diff(t, axis=1))], axis=1)
    points = np.sort(np.maximum(points, 0.0), axis=1)
    inside = (points[:, 1:] + points[:, :-1]) / 2
    one = np.sum(q[:, None] * (losses[:, None] > inside[:, :, None]), axis=2)
    other = np.sum(p[:, None] * (-losses[:, None] > inside[:, :, None]), axis=2)
    gap = apart(inside)
    # Where rounding hides which is larger the intervals are short, or the curves one; both start at one height.
    close = np.abs(gap) <= 4 * UNIT * (losses.shape[1] + 2)
    slopes = np.where(close, np.minimum(one, other), np.where(gap > 0, one, other))
    slopes = np.maximum.accumulate(slopes[:, ::-1], axis=1)[:, ::-1]
    falls = slopes - np.concatenate([slopes[:, 1:], np.zeros((len(losses), 1))], axis=1)
    return points[:, 1:], falls, np.maximum(lost, gone)


def _powers(reach: QuadratureRange) -> tuple[float, float]:
    """The largest powers of g and of 1/g: z + 1 and -z for tilts between the ends of the reach."""
    return max(reach.high + 1, -reach.low, 0.0), max(-reach.low - 1, reach.high, 0.0)


def _far(mu: float, reach: QuadratureRange) -> float:
    """x beyond which N(0, 1) leaves at most e^-37 of the whole (at least 1) to g^p, whatever the rate.

    The density phi g^p falls by e^(-(x - p mu)^2/2) beyond x = p mu, where it is at most 2 p mu + 2 times the
    whole: its logarithm has a slope of at most 2 p mu + 1 within 1 of there.
    """
    peak = _powers(reach)[0] * mu
    return peak + math.sqrt(2 * (_HALF_WANTED + math.log(4 * peak + 4)))


def normal_half(mu: Floats, rates: Floats, reach: QuadratureRange) -> WithoutReplacementRule | None:
    """Q = N(0, 1) and ln Z = mu u at x = mu/2 + u, u > 0."""
    least, most = float(np.min(mu)), float(np.max(mu))
    length = _far(most, reach) - least / 2
    if length + most / 2 > _HALF_DEEPEST:
        return None

    def falling(left: Floats, side: Floats) -> Floats:
        return np.asarray((side * side - np.maximum(least / 2 + left, 0.0) ** 2) / 2 - 0.9)

    def rising(right: Floats, side: Floats) -> Floats:
        slope = np.abs(right) + most / 2 + 1 + _powers(reach)[0] * most
        return np.asarray(side * side / 2 + np.log(2 * slope + 2))

    rule = _panels(length, most, float(np.max(rates)), reach, (rising, falling))
    if rule is None:
        return None
    u, shares, error, blur = rule
    q = shares * np.exp(-((mu / 2 + u) ** 2) / 2) / math.sqrt(2 * math.pi)
    cells = np.concatenate([np.arange(0.0, 2.0, 0.5), np.arange(2.0, reach.power * most + 3.5, 1.0)])[None, :]
    density = np.exp(-((mu / 2 + cells[:, 1:]) ** 2) / 2) / math.sqrt(2 * math.pi) / mu
    return WithoutReplacementRule(
        ratio=mu * u,
        q=q,
        error=error + 4 * math.exp(-_HALF_WANTED),
        lost=np.zeros_like(mu),
        blur=mu * blur,
        edges=mu * cells,
        density=density,
    )


def bounded_half(
    tops: Floats, atoms: bool, rates: Floats, reach: QuadratureRange
) -> WithoutReplacementRule | None:
    """Q-density ~ e^(-l/2) on [0, epsilon], and the Laplace pair's atom at epsilon."""
    most = float(np.max(tops))
    slope = (_powers(reach)[0] + 0.5) * most

    def falling(left: Floats, side: Floats) -> Floats:
        # epsilon times the density at 0 is at most 1/2, for Laplace and exponential pairs.
        return np.asarray(np.maximum(-left, 0.0) * most / 2 - math.log(2))

    def rising(right: Floats, side: Floats) -> Floats:
        # Ellipses reach as far beyond one end of the panels as beyond the other, and no further than `side`.
        return np.asarray(slope * side + math.log(slope + 1))

    rule = _panels(1.0, most, float(np.max(rates)), reach, (rising, falling))
    if rule is None:
        return None
    v, shares, error, blur = rule
    scale = np.exp(-tops / 2) / (4 if atoms else -2 * np.expm1(-tops))
    ratio = tops * v
    q = shares * tops * scale * np.exp(-ratio / 2)
    if atoms:
        ratio = np.concatenate([ratio, tops], axis=1)
        q = np.concatenate([q, np.exp(-tops) / 2], axis=1)
    cells = tops * np.array([[0.0, 0.25, 0.5, 0.75, 1.0]])
    density = scale * np.exp(-cells[:, 1:] / 2)
    none = np.zeros_like(tops)
    return WithoutReplacementRule(
        ratio=ratio, q=q, error=error, lost=none, blur=tops * blur, edges=cells, density=density
    )


def integer_half(
    std: Floats, sensitivity: int, rates: Floats, reach: QuadratureRange
) -> WithoutReplacementRule | None:
    """Integer noise above half the sensitivity: its integers where few, else Gauss's rule for their sums."""
    narrow, widest, s = float(np.min(std)), float(np.max(std)), float(sensitivity)
    first = sensitivity // 2 + 1
    # Terms fall from there on, so that the rest of the sum is below the integral.
    far = _far(s / narrow, reach)
    last = math.ceil(far * widest) + 1
    number = last - first + 1
    if number > _HALF_MOST_LISTED or far > _HALF_DEEPEST:
        return None
    if reach.listed or number <= 2 * _MOST_PANEL:
        x, shares, error, blur = np.arange(first, last + 1.0), np.ones(number), 0.0, 0.0
    else:
        power = _powers(reach)[0]

        def falling(left: Floats, side: Floats) -> Floats:
            return np.asarray(((side / narrow) ** 2 - (np.maximum(first + left, 0.0) / widest) ** 2) / 2)

        def rising(right: Floats, side: Floats) -> Floats:
            # At the nearest integer a term is at most the whole sum.
            slope = (np.abs(right) + first + 1 + power * s) / narrow**2
            return np.asarray((side / narrow) ** 2 / 2 + slope / 2 + math.log(2))

        scale, offset = s / narrow**2, first - s / 2
        rule = _panels(float(number), scale, float(np.max(rates)), reach, (rising, falling), offset=offset)
        if rule is None:
            return None
        x, shares, error, blur = rule
        # Eigenvectors are right to some units of their length, in sums over panels of up to `number` terms.
        x, error = x + first, error + 64 * UNIT * (1 + number / narrow)
    q = shares * np.exp(-((x / std) ** 2) / 2) / _norm(std)
    error = error + 8 * math.exp(-_HALF_WANTED)
    # 2x - s is exact for integers; otherwise it is off by units of s + 1 and of the panels.
    off = (s + 1 + blur) * s / (std * std)
    ratio = s * (2 * x - s) / (2 * std * std)
    return WithoutReplacementRule(ratio=ratio, q=q, error=error, lost=np.zeros_like(std), blur=off)


def _norm(std: Floats) -> Floats:
    """Sum of e^(-x^2/(2 std^2)) over the integers: themselves, or by Poisson's summation (to e^-78)."""
    x = np.arange(-40.0, 41.0)[None, :]
    few = np.sum(np.exp(-((x / np.minimum(std, 2.0)) ** 2) / 2), axis=1, keepdims=True)
    return np.asarray(np.where(std < 2, few, math.sqrt(2 * math.pi) * std))


_Height = Callable[[Floats, Floats], Floats]


def _panels(
    length: float,
    scale: float,
    rate: float,
    reach: QuadratureRange,
    heights: tuple[_Height, _Height],
    offset: float | None = None,
) -> tuple[Floats, Floats, float, float] | None:
    """Nodes, weights, error and rounding of Gauss's rule on equal panels of [0, length], where ln Z <= scale v.

    The error is in units of the transform at frequency 0, or of 1 where that is less. In the ellipse of radii
    h (r +- 1/r)/2 around a panel of half-length h, with |arg Z| <= theta <= pi/2, the integrand has at most the
    modulus M: for positive powers of g the value at real v and frequency 0, whose logarithm in those units
    is at most the first of the `heights` (at the right end, and the height of the ellipse), times e^(w |arg g|);
    for negative ones the least g to that power, times the density (the second, at the left end). m nodes leave
    at most (64/15) h M r^(2 - 2m)/(1 - r^-2) (Trefethen, Approximation theory, Theorem 19.3). With an `offset`,
    ln Z = scale (v + offset), and sums over the integers 0 ... length - 1 are meant: the rule is exact to
    degree 2m - 1 with positive weights, hence off by at most twice the number of terms times the distance
    2 M r^(1 - 2m)/(r - 1) to polynomials of that degree (ibid., Theorem 8.2).
    """
    falls = _powers(reach)[1]
    best: tuple[int, float, float, Floats] | None = None
    lead = 0.0 if offset is None else offset
    for parts in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128):
        step = length / parts if offset is None else float(math.ceil(length / parts))
        half = step / 2 if offset is None else (step - 1) / 2
        centre = (np.arange(parts) * step + half)[:, None]
        wide, side = half * (_RADII + 1 / _RADII) / 2, half * (_RADII - 1 / _RADII) / 2
        theta = np.minimum(scale * side, math.pi / 2)
        ahead = np.minimum(scale * (centre + lead + wide), _HALF_FURTHEST)
        behind = np.clip(scale * (centre + lead - wide), -_HALF_FURTHEST, _HALF_FURTHEST)
        # Re g >= 1 - q, so that |arg g| is at most |Im g|/(1 - q), and at most |arg Z|.
        turn = np.minimum(theta, rate * np.exp(ahead) * np.sin(theta) / (1 - rate))
        below = np.log(1 - rate + rate * np.exp(np.minimum(behind, 0.0)) * np.cos(theta))
        modulus = np.maximum(heights[0](centre + wide, side), heights[1](centre - wide, side) - falls * below)
        cost = modulus + reach.frequency * turn + math.log(parts) + 2 * np.log(_RADII)
        if offset is None:
            cost = cost + math.log(64 / 15 * half) - np.log1p(-(_RADII**-2))
        else:
            cost = cost + math.log(4 * step) - np.log(_RADII - 1)
        usable = (scale * side <= math.pi / 2) & (ahead < _HALF_FURTHEST)
        orders = np.where(usable, np.ceil((cost + _HALF_WANTED) / (2 * np.log(_RADII))), np.inf)
        order = np.maximum(np.min(orders, axis=1), 2.0)
        if offset is not None:
            order = np.minimum(order, step)
        if float(np.max(order)) > _MOST_PANEL:
            continue
        total = int(np.sum(order))
        if best is None or total < best[0]:
            best = (total, step, half, order)
    if best is None or best[0] > reach.most // 2:
        return None
    _, step, half, order = best
    points, shares = [], []
    for k, m in enumerate(order):
        x, weights = _gauss(int(m), None if offset is None else round(step))
        points.append(k * step + half * (1 + x))
        shares.append(weights * (half if offset is None else 1.0))
    return np.concatenate(points)[None, :], np.concatenate(shares)[None, :], math.exp(-_HALF_WANTED), 8 * half


@lru_cache(maxsize=512)
def _gauss(order: int, number: int | None) -> tuple[Floats, Floats]:
    """Gauss's rule on [-1, 1]; with a `number`, for the sum over as many evenly spaced points, ends included.

    The polynomials that are orthogonal on evenly spaced points are Gram's, whose recurrence has the coefficients
    k^2 (N^2 - k^2)/(4 (4 k^2 - 1)); nodes are the eigenvalues of its matrix (Golub, Welsch 1969).
    """
    if number is None:
        return legendre(order)
    if order >= number:
        return np.linspace(-1.0, 1.0, number), np.ones(number)
    k = np.arange(1.0, order)
    beside = k * np.sqrt((number**2 - k * k) / (4 * (4 * k * k - 1)))
    values, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return values / ((number - 1) / 2), number * vectors[0] ** 2
