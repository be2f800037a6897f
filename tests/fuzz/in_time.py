"""A sequence, run for both neighbours and compared: what must hold for one table must hold for its versions.

all that holds of one table (`oracles`), for every release of every version
certificates   the same in every field that carries no noise
replayed       an answer comes from the record only for the same question about the same files and version
charged twice  and then it always does
storage        versions that differ in how they are stored have the same integers
versions       versions in which only the unit differs have integers within the claim of one unit
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tacit
from fuzz import stores
from fuzz.cases import folder
from fuzz.oracles import Finding, compared, equal, moved
from fuzz.quick import sped_up
from fuzz.sequences import (
    HOSTILE,
    STORAGE,
    History,
    Setting,
    Step,
    draw_sequence,
    draw_setting,
    same_rows,
    shrunk,
)
from fuzz.stores import CannotHold, Row
from fuzz.trials import BUDGET, KEY, Asked, Counting, Seen, kept, signature, truth_of, watched
from tacit.curator import curator as curator_room
from tacit.guarantees import GroupOf, Guarantee, Neighbours, RandomData
from tacit.statistics import read_cells

NOISY = ("made", "digest", "values", "ledger", "function", "random_data")
"""Parts of a certificate that carry noise, a time, or the number of a ledger that was drawn."""


@dataclass(slots=True)
class Told:
    """One release of one version: what was seen, which questions were read, whether it came from the record."""

    step: int
    named: bool
    seen: Seen
    questions: list[Any] = field(default_factory=list)
    replayed: bool | None = None


def run_sequence(sequence: History, where: Path) -> list[Finding]:
    """What it finds; raises CannotHold where the rows have no place in their files."""
    return run_both(sequence, where)[0]


def run_both(sequence: History, where: Path) -> tuple[list[Finding], list[Told]]:
    """What it finds, and what the first neighbour showed."""
    spark = any(s.engine == "spark" or s.store.reader == "spark frame" for s in sequence.steps)
    if spark:
        from support.spark import session

        session()
    sides = []
    for side in ("left", "right"):
        speed = contextlib.nullcontext() if spark else sped_up(apart=True)
        with speed:
            sides.append(_side(sequence, side, where / side))
        _hide(sides[-1], where / side)
    return found_in(sequence, *sides), sides[0]


# --- one side ------------------------------------------------------------------------------------------------
def _side(sequence: History, side: str, where: Path) -> list[Told]:
    """All releases of all versions of one neighbour."""
    where.mkdir(parents=True)
    out: list[Told] = []
    caught: list[Any] = []

    def reading(table: Any, questions: Any, **more: Any) -> Any:
        # Each ledger draws its own secret; neighbours are compared under one.
        cells = read_cells(table, questions, **{**more, "key": KEY})
        # A copy, since a statistic of rows lets go of them once it has its integers.
        caught.append([(q, truth_of(q, c)) for q, c in zip(questions, kept(cells), strict=True)])
        return cells

    honest, curator_room.read_cells = curator_room.read_cells, reading  # type: ignore[assignment]
    held: Any = None
    quicker = _without_digest() if sequence.seed % 4 else contextlib.nullcontext()
    quicker.__enter__()
    before: Step | None = None
    try:
        for i, step in enumerate(sequence.steps):
            rows = stores.arranged(step.store, step.base, getattr(step, side), step.place)
            folder = _changed(sequence, step, before, rows, where, i)
            before = step
            opening = Seen()
            if step.fresh:
                if held is not None:
                    held.close()
                held = None
                with watched(opening):
                    data = stores.handed(step.store, sequence.setting.columns, rows, folder)
                    held = _curator(sequence, step, data, where, i)
                if opening.raw.startswith("CannotHold"):
                    raise CannotHold
            if held is None:
                out.append(Told(step=i, named=True, seen=opening))
                continue
            # The question itself first: from the record it needs no table.
            for named in [False] * step.again + [True] * step.named:
                del caught[:]
                out.append(_asked(sequence, held, i, named, caught, where))
    finally:
        quicker.__exit__(None, None, None)
        curator_room.read_cells = honest
        if held is not None:
            held.close()
    return out


@contextlib.contextmanager
def _without_digest() -> Iterator[None]:
    """The digest of all rows, which is for the custodian alone, takes as long as the answer: left out mostly."""
    kept = getattr(curator_room, "_digest", None)
    if kept is not None:
        curator_room._digest = lambda *_: "left out"
    try:
        yield
    finally:
        if kept is not None:
            curator_room._digest = kept


def _curator(sequence: History, step: Step, data: Any, where: Path, number: int) -> Any:
    setting = sequence.setting
    options: dict[str, Any] = {"engine": step.engine} if step.engine else {}
    if sequence.portable:
        options["portable"] = True
    random_data = any(a.given is not None for a in sequence.asked)
    budget = (
        Guarantee(bound=BUDGET, unit=setting.unit, condition=RandomData(gamma=0.9)) if random_data else BUDGET
    )
    return tacit.Curator(
        data, protect=setting.unit, schema=setting.schema, budget=budget,
        source=Counting(sequence.seed + number), ledger=where / "the.ledger", version=step.label, **options,
    )  # fmt: skip


def _asked(sequence: History, held: Any, number: int, named: bool, caught: list[Any], where: Path) -> Told:
    told = Told(step=number, named=named, seen=Seen())
    seen, before = told.seen, held._source.drawn
    with watched(seen):
        released = held.release(list(sequence.asked), key=f"step {number}" if named else None)
        told.replayed = released[0].replayed
        for one in released:
            columns = {n: str(getattr(v, "dtype", type(v))) for n, v in one.columns.items()}
            certificate = {k: v for k, v in one.certificate.items() if k not in NOISY}
            text = one.to_csv().splitlines()
            seen.shapes += [
                (columns, one.replayed, one.publishable), signature(one.noisy), certificate,
                text[0] if one.noisy.keys is not None else (text[0], len(text)),
            ]  # fmt: skip
        seen.drawn = held._source.drawn - before
        seen.charges.append(str(held.spent))
    if caught:
        told.questions = [q for q, _ in caught[0]]
        seen.truth = [t for _, t in caught[0]]
    seen.files = sorted(str(p.relative_to(where)) for p in where.rglob("*"))
    return told


def _hide(told: Sequence[Told], where: Path) -> None:
    """Errors name files: here the two tables lie in two folders."""
    for one in told:
        if one.seen.error is not None:
            one.seen.error = (one.seen.error[0], one.seen.error[1].replace(str(where), "FOLDER"))
        one.seen.told = [t.replace(str(where), "FOLDER") for t in one.seen.told]


# --- files between two versions ------------------------------------------------------------------------------
def _changed(
    sequence: History, step: Step, before: Step | None, rows: list[Row], where: Path, number: int
) -> Path:
    """The files as they are in this version; the folder in which they lie."""
    store, columns = step.store, sequence.setting.columns
    folder = where / store.folder
    if before is not None and before.store.folder != store.folder and (where / before.store.folder).exists():
        (where / before.store.folder).rename(folder)
    folder.mkdir(exist_ok=True)
    if not store.kind:
        return folder
    made = where / f"made{number}"
    made.mkdir()
    stores.write(store, columns, rows, made, step.public)
    if before is not None and before.store.kind == store.kind:
        for name in set(before.store.names()) - set(store.names()):
            (folder / name).unlink(missing_ok=True)
    for path in sorted(made.iterdir()):
        # No two versions have one stamp, however fast they follow each other.
        os.utime(path, ns=(10**18 + number * 10**9, 10**18 + number * 10**9))
        _put(path, folder / path.name, linked=step.op == "link")
    paths = [folder / name for name in store.names()]
    match step.op:
        case "twin link" if len(paths) > 1:
            paths[1].unlink()
            (os.link if sequence.seed % 2 else os.symlink)(paths[0], paths[1])
        case "gone":
            # Of a pattern all files go: the files that are left would have other people's rows on either side.
            for path in paths if store.reader.endswith("pattern") else paths[-1:]:
                path.unlink()
        case "broken":
            paths[0].write_bytes(b"no file of any kind\n")
        case "public as private":
            other = folder / (store.other + stores.FILES[store.kind])
            other.unlink()
            other.symlink_to(paths[0])
    if step.op != "link":
        shutil.rmtree(made)
    return folder


def _put(made: Path, place: Path, *, linked: bool) -> None:
    if linked:
        place.unlink(missing_ok=True)
        place.symlink_to(made)
    else:
        os.replace(made, place)


# --- what must hold ------------------------------------------------------------------------------------------
def found_in(sequence: History, left: list[Told], right: list[Told]) -> list[Finding]:
    """Every promise that the sequence breaks."""
    found: list[Finding] = []
    if [(t.step, t.named) for t in left] != [(t.step, t.named) for t in right]:
        return [Finding("error", f"{[t.seen.error for t in left]} / {[t.seen.error for t in right]}"[:600])]
    for a, b in zip(left, right, strict=True):
        wanted = _wanted(a if a.questions else b)
        if wanted or a.seen.truth is None or b.seen.truth is None:
            found += [_at(f, a) for f in compared(wanted, a.seen, b.seen)]
    found += _replays(sequence, left) + _replays(sequence, right)
    return found + _over_time(sequence, left, right)


def _at(finding: Finding, told: Told) -> Finding:
    return Finding(finding.oracle, f"{finding.what} [step {told.step + 1}]", finding.question)


def _wanted(told: Told) -> list[Asked]:
    return [Asked(statistic=q.statistic, price=(), question=q, assignment=None) for q in told.questions]


def _replays(sequence: History, told: Sequence[Told]) -> list[Finding]:
    """The record answers the same question about the same declared files and version, always, and no other."""
    found: list[Finding] = []
    answered: dict[Any, Any] = {}
    for one in told:
        if one.seen.error is not None or one.replayed is None:
            continue
        step = sequence.steps[one.step]
        opened = next(s for s in reversed(sequence.steps[: one.step + 1]) if s.fresh)
        what = f"step {one.step + 1}, {opened.store.declared()} version {step.label}"
        if one.named:
            if one.replayed:
                found.append(Finding("replayed", f"a key of its own: {what}"))
            continue
        place = (opened.store.declared(), step.label)
        expected, words = place in answered, opened.store.said()
        if one.replayed and not expected:
            found.append(Finding("replayed", f"{what}; answered before: {list(answered)}"))
        if not one.replayed and expected and words in answered[place]:
            found.append(Finding("charged twice", what))
        answered.setdefault(place, []).append(words)
    return found


def _over_time(sequence: History, left: list[Told], right: list[Told]) -> list[Finding]:
    """Versions are tables too: whoever is the same in two of them has the same part in both."""
    states = [
        (sequence.steps[t.step], side, t) for side, told in (("left", left), ("right", right)) for t in told
    ]
    known = [(s, side, t) for s, side, t in states if t.seen.truth is not None and _certain(sequence, t.step)]
    found: list[Finding] = []
    for i, (one, mine, a) in enumerate(known):
        for other, theirs, b in known[i + 1 :]:
            if a.step == b.step or not same_rows(one, other):
                continue
            ours, others = getattr(one, mine), getattr(other, theirs)
            same = ours == others
            if "sas" in (one.store.kind, other.store.kind) and any(map(_blank, (*ours, *others))):
                continue  # blanks at the end of such a file are no record, elsewhere they are one
            if any(map(_no_text, (*ours, *others))) and one.store.kind != other.store.kind:
                continue  # bytes that are no text are missing in one format, and characters in another
            if not same and not _neighbours(sequence, ours, others):
                continue
            found += _between(a, b, same=same, what=f"step {a.step + 1} {mine} / step {b.step + 1} {theirs}")
            if found:
                return found[:1]
    return found


def _certain(sequence: History, number: int) -> bool:
    """Is it known what rows a release of this version reads? An open curator may have kept what it read before."""
    since = next(i for i in range(number, -1, -1) if sequence.steps[i].fresh)
    if any(s.op in HOSTILE for s in sequence.steps[since : number + 1]):
        return False
    return all(s.op in STORAGE for s in sequence.steps[since + 1 : number + 1])


def _neighbours(sequence: History, one: Any, other: Any) -> bool:
    """Is it one step from the one to the other, where nothing but the unit differs?"""
    unit = sequence.setting.unit
    if isinstance(unit, GroupOf):
        return False
    if unit.neighbours is Neighbours.REPLACE_ONE:
        return bool(one and other)
    return not one or not other


def _blank(row: Row) -> bool:
    return all(value is None for name, value in row.items() if name != stores.KEY)


def _no_text(row: Row) -> bool:
    return b"\xff\xfe" in row.values()


def _between(a: Told, b: Told, *, same: bool, what: str) -> list[Finding]:
    assert a.seen.truth is not None
    assert b.seen.truth is not None
    for place, question in enumerate(a.questions):
        mine, theirs = a.seen.truth[place], b.seen.truth[place]
        if same and not equal(mine, theirs):
            return [Finding("storage", f"{question.statistic.kind} {_short(mine, theirs)}: {what}", place)]
        if not same and (told := moved(question, mine, theirs)):
            return [Finding("versions", f"{told}: {what}", place)]
    return []


def _short(a: Any, b: Any) -> str:
    return f"{a} / {b}".replace("\n", " ")[:200]


def smaller(sequence: History, finding: Finding, tries: int) -> History:
    """A smaller sequence with the same finding."""
    progress = True
    while progress and tries > 0:
        progress = False
        for one in shrunk(sequence):
            tries -= 1
            with contextlib.suppress(CannotHold), folder() as where:
                if any(f.oracle == finding.oracle for f in run_sequence(one, where)):
                    sequence, progress = one, True
                    break
    return sequence


# --- many ----------------------------------------------------------------------------------------------------
WORLD = 22
"""Sequences in a row that share what is declared: its questions, their noise and many SQL texts are made once."""
ATTEMPTS = 40


@dataclass(slots=True)
class TimeReport:
    """Counts, and every finding with the command that repeats it."""

    runs: int = 0
    unmade: int = 0
    started: float = field(default_factory=time.monotonic)
    worked: float = field(default_factory=time.process_time)
    readers: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    questions: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    oracles: Counter[str] = field(default_factory=Counter)
    found: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started


def drawn(seed: int, number: int, readers: Sequence[str], *, spark: bool, attempt: int) -> History:
    """The sequence of this number: it follows from the seed, the number and the list of readers alone."""
    reader = readers[number % len(readers)]
    person = reader == "joined person"
    setting = _setting(seed, number // WORLD, person)
    rng = random.Random(f"{seed}/{number}/{attempt}")
    return draw_sequence(rng, setting, reader, number // len(readers), spark=spark)


@functools.lru_cache(maxsize=4)
def _setting(seed: int, turn: int, person: bool) -> Setting:
    return draw_setting(random.Random(f"{seed}/{turn}/{person}"), turn, person=person)


def one_sequence(report: TimeReport, number: int, args: Any) -> None:
    """Draws a sequence until its rows have a place in its files, runs it, and tells what it finds."""
    spark = args.engine == "spark"
    for attempt in range(ATTEMPTS):
        sequence = drawn(args.seed, number, args.readers, spark=spark, attempt=attempt)
        try:
            with folder() as where:
                found, told = run_both(sequence, where)
            break
        except CannotHold:
            continue
    else:
        report.unmade += 1
        return
    report.runs += 1
    report.readers[sequence.reader] += 1
    report.ops.update(s.op + (" (new)" if s.fresh else " (open)") for s in sequence.steps[1:])
    report.questions.update(_question(a) for a in sequence.asked)
    report.outcomes.update("released" if t.seen.error is None else t.seen.error[0] for t in told)
    for finding in found:
        report.oracles[finding.oracle] += 1
        place = (finding.oracle, sequence.reader)
        report.found[place] = report.found.get(place, 0) + 1
        if report.found[place] == 1:
            if args.shrink:
                sequence = smaller(sequence, finding, args.shrink)
            tell(report, number, sequence, finding, args)


def _question(one: Any) -> str:
    told = [word for word in ("given", "public") if getattr(one, word) is not None]
    return f"{one.statistic.kind}{' ' + ' '.join(told) if told else ''}"


def tell(report: TimeReport, number: int, sequence: History, finding: Finding, args: Any) -> None:
    """A reproducer."""
    more = f" --engine {args.engine}" if args.engine != "duckdb" else ""
    more += f" --reader '{args.reader}'" if args.reader else ""
    setting = sequence.setting
    lines = [
        f"--- {report.seconds:.0f} s, after {report.runs} sequences: {finding.oracle}: {finding.what}",
        f"    again: python tests/fuzz/run.py --sequences 1 --seed {args.seed} --batch {number}{more}",
        f"    {sequence.words}",
    ]
    if args.verbose:
        lines += [
            f"    asked: {[(a.name, a.statistic.kind, a.statistic.to_dict()) for a in sequence.asked]}",
            f"    schema: { {n: c.to_dict() for n, c in setting.schema.items()} }",
            *(f"    {s.op} {s.store}\n      {len(s.base)} rows; {s.left} / {s.right}" for s in sequence.steps),
        ]  # fmt: skip
    text = "\n".join(lines)
    print(text if args.verbose else text[:1200], flush=True)
    if args.report:
        with Path(args.report).open("a") as file:
            file.write(text + "\n")


def fuzz_in_time(args: Any) -> TimeReport:
    """So many sequences, or as many as the time allows; Ctrl-C ends it, and prints the summary."""
    report = TimeReport()
    number = 0 if args.batch is None else args.batch
    end = number + args.sequences
    while number < end and report.seconds < args.seconds:
        try:
            one_sequence(report, number, args)
        except KeyboardInterrupt:
            break
        except Exception:
            print(f"sequence {number} broke the fuzzer itself:\n{traceback.format_exc()}", flush=True)
            report.oracles["fuzzer"] += 1
        if args.first and report.oracles:
            break
        number += 1
    return report


def summary_in_time(report: TimeReport) -> str:
    """What was run, and what was found."""
    worked = time.process_time() - report.worked

    def listed(counts: Counter[str]) -> str:
        return ", ".join(f"{k} {n}" for k, n in counts.most_common())

    lines = [
        f"{report.runs} sequences in {worked:.0f} s of a processor, {report.seconds:.0f} s by the clock: "
        f"{report.runs / max(worked, 1e-9):.1f} a second; {report.unmade} could not be stored",
        f"readers: {listed(report.readers)}",
        f"between versions: {listed(report.ops)}",
        f"questions: {listed(report.questions)}",
        f"outcomes: {listed(report.outcomes)}",
        f"findings: {listed(report.oracles) or 'none'}",
        *(f"  {n:5}x {oracle} ({reader})" for (oracle, reader), n in sorted(report.found.items())),
    ]
    return "\n".join(lines)
