"""The columns that are read: their names are nobody else's, their types hold what was declared, text is bytes.

Everything here looks at names and types, never at a row. Names that differ only in case are one name to some engines,
and names that begin with `__tacit` are our own: both are refused, so that no column can stand in for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tacit.errors import BadData, UnknownColumn, WrongType
from tacit.sources.compiling import check_types
from tacit.sources.deriving.compiling import with_derived
from tacit.sources.engines import Engine
from tacit.sources.schema import Schema, check_names

__all__ = ["check_columns", "selected"]


def check_columns(wanted: Sequence[str], found: Iterable[str], *, source: str) -> None:
    """Each wanted column is there, once, also for an engine that takes "Age" and "age" as one name."""
    found = list(map(str, found))
    check_names(wanted)
    twice = {name for name, n in Counter(name.casefold() for name in found).items() if n > 1}
    for name in wanted:
        if name not in found:
            raise UnknownColumn(column=name, known=found, where=source)
        # DuckDB calls the second "age" of a file "age_1", which may be the name of a third column.
        if any(name.casefold() == one or name.casefold().startswith(f"{one}_") for one in twice):
            raise BadData(
                source=source, problem=f"has several columns that are called {name!r}, or differ from it in case only",
                hint="rename them: to some engines these are one name",
            )  # fmt: skip


def selected(
    relation: Any,
    columns: Sequence[str],
    *,
    schema: Schema,
    person: str | None,
    engine: Engine,
    source: str,
) -> Any:
    """The wanted columns of an engine's table, their types checked, their text compared by bytes; and derived ones."""
    check_columns(columns, relation.columns, source=source)
    engine.prepare(relation)
    narrow = bytewise(relation.select(*columns), engine)
    check_types(narrow, schema)
    if person is not None:
        _check_person(person, narrow[person].type())
    return with_derived(narrow, schema, engine) if schema.derived else narrow


def bytewise(relation: Any, engine: Engine) -> Any:
    """The same rows; text columns without the collation that they, or the session, may have."""
    return relation.select(
        **{
            n: engine.bytewise(relation[n]) if relation[n].type().is_string() else relation[n]
            for n in relation.columns
        }
    )


def _check_person(name: str, dtype: Any) -> None:
    plain = (
        dtype.is_string() or dtype.is_numeric() or dtype.is_boolean() or dtype.is_temporal() or dtype.is_uuid()
        or dtype.is_binary() or dtype.is_null()
    )  # fmt: skip
    if not plain:
        raise WrongType(
            column=name, found=f"stored as {dtype}", wanted="something that tells people apart",
            hint="a number or a text: convert it in the table",
        )  # fmt: skip
