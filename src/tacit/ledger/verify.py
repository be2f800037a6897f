"""Finding every change: the whole chain with its sums, its end, the answers, the index, the header, and the file.

The chain is read some entries at a time, so that a long one needs no more memory than a short one.

It cannot find a consistent forgery: somebody who can write to the ledger has its secret and can rewrite all of
it consistently, and an older copy of the whole ledger is consistent. An anchor kept elsewhere (in a
certificate, in a mail, on paper) reveals both.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tacit.errors import LedgerCorrupt
from tacit.exact.canonical import sha256
from tacit.guarantees import Guarantee, Pure, rows
from tacit.ledger.entries import Charge, Entry, read_entry
from tacit.ledger.log import (
    PAGE,
    READABLE,
    Header,
    History,
    Problem,
    State,
    Verification,
    answer_name,
    closed_name,
    correction_name,
    file_names,
    head_mac,
    index_mac,
    pages,
    parse_anchor,
    version_error,
    walk,
)
from tacit.ledger.store import ANSWERS, ENTRIES, HEADER, INDEX, Connection, Store, Table

Progress = Callable[[int, int], None]
"""A callback, called now and then with the number of checked entries and the number of all entries."""


def verify_ledger(
    where: str | os.PathLike[str],
    anchors: Sequence[str] = (),
    *,
    wait_seconds: float = 30.0,
    progress: Progress | None = None,
) -> Verification:
    """Verifies the ledger at this place, even if it is too damaged to be opened for work."""
    return verify(Store(where, wait_seconds=wait_seconds), anchors, progress=progress)


def verify(
    store: Store, anchors: Sequence[str] = (), *, header: str | None = None, progress: Progress | None = None
) -> Verification:
    """Every problem of the ledger in `store`; `header` is its header at opening, if it was opened."""
    wanted = [parse_anchor(a) for a in anchors]
    try:
        return store.read(lambda connection: _Walk(store, connection, wanted, header, progress).result())
    except LedgerCorrupt as problem:
        found = Problem(sequence=None, what=f"the ledger {problem.reason}")
        return Verification(entries=0, anchor="", problems=(found,))


class _Walk:
    """One walk through everything."""

    def __init__(
        self,
        store: Store,
        connection: Connection,
        wanted: Sequence[tuple[int, str]],
        opened: str | None,
        progress: Progress | None,
    ) -> None:
        store.check_format(connection)
        self.connection, self.wanted, self.opened, self.progress = connection, wanted, opened, progress
        self.problems = [Problem(sequence=None, what=w) for w in [store.damage(connection)] if w]
        found = connection.first(HEADER.selection("format"))
        if found is not None and found[0] not in READABLE:
            raise version_error(store.name, found[0])
        rows = HEADER.all(connection)
        self.head: dict[str, Any] | None = rows[0] if rows else None

    def result(self) -> Verification:
        if self.head is None:
            missing = Problem(sequence=None, what="the header is missing")
            return Verification(entries=0, anchor="", problems=(*self.problems, missing))
        self.secret, self.start = bytes(self.head["secret"]), sha256(str(self.head["header"]))
        history = self._history()
        self.seen, self.noted, self.answers = 0, 0, 0
        anchored = {0: self.start}
        page: list[Entry] = []
        places = {sequence for sequence, _ in self.wanted}
        for entry, problem in walk(history, self._rows()):
            if problem is not None:
                self.problems.append(problem)
            if entry is None:
                continue
            page.append(entry)
            if entry.sequence in places:
                anchored[entry.sequence] = entry.digest
            if len(page) == PAGE:
                self._beside(page)
                page.clear()
        self._beside(page)
        self.problems += [*self._head(self.head, history), *self._strangers(whole=history.summed)]
        for sequence, digest in self.wanted:
            if anchored.get(sequence) != digest:
                what = f"the anchor at entry {sequence} is not in this ledger: this is another history"
                self.problems.append(Problem(sequence=None, what=what))
        anchor = f"{history.sequence}:{history.digest}"
        return Verification(entries=self.seen, anchor=anchor, problems=tuple(self.problems))

    def _history(self) -> History:
        assert self.head is not None
        header = Header.read(self.head["header"], self.secret)
        if header is None or self.opened not in (None, self.head["header"]):
            self.problems.append(Problem(sequence=None, what="the header was changed"))
        if header is None:  # then no sum is known, and the chain alone is walked
            nothing = Guarantee(bound=Pure(epsilon=0), unit=rows())
            return History(digest=self.start, state=State.start(nothing, {}), summed=False)
        start = State.start(header.budget, header.shares, ledger=header.id)
        return History(digest=self.start, state=start)

    def _rows(self) -> Iterator[tuple[int, str, str]]:
        assert self.head is not None
        for row in pages(self.connection, after=0):
            self.seen += 1
            if self.progress is not None and self.seen % PAGE == 0:
                self.progress(self.seen, int(self.head["sequence"]))
            yield row

    # --- what lies beside the chain -------------------------------------------------------------------
    def _beside(self, page: list[Entry]) -> None:
        """The index and the answers of some entries."""
        closing = [e for e in page if e.closes is not None]
        corrections = [e for e in page if e.kind in ("withdraw", "supersede")]
        names = {closed_name(e.closes or 0): e for e in closing}
        names |= {correction_name(e.body["about"], e.body["number"]): e for e in corrections}
        self.problems += self._index(names)
        self.problems += self._declared([e for e in page if e.kind == "reserve" and "files" in e.body])
        self.problems += self._corrections(corrections)
        self.problems += self._bodies({e.sequence: e for e in closing if e.kind == "commit"})

    def _index(self, names: dict[str, Entry]) -> Iterator[Problem]:
        found = {r["name"]: r for r in self._select(INDEX, "name", list(names))}
        for name, entry in names.items():
            row = found.get(name)
            if row is None or (row["sequence"], row["digest"], row["mac"]) != (
                entry.sequence, entry.digest, self._mac(name, entry),
            ):  # fmt: skip
                yield Problem(sequence=entry.sequence, what="is not where the index says")
        self.noted += len(names)
        yield from self._first_answers([e for e in names.values() if e.kind == "commit"])

    def _corrections(self, corrections: list[Entry]) -> Iterator[Problem]:
        """Withdrawn or replaced charges must be charges of this chain, unchanged."""
        for entry in corrections:
            named = {entry.body["about"]: entry.body["charge"]}
            if entry.kind == "supersede":
                named[entry.body["with"]] = entry.body["with_charge"]
            rows = {r["sequence"]: r for r in self._select(ENTRIES, "sequence", list(named))}
            for sequence, digest in named.items():
                row = rows.get(sequence)
                if row is None or row["digest"] != digest or '"kind":"reserve"' not in row["content"]:
                    yield Problem(
                        sequence=entry.sequence, what=f"is about entry {sequence}, which is another"
                    )

    def _first_answers(self, commits: list[Entry]) -> Iterator[Problem]:
        """The answer to a question is that of its first commit, and the index names it."""
        charges = self._charges([int(e.body["reserve"]) for e in commits])
        names: dict[str, Entry] = {}
        for entry in commits:
            charge = charges.get(int(entry.body["reserve"]))
            if charge is not None:
                name = answer_name(self.secret, charge.key, charge.table, charge.version, charge.files)
                names.setdefault(name, entry)
        yield from self._first(names, "has an answer that the index does not name")

    def _declared(self, charges: list[Entry]) -> Iterator[Problem]:
        """The index names the first charge for each question, and for each of its declared files."""
        names: dict[str, Entry] = {}
        for entry in charges:
            about = (entry.body[n] for n in ("request", "table", "version", "files"))
            for name in file_names(self.secret, *about):
                names.setdefault(name, entry)
        yield from self._first(names, "is about files that the index does not name")

    def _first(self, names: dict[str, Entry], missing: str) -> Iterator[Problem]:
        found = {r["name"]: r for r in self._select(INDEX, "name", list(names))}
        for name, entry in names.items():
            row = found.get(name)
            if row is None or row["sequence"] > entry.sequence:
                yield Problem(sequence=entry.sequence, what=missing)
            elif row["sequence"] == entry.sequence:
                self.noted += 1
                if (row["digest"], row["mac"]) != (entry.digest, self._mac(name, entry)):
                    yield Problem(sequence=entry.sequence, what="is not where the index says")

    def _charges(self, sequences: list[int]) -> dict[int, Charge]:
        out = {}
        for row in self._select(ENTRIES, "sequence", sequences):
            entry, _ = read_entry(sequence=row["sequence"], digest=row["digest"], content=row["content"])
            if entry is not None and entry.kind == "reserve":
                out[entry.sequence] = entry.charge()
        return out

    def _select(self, table: Table, column: str, values: list[Any]) -> list[dict[str, Any]]:
        return table.where(self.connection, column, values)

    def _mac(self, name: str, entry: Entry) -> str:
        return index_mac(self.secret, self.start, name, entry.sequence, entry.digest)

    def _bodies(self, commits: dict[int, Entry]) -> Iterator[Problem]:
        rest = dict(commits)
        for row in self._select(ANSWERS, "sequence", list(commits)):
            entry = rest.pop(row["sequence"])
            self.answers += 1
            if sha256(bytes(row["body"])) != entry.body["answer"]["sha256"]:
                yield Problem(sequence=entry.sequence, what="has an answer that was changed")
        for sequence in rest:
            yield Problem(sequence=sequence, what="has lost its answer")

    def _strangers(self, *, whole: bool) -> Iterator[Problem]:
        """Rows beside the chain that no entry mentions; for a chain with faults, the answers only."""
        if whole and self._count(INDEX) > self.noted:
            yield Problem(sequence=None, what="the index has rows that the chain does not account for")
        if self._count(ANSWERS) <= self.answers:
            return
        known: set[int] = set()
        for row in pages(self.connection, after=0):
            if '"kind":"commit"' in row[2]:
                known.add(row[0])
        for (sequence,) in self.connection.rows(ANSWERS.selection("sequence")):
            if sequence not in known:
                yield Problem(sequence=sequence, what="has an answer beside it that the chain does not know")

    def _count(self, table: Table) -> int:
        return table.count(self.connection)

    def _head(self, head: dict[str, Any], history: History) -> Iterator[Problem]:
        stated = head_mac(self.secret, self.start, head["sequence"], head["digest"])
        if not hmac.compare_digest(stated, str(head["mac"])):
            yield Problem(sequence=None, what="the head was not written by tacit")
        if history.sequence < head["sequence"]:
            lost = head["sequence"] - history.sequence
            yield Problem(
                sequence=None, what=f"the end was cut off: {lost} more in the head than in the chain"
            )
        elif history.sequence > head["sequence"]:
            more = history.sequence - head["sequence"]
            yield Problem(
                sequence=None, what=f"the end was added to: {more} more in the chain than in the head"
            )
        elif history.digest != head["digest"]:
            yield Problem(sequence=history.sequence, what="is not the one that the head names")
        elif history.summed and head["state"] != history.state.text:
            yield Problem(sequence=None, what="the state beside the head was changed")
