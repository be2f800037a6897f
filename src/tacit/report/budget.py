"""The budget: what may be spent, what each release took of it, what is left."""

from __future__ import annotations

import math

from tacit.report.markup import Markup, join, picture, tag
from tacit.report.numbers import percent, three
from tacit.report.releases import anchor, certificate_link, heading_words
from tacit.report.view import BudgetView, ReportView

__all__ = ["budget_bar", "budget_section"]

TOP, BAR = 4, 30


def budget_section(view: ReportView) -> Markup:
    """The bar, its words, and the parts as a table."""
    budget = view.budget
    return tag(
        "section",
        tag("h3", "The budget", id="budget"),
        tag("p", f"In {budget.kind}.", class_="question"),
        budget_bar(view),
        _words(budget),
        _meaning(budget),
        _parts(view),
        class_="budget-part",
        aria_labelledby="budget",
        data_certificate="the ledger",
    )


def shares(budget: BudgetView) -> list[float]:
    """How the width of what these releases spent together is divided: by what each costs alone."""
    alone = sum(p.amount for p in budget.parts)
    now = budget.spent - budget.earlier
    return [p.amount / alone * now / budget.total if alone > 0 else 0.0 for p in budget.parts]


def budget_bar(view: ReportView) -> Markup:
    """One bar from nothing to the whole budget."""
    budget = view.budget
    titles = {r.name: r.title for r in view.releases}
    parts: list[Markup] = [tag("rect", x=0, y=TOP, width="100%", height=BAR, rx=4, class_="left")]
    at = 0.0
    pieces = [("spent on other releases", budget.earlier / budget.total, "earlier")] if budget.earlier else []
    for k, (part, share) in enumerate(zip(budget.parts, shares(budget), strict=True)):
        pieces.append((titles[part.release], share, "spent" if k % 2 == 0 else "spent-b"))
    if not budget.parts:
        pieces.append(("spent", (budget.spent - budget.earlier) / budget.total, "spent"))
    for name, share, kind in pieces:
        box = {"x": f"{100 * at:.3f}%", "y": TOP, "width": f"{100 * share:.3f}%", "height": BAR}
        parts.append(tag("rect", tag("title", name), **box, class_=kind))
        at += share
    spent = budget.spent / budget.total
    parts.append(tag("text", f"{percent(spent)} spent", x=0, y=TOP + BAR + 18, class_="tick num"))
    left = f"{percent(max(0.0, 1 - spent))} left"
    parts.append(tag("text", left, x="100%", y=TOP + BAR + 18, text_anchor="end", class_="tick num"))
    told = (
        f"{percent(spent)} of the budget is spent, in {len(budget.parts)} releases"
        f"{' and on others' if budget.earlier else ''}; the table below has each of them."
    )
    return picture(
        "budget-bar", "How much of the budget is spent", told, TOP + BAR + 26, parts, class_="budget"
    )


def _words(budget: BudgetView) -> Markup:
    entries = [
        ("Whole budget", budget.total_words), ("Spent", budget.spent_words), ("Left", budget.remaining_words),
    ]  # fmt: skip
    rows = [tag("div", tag("dt", name), tag("dd", words, class_="num")) for name, words in entries]
    return tag("dl", rows, class_="facts three")


def _meaning(budget: BudgetView) -> Markup | None:
    if not budget.meaning:
        return None
    return tag(
        "div",
        tag("h4", "What all of it together means"),
        [tag("p", sentence) for sentence in budget.meaning],
        class_="words",
    )


def _parts(view: ReportView) -> Markup | None:
    budget = view.budget
    if not budget.parts:
        return None
    alone = math.fsum(p.amount for p in budget.parts)
    now = budget.spent - budget.earlier
    releases = {r.name: r for r in view.releases}
    rows = []
    for part, share in zip(budget.parts, shares(budget), strict=True):
        release = releases[part.release]
        rows.append(
            tag(
                "tr",
                tag(
                    "th", tag("a", heading_words(release.title), href=f"#{anchor(part.release)}"), scope="row"
                ),
                tag("td", part.words, class_="num"),
                tag("td", percent(share), class_="n num"),
                tag("td", certificate_link(release), class_="wide"),
            )
        )
    heads = [tag("th", "Release", scope="col"), tag("th", "Price alone", scope="col")]
    heads += [
        tag("th", "Share of the budget", scope="col", class_="n"),
        tag("th", "From", scope="col", class_="wide"),
    ]
    note = None
    if alone > now * (1 + 1e-6):
        note = tag(
            "p",
            join(
                f"One by one the releases would cost {three(alone)}; accounted together they cost {three(now)}. "
                "The shares divide what they cost together by what each costs alone."
            ),
            class_="quiet-words",
        )
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="glance")
    return tag("details", tag("summary", "What each release took"), note, table)
