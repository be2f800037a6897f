"""Public guesses at the typical value and spread of a column, used in previews only.

    guess = { value = 30000, spread = 20000 }

`value` is a typical value, `spread` a standard deviation. No released number depends on a guess, and neither does the
identity of a query. A guess must not come from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.data_classes import dataclass

WORDS = ("spread", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A typical value and a standard deviation; either may be left out."""

    value: float | None = None
    spread: float | None = None

    def __post_init__(self) -> None:
        for word in WORDS:
            held = getattr(self, word)
            if held is None:
                continue
            if isinstance(held, bool) or not isinstance(held, int | float) or not math.isfinite(held):
                raise InvalidParameter(parameter=f"guess {word}", value=held, must="be a finite number")
            object.__setattr__(self, word, float(held))
        if self.spread is not None and self.spread <= 0:
            raise InvalidParameter(parameter="guess spread", value=self.spread, must="be above 0")

    def in_values(self, ranks: float, *, share: float, rows: int) -> float | None:
        """An error of this many ranks in units of values, if the values are roughly normal.

        Around the quantile q of n such values with standard deviation s a rank takes s / (n phi(z_q)).
        """
        if self.spread is None:
            return None
        normal = NormalDist()
        left, right = (
            normal.inv_cdf(min(max(q, 1e-4), 1 - 1e-4)) for q in (share - ranks / rows, share + ranks / rows)
        )
        middle = normal.inv_cdf(share)
        return self.spread * max(middle - left, right - middle)


def guess_of(value: Any) -> Guess | None:
    """A guess from the words of a plan or a call."""
    if value is None or isinstance(value, Guess):
        return value
    if not isinstance(value, Mapping):
        raise InvalidParameter(
            parameter="guess", value=type(value).__name__, must="be a table of words",
            hint="guess={'value': 30000, 'spread': 20000}",
        )  # fmt: skip
    for word in value:
        if word not in WORDS:
            raise UnknownName(what="word in guess", name=str(word), known=WORDS)
    return Guess(**value)
