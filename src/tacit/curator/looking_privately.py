"""What the declarations lose, paid for: noisy shares of rows outside of keys and bounds, or without a value.

An ordinary plan, charged before a row is read, over a schema of its own in which nothing is clamped: columns without
bounds or keys can be filtered by. What comes out is a release like any other, and nobody has seen the data.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator

from tacit.curator.asks import Ask, ask
from tacit.curator.curator import Curator
from tacit.curator.names import RESERVED, folded
from tacit.curator.prices import Number as Paid
from tacit.curator.release import Releases
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.guarantees.arguments import instance
from tacit.sources.expressions import And, Compare, Expression, IsIn, IsMissing, Not, Or
from tacit.sources.schema import (
    Category,
    Column,
    Date,
    Flag,
    Integer,
    Measured,
    Schema,
    category,
    date,
    integer,
    number,
)
from tacit.statistics import proportion

__all__ = ["inspect_privately"]

LONGEST = 60
"""Letters of a column's name that stand in that of its release."""


def inspect_privately(
    curator: Curator,
    *,
    epsilon: Paid | None = None,
    delta: Paid | None = None,
    rho: Paid | None = None,
    mu: Paid | None = None,
    rows: int | None = None,
) -> Releases:
    """Noisy shares of the rows that each declaration loses, for one price; charged to the curator's ledger.

    `rows` is a public guess of the number of rows, for the expected errors.
    """
    instance(
        "curator", curator, Curator, must="be a Curator", hint="tacit.inspect_privately(survey, epsilon=0.1)"
    )
    if epsilon is None and rho is None and mu is None:
        raise InvalidParameter(
            parameter="epsilon", value=None, must="be given: there is no default price",
            hint="or rho, or mu; `inspect` without --private shows exact numbers and leaves its mark",
        )  # fmt: skip
    # What is made of other columns would be made of columns without their declarations: it is left out.
    stored = {name: column for name, column in curator.schema.items() if not column.derived}
    asks = [
        a for word, (name, column) in zip(_words(stored), stored.items(), strict=True)
        for a in _asks(word, name, column, rows)
    ]  # fmt: skip
    if not asks:
        raise EmptyComposition(
            what="the list of declarations that can lose a row", hint="declare bounds or keys"
        )
    plain = Curator(
        curator._data, protect=curator.unit, schema=Schema({n: _bare(c) for n, c in stored.items()}),
        budget=curator.budget, ledger=curator._keeper.for_charging(), table=curator._keeper.table,
        version=curator.version, analyst=curator.analyst, source=curator._source, **curator._options,
    )  # fmt: skip
    try:
        return plain.release(asks, epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    finally:
        # The ledger is the caller's: only the engine is given back.
        if plain._table is not None:
            plain._table.close()


def _bare(column: Column) -> Column:
    """The column without the declaration that is looked at: nothing is clamped, replaced or left out."""
    if isinstance(column, Flag):
        return Flag()
    if isinstance(column, Date):
        return date(datetime.date.min, datetime.date.max)
    if isinstance(column, Category):
        return category() if column.of_words else integer()
    return integer() if isinstance(column, Integer) else number()


def _words(names: Iterable[str]) -> Iterator[str]:
    """A word for each column that a release can be named by: a column may have a name that no file can."""
    taken: set[str] = set()
    for name in names:
        base = re.sub(r"[^\w .-]", "_", name)[:LONGEST].strip(" .") or "column"
        if folded(base).split(".")[0] in RESERVED:
            base = base.replace(".", "_")
        word, number = base, 2
        while folded(word) in taken:
            word, number = f"{base} {number}", number + 1
        taken.add(folded(word))
        yield word


def _asks(word: str, name: str, column: Column, rows: int | None) -> Iterator[Ask]:
    outside = _outside(name, column)
    if outside is not None:
        # Of all rows: those without a value are not outside.
        there = And(parts=(Not(inner=IsMissing(column=name)), outside))
        yield ask(proportion(there), name=f"{word} outside", rows=rows)
    yield ask(proportion(IsMissing(column=name)), name=f"{word} missing", rows=rows)


def _outside(name: str, column: Column) -> Expression | None:
    if isinstance(column, Category):
        return None if column.values is None else Not(inner=IsIn(column=name, values=column.values))
    if not isinstance(column, Measured) or isinstance(column, Flag) or not column.bounded:
        return None
    low, high = column.low, column.high  # type: ignore[attr-defined]
    ends = (low.isoformat(), high.isoformat()) if isinstance(column, Date) else (low, high)
    below = Compare(column=name, operator="<", value=ends[0])
    return Or(parts=(below, Compare(column=name, operator=">", value=ends[1])))
