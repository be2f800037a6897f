"""What an attacker computes from a table with suppressed cells: intervals, by linear programs (HiGHS).

She knows every published cell, all equations between cells and totals, and that no count is negative.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import NotCertified
from tacit.exact.arrays import Booleans, Floats, Integers

__all__ = ["Attacker", "equations", "with_totals"]

TINY = 1e-7
FAR = 1e7
"""A move that no interval of interest needs."""
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
    """Linear programs over how far suppressed cells can lie from their counts: M d = 0, d >= -count."""

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
        """Maximises the objective; cap: bounds on moves up; far: the bound on all others."""
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
        """(cell, direction, how far) for each primary cell that cannot move as far as it must."""
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
        """For each end that is not reached an inequality that this pattern violates and every protecting one satisfies.

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
        """Cells of the cheapest move of one cell by `need`, others being free to move at a price."""
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
