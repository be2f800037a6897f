"""The Kullback-Leibler divergence of a pair, from above: Rényi order 1 (`docs/theory/kullback-leibler.md`).

D(P||Q) is the integral over t from 1 on of h(t)/t + h'(t)/t^2, with h the curve of (P, Q) and h' that of (Q, P). Both
terms are convex in t, so that the trapezoidal rule, on any nodes, bounds them from above.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.exact.arrays import Floats
from tacit.pld.pairs.base import Pair

__all__ = ["kullback_leibler"]

_NODES = 20_000
_ROUNDED = 1e-11
"""What sums of this many terms may lose, relatively; each term is right to a few units."""
_BEYOND = 40.0
_TAIL_ORDERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)


def kullback_leibler(pair: Pair) -> float:
    """An upper bound on D(P||Q); math.inf where P reaches what Q cannot."""
    if pair.infinite_mass.high > 0:
        return math.inf
    squared = pair.gaussian_squared
    if squared is not None:
        return math.nextafter(float(squared / 2), math.inf)
    top = pair.largest_loss.high
    bottom = -pair.smallest_loss.low if pair.reverse_infinite_mass.high == 0 else math.inf
    forward, reach = _integral(pair, top, power=1)
    backward, _ = _integral(pair if pair.symmetric else pair.swapped(), bottom, power=2)
    found = (forward + backward) * (1 + _ROUNDED)
    if math.isinf(top):
        found += _tail(pair, reach)
    # Divergences do not fall with the order: a pair that knows those near 1 may know this one better.
    return min(found, pair.renyi(2.0))


def _integral(pair: Pair, top: float, *, power: int) -> tuple[float, float]:
    """The trapezoidal rule for h(t)/t^power on [1, e^reach], and the rest of h/t^2 beyond; and the reach."""
    reach = top if math.isfinite(top) and top < 500 else _reach(pair)
    if reach == 0:
        return 0.0, 0.0
    x = reach * np.linspace(0.0, 1.0, _NODES) ** 2
    if reach < top:
        # Little is left beyond: few nodes serve as far as divergences of small orders tell the rest.
        x = np.concatenate([x, np.geomspace(reach, min(reach + _BEYOND, top, 600.0), _NODES // 4)[1:]])
        reach = float(x[-1])
    h = pair.hockey_stick_grid(x)[1]
    # In t: the node spacing e^x (e^dx - 1), written so that small steps keep their digits.
    width = np.exp(x[:-1]) * np.expm1(np.diff(x))
    ends: Floats = h * np.exp(-power * x)
    total = float(np.sum(width * (ends[:-1] + ends[1:]) / 2))
    if power == 2 and reach < top:
        total += float(h[-1]) * math.exp(
            -reach
        )  # h falls: the integral of h/t^2 beyond e^reach is at most this
    return total, reach


def _reach(pair: Pair) -> float:
    """Where the curve has all but vanished."""
    tried = np.concatenate([[0.0], np.geomspace(2.0**-30, 500.0, 400)])
    h = pair.hockey_stick_grid(tried)[1]
    small = np.flatnonzero(h <= 1e-12 * h[0])
    return float(tried[small[0]] if small.size else tried[-1])


def _tail(pair: Pair, reach: float) -> float:
    """The integral of h(t)/t beyond e^reach: h(t) <= e^((a-1) D_a) t^(1-a) (a-1)^(a-1) / a^a at every order a."""
    best = math.inf
    for a in _TAIL_ORDERS:
        divergence = pair.renyi(a)
        if math.isfinite(divergence):
            log = (
                (a - 1) * (divergence - reach) + (a - 1) * math.log(a - 1) - a * math.log(a) - math.log(a - 1)
            )
            best = min(best, math.exp(min(log, 700.0)) * (1 + 1e-9))
    return best
