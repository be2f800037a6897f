"""Dense histograms under replace-one neighbours: cells in groups of three.

Three cells with N rows form a hexagonal lattice on which one replaced row is one step. An output whose sum is s
off has levels of N_0 = 1 or 3s and N_k = 6k + 3s points at loss s + 2k, and along the levels no private law can
fall faster than e^-epsilon: theorem `histogram-triples`. Closed formulas; nothing is solved.
"""

from __future__ import annotations

import math
from functools import lru_cache

__all__ = ["triple_risk", "triples"]

SAFE = 1 - 1e-9
# Outputs whose sum is 3 or more off have a loss of at least 3; the levels are needed for smaller ones only.
CAP = 3
DEEPEST = 12
LIMIT_DEPTH = 60


@lru_cache(maxsize=4096)
def _centre(epsilon: float, depth: int) -> float:
    """c_m: the smallest mean loss over the levels 0..depth, for outputs whose sum is 0, 1 or 2 off; at most 3."""
    best = float(CAP)
    for s in range(CAP):
        mass = total = 0.0
        for k in range(depth + 1):
            points = 1 if k == s == 0 else 6 * k + 3 * s
            weight = points * math.exp(-epsilon * k)
            mass += weight
            total += weight * (s + 2 * k)
        best = min(best, total / mass)
    return best * (1 - 1e-12)


def _steps(epsilon: float) -> set[int]:
    """Steps t for which t epsilon lies where the cap does not bite, and a little beyond."""
    return {max(1, round(u / epsilon)) for u in (1.1, 1.2, 1.3, 1.5, 1.8)} | {1}


def triple_risk(n: int | None, epsilon: float) -> float:
    """A lower bound of the worst expected L1 error of three cells with n rows; without an n its limit.

    max over t, m of t c_m(t epsilon) C(N-3w+2, 2)/C(N+2, 2), N = n/t, w = ceil(c_m) + m.
    """
    best = 0.0
    for t in _steps(epsilon):
        if n is None:
            best = max(best, t * _centre(t * epsilon, LIMIT_DEPTH))
            continue
        rows = n // t
        for depth in range(DEEPEST + 1):
            c = _centre(t * epsilon, depth)
            inner = rows - 3 * (math.ceil(c) + depth)
            if inner >= 0:
                share = (inner + 2) * (inner + 1) / ((rows + 2) * (rows + 1))
                best = max(best, t * c * share)
    return SAFE * best


def triples(cells: int, n: int, epsilon: float) -> float:
    """The L1 bound for a histogram of n rows: groups of three, each with its share of the rows."""
    most = cells // 3
    best = 0.0
    for groups in {min(most, k) for k in (most, max(1, math.floor(n * epsilon / 60)), max(1, n // 60))}:
        if groups >= 1:
            best = max(best, groups * triple_risk(n // groups, epsilon))
    return SAFE * best
