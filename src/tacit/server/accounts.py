"""People of a server: passwords, sessions, one-time links, API tokens, and keys under a passphrase.

Passwords are kept as argon2id hashes. An unknown name costs the same work as a known one, few hashes run at once, and
failures delay the next attempt. Nobody is locked out for good. Secrets of sessions, links and tokens are random;
only their digests are kept.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tacit.errors import InvalidParameter, NotAllowed, UnknownName
from tacit.exact.data_classes import dataclass
from tacit.server.store import (
    JOBS,
    LINKS,
    PEOPLE,
    SESSIONS,
    THROTTLE,
    TOKENS,
    Row,
    ServerStore,
    digest_of,
    new_secret,
    now,
)

ROLES = ("analyst", "approver", "auditor", "custodian")
SCOPES = ("ask", "read")
"""The scopes of a token: to read tables, prices, answers and ledgers; and to ask, which spends."""
FIRST_MINUTES, INVITE_HOURS = 15, 72
FIRST_FILE = "first-link.txt"
LEAST, MOST = 10, 200
AT_ONCE = 2
FREE_FAILURES, LONGEST_WAIT = 5, 300
MOST_IN_LINE = 16
"""The largest number of sign-ins that wait for their hash; a further one is asked to come back."""
AHEAD = 300
"""The number of seconds by which a clock may have run ahead; sessions, links and tokens dated later than that are
void.
"""
_NAME = re.compile(r"[a-z][a-z0-9.-]{1,39}")
RESERVED = ("curator", "custodian", "public", "server", "everybody", "nobody")
UNKNOWN = "the name or the password is wrong"
SLOW, CROWDED = "too many attempts failed", "too much is asked at this moment"
"""Refusals that end by themselves after a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Somebody with an account."""

    name: str
    roles: frozenset[str]
    key_public: str = ""
    key_on_server: bool = False
    has_password: bool = True
    bound: bool = False
    """Is it bound to an identity elsewhere?"""

    def is_(self, *roles: str) -> bool:
        """Whether the person has one of these roles."""
        return not self.roles.isdisjoint(roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSession:
    """A person who signed in, or a token that acts for one."""

    person: Member
    csrf: str = ""
    digest: str = ""
    token: str = ""
    scopes: frozenset[str] = frozenset()
    unseen: float = 0.0
    """Seconds since it was last noted as used."""


class Directory:
    """Directory in a store."""

    def __init__(self, store: ServerStore, *, session_hours: float, idle_minutes: float) -> None:
        from argon2 import PasswordHasher

        self._store = store
        self._life, self._idle = session_hours * 3600, idle_minutes * 60
        self._hasher = PasswordHasher()
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._lock, self._in_line = threading.Lock(), 0
        self._dummy = ""

    # --- people --------------------------------------------------------------------------------------
    def person(self, name: str) -> Member | None:
        """An active account."""
        found = self._store.one(PEOPLE, name=name)
        return None if found is None or not found["active"] else _person(found)

    def people(self) -> list[dict[str, Any]]:
        """All accounts for a list, without hashes and keys."""
        rows = self._store.all(PEOPLE, order=PEOPLE.c.name)
        return [
            {
                "name": r["name"], "roles": _roles(r), "active": bool(r["active"]), "key": r["key_public"],
                "key_on_server": bool(r["key_private"]), "invited": not r["password"] and not r["subject"],
            }
            for r in rows
        ]  # fmt: skip

    def invite(self, name: str, roles: Iterable[str]) -> str:
        """Makes an account without a password, and returns the secret of the link with which its owner sets one."""
        self._checked_name(name)
        given = checked_roles(roles)
        try:
            self._store.add(PEOPLE, name=name, roles=json.dumps(given), created=now())
        except sa.exc.IntegrityError:
            raise InvalidParameter(parameter="name", value=name, must="not be somebody's already") from None
        return self._link("invite", name, INVITE_HOURS * 3600)

    def _checked_name(self, name: str) -> None:
        from tacit.ledger.register import alike

        if not _NAME.fullmatch(name) or name in RESERVED:
            raise InvalidParameter(
                parameter="name", value=name,
                must="have 2 to 40 small letters, digits, points and dashes, a letter first",
                hint="for example ada or ada.byron; a few words such as custodian are taken",
            )  # fmt: skip
        for other in self._store.all(PEOPLE):
            if other["name"] != name and alike(name, str(other["name"])):
                raise InvalidParameter(
                    parameter="name", value=name, must=f"not be read as {other['name']!r}, who has an account",
                    hint="give the second person another name",
                )  # fmt: skip

    def set_roles(self, name: str, roles: Iterable[str], *, by: str) -> None:
        """Other roles for an account; one custodian always stays. Jobs that wait end with the right to ask."""
        given = checked_roles(roles)
        with self._store.transaction() as connection:
            rows = [dict(r._mapping) for r in connection.execute(sa.select(PEOPLE))]
            if name not in {r["name"] for r in rows}:
                raise UnknownName(what="account", name=name, known=[str(r["name"]) for r in rows])
            others = [r for r in rows if r["name"] != name and r["active"] and "custodian" in _roles(r)]
            if not others and "custodian" not in given:
                raise NotAllowed(who=by, what=f"change {name}", reason="the server would have no custodian")
            connection.execute(sa.update(PEOPLE).where(PEOPLE.c.name == name).values(roles=json.dumps(given)))
        if not {"analyst", "custodian"} & set(given):
            self._cancel_waiting(name, "the account may ask no more")

    def set_active(self, name: str, active: bool, *, by: str) -> None:
        """Close an account, or open it again. Its sessions and tokens end, and so do its waiting jobs."""
        if name == by:
            raise NotAllowed(who=by, what="close the account", reason="it is their own")
        self._store.change(PEOPLE, [PEOPLE.c.name == name], active=int(active))
        if not active:
            self.end_sessions(name)
            self._store.change(TOKENS, [TOKENS.c.person == name], revoked=1)
            self._cancel_waiting(name, "the account was closed")

    def _cancel_waiting(self, name: str, why: str) -> None:
        self._store.change(
            JOBS, [JOBS.c.person == name, JOBS.c.state == "queued"],
            state="cancelled", message=f"{why}; nothing was charged", ended=now(),
        )  # fmt: skip

    def reset(self, name: str, *, by: str) -> str:
        """A link with which a person sets a new password. It voids the key on the server, sessions and tokens."""
        if self.person(name) is None:
            raise UnknownName(what="account", name=name, known=[p["name"] for p in self.people()])
        self._store.change(PEOPLE, [PEOPLE.c.name == name], password="", subject=None)
        self._store.change(
            PEOPLE, [PEOPLE.c.name == name, PEOPLE.c.key_private != ""], key_private="", key_public=""
        )
        self.end_sessions(name)
        self._store.change(TOKENS, [TOKENS.c.person == name], revoked=1)
        self._store.audit(by, "password reset", name)
        return self._link("invite", name, INVITE_HOURS * 3600)

    # --- passwords -----------------------------------------------------------------------------------
    def _hashed(self, password: str) -> str:
        with self._slot():
            return str(self._hasher.hash(password))

    @contextlib.contextmanager
    def _slot(self) -> Any:
        with self._lock:
            full = self._in_line >= MOST_IN_LINE
            self._in_line += not full
        try:
            # Every request has a thread: those that wait here must not take all of them.
            if full or not self._slots.acquire(timeout=10):
                raise NotAllowed(who="somebody", what="sign in now", reason=CROWDED, hint="try again")
            try:
                yield
            finally:
                self._slots.release()
        finally:
            with self._lock:
                self._in_line -= not full

    def _matches(self, kept: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        if not self._dummy:
            self._dummy = self._hashed(new_secret())
        with self._slot():
            try:
                self._hasher.verify(kept or self._dummy, password)
            except (VerificationError, InvalidHashError):
                return False
        return bool(kept)

    def sign_in(self, name: str, password: str, address: str) -> tuple[str, Member]:
        """A new session's secret; one sentence for a wrong name and for a wrong password."""
        keys = (f"name {name[:40]} {address}", f"address {address}")
        self._wait(keys)
        found = self._store.one(PEOPLE, name=name[:40])
        usable = found is not None and bool(found["active"])
        right = self._matches(str(found["password"]) if found is not None and usable else "", password[:MOST])
        if found is None or not right:
            self._failed(keys)
            # An unknown name may be a password that was typed into the wrong field.
            self._store.audit(name if found is not None else "unknown name", "sign-in refused", "", address)
            raise NotAllowed(who="you", what="sign in", reason=UNKNOWN)
        self._store.drop(THROTTLE, THROTTLE.c.name == keys[0])
        self._store.audit(name, "signed in", "", address)
        return self.new_session(name), _person(found)

    def _wait(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            found = self._store.one(THROTTLE, name=key)
            left = 0.0 if found is None else float(found["until"]) - now()
            # A clock that jumped back keeps nobody out for longer than the longest wait.
            if 0 < left <= LONGEST_WAIT:
                raise NotAllowed(
                    who="you", what="sign in yet", reason=SLOW,
                    hint=f"try again in {int(left) + 1} seconds",
                )  # fmt: skip

    def _failed(self, keys: tuple[str, ...]) -> None:
        with self._store.transaction() as connection:
            connection.execute(sa.delete(THROTTLE).where(THROTTLE.c.until < now() - 3600))
            for key, free in zip(keys, (FREE_FAILURES, 10 * FREE_FAILURES), strict=True):
                row = connection.execute(sa.select(THROTTLE).where(THROTTLE.c.name == key)).first()
                failures = 1 if row is None or row.until < now() - 3600 else int(row.failures) + 1
                wait = 0 if failures <= free else min(2 ** min(failures - free, 20), LONGEST_WAIT)
                connection.execute(sa.delete(THROTTLE).where(THROTTLE.c.name == key))
                connection.execute(
                    sa.insert(THROTTLE).values(name=key, failures=failures, until=now() + wait)
                )

    def set_password(self, name: str, old: str, new: str, *, keep: str) -> None:
        """A new password, set by somebody who knows the old one; other sessions end."""
        self.confirm(name, old, "change the password", "the old password is wrong")
        self._store.change(
            PEOPLE, [PEOPLE.c.name == name], password=self._hashed(checked_password(new, name))
        )
        self._store.drop(SESSIONS, SESSIONS.c.person == name, SESSIONS.c.digest != keep)

    def confirm(self, name: str, password: str, what: str, wrong: str = "the password is wrong") -> None:
        """Refuse anybody who does not know the password of the account, signed in or not."""
        keys = (f"password {name}", f"password {name} all")
        self._wait(keys)
        found = self._store.one(PEOPLE, name=name)
        if found is None or not self._matches(str(found["password"]), password[:MOST]):
            # A borrowed session is no place to try passwords.
            self._failed(keys)
            raise NotAllowed(who="you", what=what, reason=wrong)

    # --- one-time links ------------------------------------------------------------------------------
    def _link(self, kind: str, person: str, seconds: float, roles: str = "") -> str:
        secret = new_secret()
        with self._store.transaction() as connection:
            # A newer link of the same kind replaces an older one.
            connection.execute(sa.delete(LINKS).where(LINKS.c.kind == kind, LINKS.c.person == person))
            connection.execute(
                sa.insert(LINKS).values(
                    digest=digest_of(secret),
                    kind=kind,
                    person=person,
                    roles=roles,
                    expires=now() + seconds,
                    used=0,
                )
            )
        return secret

    def first_link(self, folder: Path, url: str) -> str:
        """The link for the first custodian, in a file of mode 0600; empty if somebody has an account already."""
        if self._store.all(PEOPLE, most=1):
            return ""
        secret = self._link("first", "", FIRST_MINUTES * 60)
        link = f"{url}/welcome?code={secret}"
        place = folder / FIRST_FILE
        place.unlink(missing_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{link}\n")
        return link

    def link(self, secret: str) -> Row | None:
        """The purpose of a link, if it can be used; `welcome` uses it."""
        found = self._store.one(LINKS, digest=digest_of(secret))
        if found is None or found["used"] or not 0 <= found["expires"] - now() <= INVITE_HOURS * 3600 + AHEAD:
            return None
        if found["kind"] == "first" and self._store.all(PEOPLE, most=1):
            return None
        return found

    def welcome(self, secret: str, name: str, password: str) -> tuple[str, str]:
        """Use a link once: the name, and the secret of a session."""
        found = self.link(secret)
        if found is None:
            raise NotAllowed(
                who="you", what="use this link", reason="it was used, replaced, or is too old",
                hint="ask the custodian for a new one; the first link is written again when the server starts",
            )  # fmt: skip
        person = str(found["person"]) or name
        if found["kind"] == "first":
            self._checked_name(person)
        hashed = self._hashed(checked_password(password, person))
        with self._store.transaction() as connection:
            used = connection.execute(
                sa.update(LINKS).where(LINKS.c.digest == digest_of(secret), LINKS.c.used == 0).values(used=1)
            ).rowcount
            if used != 1:
                raise NotAllowed(who="you", what="use this link", reason="it was used already")
            if found["kind"] == "first":
                connection.execute(
                    sa.insert(PEOPLE).values(
                        name=person, roles=json.dumps(["custodian"]), password=hashed, created=now(), active=1
                    )
                )
            else:
                connection.execute(sa.update(PEOPLE).where(PEOPLE.c.name == person).values(password=hashed))
        self._store.audit(person, "set a password by link")
        return person, self.new_session(person)

    # --- sessions ------------------------------------------------------------------------------------
    def new_session(self, name: str) -> str:
        """The secret of a new session; old sessions that ended are removed."""
        secret, time = new_secret(), now()
        self._store.drop(
            SESSIONS, sa.or_(SESSIONS.c.seen < time - self._idle, SESSIONS.c.created < time - self._life)
        )
        self._store.add(
            SESSIONS, digest=digest_of(secret), person=name, csrf=new_secret(), created=time, seen=time
        )
        return secret

    def session(self, secret: str) -> WebSession | None:
        """The session of a cookie, if it has not ended."""
        if not secret or len(secret) > 200:
            return None
        return self.session_by_digest(digest_of(secret))

    def session_by_digest(self, digest: str) -> WebSession | None:
        """The same by the stored hash of the cookie, for a running stream that asks often."""
        found, time = self._store.one(SESSIONS, digest=digest), now()
        if found is None:
            return None
        old = time - float(found["seen"]) > self._idle or time - float(found["created"]) > self._life
        # Made while the clock was ahead: it would live on until the clock is there again.
        old = old or float(found["created"]) > time + AHEAD
        person = self.person(str(found["person"]))
        if old or person is None:
            self._store.drop(SESSIONS, SESSIONS.c.digest == digest)
            return None
        return WebSession(
            person=person, csrf=str(found["csrf"]), digest=digest, unseen=abs(time - float(found["seen"]))
        )

    def seen(self, session: WebSession) -> None:
        """The session was used; written at most once a minute."""
        if session.digest and session.unseen > 60:
            self._store.change(SESSIONS, [SESSIONS.c.digest == session.digest], seen=now())

    def end_session(self, digest: str) -> None:
        """Sign out."""
        self._store.drop(SESSIONS, SESSIONS.c.digest == digest)

    def end_sessions(self, name: str) -> None:
        """Sign a person out everywhere."""
        self._store.drop(SESSIONS, SESSIONS.c.person == name)

    # --- tokens --------------------------------------------------------------------------------------
    def new_token(self, person: Member, label: str, scopes: Iterable[str], days: int, most_days: int) -> str:
        """A token for programs, shown once."""
        given = sorted(set(scopes))
        for scope in given:
            if scope not in SCOPES:
                raise UnknownName(what="scope", name=scope, known=SCOPES)
        if not given:
            raise InvalidParameter(
                parameter="scopes", value=None, must="have one at least", hint="read, or ask"
            )
        if not 1 <= days <= most_days:
            raise InvalidParameter(parameter="days", value=days, must=f"be from 1 to {most_days}")
        if not label or len(label) > 60 or not label.isprintable():
            must = "be a printable text of 1 to 60 characters"
            raise InvalidParameter(parameter="label", value=label[:60], must=must)
        secret = f"tacit_{new_secret()}"
        self._store.add(
            TOKENS, id=new_secret(9), digest=digest_of(secret), person=person.name, label=label,
            scopes=",".join(given), created=now(), expires=now() + days * 86_400,
        )  # fmt: skip
        self._store.audit(person.name, "made a token", label)
        return secret

    def token(self, secret: str, address: str = "") -> WebSession | None:
        """Whom a token acts for, if it is valid."""
        if not secret.startswith("tacit_") or len(secret) > 200:
            return None
        found = self._store.one(TOKENS, digest=digest_of(secret))
        if found is None:
            return None
        if found["revoked"] or found["expires"] < now() or found["created"] > now() + AHEAD:
            # Somebody may have it who should not.
            self._store.audit(
                str(found["person"]), "refused: a token that has ended", str(found["label"]), address
            )
            return None
        person = self.person(str(found["person"]))
        if person is None:
            return None
        return WebSession(
            person=person, token=str(found["id"]), scopes=frozenset(str(found["scopes"]).split(","))
        )

    def tokens(self, name: str) -> list[Row]:
        """A person's tokens, without their secrets."""
        return self._store.all(TOKENS, order=TOKENS.c.created, person=name)

    def revoke(self, name: str, token: str) -> None:
        """End a token."""
        self._store.change(TOKENS, [TOKENS.c.person == name, TOKENS.c.id == token], revoked=1)
        self._store.audit(name, "revoked a token", token)

    # --- keys ----------------------------------------------------------------------------------------
    def make_key(self, person: Member, passphrase: str) -> str:
        """A new Ed25519 pair; the private key is encrypted with the passphrase. The public key in hexadecimal."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        checked_password(passphrase, person.name, what="passphrase")
        key = Ed25519PrivateKey.generate()
        with self._slot():
            kept = _sealed(key.private_bytes_raw(), passphrase)
        public = key.public_key().public_bytes_raw().hex()
        self._store.change(PEOPLE, [PEOPLE.c.name == person.name], key_private=kept, key_public=public)
        self._store.audit(person.name, "made a key on the server", public[:16])
        return public

    def bring_key(self, person: Member, text: str) -> str:
        """A public key whose private one is elsewhere: PEM, or 64 hexadecimal digits."""
        from tacit.ledger.entries import is_key

        public = _public(text)
        if public is None or not is_key(public):
            raise InvalidParameter(
                parameter="key", value="a text", must="be an Ed25519 public key: PEM, or 64 hexadecimal digits",
                hint="tacit key make writes FILE.pub; paste that file's text",
            )  # fmt: skip
        self._store.change(PEOPLE, [PEOPLE.c.name == person.name], key_private="", key_public=public.hex())
        self._store.audit(person.name, "brought a public key", public.hex()[:16])
        return public.hex()

    def signer(self, person: Member, passphrase: str) -> Any:
        """The private key for one signature. It is never cached."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        from tacit.curator.certificate import SigningKey

        found = self._store.one(PEOPLE, name=person.name)
        if found is None or not found["key_private"]:
            raise NotAllowed(
                who=person.name, what="sign here", reason="no key is kept on the server for this account",
                hint="make one on the page Account, or sign elsewhere: tacit key sign",
            )  # fmt: skip
        keys = (f"passphrase {person.name}", f"passphrase {person.name} all")
        self._wait(keys)
        with self._slot():
            raw = _opened(str(found["key_private"]), passphrase[:MOST])
        if raw is None:
            self._failed(keys)
            raise NotAllowed(who=person.name, what="sign", reason="the passphrase is wrong")
        return SigningKey(Ed25519PrivateKey.from_private_bytes(raw))

    # --- other identities ----------------------------------------------------------------------------
    def by_subject(self, issuer: str, subject: str) -> Member | None:
        """The account that is bound to a subject of an identity provider."""
        found = self._store.one(PEOPLE, subject=f"{issuer}\n{subject}")
        return None if found is None or not found["active"] else _person(found)

    def bind(self, name: str, issuer: str, subject: str) -> None:
        """Bind an account to a subject, once: another subject needs a reset by the custodian."""
        wanted = f"{issuer}\n{subject}"
        free = [PEOPLE.c.name == name, sa.or_(PEOPLE.c.subject.is_(None), PEOPLE.c.subject == wanted)]
        bound = 0
        try:
            bound = self._store.change(PEOPLE, free, subject=wanted)
        except sa.exc.IntegrityError:
            raise NotAllowed(
                who=name, what="be bound to this identity", reason="another account is bound to it"
            ) from None
        if not bound:
            raise NotAllowed(
                who=name, what="be bound to this identity", reason="the account is bound to another one",
                hint="a custodian resets the account on the page People",
            )  # fmt: skip
        self._store.audit(name, "bound to single sign-on")


def checked_password(password: str, name: str, *, what: str = "password") -> str:
    """A password that is long enough, and is not the name."""
    if not LEAST <= len(password) <= MOST or password.lower() == name or len(set(password)) < 4:
        raise InvalidParameter(
            parameter=what, value="a text", must=f"have {LEAST} to {MOST} characters, four different ones at least",
            hint="three or four words in a row are easy to remember",
        )  # fmt: skip
    return password


def checked_roles(roles: Iterable[str]) -> list[str]:
    """Roles of a server, sorted."""
    given = sorted(set(roles))
    for role in given:
        if role not in ROLES:
            raise UnknownName(what="role", name=role, known=ROLES)
    if not given:
        raise InvalidParameter(parameter="roles", value=None, must="have one at least", hint=", ".join(ROLES))
    return given


def same(one: str, other: str) -> bool:
    """Are these secrets equal? Takes the same time for every place of a difference."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _roles(row: Row) -> list[str]:
    return [str(r) for r in json.loads(row["roles"])]


def _person(row: Row) -> Member:
    return Member(
        name=str(row["name"]), roles=frozenset(_roles(row)), key_public=str(row["key_public"]),
        key_on_server=bool(row["key_private"]), has_password=bool(row["password"]), bound=bool(row["subject"]),
    )  # fmt: skip


def _derived(passphrase: str, salt: bytes) -> bytes:
    from argon2.low_level import Type, hash_secret_raw

    return bytes(hash_secret_raw(
        passphrase.encode("utf-8", "replace"), salt, time_cost=3, memory_cost=65_536, parallelism=1, hash_len=32,
        type=Type.ID,
    ))  # fmt: skip


def _sealed(raw: bytes, passphrase: str) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    salt, nonce = os.urandom(16), os.urandom(12)
    sealed = ChaCha20Poly1305(_derived(passphrase, salt)).encrypt(nonce, raw, b"tacit key 1")
    return base64.b64encode(salt + nonce + sealed).decode("ascii")


def _opened(kept: str, passphrase: str) -> bytes | None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    body = base64.b64decode(kept)
    try:
        return ChaCha20Poly1305(_derived(passphrase, body[:16])).decrypt(
            body[16:28], body[28:], b"tacit key 1"
        )
    except InvalidTag:
        return None


def _public(text: str) -> bytes | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    given = text.strip()
    if re.fullmatch(r"[0-9a-fA-F]{64}", given):
        return bytes.fromhex(given)
    try:
        key = load_pem_public_key(given.encode("ascii"))
    except (ValueError, UnicodeEncodeError, UnsupportedAlgorithm):
        return None
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else None
