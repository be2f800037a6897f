"""Hockey-stick divergences of finite distributions, in exact rationals.

    H_E(P || Q) = sum over t of max(0, P(t) - E Q(t)),   E = e^epsilon

P and Q are (epsilon, delta)-indistinguishable if H_E in both directions is at most delta. H_E is convex, falling and
piecewise linear in E, with corners at the ratios P(t)/Q(t): so the smallest E for a delta is rational too.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tacit.coupled.numbers import Distribution

__all__ = ["distance", "event", "excess", "mixed", "smallest_factor", "total_variation"]

ZERO = Fraction(0)


def excess(p: Distribution, q: Distribution, factor: Fraction) -> Fraction:
    """H_E(P || Q)."""
    out = ZERO
    for outcome, weight in p.items():
        other = q.get(outcome)
        more = weight if other is None else weight - factor * other
        if more > 0:
            out += more
    return out


def distance(p: Distribution, q: Distribution, factor: Fraction) -> Fraction:
    """The larger of both directions: the smallest delta of P and Q at this factor."""
    return max(excess(p, q, factor), excess(q, p, factor))


def total_variation(p: Distribution, q: Distribution) -> Fraction:
    """Statistical distance: H_1."""
    return excess(p, q, Fraction(1))


def event(p: Distribution, q: Distribution, factor: Fraction) -> tuple[Any, ...]:
    """The outcomes where P is above E Q: the event on which the excess is reached."""
    return tuple(t for t, weight in p.items() if weight > factor * q.get(t, ZERO))


def smallest_factor(p: Distribution, q: Distribution, delta: Fraction) -> Fraction | None:
    """The smallest E >= 1 with H_E(P || Q) <= delta; None if there is none.

    Outcomes that Q never gives stay in the excess for every E. Between two corners the sum runs over a fixed set S:
    P(S) - E Q(S) = delta is solved there.
    """
    kept = sum((w for t, w in p.items() if t not in q), ZERO)
    if kept > delta:
        return None
    if excess(p, q, Fraction(1)) <= delta:
        return Fraction(1)
    ratios = sorted(((w / q[t], w, q[t]) for t, w in p.items() if t in q), reverse=True)
    above, below = kept, ZERO
    for place, (_, w, other) in enumerate(ratios):
        above, below = above + w, below + other
        solution = (above - delta) / below
        following = ratios[place + 1][0] if place + 1 < len(ratios) else ZERO
        if solution >= following:
            return max(solution, Fraction(1))
    return Fraction(1)


def mixed(weights: Distribution, kernel: Any) -> dict[Any, Fraction]:
    """The distribution of what a kernel says about a random input: sum over a of w(a) K(a)."""
    if len(weights) == 1:
        (only,) = weights
        return dict(kernel[only])
    out: dict[Any, Fraction] = {}
    for given, weight in weights.items():
        for outcome, chance in kernel[given].items():
            out[outcome] = out.get(outcome, ZERO) + weight * chance
    return out
