"""What two parties must err who have no cipher between them, and what one curator of both tables errs.

x and y are in {-1, 1}^n, one with each party. A protocol whose transcript is epsilon-private for each coordinate of x
and of y, against everybody, has E (answer - <x, y>)^2 >= n / cosh(epsilon/2)^4 on uniform x and y, whoever computes the
answer (theorem `two-party-gap`). A curator of both adds noise for a move of 2, whatever n is.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tacit.exact.balls import ball, lower
from tacit.exact.checks import non_negative, whole
from tacit.noise import DiscreteLaplace

__all__ = ["curator_squared_error", "response_squared_error", "two_party_floor"]


def two_party_floor(*, rows: int, epsilon: float, hamming: bool = False) -> float:
    """The least mean squared error of a statistical protocol, rounded down; for the Hamming distance a quarter."""
    n, e = whole("rows", rows), non_negative("epsilon", epsilon)
    share = Fraction(1, 4) if hamming else Fraction(1)

    def formula() -> Any:
        half = (ball(e) / 2).exp()
        return ball(n * share) / ((half + 1 / half) / 2) ** 4

    return max(0.0, lower(formula))


def curator_squared_error(*, epsilon: float, hamming: bool = False) -> float:
    """The variance of discrete Laplace noise for the move of one bit: 2 for the inner product, 1 for the distance."""
    move = 1 if hamming else 2
    return float(DiscreteLaplace(noise_scale=Fraction(move) / Fraction(epsilon)).variance)


def response_squared_error(*, rows: int, epsilon: float) -> float:
    """What a statistical protocol reaches: both publish all bits by randomised response, n (1 - tanh(epsilon/2)^4).

    The answer is the mean of <x, y> given both published vectors.
    """
    return rows * (1 - math.tanh(epsilon / 2) ** 4)
