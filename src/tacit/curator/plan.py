"""A plan: releases with their noise, price and expected errors, fixed before a row is read. It has no value.

Releases without a price of their own share the plan's price (`tacit.curator.dividing`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

from tacit.accounting import events
from tacit.accounting.codec import to_record
from tacit.accounting.events import Event
from tacit.curator import sampling
from tacit.curator.asks import Ask
from tacit.curator.charges import Charged, Shared, charge, must_cover
from tacit.curator.chooser import choose
from tacit.curator.dividing import divided
from tacit.curator.exact_answers import ExactTreatment, priors_of, treat_exactly
from tacit.curator.expected_error import Expected, expected
from tacit.curator.given import Assumed, ExactGiven, Given, given_of
from tacit.curator.names import check_names, folded
from tacit.curator.prices import Price
from tacit.curator.random_counts import condition_of, declared_by, gamma_of
from tacit.curator.random_plans import on_random_data
from tacit.curator.request import earlier_digests, request_digest
from tacit.curator.treatments import Treatment
from tacit.errors import EmptyComposition, NoLaw
from tacit.exact.rounding import up
from tacit.guarantees import Always, Bound, BoundedAdversary, Guarantee, Priors, RandomData, Unit
from tacit.guarantees.arguments import instance, listed
from tacit.guarantees.declarations import FIXED_PARAMETERS
from tacit.sources.schema import Schema
from tacit.statistics.base import Question

__all__ = ["Plan", "Planned", "chosen", "make_plan", "plan_charge", "title_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One release of a plan: the question, its noise, what that promises and how far it will err."""

    ask: Ask
    question: Question
    treatment: Treatment
    guarantee: Guarantee
    expected: Expected
    plain: Treatment | None = None
    """What differential privacy would get, beside a release that is private on random data only."""

    @property
    def name(self) -> str:
        """The release's name, which its files carry."""
        return self.ask.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Releases that are fixed together, and their common price in the budget's terms.

    `digest` is that of the request (`tacit.curator.request`): of what is asked, and of nothing that was chosen. Of a
    plan that is read from a record it is the digest that was charged, whichever version wrote it.
    """

    releases: tuple[Planned, ...]
    unit: Unit
    schema: Schema
    charged: Charged
    digest: str
    earlier: tuple[str, ...] = ()
    """The digests of the request in earlier formats, by which it may be on record."""
    reading: dict[str, Any] = field(default_factory=dict, hash=False)
    budget: Bound | None = None
    """What it is paid from, to tell prices as parts of it; None where several budgets pay."""
    total: Price | None = None
    """The price that releases without one of their own share."""
    given: Given | None = None
    """What releases without words of their own assume of the data."""
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What follows from the plan alone and is made once: its record for the ledger, what certificates say of it."""

    @property
    def event(self) -> Event:
        """All that will be run, as one event."""
        found = [e for r in self.releases for e in r.treatment.events]
        if not found:
            return events.ApproximateEvent(epsilon=0.0, delta=0.0)
        return found[0] if len(found) == 1 else events.ComposedEvent(events=tuple(found))

    @property
    def charge(self) -> Guarantee:
        """What the ledger is charged; under RandomData where any release is, with the sum of their gammas."""
        if "charge" not in self.kept:
            self.kept["charge"] = self._charge()
        return cast("Guarantee", self.kept["charge"])

    def _charge(self) -> Guarantee:
        declared = [FIXED_PARAMETERS] if self.charged.theorem == "compose-profile" else []
        declared += [d for r in self.releases for d in r.guarantee.declared]
        # Ledgers add up bounds that hold always; what holds against bounded adversaries is recorded beside the charge.
        declared += [
            str(r.guarantee.condition)
            for r in self.releases
            if isinstance(r.guarantee.condition, BoundedAdversary)
        ]
        if not self.gamma:
            return Guarantee(
                bound=self.charged.bound,
                unit=self.unit,
                condition=self.priors or Always(),
                declared=tuple(dict.fromkeys(declared)),
            )
        return Guarantee(
            bound=self.charged.bound,
            unit=self.unit,
            condition=RandomData(gamma=up(self.gamma)),
            declared=tuple(dict.fromkeys(declared)),
        )

    @property
    def gamma(self) -> Fraction:
        """The share of the data on which the charge may fail, exactly: the sum over the releases."""
        return sum((gamma_of(r.treatment) for r in self.releases), Fraction(0))

    @property
    def priors(self) -> Priors | None:
        """The priors under which the charge holds, for an exact answer, which is alone in its plan."""
        return priors_of(self.releases[0].treatment)

    @property
    def exact(self) -> dict[str, Fraction]:
        """The charge's numbers as fractions, for the ledger."""
        return self.charged.exact | ({"gamma": self.gamma} if self.gamma else {})

    @property
    def theorems(self) -> tuple[str, ...]:
        """By what the releases of the plan are added up."""
        return (self.charged.theorem, *(("compose-random-data",) if self.gamma else ()))

    @property
    def record(self) -> dict[str, Any]:
        """The event for the ledger. An accountant who knows nothing of gammas cannot read one under RandomData."""
        if "record" not in self.kept:
            self.kept["record"] = json.dumps(event_record(to_record(self.event), self.gamma, self.priors))
        return cast("dict[str, Any]", json.loads(self.kept["record"]))

    def __getitem__(self, name: str) -> Planned:
        for release in self.releases:
            if release.name == name:
                return release
        raise KeyError(name)

    def __str__(self) -> str:
        from tacit.curator.text import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from tacit.curator.text import plan_html

        return plan_html(self)


def event_record(record: dict[str, Any], gamma: Fraction, priors: Priors | None = None) -> dict[str, Any]:
    """An event's record, and given what its bound holds."""
    if priors is not None:
        return {**record, "given": {"priors": priors.family, "unknown_rows": priors.unknown_rows}}
    return {**record, "given": {"random_data": str(gamma)}} if gamma else record


def make_plan(
    asks: Sequence[Ask], *, schema: Schema, unit: Unit, budget: Bound, total: Price | None = None,
    given: Assumed = None, reading: Mapping[str, Any] | None = None,
) -> Plan:  # fmt: skip
    """The plan for these asks; every error of names, types, bounds and prices appears here, nothing is read.

    `given` is what the whole plan assumes of the data; releases without words of their own share its gamma. `reading`
    is how the data are to be read, where something is declared about that.
    """
    asks = listed("asks", asks, must="be a list of asks")
    if not asks:
        raise EmptyComposition(what="the plan", hint="ask for at least one statistic")
    for a in asks:
        instance("asks", a, Ask, must="be a list of asks", hint="tacit.ask(statistic, ...) makes one")
    for name, value, kind in (("schema", schema, Schema), ("unit", unit, Unit), ("budget", budget, Bound)):
        instance(name, value, kind, must=f"be a {kind.__name__}")
    if total is not None:
        instance("total", total, Price, must="be a Price", hint="tacit.curator.price(epsilon=1) makes one")
    if reading is not None:
        instance("reading", reading, Mapping, must="be a table of words", hint='{"separator": ";"}')
    given, asked = given_of(given), asks
    asks = _named(asks)
    questions = _questions(asks, schema, unit)
    prices = divided(asks, questions, total)
    treatments: list[Treatment] = []
    chosen: dict[tuple[int, Price], Treatment] = {}
    for a, question, price in zip(asks, questions, prices, strict=True):
        if a.sampling:
            sampling.check(question, unit)
        place = (id(question), price)
        if place not in chosen:
            chosen[place] = choose(question, price, budget=budget)
        treatments.append(chosen[place])
    wanted = [*zip(questions, prices, treatments, strict=True)]
    treated = _exactly(asks, questions, prices, given) or on_random_data(
        asks, wanted, given, unit=unit, budget=budget
    )
    releases = [
        _planned(a, question, treatment, plain, unit)
        for a, plain, (question, treatment) in zip(asks, treatments, treated, strict=True)
    ]
    charged = _charged(releases, budget, unit, total)
    words: Any = {
        "schema": schema,
        "unit": unit,
        "total": total,
        "given": given,
        "reading": dict(reading or {}),
    }
    return Plan(
        releases=tuple(releases), unit=unit, schema=schema, charged=charged, digest=request_digest(asked, **words),
        earlier=earlier_digests(asked, **words), reading=words["reading"], budget=budget, total=total, given=given,
    )  # fmt: skip


def chosen(
    plan: Plan, treatments: Sequence[tuple[Treatment, Treatment | None]], *, charged: Charged, digest: str
) -> Plan:
    """The same request with the treatments and the charge that a record has: what was chosen then."""
    releases = [
        _planned(r.ask, r.question, treatment, plain or treatment, plan.unit)
        for r, (treatment, plain) in zip(plan.releases, treatments, strict=True)
    ]
    return replace(plan, releases=tuple(releases), charged=charged, digest=digest)


def _exactly(
    asks: Sequence[Ask], questions: Sequence[Question], prices: Sequence[Price], given: Given | None
) -> list[tuple[Question, Treatment]] | None:
    """The one exact answer of a plan; None where none is asked for. Beside it nothing may be published."""
    words = [a.given if a.given is not None else given for a in asks]
    exact = [w for w in words if isinstance(w, ExactGiven)]
    if not exact:
        return None
    if len(asks) > 1 or asks[0].public is not None or asks[0].sampling or asks[0].consistent:
        raise NoLaw(
            operation="an exact answer beside something else",
            reason="what is published beside it, noise or not, is knowledge about the same rows",
            counterexample="the exact count of all rows, and the exact count of all rows but one",
            hint="an exact answer is a plan by itself, as it is",
        )
    return [treat_exactly(questions[0], prices[0], exact[0])]


def _planned(a: Ask, question: Question, treatment: Treatment, plain: Treatment, unit: Unit) -> Planned:
    def error_of(one: Treatment) -> Expected:
        return expected(question, one, confidence=a.confidence, rows=a.rows, sampling=a.sampling)

    error = error_of(treatment)
    if gamma_of(treatment):
        error = error.beside(error_of(plain))
    must_cover(treatment.bound, treatment.events, neighbours=unit.neighbours, of=f"the bound of {a.name!r}")
    made = Guarantee(
        bound=treatment.bound,
        unit=unit,
        condition=priors_of(treatment) or condition_of(treatment),
        declared=treatment.declared if isinstance(treatment, ExactTreatment) else declared_by(treatment),
    )
    return Planned(
        ask=a, question=question, treatment=treatment, guarantee=_promise(a, made), expected=error,
        plain=plain if gamma_of(treatment) else None,
    )  # fmt: skip


def _questions(asks: Sequence[Ask], schema: Schema, unit: Unit) -> list[Question]:
    """The question of each ask; a statistic that is asked several times, itself and no equal one, is one question."""
    seen: dict[int, Question] = {}
    out = []
    for a in asks:
        if id(a.statistic) not in seen:
            seen[id(a.statistic)] = a.statistic.on(schema, unit)
        question = seen[id(a.statistic)]
        out.append(question if a.public is None else a.public.on(question))
    return out


def _promise(a: Ask, guarantee: Guarantee) -> Guarantee:
    """With public totals the bound compares tables that agree on them, and says so."""
    return guarantee if a.public is None else a.public.restrict(guarantee)


def _named(asks: Sequence[Ask]) -> list[Ask]:
    """Every ask with a name of its own; names that are not given are made of the statistic."""
    taken = [a.name for a in asks if a.name]
    check_names(taken)
    out, used = [], set(map(folded, taken))
    for a in asks:
        if not a.name:
            base = title = title_of(a)
            number = 2
            while folded(title) in used:
                title, number = f"{base}-{number}", number + 1
            used.add(folded(title))
            a = replace(a, name=title)
        out.append(a)
    return out


def title_of(a: Ask) -> str:
    """The name of an ask that was given none, but for its number among several."""
    words = [a.statistic.kind]
    for key in ("column", "numerator", "denominator", "columns", "of"):
        value = getattr(a.statistic, key, None)
        listed = value if isinstance(value, list | tuple) else [value] if value else []
        words += [str(v) for v in listed if v != "rows"]
    keys = [b if isinstance(b, str) else b.column for b in a.statistic.by]
    words += ["by", *keys] if keys else []
    return re.sub(r"[^A-Za-z0-9_-]+", "-", "-".join(words)).strip("-")[:70] or "release"


def plan_charge(plan: Plan) -> Charged:
    """What a plan costs by today's account of what was chosen for it."""
    assert plan.budget is not None
    return _charged(plan.releases, plan.budget, plan.unit, plan.total)


def _charged(releases: Sequence[Planned], budget: Bound, unit: Unit, total: Price | None) -> Charged:
    shared = None
    if total is not None and total.delta is not None:
        members = [i for i, r in enumerate(releases) if r.ask.price is None]
        shared = Shared(members=members, epsilon=total.epsilon, delta=total.delta)
    return charge([r.treatment for r in releases], budget, neighbours=unit.neighbours, shared=shared)
