"""A schema as plain tables, as a plan file writes it, and back.

    [schema.age]
    kind = "number"
    low = 0
    high = 120

A table takes what the Python constructor of its kind takes: `low`, `high`, `spacing`, `missing` and `outside` for
numbers, `keys` for the declared values of a category, and of any kind `from = "weight * income"` for a column that is
computed. A word that is not known is answered with the nearest one, and every error names the column.
`schema_from_tables(schema_to_tables(s)) == s` for every schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from tacit.errors import BadExpression, EmptyComposition, InvalidParameter, UnknownName
from tacit.sources.checks import grid_spacing_of
from tacit.sources.columns import Category, Column, Date, Flag, Integer, Measured, Number
from tacit.sources.schema import Schema, category, date, derived, flag, integer, number

__all__ = ["schema_from_tables", "schema_to_tables"]

TAKES: dict[str, tuple[str, ...]] = {
    "number": ("low", "high", "spacing", "missing", "outside"),
    "integer": ("low", "high", "missing", "outside"),
    "category": ("keys", "missing"),
    "flag": ("missing",),
    "date": ("low", "high", "missing", "outside"),
}
FROM = "from"
"""Beside any kind: the column is computed from others."""
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
    """The tables of a schema: what differs from the defaults, as values that TOML and JSON can hold.

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
    """The column, computed from others; errors are told with its name in front."""
    if not isinstance(text, str) or not text.strip():
        _refuse(f"schema.{name}.{FROM}", text, "be a text", 'for example from = "weight * income"')
    try:
        return derived(text, column)
    except BadExpression as problem:
        problem.args = (f"schema.{name}.{FROM}: {problem}",)
        raise


def _made(name: str, kind: str, given: dict[str, Any]) -> Column:
    """The constructor's column; its errors are told with the column's name in front."""
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
