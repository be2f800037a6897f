"""How near to its claim the loss of a mechanism comes."""

from __future__ import annotations

import math

ROUND = 1 + 1e-12


def mass(law, k: int) -> float:
    low, high = law.probability(k)
    return (low + high) / 2


def worst_loss(law, shift: int, reach: int) -> float:
    """max over outputs and over all moves up to `shift` of |ln Pr[X = k] - ln Pr[X = k - s]|."""
    logs = {k: math.log(mass(law, k)) for k in range(-reach - shift, reach + shift + 1)}
    return max(abs(logs[k] - logs[k - s]) for k in range(-reach, reach + 1) for s in range(shift + 1))


def tight(loss: float, claim: float) -> bool:
    return claim * 0.95 <= loss <= claim * ROUND
