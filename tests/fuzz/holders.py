"""Files that hold a table for other programs: workbooks, databases, Stata, SPSS, SAS; and tables that are joined.

The files of SAS are its transport files: nothing here writes `.sas7bdat`, which are read by the same lines.
"""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from fuzz import values
from fuzz.pairs import Row
from fuzz.worlds import World

PLAIN = {"float64", "float32", "bool", "string", "large_string", "dictionary", *values.INTEGERS}
XML = {*range(32)} - {9, 10, 13}


HELD = (
    "xlsx",
    "sqlite",
    "duckdb file",
    "stata",
    "spss",
    "sas",
    "several",
    "sqlite seen",
    "duckdb seen",
    "joined",
)
STATISTICS = {"stata": (".dta", "%td"), "spss": (".sav", "DATE11"), "sas": (".xpt", "DATE9")}
ZEROS = {"stata": (1, 3653), "spss": (86_400, 141_428), "sas": (1, 3653)}
"""Of a number of days: how long a day is, and how many lie between its zero and 1970."""


def draw_held(rng: random.Random, form: str, world: World) -> dict[str, Any]:
    """What the form needs, for both tables alike."""
    if form == "joined":
        return {"public": rng.random() < 0.5, "parquet": rng.random() < 0.5}
    if form == "several":
        return {"of": rng.choice(["xlsx", "stata", "spss", "sas"]), "files": rng.choice([2, 3])}
    labelled = [c.name for c in world.columns if rng.random() < 0.5]
    return {"labels": labelled} if form in STATISTICS else {}


def held(form: str, how: dict[str, Any], world: World, rows: list[Row], folder: Path) -> Any:
    """The table to hand over; a form that cannot hold these rows raises."""
    if form == "joined":
        return _joined(how, world, rows, folder)
    if form == "several":
        cuts = [round(i * len(rows) / how["files"]) for i in range(how["files"] + 1)]
        parts = []
        for i in range(how["files"]):
            (folder / str(i)).mkdir(exist_ok=True)
            parts.append(held(how["of"], {}, world, rows[cuts[i] : cuts[i + 1]], folder / str(i)))
        return tacit.files(parts)
    if form in STATISTICS:
        return _statistics(form, how, world, rows, folder / f"rows{STATISTICS[form][0]}")
    names = [c.name for c in world.columns]
    cells = [[_plain(c.stored, row[c.name]) for c in world.columns] for row in rows]
    if form == "xlsx":
        return _xlsx(names, cells, folder / "rows.xlsx")
    if form.startswith("sqlite"):
        return _sqlite(names, cells, folder / "rows.sqlite", seen=form.endswith("seen"))
    import duckdb

    from fuzz.forms import arrow_table

    table = arrow_table(world, rows)
    with duckdb.connect(str(folder / "rows.duckdb")) as base:
        base.register("given", table)
        base.execute("CREATE TABLE kept AS SELECT * FROM given")
        if form.endswith("seen"):
            listed = ", ".join('"' + n.replace('"', '""') + '"' for n in reversed(names))
            base.execute(f"CREATE VIEW seen AS SELECT {listed}, 1 AS more FROM kept")
    return tacit.files(folder / "rows.duckdb", view="seen" if form.endswith("seen") else "kept")


def _plain(stored: str, cell: Any) -> Any:
    """A cell as such a program holds it: a number, a text (bytes that are none as such), a truth value, a day."""
    return cell if isinstance(cell, bytes) else values.natural(stored, cell)


def _xlsx(names: list[str], cells: list[list[Any]], path: Path) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(names)
    for row in cells:
        made = []
        for cell in row:
            if isinstance(cell, bytes):
                cell = "".join(c for c in cell.decode("latin-1") if ord(c) not in XML)[:30_000]
            if isinstance(cell, float) and (cell != cell or abs(cell) == float("inf")):
                cell = None
            made.append(
                cell
                if isinstance(cell, str | int | float | None) or hasattr(cell, "isoformat")
                else str(cell)
            )
        if all(m is None or m == "" for m in made):
            raise ValueError("a record without a value is none in a sheet")
        book.active.append(made)
    book.save(path)
    return path


def _sqlite(names: list[str], cells: list[list[Any]], path: Path, *, seen: bool) -> Any:
    listed = ", ".join('"' + n.replace('"', '""') + '"' for n in names)
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE kept ({listed})")
        marks = ", ".join(
            "CAST(? AS TEXT)" if any(isinstance(r[i], bytes) for r in cells) else "?"
            for i in range(len(names))
        )
        told = [[_fit(cell) for cell in row] for row in cells]
        base.executemany(f"INSERT INTO kept VALUES ({marks})", told)
        base.execute(f"CREATE VIEW seen AS SELECT 1 AS more, {listed} FROM kept")
    base.close()
    return tacit.files(path, view="seen" if seen else "kept")


def _fit(cell: Any) -> Any:
    if isinstance(cell, int) and not isinstance(cell, bool) and not -(1 << 63) <= cell < 1 << 63:
        return str(cell)
    return cell if isinstance(cell, bytes | str | int | float | None) else str(cell)


def _statistics(form: str, how: dict[str, Any], world: World, rows: list[Row], path: Path) -> Path:
    """Numbers and texts, days as numbers with a format, and labels where there are words for whole numbers."""
    import pandas as pd
    import pyreadstat

    made, formats, labels = {}, {}, {}
    length, zero = ZEROS[form]
    for i, column in enumerate(world.columns):
        plain = column.name == f"c{i}" or column.name.isidentifier()
        if not plain or column.stored not in {*PLAIN, "date32"}:
            raise ValueError(f"no type of {form}")
        cells = [r[column.name] for r in rows]
        if column.stored in values.TEXTS:
            # Each byte a character: the file's own encoding is said to be that.
            made[column.name] = pd.Series(
                [(c or b"").decode("latin-1").replace("\0", " ")[:2000] for c in cells], dtype=object
            )
            continue
        if column.stored == "date32":
            formats[column.name] = STATISTICS[form][1]
            cells = [None if c is None else (c + zero) * length for c in cells]
        elif (
            column.name in how.get("labels", ())
            and column.stored in values.INTEGERS
            and column.label == "words"
        ):
            labels[column.name] = {k: f"{k}" for k in (1, 2)}
        made[column.name] = pd.Series([None if c is None else float(c) for c in cells], dtype="float64")
    write = {"stata": "write_dta", "spss": "write_sav", "sas": "write_xport"}[form]
    more: dict[str, Any] = {"variable_format": formats}
    if labels and form != "sas":
        more["variable_value_labels"] = labels
    getattr(pyreadstat, write)(pd.DataFrame(made), str(path), **more)
    return path


def _joined(how: dict[str, Any], world: World, rows: list[Row], folder: Path) -> Any:
    """One column comes from another table: a public one by its key, or one of the same person with all of that."""
    from fuzz.forms import arrow_table

    table = arrow_table(world, rows)
    moved = next(c for c in world.columns if c is not world.person)
    if how["public"]:
        # The key is drawn from the row's own cells, and the other table is the same for both neighbours.
        key = pa.array([len(values.text(moved.stored, r[moved.name])) % 5 for r in rows], pa.int64())
        words = [w if isinstance(w, bytes) else str(w).encode() for w in (moved.words or (b"1", b"2"))]
        other = pa.table(
            {"joined key": list(range(4)), moved.name: [words[i % len(words)] for i in range(4)]}
        )
        other = other.set_column(1, moved.name, other[moved.name].cast(pa.string()))
        mine, on = table.drop([moved.name]).append_column("joined key", key), "joined key"
    elif world.person is None:
        raise ValueError("nobody to join by")
    else:
        on = world.person.name
        other, mine = table.select([on, moved.name]), table.drop([moved.name])
    if how["parquet"]:
        pq.write_table(mine, folder / "rows.parquet")
        return tacit.join(str(folder / "rows.parquet"), other, on=on, public=how["public"])
    return tacit.join(mine, other, on=on, public=how["public"])
