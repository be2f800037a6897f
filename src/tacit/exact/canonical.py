"""One text for one content, so that a hash of it means something; and the keys derived from the secret.

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
PLAIN = frozenset({str, int, float, bool, type(None)})


def canonical(value: Any, *, what: str = "value") -> str:
    """The one text of a plain value; anything that is not plain JSON is refused, without showing it."""
    _only_plain(value, what)
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise _not_plain(what) from None


def canonical_table(texts: Mapping[str, str]) -> str:
    """The canonical text of a table whose values are already canonical texts."""
    return "{" + ",".join(f"{canonical(name)}:{text}" for name, text in sorted(texts.items())) + "}"


def plain(value: Any, *, what: str = "value") -> Any:
    """A private copy of a plain value, as it will be read back (tuples become lists)."""
    return json.loads(canonical(value, what=what))


def sha256(data: bytes | str) -> str:
    """The SHA-256 digest in hexadecimal."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def derived_key(secret: bytes, purpose: str) -> bytes:
    """A key of 32 bytes for one purpose: uses of one key reveal nothing about another."""
    return hmac.digest(secret, b"tacit ledger: " + purpose.encode("ascii"), "sha256")


def mac(secret: bytes, purpose: str, text: str) -> str:
    """A keyed digest in hexadecimal, HMAC-SHA-256 under the key of that purpose."""
    return hmac.digest(derived_key(secret, purpose), text.encode("utf-8"), "sha256").hex()


def _only_plain(value: Any, what: str, depth: int = 0) -> None:
    # json.dumps turns the keys 1, 1.0, True and None into strings without a word: two contents, one text.
    if depth > 100:
        raise _not_plain(what)
    if isinstance(value, dict):
        for key, inner in value.items():
            if type(key) is not str and not isinstance(key, str):
                raise _not_plain(what)
            if type(inner) not in PLAIN:
                _only_plain(inner, what, depth + 1)
    elif isinstance(value, list | tuple):
        kinds = set(map(type, value))
        if kinds <= {list, tuple}:
            kinds = set(map(type, chain.from_iterable(value)))
        if kinds <= PLAIN:
            return  # a million keys, or pairs of them, at the speed of a set
        for inner in value:
            _only_plain(inner, what, depth + 1)
    elif not (value is None or isinstance(value, str | int | float)):
        raise _not_plain(what)


def _not_plain(what: str) -> InvalidParameter:
    return InvalidParameter(
        parameter=what,
        value="something else",
        must="be plain JSON: finite numbers, strings, true, false, null, lists, and tables with string keys",
        hint="give bytes for anything else",
    )


def formerly(old: str, *, method: bool = False) -> Any:
    """The old name of `to_dict`, a property or a method, which works for one version and warns."""

    def told(self: Any, *given: Any, **named: Any) -> Any:
        kind = type(self).__name__
        warnings.warn(
            f"{kind}.{old} is now {kind}.to_dict(); the next version has only the new name",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.to_dict(*given, **named)

    told.__doc__ = "The old name of `to_dict`."
    return told if method else property(told)
