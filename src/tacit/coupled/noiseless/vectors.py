"""Exact sums of several columns at once: a row is a vector with independent coordinates, each with a law of its own.

The product of the best rectangles of the coordinates is a prism below the law of the row; the rest is theorem
`prism-sums`. Uniform coordinates are their own rectangles, so that nothing is given away of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach, shown, within_reach
from tacit.coupled.noiseless.minorants import minorants_of
from tacit.coupled.noiseless.prisms import Prism, pair_epsilon, prism_epsilon
from tacit.coupled.noiseless.reading import row_law
from tacit.coupled.noiseless.row_laws import RowLaw
from tacit.coupled.noiseless.sums import ALONE, known_rows_clause, rows_and_unknown, wanted_delta
from tacit.errors import InvalidParameter
from tacit.guarantees.arguments import listed

__all__ = ["exact_vector_sum"]

MOST_COLUMNS = 8


def exact_vector_sum(
    rows: Sequence[str | RowLaw], *, n: int, delta: float, unknown_rows: int | None = None
) -> ExactAnswer:
    """The epsilon, at this delta, of publishing the exact sums (or means) of several columns of n rows together.

    `rows` has the law of each column; within a row the columns are independent. Every law of rows that contains the
    product of the named rectangles, over the same ranges, is covered.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    laws = [row_law(r).reduced() for r in listed("rows", rows)]
    if not 1 <= len(laws) <= MOST_COLUMNS:
        raise InvalidParameter(
            parameter="rows", value=len(laws), must=f"name the laws of 1 to {MOST_COLUMNS} columns"
        )
    shapes = [minorants_of(law, "rectangle")[0] for law in laws]
    mass = math.prod((s.mass for s in shapes), start=Fraction(1))
    tops = [len(law.weights) - 1 for law in laws]
    # The middle, or the value below it where it is off the grid: no value is further away than this.
    prism = Prism(
        mass=mass,
        points=tuple(len(s.weights) for s in shapes),
        half_ranges=tuple(top - top // 2 for top in tops),
    )
    epsilon, _ = prism_epsilon(prism, hidden=unknown - 1, delta=target)
    if math.isinf(epsilon):
        smallest = within_reach(
            lambda d: math.isfinite(prism_epsilon(prism, hidden=unknown - 1, delta=d)[0]), target
        )
        raise delta_out_of_reach("vector of sums", target, smallest, ours=True)
    pair = pair_epsilon(prism, hidden=unknown - 1, delta=target)
    values = [law.low + (top // 2) * law.step for law, top in zip(laws, tops, strict=True)]
    grids = "; ".join(law.describe() for law in laws)
    ends = [
        (float(law.low + s.first * law.step), float(law.low + (s.first + len(s.weights) - 1) * law.step))
        for law, s in zip(laws, shapes, strict=True)
    ]
    box = " x ".join(f"[{a:g}, {b:g}]" for a, b in ends)
    first = (
        f"the rows are independent draws from one distribution over the ranges of {grids}, which contains a prism of "
        f"mass {shown(float(mass), 4)} over {box} (it does if the columns are independent with these laws)"
    )
    return ExactAnswer(
        statistic="vector of sums",
        epsilon=epsilon,
        epsilon_pair=pair if math.isfinite(pair) else None,
        delta=target,
        assumptions=(first, known_rows_clause(size, unknown), ALONE),
        theorem="prism-sums",
        simulator="the other rows, with "
        f"({', '.join(f'{float(v):g}' for v in values)}) in place of the protected one",
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows of one law with a prism of mass {shown(float(mass), 4)} over {box}; {grids}",
        details={"columns": len(laws), "mass": float(mass)},
    )
