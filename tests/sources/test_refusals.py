"""Every refusal of this room has an input that reaches it, and says which word is wrong."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
import tacit.statistics as ask
from tacit import errors
from tacit.sources import Schema, axes, category, date, integer, number, open_table
from tacit.sources.deriving import parse as parse_derived
from tacit.sources.expressions import parse
from tacit.sources.microdata import open_microdata
from tacit.sources.opening import files as words
from tacit.sources.opening.files import files
from tacit.sources.schema import schema_from_tables
from tacit.sources.synthetic.twin import twin

SCHEMA = Schema({"x": integer(0, 9)})
TWO = Schema({"x": integer(0, 9), "y": integer(0, 9)})


def opened(data: Any, schema: Any = SCHEMA, unit: Any = None, **more: Any) -> None:
    """Opened, and asked for one number: what a first question meets."""
    unit = unit or tacit.rows()
    with open_table(data, schema=schema, unit=unit, **more) as table:
        ask.read(table, [ask.count().on(table.schema, table.unit)], key=bytes(32))


def written(folder: Path, name: str, text: str | bytes = "x\n1\n") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def two_schemas(folder: Path) -> Path:
    path = folder / "t.duckdb"
    with duckdb.connect(str(path)) as held:
        for name in ("a", "b"):
            held.execute(f"CREATE SCHEMA {name}; CREATE TABLE {name}.t AS SELECT 1 AS x")
    return path


def databases(folder: Path) -> list[Path]:
    made = []
    for name in ("a.sqlite", "b.sqlite"):
        connection = sqlite3.connect(folder / name)
        connection.execute("CREATE TABLE t (x INTEGER)")
        connection.commit()
        connection.close()
        made.append(folder / name)
    return made


def books(folder: Path, *heads: list[str]) -> list[Path]:
    openpyxl = pytest.importorskip("openpyxl")
    made = []
    for number_, head in enumerate(heads):
        book = openpyxl.Workbook()
        if head:
            book.active.append(head)
            book.active.append([1] * len(head))
        book.save(folder / f"{number_}.xlsx")
        made.append(folder / f"{number_}.xlsx")
    return made


def stata(folder: Path) -> list[Path]:
    pyreadstat = pytest.importorskip("pyreadstat")
    made = []
    for name, value in (("a.dta", [1.5]), ("b.dta", ["one"])):
        pyreadstat.write_dta(pd.DataFrame({"x": value}), str(folder / name))
        made.append(folder / name)
    return made


def linked(folder: Path) -> list[Path]:
    path = written(folder, "a.csv")
    os.link(path, folder / "b.csv")
    return [path, folder / "b.csv"]


def nested() -> pa.Table:
    return pa.table({"x": [1, 2], "who": [[1], [2]]})


BAD: dict[str, tuple[Callable[[Path], Any], type[errors.TacitError], str]] = {
    "by is no name": (lambda _: axes.axis_of(3, SCHEMA), errors.InvalidParameter, "name columns"),  # type: ignore[arg-type]
    "by a column without bounds": (
        lambda _: axes.axis_of("n", Schema({"n": integer()})), errors.MissingBounds, "n",
    ),
    "bins on a fine grid": (
        lambda _: axes.axis_of(axes.bins("y", 1 << 20), Schema({"y": number(0, 1, spacing=2.0**-40)})),
        errors.InvalidParameter, "fewer on a grid this fine",
    ),
    "no column in a plan": (lambda _: schema_from_tables({}), errors.EmptyComposition, "schema"),
    "derived from no text": (lambda _: parse_derived(3), errors.InvalidParameter, "be text"),
    "derived, a bracket open": (lambda _: parse_derived("min(x, 2"), errors.BadExpression, "is needed"),
    "derived between without and": (
        lambda _: parse_derived("x between 1 or 2"), errors.BadExpression, "'and' is needed",
    ),
    "a filter that is no text": (lambda _: parse(3), errors.InvalidParameter, "be text"),  # type: ignore[arg-type]
    "is without missing": (lambda _: parse("x is 3"), errors.BadExpression, "'missing' is needed"),
    "between without and": (lambda _: parse("x between 1 or 2"), errors.BadExpression, "'and' is needed"),
    "not without in": (lambda _: parse("x not 3"), errors.BadExpression, "'in' or 'between'"),
    "an unknown engine": (lambda f: opened(written(f, "t.csv"), engine="oracle"), errors.UnknownName, "engine"),
    "an unknown engine for microdata": (
        lambda f: open_microdata(written(f, "t.csv"), engine="oracle"), errors.UnknownName, "engine",
    ),
    "microdata without columns": (lambda _: open_microdata(pa.table({})), errors.BadData, "no columns"),
    "microdata of lists": (lambda _: open_microdata(nested()).rows(), errors.WrongType, "a plain value"),
    "people told apart by lists": (
        lambda _: opened(nested(), unit=tacit.people("who", at_most=1)), errors.WrongType, "tells people apart",
    ),
    "people where rows are protected": (
        lambda _: opened_people(), errors.UnitMismatch, "people",
    ),
    "several databases": (
        lambda f: opened(files(databases(f), view="t")), errors.BadData, "several databases",
    ),
    "one name in two schemas": (
        lambda f: opened(files(two_schemas(f), view="t")), errors.BadData, "in several schemas",
    ),
    "no mark of UTF-16": (
        lambda f: opened(files(written(f, "t.csv"), encoding="utf-16")), errors.BadData, "mark of UTF-16",
    ),
    "no file": (lambda _: files([]), errors.InvalidParameter, "name a file"),
    "a pattern and a list": (
        lambda f: files([written(f, "a.csv"), written(f, "b.csv")], pattern=True), errors.InvalidParameter, "left out",
    ),
    "a comma twice": (
        lambda f: files(written(f, "t.csv"), decimal=",", separator=","), errors.InvalidParameter, "differ",
    ),
    "an unknown decimal mark": (
        lambda f: files(written(f, "t.csv"), decimal="'"), errors.UnknownName, "decimal",
    ),
    "unknown dates": (lambda f: files(written(f, "t.csv"), dates="year"), errors.UnknownName, "dates"),
    "one file under two names": (lambda f: opened(files(linked(f))), errors.BadData, "under two names"),
    "an unknown separator": (lambda _: words.separator_of("x"), errors.UnknownName, "separator"),
    "an unknown encoding": (lambda _: words.encoding_of("ebcdic"), errors.UnknownName, "encoding"),
    "missing as one word": (lambda _: words.missing_of("NA"), errors.InvalidParameter, "list of words"),
    "another separator than said": (
        lambda f: opened(files(written(f, "t.csv", "x;y\n1;2\n"), separator=","), TWO),
        errors.BadData, "separated by ';'",
    ),
    "workbooks that differ": (
        lambda f: opened(files(books(f, ["x"], ["y", "x"]))), errors.BadData, "headers differ",
    ),
    "an empty sheet": (lambda f: opened(books(f, [])[0]), errors.BadData, "empty sheet"),
    "a twin of nothing": (lambda _: twin({}, rows=5), errors.EmptyComposition, "schema"),
    "a watcher that is no function": (lambda _: tacit.watch(3).__enter__(), errors.InvalidParameter, "a function"),  # type: ignore[arg-type]
    "a sparse histogram of unknown keys": (
        lambda _: ask.sparse_histogram(["s"]).on(Schema({"s": category()}), tacit.rows()), errors.MissingBounds, "s",
    ),
    "a join on a moment": (lambda f: joined(f), errors.BadData, "join"),
}  # fmt: skip


def opened_people() -> None:
    """The question is made for people, and put to a table of rows."""
    unit = tacit.people("who", at_most=1)
    question = ask.count(of="people").on(SCHEMA, unit)
    with open_table(pa.table({"x": [1]}), schema=SCHEMA, unit=tacit.rows()) as table:
        ask.read(table, [question], key=bytes(32))


def joined(folder: Path) -> None:
    when = pa.array([1, 2], pa.timestamp("s"))
    left = pa.table({"k": when, "x": [1, 2]})
    pq.write_table(pa.table({"k": when, "y": [1, 2]}), folder / "p.parquet")
    public = tacit.join(left, folder / "p.parquet", on="k")
    opened(public, TWO)


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_is_reached_and_told(name: str, tmp_path: Path) -> None:
    act, kind, match = BAD[name]
    with pytest.raises(kind, match=match):
        act(tmp_path)


def test_what_is_right_is_not_refused(tmp_path: Path) -> None:
    """The neighbours of those inputs: one word changed, and they pass."""
    opened(written(tmp_path, "t.csv"))
    opened(files(written(tmp_path, "u.csv", "x;y\n1,5;2\n"), decimal=","), Schema({"x": integer(0, 9)}))
    opened(files(books(tmp_path, ["x"], ["x"])))
    opened(files(databases(tmp_path)[0], view="t"))
    opened(files([written(tmp_path, "a.csv"), written(tmp_path, "b.csv")]))
    opened(files(written(tmp_path, "v.csv", "x\n1\n".encode("utf-16")), encoding="utf-16"))
    opened(files(stata(tmp_path)))
    assert parse("x is not missing")
    assert parse("x not between 1 and 2")
    assert parse_derived("x between 1 and 2")
    assert twin({"x": integer(0, 9), "d": date("2020-01-01", "2020-02-01")}, rows=5).num_rows == 5
