"""Plans that were made before: the same question at the same price is priced once a curator.

A plan follows from the query, the schema, the unit and the budget. No row is read for it, so keeping it reveals
nothing. Two values are the same query if they are equal and print alike: 1, 1.0 and True are equal, but a
certificate shows them differently, and 1 and 1.0 are one question.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from typing import Any, cast

from tacit.accounting import events
from tacit.accounting.codec import to_record
from tacit.accounting.events import Event
from tacit.curator.accuracy import assign_accuracy
from tacit.curator.agreement import assign_counts, check_agreement, with_agreement
from tacit.curator.assignments import (
    DECLARED,
    Applied,
    Assignment,
    assign,
    assign_bounded,
    assign_totals,
    cells_of,
    compared,
    groups_of,
    laplace,
    law_of,
    pure_within,
)
from tacit.curator.charging import Charged, Price, Shared, charge, must_cover
from tacit.curator.exact_answers import assign_exactly
from tacit.curator.fitted import fitted
from tacit.curator.functions.assignment import assign_function
from tacit.curator.functions.by_test import assign_test
from tacit.curator.functions.fits import PureDensity
from tacit.curator.functions.trees import assign_tree
from tacit.curator.intervals import Expected, expected
from tacit.curator.quantile_choice import assign_quantiles, first_ranks
from tacit.curator.random_counts import assign_on_random_data, fits
from tacit.curator.request import (
    ALWAYS,
    Assumed,
    ExactGiven,
    Given,
    Query,
    check_names,
    check_unit,
    earlier_digests,
    folded,
    given_of,
    no_mechanism,
    request_digest,
    shares_of,
)
from tacit.curator.selected import assign_clamping_bounds, assign_keys, assign_sparse
from tacit.curator.synthesised import assign_synthesis
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.canonical import formerly
from tacit.exact.checks import flag, instance, listed
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down, up
from tacit.guarantees import (
    Always,
    Bound,
    BoundedAdversary,
    Guarantee,
    Priors,
    RandomData,
    Unit,
    gaussian_budget,
)
from tacit.guarantees.conditions import FIXED_PARAMETERS
from tacit.mechanisms import L1, Staircase
from tacit.sources.axes import Binned
from tacit.sources.schema import Schema
from tacit.statistics import Mean, Proportion
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Linear

# The chooser: which mechanism a question gets at a price, and why.
#
# A question says what it is about: unknown keys, a huge domain, ranks, or vectors of integers with their sensitivity.
# For tables of counts every mechanism that fits is a candidate (`candidates`), calibrated to the price before it is
# compared, and the one with the least expected absolute error of a cell is taken, each table counting alike. A
# candidate must be better than those before it by one part in a thousand, so that ties and the floats of another
# machine decide nothing (docs/decisions/0015-the-curator-runs-mechanisms.md).

FITTING: dict[str, Callable[[Question, Price], Assignment]] = {
    "clamping bounds": assign_clamping_bounds, "thresholds": assign_sparse, "synthesis": assign_synthesis,
    "test": assign_test, "totals": assign_totals, "tree": assign_tree,
}  # fmt: skip
"""Mechanisms for statistics that are no sums of noisy numbers."""
BETTER = 0.999
"""A later candidate is chosen if its error is at most this share of the best error so far."""
CLEARLY = 0.95
"""The same for staircase noise."""
LOUD = 100
"""From this epsilon on a single number has practically no noise, in any distribution."""


def choose(
    question: Question,
    price: Price,
    *,
    budget: Bound | None = None,
    rows: int | None = None,
    earlier: bool = False,
    noise: str = "",
) -> Assignment:
    """The assignment of a question at this price; `budget` decides which noise is cheaper, `rows` is a public number
    of rows.

    With `earlier` it is what 0.1.0 chose, for its records.
    """
    if noise == "bounded":
        return assign_bounded(question, price)
    if question.statistic.fits == "ranks":
        return first_ranks(question, price) if earlier else assign_quantiles(question, price, rows)
    if question.statistic.fits == "function":
        return assign_function(question, price, earlier=earlier)
    of_its_own = FITTING.get(question.statistic.fits)
    if of_its_own is None and not question.known_keys:
        of_its_own = assign_keys
    if of_its_own is not None:
        return of_its_own(question, price)
    if price.kind == "accuracy":
        return assign_accuracy(question, price, budget=budget, others=lambda p: dict(candidates(question, p)))
    direct = assign(question, price)
    return _best(direct, dict(candidates(question, price))) if direct.noise else direct


def candidates(question: Question, price: Price) -> Iterator[tuple[str, Assignment]]:
    """Mechanisms for all parts at once, and for one number alone, beside independent noise on every number."""
    if question.tables is not None:
        yield from fitted(question, price)
    yield from _single(question, price)


def _single(question: Question, price: Price) -> Iterator[tuple[str, Assignment]]:
    """Staircase noise, if its error is clearly below that of Laplace noise, for one number, many steps and a
    large epsilon.

    Its event has only its epsilon, so a slightly smaller error would cost a worse composition.
    """
    groups, epsilon = groups_of(question), pure_within(price)
    if epsilon is None or len(groups) != 1 or not isinstance(question.form, Linear | Average):
        return
    parts, l1, _ = groups[0]
    if cells_of(question, parts) != 1 or l1 < 2 or epsilon > LOUD:
        return
    stairs = Staircase(epsilon=epsilon, sensitivity=L1(l1))
    if stairs.expected_error() < CLEARLY * laplace(groups[0], epsilon).mechanism.mean_errors(1)[0]:
        yield "staircase noise", Assignment(noise=(Applied(parts, stairs),), price=price, reason="")


def _best(direct: Assignment, others: dict[str, Assignment]) -> Assignment:
    """The best candidate. Independent noise comes first, and keeps its own reason if no other beats it."""
    name, best = law_of(direct), direct
    errors = {name: direct.mean_error} | {n: t.mean_error for n, t in others.items()}
    for other, assignment in others.items():
        if errors[other] < BETTER * errors[name]:
            name, best = other, assignment
    if best is direct:
        return direct
    return replace(best, reason=compared(name, errors), candidates=errors)


def needs_delta(question: Question) -> bool:
    """Whether its assignment at an (epsilon, delta) price spends a separate delta."""
    return not question.known_keys or question.statistic.fits in ("thresholds", "synthesis")


def is_gaussian(question: Question) -> bool:
    """Whether it takes only Gaussian noise, and so a part of a mu and never of an epsilon."""
    return question.statistic.fits == "function" and not isinstance(question.statistic, PureDensity)


# How releases share a plan's price: by weight, or so that their errors stand to each other as their targets do.
#
# Pure epsilons, and rhos, are divided in proportion. An (epsilon, delta) is divided in two ways at once. Some
# releases pay in epsilon, each its share; the others divide the largest mu that keeps to what is left, mu^2 in
# proportion, since Gaussian bounds compose to exactly the root of the sum of squares (theorem `compose-gdp`). Who
# pays how follows from what each gains: releases are put in the order of (error of pure noise) / (error of Gaussian
# noise), and of all cuts through this order the one with the least mean of log errors is taken. Every statistic
# counts once: counts, sums and means by the quantile of their noise, quantiles by the error of their ranks. Releases
# that need a delta of their own (unknown keys, sparse histograms) get their share of epsilon, and of the delta that
# is not needed otherwise.

Weights = Mapping[int, Fraction]

MOST_CUTS = 8
"""The number of cuts that are tried; more would hardly change a release of hundreds."""


def divided(
    asks: Sequence[Query], questions: Sequence[Question], total: Price | None, *, earlier: bool = False
) -> list[Price]:
    """The price of each query: its own, or its share of the plan's."""
    sharing = [i for i, a in enumerate(asks) if a.price is None]
    if sharing and total is None:
        raise InvalidParameter(
            parameter="price", value=None, must="be given",
            hint="epsilon=..., with delta= or without; rho=...; or within=... to pay by accuracy",
        )  # fmt: skip
    out: dict[int, Price] = {i: p for i, a in enumerate(asks) if (p := a.price) is not None}
    if not sharing:
        # A delta says where to read the curves of releases that were paid in rho or mu; nothing else is left to pay.
        curves = any(p.kind in ("concentrated", "gaussian") for p in out.values())
        if total is not None and not (total.kind == "approximate" and curves):
            raise InvalidParameter(
                parameter="price", value=str(total), must="be left out where every release has a price of its own",
                hint="no release would pay it; query(...) without a price of its own shares the plan's",
            )  # fmt: skip
        return [out[i] for i in range(len(asks))]
    assert total is not None
    if total.kind == "accuracy" or len(sharing) == 1:
        return [out.get(i, total) for i in range(len(asks))]
    linear, squared = _weights(asks, questions, sharing)
    if total.kind == "approximate":
        bounded = [i for i in sharing if asks[i].noise == "bounded"]
        out |= _approximate(total, {i: questions[i] for i in sharing}, linear, squared, earlier, bounded)
    else:
        weights = linear if total.kind == "pure" else squared
        whole = _sum(weights, sharing)
        out |= {i: total.part(weights[i] / whole) for i in sharing}
    return [out[i] for i in range(len(asks))]


def _weights(
    asks: Sequence[Query], questions: Sequence[Question], sharing: Sequence[int]
) -> tuple[Weights, Weights]:
    """Shares of an epsilon, and of a squared mu. With weights, both get shares by their weights. With target errors,
    the share follows the noise: Laplace noise errs like l1 / epsilon, Gaussian noise like l2 / mu.
    """
    aimed = [i for i in sharing if asks[i].target is not None]
    if not aimed:
        plain = {i: asks[i].weight for i in sharing}
        return plain, plain
    for i in sharing:
        groups = groups_of(questions[i])
        if asks[i].target is None or len(groups) != 1 or not questions[i].known_keys:
            raise InvalidParameter(
                parameter="target", value=asks[i].name, must="be given for every release that shares the price",
                hint="counts, sums, margins and hierarchies have target errors; others take weights",
            )  # fmt: skip
    linear, squared = {}, {}
    for i in aimed:
        _, l1, l2_squared = groups_of(questions[i])[0]
        each = questions[i].parts[0].spacing / (asks[i].target or 1)
        linear[i], squared[i] = l1 * each, l2_squared * each**2
    return linear, squared


def _sum(weights: Weights, of: Sequence[int]) -> Fraction:
    return sum((weights[i] for i in of), Fraction(0))


def _approximate(
    total: Price, questions: Mapping[int, Question], linear: Weights, squared: Weights, earlier: bool,
    bounded: Sequence[int] = (),
) -> dict[int, Price]:  # fmt: skip
    """An (epsilon, delta), partly as epsilons and partly as squares of mu: the best division between the two."""
    needy = [i for i in questions if needs_delta(questions[i]) or i in bounded]
    normal_only = [i for i in questions if is_gaussian(questions[i])]
    others = [i for i in questions if i not in needy and i not in normal_only]
    whole = _sum(linear, [*questions])
    epsilon, delta = total.epsilon or Fraction(0), total.delta or Fraction(0)
    pure = {i: Price(epsilon=epsilon * linear[i] / whole) for i in others}

    def normal(rest: Sequence[int]) -> dict[int, Price]:
        """Their shares of the mu that keeps to their part of epsilon and of delta."""
        if not rest:
            return {}
        part = epsilon * _sum(linear, rest) / whole
        at = delta * _sum(linear, rest) / _sum(linear, [*rest, *needy])
        common = Price(mu=Fraction(gaussian_budget(epsilon=down(part), delta=down(at)).mu))
        shared = _sum(squared, rest)
        return {i: common.part(squared[i] / shared) for i in rest}

    def keys(rest: Sequence[int]) -> dict[int, Price]:
        """Releases that need a delta share it with those that divide a mu only."""
        at = delta / _sum(linear, [*rest, *needy]) if needy else delta
        return {i: Price(epsilon=epsilon * linear[i] / whole, delta=at * linear[i]) for i in needy}

    first = normal([*others, *normal_only])
    seen: dict[tuple[int, Price], float] = {}

    def log_error(i: int, price: Price) -> float:
        """A question that is asked again at the same price is looked at once."""
        place = (id(questions[i]), price)
        if place not in seen:
            seen[place] = choose(questions[i], price, earlier=earlier).log_error
        return seen[place]

    errors = {i: log_error(i, pure[i]) for i in others}
    # Gaussian noise errs like 1 / mu, so that one look at it is enough for every cut.
    at_one = {i: log_error(i, p) + math.log(p.mu or 1) for i, p in first.items()}
    ordered = sorted(others, key=lambda i: errors[i] - at_one[i])

    def loss(cut: int) -> float:
        rest = [*ordered[cut:], *normal_only]
        each = [errors[i] for i in ordered[:cut]]
        each += [at_one[i] - math.log(p.mu or 1) for i, p in normal(rest).items()]
        # A threshold that hides keys grows like ln(1 / delta).
        each += [math.log(-math.log(p.delta or 1)) for p in keys(rest).values()]
        return sum(each)

    count = min(len(ordered), MOST_CUTS) or 1
    cuts = sorted({round(k * len(ordered) / count) for k in range(count + 1)})
    best = min(cuts, key=loss)
    rest = [*ordered[best:], *normal_only]
    return {**{i: pure[i] for i in ordered[:best]}, **normal(rest), **keys(rest)}


# A plan given random data: who gets how much of its gamma, and what is done with it.
#
# The plan's gamma is divided by weight among the releases that have no words of their own and a mechanism for it. A
# release for which nothing may be exact at its share is plain DP and spends none; what it leaves goes to the others.
# Statistics without a mechanism stay plain DP in such a plan; asked for by themselves they are refused. A plan with
# public totals is refused: its bound compares tables that agree on them, and gamma is counted over all.

PLAIN = "differentially private: it takes nothing from random data"

Wanted = tuple[Question, Price, Assignment]


def on_random_data(
    asks: Sequence[Query], wanted: Sequence[Wanted], given: Given | None, *, unit: Unit, budget: Bound
) -> list[tuple[Question, Assignment]]:
    """Question and assignment of each query: the plain one, or one with exact small cells."""
    found = [(question, plain) for question, _, plain in wanted]
    own = {i: a.given.within(given) for i, a in enumerate(asks) if a.given is not None and a.given.gamma}
    # The plan was fixed before, or not: what one release declares, all rest on, and their certificates say so.
    before = any(words.fixed_before for words in (*own.values(), given or ALWAYS))
    if not own and (given is None or not given.gamma):
        return found
    check_unit(unit)
    if any(a.public is not None for a in asks):
        raise _agreeing()
    for i in own:
        _refuse(wanted[i][0])

    def assigned(i: int, words: Given) -> tuple[Question, Assignment]:
        question, price, plain = wanted[i]
        words = replace(words, fixed_before=before)
        return assign_on_random_data(question, price, words, plain, budget=budget)

    for i, words in own.items():
        found[i] = assigned(i, words)
    if given is None or not given.gamma:
        return found
    for i, a in enumerate(asks):
        if a.given is None and not fits(wanted[i][0]):
            question, plain = found[i]
            found[i] = question, replace(plain, reason=f"{plain.reason}; {PLAIN}")
    sharing = [i for i, a in enumerate(asks) if a.given is None and fits(wanted[i][0])]
    if not sharing and not own:
        _refuse(wanted[0][0])
    while sharing:
        shares = shares_of(given, [asks[i].weight for i in sharing])
        for i, share in zip(sharing, shares, strict=True):
            found[i] = assigned(i, share)
        kept = [i for i in sharing if found[i][1].gamma]
        if kept == sharing:
            break
        sharing = kept
    return found


def _refuse(question: Question) -> None:
    """Refuse a statistic without a mechanism."""
    if not fits(question):
        raise no_mechanism(question.statistic.kind)


def _agreeing() -> NoLaw:
    """The reason why public totals, in any release of a plan, and random data exclude each other."""
    return NoLaw(
        operation="public totals given random data",
        reason="gamma is counted over tables that may differ in any row; tables that agree on totals "
        "are a different set",
        counterexample="one row in twenty is of region 0 and has a cell of its own, each other row is in a cell with "
        "many and a region of its own: gamma = 0.1 for all pairs, but those that agree by region are of region 0, and "
        "their exact cells differ",
        hint="leave out one of the two in the whole plan",
    )


# A plan: releases with their noise, price and expected errors, fixed before a row is read. It has no value.
#
# Releases without a price of their own share the plan's price (`tacit.curator.planning`).


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One release of a plan: the question, its noise, its promise and its expected error."""

    ask: Query
    question: Question
    assignment: Assignment
    guarantee: Guarantee
    expected: Expected
    plain: Assignment | None = None
    """The error under differential privacy, beside a release that is private on random data only."""
    agrees_with: tuple[str, ...] = ()
    """The releases of the plan whose common totals are the same numbers."""
    rests: tuple[str, ...] = ()
    """The assumption of the intervals about the rows of these."""

    @property
    def name(self) -> str:
        """The release's name, which its files carry."""
        return self.ask.name

    @property
    def sampled(self) -> tuple[str, ...]:
        """Declarations about the sample if intervals are for the population, else nothing."""
        told: tuple[str, ...] = self.question.details.get("sample", ()) or tuple(
            self.question.statistic.declares
        )
        return told or ((DECLARED,) if self.ask.sampling else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Releases that are fixed together, and their common price in the budget's terms.

    `digest` is that of the request (`tacit.curator.request`): of the query, and of nothing that was chosen. For
    a plan read from a record, it is the charged digest of any version.
    """

    releases: tuple[Planned, ...]
    unit: Unit
    schema: Schema
    charged: Charged
    digest: str
    earlier: tuple[str, ...] = ()
    """The digests of the request in earlier formats, for finding older records."""
    reading: dict[str, Any] = field(default_factory=dict, hash=False)
    budget: Bound | None = None
    """The paying budget, to show prices as parts of it; None if several budgets pay."""
    total: Price | None = None
    """The price for releases without a separate price."""
    given: Given | None = None
    """Default assumptions about the data, for releases without their own."""
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Facts that follow from the plan alone, made once: its record for the ledger, and its part of the certificates."""

    @property
    def event(self) -> Event:
        """All events of the plan, as one event."""
        found = [e for r in self.releases for e in r.assignment.events]
        if not found:
            return events.ApproximateEvent(epsilon=0.0, delta=0.0)
        return found[0] if len(found) == 1 else events.ComposedEvent(events=tuple(found))

    @property
    def agrees(self) -> bool:
        """Whether some of its releases agree with each other."""
        return any(r.ask.agree for r in self.releases)

    @property
    def charge(self) -> Guarantee:
        """The charge to the ledger: under RandomData if any release is, with the sum of their gammas."""
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
        if "gamma" not in self.kept:
            self.kept["gamma"] = sum((r.assignment.gamma for r in self.releases), Fraction(0))
        return cast("Fraction", self.kept["gamma"])

    @property
    def priors(self) -> Priors | None:
        """The priors of the charge, for an exact answer, the only release of its plan."""
        condition = self.releases[0].assignment.condition
        return condition if isinstance(condition, Priors) else None

    @property
    def exact(self) -> dict[str, Fraction]:
        """The charge's numbers as fractions, for the ledger."""
        return self.charged.exact | ({"gamma": self.gamma} if self.gamma else {})

    @property
    def theorems(self) -> tuple[str, ...]:
        """The kind of bound in which the plan adds up its releases."""
        return (self.charged.theorem, *(("compose-random-data",) if self.gamma else ()))

    @property
    def event_record(self) -> dict[str, Any]:
        """The event for the ledger. An accountant without gammas cannot read a charge under RandomData."""
        if "record" not in self.kept:
            self.kept["record"] = json.dumps(event_record(to_record(self.event), self.gamma, self.priors))
        return cast("dict[str, Any]", json.loads(self.kept["record"]))

    record = formerly("record", "event_record")

    def __getitem__(self, name: str) -> Planned:
        if "by name" not in self.kept:
            self.kept["by name"] = {release.name: release for release in reversed(self.releases)}
        return cast("Planned", self.kept["by name"][name])

    def __str__(self) -> str:
        from tacit.curator.text import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from tacit.curator.text import plan_html

        return plan_html(self)


def event_record(record: dict[str, Any], gamma: Fraction, priors: Priors | None = None) -> dict[str, Any]:
    """An event's record, with the condition of its bound."""
    if priors is not None:
        return {**record, "given": {"priors": priors.family, "unknown_rows": priors.unknown_rows}}
    return {**record, "given": {"random_data": str(gamma)}} if gamma else record


def make_plan(
    asks: Sequence[Query], *, schema: Schema, unit: Unit, budget: Bound, total: Price | None = None,
    given: Assumed = None, reading: Mapping[str, Any] | None = None, earlier: bool = False,
) -> Plan:  # fmt: skip
    """The plan for these asks. Every error of names, types, bounds and prices appears here; nothing is read.

    `given` has the assumptions of the whole plan about the data; releases without their own share its gamma. `reading`
    is how the data are to be read, where something is declared about that. `earlier` makes the choices of
    version 0.1.0, whose records contain digests of them.
    """
    asks = listed("asks", asks, must="be a list of asks")
    if not asks:
        raise EmptyComposition(what="the plan", hint="ask for at least one statistic")
    for a in asks:
        instance("asks", a, Query, must="be a list of asks", hint="tacit.query(statistic, ...) makes one")
    for name, value, kind in (("schema", schema, Schema), ("unit", unit, Unit), ("budget", budget, Bound)):
        instance(name, value, kind, must=f"be a {kind.__name__}")
    if total is not None:
        instance("total", total, Price, must="be a Price", hint="tacit.curator.price(epsilon=1) makes one")
    if reading is not None:
        instance("reading", reading, Mapping, must="be a table of words", hint='{"separator": ";"}')
    earlier = flag("earlier", earlier)
    given, asked = given_of(given), asks
    for a in asks:
        assumed = a.given if a.given is not None else given
        if a.noise and assumed is not None and (assumed.gamma or isinstance(assumed, ExactGiven)):
            raise InvalidParameter(
                parameter="noise", value=a.noise, must="be left out where something is given about the data",
                hint='given="always" keeps one release of a plan differentially private',
            )  # fmt: skip
    asks = _named(asks)
    questions = _questions(asks, schema, unit, earlier=earlier)
    if any(a.agree for a in asks):
        check_agreement(asks, questions, given)
    prices = divided(asks, questions, total, earlier=earlier)
    assigned = _exactly(asks, questions, prices, given)
    if assigned:
        plain = [assignment for _, assignment in assigned]
    else:
        plain = _noise(asks, questions, prices, budget, earlier)
        wanted = [*zip(questions, prices, plain, strict=True)]
        assigned = on_random_data(asks, wanted, given, unit=unit, budget=budget)
    releases = []
    for a, beside, (question, assignment) in zip(asks, plain, assigned, strict=True):
        releases.append(_planned(a, question, assignment, beside, unit))
    if any(a.agree for a in asks):
        releases = with_agreement(releases)
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


def _noise(
    asks: Sequence[Query],
    questions: Sequence[Question],
    prices: Sequence[Price],
    budget: Bound | None,
    earlier: bool,
) -> list[Assignment]:
    """The noise of each query; equal queries at one price share the choice."""
    out: list[Assignment] = []
    made: dict[tuple[int, Price, int | None, str, bool], Assignment] = {}
    for a, question, price in zip(asks, questions, prices, strict=True):
        place = (id(question), price, a.rows, a.noise, a.agree)
        if place not in made and a.agree and question.statistic.fits == "noise":
            made[place] = assign_counts(question, price)
        elif place not in made:
            made[place] = choose(question, price, budget=budget, rows=a.rows, earlier=earlier, noise=a.noise)
        out.append(made[place])
    return out


def chosen(
    plan: Plan, assignments: Sequence[tuple[Assignment, Assignment | None]], *, charged: Charged, digest: str
) -> Plan:
    """The same request with the recorded assignments and charge."""
    releases = [
        _planned(r.ask, r.question, assignment, plain or assignment, plan.unit)
        for r, (assignment, plain) in zip(plan.releases, assignments, strict=True)
    ]
    if plan.agrees:
        releases = with_agreement(releases)
    return replace(plan, releases=tuple(releases), charged=charged, digest=digest)


def _exactly(
    asks: Sequence[Query], questions: Sequence[Question], prices: Sequence[Price], given: Given | None
) -> list[tuple[Question, Assignment]] | None:
    """The one exact answer of a plan; None if no query wants one. Beside it no other release is allowed."""
    words = [a.given if a.given is not None else given for a in asks]
    exact = [w for w in words if isinstance(w, ExactGiven)]
    if not exact:
        return None
    if len(asks) > 1 or asks[0].public is not None or asks[0].sampling or asks[0].consistent:
        raise NoLaw(
            operation="an exact answer beside something else",
            reason="what is published beside it, noise or not, is knowledge about the same rows",
            counterexample="the exact count of all rows, and the exact count of all rows but one",
            hint="an exact answer needs a plan of its own",
        )
    return [assign_exactly(questions[0], prices[0], exact[0])]


def _planned(a: Query, question: Question, assignment: Assignment, plain: Assignment, unit: Unit) -> Planned:
    question = assignment.asked(question)

    error_of = partial(
        expected, question, confidence=a.confidence, rows=a.rows, sampling=a.sampling, guess=a.guess
    )
    error = error_of(assignment)
    if assignment.gamma:
        error = error.beside(error_of(plain))
    must_cover(assignment.bound, assignment.events, neighbours=unit.neighbours, of=f"the bound of {a.name!r}")
    made = Guarantee(
        bound=assignment.bound,
        unit=unit,
        condition=assignment.condition,
        declared=(*assignment.declared, *question.details.get("declared", ())),
    )
    return Planned(
        ask=a, question=question, assignment=assignment, guarantee=_promise(a, made), expected=error,
        plain=plain if assignment.gamma else None,
    )  # fmt: skip


def _questions(asks: Sequence[Query], schema: Schema, unit: Unit, *, earlier: bool = False) -> list[Question]:
    """The question of each query; queries that share one statistic object share one question."""
    seen: dict[tuple[int, bool], Question] = {}
    out = []
    for a in asks:
        drawn = a.sampling and not (earlier and isinstance(a.statistic, Mean | Proportion))
        place = (id(a.statistic), drawn)
        if place not in seen:
            seen[place] = (a.statistic.drawn if drawn else a.statistic.on)(schema, unit)
        question = seen[place]
        if a.public is not None and a.statistic.layout == "listed":
            raise InvalidParameter(
                parameter="public", value=a.statistic.kind, must="be declared for counts, margins and hierarchies",
                hint="other statistics do not use public totals",
            )  # fmt: skip
        out.append(question if a.public is None else a.public.on(question))
    return out


def _promise(a: Query, guarantee: Guarantee) -> Guarantee:
    """With public totals the bound compares tables with the same totals, and says so."""
    return guarantee if a.public is None else a.public.restrict(guarantee)


def _named(asks: Sequence[Query]) -> list[Query]:
    """Every query with its own name; a missing name is made from the statistic."""
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


def title_of(a: Query) -> str:
    """The name of a query without a given one, before the number that distinguishes several."""
    words = [a.statistic.kind]
    if a.statistic.fits == "synthesis":
        return words[0]  # of many columns, some of them with their bins
    for key in ("column", "numerator", "denominator", "columns", "of"):
        value = getattr(a.statistic, key, None)
        listed = value if isinstance(value, list | tuple) else [value] if value else []
        if a.statistic.layout == "listed":
            listed = [v.column if isinstance(v, Binned) else v for v in listed]
        words += [str(v) for v in listed if v != "rows"]
    keys = [b if isinstance(b, str) else b.column for b in a.statistic.by]
    words += ["by", *keys] if keys else []
    return re.sub(r"[^A-Za-z0-9_-]+", "-", "-".join(words)).strip("-")[:70] or "release"


def plan_charge(plan: Plan) -> Charged:
    """The cost of a plan by today's account of its stored choice."""
    assert plan.budget is not None
    return _charged(plan.releases, plan.budget, plan.unit, plan.total)


def _charged(releases: Sequence[Planned], budget: Bound, unit: Unit, total: Price | None) -> Charged:
    shared = None
    if total is not None and total.delta is not None:
        members = [i for i, r in enumerate(releases) if r.ask.price is None]
        shared = Shared(members=members, epsilon=total.epsilon, delta=total.delta)
    return charge([r.assignment for r in releases], budget, neighbours=unit.neighbours, shared=shared)


MOST = 32
"""The number of plans that a curator keeps; a new one replaces the least recently used one."""
LONGEST = 8
"""The largest number of queries of a kept plan: comparing a longer one takes as long as it saves."""


class KeptPlans:
    """The plans of one curator, whose schema, unit and budget never change."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, asks: Sequence[Query], total: Price | None, given: Given | None, make: Callable[[], Plan]
    ) -> Plan:
        """The plan for these queries: an earlier one, or a new one."""
        place = _place(asks, total, given)
        if place is None:
            return make()
        with self._lock:
            found = self._plans.get(place)
            if found is not None:
                self._plans.move_to_end(place)
                return found
        made = make()
        with self._lock:
            self._plans[place] = made
            while len(self._plans) > MOST:
                self._plans.popitem(last=False)
        return made


def _place(asks: Sequence[Query], total: Price | None, given: Given | None) -> Hashable | None:
    """The key under which a plan is remembered; None for a long plan, or one with tables of public totals."""
    if len(asks) > LONGEST or any(a.public is not None for a in asks):
        return None
    place = (tuple(asks), total, given)
    try:
        hash(place)
    except TypeError:
        return None
    return place, repr(place)
