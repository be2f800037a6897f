"""The minimax remap for absolute loss: a primal-dual interior point method with n + 1 unknowns.

    minimise t   subject to   sum_y G(x, y) a(x, y) <= t,   a(x, y) >= |x - h(y)|

over h on [0, n], with h(n-y) = n - h(y) (the problem is symmetric, so this costs nothing). The variables
a(x, y) and their multipliers are eliminated pair by pair. Short ranges keep every pair and solve one dense
positive definite system in h, of half the size, for each step. Long ranges keep the pairs near the kink
x = h(y) only, as elsewhere |x - h(y)| is linear, and solve a sparse system (`structured`). The start is
the solution on a range of half the length with twice the epsilon, stretched.
Whatever this returns, privacy does not depend on it, and its distance from the optimum is certified
afterwards by the prior (the multipliers of the first constraint).
Source: Mehrotra 1992 for the step rule; the compact form is theorem `optimal-count-remap`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.exact.arrays import Floats
from tacit.risk.folding import unfolded_heights, unfolded_prior
from tacit.risk.kernel import GeometricKernel
from tacit.risk.step_length import step_length

if TYPE_CHECKING:
    from tacit.risk.structured import Structured

__all__ = ["FLAT", "Pairs", "Solution", "absolute_minimax", "unfold"]

SMALLEST_LEVEL = 40
LARGEST_DENSE = 300
# Below this n epsilon the kinks lie all over the range, and windows around them find nothing.
FLAT, LARGEST_FLAT = 0.5, 650
START_GAP = 0.001
START_GAP_LONG = 0.0001
# The certified gap comes out ten times smaller than what the steps aim at.
LONG, LONG_TOLERANCE = 3_000, 5e-7
COARSE_TOLERANCE = 1e-5
# All pairs that are left out together change the risk by less than this share of it.
NEGLIGIBLE = 1e-9
MOST_STEPS = 120
ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A half of h (outputs below n/2) and of the prior (counts up to n/2, doubled), and how many steps."""

    h: Floats
    prior: Floats
    steps: int


def unfold(n: int, solution: Solution) -> tuple[Floats, Floats]:
    """The whole h and the whole prior."""
    prior = unfolded_prior(solution.prior, n)
    return np.clip(unfolded_heights(solution.h, n), 0, n), prior / prior.sum()


def absolute_minimax(n: int, epsilon: float, tolerance: float) -> Solution:
    """h and prior for absolute loss, aiming at this relative gap."""
    if n <= SMALLEST_LEVEL:
        return Program(n, epsilon).solve(None, tolerance, START_GAP)
    coarse = n // 2 + (n - n // 2) % 2
    below = absolute_minimax(coarse, epsilon * n / coarse, max(tolerance, COARSE_TOLERANCE))
    start = stretch(coarse, below, n)
    if n <= (LARGEST_FLAT if n * epsilon < FLAT else LARGEST_DENSE):
        return Program(n, epsilon).solve(start, tolerance, START_GAP)
    return _windowed(n, epsilon, start, tolerance)


def _windowed(n: int, epsilon: float, start: tuple[Floats, Floats], tolerance: float) -> Solution:
    """Solve near the kinks, move the windows to where the kinks went, and again until they stay."""
    from tacit.risk.structured import structured_program

    gap, steps = START_GAP_LONG, 0
    tolerance = max(tolerance, LONG_TOLERANCE) if n > LONG else tolerance
    for _ in range(ROUNDS):
        program = structured_program(n, epsilon, start[0])
        solution = program.solve(start, tolerance, gap)
        steps += solution.steps
        h = np.maximum.accumulate(np.clip(solution.h, 0, n / 2))
        start = (h, solution.prior)
        if program.inside(h):
            break
        gap /= 10
    return Solution(h=start[0], prior=start[1], steps=steps)


def stretch(coarse: int, solution: Solution, n: int) -> tuple[Floats, Floats]:
    """The coarse solution on the finer range: atoms at the end stay atoms, the rest is a density."""
    factor = n / coarse
    middle = coarse / 2 if coarse % 2 == 0 else coarse - solution.h[-1]
    h = np.append(solution.h, middle)
    density = solution.prior.copy()
    if h.size > 3:
        h[0] = max(0.0, 2 * h[1] - h[2])
        density[0] = density[1]
    fine = factor * np.interp(np.arange((n + 1) // 2) / factor, np.arange(h.size), h)
    fine[0] = factor * solution.h[0]
    prior = np.interp(np.arange(n // 2 + 1) / factor, np.arange(density.size), density) / factor
    prior[0] = max(solution.prior[0], prior[0])
    return np.minimum(np.maximum.accumulate(fine), n / 2), prior / prior.sum()


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs (x, y) of the folded range whose |x - h(y)| is a variable: u = sign h(column) + offset."""

    row: np.ndarray
    column: np.ndarray
    sign: Floats
    offset: Floats
    probability: Floats
    # The slope that a structured program already counts for the pair; 0 where there is none.
    settled: Floats


class Program:
    """The folded program for one (n, epsilon)."""

    def __init__(
        self, n: int, epsilon: float, pairs: Pairs | None = None, far: Structured | None = None
    ) -> None:
        kernel = GeometricKernel(n=n, epsilon=epsilon)
        rows, columns = np.arange(n // 2 + 1), np.arange((n + 1) // 2)
        self.n, self.epsilon, self.far = n, epsilon, far
        self.size = (rows.size, columns.size)
        self.pairs = all_pairs(kernel, rows, columns) if pairs is None else pairs
        self.base = np.zeros(rows.size)
        if n % 2 == 0:
            self.base = kernel.probabilities(rows, np.array([n // 2]))[:, 0] * (n // 2 - rows)

    def by_row(self, values: Floats) -> Floats:
        """The sum over the pairs of each count."""
        return np.bincount(self.pairs.row, values, self.size[0]).astype(np.float64)

    def by_column(self, values: Floats) -> Floats:
        """The sum over the pairs of each output."""
        return np.bincount(self.pairs.column, values, self.size[1]).astype(np.float64)

    def distances(self, h: Floats) -> Floats:
        """u = h - x (or n - h - x in the mirror half), pair by pair."""
        return np.asarray(self.pairs.sign * h[self.pairs.column] + self.pairs.offset)

    def risks(self, h: Floats, a: Floats, u: Floats) -> Floats:
        """The left sides of the first constraint."""
        total = self.by_row(self.pairs.probability * (a - self.pairs.settled * u)) + self.base
        return total if self.far is None else total + self.far.risks(h)

    def inside(self, h: Floats) -> bool:
        """Whether h stayed where the settled slopes are right."""
        return self.far is None or self.far.inside(h)

    def start(self, given: tuple[Floats, Floats] | None, gap: float) -> State:
        """A point on the central path in all but h: a - |u| and its multipliers balance at one level."""
        rows, columns = self.size
        h = np.arange(columns, dtype=float) if given is None else given[0]
        prior = np.full(rows, 1 / rows) if given is None else np.maximum(given[1], 1e-4 / rows)
        prior = prior / prior.sum()
        scale = min(self.n / 4, 1 / np.sinh(self.epsilon))
        level = (0.05 if given is None else gap) * scale / (self.pairs.row.size + rows)
        u = self.distances(h)
        z = level / (prior[self.pairs.row] * self.pairs.probability)
        a = z + np.sqrt(z * z + u * u)
        above = np.where(u > 0, 2 * z * a / (a + np.abs(u)), a - u)
        below = np.where(u < 0, 2 * z * a / (a + np.abs(u)), a + u)
        slack = level / prior
        t = float((self.risks(h, a, u) + slack).max())
        return State(h, t, a, above, below, slack, level / above, level / below, prior)

    def solve(self, given: tuple[Floats, Floats] | None, tolerance: float, gap: float) -> Solution:
        """Steps until the gap is small, or until the arithmetic gives out."""
        from tacit.risk.newton import newton_system

        state, steps = self.start(given, gap), 0
        count = 2 * self.pairs.row.size + self.size[0]
        for _ in range(MOST_STEPS):
            newton = newton_system(self, state)
            if newton.error() < 0.5 * tolerance * state.t:
                break
            try:
                with np.errstate(all="ignore"):
                    moved = newton.step(count)
            except (np.linalg.LinAlgError, RuntimeError):
                break
            if not np.isfinite(moved.t) or not np.isfinite(moved.h).all():
                break
            state, steps = moved, steps + 1
        prior = np.maximum(state.prior, 0.0)
        return Solution(h=np.clip(state.h, 0, self.n), prior=prior / prior.sum(), steps=steps)


def lightest(kernel: GeometricKernel) -> float:
    """The weight below which pairs may be left out: n^2 of them, each at most n away, are NEGLIGIBLE."""
    return NEGLIGIBLE * min(1.0, 1 / float(np.sinh(kernel.epsilon))) / kernel.n**2


def all_pairs(kernel: GeometricKernel, rows: np.ndarray, columns: np.ndarray) -> Pairs:
    """Every pair that weighs anything: y itself, and its mirror image n - y."""
    near, far = kernel.probabilities(rows, columns), kernel.probabilities(rows, kernel.n - columns)
    least = lightest(kernel)
    a, b = np.nonzero(near > least), np.nonzero(far > least)
    return Pairs(
        row=np.concatenate([a[0], b[0]]),
        column=np.concatenate([a[1], b[1]]),
        sign=np.concatenate([np.ones(a[0].size), -np.ones(b[0].size)]),
        offset=np.concatenate([-a[0].astype(float), kernel.n - b[0].astype(float)]),
        probability=np.concatenate([near[a], far[b]]),
        settled=np.zeros(a[0].size + b[0].size),
    )


@dataclass(slots=True)
class State:
    """All variables: a - u = above and a + u = below with multipliers up and down; slack with the prior."""

    h: Floats
    t: float
    a: Floats
    above: Floats
    below: Floats
    slack: Floats
    up: Floats
    down: Floats
    prior: Floats

    def complementarity(self) -> float:
        """The gap between the primal and the dual value, for a feasible point."""
        return float(self.up @ self.above + self.down @ self.below + self.prior @ self.slack)

    def complementarity_after(self, move: State, primal: float, dual: float) -> float:
        """The same after a move, without making it."""
        total = self.complementarity()
        for value, dvalue, price, dprice in (
            (self.above, move.above, self.up, move.up),
            (self.below, move.below, self.down, move.down),
            (self.slack, move.slack, self.prior, move.prior),
        ):
            total += primal * float(price @ dvalue) + dual * float(dprice @ value)
            total += primal * dual * float(dprice @ dvalue)
        return total

    def step_lengths(self, move: State) -> tuple[float, float]:
        """How far one may go in the primal and in the dual variables before one of them is 0."""
        primal = step_length((self.above, move.above), (self.below, move.below), (self.slack, move.slack))
        return primal, step_length((self.up, move.up), (self.down, move.down), (self.prior, move.prior))

    def moved(self, move: State, primal: float, dual: float) -> State:
        """The point after a move."""
        return State(
            self.h + primal * move.h,
            self.t + primal * move.t,
            self.a + primal * move.a,
            self.above + primal * move.above,
            self.below + primal * move.below,
            self.slack + primal * move.slack,
            self.up + dual * move.up,
            self.down + dual * move.down,
            self.prior + dual * move.prior,
        )
