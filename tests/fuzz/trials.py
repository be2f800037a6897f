"""One table, read or released: everything that could be seen of it, and the true integers before noise.

Two roads lead there. The short one opens the table, reads all questions at once, adds noise from a seeded source and
reads off the estimates. The long one is a curator with a ledger, asked twice.
"""

from __future__ import annotations

import contextlib
import io
import logging
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from fuzz.worlds import World
from tacit.curator import curator as curator_room
from tacit.curator.charging import CONFIDENCE, price
from tacit.curator.planning import Plan, choose, make_plan
from tacit.curator.request import query
from tacit.errors import TacitError
from tacit.exact.arrays import Words
from tacit.noise.source import SeededSource, Source
from tacit.sources import open_table
from tacit.sources.query import TrainingRows
from tacit.statistics import read_cells

KEY = b"a secret of the tests, 32 bytes!"
QUIET = (ResourceWarning, DeprecationWarning, RuntimeWarning)
"""The last one is said of noisy numbers: a ratio over noise of 0."""
BUDGET = tacit.Approximate(epsilon=1000.0, delta=0.9)


class Counting(Source):
    """Seeded words, counted."""

    def __init__(self, seed: int) -> None:
        self.inner = SeededSource(seed=seed)
        self.drawn = 0

    @property
    def publishable(self) -> bool:
        return False

    def words(self, count: int) -> Words:
        self.drawn += int(count)
        return self.inner.words(count)


@dataclass(slots=True)
class Seen:
    """What one table showed."""

    error: tuple[str, str] | None = None
    raw: str = ""
    chained: str = ""
    told: list[str] = field(default_factory=list)
    truth: list[dict[str, Any]] | None = None
    alone: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    shapes: list[Any] = field(default_factory=list)
    drawn: int | None = None
    charges: list[Any] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its noise, as a plan has it."""

    statistic: Any
    price: tuple[tuple[str, float], ...]
    question: Any
    assignment: Any

    @property
    def name(self) -> str:
        """In words."""
        said = self.statistic.to_dict()
        told = {k: v for k, v in said.items() if v not in (None, [], "rows") and k != "kind"}
        return f"{self.statistic.kind}({', '.join(f'{k}={v}' for k, v in told.items())})"


def asked(world: World, statistic: Any, paid: tuple[tuple[str, float], ...]) -> Asked | None:
    """The question and its noise; None where this price cannot pay for it."""
    try:
        question = statistic.on(world.schema, world.unit)
        assignment = choose(question, price(**dict(paid)), budget=BUDGET)
    except TacitError:
        return None
    return Asked(statistic=statistic, price=paid, question=question, assignment=assignment)


def plan_of(world: World, wanted: Sequence[Asked]) -> Plan:
    """A plan in which every statistic pays for itself."""
    asks = [query(a.statistic, **dict(a.price)) for a in wanted]
    return make_plan(asks, schema=world.schema, unit=world.unit, budget=BUDGET)


def truth_of(question: Any, cells: Any) -> dict[str, Any]:
    """The true integers: arrays where the keys are known, else a mapping from keys to integers."""
    if hasattr(question, "occupied"):
        keys, counts = question.occupied(cells)
        return {"count": {_hashable(k): int(c) for k, c in zip(keys, counts, strict=True)}}
    if question.statistic.fits in ("function", "tree", "test"):
        return {"training rows": training_rows(cells[0])}
    integers = question.integers(cells)
    if question.support is None:
        return {name: np.array(v, copy=True) for name, v in integers.items()}
    found = cells[0]
    listed = list(zip(*(list(k) for k in found.keys), strict=True))
    parts = {"support": found.values[question.support]} | integers
    return {
        name: {k: int(v) for k, v in zip(map(_hashable, listed), np.asarray(vs).tolist(), strict=True)}
        for name, vs in parts.items()
    }


def training_rows(found: TrainingRows) -> dict[Any, int]:
    """How often each row occurs, a missing value being None; in whatever order they were read."""
    columns = [[None if np.isnan(v) else float(v) for v in found.rows[n]] for n in sorted(found.rows)]
    return dict(Counter(zip(*columns, strict=True)))


def kept(cells: Any) -> Any:
    """What was read, as it was: the rows of a function are let go when it is fitted."""
    return [
        tuple(replace(c, rows=dict(c.rows)) if isinstance(c, TrainingRows) else c for c in one)
        for one in cells
    ]


def _hashable(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_hashable, key))
    if isinstance(key, np.generic | np.ndarray):
        return key.tobytes() if isinstance(key, np.void | np.ndarray) else key.item()
    return key


def signature(noisy: Any) -> list[Any]:
    """Shapes and types of what is let out; where keys are chosen by noise, the types alone."""
    free = noisy.keys is not None
    return [
        (n, None if free else np.shape(v), str(np.asarray(v).dtype), _kinds(v))
        for n, v in noisy.parts.items()
    ]


def _kinds(value: Any) -> Any:
    """Types in an array of objects other than integers: how many there are of these may be chosen by noise."""
    array = np.asarray(value)
    return (
        sorted({type(v).__name__ for v in array.ravel().tolist()} - {"int"})
        if array.dtype == object
        else None
    )


@contextlib.contextmanager
def watched(seen: Seen) -> Iterator[None]:
    """Everything that is said meanwhile, and the error with which it ends."""
    out, records = io.StringIO(), _Records()
    root = logging.getLogger()
    root.addHandler(records)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            warnings.simplefilter("always")
            try:
                yield
            except Exception as problem:
                seen.error = (type(problem).__name__, str(problem))
                if not isinstance(problem, TacitError):
                    seen.raw = f"{type(problem).__name__}: {problem} ({_where(problem)})"
                seen.chained = _chain(problem)
    finally:
        root.removeHandler(records)
    seen.told = [
        *out.getvalue().splitlines(),
        *(f"{r.levelname}: {r.getMessage()}" for r in records.kept),
        *(f"{w.category.__name__}: {w.message}" for w in warned if w.category not in QUIET),
    ]


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record)


def _where(problem: BaseException) -> str:
    """The lines of the package that an error passed, the last two."""
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if "/tacit/" in f.filename]
    return ", ".join(f"{f.filename.rpartition('/tacit/')[2]}:{f.lineno}" for f in frames[-2:])


def _chain(problem: BaseException) -> str:
    """Texts of others that hang on an error."""
    found = []
    inner = problem.__cause__ or problem.__context__
    while inner is not None and len(found) < 5:
        if not isinstance(inner, TacitError):
            found.append(f"{type(inner).__name__}: {inner}")
        inner = inner.__cause__ or inner.__context__
    return " | ".join(found)


def short_road(
    world: World, wanted: Sequence[Asked], data: Any, *, seed: int, alone: int, engine: str | None
) -> Seen:
    """Open, read, add noise, read off."""
    seen = Seen()
    source = Counting(seed)
    with watched(seen):
        options = {} if engine is None else {"engine": engine}
        table = open_table(data, schema=world.schema, unit=world.unit, **options)
        try:
            questions = [a.question for a in wanted]
            cells = read_cells(table, questions, key=KEY)
            seen.truth = [truth_of(q, c) for q, c in zip(questions, kept(cells), strict=True)]
            for at in range(alone):
                place = (seed + at) % len(questions)
                (found,) = read_cells(table, [questions[place]], key=KEY)
                seen.alone.append((place, truth_of(questions[place], found)))
            for one, c in zip(wanted, cells, strict=True):
                noisy = one.assignment.run(one.question, c, source=source)
                seen.shapes.append(signature(noisy))
                one.assignment.read(one.question, noisy, CONFIDENCE)
            seen.drawn = source.drawn
        finally:
            table.close()
    return seen


def long_road(
    world: World, wanted: Sequence[Asked], data: Any, folder: Path, *, seed: int, engine: str | None
) -> Seen:
    """A curator with a ledger, asked twice."""
    seen = Seen()
    plan = plan_of(world, wanted)
    source = Counting(seed)
    caught: list[Any] = []

    def reading(table: Any, questions: Any, **_: Any) -> Any:
        # Each ledger draws its own secret; neighbours are compared under one.
        cells = read_cells(table, questions, key=KEY)
        caught.append(kept(cells))
        return cells

    honest, curator_room.read_cells = curator_room.read_cells, reading  # type: ignore[assignment]
    folder.mkdir(parents=True, exist_ok=True)
    held: Any = None
    options: dict[str, Any] = {} if engine is None else {"engine": engine}
    try:
        with watched(seen):
            held = tacit.Curator(
                data, protect=world.unit, schema=world.schema, budget=BUDGET, source=source,
                ledger=folder / "the.ledger", **options,
            )  # fmt: skip
            for again in range(2):
                released = held.release(plan)
                for one in released:
                    columns = {n: str(getattr(v, "dtype", type(v))) for n, v in one.columns.items()}
                    seen.shapes.append((columns, _keys_of(one.certificate), one.replayed))
                    seen.shapes.append(signature(one.noisy))
                    text = one.to_csv().splitlines()
                    seen.shapes.append(text[0] if one.noisy.keys is not None else (text[0], len(text)))
                seen.charges.append((again, str(held.spent)))
            seen.drawn = source.drawn
        if caught:
            with watched(Seen()):
                pairs = zip(plan.releases, caught[0], strict=True)
                seen.truth = [truth_of(r.question, c) for r, c in pairs]
        if held is not None:
            with watched(Seen()):
                seen.charges.append(str(held.spent))
                held.close()
    finally:
        curator_room.read_cells = honest
    seen.files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))
    return seen


def _keys_of(value: Any) -> Any:
    """The names in a certificate, without its values."""
    if isinstance(value, dict):
        return {k: _keys_of(v) for k, v in value.items()}
    return type(value).__name__
