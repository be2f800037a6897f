"""What is asked of a curator: a statistic with a name, a price of its own or a weight, and how to finish it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.curator.prices import CONFIDENCE, Number, Price, decimal, price
from tacit.errors import InvalidParameter
from tacit.statistics import Statistic
from tacit.statistics.invariants import PublicTotals

__all__ = ["Ask", "ask"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One release of a plan before it is priced.

    `consistent` asks for post-processing: whole numbers that are not negative, margins that add up. `weight` is the
    share of the plan's common price that it gets, relative to the others.
    """

    statistic: Statistic
    name: str = ""
    price: Price | None = None
    weight: Fraction = Fraction(1)
    confidence: Fraction = CONFIDENCE
    consistent: bool = False
    rows: int | None = None
    sampling: bool = False
    public: PublicTotals | None = None
    target: Fraction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                parameter="ask", value=type(self.statistic).__name__, must="be a statistic",
                hint='for example tacit.count(by="state") or tacit.mean("income")',
            )  # fmt: skip
        if self.name and not _NAME.fullmatch(self.name):
            raise InvalidParameter(
                parameter="name", value=self.name, must="be 1 to 80 letters, digits, blanks, dots, - and _",
                hint="it becomes the name of a file",
            )  # fmt: skip
        if isinstance(self.rows, bool) or not (
            self.rows is None or (isinstance(self.rows, int) and self.rows > 0)
        ):
            raise InvalidParameter(parameter="rows", value=self.rows, must="be a whole number above 0")

    def describe(self) -> dict[str, Any]:
        """Plain values: what the digest of a plan covers."""
        return {
            "name": self.name,
            "statistic": self.statistic.describe(),
            "confidence": str(self.confidence),
            "consistent": self.consistent,
            "sampling": self.sampling,
            "public": None if self.public is None else list(self.public.declared),
        }


def ask(
    statistic: Statistic,
    *,
    name: str = "",
    weight: Number = 1,
    interval: Number = 0.95,
    consistent: bool = False,
    rows: int | None = None,
    sampling: bool = False,
    public: PublicTotals | None = None,
    target: Number | None = None,
    **paid: Any,
) -> Ask:
    """A statistic for a plan: `ask(count(by="state"), name="by state", weight=2)`, or with a price of its own.

    `interval` is the confidence of the intervals, `rows` a public guess at the rows of a cell, for expected errors.
    `sampling=True` declares that the rows are independent draws from a population, and makes the intervals of means
    and proportions speak about that. `public` declares totals that are public already (`tacit.public_totals`).
    `target` is an error to aim at: releases that share a price then err in proportion to their targets.
    """
    return Ask(
        statistic=statistic,
        name=name,
        weight=decimal("weight", weight),
        confidence=decimal("interval", interval, most=1),
        consistent=bool(consistent),
        rows=rows,
        sampling=bool(sampling),
        public=public,
        target=None if target is None else decimal("target", target),
        price=price(**paid) if paid else None,
    )
