"""The ledger: reserve, run, commit. What is written down here was spent, whatever happened afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tacit.errors import InvalidParameter, LedgerError, TacitError
from tacit.guarantees import Bound, Guarantee
from tacit.guarantees.record import to_record
from tacit.ledger import budget as totals
from tacit.ledger.book import Book, now
from tacit.ledger.budget import ChargeCheck, Limit, in_currency, running_total
from tacit.ledger.canonical import canonical, derived_key, mac, plain, sha256
from tacit.ledger.chain import Committed, History, Verification, committed
from tacit.ledger.entries import Charge, Entry, Recorded, Request, Ticket, exact_amounts, reserve_body, text
from tacit.ledger.header import FORMAT, Header, head_mac
from tacit.ledger.store import ANSWERS, Store
from tacit.ledger.verify import verify

__all__ = ["Ledger"]

T = TypeVar("T")


class Ledger(Book):
    """A budget and everything that was spent of it, in a file or a database that several processes share.

    Reserve: in one transaction that nobody else writes in, the charges so far are read, the check decides,
    and the charge is on the disk; only then may a row be read. Commit: the answer is recorded. A crash in
    between leaves the charge spent. Entries are chained by SHA-256 and never changed.
    """

    # --- opening -------------------------------------------------------------------------------------
    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str],
        *,
        budget: Guarantee,
        shares: Mapping[str, Bound] | None = None,
        exact: Mapping[str, Fraction] | None = None,
        wait_seconds: float = 30.0,
    ) -> Ledger:
        """A new ledger with this budget; an existing one is never touched.

        `shares` are limits of single analysts ("*": of everybody who has none); the budget binds as well.
        `exact` gives the budget's numbers as fractions, where the floats only stand for them.
        """
        if not isinstance(budget, Guarantee):
            raise InvalidParameter(parameter="budget", value=budget, must="be a guarantee")
        store, secret = Store(where, wait_seconds=wait_seconds), os.urandom(32)
        header = Header(
            id=os.urandom(16).hex(),
            created=now(),
            budget=budget,
            exact=exact_amounts(budget, exact),
            shares={text("analyst", k): totals.share(v, budget) for k, v in (shares or {}).items()},
        ).write(secret)
        start = sha256(header)
        store.create(
            {
                "format": FORMAT,
                "header": header,
                "secret": secret,
                "sequence": 0,
                "digest": start,
                "mac": head_mac(secret, start, 0, start),
            }
        )
        return cls(store)

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, wait_seconds: float = 30.0) -> Ledger:
        """The ledger at this place; nothing is created."""
        return cls(Store(where, wait_seconds=wait_seconds))

    @classmethod
    def at(
        cls,
        where: str | os.PathLike[str],
        *,
        budget: Guarantee,
        exact: Mapping[str, Fraction] | None = None,
        wait_seconds: float = 30.0,
    ) -> Ledger:
        """The ledger at this place if there is one, which must have this very budget; else a new one."""
        store = Store(where, wait_seconds=wait_seconds)
        if not store.exists():
            try:
                return cls.create(where, budget=budget, exact=exact, wait_seconds=wait_seconds)
            except LedgerError:
                if not store.exists():
                    raise
        found = cls(store)
        if found.budget != budget:
            raise InvalidParameter(
                parameter="budget",
                value=str(budget),
                must=f"be that of the ledger, {found.budget}",
                hint="a budget is decided once; a new one needs a new ledger",
            )
        return found

    @property
    def limit(self) -> Limit:
        """The budget as a limit on running totals."""
        return Limit(bound=self.budget.bound, exact=self.exact)

    @property
    def bounding_key(self) -> bytes:
        """The key for contribution bounding by keyed hashes: 32 bytes, the same for the life of the ledger.

        Which rows of a person are kept must not be foreseeable, so that it is never printed or exported.
        """
        return derived_key(self._secret, "contribution bounding")

    # --- reserve, run, commit ------------------------------------------------------------------------
    def reserve(self, request: Request, charge_check: ChargeCheck | None = None) -> Ticket | Recorded:
        """Charge durably, or answer from the record, or raise BudgetExceeded with nothing spent.

        `charge_check` is a pure function over all charges, the asked one last (`running_total` if absent);
        it runs inside the transaction, and again for the analyst's own charges where there is a share.
        """
        if not isinstance(request, Request):
            raise InvalidParameter(parameter="request", value=type(request).__name__, must="be a Request")
        in_currency(request.charge, self.budget)
        if charge_check is None:
            totals.addable(self.budget)
        check = charge_check or running_total
        mark = mac(self._secret, "data", request.data_digest)
        with self._store.writing() as connection:
            self._sync(connection)
            known = self._history.answers.get((request.key, mark))
            if known is not None:
                return self._replay(connection, request, known)
            entry = self._next("reserve", **reserve_body(request, mark))
            asked = entry.charge()
            charges = [*self._history.charges.values(), asked]
            check(charges, self.limit)
            share = self._history.share_of(request.analyst)
            if share is not None:
                own = [c for c in charges if c.analyst == request.analyst]
                check(own, Limit(bound=share, whose=f"the share of {request.analyst!r}"))
            self._append(connection, entry)
            spent, left = None, None
            if charge_check is None:
                spent, rest = totals.standing(charges, self.limit)
                left = self._own(charges, self._history, request.analyst, rest)
        return Ticket(
            sequence=entry.sequence,
            digest=entry.digest,
            ledger=self.id,
            request=request,
            spent=spent,
            left=left,
        )

    def commit(self, ticket: Ticket, answer: Any) -> Entry:
        """Record the answer (bytes, or anything that is plain JSON) to what was reserved."""
        kind = "bytes" if isinstance(answer, bytes) else "json"
        body = answer if isinstance(answer, bytes) else canonical(answer, what="answer").encode("ascii")
        said = {"kind": kind, "sha256": sha256(body), "size": len(body)}
        with self._store.writing() as connection:
            entry = self._close(connection, ticket, "commit", answer=said)
            connection.execute(sa.insert(ANSWERS).values(sequence=entry.sequence, body=body))
        return entry

    def fail(self, ticket: Ticket) -> Entry:
        """Record that there will be no answer. The charge stays: rows may have been read."""
        with self._store.writing() as connection:
            return self._close(connection, ticket, "failed")

    def run(
        self, request: Request, compute: Callable[[], Any], charge_check: ChargeCheck | None = None
    ) -> Any:
        """The answer: from the record if there is one, else reserved, computed and committed."""
        outcome = self.reserve(request, charge_check)
        if isinstance(outcome, Recorded):
            return outcome.answer
        try:
            answer = compute()
        except BaseException:
            with suppress(TacitError):
                self.fail(outcome)
            raise
        self.commit(outcome, answer)
        return answer if isinstance(answer, bytes) else plain(answer)

    def share(self, analyst: str, bound: Bound) -> Entry:
        """Set the limit of one analyst ("*": of everybody who has none) from now on."""
        fit = replace(self.budget, bound=totals.share(bound, self.budget))
        body = {"analyst": text("analyst", analyst), "share": to_record(fit)}
        with self._store.writing() as connection:
            self._sync(connection)
            entry = self._next("share", **body)
            self._append(connection, entry)
        return entry

    # --- reading -------------------------------------------------------------------------------------
    def charges(self, analyst: str | None = None) -> tuple[Charge, ...]:
        """Every charge so far, of everybody or of one analyst."""
        return self._read(
            lambda h: tuple(c for c in h.charges.values() if analyst is None or c.analyst == analyst)
        )

    def events(self, decode: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
        """What was run, each record decoded by the caller's table; for an accountant that re-reads history."""
        return tuple(decode(c.event) for c in self.charges())

    def spent(self, analyst: str | None = None) -> Bound:
        """The running total in the budget's own kind, rounded up."""
        totals.addable(self.budget)
        return totals.spent(self.charges(analyst), self.limit)

    def remaining(self, analyst: str | None = None) -> Bound:
        """What is left, rounded down; for an analyst with a share, of both limits the smaller."""
        totals.addable(self.budget)
        return self._read(lambda h: self.left_of(h, analyst))

    def standing(self, analyst: str | None = None) -> tuple[Bound, Bound]:
        """What was spent by all, and what is left for the analyst, at one moment and in one reading."""
        totals.addable(self.budget)

        def pick(history: History) -> tuple[Bound, Bound]:
            spent, rest = totals.standing(list(history.charges.values()), self.limit)
            return spent, self._own(history.charges.values(), history, analyst, rest)

        return self._read(pick)

    def left_of(self, history: History, analyst: str | None) -> Bound:
        """What a history leaves of the budget, and of the analyst's share."""
        charges = list(history.charges.values())
        return self._own(charges, history, analyst, totals.left(charges, self.limit))

    def _own(self, charges: Iterable[Charge], history: History, analyst: str | None, rest: Bound) -> Bound:
        share = None if analyst is None else history.share_of(analyst)
        if share is None:
            return rest
        own = [c for c in charges if c.analyst == analyst]
        return totals.smaller(rest, totals.left(own, Limit(bound=share)))

    def shares(self) -> dict[str, Bound]:
        """The limits of single analysts."""
        return self._read(lambda h: dict(h.shares))

    def state(self, sequence: int) -> str:
        """What became of a reservation: reserved, committed or failed."""

        def pick(history: History) -> str:
            if sequence not in history.charges:
                raise InvalidParameter(parameter="sequence", value=sequence, must="be that of a reservation")
            return history.state(sequence)

        return self._read(pick)

    def entries(self) -> tuple[Entry, ...]:
        """The whole chain, read and checked anew."""
        return tuple(entry for entry, _ in self.entries_with_answers(answers=False))

    def entries_with_answers(self, *, answers: bool = True) -> Sequence[tuple[Entry, Any]]:
        """The whole chain of one moment, and beside each `commit` its answer (None beside the others)."""
        with self._store.reading() as connection:
            self._sync(connection)
            found = self._checked(connection, self._at_the_start(), up_to=self._history.sequence)
            return [
                (e, self._body(connection, committed(e)) if answers and e.kind == "commit" else None)
                for e in found
            ]

    @property
    def anchor(self) -> str:
        """`sequence:digest` of the last entry. Kept elsewhere, it shows later that nothing before it changed."""
        return self._read(lambda h: f"{h.sequence}:{h.digest}")

    def verify(self, anchors: Sequence[str] = ()) -> Verification:
        """Walk the whole ledger and name every change (what cannot be found: docs/ledger.md)."""
        return verify(self._store, anchors, header=self._header)

    # --- inside a transaction ------------------------------------------------------------------------
    def _close(self, connection: Connection, ticket: Ticket, kind: str, **body: Any) -> Entry:
        self._sync(connection)
        if not isinstance(ticket, Ticket) or ticket.ledger != self.id:
            raise InvalidParameter(parameter="ticket", value="a ticket", must="be of this ledger")
        if ticket.sequence not in self._history.charges or ticket.sequence in self._history.closed:
            raise InvalidParameter(parameter="ticket", value=ticket.sequence, must="be open")
        entry = self._next(kind, reserve=ticket.sequence, **body)
        self._append(connection, entry)
        return entry

    def _replay(self, connection: Connection, request: Request, known: Committed) -> Recorded:
        charge = self._history.charges[known.reserve]
        if charge.plan_digest != request.plan_digest:
            raise InvalidParameter(
                parameter="key",
                value=request.key,
                must="belong to one plan",
                hint="this key was answered for another plan; give the new question a key of its own",
            )
        return Recorded(sequence=known.sequence, answer=self._body(connection, known), charge=charge)

    def close(self) -> None:
        """Give database connections back; a ledger that is used again opens them anew."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.name!r}, budget={self.budget})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ledger is not copied or pickled: open it again where it is needed")
