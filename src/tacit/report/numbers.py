"""Numbers for people, as the page writes them: shares, axes, keys; the digits are those of `tacit.curator.figures`."""

from __future__ import annotations

import datetime
import math
from typing import Any

from tacit.curator.figures import SLACK, Figures, figures, outwards, three

__all__ = [
    "Figures",
    "compact",
    "compact_ends",
    "figures",
    "key_place",
    "key_words",
    "percent",
    "three",
    "ticks",
]


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{three(100 * share)}%"


def compact(value: float) -> str:
    """A short word for axes and small cells: 12.3k, 4.5M."""
    size = abs(value)
    for least, letter in ((999.5e9, ""), (999.5e6, "bn"), (999.5e3, "M"), (9995, "k")):
        if size >= least:
            if not letter:
                return three(value)
            return three(value / {"bn": 1e9, "M": 1e6, "k": 1e3}[letter]) + letter
    return three(value)


def compact_ends(low: float, high: float) -> str:
    """Both ends of an interval in short words, each rounded outwards: 1.87k to 2.01k."""
    return f"{compact(outwards(low, math.floor))} to {compact(outwards(high, math.ceil))}"


def key_words(key: Any) -> str:
    """A key as people write it: a word, a number, yes or no, a day, or a range."""
    if key is None:
        return "(missing)"
    if isinstance(key, bool):
        return "yes" if key else "no"
    if isinstance(key, tuple):
        return " – ".join(key_words(end) for end in key)
    if isinstance(key, float):
        return f"{key:.6g}" if abs(key) < 1000 else three(key)
    return key.isoformat() if isinstance(key, datetime.date) else str(key)


def key_place(key: Any) -> float | None:
    """Where a key lies on a line: a number, a day, the middle of a range; None for a word."""
    if isinstance(key, tuple):
        ends = [key_place(end) for end in key]
        known = [e for e in ends if e is not None]
        return sum(known) / len(known) if len(known) == len(ends) and known else None
    if isinstance(key, datetime.date):
        return float(key.toordinal())
    if isinstance(key, int | float) and not isinstance(key, bool):
        return float(key)
    return None


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) inside the range, at most `most`."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (s * power for s in (1, 2, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - SLACK), math.floor(high / step + SLACK)
        if last - first < most:
            break
    return [k * step for k in range(first, last + 1)]
