"""The largest of several sums: the exact distribution of that answer for small tables, and its best simulator.

A row of value x adds an integer score s_b(x) to every sum b; the answer is the index of the largest sum, ties to the
first. For small tables the distribution of the answer, given the value of one row, is summed over all tables of the
other rows.
All terms are positive, so that rounding moves each probability by a known factor and no more.

If the rows are independent and their distribution is known, the other rows reveal nothing about the protected one.
So a simulator may as well draw its answer from one fixed distribution Q. The best Q is a linear program
(theorem `best-simulator`); for two answers it is a closed formula (theorem `largest-best`):

    e^epsilon = max( 1 + b - a - 2 delta,  (1 - 2 delta)/(1 - b + a),  root(a, b),  root(1-b, 1-a) ),
    root(u, v) = (sqrt(delta^2 + 4 u (v - delta)) - delta) / (2u),

a and b the least and the largest probability of the first answer over the values of a row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.coupled.best import best_delta, best_factor
from tacit.coupled.mechanisms import Cell
from tacit.coupled.numbers import Distribution, Level, distance, smallest_factor
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import up

if TYPE_CHECKING:
    from tacit.coupled.noiseless.decisions import LeadTails

Scores = tuple[int, ...]

MOST_TABLES = 1 << 20
"""The largest number of unordered tables of the other rows that are listed."""
MOST_STEPS = 1 << 31
"""The largest number of additions on the lattice of the differences of the sums."""
MOST_SCORES = 64
"""Rows with more different scores use the union bounds."""
_PIECE = 1 << 14
_UNIT = 2.0**-52
_TINY = 1e-200
_LARGEST = 1 << 20
_WIDER = Fraction(1 << 40, (1 << 40) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerLaws:
    """The distribution of the answer for every score of the row (`given`) and `without` the row, under one
    distribution of the rows.

    Every true probability is the written one times a factor between 1 - off and 1 + off. `apart` bounds the
    total variation between the used distribution of the other rows and the intended one.
    """

    given: tuple[Distribution, ...]
    without: Distribution
    off: Fraction
    apart: Fraction


def answer_laws(
    values: Mapping[Scores, Fraction], offsets: Sequence[int], hidden: int, *, rounding: Fraction
) -> AnswerLaws | None:
    """The distributions of the index of the largest sum, with `hidden` other rows; None if the table is not small.

    `values` has the probability of every vector of scores of a row; only differences to the first score matter.
    """
    gaps: dict[Scores, Fraction] = {}
    for scores, weight in values.items():
        gap = tuple(s - scores[0] for s in scores[1:])
        gaps[gap] = gaps.get(gap, Fraction(0)) + weight
    if not 1 <= len(gaps) <= MOST_SCORES:
        return None
    start = tuple(o - offsets[0] for o in offsets[1:])
    rows = list(gaps)
    tables = math.comb(hidden + len(rows) - 1, len(rows) - 1)
    wide = math.prod(hidden * (max(c) - min(c)) + 1 for c in zip(*rows, strict=True))
    by_lattice = wide * len(rows) * hidden
    if tables <= MOST_TABLES:
        pieces, steps = _by_tables(gaps, hidden), hidden * (2 * len(rows) + 4)
    elif by_lattice <= MOST_STEPS and wide <= MOST_STEPS // 64:
        pieces, steps = _on_lattice(gaps, hidden), hidden * (len(rows) + 4)
    else:
        return None
    added = [(0,) * len(start), *rows]
    found = [[0.0] * (len(start) + 1) for _ in added]
    for places, chances in pieces:
        for law, row in zip(found, added, strict=True):
            sums = places + np.array([s + r for s, r in zip(start, row, strict=True)], dtype=np.int64)
            best = np.argmax(np.hstack([np.zeros((len(sums), 1), dtype=np.int64), sums]), axis=1)
            part = np.bincount(best, weights=chances, minlength=len(start) + 1)
            for t, p in enumerate(part):
                law[t] += float(p)
    # Products, the recursion of the binomials, sums within a piece and over the pieces; then the division by the sum.
    count = max(1, min(tables, wide) // _PIECE + 1)
    off = Fraction(4 * (steps + _PIECE + count + 64)) * Fraction(_UNIT)
    laws = [_normalised(law) for law in found]
    apart = hidden * rounding
    if min(itertools.chain(*found)) < _TINY:
        # Tables too rare for floats may be all that gives this answer: it counts as one that was lost.
        apart += Fraction(_TINY)
    return AnswerLaws(given=tuple(laws[1:]), without=laws[0], off=off, apart=apart)


def _normalised(law: Sequence[float]) -> dict[int, Fraction]:
    exact = {t: Fraction(p) for t, p in enumerate(law) if p > 0}
    whole = sum(exact.values(), Fraction(0))
    return {t: p / whole for t, p in exact.items()}


def _by_tables(gaps: Mapping[Scores, Fraction], hidden: int) -> Iterator[tuple[np.ndarray, Floats]]:
    """Every unordered table of this many rows with its probability: a chain of binomials, in pieces."""
    rows = np.array(list(gaps), dtype=np.int64).reshape(len(gaps), -1)
    weights = list(gaps.values())
    counts = np.zeros((1, 0), dtype=np.int64)
    left, chances = np.array([hidden]), np.ones(1)
    for k in range(len(weights) - 1):
        of = binomials(hidden, weights[k] / sum(weights[k:], Fraction(0)))
        many = left + 1
        first = np.repeat(np.arange(len(left)), many)
        taken = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        chances = chances[first] * of[left[first], taken]
        counts = np.hstack([counts[first], taken[:, None]])
        left = left[first] - taken
    counts = np.hstack([counts, left[:, None]])
    for begin in range(0, len(chances), _PIECE):
        yield counts[begin : begin + _PIECE] @ rows, chances[begin : begin + _PIECE]


def binomials(most: int, chance: Fraction) -> Floats:
    """Row m has the probabilities of 0, 1, ..., m for m rows, by Pascal's recursion: sums of positive terms."""
    out = np.zeros((most + 1, most + 1))
    out[0, 0] = 1.0
    p, q = float(chance), float(1 - chance)
    for m in range(1, most + 1):
        out[m, : m + 1] = q * out[m - 1, : m + 1]
        out[m, 1 : m + 1] += p * out[m - 1, :m]
    return out


def _on_lattice(gaps: Mapping[Scores, Fraction], hidden: int) -> Iterator[tuple[np.ndarray, Floats]]:
    """All differences of the sums and their probabilities: one row after another on a box of integers."""
    rows = list(gaps)
    least = [min(c) for c in zip(*rows, strict=True)]
    spans = [max(c) - min(c) for c in zip(*rows, strict=True)]
    now = np.ones((1,) * len(spans))
    for _ in range(hidden):
        following = np.zeros([s + w for s, w in zip(now.shape, spans, strict=True)])
        for row, weight in gaps.items():
            box = tuple(slice(r - low, r - low + s) for r, low, s in zip(row, least, now.shape, strict=True))
            following[box] += float(weight) * now
        now = following
    flat = now.ravel()
    for begin in range(0, flat.size, _PIECE):
        part = np.arange(begin, min(begin + _PIECE, flat.size))
        kept = part[flat[part] > 0]
        places = np.stack(np.unravel_index(kept, now.shape), axis=1).astype(np.int64)
        yield places + np.array(least, dtype=np.int64) * hidden, flat[kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The loss of the answer about a row: factors e^epsilon at a delta, and the deltas at epsilon = 0.

    `factor` is reached by the named simulator; no simulator is below `least_factor`. All are upper ends, except the
    last one and `least_at_zero`.
    """

    factor: float
    without: float
    pair: float
    at_zero: float
    without_at_zero: float
    simulator: str
    least_at_zero: float
    least_factor: float

    @property
    def details(self) -> dict[str, Any]:
        """For a record, where every number names its simulator."""
        return {
            "delta_at_zero": self.at_zero,
            "delta_at_zero_without_the_row": self.without_at_zero,
            "epsilon_without_the_row": None if math.isinf(self.without) else log_up(self.without),
            "epsilon_floor": max(0.0, math.log(max(1.0, self.least_factor)) * (1 - 1e-12)),
        }

    def capped(self, stability: float, delta: float) -> Told:
        """The same with a bound on the probability that one row changes the answer, if that is sharper."""
        return replace(
            self,
            factor=1.0 if stability <= delta else self.factor,
            without=1.0 if stability <= delta else self.without,
            at_zero=min(self.at_zero, stability),
            without_at_zero=min(self.without_at_zero, stability),
        )


FIXED = "the best one: an answer drawn from a fixed distribution, whatever the other rows are"
WITHOUT = "the answer without the row"


def log_up(factor: float) -> float:
    """ln of a factor of at least 1, rounded up."""
    return 0.0 if factor <= 1 else math.log(factor) * (1 + 1e-12) + 1e-15


def told_by(laws: Sequence[AnswerLaws], delta: float) -> Told:
    """The loss of the answer if the rows follow one of these distributions.

    With one distribution the best simulator is found. With several distributions, one simulator must serve all
    of them: the answer without the row, or with one fixed value or a random one in its place. No simulator is
    better than the best of any distribution.
    """
    best = [_best(law, delta) for law in laws]
    least_factor, least_zero = max(b[0] for b in best), max(b[2] for b in best)
    kinds = [WITHOUT]
    if len(laws) > 1:
        kinds += [f"the answer with value {y + 1} of the row in its place" for y in range(len(laws[0].given))]
        kinds.append("the answer with a random value in place of the row, all equally likely")
    tried = [_against(laws, _stand_ins(laws, k), delta) for k in range(len(kinds))]
    factor, at_zero, name = (best[0][1], best[0][3], FIXED) if len(laws) == 1 else (math.inf, 1.0, WITHOUT)
    for kind, (reached, zero) in zip(kinds, tried, strict=True):
        at_zero = min(at_zero, zero)
        if reached < factor:
            factor, name = reached, kind
    return Told(
        factor=factor,
        without=tried[0][0],
        pair=max(_pair(law, delta) for law in laws),
        at_zero=at_zero,
        without_at_zero=tried[0][1],
        simulator=name,
        least_at_zero=least_zero,
        least_factor=least_factor,
    )


def _stand_ins(laws: Sequence[AnswerLaws], kind: int) -> list[Distribution]:
    """The simulator's answers for each distribution: 0 without the row, then each value, then a random value."""
    if kind == 0:
        return [law.without for law in laws]
    if kind <= len(laws[0].given):
        return [law.given[kind - 1] for law in laws]
    out: list[Distribution] = []
    for law in laws:
        mean: dict[int, Fraction] = {}
        for p in law.given:
            for t, w in p.items():
                mean[t] = mean.get(t, Fraction(0)) + w / len(law.given)
        out.append(mean)
    return out


def _spared(delta: float, law: AnswerLaws, factor: Fraction) -> Fraction:
    """The remaining delta if both distributions may be `apart` from the written ones, at this factor."""
    return (Fraction(delta) - (1 + factor) * law.apart) / (1 + law.off)


def _widest(law: AnswerLaws) -> Fraction:
    """The largest factor for which the addend for `apart` is counted."""
    return Fraction(1) if law.apart == 0 else Fraction(_LARGEST)


def _ratio(law: AnswerLaws, found: Fraction | None, wider: Fraction) -> float:
    if found is None:
        return math.inf
    reached = found * wider * _WIDER
    # The addend for `apart` was counted for factors up to this one.
    return float(reached) if law.apart == 0 or reached <= _LARGEST else math.inf


def _best(law: AnswerLaws, delta: float) -> tuple[float, float, float, float]:
    """(A lower bound on the factor, a factor, a lower bound on delta at epsilon = 0, a delta at epsilon = 0.)"""
    cells = [
        Cell(
            prior="the law", pair="a row", value=x, auxiliary=None, probability=Fraction(1, len(law.given)),
            real=real, scrubbed={"the other rows": Fraction(1)},
        )
        for x, real in enumerate(law.given)
    ]  # fmt: skip
    zero = best_delta(cells, Level.of(0))
    off, apart = law.off, 2 * law.apart
    least, most = max(Fraction(0), zero.low - off - apart), min(Fraction(1), zero.high + off + apart)
    left = _spared(delta, law, _widest(law))
    high = best_factor(cells, left)[1] if left >= 0 else None
    # The other way round: the true distributions at (E, delta) make the written ones private at E (1 + off).
    more = (Fraction(delta) + (1 + _widest(law)) * law.apart) / (1 - law.off)
    low = best_factor(cells, min(more, Fraction(1)))[0] / (1 + law.off)
    factor = 1.0 if most <= Fraction(delta) else _ratio(law, high, 1 / (1 - law.off))
    return max(1.0, float(low / _WIDER)), factor, float(least), up(most)


def _against(
    laws: Sequence[AnswerLaws], stand_ins: Sequence[Distribution], delta: float
) -> tuple[float, float]:
    """(The smallest factor at this delta, the delta at epsilon = 0) against one simulator under every distribution."""
    worst, zero = 1.0, 0.0
    for law, other in zip(laws, stand_ins, strict=True):
        left = _spared(delta, law, _widest(law))
        wider = (1 + law.off) / (1 - law.off)
        for real in law.given:
            apart = distance(real, other, Fraction(1))
            zero = max(zero, min(1.0, up(apart + 2 * law.off + 2 * law.apart)))
            for p, q in ((real, other), (other, real)):
                worst = max(worst, _ratio(law, smallest_factor(p, q, left) if left >= 0 else None, wider))
    return (1.0 if zero <= delta else worst), zero


def _pair(law: AnswerLaws, delta: float) -> float:
    """The smallest factor between two values of a row."""
    left = _spared(delta, law, _widest(law))
    wider = (1 + law.off) / (1 - law.off)
    worst = 1.0
    for p, q in itertools.permutations(law.given, 2):
        worst = max(worst, _ratio(law, smallest_factor(p, q, left) if left >= 0 else None, wider))
    return worst


def best_of_two(
    tails: LeadTails, thresholds: np.ndarray, least: int, most: int, delta: float
) -> tuple[float, float, float]:
    """(Smallest factor e^epsilon at this delta, delta at epsilon = 0, no factor is below) against the best simulator.

    The first answer is given above some lead; a row adds between `least` and `most` to the lead. For every
    threshold the simulator is the best one, because it knows the rows that move the threshold (theorem
    `largest-best`).
    """
    # Ends from above and below of yes, then of no: for the row that helps least, and for the one that helps most.
    low, high = tails.at(thresholds - least), tails.at(thresholds - most)
    gap = tails.window(thresholds - most, thresholds - least)
    found = _factors(low[1], high[0], high[3], low[2], gap, delta)
    under = np.maximum(np.maximum(high[1] - low[0], low[3] - high[2]), 0.0)
    floor = _factors(low[0], high[1], high[2], low[3], under, delta)
    # Floats: each is within a few units of its formula.
    worst, never = max(1.0, found * (1 + 1e-11)), max(1.0, floor * (1 - 1e-11))
    zero = float(np.max(gap)) / 2 * (1 + 1e-12)
    return (1.0 if zero <= delta else worst), zero, (never if math.isfinite(never) else 1.0)


def _factors(yes: Floats, most: Floats, no: Floats, least: Floats, gap: Floats, delta: float) -> float:
    """The largest of the four ends, `yes` to `most` the range of the first answer, `no` to `least` of the second."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(
            np.max(
                [
                    1 + gap - 2 * delta,
                    np.where(gap < 1, (1 - 2 * delta) / (1 - gap), np.inf if delta < 0.5 else 1.0),
                    _root(yes, most, delta),
                    _root(no, least, delta),
                ]
            )
        )


def _root(u: Floats, v: Floats, delta: float) -> Floats:
    """The positive E with u E^2 + delta E = v - delta; (v - delta)/delta at u = 0; 0 if v is at most delta."""
    over = np.maximum(v - delta, 0.0)
    # The same as (sqrt(..) - delta)/(2u), without cancellation.
    out = 2 * over / (delta + np.sqrt(delta * delta + 4 * u * over))
    return np.where(over > 0, out, 0.0)
