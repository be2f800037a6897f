"""Rules of quadrature for losses whose error is bounded for every transform that composition needs.

Q-integrals of F(Z), Z = e^L, for the F that transforms of losses need: Z^(z+1), (1 - q + q Z)^(z+1) and
(1 - q + q Z)^(-z), z = c + iw. For |arg Z| <= theta each is at most e^(w theta) cos(theta/2)^-(|c|+1) times its
value at |Z| and w = 0, since |a + b e^(i theta)| >= (a + b) cos(theta/2). With that, the trapezoidal rule (normal
noise) and Gauss's rule (Laplace, exponential) converge geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.balls import precision

__all__ = [
    "LARGEST_EPSILON",
    "LEAST_MASS",
    "MOST_ATOMS",
    "STRIP",
    "AtomRows",
    "QuadratureRange",
    "Rule",
    "Variation",
    "atoms_rule",
    "bounded_rule",
    "integer_rule",
    "legendre",
    "normal_rule",
    "replaced_rule",
    "soften",
]

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
    """What the terms of ln Z may exceed its size by."""
    soft: Floats | None = None
    left: Floats | None = None
    softer: float = 1.0
    variation: Variation | None = None
    """At a tilt c: ln V of each row, V the total variation of the density of e^(cL), sampled; and its atoms."""
    integers: tuple[Floats, float] | None = None
    """Discrete Gaussian noise: noise_std >= 1 of each row, and the sensitivity."""


def atoms_rule(rows: AtomRows) -> Rule:
    """Atoms are their own nodes.

    Losses and masses are right to a few units, which the nodes count as relative errors; only the staircase's
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


def integer_rule(std: Floats, s: float, rates: Floats, reach: QuadratureRange) -> Rule | None:
    """Sums over the integers: themselves where few, else (by the same strip) the integral, on coarser nodes."""
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
