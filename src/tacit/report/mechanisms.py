"""How the numbers were made: a line a release, then prices, errors, noise and theorems of each."""

from __future__ import annotations

from tacit.guarantees import theorem
from tacit.guarantees.theorems import Standing
from tacit.report.markup import Markup, file_link, ident, join, tag
from tacit.report.numbers import percent, three
from tacit.report.releases import anchor, certificate_link, flag_pill, heading_words
from tacit.report.view import ReleaseView, ReportView

__all__ = ["mechanisms"]


def mechanisms(view: ReportView) -> Markup | None:
    """The folded part for those who check: closed until it is opened."""
    if not view.releases:
        return None
    return tag(
        "details",
        tag("summary", tag("h2", "How the numbers were made", id="mechanisms")),
        _glance(view),
        [_facts(r) for r in view.releases],
        _methods(view),
        class_="card fold",
    )


def _glance(view: ReportView) -> Markup:
    heads = [tag("th", words, scope="col") for words in ("Release", "Price")]
    heads += [tag("th", "Typical interval", scope="col", class_="n wide")]
    heads += [tag("th", "Times the best possible", scope="col", class_="n wide")]
    heads += [tag("th", "Quality", scope="col")]
    rows = [_glance_row(r) for r in view.releases]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="glance")
    return join(
        tag("h3", "At a glance", id="glance"),
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_labelledby="glance"),
    )


def _glance_row(view: ReleaseView) -> Markup:
    width = view.typical_width
    interval = "none" if width is None else f"{_wide(view, width)} wide"
    ratio = three(view.ratio) if view.ratio is not None else "not known"
    pills = [
        tag("span", flag_pill(view, id), f" {n:,} of {view.total:,}", class_="flagged")
        for id, n in view.flag_counts.items()
    ]
    return tag(
        "tr",
        tag("th", tag("a", heading_words(view.title), href=f"#made-{ident(view.name)}"), scope="row"),
        tag("td", view.price, class_="num price"),
        tag("td", interval, class_="n num wide"),
        tag("td", ratio, class_="n num wide"),
        tag("td", pills or "good"),
        data_certificate=view.certificate,
    )


def _wide(view: ReleaseView, width: float) -> str:
    return three(width) + (" days" if any(c.days for c in view.cells) else "")


def _facts(view: ReleaseView) -> Markup:
    entries: list[tuple[str, Markup | str]] = [("Price", tag("span", view.price, class_="strong num"))]
    width = view.typical_width
    if width is not None:
        words = f"{_wide(view, width)} wide" + (", the median over the cells" if view.total > 1 else "")
        entries.append((f"Interval at {percent(view.confidence)}", tag("span", words, class_="num")))
    if view.expected_error is not None:
        entries.append(("Expected error", tag("span", three(view.expected_error), class_="num")))
    if view.lower_bound is not None:
        bound = tag("span", three(view.lower_bound), class_="num")
        entries.append(("No private mechanism can go below", bound))
    ratio: Markup | str = view.ratio_reason
    if view.ratio is not None:
        ratio = join(
            tag("span", three(view.ratio), class_="num"), " times the smallest possible error, at most"
        )
    entries.append(("Price of privacy", ratio))
    if view.mechanism:
        entries.append(("Mechanism", view.mechanism))
    if view.theorems:
        links = [tag("a", tag("code", id), href=f"#theorem-{id}") for id in view.theorems]
        entries.append(("Rests on", join(*_between(links))))
    entries.append(("Certificate", certificate_link(view)))
    if view.values:
        entries.append(("All values", file_link(view.values)))
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in entries]
    title = tag("a", heading_words(view.title), href=f"#{anchor(view.name)}")
    return tag(
        "section",
        tag("h3", title, id=f"made-{ident(view.name)}"),
        tag("dl", rows, class_="facts three"),
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
        parts.append(
            tag(
                "section",
                tag("h4", id),
                tag("p", known.statement),
                tag("p", f"Assumes: {known.assumptions}.", class_="quiet-words"),
                tag("p", f"Source: {known.source} ({standing}).", class_="quiet-words"),
                class_="theorem",
                id=f"theorem-{id}",
            )
        )
    intro = "Every guarantee on this page follows from the theorems below; their proofs are in docs/theory, by id."
    return join(tag("h3", "Methods", id="methods"), tag("p", intro, class_="question"), parts)


def _between(links: list[Markup]) -> list[Markup | str]:
    out: list[Markup | str] = []
    for link in links:
        out += [", ", link] if out else [link]
    return out
