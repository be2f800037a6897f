"""Finished synthetic rows: the rows themselves, counts of them, and bounds on their distance from the truth.

Only these six statements (docs/theory):

    public a public margin contains all columns of a filter: its declared counts
    measured       the first measured margin that holds all columns of a filter: its noise has the stated distribution
    error          the measured error of the finished rows: an upper bound for every checked margin at once
    choice         the information in the choices about every margin that could have been chosen, if that is narrower
    none           no margin with these columns was measured, checked or a candidate: a count without an interval
    number of rows the noisy number, from the one-way margins

Intervals are about the table, not about a population. All of this is post-processing.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Integers
from tacit.exact.data_classes import dataclass
from tacit.guarantees import People, Unit
from tacit.noise.source import SeededSource
from tacit.sources.axes import Axis, Bins, Cut, Listed
from tacit.sources.expressions import (
    And,
    Compare,
    Constant,
    Expression,
    IsIn,
    IsMissing,
    IsTrue,
    Not,
    Or,
    parse,
)
from tacit.sources.schema import Schema
from tacit.statistics.base import base_unit, row_limit
from tacit.statistics.synthetic import arrow_column
from tacit.synthesis.choices import choice_bounds, scaled_margins
from tacit.synthesis.rounds import Outcome
from tacit.synthesis.schedule import Schedule
from tacit.synthesis.trees import Margin

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MADE = "These rows are synthetic: drawn from noisy margins, nobody's own."
ROWS_SHARE, CHOICE_SHARE = 0.1, 0.2
"""Shares of an interval's miss: for the number of rows, and for the choices beside measured errors."""
MOST_SUMMED = 2**20
"""The widest sum of noise with an exact distribution; wider ones are bounded."""
NOT_FOR = (
    "statements about single rows: no row is anybody's",
    "margins without a measured error, and counts by more columns than were checked",
    "cells with fewer rows than the noise of their margin: noise alone may have filled them",
    "standard errors by the usual formulas: they leave out the noise",
)


def not_for_of(unit: Unit) -> tuple[str, ...]:
    """Forbidden uses of the rows; for people with several rows also the effect of bounding."""
    most = row_limit(unit)
    if not isinstance(base_unit(unit)[0], People):
        return NOT_FOR
    told = f"statements about persons: rows come out without them, and at most {most} of each person's rows were used"
    return (*NOT_FOR, told)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAnswer:
    """A count from the rows with its interval; `rests_on` names the statement behind the interval. No interval: NaN,
    NaN.
    """

    value: float
    low: float
    high: float
    confidence: float
    measured: bool
    rests_on: str

    @property
    def interval(self) -> tuple[float, float]:
        """Its two ends."""
        return self.low, self.high


@dataclass(frozen=True, kw_only=True, eq=False)
class Synthetic:
    """Synthetic rows with their measurements; `rows` is the table, `answer` counts, `matrix` shows errors."""

    axes: tuple[Axis, ...]
    schema: Schema
    schedule: Schedule
    outcome: Outcome = field(repr=False)
    checked: tuple[Margin, ...]
    candidates: tuple[Margin, ...] = ()
    public: Mapping[Margin, Integers] = field(default_factory=dict, repr=False)
    weight_column: str | None = None
    not_for: tuple[str, ...] = NOT_FOR
    seed: int
    confidence: float = 0.95
    publishable: bool = True
    made_up: bool = False
    certificate: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(a.column for a in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each axis, with the one for rows without a key."""
        return tuple((a.size or 0) + (0 if a.always else 1) for a in self.axes)

    @property
    def total(self) -> int:
        """The number of rows of the table: noisy, or that of the public margins."""
        return self.outcome.total

    @property
    def weight(self) -> float:
        """The number of rows of the table per synthetic row."""
        return self.total / len(self.outcome.rows)

    # --- the rows ---------------------------------------------------------------------------------------
    def to_arrow(self) -> pa.Table:
        """The rows with the schema's types; the metadata say that they are synthetic, and name the certificate."""
        import pyarrow as pa

        source = SeededSource(seed=self.seed)
        columns: dict[str, Any] = {}
        for i, axis in enumerate(self.axes):
            places = self.outcome.rows[:, i].astype(np.int64)
            absent = places >= (axis.size or 0)
            made = arrow_column(axis, np.where(absent, 0, places), self.schema, source)
            if isinstance(made, pa.DictionaryArray):
                made = made.dictionary_decode()
            if bool(absent.any()):
                made = pa.compute.if_else(pa.array(absent), pa.scalar(None, made.type), made)
            columns[axis.column] = made
        if self.weight_column is not None:
            columns[self.weight_column] = pa.array(np.full(len(self.outcome.rows), self.weight))
        return pa.table(columns).replace_schema_metadata(self.metadata)

    @property
    def metadata(self) -> dict[str, str]:
        """A file's metadata about its rows."""
        return {
            "synthetic": "true",
            "about": MADE,
            "certificate": self.certificate,
            "weight": repr(self.weight),
            "publishable": "true" if self.publishable else "false",
            "made_up": "true" if self.made_up else "false",
        }

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; `attrs` has the metadata."""
        frame = self.to_arrow().to_pandas(date_as_object=False)
        frame.attrs.update(self.metadata)
        return frame

    def to_csv(self) -> str:
        """The rows as CSV text: the bytes whose digest the certificate has."""
        out = io.BytesIO()
        self._write_csv(out)
        return out.getvalue().decode()

    def csv_digest(self) -> str:
        """The SHA-256 digest of the CSV text, which is never held as a whole."""
        sink = _Digest()
        self._write_csv(sink)
        return sink.digest.hexdigest()

    def _write_csv(self, file: Any) -> None:
        import pyarrow.csv

        pyarrow.csv.write_csv(self.to_arrow(), file, pyarrow.csv.WriteOptions(quoting_style="needed"))

    def write(self, path: str | os.PathLike[str]) -> Path:
        """The rows in a new file, .parquet (with metadata) or .csv."""
        import pyarrow.parquet

        place = Path(path)
        if place.suffix not in (".parquet", ".csv"):
            raise InvalidParameter(parameter="path", value=str(place), must="end in .parquet or .csv")
        try:
            with place.open("xb") as file:
                if place.suffix == ".parquet":
                    pyarrow.parquet.write_table(self.to_arrow(), file)
                else:
                    self._write_csv(file)
        except OSError as problem:
            raise InvalidParameter(
                parameter="path", value=str(place), must="be a new file in a folder that can be written to",
                hint=(problem.strerror or "").lower(),
            ) from None  # fmt: skip
        return place

    # --- counts with intervals --------------------------------------------------------------------------
    def answer(
        self, what: str = "count", *, where: str | Expression, confidence: float | None = None
    ) -> RowsAnswer:
        """The number of rows of the table that pass a filter, estimated from the synthetic rows, with an interval if
        there is one.

        The interval rests on the first measured margin that holds the filter's columns, or else on the measured error
        of the rows. The filter may not cut through a bin.
        """
        if what != "count":
            raise UnknownName(what="answer", name=str(what), known=("count",))
        level = self.confidence if confidence is None else _level(confidence)
        tree = parse(where)
        tree.check(self.schema)
        place = {name: i for i, name in enumerate(self.columns)}
        for name in sorted(tree.columns()):
            if name not in place:
                raise UnknownName(what="column of the synthetic rows", name=name, known=self.columns)
        margin = tuple(sorted(place[name] for name in tree.columns()))
        if not margin:
            raise InvalidParameter(parameter="where", value=str(tree), must="name a column")
        inside = passes(tree, margin, self.axes)
        counts = scaled_margins(self.outcome.rows, self.sizes, [margin], self.total)[margin]
        value = float(counts[np.ravel(inside)].sum())
        told = next((m for m in self.public if set(margin) <= set(m)), None)
        if told is not None:
            return RowsAnswer(
                value=value, low=value, high=value, confidence=level, measured=False,
                rests_on=f"the public margin {self.label(told)}, as it was declared",
            )  # fmt: skip
        first = self._first(margin)
        if first is not None:
            return self._measured(value, inside, margin, first, level)
        bound, rests_on = self._bound(margin, level)
        if bound is None:
            return RowsAnswer(
                value=value, low=math.nan, high=math.nan, confidence=level, measured=False, rests_on=rests_on
            )  # fmt: skip
        within = self.rows_within(ROWS_SHARE * (1 - level))
        off = (bound + within + abs(self.total - int(counts.sum()))) / 2
        return RowsAnswer(
            value=value, low=max(0.0, value - off), high=value + off, confidence=level, measured=False,
            rests_on=rests_on,
        )  # fmt: skip

    def label(self, margin: Margin) -> str:
        """A margin in words."""
        return " x ".join(self.columns[i] for i in margin)

    def _first(self, margin: Margin) -> tuple[Margin, Integers, float] | None:
        """The first measurement with these columns: one-way margins first, then the rounds in order."""
        if len(margin) == 1 and self.schedule.ones is not None:
            return margin, self.outcome.ones[margin[0]], float(self.schedule.ones.noise_std)
        for chosen, counts in zip(self.outcome.chosen, self.outcome.measured, strict=True):
            if set(margin) <= set(chosen):
                return chosen, counts, float(self.schedule.measuring.noise_std)
        return None

    def _measured(
        self, value: float, inside: Any, margin: Margin, first: tuple[Margin, Integers, float], level: float
    ) -> RowsAnswer:
        """The measured cells of the filter, with the distribution of their noise (theorem `measured-cells`)."""
        chosen, counts, std = first
        shape = [self.sizes[i] if i in margin else 1 for i in chosen]
        wide = np.broadcast_to(inside.reshape(shape), [self.sizes[i] for i in chosen]).ravel()
        cells = int(wide.sum())
        middle = float(counts[wide].sum())
        half = sum_within(std, cells, 1 - level)
        return RowsAnswer(
            value=value, low=max(0.0, middle - half), high=max(0.0, middle + half), confidence=level, measured=True,
            rests_on=f"the measured margin {self.label(chosen)}: {cells:,} cells with noise of {std:.3g} each",
        )  # fmt: skip

    def _bound(self, margin: Margin, level: float) -> tuple[float | None, str]:
        """An upper bound of ||t - S||_1 for this margin and its basis; None without one.

        Declarations alone decide how the measured errors and the choices share the miss, so the narrower of both may
        be used.
        """
        left = (1 - ROWS_SHARE) * (1 - level)
        possible = any(set(margin) <= set(c) for c in self.candidates)
        by_choice = 0.0 if not possible else CHOICE_SHARE * (1 - level) if self.schedule.errors else left
        found: list[tuple[float, str]] = []
        if self.outcome.errors is not None:
            reach = self.reach(1 - (left - by_choice))
            over = [
                max(0.0, float(y) + reach) + self._shift(c, margin)
                for c, y in zip(self.checked, self.outcome.errors.tolist(), strict=True)
                if set(margin) <= set(c)
            ]
            found += [(o, f"the measured error of the rows on {self.label(margin)}") for o in over]
        if by_choice:
            for c, bound in self.choice_bounds(by_choice).items():
                if set(margin) <= set(c):
                    reason = f"the choices: {self.label(c)} could have been chosen"
                    found.append((bound + self._shift(c, margin), reason))
        # A bound as large as the table says nothing.
        known = [pair for pair in found if pair[0] < 2 * self.total]
        if not known:
            return (
                None,
                "no margin with these columns was measured, checked or near enough: the interval is unknown",
            )
        return min(known)

    def _shift(self, larger: Margin, margin: Margin) -> int:
        """The distance of a margin's counts from those of a larger one, added up: only rounding sets them apart."""
        if len(self.outcome.rows) == self.total or larger == margin:
            return 0
        held = self._counts
        for m in (larger, margin):
            if m not in held:
                held.update(scaled_margins(self.outcome.rows, self.sizes, [m], self.total))
        shape = [self.sizes[i] for i in larger]
        gone = tuple(k for k, i in enumerate(larger) if i not in margin)
        return int(np.abs(held[larger].reshape(shape).sum(axis=gone).ravel() - held[margin]).sum())

    @cached_property
    def _counts(self) -> dict[Margin, Integers]:
        """Counts of the rows by margin, unchanged; computed on demand."""
        return {}

    def choice_bounds(self, miss: float) -> dict[Margin, float]:
        """Upper bounds of ||t - S||_1 by the choices, all at once but with this probability; empty without a record."""
        if self.outcome.choices is None:
            return {}
        return choice_bounds(
            self.outcome.choices, self.outcome.chosen, self.candidates, self.sizes, self.schedule, miss=miss
        )

    def reach(self, level: float) -> float:
        """With this confidence, no noisy error lies further below its true error."""
        from scipy.special import ndtri

        assert self.schedule.errors is not None
        each = -math.expm1(math.log(level) / len(self.checked))
        return float(-ndtri(each)) * float(self.schedule.errors.noise_std) + 0.5

    def rows_within(self, miss: float) -> float:
        """The bound on the error of the noisy number of rows, except with this probability; 0 for a declared one."""
        from scipy.special import ndtri

        if self.public or self.schedule.ones is None:
            return 0.0  # as declared
        weight = sum(1 / s for s in self.sizes)
        std = float(self.schedule.ones.noise_std) / math.sqrt(weight)
        return float(-ndtri(miss / 2)) * std + len(self.sizes) / (2 * weight) + 1.5

    def errors(self, confidence: float | None = None) -> dict[Margin, tuple[float, float, float]]:
        """For each checked margin its total variation from the table: estimate, low and high, all at once.

        That is half the L1 distance between the counts, over the noisy number of rows. High is an upper bound, low a
        lower one; each side holds for all margins together with this confidence. Shares, which are divided by the true
        number of rows, are further apart by at most |n - N| / (2 N) (`rows_within`).
        """
        if self.outcome.errors is None:
            return {}
        level = self.confidence if confidence is None else _level(confidence)
        reach, scale = self.reach(level), 2.0 * self.total
        noisy = dict(zip(self.checked, map(float, self.outcome.errors.tolist()), strict=True))
        # Adding cells up brings tables nearer: a margin is no further off than those that contain it.
        high = {c: y + reach for c, y in noisy.items()}
        low = {c: y - reach for c, y in noisy.items()}
        for c in sorted(noisy, key=len, reverse=True):
            for k in range(1, len(c)):
                for part in itertools.combinations(c, k):
                    if part in high:
                        shift = self._shift(c, part)
                        high[part] = min(high[part], high[c] + shift)
                        low[c] = max(low[c], low[part] - shift)
        return {
            c: (
                min(1.0, max(0.0, noisy[c]) / scale),
                max(0.0, low[c]) / scale,
                min(1.0, max(0.0, high[c]) / scale),
            )
            for c in noisy
        }

    @property
    def matrix(self) -> pd.DataFrame:
        """Upper bounds of the total variation of every column (diagonal) and pair, as a square table."""
        import pandas as pd

        found = self.errors()
        count = len(self.columns)
        table = np.full((count, count), math.nan)
        for margin, (_, _, high) in found.items():
            if len(margin) <= 2:
                table[margin[0], margin[-1]] = table[margin[-1], margin[0]] = high
        return pd.DataFrame(table, index=list(self.columns), columns=list(self.columns))

    @property
    def measurements(self) -> list[dict[str, Any]]:
        """The measurements, in order: the columns, the cells, and the noise of each cell."""
        told = {i for m in self.public for i in m}
        ones = [
            {"margin": [name], "cells": size, "noise_std": float(self.schedule.ones.noise_std)}
            for i, (name, size) in enumerate(zip(self.columns, self.sizes, strict=True))
            if self.schedule.ones is not None and i not in told
        ]
        return ones + [
            {
                "margin": [self.columns[i] for i in m],
                "cells": int(counts.size),
                "noise_std": float(self.schedule.measuring.noise_std),
            }
            for m, counts in zip(self.outcome.chosen, self.outcome.measured, strict=True)
        ]

    @property
    def filled_by_noise(self) -> dict[str, float]:
        """For each measured margin the share of its rows in cells measured below two deviations of the noise."""
        margins = list(dict.fromkeys(self.outcome.chosen))
        drawn = scaled_margins(self.outcome.rows, self.sizes, margins, self.total)
        out: dict[str, float] = {}
        std = float(self.schedule.measuring.noise_std)
        for margin, counts in zip(self.outcome.chosen, self.outcome.measured, strict=True):
            weak = counts < 2 * std
            out.setdefault(self.label(margin), float(drawn[margin][weak].sum()) / self.total)
        return out

    def __repr__(self) -> str:
        return (
            f"Synthetic({len(self.outcome.rows):,} rows of {len(self.columns)} columns for about {self.total:,}, "
            f"{len(self.outcome.chosen)} margins measured, {len(self.checked)} checked)"
        )


@cache
def sum_within(noise_std: float, cells: int, miss: float) -> float:
    """The bound on the sum of independent rounded normal draws, except with this probability.

    By the exact distribution: the probabilities of one draw, convolved. Sums with a wide range are bounded by
    the normal
    quantile and half a unit a draw for the rounding.
    """
    from scipy.special import ndtr, ndtri

    if not cells:
        return 0.0
    plain = float(-ndtri(miss / 2)) * noise_std * math.sqrt(cells) + cells / 2
    reach = math.ceil(12 * noise_std * math.sqrt(cells)) + 2
    one = math.ceil(12 * noise_std) + 2
    length = 1 << (2 * max(reach, one) + 1).bit_length()
    if length > MOST_SUMMED or miss < 1e-9:
        return plain
    steps = np.arange(-one, one + 1)
    below = ndtr((steps - 0.5) / noise_std)
    single = np.zeros(length)
    single[steps % length] = ndtr((steps + 0.5) / noise_std) - below
    law = np.fft.irfft(np.fft.rfft(single) ** cells, n=length)
    half = law[: length // 2]
    # P(|sum| <= q), less far more than the rounding of the transform and the mass outside of the range.
    inside = half[0] + 2 * np.concatenate([[0.0], np.cumsum(half[1:])])
    return min(plain, float(np.argmax(inside >= 1 - miss + 1e-11 + 1e-14 * cells)))


class _Digest(io.RawIOBase):
    """A file that keeps only the digest of the bytes written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        """Whether it takes bytes."""
        return True

    def write(self, data: Any) -> int:
        """Adds bytes to the digest."""
        self.digest.update(data)
        return len(data)


def _level(confidence: float) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidParameter(parameter="confidence", value=confidence, must="lie strictly between 0 and 1")
    return float(confidence)


# Filters on cells: true, false or unknown for each cell, as the engine has it for each row.

Truth = npt.NDArray[np.int8]
YES, NO, UNKNOWN = 1, 0, -1


def passes(tree: Expression, margin: Margin, axes: Sequence[Axis]) -> npt.NDArray[np.bool_]:
    """The cells of a margin that pass a filter; an error if the filter cuts through one."""
    place = {axes[i].column: k for k, i in enumerate(margin)}
    sizes = [(axes[i].size or 0) + (0 if axes[i].always else 1) for i in margin]
    held = {axes[i].column: axes[i] for i in margin}

    def shaped(column: str, values: Sequence[int]) -> Truth:
        full = [*values, UNKNOWN][: sizes[place[column]]]
        shape = [1] * len(margin)
        shape[place[column]] = len(full)
        return np.array(full, dtype=np.int8).reshape(shape)

    def truth(node: Expression) -> Truth:
        match node:
            case Constant(value=value):
                return np.full([1] * len(margin), YES if value else NO, dtype=np.int8)
            case IsMissing(column=column):
                known = held[column].size or 0
                out = [NO] * known + [YES]
                shape = [1] * len(margin)
                shape[place[column]] = sizes[place[column]]
                return np.array(out[: sizes[place[column]]], dtype=np.int8).reshape(shape)
            case IsTrue(column=column):
                return shaped(column, [int(bool(v)) for v in held[column].labels])
            case Compare(column=column, operator=operator, value=value):
                return shaped(column, _compared(held[column], operator, value))
            case IsIn(column=column, values=values):
                found = [_compared(held[column], "=", v) for v in values]
                return shaped(column, [max(cells) for cells in zip(*found, strict=True)])
            case Not(inner=inner):
                inside = truth(inner)
                return np.where(inside == UNKNOWN, UNKNOWN, 1 - inside).astype(np.int8)
            case And(parts=parts):
                every = np.broadcast_arrays(*map(truth, parts))
                any_no = np.any([e == NO for e in every], axis=0)
                any_unknown = np.any([e == UNKNOWN for e in every], axis=0)
                return np.where(any_no, NO, np.where(any_unknown, UNKNOWN, YES)).astype(np.int8)
            case Or(parts=parts):
                every = np.broadcast_arrays(*map(truth, parts))
                any_yes = np.any([e == YES for e in every], axis=0)
                any_unknown = np.any([e == UNKNOWN for e in every], axis=0)
                return np.where(any_yes, YES, np.where(any_unknown, UNKNOWN, NO)).astype(np.int8)
        raise InvalidParameter(parameter="where", value=str(node), must="be a filter of known parts")

    return np.asarray(np.broadcast_to(truth(tree) == YES, sizes))


_HOLDS: Mapping[str, Any] = {
    "=": lambda a, b, v: (a == v == b, not a <= v <= b),
    "!=": lambda a, b, v: (not a <= v <= b, a == v == b),
    "<": lambda a, b, v: (b < v, a >= v),
    "<=": lambda a, b, v: (b <= v, a > v),
    ">": lambda a, b, v: (a > v, b <= v),
    ">=": lambda a, b, v: (a >= v, b < v),
}
"""Whether the comparison holds for all values from a to b, and whether for none."""


def _compared(axis: Axis, operator: str, value: Any) -> list[int]:
    operator = {"==": "=", "<>": "!="}.get(operator, operator)
    if isinstance(axis, Listed):
        if operator in ("=", "!="):
            return [int((v == value) == (operator == "=")) for v in axis.values]
        return [int(_HOLDS[operator](v, v, value)[0]) for v in axis.values]
    assert isinstance(axis, Cut | Bins)
    firsts = list(axis.first_steps()) if isinstance(axis, Cut) else list(axis.steps)
    exact = axis.values.steps_of(value)
    out = []
    for first, after in itertools.pairwise(firsts):
        low, high = max(first, axis.values.lowest), min(after - 1, axis.values.highest)
        all_of, none_of = _HOLDS[operator](low, high, exact)
        if not all_of and not none_of:
            raise InvalidParameter(
                parameter="where", value=f"{axis.column} {operator} {value}", must="not cut through a bin",
                hint="compare with an edge of the bins that the rows were made with",
            )  # fmt: skip
        out.append(int(all_of))
    return out
