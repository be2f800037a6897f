"""An agreement as a TOML file: [protect], [schema.*], [spend], [joint], [[holder]], [[release]].

It is a plan without data: everybody has the same file, and each holder a plan of its own that names its table, budget
and ledger. Words are those of plans; every word is looked up in a closed list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.curator.files import asks_in, price_in, unit_in
from tacit.curator.signing import PublicKey
from tacit.curator.toml import parse_toml, read_text
from tacit.curator.typed import known
from tacit.errors import InvalidParameter
from tacit.ledger.names import admitted
from tacit.parties.joint import Joint
from tacit.parties.sizes import Sizes
from tacit.sources.declared import schema_from_tables

__all__ = ["Agreement", "parse_agreement", "read_agreement"]

TABLES = ("holder", "joint", "protect", "release", "schema", "spend")
SIZES = ("appearances", "colluding", "fewest", "threshold")
JOINT = (*SIZES, "graph_delta", "most_rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What an agreement file says: the joint plan, and the holders by name and public key."""

    joint: Joint
    names: tuple[str, ...]
    keys: tuple[bytes, ...]
    text: str = field(repr=False)

    def place(self, key: bytes) -> int:
        """Which holder has this public key."""
        if key not in self.keys:
            raise InvalidParameter(
                parameter="--key", value="another key", must="be the key of one of the holders",
                hint="the agreement lists their public keys",
            )  # fmt: skip
        return self.keys.index(key)


def read_agreement(path: str | Path) -> Agreement:
    """The agreement in a TOML file; keys of holders are paths beside it, or 64 hexadecimal digits."""
    path = Path(path)
    return parse_agreement(read_text(path, parameter="agreement"), path)


def parse_agreement(text: str, path: Path, *, keys: Sequence[bytes] | None = None) -> Agreement:
    """The agreement in a text that lies at this path; `keys` are those that a session names in their place."""
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
    return Agreement(joint=joint, names=names, keys=own, text=text)


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
