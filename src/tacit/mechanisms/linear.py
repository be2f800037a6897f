"""The best noise for linear queries of a histogram: on the answers, on the cells, on a tree, or shaped.

`choose` makes every candidate that fits, with its expected total error, and puts the best first. A candidate adds
exact integer noise to integer queries (its strategy) by mechanisms of this room, and answers by least squares,
which is post-processing. See docs/theory/linear-strategies.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NotCertified, UnknownName
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import flag
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact
from tacit.guarantees import Bound, Neighbours
from tacit.mechanisms.budgets import Budget, block_mechanism, composed_bound
from tacit.mechanisms.grid import Released
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.shapes import Gauge
from tacit.mechanisms.strategies import Noise, Strategy, optimised, total_error, variance_of
from tacit.mechanisms.workloads import Workload, disjoint_blocks, independent_rows, shares_of, tree_matrices
from tacit.noise import LinfBall
from tacit.noise.source import Source, default_source

__all__ = ["Answers", "Candidate", "choose"]

Error = Literal["squared", "absolute"]

BRANCHINGS = (2, 4, 8, 16)
MOST_CELLS = 512
MOST_SHAPED = 1024
MOST_REPLACED = 100
# Moves whose hull is found in about a second, by dimension.
HULL_POINTS = {1: 4000, 2: 400, 3: 120, 4: 40, 5: 12, 6: 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The estimated answers (real numbers, unbiased), and the noisy integers that they were made of."""

    values: Floats
    released: tuple[Released | None, ...]
    publishable: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """One way to answer: blocks of integer queries, a mechanism for each (None: no unit can move it), and errors.

    `squared` is the expected sum of squared errors of all answers, `absolute` that of absolute errors. They are
    computed in floats and steer the choice; the privacy bound does not rest on them.
    """

    name: str
    workload: Workload
    strategy: Strategy
    mechanisms: tuple[Noise | None, ...]
    bound: Bound
    squared: float
    absolute: float
    _solve: Floats = field(repr=False, default_factory=lambda: np.zeros((0, 0)))

    @property
    def events(self) -> tuple[Event, ...]:
        """What is run, for the accountants and the ledger: one event for each noisy block."""
        return tuple(m.event for m in self.mechanisms if m is not None)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        """The laws of the noise, block by block, for a certificate."""
        laws = [{"queries": len(a), "noise": None if m is None else m.noise_distribution}
                for a, m in zip(self.strategy.blocks, self.mechanisms, strict=True)]  # fmt: skip
        return {"distribution": "least squares of noisy blocks", "strategy": self.name, "blocks": laws}

    def release(self, histogram: npt.ArrayLike, *, source: Source | None = None) -> Answers:
        """M theta with noise: exact integer noise on the strategy's answers, then least squares."""
        source = source if source is not None else default_source()
        theta = integer_array(histogram).ravel()
        if theta.size != self.workload.cells:
            raise InvalidParameter(
                parameter="histogram", value=f"{theta.size} numbers", must=f"have {self.workload.cells} cells"
            )
        released: list[Released | None] = []
        noisy: list[Floats] = []
        for block, mechanism in zip(self.strategy.blocks, self.mechanisms, strict=True):
            exact = block.astype(object) @ theta.astype(object)
            out = None if mechanism is None else mechanism.release(exact, source=source)
            released.append(out)
            noisy.append(np.asarray(exact, np.float64) if out is None else out.to_floats())
        values = self._solve @ np.concatenate(noisy)
        return Answers(values=values, released=tuple(released), publishable=source.publishable)

    def __str__(self) -> str:
        return f"{self.name}: expected squared error {self.squared:.3g}, absolute {self.absolute:.3g} in all"


def choose(
    workload: Workload,
    *,
    epsilon: Exact,
    delta: Exact | None = None,
    error: Error = "squared",
    ordered: bool = False,
) -> list[Candidate]:
    """Every way to answer the queries within epsilon (or epsilon and delta), by expected total error, best first.

    Candidates: noise on the answers (Laplace by the largest column L1 norm, Gaussian by the largest L2 norm where a
    delta is given), on the answers with unequal shares for disjoint groups, on the cells, K-norm noise on the image
    of the L1 ball (up to six independent queries), and with `ordered` cells trees of several widths, plain and with
    optimised shares. Nothing is read from data. Source: Hall 2012, 2.4.2; Li et al. 2015; Hardt, Talwar 2010.
    """
    if not isinstance(error, str) or error not in ("squared", "absolute"):
        raise UnknownName(what="error", name=str(error), known=("squared", "absolute"))
    if not isinstance(workload, Workload):
        raise InvalidParameter(parameter="workload", value=type(workload).__name__, must="be a Workload")
    ordered = flag("ordered", ordered)
    if workload.cells > MOST_CELLS:
        raise NotCertified(
            what="the choice of a strategy", reason=f"{workload.cells:,} cells are too many for dense matrices",
            hint="use RangeTree for ranges, margin_errors for margins, or add up adjacent cells",
        )  # fmt: skip
    budget = Budget.of(epsilon, delta)
    found = list(_candidates(workload, budget, ordered))
    found += _shaped(workload, budget)
    found.sort(key=lambda c: c.squared if error == "squared" else c.absolute)
    return found


def _candidates(workload: Workload, budget: Budget, ordered: bool) -> Iterator[Candidate]:
    cells = np.eye(workload.cells, dtype=np.int64)
    groups = disjoint_blocks(workload.matrix)
    plans: list[tuple[str, list[Integers], bool]] = [
        ("noise on the answers", [workload.matrix], False),
        ("noise on the cells", [cells], False),
    ]
    if 1 < len(groups) <= 64 and len(groups) < workload.queries:
        plans.append(("noise on the answers, weighted by group", groups, True))
        plans.append(("noise on the answers and the cells, weighted", [*groups, cells], True))
    if ordered and workload.cells > 2:
        for b in (b for b in BRANCHINGS if b < workload.cells):
            levels = tree_matrices(workload.cells, b)
            plans.append((f"a tree of branching {b}", levels, False))
            plans.append((f"a tree of branching {b}, weighted levels", levels, True))
    for name, blocks, weighted in plans:
        for gaussian in (False, True) if budget.delta is not None else (False,):
            made = _noisy(name, workload, blocks, budget, weighted, gaussian)
            if made is not None:
                yield made


def _noisy(
    name: str, workload: Workload, blocks: list[Integers], budget: Budget, weighted: bool, gaussian: bool
) -> Candidate | None:
    moved = [workload.sensitivities(b)[1 if gaussian else 0] for b in blocks]
    free = np.array([m > 0 for m in moved])
    if not free.any():
        return None
    shares = np.where(free, 1.0 / free.sum(), 0.0)
    if weighted and free.sum() > 1:
        shares = optimised(workload.matrix, blocks, np.array(moved, float), shares, gaussian=gaussian)
        keep = (shares > 1e-4) | ~free
        blocks = [b for b, k in zip(blocks, keep, strict=True) if k]
        moved = [m for m, k in zip(moved, keep, strict=True) if k]
        free, shares = free[keep], shares[keep]
    exact = iter(shares_of(shares[free]))
    mechanisms: list[Laplace | RoundedGaussian | None] = []
    for block, move in zip(blocks, moved, strict=True):
        mechanisms.append(block_mechanism(len(block), move, next(exact), budget, gaussian) if move else None)
    law = "Gaussian" if gaussian else "Laplace"
    return _finish(f"{law} {name}", workload, blocks, mechanisms)


def _finish(
    name: str,
    workload: Workload,
    blocks: Sequence[Integers],
    mechanisms: Sequence[Laplace | RoundedGaussian | None],
) -> Candidate | None:
    strategy = Strategy(blocks=tuple(blocks), variances=tuple(variance_of(m) for m in mechanisms))
    solve = strategy.solver(workload.matrix)
    if solve is None:
        return None
    squared, absolute = total_error(solve, strategy, mechanisms)
    return Candidate(
        name=name, workload=workload, strategy=strategy, mechanisms=tuple(mechanisms),
        bound=composed_bound(mechanisms), squared=squared, absolute=absolute, _solve=solve,
    )  # fmt: skip


def _shaped(workload: Workload, budget: Budget) -> Iterator[Candidate]:
    """K-norm noise on independent queries that determine the others; with the total among them, if it is one."""
    if workload.queries * workload.cells > 1 << 20:
        return
    matrix = workload.matrix
    rows = independent_rows(matrix)
    yield from _on_base(workload, budget, matrix[rows], "the answers", hull=True)
    stacked = np.vstack([np.ones((1, workload.cells), dtype=np.int64), matrix])
    with_total = independent_rows(stacked)
    if len(with_total) == len(rows) > 1:
        yield from _on_base(workload, budget, stacked[with_total], "the total and some answers", hull=False)


def _on_base(
    workload: Workload, budget: Budget, base: Integers, on: str, *, hull: bool
) -> Iterator[Candidate]:
    if workload.neighbours is Neighbours.REPLACE_ONE and len(np.unique(base.T, axis=0)) > MOST_REPLACED:
        return
    still = np.array([workload.sensitivities(row[None])[0] == 0 for row in base])
    moving = base[~still]
    moves = workload.moves(moving)
    moves = moves[moves.any(axis=1)]
    d = len(moving)
    if not d or np.linalg.matrix_rank(moves.astype(np.float64)) < d:
        return
    made: list[tuple[str, PolytopeNorm | RangeNorm | KNorm]] = []
    if hull and len(moves) <= HULL_POINTS.get(d, 0):
        points = [tuple(int(x) for x in m) for m in moves]
        with contextlib.suppress(NotCertified):
            noise = PolytopeNorm.for_epsilon(epsilon=budget.epsilon, points=points, times=workload.rows)
            made.append(("K-norm noise on the image of the L1 ball", noise))
    if int(np.abs(moves).max()) == 1 and d <= MOST_SHAPED:
        if workload.neighbours is Neighbours.ADD_OR_REMOVE and bool((moves >= 0).all()):
            ranged = RangeNorm.for_epsilon(epsilon=budget.epsilon, dimension=d, times=workload.rows)
            made.append((f"range-norm noise on {on}", ranged))
        else:
            gauge = Gauge(workload.rows, LinfBall(coordinates=d))
            made.append((f"cube noise on {on}", KNorm.for_epsilon(epsilon=budget.epsilon, sensitivity=gauge)))
    ordered = np.vstack([base[still], moving])
    lift = workload.matrix @ np.linalg.pinv(ordered.astype(np.float64))
    lift = np.where(np.abs(lift - np.rint(lift)) < 1e-9, np.rint(lift), lift)
    if float(np.abs(lift @ ordered - workload.matrix).max()) > 1e-6:
        return
    for name, mechanism in made:
        blocks, mechanisms, spreads = [moving], [mechanism], [mechanism.noise_std**2]
        if still.any():
            blocks, spreads = [base[still], *blocks], [0.0, *spreads]
        noises: tuple[Noise | None, ...] = (None, mechanism) if still.any() else tuple(mechanisms)
        strategy = Strategy(blocks=tuple(blocks), variances=tuple(spreads))
        squared, absolute = total_error(lift, strategy, noises)
        yield Candidate(
            name=name, workload=workload, strategy=strategy, mechanisms=noises, bound=mechanism.bound,
            squared=squared, absolute=absolute, _solve=lift,
        )  # fmt: skip
