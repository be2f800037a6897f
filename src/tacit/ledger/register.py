"""People in a ledger: the names they may have, and their rights by the entries so far.

Shares, roles and approvals refer to names, so a lookalike could act for another person. A new name is in composed
form (NFKC), of one script in everyday use, without pictures or invisible characters, and not confusable with a known
name. A name in the ledger is matched by its exact characters, so that old
ledgers open. The rules for names apply before an entry is written, never when a chain is verified.

The list of lookalikes is our own and short: letters of Greek, Cyrillic, Armenian and the Latin extensions that are
drawn like letters of the basic Latin alphabet. Scripts of few or no readers, some of which consist of such letters
(Lisu, Cherokee, Coptic), are refused as a whole. It cannot be complete (docs/desk.md).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

from tacit.errors import InvalidParameter, NotAllowed, shows_nothing, visible
from tacit.exact.canonical import canonical, sha256
from tacit.exact.data_classes import dataclass
from tacit.ledger.entries import ASKERS, Person, folded, holds, person_body, read_person

TOGETHER = (
    frozenset({"CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"CJK", "HANGUL"}),
    frozenset({"CJK", "BOPOMOFO"}),
)
"""Scripts that are written together in one language."""
EVERYDAY = frozenset({
    "ARABIC", "ARMENIAN", "BENGALI", "BOPOMOFO", "CJK", "CYRILLIC", "DEVANAGARI", "ETHIOPIC", "GEORGIAN",
    "GREEK", "GUJARATI", "GURMUKHI", "HANGUL", "HEBREW", "HIRAGANA", "KANNADA", "KATAKANA", "KHMER",
    "LAO", "LATIN", "MALAYALAM", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAANA", "THAI",
    "TIBETAN",
})  # fmt: skip
"""The scripts that Unicode recommends for identifiers (UAX 31): those that many people write every day."""
_PART_OF = {"KATAKANA-HIRAGANA": "KATAKANA", "IDEOGRAPHIC": "CJK"}

_LIKE = {
    # Cyrillic, folded
    "а": "a", "ь": "b", "с": "c", "ԁ": "d", "е": "e", "ҽ": "e", "һ": "h", "і": "l", "ї": "l", "ј": "j", "к": "k",
    "ӏ": "l", "м": "m", "н": "h", "о": "o", "р": "p", "ԛ": "q", "г": "r", "ѕ": "s", "т": "t", "ѵ": "v", "ԝ": "w",
    "х": "x", "у": "y", "ү": "y", "в": "b", "з": "3", "ԍ": "g", "п": "n", "ш": "w", "ѡ": "w", "ч": "4", "б": "6",
    "ӡ": "3", "ә": "e", "ө": "o", "ѳ": "o", "ћ": "h", "ђ": "h",
    # Greek, folded
    "α": "a", "β": "b", "ε": "e", "η": "n", "ι": "l", "κ": "k", "μ": "u", "ν": "v", "ο": "o", "ρ": "p", "σ": "o",
    "ς": "c", "τ": "t", "υ": "u", "χ": "x", "ω": "w", "γ": "y", "ϲ": "c", "ϳ": "j", "ζ": "z", "θ": "o", "ϱ": "p",
    # Armenian, folded
    "օ": "o", "ս": "u", "հ": "h", "ո": "n", "ց": "g", "զ": "q", "ա": "w", "յ": "j", "բ": "f", "ք": "p", "տ": "s",
    # Latin letters beyond the alphabet
    "ı": "l", "ȷ": "j", "ɑ": "a", "ɡ": "g", "ɩ": "l", "ɪ": "l", "ʋ": "v", "ʏ": "y", "ø": "o", "đ": "d", "ħ": "h",
    "ł": "l", "ŧ": "t", "ƀ": "b", "ɓ": "b", "ɗ": "d", "ɛ": "e", "ə": "e", "ɵ": "o", "ɔ": "c", "ƙ": "k", "ƚ": "l",
    "ɯ": "w", "ɲ": "n", "ŋ": "n", "ɾ": "r", "ʀ": "r", "ʂ": "s", "ƭ": "t", "ʉ": "u", "ƴ": "y", "ƶ": "z", "ʙ": "b",
    "ᴀ": "a", "ᴄ": "c", "ᴅ": "d", "ᴇ": "e", "ᴊ": "j", "ᴋ": "k", "ᴍ": "m", "ᴏ": "o", "ᴘ": "p", "ᴛ": "t", "ᴜ": "u",
    "ᴠ": "v", "ᴡ": "w", "ᴢ": "z", "ɢ": "g", "ʜ": "h", "ʟ": "l", "ɴ": "n", "ꜱ": "s", "ꞌ": "l", "ǀ": "l", "þ": "p",
    "ƅ": "b", "ƃ": "b", "ꝋ": "o", "ɘ": "e", "ǃ": "l", "ƿ": "p", "æ": "ae", "œ": "oe", "ð": "d", "ĸ": "k",
    # digits and signs that are drawn like letters
    "0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "¡": "l", "۱": "l", "٠": "o", "۰": "o", "०": "o", "০": "o",
    "੦": "o", "૦": "o",
    "౦": "o", "೦": "o", "൦": "o", "๐": "o", "໐": "o", "၀": "o", "ჿ": "o", "〇": "o", "ഠ": "o", "ⲟ": "o", "ⲣ": "p",
    "ⲥ": "c", "ⲁ": "a",
}  # fmt: skip
_PAIRS = (("rn", "m"), ("vv", "w"))
_SIGNS = "|!¡"
"""Signs that look like a letter, or that a reader may overlook."""


def scripts(name: str) -> frozenset[str]:
    """The scripts of its letters, each by the first word of their names in the Unicode character database."""
    found = {unicodedata.name(c, "?").split()[0] for c in name if unicodedata.category(c)[0] == "L"}
    return frozenset(_PART_OF.get(word, word) for word in found)


@lru_cache(maxsize=4096)
def skeleton(name: str, *, signs: bool = True) -> str:
    """The skeleton of a name, without the differences that a reader may overlook. Names with one skeleton are
    confusable.

    Case, marks, blanks, signs and invisible characters are left out, and lookalike letters are unified.
    A sign between two digits remains one: 1.1 is not 11. Signs that are drawn like a letter are that letter
    (a!ice is alice), or are left out like the others (`signs=False`: alice! is alice).
    """
    bare = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    found: list[str] = []
    for at, c in enumerate(bare):
        if shows_nothing(c) or _overlooked(c) or (c in _SIGNS and not signs):
            continue
        if c in _LIKE or unicodedata.category(c)[0] in "LMN":
            found.append(_LIKE.get(c) or _drawn(c))
        elif bare[at - 1 : at].isdigit() and bare[at + 1 : at + 2].isdigit():
            found.append(".")
    text = "".join(found)
    for pair, one in _PAIRS:
        text = text.replace(pair, one)
    return text


_WITH = re.compile("LATIN (?:SMALL LETTER|LETTER SMALL CAPITAL) ([A-Z])(?: WITH .*)?")


def _drawn(c: str) -> str:
    """A Latin letter with a stroke, hook or tail counts as the letter; a digit of any script as the digit."""
    digit = unicodedata.decimal(c, None)
    if digit is not None:
        return _LIKE.get(str(digit), str(digit))
    letter = _WITH.fullmatch(unicodedata.name(c, ""))
    return c if letter is None else _LIKE.get(letter[1].lower(), letter[1].lower())


def _overlooked(c: str) -> bool:
    """Is this a mark on a letter that a quick eye overlooks? Vowel signs and voiced sounds are not."""
    if unicodedata.category(c)[0] != "M" or c in "\u3099\u309a":
        return False
    return unicodedata.name(c, "").split(" ")[0] in ("COMBINING", "ARABIC", "HEBREW")


def alike(one: str, other: str) -> bool:
    """Whether a reader could confuse the two."""
    return one == other or not _skeletons(one).isdisjoint(_skeletons(other))


def _skeletons(name: str) -> set[str]:
    return {skeleton(name), skeleton(name, signs=False)}


def admitted(parameter: str, name: str, known: Iterable[str]) -> str:
    """A known name, or a new valid one that resembles none of those."""
    names = set(known)
    if name in names:
        return name

    def refuse(must: str, hint: str = "") -> InvalidParameter:
        return InvalidParameter(parameter=parameter, value=visible(name), must=must, hint=hint)

    for other in sorted(names):
        if alike(name, other):
            raise refuse(
                f"not be read as {visible(other)!r}, which the ledger knows",
                "if it is the same one, spell the name as tacit ledger show has it; a second one needs another name",
            )
    if any(shows_nothing(c) for c in name):
        raise refuse("have no character that shows nothing", "type the name again, letter by letter")
    composed = unicodedata.normalize("NFKC", name)
    if composed != name:
        raise refuse("be in composed form (Unicode NFKC)", f"write it as {visible(composed)!r}")
    if name != " ".join(name.split(" ")).strip() or "  " in name:
        raise refuse("have single blanks, and none at its ends")
    found = scripts(name)
    if len(found) > 1 and not any(found <= some for some in TOGETHER):
        told = ", ".join(sorted(s.capitalize() for s in found))
        raise refuse("be written in one script", f"its letters are of several: {told}")
    if strange := sorted(found - EVERYDAY):
        raise refuse("be written in a script of everyday use", f"it has letters of {strange[0].capitalize()}")
    if any(unicodedata.category(c)[0] == "S" and not c.isascii() for c in name):
        raise refuse(
            "have letters, digits and ordinary signs", "a picture or a shape may be read as a letter"
        )
    if not skeleton(name, signs=False):
        raise refuse("have a letter or a digit")
    return name


# Rights by the entries so far: people, whether approvals are required, and open requests.
#
# A register is part of the state that each entry's digest covers, and only ever follows an entry. The same rules apply
# before an entry is written and when a chain is verified: `verify` also finds an approval without a signature, and a
# charge without a required approval.


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
            self.kept.update({name: canonical(part) for name, part in self._to_dict().items()})
        return self.kept

    def _to_dict(self) -> dict[str, Any]:
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
