"""Counts of a hierarchy: nation, region, district, released together so that they can be made to add up."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import members, settle
from tacit.guarantees import People, Unit
from tacit.sources.aggregates import CountRows
from tacit.sources.axes import Axis, Binned, Listed, Open, axes_of
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import Part, Question, Statistic, by_columns, filter_of
from tacit.statistics.forms import Parts
from tacit.statistics.sensitivity import GlobalSensitivity, base_unit, boxes, replaced, row_limit
from tacit.statistics.tables import CountTables, never_absent
from tacit.statistics.trees import Tree, consistent_tree

__all__ = ["Hierarchy", "hierarchy", "tree_sensitivity"]

MOST_LEAVES = 4096
"""With more leaves, sums of noisy ones are worse than noise on every level; they are not looked at."""
Pairs = tuple[tuple[Hashable, Hashable | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy(Statistic):
    """How many rows lie in each node of a tree, all levels at once.

    A row is counted once in each node from the top to its leaf, so that levels add up in the data and, after
    `consistent`, in the release. A unit of m rows: add-or-remove m d, m sqrt(d), m in L1, L2, Linf, d the number of
    nodes on the longest way down; replace-one: d is the largest number of nodes on two ways down that only one of
    them has (the top, which both have, does not move). Rows without a leaf count nowhere. Nodes are no groups: this
    holds wherever a person's m rows lie, and all of them are counted.
    """

    kind: ClassVar[str] = "hierarchy"
    whole: ClassVar[bool] = True
    agrees: ClassVar[bool] = True
    noise_alone: ClassVar[bool] = True
    layout: ClassVar[Literal["cells", "ends", "levels", "shares", "tables"]] = "levels"

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
        settle(self, parents=members("parents", self.parents))
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
        if any(isinstance(a, Open) for a in axes):
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
        """A row is counted once on each level of its way down: on all of them where all ways are equally long."""
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

        `exact` holds nodes that are public; parts that no unit can move are exact too. Post-processing.
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

    `parents` maps each key to what contains it, up to the top, which maps to None; pairs (child, parent) are
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

    Made once while the same statistic is asked: the same, and not an equal one, whose 1 may be another's 1.0.
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
    """For each level the place of each leaf's ancestor on it; -1 where its way ends above."""
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
    """Ways down as 0/1 vectors: one alone (add-or-remove, or against nothing), or two and what they do not share.

    `levels` are those that are released; nodes on other levels count for nothing.
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
