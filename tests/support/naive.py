"""Statistics by their definition, in plain Python, row by row: the referee of the engine and of sensitivities."""

from __future__ import annotations

import datetime
import itertools
import math
from fractions import Fraction
from typing import Any

from tacit.sources import axes as ax
from tacit.sources import expressions as ex
from tacit.sources.columns import Category, Column, Date, Flag, Integer, Number
from tacit.statistics import (
    ClampingBounds,
    Count,
    Margins,
    Mean,
    Proportion,
    Quantiles,
    Ratio,
    SparseCount,
    Sum,
    Variance,
)
from tacit.statistics.hierarchy import Hierarchy
from tacit.statistics.rates import Rate
from tacit.statistics.weighted import WeightedStatistic

Row = dict[str, Any]


def clean(column: Column, x: Any) -> Any:
    """The declared value: None where missing."""
    if isinstance(x, float) and math.isnan(x):
        x = None
    if isinstance(column, Category):
        if column.values is not None and x not in column.values:
            x = None
        return column.missing if x is None else x
    if isinstance(column, Flag):
        return column.missing if x is None else bool(x)
    if isinstance(column, Number | Integer | Date) and x is not None and column.bounded:
        if column.outside == "clamp":
            x = max(column.low, min(column.high, x))
        elif not column.low <= x <= column.high:
            x = None
    return column.missing if x is None else x


def steps(column: Column, x: Any) -> int | None:
    """Nearest multiple of the spacing, ties to even."""
    value = clean(column, x)
    if value is None:
        return None
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    return round(Fraction(value) / column.spacing)


def key(axis: ax.Axis, schema: Any, row: Row) -> Any:
    column = schema[axis.column]
    if isinstance(axis, ax.Listed):
        value = clean(column, row[axis.column])
        return None if value is None else axis.values.index(value)
    if isinstance(axis, ax.OpenAxis):
        return clean(column, row[axis.column])
    s = steps(column, row[axis.column])
    if s is None:
        return None
    if isinstance(axis, ax.Cut):
        return (s - column.lowest) * axis.count // axis.levels
    assert isinstance(axis, ax.Bins)
    value = Fraction(s) * column.spacing
    exact = [column.steps_of(e) * column.spacing for e in axis.edges]
    for k, (a, b) in enumerate(itertools.pairwise(exact)):
        last = k == len(exact) - 2
        if a <= value < b or (last and value == b):
            return k
    return None


def test(node: ex.Expression | None, schema: Any, row: Row) -> bool | None:
    """Three-valued logic."""
    if node is None:
        return True
    if isinstance(node, ex.Constant):
        return node.value
    if isinstance(node, ex.Not):
        inner = test(node.inner, schema, row)
        return None if inner is None else not inner
    if isinstance(node, ex.And | ex.Or):
        found = [test(p, schema, row) for p in node.parts]
        decisive = isinstance(node, ex.Or)
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    value = clean(schema[node.column], row[node.column])
    if isinstance(node, ex.IsMissing):
        return value is None
    if value is None:
        return None
    if isinstance(node, ex.IsTrue):
        return bool(value)
    day = isinstance(schema[node.column], Date)
    if isinstance(node, ex.IsIn):
        return value in [datetime.date.fromisoformat(v) if day else v for v in node.values]
    assert isinstance(node, ex.Compare)
    other = datetime.date.fromisoformat(node.value) if day else node.value
    return {
        "=": value == other, "!=": value != other, "<": node.operator == "<" and value < other,
        "<=": node.operator == "<=" and value <= other, ">": node.operator == ">" and value > other,
        ">=": node.operator == ">=" and value >= other,
    }[node.operator]  # fmt: skip


def nodes_above(statistic: Hierarchy, question: Any, cell: tuple[int, ...]) -> list[tuple[str, Any]]:
    """The nodes that a row is counted in, by walking up from its own place."""
    if not statistic.parents:
        return [(f"level {depth}", cell[:depth]) for depth in range(len(cell) + 1)]
    parents = dict(statistic.parents)
    way = [question.axes[0].labels[cell[0]]]
    while parents[way[-1]] is not None:
        way.append(parents[way[-1]])
    return [(f"level {depth}", node) for depth, node in enumerate(reversed(way))]


FACES = {
    "light": lambda k, top: 2 * k * (top - k), "heavy": lambda k, top: k * k, "low": lambda u, top: (top - u) ** 2,
    "middle": lambda u, top: 2 * u * (top - u), "high": lambda u, top: u * u, "below": lambda u, top: top - u,
    "above": lambda u, top: u,
}  # fmt: skip


def weighted_part(statistic: WeightedStatistic, schema: Any, row: Row, name: str) -> int:
    """What a row adds to a part, from its name: one polynomial a variable, a weight of first degree without a word."""
    columns = [getattr(statistic, n) for n in ("column", "numerator", "denominator") if hasattr(statistic, n)]
    places, most = [], 2**15 if len(columns) < 2 else 2**10

    def level(s: int, top: int) -> tuple[int, int]:
        """Own steps where they are few, else the nearest of so many levels, of two the higher."""
        return (s, top) if top <= most else (math.floor(Fraction(s * most, top) + Fraction(1, 2)), most)

    for column in columns:
        s = steps(schema[column], row[column])
        if s is None:
            return 0
        places.append(level(s - schema[column].lowest, schema[column].width))
    if hasattr(statistic, "of"):
        answer = test(statistic.of, schema, row)
        if answer is None:
            return 0
        places.append((int(answer), 1))
    words, out = name.split(), 1
    if statistic.survey_weight:
        k = steps(schema[statistic.survey_weight], row[statistic.survey_weight])
        if k is None:
            return 0
        k, top = level(k, schema[statistic.survey_weight].highest)
        out = FACES[words.pop(0)](k, top) if words[0] in ("light", "heavy") else k
    if name in ("sum", "crossed", "rows"):
        ((u, top),) = places
        if hasattr(statistic, "of"):
            top = 1
        return {"sum": u * top, "crossed": u * (top - u), "rows": 1}[name]
    if words == ["all"]:
        return out
    for word, (u, top) in zip(words, places, strict=True):
        out *= FACES[word](u, top)
    return out


def parts(question: Any, rows: list[Row], person: str | None = None) -> dict[str, dict[Any, int]]:
    """The released integers of each part, by cell, from the definition of each statistic."""
    statistic, schema = question.statistic, question.schema
    kept = [r for r in rows if test(statistic.where, schema, r) is True]
    out: dict[str, dict[Any, int]] = {p.name: {} for p in question.parts}

    def add(part: str, cell: Any, value: int) -> None:
        if part in out:
            out[part][cell] = out[part].get(cell, 0) + value

    people: dict[Any, set[Any]] = {}
    for row in kept:
        if isinstance(statistic, Rate):
            cell = tuple(key(a, schema, row) for a in question.parts[0].axes)
            pair = [steps(schema[c], row[c]) for c in (statistic.events, statistic.time)]
            if None not in cell and None not in pair:
                add("events", cell, 3 * pair[0] * schema[statistic.time].highest)  # type: ignore[operator]
                add("time", cell, 2 * pair[1] * schema[statistic.events].highest)  # type: ignore[operator]
            continue
        if isinstance(statistic, WeightedStatistic):
            cell = tuple(key(a, schema, row) for a in question.parts[0].axes)
            if None not in cell:
                for part in question.parts:
                    add(part.name, cell, weighted_part(statistic, schema, row, part.name))
            continue
        if isinstance(statistic, Margins):
            for part in question.parts:
                cell = tuple(key(a, schema, row) for a in part.axes)
                if None not in cell:
                    add(part.name, cell, 1)
            continue
        cell = tuple(key(a, schema, row) for a in question.axes)
        if None in cell:
            continue
        if isinstance(statistic, Hierarchy):
            for name, node in nodes_above(statistic, question, cell):
                add(name, node, 1)
            continue
        if isinstance(statistic, SparseCount) and any(
            all(clean(schema[c], row[c]) in values for c, values in pattern)
            for pattern in statistic.impossible
        ):
            continue
        if isinstance(statistic, Count | SparseCount):
            if statistic.of == "rows":
                add("count", cell, 1)
            else:
                people.setdefault(cell, set()).add(row[person])  # type: ignore[index]
        elif isinstance(statistic, Sum):
            add("sum", cell, steps(schema[statistic.column], row[statistic.column]) or 0)
        elif isinstance(statistic, Ratio):
            pair = [steps(schema[c], row[c]) for c in (statistic.numerator, statistic.denominator)]
            if None not in pair:
                add("numerator", cell, pair[0])  # type: ignore[arg-type]
                add("denominator", cell, pair[1])  # type: ignore[arg-type]
        elif isinstance(statistic, Proportion):
            answer = test(statistic.of, schema, row)
            if answer is not None:
                add("yes" if answer else "no", cell, 1)
                add("rows", cell, 1)
        elif isinstance(statistic, Quantiles):
            fine = key(question.parts[0].axes[-1], schema, row)
            if fine is not None:
                add("counts", (*cell, fine), 1)
        else:
            assert isinstance(statistic, Mean | Variance)
            column = schema[statistic.column]
            s = steps(column, row[statistic.column])
            if s is None:
                continue
            u, w = s - column.lowest, column.width
            add("rows", cell, 1)
            add("above", cell, u)
            add("below", cell, w - u)
            add("squares_below", cell, (w - u) ** 2)
            add("products", cell, 2 * u * (w - u))
            add("squares_above", cell, u * u)
    for cell, names in people.items():
        add("count", cell, len(names))
    assert not isinstance(statistic, ClampingBounds)
    return out
