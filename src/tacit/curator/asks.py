"""What is asked of a curator: a statistic with a name, a price of its own or a weight, and how to finish it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.curator.given import Assumed, Given, given_of
from tacit.curator.prices import CONFIDENCE, Number, Price, decimal, flag, stated
from tacit.errors import InvalidParameter
from tacit.statistics import Statistic
from tacit.statistics.invariants import PublicTotals

__all__ = ["Ask", "ask", "asks_of"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,79}")
MOST_ROWS = 10**15


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
    given: Given | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                parameter="ask", value=type(self.statistic).__name__, must="be a statistic",
                hint='for example tacit.count(by="state") or tacit.mean("income")',
            )  # fmt: skip
        if not isinstance(self.name, str) or (self.name and not _NAME.fullmatch(self.name)):
            raise InvalidParameter(
                parameter="name", value=self.name, must="be 1 to 80 letters, digits, blanks, dots, - and _",
                hint="it becomes the name of a file",
            )  # fmt: skip
        if self.rows is not None:
            object.__setattr__(self, "rows", _rows(self.rows))
        for name in ("consistent", "sampling"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        for name, kind in (("price", Price), ("public", PublicTotals), ("given", Given)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidParameter(
                    parameter=name, value=type(value).__name__, must=f"be a {kind.__name__}, or be left out"
                )
        for name in ("weight", "confidence", "target"):
            value = getattr(self, name)
            if (value is not None or name != "target") and not (isinstance(value, Fraction) and value > 0):
                raise InvalidParameter(parameter=name, value=value, must="be a fraction above 0")
        if self.confidence >= 1:
            raise InvalidParameter(parameter="confidence", value=str(self.confidence), must="be below 1")

    def describe(self) -> dict[str, Any]:
        """Plain values: what the digest of a plan covers. Every field; the price is the one that was found for it."""
        return {
            "name": self.name,
            "statistic": self.statistic.describe(),
            "weight": str(self.weight),
            "confidence": str(self.confidence),
            "consistent": self.consistent,
            "rows": self.rows,
            "sampling": self.sampling,
            "public": None if self.public is None else self.public.record,
            "target": None if self.target is None else str(self.target),
            **({} if self.given is None else {"given": self.given.describe()}),
        }


def _rows(value: object) -> int:
    import numpy as np

    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 < value <= MOST_ROWS:
        raise InvalidParameter(parameter="rows", value=value, must="be a whole number above 0, at most 10^15")
    return int(value)


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
    given: Assumed = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    within: Number | None = None,
    confidence: Number | None = None,
    simultaneous: bool = False,
) -> Ask:
    """A statistic for a plan: `ask(count(by="state"), name="by state", weight=2)`, or with a price of its own.

    `interval` is the confidence of the intervals, `rows` a public guess at the rows of a cell, for expected errors.
    `sampling=True` declares that the rows are independent draws from a population, and makes the intervals of means
    and proportions speak about that. `public` declares totals that are public already (`tacit.public_totals`).
    `target` is an error to aim at: releases that share a price then err in proportion to their targets.
    `given={"random_data": 0.05}` makes it random differential privacy with a gamma of its own; "always" keeps it
    differentially private in a plan that is not.
    """
    return Ask(
        statistic=statistic,
        name=name,
        weight=decimal("weight", weight),
        confidence=decimal("interval", interval),
        consistent=consistent,
        rows=rows,
        sampling=sampling,
        public=public,
        target=None if target is None else decimal("target", target),
        given=given_of(given),
        price=stated(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            within=within,
            confidence=confidence,
            simultaneous=simultaneous,
        ),
    )


def asks_of(asked: Any) -> list[Ask]:
    """What was asked, a statistic or several, each as an ask."""
    if isinstance(asked, Ask):
        return [asked]
    if isinstance(asked, Statistic):
        return [ask(asked)]
    if isinstance(asked, Sequence) and not isinstance(asked, str):
        return [a if isinstance(a, Ask) else ask(a) for a in asked]
    raise InvalidParameter(
        parameter="asked", value=type(asked).__name__, must="be a statistic, a list of them, or a plan",
        hint='for example tacit.count(by="state")',
    )  # fmt: skip
