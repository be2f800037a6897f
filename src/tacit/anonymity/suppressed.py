"""Cell suppression: the cells of a table with totals to leave out, so that nobody can compute the small ones.

A published table with all totals is a system of linear equations. An attacker who knows the pattern, and that counts
are not negative, can compute an interval for each suppressed cell: the least and the largest value that the equations
allow, by two linear programs.
Primary cells are suppressed because they are small. Secondary cells are chosen so that the interval of each
primary count a contains [max(0, a - protection), a + protection].

The choice is by constraint generation (Fischetti and Salazar 2001): a whole-number program over which cells to
suppress, with a cut for each primary cell that an attacker can still bound too well, taken from the dual solution of
her linear program, until none is left. If the program does not finish in time, the same linear programs repair
its last pattern, at a price for each further cell. The relaxed program's value is a lower bound on what any
pattern costs.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified, UnknownName
from tacit.exact.arrays import Booleans, Floats, Integers
from tacit.exact.checks import positive, whole
from tacit.exact.data_classes import dataclass

# What an attacker computes from a table with suppressed cells: intervals, by linear programs (HiGHS).
#
# She knows every published cell, all equations between cells and totals, and that no count is negative.

TINY = 1e-7
FAR = 1e7
"""A distance beyond every interval of interest."""
Cut = tuple[Integers, Floats, float]


def with_totals(counts: Integers) -> Integers:
    """The table with totals as the last place of every axis."""
    full = counts
    for axis in range(counts.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    return full


def equations(shape: tuple[int, ...]) -> Any:
    """A sparse matrix with a row for each line of the table along each axis: its cells less its total are 0.

    The total is the last entry of its row.
    """
    from scipy.sparse import csr_matrix

    places: npt.NDArray[Any] = np.arange(int(np.prod(shape))).reshape(shape)
    rows, columns, signs = [], [], []
    at = 0
    for axis in range(len(shape)):
        others = [range(n) for i, n in enumerate(shape) if i != axis]
        for index in itertools.product(*others):
            where: Any = (*index[:axis], slice(None), *index[axis:])
            line = places[where]
            rows += [at] * len(line)
            columns += line.tolist()
            signs += [1.0] * (len(line) - 1) + [-1.0]
            at += 1
    matrix = csr_matrix((signs, (rows, columns)), shape=(at, places.size))
    matrix.sort_indices()
    return matrix


class Attacker:
    """Linear programs for the largest distance of suppressed cells from their counts: M d = 0, d >= -count."""

    def __init__(self, counts: Integers, suppressed: Booleans, matrix: Any) -> None:
        self.counts, self.suppressed = counts, suppressed
        self.full = matrix.tocsc()
        self.places = np.flatnonzero(suppressed)
        narrow = matrix.tocsc()[:, self.places].tocsr()
        self.touched = np.flatnonzero(np.diff(narrow.indptr))
        self.narrow = narrow[self.touched].tocsc()
        self.index = np.full(len(counts), -1, dtype=np.int64)
        self.index[self.places] = np.arange(len(self.places))

    def _solve(self, objective: Floats, cap: dict[int, float] | None = None, *, far: float = FAR) -> Any:
        """Maximises the objective. `cap` bounds moves up, `far` all other moves."""
        from scipy.optimize import linprog

        bounds = np.stack(
            [-self.counts[self.places].astype(np.float64), np.full(len(self.places), far)], axis=1
        )
        for place, most in (cap or {}).items():
            i = self.index[place]
            bounds[i, 1] = most
        found = linprog(
            -objective, A_eq=self.narrow, b_eq=np.zeros(len(self.touched)), bounds=bounds, method="highs-ds"
        )
        if found.status != 0 and not (found.status == 3 and math.isinf(far)):
            raise NotCertified(what="an attacker's interval", reason="the linear program did not finish")
        return found

    def intervals(self, places: Integers) -> Floats:
        """The least and largest value of each cell that the equations allow; infinite where they do not bound it."""
        out = np.empty((len(places), 2))
        for row, place in enumerate(places):
            goal = np.zeros(len(self.places))
            goal[self.index[place]] = 1.0
            # Not bounded by anything but the equations: counts may be far larger than any move that protects.
            up, down = self._solve(goal, far=math.inf), self._solve(-goal, far=math.inf)
            count = float(self.counts[place])
            out[row] = count + float(down.fun), np.inf if up.status == 3 else count - float(up.fun)
        return np.round(out, 6)

    def open_ends(
        self, primary: Integers, protection: int, *, first: bool = False
    ) -> list[tuple[int, int, float]]:
        """(cell, direction, distance) for each primary cell that cannot move far enough."""
        return [(place, sign, need) for place, sign, need, _ in self._open(primary, protection, first=first)]

    def _open(
        self, primary: Integers, protection: int, *, first: bool = False
    ) -> list[tuple[int, int, float, Any]]:
        needs = [(int(p), 1, float(protection)) for p in primary]
        needs += [(int(p), -1, float(min(protection, self.counts[p]))) for p in primary if self.counts[p] > 0]
        waiting = {(p, sign): need for p, sign, need in needs}
        # One move for all: what it shows is shown for many cells at once.
        for sign in (1, -1):
            for _ in range(3):
                wanted = [p for (p, s) in waiting if s == sign]
                if not wanted:
                    break
                goal = np.zeros(len(self.places))
                goal[self.index[wanted]] = float(sign)
                before = len(waiting)
                self._cross(waiting, self._solve(goal, dict.fromkeys(wanted, float(protection))).x)
                if len(waiting) == before:
                    break
        found = []
        for key in list(waiting):
            if key not in waiting:
                continue
            (place, sign), need = key, waiting[key]
            goal = np.zeros(len(self.places))
            goal[self.index[place]] = float(sign)
            # A move up is stopped at the need, so that the program is bounded; one down stops at 0.
            solved = self._solve(goal, {place: need} if sign > 0 else None)
            self._cross(waiting, solved.x)
            if key in waiting:
                del waiting[key]
                found.append((place, sign, need, solved))
                if first:
                    break
        return found

    def _cross(self, waiting: dict[tuple[int, int], float], move: Floats) -> None:
        """Strikes out all ends that a feasible move reaches."""
        for (place, sign), need in list(waiting.items()):
            if sign * move[self.index[place]] >= need - TINY:
                del waiting[(place, sign)]

    def cuts(self, primary: Integers, protection: int, fixed: Booleans) -> list[Cut]:
        """Inequalities, one for each unreached end. This pattern violates each of them, and every protecting
        pattern satisfies them.

        For any multipliers m of the equations, a move of cell p by `need` in direction s needs
        sum_i (up_i c_i+ + count_i c_i-) x_i >= need, c = s e_p - M' m, where up_i is beyond all bounds.
        """
        made = []
        for place, sign, need, solved in self._open(primary, protection):
            multipliers = np.zeros(self.full.shape[0])
            multipliers[self.touched] = -np.asarray(solved.eqlin.marginals)
            c = -np.asarray(self.full.T @ multipliers)
            c[place] += sign
            c[np.abs(c) < 1e-9] = 0.0
            weight = np.where(c > 0, FAR, 0.0) + np.where(c < 0, -c * self.counts, 0.0)
            right = need - float(weight[fixed].sum())
            if right <= TINY:
                continue
            weight = np.minimum(weight, right)
            weight[fixed] = 0.0
            there = np.flatnonzero(weight > 0)
            made.append((there, weight[there] / right, 1.0))
        return made

    def cheapest(self, place: int, sign: int, need: float, costs: Floats) -> Booleans:
        """Cells of the cheapest move of one cell by `need`, where others may move at a price."""
        from scipy.optimize import linprog
        from scipy.sparse import hstack

        price = np.where(self.suppressed, 0.0, costs)
        up = np.full(len(self.counts), FAR)
        down = self.counts.astype(np.float64)
        # A move that uses both directions of a cell gains nothing: they have one price.
        bounds = [(0.0, u) for u in up] + [(0.0, d) for d in down]
        many = len(self.counts)
        fixed = place if sign > 0 else many + place
        bounds[fixed] = (need, need)
        bounds[place if sign < 0 else many + place] = (0.0, 0.0)
        found = linprog(
            np.r_[price, price], A_eq=hstack([self.full, -self.full]).tocsc(), b_eq=np.zeros(self.full.shape[0]),
            bounds=bounds, method="highs-ds",
        )  # fmt: skip
        if found.status != 0:
            raise NotCertified(
                what="a protecting pattern", reason="no cells of this table protect one of its small ones"
            )
        moved = found.x[:many] + found.x[many:] > TINY
        return np.asarray(moved)


OBJECTIVES = ("number", "value")
INTERVALS = ("all", "none", "primary")
FIRST_GAP, LAST_GAP = 0.08, 0.004
MOST_PEOPLE, MOST_PROTECTION = 10**11, 10**6
ENOUGH, EXACT_CELLS = 1.02, 250
"""A larger table is finished when its pattern costs at most 2% more than the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """The suppressed cells. Arrays have the totals as the last place of each axis.

    low, high: the intervals that an attacker can still compute; published cells have their value twice, suppressed
    ones whose interval was not asked for have NaN. cost and bound: the cost of all suppressed cells by the objective,
    and a lower bound on the cost of any pattern.
    """

    counts: Integers
    primary: Booleans
    suppressed: Booleans
    low: Floats
    high: Floats
    protection: int
    objective: str
    cost: float
    bound: float
    seconds: float
    rounds: int

    @property
    def number(self) -> int:
        """The number of suppressed cells, primary and secondary."""
        return int(self.suppressed.sum())

    @property
    def value(self) -> int:
        """The sum of the suppressed counts."""
        return int(self.counts[self.suppressed].sum())

    @property
    def optimal(self) -> bool:
        """Is the pattern proved best for its objective?"""
        return self.cost <= self.bound + 1e-6

    @property
    def published(self) -> Any:
        """The table for publication: floats, with NaN for suppressed cells."""
        return np.where(self.suppressed, np.nan, self.counts)


def suppress_cells(
    counts: npt.ArrayLike,
    *,
    below: int = 5,
    protection: int = 5,
    objective: str = "number",
    seconds: float = 40.0,
    primary: npt.ArrayLike | None = None,
    intervals: str = "primary",
) -> Pattern:
    """The suppression pattern of a table of counts, given without its totals.

    below: counts from 1 to below - 1 are primary (or `primary` says which cells are, totals included). protection: how
    far the attacker's interval must reach on both sides, no lower than 0. objective: the quantity to minimise, the
    number of suppressed cells or the sum of their counts. seconds: for the whole-number programs. intervals: the cells
    for which the attacker's interval is computed ("primary", "all" suppressed ones, or "none"); each takes two
    programs.
    """
    if objective not in OBJECTIVES:
        raise UnknownName(what="objective", name=str(objective), known=OBJECTIVES)
    protection, below = whole("protection", protection), whole("below", below)
    limit = positive("seconds", seconds)
    inner = np.asarray(counts)
    if inner.ndim < 2 or 0 in inner.shape or inner.dtype.kind not in "iu" or (inner < 0).any():
        raise InvalidParameter(
            parameter="counts", value=f"shape {inner.shape}, {inner.dtype}",
            must="be whole numbers from 0 on, in two axes or more",
        )  # fmt: skip
    if float(inner.astype(np.float64).sum()) > MOST_PEOPLE or protection > MOST_PROTECTION:
        raise InvalidParameter(
            parameter="counts", value="a larger sum, or a larger protection",
            must=f"add up to at most {MOST_PEOPLE:,}, and the protection be at most {MOST_PROTECTION:,}",
            hint="linear programs in floating point are accurate up to there",
        )  # fmt: skip
    full = with_totals(inner.astype(np.int64))
    small = (full > 0) & (full < below)
    if primary is not None:
        small = np.asarray(primary, dtype=bool)
        if small.shape != full.shape:
            raise InvalidParameter(
                parameter="primary",
                value=small.shape,
                must=f"have the shape of the table with totals, {full.shape}",
            )
    if intervals not in INTERVALS:
        raise UnknownName(what="choice of intervals", name=str(intervals), known=INTERVALS)
    start = time.monotonic()
    search = _SuppressionSearch(full.ravel(), small.ravel(), equations(full.shape), protection, objective)
    search.run(start + limit)
    chosen = search.best
    assert chosen is not None
    low, high = full.astype(np.float64), full.astype(np.float64)
    low.ravel()[chosen], high.ravel()[chosen] = np.nan, np.nan
    if intervals != "none" and chosen.any():
        attacker = Attacker(search.counts, chosen, search.matrix)
        places = np.flatnonzero(small.ravel() if intervals == "primary" else chosen)
        ends = attacker.intervals(places)
        low.ravel()[places], high.ravel()[places] = ends[:, 0], ends[:, 1]
    return Pattern(
        counts=full, primary=small, suppressed=chosen.reshape(full.shape), low=low, high=high, protection=protection,
        objective=objective, cost=search.cost_of(chosen), bound=search.bound, seconds=time.monotonic() - start,
        rounds=search.rounds,
    )  # fmt: skip


@dataclass(slots=True)
class _SuppressionSearch:
    """Constraint generation over the secondary cells."""

    counts: Integers
    primary: Booleans
    matrix: Any
    protection: int
    objective: str
    rows: list[tuple[Integers, Floats, float]] = field(default_factory=list)
    best: Booleans | None = None
    bound: float = 0.0
    rounds: int = 0

    def cost_of(self, chosen: Booleans) -> float:
        """The cost of a pattern: its number of cells, or the sum of their counts."""
        return float(self.costs[chosen].sum())

    @property
    def costs(self) -> Floats:
        """The cost of each cell.
        A cell of 0 costs a little in value too, so that no cell is suppressed without need."""
        if self.objective == "number":
            return np.ones(len(self.counts))
        return self.counts.astype(np.float64)

    @property
    def _steering(self) -> Floats:
        """Costs with ties broken: fewer rows among patterns of equal number, fewer cells among those of equal value."""
        costs = self.costs
        if self.objective == "number":
            return costs + 1e-4 * self.counts / max(1, int(self.counts.max()))
        return costs + min(1e-3, 0.9 / len(costs))

    def run(self, deadline: float) -> None:
        """Adds cuts until the pattern of the program protects every primary cell, or time is over."""
        if not self.primary.any():
            self.best = self.primary.copy()
            return
        self._line_cuts()
        # Early cuts need no exact program: the gap shrinks each time a pattern is found that protects all.
        gap, tried = FIRST_GAP, self.primary.copy()
        while not self._done(deadline, gap):
            self.rounds += 1
            chosen, bound, finished = self._program(deadline, gap)
            self.bound = max(self.bound, bound)
            if chosen is None:
                break
            # What the program had when its time was over may cost many times as much: nothing to mend.
            tried = chosen if finished or self.rounds == 1 else tried
            attacker = Attacker(self.counts, chosen, self.matrix)
            cuts = attacker.cuts(np.flatnonzero(self.primary), self.protection, self.primary)
            self.rows.extend(cuts)
            if not cuts:
                self._keep(chosen)
                gap = gap / 4 if gap > LAST_GAP else 0.0
        if self.best is None:
            self._keep(self._repaired(tried))
        assert self.best is not None
        self.best = self._thinned(self.best, deadline)

    def _keep(self, chosen: Booleans) -> None:
        if self.best is None or self._steering[chosen].sum() < self._steering[self.best].sum():
            self.best = chosen

    def _done(self, deadline: float, gap: float) -> bool:
        """Whether the best pattern is proved best, is good enough, or time is over."""
        if self.best is None:
            return time.monotonic() > deadline
        close = self.cost_of(self.best) <= self.bound + 1e-9
        enough = len(self.counts) > EXACT_CELLS and self.cost_of(self.best) <= ENOUGH * self.bound
        return close or enough or time.monotonic() > deadline

    def _line_cuts(self) -> None:
        """Every line with a suppressed cell has a second one: a necessary condition that is cheap to state."""
        matrix = self.matrix.tocsr()
        for i in range(matrix.shape[0]):
            line = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
            fixed = self.primary[line]
            total = line[-1]
            for p in line[fixed] if fixed.sum() == 1 else ():
                others = line[line != p]
                # Up by the protection: other cells go down, each by no more than it has, or the total goes up.
                if p != total:
                    room = np.minimum(self.counts[others], self.protection).astype(np.float64)
                    room[others == total] = self.protection
                    self.rows.append((others, room, float(self.protection)))
                else:
                    self.rows.append((others, np.ones(len(others)), 1.0))
            if not fixed.any():
                for j in line:
                    others = line[line != j]
                    self.rows.append((np.r_[others, j], np.r_[np.ones(len(others)), -1.0], 0.0))

    def _program(self, deadline: float, gap: float) -> tuple[Booleans | None, float, bool]:
        """The cheapest pattern that satisfies all cuts so far, a lower bound on its cost, and whether the solver
        finished.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_matrix

        many = len(self.counts)
        if not self.rows:
            return self.primary.copy(), self.cost_of(self.primary), True
        data = np.concatenate([row[1] for row in self.rows])
        columns = np.concatenate([row[0] for row in self.rows])
        starts = np.cumsum([0, *(len(row[0]) for row in self.rows)])
        cuts = csr_matrix((data, columns, starts), shape=(len(self.rows), many))
        lower = np.array([row[2] for row in self.rows])
        left = max(1.0, min(deadline - time.monotonic(), 10.0))
        costs = self._steering
        found = milp(
            costs,
            constraints=LinearConstraint(cuts, lb=lower),
            integrality=np.ones(many),
            bounds=Bounds(self.primary.astype(np.float64), np.ones(many)),
            options={"time_limit": left, "mip_rel_gap": gap},
        )
        # All steering together is less than one: true costs are whole, and the bound on them is rounded up.
        bound = float(getattr(found, "mip_dual_bound", 0.0) or 0.0)
        over = float((costs - self.costs).sum())
        whole_bound = np.ceil(bound - over - 1e-6) if np.isfinite(bound) else 0.0
        chosen = None if found.x is None else np.asarray(found.x > 0.5)
        return chosen, float(max(whole_bound, 0.0)), found.status == 0

    def _repaired(self, chosen: Booleans) -> Booleans:
        """More cells, along the cheapest moves that protect each unprotected primary cell."""
        attacker = Attacker(self.counts, chosen, self.matrix)
        for place, sign, need in attacker.open_ends(np.flatnonzero(self.primary), self.protection):
            moved = attacker.cheapest(place, sign, need, self._steering)
            chosen = chosen | moved
            attacker = Attacker(self.counts, chosen, self.matrix)
        return chosen

    def _thinned(self, chosen: Booleans, deadline: float) -> Booleans:
        """The pattern without superfluous secondary cells, dearest first, while time remains."""
        extra = np.flatnonzero(chosen & ~self.primary)
        if self.cost_of(chosen) <= self.bound * ENOUGH + 1e-9:
            return chosen
        primary = np.flatnonzero(self.primary)
        for place in extra[np.argsort(-self._steering[extra], kind="stable")]:
            if time.monotonic() > deadline + 5:
                break
            less = chosen.copy()
            less[place] = False
            if not Attacker(self.counts, less, self.matrix).open_ends(primary, self.protection, first=True):
                chosen = less
        return chosen
