"""Advice on a plan: for each release the one change of a declaration that would lower its error most.

Plans each change like the release itself, at the same price, and compares the expected errors; reads no row.
Compares errors of coarser cells with the larger number of rows in such a cell. A change that loses some of the
data (narrower bounds, fewer rows of a person) says so, since only the custodian can judge the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit.curator.intervals import expected
from tacit.curator.planning import Plan, Planned, choose
from tacit.errors import TacitError
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.guarantees import People, Unit
from tacit.sources.axes import Binned
from tacit.sources.columns import Integer, Number
from tacit.sources.schema import Schema
from tacit.statistics import Count, Mean, Proportion, Quantiles, Statistic

WORTH = 0.95
"""A change is named if at most this part of the error remains."""
GOOD = 0.25
"""Coarser cells are not advised if the error is already at most this part of the rows of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A declaration to change, the error before and after it, and the remaining share of the error.

    `factor` compares errors of coarser cells with the rows of a cell; otherwise it is after / before.
    """

    what: str
    before: float
    after: float
    factor: float
    loses: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "change": self.what, "error": self.before, "error_after": self.after, "factor": self.factor,
            "loses": self.loses,
        }  # fmt: skip

    record = formerly("record")

    def __str__(self) -> str:
        from tacit.curator.text import digits

        said = f"{self.what}: the error would be ± {digits(self.after)} instead of ± {digits(self.before)}"
        if abs(self.factor - self.after / self.before) > 0.01:
            said += f", and {self.factor:.2g} of what it is beside the rows of a cell"
        return said + (f"; {self.loses}" if self.loses else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The best change for one release; None if no change helps."""

    release: str
    change: Change | None
    error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"release": self.release, **({} if self.change is None else self.change.to_dict())}

    record = formerly("record")

    def __str__(self) -> str:
        if self.change is not None:
            return f"{self.release}: {self.change}"
        if self.error is None:
            return f"{self.release}: its error is not known in advance; rows = ... beside the release gives a guess"
        return (
            f"{self.release}: no change of bounds, rows of a person, bins or prices would help by 5% or more"
        )


def advise(plan: Plan) -> tuple[Advice, ...]:
    """The best change for each release of a plan."""
    out = []
    for release in plan.releases:
        found = [c for c in _changes(plan, release) if c.factor <= WORTH]
        best = min(found, key=lambda c: c.factor, default=None)
        out.append(Advice(release=release.name, change=best, error=release.expected.within))
    return tuple(out)


def _changes(plan: Plan, release: Planned) -> Iterator[Change]:
    """The candidates, harmless changes first: among equals the first one is named."""
    before = release.expected.within
    if not before:
        return
    for what, loses, words in _variants(plan, release):
        after = _error(plan, release, **words)
        if after is not None:
            yield Change(what=what, before=before, after=after, factor=after / before, loses=loses)
    rows = release.ask.rows
    if rows is not None and before <= GOOD * rows and isinstance(release.ask.statistic, Count):
        return
    for what, statistic, larger in _coarser(release.ask.statistic, plan.schema):
        more = None if rows is None else round(rows * larger)
        after = _error(plan, release, statistic=statistic, rows=more)
        if after is None:
            continue
        # The error of a mean or quantile falls with the rows of a cell; that of a count is compared with them.
        counted = isinstance(statistic, Count)
        if counted or more is not None:
            factor = after / before / (larger if counted else 1)
            yield Change(what=what, before=before, after=after, factor=factor)


def _error(plan: Plan, release: Planned, **words: Any) -> float | None:
    """The error of the release with another statistic, schema, unit, price or number of rows; None if refused."""
    ask, price = release.ask, words.get("price", release.assignment.price)
    rows = words.get("rows") or ask.rows
    try:
        statistic: Statistic = words.get("statistic", ask.statistic)
        question = statistic.on(words.get("schema", plan.schema), words.get("unit", plan.unit))
        chosen = choose(question, price, budget=plan.budget, rows=rows, noise=ask.noise)
        found = expected(question, chosen, confidence=ask.confidence, rows=rows, guess=ask.guess)
    except TacitError:
        return None
    return found.within if found.ranks == release.expected.ranks else None


def _variants(plan: Plan, release: Planned) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(The change, its loss, the plan with it)."""
    statistic: Any = release.ask.statistic
    yield from _missing(statistic, plan.schema)
    yield from _together(plan, release)
    yield from _narrower(statistic, plan.schema)
    unit = plan.unit
    if isinstance(unit, People) and unit.at_most > 1:
        fewer = (unit.at_most + 1) // 2
        groups = None if unit.groups is None else min(unit.groups, fewer)
        other: Unit = replace(unit, at_most=fewer, groups=groups)
        said = f"rows beyond {fewer} of a person would not be used"
        yield f"at_most = {fewer} instead of {unit.at_most} in [protect]", said, {"unit": other}


def _missing(statistic: Any, schema: Schema) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A column without missing values may make the number of rows public."""
    if not isinstance(statistic, Mean | Proportion):
        return
    names = [statistic.column] if isinstance(statistic, Mean) else sorted(statistic.of.columns())
    changed, said = dict(schema), []
    for name in names:
        column: Any = dict(schema).get(name)
        if column is None or not getattr(column, "may_be_missing", False):
            return
        value: Any = False if not isinstance(column, Number | Integer) else column.low
        try:
            changed[name] = replace(column, missing=value)
        except (TacitError, TypeError):
            return
        said.append(f"missing = {str(value).lower() if value is False else value} for {name}")
    yield " and ".join(said), "a missing value would count as this one", {"schema": Schema(changed)}


def _together(plan: Plan, release: Planned) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Quantiles of one column that are asked for one by one, each at its own price."""
    statistic = release.ask.statistic
    if not isinstance(statistic, Quantiles):
        return
    alike = [
        r for r in plan.releases
        if isinstance(r.ask.statistic, Quantiles) and replace(r.ask.statistic, at=statistic.at) == statistic
    ]  # fmt: skip
    shares = sorted({q for r in alike for q in r.ask.statistic.at})  # type: ignore[attr-defined]
    prices = [r.assignment.price for r in alike]
    if len(alike) < 2 or any(p.kind != "pure" or p.epsilon is None for p in prices):
        return
    total = replace(prices[0], epsilon=sum((p.epsilon or Fraction(0) for p in prices), Fraction(0)))
    at = ", ".join(f"{float(q):g}" for q in shares)
    one = replace(statistic, at=tuple(shares))
    yield (
        f"one release of quantiles at {at} for the price of {len(alike)}",
        "",
        {"statistic": one, "price": total},
    )


def _narrower(statistic: Any, schema: Schema) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Bounds half as wide, at the low end: numbers about people are rarely spread evenly."""
    if isinstance(statistic, Quantiles):
        return
    for word in ("column", "numerator", "denominator"):
        name = str(getattr(statistic, word, ""))
        column = dict(schema).get(name)
        if not isinstance(column, Number | Integer) or column.low is None or column.high is None:
            continue
        half = column.low + (column.high - column.low) / 2
        high: Any = int(half) if isinstance(column, Integer) else half
        held: Any = None if column.missing is None else min(column.missing, high)
        try:
            narrow = replace(column, high=high, missing=held)
            changed = Schema({**dict(schema), name: narrow})
        except (TacitError, TypeError):
            continue
        yield (
            f"high = {high:g} instead of {column.high:g} for {name}",
            "larger values would count as this one",
            {"schema": changed},
        )


def _coarser(statistic: Any, schema: Schema) -> Iterator[tuple[str, Statistic, float]]:
    """Half as many bins, or one column less: (the change, the statistic, the factor by which a cell gains rows)."""
    entries = tuple(statistic.by)
    for i, entry in enumerate(entries):
        name = entry.column if isinstance(entry, Binned) else entry
        if isinstance(entry, Binned):
            wide, bins = _wider(entry)
            if wide is not None:
                others = (*entries[:i], wide, *entries[i + 1 :])
                yield f"bins of {name} twice as wide", replace(statistic, by=others), bins
        elif len(entries) > 1 and name not in getattr(statistic, "over", ()):
            keys = getattr(schema[name], "values", None) if name in schema else None
            if keys is not None and len(keys) > 1:
                others = (*entries[:i], *entries[i + 1 :])
                yield f"groups without {name}", replace(statistic, by=others), float(len(keys))


def _wider(entry: Binned) -> tuple[Binned | None, float]:
    edges = entry.edges
    if isinstance(edges, int):
        return (
            (None, 1.0) if edges < 2 else (replace(entry, edges=(edges + 1) // 2), edges / ((edges + 1) // 2))
        )
    if len(edges) < 4:
        return None, 1.0
    kept = (*edges[:-1:2], edges[-1])
    return replace(entry, edges=kept), (len(edges) - 1) / (len(kept) - 1)
