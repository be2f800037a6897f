"""Heat maps of two-way tables: seven steps of colour, on them value and uncertainty, hatched where too noisy."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.curator.quality import NOISY
from tacit.report.markup import Markup, picture, tag
from tacit.report.numbers import compact, compact_ends, key_words
from tacit.report.pictures.scale import hatching, value_span
from tacit.report.view import Cell, Key

__all__ = ["LABELS", "STEPS", "axes_of_table", "heat_map", "says_numbers"]

STEPS = 7
CELL, HEAD, FOOT = 36, 30, 44
TALL = 50
"""The height of a cell that has its interval on two lines."""
BESIDE = 2
"""Up to this many columns both ends of an interval have room on one line, on a phone too."""
MOST_ACROSS = 7
"""Up to this many columns a cell has room for its numbers."""
MOST_SMALL = 4
"""The same in a small picture, one of several."""
LABELS = 28.0
"""The share of the width that the rows' names take."""


def axes_of_table(cells: Sequence[Cell]) -> tuple[list[Key], list[Key]]:
    """The keys of both columns, in order of first appearance."""
    return list(dict.fromkeys(c.keys[0] for c in cells)), list(dict.fromkeys(c.keys[1] for c in cells))


def says_numbers(cells: Sequence[Cell], labels: float = LABELS) -> bool:
    """Has each cell room for its value and the ends of its interval? Small pictures have less, and wider names."""
    return min(map(len, axes_of_table(cells))) <= (MOST_ACROSS if labels <= LABELS else MOST_SMALL)


def heat_map(
    id: str,
    title: str,
    description: str,
    cells: Sequence[Cell],
    columns: tuple[str, str],
    *,
    span: tuple[float, float] | None = None,
    labels: float = LABELS,
) -> Markup:
    """A rectangle a cell; the longer side runs down, so that it can be read on a phone."""
    down, across = axes_of_table(cells)
    place = {c.keys: c for c in cells}
    names = columns
    if len(across) > len(down):
        down, across, names = across, down, (columns[1], columns[0])
        place = {(c.keys[1], c.keys[0]): c for c in cells}
    low, high = span or value_span(cells)
    width = (100 - labels) / len(across)
    steep = any(len(key_words(k)) * len(across) > 34 for k in across)
    head = HEAD + 16 + (max(len(key_words(k)) for k in across) * 4 if steep else 0)
    numbers = says_numbers(cells, labels)
    stacked = numbers and len(across) > BESIDE and any(c.low is not None for c in cells)
    tall = TALL if stacked else CELL
    parts = [hatching(f"{id}-hatch")]
    parts.append(tag("text", f"{names[0]} ↓", x=0, y=head - 8, class_="axis-name"))
    parts.append(tag("text", f"{names[1]} →", x=f"{labels}%", y=13, class_="axis-name"))
    for k, key in enumerate(across):
        parts.append(_column_name(key_words(key), labels + (k + 0.5) * width, head - 8, steep))
    for r, row in enumerate(down):
        top = head + r * tall
        parts.append(tag("text", _cut(key_words(row)), x=0, y=top + tall / 2 + 4, class_="tick"))
        for k, key in enumerate(across):
            cell = place.get((row, key))
            if cell is not None:
                parts.append(_cell(id, cell, labels + k * width, top, width, (low, high), numbers, tall))
    bottom = head + len(down) * tall
    parts += _legend(bottom, low, high, labels)
    return picture(id, title, description, bottom + FOOT, parts, class_="heat-map")


def _cell(
    id: str,
    cell: Cell,
    left: float,
    top: float,
    width: float,
    span: tuple[float, float],
    numbers: bool,
    tall: int,
) -> Markup:
    box = {"x": f"{left:.2f}%", "y": top + 1, "width": f"{width:.2f}%", "height": tall - 2}
    if cell.value is None:
        return tag("rect", **box, class_="empty")
    step = step_of(cell.value, span)
    noisy = cell.flag == NOISY
    parts = [
        tag("rect", **box, fill=f"url(#{id}-hatch)", class_="noisy")
        if noisy
        else tag("rect", **box, class_=f"heat heat-{step}")
    ]
    if numbers:
        ink = "halo" if noisy else f"heat-ink-{step}"
        x, words = f"{left + width / 2:.2f}%", compact(cell.value)
        ends = "" if cell.low is None or cell.high is None else compact_ends(cell.low, cell.high)
        first, _, last = ends.rpartition(" ")
        told = [first, last] if tall > CELL else [ends]
        below = len(told) if ends else 0
        # The lines of a cell, around its middle.
        y = top + tall / 2 + 4 - 7 * below
        parts.append(tag("text", words, x=x, y=y, text_anchor="middle", class_=f"{ink} cell num"))
        for k, line in enumerate(told[:below]):
            at = {"x": x, "y": y + 15 + 12 * k, "text_anchor": "middle"}
            parts.append(tag("text", line, **at, class_=f"{ink} half num"))
    return tag("g", *parts)


def step_of(value: float, span: tuple[float, float]) -> int:
    """Which of the seven colours a value has."""
    low, high = span
    return min(STEPS - 1, max(0, int(STEPS * (value - low) / (high - low))))


def _column_name(words: str, place: float, y: float, steep: bool) -> Markup:
    if not steep:
        return tag("text", words, x=f"{place:.2f}%", y=y, text_anchor="middle", class_="tick")
    # Text can be turned only about a point in pixels: a canvas of its own is set at the percentage.
    turned = tag("text", _cut(words, 18), transform="rotate(-42)", class_="tick")
    return tag("svg", turned, x=f"{place - 1:.2f}%", y=y, class_="over", aria_hidden="true")


def _legend(top: float, low: float, high: float, labels: float) -> list[Markup]:
    width = (100 - labels) / STEPS
    parts = []
    for k in range(STEPS):
        box = {"x": f"{labels + k * width:.2f}%", "y": top + 14, "width": f"{width:.2f}%", "height": 8}
        parts.append(tag("rect", **box, class_=f"heat heat-{k}"))
    parts.append(tag("text", compact(low), x=f"{labels}%", y=top + 36, class_="tick"))
    parts.append(tag("text", compact(high), x="100%", y=top + 36, text_anchor="end", class_="tick"))
    return parts


def _cut(name: str, most: int = 13) -> str:
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"
