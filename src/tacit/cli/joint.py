"""`tacit joint`: a joint release of several holders, by files that people carry."""

from __future__ import annotations

import json as json_module
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.output import print_json, write_whole
from tacit.errors import BudgetExceeded, InvalidParameter, JointRefused, TacitError, charge_made, visible

if TYPE_CHECKING:
    from tacit.curator import Curator, Releases
    from tacit.parties.agreement import Carried, JointAgreement
    from tacit.parties.holder import KeptHolder
    from tacit.parties.masks import Opening
    from tacit.parties.session import Session

# The files of `tacit joint`: messages, and a release with the signed messages from which it follows.


PLACES = (("values", "csv"), ("certificates", "json"))
"""Folders of a joint release, and the endings of their files."""


def compare(agreed: JointAgreement, session: Session, total: Any, release: Path, finds: Any) -> None:
    """Compares values and certificates with those of this sum; believes its time and versions.

    Only a session of the first protocol may have words of quality by the first rule.
    """
    from tacit.curator.cells import RULE
    from tacit.curator.certificate import json_text
    from tacit.curator.request import file_stem
    from tacit.parties import releases_of
    from tacit.report.verifying import is_moment, odd_versions

    names = [r.name for r in agreed.joint.plan(agreed.joint.price.bound()).releases]
    moments: set[str] = set()
    for at, name in enumerate(names):
        stem = file_stem(name)
        try:
            told = (release / "certificates" / f"{stem}.json").read_text(encoding="utf-8")
            values = (release / "values" / f"{stem}.csv").read_text(encoding="utf-8")
            said = json_module.loads(told)
            as_said = {"time": said["ledger"]["time"], "made_by": said["versions"]}
            rule = said["data"].get("quality_rule", 1)
            known = type(rule) is int and (1 if session.protocol == 1 else RULE) <= rule <= RULE
            formed = known and is_moment(as_said["time"]) and not odd_versions(said["versions"])
            moments.add(as_said["time"])
            as_said["quality_rule"] = rule if known else RULE
            one = releases_of(agreed.joint, total, session=session, **as_said)[at]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            finds(f"{name}: values and certificate", False, "they cannot be read")
            continue
        why = "" if formed else "a time, versions or a rule of quality that nobody writes"
        finds(f"{name}: the stated facts have the right form", formed, why)
        finds(f"{name}: the values are those of the sum", values == one.to_csv())
        finds(f"{name}: the certificate is that of the sum", told == json_text(one.certificate) + "\n")
    finds("all releases were made at one time", len(moments) == 1)
    wanted = {f"{folder}/{file_stem(n)}.{end}" for n in names for folder, end in PLACES}
    there = {p.relative_to(release).as_posix() for folder, _ in PLACES for p in (release / folder).rglob("*")}
    other = ", ".join(sorted(there ^ wanted))
    finds("values and certificates are those of the releases, and no others", not other, visible(other))


def write_joint(agreed: JointAgreement, session: Session, found: Carried, out: Path) -> list[str]:
    """Values, certificates, and the signed messages from which everybody can compute them again."""
    from tacit.curator.certificate import json_text
    from tacit.curator.request import file_stem
    from tacit.parties import releases_of

    assert found.result is not None
    assert found.messages is not None
    releases: Releases = releases_of(agreed.joint, found.result, session=session)
    written: dict[str, bytes] = {}
    for one in releases:
        stem = file_stem(one.name)
        written[f"values/{stem}.csv"] = one.to_csv().encode()
        written[f"certificates/{stem}.json"] = (json_text(one.certificate) + "\n").encode()
    left = set(found.result.remaining)
    for kind in ("keys", "agree", "masked", "confirm", "reveal"):
        for i, raw in found.messages[kind].items():
            if kind in ("keys", "agree") or i in left:
                written[f"transcript/{kind}/{i}.msg"] = raw
    written["transcript/members.json"] = json_module.dumps(list(found.members)).encode()
    for name, body in written.items():
        deliver(out / "release" / name, body)
    return [str(out / "release" / name) for name in sorted(written) if not name.startswith("transcript")]


def listed(folder: Path) -> list[Path]:
    """The messages in a folder."""
    return sorted(folder.glob("*.msg"))


def private_folder(state: Path) -> None:
    """A folder for its owner alone."""
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise InvalidParameter(
            parameter="--state", value=str(state), must="be a folder", hint=(problem.strerror or "").lower()
        ) from None


def message_place(out: Path, name: str, body: bytes) -> Path:
    """The file of a message. A different message under its name is never overwritten."""
    place = out / name
    if place.exists() and (not place.is_file() or place.read_bytes() != body):
        raise InvalidParameter(
            parameter="--out", value=str(place), must="not hold another message",
            hint="nothing is ever overwritten; name another folder: the same answer is given again, free",
        )  # fmt: skip
    return place


def deliver(place: Path, raw: bytes) -> None:
    """A message or a file of a release, whole or absent."""

    def write(partial: Path) -> None:
        partial.write_bytes(raw)

    write_whole(place, write)


joint = typer.Typer(rich_markup_mode=None, add_completion=False)
SESSION = typer.Argument(..., metavar="SESSION", help="The folder of the session, from tacit joint init.")
PLAN = typer.Option(..., "--plan", help="This holder's plan: table, unit, schema, budget and ledger.")
KEY = typer.Option(..., "--key", help="This holder's private key, from tacit key make.")
STATE = typer.Option(..., "--state", help="A private folder, kept between messages.")
OUT = typer.Option(..., "--out", help="The folder for messages to send.")
JSON = typer.Option(False, "--json", help="Print one JSON object.")


@joint.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Publish joint statistics of several holders, by files."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@joint.command(name="init")
def init(
    path: Path = typer.Argument(..., metavar="AGREEMENT", help="The agreement, a TOML file."),
    out: Path = typer.Option(..., "--out", help="The folder of the session, a new one."),
    json: bool = JSON,
) -> None:
    """Begin a session from an agreement.

    Prints the price, and the extra noise against one curator. Reads no data.
    """
    from tacit.parties.agreement import begin

    agreed, session = begin(path, out)
    _tell(agreed, session, json, {"session": str(out)})


@joint.command(name="join")
def join(
    folder: Path = SESSION,
    plan: Path = PLAN,
    key: Path = KEY,
    trusted: Path = typer.Option(
        ..., "--trusted", help="A folder of the other holders' public keys (*.pub)."
    ),
    state: Path = STATE,
    out: Path = OUT,
    commit: bool = typer.Option(False, "--commit", help="Publish a hiding commitment to the data file."),
    json: bool = JSON,
) -> None:
    """Join a session as a holder, without a charge.

    Compares schema, unit and budget with the agreement.
    """
    from tacit.curator.plan_files import read_plan
    from tacit.parties.agreement import open_session, trusted_keys
    from tacit.parties.holder import locked

    agreed, session = open_session(folder)
    session.still_run()
    with read_plan(plan, releases=False).curator() as curator:
        signing = _key(key)
        index = agreed.place(signing.public_key().public_bytes_raw())
        known = trusted_keys(trusted) | {agreed.keys[index]}
        strange = [visible(n) for n, k in zip(agreed.names, agreed.keys, strict=True) if k not in known]
        if strange:
            raise InvalidParameter(
                parameter="--trusted", value=strange, must="have the key of every holder of the session",
                hint="a holder whose key nobody vouches for could be the aggregator itself: ask them for their key",
            )  # fmt: skip
        _affordable(agreed, curator)
        private_folder(state)
        with locked(state):
            opening = _committed(plan, curator, state) if commit else None
            kept = _kept(agreed, session, curator, signing, index, state, plan, opening=opening)
            raw = kept.start()
        place = message_place(out, f"keys-{index}.msg", raw)
        deliver(place, raw)
    _tell(agreed, session, json, {
        "holder": agreed.names[index], "index": index, "message": str(place), "charged": False,
        "commitment": opening.commitment if opening else "",
    })  # fmt: skip


@joint.command(name="contribute")
def contribute(
    folder: Path = SESSION,
    message: Path = typer.Argument(..., metavar="MESSAGE", help="A message of the aggregator."),
    plan: Path = PLAN,
    key: Path = KEY,
    state: Path = STATE,
    out: Path = OUT,
    json: bool = JSON,
) -> None:
    """Answer a message of the aggregator.

    The message with sealed shares charges this holder's ledger and reads its table; the others are free.
    """
    from tacit.curator.plan_files import read_plan
    from tacit.parties.agreement import open_session, read_message
    from tacit.parties.holder import locked
    from tacit.parties.session import read

    agreed, session = open_session(folder)
    session.still_run()
    raw = read_message(message)
    signing = _key(key)
    index = agreed.place(signing.public_key().public_bytes_raw())
    if not state.is_dir():
        raise JointRefused(reason="this holder has not joined this session", charged="it was charged nothing")
    with read_plan(plan, releases=False).curator() as curator, locked(state):
        kept = _kept(agreed, session, curator, signing, index, state, plan)
        answer = kept.handle(raw)
        with charge_made() if kept.paid else nullcontext():
            kind = read(answer, session=session.id, keys=list(session.keys)).kind
            place = message_place(out, f"{kind}-{index}.msg", answer)
            spent = str(curator.spent)
            deliver(place, answer)
        told = {"holder": agreed.names[index], "index": index, "kind": kind, "message": str(place),
                "charged": kept.holder.charged, "spent": spent}  # fmt: skip
    if json:
        print_json(told)
        return
    print(f"{visible(agreed.names[index])} answers with {kind}: {visible(str(place))}")
    print(f"spent so far of this holder's budget: {spent}")


@joint.command(name="combine")
def combine(
    folder: Path = SESSION,
    messages: list[Path] = typer.Argument(
        None, metavar="MESSAGES...", help="Messages of holders, in any order."
    ),
    state: Path = STATE,
    out: Path = OUT,
    go_on: bool = typer.Option(False, "--go-on", help="Close this stage without missing answers."),
    json: bool = JSON,
) -> None:
    """Collect messages and write the next ones, or the release.

    The aggregator needs no key and holds no secret.
    """
    from tacit.parties.agreement import collect, open_session, read_message

    agreed, session = open_session(folder)
    raws = [read_message(m) for m in messages or ()]
    private_folder(state)
    found = collect(session, state, raws, go_on=go_on)
    files: list[str] = []
    for i, raw in found.sent.items():
        place = message_place(out, f"to-{i}-{found.sent_after}.msg", raw)
        deliver(place, raw)
        files.append(str(place))
    if found.result is not None:
        files = write_joint(agreed, session, found, out)
    missing = [agreed.names[i] for i in found.missing]
    if json:
        print_json({"stage": found.stage, "closed": found.closed, "taken": found.taken, "missing": missing,
                    "refused": found.refused, "files": files,
                    "remaining": list(found.result.remaining) if found.result else None})  # fmt: skip
        return
    for problem in found.refused:
        print(f"refused: {problem}")
    waiting = ", ".join(map(visible, missing))
    if not found.closed and found.result is None:
        print(f"{found.stage}: {len(found.taken)} are there; missing: {waiting} (--go-on leaves them out)")
        return
    print(
        f"{found.stage}: closed with {len(found.taken)} holders" + (f", without {waiting}" if missing else "")
    )
    print("written: " + ", ".join(visible(f) for f in files))


@joint.command(name="verify")
def verify(
    folder: Path = SESSION,
    release: Path = typer.Argument(..., metavar="RELEASE", help="The folder of the release."),
    json: bool = JSON,
) -> None:
    """Compute a joint release again from signed messages.

    Exits with 1 if anything differs. Compare the id of the session yourself.
    """
    from tacit.parties.agreement import open_session, recomputed

    agreed, session = open_session(folder)
    findings: list[dict[str, Any]] = []

    def finds(what: str, holds: bool, why: str = "") -> None:
        findings.append({"what": what, "holds": holds, "why": why})

    try:
        said = json_module.loads((release / "transcript" / "members.json").read_text(encoding="utf-8"))
        kinds = ("keys", "agree", "masked", "confirm", "reveal")
        parts = {k: [p.read_bytes() for p in listed(release / "transcript" / k)] for k in kinds}
        total = recomputed(session, parts, said)
    except (TacitError, OSError, ValueError, TypeError) as problem:
        why = str(problem) if isinstance(problem, TacitError) else "the transcript cannot be read"
        finds("the signed messages give a sum", False, visible(why))
    else:
        finds("the signed messages give a sum", True, f"of {len(total.remaining)} holders")
        compare(agreed, session, total, release, finds)
    ok = all(f["holds"] for f in findings)
    if json:
        print_json({"ok": ok, "findings": findings})
    else:
        for f in findings:
            why = f": {f['why']}" if f["why"] else ""
            print(f"{'holds' if f['holds'] else 'FAILS'}  {visible(f['what'])}{why}")
        print("everything that could be checked holds" if ok else "this release is not what was made")
    if not ok:
        raise typer.Exit(1)


# --- the parts ----------------------------------------------------------------------------------------------
def _tell(agreed: JointAgreement, session: Session, json: bool, more: dict[str, Any]) -> None:
    plan = agreed.joint.plan(agreed.joint.price.bound())
    sizes = agreed.joint.sizes
    if json:
        print_json({
            **more, "id": session.id.hex(), "sizes": sizes.to_dict(), "charge": plan.charge.to_dict(),
            "variance_ratio": sizes.holders / sizes.honest, "excess": sizes.excess(sizes.holders),
            "numbers": agreed.joint.length, "holders": list(agreed.names),
        })  # fmt: skip
        return
    print(agreed.joint)
    print(f"\nsession: {session.id.hex()} (compare it with the other holders)")
    for name, value in more.items():
        if isinstance(value, str) and value:
            print(f"{name}: {visible(value)}")


def _key(path: Path) -> Any:
    from tacit.curator.certificate import SigningKey

    return SigningKey.read(path).key


def _kept(
    agreed: JointAgreement, session: Session, curator: Curator, signing: Any, index: int, state: Path, plan: Path, *,
    opening: Opening | None = None,
) -> KeptHolder:  # fmt: skip
    """The holder whose state lies in this folder; its version and its file are compared before the charge."""
    from tacit.parties.holder import KeptHolder

    make = agreed.joint.contribution(curator, session)

    def checked() -> Any:
        if curator.version != kept.note["version"]:
            raise InvalidParameter(
                parameter="version", value=curator.version, must="be the one with which the holder joined",
                hint="it was not charged",
            )  # fmt: skip
        if kept.note["digest"] and _digest(plan) != kept.note["digest"]:
            raise InvalidParameter(
                parameter="--plan", value=str(plan), must="name the data that were committed to",
                hint="they have changed since this holder joined; it was not charged",
            )  # fmt: skip
        return make()

    kept = KeptHolder(
        state / f"{session.id.hex()[:16]}.state", session=session, index=index, key=signing, contribute=checked,
        table=opening.commitment if opening else "", rehearsal=curator.made_up or not curator.publishable,
        note={"version": curator.version, "digest": opening.digest if opening else ""},
    )  # fmt: skip
    return kept


def _affordable(agreed: JointAgreement, curator: Curator) -> None:
    """The schema is the agreed one, and the budget has room now; the charge itself is made later."""
    asked, left = agreed.joint.check(curator).charge.bound, curator.remaining
    short = asked.kind == left.kind and any(
        float(v) * (1 - 1e-9) > float(left.parameters[k]) for k, v in asked.parameters.items()
    )
    if short:
        raise BudgetExceeded(spent=curator.spent, asked=asked, left=left)


def _digest(plan: Path) -> str:
    """The digest of the only data file of a plan."""
    import hashlib

    from tacit.curator.plan_files import read_plan

    data = read_plan(plan, releases=False).data
    if not isinstance(data, str) or not Path(data).is_file():
        raise InvalidParameter(
            parameter="--commit", value="other data", must="be used with one data file", hint="commit_to(...) takes any"
        )  # fmt: skip
    with Path(data).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _committed(plan: Path, curator: Curator, state: Path) -> Opening:
    """A fresh commitment, or the one kept from an earlier attempt; the file stays with the holder."""
    from tacit.parties import Opening, commit_to
    from tacit.parties.holder import write_private

    place = state / "opening.json"
    try:
        said = json_module.loads(place.read_text(encoding="utf-8"))
        return Opening(digest=said["digest"], version=said["version"], secret=bytes.fromhex(said["secret"]))
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidParameter(
            parameter="--state", value=str(place), must="be the opening that tacit joint join wrote"
        ) from None
    opening = commit_to(digest=_digest(plan), version=curator.version)
    told = {"digest": opening.digest, "version": opening.version, "secret": opening.secret.hex()}
    write_private(place, json_module.dumps(told).encode())
    return opening
