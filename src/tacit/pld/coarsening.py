"""Very many different pairs that have no nodes, as at most a hundred or so runs of near ones.

Each run is replaced by as many copies of one pair above all of its members: the same pair with the largest
parameters. That is safe because all curves here rise with each parameter (`docs/theory/rising-parameters.md`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

from tacit.pld.pairs.base import Pair
from tacit.pld.product import Product

__all__ = ["above", "coarsened"]

_Member = tuple[Pair, int, tuple[float, ...]]

_MOST = 64
_LEAST = 256


def coarsened(parts: list[tuple[Pair, int]]) -> list[tuple[Pair, int]]:
    """The parts, with those that are upper bounds without nodes gathered into runs if there are very many."""
    if len(parts) <= _LEAST:
        return parts
    kept: list[tuple[Pair, int]] = []
    families: dict[Any, list[_Member]] = {}
    for pair, count in parts:
        found = None if pair.exact or pair.quadrature_key() is not None else pair.family()
        if found is None:
            kept.append((pair, count))
        else:
            families.setdefault(found[0], []).append((pair, count, found[1]))
    total = sum(len(members) for members in families.values())
    if total <= _LEAST:
        return parts
    for members in families.values():
        for run in _runs(members, max(1, round(_MOST * len(members) / total))):
            largest = above([pair for pair, _, _ in run])
            kept.append((largest, sum(count for _, count, _ in run)))
    return list(Product(pairs=kept).pairs)


def above(pairs: Sequence[Pair]) -> Pair:
    """The pair with the largest parameters of pairs of one family: above each of them."""
    rows = [found[1] for pair in pairs if (found := pair.family()) is not None]
    return pairs[0].with_parameters(iter([max(column) for column in zip(*rows, strict=True)]))


def _runs(members: list[_Member], most: int) -> list[list[_Member]]:
    """At most so many runs: time and again the one that would lose most is cut where its widest gap is halved."""

    def entry(run: list[_Member], order: int) -> tuple[float, int, int, float, list[_Member]]:
        worst, axis, middle = 0.0, 0, 0.0
        for k in range(len(run[0][2])):
            low, high = min(m[2][k] for m in run), max(m[2][k] for m in run)
            loss = math.log(high / low) if low > 0 else (math.inf if high > 0 else 0.0)
            if loss > worst:
                worst, axis, middle = loss, k, (low + high) / 2
        size = math.prod(max(m[2][k] for m in run) for k in range(len(run[0][2])))
        number = sum(m[1] for m in run)
        return -(number * size * min(worst, 50.0)), order, axis, middle, run

    heap = [entry(members, 0)]
    while len(heap) < most and heap[0][0] < 0:
        _, _, axis, middle, run = heapq.heappop(heap)
        for k, half in enumerate((True, False)):
            heapq.heappush(
                heap, entry([m for m in run if (m[2][axis] <= middle) is half], 2 * len(heap) + k + 1)
            )
    return [row[4] for row in heap]
