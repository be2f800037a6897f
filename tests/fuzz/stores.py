"""One version of a table as somebody stores it: which files, in which types, order and writing.

A row here is what it says, not how it is stored: a word as bytes, a whole number, a number in quarters, a day counted
from 2020-01-01, a truth value, None. `Store` says how a version is written: two stores of equal rows hold equal tables,
from the definition of what is declared, whatever the files look like.
"""

from __future__ import annotations

import datetime
import gzip
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from fuzz import values
from fuzz.holders import STATISTICS, XML, ZEROS
from fuzz.worlds import Column

Row = dict[str, Any]
FIRST = datetime.date(2020, 1, 1)
KEY = "joined_key"
"""The column on which a public table is joined; it is not declared."""
MATCHED = 4
"""Keys that the public table has: a row with another one finds no match."""

FILES = {
    "parquet": ".parquet", "csv": ".csv", "csv.gz": ".csv.gz", "tsv": ".tsv", "xlsx": ".xlsx", "sqlite": ".sqlite",
    "duckdb": ".duckdb", "stata": ".dta", "spss": ".sav", "zsav": ".zsav", "sas": ".xpt",
}  # fmt: skip
FRAMES = ("pandas", "polars", "arrow")
SEVERAL = {
    "parquet list": "parquet", "parquet pattern": "parquet", "csv list": "csv", "several sas": "sas",
    "several stata": "stata",
}  # fmt: skip
JOINS = {"joined parquet": "parquet", "joined csv": "csv", "joined person": "parquet"}
READERS = (*FILES, *SEVERAL, *JOINS, *FRAMES)
SPARK = (
    "parquet",
    "parquet list",
    "csv",
    "joined parquet",
    "joined person",
    "arrow",
    "pandas",
    "spark frame",
)
TYPED = ("parquet", "duckdb", "polars", "arrow", "spark frame")

TYPES = {
    "words": ("string", "string", "large_string", "dictionary"),
    "digits": ("string", "int64", "uint8", "float64"),
    "ints": ("int64", "int8", "uint16", "float64", "decimal(38,0)", "string"),
    "open": ("string", "large_string", "dictionary"),
    "integer": ("int64", "int32", "int16", "float64", "float32", "decimal(10,2)", "string"),
    "number": ("float64", "float32", "decimal(10,2)", "string"),
    "date": ("date32", "timestamp[us]", "timestamp[ns]", "timestamp[s]", "string"),
    "flag": ("bool", "int8", "float64", "string"),
    "id": ("int64", "int32", "float64", "string"),
    "name": ("string", "large_string", "dictionary"),
    "key": ("int64", "int32", "float64", "string"),
}
"""In which stored types a column of each kind says the same."""


class CannotHold(Exception):
    """This way of storing has no place for these rows: the sequence is drawn anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """How one version is written. `inferred`: types follow from the rows, as pandas finds them."""

    reader: str
    types: dict[str, str] = field(default_factory=dict)
    inferred: bool = False
    order: int = 0
    columns: int = 0
    files: int = 1
    name: str = "rows"
    other: str = "public"
    folder: str = "data"
    beside: bool = False
    writing: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The format of its files; nothing for a frame."""
        found = SEVERAL.get(self.reader) or JOINS.get(self.reader) or self.reader
        return found if found in FILES else ""

    def names(self) -> list[str]:
        """Its files, without their folder."""
        if not self.kind:
            return []
        return [f"{self.name}{i if self.files > 1 else ''}{FILES[self.kind]}" for i in range(self.files)]

    def declared(self) -> tuple[Any, ...]:
        """What somebody says is to be read; frames have no name."""
        listed: tuple[str, ...] = ("*",) if self.reader == "parquet pattern" else tuple(self.names())
        return (self.reader if self.kind else "frame", listed, self.other if self.reader in JOINS else "")

    def said(self) -> dict[str, Any]:
        """Words beside the path."""
        if self.kind in ("sqlite", "duckdb"):
            return {"view": "kept"}
        words = ("encoding", "separator", "decimal")
        return {w: self.writing[w] for w in words if w in self.writing and self.writing.get("said")}


def arranged(store: Store, base: Sequence[Row], unit: Sequence[Row], place: str) -> list[Row]:
    """All rows in the order of the store."""
    rows, middle = list(base), len(base) // 2
    if store.order:
        rows += unit
        random.Random(store.order).shuffle(rows)
        return rows
    match place:
        case "first":
            return [*unit, *rows]
        case "last":
            return [*rows, *unit]
        case _:
            return [*rows[:middle], *unit, *rows[middle:]]


def cell(label: str, stored: str, value: Any) -> Any:
    """A value as a cell of a stored type."""
    if value is None:
        return None
    if stored in values.TEXTS:
        return text(label, value)
    if isinstance(value, bytes):
        if not value.isdigit():
            raise CannotHold(f"{value!r} in {stored}")
        value = int(value)
    if label == "date":
        return values.days(stored, values.DAY + value) if stored in values.STAMPS else values.DAY + value
    if stored in values.INTEGERS or stored == "bool":
        if value != int(value) or (stored == "bool" and not isinstance(value, bool)):
            raise CannotHold(f"{value!r} in {stored}")
        return bool(value) if stored == "bool" else int(value)
    if stored in values.DECIMALS:
        return Decimal(value)
    if stored == "float32" and float(value) != values.np.float32(value):
        raise CannotHold(f"{value!r} in {stored}")
    return float(value)


def text(label: str, value: Any) -> bytes:
    """A value as it is written."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if label == "date":
        return (FIRST + datetime.timedelta(days=value)).isoformat().encode()
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return (f"{value:.0f}" if value == int(value) else repr(float(value))).encode()


def plain(label: str, value: Any) -> Any:
    """A value as Python has it."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CannotHold("bytes that are no text") from None
    if label == "date" and value is not None:
        return FIRST + datetime.timedelta(days=value)
    return value


def arrow(store: Store, columns: Sequence[Column], rows: Sequence[Row]) -> pa.Table:
    """The rows in the types of the store, columns in its order."""
    if store.inferred:
        return pa.Table.from_pandas(inferred(store, columns, rows), preserve_index=False)
    made = {}
    for column in _ordered(store, columns):
        stored = store.types[column.name]
        try:
            made[column.name] = values.array(
                stored, [cell(column.label, stored, r[column.name]) for r in rows]
            )
        except (pa.ArrowException, ValueError, OverflowError) as problem:
            raise CannotHold(str(problem)) from None
    if store.beside:
        made["beside"] = pa.array([i % 7 for i in range(len(rows))])
    return pa.table(made)


def inferred(store: Store, columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    """A frame whose types pandas finds: one fraction or missing value makes doubles of whole numbers."""
    import pandas as pd

    made = {}
    for column in _ordered(store, columns):
        cells = [plain(column.label, r[column.name]) for r in rows]
        made[column.name] = (
            pd.to_datetime(pd.Series(cells, dtype=object)) if column.label == "date" else cells
        )
    if store.beside:
        made["beside"] = [i % 7 for i in range(len(rows))]
    return pd.DataFrame(made)


def _ordered(store: Store, columns: Sequence[Column]) -> list[Column]:
    found = list(columns)
    if store.columns:
        random.Random(store.columns).shuffle(found)
    return found


def write(
    store: Store, columns: Sequence[Column], rows: Sequence[Row], folder: Path, public: Sequence[Row]
) -> None:
    """All files of a version, under the names of the store; nothing for a frame."""
    names = store.names()
    parts = _split(store, rows)
    mine, other = _sides(store, columns)
    for name, part in zip(names, parts, strict=True):
        write_file(store, store.kind, mine, part, folder / name)
    if other is None:
        return
    given = public if store.reader != "joined person" else rows
    write_file(store, store.kind, other, given, folder / (store.other + FILES[store.kind]))


def _split(store: Store, rows: Sequence[Row]) -> list[list[Row]]:
    cuts = [round(i * len(rows) / store.files) for i in range(store.files + 1)]
    return [list(rows[cuts[i] : cuts[i + 1]]) for i in range(store.files)] if store.kind else []


def _sides(store: Store, columns: Sequence[Column]) -> tuple[list[Column], list[Column] | None]:
    """The columns of the table and of the one that it is joined to."""
    if store.reader not in JOINS:
        return [c for c in columns if c.name != KEY], None
    moved = joined_column(columns)
    on = next(
        c
        for c in columns
        if (c.label in ("id", "name") if store.reader == "joined person" else c.name == KEY)
    )
    mine = [c for c in columns if c is not moved and (c.name != KEY or on.name == KEY)]
    return mine, [on, moved]


def joined_column(columns: Sequence[Column]) -> Column:
    """The column that lies in the other table of a join."""
    return next(c for c in columns if c.label not in ("id", "name", "key"))


def handed(store: Store, columns: Sequence[Column], rows: Sequence[Row], folder: Path) -> Any:
    """What is handed to a curator."""
    mine, other = _sides(store, columns)
    if not store.kind:
        return _frame(store, mine, rows)
    paths = [folder / name for name in store.names()]
    if store.reader == "parquet pattern":
        return tacit.files(str(folder / f"{store.name}*.parquet"), pattern=True)
    said = store.said()
    data: Any = str(paths[0]) if len(paths) == 1 and not said else tacit.files(paths, **said)
    if other is None:
        return data
    beside = folder / (store.other + FILES[store.kind])
    more: Any = tacit.files(str(beside), **said) if said else str(beside)
    return tacit.join(data, more, on=other[0].name, public=store.reader != "joined person")


def _frame(store: Store, columns: Sequence[Column], rows: Sequence[Row]) -> Any:
    if store.reader == "pandas":
        return inferred(store, columns, rows)
    table = arrow(store, columns, rows)
    if store.reader == "polars":
        import polars

        return polars.from_arrow(table)
    if store.reader == "spark frame":
        from support.spark import frame

        if any(t in ("uint8", "uint16", "dictionary", "timestamp[s]") for t in store.types.values()):
            raise CannotHold("a type that Spark does not have")
        return frame(table)
    return table


# --- files ---------------------------------------------------------------------------------------------------
def write_file(store: Store, kind: str, columns: Sequence[Column], rows: Sequence[Row], path: Path) -> None:
    """One file."""
    how = store.writing
    if kind == "parquet":
        pq.write_table(
            arrow(store, columns, rows), path, compression=how.get("compression", "snappy"),
            use_dictionary=how.get("dictionary", True), row_group_size=how.get("groups", 1 << 20),
        )  # fmt: skip
    elif kind in ("csv", "csv.gz", "tsv"):
        path.write_bytes(_csv(store, kind, columns, rows))
    elif kind == "xlsx":
        _xlsx(store, columns, rows, path)
    elif kind == "sqlite":
        _sqlite(store, columns, rows, path)
    elif kind == "duckdb":
        _duckdb(arrow(store, columns, rows), path)
    else:
        _statistics(store, kind, columns, rows, path)


def _csv(store: Store, kind: str, columns: Sequence[Column], rows: Sequence[Row]) -> bytes:
    how = store.writing
    mark = b"\t" if kind == "tsv" else how.get("separator", ",").encode()
    mark = b"\t" if mark == b"tab" else mark
    listed = _ordered(store, columns)
    lines = [mark.join([*(c.name.encode() for c in listed), *([b"beside"] if store.beside else [])])]
    for i, row in enumerate(rows):
        fields = [_field(store, c, row[c.name], mark) for c in listed] + (
            [b"%d" % (i % 7)] if store.beside else []
        )
        lines.append(mark.join(fields))
    end = b"\r\n" if how.get("lines") == "crlf" else b"\n"
    made = end.join(lines) + (b"" if how.get("lines") == "open" else end)
    if how.get("encoding", "utf-8") != "utf-8":
        wide = {"utf-16": "utf-16-le"}.get(how["encoding"], how["encoding"])
        try:
            made = (b"\xff\xfe" if how["encoding"] == "utf-16" else b"") + made.decode().encode(wide)
        except UnicodeError:
            raise CannotHold("no such characters") from None
    return gzip.compress(made, how.get("level", 1)) if kind == "csv.gz" else made


def _field(store: Store, column: Column, value: Any, mark: bytes) -> bytes:
    made = text(column.label, value)
    if store.writing.get("points") and column.label in ("integer", "number") and made.lstrip(b"-").isdigit():
        made += b".0"
    if store.writing.get("decimal") == "," and column.label in ("integer", "number"):
        made = made.replace(b".", b",")
    if b'"' in made or mark in made or b"\n" in made or store.writing.get("quotes"):
        return (
            b'"' + made.replace(b'"', b'""') + b'"' if made or column.label not in ("words", "open") else made
        )
    return made


def _xlsx(store: Store, columns: Sequence[Column], rows: Sequence[Row], path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    listed = _ordered(store, columns)
    book.active.append([c.name for c in listed])
    for row in rows:
        made = [plain(c.label, row[c.name]) for c in listed]
        made = ["".join(x for x in m if ord(x) not in XML) if isinstance(m, str) else m for m in made]
        if all(m is None or m == "" for m in made):
            raise CannotHold("a record without a value is none in a sheet")
        if store.writing.get("texts"):
            made = [
                None if m is None else text(c.label, row[c.name]).decode()
                for c, m in zip(listed, made, strict=True)
            ]
        book.active.append(made)
    book.save(path)


def _sqlite(store: Store, columns: Sequence[Column], rows: Sequence[Row], path: Path) -> None:
    listed = _ordered(store, columns)
    names = ", ".join(f'"{c.name}"' for c in listed)
    made = []
    for row in rows:
        cells = [plain(c.label, row[c.name]) for c in listed]
        if store.writing.get("texts"):
            cells = [
                None if v is None else text(c.label, row[c.name]).decode()
                for c, v in zip(listed, cells, strict=True)
            ]
        if store.writing.get("doubles"):
            cells = [float(v) if type(v) is int else v for v in cells]
        cells = [v.isoformat() if isinstance(v, datetime.date) else v for v in cells]
        if any(isinstance(v, int) and abs(v) >= 1 << 63 for v in cells):
            raise CannotHold("beyond 64 bits")
        made.append(cells)
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE kept ({names})")
        base.executemany(f"INSERT INTO kept VALUES ({', '.join('?' * len(listed))})", made)
    base.close()


def _duckdb(table: pa.Table, path: Path) -> None:
    import duckdb

    with duckdb.connect(str(path)) as base:
        base.register("given", table)
        try:
            base.execute("CREATE TABLE kept AS SELECT * FROM given")
        except duckdb.Error as problem:
            raise CannotHold(str(problem)) from None


def _characters(written: bytes) -> str:
    """Text; bytes that are none, each as a character."""
    try:
        return written.decode()
    except UnicodeDecodeError:
        return written.decode("latin-1")


def _statistics(store: Store, kind: str, columns: Sequence[Column], rows: Sequence[Row], path: Path) -> None:
    """Numbers and texts, days as numbers with a format; whole numbers as such where the store says so."""
    import pandas as pd
    import pyreadstat

    program = {"zsav": "spss"}.get(kind, kind)
    made, formats = {}, {}
    length, zero = ZEROS[program]
    for column in _ordered(store, columns):
        cells = [r[column.name] for r in rows]
        if column.label in ("words", "digits", "open", "name"):
            texts = [_characters(text(column.label, c)) for c in cells]
            made[column.name] = pd.Series(texts, dtype=object)
            continue
        if column.label == "date":
            formats[column.name] = STATISTICS[program][1]
            cells = [None if c is None else (c + values.DAY + zero) * length for c in cells]
        whole = all(c is not None and c == int(c) and abs(c) < 1 << 31 for c in cells)
        doubles = not whole if store.inferred else not store.types[column.name].startswith("int")
        if not doubles and not whole:
            raise CannotHold("a column of whole numbers")
        made[column.name] = pd.Series(
            [None if c is None else float(c) if doubles else int(c) for c in cells],
            dtype="float64" if doubles else "int32",
        )
    write = {"stata": "write_dta", "spss": "write_sav", "zsav": "write_sav", "sas": "write_xport"}[kind]
    more: dict[str, Any] = {"variable_format": formats}
    if kind == "zsav":
        more["compress"] = True
    if kind == "stata":
        more["version"] = store.writing.get("version", 15)
    if kind == "sas":
        more["file_format_version"] = store.writing.get("version", 5)
    getattr(pyreadstat, write)(pd.DataFrame(made), str(path), **more)
