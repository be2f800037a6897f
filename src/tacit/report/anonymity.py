"""The page of `tacit check`: the exposure in a table.
It holds exact numbers about people, and is not for publication."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.anonymity import Checked, Property
from tacit.curator.text import three
from tacit.errors import visible
from tacit.report.page import style_sheet
from tacit.report.view import Markup, tag

WARNING = "Not for publication. The numbers on this page are exact and have no protection."
STEPS = (1, 2, 3, 5, 10, 20, 50, 100, 1000)


def check_html(checked: Checked, *, attacks: Sequence[Mapping[str, Any]] = ()) -> str:
    """The whole page as text; `attacks` are the findings of attacks on the table, as plain data."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="robots", content="noindex"),
        tag("meta", name="generator", content="tacit"),
        tag("title", f"Not for publication: what {Path(checked.source).name} exposes"),
        tag("style", Markup(style_sheet())),
    )
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", f"What {Path(checked.source).name} exposes"),
            tag(
                "p",
                f"{checked.rows:,} rows; quasi-identifiers: {', '.join(checked.quasi)}.",
                class_="lead",
            ),
            tag("p", tag("strong", WARNING), class_="banner"),
            class_="top",
        ),
        tag(
            "main",
            _wrong(checked),
            _sizes(checked),
            _risk(checked),
            [_learned(s.column, s.distance, s.properties) for s in checked.sensitive],
            _attacks(attacks),
            _identifiers(checked),
        ),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def write_check(checked: Checked, path: Path, *, attacks: Sequence[Mapping[str, Any]] = ()) -> None:
    """The page as a file, in UTF-8."""
    path.write_text(check_html(checked, attacks=attacks), encoding="utf-8")


def _card(title: str, *parts: Any) -> Markup:
    return tag("section", tag("h2", title), *parts, class_="card")


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    top = tag("tr", [tag("th", h, scope="col") for h in heads])
    made = [
        tag("tr", tag("th", row[0], scope="row"), [tag("td", cell, class_="num") for cell in row[1:]])
        for row in rows
    ]
    table = tag("table", tag("thead", top), tag("tbody", made), class_="glance")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=heads[0])


def shown(value: Any) -> str:
    """A value for people: three digits, whole numbers as they are."""
    if isinstance(value, tuple):
        return " to ".join(shown(v) for v in value)
    if isinstance(value, float):
        return "none (infinite)" if math.isinf(value) else three(value)
    return f"{value:,}"


def _wrong(checked: Checked) -> Markup:
    return _card("What is wrong with it", tag("ul", [tag("li", p) for p in checked.problems]))


def _sizes(checked: Checked) -> Markup:
    rows = []
    for low, high in zip(STEPS, (*STEPS[1:], None), strict=True):
        inside = {s: n for s, n in checked.sizes.items() if s >= low and (high is None or s < high)}
        if not inside:
            continue
        words = (
            f"{low:,} or more"
            if high is None
            else f"{low:,}"
            if high == low + 1
            else f"{low:,} to {high - 1:,}"
        )
        people = sum(s * n for s, n in inside.items())
        rows.append((words, f"{sum(inside.values()):,}", f"{people:,}", f"{people / checked.rows:.1%}"))
    intro = "Rows that agree in all quasi-identifiers form a class. A missing value is a value of its own."
    return _card(
        f"{checked.classes:,} classes, the smallest of {checked.k:,}",
        tag("p", intro, class_="question"),
        _table(("Size of a class", "Classes", "Rows", "Share of rows"), rows),
    )


def _risk(checked: Checked) -> Markup:
    rows = [("prosecutor (knows that her target is in the table)", checked.prosecutor)]
    if checked.journalist is not None:
        rows.append(("journalist (knows the population)", checked.journalist))
    made = [(words, three(r.highest), three(r.average), f"{r.at_risk:.1%}") for words, r in rows]
    heads = (
        "Attacker",
        "Highest chance",
        "Average: the marketer's share",
        f"Rows above 1/{checked.threshold}",
    )
    parts: list[Any] = [_table(heads, made)]
    more = [p for p in checked.properties if p.name != "k-anonymity"]
    if more:
        parts.append(_properties(more))
    words = f"{checked.sample_uniques:,} rows are unique in the table."
    for one in checked.uniques:
        words += (
            f" By the estimator of {one.estimator.capitalize()}, {three(one.population)} of {one.people:,} people are"
            f" unique in the population; a unique row is one of them with probability {three(one.right)}."
        )
    if checked.uniques:
        words += " Estimates rest on the table being a simple random sample of the population."
    return _card("Who can be found", *parts, tag("p", words, class_="words"))


def _properties(properties: Sequence[Property]) -> Markup:
    return _table(
        ("Property", "Value", "Less is exposed if", "What it says"),
        [(p.name, shown(p.value), p.better, p.says) for p in properties],
    )


def _learned(column: str, distance: str, properties: Sequence[Property]) -> Markup:
    note = f"The distance of t-closeness is {distance}. None of these is a guarantee, and none composes; they say "
    note += f"{properties[0].silent}."
    return _card(
        f"What is learned of {column}", _properties(properties), tag("p", note, class_="quiet-words")
    )


def _attacks(attacks: Sequence[Mapping[str, Any]]) -> Markup | None:
    if not attacks:
        return None
    rows = [(a["attack"], a["exposed"], visible(a["learned"]), a["guessing"]) for a in attacks]
    return _card("Attacks that work", _table(("Attack", "Exposed", "Learned", "Guessing alone"), rows))


def _identifiers(checked: Checked) -> Markup:
    found = [tag("li", f.describe()) for f in checked.identifiers]
    words = (
        "Findings by name, type and pattern. A column that is not listed may identify people all the same."
    )
    return _card(
        "Columns that look like identifiers",
        tag("p", words, class_="question"),
        tag("ul", found) if found else tag("p", "None was found."),
    )
