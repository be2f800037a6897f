"""A plan on made-up neighbours: the true integers of two tables, and releases under the same recorded words.

Audits call it with tables that they make up from the schema, so that its reads reveal nothing about anybody.
Nothing is charged, and a plan's own data, its joins and views are never opened.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from tacit.curator.assignments import NoisyParts
from tacit.curator.planning import Plan, Planned
from tacit.errors import TacitError
from tacit.exact.arrays import Words
from tacit.exact.data_classes import dataclass
from tacit.guarantees import GroupOf, Neighbours, People
from tacit.noise.distributions import base as inversion
from tacit.noise.source import SeededSource, Source
from tacit.sources import open_table
from tacit.sources.query import TrainingRows
from tacit.statistics import read_cells

KEY = b"made-up rows have no secret ids."
"""The key that selects the rows of a person; the key of a real table is secret."""
PACKAGE = Path(__file__).parents[1]
ROOMS = tuple(str(PACKAGE / room) + "/" for room in ("mechanisms", "curator", "noise", "exact"))
"""The code that sees true numbers."""
MOST_LINES = 400_000
BY_PROOF = ("function", "synthesis", "test", "thresholds", "tree")
"""Kinds of mechanisms whose steps follow from the data; a theorem of each covers that."""


class RecordedWords(Source):
    """Words that follow from a number, given again after `rewind`, with the number of words for each call."""

    def __init__(self, seed: int) -> None:
        self.inner = SeededSource(seed=seed)
        self.kept: list[int] = []
        self.at = 0
        self.calls: list[int] = []

    @property
    def publishable(self) -> bool:
        return False

    def rewind(self) -> None:
        """Starts again at the first word."""
        self.at, self.calls = 0, []

    def words(self, count: int) -> Words:
        missing = self.at + count - len(self.kept)
        if missing > 0:
            self.kept.extend(int(w) for w in self.inner.words(missing))
        out = np.array(self.kept[self.at : self.at + count], dtype=np.uint64)
        self.at += count
        self.calls.append(int(count))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedPair:
    """The values that an engine read from two made-up neighbours, for every release of a plan."""

    words: str
    left: tuple[Any, ...]
    right: tuple[Any, ...]
    refused: tuple[str, str] = ("", "")
    """The error at the end of a read, on either table."""


def rehearsed(plan: Plan, tables: tuple[Any, Any], *, words: str, engine: str | None = None) -> RehearsedPair:
    """Read two made-up neighbours, which `words` describes."""
    questions = [r.question for r in plan.releases]
    found: list[tuple[Any, ...]] = []
    refused: list[str] = []
    for rows in tables:
        try:
            with open_table(rows, schema=plan.schema, unit=plan.unit, engine=engine) as table:
                found.append(tuple(read_cells(table, questions, key=KEY)))
            refused.append("")
        except TacitError as problem:
            found.append(())
            refused.append(f"{type(problem).__name__}: {problem.message}")
    return RehearsedPair(words=words, left=found[0], right=found[1], refused=(refused[0], refused[1]))


def fresh(cells: Any) -> Any:
    """Returns a copy, since releases of functions drop their rows."""
    return tuple(copy.copy(c) if not hasattr(c, "clear") else copy.deepcopy(c) for c in cells)


# How far one unit moves what gets noise.


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The largest move of the integers of one part between two neighbours, and the proved bound on it."""

    part: str
    l1: int
    l2_squared: int
    linf: int
    claimed: tuple[int, int, int] | None
    """L1, squared L2, Linf; None for rows, whose claim is a number of rows."""
    claimed_rows: int = 0

    @property
    def within(self) -> bool:
        """Is it within the claim?"""
        if self.claimed is None:
            return self.l1 <= self.claimed_rows
        return (
            self.l1 <= self.claimed[0] and self.l2_squared <= self.claimed[1] and self.linf <= self.claimed[2]
        )

    @property
    def share(self) -> float:
        """The part of the claimed L1 sensitivity, or number of rows, that this pair uses."""
        most = self.claimed_rows if self.claimed is None else self.claimed[0]
        return self.l1 / most if most else float(self.l1 > 0)

    def sentence(self) -> str:
        """Both numbers, in words."""
        if self.claimed is None:
            return f"{self.l1} training rows differ; a unit has at most {self.claimed_rows}"
        return (
            f"the integers of {self.part} differ by {self.l1} in L1, {self.l2_squared} in squared L2, {self.linf} in"
            f" Linf; the declared sensitivity is {self.claimed[0]}, {self.claimed[1]}, {self.claimed[2]}"
        )


def integers_of(planned: Planned, cells: Any) -> dict[str, Any] | None:
    """The true integers before the noise: arrays, or by key; None if a mechanism reads anything else."""
    question: Any = planned.question
    if hasattr(question, "occupied"):
        keys, counts = question.occupied(cells)
        return {"count": {_plain(k): int(c) for k, c in zip(keys, counts, strict=True)}}
    if isinstance(cells[0], TrainingRows):
        return {"training rows": _rows(cells[0])}
    if planned.question.statistic.fits in BY_PROOF:
        return None
    integers = question.integers(cells)
    if question.support is None:
        return {name: np.array(v, copy=True) for name, v in integers.items()}
    listed = [tuple(map(_plain, key)) for key in zip(*(list(k) for k in cells[0].keys), strict=True)]
    parts = {"support": cells[0].values[question.support], **integers}
    return {
        name: {k: int(v) for k, v in zip(listed, np.asarray(vs).tolist(), strict=True)}
        for name, vs in parts.items()
    }


def _rows(found: TrainingRows) -> dict[Any, int]:
    columns = [[None if np.isnan(v) else float(v) for v in found.rows[n]] for n in sorted(found.rows)]
    return dict(Counter(zip(*columns, strict=True)))


def _plain(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    if isinstance(key, np.void | np.ndarray):
        return key.tobytes()
    return key.item() if isinstance(key, np.generic) else key


def differences(left: dict[str, Any], right: dict[str, Any]) -> dict[str, list[int]]:
    """The difference of each part, entry by entry."""
    return {name: _difference(left[name], right[name]) for name in left}


def _difference(a: Any, b: Any) -> list[int]:
    if isinstance(a, dict):
        return [int(b.get(k, 0)) - int(a.get(k, 0)) for k in sorted({*a, *b}, key=repr)]
    return [int(v) for v in np.ravel(np.asarray(b).astype(object) - np.asarray(a).astype(object))]


def moved_by(planned: Planned, left: dict[str, Any], right: dict[str, Any]) -> list[Moved]:
    """The pair's move of each part and of all together, beside the claimed bounds."""
    question: Any = planned.question
    steps = differences(left, right)
    if "training rows" in steps:
        unit = question.unit
        base, size = (unit.of, unit.size) if isinstance(unit, GroupOf) else (unit, 1)
        rows = size * (base.at_most if isinstance(base, People) else 1)
        rows *= 2 if base.neighbours is Neighbours.REPLACE_ONE else 1
        return [_sized("training rows", steps["training rows"], None, rows)]
    noisy = [v for p in question.parts if not p.exact for v in steps[p.name]]
    found = [_sized("all parts", noisy, question.sensitivity)] if noisy else []
    found += [_sized(p.name, steps[p.name], question.sensitivities[p.name]) for p in question.parts]
    if "support" in steps and question.support_sensitivity is not None:
        found.append(_sized("support", steps["support"], question.support_sensitivity))
    return found


def _sized(part: str, steps: Sequence[int], claim: Any, rows: int = 0) -> Moved:
    sizes = [abs(v) for v in steps]
    return Moved(
        part=part, l1=sum(sizes), l2_squared=sum(v * v for v in sizes), linf=max(sizes, default=0),
        claimed=None if claim is None else (int(claim.l1), int(claim.l2_squared), int(claim.linf)), claimed_rows=rows,
    )  # fmt: skip


# The steps of a release under recorded words.


@dataclass(slots=True)
class ReleaseSteps:
    """The lines that one release ran, the words that it drew, and the types that came out."""

    lines: list[tuple[str, int]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    types: Any = None
    error: str = ""


def steps_of(planned: Planned, tables: Sequence[Any], *, seed: int) -> list[ReleaseSteps]:
    """One release on several tables under the same words.

    Some tables of distributions are made after draws and then kept. A first run, which does not count, makes
    them here, so that their order does not show.
    """
    source = RecordedWords(seed)
    kept, inversion.SMALL = inversion.SMALL, 0
    try:
        for cells in tables:
            source.rewind()
            with contextlib.suppress(Exception):
                planned.assignment.run(planned.question, fresh(cells), source=source)
        return [_stepped(planned, fresh(cells), source) for cells in tables]
    finally:
        inversion.SMALL = kept


def _stepped(planned: Planned, cells: Any, source: RecordedWords) -> ReleaseSteps:
    found = ReleaseSteps()
    source.rewind()
    try:
        with _traced(found.lines):
            noisy = planned.assignment.run(planned.question, cells, source=source)
        found.types = _types(noisy)
    except Exception as problem:
        found.error = f"{type(problem).__name__}: {problem}"
    found.calls = list(source.calls)
    return found


@contextlib.contextmanager
def _traced(lines: list[tuple[str, int]]) -> Iterator[None]:
    def inside(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and len(lines) < MOST_LINES:
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        return inside

    def called(frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        return inside if file.startswith(ROOMS) and file != __file__ else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


def _types(noisy: NoisyParts) -> list[Any]:
    free = noisy.keys is not None
    return [
        (name, None if free else np.shape(v), str(np.asarray(v).dtype)) for name, v in noisy.parts.items()
    ]


def parting(left: ReleaseSteps, right: ReleaseSteps) -> tuple[str, str] | None:
    """The first place where two releases with the same words diverge: file and line, and the difference."""
    if left.error or right.error:
        if left.error == right.error:
            return None
        last = (left if left.error else right).lines
        return _place(
            last[-1]
        ) if last else "the start", f"{left.error or 'an answer'} / {right.error or 'an answer'}"
    for i, (a, b) in enumerate(zip(left.lines, right.lines, strict=False)):
        if a != b:
            at = _place(left.lines[i - 1]) if i else _place(a)
            return at, f"the next line is {_place(a)} or {_place(b)}"
    if len(left.lines) != len(right.lines):
        longer = max(left.lines, right.lines, key=len)
        return _place(
            longer[min(len(left.lines), len(right.lines)) - 1]
        ), "one run goes on where the other ends"
    if left.calls != right.calls:
        return "the words drawn", f"{sum(left.calls)} words or {sum(right.calls)}"
    if left.types != right.types:
        return "the types of the answer", f"{left.types} or {right.types}"
    return None


def _place(line: tuple[str, int]) -> str:
    return f"tacit/{Path(line[0]).relative_to(PACKAGE).as_posix()}:{line[1]}"


def by_proof(planned: Planned) -> str:
    """The theorems that cover steps which follow from the data; empty if no step may."""
    question = planned.question
    own = question.statistic.fits in BY_PROOF or not question.known_keys or hasattr(question, "occupied")
    return ", ".join(planned.assignment.theorems) if own else ""


# Outputs for bets.


def outputs_of(planned: Planned, left: Any, right: Any) -> Callable[[Any], Any]:
    """One release as a function of its input, shown where the two tables differ.

    A release of thousands of numbers is shown by the entries that the pair moves and by their sum along the
    difference of the true integers. It is a function of the release, so a bound for it holds for the release.
    """
    places = _places(planned, left, right)

    def run(cells: Any) -> Any:
        noisy = planned.assignment.run(planned.question, fresh(cells), source=None)
        if places is None or noisy.keys is not None:
            return _shown(noisy)
        shown = []
        along = 0.0
        for name, where, weights in places:
            flat = np.ravel(np.asarray(noisy.parts[name]))
            taken = [_number(v) for v in flat[where].tolist()]
            shown += taken
            along += sum(w * v for w, v in zip(weights, taken, strict=True))
        return [along, *shown[:MOST_SHOWN]]

    return run


MOST_SHOWN = 12
MOST_VALUES = 200


def _places(planned: Planned, left: Any, right: Any) -> list[tuple[str, Any, list[float]]] | None:
    a, b = integers_of(planned, fresh(left)), integers_of(planned, fresh(right))
    if a is None or b is None or any(isinstance(v, dict) for v in a.values()):
        return None
    found = []
    largest = max((abs(v) for steps in differences(a, b).values() for v in steps), default=0) or 1
    for name, steps in differences(a, b).items():
        where = [i for i, v in enumerate(steps) if v]
        where.sort(key=lambda i: -abs(steps[i]))
        where = where[:MOST_VALUES]
        found.append((name, where, [steps[i] / largest for i in where]))
    try:
        probe = planned.assignment.run(planned.question, fresh(left), source=None)
    except Exception:
        return None
    fits = all(n in probe.parts and np.size(probe.parts[n]) == len(s) for n, s in differences(a, b).items())
    return [f for f in found if f[1]] if fits else None


def _number(value: Any) -> float | int:
    return value if isinstance(value, int | float) else float(value)


def _shown(noisy: NoisyParts) -> Any:
    parts = {
        n: [_number(v) for v in np.ravel(np.asarray(p))[:MOST_VALUES].tolist()]
        for n, p in noisy.parts.items()
    }
    if noisy.keys is None:
        return parts
    keys = [[str(k) for k in column[:MOST_VALUES]] for column in noisy.keys]
    return {"keys": keys, **parts}
