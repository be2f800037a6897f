"""Counts of a hierarchy that add up: nation = sum of regions = sum of districts.

Post-processing of noisy counts of the nodes. Real counts by weighted least squares in two passes, then whole
non-negative ones from the top down. See docs/theory/tree-least-squares.md and docs/theory/nearest-histogram.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.arrays import Floats, Integers
from tacit.statistics.consistency import nearest_histogram, nearest_rows

__all__ = ["Tree", "consistent_tree", "known_counts", "tree_estimate", "whole_cells"]


@dataclass(frozen=True, slots=True)
class Tree:
    """A forest as a map child -> parent (roots map to None), checked: no cycle, no parent that is not a node.

    Nodes are kept parents before children; `order` says which name a number stands for, `place` the number of a name.
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
        """From pairs (child, parent): a child that is named with two different parents is an error."""
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
                        hint="a node that nothing tells about cannot be fitted",
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
    their estimates whose total is the node's count. A family that is valid already is not moved. Exact counts are
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
        for members in families.values():
            rows = np.array([free for _, free in members])
            kept = np.array([sum(int(out[c]) for c in children[v] if fixed[c]) for v, _ in members])
            floors = least[rows]
            totals = out[[v for v, _ in members]] - kept - floors.sum(axis=1)
            z = estimate[rows] - floors
            # Estimates that are whole up to float error are whole: they must not decide ties.
            near = np.rint(z)
            z = np.where(np.abs(z - near) < 1e-6, near, z)
            whole = np.floor(z)
            out[rows] = nearest_rows(whole.astype(np.int64), totals, fractions=z - whole) + floors
    return {name: int(out[i]) for i, name in enumerate(tree.order)}


def whole_cells(cells: npt.ArrayLike, *, branching: int, total: int | None = None) -> Integers:
    """Whole non-negative cells from real ones, top down along a tree: every node keeps near its own estimate.

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
    """All counts that follow from the exact ones: sums of known parts, and the one part that is left of a sum."""
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
    """What each node counts at least, and whether that is all it can count; exact counts must agree."""
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
        hint="what was declared of this node and of its parts contradicts itself; correct the declared counts",
    )  # fmt: skip
