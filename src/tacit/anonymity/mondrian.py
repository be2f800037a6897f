"""Mondrian: multi-dimensional local recoding by cutting at medians (LeFevre, DeWitt, Ramakrishnan 2006, strict).

Cuts a box of rows in two at the median of its widest column, if both parts satisfy the criteria; otherwise
tries the next column. A box without an allowed cut is a class. Numbers become ranges, other values their
smallest common group in a hierarchy, or the set of those in the box. It is greedy, without a proof of least loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.anonymity.classes import check_roles
from tacit.anonymity.hierarchies import Hierarchy
from tacit.anonymity.search import Criteria, coded
from tacit.anonymity.treatments.methods import is_number, numbers
from tacit.errors import InvalidParameter, NotReachable
from tacit.exact.arrays import Integers
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.sources.microdata import open_microdata

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoded:
    """The treated table, the number of classes, and the share of each column's range that a row's range has."""

    table: Any
    quasi: tuple[str, ...]
    classes: int
    ranges: Mapping[str, float]

    @property
    def lost(self) -> float:
        """The normalised certainty penalty: the mean of the shares, from 0 to 1 (Xu et al. 2006)."""
        return float(np.mean(list(self.ranges.values())))


@dataclass(slots=True)
class _Column:
    name: str
    places: Integers
    """Rank of each row's value among the column's values, in order."""
    texts: Sequence[str]
    numeric: bool
    tree: Hierarchy | None


def mondrian(
    data: Any,
    *,
    quasi: Sequence[str],
    k: int,
    sensitive: str | None = None,
    l: float | None = None,  # noqa: E741
    diversity: str = "distinct",
    c: float = 3.0,
    t: float | None = None,
    distance: str = "equal",
    hierarchies: Mapping[str, Hierarchy] | None = None,
    engine: str | None = None,
) -> Recoded:
    """A table whose classes are boxes that satisfy k, and l and t of a sensitive column."""
    k = whole("k", k)
    if (l is not None or t is not None) and sensitive is None:
        raise InvalidParameter(parameter="sensitive", value=None, must="name a column, for l and t")
    refuse_if(distance == "hierarchical", "distance", distance, "be equal or ordered here")
    micro = open_microdata(data, engine=engine)
    try:
        names = check_roles(micro.columns, quasi, sensitive, source=micro.source)
        table = micro.rows()
    finally:
        if micro is not data:
            micro.close()
    rows = table.num_rows
    if not rows or k > rows:
        raise InvalidParameter(parameter="k", value=k, must=f"be at most the {rows:,} rows of the table")
    criteria = Criteria(k=k, diverse=l, diversity=diversity, c=c, t=t, distance=distance)
    values = np.zeros(rows, dtype=np.int64)
    if sensitive is not None:
        values, _ = coded(table.column(sensitive), ordered=distance == "ordered")
        criteria = replace(criteria, shares=np.bincount(values) / rows)
    columns = [_column(table, name, (hierarchies or {}).get(name)) for name in names]
    boxes = _boxes(columns, values, criteria, rows)
    return _recoded(table, columns, boxes)


def _column(table: Any, name: str, tree: Hierarchy | None) -> _Column:
    if tree is None and is_number(table, name):
        found = numbers(table, name)
        different, places = np.unique(found, return_inverse=True)
        texts = ["missing" if np.isnan(v) else f"{v:.12g}" for v in different]
        return _Column(name, places.astype(np.int64), texts, True, None)
    codes, words = coded(table.column(name))
    shown = ["missing" if w == "\0missing" else w for w in words]
    if tree is not None:
        tree.check_covers([w for w in words if w != "\0missing"], column=name)
        # Values of one group lie beside each other, so that cuts follow the tree.
        order = sorted(range(len(words)), key=lambda i: tree.levels.get(words[i], ("~",))[::-1])
    else:
        order = sorted(range(len(words)), key=lambda i: words[i])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _Column(name, rank[codes], [shown[i] for i in order], False, tree)


def _good(part: Integers, values: Integers, criteria: Criteria) -> bool:
    if len(part) < criteria.k:
        return False
    if criteria.diverse is None and criteria.t is None:
        return True
    one = np.ones(len(part), dtype=np.int64)
    return not bool(criteria.violated(np.zeros(len(part), dtype=np.int64), values[part], one)[0])


def _boxes(columns: Sequence[_Column], values: Integers, criteria: Criteria, rows: int) -> list[Integers]:
    everything = np.arange(rows)
    if not _good(everything, values, criteria):
        raise NotReachable(
            what="the requested property of every class", hint="even the whole table as one class lacks it"
        )
    widths = [max(len(c.texts) - 1, 1) for c in columns]
    stack, done = [everything], []
    while stack:
        box = stack.pop()
        cut = None
        if len(box) >= 2 * criteria.k:
            spans = [
                (np.ptp(c.places[box]) / w, i) for i, (c, w) in enumerate(zip(columns, widths, strict=True))
            ]
            for span, i in sorted(spans, key=lambda s: (-s[0], s[1])):
                if span == 0:
                    break
                cut = _cut(columns[i].places[box], box, values, criteria)
                if cut is not None:
                    break
        if cut is None:
            done.append(box)
        else:
            stack.extend(cut)
    return done


def _cut(
    here: Integers, box: Integers, values: Integers, criteria: Criteria
) -> tuple[Integers, Integers] | None:
    """Two parts at the median. The median goes to the left part, or to the right one if the left would get
    everything.
    """
    middle = np.partition(here, (len(here) - 1) // 2)[(len(here) - 1) // 2]
    for low in (here <= middle, here < middle):
        left, right = box[low], box[~low]
        if _good(left, values, criteria) and _good(right, values, criteria):
            return left, right
    return None


def _recoded(table: Any, columns: Sequence[_Column], boxes: Sequence[Integers]) -> Recoded:
    import pyarrow as pa

    which = np.empty(table.num_rows, dtype=np.int64)
    for i, box in enumerate(boxes):
        which[box] = i
    out, ranges = table, {}
    for column in columns:
        low = np.full(len(boxes), np.iinfo(np.int64).max)
        high = np.zeros(len(boxes), dtype=np.int64)
        np.minimum.at(low, which, column.places)
        np.maximum.at(high, which, column.places)
        words = [_box_text(column, box, int(a), int(b)) for box, a, b in zip(boxes, low, high, strict=True)]
        at = out.column_names.index(column.name)
        out = out.set_column(at, column.name, pa.array(words, type=pa.string()).take(pa.array(which)))
        ranges[column.name] = float(np.mean((high - low)[which]) / max(len(column.texts) - 1, 1))
    quasi = tuple(c.name for c in columns)
    return Recoded(table=out, quasi=quasi, classes=len(boxes), ranges=ranges)


def _box_text(column: _Column, box: Integers, low: int, high: int) -> str:
    if low == high:
        return column.texts[low]
    if column.numeric:
        return f"[{column.texts[low]}, {column.texts[high]}]"
    there = [column.texts[i] for i in np.unique(column.places[box])]
    if column.tree is not None and all(name in column.tree.levels for name in there):
        paths = [column.tree.levels[name] for name in there]
        for level in range(column.tree.height + 1):
            if len({path[level] for path in paths}) == 1:
                return paths[0][level]
        return "*"
    if len(there) > MOST_SHOWN:
        # A long list would tell more than it hides; its ends tell the same box.
        return f"{{{there[0]} .. {there[-1]}}}"
    return "{" + ", ".join(there) + "}"
