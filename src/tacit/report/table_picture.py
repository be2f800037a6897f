"""A table with its totals as an office prints it: keys down and across, totals at the ends, intervals below."""

from __future__ import annotations

from tacit.curator.cells import ABSENT, NOISY
from tacit.report.view import CellView, Key, Markup, ReleaseView, key_words, tag

KIND, ALL = "table", "all"
MOST_ACROSS, MOST_DOWN, MOST_LAYERS = 12, 60, 12


def fits_a_crosstab(view: ReleaseView) -> bool:
    """Whether it is a table with totals that fits on a page."""
    if view.kind != KIND or view.rest is not None or not view.cells:
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
