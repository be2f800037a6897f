"""Rights by the entries so far: people, whether approvals are required, and open requests.

A register is part of the state that each entry's digest covers, and only ever follows an entry. The same rules apply
before an entry is written and when a chain is verified: `verify` also finds an approval without a signature, and a
charge without a required approval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from tacit.errors import InvalidParameter, NotAllowed
from tacit.exact.canonical import canonical, sha256
from tacit.exact.data_classes import dataclass
from tacit.ledger.entries import ASKERS, Person, folded, holds, person_body, read_person

APPROVAL = "tacit approval 1"
ASKED = ("analyst", "request", "plan", "table", "version", "event", "charge", "exact", "told")
"""The content of an approval, which its charge must match: all requested facts of a `reserve` entry."""


ASKED_FILES = (*(name for name in ASKED if name != "told"), "files")
"""The form in which the declared set of files belongs to a query, and its sentences do not."""


def asked_digest(body: Mapping[str, Any]) -> str:
    """The digest of the whole request: the analyst, the plan, table, version, files, the events and their price."""
    names = ASKED_FILES if "files" in body else ASKED
    return sha256(canonical({name: body[name] for name in names if name in body}))


def earlier_digest(body: Mapping[str, Any]) -> str:
    """The same in an earlier notation, for a charge whose approval has that notation; empty for every other."""
    if "earlier" not in body:
        return ""
    old = {**body, **body["earlier"]}
    names = ASKED if "told" in body["earlier"] else ASKED_FILES
    return sha256(canonical({name: old[name] for name in names if name in old}))


def approval_digest(ledger: str, request: int, open_: Open, by: str) -> str:
    """The text that an approver signs: this request of this ledger, its time, its content, and their own name."""
    said = {"ledger": ledger, "request": request, "time": open_.time, "asked": open_.asked, "by": by}
    return sha256(canonical(said))


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A request without a result so far, and its approvers, each with the signing key."""

    asked: str
    analyst: str
    time: str
    approved: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Never changed: each entry makes a new one."""

    ledger: str = ""
    people: Mapping[str, Person] = field(default_factory=dict)
    four_eyes: bool = False
    requests: Mapping[int, Open] = field(default_factory=dict)

    kept: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Canonical texts of its parts, kept because people and requests are the same from charge to charge."""

    # --- as plain data -------------------------------------------------------------------------------
    @property
    def texts(self) -> dict[str, str]:
        """The state's text about it, each part as its canonical text; empty without parts."""
        if not self.kept:
            self.kept.update({name: canonical(part) for name, part in self._words.items()})
        return self.kept

    @property
    def _words(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.people:
            found["people"] = {name: person_body(p) for name, p in self.people.items()}
        if self.four_eyes:
            found["four_eyes"] = True
        if self.requests:
            found["requests"] = {
                str(n): {"asked": r.asked, "analyst": r.analyst, "time": r.time, "approved": dict(r.approved)}
                for n, r in self.requests.items()
            }
        return found

    @classmethod
    def read(cls, ledger: str, data: Mapping[str, Any]) -> Register:
        """The register of plain data."""
        return cls(
            ledger=ledger,
            people={name: read_person(p) for name, p in data.get("people", {}).items()},
            four_eyes=data.get("four_eyes", False) is True,
            requests={int(n): Open(**r) for n, r in data.get("requests", {}).items()},
        )

    # --- what is allowed -----------------------------------------------------------------------------
    def has(self, name: str, *roles: str) -> bool:
        """Has this name one of these roles?"""
        person = self.people.get(name)
        return person is not None and any(role in person.roles for role in roles)

    def known(self, *roles: str) -> bool:
        """Has anybody one of these roles?"""
        return any(role in p.roles for p in self.people.values() for role in roles)

    def custodian(self, by: str, what: str) -> None:
        """Refuses a name without the custodian's role, if the ledger has a custodian."""
        if self.known("custodian") and not self.has(by, "custodian"):
            raise NotAllowed(
                who=by, what=what, reason="it takes the role of custodian",
                hint="tacit ledger show lists the names and their roles",
            )  # fmt: skip

    def asker(self, name: str) -> None:
        """Refuses a charge to a name without a role, if the ledger has analysts or demands approvals."""
        if (self.four_eyes or self.known(*ASKERS)) and not self.has(name, *ASKERS):
            raise NotAllowed(
                who=name, what="ask here", reason="the ledger knows this name as no analyst and no custodian",
                hint="tacit ledger person enrols a name; a plan names its analyst under [budget]",
            )  # fmt: skip

    def consent(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The open request that this charge answers, with its approvers; refuses if a required approval is missing.

        Approvals count if the approver's name still has the role and the key of that time.
        """
        self.asker(body["analyst"])
        asked = {asked_digest(body), earlier_digest(body)} if self.requests else set()
        waiting = []
        for number, request in sorted(self.requests.items()):
            if request.asked not in asked:
                continue
            names = [n for n, key in sorted(request.approved.items()) if self._approves(n, key, request)]
            if names:
                return {"request": number, "approved_by": names}
            waiting.append(number)
        if self.four_eyes:
            reason = f"request {waiting[0]} waits for an approver" if waiting else "nobody approved it"
            raise NotAllowed(
                who=body["analyst"], what="be charged for this plan", reason=reason,
                hint="tacit ledger approve" if waiting else "tacit ledger request asks for an approval; one that was "
                "used, or is about another plan, table, version, price or asker, does not count",
            )  # fmt: skip
        return {"request": waiting[0], "approved_by": []} if waiting else None

    def _approves(self, name: str, key: str, request: Open) -> bool:
        person = self.people.get(name)
        return (
            person is not None
            and "approver" in person.roles
            and person.key == key
            and folded(name) != folded(request.analyst)
        )

    # --- what entries do to it -----------------------------------------------------------------------
    def after(self, kind: str, body: Mapping[str, Any]) -> Register:
        """The register after an entry of this kind; a refusal if the rules do not allow it."""
        match kind:
            case "reserve":
                return self._charged(body)
            case "share" if "by" in body:
                self.custodian(body["by"], "set a share")
            case "person":
                return self._enrolled(body)
            case "rule":
                return self._ruled(body)
            case "request":
                return self._asked(body)
            case "approve":
                return self._approved(body)
            case "close":
                return self._closed(body)
            case "withdraw" | "supersede":
                self.custodian(body["by"], f"{kind} a release")
        return self

    def _charged(self, body: Mapping[str, Any]) -> Register:
        consent = self.consent(body)
        if consent != body.get("consent"):
            raise NotAllowed(
                who=body["analyst"], what="be charged so", reason="the charge names a different approval"
            )  # fmt: skip
        return self if consent is None else self._without(int(consent["request"]))

    def _enrolled(self, body: Mapping[str, Any]) -> Register:
        self.custodian(body["by"], "enrol a name")
        person = read_person(body)
        for other in self.people.values():
            if other.name != person.name and folded(other.name) == folded(person.name):
                raise InvalidParameter(
                    parameter="name", value=person.name, must=f"not be read as {other.name!r}, who is known already",
                    hint="two people with one name could act for each other; give the second another name",
                )  # fmt: skip
            if other.name != person.name and person.key and other.key == person.key:
                raise InvalidParameter(
                    parameter="key", value="a public key", must=f"not be that of {other.name!r}",
                    hint="one person under two names could approve their own requests; each name needs a different key",
                )  # fmt: skip
        before = self.people.get(person.name)
        if before is not None and not body["change"] and (not person.key or before.key != person.key):
            raise InvalidParameter(
                parameter="name", value=person.name, must="not be somebody's already",
                hint="a second person needs another name; if it is the same one, say so: change=True, --change",
            )  # fmt: skip
        people = {**self.people, person.name: person}
        left = replace(self, people=people)
        # Entries of earlier versions say nothing of it: there approvals came back with the role and the key.
        if body.get("revokes") is True:
            left = left._without_approvals(person.name)
        if self.known("custodian") and not left.known("custodian"):
            raise InvalidParameter(
                parameter="roles", value=list(person.roles), must="leave the ledger a custodian",
                hint="enrol another custodian first",
            )  # fmt: skip
        return left

    def _ruled(self, body: Mapping[str, Any]) -> Register:
        self.custodian(body["by"], "change what is demanded")
        demanded = body["four_eyes"] is True
        if demanded and not (self.known("approver") and self.known(*ASKERS)):
            raise InvalidParameter(
                parameter="four_eyes", value=True, must="be required only if one person may ask and "
                "another may approve",
                hint="enrol an analyst or custodian, and an approver with a key, first",
            )  # fmt: skip
        return replace(self, four_eyes=demanded)

    def _asked(self, body: Mapping[str, Any]) -> Register:
        self.asker(body["analyst"])
        asked = Open(asked=asked_digest(body), analyst=body["analyst"], time=body["time"])
        return replace(self, requests={**self.requests, int(body["sequence"]): asked})

    def _approved(self, body: Mapping[str, Any]) -> Register:
        number, by = int(body["request"]), str(body["by"])
        what = f"approve request {number}"
        request, person = self.requests.get(number), self.people.get(by)
        if request is None:
            raise NotAllowed(who=by, what=what, reason="no request of this number is open")
        if folded(by) == folded(request.analyst):
            raise NotAllowed(
                who=by,
                what=what,
                reason="they asked for it themselves",
                hint="a second person must approve it",
            )
        if person is None or "approver" not in person.roles:
            raise NotAllowed(who=by, what=what, reason="the ledger knows this name as no approver")
        if not body["signature"]:
            raise NotAllowed(
                who=by, what=what, reason="the approval is not signed",
                hint="an approval counts only when it is signed with that name's key: --sign",
            )  # fmt: skip
        digest = approval_digest(self.ledger, number, request, by)
        if not holds(bytes.fromhex(person.key), body["signature"], APPROVAL, digest):
            raise NotAllowed(
                who=by, what=what, reason="the signature is not theirs, or signs something else",
                hint="the ledger has the public key of this name; a signature is about one request of one ledger",
            )  # fmt: skip
        if by in request.approved:
            raise NotAllowed(who=by, what=what, reason="they approved it already")
        kept = replace(request, approved={**request.approved, by: person.key})
        return replace(self, requests={**self.requests, number: kept})

    def _closed(self, body: Mapping[str, Any]) -> Register:
        number, by = int(body["request"]), str(body["by"])
        if number not in self.requests:
            raise InvalidParameter(parameter="request", value=number, must="be that of an open request")
        if by != self.requests[number].analyst and not self.has(by, "approver"):
            self.custodian(by, "close somebody else's request")
        return self._without(number)

    def approvals_end(self, person: Person) -> bool:
        """Whether this name approved an open request, and is or becomes another than an approver with that key."""
        before = self.people.get(person.name)
        stays = before is not None and before.key == person.key
        stays = stays and all("approver" in p.roles for p in (before, person) if p is not None)
        return not stays and any(person.name in r.approved for r in self.requests.values())

    def _without_approvals(self, name: str) -> Register:
        kept = {
            n: replace(r, approved={k: v for k, v in r.approved.items() if k != name})
            for n, r in self.requests.items()
        }
        return replace(self, requests=kept)

    def _without(self, number: int) -> Register:
        return replace(self, requests={n: r for n, r in self.requests.items() if n != number})
