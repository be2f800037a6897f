"""Counts of a hierarchy: nation, region, district, released together so that they can be made to add up."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.arrays import AnyArray, Floats, Integers
from tacit.exact.checks import members, set_fields
from tacit.exact.data_classes import dataclass
from tacit.guarantees import People, Unit
from tacit.sources.axes import Axis, Binned, CountRows, Listed, OpenAxis, axes_of
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    CountTables,
    GlobalSensitivity,
    Part,
    Question,
    Statistic,
    base_unit,
    boxes,
    by_columns,
    filter_of,
    never_absent,
    replaced,
    row_limit,
)
from tacit.statistics.consistency import nearest_histogram, nearest_rows
from tacit.statistics.forms import Parts

# Counts of a hierarchy that add up: nation = sum of regions = sum of districts.
#
# Post-processing of noisy counts of the nodes. Real counts by weighted least squares in two passes, then whole
# non-negative ones from the top down. See docs/theory/tree-least-squares.md and docs/theory/nearest-histogram.md.


@dataclass(frozen=True, slots=True)
class Tree:
    """A forest as a map child -> parent (roots map to None), checked: no cycle, no parent that is not a node.

    Nodes are stored parents before children; `order` has the name behind each number, `place` the number of each name.
    """

    parents: Mapping[Hashable, Hashable | None]
    order: tuple[Hashable, ...] = field(init=False)
    place: Mapping[Hashable, int] = field(init=False, repr=False, compare=False)
    parent: Integers = field(init=False, repr=False, compare=False)
    depth: Integers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.parents, Mapping) or not self.parents:
            raise EmptyComposition(what="the hierarchy", hint='{"nation": None, "north": "nation"}')
        parents = dict(self.parents)
        for child, parent in parents.items():
            if parent is not None and parent not in parents:
                raise UnknownName(
                    what=f"parent of {child!r}", name=str(parent), known=map(str, parents),
                    hint="every parent is a node itself; the top maps to None",
                )  # fmt: skip
        depths: dict[Hashable, int] = {}
        for start in parents:
            path: list[Hashable] = []
            node: Hashable | None = start
            on_path: set[Hashable] = set()
            while node is not None and node not in depths:
                if node in on_path:
                    raise InvalidParameter(
                        parameter="parents", value=start, must="lead to the top",
                        hint="the hierarchy has a cycle",
                    )  # fmt: skip
                on_path.add(node)
                path.append(node)
                node = parents[node]
            base = -1 if node is None else depths[node]
            for step, member in enumerate(reversed(path), start=1):
                depths[member] = base + step
        order = tuple(sorted(parents, key=depths.__getitem__))
        place = {name: i for i, name in enumerate(order)}
        above = np.array([-1 if parents[n] is None else place[parents[n]] for n in order], dtype=np.int64)
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "parent", above)
        object.__setattr__(self, "depth", np.array([depths[n] for n in order], dtype=np.int64))

    @classmethod
    def of(cls, pairs: Iterable[tuple[Hashable, Hashable | None]]) -> Tree:
        """A tree from pairs (child, parent); a child with two different parents is an error."""
        parents: dict[Hashable, Hashable | None] = {}
        for child, parent in pairs:
            if parents.setdefault(child, parent) != parent:
                raise InvalidParameter(
                    parameter="parents", value=child, must="have one parent",
                    hint="a part that lies in two regions cannot add up; split it, or release two hierarchies",
                )  # fmt: skip
        return cls(parents)

    @property
    def leaf(self) -> npt.NDArray[np.bool_]:
        """Which nodes have no children."""
        out = np.ones(len(self.order), dtype=bool)
        out[self.parent[self.parent >= 0]] = False
        return out

    def levels(self) -> list[Integers]:
        """The nodes of each depth, from the top."""
        return [np.flatnonzero(self.depth == d) for d in range(int(self.depth.max()) + 1)]


def tree_estimate(tree: Tree, noisy: Mapping[Hashable, float], variances: Mapping[Hashable, float]) -> Floats:
    """The weighted least-squares counts of all nodes that add up exactly, in the tree's order.

    Minimises sum (x_v - y_v)^2 / variance_v over x with x_v = sum of its children. A node without a noisy count is
    fitted from the others; variance 0 is a count known exactly. Two passes, linear time.
    Source: Hay, Rastogi, Miklau, Suciu 2010, for equal variances and fan-outs; the general case is on the page.
    """
    y, precision = _observed(tree, noisy, variances)
    size = len(tree.order)
    fit, spread = np.zeros(size), np.zeros(size)
    below, below_spread = np.zeros(size), np.zeros(size)
    leaf = tree.leaf
    for level in reversed(tree.levels()):
        own_known = precision[level] > 0
        for v, known in zip(level, own_known, strict=True):
            if leaf[v]:
                if not known:
                    raise InvalidParameter(
                        parameter="noisy", value=tree.order[v], must="have a count for every node without children",
                        hint="a node without any measurement cannot be fitted",
                    )  # fmt: skip
                fit[v], spread[v] = y[v], 1 / precision[v]
            elif not known:
                fit[v], spread[v] = below[v], below_spread[v]
            elif np.isinf(precision[v]):
                if below_spread[v] == 0 and not np.isclose(below[v], y[v], rtol=1e-9, atol=1e-6):
                    raise _contradiction(tree.order[v])
                fit[v], spread[v] = y[v], 0.0
            else:
                own = 1 / precision[v]
                share = below_spread[v] / (own + below_spread[v])
                fit[v] = share * y[v] + (1 - share) * below[v]
                spread[v] = own * share
        inner = level[tree.parent[level] >= 0]
        np.add.at(below, tree.parent[inner], fit[inner])
        np.add.at(below_spread, tree.parent[inner], spread[inner])
    for level in tree.levels()[1:]:
        above = tree.parent[level]
        gap, width = fit[above] - below[above], below_spread[above]
        share = np.divide(spread[level], width, out=np.zeros(level.size), where=width > 0)
        fit[level] += share * gap
    return fit


def consistent_tree(
    tree: Tree,
    noisy: Mapping[Hashable, float],
    variances: Mapping[Hashable, float] | None = None,
    *,
    exact: Mapping[Hashable, int] | None = None,
) -> dict[Hashable, int]:
    """Non-negative whole counts of every node that add up, near the noisy ones; `exact` counts are kept.

    Weighted least squares first, then from the top down: the children of a node are the histogram nearest to
    their estimates whose total is the node's count. A family that is valid already stays unchanged. Exact counts are
    public facts: if they contradict each other (parts do not add up), an error says so. Post-processing.
    """
    exact = _exact(tree, exact or {})
    least, fixed = _floors(tree, exact)
    values = {**dict(noisy), **{name: float(v) for name, v in exact.items()}}
    spread = dict.fromkeys(noisy, 1.0) if variances is None else dict(variances)
    estimate = tree_estimate(tree, values, {**spread, **dict.fromkeys(exact, 0.0)})
    out = np.zeros(len(tree.order), dtype=np.int64)
    top = tree.levels()[0]
    out[top] = np.where(
        fixed[top], least[top], np.maximum(np.rint(estimate[top]).astype(np.int64), least[top])
    )
    children: dict[int, list[int]] = {}
    for v, p in enumerate(tree.parent):
        if p >= 0:
            children.setdefault(int(p), []).append(v)
    for level in tree.levels():
        families: dict[int, list[tuple[int, list[int]]]] = {}
        for v in level:
            free = [c for c in children.get(int(v), []) if not fixed[c]]
            for c in children.get(int(v), []):
                out[c] = least[c]
            if free:
                families.setdefault(len(free), []).append((int(v), free))
        for family in families.values():
            rows = np.array([free for _, free in family])
            kept = np.array([sum(int(out[c]) for c in children[v] if fixed[c]) for v, _ in family])
            floors = least[rows]
            totals = out[[v for v, _ in family]] - kept - floors.sum(axis=1)
            z = estimate[rows] - floors
            # Estimates that are whole up to float error are whole: they must not decide ties.
            near = np.rint(z)
            z = np.where(np.abs(z - near) < 1e-6, near, z)
            whole = np.floor(z)
            out[rows] = nearest_rows(whole.astype(np.int64), totals, fractions=z - whole) + floors
    return {name: int(out[i]) for i, name in enumerate(tree.order)}


def whole_cells(cells: npt.ArrayLike, *, branching: int, total: int | None = None) -> Integers:
    """Whole non-negative cells from real ones, top down along a tree, with every node near its own estimate.

    The cells of a `RangeTree` are unbiased, and so are their sums; cutting negative cells off one by one would lift
    every range. From the top down a node's count is shared out among its children by the nearest histogram, so that
    sums over nodes move little. A given total is kept. Post-processing.
    """
    values = np.asarray(cells, dtype=np.float64).ravel()
    if branching < 2 or not values.size or not bool(np.isfinite(values).all()):
        raise InvalidParameter(
            parameter="cells",
            value=f"{values.size} numbers",
            must="be finite, with a branching of at least 2",
        )
    levels = [values]
    while levels[-1].size > 1:
        levels.append(np.add.reduceat(levels[-1], np.arange(0, levels[-1].size, branching)))
    out = nearest_histogram(levels[-1], total=total)
    for level in reversed(levels[:-1]):
        # Places behind the last cell: so far below 0 that nothing reaches them.
        padded = np.full(out.size * branching, -float(1 << 40))
        padded[: level.size] = level
        near = np.rint(padded)
        z = np.where(np.abs(padded - near) < 1e-6, near, padded).reshape(out.size, branching)
        whole = np.floor(z)
        out = nearest_rows(whole.astype(np.int64), out, fractions=z - whole).ravel()[: level.size]
    return np.asarray(out, dtype=np.int64)


def known_counts(tree: Tree, exact: Mapping[Hashable, int]) -> dict[Hashable, int]:
    """All counts that follow from the exact ones: sums of known parts, and the one unknown part of a sum."""
    known = _exact(tree, exact)
    _floors(tree, known)
    children: dict[Hashable, list[Hashable]] = {}
    for name in tree.order:
        parent = tree.parents[name]
        if parent is not None:
            children.setdefault(parent, []).append(name)
    for _ in range(2 * int(tree.depth.max()) + 2):
        before = len(known)
        for parent in reversed([n for n in tree.order if n in children]):
            parts = children[parent]
            open_ = [c for c in parts if c not in known]
            if not open_ and parent not in known:
                known[parent] = sum(known[c] for c in parts)
            elif len(open_) == 1 and parent in known:
                known[open_[0]] = known[parent] - sum(known[c] for c in parts if c in known)
        if len(known) == before:
            break
    _floors(tree, _exact(tree, known))
    return known


def _observed(
    tree: Tree, noisy: Mapping[Any, float], variances: Mapping[Any, float]
) -> tuple[Floats, Floats]:
    place = {name: i for i, name in enumerate(tree.order)}
    y, precision = np.zeros(len(place)), np.zeros(len(place))
    for name, value in noisy.items():
        if name not in place:
            raise UnknownName(what="node", name=str(name), known=map(str, place))
        variance = variances.get(name, np.nan)
        if not (np.isfinite(value) and variance >= 0):
            raise InvalidParameter(
                parameter="variances", value=name, must="give every noisy count a variance of at least 0"
            )
        y[place[name]] = value
        precision[place[name]] = np.inf if variance == 0 else 1 / variance
    return y, precision


def _exact(tree: Tree, exact: Mapping[Any, int]) -> dict[Hashable, int]:
    for name, value in exact.items():
        if name not in tree.parents:
            raise UnknownName(what="node", name=str(name), known=map(str, tree.parents))
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InvalidParameter(
                parameter=f"exact[{name!r}]", value=value, must="be a whole number of at least 0"
            )
    return {name: int(v) for name, v in exact.items()}


def _floors(tree: Tree, exact: Mapping[Hashable, int]) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """The least count of each node, and whether it is also the largest; exact counts must agree."""
    size = len(tree.order)
    least = np.zeros(size, dtype=np.int64)
    loose = tree.leaf.astype(np.int64)
    for v in range(size - 1, -1, -1):
        if tree.order[v] in exact:
            here = exact[tree.order[v]]
            if least[v] > here or (not tree.leaf[v] and loose[v] == 0 and least[v] != here):
                raise _contradiction(tree.order[v])
            least[v], loose[v] = here, 0
        if tree.parent[v] >= 0:
            least[tree.parent[v]] += least[v]
            loose[tree.parent[v]] += loose[v]
    return least, loose == 0


def _contradiction(name: Hashable) -> InvalidParameter:
    return InvalidParameter(
        parameter="exact", value=name, must="hold counts that add up",
        hint="the declarations of this node and of its parts contradict each other; correct the declared counts",
    )  # fmt: skip


MOST_LEAVES = 4096
"""With more leaves, sums of noisy leaves are worse than noise on every level, so they are not compared."""
Pairs = tuple[tuple[Hashable, Hashable | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy(Statistic):
    """The number of rows in each node of a tree, all levels at once.

    A row is counted once in each node from the top to its leaf, so that levels add up in the data and, after
    `consistent`, in the release. A unit of m rows: add-or-remove m d, m sqrt(d), m in L1, L2, Linf, d the number of
    nodes on the longest way down; replace-one: d is the largest number of nodes on two ways down that only one of
    them has (the top, which both have, does not move). Rows without a leaf count nowhere. Nodes are no groups:
    all of a person's m rows count, wherever they lie.
    """

    kind: ClassVar[str] = "hierarchy"
    whole: ClassVar[bool] = True
    agrees: ClassVar[bool] = True
    noise_alone: ClassVar[bool] = True
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "levels"

    columns: tuple[str | Binned, ...]
    parents: Pairs = ()

    def __post_init__(self) -> None:
        self._check_words()
        if not self.columns:
            raise EmptyComposition(what="the list of columns", hint="name at least one")
        if not isinstance(self.parents, tuple | list):
            raise InvalidParameter(parameter="parents", value=type(self.parents).__name__, must="be pairs")
        if self.parents and len(self.columns) != 1:
            raise InvalidParameter(
                parameter="parents", value=len(self.columns), must="come with one column, that of the leaves",
                hint="with several columns each one refines the one before it, and needs no map",
            )  # fmt: skip
        set_fields(self, parents=members("parents", self.parents))
        for pair in self.parents:
            if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(map(_is_key, pair)):
                raise InvalidParameter(
                    parameter="parents", value="an entry", must="be a pair (child, parent)"
                )
        if self.parents:
            Tree.of(self.parents)

    def on(self, schema: Schema, unit: Unit) -> Question:
        if self.by:
            raise InvalidParameter(
                parameter="by", value=self.by, must="be empty for a hierarchy", hint="name it as a column"
            )
        frame = self._frame(schema, unit, ())
        axes = axes_of(self.columns, schema)
        if any(isinstance(a, OpenAxis) for a in axes):
            raise InvalidParameter(
                parameter="columns", value=[a.column for a in axes], must="have known keys",
                hint="declare category([...])",
            )  # fmt: skip
        tree, leaves, parts = _tree(self.parents, axes)
        absent = frame.absent or not all(a.always for a in axes)
        sensitivities = {}
        shortest = int(tree.depth[_places(tree, leaves)].min())
        for level, (part, nodes) in enumerate(parts):
            # A way that ends above this level counts nowhere on it.
            short = shortest < level
            sensitivities[part.name] = boxes([(1, 1)], unit, cells=len(nodes), absent=absent or short)
        sensitivity = tree_sensitivity(tree, leaves, unit, absent=absent)
        shown = tuple(
            Part(name=part.name, axes=part.axes, exact=sensitivities[part.name].none) for part, _ in parts
        )
        return Question(
            statistic=self, schema=schema, unit=unit, axes=axes,
            requests=(Aggregation(axes=axes, aggregates=(CountRows(where=self.where),), groups=()),),
            parts=shown, sensitivity=sensitivity, sensitivities=sensitivities, form=None,
            tables=self._tables(axes, tree, leaves, parts, unit, absent=absent),
            details={
                "tree": tree, "leaves": leaves, "levels": tuple(nodes for _, nodes in parts), "absent": absent,
            },
        )  # fmt: skip

    def _tables(
        self, axes: tuple[Axis, ...], tree: Tree, leaves: Sequence[Any], parts: Sequence[Level], unit: Unit, *,
        absent: bool,
    ) -> CountTables:  # fmt: skip
        """A row is counted once on each level of its way down, on all levels if all ways are equally long."""
        depths = np.unique(tree.depth[_places(tree, leaves)])
        sums = sensitivity = None
        if len(leaves) <= MOST_LEAVES:
            sums = {
                part.name: above
                for (part, _), above in zip(parts, _ancestors(tree, leaves, parts), strict=True)
            }
            sensitivity = boxes([(1, 1)], unit, cells=len(leaves), absent=absent)
        return CountTables(
            times=row_limit(unit) * base_unit(unit)[1], replaced=replaced(unit), complete=len(depths) == 1,
            fixed=len(depths) == 1 and never_absent(unit, axes, self.where is not None), sums=sums,
            sensitivity=sensitivity,
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        counts = cells[0].values[CountRows(where=self.where)].ravel()
        tree: Tree = question.details["tree"]
        totals = np.zeros(len(tree.order), dtype=counts.dtype)
        np.add.at(totals, _places(tree, question.details["leaves"]), counts)
        for level in reversed(tree.levels()[1:]):
            np.add.at(totals, tree.parent[level], totals[level])
        out = {}
        for part, nodes in zip(question.parts, question.details["levels"], strict=True):
            out[part.name] = totals[_places(tree, nodes)].reshape(tuple(a.size or 0 for a in part.axes))
        return out

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """All levels, one after the other, as one vector of counts."""
        return np.concatenate([np.asarray(noisy[p.name]).astype(np.float64).ravel() for p in question.parts])

    def consistent(
        self,
        question: Question,
        noisy: Parts,
        variances: Mapping[str, float],
        *,
        exact: Mapping[Hashable, int] | None = None,
    ) -> dict[Hashable, int]:
        """Whole non-negative counts of all nodes that add up, from noisy parts and the variance of each.

        `exact` has public nodes; parts that no unit can move are exact too. Post-processing.
        """
        counts: dict[Hashable, float] = {}
        spread: dict[Hashable, float] = {}
        for part, nodes in zip(question.parts, question.details["levels"], strict=True):
            values = np.asarray(noisy[part.name]).astype(np.float64).ravel()
            for node, value in zip(nodes, values, strict=True):
                counts[node] = float(value)
                spread[node] = float(variances[part.name])
        return consistent_tree(question.details["tree"], counts, spread, exact=exact)


def hierarchy(
    columns: str | Binned | Sequence[str | Binned],
    *,
    parents: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | None = None,
    where: str | Expression | None = None,
) -> Hierarchy:
    """Counts of every level: of nested columns (["region", "district"]), or of one column with a map to its parents.

    `parents` maps each key to the group that contains it, and the top to None; pairs (child, parent) are
    taken too. Two parents, a cycle, a parent that is no node: errors, before anything is read.
    """
    pairs = list(parents.items()) if isinstance(parents, Mapping) else () if parents is None else parents
    listed = isinstance(pairs, Iterable) and not isinstance(pairs, str | bytes) and not hasattr(pairs, "mask")
    given: Any = tuple(pairs) if listed and getattr(pairs, "ndim", True) else pairs
    return Hierarchy(columns=by_columns(columns), parents=given, where=filter_of(where))


Level = tuple[Part, tuple[Any, ...]]


Built = tuple[Tree, tuple[Any, ...], tuple[Level, ...]]

_kept: deque[tuple[Pairs, tuple[Axis, ...], Built]] = deque(maxlen=4)
_lock = threading.Lock()


def _tree(parents: Pairs, axes: tuple[Axis, ...]) -> Built:
    """The tree, its leaf for each cell in order, and for each level its part and its nodes.

    Made once for the same statistic object. An equal object is not enough: its 1 may be the other's 1.0.
    """
    with _lock:
        for pairs, along, built in _kept:
            if pairs is parents and along == axes:
                return built
        built = _build(parents, axes)
        _kept.append((parents, axes, built))
        return built


def _build(parents: Pairs, axes: tuple[Axis, ...]) -> Built:
    if parents:
        tree = Tree.of(parents)
        leaves = axes[0].labels
        _check_leaves(tree, leaves)
        found = []
        for depth, level in enumerate(tree.levels()):
            nodes = tuple(map(tree.order.__getitem__, level.tolist()))
            axis = Listed(column=axes[0].column, values=nodes)  # type: ignore[arg-type]
            found.append((Part(name=f"level {depth}", axes=(axis,)), nodes))
        return tree, leaves, tuple(found)
    above: dict[Hashable, Hashable | None] = {(): None}
    nested: list[Level] = []
    for depth in range(len(axes) + 1):
        cells = tuple(itertools.product(*(a.labels for a in axes[:depth])))
        above |= {cell: cell[:-1] for cell in cells if cell}
        nested.append((Part(name=f"level {depth}", axes=axes[:depth]), cells))
    return Tree(above), nested[-1][1], tuple(nested)


def _is_key(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | tuple)


def _places(tree: Tree, nodes: Sequence[Any]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(tree.place.__getitem__, nodes), dtype=np.int64, count=len(nodes))


def _ancestors(tree: Tree, leaves: Sequence[Any], parts: Sequence[Level]) -> list[npt.NDArray[np.int64]]:
    """The place of each leaf's ancestor on each level; -1 if the leaf ends above it."""
    on_level = np.full(len(tree.order), -1, dtype=np.int64)
    for _, nodes in parts:
        on_level[_places(tree, nodes)] = np.arange(len(nodes))
    parent, depth = np.asarray(tree.parent), np.asarray(tree.depth)
    out: list[npt.NDArray[np.int64]] = []
    at = _places(tree, leaves)
    for level in range(len(parts) - 1, -1, -1):
        out.append(np.where(depth[at] == level, on_level[at], -1))
        at = np.where(depth[at] == level, np.maximum(parent[at], 0), at)
    return out[::-1]


def _check_leaves(tree: Tree, leaves: Sequence[Any]) -> None:
    ends = {n for n, leaf in zip(tree.order, tree.leaf, strict=True) if leaf}
    for key in leaves:
        if key not in tree.parents:
            raise UnknownName(
                what="node of the hierarchy", name=str(key), known=map(str, tree.parents),
                hint="every declared key of the column needs a parent",
            )  # fmt: skip
        if key not in ends:
            raise InvalidParameter(
                parameter="parents", value=key, must="have the column's keys as its leaves",
                hint="a key that contains others cannot be a row's own place",
            )  # fmt: skip
    stray = ends - set(leaves)
    if stray:
        raise UnknownName(
            what="key of the column", name=str(min(map(str, stray))), known=map(str, leaves),
            hint="the hierarchy ends in something that the column does not declare",
        )  # fmt: skip


def tree_sensitivity(
    tree: Tree, leaves: Sequence[Any], unit: Unit, *, absent: bool, levels: Collection[int] | None = None
) -> GlobalSensitivity:
    """Paths from the root as 0/1 vectors: one alone (add-or-remove, or against nothing), or the difference of two.

    `levels` are the released levels; nodes on other levels do not count.
    """
    base, size = base_unit(unit)
    m = row_limit(unit)
    weight = [int(levels is None or d in levels) for d in tree.depth.tolist()]
    longest, widest = _reach(tree, leaves, weight)
    best = longest
    if replaced(unit):
        alone = absent or m > 1 or isinstance(base, People)
        best = max(longest if alone else 0, widest)
    one = GlobalSensitivity(l1=Fraction(best), l2_squared=Fraction(best), linf=Fraction(min(best, 1)))
    return one.times(m * size)


def _reach(tree: Tree, leaves: Sequence[Any], weight: Sequence[int]) -> tuple[int, int]:
    """The weight of the heaviest way down, and that of the nodes that exactly one of two ways down has, at most."""
    top = len(tree.order)
    reach: list[int | None] = [None] * (top + 1)
    for leaf in leaves:
        reach[tree.place[leaf]] = 0
    parents = tree.parent.tolist()
    widest = 0
    for v in range(top - 1, -1, -1):
        below = reach[v]
        if below is None:
            continue
        mine = below + weight[v]
        above = parents[v] if parents[v] >= 0 else top
        other = reach[above]
        if other is not None:
            widest = max(widest, other + mine)
        if other is None or mine > other:
            reach[above] = mine
    return reach[top] or 0, widest
