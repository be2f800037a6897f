"""One release on the page: its finding, its picture, its quality, and the numbers as a table."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from tacit.curator.cells import ABSENT, CARE, GOOD, NOISY, UNJUDGED, WORDS
from tacit.curator.text import figures
from tacit.report.pictures import GEOGRAPHY, MODELS, Drawn, draw
from tacit.report.statistic_pictures import (
    CALIBRATED,
    INEQUALITY,
    REGRESSION,
    calibrated_finding,
    crosstab_finding,
    fits_a_crosstab,
    inequality_finding,
    survival_finding,
)
from tacit.report.view import (
    CellView,
    Markup,
    ReleaseView,
    file_link,
    ident,
    join,
    key_place,
    key_words,
    percent,
    tag,
)

# What the marks of a picture mean, each beside a small drawing of itself.


def legend(id: str, marks: Sequence[str], confidence: float, covers: str = "the noise") -> Markup | None:
    """One entry a mark."""
    words = {
        "dot": "released value",
        "bar": "released value",
        "line": "released value",
        "heat": "released value, darker or lighter by size",
        "bounds": f"total variation at most, for all margins at once with {percent(confidence)} confidence",
        "whisker": f"{percent(confidence)} interval for {covers}",
        "band": f"{percent(confidence)} interval for {covers}",
        "hatch": "too noisy to use",
        "either": "either class: the interval holds 0",
        "empty": "no value",
        "starred": "too noisy to use",
        "share": "share of the most frequent class in a leaf, from its noisy counts",
        "truth": "the truth (synthetic data)",
        "truth-line": "the truth (synthetic data)",
        "truth-below": "the truth (synthetic data)",
    }
    entries = [tag("li", _sample(id, mark, words[mark]), words[mark]) for mark in marks]
    return tag("ul", entries, class_="legend") if entries else None


def _sample(id: str, mark: str, words: str) -> Markup:
    shapes = {
        "dot": tag("circle", cx=10, cy=7, r=5, class_="dot"),
        "bar": tag("rect", x=0, y=2, width=20, height=10, class_="bar"),
        "line": tag("path", d="M0 10 7 4 13 8 20 3", class_="line"),
        "heat": [tag("rect", x=7 * k, y=2, width=6, height=10, class_=f"heat-{2 * k + 1}") for k in range(3)],
        "bounds": [
            tag("rect", x=7 * k, y=2, width=6, height=10, class_=f"heat-{2 * k + 1}") for k in range(3)
        ],
        "whisker": tag("path", d="M1 7H19M1 3V11M19 3V11", class_="whisker"),
        "band": tag("rect", x=0, y=2, width=20, height=10, class_="band"),
        "hatch": [
            tag("rect", x=0, y=2, width=20, height=10, class_="hatch-ground"),
            tag("path", d="M2 12 12 2M8 12 18 2M14 12 20 6M0 8 6 2", class_="hatch-line"),
        ],
        "either": [
            tag("rect", x=0, y=2, width=20, height=10, class_="heat-3"),
            tag("path", d="M2 12 12 2M8 12 18 2M14 12 20 6M0 8 6 2", class_="hatch-line"),
        ],
        "starred": tag("text", "*", x=6, y=14, class_="label"),
        "share": [
            tag("rect", x=0, y=3, width=12, height=8, class_="bar"),
            tag("rect", x=12, y=3, width=8, height=8, class_="band"),
        ],
        "empty": tag("rect", x=1, y=2, width=18, height=10, class_="empty"),
        "truth": tag("path", d="M10 1.5 15.5 7 10 12.5 4.5 7Z", class_="truth"),
        "truth-line": tag("path", d="M0 7H20", class_="truth-line"),
        "truth-below": tag("path", d="M10 3 15 10.5 5 10.5Z", class_="truth-below"),
    }
    return tag("svg", tag("title", f"Mark: {words}"), tag("desc", words), shapes[mark], role="img")


# What a release found, in a sentence: released values with their intervals, and whether the noise tells them apart.

FUNCTIONS = ("classifier", "density", "regression function")


def _regression(view: ReleaseView) -> str:
    """The coefficients whose intervals contain 0."""
    found = [c for c in view.cells if c.keys[-1] == "coefficient" and c.value is not None]
    if not found:
        return "There is no table: at this price the noise hides whether the columns have one solution."
    slopes = found[1:]
    clear = [c for c in slopes if c.low is not None and c.high is not None and not c.low <= 0 <= c.high]
    told = [f"{c.keys[0]} {c.figures.value} ({c.figures.interval})" for c in clear]
    rest = len(slopes) - len(clear)
    if not told:
        return "Every interval of a slope holds 0: no column shows an effect at this price."
    more = f" {rest} other intervals hold 0." if rest > 1 else " The other interval holds 0." if rest else ""
    return f"Slopes whose intervals do not hold 0: {'; '.join(told)}.{more}"


def _areas(view: ReleaseView, usable: Sequence[CellView]) -> str:
    """The number of all rows, and the fact that areas add up."""
    whole = [c for c in usable if c.keys[0] == "total" and set(c.keys[1:]) == {"all"}]
    counted = f"{whole[0].figures.value} rows in all ({whole[0].figures.interval}). " if whole else ""
    return f"{counted}{view.total:,} numbers; areas of every level add up."


def finding(view: ReleaseView) -> str:
    """A sentence or two for everybody; it leaves out cells that are too noisy to use."""
    usable = [c for c in view.cells if c.value is not None and c.flag not in (NOISY, ABSENT)]
    if not view.cells:
        return "No cell was published."
    if view.kind == REGRESSION:
        return _regression(view)
    if not usable:
        return "No value here can be used: the noise says more than the data."
    if view.kind == "synthetic table":
        return _synthetic(view)
    if view.kind == "density":
        return _peak(view, usable)
    if view.kind in FUNCTIONS:
        return "A function, shown at some of its points; the certificate has all of it."
    if fits_a_crosstab(view):
        return crosstab_finding(view)
    if view.kind == GEOGRAPHY:
        return _areas(view, usable)
    if view.kind == INEQUALITY and view.rest is None:
        return inequality_finding(view)
    if view.kind == CALIBRATED and view.rest is None:
        return calibrated_finding(view)
    if view.kind == "survival":
        return survival_finding(view)
    if view.tree:
        return "A tree: the conditions on the way to a leaf, and how many rows of each class the leaf holds."
    shares = all(len(c.keys) == 1 and isinstance(c.keys[0], float) for c in usable)
    if view.kind.startswith("quantile") and shares:
        return "; ".join(map(_quantile, usable)) + "."
    if len(usable) == 1 and not view.columns:
        return f"{_cell_text(usable[0])}."
    if len(usable) == 1:
        return f"Only {_cell_text(usable[0])} can be used."
    if view.kind in ("margins", "hierarchy", "clamping bounds"):
        return f"{view.total:,} values; the table below has all that are shown."
    most = max(usable, key=lambda c: c.value or 0.0)
    least = min(usable, key=lambda c: c.value or 0.0)
    if most.value == least.value:
        return f"All {len(usable):,} values are {most.figures.value}."
    told = f"Largest: {_cell_text(most)}. Smallest: {_cell_text(least)}."
    if len(usable) < view.total and view.rest is None:
        some = f"Of the {len(usable):,} of {view.total:,} that can be used"
        told = f"{some}: largest {_cell_text(most)}; smallest {_cell_text(least)}."
    elif view.rest is not None:
        return f"Largest: {_cell_text(most)}."
    if most.low is not None and least.high is not None and most.low <= least.high:
        told += " Their intervals overlap: the noise does not tell them apart."
    if most.flag == UNJUDGED:
        told += " Without intervals nobody can say whether the noise alone makes them differ."
    return told


def _peak(view: ReleaseView, usable: Sequence[CellView]) -> str:
    """The largest shown value of a density, its place, and the percentage of rows in a box of round sides there."""
    most = max(usable, key=lambda c: c.value or 0.0)
    told, columns = most.figures, [str(c) for c in view.columns]
    one = len(columns) == 1
    place = key_words(most.keys[0]) if one else ", ".join(
        f"{c} {key_words(k)}" for c, k in zip(columns, most.keys, strict=True)
    )  # fmt: skip
    unit = columns[0] if one else " and ".join(columns)
    said = (
        f"Of the shown points the density is largest at {place}: {told.value} ({told.interval}) "
        f"for each unit of {unit}"
    )
    return f"{said}{_share_of_rows(view, most)}. The certificate has the whole function."


def _share_of_rows(view: ReleaseView, most: CellView) -> str:
    """A density in words: about so many percent of the rows for each 1,000 of a column."""
    if most.value is None or most.low is None or most.high is None:
        return ""
    sides = []
    for axis, name in enumerate(view.columns):
        places = [float(k) for k in (c.keys[axis] for c in view.cells) if isinstance(k, int | float)]
        wide = max(places) - min(places) if places else 0.0
        if wide <= 0:
            return ""
        sides.append((10.0 ** math.floor(math.log10(wide / 20)), name))
    share = math.prod(side for side, _ in sides)
    told = figures(*(100 * share * v for v in (most.value, most.low, most.high)))
    each = " by ".join(f"{side:,g} of {name}" for side, name in sides)
    return f", or about {told.value}% ({told.interval}) of the rows for each {each}"


def _synthetic(view: ReleaseView) -> str:
    """Facts about the rows: the margin with the largest upper bound, and the meaning of the numbers."""
    known = [c for c in view.cells if c.value is not None and c.high is not None]
    if not known:
        return "Synthetic rows; no part of the price measured how far they are from the table."
    worst = max(known, key=lambda c: c.high or 0.0)
    name = ", ".join(key_words(k) for k in worst.keys)
    return (
        f"Synthetic rows, {len(known):,} margins checked. The numbers are total variations between rows and table: at "
        f"most {worst.high:.3f}, for {name}. No row is anybody's; do not use rows by more columns than were checked."
    )


def _cell_text(cell: CellView) -> str:
    told = cell.figures
    name = ", ".join(key_words(k) for k in cell.keys)
    ends = f" ({told.interval})" if cell.low is not None and cell.low != cell.high else ""
    return f"{name}, {told.value}{ends}" if name else f"{told.value}{ends}"


def _quantile(cell: CellView) -> str:
    share = cell.keys[0]
    told = cell.figures
    named = percent(share) if isinstance(share, float) else key_words(share)
    return f"{named} are below {told.value} ({told.interval})"


COUNTS = ("count", "margins", "sparse histogram")
ALIKE = 1.2
"""Bins whose widths differ by less than a fifth, as those of months do, count as equally wide."""
TRUTH_WORDS = "synthetic: the truth is shown only because this survey is public and made up"


def anchor(name: str) -> str:
    """The id of a release's section."""
    return f"release-{ident(name)}"


def heading_words(title: str) -> str:
    """A title with a capital; names such as pH keep theirs."""
    return title[:1].upper() + title[1:] if title[1:2].islower() else title


def certificate_link(view: ReleaseView) -> Markup:
    """The file that certifies the release's numbers."""
    return file_link(view.certificate)


def release_section(view: ReleaseView) -> Markup:
    """The section of one release: title, finding, picture, quality, and the numbers as a table."""
    drawn = draw(view)
    heading = f"{anchor(view.name)}-heading"
    return tag(
        "article",
        tag(
            "header",
            tag("h2", heading_words(view.title), id=heading),
            tag("p", view.question, class_="question"),
            tag("p", view.condition, class_="banner") if view.condition else None,
            [tag("p", tag("strong", words), class_="banner") for words in view.corrections],
            tag("p", finding(view), class_="finding"),
        ),
        _figure(view, drawn),
        _quality(view),
        tag("p", f"Not counted: {'; '.join(view.left_out)}.", class_="quiet-words")
        if view.left_out
        else None,
        _numbers(view, drawn),
        class_="card release",
        id=anchor(view.name),
        aria_labelledby=heading,
        data_certificate=view.certificate,
    )


def _figure(view: ReleaseView, drawn: Drawn) -> Markup:
    parts: list[Markup | None] = []
    if drawn.kind == "number":
        cell = drawn.cells[0]
        told = cell.figures
        unit = tag("small", f" {view.measure}") if view.measure else None
        parts.append(tag("p", tag("span", told.value, class_="num"), unit, class_="big"))
        if cell.low is not None:
            ends = tag("span", told.interval, class_="num")
            parts.append(tag("p", f"{percent(view.confidence)} interval for {view.covers}: ", ends))
        if cell.truth is not None:
            words = cell.truth_words
            parts.append(tag("p", "The truth: ", tag("span", words, class_="num"), class_="quiet-words"))
        if cell.flag:
            parts.append(tag("p", flag_pill(view, cell.flag)))
    elif view.measure:
        parts.append(tag("p", f"Unit: {view.measure}", class_="quiet-words"))
    if drawn.markup is None:
        parts.append(_table(view, drawn.cells))
    else:
        parts += [drawn.markup, legend(view.name, drawn.marks, view.confidence, view.covers)]
    if uneven := _widths(view):
        parts.append(tag("p", uneven, class_="quiet-words"))
    more = _more(view, drawn)
    place = "; it stands in the table" if drawn.kind in ("heatmap", "map", "multiples") else ""
    truth = f"{TRUTH_WORDS[0].upper()}{TRUTH_WORDS[1:]}{place}." if view.shows_truth else None
    files = join(" All values: ", file_link(view.values), ".") if view.values else None
    caption = tag("figcaption", more, "From the certificate ", certificate_link(view), ".", files)
    tall = drawn.kind in ("bars", "multiples", "table") and len(drawn.cells) > 16
    note = tag("figcaption", truth) if truth else None
    return tag("figure", parts, caption, note, class_="tall" if tall else None)


def _widths(view: ReleaseView) -> str:
    """Warns that counts of unequal bins do not compare. Bars and cells are drawn equally wide."""
    if view.kind not in COUNTS:
        return ""
    told = []
    for at, name in enumerate(view.columns):
        keys = [key for key in dict.fromkeys(c.keys[at] for c in view.cells) if isinstance(key, tuple)]
        ends = [(key_place(key[0]), key_place(key[1])) for key in keys]
        wide = [high - low for low, high in ends if low is not None and high is not None]
        if wide and max(wide) > ALIKE * min(wide):
            days = " days" if isinstance(keys[0][0], datetime.date) else ""
            told.append(f"{name} from {key_words(min(wide))} to {key_words(max(wide))}{days}")
    if not told:
        return ""
    return (
        f"The bins are not equally wide ({'; '.join(told)}): each number counts its bin, and is larger where the "
        "bin is wider. Divide by the widths before comparing."
    )


def _more(view: ReleaseView, drawn: Drawn) -> str:
    left = view.total - len(drawn.cells)
    if not left:
        return ""
    where = f"in {view.values}" if view.values else "in the file of values"
    first = "first" if view.kind in (GEOGRAPHY, *MODELS) else "largest"
    return f"Shown: the {first} {len(drawn.cells)} of {view.total:,} cells, and {left:,} more {where}. "


def _quality(view: ReleaseView) -> Markup:
    counts, total = view.flag_counts, view.total
    if not counts:
        said = "Quality: good." if total == 1 else f"Quality: all {total:,} good."
        return tag("p", said, class_="quality")
    told: list[Markup | str] = []
    for id, n in counts.items():
        told += [
            " " if told else "Quality: ",
            tag("span", flag_pill(view, id), f" {n:,} of {total:,}", class_="flagged"),
        ]
    return tag("p", told, " ", tag("a", "What these words mean", href="#reading"), class_="quality")


def flag_pill(view: ReleaseView, id: str) -> Markup:
    """A flag's label. The words are enough without the colour."""
    label = next(f.label for f in view.flags if f.id == id)
    kind = id if id in (CARE, NOISY, ABSENT) else "other"
    return tag("span", label, class_=f"pill {kind}")


def _numbers(view: ReleaseView, drawn: Drawn) -> Markup | None:
    if drawn.markup is None:
        return None
    shown = f"{len(drawn.cells):,} row{'s' if len(drawn.cells) != 1 else ''}"
    return tag("details", tag("summary", f"The numbers as a table ({shown})"), _table(view, drawn.cells))


def _table(view: ReleaseView, cells: Sequence[CellView]) -> Markup:
    truth, flagged = view.shows_truth, bool(view.flag_counts)
    heads = [tag("th", name, scope="col") for name in view.columns]
    wanted = ["value", "low", "high", *(["truth"] if truth else [])]
    heads += [tag("th", name, scope="col", class_="n") for name in wanted]
    heads += [tag("th", "quality", scope="col")] if flagged else []
    rows = [tag("tr", _row(view, cell, truth, flagged)) for cell in cells]
    caption = (
        f"{view.title}. Interval: {percent(view.confidence)}, for {view.covers}. From {view.certificate}."
    )
    table = tag(
        "table", tag("caption", caption), tag("thead", tag("tr", heads)), tag("tbody", rows), class_="values"
    )
    return tag(
        "div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Values of {view.title}"
    )


def _row(view: ReleaseView, cell: CellView, truth: bool, flagged: bool) -> list[Markup]:
    told = cell.figures
    parts = [tag("th", key_words(key), scope="row") for key in cell.keys]
    parts += [tag("td", words, class_="n num") for words in told]
    if truth:
        words = cell.truth_words
        parts.append(tag("td", words, class_="n num truth-cell"))
    if flagged:
        parts.append(tag("td", flag_pill(view, cell.flag) if cell.flag else WORDS[GOOD]))
    return parts
