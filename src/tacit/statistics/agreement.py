"""Several tables of counts of the same rows, released together: numbers that agree wherever tables overlap.

Post-processing of released numbers. All noisy tables of a family are blocks of one least-squares fit, so that a total
that several tables have is estimated from all of them, once. The error of every number is a known linear combination
of the noise of all blocks. Displayed numbers are whole, not negative and agree: the shared totals of a table are fixed
by the table before it. Theorem `agreeing-tables`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tacit.errors import NoLaw
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.data_classes import dataclass
from tacit.mechanisms.base import PartNoise
from tacit.statistics.families import NoisyTable, consistent_margins, margin
from tacit.statistics.totals import Columns, Sizes, block_variance, half_width, numbers, top_down


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyBlock:
    """A noisy table of a family: its columns, the noise of a number (None: exact), and the place of a table's
    cells in it.
    """

    columns: Columns
    law: PartNoise | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreeingTable:
    """One release of a family: its columns, its tables and its blocks, one of which has its cells."""

    columns: Columns
    shown: tuple[Columns, ...]
    blocks: tuple[NoisyBlock, ...]
    whole: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreeingTables:
    """Tables of the same rows over columns of these sizes."""

    sizes: Sizes
    members: tuple[AgreeingTable, ...]

    @property
    def laws(self) -> tuple[tuple[Columns, PartNoise | None], ...]:
        """All blocks of all members."""
        return tuple((b.columns, b.law) for m in self.members for b in m.blocks)

    def halves(self, which: int, level: float) -> dict[Columns, float]:
        """For each shown table of a member, the bound on the error of one of its numbers."""
        return {of: half_width(self.sizes, self.laws, of, 1 - level) for of in self.members[which].shown}

    def cells(self, noisy: Sequence[Sequence[Floats]]) -> list[Floats]:
        """The unbiased cells of every member: least squares over all blocks; values are in the order of the
        blocks.
        """
        tables: list[NoisyTable] = []
        whole: list[int] = []
        for member, values in zip(self.members, noisy, strict=True):
            whole.append(len(tables) + member.whole)
            tables += [
                NoisyTable(columns=b.columns, values=v, variance=block_variance(b.law))
                for b, v in zip(member.blocks, values, strict=True)
            ]
        fitted = consistent_margins(tables)
        return [fitted[i] for i in whole]

    def answers(self, noisy: Sequence[Sequence[Floats]], levels: Sequence[float]) -> list[tuple[Floats, ...]]:
        """Displayed value, low, high and the bound on the error, of every shown number of every member."""
        cells = self.cells(noisy)
        display = whole_tables([m.columns for m in self.members], cells)
        return [
            numbers(m.columns, m.shown, cells[i], display[i], self.halves(i, levels[i]))
            for i, m in enumerate(self.members)
        ]


def joined(sets: Sequence[Columns]) -> list[tuple[int, int | None]]:
    """The tables in an order in which each shares only columns of one earlier table with all earlier ones, and
    that table.

    Then whole tables can be made one after the other. There is one if and only if the sets form an acyclic hypergraph;
    the next table is always one with the most columns that were met before (Tarjan and Yannakakis 1984).
    """
    order: list[tuple[int, int | None]] = []
    met: set[str] = set()
    left = list(range(len(sets)))
    while left:
        chosen = max(left, key=lambda j: (len(met & set(sets[j])), len(sets[j])))
        common = met & set(sets[chosen])
        parent = next((i for i, _ in order if common <= set(sets[i])), None)
        if order and parent is None:
            raise NoLaw(
                operation="tables that agree with each other", reason="their columns form a ring",
                counterexample="a by b, b by c and c by a: whole numbers that agree two by two may belong to no table",
                hint="ask for one table of all these columns, or let one of them stand alone",
            )  # fmt: skip
        order.append((chosen, parent))
        left.remove(chosen)
        met |= set(sets[chosen])
    return order


def whole_tables(sets: Sequence[Columns], cells: Sequence[Floats]) -> list[AnyArray]:
    """Whole numbers that are not negative, near these tables, equal wherever two tables overlap."""
    found: dict[int, tuple[Columns, AnyArray]] = {}
    often: Mapping[str, int] = {c: sum(c in s for s in sets) for s in sets for c in s}
    for which, parent in joined(sets):
        columns = sets[which]
        shared: Columns = ()
        held: AnyArray | None = None
        if parent is not None:
            names, shown = found[parent]
            shared = tuple(c for c in columns if c in names)
            held = np.asarray(margin(shown, names, shared))
        # Columns of many tables first, so that their totals are rounded directly.
        ordered = (*shared, *sorted((c for c in columns if c not in shared), key=lambda c: -often[c]))
        turned = top_down(margin(cells[which], columns, ordered), held)
        found[which] = ordered, turned
    return [margin(found[i][1], found[i][0], s) for i, s in enumerate(sets)]
