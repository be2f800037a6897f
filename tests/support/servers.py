"""A server for tests: a small table, five people, uvicorn in a thread on the loopback."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from support.ledgers import quick_folder
from tacit.server.app import make_app
from tacit.server.desk import Desk
from tacit.server.running import bound, prepared, server_of
from tacit.server.settings import Settings
from tacit.server.store import PEOPLE, now

PASSWORD, PASSPHRASE = "a long word or two", "another long word"
ROLES = {
    "clara": ["custodian"], "andy": ["analyst"], "ben": ["analyst"], "olga": ["approver"], "ruth": ["auditor"],
}  # fmt: skip
ROWS = "person,age,region,income\n" + "".join(
    f"p{i % 400},{18 + i % 70},{'north' if i % 3 else 'south'},{1000 + 7 * (i % 300)}\n" for i in range(1200)
)
DECLARED: dict[str, Any] = {
    "data": {"path": "people.csv", "version": "2026"},
    "protect": {"unit": "people", "column": "person", "at_most": 3},
    "schema": {
        "age": {"kind": "integer", "low": 0, "high": 120},
        "region": {"kind": "category", "keys": ["north", "south"]},
        "income": {"kind": "number", "low": 0, "high": 5000},
    },
    "budget": {"epsilon": 4.0},
}


def people_of(desk: Desk) -> None:
    """The five accounts, with quick hashes."""
    from argon2 import PasswordHasher

    desk.accounts._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    # On a busy machine the processes of the pool take long to start.
    desk.pool._wait = desk.slow._wait = 300
    hashed = desk.accounts._hashed(PASSWORD)
    for name, roles in ROLES.items():
        desk.store.add(PEOPLE, name=name, roles=json.dumps(roles), password=hashed, created=now())
    olga = desk.accounts.person("olga")
    assert olga is not None
    desk.accounts.make_key(olga, PASSPHRASE)


def table_of(desk: Desk, name: str = "people", rows: str = ROWS, **changes: Any) -> None:
    """A table with its grants: andy and ben ask, olga approves."""
    folder = desk.settings.roots["tables"]
    file = f"{name}.csv"
    (folder / file).write_text(rows, encoding="utf-8")
    said = {**DECLARED, "data": {**DECLARED["data"], "path": file}, **changes}
    clara = desk.accounts.person("clara")
    assert clara is not None
    desk.add_table(name, f"Table {name}", said, folder, clara)
    table = desk.table(name, clara)
    desk.grant(table, "andy", ["analyst"], "2", "", clara)
    desk.grant(table, "ben", ["analyst"], "1", "", clara)
    desk.grant(table, "olga", ["approver"], "", "", clara)


class Served:
    """A server that runs, and its clients."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.settings, self.url = desk, desk.settings, desk.settings.url
        self._clients: list[httpx.Client] = []

    def client(self, name: str = "") -> httpx.Client:
        """A browser without a script, signed in or not."""
        client = httpx.Client(base_url=self.url, follow_redirects=True, timeout=240, trust_env=False)
        self._clients.append(client)
        if name:
            said = {"name": name, "password": PASSWORD, "next": "", "csrf": csrf(client.get("/sign-in").text)}
            assert client.post("/sign-in", data=said).status_code == 200
        return client

    def close(self) -> None:
        """Close all clients."""
        for client in self._clients:
            client.close()

    def token(self, name: str, *scopes: str) -> str:
        """An API token of a person."""
        person = self.desk.accounts.person(name)
        assert person is not None
        return self.desk.accounts.new_token(person, "test", scopes or ("read", "ask"), 1, 90)

    def wait(self, client: httpx.Client, job: str, seconds: float = 240) -> httpx.Response:
        """The page of a job, once it ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            page = client.get(f"/jobs/{job}")
            if 'data-state="queued"' not in page.text and 'data-state="running"' not in page.text:
                return page
            time.sleep(0.05)
        raise TimeoutError(job)


def csrf(page: str) -> str:
    """The token in the forms of a page."""
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found is not None, page[:500]
    return found[1]


def form_of(page: str) -> str:
    """The number of the form *Ask*."""
    found = re.search(r'name="form" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def settings_for(folder: Path, **changes: Any) -> Settings:
    """Settings for a folder, with short ticks."""
    made = prepared(folder, port=0)
    limits = replace(
        made.limits,
        tick_seconds=0.05,
        requests_per_minute=1_000_000,
        prices_at_once=100,
        preview_seconds=30.0,
    )
    return replace(made, limits=limits, **changes)


@contextmanager
def served(settings: Settings, *, workers: bool = True) -> Iterator[Served]:
    """The server, in a thread."""
    with bound(settings) as listening:
        settings = replace(settings, port=int(listening.getsockname()[1]))
        app = make_app(settings, workers=workers)
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        found = Served(app.state.desk)
        try:
            yield found
        finally:
            found.close()
            server.should_exit = True
            thread.join(30)


@contextmanager
def small_server(**changes: Any) -> Iterator[Served]:
    """A server with the five people and one table."""
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk", **changes)) as found:
        people_of(found.desk)
        table_of(found.desk)
        yield found


def free_port() -> int:
    """A port of the loopback that nobody uses at this moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
