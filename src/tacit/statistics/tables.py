"""What a question says of itself where it counts: how a unit moves its tables, and of which cells they are sums.

Facts for whoever chooses the noise, from declarations alone. A row is counted at most once in each table, so that it
moves all counts together by a vector of zeros and ones; a unit brings or takes `times` such vectors at most.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.guarantees import Rows, Unit
from tacit.sources.axes import Axis
from tacit.statistics.sensitivity import GlobalSensitivity, base_unit, replaced

__all__ = ["MOST_CELLS", "CountTables", "axis_sums", "never_absent", "spanning_sums"]

MOST_CELLS = 1 << 16
"""Tables of more cells are not given noise cell by cell to add up others: it would be more noise than on the others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountTables:
    """Tables of counts that one unit moves by sums of `times` vectors of zeros and ones (differences, if replaced).

    `complete`: a row that is counted at all is counted once in every table, so that all tables have one sum.
    `fixed`: no unit can move that sum. `sensitivity` and `sums` are of the finest cells, where the tables are sums of
    one table of them: how far a unit moves the cells, and for each part in which place each cell is counted (-1:
    nowhere).
    """

    times: int
    replaced: bool
    complete: bool
    fixed: bool = False
    sensitivity: GlobalSensitivity | None = None
    sums: Mapping[str, npt.NDArray[np.int64]] | None = None
    spans: Mapping[str, npt.NDArray[np.int64]] | None = None
    """As `sums`, of as few cells as span all that the tables can be, where those of `sums` are more or unknown."""
    ranges: npt.NDArray[np.int64] | None = None
    """Of range queries: the first and the last cell of each, in order of the cells."""


def never_absent(unit: Unit, axes: Sequence[Axis], filtered: bool) -> bool:
    """Can no unit move the number of counted rows? Rows are replaced, never left out, and each has all its keys."""
    base, _ = base_unit(unit)
    return isinstance(base, Rows) and replaced(unit) and not filtered and all(a.always for a in axes)


def spanning_sums(
    axes: Sequence[Axis], tables: Mapping[str, Sequence[Axis]], order: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Where cells that differ from the first one in at most `order` columns are counted in tables of so many columns.

    Tables of all cells are linear combinations of theirs: the indicator of a cell is a product over its columns, and
    what a table of `order` columns sees of it is a sum of products in which the other columns are at their first key.
    """
    sizes = [a.size or 0 for a in axes]
    keys = [
        [dict(zip(chosen, which, strict=True)).get(i, 0) for i in range(len(axes))]
        for count in range(order + 1)
        for chosen in itertools.combinations(range(len(axes)), count)
        for which in itertools.product(*(range(1, sizes[i]) for i in chosen))
    ]
    place = {a.column: k for a, k in zip(axes, np.array(keys, dtype=np.int64).T, strict=True)}
    return {
        name: np.ravel_multi_index(tuple(place[a.column] for a in of), tuple(a.size or 0 for a in of)).astype(np.int64)
        for name, of in tables.items()
    }  # fmt: skip


def axis_sums(axes: Sequence[Axis], of: Sequence[Axis]) -> npt.NDArray[np.int64]:
    """Where each cell of the table of all axes is counted in the table of some of them; both in C order."""
    shape = tuple(a.size or 0 for a in axes)
    keys = np.indices(shape).reshape(len(shape), -1)
    place = {a.column: k for a, k in zip(axes, keys, strict=True)}
    if not of:
        return np.zeros(keys.shape[1], dtype=np.int64)
    dims = tuple(a.size or 0 for a in of)
    return np.asarray(np.ravel_multi_index(tuple(place[a.column] for a in of), dims), dtype=np.int64)
