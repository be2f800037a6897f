"""Is one curve below another at every real epsilon? Decided by parameters that rise, or at finitely many points.

Curves fall in epsilon. So if delta(e_{i-1}) <= delta'(e_i) at points 0 = e_0 < e_1 < ... < e_m, and delta(e_m) is at
most the limit of delta', then delta <= delta' on all of [0, infinity): between two points delta is at most its left
value, and delta' at least its right one. Below 0 the same is asked of the swapped pairs. Theorem `curve-order`.
"""

from __future__ import annotations

import math
from enum import Enum

from tacit.guarantees.bounds.profile import Profile
from tacit.guarantees.curve import Curve

__all__ = ["Order", "compare"]

MOST_POINTS = 400
"""Values of each curve that are looked at before the question is given up."""


class Order(Enum):
    """What was found out."""

    BELOW = "it is below at every epsilon"
    ABOVE = "its delta is larger at some epsilon"
    UNDECIDED = (
        "the curves are too near each other, or bend without end, to be told apart at finitely many points"
    )


def compare(known: Profile, wanted: Profile) -> tuple[Order, float | None]:
    """Whether every direction of `known` is below that of `wanted`; with an epsilon where it is above."""
    found: tuple[Order, float | None] = (Order.BELOW, None)
    for index in range(max(len(known.directions), len(wanted.directions))):
        one = known.directions[min(index, len(known.directions) - 1)]
        other = wanted.directions[min(index, len(wanted.directions) - 1)]
        verdict = _below(one, other)
        if verdict[0] is Order.ABOVE:
            return verdict
        if verdict[0] is Order.UNDECIDED:
            found = verdict
    return found


def _below(one: Curve, other: Curve) -> tuple[Order, float | None]:
    if one.rises_to(other):
        return Order.BELOW, None
    first = _right_half(one, other)
    if first[0] is not Order.BELOW or (one.symmetric and other.symmetric):
        return first
    back = _right_half(one.swapped(), other.swapped())
    return back if back[0] is not Order.ABOVE else (Order.ABOVE, -(back[1] or 0.0))


def _right_half(one: Curve, other: Curve) -> tuple[Order, float | None]:
    """On [0, infinity)."""
    left = MOST_POINTS
    last = one.epsilon(other.delta(math.inf).low).high
    if math.isinf(last):
        # No last point: the answer can only be no.
        for at in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0):
            if one.delta(at).low > other.delta(at).high:
                return Order.ABOVE, at
        return Order.UNDECIDED, None
    waiting = [(0.0, last)] if last else []
    if one.delta(last).high > other.delta(math.inf).low:
        return Order.UNDECIDED, None
    if not last and one.delta(0.0).high > other.delta(0.0).low:
        return Order.UNDECIDED, None
    while waiting:
        start, end = waiting.pop()
        left -= 1
        if one.delta(start).high <= other.delta(end).low:
            continue
        middle = (start + end) / 2
        here, there = one.delta(middle), other.delta(middle)
        if here.low > there.high:
            return Order.ABOVE, middle
        if left < 0 or not start < middle < end:
            return Order.UNDECIDED, None
        waiting += [(middle, end), (start, middle)]
    return Order.BELOW, None
