"""Decisions by a sum of scores: one of two answers, and its exact privacy loss for one row.

A row of value x adds the integer score s(x); the answer is "yes" if the total reaches a threshold c. With R the sum
of the scores of the other unknown rows and s0 the simulator's replacement for the row,

    P = Pr[R + s(x) >= c],   Q = Pr[R + s0 >= c],

and there are only two outcomes, so that the smallest e^epsilon at a delta is the largest of (P - delta)/Q and of the
three like it (theorem `two-answers`). Rows that an adversary knows shift c; the result is for the worst c.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach, row_law, shown
from tacit.coupled.noiseless.largest import FIXED, Told, answer_laws, best_of_two, told_by
from tacit.coupled.noiseless.lattice import SumLaw, sum_law
from tacit.coupled.noiseless.row_laws import RowLaw, table
from tacit.coupled.noiseless.sums import ALONE, known_rows_clause, rows_and_unknown, wanted_delta
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import listed, positive, probability, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, precision, up, upper
from tacit.mechanisms import PermuteAndFlip, Score
from tacit.noise.source import Source, default_source

RESOLUTION = 64
"""The number of parts of a natural logarithm to which scores are rounded."""

_MORE = 1 + 1e-11


@dataclass(frozen=True, slots=True, eq=False)
class LeadTails:
    """Pr[R >= c] and Pr[R < c] between two ends, for every integer c."""

    start: int
    ends: tuple[Floats, Floats, Floats, Floats]

    @classmethod
    def of(cls, law: SumLaw, shift: int, *, off: float = 0.0) -> LeadTails:
        """For a sum whose least value is `shift`; `off` bounds the distance of `law` from the intended distribution."""
        high, low, out = law.high, law.low, law.outside
        up_high = np.append(np.cumsum(high[::-1])[::-1], 0.0) * _MORE + out
        down_high = np.append(0.0, np.cumsum(high)) * _MORE + out
        up_low = np.append(np.cumsum(low[::-1])[::-1], 0.0) / _MORE - off
        down_low = np.append(0.0, np.cumsum(low)) / _MORE - off
        up = np.minimum(up_high, 1.0), np.maximum(up_low, 1 - down_high - 1e-15)
        down = np.minimum(down_high, 1.0), np.maximum(down_low, 1 - up_high - 1e-15)
        return cls(law.start + shift, (up[0], np.maximum(up[1], 0.0), down[0], np.maximum(down[1], 0.0)))

    def at(self, c: np.ndarray) -> tuple[Floats, Floats, Floats, Floats]:
        """(Pr[R >= c] from above, from below, Pr[R < c] from above, from below)."""
        places = np.clip(c - self.start, 0, len(self.ends[0]) - 1)
        up_high, up_low, down_high, down_low = (end[places] for end in self.ends)
        return up_high, up_low, down_high, down_low

    def window(self, first: np.ndarray, last: np.ndarray) -> Floats:
        """Pr[first <= R < last] from above, by the better of two differences of tails."""
        a, b = self.at(first), self.at(last)
        return np.minimum(np.maximum(np.minimum(a[0] - b[1], b[2] - a[3]), 0.0) * _MORE + 1e-15, 1.0)

    def anywhere(self, reach: int) -> np.ndarray:
        """All thresholds at which a score of this size can matter."""
        return np.arange(self.start - reach - 1, self.start + len(self.ends[0]) + reach + 1)


def factor_of_answers(
    tails: LeadTails, thresholds: np.ndarray, score: int, instead: int, delta: float
) -> tuple[float, float]:
    """(Smallest factor e^epsilon at this delta over these thresholds, the largest delta at epsilon = 0)."""
    real, ideal = tails.at(thresholds - score), tails.at(thresholds - instead)
    worst = 1.0
    for here, there in ((real, ideal), (ideal, real)):
        for high, low in ((here[0], there[1]), (here[2], there[3])):
            over = high - delta
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(over > 0, over / low, 0.0)
            worst = max(worst, float(np.max(ratio)) * _MORE)
    first, last = thresholds - max(score, instead), thresholds - min(score, instead)
    apart = float(np.max(tails.window(first, last))) if score != instead else 0.0
    return (1.0 if apart <= delta else worst), apart


def floor_of_answers(tails: LeadTails, thresholds: np.ndarray, score: int, instead: int) -> float:
    """The remaining delta at every factor: the probability of an answer that the other world never gives."""
    real, ideal = tails.at(thresholds - score), tails.at(thresholds - instead)
    # Places 0 and 2 are upper ends of the two answers, 1 and 3 lower ones.
    left = [
        np.where(other[answer + 1] <= 0, one[answer], 0.0)
        for answer in (0, 2)
        for one, other in [(real, ideal), (ideal, real)]
    ]
    return float(np.max(left))


def same_places(laws: Sequence[RowLaw]) -> None:
    """All distributions must give every value of one grid a positive probability; otherwise some value would reveal
    the distribution.
    """
    first = laws[0]
    for law in laws[1:]:
        if (law.low, law.step, law.support) != (first.low, first.step, first.support):
            raise InvalidParameter(
                parameter="hypotheses",
                value=law.name,
                must="have the same possible values on the same grid",
                hint="a value that is possible under one law only tells the law, and the row, for certain",
            )


def log_scores(law: RowLaw, other: RowLaw) -> dict[int, int]:
    """place -> RESOLUTION times ln(law/other), rounded to an integer. These rounded scores define the mechanism, so
    rounding adds no error.
    """
    out = {}
    with precision(96):
        for k in law.support:
            ratio = law.weights[k] / other.weights[k]
            out[k] = round(float((ball(ratio).log() * RESOLUTION).mid()))
    return out


def pushed(law: RowLaw, scores: dict[int, int]) -> tuple[tuple[Fraction, ...], int]:
    """(Weights of the scores of a row, from the least one on; the least one)."""
    low, high = min(scores.values()), max(scores.values())
    weights = [Fraction(0)] * (high - low + 1)
    for k, score in scores.items():
        weights[score - low] += law.weights[k]
    return tuple(weights), low


def score_tails(law: RowLaw, scores: dict[int, int], hidden: int, delta: float) -> LeadTails:
    """The tails of the sum of this many scores."""
    weights, low = pushed(law, scores)
    if len(weights) == 1:
        point = SumLaw(0, np.ones(1), np.ones(1), 0.0)
        return LeadTails.of(point, low * hidden)
    total = sum_law(weights, hidden, delta=min(delta, 1e-3))
    # What the written distribution is off by moves every tail by no more than this.
    off = up(law.rounding * hidden)
    return LeadTails.of(replace(total, outside=total.outside + off), low * hidden, off=off)


def flip_bound(tails: LeadTails, thresholds: np.ndarray, scores: Iterable[int]) -> float:
    """The largest probability that a row with one of these scores changes the answer: R lies between c - s and
    c.
    """
    worst = 0.0
    for score in set(scores):
        if score == 0:
            continue
        first, last = (thresholds - score, thresholds) if score > 0 else (thresholds, thresholds - score)
        worst = max(worst, float(np.max(tails.window(first, last))))
    return worst


def log_up_factor(factor: float) -> float:
    """ln of a factor of at least 1, rounded up."""
    return 0.0 if factor <= 1 else math.log(factor) * (1 + 1e-12) + 1e-15


# How often one row would change the largest of several sums, by simulation: an upper confidence limit.
#
# Tables are drawn from the distributions that are assumed, never from data. The limit is wrong with probability at most
# `wrong`; theorem `simulated-stability` says what follows for an answer that is published only where limit + wrong is
# small.
#
# Rows are drawn one by one from the cryptographic source. A word of 64 bits is compared with the cumulative weights,
# rounded: that moves the distribution of a row by less than (values) 2^-64, which is added to the limit once a row.

MOST_ROWS_DRAWN = 10**9
_BLOCK = 1 << 20
_WIDER = 1 + 2.0**-30


def drawn_counts(weights: Sequence[Fraction], rows: int, tables: int, source: Source) -> np.ndarray:
    """The frequency of each value among the rows of each table."""
    ends, total = [], Fraction(0)
    for w in weights[:-1]:
        total += w
        ends.append(min(int(total * (1 << 64)), (1 << 64) - 1))
    edges = np.array(ends, dtype=np.uint64)
    out = np.zeros((tables, len(weights)), dtype=np.int64)
    at_once = max(1, _BLOCK // rows)
    for first in range(0, tables, at_once):
        some = min(at_once, tables - first)
        # In pieces, so that a table of many rows is never held at once.
        for begin in range(0, rows, _BLOCK):
            size = min(_BLOCK, rows - begin)
            values = np.searchsorted(edges, source.words(some * size), side="right")
            place = np.repeat(np.arange(some), size) * len(weights) + values
            found = np.bincount(place, minlength=some * len(weights))
            out[first : first + some] += found.reshape(some, len(weights))
    return out


def changes(
    laws: Sequence[RowLaw],
    scores: Sequence[Mapping[int, int]],
    offsets: Sequence[int],
    hidden: int,
    draws: int,
    *,
    wrong: float,
    source: Source | None = None,
) -> dict[str, float]:
    """An upper limit, over all rows, on the chance that one row changes the estimate. It is too low with chance
    `wrong`.

    The limit of the largest count is the largest limit, and so no lower than that of the worst row. No level is
    divided among rows and distributions. `delta` is the theorem's delta: the limit and `wrong` together.
    """
    if draws * hidden * len(laws) > MOST_ROWS_DRAWN:
        raise InvalidParameter(
            parameter="draws",
            value=draws,
            must=f"make at most {MOST_ROWS_DRAWN} rows: draws times rows times laws",
            hint="the bound beside it needs no simulation",
        )
    places = list(laws[0].support)
    matrix = np.array([[s[p] for p in places] for s in scores], dtype=np.int64)
    worst = 0
    for law in laws:
        counts = drawn_counts([law.weights[p] for p in places], hidden, draws, source or default_source())
        sums = counts @ matrix.T + np.array(offsets)
        before = np.argmax(sums, axis=1)
        changed = [int(np.sum(np.argmax(sums + matrix[:, q], axis=1) != before)) for q in range(len(places))]
        worst = max(worst, *changed)
    rounding = max(law.rounding for law in laws) + Fraction(len(places), 1 << 64)
    limit = Fraction(limit_of(worst, draws, wrong)) + hidden * rounding
    return {
        "upper": min(1.0, up(limit)),
        "delta": min(1.0, up(limit + Fraction(wrong))),
        "wrong": wrong,
        "draws": draws,
        "changed": worst,
    }


def limit_of(seen: int, draws: int, wrong: float) -> float:
    """Clopper and Pearson's upper limit: a p with Pr[Bin(draws, p) <= seen] <= wrong."""
    from scipy.special import betaincinv

    if seen >= draws:
        return 1.0
    found = float(betaincinv(seen + 1, draws - seen, 1 - wrong))
    with precision(128):
        while found < 1:
            # Pr[Bin(m, p) <= c] = I_{1-p}(m - c, c + 1)
            tail = (1 - ball(found)).beta_lower(ball(draws - seen), ball(seen + 1), regularized=True)
            if bool(tail <= ball(wrong)):
                return found
            found *= _WIDER
    return 1.0


# Stable functions (Groce 2014, 6.1): maximum a posteriori, tests at a level and modes, exactly.
#
# Removing one row seldom changes such an answer, and delta = Pr[F(X) != F(X without the row) | the row] is enough for
# (0, delta) (Thm 6.1). Here that probability is computed, not bounded by Chernoff; for two answers the whole curve
# is.

WRONG = 0.01
"""The part of delta for a wrong simulation."""

ONCE = (
    "a simulation of {draws} tables, a number that was fixed before, was run once: it is wrong with probability at "
    "most {wrong}, which is part of delta, and every further run adds as much"
)
AT_ZERO = (
    "for three answers or more and so many rows there is a union bound only, at epsilon = 0 and against the answer "
    "without the row"
)

NEAR = 1e-12
"""The relative width of enclosed tails for delta = 0."""


def decision_delta(delta: object) -> float:
    """A valid delta; 0 too, since a decision among a few answers may reach it."""
    return 0.0 if probability("delta", delta, below_one=True) == 0 else wanted_delta(delta)


def _laws(hypotheses: Sequence[str | RowLaw], grid: object) -> list[RowLaw]:
    laws = [row_law(h, grid=grid) for h in listed("hypotheses", hypotheses)]
    refuse_if(len(laws) < 2, "hypotheses", len(laws), "be two laws at least")
    same_places(laws)
    if any(a.weights == b.weights for i, a in enumerate(laws) for b in laws[:i]):
        raise InvalidParameter(
            parameter="hypotheses",
            value="two equal ones",
            must="differ",
            hint="equal distributions cannot be distinguished",
        )
    return laws


def thesis_map(laws: Sequence[RowLaw], weights: Sequence[float], others: int) -> float:
    """Thm 6.3: delta = (k - 1) tau (M + 1) e^{-n u}, u the least -ln E[(f_i/f_j)^s], the best s of a few (floats)."""
    k = len(laws)
    arrays = [np.array([float(law.weights[p]) for p in law.support]) for law in laws]
    ratio = max(float(np.max(a / b)) for a in arrays for b in arrays)
    tau = max(a / b for a in weights for b in weights)
    best = math.inf
    for s in np.linspace(0.05, 0.95, 19):
        u = min(
            -math.log(float(np.sum(b ** (1 - s) * a**s)))
            for i, a in enumerate(arrays)
            for j, b in enumerate(arrays)
            if i != j
        )
        best = min(best, (k - 1) * tau * (ratio + 1) * math.exp(-others * u))
    return best


def thesis_map_epsilon(laws: Sequence[RowLaw], weights: Sequence[float], others: int, least: float) -> float:
    """Thm 6.4: epsilon = ln((1 + (M/l - 1) tau M e^{-nu}) / (1 - (k-1) tau M e^{-nu})), every distribution
    with chance >= l.
    """
    k = len(laws)
    arrays = [np.array([float(law.weights[p]) for p in law.support]) for law in laws]
    ratio = max(float(np.max(a / b)) for a in arrays for b in arrays)
    rest = thesis_map(laws, weights, others) / ((k - 1) * (ratio + 1)) * ratio
    if (k - 1) * rest >= 1:
        return math.inf
    return math.log((1 + (ratio / least - 1) * rest) / (1 - (k - 1) * rest))


def stable_epsilon(*, least: float, change: float) -> float:
    """Thm 6.2: answers have chances >= c, a row changes them with chance <= mu < c: epsilon = ln((c+mu)/(c-mu))."""
    c, mu = probability("least", least), probability("change", change)
    refuse_if(mu >= c, "change", mu, "be below the least probability of an answer")
    return upper(lambda: ((ball(c) + ball(mu)) / (ball(c) - ball(mu))).log())


def exact_map(
    hypotheses: Sequence[str | RowLaw],
    *,
    n: int,
    delta: float,
    weights: Sequence[float] | None = None,
    unknown_rows: int | None = None,
    grid: object = None,
    draws: int = 0,
) -> ExactAnswer:
    """The source distribution of the rows, published exactly: the epsilon at this delta.

    The rows are independent draws of one of the distributions. `weights` are the prior weights of the
    estimator, and say nothing about the truth. Scores ln f_j are rounded to 1/64: the estimator uses the
    rounded ones. For more than two distributions epsilon is 0 and delta is a union over pairs. If that is too
    large, small tables are summed exactly (theorem `largest-best`). For larger ones `draws` simulated tables
    may certify the delta (theorem `simulated-stability`): one simulation, wrong with a hundredth of delta.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    laws = _laws(hypotheses, grid)
    prior = [1.0] * len(laws) if weights is None else [float(w) for w in listed("weights", weights)]
    if len(prior) != len(laws) or not all(math.isfinite(w) and w > 0 for w in prior):
        raise InvalidParameter(parameter="weights", value=len(prior), must="be positive, one a hypothesis")
    scores = [log_scores(law, laws[0]) for law in laws]
    offsets = [round(RESOLUTION * math.log(w / prior[0])) for w in prior]
    hidden = unknown - 1
    factor, stability, pair, floor = 1.0, 0.0, 1.0, 0.0
    for j, law in enumerate(laws):
        if len(laws) == 2:
            gap = {p: scores[0][p] - scores[1][p] for p in law.support}
            tails = score_tails(law, gap, hidden, target)
            places = _thresholds(tails, gap, offsets[1] - offsets[0], unknown < size)
            for score in set(gap.values()):
                needed, apart = factor_of_answers(tails, places, score, 0, target)
                factor, stability = max(factor, needed), max(stability, apart)
                floor = max(floor, floor_of_answers(tails, places, score, 0))
            # Both probabilities are monotone in the score: two values are furthest apart at the ends.
            pair = max(
                pair, factor_of_answers(tails, places, max(gap.values()), min(gap.values()), target)[0]
            )
        else:
            stability = max(stability, _union(laws, j, scores, offsets, hidden, target, unknown < size))
    told = None
    if len(laws) > 2 and unknown == size:
        told = _small_map(laws, scores, offsets, hidden, target, stability)
    details: dict[str, Any] = {
        "stability": stability,
        "thesis_delta": min(1.0, thesis_map(laws, prior, size - 1)) if unknown == size else None,
        "resolution": RESOLUTION,
        **({} if told is None else told.details),
    }
    if draws:
        refuse_if(unknown < size, "draws", draws, "be left out if some rows are known")
        details["simulated"] = changes(
            laws, scores, offsets, hidden, whole("draws", draws, least=1000), wrong=WRONG * target
        )
    simulator = "the estimate without the row"
    if told is not None and stability > target:
        factor, pair, simulator = told.factor, told.pair, told.simulator
    else:
        told = None
    by_draws = (
        len(laws) > 2
        and told is None
        and stability > target
        and draws > 0
        and details["simulated"]["delta"] <= target
    )
    hint = "more rows, or distributions that lie further apart"
    if math.isinf(factor):
        raise delta_out_of_reach("most likely law", target, min(floor, stability), hint=hint, ours=True)
    if len(laws) > 2 and told is None and stability > target and not by_draws:
        raise delta_out_of_reach("most likely law", target, stability, reason=AT_ZERO, hint=hint, ours=True)
    if len(laws) > 2 and told is None and 2 * stability > target:
        pair = math.inf
    names = ", ".join(law.describe() for law in laws)
    return ExactAnswer(
        statistic="maximum a posteriori estimate",
        epsilon=log_up_factor(factor),
        epsilon_pair=None if math.isinf(pair) else log_up_factor(pair),
        delta=target,
        assumptions=(
            f"the rows are independent draws from one of these laws: {names}",
            known_rows_clause(size, unknown),
            ALONE,
            *((ONCE.format(draws=draws, wrong=shown(WRONG * target)),) if by_draws else ()),
        ),
        theorem="simulated-stability"
        if by_draws
        else "two-answers"
        if len(laws) == 2
        else "stable-functions"
        if told is None
        else "largest-best",
        simulator=simulator,
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows, all from one of: {names}",
        details=details,
    )


def _small_map(
    laws: Sequence[RowLaw],
    scores: Sequence[Mapping[int, int]],
    offsets: Sequence[int],
    hidden: int,
    delta: float,
    stability: float,
) -> Told | None:
    """The exact distribution of the estimate under each distribution of a row, if the rows and their values are few."""
    found = []
    for law in laws:
        values: dict[tuple[int, ...], Fraction] = {}
        for p in law.support:
            row = tuple(s[p] for s in scores)
            values[row] = values.get(row, Fraction(0)) + law.weights[p]
        one = answer_laws(values, offsets, hidden, rounding=law.rounding)
        if one is None:
            return None
        found.append(one)
    return told_by(found, delta).capped(stability, delta)


def _thresholds(tails: Any, gap: Mapping[int, int], fixed: int, known: bool) -> np.ndarray:
    """The threshold; with known rows, whose scores may be anything, all possible thresholds."""
    reach = max(abs(v) for v in gap.values())
    return tails.anywhere(reach) if known else np.array([fixed])


def _union(
    laws: Sequence[RowLaw],
    j: int,
    scores: Any,
    offsets: Sequence[int],
    hidden: int,
    delta: float,
    known: bool,
) -> float:
    """An upper end of the probability under distribution j that removing a row changes the largest of several sums.

    The smaller of two unions, for every value of the row. (i) If the answer changes from a to b, so does the
    order of a and b: the bound sums the probability of that over pairs. (ii) If it changes, it is not j before
    or after: the sum over the others b of the chance that b is not behind j with or without the row. Ties go to
    the first.
    """
    law = laws[j]
    turned, beaten = (dict.fromkeys(law.support, 0.0) for _ in range(2))
    for a in range(len(laws)):
        for b in range(a):
            gap = {p: scores[b][p] - scores[a][p] for p in law.support}
            tails = score_tails(law, gap, hidden, delta)
            fixed = offsets[a] - offsets[b]
            places = _thresholds(tails, gap, fixed, known)
            chance = {s: flip_bound(tails, places, [s]) for s in set(gap.values())}
            for p, s in gap.items():
                turned[p] += chance[s]
                if j == b:
                    beaten[p] += 1.0 if known else float(tails.at(np.array(fixed - min(0, s)))[2])
                elif j == a:
                    beaten[p] += 1.0 if known else float(tails.at(np.array(fixed - max(0, s)))[0])
    return min(1.0, max(min(turned[p], beaten[p]) for p in law.support))


def exact_test(
    null: str | RowLaw,
    alternative: str | RowLaw,
    *,
    n: int,
    level: float,
    delta: float,
    unknown_rows: int | None = None,
    grid: object = None,
) -> ExactAnswer:
    """The decision of the likelihood-ratio test at a level, published exactly: the epsilon at this delta.

    Rejects if the sum of rounded scores reaches the smallest threshold whose probability under the null is at most the
    level. The rows come from either distribution. The simulator puts a middling score in place of the row.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    limit = probability("level", level, below_one=True)
    refuse_if(limit < 1e-12, "level", level, "be above 0")
    laws = _laws([null, alternative], grid)
    scores = log_scores(laws[1], laws[0])
    whole_law = score_tails(laws[0], scores, size, min(target, limit / 100))
    places = whole_law.anywhere(0)
    reached = whole_law.at(places)[0]
    inside = np.flatnonzero(reached <= limit)
    refuse_if(limit <= 0 or not len(inside), "level", level, "be above 0, and reachable by so few rows")
    threshold = int(places[inside[0]])
    power = float(score_tails(laws[1], scores, size, target).at(np.array([threshold]))[1][0])
    middle = (min(scores.values()) + max(scores.values())) // 2
    factor, stability, pair, floor = 1.0, 0.0, 1.0, 0.0
    for law in laws:
        tails = score_tails(law, scores, unknown - 1, target)
        reach = max(abs(s) for s in scores.values())
        where = np.array([threshold]) if unknown == size else tails.anywhere(reach)
        for score in set(scores.values()):
            needed, apart = factor_of_answers(tails, where, score, middle, target)
            factor, stability = max(factor, needed), max(stability, apart)
            floor = max(floor, floor_of_answers(tails, where, score, middle))
        pair = max(
            pair, factor_of_answers(tails, where, max(scores.values()), min(scores.values()), target)[0]
        )
    if math.isinf(factor):
        raise delta_out_of_reach("decision of a test", target, min(floor, stability), ours=True)
    names = f"{laws[0].describe()} (null) or {laws[1].describe()} (alternative)"
    return ExactAnswer(
        statistic=f"decision of a test at level {limit:g}",
        epsilon=log_up_factor(factor),
        epsilon_pair=None if math.isinf(pair) else log_up_factor(pair),
        delta=target,
        assumptions=(f"the rows are independent draws from {names}", known_rows_clause(size, unknown), ALONE),
        theorem="two-answers",
        simulator="the decision with a middling score in place of the row",
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows, all from {names}",
        details={
            "stability": stability,
            "level": float(reached[inside[0]]),
            "power": power,
            "score_threshold": threshold / RESOLUTION,
        },
    )


def exact_mode(
    categories: Mapping[Any, Any], *, n: int, delta: float, unknown_rows: int | None = None
) -> ExactAnswer:
    """The most frequent category, published exactly, for independent rows with these probabilities.

    For two categories, and for more in small tables of unknown rows, epsilon is that of the best simulator
    (theorem `largest-best`), and `details` has that of the simulator without the row. Otherwise epsilon is 0
    and delta a bound. A row of category x changes the mode only if it lifts x past a category that led by
    exactly that much. So the bound is the sum over the other categories of one probability of a difference of
    counts (ties go to the first of the mapping), and at most the probability that it lifts x past the likeliest
    category. Known rows may have led to any lead: then the most likely differences count.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = decision_delta(delta)
    law = table(dict(enumerate(categories.values())))
    near = target or NEAR
    worst = 0.0
    leader = max(law.support, key=lambda k: law.weights[k])
    for x in law.support:
        total, past = 0.0, 1.0
        for other in law.support:
            if other == x:
                continue
            lead = {p: int(p == other) - int(p == x) for p in law.support}
            tails = score_tails(law, lead, unknown - 1, near)
            at = np.array([1 if x < other else 0]) if unknown == size else tails.anywhere(1)
            total += float(np.max(tails.window(at, at + 1)))
            if other == leader and unknown == size:
                past = float(tails.at(at + 1)[2][0])
        worst = max(worst, min(total, past))
    told: Told | None = None
    if len(law.support) == 2:
        one, other = law.support
        ahead = {one: 1, other: -1}
        tails = score_tails(law, ahead, unknown - 1, near)
        told = _two_told(tails, tails.anywhere(1) if unknown < size else np.array([0]), -1, 1, target)
    elif unknown == size:
        values = {tuple(int(p == x) for p in law.support): law.weights[x] for x in law.support}
        laws = answer_laws(values, [0] * len(values), unknown - 1, rounding=law.rounding)
        told = None if laws is None else told_by([laws], target).capped(worst, target)
    names = list(categories)
    given = ", ".join(f"{names[int(law.low + k * law.step)]}: {law.weights[k]}" for k in law.support)
    return _answer(
        told,
        stability=worst,
        delta=target,
        statistic="most frequent category",
        what="mode",
        hint="more rows, or a clearer leader",
        rows_are=f"independent draws of {len(law.support)} categories, with the probabilities {given}",
        family=f"independent rows of {len(law.support)} categories, with the probabilities {given}",
        size=size,
        unknown=unknown,
    )


def _answer(
    told: Told | None, *, stability: float, delta: float, statistic: str, what: str, hint: str, rows_are: str,
    family: str, size: int, unknown: int, **details: Any,
) -> ExactAnswer:  # fmt: skip
    """The answer of a decision by the exact distributions, or by a union bound at epsilon = 0."""
    if told is None and stability > delta:
        raise delta_out_of_reach(what, delta, stability, reason=AT_ZERO, hint=hint, ours=True)
    if told is not None and math.isinf(told.factor):
        raise delta_out_of_reach(what, delta, told.at_zero, hint=hint, ours=True)
    if told is not None:
        factor, pair, simulator = told.factor, told.pair, told.simulator
    else:
        factor, pair = 1.0, 1.0 if 2 * stability <= delta else math.inf
        simulator = f"the {what} without the row"
    return ExactAnswer(
        statistic=statistic,
        epsilon=log_up_factor(factor),
        epsilon_pair=None if math.isinf(pair) else log_up_factor(pair),
        delta=delta,
        assumptions=(f"the rows are {rows_are}", known_rows_clause(size, unknown), ALONE),
        theorem="stable-functions" if told is None else "largest-best",
        simulator=simulator,
        rows=size,
        unknown_rows=unknown,
        family=family,
        details={"stability": stability, **details, **({} if told is None else told.details)},
    )


def _two_told(tails: LeadTails, places: np.ndarray, least: int, most: int, delta: float) -> Told:
    """Two answers, the first from a lead of 0 on: the curve against the best simulator and without the row."""
    factor, zero, floor = best_of_two(tails, places, least, most, delta)
    without, apart = 1.0, 0.0
    # The chance that the first wins rises in the score: the ends of its range are furthest from no row at all.
    for score in (least, most):
        needed, own = factor_of_answers(tails, places, score, 0, delta)
        without, apart = max(without, needed), max(apart, own)
    pair, _ = factor_of_answers(tails, places, most, least, delta)
    return Told(
        factor=min(factor, without), without=without, pair=pair, at_zero=min(zero, apart), without_at_zero=apart,
        simulator=FIXED if len(places) == 1 else BY_KNOWN, least_at_zero=0.0, least_factor=floor,
    )  # fmt: skip


BY_KNOWN = "the best one: an answer drawn from a distribution that depends on the known rows only"


# Maximum a posteriori with a little noise: ordinary differential privacy, for any data (6.1, last remark).
#
# The scores of a hypothesis are sums over rows of rounded log-likelihoods; replacing a row moves each of them by at
# most the range of ln f_j/f_1 over the values. Permute-and-flip on the scores is epsilon-DP. No law of the rows is
# assumed.


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMap:
    """The mechanism and the scores of every value of the grid, a row a hypothesis, in parts of a natural logarithm."""

    laws: tuple[RowLaw, ...]
    scores: tuple[tuple[int, ...], ...]
    mechanism: PermuteAndFlip

    def totals(self, values: ArrayLike) -> list[Fraction]:
        """The score of each hypothesis; a value off the grid counts as the nearest one, a missing value as the
        lowest.
        """
        low, step, top = float(self.laws[0].low), float(self.laws[0].step), len(self.scores[0]) - 1
        places = np.rint((np.nan_to_num(np.asarray(values, dtype=np.float64), nan=low) - low) / step)
        counts = np.bincount(np.clip(places, 0, top).astype(np.int64).ravel(), minlength=top + 1)
        return [Fraction(int(counts @ np.array(row)), RESOLUTION) for row in self.scores]

    def choose(self, values: ArrayLike, *, source: Source | None = None) -> int:
        """Which hypothesis, privately."""
        return self.mechanism.choose(self.totals(values), source=source).index


def noisy_map(hypotheses: Sequence[str | RowLaw], *, epsilon: float, grid: object = None) -> NoisyMap:
    """epsilon-DP for replaced rows. Values without a chance under the distributions count as their neighbours."""
    laws = [row_law(h, grid=grid) for h in listed("hypotheses", hypotheses)]
    same_places(laws)
    rows = []
    for law in laws:
        found = log_scores(law, laws[0])
        near = sorted(found)
        rows.append(tuple(found[min(near, key=lambda p: abs(p - k))] for k in range(len(law.weights))))
    widest = max(max(row) - min(row) for row in rows)
    mechanism = PermuteAndFlip(
        epsilon=positive("epsilon", epsilon), sensitivity=Score(Fraction(max(widest, 1), RESOLUTION))
    )
    return NoisyMap(laws=tuple(laws), scores=tuple(rows), mechanism=mechanism)


# Arg-max: which of several columns has the largest total (or mean), published exactly; ties go to the first.
#
# Columns are independent, each with a distribution of its own on one grid; rows are independent draws. Only
# differences of two
# columns matter: D_ab, the total of a less that of b over the other unknown rows. Two columns are one decision with
# the score x_a - x_b, and few rows of few values are summed exactly (theorem `largest-best`: the whole curve). Else
# theorem `stable-functions`, 3.: with l the column of the largest mean, a row of values x changes the answer with
# probability at most the smaller of
#
#     sum over pairs of  Pr[ D_ab turns ],      sum over b of  Pr[ b is not behind l, with or without the row ].
#
# Both are largest where the row is at an end of its range in each column.

MOST_COLUMNS = 64
MOST_ROW_VALUES = 1 << 12
"""Rows of up to this many different values are written out."""


def exact_argmax(
    columns: Sequence[str | RowLaw] | Mapping[str, str | RowLaw],
    *,
    n: int,
    delta: float,
    unknown_rows: int | None = None,
    grid: object = None,
) -> ExactAnswer:
    """The column with the largest total over n rows, published exactly: the epsilon at this delta.

    `columns` has the distribution of each column; an earlier column wins a tie. For two columns, and for more
    in small tables of unknown rows, epsilon is that of the best simulator (theorem `largest-best`). Otherwise
    it is 0, and a delta below the union bound is refused. With `unknown_rows` the known ones may lean any way:
    the worst lead counts.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = decision_delta(delta)
    given = list(columns.values()) if isinstance(columns, Mapping) else list(listed("columns", columns))
    laws = [row_law(c, grid=grid) for c in given]
    if not 2 <= len(laws) <= MOST_COLUMNS:
        raise InvalidParameter(
            parameter="columns", value=len(laws), must=f"be the laws of 2 to {MOST_COLUMNS} columns"
        )
    _one_grid(laws)
    known = unknown < size
    near = target or NEAR
    told: Told | None = None
    if len(laws) == 2:
        lead = _Lead(laws[0], laws[1], unknown - 1, near)
        told = _two_told(lead.tails, lead.places(0, known), lead.least, lead.most, target)
        stability = told.without_at_zero
    else:
        stability = _many(laws, unknown - 1, near, known)
        told = None if known else _small(laws, unknown - 1, target, stability)
    names = "; ".join(law.describe() for law in laws)
    return _answer(
        told,
        stability=stability,
        delta=target,
        statistic="column with the largest total",
        what="largest column",
        hint="more rows, or a clearer leader",
        rows_are=f"independent draws, and in a row the columns are independent of each other: {names}",
        family=f"independent rows of independent columns: {names}",
        size=size,
        unknown=unknown,
        columns=len(laws),
    )


def _small(laws: Sequence[RowLaw], hidden: int, delta: float, stability: float) -> Told | None:
    """The exact distribution of the answer, if the columns have few values and the rows are few."""
    if math.prod(len(law.support) for law in laws) > MOST_ROW_VALUES:
        return None
    values: dict[tuple[int, ...], Fraction] = {}
    starts = [int((law.low - laws[0].low) / law.step) for law in laws]
    for places in itertools.product(*(law.support for law in laws)):
        weight = math.prod((law.weights[p] for law, p in zip(laws, places, strict=True)), start=Fraction(1))
        values[tuple(s + p for s, p in zip(starts, places, strict=True))] = weight
    rounding = sum((law.rounding for law in laws), Fraction(0))
    found = answer_laws(values, [0] * len(laws), hidden, rounding=rounding)
    return None if found is None else told_by([found], delta).capped(stability, delta)


def _one_grid(laws: Sequence[RowLaw]) -> None:
    first = laws[0]
    if any(x.step != first.step or ((x.low - first.low) / first.step).denominator != 1 for x in laws):
        raise InvalidParameter(
            parameter="columns",
            value="laws on several grids",
            must="lie on one grid, of one step",
            hint="declare the same grid for each",
        )


class _Lead:
    """The lead of a column over another: its distribution in a row, in steps, and its tails over the other unknown
    rows.
    """

    def __init__(self, ahead: RowLaw, behind: RowLaw, hidden: int, delta: float) -> None:
        weights = _difference(ahead.weights, behind.weights)
        self.least = int((ahead.low - behind.high) / ahead.step)
        self.most = self.least + len(weights) - 1
        law = RowLaw(
            name="lead",
            low=Fraction(self.least),
            step=Fraction(1),
            weights=weights,
            rounding=ahead.rounding + behind.rounding,
        )
        scores = {k: self.least + k for k in range(len(weights)) if weights[k]}
        self.tails: LeadTails = score_tails(law, scores, hidden, delta)

    def turned(self, wins: int, known: bool) -> float:
        """The most likely change by one row: the first of both is ahead from a lead of `wins` steps on."""
        return flip_bound(self.tails, self.places(wins, known), (self.least, self.most))

    def places(self, wins: int, known: bool) -> np.ndarray:
        """The lead that a row needs to change the answer; with known rows, whose scores may be anything, all
        possible leads.
        """
        return self.tails.anywhere(max(abs(self.least), abs(self.most))) if known else np.array([wins])

    def lost(self, wins: int) -> float:
        """The probability that the first is not ahead, without the row or with the worst row."""
        return float(self.tails.at(np.array([wins - min(0, self.least)]))[2][0])


def _difference(ahead: tuple[Fraction, ...], behind: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """The distribution of the difference of two independent steps, from the least one on, in exact arithmetic."""
    import flint

    def polynomial(weights: Sequence[Fraction]) -> Any:
        bottom = math.lcm(*(w.denominator for w in weights))
        return flint.fmpz_poly([int(w * bottom) for w in weights]), bottom

    (one, first), (other, second) = polynomial(ahead), polynomial(behind[::-1])
    product = one * other
    return tuple(Fraction(int(product[k]), first * second) for k in range(len(ahead) + len(behind) - 1))


def _many(laws: Sequence[RowLaw], hidden: int, delta: float, known: bool) -> float:
    """An upper end of the probability that one row changes the answer, for any values."""
    turned = beaten = 0.0
    leader = max(range(len(laws)), key=lambda j: laws[j].mean)
    for a, b in itertools.combinations(range(len(laws)), 2):
        # A tie is for the earlier one, a: it is ahead from a lead of 0 on.
        turned += _Lead(laws[a], laws[b], hidden, delta).turned(0, known)
    if known:
        return min(1.0, turned)
    for b in range(len(laws)):
        if b != leader:
            # The leader is ahead of a later column from 0 on, of an earlier one from 1 on.
            beaten += _Lead(laws[leader], laws[b], hidden, delta).lost(0 if leader < b else 1)
    return min(1.0, turned, beaten)
