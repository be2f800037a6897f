"""The certificate of a release: plain JSON with the mechanisms, the largest disclosure, and the basis of both."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from tacit.accounting.codec import to_record
from tacit.curator.assignments import NoisyParts
from tacit.curator.choice import release_choice
from tacit.curator.planning import Plan, Planned, event_record
from tacit.curator.text import beyond_groups
from tacit.errors import InvalidParameter, TacitError
from tacit.exact.canonical import canonical, indented, sha256
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Guarantee, Priors
from tacit.ledger import entries as signatures
from tacit.ledger.entries import ALGORITHM, message
from tacit.sources.axes import CountAbove, Products, Squares, Steps
from tacit.sources.query import RowsWanted

# Signatures on certificates: Ed25519, with a key that the custodian keeps.
#
# What is signed is a line that names the format, and the digest of the content. The key is named in the certificate
# by its fingerprint, the SHA-256 of the 32 bytes of the public key; whoever checks must have the public key from the
# custodian, by another way than the release itself.

MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, to check signatures with."""

    key: Any = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> PublicKey:
        """The key in a PEM file."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        return cls(_loaded("key", path, load_pem_public_key, Ed25519PublicKey, "a public key"))

    @property
    def text(self) -> str:
        """The key's 32 bytes in hexadecimal, as a ledger keeps them."""
        return str(self.key.public_bytes_raw().hex())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the key's 32 bytes, in hexadecimal."""
        return signatures.fingerprint(self.key.public_bytes_raw())

    def holds(self, signature: Any, format: str, digest: str) -> bool:
        """Is this the key's signature under that digest?"""
        return signatures.holds(self.key.public_bytes_raw(), signature, format, digest)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; it is never printed, and only its signatures leave the object."""

    key: Any = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> SigningKey:
        """The key in a PEM file that nobody else may read."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        found = _loaded(
            "--sign", path, lambda pem: load_pem_private_key(pem, None), Ed25519PrivateKey, "a private key"
        )
        if os.name == "posix" and Path(path).stat().st_mode & 0o077:
            raise InvalidParameter(
                parameter="--sign", value=str(path), must="be readable by its owner alone",
                hint="chmod 600; others who have read the key can sign with it",
            )  # fmt: skip
        return cls(found)

    @property
    def public(self) -> PublicKey:
        """The key to check its signatures with."""
        return PublicKey(self.key.public_key())

    def sign(self, format: str, digest: str) -> dict[str, str]:
        """The signature in the form of a certificate."""
        value = self.key.sign(message(format, digest)).hex()
        return {"algorithm": ALGORITHM, "key": self.public.fingerprint, "value": value}


def make_key(path: Path) -> tuple[Path, str]:
    """A new pair: the private key in a new file that only its owner may read, the public one beside it (.pub)."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    beside = path.with_name(path.name + ".pub")
    for place in (path, beside):
        if place.exists() or place.is_symlink():
            raise InvalidParameter(
                parameter="FILE", value=str(place), must="not be there yet",
                hint="a key is never overwritten, since nobody could check its signatures any more",
            )  # fmt: skip
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    try:
        for place, body, mode in ((beside, public, 0o644), (path, private, 0o600)):
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as file:
                file.write(body)
    except OSError as problem:
        raise InvalidParameter(
            parameter="FILE", value=str(path), must="be writable", hint=(problem.strerror or "").lower()
        ) from None
    return beside, SigningKey(key).public.fingerprint


def _loaded(parameter: str, path: str | Path, load: Any, kind: type, what: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with Path(path).open("rb") as file:
            found = load(file.read(MOST_BYTES))
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, kind):
        raise InvalidParameter(
            parameter=parameter, value=str(path), must=f"be {what} for {ALGORITHM}, in PEM without a password",
            hint="tacit key make writes one, and the public key beside it (.pub)",
        )  # fmt: skip
    return found


# What binds a certificate: a digest of its own content, of the values it is about, and of the ledger's entry.
#
#     values.sha256    of the file of values, byte by byte (the same for CSV and, read and written again, for Parquet)
#     plan.digest      of all that was asked, of its noise and its price
#     ledger.digest    of the ledger's entry that charged for it; ledger.answer of the answer that was recorded
#     digest           of everything above in canonical JSON; this is what a signature signs
#
# A digest shows that a file was changed by accident, or by somebody who forgot one. Whoever can write the certificate
# can write its digest as well: only a signature, or the ledger itself, shows that nobody did
# (docs/decisions/0014-what-binds-a-certificate.md).

MANIFEST = "tacit release 1"
_OUTSIDE = ("digest", "signature")


def content_digest(content: dict[str, Any]) -> str:
    """The digest of a certificate or manifest: of all of it but the digest and the signature."""
    return sha256(canonical({k: v for k, v in content.items() if k not in _OUTSIDE}, what="certificate"))


def bound(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its digest at the end."""
    inner = {k: v for k, v in content.items() if k not in _OUTSIDE}
    return {**inner, "digest": content_digest(inner)}


def is_bound(content: dict[str, Any]) -> bool:
    """Whether its stated digest is right."""
    try:
        return content.get("digest") == content_digest(content)
    except TacitError:
        return False


def signed(content: dict[str, Any], key: SigningKey | None) -> dict[str, Any]:
    """The content with its digest, and a signature if the caller gives a key. Signing again gives the same bytes."""
    whole = bound(content)
    return whole if key is None else {**whole, "signature": key.sign(whole["format"], whole["digest"])}


def manifest(
    files: dict[str, str], *, plan: str, ledger: dict[str, Any], written: dict[str, Any],
    releases: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """All files of a release with their digests and sources, and the names of the releases, if each certificate
    has only their digest.
    """
    listed = dict(sorted(files.items()))
    said = {"format": MANIFEST, "plan": plan, "ledger": ledger, "written": written, "files": listed}
    return {**said, "releases": list(releases)} if releases else said


LISTED = 100
"""The largest number of releases, a public number, whose names a certificate lists."""


def by_digest(names: Iterable[str]) -> dict[str, Any]:
    """The names of a long plan in each of its certificates: their number, and the digest of the sorted list.

    n certificates with n names each would grow with the square of n. Whoever has the certificates has the names.
    """
    listed = sorted(names)
    return {"number": len(listed), "sha256": sha256(canonical(listed))}


def names_of(made: Mapping[str, Any], plan: Plan) -> list[str] | dict[str, Any]:
    """The names of a plan's releases in its certificates, in the recorded form of the answer."""
    names = [r.name for r in plan.releases]
    return by_digest(names) if made.get("names") == "digest" else names


def form_of_names(plan: Plan) -> dict[str, str]:
    """The form of the statement in the record of a new answer. Answers of earlier versions have a list instead."""
    return {"names": "digest"} if len(plan.releases) > LISTED else {}


# A release as bytes and back: what the ledger keeps, so that a repeated question is answered from the record.
#
# Only noisy numbers and released keys are kept; values and intervals are made of them anew. Beside them stands what
# made them (`made`): when, by which entry of the ledger, with which noise, engine and versions. A certificate of a
# replayed answer is made of that, and so says what that of the first one said.

FORMAT = 2


def encode(answers: list[NoisyParts], made: dict[str, Any]) -> bytes:
    """A line of JSON that describes the arrays, then the arrays."""
    blobs: list[bytes] = []
    described = []
    for answer in answers:
        parts: dict[str, Any] = {}
        for name, values in answer.parts.items():
            array = np.asarray(values)
            shape = list(array.shape)
            if array.dtype == object:
                parts[name] = {"shape": shape, "numbers": [str(int(v)) for v in array.ravel()]}
                continue
            body = np.ascontiguousarray(array, dtype="<f8" if array.dtype.kind == "f" else "<i8").tobytes()
            kind = "f8" if array.dtype.kind == "f" else "i8"
            parts[name] = {"shape": shape, "type": kind, "bytes": len(body)}
            blobs.append(body)
        keys = None if answer.keys is None else [[_plain(v) for v in column] for column in answer.keys]
        described.append({"parts": parts, "keys": keys})
    head = json.dumps(
        {"format": FORMAT, "made": made, "answers": described}, separators=(",", ":"), allow_nan=False
    )
    return head.encode("ascii") + b"\n" + b"".join(blobs)


def decode(data: bytes) -> tuple[list[NoisyParts], dict[str, Any]]:
    """The encoded answers and their origin."""
    if not isinstance(data, bytes):
        raise InvalidParameter(
            parameter="key", value="that of something else", must="be the key of a release",
            hint="its record belongs to a joint session or a path, and has no values",
        )  # fmt: skip
    head, _, body = data.partition(b"\n")
    try:
        told = json.loads(head)
    except ValueError:
        told = {}
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise InvalidParameter(
            parameter="answer", value="a recorded answer", must=f"be of format {FORMAT}",
            hint="it was written by another version of tacit; read it with that version",
        )  # fmt: skip
    start, out = 0, []
    for answer in told["answers"]:
        parts: dict[str, Any] = {}
        for name, said in answer["parts"].items():
            if "numbers" in said:
                array = np.empty(len(said["numbers"]), dtype=object)
                array[:] = [int(v) for v in said["numbers"]]
            else:
                array = np.frombuffer(
                    body, dtype="<" + said["type"], count=said["bytes"] // 8, offset=start
                ).copy()
                start += said["bytes"]
            parts[name] = array.reshape(said["shape"])
        keys = answer["keys"]
        out.append(NoisyParts(parts=parts, keys=None if keys is None else tuple(tuple(k) for k in keys)))
    return out, told["made"]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


CERTIFICATE_FORMAT = "tacit certificate 2"
EARLIER = "tacit certificate 1"
"""Certificates without digests, which can still be read, with a warning."""

CIPHER, SEEDED = "AES-256-CTR", "seeded, for tests"
PUBLISHABLE = (CIPHER,)

COMPUTATIONAL = (
    "The {drawn} comes from AES-256 in counter mode, keyed by the operating system. Against an adversary who cannot"
    " tell that from uniform bits the guarantee holds as stated (SIM-CDP); against one who can, nothing is claimed."
)
FOR_TESTS = "The {drawn} came from a seeded source, for a test: whoever knows the seed can take it off again."
NOTHING_DRAWN = (
    "No noise and no randomness is part of this answer: what is claimed rests on its condition alone."
)
NOT_COVERED = (
    "values outside the declared bounds, which were clamped or left out as the schema says",
    "rows of a person beyond the declared limit, which were not used",
    "the difference between the people in the table and those whom it stands for (sampling error)",
)
POPULATION = "the population's value, each cell by itself, if the declaration is true"
PACKAGES = ("numpy", "duckdb", "ibis-framework", "python-flint", "cryptography", "pyspark")


def certify(
    plan: Plan, planned: Planned, *, ledger: dict[str, Any], made: dict[str, Any], values: str | None,
    function: dict[str, Any] | None = None, told: dict[str, Any] | None = None,
    synthetic: Callable[[], dict[str, Any]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The certificate of one release of a plan: `made` and `ledger` name its origin, `values` is its CSV.

    Without values it is the content of the certificate, without a digest of them or of itself.
    A released function is part of its certificate. So are the exact parts under random differential privacy
    (`told`), and the measurements of synthetic rows with the digest of their file.
    """
    content = {**_settled(plan, planned, made), "made": made["time"], "ledger": ledger}
    content |= {"data": made["data"], "versions": made["versions"]}
    content["values"] = {} if values is None else {"sha256": sha256(values)}
    content = {name: content[name] for name in ORDER}
    if function is not None:
        content["function"] = function
    if told is not None:
        content["random_data"] = told
    if synthetic is not None:
        content["synthetic"] = synthetic()
    if made["data"].get("files") is not None:
        content["choice"] = release_choice(planned)
    return content if values is None else bound(content)


def _settled(plan: Plan, planned: Planned, made: dict[str, Any]) -> dict[str, Any]:
    """Fields of a certificate that follow from the plan and from the way its answer was made, in one place for both.

    Kept as text, so that changes to one certificate do not affect the next.
    """
    data = made["data"]
    seen, names = tuple(data.get("seen", ())), made.get("names")
    place = ("certificate", planned.name, made["noise"], bool(data["bounded"]), seen, names)
    if place not in plan.kept:
        said = _fields(plan, planned, made)
        try:
            text = json.dumps(said, allow_nan=False)
        except (TypeError, ValueError):
            return said
        again = json.loads(text)
        if again != said:  # pragma: no cover - all that is said is plain
            return said
        plan.kept[place] = text
        return cast("dict[str, Any]", again)
    return cast("dict[str, Any]", json.loads(plan.kept[place]))


def _fields(plan: Plan, planned: Planned, made: dict[str, Any]) -> dict[str, Any]:
    question, assignment = planned.question, planned.assignment
    columns = plan.schema.behind(_columns(planned))
    theorems = dict.fromkeys([*assignment.theorems, *plan.theorems, "post-processing"])
    if made["data"]["bounded"]:
        theorems["contribution-bounding"] = None
    theorems["contribution-polytopes"] = None
    if planned.agrees_with:
        theorems["agreeing-tables"] = None
    guarantee = with_looks(planned.guarantee, made["data"])
    mechanism = assignment.to_dict()
    return {
        "format": CERTIFICATE_FORMAT,
        "name": planned.name,
        "publishable": made["noise"] in PUBLISHABLE,
        "statistic": planned.ask.statistic.to_dict(),
        "guarantee": guarantee.to_dict(),
        "meaning": guarantee.explain(),
        "unit": str(plan.unit),
        "neighbours": plan.unit.neighbours.value,
        "condition": str(planned.guarantee.condition),
        "event": _event(planned),
        "price": assignment.price.to_dict(),
        "mechanism": mechanism,
        "sensitivity": assignment.sensitivity_record(question),
        "grid": assignment.grid_record(question),
        "numerical_delta": mechanism["numerical_delta"],
        "noise_source": made["noise"],
        "computational": _source_of_randomness(assignment.drawn, made["noise"] in PUBLISHABLE),
        "intervals": {
            "confidence": float(planned.ask.confidence),
            "cover": question.statistic.covers or (POPULATION if planned.sampled else assignment.covers),
            "do_not_cover": _not_covered(planned),
            "declared": [*planned.sampled, *question.details.get("assumes", ()), *planned.rests],
            **({"agrees_with": list(planned.agrees_with)} if planned.agrees_with else {}),
        },
        "error": planned.expected.to_dict(),
        "price_of_privacy": planned.expected.floor_record,
        "asked": {k: v for k, v in planned.ask.to_dict().items() if k not in ("name", "statistic")},
        "consistent": planned.ask.consistent,
        "public_totals": None if planned.ask.public is None else planned.ask.public.to_dict(),
        "schema": {n: d for n, d in _plain_certificate(plan.schema.to_dict()).items() if n in columns},
        "theorems": list(theorems),
        "plan": {
            "digest": plan.digest,
            "releases": _names_once(plan, made),
            "charge": plan.charge.to_dict(),
            "charged_by": plan.charged.theorem,
        },
    }


def _names_once(plan: Plan, made: dict[str, Any]) -> Any:
    """The digest of a long list is made once a plan."""
    place = ("names", made.get("names"))
    if place not in plan.kept:
        plan.kept[place] = names_of(made, plan)
    return plan.kept[place]


def said_digest(certificate: dict[str, Any]) -> str:
    """The digest of all parts of a certificate that follow from its plan, with the sentences of their time."""
    outside = ("made", "ledger", "data", "versions", "values")
    about = {n: certificate[n] for n in ORDER if n in certificate and n not in outside}
    return sha256(json.dumps(about, sort_keys=True))


def said_digests(plan: Plan, made: dict[str, Any]) -> dict[str, str]:
    """The digest for every release of a plan, for the record, since a later verifier may use other sentences."""
    return {r.name: said_digest(_settled(plan, r, made)) for r in plan.releases}


def _source_of_randomness(drawn: str, publishable: bool) -> str:
    return (COMPUTATIONAL if publishable else FOR_TESTS).format(drawn=drawn) if drawn else NOTHING_DRAWN


ORDER = (
    "format", "name", "made", "publishable", "statistic", "guarantee", "meaning", "unit", "neighbours", "condition",
    "event", "price", "mechanism", "sensitivity", "grid", "numerical_delta", "noise_source", "computational",
    "intervals", "error", "price_of_privacy", "asked", "consistent", "public_totals", "schema", "theorems", "plan",
    "values", "ledger", "data", "versions",
)  # fmt: skip
"""The parts of every certificate, as they are written."""


def with_looks(guarantee: Guarantee, data: dict[str, Any]) -> Guarantee:
    """The guarantee with the ledger's remark: somebody had seen the data before they were declared."""
    looked = data.get("seen", ())
    return replace(guarantee, declared=(*guarantee.declared, *looked)) if looked else guarantee


def json_text(certificate: dict[str, Any]) -> str:
    """A certificate as text for people and programs: control characters are written as JSON's own escapes."""
    text = indented(certificate)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _not_covered(planned: Planned) -> list[str]:
    *bounded, sampling = NOT_COVERED
    if planned.question.details.get("assumes"):
        bounded[0] = "values below the declared lower bound, which were clamped"
    left_out = beyond_groups(planned.question)
    groups = [f"{left_out}, which were not used"] if left_out else []
    return [*bounded, *groups, *([] if planned.sampled else [sampling])]


def _event(planned: Planned) -> Any:
    gamma, condition = planned.assignment.gamma, planned.assignment.condition
    priors = condition if isinstance(condition, Priors) else None
    return [event_record(to_record(e), gamma, priors) for e in planned.assignment.events]


def _columns(planned: Planned) -> set[str]:
    """The declared columns that the statistic reads: its keys, its summands, and the columns of its filters."""
    found: set[str] = set()
    for request in planned.question.requests:
        if isinstance(request, RowsWanted):
            found |= request.names
        found |= {axis.column for axis in request.axes}
        for one in request.aggregates:
            found |= set(one.present) | (
                {one.column} if isinstance(one, CountAbove | Steps | Squares) else set()
            )
            found |= one.columns if isinstance(one, Products) else set()
            found |= one.where.columns() if one.where is not None else frozenset()
    return found


def _plain_certificate(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain_certificate(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_certificate(v) for v in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def versions() -> dict[str, str]:
    """The installed versions."""
    return dict(_version_items())


@cache
def _version_items() -> tuple[tuple[str, str], ...]:
    """Read once: the metadata of a package are a file to be parsed."""
    from importlib.metadata import PackageNotFoundError, version

    import tacit

    found = {"tacit": tacit.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return tuple(found.items())
