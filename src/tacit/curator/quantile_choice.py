"""The choice for quantiles: cumulative counts, or selections by rank with surrounding counts for the intervals.

A selection (`tacit.mechanisms.RankSelection`) spends nearly all of its price on the values. The rest buys counts over
ranges that are fine near the released values and coarse far from them, from which intervals follow as from cumulative
counts (theorems `rank-selections`, `quantile-intervals`). Cumulative counts serve any number of quantiles with one
noise. The number of quantiles, the price and the number of rows decide which one errs less. A query without intervals
spends all of its price on selections.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.curator.assignments import Assignment, NoisyParts, compared, pure_within
from tacit.curator.charging import CONFIDENCE, Price
from tacit.curator.intervals import Estimate
from tacit.curator.selected import RANKS, Ranks, assign_ranks, total_is_public
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.data_classes import dataclass
from tacit.mechanisms.base import Mechanism
from tacit.mechanisms.cumulative import CumulativeTree
from tacit.mechanisms.rank_selection import RankSelection, edges_around, ranges_around
from tacit.mechanisms.sparse_ranks import SparseRankSelection
from tacit.noise.source import Source
from tacit.sources.columns import Date, Measured
from tacit.sources.query import Cells
from tacit.statistics.base import Question, base_unit, replaced, row_limit
from tacit.statistics.quantiles import (
    FINEST,
    RESOLUTION,
    fine_column,
    histograms,
    joined,
    occupied_ranges,
    step_at,
)

SHARES = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 6), Fraction(1, 4))
"""The possible parts of the price for intervals. Without a public number of rows they get the last one.

The width of an interval goes down like 1 / share, the error of a value goes up like 1 / (1 - share). At 1,250 rows and
epsilon = 0.3 a quarter gives intervals of a tenth of the rows to each side instead of a quarter, and the error of a
rank goes from 0.30% to 0.36% of the rows (`half_interval` and `expected_error` of these assignments); a sample of this
size errs by 1.1%. In values: benchmarks/quantile_shares.py. With a public number of rows the smallest sufficient share
is taken, and the first one where no share gives an interval that is narrower than the range.
"""
NARROW, HOPELESS = 0.05, 0.9
"""Half the width of a sufficient interval, as a part of the rows; and of an interval without information, as a
part of the rows on one side.
"""
GRID = 1.5
"""The ratio of an interval's width to that of its noise, since the ranges double their width: between 1 and 2."""
USUAL_RANGES, MOST_RANGES = 1 << 18, 1 << 24
"""The number of ranges without a public number of rows, and the largest number: the queries read at most this many
keys, or as many as the table has rows.
"""
FINER = 64
"""The number of ranges for each rank of error, if the rows lie evenly: enough for rows that lie 64 times denser."""
NAME = "selections by rank"
NO_INTERVAL = "nothing: no intervals were asked for, and nothing was spent on them"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRanks(Assignment):
    """A bin for every quantile, and noisy counts around the chosen bins, unless no interval was asked for."""

    selection: RankSelection | SparseRankSelection
    counts: CumulativeTree | None
    finest: int = 1

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The choices, then the counts around them."""
        return (self.selection,) if self.counts is None else (self.selection, self.counts)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        if self.counts is None:
            return self.selection.theorems
        found = (*self.selection.theorems, *self.counts.theorems, "quantile-intervals", "compose-pure")
        return tuple(dict.fromkeys(found))

    @property
    def covers(self) -> str:
        """Empty, if nothing was spent on it."""
        usual: str = Assignment.covers.__get__(self)  # `super()` knows no class with slots
        return NO_INTERVAL if self.counts is None else usual

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Draws the choices first, because the ranges of the counts follow from them alone."""
        assert isinstance(self.selection, RankSelection)
        fine = joined(question.integers(cells)["counts"], self.selection.bins)
        chosen = self.selection.release(fine, source=source).bins
        if self.counts is None:
            return NoisyParts(parts={"bin": chosen})
        below = np.concatenate(
            [np.zeros((*fine.shape[:-1], 1), fine.dtype), np.cumsum(fine, axis=-1)], axis=-1
        )
        at = np.take_along_axis(below, self._borders(chosen), axis=-1)
        return NoisyParts(
            parts={"bin": chosen, "below": self.counts.release(np.diff(at, axis=-1), source=source).below}
        )

    def _column(self, question: Question) -> Measured:
        statistic: Any = question.statistic
        return fine_column(question.schema.measured(statistic.column), self.selection.bins)

    def _borders(self, chosen: AnyArray) -> AnyArray:
        return edges_around(chosen, bins=self.selection.bins, finest=self.finest)

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The roundest number of each chosen bin, and the ranges that its rank may lie in."""
        spacing = self._column(question).spacing
        chosen = np.asarray(noisy.parts["bin"])
        starts, ends = (
            [int(s) for s in step_at(question, self.selection.bins, k.ravel())] for k in (chosen, chosen + 1)
        )
        named = [float(roundest(a * spacing, (b - 1) * spacing)) for a, b in zip(starts, ends, strict=True)]
        value = np.array(named).reshape(chosen.shape)
        if self.counts is None:
            return Estimate(
                value=value, low=np.full(chosen.shape, np.nan), high=np.full(chosen.shape, np.nan)
            )
        below = np.asarray(noisy.parts["below"], dtype=np.float64)
        first, last = self._hulls(self.counts, chosen, below, 1 - (1 - confidence) / coordinates)
        left = step_at(question, self.selection.bins, first).astype(np.float64) * float(spacing)
        right = (step_at(question, self.selection.bins, last + 1).astype(np.float64) - 1) * float(spacing)
        low, high = np.minimum(left, value), np.maximum(right, value)
        return Estimate(
            value=value,
            low=np.minimum.accumulate(low[..., ::-1], axis=-1)[..., ::-1],
            high=np.maximum.accumulate(high, axis=-1),
        )

    def _hulls(
        self, counts: CumulativeTree, chosen: AnyArray, below: Floats, confidence: Fraction
    ) -> tuple[AnyArray, AnyArray]:
        """First and last bin of each quantile's interval (`quantile-intervals`, on the ranges around the choices)."""
        borders, tail = self._borders(chosen), float((1 - confidence) / 2)
        first, last = np.empty_like(chosen), np.empty_like(chosen)
        for j, share in enumerate(self.selection.shares):
            q = Fraction(share)
            c = counts.half_widths(tail, share=q)
            difference = below - float(q) * below[..., -1:]
            slack = 4e-16 * (np.abs(below[..., -1:]) + c[-1])
            enough = difference[..., 1:] >= -c[1:] - slack
            before = difference[..., :-1] <= c[:-1] + slack
            enough[..., -1], before[..., 0] = True, True
            # A range without bins holds no quantile.
            fits = enough & before & (np.diff(borders, axis=-1) > 0)
            none = ~fits.any(axis=-1)
            lowest = np.argmax(fits, axis=-1)
            highest = fits.shape[-1] - 1 - np.argmax(fits[..., ::-1], axis=-1)
            start = np.take_along_axis(borders, lowest[..., None], axis=-1)[..., 0]
            stop = np.take_along_axis(borders, highest[..., None] + 1, axis=-1)[..., 0] - 1
            # No range at all is as rare as a miss; then the interval is the value's own bin.
            first[..., j] = np.where(none, chosen[..., j], np.minimum(start, chosen[..., j]))
            last[..., j] = np.where(none, chosen[..., j], np.maximum(stop, chosen[..., j]))
        return first, last

    def half_interval(self, rows: int) -> float:
        """About half of an interval in ranks, as a part of this many rows, the mean over the shares."""
        assert self.counts is not None
        tail = float((1 - CONFIDENCE) / 2)
        # The width at a range with a middling error: one quantile of a sum instead of all.
        shares = [Fraction(q) for q in self.selection.shares]
        each: list[float] = self.counts.middling_half_widths(tail, shares).tolist()
        return GRID * sum(each) / len(each) / max(rows, 1)

    def to_dict(self) -> dict[str, Any]:
        """The mechanisms for a certificate."""
        return {
            "noise": [m.noise_distribution for m in (self.selection, self.counts) if m is not None],
            "chosen": self.reason,
            "numerical_delta": 0.0,
        }

    @property
    def log_error(self) -> float:
        """ln of the error of a rank at 95%, in rows."""
        return math.log(self.selection.error_quantile(CONFIDENCE))

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The error of a rank: in values it depends on how dense the data are."""
        within = self.selection.error_quantile(confidence)
        return None, within, RANKS


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseRanks(SelectedRanks):
    """The same among too many ranges to be listed: it reads the occupied ones."""

    def asked(self, question: Question) -> Question:
        """Occupied ranges, as fine as the choice."""
        return occupied_ranges(question, self.selection.bins)

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """The choices, then the counts around them."""
        assert isinstance(self.selection, SparseRankSelection)
        held = histograms(question, cells)
        chosen = self.selection.release(held, source=source).bins
        shape = tuple(a.size or 1 for a in question.axes)
        found = {"bin": chosen.reshape(*shape, chosen.shape[-1])}
        if self.counts is None:
            return NoisyParts(parts=found)
        counts = []
        for (at, rows), borders in zip(held, self._borders(chosen), strict=True):
            below = np.concatenate([np.zeros(1, rows.dtype), np.cumsum(rows)])
            counts.append(np.diff(below[np.searchsorted(at, borders)]))
        around = np.array(counts).reshape(*shape, self.counts.bins)
        return NoisyParts(parts={**found, "below": self.counts.release(around, source=source).below})


def roundest(low: Fraction, high: Fraction) -> Fraction:
    """The number in [low, high] with the fewest digits; of several, the one nearest to the middle."""
    if low == high:
        return low
    power = Fraction(10) ** math.ceil(math.log10(max(abs(low), abs(high), high - low)) + 1)
    while True:
        first, last = math.ceil(low / power), math.floor(high / power)
        if first <= last:
            near = round((low + high) / 2 / power)
            return min(max(near, first), last) * power
        power /= 10


def first_ranks(question: Question, price: Price) -> Ranks:
    """The choice of 0.1.0: cumulative counts over `resolution` ranges, or one range per value."""
    statistic: Any = question.statistic
    levels = question.schema.measured(statistic.column).width + 1
    return assign_ranks(question, price, min(statistic.resolution, levels))


def assign_quantiles(question: Question, price: Price, rows: int | None = None) -> Assignment:
    """Selections or cumulative counts, whichever has the smaller expected error of a rank at this price.

    `rows` is a public number of rows; it decides only the resolution and the share of the intervals.
    """
    statistic: Any = question.statistic
    if price.kind == "accuracy":
        return assign_ranks(question, price)
    if question.details.get("sample"):
        # The sample errs by more than the choice of a value does: noise that tells ranks makes shorter intervals.
        ranks = assign_ranks(
            question, price, _drawn_bins(int(question.details["bins"]), statistic.resolution, rows)
        )
        return replace(ranks, reason=f"{ranks.reason}; its counts show the sampling error, too")
    finest = int(question.details["bins"])
    automatic = statistic.resolution == RESOLUTION
    selected = _selections(question, price, finest, rows if automatic else None)
    ranks = assign_ranks(
        question, price, _tree_bins(finest, price, rows) if automatic else None, measured=False
    )
    errors: dict[str, float] = {NAME: selected.selection.expected_error(), **_mean_errors(ranks)}
    best = min(errors, key=lambda n: errors[n])
    if best != NAME:
        return _with(ranks, errors)
    return _with(selected, errors)


def _drawn_bins(finest: int, resolution: int, rows: int | None) -> int | None:
    """Ranges for rows that are draws: a bin of a twelfth of the sampling error's width, at a public number of rows.

    512 by default: coarser bins blur the intervals of 20,000 rows, and finer ones have more noise than 500 rows
    allow.
    """
    if resolution != RESOLUTION or finest % RESOLUTION:
        return None
    if rows is None:
        return 512
    return min(max(1 << round(math.log2(12 * math.sqrt(rows))), 64), RESOLUTION)


def _with(assignment: Any, errors: Mapping[str, float]) -> Assignment:
    name = min(errors, key=lambda n: errors[n])
    made: Assignment = replace(assignment, reason=compared(name, errors), candidates=dict(errors))
    return made


def _mean_errors(ranks: Ranks) -> dict[str, float]:
    """E |error| of F(t) - q N at a middling t, the mean over the shares, by the name of the better form."""
    name = min(ranks.candidates, key=lambda n: ranks.candidates[n])
    each = [ranks.mechanism.middling_std(q) for q in ranks.shares]
    return {name: math.sqrt(2 / math.pi) * sum(each) / len(each)}


def _selections(question: Question, price: Price, finest: int, rows: int | None) -> SelectedRanks:
    """With a quarter for the intervals, or less if a public number of rows shows that less is better.

    Without intervals the values get all of it.
    """
    statistic: Any = question.statistic
    if not statistic.interval:
        return _selections_at(question, price, finest, rows, Fraction(0))
    most = _selections_at(question, price, finest, rows, SHARES[-1])
    if rows is None:
        return most
    sides, half = [float(min(q, 1 - q)) for q in _shares(question)], most.half_interval(rows)
    if half >= HOPELESS * max(sides):
        return _selections_at(question, price, finest, rows, SHARES[0])
    for share in SHARES[:-1]:
        # Half an interval goes down a little slower than 1 / share: who misses by far is not tried.
        if half * float(SHARES[-1] / share) > 1.25 * NARROW:
            continue
        tried = _selections_at(question, price, finest, rows, share)
        if tried.half_interval(rows) <= NARROW:
            return tried
    return most


def _selections_at(
    question: Question, price: Price, finest: int, rows: int | None, share: Fraction
) -> SelectedRanks:
    epsilon = pure_within(price)
    assert epsilon is not None
    statistic: Any = question.statistic
    shares, unit = _shares(question), question.unit
    spent = epsilon * (1 - share)
    about: dict[str, Any] = {
        "shares": shares, "rows": row_limit(unit) * base_unit(unit)[1], "replaced": replaced(unit),
        "grouped": bool(question.axes),
    }  # fmt: skip
    if finest == FINEST and statistic.resolution == RESOLUTION:
        return _sparse_selections(question, price, rows, about, epsilon, spent)
    selection = RankSelection(bins=finest, epsilon=spent, **about)
    bins = _bins(finest, None if rows is None else FINER * rows * float(selection.rate))
    selection = RankSelection(bins=bins, epsilon=spent, **about)
    # An interval spans some 16 noise scales of the counts, where the rows lie evenly; a 64th of that is fine enough.
    finest_range = 1
    if share and rows is not None:
        finest_range = max(1, int(bins * float(question.sensitivity.l1 / (epsilon - spent)) / rows / 4))
    return SelectedRanks(
        noise=(), price=price, reason="", selection=selection, finest=finest_range,
        counts=_counts_around(question, selection, epsilon - spent, finest_range),
    )  # fmt: skip


def _counts_around(
    question: Question, selection: RankSelection | SparseRankSelection, epsilon: Fraction, finest: int
) -> CumulativeTree | None:
    """The counts for the intervals; none where nothing is spent on them."""
    if not epsilon:
        return None
    return CumulativeTree(
        bins=ranges_around(len(selection.shares), bins=selection.bins, finest=finest), l1=question.sensitivity.l1,
        epsilon=epsilon, total_is_public=total_is_public(question),
    )  # fmt: skip


def _sparse_selections(
    question: Question,
    price: Price,
    rows: int | None,
    about: dict[str, Any],
    epsilon: Fraction,
    spent: Fraction,
) -> SparseRanks:
    """Ranges for the rows and the price: 64 for each rank of the expected error, and 2^18 without a number of rows."""
    statistic: Any = question.statistic
    column = question.schema.measured(statistic.column)
    rate = SparseRankSelection(bins=2, epsilon=spent, **about).rate
    wanted = 0.0 if rows is None else FINER * rows * float(rate)
    bins = USUAL_RANGES
    while bins > fine_column(column, bins).width + 1:  # a grid that was declared coarser
        bins //= 2
    while bins < min(wanted, MOST_RANGES) and fine_column(column, 2 * bins).width >= 2 * bins:
        bins *= 2
    fine = fine_column(column, bins)
    scale = Fraction(bins, fine.width + 1)
    # Rows are rounded to the nearest step, so that a round number is half a step before where it is rounded up.
    places: dict[str, Any] = {}
    if not isinstance(column, Date):
        places = {"origin": (Fraction(1, 2) - fine.lowest) * scale, "unit": scale / fine.spacing}
    selection = SparseRankSelection(bins=bins, epsilon=spent, **about, **places)
    finest = max(1, bins >> 16)
    if epsilon == spent:
        finest = 1
    elif rows is not None:
        finest = max(1, int(bins * float(question.sensitivity.l1 / (epsilon - spent)) / rows / 4))
    counts = _counts_around(question, selection, epsilon - spent, finest)
    return SparseRanks(noise=(), price=price, reason="", selection=selection, counts=counts, finest=finest)


def _shares(question: Question) -> tuple[Fraction, ...]:
    statistic: Any = question.statistic
    return tuple(Fraction(repr(float(s))) for s in statistic.at)


def made_for(assignment: SelectedRanks, question: Question) -> bool:
    """Whether choices and counts belong to this question: its shares, its unit, and its sensitivity.

    The counts' share of the price is not compared: both prices are part of the charge.
    """
    selection, counts, unit = assignment.selection, assignment.counts, question.unit
    statistic: Any = question.statistic
    return (
        tuple(Fraction(q) for q in selection.shares) == _shares(question)
        and selection.rows >= row_limit(unit) * base_unit(unit)[1]
        and selection.replaced == replaced(unit)
        and selection.grouped >= bool(question.axes)
        and _fits(assignment, question)
        and (counts is not None) == statistic.interval
        and (counts is None or _counts_fit(counts, assignment, question))
    )


def _counts_fit(counts: CumulativeTree, assignment: SelectedRanks, question: Question) -> bool:
    """Are the counts for the intervals those around the choices, with noise for the question's move?"""
    selection = assignment.selection
    return (
        Fraction(counts.l1) >= question.sensitivity.l1
        and counts.total_is_public <= total_is_public(question)
        and counts.bins == ranges_around(len(selection.shares), bins=selection.bins, finest=assignment.finest)
    )


def _fits(assignment: SelectedRanks, question: Question) -> bool:
    """Can the ranges of the choices be read for this question?"""
    statistic: Any = question.statistic
    bins = assignment.selection.bins
    if isinstance(assignment, SparseRanks):
        width = fine_column(question.schema.measured(statistic.column), bins).width
        power = bins & (bins - 1) == 0
        return isinstance(assignment.selection, SparseRankSelection) and power and bins <= width + 1
    return isinstance(assignment.selection, RankSelection) and int(question.details["bins"]) % bins == 0


def _bins(finest: int, wanted: float | None) -> int:
    """The smallest sufficient number of ranges: the finest ones, halved while there are too many."""
    bins = finest
    while wanted is not None and bins % 2 == 0 and bins / 2 >= max(wanted, 2):
        bins //= 2
    return bins


def _tree_bins(finest: int, price: Price, rows: int | None) -> int | None:
    """Ranges of cumulative counts: each has a tenth of a row if rows lie evenly and their number is public."""
    if finest % RESOLUTION:
        return None
    return RESOLUTION if rows is None else _bins(finest, 10.0 * rows)
