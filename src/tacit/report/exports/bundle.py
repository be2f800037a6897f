"""A signed bundle: one archive with values, certificates, plan, this release's entries of the ledger, and an anchor.

The whole chain of a ledger reveals other people's queries, so it is not part of a bundle.
`verify_bundle.py`, a single file without tacit, checks the archive; the archive holds a copy for readers who trust
its source.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.curator.certificate import bound
from tacit.errors import InvalidParameter
from tacit.exact.canonical import canonical, sha256
from tacit.report.exports import verify_bundle
from tacit.report.exports.published import PublishedFolder

if TYPE_CHECKING:
    from tacit.curator.certificate import SigningKey

VERIFIER = "verify_bundle.py"
MOST_BYTES = verify_bundle.MOST_BYTES


def bundle_bytes(folder: PublishedFolder, *, ledger: str, key: SigningKey) -> bytes:
    """The archive. The same release, ledger and key give the same bytes."""
    if folder.manifest is None:
        raise InvalidParameter(
            parameter="DIR", value=str(folder.place), must="be the release of one custodian",
            hint="a joint release has a transcript that all holders signed: tacit joint verify checks it",
        )  # fmt: skip
    files = {
        verify_bundle.FOLDER + name: (folder.place / name).read_bytes()
        for name in (*folder.files, "manifest.json")
    }
    files[VERIFIER] = Path(verify_bundle.__file__).read_bytes()
    content: dict[str, Any] = {
        "format": verify_bundle.FORMAT,
        "title": folder.title,
        "files": {name: sha256(body) for name, body in sorted(files.items())},
        "ledger": _entries(folder, ledger),
        "public_key": key.public.text,
    }
    whole = bound(content)
    whole["signature"] = key.sign(verify_bundle.FORMAT, whole["digest"])
    packed = verify_bundle.pack({**files, verify_bundle.CONTENT: (canonical(whole) + "\n").encode()})
    wrong, _ = verify_bundle.problems(packed, key.public.fingerprint)
    if wrong:
        raise InvalidParameter(
            parameter="DIR",
            value=str(folder.place),
            must="be a release that its ledger recorded",
            hint=wrong[0],
        )
    return packed


def _entries(folder: PublishedFolder, ledger: str) -> dict[str, Any]:
    """The charge, its answer and later notes about it, with the anchor of the chain."""
    from tacit.ledger import Ledger

    number = int(folder.first["ledger"]["sequence"])
    with Ledger.open(ledger) as opened:
        if opened.id != folder.first["ledger"].get("id"):
            raise InvalidParameter(
                parameter="--ledger", value=ledger, must="be the ledger that was charged for this release",
                hint=f"that is {folder.first['ledger'].get('id')}",
            )  # fmt: skip
        chain = [entry for entry, _ in opened.entries_with_answers(answers=False)]
        anchor = f"{chain[-1].sequence}:{chain[-1].digest}"
    own = [
        e for e in chain
        if e.sequence == number or e.closes == number
        or (e.kind in ("withdraw", "supersede") and e.body["about"] == number)
    ]  # fmt: skip
    listed = [{"sequence": e.sequence, "digest": e.digest, "content": e.content} for e in own]
    return {"id": folder.first["ledger"]["id"], "anchor": anchor, "entries": listed}
