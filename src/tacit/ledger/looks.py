"""Looks at the data, and earlier plans: entries of the chain, without any finding.

    look    somebody looked at this declared version of this table (`tacit inspect`); the content is not recorded
    plan    the digest of a plan, recorded before it is charged for (`tacit plan --record`)

Somebody who has looked may have fitted bounds, keys and bins to the data. A plan is older than a look if its digest
appears in an earlier entry: a charge, a request or a record. The order of the chain decides; a date or a file proves
nothing.
Later entries never change the remark about a plan: the plan's first entry, and all earlier looks, are fixed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tacit.errors import InvalidParameter, NotAllowed
from tacit.ledger.entries import Entry, text
from tacit.ledger.ledger import Ledger
from tacit.ledger.log import State, looks_before, version_place
from tacit.ledger.register import alike
from tacit.ledger.store import Connection


def looked(ledger: Ledger, *, analyst: str, table: str = "", version: str = "") -> Entry:
    """Records that somebody looks; durable when this returns, before a row is read.

    Refuses everybody who asks paid questions: names with a share, or with another role than custodian, and all
    but custodians if the ledger knows one.
    """
    who, name = text("analyst", analyst), _table(ledger, table)
    said = {"analyst": who, "table": name, "version": text("version", version, empty=True)}

    def work(connection: Connection) -> Entry:
        ledger._sync(connection)
        _may_look(ledger._state, who)
        ledger._admit("analyst", who)
        state = ledger._state.looked(version_place(name, said["version"]), ledger._sequence + 1)
        entry = ledger._next("look", state, **said)
        ledger._append(connection, entry, state)
        return entry

    return ledger._write(work)


def _may_look(state: State, who: str) -> None:
    register = state.register
    if register.has(who, "custodian"):
        return
    what = "look at the data"
    register.custodian(who, what)
    if "*" in state.shares or any(alike(who, known) for known in state.shares):
        raise NotAllowed(
            who=who, what=what, reason="an analyst with a share asks questions that are paid for, and sees no row",
            hint="the custodian looks, under a name without a share",
        )  # fmt: skip
    if any(alike(who, known) for known in register.people):
        raise NotAllowed(
            who=who, what=what, reason="it takes the role of custodian",
            hint="tacit ledger show lists the names and their roles",
        )  # fmt: skip


def record_plan(ledger: Ledger, plan_digest: str, *, analyst: str, table: str = "", version: str = "") -> int:
    """The first entry with the plan's digest, written now if it is missing."""
    if not isinstance(plan_digest, str) or not re.fullmatch(r"[0-9a-f]{64}", plan_digest):
        raise InvalidParameter(parameter="plan_digest", value=plan_digest, must="be the digest of a plan")
    said = {"analyst": text("analyst", analyst), "table": _table(ledger, table)}

    def work(connection: Connection) -> int:
        known = ledger._history(connection).plans.get(plan_digest)
        if known is not None:
            return known
        ledger._admit("analyst", said["analyst"])
        body = {**said, "version": text("version", version, empty=True), "plan": plan_digest}
        entry = ledger._next("plan", ledger._state, **body)
        ledger._append(connection, entry, ledger._state)
        return entry.sequence

    return ledger._write(work)


def seen(ledger: Ledger, plan_digest: str, *, table: str = "", version: str = "") -> tuple[str, ...]:
    """The remark about a plan; empty if no look is older than the plan. A plan without an entry counts as younger than
    every look.
    """
    place = version_place(_table(ledger, table), version)

    def look(connection: Connection) -> tuple[str, ...]:
        ledger._sync(connection)
        looks = ledger._state.looks
        return looks_before(looks, ledger._history(connection).plans.get(plan_digest), place) if looks else ()

    return ledger._store.read(look)


def seen_in(
    entries: Sequence[Entry], plan_digests: Sequence[str], *, table: str, version: str
) -> tuple[str, ...]:
    """The same from checked entries in memory, for `tacit verify`."""
    looks: dict[str, int] = {}
    first: int | None = None
    for entry in entries:
        if entry.kind == "look":
            looks.setdefault(version_place(entry.body["table"], entry.body["version"]), entry.sequence)
        elif (
            entry.kind in ("reserve", "plan", "request")
            and entry.body["plan"] in plan_digests
            and first is None
        ):
            first = entry.sequence
    return looks_before(looks, first, version_place(table, version))


def _table(ledger: Ledger, table: str) -> str:
    ledger.check(table=table)
    return table or ledger.table
