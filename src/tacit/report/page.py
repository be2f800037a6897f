"""`report.html`: one file that needs no network and no script, for a screen, a phone, and paper.

Three readers, in this order: everybody (what was found, and what it says about them), the disclosure officer, and
whoever checks the mechanisms; the parts of the latter two are folded. It is a function of the view alone: the same
view gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from tacit.report.budget import budget_section
from tacit.report.markup import Markup, file_link, join, tag
from tacit.report.mechanisms import mechanisms
from tacit.report.numbers import percent
from tacit.report.releases import TRUTH_WORDS, release_section
from tacit.report.style import style_sheet
from tacit.report.view import ReportView

__all__ = ["report_html", "write_report"]


def report_html(view: ReportView) -> str:
    """The whole page as text."""
    sections = [release_section(r) for r in view.releases]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="tacit"),
        tag("title", view.title),
        tag("style", Markup(style_sheet())),
    )
    amount = "few" if len(sections) <= 2 else "some" if len(sections) <= 6 else "many"
    body = tag(
        "body",
        tag("a", "To the findings", href="#releases", class_="skip"),
        _top(view),
        tag(
            "main",
            tag("section", sections, id="releases", class_=amount, aria_label="Findings"),
            _reading(view),
            _about_you(view),
            _officer(view),
            mechanisms(view),
            _files(view),
        ),
        _footer(),
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
    named = [view.publisher, view.period, f"Contact: {view.contact}" if view.contact else ""]
    told = " · ".join(words for words in named if words)
    return tag(
        "header",
        tag("h1", view.title),
        tag("p", view.condition, class_="condition") if view.condition else None,
        tag("p", told, class_="lead") if told else None,
        tag("p", "Made on ", moment, class_="when"),
        banner,
        tag("p", tag("strong", view.withdrawn), class_="banner") if view.withdrawn else None,
        class_="top",
    )


def _reading(view: ReportView) -> Markup | None:
    """How to read the numbers: intervals and the words of quality, once for all of them."""
    if not view.releases:
        return None
    levels = sorted({r.confidence for r in view.releases})
    said = " or ".join(percent(level) for level in levels)
    first = (
        f"In brackets stands the interval ({said}) for the noise that was added: it does not contain sampling error, "
        "or what clamping values to their declared bounds does, unless the certificate says so. Numbers are rounded "
        "to three digits, or to as many as their interval needs, ends of intervals outwards; the files have all digits."
    )
    flags = {}
    for release in view.releases:
        for flag in release.flags:
            if flag.id in release.flag_counts:
                flags[flag.label, flag.explanation] = flag
    entries = [tag("li", tag("b", f.label), f": {f.explanation}.") for f in flags.values()]
    return tag(
        "section",
        tag("h2", "How to read these numbers", id="reading"),
        tag("p", first),
        tag("ul", entries) if entries else None,
        tag(
            "p",
            "Every number comes from the certificate of its release, in the folder of certificates beside this page.",
        ),
        class_="card words-card",
        aria_labelledby="reading",
    )


def _about_you(view: ReportView) -> Markup:
    return tag(
        "section",
        tag("h2", "What this says about you", id="about-you"),
        [tag("p", sentence) for sentence in view.about_you],
        [tag("p", words, class_="banner") for words in view.warnings],
        class_="card words-card",
        aria_labelledby="about-you",
        data_certificate="the ledger",
    )


def _officer(view: ReportView) -> Markup:
    parts = [
        tag("div", tag("h3", p.heading), [tag("p", sentence) for sentence in p.sentences])
        for p in view.officer
    ]
    return tag(
        "details",
        tag("summary", tag("h2", "For the disclosure officer", id="officer")),
        tag("p", view.unit_sentence),
        budget_section(view),
        tag("div", parts, class_="pair", data_certificate="the ledger") if parts else None,
        class_="card fold",
    )


def _files(view: ReportView) -> Markup | None:
    if not view.files:
        return None
    listed = [tag("li", file_link(name), f": {words}") for name, words in view.files]
    return tag("section", tag("h2", "Files"), tag("ul", listed), class_="card files")


def _footer() -> Markup:
    text = "Made with tacit; tacit verify tells whether this page and the files beside it are as they were written."
    return tag("footer", join(tag("p", text)))
