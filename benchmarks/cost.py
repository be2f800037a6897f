"""What must not grow without need: many keys, wide trees, several tables at once, a hundred releases, long reports.

Every pair takes turns in one process; the times are processor time of all threads, the least of a few, so that other
work on the machine counts for little. "Plain" is DuckDB's query without privacy, fetched as an Arrow table, on the
same connection; ours is a whole release where it says so: charged, read, noised, recorded. A target of 2 x is a ratio
of 0.5. TACIT_BENCH_ROWS makes the large file smaller.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from queries import SCHEMA, STATES, make

import tacit
from tacit import statistics as ask
from tacit.report.building import report_of
from tacit.sources import Schema, category, integer, open_table

KEYS = 1_000_000
LEAVES = 100_000
NUMBERS = itertools.count()


def spent(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def race(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int = 3) -> tuple[float, float]:
    """The least processor time of each, in turns; the first turn is not counted."""
    times = [(spent(theirs), spent(ours)) for _ in range(repeats + 1)][1:]
    return min(t for _, t in times), min(t for t, _ in times)


def line(
    measure: str, ours: float, theirs: float, times_slower: float, peer: str = "DuckDB, plain"
) -> dict[str, Any]:
    return {
        "measure": measure, "ours": f"{ours * 1e3:,.0f} ms", "peer": peer, "theirs": f"{theirs * 1e3:,.0f} ms",
        "ratio": theirs / ours, "target": round(1 / times_slower, 3) if times_slower else 0.0,
    }  # fmt: skip


def under(measure: str, ours: float, limit: float) -> dict[str, Any]:
    return {
        "measure": measure, "ours": f"{ours * 1e3:,.1f} ms", "peer": "limit", "theirs": f"{limit * 1e3:,.0f} ms",
        "ratio": limit / ours, "target": 1.0,
    }  # fmt: skip


def curator(path: Path, folder: Path, schema: Schema) -> tacit.Curator:
    return tacit.Curator(
        path, protect=tacit.rows(), schema=schema, budget=tacit.Approximate(epsilon=1e6, delta=0.1),
        ledger=folder / f"{next(NUMBERS)}.ledger", another_ledger=True,
    )  # fmt: skip


def both(
    measure: str, path: Path, folder: Path, schema: Schema, asked: Sequence[Any], queries: Sequence[str],
    limit: float, **paid: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """The reading of the rows alone, and the whole release, beside the plain queries."""
    questions = [s.on(schema, tacit.rows()) for s in asked]
    with open_table(path, schema=schema, unit=tacit.rows()) as table, curator(path, folder, schema) as one:
        connection = table.relation.get_backend().con

        def plain() -> None:
            for query in queries:
                connection.sql(query.format(path)).to_arrow_table()

        read = race(lambda: ask.read(table, questions), plain)
        whole = race(
            lambda: one.release(list(asked), key=f"{next(NUMBERS)}", **(paid or {"epsilon": 1.0})), plain
        )
    return [line(f"{measure}: read", *read, limit), line(f"{measure}: released", *whole, 0)]


def keys(folder: Path) -> list[dict[str, Any]]:
    path = folder / "keys.parquet"
    duckdb.sql(f"""copy (select 'key' || (hash(i) % {KEYS}) as word, (hash(i + 7) % {KEYS})::bigint as number,
                                (hash(i + 9) % {LEAVES})::bigint as leaf from range({2 * KEYS}) r(i))
                   to '{path}' (format parquet)""")
    declared = Schema({"word": category([f"key{i}" for i in range(KEYS)])})
    numbers = Schema({"number": category(list(range(KEYS)))})
    count = "select {0}, count(*) from '{{}}' group by {0}"
    word, number_ = count.format("word"), count.format("number")
    out = both("10^6 declared words", path, folder, declared, [ask.count(by="word")], [word], 2)
    out += both("10^6 declared numbers", path, folder, numbers, [ask.count(by="number")], [number_], 2)
    unknown = Schema({"word": category()})
    out += both(
        "10^6 unknown words", path, folder, unknown, [ask.count(by="word")], [word], 2, epsilon=1, delta=1e-6
    )
    leaves = Schema({"leaf": category(list(range(LEAVES)))})
    parents = (
        {i: f"{i // 100}" for i in range(LEAVES)}
        | {f"{i}": "top" for i in range(LEAVES // 100)}
        | {"top": None}
    )
    tree = ask.hierarchy("leaf", parents=parents)
    levels = [
        "select count(*) from '{}'", "select leaf // 100, count(*) from '{}' group by all", count.format("leaf"),
    ]  # fmt: skip
    return out + both("a hierarchy of 10^5 leaves", path, folder, leaves, [tree], levels, 3)


def tables(path: Path, folder: Path) -> list[dict[str, Any]]:
    """Two margins, and a plan of twelve in which one grouping contains the others."""
    state, age = (f"select {c}, count(*) from '{{}}' group by {c}" for c in ("state", "age"))
    out = both(
        "margins of two columns", path, folder, SCHEMA, [ask.margins(["state", "age"])], [state, age], 1.5
    )
    by: list[Any] = [None, "state", "age", "flag", ["state", "flag"], ["age", "flag"], ["state", "age"]]
    twelve = [ask.count(by=b) for b in by]
    twelve += [
        ask.sum("income", by=b) for b in (None, "state", "age", ["state", "age"], ["state", "age", "flag"])
    ]
    clamp = "sum(least(greatest(income, 0), 100000))"
    once = f"select state, age, flag, count(*), {clamp} from '{{}}' group by all"
    out += both("a plan of 12, beside its finest grouping", path, folder, SCHEMA, twelve, [once], 0)
    return out


def small(folder: Path) -> list[dict[str, Any]]:
    """A hundred releases of one plan with their certificates, and one after the other."""
    path = folder / "small.parquet"
    duckdb.sql(f"""copy (select {STATES!r}[1 + i % 50] as state, cast(i % 95 as int) as age,
                                cast(20000 + i as double) as income, i % 3 = 0 as flag from range(1000) as r(i))
                   to '{path}' (format parquet)""")
    out = []
    with curator(path, folder, SCHEMA) as one:
        kinds = {
            "counts by state": ask.count(by="state"), "means by state": ask.mean("income", by="state"),
            "variances by state": ask.variance("income", by="state"), "quartiles": ask.quantiles("income"),
        }  # fmt: skip
        for name, statistic in kinds.items():
            asks = [tacit.query(statistic, name=f"release {i}") for i in range(100)]
            for paid in ({"epsilon": 10.0}, {"epsilon": 10.0, "delta": 1e-6}):

                def whole(asks: Any = asks, paid: Any = paid) -> list[Any]:
                    return [r.certificate for r in one.release(asks, key=f"{next(NUMBERS)}", **paid)]

                each = min(spent(whole) for _ in range(3)) / 100
                said = "pure" if len(paid) == 1 else "with a delta"
                out.append(under(f"100 {name} with certificates, {said}: each", each, 0.005))

        def single() -> Any:
            return one.release(
                ask.count(by="state"), key=f"{next(NUMBERS)}", epsilon=1.0, delta=1e-6
            ).certificate

        one_by_one = min(spent(lambda: [single() for _ in range(20)]) for _ in range(5)) / 20
        out.append(under("single releases with certificates, each charged by itself", one_by_one, 0.005))
    return out


def report(folder: Path) -> list[dict[str, Any]]:
    """The page of a table of four million cells, and what it takes of memory beyond the release itself."""
    path = folder / "wide.parquet"
    duckdb.sql(f"""copy (select (hash(i) % 2000)::bigint as a, (hash(i + 9) % 2000)::bigint as b
                          from range(1000000) r(i)) to '{path}' (format parquet)""")
    schema = Schema({"a": integer(0, 1999), "b": integer(0, 1999)})
    with curator(path, folder, schema) as one:
        plan = one.preview(ask.count(by=["a", "b"]), epsilon=1.0)
        released = one.release(plan)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        taken = spent(lambda: report_of(plan, released, budget=one.budget, title="wide"))
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    out = [under("report of 4 million cells", taken, 2.0)]
    out.append({"measure": "memory that it takes beyond the release", "ours": f"{more:,.0f} MiB", "peer": "limit",
                "theirs": "300 MiB", "ratio": 300 / max(more, 1), "target": 1.0})  # fmt: skip
    return out


def threads() -> list[dict[str, Any]]:
    """`optimal count --n 1000` as it is, beside one whose linear algebra may use one thread alone."""
    command = [
        sys.executable,
        "-c",
        "from tacit.cli import main; main(['optimal', 'count', '--n', '1000', '--epsilon', '1'])",
    ]

    def run(**more: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **more})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    times = [(run(), run(OPENBLAS_NUM_THREADS="1")) for _ in range(4)]
    ours, theirs = (min(t[i] for t in times) for i in (0, 1))
    return [line("optimal count --n 1000", ours, theirs, 1.5, "the same, with one thread from the start")]


def main() -> list[dict[str, Any]]:
    """All measurements."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name:
        folder = Path(name)
        out = [*small(folder), *report(folder), *keys(folder), *threads()]
        path = Path(os.environ.get("TACIT_BENCH_FILE", f"{folder}/people.parquet"))
        if not path.exists():
            make(path)
        return [*out, *tables(path, folder)]
