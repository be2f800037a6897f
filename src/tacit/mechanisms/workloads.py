"""Linear queries of a histogram: integer matrices, and how far one unit moves their answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, TooManyCells
from tacit.exact.arrays import Integers
from tacit.exact.checks import flag, members, settle, whole
from tacit.exact.integers import unmasked
from tacit.guarantees import Neighbours

__all__ = [
    "Workload",
    "margin_matrices",
    "prefix_matrix",
    "range_matrix",
    "tree_matrices",
]

MOST_ENTRIES = 1 << 24
MOST_PAIRS = 1500
_LARGEST = 1 << 20
_PRIME = (1 << 61) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """The queries M theta, theta a histogram of which one unit moves at most `rows` rows.

    add-or-remove: the rows of one unit come or go, and M theta moves by rows times a convex combination of columns of
    M. replace-one: by rows times differences of two columns. `absent`: a row may also lie in no cell (or a person
    have no row); say False only where every row surely lies in one: then sums over all cells cannot move.
    """

    matrix: npt.NDArray[Any]
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE
    rows: int = 1
    absent: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", integer_matrix(self.matrix))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        settle(self, rows=whole("rows", self.rows, least=1))
        settle(self, absent=flag("absent", self.absent))

    @property
    def cells(self) -> int:
        """How many cells the histogram has."""
        return int(self.matrix.shape[1])

    @property
    def queries(self) -> int:
        """How many answers."""
        return int(self.matrix.shape[0])

    def moves(self, matrix: Integers) -> Integers:
        """What one row can move these queries by, up to sign, one move a row; not multiplied by `rows`."""
        columns = np.unique(matrix.T, axis=0)
        if self.neighbours is Neighbours.ADD_OR_REMOVE:
            return columns
        if self.absent or self.rows > 1:
            columns = np.unique(np.vstack([columns, np.zeros((1, columns.shape[1]), np.int64)]), axis=0)
        first, second = np.triu_indices(len(columns), 1)
        return np.unique(np.vstack([columns[first] - columns[second], columns[:1] * 0]), axis=0)

    def sensitivities(self, matrix: Integers) -> tuple[int, int]:
        """L1 and squared L2 sensitivity of these queries for one unit; 0 where no unit can move them.

        Exact over all pairs of different columns up to 1500 of them; beyond, a bound by the two largest.
        """
        columns = np.unique(matrix.T, axis=0)
        add = self.neighbours is Neighbours.ADD_OR_REMOVE
        if add or len(columns) <= MOST_PAIRS:
            l1, l2 = _largest(columns, add, self.absent or self.rows > 1)
        else:
            size, square = np.sort(np.abs(columns).sum(axis=1)), np.sort((columns**2).sum(axis=1))
            # |a - b|^2 <= |a|^2 + |b|^2 where no entry is negative, and twice that in general.
            twice = 1 if bool((columns >= 0).all()) else 2
            l1, l2 = int(size[-1] + size[-2]), twice * int(square[-1] + square[-2])
        return l1 * self.rows, l2 * self.rows**2


def _largest(columns: Integers, add: bool, absent: bool) -> tuple[int, int]:
    l1, l2 = np.abs(columns).sum(axis=1), (columns**2).sum(axis=1)
    best = [int(l1.max()), int(l2.max())] if add or absent else [0, 0]
    if not add:
        for column in columns:
            gap = columns - column
            best = [
                max(best[0], int(np.abs(gap).sum(axis=1).max())),
                max(best[1], int((gap**2).sum(axis=1).max())),
            ]
    return best[0], best[1]


def integer_matrix(values: Any) -> Integers:
    """A matrix of small integers with at least one entry that is not 0."""
    array = unmasked(values, name="matrix")
    if array.ndim != 2 or not array.size:
        raise EmptyComposition(what="the matrix of queries", hint="one row a query, one column a cell")
    if array.size > MOST_ENTRIES:
        raise TooManyCells(
            cells=array.size, limit=MOST_ENTRIES, hint="use RangeTree, or margins by their tables"
        )
    if array.dtype.kind == "f" and bool((array == np.rint(array)).all()):
        array = array.astype(np.int64)
    # |min| by Python's integers: the smallest of a narrow type has no absolute value of that type.
    if array.dtype.kind not in "iub" or max(abs(int(array.max())), abs(int(array.min()))) > _LARGEST:
        raise InvalidParameter(
            parameter="matrix", value=f"array of {array.dtype}", must=f"hold integers up to {_LARGEST:,}",
            hint="multiply rational queries by a common denominator",
        )  # fmt: skip
    if not array.any():
        raise EmptyComposition(what="the matrix of queries", hint="every entry is 0")
    return array.astype(np.int64)


def margin_matrices(sizes: Sequence[int], order: int) -> list[Integers]:
    """One matrix for each table of `order` of the columns; the cells are those of the full table, in C order."""
    shape = tuple(whole("sizes", s, least=1) for s in members("sizes", sizes))
    if not 1 <= whole("order", order, least=1) <= len(shape):
        raise InvalidParameter(parameter="order", value=order, must=f"lie between 1 and {len(shape)}")
    cells = math.prod(shape)
    out = []
    if cells * sum(math.prod(c) for c in itertools.combinations(shape, order)) > MOST_ENTRIES:
        raise TooManyCells(
            cells=cells, limit=MOST_ENTRIES, hint="plan by margin_errors, which needs no matrix"
        )
    keys = np.indices(shape).reshape(len(shape), cells)
    for chosen in itertools.combinations(range(len(shape)), order):
        dims = tuple(shape[c] for c in chosen)
        rows = np.ravel_multi_index(tuple(keys[c] for c in chosen), dims)
        block = np.zeros((math.prod(dims), cells), dtype=np.int64)
        block[rows, np.arange(cells)] = 1
        out.append(block)
    return out


def range_matrix(cells: int) -> Integers:
    """All p (p + 1) / 2 ranges of neighbouring cells."""
    p = whole("cells", cells, least=1)
    if p * p * (p + 1) // 2 > MOST_ENTRIES:
        raise TooManyCells(cells=p, limit=round(MOST_ENTRIES ** (1 / 3)), hint="use RangeTree")
    first, last = np.triu_indices(p)
    place = np.arange(p)
    return ((place >= first[:, None]) & (place <= last[:, None])).astype(np.int64)


def prefix_matrix(cells: int) -> Integers:
    """The p cumulative counts."""
    p = whole("cells", cells, least=1)
    if p * p > MOST_ENTRIES:
        raise TooManyCells(cells=p, limit=round(MOST_ENTRIES ** (1 / 2)), hint="use CumulativeTree")
    return np.tril(np.ones((p, p), dtype=np.int64))


def tree_matrices(cells: int, branching: int) -> list[Integers]:
    """The levels of a tree over the cells, root first: each node adds up `branching` nodes below it."""
    p, b = whole("cells", cells, least=1), whole("branching", branching, least=2)
    levels = []
    width = 1
    while True:
        nodes = -(-p // width)
        block = np.zeros((nodes, p), dtype=np.int64)
        block[np.arange(p) // width, np.arange(p)] = 1
        levels.append(block)
        if nodes == 1:
            return levels[::-1]
        width *= b


def disjoint_blocks(matrix: Integers) -> list[Integers]:
    """The rows, in order, grouped so that no cell is asked twice in a group: tables, levels, partitions."""
    groups: list[tuple[npt.NDArray[np.bool_], list[int]]] = []
    for i, row in enumerate(matrix != 0):
        for used, places in groups:
            if not (used & row).any():
                used |= row
                places.append(i)
                break
        else:
            groups.append((row.copy(), [i]))
    return [matrix[places] for _, places in groups]


def independent_rows(matrix: Integers) -> npt.NDArray[np.int64]:
    """The places of the first rows that span all of them.

    Found modulo a prime, where independent rows are independent over the rationals too.
    """
    from flint import nmod_mat

    queries, cells = matrix.shape
    reduced, rank = nmod_mat(cells, queries, [int(v) for v in matrix.T.ravel()], _PRIME).rref()
    pivots = [next(c for c in range(queries) if reduced[r, c] != 0) for r in range(rank)]
    return np.array(pivots, dtype=np.int64)


def shares_of(values: npt.NDArray[np.float64]) -> list[Fraction]:
    """Positive numbers as exact shares that add up to 1."""
    grain = 1 << 20
    whole = [max(1, round(float(v) / float(values.sum()) * grain)) for v in values]
    return [Fraction(w, sum(whole)) for w in whole]
