"""The minimax remap for absolute loss: a primal-dual interior point method with n + 1 unknowns.

    minimise t   subject to   sum_y G(x, y) a(x, y) <= t,   a(x, y) >= |x - h(y)|

over h on [0, n], with h(n-y) = n - h(y) (the problem is symmetric, so this costs nothing). The variables a(x, y) and
their multipliers are eliminated pair by pair. Short ranges keep every pair and solve one dense positive definite system
in h, of half the size, for each step. Long ranges keep the pairs near the kink x = h(y) only, as elsewhere |x - h(y)|
is linear, and solve a sparse system (`structured`). The start is the solution on a range of half the length with twice
the epsilon, stretched. Privacy does not depend on the result. The prior (the multipliers of the first constraint)
certifies its distance from the optimum afterwards. Source: Mehrotra 1992 for the step rule; the compact form is theorem
`optimal-count-remap`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.risk.certificate import GeometricKernel

# Back from half a range to the whole: for a symmetric loss h(n-y) = n - h(y), and the prior mirrors itself.


def unfolded_heights(half: Floats, n: int) -> Floats:
    """h on 0..n from the outputs below n/2; an output in the middle stands for n/2."""
    middle = [n / 2] if n % 2 == 0 else []
    return np.concatenate([half, middle, n - half[::-1]])


def unfolded_prior(half: Floats, n: int) -> Floats:
    """The prior on 0..n from the counts up to n/2, of which each stands for itself and its mirror image."""
    prior = np.zeros(n + 1)
    prior[: half.size] += half / 2
    prior[n + 1 - half.size :] += half[::-1] / 2
    return prior


# How long a step of an interior point method may be: both solvers of the minimax remap stop short of a boundary.

BACK_OFF = 0.98
FREE = 2.0
"""More than a whole step, as a variable that hardly shrinks allows."""


def step_length(*pairs: tuple[Floats, Floats]) -> float:
    """The share of a move, at most 1, after which every variable is still above 0: pairs of values and moves."""
    return min(1.0, BACK_OFF * min(_alone(values, move) for values, move in pairs))


def _alone(values: Floats, move: Floats) -> float:
    if values.size == 0:
        return FREE
    worst = float(np.min(move / values))
    return FREE if worst >= -0.5 else -1.0 / worst


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
    """Solves near the kinks, moves the windows to the new kinks, and repeats until they stay."""
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
    # The slope that a structured program already counts for the pair; 0 if there is none.
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
        """Whether h stayed in the range where the fixed slopes are right."""
        return self.far is None or self.far.inside(h)

    def start(self, given: tuple[Floats, Floats] | None, gap: float) -> SolverState:
        """A point on the central path apart from h: a - |u| and its multipliers balance at one level."""
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
        return SolverState(h, t, a, above, below, slack, level / above, level / below, prior)

    def solve(self, given: tuple[Floats, Floats] | None, tolerance: float, gap: float) -> Solution:
        """Steps until the gap is small, or until the arithmetic gives out."""
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
    """Every pair with a relevant weight: y itself, and its mirror image n - y."""
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
class SolverState:
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

    def complementarity_after(self, move: SolverState, primal: float, dual: float) -> float:
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

    def step_lengths(self, move: SolverState) -> tuple[float, float]:
        """The largest step in the primal and in the dual variables before one of them is 0."""
        primal = step_length((self.above, move.above), (self.below, move.below), (self.slack, move.slack))
        return primal, step_length((self.up, move.up), (self.down, move.down), (self.prior, move.prior))

    def moved(self, move: SolverState, primal: float, dual: float) -> SolverState:
        """The point after a move."""
        return SolverState(
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


# One Newton step of the interior point method, with a and its multipliers eliminated.
#
#     H dh + P' dprior            = b
#     P dh - dprior / w - dt      = -f
#            sum dprior           = 1 - sum prior
#
# P is the derivative of the risks in h, H and 1/w are diagonal. `Dense` solves it in h; `structured` has the
# sparse solver for long ranges.


class _Solver(Protocol):
    def solve(self, b: Floats, f: Floats, r_t: float) -> tuple[Floats, Floats, float]:
        """dh, dprior, dt."""


def newton_system(program: Program, now: SolverState) -> Newton:
    """The linearised conditions at this point."""
    return Newton(program, now)


class Newton:
    """The linearised conditions at one point."""

    solver: _Solver

    def __init__(self, program: Program, now: SolverState) -> None:
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
        """The remaining gap and violation of the conditions on risks and prior, in the unit of the risk."""
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

    def step(self, count: int) -> SolverState:
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

    def direction(self, c_up: Floats, c_down: Floats, c_slack: Floats) -> SolverState:
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
        return SolverState(
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


# Long ranges: the derivative of the risks as two one-sided filters, a rank-one mirror image, and a band.
#
# With h increasing, row x of the derivative is + for y >= k(x) and - below, and q^|x-y| splits into
#     U_i = sum_{y >= i} q^(y-i) c_y dh_y,      V_i = sum_{y < i} q^(i-y) c_y dh_y,
# so that row x needs three filter values only (that h increases is a matter of speed, not of truth):
#     k >= x:  2 q^(k-x) U_k - U_x - V_x,       k < x:  U_x + V_x - 2 q^(x-k) V_k.
# The mirror half contributes -q^(n-x-y) c_y, of rank one. Near the kinks the pairs of the interior point
# method correct these slopes. All of it is one sparse system with two dense borders.

WINDOW = 12


def structured_program(n: int, epsilon: float, h: Floats) -> Program:
    """The program with pairs only within a window of the kinks of this h."""
    far = Structured(n, epsilon, h)
    return Program(n, epsilon, far.pairs(), far)


class Structured:
    """The slopes outside the windows, for kinks at `centre`."""

    def __init__(self, n: int, epsilon: float, h: Floats) -> None:
        from scipy.sparse import csr_matrix, diags

        self.n, self.kernel = n, GeometricKernel(n=n, epsilon=epsilon)
        self.rows, self.columns = n // 2 + 1, (n + 1) // 2
        self.centre = np.maximum.accumulate(np.clip(np.rint(h), 0, n // 2)).astype(np.int64)
        self.c = self.kernel.weights[: self.columns]
        q, m = float(np.exp(-epsilon)), self.rows
        x = np.arange(m)
        k = np.searchsorted(self.centre, x, side="left")
        power = self.kernel.powers[np.abs(k - x)]
        right = k >= x
        # Filter values: U_0..U_m in places 0..m, V_0..V_m after them.
        entries = [
            (x, np.where(right, k, x), np.where(right, 2 * power, 1.0)),
            (x, np.where(right, x, m + 1 + x), np.where(right, -1.0, 1.0)),
            (x, np.where(right, m + 1 + x, m + 1 + k), np.where(right, -1.0, -2 * power)),
        ]
        i, j, v = (np.concatenate(part) for part in zip(*entries, strict=True))
        self.select = csr_matrix((v, (i, j)), shape=(m, 2 * (m + 1)))
        up = diags([np.ones(m + 1), np.full(m, -q)], [0, 1])
        down = diags([np.ones(m + 1), np.full(m, -q)], [0, -1])
        from scipy.sparse import block_diag

        self.filters = block_diag([up, down]).tocsc()
        y = np.arange(self.columns)
        self.feed = csr_matrix(
            (np.concatenate([self.c, q * self.c]), (np.concatenate([y, m + 2 + y]), np.concatenate([y, y]))),
            shape=(2 * (m + 1), self.columns),
        )
        from scipy.sparse.linalg import splu

        self._filter = splu(self.filters, permc_spec="NATURAL")
        # q^(n-x-y) = q^(n/2-x) q^(n/2-y), each of them at most 1.
        self.v = np.exp(-epsilon * (n / 2 - x))
        self.u = self.c * np.exp(-epsilon * (n / 2 - y))
        self.ones = self.near(np.ones(self.columns))

    def near(self, values: Floats) -> Floats:
        """The settled slopes of the near half, applied to h."""
        return np.asarray(self.select @ self._filter.solve(self.feed @ values))

    def risks(self, h: Floats) -> Floats:
        """The risks with every |x - h(y)| replaced by its fixed slope times (h(y) - x)."""
        x = np.arange(self.rows)
        mirror = self.v * ((self.n - x) * self.u.sum() - self.u @ h)
        return np.asarray(self.near(h) - x * self.ones + mirror)

    def transposed(self, prior: Floats) -> Floats:
        """The settled slopes of both halves, transposed, applied to a prior."""
        back = self.feed.T @ self._filter.solve(self.select.T @ prior, trans="T")
        return np.asarray(back - self.u * (self.v @ prior))

    def inside(self, h: Floats) -> bool:
        """Whether no kink has left its window."""
        return bool(np.abs(h - self.centre).max() <= WINDOW)

    def pairs(self) -> Pairs:
        """The pairs within the windows: around centre(y), and around its mirror image near the middle."""
        reach = np.arange(-WINDOW, WINDOW + 1)
        y = np.arange(self.columns)
        row = self.centre[:, None] + reach
        column = np.broadcast_to(y[:, None], row.shape)
        keep = (row >= 0) & (row < self.rows)
        mirror = (self.n - self.centre)[:, None] + reach
        keep_mirror = (mirror >= 0) & (mirror < self.rows)
        rows = np.concatenate([row[keep], mirror[keep_mirror]])
        columns = np.concatenate([column[keep], column[keep_mirror]])
        sign = np.concatenate([np.ones(keep.sum()), -np.ones(keep_mirror.sum())])
        place = np.where(sign > 0, columns, self.n - columns)
        law = self.c[columns] * self.kernel.powers[np.abs(rows - place)]
        settled = np.where(sign > 0, np.where(self.centre[columns] >= rows, 1.0, -1.0), 1.0)
        heavy = law > lightest(self.kernel)
        offset = np.where(sign > 0, -rows.astype(float), self.n - rows.astype(float))
        return Pairs(rows[heavy], columns[heavy], sign[heavy], offset[heavy], law[heavy], settled[heavy])

    def system(self, pairs: Pairs, slopes: Floats, curvature: Floats, inverse_w: Floats) -> Bordered:
        """The linear system with these slopes of the pairs on top of the settled ones."""
        return Bordered(self, pairs, slopes, curvature, inverse_w)


class Bordered:
    """The sparse core factorised once; dt and the mirror's rank one enter as two borders."""

    def __init__(
        self, far: Structured, pairs: Pairs, slopes: Floats, curvature: Floats, inverse_w: Floats
    ) -> None:
        from scipy.sparse import bmat, csr_matrix, diags

        self.far = far
        band = csr_matrix((slopes, (pairs.row, pairs.column)), shape=(far.rows, far.columns))
        curvature = curvature * (1 + 1e-13) + 1e-300
        # Unknowns: dh, filter values, their multipliers, dprior.
        self.core = bmat(
            [
                [diags(curvature), None, far.feed.T, band.T],
                [far.feed, -far.filters, None, None],
                [None, None, -far.filters.T, far.select.T],
                [band, far.select, None, diags(-inverse_w)],
            ]
        ).tocsc()
        self.order = _interleave(far)
        permuted = self.core[self.order][:, self.order]
        from scipy.sparse.linalg import splu

        self.lu = splu(permuted.tocsc(), permc_spec="NATURAL")
        size = self.core.shape[0]
        self.dh = slice(0, far.columns)
        self.dprior = slice(size - far.rows, size)
        # Columns of the borders: z = u.dh and z' = v.dprior (mirror), dt.
        borders = np.zeros((size, 3))
        borders[self.dprior, 0] = -far.v
        borders[self.dh, 1] = -far.u
        borders[self.dprior, 2] = -1.0
        self.tests = np.zeros((3, size))
        self.tests[0, self.dh] = far.u
        self.tests[1, self.dprior] = far.v
        self.tests[2, self.dprior] = 1.0
        self.response = self._core(borders)
        self.small = self.tests @ self.response
        self.small[0, 0] += 1.0
        self.small[1, 1] += 1.0

    def _core(self, right: Floats) -> Any:
        solution = np.empty_like(right)
        solution[self.order] = self.lu.solve(np.ascontiguousarray(right[self.order]))
        rest = right - self.core @ solution
        again = np.empty_like(right)
        again[self.order] = self.lu.solve(np.ascontiguousarray(rest[self.order]))
        return solution + again

    def solve(self, b: Floats, f: Floats, r_t: float) -> tuple[Floats, Floats, float]:
        """dh, dprior, dt: core s + borders (z, z', dt) = right, with z = u.dh, z' = v.dprior, sum dprior = r_t."""
        right = np.zeros(self.core.shape[0])
        right[self.dh] = b
        right[self.dprior] = -f
        first = self._core(right)
        tested = self.tests @ first
        tested[2] -= r_t
        outer = np.linalg.solve(self.small, tested)
        solution = first - self.response @ outer
        return solution[self.dh], solution[self.dprior], float(outer[2])


def _interleave(far: Structured) -> Any:
    """All unknowns of one place next to each other, so that the matrix is a band before it is factorised."""
    m = far.rows + 1
    places = [
        np.arange(far.columns),
        np.arange(m),
        np.arange(m),
        np.arange(m),
        np.arange(m),
        np.arange(far.rows),
    ]
    return np.argsort(np.concatenate(places), kind="stable")
