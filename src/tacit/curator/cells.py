"""The cells of a release as columns: the keys that a value belongs to, in the order of the values."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.curator.assignments import NoisyParts
from tacit.curator.functions.assignment import FunctionAssignment
from tacit.curator.quantile_choice import SelectedRanks
from tacit.curator.synthesised import SynthesisAssignment
from tacit.errors import InvalidParameter, visible
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.sources.axes import Axis, labels_at
from tacit.sources.columns import Date
from tacit.statistics.base import Question

if TYPE_CHECKING:
    from tacit.curator.release import Release

ALL = "all"
TAKEN = ("value", "low", "high", "quality")
"""Column names of released numbers: a key with such a name becomes `value_key`."""


def label(value: Any) -> Any:
    """A key for people: ranges as text, other keys unchanged."""
    if isinstance(value, tuple) and len(value) == 2:
        return f"{_short(value[0])} to {_short(value[1])}"
    return value.item() if isinstance(value, np.generic) else value


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def key_columns(question: Question, noisy: NoisyParts) -> dict[str, list[Any]]:
    """One column for each key, in readable form; no column for a statistic of the whole table."""
    return {name: [label(v) for v in column] for name, column in raw_keys(question, noisy).items()}


def raw_keys(question: Question, noisy: NoisyParts) -> dict[str, list[Any]]:
    """The same with ranges as pairs."""
    return renamed(_keys(question, noisy))


def keys_at(question: Question, noisy: NoisyParts, places: Any) -> dict[str, list[Any]]:
    """The same for some cells only, so that the others of a large table are not made."""
    places = np.asarray(places)
    if noisy.keys is None and question.statistic.layout != "cells":
        chosen = places.tolist()
        return {name: [column[i] for i in chosen] for name, column in raw_keys(question, noisy).items()}
    found: dict[str, list[Any]] = {}
    if noisy.keys is not None:
        for axis, column in zip(question.axes, noisy.keys, strict=True):
            found[axis.column] = [column[i] for i in places.tolist()]
    elif question.axes:
        codes = np.unravel_index(places, tuple(a.size or 0 for a in question.axes))
        for axis, code in zip(question.axes, codes, strict=True):
            found[axis.column] = labels_at(axis, code).tolist()
    return renamed(found)


def renamed(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Columns of keys under names that no column of released numbers has."""
    out: dict[str, list[Any]] = {}
    for name, column in found.items():
        out[name if name not in TAKEN else _fresh(f"{name}_key", (*found, *out))] = column
    return out


def _fresh(name: str, taken: Iterable[str]) -> str:
    """The name, with underscores appended until it is free."""
    others = set(taken)
    while name in others:
        name += "_"
    return name


def _keys(question: Question, noisy: NoisyParts) -> dict[str, list[Any]]:
    if noisy.keys is not None:
        names = [a.column for a in question.axes]
        return {n: list(column) for n, column in zip(names, noisy.keys, strict=True)}
    layout = question.statistic.layout
    if layout == "tables":
        return _margins(question)
    if layout == "levels":
        return _levels(question)
    if layout == "listed":
        return question.statistic.listed(question)
    if layout == "ends":
        return {"bound": ["low", "high"]}
    columns = _product(question.axes)
    if layout == "shares":
        statistic: Any = question.statistic
        shares = statistic.at
        cells = math.prod(a.size or 0 for a in question.axes)
        columns = {n: [v for v in c for _ in shares] for n, c in columns.items()}
        columns[_fresh("share", columns)] = [float(s) for _ in range(cells) for s in shares]
    return columns


def _levels(question: Question) -> dict[str, list[Any]]:
    """The level, and for nested columns one column each ("all" above), else the node."""
    names = [a.column for a in question.axes]
    level = _fresh("level", names)
    out: dict[str, list[Any]] = {level: []} | {n: [] for n in names}
    for part, nodes in zip(question.parts, question.details["levels"], strict=True):
        for node in nodes:
            out[level].append(int(part.name.split()[-1]))
            keys = node if isinstance(node, tuple) else (node,)
            for i, name in enumerate(names):
                out[name].append(_word(keys[i]) if i < len(keys) else ALL)
    return out


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(label(value))


def _product(axes: Sequence[Axis]) -> dict[str, list[Any]]:
    sizes = [a.size or 0 for a in axes]
    out: dict[str, list[Any]] = {}
    for i, axis in enumerate(axes):
        inner, outer = math.prod(sizes[i + 1 :]), math.prod(sizes[:i])
        labels = list(axis.labels)
        out[axis.column] = [v for v in labels for _ in range(inner)] * outer
    return out


def _margins(question: Question) -> dict[str, list[Any]]:
    """One column for each variable; "all" in the tables that do not have it."""
    names = list(dict.fromkeys(a.column for p in question.parts for a in p.axes))
    out: dict[str, list[Any]] = {n: [] for n in names}
    for part in question.parts:
        columns = _product(part.axes)
        size = math.prod(a.size or 0 for a in part.axes)
        for name in names:
            # Beside "all" a key is a word too: a column has one type.
            out[name].extend(_word(v) for v in columns.get(name, [ALL] * size))
    return out


# Which released cells can be used: one rule, one list of words, for pages, files and terminals.
#
# With h the distance from a released value to the farther end of its interval, before the interval was cut at 0 or at
# a declared bound:
#
#     good                h at most 25% of the value
#     use with care       h above 25% of the value
#     too noisy to use    h above 50% of the value, or no end is known
#     no value            the noisy parts give no number
#     no interval         none was asked for (quantiles alone, `interval=False`), so that nothing is judged
#
# The rule reads what was released and nothing else, so it costs nothing and every reader can check it. Days have no
# zero: a day is judged against a year. A released function may well cross zero: its points are judged against the
# largest of its shown values. A 0 that has noise is therefore never good, and neither is a count that was raised to
# 0: its interval may be cut to [0, 0], its noise is not. Only a 0 that no unit can move is good.
#
# Releases of the first rule were judged by the interval as it is shown, and say nothing about it; their certificates
# bind the words that it gave. They keep them: `RULE` stands with every answer that is recorded now
# (`data.quality_rule`). With it came that the ends of intervals of days are rounded outwards; those of the first rule
# were rounded to the nearest.

GOOD, CARE, NOISY, ABSENT, UNJUDGED = "", "care", "noisy", "absent", "unjudged"
WORDS = {
    GOOD: "good", CARE: "use with care", NOISY: "too noisy to use", ABSENT: "no value", UNJUDGED: "no interval",
}  # fmt: skip
"""The words of each flag, by its id, the same in every display."""
RULE = 2
"""Today's rule: an interval is judged before it is cut. Records without a rule follow rule 1."""
YEAR = 365.25
_ORDER = (GOOD, CARE, NOISY, ABSENT, UNJUDGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFlag:
    """A mark on cells, with its meaning: id in rows, label for people."""

    id: str
    label: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRule:
    """h / |value| above `care`: use with care; above `noisy`: too noisy to use.

    With `of`, h is compared with that number instead, for scales whose zero has no meaning; `named` describes it.
    Without `before_cut` it is the first rule, for releases from that time. Without `judges` there are no
    intervals, because none were asked for.
    """

    care: float = 0.25
    noisy: float = 0.5
    of: float | None = None
    named: str = "the value"
    before_cut: bool = True
    judges: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.care <= self.noisy < math.inf:
            raise InvalidParameter(
                parameter="care", value=(self.care, self.noisy), must="be positive and at most `noisy`"
            )
        if self.of is not None and not 0 < self.of < math.inf:
            raise InvalidParameter(parameter="of", value=self.of, must="be positive and finite")

    def flag(self, value: float | None, low: float | None, high: float | None) -> str:
        """The id of the flag of a cell, "" for none; a value without an interval is not judged."""
        if value is None:
            return ABSENT
        if not self.judges:
            return UNJUDGED
        if low is None or high is None:
            return GOOD
        return self.judged(np.array([value]), np.array([max(high - value, value - low)]))[0]

    def codes(self, value: Floats, farthest: Floats) -> npt.NDArray[np.int8]:
        """0 to 3 for good, care, noisy and absent; a missing number is absent, and a missing end makes a value
        noisy. 4 where no interval was asked for.
        """
        there = np.isfinite(value)
        if not self.judges:
            return np.where(there, 4, 3).astype(np.int8)
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.abs(value) if self.of is None else self.of
            noisy = ~(farthest <= self.noisy * size)
            care = ~(farthest <= self.care * size)
        return np.where(there, np.where(noisy, 2, np.where(care, 1, 0)), 3).astype(np.int8)

    def judged(self, value: Floats, farthest: Floats) -> list[str]:
        """The id of the flag of every cell, by its value and the distance to its interval's far end."""
        return [_ORDER[code] for code in self.codes(value, farthest).tolist()]

    @property
    def sentence(self) -> str:
        """The whole rule in a sentence."""
        if not self.judges:
            return "No intervals were asked for, so that no value is judged"
        cut = ", before it is cut at 0 or at a declared bound" if self.before_cut else ""
        return (
            f"With h the distance from a value to the farther end of its interval{cut}: {WORDS[CARE]} where h is above "
            f"{self.care:.0%} of {self.named}, {WORDS[NOISY]} where it is above {self.noisy:.0%}, "
            f"otherwise {WORDS[GOOD]}"
        )

    @property
    def flags(self) -> tuple[QualityFlag, ...]:
        """The flags that this rule gives, with their explanations."""
        absent = QualityFlag(
            id=ABSENT, label=WORDS[ABSENT],
            explanation="the noisy parts give no number here, as a mean of a group that may be empty",
        )  # fmt: skip
        if not self.judges:
            why = "nothing was spent on an interval: how far the value may be from the table's is not known"
            return (QualityFlag(id=UNJUDGED, label=WORDS[UNJUDGED], explanation=why), absent)
        reaches = "the interval reaches further from the value than"
        return (
            QualityFlag(
                id=CARE, label=WORDS[CARE],
                explanation=f"{reaches} {self.care:.0%} of {self.named}: the value is good to one digit at most",
            ),
            QualityFlag(
                id=NOISY, label=WORDS[NOISY],
                explanation=f"{reaches} {self.noisy:.0%} of {self.named}: the noise says more than the data; "
                "group more coarsely or pay more to learn it",
            ),
            absent,
        )  # fmt: skip

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All words that this rule may give to a cell."""
        each = (UNJUDGED, ABSENT) if not self.judges else (GOOD, CARE, NOISY, ABSENT)
        return tuple(WORDS[flag] for flag in each)


def rule_of(release: Release) -> QualityRule:
    """The rule for a release: relative to the value, except for days, functions and errors of synthetic rows."""
    statistic: Any = release.planned.ask.statistic
    assignment = release.planned.assignment
    now = release.data.get("quality_rule", 1) >= RULE
    if isinstance(assignment, SelectedRanks) and assignment.counts is None:
        return QualityRule(judges=False, before_cut=now)
    if isinstance(assignment, FunctionAssignment) and assignment.fit.scale is not None:
        values = np.abs(np.ravel(release.estimate.value))
        largest = float(np.max(values, initial=0.0, where=np.isfinite(values)))
        if largest > 0:
            return QualityRule(of=largest, named="the largest value", before_cut=now)
        return QualityRule(before_cut=now)
    if isinstance(assignment, SynthesisAssignment):
        return QualityRule(of=0.1, named="a total variation of 0.1", before_cut=now)
    if statistic.in_column_units and isinstance(release.planned.question.schema[statistic.column], Date):
        return QualityRule(of=YEAR, named="a year", before_cut=now)
    return QualityRule(before_cut=now)


def flags_of(release: Release) -> list[str]:
    """The id of the flag of every cell of a release, by the rule that it was made by."""
    if release.words is not None:
        named = {word: flag for flag, word in WORDS.items()}
        return [named[word] for word in release.words]
    rule, found = rule_of(release), release.estimate
    shown = found if rule.before_cut else replace(found, reach=None)
    return rule.judged(np.ravel(found.value).astype(np.float64), np.ravel(shown.farthest).astype(np.float64))


# Cells of a CSV file: texts that a spreadsheet takes for texts, and that can be turned back into what they were.
#
# A key that was not known in advance is somebody's text. One that begins with =, +, - or @ is a formula to a
# spreadsheet; one with an escape sequence steers a terminal. So, in texts only (numbers stay numbers):
#
# 1. control characters, line breaks and marks of direction are spelled out as `\u{hex}` (see `tacit.errors.visible`);
# 2. a text that begins like a formula, or with an apostrophe, gets one apostrophe in front.
#
# Undone in the other order: take one apostrophe off the front if there is one, then read `\u{hex}` as its character.
# Parquet files hold the texts as they are.

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20'"
_SPELLED = re.compile(r"\\u\{([0-9a-f]+)\}")


def safe_text(text: str) -> str:
    """A text in the form that is safe in a CSV file."""
    shown = visible(text)
    return f"'{shown}" if shown.lstrip()[:1] and shown.lstrip()[0] in FORMULA else shown


def original(cell: str) -> str:
    """The text that `safe_text` was given."""
    bare = cell[1:] if cell.startswith("'") else cell
    return _SPELLED.sub(lambda match: chr(int(match[1], 16)), bare)


def csv_text(columns: Mapping[str, Any]) -> str:
    """Columns as CSV: floats by their shortest text, lines that end in a line feed. The same cells give the same
    bytes.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_text(name) for name in columns])
    writer.writerows(zip(*map(_cells, columns.values()), strict=True))
    return out.getvalue()


def _cells(column: Any) -> list[Any]:
    """A column's cells, each as `_cell` has it; columns of one type at once, and each text once."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    kinds = set(map(type, values))
    if kinds <= {float}:
        return list(map(repr, values))
    if kinds <= {int, bool, type(None)}:
        return values
    if kinds <= {str}:
        safe = {text: safe_text(text) for text in set(values)}
        return [safe[text] for text in values]
    return [_cell(value) for value in values]


def _cell(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return repr(value)
    return safe_text(value) if isinstance(value, str) else value
