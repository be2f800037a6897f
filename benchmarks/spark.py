"""Aggregates over 2 million rows on Spark in local mode, beside plain Spark, in one run and in one session.

The file (user_id, 50 states, age, income, flag; 200,000 people) is made once, in a temporary folder. "Plain" is the
query without privacy; "by hand" keeps at most five rows of each person by a window over xxhash64 of the row. Both
sides collect their answer. A ratio is their time over ours, the best of runs that take turns; a target of 1.5 x is a
ratio of 0.667. The first release of people bounds and keeps the rows, later ones read what was kept.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import queries
from queries import KEY, SCHEMA, line

from tacit import statistics as ask
from tacit.guarantees import people, rows
from tacit.sources import open_table
from tacit.sources.spark import java_command, local_session

ROWS = int(os.environ.get("TACIT_BENCH_SPARK_ROWS", 2_000_000))
MEMORY = "3GB"


def main() -> list[dict[str, Any]]:
    """All measurements, or one line that says why there are none."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return [{"measure": "skipped: PySpark is not installed", "ours": ""}]
    if java_command() is None:
        return [{"measure": "skipped: there is no Java", "ours": ""}]
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        path = Path(folder) / "people.parquet"
        queries.ROWS, before = ROWS, queries.ROWS
        try:
            queries.make(path)
        finally:
            queries.ROWS = before
        return measure(path)


def race(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Best seconds of each; they take turns, and the first ones, before Java has compiled the query, never win."""
    best = [float("inf"), float("inf")]
    for turn in range(repeats):
        for which in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            (ours, theirs)[which]()
            best[which] = min(best[which], time.perf_counter() - start)
    return best[0], best[1]


def measure(path: Path) -> list[dict[str, Any]]:
    session = local_session(MEMORY)
    session.read.parquet(str(path)).createOrReplaceTempView("people")
    out = []

    def plain(query: str) -> Any:
        return session.sql(query).collect()

    asked = {
        "count by state": ("select state, count(*) from people group by state", ask.count(by="state"), 1.5),
        "sum of clamped income by state": (
            "select state, sum(least(greatest(income, 0), 100000)) from people group by state",
            ask.sum("income", by="state"), 0,
        ),
        "count by state and age": (
            "select state, age, count(*) from people group by state, age", ask.count(by=["state", "age"]), 0
        ),
    }  # fmt: skip
    with open_table(path, schema=SCHEMA, unit=rows(), engine="spark", memory=MEMORY) as table:
        for name, (query, statistic, target) in asked.items():
            question = statistic.on(SCHEMA, rows())
            ours, theirs = race(lambda q=question: ask.read(table, [q]), lambda q=query: plain(q), 20)
            out.append(line(f"{name}, rows", ours, "Spark, plain", theirs, target))
    return [*out, *by_people(path, plain)]


def by_people(path: Path, plain: Any) -> list[dict[str, Any]]:
    unit = people("user_id", at_most=5)
    question = ask.count(by="state").on(SCHEMA, unit)
    by_hand = """
        select state, count(*) from (
            select state, row_number() over (
                partition by user_id order by xxhash64(user_id, state, age, income, flag, 7)) as r
            from people) where r <= 5 group by state"""
    first: list[float] = []
    window: list[float] = []
    for turn in range(3):
        with open_table(path, schema=SCHEMA, unit=unit, engine="spark", memory=MEMORY) as table:
            runs = [
                (window, lambda: plain(by_hand)),
                (first, lambda t=table: ask.read(t, [question], key=KEY)),
            ]
            for kept, run in runs if turn % 2 else reversed(runs):
                start = time.perf_counter()
                run()
                kept.append(time.perf_counter() - start)
            if turn == 2:
                later, theirs = race(
                    lambda t=table: ask.read(t, [question], key=KEY),
                    lambda: plain("select state, count(*) from people group by state"),
                    12,
                )
    return [
        line(
            "count by state, people, first release", min(first),
            "Spark, bounded by hand", min(window), 0,
        ),
        line("count by state, people, later releases", later, "Spark, plain", theirs, 0),
    ]  # fmt: skip
