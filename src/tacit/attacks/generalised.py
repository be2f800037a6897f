"""Values as anonymised tables write them, and whether a person's own value is one of those they stand for.

*            everything               130**        begins with 130 (and is as long)
<30  <=30    a number below           28 or 28.0   itself
>=40 ≥40     a number from there on   20-29        from 20 to 29, both ends
[20, 30)     intervals as written     {a, b}       one of a list
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Truths = npt.NDArray[np.bool_]

__all__ = ["agrees", "match_matrix"]

NUMBER = r"[-+]?\d+(?:\.\d+)?"
_COMPARED = re.compile(rf"^\s*(<=|>=|<|>|≤|≥)\s*({NUMBER})\s*$")
_INTERVAL = re.compile(rf"^\s*([\[(])\s*({NUMBER})\s*[,;]\s*({NUMBER})\s*([\])])\s*$")
_RANGE = re.compile(rf"^\s*({NUMBER})\s*(?:-|–|to|\.\.)\s*({NUMBER})\s*$")
_LIST = re.compile(r"^\s*\{(.*)\}\s*$", re.S)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _reader(shown: Any) -> Callable[[Any], bool]:
    """What a published value says, as a test of a person's own value."""
    if shown is None:
        return lambda own: True  # a removed value excludes nobody
    text = str(shown).strip()
    if set(text) == {"*"}:
        return lambda own: True
    if found := _LIST.match(text):
        tests = [_reader(part) for part in found[1].split(",")]
        return lambda own: any(test(own) for test in tests)
    if found := _COMPARED.match(text):
        sign, edge = found[1], float(found[2])
        if sign == "<":
            return lambda own: (x := _number(own)) is not None and x < edge
        if sign in ("<=", "≤"):
            return lambda own: (x := _number(own)) is not None and x <= edge
        if sign == ">":
            return lambda own: (x := _number(own)) is not None and x > edge
        return lambda own: (x := _number(own)) is not None and x >= edge
    if found := _INTERVAL.match(text):
        low, high = float(found[2]), float(found[3])
        open_low, open_high = found[1] == "(", found[4] == ")"

        def inside(own: Any) -> bool:
            x = _number(own)
            if x is None:
                return False
            return (x > low if open_low else x >= low) and (x < high if open_high else x <= high)

        return inside
    if found := _RANGE.match(text):
        low, high = float(found[1]), float(found[2])
        return lambda own: str(own) == text or ((x := _number(own)) is not None and low <= x <= high)
    if "*" in text:
        pattern = re.compile("".join("." if c == "*" else re.escape(c) for c in text), re.S)
        return lambda own: pattern.fullmatch(str(own)) is not None
    own_number = _number(text)
    return lambda own: str(own).strip() == text or (own_number is not None and _number(own) == own_number)


def agrees(shown: Any, own: Any) -> bool:
    """May somebody whose own value this is stand behind the published value? What is unknown excludes nobody."""
    return own is None or _reader(shown)(own)


def match_matrix(shown: Sequence[Any], own: Sequence[Any]) -> Truths:
    """`agrees` for all pairs: a row for each own value, a column for each published one."""
    import numpy as np

    found = np.zeros((len(own), len(shown)), dtype=np.bool_)
    for column, value in enumerate(shown):
        test = _reader(value)
        found[:, column] = [x is None or test(x) for x in own]
    return found
