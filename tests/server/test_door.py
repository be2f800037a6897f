"""The door of the server: sign-in, sessions, tokens, forms, sizes, hosts, clocks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.ledgers import quick_folder
from support.servers import PASSPHRASE, PASSWORD, Served, csrf, people_of, served, settings_for
from tacit.errors import NotAllowed, TacitError
from tacit.server import accounts as rules
from tacit.server.accounts import Directory, digest_of
from tacit.server.desk import Desk, opened
from tacit.server.store import AUDIT, PEOPLE, SESSIONS, THROTTLE, TOKENS


@pytest.fixture
def desk() -> Iterator[Desk]:
    with quick_folder() as folder, opened(settings_for(Path(folder) / "desk")) as found:
        people_of(found)
        yield found


def test_a_wrong_name_and_a_wrong_password_look_alike(desk_server: Served) -> None:
    client = desk_server.client()
    told = []
    for name, password in (("andy", "wrong word here"), ("nobody.here", PASSWORD)):
        page = client.get("/sign-in").text
        found = client.post("/sign-in", data={"csrf": csrf(page), "name": name, "password": password})
        told.append((found.status_code, found.text.replace(name, "NAME")))
        assert "tacit-session" not in found.cookies
    assert told[0] == told[1]
    assert told[0][0] == 403


def test_failures_slow_down_and_lock_nobody_out(desk: Desk) -> None:
    for _ in range(rules.FREE_FAILURES + 1):
        with pytest.raises(NotAllowed, match="name or the password"):
            desk.accounts.sign_in("andy", "wrong word here", "10.0.0.1")
    with pytest.raises(NotAllowed, match="too many attempts"):
        desk.accounts.sign_in("andy", PASSWORD, "10.0.0.1")
    # From another place the owner gets in at once, and later from the same one, too.
    desk.accounts.sign_in("andy", PASSWORD, "10.0.0.2")
    desk.store.change(THROTTLE, [], until=0.0)
    desk.accounts.sign_in("andy", PASSWORD, "10.0.0.1")
    # A clock that jumped back a year keeps nobody out.
    desk.store.add(THROTTLE, name="name andy 10.0.0.3", failures=9, until=time.time() + 3e7)
    desk.accounts.sign_in("andy", PASSWORD, "10.0.0.3")


def test_sessions_end(desk: Desk) -> None:
    accounts = desk.accounts
    secret, _ = accounts.sign_in("andy", PASSWORD, "x")
    other, _ = accounts.sign_in("andy", PASSWORD, "x")
    assert secret != other
    assert accounts.session(secret) is not None
    assert secret not in str(desk.store.all(SESSIONS))
    desk.store.change(SESSIONS, [SESSIONS.c.digest == digest_of(secret)], seen=time.time() - 31 * 60)
    assert accounts.session(secret) is None
    desk.store.change(SESSIONS, [SESSIONS.c.digest == digest_of(other)], created=time.time() - 13 * 3600)
    assert accounts.session(other) is None
    secret, _ = accounts.sign_in("andy", PASSWORD, "x")
    accounts.set_active("andy", False, by="clara")
    assert accounts.session(secret) is None
    with pytest.raises(NotAllowed):
        accounts.sign_in("andy", PASSWORD, "x")


def test_tokens_are_hashed_scoped_expiring_and_revocable(desk: Desk) -> None:
    andy = desk.accounts.person("andy")
    assert andy is not None
    token = desk.accounts.new_token(andy, "a", ("read",), 1, 90)
    assert token not in str(desk.store.all(TOKENS))
    found = desk.accounts.token(token)
    assert found is not None
    assert found.scopes == {"read"}
    for wrong in ("", "tacit_", token[:-1], token + "x", token.upper(), "tacit_" + "x" * 300):
        assert desk.accounts.token(wrong) is None
    desk.store.change(TOKENS, [], expires=time.time() - 1)
    assert desk.accounts.token(token) is None
    desk.store.change(TOKENS, [], expires=time.time() + 99)
    desk.accounts.revoke("ben", found.token)
    assert desk.accounts.token(token) is not None
    desk.accounts.revoke("andy", found.token)
    assert desk.accounts.token(token) is None
    for days, scopes in ((0, ("read",)), (91, ("read",)), (1, ()), (1, ("all",))):
        with pytest.raises(TacitError):
            desk.accounts.new_token(andy, "a", scopes, days, 90)


def test_what_was_made_while_the_clock_was_ahead_is_void(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was a year ahead, and was set right, leaves no session, link or token that lives for a year."""
    andy = desk.accounts.person("andy")
    assert andy is not None
    with monkeypatch.context() as patch:
        patch.setattr(rules, "now", lambda: time.time() + 3e7)
        secret, _ = desk.accounts.sign_in("andy", PASSWORD, "x")
        token = desk.accounts.new_token(andy, "a", ("read",), 1, 90)
        link = desk.accounts.invite("eve", ["analyst"])
        assert desk.accounts.session(secret) is not None
        assert desk.accounts.token(token) is not None
        assert desk.accounts.link(link) is not None
    assert desk.accounts.session(secret) is None
    assert desk.accounts.token(token) is None
    assert desk.accounts.link(link) is None


def test_a_borrowed_session_cannot_try_passwords(desk: Desk) -> None:
    for _ in range(rules.FREE_FAILURES + 1):
        with pytest.raises(NotAllowed, match="old password is wrong"):
            desk.accounts.set_password("andy", "not the word", "a new word or two", keep="")
    with pytest.raises(NotAllowed, match="too many attempts"):
        desk.accounts.set_password("andy", PASSWORD, "a new word or two", keep="")
    desk.store.change(THROTTLE, [], until=0.0)
    desk.accounts.set_password("andy", PASSWORD, "a new word or two", keep="")


def test_few_sign_ins_wait_at_once(desk: Desk) -> None:
    """Each holds a thread of the server: of many at once most are asked to come back, and pages are served."""
    accounts = desk.accounts
    for _ in range(2):
        accounts._slots.acquire()
    accounts._in_line = rules.MOST_IN_LINE
    began = time.monotonic()
    with pytest.raises(NotAllowed, match="too much is asked"):
        accounts.sign_in("andy", PASSWORD, "x")
    assert time.monotonic() - began < 8
    accounts._in_line = 0
    for _ in range(2):
        accounts._slots.release()
    accounts.sign_in("andy", PASSWORD, "x")
    assert accounts._in_line == 0


def test_a_reset_voids_key_sessions_and_tokens(desk: Desk) -> None:
    olga = desk.accounts.person("olga")
    assert olga is not None
    assert PASSPHRASE not in str(desk.store.all(PEOPLE))
    assert desk.accounts.signer(olga, PASSPHRASE).public.fingerprint
    with pytest.raises(NotAllowed, match="passphrase is wrong"):
        desk.accounts.signer(olga, "not it at all")
    secret, _ = desk.accounts.sign_in("olga", PASSWORD, "x")
    token = desk.accounts.new_token(olga, "a", ("read",), 1, 90)
    desk.accounts.bind("olga", "https://provider.example", "stolen")
    link = desk.accounts.reset("olga", by="clara")
    assert (
        desk.accounts.by_subject("https://provider.example", "stolen") is None
    )  # whoever bound it is out, too
    assert desk.accounts.session(secret) is None
    assert desk.accounts.token(token) is None
    with pytest.raises(NotAllowed):
        desk.accounts.sign_in("olga", PASSWORD, "x")
    with pytest.raises(NotAllowed, match="no key is kept"):
        desk.accounts.signer(olga, PASSPHRASE)
    name, _ = desk.accounts.welcome(link, "somebody-else", "a new word or two")
    assert name == "olga"
    with pytest.raises(NotAllowed):
        desk.accounts.welcome(link, "", "a new word or two")


def test_names_that_are_read_alike_and_the_last_custodian(desk: Desk) -> None:
    for name in ("c1ara", "andy ", "Andy", "a", "custodian", "аndy", "x" * 41, "a\nb"):
        with pytest.raises(TacitError):
            desk.accounts.invite(name, ["analyst"])
    with pytest.raises(NotAllowed):
        desk.accounts.set_roles("clara", ["analyst"], by="clara")
    with pytest.raises(NotAllowed):
        desk.accounts.set_active("clara", False, by="clara")


def test_forms_of_others_are_refused(desk_server: Served) -> None:
    client = desk_server.client("andy")
    other = desk_server.client("ben")
    stolen = csrf(other.get("/account").text)
    own = csrf(client.get("/account").text)
    said = {"act": "token", "label": "x", "days": "1", "scopes": "read"}
    assert client.post("/account", data=said).status_code == 403
    assert client.post("/account", data={**said, "csrf": stolen}).status_code == 403
    for head in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/account", data={**said, "csrf": own}, headers=head).status_code == 403
    assert (
        client.post(
            "/account", data={**said, "csrf": own}, headers={"sec-fetch-site": "same-origin"}
        ).status_code
        == 200
    )
    # A form of before the sign-in is none of after it.
    anybody = desk_server.client()
    before = csrf(anybody.get("/sign-in").text)
    anybody.post("/sign-in", data={"csrf": before, "name": "andy", "password": PASSWORD})
    assert anybody.post("/account", data={**said, "csrf": before}).status_code == 403


def test_hosts_sizes_and_odd_bodies(desk_server: Served) -> None:
    client = desk_server.client("andy")
    assert client.get("/tables", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/tables", headers={"host": "127.0.0.1.evil.example"}).status_code == 400
    big = b"x" * 300_000
    assert client.post("/account", content=big).status_code == 413
    head = {"Authorization": f"Bearer {desk_server.token('andy')}"}
    for body in (b"{", b"[" * 50_000, b"\xff\xfe", b'{"a": NaN}', b'"x"', b"[]", b"null", b"1e999"):
        found = client.post("/api/v1/tables/people/preview", content=body, headers=head)
        assert found.status_code == 422, body
        assert "Traceback" not in found.text
    assert client.post("/account", content=b"a=%ff%fe&csrf=x").status_code in (403, 422)
    assert client.get("/sign-in", headers={"cookie": "tacit-session=\x7f; ;;=;"}).status_code == 200
    for path in ("//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/a\nb"):
        page = client.get("/sign-in", params={"next": path})
        assert 'name="next" value=""' in page.text


def test_denied_calls_are_in_the_audit_log_and_secrets_are_not(desk_server: Served) -> None:
    client = desk_server.client("andy")
    client.get("/people")
    lines = desk_server.desk.store.all(AUDIT)
    assert any((x["who"], x["what"]) == ("andy", "refused") and "/people" in x["about"] for x in lines)
    assert PASSWORD not in str(lines)
    assert "tacit_" not in str(lines)


def test_a_database_that_went_away_is_a_page(desk_server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    client = desk_server.client("andy")

    def gone(*_: object, **__: object) -> None:
        raise OperationalError("SELECT hunter2", {}, Exception("hunter2"))

    with monkeypatch.context() as patch:
        patch.setattr(desk_server.desk.store._engine, "connect", gone)
        found = client.get("/tables")
    assert found.status_code == 503
    assert "Try again in a minute." in found.text
    assert "hunter2" not in found.text
    assert client.get("/tables").status_code == 200


def test_a_full_disk_is_a_page_and_reading_goes_on() -> None:
    """SQLite itself says that it is full: a page says so, nothing half-written is left, and other pages are served."""
    import sqlalchemy as sa

    with quick_folder() as folder, served(settings_for(Path(folder) / "desk"), workers=False) as found:
        people_of(found.desk)
        client, engine = found.client("andy"), found.desk.store._engine
        token = csrf(client.get("/account").text)
        engine.dispose()

        def small(connection: Any, _: Any) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")

        sa.event.listen(engine, "connect", small)
        said = {"csrf": token, "act": "token", "label": "x" * 60, "days": "1", "scopes": "read"}
        codes = [client.post("/account", data=said).status_code for _ in range(200)]
        assert codes[0] == 200
        assert codes[-1] == 503
        page = client.post("/account", data=said).text
        assert "cannot be reached, or cannot be written to" in page
        assert "Try again in a minute." in page
        assert client.get("/tables").status_code == 200
        assert len(found.desk.store.all(TOKENS)) == codes.count(200)
        sa.event.remove(engine, "connect", small)
        engine.dispose()
        assert client.post("/account", data=said).status_code == 200


def test_an_ended_token_and_an_ended_session_say_what_to_do(desk_server: Served) -> None:
    token = desk_server.token("ben")
    head = {"Authorization": f"Bearer {token}"}
    client = desk_server.client()
    assert client.get("/api/v1/tables", headers=head).status_code == 200
    desk_server.desk.store.change(TOKENS, [TOKENS.c.digest == digest_of(token)], expires=time.time() - 1)
    found = client.post("/api/v1/tables/people/release", json={}, headers=head)
    assert (found.status_code, found.json()["message"]) == (401, "a valid token is needed")
    assert found.headers["www-authenticate"] == "Bearer"
    signed = desk_server.client("ben")
    page = signed.get("/account").text
    desk_server.desk.accounts.end_sessions("ben")
    found = signed.post("/account", data={"csrf": csrf(page), "act": "revoke", "id": "x"})
    assert found.status_code == 403
    assert "Sign in, and do it again; nothing was sent." in found.text


def test_pages_with_anything_private_are_not_stored(desk_server: Served) -> None:
    client = desk_server.client("andy")
    for path in ("/tables", "/tables/people", "/releases", "/account", "/sign-in"):
        found = client.get(path)
        assert found.headers["cache-control"] == "no-store"
        assert found.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'"
        )
        assert "<script>" not in found.text
        assert " style=" not in found.text
    cookie = httpx.get(f"{desk_server.url}/sign-in").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()


def test_two_hashes_at_once_at_most(desk: Desk) -> None:
    assert isinstance(desk.accounts, Directory)
    assert desk.accounts._slots.acquire(blocking=False)
    assert desk.accounts._slots.acquire(blocking=False)
    assert not desk.accounts._slots.acquire(blocking=False)
    for _ in range(2):
        desk.accounts._slots.release()


def test_a_server_on_a_network_needs_a_public_address(tmp_path: Path) -> None:
    from tacit.server.running import prepared

    for given in ({"host": "0.0.0.0"}, {"public_url": "http://desk.example.org"}, {"public_url": "ftp://x"}):
        with pytest.raises(TacitError):
            prepared(tmp_path / "x", **given)
    assert prepared(tmp_path / "x", public_url="https://desk.example.org").secure


def test_forwarded_addresses_count_behind_a_proxy_only() -> None:
    with quick_folder() as folder, served(settings_for(Path(folder) / "desk"), workers=False) as found:
        people_of(found.desk)
        client = found.client()
        page = client.get("/sign-in").text
        said = {"csrf": csrf(page), "name": "andy", "password": "wrong word here"}
        client.post("/sign-in", data=said, headers={"x-forwarded-for": "6.6.6.6"})
        assert found.desk.store.all(AUDIT)[-1]["address"] == "127.0.0.1"


@pytest.mark.parametrize("path", ["//[", "//elsewhere.example", "https://elsewhere.example", "tables"])
def test_nobody_is_sent_elsewhere_after_signing_in(path: str) -> None:
    from tacit.server.views import _inside

    assert _inside(path) == ""
    assert _inside("/tables") == "/tables"
