"""Quantiles by selection: permute-and-flip over bins by ranks, one choice a quantile, each inside the last ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import flag, integer_array, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, up
from tacit.guarantees import Pure
from tacit.mechanisms.base import Mechanism, confidence_level, dimension_parameter, epsilon_parameter, shown
from tacit.mechanisms.cumulative import checked_bins
from tacit.noise.distributions.base import Uniform
from tacit.noise.distributions.finite import uniform_below_secret
from tacit.noise.source import Source, default_source

__all__ = ["RankSelection", "SelectedBins"]

Whole = npt.NDArray[np.int64]

SLACK = 2.0**-48
LONGEST = 1000
"""Shares of one release."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One choice: its share, and the earlier choices around it (-1 and the number of shares at the ends)."""

    share: int
    after: int
    before: int


@lru_cache(maxsize=64)
def turns(count: int) -> tuple[Turn, ...]:
    """The order of the choices: the middle share first, then the middles of both sides."""
    out, waiting = [], [(0, count)]
    while waiting:
        first, last = waiting.pop(0)
        if first < last:
            middle = (first + last) // 2
            out.append(Turn(middle, first - 1, last))
            waiting += [(first, middle), (middle + 1, last)]
    return tuple(out)


@lru_cache(maxsize=256)
def row_cost(shares: tuple[Fraction, ...]) -> Fraction:
    """The cost of one added or removed row for all choices together, in units of the rate (`rank-selections`).

    A choice of share q costs 2 max(q, 1 - q) if the row lies among its candidates, 2 q if it lies above all of them
    and 2 (1 - q) if below. A row may lie between any two released quantiles; the place with the
    largest cost counts.
    """
    worst = Fraction(0)
    for place in range(len(shares) + 1):
        total = Fraction(0)
        for turn in turns(len(shares)):
            q = shares[turn.share]
            if place > turn.before:
                total += 2 * q
            elif place <= turn.after:
                total += 2 * (1 - q)
            else:
                total += 2 * max(q, 1 - q)
        worst = max(worst, total)
    return worst


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedBins:
    """The chosen bin of each share, along the last axis, in order."""

    bins: Whole
    publishable: bool
    numerical_delta: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selections(Mechanism):
    """The common base of selections by rank: shares, the unit's rows, the cost of a row, and the errors of ranks."""

    bins: int
    shares: tuple[Exact, ...]
    epsilon: Exact
    rows: int = 1
    replaced: bool = False
    grouped: bool = False

    def __post_init__(self) -> None:
        set_fields(self, bins=self._checked_bins())
        epsilon_parameter(self.epsilon)
        set_fields(self, epsilon=self.epsilon)
        set_fields(self, rows=whole("rows", self.rows, least=1))
        set_fields(self, replaced=flag("replaced", self.replaced), grouped=flag("grouped", self.grouped))
        given = self.shares
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise InvalidParameter(
                parameter="shares", value=type(given).__name__, must="be a list of numbers"
            )
        levels = tuple(exact_parameter("shares", s, positive=False) for s in given)
        if not levels:
            raise EmptyComposition(what="the list of shares", hint="for example [0.25, 0.5, 0.75]")
        if len(levels) > LONGEST:
            raise InvalidParameter(parameter="shares", value=len(levels), must=f"be at most {LONGEST}")
        if any(not 0 < q < 1 for q in levels) or list(levels) != sorted(set(levels)):
            raise InvalidParameter(
                parameter="shares", value=len(levels), must="increase, strictly between 0 and 1"
            )
        object.__setattr__(self, "shares", levels)

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        bins: int,
        shares: tuple[Exact, ...],
        rows: int = 1,
        replaced: bool = False,
        grouped: bool = False,
    ) -> Self:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, bins=bins, shares=shares, rows=rows, replaced=replaced, grouped=grouped)

    def _checked_bins(self) -> int:
        return checked_bins(self.bins)

    @property
    def _levels(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(q) for q in self.shares)

    @property
    def cost(self) -> Fraction:
        """The cost of one row of a unit for all choices together, in units of the rate."""
        alone = row_cost(self._levels)
        if not self.replaced:
            return alone
        inside = Fraction(2 * len(self.shares))
        return max(inside, 2 * alone) if self.grouped else min(inside, 2 * alone)

    @property
    def rate(self) -> Fraction:
        """The weight of a rank in the exponent."""
        return epsilon_parameter(self.epsilon) / (self.rows * self.cost)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def exact_epsilon(self) -> Fraction:
        """As it was given."""
        return epsilon_parameter(self.epsilon)

    # --- errors -------------------------------------------------------------------------------------------------
    def expected_error(self) -> float:
        """E |rank error| of one quantile for rows that lie evenly over many bins: 1 / rate."""
        return 1 / float(self.rate)

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on the rank error of one quantile for rows that lie evenly over many bins: ln(1/a) / rate."""
        return -math.log(float(1 - confidence_level(confidence))) / float(self.rate)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """The same for `dimension` quantiles at once."""
        return self.error_quantile(
            float(confidence_level(confidence)) ** (1 / dimension_parameter(dimension))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSelection(Selections):
    """For every cell and share a bin whose rank is nearly right: coins e^(-rate distance), then one of the heads.

    The distance of bin t is that of q N from [F(t-1), F(t)], the first and the last candidate going on for ever. A
    uniform choice among the bins whose coins show heads is permute-and-flip. One share after the other is chosen, the
    middle one first, among the bins between those already chosen. Guarantee: Pure(epsilon), rate = epsilon / (rows *
    cost), cost = `row_cost` under add-or-remove; under replace-one twice the number of shares, or twice `row_cost` if
    that is smaller; the larger of the two if rows may change cells. Assumptions: one histogram a cell over public
    bins; a unit has at most `rows` rows in all cells together. Theorem `rank-selections`. Source: Smith 2011; McKenna,
    Sheldon 2020; Kaplan, Schnapp, Stemmer 2022 (nesting).
    """

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("rank-selections", "permute-and-flip")

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "permute-and-flip on ranks",
            "rate": shown(self.rate),
            "choices": len(self.shares),
            "exact": True,
        }

    # --- running ------------------------------------------------------------------------------------------------
    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> SelectedBins:
        """The chosen bins of histograms of shape (..., K), one for each cell."""
        source = source if source is not None else default_source()
        array = integer_array(counts, name="counts")
        if array.ndim == 0 or array.shape[-1] != self.bins:
            raise InvalidParameter(
                parameter="counts", value=f"shape {array.shape}", must=f"end in the {self.bins} bins",
                hint="one histogram a cell, the bins along the last axis",
            )  # fmt: skip
        if array.size and array.min() < 0:
            raise InvalidParameter(parameter="counts", value="an array", must="hold integers of at least 0")
        flat = array.reshape(-1, self.bins)
        out = np.empty((len(flat), len(self.shares)), dtype=np.int64)
        for row, cell in zip(out, flat, strict=True):
            self._cell(row, cell, source)
        return SelectedBins(
            bins=out.reshape(*array.shape[:-1], len(self.shares)), publishable=source.publishable
        )

    def _cell(self, row: Whole, counts: npt.NDArray[Any], source: Source) -> None:
        """All choices of one histogram, in their order."""
        exact = counts if counts.dtype == object else counts.astype(np.int64)
        ranks = np.concatenate([np.zeros(1, dtype=exact.dtype), np.cumsum(exact)])
        for turn in turns(len(self.shares)):
            first = 0 if turn.after < 0 else int(row[turn.after])
            last = self.bins - 1 if turn.before >= len(row) else int(row[turn.before])
            row[turn.share] = self._choose(ranks, self._levels[turn.share], first, last, source)

    def _choose(self, ranks: npt.NDArray[Any], share: Fraction, first: int, last: int, source: Source) -> int:
        """A coin for every candidate, first..last, and a uniform choice among the heads. The best always shows one."""
        rate, target = self.rate, share * int(ranks[-1])
        near = np.exp(-float(rate) * self._distances(ranks, float(target), first, last))
        # Every bin draws its word, so that their number does not depend on what was chosen before.
        words = source.words(self.bins)[first : last + 1]
        drawn = words.astype(np.float64) * 2.0**-64
        # Floats decide all but what lies within their error; balls decide the rest.
        error = SLACK * (1 + 2 * float(ranks[-1]) * float(rate)) * near + 2.0**-62
        heads = drawn < near

        def exactly(k: int) -> Ball:
            before = int(ranks[first + k]) - target if k else Fraction(0)
            after = target - int(ranks[first + k + 1]) if first + k < last else Fraction(0)
            return (-ball(rate * max(before, after, Fraction(0)))).exp()

        for k in np.flatnonzero(np.abs(drawn - near) <= error):
            heads[k] = Uniform(value=int(words[k]), bits=64, source=source).below(partial(exactly, int(k)))
        found = np.flatnonzero(heads)
        # How many heads there are is not published: one word, whatever it is.
        return first + int(found[uniform_below_secret(len(found), source)])

    @staticmethod
    def _distances(ranks: npt.NDArray[Any], target: float, first: int, last: int) -> Floats:
        left, right = (ranks[first + i : last + 1 + i].astype(np.float64) for i in (0, 1))
        left[0], right[-1] = -np.inf, np.inf
        return np.maximum(np.maximum(left - target, target - right), 0.0)


# Ranges around released quantiles: a grid that is fine near them and coarse far away, for intervals.


def edges_around(chosen: npt.ArrayLike, *, bins: int, finest: int = 1) -> Whole:
    """Borders in bins, in order, for each cell: those of every chosen bin, and others at doubling distances
    from it.

    The distances are (2^j - 1) `finest` bins. The number of borders depends on the number of shares alone. A border
    that falls outside is the end of the range, so that some ranges are empty.
    """
    at = np.asarray(chosen, dtype=np.int64)
    steps = math.ceil(math.log2(bins / finest + 1)) + 1
    far = (2 ** np.arange(steps, dtype=np.int64) - 1) * finest
    lower, upper = at[..., None] - far, at[..., None] + 1 + far
    both = np.concatenate([lower, upper], axis=-1).reshape(*at.shape[:-1], -1)
    ends = np.broadcast_to(np.array([0, bins]), (*at.shape[:-1], 2))
    return np.sort(np.clip(np.concatenate([both, ends], axis=-1), 0, bins), axis=-1)


def ranges_around(shares: int, *, bins: int, finest: int = 1) -> int:
    """The number of ranges between the borders of `edges_around`."""
    return int(edges_around(np.zeros(shares), bins=bins, finest=finest).shape[-1]) - 1
