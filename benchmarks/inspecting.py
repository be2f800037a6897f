"""`tacit inspect` of 20 million made-up rows, beside one DuckDB pass for each column that it reads.

The passes are hand-written statements on the same Parquet file: for a measured column count, least, largest and mean;
for a key column its counts; for the person's column the counts of rows a person, and their largest. Ours asks for all
that `inspect` shows of the same columns: missing, outside, strangers, means before and after clamping, rows a person,
and people in the cells of one release. Processor time of all threads, in turn, the least of two; a target of 3 x is
a ratio of 0.333. TACIT_BENCH_ROWS makes it smaller.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tacit

ROWS, PEOPLE, TIMES, PIECE = 20_000_000, 4_000_000, 2, 2_000_000
STATES = [f"state {i:02}" for i in range(50)]
SCHEMA = {
    "state": tacit.category(STATES),
    "age": tacit.integer(0, 90),
    "income": tacit.number(0, 200_000),
    "day": tacit.date("2020-01-01", "2023-12-31"),
    "sick": tacit.flag(),
}
PASSES = (
    "select state, count(*) from {t} group by state",
    "select count(age), min(age), max(age), avg(age) from {t}",
    "select count(income), min(income), max(income), avg(income) from {t}",
    "select count(day), min(day), max(day), avg(epoch(day)) from {t}",
    "select count(sick), min(sick), max(sick), avg(sick::int) from {t}",
    "select count(*), max(n) from (select person, count(*) n from {t} group by person)",
)


def people(path: Path, rows: int) -> None:
    """Rows of several people each; some keys are misspelt, some values are missing or out of bounds."""
    rng = np.random.default_rng(1)
    writer = None
    for start in range(0, rows, PIECE):
        n = min(PIECE, rows - start)
        day = np.datetime64("2020-01-01") + rng.integers(0, 1500, n).astype("timedelta64[D]")
        table = pa.table(
            {
                "person": rng.integers(0, PEOPLE * rows // ROWS, n),
                "state": np.array([*STATES, "State 07"])[rng.integers(0, 51, n)],
                "age": rng.integers(0, 100, n).astype(np.int32),
                "income": pa.array(rng.lognormal(10.5, 0.8, n), mask=rng.random(n) < 0.02),
                "day": day.astype("datetime64[D]"),
                "sick": rng.random(n) < 0.1,
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def least(action: Any) -> float:
    """Processor seconds of all threads."""
    took = []
    for _ in range(TIMES):
        begun = time.process_time()
        action()
        took.append(time.process_time() - begun)
    return min(took)


def main() -> list[dict[str, Any]]:
    """The rows of the table of results."""
    rows = int(os.environ.get("TACIT_BENCH_ROWS", ROWS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        people(path, rows)
        connection = duckdb.connect(config={"memory_limit": "1GB", "temp_directory": folder})

        def by_hand() -> None:
            for query in PASSES:
                connection.execute(query.format(t=f"'{path}'")).fetchall()

        def ours(plan: bool) -> None:
            unit, budget = tacit.people("person", at_most=5), tacit.Pure(epsilon=1.0)
            with tacit.Curator(
                path, protect=unit, schema=SCHEMA, budget=budget, ledger=Path(folder) / "t.ledger"
            ) as survey:
                asked = survey.preview(tacit.count(by="state", of="people"), epsilon=0.5) if plan else None
                tacit.inspect(survey, asked)

        hand = least(by_hand)
        took = {"columns, and rows a person": least(lambda: ours(False))}
        took["columns, rows a person, and people in 50 cells"] = least(lambda: ours(True))
    return [
        {
            "measure": f"inspect of {rows:,} rows: {what}", "ours": f"{seconds:.2f} s",
            "peer": "DuckDB, a pass a column",
            "theirs": f"{hand:.2f} s", "ratio": hand / seconds, "target": 0.333,
        }
        for what, seconds in took.items()
    ]  # fmt: skip
