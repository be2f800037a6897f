"""What was spent, by whom, on what: for people, for programs, and as JSON lines for an auditor."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tacit.errors import NoLaw
from tacit.exact.checks import flag
from tacit.guarantees import Bound
from tacit.guarantees.record import to_record
from tacit.ledger import budget as totals
from tacit.ledger.canonical import canonical
from tacit.ledger.chain import History
from tacit.ledger.header import FORMAT
from tacit.ledger.ledger import Ledger

__all__ = ["export", "overview"]


def overview(ledger: Ledger) -> dict[str, Any]:
    """Budget, spent, left, shares and one line a charge, as plain data; no answers and no secret."""
    return ledger._read_all(lambda history: _overview(ledger, history))


def _overview(ledger: Ledger, history: History) -> dict[str, Any]:
    charges, state = list(history.charges.values()), history.state
    counts = Counter(c.analyst for c in charges)
    names = {*counts, *(name for name in state.shares if name != "*")}
    return {
        "ledger": ledger.name,
        "id": ledger.id,
        "created": ledger.created,
        "table": ledger.table,
        "rehearsal": ledger.rehearsal,
        "budget": to_record(ledger.budget),
        "spent": _sum(ledger, lambda: state.spent(None, ledger.limit)),
        "remaining": _sum(ledger, lambda: state.left(None, ledger.limit)),
        "declared": sorted({sentence for c in charges for sentence in c.guarantee.declared}),
        "anchor": f"{history.sequence}:{history.digest}",
        "analysts": {
            name: {
                "spent": _sum(ledger, lambda name=name: state.spent(name, ledger.limit)),  # type: ignore[misc]
                "remaining": _sum(ledger, lambda name=name: state.left(name, ledger.limit)),  # type: ignore[misc]
                "share": _plain(share.bound if (share := state.share_of(name)) else None),
                "charges": counts[name],
            }
            for name in sorted(names)
        },
        "charges": [
            {
                "sequence": c.sequence,
                "time": c.time,
                "analyst": c.analyst,
                "request": c.key,
                "plan": c.plan_digest,
                "version": c.version,
                "event": dict(c.event),
                "charge": _plain(c.guarantee.bound),
                "state": history.became(c.sequence),
            }
            for c in charges
        ],
    }


def export(ledger: Ledger, *, answers: bool = True) -> Iterator[str]:
    """JSON lines: the header, then each entry with its digest, and the answers; never the secret.

    Each line's `entry` in canonical JSON has the SHA-256 that the line states, and `previous` is that of the
    entry before it (of `header`, for the first), so that the chain can be checked without the ledger.
    """
    flag("answers", answers)
    yield canonical({"kind": "header", "format": FORMAT, "header": json.loads(ledger._header)})
    for entry, answer in ledger.entries_with_answers(answers=answers):
        line: dict[str, Any] = {"kind": "entry", "digest": entry.digest, "entry": dict(entry.body)}
        if answers and entry.kind == "commit":
            coded = isinstance(answer, bytes)
            line["answer"] = base64.b64encode(answer).decode("ascii") if coded else answer
        yield canonical(line)


def _sum(ledger: Ledger, total: Callable[[], Bound]) -> dict[str, Any] | None:
    try:
        totals.addable(ledger.budget)
        return _plain(total())
    except NoLaw:
        return None


def _plain(bound: Bound | None) -> dict[str, Any] | None:
    return None if bound is None else {"kind": bound.kind, **bound.parameters}
