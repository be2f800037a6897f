"""The cells of a release as columns: the keys that a value belongs to, in the order of the values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tacit.curator.treatments import Noisy
from tacit.sources.axes import Axis
from tacit.sources.occupied import labels_at
from tacit.statistics.base import Question

__all__ = ["key_columns", "keys_at", "label", "raw_keys"]

ALL = "all"
TAKEN = ("value", "low", "high", "quality")
"""Names of what is released: a key of such a name is called `value_key`, so that neither covers the other."""


def label(value: Any) -> Any:
    """A key for people: ranges as text, the rest as it is."""
    if isinstance(value, tuple) and len(value) == 2:
        return f"{_short(value[0])} to {_short(value[1])}"
    return value.item() if isinstance(value, np.generic) else value


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def key_columns(question: Question, noisy: Noisy) -> dict[str, list[Any]]:
    """One column for each key, for people; none for a statistic of the whole table."""
    return {name: [label(v) for v in column] for name, column in raw_keys(question, noisy).items()}


def raw_keys(question: Question, noisy: Noisy) -> dict[str, list[Any]]:
    """The same with ranges as pairs."""
    return _renamed(_keys(question, noisy))


def keys_at(question: Question, noisy: Noisy, places: Any) -> dict[str, list[Any]]:
    """The same for some cells alone: of a large table the others are not made."""
    places = np.asarray(places)
    if noisy.keys is None and question.statistic.layout != "cells":
        chosen = places.tolist()
        return {name: [column[i] for i in chosen] for name, column in raw_keys(question, noisy).items()}
    found: dict[str, list[Any]] = {}
    if noisy.keys is not None:
        for axis, column in zip(question.axes, noisy.keys, strict=True):
            found[axis.column] = [column[i] for i in places.tolist()]
    elif question.axes:
        codes = np.unravel_index(places, tuple(a.size or 0 for a in question.axes))
        for axis, code in zip(question.axes, codes, strict=True):
            found[axis.column] = labels_at(axis, code).tolist()
    return _renamed(found)


def _renamed(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for name, column in found.items():
        out[name if name not in TAKEN else _fresh(f"{name}_key", (*found, *out))] = column
    return out


def _fresh(name: str, taken: Iterable[str]) -> str:
    """The name, with lines below it as long as somebody has it already."""
    others = set(taken)
    while name in others:
        name += "_"
    return name


def _keys(question: Question, noisy: Noisy) -> dict[str, list[Any]]:
    if noisy.keys is not None:
        names = [a.column for a in question.axes]
        return {n: list(column) for n, column in zip(names, noisy.keys, strict=True)}
    layout = question.statistic.layout
    if layout == "tables":
        return _margins(question)
    if layout == "levels":
        return _levels(question)
    if layout == "ends":
        return {"bound": ["low", "high"]}
    columns = _product(question.axes)
    if layout == "shares":
        statistic: Any = question.statistic
        shares = statistic.at
        cells = math.prod(a.size or 0 for a in question.axes)
        columns = {n: [v for v in c for _ in shares] for n, c in columns.items()}
        columns[_fresh("share", columns)] = [float(s) for _ in range(cells) for s in shares]
    return columns


def _levels(question: Question) -> dict[str, list[Any]]:
    """The level, and for nested columns one column each ("all" above), else the node."""
    names = [a.column for a in question.axes]
    level = _fresh("level", names)
    out: dict[str, list[Any]] = {level: []} | {n: [] for n in names}
    for part, nodes in zip(question.parts, question.details["levels"], strict=True):
        for node in nodes:
            out[level].append(int(part.name.split()[-1]))
            keys = node if isinstance(node, tuple) else (node,)
            for i, name in enumerate(names):
                out[name].append(_word(keys[i]) if i < len(keys) else ALL)
    return out


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(label(value))


def _product(axes: Sequence[Axis]) -> dict[str, list[Any]]:
    sizes = [a.size or 0 for a in axes]
    out: dict[str, list[Any]] = {}
    for i, axis in enumerate(axes):
        inner, outer = math.prod(sizes[i + 1 :]), math.prod(sizes[:i])
        labels = list(axis.labels)
        out[axis.column] = [v for v in labels for _ in range(inner)] * outer
    return out


def _margins(question: Question) -> dict[str, list[Any]]:
    """One column for each variable; "all" where a table does not tell it apart."""
    names = list(dict.fromkeys(a.column for p in question.parts for a in p.axes))
    out: dict[str, list[Any]] = {n: [] for n in names}
    for part in question.parts:
        columns = _product(part.axes)
        size = math.prod(a.size or 0 for a in part.axes)
        for name in names:
            # Beside "all" a key is a word too: a column has one type.
            out[name].extend(_word(v) for v in columns.get(name, [ALL] * size))
    return out
