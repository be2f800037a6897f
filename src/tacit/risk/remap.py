"""Solve a count's problem in its compact form: remaps of the truncated geometric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import refuse_if
from tacit.exact.data_classes import dataclass
from tacit.exact.threads import one_thread
from tacit.risk.certificate import (
    Certificate,
    GeometricKernel,
    Loss,
    bayes_floor,
    best_outputs,
    height_risks,
    inflate,
    prior_parameter,
)
from tacit.risk.interior import (
    FLAT,
    Solution,
    absolute_minimax,
    step_length,
    unfold,
    unfolded_heights,
    unfolded_prior,
)

FRACTION_BITS = 32
UNIT = 1 << FRACTION_BITS
# Beyond these the range is cut: the minimax risk grows with n, so a shorter range gives a lower bound.
LONGEST_ABSOLUTE = 20_000
LONGEST_CONVEX = 1_200
LARGEST_EPSILON = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remap:
    """The answer after output y of the truncated geometric.

    `heights[y]` / 2^32 is rounded at random to one of its two neighbours, with itself as the mean. Outputs in
    `choices` are replaced by a draw from integer weights over 0..n. None stands for saying y.
    """

    heights: tuple[int, ...] | None
    choices: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @classmethod
    def of(cls, h: Floats) -> Remap:
        """The nearest heights with 32 bits after the point."""
        return cls(heights=tuple(round(v * UNIT) for v in h.tolist()))

    def floats(self, n: int) -> Floats:
        """The heights as floats, exactly."""
        if self.heights is None:
            return np.arange(n + 1, dtype=float)
        return np.array(self.heights, dtype=float) / UNIT


def bayes_remap(kernel: GeometricKernel, loss: Loss, prior: Floats) -> tuple[Remap, Certificate]:
    """The best mechanism for a prior: for each output the loss under the posterior is made smallest."""
    chosen, _ = best_outputs(kernel, loss, prior)
    risks = height_risks(kernel, loss, chosen)
    risk = inflate(float(risks @ prior), kernel.n)
    certificate = Certificate(
        criterion="bayes",
        method="posterior",
        risk=risk,
        lower_bound=min(risk, bayes_floor(kernel, loss, prior)),
        prior=prior,
    )
    return Remap.of(chosen), certificate


def minimax_remap(n: int, epsilon: float, loss: Loss, tolerance: float) -> tuple[Remap, Certificate]:
    """The mechanism with the smallest worst expected loss, for a convex loss that grows outwards."""
    longest = LONGEST_ABSOLUTE if loss.name == "absolute" and loss.table is None else LONGEST_CONVEX
    if n > longest and loss.table is None:
        return _long(n, epsilon, loss, tolerance, longest)
    kernel = GeometricKernel(n=n, epsilon=epsilon)
    if loss.name == "absolute" and loss.table is None:
        shorter = shorter_range(n, epsilon)
        if shorter is not None:
            candidates, prior = stretched_minimax(n, shorter, epsilon, tolerance)
            method = f"interior point on 0..{shorter}, stretched"
            remap, certificate = _certified(kernel, loss, candidates, [prior], method)
            if certificate.solved:
                return remap, certificate
    heights, priors = [np.arange(n + 1, dtype=float)], [_peaked(kernel)]
    method = "peaked prior"
    if epsilon <= LARGEST_EPSILON:
        h, prior = _solve(n, epsilon, loss, tolerance)
        heights += [h, _snapped(h)]
        priors.append(prior)
        method = "interior point, compact form"
    return _certified(kernel, loss, heights, priors, method)


def _certified(
    kernel: GeometricKernel, loss: Loss, heights: list[Floats], priors: list[Floats], method: str
) -> tuple[Remap, Certificate]:
    """The best of these heights with the best of these proofs, both computed anew from the used numbers."""
    worst = [float(height_risks(kernel, loss, h).max()) for h in heights]
    floors = [bayes_floor(kernel, loss, prior) for prior in priors]
    best, proof = int(np.argmin(worst)), int(np.argmax(floors))
    remap = Remap.of(heights[best])
    risk = float(height_risks(kernel, loss, remap.floats(kernel.n)).max())
    certificate = Certificate(
        criterion="minimax",
        method=method,
        risk=risk,
        lower_bound=min(risk, floors[proof]),
        prior=priors[proof] / priors[proof].sum(),
    )
    return remap, certificate


def _solve(n: int, epsilon: float, loss: Loss, tolerance: float) -> tuple[Floats, Floats]:
    if loss.name == "absolute" and loss.table is None:
        from tacit.risk.interior import absolute_minimax, unfold

        return unfold(n, absolute_minimax(n, epsilon, tolerance))
    return convex_minimax(n, epsilon, loss, tolerance)


def _snapped(h: Floats) -> Floats:
    """A height this close to an integer counts as the integer: many heights are integers, and the solver only
    approximates them.
    """
    near = np.rint(h)
    return np.where(np.abs(h - near) < 1e-4, near, h)


def _peaked(kernel: GeometricKernel) -> Floats:
    """A prior that falls by e^(-epsilon/2) from the middle: the least favourable one as epsilon grows."""
    prior = np.exp(-0.5 * kernel.epsilon * np.abs(np.arange(kernel.n + 1) - kernel.n / 2))
    return np.asarray(prior / prior.sum())


def _long(n: int, epsilon: float, loss: Loss, tolerance: float, longest: int) -> tuple[Remap, Certificate]:
    """For a range too long to solve, the truncated geometric itself, against the lower bound of a shorter range."""
    # Beyond about 150/epsilon^2 counts the range no longer shows in the risk.
    cut = int(min(longest, max(500.0, 150 / epsilon**2)))
    _, proof = minimax_remap(cut, epsilon, loss, tolerance)
    risk = truncated_geometric_risk(n, epsilon, loss)
    certificate = Certificate(
        criterion="minimax",
        method=f"truncated geometric, against the range 0..{cut}",
        risk=risk,
        lower_bound=min(risk, proof.lower_bound),
        prior=proof.prior,
    )
    return Remap(heights=None), certificate


def truncated_geometric_risk(n: int, epsilon: float, loss: Loss) -> float:
    """The worst expected loss of the truncated geometric itself, rounded up; in closed form for named losses."""
    if loss.table is not None:
        return float(height_risks(GeometricKernel(n=n, epsilon=epsilon), loss, np.arange(n + 1.0)).max())
    if loss.name == "zero-one":
        value = 1 - np.tanh(epsilon / 2) if n > 1 else 1 / (1 + np.exp(epsilon))
        return inflate(float(2 / (1 + np.exp(epsilon)) if n > 1 else value), 4)
    if n <= LONGEST_CONVEX:
        return float(height_risks(GeometricKernel(n=n, epsilon=epsilon), loss, np.arange(n + 1.0)).max())
    if loss.name == "absolute":
        low, high = n // 2, n - n // 2
        inner = -np.expm1(-epsilon * low) - np.expm1(-epsilon * high)
        return inflate(float(inner / (2 * np.sinh(epsilon))), 8)
    # The untruncated variance; what truncation saves in the middle of a long range is far below a float.
    return inflate(float(1 / (2 * np.sinh(epsilon / 2) ** 2)), 8)


def zero_one_minimax(n: int, epsilon: float) -> tuple[Remap, Certificate]:
    """The mechanism that is most often right in the worst case, in closed form.

    With S = sum_x e^(epsilon min(x, n-x)) the best chance is (1-q)/(1+q) + 2q/((1+q) S): theorem
    `optimal-count-zero-one`. The end outputs 0 and n are spread inwards, output 0 to x with weight e^(epsilon x).
    """
    q = float(np.exp(-epsilon))
    depth = np.minimum(np.arange(n + 1), np.arange(n + 1)[::-1])
    # Divided by the largest term, so that nothing overflows.
    relative = np.exp(epsilon * (depth - depth.max()))
    inverse = float(np.exp(-epsilon * depth.max())) / float(relative.sum())
    miss = 2 * q / (1 + q) - 2 * q / (1 + q) * inverse
    if n == 1:
        miss = q / (1 + q)
    prior = relative / relative.sum()
    weights = np.where(np.arange(n + 1) <= n / 2, relative * 2 * q / relative.sum(), 0.0)
    if n % 2 == 0:
        weights[n // 2] /= 2
    weights[0] = 1 - weights[1:].sum()
    left = tuple(round(w * UNIT) for w in weights.tolist())
    choices = ((0, left), (n, left[::-1]))
    remap = Remap(heights=tuple(y * UNIT for y in range(n + 1)), choices=choices)
    worst = _zero_one_risk(n, epsilon, left)
    certificate = Certificate(
        criterion="minimax",
        method="closed form",
        risk=inflate(max(worst, miss), 8),
        lower_bound=miss * (1 - 2.0**-40),
        prior=np.asarray(prior),
        theorem="optimal-count-zero-one",
    )
    return remap, certificate


def _zero_one_risk(n: int, epsilon: float, left: tuple[int, ...]) -> float:
    """The worst chance of being wrong with the rounded weights."""
    q = np.exp(-epsilon)
    share = np.array(left, dtype=float) / sum(left)
    x = np.arange(n + 1)
    inner = np.where((x > 0) & (x < n), np.tanh(epsilon / 2), 0.0)
    right = inner + (np.exp(-epsilon * x) * share + np.exp(-epsilon * (n - x)) * share[::-1]) / (1 + q)
    return float(1 - right.min())


# Long ranges at a small epsilon: the solution of a shorter range, stretched, is a solution.
#
# With n epsilon fixed and epsilon small the problem tends to one on a continuum: outputs 0 and n weigh a half
# each there, the others form a density, and that counts are whole numbers costs a relative epsilon^2 or so. So a
# range of c counts with n epsilon / c is solved, and carried over by what has a meaning on the continuum: the
# mass of the prior in each cell, the heights, and at the end output the part of its weight that is the atom's.
# As everywhere the result is certified afterwards, and thrown away where its gap is too wide.

# The gap left by stretching is about 0.1 epsilon^2 for the epsilon of the shorter range.
COARSE_EPSILON = 0.0017
SHORTEST, SHORTEST_FLAT = 1_000, 500
WORTH_IT = 0.8
SMOOTHING = 4


def shorter_range(n: int, epsilon: float) -> int | None:
    """The range to solve instead of 0..n; None if a shorter one saves nothing."""
    least = SHORTEST_FLAT if n * epsilon < FLAT else SHORTEST
    c = max(least, math.ceil(n * epsilon / COARSE_EPSILON))
    return c if c <= WORTH_IT * n else None


def stretched_minimax(n: int, c: int, epsilon: float, tolerance: float) -> tuple[list[Floats], Floats]:
    """Two candidates for h (as it is, and smoothed) and a prior, from the range 0..c."""
    solution = absolute_minimax(c, epsilon * n / c, tolerance)
    h = _heights(n, c, epsilon, solution)
    return [_whole(n, v) for v in (h, _smooth(n, c, h))], _prior(n, c, solution)


def _whole(n: int, half: Floats) -> Floats:
    rising = np.minimum(np.maximum.accumulate(half), n / 2)
    return unfold(n, Solution(h=rising, prior=np.ones(n // 2 + 1), steps=0))[0]


def _heights(n: int, c: int, epsilon: float, solution: Solution) -> Floats:
    factor = n / c
    coarse = np.append(solution.h, c / 2 if c % 2 == 0 else c - solution.h[-1])
    edge = max(0.0, 2 * coarse[1] - coarse[2])
    coarse[0] = edge
    h = factor * np.interp(np.arange((n + 1) // 2) / factor, np.arange(coarse.size), coarse)
    # The end output weighs 1/(1+q): an atom of 1/2, and half a cell of the density, whose height is `edge`.
    there, here = 1 / (1 + math.exp(-epsilon * factor)), 1 / (1 + math.exp(-epsilon))
    atom = 2 * (there * solution.h[0] - (there - 0.5) * edge)
    h[0] = factor * (0.5 * atom + (here - 0.5) * edge) / here
    return np.asarray(h)


def _smooth(n: int, c: int, h: Floats) -> Floats:
    """A moving average over a few cells of the shorter range, which takes out its whole numbers."""
    width = int(SMOOTHING * n / c) | 1
    inner = h[1:]
    padded = np.concatenate([2 * inner[0] - inner[:width][::-1], inner, n - inner[-width:][::-1]])
    out = h.copy()
    out[1:] = np.convolve(padded, np.full(width, 1 / width), "same")[width:-width]
    return out


def _prior(n: int, c: int, solution: Solution) -> Floats:
    """The mass of each cell of the shorter range spread over its part of the longer one; atoms stay atoms."""
    coarse = unfold(c, solution)[1]
    atom = coarse[0]
    inner = np.concatenate([[0.0], coarse[1:-1], [0.0]])
    # The method leaves a trace of mass everywhere; where the solution has none, none is carried over.
    inner[inner < 1e-6 / c] = 0.0
    below = np.concatenate([[0.0], np.cumsum(inner)])
    cuts = (np.arange(n + 2) - 0.5) * (c / n)
    prior = np.diff(np.interp(cuts, np.arange(c + 2) - 0.5, below))
    prior[[0, -1]] += atom
    return np.asarray(prior / prior.sum())


# The minimax remap for any convex loss: a linear program over the cells around each h(y), by interior points.
#
# h(y) = r_0 + sum_k w_k (r_{k+1} - r_k) with 0 <= w_k <= 1 over breakpoints r_0 < r_1 < ... that are close
# together near the present h(y) and twice as far apart with each step away from it. The loss between
# breakpoints is linear, which is never below the convex loss, so every iterate is a mechanism; the cells are
# laid anew around the new h(y) until the certified gap is small. Privacy does not depend on any of this.

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
        cells = _RemapCells(kernel, loss, h, reach)
        weights, part, value = _box_minimax(cells.columns, cells.base, tolerance)
        moved = cells.heights(weights)
        if value < best:
            h, prior = moved, cells.whole(part)
        best = min(best, value)
        # Inside cells of length 1 the loss is exact, and what is best nearby is best for a convex loss.
        if cells.settled(moved):
            break
    return h, prior


class _RemapCells:
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
        """One predictor and one corrector step; None if the system has become unsolvable."""
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


# Which way to the best mechanism for a count, and the way there where the compact form holds.
#
# Loads numpy and nothing heavier, so that the command line answers at once.

TOLERANCE = 1e-7
LONGEST_BAYES = 20_000
LONGEST_TABLE = 2_000


def is_compact(loss: Loss, criterion: str) -> bool:
    """Whether the compact form is known to reach the optimum and has a solver."""
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
        refuse_if(n > LONGEST_BAYES, "n", n, f"be at most {LONGEST_BAYES} for a prior")
        weights = np.full(n + 1, 1 / (n + 1)) if prior is None else prior_parameter(prior, n + 1)
        return bayes_remap(GeometricKernel(n=n, epsilon=epsilon), loss, weights)
    refuse_prior(prior)
    if loss.name == "zero-one" and loss.table is None:
        refuse_if(n > LONGEST_BAYES, "n", n, f"be at most {LONGEST_BAYES} for zero-one loss")
        return zero_one_minimax(n, epsilon)
    with one_thread():
        return minimax_remap(n, epsilon, loss, tolerance)


def refuse_prior(prior: Any) -> None:
    """Refuses a prior with the minimax criterion, which uses none."""
    if prior is not None:
        raise InvalidParameter(
            parameter="prior", value="a prior", must="be left out for minimax", hint="ask for criterion bayes"
        )
