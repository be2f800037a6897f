"""Whom a ledger knows: names, their roles, and the public keys that they sign with.

In a file these are records of who said so: whoever can write to the ledger can write a name into it. What cannot be
written by somebody else is a signature.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.ledger.given import text
from tacit.ledger.signatures import KEY_DIGITS, is_key

__all__ = ["ROLES", "Person", "folded", "person_body", "read_person", "roles_of"]

ROLES = ("analyst", "approver", "custodian")
ASKERS = ("analyst", "custodian")
"""The roles of those who may be charged for a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A name with its roles (none: not any more), and the 32 bytes of its public key in hexadecimal, if it has one."""

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
    """What two spellings of one name have in common: letters that look alike in one script, case, blanks."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def person_body(person: Person) -> dict[str, Any]:
    """A person as plain data."""
    return {"name": person.name, "roles": list(person.roles), "key": person.key}


def read_person(body: Any) -> Person:
    """The person of plain data."""
    return Person(name=body["name"], roles=tuple(body["roles"]), key=body["key"])
