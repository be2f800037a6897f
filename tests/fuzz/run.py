"""Runs the fuzzer: `python tests/fuzz/run.py --seconds 60 --seed 1`, or until a number of runs is reached.

A run is one pair of neighbours and one statistic. A batch of cases follows from (seed, batch) alone, so that a finding
is repeated by `--seed S --batch B`. With `--sequences N` it runs sequences in time instead (`in_time.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import forms, plans, stores
from fuzz.cases import Case, Setting, draw_case, folder, run_case, smaller
from fuzz.in_time import TimeReport, fuzz_in_time, summary_in_time
from fuzz.oracles import Finding

MUTATED = 20
MEMORY = 10 << 30
PAIRS = 10
"""Pairs a world: its questions, their noise and many SQL texts are made once."""


@dataclass
class Report:
    """Counts, and the first case of every kind of finding."""

    runs: int = 0
    pairs: int = 0
    unmade: int = 0
    files: int = 0
    started: float = field(default_factory=time.monotonic)
    kinds: Counter[str] = field(default_factory=Counter)
    oracles: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    found: dict[tuple[str, ...], list[tuple[float, int, Case, Finding]]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    @property
    def worked(self) -> float:
        """Seconds of a processor: others may be busy on the same machine."""
        return time.process_time()


class TooLong(BaseException):
    """A pair took longer than anybody would wait; not an `Exception`, so that nothing that is tried catches it."""


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Ends what takes more than so many seconds of a processor; 0: waits for ever."""

    def stop(*_: Any) -> None:
        raise TooLong

    kept = signal.signal(signal.SIGPROF, stop) if seconds else None
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if seconds:
            signal.signal(signal.SIGPROF, kept)


def label(case: Case, finding: Finding) -> tuple[str, ...]:
    """Findings of one kind are reported once: the oracle, the form, and what is said, without numbers."""
    told = finding.what.split(";")[0] if finding.oracle != "moved" else finding.what.split(" ")[0]
    return (finding.oracle, case.form, re.sub(r"[0-9]+", "#", told)[:70])


def batch(seed: int, number: int, report: Report, args: Any) -> None:
    """One world and its pairs."""
    rng = random.Random(f"{seed}/{number}")
    as_text = rng.choice(args.forms).startswith("csv")
    allowed = [f for f in args.forms if f.startswith("csv") == as_text]
    setting = Setting.draw(rng, as_text=as_text, most=args.most, without=args.without)
    if setting is None:
        return
    for pair in range(args.pairs):
        form = rng.choice(allowed)
        road = "long" if rng.random() < args.long else "short"
        case = draw_case(
            rng,
            setting,
            seed=rng.randrange(1 << 30),
            form=form,
            road=road,
            engine=None if form.startswith("spark") else args.engine_name,
        )
        try:
            with patience(args.patience):
                findings, seen = run_case(case)
        except TooLong:
            findings, seen = [Finding("time", f"more than {args.patience:.0f} s of a processor", 0)], None
        report.pairs += 1
        if seen is None:
            report.unmade += 1
        else:
            report.runs += len(case.asked)
            report.forms[form] += len(case.asked)
            report.kinds.update(a.statistic.kind for a in case.asked)
            report.outcomes["released" if seen[0].error is None else seen[0].error[0]] += 1
        for finding in findings:
            report.oracles[finding.oracle] += 1
            note(report, number, case, finding, args)
            kind = label(case, finding)
            if kind not in report.found:
                report.found[kind] = []
                if args.shrink:
                    case = smaller(case, finding, tries=args.shrink)
                tell(report, number, pair, case, finding, args)
            report.found[kind].append((report.worked, number, case, finding))


def note(report: Report, number: int, case: Case, finding: Finding, args: Any) -> None:
    """One line for every finding, in the file of the report."""
    if args.report:
        when = f"{report.worked:.1f}\t{report.seconds:.0f}\t{report.runs}\t{number}"
        names = " ".join(c.name for c in case.world.columns)
        odd = ", ".join(case.pair.odd)
        with Path(args.report).open("a") as file:
            file.write(f"={when}\t{finding.oracle}\t{case.form}\t{names}\t{odd}\t{finding.what[:200]!r}\n")


def tell(report: Report, number: int, pair: int, case: Case, finding: Finding, args: Any) -> None:
    """A reproducer."""
    lines = [
        f"--- {report.worked:.1f} s ({report.seconds:.0f} s by the clock), after {report.runs} runs: "
        f"{finding.oracle}: {finding.what}",
        f"    again: python tests/fuzz/run.py --seed {args.seed} --batch {number}   (pair {pair})",
        f"    {'; '.join(case.words)}",
        f"    unit: {case.world.unit!r}",
        f"    asked: {[a.name for a in case.asked]}",
        f"    schema: { {c.name: (c.stored, c.declared and c.declared.to_dict()) for c in case.world.columns} }",
        f"    {len(case.pair.base)} common rows {_short(case.pair.base)}",
        f"    left {_short(case.pair.left)}; right {_short(case.pair.right)}",
    ]
    text = "\n".join(lines)
    print(text if args.verbose else lines[0][:160], flush=True)
    if args.report:
        with Path(args.report).open("a") as file:
            file.write(text + "\n")


def _short(rows: Any) -> str:
    text = str([{k: (v[:40] if isinstance(v, bytes) else v) for k, v in r.items()} for r in rows[:6]])
    return text[:700]


def summary(report: Report) -> str:
    """What was run, and what was found."""
    rate = report.runs / max(report.worked, 1e-9)
    lines = [
        f"{report.runs} runs of a pair and a statistic ({report.pairs} pairs) in "
        f"{report.worked:.0f} s of a processor, {report.seconds:.0f} s by the clock: {rate:.0f} a second",
        "statistics: " + ", ".join(f"{k} {n}" for k, n in report.kinds.most_common()),
        "forms: " + ", ".join(f"{k} {n}" for k, n in report.forms.most_common()),
        "first tables: " + ", ".join(f"{k} {n}" for k, n in report.outcomes.most_common()),
        f"mutated plan files: {report.files}; pairs that could not be made in their form: {report.unmade}",
        "findings: " + (", ".join(f"{k} {n}" for k, n in report.oracles.most_common()) or "none"),
    ]
    for kind, cases in sorted(report.found.items(), key=lambda x: x[1][0][0]):
        when, number, case, _ = cases[0]
        lines.append(
            f"  {when:7.1f} s  {len(cases):5}x  batch {number}: {' | '.join(kind)} | {' '.join(case.pair.odd)[:80]}"
        )
    return "\n".join(lines)


def parsed(arguments: list[str] | None = None) -> Any:
    """What is asked of the runner."""
    parser = argparse.ArgumentParser(description="neighbours that must behave alike")
    parser.add_argument(
        "--seconds", type=float, default=None, help="60, without an end where --sequences is said"
    )
    parser.add_argument(
        "--sequences", type=int, default=0, help="so many sequences of versions in time, instead"
    )
    parser.add_argument("--reader", default="", help="sequences of these readers alone, with commas between")
    parser.add_argument("--runs", type=int, default=1 << 60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=None, help="only this one")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb")
    parser.add_argument("--forms", default="", help="only these, with commas between")
    parser.add_argument("--long", type=float, default=0.12, help="share of pairs with a curator and a ledger")
    parser.add_argument("--most", type=int, default=16, help="statistics a plan")
    parser.add_argument(
        "--plans", type=int, default=50, help="mutated plan files after so many batches; 0: none"
    )
    parser.add_argument("--pairs", type=int, default=0, help="pairs a world")
    parser.add_argument(
        "--patience", type=float, default=0, help="a pair that takes more seconds of a processor is a finding"
    )
    parser.add_argument("--shrink", type=int, default=0, help="tries to make each finding smaller")
    parser.add_argument("--report", default="", help="a file to which findings are written in full")
    parser.add_argument("--first", action="store_true", help="end with the first batch that finds something")
    parser.add_argument("--verbose", action="store_true", help="findings in full")
    args = parser.parse_args(arguments)
    spark = args.engine == "spark"
    args.seconds = (1e9 if args.sequences else 60) if args.seconds is None else args.seconds
    args.readers = tuple(args.reader.split(",")) if args.reader else stores.SPARK if spark else stores.READERS
    args.forms = tuple(args.forms.split(",")) if args.forms else forms.SPARK if spark else forms.FORMS
    # Spark takes no Arrow column of these.
    args.without = ("uint64", "float16", "duration", "time", "dictionary", "null") if spark else ()
    args.pairs = args.pairs or (2 if spark else PAIRS)
    args.verbose = args.verbose or args.batch is not None
    args.engine_name = "spark" if spark else None
    return args


def fuzz(args: Any) -> Report:
    """Batches until the time or the number of runs is used up."""
    report = Report()
    number = 0 if args.batch is None else args.batch
    while report.seconds < args.seconds and report.runs < args.runs:
        try:
            batch(args.seed, number, report, args)
        except Exception:
            print(f"batch {number} broke the fuzzer itself:\n{traceback.format_exc()}", flush=True)
            report.oracles["fuzzer"] += 1
        if args.batch is not None or (args.first and report.oracles):
            break
        if args.plans and number % args.plans == 0:
            plan_files(args.seed, number, report)
        number += 1
    return report


def plan_files(seed: int, number: int, report: Report) -> None:
    """Some mutated plan files."""
    with folder() as where:
        found = plans.mutated(where, seed=seed * 1_000_003 + number, count=MUTATED)
    report.files += MUTATED
    for text, finding in found:
        report.oracles["plan"] += 1
        print(f"--- plan file of batch {number}: {finding.what}\n{text}", flush=True)


def main() -> int:
    """Runs, tells, and fails if something was found."""
    args = parsed()
    if args.engine == "duckdb":
        # What asks for more is a finding, and must not take the machine with it.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    report: Report | TimeReport = fuzz_in_time(args) if args.sequences else fuzz(args)
    text = summary_in_time(report) if isinstance(report, TimeReport) else summary(report)
    print(text)
    if args.report:
        with Path(args.report).open("a") as file:
            file.write(text + "\n")
    return 1 if report.oracles else 0


if __name__ == "__main__":
    sys.exit(main())
