"""Releases of one plan that agree with each other: `agree=True` at tables and counts of the same rows.

Post-processing of recorded answers: noise, events and charge are those of the same releases without `agree`.
The published numbers of each member follow from the noisy numbers of all (`tacit.statistics.agreement`), and
are computed again from the record wherever a release is made. Theorem `agreeing-tables`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.curator.assignments import Assignment, NoisyParts, assign
from tacit.curator.charging import Price
from tacit.curator.intervals import Estimate, Expected, noise_by_part
from tacit.curator.request import Given, Query
from tacit.errors import InvalidParameter
from tacit.mechanisms import Laplace, RoundedGaussian
from tacit.sources.axes import Axis
from tacit.sources.expressions import normal
from tacit.statistics.agreement import AgreeingTable, AgreeingTables, NoisyBlock, joined
from tacit.statistics.base import Question, base_unit
from tacit.statistics.counts import Count
from tacit.statistics.forms import reals
from tacit.statistics.totals import CROSS, TOTAL, TableWithTotals, block_variance, combination

if TYPE_CHECKING:
    from tacit.curator.planning import Plan, Planned

NO_FLOOR = "its error rests on the noise of other releases, too"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _refuse(a: Query, must: str, hint: str = "") -> InvalidParameter:
    return InvalidParameter(parameter="agree", value=a.name or a.statistic.kind, must=must, hint=hint)


def check_agreement(asks: Sequence[Query], questions: Sequence[Question], given: Given | None) -> None:
    """Refuses releases that cannot agree: other statistics, other rows, other keys of one column, columns in a ring."""
    members = [(a, q) for a, q in zip(asks, questions, strict=True) if a.agree]
    if not members:
        return
    if len(members) == 1:
        raise _refuse(members[0][0], "stand at two releases of the plan or more", "it agrees with the others")
    first, keys = members[0][1], dict[str, Axis]()
    for a, question in members:
        statistic = question.statistic
        if type(statistic) not in (TableWithTotals, Count) or getattr(statistic, "of", "rows") != "rows":
            raise _refuse(a, "stand at tables and counts of rows", "kind = table, count or contingency")
        if not question.known_keys:
            raise _refuse(a, "stand at counts over declared keys", "declare category([...])")
        if a.public is not None or a.noise or a.sampling or a.given is not None or given is not None:
            raise _refuse(
                a, "stand without public totals, bounded noise, sampling and assumptions on the data"
            )
        if a.price is not None and a.price.kind == "accuracy":
            raise _refuse(a, "have a price, and no accuracy", "the numbers have errors of several sizes")
        if _filter(question) != _filter(first):
            raise _refuse(a, "have the same filter in every release", "other rows have other totals")
        limited = getattr(base_unit(question.unit)[0], "groups", None) is not None
        if limited and any(r.groups for r in question.requests):
            hint = "contingency([...]) counts the rows that tables count"
            raise _refuse(a, "count all rows of a person that are used, whatever their groups", hint)
        for axis in question.axes:
            if keys.setdefault(axis.column, axis) != axis:
                raise _refuse(a, "have the same keys or bins of a column everywhere", axis.column)
    joined([tuple(axis.column for axis in q.axes) for _, q in members])


def _filter(question: Question) -> str:
    where: Any = question.statistic.where
    return "" if where is None else str(normal(where, question.schema))


def assign_counts(question: Question, price: Price) -> Assignment:
    """Independent noise on every number, whose combinations have a known law."""
    return assign(question, price)


def family_of(releases: Sequence[Planned]) -> tuple[list[int], AgreeingTables] | None:
    """The places of the agreeing releases, and their tables; None if no release was asked to agree."""
    places = [i for i, r in enumerate(releases) if r.ask.agree]
    if not places:
        return None
    sizes = {a.column: a.size or 0 for i in places for a in releases[i].question.axes}
    return places, AgreeingTables(
        sizes=tuple(sizes.items()), members=tuple(_member(releases[i]) for i in places)
    )


def _member(planned: Planned) -> AgreeingTable:
    question, noise = planned.question, noise_by_part(planned.assignment.noise)
    names = tuple(a.column for a in question.axes)
    statistic = question.statistic
    shown = tuple(statistic.shown) if isinstance(statistic, TableWithTotals) else (names,)
    blocks = tuple(
        NoisyBlock(columns=tuple(a.column for a in p.axes), law=noise.get(p.name)) for p in question.parts
    )
    if not all(isinstance(b.law, Laplace | RoundedGaussian | None) for b in blocks):
        raise _refuse(planned.ask, "stand at releases with independent Laplace or Gaussian noise")
    whole = next(i for i, p in enumerate(question.parts) if len(p.axes) == len(names))
    return AgreeingTable(columns=names, shown=shown, blocks=blocks, whole=whole)


def with_agreement(releases: list[Planned]) -> list[Planned]:
    """The releases with the errors that members of the family have together."""
    found = family_of(releases)
    if found is None:
        return releases
    places, family = found
    out = list(releases)
    rests = _same_rows([releases[i] for i in places])
    for which, place in enumerate(places):
        planned = releases[place]
        others = tuple(releases[i].name for i in places if i != place)
        out[place] = replace(
            planned, agrees_with=others, rests=rests, expected=_expected(planned, family, which, others)
        )
    return out


def _same_rows(members: Sequence[Planned]) -> tuple[str, ...]:
    """The assumption of the intervals if one table counts a row without some key and another does not."""
    held = [{a.column for a in r.question.axes} for r in members]
    loose = {a.column for r in members for a in r.question.axes if not a.always}
    open_ = sorted(c for c in loose if not all(c in own for own in held))
    if not open_:
        return ()
    told, keys = listed([r.name for r in members]), listed(open_)
    return (
        f"every row that one of {told} counts is counted by all of them, as it has a declared key in {keys}",
    )


def _expected(planned: Planned, family: AgreeingTables, which: int, others: Sequence[str]) -> Expected:
    level, member = planned.expected.confidence, family.members[which]
    halves = family.halves(which, level)
    variance = sum(
        block_variance(law) * float(counts @ weights**2)
        for law, weights, counts in combination(family.sizes, family.laws, member.columns)
    )
    told = [f"{CROSS.join(of) or TOTAL} ± {h:,.3g}" for of, h in halves.items() if of != member.columns]
    about = f"a cell, estimated from {listed((planned.name, *others))} together"
    return Expected(
        mean=math.sqrt(2 * variance / math.pi), within=halves[member.columns], confidence=level,
        about="; totals: ".join([about, *([", ".join(told)] if told else [])]), floor_reason=NO_FLOOR,
    )  # fmt: skip


def agreed(plan: Plan, answers: Sequence[NoisyParts]) -> dict[int, Estimate]:
    """Values and intervals of the releases that agree, by their places in the plan."""
    found = family_of(plan.releases)
    if found is None:
        return {}
    places, family = found
    noisy = [[reals(answers[i].parts[p.name]) for p in plan.releases[i].question.parts] for i in places]
    told = family.answers(noisy, [float(plan.releases[i].ask.confidence) for i in places])
    out = {}
    for place, member, numbers in zip(places, family.members, told, strict=True):
        in_rows = plan.releases[place].question.statistic.layout == "listed"
        shape = None if in_rows else tuple(dict(family.sizes)[c] for c in member.columns)
        value, low, high, reach = (n if shape is None else np.reshape(n, shape) for n in numbers)
        out[place] = Estimate(value=value, low=low, high=high, reach=reach)
    return out
