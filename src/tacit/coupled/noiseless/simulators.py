"""Which value a simulator puts in place of the protected row: on the grid, and well inside.

A simulator whose value lies off the lattice of the sums is told apart at once (delta = 1). The middle of the range is
best where both ends are equally far; elsewhere the value is moved, and a coin is thrown between two neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["chosen", "middle"]

_FEW = 16
_PARTS = 16
_GOLDEN = 0.6180339887498949
_MUCH = 1.6


def middle(top: int) -> dict[int, float]:
    """The middle of the range, kept on the grid: one value, or a fair coin between two."""
    return {top // 2: 1.0} if top % 2 == 0 else {top // 2: 0.5, top // 2 + 1: 0.5}


def _between(place: int, parts: int) -> dict[int, float]:
    """The law of mean place/parts on the two values around it."""
    whole, part = divmod(place, parts)
    return {whole: 1.0} if part == 0 else {whole: 1.0 - part / parts, whole + 1: part / parts}


def chosen(top: int, factor: Callable[[dict[int, float]], float], *, even: bool = False) -> dict[int, float]:
    """The best of: one value or a coin between two neighbours (by golden section), a fair coin between the ends.

    `factor` is the e^epsilon of a simulator, quasi-convex in its mean; any choice is right, a better one is smaller.
    """
    best = middle(top)
    least = factor(best)
    if not even:
        parts = _PARTS if top < _FEW else 1
        a, b = 0, top * parts
        known: dict[int, float] = {}

        def at(place: int) -> float:
            if place not in known:
                known[place] = factor(_between(place, parts))
            return known[place]

        while b - a > 2:
            left = a + max(1, round((b - a) * (1 - _GOLDEN)))
            right = max(left + 1, a + round((b - a) * _GOLDEN))
            if at(left) <= at(right):
                b = right
            else:
                a = left
        place = min(range(a, b + 1), key=at)
        if at(place) < least:
            best, least = _between(place, parts), at(place)
    if least > _MUCH and top > 1:
        ends = {0: 0.5, top: 0.5}
        if factor(ends) < least:
            best = ends
    return best
