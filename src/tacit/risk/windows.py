"""The minimax remap for any convex loss: a linear program over the cells around each h(y), by interior points.

h(y) = r_0 + sum_k w_k (r_{k+1} - r_k) with 0 <= w_k <= 1 over breakpoints r_0 < r_1 < ... that are close
together near the present h(y) and twice as far apart with each step away from it. The loss between
breakpoints is linear, which is never below the convex loss, so every iterate is a mechanism; the cells are
laid anew around the new h(y) until the certified gap is small. Privacy does not depend on any of this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import Floats
from tacit.risk.folding import unfolded_heights, unfolded_prior
from tacit.risk.kernel import GeometricKernel
from tacit.risk.loss_functions import Loss
from tacit.risk.step_length import step_length

__all__ = ["convex_minimax"]

ROUNDS = 12
COARSEST = 60
COARSE_TOLERANCE = 1e-4
NEAR = 4
MOST_STEPS = 80


def convex_minimax(n: int, epsilon: float, loss: Loss, tolerance: float) -> tuple[Floats, Floats]:
    """h on 0..n and the prior on 0..n, for a convex loss."""
    kernel = GeometricKernel(n=n, epsilon=epsilon)
    h, reach = np.arange(n + 1, dtype=float), n
    if loss.table is None and n > COARSEST:
        coarse = n // 3 + (n - n // 3) % 2
        below, _ = convex_minimax(coarse, epsilon * n / coarse, loss, COARSE_TOLERANCE)
        h = np.interp(np.arange(n + 1) * coarse / n, np.arange(coarse + 1), below) * n / coarse
        reach = NEAR
    prior = np.full(n + 1, 1 / (n + 1))
    best = np.inf
    for _ in range(ROUNDS):
        cells = _Cells(kernel, loss, h, reach)
        weights, part, value = _box_minimax(cells.columns, cells.base, tolerance)
        moved = cells.heights(weights)
        if value < best:
            h, prior = moved, cells.whole(part)
        best = min(best, value)
        # Inside cells of length 1 the loss is exact, and what is best nearby is best for a convex loss.
        if cells.settled(moved):
            break
    return h, prior


class _Cells:
    """The columns of the program: for each output y, the increments of the risks over each cell.

    A symmetric loss is folded: counts up to n/2, outputs below n/2, h(n-y) = n - h(y).
    """

    def __init__(self, kernel: GeometricKernel, loss: Loss, h: Floats, reach: int) -> None:
        n = kernel.n
        steps = [0, 1]
        while steps[-1] < reach:
            steps.append(2 * steps[-1])
        offsets = np.array([-s for s in steps[:0:-1]] + steps)
        self.n, self.folded = n, loss.is_symmetric()
        outputs = np.arange((n + 1) // 2 if self.folded else n + 1)
        x = np.arange(n // 2 + 1 if self.folded else n + 1)
        column = x[:, None]
        self.centre = np.rint(h[outputs]).astype(np.int64)
        points = np.clip(self.centre[:, None] + offsets, 0, n)
        self.first = points[:, 0]
        length = np.diff(points, axis=1)
        self.output, cell = np.nonzero(length)
        self.size = length[self.output, cell]
        low, high = points[self.output, cell], points[self.output, cell + 1]
        law = kernel.probabilities(x, outputs)
        self.columns = law[:, self.output] * (loss.at(column, high) - loss.at(column, low))
        self.base = (law * loss.at(column, self.first)).sum(axis=1)
        if self.folded:
            law = kernel.probabilities(x, n - outputs)
            self.columns += law[:, self.output] * (loss.at(column, n - high) - loss.at(column, n - low))
            self.base += (law * loss.at(column, n - self.first)).sum(axis=1)
            if n % 2 == 0:
                self.base += kernel.probabilities(x, np.array([n // 2]))[:, 0] * loss.at(x, n // 2)

    def half_heights(self, weights: Floats) -> Floats:
        return np.asarray(self.first + np.bincount(self.output, weights * self.size, self.first.size))

    def heights(self, weights: Floats) -> Floats:
        h = self.half_heights(weights)
        return unfolded_heights(h, self.n) if self.folded else h

    def whole(self, part: Floats) -> Floats:
        """The prior on 0..n."""
        return unfolded_prior(part, self.n) if self.folded else part

    def settled(self, h: Floats) -> bool:
        return bool(np.abs(h[: self.centre.size] - self.centre).max() <= 1.0)


def _box_minimax(columns: Floats, base: Floats, tolerance: float) -> tuple[Floats, Floats, float]:
    """minimise max_x (base + columns w)_x over 0 <= w <= 1; w, the multipliers (a prior) and the value."""
    scale = max(float(base.max()), float(np.abs(columns).max(initial=0.0)), 1e-300)
    now = _Point.first(columns / scale, base / scale)
    with np.errstate(all="ignore"):
        for _ in range(MOST_STEPS):
            if now.done(tolerance):
                break
            moved = now.step()
            if moved is None:
                break
            now = moved
    prior = np.maximum(now.prior, 0)
    return np.clip(now.w, 0, 1), prior / prior.sum(), now.t * scale


@dataclass(slots=True)
class _Point:
    """w and room = 1 - w with their multipliers low and high; t, slack = t - b - a w with the prior."""

    a: Floats
    b: Floats
    w: Floats
    room: Floats
    low: Floats
    high: Floats
    t: float
    slack: Floats
    prior: Floats

    @classmethod
    def first(cls, a: Floats, b: Floats) -> _Point:
        rows, size = a.shape
        half = np.full(size, 0.5)
        level = np.full(size, 0.5 * float(np.abs(a).sum() / max(size, 1)) / rows + 1e-3)
        risk = b + a @ half
        t = float(risk.max()) + 0.1
        return cls(a, b, half, half.copy(), level, level.copy(), t, t - risk, np.full(rows, 1 / rows))

    def gap(self) -> float:
        return float(self.low @ self.w + self.high @ self.room + self.prior @ self.slack)

    def slope(self) -> Floats:
        return np.asarray(self.a.T @ self.prior - self.low + self.high)

    def done(self, tolerance: float) -> bool:
        small = self.gap() < 0.3 * tolerance * max(abs(self.t), 1e-12) and abs(1 - self.prior.sum()) < 1e-9
        feasible = np.abs(self.residual()).max() < 0.3 * tolerance * max(abs(self.t), 1e-12)
        return small and bool(feasible) and bool(np.abs(self.slope()).max(initial=0.0) < 1e-9)

    def residual(self) -> Floats:
        return np.asarray(self.slack - (self.t - self.b - self.a @ self.w))

    def step(self) -> _Point | None:
        """One predictor and one corrector step; None where the system cannot be solved any more."""
        rows, size = self.a.shape
        theta = 1 / (self.low / self.w + self.high / self.room)
        schur = (self.a * theta) @ self.a.T
        schur[np.diag_indices(rows)] += self.slack / self.prior
        schur[np.diag_indices(rows)] *= 1 + 1e-13
        try:
            inverse: Floats = np.asarray(np.linalg.inv(schur), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        mean = self.gap() / (rows + 2 * size)
        trial = self.direction(
            theta, schur, inverse, -self.low * self.w, -self.high * self.room, -self.prior * self.slack
        )
        p, d = self.step_lengths(trial)
        later = self.moved(trial, p, d).gap() / (rows + 2 * size)
        target = mean * min(1.0, max(later / mean, 0.0)) ** 3
        move = self.direction(
            theta,
            schur,
            inverse,
            target - self.low * self.w - trial.low * trial.w,
            target - self.high * self.room - trial.high * trial.room,
            target - self.prior * self.slack - trial.prior * trial.slack,
        )
        p, d = self.step_lengths(move)
        moved = self.moved(move, p, d)
        return moved if np.isfinite(moved.t) and np.isfinite(moved.prior).all() else None

    def direction(
        self, theta: Floats, schur: Floats, inverse: Floats, c_low: Floats, c_high: Floats, c_slack: Floats
    ) -> _Point:
        """dlow = (c_low - low dw)/w and so on; (a theta a' + slack/prior) dprior = ... - dt."""
        g = -self.slope() + c_low / self.w - c_high / self.room
        part = _refined(schur, inverse, self.a @ (theta * g) + self.residual() + c_slack / self.prior)
        ones = _refined(schur, inverse, np.ones(self.b.size))
        dt = float((part.sum() - (1 - self.prior.sum())) / ones.sum())
        dprior = part - dt * ones
        dw = theta * (g - self.a.T @ dprior)
        return _Point(
            self.a,
            self.b,
            dw,
            -dw,
            (c_low - self.low * dw) / self.w,
            (c_high + self.high * dw) / self.room,
            dt,
            (c_slack - self.slack * dprior) / self.prior,
            dprior,
        )

    def step_lengths(self, move: _Point) -> tuple[float, float]:
        primal = step_length((self.w, move.w), (self.room, move.room), (self.slack, move.slack))
        return primal, step_length((self.low, move.low), (self.high, move.high), (self.prior, move.prior))

    def moved(self, move: _Point, p: float, d: float) -> _Point:
        return _Point(
            self.a,
            self.b,
            self.w + p * move.w,
            self.room + p * move.room,
            self.low + d * move.low,
            self.high + d * move.high,
            self.t + p * move.t,
            self.slack + p * move.slack,
            self.prior + d * move.prior,
        )


def _refined(matrix: Floats, inverse: Floats, right: Floats) -> Floats:
    """The solution by the inverse, with the digits that it loses given back by two corrections."""
    x = inverse @ right
    for _ in range(2):
        x = x + inverse @ (right - matrix @ x)
    return np.asarray(x)
