"""`report.html`: one file that needs no network and no script, for a screen, a phone, and paper.

It is a function of the view alone: the same view gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from tacit.guarantees import theorem
from tacit.guarantees.theorems import Standing
from tacit.report.budget import budget_section
from tacit.report.markup import Markup, file_link, join, tag
from tacit.report.numbers import three
from tacit.report.releases import (
    TRUTH_WORDS,
    anchor,
    flag_pill,
    heading_words,
    release_section,
)
from tacit.report.style import style_sheet
from tacit.report.view import ReleaseView, ReportView

__all__ = ["report_html", "write_report"]


def report_html(view: ReportView) -> str:
    """The whole page as text."""
    count = len(view.releases)
    sections = [release_section(r, k, count) for k, r in enumerate(view.releases, start=1)]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="tacit"),
        tag("title", view.title),
        tag("style", Markup(style_sheet())),
    )
    body = tag(
        "body",
        tag("a", "To the releases", href="#releases", class_="skip"),
        _top(view),
        tag(
            "main",
            budget_section(view),
            _glance(view),
            tag("section", sections, id="releases", aria_label="Releases"),
            _methods(view),
            _notes(view),
        ),
        _footer(view),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def write_report(view: ReportView, path: Path) -> None:
    """The page as a file, in UTF-8. The caller decides how it is moved into place."""
    path.write_text(report_html(view), encoding="utf-8")


def _top(view: ReportView) -> Markup:
    when = view.made_at.strftime("%d %B %Y, %H:%M").lstrip("0")
    zone = view.made_at.strftime(" %Z").rstrip()
    banner = None
    if view.synthetic:
        words = TRUTH_WORDS.partition(": ")[2]
        banner = tag("p", tag("strong", "Synthetic. "), words[0].upper() + words[1:], ".", class_="banner")
    moment = tag("time", when + zone, datetime=view.made_at.isoformat())
    return tag(
        "header",
        tag("h1", view.title),
        tag("p", view.condition, class_="condition") if view.condition else None,
        tag("p", view.unit_sentence, class_="lead"),
        tag("p", "Made on ", moment, class_="when"),
        banner,
        class_="top",
    )


def _glance(view: ReportView) -> Markup | None:
    if not view.releases:
        return None
    heads = [tag("th", words, scope="col") for words in ("Release", "Price")]
    heads += [tag("th", "Typical interval", scope="col", class_="n wide")]
    heads += [tag("th", "Times the best possible", scope="col", class_="n wide")]
    heads += [tag("th", "Quality", scope="col")]
    rows = [_glance_row(r) for r in view.releases]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="glance")
    note = "Numbers are rounded to three significant digits, or to as many as their interval needs; "
    note += "ends of intervals are rounded outwards. The files beside this page carry everything."
    return tag(
        "section",
        tag("h2", "At a glance", id="glance"),
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_labelledby="glance"),
        tag("p", note, class_="quiet-words"),
        class_="card",
        aria_labelledby="glance",
    )


def _glance_row(view: ReleaseView) -> Markup:
    width = view.typical_width
    interval = "none" if width is None else f"±\u00a0{three(width)}"
    ratio = three(view.ratio) if view.ratio is not None else "not known"
    pills = [
        tag("span", flag_pill(view, id), f" {n:,} of {view.total:,}", class_="flagged")
        for id, n in view.flag_counts.items()
    ]
    return tag(
        "tr",
        tag("th", tag("a", heading_words(view.title), href=f"#{anchor(view.name)}"), scope="row"),
        tag("td", view.price, class_="num price"),
        tag("td", interval, class_="n num wide"),
        tag("td", ratio, class_="n num wide"),
        tag("td", pills or "all cells good"),
        data_certificate=view.certificate,
    )


def _methods(view: ReportView) -> Markup | None:
    if not view.theorems:
        return None
    parts = []
    for id in view.theorems:
        known = theorem(id)
        standing = {
            Standing.AS_PRINTED: "as in the source",
            Standing.CORRECTED: "corrected: the source is wrong as printed",
            Standing.SHARPER: "sharper than the source",
        }[known.standing]
        used = [r for r in view.releases if id in r.theorems]
        links = [
            join(
                tag("a", heading_words(r.title), href=f"#{anchor(r.name)}"), "; " if r is not used[-1] else ""
            )
            for r in used
        ]
        parts.append(
            tag(
                "section",
                tag("h3", id),
                tag("p", known.statement),
                tag("p", f"Assumes: {known.assumptions}.", class_="quiet-words"),
                tag("p", f"Source: {known.source} ({standing}).", class_="quiet-words"),
                tag("p", "Used by: ", links, class_="quiet-words") if links else None,
                class_="theorem",
                id=f"theorem-{id}",
            )
        )
    intro = "Every guarantee on this page follows from the theorems below; their proofs are in docs/theory, by id."
    return tag(
        "section",
        tag("h2", "Methods", id="methods"),
        tag("p", intro, class_="question"),
        parts,
        class_="card",
        aria_labelledby="methods",
    )


def _notes(view: ReportView) -> Markup | None:
    if not view.notes and not view.files:
        return None
    parts: list[Markup] = []
    if view.notes:
        parts += [tag("h2", "Notes", id="notes"), tag("ul", [tag("li", n) for n in view.notes])]
    if view.files:
        listed = [tag("li", file_link(name), f" — {words}") for name, words in view.files]
        parts += [tag("h2", "Files"), tag("ul", listed)]
    return tag("section", parts, class_="card")


def _footer(view: ReportView) -> Markup:
    text = (
        "Intervals tell what the added noise does; they do not contain sampling error, or what clamping values to "
        "their declared bounds does, unless an assumption above says so."
    )
    return tag("footer", tag("p", text))
