"""The server's state, and its tables: their places, their readers, and the entries of their ledgers.

The server makes a list of tables from the operator's roots and connections. A name outside the list is refused, and
so is a link that leads out of its root. The ledger of a table lists who may see it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from starlette.requests import Request

from tacit.errors import InvalidParameter, LedgerError, NotAllowed, TacitError, UnknownName
from tacit.ledger import Ledger, overview
from tacit.server import jobs
from tacit.server.accounts import CROWDED, Directory, Member
from tacit.server.pool import Pool, child_environment
from tacit.server.settings import LOOPBACK, Settings
from tacit.server.store import (
    AUDIT,
    JOBS,
    PUBLISHED,
    TABLES,
    VERSIONS,
    Row,
    ServerStore,
    new_secret,
    now,
    without_places,
)
from tacit.server.web import NotFound, Rates
from tacit.server.worker import ledger_of, place_of

ENDINGS = (
    ".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".dta", ".sav", ".zsav", ".sas7bdat", ".xlsx",
)  # fmt: skip
DEPTH, MOST_FILES = 3, 2_000
MOST_STREAMS = 12
MOST_LISTED = 500
KIND_OF = {
    "pure": ("epsilon",),
    "approximate": ("epsilon", "delta"),
    "concentrated": ("rho",),
    "gaussian": ("mu",),
}


class Desk:
    """One server process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = ServerStore(settings.folder, settings.database)
        self.store.create()
        limits = settings.limits
        self.accounts = Directory(
            self.store, session_hours=limits.session_hours, idle_minutes=limits.idle_minutes
        )
        self.rates = Rates(limits.requests_per_minute)
        self.pool = Pool(self.folders, processes=2, said=self.unplaced)
        # Apart from prices, which nobody keeps waiting: files made again, verification, declarations.
        self.slow = Pool(self.folders, processes=1, wait=120.0, said=self.unplaced)
        self.workers = Workers(self)
        self._ledgers: dict[str, Ledger] = {}
        self._lock = threading.Lock()
        self._pricing: dict[str, int] = {}
        self._turns: dict[str, threading.Lock] = {}
        self._streams: dict[str, int] = {}
        self._making = [threading.Lock() for _ in range(16)]

    @property
    def folders(self) -> list[Path]:
        """All folders that an engine of this server may touch."""
        settings = self.settings
        found = [*settings.roots.values(), settings.releases, settings.rehearsals]
        for words in settings.connections.values():
            paths = words["path"] if isinstance(words["path"], list) else [words["path"]]
            found += [_above(Path(p)) for p in paths]
        return list(dict.fromkeys(found))

    @property
    def named(self) -> list[Path]:
        """All folders that no sentence names."""
        settings = self.settings
        return [*self.folders, settings.folder, *([] if settings.ledgers is None else [settings.ledgers])]

    def unplaced(self, text: str) -> str:
        """A sentence without the operator's folders and database."""
        return without_places(text, self.named, self.settings.database)

    @cached_property
    def templates(self) -> Any:
        """The templates; everything that is put into a page is escaped."""
        import jinja2

        made = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True,
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        from tacit.server.views import FILTERS

        made.filters.update(FILTERS)
        return made

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that prices are computed under."""
        found = self.settings.limits
        return {"cells": found.cells, "expression": found.expression, "questions": found.questions}

    def address_of(self, request: Request) -> str:
        """The origin of a request; behind a proxy on this machine, the origin that the proxy states."""
        peer = request.client.host if request.client else ""
        forwarded = request.headers.get("x-forwarded-for", "")
        if self.settings.public_url and forwarded and (peer in LOOPBACK or not peer):
            return forwarded.split(",")[-1].strip()[:60]
        return peer

    def note_failure(self, route: str) -> None:
        """A line of the audit log for an error of the server's own; without any words of the error."""
        with suppress(TacitError):
            self.store.audit("server", "failed", route)

    def close(self) -> None:
        """Stop workers and give everything back."""
        self.workers.stop()
        self.pool.close()
        self.slow.close()
        for ledger in self._ledgers.values():
            ledger.close()
        self.store.close()

    # --- where data lie ------------------------------------------------------------------------------
    def sources(self) -> list[dict[str, Any]]:
        """Files below the roots, and named connections, each with the word for choosing it."""
        known = {str(r["beside"]) + "\n" + json.loads(r["declaration"])["data"]["path"] for r in self.store.all(TABLES)
                 if isinstance(json.loads(r["declaration"])["data"]["path"], str)}  # fmt: skip
        found = []
        for name, words in sorted(self.settings.connections.items()):
            found.append(
                {
                    "choice": f"connection:{name}",
                    "name": name,
                    "root": "connections",
                    "used": False,
                    "data": words,
                }
            )
        for root, folder in sorted(self.settings.roots.items()):
            for path in _files(folder):
                relative = path.relative_to(folder).as_posix()
                used = f"{path.parent}\n{path.name}" in known
                found.append(
                    {
                        "choice": f"{root}/{relative}",
                        "name": relative,
                        "root": root,
                        "used": used,
                        "path": path,
                    }
                )
        return found

    def chosen(self, choice: str) -> tuple[dict[str, Any], Path]:
        """The words of [data] for a choice from the list, and the folder that they are relative to."""
        for one in self.sources():
            if one["choice"] == choice:
                if "path" in one:
                    return {"path": one["path"].name}, one["path"].parent
                return _beside(one["data"])
        raise UnknownName(
            what="table on the list", name=choice[:80], known=[], hint="choose one from the list"
        )

    # --- tables --------------------------------------------------------------------------------------
    def add_table(self, name: str, title: str, said: Mapping[str, Any], beside: Path, by: Member) -> str:
        """Declare a table and make its ledger."""
        _checked_table(name)
        if self.store.one(TABLES, name=name) is not None:
            raise InvalidParameter(
                parameter="name", value=name, must="not be that of another table on this server"
            )
        self._undeclared(said["data"]["path"], beside)
        row: dict[str, Any] = {
            "name": name, "title": title.strip()[:120] or name, "declaration": json.dumps(said), "beside": str(beside),
            "ledger": self._new_ledger(name), "version": str(said["data"].get("version", "")), "share_record": 1,
            "created": now(), "by": by.name, "twin": "",
        }  # fmt: skip
        place = place_of(row, self.settings.database)
        made = self.slow.call("declare", place, by.name, seconds=60)
        row["ledger"] = row["ledger"] or made["place"]
        with self.store.turn() as connection:
            # Once more, and nobody in between: the same file may have been declared meanwhile, by another name.
            self._undeclared(said["data"]["path"], beside, connection)
            connection.execute(sa.insert(TABLES).values(**row))
        self.store.add(VERSIONS, table=name, version=row["version"], time=now(), by=by.name)
        self.store.audit(by.name, "added a table", name)
        return name

    def _undeclared(
        self, paths: str | list[str], beside: Path, connection: sa.Connection | None = None
    ) -> None:
        """Refuses a file that another table of this server has. If no note can lie beside the file, it would
        get a second ledger and so a second budget.
        """
        mine = _resolved(paths, beside)
        query = sa.select(TABLES)
        others = self.store.all(TABLES) if connection is None else connection.execute(query).mappings().all()
        for other in others:
            known = _resolved(json.loads(other["declaration"])["data"]["path"], Path(str(other["beside"])))
            if mine & known:
                raise InvalidParameter(
                    parameter="source", value=sorted(p.name for p in mine & known)[0],
                    must=f"not be that of another table here, {other['name']!r}",
                    hint="a table has one budget; for changed rows declare a new version of that table",
                )  # fmt: skip

    def _new_ledger(self, name: str) -> str:
        if self.settings.database:
            return f"schema:{self.store.new_schema(name)}"
        return "" if self.settings.ledgers is None else str(self.settings.ledgers / f"{name}.ledger")

    def table(self, name: str, person: Member) -> Row:
        """A table that this person may see; None otherwise."""
        found = self.store.one(TABLES, name=name)
        if found is None or not self.access(found, person):
            if found is not None and self.store.all(JOBS, most=1, table=name, person=person.name):
                # Somebody who asked about it is told where the ledger is out of reach, and not that nothing is here.
                self.ledger(found).people()
            raise NotFound
        return found

    def tables(self, person: Member) -> list[Row]:
        """The tables that this person may see."""
        return [t for t in self.store.all(TABLES, order=TABLES.c.title) if self.access(t, person)]

    def access(self, table: Row, person: Member) -> frozenset[str]:
        """A person's roles for a table: by the server and by the table's ledger, both."""
        found = {role for role in ("auditor", "custodian") if person.is_(role)}
        with suppress(LedgerError):
            known = self.ledger(table).people().get(person.name)
            if known is not None:
                found |= set(known.roles) & person.roles
        return frozenset(found)

    def place(self, table: Row, version: str | None = None) -> dict[str, Any]:
        """A table for the pool of processes."""
        return place_of(table, self.settings.database, version)

    def ledger(self, table: Row) -> Ledger:
        """The ledger of a table, kept open."""
        name = str(table["name"])
        with self._lock:
            found = self._ledgers.get(name)
            if found is None:
                found = self._ledgers[name] = Ledger.open(
                    ledger_of(table, self.settings.database), wait_seconds=10
                )
        return found

    def standing(self, table: Row, person: Member | None = None) -> dict[str, Any]:
        """Budget, spent and left, for a picture; for a person with a share, the rest of the share."""
        ledger = self.ledger(table)
        spent, left = ledger.standing(None if person is None or not person.is_("analyst") else person.name)
        budget = ledger.budget.bound
        lead = next(iter(budget.parameters))
        whole, rest = float(budget.parameters[lead]), float(left.parameters[lead])
        return {
            "budget": dict(budget.parameters), "spent": dict(spent.parameters), "left": dict(left.parameters),
            "kind": budget.kind, "lead": lead, "unit": str(ledger.budget.unit), "four_eyes": ledger.four_eyes,
            "share_left": min(1.0, max(0.0, rest / whole)) if whole else 0.0, "gone": rest <= 0,
            "own": person is not None and person.is_("analyst"),
        }  # fmt: skip

    def overview(self, table: Row) -> dict[str, Any]:
        """The ledger as plain data."""
        return overview(self.ledger(table))

    def bound(self, table: Row, amount: str, delta: str = "") -> Any:
        """A share in the budget's own kind, from a form."""
        from tacit import guarantees

        budget = self.ledger(table).budget.bound
        given = {"epsilon": _number("share", amount)} if budget.kind in ("pure", "approximate") else {}
        if budget.kind == "pure":
            return guarantees.Pure(**given)
        if budget.kind == "approximate":
            part = given["epsilon"] / float(budget.parameters["epsilon"])
            own = _number("delta", delta) if delta else min(1.0, part) * float(budget.parameters["delta"])
            return guarantees.Approximate(**given, delta=own)
        if budget.kind == "concentrated":
            return guarantees.Concentrated(rho=_number("share", amount))
        return guarantees.GaussianDP(mu=_number("share", amount))

    def grant(self, table: Row, name: str, roles: list[str], amount: str, delta: str, by: Member) -> None:
        """Give somebody access to a table: enrol the name in its ledger, and set a share."""
        person = self.accounts.person(name)
        if person is None:
            raise UnknownName(what="account", name=name, known=[p["name"] for p in self.accounts.people()])
        for role in roles:
            if role not in person.roles or role not in ("analyst", "approver", "custodian"):
                raise NotAllowed(
                    who=name,
                    what=f"be {role} here",
                    reason="the account does not have this role",
                    hint="see People",
                )
        if "approver" in roles and not person.key_public:
            raise NotAllowed(
                who=name, what="approve here", reason="the account has no signing key",
                hint="they first make a key, or add one, on their page Account",
            )  # fmt: skip
        ledger = self.ledger(table)
        key = person.key_public if "approver" in roles else ""
        share = self.bound(table, amount, delta) if amount and "analyst" in roles else None
        ledger.enrol(name, roles, key=key, change=name in ledger.people(), by=by.name)
        if share is not None:
            ledger.share(name, share, by=by.name)
        self.store.audit(
            by.name, "gave a part in a table", f"{table['name']}: {name}: {', '.join(roles) or 'none'}"
        )

    def new_version(self, table: Row, version: str, by: Member) -> None:
        """A new version of the data, by its public name. The same question about it is a new question."""
        from tacit.ledger.entries import shown

        shown("version", version)
        if self.store.one(VERSIONS, table=table["name"], version=version) is not None:
            raise InvalidParameter(parameter="version", value=version, must="be a new name")
        self.store.add(VERSIONS, table=table["name"], version=version, time=now(), by=by.name)
        self.store.change(TABLES, [TABLES.c.name == table["name"]], version=version)
        self.store.audit(by.name, "new version", f"{table['name']}: {version}")

    def versions(self, table: Row) -> list[Row]:
        """The declared versions, newest last."""
        return self.store.all(VERSIONS, order=VERSIONS.c.time, table=table["name"])

    # --- prices --------------------------------------------------------------------------------------
    def quote(self, table: Row, asked: Any, person: str, version: str | None = None) -> dict[str, Any]:
        """The price of a request. Each person gets one at a time and may queue few, so that others need not
        wait.
        """
        place, seconds = self.place(table, version), self.settings.limits.preview_seconds
        with self._turn(person, "ask for another price now"):
            found = dict(self.pool.call("quote", place, asked, person, self.limits, seconds=seconds))
            if found["fit"]["recorded"] and self._ends_later(str(found["key"])):
                # On record since a moment that does not show yet: the same as a moment before.
                place["unrecorded"] = True
                found = dict(self.pool.call("quote", place, asked, person, self.limits, seconds=seconds))
        return found

    @contextmanager
    def _turn(self, person: str, what: str) -> Iterator[None]:
        """One at a time for one person, with a short queue: each waiting request holds a thread of the server."""
        with self._lock:
            self._pricing[person] = self._pricing.get(person, 0) + 1
            crowded = self._pricing[person] > self.settings.limits.prices_at_once
            turn = self._turns.setdefault(person, threading.Lock())
        try:
            if crowded:
                raise NotAllowed(who=person, what=what, reason=CROWDED, hint="wait for the others")
            with turn:
                yield
        finally:
            with self._lock:
                self._pricing[person] -= 1
                if not self._pricing[person]:
                    del self._pricing[person]

    def verified(self, job: Row, table: Row, person: Member) -> dict[str, Any]:
        """`tacit verify` of a release with its ledger."""
        with self._turn(person.name, "verify another release now"):
            folder = self.files(job)
            return dict(self.slow.call("verify", str(folder), self.place(table)["ledger"], seconds=120))

    def _ends_later(self, key: str) -> bool:
        """Whether the record of a query comes from a job whose end is not shown yet."""
        rows = [j for j in self.store.all(JOBS, key=key, rehearsal=0) if not j["replayed"]]
        shown = [j["state"] == "done" and self.state(j) == "done" for j in rows]
        return not any(shown) and any(self.state(j) == "running" for j in rows)

    def may_stream(self, person: str) -> None:
        """Counts the streams of events of a person, and refuses surplus ones, so that nobody takes all
        connections.
        """
        with self._lock:
            if self._streams.get(person, 0) >= MOST_STREAMS:
                raise NotAllowed(who=person, what="follow more jobs", reason=CROWDED, hint="close other tabs")
            self._streams[person] = self._streams.get(person, 0) + 1

    def end_stream(self, person: str) -> None:
        """A stream that was counted has ended."""
        with self._lock:
            self._streams[person] -= 1

    def cancel(self, job: Row, person: Member) -> None:
        """Cancels a job of this person. A request is taken back in the ledger, too, so that nobody decides
        about it.
        """
        if job["state"] == "asked":
            with suppress(NotAllowed, InvalidParameter, NotFound):
                table = self.table(str(job["table"]), person)
                self.ledger(table).close_request(int(job["request"]), by=person.name, note="taken back")
        jobs.cancel(self.store, str(job["id"]))

    # --- jobs and releases ---------------------------------------------------------------------------
    def job(self, number: str, person: Member) -> Row:
        """A job that this person may see: their own, by its number or their own key, or one about a table that
        they keep, approve or audit.
        """
        found = self.store.one(JOBS, id=number) or self.store.one(
            JOBS, id=jobs.number_of(person.name, number)
        )
        if found is None:
            raise NotFound
        number = str(found["id"])
        table = self.store.one(TABLES, name=found["table"])
        if found["state"] == "asked" and table is not None and self._decided_elsewhere(found, table):
            waits = [JOBS.c.id == number, JOBS.c.state == "asked"]
            self.store.change(JOBS, waits, state="cancelled", message=jobs.CLOSED, ended=now())
            found = self.store.one(JOBS, id=number) or found
        if found["person"] == person.name:
            return found
        if table is None or not self.access(table, person) & {"approver", "auditor", "custodian"}:
            raise NotFound
        return found

    def _decided_elsewhere(self, job: Row, table: Row) -> bool:
        """Whether the request of a job is no longer open: closed by the command line, or used by another job."""
        with suppress(LedgerError):
            return bool(int(job["request"]) not in self.ledger(table).requests())
        return False

    def jobs(self, person: Member) -> list[Row]:
        """The newest jobs that this person may see."""
        wide = {"approver", "auditor", "custodian"}
        seen = [str(t["name"]) for t in self.store.all(TABLES) if self.access(t, person) & wide]
        # Their own apart: many jobs of others must not push them off the list.
        own = self.store.all(JOBS, order=JOBS.c.created.desc(), most=MOST_LISTED, person=person.name)
        others = self.store.newest(
            JOBS, JOBS.c.created, MOST_LISTED, JOBS.c.table.in_(seen), JOBS.c.person != person.name
        )
        return sorted([*own, *others], key=lambda j: -float(j["created"]))

    def state(self, job: Row) -> str:
        """The state of a job that may be shown now."""
        return jobs.shown_state(job, self.settings.limits.tick_seconds)

    def files(self, job: Row) -> Path:
        """The folder of a release; made again from the ledger if it is missing, and after a later note.

        Another server, the command line, or another job with the same charge may have recorded a withdrawal.
        """
        out = self.settings.releases / str(job["id"])
        if job["state"] != "done":
            raise NotFound
        with self._making[hash(out.name) % len(self._making)]:
            if not self._current(out, job):
                table = self.store.one(TABLES, name=job["table"])
                if table is None or job["rehearsal"]:
                    raise NotFound
                shutil.rmtree(out, ignore_errors=True)
                given = (
                    self.place(table, str(job["version"])),
                    json.loads(job["plan"]),
                    job["person"],
                    str(out),
                    job["key"],
                )
                self.slow.call("replay", *given, seconds=60)
        return out

    def _current(self, out: Path, job: Row) -> bool:
        """Whether the files of a release exist, with all notes about it."""
        beside = out.with_name(f"{out.name}.json")
        if not (out / "manifest.json").exists() or not beside.exists():
            return False
        if job["rehearsal"]:
            return True
        noted = json.loads(beside.read_text(encoding="utf-8")).get("noted")
        return bool(noted == self.corrections(job))

    def answer(self, job: Row) -> dict[str, Any]:
        """A release for pages and programs."""
        out = self.files(job)
        found = dict(json.loads(out.with_name(f"{out.name}.json").read_text(encoding="utf-8")))
        found.pop("noted", None)
        # Files that were made again come from the record, whoever paid.
        found["replayed"] = bool(job["replayed"])
        return found

    def forget_files(self, job: Row) -> None:
        """Make the files again at the next look: the release has a new note."""
        shutil.rmtree(self.settings.releases / str(job["id"]), ignore_errors=True)

    def corrections(self, job: Row) -> list[str]:
        """Later notes about a release."""
        table = self.store.one(TABLES, name=job["table"])
        if table is None or not job["charge"] or job["rehearsal"]:
            return []
        return [str(c) for c in self.ledger(table).corrections(int(job["charge"]))]

    def published(self, slug: str) -> tuple[Row, Row]:
        """A published release and its job."""
        found = self.store.one(PUBLISHED, slug=slug)
        job = None if found is None else self.store.one(JOBS, id=found["job"])
        if found is None or job is None or job["state"] != "done":
            raise NotFound
        return found, job

    def publish(self, job: Row, title: str, summary: str, by: Member) -> str:
        """Put a release into the public catalogue."""
        if job["rehearsal"] or not (self.settings.demo or self.answer(job)["publishable"]):
            raise NotAllowed(who=by.name, what="publish this", reason="it is about made-up rows, or a test")
        if self.corrections(job):
            raise NotAllowed(who=by.name, what="publish this", reason="it was withdrawn or replaced")
        if (known := self.store.one(PUBLISHED, job=job["id"])) is not None:
            return str(known["slug"])
        slug = f"{_slug(title or str(job['title']))}-{new_secret(4).lower().replace('_', '-').strip('-')}"
        self.store.add(
            PUBLISHED, slug=slug, job=job["id"], title=(title or str(job["title"]))[:160], summary=summary[:500],
            time=now(), by=by.name,
        )  # fmt: skip
        self.store.audit(by.name, "published", slug)
        return slug

    def audit_lines(self, most: int = 500) -> list[Row]:
        """The newest lines of the audit log."""
        return self.store.all(AUDIT, order=AUDIT.c.id.desc(), most=most)


class Workers:
    """The worker processes of this server; one that ends is started anew."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._lock = desk, threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._over = threading.Event()

    def start(self) -> None:
        """Starts them, and a thread that watches them."""
        if self._desk.settings.workers:
            threading.Thread(target=self._keep, daemon=True).start()

    def _keep(self) -> None:
        while not self._over.is_set():
            with self._lock:
                self._running = [p for p in self._running if p.poll() is None]
                while len(self._running) < self._desk.settings.workers and not self._over.is_set():
                    self._running.append(self._new())
            self._over.wait(0.5)

    def _new(self) -> subprocess.Popen[bytes]:
        settings = self._desk.settings
        said = {
            "folder": str(settings.folder), "database": settings.database, "releases": str(settings.releases),
            "folders": [str(f) for f in self._desk.folders], "named": [str(f) for f in self._desk.named],
            "tick": settings.limits.tick_seconds,
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "tacit.server.worker"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=child_environment(), start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.write(json.dumps(said).encode() + b"\n")
            process.stdin.flush()
        return process

    @property
    def numbers(self) -> list[int]:
        """The process ids."""
        with self._lock:
            return [p.pid for p in self._running if p.poll() is None]

    def stop(self) -> None:
        """Lets each process end its job, and stops."""
        self._over.set()
        with self._lock:
            for process in self._running:
                with suppress(OSError):
                    assert process.stdin is not None
                    process.stdin.close()
            for process in self._running:
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@contextmanager
def opened(settings: Settings) -> Iterator[Desk]:
    """A desk for a while."""
    desk = Desk(settings)
    try:
        yield desk
    finally:
        desk.close()


def _files(folder: Path) -> list[Path]:
    """Data files below a folder, links resolved; leaves out links to other places."""
    top, found = folder.resolve(), list[Path]()
    for here, folders, names in os.walk(top, followlinks=False):
        depth = len(Path(here).relative_to(top).parts)
        folders[:] = [] if depth >= DEPTH else sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            path = Path(here) / name
            if (
                name.startswith(".")
                or not name.lower().endswith(ENDINGS)
                or not path.resolve().is_relative_to(top)
            ):
                continue
            if path.is_file() and len(found) < MOST_FILES:
                found.append(path)
    return found


def _beside(words: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
    """A connection's words with paths relative to the folder above all of them: plans of releases show them."""
    paths = words["path"] if isinstance(words["path"], list) else [words["path"]]
    folder = Path(os.path.commonpath([_above(Path(p)) for p in paths]))
    named = [os.path.relpath(p, folder) for p in paths]
    return {**words, "path": named if isinstance(words["path"], list) else named[0]}, folder


def _above(path: Path) -> Path:
    """The folder of a path, above all patterns."""
    import glob

    found = path.parent
    while glob.has_magic(str(found)):
        found = found.parent
    return found


def _resolved(paths: str | list[str], beside: Path) -> set[Path]:
    """The very files behind declared paths, patterns matched."""
    import glob

    found: set[Path] = set()
    for name in paths if isinstance(paths, list) else [paths]:
        place = str(beside / name)
        matched = glob.glob(place) if glob.has_magic(place) else []
        found |= {Path(p).resolve() for p in (matched or [place])}
    return found


def _checked_table(name: str) -> None:
    if (
        not 1 <= len(name) <= 60
        or not all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
        or name == "new"
    ):
        raise InvalidParameter(
            parameter="name",
            value=name[:60],
            must="have 1 to 60 letters, digits, - and _",
            hint="for example survey-2026",
        )


def _slug(text: str) -> str:
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    return "-".join(filter(None, plain.split("-")))[:50] or "release"


def _number(parameter: str, text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InvalidParameter(parameter=parameter, value=text[:40], must="be a number") from None
