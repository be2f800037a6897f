"""Exact sums that are published in coarse steps: rounded down to a multiple of a width, which only lumps answers.

    F(X) = floor(sum / width) width,      width = steps of the grid of records

The multiples are counted from 0, whatever the least sum is: where the edges of the bins lie decides how much they tell.
If an adversary knows some rows, their sum may move the edges anywhere; then the exact sum's own epsilon is taken, of
which the rounded one is post-processing (theorems `shifted-sums`, `post-processing-priors`).
"""

from __future__ import annotations

import math

import numpy as np

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach
from tacit.coupled.noiseless.lattice import SumLaw, sum_law
from tacit.coupled.noiseless.reading import row_law
from tacit.coupled.noiseless.row_laws import RowLaw
from tacit.coupled.noiseless.shifts import Found, factor_for
from tacit.coupled.noiseless.sums import ALONE, exact_sum, known_rows_clause, rows_and_unknown, wanted_delta
from tacit.exact.arrays import Floats
from tacit.exact.checks import whole
from tacit.exact.rounding import up

__all__ = ["exact_quantised"]

_MORE = 1 + 1e-12


def exact_quantised(
    rows: str | RowLaw,
    *,
    n: int,
    delta: float,
    steps: int,
    unknown_rows: int | None = None,
    grid: object = None,
) -> ExactAnswer:
    """The exact sum rounded down to a multiple of `steps` steps of its grid: the epsilon at this delta."""
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    law = row_law(rows, grid=grid).reduced()
    width = whole("steps", steps)
    pair = None
    if unknown < size:
        plain = exact_sum(law, n=size, delta=target, unknown_rows=unknown)
        epsilon, pair, simulator = plain.epsilon, plain.epsilon_pair, f"{plain.simulator}, rounded alike"
    else:
        bins = _Bins(law, size, width)
        found = bins.worst(target, sum_law(law.weights, size - 1, delta=target))
        if math.isinf(found.factor):
            # Deep tails were cut off: once more with them, so that a refusal names what is possible, and no more.
            found = bins.worst(target, sum_law(law.weights, size - 1, delta=target * 1e-12))
        if math.isinf(found.factor):
            raise delta_out_of_reach("quantised sum", target, found.floor, ours=law.rounding > 0)
        epsilon = found.epsilon
        simulator = "the other rows, with a middling value in place of the protected one, rounded alike"
    return ExactAnswer(
        statistic=f"sum, rounded down to multiples of {float(width * law.step):g}",
        epsilon=epsilon,
        epsilon_pair=pair,
        delta=target,
        assumptions=(
            f"the rows are independent draws from {law.describe()}",
            known_rows_clause(size, unknown),
            ALONE,
        ),
        theorem="shifted-sums",
        simulator=simulator,
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows, {law.describe()}",
        details={"width": float(width * law.step)},
    )


class _Bins:
    """The two worlds in bins of so many steps, whose edges are multiples of the width counted from 0."""

    def __init__(self, law: RowLaw, size: int, width: int) -> None:
        self.law, self.width = law, width
        # The sum is n low + k steps; floor((n low/step + k)/width) needs the whole part of n low/step only.
        self.origin = math.floor(size * law.low / law.step)
        self.off = up(law.rounding * (size - 1))

    def binned(self, total: SumLaw, x: int, *, upper: bool) -> Floats:
        """One end of the law of the rounded sum, with x steps for the protected row."""
        top, width = len(self.law.weights) - 1, self.width
        first = ((total.start + self.origin) // width) * width - self.origin
        points = -(-(total.start + len(total.low) + top - first) // width) * width
        values = total.at(first - x, points, upper=upper).reshape(-1, width).sum(axis=1)
        return np.asarray(values * _MORE if upper else values / _MORE)

    def worst(self, delta: float, total: SumLaw) -> Found:
        """Every value of the row against the middle one, both directions."""
        middle = (len(self.law.weights) - 1) // 2
        ideal = [self.binned(total, middle, upper=side) for side in (False, True)]
        # Each world is off by what was left out and by the rounding of the law: (1 + e^epsilon) times.
        rest = total.outside + self.off
        spare = 4 * rest
        while True:
            found = Found(factor=1.0, floor=0.0)
            for x in self.law.support:
                real = [self.binned(total, x, upper=side) for side in (False, True)]
                for above, below in ((real[1], ideal[0]), (ideal[1], real[0])):
                    start = found.factor if math.isfinite(found.factor) else 1.0
                    found = found.or_worse(factor_for(above, below, delta - spare, start))
            found = Found(factor=found.factor, floor=found.floor + spare)
            if math.isinf(found.factor) or rest * (1 + found.factor) <= spare:
                return found
            spare = rest * (2 + 2 * found.factor)
