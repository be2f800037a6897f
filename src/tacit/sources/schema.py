"""Declarations about a table: the constructors of columns, and the schema that holds them by name.

Nothing is inferred. See `columns` for the effect of a declaration on a stored value.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from tacit.errors import (
    BadExpression,
    EmptyComposition,
    InvalidParameter,
    MissingBounds,
    UnknownColumn,
    UnknownName,
    WrongType,
)
from tacit.exact.canonical import canonical, formerly
from tacit.sources.columns import (
    Category,
    Column,
    Date,
    Flag,
    Integer,
    Measured,
    Number,
    Outside,
    finite,
    grid_spacing_of,
    refuse,
)
from tacit.sources.deriving import Node, check_derived, parse


def number(
    low: float | None = None,
    high: float | None = None,
    *,
    spacing: float | Fraction | None = None,
    missing: float | None = None,
    outside: Outside = "clamp",
) -> Number:
    """A number in [low, high]. Without bounds it can serve in filters, and a query can release clamping bounds for it.

    spacing is a power of two; by default the largest one that leaves at least 2^20 steps between the bounds.
    """
    finite("spacing", 1 if spacing is None else spacing)
    grid = None if spacing is None else Fraction(spacing)
    return Number(low=low, high=high, grid=grid, missing=missing, outside=outside)


def integer(
    low: int | None = None, high: int | None = None, *, missing: int | None = None, outside: Outside = "clamp"
) -> Integer:
    """A whole number in low..high, both included."""
    return Integer(low=low, high=high, missing=missing, outside=outside)


def category(
    values: Sequence[str] | Sequence[int] | None = None, *, missing: str | int | None = None
) -> Category:
    """One of these values; without a list, the values are not known in advance."""
    if isinstance(values, str):
        refuse("values", values, "be a list", 'for example category(["CA", "NY"])')
    listed = isinstance(values, Iterable) and not isinstance(values, bytes) and not hasattr(values, "mask")
    given = tuple(values) if listed and getattr(values, "ndim", 1) else values  # type: ignore[arg-type]
    return Category(values=given, missing=missing)  # type: ignore[arg-type]


def flag(*, missing: bool | None = None) -> Flag:
    """Yes or no."""
    return Flag(missing=missing)


def date(
    low: datetime.date | str,
    high: datetime.date | str,
    *,
    missing: datetime.date | str | None = None,
    outside: Outside = "clamp",
) -> Date:
    """A day in low..high, both included; days are dates or ISO text."""
    return Date(low=low, high=high, missing=missing, outside=outside)  # type: ignore[arg-type]


def derived(expression: str, column: Column) -> Column:
    """A column that is computed from others of its row: `derived("weight * income", number(0, 1e6))`.

    The expression is in a small closed language (`tacit.sources.deriving`) and works on declared values.
    Bounds are the column's own, as for a stored one.
    """
    if not isinstance(column, Column):
        refuse("column", type(column).__name__, "be a declaration", 'derived("a + b", number(0, 10))')
    if not str(expression).strip():
        refuse("from", expression, "be an expression", 'for example "weight * income"')
    return replace(column, derived=str(parse(expression)))


OURS = "__tacit"


def check_names(names: Iterable[str]) -> None:
    """Checks names of columns: they use no reserved prefix, and no two differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded.startswith(OURS):
            refuse("column", name, f"not begin with {OURS}", "such names are used inside: rename the column")
        if seen.setdefault(folded, name) != name:
            refuse(
                "column", name, f"differ from {seen[folded]!r} in more than case",
                "to some engines these are one name: rename one of them",
            )  # fmt: skip


class Schema(Mapping[str, Column]):
    """The declared columns by name; asking for another one is an error that names the nearest."""

    __slots__ = ("_columns", "_derived", "_text")

    def __init__(self, columns: Mapping[str, Column]) -> None:
        if not isinstance(columns, Mapping):
            refuse(
                "schema",
                type(columns).__name__,
                "map column names to declarations",
                "{'age': number(0, 120)}",
            )
        if not columns:
            raise EmptyComposition(
                what="the schema",
                hint="declare at least one column of the table, for example {'age': number(0, 120)}: none is inferred",
            )
        for name, column in columns.items():
            if not isinstance(name, str) or not name:
                refuse("schema", name, "have column names as keys", "{'age': number(0, 120)}")
            if not isinstance(column, Column):
                refuse(
                    f"schema[{name!r}]", type(column).__name__, "be a declaration",
                    "number(low, high), integer(low, high), category([...]), flag() or date(low, high)",
                )  # fmt: skip
        check_names(columns)
        self._columns = dict(columns)
        trees = {name: parse(column.derived) for name, column in columns.items() if column.derived}
        self._derived = {name: trees[name] for name in check_derived(trees, self._columns)} if trees else {}
        self._text = ""

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except (KeyError, TypeError):
            raise UnknownColumn(column=str(name), known=self._columns) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __repr__(self) -> str:
        return f"Schema({', '.join(self._columns)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._columns == other._columns

    def __hash__(self) -> int:
        return hash(tuple(self._columns.items()))

    def measured(self, name: str) -> Measured:
        """A column with an order and bounds: a number, an integer, a date or a flag."""
        column = self[name]
        if not isinstance(column, Measured):
            raise WrongType(
                column=name, found=column.kind, wanted="a number",
                hint="declare number(low, high) or integer(low, high), or count by the category instead",
            )  # fmt: skip
        if not column.bounded:
            raise MissingBounds(column=name)
        return column

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """All declarations as plain values."""
        return {
            name: column.to_dict() | ({"from": column.derived} if column.derived else {})
            for name, column in self._columns.items()
        }

    describe = formerly("describe", method=True)

    @property
    def derived(self) -> Mapping[str, Node]:
        """The computed columns, each behind the columns that it uses."""
        return self._derived

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns that the table itself has."""
        return tuple(name for name in self._columns if name not in self._derived)

    def behind(self, names: Iterable[str]) -> set[str]:
        """These columns, and their sources."""
        found = set(names)
        for name in reversed(self._derived):
            found |= self._derived[name].columns() if name in found else set()
        return found

    @property
    def text(self) -> str:
        """All declarations as one canonical text, made once; numbers outside JSON are written as text."""
        if not self._text:
            self._text = canonical(_written(self.to_dict()), what="schema")
        return self._text


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _written(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return list(value) if WRITTEN.issuperset(map(type, value)) else [_written(v) for v in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)


WRITTEN = frozenset({str, int, bool, type(None)})


# A schema as plain tables, as a plan file writes it, and back.
#
#     [schema.age]
#     kind = "number"
#     low = 0
#     high = 120
#
# A table takes what the Python constructor of its kind takes: `low`, `high`, `spacing`, `missing` and `outside` for
# numbers, `keys` for the declared values of a category, and of any kind `from = "weight * income"` for a column that
# is computed. A word that is not known is answered with the nearest one, and every error names the column.
# `schema_from_tables(schema_to_tables(s)) == s` for every schema.

TAKES: dict[str, tuple[str, ...]] = {
    "number": ("low", "high", "spacing", "missing", "outside"),
    "integer": ("low", "high", "missing", "outside"),
    "category": ("keys", "missing"),
    "flag": ("missing",),
    "date": ("low", "high", "missing", "outside"),
}
FROM = "from"
"""For any kind: the column is computed from others."""
MAKERS: dict[str, Callable[..., Column]] = {
    "number": number,
    "integer": integer,
    "category": category,
    "flag": flag,
    "date": date,
}
# Words of other tools for the same thing, which no spelling distance would find.
KIND_MEANT = {
    "float": "number", "double": "number", "real": "number", "numeric": "number", "decimal": "number",
    "int": "integer", "bool": "flag", "boolean": "flag", "datetime": "date", "day": "date",
    "string": "category", "text": "category", "str": "category", "enum": "category", "factor": "category",
}  # fmt: skip
WORD_MEANT = {
    "type": "kind", "values": "keys", "categories": "keys", "levels": "keys", "min": "low", "max": "high",
    "lower": "low", "upper": "high", "minimum": "low", "maximum": "high", "default": "missing", "na": "missing",
    "grid": "spacing", "step": "spacing",
}  # fmt: skip


def schema_from_tables(tables: Mapping[str, Any]) -> Schema:
    """The schema that a plan's [schema.*] tables declare."""
    if not isinstance(tables, Mapping):
        _refuse("schema", tables, "be a table of columns", "write [schema.age] with its kind below it")
    if not tables:
        raise EmptyComposition(
            what="the schema",
            hint='declare at least one column: [schema.age] with kind = "number", low = 0, high = 120',
        )
    return Schema({name: _column(name, table) for name, table in tables.items()})


def schema_to_tables(schema: Mapping[str, Column]) -> dict[str, dict[str, Any]]:
    """The tables of a schema: its differences from the defaults, as values for TOML and JSON.

    Days become ISO text, a spacing a fraction as text.
    """
    return {name: _table(column) for name, column in schema.items()}


def _column(name: str, table: Any) -> Column:
    where = f"[schema.{name}]"
    if not isinstance(table, Mapping):
        _refuse(f"schema.{name}", table, "be a table", 'for example kind = "number", low = 0, high = 120')
    if "kind" not in table:
        near = [w for w in table if WORD_MEANT.get(str(w)) == "kind"]
        hint = f"did you mean 'kind' by {near[0]!r}?" if near else f"kind is one of {', '.join(TAKES)}"
        _refuse(f"schema.{name}.kind", None, "be given", hint)
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in TAKES:
        meant = KIND_MEANT.get(str(kind).lower())
        hint = f"did you mean {meant!r}?" if meant else ""
        raise UnknownName(what=f"kind in {where}", name=str(kind), known=TAKES, hint=hint)
    takes = TAKES[kind]
    given = {str(word): value for word, value in table.items() if word not in ("kind", FROM)}
    for word in given:
        if word not in takes:
            meant = WORD_MEANT.get(word.lower())
            hint = f"did you mean {meant!r}?" if meant in takes else ""
            what = f"word in {where}, which is a {kind}:"
            raise UnknownName(what=what, name=word, known=(*takes, "kind", FROM), hint=hint)
    return _from(name, table[FROM], _made(name, kind, given)) if FROM in table else _made(name, kind, given)


def _from(name: str, text: Any, column: Column) -> Column:
    """The column, computed from others; each error begins with its name."""
    if not isinstance(text, str) or not text.strip():
        _refuse(f"schema.{name}.{FROM}", text, "be a text", 'for example from = "weight * income"')
    try:
        return derived(text, column)
    except BadExpression as problem:
        problem.args = (f"schema.{name}.{FROM}: {problem}",)
        raise


def _made(name: str, kind: str, given: dict[str, Any]) -> Column:
    """The constructor's column; each error begins with the column's name."""
    where = f"schema.{name}"
    if kind == "category" and "keys" in given:
        given["values"] = _keys(where, given.pop("keys"))
    if "spacing" in given:
        given["spacing"] = _spacing(where, given["spacing"])
    if kind == "date":
        for word in ("low", "high"):
            if word not in given:
                _refuse(f"{where}.{word}", None, "be given", f'a first and a last day: {word} = "2020-01-31"')
    if "outside" in given and not isinstance(given["outside"], str):
        _refuse(f"{where}.outside", given["outside"], "be a word", 'outside = "clamp" or "missing"')
    try:
        return MAKERS[kind](**given)
    except InvalidParameter as problem:
        word = "keys" if problem.parameter == "values" else problem.parameter
        _refuse(f"{where}.{word}", problem.value, problem.must, problem.hint)
    except UnknownName as problem:
        raise UnknownName(
            what=f"{problem.what} in [{where}]", name=problem.name, known=problem.known
        ) from None
    except EmptyComposition:
        hint = "name the keys, or leave the word out for unknown keys"
        raise EmptyComposition(what=f"{where}.keys", hint=hint) from None


def _keys(where: str, keys: Any) -> list[Any]:
    if not isinstance(keys, list | tuple):
        _refuse(f"{where}.keys", keys, "be a list", 'for example keys = ["CA", "NY"]')
    return list(keys)


def _spacing(where: str, spacing: Any) -> Fraction:
    """A number, or a fraction as text: "1/1024"."""
    try:
        if isinstance(spacing, bool) or not isinstance(spacing, int | float | str | Fraction):
            raise ValueError
        return Fraction(spacing)
    except (ValueError, OverflowError, ZeroDivisionError):
        _refuse(f"{where}.spacing", spacing, "be a power of two", 'for example 1, 0.5 or "1/1024"')


def _table(column: Column) -> dict[str, Any]:
    match column:
        case Number():
            table: dict[str, Any] = {"kind": "number", **_bounds(column.low, column.high)}
            if column.low is not None and column.high is not None:
                if column.spacing != grid_spacing_of(None, column.low, column.high):
                    table["spacing"] = str(column.spacing)
                if column.missing is not None:
                    table["missing"] = column.missing
        case Integer():
            table = {"kind": "integer", **_bounds(column.low, column.high)}
            if column.missing is not None:
                table["missing"] = column.missing
        case Date():
            table = {"kind": "date", "low": column.low.isoformat(), "high": column.high.isoformat()}
            if column.missing is not None:
                table["missing"] = column.missing.isoformat()
        case Flag():
            table = (
                {"kind": "flag"} if column.missing is None else {"kind": "flag", "missing": column.missing}
            )
        case Category():
            table = {"kind": "category"}
            if column.values is not None:
                table["keys"] = list(column.values)
            if column.missing is not None:
                table["missing"] = column.missing
        case _:
            _refuse(
                "schema", type(column).__name__, "hold declared columns", "number(low, high), category([...])"
            )
    if isinstance(column, Measured) and not isinstance(column, Flag) and column.outside != "clamp":
        table["outside"] = column.outside
    return table | ({FROM: column.derived} if column.derived else {})


def _bounds(low: float | None, high: float | None) -> dict[str, Any]:
    return {} if low is None or high is None else {"low": _plain(low), "high": _plain(high)}


def _plain(value: float) -> int | float:
    """0 for 0.0: the number a person would write, equal to the stored one."""
    return int(value) if float(value).is_integer() and abs(value) < 1 << 53 else value


def _refuse(parameter: str, value: object, must: str, hint: str = "") -> NoReturn:
    raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)
