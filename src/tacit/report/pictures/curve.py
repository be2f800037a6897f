"""Curves with a band, and histograms: a level axis of ordered keys, an upright one of values."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from tacit.report.markup import Markup, picture, tag
from tacit.report.numbers import compact, key_place, key_words, ticks
from tacit.report.pictures.scale import Scale, diamond, fill_of, hatching, span_of, spread
from tacit.report.view import Cell, Key

__all__ = ["curve", "histogram"]

TOP, PLOT, FOOT = 14, 210, 40
WIDE = 1000
LEFT, SPAN = 9.0, 89.5
"""Where the keys begin, in percent, so that the names of levels have room, and how far they go."""


def curve(
    id: str, title: str, description: str, cells: Sequence[Cell], x_name: str, *, joined: bool = True
) -> Markup:
    """Values joined by a line, intervals as a band, along keys that are numbers or days.

    Not joined they are points with intervals: between two quantiles nothing was released, and no line is known.
    """
    shown = sorted((c for c in cells if c.value is not None), key=lambda c: key_place(c.keys[0]) or 0.0)
    places = [key_place(c.keys[0]) or 0.0 for c in shown]
    low, high = span_of(shown, zero=_near_zero(shown))
    up = Scale(low=low, high=high, start=TOP + PLOT, length=-PLOT)
    along = Scale(low=min(places), high=max(places), start=LEFT, length=SPAN)
    parts: list[Markup] = [hatching(f"{id}-hatch"), *_grid(low, high, up)]
    wide = Scale(low=0, high=100, length=WIDE)
    at = [wide(along(p)) for p in places]
    if joined and all(c.low is not None and c.high is not None for c in shown):
        rim = [(x, up(c.high or 0.0)) for x, c in zip(at, shown, strict=True)]
        rim += [(x, up(c.low or 0.0)) for x, c in reversed(list(zip(at, shown, strict=True)))]
        parts.append(_stretched(tag("polygon", points=_points(rim), class_="band")))
    if joined:
        middle = _points([(x, up(c.value or 0.0)) for x, c in zip(at, shown, strict=True)])
        parts.append(_stretched(tag("polyline", points=middle, class_="line")))
    few = len(shown) <= 40 or not joined
    for place, cell in zip(places, shown, strict=True):
        if not joined and cell.low is not None and cell.high is not None:
            x = along.percent(place)
            parts.append(tag("line", x1=x, x2=x, y1=up(cell.low), y2=up(cell.high), class_="whisker"))
        if few and cell.truth is not None:
            parts.append(diamond(along.percent(place), up(cell.truth)))
        if few:
            mark = "dot noisy" if cell.flag else "dot"
            parts.append(tag("circle", cx=along.percent(place), cy=up(cell.value or 0.0), r=3.5, class_=mark))
    if not few and all(c.truth is not None for c in shown):
        truth = _points([(x, up(c.truth or 0.0)) for x, c in zip(at, shown, strict=True)])
        parts.append(_stretched(tag("polyline", points=truth, class_="truth-line")))
    words = [key_words(c.keys[0]) for c in shown]
    # On a phone a letter takes some 2.4% of the width.
    apart = max(16.0, 2.6 * max(map(len, words)))
    labels = [(along(places[k]), words[k]) for k in _labelled(places, along, apart)]
    parts += _foot(labels, x_name)
    return picture(id, title, description, TOP + PLOT + FOOT, parts, class_="curve")


def histogram(
    id: str,
    title: str,
    description: str,
    cells: Sequence[Cell],
    x_name: str,
    *,
    span: tuple[float, float] | None = None,
) -> Markup:
    """Upright bars side by side, one a bin, each with its interval."""
    low, high = span or span_of(cells)
    up = Scale(low=low, high=high, start=TOP + PLOT, length=-PLOT)
    n = len(cells)
    step = SPAN / n
    gap = min(0.6, step * 0.12)
    parts: list[Markup] = [hatching(f"{id}-hatch"), *_grid(low, high, up)]
    for k, cell in enumerate(cells):
        left = LEFT + k * step
        parts += _upright(id, cell, left + gap / 2, step - gap, up)
    longest = max(len(key_words(_first(c.keys[0]))) for c in cells)
    most = 5 if longest <= 6 else 4 if longest <= 8 else 3
    labels = [(LEFT + (k + 0.5) * step, key_words(_first(cells[k].keys[0]))) for k in spread(cells, most)]
    if n > 1 and isinstance(cells[0].keys[0], tuple):
        # Bins are named at their edges.
        edges = spread(range(n + 1), most)
        labels = [(LEFT + e * step, key_words(_edge(cells, e))) for e in edges]
    parts += _foot(labels, x_name)
    return picture(id, title, description, TOP + PLOT + FOOT, parts, class_="histogram")


def _upright(id: str, cell: Cell, left: float, width: float, up: Scale) -> list[Markup]:
    parts: list[Markup] = []
    if cell.value is not None:
        top, bottom = sorted((up(0), up(cell.value)))
        box = {"x": f"{left:.2f}%", "y": top, "width": f"{width:.2f}%", "height": max(bottom - top, 0.5)}
        parts.append(tag("rect", **box, **fill_of(cell, id)))
    middle = f"{left + width / 2:.2f}%"
    if cell.low is not None and cell.high is not None:
        line = {"x1": middle, "x2": middle, "y1": up(cell.low), "y2": up(cell.high)}
        parts.append(tag("line", **line, class_="whisker"))
    if cell.truth is not None:
        y = up(cell.truth)
        line = {"x1": f"{left:.2f}%", "x2": f"{left + width:.2f}%", "y1": y, "y2": y}
        parts.append(tag("line", **line, class_="truth-line"))
    return parts


def _grid(low: float, high: float, up: Scale) -> list[Markup]:
    parts = []
    for value in ticks(low, high):
        y = up(value)
        kind = "axis" if value == 0 else "grid"
        parts.append(tag("line", x1=0, x2="100%", y1=y, y2=y, class_=kind))
        if not (value == 0 and low >= 0):
            parts.append(tag("text", compact(value), x=0, y=y - 4, class_="tick halo"))
    return parts


def _foot(labels: list[tuple[float, str]], x_name: str) -> list[Markup]:
    y = TOP + PLOT + 16
    parts = []
    for place, words in labels:
        anchor = "start" if place < 6 else "end" if place > 94 else "middle"
        parts.append(tag("text", words, x=f"{place:.2f}%", y=y, text_anchor=anchor, class_="tick"))
    parts.append(tag("text", x_name, x="50%", y=y + 19, text_anchor="middle", class_="axis-name"))
    return parts


def _stretched(shape: Markup) -> Markup:
    """A shape on a canvas of 1000 units that is stretched to the picture's width."""
    height = TOP + PLOT
    box = f"0 0 {WIDE} {height}"
    return tag(
        "svg", shape, width="100%", height=height, viewBox=box, preserveAspectRatio="none", aria_hidden="true"
    )


def _points(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _labelled(places: list[float], along: Scale, apart: float) -> list[int]:
    """Keys that get a name: first, last, and others that stand far enough apart."""
    kept: list[int] = []
    for k in range(len(places)):
        if not kept or along(places[k]) - along(places[kept[-1]]) >= apart:
            kept.append(k)
    last = len(places) - 1
    if kept[-1] != last:
        if along(places[last]) - along(places[kept[-1]]) < apart and len(kept) > 1:
            kept.pop()
        kept.append(last)
    return kept


def _near_zero(cells: Sequence[Cell]) -> bool:
    """Is zero close enough to the values that a picture should show it?"""
    values = [c.value for c in cells if c.value is not None]
    if not values:
        return True
    low, high = min(values), max(values)
    return low <= 0 <= high or min(abs(low), abs(high)) < 1.5 * (high - low)


def _first(key: Key) -> Key:
    return key[0] if isinstance(key, tuple) else key


def _edge(cells: Sequence[Cell], k: int) -> Key:
    key = cells[min(k, len(cells) - 1)].keys[0]
    assert isinstance(key, tuple)
    edge = key[0] if k < len(cells) else key[1]
    if isinstance(edge, float) and math.isfinite(edge) and edge.is_integer():
        return int(edge)
    return edge.date() if isinstance(edge, datetime.datetime) else edge
