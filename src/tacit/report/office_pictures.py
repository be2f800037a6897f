"""Releases of an office in their usual form: a regression table, and Lorenz curves with Gini coefficients."""

from __future__ import annotations

from tacit.curator.cells import ABSENT, GOOD, NOISY, WORDS
from tacit.report.survival_picture import BANDS, LINES, points, stretched
from tacit.report.view import CellView, Key, Markup, ReleaseView, key_words, percent, picture, tag

REGRESSION, INEQUALITY, CALIBRATED = "regression", "inequality", "calibrated"
COEFFICIENT, ERROR = "coefficient", "standard error"
MOST_TOGETHER, MOST_GROUPS = 3, 12
TOP, PLOT, ROW = 10, 300, 18
LEFT, SPAN = 8.0, 90.0

Group = tuple[Key, ...]


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
    groups = _groups(view) if view.kind == INEQUALITY and view.rest is None else []
    return 0 < len(groups) <= MOST_GROUPS and all(_curve(view, g) for g in groups)


def inequality_finding(view: ReleaseView) -> str:
    """The Gini coefficient of each group, and the share of the smallest top."""
    told = []
    for group in _groups(view):
        name = f"{_name(group)}: " if group else ""
        parts = [f"Gini coefficient {_words(c)}" for c in _held(view, group, "gini")]
        tops = [c for c in _held(view, group, "top share") if c.value is not None]
        if tops:
            share = min(tops, key=lambda c: float(c.keys[-1]))  # type: ignore[arg-type]
            parts.append(f"share of the top {_share(share.keys[-1])} {_words(share)}")
        told.append(f"{name}{', '.join(parts)}")
    return f"{'; '.join(told)}."


def calibrated_finding(view: ReleaseView) -> str:
    """Mean and total of each group."""
    told: dict[Group, list[str]] = {}
    for cell in view.cells:
        if cell.keys[-1] in ("mean", "total"):
            told.setdefault(cell.keys[:-1], []).append(f"{cell.keys[-1]} {_words(cell)}")
    named = [f"{_name(g)}: {', '.join(words)}" if g else ", ".join(words) for g, words in told.items()]
    return f"{'; '.join(named)}.".replace("mean", "Mean", 1)


def lorenz_pictures(id: str, title: str, description: str, view: ReleaseView) -> Markup:
    """One picture of up to three groups, or one for each of more."""
    groups = _groups(view)
    if len(groups) <= MOST_TOGETHER:
        return _picture(id, title, description, view, groups)
    made = [
        tag("div", tag("h3", _name(g)), _picture(f"{id}-{k}", f"{title}, {_name(g)}", description, view, [g]))
        for k, g in enumerate(groups)
    ]
    return tag("div", made, class_="multiples")


def _groups(view: ReleaseView) -> list[Group]:
    return list(dict.fromkeys(c.keys[:-2] for c in view.cells))


def _held(view: ReleaseView, group: Group, measure: str) -> list[CellView]:
    return [c for c in view.cells if c.keys[:-2] == group and c.keys[-2] == measure]


def _curve(view: ReleaseView, group: Group) -> list[CellView]:
    """The points of a curve in order, without the missing ones."""
    found = sorted(_held(view, group, "lorenz"), key=lambda c: float(c.keys[-1]))  # type: ignore[arg-type]
    return found if all(c.value is not None and c.low is not None for c in found) else []


def _picture(id: str, title: str, description: str, view: ReleaseView, groups: list[Group]) -> Markup:
    def at(share: float, value: float) -> tuple[float, float]:
        return LEFT + SPAN * share, TOP + PLOT * (1 - min(max(value, 0.0), 1.0))

    parts: list[Markup] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(share, share)
        parts.append(
            tag("line", x1=f"{LEFT}%", x2=f"{LEFT + SPAN}%", y1=y, y2=y, class_="grid" if share else "axis")
        )
        parts.append(tag("text", f"{share:.0%}", x=f"{LEFT - 1}%", y=y + 4, text_anchor="end", class_="tick"))
        parts.append(
            tag("text", f"{share:.0%}", x=f"{x}%", y=TOP + PLOT + 16, text_anchor="middle", class_="tick")
        )
    height = TOP + PLOT
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
    y = TOP + PLOT + 33
    words = "share of the rows, from the smallest on; upwards their share of the sum"
    parts.append(tag("text", words, x=f"{LEFT + SPAN / 2}%", y=y, text_anchor="middle", class_="axis-name"))
    for k, group in enumerate(groups):
        if group:
            y += ROW
            parts.append(tag("line", x1=0, x2="4%", y1=y - 4, y2=y - 4, class_=LINES[k]))
            parts.append(tag("text", _name(group), x="5%", y=y, class_="tick"))
    return picture(id, title, description, y + 10, parts, class_="lorenz")


def _name(group: Group) -> str:
    return ", ".join(map(key_words, group))


def _share(key: Key) -> str:
    return percent(float(key))  # type: ignore[arg-type]


def _words(cell: CellView) -> str:
    if cell.value is None or cell.flag in (NOISY, ABSENT):
        return "too noisy to use" if cell.value is not None else "unknown"
    return f"{cell.figures.value} ({cell.figures.interval})"
