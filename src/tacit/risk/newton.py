"""One Newton step of the interior point method, with a and its multipliers eliminated.

    H dh + P' dprior            = b
    P dh - dprior / w - dt      = -f
           sum dprior           = 1 - sum prior

P is the derivative of the risks in h, H and 1/w are diagonal. `Dense` solves it in h; `structured` has the
sparse solver for long ranges.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tacit.exact.arrays import Floats
from tacit.risk.interior import Program, State

__all__ = ["Newton", "newton_system"]


class _Solver(Protocol):
    def solve(self, b: Floats, f: Floats, r_t: float) -> tuple[Floats, Floats, float]:
        """dh, dprior, dt."""


def newton_system(program: Program, now: State) -> Newton:
    """The linearised conditions at this point."""
    return Newton(program, now)


class Newton:
    """The linearised conditions at one point."""

    solver: _Solver

    def __init__(self, program: Program, now: State) -> None:
        self.program, self.now = program, now
        pairs = program.pairs
        u = program.distances(now.h)
        self.r_above = now.above - (now.a - u)
        self.r_below = now.below - (now.a + u)
        self.r_slack = now.slack - (now.t - program.risks(now.h, now.a, u))
        self.r_a = now.prior[pairs.row] * pairs.probability - now.up - now.down
        open_slope = now.up - now.down - pairs.settled * pairs.probability * now.prior[pairs.row]
        self.r_h = program.by_column(pairs.sign * open_slope)
        if program.far is not None:
            self.r_h = self.r_h + program.far.transposed(now.prior)
        self.r_t = float(1 - now.prior.sum())
        self.stiff_up, self.stiff_down = now.up / now.above, now.down / now.below
        self.stiff = self.stiff_up + self.stiff_down
        self.tilt = (self.stiff_up - self.stiff_down) / self.stiff

    def error(self) -> float:
        """What is left of the gap and of the conditions on risks and prior, in the unit of the risk."""
        return max(self.now.complementarity(), float(np.abs(self.r_slack).max()), abs(self.r_t) * self.now.t)

    def factorise(self) -> _Solver:
        """The linear system at this point, ready to be solved."""
        program, now, pairs = self.program, self.now, self.program.pairs
        slopes = pairs.probability * pairs.sign * (self.tilt - pairs.settled)
        curvature = program.by_column(4 * self.stiff_up * self.stiff_down / self.stiff)
        inverse_w = now.slack / now.prior + program.by_row(pairs.probability * pairs.probability / self.stiff)
        return (
            Dense(program, slopes, curvature, inverse_w)
            if program.far is None
            else program.far.system(pairs, slopes, curvature, inverse_w)
        )

    def step(self, count: int) -> State:
        """One predictor and one corrector step with the same factorised system."""
        now = self.now
        self.solver = self.factorise()
        mean = now.complementarity() / count
        trial = self.direction(-now.up * now.above, -now.down * now.below, -now.prior * now.slack)
        later = now.complementarity_after(trial, *now.step_lengths(trial)) / count
        target = mean * min(1.0, max(later, 0.0) / mean) ** 3
        move = self.direction(
            target - now.up * now.above - trial.up * trial.above,
            target - now.down * now.below - trial.down * trial.below,
            target - now.prior * now.slack - trial.prior * trial.slack,
        )
        return now.moved(move, *now.step_lengths(move))

    def direction(self, c_up: Floats, c_down: Floats, c_slack: Floats) -> State:
        """The direction in which up*above, down*below and prior*slack change by these amounts."""
        program, now, pairs = self.program, self.now, self.program.pairs
        one = c_up / now.above + self.stiff_up * self.r_above
        two = c_down / now.below + self.stiff_down * self.r_below
        both = one + two - self.r_a
        f = c_slack / now.prior + self.r_slack + program.by_row(pairs.probability * both / self.stiff)
        b = -self.r_h - program.by_column(pairs.sign * (one - two - self.tilt * both))
        dh, dprior, dt = self.solver.solve(b, f, self.r_t)
        du = pairs.sign * dh[pairs.column]
        da = self.tilt * du + (both - pairs.probability * dprior[pairs.row]) / self.stiff
        dabove, dbelow = da - du - self.r_above, da + du - self.r_below
        return State(
            dh,
            dt,
            da,
            dabove,
            dbelow,
            (c_slack - now.slack * dprior) / now.prior,
            c_up / now.above - self.stiff_up * dabove,
            c_down / now.below - self.stiff_down * dbelow,
            dprior,
        )


class Dense:
    """The system reduced to h: (H + P' w P) dh = ..., by one inverse and a step of refinement."""

    def __init__(self, program: Program, slopes: Floats, curvature: Floats, inverse_w: Floats) -> None:
        pairs = program.pairs
        self.p = np.zeros(program.size)
        # Both halves of the range fall on the same entry of the folded matrix.
        for mirror in (1.0, -1.0):
            chosen = pairs.sign == mirror
            self.p[pairs.row[chosen], pairs.column[chosen]] += slopes[chosen]
        self.w = 1 / inverse_w
        scaled = self.p * np.sqrt(self.w)[:, None]
        self.matrix = scaled.T @ scaled
        diagonal = np.diag_indices(program.size[1])
        self.matrix[diagonal] += curvature
        self.matrix[diagonal] *= 1 + 1e-13
        self.inverse = np.linalg.inv(self.matrix)
        self.g = self.w @ self.p
        self.along_t = self._solve(self.g)

    def _solve(self, right: Floats) -> Floats:
        first = self.inverse @ right
        return np.asarray(first + self.inverse @ (right - self.matrix @ first))

    def solve(self, b: Floats, f: Floats, r_t: float) -> tuple[Floats, Floats, float]:
        """dh, dprior, dt."""
        h0 = self._solve(b - self.p.T @ (self.w * f))
        dt = float((r_t - self.w @ f - self.g @ h0) / (self.g @ self.along_t - self.w.sum()))
        dh = h0 + dt * self.along_t
        return dh, self.w * (self.p @ dh - dt + f), dt
