"""The grey box gives two neighbours the same noise; then everything except the values must agree.

A mechanism runs on both inputs of a pair with one tape of recorded randomness. The audit compares executed lines
after the first draw, draws, parameters of the noise, types, shapes and texts, and names the first place where the
runs part. If the output is the answer plus noise, the difference of the outputs is the difference of the true
answers. The audit compares it with the declared sensitivity and with the scale of the noise.

A right mechanism may diverge as well: sparse vector stops at a point that the noise decides.
So a difference counts as a fault only
if the function declares no proof of its data-dependent step (`data_dependent_proof`).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from tacit.audit.claimed import AuditedClaim
from tacit.audit.isolation import packed_input, run_once
from tacit.audit.neighbours import NeighbourPairs
from tacit.audit.outputs import Output, is_answer
from tacit.audit.recording import Draw, Tape
from tacit.exact.data_classes import dataclass
from tacit.guarantees import GaussianDP, Pure

TAPES = 5
"""Tapes for each pair of neighbours."""
MOST_LINES = 200_000
ROUNDED = 1 / 32
"""Differences of outputs that vary by less than this are taken for constant: mechanisms round to a grid."""
_LETTERS = "ifz"
_IN_TEXT = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
AGAIN = 24
"""The number of further runs of either input before a function counts as free of noise."""
NEAR_ONE = 0.02
"""The relative error of a factor of the noise: outputs are rounded to a grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """One way in which neighbours diverge under the same noise."""

    kind: str
    place: str
    """File and line."""
    words: str
    accuses: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The answer of the grey box."""

    partings: tuple[Parting, ...]
    pairs: int
    draws: int
    additive: bool
    moved: float
    """The largest L1 difference of two outputs under the same noise, for outputs that are answers plus noise."""
    notes: tuple[str, ...] = ()

    @property
    def accuses(self) -> bool:
        """Does a parting accuse the mechanism?"""
        return any(p.accuses for p in self.partings)

    def lines(self) -> list[str]:
        """The answer in sentences."""
        said = [f"{'breaks' if p.accuses else 'parts'} at {p.place}: {p.words}" for p in self.partings]
        if not self.partings:
            said.append(
                f"replay: no difference but the noise on {self.pairs} pairs of neighbours, {self.draws:,} draws"
            )
        return [*said, *self.notes, UNSEEN]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "accuses": self.accuses, "could_not_see": UNSEEN}


UNSEEN = (
    "a replay could not have seen: inputs that are not in its list, steps before the first draw and inside compiled"
    " code, durations,"
    " and whether the noise has the distribution that its name says"
)


@dataclass(slots=True)
class _Run:
    output: Output
    lines: list[tuple[str, int]] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)


def _traced(f: Callable[[Any], Any], packed: bytes | None, given: Any, folder: str, tape: Tape) -> _Run:
    """One run with its lines in the mechanism's folder."""
    lines: list[tuple[str, int]] = []

    def inside(frame: FrameType, event: str, _: Any) -> Any:
        # Before the first draw a sum over rows takes as many steps as there are rows: this is time, and not compared.
        if event == "line" and tape.draws and len(lines) < MOST_LINES:
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        return inside

    def called(frame: FrameType, event: str, _: Any) -> Any:
        return inside if frame.f_code.co_filename.startswith(folder) else None

    tape.rewind()
    before = sys.gettrace()
    sys.settrace(called)
    try:
        out = run_once(f, packed, given)
    finally:
        sys.settrace(before)
    return _Run(output=out, lines=lines, draws=list(tape.draws))


def replay(
    f: Callable[[Any], Any],
    *,
    neighbours: NeighbourPairs,
    tape: Tape,
    claim: AuditedClaim | None = None,
    proof: str = "",
    sensitivity: float | None = None,
    tapes: int = TAPES,
    folder: str | None = None,
) -> Replay:
    """Run a function on each pair of neighbours with the same noise, and compare. The tape must be in place."""
    code = getattr(f, "__code__", None)
    file = code.co_filename if code is not None else ""
    folder = folder if folder is not None else str(Path(file).parent) + "/" if file else ""
    proof = proof or str(getattr(f, "data_dependent_proof", ""))
    found: dict[tuple[str, str], Parting] = {}
    notes: list[str] = []
    draws, moved, additive, checked = 0, 0.0, True, 0
    start = f"{file}:{code.co_firstlineno}" if code is not None else getattr(f, "__name__", "the function")
    for a, b in neighbours.pairs:
        packed = (packed_input(a), a), (packed_input(b), b)
        differences: list[np.ndarray[Any, Any]] = []
        runs: list[_Run] = []
        for t in range(tapes):
            tape.rewind(7919 * t + 1)
            left = _traced(f, *packed[0], folder, tape)
            again = _traced(f, *packed[0], folder, tape)
            if (left.output, left.draws) != (again.output, again.draws):
                return _unrecorded(start, checked, draws)
            right = _traced(f, *packed[1], folder, tape)
            checked += 1
            draws += len(left.draws)
            told = _parting(left, right, start, proof)
            if told is not None:
                found.setdefault((told.kind, told.place), told)
                additive = False
                continue
            step = _difference(left.output, right.output)
            if step is None:
                additive = False
                continue
            differences.append(step)
            runs.append(left)
            if not left.draws and np.any(step != 0):
                if _varies(f, packed, tape):
                    return _unrecorded(start, checked, draws)
                words = "the outputs differ and no noise was drawn"
                found.setdefault(
                    ("no noise", start), Parting(kind="no noise", place=start, words=words, accuses=True)
                )
        if differences and additive:
            spread = max(float(np.max(np.abs(d - differences[0]), initial=0.0)) for d in differences)
            if spread > ROUNDED:
                additive = False
                continue
            moved = max(moved, float(np.abs(differences[0]).sum()))
            for told in _sized(differences[0], runs, claim, sensitivity, start):
                found.setdefault((told.kind, told.place), told)
    if proof and any(not p.accuses for p in found.values()):
        notes.append(f"declared proof of the data-dependent step: {proof}")
    return Replay(
        partings=tuple(found.values()),
        pairs=len(neighbours.pairs),
        draws=draws,
        additive=additive,
        moved=moved if additive else math.nan,
        notes=tuple(notes),
    )


def _unrecorded(start: str, pairs: int, draws: int) -> Replay:
    """The answer for a function whose runs cannot be repeated."""
    words = (
        "the same input under the same noise gives another output: the function depends on its earlier calls, on the"
        " clock, or on randomness that is not recorded here"
    )
    parting = Parting(kind="state", place=start, words=words, accuses=False)
    return Replay(partings=(parting,), pairs=pairs, draws=draws, additive=False, moved=0.0)


def _varies(f: Callable[[Any], Any], packed: Sequence[tuple[bytes | None, Any]], tape: Tape) -> bool:
    """Do runs of one input differ, although no draw was noted? Then there is randomness that is not recorded.

    Two equal answers do not prove missing noise: integer noise often gives the same number twice.
    """
    for one in packed:
        seen = set()
        for t in range(AGAIN):
            tape.rewind(104_729 * (t % 2) + 5)
            seen.add(run_once(f, *one))
        if len(seen) > 1:
            return True
    return False


def _parting(left: _Run, right: _Run, start: str, proof: str) -> Parting | None:
    """The first place where two runs diverge."""
    said = f"; declared proof: {proof}" if proof else ""
    if is_answer(left.output) != is_answer(right.output) or (
        not is_answer(left.output) and left.output != right.output
    ):
        place = _last(right if is_answer(left.output) else left, start)
        # After noise was drawn, an error may be a decision that the noise hides; before that nothing hides it.
        hidden = bool(proof and left.draws and right.draws)
        words = f"{_what(left.output)} on one neighbour, {_what(right.output)} on the other"
        return Parting(kind="error", place=place, words=words + (said if hidden else ""), accuses=not hidden)
    if bool(left.draws) != bool(right.draws):
        place = (left.draws or right.draws)[0].place
        return Parting(
            kind="draws", place=place, words=f"one run draws noise, the other none{said}", accuses=not proof
        )
    for i, (one, other) in enumerate(zip(left.lines, right.lines, strict=False)):
        if one != other:
            at = left.lines[i - 1] if i else one
            words = f"the runs part here: next line {one[1]} or {other[1]}{said}"
            return Parting(kind="control flow", place=f"{at[0]}:{at[1]}", words=words, accuses=not proof)
    if len(left.lines) != len(right.lines):
        at = max(left.lines, right.lines, key=len)[min(len(left.lines), len(right.lines)) - 1]
        words = f"one run goes on where the other ends{said}"
        return Parting(kind="control flow", place=f"{at[0]}:{at[1]}", words=words, accuses=not proof)
    for mine, theirs in zip(left.draws, right.draws, strict=False):
        if (mine.name, mine.size) != (theirs.name, theirs.size):
            words = f"{mine.size} numbers by {mine.name} or {theirs.size} by {theirs.name}"
            return Parting(kind="draws", place=mine.place, words=words, accuses=not proof)
        if mine.scale != theirs.scale:
            words = (
                f"the scale of {mine.name} depends on the data: {mine.scale[:3]} or {theirs.scale[:3]}{said}"
            )
            return Parting(kind="scale", place=mine.place, words=words, accuses=not proof)
        if mine.other != theirs.other:
            words = f"the parameters of {mine.name} depend on the data{said}"
            return Parting(kind="distribution", place=mine.place, words=words, accuses=not proof)
    if len(left.draws) != len(right.draws):
        more = max(left.draws, right.draws, key=len)[min(len(left.draws), len(right.draws))].place
        return Parting(kind="draws", place=more, words=f"one run draws more{said}", accuses=not proof)
    if _shape(left.output) != _shape(right.output):
        words = f"types or shapes differ: {left.output[0][:80]} or {right.output[0][:80]}"
        return Parting(kind="type", place=_last(left, start), words=words, accuses=not proof)
    letters = left.output[0].rpartition(":")[2]
    for letter, one, other in zip(letters, left.output[1], right.output[1], strict=False):
        if letter == "s" and _IN_TEXT.sub("0", one) == _IN_TEXT.sub("0", other):
            continue  # a number as text: its noise is not compared
        if letter not in _LETTERS and one != other:
            words = f"the same noise gives another answer without numbers{said}"
            return Parting(kind="decision", place=_last(left, start), words=words, accuses=not proof)
    return None


def _shape(output: Output) -> str:
    """The structure, in which a negative zero is a number like others."""
    said, _, letters = output[0].rpartition(":")
    return f"{said}:{letters.replace('z', 'f')}"


def _what(output: Output) -> str:
    return "an answer" if is_answer(output) else output[0]


def _last(run: _Run, start: str) -> str:
    return f"{run.lines[-1][0]}:{run.lines[-1][1]}" if run.lines else start


def _difference(left: Output, right: Output) -> np.ndarray[Any, Any] | None:
    letters = left[0].rpartition(":")[2]
    if len(left[1]) != len(right[1]):
        return None
    try:
        pairs = [
            float(b) - float(a)
            for letter, a, b in zip(letters, left[1], right[1], strict=False)
            if letter in _LETTERS
        ]
    except OverflowError:
        return None
    return np.array(pairs)


def _sized(
    step: np.ndarray[Any, Any],
    runs: Sequence[_Run],
    claim: AuditedClaim | None,
    sensitivity: float | None,
    start: str,
) -> list[Parting]:
    """The true answers' difference against the declared sensitivity, and against the noise that was drawn.

    The noise may be multiplied, or the noisy answer: the factor follows from outputs and draws of several
    tapes. For a sum of draws, or a further function of the answer, the audit makes no statement about the size
    of the noise.
    """
    found = []
    grid = any(v != int(v) for v in step.tolist() if math.isfinite(v))
    slack = 1e-9 + (ROUNDED if grid else 0.0)
    draws = [d for d in runs[0].draws if d.scale]
    factors = _factors(runs)
    distance = float(np.abs(step).sum())
    inside = distance if factors is None else float(np.abs(step[factors > 0] / factors[factors > 0]).sum())
    if sensitivity is not None and distance > sensitivity + slack:
        words = (
            f"the true answers differ by {distance:.6g} in L1, the declared sensitivity is {sensitivity:g}"
        )
        # If the noisy answer is multiplied, the true answers differ by less than the outputs.
        sure = inside > sensitivity + slack
        if not sure:
            words += f"; unless the noisy answer is multiplied (then by {inside:.6g})"
        found.append(Parting(kind="sensitivity", place=start, words=words, accuses=sure))
    values = sum(len(d.values) for d in draws)
    if claim is None or not draws or distance == 0:
        return found
    if values < step.size:
        if len(set(step.tolist())) > 1:
            words = (
                f"{step.size} numbers that move differently, and {values} draws of noise: is one used twice?"
            )
            found.append(Parting(kind="few draws", place=start, words=words, accuses=False))
        return found
    if factors is None:
        return found
    if len(runs) >= 3 and all([d.values for d in r.draws] == [d.values for d in runs[0].draws] for r in runs):
        words = f"the noise is the same in every run, and the answers differ by {distance:.6g}: is its seed fixed?"
        found.append(Parting(kind="fixed noise", place=draws[0].place, words=words, accuses=True))
        return found
    names = {d.name for d in draws}
    scale = factors * _each_scale(draws)
    slack = slack if np.all(factors == 1) else max(slack, ROUNDED)
    bare = (scale == 0) & (np.abs(step) > slack)
    if bare.any():
        words = f"noise of scale 0 on answers that differ by {float(np.abs(step[bare]).sum()):.6g}"
        found.append(Parting(kind="scale 0", place=start, words=words, accuses=True))
        return found
    some = scale > 0
    share = np.maximum(0.0, np.abs(step[some]) - slack) / scale[some]
    if names == {"laplace"} and isinstance(claim.bound, Pure):
        implied = float(share.sum())
        if implied > claim.value * (1 + 1e-9):
            words = f"the true answers differ by {distance:.6g} under Laplace noise of scale"
            words += f" {scale[some].max():.4g}: epsilon = {implied:.3g}"
            found.append(Parting(kind="noise too small", place=start, words=words, accuses=True))
    if names <= {"normal", "gauss", "normalvariate"} and isinstance(claim.bound, GaussianDP):
        implied = float(np.sqrt((share**2).sum()))
        if implied > claim.value * (1 + 1e-9):
            words = f"the true answers differ by {distance:.6g} under Gaussian noise of standard deviation"
            words += f" {scale[some].max():.4g}: mu = {implied:.3g}"
            found.append(Parting(kind="noise too small", place=start, words=words, accuses=True))
    return found


def _each_scale(draws: Sequence[Draw]) -> np.ndarray[Any, Any]:
    """The scale of each number drawn."""
    return np.concatenate([np.broadcast_to(d.scale, len(d.values)) for d in draws])


def _factors(runs: Sequence[_Run]) -> np.ndarray[Any, Any] | None:
    """By output, the factor of its draw; None unless each output is a constant plus a multiple of one draw."""
    drawn = [np.array([v for d in r.draws for v in d.values]) for r in runs]
    given = [_difference((r.output[0], (0.0,) * len(r.output[1])), r.output) for r in runs]
    size = drawn[0].size
    if not size or any(len(d.scale) not in (1, len(d.values)) for d in runs[0].draws if d.scale):
        return None
    outputs = [g for g in given if g is not None and g.size == size]
    if len(outputs) < len(runs) or any(d.size != size for d in drawn) or len(runs) < 3:
        return None
    noise, moved = np.array(drawn) - drawn[0], np.array(outputs) - outputs[0]
    power = (noise**2).sum(axis=0)
    if not np.isfinite(power).all() or not np.isfinite(moved).all():
        return None
    factor = np.abs((noise * moved).sum(axis=0)) / np.where(power > 0, power, 1.0)
    sign = np.sign((noise * moved).sum(axis=0))
    if np.any(np.abs(moved - sign * factor * noise) > np.maximum(ROUNDED, NEAR_ONE / 2 * factor)):
        return None
    # Against the mechanism only what is sure: a factor is taken a little larger, unless it is 1.
    return np.where(np.abs(factor - 1) <= NEAR_ONE, 1.0, np.where(power > 0, factor * (1 + NEAR_ONE), 1.0))
