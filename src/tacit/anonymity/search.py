"""The best full-domain generalisation: every value of a column at one level of its hierarchy, with the least loss.

A proved best node of the lattice: it satisfies k, l and t with at most a given share of suppressed rows and loses
least by a named metric. The search passes over a node if a node above it fails (then it fails too), or if its
loss, which suppression only raises, is not below that of a known solution.

Predictive tagging follows Flash (Kohlmayer et al. 2012). Along a chain from a cheap node to the top, bisection finds
the first node that satisfies the criteria, and a failing node rules out everything below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.anonymity.classes import COUNT_COLUMN as COUNT
from tacit.anonymity.classes import VALUE_COLUMN as VALUE
from tacit.anonymity.classes import Classes
from tacit.anonymity.hierarchies import Hierarchy
from tacit.errors import InvalidParameter, NotReachable, TooManyCells, UnknownName
from tacit.exact.arrays import Booleans, Floats, Integers
from tacit.exact.checks import non_negative, positive, probability, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.sources.microdata import Microdata, open_microdata

# What classes must satisfy in a search: k, l and t, evaluated for all classes at once.

DIVERSITIES = ("distinct", "entropy", "recursive")
MOST = 20_000_000
"""Entries of a table of classes by values that is held at once."""
SLACK = 1e-9
"""An equality of sums may be off by this much after rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """k: the least size of a class. diverse: its least diversity, the l of l-diversity. t: its largest distance.

    distance: "equal", or "ordered" for values that are in order by their codes; "hierarchical" with the codes of the
    values at each level below the root. shares: of the values in the whole table, which t is about.
    """

    k: int = 1
    diverse: float | None = None
    diversity: str = "distinct"
    c: float = 3.0
    t: float | None = None
    distance: str = "equal"
    shares: Floats | None = None
    levels: Sequence[Integers] = ()

    def __post_init__(self) -> None:
        whole("k", self.k)
        positive("c", self.c)
        if self.diverse is not None and (positive("l", self.diverse) < 1):
            raise InvalidParameter(parameter="l", value=self.diverse, must="be at least 1")
        if self.diversity not in DIVERSITIES:
            raise UnknownName(what="diversity", name=str(self.diversity), known=DIVERSITIES)
        if self.t is not None:
            non_negative("t", self.t)
        if self.distance not in ("equal", "ordered", "hierarchical"):
            raise UnknownName(
                what="distance", name=str(self.distance), known=("equal", "hierarchical", "ordered")
            )

    @property
    def monotone(self) -> bool:
        """Whether a good class stays good when other classes join it.

        This holds for k and for distinct diversity; the entropy, and the distance, of two classes together lie between
        those of the two. Without suppression the worst class never gets worse, for all criteria.
        """
        return self.t is None and (self.diverse is None or self.diversity == "distinct")

    def violated(self, classes: Integers, values: Integers | None, counts: Integers) -> Booleans:
        """For each class, numbered from 0, whether it violates a criterion."""
        many = int(classes.max()) + 1
        sizes = _sums(classes, weights=counts, minlength=many)
        bad = np.asarray(sizes < self.k)
        if (self.diverse is None and self.t is None) or values is None or bad.all():
            return bad
        width = int(values.max()) + 1
        merged, inverse = np.unique(classes * width + values, return_inverse=True)
        n = _sums(inverse, weights=counts)
        group, value = merged // width, merged % width
        if self.diverse is not None:
            bad |= self._poor(group, n, sizes)
        if self.t is not None:
            bad |= self._far(group, value, n, sizes) > self.t + SLACK
        return bad

    def _poor(self, group: Integers, n: Floats, sizes: Floats) -> Booleans:
        assert self.diverse is not None
        many = len(sizes)
        if self.diversity == "distinct":
            return np.asarray(_sums(group, minlength=many) < self.diverse)
        if self.diversity == "entropy":
            inner = _sums(group, weights=n * np.log(n), minlength=many)
            return np.asarray(np.log(sizes) - inner / sizes < np.log(self.diverse) - SLACK)
        order = np.lexsort((-n, group))
        starts = np.searchsorted(group[order], np.arange(many))
        rank = np.arange(len(group)) - starts[group[order]]
        top = np.zeros(many)
        top[group[order][rank == 0]] = n[order][rank == 0]
        tail = _sums(group[order], weights=np.where(rank >= self.diverse - 1, n[order], 0), minlength=many)
        return np.asarray(~(top < self.c * tail))

    def _far(self, group: Integers, value: Integers, n: Floats, sizes: Floats) -> Floats:
        assert self.shares is not None
        if self.distance == "equal":
            return _equal(group, value, n, sizes, self.shares)
        if self.distance == "hierarchical":
            total = np.zeros(len(sizes))
            for lift in self.levels:
                width = int(lift.max()) + 1
                merged, inverse = np.unique(group * width + lift[value], return_inverse=True)
                shares = _sums(lift, weights=self.shares, minlength=width)
                total += _equal(merged // width, merged % width, _sums(inverse, weights=n), sizes, shares)
            return total / max(len(self.levels), 1)
        m = len(self.shares)
        if m < 2:
            return np.zeros(len(sizes))
        out = np.zeros(len(sizes))
        step = max(1, MOST // m)
        for start in range(0, len(sizes), step):
            stop = min(start + step, len(sizes))
            here = (group >= start) & (group < stop)
            dense = np.zeros((stop - start, m))
            dense[group[here] - start, value[here]] = n[here] / sizes[group[here]]
            out[start:stop] = np.abs(np.cumsum(dense - self.shares, axis=1)).sum(axis=1) / (m - 1)
        return out


def _sums(places: Integers, weights: npt.ArrayLike | None = None, minlength: int = 0) -> Floats:
    """Sums of weights, or numbers of entries, by place."""
    return np.asarray(np.bincount(places, weights=weights, minlength=minlength), dtype=np.float64)


def _equal(group: Integers, value: Integers, n: Floats, sizes: Floats, shares: Floats) -> Floats:
    more = np.maximum(n / sizes[group] - shares[value], 0.0)
    return _sums(group, weights=more, minlength=len(sizes))


# The lattice of full-domain generalisations, over counted cells: codes and losses by level, one evaluation a node.
#
# A node is a level for each quasi-identifier. Cells (distinct rows of quasi-identifiers and sensitive value, with
# their numbers) come from the engine once; a node is evaluated by lifting their codes and adding up.

Node = tuple[int, ...]
METRICS = ("entropy", "precision")
MISSING = "\0missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralisedCells:
    """leaves: (cells, columns) codes of level 0. values: codes of the sensitive value, or None. counts: rows."""

    leaves: Integers
    values: Integers | None
    counts: Integers
    names: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Lattice:
    """All nodes with their losses; `evaluate` returns the cells of a node that violate the criteria."""

    cells: GeneralisedCells
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
        """The loss of a row with each leaf, level by level.

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
        """The loss of all rows at each level, column by column; their sum over columns is a node's loss."""
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
        """Rows in classes that violate the criteria, and the node's loss with them suppressed."""
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
        """The cells in classes that violate the criteria."""
        self.checked += 1
        classes = self.keys(node)
        bad = self.criteria.violated(classes, self.cells.values, self.cells.counts)
        return np.asarray(bad[classes])


def _lift(names: Sequence[str], tree: Hierarchy, level: int) -> Integers:
    """Codes of level 0 as codes of a level. A missing value stays missing, unless all values form one group."""
    above: Mapping[str, str] = tree.at(level)
    single = len(set(above.values())) == 1
    only = next(iter(above.values()))
    groups = [
        above.get(name, MISSING) if name != MISSING else (only if single else MISSING) for name in names
    ]
    order = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    return np.array([order[group] for group in groups], dtype=np.int64)


MOST_NODES = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Generalised:
    """The treated table and how it was found: levels by column, loss by metric, rows removed, nodes looked at."""

    table: Any
    quasi: tuple[str, ...]
    levels: Mapping[str, int]
    metric: str
    loss: float
    most: float
    removed: int
    rows: int
    nodes: int
    checked: int

    @property
    def lost(self) -> float:
        """The loss as a share of the loss by suppressing everything."""
        return self.loss / self.most if self.most else 0.0


def generalise(
    data: Any,
    *,
    hierarchies: Mapping[str, Hierarchy],
    k: int,
    sensitive: str | None = None,
    l: float | None = None,  # noqa: E741
    diversity: str = "distinct",
    c: float = 3.0,
    t: float | None = None,
    distance: str = "equal",
    hierarchy: Hierarchy | None = None,
    suppress: float = 0.0,
    metric: str = "entropy",
    engine: str | None = None,
) -> Generalised:
    """The full-domain generalisation with the least loss for k, and l and t of a sensitive column.

    hierarchies: one for each quasi-identifier. suppress: the largest share of rows that may be removed. metric:
    "entropy" (non-uniform entropy, bits) or "precision". t refers to the values of the given table.
    """
    k = whole("k", k)
    share = probability("suppress", suppress)
    if (l is not None or t is not None) and sensitive is None:
        raise InvalidParameter(parameter="sensitive", value=None, must="name a column, for l and t")
    micro = open_microdata(data, engine=engine)
    try:
        classes = Classes(micro, tuple(hierarchies), sensitive)
        cells, criteria = counted(
            classes,
            hierarchies,
            Criteria(k=k, diverse=l, diversity=diversity, c=c, t=t, distance=distance),
            hierarchy,
        )
        rows = int(cells.counts.sum())
        if k > rows:
            raise InvalidParameter(parameter="k", value=k, must=f"be at most the {rows:,} rows of the table")
        lattice = Lattice(
            cells=cells, hierarchies=list(hierarchies.values()), criteria=criteria, metric=metric
        )
        node, loss = best_node(lattice, allowed=int(share * rows + 1e-9))
        bad = lattice.violating(node)
        table = _treated(micro, classes.quasi, list(hierarchies.values()), node, cells, bad)
        size = int(np.prod([h + 1 for h in lattice.heights], dtype=np.int64))
        return Generalised(
            table=table, quasi=classes.quasi, levels=dict(zip(classes.quasi, node, strict=True)), metric=metric,
            loss=loss, most=lattice.most, removed=int(cells.counts[bad].sum()), rows=rows, nodes=size,
            checked=lattice.checked,
        )  # fmt: skip
    finally:
        if micro is not data:
            micro.close()


def counted(
    classes: Classes, hierarchies: Mapping[str, Hierarchy], criteria: Criteria, hierarchy: Hierarchy | None
) -> tuple[GeneralisedCells, Criteria]:
    """The cells of a table as codes, every value with a place in its hierarchy; and the criteria with its shares."""
    from dataclasses import replace

    relation = classes.cells if classes.sensitive is not None else classes.sizes
    table = classes.micro.ask(relation)
    refuse_if(not table.num_rows, "data", "no rows", "have rows")
    codes, names = [], []
    for key, column in zip(classes.keys, classes.quasi, strict=True):
        found, words = coded(table.column(key))
        hierarchies[column].check_covers([w for w in words if w != MISSING], column=column)
        codes.append(found)
        names.append(words)
    counts = np.asarray(table.column(COUNT).to_numpy(), dtype=np.int64)
    values = None
    if classes.sensitive is not None:
        values, words = coded(table.column(VALUE), ordered=criteria.distance == "ordered")
        shares = np.bincount(values, weights=counts) / counts.sum()
        levels: list[npt.NDArray[np.int64]] = []
        if criteria.distance == "hierarchical":
            if hierarchy is None:
                raise InvalidParameter(
                    parameter="hierarchy", value=None, must="be given for the hierarchical distance"
                )
            hierarchy.check_covers([w for w in words if w != MISSING], column=classes.sensitive)
            paths = [hierarchy.path(None if w == MISSING else w) for w in words]
            for level in range(len(paths[0])):
                order = {name: i for i, name in enumerate(dict.fromkeys(path[level] for path in paths))}
                levels.append(np.array([order[path[level]] for path in paths], dtype=np.int64))
        criteria = replace(criteria, shares=shares, levels=levels)
    leaves = np.stack(codes, axis=1)
    return GeneralisedCells(leaves=leaves, values=values, counts=counts, names=tuple(names)), criteria


def coded(column: Any, *, ordered: bool = False) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Codes of a column's values and their texts; in the order of numbers, missing first, if asked."""
    import pyarrow as pa

    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    values = coded.dictionary.to_pylist()
    texts = [MISSING if v is None else str(v) for v in values]
    if ordered:
        try:
            numbers = [float("-inf") if v is None else float(v) for v in values]
        except (TypeError, ValueError):
            raise InvalidParameter(
                parameter="distance", value="ordered", must="go with a column of numbers"
            ) from None
        order = sorted(range(len(values)), key=lambda i: (values[i] is not None, numbers[i]))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank[codes], tuple(texts[i] for i in order)
    return codes, tuple(texts)


def best_node(lattice: Lattice, *, allowed: int) -> tuple[Node, float]:
    """The node with the least loss among those with at most `allowed` rows in violating classes."""
    heights = lattice.heights
    size = 1
    for height in heights:
        size *= height + 1
    if size > MOST_NODES:
        raise TooManyCells(cells=size, limit=MOST_NODES, hint="use fewer levels, or fewer quasi-identifiers")
    nodes = np.stack(np.meshgrid(*[np.arange(h + 1) for h in heights], indexing="ij"), axis=-1).reshape(
        -1, len(heights)
    )
    losses = sum(table[nodes[:, i]] for i, table in enumerate(lattice.level_losses()))
    assert isinstance(losses, np.ndarray)
    monotone = allowed == 0 or lattice.criteria.monotone
    search = _LatticeSearch(lattice, nodes, losses, allowed, monotone)
    for start in np.argsort(losses, kind="stable"):
        if not search.open[start]:
            continue
        if losses[start] >= search.loss:
            break
        search.chain(int(start)) if monotone else search.look(int(start))
    if search.best is None:
        raise NotReachable(
            what=f"k = {lattice.criteria.k} with at most {allowed:,} rows removed",
            hint="give coarser levels, allow more suppression, or ask for less",
        )
    return tuple(int(v) for v in nodes[search.best]), search.loss


class _LatticeSearch:
    """The open nodes, and the best one so far."""

    def __init__(
        self,
        lattice: Lattice,
        nodes: npt.NDArray[Any],
        losses: npt.NDArray[np.float64],
        allowed: int,
        monotone: bool,
    ) -> None:
        self.lattice, self.nodes, self.losses = lattice, nodes, losses
        self.allowed, self.monotone = allowed, monotone
        self.open = np.ones(len(nodes), dtype=bool)
        self.best: int | None = None
        self.loss = float("inf")
        self.strides = np.array(
            [
                int(np.prod([h + 1 for h in lattice.heights[i + 1 :]], dtype=np.int64))
                for i in range(nodes.shape[1])
            ]
        )

    def look(self, index: int) -> bool:
        """Evaluates a node, records it if it is the best, and closes the nodes whose results follow."""
        self.open[index] = False
        node = tuple(int(v) for v in self.nodes[index])
        suppressed, loss = self.lattice.evaluate(node)
        good = suppressed <= self.allowed
        if good and (loss < self.loss or self.best is None):
            self.best, self.loss = index, loss
        if not good and self.monotone:
            self.open &= ~(self.nodes <= self.nodes[index]).all(axis=1)
        if good and self.allowed == 0:
            # What lies above satisfies too, and loses no less.
            self.open &= ~(self.nodes >= self.nodes[index]).all(axis=1)
        return good

    def chain(self, start: int) -> None:
        """From a node up to the top along the cheapest open steps; bisection finds the first good node."""
        path = [start]
        while True:
            here = self.nodes[path[-1]]
            steps = [
                path[-1] + int(self.strides[i]) for i in range(len(here)) if here[i] < self.lattice.heights[i]
            ]
            steps = [s for s in steps if self.open[s]]
            if not steps:
                break
            path.append(min(steps, key=lambda s: self.losses[s]))
        low, high = 0, len(path)
        while low < high:
            middle = (low + high) // 2
            if self.open[path[middle]] and self.look(path[middle]):
                high = middle
            else:
                low = middle + 1


def _treated(
    micro: Microdata,
    quasi: Sequence[str],
    hierarchies: Sequence[Hierarchy],
    node: Node,
    cells: GeneralisedCells,
    bad: npt.NDArray[np.bool_],
) -> Any:
    """All columns, the quasi-identifiers generalised, without the rows of violating classes."""
    import pyarrow as pa

    table = micro.rows()
    keep = np.ones(table.num_rows, dtype=bool)
    made = {}
    key = np.zeros(table.num_rows, dtype=np.int64)
    keys = np.zeros(len(cells.counts), dtype=np.int64)
    for i, (column, tree, level) in enumerate(zip(quasi, hierarchies, node, strict=True)):
        codes, words = coded(table.column(column))
        above = tree.at(level)
        tops = set(above.values())
        groups = [(next(iter(tops)) if len(tops) == 1 else None) if w == MISSING else above[w] for w in words]
        texts = pa.array(groups, type=pa.string())
        made[column] = texts.take(pa.array(codes)) if level else table.column(column)
        order = {g: j for j, g in enumerate(dict.fromkeys(groups))}
        lift = np.array([order[g] for g in groups], dtype=np.int64)
        theirs = dict(zip(words, groups, strict=True))
        there = np.array([order[theirs[w]] for w in cells.names[i]], dtype=np.int64)
        both = np.concatenate([key * len(order) + lift[codes], keys * len(order) + there[cells.leaves[:, i]]])
        both = np.unique(both, return_inverse=True)[1].astype(np.int64)
        key, keys = both[: len(key)], both[len(key) :]
    if bad.any():
        keep = ~np.isin(key, np.unique(keys[bad]))
    out = pa.table({name: made.get(name, table.column(name)) for name in table.column_names})
    return out.filter(pa.array(keep))
