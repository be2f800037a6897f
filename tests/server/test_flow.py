"""From the first link to a withdrawn publication, over HTTP and without a script."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import httpx

import tacit
from support.ledgers import quick_folder
from support.servers import (
    PASSPHRASE,
    PASSWORD,
    Served,
    csrf,
    form_of,
    people_of,
    served,
    settings_for,
    table_of,
)
from tacit.cli import main
from tacit.server.accounts import FIRST_FILE
from tacit.server.store import JOBS, TABLES


def asked(client: httpx.Client, table: str = "people", **words: str) -> httpx.Response:
    page = client.get(f"/tables/{table}/ask").text
    said = {
        "csrf": csrf(page),
        "form": form_of(page),
        "basket": "[]",
        "kind": "count",
        "act": "release",
        "pay": "1",
    }
    return client.post(f"/tables/{table}/ask", data={**said, **words})


def job_of(response: httpx.Response) -> str:
    return response.url.path.split("/")[2]


def test_a_first_table_with_intervals(desk_server: Served) -> None:
    client = desk_server.client("andy")
    page = asked(client, by="region", pay="5")
    found = desk_server.wait(client, job_of(page))
    assert "/releases/" in str(found.url)
    assert re.search(r"north</th><td class=\"n strong\">[\d,]+</td>", found.text)
    assert "epsilon = 0.2" in found.text
    verified = client.post(found.url.path, data={"csrf": csrf(found.text), "act": "verify"})
    assert "Everything that could be checked holds" in verified.text
    certificate = next(p for p in re.findall(r'href="(/releases/[^"]+)"', found.text) if "certificates/" in p)
    assert client.get(certificate).json()["data"]["asked_by"] == "andy"
    # ruth sees certificates and no values; ben sees nothing of it.
    auditor = desk_server.client("ruth")
    assert auditor.get(certificate).status_code == 200
    assert auditor.get(certificate.split("certificates/")[0] + "report.html").status_code == 404
    assert "<td" not in auditor.get(found.url.path).text
    assert desk_server.client("ben").get(found.url.path).status_code == 404


def test_a_form_that_is_sent_twice_is_one_job(desk_server: Served) -> None:
    client = desk_server.client("andy")
    page = client.get("/tables/people/ask").text
    said = {
        "csrf": csrf(page),
        "form": form_of(page),
        "kind": "mean",
        "column": "age",
        "pay": "1",
        "act": "release",
    }
    first = client.post("/tables/people/ask", data=said)
    second = client.post("/tables/people/ask", data=said)
    assert job_of(first) == job_of(second)
    desk_server.wait(client, job_of(first))
    table = desk_server.desk.store.one(TABLES, name="people")
    assert table is not None
    ledger = desk_server.desk.ledger(table)
    assert sum(c.told[0]["release"].startswith("mean-age") for c in ledger.charges("andy")) == 1


def test_a_basket_has_one_price_and_what_does_not_fit_is_not_asked(desk_server: Served) -> None:
    client = desk_server.client("andy")
    basket = json.dumps(
        [{"kind": "count", "by": ["region"]}, {"kind": "mean", "column": "income", "rows": 300}]
    )
    page = asked(client, basket=basket, with_question="no", act="price", pay="10")
    assert "epsilon = 0.4" in page.text
    assert "count-by-region" in page.text
    assert "mean-income" in page.text
    page = asked(client, pay="own", amount="3.5")
    assert page.status_code == 409
    assert "does not fit" in page.text


def test_a_rehearsal_is_free_and_cannot_be_published(desk_server: Served) -> None:
    client = desk_server.client("andy")
    before = desk_server.desk.overview(desk_server.desk.store.one(TABLES, name="people"))["spent"]  # type: ignore[arg-type]
    page = desk_server.wait(client, job_of(asked(client, act="rehearse", pay="25")))
    assert "made up" in page.text
    assert desk_server.desk.overview(desk_server.desk.store.one(TABLES, name="people"))["spent"] == before  # type: ignore[arg-type]
    custodian = desk_server.client("clara")
    found = custodian.post(
        page.url.path, data={"csrf": csrf(custodian.get("/account").text), "act": "publish"}
    )
    assert found.status_code == 403


def test_publish_and_withdraw(desk_server: Served) -> None:
    analyst, custodian, anybody = (desk_server.client(n) for n in ("andy", "clara", ""))
    job = job_of(desk_server.wait(analyst, job_of(asked(analyst, kind="sum", column="income", pay="1"))))
    page = custodian.get(f"/releases/{job}").text
    said = {"csrf": csrf(page), "title": "Income <b>in all</b>", "summary": "A sum.", "act": "publish"}
    public = custodian.post(f"/releases/{job}", data=said)
    assert public.url.path.startswith("/public/")
    seen = anybody.get(public.url.path)
    assert "Income &lt;b&gt;in all&lt;/b&gt;" in seen.text
    assert seen.headers["cache-control"] == "no-cache"
    values = next(p for p in re.findall(r'href="(/public/[^"]+)"', seen.text) if p.endswith(".csv"))
    assert anybody.get(values).status_code == 200
    for name in ("../server.sqlite", "..%2f..%2fserver.sqlite", "values/../../x"):
        assert anybody.get(f"{public.url.path}/files/{name}").status_code == 404
    said = {"csrf": csrf(page), "reason": "wrong unit", "act": "withdraw"}
    assert "Do not use this release" in custodian.post(f"/releases/{job}", data=said).text
    seen = anybody.get(public.url.path)
    assert "wrong unit" in seen.text
    assert "<td" not in seen.text
    assert anybody.get(values).status_code == 404
    assert "wrong unit" in anybody.get(f"{public.url.path}/files/report.html").text
    assert (
        analyst.post(
            f"/releases/{job}", data={"csrf": csrf(analyst.get("/account").text), "act": "publish"}
        ).status_code
        == 403
    )


def test_two_ways_to_approve(tmp_path: Path) -> None:
    """A key under a passphrase on the server, and one that is brought along; the certificate says which."""
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk")) as found:
        people_of(found.desk)
        table_of(found.desk)
        analyst, officer, custodian = (found.client(n) for n in ("andy", "olga", "clara"))
        token = csrf(custodian.get("/tables/people").text)
        custodian.post("/tables/people", data={"csrf": token, "act": "rule", "four_eyes": "yes"})
        page = asked(analyst, note="for the yearbook")
        assert "waits for an approval" in page.text
        job = job_of(page)
        [number] = re.findall(r"/requests/people/(\d+)", officer.get("/requests").text)
        view = officer.get(f"/requests/people/{number}")
        assert "for the yearbook" in view.text
        digest = re.search(r'name="digest" value="([0-9a-f]{64})"', view.text)
        assert digest is not None
        where = f"/requests/people/{number}"
        said = {"csrf": csrf(view.text), "digest": digest[1], "act": "approve", "passphrase": "not it at all"}
        assert "passphrase is wrong" in officer.post(where, data=said).text
        own = analyst.post(where, data={**said, "csrf": csrf(analyst.get("/account").text)})
        assert own.status_code == 403
        assert (
            officer.post(where, data={**said, "digest": "0" * 64, "passphrase": PASSPHRASE}).status_code
            == 403
        )
        # Before the approval nothing runs.
        assert analyst.post(f"/jobs/{job}", data={"csrf": csrf(page.text), "act": "run"}).status_code == 403
        assert "is approved" in officer.post(where, data={**said, "passphrase": PASSPHRASE}).text
        done = analyst.post(f"/jobs/{job}", data={"csrf": csrf(page.text), "act": "run"})
        done = found.wait(analyst, job)
        assert "/releases/" in str(done.url)
        row = found.desk.store.one(JOBS, id=job)
        assert row is not None
        answer = found.desk.answer(row)
        assert answer["releases"][0]["certificate"]["data"]["signed"] == {"olga": "server"}
        # A refusal needs a reason, and the asker reads it.
        job = job_of(asked(analyst, by="region"))
        number = re.findall(r"/requests/people/(\d+)", officer.get("/requests").text)[-1]
        where = f"/requests/people/{number}"
        assert officer.post(where, data={**said, "act": "refuse"}).status_code == 422
        officer.post(where, data={**said, "act": "refuse", "note": "too fine"})
        assert "too fine" in analyst.get(f"/jobs/{job}").text
        # The officer brings a key; the custodian enrols it; the signature is made elsewhere.
        assert main(["key", "make", str(tmp_path / "olga.key")]) == 0
        public = (tmp_path / "olga.key.pub").read_text()
        officer.post(
            "/account", data={"csrf": csrf(officer.get("/account").text), "act": "bring-key", "key": public}
        )
        custodian.post(
            "/tables/people", data={"csrf": token, "act": "grant", "name": "olga", "roles": "approver"}
        )
        job = job_of(asked(analyst, kind="median", column="age"))
        number = re.findall(r"/requests/people/(\d+)", officer.get("/requests").text)[-1]
        view = officer.get(f"/requests/people/{number}").text
        digest = re.search(r'name="digest" value="([0-9a-f]{64})"', view)
        assert digest is not None
        from tacit.curator.certificate import SigningKey
        from tacit.ledger.register import APPROVAL

        signature = SigningKey.read(tmp_path / "olga.key").sign(APPROVAL, digest[1])
        said = {"csrf": csrf(view), "digest": digest[1], "act": "sign", "signature": json.dumps(signature)}
        assert "is approved" in officer.post(f"/requests/people/{number}", data=said).text
        analyst.post(f"/jobs/{job}", data={"csrf": csrf(page.text), "act": "run"})
        assert "/releases/" in str(found.wait(analyst, job).url)
        row = found.desk.store.one(JOBS, id=job)
        assert row is not None
        assert found.desk.answer(row)["releases"][0]["certificate"]["data"]["signed"] == {"olga": "elsewhere"}
        table = found.desk.store.one(TABLES, name="people")
        assert table is not None
        place = found.desk.place(table)["ledger"]
        assert found.desk.pool.call("verify", str(found.desk.files(row)), place, seconds=120)["ok"]


PLAN = """
[data]
path = "people.csv"
table = "people"
version = "2026"

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


def test_a_request_from_the_command_line_is_approved_on_its_page(tmp_path: Path) -> None:
    """The ledger has the digest of its plan alone: the approver brings the plan, and signs what the page shows."""
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk")) as found:
        people_of(found.desk)
        table_of(found.desk)
        clara = found.desk.accounts.person("clara")
        assert clara is not None
        table = found.desk.table("people", clara)
        found.desk.ledger(table).demand(True, by="clara")
        plan = found.settings.roots["tables"] / "andy.toml"
        plan.write_text(PLAN)
        assert main(["ledger", "request", str(plan), "--note", "by the terminal"]) == 0
        officer = found.client("olga")
        [number] = re.findall(r"/requests/people/(\d+)", officer.get("/requests").text)
        where = f"/requests/people/{number}"
        view = officer.get(where).text
        assert "came from the command line" in view
        assert "The mean of age" in view
        assert 'name="digest"' not in view
        token = csrf(view)
        # Signing without having seen it is refused, even with the right digest.
        digest = found.desk.ledger(table).approval(int(number), "olga")
        said = {"csrf": token, "digest": digest, "act": "approve", "passphrase": PASSPHRASE}
        assert "could not show" in officer.post(where, data=said).text
        # Another plan shows nothing, nor does one that is none, or says what is assumed of the data.
        for wrong in (
            PLAN.replace("epsilon = 0.1", "epsilon = 0.2"), PLAN.replace('"mean"', '"sum"'), "[[release]", "x = 1",
            PLAN + "given = { random_data = 0.1 }\n", "a" * 3 + "." + "b." * 40 + "c = 1", "[release]\nkind = 1",
        ):  # fmt: skip
            view = officer.post(where, data={"csrf": token, "act": "show", "plan": wrong}).text
            assert 'role="alert"' in view, wrong
            assert 'name="digest"' not in view
            assert "is approved" not in officer.post(where, data={**said, "plan": wrong}).text
        view = officer.post(where, data={"csrf": token, "act": "show", "plan": PLAN}).text
        assert "mean-age-by-region" in view
        assert f'name="digest" value="{digest}"' in view
        assert "is approved" in officer.post(where, data={**said, "plan": PLAN}).text
        assert main(["release", str(plan), "--out", str(tmp_path / "out")]) == 0
        assert "olga" in (tmp_path / "out" / "certificates" / "mean-age-by-region.json").read_text()


def test_an_approver_may_refuse_what_the_page_cannot_show() -> None:
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk"), workers=False) as found:
        people_of(found.desk)
        table_of(found.desk)
        plan = found.settings.roots["tables"] / "andy.toml"
        plan.write_text(PLAN)
        assert main(["ledger", "request", str(plan)]) == 0
        officer = found.client("olga")
        [number] = re.findall(r"/requests/people/(\d+)", officer.get("/requests").text)
        view = officer.get(f"/requests/people/{number}").text
        said = {"csrf": csrf(view), "act": "refuse", "note": "send it by the desk"}
        assert "is refused" in officer.post(f"/requests/people/{number}", data=said).text


def test_the_first_link_works_once_and_makes_a_custodian_who_adds_a_table() -> None:
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk"), workers=False) as found:
        home = found.settings.folder
        link = found.desk.accounts.first_link(home, found.url)
        place = home / FIRST_FILE
        assert place.read_text().strip() == link
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        client = found.client()
        page = client.get(link.removeprefix(found.url)).text
        code = link.split("code=")[1]
        # Looking uses nothing up, and a weak password neither.
        said = {"csrf": csrf(page), "code": code, "name": "ada", "password": "short", "again": "short"}
        assert client.post("/welcome", data=said).status_code == 422
        said |= {"password": PASSWORD, "again": PASSWORD}
        assert "signed in" in client.post("/welcome", data=said).text
        other = found.client()
        again = other.post("/welcome", data={**said, "name": "eve", "csrf": csrf(other.get("/sign-in").text)})
        assert again.status_code == 422
        assert found.desk.accounts.first_link(home, found.url) == ""
        (found.settings.roots["tables"] / "a.csv").write_text("who,age\na,30\nb,40\n")
        (home / "secret.csv").write_text("who\nx\n")
        (found.settings.roots["tables"] / "out.csv").symlink_to(home / "secret.csv")
        listed = client.get("/new-table").text
        assert "a.csv" in listed
        assert "out.csv" not in listed
        for choice in (
            "tables/out.csv",
            "/etc/passwd",
            "tables/../secret.csv",
            "tables/*.csv",
            "http://x/a.csv",
        ):
            assert client.get("/new-table/declare", params={"source": choice}).status_code == 422
        page = client.get("/new-table/declare", params={"source": "tables/a.csv"}).text
        assert "who" in page
        assert "30" not in page
        said = {
            "csrf": csrf(page), "source": "tables/a.csv", "name": "a", "unit": "people", "person": "who",
            "at_most": "2",
            "kind:1": "integer", "low:1": "0", "high:1": "120", "budget": "pure", "epsilon": "1", "act": "rehearse",
        }  # fmt: skip
        assert "A rehearsal on made-up rows" in client.post("/new-table/declare", data=said).text
        assert (
            client.post("/new-table/declare", data={**said, "act": "declare", "high:1": ""}).status_code
            == 422
        )
        made = client.post("/new-table/declare", data={**said, "act": "declare"})
        assert made.url.path == "/tables/a"
        assert (found.settings.roots["tables"] / "a.ledger").exists()
        again = client.post("/new-table/declare", data={**said, "act": "declare", "name": "b"})
        assert "that of another table here" in again.text
        assert tacit.Ledger.open(found.settings.roots["tables"] / "a.ledger").people()["ada"].roles == (
            "custodian",
        )
