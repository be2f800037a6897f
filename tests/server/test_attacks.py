"""What somebody who did not write this room found with a server at hand; each broke in before it was mended."""

from __future__ import annotations

import html
import json
import re
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from sqlalchemy.engine import make_url

from support.ledgers import quick_folder
from support.servers import (
    DECLARED,
    ROWS,
    Served,
    csrf,
    form_of,
    people_of,
    served,
    settings_for,
    table_of,
)
from tacit.cli import main
from tacit.errors import InvalidParameter, LedgerError, NotAllowed
from tacit.server import jobs, work
from tacit.server.demo import checked, fill
from tacit.server.desk import Desk, opened
from tacit.server.pool import Pool, RemoteProblem
from tacit.server.store import AUDIT, JOBS, PEOPLE, TABLES, in_schema, now
from tacit.server.worker import Worker

COUNT = {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.5}}


class Direct:
    """Calls as a pool of processes takes them, made here."""

    def call(self, name: str, *given: Any, seconds: float) -> Any:
        return work.CALLS[name](*given)

    def close(self) -> None: ...


@pytest.fixture
def desk() -> Iterator[Desk]:
    with quick_folder() as folder, opened(settings_for(Path(folder) / "desk")) as found:
        found.pool = found.slow = Direct()  # type: ignore[assignment]
        people_of(found)
        table_of(found)
        yield found


def row(desk: Desk) -> Any:
    found = desk.store.one(TABLES, name="people")
    assert found is not None
    return found


def person(desk: Desk, name: str) -> Any:
    found = desk.accounts.person(name)
    assert found is not None
    return found


def submitted(desk: Desk, who: str, asked: Any = COUNT, version: str = "2026", **words: Any) -> str:
    quote = work.quote(desk.place(row(desk)), asked, who, desk.limits)
    return jobs.submit(desk.store, quote, table="people", version=version, person=who, **words)


def job_of(desk: Desk, number: str) -> Any:
    found = desk.store.one(JOBS, id=number)
    assert found is not None
    return found


def worked(desk: Desk, number: str) -> Any:
    worker = Worker(desk.store, desk.settings.releases, desk.settings.database)
    taken = jobs.claim(desk.store, worker.name)
    assert taken is not None
    assert taken["id"] == number
    worker.run(taken)
    return job_of(desk, number)


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


def released(server: Served, name: str, **words: str) -> str:
    client = server.client(name)
    page = server.wait(client, ask(client, **words).url.path.split("/")[2])
    assert "/releases/" in str(page.url), page.text
    return page.url.path.split("/")[2]


# --- what tells when a read ended ---------------------------------------------------------------------------
def test_files_tell_no_time_of_their_making(desk_server: Served) -> None:
    """The time of a file is the end of the read to the second, and its tag the same to the microsecond."""
    job, client = released(desk_server, "andy", where="age > 51"), desk_server.client("andy")
    names = set(re.findall(r'href="(/releases/[^"]+/files/[^"]+)"', client.get(f"/releases/{job}").text))
    assert len(names) >= 5
    for name in names:
        head = client.get(name).headers
        assert "last-modified" not in head
        assert "etag" not in head
        assert "accept-ranges" not in head
        if not name.endswith("report.html"):
            assert head["content-disposition"].startswith("attachment")


def test_the_same_question_at_once_is_charged_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tabs, two workers: the second waits for the first, and is answered from the record."""
    tick = 60.0
    first, second = submitted(desk, "andy"), submitted(desk, "ben")
    other = submitted(desk, "ben", {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.25}})
    worker = Worker(desk.store, desk.settings.releases, "", tick)
    mine = jobs.claim(desk.store, "one", tick)
    theirs = jobs.claim(desk.store, "two", tick)
    assert mine is not None
    assert theirs is not None
    assert (mine["id"], theirs["id"]) == (first, other)
    assert jobs.claim(desk.store, "three", tick) is None
    worker.run(mine)
    # Its end does not show yet: a second job that is answered at once would tell it.
    assert job_of(desk, first)["state"] == "done"
    assert jobs.claim(desk.store, "three", tick) is None
    desk.store.change(JOBS, [JOBS.c.id == first], started=now() - 120, ended=now() - 119)
    last = jobs.claim(desk.store, "three", tick)
    assert last is not None
    assert last["id"] == second
    worker.run(last)
    assert job_of(desk, second)["replayed"] == 1
    assert len([c for c in desk.ledger(row(desk)).charges() if c.analyst in ("andy", "ben")]) == 1


def test_two_claims_at_the_same_moment_take_two_questions(desk: Desk) -> None:
    for who in ("andy", "ben", "andy", "ben"):
        submitted(desk, who)
    taken: list[Any] = []
    threads = [
        threading.Thread(target=lambda i=i: taken.append(jobs.claim(desk.store, str(i)))) for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([t for t in taken if t is not None]) == 1


# --- withdrawn is withdrawn ---------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["the command line", "another job with the same charge"])
def test_a_withdrawal_reaches_every_copy(
    desk_server: Served, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"age > {60 + len(way)}"
    one, two = (released(desk_server, name, by="region", where=where) for name in ("andy", "ben"))
    custodian, anybody = desk_server.client("clara"), desk_server.client()
    token = csrf(custodian.get("/account").text)
    said = {"csrf": token, "act": "publish", "title": "By region", "summary": ""}
    public = custodian.post(f"/releases/{two}", data=said).url.path
    report = f"{public}/files/report.html"
    assert "north" in anybody.get(report).text
    for client, job in (("andy", one), ("ben", two)):
        assert "wrong unit" not in desk_server.client(client).get(f"/releases/{job}/files/report.html").text
    if way == "the command line":
        place, charge = (
            desk_server.desk.place(row(desk_server.desk))["ledger"],
            job_of(desk_server.desk, one)["charge"],
        )
        file = place or str(desk_server.settings.roots["tables"] / "people.ledger")
        assert main(["ledger", "withdraw", file, str(charge), "--note", "wrong unit", "--as", "clara"]) == 0
    else:
        custodian.post(f"/releases/{one}", data={"csrf": token, "act": "withdraw", "reason": "wrong unit"})
    # The public sees the reason and no value, by whatever path.
    for path in (public, report):
        page = anybody.get(path)
        assert "wrong unit" in page.text
        assert "north" not in page.text
        assert page.headers["cache-control"] == "no-cache"
    listed = next(p for p in anybody.get("/api/v1/published").json()["published"] if p["page"] == public)
    assert (listed["report"], len(listed["corrections"])) == ("", 1)
    for client, job in (("andy", one), ("ben", two)):
        assert "wrong unit" in desk_server.client(client).get(f"/releases/{job}/files/report.html").text


def test_another_version_is_never_labelled_as_the_one_that_was_asked(desk: Desk) -> None:
    """A job that waited for its approval while the rows were exchanged: it would say 2026 of the rows of 2027."""
    kept, waits = submitted(desk, "andy"), ""
    assert worked(desk, kept)["state"] == "done"
    other = {"releases": [{"kind": "mean", "column": "age"}], "spend": {"epsilon": 0.5}}
    waits = submitted(desk, "andy", other)
    again = submitted(desk, "andy")
    clara = person(desk, "clara")
    desk.new_version(row(desk), "2027", clara)
    found = worked(desk, waits)
    assert (found["state"], found["message"]) == ("refused", jobs.OLD_VERSION)
    assert len(desk.ledger(row(desk)).charges("andy")) == 1
    # What is on record about the old version stays free.
    found = worked(desk, again)
    assert (found["state"], found["replayed"]) == ("done", 1)
    assert len(desk.ledger(row(desk)).charges("andy")) == 1


# --- who is told what ---------------------------------------------------------------------------------------
def test_a_key_of_a_program_is_of_one_person(desk_server: Served) -> None:
    """With the same key for all, guessing another person's key told that it was used, and blocked theirs."""
    client = desk_server.client()
    said = {"releases": [{"kind": "count"}], "spend": {"epsilon": 0.011}, "key": "yearbook-2026"}
    heads = {n: {"Authorization": f"Bearer {desk_server.token(n)}"} for n in ("andy", "ben")}
    path = "/api/v1/tables/people/release"
    first = client.post(path, json=said, headers=heads["andy"])
    other = {**said, "releases": [{"kind": "median", "column": "age"}]}
    second = client.post(path, json=other, headers=heads["ben"])
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["job"] != second.json()["job"]
    assert client.post(path, json=said, headers=heads["andy"]).json()["job"] == first.json()["job"]
    assert client.post(path, json=other, headers=heads["andy"]).status_code == 422
    # Each finds the own job by the key, and nobody another's.
    for name, job in (("andy", first), ("ben", second)):
        found = client.get("/api/v1/jobs/yearbook-2026", headers=heads[name])
        assert found.json()["job"] == job.json()["job"]
    assert (
        client.get(
            "/api/v1/jobs/yearbook-2026", headers={"Authorization": f"Bearer {desk_server.token('clara')}"}
        ).status_code
        == 404
    )


def test_no_sentence_names_a_folder_of_the_server(desk: Desk) -> None:
    folder = desk.settings.roots["tables"]
    job = submitted(desk, "andy")
    (folder / "people.csv").unlink()
    work.confine_to(desk.folders, desk.named)
    try:
        found = worked(desk, job)
    finally:
        work._named.clear()
        work._folders.clear()
    assert found["state"] == "failed"
    assert "people.csv is not there" in found["message"]
    assert str(folder) not in found["message"]
    assert desk.unplaced(f"no {folder}/a.csv in {desk.settings.folder}/b") == "no a.csv in b"


def test_no_sentence_names_the_database(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that could not be read told an analyst the host of the database and its name."""
    from tacit.ledger.store import place_name

    url = "postgresql://desk:secret@db.internal.example:5432/people"
    name = place_name(make_url(in_schema(url, "tacit_ledger_x")))
    assert "db.internal.example" in name
    told = str(LedgerError(ledger=name, reason="is not a ledger"))
    monkeypatch.setattr(desk, "settings", replace(desk.settings, database=url))
    assert "db.internal" not in desk.unplaced(told)
    assert "the ledger in the server's database is not a ledger" in desk.unplaced(told)
    work.confine_to([], [], url)
    try:
        assert "db.internal" not in work.problem(LedgerError(ledger=name, reason="is lost"))["message"]
    finally:
        work.confine_to([])
    pool = Pool([], processes=1, said=desk.unplaced)
    monkeypatch.setattr(
        pool,
        "_started",
        lambda _: SimpleNamespace(
            ask=lambda *_: {"problem": work.problem(LedgerError(ledger=name, reason="x"))}
        ),
    )
    with pytest.raises(RemoteProblem) as problem:
        pool.call("quote", seconds=1)
    assert "db.internal" not in problem.value.message


def test_an_answer_that_was_paid_is_not_called_free_when_its_files_are_made_again(
    desk_server: Served,
) -> None:
    job, client = released(desk_server, "andy", where="age > 54"), desk_server.client("andy")
    assert "answered from the record" not in client.get(f"/releases/{job}").text
    shutil.rmtree(desk_server.settings.releases / job)
    assert "answered from the record" not in client.get(f"/releases/{job}").text
    other = released(desk_server, "ben", where="age > 54")
    assert "answered from the record" in desk_server.client("ben").get(f"/releases/{other}").text


@pytest.mark.parametrize("value", [
    json.loads("[" * 500 + '"region"' + "]" * 500), "a\ud800", 10**400, ["region", 2**64],
    {"column": {"column": {"column": {"x": [[[[[[1]]]]]]}}}},
], ids=["deep", "half a letter", "huge", "a bit too large", "tables"])  # fmt: skip
def test_odd_words_are_refused_in_a_sentence(desk: Desk, value: Any) -> None:
    for word in ("by", "name", "rows"):
        asked = {"releases": [{"kind": "count", word: value}], "spend": {"epsilon": 0.1}}
        with pytest.raises(InvalidParameter) as problem:
            work.quote(desk.place(row(desk)), asked, "andy", desk.limits)
        assert str(desk.settings.folder) not in problem.value.message


def test_a_basket_of_somebodys_own_making_is_a_refusal(desk_server: Served) -> None:
    client = desk_server.client("andy")
    for basket in (
        [{"kind": "count", "by": [{"x": 1}]}],
        [{"kind": ["x"], "by": 5}],
        [{"kind": "count", "by": {"a": 1}}],
    ):
        for act in ("add", "price", "release"):
            assert ask(client, basket=json.dumps(basket), act=act).status_code in (200, 422), (basket, act)


def test_many_jobs_of_others_push_nobodys_off_the_list(desk: Desk) -> None:
    own = submitted(desk, "andy")
    with desk.store.transaction() as connection:
        values = job_of(desk, own)
        for i in range(600):
            connection.execute(
                JOBS.insert().values(**{**values, "id": f"f{i}", "person": "ben", "created": now() + i})
            )
    assert [j["id"] for j in desk.jobs(person(desk, "andy"))] == [own]
    seen = desk.jobs(person(desk, "clara"))
    assert len(seen) == 500
    assert [j["id"] for j in desk.jobs(person(desk, "ruth"))] == [j["id"] for j in seen]


def test_one_person_verifies_one_release_at_a_time(desk: Desk) -> None:
    """Each holds a thread: forty at once held all of them, and others waited for their pages."""
    began, go = threading.Semaphore(0), threading.Event()

    class Slow(Direct):
        def call(self, name: str, *given: Any, seconds: float) -> Any:
            if name != "verify":
                return super().call(name, *given, seconds=seconds)
            began.release()
            go.wait(30)
            return {"ok": True}

    job = worked(desk, submitted(desk, "andy"))
    desk.settings = replace(desk.settings, limits=replace(desk.settings.limits, prices_at_once=2))
    desk.slow = Slow()  # type: ignore[assignment]
    andy, refused = person(desk, "andy"), threading.Semaphore(0)

    def verify() -> None:
        try:
            desk.verified(job, row(desk), andy)
        except NotAllowed:
            refused.release()

    threads = [threading.Thread(target=verify) for _ in range(6)]
    for thread in threads:
        thread.start()
    assert all(refused.acquire(timeout=30) for _ in range(4))
    assert began.acquire(timeout=30)
    assert not began.acquire(timeout=0.2)
    go.set()
    for thread in threads:
        thread.join()


# --- requests that were taken back --------------------------------------------------------------------------
def test_a_program_that_takes_its_request_back_takes_it_back_for_all(desk_server: Served) -> None:
    client = desk_server.client()
    head = {"Authorization": f"Bearer {desk_server.token('andy')}"}
    said = {"releases": [{"kind": "mean", "column": "income"}], "spend": {"epsilon": 0.013}}
    path = "/api/v1/tables/people/request"
    first = client.post(path, json=said, headers=head).json()
    assert f"request {first['request']} of andy" in desk_server.client("olga").get("/requests").text
    assert (
        client.post(f"/api/v1/jobs/{first['job']}/cancel", json={}, headers=head).json()["state"]
        == "cancelled"
    )
    assert f"request {first['request']} of andy" not in desk_server.client("olga").get("/requests").text
    second = client.post(path, json=said, headers=head).json()
    assert second["request"] != first["request"]
    assert client.get(f"/api/v1/jobs/{second['job']}", headers=head).json()["state"] == "asked"


def test_a_request_that_is_decided_elsewhere_does_not_wait_for_ever(desk_server: Served) -> None:
    """Closed by the command line: its page said that it waits for an approval, which nobody could give any more."""
    client, custodian = desk_server.client("andy"), desk_server.client("clara")
    head = {"Authorization": f"Bearer {desk_server.token('andy')}"}
    said = {"releases": [{"kind": "mean", "column": "income"}], "spend": {"epsilon": 0.014}}
    made = client.post("/api/v1/tables/people/request", json=said, headers=head).json()
    place = str(desk_server.settings.roots["tables"] / "people.ledger")
    words = ["ledger", "withdraw", place, str(made["request"]), "--note", "too fine", "--as", "clara"]
    assert main(words) == 0
    assert "no longer open in the ledger" in client.get(f"/jobs/{made['job']}").text
    found = client.get(f"/api/v1/jobs/{made['job']}", headers=head).json()
    assert (found["state"], found["charged"]) == ("cancelled", False)
    assert f"request {made['request']} of andy" not in custodian.get("/requests").text


# --- the door -----------------------------------------------------------------------------------------------
def test_no_answer_goes_by_the_host_that_was_given(desk_server: Served) -> None:
    """A path with a slash at its end was redirected to the very host that somebody claimed."""
    for path in ("/tables/", "/api/v1/tables/", "/api/v1/nothing", "/nothing"):
        found = httpx.get(desk_server.url + path, headers={"host": "evil.example"})
        assert found.status_code == 400, path
        assert "evil.example" not in str(found.headers) + found.text
        found = httpx.get(desk_server.url + path)
        assert found.status_code == 404, path
        assert found.headers["cache-control"] == "no-store"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["content-security-policy"].startswith("default-src 'none'")
    for content in (b"{", b"a=b"):
        assert httpx.post(desk_server.url + "/api/v1/nothing", content=content).status_code == 404


def test_an_odd_cookie_of_another_program_signs_nobody_out(desk_server: Served) -> None:
    """Programs on one host share its cookies, whatever is in them."""
    client = desk_server.client("andy")
    session = client.cookies["tacit-session"]
    for odd in ('a={"b": 1}', "a=b c", "=x", "a", "ä=ö", 'a="'):
        head = {"cookie": f"{odd}; tacit-session={session}".encode()}
        assert httpx.get(f"{desk_server.url}/tables", headers=head).status_code == 200, odd


def test_a_demonstration_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its passwords are known to everybody: in a real desk its custodian would be a way in, and would stay."""
    with quick_folder() as folder:
        made = settings_for(Path(folder) / "desk")
        with opened(made) as desk:
            desk.store.add(PEOPLE, name="zoe", roles='["custodian"]', created=now())
        with (
            opened(replace(made, demo=True)) as desk,
            pytest.raises(InvalidParameter, match="folder of its own"),
        ):
            checked(desk)
        with opened(made) as desk:
            checked(desk)
            assert [p["name"] for p in desk.accounts.people()] == ["zoe"]
        shown = settings_for(Path(folder) / "demo", demo=True)
        with opened(shown) as desk:
            checked(desk)
            monkeypatch.setattr("tacit.server.demo._table", lambda _: None)
            assert "demo-demo-42" in fill(desk)[0]
            checked(desk)
        with (
            opened(replace(shown, demo=False)) as desk,
            pytest.raises(InvalidParameter, match="demonstration"),
        ):
            checked(desk)
        public = replace(shown, public_url="https://desk.example.org")
        with opened(public) as desk, pytest.raises(InvalidParameter, match="public address"):
            checked(desk)


def test_a_ledger_that_is_out_of_reach_is_said_to_who_asked() -> None:
    """An analyst was told that nothing is here; a stranger still is."""
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk"), workers=False) as found:
        people_of(found.desk)
        table_of(found.desk)
        found.desk.accounts.invite("eve", ["analyst"])
        client = found.client("andy")
        assert "/jobs/" in str(ask(client).url)
        root = found.settings.roots["tables"]
        found.desk._ledgers.clear()
        for part in root.glob("people.ledger*"):
            part.rename(part.with_name(f"away-{part.name}"))
        page = client.get("/tables/people")
        assert page.status_code == 503
        assert str(root) not in page.text
        head = {"Authorization": f"Bearer {found.token('eve')}"}
        assert httpx.get(f"{found.url}/api/v1/tables/people", headers=head).status_code == 404


def test_a_character_of_the_code_0_is_nothing_and_no_fault_of_the_database(desk_server: Served) -> None:
    """PostgreSQL takes none: anybody could make a page say that the desk cannot be reached."""
    client = desk_server.client("clara")
    for path in ("/tables/%00", "/jobs/a%00", "/public/%00", "/welcome?code=%00", "/ledger/people?words=%00"):
        assert client.get(path).status_code == 404, path
    token = csrf(client.get("/account").text)
    assert client.post("/account", data={"csrf": token, "act": "revoke", "id": "\0"}).status_code == 422
    anybody = desk_server.client()
    said = {"csrf": csrf(anybody.get("/sign-in").text), "name": "a\0", "password": "a word or two"}
    assert anybody.post("/sign-in", data=said).status_code == 422


# --- a second attack ------------------------------------------------------------------------------------------
def test_a_proposal_about_made_up_rows_is_refused(desk_server: Served) -> None:
    """It stayed for ever: nobody withdraws or keeps a rehearsal."""
    client, officer = desk_server.client("andy"), desk_server.client("olga")
    page = desk_server.wait(client, ask(client, act="rehearse", where="age > 71").url.path.split("/")[2])
    said = {"csrf": csrf(officer.get("/account").text), "act": "propose", "reason": "made-up reason"}
    assert officer.post(page.url.path, data=said).status_code == 403
    assert "made-up reason" not in desk_server.client("clara").get("/requests").text


def test_who_may_ask_for_no_more_leaves_no_request_in_the_ledger() -> None:
    """The request was written before the refusal: an approver met a question that no page could show."""
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk"), workers=False) as found:
        people_of(found.desk)
        table_of(found.desk)
        found.desk.ledger(row(found.desk)).demand(True, by="clara")
        values = job_of(found.desk, submitted(found.desk, "andy"))
        with found.desk.store.transaction() as connection:
            for i in range(jobs.MOST_WAITING):
                connection.execute(JOBS.insert().values(**{**values, "id": f"w{i}", "key": f"k{i}"}))
        assert ask(found.client("andy"), pay="5").status_code == 422
        head = {"Authorization": f"Bearer {found.token('andy')}"}
        path = f"{found.url}/api/v1/tables/people/request"
        assert httpx.post(path, json=COUNT, headers=head).status_code == 429
        assert found.desk.ledger(row(found.desk)).requests() == {}


def test_who_may_ask_no_more_has_no_jobs_that_wait(desk: Desk) -> None:
    """Another role on the page People: what had waited was still charged and answered."""
    mine, others = submitted(desk, "andy"), submitted(desk, "ben", COUNT | {"spend": {"epsilon": 0.25}})
    desk.accounts.set_roles("andy", ["analyst", "auditor"], by="clara")
    assert job_of(desk, mine)["state"] == "queued"
    desk.accounts.set_roles("andy", ["auditor"], by="clara")
    assert job_of(desk, mine)["state"] == "cancelled"
    assert job_of(desk, others)["state"] == "queued"


def test_what_could_not_be_checked_is_not_said_to_be_wrong(desk_server: Served) -> None:
    """The labels are under no signature: the page said "DOES NOT HOLD" of them."""
    job, client = released(desk_server, "andy", where="age > 53"), desk_server.client("andy")
    said = {"csrf": csrf(client.get("/account").text), "act": "verify"}
    page = client.post(f"/releases/{job}", data=said).text
    assert "Everything that could be checked holds" in page
    assert "not checked: labels and titles are those of the custodian" in page
    assert "DOES NOT HOLD" not in page


def test_files_of_several_folders_are_named_from_the_folder_above_them(tmp_path: Path) -> None:
    """The plan of a release, which may be published, held the whole path of the second file."""
    for name in ("one", "two"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "visits.csv").write_text(ROWS)
    folder = tmp_path / "desk"
    folder.mkdir()
    listed = ", ".join(f'"{tmp_path}/data/{name}/visits.csv"' for name in ("one", "two"))
    (folder / "server.toml").write_text(f"[connections.visits]\npath = [{listed}]\n")
    with opened(settings_for(folder)) as found:
        data, beside = found.chosen("connection:visits")
        assert (data["path"], beside) == (["one/visits.csv", "two/visits.csv"], tmp_path / "data")
        found.pool = found.slow = Direct()  # type: ignore[assignment]
        people_of(found)
        clara = person(found, "clara")
        found.add_table("visits", "Visits", {**DECLARED, "data": {**data, "version": "1"}}, beside, clara)
        place = found.place(found.table("visits", clara))
        work.release(place, COUNT, "clara", found.settings.releases / "x", key="k")
        assert str(tmp_path) not in (found.settings.releases / "x" / "plan.toml").read_text()


def test_streams_that_begin_at_once_are_counted(desk: Desk) -> None:
    """Forty at the same moment all began: each looked before any was counted."""
    for _ in range(12):
        desk.may_stream("andy")
    with pytest.raises(NotAllowed, match="follow more"):
        desk.may_stream("andy")
    desk.may_stream("ben")
    desk.end_stream("andy")
    desk.may_stream("andy")


def test_streams_that_ended_make_room(desk_server: Served) -> None:
    client = desk_server.client("andy")
    quote = {"title": "x", "asked": {}, "digest": "d", "key": "k", "price": "p"}
    job = jobs.submit(
        desk_server.desk.store, quote, table="people", version="2026", person="andy", request=97
    )
    for _ in range(15):
        assert client.get(f"/jobs/{job}/events").status_code == 200
        assert client.request("HEAD", f"/jobs/{job}/events").status_code == 200
    # The reader of the last byte is a moment ahead of the server.
    until = time.monotonic() + 30
    while desk_server.desk._streams.get("andy", 0) and time.monotonic() < until:
        time.sleep(0.01)
    assert desk_server.desk._streams.get("andy", 0) == 0


def test_denied_and_stolen_things_are_in_the_audit_log(desk_server: Served) -> None:
    """A token that was revoked, and pages that are not for who asks, were tried without a trace."""
    token, store = desk_server.token("ben"), desk_server.desk.store
    head = {"Authorization": f"Bearer {token}"}
    found = desk_server.desk.accounts.token(token)
    assert found is not None
    desk_server.desk.accounts.revoke("ben", found.token)
    assert httpx.get(f"{desk_server.url}/api/v1/tables", headers=head).status_code == 401
    last = store.all(AUDIT)[-1]
    assert (last["who"], last["what"], last["about"]) == ("ben", "refused: a token that has ended", "test")
    desk_server.client("ben").get("/tables/nothing%0Ahere")
    last = store.all(AUDIT)[-1]
    assert (last["who"], last["about"]) == ("ben", "GET /tables/nothing%0Ahere")
    assert last["what"] == "refused: nothing there for them"
    count = len(store.all(AUDIT))
    httpx.get(f"{desk_server.url}/api/v1/tables", headers={"Authorization": "Bearer tacit_nobodys"})
    desk_server.client().get("/public/nothing")
    assert len(store.all(AUDIT)) == count


def test_two_names_for_one_file_at_the_same_moment_are_one_table(tmp_path: Path) -> None:
    """Where no note can lie beside the file, both became tables, with two budgets for the same people."""
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "server.toml").write_text('ledgers = "kept"\n')
    with opened(settings_for(tmp_path / "desk")) as found:
        people_of(found)
        root, clara = found.settings.roots["tables"], person(found, "clara")
        (root / "people.csv").write_text(ROWS)
        tried = []

        class Between(Direct):
            def call(self, name: str, *given: Any, seconds: float) -> Any:
                if name == "declare" and not tried:
                    tried.append("other")
                    found.add_table("other", "Other", DECLARED, root, clara)
                    for note in root.glob("*.ledger*"):
                        note.unlink()
                return super().call(name, *given, seconds=seconds)

        found.slow = Between()  # type: ignore[assignment]
        with pytest.raises(InvalidParameter, match="another table here"):
            found.add_table("people", "People", DECLARED, root, clara)
        assert [t["name"] for t in found.store.all(TABLES)] == ["other"]


def test_whoever_signs_sees_bins_and_levels(desk_server: Served) -> None:
    """The page told "counts for each income", and the edges between which one income lies stood nowhere."""
    head = {"Authorization": f"Bearer {desk_server.token('andy')}"}
    asked = [
        {"kind": "histogram", "column": "income", "bins": [0, 1049, 1050, 5000]},
        {"kind": "quantiles", "column": "age", "at": [0.01, 0.99], "where": "region = 'north'"},
        {"kind": "mean", "column": "age", "by": [{"column": "income", "bins": [0, 777, 5000]}]},
    ]
    path = f"{desk_server.url}/api/v1/tables/people/request"
    made = httpx.post(path, json={"releases": asked, "spend": {"epsilon": 0.019}}, headers=head).json()
    page = desk_server.client("olga").get(f"/requests/people/{made['request']}").text
    for words in (
        "bins = [0, 1049, 1050, 5000]",
        "at = [0.01, 0.99]",
        "where = \"region = 'north'\"",
        '"bins": [0, 777, 5000]',
    ):
        assert words in html.unescape(page), words


def test_certificates_of_functions_give_auditors_and_readers_of_withdrawn_ones_no_values(
    desk_server: Served,
) -> None:
    """The certificate of a density is its function: an auditor had it, and everybody after a withdrawal."""
    desk, anybody = desk_server.desk, desk_server.client()
    table_of(desk, "shapes", protect={"unit": "rows"}, budget={"epsilon": 9.0})
    heads = {n: {"Authorization": f"Bearer {desk_server.token(n)}"} for n in ("andy", "olga", "ruth")}
    asked = {"releases": [{"kind": "density", "columns": ["age"], "size": 1200}, {"kind": "count"}]}
    path = "/api/v1/tables/shapes/release"
    job = anybody.post(path, json={**asked, "spend": {"epsilon": 1.0}}, headers=heads["andy"]).json()["job"]
    desk_server.wait(desk_server.client("andy"), job)

    def certificates(name: str) -> list[Any]:
        found = anybody.get(f"/api/v1/jobs/{job}/certificate", headers=heads[name]).json()["certificates"]
        file = f"/releases/{job}/files/certificates/density-age.json"
        assert found[0] == desk_server.client(name).get(file).json(), name
        return [*found]

    whole = certificates("andy")
    numbers = whole[0]["function"]["numbers"]
    assert certificates("olga") == whole
    limited = certificates("ruth")
    assert limited[0]["withheld"] == ["function"]
    assert json.dumps(numbers) not in json.dumps(limited)
    assert {k: v for k, v in limited[0].items() if k != "withheld"} == {
        k: v for k, v in whole[0].items() if k != "function"
    }
    assert limited[1] == whole[1]
    custodian = desk_server.client("clara")
    said = {"csrf": csrf(custodian.get("/account").text), "act": "publish", "title": "Shapes"}
    public = custodian.post(f"/releases/{job}", data=said).url.path
    file = f"{public}/files/certificates/density-age.json"
    assert anybody.get(file).json() == whole[0]
    custodian.post(f"/releases/{job}", data={**said, "act": "withdraw", "reason": "wrong"})
    found = anybody.get(file).json()
    assert "function" not in found
    assert found["withheld"] == ["function"]
