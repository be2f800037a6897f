"""`/api/v1`: the curator's verbs for programs, in JSON, with a token in a header; no cookies, no CORS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tacit.errors import InvalidParameter, NotAllowed
from tacit.server import jobs
from tacit.server.pages import READS
from tacit.server.store import JOBS, PUBLISHED, TABLES, Row
from tacit.server.web import NotFound, WebCall, json_reply


def index(call: WebCall) -> Any:
    """The version, and the address of this interface's description."""
    import tacit

    return {"tacit": tacit.__version__, "api": "v1", "openapi": "/api/v1/openapi.json"}


def openapi(call: WebCall) -> Any:
    """The description of this interface."""
    from tacit.server.openapi import document

    return document(call.desk.settings.url)


def _table(call: WebCall, *, ask: bool = False) -> Row:
    table = call.desk.table(call.path["table"], call.person)
    if ask and not call.desk.access(table, call.person) & {"analyst", "custodian"}:
        raise NotAllowed(who=call.person.name, what="ask about this table", reason="you are no analyst of it")
    return table


def _table_values(call: WebCall, table: Row) -> dict[str, Any]:
    said = json.loads(table["declaration"])
    standing = call.desk.standing(table, call.person)
    return {
        "name": table["name"], "title": table["title"], "version": table["version"], "protect": said["protect"],
        "schema": said["schema"], "budget": standing["budget"], "budget_kind": standing["kind"],
        "four_eyes": standing["four_eyes"], "roles": sorted(call.desk.access(table, call.person)),
    }  # fmt: skip


def tables(call: WebCall) -> Any:
    """The tables that the token's owner may see."""
    return {"tables": [_table_values(call, t) for t in call.desk.tables(call.person)]}


def table(call: WebCall) -> Any:
    """One table with its declarations."""
    return _table_values(call, _table(call))


def spent(call: WebCall) -> Any:
    """The amount of the budget that everybody spent."""
    return {"spent": call.desk.standing(_table(call))["spent"]}


def left(call: WebCall) -> Any:
    """The amount left of the budget, and of the owner's share if there is one."""
    return {"left": call.desk.standing(_table(call), call.person)["left"]}


def _asked(call: WebCall) -> dict[str, Any]:
    """The request of a body: releases, and a price."""
    if not isinstance(call.body, Mapping):
        raise InvalidParameter(parameter="body", value=type(call.body).__name__, must="be a JSON object")
    known = ("key", "note", "releases", "spend", "title", "rehearsal")
    for word in call.body:
        if word not in known:
            raise InvalidParameter(
                parameter="word", value=str(word)[:40], must=f"be one of {', '.join(known)}"
            )
    return {word: call.body[word] for word in ("releases", "spend", "title") if word in call.body}


def _public(quote: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in quote.items() if k not in ("asked", "key", "lines")}


def preview(call: WebCall) -> Any:
    """Price, expected error, lower bound, and whether it fits; reads no row and spends nothing."""
    found = _table(call, ask=True)
    return _public(call.desk.quote(found, _asked(call), call.person.name))


def release(call: WebCall) -> Any:
    """Begin a release: charge, read, add noise. Answers with the job at once; the released values come later."""
    found = _table(call, ask=True)
    quote = call.desk.quote(found, _asked(call), call.person.name)
    rehearsal = call.body.get("rehearsal", False) is True
    _own_key(call, quote, str(found["version"]), rehearsal)
    fit = quote["fit"]
    if not rehearsal and not fit["recorded"]:
        if fit["waits"]:
            raise NotAllowed(
                who=call.person.name, what="be charged for this", reason=fit["waits"],
                hint="POST the same body to /request, and to /release once it is approved",
            )  # fmt: skip
        if not fit["fits"]:
            said = {"error": "BudgetExceeded", "message": fit["reason"], "hint": f"left: {quote['left']}"}
            return json_reply({**said, "exit_code": 1, "charged": False, "fit": fit}, 409)
    number = jobs.submit(
        call.desk.store, quote, table=found["name"], version=found["version"], person=call.person.name,
        form=_form(call), rehearsal=rehearsal,
    )  # fmt: skip
    return json_reply(_status(call, call.desk.job(number, call.person)), 202)


def _form(call: WebCall) -> str:
    """The job's number for a caller's own key, so that a repeated call is one job."""
    given = call.body.get("key", "")
    if given == "":
        return ""
    if (
        not isinstance(given, str)
        or not 8 <= len(given) <= 40
        or not (given.isascii() and given.replace("-", "").replace("_", "").isalnum())
    ):
        raise InvalidParameter(parameter="key", value="a text", must="have 8 to 40 letters, digits, - and _")
    return jobs.number_of(call.person.name, given)


def _own_key(call: WebCall, quote: Mapping[str, Any], version: str, rehearsal: bool) -> None:
    """A used key identifies the same query and no other."""
    old = call.desk.store.one(JOBS, id=_form(call)) if _form(call) else None
    if old is not None and not jobs.is_same(old, quote, call.person.name, version, rehearsal):
        raise InvalidParameter(
            parameter="key", value="a text", must="not be that of another job",
            hint="a new question takes a new key",
        )  # fmt: skip


def request(call: WebCall) -> Any:
    """Asks for an approval of exactly this query; charges nothing and reads no row."""
    desk, found = call.desk, _table(call, ask=True)
    asked = _asked(call)
    note = call.body.get("note", "")
    if not isinstance(note, str):
        raise InvalidParameter(parameter="note", value=type(note).__name__, must="be a text")
    quote = desk.quote(found, asked, call.person.name)
    _own_key(call, quote, str(found["version"]), False)
    jobs.room(desk.store, call.person.name)
    made = desk.pool.call(
        "request", desk.place(found), asked, call.person.name, desk.limits, note[:300], seconds=20
    )
    known = desk.store.all(JOBS, table=found["name"], person=call.person.name, request=made["request"])
    if not known:
        jobs.submit(
            desk.store, quote, table=found["name"], version=found["version"], person=call.person.name,
            form=_form(call), request=made["request"],
        )  # fmt: skip
        known = desk.store.all(JOBS, table=found["name"], person=call.person.name, request=made["request"])
    return json_reply({**made, "job": str(known[0]["id"])}, 201)


def _status(call: WebCall, job: Row) -> dict[str, Any]:
    state = call.desk.state(job)
    ended = state not in jobs.OPEN
    return {
        "job": job["id"], "table": job["table"], "version": job["version"], "asked_by": job["person"],
        "title": job["title"], "state": state, "words": jobs.WORDS[state], "message": job["message"] if ended else "",
        "charge": job["charge"] if ended else 0,
        "charged": state in ("done", "lost", "stopped") and not job["replayed"],
        "replayed": bool(job["replayed"]) if ended else False, "rehearsal": bool(job["rehearsal"]),
    }  # fmt: skip


def status(call: WebCall) -> Any:
    """How far a job is. Its end shows on coarse ticks."""
    return _status(call, call.desk.job(call.path["job"], call.person))


def cancel(call: WebCall) -> Any:
    """Cancel one's own job; charges stay charged."""
    job = call.desk.job(call.path["job"], call.person)
    if job["person"] != call.person.name:
        raise NotFound
    call.desk.cancel(job, call.person)
    return _status(call, call.desk.job(call.path["job"], call.person))


def _done(call: WebCall) -> tuple[Row, bool]:
    job = call.desk.job(call.path["job"], call.person)
    if call.desk.state(job) != "done":
        raise NotFound
    found = call.desk.store.one(TABLES, name=job["table"])
    access = frozenset() if found is None else call.desk.access(found, call.person)
    return job, job["person"] == call.person.name or bool(access & set(READS))


def answer(call: WebCall) -> Any:
    """The answer of a job that is done: values with intervals, prices, certificates."""
    job, sees = _done(call)
    if not sees:
        raise NotFound
    told = call.desk.answer(job)
    for one in told["releases"]:
        one.pop("shown", None)
    return {**told, "job": job["id"], "corrections": call.desk.corrections(job)}


def certificate(call: WebCall) -> Any:
    """The certificates of a finished job, without released values for readers who may not see them."""
    job, sees = _done(call)
    found = [r["certificate"] for r in call.desk.answer(job)["releases"]]
    return {"certificates": found if sees else [jobs.without_values(c) for c in found]}


def releases(call: WebCall) -> Any:
    """The jobs of a table that the token's owner may see, newest first."""
    found = _table(call)
    return {
        "releases": [_status(call, j) for j in call.desk.jobs(call.person) if j["table"] == found["name"]]
    }


def ledger(call: WebCall) -> Any:
    """The ledger's entries, as in `tacit ledger show --json`."""
    return call.desk.overview(_table(call))


def published(call: WebCall) -> Any:
    """The public catalogue."""
    rows = call.desk.store.all(PUBLISHED, order=PUBLISHED.c.time.desc(), most=500)
    out = []
    for one in rows:
        job = call.desk.store.one(JOBS, id=one["job"])
        if job is not None:
            said = {"title": one["title"], "summary": one["summary"], "page": f"/public/{one['slug']}"}
            gone = call.desk.corrections(job)
            report = "" if gone else f"/public/{one['slug']}/files/report.html"
            out.append({**said, "report": report, "corrections": gone})
    return {"published": out}
