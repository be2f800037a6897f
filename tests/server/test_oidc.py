"""Single sign-on against a small provider of our own: every check of the answer can fail."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from support.ledgers import quick_folder
from support.servers import PASSWORD, Served, csrf, people_of, served, settings_for
from tacit.server.settings import Oidc

joserfc = pytest.importorskip("joserfc", reason="needs the extra oidc")


class Provider:
    """An identity provider for tests, with words that a test may forge."""

    def __init__(self) -> None:
        from joserfc.jwk import RSAKey

        self.key = RSAKey.generate_key(2048, {"kid": "k"}, private=True)
        self.other = RSAKey.generate_key(2048, {"kid": "k"}, private=True)
        self.claims: dict[str, Any] = {}
        self.forged: dict[str, Any] = {}
        self.signs = self.key
        self.challenge = ""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                return

            def reply(self, said: Any) -> None:
                body = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                if "openid-configuration" in self.path:
                    names = {
                        "authorization_endpoint": "authorize",
                        "token_endpoint": "token",
                        "jwks_uri": "jwks",
                    }
                    self.reply(
                        {"issuer": provider.url, **{k: f"{provider.url}/{v}" for k, v in names.items()}}
                    )
                else:
                    self.reply({"keys": [provider.key.as_dict(private=False)]})

            def do_POST(self) -> None:
                from joserfc import jwt

                sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                verifier = sent["code_verifier"][0].encode()
                digest = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=").decode()
                assert digest == provider.challenge
                token = jwt.encode(
                    {"alg": "RS256", "kid": "k"}, provider.claims | provider.forged, provider.signs
                )
                self.reply({"access_token": "x", "token_type": "Bearer", "id_token": token})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Served, Provider]]:
    provider = Provider()
    oidc = Oidc(issuer=provider.url, client_id="desk")
    with (
        quick_folder() as folder,
        served(replace(settings_for(Path(folder) / "desk"), oidc=oidc), workers=False) as found,
    ):
        people_of(found.desk)
        yield found, provider
    provider.server.shutdown()
    provider.server.server_close()


def through(
    client: httpx.Client, provider: Provider, begin: httpx.Response, **changes: str
) -> httpx.Response:
    """What a browser does at the provider."""
    asked = {k: v[0] for k, v in parse_qs(urlsplit(begin.headers["location"]).query).items()}
    assert asked["code_challenge_method"] == "S256"
    provider.challenge = asked["code_challenge"]
    now = int(time.time())
    provider.claims = {
        "iss": provider.url, "aud": "desk", "sub": "subject-1", "nonce": asked["nonce"], "exp": now + 60, "iat": now,
    }  # fmt: skip
    return client.get("/single-sign-on/back", params={"code": "c", "state": asked["state"], **changes})


def test_bind_once_then_sign_in_and_forged_answers_do_not(world: tuple[Served, Provider]) -> None:
    found, provider = world
    client = found.client("andy")
    client.follow_redirects = False
    # Nobody gets in before the account is bound.
    anybody = found.client()
    anybody.follow_redirects = False
    assert through(anybody, provider, anybody.get("/single-sign-on")).status_code == 403
    # A binding outlives session and password: somebody at a screen that was left alone cannot make one.
    token = csrf(client.get("/account").text)
    for wrong in ({}, {"password": ""}, {"password": "a guess of mine"}):
        begin = client.post("/single-sign-on/bind", data={"csrf": token, **wrong})
        assert begin.status_code == 403
        assert "the password is wrong" in begin.text
    begin = client.post("/single-sign-on/bind", data={"csrf": token, "password": PASSWORD})
    assert through(client, provider, begin).headers["location"] == "/account"
    assert "is bound to an identity there" in client.get("/account").text
    back = through(anybody, provider, anybody.get("/single-sign-on"))
    assert back.headers["location"] == "/tables"
    assert "andy" in anybody.get("/account").text
    now = int(time.time())
    for forged in (
        {"iss": "https://evil.example"}, {"aud": "another"}, {"nonce": "n"}, {"exp": now - 3600}, {"sub": "subject-2"},
        {"aud": ["desk", "another"], "azp": "another"},
    ):  # fmt: skip
        other = found.client()
        other.follow_redirects = False
        provider.forged = forged
        assert through(other, provider, other.get("/single-sign-on")).status_code == 403, forged
        provider.forged = {}
    provider.signs = provider.other
    other = found.client()
    other.follow_redirects = False
    assert through(other, provider, other.get("/single-sign-on")).status_code == 403
    provider.signs = provider.key
    for state in ("another", "\u00e9", ""):
        assert through(other, provider, other.get("/single-sign-on"), state=state).status_code == 403
    odd = {"cookie": "tacit-single-sign-on=7b7d.\u00e9".encode()}
    assert other.get("/single-sign-on/back?code=c&state=x", headers=odd).status_code == 403
    # An answer counts once, for the browser that began.
    begin = other.get("/single-sign-on")
    stranger = found.client()
    stranger.follow_redirects = False
    assert through(stranger, provider, begin).status_code == 403
    # An account that is bound cannot be bound to another identity, not even by who is signed in.
    provider.forged = {"sub": "subject-9"}
    begin = client.post("/single-sign-on/bind", data={"csrf": token, "password": PASSWORD})
    assert through(client, provider, begin).status_code == 403
    assert found.desk.accounts.by_subject(provider.url, "subject-9") is None
    provider.forged = {}
    assert found.desk.accounts.by_subject(provider.url, "subject-1") is not None
    # A second account cannot be bound to the same identity.
    ben = found.client("ben")
    ben.follow_redirects = False
    said = {"csrf": csrf(ben.get("/account").text), "password": PASSWORD}
    begin = ben.post("/single-sign-on/bind", data=said)
    assert through(ben, provider, begin).status_code == 403


def test_without_a_provider_there_is_nothing(desk_server: Served) -> None:
    client = desk_server.client()
    assert client.get("/single-sign-on").status_code == 404
