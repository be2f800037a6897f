"""A table of probabilities from its margins: junction trees where they exist, proportional fitting where not.

Post-processing of released margins. Both give the law of largest entropy with these margins: nothing is made up
beyond them. See docs/theory/proportional-fitting.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, NotCertified, TooManyCells
from tacit.exact.arrays import Floats
from tacit.statistics.families import Columns, NoisyTable, consistent_margins, margin

__all__ = ["Fit", "components", "fit_table", "junction_order", "whole_table"]

MOST_CELLS = 1 << 22
_ROUNDS = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """A table of probabilities on some columns, and how far its margins are from those asked for (in shares)."""

    columns: Columns
    values: Floats
    gap: float
    rounds: int


def fit_table(tables: Sequence[NoisyTable], *, tolerance: float = 1e-6, most_cells: int = MOST_CELLS) -> Fit:
    """The law of largest entropy on all columns whose margins are the tables', by iterative proportional fitting.

    Noisy tables are made consistent first, negative counts are cut off, and each table is scaled to 1. Where
    cutting left margins that no table has, the rounds circle around a compromise, and `gap` says how near it is: the
    largest distance, in total variation, of a margin from its table. Source: Deming, Stephan 1940; Csiszar 1975.
    """
    shares = [(t.columns, _shares(x)) for t, x in zip(tables, consistent_margins(tables), strict=True)]
    columns = tuple(dict.fromkeys(c for cols, _ in shares for c in cols))
    sizes = {c: n for cols, x in shares for c, n in zip(cols, x.shape, strict=True)}
    cells = math.prod(sizes.values())
    if cells > most_cells:
        raise TooManyCells(
            cells=cells, limit=most_cells,
            hint="choose margins that form a chain or a tree of columns, or fewer columns",
        )  # fmt: skip
    fit = np.full(tuple(sizes[c] for c in columns), 1.0 / cells)
    gap, best = math.inf, math.inf
    rounds = 0
    for rounds in range(1, _ROUNDS + 1):
        gap = 0.0
        for cols, goal in shares:
            here = margin(fit, columns, cols)
            gap = max(gap, 0.5 * float(np.abs(here - goal).sum()))
            ratio = np.divide(goal, here, out=np.zeros_like(goal), where=here > 0)
            fit = fit * _spread(ratio, cols, columns)
        if not fit.any():
            raise NotCertified(
                what="a table with these margins", reason="the margins exclude each other",
                hint="leave one of them out",
            )  # fmt: skip
        if gap <= tolerance or (rounds % 20 == 0 and gap > 0.99 * best):
            break
        best = min(best, gap) if rounds % 20 == 0 else best
    return Fit(columns=columns, values=fit / fit.sum(), gap=gap, rounds=rounds)


def whole_table(fit: Fit, *, total: int) -> npt.NDArray[np.int64]:
    """A table of whole non-negative counts with this total, whose margins therefore all agree: one table, rounded.

    Running sums are rounded in the order of the cells, so that every block of the leading columns is within 1 of its
    expected count; margins of other columns are off by sums of roundings. Post-processing.
    """
    if isinstance(total, bool) or not isinstance(total, int) or total < 0:
        raise InvalidParameter(parameter="total", value=total, must="be a whole number of at least 0")
    ends = np.rint(np.cumsum(fit.values.ravel()) * total).astype(np.int64)
    ends[-1] = total
    return np.diff(np.minimum(ends, total), prepend=0).reshape(fit.values.shape)


def _shares(values: Floats) -> Floats:
    positive = np.maximum(values, 0.0)
    total = float(positive.sum())
    if total <= 0:
        raise EmptyComposition(what="a released table", hint="none of its counts is above 0")
    return positive / total


def _spread(values: Floats, columns: Columns, onto: Columns) -> Floats:
    """A table on some columns as an array that broadcasts over all of them."""
    ordered = [c for c in onto if c in columns]
    moved = values.transpose([columns.index(c) for c in ordered])
    shape = iter(moved.shape)
    return moved.reshape(tuple(next(shape) if c in columns else 1 for c in onto))


def components(sets: Iterable[Columns]) -> list[list[Columns]]:
    """The tables, grouped so that tables of different groups share no column."""
    groups: list[tuple[set[str], list[Columns]]] = []
    for columns in sets:
        touched = [g for g in groups if g[0] & set(columns)]
        merged = (
            set(columns).union(*(g[0] for g in touched)),
            [c for g in touched for c in g[1]] + [columns],
        )
        groups = [g for g in groups if g not in touched] + [merged]
    return [members for _, members in groups]


def junction_order(sets: Sequence[Columns]) -> list[tuple[Columns, Columns]] | None:
    """The largest tables in an order in which each meets the earlier ones inside one of them; with what it shares.

    That is a junction tree (running intersection): the law of largest entropy is then a product of conditional
    tables. None where there is no such order (three pairs of three columns, say).
    """
    largest = [
        s for i, s in enumerate(sets)
        if not any(set(s) < set(t) or (set(s) == set(t) and i > j) for j, t in enumerate(sets))
    ]  # fmt: skip
    if not largest:
        return []
    # A spanning tree of largest intersections is a junction tree, if there is one at all.
    order: list[tuple[Columns, Columns]] = [(largest[0], ())]
    left = largest[1:]
    while left:
        pairs = itertools.product(left, [o for o, _ in order])
        new, old = max(pairs, key=lambda pair: len(set(pair[0]) & set(pair[1])))
        seen = {c for o, _ in order for c in o}
        shared = tuple(c for c in new if c in seen)
        if not set(shared) <= set(old):
            return None
        order.append((new, shared))
        left = [s for s in left if s is not new]
    return order
