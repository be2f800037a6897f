"""Plans and releases as text for a terminal and as HTML for a notebook, with as many digits as a reader can use."""

from __future__ import annotations

import datetime
import html
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.curator.cells import GOOD, TAKEN, WORDS, label, rule_of
from tacit.curator.charging import alone, divided_parts, together
from tacit.errors import InvalidParameter, UnknownName, visible
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, BoundedAdversary, Priors, RandomData
from tacit.guarantees.conditions import told_gamma
from tacit.ledger import parts_words
from tacit.sources.columns import Category, Flag
from tacit.sources.schema import Schema
from tacit.statistics.base import group_limit

if TYPE_CHECKING:
    from tacit.curator.charging import Alone
    from tacit.curator.planning import Plan, Planned
    from tacit.curator.release import Release
    from tacit.guarantees import Guarantee
    from tacit.statistics.base import Question

# Numbers for people: three significant digits, or as many as an interval needs to be told from its middle.
#
# Machine formats carry everything; these words are for reading, on a page and on a terminal alike. The ends of an
# interval are rounded outwards, so that what is printed never claims more than what was certified.

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SLACK = 1e-9


def three(value: float) -> str:
    """Three significant digits: 16,500; 0.0123; 1.23×10⁻⁷."""
    if not math.isfinite(value):
        return "not known" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    place = math.floor(math.log10(abs(float(f"{value:.2e}")))) - 2
    if place > 9 or place < -6:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        power = f"10{str(int(exponent)).translate(_RAISED)}"
        return power if mantissa == "1" else _signed(f"{mantissa}×{power}")
    text = _at(round(value / 10.0**place), place)
    return text.rstrip("0").rstrip(".") if "." in text else text


def outwards(value: float, turn: Any) -> float:
    """Three significant digits, rounded outwards: the written interval contains the certified one."""
    if value == 0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    steps = value / unit
    near = round(steps)
    # A number of three digits stays itself, whatever the division made of it.
    return (near if abs(steps - near) <= SLACK * abs(steps) else turn(steps)) * unit


class Figures(tuple[str, str, str]):
    """Value, low and high in words, all rounded at one place."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The value, rounded to the nearest."""
        return self[0]

    @property
    def low(self) -> str:
        """The lower end, rounded down."""
        return self[1]

    @property
    def high(self) -> str:
        """The upper end, rounded up."""
        return self[2]

    @property
    def interval(self) -> str:
        """Both ends."""
        return f"{self.low} to {self.high}"


def figures(value: float | None, low: float | None, high: float | None) -> Figures:
    """A value with its interval, rounded at the coarser of two needs: three digits of it, or two of the
    half-width.
    """
    known = [v for v in (value, low, high) if v is not None and math.isfinite(v)]
    places = []
    if value:
        places.append(math.floor(math.log10(abs(value))) - 2)
    if low is not None and high is not None and 0 < (high - low) < math.inf:
        places.append(math.floor(math.log10((high - low) / 2)) - 1)
    place = min(places, default=0)
    if known and all(float(v).is_integer() for v in known):
        place = max(place, 0)
    if place > 9 or place < -9:
        return Figures([_maybe(value), _maybe(low), _maybe(high)])
    unit = 10.0**place

    def at(x: float | None, turn: Any) -> str:
        if x is None or not math.isfinite(x):
            return _maybe(x)
        return _at(turn(x / unit), place)

    return Figures(
        [
            at(value, round),
            at(low, lambda x: math.floor(x + SLACK * max(1, abs(x)))),
            at(high, lambda x: math.ceil(x - SLACK * max(1, abs(x)))),
        ]
    )


def _at(steps: float, place: int) -> str:
    """A whole number of 10^place."""
    if place >= 0:
        return _signed(f"{int(steps) * 10**place:,}")
    return _signed(f"{steps * 10.0**place:,.{-place}f}")


def _signed(text: str) -> str:
    return text.replace("-", "−", 1) if text.strip("-0.,") else text.lstrip("-")


def _maybe(value: float | None) -> str:
    return "none" if value is None else three(value)


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
    """The rows that a limit on groups leaves out of this question; empty if it leaves out none."""
    if not question.limited:
        return ""
    most, keys = group_limit(question.unit, None), " x ".join(question.limited)
    return f"rows of a person beyond {most} {'group' if most == 1 else 'groups'} of {keys}"


def priced(guarantee: Guarantee) -> str:
    """A bound, with its gamma if it holds on random data only."""
    condition = guarantee.condition
    gamma = f", gamma = {told_gamma(condition.gamma)}" if isinstance(condition, RandomData) else ""
    return f"{guarantee.bound}{gamma}"


def _conditional(guarantee: Guarantee) -> list[str]:
    """The words that must accompany a bound with a condition."""
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
        "an outlier, or the only inhabitant of a cell, is not protected",
    ]


def _plan_rows(plan: Plan) -> list[list[str]]:
    rows = []
    parts = divided_parts(plan, plan.budget)
    for r, own, part in zip(plan.releases, alone(plan, plan.budget), parts, strict=True):
        error = "–" if r.expected.within is None else f"± {digits(r.expected.within)}"
        error += " ranks" if r.expected.ranks else ""
        floor = digits(r.expected.floor) if r.expected.floor is not None else "–"
        mean = digits(r.expected.mean) if r.expected.mean is not None else "–"
        cells = "unknown" if r.question.numbers is None else f"{r.question.numbers:,}"
        of_budget = "–" if part is None else parts_words(part)
        rows.append([r.name, cells, _own_price(r, own), of_budget, error, mean, floor, r.assignment.reason])
    return rows


def _own_price(release: Planned, own: Alone) -> str:
    """The price of a release alone in the budget's words: a budget of epsilons shows no mu."""
    if own.charged is None or own.charged.bound.kind == release.guarantee.bound.kind:
        return priced(release.guarantee)
    return priced(replace(release.guarantee, bound=own.charged.bound))


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
        lines.append(f"{r.name}: {r.assignment.reason}; error: {r.expected.about}")
        if left_out := beyond_groups(r.question):
            lines.append(f"{r.name}: {left_out} are not used")
        if r.expected.floor_reason:
            lines.append(f"{r.name}: {r.expected.floor_reason}")
    lines.append(
        f"together: {_of_budget(plan)}, for {plan.unit} (by {', '.join(plan.theorems)}); nothing was read"
    )
    if "exceeds" in plan.kept:
        lines.append(str(plan.kept["exceeds"]))
    lines += _conditional(plan.charge)
    return "\n".join([*_aligned(rows), *map(visible, lines)])


def plan_html(plan: Plan) -> str:
    """A plan as an HTML table."""
    dear = [str(plan.kept["exceeds"])] if "exceeds" in plan.kept else []
    foot = "; ".join([f"together: {_of_budget(plan)}, for {plan.unit}", *dear, *_conditional(plan.charge)])
    return _html(HEADINGS, _plan_rows(plan), foot)


def _release_rows(release: Release) -> tuple[list[str], list[list[str]]]:
    columns = release.columns
    if release.planned.question.statistic.kind == "regression":
        return _regression_rows(release)
    judged = rule_of(release).judges
    names = [n for n in columns if judged or n not in ENDS[1:]]
    count = len(columns["value"])
    rows = []
    for i in range(min(count, SHOWN)):
        told = {n: _key(columns[n][i]) for n in names if n not in ENDS}
        told |= zip(ENDS, _with_ends(*(columns[n][i] for n in ENDS)), strict=True)
        rows.append([told[n] for n in names])
    if not judged:
        return names, rows
    flagged = release.quality
    if any(word != GOOD_WORD for word in flagged):
        names, rows = [*names, "quality"], [[*r, word] for r, word in zip(rows, flagged, strict=False)]
    return names, rows


def _regression_rows(release: Release) -> tuple[list[str], list[list[str]]]:
    """A line for each term with its standard error and interval, then the lines of the model, as reports have them."""
    terms, measures, *ends = (release.columns[n] for n in ("term", "measure", *ENDS))
    told = [_with_ends(*each) for each in zip(*ends, strict=True)]
    errors = {t: v[0] for t, m, v in zip(terms, measures, told, strict=True) if m == "standard error"}
    judged, rows = rule_of(release).judges, []
    flagged = list(release.quality) if judged else [GOOD_WORD] * len(told)
    for term, measure, (value, low, high), word in zip(terms, measures, told, flagged, strict=True):
        if measure == "coefficient":
            rows.append([_key(term), value, errors[term], low, high, word])
        elif measure != "standard error":
            rows.append([measure, value, "", "", "", ""])
    names = ["term", "coefficient", "standard error", *ENDS[1:], "quality"]
    if any(word not in ("", GOOD_WORD) for *_, word in rows):
        return names, rows
    return names[:-1], [r[:-1] for r in rows]


def _with_ends(value: Any, low: Any, high: Any) -> tuple[str, str, str]:
    """A value and its interval: whole numbers and days unchanged, other numbers with enough digits to tell the ends
    apart.
    """
    if not all(isinstance(v, float) for v in (value, low, high)):
        return digits(value), digits(low), digits(high)
    if not all(map(math.isfinite, (value, low, high))):
        return digits(value), digits(outwards(low, math.floor)), digits(outwards(high, math.ceil))
    first, *ends = (text.replace("−", "-") for text in figures(value, low, high))
    return first, ends[0], ends[1]


def _key(value: Any) -> str:
    """A key of any length, shortened if it would fill a line; the files have the full key."""
    text = str(value)
    return text if len(text) <= LONGEST_KEY else text[:LONGEST_KEY] + "..."


def _quality(release: Release) -> list[str]:
    """The number of cells with each quality word, and the rule; empty if all are good."""
    words = release.quality if rule_of(release).judges else []
    told = [
        f"{words.count(w):,} of {len(words):,} {w}" for w in WORDS.values() if w in words and w != GOOD_WORD
    ]
    return [f"quality: {'; '.join(told)}. {rule_of(release).sentence}"] if told else []


def _foot(release: Release, standing: bool = True) -> list[str]:
    whole = release.planned.question.statistic.kind == "regression"
    count = 0 if whole else len(release.columns["value"])
    more = [f"and {count - SHOWN:,} more"] if count > SHOWN else []
    said = [f"{release.name}: {correction}" for correction in release.corrections]
    price = f"price: {priced(release.guarantee)}" + (
        "; answered from the record, free" if release.replayed else ""
    )
    spent, rest = release.standing
    left = f"spent so far: {priced(spent)}; left: {priced(rest)}"
    if release.joint:
        left = f"charged at every holder: {priced(spent)}; its own ledger shows the remaining budget"
    told = release.statement.get("random_data")
    given = [told["sentence"], *_conditional(release.guarantee)] if told else []
    if isinstance(release.guarantee.condition, Priors | BoundedAdversary):
        given = _conditional(release.guarantee)
    level = float(release.planned.ask.confidence)
    sampled = release.planned.sampled
    about = f"for the population, if {'; '.join(sampled)}" if sampled else "for the noise only"
    if assumed := release.planned.question.details.get("assumes", ()):
        about += f"; before clamping, if {'; '.join(assumed)}"
    if release.planned.question.statistic.declares:
        about = "for sampling and noise, if what is declared is true"
    none = not rule_of(release).judges
    if release.planned.question.statistic.fits in ("clamping bounds", "thresholds"):
        about += f"; they cover {release.planned.assignment.covers}"
    given = [*given, *(f"known to the ledger: {d}" for d in release.data.get("seen", ()))]
    return [
        *more,
        *map(_loud, said),
        *_quality(release),
        *given,
        "intervals: none were asked for, and nothing was spent on them"
        if none
        else f"intervals: {level:.0%}, {about}",
        price,
        *([left] if standing else []),
    ]


def _loud(sentence: str) -> str:
    return f"DO NOT USE THESE NUMBERS. {sentence}"


def release_text(release: Release, *, standing: bool = True) -> str:
    """A release as aligned lines; without `standing`, spent and remaining amounts are left out."""
    names, rows = _release_rows(release)
    return "\n".join([release.name, *_aligned([names, *rows]), *map(visible, _foot(release, standing))])


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


# What a plan asks, in words that a ledger keeps and a report shows.

LONGEST = 2000


def told_of(plan: Plan) -> list[dict[str, Any]]:
    """Each release of a plan for the ledger: its name, the question, and its own price."""
    if "told" not in plan.kept:
        plan.kept["told"] = [
            (
                r.name, _short(question_words(r.ask.statistic.to_dict())), r.guarantee.bound.kind,
                str(r.guarantee.bound),
            )
            for r in plan.releases
        ]  # fmt: skip
    return [
        {"release": name, "statistic": words, "price": {"kind": kind, "words": price}}
        for name, words, kind, price in plan.kept["told"]
    ]


def _short(words: str) -> str:
    """A printable text that a ledger takes: names of columns may be anything."""
    shown = "".join(c if c.isprintable() else "?" for c in words)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def _post_stratified_words(statistic: Mapping[str, Any]) -> str:
    of = statistic.get("of")
    return f"The share of rows with {of}" if of else f"The mean of {statistic.get('column')}"


def question_words(statistic: Mapping[str, Any]) -> str:
    """The question as a sentence."""
    kind = statistic["kind"]
    what = {
        "count": f"How many {statistic.get('of', 'rows')} there are",
        "sum": f"The sum of {statistic.get('column')}",
        "mean": f"The mean of {statistic.get('column')}",
        "variance": f"The {'standard deviation' if statistic.get('root') else 'variance'} of {statistic.get('column')}",
        "proportion": f"The share of rows with {statistic.get('of')}",
        "unclipped_mean": f"The mean of {statistic.get('column')}, also of values above its declared bound",
        "calibrated": f"The mean and the total of {statistic.get('column')}, calibrated to public totals",
        "post_stratified": f"{_post_stratified_words(statistic)}, with post-stratified weights",
        "inequality": f"How unequal {statistic.get('column')} is: Gini coefficient, Lorenz curve, shares of the top",
        "rate": _rate_words(statistic),
        "ratio": f"The sum of {statistic.get('numerator')} over the sum of {statistic.get('denominator')}",
        "quantiles": _quantile_words(statistic),
        "margins": f"All tables of order {statistic.get('order')} of {_listed(statistic.get('columns'))}",
        "density": f"The density of {_listed(statistic.get('columns'))}",
        "classifier": f"A function that tells {statistic.get('label')} from {_listed(statistic.get('columns'))}",
        "synthetic_table": f"Synthetic rows of {_listed(statistic.get('columns'))}",
        "geography": f"How many rows there are in every area: {_listed(statistic.get('levels'))}",
        "table": f"How many rows there are by {_listed(statistic.get('columns'))}, with all totals",
        "survival": f"Time ({statistic.get('time')}) until {statistic.get('event')}: survival, hazard, at risk, median",
        "decision_tree": f"A tree that tells {statistic.get('label')} from {_listed(statistic.get('columns'))}",
        "regression_function": f"What {statistic.get('outcome')} to expect, from {_listed(statistic.get('columns'))}",
        "regression": f"A regression table of {statistic.get('outcome')} on {_listed(statistic.get('columns'))}",
        "regression_by_test": f"Least squares of {statistic.get('outcome')} on {_listed(statistic.get('columns'))}",
        "additive": f"A shape of {statistic.get('target')} for each of {_listed(statistic.get('columns'))}",
        "linear": f"A linear regression of {statistic.get('target')} on {_listed(statistic.get('columns'))}",
        "logistic": f"A logistic regression of {statistic.get('target')} on {_listed(statistic.get('columns'))}",
    }.get(kind, kind.replace("_", " ").capitalize())
    if kind.startswith("weighted_"):
        what = _weighted_words(kind, statistic)
    by = f", for each {_listed(statistic['by'])}" if statistic.get("by") else ""
    where = f", of rows where {statistic['where']}" if statistic.get("where") else ""
    return f"{what}{by}{where}."


def _rate_words(statistic: Mapping[str, Any]) -> str:
    """A rate as a sentence."""
    what = (
        f"The rate of {statistic.get('events')} for {statistic.get('per') or 1:g} of {statistic.get('time')}"
    )
    if statistic.get("standard"):
        what += f", standardised by {statistic['standard'][0]}"
    if statistic.get("against"):
        what += f", relative to {statistic['against'][0]} = {statistic['against'][1]}"
    return what


def _weighted_words(kind: str, statistic: Mapping[str, Any]) -> str:
    """A question with survey weights or a design as a sentence."""
    what = {
        "weighted_count": "How many there are in the population",
        "weighted_mean": f"The mean of {statistic.get('column')}",
        "weighted_proportion": f"The share with {statistic.get('of')}",
        "weighted_ratio": f"The sum of {statistic.get('numerator')} over the sum of {statistic.get('denominator')}",
        "weighted_total": f"The total of {statistic.get('column')} in the population",
    }[kind]
    weight, psu = statistic.get("survey_weight"), statistic.get("psu")
    words = [
        *([f"weighted by {weight}"] if weight else []),
        *([f"by primary sampling units {psu}"] if psu else []),
        *([f"with public weights by {statistic['standard'][0]}"] if statistic.get("standard") else []),
    ]
    return f"{what}, {' and '.join(words)}"


def _quantile_words(statistic: Mapping[str, Any]) -> str:
    column, at = statistic.get("column"), list(statistic.get("at") or ())
    if len(at) == 1:
        share = float(at[0])
        return (
            f"The median of {column}"
            if share == 0.5
            else f"The value of {column} below which {share:.4g} of the rows lie"
        )
    return f"The values of {column} below which given shares of the rows lie"


def _listed(entries: Any) -> str:
    names = [e if isinstance(e, str) else e["column"] for e in entries or []]
    return " and ".join(map(str, names))


# The words of a report: who publishes what, and what columns and keys are called for people.
#
#     [report]
#     title = "Hospital stays"
#     publisher = "Office of Statistics"
#     period = "2024"
#     contact = "desk@example.org"
#     exports = ["xlsx"]
#
#     [report.columns]
#     region = "Region of residence"
#
#     [report.keys.region]
#     N = "North"
#
#     [report.releases]
#     "stays by region" = "Stays by region of residence"
#
#     [report.rules]
#     round_to = 5
#
#     [report.second]
#     columns = { region = "Région de résidence" }
#
# They are public words that the custodian writes. No number and no promise depends on them, so they are no part of
# the plan's digest: a better label is no new plan, and pays for nothing. What binds them is the manifest, which has
# the digest of plan.toml and of every page and file that shows them (docs/decisions/0018-words-of-a-report.md).

EXPORTS = ("sdmx", "xlsx")
"""The exports beside values, certificates and page. CSVW metadata are always written beside a CSV file."""
LONGEST_PUBLIC = 500
MADE = ("bound", "level", "share")
"""Columns of a release beside its keys: a bound, a level of a hierarchy, a share of the rows."""
_TEXTS = ("title", "publisher", "period", "contact")
_TABLES = ("columns", "releases")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeRules:
    """An office's form of noisy numbers: rounded, from a minimum on, by its own thresholds of quality."""

    round_to: int | None = None
    minimum: int | None = None
    care: float | None = None
    noisy: float | None = None

    def __post_init__(self) -> None:
        for name in ("round_to", "minimum"):
            held = getattr(self, name)
            if held is not None and (
                isinstance(held, bool) or not isinstance(held, int) or not 1 <= held <= 10**9
            ):
                _refuse(f"rules.{name}", "be a whole number between 1 and a billion")
        for name in ("care", "noisy"):
            held = getattr(self, name)
            if held is not None and (
                isinstance(held, bool) or not isinstance(held, int | float) or not 0 < held <= 10
            ):
                _refuse(f"rules.{name}", "be a share above 0, such as 0.25")
        if self.care is not None and self.care > (0.5 if self.noisy is None else self.noisy):
            _refuse("rules.care", "be at most `noisy` (0.5 where it is left out)")

    @property
    def sentences(self) -> list[str]:
        """The notes that a reader needs."""
        told = []
        if self.round_to is not None:
            told.append(f"Counts are rounded to multiples of {self.round_to:,}, ends of intervals outwards.")
        if self.minimum is not None:
            told.append(f"Released counts below {self.minimum:,} are not printed.")
        return [*told, "The files have the released numbers."] if told else []


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicWords:
    """The words that a report uses for columns and keys.
    Columns, keys and releases without a label keep their own names.

    Keys are spelled as in the files: `true`, `2020`, `N`. `second` has labels of a second language, which
    stand behind those of the first.
    """

    title: str = ""
    publisher: str = ""
    period: str = ""
    contact: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    releases: Mapping[str, str] = field(default_factory=dict)
    exports: tuple[str, ...] = ()
    rules: OfficeRules = field(default_factory=OfficeRules)
    second: PublicWords | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", _rules(self.rules))
        object.__setattr__(self, "second", _second(self.second))
        for name in _TEXTS:
            if (held := getattr(self, name)) != "":
                _label(name, held)
        for name in _TABLES:
            object.__setattr__(self, name, _labels(name, getattr(self, name)))
            if len(set(getattr(self, name).values())) < len(getattr(self, name)):
                _refuse(name, "be labels that differ")
        if not isinstance(self.keys, Mapping):
            _refuse("keys", "be tables of labels, one a column")
        object.__setattr__(
            self, "keys", {str(c): _labels(f"keys.{c}", held) for c, held in self.keys.items()}
        )
        object.__setattr__(self, "exports", exports_of(self.exports))

    def column(self, name: str) -> str:
        """The label of a column. One that was renamed beside `value` keeps its label."""
        base = name.rstrip("_").removesuffix("_key")
        own = self.columns.get(name, self.columns.get(base, name) if base in TAKEN else name)
        return own if self.second is None else _both(own, self.second.columns.get(name, ""))

    def key(self, column: str, key: Any) -> Any:
        """The label of a key, or the key itself."""
        spelled = _spelled(label(key))
        own = self.keys.get(column, {}).get(spelled, key)
        other = "" if self.second is None else self.second.keys.get(column, {}).get(spelled, "")
        return _both(_spelled(own), other) if other else own

    def labelled(self, column: str, keys: Sequence[Any]) -> list[Any]:
        """The labels of the keys of one column: different keys have different labels."""
        if column not in self.keys and (self.second is None or column not in self.second.keys):
            return list(keys)
        named = {key: self.key(column, key) for key in dict.fromkeys(keys)}
        taken = Counter(map(_spelled, named.values()))
        return [
            named[k] if taken[_spelled(named[k])] == 1 else f"{named[k]} ({_spelled(label(k))})" for k in keys
        ]

    def release(self, name: str) -> str:
        """What a release is called."""
        own = self.releases.get(name, name)
        return own if self.second is None else _both(own, self.second.releases.get(name, ""))

    @property
    def headline(self) -> str:
        """The title; in both languages if the plan has two."""
        return self.title if self.second is None else _both(self.title, self.second.title)

    def check(self, schema: Schema, releases: Iterable[str]) -> None:
        """Refuse labels of undeclared columns: by the declarations alone, before any charge."""
        for column in (*self.columns, *self.keys):
            if column not in schema and column not in MADE:
                raise UnknownName(what="column in [report]", name=column, known=[*schema, *MADE])
        for column, labels in self.keys.items():
            known = _known(schema, column)
            for key in labels:
                if known is not None and key not in known:
                    raise UnknownName(what=f"key of {column} in [report]", name=key, known=known)
        names = list(releases)
        for name in self.releases:
            if name not in names:
                raise UnknownName(what="release in [report]", name=name, known=names)
        if self.second is not None:
            self.second.check(schema, names)


def _known(schema: Schema, column: str) -> list[str] | None:
    """The declared keys of a column; None if they are not listed."""
    if column in schema:
        declared = schema[column]
        if isinstance(declared, Flag):
            return ["false", "true"]
        if isinstance(declared, Category) and declared.values is not None:
            return [_spelled(v) for v in declared.values]
    return None


def words_in(table: Any) -> PublicWords:
    """The words of a plan's [report]."""
    if not isinstance(table, Mapping):
        _refuse("[report]", "be a table")
    known = [f.name for f in fields(PublicWords)]
    for word in table:
        if word not in known:
            raise UnknownName(what="word in [report]", name=str(word), known=known)
    return PublicWords(**table)


def _both(own: str, other: str) -> str:
    """A label in two languages."""
    return f"{own} / {other}" if own and other and own != other else own or other


def _rules(given: Any) -> OfficeRules:
    if isinstance(given, OfficeRules):
        return given
    if not isinstance(given, Mapping):
        _refuse("rules", "be a table: { round_to = 5, minimum = 10 }")
    known = [f.name for f in fields(OfficeRules)]
    for word in given:
        if word not in known:
            raise UnknownName(what="rule in [report.rules]", name=str(word), known=known)
    return OfficeRules(**given)


def _second(given: Any) -> PublicWords | None:
    if given is None or isinstance(given, PublicWords):
        return given
    if not isinstance(given, Mapping):
        _refuse("second", "be a table of labels")
    known = ("title", "columns", "keys", "releases")
    for word in given:
        if word not in known:
            raise UnknownName(what="word in [report.second]", name=str(word), known=known)
    return PublicWords(**given)


def exports_of(given: Any) -> tuple[str, ...]:
    """The names of exports, each once: a list, or a text with commas between."""
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    if not isinstance(given, list | tuple):
        _refuse("exports", "be a list of names")
    for name in given:
        if name not in EXPORTS:
            raise UnknownName(what="export", name=str(name), known=EXPORTS)
    return tuple(dict.fromkeys(given))


def _spelled(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _labels(name: str, given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        _refuse(name, "be a table of labels")
    return {_spelled(key): _label(f"{name}.{key}", told) for key, told in given.items()}


def _label(name: str, given: Any) -> str:
    if (
        not isinstance(given, str)
        or not given.strip()
        or len(given) > LONGEST_PUBLIC
        or not given.isprintable()
    ):
        _refuse(name, f"be a text of one line and at most {LONGEST_PUBLIC} letters")
    return str(given)


def _refuse(name: str, must: str) -> Any:
    where = name if name.startswith("[") else f"[report] {name}"
    raise InvalidParameter(parameter=where, value=None, must=must)
