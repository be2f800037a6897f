"""The type of each part of a derived column, from the schema alone; what does not fit is an error with its reason."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping
from typing import Any

from tacit.errors import BadExpression, UnknownColumn
from tacit.sources.columns import Category, Column, Date, Flag
from tacit.sources.deriving.language import (
    FUNCTIONS,
    Binary,
    Call,
    Constant,
    Negative,
    Node,
    Reference,
    Test,
    Type,
)

__all__ = ["LONGEST_TEXT", "check_derived", "is_day", "longest", "type_in"]

DEEPEST = 6
"""How deep functions, divisions and comparisons may nest, derived columns that are used included: in the engine's
language each writes its part down several times."""
LONGEST_TEXT = 10_000
"""Characters that `concat` and `replace` may make; what would be longer is missing. Without a limit one short row could
take all memory: two nested replacements by 2,000 letters each make four million of every letter."""
WHOLE_DIGITS = 20


def type_of_column(column: Column) -> Type:
    """What a declared column is in an expression."""
    if isinstance(column, Category):
        return "text" if column.of_words else "number"
    return "flag" if isinstance(column, Flag) else "day" if isinstance(column, Date) else "number"


def type_in(node: Node, schema: Mapping[str, Column], *, wanted: str = "") -> Type:
    """The type of a part; `wanted` makes a text constant a day where a day is wanted."""
    match node:
        case Constant(value=bool()):
            return "flag"
        case Constant(value=str() as text):
            return "day" if wanted == "day" and is_day(text) else "text"
        case Constant():
            return "number"
        case Reference(name=name):
            if name not in schema:
                raise UnknownColumn(column=name, known=tuple(schema))
            return type_of_column(schema[name])
        case Negative(sign=sign, inner=inner):
            kind: Type = "number" if sign == "-" else "flag"
            _need(inner, kind, schema)
            return kind
        case Binary(sign="and" | "or"):
            for part in node.parts():
                _need(part, "flag", schema)
            return "flag"
        case Binary(sign="+" | "-" | "*" | "/"):
            for part in node.parts():
                _need(part, "number", schema)
            return "number"
        case Binary(sign=sign):
            kind = _one_type(node.parts(), schema)
            if kind in ("text", "flag") and sign not in ("=", "!="):
                raise _wrong(node, f"{kind}s have no order: use = or !=")
            return "flag"
        case Test(values=()):
            type_in(node.parts()[0], schema)
            return "flag"
        case Test():
            _one_type(node.parts(), schema)
            return "flag"
        case Call():
            return _type_of_call(node, schema)
    raise AssertionError(node)


def _type_of_call(node: Call, schema: Mapping[str, Column]) -> Type:
    told, given = FUNCTIONS[node.name], node.arguments
    if node.name == "case":
        if len(given) < 3 or len(given) % 2 == 0:
            raise _wrong(node, "case takes tests with their values, and at the end the value for the rest")
        for test in given[0:-1:2]:
            _need(test, "flag", schema)
        return _one_type((*given[1:-1:2], given[-1]), schema)
    fits = len(given) == len(told.takes) or (bool(told.more) and len(given) > len(told.takes))
    if not fits:
        raise _wrong(node, f"{node.name} takes {len(told.takes)} parts{' or more' if told.more else ''}")
    if node.name == "coalesce":
        return _one_type(given, schema)
    for i, part in enumerate(given):
        _need(part, told.takes[i] if i < len(told.takes) else told.more[0], schema)
        if (i in told.constants or (i and -1 in told.constants)) and not isinstance(part, Constant):
            raise _wrong(node, f"part {i + 1} of {node.name} is a constant")
    _check_constants(node)
    return told.gives  # type: ignore[return-value]


def _check_constants(node: Call) -> None:
    values: list[Any] = [part.value for part in node.arguments[1:] if isinstance(part, Constant)]
    if node.name == "bin" and any(a >= b for a, b in itertools.pairwise(values)):
        raise _wrong(node, "the edges of bin increase")
    if node.name in ("left", "part"):
        whole = all(isinstance(v, float) and v.is_integer() and 0 <= v <= LONGEST_TEXT for v in values)
        if not whole or (node.name == "part" and values[0] < 1):
            raise _wrong(node, "places and lengths are whole numbers, and the first character is number 1")
    if node.name in ("begins", "contains", "ends", "replace") and not values[0]:
        raise _wrong(node, "the text that is looked for is not empty")


def _one_type(parts: tuple[Node, ...], schema: Mapping[str, Column]) -> Type:
    """The one type of all these parts; a text that is a day is one where another part is a day."""
    kinds = [type_in(part, schema) for part in parts]
    if "day" in kinds:
        kinds = [type_in(part, schema, wanted="day") for part in parts]
    if len(set(kinds)) != 1:
        odd, kind = next((p, k) for p, k in zip(parts, kinds, strict=True) if k != kinds[0])
        raise _wrong(odd, f"it is a {kind}, beside a {kinds[0]}")
    return kinds[0]


def _need(part: Node, kind: str, schema: Mapping[str, Column]) -> None:
    found = type_in(part, schema, wanted=kind)
    if found != kind:
        raise _wrong(part, f"a {kind} is needed here, and this is a {found}")


def _wrong(node: Node, problem: str) -> BadExpression:
    return BadExpression(
        text=str(node), position=0, problem=problem, hint="see the page on data for the language"
    )


def is_day(text: str) -> bool:
    """Is this a day, as it is written here?"""
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def longest(node: Node, schema: Mapping[str, Column]) -> float:
    """How many characters a text can have, from declarations alone; infinite where nothing bounds it.

    Only what is longer than both its parts needs a limit: a text that a function cuts, or leaves as long as it was, is
    in memory already.
    """
    match node:
        case Constant(value=value):
            return len(str(value))
        case Reference(name=name):
            column = schema[name]
            values = column.values if isinstance(column, Category) else None
            return max((len(str(v)) for v in values), default=0) if values is not None else math.inf
    assert isinstance(node, Call)
    given = node.arguments
    if node.name == "case":
        return max(longest(part, schema) for part in (*given[1:-1:2], given[-1]))
    if node.name == "coalesce":
        return max(longest(part, schema) for part in given)
    if node.name == "text":
        return WHOLE_DIGITS
    first = longest(given[0], schema)
    if node.name in ("left", "part"):
        assert isinstance(given[-1], Constant)
        return min(first, float(given[-1].value))
    if node.name == "concat":
        return min(LONGEST_TEXT, sum(longest(part, schema) for part in given))
    if node.name == "replace":
        before, after = (len(str(part.value)) for part in given[1:] if isinstance(part, Constant))
        return min(LONGEST_TEXT, first * after / before) if after > before else first
    return first  # lower, upper, trim: as long as it was, or shorter


def depth_of(node: Node, depths: Mapping[str, int]) -> int:
    """How deep functions, comparisons and divisions nest, through the columns that are used."""
    below = max((depth_of(part, depths) for part in node.parts()), default=0)
    if isinstance(node, Reference):
        return depths.get(node.name, 0)
    flat = ("+", "-", "*", "and", "or")
    return below + int(isinstance(node, Call | Test) or (isinstance(node, Binary) and node.sign not in flat))


def check_derived(trees: Mapping[str, Node], schema: Mapping[str, Column]) -> tuple[str, ...]:
    """The derived columns in an order in which each uses earlier ones alone; every type fits, and no ring."""
    order: list[str] = []
    depths: dict[str, int] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            ring = " from ".join([*above[above.index(name) :], name])
            raise BadExpression(
                text=str(trees[name]), position=0, problem=f"columns are derived in a ring: {ring}"
            )
        if name in order:
            return
        for used in sorted(trees[name].columns() & trees.keys()):
            visit(used, (*above, name))
        found, wanted = (
            type_in(trees[name], schema, wanted=type_of_column(schema[name])),
            type_of_column(schema[name]),
        )
        if found != wanted:
            raise _wrong(trees[name], f"it gives a {found}, and {name!r} is declared as {schema[name].kind}")
        depths[name] = depth_of(trees[name], depths)
        if depths[name] > DEEPEST:
            raise _wrong(
                trees[name], f"functions and divisions nest at most {DEEPEST} deep, used columns included"
            )
        order.append(name)

    for name in trees:
        visit(name, ())
    return tuple(order)
