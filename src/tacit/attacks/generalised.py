"""Values as anonymised tables write them, and whether a person's own value is one of those they stand for.

*            everything               130**        begins with 130 (and is as long)
<30  <=30    a number below           28 or 28.0   itself
>=40 ≥40     a number from there on   20-29        from 20 to 29, both ends
[20, 30)     intervals as written     {a, b}       one of a list
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.exact.arrays import Booleans


__all__ = ["agrees", "is_pattern", "match_matrix", "plain_key"]

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


def _span(text: str) -> tuple[float, float, bool, bool] | None:
    """The numbers that a published value stands for: ends, and whether each is left out; None if there are none."""
    if found := _COMPARED.match(text):
        edge = float(found[2])
        if found[1] in ("<", "<=", "≤"):
            return -math.inf, edge, False, found[1] == "<"
        return edge, math.inf, found[1] == ">", False
    if found := _INTERVAL.match(text):
        return float(found[2]), float(found[3]), found[1] == "(", found[4] == ")"
    if found := _RANGE.match(text):
        return float(found[1]), float(found[2]), False, False
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
    if span := _span(text):
        low, high, above, below = span

        def inside(own: Any) -> bool:
            x = _number(own)
            if x is None:
                return str(own).strip() == text
            return (x > low if above else x >= low) and (x < high if below else x <= high)

        return inside
    if "*" in text:
        pattern = re.compile("".join("." if c == "*" else re.escape(c) for c in text), re.S)
        return lambda own: pattern.fullmatch(str(own)) is not None
    key = plain_key(text)
    return lambda own: bool(plain_key(own) == key)


def agrees(shown: Any, own: Any) -> bool:
    """May somebody whose own value this is stand behind the published value? What is unknown excludes nobody."""
    return own is None or _reader(shown)(own)


def is_pattern(shown: Any) -> bool:
    """Does a published value stand for more than itself?"""
    if shown is None:
        return True
    text = str(shown).strip()
    return "*" in text or _LIST.match(text) is not None or _span(text) is not None


def plain_key(value: Any) -> Any:
    """The same for two values that agree and are no patterns: a number, or the text."""
    number = _number(value)
    return str(value).strip() if number is None else number


def match_matrix(shown: Sequence[Any], own: Sequence[Any]) -> Booleans:
    """`agrees` for all pairs: a row for each own value, a column for each published one."""
    import numpy as np

    found = np.zeros((len(own), len(shown)), dtype=np.bool_)
    read = [_number(x) for x in own]
    # Spans of numbers are compared all at once; own values that are no numbers, and other patterns, one by one.
    quick = all(x is not None for x in read)
    numbers = np.array([math.nan if x is None else x for x in read])
    for column, value in enumerate(shown):
        span = _span(str(value).strip()) if quick and value is not None else None
        if span is None:
            test = _reader(value)
            found[:, column] = [x is None or test(x) for x in own]
        else:
            low, high, above, below = span
            found[:, column] = (numbers > low if above else numbers >= low) & (
                numbers < high if below else numbers <= high
            )
    return found
