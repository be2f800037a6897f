"""Releases through the curator, certificate and ledger included, beside plain DuckDB and OpenDP's context.

The file is that of `queries`. Every release is a new request: checked, charged durably, read, noised, recorded,
certified. "Plain" is DuckDB's query without privacy. They take turns and medians are compared; a target of 1.3 x is
a ratio of 0.77. Fixed costs, on a file of 1,000 rows, are processor time of a warm process with all its threads, the
least of thirty, so that other work on the machine counts for little; "a new curator" makes a new ledger too. OpenDP's
are taken in the same way, the least of three (of one for the large file) after a first run that is not counted.
TACIT_BENCH_ROWS makes it smaller.
"""

from __future__ import annotations

import itertools
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from _peers import run_peer
from queries import KEY, ROWS, SCHEMA, STATES, line, make, race

import tacit
from tacit import statistics as ask
from tacit.sources import open_table

KEYS = itertools.count()
COUNT = "select state, count(*) from '{}' group by state"
SUM = "select state, sum(least(greatest(income, 0), 100000)) from '{}' group by state"


def curator(path: Path, folder: Path, protect: Any = None) -> tacit.Curator:
    return tacit.Curator(
        path, protect=protect or tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1e6),
        ledger=folder / f"{next(KEYS)}.ledger", another_ledger=True,
    )  # fmt: skip


def release(one: tacit.Curator, statistic: Any) -> Any:
    return one.release(statistic, epsilon=0.1, key=f"request {next(KEYS)}")


def opendp(path: Path, rows: int, repeats: int) -> dict[str, dict[str, Any]]:
    given = [str(path), str(rows), str(repeats)]
    return {
        r["what"]: r for r in run_peer("_opendp_context.py", *given, requirements="requirements-opendp.txt")
    }


def best(action: Callable[[], Any], repeats: int = 30) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def under(measure: str, ours: float, limit: float, peer: str = "limit") -> dict[str, Any]:
    return {
        "measure": measure, "ours": f"{ours * 1e3:,.1f} ms", "peer": peer, "theirs": f"{limit * 1e3:,.0f} ms",
        "ratio": limit / ours, "target": 1.0,
    }  # fmt: skip


def small(folder: Path) -> list[dict[str, Any]]:
    """Fixed costs, and five thousand groups."""
    path = folder / "small.parquet"
    duckdb.sql(f"""
        copy (select i % 400 as user_id, {STATES!r}[1 + i % 50] as state, cast(i % 95 as int) as age,
                     cast(20000 + i as double) as income, i % 3 = 0 as flag from range(1000) as r(i))
        to '{path}' (format parquet)""")
    peer = opendp(path, 1000, 3)
    name = f"OpenDP {peer['count']['version']}, context"
    kept = curator(path, folder)
    release(kept, ask.count(by="state"))
    out = []
    for what, statistic in {
        "count by state": ask.count(by="state"), "sum by state": ask.sum("income", by="state"),
        "mean by state": ask.mean("income", by="state"), "variance by state": ask.variance("income", by="state"),
    }.items():  # fmt: skip
        ours = best(lambda statistic=statistic: release(kept, statistic))
        out.append(under(f"{what}, 1,000 rows", ours, 0.060))
        if what.split()[0] in peer:
            theirs = peer[what.split()[0]]["processor"]
            out.append(line(f"{what}, 1,000 rows", ours, name, theirs, 0))
    fresh = best(lambda: release(curator(path, folder), ask.count(by="state")), 10)
    out.append(under("count by state, 1,000 rows, a new curator", fresh, 0.060))
    out.append(line("count by state, 1,000 rows, a new curator", fresh, name, peer["count"]["processor"], 0))
    groups = ask.count(by=["state", tacit.bins("age", list(range(101)))])
    question = groups.on(SCHEMA, tacit.rows())
    with open_table(path, schema=SCHEMA, unit=tacit.rows()) as table:
        query = best(lambda: ask.read(table, [question], key=KEY))
    whole = best(lambda: release(kept, groups))
    out.append(under(f"{question.cells:,} groups: all but the query", whole - query, 0.020))
    kept.close()
    return out


def large(path: Path, folder: Path) -> list[dict[str, Any]]:
    out, kept = [], curator(path, folder)
    release(kept, ask.count(by="state"))
    connection = engine(kept)
    peer = opendp(path, ROWS, 1)
    for what, statistic, query, target in (
        ("count", ask.count(by="state"), COUNT, 1.3), ("sum", ask.sum("income", by="state"), SUM, 1.5),
    ):  # fmt: skip
        ours, theirs = race(
            lambda statistic=statistic: release(kept, statistic),
            lambda query=query: connection.sql(query.format(path)).fetchall(),
            5,
        )
        name = {"count": "count by state, rows", "sum": "sum of clamped income by state, rows"}[what]
        out.append(line(name, ours, "DuckDB, plain", theirs, target))
        out.append(line(name, ours, f"OpenDP {peer[what]['version']}, context", peer[what]["seconds"], 0))
    kept.close()
    return [*out, *by_people(path, folder)]


def engine(one: tacit.Curator) -> Any:
    """The curator's own connection: a second engine in the process would have caches and a memory limit of its own."""
    return one._open().relation.get_backend().con


def by_people(path: Path, folder: Path) -> list[dict[str, Any]]:
    """The first release bounds and keeps the rows; later ones read what was kept."""
    by_hand = f"""
        select state, count(*) from (
            select state, row_number() over (
                partition by user_id order by hash(user_id, state, age, income, flag, 7)) as r
            from '{path}') where r <= 5 group by state"""
    times: dict[str, list[float]] = {"ours": [], "hand": []}

    def hand(connection: Any) -> None:
        connection.execute("set disabled_optimizers = 'top_n_window_elimination'")
        connection.sql(by_hand).fetchall()
        connection.execute("set disabled_optimizers = ''")

    for turn in range(2):
        one = curator(path, folder, tacit.people("user_id", at_most=5))
        connection = engine(one)
        runs = {
            "ours": lambda one=one: release(one, ask.count(by="state")),
            "hand": lambda connection=connection: hand(connection),
        }
        for name in sorted(runs, reverse=bool(turn)):
            start = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - start)
        if turn:
            later, plain = race(
                lambda one=one: release(one, ask.count(by="state")),
                lambda connection=connection: connection.sql(COUNT.format(path)).fetchall(),
                7,
            )
        one.close()
    first, window = (statistics.median(times[n]) for n in ("ours", "hand"))
    return [
        line("count by state, people, first release", first, "DuckDB, bounded by hand", window, 1.15),
        line("count by state, people, later releases", later, "DuckDB, plain", plain, 1.5),
    ]


def main() -> list[dict[str, Any]]:
    """All measurements, on one file."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name:
        folder = Path(name)
        out = small(folder)
        path = Path(os.environ.get("TACIT_BENCH_FILE", f"{folder}/people.parquet"))
        if not path.exists():
            make(path)
        out += large(path, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    out.append({"measure": "peak memory of all of it", "ours": f"{peak:.2f} GiB", "peer": "limit", "theirs": "1.50 GiB",
                "ratio": 1.5 / peak, "target": 1.0})  # fmt: skip
    return out
