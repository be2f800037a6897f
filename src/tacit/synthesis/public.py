"""Public margins: known counts that synthetic rows match exactly.

Their columns U lie in one clique of the junction tree, its root. Iterative proportional fitting on the table of U keeps
the model on them; the finished rows begin with whole counts for every cell of U that add up to each public margin. The
counts are those of a systematic draw, changed in as few rows as possible (an integer program), so that combinations of
public columns follow the model as far as the public margins let them.

Public margins are declarations: nobody compares them with the table, and no noise is spent on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, TooManyCells
from tacit.exact.arrays import Integers
from tacit.exact.checks import members
from tacit.sources.axes import Axis
from tacit.synthesis.model import Model
from tacit.synthesis.trees import Margin, cells_of

MOST_PUBLIC_CELLS = 20_000
"""Cells of all public columns together: a table that an integer program takes in a second."""
SOLVER_SECONDS = 60.0
PublicCounts = tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]
"""Columns, the shape of their table, and its counts, the last column running fastest."""
PARAMETER = "public_margins"


def public_counts(given: Any) -> tuple[PublicCounts, ...]:
    """Public margins in their given form: a list of {"columns": [...], "counts": nested lists or an array}."""
    out = []
    for one in members(PARAMETER, given):
        if not isinstance(one, Mapping) or set(one) != {"columns", "counts"}:
            raise _wrong(type(one).__name__, "be tables of columns and counts")
        named = one["columns"]
        names = tuple(members("columns", [named] if isinstance(named, str) else named))
        if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
            raise _wrong([str(n) for n in names], "name each of their columns once")
        try:
            counts = np.asarray(one["counts"])
        except ValueError:
            counts = np.asarray("ragged")
        if counts.dtype.kind not in "iu" or counts.ndim != len(names):
            raise _wrong(", ".join(names), "have whole counts, in one nested list a column")
        if counts.size == 0 or int(counts.min()) < 0 or int(counts.max()) >= 2**53:
            raise _wrong(", ".join(names), "have counts of at least 0, below 2^53")
        out.append((names, counts.shape, tuple(int(c) for c in counts.ravel())))
    return tuple(out)


def _wrong(value: object, must: str) -> InvalidParameter:
    return InvalidParameter(
        parameter=PARAMETER, value=value, must=must,
        hint='[{"columns": ["sex", "region"], "counts": [[120, 80], [95, 105]]}]',
    )  # fmt: skip


def public_tables(
    given: Sequence[PublicCounts], axes: Sequence[Axis], sizes: Sequence[int]
) -> dict[Margin, Integers]:
    """The tables by margin, columns rising, with a last place for missing values where the axis has one.

    Counts may omit that place, which means that no row is missing there. Refuses unknown columns, wrong shapes,
    and totals that differ.
    """
    place = {a.column: i for i, a in enumerate(axes)}
    found: dict[Margin, Integers] = {}
    for names, shape, counts in given:
        for name in names:
            if name not in place:
                raise _wrong(name, "name columns of the rows")
        table = np.array(counts, dtype=np.int64).reshape(shape)
        for k, name in enumerate(names):
            axis = axes[place[name]]
            keys, size = axis.size or 0, sizes[place[name]]
            if table.shape[k] not in (keys, size):
                raise _wrong(
                    name, f"have {keys} counts for this column, one a key in the declared order"
                    + ("" if keys == size else ", and perhaps one more for missing values"),
                )  # fmt: skip
            if table.shape[k] < size:
                table = np.concatenate([table, np.zeros_like(table.take([0], axis=k))], axis=k)
        order = sorted(range(len(names)), key=lambda k: place[names[k]])
        margin = tuple(place[names[k]] for k in order)
        if margin in found:
            raise _wrong(", ".join(names), "be given once")
        found[margin] = table.transpose(order)
    totals = {int(t.sum()) for t in found.values()}
    if len(totals) > 1:
        raise _wrong(sorted(totals), "have the same total")
    if totals == {0}:
        raise EmptyComposition(what="the public margins", hint="their counts are all 0")
    return found


def held_columns(public: Mapping[Margin, Any]) -> Margin:
    """The columns of all public margins."""
    return tuple(sorted({i for m in public for i in m}))


def check_public(
    public: Mapping[Margin, Integers], zeros: Mapping[Margin, Any], sizes: Sequence[int], limit: int
) -> None:
    """Refuses public margins with too many cells, and those that contradict each other or the impossible
    combinations.
    """
    held = held_columns(public)
    cells = cells_of(held, sizes)
    if cells > min(limit, MOST_PUBLIC_CELLS):
        raise TooManyCells(
            cells=cells, limit=min(limit, MOST_PUBLIC_CELLS),
            hint="the columns of all public margins together: give fewer of them",
        )  # fmt: skip
    packed = tuple((m, tuple(int(v) for v in t.ravel())) for m, t in sorted(public.items()))
    allowed = possible(zeros, held, tuple(sizes))
    if not _feasible(packed, held, tuple(sizes), allowed.tobytes()):
        raise InvalidParameter(
            parameter=PARAMETER, value=f"{len(public)} margins", must="be margins of one table",
            hint="they contradict each other, or the impossible combinations",
        )  # fmt: skip


def possible(zeros: Mapping[Margin, Any], held: Margin, sizes: tuple[int, ...]) -> Any:
    """The cells of these columns that some possible row has."""
    shape = [sizes[i] for i in held]
    if not zeros:
        return np.ones(shape, dtype=bool)
    nothing = np.zeros(shape, dtype=bool)
    model = Model(sizes=sizes, rows=1.0, zeros={**zeros, held: zeros.get(held, nothing)})
    return model.margin(held) > 0


@lru_cache(maxsize=64)
def _feasible(
    public: tuple[tuple[Margin, tuple[int, ...]], ...], held: Margin, sizes: tuple[int, ...], allowed: bytes
) -> bool:
    shape = [sizes[i] for i in held]
    tables = {m: np.array(counts, dtype=np.int64).reshape([sizes[i] for i in m]) for m, counts in public}
    may = np.frombuffer(allowed, dtype=bool).reshape(shape)
    return nearest_table(np.zeros(shape, dtype=np.int64), tables, held, may) is not None


def nearest_table(
    start: Integers, public: Mapping[Margin, Integers], held: Margin, allowed: Any
) -> Integers | None:
    """The table of whole counts with these margins that moves the fewest rows of a start; None if no table has them.

    Variables are the rows added to each allowed cell and those taken from each cell of the start.
    """
    if len(public) == 1:
        ((margin, counts),) = public.items()
        assert margin == held
        return counts.copy() if bool(allowed[counts > 0].all()) else None
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack, vstack

    shape, size = start.shape, start.size
    places = np.indices(shape).reshape(len(shape), -1)
    blocks, wanted = [], []
    for margin, counts in public.items():
        rows = np.zeros(size, dtype=np.int64)
        for i in margin:
            rows = rows * shape[held.index(i)] + places[held.index(i)]
        block = csr_array((np.ones(size), (rows, np.arange(size))), shape=(counts.size, size))
        blocks.append(block)
        wanted.append(counts.ravel() - block @ start.ravel())
    matrix = vstack(blocks).tocsr()
    wide = hstack([matrix, -matrix]).tocsr()
    goal = np.concatenate(wanted).astype(np.float64)
    most = float(next(iter(public.values())).sum())
    up = np.where(allowed.ravel(), most, 0.0)
    down = start.ravel().astype(np.float64)
    # Cells that are not allowed are emptied: nothing may be left in them.
    low = np.concatenate([np.zeros(size), np.where(allowed.ravel(), 0.0, down)])
    found = milp(
        np.ones(2 * size), constraints=LinearConstraint(wide, goal, goal), integrality=np.ones(2 * size),
        bounds=Bounds(low, np.concatenate([up, down])), options={"time_limit": SOLVER_SECONDS},
    )  # fmt: skip
    if found.x is None:
        return None
    change = np.rint(found.x).astype(np.int64)
    out = (start.ravel() + change[:size] - change[size:]).reshape(shape)
    return out if _holds(out, public, held) and not bool(out[~allowed].any()) else None


def _holds(table: Integers, public: Mapping[Margin, Integers], held: Margin) -> bool:
    """Whether the table has exactly these margins, and no negative count."""
    if bool((table < 0).any()):
        return False
    return all(
        np.array_equal(table.sum(axis=tuple(k for k, i in enumerate(held) if i not in m)), counts)
        for m, counts in public.items()
    )


def exact_table(start: Integers, public: Mapping[Margin, Integers], held: Margin, allowed: Any) -> Integers:
    """The nearest table with the public margins, or any such table if the nearest is not found in time."""
    found = nearest_table(start, public, held, allowed)
    if found is None:
        found = nearest_table(np.zeros_like(start), public, held, allowed)
    assert found is not None, "public margins are checked before anything is charged"
    return found


def total_of(public: Mapping[Margin, Integers]) -> int | None:
    """The number of rows that public margins state; None without any."""
    return int(next(iter(public.values())).sum()) if public else None


def one_way(public: Mapping[Margin, Integers], column: int) -> Integers | None:
    """The public counts of one column; None if no public margin contains it."""
    for margin, counts in public.items():
        if column in margin:
            return np.asarray(counts.sum(axis=tuple(k for k, i in enumerate(margin) if i != column)))
    return None
