"""Rules of quadrature for the half Z > 1 of a pair: Gauss's rule on panels, sums over integers, atoms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.pld.quadrature_rules import AtomRows, QuadratureRange, legendre

__all__ = [
    "WithoutReplacementRule",
    "bounded_half",
    "integer_half",
    "larger_half",
    "normal_half",
    "positive_half",
]

_WANTED = 37.0
"""Errors of e^-37 = 1e-16 are asked of the rules."""


_MOST_PANEL = 96


_MOST_LISTED = 1 << 15


_DEEPEST = 37.0
"""Normal densities beyond this many deviations leave the range of floats, where a tilt may need them."""


_FURTHEST = 600.0


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
    """Of each row, how many units (of the last place of 1) ln Z may be off by, beyond its own relative ones."""
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
    """For tables that are met in both orders: the larger of both curves."""
    ratio, q, lost = _larger_atoms(rows)
    # Where two curves cross is known to a unit of their height over the angle, which is the mass there.
    top = float(np.max(np.log1p(rates * np.expm1(np.minimum(ratio, _FURTHEST)))))
    error = 64 * UNIT * ratio.shape[1] * (1 + reach.power + reach.frequency)
    error *= math.exp(min(reach.power * top, _FURTHEST))
    return WithoutReplacementRule(ratio=ratio, q=q, error=error, lost=lost, blur=np.ones_like(lost))


def _larger_atoms(rows: AtomRows) -> tuple[Floats, Floats, Floats]:
    """Positive losses, their Q-masses, and the P-mass at infinity, for the larger of the curves of a pair and of
    its swap at each t >= 1.

    Both are polygons in t with corners at the ratios; theirs is one with these corners and where they cross. The
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
    return peak + math.sqrt(2 * (_WANTED + math.log(4 * peak + 4)))


def normal_half(mu: Floats, rates: Floats, reach: QuadratureRange) -> WithoutReplacementRule | None:
    """Q = N(0, 1) and ln Z = mu u at x = mu/2 + u, u > 0."""
    least, most = float(np.min(mu)), float(np.max(mu))
    length = _far(most, reach) - least / 2
    if length + most / 2 > _DEEPEST:
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
        error=error + 4 * math.exp(-_WANTED),
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
    if number > _MOST_LISTED or far > _DEEPEST:
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
    error = error + 8 * math.exp(-_WANTED)
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
        ahead = np.minimum(scale * (centre + lead + wide), _FURTHEST)
        behind = np.clip(scale * (centre + lead - wide), -_FURTHEST, _FURTHEST)
        # Re g >= 1 - q, so that |arg g| is at most |Im g|/(1 - q), and at most |arg Z|.
        turn = np.minimum(theta, rate * np.exp(ahead) * np.sin(theta) / (1 - rate))
        below = np.log(1 - rate + rate * np.exp(np.minimum(behind, 0.0)) * np.cos(theta))
        modulus = np.maximum(heights[0](centre + wide, side), heights[1](centre - wide, side) - falls * below)
        cost = modulus + reach.frequency * turn + math.log(parts) + 2 * np.log(_RADII)
        if offset is None:
            cost = cost + math.log(64 / 15 * half) - np.log1p(-(_RADII**-2))
        else:
            cost = cost + math.log(4 * step) - np.log(_RADII - 1)
        usable = (scale * side <= math.pi / 2) & (ahead < _FURTHEST)
        orders = np.where(usable, np.ceil((cost + _WANTED) / (2 * np.log(_RADII))), np.inf)
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
    return np.concatenate(points)[None, :], np.concatenate(shares)[None, :], math.exp(-_WANTED), 8 * half


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
