"""One number on a line: the dot, its interval, and the truth where it may be shown."""

from __future__ import annotations

import math

from tacit.report.markup import Markup, picture, tag
from tacit.report.pictures.bars import whisker
from tacit.report.pictures.scale import Scale, pointer
from tacit.report.view import Cell

__all__ = ["strip"]

MIDDLE = 22


def strip(id: str, title: str, description: str, cell: Cell) -> Markup:
    """The interval at the scale of its own width, with its ends named."""
    assert cell.value is not None
    known = [v for v in (cell.value, cell.low, cell.high, cell.truth) if v is not None and math.isfinite(v)]
    low, high = min(known), max(known)
    scale = Scale(low=low, high=high, start=4, length=92)
    told = cell.figures
    parts = [tag("line", x1=0, x2="100%", y1=MIDDLE, y2=MIDDLE, class_="grid")]
    if cell.low is not None and cell.high is not None:
        parts += whisker(scale, cell.low, cell.high, MIDDLE)
        for words, end in ((told.low, cell.low), (told.high, cell.high)):
            anchor = "start" if scale(end) < 25 else "end" if scale(end) > 75 else "middle"
            at = {"x": scale.percent(end), "y": MIDDLE + 24}
            parts.append(tag("text", words, **at, text_anchor=anchor, class_="tick num"))
    parts.append(tag("circle", cx=scale.percent(cell.value), cy=MIDDLE, r=6, class_="dot"))
    if cell.truth is not None:
        parts.append(pointer(scale.percent(cell.truth), MIDDLE + 5))
    return picture(id, title, description, MIDDLE + 32, parts, class_="strip")
