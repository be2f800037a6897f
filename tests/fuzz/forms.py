"""The ways to hand over a table: files under plain and strange names, frames, tables and views of an engine.

What a form needs beside the rows (a file's name, which columns have a collation, the text of a view) is drawn once a
case and is the same for both neighbours.
"""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from fuzz import values
from fuzz.holders import HELD, draw_held, held
from fuzz.pairs import RAW, Row, broken_line
from fuzz.quick import connection
from fuzz.worlds import Column, World

How = dict[str, Any]
FORMS = (
    *("arrow",) * 3, "pandas", "pandas objects", "polars", "parquet", "parquet", "parquet pattern", "parquet path",
    "parquet name", "csv", "csv", "csv.gz", "csv.tsv", "csv list", "csv written", "csv written",
    *HELD, "joined", "ibis table", "ibis table", "ibis collation", "ibis collation",
    "ibis view", "ibis view",
)  # fmt: skip
SPARK = ("parquet", "arrow", "csv", "spark frame", "spark frame", "spark collation", "spark view")
"""The forms that are asked of Spark: files and frames that it is handed, and tables of its own."""
NAMES = (
    "a[1].parquet",
    "a*.parquet",
    "a?.parquet",
    "{a,b}.parquet",
    "a%41.parquet",
    "x=1.parquet",
    "'q'.parquet",
)
DECOYS = ("a1.parquet", "ab.parquet", "a.parquet", "aA.parquet")


def arrow_table(world: World, rows: list[Row]) -> pa.Table:
    """The rows as they are stored."""
    return pa.table({c.name: values.array(c.stored, [r[c.name] for r in rows]) for c in world.columns})


def draw_how(rng: random.Random, form: str, world: World) -> How:
    """What the form needs, for both tables alike."""
    columns = world.columns
    if form in HELD:
        return draw_held(rng, form, world)
    match form:
        case "parquet pattern":
            other = rng.choice([None, None, rng.choice(columns).name])
            return {"files": rng.choice([2, 3]), "other": other}
        case "parquet path":
            one = world.person if world.person and rng.random() < 0.5 else rng.choice(columns)
            value = rng.choice(["3", "a", "CA", "p1", "__HIVE_DEFAULT_PARTITION__", "2020-01-02"])
            return {"folder": f"{one.name.replace('/', '')}={value}"}
        case "csv written":
            separator = rng.choice([";", "|", "tab"])
            encoding = rng.choice(["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-8"])
            return {
                "separator": separator, "encoding": encoding, "decimal": rng.choice([".", ","]),
                "dates": rng.choice([None, "day-first", "month-first"]), "missing": rng.choice([[], ["NA", "3"]]),
                "said": rng.random() < 0.5, "mark": rng.choice([b"/", b".", b"-"]),
            }  # fmt: skip
        case "csv list":
            return {"files": rng.choice([2, 3])}
        case "parquet name":
            return {"name": rng.choice(NAMES)}
        case "pandas objects":
            return {"on": [c.name for c in columns if rng.random() < 0.5]}
        case "ibis collation" | "spark collation":
            texts = [c.name for c in columns if c.stored in values.TEXTS]
            chosen = [n for n in texts if rng.random() < 0.7]
            known = (
                ["NOCASE", "NOCASE", "NOACCENT"] if form.startswith("ibis") else ["UTF8_LCASE", "UNICODE_CI"]
            )
            return {"collation": rng.choice(known), "on": chosen}
        case "ibis view" | "spark view":
            return {"cast": {c.name: rng.randrange(6) for c in columns}}
    return {}


def make(form: str, how: How, world: World, rows: list[Row], folder: Path) -> tuple[Any, Callable[[], None]]:
    """The table to hand over, and a call that takes it away."""
    folder.mkdir(parents=True, exist_ok=True)
    if form.startswith("csv"):
        return _csv(form, how, world, rows, folder), _nothing
    if form in HELD:
        return held(form, how, world, rows, folder), _nothing
    if form == "pandas objects":
        return _objects(how, world, rows), _nothing
    table = arrow_table(world, rows)
    match form:
        case "arrow":
            return table, _nothing
        case "pandas":
            return _pandas(table), _nothing
        case "polars":
            import polars

            return polars.from_arrow(table), _nothing
        case "ibis table" | "ibis collation" | "ibis view":
            return _ibis(form, how, world, table)
    if form.startswith("spark"):
        return _spark(how, world, table), _nothing
    return _parquet(form, how, world, table, folder), _nothing


def _spark(how: How, world: World, table: pa.Table) -> Any:
    """A table of Spark's own: plain, with a collation, or behind a view."""
    from support.spark import frame, session

    plain = frame(table)
    if not how:
        return plain
    plain.createOrReplaceTempView("rows_of_a_user")
    told = []
    for column in world.columns:
        name = "`" + column.name.replace("`", "``") + "`"
        way = how.get("cast", {}).get(column.name)
        if column.name in how.get("on", ()):
            told.append(f"{name} COLLATE {how['collation']} AS {name}")
        elif way == 0 and column.stored in values.TEXTS and column.label in ("integer", "number"):
            told.append(f"CAST({name} AS INT) AS {name}")
        else:
            told.append(name)
    return session().sql(f"SELECT {', '.join(told)} FROM rows_of_a_user")


def _nothing() -> None:
    """Files go with their folder."""


def _parquet(form: str, how: How, world: World, table: pa.Table, folder: Path) -> Any:
    if form == "parquet path":
        folder = folder / how["folder"]
        folder.mkdir()
    if form == "parquet name":
        # Files that a pattern would find in its place: other rows, of nobody that is asked about.
        for decoy in DECOYS:
            if decoy != how["name"]:
                pq.write_table(pa.concat_tables([table.slice(0, 1)] * 3), folder / decoy)
        pq.write_table(table, folder / how["name"])
        return str(folder / how["name"])
    if form != "parquet pattern":
        pq.write_table(table, folder / "rows.parquet")
        return str(folder / "rows.parquet")
    cuts = [round(i * table.num_rows / how["files"]) for i in range(how["files"] + 1)]
    for i in range(how["files"]):
        part = table.slice(cuts[i], cuts[i + 1] - cuts[i])
        if how["other"] is not None and i == how["files"] - 1:
            part = _as_text(world.column(how["other"]), part)
        pq.write_table(part, folder / f"part{i}.parquet")
    pattern = str(folder / "part*.parquet")
    return tacit.files(pattern, pattern=True) if hasattr(tacit, "files") else pattern


def _as_text(column: Column, part: pa.Table) -> pa.Table:
    """One column stored as text instead."""
    cells = [c.as_py() if column.stored in values.INTEGERS else None for c in part[column.name]]
    if column.stored in values.TEXTS or column.stored not in values.INTEGERS:
        return part
    texts = [None if c is None else str(c) if abs(c) < 100 else "far away" for c in cells]
    return part.set_column(part.column_names.index(column.name), column.name, pa.array(texts))


# --- text ----------------------------------------------------------------------------------------------------
def _csv(form: str, how: How, world: World, rows: list[Row], folder: Path) -> Any:
    if form == "csv list":
        cuts = [round(i * len(rows) / how["files"]) for i in range(how["files"] + 1)]
        parts = []
        for i in range(how["files"]):
            (folder / str(i)).mkdir(exist_ok=True)
            parts.append(_csv("csv", {}, world, rows[cuts[i] : cuts[i + 1]], folder / str(i)))
        return tacit.files(parts)
    mark = b"\t" if form == "csv.tsv" or how.get("separator") == "tab" else how.get("separator", ",").encode()
    names = [_quoted(c.name.encode(), mark) for c in world.columns]
    lines = [mark.join(names)]
    for row in rows:
        plain = [_field(how, c, values.text(c.stored, row[c.name])) for c in world.columns]
        if RAW in row:
            at = next(i for i, c in enumerate(world.columns) if c is not world.person)
            lines.append(broken_line([_quoted(f, mark) for f in plain], row[RAW], mark, at))
        else:
            lines.append(mark.join(_quoted(f, mark) for f in plain))
    content = b"\n".join(lines) + b"\n"
    if form == "csv written":
        return _written(how, content, folder)
    path = folder / {"csv": "rows.csv", "csv.gz": "rows.csv.gz", "csv.tsv": "rows.tsv"}[form]
    if form == "csv.gz":
        content = gzip.compress(content, 1)
    path.write_bytes(content)
    return str(path)


ISO = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})")


def _field(how: How, column: Column, text: bytes) -> bytes:
    """A number and a day as the file is said to have them, in both tables; all else as it is."""
    if how.get("dates") and column.label == "date" and (day := ISO.fullmatch(text)):
        year, month, number = day.groups()
        first = [number, month] if how["dates"] == "day-first" else [month, number]
        return how["mark"].join([*first, year])
    if how.get("decimal") == "," and column.label in ("number", "free", "integer"):
        return text.replace(b".", b",") if re.fullmatch(rb" ?[0-9]+[.][0-9]+", text) else text
    return text


def _written(how: How, content: bytes, folder: Path) -> Any:
    """The same bytes, line by line, as characters of another encoding; single bytes stay what they are."""
    words = {w: how[w] for w in ("encoding", "decimal", "dates", "missing") if how[w]}
    if how["encoding"].startswith("utf-16"):
        wide = "utf-16-be" if how["encoding"].endswith("be") else "utf-16-le"
        content = content.decode("utf-8", "surrogateescape").encode(wide, "surrogatepass")
        content = (b"\xff\xfe" if how["encoding"] == "utf-16" else b"") + content
    path = folder / "rows.csv"
    path.write_bytes(content)
    return tacit.files(path, **words, separator=how["separator"] if how["said"] else None)


def _quoted(text: bytes, mark: bytes) -> bytes:
    text = text.replace(b"\n", b" ").replace(b"\r", b" ")
    return b'"' + text.replace(b'"', b'""') + b'"' if b'"' in text or mark in text else text


# --- frames ----------------------------------------------------------------------------------------------------
def _pandas(table: pa.Table) -> Any:
    import pandas as pd

    def typed(kind: Any) -> Any:
        # With nulls pandas would turn whole numbers into doubles, and far days into objects: what a column holds would
        # decide its type.
        own = pa.types.is_floating(kind) or pa.types.is_string(kind) or pa.types.is_dictionary(kind)
        return None if own else pd.ArrowDtype(kind)

    return table.to_pandas(types_mapper=typed)


def _objects(how: How, world: World, rows: list[Row]) -> Any:
    """Some columns as Python objects, whatever they hold; the others in their own types."""
    import pandas as pd

    out = {}
    for column in world.columns:
        cells = [r[column.name] for r in rows]
        if column.name in how["on"] or column.stored in values.TEXTS:
            out[column.name] = pd.Series([values.natural(column.stored, c) for c in cells], dtype=object)
        else:
            out[column.name] = _pandas(pa.table({"x": values.array(column.stored, cells)}))["x"]
    return pd.DataFrame(out)


# --- tables of an engine -----------------------------------------------------------------------------------------
def _ibis(form: str, how: How, world: World, table: pa.Table) -> tuple[Any, Callable[[], None]]:
    here = connection()
    name = "rows_of_a_user"
    here.con.execute(f"DROP TABLE IF EXISTS {name}")
    here.con.register("given", table)
    listed = ", ".join(_sql_type(c, how) for c in world.columns)
    if form == "ibis collation":
        here.con.execute(f"CREATE TABLE {name} ({listed})")
        here.con.execute(f"INSERT INTO {name} SELECT * FROM given")
    else:
        here.con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    here.con.unregister("given")

    def drop() -> None:
        here.con.execute(f"DROP TABLE IF EXISTS {name}")

    if form != "ibis view":
        return here.table(name), drop
    chosen = ", ".join(_cast(c, how["cast"][c.name]) for c in world.columns)
    return here.sql(f"SELECT {chosen} FROM {name}"), drop


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_type(column: Column, how: How) -> str:
    kind = {
        "string": "VARCHAR", "large_string": "VARCHAR", "dictionary": "VARCHAR", "bool": "BOOLEAN",
        "float64": "DOUBLE", "float32": "FLOAT", "float16": "FLOAT", "date32": "DATE", "date64": "DATE",
        "list": "BIGINT[]", "struct": "STRUCT(x BIGINT)", "time": "TIME", "duration": "INTERVAL", "binary": "BLOB",
        "null": "INTEGER",
    }.get(column.stored)  # fmt: skip
    if column.stored in values.INTEGERS:
        bits, signed = values.INTEGERS[column.stored]
        kind = ("" if signed else "U") + {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[bits]
    if column.stored in values.DECIMALS:
        kind = column.stored.replace("decimal", "DECIMAL")
    if column.stored in values.STAMPS:
        unit, zone = values.STAMPS[column.stored]
        kind = "TIMESTAMPTZ" if zone else {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP"}.get(
            unit, "TIMESTAMP_NS"
        )  # fmt: skip
    told = f" COLLATE {how['collation']}" if column.name in how.get("on", ()) else ""
    return f"{_name(column.name)} {kind}{told}"


def _cast(column: Column, way: int) -> str:
    """What somebody writes into a view: mostly nothing, else something that may fail for one row."""
    name = _name(column.name)
    if column.stored in values.TEXTS and column.label in ("integer", "number", "free"):
        kind = {0: "INTEGER", 1: "DOUBLE", 2: "DECIMAL(9, 2)"}.get(way)
        return f"CAST({name} AS {kind}) AS {name}" if kind else name
    if column.stored in values.TEXTS and column.label == "date":
        return f"CAST({name} AS DATE) AS {name}" if way < 4 else name
    if column.stored in values.INTEGERS and column.label in ("integer", "ints", "number", "free"):
        told = {0: f"{name} * 1000", 1: f"CAST({name} AS TINYINT)", 2: f"{name} + 9223372036854775000"}.get(
            way
        )
        if way == 3:
            told = f"CASE WHEN {name} > 100 THEN error('odd: ' || {name}) ELSE {name} END"
        return f"{told} AS {name}" if told else name
    return name
