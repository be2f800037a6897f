"""Plans and releases as text for a terminal and as HTML for a notebook: as many digits as a reader can use."""

from __future__ import annotations

import datetime
import html
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.curator.figures import figures, outwards
from tacit.curator.parts import alone, together
from tacit.curator.quality import GOOD, WORDS, rule_of
from tacit.errors import visible
from tacit.guarantees import Always, BoundedAdversary, Priors, RandomData
from tacit.guarantees.conditions import told_gamma
from tacit.statistics.sensitivity import group_limit

if TYPE_CHECKING:
    from tacit.curator.plan import Plan
    from tacit.curator.release import Release
    from tacit.guarantees import Guarantee
    from tacit.statistics.base import Question

__all__ = ["beyond_groups", "digits", "plan_html", "plan_text", "release_html", "release_text"]

SHOWN = 20
LONGEST_KEY = 80
GOOD_WORD = WORDS[GOOD]
ENDS = ("value", "low", "high")


def digits(value: Any) -> str:
    """A number for people."""
    if value is None:
        return "–"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    number = float(value)
    if not np.isfinite(number):
        return {np.inf: "∞", -np.inf: "-∞"}.get(number, "none")
    if abs(number) >= 999.5:
        scale = 10 ** (int(np.floor(np.log10(abs(number)))) - 2)
        return f"{int(round(number / scale) * scale):,}"
    return f"{number:.3g}"


def beyond_groups(question: Question) -> str:
    """Which rows a limit on groups leaves out of this question; nothing where it leaves out none."""
    if not question.limited:
        return ""
    most, keys = group_limit(question.unit, None), " x ".join(question.limited)
    return f"rows of a person beyond {most} {'group' if most == 1 else 'groups'} of {keys}"


def priced(guarantee: Guarantee) -> str:
    """A bound, and its gamma where it holds on random data only."""
    condition = guarantee.condition
    gamma = f", gamma = {told_gamma(condition.gamma)}" if isinstance(condition, RandomData) else ""
    return f"{guarantee.bound}{gamma}"


def _conditional(guarantee: Guarantee) -> list[str]:
    """What must stand beside a bound that does not hold always."""
    if isinstance(guarantee.condition, Always):
        return []
    if isinstance(guarantee.condition, Priors):
        return [
            f"EXACT, and not differential privacy: it holds {guarantee.condition}",
            *(f"assumed: {d}" for d in guarantee.declared),
            "if that is wrong, nothing is promised",
        ]
    if isinstance(guarantee.condition, BoundedAdversary):
        return [
            f"computational differential privacy: it holds {guarantee.condition}",
            *(f"assumed: {d}" for d in guarantee.declared),
        ]
    return [
        f"random differential privacy, not differential privacy: it holds {guarantee.condition}",
        "not protected is whoever stands out: an outlier, the only inhabitant of a cell",
    ]


def _plan_rows(plan: Plan) -> list[list[str]]:
    rows = []
    for r, own in zip(plan.releases, alone(plan, plan.budget), strict=True):
        error = "–" if r.expected.within is None else f"± {digits(r.expected.within)}"
        floor = digits(r.expected.floor) if r.expected.floor is not None else "–"
        mean = digits(r.expected.mean) if r.expected.mean is not None else "–"
        cells = "unknown" if r.question.numbers is None else f"{r.question.numbers:,}"
        rows.append([r.name, cells, priced(r.guarantee), str(own), error, mean, floor, r.treatment.reason])
    return rows


HEADINGS = [
    "release",
    "cells",
    "price",
    "of the budget",
    "error (95%)",
    "mean error",
    "no mechanism below",
    "noise",
]


def _of_budget(plan: Plan) -> str:
    part = together(plan, plan.budget)
    return priced(plan.charge) + (f" ({part})" if part.parts is not None else "")


def plan_text(plan: Plan) -> str:
    """A plan as aligned lines."""
    rows = [HEADINGS[:-1], *(r[:-1] for r in _plan_rows(plan))]
    lines: list[str] = []
    for r in plan.releases:
        lines.append(f"{r.name}: {r.treatment.reason}; error: {r.expected.about}")
        if left_out := beyond_groups(r.question):
            lines.append(f"{r.name}: {left_out} are not used")
        if r.expected.floor_reason:
            lines.append(f"{r.name}: {r.expected.floor_reason}")
    lines.append(
        f"together: {_of_budget(plan)}, for {plan.unit} (by {', '.join(plan.theorems)}); nothing was read"
    )
    lines += _conditional(plan.charge)
    return "\n".join([*_aligned(rows), *map(visible, lines)])


def plan_html(plan: Plan) -> str:
    """A plan as an HTML table."""
    foot = "; ".join([f"together: {_of_budget(plan)}, for {plan.unit}", *_conditional(plan.charge)])
    return _html(HEADINGS, _plan_rows(plan), foot)


def _release_rows(release: Release) -> tuple[list[str], list[list[str]]]:
    columns = release.columns
    names = list(columns)
    count = len(columns["value"])
    rows = []
    for i in range(min(count, SHOWN)):
        told = {n: _key(columns[n][i]) for n in names if n not in ENDS}
        told |= zip(ENDS, _with_ends(*(columns[n][i] for n in ENDS)), strict=True)
        rows.append([told[n] for n in names])
    flagged = release.quality
    if any(word != GOOD_WORD for word in flagged):
        names, rows = [*names, "quality"], [[*r, word] for r, word in zip(rows, flagged, strict=False)]
    return names, rows


def _with_ends(value: Any, low: Any, high: Any) -> tuple[str, str, str]:
    """A value and its interval: whole numbers and days as they are, others so that they can be told apart."""
    if not all(isinstance(v, float) for v in (value, low, high)):
        return digits(value), digits(low), digits(high)
    if not all(map(math.isfinite, (value, low, high))):
        return digits(value), digits(outwards(low, math.floor)), digits(outwards(high, math.ceil))
    first, *ends = (text.replace("−", "-") for text in figures(value, low, high))
    return first, ends[0], ends[1]


def _key(value: Any) -> str:
    """A key of any length, cut where a line would be all of it; the files have it whole."""
    text = str(value)
    return text if len(text) <= LONGEST_KEY else text[:LONGEST_KEY] + "..."


def _quality(release: Release) -> list[str]:
    """How many cells carry each word, and the rule; nothing where all are good."""
    words = release.quality
    told = [
        f"{words.count(w):,} of {len(words):,} {w}" for w in WORDS.values() if w in words and w != GOOD_WORD
    ]
    return [f"quality: {'; '.join(told)}. {rule_of(release).sentence}"] if told else []


def _foot(release: Release) -> list[str]:
    count = len(release.columns["value"])
    more = [f"and {count - SHOWN:,} more"] if count > SHOWN else []
    said = [f"{release.name}: {correction}" for correction in release.corrections]
    price = f"price: {priced(release.guarantee)}" + (
        "; answered from the record, free" if release.replayed else ""
    )
    spent, rest = release.standing
    left = f"spent so far: {priced(spent)}; left: {priced(rest)}"
    if release.joint:
        left = f"charged at every holder: {priced(spent)}; what is left stands in its own ledger"
    told = release.statement.get("random_data")
    given = [told["sentence"], *_conditional(release.guarantee)] if told else []
    if isinstance(release.guarantee.condition, Priors | BoundedAdversary):
        given = _conditional(release.guarantee)
    level = float(release.planned.ask.confidence)
    sampled = release.planned.ask.sampling
    about = "for the population, if the rows are independent draws" if sampled else "for the noise only"
    if release.planned.question.statistic.fits in ("clamping bounds", "thresholds"):
        about += f"; they cover {release.planned.treatment.covers}"
    given = [*given, *(f"known to the ledger: {d}" for d in release.data.get("seen", ()))]
    return [
        *more,
        *map(_loud, said),
        *_quality(release),
        *given,
        f"intervals: {level:.0%}, {about}",
        price,
        left,
    ]


def _loud(sentence: str) -> str:
    return f"IT DOES NOT STAND ANY MORE. {sentence}"


def release_text(release: Release) -> str:
    """A release as aligned lines."""
    names, rows = _release_rows(release)
    return "\n".join([release.name, *_aligned([names, *rows]), *map(visible, _foot(release))])


def release_html(release: Release) -> str:
    """A release as an HTML table."""
    names, rows = _release_rows(release)
    return _html(names, rows, "; ".join(_foot(release)))


def _aligned(rows: list[list[str]]) -> list[str]:
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _html(names: list[str], rows: list[list[str]], foot: str) -> str:
    head = "".join(f"<th>{_safe(n)}</th>" for n in names)
    body = "".join("<tr>" + "".join(f"<td>{_safe(c)}</td>" for c in r) + "</tr>" for r in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{_safe(foot)}</p>"


def _safe(text: str) -> str:
    return html.escape(visible(text))
