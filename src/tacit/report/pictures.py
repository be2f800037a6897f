"""Pictures of releases, drawn as SVG that fits any width: one file a kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tacit.curator.cells import ABSENT, NOISY
from tacit.curator.text import three
from tacit.exact.data_classes import dataclass
from tacit.report.drawing import (
    LABELS,
    axes_of_table,
    bars,
    curve,
    field_map,
    fits_a_map,
    heat_map,
    histogram,
    holds_zero,
    says_numbers,
    span_of,
    strip,
    value_span,
    widths,
)
from tacit.report.statistic_pictures import (
    CALIBRATED,
    REGRESSION,
    crosstab,
    fits_a_crosstab,
    fits_a_tree,
    fits_lorenz,
    fits_regression,
    fits_survival,
    lorenz_pictures,
    regression_table,
    survival_pictures,
    tree_picture,
)
from tacit.report.view import (
    CellView,
    Markup,
    Picture,
    ReleaseView,
    ident,
    key_place,
    key_words,
    percent,
    tag,
)

# Which picture fits a release, drawn: with its name, its description, and which cells it leaves to the file.

MOST_CELLS = 40
"""Beyond this many, bars and tables show the largest."""
MOST_HEAT = 400
MOST_POINTS = 400
MOST_FACETS = 6
MOST_ROWS = 20
ALL = "all"
SMALL = 38.0
"""The share of a small picture's width that the names of rows take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A picture (None for a table alone), the cells that it shows, and marks for the reader."""

    kind: Picture
    markup: Markup | None
    cells: tuple[CellView, ...]
    marks: tuple[str, ...]


def fitting(view: ReleaseView) -> Picture:
    """The kind of picture for these keys; a requested kind is used if possible."""
    cells, keys = view.cells, len(view.columns)
    if not cells:
        return "table"
    if _matrix(view):
        return "heatmap"
    if any(c.days for c in cells):
        return "table"  # a bar from 1970 on shows nothing
    if fits_a_tree(view) and view.picture != "table":
        return "tree"
    if fits_survival(view) and view.picture != "table":
        return "survival"
    if fits_regression(view) and view.picture != "table":
        return "regression"
    if fits_lorenz(view) and view.picture != "table":
        return "lorenz"
    if view.kind in (REGRESSION, GEOGRAPHY, CALIBRATED):
        return "table"
    if fits_a_crosstab(view):
        return "crosstab"
    if view.rest is not None:
        return "bars" if keys == 1 else "table"
    if keys == 0:
        return "number" if len(cells) == 1 and cells[0].value is not None else "table"
    if keys == 1:
        placed = all(key_place(c.keys[0]) is not None for c in cells)
        ranges = all(isinstance(c.keys[0], tuple) for c in cells)
        wanted = view.picture if view.picture in ("bars", "histogram", "curve", "points", "table") else "auto"
        some = sum(c.value is not None for c in cells) > 1
        if wanted in ("curve", "points") and not (placed and some):
            wanted = "auto"
        if wanted == "curve" and view.kind.startswith("quantile"):
            wanted = "points"
        if wanted == "histogram" and len(cells) > MOST_POINTS:
            wanted = "auto"
        if wanted == "auto" and view.kind.startswith("quantile") and placed and some:
            return "points"
        if wanted != "auto":
            return wanted
        if placed and ranges and 1 < len(cells) <= 80:
            return "histogram"
        if placed and some and 12 < len(cells) <= MOST_POINTS:
            return "curve"
        return "bars"
    if view.picture == "table":
        return "table"
    if _margins(view) and len(cells) <= MOST_HEAT:
        return "multiples"
    if _function(view) and keys == 2:
        if fits_a_map(cells):
            return "map"
        if all(key_place(c.keys[0]) is not None for c in cells):
            return "multiples"
    if keys == 2:
        down, across = axes_of_table(cells)
        few = min(len(down), len(across)) <= 16
        return "heatmap" if few and len(down) * len(across) <= MOST_HEAT else "table"
    facets = {c.keys[: keys - 2] for c in cells}
    return "multiples" if keys == 3 and len(facets) <= MOST_FACETS and len(cells) <= MOST_HEAT else "table"


GEOGRAPHY = "geography"
"""Its table is read by lines, from the largest areas on."""
MODELS = ("additive", "linear", "logistic")
"""Their terms stand in the order of columns and bins. Sorted by size they would show no shape."""
MOST_TERMS = 120


def draw(view: ReleaseView) -> Drawn:
    """The picture of a release."""
    kind = fitting(view)
    cells = view.cells
    if view.kind == GEOGRAPHY:
        cells = cells[:MOST_CELLS]
    elif view.kind in MODELS and kind == "bars":
        cells = cells[:MOST_TERMS]
    elif view.kind != REGRESSION and (kind == "table" or (kind == "bars" and len(cells) > MOST_CELLS)):
        cells = largest(cells)
    id = f"picture-{ident(view.name)}"
    name = f"{view.title}: {_kind_words(kind)}"
    told = describe(view, cells)
    made: Markup | None = None
    if kind == "number":
        made = strip(id, name, told, cells[0])
    elif kind == "tree":
        made = tree_picture(id, name, told, view)
    elif kind == "crosstab":
        made = crosstab(id, name, view)
    elif kind == "survival":
        made = survival_pictures(id, name, told, view)
    elif kind == "lorenz":
        made = lorenz_pictures(id, name, told, view)
    elif kind == "regression":
        made = regression_table(id, view)
    elif kind == "bars":
        made = _stacked(id, name, told, cells)
    elif kind == "histogram":
        made = histogram(id, name, told, cells, view.columns[0])
    elif kind == "curve":
        made = curve(id, name, told, cells, view.columns[0])
    elif kind == "points":
        made = curve(id, name, told, cells, view.columns[0], joined=False)
    elif kind == "heatmap" and view.kind == SYNTHETIC:
        told = (
            "An upper bound of the total variation between the rows and the table, for each column and pair."
        )
        made = heat_map(id, name, told, _matrix(view), ("column", "and column"))
    elif kind == "heatmap":
        made = _heat(view.confidence, id, name, told, cells, (view.columns[0], view.columns[1]))
    elif kind == "map":
        made = _map(id, name, told, view)
    elif kind == "multiples" and len(view.columns) == 2 and _function(view):
        made = _curves(id, view)
    elif kind == "multiples":
        made = _tables(id, view) if _margins(view) else _multiples(id, view, cells)
    return Drawn(kind=kind, markup=made, cells=tuple(cells), marks=_view_marks(kind, view, cells))


def largest(cells: Sequence[CellView], most: int = MOST_CELLS) -> tuple[CellView, ...]:
    """The cells of the largest values, largest first, if the table has more than `most`; otherwise all of them."""
    if len(cells) <= most:
        return tuple(cells)
    return tuple(sorted(cells, key=lambda c: (c.value is None, -(c.value or 0.0)))[:most])


def describe(view: ReleaseView, cells: Sequence[CellView]) -> str:
    """The picture in a sentence or two, for those who do not see it."""
    known = [c for c in cells if c.value is not None]
    if not known:
        return "No cell has a value."
    if len(known) == 1:
        return f"{_cell_words(known[0])}."
    least = min(known, key=lambda c: c.value or 0.0)
    most = max(known, key=lambda c: c.value or 0.0)
    noisy = sum(c.flag == NOISY for c in cells)
    tail = f" {noisy} cells are too noisy to use." if noisy else ""
    by = " and ".join(view.columns)
    return (
        f"{len(cells)} values by {by}. Largest: {_cell_words(most)}. Smallest: {_cell_words(least)}.{tail}"
        " All of them stand in the table below the picture."
    )


def _cell_words(cell: CellView) -> str:
    told = cell.figures
    name = ", ".join(key_words(k) for k in cell.keys)
    ends = f" (interval {told.interval})" if cell.low is not None else ""
    truth = f", the truth being {cell.truth_words}" if cell.truth is not None else ""
    return f"{name + ': ' if name else ''}{told.value}{ends}{truth}"


def _stacked(id: str, name: str, told: str, cells: Sequence[CellView]) -> Markup:
    """Bars in pieces of one scale, none of them higher than a printed page."""
    if len(cells) <= MOST_ROWS:
        return bars(id, name, told, cells)
    span = span_of(cells)
    count = -(-len(cells) // MOST_ROWS)
    size = -(-len(cells) // count)
    pieces = [
        bars(
            f"{id}-{k}", f"{name}, part {k + 1} of {count}", told, cells[k * size : (k + 1) * size], span=span
        )
        for k in range(count)
    ]
    return tag("div", pieces, class_="stack")


def _multiples(id: str, view: ReleaseView, cells: Sequence[CellView]) -> Markup:
    """One small heat map for each value of the column with the fewest, all in one scale."""
    sizes = [len({c.keys[k] for c in cells}) for k in range(3)]
    facet = sizes.index(min(sizes))
    rest = [k for k in range(3) if k != facet]
    span = value_span(cells)
    made = []
    for n, key in enumerate(dict.fromkeys(c.keys[facet] for c in cells)):
        part = [c for c in cells if c.keys[facet] == key]
        turned = [
            CellView(keys=tuple(c.keys[k] for k in rest), value=c.value, low=c.low, high=c.high, flag=c.flag)
            for c in part
        ]
        words = f"{view.columns[facet]}: {key_words(key)}"
        names = (view.columns[rest[0]], view.columns[rest[1]])
        picture = _heat(
            view.confidence, f"{id}-{n}", words, describe(view, part), turned, names, span=span, labels=SMALL
        )
        made.append(tag("div", tag("h3", words), picture))
    return tag("div", made, class_="multiples")


def _heat(
    confidence: float,
    id: str,
    title: str,
    told: str,
    cells: Sequence[CellView],
    names: tuple[str, str],
    **more: Any,
) -> Markup:
    """A heat map with its uncertainty: in the cells, in a sentence if it is alike, or as a second map."""
    made = heat_map(id, title, told, cells, names, **more)
    wides = widths([c for c in cells if c.low is not None and c.value is not None])
    if not wides or says_numbers(cells, more.get("labels", LABELS)):
        return made
    least, most = (end(w.value or 0.0 for w in wides) for end in (min, max))
    wide = f"the width of the {percent(confidence)} interval"
    if most - least <= ALIKE * most:
        return tag("div", made, tag("p", f"In every cell {wide} is {three(most)}.", class_="quiet-words"))
    low, high = more.get("span") or value_span(cells)
    second = heat_map(
        f"{id}-width", f"{title}: {wide}", f"From {three(least)} to {three(most)}.", wides, names,
        **{**more, "span": (0.0, high - low)},
    )  # fmt: skip
    words = f"Its uncertainty: {wide}, from {three(least)} to {three(most)}; its colours have the same steps."
    return tag("div", made, tag("p", words, class_="quiet-words"), second)


def _margins(view: ReleaseView) -> bool:
    """Whether these are several tables in one, where `all` marks a column that a table lacks."""
    return view.kind == "margins" and any(ALL in c.keys for c in view.cells)


def _tables(id: str, view: ReleaseView) -> Markup:
    """One picture for each table: bars for one column, a heat map for two, words for the rest."""
    groups: dict[tuple[int, ...], list[CellView]] = {}
    for cell in view.cells:
        used = tuple(k for k, key in enumerate(cell.keys) if key != ALL)
        groups.setdefault(used, []).append(cell)
    # Colours and bars of one size are one number in all tables.
    span = value_span([c for used, held in groups.items() if len(used) == 2 for c in held])
    reach = span_of([c for used, held in groups.items() if len(used) == 1 for c in held])
    made = []
    for n, (used, cells) in enumerate(groups.items()):
        names = [view.columns[k] for k in used]
        title = f"By {' and '.join(names)}" if names else "All together"
        turned = [
            CellView(
                keys=tuple(c.keys[k] for k in used),
                value=c.value, low=c.low, high=c.high, flag=c.flag, truth=c.truth,
            )
            for c in cells
        ]  # fmt: skip
        told = describe(view, cells)
        if len(used) == 2 and len(cells) <= MOST_HEAT:
            picture = _heat(
                view.confidence,
                f"{id}-{n}",
                title,
                told,
                turned,
                (names[0], names[1]),
                span=span,
                labels=SMALL,
            )
        elif len(used) == 1:
            picture = bars(f"{id}-{n}", title, told, largest(turned), span=reach)
        else:
            picture = bars(f"{id}-{n}", title, told, largest(turned))
        made.append(tag("div", tag("h3", title), picture))
    return tag("div", made, class_="multiples")


ALIKE = 0.01
"""Intervals whose widths differ by less than this share are described in a sentence, not drawn."""
FUNCTIONS = ("classifier", "density", "regression function")


SYNTHETIC = "synthetic table"


def _matrix(view: ReleaseView) -> list[CellView]:
    """The errors of synthetic rows by column and pair, each by its upper end; empty for other releases.

    Takes columns that name a margin, with a cross between them, if each also stands alone.
    """
    if view.kind != SYNTHETIC or any(c.high is None or c.value is None for c in view.cells):
        return []
    single = [c.keys[0] for c in view.cells if " x " not in str(c.keys[0])]
    found: dict[tuple[Any, Any], CellView] = {}
    for cell in view.cells:
        parts = str(cell.keys[0]).split(" x ")
        if len(parts) <= 2 and all(p in single for p in parts):
            for keys in ((parts[0], parts[-1]), (parts[-1], parts[0])):
                found[keys] = replace(cell, keys=keys, value=cell.high, low=None, high=None)
    whole = len(found) == len(single) ** 2
    return (
        [found[a, b] for a in single for b in single] if whole and len(single) <= MOST_ACROSS_MATRIX else []
    )


MOST_ACROSS_MATRIX = 40
"""Columns of a matrix that is drawn; more are in the table."""


def _function(view: ReleaseView) -> bool:
    """Whether the release is a function, shown at some of its points."""
    return view.kind in FUNCTIONS


def _signs(view: ReleaseView) -> bool:
    """Whether only the sign of a value matters."""
    return view.kind == "classifier" and "class" not in view.columns


def _map(id: str, name: str, told: str, view: ReleaseView) -> Markup:
    """The function, and beside it the possible error by the noise."""
    names = (view.columns[0], view.columns[1])
    wides = widths(view.cells)
    wide = f"the width of the {percent(view.confidence)} interval"
    released = field_map(id, name, told, view.cells, names, signs=_signs(view))
    # A density is cut at 0, and its intervals with it: that says nothing about the noise.
    whole = [w.value or 0.0 for w, c in zip(wides, view.cells, strict=True) if c.low != 0.0] or [0.0]
    least, most = min(whole), max(whole)
    if most - least <= ALIKE * most:
        cut = ", less where it is cut at 0" if len(whole) < len(wides) else ""
        alike = tag(
            "p", f"The noise is alike everywhere: {wide} is {three(most)}{cut}.", class_="quiet-words"
        )
        return tag("div", released, alike)
    low, high = value_span(view.cells)
    # A step of colour is the same amount in both maps.
    steps = (0.0, high - low)
    spread = f"{wide[:1].upper()}{wide[1:]}, from {three(least)} to {three(most)}."
    parts = [
        tag("div", tag("h3", "The released function"), released),
        tag(
            "div",
            tag("h3", f"Its uncertainty: {wide}"),
            field_map(f"{id}-width", f"{view.title}: {wide}", spread, wides, names, signs=False, span=steps),
        ),
    ]
    return tag("div", parts, class_="multiples")


def _curves(id: str, view: ReleaseView) -> Markup:
    """One curve for each value of the second column."""
    made = []
    for n, key in enumerate(dict.fromkeys(c.keys[1] for c in view.cells)):
        cells = [replace(c, keys=c.keys[:1]) for c in view.cells if c.keys[1] == key]
        words = f"{view.columns[1]}: {key_words(key)}"
        picture = curve(f"{id}-{n}", f"{view.title}, {words}", describe(view, cells), cells, view.columns[0])
        made.append(tag("div", tag("h3", words), picture))
    return tag("div", made, class_="multiples")


def _kind_words(kind: Picture) -> str:
    return {
        "number": "the value on a line with its interval",
        "bars": "bars with intervals",
        "histogram": "a histogram with intervals",
        "curve": "a curve with a band",
        "points": "points with intervals",
        "heatmap": "a heat map",
        "map": "a map",
        "crosstab": "a table with its totals",
        "lorenz": "Lorenz curves with bands",
        "regression": "a regression table",
        "survival": "survival curves with bands and numbers at risk",
        "tree": "a tree of conditions",
    }.get(kind, "a table")


def _view_marks(kind: Picture, view: ReleaseView, cells: Sequence[CellView]) -> tuple[str, ...]:
    if kind == "multiples" and len(view.columns) == 2 and _function(view):
        return _marks("curve", cells)
    marks = _marks(kind, cells, tables=_margins(view))
    if kind == "heatmap" and view.kind == SYNTHETIC:
        return ("bounds",)
    if kind == "map":
        marks = ("heat", *(["either"] if _signs(view) and any(map(holds_zero, cells)) else []))
    return marks


def _marks(kind: Picture, cells: Sequence[CellView], *, tables: bool = False) -> tuple[str, ...]:
    if kind in ("table", "regression"):
        return ()
    if kind == "tree":
        return ("share",)
    if kind in ("survival", "lorenz"):
        return ("line", "band")
    if kind == "crosstab":
        return ("starred",) if any(c.flag in (NOISY, ABSENT) for c in cells) else ()
    first = {
        "number": "dot", "points": "dot", "curve": "line", "heatmap": "heat", "map": "heat",
        "multiples": "bar" if tables else "heat",
    }  # fmt: skip
    marks = [first.get(kind, "bar")]
    lines = tables or kind in ("number", "bars", "histogram", "curve", "points")
    if lines and any(c.low is not None for c in cells):
        marks.append("band" if kind == "curve" else "whisker")
    if kind not in ("number", "curve", "points") and any(c.flag == NOISY for c in cells):
        marks.append("hatch")
    if kind in ("heatmap", "multiples") and any(c.flag == ABSENT for c in cells):
        marks.append("empty")
    if lines and any(c.truth is not None for c in cells):
        few = kind == "points" or (kind == "curve" and len(cells) <= 40)
        marks.append("truth" if few else "truth-line" if kind in ("histogram", "curve") else "truth-below")
    return tuple(marks)
