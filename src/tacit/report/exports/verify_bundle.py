"""Checks a signed bundle of tacit, offline: `python verify_bundle.py BUNDLE.zip FINGERPRINT`.

A single file that needs Python 3.9 or later and the package `cryptography`, and nothing of tacit. FINGERPRINT is the
SHA-256 of the custodian's public key, 64 hexadecimal digits. Get the key, and this file, from the custodian by another
way than the bundle: anybody who can change the bundle can change its contents.

It finds every change of a byte: in the archive, in a file, in a certificate, in an entry of the ledger. It does
not recompute privacy bounds (`tacit verify` does), and it does not see the rest of the ledger. With the signed
anchor, an auditor who may see the ledger can tell later whether it is the same one. Exit code 0: all checks
hold. 1: one does not. 2: wrong arguments.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import sys
import zlib
from typing import Any

FORMAT = "tacit bundle 1"
CONTENT = "bundle.json"
FOLDER = "release/"
MOST_BYTES = 1 << 30
_LOCAL, _CENTRAL, _END = 0x04034B50, 0x02014B50, 0x06054B50


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> str:
    """The one text of a JSON value: keys sorted, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def content_digest(content: dict[str, Any]) -> str:
    """The digest of a bundle, manifest or certificate, without its digest and its signature."""
    return sha256(canonical({k: v for k, v in content.items() if k not in ("digest", "signature")}).encode())


# --- an archive that can be written in one way only --------------------------------------------------------
def pack(files: dict[str, bytes]) -> bytes:
    """A zip archive of these files: not compressed, sorted by name, one fixed date. The same files, the same bytes."""
    out, directory = io.BytesIO(), io.BytesIO()
    for name in sorted(files):
        body, said = files[name], name.encode("utf-8")
        head = (20, 0x0800, 0, 0, 0x21, zlib.crc32(body), len(body), len(body), len(said), 0)
        at = out.tell()
        out.write(struct.pack("<IHHHHHIIIHH", _LOCAL, *head) + said + body)
        directory.write(
            struct.pack("<IHHHHHHIIIHHHHHII", _CENTRAL, 20, *head, 0, 0, 0, 0o100644 << 16, at) + said
        )
    start, size = out.tell(), directory.tell()
    out.write(
        directory.getvalue() + struct.pack("<IHHHHIIH", _END, 0, 0, len(files), len(files), size, start, 0)
    )
    return out.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of such an archive; refuses any archive that `pack` would write differently."""
    found: dict[str, bytes] = {}
    at = 0
    while len(data) >= at + 30 and struct.unpack_from("<I", data, at)[0] == _LOCAL:
        size, _, length, extra = struct.unpack_from("<IIHH", data, at + 18)
        start = at + 30 + length + extra
        name = data[at + 30 : at + 30 + length].decode("utf-8")
        found[name] = data[start : start + size]
        at = start + size
    if pack(found) != data:
        raise ValueError("the archive was changed after it was written")
    return found


def read(text: Any) -> Any:
    """JSON without repeated keys, NaN or infinity: two readers cannot read it in two ways."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    def no_number(name: str) -> Any:
        raise ValueError(f"{name} is no number")

    return json.loads(text, object_pairs_hook=once, parse_constant=no_number)


# --- the checks --------------------------------------------------------------------------------------------
def fingerprint(key: bytes) -> str:
    """SHA-256 of a public key's 32 bytes."""
    return sha256(key)


_P = 2**255 - 19
_D = -121665 * pow(121666, _P - 2, _P) % _P


def is_key(key: bytes) -> bool:
    """Whether it is a point of the curve, in its only valid notation, whose order does not divide 8.

    For a point of small order anybody can make up signatures, without a private key.
    """
    y = int.from_bytes(key, "little") & (2**255 - 1)
    if len(key) != 32 or y >= _P:
        return False
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x * x % _P != square:
        return False
    for _ in range(3):
        both = _D * x * x * y * y % _P
        x, y = 2 * x * y * pow(1 + both, _P - 2, _P) % _P, (y * y + x * x) * pow(1 - both, _P - 2, _P) % _P
    return (x, y) != (0, 1)


def signed_by(key: bytes, signature: Any, format: str, digest: str) -> bool:
    """Is this the Ed25519 signature of the key under that digest?"""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        value = bytes.fromhex(signature["value"])
        if not is_key(key) or signature["algorithm"] != "Ed25519" or signature["key"] != fingerprint(key):
            return False
        message = f"signed by the custodian: {format}\n{digest}\n".encode()
        Ed25519PublicKey.from_public_bytes(key).verify(value, message)
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return False
    return True


def problems(data: bytes, expected: str) -> tuple[list[str], list[str]]:
    """Failed checks, and notes for a reader. An unchanged bundle has no failed check."""
    try:
        return _problems(data, expected)
    except Exception as problem:  # whatever a changed file makes a reader raise
        return [f"the bundle cannot be read: {type(problem).__name__}"], []


def _problems(data: bytes, expected: str) -> tuple[list[str], list[str]]:
    files = unpack(data)
    bundle = read(files[CONTENT])
    found: list[str] = []

    def check(holds: bool, what: str) -> None:
        if not holds:
            found.append(what)

    check(
        files[CONTENT] == (canonical(bundle) + "\n").encode(),
        f"{CONTENT} does not have the text of its content",
    )
    check(bundle.get("format") == FORMAT, f"{CONTENT} is of another format")
    check(bundle.get("digest") == content_digest(bundle), f"{CONTENT} does not match its digest")
    key = bytes.fromhex(bundle["public_key"])
    check(
        len(expected) == 64 and fingerprint(key) == expected.lower(),
        "the key is not the one that was expected",
    )
    check(signed_by(key, bundle.get("signature"), FORMAT, bundle["digest"]), "the signature does not hold")
    if found:
        return found, []
    listed = bundle["files"]
    other = set(files) ^ {*listed, CONTENT}
    check(not other, f"files are missing or added: {', '.join(sorted(other))}")
    for name, digest in listed.items():
        check(name in files and sha256(files[name]) == digest, f"{name} was changed")
    if found:
        return found, []
    return _contents(files, bundle, check, found)


def _contents(
    files: dict[str, bytes], bundle: dict[str, Any], check: Any, found: list[str]
) -> tuple[list[str], list[str]]:
    manifest = read(files[FOLDER + "manifest.json"])
    check(manifest.get("digest") == content_digest(manifest), "manifest.json does not match its digest")
    key = bytes.fromhex(bundle["public_key"])
    facts = _signature(manifest, "manifest.json", key, check)
    inner = {name[len(FOLDER) :] for name in files if name.startswith(FOLDER)}
    check(inner == {*manifest["files"], "manifest.json"}, "the manifest does not list all files")
    for name, digest in manifest["files"].items():
        check(".." not in name.split("/") and name[:1] != "/" and "\\" not in name, f"{name} lies outside")
        body = files.get(FOLDER + name)
        check(body is not None and sha256(body) == digest, f"{name} is not the file of the manifest")
    charge = manifest["ledger"]["sequence"]
    entries = _entries(bundle["ledger"], manifest["ledger"], check)
    digest, reserve = entries.get(charge, ("", {}))
    check(reserve.get("kind") == "reserve", "the entry of the charge is missing")
    check(digest == manifest["ledger"]["digest"], "the entry of the charge is not the one of the manifest")
    check(reserve.get("plan") == manifest["plan"], "the entry of the charge is about another plan")
    answers = [s for _, s in entries.values() if s["kind"] == "commit" and s["reserve"] == charge]
    check(
        len(answers) == 1 and answers[0]["answer"]["sha256"] == manifest["ledger"]["answer"],
        "the recorded answer is not the one of the manifest",
    )
    names = [n for n in manifest["files"] if n.startswith("certificates/")]
    check(bool(names), "there is no certificate")
    for name in names:
        said = read(files[FOLDER + name])
        check(said.get("digest") == content_digest(said), f"{name} does not match its digest")
        values = files.get(f"{FOLDER}values/{said['name'].replace(' ', '-')}.csv", b"")
        check(
            sha256(values) == said["values"]["sha256"],
            f"the values of {said['name']!r} are not the certified ones",
        )
        check(said["plan"]["digest"] == manifest["plan"], f"{name} is about another plan")
        charged = said["plan"]["charge"] == reserve.get("charge")
        check(charged, f"{name} states another charge than the ledger")
        check({**said["ledger"]} == manifest["ledger"], f"{name} names another entry of the ledger")
        check(said["publishable"] is True, f"{name} is not for publication")
        facts += [f for f in _signature(said, name, key, check) if f not in facts]
        condition = said["guarantee"]["condition"]["kind"]
        if condition != "always":
            facts.append(f"{name}: not differential privacy without a condition ({condition})")
    for _, said in entries.values():
        if said["kind"] in ("withdraw", "supersede") and said["about"] == charge:
            what = said.get("release") or "the whole release"
            done = "withdrawn" if said["kind"] == "withdraw" else "replaced"
            facts.append(f"{what} was {done} on {said['time'][:10]}")
    facts.append(f"anchor of the ledger when the bundle was made: {bundle['ledger']['anchor']}")
    facts.append(f"{len(names)} certificates, {len(files)} files, plan {manifest['plan']}")
    return found, facts


def _signature(said: dict[str, Any], name: str, key: bytes, check: Any) -> list[str]:
    """A signature by the bundle's key must hold; one by another key cannot be checked here, and the output says so."""
    held = said.get("signature")
    if held is None:
        return []
    if held["key"] == fingerprint(key):
        check(signed_by(key, held, said["format"], said["digest"]), f"the signature in {name} does not hold")
        return []
    return [f"not checked: signatures in the release by another key, {held['key']}"]


def _entries(
    ledger: dict[str, Any], named: dict[str, Any], check: Any
) -> dict[int, tuple[str, dict[str, Any]]]:
    """The entries of this charge by their numbers: each once, linked, and not later than the anchor."""
    charge = named["sequence"]
    check(ledger["id"] == named["id"], "the entries are of another ledger than the manifest names")
    end, _, top = ledger["anchor"].partition(":")
    entries: dict[int, tuple[str, dict[str, Any]]] = {}
    for one in ledger["entries"]:
        number, digest = one["sequence"], one["digest"]
        said = read(one["content"])
        same = sha256(one["content"].encode()) == digest and canonical(said) == one["content"]
        check(same, f"entry {number} was changed")
        check(said["sequence"] == number, f"entry {number} has another number")
        check(not entries or number > max(entries), f"entry {number} occurs twice or is out of order")
        about = {"reserve": number, "commit": said.get("reserve"), "failed": said.get("reserve")}
        check(about.get(said["kind"], said.get("about")) == charge, f"entry {number} is about another charge")
        before = entries.get(number - 1)
        linked = before is None or said["previous"] == before[0]
        check(linked, f"entry {number} does not follow the one before")
        under = number < int(end) or (number == int(end) and digest == top)
        check(under, f"entry {number} is not under the anchor")
        entries[number] = (digest, said)
    return entries


def shown(text: str) -> str:
    """A text that cannot move the cursor, hide a line or begin one."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text)


def main(arguments: list[str]) -> int:
    """The command."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    place, expected = arguments
    try:
        with open(place, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as problem:
        print(f"{place}: {(problem.strerror or 'cannot be read').lower()}", file=sys.stderr)
        return 2
    if len(data) > MOST_BYTES:
        print(f"{place}: more than {MOST_BYTES >> 20} MiB", file=sys.stderr)
        return 2
    wrong, facts = problems(data, expected)
    for one in wrong:
        print(f"DOES NOT HOLD: {shown(one)}")
    for one in facts:
        print(f"- {shown(one)}")
    print("something does not hold" if wrong else f"all holds; signed by the key {expected.lower()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
