"""A sparse histogram under random differential privacy: 10^7 rows in 10^5 cells, beside the group-by alone.

Plain DuckDB counts the rows of a Parquet file by cell, and fetches the counts. Ours is a whole release of all cells
through the curator, gamma = 0.05: checked, charged durably, read, noised, recorded; with the empty cells exact, and
with small cells exact. Beside them stand the curator's plain release, and the mechanism alone on the answer of the same
group-by. They take turns; the times are processor time of all threads, the least of a few, so that other work on the
machine counts for little. A target of 1.5 x is a ratio of 0.667. TACIT_BENCH_ROWS makes the file smaller. Random
differential privacy is weaker than differential privacy.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import tacit
from tacit.random_data import RandomHistogram

ROWS, CELLS, TIMES = int(os.environ.get("TACIT_BENCH_ROWS", 10**7)), 10**5, 7
KEYS = itertools.count()
UNIT = tacit.rows(neighbours="replace-one")
QUERY = "select cell, count(*) as n from '{}' group by cell"


def make(path: Path) -> None:
    duckdb.execute(f"""
        copy (
            select cast(floor(power((hash(i) % 1000003) / 1000003.0, 3) * {CELLS}) as integer) as cell
            from range({ROWS}) as r(i)
        ) to '{path}' (format parquet)
    """)


def turns(actions: list[Callable[[], Any]]) -> list[float]:
    """The least processor time of each, in turn, after a first run that is not counted."""
    times: list[list[float]] = [[] for _ in actions]
    for turn in range(TIMES + 1):
        for action, own in zip(actions, times, strict=True):
            begun = time.process_time()
            action()
            if turn:
                own.append(time.process_time() - begun)
    return [min(t) for t in times]


def line(what: str, ours: float, theirs: float, target: float = 0.667) -> dict[str, Any]:
    return {
        "measure": what,
        "ours": f"{ours * 1000:,.0f} ms",
        "peer": "DuckDB, group-by alone",
        "theirs": f"{theirs * 1000:,.0f} ms",
        "ratio": theirs / ours,
        "target": target,
    }


def main() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "rows.parquet")
        budget = tacit.Guarantee(
            bound=tacit.Pure(epsilon=1e6), unit=UNIT, condition=tacit.guarantees.RandomData(gamma=0.999)
        )
        given = {"random_data": 0.05, "rows": ROWS}
        schema = {"cell": tacit.integer(0, CELLS - 1)}
        connection = duckdb.connect()
        mechanism = RandomHistogram(rows=ROWS, cells=CELLS, epsilon=1, gamma=0.05, small_cells=True)

        def grouped() -> Any:
            return connection.execute(QUERY.format(folder / "rows.parquet")).fetchnumpy()

        def alone() -> Any:
            found = grouped()
            counts = np.zeros(CELLS, dtype=np.int64)
            counts[found["cell"]] = found["n"]
            return mechanism.release(counts)

        def released(words: Any) -> Callable[[], Any]:
            def action() -> Any:
                asked = tacit.count(by="cell")
                return survey.release(asked, epsilon=1, given=words, key=f"request {next(KEYS)}")

            # A second plan would be refused: each kind of release has a curator and a ledger of its own.
            survey = tacit.Curator(
                folder / "rows.parquet", protect=UNIT, schema=schema, budget=budget,
                ledger=folder / f"{next(KEYS)}.ledger", another_ledger=True,
            )  # fmt: skip
            return action

        actions = [grouped, released(given), released({**given, "small_cells": True}), released(None), alone]
        plain, empty, small, dp, mechanism_alone = turns(actions)
    what = "10^7 rows in 10^5 cells" if ROWS == 10**7 else f"{ROWS:,} rows in 10^5 cells"
    return [
        line(f"{what}, gamma = 0.05, through the curator, empty cells exact", empty, plain),
        line(f"{what}, gamma = 0.05, through the curator, small cells exact", small, plain),
        line("the same, differentially private", dp, plain, 0),
        line(f"{what}, gamma = 0.05, the mechanism alone", mechanism_alone, plain),
    ]
