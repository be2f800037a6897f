"""Laws of rows as text: `uniform(0, 1)`, `normal(0, 1, clamp=(-2.5, 2.5))`, `table(0: 1/2, 1: 1/2)`.

The language is closed: a name, numbers, `clamp=(low, high)` and `grid=step`. Nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tacit.coupled.noiseless.row_laws import RowLaw, bernoulli, laplace, normal, table, uniform
from tacit.errors import InvalidParameter, UnknownName

__all__ = ["call_parts", "row_law"]

_CALL = re.compile(r"\s*([a-zA-Z]+)\s*\((.*)\)\s*", re.DOTALL)
_PART = re.compile(r"\s*(?:([a-z]+)\s*=\s*)?(\([^()]*\)|[^(),]+)\s*(?:,|$)")
_LAWS: dict[str, tuple[Callable[..., RowLaw], int, tuple[str, ...]]] = {
    "bernoulli": (bernoulli, 1, ()),
    "laplace": (laplace, 2, ("clamp", "grid")),
    "normal": (normal, 2, ("clamp", "grid")),
    "uniform": (uniform, 2, ("grid",)),
}
KNOWN = (*sorted(_LAWS), "table")
MOST_TEXT = 100_000
HINT = 'such as "uniform(0, 1)", "normal(0, 1, clamp=(-2.5, 2.5))", "bernoulli(0.3)", "table(0: 1/2, 5: 1/2)"'


def row_law(rows: str | RowLaw, *, grid: object = None) -> RowLaw:
    """The law that a text names; a law is returned as it is. `grid` is the step of the grid of records."""
    if isinstance(rows, RowLaw):
        if grid is not None:
            raise InvalidParameter(parameter="grid", value="a grid", must="be left out: the law has one")
        return rows
    kind, inside = _call("rows", rows, "name the law of a row", HINT)
    if kind == "table":
        return _table(inside, grid)
    if kind not in _LAWS:
        raise UnknownName(what="law of rows", name=kind, known=KNOWN, hint=HINT)
    make, count, options = _LAWS[kind]
    numbers, named = _parts("rows", inside, HINT)
    if grid is not None:
        if "grid" in named:
            raise InvalidParameter(parameter="grid", value="two of them", must="be given once")
        named["grid"] = grid
    stray = sorted(set(named) - set(options))
    if len(numbers) != count or stray:
        raise InvalidParameter(
            parameter="rows",
            value=rows[:60],
            must=f"give {kind} {count} number{'s' if count > 1 else ''}"
            + (f" and no {', '.join(stray)}" if stray else ""),
            hint=HINT,
        )
    return make(*numbers, **named)


def call_parts(parameter: str, text: object, hint: str) -> tuple[str, list[str], dict[str, Any]]:
    """(Name, numbers in their order, what has a name) of a text such as `normal(0, 1, clamp=(-2, 2))`."""
    kind, inside = _call(parameter, text, "be a name with numbers in brackets", hint)
    return kind, *_parts(parameter, inside, hint)


def _call(parameter: str, text: object, must: str, hint: str) -> tuple[str, str]:
    match = _CALL.fullmatch(text) if isinstance(text, str) and len(text) <= MOST_TEXT else None
    if match is None:
        told = text[:60] if isinstance(text, str) else type(text).__name__
        raise InvalidParameter(parameter=parameter, value=told, must=must, hint=hint)
    return match[1].lower(), match[2]


def _parts(parameter: str, inside: str, hint: str) -> tuple[list[str], dict[str, Any]]:
    """Numbers in their order, and what has a name."""
    numbers: list[str] = []
    named: dict[str, Any] = {}
    at = 0
    while at < len(inside):
        part = _PART.match(inside, at)
        if part is None or (part[1] in named and part[1]) or (named and not part[1]):
            raise InvalidParameter(
                parameter=parameter, value=inside[:60], must="be numbers, then options", hint=hint
            )
        value: Any = part[2].strip()
        if value.startswith("("):
            value = tuple(v.strip() for v in value[1:-1].split(","))
        if part[1]:
            named[part[1]] = value
        else:
            numbers.append(value)
        at = part.end()
    return numbers, named


def _table(inside: str, grid: object) -> RowLaw:
    """`value: probability` for each value, and a grid if one is named."""
    weights: dict[str, str] = {}
    for entry in inside.split(","):
        if entry.strip().startswith("grid"):
            name, _, step = entry.partition("=")
            if name.strip() != "grid" or grid is not None:
                raise InvalidParameter(parameter="grid", value=entry.strip()[:40], must="be given once")
            grid = step.strip()
            continue
        value, colon, chance = entry.partition(":")
        if not colon or value.strip() in weights:
            raise InvalidParameter(
                parameter="rows",
                value=entry.strip()[:40],
                must="be value: probability, each value once",
                hint=HINT,
            )
        weights[value.strip()] = chance.strip()
    return table(weights, grid=grid)
