"""Who shares a mask with whom: everybody up to 200 holders; beyond, neighbours on a ring in an order that is drawn.

The ring's order follows from the digest of all first messages, to which every honest holder adds fresh random keys.
With m neighbours on either side the honest ones stay connected unless m holders in a row are corrupt or gone. An
aggregator that names holders as gone knows the order, so holders sign no list on which more than m/2 of any m in a row
are gone: then as many of them must be corrupt, which the order decides, and a secret stays one unless `threshold` of
its holder's 2m + 1 share keepers are corrupt. Both chances are hypergeometric (theorem `sparse-masks`); they are
granted `TRIES` orders, and are added to delta.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

from tacit.errors import InvalidParameter
from tacit.exact.rounding import up
from tacit.parties.sizes import COMPLETE, Sizes

__all__ = ["TRIES", "Ring", "at_least", "most_gone", "refused", "ring_for", "surrounded"]

MOST_SIDE = 200
TRIES = 1 << 60
"""How many orders an aggregator may draw by trying first messages of its own holders: each takes a hash."""
MOST_FAILING = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """`side` neighbours each way and a threshold for the shares that they keep; side = 0 is the complete graph.

    `delta` is the chance that an honest holder is exposed, `failing` the one that holders refuse a list of survivors
    though nobody lies, if as many are lost by chance as may be.
    """

    side: int
    threshold: int
    delta: float
    failing: float = 0.0

    def order(self, sizes: Sizes, seed: bytes) -> list[int]:
        """The holders as they stand on the ring."""
        return sorted(
            range(sizes.holders), key=lambda i: hashlib.sha256(seed + i.to_bytes(4, "little")).digest()
        )

    def keepers(self, sizes: Sizes, seed: bytes) -> list[list[int]]:
        """For each holder those who share a mask with it and keep shares of its secrets, itself among them."""
        n = sizes.holders
        if self.side == 0:
            return [list(range(n)) for _ in range(n)]
        order = self.order(sizes, seed)
        found: list[list[int]] = [[] for _ in range(n)]
        for place, i in enumerate(order):
            found[i] = sorted(order[(place + step) % n] for step in range(-self.side, self.side + 1))
        return found

    def gaps(self, sizes: Sizes, seed: bytes, left: Collection[int]) -> bool:
        """Are more than half of some `side` holders in a row gone? Such a list of survivors is not signed."""
        if self.side == 0:
            return False
        kept = set(left)
        gone = [i not in kept for i in self.order(sizes, seed)]
        here = sum(gone[: self.side])
        for place in range(sizes.holders):
            if here > most_gone(self.side):
                return True
            here += gone[(place + self.side) % sizes.holders] - gone[place]
        return False

    @property
    def record(self) -> dict[str, int | float]:
        """For certificates."""
        return {
            "neighbours": 2 * self.side,
            "threshold": self.threshold,
            "chance": self.delta,
            "failing": self.failing,
        }


def most_gone(side: int) -> int:
    """How many of `side` holders in a row may be gone: so that of 2 side + 1 keepers always side + 1 are left."""
    return side // 2


def surrounded(*, holders: int, corrupt: int, side: int, threshold: int) -> float:
    """A bound, rounded up, on the chance that honest holders are cut off or that a secret of one is known.

    TRIES n (Pr[Hypergeometric(n, corrupt, side) >= side - side // 2] + Pr[Hypergeometric(n - 1, corrupt, 2 side) >=
    threshold]).
    """
    n = holders
    row = at_least(total=n, marked=corrupt, drawn=side, count=side - most_gone(side))
    known = at_least(total=n - 1, marked=corrupt, drawn=2 * side, count=threshold)
    return up(min(TRIES * n * (row + known), Fraction(1)))


def refused(*, holders: int, gone: int, side: int) -> float:
    """A bound on the chance that lost holders, if they are drawn at random, make the others refuse their list."""
    return up(
        min(
            holders * at_least(total=holders, marked=gone, drawn=side, count=most_gone(side) + 1), Fraction(1)
        )
    )


def at_least(*, total: int, marked: int, drawn: int, count: int) -> Fraction:
    """Pr[Hypergeometric >= count]: so many marked ones among those drawn from a total."""
    ways = sum(
        comb(marked, j) * comb(total - marked, drawn - j) for j in range(count, min(drawn, marked) + 1)
    )
    return Fraction(ways, comb(total, drawn))


@lru_cache(maxsize=64)
def ring_for(sizes: Sizes, delta: float = 0.0) -> Ring:
    """The complete graph, or the smallest ring whose chance is at most `delta` where there are more than 200."""
    if sizes.holders <= COMPLETE:
        return Ring(side=0, threshold=sizes.threshold, delta=0.0)
    gone, best = sizes.holders - sizes.fewest, None
    for side in range(4, min(MOST_SIDE, (sizes.holders - 1) // 2) + 1):
        # More than half of the keepers open a secret: fewer must be corrupt.
        threshold = side + 1
        found = surrounded(holders=sizes.holders, corrupt=sizes.colluding, side=side, threshold=threshold)
        if found > delta:
            continue
        failing = refused(holders=sizes.holders, gone=gone, side=side)
        best = failing if best is None else min(best, failing)
        if failing <= MOST_FAILING:
            return Ring(side=side, threshold=threshold, delta=found, failing=failing)
    if best is not None:
        raise InvalidParameter(
            parameter="fewest", value=sizes.fewest, must=f"be nearer to holders ({sizes.holders})",
            hint=f"if so many are lost, a session on a ring of 400 neighbours fails with a chance of up to {best:.2g}",
        )  # fmt: skip
    raise InvalidParameter(
        parameter="graph_delta", value=delta, must="be a chance that a ring of at most 400 neighbours keeps to",
        hint=f"more than {COMPLETE} holders share masks with neighbours only; offer a larger one, such as 1e-9",
    )  # fmt: skip
