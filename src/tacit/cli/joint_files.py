"""The files of `tacit joint`: messages, and a release with the signed messages from which it follows."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.output import write_whole
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.curator import Releases
    from tacit.parties.agreement import Agreement
    from tacit.parties.byhand import Carried
    from tacit.parties.session import Session

__all__ = ["compare", "deliver", "listed", "message_place", "private_folder", "write_joint"]


def compare(agreed: Agreement, session: Session, total: Any, release: Path, finds: Any) -> None:
    """Values and certificates against those that this sum has; when it was made and by what is taken as said."""
    from tacit.curator.certificate import json_text
    from tacit.curator.names import file_stem
    from tacit.parties import releases_of

    names = [r.name for r in agreed.joint.plan(agreed.joint.price.bound()).releases]
    for at, name in enumerate(names):
        stem = file_stem(name)
        try:
            told = (release / "certificates" / f"{stem}.json").read_text(encoding="utf-8")
            values = (release / "values" / f"{stem}.csv").read_text(encoding="utf-8")
            said = json_module.loads(told)
            as_said = {"time": said["ledger"]["time"], "made_by": said["versions"]}
            as_said["quality_rule"] = said["data"].get("quality_rule", 1)
            one = releases_of(agreed.joint, total, session=session, **as_said)[at]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            finds(f"{name}: values and certificate", False, "they cannot be read")
            continue
        finds(f"{name}: the values are those of the sum", values == one.to_csv())
        finds(f"{name}: the certificate is that of the sum", told == json_text(one.certificate) + "\n")


def write_joint(agreed: Agreement, session: Session, found: Carried, out: Path) -> list[str]:
    """Values, certificates, and the signed messages from which everybody can compute them again."""
    from tacit.curator.certificate import json_text
    from tacit.curator.names import file_stem
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
    """Where a message goes; another one under its name is never overwritten."""
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
