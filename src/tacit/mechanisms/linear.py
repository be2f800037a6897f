"""The best noise for linear queries of a histogram: on the answers, on the cells, on a tree, or shaped.

`choose` makes every candidate that fits, with its expected total error, and puts the best first. A candidate adds
exact integer noise to integer queries (its strategy) by mechanisms of this room, and answers by least squares,
which is post-processing. See docs/theory/linear-strategies.md.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NotCertified, UnknownName
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import flag, integer_array, members, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, bisected
from tacit.guarantees import Bound, Neighbours
from tacit.mechanisms.base import L1, Released
from tacit.mechanisms.bodies import Gauge
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm
from tacit.mechanisms.strategies import (
    Budget,
    Noise,
    Strategy,
    Workload,
    block_mechanism,
    composed_bound,
    disjoint_blocks,
    independent_rows,
    optimised,
    shares_of,
    total_error,
    tree_matrices,
    variance_of,
)
from tacit.noise import LinfBall
from tacit.noise.source import Source, default_source

__all__ = [
    "Answers",
    "Candidate",
    "MarginPlan",
    "choose",
    "gaussian_wins_from",
    "margin_errors",
    "one_way_margins",
]

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
        """The events, for the accountants and the ledger: one for each noisy block."""
        return tuple(m.event for m in self.mechanisms if m is not None)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        """The distributions of the noise, block by block, for a certificate."""
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
            noise = PolytopeNorm.for_target(epsilon=budget.epsilon, points=points, times=workload.rows)
            made.append(("K-norm noise on the image of the L1 ball", noise))
    if int(np.abs(moves).max()) == 1 and d <= MOST_SHAPED:
        if workload.neighbours is Neighbours.ADD_OR_REMOVE and bool((moves >= 0).all()):
            ranged = RangeNorm.for_target(epsilon=budget.epsilon, dimension=d, times=workload.rows)
            made.append((f"range-norm noise on {on}", ranged))
        else:
            gauge = Gauge(workload.rows, LinfBall(coordinates=d))
            made.append((f"cube noise on {on}", KNorm.for_target(epsilon=budget.epsilon, sensitivity=gauge)))
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


# Margins of a contingency table: which noise is best, in closed form and without a matrix.
#
# The k one-way counts of a table of k yes-or-no columns can be released at the minimax rate k^2 / epsilon (Hall 2012,
# Prop. 2.4.5); which constant, and from which k on Gaussian noise with its sqrt(k) wins, is what this says.

MOST_COLUMNS = 1 << 16
_ALL = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginPlan:
    """One way to release margins: its mechanism, for which vector, and the expected errors of all counts together."""

    name: str
    mechanism: Laplace | RoundedGaussian | KNorm | RangeNorm
    on: str
    squared: float
    absolute: float

    def __str__(self) -> str:
        return f"{self.name} on {self.on}: expected absolute error {self.absolute:.4g} in all"


def one_way_margins(
    *,
    columns: int,
    epsilon: Exact,
    delta: Exact | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE,
    rows: int = 1,
) -> list[MarginPlan]:
    """The ways to release the numbers of "yes" for each of k questions, by expected L1 error, best first.

    With b = rows / epsilon: Laplace noise k b a count (k^2 b in all); range-norm noise (k+2)/3 b (add-or-remove) or
    cube noise (k+1)/2 b (replace-one), shaped by the possible moves of one row; with a delta Gaussian noise, sqrt(2 k /
    pi) rows / mu. All have pure rate k^2 / epsilon, which is minimax, or sqrt(k) k with a delta.
    """
    k, m = whole("columns", columns, least=1), whole("rows", rows, least=1)
    if k > MOST_COLUMNS:
        raise InvalidParameter(parameter="columns", value=k, must=f"be at most {MOST_COLUMNS:,}")
    budget = Budget.of(epsilon, delta)
    laplace = Laplace.for_target(epsilon=budget.epsilon, sensitivity=L1(k * m))
    on = f"{k} counts"
    found = [
        MarginPlan(
            name="Laplace noise", mechanism=laplace, on=on, squared=k * laplace.noise_std**2,
            absolute=k * laplace.expected_error(),
        ),
        _shaped_margins(k, m, budget, replaced=Neighbours.parse(neighbours) is Neighbours.REPLACE_ONE, on=on),
    ]  # fmt: skip
    if budget.delta is not None:
        found.append(_gaussian(k, k * m * m, budget, on))
    return sorted(found, key=lambda plan: plan.absolute)


def gaussian_wins_from(
    *,
    epsilon: Exact,
    delta: Exact,
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE,
    against: str = "best",
) -> int:
    """The least number of yes-or-no columns from which Gaussian noise has the smaller expected L1 error.

    against="best": the best pure noise; against="laplace": Laplace noise. Gaussian errors grow like k^1.5,
    pure ones like k^2, so that there is one such number.
    """
    if not isinstance(against, str) or against not in ("best", "laplace"):
        raise InvalidParameter(parameter="against", value=against, must='be "best" or "laplace"')
    if delta is None:
        raise InvalidParameter(
            parameter="delta", value=None, must="be given", hint="Gaussian noise needs one"
        )
    budget = Budget.of(epsilon, delta)
    e, mu = float(budget.epsilon), float(budget.mu)

    def wins(k: int) -> bool:
        gaussian = math.sqrt(2 / math.pi * (k / mu**2 + 1 / 12))
        if against == "laplace":
            return gaussian < 1 / math.sinh(e / k)
        replaced = Neighbours.parse(neighbours) is Neighbours.REPLACE_ONE
        return gaussian < min(((k + 1) / 2 if replaced else (k + 2) / 3) / e, 1 / math.sinh(e / k))

    high = 1
    while not wins(high):
        high *= 2
    return bisected(wins, high // 2, high)[1]


def margin_errors(
    *,
    sizes: Sequence[int],
    order: int,
    epsilon: Exact,
    delta: Exact | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE,
    rows: int = 1,
    complete: bool = False,
) -> list[MarginPlan]:
    """The ways to release all tables of `order` of the columns: noise on the tables, or on the full table, best first.

    A row is counted once in each of K tables: K (twice that under replace-one) in L1, K or 2 K in squared L2. The
    full table has sensitivity 1 (2), but a count of a margin adds up many of its cells: K p variances in all.
    `complete` says that every row has a key in every column: then one-way tables need the noise of fewer counts, the
    last key of a column being the number of rows less the others.
    """
    shape = [whole("sizes", s, least=2) for s in members("sizes", sizes)]
    if not 1 <= whole("order", order, least=1) <= len(shape):
        raise InvalidParameter(parameter="order", value=order, must=f"lie between 1 and {len(shape)}")
    m, complete = whole("rows", rows, least=1), flag("complete", complete)
    twice = 2 if Neighbours.parse(neighbours) is Neighbours.REPLACE_ONE else 1
    tables = [math.prod(c) for c in itertools.combinations(shape, order)]
    counts, full = sum(tables), math.prod(shape)
    budget = Budget.of(epsilon, delta)
    found = []
    for gaussian in (False, True) if budget.delta is not None else (False,):
        name = "Gaussian noise" if gaussian else "Laplace noise"
        one = twice * (m * m if gaussian else m)
        on_tables = block_mechanism(counts, len(tables) * one, _ALL, budget, gaussian)
        v = variance_of(on_tables)
        shrink = math.sqrt(2 / math.pi) if gaussian else math.sqrt(0.5)
        found.append(
            MarginPlan(
                name=name, mechanism=on_tables, on=f"{len(tables)} tables", squared=counts * v,
                absolute=counts * math.sqrt(v) * shrink,
            )
        )  # fmt: skip
        on_cells = block_mechanism(min(full, 1 << 62), one, _ALL, budget, gaussian)
        v = variance_of(on_cells)
        # Sums of many cells are nearly normal.
        sizes_of = [c * math.sqrt(full / c * v) * math.sqrt(2 / math.pi) for c in tables]
        found.append(
            MarginPlan(
                name=name, mechanism=on_cells, on=f"the full table of {full:,} cells",
                squared=len(tables) * full * v, absolute=sum(sizes_of),
            )
        )  # fmt: skip
    if counts <= MOST_COLUMNS:
        found.append(_shaped_margins(counts, m, budget, replaced=twice == 2, on=f"{len(tables)} tables"))
    if complete and order == 1 and twice == 1 and counts <= MOST_COLUMNS:
        found.append(_all_but_one(shape, m, budget))
    return sorted(found, key=lambda plan: plan.absolute)


def _shaped_margins(counts: int, m: int, budget: Budget, *, replaced: bool, on: str) -> MarginPlan:
    """Noise for counts that one row moves by 0 or 1 each: all one way when it comes or goes, either way if replaced."""
    d, b = counts, float(m / budget.epsilon)
    mechanism: RangeNorm | KNorm
    if replaced:
        gauge = Gauge(m, LinfBall(coordinates=d))
        mechanism, name = KNorm.for_target(epsilon=budget.epsilon, sensitivity=gauge), "cube noise"
        mean, square = (d + 1) / 2 * b, (d + 1) * (d + 2) / 3 * b * b
    else:
        mechanism = RangeNorm.for_target(epsilon=budget.epsilon, dimension=d, times=m)
        mean, square, name = (d + 2) / 3 * b, (d + 2) * (d + 3) / 6 * b * b, "range-norm noise"
    return MarginPlan(name=name, mechanism=mechanism, on=on, squared=d * (square + 1 / 12), absolute=d * mean)


def _all_but_one(shape: Sequence[int], m: int, budget: Budget) -> MarginPlan:
    """Range-norm noise on the number of rows and all keys but one of each column; the last key by subtraction.

    n - sum of the s - 1 others is T (U_n - sum U_j + (s - 2) U_0): variance (s + (s-2)^2) / 12 times E T^2.
    """
    d, b = 1 + sum(s - 1 for s in shape), float(m / budget.epsilon)
    mechanism = RangeNorm.for_target(epsilon=budget.epsilon, dimension=d, times=m)
    second, mean = (d + 2) * (d + 3) * b * b, (d + 2) / 3 * b
    last = [(s + (s - 2) ** 2) / 12 * second for s in shape]
    squared = sum((s - 1) * (second / 6 + 1 / 12) + v + s / 12 for s, v in zip(shape, last, strict=True))
    # The distribution of the last key is known for two keys; otherwise its standard deviation is above its mean size.
    sizes = [mean if s == 2 else math.sqrt(v) for s, v in zip(shape, last, strict=True)]
    absolute = sum((s - 1) * mean + v for s, v in zip(shape, sizes, strict=True))
    return MarginPlan(
        name="range-norm noise", mechanism=mechanism, on=f"the number of rows and {d - 1} counts",
        squared=squared, absolute=absolute,
    )  # fmt: skip


def _gaussian(counts: int, move: int, budget: Budget, on: str) -> MarginPlan:
    mechanism = block_mechanism(counts, move, _ALL, budget, gaussian=True)
    v = variance_of(mechanism)
    return MarginPlan(
        name="Gaussian noise", mechanism=mechanism, on=on, squared=counts * v,
        absolute=counts * math.sqrt(2 / math.pi * v),
    )  # fmt: skip
