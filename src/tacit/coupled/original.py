"""The original delta of noiseless privacy: the probability of values that are left out (Bhaskar et al. 2011).

There epsilon-indistinguishability (delta = 0) must hold for all values of a row except for a set of probability
delta; in the thesis's Def. 5.7 all values count, and the divergence may be delta. Neither implies the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.cells import Cell
from tacit.coupled.divergence import distance
from tacit.errors import NotCertified

__all__ = ["left_out"]

MOST_VALUES = 24


def left_out(cells: Sequence[Cell], factor: Fraction) -> Fraction:
    """The least probability, given z, of values whose removal leaves only indistinguishable ones; the worst case."""
    groups: dict[tuple[str, str, Any], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.prior, cell.pair, cell.auxiliary), []).append(cell)
    return max((_cover(members, factor) for members in groups.values()), default=Fraction(0))


def _cover(members: Sequence[Cell], factor: Fraction) -> Fraction:
    """The lightest set of values that meets every pair of values that can be told apart."""
    whole = sum((c.probability for c in members), Fraction(0))
    clash = [
        {j for j, b in enumerate(members) if j != i and distance(a.real, b.real, factor) > 0}
        for i, a in enumerate(members)
    ]
    open_values = [i for i, others in enumerate(clash) if others]
    if len(open_values) > MOST_VALUES:
        raise NotCertified(
            what="the original delta of noiseless privacy",
            reason=f"more than {MOST_VALUES} values of a row can be told from others",
            hint="merge values, or use the delta of Def. 5.7",
        )
    weights = [c.probability / whole for c in members]

    def least(left: frozenset[int]) -> Fraction:
        busy = [i for i in left if clash[i] & left]
        if not busy:
            return Fraction(0)
        # The value with most clashes is left out, or else all that clash with it are.
        i = max(busy, key=lambda k: len(clash[k] & left))
        others = clash[i] & left
        return min(
            weights[i] + least(left - {i}),
            sum((weights[j] for j in others), Fraction(0)) + least(left - others - {i}),
        )

    return least(frozenset(open_values))
