"""The curator: holds a table, a budget and a ledger, and lets out statistics that were paid for.

For every release: check everything that can be checked without the data; open the table, so that a broken file is
found; charge the ledger durably; only then read rows; commit the answer. A crash leaves the charge. The same
question about the same data is answered from the record, free.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.curator.asks import Ask, ask
from tacit.curator.certificate import CIPHER, SEEDED, versions
from tacit.curator.made import ledger_part, read_release
from tacit.curator.plan import Plan, make_plan
from tacit.curator.prices import exact_numbers, price
from tacit.curator.records import decode, encode
from tacit.curator.release import Releases
from tacit.curator.treatments import Noisy
from tacit.errors import InvalidParameter, TacitError
from tacit.guarantees import Bound, Guarantee, Unit
from tacit.ledger import Ledger, Recorded, Request, Ticket
from tacit.ledger.places import without_credentials
from tacit.noise.source import Source
from tacit.sources.schema import Schema
from tacit.sources.tables import Table, open_table
from tacit.statistics import Statistic, read_cells

__all__ = ["Curator"]

Asked = Statistic | Ask | Plan | Sequence[Statistic | Ask]


class Curator:
    """A custodian's table with its declared schema, the unit it protects, its budget and its ledger.

    `data` is a path (Parquet, CSV), a pandas, Polars or Arrow table, or an Ibis table; it is opened at the first
    release, by `engine` ("duckdb" or "spark"); `portable` keeps of each person the same rows on both.
    `budget` is a bound; `ledger` a path or a database URL, kept for the life of the table. Without a ledger
    the budget lasts for this session only.
    """

    def __init__(
        self,
        data: Any,
        *,
        protect: Unit,
        schema: Schema | Mapping[str, Any],
        budget: Bound | Guarantee,
        ledger: str | os.PathLike[str] | Ledger | None = None,
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
        self.analyst = analyst
        self._data = data
        given = {"engine": engine, "memory": memory, "portable": portable or None}
        self._options: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        self._source = source
        self._table: Table | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.budget = self._guarantee(budget)
        self._ledger_at = ledger
        self._wait = wait_seconds
        self._ledger: Ledger | None = ledger if isinstance(ledger, Ledger) else None
        if self._ledger is not None and self._ledger.budget != self.budget:
            raise InvalidParameter(
                parameter="budget",
                value=str(self.budget),
                must=f"be that of the ledger, {self._ledger.budget}",
            )

    def _guarantee(self, budget: Bound | Guarantee) -> Guarantee:
        if isinstance(budget, Guarantee):
            if budget.unit != self.unit:
                raise InvalidParameter(
                    parameter="budget",
                    value=str(budget.unit),
                    must=f"be for the unit that is protected, {self.unit}",
                )
            return budget
        if not isinstance(budget, Bound):
            raise InvalidParameter(
                parameter="budget",
                value=budget,
                must="be a bound",
                hint="tacit.Approximate(epsilon=1.0, delta=1e-6)",
            )
        return Guarantee(bound=budget, unit=self.unit)

    # --- the ledger -------------------------------------------------------------------------------------
    @property
    def ledger(self) -> Ledger:
        """The ledger, created at the first use."""
        if self._ledger is None:
            where: Any = self._ledger_at
            if where is None:
                self._folder = tempfile.TemporaryDirectory(prefix="tacit-", ignore_cleanup_errors=True)
                where = Path(self._folder.name) / "session.ledger"
            exact = exact_numbers(self.budget.bound)
            self._ledger = Ledger.at(where, budget=self.budget, exact=exact, wait_seconds=self._wait)
        return self._ledger

    @property
    def spent(self) -> Bound:
        """What was spent so far, in the budget's own terms."""
        return self.ledger.spent()

    @property
    def remaining(self) -> Bound:
        """What is left, in the budget's own terms; for an analyst with a share, of that."""
        return self.ledger.remaining(self.analyst)

    # --- asking -----------------------------------------------------------------------------------------
    def preview(self, asked: Asked, *, rows: int | None = None, **paid: Any) -> Plan:
        """Price and expected error; reads no row and spends nothing. `rows` is a public guess for means and ratios."""
        if isinstance(asked, Plan):
            return asked
        asks = _asks(asked)
        if rows is not None:
            asks = [ask_with(a, rows=rows) for a in asks]
        total = price(**paid) if paid else None
        return make_plan(asks, schema=self.schema, unit=self.unit, budget=self.budget.bound, total=total)

    def release(
        self, asked: Asked, *, key: str | None = None, consistent: bool | None = None, **paid: Any
    ) -> Any:
        """Pay, read, publish: a Release for one statistic, Releases for a list or a plan (one charge for all).

        `key` names the request: the same key and the same data are answered from the record, free. By default the
        key is the digest of the plan, so that the same question at the same price is the same request.
        """
        if consistent is not None and not isinstance(asked, Plan):
            asks = [ask_with(a, consistent=bool(consistent)) for a in _asks(asked)]
        elif not isinstance(asked, Plan):
            asks = _asks(asked)
        plan = asked if isinstance(asked, Plan) else self.preview(asks, **paid)
        if isinstance(asked, Plan) and paid:
            raise InvalidParameter(
                parameter="price", value=sorted(paid), must="be left out: the plan has its price"
            )
        releases = self._run(plan, key or plan.digest)
        return releases[0] if isinstance(asked, Statistic | Ask) else releases

    def _run(self, plan: Plan, key: str) -> Releases:
        if plan.unit != self.unit or plan.schema != self.schema:
            raise InvalidParameter(
                parameter="plan",
                value=plan.digest[:12],
                must="be made for this schema and unit",
                hint="preview it here",
            )
        # The table first: a broken file leaves no new ledger behind.
        table = self._open()
        ledger = self.ledger
        request = Request(
            key=key,
            plan_digest=plan.digest,
            data_digest=table.digest(ledger.bounding_key),
            analyst=self.analyst,
            event=plan.record,
            charge=plan.charge,
            exact=plan.charged.exact,
        )
        outcome = ledger.reserve(request)
        if isinstance(outcome, Recorded):
            return self._releases(plan, outcome.answer)
        try:
            answers = self._read(plan, table)
            recorded = encode(answers, self._made(table, outcome))
        except BaseException:
            with contextlib.suppress(TacitError):
                ledger.fail(outcome)
            raise
        # From here on the answer is on record: whatever fails below can be had again, free.
        ledger.commit(outcome, recorded)
        return self._releases(plan, recorded, paid=outcome)

    def _made(self, table: Table, paid: Ticket) -> dict[str, Any]:
        """What makes an answer, kept with it: a replay says what the first answer said."""
        cipher = self._source is None or self._source.publishable
        return {
            "time": _now(),
            "sequence": paid.sequence,
            "entry": paid.digest,
            "noise": CIPHER if cipher else SEEDED,
            "data": {
                "engine": table.engine,
                "bounded": table.person is not None,
                "conditions": list(getattr(table, "conditions", ())),
            },
            "versions": versions(),
        }

    def _read(self, plan: Plan, table: Table) -> list[Noisy]:
        """True numbers exist between these two lines, and nowhere else."""
        questions = [r.question for r in plan.releases]
        cells = read_cells(table, questions, key=self.ledger.bounding_key)
        return [
            r.treatment.run(r.question, c, source=self._source)
            for r, c in zip(plan.releases, cells, strict=True)
        ]

    def _releases(self, plan: Plan, recorded: bytes, *, paid: Ticket | None = None) -> Releases:
        """The releases of an answer that is on record: made of it alone, whether it was paid for now or earlier."""
        answers, made = decode(recorded)
        spent, remaining = (None, None) if paid is None else (paid.spent, paid.left)
        if spent is None or remaining is None:
            spent, remaining = self.ledger.standing(self.analyst)
        return Releases(
            read_release(
                plan, planned, noisy, made, ledger=ledger_part(self.ledger.id, recorded, made),
                spent=spent, remaining=remaining, replayed=paid is None,
            )
            for planned, noisy in zip(plan.releases, answers, strict=True)
        )  # fmt: skip

    # --- the table --------------------------------------------------------------------------------------
    def _open(self) -> Table:
        if self._table is None:
            self._table = open_table(self._data, schema=self.schema, unit=self.unit, **self._options)
        return self._table

    def close(self) -> None:
        """Give the engine and the ledger back."""
        if self._table is not None:
            self._table.close()
            self._table = None
        if self._ledger is not None:
            self._ledger.close()
        if self._folder is not None:
            self._ledger = None
            self._folder.cleanup()

    def __enter__(self) -> Curator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        at = self._ledger_at
        kept = "for this session only" if at is None else f"in {without_credentials(str(at))}"
        return f"Curator(budget={self.budget}, ledger kept {kept})"


def _asks(asked: Any) -> list[Ask]:
    if isinstance(asked, Ask):
        return [asked]
    if isinstance(asked, Statistic):
        return [ask(asked)]
    if isinstance(asked, Sequence) and not isinstance(asked, str):
        return [a if isinstance(a, Ask) else ask(a) for a in asked]
    raise InvalidParameter(
        parameter="asked", value=type(asked).__name__, must="be a statistic, a list of them, or a plan",
        hint='for example tacit.count(by="state")',
    )  # fmt: skip


def ask_with(one: Ask, **changes: Any) -> Ask:
    """The ask with some fields changed."""
    from dataclasses import replace

    return replace(one, **changes)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
