"""Quadrature of many pairs that are sampled without replacement, from one half of the pair that is sampled.

With Z the likelihood ratio of a symmetric pair under Q and g(Z) = 1 - q + q Z: the losses above 0 are ln g(Z) for
Z > 1, with the Q-masses of Z and the P-masses g times those; the losses below 0 are their mirror image; the rest
sits at 0 (`docs/theory/without-replacement-law.md`). Transforms are therefore Q-integrals of g^(z+1) and g^-z over
Z > 1: by Gauss's rule on panels, whose error is bounded on ellipses in which |arg Z| <= pi/2, or by the same rule
for sums over consecutive integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.pld.continuous import ExponentialPair, GaussianPair, LaplacePair
from tacit.pld.derived import WithoutReplacementPair
from tacit.pld.discrete_gaussian import DiscreteGaussianPair
from tacit.pld.distributions import UNIT
from tacit.pld.pair import FloatArray, Pair
from tacit.pld.quadrature import Quadrature
from tacit.pld.quadrature_rules import QuadratureRange, larger_atoms, legendre, positive_atoms
from tacit.pld.tabulated import FinitePair
from tacit.pld.variation import log_variation

__all__ = ["half_quadrature"]

_WANTED = 37.0
"""Errors of e^-37 = 1e-16 are asked of the rules."""
_MOST_PANEL = 96
_MOST_LISTED = 1 << 15
_DEEPEST = 37.0
"""Normal densities beyond this many deviations leave the range of floats, where a tilt may need them."""
_FURTHEST = 600.0
_RADII = np.array([1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 16.0, 32.0, 64.0, 200.0, 1000.0])[None, :]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Half:
    """ln Z > 0 at the nodes with Q-masses, their absolute error; the P-mass at infinity before sampling; ln Z at
    the edges of cells, from 0 upwards, and the least Q-density of ln Z in each."""

    ratio: FloatArray
    q: FloatArray
    error: float
    lost: FloatArray
    blur: FloatArray
    """Of each row, how many units (of the last place of 1) ln Z may be off by, beyond its own relative ones."""
    edges: FloatArray | None = None
    density: FloatArray | None = None


def half_quadrature(members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
    """Quadrature of pairs sampled without replacement of one shape; None where a rule would need too many."""
    pairs = [pair for pair, _ in members if isinstance(pair, WithoutReplacementPair)]
    rates = np.array([[pair.rate] for pair in pairs])
    base = [pair for pair in (p.single or p.either for p in pairs) if pair is not None]
    half = _half(base, rates, reach)
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
        variation=_variation(base, rates, rest[:, 0]),
    )


def _variation(
    base: Sequence[Pair], rates: FloatArray, rest: FloatArray
) -> Callable[[float], tuple[FloatArray, FloatArray]] | None:
    if not isinstance(base[0], GaussianPair):
        return None
    mu = np.array([[p.near] for p in base if isinstance(p, GaussianPair)])

    def at(tilt: float) -> tuple[FloatArray, FloatArray]:
        """Of both halves, which begin at the loss 0, where the rest sits."""
        both = [log_variation(mu, rates, power, mu / 2) for power in (tilt + 2, 1 - tilt)]
        return np.logaddexp(*both), np.maximum(rest, 0.0) + 1e-12

    return at


def _half(base: Sequence[Pair], rates: FloatArray, reach: QuadratureRange) -> _Half | None:
    first = base[0]
    if isinstance(first, GaussianPair):
        return _normal(np.array([[p.near] for p in base if isinstance(p, GaussianPair)]), rates, reach)
    if isinstance(first, LaplacePair | ExponentialPair):
        tops = np.array([[p.epsilon] for p in base if isinstance(p, LaplacePair | ExponentialPair)])
        return _bounded(tops, isinstance(first, LaplacePair), rates, reach)
    if isinstance(first, DiscreteGaussianPair):
        std = np.array([[float(p.noise_std)] for p in base if isinstance(p, DiscreteGaussianPair)])
        return _integers(std, first.sensitivity, rates, reach)
    if isinstance(first, FinitePair) and not first.symmetric:
        ratio, q, lost = larger_atoms(base)
        # Where two curves cross is known to a unit of their height over the angle, which is the mass there.
        top = float(np.max(np.log1p(rates * np.expm1(np.minimum(ratio, _FURTHEST)))))
        error = 64 * UNIT * ratio.shape[1] * (1 + reach.power + reach.frequency)
        error *= math.exp(min(reach.power * top, _FURTHEST))
        return _Half(ratio=ratio, q=q, error=error, lost=lost, blur=np.ones_like(lost))
    ratio, q, lost = positive_atoms(base)
    return _Half(ratio=ratio, q=q, error=64 * UNIT, lost=lost, blur=np.ones_like(lost))


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


def _normal(mu: FloatArray, rates: FloatArray, reach: QuadratureRange) -> _Half | None:
    """Q = N(0, 1) and ln Z = mu u at x = mu/2 + u, u > 0."""
    least, most = float(np.min(mu)), float(np.max(mu))
    length = _far(most, reach) - least / 2
    if length + most / 2 > _DEEPEST:
        return None

    def falling(left: FloatArray, side: FloatArray) -> FloatArray:
        return np.asarray((side * side - np.maximum(least / 2 + left, 0.0) ** 2) / 2 - 0.9)

    def rising(right: FloatArray, side: FloatArray) -> FloatArray:
        slope = np.abs(right) + most / 2 + 1 + _powers(reach)[0] * most
        return np.asarray(side * side / 2 + np.log(2 * slope + 2))

    rule = _panels(length, most, float(np.max(rates)), reach, (rising, falling))
    if rule is None:
        return None
    u, shares, error, blur = rule
    q = shares * np.exp(-((mu / 2 + u) ** 2) / 2) / math.sqrt(2 * math.pi)
    cells = np.concatenate([np.arange(0.0, 2.0, 0.5), np.arange(2.0, reach.power * most + 3.5, 1.0)])[None, :]
    density = np.exp(-((mu / 2 + cells[:, 1:]) ** 2) / 2) / math.sqrt(2 * math.pi) / mu
    return _Half(
        ratio=mu * u,
        q=q,
        error=error + 4 * math.exp(-_WANTED),
        lost=np.zeros_like(mu),
        blur=mu * blur,
        edges=mu * cells,
        density=density,
    )


def _bounded(tops: FloatArray, atoms: bool, rates: FloatArray, reach: QuadratureRange) -> _Half | None:
    """Q-density ~ e^(-l/2) on [0, epsilon], and the Laplace pair's atom at epsilon."""
    most = float(np.max(tops))
    slope = (_powers(reach)[0] + 0.5) * most

    def falling(left: FloatArray, side: FloatArray) -> FloatArray:
        # epsilon times the density at 0 is at most 1/2, for Laplace and exponential pairs.
        return np.asarray(np.maximum(-left, 0.0) * most / 2 - math.log(2))

    def rising(right: FloatArray, side: FloatArray) -> FloatArray:
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
    return _Half(ratio=ratio, q=q, error=error, lost=none, blur=tops * blur, edges=cells, density=density)


def _integers(std: FloatArray, sensitivity: int, rates: FloatArray, reach: QuadratureRange) -> _Half | None:
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

        def falling(left: FloatArray, side: FloatArray) -> FloatArray:
            return np.asarray(((side / narrow) ** 2 - (np.maximum(first + left, 0.0) / widest) ** 2) / 2)

        def rising(right: FloatArray, side: FloatArray) -> FloatArray:
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
    return _Half(ratio=ratio, q=q, error=error, lost=np.zeros_like(std), blur=off)


def _norm(std: FloatArray) -> FloatArray:
    """Sum of e^(-x^2/(2 std^2)) over the integers: themselves, or by Poisson's summation (to e^-78)."""
    x = np.arange(-40.0, 41.0)[None, :]
    few = np.sum(np.exp(-((x / np.minimum(std, 2.0)) ** 2) / 2), axis=1, keepdims=True)
    return np.asarray(np.where(std < 2, few, math.sqrt(2 * math.pi) * std))


_Height = Callable[[FloatArray, FloatArray], FloatArray]


def _panels(
    length: float,
    scale: float,
    rate: float,
    reach: QuadratureRange,
    heights: tuple[_Height, _Height],
    offset: float | None = None,
) -> tuple[FloatArray, FloatArray, float, float] | None:
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
    best: tuple[int, float, float, FloatArray] | None = None
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
def _gauss(order: int, number: int | None) -> tuple[FloatArray, FloatArray]:
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
