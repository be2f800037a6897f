"""Truncated histograms (Groce 2014, 6.2): exact counts from a threshold on, 0 below, for a random sample.

The simulator is the truncated histogram without the row. Cells are independent given the row, so that one cell
decides: `thresholds` has its exact delta, worst over the cell's mean. Samples of a fixed size need a few rows
discarded at random (`discarding`). Beside it: the same table as differential privacy of the population, if the
custodian draws the sample in secret (Gehrke, Hay, Lui, Pass 2012), and crowd-blending privacy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach
from tacit.coupled.noiseless.row_laws import as_typed
from tacit.coupled.noiseless.sums import ALONE, group_clause
from tacit.errors import InvalidParameter, NoLaw, NotCertified, UnknownName
from tacit.exact.canonical import formerly
from tacit.exact.checks import check_fields, non_negative, positive, probability, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    Ball,
    Interval,
    ball,
    bisected,
    down,
    positive_ball,
    precision,
    product,
    up,
    upper,
    working_precision,
)
from tacit.guarantees.bounds import Approximate
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.units import Neighbours
from tacit.guarantees.units import rows as each_row
from tacit.noise.distributions.base import Uniform
from tacit.noise.distributions.finite import uniform_draws
from tacit.noise.source import Source

# The exact delta of a truncated cell: its count plus one against its count, both hidden below a threshold k.
#
#     T(m) = m for m >= k, and 0 below;   P = distribution of T(M + 1),  Q = distribution of T(M)
#
# M is the number of the other sampled members of the cell: Poisson with any mean, or binomial with any number of
# members and one rate q. Theorem `truncated-histogram`: with a = k - 1 and E = e^epsilon the worst mean is a/E in the
# direction P || Q and a E in the direction Q || P, and there truncation changes nothing. So
#
#     delta_k(epsilon) = max( H_E(M + 1 || M) at mean a/E,  H_E(M || M + 1) at mean a E )
#
# for the Poisson distribution; for the binomial distribution the same with the smallest numbers of members at
# which the ratio of
# neighbouring probabilities, (n - m + 1) q / (m (1 - q)), reaches 1/E at m = a and E at m = a. Each is one sum of
# positive terms. delta_k falls in k, because a histogram truncated at k + 1 is a function of one truncated at k.

_SPARE_BITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLaw:
    """The distribution of a cell's other members, by the ratio of neighbouring probabilities and one probability."""

    ratio: Callable[[int], Ball]
    chance: Callable[[int], Ball]


def poisson_cell(mean: Ball) -> CellLaw:
    """A Poisson number with this mean: Pr[m]/Pr[m - 1] = mean/m."""

    def chance(m: int) -> Ball:
        return (ball(m) * mean.log() - mean - (ball(m) + 1).lgamma()).exp()

    return CellLaw(ratio=lambda m: mean / m, chance=chance)


def binomial_cell(members: int, rate: Fraction) -> CellLaw:
    """A binomial number: Pr[m]/Pr[m - 1] = (n - m + 1) q / (m (1 - q))."""
    odds = ball(rate / (1 - rate))

    def chance(m: int) -> Ball:
        if not 0 <= m <= members:
            return ball(0)
        ways = (
            (ball(members) + 1).lgamma() - (ball(m) + 1).lgamma() - (ball(members - m) + 1).lgamma()
        ).exp()
        return ways * ball(rate) ** m * ball(1 - rate) ** (members - m)

    return CellLaw(ratio=lambda m: (members - m + 1) * odds / m, chance=chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSample:
    """Cells are independent Poisson counts; `worst` has the worst means of theorem `truncated-histogram`."""

    def worst(self, a: int, factor: Ball) -> tuple[list[CellLaw], list[CellLaw]]:
        """The worst distributions of the two directions at threshold a + 1."""
        return [poisson_cell(a / factor)], [poisson_cell(a * factor)]

    def floor(self, threshold: int) -> Fraction:
        """No epsilon brings delta to this or below."""
        return Fraction(1) if threshold <= 1 else Fraction(0)

    def summary(self) -> str:
        """The assumption."""
        return (
            "the numbers of rows in the cells are independent Poisson numbers, with any means (Poisson sampling of a "
            "population that is large against the sample)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BinomialSample:
    """Every member of a population is sampled independently with probability `rate`, or with any smaller one."""

    rate: Fraction

    def worst(self, a: int, factor: Ball) -> tuple[list[CellLaw], list[CellLaw]]:
        """The worst numbers of members; if a ball does not decide which one is worst, all candidates."""
        inverse = ball((1 - self.rate) / self.rate) * a
        above = [max(n + a - 1, a - 1, 0) for n in _ceilings(inverse / factor)]
        below = [n + a - 1 for n in _ceilings(inverse * factor)]
        return [binomial_cell(n, self.rate) for n in above], [binomial_cell(n, self.rate) for n in below]

    def floor(self, threshold: int) -> Fraction:
        """All threshold - 1 other members of a cell may be sampled, and then the count reveals the row with
        certainty.
        """
        return self.rate ** (threshold - 1)

    def summary(self) -> str:
        """The assumption."""
        return (
            "the rows are a random sample of a population: every member is in it independently, with probability at "
            f"most {float(self.rate):g}"
        )


def _ceilings(value: Ball) -> list[int]:
    """The values that the ceiling of a ball may have."""
    low, high = value.lower().ceil().unique_fmpz(), value.upper().ceil().unique_fmpz()
    if low is None or high is None or int(high) - int(low) > 1:
        raise NotCertified(
            what="the worst number of members", reason="its ball is wider than one at this precision"
        )
    return list(range(int(low), int(high) + 1))


def excess_above(law: CellLaw, a: int, factor: Ball) -> Ball:
    """H(M + 1 || M) on counts above a: the sum over m > a of (Pr[m - 1] - E Pr[m])+; Pr[a] times a series."""
    total, term, m = ball(0), ball(1), a + 1
    while True:
        ratio = law.ratio(m)
        total += term * positive_ball(1 - factor * ratio)
        term *= ratio
        m += 1
        # From here on terms fall at least by `ratio`, which falls in m, and the factors in brackets are below 1.
        if _settled(term, ratio, total):
            return law.chance(a) * (total + _tail(term, ratio))


def excess_below(law: CellLaw, a: int, factor: Ball) -> Ball:
    """H(M || M + 1) on counts up to a: the sum over m <= a of (Pr[m] - E Pr[m - 1])+; Pr[a] times a series."""
    total, term = ball(0), ball(1)
    for m in range(a, -1, -1):
        if m == 0:
            return law.chance(a) * (total + term)
        inverse = 1 / law.ratio(m)
        total += term * positive_ball(1 - factor * inverse)
        term *= inverse
        if _settled(term, inverse, total):
            return law.chance(a) * (total + _tail(term, inverse))
    raise AssertionError("a is not negative")


def at_most(law: CellLaw, a: int) -> Ball:
    """Pr[M <= a], as Pr[a] times a series."""
    total, term = ball(1), ball(1)
    for m in range(a, 0, -1):
        inverse = 1 / law.ratio(m)
        term *= inverse
        if _settled(term, inverse, total):
            return law.chance(a) * (total + _tail(term, inverse))
        total += term
    return law.chance(a) * total


def _settled(term: Ball, ratio: Ball, total: Ball) -> bool:
    """Whether the remainder, a geometric series, is small against the sum so far."""
    if term == 0:
        return True
    small = ball(Fraction(1, 1 << (working_precision() - _SPARE_BITS)))
    return bool(ratio < 1) and bool(term < total * (1 - ratio) * small)


def _tail(term: Ball, ratio: Ball) -> Ball:
    """The ball [0, term / (1 - ratio)]."""
    if term == 0:
        return ball(0)
    return ball(0).union((term / (1 - ratio)).abs_upper())


def delta_of_cell(sampling: PoissonSample | BinomialSample, threshold: int, factor: Ball) -> Ball:
    """delta_k at e^epsilon = factor, worst over the cell."""
    above, below = directions(sampling, threshold, factor, factor)
    return above.max(below)


def directions(
    sampling: PoissonSample | BinomialSample, threshold: int, forward: Ball, backward: Ball
) -> tuple[Ball, Ball]:
    """The two directions, M + 1 against M and M against M + 1, each at its own factor."""
    a = threshold - 1
    if a <= 0:
        return ball(1), ball(1)
    above, _ = sampling.worst(a, forward)
    _, below = sampling.worst(a, backward)
    return (
        _largest([excess_above(law, a, forward) for law in above]),
        _largest([excess_below(law, a, backward) for law in below]),
    )


def _largest(values: list[Ball]) -> Ball:
    out = values[0]
    for value in values[1:]:
        out = out.max(value)
    return out


def population_delta(sampling: BinomialSample, threshold: int, factor: Ball) -> Ball:
    """delta of "sample at this rate, count, truncate" as differential privacy of the population, add-or-remove.

    With the member the count is M + B, B = 1 with probability q:  P' = (1 - q) Q + q P. Hence, with E = e^epsilon,
    H_E(P' || Q) = q H(P || Q) at the factor (E - 1 + q)/q, and H_E(Q || P') = (1 - E (1 - q)) H(Q || P) at the factor
    E q / (1 - E (1 - q)), or 0 if E (1 - q) >= 1. Theorem `sample-then-truncate`.
    """
    q = ball(sampling.rate)
    if threshold <= 1:
        return q.max(positive_ball(1 - factor * (1 - q)))
    left = 1 - factor * (1 - q)
    forward, _ = directions(sampling, threshold, (factor - 1 + q) / q, ball(1))
    if not bool(left > ball(Fraction(1, 1 << _SPARE_BITS))):
        # Almost nothing, times H at an almost unbounded factor: at most the first.
        return (q * forward).max(positive_ball(left))
    _, backward = directions(sampling, threshold, ball(1), factor * q / left)
    return (q * forward).max(left * backward)


# The smallest safe threshold, and the smallest epsilon of a threshold: near it with floats, then certified with
# balls.
#
# Floats only say where to look. A threshold is returned if the certified delta at it is at most the one asked for and
# the certified delta one below is above it, so that it is the smallest; an epsilon if the certified delta at it is.

MOST_THRESHOLD = 10**7
_BITS = 128
_MOST_EPSILON = 100.0
_STEPS = 1e-11

Delta = Callable[[int, float], Interval]


def cell_delta(sampling: PoissonSample | BinomialSample) -> Delta:
    """(threshold, epsilon) -> the exact delta against the histogram without the row, between two floats."""
    return _enclosed(lambda k, factor: delta_of_cell(sampling, k, factor))


def sampled_delta(sampling: BinomialSample) -> Delta:
    """(threshold, epsilon) -> the exact delta of "sample, then truncate" as differential privacy."""
    return _enclosed(lambda k, factor: population_delta(sampling, k, factor))


def _enclosed(formula: Callable[[int, Ball], Ball]) -> Delta:
    @lru_cache(maxsize=256)
    def delta(threshold: int, epsilon: float) -> Interval:
        # e^epsilon times the threshold is to be known to less than one.
        with precision(_BITS + 2 * threshold.bit_length() + math.ceil(3 * epsilon)):
            value = formula(threshold, ball(Fraction(epsilon)).exp())
            if not value.is_finite():
                raise NotCertified(what="delta of a threshold", reason="its ball is not finite")
            return Interval(low=max(down(value), 0.0), high=min(up(value), 1.0))

    return delta


def smallest_threshold(delta_at: Delta, *, epsilon: float, delta: float) -> int:
    """The smallest k with delta_k(epsilon) <= delta: delta_k falls in k."""
    low, high = 1, max(2, _near(epsilon, delta))
    while high > MOST_THRESHOLD or delta_at(high, epsilon).high > delta:
        if high >= MOST_THRESHOLD:
            raise InvalidParameter(
                parameter="epsilon",
                value=epsilon,
                must=f"be larger, or delta be: the threshold would be above {MOST_THRESHOLD}",
            )
        low, high = high, min(high * 2, MOST_THRESHOLD)
    # Regula falsi on ln delta, which is nearly linear in k: a few evaluations where halving takes thirty.
    while high - low > 1:
        middle = _between(delta_at, low, high, epsilon, delta)
        if delta_at(middle, epsilon).high <= delta:
            high = middle
        else:
            low = middle
    return high


def _near(epsilon: float, delta: float) -> int:
    """The starting point: normal noise of variance k around two counts that differ by one. Nothing rests on it."""

    def failing(k: float) -> float:
        near, far = (0.5 / math.sqrt(k) - epsilon * math.sqrt(k), 0.5 / math.sqrt(k) + epsilon * math.sqrt(k))
        return 0.5 * (math.erfc(-near / math.sqrt(2)) - math.exp(epsilon) * math.erfc(far / math.sqrt(2)))

    k = 2.0
    while k <= MOST_THRESHOLD and epsilon < 30 and failing(k) > delta:
        k *= 1.25
    return round(k)


def _between(delta_at: Delta, low: int, high: int, epsilon: float, delta: float) -> int:
    """The point where a straight line through both ends of ln delta meets the target, kept off the ends."""
    y0, y1 = (math.log(max(delta_at(k, epsilon).high, 5e-324)) for k in (low, high))
    share = (y0 - math.log(delta)) / (y0 - y1) if y0 > y1 else 0.5
    share = min(max(share, 0.02), 0.98)
    return min(max(low + round(share * (high - low)), low + 1), high - 1)


def smallest_epsilon(
    delta_at: Callable[[float], Interval], *, delta: float, steps: float = _STEPS
) -> float | None:
    """The smallest epsilon, to within `steps`, with delta(epsilon) <= delta; None if 100 is not enough."""
    if delta_at(0.0).high <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high).high > delta:
        if high >= _MOST_EPSILON:
            return None
        low, high = high, min(2 * high, _MOST_EPSILON)
    return bisected(lambda epsilon: delta_at(epsilon).high <= delta, low, high, relative=steps)[1]


# Samples of a fixed size: a few rows are discarded at random first, so that the number of rows tells nothing.
#
# Of n independent rows of one distribution N are kept, N = n - d, 0 <= d <= D (D even), uniformly chosen:
#
#     Pr[N = n - d]  proportional to  e^{-epsilon_N |d - D/2|} / (n - d)
#
# Theorem `truncated-histogram-fixed-size`: the truncated histogram of the kept rows is (epsilon_N + epsilon_C,
# delta)- private against the same done without the row, if k D <= n, with
#
#     delta = delta_N + max( delta_k(epsilon_C),  sup over means l of Pr[Bin(n - D - 1, l/(n - 1)) <= k - 1]
#                                                 (1 - e^{epsilon_C} R(l))+ ),    R(l) = Pr[Po(l) <= k-2]/Pr[Po(l) <=
#                                                 k-1]
#
#     delta_N = x^{D/2} (1 - x)/(1 + x - 2 x^{D/2 + 1}),   x = e^{-epsilon_N},
#
# delta_k that of Poisson sampling. The supremum is over a continuum: the first factor falls in l and the second
# rises, so that on a cell [l0, l1] the product is at most the first at l0 times the second at l1.

_DISCARDING_BITS = 128
_FIRST_CELLS, _MOST_CELLS = 32, 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """n rows, of which at most `discards` (even) are left out; `size_epsilon` protects the number of kept rows."""

    rows: int
    discards: int
    size_epsilon: float

    def __post_init__(self) -> None:
        check_fields(
            self, rows=partial(whole, least=2), discards=partial(whole, least=2), size_epsilon=positive
        )
        if self.discards % 2 or self.discards + 2 > self.rows:
            raise InvalidParameter(
                parameter="discards", value=self.discards, must="be even, and leave at least two rows"
            )

    @classmethod
    def hiding(cls, *, rows: int, size_epsilon: float, delta: float) -> FixedSize:
        """The release with the fewest discards that keep delta_N at most this delta."""
        n = whole("rows", rows, least=4)
        discards = 2
        while discards + 2 <= n:
            made = cls(rows=n, discards=discards, size_epsilon=size_epsilon)
            if made.size_delta.high <= delta:
                return made
            discards += 2 if discards < 64 else 2 * (discards // 64)
        raise NoLaw(
            operation="a truncated histogram of a sample of fixed size",
            reason=f"{n} rows are too few to hide how many were kept",
            hint="allow a larger size_epsilon or delta",
        )

    @property
    def size_delta(self) -> Interval:
        """delta_N: the probability of either end of the number of kept rows, seen by a kept person."""
        half = self.discards // 2
        with precision(_DISCARDING_BITS):
            x = (-ball(Fraction(self.size_epsilon))).exp()
            value = x**half * (1 - x) / (1 + x - 2 * x ** (half + 1))
            return Interval(low=down(value), high=up(value))

    def weights(self) -> tuple[Ball, ...]:
        """The weights of keeping n, n - 1, ..., n - D rows, at the working precision."""
        x, half = (-ball(Fraction(self.size_epsilon))).exp(), self.discards // 2
        return tuple(x ** abs(d - half) / (self.rows - d) for d in range(self.discards + 1))

    def number(self, source: Source) -> int:
        """The number of rows to discard, drawn exactly by lazy inversion of one uniform number."""
        uniform = Uniform(value=int(source.words(1)[0]), bits=64, source=source)

        def at_least(d: int) -> Ball:
            weights = self.weights()
            return sum(weights[d:], ball(0)) / sum(weights, ball(0))

        return bisected(lambda d: not uniform.below(partial(at_least, d)), 0, self.discards + 1)[0]

    def chosen(self, source: Source) -> NDArray[np.int64]:
        """The rows to discard, as places 0..n-1: a uniform set of `number` of them. It looks at no row."""
        wanted = self.number(source)
        found: set[int] = set()
        while len(found) < wanted:
            found.update(int(k) for k in uniform_draws(self.rows, wanted - len(found), source))
        return np.array(sorted(found), dtype=np.int64)

    def kept(self, counts: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        """The counts of cells after discarding; rows outside all cells may be discarded too.

        Rows of one cell are alike, so they are numbered cell after cell.
        """
        ends = np.cumsum(np.ravel(counts))
        refuse_if(len(ends) and int(ends[-1]) > self.rows, "counts", "more rows", f"be of {self.rows} rows")
        cells = np.searchsorted(ends, self.chosen(source), side="right")
        gone = np.bincount(cells, minlength=len(ends) + 1)[: len(ends)]
        return np.asarray(counts - gone.reshape(np.shape(counts)))

    def delta(self, threshold: int, cell_epsilon: float, *, enough: float = 0.0) -> Interval:
        """The theorem's delta at size_epsilon + cell_epsilon; cells of the supremum are refined until it is certainly
        at most `enough`, or no larger than the other term."""
        k = whole("threshold", threshold, least=2)
        c = non_negative("cell_epsilon", cell_epsilon)
        if k * self.discards > self.rows:
            raise NoLaw(
                operation="a truncated histogram of a sample of fixed size",
                reason="the theorem needs threshold * discards <= rows, and "
                f"{k} * {self.discards} is above {self.rows}",
                hint=f"{k * self.discards} rows would do; or a larger size_epsilon, which discards fewer",
            )
        ends = self.size_delta
        with precision(_DISCARDING_BITS):
            factor = ball(Fraction(c)).exp()
            cell = delta_of_cell(PoissonSample(), k, factor)
            cells = _FIRST_CELLS
            while True:
                hidden = self._hidden(k, factor, cells)
                high = up(ball(ends.high) + cell.max(hidden))
                if bool(hidden <= cell) or high <= enough or cells >= _MOST_CELLS:
                    return Interval(low=min(down(ball(ends.low) + cell), high), high=min(high, 1.0))
                cells *= 4

    def _hidden(self, threshold: int, factor: Ball, cells: int) -> Ball:
        """The supremum over the mean l of a cell that is hidden, for 0 < l <= k e^{epsilon_C}; zero for small l."""
        a, n = threshold - 1, self.rows
        top = threshold * factor
        out = ball(0)
        means = [top * j / cells for j in range(cells + 1)]
        for left, right in itertools.pairwise(means):
            law = poisson_cell(right)
            less = positive_ball(1 - factor * (1 - law.chance(a) / at_most(law, a)))
            if bool(less == 0):
                continue
            rate = Fraction(down(left)) / (n - 1) if bool(left > 0) else Fraction(0)
            if rate >= 1:
                continue
            chance = at_most(binomial_cell(n - self.discards - 1, rate), a) if rate > 0 else ball(1)
            out = out.max(chance * less)
        return out


SAMPLINGS = ("binomial", "fixed", "poisson")
SIMULATOR = "the truncated histogram without the row"
SIZE_SHARE = Fraction(1, 4)
SIZE_DELTA_SHARE = 0.1


def sampling_of(sampling: str, rate: object = None) -> PoissonSample | BinomialSample:
    """Poisson, or binomial with a rate below 1."""
    if sampling == "poisson":
        if rate is not None:
            raise InvalidParameter(parameter="rate", value="given", must="be left out for Poisson sampling")
        return PoissonSample()
    if sampling == "binomial":
        if rate is None:
            raise InvalidParameter(
                parameter="rate",
                value=None,
                must="be the probability with which a member of the population is sampled",
                hint="a bound on it is enough: smaller rates are covered",
            )
        share = as_typed("rate", rate)
        if not 0 < share < 1:
            raise InvalidParameter(
                parameter="rate",
                value=float(share),
                must="lie above 0 and below 1",
                hint="an adversary may know all rows of a complete count but one, so no threshold is safe",
            )
        return BinomialSample(rate=share)
    raise UnknownName(what="sampling", name=str(sampling), known=SAMPLINGS)


def _of_group(
    group: int,
    sampling: str,
    epsilon: float | None,
    delta: float | None,
    threshold: int | None,
    rate: object,
    known_rows: int,
) -> ExactAnswer:
    """Removes the group row by row. Each step has epsilon/g, with the rest of the group as known rows."""
    if sampling == "fixed" or threshold is not None or epsilon is None or delta is None:
        raise InvalidParameter(
            parameter="group", value=group, must="come with epsilon and delta, and with Poisson or binomial sampling",
            hint="the threshold is computed; a fixed number of rows hides single rows only",
        )  # fmt: skip
    whole_price, lost = non_negative("epsilon", epsilon), _delta(delta)
    each = math.nextafter(whole_price / group, 0.0)
    # delta = d (1 + e^each + ... + e^((g-1) each)) for the d of one step.
    steps = upper(lambda: sum(((ball(each) * j).exp() for j in range(group)), ball(0)))
    one = truncated_histogram(
        sampling=sampling,
        rate=rate,
        known_rows=whole("known_rows", known_rows, least=0) + group - 1,
        epsilon=each,
        delta=lost / steps * (1 - 1e-12),
    )
    return replace(
        one,
        epsilon=whole_price,
        epsilon_pair=None,
        delta=lost,
        theorem="hidden-groups",
        simulator="the same without the group",
        assumptions=(*one.assumptions, *group_clause(group)),
        group=group,
        details={
            **one.details,
            "known_rows": known_rows,
            "population": None,
            "delta_at_threshold": min(1.0, one.details["delta_at_threshold"] * steps * (1 + 1e-12)),
        },
    )


def crowd_blending(
    *,
    crowd: int,
    sampling: str,
    delta: float,
    rate: object = None,
    known_rows: int = 0,
    blend_epsilon: float = 0.0,
) -> ExactAnswer:
    """The epsilon, at this delta, of any (crowd, 0)-crowd-blending private release of a random sample.

    Such a release is computed from a histogram truncated at `crowd` rows, over classes that it fixes itself
    (theorem `crowd-blending-exact`). With blend_epsilon above 0 no theorem applies.
    """
    if non_negative("blend_epsilon", blend_epsilon) > 0:
        raise NoLaw(
            operation=f"crowd-blending privacy with epsilon = {blend_epsilon:g} under priors",
            reason="rows that blend with epsilon above 0 form no classes: a blends with b and b with c, and a may not "
            "blend with c, so that the release is computed from no truncated histogram",
            hint="a release that blends exactly (epsilon = 0), or differential privacy",
        )
    if sampling == "fixed":
        raise InvalidParameter(
            parameter="sampling", value=sampling, must="be poisson or binomial for any crowd-blending release"
        )
    size = whole("crowd", crowd, least=2)
    found = truncated_histogram(
        sampling=sampling, rate=rate, known_rows=known_rows, threshold=size, delta=delta
    )
    return replace(
        found,
        statistic=f"output of any release that is ({size}, 0)-crowd-blending private",
        theorem="crowd-blending-exact",
        assumptions=(*found.assumptions, f"the release is ({size}, 0)-crowd-blending private on every table"),
        details={**found.details, "population": None},
    )


def truncated_histogram(
    *,
    sampling: str,
    epsilon: float | None = None,
    delta: float | None = None,
    threshold: int | None = None,
    rate: object = None,
    known_rows: int = 0,
    n: int | None = None,
    size_epsilon: float | None = None,
    group: int = 1,
) -> ExactAnswer:
    """Computes the third of epsilon, delta and threshold from the other two: the smallest safe value.

    `known_rows` is the number of sampled members of one cell that an adversary may know.
    For `sampling="fixed"` also the number
    `n` of rows, and `size_epsilon`, the part of epsilon that protects the number of kept rows (by default a quarter).
    With `group`, the protected unit is a group of up to this many sampled rows, in any cells (theorem `hidden-groups`).
    """
    if (together := whole("group", group)) > 1:
        return _of_group(together, sampling, epsilon, delta, threshold, rate, known_rows)
    if sum(v is None for v in (epsilon, delta, threshold)) != 1:
        raise InvalidParameter(
            parameter="epsilon, delta, threshold",
            value=sum(v is not None for v in (epsilon, delta, threshold)),
            must="be two of the three; the third is computed",
        )
    e = None if epsilon is None else non_negative("epsilon", epsilon)
    d = None if delta is None else _delta(delta)
    k = None if threshold is None else whole("threshold", threshold)
    known = whole("known_rows", known_rows, least=0)
    if sampling == "fixed":
        return _fixed(epsilon=e, delta=d, threshold=k, rate=rate, known=known, n=n, size_epsilon=size_epsilon)
    for name, value in (("n", n), ("size_epsilon", size_epsilon)):
        if value is not None:
            raise InvalidParameter(parameter=name, value=value, must="be left out, except for a fixed size")
    law = sampling_of(sampling, rate)
    delta_at = cell_delta(law)
    if k is None:
        assert e is not None
        assert d is not None
        k = smallest_threshold(delta_at, epsilon=e, delta=d) + known
    free = k - known
    if free < 2:
        raise delta_out_of_reach(
            "truncated histogram", 0.0 if d is None else d, 1.0,
            hint=f"the threshold must be at least {known + 2}: below, one row beside {known} known ones shows",
            ours=True,
        )  # fmt: skip
    if e is None:
        assert d is not None
        e = _epsilon(delta_at, free, d, float(law.floor(free)))
    if d is None:
        d = delta_at(free, e).high
    return _answer(
        law=law,
        sampling=sampling,
        threshold=k,
        known=known,
        epsilon=e,
        delta=d,
        found=delta_at(free, e),
        pair=_pair(delta_at, free, d),
    )


def _delta(value: object) -> float:
    found = probability("delta", value, below_one=True)
    if found == 0:
        raise InvalidParameter(
            parameter="delta",
            value=0.0,
            must="be above 0: an empty cell that gets enough rows by chance shows for certain who is in it",
            hint="any positive delta has a threshold",
        )
    return found


def _epsilon(delta_at: Any, threshold: int, delta: float, floor: float) -> float:
    found = smallest_epsilon(lambda e: delta_at(threshold, e), delta=delta)
    if found is None:
        smallest = max(floor, delta_at(threshold, 100.0).high)
        raise delta_out_of_reach(
            "truncated histogram",
            delta,
            smallest,
            hint="raise the threshold to lower delta, or add noise",
            ours=True,
        )
    return found


def _pair(delta_at: Any, threshold: int, delta: float) -> float | None:
    """Between two cells of one row: (2 e, (1 + e^e) delta_k(e)) by `simulator-to-pair`, at the smallest such e."""

    def wider(e: float) -> Interval:
        found = delta_at(threshold, e)
        return Interval(low=found.low, high=upper(lambda: (1 + ball(e).exp()) * ball(found.high)))

    found = smallest_epsilon(wider, delta=delta)
    return None if found is None else product(2.0, found).high


def _answer(
    *,
    law: PoissonSample | BinomialSample,
    sampling: str,
    threshold: int,
    known: int,
    epsilon: float,
    delta: float,
    found: Interval,
    pair: float | None,
) -> ExactAnswer:
    details: dict[str, Any] = {
        "sampling": sampling,
        "rate": float(law.rate) if isinstance(law, BinomialSample) else None,
        "known_rows": known,
        "delta_at_threshold": found.high,
        "crowd_blending": {"crowd": threshold, "epsilon": 0.0},
        "population": None,
    }
    if isinstance(law, BinomialSample):
        beside = sample_then_truncate(rate=law.rate, epsilon=epsilon, delta=delta)
        details["population"] = beside.to_dict()
    knows = (
        "nobody knows of any other person whether they are in the sample"
        if not known
        else f"nobody knows of more than {known} other people of one cell that they are in the sample"
    )
    return ExactAnswer(
        statistic=f"histogram with counts below {threshold} replaced by 0",
        epsilon=epsilon,
        epsilon_pair=pair,
        delta=delta,
        assumptions=(law.summary(), knows, "the cells were fixed before the rows were seen", ALONE),
        theorem="truncated-histogram",
        simulator=SIMULATOR,
        rows=None,
        unknown_rows=1,
        family=f"{law.summary()}; at most {known} sampled rows of a cell are known",
        threshold=threshold,
        details=details,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledHistogram:
    """Sample at a rate in secret, count, hide counts below the threshold: (epsilon, delta)-DP of the population."""

    rate: Fraction
    threshold: int
    epsilon: float
    delta: float

    @property
    def guarantee(self) -> Guarantee:
        """Differential privacy for every population; its unit is a row of the population."""
        return Guarantee(
            bound=Approximate(epsilon=self.epsilon, delta=self.delta),
            unit=each_row(neighbours=Neighbours.ADD_OR_REMOVE),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "threshold": self.threshold,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "guarantee": str(self.guarantee),
            "theorem": "sample-then-truncate",
        }

    record = formerly("record")


def sample_then_truncate(*, rate: object, epsilon: float, delta: float) -> SampledHistogram:
    """The smallest threshold that makes it (epsilon, delta)-DP; theorem `sample-then-truncate`.

    The database is the population. Whoever releases draws the sample with exactly this rate and keeps it
    secret: the protected fact is membership in the population, not in the sample.
    """
    law = sampling_of("binomial", rate)
    assert isinstance(law, BinomialSample)
    e, d = positive("epsilon", epsilon), _delta(delta)
    found = smallest_threshold(sampled_delta(law), epsilon=e, delta=d)
    return SampledHistogram(rate=law.rate, threshold=found, epsilon=e, delta=d)


def cell_part(epsilon: float, size: float) -> float:
    """The remaining part of epsilon for a cell, rounded down, so that the two parts never add up to more."""
    return down(Fraction(epsilon) - Fraction(size))


def _fixed(
    *,
    epsilon: float | None,
    delta: float | None,
    threshold: int | None,
    rate: object,
    known: int,
    n: int | None,
    size_epsilon: float | None,
) -> ExactAnswer:
    """A sample of fixed size with random discarding: epsilon and delta are given, the threshold is found."""
    if rate is not None or known:
        raise InvalidParameter(
            parameter="rate" if rate is not None else "known_rows",
            value="given",
            must="be left out for a sample of fixed size",
            hint="the theorem is about independent rows of which none is known",
        )
    if n is None or epsilon is None or delta is None or threshold is not None:
        raise InvalidParameter(
            parameter="n, epsilon, delta",
            value=None if n is None else n,
            must="all be given for a sample of fixed size; the threshold is computed",
        )
    refuse_if(epsilon == 0, "epsilon", 0.0, "be above 0 for a sample of fixed size")
    size = (
        float(Fraction(epsilon) * SIZE_SHARE)
        if size_epsilon is None
        else positive("size_epsilon", size_epsilon)
    )
    refuse_if(size >= epsilon, "size_epsilon", size, "be below epsilon")
    kept = FixedSize.hiding(rows=n, size_epsilon=size, delta=SIZE_DELTA_SHARE * delta)
    cell = cell_part(epsilon, size)
    left = down(Fraction(delta) - Fraction(kept.size_delta.high))
    found = smallest_threshold(cell_delta(PoissonSample()), epsilon=cell, delta=left)
    while (reached := kept.delta(found, cell, enough=delta)).high > delta:
        found += 1
    return ExactAnswer(
        statistic=f"histogram of the kept rows with counts below {found} replaced by 0",
        epsilon=epsilon,
        epsilon_pair=None,
        delta=delta,
        assumptions=(
            f"the {kept.rows} rows are independent draws of one law, whatever it is",
            "nobody knows any other row",
            f"up to {kept.discards} rows are discarded at random first, as many as theorem "
            "truncated-histogram-fixed-size says, and nobody learns how many or which",
            "the cells were fixed before the rows were seen",
            ALONE,
        ),
        theorem="truncated-histogram-fixed-size",
        simulator="the same, discarding included, without the row",
        rows=kept.rows,
        unknown_rows=kept.rows,
        family="independent rows of one law, whatever it is",
        threshold=found,
        details={
            "sampling": "fixed",
            "discards": kept.discards,
            "size_epsilon": size,
            "cell_epsilon": cell,
            "size_delta": kept.size_delta.high,
            "delta_at_threshold": reached.high,
            "crowd_blending": {"crowd": found, "epsilon": 0.0},
        },
    )
