"""Pictures of one kind of statistic each: decision trees, tables with totals, survival curves, regressions, shares.

Each kind says whether a release fits it (`fits_...`), and draws it. Pictures of counts and means by their keys are in
pictures.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tacit.curator.cells import ABSENT, GOOD, NOISY, WORDS
from tacit.report.drawing import spread
from tacit.report.view import CellView, Key, Markup, ReleaseView, key_words, percent, picture, tag

LINE, BAR, INDENT = 22, 9, 3.0
MOST_LEAVES = 32
CONDITIONS = 62.0
"""The share of the width that conditions take; bars have the rest."""


def fits_a_tree(view: ReleaseView) -> bool:
    """Whether it is a tree that fits on a page."""
    return 0 < len(view.tree) <= MOST_LEAVES and view.rest is None and len(view.cells) % len(view.tree) == 0


def tree_picture(id: str, title: str, description: str, view: ReleaseView) -> Markup:
    """Conditions from the root down; beside a leaf a bar of its classes, darkest for the largest, and its answer."""
    classes = len(view.cells) // len(view.tree)
    parts: list[Markup] = []
    top = 0
    last: tuple[str, ...] = ()
    for leaf, path in enumerate(view.tree):
        same = next((k for k, (a, b) in enumerate(zip(path, last, strict=False)) if a != b), len(last))
        for level in range(same, len(path)):
            x = INDENT * level
            if level:
                parts.append(_elbow(x, top))
            parts.append(tag("text", _cut(path[level]), x=f"{x:.2f}%", y=top + 15, class_="label"))
            if level == len(path) - 1:
                parts += _leaf(view.cells[leaf * classes : (leaf + 1) * classes], top)
            top += LINE
        last = path
    return picture(id, title, description, top + 4, parts, class_="tree")


def _elbow(x: float, top: float) -> Markup:
    """A short line from the level above."""
    at, to = f"{x - INDENT / 2:.2f}%", f"{x - INDENT / 5:.2f}%"
    down = tag("line", x1=at, x2=at, y1=top - 3, y2=top + 11, class_="axis")
    return tag("g", down, tag("line", x1=at, x2=to, y1=top + 11, y2=top + 11, class_="axis"))


def _leaf(cells: Sequence[CellView], top: float) -> list[Markup]:
    values = [max(c.value or 0.0, 0.0) for c in cells]
    total = sum(values)
    if total <= 0:
        return [tag("text", "no row stands out", x="100%", y=top + 15, text_anchor="end", class_="tick")]
    best = max(range(len(values)), key=lambda k: values[k])
    parts, start, width = [], CONDITIONS, 16.0
    for k, value in enumerate(values):
        wide = width * value / total
        box = {"x": f"{start:.2f}%", "y": top + 6, "width": f"{wide:.2f}%", "height": BAR}
        parts.append(tag("rect", **box, class_="bar" if k == best else "band"))
        start += wide
    words = f"{key_words(cells[best].keys[-1])}, {values[best] / total:.0%} of {total:,.0f}"
    parts.append(tag("text", _cut(words, 30), x="100%", y=top + 15, text_anchor="end", class_="label num"))
    return parts


def _cut(name: str, most: int = 42) -> str:
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"


# A table with its totals as an office prints it: keys down and across, totals at the ends, intervals below.


TABLE, ALL = "table", "all"
MOST_ACROSS, MOST_DOWN, MOST_LAYERS = 12, 60, 12


def fits_a_crosstab(view: ReleaseView) -> bool:
    """Whether it is a table with totals that fits on a page."""
    if view.kind != TABLE or view.rest is not None or not view.cells:
        return False
    return (
        len(_keys(view, 0)) <= MOST_DOWN
        and (len(view.columns) < 2 or len(_keys(view, 1)) <= MOST_ACROSS)
        and len({c.keys[2:] for c in view.cells}) <= MOST_LAYERS
    )


def crosstab_finding(view: ReleaseView) -> str:
    """The grand total, and that all numbers add up."""
    last = view.cells[-1]
    if all(key == ALL for key in last.keys) and last.value is not None:
        return f"{last.figures.value} rows in all ({last.figures.interval}). Cells and totals add up."
    return f"{view.total:,} counts of rows."


def crosstab(id: str, title: str, view: ReleaseView) -> Markup:
    """One table for each layer, the one of all layers last."""
    found = {c.keys: c for c in view.cells}
    made = []
    for n, layer in enumerate(dict.fromkeys(c.keys[2:] for c in view.cells)):
        named = zip(view.columns[2:], layer, strict=True)
        words = ", ".join(f"{name}: {_shown(key)}" for name, key in named)
        made.append(_one(f"{id}-{n}", f"{title}{', ' if words else ''}{words}", words, view, found, layer))
    return tag("div", made, class_="crosstabs")


def _one(
    id: str,
    title: str,
    words: str,
    view: ReleaseView,
    found: dict[tuple[Key, ...], CellView],
    layer: tuple[Key, ...],
) -> Markup:
    across = _keys(view, 1) if len(view.columns) > 1 else [None]
    name = view.columns[1] if len(view.columns) > 1 else ""
    heads = [tag("th", view.columns[0], scope="col")]
    heads += [
        tag("th", _shown(key) if key is not None else "rows", scope="col", class_="n") for key in across
    ]
    rows = []
    for down in _keys(view, 0):
        cells = [found.get((down, *([key] if key is not None else []), *layer)) for key in across]
        if any(c is not None for c in cells):
            rows.append(tag("tr", tag("th", _shown(down), scope="row"), [_cell(c) for c in cells]))
    caption = f"{name} across; below each number its interval." if name else "Below each number its interval."
    grid = tag(
        "table", tag("caption", caption), tag("thead", tag("tr", heads)), tag("tbody", rows), class_="values"
    )
    scroll = tag("div", grid, class_="scroll", tabindex="0", role="region", aria_label=title, id=id)
    return tag("div", tag("h3", words), scroll) if words else scroll


def _cell(cell: CellView | None) -> Markup:
    if cell is None or cell.value is None:
        return tag("td", "", class_="n num")
    told = cell.figures
    mark = " *" if cell.flag in (NOISY, ABSENT) else ""
    return tag("td", f"{told.value}{mark}", tag("br"), tag("small", told.interval), class_="n num")


def _keys(view: ReleaseView, place: int) -> list[Key]:
    """The keys of a column in their order; the total last."""
    found = list(dict.fromkeys(c.keys[place] for c in view.cells))
    return [k for k in found if k != ALL] + ([ALL] if ALL in found else [])


def _shown(key: Key) -> str:
    return "Total" if key == ALL else key_words(key)


# Survival curves in the usual form: steps with a band, a line a group, and the numbers at risk below.


SURVIVAL = "survival"
MOST_CURVES = 3
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
    return view.kind == SURVIVAL and view.rest is None and 0 < len(_groups(view)) <= MOST_PICTURES


def _groups(view: ReleaseView) -> list[Group]:
    return list(dict.fromkeys(c.keys[:-2] for c in view.cells if c.keys[-2] == "survival"))


def _held(view: ReleaseView, group: Group, measure: str) -> list[CellView]:
    return [c for c in view.cells if c.keys[:-2] == group and c.keys[-2] == measure]


def survival_pictures(id: str, title: str, description: str, view: ReleaseView) -> Markup:
    """One picture of up to three groups, or one for each of more."""
    groups = _groups(view)
    if len(groups) <= MOST_CURVES:
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
            told.append(f"{name}half had the event by {_cell_text(median)}")
        elif mean.value is not None:
            told.append(f"{name}mean time of the first {key_words(mean.keys[-1])}: {_cell_text(mean)}")
        else:
            told.append(f"{name}the curve ends before half had the event")
    for cell in view.cells:
        if cell.keys[-2] == "hazard ratio" and cell.value is not None:
            told.append(f"hazard ratio ({', '.join(map(key_words, cell.keys[:-2]))}): {_cell_text(cell)}")
    return f"{'; '.join(told)}."


def _cell_text(cell: CellView) -> str:
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


# Releases of an office in their usual form: a regression table, and Lorenz curves with Gini coefficients.


REGRESSION, INEQUALITY, CALIBRATED = "regression", "inequality", "calibrated"
COEFFICIENT, ERROR = "coefficient", "standard error"
MOST_TOGETHER, MOST_GROUPS = 3, 12
LORENZ_TOP, LORENZ_PLOT, LORENZ_ROW = 10, 300, 18
LORENZ_LEFT, LORENZ_SPAN = 8.0, 90.0


def fits_regression(view: ReleaseView) -> bool:
    """Is it a regression table, whole?"""
    return view.kind == REGRESSION and view.rest is None and len(view.columns) == 2


def regression_table(id: str, view: ReleaseView) -> Markup:
    """One line for each term, with its standard error and interval; the lines of the model below."""
    errors = {c.keys[0]: c for c in view.cells if c.keys[1] == ERROR}
    flagged = bool(view.flag_counts)
    heads = [tag("th", "term", scope="col")]
    heads += [tag("th", word, scope="col", class_="n") for word in (COEFFICIENT, ERROR, "low", "high")]
    heads += [tag("th", "quality", scope="col")] if flagged else []
    rows = []
    for cell in view.cells:
        if cell.keys[1] != COEFFICIENT:
            continue
        value, low, high = cell.figures
        told = [value, errors[cell.keys[0]].figures.value, low, high]
        parts = [tag("th", key_words(cell.keys[0]), scope="row")]
        parts += [tag("td", words, class_="n num") for words in told]
        parts += [tag("td", _quality(view, cell))] if flagged else []
        rows.append(tag("tr", parts))
    body = [tag("tbody", rows)]
    model = [c for c in view.cells if c.keys[1] not in (COEFFICIENT, ERROR)]
    lines = [
        tag("tr", tag("th", key_words(c.keys[1]), scope="row"), tag("td", c.figures.value, class_="n num"))
        for c in model
    ]
    caption = f"Interval: {percent(view.confidence)}, for {view.covers}."
    main = tag("table", tag("caption", caption), tag("thead", tag("tr", heads)), body, class_="values")
    below = tag("table", tag("caption", "The model"), tag("tbody", lines), class_="values")
    return tag("div", main, below, class_="scroll", tabindex="0", role="region", aria_label=view.title, id=id)


def _quality(view: ReleaseView, cell: CellView) -> Markup | str:
    if not cell.flag:
        return WORDS[GOOD]
    label = next(f.label for f in view.flags if f.id == cell.flag)
    return tag("span", label, class_=f"pill {cell.flag if cell.flag in WORDS else 'other'}")


# --- inequality ------------------------------------------------------------------------------------------------


def fits_lorenz(view: ReleaseView) -> bool:
    """Does every group have a Lorenz curve, and has the page room for them?"""
    groups = _lorenz_groups(view) if view.kind == INEQUALITY and view.rest is None else []
    return 0 < len(groups) <= MOST_GROUPS and all(_curve(view, g) for g in groups)


def inequality_finding(view: ReleaseView) -> str:
    """The Gini coefficient of each group, and the share of the smallest top."""
    told = []
    for group in _lorenz_groups(view):
        name = f"{_name(group)}: " if group else ""
        parts = [f"Gini coefficient {_lorenz_words(c)}" for c in _held(view, group, "gini")]
        tops = [c for c in _held(view, group, "top share") if c.value is not None]
        if tops:
            share = min(tops, key=lambda c: float(c.keys[-1]))  # type: ignore[arg-type]
            parts.append(f"share of the top {_share(share.keys[-1])} {_lorenz_words(share)}")
        told.append(f"{name}{', '.join(parts)}")
    return f"{'; '.join(told)}."


def calibrated_finding(view: ReleaseView) -> str:
    """Mean and total of each group."""
    told: dict[Group, list[str]] = {}
    for cell in view.cells:
        if cell.keys[-1] in ("mean", "total"):
            told.setdefault(cell.keys[:-1], []).append(f"{cell.keys[-1]} {_lorenz_words(cell)}")
    named = [f"{_name(g)}: {', '.join(words)}" if g else ", ".join(words) for g, words in told.items()]
    return f"{'; '.join(named)}.".replace("mean", "Mean", 1)


def lorenz_pictures(id: str, title: str, description: str, view: ReleaseView) -> Markup:
    """One picture of up to three groups, or one for each of more."""
    groups = _lorenz_groups(view)
    if len(groups) <= MOST_TOGETHER:
        return _lorenz_picture(id, title, description, view, groups)
    made = [
        tag(
            "div",
            tag("h3", _name(g)),
            _lorenz_picture(f"{id}-{k}", f"{title}, {_name(g)}", description, view, [g]),
        )
        for k, g in enumerate(groups)
    ]
    return tag("div", made, class_="multiples")


def _lorenz_groups(view: ReleaseView) -> list[Group]:
    return list(dict.fromkeys(c.keys[:-2] for c in view.cells))


def _curve(view: ReleaseView, group: Group) -> list[CellView]:
    """The points of a curve in order, without the missing ones."""
    found = sorted(_held(view, group, "lorenz"), key=lambda c: float(c.keys[-1]))  # type: ignore[arg-type]
    return found if all(c.value is not None and c.low is not None for c in found) else []


def _lorenz_picture(id: str, title: str, description: str, view: ReleaseView, groups: list[Group]) -> Markup:
    def at(share: float, value: float) -> tuple[float, float]:
        return LORENZ_LEFT + LORENZ_SPAN * share, LORENZ_TOP + LORENZ_PLOT * (1 - min(max(value, 0.0), 1.0))

    parts: list[Markup] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(share, share)
        parts.append(
            tag(
                "line",
                x1=f"{LORENZ_LEFT}%",
                x2=f"{LORENZ_LEFT + LORENZ_SPAN}%",
                y1=y,
                y2=y,
                class_="grid" if share else "axis",
            )
        )
        parts.append(
            tag("text", f"{share:.0%}", x=f"{LORENZ_LEFT - 1}%", y=y + 4, text_anchor="end", class_="tick")
        )
        parts.append(
            tag(
                "text",
                f"{share:.0%}",
                x=f"{x}%",
                y=LORENZ_TOP + LORENZ_PLOT + 16,
                text_anchor="middle",
                class_="tick",
            )
        )
    height = LORENZ_TOP + LORENZ_PLOT
    parts.append(stretched(tag("polyline", points=points([at(0, 0), at(1, 1)]), class_="axis"), height))
    curves = []
    for k, group in enumerate(groups):
        cells = _curve(view, group)
        middle, low, high = (
            [at(0, 0), *(at(float(c.keys[-1]), v or 0.0) for c, v in held), at(1, 1)]  # type: ignore[arg-type]
            for held in (
                [(c, c.value) for c in cells],
                [(c, c.low) for c in cells],
                [(c, c.high) for c in cells],
            )
        )
        parts.append(
            stretched(tag("polygon", points=points([*high, *reversed(low)]), class_=BANDS[k]), height)
        )
        curves.append(stretched(tag("polyline", points=points(middle), class_=LINES[k]), height))
    parts += curves
    y = LORENZ_TOP + LORENZ_PLOT + 33
    words = "share of the rows, from the smallest on; upwards their share of the sum"
    parts.append(
        tag(
            "text",
            words,
            x=f"{LORENZ_LEFT + LORENZ_SPAN / 2}%",
            y=y,
            text_anchor="middle",
            class_="axis-name",
        )
    )
    for k, group in enumerate(groups):
        if group:
            y += LORENZ_ROW
            parts.append(tag("line", x1=0, x2="4%", y1=y - 4, y2=y - 4, class_=LINES[k]))
            parts.append(tag("text", _name(group), x="5%", y=y, class_="tick"))
    return picture(id, title, description, y + 10, parts, class_="lorenz")


def _share(key: Key) -> str:
    return percent(float(key))  # type: ignore[arg-type]


def _lorenz_words(cell: CellView) -> str:
    if cell.value is None or cell.flag in (NOISY, ABSENT):
        return "too noisy to use" if cell.value is not None else "unknown"
    return f"{cell.figures.value} ({cell.figures.interval})"
