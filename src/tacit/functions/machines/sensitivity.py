"""How far one unit can move a regularised machine, and what a solver that stops early adds to that.

    J(w) = (1/size) sum_i loss(w . phi(x_i), y_i) + penalty |w|^2

is 2 penalty-strongly convex. Replacing one row changes J by a function with slope at most 2 M radius / size, so the
minimiser moves by at most M radius / (penalty size); adding or taking away a row, by half of that. A vector whose J is
within `gap` of the least one lies within sqrt(gap / penalty) of the minimiser. Theorems `machine-sensitivity` and
`machine-gap`. Source: Bousquet, Elisseeff 2002; Hall 2012, 3.3.3.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.exact.balls import ball, upper
from tacit.exact.checks import non_negative, positive, whole
from tacit.guarantees import Neighbours

__all__ = ["machine_sensitivity", "solver_distance"]


def machine_sensitivity(
    *,
    lipschitz: float,
    radius: float,
    penalty: float,
    size: int,
    rows: int = 1,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    tolerance: float = 0.0,
    heads: int = 1,
) -> float:
    """sup |w(D) - w(D')| over neighbours, rounded up: the exact minimisers' distance plus 2 sqrt(tolerance / penalty).

    `rows` is how many rows one unit has at most; `size` the public number that the losses are divided by; `heads`
    machines trained on the same rows move together by sqrt(heads) times as much at most.
    """
    relation = Neighbours.parse(neighbours)
    moved = Fraction(positive("lipschitz", lipschitz)) * Fraction(positive("radius", radius))
    moved = moved * whole("rows", rows) / (Fraction(positive("penalty", penalty)) * whole("size", size))
    if relation is Neighbours.ADD_OR_REMOVE:
        moved /= 2
    inexact = 2 * Fraction(solver_distance(tolerance=tolerance, penalty=penalty))
    count = whole("heads", heads)
    return upper(lambda: ball(moved + inexact) * ball(count).sqrt())


def solver_distance(*, tolerance: float, penalty: float) -> float:
    """sqrt(tolerance / penalty), rounded up: how far from the minimiser a vector within the tolerance can be."""
    gap, weight = (
        Fraction(non_negative("tolerance", tolerance)),
        Fraction(positive("penalty", penalty)),
    )
    return upper(lambda: ball(gap / weight).sqrt())
