"""The server's requests to the curator, as functions of plain values: they run in processes apart from requests.

A table on a server is a declaration (the words of a plan without its releases), a folder for its relative
paths, and the place of its ledger. A request consists of the keys of `[[release]]` tables and a price. Together
they are the text of a plan, read like any plan file; the server adds the analyst's name.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.curator import Plan, Releases
from tacit.curator.curator import Curator
from tacit.curator.custodian import toml_key, toml_value
from tacit.curator.plan_files import PlanFile, described, parse_toml, read_plan_text
from tacit.curator.text import _plan_rows, priced, told_of
from tacit.errors import BadData, InvalidParameter, NotAllowed, TacitError, TooManyCells, visible
from tacit.guarantees import Guarantee
from tacit.server.store import without_places

NEVER = "given"
"""Keys of a release that a server does not take: assumptions about the data are the custodian's."""
PAID = ("epsilon", "rho", "mu", "within")
TWIN_ROWS = 10_000
MOST_DEEP = 8
"""The largest depth of nested lists and tables in one word of a query."""
Values = Mapping[str, Any]


# --- the text of a plan -----------------------------------------------------------------------------------
def plan_text(place: Values, asked: Values, analyst: str) -> str:
    """The plan as TOML."""
    said = json.loads(place["declaration"])
    data = {**said["data"], "table": place["name"]}
    if place["version"]:
        data["version"] = place["version"]
    lines = ["[data]", *_toml_lines(data), "", "[protect]", *_toml_lines(said["protect"]), ""]
    for name, column in said["schema"].items():
        lines += [f"[schema.{toml_key(name)}]", *_toml_lines(column), ""]
    lines += ["[budget]", *_toml_lines({**said["budget"], "analyst": analyst}), ""]
    if asked.get("spend"):
        lines += ["[spend]", *_toml_lines(asked["spend"]), ""]
    if asked.get("title"):
        lines += ["[report]", *_toml_lines({"title": asked["title"]}), ""]
    for release in asked.get("releases", ()):
        lines += ["[[release]]", *_toml_lines(release), ""]
    return "\n".join(lines)


def _toml_lines(table: Values) -> list[str]:
    return [f"{toml_key(str(word))} = {_toml(value)}" for word, value in table.items()]


def _toml(value: Any, deep: int = 0) -> str:
    if deep > MOST_DEEP:
        raise InvalidParameter(
            parameter="a value", value="lists in lists", must="be a text, a number or a short list"
        )
    if isinstance(value, str) and not value.isascii() and any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise InvalidParameter(parameter="a text", value="half a letter", must="be whole Unicode letters")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidParameter(parameter="a number", value="many digits", must="have at most 64 bits")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(str(k))} = {_toml(v, deep + 1)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v, deep + 1) for v in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidParameter(parameter="a number", value=str(value), must="be finite")
    if not isinstance(value, str | int | float | bool):
        raise InvalidParameter(
            parameter="a value", value=value, must="be a text, a number, a list or a table"
        )
    return toml_value(value)


def checked(asked: Any, limits: Values) -> dict[str, Any]:
    """The queries, within the limits of the server. The plan's reader checks the words themselves."""
    if not isinstance(asked, Mapping) or not isinstance(asked.get("releases"), list) or not asked["releases"]:
        raise InvalidParameter(
            parameter="releases", value=None, must="be a list of questions, one at least",
            hint='{"releases": [{"kind": "count"}], "spend": {"epsilon": 0.1}}',
        )  # fmt: skip
    for word in asked:
        if word not in ("releases", "spend", "title"):
            raise InvalidParameter(parameter="word", value=str(word), must="be releases, spend or title")
    releases = asked["releases"]
    if len(releases) > limits["questions"]:
        raise InvalidParameter(
            parameter="releases", value=len(releases), must=f"be at most {limits['questions']} at once"
        )
    for one in releases:
        if not isinstance(one, Mapping):
            raise InvalidParameter(parameter="releases", value=type(one).__name__, must="be tables of words")
        if NEVER in one:
            raise InvalidParameter(
                parameter=NEVER, value="something", must="not be said here",
                hint="what is assumed of the data is declared by the custodian, with tacit release",
            )  # fmt: skip
        for word, value in one.items():
            if isinstance(value, str) and len(value) > limits["expression"]:
                raise InvalidParameter(
                    parameter=str(word), value=f"{len(value)} characters",
                    must=f"have at most {limits['expression']} characters",
                )  # fmt: skip
    spend = asked.get("spend") or None
    if spend is not None and not isinstance(spend, Mapping):
        raise InvalidParameter(parameter="spend", value=type(spend).__name__, must="be a price")
    if spend is None and not all(any(word in one for word in PAID) for one in releases):
        raise InvalidParameter(
            parameter="spend", value=None, must="be a price: there is no default",
            hint='{"epsilon": 0.1}, with a "delta" where the budget has one',
        )  # fmt: skip
    return {"releases": [dict(r) for r in releases], "spend": spend, "title": asked.get("title", "")}


_folders: list[Path] = []
_named: list[Path] = []
_database: list[str] = [""]


def unplaced(text: str) -> str:
    """A sentence of the library, without the folders and the database of this server."""
    return without_places(text, _named, _database[0])


def confine_to(folders: list[Path], named: list[Path] | None = None, database: str = "") -> None:
    """Limits this process to tables below these folders; errors name none of these folders, and no database."""
    from tacit.sources.engines import confine

    _folders[:] = [folder.resolve() for folder in folders]
    _named[:] = [*folders, *(named or ())]
    _database[0] = database
    confine(folders)


def _inside(place: Values) -> None:
    """Refuses a file that has become a link out of its folder since the table was declared."""
    said = json.loads(place["declaration"])["data"]["path"]
    for name in said if isinstance(said, list) else [said]:
        path = Path(place["beside"]) / name
        while glob.has_magic(str(path)):
            path = path.parent
        if _folders and not any(path.resolve().is_relative_to(folder) for folder in _folders):
            raise BadData(
                source=path.name,
                problem="lies outside of the folders of this server",
                hint="ask who runs the server",
            )


def file_of(place: Values, asked: Values, analyst: str) -> PlanFile:
    """The plan file of a request, as it would lie beside the data."""
    _inside(place)
    text = plan_text(place, asked, analyst)
    return read_plan_text(text, Path(place["beside"]) / f"{place['name']}.toml", releases="releases" in asked)


def curator_of(place: Values, file: PlanFile) -> Curator:
    """The curator, with the ledger beside the data or the server's own."""
    return file.curator(ledger=place["ledger"] or None)


def key_of(place: Values, plan: Plan, analyst: str) -> str:
    """The key of a request: that of the question for everybody, or for this analyst alone.

    With a shared record, a paid answer is free for everybody who asks the same, and the free price reveals that
    somebody asked before. The custodian decides.
    """
    if place["share_record"]:
        return plan.digest
    return hashlib.sha256(f"{analyst}\n{plan.digest}".encode()).hexdigest()


# --- prices -----------------------------------------------------------------------------------------------
def quote(place: Values, asked: Any, analyst: str, limits: Values) -> dict[str, Any]:
    """Price, expected error, lower bound, and whether it fits; reads no row and charges nothing."""
    asked = checked(asked, limits)
    file = file_of(place, asked, analyst)
    plan = file.plan()
    cells = sum(r.question.numbers or 0 for r in plan.releases)
    if cells > limits["cells"]:
        raise TooManyCells(
            cells=cells, limit=int(limits["cells"]), hint="group by fewer columns, or by wider bins"
        )
    with curator_of(place, file) as curator:
        key = key_of(place, plan, analyst)
        # What is on record, but not shown yet, is priced like a question that nobody asked.
        fit = curator.fit(plan, key=f"{key} unrecorded" if place.get("unrecorded") else key)
    said = described(file, plan)
    said.pop("plan")
    rows = _plan_rows(plan)
    return {
        **said,
        "fit": fit.to_dict(),
        "key": key,
        "price": priced(plan.charge),
        "left": priced(fit.left),
        "verdict": visible(str(fit)),
        "meaning": _meaning(plan.charge),
        "text": str(plan),
        "html": plan._repr_html_(),
        "asked": asked,
        "title": visible(", ".join(r.name for r in plan.releases))[:160],
        "lines": [
            {
                "name": visible(r.name),
                "question": visible(told["statistic"]), "cells": row[1], "price": row[2], "of_budget": row[3],
                "within": row[4], "mean": row[5], "floor": row[6], "noise": visible(row[7]),
                "about": visible(r.expected.about), "floor_reason": visible(r.expected.floor_reason),
            }
            for r, row, told in zip(plan.releases, rows, told_of(plan), strict=True)
        ],
    }  # fmt: skip


def asked_in(text: str) -> dict[str, Any]:
    """The questions of a plan file, and its price; the custodian decides about data, schema, unit and budget."""
    said = parse_toml(text, parameter="plan", name="the plan")
    spend, report = said.get("spend"), said.get("report")
    found = {"releases": said.get("release", []), **({"spend": spend} if spend else {})}
    if isinstance(report, Mapping) and "title" in report:
        found["title"] = report["title"]
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def _meaning(guarantee: Guarantee) -> list[str]:
    from tacit.report.building import _meaning as sentences

    return [visible(s) for s in sentences(guarantee)]


def request(place: Values, asked: Any, analyst: str, limits: Values, note: str) -> dict[str, Any]:
    """Ask for an approval; the number of the request."""
    asked = checked(asked, limits)
    file = file_of(place, asked, analyst)
    plan = file.plan()
    with curator_of(place, file) as curator:
        number = curator.request(plan, key=key_of(place, plan, analyst), note=note)
        return {"request": number, "plan": plan.digest, "charge": plan.charge.to_dict()}


# --- answers ----------------------------------------------------------------------------------------------
def release(
    place: Values, asked: Values, analyst: str, out: Path, *, key: str, rehearsal: bool = False,
    before: Callable[[], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Charge, read, add noise, and write the files of the release; `before` may refuse at the last moment."""
    if rehearsal:
        scratch = out.parent.parent / "rehearsals" / out.name
        try:
            made = twin_of(place, scratch)
            return release(made, asked, analyst, out, key=key, before=before)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    file = file_of(place, asked, analyst)
    plan = file.plan()
    with curator_of(place, file) as curator:
        if before is not None:
            before()
        releases = curator.release(plan, key=key)
        return written(out, file, plan, releases, curator)


def replay(place: Values, asked: Values, analyst: str, out: str, key: str) -> dict[str, Any]:
    """The files of a release that is on record, made again. Replays a recorded answer; charges nothing in any case."""
    folder = Path(out)
    file = file_of(place, asked, analyst)
    plan = file.plan()
    with curator_of(place, file) as curator:
        if not curator.fit(plan, key=key).recorded:
            raise NotAllowed(
                who=analyst, what="have this answer", reason="the ledger has no answer to this question"
            )
        if folder.exists():
            return release_charge(folder)
        return written(folder, file, plan, curator.release(plan, key=key), curator)


def written(out: Path, file: PlanFile, plan: Plan, releases: Releases, curator: Curator) -> dict[str, Any]:
    """The release's folder, and `answer.json` beside it, which pages and programs show."""
    from tacit.report.folder import write_release

    place = int(releases[0].certificate["ledger"]["sequence"])
    replaces = curator.ledger.replaces(place) if releases[0].replayed else ()
    if out.exists():
        shutil.rmtree(out)
    write_release(
        out, file, plan, releases, curator.budget, replaces=replaces,
        title=file.words.title or ", ".join(r.name for r in releases)[:120],
    )  # fmt: skip
    beside = out.with_name(f"{out.name}.json")
    told = _answer(plan, releases)
    told["noted"] = [str(c) for c in curator.ledger.corrections(place)]
    partial = beside.with_suffix(".part")
    partial.write_text(json.dumps(told, allow_nan=False), encoding="utf-8")
    partial.replace(beside)
    return release_charge(out)


def release_charge(out: Path) -> dict[str, Any]:
    """A job's record of a release: its charge, and whether it was answered from the record."""
    told = json.loads(out.with_name(f"{out.name}.json").read_text(encoding="utf-8"))
    return {"charge": told["charge"], "replayed": told["replayed"]}


def _answer(plan: Plan, releases: Releases) -> dict[str, Any]:
    spent, left = releases[-1].standing
    return {
        "charge": int(releases[0].certificate["ledger"]["sequence"]),
        "replayed": releases[0].replayed,
        "made_up": releases[0].made_up,
        "publishable": all(r.publishable for r in releases) and not any(r.made_up for r in releases),
        "spent": dict(spent.bound.parameters),
        "remaining": dict(left.bound.parameters),
        "digest": plan.digest,
        "price": priced(plan.charge),
        "meaning": _meaning(plan.charge),
        "releases": [
            {
                "name": r.name,
                "columns": {name: [_plain(v) for v in values] for name, values in r.columns.items()},
                "quality": list(r.quality),
                "confidence": float(r.planned.ask.confidence),
                "text": str(r),
                "html": r._repr_html_(),
                "guarantee": r.guarantee.to_dict(),
                "certificate": r.certificate,
                "shown": _shown(r),
            }
            for r in releases
        ],
    }


MOST_SHOWN = 200


def _shown(release: Any) -> dict[str, Any]:
    """The first rows of a release as people read them."""
    from tacit.curator.text import _key, _with_ends

    columns, quality = release.columns, release.quality
    keys = [n for n in columns if n not in ("value", "low", "high")]
    count = len(columns["value"])
    rows = []
    for i in range(min(count, MOST_SHOWN)):
        value, low, high = _with_ends(*(columns[n][i] for n in ("value", "low", "high")))
        rows.append([*(visible(_key(columns[n][i])) for n in keys), value, low, high, quality[i]])
    return {"keys": keys, "rows": rows, "cells": count}


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


# --- tables -----------------------------------------------------------------------------------------------
def columns_in(data: Values, beside: str, trust_header: bool = False) -> list[dict[str, Any]]:
    """The columns of a file from its header or metadata; no row is read."""
    from tacit.curator.custodian import suggest
    from tacit.curator.plan_files import READING, _source

    words = {k: v for k, v in data.items() if k in ("path", *READING)}
    source = _source(Path(beside) / "plan.toml", words)
    found = suggest(source, trust_header=trust_header).columns
    return [{"name": h.name, "stored": h.stored, "kind": h.kind, "keys": list(h.keys)} for h in found]


def declare(place: Values, custodian: str) -> dict[str, Any]:
    """Check a declaration against the file's metadata and make its ledger, with its custodian; reads no row."""
    file = file_of(place, {}, custodian)
    with curator_of(place, file) as curator:
        curator._open()
        ledger = curator.ledger
        people = ledger.people()
        if not any("custodian" in p.roles for p in people.values()):
            ledger.enrol(custodian, "custodian", by=custodian)
        elif custodian not in people or "custodian" not in people[custodian].roles:
            raise NotAllowed(
                who=custodian, what="add this table", reason="its ledger knows other custodians",
                hint="one of them enrols the name: tacit ledger person",
            )  # fmt: skip
        return {
            "id": ledger.id,
            "columns": len(file.schema),
            "place": "" if ledger.path is None else str(ledger.path),
        }


def twin_of(place: Values, folder: Path) -> dict[str, Any]:
    """The same declaration for a made-up table in a separate folder, with a separate ledger."""
    from tacit.sources.synthetic.twin import twin, write_table

    file = file_of(place, {}, "custodian")
    said = json.loads(place["declaration"])
    person = said["protect"].get("column", "") if said["protect"]["unit"] == "people" else ""
    table = twin(
        file.schema,
        rows=TWIN_ROWS,
        people=TWIN_ROWS // 4 if person else None,
        person_column=person or "person_id",
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_table(table, folder / "twin.parquet")
    declaration = json.dumps({**said, "data": {"path": "twin.parquet"}})
    return {**place, "declaration": declaration, "beside": str(folder), "ledger": ""}


def example(place: Values, custodian: str, folder: str) -> dict[str, Any]:
    """A rehearsal of a declaration before it is recorded: a count on a made-up table, with its price."""
    made = twin_of(place, Path(folder))
    budget = json.loads(place["declaration"])["budget"]
    spend = {k: float(v) / 10 for k, v in budget.items() if k in ("epsilon", "delta", "rho", "mu")}
    file = file_of(made, {"releases": [{"kind": "count"}], "spend": spend}, custodian)
    plan = file.plan()
    try:
        with curator_of(made, file) as curator:
            return {"text": str(curator.release(plan)), "plan": str(plan)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- checks -----------------------------------------------------------------------------------------------
def verify(out: str, ledger: str) -> dict[str, Any]:
    """`tacit verify` of a folder with its ledger."""
    from tacit.audit.release import second_opinions
    from tacit.curator.verifying import Verified, verify_release
    from tacit.report.verifying import made_again

    folder = Path(out)
    found = verify_release(folder, ledger=ledger)
    again = tuple(made_again(folder, ledger=ledger))
    found = Verified(findings=(*found.findings, *again, *second_opinions(folder)))
    told = [{"what": visible(f.what), "holds": f.holds, "why": visible(f.why)} for f in found.findings]
    return {"ok": found.ok, "made": found.made, "fallen": list(found.fallen), "findings": told}


def problem(error: BaseException) -> dict[str, Any]:
    """An error as plain values: the library's own sentence, or one fixed sentence for anything else."""
    if isinstance(error, TacitError):
        return {
            "error": type(error).__name__, "message": unplaced(error.message), "hint": unplaced(error.hint),
            "exit": error.exit_code,
            "charged": error.after_charge, "kinds": [c.__name__ for c in type(error).__mro__],
        }  # fmt: skip
    return {
        "error": "InternalError", "message": "the server could not do this", "hint": "ask who runs it",
        "exit": 2, "charged": False, "kinds": ["InternalError", "TacitError"],
    }  # fmt: skip


CALLS: dict[str, Callable[..., Any]] = {
    "asked_in": asked_in,
    "columns_in": columns_in,
    "declare": declare,
    "example": example,
    "quote": quote,
    "replay": replay,
    "request": request,
    "verify": verify,
}
"""The functions that the pool of processes may run."""
