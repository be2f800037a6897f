"""Shapes as text, such as `rectangle(-1.5, 1.5)`, `triangle(-2, 0, 2)` or `normal(0, 1, cut=(-2, 2))`.

A shape that is named is taken as tall as it fits below the law; a name without brackets stands for the best one that
is found (`minorants`). Ends, feet and peak are values of a row, in its own unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.noiseless.minorants import KINDS, Minorant, minorants_of, peaked, rectangle, stairs
from tacit.coupled.noiseless.reading import call_parts
from tacit.coupled.noiseless.row_laws import RowLaw, as_typed
from tacit.errors import InvalidParameter, UnknownName

__all__ = ["kind_of", "shapes_below"]

HINT = 'such as "rectangle(-1.5, 1.5)", "rectangles(-2, 2, -1, 1)", "triangle(-2, 0, 2)", "normal(0, 1, cut=(-2, 2))"'


def kind_of(assume: object) -> str:
    """The first word of what is assumed: `known`, or the kind of a shape."""
    kind = assume.partition("(")[0].strip() if isinstance(assume, str) else ""
    if kind not in ("known", *KINDS):
        raise UnknownName(what="assumption", name=str(assume)[:60], known=("known", *KINDS), hint=HINT)
    return kind


def shapes_below(law: RowLaw, assume: str) -> list[Minorant]:
    """The shape that is named, or the most promising ones of a kind."""
    kind = kind_of(assume)
    if "(" not in assume:
        return minorants_of(law, kind)
    _, numbers, named = call_parts("assume", assume, HINT)
    values = [as_typed("assume", v) for v in numbers]
    if kind == "rectangle" and len(values) == 2 and not named:
        return [rectangle(law, *values)]
    if kind == "rectangles" and len(values) >= 2 and len(values) % 2 == 0 and not named:
        return [_stairs(law, list(zip(values[::2], values[1::2], strict=True)))]
    made: Minorant | None
    if kind == "triangle" and len(values) == 3 and not named and values[0] < values[1] < values[2]:
        low, peak, high = (_place(law, v) for v in values)
        first, last = max(math.ceil(low), 0), min(math.floor(high), len(law.weights) - 1)
        made = peaked(law, kind, first, last, peak, (peak - low, high - peak))
    elif kind == "normal" and len(values) == 2 and set(named) == {"cut"} and len(named["cut"]) == 2:
        ends = _inside(law, *(as_typed("assume", v) for v in named["cut"]))
        width = values[1] / law.step
        if width <= 0:
            raise InvalidParameter(
                parameter="assume", value=assume[:60], must="have a positive width", hint=HINT
            )
        made = peaked(law, kind, *ends, _place(law, values[0]), (width, width))
    else:
        raise InvalidParameter(
            parameter="assume", value=assume[:60], must="name a shape by its ends, low end first", hint=HINT
        )
    if made is None:
        raise InvalidParameter(
            parameter="assume",
            value=assume[:60],
            must="hold two values of the grid at least, and only values that can occur",
            hint="a value of probability 0 under the shape leaves no shape at all",
        )
    return [made]


def _place(law: RowLaw, value: Fraction) -> Fraction:
    """In steps above the lowest value of the law; it need not be a value of the grid, but within the range."""
    if not law.low <= value <= law.high:
        raise InvalidParameter(
            parameter="assume",
            value=float(value),
            must=f"lie inside the support, from {float(law.low):g} to {float(law.high):g}",
        )
    return (value - law.low) / law.step


def _inside(law: RowLaw, low: Fraction, high: Fraction) -> tuple[int, int]:
    """The first and the last place of the grid between two values."""
    return math.ceil(_place(law, low)), math.floor(_place(law, high))


def _stairs(law: RowLaw, ends: Sequence[tuple[Any, Any]]) -> Minorant:
    """The first rectangle as tall as fits, the next one on what it leaves, and so on."""
    left, taken = list(law.weights), []
    for low, high in ends:
        first = rectangle(law, low, high).first
        last = _inside(law, low, high)[1]
        height = min(left[first : last + 1])
        if height <= 0:
            raise InvalidParameter(
                parameter="assume",
                value=f"{float(low):g},{float(high):g}",
                must="be rectangles that leave room for each other: name the lowest and widest first",
            )
        taken.append((first, last - first + 1, height))
        for k in range(first, last + 1):
            left[k] -= height
    return stairs(law, taken)
