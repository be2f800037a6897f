"""Finding every change: the whole chain, its end, the answers, the header, and the file itself.

What this cannot find: the secret lies in the ledger, so that somebody who can write to it can also rewrite
all of it consistently, and an older copy of the whole ledger is consistent in itself. Against both helps an
anchor that was kept elsewhere (in a certificate, in a mail, on paper).
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tacit.errors import LedgerCorrupt, LedgerVersion
from tacit.ledger.canonical import sha256
from tacit.ledger.chain import History, Problem, Verification, parse_anchor, walk
from tacit.ledger.entries import Entry
from tacit.ledger.header import FORMAT, Header, head_mac
from tacit.ledger.store import ANSWERS, ENTRIES, HEADER, Store

__all__ = ["verify", "verify_ledger"]


def verify_ledger(
    where: str | os.PathLike[str], anchors: Sequence[str] = (), *, wait_seconds: float = 30.0
) -> Verification:
    """Verify what lies at this place, also if it is too damaged to be opened for work."""
    return verify(Store(where, wait_seconds=wait_seconds), anchors)


def verify(store: Store, anchors: Sequence[str] = (), *, header: str | None = None) -> Verification:
    """Every problem of the ledger in `store`; `header` is what it was opened with, if it was."""
    wanted = [parse_anchor(a) for a in anchors]
    try:
        with store.reading() as connection:
            return _walk_all(store, connection, wanted, header)
    except LedgerCorrupt as problem:
        found = Problem(sequence=None, what=f"the ledger {problem.reason}")
        return Verification(entries=0, anchor="", problems=(found,))


def _walk_all(
    store: Store, connection: Connection, wanted: Sequence[tuple[int, str]], opened: str | None
) -> Verification:
    store.check_format(connection)
    problems = [Problem(sequence=None, what=w) for w in [store.damage(connection)] if w]
    head = connection.execute(sa.select(HEADER)).mappings().one_or_none()
    if head is None:
        return Verification(
            entries=0, anchor="", problems=(*problems, Problem(sequence=None, what="the header is missing"))
        )
    if head["format"] != FORMAT:
        raise LedgerVersion(
            ledger=store.name,
            reason=f"has format {head['format']}, and this version of tacit knows {FORMAT}",
            hint="use the version of tacit that wrote it, or a later one",
        )
    history = History(digest=sha256(str(head["header"])))
    digests: dict[int, str] = {0: history.digest}
    commits: dict[int, Entry] = {}
    query = sa.select(ENTRIES.c.sequence, ENTRIES.c.digest, ENTRIES.c.content).order_by(ENTRIES.c.sequence)
    rows = [(r.sequence, r.digest, r.content) for r in connection.execute(query)]
    for entry, problem in walk(history, rows):
        if problem is not None:
            problems.append(problem)
        elif entry is not None:
            digests[entry.sequence] = entry.digest
            if entry.kind == "commit":
                commits[entry.sequence] = entry
    problems += _head(dict(head), history, digests[0], opened)
    problems += _answers(connection, commits)
    for sequence, digest in wanted:
        if digests.get(sequence) != digest:
            what = f"the anchor at entry {sequence} is not in this ledger: this is another history"
            problems.append(Problem(sequence=None, what=what))
    anchor = f"{history.sequence}:{history.digest}"
    return Verification(entries=len(rows), anchor=anchor, problems=tuple(problems))


def _head(head: dict[str, Any], history: History, start: str, opened: str | None) -> Iterator[Problem]:
    secret = bytes(head["secret"])
    if Header.read(head["header"], secret) is None or opened not in (None, head["header"]):
        yield Problem(sequence=None, what="the header was changed")
    stated = head_mac(secret, start, head["sequence"], head["digest"])
    if not hmac.compare_digest(stated, str(head["mac"])):
        yield Problem(sequence=None, what="the head was not written by tacit")
    if history.sequence < head["sequence"]:
        lost = head["sequence"] - history.sequence
        yield Problem(sequence=None, what=f"the end was cut off: {lost} more in the head than in the chain")
    elif history.sequence > head["sequence"]:
        more = history.sequence - head["sequence"]
        yield Problem(sequence=None, what=f"the end was added to: {more} more in the chain than in the head")
    elif history.digest != head["digest"]:
        yield Problem(sequence=history.sequence, what="is not the one that the head names")


def _answers(connection: Connection, commits: dict[int, Entry]) -> Iterator[Problem]:
    rest = dict(commits)
    for sequence, body in connection.execute(sa.select(ANSWERS.c.sequence, ANSWERS.c.body)):
        entry = rest.pop(sequence, None)
        if entry is None:
            yield Problem(sequence=sequence, what="has an answer beside it that the chain does not know")
        elif sha256(bytes(body)) != entry.body["answer"]["sha256"]:
            yield Problem(sequence=sequence, what="has an answer that was changed")
    for sequence in rest:
        yield Problem(sequence=sequence, what="has lost its answer")
