"""An agreement as a TOML file: [protect], [schema.*], [spend], [joint], [[holder]], [[release]].

It is a plan without data. Everybody has the same file, and each holder a plan of its own that names its table,
budget and ledger. The words are those of plans, each from a closed list.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tacit.curator.certificate import PublicKey
from tacit.curator.plan_files import asks_in, known, parse_toml, price_in, read_text, unit_in
from tacit.errors import BadMessage, InvalidParameter, visible
from tacit.exact.canonical import sha256
from tacit.exact.data_classes import dataclass
from tacit.ledger.register import admitted
from tacit.parties.aggregator import Aggregator, SecureSum
from tacit.parties.holder import locked, write_private
from tacit.parties.joint import Joint
from tacit.parties.session import PROTOCOL, Session, Sizes, read
from tacit.sources.schema import schema_from_tables

TABLES = ("holder", "joint", "protect", "release", "schema", "spend")
SIZES = ("appearances", "colluding", "fewest", "threshold")
JOINT = (*SIZES, "graph_delta", "most_rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class JointAgreement:
    """The contents of an agreement file: the joint plan, and the holders by name and public key."""

    joint: Joint
    names: tuple[str, ...]
    keys: tuple[bytes, ...]
    text: str = field(repr=False)

    def place(self, key: bytes) -> int:
        """The holder with this public key."""
        if key not in self.keys:
            raise InvalidParameter(
                parameter="--key", value="another key", must="be the key of one of the holders",
                hint="the agreement lists their public keys",
            )  # fmt: skip
        return self.keys.index(key)


def read_agreement(path: str | Path) -> JointAgreement:
    """The agreement in a TOML file; keys of holders are paths beside it, or 64 hexadecimal digits."""
    path = Path(path)
    return parse_agreement(read_text(path, parameter="agreement"), path)


def parse_agreement(text: str, path: Path, *, keys: Sequence[bytes] | None = None) -> JointAgreement:
    """The agreement in a text at this path; `keys` are the ones that a session uses instead of the agreement's."""
    data = parse_toml(text, parameter="agreement", name=str(path))
    known("table of an agreement", data, TABLES)
    for name in ("protect", "schema", "spend", "joint"):
        if not isinstance(data.get(name), Mapping):
            raise InvalidParameter(parameter=f"[{name}]", value=None, must="be in the agreement")
    known("word in [joint]", data["joint"], JOINT)
    said = data["joint"]
    names, own = _holders(data.get("holder"), path, keys)
    sizes = Sizes(holders=len(own), **{k: _whole(k, said[k]) for k in SIZES if k in said})
    more: dict[str, Any] = {}
    if "most_rows" in said:
        more["most_rows"] = _whole("most_rows", said["most_rows"])
    if "graph_delta" in said:
        more["graph_delta"] = said["graph_delta"]
    joint = Joint(
        asks=asks_in(data.get("release")),
        schema=schema_from_tables(data["schema"]),
        unit=unit_in(data["protect"]),
        sizes=sizes,
        price=price_in("[spend]", data["spend"]),
        **more,
    )
    return JointAgreement(joint=joint, names=names, keys=own, text=text)


def _whole(name: str, value: object) -> int:
    if type(value) is not int:
        raise InvalidParameter(parameter=f"[joint] {name}", value=value, must="be a whole number")
    return value


def _holders(
    given: object, path: Path, known_keys: Sequence[bytes] | None
) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    if not isinstance(given, list) or any(not isinstance(h, Mapping) for h in given):
        raise InvalidParameter(
            parameter="[[holder]]", value=None, must="be there for each holder",
            hint='name = "north", key = "north.pub"',
        )  # fmt: skip
    names: list[str] = []
    keys: list[bytes] = []
    for number, one in enumerate(given, 1):
        known(f"word of holder {number}", one, ("key", "name"))
        name, key = one.get("name"), one.get("key")
        if not isinstance(name, str) or not isinstance(key, str):
            raise InvalidParameter(parameter=f"holder {number}", value=None, must="have a name and a key")
        # A session that was begun before goes by its exact names.
        if known_keys is None and name not in names:
            admitted(f"the name of holder {number}", name, names)
        names.append(name)
        if known_keys is None:
            keys.append(_key(path, key))
        elif len(known_keys) == len(given):
            keys.append(known_keys[number - 1])
        else:
            raise InvalidParameter(
                parameter="session", value=len(known_keys), must="have a key for each holder"
            )
    for what, some in (("name", names), ("key", keys)):
        if len(set(some)) != len(some):
            raise InvalidParameter(
                parameter="[[holder]]", value=f"a {what} twice", must="be different holders: each joins once"
            )
    return tuple(names), tuple(keys)


def _key(path: Path, told: str) -> bytes:
    try:
        found = bytes.fromhex(told)
    except ValueError:
        found = b""
    if len(found) == 32:
        return found
    place = Path(told) if Path(told).is_absolute() else path.parent / told
    raw = PublicKey.read(place).key.public_bytes_raw()
    assert isinstance(raw, bytes)
    return raw


# Files that are carried by hand: a session's folder, what a holder answers, what the aggregator collects.
#
#     session/     agreement.toml, session.json: public, the same for everybody
#     a holder's   state (sealed), version.json, opening.json if it committed to its table
#     aggregator's received/<kind>/<holder>.msg, progress.json: no secret but what was opened to it
#
# A message is a file; its name says nothing, its signature everything. A stage is closed once, and what was in it is
# on record: a message that arrives later changes nothing.

FORMATS = {"tacit joint session 1": 1, "tacit joint session 2": PROTOCOL}
"""The protocol named in a session's folder; tacit opens sessions of the first protocol only to verify their release.
"""
MOST_MESSAGE = 1 << 30
KINDS = ("keys", "shares", "agree", "masked", "confirm", "reveal")


# --- the session's folder -----------------------------------------------------------------------------------
def begin(agreement: Path, out: Path) -> tuple[JointAgreement, Session]:
    """A new session of an agreement, in a new folder; reads nobody's data."""
    agreed = read_agreement(agreement)
    session = agreed.joint.session(agreed.keys)
    _new_folder(out)
    said = {
        "format": f"tacit joint session {session.protocol}", "id": session.id.hex(), "nonce": session.nonce.hex(),
        "agreement": sha256(agreed.text.encode()), "names": list(agreed.names),
        "keys": [k.hex() for k in agreed.keys],
    }  # fmt: skip
    _write(out / "agreement.toml", agreed.text.encode())
    _write(out / "session.json", (json.dumps(said, indent=2) + "\n").encode())
    return agreed, session


def open_session(folder: Path) -> tuple[JointAgreement, Session]:
    """The session in a folder, if its parts belong together: id, agreement, keys and nonce."""
    wrong = InvalidParameter(
        parameter="SESSION", value=str(folder), must="be a folder that tacit joint init wrote, unchanged",
        hint="have it sent again, and compare the id with the others",
    )  # fmt: skip
    told = read_text(folder / "session.json", parameter="SESSION")
    agreement = read_text(folder / "agreement.toml", parameter="SESSION")
    try:
        said = json.loads(told)
        keys, nonce = [bytes.fromhex(k) for k in said["keys"]], bytes.fromhex(said["nonce"])
        protocol = FORMATS.get(said["format"], 0)
        fits = bool(protocol) and said["agreement"] == sha256(agreement.encode())
    except (ValueError, KeyError, TypeError, RecursionError):
        raise wrong from None
    if not fits:
        raise wrong
    agreed = parse_agreement(agreement, folder / "agreement.toml", keys=keys)
    session = agreed.joint.session(agreed.keys, nonce=nonce, protocol=protocol)
    if session.id.hex() != said.get("id") or list(agreed.names) != said.get("names"):
        raise wrong
    return agreed, session


def read_message(path: Path) -> bytes:
    """The bytes of a message file."""
    try:
        if path.stat().st_size > MOST_MESSAGE:
            raise InvalidParameter(parameter="message", value=str(path), must="be at most 1 GiB")
        return path.read_bytes()
    except OSError:
        raise InvalidParameter(parameter="message", value=str(path), must="be a readable file") from None


# --- the aggregator -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The state of a collection: the stage, the missing holders, the messages to send, or the sum.

    `sent` are the messages that follow from the last closed stage, and `sent_after` says whether it was closed
    now or in an earlier call.
    """

    stage: str
    sent_after: str
    taken: list[int]
    refused: list[str]
    missing: list[int]
    sent: dict[int, bytes]
    closed: bool
    result: SecureSum | None = None
    messages: Mapping[str, Mapping[int, bytes]] | None = None
    members: tuple[int, ...] = ()


def collect(session: Session, folder: Path, raws: Sequence[bytes], *, go_on: bool = False) -> Carried:
    """Takes messages of the open stage. Closes it when all have come, or on request without the rest."""
    session.still_run()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        aggregator, closed, sent = _resumed(session, folder)
        stage = aggregator.stage
        if stage == "done":
            return _over(aggregator, refused=[] if not raws else ["the session is over"])
        refused = []
        for raw in [*_received(folder, stage), *raws]:
            try:
                aggregator.handle(raw)
            except BadMessage as problem:
                refused.append(visible(str(problem)))
        got = {i: m.raw for i, m in aggregator._got[stage].items()}
        for i, raw in got.items():
            place = folder / "received" / stage / f"{i}.msg"
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                _write(place, raw)
        missing = sorted(set(_expected(aggregator)) - set(got))
        if missing and not go_on:
            last = list(closed)[-1] if closed else ""
            return Carried(
                stage=stage, sent_after=last, taken=sorted(got), refused=refused, missing=missing, sent=sent,
                closed=False,
            )  # fmt: skip
        sent = aggregator.advance()
        # On record before anything is sent: a stage that is closed twice would be two views.
        closed[stage] = {str(i): sha256(raw) for i, raw in sorted(got.items())}
        write_private(
            folder / "progress.json", json.dumps({"session": session.id.hex(), "closed": closed}).encode()
        )
        if aggregator.stage == "done":
            return _over(aggregator, refused=refused, missing=missing, closed=True)
        return Carried(
            stage=stage, sent_after=stage, taken=sorted(got), refused=refused, missing=missing, sent=sent, closed=True
        )  # fmt: skip


def _over(
    aggregator: Aggregator, *, refused: list[str], missing: list[int] | None = None, closed: bool = False
) -> Carried:
    got = aggregator._got
    return Carried(
        stage="reveal", sent_after="reveal", taken=sorted(got["reveal"]), refused=refused, missing=missing or [],
        sent={}, closed=closed, result=aggregator.result(), members=tuple(aggregator._members),
        messages={k: {i: m.raw for i, m in got[k].items()} for k in KINDS},
    )  # fmt: skip


def _expected(aggregator: Aggregator) -> list[int]:
    """The holders who may still answer in this stage."""
    kept = {"shares": aggregator._roster, "agree": aggregator._members, "masked": aggregator._agreed}
    if aggregator.stage in ("confirm", "reveal"):
        return aggregator._survivors
    return kept.get(aggregator.stage, list(range(aggregator.session.sizes.holders)))


def _resumed(
    session: Session, folder: Path
) -> tuple[Aggregator, dict[str, dict[str, str]], dict[int, bytes]]:
    """The aggregator after the closed stages, from their messages, and its last messages."""
    aggregator, place, sent = Aggregator(session=session), folder / "progress.json", dict[int, bytes]()
    if not place.exists():
        return aggregator, {}, sent
    broken = InvalidParameter(
        parameter="--state", value=str(folder), must="be what tacit joint combine wrote in this session"
    )
    try:
        said = json.loads(read_text(place, parameter="--state"))
        closed: dict[str, dict[str, str]] = said["closed"]
        if said["session"] != session.id.hex() or list(closed) != list(KINDS[: len(closed)]):
            raise broken
        for stage, members in closed.items():
            for i, digest in members.items():
                raw = (folder / "received" / stage / f"{int(i)}.msg").read_bytes()
                if sha256(raw) != digest:
                    raise broken
                aggregator.handle(raw)
            sent = aggregator.advance()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadMessage):
        raise broken from None
    return aggregator, closed, sent


def _received(folder: Path, stage: str) -> list[bytes]:
    place = folder / "received" / stage
    return [p.read_bytes() for p in sorted(place.glob("*.msg"))] if place.is_dir() else []


def recomputed(
    session: Session, messages: Mapping[str, Sequence[bytes]], members: Sequence[int]
) -> SecureSum:
    """The sum computed again from its signed messages, for anybody who is given them."""
    aggregator = Aggregator(session=session)
    for kind in KINDS:
        if kind == "shares":
            aggregator.settle_members(list(members))
            continue
        if kind == "agree" and session.protocol == 1:
            continue
        for raw in messages.get(kind, ()):
            if read(raw, session=session.id, keys=list(session.keys)).kind != kind:
                raise BadMessage(what="a message", reason=f"it lies among those of the kind {kind}")
            aggregator.handle(raw)
        if kind == "confirm":
            signed = len(aggregator._got["confirm"])
            if signed < session.sizes.threshold:
                raise BadMessage(what="the list of survivors", reason=f"{signed} holders signed it")
        if kind == "agree":
            aggregator.settle_agreed(sorted(aggregator._got["agree"]))
        else:
            aggregator.advance()
    return aggregator.result()


# --- files --------------------------------------------------------------------------------------------------
def _new_folder(out: Path) -> None:
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InvalidParameter(
                parameter="--out", value=str(out), must="be a new or empty folder",
                hint="nothing is ever overwritten; name another one",
            )  # fmt: skip
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InvalidParameter(
            parameter="--out", value=str(out), must="be writable", hint=(problem.strerror or "").lower()
        ) from None


def _write(path: Path, body: bytes) -> None:
    """A public file, whole or absent."""
    write_private(path, body)
    os.chmod(path, 0o644)


def trusted_keys(folder: Path) -> set[bytes]:
    """The public keys (*.pub) that the other holders gave to this holder directly."""
    from tacit.curator.certificate import PublicKey

    if not folder.is_dir():
        raise InvalidParameter(
            parameter="--trusted", value=str(folder), must="be a folder of public keys (*.pub)",
            hint="each from its holder, by another way than the session itself",
        )  # fmt: skip
    found: set[Any] = {PublicKey.read(p).key.public_bytes_raw() for p in sorted(folder.glob("*.pub"))}
    return found
