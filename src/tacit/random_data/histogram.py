"""Sparse histograms: small cells exact, the others with noise. The paper's (5), Hall's (5.2) and (5.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import (
    add_exact,
    check_fields,
    flag,
    integer_array,
    members,
    refuse_if,
    set_fields,
    whole,
)
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, bisected, up
from tacit.guarantees import Neighbours, Pure
from tacit.guarantees.conditions import INDEPENDENT_DRAWS, LEAST_ROWS
from tacit.mechanisms import L1, CountSensitivity, Exponential, Geometric, Laplace, Score
from tacit.mechanisms.base import epsilon_parameter
from tacit.mechanisms.strategies import sum_of_epsilons
from tacit.noise.source import Source, default_source
from tacit.random_data.base import RandomMechanism, gamma_parameter, independent, rows_parameter

__all__ = [
    "ChosenBins",
    "RandomHistogram",
    "RandomProportion",
    "ReleasedBins",
    "ReleasedCount",
    "ReleasedHistogram",
    "pair_differs",
    "worst_share",
]

# Distributions of outputs, as the referee compares them: coordinates that are exact or noisy, and tabulated
# distributions.
#
# `breaks` decides whether two distributions are (epsilon, delta)-indistinguishable, in both directions:
# exactly for pure
# epsilon and coordinates with the same noise, by sums for tabulated distributions.


@dataclass(frozen=True, slots=True)
class Exactly:
    """A coordinate that is published unchanged."""

    value: int


@dataclass(frozen=True, slots=True)
class Noisy:
    """A coordinate with discrete Laplace noise, Pr[value + k] proportional to e^(-rate |k|)."""

    value: int
    rate: Fraction


Coordinate = Exactly | Noisy


def loss(p: Coordinate, q: Coordinate) -> Fraction | None:
    """The larger of sup ln p/q and sup ln q/p; None if it is infinite."""
    if isinstance(p, Noisy) and isinstance(q, Noisy) and p.rate == q.rate:
        return p.rate * abs(p.value - q.value)
    # Exact against noisy, or two scales of noise: some outcomes of one are (in the limit) impossible under the other.
    return Fraction(0) if p == q else None


def breaks(p: Sequence[Coordinate], q: Sequence[Coordinate], epsilon: Fraction) -> bool:
    """Do two products of independent coordinates fail to be epsilon-indistinguishable? Exact."""
    total = Fraction(0)
    for a, b in zip(p, q, strict=True):
        if a == b:
            continue
        part = loss(a, b)
        if part is None:
            return True
        total += part
    return total > epsilon


def divergence(p: Mapping[object, float], q: Mapping[object, float], epsilon: float) -> float:
    """The larger of the two hockey-stick divergences of two tabulated distributions; untabulated values have
    probability 0.
    """
    factor = math.exp(epsilon)
    keys = set(p) | set(q)
    one = math.fsum(max(0.0, p.get(k, 0.0) - factor * q.get(k, 0.0)) for k in keys)
    other = math.fsum(max(0.0, q.get(k, 0.0) - factor * p.get(k, 0.0)) for k in keys)
    return max(one, other)


def laplace_table(value: int, rate: float, reach: int) -> dict[object, float]:
    """Discrete Laplace probabilities around a value, cut `reach` steps away from 0."""
    q = math.exp(-rate)
    top = (1 - q) / (1 + q)
    return {k: top * q ** abs(k - value) for k in range(-reach, reach + 1)}


def laplace_divergence(
    *, value: float, scale: float, other: float, other_scale: float, epsilon: float
) -> float:
    """H_epsilon(Laplace(value, scale) || Laplace(other, other_scale)), for continuous noise, in closed form.

    ln p/q is piecewise linear with corners at the two values, so that the set where it exceeds epsilon is a union of
    intervals; on each piece both densities are integrated exactly.
    """
    if value > other:  # mirror, so that value <= other
        return laplace_divergence(
            value=-value, scale=scale, other=-other, other_scale=other_scale, epsilon=epsilon
        )

    def gap(z: float) -> float:
        return math.log(other_scale / scale) - abs(z - value) / scale + abs(z - other) / other_scale - epsilon

    def mass(a: float, b: float, centre: float, width: float) -> float:
        """The probability of (a, b)."""

        def below(z: float) -> float:
            x = (z - centre) / width
            return 0.5 * math.exp(x) if x < 0 else 1 - 0.5 * math.exp(-x)

        def above(z: float) -> float:
            x = (z - centre) / width
            return 0.5 * math.exp(-x) if x > 0 else 1 - 0.5 * math.exp(x)

        return above(a) - above(b) if a >= centre else below(b) - below(a)

    total = 0.0
    pieces = [(-math.inf, value), (value, other), (other, math.inf)]
    for low, high in pieces:
        if low >= high:
            continue
        start = high - 1 if math.isinf(low) else low
        stop = low + 1 if math.isinf(high) else high
        at_start, at_stop = gap(start), gap(stop)
        slope = (at_stop - at_start) / (stop - start)
        cut = start - at_start / slope if slope else None
        begin, end = low, high
        if cut is not None and slope > 0:
            begin = max(low, cut)
        elif cut is not None:
            end = min(high, cut)
        elif at_start <= 0:
            continue
        if begin < end:
            more = mass(begin, end, value, scale) - math.exp(epsilon) * mass(begin, end, other, other_scale)
            total += max(0.0, more)
    return total


def worst_share(*, rows: int, cells: int, below: int) -> Fraction:
    """(k-1) t (2(n+1) - k t)/(n(n+1)): the worst share of relabellings that move a cell of fewer than t rows.

    Exact for k t <= n + 1 (and k >= 2): reached by k - 1 cells of t rows each, and the rest in one.
    """
    n, k, t = rows, cells, below
    return Fraction((k - 1) * t * (2 * (n + 1) - k * t), n * (n + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedHistogram:
    """Counts, those of cells below `exact_below` exact and the others noisy.

    `noisy` marks the cells with noise, and may be published. `publishable` is False for a seeded source.
    """

    counts: AnyArray
    noisy: npt.NDArray[np.bool_]
    rows: int | None
    exact_below: int
    publishable: bool

    @property
    def proportions(self) -> npt.NDArray[np.float64]:
        """counts / rows, if the number of rows is public."""
        if self.rows is None:
            raise InvalidParameter(
                parameter="neighbours", value="add-or-remove", must="be replace-one for proportions",
                hint="under add-or-remove the number of rows is protected: divide by the noisy total",
            )  # fmt: skip
        return np.asarray(self.counts, dtype=np.float64) / self.rows


class _Counts(RandomMechanism):
    """Counts of a table under one epsilon and gamma, for either neighbour relation: the checks and the promise."""

    __slots__ = ()
    epsilon: Exact
    gamma: Exact
    neighbours: Neighbours
    independent: bool

    def _check(self, *flags: str) -> None:
        """Checks the fields that all such mechanisms have, and these flags."""
        epsilon_parameter(self.epsilon)
        gamma_parameter(self.gamma)
        set_fields(self, epsilon=self.epsilon, gamma=self.gamma)
        check_fields(self, **dict.fromkeys(flags, flag))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        independent(self.independent)
        check_fields(self, independent=flag)

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def _gamma(self) -> Fraction:
        return gamma_parameter(self.gamma)

    @property
    def _neighbours(self) -> Neighbours:
        return self.neighbours

    @property
    def _declared(self) -> tuple[str, ...]:
        least = () if self.neighbours is Neighbours.REPLACE_ONE else (LEAST_ROWS,)
        return (INDEPENDENT_DRAWS, *least)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomHistogram(_Counts):
    """Counts of k cells: those below `exact_below` exact, the others with Laplace noise of scale 2/epsilon.

    Guarantee: (epsilon, 0) under RandomData(gamma), for independent rows of any distribution; random
    differential privacy, not
    differential privacy: the only inhabitant of a cell is not protected. `small_cells` False: empty cells are exact if
    2k <= gamma n (the paper's (5)); True: cells with c + 1 <= gamma n/(2k) (Hall's (5.3)). `sharp` takes the largest
    number that the worst relabelling allows. If no cell may be exact, all get noise, and then the release is
    differentially private with the same epsilon (`exact_below` = 0 says so).
    Under add-or-remove `rows` is a declared least number of rows and the noise has scale 1/epsilon.
    Assumptions: independent draws; the cells are fixed in advance. Theorem `random-histogram`.
    Source: Hall, Rinaldo, Wasserman 2011, (5); Hall 2012, (5.2), (5.3).
    """

    rows: int
    cells: int
    epsilon: Exact
    gamma: Exact
    small_cells: bool = False
    sharp: bool = False
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    independent: bool = True

    def __post_init__(self) -> None:
        set_fields(self, rows=rows_parameter(self.rows), cells=whole("cells", self.cells, least=2))
        self._check("small_cells", "sharp")

    @property
    def exact_below(self) -> int:
        """Cells with fewer rows than this are exact: 0 means none, 1 the empty ones. Public."""
        most = _exact_below(self.rows, self.cells, self._gamma, self.sharp, self.neighbours)
        return most if self.small_cells else min(most, 1)

    @property
    def noise(self) -> Laplace:
        """The noise of the other cells."""
        moved = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
        return Laplace.for_target(epsilon=self.epsilon, sensitivity=L1(moved))

    def law(self, counts: tuple[int, ...]) -> tuple[Coordinate, ...]:
        """The distribution of the output for the referee."""
        below, _, rate = _settings(self)
        return tuple(Exactly(c) if c < below else Noisy(c, rate) for c in counts)

    def breaks(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Do two tables have outputs that are not epsilon-indistinguishable?"""
        below, epsilon, rate = _settings(self)
        moved = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if any(a < below or b < below for a, b in moved):
            return True
        return rate * sum(abs(a - b) for a, b in moved) > epsilon

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> ReleasedHistogram:
        """Counts of all cells, the small ones exact. Noise is drawn for every cell, whether it is used or not."""
        source = source if source is not None else default_source()
        array = integer_array(counts)
        refuse_if(array.size != self.cells, "counts", f"{array.size} cells", f"have {self.cells} cells")
        refuse_if(bool((array < 0).any()), "counts", "a count below 0", "be counts of rows, at least 0")
        replaced = self.neighbours is Neighbours.REPLACE_ONE
        if replaced and int(array.sum()) != self.rows:
            raise InvalidParameter(
                parameter="counts",
                value="another total",
                must=f"add up to the public number of rows, {self.rows}",
            )
        noisy = np.asarray(array >= self.exact_below)
        drawn = self.noise.distribution.sample(size=array.shape, source=source)
        return ReleasedHistogram(
            counts=np.where(noisy, add_exact(array, drawn), array),
            noisy=noisy,
            rows=self.rows if replaced else None,
            exact_below=self.exact_below,
            publishable=source.publishable,
        )

    def expected_error(self, *, noisy_cells: int) -> float:
        """E of the L1 error of the counts if this many cells get noise: with plain Laplace noise, all of them."""
        return whole("noisy_cells", noisy_cells, least=0) * self.noise.expected_error()


@lru_cache(maxsize=256)
def _settings(mechanism: RandomHistogram) -> tuple[int, Fraction, Fraction]:
    """exact_below, epsilon, and the rate of the noise."""
    epsilon = epsilon_parameter(mechanism.epsilon)
    rate = epsilon / (2 if mechanism.neighbours is Neighbours.REPLACE_ONE else 1)
    return mechanism.exact_below, epsilon, rate


@lru_cache(maxsize=256)
def _exact_below(n: int, k: int, gamma: Fraction, sharp: bool, neighbours: Neighbours) -> int:
    """The largest allowed t: by Hall's counting, or by the worst relabelling."""
    replaced = neighbours is Neighbours.REPLACE_ONE
    if not sharp:
        return int(gamma * n // ((2 if replaced else 1) * k))
    if not replaced:
        return min(int(gamma * n // (k - 1)), (n - 1) // k)
    # The worst share grows with t up to (n + 1)/k.
    return bisected(lambda t: not worst_share(rows=n, cells=k, below=t) <= gamma, 0, (n + 1) // k + 1)[0]


# A proportion that is published exactly where few rows could tell: Hall's (5.1), both tails.


def pair_differs(ones: int, rows: int) -> Fraction:
    """f(s) = 2s(n+1-s)/(n(n+1)): the probability that the last two of n + 1 rows with s ones, in random order,
    differ.
    """
    return Fraction(2 * ones * (rows + 1 - ones), rows * (rows + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedCount:
    """A count with or without noise. `noisy` says which of the two it is, and may be published. `publishable`
    is False for a seeded
    source.
    """

    count: int
    exact: bool
    rows: int | None
    publishable: bool

    @property
    def proportion(self) -> float:
        """count / rows, if the number of rows is public."""
        if self.rows is None:
            raise InvalidParameter(
                parameter="neighbours", value="add-or-remove", must="be replace-one for a proportion",
                hint="under add-or-remove the number of rows is protected: divide by a noisy one",
            )  # fmt: skip
        return self.count / self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomProportion(_Counts):
    """The count of rows with a property: exact if f(c) <= gamma and f(c + 1) <= gamma, else with geometric noise.

    Guarantee: (epsilon, 0) under RandomData(gamma), for independent rows of any distribution; random
    differential privacy, not
    differential privacy. f(s) = 2s(n+1-s)/(n(n+1)). Under add-or-remove `rows` is a declared least number of rows, n is
    not public, and c is exact if c + 1 <= gamma rows. The condition is the best one: see theorem `random-proportion`.
    Assumption: independent draws. Source: Hall 2012, (5.1), for one tail and by an upper bound on f.
    """

    rows: int
    epsilon: Exact
    gamma: Exact
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    independent: bool = True

    def __post_init__(self) -> None:
        set_fields(self, rows=rows_parameter(self.rows))
        self._check()

    @property
    def noise(self) -> Geometric:
        """The noise of counts that are not exact: scale 1/epsilon, for either neighbour relation."""
        return Geometric(epsilon=self.epsilon, sensitivity=CountSensitivity(1))

    def is_exact(self, count: int) -> bool:
        """Is this count published as it is? A secret, unless it is asked of a made-up count."""
        c = self._count(count)
        if self.neighbours is Neighbours.ADD_OR_REMOVE:
            return c + 1 <= self._gamma * self.rows
        return max(pair_differs(c, self.rows), pair_differs(c + 1, self.rows)) <= self._gamma

    def largest_exact(self) -> int | None:
        """The largest count of the lower tail that is published exactly; None if there is none."""
        if not self.is_exact(0):
            return None
        if self.neighbours is Neighbours.ADD_OR_REMOVE:
            return int(self._gamma * self.rows // 1) - 1
        high = self.rows // 2 + 1  # f grows up to the middle, and f(middle) > 1/2 is found by is_exact too
        if self.is_exact(min(high, self.rows)):
            return self.rows
        return bisected(lambda below: not self.is_exact(below), 0, high)[0]

    def law(self, count: int) -> tuple[Coordinate]:
        """The distribution of the output for the referee."""
        if self.is_exact(count):
            return (Exactly(count),)
        return (Noisy(count, epsilon_parameter(self.epsilon)),)

    def breaks(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Do two tables (zeros, ones) have outputs that are not epsilon-indistinguishable?"""
        return breaks(self.law(one[1]), self.law(other[1]), epsilon_parameter(self.epsilon))

    def release(self, count: int, *, source: Source | None = None) -> ReleasedCount:
        """The count, exact or noisy."""
        source = source if source is not None else default_source()
        c = self._count(count)
        noisy = int(self.noise.release(np.asarray(c), source=source).values)
        exact = self.is_exact(c)
        n = self.rows if self.neighbours is Neighbours.REPLACE_ONE else None
        return ReleasedCount(count=c if exact else noisy, exact=exact, rows=n, publishable=source.publishable)

    def expected_error(self, count: int) -> float:
        """E |error| of a made-up count: 0 for an exact one."""
        return 0.0 if self.is_exact(count) else self.noise.expected_error()

    def _count(self, value: int) -> int:
        c = whole("count", value, least=0)
        if self.neighbours is Neighbours.REPLACE_ONE and c > self.rows:
            raise InvalidParameter(
                parameter="count", value="more than the rows", must="be at most the number of rows"
            )
        return c


# The number of bins chosen privately, then a histogram under random differential privacy.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedBins:
    """The chosen number of bins, and the histogram with them."""

    bins: int
    histogram: ReleasedHistogram


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBins(RandomMechanism):
    """A histogram whose number of bins is chosen from a public list, each a divisor of the largest.

    The score of k bins is minus (the L1 distance of the finest histogram from the coarse one spread evenly, plus the
    noise of its occupied cells); one replaced row moves it by at most 4 + 2/release_epsilon. Each candidate has
    gamma/L, because a later mechanism chosen by an earlier output needs the gammas of all possible ones.
    Guarantee: (choice_epsilon + release_epsilon, 0) under RandomData(gamma). Theorem `random-chosen-bins`.
    Assumptions: independent draws; the finest bins are fixed in advance.
    """

    rows: int
    candidates: tuple[int, ...]
    choice_epsilon: Exact
    release_epsilon: Exact
    gamma: Exact
    independent: bool = True

    def __post_init__(self) -> None:
        set_fields(self, rows=rows_parameter(self.rows))
        found = tuple(
            sorted({whole("candidates", k, least=2) for k in members("candidates", self.candidates)})
        )
        if not found or any(found[-1] % k for k in found):
            raise InvalidParameter(
                parameter="candidates", value=f"{len(found)} numbers", must="be divisors of the largest of them",
                hint="such as 8, 16, 32, 64",
            )  # fmt: skip
        object.__setattr__(self, "candidates", found)
        epsilon_parameter(self.choice_epsilon, "choice_epsilon")
        epsilon_parameter(self.release_epsilon, "release_epsilon")
        gamma_parameter(self.gamma)
        set_fields(
            self, choice_epsilon=self.choice_epsilon, release_epsilon=self.release_epsilon, gamma=self.gamma
        )
        independent(self.independent)
        check_fields(self, independent=flag)

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=sum_of_epsilons(self.choice_epsilon, self.release_epsilon))

    @property
    def _gamma(self) -> Fraction:
        return gamma_parameter(self.gamma)

    def histogram(self, bins: int) -> RandomHistogram:
        """The release with this many bins: gamma divided by the number of candidates."""
        return RandomHistogram(
            rows=self.rows,
            cells=bins,
            epsilon=self.release_epsilon,
            gamma=gamma_parameter(self.gamma) / len(self.candidates),
            small_cells=True,
            sharp=True,
        )

    @property
    def _weight(self) -> Fraction:
        """The cost of one noisy cell in the score: the expected size of its noise, as a public constant."""
        return Fraction(2) / epsilon_parameter(self.release_epsilon, "release_epsilon")

    @property
    def choice(self) -> Exponential:
        """The choice of the number of bins."""
        return Exponential(epsilon=self.choice_epsilon, sensitivity=Score(4 + self._weight))

    def coarse(self, finest: npt.ArrayLike, bins: int) -> npt.NDArray[np.int64]:
        """The counts with this many bins."""
        array = integer_array(finest).astype(np.int64)
        return np.asarray(array.reshape(bins, -1).sum(axis=1))

    def score(self, finest: npt.ArrayLike, bins: int) -> Fraction:
        """Minus the expected error of this many bins: a secret."""
        array = integer_array(finest).astype(np.int64)
        coarse, width = self.coarse(array, bins), self.candidates[-1] // bins
        distance = Fraction(int(np.abs(width * array - np.repeat(coarse, width)).sum()), width)
        return -(distance + self._weight * int((coarse > 0).sum()))

    def release(self, finest: npt.ArrayLike, *, source: Source | None = None) -> ReleasedBins:
        """Choose the number of bins from the counts of the finest ones, then release the histogram with it."""
        source = source if source is not None else default_source()
        array = integer_array(finest)
        if array.size != self.candidates[-1]:
            raise InvalidParameter(
                parameter="finest", value=f"{array.size} cells", must=f"have {self.candidates[-1]} cells"
            )
        scores = [self.score(array, k) for k in self.candidates]
        bins = self.candidates[self.choice.choose(scores, source=source).index]
        made = self.histogram(bins).release(self.coarse(array, bins), source=source)
        return ReleasedBins(bins=bins, histogram=made)
