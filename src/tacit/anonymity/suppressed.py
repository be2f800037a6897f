"""Cell suppression: which cells of a table with totals are left out, so that none of the small ones can be computed.

A published table with all totals is a system of linear equations. An attacker who knows it, and that counts are not
negative, can compute for each suppressed cell an interval: the least and the largest value that the equations allow,
two linear programs. Primary cells are suppressed because they are small. Secondary ones are chosen so that the
interval of each primary count a contains [max(0, a - protection), a + protection].

The choice is by constraint generation (Fischetti and Salazar 2001): a whole-number program over which cells to
suppress, with a cut for each primary cell that an attacker can still bound too well, taken from the dual solution of
her linear program, until none is left. What the program cannot finish in its time is mended by the same linear
programs with a price on each further cell. The relaxed program's value is a lower bound on what any pattern costs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.anonymity.attacker import Attacker, equations, with_totals
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Booleans, Floats, Integers
from tacit.exact.checks import positive, whole

__all__ = ["OBJECTIVES", "Pattern", "suppress_cells"]

OBJECTIVES = ("number", "value")
INTERVALS = ("all", "none", "primary")
FIRST_GAP, LAST_GAP = 0.08, 0.004
MOST_PEOPLE, MOST_PROTECTION = 10**11, 10**6
ENOUGH, EXACT_CELLS = 1.02, 250
"""A table of more cells than this is done when its pattern costs at most 2% more than the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Which cells are suppressed; arrays have the totals as the last place of each axis.

    low, high: the intervals that an attacker can still compute; published cells have their value twice, suppressed
    ones whose interval was not asked for have NaN. cost and bound: of all suppressed cells, by the objective, and what
    no pattern can go below.
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
        """How many cells are suppressed, primary and secondary."""
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
        """The table for publication: floats, NaN where a cell is suppressed."""
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
    far the attacker's interval must reach on both sides, no lower than 0. objective: what is to be small, the number
    of suppressed cells or the sum of their counts. seconds: for the whole-number programs. intervals: of which cells
    what an attacker can still compute is stated, "primary", "all" suppressed ones, or "none"; two programs a cell.
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
            hint="linear programs in floating point are right up to there",
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
    search = _Search(full.ravel(), small.ravel(), equations(full.shape), protection, objective)
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
class _Search:
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
        """Of each cell. A cell of 0 costs a little in value too, so that none is suppressed for nothing."""
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
        """Is the best pattern proved best, or as good as is asked, or is time over?"""
        if self.best is None:
            return time.monotonic() > deadline
        close = self.cost_of(self.best) <= self.bound + 1e-9
        enough = len(self.counts) > EXACT_CELLS and self.cost_of(self.best) <= ENOUGH * self.bound
        return close or enough or time.monotonic() > deadline

    def _line_cuts(self) -> None:
        """Every line with a suppressed cell has a second one: necessary, and cheap to say."""
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
        """The cheapest pattern that satisfies all cuts so far, a lower bound on its cost, and whether it finished."""
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
        """More cells, along the cheapest moves that protect each primary cell that is still open."""
        attacker = Attacker(self.counts, chosen, self.matrix)
        for place, sign, need in attacker.open_ends(np.flatnonzero(self.primary), self.protection):
            moved = attacker.cheapest(place, sign, need, self._steering)
            chosen = chosen | moved
            attacker = Attacker(self.counts, chosen, self.matrix)
        return chosen

    def _thinned(self, chosen: Booleans, deadline: float) -> Booleans:
        """Without secondary cells that are not needed, dearest first, while there is time."""
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
