"""A file's own description of its columns before a row is read: names from a header, types from metadata. Never from
values.

Text has no types: its columns are text until they are declared. Statistics of a Parquet file's footer (its smallest
and largest values) are values of people, and are not looked at.
"""

from __future__ import annotations

import os
import re
from typing import Any

from tacit.exact.data_classes import dataclass
from tacit.sources import error_boundary
from tacit.sources.opening.files import Files
from tacit.sources.opening.joining import names_of
from tacit.sources.opening.statfiles import Stored, columns_of
from tacit.sources.opening.textfiles import names_in

VALUE = re.compile(r"\s*[+-]?[0-9][0-9.,/:\- ]*\s*|\s*")
"""The forms of a value that no name has: a number, a date, nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """One column: its name, its stored type, and the kind of declaration that fits this type.

    `kind` is nothing if the type says nothing. `keys` are values that the metadata list with labels.
    """

    name: str
    stored: str
    kind: str = ""
    keys: tuple[Any, ...] = ()


def headings(data: str | os.PathLike[str]) -> tuple[Heading, ...]:
    """The columns of a file, from its header or metadata."""
    files = data if isinstance(data, Files) else Files(path=os.fspath(data))
    paths = files.found()
    if files.is_parquet:
        return error_boundary.metadata(
            lambda: _parquet(str(paths[0])), source=files.path, problem="is not a readable Parquet file"
        )
    if files.kind in ("Stata", "SPSS", "SAS"):
        return tuple(_stored(name, one) for name, one in columns_of(files).items())
    if files.kind != "text":
        return tuple(Heading(name=name, stored="text") for name in names_of(files))
    return tuple(Heading(name=name, stored="text") for name in names_in(files)[1])


def _stored(name: str, column: Stored) -> Heading:
    """A column of a statistics file: by its type, its format and its labels."""
    if column.labels and not column.text:
        return Heading(
            name=name, stored="labelled number", kind="category", keys=tuple(column.labels.values())
        )
    kind = "category" if column.text else "date" if column.days else "integer" if column.whole else "number"
    return Heading(name=name, stored="text of the file" if column.text else "number", kind=kind)


def _parquet(path: str) -> tuple[Heading, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_ = pa.types

    def kind(type_: Any) -> str:
        if is_.is_dictionary(type_):
            return kind(type_.value_type)
        for test, word in (
            (is_.is_boolean, "flag"), (is_.is_integer, "integer"), (is_.is_floating, "number"),
            (is_.is_decimal, "number"), (is_.is_date, "date"), (is_.is_timestamp, "date"),
            (is_.is_string, "category"), (is_.is_large_string, "category"),
        ):  # fmt: skip
            if test(type_):
                return word
        return ""

    schema = pq.read_schema(path)
    return tuple(Heading(name=f.name, stored=str(f.type), kind=kind(f.type)) for f in schema)


def looks_like_a_row(found: tuple[Heading, ...]) -> bool:
    """Whether some name looks like a value. Then the first line may be somebody's row."""
    return any(VALUE.fullmatch(one.name) for one in found if one.stored == "text")
