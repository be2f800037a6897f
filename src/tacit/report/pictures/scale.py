"""From numbers to places: a linear scale in percent of the width, or in pixels of the height."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.curator.quality import NOISY
from tacit.report.markup import Markup, tag
from tacit.report.view import Cell

__all__ = ["Scale", "diamond", "fill_of", "hatching", "pointer", "span_of", "spread", "value_span"]

REACH = 1.6
"""An interval may stretch a picture to this many times what the values need; beyond, it runs off the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """value -> start + (value - low) / (high - low) * length, held between the ends."""

    low: float
    high: float
    start: float = 0.0
    length: float = 100.0

    def __call__(self, value: float) -> float:
        if not self.high > self.low:
            return self.start + self.length / 2
        share = (value - self.low) / (self.high - self.low)
        return self.start + self.length * min(1.0, max(0.0, share))

    def percent(self, value: float) -> str:
        """The place as a percentage."""
        return f"{self(value):.2f}%"


def span_of(cells: Iterable[Cell], *, zero: bool = True) -> tuple[float, float]:
    """The range that a picture shows: all values and truths, and intervals unless they would crowd those out."""
    held = list(cells)
    # A cell that is too noisy to use must not squeeze those that can be used.
    leading = [c for c in held if c.flag != NOISY] or held
    middle = [v for c in leading for v in (c.value, c.truth) if v is not None]
    middle += [c.truth for c in held if c.truth is not None]
    ends = [v for c in held for v in (c.value, c.low, c.high) if v is not None and math.isfinite(v)]
    middle += [0.0] if zero or not middle else []
    low, high = min(middle), max(middle)
    room = max(high - low, abs(high) * 0.1 if not zero else 0.0)
    if room <= 0:
        room = max((abs(e) for e in ends), default=1.0) or 1.0
    low = max(min([low, *ends]), low - (REACH - 1) * room)
    high = min(max([high, *ends]), high + (REACH - 1) * room)
    return (low, high) if high > low else (low, low + 1.0)


def value_span(cells: Iterable[Cell]) -> tuple[float, float]:
    """The range of the values that can be used, from zero where it is near: what is too noisy stretches no scale."""
    held = [c for c in cells if c.value is not None]
    values = [c.value for c in held if c.flag != NOISY and c.value is not None]
    values = values or [c.value for c in held if c.value is not None] or [0.0]
    low, high = min(values), max(values)
    if low > 0 and low < high / 2:
        low = 0.0
    return (low, high) if high > low else (low, low + 1.0)


def diamond(x: str, y: float) -> Markup:
    """The mark of the truth."""
    shape = "M0-5.5 5.5 0 0 5.5-5.5 0Z"
    marks = [tag("path", d=shape, class_="truth-rim"), tag("path", d=shape, class_="truth")]
    return tag("svg", marks, x=x, y=y, class_="over", aria_hidden="true")


def pointer(x: str, y: float) -> Markup:
    """The mark of the truth beneath a bar or a line, pointing up at its place, so that it covers nothing."""
    mark = tag("path", d="M0 0 5 7.5-5 7.5Z", class_="truth-below")
    return tag("svg", mark, x=x, y=y, class_="over", aria_hidden="true")


def hatching(id: str) -> Markup:
    """The pattern of cells that are too noisy to use: told by its lines, not by its colour."""
    line = tag("path", d="M-1 9 9-1M-1 1 1-1M7 9 9 7", class_="hatch-line")
    ground = tag("rect", width=8, height=8, class_="hatch-ground")
    return tag("defs", tag("pattern", ground, line, id=id, width=8, height=8, patternUnits="userSpaceOnUse"))


def fill_of(cell: Cell, id: str) -> dict[str, Any]:
    """How a cell's bar is filled: hatched where it is too noisy to use."""
    if cell.flag == NOISY:
        return {"fill": f"url(#{id}-hatch)", "class_": "noisy"}
    return {"class_": "bar care" if cell.flag else "bar"}


def spread(items: Sequence[Any], most: int) -> list[int]:
    """Indexes of at most `most` items, evenly spread, with the first and the last."""
    n = len(items)
    if n <= most:
        return list(range(n))
    return sorted({round(k * (n - 1) / (most - 1)) for k in range(most)})
