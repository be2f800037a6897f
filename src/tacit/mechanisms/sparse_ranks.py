"""Quantiles by selection among millions of ranges, of which only the occupied ones are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import integer_array, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, bisected, exact_parameter
from tacit.mechanisms.base import shown
from tacit.mechanisms.rank_selection import SelectedBins, Selections, Whole, turns
from tacit.noise.distributions.base import Uniform
from tacit.noise.distributions.finite import uniform_below_secret
from tacit.noise.source import Source, default_source

__all__ = ["SparseRankSelection"]

MOST_RANGES = 1 << 40
SLACK = 2.0**-48
ROUND = 32
"""The weight of all ranges together, relative to all multiples of one power of ten."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of candidates with one rank each: run i is borders[i] up to borders[i + 1], its public weight, its distance.

    The distance is that of the target from [below, upto], numbers of rows.
    """

    borders: Whole
    weights: Whole
    below: npt.NDArray[Any]
    upto: npt.NDArray[Any]
    first: npt.NDArray[np.bool_]
    last: npt.NDArray[np.bool_]

    def distances(self, target: float) -> Floats:
        """Floats, for all runs at once."""
        left = np.where(self.first, -np.inf, self.below.astype(np.float64) - target)
        right = np.where(self.last, -np.inf, target - self.upto.astype(np.float64))
        return np.maximum(np.maximum(left, right), 0.0)

    def distance(self, i: int, target: Fraction) -> Fraction:
        """Exactly."""
        left = Fraction(0) if self.first[i] else int(self.below[i]) - target
        right = Fraction(0) if self.last[i] else target - int(self.upto[i])
        return max(left, right, Fraction(0))


@lru_cache(maxsize=256)
def _decades(bins: int, origin: Fraction, unit: Fraction) -> tuple[tuple[float, float, int, int], ...]:
    if not unit:
        return ()
    out, power = [], Fraction(10) ** math.floor(math.log10(float(bins / unit)))
    while power * unit > 1:
        stride = power * unit
        first = origin + math.ceil(-origin / stride) * stride
        count = max(0, math.ceil((bins - first) / stride))
        if count:
            out.append((float(first), float(stride), count, max(1, bins // (ROUND * count))))
        power /= 10
    return tuple(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseRankSelection(Selections):
    """For every cell and share a range, chosen with probability w(t) e^(-rate distance) / Z among up to 2^40 of them.

    The distance, the nesting and the rate are those of `RankSelection`. Between two occupied ranges all
    distances are equal. So it chooses a run first and then a range in it, both exactly, and visits no empty
    range. The weights w are public: 1 for every range, and for each power of ten a 32nd of that for all of its
    multiples together. So a repeated round number is found as in a coarse grid, and evenly lying rows as in a
    fine one. `origin` is the place of the number 0, in ranges, and `unit` the number of ranges in one; 0 for
    weights of 1. Guarantee: Pure(epsilon), as `RankSelection`. Assumptions: one histogram a cell over public
    ranges; a unit has at most `rows` rows in all cells together. Theorem `rank-selections`. Source: Smith 2011;
    McSherry, Talwar 2007 (weights); Kaplan, Schnapp, Stemmer 2022.
    """

    origin: Exact = 0
    unit: Exact = 0

    def __post_init__(self) -> None:
        Selections.__post_init__(self)
        unit = exact_parameter("unit", self.unit, positive=False)
        if unit < 0:
            raise InvalidParameter(parameter="unit", value=float(unit), must="be at least 0")
        object.__setattr__(self, "origin", exact_parameter("origin", self.origin, positive=False))
        object.__setattr__(self, "unit", unit)

    def _checked_bins(self) -> int:
        bins = whole("bins", self.bins, least=1)
        if bins > MOST_RANGES:
            raise InvalidParameter(parameter="bins", value=bins, must="be at most 2^40")
        return bins

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("rank-selections",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "exponential mechanism on ranks",
            "rate": shown(self.rate),
            "choices": len(self.shares),
            "ranges": self.bins,
            "exact": True,
        }

    # --- weights ------------------------------------------------------------------------------------------------
    @property
    def decades(self) -> tuple[tuple[float, float, int, int], ...]:
        """Each power of ten: the place of its first multiple, the distance of two, their number, the weight of one."""
        return _decades(self.bins, Fraction(self.origin), Fraction(self.unit))

    def weight_below(self, places: npt.ArrayLike) -> Whole:
        """The weight of all ranges before each place, an integer that does not decrease: below 2^52."""
        at = np.asarray(places, dtype=np.int64)
        total = at.copy()
        for first, stride, count, weight in self.decades:
            passed = np.ceil((at.astype(np.float64) - first) / stride)
            total += weight * np.clip(passed, 0, count).astype(np.int64)
        return total

    # --- running ------------------------------------------------------------------------------------------------
    def release(
        self, histograms: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], *, source: Source | None = None
    ) -> SelectedBins:
        """The chosen ranges, for each cell given as (occupied ranges in increasing order, their counts)."""
        source = source if source is not None else default_source()
        out = np.empty((len(histograms), len(self.shares)), dtype=np.int64)
        for row, (places, counts) in zip(out, histograms, strict=True):
            at, rows = integer_array(places, name="ranges"), integer_array(counts, name="counts")
            if at.ndim != 1 or at.shape != rows.shape or (np.diff(at) <= 0).any() or (rows < 0).any():
                raise InvalidParameter(
                    parameter="counts", value="an array", must="have an integer of at least 0 for each range, "
                    "the ranges increasing",
                )  # fmt: skip
            if at.size and not (at[0] >= 0 and at[-1] < self.bins):
                raise InvalidParameter(parameter="ranges", value="an array", must="lie below `bins`")
            self._cell(row, at.astype(np.int64), rows, source)
        return SelectedBins(bins=out, publishable=source.publishable)

    def _cell(self, row: Whole, at: Whole, counts: npt.NDArray[Any], source: Source) -> None:
        """All choices of one histogram, in their order."""
        exact = counts if counts.dtype == object else counts.astype(np.int64)
        ranks = np.concatenate([np.zeros(1, dtype=exact.dtype), np.cumsum(exact)])
        levels = tuple(Fraction(q) for q in self.shares)
        for turn in turns(len(levels)):
            first = 0 if turn.after < 0 else int(row[turn.after])
            last = self.bins - 1 if turn.before >= len(row) else int(row[turn.before])
            runs = self._runs(at, ranks, first, last)
            row[turn.share] = self._choose(runs, levels[turn.share] * int(ranks[-1]), int(ranks[-1]), source)

    def _runs(self, at: Whole, ranks: npt.NDArray[Any], first: int, last: int) -> Runs:
        """Every occupied range, the first and the last candidate are runs of one range; the other runs lie between
        them.
        """
        ends = np.stack([at, at + 1], axis=1).ravel()
        own = np.array([first, first + 1, last, last + 1])
        borders = np.sort(np.clip(np.concatenate([ends, own]), first, last + 1), kind="stable")
        before = ranks[np.searchsorted(at, borders)]
        return Runs(
            borders=borders, weights=np.diff(self.weight_below(borders)), below=before[:-1], upto=before[1:],
            first=borders[:-1] == first, last=borders[1:] == last + 1,
        )  # fmt: skip

    def _choose(self, runs: Runs, target: Fraction, rows: int, source: Source) -> int:
        """One word for the run, and one for the place in it."""
        rate, word = float(self.rate), int(source.words(1)[0])
        upto = np.cumsum(runs.weights * np.exp(-rate * runs.distances(float(target))))
        wanted = word * 2.0**-64 * upto[-1]
        # Floats decide all but what lies within their error; balls decide the rest.
        slack = (2 * SLACK * (1 + 2 * rows * rate) + len(upto) * 2.0**-50 + 2.0**-62) * upto[-1]
        chosen = int(np.searchsorted(upto, wanted - slack, side="right"))
        surely = int(np.searchsorted(upto, wanted + slack, side="right"))
        if chosen != surely:
            drawn = Uniform(value=word, bits=64, source=source)
            share = partial(self._share, runs, target)
            while chosen < len(upto) - 1 and not drawn.below(partial(share, chosen)):
                chosen += 1
        start = int(self.weight_below(runs.borders[chosen]))
        return self._at_weight(start + uniform_below_secret(int(runs.weights[chosen]), source))

    def _share(self, runs: Runs, target: Fraction, upto: int) -> Ball:
        """The probability of the runs 0..upto."""
        part, total = ball(0), ball(0)
        for i in np.flatnonzero(runs.weights):
            one = (-ball(self.rate * runs.distance(int(i), target))).exp() * int(runs.weights[i])
            total += one
            if i <= upto:
                part += one
        return part / total

    def _at_weight(self, weight: int) -> int:
        """The last range with at most this weight before it, by bisection with as many steps for every weight."""

        def beyond(place: int) -> bool:
            return place >= self.bins or int(self.weight_below(min(place, self.bins))) > weight

        return bisected(beyond, 0, 1 << max(1, (self.bins - 1).bit_length()))[0]
