"""How far one unit can move a vector of integers, exactly, in three norms.

A statistic's integers are sums over rows, row by row: f(D) = sum of c(row). A unit with at most m rows adds a
point u of m * conv(C), C the set of contributions c(row) together with 0 where a row may count nowhere (a person
may always have fewer rows). Between neighbours f moves by u (add-or-remove) or by u - u' (replace-one). Norms and
their squares are convex, so the largest move is between extreme points: that is how each formula is proved, and
why it is attained. All numbers are in steps of the statistic's grid. See docs/theory/contribution-polytopes.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import UnitMismatch
from tacit.guarantees import Coupled, GroupOf, Neighbours, People, Rows, Unit

__all__ = [
    "GlobalSensitivity",
    "base_unit",
    "boxes",
    "group_limit",
    "replaced",
    "row_limit",
    "simplex",
    "stacked",
    "subsets",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalSensitivity:
    """sup over neighbours of |f(D) - f(D')| in L1, of its squared L2 norm, and in Linf; exact."""

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction

    @property
    def none(self) -> bool:
        """Can no unit move it? Then it is public under this relation and needs no noise."""
        return self.l1 == 0

    def times(self, factor: int) -> GlobalSensitivity:
        """For `factor` units at once: norms grow by the factor, which is attained as the units may be alike."""
        return GlobalSensitivity(
            l1=self.l1 * factor, l2_squared=self.l2_squared * factor**2, linf=self.linf * factor
        )


def _sensitivity(l1: int | Fraction, l2_squared: int | Fraction, linf: int | Fraction) -> GlobalSensitivity:
    return GlobalSensitivity(l1=Fraction(l1), l2_squared=Fraction(l2_squared), linf=Fraction(linf))


def base_unit(unit: Unit) -> tuple[Unit, int]:
    """The row or person that a unit is made of, and how many of them."""
    base, size = (unit.of, unit.size) if isinstance(unit, GroupOf) else (unit, 1)
    if isinstance(base, Coupled) or not isinstance(base, Rows | People):
        raise UnitMismatch(
            left=str(unit), right="rows or people", hint="a table protects rows() or people(...)"
        )
    return base, size


def row_limit(unit: Unit) -> int:
    """How many rows of one unit are used."""
    base, _ = base_unit(unit)
    return base.at_most if isinstance(base, People) else 1


def group_limit(unit: Unit, cells: int | None) -> int:
    """In how many cells one unit can be counted."""
    base, _ = base_unit(unit)
    limits = [row_limit(unit)]
    if isinstance(base, People) and base.groups is not None:
        limits.append(base.groups)
    if cells is not None:
        limits.append(cells)
    return min(limits)


def replaced(unit: Unit) -> bool:
    """Are neighbours made by replacing?"""
    return base_unit(unit)[0].neighbours is Neighbours.REPLACE_ONE


def boxes(
    intervals: Sequence[tuple[int, int]], unit: Unit, *, cells: int | None, absent: bool
) -> GlobalSensitivity:
    """Rows that add (v_1, ..., v_r), v_i anywhere in [a_i, b_i], to the cell they lie in.

    With M_i = max(|a_i|, |b_i|) and D_i = b_i - a_i, and m rows for each unit, the extreme contributions are m times
    the corners of the box, in one cell, and 0 where that is possible. Add-or-remove: L1 = m sum M_i,
    L2^2 = m^2 sum M_i^2, Linf = m max M_i. Replace-one: two corners in one cell (D), one corner against nothing
    (M, if `absent`: a person always may have no row), or two corners in two cells (2 sum M_i, 2 sum M_i^2, max M_i).
    """
    m = row_limit(unit)
    large = [max(abs(a), abs(b)) for a, b in intervals]
    moves = [(sum(large), sum(x * x for x in large), max(large))]
    if replaced(unit):
        wide = [b - a for a, b in intervals]
        one_cell = (sum(wide), sum(x * x for x in wide), max(wide))
        alone = moves if absent or m > 1 or isinstance(base_unit(unit)[0], People) else []
        two_cells = [(2 * moves[0][0], 2 * moves[0][1], moves[0][2])] if cells is None or cells > 1 else []
        moves = [one_cell, *alone, *two_cells]
    best = _sensitivity(*(max(x[i] for x in moves) for i in range(3)))
    return best.times(m * base_unit(unit)[1])


def simplex(total: int, unit: Unit) -> GlobalSensitivity:
    """Rows that add a vector of whole numbers >= 0 with sum T, all of it in one coordinate for at least two rows.

    The extreme contributions of a unit with m rows are m T e_i (and 0). Add-or-remove: m T in every norm.
    Replace-one: m T (e_i - e_j): L1 = 2 m T, L2^2 = 2 m^2 T^2, Linf = m T, in one cell or in two.
    """
    twice = 2 if replaced(unit) else 1
    return _sensitivity(twice * total, twice * total**2, total).times(row_limit(unit) * base_unit(unit)[1])


def subsets(unit: Unit, *, cells: int | None) -> GlobalSensitivity:
    """A unit that adds 1 to each of at most t cells: how many people there are in each cell.

    Add-or-remove: L1 = L2^2 = t. Replace-one: the symmetric difference of two sets of at most t cells,
    min(2 t, cells). Linf = 1. Here t = min(rows of a person, groups of a person, cells).
    """
    t = group_limit(unit, cells)
    if replaced(unit):
        t = 2 * t if cells is None else min(2 * t, cells)
    return _sensitivity(t, t, 1).times(base_unit(unit)[1])


def stacked(tables: int, unit: Unit) -> GlobalSensitivity:
    """Rows that add 1 to one cell of each of several tables (all of them with at least two keys a column).

    The sum of the single tables' moves is attained by rows that differ in every column: L1 = m k (twice that for
    replace-one), L2^2 = m^2 k (twice), Linf = m.
    """
    twice = 2 if replaced(unit) else 1
    return _sensitivity(twice * tables, twice * tables, 1).times(row_limit(unit) * base_unit(unit)[1])
