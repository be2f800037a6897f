"""Products with few distinct losses, written out: no grid, hence no blur.

A pair with m losses, repeated n times, has C(n+m-1, m-1) different sums; where the product of these numbers
is small the composition is a list of (loss, mass). Masses and losses are computed as balls and kept as
floats, with the errors of the sums bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, groupby, pairwise
from typing import Any, ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.balls import ball, precision
from tacit.exact.rounding import Interval
from tacit.pld.pairs.base import Pair
from tacit.pld.product import Product

__all__ = ["Enumerated", "enumerated"]

_MOST_ATOMS = 4096
_MOST_TIMES = 4096
_UNIT = 2.0**-52


@dataclass(frozen=True, slots=True, eq=False)
class Enumerated:
    """The losses (ascending) and P-masses of a product, and the mass at infinity."""

    approximates: ClassVar[bool] = False

    losses: Floats
    masses: Floats
    infinite: Interval

    def delta(self, epsilon: float, tolerance: float = 0.0) -> Interval:
        """Enclosure of P(infinity) + sum of masses (1 - e^{epsilon - loss}) over losses above epsilon."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        above, masses = self.losses[first:], self.masses[first:]
        terms = masses * -np.expm1(epsilon - above)
        value = math.fsum(terms)
        # Each loss is right to a unit of itself, each mass and each factor to a few units; an atom whose loss
        # lies within an error of epsilon adds less than that error, and stands in the second sum.
        error = 8 * _UNIT * value
        reach = 4 * _UNIT * (1.0 + abs(epsilon) + float(np.abs(self.losses).max()))
        near = self.masses[int(np.searchsorted(self.losses, epsilon - reach, side="left")) :]
        error += reach * math.fsum(near)
        low = max(0.0, (value - error) * (1 - 4 * _UNIT)) + self.infinite.low
        high = (value + error) * (1 + 4 * _UNIT) + self.infinite.high
        return Interval(low=min(low * (1 - _UNIT), 1.0), high=min(high * (1 + _UNIT), 1.0))

    def epsilon(self, delta: float, tolerance: float = 0.0, known: float = 0.0) -> Interval:
        """Enclosure of the smallest epsilon >= 0 with delta(epsilon) <= delta, for delta above infinity's mass."""
        if self.delta(0.0).high <= delta:
            return Interval(low=0.0, high=0.0)
        top = max(float(self.losses[-1]), 0.0) * (1 + 4 * _UNIT)
        return Interval(low=_cross(lambda e: self.delta(e).low > delta, top)[0], high=self._high(delta, top))

    def _high(self, delta: float, top: float) -> float:
        return _cross(lambda e: self.delta(e).high > delta, top)[1]


def _cross(over: Any, top: float) -> tuple[float, float]:
    """Adjacent points of [0, top] between which `over` turns from true to false (top counts as false)."""
    low, high = 0.0, top
    if not over(low):
        return 0.0, 0.0
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if over(middle):
            low = middle
        else:
            high = middle
    return low, high


@lru_cache(maxsize=256)
def enumerated(product: Product) -> Enumerated | None:
    """The product written out, or None where a pair has no list of losses or the list would be long."""
    size = 1
    for pair, count in product.pairs:
        kinds = pair.atom_count
        if kinds is None or count > _MOST_TIMES:
            return None
        size *= math.comb(count + kinds - 1, kinds - 1)
        if size > _MOST_ATOMS:
            return None
    with precision(160):
        sums: list[tuple[Any, Any]] = [(ball(0), ball(1))]
        for pair, count in product.pairs:
            own = list(_repeated(pair, count))
            sums = [(loss + more, mass * share) for loss, mass in sums for more, share in own]
        rows = sorted((float(loss.mid()), float(mass.mid())) for loss, mass in sums)
    return Enumerated(
        losses=np.array([r[0] for r in rows]),
        masses=np.array([r[1] for r in rows]),
        infinite=product.infinite_mass(),
    )


def _repeated(pair: Pair, count: int) -> Iterator[tuple[Any, Any]]:
    """Loss and mass of each way to draw `count` atoms, order aside."""
    atoms = pair.atoms()  # type: ignore[attr-defined]
    for shares in _shares(count, len(atoms)):
        ways = math.factorial(count)
        loss, mass = ball(0), ball(1)
        for index, share in shares:
            own, weight = atoms[index]
            ways //= math.factorial(share)
            loss += share * own
            mass *= weight**share
        yield loss, mass * ways


def _shares(total: int, kinds: int) -> Iterator[list[tuple[int, int]]]:
    """Every way to draw `total` of `kinds`, order aside: the kinds that are drawn, each with how often."""
    if total <= kinds:
        for drawn in combinations_with_replacement(range(kinds), total):
            yield [(kind, len(list(same))) for kind, same in groupby(drawn)]
        return
    # Bars between stars: the gaps are the shares.
    for bars in combinations(range(total + kinds - 1), kinds - 1):
        gaps = pairwise((-1, *bars, total + kinds - 1))
        yield [(kind, right - left - 1) for kind, (left, right) in enumerate(gaps) if right - left > 1]
