"""The curator: holds a table, a budget and a ledger, and publishes statistics after their charge.

For every release the curator checks everything that needs no data; looks for a recorded answer to the same
question about the same declared version, which is free; opens the table, so that a broken file is found;
charges the ledger durably; only then reads rows; and commits the answer. A crash leaves the charge.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import starmap
from operator import call
from pathlib import Path
from typing import Any, NoReturn, overload

from tacit.curator.agreement import agreed
from tacit.curator.assignments import NoisyParts
from tacit.curator.cells import RULE
from tacit.curator.certificate import CIPHER, SEEDED, decode, encode, form_of_names, said_digests, versions
from tacit.curator.charging import (
    Number,
    Price,
    check_of,
    flag,
    given_price,
    payable,
    payable_exactly,
    standing_of,
)
from tacit.curator.choice import choice_of, read_choice
from tacit.curator.contributing import SharePlan, contributed, share_of
from tacit.curator.fitting import Fit, fit_of
from tacit.curator.ledgers import LedgerResolver, Named
from tacit.curator.planning import KeptPlans, Plan, make_plan
from tacit.curator.release import Release, Releases, ledger_part, read_release
from tacit.curator.request import Assumed, Given, Query, asks_of, declared_files, given_of, nameless
from tacit.curator.request_0_1_0 import earlier_requests
from tacit.curator.text import told_of
from tacit.errors import Closed, InvalidParameter, ReadFailed, TacitError, charge_made
from tacit.exact.checks import instance
from tacit.guarantees import Bound, Guarantee, Unit
from tacit.ledger import Correction, Ledger, Recorded, Request, Ticket
from tacit.ledger.entries import named, text
from tacit.ledger.ledger import mark_of, rows_folder
from tacit.noise.source import Source
from tacit.sources.error_boundary import each, forget, noised
from tacit.sources.facts import Facts, is_made_up
from tacit.sources.kept import KeptRows
from tacit.sources.opening.files import reading_of
from tacit.sources.schema import Schema
from tacit.sources.tables import Table, open_table
from tacit.statistics import Statistic, read_cells

Asked = Statistic | Query | Plan | Sequence[Statistic | Query]
Paid = Number | None


class Curator:
    """A custodian's table with its declared schema, the unit it protects, its budget and its ledger.

    `data` is a path (Parquet, CSV), a pandas, Polars or Arrow table, or an Ibis table; it is opened at the first
    release, by `engine` ("duckdb" or "spark"); `portable` keeps of each person the same rows on both.
    `budget` is a bound; `ledger` a path or a database URL, kept for the life of the table. A file with a ledger
    keeps that ledger; `another_ledger=True` asks for a second one, which is a second budget. Without one the
    budget lasts for this session only. `table` and `version` are public names, declared and never read from the
    data. The same question about the same version is answered from the record, even if the rows changed.
    """

    def __init__(
        self,
        data: Any,
        *,
        protect: Unit,
        schema: Schema | Mapping[str, Any],
        budget: Bound | Guarantee,
        ledger: Named = None,
        table: str = "",
        version: str = "",
        another_ledger: bool = False,
        shares: Mapping[str, Bound] | None = None,
        analyst: str = "curator",
        engine: str | None = None,
        memory: str | None = None,
        portable: bool = False,
        source: Source | None = None,
        wait_seconds: float = 30.0,
    ) -> None:
        if not isinstance(protect, Unit):
            raise InvalidParameter(
                parameter="protect", value=protect, must="say who is protected",
                hint='rows() or people("person_id", at_most=12)',
            )  # fmt: skip
        self.unit = protect
        self.schema = schema if isinstance(schema, Schema) else Schema(schema)
        self.analyst = text("analyst", analyst)
        self._data, self.reading = data, reading_of(data)
        self._beside: Path | None = None
        given = {"engine": engine, "memory": memory, "portable": flag("portable", portable) or None}
        self._options: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        self._source = noise_source(source)
        self._table: Table | None = None
        self._plans = KeptPlans()
        # The last request, and the same with its files: a plan is priced, asked for and released one after the other.
        self._asked: tuple[Plan, tuple[Any, ...], Request] | None = None
        self._named: tuple[Request, Any, Request] | None = None
        self.budget = self._guarantee(budget)
        self.version = text("version", version, empty=True)
        self._lock, self._reading, self._closed = threading.RLock(), threading.Lock(), False
        self._resolver = LedgerResolver(
            data, named=ledger, budget=self.budget, table=table, another=another_ledger, wait_seconds=wait_seconds,
            shares=named("shares", shares),
        )  # fmt: skip

    def _guarantee(self, budget: Bound | Guarantee) -> Guarantee:
        if isinstance(budget, Guarantee):
            if budget.unit != self.unit:
                must = f"be for the unit that is protected, {self.unit}"
                raise InvalidParameter(parameter="budget", value=str(budget.unit), must=must)
            return budget
        if not isinstance(budget, Bound):
            raise InvalidParameter(
                parameter="budget", value=budget, must="be a bound", hint="tacit.Approximate(epsilon=1.0, delta=1e-6)"
            )  # fmt: skip
        return Guarantee(bound=budget, unit=self.unit)

    # --- the ledger -------------------------------------------------------------------------------------
    @property
    def ledger(self) -> Ledger:
        """The ledger, created at the first use."""
        self._usable()
        return self._resolver.made()

    @property
    def spent(self) -> Bound:
        """The amount spent so far, in the budget's own terms."""
        return self.standing[0].bound

    @property
    def remaining(self) -> Bound:
        """The amount left, in the budget's own terms; for an analyst with a share, of that share."""
        return self.standing[1].bound

    @property
    def standing(self) -> tuple[Guarantee, Guarantee]:
        """The spent and the remaining amount, as guarantees: under RandomData with their gammas."""
        return standing_of(self.ledger, self.analyst)

    # --- asking -----------------------------------------------------------------------------------------
    def preview(
        self,
        asked: Asked,
        *,
        epsilon: Paid = None,
        delta: Paid = None,
        rho: Paid = None,
        mu: Paid = None,
        within: Paid = None,
        confidence: Paid = None,
        simultaneous: bool = False,
        given: Assumed = None,
        rows: int | None = None,
    ) -> Plan:
        """Price and expected error; reads no row and spends nothing. `rows` is a public guess for means and ratios.

        The price is one of epsilon (with a delta: (epsilon, delta)), rho (zCDP), mu (Gaussian DP), and `within`: an
        error that each cell stays within at a `confidence`, or all at once (`simultaneous`). A plan has its price.
        `given={"random_data": 0.05}` asks for random differential privacy, which is weaker, with this gamma in all.
        """
        self._usable()
        total = given_price(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, within=within, confidence=confidence,
            simultaneous=simultaneous,
        )  # fmt: skip
        plan = self._planned(asked, total, given_of(given), rows=rows)
        self._say_if_too_dear(plan)
        return plan

    def _say_if_too_dear(self, plan: Plan) -> None:
        """Keeps with a plan the reason why it does not fit at this moment, for its text."""
        plan.kept.pop("exceeds", None)
        try:
            fit = self.fit(plan)
        except TacitError:
            # The price is known without the ledger, and a release refuses what cannot be paid.
            return
        if not fit.fits:
            plan.kept["exceeds"] = str(fit)

    def _planned(self, asked: Asked, total: Price | None, given: Given | None, **changes: Any) -> Plan:
        """The plan, with a price and changes that are not None."""
        changes = {name: value for name, value in changes.items() if value is not None}
        if isinstance(asked, Plan | SharePlan):
            whole(asked)
            words = {"a price": total, "given": given} | changes
            said = [word for word, value in words.items() if value is not None]
            if said:
                raise InvalidParameter(parameter="plan", value=said, must="be alone: it has its own price")
            return asked
        asks = [replace(a, **changes) for a in asks_of(asked)]
        about: Any = {
            "schema": self.schema,
            "unit": self.unit,
            "reading": self.reading,
            "budget": self.budget.bound,
        }
        return self._plans.get(
            asks, total, given, partial(make_plan, asks, total=total, given=given, **about)
        )

    @overload
    def release(
        self, asked: Statistic | Query, *, epsilon: Paid = ..., delta: Paid = ..., rho: Paid = ..., mu: Paid = ...,
        within: Paid = ..., confidence: Paid = ..., simultaneous: bool = ..., given: Assumed = ...,
        key: str | None = ..., consistent: bool | None = ...,
    ) -> Release: ...  # fmt: skip

    @overload
    def release(
        self, asked: Plan | Sequence[Statistic | Query], *, epsilon: Paid = ..., delta: Paid = ..., rho: Paid = ...,
        mu: Paid = ..., within: Paid = ..., confidence: Paid = ..., simultaneous: bool = ..., given: Assumed = ...,
        key: str | None = ..., consistent: bool | None = ...,
    ) -> Releases: ...  # fmt: skip

    def release(
        self,
        asked: Asked,
        *,
        epsilon: Paid = None,
        delta: Paid = None,
        rho: Paid = None,
        mu: Paid = None,
        within: Paid = None,
        confidence: Paid = None,
        simultaneous: bool = False,
        given: Assumed = None,
        key: str | None = None,
        consistent: bool | None = None,
    ) -> Release | Releases:
        """Pay, read, publish: a Release for one statistic, Releases for a list or a plan (one charge for all).

        The price is stated as in `preview`. `consistent` asks for whole numbers that are not negative and add up.
        `key` names the request: the same key about the same declared version is answered from the record, free, and
        no row is read for it. By default the key is the digest of the request, so that the same question at the
        same price about the same files is the same request, for any chosen mechanism.
        """
        self._usable()
        total = given_price(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, within=within, confidence=confidence,
            simultaneous=simultaneous,
        )  # fmt: skip
        plan = self._planned(asked, total, given_of(given), consistent=consistent)
        releases = self._run(plan, plan.digest if key is None else text("key", key))
        return releases[0] if isinstance(asked, Statistic | Query) else releases

    def _request(self, plan: Plan, key: str, *, joint: bool = False) -> Request:
        if not joint:
            whole(plan)
        said = (key, joint, self.analyst, self.version, self._resolver.table)
        last = self._asked
        if last is not None and last[0] is plan and last[1] == said:
            return last[2]
        # In a joint plan each holder has files of its own, written as they are there.
        read = plan.reading == self.reading or joint
        if plan.unit != self.unit or plan.schema != self.schema or not read:
            must = "be made for this schema and unit, and for data that are read as these"
            raise InvalidParameter(
                parameter="plan", value=plan.digest[:12], must=must, hint="preview it here"
            )
        payable(plan.gamma, self.budget)
        payable_exactly(plan.charge, self.budget)
        made = Request(
            key=key,
            plan_digest=plan.digest,
            analyst=self.analyst,
            event=plan.event_record,
            charge=plan.charge,
            exact=plan.exact,
            table=self._resolver.table,
            version=self.version,
            told=told_of(plan),
            choice=None if joint else choice_of(plan),
            known_as=() if joint else plan.earlier,
            earlier=None if joint else lambda: earlier_requests(plan),
        )
        self._asked = (plan, said, made)
        return made

    def _about(self, request: Request, ledger: Ledger) -> Request:
        """The same request with the declared files, under this ledger's names for them."""
        folder = self._resolver.folder(ledger) or self._beside
        public = self._open().facts.public if nameless(self._data) else ()
        files = declared_files(self._data, folder, public)
        last = self._named
        if last is None or last[0] is not request or last[1] != files:
            self._named = last = (request, files, replace(request, files=files))
        return last[2]

    def request(self, plan: Plan, *, key: str | None = None, note: str = "") -> int:
        """Ask for an approval of exactly this plan; the number of the request. Charges nothing, reads no row."""
        self._usable()
        asked = self._request(plan, whole(plan).digest if key is None else text("key", key))
        ledger = self._resolver.for_charging()
        return ledger.request(self._about(asked, ledger), check_of(self.budget), note=note)[0]

    def fit(self, plan: Plan, *, key: str | None = None) -> Fit:
        """The amount left, and whether the plan fits it. Reads no row, spends nothing and makes no ledger."""
        self._usable()
        asked = self._request(plan, whole(plan).digest if key is None else text("key", key))
        ledger = self._resolver.glance()
        asked = asked if ledger is None else self._about(asked, ledger)
        return fit_of(ledger, asked, self.budget, self._resolver.shares)

    def _run(self, plan: Plan, key: str) -> Releases:
        request = self._request(plan, key)
        outcome: Ticket | Recorded | None = None
        if self._table is None and (known := self._resolver.existing()) is not None:
            # A record is looked up before a table is opened for it; where one is open, with the reservation.
            outcome = known.recorded(self._about(request, known))
        if not isinstance(outcome, Recorded):
            # The table first: a broken file leaves no new ledger behind.
            table = self._open()
            facts = table.facts
            ledger = self._resolver.for_charging(facts)
            outcome = ledger.reserve(self._about(request, ledger), check_of(self.budget))
        if isinstance(outcome, Recorded):
            kept = read_choice(plan, outcome.charge)
            return self._releases(kept, outcome.answer, said=outcome.corrections)
        with charge_made():
            # Before a row is read: a certificate with the time of the end would tell how long the read took.
            began = _now()
            try:
                with self._reading:
                    digest = _digest(table, ledger.bounding_key)
                    answers = self._read(plan, table, facts)
                made = {**self._made(table, facts, outcome, began), **form_of_names(plan)}
                recorded = encode(answers, {**made, "said": said_digests(plan, made)})
            except BaseException as problem:
                forget(problem)
                with contextlib.suppress(TacitError):
                    ledger.fail(outcome)
                raise
            # From here on the answer is on record: whatever fails below can be had again, free.
            ledger.commit(outcome, recorded, data_digest=digest)
            return self._releases(plan, recorded, paid=outcome)

    @property
    def publishable(self) -> bool:
        """Whether its noise comes from the cipher, and not from a seed for tests."""
        return self._source is None or self._source.publishable is True

    @property
    def made_up(self) -> bool:
        """Whether its rows are those of a twin, which describe nobody.
        Whether the rows of the open table are made up."""
        return is_made_up(self._data) if self._table is None else self._table.facts.made_up

    def contribute(self, share: SharePlan, *, key: str) -> list[NoisyParts]:
        """This table's part in a joint plan, charged first, with its share of the noise; `key` names the session."""
        self._usable()
        plan = share_of(share)
        request = self._request(plan, text("key", key), joint=True)
        table = self._open()
        facts = table.facts
        ledger = self._resolver.for_charging(facts)
        request = self._about(request, ledger)

        def read() -> tuple[list[NoisyParts], str]:
            with self._reading:
                return self._read(plan, table, facts), _digest(table, ledger.bounding_key)

        return contributed(ledger, request, read, check=check_of(self.budget))

    def _made(self, table: Table, charged: Facts, paid: Ticket, began: str) -> dict[str, Any]:
        """The origin of an answer, kept with it: a replay states the origin of the first answer."""
        return {
            "time": began,
            "sequence": paid.sequence,
            "entry": paid.digest,
            "noise": CIPHER if self.publishable else SEEDED,
            "data": {
                "engine": table.engine,
                "bounded": table.person is not None,
                "conditions": list(table.conditions),
                **self._resolver.known_of(paid),
                "version": self.version,
                "files": paid.request.files,
                "made_up": charged.made_up,
                "quality_rule": RULE,
                **({"reading": self.reading} if self.reading else {}),
            },
            "versions": versions(),
        }

    def _read(self, plan: Plan, table: Table, charged: Facts) -> list[NoisyParts]:
        """Only the code between these two lines handles true numbers."""
        questions = [r.question for r in plan.releases]
        folder = rows_folder(self.ledger)
        mark = mark_of(self.ledger, self.version)
        table.keep = KeptRows(folder=folder, mark=mark, reading=self.reading) if folder else None
        cells = read_cells(table, questions, key=self.ledger.bounding_key)
        if not charged.admits(table.facts):
            # Other files are there than those whose ledger was charged: more that match a pattern, or no twin any more.
            raise ReadFailed(source=table.source)
        runs = [partial(r.assignment.run, r.question, source=self._source) for r in plan.releases]
        asked = zip(runs, cells, strict=True)
        return noised(partial(list, starmap(call, each(asked, "releases done"))), source=table.source)

    def _releases(
        self, plan: Plan, recorded: bytes, *, paid: Ticket | None = None, said: tuple[Correction, ...] = ()
    ) -> Releases:
        """The releases of a recorded answer, made from the record alone, whether it was paid now or earlier."""
        answers, made = decode(recorded)
        if paid is None or paid.spent is None or paid.left is None:
            spent, remaining = self.standing
        else:
            spent, remaining = (replace(self.budget, bound=b) for b in (paid.spent, paid.left))
        entry = ledger_part(self.ledger.id, recorded, made)
        together = agreed(plan, answers) if plan.agrees else {}
        return Releases(
            read_release(
                plan, planned, noisy, made, ledger=entry, spent=spent, remaining=remaining, replayed=paid is None,
                said=said, agreed=together.get(place),
            )
            for place, (planned, noisy) in enumerate(zip(plan.releases, answers, strict=True))
        )  # fmt: skip

    # --- the table --------------------------------------------------------------------------------------
    def _open(self) -> Table:
        with self._lock:
            self._usable()
            if self._table is None:
                self._table = open_table(self._data, schema=self.schema, unit=self.unit, **self._options)
            else:
                self._table.renew()
            return self._table

    def _usable(self) -> None:
        if self._closed:
            raise Closed

    def close(self) -> None:
        """Give the engine and the ledger back. A closed curator cannot be reopened; a session's ledger is deleted."""
        with self._lock:
            self._closed = True
            if self._table is not None:
                self._table.close()
                self._table = None
            self._resolver.close()

    def __enter__(self) -> Curator:
        self._usable()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Curator(budget={self.budget}, ledger kept {self._resolver})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a curator is not copied or pickled: its budget would be there twice")


def _digest(table: Table, key: bytes) -> str:
    """The parts of the answer, for the custodian. A failure here stops no release, since it may concern other
    columns.
    """
    try:
        return table.digest(key)
    except Exception:
        return "unreadable"


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def whole(plan: object) -> Plan:
    """A plan that can be released; an error for a holder's share of a joint plan, and for anything else."""
    if isinstance(plan, SharePlan) or (
        isinstance(plan, Plan) and any(r.assignment.of_shares for r in plan.releases)
    ):
        raise InvalidParameter(
            parameter="plan", value="a holder's share of a joint plan", must="be given to "
            "contribute, and to no other method",
            hint="its numbers have a part of the noise only; tacit joint adds up the parts of all holders",
        )  # fmt: skip
    instance("plan", plan, Plan, must="be a plan", hint="survey.preview(...) makes one")
    assert isinstance(plan, Plan)
    return plan


def noise_source(source: Source | None) -> Source | None:
    """Checks that a source of noise can draw it before anything is charged."""
    if source is not None and not isinstance(source, Source):
        raise InvalidParameter(
            parameter="source", value=type(source).__name__, must="be a source of noise, or be left out",
            hint="tacit.noise.SeededSource(seed=1) for tests",
        )  # fmt: skip
    return source
