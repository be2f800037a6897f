"""Ranges of a long histogram: a tree of noisy sums, made to add up by least squares in linear time.

For up to a few million ordered cells, where no matrix would fit. The strategy of `linear` with implicit matrices.
See docs/theory/linear-strategies.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, TooManyCells
from tacit.exact.arrays import Floats
from tacit.exact.checks import flag, integer_array, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact
from tacit.guarantees import Bound, Neighbours
from tacit.mechanisms.base import Released, confidence_level, rho_of_epsilon
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.spreads import laplace_factor, normal_factor
from tacit.mechanisms.strategies import Budget, block_mechanism, composed_bound, shares_of, variance_of
from tacit.mechanisms.tables import ReleasedTables, TableMechanism, mean_factor
from tacit.noise.source import Source, default_source

__all__ = ["RangeTree", "TreeCounts"]

MOST_CELLS = 1 << 24
OPTIMISED_CELLS = 1 << 14
BRANCHINGS = (2, 4, 8, 16)
GRAIN = 1 << 10
_ROUNDS = 8
_SAMPLE = 12
_TOGETHER = 1 << 17
"""The largest number of entries in one step: many ranges of few cells, or few ranges of many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeCounts:
    """Real counts of the cells, whose sums are the best linear unbiased answers, and the noisy levels."""

    cells: Floats
    levels: tuple[Released | None, ...]
    publishable: bool

    def range(self, first: int, last: int) -> float:
        """The estimated count of cells first..last, both included."""
        return float(self.cells[first : last + 1].sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTree:
    """Noisy sums of every node of a tree over ordered cells; each level has its own exact integer noise.

    Guarantee: the epsilons (or squared mus) of the levels add; a level moves by `rows` rows of one unit, twice that in
    L1 under replace-one, where the root moves only if a row may lie in no cell. Any range is then known with a
    variance of the order log^3 p (Laplace) or log^2 p (Gaussian) instead of p. Source: Hay et al. 2010; Li et al. 2015.
    """

    cells: int
    branching: int
    mechanisms: tuple[Laplace | RoundedGaussian | None, ...]

    def __post_init__(self) -> None:
        set_fields(
            self,
            cells=whole("cells", self.cells, least=1),
            branching=whole("branching", self.branching, least=2),
            mechanisms=_noises(self.mechanisms),
        )
        if len(self.mechanisms) != len(_widths(self.cells, self.branching)):
            raise InvalidParameter(
                parameter="mechanisms", value=len(self.mechanisms), must="be one for each level of the tree"
            )

    @classmethod
    def plan(
        cls, *, cells: int, epsilon: Exact, delta: Exact | None = None, branching: int | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE, rows: int = 1, absent: bool = True,
    ) -> RangeTree:  # fmt: skip
        """The tree with the smallest mean squared error over ranges of all lengths, within the budget.

        `absent` as in Workload: False only if every row surely lies in a cell.
        """
        p = whole("cells", cells, least=2)
        if p > MOST_CELLS:
            raise TooManyCells(cells=p, limit=MOST_CELLS, hint="add up adjacent cells first")
        m, absent = whole("rows", rows, least=1), flag("absent", absent)
        replaced = Neighbours.parse(neighbours) is Neighbours.REPLACE_ONE
        budget = Budget.of(epsilon, delta)
        found: list[tuple[float, RangeTree]] = []
        # More branches than cells are as many as there are cells.
        widths = BRANCHINGS if branching is None else (min(whole("branching", branching, least=2), p),)
        for b in widths:
            for gaussian in (False, True) if budget.delta is not None else (False,):
                tree = cls._made(p, b, budget, gaussian, replaced, m, absent or m > 1)
                found.append((tree.mean_squared_error(), tree))
        return min(found, key=lambda pair: pair[0])[1]

    @classmethod
    def _made(
        cls, p: int, b: int, budget: Budget, gaussian: bool, replaced: bool, m: int, absent: bool,
        ranges: Sequence[tuple[int, int]] | None = None,
    ) -> RangeTree:  # fmt: skip
        """`ranges` are those that the levels' shares are optimised for; by default a sample of all lengths."""
        sizes = _widths(p, b)
        moved = level_moves(p, b, gaussian=gaussian, replaced=replaced, rows=m, absent=absent)
        one = m * m if gaussian else m
        # Shares depend on the ratios of the moves alone: those of one row are small numbers.
        ratios = np.array([move // one for move in moved])
        asked = tuple(_ranges(p) if ranges is None else ranges)
        shares = _shares(p, b, tuple(ratios.tolist()), gaussian, asked)
        if ranges is not None:
            # Coarse, so that another machine's last digits make no other tree.
            shares = np.where(ratios > 0, np.maximum(np.rint(shares * GRAIN), 1), 0.0)
        exact = iter(shares_of(shares[ratios > 0]))
        mechanisms = tuple(
            block_mechanism(n, move, next(exact), budget, gaussian) if move else None
            for n, move in zip(sizes, moved, strict=True)
        )
        return cls(cells=p, branching=b, mechanisms=mechanisms)

    @property
    def bound(self) -> Bound:
        """The largest privacy loss of one release."""
        return composed_bound(self.mechanisms)

    @property
    def events(self) -> tuple[Event, ...]:
        """One event for each noisy level."""
        return tuple(m.event for m in self.mechanisms if m is not None)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        """The distributions of the noise, level by level, for a certificate."""
        laws = [None if m is None else m.noise_distribution for m in self.mechanisms]
        return {"distribution": "tree of sums, least squares", "branching": self.branching, "levels": laws}

    @property
    def _variances(self) -> list[float]:
        return [variance_of(m) for m in self.mechanisms]

    def release(self, histogram: npt.ArrayLike, *, source: Source | None = None) -> TreeCounts:
        """The noisy levels, and the cells' counts by least squares."""
        source = source if source is not None else default_source()
        theta = integer_array(histogram).ravel()
        refuse_if(theta.size != self.cells, "histogram", f"{theta.size} numbers", f"have {self.cells} cells")
        # A sum of all cells fits in 64 bits, or Python's integers are added.
        most = max(abs(int(theta.max())), abs(int(theta.min())))
        sums = [theta if most * self.cells < 1 << 62 else theta.astype(object)]
        while sums[-1].size > 1:
            starts = np.arange(0, sums[-1].size, self.branching)
            sums.append(np.add.reduceat(sums[-1], starts))
        levels = [
            None if m is None else m.release(s, source=source)
            for m, s in zip(self.mechanisms, reversed(sums), strict=True)
        ]
        seen = [
            np.asarray(s, np.float64) if r is None else r.to_floats()
            for r, s in zip(levels, reversed(sums), strict=True)
        ]
        cells = _fitted(seen, self._variances, self.branching)
        return TreeCounts(cells=cells, levels=tuple(levels), publishable=source.publishable)

    def range_variance(self, first: int, last: int) -> float:
        """The variance of the answer to one range: q' G^-1 q, by the same two passes."""
        query = np.zeros(self.cells)
        query[first : last + 1] = 1
        return float(query @ _inverse_gram(query, self._variances, self.branching))

    def range_spreads(self, ranges: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """For each range the variance of its answer, which is sum a over its nodes; (sum a)^2 / sum a^2; and
        sum a / max a."""
        variances, out = self._variances, np.zeros((3, len(ranges)))
        together = max(1, _TOGETHER // self.cells)
        for first in range(0, len(ranges), together):
            some = slice(first, first + together)
            x = _inverse_gram(_indicators(ranges[some], self.cells), variances, self.branching)
            total, squares, most = np.zeros((3, len(x)))
            for v in reversed(variances):
                # The answer has the weight x / v of this level's nodes, whose noise has variance v.
                added = x**2 / v if v > 0 else np.zeros((len(x), 1))
                total, squares = total + added.sum(axis=-1), squares + (added**2).sum(axis=-1)
                most = np.maximum(most, added.max(axis=-1))
                x = np.add.reduceat(x, np.arange(0, x.shape[-1], self.branching), axis=-1)
            out[:, some] = total, total**2 / np.maximum(squares, 1e-300), total / np.maximum(most, 1e-300)
        return out[0], out[1], out[2]

    def mean_squared_error(self) -> float:
        """The mean variance over a fixed sample of ranges of all lengths."""
        return float(np.mean([self.range_variance(a, b) for a, b in _ranges(self.cells)]))


def _noises(given: object) -> tuple[Laplace | RoundedGaussian | None, ...]:
    if not isinstance(given, tuple | list) or not all(
        m is None or isinstance(m, Laplace | RoundedGaussian) for m in given
    ):
        raise InvalidParameter(
            parameter="mechanisms",
            value=type(given).__name__,
            must="be Laplace, RoundedGaussian or None, level by level",
        )
    return tuple(given)


def level_moves(
    cells: int, branching: int, *, gaussian: bool, replaced: bool, rows: int, absent: bool
) -> list[int]:
    """The sensitivity of each level of a tree, root first: in L1, or in squared L2 for Gaussian noise."""
    one = rows * rows if gaussian else rows
    # A replaced row leaves one node for another; in the root it can only vanish, if it can.
    root = (one if absent else 0) if replaced else one
    return [root if n == 1 else 2 * one if replaced else one for n in _widths(cells, branching)]


def _widths(cells: int, branching: int) -> list[int]:
    sizes = [cells]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // branching))
    return sizes[::-1]


def _ranges(cells: int) -> list[tuple[int, int]]:
    """A fixed sample of ranges: starts and ends spread evenly by golden steps."""
    ratio = (5**0.5 - 1) / 2
    pairs = [
        sorted(int(cells * ((k * g) % 1)) for g in (ratio, ratio**2 + 0.1234)) for k in range(1, _SAMPLE + 1)
    ]
    return [(a, b) for a, b in pairs]


def _fitted(seen: Sequence[Floats], variances: Sequence[float], b: int) -> Floats:
    """The least-squares cells, root level first, of one tree or of many in the rows of each level; see
    docs/theory/tree-least-squares.md."""
    fits: list[Floats] = []
    spreads: list[Floats] = []
    belows: list[tuple[Floats, Floats]] = []
    for y, v in zip(reversed(seen), reversed(variances), strict=True):
        if not fits:
            fits.append(y)
            spreads.append(np.full(y.shape[-1], v))
            continue
        starts = np.arange(0, fits[-1].shape[-1], b)
        below, width = np.add.reduceat(fits[-1], starts, axis=-1), np.add.reduceat(spreads[-1], starts)
        belows.append((below, width))
        share = np.divide(width, width + v, out=np.ones_like(width), where=width + v > 0)
        fits.append(share * y + (1 - share) * below)
        spreads.append(v * share)
    for level in range(len(fits) - 2, -1, -1):
        below, width = belows[level]
        gap = np.divide(fits[level + 1] - below, width, out=np.zeros_like(below), where=width > 0)
        fits[level] = fits[level] + spreads[level] * np.repeat(gap, b, axis=-1)[..., : fits[level].shape[-1]]
    return fits[0]


def _inverse_gram(query: Floats, variances: Sequence[float], b: int) -> Floats:
    """G^-1 q, of one query or of each row: the fit to v q in the cells and 0 everywhere above."""
    sizes = _widths(query.shape[-1], b)
    seen = [np.zeros(n) for n in sizes[:-1]] + [variances[-1] * query]
    return _fitted(seen, variances, b)


def _indicators(ranges: npt.ArrayLike, cells: int) -> Floats:
    """A row for each range: 1 in its cells, 0 elsewhere."""
    first, last = np.asarray(ranges, dtype=np.int64).T[:, :, None]
    place = np.arange(cells)
    return np.asarray((place >= first) & (place <= last), dtype=np.float64)


@lru_cache(maxsize=256)
def _shares(
    p: int, b: int, moves: tuple[int, ...], gaussian: bool, ranges: tuple[tuple[int, int], ...]
) -> Floats:
    """Shares of the levels by the fixed-point rule of `strategies.optimised`, on a sample of ranges.

    They depend on no price, so that the same question at another price reuses them.
    """
    moved = np.array(moves)
    free = moved > 0
    now = np.where(free, 1.0 / free.sum(), 0.0)
    if p > OPTIMISED_CELLS:
        return now
    power = 1 if gaussian else 2
    best, least = now, np.inf
    queries = _indicators(ranges, p)
    for _ in range(_ROUNDS):
        ratio = np.divide(now, moved, out=np.zeros(now.size), where=free)
        precision = ratio if gaussian else ratio**2 / 2
        variances = [1 / x if x > 0 else 0.0 for x in precision]
        slopes = np.zeros(now.size)
        x = _inverse_gram(queries, variances, b)
        error = float((queries * x).sum())
        for level in range(now.size - 1, -1, -1):
            slopes[level] = float((x**2).sum())
            x = np.add.reduceat(x, np.arange(0, x.shape[-1], b), axis=-1)
        if error >= least * (1 - 1e-3):
            break
        best, least = now, error
        pull = (precision * slopes * now**power) ** (1 / (1 + power))
        # A level that is all but gone would have no noise worth drawing.
        now = np.where(free, np.maximum(pull / pull.sum(), 1e-3), 0.0)
        now /= now.sum()
    return best


# Answers to range queries from noisy bins, or from a noisy tree over them, with the error of every answer.

SAMPLE = 200
FEW = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeAnswers(TableMechanism):
    """The counts of ranges first..last of ordered bins: sums of noisy bins, or of the fitted bins of a noisy tree.

    Guarantee: that of the noise on the bins, or of the levels of the tree together. The rest is post-processing.
    """

    noise: Laplace | RoundedGaussian | RangeTree
    ranges: npt.NDArray[np.int64]
    cells: int

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | RoundedGaussian | RangeTree):
            raise InvalidParameter(
                parameter="noise", value=type(self.noise).__name__, must="be Laplace, RoundedGaussian or a RangeTree"
            )  # fmt: skip
        found = np.asarray(self.ranges)
        if found.ndim != 2 or found.shape[1] != 2 or not found.size or int(found.max()) >= self.cells:
            raise InvalidParameter(
                parameter="ranges", value=str(found.shape), must="be pairs of bins, first and last"
            )

    @property
    def _mechanisms(self) -> tuple[Laplace | RoundedGaussian, ...]:
        if isinstance(self.noise, RangeTree):
            return tuple(m for m in self.noise.mechanisms if m is not None)
        return (self.noise,)

    @property
    def bound(self) -> Bound:
        return self.noise.bound

    @property
    def event(self) -> Event:
        """The event of the bins; a tree has several (`events`)."""
        (only,) = self.events
        return only

    @property
    def events(self) -> tuple[Event, ...]:
        """One for the bins, or one for each level of the tree."""
        return tuple(m.event for m in self._mechanisms)

    @property
    def theorems(self) -> tuple[str, ...]:
        found = self._mechanisms[0].theorems
        if len(self._mechanisms) == 1:
            return found
        return (*found, "linear-strategies", "compose-gdp" if self.gaussian else "compose-pure")

    @property
    def exact_epsilon(self) -> Fraction | None:
        """Summed over the levels of a tree."""
        each = [m.exact_epsilon for m in self._mechanisms]
        return None if None in each else sum((e for e in each if e is not None), Fraction(0))

    @property
    def exact_rho(self) -> Fraction:
        if self.exact_epsilon is not None:
            return rho_of_epsilon(self.exact_epsilon)
        return sum((m.exact_rho or Fraction(0) for m in self._mechanisms), Fraction(0))

    @property
    def gaussian(self) -> bool:
        """Is the noise Gaussian?"""
        return isinstance(self._mechanisms[0], RoundedGaussian)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {**self.noise.noise_distribution, "on": f"{self.cells} bins, of which the ranges are sums"}

    def release(self, counts: Any, *, source: Source | None = None) -> ReleasedTables:
        source = source if source is not None else default_source()
        bins = integer_array(counts).ravel()
        refuse_if(bins.size != self.cells, "counts", f"{bins.size} numbers", f"have {self.cells} bins")
        if isinstance(self.noise, RangeTree):
            fitted: Any = self.noise.release(bins, source=source).cells
        else:
            fitted = np.asarray(self.noise.release(bins, source=source).values)
            if fitted.dtype != object and float(np.abs(fitted.astype(np.float64)).sum()) >= 2.0**62:
                fitted = fitted.astype(object)
        below = np.concatenate([np.zeros(1, dtype=fitted.dtype), np.cumsum(fitted)])
        first, last = self.ranges.T
        return ReleasedTables(values=(below[last + 1] - below[first],), publishable=source.publishable)

    # --- errors -----------------------------------------------------------------------------------------
    def _spread(self) -> tuple[Floats, Floats, Floats]:
        """The variance of each answer, and the number of equal Laplace variables that its noise resembles.

        The third array is a lower bound on that number: the number if all variables were as wide as the widest.
        """
        if isinstance(self.noise, RangeTree):
            return self.noise.range_spreads(self.ranges)
        lengths = (self.ranges[:, 1] - self.ranges[:, 0] + 1).astype(np.float64)
        return lengths * self.noise.variance, lengths, lengths

    def _lumps(self) -> float:
        """The variance of coarse noise's continuous counterpart, whose tail is above it, over its own variance."""
        found = [
            (2 * float(m.distribution.noise_scale) ** 2, variance_of(m))
            for m in self._mechanisms
            if isinstance(m, Laplace)
        ]
        # Noise of less variance than this is never seen.
        return max((wide / own for wide, own in found if own > 1e-200), default=1.0)

    def mean_sizes(self) -> list[float]:
        variance, terms, _ = self._spread()
        factor = math.sqrt(2 / math.pi) if self.gaussian else mean_factor(terms)
        return [float((np.sqrt(variance) * factor).mean())]

    def variances(self) -> list[float]:
        return [float(self._spread()[0].mean())]

    def error_quantiles(self, confidence: Exact = 0.95) -> list[Floats]:
        """The wider of two bounds, by the normal distribution and by Laplace variables in their likely or least
        number; half a step for the grid.

        A sum of unlike Laplace variables is a normal one whose variance is a sum of weighted exponential ones. Fewer
        and equal weights, as large as the largest, majorise these, so that far out its tail is the heavier one; near
        the middle the distribution with the same four moments is nearer.
        """
        miss = float(1 - confidence_level(confidence))
        variance, terms, least = self._spread()
        if isinstance(self.noise, RoundedGaussian):
            variance = terms * self.noise.interval_variance
        if self.gaussian:
            return [normal_factor(miss) * np.sqrt(variance) + 0.5]
        factor = np.maximum(*(_factors(np.floor(numbers), miss) for numbers in (terms, least)))
        return [factor * np.sqrt(variance * self._lumps()) + 0.5]


def _factors(numbers: Floats, miss: float) -> Floats:
    each, place = np.unique(numbers, return_inverse=True)
    return np.asarray([laplace_factor(float(k), miss) for k in each])[place.reshape(numbers.shape)]


def best_trees(
    ranges: npt.NDArray[np.int64], cells: int, budget: Budget, *, replaced: bool, rows: int, absent: bool
) -> Iterator[tuple[str, RangeTree]]:
    """The best tree of Laplace noise within epsilon, and of Gaussian noise within mu if there is one.

    Trees are compared by the mean error of the requested ranges, or of an even sample of many ranges.
    """
    some = ranges[np.linspace(0, len(ranges) - 1, min(len(ranges), SAMPLE)).astype(np.int64)]
    few = [(int(a), int(b)) for a, b in some[:: max(len(some) // FEW, 1)]]
    # One level and the sum of all bins: if that is public, it helps.
    widths = [*(b for b in BRANCHINGS if b < cells), *([cells] if cells > 1 else [])]
    for gaussian in (False, True) if budget.mu > 0 else (False,):
        made = [
            RangeTree._made(cells, b, budget, gaussian, replaced, rows, absent or rows > 1, few)
            for b in widths
        ]
        if made:
            yield (
                "Gaussian noise on a tree of sums" if gaussian else "Laplace noise on a tree of sums",
                min(made, key=lambda t: RangeAnswers(noise=t, ranges=some, cells=cells).mean_sizes()[0]),
            )
