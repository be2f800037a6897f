"""Who may call what: a table written by hand, compared with what the server does, for every role, route and method."""

from __future__ import annotations

import re

import httpx
import pytest

from support.servers import Served, csrf
from tacit.server.app import ROUTES

EVERYBODY = {"", "andy", "clara", "olga", "ruth"}
SIGNED_IN = EVERYBODY - {""}
ASKS, KEEPS, AUDITS = {"andy", "clara"}, {"clara"}, {"clara", "ruth"}
GRANTED: dict[tuple[str, str], set[str]] = {
    ("GET", "/"): EVERYBODY,
    ("GET", "/health"): EVERYBODY,
    ("GET", "/static/{name}"): EVERYBODY,
    ("GET", "/sign-in"): EVERYBODY,
    ("POST", "/sign-in"): EVERYBODY,
    ("POST", "/sign-out"): SIGNED_IN,
    ("GET", "/welcome"): EVERYBODY,
    ("POST", "/welcome"): EVERYBODY,
    ("GET", "/single-sign-on"): EVERYBODY,
    ("GET", "/single-sign-on/back"): EVERYBODY,
    ("POST", "/single-sign-on/bind"): SIGNED_IN,
    ("GET", "/account"): SIGNED_IN,
    ("POST", "/account"): SIGNED_IN,
    ("GET", "/people"): KEEPS,
    ("POST", "/people"): KEEPS,
    ("GET", "/tables"): SIGNED_IN,
    ("GET", "/new-table"): KEEPS,
    ("GET", "/new-table/declare"): KEEPS,
    ("POST", "/new-table/declare"): KEEPS,
    ("GET", "/tables/{table}"): SIGNED_IN,
    ("POST", "/tables/{table}"): KEEPS,
    ("GET", "/tables/{table}/ask"): ASKS,
    ("POST", "/tables/{table}/ask"): ASKS,
    ("POST", "/tables/{table}/price"): ASKS,
    ("GET", "/jobs/{job}"): SIGNED_IN,
    ("POST", "/jobs/{job}"): ASKS,
    ("GET", "/jobs/{job}/events"): SIGNED_IN,
    ("GET", "/requests"): SIGNED_IN,
    ("GET", "/requests/{table}/{number}"): SIGNED_IN,
    ("POST", "/requests/{table}/{number}"): {"andy", "clara", "olga"},
    ("GET", "/releases"): SIGNED_IN,
    ("GET", "/releases/{job}"): SIGNED_IN,
    ("POST", "/releases/{job}"): SIGNED_IN,
    ("GET", "/releases/{job}/files/{name:path}"): SIGNED_IN,
    ("GET", "/ledger/{table}"): AUDITS,
    ("GET", "/ledger/{table}/export"): AUDITS,
    ("POST", "/ledger/{table}/verify"): AUDITS,
    ("GET", "/audit"): AUDITS,
    ("GET", "/public"): EVERYBODY,
    ("GET", "/public/{slug}"): EVERYBODY,
    ("GET", "/public/{slug}/files/{name:path}"): EVERYBODY,
    ("GET", "/api/v1"): EVERYBODY,
    ("GET", "/api/v1/openapi.json"): EVERYBODY,
    ("GET", "/api/v1/published"): EVERYBODY,
    ("GET", "/api/v1/tables"): SIGNED_IN,
    ("GET", "/api/v1/tables/{table}"): SIGNED_IN,
    ("GET", "/api/v1/tables/{table}/spent"): SIGNED_IN,
    ("GET", "/api/v1/tables/{table}/left"): SIGNED_IN,
    ("GET", "/api/v1/tables/{table}/releases"): SIGNED_IN,
    ("GET", "/api/v1/tables/{table}/ledger"): AUDITS,
    ("POST", "/api/v1/tables/{table}/preview"): ASKS,
    ("POST", "/api/v1/tables/{table}/release"): ASKS,
    ("POST", "/api/v1/tables/{table}/request"): ASKS,
    ("GET", "/api/v1/jobs/{job}"): SIGNED_IN,
    ("POST", "/api/v1/jobs/{job}/cancel"): ASKS,
    ("GET", "/api/v1/jobs/{job}/answer"): SIGNED_IN,
    ("GET", "/api/v1/jobs/{job}/certificate"): SIGNED_IN,
}
SCOPE = {"/api/v1/tables/{table}/release", "/api/v1/tables/{table}/request", "/api/v1/jobs/{job}/cancel"}
NO_ROLE = "you do not have the role for this"


def path_of(route: str) -> str:
    found = (
        route.replace("{table}", "people").replace("{number}", "999").replace("{name:path}", "report.html")
    )
    return re.sub(r"\{\w+\}", "nothing", found)


@pytest.fixture(scope="module")
def callers(desk_server: Served) -> dict[str, httpx.Client]:
    found = {name: desk_server.client(name) for name in ("", "andy", "clara", "olga", "ruth")}
    for client in found.values():
        client.follow_redirects = False
    return found


def test_every_route_is_in_the_table() -> None:
    assert {(r.method, r.path) for r in ROUTES} == set(GRANTED)
    assert 5 * len(GRANTED) >= 120


@pytest.mark.parametrize("route", sorted(GRANTED), ids=lambda r: f"{r[0]} {r[1]}")
def test_what_is_not_granted_is_refused(
    desk_server: Served, callers: dict[str, httpx.Client], route: tuple[str, str]
) -> None:
    method, path = route[0], path_of(route[1])
    api = path.startswith("/api/")
    for name, client in callers.items():
        if route == ("POST", "/sign-out") and name:
            client = desk_server.client(name)
            client.follow_redirects = False
        headers = {"Authorization": f"Bearer {desk_server.token(name)}"} if api and name else {}
        sent: dict[str, object] = {"headers": headers}
        if method == "POST" and not api:
            page = client.get("/account" if name else "/sign-in").text
            sent["data"] = {"csrf": csrf(page)}
        elif method == "POST":
            sent["json"] = {}
        found = (callers[""] if api else client).request(method, path, **sent)  # type: ignore[arg-type]
        granted = name in GRANTED[route]
        if granted:
            assert found.status_code != 401, (name, path)
            assert NO_ROLE not in found.text, (name, path)
        elif not name and not api and method == "GET":
            assert (found.status_code, found.headers["location"].split("?")[0]) == (303, "/sign-in")
        else:
            assert found.status_code in ((401,) if api and not name else (403, 404)), (
                name,
                path,
                found.status_code,
            )
        assert "Traceback" not in found.text
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "unsafe-inline" not in found.headers["content-security-policy"].replace(
            "style-src 'unsafe-inline'", ""
        )


@pytest.mark.parametrize("path", sorted(SCOPE))
def test_a_token_that_reads_does_not_ask(desk_server: Served, path: str) -> None:
    token = desk_server.token("andy", "read")
    found = httpx.post(desk_server.url + path_of(path), json={}, headers={"Authorization": f"Bearer {token}"})
    assert found.status_code == 403


def test_a_cookie_is_nothing_to_the_api_and_a_token_nothing_to_a_page(desk_server: Served) -> None:
    client = desk_server.client("andy")
    assert client.get("/api/v1/tables").status_code == 401
    found = httpx.get(
        f"{desk_server.url}/tables", headers={"Authorization": f"Bearer {desk_server.token('andy')}"}
    )
    assert found.status_code == 303


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_nothing(desk_server: Served, method: str) -> None:
    for path in ("/tables", "/api/v1/tables", "/public"):
        found = httpx.request(method, desk_server.url + path)
        assert found.status_code == 404
        assert "access-control-allow-origin" not in found.headers


def test_tables_and_jobs_of_others_are_nothing(desk_server: Served) -> None:
    """Somebody without a part in a table learns nothing about it, not even that it is there."""
    desk_server.desk.accounts.invite("eve", ["analyst"])
    token = {"Authorization": f"Bearer {desk_server.token('eve')}"}
    there = httpx.get(f"{desk_server.url}/api/v1/tables/people", headers=token)
    nowhere = httpx.get(f"{desk_server.url}/api/v1/tables/nowhere", headers=token)
    assert (there.status_code, there.text) == (nowhere.status_code, nowhere.text) == (404, nowhere.text)
    assert httpx.get(f"{desk_server.url}/api/v1/tables", headers=token).json() == {"tables": []}
