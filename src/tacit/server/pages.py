"""Pages for people: asking, jobs, requests and approvals, releases, and the public catalogue."""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tacit.errors import InvalidParameter, LedgerError, NotAllowed, TacitError
from tacit.ledger.entries import fingerprint
from tacit.server import forms, jobs
from tacit.server.store import JOBS, PROPOSALS, PUBLISHED, TABLES, Row, new_secret, now
from tacit.server.web import REPORT_POLICY, REVALIDATED, NotFound, WebCall

READS = ("approver", "custodian")
"""The roles of a table that see released values, beside the analyst who asked."""


# --- asking ------------------------------------------------------------------------------------------------
def _ask(call: WebCall, table: Row, *, status: int = 200, **values: Any) -> Response:
    said = json.loads(table["declaration"])
    fields = dict(call.fields) or {k: v for k, v in call.query.items() if k in ("kind", "column", "where")}
    about: dict[str, Any] = {
        "table": table, "said": said, "schema": said["schema"], "fields": fields, "quote": None, "problem": "",
        "hint": "",
        "chosen_by": call.all_fields("by") or ([call.query["by"]] if "by" in call.query else []),
        "basket": forms.basket_of(call) if call.fields else [], "statistics": forms.STATISTICS, "shares": forms.SHARES,
        "form": new_secret(12), "standing": call.desk.standing(table, call.person), "needs_column": forms.NEEDS_COLUMN,
        "people": said["protect"]["unit"] == "people",
    }  # fmt: skip
    return call.page("ask.html", status=status, **(about | values))


def _asking(call: WebCall) -> Row:
    """A table that the person may ask about."""
    table = call.desk.table(call.path["table"], call.person)
    if not call.desk.access(table, call.person) & {"analyst", "custodian"}:
        raise NotAllowed(
            who=call.person.name, what="ask about this table", reason="you are no analyst of it",
            hint="the custodian of the table can enrol you",
        )  # fmt: skip
    return table


def ask_page(call: WebCall) -> Response:
    """The form."""
    return _ask(call, _asking(call))


def ask(call: WebCall) -> Response:
    """Price, basket, release, request or rehearsal, by the button that was pressed."""
    desk, table, act = call.desk, _asking(call), call.field("act", "price")
    schema, standing = json.loads(table["declaration"])["schema"], desk.standing(table, call.person)
    try:
        basket = forms.basket_of(call)
        if act == "add":
            return _ask(call, table, basket=[*basket, forms.question(call, schema)])
        if act.startswith("remove-"):
            place = act.removeprefix("remove-")
            kept = [q for i, q in enumerate(basket) if str(i) != place]
            return _ask(call, table, basket=kept)
        asked = forms.asked_of(call, schema, standing)
        quote = desk.quote(table, asked, call.person.name)
        quote["title"] = asked["title"] or "; ".join(map(forms.words_of, asked["releases"]))[:160]
        if act == "release":
            if quote["fit"]["waits"] and not quote["fit"]["recorded"]:
                number = _requested(call, table, asked, quote)
                return call.to(f"/jobs/{number}", "The request waits for an approval. Nothing was charged.")
            if not quote["fit"]["fits"]:
                return _ask(call, table, status=409, quote=quote)
            return call.to(f"/jobs/{_submitted(call, table, quote)}")
        if act == "rehearse":
            number = jobs.submit(
                desk.store, quote, table=table["name"], version=table["version"], person=call.person.name,
                form=_form(call), rehearsal=True,
            )  # fmt: skip
            return call.to(f"/jobs/{number}")
        return _ask(call, table, quote=quote)
    except TacitError as problem:
        if isinstance(problem, LedgerError):
            raise
        return _ask(call, table, status=422, problem=problem.message, hint=problem.hint)


def _form(call: WebCall) -> str:
    """The number of a form, which makes two clicks one job."""
    given = call.field("form")
    if not 8 <= len(given) <= 40 or not all(c.isascii() and (c.isalnum() or c in "-_") for c in given):
        raise InvalidParameter(
            parameter="form", value="a text", must="be the page's own", hint="open the page again"
        )
    return jobs.number_of(call.person.name, given)


def _submitted(call: WebCall, table: Row, quote: dict[str, Any]) -> str:
    return jobs.submit(
        call.desk.store,
        quote,
        table=table["name"],
        version=table["version"],
        person=call.person.name,
        form=_form(call),
    )


def _requested(call: WebCall, table: Row, asked: dict[str, Any], quote: dict[str, Any]) -> str:
    desk, form = call.desk, _form(call)
    if (known := desk.store.one(JOBS, id=form)) is not None and jobs.is_same(
        known, quote, call.person.name, str(table["version"]), False
    ):
        return str(known["id"])
    jobs.room(desk.store, call.person.name)
    made = desk.pool.call(
        "request",
        desk.place(table),
        asked,
        call.person.name,
        desk.limits,
        call.field("note").strip()[:300],
        seconds=20,
    )
    for old in desk.store.all(JOBS, table=table["name"], person=call.person.name, request=made["request"]):
        return str(old["id"])
    return jobs.submit(
        desk.store, quote, table=table["name"], version=table["version"], person=call.person.name, form=form,
        request=made["request"],
    )  # fmt: skip


def price(call: WebCall) -> Response:
    """The price of the present form: a part of a page, for the script."""
    table = _asking(call)
    schema, standing = json.loads(table["declaration"])["schema"], call.desk.standing(table, call.person)
    values: dict[str, Any] = {"quote": None, "problem": "", "hint": ""}
    try:
        values["quote"] = call.desk.quote(table, forms.asked_of(call, schema, standing), call.person.name)
    except TacitError as problem:
        values |= {"problem": problem.message, "hint": problem.hint}
    return call.page("_price.html", standing=standing, table=table, **values)


# --- jobs --------------------------------------------------------------------------------------------------
def _job(call: WebCall) -> Row:
    return call.desk.job(call.path["job"], call.person)


def job_page(call: WebCall) -> Response:
    """The progress of a job; when it is done, the release."""
    job = _job(call)
    state = call.desk.state(job)
    if state == "done":
        return call.to(f"/releases/{job['id']}")
    return call.page(
        "job.html", job=job, state=state, words=jobs.WORDS[state], own=job["person"] == call.person.name,
        approved=_approved(call, job),
        current=_current(call, job),
    )  # fmt: skip


def _current(call: WebCall, job: Row) -> bool:
    """Is the version that a job asks about the table's present one?"""
    table = call.desk.store.one(TABLES, name=job["table"])
    return table is not None and table["version"] == job["version"]


def _approved(call: WebCall, job: Row) -> bool:
    """Is the request of a job that waits approved by now?"""
    table = call.desk.store.one(TABLES, name=job["table"])
    if job["state"] != "asked" or table is None:
        return False
    found = call.desk.ledger(table).requests().get(int(job["request"]))
    return found is not None and bool(found.approved)


def job_act(call: WebCall) -> Response:
    """Cancel, run an approved job, or ask again, by its asker."""
    job = _job(call)
    if job["person"] != call.person.name:
        raise NotFound
    desk, act, here = call.desk, call.field("act"), f"/jobs/{job['id']}"
    if act == "cancel":
        desk.cancel(job, call.person)
        return call.to(here)
    if act == "run":
        if not _approved(call, job):
            raise NotAllowed(who=call.person.name, what="run this", reason="nobody approved it yet")
        jobs.start(desk.store, str(job["id"]))
        return call.to(here)
    if act == "again" and desk.state(job) not in jobs.OPEN:
        table = _asking_about(call, job)
        if table["version"] != job["version"]:
            raise NotAllowed(
                who=call.person.name, what="ask the same again", reason="the table has a new version since",
                hint="ask again on the page of the table, about the new version",
            )  # fmt: skip
        quote = desk.quote(table, json.loads(job["plan"]), call.person.name, str(job["version"]))
        number = jobs.submit(
            desk.store,
            quote,
            table=table["name"],
            version=job["version"],
            person=call.person.name,
            form=_form(call),
        )
        return call.to(f"/jobs/{number}")
    raise NotFound


def _asking_about(call: WebCall, job: Row) -> Row:
    table = call.desk.table(str(job["table"]), call.person)
    if not call.desk.access(table, call.person) & {"analyst", "custodian"}:
        raise NotFound
    return table


def job_events(call: WebCall) -> Response:
    """Server-sent events: the state on fixed ticks, until the end; closed when the session or the right ends."""
    job, desk, session = _job(call), call.desk, call.session
    assert session is not None
    tick, number, digest = (
        desk.settings.limits.tick_seconds,
        str(job["id"]),
        session.digest,
    )

    def look() -> str:
        if (found := desk.accounts.session_by_digest(digest)) is None:
            return ""
        try:
            return desk.state(desk.job(number, found.person))
        except (NotFound, TacitError):
            return ""

    async def events() -> AsyncIterator[bytes]:
        for _ in range(3600):
            state = await run_in_threadpool(look)
            yield f"data: {json.dumps({'state': state, 'words': jobs.WORDS.get(state, '')})}\n\n".encode()
            if state not in ("queued", "running"):
                return
            await asyncio.sleep(tick)

    desk.may_stream(session.person.name)
    return _EventStream(events(), lambda: desk.end_stream(session.person.name))


class _EventStream(StreamingResponse):
    """The events of a counted stream. `ended` is called at any end, also before the first event."""

    def __init__(self, events: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


# --- requests ----------------------------------------------------------------------------------------------
def requests_page(call: WebCall) -> Response:
    """Open requests of all tables that the person approves, keeps or asked about; proposals of withdrawals."""
    desk, rows = call.desk, []
    for table in desk.tables(call.person):
        access = desk.access(table, call.person)
        for one in desk.overview(table)["requests"]:
            if one["state"] == "closed":
                continue
            own = one["analyst"] == call.person.name
            if own or access & {"approver", "auditor", "custodian"}:
                job = next(iter(desk.store.all(JOBS, table=table["name"], request=one["sequence"])), None)
                rows.append({"table": table, "request": one, "own": own, "job": job, "access": access})
    proposals = []
    for one in desk.store.all(PROPOSALS, order=PROPOSALS.c.time.desc(), state="open"):
        with contextlib.suppress(NotFound):
            job = desk.job(str(one["job"]), call.person)
            # Who asked is told by the withdrawal; until then it is between the officer and the custodian.
            if not desk.corrections(job) and _decides(call, job):
                proposals.append({"proposal": one, "job": job})
    return call.page("requests.html", rows=rows, proposals=proposals)


def _decides(call: WebCall, job: Row) -> bool:
    table = call.desk.store.one(TABLES, name=job["table"])
    return table is not None and bool(
        call.desk.access(table, call.person) & {"approver", "auditor", "custodian"}
    )


def _request(call: WebCall) -> tuple[Row, dict[str, Any], Row | None]:
    table = call.desk.table(call.path["table"], call.person)
    number = call.path["number"]
    found = [r for r in call.desk.overview(table)["requests"] if str(r["sequence"]) == number]
    if not found:
        raise NotFound
    own = found[0]["analyst"] == call.person.name
    if not own and not call.desk.access(table, call.person) & {"approver", "auditor", "custodian"}:
        raise NotFound
    job = next(iter(call.desk.store.all(JOBS, table=table["name"], request=found[0]["sequence"])), None)
    return table, found[0], job


def request_page(call: WebCall, **values: Any) -> Response:
    """The officer's view of a request: the queries, the protected unit, the price, the privacy loss."""
    table, request, job = _request(call)
    problem, quote = "", None
    try:
        quote = _quoted(call, table, request, job)
    except TacitError as error:
        problem = f"{error.message}. {error.hint}".strip(". ") + "."
    digest = ""
    access = call.desk.access(table, call.person)
    approves = "approver" in access and request["analyst"] != call.person.name
    # Nobody signs what the page cannot show.
    approves = approves and quote is not None
    if approves and request["state"] != "closed":
        digest = call.desk.ledger(table).approval(int(request["sequence"]), call.person.name)
    about: dict[str, Any] = {
        "table": table, "request": request, "job": job, "quote": quote, "digest": digest, "approves": approves,
        "problem": problem, "pasted": call.field("plan"), "approver": "approver" in access,
        "refuses": request["analyst"] != call.person.name and bool(access & {"approver", "custodian"}),
        "said": json.loads(table["declaration"]), "own": request["analyst"] == call.person.name,
        "standing": call.desk.standing(table), "account": call.desk.accounts.person(call.person.name),
    }  # fmt: skip
    return call.page("request.html", **(about | values))


def _quoted(call: WebCall, table: Row, request: dict[str, Any], job: Row | None) -> dict[str, Any] | None:
    """The full query of a request: from its job, or from the plan file that the approver pasted.

    The ledger keeps the digest of a plan and a sentence about it. A request from the command line has no job here, so
    its signer must supply the plan; a plan with another digest shows nothing.
    """
    desk, plan = call.desk, call.field("plan").strip()
    if request["state"] == "closed" or (job is None and not plan):
        return None
    analyst, version = str(request["analyst"]), str(request["version"])
    if job is not None:
        asked = json.loads(job["plan"])
    else:
        asked = desk.pool.call("asked_in", plan, seconds=desk.settings.limits.preview_seconds)
    quote = desk.quote(table, asked, analyst, version)
    if quote["digest"] != request["plan"]:
        raise InvalidParameter(
            parameter="plan", value="a plan", must="be the one of this request",
            hint="schema, unit, questions and prices must be the same as here; nothing was approved",
        )  # fmt: skip
    return quote


def request_act(call: WebCall) -> Response:
    """Approve with a signature, refuse with a reason, or take back; or show a plan that the approver supplied."""
    if call.field("act") == "show":
        return request_page(call)
    table, request, job = _request(call)
    desk, ledger, number, by = call.desk, call.desk.ledger(table), int(request["sequence"]), call.person
    access, act, note = desk.access(table, by), call.field("act"), call.field("note").strip()[:300]
    own = request["analyst"] == by.name
    if act in ("approve", "sign") and "approver" not in access:
        raise NotAllowed(who=by.name, what="approve", reason="you are no approver of this table")
    if act in ("approve", "sign") and call.field("digest") != ledger.approval(number, by.name):
        raise NotAllowed(
            who=by.name, what="approve", reason="the request is not the one that the page showed"
        )
    if act in ("approve", "sign") and _quoted(call, table, request, job) is None:
        raise NotAllowed(
            who=by.name, what="approve", reason="the page could not show the query",
            hint="paste the plan file on the page of the request",
        )  # fmt: skip
    if act == "approve":
        key = desk.accounts.signer(by, call.field("passphrase"))
        ledger.approve(number, by=by.name, key=key, note=note, signed="server")
        return call.to("/requests", f"Request {number} is approved.")
    if act == "sign":
        ledger.approve(
            number,
            by=by.name,
            signature=_signature(call.field("signature"), by.key_public),
            note=note,
            signed="elsewhere",
        )
        return call.to("/requests", f"Request {number} is approved.")
    if act == "refuse":
        if not access & {"approver", "custodian"}:
            raise NotAllowed(
                who=by.name, what="refuse", reason="you are no approver and no custodian of this table"
            )
        if not note:
            raise InvalidParameter(
                parameter="reason", value=None, must="be given to refuse", hint="who asked reads it"
            )
        ledger.close_request(number, by=by.name, note=note)
        if job is not None:
            waits = [JOBS.c.id == job["id"], JOBS.c.state == "asked"]
            desk.store.change(
                JOBS, waits, state="refused", message=f"refused by {by.name}: {note}", ended=now()
            )
        return call.to("/requests", f"Request {number} is refused.")
    if act == "back" and own:
        ledger.close_request(number, by=by.name, note=note or "taken back")
        if job is not None:
            jobs.cancel(desk.store, str(job["id"]))
        return call.to("/requests", f"Request {number} is taken back.")
    raise NotFound


def _signature(text: str, public: str) -> dict[str, str]:
    """A signature made elsewhere: the output of `tacit key sign --json`, or its value alone."""
    given = text.strip()
    with contextlib.suppress(ValueError):
        said = json.loads(given)
        if isinstance(said, dict):
            found = said.get("signature", said)
            if isinstance(found, dict):
                return {str(k): str(v) for k, v in found.items()}
    key = fingerprint(bytes.fromhex(public)) if public else ""
    return {"algorithm": "Ed25519", "key": key, "value": given[:200]}


# --- releases ----------------------------------------------------------------------------------------------
def releases_page(call: WebCall) -> Response:
    """The releases that the person may see, newest first."""
    desk = call.desk
    rows, fallen = list[dict[str, Any]](), dict[str, set[int]]()
    for job in desk.jobs(call.person):
        name, state = str(job["table"]), desk.state(job)
        if name not in fallen:
            table = desk.store.one(TABLES, name=name)
            seen = [] if table is None else desk.overview(table)["charges"]
            fallen[name] = {c["sequence"] for c in seen if c["corrections"]}
        gone = not job["rehearsal"] and job["charge"] in fallen[name]
        words = "approved: open it and release" if _approved(call, job) else jobs.WORDS[state]
        rows.append({"job": job, "state": state, "words": words, "withdrawn": gone})
    shown = {str(p["job"]): p for p in desk.store.all(PUBLISHED)}
    return call.page("releases.html", rows=rows, published=shown)


def _release(call: WebCall) -> tuple[Row, frozenset[str]]:
    """A release whose end may be shown, and the person's roles for its table."""
    job = _job(call)
    if call.desk.state(job) != "done":
        raise NotFound
    table = call.desk.store.one(TABLES, name=job["table"])
    return job, frozenset() if table is None else call.desk.access(table, call.person)


def _values(call: WebCall, job: Row, access: frozenset[str]) -> bool:
    return job["person"] == call.person.name or bool(access & set(READS))


def release_page(call: WebCall, **values: Any) -> Response:
    """A release: the tables with intervals, files, certificate, and the possible actions."""
    job, access = _release(call)
    answer = call.desk.answer(job)
    files = _listed(call.desk.files(job))
    others = [
        j for j in call.desk.store.all(JOBS, table=job["table"], state="done", rehearsal=0)
        if j["charge"] > job["charge"] and "custodian" in access and call.desk.state(j) == "done"
    ]  # fmt: skip
    sees = _values(call, job, access)
    about: dict[str, Any] = {
        "job": job, "answer": answer, "sees": sees,
        "files": [f for f in files if sees or f.startswith("certificates/")],
        "access": access, "corrections": call.desk.corrections(job), "others": others, "findings": None,
        "published": call.desk.store.one(PUBLISHED, job=job["id"]),
        "proposals": call.desk.store.all(PROPOSALS, job=job["id"], state="open"),
    }  # fmt: skip
    return call.page("release.html", **(about | values))


def release_act(call: WebCall) -> Response:
    """Verify, publish, take out of the catalogue, withdraw, replace, propose a withdrawal."""
    job, access = _release(call)
    desk, by, act, here = call.desk, call.person, call.field("act"), f"/releases/{job['id']}"
    table = desk.store.one(TABLES, name=job["table"])
    if table is None:
        raise NotFound
    reason = call.field("reason").strip()[:300]
    if act == "verify" and not job["rehearsal"]:
        found = desk.verified(job, table, by)
        if not _values(call, job, access):
            # A reason may quote a value.
            found["findings"] = [{**f, "why": ""} for f in found["findings"]]
        return release_page(call, findings=found)
    if act == "propose" and "approver" in access and not job["rehearsal"]:
        if not reason:
            raise InvalidParameter(parameter="reason", value=None, must="be given")
        desk.store.add(
            PROPOSALS, id=new_secret(9), job=job["id"], by=by.name, reason=reason, time=now(), state="open"
        )
        desk.store.audit(by.name, "proposed a withdrawal", str(job["id"]))
        return call.to(here, "The custodian sees your proposal.")
    if "custodian" not in access or job["rehearsal"]:
        raise NotAllowed(who=by.name, what="do this", reason="it takes the custodian of the table")
    if act == "publish":
        slug = desk.publish(job, call.field("title").strip(), call.field("summary").strip(), by)
        return call.to(f"/public/{slug}", "It is in the public catalogue.")
    if act == "unpublish":
        desk.store.drop(PUBLISHED, PUBLISHED.c.job == job["id"])
        desk.store.audit(by.name, "taken out of the catalogue", str(job["id"]))
        return call.to(
            here, "It is no longer in the public catalogue. Copies that others took are out of reach."
        )
    if act == "withdraw":
        if not reason:
            raise InvalidParameter(
                parameter="reason", value=None, must="be given to withdraw", hint="readers see it"
            )
        desk.ledger(table).withdraw(int(job["charge"]), note=reason, by=by.name)
        desk.store.change(PROPOSALS, [PROPOSALS.c.job == job["id"]], state="done")
        desk.forget_files(job)
        return call.to(here, "The release is withdrawn. The charge stays spent.")
    if act == "keep":
        desk.store.change(
            PROPOSALS, [PROPOSALS.c.job == job["id"], PROPOSALS.c.state == "open"], state="kept"
        )
        desk.store.audit(by.name, "kept a release against a proposal", str(job["id"]))
        return call.to(here, "The release stays; the proposal is closed.")
    if act == "replace":
        later = desk.job(call.field("with"), by)
        if later["table"] != job["table"] or later["rehearsal"] or desk.state(later) != "done":
            raise NotFound
        desk.ledger(table).supersede(int(job["charge"]), with_=int(later["charge"]), note=reason, by=by.name)
        desk.store.change(PROPOSALS, [PROPOSALS.c.job == job["id"]], state="done")
        desk.forget_files(job)
        desk.forget_files(later)
        return call.to(here, "The later release replaces this one.")
    raise NotFound


def release_file(call: WebCall) -> Response:
    """One file of a release."""
    job, access = _release(call)
    name, sees = call.path["name"], _values(call, job, access)
    if not sees and not name.startswith("certificates/"):
        raise NotFound
    return _file(call.desk.files(job), name, values=sees)


FIRST = ("report.html", "values/", "certificates/")


def _listed(folder: Path) -> list[str]:
    """The files of a release: what people read first comes first."""
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    return sorted(names, key=lambda n: ([not n.startswith(word) for word in FIRST], n))


def _file(folder: Path, name: str, *, values: bool = True) -> Response:
    """A file on the folder's own list; None for any other name. Without `values`, a certificate has none either."""
    listed = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    if name not in listed:
        raise NotFound
    if name == "report.html":
        return HTMLResponse(
            listed[name].read_text("utf-8"), headers={"Content-Security-Policy": REPORT_POLICY}
        )
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind.startswith("text/") and not name.endswith(".csv"):
        kind = "text/plain"
    # Not as a file with its time and a tag made of it: they tell when the read ended.
    said = f"attachment; filename*=UTF-8''{quote(Path(name).name)}"
    body = listed[name].read_bytes()
    if not values and "withheld" in (limited := jobs.without_values(json.loads(body))):
        body = json.dumps(limited, indent=2, ensure_ascii=False).encode()
    return Response(body, media_type=kind, headers={"Content-Disposition": said})


# --- the public catalogue ----------------------------------------------------------------------------------
def catalogue(call: WebCall) -> Response:
    """The published releases, newest first."""
    rows = []
    for one in call.desk.store.all(PUBLISHED, order=PUBLISHED.c.time.desc(), most=500):
        job = call.desk.store.one(JOBS, id=one["job"])
        if job is not None:
            rows.append({"one": one, "withdrawn": bool(call.desk.corrections(job))})
    return _fresh(call.page("public.html", rows=rows))


def _fresh(response: Response) -> Response:
    response.headers["Cache-Control"] = REVALIDATED
    return response


def public_page(call: WebCall) -> Response:
    """One published release; for a withdrawn one the reason, and no values."""
    one, job = call.desk.published(call.path["slug"])
    corrections = call.desk.corrections(job)
    answer = None if corrections else call.desk.answer(job)
    folder = call.desk.files(job)
    files = _listed(folder)
    if corrections:
        files = [f for f in files if f.startswith("certificates/")]
    return _fresh(
        call.page(
            "published.html",
            one=one,
            job=job,
            corrections=corrections,
            answer=answer,
            files=files,
            protected="" if answer is None else answer["releases"][0]["certificate"]["unit"],
        )
    )


def public_file(call: WebCall) -> Response:
    """A file of a published release. A withdrawn release has only certificates; its report links to the reason."""
    one, job = call.desk.published(call.path["slug"])
    name, fallen = call.path["name"], bool(call.desk.corrections(job))
    if fallen and not name.startswith("certificates/"):
        if name == "report.html":
            return _fresh(call.to(f"/public/{one['slug']}"))
        raise NotFound
    return _fresh(_file(call.desk.files(job), name, values=not fallen))
