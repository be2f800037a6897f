"""The largest parameter that keeps a promise: every answer is a number at which the promise was checked."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["largest"]

STEPS = 200


def largest(keeps: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number, to within rounding, at which `keeps` holds; `low` is one, and it fails from some point on."""
    while keeps(high):
        low, high = high, high * 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 2e-16 * high:
            break
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
