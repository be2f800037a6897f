"""Codes of keys, ids of columns and names of sheets: each a function of its own text and of nothing else.

A series that is loaded by its code must find the same key in the next version, whatever other keys that version has,
and in whatever order. So nothing is numbered. With t the exact text of a key:

    plain    t is made of letters, digits, - and single blanks or _ between them, begins with a letter or digit, has at
             most 60 characters and does not look like the other form: its code is t with `__` for each blank
    other    the letters and digits of t with _ between them, then `_x` and 16 hexadecimal digits of the SHA-256 of t

Two plain texts have two codes: a run of one _ is a _, a run of two is a blank. No plain code looks like the other form
(`_x` and 16 digits at the end), and two other codes are equal only if the digits are: that is refused, and the chance
for n keys is about n^2 / 2^65. Ids of columns and dataflows are the codes of lower-case texts in upper case; a text
with a capital in it, and one that is reserved, is of the other form.

Form 1, which is kept to check what it wrote, numbered the codes that fell together in the order of one release's keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from tacit.curator.spreadsheet import safe_text
from tacit.errors import InvalidParameter

__all__ = [
    "COVER",
    "FORM",
    "code_of",
    "codes",
    "id_of",
    "ids",
    "key_text",
    "numbered",
    "numbered_sheets",
    "sheet_name",
    "sheets",
]

FORM = 2
"""How exports are written now."""
LONGEST, KEPT = 60, 40
LONGEST_SHEET = 31
COVER = "About"
_PLAIN = re.compile(r"-?[0-9]+|[A-Za-z0-9][A-Za-z0-9-]*(?:[ _][A-Za-z0-9-]+)*")
_OTHER = re.compile(r".*_x[0-9a-f]{16}", re.IGNORECASE | re.DOTALL)
_SHEET = re.compile(r".* [0-9a-f]{8}", re.DOTALL)
_ODD = re.compile(r"[\[\]:*?/\\]")


def key_text(key: Any) -> str:
    """A key as exact text."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def digits_of(text: str, count: int) -> str:
    """So many hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:count]


def code_of(text: str) -> str:
    """The code of a key that is there."""
    if len(text) <= LONGEST and _PLAIN.fullmatch(text) and not _OTHER.fullmatch(text):
        return text.replace(" ", "__")
    slug = "_".join(re.findall(r"[A-Za-z0-9]+", text))[:KEPT]
    return f"{slug}_x{digits_of(text, 16)}"


def id_of(text: str, taken: Sequence[str] = ()) -> str:
    """The id of a column or a dataflow."""
    code = code_of(text).upper()
    if text == text.lower() and not _OTHER.fullmatch(code) and code not in taken:
        return code
    slug = "_".join(re.findall(r"[A-Za-z0-9]+", text))[:KEPT]
    return f"{slug}_x{digits_of(text, 16)}".upper()


def codes(keys: Sequence[Any], *, total: Any = None) -> dict[Any, str]:
    """The code of each key: `_U` for one that is missing, `_T` for the total."""
    special = {None: "_U", **({} if total is None else {total: "_T"})}
    return _each(keys, lambda key: special[key] if key in special else code_of(key_text(key)))


def ids(names: Sequence[str], *, taken: Sequence[str]) -> list[str]:
    """The ids of columns."""
    return list(_each(names, lambda name: id_of(name, taken)).values())


def sheet_name(name: str) -> str:
    """A name that Excel takes: at most 31 letters, none of []:*?/\\."""
    base = _ODD.sub("-", safe_text(name)).strip("' ")
    reserved = base.casefold() in (COVER.casefold(), "history")
    if base == name and len(base) <= LONGEST_SHEET and not reserved and not _SHEET.fullmatch(base):
        return base
    return f"{base[: LONGEST_SHEET - 9].rstrip()} {digits_of(name, 8)}".strip()


def sheets(names: Sequence[str]) -> list[str]:
    """The names of all sheets; Excel tells no letters of different case apart."""
    if len(set(names)) < len(names):
        raise InvalidParameter(
            parameter="releases", value=len(names), must="have different names in one workbook",
            hint="give each release a name of its own: tacit.ask(..., name='...')",
        )  # fmt: skip
    return list(_each(names, sheet_name, alike=str.casefold).values())


def _each(
    keys: Sequence[Any], name: Callable[[Any], str], *, alike: Callable[[str], str] = str
) -> dict[Any, str]:
    """A name for each key, or the refusal of two that are one."""
    found = {key: name(key) for key in keys}
    if len({alike(code) for code in found.values()}) < len(found):
        raise InvalidParameter(
            parameter="exports", value="two keys, columns or releases", must="have different codes",
            hint="their digests fall together; release without this export, which is free",
        )  # fmt: skip
    return found


# --- form 1 -----------------------------------------------------------------------------------------------
def numbered(
    keys: Sequence[Any], *, upper: bool = False, total: Any = None, taken: Sequence[str] = ()
) -> list[str]:
    """Codes of form 1: those that would fall together got a number, in the order of the keys."""
    found: list[str] = []
    used = set(taken)
    for key in keys:
        base = "_U" if key is None else "_T" if total is not None and key == total else _first(key)
        base = base.upper() if upper else base
        code, number = base, 2
        while code in used:
            code, number = f"{base}_{number}", number + 1
        used.add(code)
        found.append(code)
    return found


def _first(key: Any) -> str:
    code = re.sub(r"[^A-Za-z0-9_-]+", "_", safe_text(key_text(key)))
    plain = re.fullmatch(r"-?\d+", code) is not None
    return code if plain or re.match(r"[A-Za-z0-9_]", code) else f"_{code.lstrip('-')}"


def numbered_sheets(names: Sequence[str]) -> list[str]:
    """Names of sheets of form 1: those that would fall together got a number, in the order of the releases."""
    used, found = {COVER.casefold(), "history"}, []
    for name in names:
        base = _ODD.sub("-", safe_text(name)).strip("' ") or "release"
        shown, number = base[:31].rstrip("' "), 2
        while shown.casefold() in used:
            tail = f" {number}"
            shown, number = base[: 31 - len(tail)].rstrip("' ") + tail, number + 1
        used.add(shown.casefold())
        found.append(shown)
    return found
