"""Survival curves in the usual form: steps with a band, a line a group, and the numbers at risk below."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tacit.report.drawing import spread
from tacit.report.view import CellView, Key, Markup, ReleaseView, key_words, picture, tag

KIND = "survival"
MOST_GROUPS = 3
"""The largest number of groups in one picture, with different kinds of line; with more groups, each has its
own picture.
"""
MOST_PICTURES = 12
TOP, PLOT, ROW = 10, 230, 18
LEFT, SPAN, WIDE = 11.0, 86.0, 1000
LINES = ("line", "line second", "line third")
BANDS = ("band", "band second", "band third")

Group = tuple[Key, ...]
Place = Callable[[float], float]


def fits_survival(view: ReleaseView) -> bool:
    """Whether it is a set of survival curves that fits on a page."""
    return view.kind == KIND and view.rest is None and 0 < len(_groups(view)) <= MOST_PICTURES


def _groups(view: ReleaseView) -> list[Group]:
    return list(dict.fromkeys(c.keys[:-2] for c in view.cells if c.keys[-2] == "survival"))


def _held(view: ReleaseView, group: Group, measure: str) -> list[CellView]:
    return [c for c in view.cells if c.keys[:-2] == group and c.keys[-2] == measure]


def survival_pictures(id: str, title: str, description: str, view: ReleaseView) -> Markup:
    """One picture of up to three groups, or one for each of more."""
    groups = _groups(view)
    if len(groups) <= MOST_GROUPS:
        return _picture(id, title, description, view, groups)
    made = [
        tag("div", tag("h3", _name(g)), _picture(f"{id}-{k}", f"{title}, {_name(g)}", description, view, [g]))
        for k, g in enumerate(groups)
    ]
    return tag("div", made, class_="multiples")


def survival_finding(view: ReleaseView) -> str:
    """Medians of the groups, and the comparisons of two groups."""
    told = []
    for group in _groups(view):
        name = f"{_name(group)}: " if group else ""
        (median,) = _held(view, group, "median")
        (mean,) = _held(view, group, "restricted mean")
        if median.value is not None:
            told.append(f"{name}half had the event by {_words(median)}")
        elif mean.value is not None:
            told.append(f"{name}mean time of the first {key_words(mean.keys[-1])}: {_words(mean)}")
        else:
            told.append(f"{name}the curve ends before half had the event")
    for cell in view.cells:
        if cell.keys[-2] == "hazard ratio" and cell.value is not None:
            told.append(f"hazard ratio ({', '.join(map(key_words, cell.keys[:-2]))}): {_words(cell)}")
    return f"{'; '.join(told)}."


def _words(cell: CellView) -> str:
    return f"{cell.figures.value} ({cell.figures.interval})"


def _name(group: Group) -> str:
    return ", ".join(map(key_words, group))


def _picture(id: str, title: str, description: str, view: ReleaseView, groups: Sequence[Group]) -> Markup:
    times = [_time(c) for c in _held(view, groups[0], "survival")]
    first = _time(_held(view, groups[0], "at risk")[0])
    last = times[-1]

    def along(t: float) -> float:
        return LEFT + SPAN * (t - first) / (last - first)

    def up(share: float) -> float:
        return TOP + PLOT * (1 - share)

    parts: list[Markup] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = up(share)
        parts.append(
            tag("line", x1=f"{LEFT}%", x2=f"{LEFT + SPAN}%", y1=y, y2=y, class_="grid" if share else "axis")
        )
        parts.append(tag("text", f"{share:.0%}", x=f"{LEFT - 1}%", y=y + 4, text_anchor="end", class_="tick"))
    curves = [_steps(view, g, k, first, along, up) for k, g in enumerate(groups)]
    parts += [shape for band, _ in curves for shape in band] + [shape for _, line in curves for shape in line]
    marked = [[first, *times][k] for k in spread([first, *times], 7)]
    y = TOP + PLOT + 16
    for t in marked:
        parts.append(
            tag("text", key_words(t), x=f"{along(t):.2f}%", y=y, text_anchor="middle", class_="tick")
        )
    parts.append(
        tag(
            "text",
            view.columns[-1],
            x=f"{LEFT + SPAN / 2}%",
            y=y + 17,
            text_anchor="middle",
            class_="axis-name",
        )
    )
    y += 38
    parts.append(tag("text", "At risk, with noise", x=0, y=y, class_="label"))
    for k, group in enumerate(groups):
        parts += _at_risk(view, group, k, y, marked, along, alone=len(groups) == 1)
        y += ROW if len(groups) == 1 else 2 * ROW
    return picture(id, title, description, y + 8, parts, class_="survival")


def _steps(
    view: ReleaseView, group: Group, k: int, first: float, along: Place, up: Place
) -> tuple[list[Markup], list[Markup]]:
    """The band and the curve of a group: level between two edges, falling at each."""
    cells = [c for c in _held(view, group, "survival") if c.value is not None]
    line = [(along(first), up(1.0))]
    upper, lower = [(along(first), up(1.0))], [(along(first), up(1.0))]
    for cell in cells:
        x = along(_time(cell))
        for path, value in ((line, cell.value), (upper, cell.high), (lower, cell.low)):
            path += [(x, path[-1][1]), (x, up(min(max(value or 0.0, 0.0), 1.0)))]
    band = [*upper, *reversed(lower)]
    return (
        [stretched(tag("polygon", points=points(band), class_=BANDS[k]), TOP + PLOT)],
        [stretched(tag("polyline", points=points(line), class_=LINES[k]), TOP + PLOT)],
    )


def _at_risk(
    view: ReleaseView, group: Group, k: int, y: float, marked: Sequence[float], along: Place, *, alone: bool
) -> list[Markup]:
    """The numbers at risk at the marked edges, from the bin that begins there."""
    parts: list[Markup] = []
    cells = _held(view, group, "at risk")
    top = y + ROW
    if not alone:
        sample = tag("line", x1=0, x2="4%", y1=top - 4, y2=top - 4, class_=LINES[k])
        parts += [sample, tag("text", _name(group), x="5%", y=top, class_="tick")]
        top += ROW - 2
    for cell in cells:
        t = _time(cell)
        if t in marked and cell.value is not None:
            at = {"x": f"{along(t):.2f}%", "y": top}
            parts.append(tag("text", f"{cell.value:,.0f}", **at, text_anchor="middle", class_="tick num"))
    return parts


def _time(cell: CellView) -> float:
    time = cell.keys[-1]
    assert isinstance(time, float | int)
    return float(time)


def stretched(shape: Markup, height: float) -> Markup:
    """A shape of `WIDE` units, drawn over the whole width."""
    box = f"0 0 {WIDE} {height}"
    return tag(
        "svg", shape, width="100%", height=height, viewBox=box, preserveAspectRatio="none", aria_hidden="true"
    )


def points(path: list[tuple[float, float]]) -> str:
    """Places in percent of the width and in pixels of the height, as an attribute."""
    return " ".join(f"{x * WIDE / 100:.1f},{y:.1f}" for x, y in path)
