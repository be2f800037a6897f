"""One search: the point at which a monotone condition becomes true, by halving.

A condition is monotone if, once it holds, it holds for everything above. `bisected` keeps two ends: at the first the
condition does not hold, at the second it does. Take the end on the safe side, so that the result is directed: the
second if the predicate must hold, the first if it must not be exceeded. The given ends are never tried; the condition
is tested once for each halving.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import NotCertified

if TYPE_CHECKING:
    from tacit.exact.arrays import AnyArray

Number = TypeVar("Number", int, float, Fraction)

FAR = 1 << 4096
"""The search stops beyond this value."""


def bisected(
    holds: Callable[[Number], bool],
    low: Number,
    high: Number,
    *,
    halvings: int | None = None,
    relative: float | Fraction = 0.0,
    absolute: float | Fraction = 0.0,
    logarithmic: bool = False,
) -> tuple[Number, Number]:
    """The ends (does not hold, holds) of the rest of low..high after at most `halvings`.

    Integers become neighbours. Floats and fractions are halved until high - low is at most `relative` times the larger
    of them in size, or `absolute`, or until no float is between; `logarithmic` ones, which are positive floats, by
    their geometric mean, until high / low is at most `relative`.
    """
    left = math.inf if halvings is None else halvings
    if isinstance(low, int) and isinstance(high, int):
        while high - low > 1 and left > 0:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
            left -= 1
        return low, high
    while left > 0:
        if (
            (high / low <= relative)
            if logarithmic
            else high - low <= max(relative * max(-low, high), absolute)
        ):
            break
        between: Any = math.sqrt(low * high) if logarithmic else (low + high) / 2
        if not low < between < high:
            break
        low, high = (low, between) if holds(between) else (between, high)
        left -= 1
    return low, high


def bisected_arrays(
    holds: Callable[[AnyArray], AnyArray], low: AnyArray, high: AnyArray, *, halvings: int
) -> tuple[AnyArray, AnyArray]:
    """The same for arrays, each place separately: `holds` tests all places at once."""
    import numpy as np

    for _ in range(halvings):
        middle = (low + high) / 2
        true = holds(middle)
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return low, high


def least(holds: Callable[[int], bool], *, start: int = 0, what: str = "a search") -> int:
    """The least integer for which a monotone condition holds, however far from the start: by doubling, then halving."""
    step = 1
    if holds(start):
        high = start
        while holds(high - step):
            high, step = high - step, 2 * step
            if step > FAR:
                raise NotCertified(what=what, reason="it has no lower end that can be found")
        low = high - step
    else:
        low = start
        while not holds(low + step):
            low, step = low + step, 2 * step
            if step > FAR:
                raise NotCertified(what=what, reason="it has no upper end that can be found")
        high = low + step
    return bisected(holds, low, high)[1]
