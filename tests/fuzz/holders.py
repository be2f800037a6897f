"""Files that hold a table for other programs: workbooks, databases, Stata; and a table joined to another one."""

from __future__ import annotations

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


def held(form: str, how: dict[str, Any], world: World, rows: list[Row], folder: Path) -> Any:
    """The table to hand over; a form that cannot hold these rows raises."""
    if form == "joined":
        return _joined(how, world, rows, folder)
    names = [c.name for c in world.columns]
    cells = [[_plain(c.stored, row[c.name]) for c in world.columns] for row in rows]
    if form == "xlsx":
        return _xlsx(names, cells, folder / "rows.xlsx")
    if form == "sqlite":
        return _sqlite(names, cells, folder / "rows.sqlite")
    from fuzz.forms import arrow_table

    table = arrow_table(world, rows)
    if form == "duckdb file":
        import duckdb

        with duckdb.connect(str(folder / "rows.duckdb")) as base:
            base.register("given", table)
            base.execute("CREATE TABLE kept AS SELECT * FROM given")
        return tacit.files(folder / "rows.duckdb", view="kept")
    return _stata(world, rows, folder / "rows.dta")


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


def _sqlite(names: list[str], cells: list[list[Any]], path: Path) -> Any:
    listed = ", ".join('"' + n.replace('"', '""') + '"' for n in names)
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE kept ({listed})")
        marks = ", ".join(
            "CAST(? AS TEXT)" if any(isinstance(r[i], bytes) for r in cells) else "?"
            for i in range(len(names))
        )
        told = [[_fit(cell) for cell in row] for row in cells]
        base.executemany(f"INSERT INTO kept VALUES ({marks})", told)
    base.close()
    return tacit.files(path, view="kept")


def _fit(cell: Any) -> Any:
    if isinstance(cell, int) and not isinstance(cell, bool) and not -(1 << 63) <= cell < 1 << 63:
        return str(cell)
    return cell if isinstance(cell, bytes | str | int | float | None) else str(cell)


def _stata(world: World, rows: list[Row], path: Path) -> Path:
    import pandas as pd
    import pyreadstat

    made = {}
    for i, column in enumerate(world.columns):
        if column.stored not in PLAIN or (column.name != f"c{i}" and not column.name.isidentifier()):
            raise ValueError("no type of Stata")
        cells = [r[column.name] for r in rows]
        if column.stored in values.TEXTS:
            # Each byte a character: the file's own encoding is said to be that.
            made[column.name] = pd.Series(
                [(c or b"").decode("latin-1").replace("\0", " ")[:2000] for c in cells], dtype=object
            )
        else:
            made[column.name] = pd.Series([None if c is None else float(c) for c in cells], dtype="float64")
    pyreadstat.write_dta(pd.DataFrame(made), str(path))
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
