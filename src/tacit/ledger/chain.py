"""Walking the chain: what the entries amount to, and every way in which they are not what was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tacit.errors import InvalidParameter
from tacit.guarantees import Bound
from tacit.guarantees.record import from_record
from tacit.ledger.entries import Charge, Entry, read_entry

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
    """What the entries up to `sequence` amount to. Only ever moves forward, one verified link at a time."""

    digest: str
    sequence: int = 0
    shares: dict[str, Bound] = field(default_factory=dict)
    charges: dict[int, Charge] = field(default_factory=dict)
    closed: dict[int, str] = field(default_factory=dict)
    answers: dict[tuple[str, str], Committed] = field(default_factory=dict)

    def follow(self, entry: Entry) -> str:
        """Take the next entry in; returns what is wrong with it, and then takes nothing."""
        if entry.sequence != self.sequence + 1:
            return "does not come next: an entry before it is missing"
        if entry.body["previous"] != self.digest:
            return "does not follow the one before it, which was changed later"
        wrong = self._meaning(entry)
        if not wrong:
            self.sequence, self.digest = entry.sequence, entry.digest
        return wrong

    def _meaning(self, entry: Entry) -> str:
        number = entry.closes
        if number is not None:
            if number not in self.charges or number in self.closed:
                return f"closes entry {number}, which is not an open reservation"
            self.closed[number] = entry.kind
        if entry.kind == "reserve":
            self.charges[entry.sequence] = entry.charge()
        elif entry.kind == "share":
            self.shares[entry.body["analyst"]] = from_record(entry.body["share"]).bound
        elif entry.kind == "commit" and number is not None:
            charge = self.charges[number]
            # The first answer to a request is the answer; a second one was paid for by somebody in parallel.
            self.answers.setdefault((charge.key, charge.data_mark), committed(entry))
        return ""

    def state(self, sequence: int) -> str:
        """reserved, committed or failed."""
        return {"commit": "committed", "failed": "failed"}.get(self.closed.get(sequence, ""), "reserved")

    def share_of(self, analyst: str) -> Bound | None:
        """The analyst's own limit, or that of everybody who has none."""
        return self.shares.get(analyst, self.shares.get("*"))


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
        if entry is not None:
            wrong = history.follow(entry)
        if entry is None or wrong:
            history.sequence, history.digest = sequence, digest
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
