"""Solvers for machines: Newton's method for smooth losses, an interior-point method for hinges.

Neither is trusted: what they return is certified (`certify`), and only the certificate counts.
"""

from __future__ import annotations

import numpy as np

from tacit.exact.arrays import Floats
from tacit.functions.machines.certify import Problem, gap_of_hinges, gap_of_smooth
from tacit.functions.machines.losses import PiecewiseLoss, SmoothLoss

__all__ = ["solve"]


NEWTON_STEPS = 1000
INTERIOR_STEPS = 120
ROWS_AT_ONCE = 8192


def solve(problem: Problem, *, tolerance: float, spacing: float) -> Floats | None:
    """Weights on the grid whose certified gap is at most the tolerance; None if that was not reached."""
    if not problem.phi.shape[0]:
        return np.zeros(problem.phi.shape[1])
    if isinstance(problem.loss, SmoothLoss):
        return _newton(problem, tolerance, spacing)
    return _interior(problem, tolerance, spacing)


def on_grid_floats(weights: Floats, spacing: float) -> Floats:
    """The nearest grid points; exact, since the spacing is a power of two."""
    return np.asarray(np.rint(weights / spacing) * spacing)


def _gram(phi: Floats, weights: Floats) -> Floats:
    """phi' diag(weights) phi, some rows at a time."""
    total = np.zeros((phi.shape[1], phi.shape[1]))
    for i in range(0, phi.shape[0], ROWS_AT_ONCE):
        block = phi[i : i + ROWS_AT_ONCE]
        total += block.T @ (block * weights[i : i + ROWS_AT_ONCE, None])
    return total


def _newton(problem: Problem, tolerance: float, spacing: float) -> Floats | None:
    from scipy.linalg import cho_factor, cho_solve

    loss, n, penalty = problem.loss, problem.size, problem.penalty
    assert isinstance(loss, SmoothLoss)
    weights = np.zeros(problem.phi.shape[1])
    value = problem.value(weights)
    for _ in range(NEWTON_STEPS):
        rounded = on_grid_floats(weights, spacing)
        if gap_of_smooth(problem, rounded) <= tolerance:
            return rounded
        t = problem.machine(weights)
        gradient = problem.pull(loss.slopes(t, problem.target)) / n + 2 * penalty * weights
        hessian = _gram(problem.phi, loss.bends(t, problem.target)) / n
        hessian[np.diag_indices_from(hessian)] += 2 * penalty
        step = cho_solve(cho_factor(hessian), gradient)
        slope, size = float(gradient @ step), 1.0
        while size > 2.0**-100:
            tried = weights - size * step
            reached = problem.value(tried)
            # Near the end floats cannot tell the values apart: then the full step is right.
            if reached <= value - 1e-4 * size * slope or slope <= 1e-13 * abs(value):
                break
            size /= 2
        weights, value = tried, reached
    return None


def _interior(problem: Problem, tolerance: float, spacing: float) -> Floats | None:
    """Mehrotra's predictor and corrector for min a'Qa/2 - g'a, 0 <= a <= 1, Q = B B' / (2 penalty size)."""
    from scipy.linalg import cho_factor, cho_solve

    loss, n, penalty = problem.loss, problem.size, problem.penalty
    assert isinstance(loss, PiecewiseLoss)
    b, g = loss.hinges(problem.target)
    phi, scale = problem.phi, 1 / (2 * penalty * n)
    a = np.full(b.shape, 0.5)
    lower, upper = np.ones(b.shape), np.ones(b.shape)

    def weights_of(dual: Floats) -> Floats:
        return np.asarray(problem.pull((dual * b).sum(axis=0)) * scale)

    weights = weights_of(a)
    for _ in range(INTERIOR_STEPS):
        rounded = on_grid_floats(weights, spacing)
        if gap_of_hinges(problem, rounded, a) <= tolerance:
            return rounded
        residual = b * problem.machine(weights) - g - lower + upper
        center = float((lower * a).mean() + (upper * (1 - a)).mean()) / 2
        diagonal = lower / a + upper / (1 - a)
        # Hinges of one row share its features: their inverse diagonals add up.
        hessian = _gram(phi, (1 / diagonal).sum(axis=0)) * scale
        hessian[np.diag_indices_from(hessian)] += 1.0
        factor = cho_factor(hessian)

        def direction(right: Floats) -> Floats:
            inner = problem.pull((b * right / diagonal).sum(axis=0))  # noqa: B023
            moved = cho_solve(factor, inner) * scale  # noqa: B023
            return np.asarray((right - b * (phi @ moved)) / diagonal)  # noqa: B023

        def steps(mu: float, da: Floats, dl: Floats, du: Floats) -> tuple[Floats, Floats, Floats]:
            low = mu - da * dl - lower * a  # noqa: B023
            high = mu + da * du - upper * (1 - a)  # noqa: B023
            move = direction(-residual + low / a - high / (1 - a))  # noqa: B023
            return move, (low - lower * move) / a, (high + upper * move) / (1 - a)  # noqa: B023

        none = np.zeros_like(a)
        da, dl, du = steps(0.0, none, none, none)
        far = min(_longest(a, da), _longest(1 - a, -da), 1.0)
        dual_far = min(_longest(lower, dl), _longest(upper, du), 1.0)
        below = ((lower + dual_far * dl) * (a + far * da)).mean()
        ahead = float(below + ((upper + dual_far * du) * (1 - a - far * da)).mean()) / 2
        da, dl, du = steps(center * (ahead / center) ** 3, da, dl, du)
        far = min(0.995 * min(_longest(a, da), _longest(1 - a, -da)), 1.0)
        dual_far = min(0.995 * min(_longest(lower, dl), _longest(upper, du)), 1.0)
        a = a + far * da
        lower, upper = lower + dual_far * dl, upper + dual_far * du
        a = np.clip(a, 1e-300, 1 - 2.0**-53)
        lower, upper = np.maximum(lower, 1e-300), np.maximum(upper, 1e-300)
        weights = weights_of(a)
    return None


def _longest(values: Floats, moves: Floats) -> float:
    """The largest step that keeps values + step * moves at or above 0."""
    falling = moves < 0
    return float((-values[falling] / moves[falling]).min()) if bool(falling.any()) else np.inf
