"""Arg-max: which of several columns has the largest total (or mean), published exactly; ties go to the first.

Columns are independent, each with a law of its own on one grid; rows are independent draws. Only differences of two
columns matter: D_ab, the total of a less that of b over the other unknown rows. Two columns are one decision with the
score x_a - x_b (theorem `two-answers`: the whole curve). For more, theorem `stable-functions`, 3.: with l the column
of the largest mean, a row of values x changes the answer with probability at most the smaller of

    sum over pairs of  Pr[ D_ab turns ],      sum over b of  Pr[ b is not behind l, with or without the row ].

Both are largest where the row is at an end of its range in each column.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach
from tacit.coupled.noiseless.decisions import (
    Tails,
    factor_of_answers,
    flip_bound,
    floor_of_answers,
    log_up_factor,
    score_tails,
)
from tacit.coupled.noiseless.reading import row_law
from tacit.coupled.noiseless.row_laws import RowLaw
from tacit.coupled.noiseless.stable import AT_ZERO
from tacit.coupled.noiseless.sums import ALONE, known_rows_clause, rows_and_unknown, wanted_delta
from tacit.errors import InvalidParameter
from tacit.guarantees.arguments import listed

__all__ = ["exact_argmax"]

MOST_COLUMNS = 64


def exact_argmax(
    columns: Sequence[str | RowLaw] | Mapping[str, str | RowLaw],
    *,
    n: int,
    delta: float,
    unknown_rows: int | None = None,
    grid: object = None,
) -> ExactAnswer:
    """Which column has the largest total over n rows, published exactly: the epsilon at this delta.

    `columns` has the law of each column, in the order in which ties are settled. For two columns epsilon is the
    smallest at this delta; for more it is 0, and a delta that is too small is refused. With `unknown_rows` the known
    ones may lean any way: the worst lead counts.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    given = list(columns.values()) if isinstance(columns, Mapping) else list(listed("columns", columns))
    laws = [row_law(c, grid=grid) for c in given]
    if not 2 <= len(laws) <= MOST_COLUMNS:
        raise InvalidParameter(
            parameter="columns", value=len(laws), must=f"be the laws of 2 to {MOST_COLUMNS} columns"
        )
    _one_grid(laws)
    known = unknown < size
    if len(laws) == 2:
        factor, stability, pair, floor = _two(_Lead(laws[0], laws[1], unknown - 1, target), known, target)
        if math.isinf(factor):
            raise delta_out_of_reach("largest column", target, min(floor, stability), ours=True)
    else:
        factor, stability = 1.0, _many(laws, unknown - 1, target, known)
        pair = 1.0 if 2 * stability <= target else math.inf
        if stability > target:
            raise delta_out_of_reach(
                "largest column",
                target,
                stability,
                reason=AT_ZERO,
                hint="more rows, or a clearer leader",
                ours=True,
            )
    names = "; ".join(law.describe() for law in laws)
    return ExactAnswer(
        statistic="column with the largest total",
        epsilon=log_up_factor(factor),
        epsilon_pair=None if math.isinf(pair) else log_up_factor(pair),
        delta=target,
        assumptions=(
            f"the rows are independent draws, and in a row the columns are independent of each other: {names}",
            known_rows_clause(size, unknown),
            ALONE,
        ),
        theorem="two-answers" if len(laws) == 2 else "stable-functions",
        simulator="the largest column without the row",
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows of independent columns: {names}",
        details={"stability": stability, "columns": len(laws)},
    )


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
    """The lead of a column over another: its law in a row, in steps, and its tails over the other unknown rows."""

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
        self.tails: Tails = score_tails(law, scores, hidden, delta)

    def turned(self, wins: int, known: bool) -> float:
        """The most likely turn by one row: the first of both is ahead from a lead of `wins` steps on."""
        return flip_bound(self.tails, self.places(wins, known), (self.least, self.most))

    def places(self, wins: int, known: bool) -> np.ndarray:
        """The lead that is needed, or with known rows, which may lean any way, all that can matter."""
        return self.tails.anywhere(max(abs(self.least), abs(self.most))) if known else np.array([wins])

    def lost(self, wins: int) -> float:
        """The probability that the first is not ahead, without the row or with the worst one."""
        return float(self.tails.at(np.array([wins - min(0, self.least)]))[2][0])


def _difference(ahead: tuple[Fraction, ...], behind: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """The law of the difference of two independent steps, from the least one on, in exact arithmetic."""
    import flint

    def polynomial(weights: Sequence[Fraction]) -> Any:
        bottom = math.lcm(*(w.denominator for w in weights))
        return flint.fmpz_poly([int(w * bottom) for w in weights]), bottom

    (one, first), (other, second) = polynomial(ahead), polynomial(behind[::-1])
    product = one * other
    return tuple(Fraction(int(product[k]), first * second) for k in range(len(ahead) + len(behind) - 1))


def _two(lead: _Lead, known: bool, delta: float) -> tuple[float, float, float, float]:
    """(Factor, stability, factor between two values, floor); a tie is for the first."""
    places = lead.places(0, known)
    factor, stability, floor = 1.0, 0.0, 0.0
    # The chance that the first wins rises in the score: the ends of its range are furthest from no row at all.
    for score in (lead.least, lead.most):
        needed, apart = factor_of_answers(lead.tails, places, score, 0, delta)
        factor, stability = max(factor, needed), max(stability, apart)
        floor = max(floor, floor_of_answers(lead.tails, places, score, 0))
    pair, _ = factor_of_answers(lead.tails, places, lead.most, lead.least, delta)
    return factor, stability, pair, floor


def _many(laws: Sequence[RowLaw], hidden: int, delta: float, known: bool) -> float:
    """An upper end of the probability that one row changes the answer, whatever its values are."""
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
