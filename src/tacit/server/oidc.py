"""Single sign-on by OpenID Connect: authorisation code with state, nonce and PKCE; accounts are bound to `sub`.

Signing in elsewhere creates no account: the custodian invites a person, who signs in and binds the account to the
identity once. Tokens of the provider are checked and forgotten.
"""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from starlette.responses import RedirectResponse, Response

from tacit.errors import InvalidParameter, NotAllowed
from tacit.server.accounts import same
from tacit.server.settings import Oidc
from tacit.server.store import digest_of, new_secret, now
from tacit.server.web import COOKIE, NotFound, WebCall, _cookies

STATE = "tacit-single-sign-on"
MINUTES = 10


def provider(call: WebCall) -> Oidc:
    """The operator's provider; None without one."""
    if call.desk.settings.oidc is None:
        raise NotFound
    return call.desk.settings.oidc


def _client(call: WebCall, oidc: Oidc) -> Any:
    try:
        from authlib.integrations.requests_client import OAuth2Session
    except ImportError:
        raise InvalidParameter(
            parameter="oidc", value=oidc.issuer, must="have its package", hint='pip install "tacit[oidc]"'
        ) from None
    secret = Path(oidc.client_secret_file).read_text().strip() if oidc.client_secret_file else None
    return OAuth2Session(
        client_id=oidc.client_id, client_secret=secret, scope="openid", code_challenge_method="S256",
        redirect_uri=f"{call.desk.settings.url}/single-sign-on/back",
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
    )  # fmt: skip


def _about(client: Any, oidc: Oidc) -> dict[str, Any]:
    """The provider's addresses, as it publishes them."""
    try:
        found = client.get(
            f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration", withhold_token=True, timeout=10
        ).json()
    except Exception:
        found = {}
    if not isinstance(found, dict) or found.get("issuer") != oidc.issuer:
        raise NotAllowed(
            who="you", what="sign in there", reason="the provider of identities does not answer as it should",
            hint="sign in with a password, or try again later",
        )  # fmt: skip
    return found


def _sealed(call: WebCall, said: dict[str, Any]) -> str:
    key = call.desk.store.meta("oidc key", new_secret)
    text = json.dumps(said, sort_keys=True)
    return f"{text.encode().hex()}.{hmac.new(key.encode(), text.encode(), sha256).hexdigest()}"


def _unsealed(call: WebCall, kept: str) -> dict[str, Any] | None:
    key = call.desk.store.meta("oidc key", new_secret)
    body, _, mark = kept.partition(".")
    try:
        text = bytes.fromhex(body)
    except ValueError:
        return None
    if not same(hmac.new(key.encode(), text, sha256).hexdigest(), mark):
        return None
    found: dict[str, Any] = json.loads(text)
    return found if found["until"] > now() else None


def begin(call: WebCall) -> Response:
    """Go to the provider."""
    return _begin(call, "")


def bind(call: WebCall) -> Response:
    """Go to the provider to bind the account of who is signed in."""
    assert call.session is not None
    if call.person.has_password:
        # The binding outlives the session and the password: a borrowed session must not make one.
        call.desk.accounts.confirm(call.person.name, call.field("password"), "bind the account")
    return _begin(call, call.session.digest)


def _begin(call: WebCall, session: str) -> Response:
    oidc = provider(call)
    state, nonce, verifier = new_secret(), new_secret(), new_secret(48)
    with _client(call, oidc) as client:
        about = _about(client, oidc)
        url, _ = client.create_authorization_url(
            about["authorization_endpoint"], state=state, nonce=nonce, code_verifier=verifier
        )
    said = {
        "state": state,
        "nonce": nonce,
        "verifier": verifier,
        "session": session,
        "until": now() + MINUTES * 60,
    }
    call.cookies[STATE] = _sealed(call, said)
    return RedirectResponse(url, status_code=303)


def back(call: WebCall) -> Response:
    """Come back from the provider: check everything, then sign in or bind."""
    oidc = provider(call)
    kept = _unsealed(call, _cookies(call.request).get(STATE, ""))
    call.cookies[STATE] = None
    if kept is None or not same(kept["state"], call.query.get("state", "")) or "code" not in call.query:
        raise NotAllowed(
            who="you", what="sign in so", reason="the answer is not to a question of ours", hint="begin again"
        )
    with _client(call, oidc) as client:
        about = _about(client, oidc)
        subject = _subject(client, about, oidc, call, kept)
    accounts = call.desk.accounts
    if kept["session"]:
        session = call.session
        if session is None or session.digest != kept["session"]:
            raise NotAllowed(
                who="you", what="bind the account", reason="the session is another one", hint="begin again"
            )
        accounts.bind(session.person.name, oidc.issuer, subject)
        return call.to("/account", "The account is bound to your identity.")
    person = accounts.by_subject(oidc.issuer, subject)
    if person is None:
        call.desk.store.audit(
            f"subject {digest_of(subject)[:12]}", "sign-in refused", "single sign-on", call.address
        )
        raise NotAllowed(
            who="you", what="sign in so", reason="no account is bound to this identity",
            hint="sign in with a password once, and bind the account on the page Account",
        )  # fmt: skip
    call.desk.store.audit(person.name, "signed in", "single sign-on", call.address)
    call.cookies[COOKIE] = accounts.new_session(person.name)
    return call.to("/tables")


def _subject(client: Any, about: dict[str, Any], oidc: Oidc, call: WebCall, kept: dict[str, Any]) -> str:
    """The subject of an ID token that was signed by the provider, for us, just now, for this very sign-in."""
    from joserfc import jwt
    from joserfc.jwk import KeySet

    subject = ""
    try:
        token = client.fetch_token(
            about["token_endpoint"], grant_type="authorization_code", code=call.query["code"],
            code_verifier=kept["verifier"], timeout=10,
        )  # fmt: skip
        keys = KeySet.import_key_set(client.get(about["jwks_uri"], withhold_token=True, timeout=10).json())
        found = jwt.decode(token["id_token"], keys, algorithms=["RS256", "ES256", "EdDSA", "PS256"])
        rules = jwt.JWTClaimsRegistry(
            leeway=60, iss={"essential": True, "value": oidc.issuer}, aud={"essential": True, "value": oidc.client_id},
            exp={"essential": True}, sub={"essential": True}, nonce={"essential": True, "value": kept["nonce"]},
        )  # fmt: skip
        rules.validate(found.claims)
        several = isinstance(found.claims["aud"], list) and len(found.claims["aud"]) > 1
        if not several or found.claims.get("azp") == oidc.client_id:
            subject = str(found.claims["sub"])
    except Exception:
        subject = ""
    if not subject:
        # Outside of the handler: a provider's words stay there.
        raise NotAllowed(
            who="you", what="sign in so", reason="the provider's answer does not verify", hint="begin again"
        )
    return subject
