"""One release on the page: what it found, its picture, its quality, and the numbers as a table."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from tacit.curator.quality import ABSENT, CARE, GOOD, NOISY, WORDS
from tacit.report.findings import finding
from tacit.report.legend import legend
from tacit.report.markup import Markup, file_link, ident, join, tag
from tacit.report.numbers import key_place, key_words, percent
from tacit.report.pictures.choose import Drawn, draw
from tacit.report.view import Cell, ReleaseView

__all__ = ["anchor", "certificate_link", "flag_pill", "heading_words", "release_section"]

COUNTS = ("count", "margins", "sparse histogram")
ALIKE = 1.2
"""Bins whose widths differ by less than a fifth, as months do, pass for equally wide."""
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
            parts.append(tag("p", f"{percent(view.confidence)} interval for the noise: ", ends))
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
        parts += [drawn.markup, legend(view.name, drawn.marks, view.confidence)]
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
    """That counts of bins do not compare, where bins are not equally wide; bars and cells are drawn equally wide."""
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
    return f"Shown: the largest {len(drawn.cells)} of {view.total:,} cells, and {left:,} more {where}. "


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
    return tag("p", told, tag("a", "What these words mean", href="#reading"), class_="quality")


def flag_pill(view: ReleaseView, id: str) -> Markup:
    """A flag's label; the words carry it, the colour only helps."""
    label = next(f.label for f in view.flags if f.id == id)
    kind = id if id in (CARE, NOISY, ABSENT) else "other"
    return tag("span", label, class_=f"pill {kind}")


def _numbers(view: ReleaseView, drawn: Drawn) -> Markup | None:
    if drawn.markup is None:
        return None
    shown = f"{len(drawn.cells):,} row{'s' if len(drawn.cells) != 1 else ''}"
    return tag("details", tag("summary", f"The numbers as a table ({shown})"), _table(view, drawn.cells))


def _table(view: ReleaseView, cells: Sequence[Cell]) -> Markup:
    truth, flagged = view.shows_truth, bool(view.flag_counts)
    heads = [tag("th", name, scope="col") for name in view.columns]
    wanted = ["value", "low", "high", *(["truth"] if truth else [])]
    heads += [tag("th", name, scope="col", class_="n") for name in wanted]
    heads += [tag("th", "quality", scope="col")] if flagged else []
    rows = [tag("tr", _row(view, cell, truth, flagged)) for cell in cells]
    caption = f"{view.title}. Interval: {percent(view.confidence)}, for the noise. From {view.certificate}."
    table = tag(
        "table", tag("caption", caption), tag("thead", tag("tr", heads)), tag("tbody", rows), class_="values"
    )
    return tag(
        "div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Values of {view.title}"
    )


def _row(view: ReleaseView, cell: Cell, truth: bool, flagged: bool) -> list[Markup]:
    told = cell.figures
    parts = [tag("th", key_words(key), scope="row") for key in cell.keys]
    parts += [tag("td", words, class_="n num") for words in told]
    if truth:
        words = cell.truth_words
        parts.append(tag("td", words, class_="n num truth-cell"))
    if flagged:
        parts.append(tag("td", flag_pill(view, cell.flag) if cell.flag else WORDS[GOOD]))
    return parts
