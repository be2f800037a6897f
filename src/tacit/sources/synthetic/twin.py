"""A synthetic twin: a table with the shape of a declared one, made from the declaration alone.

A plan can be rehearsed on it, end to end, before anybody opens the data. It is made without data, so it can
reveal nothing; its statistics mean nothing either. Columns are independent of each other: numbers heap below
the middle of their bounds, the first keys of a category are the commonest, days and flags are even. A share of
the values is missing, and a share lies outside the declared range, so that both policies are rehearsed too.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.arrays import Booleans
from tacit.sources.columns import EPOCH, Category, Column, Date, Flag, Integer, Measured, Number
from tacit.sources.facts import marked
from tacit.sources.schema import Schema

if TYPE_CHECKING:
    import pyarrow


MOST_ROWS = 100_000_000
UNKNOWN_KEYS = 200
ENDINGS = (".csv", ".parquet")


def twin(
    schema: Schema | Mapping[str, Column],
    *,
    rows: int,
    people: int | None = None,
    person_column: str = "person_id",
    seed: int = 0,
    missing_share: float = 0.03,
    outside_share: float = 0.01,
) -> pyarrow.Table:
    """A table with this number of rows for the schema; with `people`, rows belong to that number of persons, some
    with many.
    """
    import pyarrow

    declared = schema if isinstance(schema, Schema) else Schema(schema)
    if not len(declared):
        raise EmptyComposition(what="the schema", hint="declare at least one column: [schema.age]")
    _whole("rows", rows, 1, MOST_ROWS)
    _whole("seed", seed, 0, 2**63)
    for name, share in (("missing_share", missing_share), ("outside_share", outside_share)):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
            _refuse(name, share, "lie in [0, 1)", "0 for none")
    draw = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    if people is not None:
        _whole("people", people, 1, rows)
        if person_column in declared:
            _refuse(
                "person_column", person_column, "not be a declared column", "it holds the made-up identities"
            )
        if not isinstance(person_column, str) or not person_column:
            _refuse("person_column", person_column, "be a name", 'for example "person_id"')
        columns[person_column] = pyarrow.array(_people(draw, rows, people))
    for name in declared.stored:
        column = declared[name]
        absent = draw.random(rows) < missing_share
        astray = draw.random(rows) < outside_share
        columns[name] = _values(draw, column, rows, absent, astray)
    return pyarrow.table(columns)


def write_table(table: pyarrow.Table, path: Path, *, ending: str | None = None) -> None:
    """Write as Parquet or CSV, by the path's ending (or by `ending`, for a path that is moved later).

    The file has one further column, which marks it as a twin (`tacit.sources.facts`).
    """
    import pyarrow.csv
    import pyarrow.parquet

    table = marked(table)
    kind = ending or path.suffix.lower()
    if kind == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        raise UnknownName(
            what="kind of file", name=kind or path.name, known=ENDINGS, hint="end it in .parquet or .csv"
        )


def _people(draw: np.random.Generator, rows: int, people: int) -> npt.NDArray[np.int64]:
    """Everybody has a row; the others go to people in proportion to a skewed weight."""
    weights = np.cumsum(draw.gamma(0.8, size=people))
    more = np.searchsorted(weights, draw.random(rows - people) * weights[-1], side="right")
    return draw.permutation(np.concatenate([np.arange(people), np.minimum(more, people - 1)])) + 1


def _values(draw: np.random.Generator, column: Column, rows: int, absent: Booleans, astray: Booleans) -> Any:
    import pyarrow

    if isinstance(column, Category):
        return _keys(draw, column, rows, absent, astray)
    if isinstance(column, Flag):
        return pyarrow.array(draw.random(rows) < 0.5, mask=absent)
    if isinstance(column, Number | Integer) and not column.bounded:
        return _unbounded(draw, column, rows, absent)
    if not isinstance(column, Measured):
        _refuse(
            "schema", type(column).__name__, "hold declared columns", "number(low, high), category([...])"
        )
    lowest, width = column.lowest, column.width
    if isinstance(column, Date):
        steps = lowest + draw.integers(0, width + 1, size=rows)
        beyond = 1 + draw.integers(0, 400, size=rows)
        steps = np.where(
            astray, np.where(draw.random(rows) < 0.5, lowest - beyond, lowest + width + beyond), steps
        )
        first, last = ((d - EPOCH).days for d in (datetime.date.min, datetime.date.max))
        return pyarrow.array(np.clip(steps, first, last).astype("datetime64[D]"), mask=absent)
    steps = lowest + np.minimum((draw.beta(2.0, 3.0, size=rows) * (width + 1)).astype(np.int64), width)
    # A tenth of the range beyond the ends, and at least one step.
    beyond = 1 + (draw.random(rows) * max(1, width // 10)).astype(np.int64)
    steps = np.where(
        astray, np.where(draw.random(rows) < 0.5, lowest - beyond, lowest + width + beyond), steps
    )
    if isinstance(column, Integer):
        return pyarrow.array(steps, mask=absent)
    return pyarrow.array(steps * float(column.spacing), mask=absent)


def _unbounded(draw: np.random.Generator, column: Column, rows: int, absent: Booleans) -> Any:
    import pyarrow

    values = 100 * np.exp(draw.standard_normal(rows))
    return pyarrow.array(
        np.round(values).astype(np.int64) if isinstance(column, Integer) else values, mask=absent
    )


def _keys(draw: np.random.Generator, column: Category, rows: int, absent: Booleans, astray: Booleans) -> Any:
    """Keys by falling frequency; a list that was not declared is made up."""
    import pyarrow

    unknown = column.values is None
    keys: list[Any] = [f"key-{k:03d}" for k in range(UNKNOWN_KEYS)] if unknown else list(column.values or ())
    weights = np.cumsum((1.0 + np.arange(len(keys))) ** -0.8)
    chosen = np.searchsorted(weights, draw.random(rows) * weights[-1], side="right")
    chosen = np.minimum(chosen, len(keys) - 1)
    if not unknown:
        chosen = np.where(astray, len(keys), chosen)
    stranger: Any = _stranger(keys)
    values = pyarrow.array([*keys, stranger])
    return values.take(pyarrow.array(chosen, mask=absent))


def _stranger(keys: list[Any]) -> Any:
    """A key that was not declared."""
    if isinstance(keys[0], int):
        return max(keys) + 1 if max(keys) < 2**62 else min(keys) - 1
    word = "undeclared"
    while word in keys:
        word += "-"
    return word


def _whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        _refuse(name, value, f"be a whole number from {least:,} to {most:,}")


def _refuse(parameter: str, value: object, must: str, hint: str = "") -> NoReturn:
    raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)
