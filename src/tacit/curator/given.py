"""Given what a plan or a release is private: always, on random data (random DP), or under priors (exact answers).

`given={"random_data": 0.05}` says that rows are independent draws from one population, and that everything about the
plan was fixed before the data were seen; both are declared and stand in the guarantee. It buys exact small cells. On a
plan gamma is the total, on a release its own. Gammas are decimals, kept as fractions, and added as such.

`given={"unknown_rows": 900, "rows": "uniform(0, 1)"}` says how many rows an adversary knows nothing of and what law
they are drawn from; it buys one exact sum, mean or count (`tacit.curator.exact_answers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.coupled.noiseless import RowLaw, row_law
from tacit.curator.prices import decimal, flag
from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.checks import positive, whole
from tacit.guarantees import Always, RandomData, Unit
from tacit.guarantees.laws.conditions import single_rows
from tacit.random_data.base import independent, rows_parameter

__all__ = [
    "ALWAYS",
    "WORDS",
    "Assumed",
    "ExactGiven",
    "Given",
    "SampledGiven",
    "check_unit",
    "given_of",
    "no_mechanism",
    "shares_of",
]

WORDS = ("fixed_before", "independent", "random_data", "rows", "small_cells")
SAMPLED_WORDS = ("known_rows", "n", "rate", "sampling", "size_epsilon")
SAMPLINGS = ("binomial", "fixed", "poisson")
EXACT_WORDS = ("assume", "probability", "rectangle", "rows", "unknown_rows")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactGiven(Given):
    """An exact answer: so many unknown rows, and the law of a row or the chance that it is counted."""

    gamma: Fraction = Fraction(0)
    unknown_rows: int
    rows_law: str | None = None
    probability: tuple[str, ...] | None = None
    assume: str = "known"
    rectangle: tuple[str, str] | None = None

    def law(self, spacing: Fraction) -> RowLaw:
        """The law of a row, on the column's grid unless it names its own."""
        assert self.rows_law is not None
        own = "grid" in self.rows_law or self.rows_law.strip().lower().startswith(("table", "bernoulli"))
        return row_law(self.rows_law, grid=None if own else spacing)

    def matches(self, spacing: Fraction, low: Fraction, high: Fraction) -> None:
        """Refuse a law on another grid or range than the column's: what is recorded must be what is assumed.

        A value that the column may hold, and that is impossible under the law, would show through an exact sum. A
        shape covers every law on its grid and range, so that there the grid is enough.
        """
        law = self.law(spacing)
        if law.low != low or law.high != high:
            raise InvalidParameter(
                parameter="rows", value=law.name, must="range over the column's declared values, from "
                f"{float(low):g} to {float(high):g} in steps of {float(spacing):g}",
                hint="declare the same bounds and a spacing for the column, such as number(0, 1, spacing=1/64)",
            )  # fmt: skip
        gaps = not all(law.weights) if self.assume == "known" else law.reduced().step != spacing
        if law.step != spacing or gaps:
            raise InvalidParameter(
                parameter="rows", value=law.name, must="give every value of the column a chance, in steps of "
                f"{float(spacing):g}: a row that holds another value would show through an exact answer",
                hint="declare the spacing of the law for the column, or a law on the column's own grid",
            )  # fmt: skip

    def within(self, plan: Given | None) -> Given:
        """Its own words only."""
        return self

    def describe(self) -> dict[str, Any]:
        """Plain values: what the digest of a plan covers."""
        return {
            "unknown_rows": self.unknown_rows,
            "rows": self.rows_law,
            "probability": None if self.probability is None else list(self.probability),
            "assume": self.assume,
            "rectangle": None if self.rectangle is None else list(self.rectangle),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledGiven(ExactGiven):
    """A truncated histogram: the rows are a random sample of which nobody knows who is in it.

    With `sampling="fixed"` there are `n` rows, of which a few are discarded at random first.
    """

    unknown_rows: int = 1
    sampling: str
    rate: str | None = None
    known_rows: int = 0
    n: int | None = None
    size_epsilon: float | None = None

    def describe(self) -> dict[str, Any]:
        """Plain values: what the digest of a plan covers."""
        if self.sampling == "fixed":
            return {"sampling": self.sampling, "n": self.n, "size_epsilon": self.size_epsilon}
        return {"sampling": self.sampling, "rate": self.rate, "known_rows": self.known_rows}


def _sampled(value: Mapping[str, Any]) -> SampledGiven:
    """`given` with `sampling`."""
    for word in value:
        if word not in SAMPLED_WORDS:
            raise UnknownName(what="word in given with sampling", name=str(word), known=SAMPLED_WORDS)
    if value["sampling"] not in SAMPLINGS:
        raise UnknownName(what="sampling", name=str(value["sampling"]), known=SAMPLINGS)
    fixed, rate = value["sampling"] == "fixed", value.get("rate")
    for word in ("known_rows", "rate") if fixed else ("n", "size_epsilon"):
        if word in value:
            raise InvalidParameter(
                parameter=word, value="given", must=f"be left out with sampling = {value['sampling']}"
            )
    if fixed:
        size = value.get("size_epsilon")
        return SampledGiven(
            sampling="fixed",
            n=whole("n", value.get("n"), least=4),
            size_epsilon=None if size is None else positive("size_epsilon", size),
        )
    return SampledGiven(
        sampling=value["sampling"],
        rate=None if rate is None else str(rate),
        known_rows=whole("known_rows", value.get("known_rows", 0), least=0),
    )


def _exactly(value: Mapping[str, Any]) -> ExactGiven:
    """`given` with `unknown_rows`."""
    for word in value:
        if word not in EXACT_WORDS:
            raise UnknownName(what="word in given with unknown_rows", name=str(word), known=EXACT_WORDS)
    chance, over = value.get("probability"), value.get("rectangle")
    if chance is not None and not isinstance(chance, list | tuple):
        chance = [chance]
    for name, found, count in (("probability", chance, (1, 2)), ("rectangle", over, (2,))):
        if found is not None and (not isinstance(found, list | tuple) or len(found) not in count):
            raise InvalidParameter(
                parameter=name, value=type(found).__name__, must="be numbers, low end first"
            )
    for name in ("assume", "rows"):
        if name in value and not isinstance(value[name], str):
            raise InvalidParameter(parameter=name, value=type(value[name]).__name__, must="be text in given",
                                   hint='rows = "uniform(0, 1)"')  # fmt: skip
    return ExactGiven(
        unknown_rows=whole("unknown_rows", value["unknown_rows"], least=2),
        rows_law=value.get("rows"),
        probability=None if chance is None else tuple(map(str, chance)),
        assume=value.get("assume", "known"),
        rectangle=None if over is None else (str(over[0]), str(over[1])),
    )


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
    if "unknown_rows" in value:
        return _exactly(value)
    if "sampling" in value:
        return _sampled(value)
    for word in value:
        if word not in WORDS:
            raise UnknownName(
                what="word in given", name=str(word), known=(*WORDS, "sampling", "unknown_rows")
            )
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
