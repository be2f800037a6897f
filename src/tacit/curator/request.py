"""The request: the query, in a written canonical form. Its digest is the key of replay and of charging.

    format      4
    unit        who is protected: every field
    schema      every declared column
    price       the offer of the whole plan: exact numbers as fractions
    given       the assumptions of the whole plan
    reading the declared options for reading the files
    releases    for each: the statistic, and its own words (name, price, weight, interval, ...)

Beside the digest the ledger's key has the declared table and version, and the declared set of files. Files are named
relative to the ledger's folder: a folder that is moved with its ledger asks the same question, and so does every
plan or program that names the same files. The analyst's name is stored with the charge and is no part of the key.

Nothing here depends on a chosen mechanism, on a sentence, or on a computed number. Fields that still
have the default of this form (`UNSAID`) are left out. A later field must be left out at its default; a change in
meaning needs a new format.

Every spelling of a question gives the same text: 1, 1.0 and Fraction(1) are one number, `age > 5.0` is `age > 5`, and
a plan's price and assumptions become those of its only release. Nothing is computed for it: `not (a > 5)` is
another text than `a <= 5`. Format 3 wrote numbers and filters as they were typed, and format 4 at first the edges of
`ranges` and the tables of distributions. Both are frozen below and looked up second (`earlier_digests`), so
that answers recorded under them stay free.
"""

from __future__ import annotations

import datetime
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tacit.coupled.noiseless import RowLaw, row_law
from tacit.coupled.noiseless.answer import call_parts, table_parts
from tacit.coupled.noiseless.row_laws import as_typed
from tacit.curator.charging import CONFIDENCE, Number, Price, decimal, flag, given_price
from tacit.curator.guesses import Guess, guess_of
from tacit.errors import InvalidParameter, NoLaw, TacitError, UnknownName
from tacit.exact.canonical import canonical, canonical_table, formerly, sha256
from tacit.exact.checks import positive, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, Guarantee, Pure, RandomData, Unit
from tacit.guarantees.laws.conditions import single_rows
from tacit.random_data.base import independent, rows_parameter
from tacit.sources.axes import Binned
from tacit.sources.columns import Column, Date, day
from tacit.sources.expressions import Expression, normal
from tacit.sources.opening.files import Joined
from tacit.sources.schema import Schema
from tacit.statistics import Quantiles, Ranges, Statistic
from tacit.statistics.invariants import PublicTotals

# Given what a plan or a release is private: always, on random data (random DP), or under priors (exact answers).
#
# `given={"random_data": 0.05}` says that rows are independent draws from one population, and that everything about
# the plan was fixed before the data were seen; both are declared and stand in the guarantee. It buys exact small
# cells. On a plan gamma is the total, on a release its own. Gammas are decimals, kept as fractions, and added as
# such.
#
# `given={"unknown_rows": 900, "rows": "uniform(0, 1)"}` says how many rows an adversary knows nothing of and what law
# they are drawn from; it buys one exact sum, mean or count (`tacit.curator.exact_answers`).

WORDS = ("fixed_before", "independent", "random_data", "rows", "small_cells")
SAMPLED_WORDS = ("known_rows", "n", "rate", "sampling", "size_epsilon")
SAMPLINGS = ("binomial", "fixed", "poisson")
EXACT_WORDS = ("assume", "probability", "rectangle", "rows", "unknown_rows")
MOST_ROWS = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The assumption about the data: none (gamma 0, differential privacy), or random data with this gamma.

    `rows` is a declared lower bound on the number of rows; under replace-one the number of rows is public, and
    it may be left out. `small_cells` publishes small cells exactly, and not only the empty ones. `fixed_before`
    declares that the plan was fixed before any other release about the data was seen.
    """

    gamma: Fraction
    rows: int | None = None
    small_cells: bool | None = None
    fixed_before: bool = False

    @property
    def condition(self) -> Always | RandomData:
        """As a condition, gamma rounded up."""
        from tacit.exact.rounding import up

        return RandomData(gamma=up(self.gamma)) if self.gamma else Always()

    def within(self, plan: Given | None) -> Given:
        """A release's own words, or those of its plan if it has none."""
        if plan is None:
            return self
        return Given(
            gamma=self.gamma,
            rows=plan.rows if self.rows is None else self.rows,
            small_cells=plan.small_cells if self.small_cells is None else self.small_cells,
            fixed_before=self.fixed_before or plan.fixed_before,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, covered by the digest of a plan."""
        return {
            "random_data": str(self.gamma),
            "rows": self.rows,
            "small_cells": bool(self.small_cells),
            "fixed_before": self.fixed_before,
        }

    describe = formerly("describe", method=True)


ALWAYS = Given(gamma=Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactGiven(Given):
    """An exact answer: the number of unknown rows, and the distribution of a row or the chance that it is counted."""

    gamma: Fraction = Fraction(0)
    unknown_rows: int
    rows_law: str | None = None
    probability: tuple[str, ...] | None = None
    assume: str = "known"
    rectangle: tuple[str, str] | None = None

    def law(self, spacing: Fraction) -> RowLaw:
        """The distribution of a row, on the column's grid unless it names its own."""
        assert self.rows_law is not None
        own = "grid" in self.rows_law or self.rows_law.strip().lower().startswith(("table", "bernoulli"))
        return row_law(self.rows_law, grid=None if own else spacing)

    def matches(self, spacing: Fraction, low: Fraction, high: Fraction) -> None:
        """Refuse a distribution on another grid or range than the column's: the record must be the assumption.

        A value that the column allows and the distribution does not would show through an exact sum. A shape covers
        every distribution on its grid and range, so comparing the grid is enough.
        """
        law = self.law(spacing)
        if law.low != low or law.high != high:
            raise InvalidParameter(
                parameter="rows", value=law.name, must="range over the column's declared values, from "
                f"{float(low):g} to {float(high):g} in steps of {float(spacing):g}",
                hint="declare the same bounds and a spacing for the column, such as number(0, 1, spacing=1/64)",
            )  # fmt: skip
        gaps = not all(law.weights) if self.assume == "known" else law.reduced().step != spacing
        if law.step != spacing or gaps:
            raise InvalidParameter(
                parameter="rows", value=law.name, must="give every value of the column a chance, in steps of "
                f"{float(spacing):g}: a row that holds another value would show through an exact answer",
                hint="declare the spacing of the law for the column, or a law on the column's own grid",
            )  # fmt: skip

    def within(self, plan: Given | None) -> Given:
        """Its own words only."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the part of a plan that its digest covers."""
        return {
            "unknown_rows": self.unknown_rows,
            "rows": self.rows_law,
            "probability": None if self.probability is None else list(self.probability),
            "assume": self.assume,
            "rectangle": None if self.rectangle is None else list(self.rectangle),
        }

    describe = formerly("describe", method=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledGiven(ExactGiven):
    """A truncated histogram: the rows are a random sample with secret members.

    With `sampling="fixed"` the table has `n` rows, of which tacit first discards a few at random.
    """

    unknown_rows: int = 1
    sampling: str
    rate: str | None = None
    known_rows: int = 0
    n: int | None = None
    size_epsilon: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the part of a plan that its digest covers."""
        if self.sampling == "fixed":
            return {"sampling": self.sampling, "n": self.n, "size_epsilon": self.size_epsilon}
        return {"sampling": self.sampling, "rate": self.rate, "known_rows": self.known_rows}

    describe = formerly("describe", method=True)


def _sampled(value: Mapping[str, Any]) -> SampledGiven:
    """`given` with `sampling`."""
    for word in value:
        if word not in SAMPLED_WORDS:
            raise UnknownName(what="word in given with sampling", name=str(word), known=SAMPLED_WORDS)
    if value["sampling"] not in SAMPLINGS:
        raise UnknownName(what="sampling", name=str(value["sampling"]), known=SAMPLINGS)
    fixed, rate = value["sampling"] == "fixed", value.get("rate")
    for word in ("known_rows", "rate") if fixed else ("n", "size_epsilon"):
        if word in value:
            raise InvalidParameter(
                parameter=word, value="given", must=f"be left out with sampling = {value['sampling']}"
            )
    if fixed:
        size = value.get("size_epsilon")
        return SampledGiven(
            sampling="fixed",
            n=whole("n", value.get("n"), least=4),
            size_epsilon=None if size is None else positive("size_epsilon", size),
        )
    return SampledGiven(
        sampling=value["sampling"],
        rate=None if rate is None else str(rate),
        known_rows=whole("known_rows", value.get("known_rows", 0), least=0),
    )


def _exactly(value: Mapping[str, Any]) -> ExactGiven:
    """`given` with `unknown_rows`."""
    for word in value:
        if word not in EXACT_WORDS:
            raise UnknownName(what="word in given with unknown_rows", name=str(word), known=EXACT_WORDS)
    chance, over = value.get("probability"), value.get("rectangle")
    if chance is not None and not isinstance(chance, list | tuple):
        chance = [chance]
    for name, found, count in (("probability", chance, (1, 2)), ("rectangle", over, (2,))):
        if found is not None and (not isinstance(found, list | tuple) or len(found) not in count):
            raise InvalidParameter(
                parameter=name, value=type(found).__name__, must="be numbers, low end first"
            )
    for name in ("assume", "rows"):
        if name in value and not isinstance(value[name], str):
            raise InvalidParameter(parameter=name, value=type(value[name]).__name__, must="be text in given",
                                   hint='rows = "uniform(0, 1)"')  # fmt: skip
    return ExactGiven(
        unknown_rows=whole("unknown_rows", value["unknown_rows"], least=2),
        rows_law=value.get("rows"),
        probability=None if chance is None else tuple(map(str, chance)),
        assume=value.get("assume", "known"),
        rectangle=None if over is None else (str(over[0]), str(over[1])),
    )


Assumed = Given | Always | RandomData | Mapping[str, Any] | str | None
"""What may stand behind `given=`."""


def given_of(value: object) -> Given | None:
    """The condition in `given=`: a mapping as in plan files, or a condition; None without one."""
    if value is None or isinstance(value, Given):
        return value
    if isinstance(value, Always) or (isinstance(value, str) and value == "always"):
        return ALWAYS
    if isinstance(value, RandomData):
        value = {"random_data": value.gamma}
    if not isinstance(value, Mapping):
        raise InvalidParameter(
            parameter="given", value=type(value).__name__, must="say given what it is private",
            hint='{"random_data": 0.05, "rows": 8000}, or tacit.guarantees.RandomData(gamma=0.05)',
        )  # fmt: skip
    if "unknown_rows" in value:
        return _exactly(value)
    if "sampling" in value:
        return _sampled(value)
    for word in value:
        if word not in WORDS:
            raise UnknownName(
                what="word in given", name=str(word), known=(*WORDS, "sampling", "unknown_rows")
            )
    if "random_data" not in value:
        raise InvalidParameter(
            parameter="random_data", value=None, must="be in given", hint="given = { random_data = 0.05 }"
        )
    independent(flag("independent", value.get("independent", True)))
    small = value.get("small_cells")
    return Given(
        gamma=_gamma(value["random_data"]),
        rows=_rows(value.get("rows")),
        small_cells=None if small is None else flag("small_cells", small),
        fixed_before=flag("fixed_before", value.get("fixed_before", False)),
    )


def _gamma(value: object) -> Fraction:
    try:
        return decimal("random_data", value)
    except InvalidParameter as problem:
        raise InvalidParameter(
            parameter="random_data", value=problem.value, must="be a number strictly between 0 and 1",
            hint="it is gamma, the share of data on which the bound may fail: 0 is differential "
            "privacy (leave given= out), and 1 promises nothing",
        ) from None  # fmt: skip


def _rows(value: object) -> int | None:
    if value is None:
        return None
    found = rows_parameter(value)
    if found > MOST_ROWS:
        raise InvalidParameter(parameter="rows", value=value, must="be at most 10^15")
    return found


def check_unit(unit: Unit) -> None:
    """Random DP speaks of single rows among independent draws: people and groups are refused, with the reason."""
    single_rows(unit)


def shares_of(total: Given, weights: Sequence[Fraction]) -> list[Given]:
    """The total gamma divided in proportion to weights: exact fractions, which add up to it."""
    from dataclasses import replace

    whole = sum(weights, Fraction(0))
    return [replace(total, gamma=total.gamma * w / whole) for w in weights]


def no_mechanism(kind: str) -> NoLaw:
    """Why a statistic that was asked for on random data is refused."""
    return NoLaw(
        operation=f"a {kind} given random data",
        reason="no mechanism of random differential privacy is built for it here, only for counts of rows over "
        "known cells and for a proportion of a known number of rows",
        hint="leave given= out and it is differentially private; statistics of unbounded data: tacit.random_data",
    )


# What is asked of a curator: a statistic with a name, a price of its own or a weight, and how to finish it.

NOISES = ("", "bounded")
"""Noise that can be requested: the best at the price, or one that never exceeds a bound."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,79}")
MOST_ASKED_ROWS = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One release of a plan before it is priced.

    `consistent` asks for post-processing: whole numbers that are not negative, margins that add up. `weight` is the
    share of the plan's common price that it gets, relative to the others.
    """

    statistic: Statistic
    name: str = ""
    price: Price | None = None
    weight: Fraction = Fraction(1)
    confidence: Fraction = CONFIDENCE
    consistent: bool = False
    rows: int | None = None
    sampling: bool = False
    public: PublicTotals | None = None
    target: Fraction | None = None
    given: Given | None = None
    noise: str = ""
    agree: bool = False
    guess: Guess | None = None
    """Used in previews only; not part of the request."""

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                parameter="ask", value=type(self.statistic).__name__, must="be a statistic",
                hint='for example tacit.count(by="state") or tacit.mean("income")',
            )  # fmt: skip
        if not isinstance(self.name, str) or (self.name and not _NAME.fullmatch(self.name)):
            raise InvalidParameter(
                parameter="name", value=self.name, must="be 1 to 80 letters, digits, blanks, dots, - and _",
                hint="it becomes the name of a file",
            )  # fmt: skip
        if self.rows is not None:
            object.__setattr__(self, "rows", _asked_rows(self.rows))
        for name in ("agree", "consistent", "sampling"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        for name, kind in (
            ("price", Price),
            ("public", PublicTotals),
            ("given", Given),
            ("guess", Guess),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidParameter(
                    parameter=name, value=type(value).__name__, must=f"be a {kind.__name__}, or be left out"
                )
        for name in ("weight", "confidence", "target"):
            value = getattr(self, name)
            if (value is not None or name != "target") and not (isinstance(value, Fraction) and value > 0):
                raise InvalidParameter(parameter=name, value=value, must="be a fraction above 0")
        if not isinstance(self.noise, str) or self.noise not in NOISES:
            raise UnknownName(what="noise", name=str(self.noise), known=NOISES)
        if self.confidence > 1 or (self.confidence == 1 and self.noise != "bounded"):
            raise InvalidParameter(
                parameter="confidence", value=str(self.confidence), must="be below 1",
                hint='only noise="bounded" has an interval that holds for certain',
            )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the part of a plan that its digest covers. Every field, with the price found for it."""
        return {
            "name": self.name,
            "statistic": self.statistic.to_dict(),
            "weight": str(self.weight),
            "confidence": str(self.confidence),
            "consistent": self.consistent,
            "rows": self.rows,
            "sampling": self.sampling,
            "public": None if self.public is None else self.public.to_dict(),
            "target": None if self.target is None else str(self.target),
            **({} if self.given is None else {"given": self.given.to_dict()}),
            **({"noise": self.noise} if self.noise else {}),
            **({"agree": True} if self.agree else {}),
        }

    describe = formerly("describe", method=True)


def _asked_rows(value: object) -> int:
    import numpy as np

    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 < value <= MOST_ASKED_ROWS:
        raise InvalidParameter(parameter="rows", value=value, must="be a whole number above 0, at most 10^15")
    return int(value)


def query(
    statistic: Statistic,
    *,
    name: str = "",
    weight: Number = 1,
    interval: Number | bool = 0.95,
    consistent: bool = False,
    rows: int | None = None,
    sampling: bool = False,
    public: PublicTotals | None = None,
    target: Number | None = None,
    given: Assumed = None,
    noise: str = "",
    agree: bool = False,
    guess: Guess | Mapping[str, float] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    within: Number | None = None,
    confidence: Number | None = None,
    simultaneous: bool = False,
) -> Query:
    """A statistic for a plan: `query(count(by="state"), name="by state", weight=2)`, or with a price of its own.

    `interval` is the confidence of the intervals, `rows` a public guess at the rows of a cell, for expected errors.
    `interval=False` releases quantiles without intervals, which cost a part of the price. Others are free.
    `sampling=True` declares that the rows are independent draws from a population. Intervals of means and
    proportions then cover the values of the population. `public` declares totals that are public already
    (`tacit.public_totals`).
    `target` is an error to aim at: releases that share a price then err in proportion to their targets.
    `given={"random_data": 0.05}` makes it random differential privacy with a gamma of its own; "always" keeps it
    differentially private in a plan that is not. `noise="bounded"` gives counts noise that never exceeds a bound A, for
    a price with a delta; interval=1 is then value +- A, for certain. `guess={"value": 30000, "spread": 20000}` are
    public guesses at a typical value and a standard deviation, for expected errors alone. `agree=True` at several
    tables and counts of one plan makes their common totals agree, each from the noise of all.
    """
    if interval is False:
        statistic, interval = _without_interval(statistic), 0.95
    return Query(
        statistic=statistic,
        name=name,
        weight=decimal("weight", weight),
        confidence=Fraction(1) if _certain(interval, noise) else decimal("interval", interval),
        consistent=consistent,
        rows=rows,
        sampling=sampling,
        public=public,
        target=None if target is None else decimal("target", target),
        given=given_of(given),
        noise=noise,
        agree=agree,
        guess=None if guess is None else guess_of(guess),
        price=given_price(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            within=within,
            confidence=confidence,
            simultaneous=simultaneous,
        ),
    )


def _without_interval(statistic: Statistic) -> Statistic:
    """Quantiles that spend nothing on their intervals."""
    if not isinstance(statistic, Quantiles):
        raise InvalidParameter(
            parameter="interval", value=False, must="be asked of quantiles alone",
            hint="the intervals of other statistics follow from their noise and cost nothing",
        )  # fmt: skip
    return replace(statistic, interval=False)


def _certain(interval: object, noise: object) -> bool:
    """Whether the query asks for the interval that bounded noise never leaves."""
    return (
        isinstance(noise, str)
        and noise == "bounded"
        and not isinstance(interval, bool)
        and isinstance(interval, int | float)
        and interval == 1
    )


def asks_of(asked: Any) -> list[Query]:
    """The queries: a statistic or several, each as a Query."""
    if isinstance(asked, Query):
        return [asked]
    if isinstance(asked, Statistic):
        return [query(asked)]
    if isinstance(asked, Sequence) and not isinstance(asked, str):
        return [a if isinstance(a, Query) else query(a) for a in asked]
    raise InvalidParameter(
        parameter="asked", value=type(asked).__name__, must="be a statistic, a list of them, or a plan",
        hint='for example tacit.count(by="state")',
    )  # fmt: skip


FORMAT = 4
UNSAID: dict[str, Any] = {
    "name": "",
    "weight": "1",
    "confidence": "19/20",
    "consistent": False,
    "rows": None,
    "sampling": False,
    "public": None,
    "target": None,
    "given": None,
    "noise": "",
    "agree": False,
    "price": None,
}
"""The defaults of a query in formats 3 and 4."""
PLAIN_READING = {"decimal": ".", "dates": "year-first"}
"""The default way to read it."""
IN_MEMORY = re.compile(r"the \w+ table")
"""The name of a joined table that is not in a file. It has no ending, so it is no file name."""


def request_digest(
    asks: Sequence[Query], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any],
) -> str:  # fmt: skip
    """The digest of the request."""
    return sha256(request_text(asks, schema=schema, unit=unit, total=total, given=given, reading=reading))


def earlier_digests(
    asks: Sequence[Query], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any],
) -> tuple[str, ...]:  # fmt: skip
    """The spelling of the query in earlier formats with a set of files."""
    words: Any = {"schema": schema, "unit": unit, "total": total, "given": given, "reading": reading}
    now, at_first = request_text(asks, **words), request_text(asks, **words, at_first=True)
    return (*([sha256(at_first)] if at_first != now else []), sha256(request_text(asks, **words, form=3)))


def request_text(
    asks: Sequence[Query], *, schema: Schema, unit: Unit, total: Price | None, given: Given | None,
    reading: Mapping[str, Any], form: int = FORMAT, at_first: bool = False,
) -> str:  # fmt: skip
    """The query as canonical JSON. `form` 3, and form 4 `at_first`, are those of earlier records."""
    typed = form == 3
    if total is not None and len(asks) == 1 and asks[0].price is None and not (typed and total.delta):
        # One release for the price of the whole plan is one release at its own price.
        asks, total = [replace(asks[0], price=total)], None
    if len(asks) == 1:
        # Nobody is there to share with.
        asks = [replace(asks[0], weight=Fraction(1))]
    given = None if given == ALWAYS else given
    if len(asks) == 1 and given is not None and asks[0].given is None and not typed:
        asks, given = [replace(asks[0], given=given)], None
    if given is None:
        asks = [replace(a, given=None) if a.given == ALWAYS else a for a in asks]
    parts: dict[str, Any] = {
        "format": form,
        "unit": Guarantee(bound=Pure(epsilon=0.0), unit=unit).to_dict()["unit"],
        "price": _price(total),
        "given": _given(given, typed, at_first),
        "reading": _reading(reading, typed),
        "releases": [_ask(a, schema, typed, at_first) for a in asks],
    }
    said = {name: value for name, value in parts.items() if value is not None and value != {}}
    texts = {name: canonical(value, what="plan") for name, value in said.items()}
    return canonical_table({**texts, "schema": schema.text if typed else _schema(schema)})


def _ask(a: Query, schema: Schema, typed: bool, at_first: bool) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": a.name,
        "weight": str(a.weight),
        "confidence": str(a.confidence),
        "consistent": a.consistent,
        "rows": a.rows,
        "sampling": a.sampling,
        "public": None if a.public is None else a.public.to_dict(),
        "target": None if a.target is None else str(a.target),
        "given": _given(a.given, typed, at_first),
        "noise": a.noise,
        "agree": a.agree,
        "price": _price(a.price),
    }
    return {
        "statistic": a.statistic.to_dict() if typed else _statistic(a.statistic, schema, at_first),
        **{name: value for name, value in said.items() if value != UNSAID[name]},
    }


# --- one spelling -----------------------------------------------------------------------------------------------
def _statistic(statistic: Statistic, schema: Schema, at_first: bool) -> dict[str, Any]:
    """The fields of the statistic, with one spelling of every number, day and filter."""
    said, own = statistic.to_dict(), {f.name for f in fields(statistic)}
    spelled = {
        name: _entries(getattr(statistic, name), schema) if name in own else value
        for name, value in said.items()
    }
    if isinstance(statistic, Ranges) and not at_first:
        spelled["edges"] = _edges(Binned(column=statistic.column, edges=statistic.edges), schema)
        column = schema[statistic.column]
        spelled["at"] = [[_edge(end, column) for end in pair] for pair in statistic.at]
    return spelled


def _entries(value: Any, schema: Schema) -> Any:
    if isinstance(value, Expression):
        return str(normal(value, schema))
    if isinstance(value, Binned):
        return {"column": value.column, "edges": _edges(value, schema)}
    if isinstance(value, tuple | list):
        kinds = set(map(type, value))
        if kinds <= {tuple, list} and all(PLAIN.issuperset(map(type, v)) for v in value):
            return list(map(list, value))
        return list(value) if kinds <= PLAIN else [_entries(v, schema) for v in value]
    return _one(value)


PLAIN = frozenset({str, int, bool, type(None)})


def _edges(value: Binned, schema: Schema) -> Any:
    """Edges of bins, as the axis reads them: days, or doubles."""
    if isinstance(value.edges, int):
        return value.edges
    return [_edge(e, schema[value.column]) for e in value.edges]


def _edge(value: Any, column: Column) -> Any:
    if isinstance(column, Date):
        return day("edges", value).isoformat()
    if isinstance(value, str):
        with suppress(TacitError):
            value = as_typed("edges", value)
    return _one(float(value)) if isinstance(value, int | float | Fraction) else _one(value)


def _one(value: Any) -> Any:
    """A plain value; a number of any type by its exact value: whole, or a fraction."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float | Fraction | Decimal):
        exact = Fraction(value)
        return int(exact) if exact.denominator == 1 else {"fraction": str(exact)}
    return str(value)


def _typed(text: str) -> str:
    """A number that was typed as text, in one spelling; other texts stay unchanged."""
    try:
        return str(as_typed("given", text))
    except TacitError:
        return text


def _law(text: str, at_first: bool) -> Any:
    """The distribution of a row: its name, its numbers, and its named values; a table is written by its values, in
    their order.
    """
    if not at_first:
        with suppress(TacitError):
            weights, grid = table_parts(text)
            chances: dict[Fraction, Fraction] = {}
            for value, chance in weights.items():
                place = as_typed("rows", value)
                chances[place] = chances.get(place, Fraction(0)) + as_typed("rows", chance)
            entries = [[str(value), str(chances[value])] for value in sorted(chances)]
            return ["table", entries, {} if grid is None else {"grid": _typed(grid)}]
    try:
        kind, numbers, named = call_parts("rows", text, "")
    except TacitError:
        return text
    spelled = {
        n: [_typed(w) for w in v] if isinstance(v, tuple) else _typed(str(v)) for n, v in named.items()
    }
    return [kind, [_typed(number) for number in numbers], spelled]


def _schema(schema: Schema) -> str:
    """The declarations; their numbers already have one spelling, except for a zero with a sign."""
    if '"-0.0"' not in schema.text:
        return schema.text
    plain = {name: {k: _unsigned(v) for k, v in said.items()} for name, said in schema.to_dict().items()}
    return canonical(plain, what="schema")


def _unsigned(value: Any) -> Any:
    return str(value + 0.0) if isinstance(value, float) else value


def _price(price: Price | None) -> dict[str, Any] | None:
    """A price or an accuracy in the form of the request: exact numbers, and only the given ones."""
    if price is None:
        return None
    numbers = {n: getattr(price, n) for n in ("epsilon", "delta", "rho", "mu", "within")}
    said: dict[str, Any] = {name: str(Fraction(v)) for name, v in numbers.items() if v is not None}
    if price.within is not None:
        said |= {"confidence": str(price.confidence), "simultaneous": price.simultaneous}
    return said


def _given(given: Given | None, typed: bool, at_first: bool) -> dict[str, Any] | None:
    """The assumptions in the form of the request. Defaults are left out."""
    if given is None:
        return None
    said: dict[str, Any] = {**given.to_dict()}
    if not isinstance(given, ExactGiven):
        said["small_cells"] = given.small_cells
    elif not typed:
        for name in ("probability", "rectangle"):
            if said.get(name) is not None:
                said[name] = [_typed(text) for text in said[name]]
        if said.get("rate") is not None:
            said["rate"] = _typed(said["rate"])
        if isinstance(said.get("rows"), str):
            said["rows"] = _law(said["rows"], at_first)
        if "size_epsilon" in said:
            said["size_epsilon"] = _one(said["size_epsilon"])
    return {name: value for name, value in said.items() if value is not None}


def _named(table: str, typed: bool) -> str:
    """A joined table: the names of its files, or that it lies in memory, in any library."""
    if not typed and IN_MEMORY.fullmatch(table):
        return "a table in memory"
    return ", ".join(sorted(table.split(", ")))


def _reading(reading: Mapping[str, Any], typed: bool) -> dict[str, Any]:
    """The reading options: defaults are left out, and lists without an order are sorted."""
    said = {name: value for name, value in reading.items() if PLAIN_READING.get(name) != value}
    said |= {name: sorted(said[name]) for name in ("missing", "partitions") if name in said}
    if "joins" in said:
        said["joins"] = [
            {
                **step,
                "table": _named(step["table"], typed),
                **({"reading": _reading(step["reading"], typed)} if "reading" in step else {}),
            }
            for step in said["joins"]
        ]
    return said


# --- the declared set of files ----------------------------------------------------------------------------------
def declared_files(data: Any, base: Path | None, public: Sequence[str] = ()) -> dict[str, Any]:
    """The files that were declared, table by table, relative to a folder: known without looking at a file.

    `protected` are the tables about people, `public` the tables that were declared public. A table outside of
    files is null. A public one is named by a digest of its content (`Facts.public`), since it has no other
    name. Several files of one table are a set: their order does not matter.
    """
    protected = data.private if isinstance(data, Joined) else (data,)
    shared = data.open_to_all if isinstance(data, Joined) else ()
    contents = tuple(public) or ("",) * len(shared)
    found = {
        "protected": [_files(one, base) for one in protected],
        "public": [
            [{"content": content}] if content else _files(one, base)
            for one, content in zip(shared, contents, strict=True)
        ],
    }
    return {name: tables for name, tables in found.items() if tables}


def nameless(data: Any) -> bool:
    """Whether a public table in it lies in no file. Then the request is known only when the table is opened."""
    return isinstance(data, Joined) and any(_files(one, None) is None for one in data.open_to_all)


def _files(data: Any, base: Path | None) -> list[Any] | None:
    if not isinstance(data, str | os.PathLike):
        return None
    if getattr(data, "pattern", False):
        return [{"pattern": _placed(os.fspath(data), base)}]
    names = getattr(data, "paths", (os.fspath(data),))
    return sorted({_placed(name, base) for name in names})


def _placed(name: str, base: Path | None) -> str:
    """A path relative to a folder. Links among the folders are followed; the file's own name stays as declared."""
    path = os.path.expanduser(name)
    if base is not None:
        folder, file = os.path.split(os.path.abspath(path))
        path = os.path.relpath(os.path.join(os.path.realpath(folder), file), os.path.realpath(base))
    text = Path(os.path.normpath(path)).as_posix()
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# Names of releases as names of files: on every file system, and each its own, before anything is spent.

RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "clock$", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789\xb9\xb2\xb3"}
)
"""Names of devices on Windows, with any ending."""


def file_stem(name: str) -> str:
    """The release's name as the name of its files, without an ending."""
    return name.replace(" ", "-")


def folded(name: str) -> str:
    """The key under which a file system may store a file: letters of any case, composed or not, no dots at the end."""
    return unicodedata.normalize("NFKC", file_stem(name)).casefold().rstrip(". ")


def check_names(names: Iterable[str]) -> None:
    """Refuses a name without a file, and two names of one file."""
    taken: dict[str, str] = {}
    for name in names:
        stem = folded(name)
        if not stem or stem.startswith(".") or any(c in stem for c in '/\\:*?"<>|') or not stem.isprintable():
            raise InvalidParameter(parameter="name", value=name, must="be a name that a file can have")
        if stem.split(".")[0] in RESERVED:
            raise InvalidParameter(
                parameter="name", value=name, must="be a name that a file can have",
                hint="some systems keep it for a device; add a word",
            )  # fmt: skip
        if stem in taken:
            twice = name == taken[stem]
            raise InvalidParameter(
                parameter="name", value=name, must="be given once in a plan",
                hint="" if twice else f"some systems take its file for that of {taken[stem]!r}; add a word",
            )  # fmt: skip
        taken[stem] = name
