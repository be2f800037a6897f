"""The log behind a ledger: its end is checked when it is opened, and each added page after that.

Everything here runs inside a transaction of the store, and does not use the admission rules.
"""

from __future__ import annotations

import hmac
import json
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tacit.errors import InvalidParameter, LedgerCorrupt, LedgerVersion, TacitError
from tacit.exact.canonical import canonical, canonical_table, mac, sha256
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Bound, Guarantee
from tacit.guarantees.conditions import SEEN, SEEN_ANOTHER
from tacit.guarantees.guarantee import from_record, to_record
from tacit.guarantees.running_sum import Amounts, typed
from tacit.ledger import budget as totals
from tacit.ledger.budget import Limit
from tacit.ledger.entries import Charge, Entry, exact_amounts, protected_files, read_entry
from tacit.ledger.register import Register
from tacit.ledger.store import ANSWERS, ENTRIES, HEADER, INDEX, Connection, Store

# What the entries so far amount to: the running sum of all, of each analyst, the shares, and who may do what.
#
# It is part of the chain: each entry states the sum (`total`) and the digest of the rest (`state`), so that anybody who
# opens a ledger checks its end and needs not read what came before. Sums are exact rationals.

UNLIMITED = "inf"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystShare:
    """An analyst's limit, and its exact numbers."""

    bound: Bound
    exact: Mapping[str, Fraction]

    @classmethod
    def of(cls, bound: Bound, budget: Guarantee, exact: Mapping[str, Fraction] | None = None) -> AnalystShare:
        """A share of this budget; its floats mean the decimals that they print as, unless stated otherwise."""
        totals.share(bound, budget)
        return cls(bound=bound, exact=typed(bound) | exact_amounts(replace(budget, bound=bound), exact))


def version_place(table: str, version: str) -> str:
    """A declared version of a table, as one text."""
    return canonical([table, version])


def looks_before(looks: Mapping[str, int], first: int | None, place: str) -> tuple[str, ...]:
    """The remark about a plan that is recorded in entry `first`, or not recorded yet, at this place."""
    before = {name for name, sequence in looks.items() if first is None or sequence < first}
    return ((SEEN,) if place in before else ()) + ((SEEN_ANOTHER,) if before - {place} else ())


def share_body(share: AnalystShare, budget: Guarantee) -> dict[str, Any]:
    """A share as plain data."""
    return {"share": to_record(replace(budget, bound=share.bound)), "exact": _texts(share.exact)}


def read_share(body: Mapping[str, Any]) -> AnalystShare:
    """The share of plain data."""
    return AnalystShare(bound=from_record(body["share"]).bound, exact=_fractions(body["exact"]))


def _texts(exact: Mapping[str, Fraction]) -> dict[str, str]:
    return {k: str(v) for k, v in exact.items()}


def _fractions(exact: Mapping[str, str]) -> dict[str, Fraction]:
    return {k: Fraction(v) for k, v in exact.items()}


def written_amounts(amounts: Amounts) -> dict[str, str]:
    """A sum as plain data."""
    return {k: UNLIMITED if v is None else str(v) for k, v in amounts.items()}


def read_amounts(said: Mapping[str, str], budget: Guarantee) -> Amounts:
    """The sum of plain data, its numbers in the order of the budget's."""
    names = totals.zero(budget)
    if set(names) != set(said):
        raise ValueError("other numbers than the budget's")
    return {k: None if said[k] == UNLIMITED else Fraction(said[k]) for k in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Sums and shares after some entry. Never changed: each entry makes a new one."""

    budget: Guarantee
    total: Amounts
    analysts: Mapping[str, Amounts] = field(default_factory=dict)
    shares: Mapping[str, AnalystShare] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)
    """The versions that the custodian has looked at, and the entry of the first look at each."""
    register: Register = field(default_factory=Register)
    _words: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def start(cls, budget: Guarantee, shares: Mapping[str, AnalystShare], *, ledger: str = "") -> State:
        """Before the first entry of the ledger with this id."""
        return cls(
            budget=budget,
            total=totals.zero(budget),
            shares=dict(shares),
            register=Register(ledger=ledger),
        )

    @classmethod
    def read(cls, budget: Guarantee, total: Mapping[str, str], text: str, *, ledger: str = "") -> State:
        """The state of an entry's `total` and the text that its `state` is the digest of."""
        data = json.loads(text)
        return cls(
            budget=budget,
            total=read_amounts(total, budget),
            analysts={k: read_amounts(v, budget) for k, v in data["analysts"].items()},
            shares={k: read_share(v) for k, v in data["shares"].items()},
            looks={str(k): int(v) for k, v in data.get("looks", {}).items()},
            register=Register.read(ledger, data),
        )

    @property
    def text(self) -> str:
        """All except the sum, as one canonical text; made once, because a state never changes."""
        if "text" not in self._words:
            own: dict[str, Any] = {
                "analysts": {k: written_amounts(v) for k, v in self.analysts.items()},
                "shares": {k: share_body(v, self.budget) for k, v in self.shares.items()},
                # A ledger that nobody looked for has the text that it always had.
                **({"looks": dict(self.looks)} if self.looks else {}),
            }
            texts = dict(zip(own, map(canonical, own.values()), strict=True)) | self.register.texts
            self._words["text"] = canonical_table(texts)
        return str(self._words["text"])

    def to_dict(self) -> dict[str, Any]:
        """The entry's record of it."""
        if "said" not in self._words:
            self._words["said"] = written_amounts(self.total), sha256(self.text)
        total, state = self._words["said"]
        return {"total": dict(total), "state": state}

    def after(self, kind: str, body: Mapping[str, Any], charge: Charge | None = None) -> State:
        """The state after an entry with this content; refuses if the rights do not allow it."""
        register = self.register.after(kind, body)
        state = self if register is self.register else replace(self, register=register)
        if kind == "reserve" and charge is not None:
            return state.charged(charge)
        if kind == "look":
            return state.looked(version_place(body["table"], body["version"]), int(body["sequence"]))
        return state.shared(body["analyst"], read_share(body)) if kind == "share" else state

    def charged(self, charge: Charge) -> State:
        """The state with one further charge."""
        own = totals.plus(self.own(charge.analyst), charge, self.budget)
        return replace(
            self,
            total=totals.plus(self.total, charge, self.budget),
            analysts={**self.analysts, charge.analyst: own},
        )

    def shared(self, analyst: str, share: AnalystShare) -> State:
        """The state with another limit for one analyst."""
        return replace(self, shares={**self.shares, analyst: share})

    def looked(self, place: str, sequence: int) -> State:
        """The state after this entry's look at one version; only the first look at a version counts."""
        return replace(self, looks={**self.looks, place: self.looks.get(place, sequence)})

    def own(self, analyst: str) -> Amounts:
        """The sum of one analyst's charges."""
        return dict(self.analysts.get(analyst) or totals.zero(self.budget))

    def share_of(self, analyst: str) -> Limit | None:
        """The analyst's own limit, or the common limit of everybody without one."""
        found = self.shares.get(analyst, self.shares.get("*"))
        if found is None:
            return None
        return Limit(bound=found.bound, exact=found.exact, whose=f"the share of {analyst!r}")

    def spent(self, analyst: str | None, limit: Limit) -> Bound:
        """The amount spent by all, or by one analyst, rounded up."""
        return totals.reading(self.total if analyst is None else self.own(analyst), limit)[0]

    def left(self, analyst: str | None, limit: Limit) -> Bound:
        """The amount left, rounded down; for an analyst with a share, the smaller of both limits."""
        return self.standing(analyst, limit)[1]

    def standing(self, analyst: str | None, limit: Limit) -> tuple[Bound, Bound]:
        """The amount spent by all and the amount left for the analyst, in one reading of the sum."""
        spent, rest = totals.reading(self.total, limit)
        share = None if analyst is None else self.share_of(analyst)
        if analyst is None or share is None:
            return spent, rest
        return spent, totals.smaller(rest, totals.reading(self.own(analyst), share)[1])


# Walking the chain: what the entries amount to, and every way in which they are not what was written.

Row = tuple[int, str, str]  # sequence, digest, content: an entry as it lies in the store


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One entry that differs from its written form; `sequence` is None for the ledger as a whole."""

    sequence: int | None
    what: str

    def __str__(self) -> str:
        return f"entry {self.sequence} {self.what}" if self.sequence is not None else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of a walk through the whole ledger. `anchor` is worth writing down elsewhere if it is sound."""

    entries: int
    anchor: str
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is unchanged."""
        return not self.problems

    def __str__(self) -> str:
        if self.ok:
            return f"{self.entries} entries, unchanged since they were written; anchor {self.anchor}"
        return "; ".join(str(p) for p in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The place of the answer to a request."""

    sequence: int
    reserve: int
    kind: str
    sha256: str


@dataclass(slots=True)
class History:
    """The sum of the entries up to `sequence`. Only ever moves forward, one verified link at a time.

    `open` has the digests of the reservations without a result so far. With `keep` it also keeps the charges
    and their results, and later notes about people, requests and releases. After a fault the sums are unknown
    and not compared (`summed`).
    """

    digest: str
    state: State
    sequence: int = 0
    keep: bool = False
    summed: bool = True
    open: dict[int, str] = field(default_factory=dict)
    charges: dict[int, Charge] = field(default_factory=dict)
    closed: dict[int, str] = field(default_factory=dict)
    looks: list[Entry] = field(default_factory=list)
    plans: dict[str, int] = field(default_factory=dict)
    """The first entry with each plan's digest, charged or only recorded."""
    said: list[Entry] = field(default_factory=list)

    def follow(self, entry: Entry) -> str:
        """Adds the next entry; returns the fault of a faulty one and adds nothing."""
        if entry.sequence != self.sequence + 1:
            return "does not come next: an entry before it is missing"
        if entry.body["previous"] != self.digest:
            return "does not follow the one before it, which was changed later"
        number, state = entry.closes, self.state
        if number is not None and self.open.get(number) != entry.body["charge"]:
            return f"closes entry {number}, which is not an open reservation"
        charge = entry.charge() if entry.kind == "reserve" else None
        try:
            state = state.after(entry.kind, entry.body, charge)
        except TacitError as problem:
            if self.summed:
                return f"says what was not allowed: {problem.message}"
        if self.summed and state.to_dict() != {k: entry.body[k] for k in ("total", "state")}:
            return "states another sum than that of the charges"
        if entry.kind == "reserve":
            self.open[entry.sequence] = entry.digest
        if self.keep and charge is not None:
            self.charges[entry.sequence] = charge
        if self.keep and entry.kind in ("reserve", "plan", "request"):
            self.plans.setdefault(entry.body["plan"], entry.sequence)
        if self.keep and entry.kind == "look":
            self.looks.append(entry)
        elif self.keep and entry.kind not in ("reserve", "commit", "failed", "share", "plan"):
            self.said.append(entry)
        if number is not None:
            del self.open[number]
        if self.keep and number is not None:
            self.closed[number] = entry.kind
        self.sequence, self.digest, self.state = entry.sequence, entry.digest, state
        return ""

    def became(self, sequence: int) -> str:
        """reserved, committed or failed."""
        return STATES[self.closed.get(sequence, "")]


STATES = {"": "reserved", "commit": "committed", "failed": "failed"}


@dataclass(slots=True)
class End:
    """The last charges of a chain, as a history without others; `found` is the number of wanted ones, and
    `counts` the number by analyst.
    """

    history: History
    counts: Counter[str] = field(default_factory=Counter)
    found: int = 0


def committed(entry: Entry) -> Committed:
    """The place of the answer of a `commit` entry."""
    said = entry.body["answer"]
    return Committed(
        sequence=entry.sequence, reserve=entry.body["reserve"], kind=said["kind"], sha256=said["sha256"]
    )


def walk(history: History, rows: Iterable[Row]) -> Iterable[tuple[Entry | None, Problem | None]]:
    """Each row as an entry, or its fault. The walk continues after a fault, to name them all."""
    for sequence, digest, content in rows:
        expected = history.sequence + 1
        if sequence > expected:
            missing = f"{expected}" if sequence == expected + 1 else f"{expected} to {sequence - 1}"
            yield None, Problem(sequence=None, what=f"missing from the chain: {missing}")
        entry, wrong = read_entry(sequence=sequence, digest=digest, content=content)
        gap = sequence != expected
        if entry is not None and gap:
            history.sequence, history.digest = sequence - 1, str(entry.body["previous"])
        history.summed &= not gap
        if entry is not None:
            wrong = history.follow(entry)
        if entry is None or wrong:
            history.sequence, history.digest, history.summed = sequence, digest, False
            yield None, Problem(sequence=sequence, what=wrong)
        else:
            yield entry, None


def parse_anchor(anchor: str) -> tuple[int, str]:
    """`sequence:digest` as its two parts."""
    number, _, digest = str(anchor).partition(":")
    if not number.isascii() or not number.isdigit() or len(digest) != 64 or not digest.isalnum():
        raise InvalidParameter(
            parameter="anchor",
            value=anchor,
            must="be written as sequence:digest",
            hint="as `verify` prints it",
        )
    return int(number), digest


# The header: what was decided when the ledger was made. It is the link before the first entry.

FORMAT = 3
OLDER = 2
"""The format before names, approvals and corrections. A ledger in it is read, and gets the present one when
it is written."""
READABLE = (OLDER, FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Identity, time, table, budget (with its exact numbers) and first shares of a ledger.

    `table` is the declared name of the table that it belongs to, empty if none was declared; a ledger of a
    `rehearsal` belongs to made-up rows.
    """

    id: str
    created: str
    budget: Guarantee
    exact: Mapping[str, Fraction]
    shares: Mapping[str, AnalystShare]
    table: str = ""
    rehearsal: bool = False

    def write(self, secret: bytes) -> str:
        """The header's text, with a commitment to the secret, so that another secret would be noticed."""
        return canonical(
            {
                "ledger": self.id,
                "created": self.created,
                "budget": to_record(self.budget),
                "exact": {k: str(v) for k, v in self.exact.items()},
                "shares": {k: share_body(s, self.budget) for k, s in self.shares.items()},
                "table": self.table,
                "rehearsal": self.rehearsal,
                "secret_commitment": mac(secret, "commitment", ""),
            }
        )

    @classmethod
    def read(cls, text: str, secret: bytes) -> Header | None:
        """The header in this text; None if it has none, or one of another secret."""
        try:
            data = json.loads(text)
            if not hmac.compare_digest(data["secret_commitment"], mac(secret, "commitment", "")):
                return None
            return cls(
                id=str(data["ledger"]),
                created=str(data["created"]),
                budget=from_record(data["budget"]),
                exact={k: Fraction(v) for k, v in data["exact"].items()},
                shares={k: read_share(v) for k, v in data["shares"].items()},
                table=str(data["table"]),
                rehearsal=data["rehearsal"] is True,
            )
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, TacitError):
            return None


def head_mac(secret: bytes, start: str, sequence: int, digest: str) -> str:
    """The keyed mark on the end of the chain: this ledger, this many entries, this last digest."""
    return mac(secret, "head", f"{start}:{sequence}:{digest}")


def index_mac(secret: bytes, start: str, name: str, sequence: int, digest: str) -> str:
    """The keyed mark on a row of the index."""
    return mac(secret, "index", f"{start}:{name}:{sequence}:{digest}")


def version_error(name: str, found: object) -> LedgerVersion:
    """The refusal of a ledger in another format."""
    older = isinstance(found, int) and found < OLDER
    return LedgerVersion(
        ledger=name,
        reason=f"has format {found}, and this version of tacit knows {FORMAT}",
        hint="use the version of tacit that wrote it"
        + ("; a new ledger starts with what that one has left" if older else ", or a later one"),
    )


T = TypeVar("T")
PAGE = 500
LAST = 2**63 - 1
"""No entry has a larger number."""
OWN = 64
"""The entries of a log that are known without reading them again, if they are still unchanged."""


# Built once: a release puts some twenty of these to the database.
_HEAD = HEADER.selection("header", "sequence", "digest", "mac", "state")
_TOP = ENTRIES.selection("max(sequence)")
_ENTRY = ENTRIES.selection("digest", "content", where="sequence = :at")
_NAMED = INDEX.selection("sequence", "digest", "mac", where="name = :wanted")
_NEW_ENTRY, _NEW_NAME = ENTRIES.insertion, INDEX.insertion
_PAGE = ENTRIES.selection(where="sequence > :after AND sequence <= :up_to", order="sequence") + " LIMIT :most"


class Log:
    """A store with its header, and its growing chain."""

    def __init__(self, store: Store) -> None:
        self._store, self._unsound = store, ""
        self._written: tuple[str, int, str, State] | None = None
        self._own: OrderedDict[int, Entry] = OrderedDict()
        store.read(self._open)

    def _open(self, connection: Connection) -> None:
        self._store.check_format(connection)
        # The format first, by itself: another format may have other columns.
        found = connection.first(HEADER.selection("format"))
        if found is None:
            self._corrupt("has lost its header")
        if found[0] not in READABLE:
            raise version_error(self._store.name, found[0])
        (row,) = HEADER.all(connection)
        self._header, self._secret = str(row["header"]), bytes(row["secret"])
        header = Header.read(self._header, self._secret)
        if header is None:
            self._corrupt("has a header that was changed")
        self.id, self.created, self.table, self.rehearsal = (
            header.id, header.created, header.table, header.rehearsal,
        )  # fmt: skip
        self.budget, self.exact = header.budget, header.exact
        self._start, self._first = sha256(self._header), _first(header)
        self._sequence, self._digest, self._state = -1, "", self._first
        self._all = self._at_the_start()
        self._earlier: bool | None = None  # has it charges of 0.1.0? Found out when somebody must know
        self._sync(connection)

    @property
    def name(self) -> str:
        """The place of the ledger, without a password."""
        return self._store.name

    @property
    def path(self) -> Path | None:
        """Its file, if it has one."""
        return self._store.path

    @property
    def place(self) -> str:
        """Its path, or its URL without user, password and options."""
        return self._store.place

    # --- the end -------------------------------------------------------------------------------------
    def _write(self, work: Callable[[Connection], T], *, patience: float | None = None) -> T:
        """Runs this in a writing transaction and remembers the last entry, so that a later loss is noticed."""

        def with_entry(connection: Connection) -> tuple[T, tuple[str, int, str, State] | None]:
            self._written = None
            return work(connection), self._written

        done, wrote = self._store.write(with_entry, patience=patience)
        # Ctrl-C at the end of the block falls into the inner context, so that the lock is released all the same.
        with self._store.alone(), nullcontext():
            # Unless another thread has caught up, or written, in the meantime.
            if wrote is not None and self._written is wrote and wrote[0] == self._digest:
                _, self._sequence, self._digest, self._state = wrote
        return done

    def _sync(self, connection: Connection) -> None:
        """Reads the entries that others appended since. An unsound ledger stays unsound until it is opened
        again.
        """
        if self._unsound:
            self._corrupt(self._unsound)
        try:
            self._catch_up(connection)
        except LedgerCorrupt as problem:
            self._unsound = problem.reason
            raise

    def _catch_up(self, connection: Connection) -> None:
        """The keyed head, its entry and that entry's state; and every new link up to there."""
        head = connection.first(_HEAD)
        if head is None or head[0] != self._header:
            self._corrupt("is not the one that was opened: its header is another")
        _, at, digest, signed, state = head
        keyed = head_mac(self._secret, self._start, at, digest)
        if not hmac.compare_digest(keyed, str(signed)):
            self._corrupt("has a head that was not written by tacit")
        if at < self._sequence:
            self._corrupt("has lost entries since it was opened")
        top = connection.first(_TOP)
        if ((top and top[0]) or 0) != at:
            self._corrupt("ends elsewhere than its head says")
        if (self._sequence, self._digest) == (at, digest):
            return
        written = self._written
        if written is not None and written[:3] == (self._digest, at, digest):
            # What this book wrote itself, right after what it knew: the keyed head says that it stands.
            _, self._sequence, self._digest, self._state = written
            return
        last = self._linked(connection, int(at))
        if (last.digest if last else self._start) != digest:
            self._corrupt("ends elsewhere than its head says")
        self._state = self._checked_state(last, str(state))
        self._sequence, self._digest = int(at), str(digest)

    def _linked(self, connection: Connection, top: int) -> Entry | None:
        """The last entry: the only one read when a ledger is opened, and reached link by link from then on."""
        if top == 0:
            return None
        after, digest = (top - 1, "") if self._sequence < 0 else (self._sequence, self._digest)
        entry = None
        for row in pages(connection, after=after, up_to=top):
            entry, wrong = read_entry(sequence=row[0], digest=row[1], content=row[2])
            if entry is None or row[0] != after + 1 or (digest and entry.body["previous"] != digest):
                self._corrupt(f"was changed: entry {row[0]} {wrong or 'does not follow the one before it'}")
            after, digest = row[0], row[1]
        if entry is None or after != top:
            self._corrupt("ends elsewhere than its head says")
        return entry

    def _checked_state(self, last: Entry | None, text: str) -> State:
        if last is None:
            if text != self._first.text:
                self._corrupt("has a state that was changed")
            return self._first
        if not hmac.compare_digest(sha256(text), str(last.body["state"])):
            self._corrupt("has a state that was changed")
        try:
            return State.read(self.budget, last.body["total"], text, ledger=self.id)
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, TacitError):
            self._corrupt("has a state that cannot be read")

    # --- all of it -----------------------------------------------------------------------------------
    def _checked(self, connection: Connection, history: History) -> Iterator[Entry]:
        """Every entry from the position of `history` to the end, each checked."""
        rows = pages(connection, after=history.sequence, up_to=self._sequence)
        for entry, problem in walk(history, rows):
            if problem is not None or entry is None:
                self._unsound = f"was changed: {problem}"
                self._corrupt(self._unsound)
            yield entry
        if (history.sequence, history.digest) != (self._sequence, self._digest):
            self._corrupt("ends elsewhere than its head says")

    def _history(self, connection: Connection) -> History:
        """All charges; reads and checks all of them at first use, and later only the new ones."""
        self._sync(connection)
        for _ in self._checked(connection, self._all):
            pass
        return self._all

    def _end(
        self, connection: Connection, wanted: Callable[[Mapping[str, Any]], bool], most: int
    ) -> End | None:
        """The part of the chain for a screen; None if a link is wrong, which the whole walk will name.

        Every link is checked, and the last one is that of the keyed head. So each entry is unchanged to the
        letter. The sum of the entries comes from the state at the end, which the last one names.
        """
        self._sync(connection)
        end = End(history=self._at_the_start())
        try:
            linked = self._linked_to_the_end(connection, end, wanted, most)
        except (ValueError, KeyError, TypeError, ZeroDivisionError, RecursionError, TacitError):
            return None
        return end if linked else None

    def _linked_to_the_end(
        self, connection: Connection, end: End, wanted: Callable[[Mapping[str, Any]], bool], most: int
    ) -> bool:
        history, last = end.history, deque[Entry](maxlen=most)
        for sequence, digest, content in pages(connection, after=0, up_to=self._sequence):
            if not content.isascii() or sha256(content) != digest:
                return False
            body = json.loads(content)
            if (sequence, body["previous"]) != (history.sequence + 1, history.digest):
                return False
            entry = Entry(sequence=sequence, digest=digest, content=content, body=body)
            if entry.kind == "reserve":
                end.counts[body["analyst"]] += 1
                if wanted(body):
                    end.found += 1
                    last.append(entry)
            elif entry.closes is not None:
                history.closed[entry.closes] = entry.kind
            elif entry.kind == "look":
                history.looks.append(entry)
            elif entry.kind != "request" or sequence in self._state.register.requests:
                history.said.append(entry)
            history.sequence, history.digest = sequence, digest
        history.charges = {entry.sequence: entry.charge() for entry in last}
        history.state = self._state
        return (history.sequence, history.digest) == (self._sequence, self._digest)

    def _since(self, connection: Connection, after: int) -> list[Entry]:
        """The entries after this one, linked to the end; those of an open request are never before it."""
        found: list[Entry] = []
        digest = ""
        for row in pages(connection, after=after, up_to=self._sequence):
            entry, wrong = read_entry(sequence=row[0], digest=row[1], content=row[2])
            if entry is None or (digest and entry.body["previous"] != digest):
                self._corrupt(f"was changed: entry {row[0]} {wrong or 'does not follow the one before it'}")
            found.append(entry)
            digest = entry.digest
        if [e.sequence for e in found] != [*range(after + 1, self._sequence + 1)] or digest != self._digest:
            self._corrupt("ends elsewhere than its head says")
        return found

    def _at_the_start(self, *, keep: bool = True) -> History:
        return History(digest=self._start, state=self._first, keep=keep)

    # --- writing -------------------------------------------------------------------------------------
    def _next(self, kind: str, state: State, **body: Any) -> Entry:
        said = {"time": now(), **state.to_dict(), **body}
        return Entry.new(sequence=self._sequence + 1, previous=self._digest, kind=kind, **said)

    def _append(self, connection: Connection, entry: Entry, state: State) -> None:
        row = {"sequence": entry.sequence, "digest": entry.digest}
        connection.change(_NEW_ENTRY, {"content": entry.content, **row})
        keyed = head_mac(self._secret, self._start, entry.sequence, entry.digest)
        changed = {} if state is self._state else {"state": state.text}
        # What this version writes an older one may not know: from here on it refuses the ledger, and loses nothing.
        head = {"mac": keyed, "format": FORMAT, **changed, **row}
        connection.change(HEADER.update(tuple(head)), head)
        self._written = (self._digest, entry.sequence, entry.digest, state)
        self._own[entry.sequence] = entry
        while len(self._own) > OWN:
            self._own.popitem(last=False)

    # --- looking up ----------------------------------------------------------------------------------
    def _entry_at(self, connection: Connection, sequence: int, digest: str) -> Entry:
        """One entry, which must have this digest."""
        row = connection.first(_ENTRY, {"at": sequence})
        entry: Entry | None = None
        wrong = "is missing"
        own = self._own.get(sequence)
        if row is not None and own is not None and (own.digest, own.content) == (row[0], row[1]):
            entry, wrong = own, ""  # letter by letter what this book wrote
        elif row is not None:
            entry, wrong = read_entry(sequence=sequence, digest=row[0], content=row[1])
        if entry is None or entry.digest != digest:
            self._corrupt(
                f"was changed: entry {sequence} {wrong or 'is not the one that its reference names'}"
            )
        return entry

    def _digest_of(self, connection: Connection, sequence: int) -> str:
        """The digest of an entry of a chain that was read whole in this transaction."""
        row = connection.first(_ENTRY, {"at": sequence})
        return "" if row is None else str(row[0])

    def _find(self, connection: Connection, name: str) -> Entry | None:
        """The entry that the index names."""
        row = connection.first(_NAMED, {"wanted": name})
        if row is None:
            return None
        sequence, digest, kept = row
        keyed = index_mac(self._secret, self._start, name, sequence, digest)
        if not hmac.compare_digest(keyed, str(kept)):
            self._corrupt("was changed: a row of its index was not written by tacit")
        return self._entry_at(connection, int(sequence), str(digest))

    def _note(self, connection: Connection, name: str, entry: Entry) -> None:
        keyed = index_mac(self._secret, self._start, name, entry.sequence, entry.digest)
        row = {"name": name, "sequence": entry.sequence, "digest": entry.digest, "mac": keyed}
        connection.change(_NEW_NAME, row)

    def _body(self, connection: Connection, known: Committed) -> Any:
        found = connection.first(ANSWERS.selection("body", where="sequence = :at"), {"at": known.sequence})
        body = None if found is None else found[0]
        if body is None or sha256(bytes(body)) != known.sha256:
            self._corrupt(
                f"was changed: the answer of entry {known.sequence} is not the one that was recorded"
            )
        return bytes(body) if known.kind == "bytes" else json.loads(bytes(body))

    def _read(self, pick: Callable[[State], T]) -> T:
        # `pick` runs before the lock is given back, so that no other thread moves the state under it.
        def work(connection: Connection) -> T:
            self._sync(connection)
            return pick(self._state)

        return self._store.read(work)

    def _read_all(self, pick: Callable[[History], T]) -> T:
        return self._store.read(lambda connection: pick(self._history(connection)))

    def _corrupt(self, reason: str) -> NoReturn:
        raise LedgerCorrupt(
            ledger=self._store.name,
            reason=reason,
            hint="nothing was charged; `tacit ledger verify` names every change",
        )


def _first(header: Header) -> State:
    return State.start(header.budget, header.shares, ledger=header.id)


def correction_name(about: int, number: int) -> str:
    """The index's name for a later note about a charge, by its number."""
    return f"corrected {about} {number}"


def closed_name(sequence: int) -> str:
    """The index's name for the end of a reservation."""
    return f"closed {sequence}"


def answer_name(
    secret: bytes, key: str, table: str, version: str, files: Mapping[str, Any] | None = None
) -> str:
    """The index's name for the answer to a question about a version of a table, and about a declared set of files.

    Entries of 0.1.0 have no set of files, and keep their name.
    """
    about: list[Any] = [key, table, version, *([] if files is None else [files])]
    return "answer " + mac(secret, "answer", canonical(about))


def file_names(secret: bytes, key: str, table: str, version: str, files: Mapping[str, Any]) -> list[str]:
    """The index's names for a question about a version of a table, and for each of its declared files."""
    about = [key, table, version]
    place = "asked " + mac(secret, "asked", canonical(about))
    each = protected_files(files)
    return [place, *("file " + mac(secret, "file", canonical([*about, one])) for one in each)]


def pages(connection: Connection, *, after: int, up_to: int | None = None) -> Iterator[Row]:
    """The rows of the chain in order, a page at a time, to limit the memory."""
    last = LAST if up_to is None else up_to
    while after < last:
        found = connection.rows(_PAGE, {"after": after, "up_to": last, "most": PAGE})
        if not found:
            return
        yield from found
        after = found[-1][0]


def now() -> str:
    """The time as text, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
