"""The risk body, and rules that cost the same everywhere (Hall 2012, section 2.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import whole
from tacit.exact.rationals import Exact
from tacit.mechanisms.base import epsilon_parameter
from tacit.risk.count import path
from tacit.risk.loss_functions import Loss, as_loss
from tacit.risk.program import solve_program

__all__ = ["Equalizer", "equalizer", "risk_body"]

LONGEST = 60


def risk_body(*, epsilon: Exact, loss: Any = "absolute") -> Floats:
    """The corners of the set of risk vectors (R_0, R_1) for a count on 0..1, in order around it.

    For two outputs Q is given by a = Q(0, 0) and b = Q(1, 0), and privacy is four lines in the square:
    a <= e^epsilon b, b <= e^epsilon a, and the same for 1-a and 1-b. Its corners map to the body's.
    """
    shrink = float(np.exp(-float(epsilon_parameter(epsilon))))
    table = as_loss(loss).matrix(1)
    if table.shape != (2, 2):
        raise InvalidParameter(
            parameter="loss", value=f"shape {table.shape}", must="be 2 by 2 for the body in a plane"
        )
    high = 1 / (1 + shrink)
    corners = np.array([[0.0, 0.0], [high, 1 - high], [1.0, 1.0], [1 - high, high]])
    risks = [
        [a * table[0, 0] + (1 - a) * table[0, 1], b * table[1, 0] + (1 - b) * table[1, 1]] for a, b in corners
    ]
    return np.array(risks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equalizer:
    """The smallest risk that a rule can have at every count alike, and the minimax risk beside it."""

    risk: float
    minimax: float
    matrix: Floats

    @property
    def is_minimax(self) -> bool:
        """Whether an equalizer rule is among the best (to the solver's accuracy)."""
        return self.risk <= self.minimax * (1 + 1e-6) + 1e-9


def equalizer(*, n: int, epsilon: Exact, loss: Any = "absolute") -> Equalizer:
    """The best rule among those whose expected loss is the same at every count, by the full program.

    Floats from the solver: for reading, not for a release.
    """
    n = whole("n", n, least=1)
    if n > LONGEST:
        raise InvalidParameter(
            parameter="n", value=n, must=f"be at most {LONGEST} for the full linear program"
        )
    what: Loss = as_loss(loss)
    what.fit(n)
    table = what.matrix(n)
    level = float(epsilon_parameter(epsilon))
    equal = solve_program(table, path(n), level, 0.0, None, equal_risks=True)
    best = solve_program(table, path(n), level, 0.0, None)
    return Equalizer(
        risk=float((equal.matrix * table).sum(axis=1).max()),
        minimax=float((best.matrix * table).sum(axis=1).max()),
        matrix=equal.matrix,
    )
