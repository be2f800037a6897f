"""Maps of functions of two columns: colour for the value, hatching where the noise leaves the sign open."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.report.markup import Markup, picture, tag
from tacit.report.numbers import compact, key_place, key_words, three
from tacit.report.pictures.heat import STEPS, step_of
from tacit.report.pictures.scale import hatching, value_span
from tacit.report.view import Cell, Key

__all__ = ["field_map", "fits_a_map", "holds_zero", "widths"]

ROW, HEAD, FOOT = 15, 22, 76
LABELS = 16.0
"""The share of the width that the names of levels take."""


def fits_a_map(cells: Sequence[Cell]) -> bool:
    """Do both keys lie on lines, and have all their crossings a cell?"""
    placed = all(len(c.keys) == 2 and None not in map(key_place, c.keys) for c in cells)
    if not placed:
        return False
    across, up = ({c.keys[k] for c in cells} for k in (0, 1))
    return min(len(across), len(up)) > 2 and len(across) * len(up) == len(cells)


def holds_zero(cell: Cell) -> bool:
    """Does the interval leave the sign open?"""
    return cell.low is not None and cell.high is not None and cell.low <= 0.0 <= cell.high


def widths(cells: Sequence[Cell]) -> list[Cell]:
    """The same cells with the width of their interval, from end to end, for a value."""
    return [Cell(keys=c.keys, value=(c.high or 0.0) - (c.low or 0.0)) for c in cells]


def field_map(
    id: str, title: str, description: str, cells: Sequence[Cell], columns: tuple[str, str], *, signs: bool,
    span: tuple[float, float] | None = None,
) -> Markup:  # fmt: skip
    """The first column runs to the right, the second one up; `signs` hatches cells whose interval holds 0."""
    across = sorted({c.keys[0] for c in cells}, key=lambda k: key_place(k) or 0.0)
    up = sorted({c.keys[1] for c in cells}, key=lambda k: key_place(k) or 0.0)
    column, row = {k: i for i, k in enumerate(across)}, {k: len(up) - 1 - i for i, k in enumerate(up)}
    width, (low, high) = (100 - LABELS) / len(across), span or value_span(cells)
    parts: list[Markup] = [hatching(f"{id}-hatch")]
    parts.append(tag("text", f"{columns[1]} ↑", x=0, y=13, class_="axis-name"))
    for cell in cells:
        box = {
            "x": f"{LABELS + column[cell.keys[0]] * width:.2f}%", "y": HEAD + row[cell.keys[1]] * ROW,
            # A little wider than its place: no seams between neighbours.
            "width": f"{width + 0.05:.2f}%", "height": ROW + 0.3,
        }  # fmt: skip
        if cell.value is None:
            parts.append(tag("rect", **box, class_="empty"))
            continue
        parts.append(tag("rect", **box, class_=f"heat-{step_of(cell.value, (low, high))}"))
        if signs and holds_zero(cell):
            parts.append(tag("rect", **box, fill=f"url(#{id}-hatch)", fill_opacity="0.55"))
    bottom = HEAD + len(up) * ROW
    for k in _some(len(up), 6):
        y = HEAD + row[up[k]] * ROW + ROW / 2 + 4
        parts.append(tag("text", _words(up[k]), x=0, y=y, class_="tick"))
    for k in _some(len(across), 4):
        x = LABELS + (k + 0.5) * width
        anchor = "start" if k == 0 else "end" if k == len(across) - 1 else "middle"
        parts.append(
            tag("text", _words(across[k]), x=f"{x:.2f}%", y=bottom + 15, text_anchor=anchor, class_="tick")
        )
    parts.append(
        tag("text", f"{columns[0]} →", x="100%", y=bottom + 32, text_anchor="end", class_="axis-name")
    )
    step = (100 - LABELS) / STEPS
    for k in range(STEPS):
        box = {"x": f"{LABELS + k * step:.2f}%", "y": bottom + 44, "width": f"{step:.2f}%", "height": 8}
        parts.append(tag("rect", **box, class_=f"heat heat-{k}"))
    parts.append(tag("text", compact(low), x=f"{LABELS}%", y=bottom + 68, class_="tick"))
    parts.append(tag("text", compact(high), x="100%", y=bottom + 68, text_anchor="end", class_="tick"))
    return picture(id, title, description, bottom + FOOT, parts, class_="heat-map")


def _words(key: Key) -> str:
    """A place on an axis: three digits are enough there."""
    return three(key) if isinstance(key, float) else key_words(key)


def _some(count: int, most: int) -> list[int]:
    """At most so many places, both ends among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)})
