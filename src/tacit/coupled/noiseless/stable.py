"""Stable functions (Groce 2014, 6.1): maximum a posteriori, tests at a level and modes, exactly.

Removing one row seldom changes such an answer, and delta = Pr[F(X) != F(X without the row) | the row] is enough for
(0, delta) (Thm 6.1). Here that probability is computed, not bounded by Chernoff; for two answers the whole curve is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach, shown
from tacit.coupled.noiseless.decisions import (
    RESOLUTION,
    factor_of_answers,
    flip_bound,
    floor_of_answers,
    log_scores,
    log_up_factor,
    same_places,
    score_tails,
)
from tacit.coupled.noiseless.reading import row_law
from tacit.coupled.noiseless.row_laws import RowLaw, table
from tacit.coupled.noiseless.simulation import changes
from tacit.coupled.noiseless.sums import ALONE, known_rows_clause, rows_and_unknown, wanted_delta
from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import probability, whole
from tacit.guarantees.arguments import listed

__all__ = [
    "exact_map",
    "exact_mode",
    "exact_test",
    "stable_epsilon",
    "thesis_map",
    "thesis_map_epsilon",
]


WRONG = 0.01
"""Part of delta with which a simulation may be wrong."""

ONCE = (
    "a simulation of {draws} tables, a number that was fixed before, was run once: it is wrong with probability at "
    "most {wrong}, which is part of delta, and every further run adds as much"
)
AT_ZERO = "for more than two answers the theorem is about epsilon = 0, and there it is not reached"


def _laws(hypotheses: Sequence[str | RowLaw], grid: object) -> list[RowLaw]:
    laws = [row_law(h, grid=grid) for h in listed("hypotheses", hypotheses)]
    if len(laws) < 2:
        raise InvalidParameter(parameter="hypotheses", value=len(laws), must="be two laws at least")
    same_places(laws)
    if any(a.weights == b.weights for i, a in enumerate(laws) for b in laws[:i]):
        raise InvalidParameter(
            parameter="hypotheses",
            value="two equal ones",
            must="differ",
            hint="equal laws cannot be told apart",
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
    """Thm 6.4: epsilon = ln((1 + (M/l - 1) tau M e^{-nu}) / (1 - (k-1) tau M e^{-nu})), every law with chance >= l."""
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
    if mu >= c:
        raise InvalidParameter(
            parameter="change", value=mu, must="be below the least probability of an answer"
        )
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
    """Which of these laws did the rows come from, published exactly: the epsilon at this delta.

    The rows are independent draws of one of the laws, whichever; `weights` are the prior weights of the estimator, and
    nothing follows from them about the truth. Scores ln f_j are rounded to 1/64: the estimator uses the rounded ones.
    For more than two laws epsilon is 0 and delta a union over pairs. Where that is too large, `draws` tables that are
    simulated may certify the delta (theorem `simulated-stability`): one simulation, wrong with a hundredth of delta.
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
    details: dict[str, Any] = {
        "stability": stability,
        "thesis_delta": min(1.0, thesis_map(laws, prior, size - 1)) if unknown == size else None,
        "resolution": RESOLUTION,
    }
    if draws:
        if unknown < size:
            raise InvalidParameter(parameter="draws", value=draws, must="be left out if some rows are known")
        details["simulated"] = changes(
            laws, scores, offsets, hidden, whole("draws", draws, least=1000), wrong=WRONG * target
        )
    by_draws = len(laws) > 2 and stability > target and draws > 0 and details["simulated"]["delta"] <= target
    hint = "more rows, or laws that lie further apart"
    if math.isinf(factor):
        raise delta_out_of_reach("most likely law", target, min(floor, stability), hint=hint, ours=True)
    if len(laws) > 2 and stability > target and not by_draws:
        raise delta_out_of_reach("most likely law", target, stability, reason=AT_ZERO, hint=hint, ours=True)
    if len(laws) > 2 and 2 * stability > target:
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
        else "stable-functions",
        simulator="the estimate without the row",
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows, all from one of: {names}",
        details=details,
    )


def _thresholds(tails: Any, gap: Mapping[int, int], fixed: int, known: bool) -> np.ndarray:
    """The threshold, or with known rows, whose scores may be anything, all that can matter."""
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
    """An upper end of the probability under law j that removing a row changes the largest of several sums.

    The smaller of two unions, for every value of the row. (i) If the answer changes from a to b, the order of a and b
    does: the sum over pairs of the chance that it turns. (ii) If it changes, it is not j before or after: the sum over
    the others b of the chance that b is not behind j with or without the row. Ties go to the first.
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
    level. The rows come from either law. The simulator puts a middling score in place of the row.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    limit = probability("level", level, below_one=True)
    if limit < 1e-12:
        raise InvalidParameter(parameter="level", value=level, must="be above 0")
    laws = _laws([null, alternative], grid)
    scores = log_scores(laws[1], laws[0])
    whole_law = score_tails(laws[0], scores, size, min(target, limit / 100))
    places = whole_law.anywhere(0)
    reached = whole_law.at(places)[0]
    inside = np.flatnonzero(reached <= limit)
    if limit <= 0 or not len(inside):
        raise InvalidParameter(
            parameter="level", value=level, must="be above 0, and reachable by so few rows"
        )
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
    """The most frequent category, published exactly, for independent rows with these probabilities: (0, delta).

    A row of category x turns the mode only if it lifts x past a category that led by just so much: the sum over the
    other categories of one probability of a difference of counts (ties go to the first of the mapping), and at most
    the probability that it lifts x past the likeliest category. Known rows may have led to any lead: then the most
    likely differences count.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    law = table(dict(enumerate(categories.values())))
    worst = 0.0
    leader = max(law.support, key=lambda k: law.weights[k])
    for x in law.support:
        total, past = 0.0, 1.0
        for other in law.support:
            if other == x:
                continue
            lead = {p: int(p == other) - int(p == x) for p in law.support}
            tails = score_tails(law, lead, unknown - 1, target)
            at = np.array([1 if x < other else 0]) if unknown == size else tails.anywhere(1)
            total += float(np.max(tails.window(at, at + 1)))
            if other == leader and unknown == size:
                past = float(tails.at(at + 1)[2][0])
        worst = max(worst, min(total, past))
    if worst > target:
        raise delta_out_of_reach(
            "mode", target, min(worst, 1.0), reason=AT_ZERO, hint="more rows, or a clearer leader", ours=True
        )
    names = list(categories)
    told = ", ".join(f"{names[int(law.low + k * law.step)]}: {law.weights[k]}" for k in law.support)
    return ExactAnswer(
        statistic="most frequent category",
        epsilon=0.0,
        epsilon_pair=0.0 if 2 * worst <= target else None,
        delta=target,
        assumptions=(
            f"the rows are independent draws of {len(law.support)} categories, with the probabilities {told}",
            known_rows_clause(size, unknown),
            ALONE,
        ),
        theorem="stable-functions",
        simulator="the mode without the row",
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows of {len(law.support)} categories, with the probabilities {told}",
        details={"stability": worst},
    )
