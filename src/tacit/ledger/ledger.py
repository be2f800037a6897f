"""The ledger: reserve, run, commit. Recorded amounts are spent, even if the release then fails.

Beside its file may lie a folder in which engines keep the bounded rows of a version, if a custodian asked for it.
"""

from __future__ import annotations

import fnmatch
import hmac
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tacit.errors import InvalidParameter, LedgerError, NoLaw, TacitError, charge_made
from tacit.exact.canonical import canonical, derived_key, mac, plain, sha256
from tacit.exact.checks import flag, instance, whole
from tacit.guarantees import Approximate, Bound, Guarantee
from tacit.guarantees.running_sum import typed
from tacit.ledger import budget as totals
from tacit.ledger.approvals import CUSTODIAN, Approvals
from tacit.ledger.budget import ChargeCheck, Limit, running_total
from tacit.ledger.entries import (
    Charge,
    Entry,
    Recorded,
    Request,
    Ticket,
    exact_amounts,
    named,
    plan_digests,
    protected_files,
    reserve_body,
    shown,
    somebody,
    text,
)
from tacit.ledger.log import (
    FORMAT,
    STATES,
    AnalystShare,
    Header,
    State,
    Verification,
    answer_name,
    closed_name,
    committed,
    file_names,
    head_mac,
    looks_before,
    now,
    pages,
    version_place,
)
from tacit.ledger.register import admitted
from tacit.ledger.store import ANSWERS, DATA, Connection, Store, is_there
from tacit.ledger.verify import Progress, verify

# What an answer was made from: a keyed mark of the data, for the custodian alone.
#
# A mark is made inside a release that was charged, kept beside the chain, and never exported. Whether it is that of
# the last answer about the same version goes into a line for the custodian, and changes nothing else: one line is
# written each time, and all lines that differ in this word alone are of one length.

_LAST = DATA.selection("mark", where="version = :wanted", order="sequence DESC") + " LIMIT 1"
FIRST, SAME, OTHER = "seen first", "as before ", "CHANGED   "


def note_data(connection: Connection, secret: bytes, entry: Entry, charge: Charge, digest: str) -> str:
    """Keep the mark of an answer's source; returns the custodian's line."""
    version = mac(secret, "version", canonical([charge.table, charge.version]))
    mark = mac(secret, "data", digest)
    last = connection.first(_LAST, {"wanted": version})
    said = FIRST if last is None else SAME if hmac.compare_digest(str(last[0]), mark) else OTHER
    row = {"sequence": entry.sequence, "version": version, "mark": mark, "said": said.strip()}
    connection.change(DATA.insertion, row)
    return f"{entry.body['time']}  entry {entry.sequence}  data {said}  version {charge.version!r}\n"


def write_line(ledger: Path, line: str) -> None:
    """Append a line to the custodian's file beside the ledger."""
    with suppress(OSError):  # an answer that was paid for is not lost for a note
        handle = os.open(f"{ledger}-data", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(handle)


T = TypeVar("T")


def _another_plan(key: str) -> InvalidParameter:
    return InvalidParameter(
        parameter="key", value=key, must="belong to one plan",
        hint="this key was answered for another plan; give the new question a key of its own",
    )  # fmt: skip


def _plans(request: Request) -> tuple[str, ...]:
    """The digests of the request: today's, and those of earlier forms."""
    return (request.plan_digest, *request.known_as)


def _keys(request: Request) -> tuple[str, ...]:
    """The recorded keys of a question: the given one, or all of its digests."""
    return _plans(request) if request.key == request.plan_digest else (request.key,)


def looks_the_same(old: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> bool:
    """Are these the same releases by name and question? Callers who know the query compare prices."""
    said = [[(one["release"], one["statistic"]) for one in told] for told in (old, now)]
    return bool(said[0]) and said[0] == said[1]


def _meet(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether these declared sets have a file in common, as far as the names show.
    A pattern has every name that it matches."""

    def matches(first: Any, second: Any) -> bool:
        return (
            isinstance(first, dict)
            and isinstance(second, str)
            and fnmatch.fnmatchcase(second, first["pattern"])
        )

    mine, theirs = protected_files(one), protected_files(other)
    return any(a == b or matches(a, b) or matches(b, a) for a in mine for b in theirs)


def _has_content(table: Any) -> bool:
    return isinstance(table, list) and any(isinstance(one, dict) and "content" in one for one in table)


def told_files(files: Mapping[str, Any]) -> str:
    """A declared set of files for people."""
    names = ["a table in memory" if f is None else f"the pattern {f['pattern']!r}" if isinstance(f, dict) else repr(f)
             for f in protected_files(files)]  # fmt: skip
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


PATIENCE = 600.0
"""The least time, in seconds, of the tries to record a paid answer."""


class Ledger(Approvals):
    """A budget with its charges, in a file or a database that several processes share.

    Reserve: one exclusive transaction reads the sum of the charges so far, lets the check decide, and writes
    the charge to the disk. Only then may a row be read. Commit: the answer is recorded. A crash in between
    leaves the charge spent. Entries are chained by SHA-256, carry the sum, and are never changed.
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
        table: str = "",
        rehearsal: bool = False,
        wait_seconds: float = 30.0,
    ) -> Ledger:
        """A new ledger with this budget; an existing one is never touched.

        `shares` are limits of single analysts ("*": of everybody else); the budget binds as well.
        `exact` gives the budget's numbers as fractions, if the floats are only approximations; by default they
        stand for the decimals that they print as, where those are larger. `table` is the declared name of the
        table whose budget this is; a `rehearsal` is one on made-up rows.
        """
        instance("budget", budget, Guarantee, must="be a guarantee")
        store, secret = Store(where, wait_seconds=wait_seconds), os.urandom(32)
        made = Header(
            id=os.urandom(16).hex(),
            created=now(),
            budget=budget,
            exact=typed(budget.bound) | exact_amounts(budget, exact),
            shares={k: AnalystShare.of(v, budget) for k, v in _new_shares(named("shares", shares)).items()},
            table=shown("table", table, empty=True),
            rehearsal=flag("rehearsal", rehearsal),
        )
        header = made.write(secret)
        start = sha256(header)
        store.create(
            {
                "format": FORMAT,
                "header": header,
                "secret": secret,
                "sequence": 0,
                "digest": start,
                "mac": head_mac(secret, start, 0, start),
                "state": State.start(budget, made.shares, ledger=made.id).text,
            }
        )
        return cls(store)

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, wait_seconds: float = 30.0) -> Ledger:
        """The existing ledger at this place; creates nothing."""
        return cls(Store(where, wait_seconds=wait_seconds))

    @classmethod
    def exists_at(cls, where: str | os.PathLike[str], *, wait_seconds: float = 30.0) -> bool:
        """Whether anything exists at this place. It may be no ledger."""
        return is_there(where, wait_seconds=wait_seconds)

    @classmethod
    def at(
        cls,
        where: str | os.PathLike[str],
        *,
        budget: Guarantee,
        exact: Mapping[str, Fraction] | None = None,
        shares: Mapping[str, Bound] | None = None,
        table: str = "",
        rehearsal: bool = False,
        wait_seconds: float = 30.0,
    ) -> Ledger:
        """The existing ledger at this place, if it has this budget and table; else a new one."""
        store, rehearsal = Store(where, wait_seconds=wait_seconds), flag("rehearsal", rehearsal)
        if not store.exists():
            try:
                return cls.create(
                    where, budget=budget, exact=exact, shares=shares, table=table, rehearsal=rehearsal,
                    wait_seconds=wait_seconds,
                )  # fmt: skip
            except LedgerError:
                if not store.exists():
                    raise
        found = cls(store)
        found.check(budget=budget, table=table)
        if rehearsal is not found.rehearsal:
            raise found.not_for(rehearsal)
        return found

    def not_for(self, rehearsal: bool) -> LedgerError:
        """The reason why rows that were made up, or real rows, are not charged here."""
        if rehearsal:
            reason = "belongs to a real table, and the rows are those of a twin"
            hint = "a rehearsal has a ledger of its own: name another one, or none"
        else:
            reason = "is that of a rehearsal: its answers are about rows that were made up"
            hint = "delete it, or name another one for the real table"
        return LedgerError(ledger=self.name, reason=reason, hint=hint)

    @property
    def bounding_key(self) -> bytes:
        """The key for contribution bounding by keyed hashes: 32 bytes, the same for the life of the ledger.

        Nobody may foresee which rows of a person are selected, so the key is never printed or exported.
        """
        return derived_key(self._secret, "contribution bounding")

    def sealed_key(self, purpose: str) -> bytes:
        """A key that fixes noise now for a later draw: 32 bytes for this purpose, never printed or exported."""
        return derived_key(self._secret, f"sealed noise: {purpose}")

    # --- reserve, run, commit ------------------------------------------------------------------------
    def reserve(self, request: Request, charge_check: ChargeCheck | None = None) -> Ticket | Recorded:
        """Charge durably, or answer from the record, or raise BudgetExceeded with nothing spent.

        `charge_check` is a pure function over all charges, the asked one last (`running_total` if absent);
        it runs inside the transaction, and a second time for the analyst's own charges if the analyst has a share.
        """
        self._acceptable(request)
        if charge_check is None:
            totals.addable(self.budget)
        return self._write(lambda connection: self._reserve(connection, request, charge_check))

    def try_out(self, request: Request, charge_check: ChargeCheck | None = None) -> None:
        """Raises any error of `reserve` about the budget or a share; charges nothing and writes nothing."""
        self._acceptable(request)
        if charge_check is None:
            totals.addable(self.budget)

        def look(connection: Connection) -> None:
            self._sync(connection)
            self._fitting(connection, reserve_body(request, request.table or self.table), charge_check)

        self._store.read(look)

    def consent(self, request: Request) -> tuple[str, ...]:
        """The approvers of this very request; raises NotAllowed if a role or an approval is missing. Charges
        nothing.
        """
        self._acceptable(request)

        def look(connection: Connection) -> dict[str, Any] | None:
            self._sync(connection)
            return self._state.register.consent(self._asked(connection, request))

        found = self._store.read(look)
        return () if found is None else tuple(found["approved_by"])

    def recorded(self, request: Request) -> Recorded | None:
        """The answer to this question, if the record has it; charges nothing and writes nothing."""
        self._acceptable(request)

        def look(connection: Connection) -> Recorded | None:
            self._sync(connection)
            return self._replay(connection, request)

        return self._store.read(look)

    def _reserve(
        self, connection: Connection, request: Request, charge_check: ChargeCheck | None
    ) -> Ticket | Recorded:
        self._sync(connection)
        if (known := self._replay(connection, request)) is not None:
            return known
        table = request.table or self.table
        self._same_files(connection, request, table)
        body, register = self._allowed(self._asked(connection, request))
        state = replace(self._fitting(connection, body, charge_check), register=register)
        looks, place = self._state.looks, version_place(table, request.version)
        # The looks that are older than the plan: those before its first entry, which may be this one.
        seen = looks_before(looks, self._first_entry(connection, body), place) if looks else ()
        entry = self._next("reserve", state, **body)
        self._append(connection, entry, state)
        self._note_files(connection, entry)
        spent, left = None, None
        if charge_check is None:
            spent, left = state.standing(request.analyst, self.limit)
        return Ticket(
            sequence=entry.sequence, digest=entry.digest, ledger=self.id, request=request, spent=spent, left=left,
            approved_by=tuple(body.get("consent", {}).get("approved_by", ())), seen=seen,
            signed=self._signed_where(connection, body),
        )  # fmt: skip

    def commit(
        self, ticket: Ticket, answer: Any, *, data_digest: str = "", only_first: bool = False
    ) -> Entry:
        """Record the answer (bytes, or any plain JSON) to a reservation.

        The charge is paid, so the commit is tried for ten minutes at least while others hold the ledger. `data_digest`
        identifies the data behind the answer. Only the custodian learns whether the last answer about the same version
        came from the same data (`FILE-data` beside a ledger's file, 0600).

        `only_first`: if somebody in parallel answered the request first, this answer is dropped, and the reservation is
        closed without one. Free requests use it, where the charge of one answer pays for all.
        """
        kind = "bytes" if isinstance(answer, bytes) else "json"
        body = answer if isinstance(answer, bytes) else canonical(answer, what="answer").encode("ascii")
        entry, line = self._write(
            lambda connection: self._record(connection, ticket, kind, body, data_digest, only_first),
            patience=PATIENCE,
        )
        if line and self._store.path is not None:
            write_line(self._store.path, line)
        return entry

    def _record(
        self,
        connection: Connection,
        ticket: Ticket,
        kind: str,
        body: bytes,
        data_digest: str,
        only_first: bool,
    ) -> tuple[Entry, str]:
        if only_first:
            self._sync(connection)
            if self._replay(connection, ticket.request) is not None:
                return self._close(connection, ticket, "failed")[0], ""
        said = {"kind": kind, "sha256": sha256(body), "size": len(body)}
        entry, charge = self._close(connection, ticket, "commit", answer=said)
        connection.change(ANSWERS.insertion, {"sequence": entry.sequence, "body": body})
        name = answer_name(self._secret, charge.key, charge.table, charge.version, charge.files)
        # The first answer to a request is the answer; a second one was paid for by somebody in parallel.
        if self._find(connection, name) is None:
            self._note(connection, name, entry)
        line = note_data(connection, self._secret, entry, charge, data_digest) if data_digest else ""
        return entry, line

    def fail(self, ticket: Ticket) -> Entry:
        """Records that no answer will come. The charge stays: rows may have been read."""
        return self._write(lambda connection: self._close(connection, ticket, "failed")[0])

    def run(
        self, request: Request, compute: Callable[[], Any], charge_check: ChargeCheck | None = None
    ) -> Any:
        """The recorded answer, if one exists; else reserves, computes and commits."""
        outcome = self.reserve(request, charge_check)
        if isinstance(outcome, Recorded):
            return outcome.answer
        with charge_made():
            try:
                answer = compute()
            except BaseException:
                with suppress(TacitError):
                    self.fail(outcome)
                raise
            self.commit(outcome, answer)
        return answer if isinstance(answer, bytes) else plain(answer)

    # --- reading -------------------------------------------------------------------------------------
    def charges(self, analyst: str | None = None) -> tuple[Charge, ...]:
        """All charges, or those of one analyst; reads and checks the whole chain."""
        who = somebody(analyst)
        return self._read_all(lambda h: tuple(c for c in h.charges.values() if who in (None, c.analyst)))

    def events(self, decode: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
        """The events, each record decoded by the caller's table, for an accountant that re-reads history."""
        return tuple(decode(c.event) for c in self.charges())

    def spent(self, analyst: str | None = None) -> Bound:
        """The running total in the budget's own kind, rounded up."""
        totals.addable(self.budget)
        return self._read(lambda state: state.spent(somebody(analyst), self.limit))

    def remaining(self, analyst: str | None = None) -> Bound:
        """The amount left, rounded down; for an analyst with a share, the smaller of both limits."""
        totals.addable(self.budget)
        return self._read(lambda state: state.left(somebody(analyst), self.limit))

    def standing(self, analyst: str | None = None) -> tuple[Bound, Bound]:
        """The amount spent by all and the amount left for the analyst, at one moment and in one reading."""
        totals.addable(self.budget)
        return self._read(lambda state: state.standing(somebody(analyst), self.limit))

    def state(self, sequence: int) -> str:
        """The state of a reservation: reserved, committed or failed."""

        def look(connection: Connection) -> str:
            self._sync(connection)
            history = self._history(connection)
            if whole("sequence", sequence, least=0) not in history.charges:
                raise InvalidParameter(parameter="sequence", value=sequence, must="be that of a reservation")
            return STATES[history.closed.get(sequence, "")]

        return self._store.read(look)

    def entries(self) -> tuple[Entry, ...]:
        """The whole chain, read and checked anew."""
        return tuple(entry for entry, _ in self.entries_with_answers(answers=False))

    def entries_with_answers(self, *, answers: bool = True) -> Sequence[tuple[Entry, Any]]:
        """The whole chain of one moment, and beside each `commit` its answer (None beside the others)."""

        def look(connection: Connection) -> Sequence[tuple[Entry, Any]]:
            self._sync(connection)
            found: Iterator[Entry] = self._checked(connection, self._at_the_start(keep=False))
            return [
                (e, self._body(connection, committed(e)) if answers and e.kind == "commit" else None)
                for e in found
            ]

        return self._store.read(look)

    @property
    def anchor(self) -> str:
        """`sequence:digest` of the last entry. Kept elsewhere, it proves later that no earlier entry changed."""
        return self._read(lambda _: f"{self._sequence}:{self._digest}")

    def verify(self, anchors: Sequence[str] = (), *, progress: Progress | None = None) -> Verification:
        """Walk the whole ledger and name every change (docs/ledger.md has the limits)."""
        return verify(self._store, anchors, header=self._header, progress=progress)

    # --- inside a transaction ------------------------------------------------------------------------
    def _close(self, connection: Connection, ticket: Ticket, kind: str, **body: Any) -> tuple[Entry, Charge]:
        self._sync(connection)
        if not isinstance(ticket, Ticket) or ticket.ledger != self.id:
            raise InvalidParameter(parameter="ticket", value="a ticket", must="be of this ledger")
        charge = self._entry_at(connection, ticket.sequence, ticket.digest).charge()
        if self._find(connection, closed_name(ticket.sequence)) is not None:
            raise InvalidParameter(parameter="ticket", value=ticket.sequence, must="be open")
        entry = self._next(kind, self._state, reserve=ticket.sequence, charge=ticket.digest, **body)
        self._append(connection, entry, self._state)
        self._note(connection, closed_name(ticket.sequence), entry)
        return entry, charge

    def _replay(self, connection: Connection, request: Request) -> Recorded | None:
        table = request.table or self.table
        name = answer_name(self._secret, request.key, table, request.version, request.files)
        entry = self._find(connection, name)
        for key in () if entry is not None else _keys(request)[1:]:
            entry = self._find(
                connection, answer_name(self._secret, key, table, request.version, request.files)
            )
            if entry is not None:
                break
        if entry is None:
            self._told_apart(connection, request, table)
            return self._replay_earlier(connection, request, table)
        paid = self._paid(connection, entry)
        if paid.body["plan"] not in _plans(request):
            raise _another_plan(request.key)
        return self._recorded(connection, entry, paid)

    def _paid(self, connection: Connection, entry: Entry) -> Entry:
        return self._entry_at(connection, int(entry.body["reserve"]), str(entry.body["charge"]))

    def _recorded(self, connection: Connection, entry: Entry, paid: Entry) -> Recorded:
        answer = self._body(connection, committed(entry))
        return Recorded(
            sequence=entry.sequence, answer=answer, charge=paid.charge(), digest=paid.digest,
            corrections=self._corrections(connection, paid.sequence),
        )  # fmt: skip

    def _told_apart(self, connection: Connection, request: Request, table: str) -> None:
        """Refuse a question that is on record about a public table in memory without a digest of its content."""
        files = dict(request.files or {})
        files["public"] = [None if _has_content(one) else one for one in files.get("public", ())]
        if request.files is None or files == request.files or not files["public"]:
            return
        names = [answer_name(self._secret, key, table, request.version, files) for key in _keys(request)]
        if any(self._find(connection, name) is not None for name in names):
            raise LedgerError(
                ledger=self.name,
                reason="has an answer to this question that does not say what the public table in memory held: it may "
                "have been answered about another public table",
                hint="nothing was charged; ask with a new key to pay again (key=..., --key)",
            )

    # --- charges of 0.1.0, which stored no set of files and hashed sentences --------------------------
    def _replay_earlier(self, connection: Connection, request: Request, table: str) -> Recorded | None:
        """The answer of 0.1.0 to the same question; refuses if there may be one that cannot be found."""
        if request.files is None or request.earlier is None or not self._has_earlier(connection):
            return None
        by_default = request.key == request.plan_digest
        known = request.earlier()
        for one in known:
            key = one.plan_digest if by_default else request.key
            entry = self._find(connection, answer_name(self._secret, key, table, request.version))
            if entry is not None:
                paid = self._paid(connection, entry)
                if paid.body["plan"] == one.plan_digest:
                    return self._recorded(connection, entry, paid)
        if not by_default:
            entry = self._find(connection, answer_name(self._secret, request.key, table, request.version))
            if entry is None:
                return None
            told = [one.told for one in known]
            if not any(looks_the_same(self._paid(connection, entry).body.get("told", ()), t) for t in told):
                raise _another_plan(request.key)
            raise self._unsure()
        digests = {one.plan_digest for one in known}
        history = self._history(connection)
        for sequence, charge in history.charges.items():
            if charge.files is not None or charge.plan_digest in digests:
                continue
            about = (charge.table, charge.version) == (table, request.version)
            answered = history.closed.get(sequence) == "commit"
            if about and answered and any(looks_the_same(charge.told, one.told) for one in known):
                raise self._unsure()
        return None

    def _has_earlier(self, connection: Connection) -> bool:
        """Has it charges of 0.1.0? Entries of 0.1.0 come before all others, so the first one decides."""
        if self._earlier is None:
            for _, _, content in pages(connection, after=0):
                if '"kind":"reserve"' in content:
                    self._earlier = "files" not in json.loads(content)
                    break
            else:
                return False
        return self._earlier

    def _unsure(self) -> LedgerError:
        return LedgerError(
            ledger=self.name,
            reason="has an answer of tacit 0.1.0 to what looks like this question, and it cannot be told whether it is "
            "the same: it may have been answered by 0.1.0",
            hint="nothing was charged; ask with a new key to pay again (key=..., --key)",
        )

    def _first_entry(self, connection: Connection, body: Mapping[str, Any]) -> int | None:
        """The first entry that has the digest of the plan, by the name that this or an earlier version gave it."""
        plans = self._history(connection).plans
        return min((plans[d] for d in plan_digests(body) if d in plans), default=None)

    # --- the declared set of files --------------------------------------------------------------------
    def _same_files(self, connection: Connection, request: Request, table: str) -> None:
        """Refuses a question that was charged only for other files, since a file was renamed."""
        if request.files is None:
            return
        for key in _keys(request):
            self._same_files_by(connection, request, table, key)

    def _same_files_by(self, connection: Connection, request: Request, table: str, key: str) -> None:
        assert request.files is not None
        place, *names = file_names(self._secret, key, table, request.version, request.files)
        first = self._find(connection, place)
        if first is None:
            return
        if first.body["plan"] not in _plans(request):
            raise _another_plan(request.key)
        before, now = first.body["files"], request.files
        if _meet(before, now) or any(self._find(connection, name) is not None for name in names):
            return
        raise LedgerError(
            ledger=self.name,
            reason=f"has this question about this version of the table, read from {told_files(before)}, and "
            f"{told_files(now)} was never declared for it",
            hint="nothing was charged; if rows changed, say so by a new version (version=..., in a plan [data] "
            "version); if only the name changed, give the file its old name; another table needs a name of its own "
            "(table=...)",
        )

    def _note_files(self, connection: Connection, entry: Entry) -> None:
        if "files" in entry.body:
            about = (entry.body[n] for n in ("request", "table", "version", "files"))
            for name in file_names(self._secret, *about):
                if self._find(connection, name) is None:
                    self._note(connection, name, entry)

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


def _new_shares(given: Mapping[str, Bound]) -> dict[str, Bound]:
    """The shares of a new ledger, by valid names that do not resemble each other."""
    found: dict[str, Bound] = {}
    for name, bound in given.items():
        if text("analyst", name) != "*":
            admitted("analyst", name, found)
        found[name] = bound
    return found


# The ledger's check under priors: one charge, and no other beside it.
#
# Under `Priors` two releases about the same rows compose only where a theorem's conditions are shown (Groce 2014, Thm
# 5.6, 6.8); a ledger cannot see that they are. So it takes one charge: the first. Who publishes two exact answers
# from disjoint parts of a table keeps them as two tables, each with its ledger, and declares the independence there
# (`compose(..., assume="disjoint-independent-rows")`).


def alone(charges: Sequence[Charge], limit: Limit) -> None:
    """The check for a budget under `Priors`: the asked charge is the first, and within the limit."""
    if len(charges) > 1:
        raise NoLaw(
            operation="a second release about rows of which an exact answer was published",
            reason="every other release about the same rows, a differentially private one included, is auxiliary "
            "knowledge for this one",
            counterexample="the exact count of all rows, and the exact count of all rows but one",
            hint="the same question is answered from the record, free",
        )
    running_total(charges, limit)


def standing_alone(ledger: Ledger) -> tuple[Guarantee, Guarantee]:
    """The one charge, and the rest: the whole budget before it, and nothing after it."""
    charges = ledger.charges()
    spent = totals.spent(charges, ledger.limit)
    left = Approximate(epsilon=0.0, delta=0.0) if charges else ledger.budget.bound
    return replace(ledger.budget, bound=spent, declared=()), replace(ledger.budget, bound=left, declared=())


# A folder beside a ledger with the bounded rows of each version, only if a custodian asked for it.
#
# Beside `survey.ledger` lies `survey.ledger-rows`, which only its owner can enter. The folder itself is the
# request: a curator who finds it keeps the bounded rows in it (`tacit.sources.kept`), and reads them from there.
# These are rows of real people as declared, without noise. Removing them changes no answer.


ENDING = "-rows"
ABOUT = ".json"
LOCK = "lock"
KEPT = "bounded rows are kept beside the ledger from now on"
REMOVED = "bounded rows were removed from beside the ledger"


def rows_folder(ledger: Ledger) -> Path | None:
    """The folder for bounded rows, if a custodian asked for one; None if it is not safe."""
    folder = _folder(ledger)
    try:
        found = None if folder is None else folder.lstat()
    except OSError:
        return None
    if found is None:
        return None
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    return folder if mine and private else None


def _folder(ledger: Ledger) -> Path | None:
    """Its place beside the ledger's file, by any name of the file; None for a ledger in a database."""
    return None if ledger.path is None else Path(f"{os.path.realpath(ledger.path)}{ENDING}")


def keep_rows(ledger: Ledger, *, by: str = CUSTODIAN) -> Path:
    """From now on the bounded rows of each version are kept in a folder beside the ledger, which is returned.

    They describe real people and are not encrypted: the folder is for its owner alone, and belongs on an encrypted
    disk.
    """
    _custodian(ledger, by)
    folder = _folder(ledger)
    if folder is None:
        raise InvalidParameter(
            parameter="ledger", value="a database", must="be a file, beside which rows can be kept",
            hint="a table that lives in a database is bounded there",
        )  # fmt: skip
    if rows_folder(ledger) is None:
        try:
            folder.mkdir(mode=0o700)
        except OSError:
            raise InvalidParameter(
                parameter="ledger", value=str(folder), must="be a folder that can be made, for its owner alone",
                hint="something else has this name, or others may enter it: chmod 700",
            ) from None  # fmt: skip
        ledger.note(KEPT, by=by)
    return folder


def remove_rows(ledger: Ledger, *, version: str | None = None, by: str = CUSTODIAN) -> int:
    """Removes the rows of a version, or all of them and the folder; returns the number of removed files.

    It also removes leftovers of a killed writer; a release that is writing rows at that moment keeps none. An
    error says that something could not be removed.
    """
    _custodian(ledger, by)
    folder = _folder(ledger)
    if folder is None or not os.path.lexists(folder):
        return 0
    mark = "[0-9a-f]{16}" if version is None else mark_of(ledger, version)
    ours = re.compile(f"{mark}-.*" + (f"|{LOCK}" if version is None else "")).fullmatch
    gone = 0
    try:
        if folder.is_symlink() or not folder.is_dir():
            raise NotADirectoryError
        # First the lock: a writer looks for it before it gives a file its name. Whoever had looked already may give
        # one while the first listing is read, so that there are two.
        (folder / LOCK).unlink(missing_ok=True)
        for _ in range(2):
            for path in [p for p in folder.iterdir() if ours(p.name)]:
                path.unlink(missing_ok=True)
                gone += not path.suffix and path.name != LOCK
        if version is None:
            folder.rmdir()
    except OSError:
        raise InvalidParameter(
            parameter="ledger", value=str(folder), must="be a folder from which all that was kept can be removed",
            hint="look into it, and remove its contents by hand: they may be rows of people",
        ) from None  # fmt: skip
    ledger.note(REMOVED if version is None else f"{REMOVED}: those of one version", by=by)
    return gone


def mark_of(ledger: Ledger, version: str) -> str:
    """The beginning of the file names of a version, which reveals the version to nobody else."""
    from tacit.exact.canonical import mac

    return mac(ledger.bounding_key, "version of kept rows", version)[:16]


def _custodian(ledger: Ledger, by: str) -> None:
    name = text("by", by)
    ledger._read(lambda state: state.register.custodian(name, "keep or remove rows beside the ledger"))
