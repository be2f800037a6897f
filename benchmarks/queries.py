"""Aggregates over 20 million rows beside plain DuckDB, in one run and in one process.

The file (user_id, 50 states, age, income, flag; 2 million people) is made once, in a temporary folder. "Plain" is
the query without privacy, on the same connection; "by hand" is the best query found that keeps at most five rows
of each person (DuckDB's rewriting of its rank filter is switched off for it, since that makes it many times
slower). A ratio is their time over ours, medians of runs that take turns; a target of 1.3 x is a ratio of 0.77.
TACIT_BENCH_ROWS makes it smaller.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit import statistics as ask
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, flag, integer, number, open_table

ROWS = int(os.environ.get("TACIT_BENCH_ROWS", 20_000_000))
STATES = [
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS", "KY", "LA", "ME",
    "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC", "ND", "OH", "OK", "OR", "PA",
    "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV", "WI", "WY",
]  # fmt: skip
SCHEMA = Schema({
    "state": category(STATES), "age": integer(0, 120), "income": number(0, 100_000), "flag": flag(),
})  # fmt: skip
KEY = b"a key that only the benchmark has"


def make(path: Path) -> None:
    """Twenty million rows of invented people."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": False})
    persons = max(ROWS // 10, 1)
    connection.execute(f"""
        copy (select cast(hash(i) % {persons} as bigint) as user_id,
                     {STATES!r}[1 + cast(hash(i + 7000000000) % 50 as int)] as state,
                     cast(hash(i + 1) % 95 as int) as age,
                     exp(8.6 + 1.8 * (hash(i * 3 + 1) % 1000000 + hash(i * 5 + 2) % 1000000) / 1e6) as income,
                     hash(i * 11 + 3) % 3 = 0 as flag
              from range({ROWS}) as r(i)) to '{path}' (format parquet)""")


def race(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median seconds of each; they take turns, so that load hits both alike."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for run, kept in ((theirs, times[1]), (ours, times[0])):
            start = time.perf_counter()
            run()
            if turn or repeats == 0:
                kept.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def line(measure: str, ours: float, peer: str, theirs: float, times_slower: float) -> dict[str, Any]:
    return {
        "measure": measure, "ours": f"{ours * 1e3:,.0f} ms", "peer": peer, "theirs": f"{theirs * 1e3:,.0f} ms",
        "ratio": theirs / ours, "target": round(1 / times_slower, 3) if times_slower else 0.0,
    }  # fmt: skip


def main() -> list[dict[str, Any]]:
    """All measurements, on one file."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        path = Path(os.environ.get("TACIT_BENCH_FILE", f"{folder}/people.parquet"))
        if not path.exists():
            make(path)
        return measure(path)


def measure(path: Path) -> list[dict[str, Any]]:
    out = []
    with open_table(path, schema=SCHEMA, unit=rows()) as table:
        connection = table.relation.get_backend().con
        plain = {
            "count by state": (f"select state, count(*) from '{path}' group by state", ask.count(by="state"), 1.3),
            "sum of clamped income by state": (
                f"select state, sum(least(greatest(income, 0), 100000)) from '{path}' group by state",
                ask.sum("income", by="state"), 1.5,
            ),
            "mean of clamped income by state": (
                f"select state, avg(least(greatest(income, 0), 100000)) from '{path}' group by state",
                ask.mean("income", by="state"), 0,
            ),
            "count by state and age": (
                f"select state, age, count(*) from '{path}' group by state, age", ask.count(by=["state", "age"]), 0
            ),
            "three quantiles of income": (
                f"select quantile_cont(income, [0.25, 0.5, 0.75]) from '{path}'", ask.quantiles("income"), 0
            ),
        }  # fmt: skip
        for name, (query, statistic, target) in plain.items():
            question = statistic.on(SCHEMA, rows())
            ours, theirs = race(
                lambda question=question: ask.read(table, [question]),
                lambda query=query: connection.sql(query).fetchall(),
                5 if "quantiles" not in name else 2,
            )
            out.append(line(f"{name}, rows", ours, "DuckDB, plain", theirs, target))
        several = [s.on(SCHEMA, rows()) for _, s, _ in list(plain.values())[:3]]
        ours, theirs = race(
            lambda: ask.read(table, several),
            lambda: [connection.sql(q).fetchall() for q, _, _ in list(plain.values())[:3]],
            3,
        )
        out.append(line("the first three at once, rows", ours, "DuckDB, one by one", theirs, 0))
    out.append(quantiles())
    out.extend(by_people(path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    out.append({"measure": "peak memory of all of it", "ours": f"{peak:.2f} GiB", "peer": "limit", "theirs": "1.50 GiB",
                "ratio": 1.5 / peak, "target": 1.0})  # fmt: skip
    return out


def quantiles() -> dict[str, Any]:
    """Three quantiles of ten million numbers in memory, beside numpy's exact ones."""
    import numpy as np
    import pyarrow as pa

    values = np.random.default_rng(1).lognormal(10.0, 1.0, ROWS // 2)
    question = ask.quantiles("income").on(SCHEMA, rows())
    with open_table(pa.table({"income": values}), schema={"income": SCHEMA["income"]}, unit=rows()) as table:
        ours, theirs = race(
            lambda: question.assemble(ask.read(table, [question])[0]),
            lambda: np.quantile(values, [0.25, 0.5, 0.75]),
            7,
        )
    return line("three quantiles of 10^7 numbers in memory", ours, "numpy.quantile", theirs, 3.0)


def by_people(path: Path) -> list[dict[str, Any]]:
    """The first release bounds and keeps the rows; later ones read what was kept."""
    unit = people("user_id", at_most=5)
    question = ask.count(by="state").on(SCHEMA, unit)
    by_hand = f"""
        select state, count(*) from (
            select state, row_number() over (
                partition by user_id order by hash(user_id, state, age, income, flag, 7)) as r
            from '{path}') where r <= 5 group by state"""

    def hand(connection: Any) -> None:
        connection.execute("set disabled_optimizers = 'top_n_window_elimination'")
        connection.sql(by_hand).fetchall()
        connection.execute("set disabled_optimizers = ''")

    first: list[float] = []
    window: list[float] = []
    for turn in range(3):
        with open_table(path, schema=SCHEMA, unit=unit) as table:
            connection = table.relation.get_backend().con
            runs = [
                (window, lambda c=connection: hand(c)),
                (first, lambda t=table: ask.read(t, [question], key=KEY)),
            ]
            for kept, run in runs if turn % 2 else reversed(runs):
                start = time.perf_counter()
                run()
                kept.append(time.perf_counter() - start)
            if turn == 2:
                later, plain = race(
                    lambda t=table: ask.read(t, [question], key=KEY),
                    lambda c=connection: c.sql(
                        f"select state, count(*) from '{path}' group by state"
                    ).fetchall(),
                    5,
                )
    return [
        line(
            "count by state, people, first release", statistics.median(first),
            "DuckDB, bounded by hand", statistics.median(window), 1.15,
        ),
        line("count by state, people, later releases", later, "DuckDB, plain", plain, 1.5),
    ]  # fmt: skip
