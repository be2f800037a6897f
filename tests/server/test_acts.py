"""Every act of a page that changes something, done over HTTP by who may do it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.ledgers import quick_folder
from support.servers import (
    PASSWORD,
    ROWS,
    Served,
    csrf,
    form_of,
    people_of,
    served,
    settings_for,
    small_server,
)
from tacit.server import jobs
from tacit.server.store import AUDIT, JOBS, TABLES


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """A server of this file's own: it withdraws, and declares versions."""
    with small_server() as found:
        yield found


def ask(client: httpx.Client, **words: str) -> httpx.Response:
    page = client.get("/tables/people/ask").text
    said = {
        "csrf": csrf(page),
        "form": form_of(page),
        "basket": "[]",
        "kind": "count",
        "act": "release",
        "pay": "1",
    }
    return client.post("/tables/people/ask", data={**said, **words})


def released(server: Served, **words: str) -> str:
    client = server.client("andy")
    page = server.wait(client, ask(client, **words).url.path.split("/")[2])
    assert "/releases/" in str(page.url), page.text
    return page.url.path.split("/")[2]


def act(client: httpx.Client, path: str, **words: Any) -> httpx.Response:
    return client.post(path, data={"csrf": csrf(client.get("/account").text), **words})


def table(server: Served) -> Any:
    found = server.desk.store.one(TABLES, name="people")
    assert found is not None
    return found


def test_an_approver_proposes_and_the_custodian_decides(server: Served) -> None:
    job = released(server, kind="mean", column="age", rows="1000")
    custodian, officer, analyst = (server.client(n) for n in ("clara", "olga", "andy"))
    here = f"/releases/{job}"
    assert act(officer, here, act="propose", reason="").status_code == 422
    assert "sees your proposal" in act(officer, here, act="propose", reason="bounds too tight").text
    assert act(analyst, here, act="propose", reason="x").status_code == 403
    for name, sees in (("clara", True), ("olga", True), ("ruth", True), ("andy", False), ("ben", False)):
        assert ("bounds too tight" in server.client(name).get("/requests").text) is sees, name
    assert act(officer, here, act="withdraw", reason="now").status_code == 403
    # Kept: the proposal is closed, the release stays.
    assert "The release stays" in act(custodian, here, act="keep").text
    assert "bounds too tight" not in custodian.get("/requests").text
    assert server.desk.corrections(server.desk.job(job, server.desk.accounts.person("clara"))) == []  # type: ignore[arg-type]
    # Followed: the proposal is done with the withdrawal.
    act(officer, here, act="propose", reason="bounds too tight")
    assert act(custodian, here, act="withdraw", reason="").status_code == 422
    assert "Do not use this release" in act(custodian, here, act="withdraw", reason="too tight").text
    assert "bounds too tight" not in custodian.get("/requests").text
    assert act(custodian, here, act="publish", title="", summary="").status_code == 403


def test_replace_a_release_and_take_one_out_of_the_catalogue(server: Served) -> None:
    old, new = (
        released(server, kind="sum", column="income"),
        released(server, kind="sum", column="income", pay="5"),
    )
    custodian, anybody = server.client("clara"), server.client()
    public = act(custodian, f"/releases/{old}", act="publish", title="Income", summary="All of it").url.path
    assert "All of it" in anybody.get("/public").text
    assert (
        act(
            custodian, f"/releases/{old}", act="replace", reason="more exact", **{"with": "nothing"}
        ).status_code
        == 404
    )
    page = act(custodian, f"/releases/{old}", act="replace", reason="more exact", **{"with": new})
    assert "The later release replaces this one" in page.text
    assert "more exact" in anybody.get(public).text
    assert "<td" not in anybody.get(public).text
    assert "Do not use" not in custodian.get(f"/releases/{new}").text
    later = server.client("andy").get(f"/releases/{new}/files/report.html").text
    assert "replaces" in later
    assert "no longer in the public catalogue" in act(custodian, f"/releases/{old}", act="unpublish").text
    assert anybody.get(public).status_code == 404
    assert "All of it" not in anybody.get("/public").text
    # What stands in the ledger holds still, by the button.
    verified = act(custodian, f"/releases/{new}", act="verify").text
    assert "Everything that could be checked holds" in verified


def test_the_ledger_is_filtered_exported_and_verified(server: Served) -> None:
    released(server, kind="median", column="age")
    auditor = server.client("ruth")
    page = auditor.get("/ledger/people").text
    assert "quantiles-age" in page
    assert "andy" in page
    for query, there in (
        ({"words": "quantiles"}, True), ({"words": "nothing at all"}, False), ({"analyst": "ben"}, False),
        ({"state": "committed"}, True), ({"state": "failed"}, False), ({"analyst": "andy", "words": "QUANTILES"}, True),
    ):  # fmt: skip
        assert ("quantiles-age" in auditor.get("/ledger/people", params=query).text) is there, query
    found = auditor.get("/ledger/people/export")
    assert found.headers["content-disposition"] == 'attachment; filename="people-ledger.jsonl"'
    lines = [json.loads(line) for line in found.text.splitlines()]
    assert len(lines) > 5
    told = [part for line in lines if isinstance(part := line.get("answer"), dict)]
    assert all(set(part) <= {"kind", "sha256", "size"} for part in told)
    assert "the chain is whole" in act(auditor, "/ledger/people/verify").text
    assert server.client("andy").get("/ledger/people/export").status_code == 403


def test_versions_rules_records_and_parts_of_a_table(server: Served) -> None:
    custodian, here = server.client("clara"), "/tables/people"
    assert act(custodian, here, act="version", version="2026").status_code == 422
    assert "The version is declared" in act(custodian, here, act="version", version="2026-b").text
    assert table(server)["version"] == "2026-b"
    assert "version 2026-b" in server.client("andy").get("/tables").text
    assert "setting is changed" in act(custodian, here, act="record", shared="no").text
    assert not table(server)["share_record"]
    assert "setting is changed" in act(custodian, here, act="record", shared="yes").text
    assert "Every release needs an approval" in act(custodian, here, act="rule", four_eyes="yes").text
    waiting = ask(server.client("andy"), kind="median", column="income")
    assert "waits for an approval" in waiting.text
    # Taken back by who asked, and by nobody else.
    job = waiting.url.path.split("/")[2]
    number = server.desk.store.one(JOBS, id=job)["request"]  # type: ignore[index]
    assert act(server.client("ben"), f"/requests/people/{number}", act="back").status_code == 404
    assert "is taken back" in act(server.client("andy"), f"/requests/people/{number}", act="back").text
    assert server.desk.store.one(JOBS, id=job)["state"] == "cancelled"  # type: ignore[index]
    assert "No approval is demanded" in act(custodian, here, act="rule", four_eyes="no").text
    # A part that is taken away closes the table.
    ben = server.client("ben")
    assert ben.get(here).status_code == 200
    act(custodian, here, act="grant", name="ben", amount="")
    assert ben.get(here).status_code == 404
    act(custodian, here, act="grant", name="ben", roles="analyst", amount="0.5")
    assert "Left for you: epsilon 0.5" in ben.get(here).text
    said = [x["what"] for x in server.desk.store.all(AUDIT)]
    assert {"new version", "record of each analyst", "gave a part in a table"} <= set(said)


def test_cancel_and_ask_again(server: Served) -> None:
    client = server.client("andy")
    head = {"Authorization": f"Bearer {server.token('andy')}"}
    said = {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.017}}
    job = server.client().post("/api/v1/tables/people/request", json=said, headers=head).json()["job"]
    version = str(table(server)["version"])
    assert act(server.client("ben"), f"/jobs/{job}", act="cancel").status_code == 404
    assert "cancelled before it began; nothing was charged" in act(client, f"/jobs/{job}", act="cancel").text
    page = client.get(f"/jobs/{job}").text
    again = {"csrf": csrf(page), "form": form_of(page), "act": "again"}
    made = client.post(f"/jobs/{job}", data=again)
    other = made.url.path.split("/")[2]
    assert other != job
    # The same button twice is one job.
    assert client.post(f"/jobs/{job}", data=again).url.path.split("/")[2] == other
    assert "/releases/" in str(server.wait(client, other).url)
    # After a new version the same is another question: the old button does not ask it.
    act(server.client("clara"), "/tables/people", act="version", version=f"{version}-c")
    assert 'value="again"' not in client.get(f"/jobs/{job}").text
    assert client.post(f"/jobs/{job}", data={**again, "form": "another-form-1"}).status_code == 403


def test_accounts_are_closed_opened_and_given_other_roles(server: Served) -> None:
    custodian, ben = server.client("clara"), server.client("ben")
    head = {"Authorization": f"Bearer {server.token('ben')}"}
    assert ben.get("/tables").url.path == "/tables"
    assert "is closed" in act(custodian, "/people", act="close", name="ben").text
    assert ben.get("/tables").url.path == "/sign-in"
    assert httpx.get(f"{server.url}/api/v1/tables", headers=head).status_code == 401
    assert "is open" in act(custodian, "/people", act="open", name="ben").text
    assert httpx.get(f"{server.url}/api/v1/tables", headers=head).status_code == 401
    ben = server.client("ben")
    act(custodian, "/people", act="roles", name="ben", roles="auditor")
    assert ben.get("/tables/people/ask").status_code == 403
    assert ben.get("/ledger/people").status_code == 200
    act(custodian, "/people", act="roles", name="ben", roles="analyst")
    assert ben.get("/ledger/people").status_code == 403
    found = act(custodian, "/people", act="reset", name="ben").text
    link = re.search(r"(/welcome\?code=[\w-]+)", found)
    assert link is not None
    assert ben.get("/tables").url.path == "/sign-in"
    page = ben.get(link[1]).text
    said = {"csrf": csrf(page), "code": link[1].split("=")[1], "password": PASSWORD, "again": PASSWORD}
    assert ben.post("/welcome", data=said).url.path == "/tables"


def test_limits_refuse_and_drop_nothing(server: Served) -> None:
    head, limits = {"Authorization": f"Bearer {server.token('andy')}"}, server.settings.limits
    count = {"kind": "count"}
    for asked, word in (
        ({"releases": [count] * (limits.questions + 1)}, "at most 20 at once"),
        ({"releases": [{**count, "where": "age > 1 and " * 100 + "age > 1"}]}, "at most 1000 characters"),
        ({"releases": [{"kind": "histogram", "column": "income", "bins": limits.cells + 1}]}, "20,001"),
    ):
        said = {**asked, "spend": {"epsilon": 0.1}}
        for verb in ("preview", "release", "request"):
            found = server.client().post(f"/api/v1/tables/people/{verb}", json=said, headers=head)
            assert found.status_code in (409, 422), (word, found.text)
            assert word in found.text
    # Seconds: the process that computes for too long is gone, and the next price is computed.
    short = replace(server.desk.settings, limits=replace(limits, preview_seconds=0.0))
    kept, server.desk.settings = server.desk.settings, short
    slow = {
        "releases": [{"kind": "histogram", "column": "income", "bins": 19_000}],
        "spend": {"epsilon": 0.1},
    }
    told = []
    for _ in range(4):
        told.append(server.client().post("/api/v1/tables/people/preview", json=slow, headers=head))
    server.desk.settings = kept
    assert any("takes longer than the server allows" in t.text and t.status_code == 409 for t in told)
    assert server.client().post("/api/v1/tables/people/preview", json=slow, headers=head).status_code == 200


def test_too_many_requests_and_streams_are_asked_to_wait(server: Served) -> None:
    few = replace(server.desk.settings, limits=replace(server.settings.limits, requests_per_minute=5))
    with quick_folder() as folder:
        made = settings_for(Path(folder) / "desk")
        with served(replace(made, limits=few.limits), workers=False) as found:
            minute = int(time.monotonic() // 60)
            codes = [found.client().get("/public").status_code for _ in range(8)]
            if int(time.monotonic() // 60) == minute:
                assert codes == [200] * 5 + [429] * 3
            assert found.client().get("/api/v1/published").status_code == 429
    with server.desk._lock:
        server.desk._streams["andy"] = 12
    quote = {"title": "x", "asked": {}, "digest": "d", "key": "k", "price": "p"}
    job = jobs.submit(server.desk.store, quote, table="people", version="1", person="andy", request=98)
    assert server.client("andy").get(f"/jobs/{job}/events").status_code == 429
    with server.desk._lock:
        server.desk._streams["andy"] = 0


def test_named_connections_and_a_folder_for_ledgers(tmp_path: Path) -> None:
    """A custodian chooses a connection by its name; pattern and path are the operator's, and stay there."""
    folder, data = tmp_path / "desk", tmp_path / "elsewhere"
    folder.mkdir()
    data.mkdir()
    for part in ("a", "b"):
        (data / f"visits-{part}.csv").write_text(ROWS)
    (folder / "server.toml").write_text(
        f'ledgers = "kept"\n[connections.visits]\npath = "{data}/visits-*.csv"\npattern = true\n'
    )
    with served(settings_for(folder), workers=False) as found:
        people_of(found.desk)
        client = found.client("clara")
        listed = client.get("/new-table").text
        assert "visits" in listed
        assert str(data) not in listed
        assert "visits-a" not in listed
        page = client.get("/new-table/declare", params={"source": "connection:visits"}).text
        assert "income" in page
        assert "1049" not in page
        said = {
            "source": "connection:visits", "name": "visits", "unit": "people", "person": "person", "at_most": "6",
            "kind:1": "integer", "low:1": "0", "high:1": "120", "budget": "pure", "epsilon": "1", "act": "declare",
        }  # fmt: skip
        made = act(client, "/new-table/declare", **said)
        assert made.url.path == "/tables/visits", made.text
        assert (folder / "kept" / "visits.ledger").exists()
        assert not list(data.glob("*.ledger"))
        told = act(client, "/new-table/declare", **{**said, "name": "again"})
        assert told.status_code == 422
        for text in (told.text, client.get("/tables/visits").text, client.get("/ledger/visits").text):
            assert str(tmp_path) not in text


def test_over_tls_cookies_are_secure_and_browsers_are_told_to_stay() -> None:
    with quick_folder() as folder:
        made = settings_for(Path(folder) / "desk", public_url="https://desk.example.org")
        with served(made, workers=False) as found:
            head = {"host": "desk.example.org", "x-forwarded-for": "10.1.1.1, 10.2.2.2"}
            page = httpx.get(f"http://127.0.0.1:{found.settings.port}/sign-in", headers=head)
            assert page.status_code == 200
            assert "Secure" in page.headers["set-cookie"]
            assert page.headers["strict-transport-security"] == "max-age=31536000"
            people_of(found.desk)
            said = {"csrf": csrf(page.text), "name": "andy", "password": "wrong word here"}
            cookies = {"cookie": page.headers["set-cookie"].split(";")[0]}
            where = f"http://127.0.0.1:{found.settings.port}/sign-in"
            assert httpx.post(where, data=said, headers={**head, **cookies}).status_code == 403
            # The last address is the proxy's own word; what stands before it is the client's.
            assert found.desk.store.all(AUDIT)[-1]["address"] == "10.2.2.2"


def test_a_table_is_declared_with_bounds_that_people_typed(server: Served) -> None:
    """Every kind of column and of budget of the form."""
    root, client = server.settings.roots["tables"], server.client("clara")
    (root / "kinds.csv").write_text("day,flag,code,weight\n2026-01-31,true,3,1.5\n")
    page = client.get("/new-table/declare", params={"source": "tables/kinds.csv"}).text
    assert "1.5" not in page
    assert "Nobody is below" in page
    said = {
        "source": "tables/kinds.csv", "name": "kinds", "title": "Kinds", "unit": "rows", "version": "1",
        "kind:0": "date", "low:0": "2026-01-01", "high:0": "2026-12-31", "kind:1": "flag", "kind:2": "category",
        "keys:2": "1, 2, 3", "codes:2": "yes", "kind:3": "number", "low:3": "0", "high:3": "1,5", "act": "declare",
    }  # fmt: skip
    for wrong, word in (
        ({"unit": ""}, "protect"), ({"epsilon": "much"}, "budget"), ({"low:0": "yesterday"}, "day"),
        ({"high:3": ""}, "weight"), ({"epsilon": "1", "budget": "approximate", "delta": ""}, "delta"),
        ({"epsilon": "1", "kind:0": "skip", "kind:1": "skip", "kind:2": "skip", "kind:3": "skip"}, "columns"),
        ({"epsilon": "1", "name": "../x"}, "name"),
    ):  # fmt: skip
        found = act(client, "/new-table/declare", **{**said, "budget": "rho", **wrong})
        assert found.status_code == 422, wrong
        assert word in re.findall(r'role="alert">([^<]+)', found.text)[0], wrong
        # What was typed is still there.
        assert 'value="2026-12-31"' in found.text
    made = act(client, "/new-table/declare", **said, budget="rho", epsilon="0.5")
    assert made.url.path == "/tables/kinds", made.text
    declared = json.loads(server.desk.store.one(TABLES, name="kinds")["declaration"])  # type: ignore[index]
    assert declared["schema"]["code"] == {"kind": "category", "keys": [1, 2, 3]}
    assert declared["schema"]["weight"] == {"kind": "number", "low": 0, "high": 1.5}
    assert declared["budget"] == {"rho": 0.5}
