"""An office's year: monthly versions of one table under one ledger, beside hand-written SQL for the same numbers.

    python benchmarks/year.py --rows 20000000      # all of it: 12 months, 20 plans a month, 10^4 releases
    python benchmarks/year.py --rows 200000 --months 3 --plans 4 --releases 60
    python benchmarks/year.py --rows 400000 --months 2 --plans 2 --releases 24 --engine spark

Three analysts with shares ask in turn, each with a curator of their own, and an approver signs every charge. What is
published goes to a folder: for each release its table and its certificate. The year is killed twice (SIGKILL) and begun
again each time; `charged`, `recorded` and `published` below are counted from the ledger and the folder, against what
the year had acknowledged before it was killed. Then the same numbers are made by hand (`_year_table.py`), in as much
memory. Times are processor times of whole processes, with their starts; memory is the largest resident set.

The custodian has asked that bounded rows are kept beside the ledger, and removes those of a month at its end
(`--forget-rows`: nobody asked).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _year_table as year

BY_HAND = True
GIB = 2**30
PRICE = 0.01
"""Of each plan, as rho."""
CUSTODIAN, APPROVER = "office", "ada"
RELEASE_MS = 5.0
SLOWER = 1.3


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--plans", type=int, default=year.PLANS, help="a month")
    parser.add_argument("--releases", type=int, default=12 * year.PLANS * year.RELEASES, help="in all")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb")
    parser.add_argument("--master", default="local-cluster[2,1,1024]", help="of Spark")
    parser.add_argument("--memory", default="2GB", help="the engine's limit, by tacit and by hand")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--forget-rows", action="store_true", help="bounded rows are kept by nobody")
    parser.add_argument("--spread", type=int, default=5, help="rows of a person and month, on average")
    parser.add_argument("--at-most", type=int, default=year.AT_MOST, help="rows of a person and month")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where everything lies; else a temporary folder"
    )
    parser.add_argument("--part", choices=["ours", "by-hand"], default=None, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def each_plan(said: argparse.Namespace) -> int:
    """The releases of a plan."""
    return max(1, min(year.RELEASES, round(said.releases / (said.months * said.plans))))


def asked(said: argparse.Namespace) -> list[tuple[int, int]]:
    """All plans, as (month, place)."""
    return [(m, p) for m in range(1, said.months + 1) for p in range(said.plans)]


# --- the year --------------------------------------------------------------------------------------------


def ours(said: argparse.Namespace, folder: Path) -> None:
    """What is left of the year; it may have been killed before, anywhere."""
    import tacit
    from tacit.curator.certificate import SigningKey
    from tacit.ledger import keep_rows, remove_rows

    if said.engine == "spark":
        from pyspark.sql import SparkSession

        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.log.level": "OFF",
        }
        builder = SparkSession.builder.master(said.master).config("spark.driver.memory", "1g")
        for name, value in settings.items():
            builder = builder.config(name, value)
        builder.getOrCreate()
    budget = tacit.Concentrated(rho=PRICE * said.months * said.plans * 2)
    ledger = the_ledger(said, folder, budget)
    if said.engine == "duckdb" and not said.forget_rows:
        keep_rows(ledger, by=CUSTODIAN)
    key, done = SigningKey.read(folder / "ada.key"), acknowledged(folder)
    begun_again = len(ledger.charges()) > len(done) or bool(ledger.requests())
    with (folder / "done").open("a") as acks:
        for month in range(1, said.months + 1):
            if all((month, place) in done for place in range(said.plans)):
                continue
            version, files = year.month_name(month), [str(p) for p in year.files(folder / "data", month)]
            curators = [
                tacit.Curator(
                    tacit.files(files), protect=tacit.people("person", at_most=said.at_most), schema=year.SCHEMA,
                    budget=budget, ledger=ledger, table="visits", version=version, analyst=who, memory=said.memory,
                    engine=said.engine,
                )
                for who in year.ANALYSTS
            ]  # fmt: skip
            for place in range(said.plans):
                if (month, place) in done:
                    continue
                curator = curators[place % len(curators)]
                plan = curator.preview(year.plan(year.THEMES[place], each_plan(said)), rho=PRICE)
                # Killed after it was recorded and before it was published, a plan is free.
                if not (begun_again and curator.fit(plan).recorded):
                    number = curator.request(plan)
                    if not ledger.requests()[number].approved:
                        ledger.approve(number, by=APPROVER, key=key)
                begun_again = False
                releases = curator.release(plan)
                publish(folder / "out" / version / f"plan-{place:02d}", releases)
                acks.write(f"{month} {place} {releases[0].certificate['ledger']['answer']}\n")
                acks.flush()
                os.fsync(acks.fileno())
            for curator in curators:
                curator.close()
            if said.engine == "duckdb" and not said.forget_rows:
                remove_rows(ledger, version=version, by=CUSTODIAN)
    ledger.close()


def the_ledger(said: argparse.Namespace, folder: Path, budget: Any) -> Any:
    """The ledger, with its people, shares and rules: made whole, or not at all."""
    import tacit
    from tacit.curator.certificate import SigningKey, make_key
    from tacit.ledger import Ledger

    path = folder / "visits.ledger"
    if path.exists():
        return Ledger.open(path)
    draft = folder / "draft" / "visits.ledger"
    draft.parent.mkdir()
    make_key(folder / "ada.key")
    whole = tacit.Guarantee(bound=budget, unit=tacit.people("person", at_most=said.at_most))
    share = tacit.Concentrated(rho=budget.rho / 2)
    with Ledger.create(
        draft, budget=whole, table="visits", shares=dict.fromkeys(year.ANALYSTS, share)
    ) as made:
        made.enrol(CUSTODIAN, ["custodian"])
        for who in year.ANALYSTS:
            made.enrol(who, ["analyst"], by=CUSTODIAN)
        made.enrol(APPROVER, ["approver"], key=SigningKey.read(folder / "ada.key").public.text, by=CUSTODIAN)
        made.demand(True, by=CUSTODIAN)
    for one in sorted(draft.parent.iterdir()):
        one.rename(folder / one.name)
    return Ledger.open(path)


def publish(out: Path, releases: Any) -> None:
    """The tables and certificates of a plan."""
    out.mkdir(parents=True, exist_ok=True)
    for release in releases:
        (out / f"{release.name}.csv").write_text(release.to_csv())
        (out / f"{release.name}.json").write_text(release.to_json())


def acknowledged(folder: Path) -> dict[tuple[int, int], str]:
    """The plans whose answers were handed out, with the digests of the answers."""
    path = folder / "done"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return {(int(m), int(p)): digest for m, p, digest in lines}


# --- running and counting --------------------------------------------------------------------------------


def run(said: argparse.Namespace, part: str, folder: Path, stop: Callable[[], bool]) -> dict[str, float]:
    """A part in a process of its own, killed when `stop` says so; its processor time, clock and memory."""
    words = [sys.executable, __file__, "--part", part, "--folder", str(folder)]
    for name in ("rows", "months", "plans", "releases", "engine", "master", "memory", "spread", "at_most"):
        words += [f"--{name.replace('_', '-')}", str(getattr(said, name))]
    words += ["--forget-rows"] if said.forget_rows else []
    begun = time.monotonic()
    child = subprocess.Popen(words)
    killed = False
    while True:
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if not killed and stop():
            child.send_signal(signal.SIGKILL)
            killed = True
        time.sleep(0.02)
    child.returncode = os.waitstatus_to_exitcode(status)
    if not killed and child.returncode:
        raise SystemExit(f"{part} ended with {child.returncode}")
    return {
        "processor": used.ru_utime + used.ru_stime, "clock": time.monotonic() - begun,
        "memory": used.ru_maxrss * 1024 / GIB, "killed": float(killed),
    }  # fmt: skip


def measured(said: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Everything, from the table to the last look at the ledger."""
    begun = time.monotonic()
    if not (folder / "data").exists():
        year.make(folder / "data", said.rows, said.months, spread=said.spread)
    made, plans = time.monotonic() - begun, len(asked(said))
    runs, acknowledged_at_kill = [], []
    for number in range(said.kills + 1):
        last = plans * (number + 1) // (said.kills + 1)
        stop = (lambda: False) if number == said.kills else middle_of_a_plan(folder, last)
        runs.append(run(said, "ours", folder, stop))
        acknowledged_at_kill.append(acknowledged(folder))
    hand = run(said, "by-hand", folder, lambda: False) if said.engine == "duckdb" else None
    found: dict[str, Any] = {
        "rows": said.rows, "months": said.months, "plans": plans, "releases": plans * each_plan(said),
        "engine": said.engine, "rows_kept": not said.forget_rows, "making_the_table_s": round(made, 1), "ours": runs,
        "by_hand": hand,
        **counted(said, folder, acknowledged_at_kill), "ledger": shown(folder),
    }  # fmt: skip
    if hand is not None:
        total = sum(r["processor"] for r in runs)
        allowed = SLOWER * hand["processor"] + RELEASE_MS / 1e3 * found["releases"]
        found |= {
            "cells_whose_interval_holds_the_number_by_hand": covered(said, folder),
            "processor_s": round(total, 1),
            "allowed_s": round(allowed, 1),
            "share": round(total / allowed, 3),
        }
    return found


def middle_of_a_plan(folder: Path, last: int) -> Callable[[], bool]:
    """Some .6 of what a plan takes after that many were acknowledged."""
    times: list[tuple[int, float]] = []

    def stop() -> bool:
        now = len(acknowledged(folder))
        if not times or now > times[-1][0]:
            times.append((now, time.monotonic()))
        took = times[-1][1] - times[-2][1] if len(times) > 2 else 0.1
        return now >= last and time.monotonic() - times[-1][1] > 0.6 * took

    return stop


def counted(
    said: argparse.Namespace, folder: Path, before: list[dict[tuple[int, int], str]]
) -> dict[str, Any]:
    """What the ledger says against what was published: what is lost, what is unpaid, what was paid for twice."""
    from tacit.exact.canonical import sha256
    from tacit.ledger import Ledger

    with Ledger.open(folder / "visits.ledger") as ledger:
        checked = ledger.verify()
        held = list(ledger.entries_with_answers())
        spent = float(ledger.spent().rho)  # type: ignore[attr-defined]
    reserved = {e.sequence for e, _ in held if e.kind == "reserve"}
    committed = {int(e.body["reserve"]): e.body["answer"]["sha256"] for e, _ in held if e.kind == "commit"}
    told = [json.loads(p.read_text()) for p in sorted((folder / "out").rglob("*.json"))]
    unpaid = [t for t in told if committed.get(t["ledger"]["sequence"]) != t["ledger"]["answer"]]
    values = [p.with_suffix(".csv") for p in sorted((folder / "out").rglob("*.json"))]
    wrong = [p for p, t in zip(values, told, strict=True) if sha256(p.read_bytes()) not in json.dumps(t)]
    lost = [d for told_then in before for d in told_then.values() if d not in set(committed.values())]
    expected = len(asked(said)) * each_plan(said)
    return {
        "verified": checked.ok, "charges": len(reserved), "answers": len(committed),
        "charges_without_answer": len(reserved) - len(committed), "published": len(told),
        "published_of": expected, "published_without_charge": len(unpaid), "values_that_differ": len(wrong),
        "acknowledged_and_lost": len(lost), "spent_rho": spent,
        "charged_rho": PRICE * len(reserved), "answered_once": len(set(committed.values())) == len(asked(said)),
    }  # fmt: skip


def covered(said: argparse.Namespace, folder: Path) -> float:
    """How many published cells hold the number made by hand: of a person both count rows of their own choice, so that
    it is what the intervals promise only where nobody has more rows than count (`--at-most 1000`).
    """
    by_hand, good, cells = json.loads((folder / "by-hand.json").read_text()), 0, 0
    for (month, place), found in zip(asked(said), by_hand, strict=True):
        for path in (folder / "out" / year.month_name(month) / f"plan-{place:02d}").glob("*.csv"):
            true = year.cells_by_hand(found, path.stem)
            for row in csv.DictReader(path.read_text().splitlines()):
                keys = tuple(v for k, v in row.items() if k not in ("value", "low", "high", "quality"))
                if keys in true:
                    good += float(row["low"]) <= true[keys] <= float(row["high"])
                    cells += 1
    return round(good / max(cells, 1), 4)


def shown(folder: Path) -> dict[str, float]:
    """`tacit ledger show` at the end, in a process of its own."""
    path = folder / "visits.ledger"
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    tell = "from tacit.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    subprocess.run(
        [sys.executable, "-c", tell, "ledger", "show", str(path)], check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "mb": round(path.stat().st_size / 1e6, 1), "clock": round(time.monotonic() - begun, 2),
        "processor": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
    }  # fmt: skip


def main(words: list[str] | None = None) -> dict[str, Any]:
    said = options(words)
    if said.part == "ours":
        ours(said, said.folder)
        return {}
    if said.part == "by-hand":
        with tempfile.TemporaryDirectory(dir=said.folder) as spill:
            found = year.by_hand(
                said.folder / "data", said.months, said.plans, memory=said.memory, spill=Path(spill)
            )
        (said.folder / "by-hand.json").write_text(json.dumps(found))
        return {}
    if said.folder is not None:
        said.folder.mkdir(parents=True, exist_ok=True)
        return measured(said, said.folder)
    with tempfile.TemporaryDirectory(prefix="tacit-year-") as folder:
        return measured(said, Path(folder))


if __name__ == "__main__":
    made = main()
    if made:
        print(json.dumps(made, indent=1))
