"""One text for one content, so that equal content has an equal hash; and keys derived from a secret.

Canonical JSON here: keys sorted, no blanks, only ASCII, floats by their shortest text, no NaN, no infinity.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import warnings
from collections.abc import Mapping
from itertools import chain
from typing import Any

from tacit.errors import InvalidParameter

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
DEEPEST = 101
_SCALARS = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_quoted = json.encoder.encode_basestring
PLAIN = frozenset({str, int, float, bool, type(None)})
TEXTS = frozenset({str})


def canonical(value: Any, *, what: str = "value") -> str:
    """The canonical text of a plain value; refuses other values without showing them."""
    _only_plain(value, what)
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise _not_plain(what) from None


def canonical_of_parsed(value: Any) -> str:
    """The canonical text of an unchanged value of `json.loads`; its types need no check."""
    try:
        return _ENCODER.encode(value)
    except (ValueError, RecursionError):
        raise _not_plain("value") from None


def canonical_table(texts: Mapping[str, str]) -> str:
    """The canonical text of a table whose values are already canonical texts."""
    names = sorted(texts)
    return "{" + ",".join(map("{}:{}".format, map(canonical, names), map(texts.__getitem__, names))) + "}"


def plain(value: Any, *, what: str = "value") -> Any:
    """A private copy of a plain value, as it will be read back (tuples become lists)."""
    return json.loads(canonical(value, what=what))


def indented(value: Any, *, inside: str = "\n") -> str:
    """`json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)`, several times as fast.

    With an indent, Python's own encoder goes through a generator for each part.
    """
    deeper = inside + "  "
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is dict and value and all(type(name) is str for name in value):
        parts = [f"{_quoted(name)}: {indented(part, inside=deeper)}" for name, part in value.items()]
        return "{" + deeper + ("," + deeper).join(parts) + inside + "}"
    if kind in (list, tuple) and value:
        return (
            "["
            + deeper
            + ("," + deeper).join([indented(part, inside=deeper) for part in value])
            + inside
            + "]"
        )
    if value is None or kind in (int, float, bool):
        return _SCALARS.encode(value)
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).replace("\n", inside)


def sha256(data: bytes | str) -> str:
    """The SHA-256 digest in hexadecimal."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def derived_key(secret: bytes, purpose: str) -> bytes:
    """A key of 32 bytes for one purpose: uses of one key reveal nothing about another."""
    return hmac.digest(secret, b"tacit ledger: " + purpose.encode("ascii"), "sha256")


def mac(secret: bytes, purpose: str, text: str) -> str:
    """A keyed digest in hexadecimal, HMAC-SHA-256 under the key of that purpose."""
    return hmac.digest(derived_key(secret, purpose), text.encode("utf-8"), "sha256").hex()


def _only_plain(value: Any, what: str) -> None:
    # json.dumps turns the keys 1, 1.0, True and None into strings without a word: two contents, one text.
    above = [
        iter((value,))
    ]  # one iterator for each level of nesting, over what is not plain by its type alone
    while above:
        for inner in above[-1]:
            if len(above) > DEEPEST:
                raise _not_plain(what)
            kind = type(inner)
            if kind is dict or (kind is not list and isinstance(inner, dict)):
                if not TEXTS.issuperset(map(type, inner)) and not all(isinstance(key, str) for key in inner):
                    raise _not_plain(what)
                held: Any = inner.values()
            elif kind is list or isinstance(inner, list | tuple):
                held = inner
                kinds = set(map(type, inner))
                if kinds <= {list, tuple}:
                    kinds = set(map(type, chain.from_iterable(inner)))
                if kinds <= PLAIN:
                    continue  # a million keys, or pairs of them, at the speed of a set
            elif kind in PLAIN or isinstance(inner, str | int | float):
                continue
            else:
                raise _not_plain(what)
            if deeper := [one for one in held if type(one) not in PLAIN]:
                above.append(iter(deeper))
                break
        else:
            above.pop()


def _not_plain(what: str) -> InvalidParameter:
    return InvalidParameter(
        parameter=what,
        value="something else",
        must="be plain JSON: finite numbers, strings, true, false, null, lists, and tables with string keys",
        hint="give bytes for anything else",
    )


def formerly(old: str, new: str = "to_dict", *, method: bool = False) -> Any:
    """The old name of a method or property, which works for one version and warns.

    A method that was a property under its old name is called; `method` is true if the old name was a method, too.
    """

    def renamed(self: Any, *given: Any, **named: Any) -> Any:
        kind, found = type(self).__name__, getattr(self, new)
        brackets = "()" * callable(found)
        warnings.warn(
            f"{kind}.{old} is now {kind}.{new}{brackets}; the next version has only the new name",
            DeprecationWarning,
            stacklevel=2,
        )
        return found(*given, **named) if brackets else found

    renamed.__doc__ = f"The old name of `{new}`."
    return renamed if method else property(renamed)
