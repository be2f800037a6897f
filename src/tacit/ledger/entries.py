"""The contents of the ledger: requests with their price, entries in a chain, tickets, recorded answers.

An entry is never changed. A charge is one entry (`reserve`), its result another (`commit` with the digest of the
answer, or `failed`), and a sub-budget is a third kind (`share`). A `look` at the data and the record of a `plan`
charge nothing (`looks.py`). Roles, and later notes about charges, are kinds of their own (`person`, `rule`, `request`,
`approve`, `close`, `note`, `withdraw`, `supersede`). Each entry carries the digest of the previous one (the first: of
the header), the running sum of all charges so far (`total`), and the digest of the other facts for the next one
(`state`).
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter, TacitError, UnknownName, shows_nothing, visible
from tacit.exact.canonical import canonical, canonical_of_parsed, plain, sha256
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Bound, Guarantee, RandomData
from tacit.guarantees.guarantee import from_record, to_record

# Ed25519 signatures under a digest: what is signed, and whether a signature is that of a key.

ALGORITHM = "Ed25519"
KEY_DIGITS = 64
"""Hexadecimal digits of the 32 bytes of a public key."""


def message(format: str, digest: str) -> bytes:
    """The signed text: a line that names the format, and the digest of the content."""
    return f"signed by the custodian: {format}\n{digest}\n".encode()


def fingerprint(key: bytes) -> str:
    """SHA-256 of a public key's 32 bytes, in hexadecimal."""
    return hashlib.sha256(key).hexdigest()


_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


def is_key(key: bytes) -> bool:
    """Whether it is a point of the curve, in its only valid notation, whose order does not divide 8.

    For a point of small order signatures can be made up by anybody, without a private key.
    """
    y = int.from_bytes(key, "little") & (2**255 - 1)
    if len(key) != 32 or y >= _P:
        return False
    # -x^2 + y^2 = 1 + d x^2 y^2
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x * x % _P != square:
        return False
    for _ in range(3):
        x, y = _doubled(x, y)
    return (x, y) != (0, 1)


def _doubled(x: int, y: int) -> tuple[int, int]:
    """A point added to itself; the curve's addition law has no exceptions."""
    product = _D * x * x * y * y % _P
    return (
        2 * x * y * pow(1 + product, -1, _P) % _P,
        (y * y + x * x) * pow(1 - product, -1, _P) % _P,
    )


def holds(key: bytes, signature: Any, format: str, digest: str) -> bool:
    """Is this the signature of the public key with these 32 bytes under that digest?"""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not isinstance(signature, dict) or signature.get("algorithm") != ALGORITHM:
        return False
    if signature.get("key") != fingerprint(key):
        return False
    try:
        value = bytes.fromhex(str(signature.get("value")))
        Ed25519PublicKey.from_public_bytes(key).verify(value, message(format, digest))
    except (InvalidSignature, ValueError):
        return False
    return True


# What a ledger is given by name: printable texts, somebody's name, numbers by their names.


def text(parameter: str, value: object, *, longest: int = 500, empty: bool = False) -> str:
    """A short, printable text; it may be empty only if the caller allows it.
    Records may have been written by old rules."""
    if not isinstance(value, str) or not (value or empty) or len(value) > longest or not value.isprintable():
        raise InvalidParameter(
            parameter=parameter,
            value=value if isinstance(value, str) and len(value) <= 80 else type(value).__name__,
            must=f"be a printable text of 1 to {longest} characters",
        )
    return value


def shown(parameter: str, value: object, *, empty: bool = False) -> str:
    """A new text with visible characters, unless it may be empty, and is."""
    found = text(parameter, value, empty=empty)
    if found and all(shows_nothing(c) or c.isspace() for c in found):
        raise InvalidParameter(
            parameter=parameter, value=visible(found[:80]), must="have a character that shows something"
        )
    return found


def named(parameter: str, value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A mapping by names, or none."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidParameter(
            parameter=parameter, value=type(value).__name__, must="be a dictionary, or be left out"
        )
    return value or {}


def somebody(analyst: str | None) -> str | None:
    """One analyst's name, or None for everybody."""
    return None if analyst is None else text("analyst", analyst)


# Whom a ledger knows: names, their roles, and the public keys that they sign with.
#
# In a file these are records of who said so: whoever can write to the ledger can write a name into it. What cannot be
# written by somebody else is a signature.

ROLES = ("analyst", "approver", "custodian")
ASKERS = ("analyst", "custodian")
"""The roles that may be charged for a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A name with its roles (none: all removed), and the 32 bytes of its public key in hexadecimal, if it has one."""

    name: str
    roles: tuple[str, ...]
    key: str = ""

    def __post_init__(self) -> None:
        if text("name", self.name) == "*":
            raise InvalidParameter(parameter="name", value="*", must="be somebody's name")
        object.__setattr__(self, "roles", roles_of(self.roles))
        if self.key and not (
            isinstance(self.key, str)
            and len(self.key) == KEY_DIGITS
            and all(c in "0123456789abcdef" for c in self.key)
            and is_key(bytes.fromhex(self.key))
        ):
            raise InvalidParameter(
                parameter="key", value="something else",
                must=f"be the 32 bytes of an Ed25519 public key, as {KEY_DIGITS} hexadecimal digits",
                hint="tacit key make writes a pair; in Python PublicKey.read(file).text",
            )  # fmt: skip
        if "approver" in self.roles and not self.key:
            raise InvalidParameter(
                parameter="key", value=None, must="be given for an approver",
                hint="an approval counts only when it is signed: tacit key make writes a pair",
            )  # fmt: skip


def roles_of(given: str | Iterable[str]) -> tuple[str, ...]:
    """Known roles, sorted, each once."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Iterable):
        raise InvalidParameter(parameter="roles", value=type(given).__name__, must="be a list of roles")
    found = set()
    for name in names:
        if not isinstance(name, str) or name not in ROLES:
            raise UnknownName(what="role", name=str(name), known=ROLES)
        found.add(name)
    return tuple(sorted(found))


def folded(name: str) -> str:
    """The common form of two spellings of one name: letters that look alike in one script, case, blanks."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def person_body(person: Person) -> dict[str, Any]:
    """A person as plain data."""
    return {"name": person.name, "roles": list(person.roles), "key": person.key}


def read_person(body: Any) -> Person:
    """The person of plain data."""
    return Person(name=body["name"], roles=tuple(body["roles"]), key=body["key"])


KINDS = (
    "reserve", "commit", "failed", "share", "look", "plan",
    "person", "rule", "request", "approve", "close", "note", "withdraw", "supersede",
)  # fmt: skip


def exact_amounts(guarantee: Guarantee, exact: Mapping[str, Fraction] | None) -> dict[str, Fraction]:
    """The exact rational numbers behind a guarantee's floats, if the caller knows them.

    A float stands for its exact binary value: five times 0.2 is more than 1. A caller who calibrated to the fraction
    1/5 may state it; it must round to the float in the guarantee.
    """
    stated = {**guarantee.bound.parameters}
    if isinstance(guarantee.condition, RandomData):
        stated["gamma"] = guarantee.condition.gamma
    found: dict[str, Fraction] = {}
    for name, value in named("exact", exact).items():
        known = stated.get(name)
        if not isinstance(known, float) or isinstance(value, bool) or not isinstance(value, Fraction | int):
            raise InvalidParameter(
                parameter="exact",
                value=name,
                must="give fractions for the numbers of the bound, or its gamma",
            )
        # Guarantees round fractions up, callers to nearest: both neighbours of the float will do.
        if not (
            math.isfinite(known)
            and max(0, math.nextafter(known, -1)) <= value <= math.nextafter(known, math.inf)
        ):
            raise InvalidParameter(parameter="exact", value=str(value), must=f"round to {name} = {known!r}")
        found[name] = Fraction(value)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A question in the form of 0.1.0: the digest of its plan, and its releases in the words of that version."""

    plan_digest: str
    told: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question with its price, before it is paid.

    `key` identifies the question: the same key about the same version of the same table is answered from the
    record. Table and version are public and declared: neither is read from the data. `event` is what will be
    run, as plain data that the accounting room writes and reads. `charge` is the price in the budget's own
    kind, unit and condition; `exact` its numbers as fractions, where the mechanism is calibrated to those and
    not to the floats. `told` describes the query in words, one table a release: its name (`release`), the
    question (`statistic`) and its own price (`price`). `files` is the declared set of files, and belongs to the
    key: {"protected": [[name, ...], ...], "public": [...]}. `choice` is the choice for the request, stored
    whole. `known_as` are digests of the same question in earlier forms of requests, with the present files.
    `earlier` gives its name in version 0.1.0; it is called only for a ledger with charges of that version.
    """

    key: str
    plan_digest: str
    analyst: str
    event: Mapping[str, Any]
    charge: Guarantee
    exact: Mapping[str, Fraction] = field(default_factory=dict)
    table: str = ""
    version: str = ""
    told: Sequence[Mapping[str, Any]] = ()
    files: Mapping[str, Any] | None = None
    choice: Mapping[str, Any] | None = None
    known_as: tuple[str, ...] = field(default=(), compare=False)
    earlier: Callable[[], Sequence[Earlier]] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("key", "plan_digest", "analyst"):
            text(name, getattr(self, name))
        for name in ("table", "version"):
            text(name, getattr(self, name), empty=True)
        if self.analyst == "*":
            raise InvalidParameter(parameter="analyst", value="*", must="be somebody's name")
        if not isinstance(self.event, dict):
            raise InvalidParameter(parameter="event", value=type(self.event).__name__, must="be a dictionary")
        if not isinstance(self.charge, Guarantee):
            raise InvalidParameter(parameter="charge", value=self.charge, must="be a guarantee")
        object.__setattr__(self, "event", plain(self.event, what="event"))
        object.__setattr__(self, "told", tuple(_checked_releases(self.told)))
        if not isinstance(self.known_as, tuple) or not all(isinstance(d, str) for d in self.known_as):
            raise InvalidParameter(
                parameter="known_as", value=type(self.known_as).__name__, must="be a tuple of digests"
            )
        for name in ("files", "choice"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, plain(value, what=name))
        if self.files is not None:
            protected_files(self.files)
        if self.earlier is not None and not callable(self.earlier):
            raise InvalidParameter(
                parameter="earlier", value=type(self.earlier).__name__, must="be a function, or be left out"
            )
        object.__setattr__(self, "exact", exact_amounts(self.charge, self.exact))


def _checked_releases(given: Any) -> list[dict[str, Any]]:
    found = plain(list(given) if isinstance(given, list | tuple) else None, what="told")
    for one in found if isinstance(found, list) else [None]:
        if not isinstance(one, dict) or set(one) != {"release", "statistic", "price"}:
            raise InvalidParameter(
                parameter="told", value="something else",
                must="be a list of tables, each with release, statistic and price",
            )  # fmt: skip
        for name in ("release", "statistic"):
            text(name, one[name], longest=2000)
    return found  # type: ignore[no-any-return]


def protected_files(files: Any) -> tuple[Any, ...]:
    """Every file of the protected tables of a declared set, once; None for a table outside of files."""
    if not isinstance(files, dict) or not set(files) <= {"protected", "public"} or not files.get("protected"):
        raise InvalidParameter(parameter="files", value="something else", must="be a declared set of files")
    found: dict[str, Any] = {}
    for table in files["protected"]:
        for one in [None] if table is None else table:
            found.setdefault(canonical(one), one)
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A durable charge, for an accountant."""

    sequence: int
    time: str
    analyst: str
    key: str
    plan_digest: str
    event: Mapping[str, Any]
    guarantee: Guarantee
    exact: Mapping[str, Fraction]
    table: str = ""
    version: str = ""
    told: tuple[Mapping[str, Any], ...] = ()
    approved_by: tuple[str, ...] = ()
    files: Mapping[str, Any] | None = None
    choice: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The right to run one request, whose charge is durable. `digest` names the entry, for a certificate.

    `spent` and `left` are the running total at that moment, this charge included (None under a custom check).
    `approved_by` names the signers of the approvals behind the charge, `signed` the keeper of each key (if that was
    recorded); `seen` is the ledger's remark about looks at the data before the plan (`tacit.ledger.looks`).
    """

    sequence: int
    digest: str
    ledger: str
    request: Request = field(repr=False)
    spent: Bound | None = None
    left: Bound | None = None
    approved_by: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    signed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A later note about a charge: its release was withdrawn, or another one replaces it.

    `release` is empty if the correction is about all releases of the charge; `replaced_by` is the charge that
    replaces it.
    """

    kind: str
    sequence: int
    time: str
    by: str
    note: str
    release: str = ""
    replaced_by: int | None = None

    def __str__(self) -> str:
        about = f"release {self.release!r} was " if self.release else ""
        what = "withdrawn" if self.replaced_by is None else f"replaced by charge {self.replaced_by}"
        return f"{about}{what} on {self.time[:10]} by {self.by}" + (f": {self.note}" if self.note else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An answer from the record, at no charge now; `charge` is the earlier payment, by entry `digest`.

    `corrections` says whether it was withdrawn or replaced since.
    """

    sequence: int
    answer: Any
    charge: Charge
    digest: str = ""
    corrections: tuple[Correction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One link of the chain: the hashed text, its digest, and its content."""

    sequence: int
    digest: str
    content: str = field(repr=False)
    body: Mapping[str, Any]
    _charge: Charge | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def new(cls, *, sequence: int, previous: str, time: str, kind: str, **body: Any) -> Entry:
        """The next link after `previous`."""
        content = canonical({"sequence": sequence, "previous": previous, "time": time, "kind": kind, **body})
        return cls(sequence=sequence, digest=sha256(content), content=content, body=json.loads(content))

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return str(self.body["kind"])

    @property
    def closes(self) -> int | None:
        """The reservation that a commit or a failure belongs to."""
        return int(self.body["reserve"]) if self.kind in ("commit", "failed") else None

    def charge(self) -> Charge:
        """The charge of a `reserve` entry."""
        if (
            self._charge is None
        ):  # whoever reads an entry needs it twice: to see that it can be read, and to add it up
            made = charge_of(self.body, sequence=self.sequence, time=self.body["time"])
            object.__setattr__(self, "_charge", made)
        assert self._charge is not None
        return self._charge

    def correction(self) -> Correction:
        """The content of a `withdraw` or `supersede` entry."""
        body = self.body
        return Correction(
            kind=self.kind,
            sequence=self.sequence,
            time=body["time"],
            by=body["by"],
            note=body["note"],
            release=body["release"],
            replaced_by=body.get("with"),
        )


def charge_of(body: Mapping[str, Any], *, sequence: int, time: str) -> Charge:
    """The charge that a `reserve` entry with this body states."""
    return Charge(
        sequence=sequence,
        time=time,
        analyst=body["analyst"],
        key=body["request"],
        plan_digest=body["plan"],
        event=body["event"],
        guarantee=from_record(body["charge"]),
        exact={k: Fraction(v) for k, v in body["exact"].items()},
        table=body["table"],
        version=body["version"],
        told=tuple(body.get("told", ())),
        approved_by=tuple(body["consent"]["approved_by"]) if "consent" in body else (),
        files=body.get("files"),
        choice=body.get("choice"),
    )


def reserve_body(request: Request, table: str) -> dict[str, Any]:
    """The content of a `reserve` entry."""
    return {
        "analyst": request.analyst,
        "request": request.key,
        "plan": request.plan_digest,
        "table": table,
        "version": request.version,
        "event": request.event,
        "charge": to_record(request.charge),
        "exact": {k: str(v) for k, v in request.exact.items()},
        **({"told": list(request.told)} if request.told else {}),
        **({} if request.files is None else {"files": request.files}),
        **({} if request.choice is None else {"choice": request.choice}),
    }


def plan_digests(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of an entry's plan: in this version and, if the entry rests on an earlier one, in that one."""
    return (body["plan"], *([body["earlier"]["plan"]] if "earlier" in body else []))


def _readable(entry: Entry) -> None:
    """Raise unless every part of the entry can be used."""
    body = entry.body
    if entry.kind in ("reserve", "request"):
        entry.charge()
        if "files" in body:
            protected_files(body["files"])
        if "earlier" in body and set(body["earlier"]) - {"told"} != {"plan", "request"}:
            raise ValueError
    elif entry.kind in ("withdraw", "supersede"):
        entry.correction()
        if not all(isinstance(body[n], int) and body[n] > 0 for n in ("about", "number")):
            raise ValueError
    elif entry.kind == "person":
        read_person(body)
    elif entry.kind == "share":
        from_record(body["share"])
        exact_amounts(from_record(body["share"]), {k: Fraction(v) for k, v in body["exact"].items()})
    elif entry.kind == "commit":
        answer = body["answer"]
        if set(answer) != {"kind", "sha256", "size"} or answer["kind"] not in ("json", "bytes"):
            raise ValueError
    elif entry.kind in ("look", "plan") and not all(isinstance(body[n], str) for n in _FIELDS[entry.kind]):
        raise ValueError
    if entry.closes is not None and not isinstance(body["reserve"], int):
        raise ValueError
    if not isinstance(body["state"], str) or not isinstance(body["total"], dict):
        raise ValueError


_FIELDS: dict[str, set[str]] = {
    "reserve": {"analyst", "request", "plan", "table", "version", "event", "charge", "exact"},
    "commit": {"reserve", "charge", "answer"},
    "failed": {"reserve", "charge"},
    "share": {"analyst", "share", "exact"},
    "look": {"analyst", "table", "version"},
    "plan": {"analyst", "plan", "table", "version"},
    "person": {"name", "roles", "key", "change", "by", "note"},
    "rule": {"four_eyes", "by", "note"},
    "request": {"analyst", "request", "plan", "table", "version", "event", "charge", "exact", "note"},
    "approve": {"request", "by", "signature", "note"},
    "close": {"request", "by", "note"},
    "note": {"about", "by", "note"},
    "withdraw": {"about", "charge", "release", "number", "by", "note"},
    "supersede": {"about", "charge", "release", "number", "with", "with_charge", "by", "note"},
}
_MAY_HAVE: dict[str, set[str]] = {
    "reserve": {"told", "consent", "files", "choice", "earlier"},
    "approve": {"signed"},
    "person": {"revokes"},
    "request": {"told", "files", "choice"},
    "share": {"by", "note"},
}
_COMMON = {"sequence", "previous", "time", "kind", "total", "state"}


def read_entry(*, sequence: int, digest: str, content: str) -> tuple[Entry | None, str]:
    """An entry as stored, or None with its fault."""
    if not isinstance(content, str) or not content.isascii() or sha256(content) != digest:
        return None, "was edited: its content does not have the digest that was recorded"
    try:
        body = json.loads(content)
        kind = body["kind"]
        needed = _COMMON | _FIELDS[kind]
        if canonical_of_parsed(body) != content or not needed <= set(body) <= needed | _MAY_HAVE.get(
            kind, set()
        ):
            raise ValueError
        entry = Entry(sequence=sequence, digest=digest, content=content, body=body)
        _readable(entry)
    except (ValueError, KeyError, TypeError, ZeroDivisionError, RecursionError, TacitError):
        return None, "cannot be read"
    if body["sequence"] != sequence:
        return None, f"was moved: it was written as entry {body['sequence']}"
    return entry, ""
