"""Promises of the pages and of the command that no other file of this room tests."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import tacit
from support.ledgers import quick_folder
from support.servers import DECLARED, PASSPHRASE, PASSWORD, Served, csrf, form_of, small_server
from tacit.cli import main
from tacit.server import accounts as rules
from tacit.server import jobs
from tacit.server.accounts import FIRST_FILE
from tacit.server.store import JOBS, LINKS, PEOPLE, TABLES
from tacit.sources import engines


def ask(client: httpx.Client, **words: Any) -> httpx.Response:
    page = client.get("/tables/people/ask").text
    said = {"csrf": csrf(page), "form": form_of(page), "kind": "count", "act": "release", "pay": "1"}
    return client.post("/tables/people/ask", data={**said, **words})


# --- the command ----------------------------------------------------------------------------------------------
def started(folder: Path, *words: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """`tacit serve` as a process, and the line that it prints when it is ready."""
    code = "import sys; from tacit.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "serve", "--folder", str(folder), "--port", "0", "--workers", "0"]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")


def ended(process: subprocess.Popen[str]) -> str:
    """Everything else that it printed until it was asked to stop."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    return out + err


def test_the_command_makes_a_folder_and_prints_an_address_and_no_secret() -> None:
    with quick_folder() as place:
        folder = Path(place) / "desk"
        process, told = started(folder, "--json")
        try:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+", told["url"])
            assert told["first_link"] == str(folder / FIRST_FILE)
            link = (folder / FIRST_FILE).read_text().strip()
            for name in (FIRST_FILE, "server.sqlite"):
                assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
            assert "Choose" not in httpx.get(link).text
            assert "You are the first" in httpx.get(link).text
        finally:
            printed = ended(process)
        code = link.split("code=")[1]
        assert code not in printed + json.dumps(told)
        assert not [p for p in folder.rglob("*") if p.suffix == ".log"]
        assert main(["serve", "--folder", str(folder), "--port", "0", "--check"]) == 0
        assert main(["serve", "--folder", str(folder), "--root", "nothing"]) == 2


@pytest.mark.slow
def test_the_demonstration_has_a_survey_accounts_and_a_tour() -> None:
    with quick_folder() as place:
        process, told = started(Path(place) / "demo", "--demo", "--json")
        try:
            assert told["first_link"] == ""
            with httpx.Client(base_url=told["url"], follow_redirects=True, timeout=240) as client:
                for name in ("andy", "clara", "olga", "ruth"):
                    token = csrf(client.get("/sign-in").text)
                    said = {"csrf": token, "name": name, "password": "demo-demo-42"}
                    page = client.post("/sign-in", data=said).text
                    assert "A tour in four steps" in page, name
                    assert "Survey of visits" in page, name
                    assert "every person in these tables is made up" in page
        finally:
            ended(process)


# --- people ---------------------------------------------------------------------------------------------------
def test_who_asks_is_the_name_of_the_session_whatever_a_form_says(desk_server: Served) -> None:
    client = desk_server.client("andy")
    said = {"where": "age > 55", "analyst": "ben", "person": "ben", "name_of": "ben", "by_name": "ben"}
    job = ask(client, **said, title="of ben").url.path.split("/")[2]
    desk_server.wait(client, job)
    found = desk_server.desk.store.one(JOBS, id=job)
    assert found is not None
    assert found["person"] == "andy"
    told = desk_server.desk.answer(found)["releases"][0]["certificate"]["data"]["asked_by"]
    assert told == "andy"
    head = {"Authorization": f"Bearer {desk_server.token('andy')}"}
    for words in ({"analyst": "ben"}, {"budget": {"analyst": "ben"}}, {"data": {"path": "/etc/passwd"}}):
        body = {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.1}, **words}
        for verb in ("preview", "release", "request"):
            path = f"{desk_server.url}/api/v1/tables/people/{verb}"
            assert httpx.post(path, json=body, headers=head).status_code == 422, (verb, words)


def test_an_unknown_name_costs_the_same_hash(desk_server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = desk_server.desk.accounts
    tried: list[str] = []

    class Counted:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def hash(self, password: str) -> str:
            return str(self._inner.hash(password))

        def verify(self, kept: str, password: str) -> bool:
            tried.append(kept)
            return bool(self._inner.verify(kept, password))

    monkeypatch.setattr(accounts, "_hasher", Counted(accounts._hasher))
    for name in ("andy", "nobody.here"):
        with pytest.raises(tacit.errors.NotAllowed):
            accounts.sign_in(name, "wrong word here", "10.9.9.9")
    known, dummy = tried
    row = desk_server.desk.store.one(PEOPLE, name="andy")
    assert row is not None
    assert known == row["password"] != dummy
    assert all(kept.startswith("$argon2id$") for kept in tried)
    # The strength of the hashes that a real server makes.
    hasher = rules.Directory(desk_server.desk.store, session_hours=1, idle_minutes=1)._hasher
    assert hasher.memory_cost >= 19 * 1024
    assert hasher.time_cost >= 2


def test_a_session_is_new_at_sign_in_and_a_planted_one_is_not_taken_over(desk_server: Served) -> None:
    client = desk_server.client()
    client.cookies.set("tacit-session", "planted-by-somebody-else-planted-by", domain="127.0.0.1", path="/")
    token = csrf(client.get("/sign-in").text)
    client.post("/sign-in", data={"csrf": token, "name": "andy", "password": PASSWORD})
    secrets = {c.value for c in client.cookies.jar if c.name == "tacit-session"} - {None}
    assert "planted-by-somebody-else-planted-by" not in {
        s for s in secrets if s and desk_server.desk.accounts.session(s) is not None
    }
    assert any(desk_server.desk.accounts.session(s) for s in secrets if s)


def test_a_token_is_shown_once_and_counts_in_a_header_only(desk_server: Served) -> None:
    client = desk_server.client("ben")
    said = {"csrf": csrf(client.get("/account").text), "act": "token", "label": "nightly", "days": "1"}
    page = client.post("/account", data={**said, "scopes": "read"}).text
    [token] = set(re.findall(r"tacit_[\w-]{20,}", page))
    assert token not in client.get("/account").text
    path = f"{desk_server.url}/api/v1/tables"
    found = httpx.get(path, headers={"Authorization": f"Bearer {token}"})
    assert found.status_code == 200
    assert "set-cookie" not in found.headers
    assert httpx.get(path, params={"token": token, "access_token": token}).status_code == 401
    for cookie in (f"token={token}", f"Authorization=Bearer {token}", f"tacit-session={token}"):
        assert httpx.get(path, headers={"cookie": cookie}).status_code == 401
    assert httpx.get(path, headers={"Authorization": f"Basic {token}"}).status_code == 401


def test_the_first_link_ends_after_a_quarter_of_an_hour() -> None:
    with quick_folder() as folder:
        from support.servers import settings_for
        from tacit.server.desk import opened

        with opened(settings_for(Path(folder) / "desk")) as desk:
            link = desk.accounts.first_link(desk.settings.folder, "http://127.0.0.1")
            code = link.split("code=")[1]
            assert desk.accounts.link(code) is not None
            [row] = desk.store.all(LINKS)
            assert 14 * 60 < row["expires"] - time.time() <= 15 * 60
            desk.store.change(LINKS, [], expires=time.time() - 1)
            assert desk.accounts.link(code) is None
            with pytest.raises(tacit.errors.NotAllowed, match="too old"):
                desk.accounts.welcome(code, "ada", PASSWORD)
            assert desk.store.all(PEOPLE) == []


def test_a_passphrase_is_typed_for_each_approval_and_the_command_signs_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_server() as found:
        officer, head = found.client("olga"), {"Authorization": f"Bearer {found.token('andy')}"}

        def waiting(epsilon: float) -> tuple[str, dict[str, str]]:
            body = {"releases": [{"kind": "count"}], "spend": {"epsilon": epsilon}}
            made = httpx.post(f"{found.url}/api/v1/tables/people/request", json=body, headers=head).json()
            page = officer.get(f"/requests/people/{made['request']}").text
            digest = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
            assert digest is not None
            return f"/requests/people/{made['request']}", {"csrf": csrf(page), "digest": digest[1]}

        where, said = waiting(0.01)
        assert (
            "is approved"
            in officer.post(where, data={**said, "act": "approve", "passphrase": PASSPHRASE}).text
        )
        where, said = waiting(0.02)
        for words in ({}, {"passphrase": ""}, {"passphrase": PASSWORD}):
            assert officer.post(where, data={**said, "act": "approve", **words}).status_code == 403
        # `tacit key sign` on another machine: what it prints is what the page takes.
        capsys.readouterr()
        assert main(["key", "make", str(tmp_path / "olga.key")]) == 0
        public = (tmp_path / "olga.key.pub").read_text()
        officer.post("/account", data={"csrf": said["csrf"], "act": "bring-key", "key": public})
        clara = found.client("clara")
        grant = {"csrf": csrf(clara.get("/account").text), "act": "grant", "name": "olga"}
        clara.post("/tables/people", data={**grant, "roles": "approver"})
        capsys.readouterr()
        assert main(["key", "sign", str(tmp_path / "olga.key"), said["digest"]]) == 0
        printed = capsys.readouterr().out
        assert "tacit key sign KEYFILE" in officer.get(where).text
        assert "is approved" in officer.post(where, data={**said, "act": "sign", "signature": printed}).text
        # The signature of one request is none of another.
        where, said = waiting(0.03)
        found_ = officer.post(where, data={**said, "act": "sign", "signature": printed})
        assert found_.status_code == 403
        assert main(["key", "sign", str(tmp_path / "olga.key"), "not a digest"]) == 2


# --- programs -------------------------------------------------------------------------------------------------
PLAN = """
[data]
path = "people.csv"
table = "people"
version = "{version}"

[protect]
unit = "people"
column = "person"
at_most = 3

[schema.age]
kind = "integer"
low = 0
high = 120

[schema.region]
kind = "category"
keys = ["north", "south"]

[schema.income]
kind = "number"
low = 0
high = 5000

[budget]
epsilon = 4.0
analyst = "andy"

[spend]
epsilon = 0.1

[[release]]
kind = "mean"
column = "age"
by = ["region"]
"""


def test_previews_have_the_words_of_the_command_line(
    desk_server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    """One question to the command and over HTTP: the same digest, price, errors and fit."""
    table = desk_server.desk.store.one(TABLES, name="people")
    assert table is not None
    assert DECLARED["budget"] == {"epsilon": 4.0}
    plan = desk_server.settings.roots["tables"] / "preview.toml"
    plan.write_text(PLAN.format(version=table["version"]))
    capsys.readouterr()
    assert main(["plan", str(plan), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    head = {"Authorization": f"Bearer {desk_server.token('andy')}"}
    asked = {
        "releases": [{"kind": "mean", "column": "age", "by": ["region"]}],
        "spend": {"epsilon": 0.1},
    }
    found = httpx.post(f"{desk_server.url}/api/v1/tables/people/preview", json=asked, headers=head).json()
    assert set(told) - {"plan"} <= set(found)
    for word in ("digest", "charge", "releases", "budget"):
        assert found[word] == told[word], word
    assert set(found["fit"]) == set(told["fit"])
    custodian = {"Authorization": f"Bearer {desk_server.token('clara')}"}
    place = str(desk_server.settings.roots["tables"] / "people.ledger")
    assert main(["ledger", "show", place, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    ledger = httpx.get(f"{desk_server.url}/api/v1/tables/people/ledger", headers=custodian).json()
    assert set(shown) == set(ledger)


def test_a_curator_from_afar_asks_for_an_approval(desk_server: Served) -> None:
    survey = tacit.connect(desk_server.url, token=desk_server.token("andy"), table="people")
    plan = survey.preview(tacit.count(where="age > 56"), epsilon=0.012)
    number = survey.request(plan, note="from afar")
    assert "from afar" in desk_server.client("olga").get(f"/requests/people/{number}").text
    assert survey.request(plan, note="from afar") == number


# --- jobs and files -------------------------------------------------------------------------------------------
def test_events_of_a_job_are_for_those_who_may_see_it(desk_server: Served) -> None:
    quote = {"title": "x", "asked": {}, "digest": "d", "key": "k", "price": "p"}
    job = jobs.submit(
        desk_server.desk.store, quote, table="people", version="2026", person="andy", request=96
    )
    for name, code in (("ben", 404), ("andy", 200), ("clara", 200), ("olga", 200), ("ruth", 200)):
        assert desk_server.client(name).get(f"/jobs/{job}/events").status_code == code, name
    client = desk_server.client()
    client.follow_redirects = False
    assert client.get(f"/jobs/{job}/events").status_code == 303


def test_no_directory_is_served(desk_server: Served) -> None:
    client = desk_server.client("andy")
    job = ask(client, where="age > 57").url.path.split("/")[2]
    desk_server.wait(client, job)
    for path in (
        "/static/", "/static", "/static/%2e%2e/app.py", "/static/desk.css/", "/public/",
        f"/releases/{job}/files/", f"/releases/{job}/files", f"/releases/{job}/files/values",
        f"/releases/{job}/files/values/", f"/releases/{job}/files/..%2f..%2fserver.sqlite",
    ):  # fmt: skip
        assert client.get(path).status_code == 404, path


def test_an_engine_of_a_server_reaches_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("x\n1\n")
    monkeypatch.setattr(engines, "_confined", None)
    engines.confine([tmp_path / "inside"])
    engine = engines.started("1GB", "a.csv")
    try:
        assert engine.run(f"SELECT x FROM '{tmp_path}/inside/a.csv'").fetchall() == [(1,)]
        for statement in (
            f"SELECT * FROM '{tmp_path}/outside/a.csv'",
            f"SELECT * FROM '{tmp_path}/inside/../outside/a.csv'",
            "SELECT * FROM read_text('/etc/passwd')",
            f"COPY (SELECT 1) TO '{tmp_path}/outside/b.csv'",
            f"ATTACH '{tmp_path}/outside/c.db'",
            "SET enable_external_access = true",
            "SET allowed_directories = ['/']",
            "SET lock_configuration = false",
            "INSTALL httpfs",
            "LOAD httpfs",
        ):
            with pytest.raises(duckdb.Error):
                engine.run(statement)
    finally:
        engine.close()
    assert sorted(os.listdir(tmp_path / "outside")) == ["a.csv"]
