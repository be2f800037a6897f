"""Tables with all their totals: cells, margins and the grand total of one release, which add up.

By default the cells get noise and totals are sums of them. With declared weights of importance, some margins get
noise of their own, for their share of the price. Generalised least squares joins the information about each number.
Either
way the error of every number is a known linear combination of the noise, whose distribution is computed and
not approximated.
Displayed numbers are whole, not negative and add up. Intervals are those of the unbiased estimate, cut at 0, and
contain the displayed number as well. Theorem `tables-with-totals`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, TooManyCells, UnknownName
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import members, set_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import bisected
from tacit.guarantees import Unit
from tacit.mechanisms import Laplace, RoundedGaussian
from tacit.mechanisms.base import PartNoise
from tacit.mechanisms.spreads import normal_factor
from tacit.sources.axes import Axis, Binned, CountRows, axis_of
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    Part,
    Question,
    Statistic,
    boxes,
    by_columns,
    column_of,
    filter_of,
    stacked,
)
from tacit.statistics.consistency import nearest_rows
from tacit.statistics.families import NoisyTable, consistent_margins
from tacit.statistics.forms import Parts, reals

Columns = tuple[str, ...]

MOST_COLUMNS = 6
MOST_NUMBERS = 1_000_000
CELLS, TOTAL, ALL = "cells", "total", "all"
CROSS = " x "
SLACK = 1e-11
"""Added to a miss: far more than what transforms of exact probabilities lose by rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWithTotals(Statistic):
    """The number of rows for each combination of keys, and in all totals over some of the columns.

    A row adds 1 to one cell and so to one number of each block that gets noise: each moves by m in L1, L2 and Linf for
    a unit of m rows (replace-one: 2m, sqrt(2) m, m), and has its share of the price. The number of rows has no noise
    where no unit can move it.
    """

    kind: ClassVar[str] = "table"
    fits: ClassVar[
        Literal["noise", "ranks", "clamping bounds", "thresholds", "function", "synthesis", "totals", "tree"]
    ] = "totals"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "listed"
    whole: ClassVar[bool] = True

    columns: tuple[str | Binned, ...]
    totals: str = ALL
    importance: tuple[tuple[str, Fraction], ...] = ()

    def __post_init__(self) -> None:
        self._check_words()
        if not 1 <= len(self.columns) <= MOST_COLUMNS:
            raise InvalidParameter(
                parameter="columns", value=len(self.columns), must=f"be one to {MOST_COLUMNS} columns"
            )
        if not isinstance(self.totals, str) or self.totals not in (ALL, "none"):
            raise UnknownName(what="totals", name=str(self.totals), known=(ALL, "none"))
        set_fields(self, importance=members("importance", self.importance))
        for pair in self.importance:
            if not (
                isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Fraction) and pair[1] > 0
            ):
                raise InvalidParameter(
                    parameter="importance", value="a weight", must="be positive numbers by name",
                    hint='importance={"cells": 4, "total": 1, "sex": 2}',
                )  # fmt: skip
        if self.importance and CELLS not in dict(self.blocks):
            raise InvalidParameter(
                parameter="importance", value=[n for n, _ in self.importance], must='name "cells"',
                hint="margins alone do not determine the cells",
            )  # fmt: skip

    @property
    def names(self) -> Columns:
        """The columns' names."""
        return tuple(map(column_of, self.columns))

    @property
    def blocks(self) -> tuple[tuple[str, Fraction], ...]:
        """The noisy tables, each with its share of the price."""
        weights = self.importance or ((CELLS, Fraction(1)),)
        known = {self._block(of): of for of in self.subsets}
        found: dict[str, Fraction] = {}
        for name, weight in weights:
            own = self._named(name, known)
            found[own] = found.get(own, Fraction(0)) + weight
        total = sum(found.values())
        return tuple((name, weight / total) for name, weight in found.items())

    @property
    def subsets(self) -> list[Columns]:
        """All sets of columns, the whole one first and the empty one last."""
        n = self.names
        return [of for size in range(len(n), -1, -1) for of in itertools.combinations(n, size)]

    def _block(self, of: Columns) -> str:
        return CELLS if of == self.names else CROSS.join(of) if of else TOTAL

    def _named(self, name: str, known: Mapping[str, Columns]) -> str:
        wanted = name.split(CROSS)
        for own, of in known.items():
            if name == own or (of and sorted(wanted) == sorted(of)):
                return own
        raise UnknownName(what="table of importance", name=str(name), known=list(known))

    def on(self, schema: Schema, unit: Unit) -> Question:
        if self.by:
            raise InvalidParameter(
                parameter="by", value=self.by, must="be empty for a table", hint="name it as layers"
            )
        frame = self._frame(schema, unit, ())
        axes = [axis_of(c, schema) for c in self.columns]
        for axis in axes:
            if axis.size is None:
                raise InvalidParameter(
                    parameter="columns",
                    value=axis.column,
                    must="have declared keys",
                    hint="declare category([...])",
                )
        numbers = sum(math.prod(self._sizes(axes, of).values()) for of in self.subsets)
        if numbers > MOST_NUMBERS:
            raise TooManyCells(cells=numbers, limit=MOST_NUMBERS)
        absent = self.where is not None or frame.absent or not all(a.always for a in axes)
        held = {self._block(of): tuple(a for a in axes if a.column in of) for of in self.subsets}
        moved = {
            name: boxes([(1, 1)], unit, cells=math.prod(a.size or 0 for a in held[name]), absent=absent)
            for name in held
        }
        noisy = [name for name, _ in self.blocks]
        # A total that nobody can move is public: it is told without noise, asked for or not.
        noisy += [TOTAL] if TOTAL not in noisy and moved[TOTAL].none else []
        rows = CountRows(where=self.where)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=tuple(axes),
            requests=(Aggregation(axes=tuple(axes), aggregates=(rows,), groups=()),),
            parts=tuple(Part(name=n, axes=held[n], exact=moved[n].none) for n in noisy),
            sensitivity=moved[CELLS] if len(noisy) == 1 else stacked(len(noisy), unit),
            sensitivities={n: moved[n] for n in noisy}, form=None,
            details={"shares": dict(self.blocks)},
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As in other statistics; binned columns in the form of `by`."""
        said = super().to_dict()
        shown = [c if isinstance(c, str) else {"column": c.column, "edges": _edges(c)} for c in self.columns]
        return {**said, "columns": shown}

    @staticmethod
    def _sizes(axes: Sequence[Axis], of: Columns) -> dict[str, int]:
        return {a.column: a.size or 0 for a in axes if a.column in of}

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        held = np.asarray(cells[0].values[CountRows(where=self.where)])
        found = {}
        for part in question.parts:
            kept = {a.column for a in part.axes}
            found[part.name] = held.sum(axis=tuple(i for i, n in enumerate(self.names) if n not in kept))
        return found

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """The displayed numbers alone."""
        return self.answers(question, {}, noisy, 0.95)[0]

    # --- what is made of the blocks -----------------------------------------------------------------------
    @property
    def shown(self) -> list[Columns]:
        """The tables that are published."""
        return self.subsets if self.totals == ALL else self.subsets[:1]

    def listed(self, question: Question) -> dict[str, list[Any]]:
        """One column for each variable; "all" in a sum over that variable."""
        out: dict[str, list[Any]] = {n: [] for n in self.names}
        labels = {a.column: [_word(v) for v in a.labels] for a in question.axes}
        for of in self.shown:
            for keys in itertools.product(*(labels[n] for n in of)):
                chosen = dict(zip(of, keys, strict=True))
                for name in self.names:
                    out[name].append(chosen.get(name, ALL))
        return out

    def estimates(self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts) -> Floats:
        """The unbiased cells: the noisy ones, or the least-squares fit of all blocks."""
        variances = {p.name: block_variance(noise.get(p.name)) for p in question.parts}
        tables = [
            NoisyTable(
                columns=tuple(a.column for a in p.axes),
                values=reals(noisy[p.name]),
                variance=variances[p.name],
            )
            for p in question.parts
        ]
        return tables[0].values if len(tables) == 1 else consistent_margins(tables)[_whole(question)]

    def answers(
        self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts, level: float
    ) -> tuple[Floats, ...]:
        """Displayed value, low and high of every number of every table, and the distance of each end before it was
        cut.
        """
        cells = self.estimates(question, noise, noisy)
        return numbers(self.names, self.shown, cells, top_down(cells), self.halves(question, noise, level))

    def halves(
        self, question: Question, noise: Mapping[str, PartNoise], level: float
    ) -> dict[Columns, float]:
        """The bound on the error of a number of each table: the same for all of its numbers."""
        sizes = tuple((a.column, a.size or 0) for a in question.axes)
        held = tuple((tuple(a.column for a in p.axes), noise.get(p.name)) for p in question.parts)
        return {of: half_width(sizes, held, of, 1 - level) for of in self.shown}

    def half_widths(self, question: Question, noise: Mapping[str, PartNoise], level: float) -> Floats:
        """The bound on the error of every published number, in their order."""
        sizes = {a.column: a.size or 0 for a in question.axes}
        halves = self.halves(question, noise, level)
        return np.concatenate([np.full(math.prod(sizes[n] for n in of), halves[of]) for of in self.shown])

    def expects(
        self, question: Question, noise: Mapping[str, PartNoise], level: float, rows: int | None
    ) -> tuple[float | None, float | None, str]:
        """The error of a cell, and in words those of the totals."""
        halves = self.halves(question, noise, level)
        told = [f"{CROSS.join(of) or TOTAL} ± {half:,.3g}" for of, half in halves.items() if of != self.names]
        sizes = tuple((a.column, a.size or 0) for a in question.axes)
        held = tuple((tuple(a.column for a in p.axes), noise.get(p.name)) for p in question.parts)
        variance = sum(
            block_variance(law) * float(counts @ weights**2)
            for law, weights, counts in combination(sizes, held, self.names)
        )
        mean = math.sqrt(2 * variance / math.pi) if len(held) > 1 else _mean(held[0][1])
        return mean, halves[self.names], "; totals: ".join(["a cell", *([", ".join(told)] if told else [])])


def _edges(binned: Binned) -> Any:
    if isinstance(binned.edges, int):
        return binned.edges
    return [e if isinstance(e, int | float | str) else str(e) for e in binned.edges]


def _mean(law: PartNoise | None) -> float:
    return 0.0 if law is None else law.mean_errors(1)[0]


def _whole(question: Question) -> int:
    return next(i for i, p in enumerate(question.parts) if p.name == CELLS)


def block_variance(law: PartNoise | None) -> float:
    """The variance of a number of a block; 0 without noise."""
    return 0.0 if law is None else law.mean_variances(1)[0]


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return " to ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def numbers(
    names: Columns,
    shown: Sequence[Columns],
    cells: Floats,
    display: AnyArray,
    halves: Mapping[Columns, float],
) -> tuple[Floats, ...]:
    """The shown tables of unbiased cells, one after the other: displayed value, low, high, and the bound on the error.

    `display` has whole numbers that are not negative. Intervals are those of the unbiased numbers, cut at 0, and hold
    the displayed ones.
    """
    value, low, high, reach = [], [], [], []
    for of in shown:
        gone = tuple(i for i, n in enumerate(names) if n not in of)
        middle = np.ravel(cells.sum(axis=gone))
        told = np.ravel(display.sum(axis=gone)).astype(np.float64)
        half = halves[of]
        # The truth is whole and not negative: ends are the outermost such numbers inside.
        ends = (
            np.maximum(np.ceil(middle - half - 1e-6), 0.0),
            np.maximum(np.floor(middle + half + 1e-6), 0.0),
        )
        value.append(told)
        low.append(np.minimum(ends[0], told))
        high.append(np.maximum(ends[1], told))
        reach.append(np.full(told.size, half))
    return tuple(map(np.concatenate, (value, low, high, reach)))


def top_down(cells: Floats, held: AnyArray | None = None) -> AnyArray:
    """Whole non-negative numbers: the total first, then column by column the nearest that add up to it.

    `held` are the sums over all but the first columns where these are fixed already; an array with their axes.
    """
    given = 0 if held is None else held.ndim
    total = max(round(float(cells.sum())), 0)
    last = np.array([total], dtype=np.int64) if held is None else np.ravel(held)
    for axis in range(given, cells.ndim):
        table = cells.sum(axis=tuple(range(axis + 1, cells.ndim))).reshape(-1, cells.shape[axis])
        floor = np.floor(table)
        last = np.ravel(nearest_rows(floor.astype(np.int64), last, fractions=table - floor))
    return np.asarray(last).reshape(cells.shape)


# The error of a number: which noise it holds, how often.
#
# In the family of least squares the interaction U of the tables is the average of the blocks' own interactions,
# weighted by 1 / (variance * cells added up). A number of table T at key k therefore holds the noise of cell c of
# block S with the weight sum over U within S and T of share(S, U) * prod over U of (1[c_i = k_i] - 1/n_i) / prod over
# T \ U of n_i: it depends on which of the common columns agree, and on nothing else.

Laws = tuple[tuple[Columns, PartNoise | None], ...]
Sizes = tuple[tuple[str, int], ...]
LEAST = 1e-200
"""A variance below this, at prices that protect nobody, underflows."""


def combination(sizes: Sizes, blocks: Laws, of: Columns) -> list[tuple[PartNoise | None, Floats, Floats]]:
    """The weights of each block's noise in a number of this table, and the number of cells with each."""
    n = dict(sizes)
    shares: dict[Columns, dict[int, float]] = {}
    for size in range(len(of) + 1):
        for part in itertools.combinations(of, size):
            over = {i: b for i, b in enumerate(blocks) if set(part) <= set(b[0])}
            exact = [i for i, (_, law) in over.items() if law is None]
            # Of several blocks without noise, which agree, one speaks.
            inverse = {
                i: (1.0 if i == exact[0] else 0.0)
                if exact
                else 1 / (max(block_variance(law), LEAST) * math.prod(n[c] for c in columns if c not in part))
                for i, (columns, law) in over.items()
            }
            total = sum(inverse.values())
            shares[part] = {i: w / total for i, w in inverse.items()}
    found = []
    for i, (columns, law) in enumerate(blocks):
        common = [c for c in of if c in columns]
        weights, counts = [], []
        for agree in itertools.product((True, False), repeat=len(common)):
            same = dict(zip(common, agree, strict=True))
            weight = 0.0
            for size in range(len(common) + 1):
                for part in itertools.combinations(common, size):
                    share = shares[part].get(i, 0.0)
                    bend = math.prod((1.0 if same[c] else 0.0) - 1 / n[c] for c in part)
                    weight += share * bend / math.prod(n[c] for c in of if c not in part)
            weights.append(weight)
            outside = math.prod(n[c] for c in columns if c not in common)
            counts.append(outside * math.prod(n[c] - 1 for c in common if not same[c]))
        found.append((law, np.array(weights), np.array(counts, dtype=np.float64)))
    return found


@lru_cache(maxsize=256)
def half_width(sizes: Sizes, blocks: Laws, of: Columns, miss: float) -> float:
    """t with Pr[|error| > t] <= miss for a number of this table."""
    terms = [
        (law, float(abs(w)), int(k))
        for law, weights, counts in combination(sizes, blocks, of)
        if law is not None
        for w, k in zip(weights, counts, strict=True)
        if k > 0 and abs(w) > 1e-12
    ]
    if not terms:
        return 0.0
    normal = sum(k * w * w * law.interval_variance for law, w, k in terms if isinstance(law, RoundedGaussian))
    laws = [(_noise_scale(law), w, k) for law, w, k in terms if not isinstance(law, RoundedGaussian)]
    if not laws:
        return normal_factor(miss) * math.sqrt(normal)
    if not normal and len(laws) == 1 and abs(laws[0][1] - 1) < 1e-9:
        return float(whole_quantile(laws[0][0], laws[0][2], miss))
    return mixed_quantile(tuple(laws), miss, normal=normal)


def _noise_scale(law: PartNoise | None) -> float:
    assert isinstance(law, Laplace)
    return float(law.distribution.noise_scale)


def _log_wave(scale: float, waves: Floats) -> Floats:
    """ln E cos(s X) of a discrete Laplace X: (1 - q)^2 / (1 - 2 q cos s + q^2), q = e^(-1/scale)."""
    q = math.exp(-1 / scale)
    return np.asarray(2 * math.log1p(-q) - np.log((1 - q) ** 2 + 4 * q * np.sin(waves / 2) ** 2))


@lru_cache(maxsize=1024)
def whole_quantile(scale: float, terms: int, miss: float) -> int:
    """The least whole t with Pr[|X_1 + ... + X_k| <= t] >= 1 - miss, X discrete Laplace of this scale: by its
    distribution.

    The probabilities are a Fourier sum over a period so long that what wraps around is below 1e-13.
    """
    std = math.sqrt(terms) * math.sqrt(2) * scale
    length = 1 << math.ceil(math.log2(24 * std + 70 * scale + 64))
    waves = 2 * math.pi * np.arange(length // 2 + 1) / length
    law = np.fft.irfft(np.exp(terms * _log_wave(scale, waves)), n=length)
    inside = law[0] + 2 * np.concatenate([[0.0], np.cumsum(law[1 : length // 2])])
    return int(np.argmax(inside >= 1 - miss + SLACK))


WIDE = 0.5
POINTS = 1 << 15


@lru_cache(maxsize=1024)
def mixed_quantile(laws: tuple[tuple[float, float, int], ...], miss: float, *, normal: float = 0.0) -> float:
    """t with Pr[|sum of w X + Z| > t] <= miss, X discrete Laplace; `laws` has scale, weight and number of each.

    Z is normal, with the variance `normal`.

    With V = U1 + U2, both uniform on +-a/2 and independent, |E| > t implies |E + V| > t - a: so t is a and the
    quantile of E + V, whose transform falls fast enough to be inverted (Davies 1973). a is half a step, and a hundredth
    of the standard deviation where that is more.
    """
    variance = sum(k * (w * scale) ** 2 * 2 for scale, w, k in laws) + normal
    wide = max(WIDE, math.sqrt(variance) / 100)
    variance += wide**2 / 6
    widest = max(w * scale for scale, w, _ in laws)
    period = 24 * math.sqrt(variance) + 70 * widest + 8 * wide
    order = np.arange(POINTS) + 0.5
    waves: Floats = np.asarray(2 * math.pi / period * order, dtype=np.float64)
    log = sum((k * _log_wave(scale, w * waves) for scale, w, k in laws), np.zeros(POINTS))
    phi = np.exp(log - normal * waves**2 / 2) * np.sinc(waves * wide / (2 * math.pi)) ** 2
    cut = float((4 / wide / waves[-1]) ** 2) / (4 * math.pi)

    def missed(t: float) -> float:
        return 1 - 2 * float((np.sin(waves * t) * phi / (math.pi * order)).sum()) + 2 * cut + SLACK

    return bisected(lambda t: missed(t) <= miss, 0.0, period / 2, halvings=60)[1] + wide


def table(
    rows: By,
    columns: By = None,
    layers: By = None,
    *,
    totals: str = ALL,
    importance: Mapping[str, Any] | None = None,
    where: str | Expression | None = None,
) -> TableWithTotals:
    """A table of counts with all its totals, which add up: whole, not negative, each with an interval for the noise.

    `importance` gives some totals noise of their own, {"cells": 4, "total": 1, "sex": 1}: weights for dividing
    the price, "cells" among them. Without it the cells have all of the price and totals are their sums, which
    is best unless totals matter much more than cells.
    """
    entries = (*by_columns(rows), *by_columns(columns), *by_columns(layers))
    if not entries:
        raise EmptyComposition(what="the list of columns", hint="name the rows of the table")
    if importance is not None and not isinstance(importance, Mapping):
        raise InvalidParameter(
            parameter="importance", value=type(importance).__name__, must="be weights by name",
            hint='importance={"cells": 4, "total": 1}',
        )  # fmt: skip
    weights = tuple((str(n), _weight(w)) for n, w in (importance or {}).items())
    return TableWithTotals(
        columns=by_columns(entries), totals=totals, importance=weights, where=filter_of(where)
    )


def _weight(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not 0 < value < math.inf:
        raise InvalidParameter(parameter="importance", value=value, must="be positive numbers")
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)
