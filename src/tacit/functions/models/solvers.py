"""Solvers for models: Newton's method for smooth losses, an interior-point method for hinges.

Neither is trusted: their results are certified (`certify`), and only the certificate counts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.checks import non_negative, positive, set_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import bisected

# Convex losses with a slope of at most M: what a model minimises the mean of, and all that privacy needs of it.
#
# A loss is a function of one number, the model's value t at a row, for a given target y. Its slope bounds how far
# one row can pull the model; its turn, how much zero-mean noise can cost.


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss(ABC):
    """A convex function of the model's value with slopes in [-lipschitz, lipschitz], for targets in [-1, 1]."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """M, the largest size of a slope."""

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """The largest loss of the model that is 0 everywhere; no minimiser is longer than sqrt(at_zero / penalty)."""

    @abstractmethod
    def values(self, model: Floats, target: Floats) -> Floats:
        """The loss at each row."""

    @abstractmethod
    def excess(self, noise_std: float) -> float:
        """A bound on E loss(t + g) - loss(t) for g ~ N(0, noise_std^2) and every t: the cost of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLoss(Loss):
    """A loss with a derivative, whose own slope is at most `curvature`; `signs` is its kind in theorems and events."""

    signs: ClassVar[str] = "bounded"

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The largest second derivative."""

    @abstractmethod
    def slopes(self, model: Floats, target: Floats) -> Floats:
        """The derivative in t at each row."""

    @abstractmethod
    def bends(self, model: Floats, target: Floats) -> Floats:
        """The second derivative in t at each row (any of them at a corner of the slope)."""

    @property
    def lowest(self) -> float:
        """Targets are at least this."""
        return -1.0

    @property
    def highest(self) -> float:
        """And at most this."""
        return 1.0

    def excess(self, noise_std: float) -> float:
        """min(curvature noise_std^2 / 2, turn noise_std / sqrt(2 pi)): the mean of the noise is 0."""
        return min(self.curvature * noise_std**2 / 2, 2 * self.lipschitz * noise_std / math.sqrt(2 * math.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseLoss(Loss):
    """A loss that is a sum of hinges (g - b t)+ with b = -1 or 1."""

    @abstractmethod
    def hinges(self, target: Floats) -> tuple[Floats, Floats]:
        """The b and the g of each hinge, as arrays of shape (hinges, rows)."""

    @property
    @abstractmethod
    def turn(self) -> float:
        """The total change of slope."""

    def values(self, model: Floats, target: Floats) -> Floats:
        b, g = self.hinges(target)
        return np.asarray(np.maximum(g - b * model, 0.0).sum(axis=0))

    def excess(self, noise_std: float) -> float:
        """turn noise_std / sqrt(2 pi): a hinge loses most at its corner, where E (g)+ = noise_std / sqrt(2 pi)."""
        return self.turn * noise_std / math.sqrt(2 * math.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinge(PiecewiseLoss):
    """(1 - y t)+ for labels y = -1 and 1: the support vector machine. M = 1 (Hall 2012, 3.3.3)."""

    name: ClassVar[str] = "hinge"

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def at_zero(self) -> float:
        return 1.0

    @property
    def turn(self) -> float:
        return 1.0

    def hinges(self, target: Floats) -> tuple[Floats, Floats]:
        return target[None, :], np.ones((1, target.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonInsensitive(PiecewiseLoss):
    """(|t - y| - tube)+: support vector regression. M = 1."""

    name: ClassVar[str] = "epsilon-insensitive"
    tube: float = 0.0

    def __post_init__(self) -> None:
        set_fields(self, tube=non_negative("tube", self.tube))

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def at_zero(self) -> float:
        return 1.0

    @property
    def turn(self) -> float:
        return 2.0

    def hinges(self, target: Floats) -> tuple[Floats, Floats]:
        ones = np.ones(target.size)
        return np.stack([ones, -ones]), np.stack([target - self.tube, -target - self.tube])


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic(SmoothLoss):
    """ln(1 + e^(-y t)) for labels y = -1 and 1. M = 1, curvature 1/4."""

    name: ClassVar[str] = "logistic"
    signs: ClassVar[str] = "logistic"

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def curvature(self) -> float:
        return 0.25

    @property
    def at_zero(self) -> float:
        return math.nextafter(math.log(2.0), 1.0)

    def values(self, model: Floats, target: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, -target * model))

    def slopes(self, model: Floats, target: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(-target * expit(-target * model))

    def bends(self, model: Floats, target: Floats) -> Floats:
        from scipy.special import expit

        chance = expit(model)
        return np.asarray(chance * (1 - chance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Huber(SmoothLoss):
    """r^2/2 for |r| <= threshold, else threshold |r| - threshold^2/2, where r = t - y. M = threshold, curvature 1."""

    name: ClassVar[str] = "huber"
    threshold: float = 0.1

    def __post_init__(self) -> None:
        set_fields(self, threshold=positive("threshold", self.threshold))

    @property
    def lipschitz(self) -> float:
        return self.threshold

    @property
    def curvature(self) -> float:
        return 1.0

    @property
    def at_zero(self) -> float:
        return float(min(0.5, self.threshold))

    def values(self, model: Floats, target: Floats) -> Floats:
        r = np.abs(model - target)
        h = self.threshold
        return np.asarray(np.where(r <= h, r**2 / 2, h * r - h**2 / 2))

    def slopes(self, model: Floats, target: Floats) -> Floats:
        return np.asarray(np.clip(model - target, -self.threshold, self.threshold))

    def bends(self, model: Floats, target: Floats) -> Floats:
        return np.asarray(np.abs(model - target) <= self.threshold, dtype=np.float64)


# Certified upper ends of a solver's gap: J(w) - min J for the exact problem, floats and feature maps counted.
#
# Fenchel's inequality makes every dual vector a lower bound on min J, so that with residuals r_j = g_j - b_j t_j
#
#     gap <= (1/size) sum_j [(r_j)+ - a_j r_j] + penalty |w - w(a)|^2,      w(a) = sum_j a_j b_j phi_j / (2 penalty
#     size)
#
# for hinges and any a in [0, 1]; and gap <= |J'(w)|^2 / (4 penalty) for smooth losses. No term cancels another.
# A dot product of m floats is off by at most m units of |x| |y|, in whatever order it was added up (theorem
# `machine-gap`).

UNIT: float = 2.0**-53
BLOCK = 1024
# What is left over for the few operations outside of the sums that are counted.
SAFE: float = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class FitProblem:
    """The objective: features of the rows that count, their targets, and the public numbers."""

    loss: Loss
    phi: Floats
    target: Floats
    penalty: float
    size: int
    radius: float
    rounding: float

    def model(self, weights: Floats) -> Floats:
        """w . phi at each row."""
        return np.asarray(self.phi @ weights)

    def value(self, weights: Floats) -> float:
        """J(w), in plain floats: for the solver's steps, never for a certificate."""
        losses = self.loss.values(self.model(weights), self.target)
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

    def rounding_error(self, weights: Floats) -> float:
        """The largest error of `model` at any row."""
        length = _length(weights)
        return SAFE * length * (2 * (float(self.phi.shape[1]) + 4) * UNIT * self.radius + self.rounding)


def gap_of_smooth(problem: FitProblem, weights: Floats) -> float:
    """|J'(w)|^2 / (4 penalty), with every rounding counted against us."""
    loss = problem.loss
    assert isinstance(loss, SmoothLoss)
    slopes = loss.slopes(problem.model(weights), problem.target)
    gradient = problem.pull(slopes) / problem.size + 2 * problem.penalty * weights
    rows, n = float(problem.phi.shape[0]), problem.size
    # Slopes are off by the curvature times the model's error, and some units of their own size.
    off = loss.curvature * problem.rounding_error(weights) + 16 * UNIT * loss.lipschitz
    length = _length(gradient)
    error = problem.pull_error(loss.lipschitz * rows) / n + off * problem.radius * rows / n
    error += 8 * UNIT * (loss.lipschitz * problem.radius * rows / n + 2 * problem.penalty * _length(weights))
    return SAFE * (length + SAFE * error) ** 2 / (4 * problem.penalty)


def gap_of_hinges(problem: FitProblem, weights: Floats, dual: Floats, held: Floats | float = 0.0) -> float:
    """The Fenchel gap of w and the dual vector, with every rounding counted against us.

    The pull of other rows may be `held`. Then the result is the gap of these rows alone, which certifies nothing.
    """
    loss = problem.loss
    assert isinstance(loss, PiecewiseLoss)
    b, g = loss.hinges(problem.target)
    a = np.clip(dual, 0.0, 1.0)
    residual = g - b * problem.model(weights)
    lost = float((np.maximum(residual, 0.0) - a * residual).sum())
    lost = max(lost, 0.0)
    rows, n, hinges = float(problem.phi.shape[0]), problem.size, float(b.shape[0])
    off = problem.rounding_error(weights) + 8 * UNIT * (
        float(np.abs(g).max(initial=0.0)) + _length(weights) * problem.radius
    )
    # Each summand has slope at most 1 in its residual; the sum of non-negative floats is off by some units of itself.
    lost = lost * (1 + 64 * UNIT + 2 * UNIT * rows) + hinges * rows * off
    pulled = (problem.pull((a * b).sum(axis=0)) + held) / (2 * problem.penalty * n)
    distance = _length(weights - pulled)
    distance += problem.pull_error(float(hinges * rows)) / (2 * problem.penalty * n)
    distance += 16 * UNIT * (_length(weights) + _length(pulled))
    return SAFE * (lost / n + problem.penalty * distance**2)


def numerical_floor(
    *, loss: Loss, penalty: float, dimension: int, radius: float, rounding: float, size: int
) -> float:
    """A gap that floats can surely certify, from public numbers alone: the smallest useful tolerance."""
    longest = math.sqrt(loss.at_zero / penalty) + loss.lipschitz * radius / penalty * 1e-3
    unit = 2 * (dimension + 4) * UNIT * radius + rounding
    pull = 2 * (BLOCK + size / BLOCK + 4) * UNIT * radius + rounding
    model = longest * unit
    if isinstance(loss, SmoothLoss):
        slope = loss.lipschitz * pull + radius * (loss.curvature * model + 16 * UNIT * loss.lipschitz)
        return 4 * (slope + 32 * UNIT * (loss.lipschitz * radius + penalty * longest)) ** 2 / penalty
    hinges = 2
    return 4 * hinges * (model + 64 * UNIT * (2 + longest * radius)) + (hinges * pull) ** 2 / penalty


MOST_ROWS = 2.0**50
"""No table has more rows."""


def certified_rows(
    *, loss: Loss, penalty: float, dimension: int, radius: float, rounding: float, size: int, tolerance: float,
    spacing: float,
) -> int:  # fmt: skip
    """At this many rows or fewer, with any content, there is a weight vector on the grid whose certificate is
    within the tolerance.

    Uses public numbers alone: the bound on the error at the minimiser's nearest grid point, with its computed dual
    vector, grows with the number of rows. Theorem `machine-gap` (e).
    """
    off_grid = math.sqrt(dimension) * spacing / 2
    hinges = 2.0

    def gap(rows: float) -> float:
        share = rows / size
        longest = SAFE * (math.sqrt(share * loss.at_zero / penalty) + off_grid)
        model = SAFE * longest * (2 * (dimension + 4) * UNIT * radius + rounding)
        pull = SAFE * (2 * (BLOCK + rows / BLOCK + 4) * UNIT * radius + rounding)
        if isinstance(loss, SmoothLoss):
            steep = share * loss.curvature * radius**2 + 2 * penalty
            error = loss.lipschitz * share * pull
            error += share * radius * (loss.curvature * model + 16 * UNIT * loss.lipschitz)
            error += 8 * UNIT * (loss.lipschitz * radius * share + 2 * penalty * longest)
            return SAFE**4 * (steep * off_grid + 2 * error) ** 2 / (4 * penalty)
        off = model + 8 * UNIT * (2 + longest * radius)
        lost = hinges * share * (2 * off + radius * off_grid + UNIT * (2 + longest * radius))
        lost *= 1 + 64 * UNIT + 2 * UNIT * rows
        apart = off_grid + hinges * share * (2 * pull + UNIT * radius) / (2 * penalty) + 32 * UNIT * longest
        return SAFE**4 * (lost + penalty * apart**2)

    low, high = 0.0, MOST_ROWS
    if gap(high) <= tolerance:
        return int(high)
    while high - low > max(1.0, 1e-6 * low):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) <= tolerance else (low, middle)
    return int(low)


def _length(vector: Floats) -> float:
    size: float = float(np.linalg.norm(vector))
    return size * SAFE


NEWTON_STEPS = 1000
INTERIOR_STEPS = 120
ROWS_AT_ONCE = 8192


def solve(
    problem: FitProblem, *, tolerance: float, spacing: float, near_corners: bool = True
) -> Floats | None:
    """Weights on the grid whose certified gap is at most the tolerance; None if the solver did not reach it.

    Hinges are solved by their rows `near_corners`; otherwise by one interior-point method, which is slow for many
    rows.
    """
    if not problem.phi.shape[0]:
        return np.zeros(problem.phi.shape[1])
    if isinstance(problem.loss, SmoothLoss):
        return _newton(problem, tolerance, spacing)
    found = _smoothed(problem, tolerance, spacing) if near_corners else None
    if found is not None:
        return found
    inner = _interior(problem, tolerance, spacing, np.zeros(problem.phi.shape[1]))
    return None if inner is None else inner[0]


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


def _newton(problem: FitProblem, tolerance: float, spacing: float) -> Floats | None:
    from scipy.linalg import cho_factor, cho_solve

    loss, n, penalty = problem.loss, problem.size, problem.penalty
    assert isinstance(loss, SmoothLoss)
    weights = np.zeros(problem.phi.shape[1])
    value = problem.value(weights)
    for _ in range(NEWTON_STEPS):
        rounded = on_grid_floats(weights, spacing)
        if gap_of_smooth(problem, rounded) <= tolerance:
            return rounded
        t = problem.model(weights)
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


# Hinges by smoothing: r^2/(2 width) on [0, width] instead of (r)+, with narrower and narrower widths.
#
# Only rows within a width of a corner enter the Hessian, so that all but the first steps cost two passes over the
# features. A part of the rows, every some, says where to begin. The slopes of the smoothed hinges are dual vectors:
# at its minimum the gap is at most a quarter of the width for each row near a corner.

_STRIDES = (64, 8, 1)
_NARROWER = 0.1
_SMOOTH_STEPS = 40
"""Newton's steps at one width."""
_WIDEST, _NARROWEST = 1.0, 0.02
_NEAR, _ROUNDS = 6, 6
"""The number of rows near a corner in the first try, for each weight, and the number of later additions.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Smoothed:
    """The objective with smoothed hinges over some of the rows, each counted `share` times."""

    phi: Floats
    b: Floats
    g: Floats
    share: float
    penalty: float

    def slopes(self, model: Floats, width: float) -> Floats:
        """The dual vector, one slope a hinge, for the model's values at the rows."""
        return np.asarray(np.clip((self.g - self.b * model) / width, 0.0, 1.0))

    def narrowed(self, weights: Floats, width: float, stop: float) -> Floats:
        """Newton's method with exact steps until the gap of the smoothed problem is about `stop`."""
        from scipy.linalg import cho_factor, cho_solve

        model = self.phi @ weights
        for _ in range(_SMOOTH_STEPS):
            a = self.slopes(model, width)
            gradient = 2 * self.penalty * weights - self.share * ((a * self.b).sum(axis=0) @ self.phi)
            near = ((a > 0) & (a < 1)).sum(axis=0)
            lost = self.share * width * float(near.sum()) / 4
            if float(gradient @ gradient) <= 4 * self.penalty * max(stop, 0.05 * lost):
                break
            rows = np.flatnonzero(near)
            hessian = _gram(self.phi[rows], near[rows] * (self.share / width))
            hessian[np.diag_indices_from(hessian)] += 2 * self.penalty
            step = -cho_solve(cho_factor(hessian), gradient)
            turned = self.phi @ step
            far = self._step(weights, step, model, turned, width)
            weights = weights + far * step
            model = model + far * turned
        return weights

    def _step(self, weights: Floats, step: Floats, model: Floats, turned: Floats, width: float) -> float:
        """The minimum of the smoothed objective on the ray, where its slope rises."""
        along, square = 2 * self.penalty * float(weights @ step), 2 * self.penalty * float(step @ step)

        def slope(far: float) -> float:
            a = self.slopes(model + far * turned, width)
            return along + far * square - self.share * float((a * self.b).sum(axis=0) @ turned)

        first, last = slope(0.0), slope(1.0)
        if abs(last) <= 0.1 * abs(first):
            return 1.0
        low, high = (0.0, 1.0) if last > 0 else (1.0, 2.0)
        while slope(high) < 0 and high < 2.0**20:
            low, high = high, 2 * high
        return bisected(lambda far: slope(far) >= 0, low, high, halvings=16)[1]


def _smoothed(problem: FitProblem, tolerance: float, spacing: float) -> Floats | None:
    loss, phi = problem.loss, problem.phi
    assert isinstance(loss, PiecewiseLoss)
    rows, dimension = phi.shape
    if _few(problem) >= rows // 2:
        return None
    weights, width = np.zeros(dimension), _WIDEST
    b, g = loss.hinges(problem.target)
    strides = [stride for stride in _STRIDES if stride == 1 or rows // stride >= 4 * dimension]
    for stride in strides:
        part = _Smoothed(
            phi=np.ascontiguousarray(phi[::stride]), b=b[:, ::stride], g=g[:, ::stride],
            share=stride / problem.size, penalty=problem.penalty,
        )  # fmt: skip
        weights = part.narrowed(weights, width, 0.1 * tolerance)
        while width > _NARROWEST:
            width = max(width * _NARROWER, _NARROWEST)
            weights = part.narrowed(weights, width, 0.1 * tolerance)
    return _near_corners(problem, tolerance, spacing, weights)


def _few(problem: FitProblem) -> int:
    """The number of rows nearest to a corner in the first try."""
    rows, dimension = problem.phi.shape
    return int(max(_NEAR * dimension, rows // 40))


def _near_corners(problem: FitProblem, tolerance: float, spacing: float, weights: Floats) -> Floats | None:
    """The interior-point method on the rows nearest to a corner, while the slopes of the others are held.

    Rows whose slope turns out to be wrong are added; only a certificate over all rows counts.
    """
    loss = problem.loss
    assert isinstance(loss, PiecewiseLoss)
    b, g = loss.hinges(problem.target)
    residual = g - b * problem.model(weights)
    rows, few = problem.phi.shape[0], _few(problem)
    free = np.zeros(rows, dtype=bool)
    free[np.argpartition(np.abs(residual).min(axis=0), few)[:few]] = True
    for _ in range(_ROUNDS):
        dual = (residual > 0).astype(np.float64)
        held = problem.pull(np.where(free, 0.0, (dual * b).sum(axis=0)))
        part = replace(problem, phi=problem.phi[free], target=problem.target[free])
        inner = _interior(part, 0.1 * tolerance, spacing, held)
        if inner is None:
            return None
        weights, dual[:, free] = inner
        if gap_of_hinges(problem, weights, dual) <= tolerance:
            return weights
        residual = g - b * problem.model(weights)
        wrong = ((residual > 0) != (dual > 0.5)).any(axis=0) & ~free
        if not bool(wrong.any()) or int(free.sum() + wrong.sum()) > rows // 2:
            return None
        free |= wrong
    return None


def _interior(
    problem: FitProblem, tolerance: float, spacing: float, held: Floats
) -> tuple[Floats, Floats] | None:
    """Mehrotra's predictor and corrector for min a'Qa/2 - g'a, 0 <= a <= 1, Q = B B' / (2 penalty size).

    Weights on the grid and the dual vector; `held` is the pull of other rows.
    """
    from scipy.linalg import cho_factor, cho_solve

    loss, n, penalty = problem.loss, problem.size, problem.penalty
    assert isinstance(loss, PiecewiseLoss)
    b, g = loss.hinges(problem.target)
    phi, scale = problem.phi, 1 / (2 * penalty * n)
    a = np.full(b.shape, 0.5)
    lower, upper = np.ones(b.shape), np.ones(b.shape)

    def weights_of(dual: Floats) -> Floats:
        return np.asarray((problem.pull((dual * b).sum(axis=0)) + held) * scale)

    weights = weights_of(a)
    for _ in range(INTERIOR_STEPS):
        rounded = on_grid_floats(weights, spacing)
        if gap_of_hinges(problem, rounded, a, held) <= tolerance:
            return rounded, a
        residual = b * problem.model(weights) - g - lower + upper
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
