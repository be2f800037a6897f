"""Junction trees over columns: cliques, separators, and the number of cells that a model would need.

A set of margins is a graph on the columns: two columns are joined if a margin has both. The graph is triangulated
greedily, by the column whose elimination makes the smallest clique; the maximal cliques, joined along their largest
common parts, are a junction tree. Belief propagation on it is exact (Lauritzen, Spiegelhalter 1988).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

from tacit.exact.data_classes import dataclass

Margin = tuple[int, ...]
"""Places of columns, rising."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JunctionTree:
    """Cliques in an order in which each one follows its parent; -1 marks the root of each connected part.

    `separators[k]` are the columns that clique k shares with its parent. Every column is in some clique.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Margin, ...]
    parents: tuple[int, ...]
    separators: tuple[Margin, ...]

    @property
    def cells(self) -> int:
        """The number of cells of all cliques together."""
        return sum(cells_of(c, self.sizes) for c in self.cliques)

    def home(self, margin: Margin) -> int:
        """The smallest clique that holds this margin."""
        inside = [k for k, c in enumerate(self.cliques) if set(margin) <= set(c)]
        return min(inside, key=lambda k: cells_of(self.cliques[k], self.sizes))


def cells_of(margin: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of cells of a margin."""
    return math.prod(sizes[i] for i in margin)


def cliques_of(
    margins: Iterable[Margin], sizes: Sequence[int], *, limit: int | None = None
) -> list[Margin] | None:
    """The maximal cliques after triangulation; None as soon as they have more cells than the limit.

    Columns are eliminated one by one, each time the one whose clique has the fewest cells (the first of equal
    ones).
    """
    beside: list[set[int]] = [set() for _ in sizes]
    for margin in margins:
        for i in margin:
            beside[i].update(margin)
    for i, near in enumerate(beside):
        near.discard(i)
    logs = [math.log(s) for s in sizes]
    weight = [logs[i] + sum(logs[j] for j in near) for i, near in enumerate(beside)]
    found: list[Margin] = []
    # Earlier cliques by column: one that contains a new clique contains the column that is eliminated.
    holding: list[list[set[int]]] = [[] for _ in sizes]
    heap = [(w, i) for i, w in enumerate(weight)]
    heapq.heapify(heap)
    gone = [False] * len(weight)
    used = 0
    while heap:
        told, column = heapq.heappop(heap)
        if gone[column] or told != weight[column]:
            continue  # an entry of before: the present one is in the heap, too
        gone[column] = True
        near = beside[column]
        members = {*near, column}
        if not any(members <= c for c in holding[column]):
            clique = tuple(sorted(members))
            found.append(clique)
            for i in clique:
                holding[i].append(members)
            used += cells_of(clique, sizes)
            if limit is not None and used > limit:
                return None
        for i in near:
            beside[i] |= near
            beside[i].discard(i)
            beside[i].discard(column)
        for i in near:
            weight[i] = logs[i] + sum(logs[j] for j in beside[i])
            heapq.heappush(heap, (weight[i], i))
    return found


def junction_tree(margins: Iterable[Margin], sizes: Sequence[int], *, root: Margin = ()) -> JunctionTree:
    """The junction tree of these margins; a column of no margin forms a clique by itself.

    The first clique holds the columns of `root`, which some margin has.
    """
    cliques = cliques_of([*margins], sizes)
    assert cliques is not None
    rest = set(range(len(cliques)))
    order: list[int] = []
    parents: list[int] = []
    separators: list[Margin] = []
    best: dict[int, tuple[int, int]] = {}
    first = next(k for k, c in enumerate(cliques) if set(root) <= set(c))
    while rest:
        # Prim's algorithm for the heaviest separators; a new root where nothing is joined to what is placed.
        chosen = max(rest, key=lambda k: (best.get(k, (0, -1))[0], -k)) if order else first
        weight, parent = best.get(chosen, (0, -1))
        rest.discard(chosen)
        held = set(cliques[chosen])
        parents.append(order.index(parent) if weight else -1)
        separators.append(tuple(sorted(held & set(cliques[parent]))) if weight else ())
        order.append(chosen)
        for other in rest:
            common = len(held & set(cliques[other]))
            if common > best.get(other, (0, -1))[0]:
                best[other] = (common, chosen)
    return JunctionTree(
        sizes=tuple(sizes),
        cliques=tuple(cliques[k] for k in order),
        parents=tuple(parents),
        separators=tuple(separators),
    )


def fits(margins: Iterable[Margin], sizes: Sequence[int], limit: int) -> bool:
    """Has the junction tree of these margins at most this many cells?"""
    return cliques_of(margins, sizes, limit=limit) is not None


def fitting(
    candidates: Sequence[Margin], margins: Iterable[Margin], sizes: Sequence[int], limit: int
) -> list[bool]:
    """For each candidate, whether the junction tree of these margins and the candidate has at most this many cells.

    As `fits` says of each. Columns without a margin are eliminated apart, so that only the connected parts of a
    candidate are triangulated again.
    """
    part = list(range(len(sizes)))

    def find(i: int) -> int:
        while part[i] != i:
            part[i] = part[part[i]]
            i = part[i]
        return i

    listed = [*margins]
    for margin in listed:
        for i in margin[1:]:
            part[find(i)] = find(margin[0])
    inside: dict[int, list[int]] = {}
    for i in range(len(sizes)):
        inside.setdefault(find(i), []).append(i)
    joined: dict[int, list[Margin]] = {}
    for margin in listed:
        if margin:
            joined.setdefault(find(margin[0]), []).append(margin)

    def cells(parts: Iterable[int], more: Sequence[Margin]) -> int:
        columns = sorted(i for p in parts for i in inside[p])
        place = {i: k for k, i in enumerate(columns)}
        local = [tuple(place[i] for i in m) for m in (*(m for p in parts for m in joined.get(p, ())), *more)]
        widths = [sizes[i] for i in columns]
        cliques = cliques_of(local, widths)
        assert cliques is not None
        return sum(cells_of(c, widths) for c in cliques)

    alone = {p: cells([p], ()) for p in inside}
    total = sum(alone.values())
    out = []
    for c in candidates:
        touched = {find(i) for i in c}
        rest = total - sum(alone[p] for p in touched)
        out.append(rest <= limit and rest + cells(touched, [c]) <= limit)
    return out
