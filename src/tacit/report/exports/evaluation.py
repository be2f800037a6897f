"""A page that evaluates the privacy claim of a release, level by level, for a regulator or a reviewer.

NIST SP 800-226 (Near, Darais, Lefkovitz, Howarth, 2025) arranges the factors of a differential privacy claim as a
pyramid. On top are the privacy parameters and the unit, below them the things that can undermine them (algorithms,
utility, bias, security and side channels), at the bottom the collection of the data and access to them.
The points on this page and
their wording are ours. Each is met, not met, or beyond tacit's knowledge, and each names its evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from tacit.curator.quantile_choice import NO_INTERVAL
from tacit.errors import TacitError
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import digits_up
from tacit.guarantees import Always, Neighbours, People, RandomData
from tacit.guarantees.bounds import Approximate, Pure
from tacit.report.exports.published import PublishedFolder
from tacit.report.exports.registry import common_guarantee, exactness, in_words, variant
from tacit.report.page import DARK, LIGHT
from tacit.report.view import Markup, join, tag

MET, NOT_MET, OTHERS = "met", "not met", "not ours to say"
LEVELS = (
    ("Privacy parameters and unit", "The promise, its unit and its condition."),
    ("What can undermine the promise", "Algorithms, accuracy, bias, security, side channels."),
    ("Collection and access", "The treatment of the data before and beside the release."),
)
LARGE_EPSILON, LARGE_DELTA = 10.0, 1e-5


@dataclass(frozen=True, slots=True)
class EvaluationPoint:
    """One point: its level (0 on top), the question, the finding, the sentence, and the evidence."""

    level: int
    asked: str
    finding: str
    answer: str
    evidence: str


def evaluation(folder: PublishedFolder) -> list[EvaluationPoint]:
    """All points, from the top of the pyramid to its bottom; each has an answer."""
    return [*_top(folder), *_middle(folder), *_bottom(folder)]


def _top(folder: PublishedFolder) -> Iterator[EvaluationPoint]:
    promise = common_guarantee(folder)
    bound, unit = promise.bound, promise.unit
    always = isinstance(promise.condition, Always) and not folder.conditional
    given = "" if always else ", under the condition below"
    yield EvaluationPoint(
        0, "The privacy loss is stated, with its variant", MET,
        f"{variant(promise)}: {in_words(bound)}, for all releases of the plan together{given}.",
        f"certificates, plan.charge, composed by {folder.first['plan'].get('charged_by') or 'a single release'}",
    )  # fmt: skip
    level = float(bound.delta) if isinstance(bound, Approximate) else 1e-6
    epsilon = bound.epsilon_at(level)
    small = epsilon <= LARGE_EPSILON
    yield EvaluationPoint(
        0, f"The privacy loss is at most epsilon = {LARGE_EPSILON:g}", MET if small else NOT_MET,
        f"Epsilon is {digits_up(epsilon)} at delta = {digits_up(level)}{given}. "
        + (_guess(folder) if isinstance(promise.condition, Always) else "No reading for one person is known."),
        "theorem trade-off-curve; the limit of 10 is ours: a reader may set another",
    )  # fmt: skip
    curve = not isinstance(bound, Pure | Approximate)
    certain = float(bound.delta) if isinstance(bound, Approximate) else level if curve else 0.0
    gamma = float(promise.condition.gamma) if isinstance(promise.condition, RandomData) else 0.0
    yield EvaluationPoint(
        0, f"Delta is at most {LARGE_DELTA:g}", MET if max(certain, gamma) <= LARGE_DELTA else NOT_MET,
        (f"The bound is a curve: every epsilon has a delta above 0. Delta is {digits_up(certain)} for that above. "
         if curve else f"Delta is {digits_up(certain)}{given}. ")
        + (f"But the promise fails with probability {digits_up(gamma)} over the data. " if gamma else "")
        + ("" if certain == 0 else "It should be far below one over the number of people, "
        "a number that this page does not know."),
        "certificates, plan.charge",
    )  # fmt: skip
    yield EvaluationPoint(
        0, "The promise holds whatever an adversary knows", MET if always else NOT_MET,
        "It is differential privacy: it holds for all data and all knowledge." if always else
        "Some or all of it holds only under a condition: " + "; ".join(_conditions(folder)) + ".",
        "certificates, guarantee.condition",
    )  # fmt: skip
    person = isinstance(unit, People)
    yield EvaluationPoint(
        0, "The unit of privacy is a person with all their data", MET if person else NOT_MET,
        f"Protected is {unit.noun}, {unit.neighbours.verb}. " + (
            "Two ids of one person are two persons here." if person else
            "A person with several rows has less protection: the loss grows with the number of rows."
        ),
        "certificates, guarantee.unit; theorem group-privacy for several rows",
    )  # fmt: skip
    public_n = unit.neighbours is Neighbours.REPLACE_ONE
    yield EvaluationPoint(
        0, "Presence in the table is protected", MET if always and not public_n else NOT_MET,
        "The number of units is public: only what a unit says is protected." if public_n else
        "Presence is protected as much as content." if always else
        "Presence is protected as content is: under the condition alone.",
        "certificates, neighbours",
    )  # fmt: skip
    yield EvaluationPoint(
        0, "The loss adds up over all releases of the table", OTHERS if folder.joint else MET,
        "Each holder charged its own ledger." if folder.joint else
        f"Entry {folder.first['ledger'].get('sequence')} of ledger {folder.first['ledger'].get('id')} has the charge. "
        "A copy of the table elsewhere would have a ledger of its own.",
        "ledger; tacit verify --ledger; known limits: what protects the budget",
    )  # fmt: skip


def _middle(folder: PublishedFolder) -> Iterator[EvaluationPoint]:
    theorems = list(dict.fromkeys(t for one in folder.tables for t in one.certificate["theorems"]))
    yield EvaluationPoint(
        1, "Every mechanism has a proof", MET,
        f"The certificates name {len(theorems)} theorems, each proved on paper.",
        ", ".join(theorems),
    )  # fmt: skip
    yield EvaluationPoint(
        1, "A second program confirms the stated loss", OTHERS,
        "tacit verify computes every bound again, with code of its own. Run it: this page does not.",
        "tacit verify DIR",
    )  # fmt: skip
    yield EvaluationPoint(
        1, "Finite arithmetic does not weaken the promise", MET,
        " ".join(exactness(folder)) or "No noise is drawn: the promise rests on its condition.",
        "certificates, numerical_delta and grid",
    )  # fmt: skip
    yield EvaluationPoint(
        1,
        "The randomness is fit for the purpose",
        MET,
        " ".join(dict.fromkeys(str(t.certificate["computational"]) for t in folder.tables)),
        "certificates, noise_source",
    )
    yield EvaluationPoint(1, "Bounds and parameters were not chosen by looking at the data", *_looks(folder))
    alone = [str(t.certificate["name"]) for t in folder.tables if _has_no_interval(t.certificate)]
    yield EvaluationPoint(
        1, "The error of each number is known", NOT_MET if alone else MET,
        (f"No interval was asked for: {', '.join(alone)}. Every other value" if alone else "Every value")
        + " has an interval. It covers the noise and does not cover: "
        + "; ".join(folder.first["intervals"]["do_not_cover"]) + ".",
        "certificates, intervals and error",
    )  # fmt: skip
    yield EvaluationPoint(
        1, "Noise and bounds treat all groups alike", NOT_MET,
        "The noise has the same size for small and for large groups, so that small groups have the larger relative "
        "error. Values beyond the declared bounds are clamped, which moves the groups with the extreme values most.",
        "values, quality; certificates, schema",
    )  # fmt: skip
    yield EvaluationPoint(
        1, "Bias of the data or of the people who use them is removed", OTHERS,
        "Noise neither adds nor removes it: what the table says too often or too seldom, the release says too.",
        "none",
    )  # fmt: skip
    yield EvaluationPoint(
        1, "Errors, texts and file sizes do not depend on one person", MET,
        "Apart from the noise, an output may not change with one unit's rows; a fuzzer compares neighbours.",
        "decisions and tests of the project; make fuzz",
    )  # fmt: skip
    yield EvaluationPoint(
        1, "Time, memory and logs reveal nothing", NOT_MET,
        "Whoever can time a release or read the engine's logs may learn about single rows.",
        "known limits: time; SECURITY",
    )  # fmt: skip
    signed = bool(folder.signed_by)
    yield EvaluationPoint(
        1, "A reader can tell who made the release", MET if signed else NOT_MET,
        f"The manifest bears a signature of the key {folder.signed_by}; this page did not check it." if signed else
        "The manifest is not signed: its digests show accidents, not intent.",
        "tacit verify --key",
    )  # fmt: skip
    withdrawn = folder.corrections
    yield EvaluationPoint(
        1, "The release has not been withdrawn or replaced", NOT_MET if withdrawn else MET,
        "; ".join(withdrawn) + "." if withdrawn else "No withdrawal was known when this page was written.",
        "ledger, withdraw and supersede",
    )  # fmt: skip


def _bottom(folder: PublishedFolder) -> Iterator[EvaluationPoint]:
    model = "Several holders add their shares; the aggregator sees masked sums." if folder.joint else (
        "The central model: the custodian sees the rows."
    )  # fmt: skip
    yield EvaluationPoint(
        2, "The trust model is stated", MET, model,
        "certificates, condition" if folder.joint else "certificates, data.engine",
    )  # fmt: skip
    yield EvaluationPoint(
        2, "People agreed to the collection, and only what is needed is kept", OTHERS,
        "The custodian knows. tacit reads declared columns only and keeps no rows.", "none",
    )  # fmt: skip
    yield EvaluationPoint(
        2, "The table is stored and reached safely", OTHERS,
        "The custodian knows. Temporary files of the engine are not encrypted.", "known limits; SECURITY",
    )  # fmt: skip
    yield EvaluationPoint(
        2, "Nothing else about these people was published without being counted", OTHERS,
        "The ledger counts releases through tacit. It does not know of other publications of the same data.",
        "ledger",
    )  # fmt: skip
    yield EvaluationPoint(
        2, "Declarations are true", OTHERS,
        "Believed and not checked: " + "; ".join(_declared(folder)) + ".",
        "certificates, guarantee.declared and data.conditions",
    )  # fmt: skip


def _guess(folder: PublishedFolder) -> str:
    promise = common_guarantee(folder)
    try:
        guess = promise.best_guess()
    except TacitError:
        return "A reading as a guess has no theorem here."
    return (
        "Somebody who knows everything else tells two versions of one unit's data apart in at most "
        f"{percent_up(guess)}% of cases, where a coin is right in 50%."
    )


def percent_up(share: float) -> str:
    """A share in percent with one decimal, rounded up."""
    return f"{math.ceil(round(1000 * share, 6)) / 10:g}"


def _conditions(folder: PublishedFolder) -> list[str]:
    held = (t.guarantee.condition for t in folder.tables)
    return list(dict.fromkeys(str(c) for c in held if not isinstance(c, Always)))


def _has_no_interval(certificate: Mapping[str, Any]) -> bool:
    return bool(certificate["intervals"]["cover"] == NO_INTERVAL)


def _looks(folder: PublishedFolder) -> tuple[str, str, str]:
    looks = list(dict.fromkeys(s for t in folder.tables for s in t.certificate["data"].get("seen", [])))
    if looks:
        return NOT_MET, f"The ledger knows that {'; '.join(looks)}.", "ledger, looks"
    return OTHERS, "The ledger knows of no look through tacit. Other programs leave no mark.", "ledger, looks"


def _declared(folder: PublishedFolder) -> list[str]:
    promise = common_guarantee(folder)
    found = [
        *promise.declared,
        *(c for t in folder.tables for c in t.certificate["data"].get("conditions", [])),
    ]
    unit = (
        "the id column names a person"
        if isinstance(promise.unit, People)
        else "a row is what must be protected"
    )
    return list(dict.fromkeys([unit, *found]))


_SOURCE = (
    "The three levels follow the pyramid of NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees "
    "(2025). The points and their wording are tacit's own; NIST has not reviewed them."
)


# --- the page ----------------------------------------------------------------------------------------------
_STYLE = """
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);line-height:1.5;font-size:16px;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:58rem;margin:0 auto;padding:1.5rem 1.1rem 3rem}h1{font-size:1.6rem;line-height:1.2;margin:.2rem 0}
h2{font-size:1.15rem;margin:1.6rem 0 .2rem}.muted{color:var(--muted);font-size:.92rem;margin:.2rem 0}
.point{background:var(--card);border:1px solid var(--line);border-left-width:5px;border-radius:8px;
padding:.7rem 1rem;margin:.6rem 0}
.point h3{font-size:1rem;margin:0 0 .2rem}.point p{margin:.2rem 0;overflow-wrap:anywhere}
.pill{display:inline-block;border-radius:99px;padding:.05rem .6rem;font-size:.8rem;font-weight:600;margin-right:.5rem}
.met{border-left-color:var(--accent)}.met .pill{background:var(--sunk);color:var(--accent)}
.not-met{border-left-color:var(--noisy-ink)}.not-met .pill{background:var(--noisy-ground);color:var(--noisy-ink)}
.not-ours-to-say{border-left-color:var(--muted)}
.not-ours-to-say .pill{background:var(--care-ground);color:var(--care-ink)}
.levels{list-style:none;padding:0;margin:1rem auto;max-width:34rem}
.levels li{margin:.3rem auto;background:var(--sunk);border:1px solid var(--line);border-radius:6px;text-align:center;
padding:.4rem .6rem}.levels li:nth-child(1){width:56%}.levels li:nth-child(2){width:78%}
@media print{body{font-size:10pt}.point{break-inside:avoid}}
"""


def style_of(rules: str) -> Markup:
    """A style sheet with the colours of the report, light and dark."""
    light = "".join(f"--{k}:{v};" for k, v in LIGHT.items())
    dark = "".join(f"--{k}:{v};" for k, v in DARK.items())
    return Markup(
        f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{rules}</style>"
    )


def whole_page(title: str, style: Markup, *children: Any, language: str = "en") -> str:
    """A complete page without scripts or parts loaded from elsewhere."""
    head = join(
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        tag("title", title), style,
    )  # fmt: skip
    return f'<!doctype html>\n<html lang="{language}">{tag("head", head)}{tag("body", tag("main", *children))}</html>\n'


def evaluation_page(folder: PublishedFolder) -> str:
    """The evaluation as one HTML file."""
    points = evaluation(folder)
    counts = {f: sum(p.finding == f for p in points) for f in (MET, NOT_MET, OTHERS)}
    summary = ", ".join(f"{n} {f}" for f, n in counts.items())
    sections = []
    for level, (name, about) in enumerate(LEVELS):
        sections += [tag("h2", name), tag("p", about, class_="muted")]
        sections += [_point(p) for p in points if p.level == level]
    return whole_page(
        f"Evaluation of {folder.title}", style_of(_STYLE),
        tag("h1", f"Evaluation of the privacy claim: {folder.title}"),
        tag("p", f"{len(folder.tables)} releases of {folder.day}. {len(points)} points: {summary}."),
        tag("p", _SOURCE, class_="muted"),
        tag("ol", *(tag("li", name) for name, _ in LEVELS), class_="levels"),
        *sections,
        tag("p", f"Plan digest {folder.first['plan']['digest']}.", class_="muted"),
    )  # fmt: skip


def _point(point: EvaluationPoint) -> Markup:
    return tag(
        "section",
        tag("h3", tag("span", point.finding, class_="pill"), point.asked),
        tag("p", point.answer),
        tag("p", f"Evidence: {point.evidence}.", class_="muted"),
        class_=f"point {point.finding.replace(' ', '-')}",
    )  # fmt: skip
