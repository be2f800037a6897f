"""Rows are read behind one door: no engine is called elsewhere, in the text of the sources and in what really runs."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from support import code
from support.code import ROOMS, SRC
from tacit.sources import error_boundary

# Calls that run a query, or move rows from one library into another.
CALLS = {
    "collect", "copy_to", "create_table", "create_view", "execute", "executemany", "fetch_arrow_table",
    "fetch_df", "fetch_record_batch", "fetchall", "fetchdf", "fetchmany", "fetchnumpy", "fetchone", "fetchval",
    "from_pandas", "insert", "iter_batches", "persist", "raw_sql", "read_csv", "read_json", "read_parquet",
    "read_table", "register", "sql", "to_arrow", "to_arrow_reader", "to_arrow_table", "to_csv", "to_pandas",
    "to_parquet", "to_polars", "to_pyarrow", "to_pyarrow_batches", "toArrow", "toPandas",
}  # fmt: skip
# Words that other things are called as well; only their use in `sources` is of rows.
COMMON = {"collect", "insert", "persist", "register", "to_csv"}
# Where rows are read: each of these is called by the door and by nobody else.
BEHIND = {
    "sources/bounding.py", "sources/engines.py", "sources/opening/frames.py", "sources/microdata.py",
    "sources/opening/textfiles.py", "sources/opening/parquet.py",
    "sources/opening/databases.py", "sources/opening/joining.py", "sources/opening/values.py", "sources/query.py",
    "sources/compiling.py", "sources/spark.py", "sources/kept.py",
}  # fmt: skip
# What looks like it and touches no row: the ledger's own database, what was released, and tables that were made up.
OTHERS = {
    "ledger/": {"execute", "fetchall", "fetchone"},
    "sources/synthetic/": {"to_pandas", "to_csv"},
    "statistics/synthetic.py": {"to_pandas"},
    "synthesis/answers.py": {"to_arrow", "to_pandas"},
    "reproduce/": CALLS,
    "cli/": {"to_arrow", "to_csv"},
    # The server's own database: accounts, sessions, jobs.
    "server/": {"execute"},
    "curator/verifying.py": {"read_table"},
    "report/folder.py": {"to_arrow"},
    "report/verifying.py": {"execute", "fetchall", "read_parquet", "read_table"},
    # The types of a query of the custodian's own; what it says when it fails is not told.
    "sources/tables.py": {"sql"},
}


def called(path: Path) -> Iterator[tuple[int, str]]:
    # Most files have none of these words, and need not be parsed.
    if not any(f".{word}(" in code.text(path) for word in CALLS):
        return
    for node in ast.walk(code.tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            yield node.lineno, node.func.attr


def strays(path: Path) -> list[str]:
    name = code.named(path)
    if name in BEHIND:
        return []
    allowed = set().union(*(words for start, words in OTHERS.items() if name.startswith(start)))
    if not name.startswith("sources/"):
        allowed |= COMMON
    return [f"{name}:{line} {word}" for line, word in called(path) if word not in allowed]


@pytest.mark.parametrize("room", ROOMS)
def test_no_engine_is_called_elsewhere(room: str) -> None:
    found = [stray for path in ROOMS[room] for stray in strays(path)]
    assert not found, f"engine calls outside of the door: {found}"


def test_the_rule_notices_a_call() -> None:
    assert [word for _, word in called(SRC / "sources" / "opening" / "frames.py")]


# --- what really runs --------------------------------------------------------------------------------------
READS = {
    "execute", "sql", "query", "fetchone", "fetchall", "fetchmany", "to_arrow_reader", "fetch_arrow_table",
    "fetchnumpy",
    "to_arrow_table", "iter_batches", "read_row_groups", "to_pylist", "validate", "to_numpy", "call_function",
    "register",
}  # fmt: skip
ENGINES = ("_duckdb", "duckdb", "pyarrow")


def watched(action: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int]:
    """Calls into an engine or Arrow that are made while nobody is inside the door, and how many are made inside."""
    inside, stray, seen = threading.local(), [], [0]

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def one(given: Callable[[], Any], **rest: Any) -> Any:
            def action() -> Any:
                inside.depth = getattr(inside, "depth", 0) + 1
                try:
                    return given()
                finally:
                    inside.depth -= 1

            return original(action, **rest)

        return one

    for name in ("rows", "metadata"):
        monkeypatch.setattr(error_boundary, name, guarded(getattr(error_boundary, name)))

    def profile(frame: Any, event: str, called: Any) -> None:
        if event != "c_call" or getattr(called, "__name__", "") not in READS:
            return
        home = getattr(called, "__module__", None) or type(getattr(called, "__self__", None)).__module__ or ""
        if not home.startswith(ENGINES):
            return
        seen[0] += 1
        if not getattr(inside, "depth", 0):
            stray.append(f"{home}.{called.__name__} from {frame.f_code.co_filename}:{frame.f_lineno}")

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return stray, seen[0]


def tables(folder: Path) -> dict[str, Any]:
    data = {"id": ["a", "b", "c", "a"], "g": ["x", "y", "x", "z"], "n": [1.5, 2.5, 3.5, None]}
    frame = pd.DataFrame(data)
    pq.write_table(pa.table(data), folder / "t.parquet")
    frame.to_csv(folder / "t.csv", index=False)
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE t AS SELECT 'a' AS id, 'x' AS g, 1.5 AS n")
    return {
        "parquet": folder / "t.parquet", "csv": folder / "t.csv", "pandas": frame, "polars": pl.DataFrame(data),
        "lazy": pl.DataFrame(data).lazy(), "arrow": pa.table(data), "ibis": connection.table("t"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "unit", [tacit.rows(), tacit.people("id", at_most=1, groups=1)], ids=["rows", "people"]
)
@pytest.mark.parametrize("kind", ["parquet", "csv", "pandas", "polars", "lazy", "arrow", "ibis"])
def test_all_that_is_read_is_read_inside(
    kind: str, unit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tables(tmp_path)[kind]
    schema = {"g": tacit.category(["x", "y"]), "n": tacit.number(0, 9)}
    asked = [tacit.count(by="g"), tacit.mean("n"), tacit.sparse_histogram(["g"]), tacit.quantiles("n")]
    with tacit.Curator(
        data, protect=unit, schema=schema, budget=tacit.Approximate(epsilon=9, delta=1e-3)
    ) as curator:
        stray, seen = watched(lambda: curator.release(asked, epsilon=4, delta=1e-4), monkeypatch)
    assert not stray, stray
    assert seen > 5
