"""Pages for people: sign-in, account, people, tables, the ledger, the audit log."""

from __future__ import annotations

import datetime
import json
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.responses import PlainTextResponse, Response

from tacit.errors import NotAllowed, TacitError
from tacit.server import forms
from tacit.server.accounts import ROLES, SCOPES
from tacit.server.store import JOBS, PROPOSALS, TABLES, new_secret
from tacit.server.web import COOKIE, NotFound, WebCall, _cookies, form_token


# --- for all pages -----------------------------------------------------------------------------------------
def context(call: WebCall) -> dict[str, Any]:
    """What every page knows."""
    person = call.session.person if call.session else None
    notice = unquote(_cookies(call.request).get("tacit-notice", ""))[:300]
    if notice and "tacit-notice" not in call.cookies:
        call.cookies["tacit-notice"] = None
    return {
        "person": person, "csrf": form_token(call), "notice": notice, "here": call.request.url.path,
        "demo": call.desk.settings.demo, "oidc": call.desk.settings.oidc,
    }  # fmt: skip


def moment(value: float) -> str:
    """A time for people, in UTC."""
    try:
        return datetime.datetime.fromtimestamp(value, datetime.UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return "–"


def amount(value: Any) -> str:
    """A number for people: three significant digits."""
    if value is None:
        return "–"
    number = float(value)
    if number == 0:
        return "0"
    if number == float("inf"):
        return "unlimited"
    return f"{number:.3g}" if abs(number) < 1e6 else f"{number:,.0f}"


def bound_words(parameters: dict[str, Any]) -> str:
    """The numbers of a bound in a row."""
    return ", ".join(f"{name} {amount(value)}" for name, value in parameters.items() if name != "kind")


def sentence(text: str) -> str:
    """A message as a sentence: a capital first, one full stop at the end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def file_words(name: str) -> str:
    """A file of a release for people."""
    folder, _, rest = name.rpartition("/")
    stem, _, ending = rest.partition(".")
    if folder == "certificates":
        return f"Certificate of {stem}"
    if folder == "values":
        kinds = {
            "csv": "for spreadsheets",
            "csv-metadata.json": "what its columns mean",
            "parquet": "for programs",
        }
        return f"{stem}, {kinds.get(ending, ending)}"
    known = {"report.html": "Report", "plan.toml": "What was asked", "manifest.json": "List of all files"}
    return known.get(name, name)


FILTERS: dict[str, Any] = {
    "file": file_words,
    "sentence": sentence,
    "moment": moment,
    "amount": amount,
    "bound": bound_words,
    "question": forms.words_of,
    "plan": forms.plan_words_of,
}


def home(call: WebCall) -> Response:
    """The start: tables for who is signed in, the catalogue for everybody else."""
    return call.to("/tables" if call.session is not None else "/public")


# --- sign-in -----------------------------------------------------------------------------------------------
def sign_in_page(call: WebCall) -> Response:
    """The form."""
    return call.page("sign_in.html", name="", problem="", next=_inside(call.query.get("next", "")))


def sign_in(call: WebCall) -> Response:
    """A new session for a right name and password."""
    name, after = call.field("name").strip().lower(), _inside(call.field("next"))
    try:
        secret, _ = call.desk.accounts.sign_in(name, call.field("password"), call.address)
    except NotAllowed as problem:
        said = f"{problem.reason}. {problem.hint}".strip()
        return call.page("sign_in.html", status=403, name=name, problem=said, next=after)
    call.cookies[COOKIE] = secret
    return call.to(after or "/tables")


def _inside(path: str) -> str:
    """A path of this server to go on to, or nothing."""
    if path.startswith("//"):
        return ""
    parts = urlsplit(path)
    good = (
        path.startswith("/")
        and not path.startswith(("//", "/\\"))
        and not parts.netloc
        and path.isprintable()
    )
    return path if good and "\\" not in path else ""


def sign_out(call: WebCall) -> Response:
    """End the session."""
    if call.session is not None:
        call.desk.accounts.end_session(call.session.digest)
    call.cookies[COOKIE] = None
    return call.to("/sign-in", "You are signed out.")


def welcome_page(call: WebCall) -> Response:
    """The page of a one-time link: opening it does not use the link up."""
    code = call.query.get("code", "")
    return call.page("welcome.html", code=code, link=call.desk.accounts.link(code), problem="", name="")


def welcome(call: WebCall) -> Response:
    """Use the link: set a password, and sign in."""
    code = call.field("code")
    try:
        if call.field("password") != call.field("again"):
            raise NotAllowed(who="you", what="go on", reason="the two passwords differ")
        _, secret = call.desk.accounts.welcome(
            code, call.field("name").strip().lower(), call.field("password")
        )
    except TacitError as problem:
        link = call.desk.accounts.link(code)
        said = f"{problem.message}. {problem.hint}".strip(". ") + "."
        return call.page(
            "welcome.html", status=422, code=code, link=link, problem=said, name=call.field("name")
        )
    call.cookies[COOKIE] = secret
    return call.to("/tables", "Welcome. You are signed in.")


# --- account -----------------------------------------------------------------------------------------------
def account_page(call: WebCall, **values: Any) -> Response:
    """Password, key and tokens of who is signed in."""
    tokens = call.desk.accounts.tokens(call.person.name)
    person = call.desk.accounts.person(call.person.name)
    about: dict[str, Any] = {"token": "", "account": person, "tokens": tokens, "scopes": SCOPES}
    return call.page("account.html", most_days=call.desk.settings.limits.token_days, **(about | values))


def account(call: WebCall) -> Response:
    """One of the acts of that page."""
    accounts, person, act = call.desk.accounts, call.person, call.field("act")
    if act == "password":
        if call.field("password") != call.field("again"):
            raise NotAllowed(who="you", what="go on", reason="the two passwords differ")
        assert call.session is not None
        accounts.set_password(
            person.name, call.field("old"), call.field("password"), keep=call.session.digest
        )
        return call.to("/account", "The password is changed. Other sessions have ended.")
    if act == "make-key":
        if call.field("passphrase") != call.field("again"):
            raise NotAllowed(who="you", what="go on", reason="the two passphrases differ")
        accounts.make_key(person, call.field("passphrase"))
        return call.to("/account", "The key is made. A custodian enrols it for the tables that you approve.")
    if act == "bring-key":
        accounts.bring_key(person, call.field("key"))
        return call.to(
            "/account", "The public key is kept. A custodian enrols it for the tables that you approve."
        )
    if act == "token":
        days = call.field("days") or "30"
        token = accounts.new_token(
            person, call.field("label").strip(), call.all_fields("scopes"), int(days) if days.isdigit() else 0,
            call.desk.settings.limits.token_days,
        )  # fmt: skip
        return account_page(call, token=token)
    if act == "revoke":
        accounts.revoke(person.name, call.field("id"))
        return call.to("/account", "The token is revoked.")
    raise NotFound


# --- people ------------------------------------------------------------------------------------------------
def people_page(call: WebCall, **values: Any) -> Response:
    """All accounts."""
    about: dict[str, Any] = {"link": "", "whose": "", "people": call.desk.accounts.people(), "roles": ROLES}
    return call.page("people.html", **(about | values))


def people(call: WebCall) -> Response:
    """One of the acts of that page."""
    accounts, by, act, name = (
        call.desk.accounts,
        call.person.name,
        call.field("act"),
        call.field("name").strip().lower(),
    )
    if act == "invite":
        secret = accounts.invite(name, call.all_fields("roles"))
        call.desk.store.audit(by, "invited", name)
        return people_page(call, link=f"{call.desk.settings.url}/welcome?code={secret}", whose=name)
    if act == "roles":
        accounts.set_roles(name, call.all_fields("roles"), by=by)
        call.desk.store.audit(by, "changed roles", name)
        return call.to("/people", f"The roles of {name} are changed.")
    if act in ("close", "open"):
        accounts.set_active(name, act == "open", by=by)
        call.desk.store.audit(by, f"{act} account", name)
        return call.to("/people", f"The account {name} is {'open' if act == 'open' else 'closed'}.")
    if act == "reset":
        secret = accounts.reset(name, by=by)
        return people_page(call, link=f"{call.desk.settings.url}/welcome?code={secret}", whose=name)
    raise NotFound


# --- tables ------------------------------------------------------------------------------------------------
def tables(call: WebCall) -> Response:
    """All tables that the person may see, each with its remaining budget."""
    cards = []
    for table in call.desk.tables(call.person):
        try:
            standing = call.desk.standing(table, call.person)
        except TacitError:
            standing = None
        cards.append({"table": table, "standing": standing, "access": call.desk.access(table, call.person)})
    return call.page("tables.html", cards=cards)


def table_page(call: WebCall) -> Response:
    """One table: declarations, versions, people and shares, remaining budget."""
    table = call.desk.table(call.path["table"], call.person)
    access = call.desk.access(table, call.person)
    keeps = "custodian" in access or "auditor" in access
    seen = call.desk.overview(table) if keeps else None
    accounts = [p for p in call.desk.accounts.people() if p["active"]] if "custodian" in access else []
    return call.page(
        "table.html", table=table, said=json.loads(table["declaration"]), access=access, seen=seen, accounts=accounts,
        standing=call.desk.standing(table, call.person), versions=call.desk.versions(table), keeps=keeps,
        statistics=forms.STATISTICS,
    )  # fmt: skip


def table_act(call: WebCall) -> Response:
    """An act of the custodian on that page."""
    desk, by = call.desk, call.person
    table = desk.table(call.path["table"], by)
    if "custodian" not in desk.access(table, by):
        raise NotFound
    act, here = call.field("act"), f"/tables/{table['name']}"
    if act == "grant":
        name = call.field("name")
        desk.grant(
            table,
            name,
            call.all_fields("roles"),
            call.field("amount").strip(),
            call.field("delta").strip(),
            by,
        )
        return call.to(here, f"{name} has a part in this table.")
    if act == "version":
        desk.new_version(table, call.field("version").strip(), by)
        return call.to(here, "The version is declared. The same questions about it are new questions.")
    if act == "rule":
        wanted = call.field("four_eyes") == "yes"
        desk.ledger(table).demand(wanted, by=by.name)
        return call.to(here, "Every release needs an approval." if wanted else "No approval is demanded.")
    if act == "record":
        shared = call.field("shared") == "yes"
        desk.store.change(TABLES, [TABLES.c.name == table["name"]], share_record=int(shared))
        desk.store.audit(by.name, "shared record" if shared else "record of each analyst", str(table["name"]))
        return call.to(here, "The setting is changed.")
    raise NotFound


def sources_page(call: WebCall) -> Response:
    """The first step of adding a table: choose its place."""
    return call.page("sources.html", sources=call.desk.sources(), roots=sorted(call.desk.settings.roots))


def declare_page(call: WebCall) -> Response:
    """The second step: the facts of the file's header, and the questions for the custodian."""
    choice = call.query.get("source", "")
    data, beside = call.desk.chosen(choice)
    columns = call.desk.slow.call("columns_in", data, str(beside), False, seconds=20)
    return call.page(
        "declare.html", choice=choice, columns=columns, fields={}, problem="", rehearsal=None, kinds=forms.KINDS,
        multi={}, name=_name_of(choice),
    )  # fmt: skip


def _name_of(choice: str) -> str:
    stem = choice.rsplit("/", 1)[-1].split(".")[0]
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in stem).strip("-")[:60]


def declare(call: WebCall) -> Response:
    """Record the declaration, or rehearse it on made-up rows first."""
    desk, choice = call.desk, call.field("source")
    data, beside = desk.chosen(choice)
    columns = desk.slow.call("columns_in", data, str(beside), False, seconds=20)
    values: dict[str, Any] = {"rehearsal": None, "problem": ""}
    try:
        said = forms.declaration(call, data, columns)
        if call.field("act") == "rehearse":
            row = {
                "name": call.field("name") or "rehearsal", "declaration": json.dumps(said), "beside": str(beside),
                "ledger": "", "version": "", "share_record": 1,
            }  # fmt: skip
            folder = str(desk.settings.rehearsals / new_secret(9))
            values["rehearsal"] = desk.slow.call("example", row, call.person.name, folder, seconds=60)
        else:
            name = desk.add_table(call.field("name").strip(), call.field("title"), said, beside, call.person)
            return call.to(f"/tables/{name}", "The table is declared. Give analysts a part in it below.")
    except TacitError as problem:
        values["problem"] = f"{problem.message}. {problem.hint}".strip(". ") + "."
    return call.page(
        "declare.html", status=422 if values["problem"] else 200, choice=choice, columns=columns,
        fields=dict(call.fields), multi={}, kinds=forms.KINDS, name=call.field("name"), **values,
    )  # fmt: skip


# --- the ledger --------------------------------------------------------------------------------------------
def ledger_page(call: WebCall) -> Response:
    """A statement: charges by state, analyst and text."""
    desk = call.desk
    table = desk.table(call.path["table"], call.person)
    seen = desk.overview(table)
    who, state, words = (call.query.get(n, "").strip() for n in ("analyst", "state", "words"))
    charges = [
        c for c in seen["charges"]
        if (not who or c["analyst"] == who) and (not state or c["state"] == state)
        and (not words or words.lower() in json.dumps(c["releases"]).lower())
    ]  # fmt: skip
    return call.page(
        "ledger.html", table=table, seen=seen, charges=charges[::-1], who=who, state=state, words=words,
        standing=desk.standing(table), links={j["charge"]: j["id"] for j in desk.store.all(JOBS, table=table["name"])},
    )  # fmt: skip


def ledger_export(call: WebCall) -> Response:
    """The chain as JSON lines, without answers: an auditor checks it without the ledger."""
    from tacit.ledger import export

    table = call.desk.table(call.path["table"], call.person)
    text = "\n".join(export(call.desk.ledger(table), answers=False)) + "\n"
    response = PlainTextResponse(text, media_type="application/jsonl")
    response.headers["Content-Disposition"] = f'attachment; filename="{table["name"]}-ledger.jsonl"'
    return response


def ledger_verify(call: WebCall) -> Response:
    """Walk the whole chain and name every change."""
    table = call.desk.table(call.path["table"], call.person)
    found = call.desk.ledger(table).verify()
    said = (
        "the chain is whole"
        if found.ok
        else "the chain does NOT verify: " + "; ".join(map(str, found.problems))[:200]
    )
    return call.to(f"/ledger/{table['name']}", f"Verified: {said}.")


def audit_page(call: WebCall) -> Response:
    """Sign-ins, denied calls, acts of the custodian."""
    return call.page("audit.html", lines=call.desk.audit_lines())


def proposals_open(call: WebCall) -> list[Any]:
    """Undecided proposals of a withdrawal."""
    return call.desk.store.all(PROPOSALS, state="open")
