"""Spending by person and query: for people, for programs, and as JSON lines for an auditor."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tacit.errors import NoLaw
from tacit.exact.canonical import canonical
from tacit.exact.checks import flag
from tacit.guarantees import Bound, Guarantee, RandomData
from tacit.guarantees.guarantee import to_record
from tacit.ledger import budget as totals
from tacit.ledger.approvals import replaced_with
from tacit.ledger.entries import Charge, Entry, fingerprint
from tacit.ledger.ledger import Ledger
from tacit.ledger.log import FORMAT, History
from tacit.ledger.on_random_data import standing_of
from tacit.ledger.register import Open
from tacit.ledger.store import Connection


def overview(ledger: Ledger) -> dict[str, Any]:
    """Budget, spent, left, shares and one line a charge, as plain data; no answers and no secret."""
    return ledger._read_all(lambda history: _overview(ledger, history))


def screen(
    ledger: Ledger, *, most: int, wanted: Callable[[Mapping[str, Any]], bool] = lambda body: True
) -> dict[str, Any]:
    """The overview with the last `most` wanted charges, selected by their entries, and with open requests.

    `older` is the number of wanted charges before these. Every link of the chain is checked. Sums are not added
    up anew: the end of the chain states the spent amount, and a charge relies on it, too.
    """
    if isinstance(ledger.budget.condition, RandomData):  # a gamma is made of all charges
        return _cut(ledger._read_all(lambda history: _overview(ledger, history)), most, wanted)

    def look(connection: Connection) -> dict[str, Any]:
        end = ledger._end(connection, wanted, most)
        if end is None:
            return _cut(_overview(ledger, ledger._history(connection)), most, wanted)
        found = _overview(ledger, end.history, end.counts)
        return {**found, "older": end.found - len(found["charges"])}

    return ledger._store.read(look)


def _cut(found: dict[str, Any], most: int, wanted: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
    charges = [c for c in found["charges"] if wanted(c)]
    last = charges[-most:] if most else []
    open_ = [r for r in found["requests"] if r["state"] != "closed"]
    return {**found, "charges": last, "requests": open_, "older": len(charges) - len(last)}


def _overview(ledger: Ledger, history: History, counts: Counter[str] | None = None) -> dict[str, Any]:
    charges, state = list(history.charges.values()), history.state
    counts = Counter(c.analyst for c in charges) if counts is None else counts
    names = {*counts, *(name for name in state.shares if name != "*")}
    said: dict[int, list[Entry]] = {}
    for entry in history.said:
        if entry.kind in ("withdraw", "supersede"):
            said.setdefault(entry.body["about"], []).append(entry)
    later = {e.body["with"] for e in history.said if e.kind == "supersede"}
    return {
        "ledger": ledger.name,
        "id": ledger.id,
        "created": ledger.created,
        "table": ledger.table,
        "rehearsal": ledger.rehearsal,
        "budget": to_record(ledger.budget),
        "four_eyes": state.register.four_eyes,
        "people": {
            name: {"roles": list(p.roles), "key": p.key and fingerprint(bytes.fromhex(p.key))}
            for name, p in sorted(state.register.people.items())
        },
        "spent": _standing(ledger, history, None)[0],
        "remaining": _standing(ledger, history, None)[1],
        "declared": [
            f"charge {c.sequence}: {sentence}" for c in charges for sentence in c.guarantee.declared
        ],
        "anchor": f"{history.sequence}:{history.digest}",
        "analysts": {
            name: {
                "spent": _standing(ledger, history, name)[0],
                "remaining": _standing(ledger, history, name)[1],
                "share": _plain(share.bound if (share := state.share_of(name)) else None) or None,
                "charges": counts[name],
            }
            for name in sorted(names)
        },
        "looks": [
            {"sequence": e.sequence, **{k: e.body[k] for k in ("time", "analyst", "table", "version")}}
            for e in history.looks
        ],
        "charges": [
            {
                "sequence": c.sequence,
                "time": c.time,
                "analyst": c.analyst,
                "request": c.key,
                "plan": c.plan_digest,
                "version": c.version,
                "event": dict(c.event),
                "charge": _plain(c.guarantee.bound) | _gamma(c.guarantee),
                "state": history.became(c.sequence),
                "table": c.table,
                "of_budget": _parts(ledger, c),
                "releases": [dict(one) for one in c.told],
                "approved_by": list(c.approved_by),
                "declared": list(c.guarantee.declared),
                "corrections": [_correction(e) for e in said.get(c.sequence, [])],
                "replaces": list(replaced_with(history.said, c.sequence)) if c.sequence in later else [],
            }
            for c in charges
        ],
        "requests": [
            _request(ledger, e, state.register.requests) for e in history.said if e.kind == "request"
        ],
        "notes": [
            {"sequence": e.sequence, **{k: e.body[k] for k in ("time", "about", "by", "note")}}
            for e in history.said
            if e.kind == "note"
        ],
    }


def _request(ledger: Ledger, entry: Entry, waiting: Mapping[int, Open]) -> dict[str, Any]:
    """A request as plain data; the charges show the end of a closed request."""
    asked, found = entry.charge(), waiting.get(entry.sequence)
    return {
        "sequence": entry.sequence,
        "time": asked.time,
        "analyst": asked.analyst,
        "request": asked.key,
        "plan": asked.plan_digest,
        "table": asked.table,
        "version": asked.version,
        "charge": _plain(asked.guarantee.bound) | _gamma(asked.guarantee),
        "of_budget": _parts(ledger, asked),
        "releases": [dict(one) for one in asked.told],
        "note": entry.body["note"],
        "state": "closed" if found is None else "approved" if found.approved else "open",
        "approved_by": [] if found is None else sorted(found.approved),
    }


def _correction(entry: Entry) -> dict[str, Any]:
    found = entry.correction()
    names = ("kind", "sequence", "time", "by", "note", "release", "replaced_by")
    return {name: getattr(found, name) for name in names}


def _parts(ledger: Ledger, charge: Charge) -> dict[str, float] | None:
    try:
        return totals.parts_of(charge.guarantee.bound, charge.exact, ledger.limit)
    except NoLaw:
        return None


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


def _standing(ledger: Ledger, history: History, name: str | None) -> tuple[Any, Any]:
    """The amount spent by all or by one analyst, and the amount left for them; with gammas, under RandomData."""
    if isinstance(ledger.budget.condition, RandomData):
        spent, left = standing_of(ledger, history, name)
        return _plain(spent.bound) | _gamma(spent), _plain(left.bound) | _gamma(left)
    try:
        totals.addable(ledger.budget)
        state, limit = history.state, ledger.limit
        return _plain(state.spent(name, limit)), _plain(state.left(name, limit))
    except NoLaw:
        return None, None


def _gamma(guarantee: Guarantee) -> dict[str, Any]:
    condition = guarantee.condition
    return {"gamma": condition.gamma} if isinstance(condition, RandomData) else {}


def _plain(bound: Bound | None) -> dict[str, Any]:
    return {} if bound is None else {"kind": bound.kind, **bound.parameters}
