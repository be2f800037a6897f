"""Bars with intervals: one line a group, its name and its numbers above the bar."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.report.markup import Markup, picture, tag
from tacit.report.numbers import key_words
from tacit.report.pictures.scale import Scale, fill_of, hatching, pointer, span_of
from tacit.report.view import Cell

__all__ = ["bars"]

ROW = 42
BAR_TOP = 21
BAR = 11


def bars(
    id: str,
    title: str,
    description: str,
    cells: Sequence[Cell],
    *,
    span: tuple[float, float] | None = None,
) -> Markup:
    """One bar a cell from zero to the value, with a whisker from low to high."""
    low, high = span or span_of(cells)
    scale = Scale(low=low, high=high, start=0.5, length=99)
    rows = [_row(id, cell, ROW * k, scale) for k, cell in enumerate(cells)]
    height = ROW * len(cells)
    return picture(id, title, description, height, hatching(f"{id}-hatch"), rows, class_="bars")


def _row(id: str, cell: Cell, top: float, scale: Scale) -> Markup:
    told = cell.figures
    name = ", ".join(key_words(k) for k in cell.keys) or "all"
    zero = scale.percent(0)
    parts: list[Markup] = [
        tag("line", x1=zero, x2=zero, y1=top + BAR_TOP - 3, y2=top + BAR_TOP + BAR + 3, class_="axis"),
        tag("text", _cut(name), x=0, y=top + 15, class_="label"),
        tag("text", *_numbers(cell, told), x="100%", y=top + 15, text_anchor="end", class_="label num"),
    ]
    if cell.value is not None:
        start, end = sorted((scale(0), scale(cell.value)))
        width = f"{max(end - start, 0.15):.2f}%"
        parts.append(
            tag(
                "rect",
                x=f"{start:.2f}%",
                y=top + BAR_TOP,
                width=width,
                height=BAR,
                rx=1.5,
                **fill_of(cell, id),
            )
        )
    if cell.low is not None and cell.high is not None:
        parts += whisker(scale, cell.low, cell.high, top + BAR_TOP + BAR / 2)
    if cell.truth is not None:
        parts.append(pointer(scale.percent(cell.truth), top + BAR_TOP + BAR + 0.5))
    return tag("g", *parts)


def whisker(scale: Scale, low: float, high: float, y: float) -> list[Markup]:
    """A level line from low to high; an end beyond the picture has no stop."""
    a, b = scale.percent(low), scale.percent(high)
    parts = [tag("line", x1=a, x2=b, y1=y, y2=y, class_="whisker")]
    slack = (scale.high - scale.low) * 1e-9
    for end, place in ((low, a), (high, b)):
        if scale.low - slack <= end <= scale.high + slack:
            parts.append(tag("line", x1=place, x2=place, y1=y - 4, y2=y + 4, class_="whisker"))
    return parts


def _numbers(cell: Cell, told: tuple[str, str, str]) -> list[Markup | str]:
    if cell.value is None:
        return ["no value"]
    value = tag("tspan", told[0], class_="strong")
    if cell.low is None:
        return [value]
    return [value, tag("tspan", f"{told[1]} to {told[2]}", dx=8, class_="quiet")]


def _cut(name: str, most: int = 26) -> str:
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"
