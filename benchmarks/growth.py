"""How fast work grows: exponents of processor time in releases, charges, rows, keys, categories, columns and holders.

    python benchmarks/growth.py            # all lines; exit status 1 if one grows faster than its limit
    python benchmarks/growth.py verify     # lines whose name has this word

A line runs one command at sizes over two decades (holders: a factor of four apart). The fixed cost, that of size 1, is
taken off, and the exponent is the slope of the logarithms of what is left, by least squares. No exponent may be above
1.15, unless `ALLOWED` names a larger limit and says why. Times are processor times of this process; each is the
smallest of RUNS.
"""

from __future__ import annotations

import io
import math
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tacit.cli import main as tacit

LIMIT = 1.15
RUNS = 2
ALLOWED: dict[str, tuple[float, str]] = {
    "aggregator, in holders": (
        2.1,
        "up to 200 holders all share masks with all, n^2 sealed shares; a ring would cost a delta",
    ),
}
PLAN = """
[data]
path = "table.parquet"
[protect]
unit = "rows"
[ledger]
path = "table.ledger"
[budget]
epsilon = 1000.0
delta = 1e-6
[schema.key]
kind = "integer"
low = 0
high = {keys}
[schema.age]
kind = "integer"
low = 0
high = 100
"""
_HOME = tempfile.TemporaryDirectory()


def folder(
    *,
    releases: int = 1,
    rows: int = 1_000,
    keys: int = 4,
    columns: int = 0,
    categories: int = 0,
    people: bool = False,
) -> Path:
    """A table and a plan in a folder of their own; of people, each has five rows, and four count."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = Path(tempfile.mkdtemp(dir=_HOME.name))
    rng = np.random.default_rng(1)
    table = {"key": rng.integers(0, keys + 1, rows), "age": rng.integers(0, 100, rows)}
    declared = PLAN.format(keys=keys)
    if people:
        table["who"] = rng.integers(0, max(rows // 5, 1), rows)
        declared = declared.replace('unit = "rows"', 'unit = "people"\ncolumn = "who"\nat_most = 4')
    if categories:
        words = [f"w{i:07d}" for i in range(categories)]
        table["word"] = np.array(words)[rng.integers(0, categories, rows)]
        declared += f'[schema.word]\nkind = "category"\nkeys = {words}\n'
    for i in range(columns):
        table[f"c{i}"] = table["age"]
        declared += f'[schema.c{i}]\nkind = "integer"\nlow = 0\nhigh = 100\n'
    pq.write_table(pa.table(table), place / "table.parquet")
    asked = "".join(
        f'[[release]]\nname = "r{i}"\nkind = "count"\nby = "{"word" if categories else "key"}"\n'
        f'where = "age > {i % 97}"\nepsilon = 0.01\n'
        for i in range(releases)
    )
    (place / "plan.toml").write_text(declared + asked)
    return place


def run(*words: str) -> None:
    """A command of tacit, which must end well."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        code = tacit(list(words))
    if code:
        raise SystemExit(f"tacit {' '.join(words)} ended with {code}: {said.getvalue()}")


@cache
def published(releases: int) -> Path:
    """A folder with so many releases, published."""
    place = folder(releases=releases)
    run("release", str(place / "plan.toml"), "--out", str(place / "out"))
    return place


def release(place: Path) -> None:
    """A release with new noise, into a folder of its own."""
    key = str(time.monotonic_ns())
    run("release", str(place / "plan.toml"), "--out", str(place / key), "--key", key)


@cache
def charged(charges: int) -> str:
    """A ledger with so many charges."""
    from ledger import made

    return str(made(Path(tempfile.mkdtemp(dir=_HOME.name)) / "long.ledger", charges))


def holders(count: int) -> Callable[[], None]:
    """What the aggregator does in a joint sum of so many holders, three tenths of whom leave: its own work alone."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from tacit.noise.source import default_source
    from tacit.parties import Aggregator, Holder, Session, Sizes
    from tacit.parties.masks import random_bytes

    sizes = Sizes(holders=count, fewest=max(3, count * 7 // 10), colluding=count // 10)
    keys = [Ed25519PrivateKey.from_private_bytes(random_bytes(default_source())) for _ in range(count)]
    session = Session(
        sizes=sizes, keys=tuple(k.public_key().public_bytes_raw() for k in keys), length=100, about=bytes(32),
        nonce=random_bytes(default_source()),
    )  # fmt: skip
    members = [
        Holder(session=session, index=i, key=k, contribute=lambda: np.ones(100, dtype=np.uint64))
        for i, k in enumerate(keys)
    ]
    total, waiting = Aggregator(session=session), {i: h.start() for i, h in enumerate(members)}
    said: list[list[bytes]] = []
    left = count // 10
    while True:
        first = {"shares": 0, "masked": left, "reveal": 2 * left}.get(total.stage)
        gone = set() if first is None else set(range(first, first + left))
        said.append([raw for i, raw in waiting.items() if i not in gone])
        for raw in said[-1]:
            total.handle(raw)
        sent = total.advance()
        if total.stage == "done":
            break
        waiting = {i: members[i].handle(raw) for i, raw in sent.items()}

    def again() -> None:
        aggregator = Aggregator(session=session)
        for raws in said:
            for raw in raws:
                aggregator.handle(raw)
            aggregator.advance()

    return again


Line = tuple[tuple[int, ...], Callable[[int], Any], Callable[[Any], Any]]


def lines() -> dict[str, Line]:
    """For each line its sizes, what is made for a size, and what is timed on it."""
    releases, charges = (40, 400, 4_000), (1_000, 10_000, 100_000)
    return {
        "plan, in releases": (
            releases,
            lambda n: folder(releases=n),
            lambda place: run("plan", str(place / "plan.toml")),
        ),
        "release, in releases": (releases, lambda n: folder(releases=n), release),
        "verify, in releases": (releases, published, lambda place: run("verify", str(place / "out"))),
        "verify --ledger, in releases": (
            releases,
            published,
            lambda place: run("verify", str(place / "out"), "--ledger", str(place / "table.ledger")),
        ),
        "ledger show, in charges": (charges, charged, lambda place: run("ledger", "show", place)),
        "ledger verify, in charges": (
            (300, 3_000, 30_000),
            charged,
            lambda place: run("ledger", "verify", place),
        ),
        "release, in rows": ((1_000_000, 10_000_000, 100_000_000), lambda n: folder(rows=n), release),
        "release, in people's rows": (
            (200_000, 2_000_000, 20_000_000),
            lambda n: folder(rows=n, people=True),
            release,
        ),
        "release, in keys": ((30_000, 300_000, 3_000_000), lambda n: folder(keys=n), release),
        "release, in categories": ((4_000, 40_000, 400_000), lambda n: folder(categories=n), release),
        "release, in columns": ((64, 640, 6_400), lambda n: folder(columns=n), release),
        "aggregator, in holders": ((12, 48, 192), lambda n: holders(max(n, 4)), lambda work: work()),
    }


def took(work: Callable[[Any], Any], place: Any) -> float:
    """The smallest processor time of a few runs."""
    found = []
    for _ in range(RUNS):
        start = time.process_time()
        work(place)
        found.append(time.process_time() - start)
    return min(found)


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """The slope of the logarithms, by least squares."""
    x, y = np.log(sizes), np.log(np.maximum(times, 1e-4))
    return float(np.polyfit(x, y, 1)[0])


def main(word: str = "") -> list[dict[str, Any]]:
    """One row a line; a ratio below 1 is a line that grows too fast."""
    release(folder())  # what is loaded and compiled once is no part of any line
    rows = []
    for name, (sizes, make, work) in lines().items():
        if word not in name:
            continue
        fixed = took(work, make(1))
        times = [took(work, make(n)) for n in sizes]
        # A fixed cost that is nearly all of it says nothing about growth.
        while len(times) > 2 and times[0] < 2 * fixed:
            sizes, times = sizes[1:], times[1:]
        found = exponent(sizes, [t - fixed for t in times])
        limit, why = ALLOWED.get(name, (LIMIT, ""))
        shown = ", ".join(f"{n:,}: {t:.2f} s" for n, t in zip(sizes, times, strict=True))
        reason = f"; up to {limit} is allowed: {why}" if why else ""
        row = {
            "measure": f"{name} (fixed {fixed:.2f} s; {shown}{reason})",
            "ours": f"n^{found:.2f}",
            "ratio": limit / max(found, 1e-3),
            "target": 1.0,
        }
        print(row["measure"], row["ours"], "" if found <= limit else "TOO FAST", sep="  ", flush=True)
        rows.append(row)
    return rows


if __name__ == "__main__":
    below = [row for row in main(*sys.argv[1:2]) if not math.isfinite(row["ratio"]) or row["ratio"] < 1]
    sys.exit(1 if below else 0)
