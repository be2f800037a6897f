"""What the caller typed, checked without loading more than numpy: the command line answers at once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats

__all__ = ["CRITERIA", "criterion_parameter", "epsilon_level", "prior_parameter", "range_parameter"]

CRITERIA = ("bayes", "minimax")
LARGEST_EPSILON = 600.0
SMALLEST_EPSILON = 2.0**-1000


def range_parameter(n: object) -> int:
    """The largest count, at least 1."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InvalidParameter(
            parameter="n", value=n, must="be an integer that is at least 1", hint="counts go from 0 to n"
        )
    return int(n)


def epsilon_level(epsilon: object) -> float:
    """A finite epsilon above 0, as a float."""
    number = isinstance(epsilon, int | float | Fraction | np.integer | np.floating)
    if isinstance(epsilon, bool) or not number or not 0 < epsilon < math.inf:  # type: ignore[operator]
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must="be a finite number above 0",
            hint="epsilon is the privacy loss; 0 would need infinite noise: then release nothing",
        )
    # Compared before it is converted: a float holds neither 10^400 nor a fraction of 10^-400.
    level = float(epsilon) if epsilon <= 2 * LARGEST_EPSILON else math.inf  # type: ignore[arg-type, operator]
    if level < SMALLEST_EPSILON:
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must=f"be at least {SMALLEST_EPSILON:g}",
            hint="release nothing",
        )
    if level > LARGEST_EPSILON:
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must=f"be at most {LARGEST_EPSILON:g}",
            hint="publish the count itself",
        )
    return level


def criterion_parameter(criterion: str) -> str:
    """bayes or minimax."""
    if criterion not in CRITERIA:
        raise UnknownName(what="criterion", name=str(criterion), known=CRITERIA)
    return criterion


def prior_parameter(prior: Any, states: int) -> Floats:
    """Non-negative numbers that sum to 1 (to within rounding), one for each state."""
    from tacit.exact.integers import unmasked

    try:
        values = np.array(unmasked(prior, name="prior"), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            parameter="prior", value=type(prior).__name__, must="be a list of numbers"
        ) from None
    if values.shape != (states,):
        raise InvalidParameter(
            parameter="prior",
            value=f"{values.size} numbers",
            must=f"have one number for each of {states} states",
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise InvalidParameter(
            parameter="prior", value="numbers that are negative or not finite", must="be at least 0"
        )
    if abs(values.sum() - 1) > 1e-9:
        raise InvalidParameter(
            parameter="prior", value=float(values.sum()), must="sum to 1", hint="divide it by its sum first"
        )
    return np.asarray(values / values.sum())
