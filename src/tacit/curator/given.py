"""Given what a plan or a release is private: always, or except for a share gamma of the data (random DP).

`given={"random_data": 0.05}` says that rows are independent draws from one population, and that everything about the
plan was fixed before the data were seen; both are declared and stand in the guarantee. It buys exact small cells. On a
plan gamma is the total, on a release its own. Gammas are decimals, kept as fractions, and added as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.curator.prices import decimal, flag
from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.guarantees import Always, RandomData, Unit
from tacit.guarantees.laws.conditions import single_rows
from tacit.random_data.base import independent, rows_parameter

__all__ = ["ALWAYS", "WORDS", "Assumed", "Given", "check_unit", "given_of", "no_mechanism", "shares_of"]

WORDS = ("fixed_before", "independent", "random_data", "rows", "small_cells")
MOST_ROWS = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is assumed of the data: nothing (gamma 0, differential privacy), or random data with this gamma.

    `rows` is a least number of rows, which is declared; under replace-one the number of rows is public, and it may be
    left out. `small_cells` publishes small cells exactly, and not the empty ones alone. `fixed_before` declares that
    the plan was fixed before any other release about the data was seen.
    """

    gamma: Fraction
    rows: int | None = None
    small_cells: bool | None = None
    fixed_before: bool = False

    @property
    def condition(self) -> Always | RandomData:
        """As a condition, gamma rounded up."""
        from tacit.exact.rounding import up

        return RandomData(gamma=up(self.gamma)) if self.gamma else Always()

    def within(self, plan: Given | None) -> Given:
        """A release's own words, and those of its plan where it has none."""
        if plan is None:
            return self
        return Given(
            gamma=self.gamma,
            rows=plan.rows if self.rows is None else self.rows,
            small_cells=plan.small_cells if self.small_cells is None else self.small_cells,
            fixed_before=self.fixed_before or plan.fixed_before,
        )

    def describe(self) -> dict[str, Any]:
        """Plain values: what the digest of a plan covers."""
        return {
            "random_data": str(self.gamma),
            "rows": self.rows,
            "small_cells": bool(self.small_cells),
            "fixed_before": self.fixed_before,
        }


ALWAYS = Given(gamma=Fraction(0))

Assumed = Given | Always | RandomData | Mapping[str, Any] | str | None
"""What may stand behind `given=`."""


def given_of(value: object) -> Given | None:
    """What `given=` says: a mapping as in plan files, or a condition; None where nothing is said."""
    if value is None or isinstance(value, Given):
        return value
    if isinstance(value, Always) or (isinstance(value, str) and value == "always"):
        return ALWAYS
    if isinstance(value, RandomData):
        value = {"random_data": value.gamma}
    if not isinstance(value, Mapping):
        raise InvalidParameter(
            parameter="given", value=type(value).__name__, must="say given what it is private",
            hint='{"random_data": 0.05, "rows": 8000}, or tacit.RandomData(gamma=0.05)',
        )  # fmt: skip
    for word in value:
        if word not in WORDS:
            raise UnknownName(what="word in given", name=str(word), known=WORDS)
    if "random_data" not in value:
        raise InvalidParameter(
            parameter="random_data", value=None, must="be in given", hint="given = { random_data = 0.05 }"
        )
    independent(flag("independent", value.get("independent", True)))
    small = value.get("small_cells")
    return Given(
        gamma=_gamma(value["random_data"]),
        rows=_rows(value.get("rows")),
        small_cells=None if small is None else flag("small_cells", small),
        fixed_before=flag("fixed_before", value.get("fixed_before", False)),
    )


def _gamma(value: object) -> Fraction:
    try:
        return decimal("random_data", value)
    except InvalidParameter as problem:
        raise InvalidParameter(
            parameter="random_data", value=problem.value, must="be a number strictly between 0 and 1",
            hint="it is gamma, the share of data on which the bound may fail: 0 is differential privacy proper, for "
            "which nothing is given, and 1 promises nothing",
        ) from None  # fmt: skip


def _rows(value: object) -> int | None:
    if value is None:
        return None
    found = rows_parameter(value)
    if found > MOST_ROWS:
        raise InvalidParameter(parameter="rows", value=value, must="be at most 10^15")
    return found


def check_unit(unit: Unit) -> None:
    """Random DP speaks of single rows among independent draws: people and groups are refused, with the reason."""
    single_rows(unit)


def shares_of(total: Given, weights: Sequence[Fraction]) -> list[Given]:
    """The total gamma divided in proportion to weights: exact fractions, which add up to it."""
    from dataclasses import replace

    whole = sum(weights, Fraction(0))
    return [replace(total, gamma=total.gamma * w / whole) for w in weights]


def no_mechanism(kind: str) -> NoLaw:
    """Why a statistic that was asked for on random data is refused."""
    return NoLaw(
        operation=f"a {kind} given random data",
        reason="no mechanism of random differential privacy is built for it here: they are for counts of rows over "
        "known cells, and for a proportion of a known number of rows",
        hint="leave given= out and it is differentially private; statistics of unbounded data: tacit.random_data",
    )
