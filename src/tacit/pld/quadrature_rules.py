"""Rules of quadrature for losses whose error is bounded for every transform that composition needs.

Q-integrals of F(Z), Z = e^L, for the F that transforms of losses need: Z^(z+1), (1 - q + q Z)^(z+1) and
(1 - q + q Z)^(-z), z = c + iw. For |arg Z| <= theta each is at most e^(w theta) cos(theta/2)^-(|c|+1) times its
value at |Z| and w = 0, since |a + b e^(i theta)| >= (a + b) cos(theta/2). With that, the trapezoidal rule (normal
noise) and Gauss's rule (Laplace, exponential) converge geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.exact.balls import precision
from tacit.pld.continuous import ExponentialPair, GaussianPair, LaplacePair
from tacit.pld.discrete import (
    ApproximatePair,
    DiscreteLaplacePair,
    RandomizedResponsePair,
    StaircasePair,
)
from tacit.pld.discrete_gaussian import DiscreteGaussianPair
from tacit.pld.distributions import UNIT
from tacit.pld.pair import FloatArray, Pair
from tacit.pld.replacement import SampledReplacementPair
from tacit.pld.tabulated import FinitePair

__all__ = ["STRIP", "QuadratureRange", "Rule", "larger_atoms", "legendre", "positive_atoms", "rule_of"]

_WANTED = 37.0
"""Errors of e^-37 = 1e-16 are asked of the rules."""
STRIP = 6.0
"""The half-width of the widest strip in which normal noise is followed."""
_MOST_LISTED = 1 << 15
_DEEPEST = 37.0
"""Normal densities beyond this many deviations leave the range of floats, where a tilt may need them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadratureRange:
    """What the nodes must serve: tilts from `low` to `high`, frequencies up to `frequency`."""

    low: float
    high: float
    frequency: float
    swapped: bool = False
    listed: bool = False
    """Whether integer noise must be given by its integers, though fewer nodes would do."""
    most: int = 2048
    """How many nodes a row may have."""

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


Rule = tuple[
    FloatArray,
    FloatArray,
    FloatArray,
    tuple[FloatArray, FloatArray],
    FloatArray | None,
    FloatArray | None,
]
"""ln Z at the nodes, Q-masses, error, (P, Q)-masses at infinity; ln Z at cell edges, Q-density of ln Z there."""


def rule_of(base: Sequence[Pair], rates: FloatArray, reach: QuadratureRange) -> Rule | None:
    """The rule for base pairs of one kind, sampled at `rates`; None where it would need too many nodes."""
    first = base[0]
    nothing = np.zeros((len(base), 1))
    if isinstance(first, GaussianPair):
        return _normal(np.array([[p.near] for p in base if isinstance(p, GaussianPair)]), rates, reach)
    if isinstance(first, SampledReplacementPair):
        rows = np.array([(p.mu, p.rate) for p in base if isinstance(p, SampledReplacementPair)])
        return _replaced(rows[:, :1], rows[:, 1:], reach)
    if isinstance(first, DiscreteGaussianPair):
        integers = [p for p in base if isinstance(p, DiscreteGaussianPair)]
        std = np.array([[float(p.noise_std)] for p in integers])
        return _integers(std, float(first.sensitivity), rates, reach)
    if isinstance(first, LaplacePair | ExponentialPair):
        tops = np.array([[p.epsilon] for p in base if isinstance(p, LaplacePair | ExponentialPair)])
        return _bounded(tops, isinstance(first, LaplacePair), reach)
    losses, p, lost, gone = _atoms(base)
    # Losses and masses are right to a few units, which the nodes count as relative errors; only the staircase's
    # middle, at the loss 0, is a difference.
    error = np.full(len(base), 16 * UNIT)
    return losses, p * np.exp(-losses), error, (lost + nothing, gone + nothing), None, None


def _atoms(base: Sequence[Pair]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Losses, P-masses, and the masses at infinity of pairs with equally many atoms."""
    first = base[0]
    zero = np.zeros((len(base), 1))
    if isinstance(first, ApproximatePair):
        rows = np.array([(p.epsilon, p.delta) for p in base if isinstance(p, ApproximatePair)])
        e, lost = rows[:, :1], rows[:, 1:]
        losses = np.concatenate([-e, e], axis=1)
        return losses, (1 - lost) / (1 + np.exp(-losses)), lost, lost
    if isinstance(first, RandomizedResponsePair):
        rows = np.array([(p.epsilon, p.categories) for p in base if isinstance(p, RandomizedResponsePair)])
        e, k = rows[:, :1], rows[:, 1:]
        losses = np.concatenate([-e, zero, e] if first.categories > 2 else [-e, e], axis=1)
        ways = np.concatenate(
            [zero + 1, k - 2, zero + 1] if first.categories > 2 else [zero + 1, zero + 1], axis=1
        )
        return losses, ways * np.exp(np.maximum(losses, 0.0)) / (np.exp(e) + k - 1), zero, zero
    if isinstance(first, StaircasePair):
        rows = np.array([(p.epsilon, p.gamma) for p in base if isinstance(p, StaircasePair)])
        e, g = rows[:, :1], rows[:, 1:]
        decay = np.exp(-e)
        inside = np.where(g >= 0.5, 1.0, 2 * (g + (0.5 - g) * decay))
        top = inside / (2 * (g + decay * (1 - g)))
        middle = np.maximum(1 - top - top * decay, 0.0)
        return (
            np.concatenate([-e, zero, e], axis=1),
            np.concatenate([top * decay, middle, top], axis=1),
            zero,
            zero,
        )
    if isinstance(first, DiscreteLaplacePair):
        a = np.array([[p.rate] for p in base if isinstance(p, DiscreteLaplacePair)])
        s = first.sensitivity
        x = np.arange(s, -1, -1, dtype=np.float64)[None, :]
        p = -np.expm1(-a) * np.exp(-a * x)
        p[:, :1], p[:, -1:] = np.exp(-a * s), 1.0
        return a * (s - 2 * x), p / (1 + np.exp(-a)), zero, zero
    tables = [pair for pair in base if isinstance(pair, FinitePair)]
    p = np.array([t.near[0][t.held] or (0.0,) for t in tables])
    q = np.array([t.near[1][t.held] or (1.0,) for t in tables])
    with np.errstate(divide="ignore"):
        losses = np.where(p > 0, np.log(np.maximum(p, 1e-320) / q), 0.0)
    lost = np.array([[t.infinite_mass.high] for t in tables])
    gone = np.array([[t.reverse_infinite_mass.high] for t in tables])
    return losses, p, lost, gone


def positive_atoms(base: Sequence[Pair]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The positive losses, with their Q-masses, and the P-mass at infinity (columns of others have mass 0)."""
    losses, p, lost, _ = _atoms(base)
    chosen = np.any(losses > 0, axis=0)
    x = np.maximum(losses[:, chosen], 0.0)
    return x, np.where(x > 0, p[:, chosen] * np.exp(-x), 0.0), lost + np.zeros((len(base), 1))


def larger_atoms(base: Sequence[Pair]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As `positive_atoms`, for the larger of the curves of a pair and of its swap at each t >= 1.

    Both are polygons in t with corners at the ratios; theirs is one with these corners and where they cross. The
    mass at a corner is the change of slope, and slopes are sums of masses.
    """
    losses, p, lost, gone = _atoms(base)
    q = p * np.exp(-losses)
    lost, gone = lost + np.zeros((len(base), 1)), gone + np.zeros((len(base), 1))

    def apart(at: FloatArray) -> FloatArray:
        t = np.exp(at)[:, :, None]
        one = np.sum(np.maximum(p[:, None] - t * q[:, None], 0.0), axis=2) + lost
        return np.asarray(one - np.sum(np.maximum(q[:, None] - t * p[:, None], 0.0), axis=2) - gone)

    corners = np.sort(np.concatenate([np.zeros((len(base), 1)), np.abs(losses)], axis=1), axis=1)
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
    falls = slopes - np.concatenate([slopes[:, 1:], np.zeros((len(base), 1))], axis=1)
    return points[:, 1:], falls, np.maximum(lost, gone)


def _normal(mu: FloatArray, rates: FloatArray, reach: QuadratureRange) -> Rule | None:
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
    return ratio, q, error, (none, none), mu * cells - mu * mu / 2, density


def _replaced(mu: FloatArray, rates: FloatArray, reach: QuadratureRange) -> Rule | None:
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

    def sides(x: FloatArray) -> tuple[FloatArray, FloatArray]:
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
    return above - below, q, error, (none, none), over - under, density


def _span(mu: float, rates: FloatArray, reach: QuadratureRange) -> tuple[float, float]:
    """How far left and right of 0 the normal variable is needed.

    Left, F <= (1 - q)^-C; right, with (a + b)^C <= 2^C (a^C + b^C), F <= 2^C (1 + q^C e^(C ln Z)). What is left
    out is at most e^-37, or that much of the whole, which is at least 1 and q^C E e^(C ln Z).
    """
    c, inverse = reach.powers
    top = float(np.max(rates))
    lost = -math.log1p(-top) if top < 1 else 0.0
    left = (inverse * mu if top == 1 else 0.0) + math.sqrt(2 * (_WANTED + inverse * lost))
    grown = c * math.log(2 * top) + c * (c + 1) * mu * mu / 2
    right = c * mu + math.sqrt(2 * (_WANTED + max(grown, 0.0)))
    return left, min(max(right, math.sqrt(2 * (_WANTED + c))), _tail(mu, c, 0.0))


def _tail(mu: float, power: float, lost: float) -> float:
    """Where 2^C e^lost (1 + e^(C ln Z)) has all but e^-37 of its mean behind it."""
    return power * mu + math.sqrt(2 * (_WANTED + power * math.log(2) + lost))


def _strip(mu: float, reach: QuadratureRange) -> tuple[float, float]:
    """Half-width of the strip that is used, and the spacing of nodes that it allows."""
    strip = min(math.pi / (2 * mu), STRIP)
    theta = strip * mu
    cost = strip**2 / 2 - reach.power * math.log(math.cos(theta / 2)) + reach.frequency * theta
    return strip, 2 * math.pi * strip / (_WANTED + cost)


def _strip_error(mu: float, strip: float, spacing: float, reach: QuadratureRange) -> float:
    """2 N/(e^(2 pi a/h) - 1), N = e^(a^2/2 + w theta) cos(theta/2)^-C times the value at w = 0 (set apart)."""
    theta = strip * mu
    cost = strip**2 / 2 - reach.power * math.log(math.cos(theta / 2)) + reach.frequency * theta
    return 2.1 * math.exp(cost - 2 * math.pi * strip / spacing)


def _integers(std: FloatArray, s: float, rates: FloatArray, reach: QuadratureRange) -> Rule | None:
    """Sums over the integers: themselves where few, else (by the same strip) the integral, on coarser nodes."""
    mu = s / std
    strip = min(math.pi / (2 * float(np.max(mu))), STRIP)
    own = 2 * math.pi * strip * float(np.min(std))
    theta = strip * float(np.max(mu))
    cost = strip**2 / 2 - reach.power * math.log(math.cos(theta / 2)) + reach.frequency * theta
    none = np.zeros_like(mu)
    if own - cost > _WANTED and not reach.listed:
        rule = _normal(mu, rates, reach)
        if rule is None:
            return None
        ratio, q, error, infinite, _, _ = rule
        # Both the sum of F and the norm are integrals to e^(cost - own).
        return ratio, q, error + 4.2 * math.exp(cost - own), infinite, None, None
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
    return ratio, q, error, (none, none), None, None


@lru_cache(maxsize=128)
def legendre(count: int) -> tuple[FloatArray, FloatArray]:
    """Gauss's nodes and weights to the last bit: numpy's weights lose up to five digits at 128 nodes."""
    from flint import arb

    with precision(128):
        rows = [arb.legendre_p_root(count, k, weight=True) for k in range(count)]
        return np.array([float(x.mid()) for x, _ in rows]), np.array([float(w.mid()) for _, w in rows])


def _bounded(tops: FloatArray, atoms: bool, reach: QuadratureRange) -> Rule | None:
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
    return losses, q, error, (none, none), cells, density
