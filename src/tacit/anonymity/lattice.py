"""The lattice of full-domain generalisations, over counted cells: codes and losses by level, one evaluation a node.

A node is a level for each quasi-identifier. Cells (distinct rows of quasi-identifiers and sensitive value, with their
numbers) come from the engine once; a node is evaluated by lifting their codes and adding up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tacit.anonymity.criteria import Criteria
from tacit.anonymity.hierarchies import Hierarchy
from tacit.errors import UnknownName
from tacit.exact.arrays import Floats, Integers

__all__ = ["METRICS", "Cells", "Lattice", "Node"]

Node = tuple[int, ...]
METRICS = ("entropy", "precision")
MISSING = "\0missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """leaves: (cells, columns) codes of level 0. values: codes of the sensitive value, or None. counts: rows."""

    leaves: Integers
    values: Integers | None
    counts: Integers
    names: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Lattice:
    """All nodes with their losses; `evaluate` tells which cells of a node violate the criteria."""

    cells: Cells
    hierarchies: Sequence[Hierarchy]
    criteria: Criteria
    metric: str = "entropy"
    lifts: list[list[Integers]] = field(init=False)
    losses: list[list[Floats]] = field(init=False)
    checked: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise UnknownName(what="metric", name=str(self.metric), known=METRICS)
        self.lifts = [
            [_lift(names, tree, level) for level in range(tree.height + 1)]
            for names, tree in zip(self.cells.names, self.hierarchies, strict=True)
        ]
        self.losses = [self._losses(column) for column in range(len(self.lifts))]

    @property
    def heights(self) -> Node:
        """The top of the lattice."""
        return tuple(tree.height for tree in self.hierarchies)

    def _losses(self, column: int) -> list[Floats]:
        """For each level what a row with each leaf loses.

        entropy: log2(rows of its group / rows of its value), the non-uniform entropy of ARX; precision: the share of
        the levels that it rose (Sweeney 2002), over the number of columns.
        """
        weights = np.bincount(
            self.cells.leaves[:, column],
            weights=self.cells.counts,
            minlength=len(self.cells.names[column]),
        )
        out = []
        for level, lift in enumerate(self.lifts[column]):
            if self.metric == "precision":
                height = max(self.hierarchies[column].height, 1)
                out.append(np.full(len(weights), level / height / len(self.lifts)))
                continue
            groups = np.bincount(lift, weights=weights)
            with np.errstate(divide="ignore", invalid="ignore"):
                out.append(np.where(weights > 0, np.log2(groups[lift] / weights), 0.0))
        return out

    def level_losses(self) -> list[Floats]:
        """For each column the loss of all rows at each level; their sum over columns is a node's loss."""
        made = []
        for column, levels in enumerate(self.losses):
            at = self.cells.leaves[:, column]
            made.append(np.array([float(np.sum(loss[at] * self.cells.counts)) for loss in levels]))
        return made

    @property
    def most(self) -> float:
        """What suppressing everything would lose."""
        return float(
            sum(
                np.sum(self._top(i)[self.cells.leaves[:, i]] * self.cells.counts)
                for i in range(len(self.lifts))
            )
        )

    def keys(self, node: Node) -> Integers:
        """The class of each cell at a node, numbered from 0."""
        key = np.zeros(len(self.cells.counts), dtype=np.int64)
        size = 1
        for column, level in enumerate(node):
            lift = self.lifts[column][level]
            many = int(lift.max()) + 1
            if size * many >= 1 << 62:
                key = np.unique(key, return_inverse=True)[1].astype(np.int64)
                size = int(key.max()) + 1
            key = key * many + lift[self.cells.leaves[:, column]]
            size *= many
        if size <= 4 * len(key) + 1024:
            used = np.zeros(size, dtype=bool)
            used[key] = True
            place = np.cumsum(used) - 1
            return place[key].astype(np.int64)
        return np.unique(key, return_inverse=True)[1].astype(np.int64)

    def evaluate(self, node: Node) -> tuple[int, float]:
        """Rows in classes that violate the criteria, and what the node loses with them suppressed."""
        bad = self.violating(node)
        rows = int(self.cells.counts[bad].sum())
        loss = 0.0
        for column, level in enumerate(node):
            at = self.cells.leaves[:, column]
            levels = self.losses[column]
            # A suppressed row has lost what the coarsest level loses.
            each = np.where(bad, self._top(column)[at], levels[level][at])
            loss += float(np.sum(each * self.cells.counts))
        return rows, loss

    def _top(self, column: int) -> Floats:
        if self.metric == "precision":
            return self.losses[column][-1]
        weights = np.bincount(
            self.cells.leaves[:, column], weights=self.cells.counts, minlength=len(self.cells.names[column])
        )
        with np.errstate(divide="ignore"):
            return np.where(weights > 0, np.log2(weights.sum() / weights), 0.0)

    def violating(self, node: Node) -> npt.NDArray[np.bool_]:
        """Which cells lie in classes that violate the criteria."""
        self.checked += 1
        classes = self.keys(node)
        bad = self.criteria.violated(classes, self.cells.values, self.cells.counts)
        return np.asarray(bad[classes])


def _lift(names: Sequence[str], tree: Hierarchy, level: int) -> Integers:
    """Codes of level 0 as codes of a level. A missing value stays one, except where all values are one."""
    above: Mapping[str, str] = tree.at(level)
    single = len(set(above.values())) == 1
    only = next(iter(above.values()))
    groups = [
        above.get(name, MISSING) if name != MISSING else (only if single else MISSING) for name in names
    ]
    order = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    return np.array([order[group] for group in groups], dtype=np.int64)
