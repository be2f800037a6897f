"""A holder between two messages: its secrets as one sealed file, for a protocol that is carried by hand.

The file is sealed by AES-256-GCM under a key that is derived from the holder's long-lived private key and the session:
who finds the file alone learns nothing of it. It is written, and flushed to the disk, before an answer leaves; and once
more, as ended, before the holder is charged. So a crash at any step leaves a holder that goes on, or one that refuses.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.errors import InvalidParameter, JointRefused
from tacit.exact.arrays import Words
from tacit.noise.source import Source, default_source
from tacit.parties.holder import Holder
from tacit.parties.masks import derive, random_bytes
from tacit.parties.session import Session

__all__ = ["KeptHolder", "locked", "write_private"]

MAGIC = b"tacit holder 1\n"


def _state_key(key: Ed25519PrivateKey, session: Session) -> bytes:
    return derive(key.private_bytes_raw(), session=session.id, purpose="state of a holder")


def write_private(path: Path, body: bytes) -> None:
    """A file that its owner alone may read, whole or absent, on the disk when this returns."""
    beside = path.with_name(path.name + ".new")
    try:
        beside.unlink(missing_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as problem:
        raise InvalidParameter(
            parameter="file", value=str(path), must="be writable", hint=(problem.strerror or "").lower()
        ) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time: two answers at once could confirm two lists."""
    try:
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise InvalidParameter(
            parameter="folder", value=str(folder), must="be writable", hint=(problem.strerror or "").lower()
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise JointRefused(
            reason="another process answers for this holder", charged="this one charged nothing"
        ) from None
    finally:
        os.close(handle)


class KeptHolder:
    """A `Holder` whose state lives in a file, which is written before an answer is given.

    `note` is what its owner wants to have kept with it from the start: the version and the digest of its table.
    """

    def __init__(
        self,
        path: Path,
        *,
        session: Session,
        index: int,
        key: Ed25519PrivateKey,
        contribute: Callable[[], Words],
        source: Source | None = None,
        table: str = "",
        rehearsal: bool = False,
        note: Mapping[str, str] | None = None,
    ) -> None:
        def once() -> Words:
            self._save()
            return contribute()

        self.path, self._key, self._session = path, key, session
        self.note, self._sent = dict(note or {}), b""
        self._source = source if source is not None else default_source()
        self.holder = Holder(
            session=session, index=index, key=key, contribute=once, source=self._source, table=table,
            rehearsal=rehearsal,
        )  # fmt: skip

    def start(self) -> bytes:
        """Begin; a session that was begun before gives the same first message: there is one set of keys."""
        if self.path.exists() or self.path.is_symlink():
            self._load()
            return self._sent
        self._sent = self.holder.start()
        self._save()
        return self._sent

    def handle(self, raw: bytes) -> bytes:
        """The answer to a message of the aggregator, after the new state is on the disk."""
        self._load()
        try:
            answer = self.holder.handle(raw)
        finally:
            self._save()
        return answer

    # --- the file -----------------------------------------------------------------------------------------
    def _save(self) -> None:
        h = self.holder
        said: dict[str, Any] = {
            "private": {k: v.hex() for k, v in h._private.items()},
            "answered": {k: [d.hex(), a.hex()] for k, (d, a) in h._answered.items()},
            "publics": {str(i): [a.hex(), b.hex()] for i, (a, b) in h._publics.items()},
            "kept": {str(i): v.hex() for i, v in h._kept.items()},
            "members": h._members, "survivors": h._survivors, "view": h._view.hex(), "first": h._first.hex(),
            "roster view": h._roster_view.hex(),
            "state": h.state, "asked": h.asked, "charged": h.charged, "index": h.index,
            "note": self.note, "sent": self._sent.hex(),
        }  # fmt: skip
        nonce = random_bytes(self._source, 12)
        sealed = AESGCM(_state_key(self._key, self._session)).encrypt(nonce, json.dumps(said).encode(), MAGIC)
        write_private(self.path, MAGIC + nonce + sealed)

    def _load(self) -> None:
        try:
            body = self.path.read_bytes()
        except OSError:
            body = b""
        if not body:
            raise JointRefused(
                reason="this holder has not joined this session", charged="it was charged nothing"
            )
        start = len(MAGIC)
        try:
            if not body.startswith(MAGIC):
                raise InvalidTag
            cipher = AESGCM(_state_key(self._key, self._session))
            plain = cipher.decrypt(body[start : start + 12], body[start + 12 :], MAGIC)
        except (InvalidTag, ValueError):
            raise InvalidParameter(
                parameter="state", value=str(self.path), must="be what this holder wrote in this session",
                hint="it was altered, or another key or another session is named",
            ) from None  # fmt: skip
        said = json.loads(plain)
        h = self.holder
        if said["index"] != h.index:
            raise InvalidParameter(parameter="state", value=str(self.path), must="be of this holder")
        h._private = {k: bytes.fromhex(v) for k, v in said["private"].items()}
        h._answered = {k: (bytes.fromhex(d), bytes.fromhex(a)) for k, (d, a) in said["answered"].items()}
        h._publics = {int(i): (bytes.fromhex(a), bytes.fromhex(b)) for i, (a, b) in said["publics"].items()}
        h._kept = {int(i): bytes.fromhex(v) for i, v in said["kept"].items()}
        h._members, h._survivors = said["members"], said["survivors"]
        h._view, h._first = bytes.fromhex(said["view"]), bytes.fromhex(said["first"])
        h._roster_view = bytes.fromhex(said["roster view"])
        h.state, h.asked, h.charged = said["state"], said["asked"], said["charged"]
        self.note, self._sent = said["note"], bytes.fromhex(said["sent"])
