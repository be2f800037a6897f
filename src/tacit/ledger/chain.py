"""Walking the chain: what the entries amount to, and every way in which they are not what was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tacit.errors import InvalidParameter, TacitError
from tacit.ledger.entries import Charge, Entry, read_entry
from tacit.ledger.state import State

__all__ = ["Committed", "History", "Problem", "Row", "Verification", "committed", "parse_anchor", "walk"]

Row = tuple[int, str, str]  # sequence, digest, content: an entry as it lies in the store


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is not as it was written; `sequence` is None where it is about the ledger as a whole."""

    sequence: int | None
    what: str

    def __str__(self) -> str:
        return f"entry {self.sequence} {self.what}" if self.sequence is not None else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a walk through the whole ledger found. `anchor` is worth writing down elsewhere if it is sound."""

    entries: int
    anchor: str
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Is everything as it was written?"""
        return not self.problems

    def __str__(self) -> str:
        if self.ok:
            return f"{self.entries} entries, unchanged since they were written; anchor {self.anchor}"
        return "; ".join(str(p) for p in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Where the answer to a request lies."""

    sequence: int
    reserve: int
    kind: str
    sha256: str


@dataclass(slots=True)
class History:
    """What the entries up to `sequence` amount to. Only ever moves forward, one verified link at a time.

    `open` has the digests of the reservations that nothing became of yet; with `keep` the charges, and what
    closed them, are kept too, and what was said about people, requests and releases. Behind a fault sums are not
    known, and not compared (`summed`).
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
    """The entry in which each plan's digest stood first, whether it was charged for or only recorded."""
    said: list[Entry] = field(default_factory=list)

    def follow(self, entry: Entry) -> str:
        """Take the next entry in; returns what is wrong with it, and then takes nothing."""
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
        if self.summed and state.words != {k: entry.body[k] for k in ("total", "state")}:
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


def committed(entry: Entry) -> Committed:
    """Where the answer of a `commit` entry lies."""
    said = entry.body["answer"]
    return Committed(
        sequence=entry.sequence, reserve=entry.body["reserve"], kind=said["kind"], sha256=said["sha256"]
    )


def walk(history: History, rows: Iterable[Row]) -> Iterable[tuple[Entry | None, Problem | None]]:
    """Each row as an entry, or what is wrong with it; goes on behind a fault, to name them all."""
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
