"""Survey overlap (Hall 2012, sec. 5.4): an attacker has m rows of the same population, at least k of which are
the owner's.

Definition. D has n rows; the attacker has m, of which j >= k are rows of D. D' is D with d = min(n, m) - j rows outside
of the overlap replaced by d of the attacker's other rows. For every such j the outputs on D and D' are
(epsilon, delta)-indistinguishable except with probability gamma over the n + d independent draws. With m = n and
k = n - 1 this is random differential privacy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.checks import (
    add_exact,
    check_fields,
    integer_array,
    probability,
    refuse_if,
    set_fields,
    whole,
)
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, Interval, exact_parameter
from tacit.guarantees import Neighbours
from tacit.mechanisms import L1, CountSensitivity, Geometric, Laplace
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise import FiniteDistribution
from tacit.noise.source import Source, default_source
from tacit.random_data.base import gamma_parameter, rows_parameter
from tacit.random_data.histogram import ReleasedCount, ReleasedHistogram

__all__ = [
    "Overlap",
    "OverlapCount",
    "OverlapHistogram",
    "Referee",
    "Worst",
    "counts_differ",
    "ordered_failure",
    "sampled_failure",
]

# The referee: how often a mechanism breaks its bound, counted over all samples.
#
# `breaks(D, D')` says whether two neighbouring tables of counts have outputs that are too far apart. Over the orders
# of one multiset of rows that is a share (Hall 2012, 5.2.1); the largest share is the conditional referee's verdict
# and bounds the iid referee's, a weighted mean of shares, whatever the distribution of the rows. Everything is an exact
# rational. Theorem `random-relabelling`.

Counts = tuple[int, ...]
Breaks = Callable[[Counts, Counts], bool]
MOST_TABLES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The largest share of relabellings that break the bound, and the multiset of rows at which it is reached."""

    gamma: Fraction
    counts: Counts


def tables(total: int, cells: int) -> Iterator[Counts]:
    """All tables of counts with this total."""
    for bars in itertools.combinations(range(total + cells - 1), cells - 1):
        ends = (-1, *bars, total + cells - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def law_parameter(law: Sequence[Exact]) -> tuple[Fraction, ...]:
    """Probabilities of the cells, exact; they must add up to 1."""
    exact = tuple(exact_parameter("law", p, positive=False) for p in law)
    if any(p < 0 for p in exact) or sum(exact) != 1:
        raise InvalidParameter(
            parameter="law", value=f"{len(exact)} numbers", must="be probabilities that add up to 1 exactly",
            hint="give Fractions",
        )  # fmt: skip
    return exact


class Referee:
    """For each multiset of rows, the share of its relabellings on which the bound fails; computed once.

    Replace-one: rows + 1 draws, D = all but the last, D' = all but the last but one. Add-or-remove: `rows` draws,
    D = all of them, D' = all but the last.
    """

    __slots__ = ("cells", "neighbours", "rows", "shares")

    def __init__(
        self, breaks: Breaks, *, rows: int, cells: int, neighbours: Neighbours = Neighbours.REPLACE_ONE
    ) -> None:
        self.rows = whole("rows", rows, least=1)
        self.cells = whole("cells", cells, least=1)
        self.neighbours = Neighbours.parse(neighbours)
        draws = self.rows + (self.neighbours is Neighbours.REPLACE_ONE)
        if math.comb(draws + self.cells - 1, self.cells - 1) > MOST_TABLES:
            raise InvalidParameter(
                parameter="rows", value=rows, must=f"make at most {MOST_TABLES} tables of {self.cells} cells",
                hint="fewer rows or cells; sampled_failure() is for larger ones",
            )  # fmt: skip
        share = self._replaced if self.neighbours is Neighbours.REPLACE_ONE else self._removed
        self.shares: Mapping[Counts, Fraction] = {t: share(breaks, t) for t in tables(draws, self.cells)}

    def _replaced(self, breaks: Breaks, t: Counts) -> Fraction:
        failing = 0
        held = [j for j in range(self.cells) if t[j]]
        for a, b in itertools.permutations(held, 2):
            if breaks(_less(t, b), _less(t, a)):
                failing += t[a] * t[b]
        return Fraction(failing, self.rows * (self.rows + 1))

    def _removed(self, breaks: Breaks, t: Counts) -> Fraction:
        failing = sum(t[a] for a in range(self.cells) if t[a] and breaks(t, _less(t, a)))
        return Fraction(failing, self.rows)

    @property
    def conditional(self) -> Worst:
        """The worst share over all multisets: the smallest gamma that the technique of 5.2.1 can prove."""
        counts = max(self.shares, key=lambda t: self.shares[t])
        return Worst(gamma=self.shares[counts], counts=counts)

    def iid(self, law: Sequence[Exact]) -> Fraction:
        """The probability that the bound fails for rows drawn independently from this distribution, exactly."""
        p = law_parameter(law)
        refuse_if(len(p) != self.cells, "law", f"{len(p)} numbers", f"have {self.cells} entries")
        below = math.lcm(*(x.denominator for x in p))
        weights = [int(x * below) for x in p]
        powers = [
            list(itertools.accumulate([w] * (self.rows + 1), lambda a, b: a * b, initial=1)) for w in weights
        ]
        draws = sum(next(iter(self.shares)))
        total = Fraction(0)
        factorials = [math.factorial(i) for i in range(draws + 1)]
        for t, share in self.shares.items():
            if share:
                ways = factorials[draws] // math.prod(factorials[c] for c in t)
                total += share * ways * math.prod(powers[j][c] for j, c in enumerate(t))
        return Fraction(total, below**draws)


def _less(t: Counts, place: int) -> Counts:
    return (*t[:place], t[place] - 1, *t[place + 1 :])


def ordered_failure(
    breaks: Callable[[Counts, Counts], bool], *, rows: int, law: Sequence[Exact], place: int = -1
) -> Fraction:
    """The same over all ordered samples, for mechanisms that use the order of the rows; row `place` is replaced."""
    n, p = whole("rows", rows, least=1), law_parameter(law)
    at = place % n
    total = Fraction(0)
    if len(p) ** (n + 1) > MOST_TABLES:
        raise InvalidParameter(
            parameter="rows", value=rows, must=f"make at most {MOST_TABLES} samples of {len(p)} values"
        )
    for x in itertools.product(range(len(p)), repeat=n + 1):
        chance = math.prod((p[v] for v in x), start=Fraction(1))
        sample, fresh = x[:n], x[n]
        if chance and breaks(sample, (*sample[:at], fresh, *sample[at + 1 :])):
            total += chance
    return total


def sampled_failure(
    breaks: Breaks,
    *,
    rows: int,
    law: Sequence[Exact],
    trials: int,
    confidence: float = 0.999,
    source: Source | None = None,
) -> Interval:
    """Limits of confidence (Clopper and Pearson) for the probability that the bound fails, by drawing samples.

    For sizes beyond enumeration: each trial draws rows + 1 rows and asks `breaks` once. Replace-one.
    """
    from scipy.special import betaincinv

    n, count = whole("rows", rows, least=1), whole("trials", trials, least=1)
    miss = (1 - probability("confidence", confidence, below_one=True)) / 2
    weights = law_parameter(law)
    draw = FiniteDistribution(weights=list(weights))
    source = source if source is not None else default_source()
    failed = 0
    for _ in range(count):
        x = draw.sample(size=n + 1, source=source)
        t = np.bincount(x.astype(np.int64), minlength=len(weights)).tolist()
        a, b = int(x[n - 1]), int(x[n])
        failed += a != b and breaks(_less(tuple(t), b), _less(tuple(t), a))
    low = float(betaincinv(failed, count - failed + 1, miss)) if failed else 0.0
    high = float(betaincinv(failed + 1, count - failed, 1 - miss)) if failed < count else 1.0
    return Interval(low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """n rows, an attacker's m rows, and the least number k of rows that are in both."""

    rows: int
    attacker_rows: int
    least_overlap: int

    def __post_init__(self) -> None:
        set_fields(
            self, rows=rows_parameter(self.rows), attacker_rows=whole("attacker_rows", self.attacker_rows)
        )
        check_fields(self, least_overlap=partial(whole, least=0))
        if self.least_overlap >= min(self.rows, self.attacker_rows):
            raise InvalidParameter(
                parameter="least_overlap", value=self.least_overlap, must="be below rows and attacker_rows",
                hint="an attacker without a row outside of the overlap has no other sample to put in the place of "
                "yours, and then the definition promises nothing: use a mechanism of differential privacy",
            )  # fmt: skip

    @property
    def most_replaced(self) -> int:
        """d = min(n, m) - k: the largest number of rows in which the two samples differ."""
        return min(self.rows, self.attacker_rows) - self.least_overlap

    def worst(self, breaks: Callable[[Counts, Counts], bool], *, cells: int) -> Worst:
        """The conditional referee: the worst share of relabellings over all multisets and all overlaps, exactly."""
        found = Worst(gamma=Fraction(0), counts=(0,) * whole("cells", cells, least=1))
        for d in range(1, self.most_replaced + 1):
            for t in tables(self.rows + d, cells):
                share = _share(breaks, t, self.rows, d)
                if share > found.gamma:
                    found = Worst(gamma=share, counts=t)
        return found


def _share(breaks: Callable[[Counts, Counts], bool], t: Counts, n: int, d: int) -> Fraction:
    """Over all orders of t: the first d rows are only in D, the last d only in D'."""
    failing = 0
    for a in _parts(t, d):
        rest = tuple(x - y for x, y in zip(t, a, strict=True))
        for b in _parts(rest, d):
            if a == b:
                continue
            one = tuple(x - y for x, y in zip(t, b, strict=True))
            other = tuple(x - y for x, y in zip(t, a, strict=True))
            if breaks(one, other):
                failing += _ways(t, a) * _ways(rest, b)
    return Fraction(failing, math.comb(n + d, d) * math.comb(n, d))


def _parts(t: Counts, size: int) -> list[Counts]:
    return [a for a in itertools.product(*(range(min(c, size) + 1) for c in t)) if sum(a) == size]


def _ways(t: Counts, a: Counts) -> int:
    return math.prod(math.comb(x, y) for x, y in zip(t, a, strict=True))


def counts_differ(ones: int, rows: int, replaced: int) -> Fraction:
    """F_d(s): with s ones among n + d rows, the probability that d rows and d others of a random order have
    different counts.
    """
    n, d, s = rows, replaced, ones
    same = 0
    for a in range(min(d, s) + 1):
        if 2 * a <= s:
            same += math.comb(d, a) ** 2 * math.comb(n - d, s - 2 * a)
    return 1 - Fraction(same, math.comb(n + d, s))


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapCount:
    """(5.1) for a survey overlap: a count c is exact if F_d(s) <= gamma for all d and s in c..c+d.

    Else it gets geometric noise of scale d/epsilon. Guarantee: (epsilon, 0, gamma) in the sense of `Overlap`.
    Theorem `survey-overlap`.
    """

    overlap: Overlap
    epsilon: Exact
    gamma: Exact

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        gamma_parameter(self.gamma)
        set_fields(self, epsilon=self.epsilon, gamma=self.gamma)

    def is_exact(self, count: int) -> bool:
        """Is this count published as it is? A secret, unless it is asked of a made-up count."""
        c, n, gamma = self._count(count), self.overlap.rows, gamma_parameter(self.gamma)
        return all(
            counts_differ(s, n, d) <= gamma
            for d in range(1, self.overlap.most_replaced + 1)
            for s in range(c, c + d + 1)
        )

    def breaks(self, one: Counts, other: Counts) -> bool:
        """Do two tables (zeros, ones) have outputs that are not epsilon-indistinguishable?"""
        if one[1] == other[1]:
            return False
        if self.is_exact(one[1]) or self.is_exact(other[1]):
            return True
        return abs(one[1] - other[1]) > self.overlap.most_replaced

    def release(self, count: int, *, source: Source | None = None) -> ReleasedCount:
        """The count, exact or noisy."""
        source = source if source is not None else default_source()
        c = self._count(count)
        noisy = int(self.noise.release(np.asarray(c), source=source).values)
        exact = self.is_exact(c)
        return ReleasedCount(
            count=c if exact else noisy,
            exact=exact,
            rows=self.overlap.rows,
            publishable=source.publishable,
        )

    @property
    def noise(self) -> Geometric:
        """The noise of counts that are not exact: up to d rows move."""
        return Geometric(epsilon=self.epsilon, sensitivity=CountSensitivity(self.overlap.most_replaced))

    def _count(self, value: int) -> int:
        c = whole("count", value, least=0)
        refuse_if(c > self.overlap.rows, "count", "more than the rows", "be at most the number of rows")
        return c


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapHistogram:
    """(5.2) for a survey overlap: empty cells are exact if 2 cells d/(n + d) <= gamma, else noise of scale 2d/epsilon.

    Guarantee: (epsilon, 0, gamma) in the sense of `Overlap`. Theorem `survey-overlap`.
    """

    overlap: Overlap
    cells: int
    epsilon: Exact
    gamma: Exact

    def __post_init__(self) -> None:
        check_fields(self, cells=partial(whole, least=2))
        epsilon_parameter(self.epsilon)
        gamma_parameter(self.gamma)
        set_fields(self, epsilon=self.epsilon, gamma=self.gamma)

    @property
    def empty_exact(self) -> bool:
        """Are empty cells published as they are? Public."""
        d, n = self.overlap.most_replaced, self.overlap.rows
        return Fraction(2 * self.cells * d, n + d) <= gamma_parameter(self.gamma)

    @property
    def noise(self) -> Laplace:
        """The noise of the other cells: up to d rows leave a cell, and as many enter one."""
        return Laplace.for_target(epsilon=self.epsilon, sensitivity=L1(2 * self.overlap.most_replaced))

    def breaks(self, one: Counts, other: Counts) -> bool:
        """Do two tables have outputs that are not epsilon-indistinguishable?"""
        moved = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if self.empty_exact and any(0 in pair for pair in moved):
            return True
        return sum(abs(a - b) for a, b in moved) > 2 * self.overlap.most_replaced

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> ReleasedHistogram:
        """Counts of all cells, with exact empty ones if that is allowed."""
        source = source if source is not None else default_source()
        array = integer_array(counts)
        if array.size != self.cells or bool((array < 0).any()) or int(array.sum()) != self.overlap.rows:
            raise InvalidParameter(
                parameter="counts",
                value="other counts",
                must=f"be {self.cells} counts that add up to the public number of rows, {self.overlap.rows}",
            )
        below = int(self.empty_exact)
        noisy = np.asarray(array >= below)
        drawn = self.noise.distribution.sample(size=array.shape, source=source)
        return ReleasedHistogram(
            counts=np.where(noisy, add_exact(array, drawn), array),
            noisy=noisy,
            rows=self.overlap.rows,
            exact_below=below,
            publishable=source.publishable,
        )
