"""Several noisy tables that share columns, made into one family whose margins agree.

Post-processing: released numbers in, numbers out. Real tables by generalised least squares in closed form, whole
non-negative ones from the smallest margins up. See docs/theory/consistent-margins.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, NotCertified, TooManyCells
from tacit.exact.arrays import Floats, Integers
from tacit.exact.data_classes import dataclass
from tacit.statistics.consistency import nearest_histogram, nearest_rows

Columns = tuple[str, ...]

MOST_COLUMNS = 32
MOST_SHARED = 12
MOST_PROGRAM_CELLS = 20_000
_WHOLE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTable:
    """A released table: one array axis for each column, and the variance of each cell's noise (0: exact)."""

    columns: Columns
    values: npt.NDArray[Any]
    variance: float = 1.0

    def __post_init__(self) -> None:
        columns, values = tuple(self.columns), np.asarray(self.values, dtype=np.float64)
        if len(set(columns)) != len(columns) or len(columns) > MOST_COLUMNS:
            raise InvalidParameter(
                parameter="columns", value=columns, must=f"be at most {MOST_COLUMNS} different columns"
            )
        if values.ndim != len(columns) or not bool(np.isfinite(values).all()) or 0 in values.shape:
            raise InvalidParameter(
                parameter="values", value=f"array of shape {values.shape}",
                must=f"be finite, with one axis for each of {len(columns)} columns",
            )  # fmt: skip
        if not (math.isfinite(self.variance) and self.variance >= 0):
            raise InvalidParameter(parameter="variance", value=self.variance, must="be finite and at least 0")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "values", values)


def margin(values: npt.NDArray[Any], columns: Columns, onto: Iterable[str]) -> npt.NDArray[Any]:
    """The sums of a table over all columns but these; axes in the order of `onto`."""
    keep = tuple(onto)
    gone = tuple(i for i, c in enumerate(columns) if c not in keep)
    left = [c for c in columns if c in keep]
    return np.asarray(values.sum(axis=gone)).transpose([left.index(c) for c in keep])


def consistent_margins(tables: Sequence[NoisyTable]) -> list[Floats]:
    """The generalised least-squares tables: every shared margin agrees, exactly up to float rounding.

    Minimises sum over tables of |x_S - y_S|^2 / variance_S over tables x_S that are the margins of one table. In
    closed form: the interaction T of the family is the average of the tables' own margins on T, weighted by
    1 / (variance_S * cells that were added up), for each set T of columns. Exact tables (variance 0) override
    the others. Unbiased; entries may be negative. Source: Barak et al. 2007 for the Fourier form.
    """
    sizes = _sizes(tables)
    shared = _shared([t.columns for t in tables])
    changes = [np.zeros(t.values.shape) for t in tables]
    for part in shared:
        effect = _effect(part, tables, sizes)
        for table, change in zip(tables, changes, strict=True):
            if set(part) <= set(table.columns):
                # What no other table speaks of stays as it is.
                own = _interaction(margin(table.values, table.columns, part))
                change += _spread(effect - own, part, table.columns, sizes)
    return [t.values + c for t, c in zip(tables, changes, strict=True)]


def _sizes(tables: Sequence[NoisyTable]) -> dict[str, int]:
    if not tables:
        raise EmptyComposition(what="the family of tables")
    sizes: dict[str, int] = {}
    for table in tables:
        for column, size in zip(table.columns, table.values.shape, strict=True):
            if sizes.setdefault(column, size) != size:
                raise InvalidParameter(
                    parameter="tables", value=column, must="have the same keys in every table",
                    hint="add up the finer keys first",
                )  # fmt: skip
    return sizes


def _shared(sets: Sequence[Columns]) -> list[Columns]:
    """All sets of columns that two tables or more have, small ones first, each in one order."""
    meets = {tuple(sorted(set(a) & set(b))) for a, b in itertools.combinations(sets, 2)}
    if any(len(m) > MOST_SHARED for m in meets):
        raise InvalidParameter(
            parameter="tables", value=max(map(len, meets)), must=f"share at most {MOST_SHARED} columns",
            hint="leave out tables that others contain",
        )  # fmt: skip
    found = {c for m in meets for r in range(len(m) + 1) for c in itertools.combinations(m, r)}
    return sorted(found, key=lambda c: (len(c), c))


def _effect(part: Columns, tables: Sequence[NoisyTable], sizes: Mapping[str, int]) -> Floats:
    over = [t for t in tables if set(part) <= set(t.columns)]
    exact = [t for t in over if t.variance == 0]
    own = [_interaction(margin(t.values, t.columns, part)) for t in (exact or over)]
    if exact:
        scale = max(1.0, *(float(np.abs(o).max()) for o in own))
        if any(float(np.abs(o - own[0]).max()) > 1e-9 * scale for o in own[1:]):
            raise InvalidParameter(
                parameter="tables", value=part or "the total", must="agree where they are exact",
                hint="declared tables contradict each other; correct the declared counts",
            )  # fmt: skip
        return own[0]
    weights = [1 / (t.variance * math.prod(sizes[c] for c in t.columns if c not in part)) for t in over]
    total = sum(weights)
    return np.asarray(sum(w / total * o for w, o in zip(weights, own, strict=True)))


def _interaction(values: Floats) -> Floats:
    """The residual of a margin after all its own margins are taken out."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def _spread(effect: Floats, part: Columns, columns: Columns, sizes: Mapping[str, int]) -> Floats:
    """An interaction shared out evenly over the cells of a table, as an array that broadcasts."""
    ordered = [c for c in columns if c in part]
    moved = effect.transpose([part.index(c) for c in ordered])
    shape = tuple(sizes[c] if c in part else 1 for c in columns)
    return np.asarray(moved.reshape(shape) / math.prod(sizes[c] for c in columns if c not in part))


def integer_margins(tables: Sequence[NoisyTable], *, total: int | None = None) -> list[Integers]:
    """Whole non-negative tables near the noisy ones, whose margins on shared columns agree.

    Least squares first; then the total, and the shared margins from small to large: each table is the nearest
    to its estimate (in L2 with one margin fixed, in L1 with several) with the margins fixed before it. `total`
    and exact tables are kept. A family that is valid already stays unchanged. Any two tables agree on their
    common columns; with three or more columns such a family need not come from one table of people.
    """
    given = list(tables)
    if total is not None:
        nearest_histogram([total], total=total)
        given.append(NoisyTable(columns=(), values=np.array(float(total)), variance=0.0))
    fitted = list(zip(given, consistent_margins(given), strict=True))
    wanted = _intersections([tuple(sorted(t.columns)) for t in given])
    exact = {tuple(sorted(t.columns)) for t in given if t.variance == 0}
    held = {c for c in wanted if any(set(c) <= set(e) for e in exact)}
    fixed: dict[Columns, Integers] = {}
    # Exact ones first: they bind the others, whatever their size.
    for columns in sorted(wanted, key=lambda c: (c not in held, len(c), c)):
        whole, values = min(
            ((t, x) for t, x in fitted if set(columns) <= set(t.columns)), key=lambda pair: pair[1].size
        )
        goal = margin(values, whole.columns, columns)
        near = np.rint(goal)
        goal = np.where(np.abs(goal - near) < _WHOLE, near, goal)
        if columns in held:
            if bool((goal != near).any() or (goal < 0).any()):
                raise InvalidParameter(
                    parameter="tables", value=columns, must="hold whole non-negative counts where it is exact"
                )
            fixed[columns] = near.astype(np.int64)
        else:
            fixed[columns] = _rounded(columns, goal, fixed)
    return [_ordered(fixed[tuple(sorted(t.columns))], t.columns) for t in tables]


def _ordered(values: Integers, columns: Columns) -> Integers:
    ordered = tuple(sorted(columns))
    return values.transpose([ordered.index(c) for c in columns])


def _intersections(sets: Sequence[Columns]) -> list[Columns]:
    """The tables' column sets and all their intersections, the empty one (the total) among them."""
    found = {*sets, ()}
    grown = True
    while grown:
        more = {tuple(sorted(set(a) & set(b))) for a, b in itertools.combinations(found, 2)} - found
        grown = bool(more)
        found |= more
    return sorted(found, key=lambda c: (len(c), c))


def _binding(columns: Columns, fixed: Mapping[Columns, Integers]) -> Iterator[tuple[Columns, Integers]]:
    """The margins of this table that are fixed already, the largest only."""
    shared = {tuple(sorted(set(columns) & set(f))): f for f in fixed}
    for part, owner in shared.items():
        if not any(set(part) < set(other) for other in shared):
            yield part, margin(fixed[owner], owner, part)


def _rounded(columns: Columns, goal: Floats, fixed: Mapping[Columns, Integers]) -> Integers:
    bound = list(_binding(columns, fixed))
    if not bound:
        return nearest_histogram(goal)
    if len(bound) == 1:
        part, totals = bound[0]
        rest = [c for c in columns if c not in part]
        axes = [columns.index(c) for c in (*part, *rest)]
        rows = goal.transpose(axes).reshape(totals.size, -1)
        whole = np.floor(rows)
        out = nearest_rows(whole.astype(np.int64), totals.ravel(), fractions=rows - whole)
        shape = tuple(goal.shape[a] for a in axes)
        return np.asarray(out.reshape(shape).transpose(np.argsort(axes)), dtype=np.int64)
    return _program(columns, goal, bound)


def _program(columns: Columns, goal: Floats, bound: Sequence[tuple[Columns, Integers]]) -> Integers:
    """The L1-nearest whole table with several given margins: a program with whole breakpoints.

    With two margins it is a transportation problem, whose corners are whole.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack, vstack

    size = goal.size
    if size > MOST_PROGRAM_CELLS:
        raise NotCertified(
            what="a whole table with several given margins", reason=f"it has {size:,} cells",
            hint="whole_table(fit_table(...), total=...) rounds one table of all columns; or leave the margins real",
        )  # fmt: skip
    z = goal.ravel()
    base = np.maximum(np.floor(z), 0.0)
    slope = np.where(z < 0, 1.0, 1.0 - 2.0 * (z - np.floor(z)))
    # y = base - less + one + more; the middle unit carries the fraction's own slope.
    cost = np.concatenate([np.ones(size), slope, np.ones(size)])
    top = np.concatenate([base, np.ones(size), np.full(size, np.inf)])
    blocks, right = [], []
    for part, totals in bound:
        index = np.arange(totals.size).reshape(totals.shape)
        shape = tuple(goal.shape[i] if c in part else 1 for i, c in enumerate(columns))
        where = np.broadcast_to(index.reshape(shape), goal.shape).ravel()
        blocks.append(csr_array((np.ones(size), (where, np.arange(size))), shape=(totals.size, size)))
        right.append(totals.ravel() - np.bincount(where, weights=base, minlength=totals.size))
    sums = vstack(blocks)
    demand = np.concatenate(right)
    found = milp(
        cost, constraints=LinearConstraint(hstack([-sums, sums, sums]), demand, demand),
        bounds=Bounds(np.zeros(3 * size), top), integrality=np.full(3 * size, int(len(bound) > 2)),
    )  # fmt: skip
    if found.x is None:
        raise NotCertified(
            what="a whole table with several given margins", reason="no such table was found",
            hint="whole_table(fit_table(...), total=...) rounds one table of all columns; or leave the margins real",
        )  # fmt: skip
    less, one, more = np.rint(found.x).astype(np.int64).reshape(3, size)
    out = (base.astype(np.int64) - less + one + more).reshape(goal.shape)
    if any(bool((margin(out, columns, part) != totals).any()) for part, totals in bound) or bool(
        (out < 0).any()
    ):
        raise NotCertified(
            what="a whole table with several given margins", reason="the solver's answer is not whole"
        )
    return np.asarray(out)


# A table of probabilities from its margins: junction trees where they exist, proportional fitting where not.
#
# Post-processing of released margins. Both give the distribution of largest entropy with these margins:
# nothing is made up
# beyond them. See docs/theory/proportional-fitting.md.

MOST_CELLS = 1 << 22
_ROUNDS = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFit:
    """A table of probabilities on some columns, and how far its margins are from those asked for (in shares)."""

    columns: Columns
    values: Floats
    gap: float
    rounds: int


def fit_table(
    tables: Sequence[NoisyTable], *, tolerance: float = 1e-6, most_cells: int = MOST_CELLS
) -> TableFit:
    """The distribution of largest entropy on all columns whose margins are the tables', by iterative
    proportional fitting.

    Noisy tables are made consistent first, negative counts are cut off, and each table is scaled to 1. If
    cutting left margins that no table has, the rounds circle around a compromise. `gap` is the largest
    distance, in total variation, of a margin from its table. Source: Deming, Stephan 1940; Csiszar 1975.
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
            fit = fit * _spread_of_fit(ratio, cols, columns)
        if not fit.any():
            raise NotCertified(
                what="a table with these margins", reason="the margins exclude each other",
                hint="leave one of them out",
            )  # fmt: skip
        if gap <= tolerance or (rounds % 20 == 0 and gap > 0.99 * best):
            break
        best = min(best, gap) if rounds % 20 == 0 else best
    return TableFit(columns=columns, values=fit / fit.sum(), gap=gap, rounds=rounds)


def whole_table(fit: TableFit, *, total: int) -> npt.NDArray[np.int64]:
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


def _spread_of_fit(values: Floats, columns: Columns, onto: Columns) -> Floats:
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
    """The largest tables in an order in which the common columns with the earlier ones lie in one of them, with
    these columns.

    That is a junction tree (running intersection): the distribution of largest entropy is then a product of conditional
    tables. None without such an order (three pairs of three columns, say).
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
