"""Maps of functions of two columns: colour for the value, hatching where the noise leaves the sign open."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from typing import Any

from tacit.curator.cells import NOISY
from tacit.curator.text import three
from tacit.exact.data_classes import dataclass
from tacit.report.view import (
    CellView,
    Key,
    Markup,
    compact,
    compact_ends,
    key_place,
    key_words,
    picture,
    tag,
    ticks,
)

# From numbers to places: a linear scale in percent of the width, or in pixels of the height.

REACH = 1.6
"""An interval may stretch a picture to this many times the range of the values; beyond, it runs off the edge."""


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


def span_of(cells: Iterable[CellView], *, zero: bool = True) -> tuple[float, float]:
    """The range of the picture: all values and truths, and the intervals unless they would compress the values."""
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


def value_span(cells: Iterable[CellView]) -> tuple[float, float]:
    """The range of the usable values, from zero if zero is near. Too noisy values do not stretch a scale."""
    held = [c for c in cells if c.value is not None]
    values = [c.value for c in held if c.flag != NOISY and c.value is not None]
    values = values or [c.value for c in held if c.value is not None] or [0.0]
    low, high = min(values), max(values)
    if low > 0 and low < high / 2:
        low = 0.0
    return (low, high) if high > low else (low, low + 1.0)


def heat_span(cells: Sequence[CellView]) -> tuple[float, float]:
    """The same for colours: values that the noise does not distinguish get similar colours.

    If the largest and the smallest value have overlapping intervals, the scale is twice as wide as the wider
    interval, around their middle.
    """
    low, high = value_span(cells)
    known = [c for c in cells if c.value is not None and c.flag != NOISY]
    ends = [c for c in known if c.low is not None and c.high is not None]
    if len(ends) < 2:
        return low, high
    most, least = max(ends, key=lambda c: c.value or 0.0), min(ends, key=lambda c: c.value or 0.0)
    assert most.low is not None
    assert most.high is not None
    assert least.low is not None
    assert least.high is not None
    if most.low > least.high:
        return low, high
    middle = ((most.value or 0.0) + (least.value or 0.0)) / 2
    half = max(most.high - most.low, least.high - least.low)
    return min(low, middle - half), max(high, middle + half)


def diamond(x: str, y: float) -> Markup:
    """The mark of the truth."""
    shape = "M0-5.5 5.5 0 0 5.5-5.5 0Z"
    marks = [tag("path", d=shape, class_="truth-rim"), tag("path", d=shape, class_="truth")]
    return tag("svg", marks, x=x, y=y, class_="over", aria_hidden="true")


def pointer(x: str, y: float) -> Markup:
    """The mark of the truth beneath a bar or a line, pointing up at its place without covering anything."""
    mark = tag("path", d="M0 0 5 7.5-5 7.5Z", class_="truth-below")
    return tag("svg", mark, x=x, y=y, class_="over", aria_hidden="true")


def hatching(id: str) -> Markup:
    """The pattern of cells that are too noisy to use: visible by its lines, not only by its colour."""
    line = tag("path", d="M-1 9 9-1M-1 1 1-1M7 9 9 7", class_="hatch-line")
    ground = tag("rect", width=8, height=8, class_="hatch-ground")
    return tag("defs", tag("pattern", ground, line, id=id, width=8, height=8, patternUnits="userSpaceOnUse"))


def fill_of(cell: CellView, id: str) -> dict[str, Any]:
    """The fill of a cell's bar: hatched if it is too noisy to use."""
    if cell.flag == NOISY:
        return {"fill": f"url(#{id}-hatch)", "class_": "noisy"}
    return {"class_": "bar care" if cell.flag else "bar"}


def spread(items: Sequence[Any], most: int) -> list[int]:
    """Indexes of at most `most` items, evenly spread, with the first and the last."""
    n = len(items)
    if n <= most:
        return list(range(n))
    return sorted({round(k * (n - 1) / (most - 1)) for k in range(most)})


# Bars with intervals: one line a group, its name and its numbers above the bar.

ROW = 42
BAR_TOP = 21
BAR = 11


def bars(
    id: str,
    title: str,
    description: str,
    cells: Sequence[CellView],
    *,
    span: tuple[float, float] | None = None,
) -> Markup:
    """One bar a cell from zero to the value, with a whisker from low to high."""
    low, high = span or span_of(cells)
    scale = Scale(low=low, high=high, start=0.5, length=99)
    rows = [_row(id, cell, ROW * k, scale) for k, cell in enumerate(cells)]
    height = ROW * len(cells)
    return picture(id, title, description, height, hatching(f"{id}-hatch"), rows, class_="bars")


def _row(id: str, cell: CellView, top: float, scale: Scale) -> Markup:
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


def _numbers(cell: CellView, told: tuple[str, str, str]) -> list[Markup | str]:
    if cell.value is None:
        return ["no value"]
    value = tag("tspan", told[0], class_="strong")
    if cell.low is None:
        return [value]
    return [value, tag("tspan", f"{told[1]} to {told[2]}", dx=8, class_="quiet")]


def _cut(name: str, most: int = 26) -> str:
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"


# One number on a line: the dot, its interval, and the truth where it may be shown.

MIDDLE = 22


def strip(id: str, title: str, description: str, cell: CellView) -> Markup:
    """The interval at the scale of its own width, with labelled ends."""
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


# Curves with a band, and histograms: a level axis of ordered keys, an upright one of values.

TOP, PLOT, FOOT = 14, 210, 40
WIDE = 1000
LEFT, SPAN = 9.0, 89.5
"""The left end of the keys, in percent, which leaves room for the names of levels, and their width."""


def curve(
    id: str, title: str, description: str, cells: Sequence[CellView], x_name: str, *, joined: bool = True
) -> Markup:
    """Values joined by a line, intervals as a band, along keys that are numbers or days.

    Points with intervals, without a line: nothing was released between two quantiles.
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
    cells: Sequence[CellView],
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
        # Bins are named at their edges: at all of them if there is room on a phone. Every edge has its mark.
        words = [key_words(_edge(cells, e)) for e in range(n + 1)]
        fits = step >= 2.6 * max(map(len, words)) + 1
        edges = range(n + 1) if fits else spread(range(n + 1), most)
        labels = [(LEFT + e * step, words[e]) for e in edges]
        for e in range(n + 1):
            x = f"{LEFT + e * step:.2f}%"
            parts.append(tag("line", x1=x, x2=x, y1=TOP + PLOT, y2=TOP + PLOT + 4, class_="axis"))
    parts += _foot(labels, x_name)
    return picture(id, title, description, TOP + PLOT + FOOT, parts, class_="histogram")


def _upright(id: str, cell: CellView, left: float, width: float, up: Scale) -> list[Markup]:
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
    """Labelled keys: first, last, and others at a sufficient distance."""
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


def _near_zero(cells: Sequence[CellView]) -> bool:
    """Is zero close enough to the values that a picture should show it?"""
    values = [c.value for c in cells if c.value is not None]
    if not values:
        return True
    low, high = min(values), max(values)
    return low <= 0 <= high or min(abs(low), abs(high)) < 1.5 * (high - low)


def _first(key: Key) -> Key:
    return key[0] if isinstance(key, tuple) else key


def _edge(cells: Sequence[CellView], k: int) -> Key:
    key = cells[min(k, len(cells) - 1)].keys[0]
    assert isinstance(key, tuple)
    edge = key[0] if k < len(cells) else key[1]
    if isinstance(edge, float) and math.isfinite(edge) and edge.is_integer():
        return int(edge)
    return edge.date() if isinstance(edge, datetime.datetime) else edge


# Heat maps of two-way tables: seven steps of colour, on them value and uncertainty, hatched where too noisy.

STEPS = 7
CELL, HEAD, HEAT_FOOT = 36, 30, 44
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


def axes_of_table(cells: Sequence[CellView]) -> tuple[list[Key], list[Key]]:
    """The keys of both columns, in order of first appearance."""
    return list(dict.fromkeys(c.keys[0] for c in cells)), list(dict.fromkeys(c.keys[1] for c in cells))


def says_numbers(cells: Sequence[CellView], labels: float = LABELS) -> bool:
    """Whether each cell has room for its value and the ends of its interval. Small pictures have fewer names,
    which are wider.
    """
    return min(map(len, axes_of_table(cells))) <= (MOST_ACROSS if labels <= LABELS else MOST_SMALL)


def heat_map(
    id: str,
    title: str,
    description: str,
    cells: Sequence[CellView],
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
    low, high = span or heat_span(cells)
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
        parts.append(tag("text", _cut_heat(key_words(row)), x=0, y=top + tall / 2 + 4, class_="tick"))
        for k, key in enumerate(across):
            cell = place.get((row, key))
            if cell is not None:
                parts.append(_cell(id, cell, labels + k * width, top, width, (low, high), numbers, tall))
    bottom = head + len(down) * tall
    parts += _legend(bottom, low, high, labels)
    return picture(id, title, description, bottom + HEAT_FOOT, parts, class_="heat-map")


def _cell(
    id: str,
    cell: CellView,
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
    """The colour of a value, of seven."""
    low, high = span
    return min(STEPS - 1, max(0, int(STEPS * (value - low) / (high - low))))


def _column_name(words: str, place: float, y: float, steep: bool) -> Markup:
    if not steep:
        return tag("text", words, x=f"{place:.2f}%", y=y, text_anchor="middle", class_="tick")
    # Text can be turned only about a point in pixels: a canvas of its own is set at the percentage.
    turned = tag("text", _cut_heat(words, 18), transform="rotate(-42)", class_="tick")
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


def _cut_heat(name: str, most: int = 13) -> str:
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"


FIELD_ROW, FIELD_HEAD, FIELD_FOOT = 15, 22, 76
FIELD_LABELS = 16.0
"""The share of the width that the names of levels take."""


def fits_a_map(cells: Sequence[CellView]) -> bool:
    """Do both keys lie on lines, and does every crossing have a cell?"""
    placed = all(len(c.keys) == 2 and None not in map(key_place, c.keys) for c in cells)
    if not placed:
        return False
    across, up = ({c.keys[k] for c in cells} for k in (0, 1))
    return min(len(across), len(up)) > 2 and len(across) * len(up) == len(cells)


def holds_zero(cell: CellView) -> bool:
    """Does the interval leave the sign open?"""
    return cell.low is not None and cell.high is not None and cell.low <= 0.0 <= cell.high


def widths(cells: Sequence[CellView]) -> list[CellView]:
    """The same cells with the width of their interval, from end to end, for a value."""
    return [CellView(keys=c.keys, value=(c.high or 0.0) - (c.low or 0.0)) for c in cells]


def field_map(
    id: str, title: str, description: str, cells: Sequence[CellView], columns: tuple[str, str], *, signs: bool,
    span: tuple[float, float] | None = None,
) -> Markup:  # fmt: skip
    """The first column runs to the right, the second one up; `signs` hatches cells whose interval holds 0."""
    across = sorted({c.keys[0] for c in cells}, key=lambda k: key_place(k) or 0.0)
    up = sorted({c.keys[1] for c in cells}, key=lambda k: key_place(k) or 0.0)
    column, row = {k: i for i, k in enumerate(across)}, {k: len(up) - 1 - i for i, k in enumerate(up)}
    width, (low, high) = (100 - FIELD_LABELS) / len(across), span or value_span(cells)
    parts: list[Markup] = [hatching(f"{id}-hatch")]
    parts.append(tag("text", f"{columns[1]} ↑", x=0, y=13, class_="axis-name"))
    for cell in cells:
        box = {
            "x": f"{FIELD_LABELS + column[cell.keys[0]] * width:.2f}%", "y": FIELD_HEAD + row[cell.keys[1]] * FIELD_ROW,
            # A little wider than its place: no seams between neighbours.
            "width": f"{width + 0.05:.2f}%", "height": FIELD_ROW + 0.3,
        }  # fmt: skip
        if cell.value is None:
            parts.append(tag("rect", **box, class_="empty"))
            continue
        parts.append(tag("rect", **box, class_=f"heat-{step_of(cell.value, (low, high))}"))
        if signs and holds_zero(cell):
            parts.append(tag("rect", **box, fill=f"url(#{id}-hatch)", fill_opacity="0.55"))
    bottom = FIELD_HEAD + len(up) * FIELD_ROW
    for k in _some(len(up), 6):
        y = FIELD_HEAD + row[up[k]] * FIELD_ROW + FIELD_ROW / 2 + 4
        parts.append(tag("text", _place_text(up[k]), x=0, y=y, class_="tick"))
    for k in _some(len(across), 4):
        x = FIELD_LABELS + (k + 0.5) * width
        anchor = "start" if k == 0 else "end" if k == len(across) - 1 else "middle"
        parts.append(
            tag(
                "text",
                _place_text(across[k]),
                x=f"{x:.2f}%",
                y=bottom + 15,
                text_anchor=anchor,
                class_="tick",
            )
        )
    parts.append(
        tag("text", f"{columns[0]} →", x="100%", y=bottom + 32, text_anchor="end", class_="axis-name")
    )
    step = (100 - FIELD_LABELS) / STEPS
    for k in range(STEPS):
        box = {"x": f"{FIELD_LABELS + k * step:.2f}%", "y": bottom + 44, "width": f"{step:.2f}%", "height": 8}
        parts.append(tag("rect", **box, class_=f"heat heat-{k}"))
    parts.append(tag("text", compact(low), x=f"{FIELD_LABELS}%", y=bottom + 68, class_="tick"))
    parts.append(tag("text", compact(high), x="100%", y=bottom + 68, text_anchor="end", class_="tick"))
    return picture(id, title, description, bottom + FIELD_FOOT, parts, class_="heat-map")


def _place_text(key: Key) -> str:
    """A place on an axis: three digits are enough there."""
    return three(key) if isinstance(key, float) else key_words(key)


def _some(count: int, most: int) -> list[int]:
    """At most this many places, both ends among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)})
