"""Who shares a mask with whom: everybody up to 200 holders; beyond, neighbours on a ring in an order that is drawn.

The ring's order follows from the digest of all first messages, to which every honest holder adds fresh random keys.
With k/2 neighbours on either side the honest ones stay connected unless k/2 holders in a row are corrupt or gone, and
a secret stays one unless `threshold` of its holder's k + 1 share keepers are corrupt. For a corrupt share and a lost
share that are drawn at random both chances are hypergeometric (theorem `sparse-masks`), and are added to delta.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

from tacit.errors import InvalidParameter
from tacit.exact.rounding import up
from tacit.parties.sizes import COMPLETE, Sizes

__all__ = ["Ring", "ring_for", "surrounded"]

MOST_SIDE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """`side` neighbours each way and a threshold for the shares that they keep; side = 0 is the complete graph."""

    side: int
    threshold: int
    delta: float

    def keepers(self, sizes: Sizes, seed: bytes) -> list[list[int]]:
        """For each holder those who share a mask with it and keep shares of its secrets, itself among them."""
        n = sizes.holders
        if self.side == 0:
            return [list(range(n)) for _ in range(n)]
        order = sorted(range(n), key=lambda i: hashlib.sha256(seed + i.to_bytes(4, "little")).digest())
        found: list[list[int]] = [[] for _ in range(n)]
        for place, i in enumerate(order):
            found[i] = sorted(order[(place + step) % n] for step in range(-self.side, self.side + 1))
        return found


def surrounded(*, holders: int, corrupt: int, gone: int, side: int, threshold: int) -> float:
    """A bound, rounded up, on the chance that an honest holder is cut off or that a secret of one is known.

    n prod_{i < side} (b - i)/(n - i) for b = corrupt + gone in a row, plus n Pr[Hypergeometric >= threshold].
    """
    n, bad = holders, corrupt + gone
    row = Fraction(n)
    for i in range(side):
        row *= Fraction(max(bad - i, 0), n - i)
    k = 2 * side
    ways = sum(comb(corrupt, j) * comb(n - 1 - corrupt, k - j) for j in range(threshold, min(k, corrupt) + 1))
    known = Fraction(n * ways, comb(n - 1, k))
    return up(min(row + known, Fraction(1)))


@lru_cache(maxsize=64)
def ring_for(sizes: Sizes, delta: float = 0.0) -> Ring:
    """The complete graph, or the smallest ring whose chance is at most `delta` where there are more than 200."""
    if sizes.holders <= COMPLETE:
        return Ring(side=0, threshold=sizes.threshold, delta=0.0)
    gone = sizes.holders - sizes.fewest
    for side in range(4, min(MOST_SIDE, (sizes.holders - 1) // 2) + 1):
        # More than half of the keepers open a secret: as many may be gone, and fewer must be corrupt.
        threshold = side + 1
        found = surrounded(
            holders=sizes.holders, corrupt=sizes.colluding, gone=gone, side=side, threshold=threshold
        )
        if found <= delta:
            return Ring(side=side, threshold=threshold, delta=found)
    raise InvalidParameter(
        parameter="graph_delta", value=delta, must="be a chance that a ring of at most 400 neighbours keeps to",
        hint=f"more than {COMPLETE} holders share masks with neighbours only; offer a larger one, such as 1e-9",
    )  # fmt: skip
