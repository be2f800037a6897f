"""Tables that are neighbours by definition, what is asked of them, and what the noise that is drawn hides."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from contextlib import suppress
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa

import tacit
from fuzz.quick import sped_up
from tacit.errors import UnitMismatch
from tacit.noise.source import SeededSource
from tacit.sources import open_table
from tacit.sources.schema import Schema
from tacit.statistics import read_cells

from .draws import Draw, Loss, key_pair, survival, watched

KEY = b"an ordinary secret of the tests."
SCHEMA = Schema(
    {
        "a": tacit.category(["x", "y"]),
        "b": tacit.category([1, 2, 3]),
        "t": tacit.category(),
        "f": tacit.flag(),
        "g": tacit.category(["p", "q"], missing="p"),
        "h": tacit.category(["r", "s", "z"], missing="r"),
        "v": tacit.number(0, 8, spacing=1),
        "n": tacit.integer(-7, 3),
        "w": tacit.number(-1, 2, spacing=0.5),
        "u": tacit.number(),
    }
)
FIRST = {"g": "p", "h": "r", "a": "x", "b": 1, "t": "k1", "f": True, "w": 2.0, "v": 8.0, "n": -7, "u": 5.0}
SECOND = {"g": "q", "h": "s", "a": "y", "b": 3, "t": "k2", "f": False, "w": -1.0, "v": 0.0, "n": 3, "u": -9.0}
THIRD = {"g": "q", "h": "z", "a": "x", "b": 2, "t": "k3", "f": True, "w": 2.0, "v": 0.0, "n": -7, "u": 5.0}
FOURTH = {"g": "p", "h": "z", "a": "x", "b": 1, "t": "k1", "f": True, "w": -1.0, "v": 4.0, "n": 3, "u": 5.0}
NOTHING = dict.fromkeys(FIRST)
OTHERS = [FIRST, SECOND, THIRD, FOURTH] * 3 + [FIRST] * 700
"""One key is so common that it is named under every price."""

ASKED: dict[str, Any] = {
    "count": tacit.count(),
    "count where": tacit.count(where="f"),
    "counts": tacit.count(by=["a", "b"]),
    "people": tacit.count(of="people"),
    "people by": tacit.count(of="people", by="b"),
    "sum": tacit.sum("n"),
    "sums": tacit.sum("v", by="a"),
    "mean": tacit.mean("v"),
    "means": tacit.mean("n", by="b"),
    "variance": tacit.variance("n"),
    "proportion": tacit.proportion("n > 0"),
    "ratio": tacit.ratio("w", "n"),
    "histogram": tacit.histogram("v", 4),
    "margins": tacit.margins(["a", "b", "f"], order=2),
    "hierarchy": tacit.hierarchy(["a", "b"]),
    "complete margins": tacit.margins(["g", "h"]),
    "complete pairs": tacit.margins(["a", "g", "h"], order=2, where="g = 'q'"),
    "complete hierarchy": tacit.hierarchy(["g", "h"]),
    "two cells": tacit.count(by="g"),
    "ranges": tacit.ranges("v", 4),
    "few ranges": tacit.ranges("n", 11, at=[(-7, -7), (-7, 3), (2, 3)], where="f"),
    "quantiles": tacit.quantiles("v", by="a"),
    "clamping_bounds": tacit.clamping_bounds("u"),
    "keys": tacit.count(by="t", of="people"),
    "rows by keys": tacit.count(by="t"),
    "sums by keys": tacit.sum("v", by="t"),
    "sparse": tacit.sparse_histogram(["a", "b"]),
    "sparse people": tacit.sparse_histogram(["a", "b"], of="people"),
}
UNITS: dict[str, Any] = {
    f"{name}, {relation}": made(relation)
    for name, made in {
        "rows": lambda r: tacit.rows(neighbours=r),
        "people": lambda r: tacit.people("id", at_most=3, neighbours=r),
        "few groups": lambda r: tacit.people("id", at_most=3, groups=2, neighbours=r),
        "two people": lambda r: tacit.group_of(tacit.people("id", at_most=2, neighbours=r), size=2),
        "three rows": lambda r: tacit.group_of(tacit.rows(neighbours=r), size=3),
    }.items()
    for relation in ("add-or-remove", "replace-one")
}


def table(mine: list[list[dict[str, Any]]]) -> pa.Table:
    """The base and what each of the differing units brings along."""
    rows = [{**r, "id": f"other {i}"} for i, r in enumerate(OTHERS)]
    rows += [{**r, "id": f"me {i}"} for i, own in enumerate(mine) for r in own]
    types: Any = {"b": pa.int64(), "n": pa.int64(), "f": pa.bool_()} | dict.fromkeys("vwu", pa.float64())
    return pa.table({c: pa.array([r[c] for r in rows], types.get(c, pa.string())) for c in [*FIRST, "id"]})


def versions(unit: Any) -> tuple[list[Any], bool]:
    """All that the differing units may bring, and whether neighbours are made by replacing; by definition."""
    base, size = getattr(unit, "of", unit), getattr(unit, "size", 1)
    most = getattr(base, "at_most", None)
    if most is None:
        one = [[r] for r in (FIRST, SECOND, THIRD, FOURTH, NOTHING)]
    else:
        one = [[r] * most for r in (FIRST, SECOND, THIRD, FOURTH)] + [[FIRST, SECOND, THIRD][:most], []]
    found = [[own] * size for own in one]
    replaced = base.neighbours == "replace-one"
    return (found, True) if replaced else ([*found, []], False)


def pairs(unit: Any) -> list[tuple[int, int]]:
    """Places of neighbours among the versions: any two of them, or each against nothing."""
    found, replaced = versions(unit)
    last = len(found) - 1
    return (
        list(itertools.combinations(range(len(found)), 2)) if replaced else [(i, last) for i in range(last)]
    )


def opened(unit: str) -> Iterator[Any]:
    """Each version's table, one after the other; their SQL is the same, and written once."""
    for mine in versions(UNITS[unit])[0]:
        with sped_up(), open_table(table(mine), schema=SCHEMA, unit=UNITS[unit]) as held:
            yield held


@functools.cache
def read(unit: str) -> dict[str, list[Any]]:
    """What is read of each version's table: all that can be asked under this unit, in one go."""
    questions = {}
    for name, asked in ASKED.items():
        with suppress(UnitMismatch):
            questions[name] = asked.on(SCHEMA, UNITS[unit])
    found = [read_cells(t, list(questions.values()), key=KEY) for t in opened(unit)]
    return {name: [one[i] for one in found] for i, name in enumerate(questions)}


def cells(unit: str, name: str) -> list[Any]:
    """What is read of each version's table for one question."""
    return read(unit)[name]


def drawn(planned: Any, unit: str, name: str) -> list[list[Draw]]:
    """The draws of the planned assignment itself, on each version's table."""
    out = []
    for found in cells(unit, name):
        with watched() as draws:
            planned.assignment.run(planned.question, found, source=SeededSource(seed=5))
        out.append(draws)
    return out


def by_key(question: Any, found: Any, part: str) -> dict[Any, int]:
    """A part of a question with unknown keys: what each key has."""
    keys = list(zip(*found[0].keys, strict=True))
    return dict(zip(keys, map(int, question.integers(found)[part]), strict=True))


def gap(one: dict[Any, int], two: dict[Any, int]) -> list[int]:
    return [one.get(k, 0) - two.get(k, 0) for k in {*one, *two}]


def losses(planned: Any, unit: str, name: str) -> Iterator[Loss]:
    """What separates each pair of neighbours, from the noise that was drawn."""
    runs, held, kind = drawn(planned, unit, name), cells(unit, name), planned.question.statistic.kind
    for i, j in pairs(UNITS[unit]):
        loss = Loss()
        if name in ("keys", "rows by keys", "sums by keys"):
            _keys(loss, planned, runs[i], (held[i], held[j]), UNITS[unit])
        elif kind == "sparse_histogram":
            _sparse(loss, planned, (runs[i], runs[j]), (held[i], held[j]))
        elif kind == "quantiles" and runs[i][0].kind == "laplace":
            _tree(loss, planned, runs[i], (held[i], held[j]))
        else:
            assert [(d.kind, d.scale) for d in runs[i]] == [(d.kind, d.scale) for d in runs[j]]
            for one, two in zip(runs[i], runs[j], strict=True):
                difference = np.ravel(one.true) - np.ravel(two.true)
                if one.kind == "staircase":
                    loss.stairs(difference, one.law)
                    continue
                if one.kind == "hull":
                    loss.hull(difference, one.law, one.scale)
                    continue
                noised = {"laplace": loss.laplace, "gaussian": loss.gaussian}
                noised.get(one.kind, functools.partial(loss.shaped, one.kind))(difference, one.scale)
        yield loss


def _tree(loss: Loss, planned: Any, draws: list[Draw], held: Any) -> None:
    """A row lies in one node of each level; levels are told apart by how many nodes got noise."""
    one, two = (np.asarray(planned.question.integers(c)["counts"]) for c in held)
    leaves = draws[-1].values.shape[-1]
    change = np.zeros((*one.shape[:-1], leaves), dtype=int)
    change[..., : one.shape[-1]] = one - two
    for draw in draws:
        nodes = draw.values.shape[-1]
        level = change.reshape(*change.shape[:-1], nodes, leaves // nodes).sum(axis=-1)
        loss.laplace(level, draw.scale * planned.assignment.mechanism.spacing, curve=False)


def _keys(loss: Loss, planned: Any, draws: list[Draw], held: Any, unit: Any) -> None:
    """Names by the drawn law of one key, for as many keys as the definition moves; then the noise of the values."""
    base, size = getattr(unit, "of", unit), getattr(unit, "size", 1)
    keys = min(getattr(base, "at_most", 1), getattr(base, "groups", None) or 99)
    moved = keys * (2 if base.neighbours == "replace-one" else 1)
    selected = draws[0]
    if selected.kind == "gaussian":
        # As many new keys as a unit has, and the rest of what moves on keys that are common.
        passes = NormalDist(0, float(selected.scale)).cdf(size + 0.5 - planned.assignment.selection.threshold)
        loss.shown = 1 - (1 - passes) ** keys
        loss.gaussian([size] * (moved - keys), selected.scale)
    else:
        assert selected.kind in ("keys", "names")
        level = float(planned.assignment.selection.level[0]) * size
        loss.pairs.append((level, key_pair(selected.law, level, size), moved))
    for draw, applied in zip(draws[1:], planned.assignment.noise, strict=True):
        change = [x for p in applied.parts for x in gap(*(by_key(planned.question, c, p) for c in held))]
        (loss.laplace if draw.kind == "laplace" else loss.gaussian)(change, draw.scale)


def _sparse(loss: Loss, planned: Any, runs: Any, held: Any) -> None:
    """Every cell of the domain has noise; or occupied ones alone, and a unit's own cells show with some chance."""
    one, two = ({k: int(v) for k, v in zip(*planned.question.occupied(c), strict=True) if v} for c in held)
    draw = runs[0][0]
    assert [d.scale for d in runs[0][:1]] == [d.scale for d in runs[1][:1]]
    if planned.assignment.pure() is not None:
        loss.laplace(gap(one, two), draw.scale, curve=False)
        return
    if draw.kind == "discrete gaussian":
        loss.discrete(gap(one, two), draw.scale)
        return
    assert np.size(draw.values) == len(one)
    common = [one[k] - two[k] for k in one if k in two]
    loss.laplace(common, draw.scale, curve=False)
    for here, there in ((one, two), (two, one)):
        hidden = 1.0
        for k in set(here) - set(there):
            hidden *= 1 - survival(draw.scale, planned.assignment.mechanism.threshold + 1 - here[k])
        loss.shown = max(loss.shown, 1 - hidden)
