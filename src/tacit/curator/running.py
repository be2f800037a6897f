"""Running totals: one charge in advance, then a figure for each step at its time.

`open_running_total` charges the ledger once for all steps. `RunningTotal.release(step)` reads the table, publishes the
next figure and records it, at no further charge. The noise of a step is a function of the ledger's secret, the charged
table and series, the step and the true numbers. Nobody can predict it. A process that dies between two steps, or in
one, loses nothing and draws nothing again. Published figures are never revised.
See docs/theory/running-totals.md.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit.accounting import events
from tacit.accounting.codec import to_record
from tacit.curator.assignments import Applied, Assignment, mu_squared_within
from tacit.curator.cells import WORDS, QualityRule, renamed
from tacit.curator.certificate import with_looks
from tacit.curator.charging import Number, Price, charge, check_of, given_price
from tacit.curator.curator import Curator, _now
from tacit.errors import InvalidParameter, ReadFailed, TacitError, charge_made
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly, sha256
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Bound, Guarantee, People, Unit
from tacit.guarantees.conditions import FIXED_PARAMETERS
from tacit.ledger import Correction, Ledger, Recorded, Request
from tacit.ledger.entries import text
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.factorisation import GRID, GridFactor
from tacit.mechanisms.spreads import normal_factor
from tacit.noise.source import KeyedSource
from tacit.sources.axes import Binned, axis_of
from tacit.sources.error_boundary import forget, noised
from tacit.sources.expressions import Expression
from tacit.sources.facts import Facts
from tacit.statistics import Count, count, read_cells
from tacit.statistics.base import Question, base_unit, by_columns, column_of, replaced, row_limit

if TYPE_CHECKING:
    import pandas as pd

    from tacit.sources.tables import Table

STAYS = "no record changes its step between two figures"
APART = "a person is counted in at most {times} steps, any two of them at least {apart} steps apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The publication of a step: the running total of every group, with intervals for the noise."""

    step: int
    key: Any
    keys: tuple[tuple[Any, ...], ...]
    value: Floats
    low: Floats
    high: Floats
    replayed: bool
    publishable: bool
    certificate: dict[str, Any]
    quality: tuple[str, ...] = ()
    made_up: bool = False
    corrections: tuple[Correction, ...] = ()

    @property
    def correction(self) -> str:
        """A sentence if the figure, or the whole series, was withdrawn or replaced; otherwise empty."""
        told = "; ".join(map(str, self.corrections))
        return f"Do not use this figure: {told}." if told else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSeries:
    """A running total on a declared table: its counts, its steps and its noise. Reads no data."""

    question: Question
    factor: GridFactor
    mechanism: RoundedGaussian
    price: Price
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Steps, then groups."""
        return tuple(a.size or 0 for a in self.question.axes)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the columns of steps and groups, beside those of the numbers."""
        return tuple(renamed({a.column: [] for a in self.question.axes}))

    @property
    def standard_deviations(self) -> Floats:
        """The standard deviation of the figure of every step."""
        unit = math.sqrt(self.mechanism.interval_variance)
        return np.array([unit * self.factor.spread(t) for t in range(1, self.factor.steps + 1)])

    def to_dict(self) -> dict[str, Any]:
        """The defining values, in plain form, that its digest covers."""
        return {
            "kind": "running total",
            "statistic": self.question.statistic.to_dict(),
            "unit": self.question.unit.describe()
            if hasattr(self.question.unit, "describe")
            else str(self.question.unit),
            "neighbours": self.question.unit.neighbours.value,
            "schema": json.loads(json.dumps(self.question.schema.to_dict(), default=str)),
            "steps": self.factor.steps,
            "participations": self.factor.participations,
            "separation": self.factor.separation,
            "strategy": self.factor.strategy,
            "grid": f"2^-{GRID}",
            "squared_sensitivity_units": str(self.squared),
            "noise_std_units": str(Fraction(self.mechanism.noise_std)),
            "price": self.price.to_dict(),
            "name": self.name,
        }

    describe = formerly("describe", method=True)

    @property
    def squared(self) -> int:
        """The squared sensitivity of the noisy numbers, in squared units of the grid."""
        return squared_move(self.question, self.factor)


def squared_move(question: Question, factor: GridFactor) -> int:
    """The squared L2 sensitivity of C x.

    m rows of a unit move x by a sum of m unit vectors, a point of m times their hull: the farthest is m in one step,
    m^2 times the largest squared column. A person who is counted at most once a step moves it as the schedule
    allows. The two moves of a replacement have a non-negative product with C >= 0, so the square of their
    difference is at most twice that.
    """
    statistic = question.statistic
    assert isinstance(statistic, Count)
    size = base_unit(question.unit)[1]
    rows = 1 if statistic.of == "people" else row_limit(question.unit)
    return factor.squared_steps * rows**2 * size**2 * (2 if replaced(question.unit) else 1)


class RunningTotal:
    """A charged running total: its figures, one step after the other."""

    def __init__(
        self, curator: Curator, series: RunningSeries, opened: Recorded | None, sequence: int, entry: str
    ) -> None:
        self._curator, self.series = curator, series
        self.sequence, self.entry = sequence, entry
        self.reopened = opened is not None

    @property
    def guarantee(self) -> Guarantee:
        """The privacy loss of all figures together."""
        return _guarantee(self.series, self.series.mechanism.bound)

    @property
    def published(self) -> int:
        """The number of recorded figures."""
        ledger = self._curator.ledger
        low, high = 0, self.series.factor.steps
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._recorded(ledger, middle) else (low, middle - 1)
        return low

    def release(self, step: int) -> Figure:
        """The figure of this step, a number from 1: from the record, or else the next figure, computed now."""
        step = whole("step", step)
        if not 1 <= step <= self.series.factor.steps:
            raise InvalidParameter(
                parameter="step",
                value=step,
                must=f"be 1 to {self.series.factor.steps}",
                hint="as it was declared",
            )
        ledger = self._curator.ledger
        if ledger.recorded(_opening(self._curator, ledger, self.series)) is None:
            raise InvalidParameter(
                parameter="series", value=self.series.name, must="be paid for in this ledger",
                hint="open_running_total(curator, series) pays for all steps at once",
            )  # fmt: skip
        known = self._recorded(ledger, step)
        earlier = [self._recorded(ledger, t) for t in range(1, step)]
        if any(one is None for one in earlier):
            first = 1 + next(i for i, one in enumerate(earlier) if one is None)
            raise InvalidParameter(
                parameter="step", value=step, must=f"come after step {first}, which has no figure yet",
                hint="figures are released in order, each once; one that was released is free",
            )  # fmt: skip
        noisy = [_units(one.answer) for one in earlier if one is not None]
        made = known is None and self._read(ledger, step)
        # Of figures that two processes make at the same time one is recorded, and that one is published by both.
        found = known if known is not None else self._recorded(ledger, step)
        assert found is not None
        return self._figure(
            step,
            [*noisy, _units(found.answer)],
            found,
            replayed=not made,
            corrections=(*ledger.corrections(self.sequence), *found.corrections),
        )

    def _recorded(self, ledger: Ledger, step: int) -> Recorded | None:
        return ledger.recorded(self._request(ledger, step))

    def _request(self, ledger: Ledger, step: int) -> Request:
        """A step costs nothing: the whole series was charged when it was opened."""
        free = charge(
            [Assignment(noise=(), price=self.series.price, reason="paid in advance")], self._curator.budget.bound,
            neighbours=self._curator.unit.neighbours,
        )  # fmt: skip
        return _asked(
            self._curator, ledger, self.series, key=f"{series_digest(self.series)} step {step}",
            event=events.ApproximateEvent(epsilon=0.0, delta=0.0), bound=free.bound, exact=free.exact,
            words=f"Step {step} of a running total that entry {self.sequence} paid for",
        )  # fmt: skip

    def _read(self, ledger: Ledger, step: int) -> bool:
        """Whether the present figure is the recorded one; otherwise another process was faster."""
        curator = self._curator
        table = curator._open()
        facts = table.facts
        curator._resolver.for_charging(facts)
        asked = self._request(ledger, step)
        outcome = ledger.reserve(asked, check_of(curator.budget))
        if isinstance(outcome, Recorded):
            return False
        with charge_made():
            began = _now()
            try:
                units, publishable = noised(
                    lambda: self._noisy(ledger, table, facts, asked, step), source=table.source
                )
                made = curator._made(table, facts, outcome, began)
                numbers = [int(v) for v in np.ravel(units)]
                answer = {"units": numbers, "publishable": publishable, "made": made}
            except BaseException as problem:
                forget(problem)
                with contextlib.suppress(TacitError):
                    ledger.fail(outcome)
                raise
            entry = ledger.commit(outcome, json.dumps(answer).encode(), only_first=True)
        return bool(entry.body["kind"] == "commit")

    def _noisy(
        self, ledger: Ledger, table: Table, facts: Facts, asked: Request, step: int
    ) -> tuple[np.ndarray[Any, Any], bool]:
        """The noisy numbers of the step, and whether their noise is publishable: all true numbers stay in here."""
        curator, series = self._curator, self.series
        with curator._reading:
            cells = read_cells(table, [series.question], key=ledger.bounding_key)
            if not facts.admits(table.facts):
                raise ReadFailed(source=table.source)
        held = series.question.integers(cells[0])["count"].reshape(series.shape)
        true = series.factor.combined(np.asarray(held), step)
        source = curator._source
        if source is None:
            # The noise is that of table, series, step and numbers: if the step is read again, as
            # after a death or from a restored ledger, equal numbers get equal noise and others their own.
            about = f"running total {series_digest(series)} {_place(asked)} step {step} {_fingerprint(true)}"
            source = KeyedSource(key=ledger.sealed_key(about))
        units = np.asarray(series.mechanism.release_cells(np.ravel(true), source=source))
        return units.reshape(true.shape), source.publishable

    def _figure(
        self, step: int, noisy: Sequence[np.ndarray[Any, Any]], found: Recorded, *, replayed: bool,
        corrections: tuple[Correction, ...],
    ) -> Figure:  # fmt: skip
        series, made, publishable = self.series, _made(found.answer), _publishable(found.answer)
        guarantee = with_looks(self.guarantee, made.get("data", {}))
        groups = series.shape[1:]
        held = np.array([np.reshape(u, groups).astype(np.float64) for u in noisy])
        value = np.ravel(series.factor.total(held, step))
        half = normal_factor(0.05) * float(series.standard_deviations[step - 1])
        shown = np.maximum(np.rint(value), 0.0)
        ends = np.floor(value - half), np.ceil(value + half)
        # Judged before the interval is cut, which may leave [0, 0].
        judged = QualityRule().judged(shown, np.maximum(shown - ends[0], ends[1] - shown))
        low, high = (np.maximum(end, 0.0) for end in ends)
        labels = [a.labels for a in series.question.axes]
        keys = tuple(tuple(labels[1 + i][k] for i, k in enumerate(place)) for place in np.ndindex(*groups))
        certificate = {
            **series.to_dict(),
            "step": step,
            "guarantee": guarantee.to_dict(),
            "meaning": guarantee.explain(),
            "covers": "the running total of the table at this step, each by itself, for the noise",
            "numerical_delta": 0.0,
            "event": to_record(series.mechanism.event),
            "theorems": [
                *series.mechanism.theorems,
                "running-totals",
                "contribution-polytopes",
                "post-processing",
            ],
            "charged": {"ledger": self._curator.ledger.id, "sequence": self.sequence, "entry": self.entry},
            "recorded": {"sequence": found.sequence, "entry": found.digest},
            "publishable": publishable,
            **({"made": made["time"], "data": made["data"], "versions": made["versions"]} if made else {}),
            "values": [[str(k) for k in key] + [float(v)] for key, v in zip(keys, shown, strict=True)],
        }
        certificate["digest"] = sha256(json.dumps(certificate, sort_keys=True, default=str))
        return Figure(
            step=step, key=labels[0][step - 1], keys=keys, value=shown, low=np.minimum(low, shown),
            high=np.maximum(high, shown), replayed=replayed, publishable=publishable, certificate=certificate,
            quality=tuple(WORDS[word] for word in judged), made_up=bool(made and made["data"]["made_up"]),
            corrections=corrections,
        )  # fmt: skip

    @property
    def table(self) -> pd.DataFrame:
        """All figures so far; its `attrs` say which of them were withdrawn or replaced."""
        import pandas as pd

        by, *groups = self.series.key_names
        rows, fallen = [], {}
        for step in range(1, self.published + 1):
            found = self.release(step)
            if found.corrections:
                fallen[step] = found.correction
            for i, key in enumerate(found.keys):
                named = dict(zip(groups, key, strict=True))
                numbers = {n: int(getattr(found, n)[i]) for n in ("value", "low", "high")}
                rows.append({by: found.key, **named, **numbers, "quality": found.quality[i]})
        made = pd.DataFrame(rows, columns=[by, *groups, "value", "low", "high", "quality"])
        if fallen:
            made.attrs["corrections"] = fallen
        return made


def _place(asked: Request) -> str:
    """The table and its files, by which a ledger tells two charges of one series apart."""
    return sha256(json.dumps([asked.table, asked.files], sort_keys=True))


def _fingerprint(true: np.ndarray[Any, Any]) -> str:
    return sha256(json.dumps([int(v) for v in np.ravel(true)]))


def _units(answer: Any) -> np.ndarray[Any, Any]:
    return np.array(json.loads(bytes(answer))["units"], dtype=object)


def _made(answer: Any) -> dict[str, Any]:
    """The origin of a figure, as `Curator` states it; empty for one that was recorded without it."""
    return dict(json.loads(bytes(answer)).get("made", {}))


def _publishable(answer: Any) -> bool:
    return json.loads(bytes(answer))["publishable"] is True


def series_digest(series: RunningSeries) -> str:
    """The digest that identifies a running total."""
    return sha256(json.dumps(series.to_dict(), sort_keys=True))


def _guarantee(series: RunningSeries, bound: Bound) -> Guarantee:
    declared = [STAYS]
    if series.factor.several:
        declared.append(APART.format(times=series.factor.participations, apart=series.factor.separation))
    return Guarantee(bound=bound, unit=series.question.unit, declared=(FIXED_PARAMETERS, *declared))


def _asked(
    curator: Curator, ledger: Ledger, series: RunningSeries, *, key: str, event: events.Event, bound: Bound,
    exact: dict[str, Fraction], words: str,
) -> Request:  # fmt: skip
    request = Request(
        key=key, plan_digest=series_digest(series), analyst=curator.analyst, event=to_record(event),
        charge=_guarantee(series, bound), exact=exact, table=curator._resolver.table,
        told=[{"release": series.name, "statistic": words, "price": {"kind": bound.kind, "words": str(bound)}}],
    )  # fmt: skip
    return curator._about(request, ledger)


def _opening(curator: Curator, ledger: Ledger, series: RunningSeries) -> Request:
    """The request that pays for all steps."""
    assignment = Assignment(
        noise=(Applied(("count",), series.mechanism),), price=series.price, reason="Gaussian noise by a factorisation",
        delta=series.price.spent_delta,
    )  # fmt: skip
    paid = charge([assignment], curator.budget.bound, neighbours=curator.unit.neighbours)
    return _asked(
        curator, ledger, series, key=f"{series_digest(series)} opened", event=series.mechanism.event, bound=paid.bound,
        exact=paid.exact, words=f"A running total of {series.factor.steps} steps, all of them paid for",
    )  # fmt: skip


def running_series(
    curator: Curator,
    by: str | Binned,
    *,
    groups: Any = None,
    of: Literal["rows", "people"] = "rows",
    participations: int = 1,
    separation: int = 1,
    where: str | Expression | None = None,
    name: str = "running total",
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
) -> RunningSeries:
    """The plan of a running total: its noise and the standard deviation of every figure. Reads and charges nothing.

    `by` is the column of the steps, in the order of its keys; `groups` are columns with a running total for each key.
    `of="people"` counts people, each once a step, in at most `participations` steps, `separation` apart.
    """
    price = given_price(
        epsilon=epsilon, delta=delta, rho=rho, mu=mu, within=None, confidence=None, simultaneous=False
    )
    square = None if price is None else mu_squared_within(price)
    if price is None or square is None:
        raise InvalidParameter(
            parameter="price", value=None if price is None else str(price), must="be epsilon and delta, rho or mu",
            hint="running totals have Gaussian noise",
        )  # fmt: skip
    others = by_columns(groups)
    statistic = count(by=[by, *others], where=where, of=of)
    statistic = Count(by=statistic.by, where=statistic.where, of=of, over=tuple(map(column_of, statistic.by)))
    question = statistic.on(curator.schema, curator.unit)
    axis = axis_of(by, curator.schema)
    if not question.known_keys or axis.size is None:
        raise InvalidParameter(
            parameter="by",
            value=column_of(by),
            must="have declared steps",
            hint="integer(1, 52), or bins of days",
        )
    if of == "people" and (others or participations < row_limit(curator.unit)):
        raise InvalidParameter(
            parameter="participations", value=participations,
            must="be at least the rows of a person, without groups, for a count of people",
            hint="people(..., at_most=4) can be counted in four steps: participations=4, separation=1",
        )  # fmt: skip
    if of == "rows" and (participations, separation) != (1, 1):
        raise InvalidParameter(
            parameter="participations", value=participations, must='come with of="people"',
            hint="at_most limits the rows of a person over all steps together",
        )  # fmt: skip
    factor = GridFactor(steps=axis.size, participations=participations, separation=separation)
    mechanism = RoundedGaussian.for_mu_squared(
        mu_squared=square,
        squared_steps=squared_move(question, factor),
        dimension=math.prod(a.size or 0 for a in question.axes),
    )
    return RunningSeries(
        question=question, factor=factor, mechanism=mechanism, price=price, name=text("name", name)
    )


def is_open(curator: Curator, series: RunningSeries) -> bool:
    """Was this series paid for before? Reads no row and makes no ledger."""
    ledger = curator._resolver.existing()
    return ledger is not None and ledger.recorded(_opening(curator, ledger, series)) is not None


def rows_only(unit: Unit) -> None:
    """Refuses people: the rows of a person that count may change between two figures."""
    if isinstance(base_unit(unit)[0], People):
        raise InvalidParameter(
            parameter="protect", value=str(unit), must="protect rows, for a running total",
            hint="of a person with more rows than are used, a new row displaces one that was counted before: "
            "one charge does not cover that; make a table with one row a person, and protect its rows",
        )  # fmt: skip


def open_running_total(curator: Curator, series: RunningSeries) -> RunningTotal:
    """Charges for all steps, once; reopens an earlier series without a charge."""
    curator._usable()
    if series.question.schema != curator.schema or series.question.unit != curator.unit:
        raise InvalidParameter(
            parameter="series",
            value=series.name,
            must="be made for this schema and unit",
            hint="running_series(curator, ...)",
        )
    rows_only(curator.unit)
    curator._open()
    ledger = curator.ledger
    request = _opening(curator, ledger, series)
    found = ledger.recorded(request)
    outcome = found if found is not None else ledger.reserve(request, check_of(curator.budget))
    if isinstance(outcome, Recorded):
        return RunningTotal(curator, series, outcome, outcome.charge.sequence, outcome.digest)
    with charge_made():
        ledger.commit(outcome, json.dumps(series.to_dict(), sort_keys=True).encode(), data_digest="")
    return RunningTotal(curator, series, None, outcome.sequence, outcome.digest)
