"""Worlds: columns in stored types, what is declared of them, whom it protects, and what is asked.

A world is drawn from a seed and knows no row. Names are odd now and then: those that the package uses for itself are
looked up in its own sources.
"""

from __future__ import annotations

import contextlib
import functools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tacit
from fuzz import values
from tacit import statistics as st
from tacit.curator.functions import decision_tree, regression_by_test
from tacit.errors import TacitError
from tacit.guarantees import People, Unit, group_of, people, rows
from tacit.sources import bins, category, date, flag, integer, number, parse
from tacit.sources.schema import Schema

WORDS = (("a", "b", "c"), ("CA", "NY", "TX"), ("1", "2", "3"), ("x", "Y"), ("a", "A", "ä"), ("", "a"))
ODD_NAMES = ("k0", "v0", "a b", 'q"q', "select", "Größe", "K0", "count", "x'y", "hash", "rowid", "filename")
STORED = {
    "words": (*values.TEXTS * 3, "string", "int64", "uint8", "null"),
    "ints": (*values.INTEGERS, "int64", "float64", "decimal(38,0)", "string"),
    "open": ("string", "string", "dictionary", "large_string", "int64"),
    "integer": (*values.INTEGERS, *values.FLOATS, *values.DECIMALS, "string", "null"),
    "number": (*values.FLOATS, "float64", *values.DECIMALS, "int32", "int64", "uint64", "string"),
    "free": (*values.FLOATS, "float64", "int64", "decimal(38,0)", "string"),
    "date": (*values.DAYS, "string"),
    "flag": ("bool", "bool", "int8", "string", "float64", "uint64"),
    "id": ("string", "string", "string", "int64", "float64", "uint64", "decimal(38,0)", "date32", "dictionary"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the table: how it is stored, and what is declared of it (None: it is not)."""

    name: str
    label: str
    stored: str
    declared: Any = None
    words: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything but the rows."""

    columns: tuple[Column, ...]
    unit: Unit
    asked: tuple[Any, ...]

    @property
    def schema(self) -> Schema:
        """What is declared."""
        return Schema({c.name: c.declared for c in self.columns if c.declared is not None})

    @property
    def person(self) -> Column | None:
        """The column that tells people apart."""
        base = base_of(self.unit)
        if not isinstance(base, People):
            return None
        return next(c for c in self.columns if c.name == base.column)

    def column(self, name: str) -> Column:
        """The column with this name."""
        return next(c for c in self.columns if c.name == name)


def base_of(unit: Unit) -> Unit:
    """The row or person that the unit is made of."""
    return getattr(unit, "of", unit)


@functools.cache
def own_names() -> tuple[str, ...]:
    """Names that the package uses for itself in an engine, as they stand in its sources."""
    package = Path(tacit.__file__).parent
    found = {
        n.rstrip("_")
        for path in sorted(package.glob("sources/**/*.py"))
        for n in re.findall(r"__tacit_?\w*", path.read_text())
    }
    return tuple(sorted(found | {f"{n}0" for n in found}))


def column_name(rng: random.Random, number: int) -> str:
    """Mostly plain."""
    if rng.random() < 0.04:
        return rng.choice(own_names())
    return rng.choice(ODD_NAMES) if rng.random() < 0.04 else f"c{number}"


def draw_column(rng: random.Random, name: str, without: tuple[str, ...] = ()) -> Column:
    """One declared column."""
    labels = (
        "words",
        "words",
        "words",
        "ints",
        "open",
        "integer",
        "integer",
        "number",
        "free",
        "date",
        "flag",
    )
    label = rng.choice(labels)
    stored = rng.choice([kind for kind in STORED[label] if kind not in without])
    words: tuple[Any, ...] = ()
    declared: Any = None
    outside: Any = rng.choice(["clamp", "missing"])
    match label:
        case "words":
            words = rng.choice(WORDS)
            if stored in values.INTEGERS:
                words = ("1", "2", "3")
            declared = category(list(words), missing=rng.choice([None, None, words[0]]))
        case "ints":
            words = rng.choice([(1, 2, 3), (0, 1), (5, 7, 100)])
            declared = category(list(words), missing=rng.choice([None, None, words[-1]]))
        case "open":
            words = rng.choice(WORDS) if stored in values.TEXTS else (1, 2, 3)
            declared = category()
        case "integer":
            low = rng.choice([0, 0, 1, -5, 3])
            high = low + rng.choice([1, 5, 9, 1000, 10**12])
            declared = integer(low, high, missing=rng.choice([None, None, low]), outside=outside)
        case "number":
            low, high = rng.choice([(0.0, 10.0), (-4.0, 4.0), (-8.0, 2.0), (1.0, 9.0)])
            spacing = rng.choice([1, 0.25, None, 2.0**-10])
            missing = rng.choice([None, None, high])
            declared = number(low, high, spacing=spacing, missing=missing, outside=outside)
        case "free":
            declared = rng.choice([number, integer])()
        case "date":
            missing = rng.choice([None, None, "2020-01-03"])
            declared = date("2020-01-01", "2020-01-10", missing=missing, outside=outside)
        case "flag":
            declared = flag(missing=rng.choice([None, None, True]))
    if rng.random() < 0.03:
        stored = rng.choice([k for k in (*values.NESTED, "null", "bool", "int64") if k not in without])
    words = tuple(w.encode() if isinstance(w, str) else w for w in words)
    return Column(name=name, label=label, stored=stored, declared=declared, words=words)


def draw_person(rng: random.Random, name: str, *, as_text: bool) -> Column:
    """The person column: not declared, mostly text."""
    stored = "string" if as_text else rng.choice(STORED["id"])
    words = tuple(b"p%d" % i for i in range(9)) if stored in values.TEXTS else tuple(range(9))
    return Column(name=name, label="id", stored=stored, words=words)


def draw_world(
    rng: random.Random, *, as_text: bool = False, most: int = 12, without: tuple[str, ...] = ()
) -> World:
    """A world with statistics that its schema allows."""
    names = list(dict.fromkeys(column_name(rng, i) for i in range(rng.randrange(2, 6))))
    columns = [draw_column(rng, n, without) for n in names]
    relation = rng.choice(["add-or-remove", "replace-one"])
    if rng.random() < 0.55:
        person = "person_id" if rng.random() < 0.9 else column_name(rng, 9)
        if person not in names:
            columns.insert(
                rng.randrange(len(columns) + 1), draw_person(rng, person, as_text=as_text or bool(without))
            )
        at_most = rng.choice([1, 2, 3, 12])
        groups = rng.choice([None, None, 1, 2])
        unit: Unit = people(person, at_most=at_most, groups=groups, neighbours=relation)
    else:
        unit = rows(neighbours=relation)
    if rng.random() < 0.1:
        unit = group_of(unit, size=2)
    if rng.random() < 0.2 and not without:
        columns.append(Column(name="beside", label="integer", stored=rng.choice([*values.NESTED, "int64"])))
    world = World(columns=tuple(columns), unit=unit, asked=())
    asked = draw_statistics(rng, world.schema, unit, most)
    return World(columns=world.columns, unit=unit, asked=asked)


# --- what is asked ---------------------------------------------------------------------------------------------
def draw_statistics(rng: random.Random, schema: Schema, unit: Unit, most: int) -> tuple[Any, ...]:
    """Statistics that are allowed, as many as `most`; none twice."""
    found: list[Any] = []
    for _ in range(4 * most):
        if len(found) >= most:
            break
        try:
            one = draw_statistic(rng, schema, unit)
            if found and rng.random() < 0.25:
                one = _varied(rng, rng.choice(found), schema)
            if one in found:
                continue
            question = one.on(schema, unit)
        except TacitError:
            continue
        if (question.cells or 0) <= 3000 or one.kind == "sparse_histogram":
            found.append(one)
        if one.kind == "sparse_histogram" and rng.random() < 0.4:
            # Read in one pass, with other rows left out: what is occupied for one is empty for the other.
            with contextlib.suppress(TacitError):
                other = replace(one, where=parse(draw_filter(rng, schema)))
                other.on(schema, unit)
                found += [] if other in found else [other]
    return tuple(found) or (st.count(),)


def _varied(rng: random.Random, one: Any, schema: Schema) -> Any:
    """The same statistic with one word changed: the filter, or what is counted."""
    if hasattr(one, "of") and one.of in ("rows", "people") and rng.random() < 0.4:
        return replace(one, of={"rows": "people", "people": "rows"}[one.of])
    other = None if one.where is not None and rng.random() < 0.3 else parse(draw_filter(rng, schema))
    return replace(one, where=other)


def draw_statistic(rng: random.Random, schema: Schema, unit: Unit) -> Any:
    """Any statistic of any columns, with or without a filter."""
    names = list(schema)

    def some(least: int, most: int) -> list[Any]:
        chosen = rng.sample(names, min(rng.randint(least, most), len(names)))
        return [bins(c, rng.choice([2, 3])) if rng.random() < 0.15 else c for c in chosen]

    one, by = rng.choice(names), rng.choice([None, None, some(1, 1), some(1, 2)])
    where = draw_filter(rng, schema) if rng.random() < 0.35 else None
    of: Any = rng.choice(["rows", "people"])
    at = rng.choice([(0.5,), (0.25, 0.5, 0.75)])
    match rng.choice(KINDS):
        case "count":
            return st.count(by=by, where=where, of=of)
        case "count by":
            return st.count(by=some(1, 2), where=where, of=of)
        case "sum":
            return st.sum(one, by=by, where=where)
        case "mean":
            return st.mean(one, by=by, where=where)
        case "weighted":
            return draw_weighted(rng, names, one, by, where, schema)
        case "variance":
            return rng.choice([st.variance, st.standard_deviation])(one, by=by, where=where)
        case "ratio":
            return st.ratio(one, rng.choice(names), by=by, where=where)
        case "proportion":
            return st.proportion(draw_filter(rng, schema), by=by, where=where)
        case "quantiles":
            return st.quantiles(one, at=at, by=by, where=where, resolution=rng.choice([8, 64]))
        case "histogram":
            if rng.random() < 0.3:
                return st.ranges(one, rng.choice([2, 4]), where=where)
            return st.histogram(one, rng.choice([None, 2, 4]), by=by, where=where)
        case "contingency":
            return st.contingency(some(1, 3), where=where)
        case "margins":
            columns = some(1, 3)
            return st.margins(columns, order=rng.randint(1, len(columns)), where=where)
        case "hierarchy":
            return st.hierarchy(some(1, 2), where=where)
        case "sparse":
            if rng.random() < 0.15:
                return st.clamping_bounds(one, where=where)
            return st.sparse_histogram(some(1, 3), where=where, of=of)
        case "geography":
            held: Any = getattr(schema[one], "values", None)
            keys = list(held or ["a"])
            lines = {"half": [f"h{i % 2}" for i in range(len(keys))], one: keys}
            return st.geography(["half", one], lines, by=[b for b in by or () if b != one], where=where)
        case "table":
            columns = some(1, 3)
            weights = rng.choice([None, {"cells": 2, "total": 1}])
            return st.table(columns, importance=weights, where=where)
        case "survival":
            event = rng.choice(names)
            declared = schema[event]
            known: Any = getattr(declared, "values", None)
            censored = rng.choice(known) if known and rng.random() < 0.8 else None
            edges = rng.choice([1, 2, 4])
            return st.survival(one, event, edges, by=by, censored=censored, where=where)
        case "regression":
            return st.regression(one, on=some(1, 2), where=where)
        case "function":
            return draw_function(rng, names, one, where)
    raise AssertionError


def draw_weighted(
    rng: random.Random, names: list[str], one: str, by: Any, where: str | None, schema: Schema
) -> Any:
    """A weighted statistic; whether the weight is one, and units are declared, is for the schema to say."""
    about: Any = {"by": by, "where": where, "survey_weight": rng.choice(names)}
    if rng.random() < 0.4:
        about["design"] = {"psu": rng.choice(names)}
    if rng.random() < 0.2:
        return st.inequality(one, by=by, where=where, bins=rng.choice([3, 8]))
    if rng.random() < 0.3:
        return st.rate(one, rng.choice(names), by=by, where=where, per=rng.choice([1, 1000]))
    match rng.choice(["calibrated", "count", "mean", "proportion", "ratio", "total"]):
        case "calibrated":
            totals = dict.fromkeys(
                rng.sample(names, min(rng.choice([1, 2]), len(names))), rng.choice([0, 50, 100])
            )
            return st.calibrated(
                one, where=where, population=100, totals=totals,
                survey_weight=rng.choice([None, about["survey_weight"]]),
            )  # fmt: skip
        case "count":
            return st.count(**about)
        case "mean":
            return st.mean(one, **about)
        case "proportion":
            return st.proportion(draw_filter(rng, schema), **about)
        case "ratio":
            return st.ratio(one, rng.choice(names), **about)
    return st.sum(one, **about)


def draw_function(rng: random.Random, names: list[str], one: str, where: str | None) -> Any:
    """A function of one or two columns; whether they are numbers is for the schema to say."""
    columns: Any = rng.sample(names, min(rng.choice([1, 1, 2]), len(names)))
    size: Any = rng.choice([1, 10, 1000])
    rest: Any = {"size": size, "points": 3, "where": where}
    match rng.choice(["density", "classifier", "classifier", "regression", "tree", "test"]):
        case "tree":
            return decision_tree(columns, one, size=10**6, depth=rng.choice([1, 2]), where=where)
        case "test":
            return regression_by_test(columns, one, size=10**4, spread=rng.choice([0.02, 0.3]), where=where)
        case "density":
            return tacit.density(columns, **rest)
        case "classifier":
            kernel = rng.choice(["gaussian", "linear"])
            return tacit.classifier(columns, one, kernel=kernel, pairs=3, **rest)
    return tacit.regression_function(columns, one, pairs=3, **rest)


KINDS = (
    "count", "count by", "count by", "sum", "mean", "variance", "ratio", "proportion", "quantiles", "histogram",
    "contingency", "margins", "hierarchy", "sparse", "sparse", "function", "function", "survival", "weighted",
    "regression", "table", "geography",
)  # fmt: skip


def draw_filter(rng: random.Random, schema: Schema) -> str:
    """A test of the declared columns, as text."""
    parts = [_test(rng, schema) for _ in range(rng.choice([1, 1, 2]))]
    joined = rng.choice([" and ", " or "]).join(parts)
    return f"not ({joined})" if rng.random() < 0.15 else joined


def _test(rng: random.Random, schema: Schema) -> str:
    name, column = rng.choice(list(schema.items()))
    quoted = f"`{name}`"
    kind = type(column).__name__
    if rng.random() < 0.12:
        return f"{quoted} is {rng.choice(['', 'not '])}missing"
    if kind == "Flag":
        return quoted
    if kind == "Category":
        known: Sequence[Any] = column.values or ("a", "CA")
        chosen = rng.choice(known)
        return f"{quoted} {rng.choice(['=', '!='])} {chosen!r}"
    sign = rng.choice(["<", "<=", ">", ">=", "=", "!="])
    if kind == "Date":
        return f"{quoted} {sign} '2020-01-0{rng.randint(1, 9)}'"
    return f"{quoted} {sign} {rng.choice([0, 1, 3, 5, 1.5]) if kind == 'Number' else rng.randint(0, 6)}"
