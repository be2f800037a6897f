"""Enclosing the root of a rising function in ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.exact.balls import ball, working_precision

__all__ = ["rising_root"]


def rising_root(
    function: Callable[[Any], Any], level: Any, *, reach: float = 2.0**40
) -> tuple[Any, Any] | None:
    """Points low < high with function(low) < level < function(high), as near as the precision can tell.

    Three points split the bracket in four; where a comparison is undecided (the point may be the root itself)
    the neighbouring points still narrow it. None where the function stays on one side up to `reach`.
    """
    low, high = ball(-1), ball(1)
    while not bool(function(low) < level):
        low = low * 2
        if low < -reach:
            return None
    while not bool(function(high) > level):
        high = high * 2
        if high > reach:
            return None
    for _ in range(2 * working_precision()):
        before = (low, high)
        width = high - low
        for share in (1, 2, 3):
            point = (before[0] + width * share / 4).mid()
            value = function(point)
            if bool(value < level):
                low = point
            elif bool(value > level):
                high = point
                break
        if (low, high) == before or not bool(low < high):
            break
    return low, high
