"""Decisions by a sum of scores: one of two answers, and how much it tells about one row, exactly.

A row of value x adds the integer score s(x); the answer is "yes" if the total reaches a threshold c. With R the sum of
the scores of the other unknown rows and s0 what a simulator adds in place of the row,

    P = Pr[R + s(x) >= c],   Q = Pr[R + s0 >= c],

and there are only two outcomes, so that the smallest e^epsilon at a delta is the largest of (P - delta)/Q and of the
three like it (theorem `two-answers`). Rows that an adversary knows move c by what they add: c is then the worst one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tacit.coupled.noiseless.lattice import SumLaw, sum_law
from tacit.coupled.noiseless.row_laws import RowLaw
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import ball, precision
from tacit.exact.rounding import up

__all__ = [
    "RESOLUTION",
    "Tails",
    "factor_of_answers",
    "flip_bound",
    "floor_of_answers",
    "log_scores",
    "pushed",
    "same_places",
]

RESOLUTION = 64
"""Scores are rounded to so many parts of a natural logarithm."""

_MORE = 1 + 1e-11


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Pr[R >= c] and Pr[R < c] between two ends, for every integer c."""

    start: int
    ends: tuple[Floats, Floats, Floats, Floats]

    @classmethod
    def of(cls, law: SumLaw, shift: int, *, off: float = 0.0) -> Tails:
        """Of a sum whose least value is `shift`; `off` is how far the law may be from the one that is meant."""
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
    tails: Tails, thresholds: np.ndarray, score: int, instead: int, delta: float
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


def floor_of_answers(tails: Tails, thresholds: np.ndarray, score: int, instead: int) -> float:
    """The delta that every factor leaves: the probability of an answer that the other world never gives."""
    real, ideal = tails.at(thresholds - score), tails.at(thresholds - instead)
    # Places 0 and 2 are upper ends of the two answers, 1 and 3 lower ones.
    left = [
        np.where(other[answer + 1] <= 0, one[answer], 0.0)
        for answer in (0, 2)
        for one, other in [(real, ideal), (ideal, real)]
    ]
    return float(np.max(left))


def same_places(laws: Sequence[RowLaw]) -> None:
    """All laws must give every value of one grid a chance, or some value would tell a law for certain."""
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
    """place -> RESOLUTION times ln(law/other), rounded to an integer: the mechanism's own scores, so without error."""
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


def score_tails(law: RowLaw, scores: dict[int, int], hidden: int, delta: float) -> Tails:
    """The tails of the sum of so many scores."""
    weights, low = pushed(law, scores)
    if len(weights) == 1:
        point = SumLaw(0, np.ones(1), np.ones(1), 0.0)
        return Tails.of(point, low * hidden)
    total = sum_law(weights, hidden, delta=min(delta, 1e-3))
    # What the written law is off by moves every tail by no more than this.
    off = up(law.rounding * hidden)
    return Tails.of(replace(total, outside=total.outside + off), low * hidden, off=off)


def flip_bound(tails: Tails, thresholds: np.ndarray, scores: Iterable[int]) -> float:
    """The largest probability that a row with one of these scores turns the answer: R lies between c - s and c."""
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
