"""Which way to the best mechanism for a count, and the way there where the compact form holds.

Loads numpy and nothing heavier, so that the command line answers at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.threads import one_thread
from tacit.risk.certificate import Certificate
from tacit.risk.kernel import GeometricKernel
from tacit.risk.loss_functions import Loss
from tacit.risk.parameters import prior_parameter
from tacit.risk.remap import Remap, bayes_remap, minimax_remap, zero_one_minimax

__all__ = ["TOLERANCE", "is_compact", "solve_compact"]

TOLERANCE = 1e-7
LONGEST_BAYES = 20_000
LONGEST_TABLE = 2_000


def is_compact(loss: Loss, criterion: str) -> bool:
    """Whether the compact form is known to reach the optimum, and there is a solver for it."""
    return loss.grows_outwards() and (criterion == "bayes" or loss.is_convex() or loss.table is None)


def solve_compact(
    n: int, epsilon: float, loss: Loss, criterion: str, prior: Any, tolerance: float = TOLERANCE
) -> tuple[Remap, Certificate]:
    """The remap of the truncated geometric and its certificate, for a loss in compact form."""
    if loss.table is not None and n > LONGEST_TABLE:
        raise InvalidParameter(
            parameter="n", value=n, must=f"be at most {LONGEST_TABLE} for a loss given as a matrix"
        )
    if criterion == "bayes":
        if n > LONGEST_BAYES:
            raise InvalidParameter(parameter="n", value=n, must=f"be at most {LONGEST_BAYES} for a prior")
        weights = np.full(n + 1, 1 / (n + 1)) if prior is None else prior_parameter(prior, n + 1)
        return bayes_remap(GeometricKernel(n=n, epsilon=epsilon), loss, weights)
    refuse_prior(prior)
    if loss.name == "zero-one" and loss.table is None:
        if n > LONGEST_BAYES:
            raise InvalidParameter(
                parameter="n", value=n, must=f"be at most {LONGEST_BAYES} for zero-one loss"
            )
        return zero_one_minimax(n, epsilon)
    with one_thread():
        return minimax_remap(n, epsilon, loss, tolerance)


def refuse_prior(prior: Any) -> None:
    """A prior with the minimax criterion is a misunderstanding."""
    if prior is not None:
        raise InvalidParameter(
            parameter="prior", value="a prior", must="be left out for minimax", hint="ask for criterion bayes"
        )
