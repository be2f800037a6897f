"""From releases to the page: a disclosure officer's view of a plan after its release.

An office's own rules for printing are applied here: rounding, a minimum size, and thresholds of quality.

    [report.rules]
    round_to = 5          # counts as multiples of 5; ends of intervals outwards
    minimum = 10          # smaller counts are not printed
    care = 0.15           # "use with care" from this share of the value on, and "too noisy to use" from `noisy` on
    noisy = 0.3

They change the page and the workbook, after the noise. Files of values, certificates and machine formats keep the
released numbers. These rules neither add nor remove privacy.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator import Plan, Release
from tacit.curator.agreement import listed
from tacit.curator.cells import QualityFlag, QualityRule, flags_of, keys_at, rule_of
from tacit.curator.charging import Shared, charge
from tacit.curator.exact_answers import ExactAssignment
from tacit.curator.functions.trees import TreeAssignment
from tacit.curator.planning import Planned, title_of
from tacit.curator.request import file_stem
from tacit.curator.text import OfficeRules, PublicWords, beyond_groups, priced, question_words, three
from tacit.errors import InvalidParameter, TacitError
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, Bound, Guarantee, Neighbours, Priors, RandomData
from tacit.guarantees.units import GroupOf, People, Rows, Unit
from tacit.report.page import report_html
from tacit.report.pictures import MOST_CELLS, MOST_POINTS
from tacit.report.view import (
    BudgetPart,
    BudgetView,
    CellView,
    OfficerPart,
    ReleaseView,
    ReportView,
    Rest,
    officer_of,
)
from tacit.sources.axes import Bins, Cut, Listed, OpenAxis
from tacit.statistics.base import Question, base_unit

SMALL = "small"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrintedCells:
    """The printed form of a release: value, low and high of every cell, NaN for a missing one; flags and their rule."""

    value: Floats
    low: Floats
    high: Floats
    flags: list[str]
    rule: QualityRule
    more: tuple[QualityFlag, ...] = ()


def printed(release: Release, ends: list[Floats], rules: OfficeRules) -> PrintedCells:
    """The released numbers as the office prints them, unchanged if it has no rule."""
    rule, flags = rule_of(release), flags_of(release)
    if rules.care is not None or rules.noisy is not None:
        rule = replace(
            rule, care=rules.care or min(rule.care, rules.noisy or 1.0), noisy=rules.noisy or rule.noisy
        )
        far = release.estimate.farthest if rule.before_cut else replace(release.estimate, reach=None).farthest
        flags = rule.judged(
            np.ravel(release.estimate.value).astype(np.float64), np.ravel(far).astype(np.float64)
        )
    value, low, high = (np.asarray(e, dtype=np.float64) for e in ends)
    made = PrintedCells(value=value, low=low, high=high, flags=flags, rule=rule)
    if not release.planned.question.statistic.whole:
        return made
    if rules.round_to is not None:
        step = float(rules.round_to)
        rounded = (np.rint(value / step), np.floor(low / step), np.ceil(high / step))
        value, low, high = (r * step + 0.0 for r in rounded)
        made = replace(made, value=value, low=low, high=high)
    if rules.minimum is None:
        return made
    # By the released number itself, whatever it is rounded to.
    small = np.asarray(ends[0], dtype=np.float64) < rules.minimum
    gone = [np.where(small, np.nan, e) for e in (made.value, made.low, made.high)]
    label = f"fewer than {rules.minimum:,}"
    flag = QualityFlag(
        id=SMALL, label=label, explanation="smaller counts are not printed here; the files have the released numbers"
    )  # fmt: skip
    return replace(
        made, value=gone[0], low=gone[1], high=gone[2], more=(flag,),
        flags=[SMALL if s else f for s, f in zip(small.tolist(), flags, strict=True)],
    )  # fmt: skip


# What a release says about you, in two sentences: how much you can change, and how well somebody can guess.

STRENGTHS = (
    (0.55, "so that", "can change what is published hardly at all"),
    (0.75, "so that", "can change what is published only a little"),
    (0.9, "and yet", "can change what is published noticeably"),
)
WEAK = (1.0, "and yet", "can change what is published a great deal: the protection is weak")


def about_you(spent: Guarantee) -> tuple[str, ...]:
    """Two sentences about all releases so far, with this one; `spent` is its privacy loss.

    The number is the largest probability of a right guess between two versions of one unit's data, by somebody who
    knows all the others: (1 + delta(0)) / 2, for any kind of bound. Under random data it is an average, and
    under priors none is given.
    """
    if isinstance(spent.condition, Priors):
        return (
            "This answer is exact: no noise was added, and it is protected only by what others do not know.",
            f"What it says about you is limited {spent.condition}, and not otherwise.",
        )
    who, data = _you(spent.unit)
    try:
        guess = spent.average_guess(0.5)
    except TacitError:
        return (
            "Noise was added to these numbers so that they say little about any one of those who are protected.",
            f"Protected is {spent.unit}; how well somebody can guess about one of them is not known for this promise.",
        )
    _, so, how = next((words for words in STRENGTHS if guess <= words[0]), WEAK)
    what = f"what is recorded about {who}"
    if spent.unit.neighbours is Neighbours.ADD_OR_REMOVE and not isinstance(spent.unit, Rows):
        what = f"whether {who} took part, and {what},"
    on_average = ", on average over such data" if isinstance(spent.condition, RandomData) else ""
    percent = f"{math.ceil(1000 * guess - 1e-9) / 10:g}%"
    return (
        f"Noise was added to these numbers, {so} {what} {how}.",
        f"Somebody who knows everything about everybody else, and must guess between two versions of {data}, is right "
        f"at most {percent} of the time{on_average} with these numbers and all that was published before from this "
        "budget, where a coin is right 50%.",
    )


def _you(unit: Unit) -> tuple[str, str]:
    """The protected people, and the people whose data are guessed at."""
    if isinstance(unit, GroupOf):
        return f"you and {unit.size - 1} others", "your data and theirs"
    if isinstance(unit, People):
        return "you", "your data"
    return "you in any one row", "one of your rows"


LEADS = {"approximate": "epsilon", "concentrated": "rho", "gaussian": "mu", "pure": "epsilon"}
NOT_KNOWN = "no lower bound is known for this statistic"
FOR_A_TEST = "The noise came from a seeded source, for a test: these numbers must not be published."
SEEN_TRUTH = "Synthetic data: the truth is shown only because this survey is public and made up."


def report_of(
    plan: Plan, releases: Sequence[Release], *, budget: Guarantee, title: str = "",
    truth: Mapping[str, Sequence[float]] | None = None, words: PublicWords | None = None,
    metadata: OfficerPart | None = None, files: Sequence[tuple[str, str]] = (),
) -> str:  # fmt: skip
    """The whole page as HTML. `truth` is for data that were made up, by release."""
    return report_html(
        view_of(
            plan,
            releases,
            budget=budget,
            title=title,
            truth=truth,
            words=words,
            metadata=metadata,
            files=files,
        )
    )


def view_of(
    plan: Plan, releases: Sequence[Release], *, budget: Guarantee, title: str = "",
    truth: Mapping[str, Sequence[float]] | None = None, words: PublicWords | None = None,
    metadata: OfficerPart | None = None, files: Sequence[tuple[str, str]] = (),
) -> ReportView:  # fmt: skip
    """The contents of the page, as plain values: `words` are its labels, `desk` has the facts beside the numbers."""
    if truth is not None and not all(r.made_up for r in releases):
        raise InvalidParameter(
            parameter="truth", value="the truth", must="be of a table that was made up by tacit",
            hint="tacit twin and tacit demo make some; of any other table the truth is not shown",
        )  # fmt: skip
    words, metadata = words or PublicWords(), metadata or OfficerPart()
    views = tuple(_release(r, words, (truth or {}).get(r.name)) for r in releases)
    made = datetime.datetime.fromisoformat(releases[0].statement["made"])
    methods = tuple(dict.fromkeys(t for r in releases for t in r.statement["theorems"]))
    notes = [*_notes(releases, truth is not None), *words.rules.sentences]
    return ReportView(
        title=words.headline or title or "Released statistics",
        made_at=made,
        condition=_condition(plan),
        unit_sentence=_unit(plan),
        budget=_budget(plan, releases, budget),
        releases=views,
        methods=methods,
        synthetic=truth is not None,
        files=tuple(files),
        publisher=words.publisher,
        period=words.period,
        contact=words.contact,
        about_you=about_you(releases[-1].standing[0]),
        warnings=tuple(_warnings(plan, releases)),
        withdrawn=_withdrawn(releases),
        officer=officer_of(plan, releases, metadata=metadata, words=words, notes=notes),
    )


def _withdrawn(releases: Sequence[Release]) -> str:
    """The warning at the top of a page with withdrawn or replaced numbers; otherwise empty."""
    gone = [r for r in releases if r.corrections]
    if not gone:
        return ""
    which = "these numbers" if len(gone) == len(releases) else "some of these numbers"
    return f"Do not use {which}: the custodian withdrew or replaced them. Each release below says why."


def _warnings(plan: Plan, releases: Sequence[Release]) -> list[str]:
    """Sentences that the page must always show: the conditions of the promise, and reservations about it."""
    found = [_unit(plan)] if plan.gamma else []
    seen = dict.fromkeys(d for r in releases for d in r.data.get("seen", ()))
    found += [f"Known, and not counted in this: {d}." for d in seen]
    found += [s for r in releases for s in _filled_by_noise(r)]
    return found if all(r.publishable for r in releases) else [*found, FOR_A_TEST]


def _filled_by_noise(release: Release) -> list[str]:
    """Forbidden uses of synthetic rows, and the places where noise alone may have filled their cells."""
    said = release.statement.get("synthetic")
    if said is None:
        return []
    found = [f"Do not use the synthetic rows {release.name!r} for {'; '.join(said['not_for'])}."]
    weak = said["filled_by_noise"]
    if weak:
        worst = max(weak, key=lambda m: weak[m])
        which = "one measured margin" if len(weak) == 1 else f"{len(weak)} measured margins"
        found.append(
            f"Noise alone may have filled cells of the synthetic rows {release.name!r}: in {which} they hold more than "
            f"5% of the rows, at most {weak[worst]:.0%}, in {worst}."
        )
    return found


def _measured(release: Release) -> list[str]:
    """The measured margins of synthetic rows, with their noise."""
    said = release.statement.get("synthetic")
    if said is None:
        return []
    by_noise: dict[float, dict[str, int]] = {}
    for one in said["measured"]:
        name = " x ".join(one["margin"])
        times = by_noise.setdefault(one["noise_std"], {})
        times[name] = times.get(name, 0) + 1
    told = [
        f"{', '.join(name if n == 1 else f'{name} ({n} times)' for name, n in times.items())} with noise of "
        f"{std:.3g} rows a cell"
        for std, times in by_noise.items()
    ]
    public = [f"Public margins, as declared: {', '.join(said['public'])}."] if "public" in said else []
    return [f"Measured for the synthetic rows {release.name!r}: {'; '.join(told)}.", *public]


def _condition(plan: Plan) -> str:
    """The assumptions of an exact answer; empty for other releases."""
    assignment = plan.releases[0].assignment
    return assignment.sentence if isinstance(assignment, ExactAssignment) else ""


def _unit(plan: Plan) -> str:
    if plan.priors is not None:
        return f"Protected is {plan.unit}, under the condition above and under no other."
    if not plan.gamma:
        return f"Protected is {plan.unit}: the guarantees below are about that, and hold for each alike."
    return (
        f"This is random differential privacy, which is weaker than differential privacy. Protected is {plan.unit}, "
        f"{plan.charge.condition}. An outlier, or the only inhabitant of a cell, is not protected."
    )


def _notes(releases: Sequence[Release], synthetic: bool) -> list[str]:
    first = releases[0].statement
    covered = "; ".join(dict.fromkeys(t for r in releases for t in r.statement["intervals"]["do_not_cover"]))
    notes = [f"The intervals do not cover {covered}.", first["computational"]]
    notes += [sentence for r in releases for sentence in _measured(r)]
    return [*notes, SEEN_TRUTH] if synthetic else notes


def _budget(plan: Plan, releases: Sequence[Release], budget: Guarantee) -> BudgetView:
    last = releases[-1]
    lead = LEADS.get(budget.bound.kind, "epsilon")
    total, spent, left = (_amount(b, lead) for b in (budget.bound, last.spent, last.remaining))
    # These releases were paid for once, now or when they were first answered: the page is the same for both.
    paid = _amount(plan.charge.bound, lead)
    parts = []
    # Each release alone is read at the delta that the whole plan was charged at, so that the prices compare.
    # The stated float: certificates have that, and anybody who makes the page again from them knows no other number.
    delta = plan.charged.bound.parameters.get("delta")
    shared = (
        Shared(members=(0,), epsilon=None, delta=Fraction(delta))
        if isinstance(delta, float) and delta
        else None
    )
    for release in releases:
        try:
            own = charge(
                [release.planned.assignment], budget.bound, neighbours=plan.unit.neighbours, shared=shared
            )
        except TacitError:
            continue
        alone = replace(release.guarantee, bound=own.bound)
        parts.append(
            BudgetPart(release=file_stem(release.name), amount=_amount(own.bound, lead), words=priced(alone))
        )
    return BudgetView(
        kind=lead, total=total, spent=spent, remaining=left, total_words=priced(budget),
        spent_words=priced(last.standing[0]), remaining_words=priced(last.standing[1]), earlier=max(0.0, spent - paid),
        parts=tuple(parts), meaning=_meaning(budget),
    )  # fmt: skip


def _amount(bound: Bound, lead: str) -> float:
    value = bound.parameters.get(lead, 0.0)
    return float(value) if isinstance(value, float | int) and math.isfinite(value) else 0.0


@functools.lru_cache(maxsize=64)
def _meaning(guarantee: Guarantee) -> tuple[str, ...]:
    """Computes the sentences of one price once, since releases of one plan often have one price."""
    return tuple(_sentences(guarantee.explain()))


def _sentences(text: str) -> list[str]:
    return [s.strip().rstrip(".") + "." for s in text.split(". ") if s.strip()]


def _release(release: Release, words: PublicWords, truth: Sequence[float] | None) -> ReleaseView:
    planned, said = release.planned, release.statement
    statistic = said["statistic"]
    told = printed(release, _ends(release), words.rules)
    ends, flags = [told.value, told.low, told.high], told.flags
    shown, rest = _shown(planned.question, ends, flags)
    columns = keys_at(planned.question, release.noisy, shown)
    if statistic["kind"] == "quantiles" and len(statistic["at"]) == 1:
        # One share for all: the title and the question name it.
        columns = {name: held for name, held in columns.items() if name != "share"}
    named = [words.labelled(name, held) for name, held in columns.items()]
    keys = list(zip(*named, strict=True)) if named else [()] * len(shown)
    cells = tuple(
        _cell(
            k,
            *(float(e[i]) for e in ends),
            flag=flags[i],
            truth=None if truth is None else float(truth[i]),
            days=release.dated,
        )
        for k, i in zip(keys, shown.tolist(), strict=True)
    )
    error, floor = said["error"], said["price_of_privacy"]
    stem = file_stem(release.name)
    return ReleaseView(
        name=stem,
        kind=statistic["kind"].replace("_", " "),
        corrections=tuple(f"Do not use this release: {c}." for c in release.corrections),
        title=_title(planned, release.name, words),
        question=question_words(_in_words(statistic, words)) + _population(planned),
        cells=cells,
        columns=tuple(map(words.column, columns)),
        certificate=f"certificates/{stem}.json",
        values=f"values/{stem}.csv",
        price=priced(release.guarantee),
        measure=_measure(_in_words(statistic, words), said["schema"], statistic),
        confidence=float(planned.ask.confidence),
        condition=_given(release),
        mechanism=_mechanism(said),
        theorems=tuple(said["theorems"]),
        expected_error=error["expected_absolute_error"],
        lower_bound=floor["lower_bound"],
        ratio=floor["ratio"],
        ratio_reason="" if floor["ratio"] is not None else floor["reason"] or NOT_KNOWN,
        rule=told.rule,
        more_flags=told.more,
        rest=rest,
        covers="sampling and noise"
        if planned.ask.sampling or planned.question.statistic.declares
        else "the noise",
        tree=_paths(release),
        left_out=left_out(planned.question, words),
    )


NAMED = ("column", "numerator", "denominator", "outcome", "events", "time", "survey_weight")
"""The fields of statistics that name a column without which a row is not counted."""


def _names(value: Any) -> list[Any]:
    """The columns of a list of columns, or of pairs that begin with one."""
    held = value if isinstance(value, tuple) else ()
    return [v[0] if isinstance(v, tuple) else v for v in held]


def left_out(question: Question, words: PublicWords) -> tuple[str, ...]:
    """The uncounted rows, as phrases: the declarations leave them out, for any data."""
    statistic, schema = question.statistic, question.schema
    found = []
    where = getattr(statistic, "where", None)
    if where is not None:
        found.append(f"rows that do not satisfy {where}")
    read = {a.column: a for r in question.requests for a in r.axes}
    # A function's axes are the points at which it is shown; they leave no row out.
    shown = () if statistic.fits == "function" else question.axes
    axes = tuple((read | {a.column: a for a in shown}).values())
    for axis in axes:
        if isinstance(axis, Listed) and not axis.always:
            found.append(f"rows without one of the declared keys of {words.column(axis.column)}")
        elif isinstance(axis, Bins) and not axis.always:
            found.append(f"rows without a value of {words.column(axis.column)} inside the bins")
        elif isinstance(axis, OpenAxis):
            found.append(f"rows without a key of {words.column(axis.column)}, and keys with too few rows")
    # Quantiles and densities are counted in fine ranges, where a row without a value has no place.
    keyed = {a.column for a in axes if a.always or not isinstance(a, Cut)}
    named = [getattr(statistic, word, None) for word in NAMED]
    named += [name for word in ("totals", "columns") for name in _names(getattr(statistic, word, None))]
    for name in dict.fromkeys(n for n in named if isinstance(n, str)):
        if name in schema and schema[name].may_be_missing and name not in keyed:
            found.append(f"rows without a value of {words.column(name)}")
    unit, _ = base_unit(question.unit)
    if isinstance(unit, People):
        most = unit.at_most
        found.append(f"rows of a person beyond {most:,}" if most > 1 else "all rows of a person but one")
    if beyond := beyond_groups(question):
        found.append(beyond)
    return tuple(found)


def _paths(release: Release) -> tuple[tuple[str, ...], ...]:
    """The path to each leaf of a decision tree; empty for other releases."""
    assignment = release.planned.assignment
    if not isinstance(assignment, TreeAssignment):
        return ()
    tree = assignment.tree(release.noisy)
    return tuple(tuple(tree.rule(k)) for k in range(tree.shape.leaves))


def _ends(release: Release) -> list[Any]:
    """Value, low and high of all cells; days as whole days, as in the files."""
    names = ("value", "low", "high")
    if not release.dated:
        return [np.ravel(getattr(release.estimate, n)) for n in names]
    held, first = release.columns, datetime.date(1970, 1, 1)
    return [np.array([np.nan if d is None else float((d - first).days) for d in held[n]]) for n in names]


def _title(planned: Planned, name: str, words: PublicWords) -> str:
    """Its label, in both languages where there are two; otherwise its name."""
    own = words.release(name)
    return own if own != name else _name(planned, name)


def _name(planned: Planned, name: str) -> str:
    """The given name; a name made from the statistic gets blanks."""
    return name.replace("-", " ").replace("_", " ") if name == title_of(planned.ask) else name


MOST_LISTED = 5000
"""Values of several kinds (curves, numbers at risk, coefficients) that a page shows, in a picture and a table."""
MOST_MARGINS = 3000
"""Margins of synthetic rows whose errors a page shows, in a matrix and a folded table."""


def _shown(question: Question, ends: Sequence[Any], flags: Sequence[str]) -> tuple[Any, Rest | None]:
    """The cells of a page: all of a small table or the largest of a large one, and a line about the omitted
    ones.
    """
    value = ends[0]
    if question.statistic.fits == "synthesis" and value.size <= MOST_MARGINS:
        return np.arange(value.size), None  # a matrix shows them all
    if question.statistic.layout == "listed" and value.size <= MOST_LISTED:
        return np.arange(value.size), None  # its picture is made of all of them
    if value.size <= MOST_POINTS or (question.statistic.layout == "shares" and not question.axes):
        return np.arange(value.size), None
    there = np.isfinite(value)
    if question.statistic.coarse_first:
        return np.arange(MOST_CELLS), _rest(ends, flags)
    ranked = np.where(there, value, -np.inf)
    least = np.partition(ranked, value.size - MOST_CELLS)[value.size - MOST_CELLS]
    near = np.flatnonzero(ranked >= least)
    return near[np.lexsort((near, -ranked[near], ~there[near]))][:MOST_CELLS], _rest(ends, flags)


def _rest(ends: Sequence[Any], flags: Sequence[str]) -> Rest:
    """All cells, in a line."""
    value, low, high = ends
    known = np.isfinite(value) & ~np.isnan(low) & ~np.isnan(high)
    counts = {flag: n for flag, n in Counter(flags).items() if flag}
    wide = np.fmax(high, value)[known] - np.fmin(low, value)[known]
    return Rest(
        total=value.size, flag_counts=counts, typical_width=float(np.median(wide)) if wide.size else None
    )


def _cell(
    keys: tuple[Any, ...],
    value: float,
    low: float,
    high: float,
    *,
    flag: str,
    truth: float | None,
    days: bool = False,
) -> CellView:
    shown = value if math.isfinite(value) else None
    known = not (math.isnan(low) or math.isnan(high))
    seen = truth if truth is not None and math.isfinite(truth) else None
    ends = (min(low, value), max(high, value)) if known and shown is not None else (None, None)
    return CellView(keys=keys, value=shown, low=ends[0], high=ends[1], flag=flag, truth=seen, days=days)


def _measure(statistic: Mapping[str, Any], schema: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """The quantity behind the values."""
    kind = statistic["kind"]
    if statistic.get("kernel") == "linear" or kind in ("additive", "linear", "logistic"):
        return "weights"
    if kind == "decision_tree":
        return "rows"
    if kind == "regression_function":
        return str(statistic["outcome"])
    if kind == "classifier":
        label = statistic["label"]
        classes = schema[own["label"]].get("values") or [False, True]
        if len(classes) == 2:
            return f"above 0 where {label} is told to be {classes[1]}, below where {classes[0]}"
        return f"one function for each {label}: the largest one tells it"
    return str({"count": statistic.get("of", "rows"), "margins": "rows"}.get(kind, ""))


def _in_words(statistic: Mapping[str, Any], words: PublicWords) -> dict[str, Any]:
    """The statistic with the labels of its columns."""

    def labelled(value: Any) -> Any:
        if isinstance(value, str):
            return words.column(value)
        if isinstance(value, list | tuple):
            return [labelled(v) for v in value]
        return (
            {**value, "column": words.column(value["column"])}
            if isinstance(value, Mapping) and "column" in value
            else value
        )

    named = ("column", "columns", "by", "numerator", "denominator", "label", "outcome")
    return {name: labelled(value) if name in named else value for name, value in statistic.items()}


def _population(planned: Planned) -> str:
    """The population, or the values before clamping, behind the intervals, with the assumptions; else empty."""
    told, before = (planned.question.details.get(n, ()) for n in ("sample", "assumes"))
    out = ""
    if told:
        out = f" The intervals are for the population: they allow for sampling and for noise, if {'; '.join(told)}."
    if before:
        out += f" They are for values before they were clamped at the upper bound, if {'; '.join(before)}."
    if planned.agrees_with:
        others = listed(planned.agrees_with)
        out += f" Its totals agree with those of {others}, and are estimated from all of them together."
    if planned.rests:
        out += f" The intervals assume that {'; '.join(planned.rests)}."
    return out


def _given(release: Release) -> str:
    """The conditions of the releases whose bound does not hold always."""
    told = release.statement.get("random_data", {}).get("sentence", "")
    condition = release.guarantee.condition
    return "" if isinstance(condition, Always | Priors) else f"It holds {condition}. {told}".rstrip()


def _mechanism(said: Mapping[str, Any]) -> str:
    laws = []
    for one in said["mechanism"]["noise"]:
        size = one.get("noise_scale", one.get("noise_std"))
        word = "scale" if "noise_scale" in one else "standard deviation"
        laws.append(f"{one['distribution']}, {word} {_decimal(size)}" if size else str(one["distribution"]))
    return f"{said['mechanism']['chosen']}. " + (
        ("Exact noise: " if "fit" in said["mechanism"] else "Exact noise, in grid steps: ")
        + "; ".join(laws)
        + "."
        if laws
        else ""
    )


def _decimal(text: str) -> str:
    from fractions import Fraction

    return three(float(Fraction(text)))
