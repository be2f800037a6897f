"""Certified upper ends of a solver's gap: J(w) - min J for the exact problem, floats and feature maps counted.

Fenchel's inequality makes every dual vector a lower bound on min J, so that with residuals r_j = g_j - b_j t_j

    gap <= (1/size) sum_j [(r_j)+ - a_j r_j] + penalty |w - w(a)|^2,      w(a) = sum_j a_j b_j phi_j / (2 penalty size)

for hinges and any a in [0, 1]; and gap <= |J'(w)|^2 / (4 penalty) for smooth losses. No term cancels another.
A dot product of m floats is off by at most m units of |x| |y|, in whatever order it was added up (theorem
`machine-gap`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import Floats
from tacit.functions.machines.losses import Loss, PiecewiseLoss, SmoothLoss

__all__ = ["Problem", "gap_of_hinges", "gap_of_smooth", "numerical_floor"]


UNIT: float = 2.0**-53
BLOCK = 1024
# What is left over for the few operations outside of the sums that are counted.
SAFE: float = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is minimised: features of the rows that count, their targets, and the public numbers."""

    loss: Loss
    phi: Floats
    target: Floats
    penalty: float
    size: int
    radius: float
    rounding: float

    def machine(self, weights: Floats) -> Floats:
        """w . phi at each row."""
        return np.asarray(self.phi @ weights)

    def value(self, weights: Floats) -> float:
        """J(w), in plain floats: for the solver's steps, never for a certificate."""
        losses = self.loss.values(self.machine(weights), self.target)
        return float(losses.sum() / self.size + self.penalty * (weights @ weights))

    def pull(self, coefficients: Floats) -> Floats:
        """sum_i c_i phi_i, in blocks: each entry is off by at most (BLOCK + blocks) units of sum |c_i| |phi_i|."""
        blocks = range(0, self.phi.shape[0], BLOCK)
        parts = [self.phi[i : i + BLOCK].T @ coefficients[i : i + BLOCK] for i in blocks]
        return np.asarray(np.sum(parts, axis=0)) if parts else np.zeros(self.phi.shape[1])

    def pull_error(self, total: float) -> float:
        """The length of the error of `pull` where sum |c_i| <= total, the feature map's own rounding included."""
        units = BLOCK + float(self.phi.shape[0]) / BLOCK + 4
        return SAFE * total * (2 * units * UNIT * self.radius + self.rounding)

    def machine_error(self, weights: Floats) -> float:
        """How far `machine` may be from the exact value at any row."""
        length = _length(weights)
        return SAFE * length * (2 * (float(self.phi.shape[1]) + 4) * UNIT * self.radius + self.rounding)


def gap_of_smooth(problem: Problem, weights: Floats) -> float:
    """|J'(w)|^2 / (4 penalty), with every rounding counted against us."""
    loss = problem.loss
    assert isinstance(loss, SmoothLoss)
    slopes = loss.slopes(problem.machine(weights), problem.target)
    gradient = problem.pull(slopes) / problem.size + 2 * problem.penalty * weights
    rows, n = float(problem.phi.shape[0]), problem.size
    # Slopes are off by the curvature times the machine's error, and some units of their own size.
    off = loss.curvature * problem.machine_error(weights) + 16 * UNIT * loss.lipschitz
    length = _length(gradient)
    error = problem.pull_error(loss.lipschitz * rows) / n + off * problem.radius * rows / n
    error += 8 * UNIT * (loss.lipschitz * problem.radius * rows / n + 2 * problem.penalty * _length(weights))
    return SAFE * (length + SAFE * error) ** 2 / (4 * problem.penalty)


def gap_of_hinges(problem: Problem, weights: Floats, dual: Floats) -> float:
    """The Fenchel gap of w and the dual vector, with every rounding counted against us."""
    loss = problem.loss
    assert isinstance(loss, PiecewiseLoss)
    b, g = loss.hinges(problem.target)
    a = np.clip(dual, 0.0, 1.0)
    residual = g - b * problem.machine(weights)
    lost = float((np.maximum(residual, 0.0) - a * residual).sum())
    lost = max(lost, 0.0)
    rows, n, hinges = float(problem.phi.shape[0]), problem.size, float(b.shape[0])
    off = problem.machine_error(weights) + 8 * UNIT * (
        float(np.abs(g).max(initial=0.0)) + _length(weights) * problem.radius
    )
    # Each summand has slope at most 1 in its residual; the sum of non-negative floats is off by some units of itself.
    lost = lost * (1 + 64 * UNIT + 2 * UNIT * rows) + hinges * rows * off
    pulled = problem.pull((a * b).sum(axis=0)) / (2 * problem.penalty * n)
    distance = _length(weights - pulled)
    distance += problem.pull_error(float(hinges * rows)) / (2 * problem.penalty * n)
    distance += 16 * UNIT * (_length(weights) + _length(pulled))
    return SAFE * (lost / n + problem.penalty * distance**2)


def numerical_floor(
    *, loss: Loss, penalty: float, dimension: int, radius: float, rounding: float, size: int
) -> float:
    """A gap that floats can surely certify, from public numbers alone: the least tolerance that makes sense."""
    longest = math.sqrt(loss.at_zero / penalty) + loss.lipschitz * radius / penalty * 1e-3
    unit = 2 * (dimension + 4) * UNIT * radius + rounding
    pull = 2 * (BLOCK + size / BLOCK + 4) * UNIT * radius + rounding
    machine = longest * unit
    if isinstance(loss, SmoothLoss):
        slope = loss.lipschitz * pull + radius * (loss.curvature * machine + 16 * UNIT * loss.lipschitz)
        return 4 * (slope + 32 * UNIT * (loss.lipschitz * radius + penalty * longest)) ** 2 / penalty
    hinges = 2
    return 4 * hinges * (machine + 64 * UNIT * (2 + longest * radius)) + (hinges * pull) ** 2 / penalty


def _length(vector: Floats) -> float:
    size: float = float(np.linalg.norm(vector))
    return size * SAFE
