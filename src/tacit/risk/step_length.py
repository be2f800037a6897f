"""How long a step of an interior point method may be: both solvers of the minimax remap stop short of a boundary."""

from __future__ import annotations

import numpy as np

from tacit.exact.arrays import Floats

__all__ = ["step_length"]

BACK_OFF = 0.98
FREE = 2.0
"""More than a whole step: what a variable that hardly shrinks allows."""


def step_length(*pairs: tuple[Floats, Floats]) -> float:
    """The share of a move, at most 1, after which every variable is still above 0: pairs of values and moves."""
    return min(1.0, BACK_OFF * min(_alone(values, move) for values, move in pairs))


def _alone(values: Floats, move: Floats) -> float:
    if values.size == 0:
        return FREE
    worst = float(np.min(move / values))
    return FREE if worst >= -0.5 else -1.0 / worst
