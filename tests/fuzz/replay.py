"""A replay audit of the road from true numbers to noisy ones: the same noise words, neighbouring tables, the same road.

The words that one table draws are recorded and given to its neighbour. Then every line that is run in the rooms that
see true numbers (mechanisms, noise, exact, curator) must be the same line, in the same order, for both; so must be the
number of words and the types of what comes out. What differs would tell of a person in time, in a type or in an error.

Unknown keys and sparse histograms draw noise for occupied cells alone, so that their road depends on how many these
are (it is why they spend a delta, or visit empty cells by a law of its own): they are compared where the neighbours
occupy the same cells, up to the choice that is made on noisy numbers.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import tacit
from fuzz.trials import signature
from tacit.exact.arrays import Words
from tacit.noise.distributions import base as inversion
from tacit.noise.source import SeededSource, Source

PACKAGE = Path(tacit.__file__).parent
ROOMS = tuple(str(PACKAGE / room) + "/" for room in ("mechanisms", "curator", "noise", "exact"))


class Tape(Source):
    """Records the words that are drawn, and gives them again after `rewind`."""

    def __init__(self, seed: int) -> None:
        self.inner = SeededSource(seed=seed)
        self.kept: list[int] = []
        self.at = 0
        self.calls: list[int] = []

    @property
    def publishable(self) -> bool:
        return False

    def rewind(self) -> None:
        """From the first word on."""
        self.at, self.calls = 0, []

    def words(self, count: int) -> Words:
        missing = self.at + count - len(self.kept)
        if missing > 0:
            self.kept.extend(int(w) for w in self.inner.words(missing))
        out = np.array(self.kept[self.at : self.at + count], dtype=np.uint64)
        self.at += count
        self.calls.append(int(count))
        return out


@dataclass(slots=True)
class Road:
    """What was run, how many words were drawn, what came out."""

    lines: list[tuple[str, int]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    types: Any = None
    error: str = ""


def walked(action: Callable[[], Any]) -> tuple[Any, list[tuple[str, int]]]:
    """What the action gives, and every line that it runs in the rooms."""
    lines: list[tuple[str, int]] = []

    def inside(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        return inside

    def called(frame: FrameType, event: str, _: Any) -> Any:
        return inside if frame.f_code.co_filename.startswith(ROOMS) else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        return action(), lines
    finally:
        sys.settrace(before)


def road_of(assignment: Any, question: Any, cells: Any, tape: Tape) -> Road:
    """The road of one release."""
    road = Road()
    tape.rewind()
    try:
        noisy, road.lines = walked(lambda: assignment.run(question, cells, source=tape))
        road.types = signature(noisy)
    except Exception as problem:
        road.error = f"{type(problem).__name__}: {problem}"
    road.calls = list(tape.calls)
    return road


def roads_of(one: Any, tables: Sequence[Any], tape: Tape) -> list[Road]:
    """The roads of one release on several tables.

    Tables of laws are made after some draws, and kept: here at once, in a first run, so that history does not count.
    """
    kept, inversion.SMALL = inversion.SMALL, 0
    try:
        for cells in tables:
            tape.rewind()
            with contextlib.suppress(Exception):
                one.assignment.run(one.question, cells, source=tape)
        return [road_of(one.assignment, one.question, cells, tape) for cells in tables]
    finally:
        inversion.SMALL = kept


def parted(left: Road, right: Road) -> str:
    """Where two roads part; empty if they do not."""
    if left.error or right.error:
        return "" if left.error == right.error else f"error: {left.error!r} / {right.error!r}"
    if left.lines != right.lines:
        for i, (a, b) in enumerate(zip(left.lines, right.lines, strict=False)):
            if a != b:
                before = _place(left.lines[i - 1]) if i else "the start"
                return f"after {before}: {_place(a)} / {_place(b)}"
        longer = max(left.lines, right.lines, key=len)
        return f"one goes on after {_place(longer[min(len(left.lines), len(right.lines)) - 1])}"
    if left.calls != right.calls:
        return f"words drawn: {sum(left.calls)} / {sum(right.calls)}"
    return "" if left.types == right.types else f"types: {left.types} / {right.types}"


def _place(line: tuple[str, int]) -> str:
    return f"{Path(line[0]).relative_to(PACKAGE)}:{line[1]}"


def audited(asked: Sequence[Any], left: Sequence[Any], right: Sequence[Any], *, seed: int) -> list[str]:
    """The releases whose roads part, and where: one line each. `left` and `right` are the cells of two tables."""
    found = []
    for one, a, b in zip(asked, left, right, strict=True):
        told = parted(*roads_of(one, (a, b), Tape(seed)))
        if told:
            found.append(f"{one.name} at {dict(one.price)}: {told}")
    return found
