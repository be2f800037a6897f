"""Strategies for linear queries: blocks of integer queries with noise, and the answers by least squares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, TooManyCells
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import flag, members, set_fields, unmasked, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, up, upper
from tacit.guarantees import Bound, GaussianDP, Neighbours
from tacit.guarantees.running_sum import PURE, currency_of, summed
from tacit.mechanisms.base import L1, L2, Mechanism, epsilon_parameter
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.polytope import PolytopeNorm, RangeNorm

__all__ = ["Workload", "margin_matrices", "prefix_matrix", "range_matrix"]

# A budget shared by blocks of queries: Laplace noise by epsilon, Gaussian noise by mu where a delta is allowed.

# Room for the directed rounding of several parts, so that their sum stays within the budget.
SLACK = 1 - Fraction(1, 1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """epsilon alone (Laplace), or epsilon with a delta, which also allows Gaussian noise with a total mu."""

    epsilon: Fraction
    delta: float | None
    mu: Fraction

    @classmethod
    def of(cls, epsilon: Exact, delta: Exact | None) -> Budget:
        """The largest mu whose curve stays within (epsilon, delta), certified."""
        target = epsilon_parameter(epsilon)
        if delta is None:
            return cls(epsilon=target, delta=None, mu=Fraction(0))
        from tacit.mechanisms.gaussian import delta_parameter, greatest

        limit = delta_parameter(delta)
        goal = -up(-target)
        mu = greatest(lambda m: GaussianDP(mu=up(m)).delta(goal) <= limit, Fraction(1 << 10)) * SLACK
        return cls(epsilon=target, delta=limit, mu=mu)


def block_mechanism(
    size: int, move: int, share: Fraction, budget: Budget, gaussian: bool
) -> Laplace | RoundedGaussian:
    """Noise for one block: its share of epsilon, or of mu^2; `move` is L1, or squared L2."""
    if not gaussian:
        part = budget.epsilon if share == 1 else budget.epsilon * share * SLACK
        return Laplace.for_target(epsilon=part, sensitivity=L1(move))
    # mu_l^2 = share mu^2, so that the squares add up to mu^2.
    target = budget.mu**2 * share
    std = upper(lambda: (ball(move) / ball(target)).sqrt())
    return RoundedGaussian(sensitivity=L2.root(move), noise_std=std, dimension=size)


def composed_bound(mechanisms: Sequence[Mechanism | None]) -> Bound:
    """Pure epsilons add; the squares of mu add (theorems compose-pure, compose-gdp)."""
    bounds = [m.bound for m in mechanisms if m is not None]
    if len(bounds) == 1:
        return bounds[0]
    currency = currency_of(bounds[0])
    assert currency is not None
    return currency.bound(summed(currency, [(currency.of_bound(b), 1) for b in bounds]))


def sum_of_epsilons(*epsilons: float | Fraction) -> float:
    """The epsilon of the steps of one mechanism together, rounded up."""
    total = summed(PURE, [({"epsilon": Fraction(epsilon)}, 1) for epsilon in epsilons])
    return PURE.bound(total).epsilon_at(0.0)


Noise = Laplace | RoundedGaussian | PolytopeNorm | RangeNorm | KNorm

_ROUNDS = 25
_ROWS = 256
_NODES = 48


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strategy:
    """Blocks of integer queries, and the variance of each block's noise (0 if it is exact)."""

    blocks: tuple[Integers, ...]
    variances: tuple[float, ...]

    @property
    def stacked(self) -> Floats:
        """All queries, one after the other."""
        return np.vstack(self.blocks).astype(np.float64)

    def solver(self, matrix: Integers) -> Floats | None:
        """The matrix from strategy answers to least-squares answers; None if they do not determine the queries.

        Exact blocks are constraints: x = E^+ e + N z with N a basis of the null space of E, and z by least squares.
        """
        if len(self.blocks) == 1 and self.blocks[0].shape[0] == self.blocks[0].shape[1]:
            block = self.blocks[0]
            if bool((block == np.eye(len(block))).all()):
                return matrix.astype(np.float64)
        exact = np.repeat([v == 0 for v in self.variances], [len(b) for b in self.blocks])
        each = [1 / v if v > 0 else 0.0 for v in self.variances]
        a, w = self.stacked, np.repeat(each, [len(b) for b in self.blocks])[~exact]
        known, free = _null_space(a[exact])
        noisy, wanted = a[~exact] @ free, matrix @ free
        inner = wanted @ _pseudo_inverse((noisy * w[:, None]).T @ noisy) @ (noisy * w[:, None]).T
        solve = np.zeros((len(matrix), len(a)))
        solve[:, ~exact] = inner
        solve[:, exact] = matrix @ known - inner @ (a[~exact] @ known)
        off = np.abs(solve @ a - matrix).max()
        return solve if off <= 1e-6 * np.abs(matrix).max() else None


def _null_space(exact: Floats) -> tuple[Floats, Floats]:
    """The pseudo-inverse of the exact queries, and a basis of the undetermined directions."""
    cells = exact.shape[1]
    if not len(exact):
        return np.zeros((cells, 0)), np.eye(cells)
    u, sizes, v = np.linalg.svd(exact, full_matrices=True)
    rank = int((sizes > 1e-10 * sizes[0]).sum())
    return (v[:rank].T / sizes[:rank]) @ u[:, :rank].T, v[rank:].T


def _pseudo_inverse(gram: Floats) -> Floats:
    scale = np.sqrt(np.maximum(gram.diagonal(), 1e-300))
    try:
        # Far from singular the plain inverse will do, and is faster.
        if float(np.linalg.cholesky(gram / np.outer(scale, scale)).diagonal().min()) > 1e-4:
            return np.asarray(np.linalg.inv(gram / np.outer(scale, scale)) / np.outer(scale, scale))
    except np.linalg.LinAlgError:
        pass
    eigen, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    inverse = np.where(eigen > 1e-11 * eigen[-1], 1 / np.maximum(eigen, 1e-300), 0.0)
    return np.asarray((vectors * inverse) @ vectors.T / np.outer(scale, scale))


def optimised(
    matrix: Integers, blocks: Sequence[Integers], moved: Floats, shares: Floats, *, gaussian: bool
) -> Floats:
    """Shares of the budget that lower the total squared error: stationary shares of a fixed-point iteration.

    Gaussian noise: the precision of block l is share_l / moved_l (moved = squared L2 sensitivity) and the problem is
    convex. Laplace: share_l^2 / (2 moved_l^2). With g_l = -d error / d precision_l, at the optimum share_l is
    proportional to precision_l * g_l. The best shares found are returned, so that they are never worse than
    equal ones.
    """
    free = moved > 0
    fixed = [b for b, f in zip(blocks, free, strict=True) if not f]
    _, open_ = _null_space(np.vstack(fixed).astype(np.float64) if fixed else np.zeros((0, matrix.shape[1])))
    grams = [(b @ open_).T @ (b @ open_) for b, f in zip(blocks, free, strict=True) if f]
    h = (matrix @ open_).T @ (matrix @ open_)
    move, now = moved[free], shares[free]
    power = 1 if gaussian else 2
    best, least = now, np.inf
    for _ in range(_ROUNDS):
        precision = now / move if gaussian else (now / move) ** 2 / 2
        gram = np.sum([p * g for p, g in zip(precision, grams, strict=True)], axis=0)
        inverse = _pseudo_inverse(gram)
        inner = inverse @ h
        error = float(np.trace(inner))
        if error >= least * (1 - 1e-3):
            break
        best, least = now, error
        slopes = np.array([max(float((g * (inner @ inverse)).sum()), 0.0) for g in grams])
        pull = (precision * slopes * now**power) ** (1 / (1 + power))
        now = pull / pull.sum()
    out = np.zeros(len(blocks))
    out[free] = best
    return out


def covariance_of(mechanism: PolytopeNorm | RangeNorm | KNorm) -> Floats:
    """E X X' of shaped noise, rounding to the grid counted as uniform."""
    return np.asarray(mechanism.covariance + np.eye(mechanism.coordinates) / 12)


def variance_of(mechanism: Laplace | RoundedGaussian | None) -> float:
    """The variance of one coordinate's noise."""
    if mechanism is None:
        return 0.0
    if isinstance(mechanism, RoundedGaussian):
        return float(mechanism.noise_std) ** 2 + 1 / 12
    return mechanism.noise_std**2


def total_error(solve: Floats, strategy: Strategy, mechanisms: Sequence[Noise | None]) -> tuple[float, float]:
    """The expected sums of squared and of absolute errors of all answers."""
    parts = np.split(solve, np.cumsum([len(b) for b in strategy.blocks])[:-1], axis=1)
    for part, shaped in zip(parts, mechanisms, strict=True):
        if isinstance(shaped, PolytopeNorm | RangeNorm | KNorm):
            # Any other block is exact.
            spread = np.einsum("ij,jk,ik->i", part, covariance_of(shaped), part)
            return float(spread.sum()), float(_shaped_sizes(part, spread, shaped).sum())
    spread = np.sum([v * (p**2).sum(axis=1) for v, p in zip(strategy.variances, parts, strict=True)], axis=0)
    if not any(isinstance(m, Laplace) for m in mechanisms):
        return float(spread.sum()), float(np.sqrt(2 / np.pi * spread).sum())
    # Of many queries some, at even distances: this steers a choice and nothing else.
    some = np.linspace(0, len(solve) - 1, min(_ROWS, len(solve))).astype(np.int64)
    loads = np.hstack([np.sqrt(v / 2) * p[some] for v, p in zip(strategy.variances, parts, strict=True)])
    ratio = float(_laplace_sizes(loads).sum() / max(float(np.sqrt(spread[some]).sum()), 1e-300))
    return float(spread.sum()), ratio * float(np.sqrt(spread).sum())


def _laplace_sizes(loads: Floats) -> Floats:
    """E |sum a_k L_k|, L_k standard Laplace: (2/pi) int (1 - prod 1/(1 + a_k^2 t^2)) / t^2 dt."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    u = np.tan((nodes + 1) * np.pi / 4)
    size = np.sqrt(2 * (loads**2).sum(axis=1))
    square = np.divide(loads, size[:, None], out=np.zeros_like(loads), where=size[:, None] > 0) ** 2
    out = np.zeros(len(loads))
    for value, weight in zip(u, weights, strict=True):
        phi = np.exp(-np.log1p(square * value**2).sum(axis=1))
        out += weight * np.pi / 4 * (1 - phi) * (1 + 1 / value**2)
    return np.asarray(2 / np.pi * out * size)


def _shaped_sizes(solve: Floats, spread: Floats, mechanism: PolytopeNorm | RangeNorm | KNorm) -> Floats:
    """E |c X| if it is known, otherwise the standard deviation, which is larger."""
    if isinstance(mechanism, PolytopeNorm):
        return np.minimum(mechanism.mean_sizes(solve), np.sqrt(spread))
    d, scale = mechanism.coordinates, float(mechanism._scale)
    single = (d + 2) / 3 * scale if isinstance(mechanism, RangeNorm) else (d + 1) / 2 * scale
    alone = (np.abs(solve) > 1e-9).sum(axis=1) == 1
    return np.where(alone, np.abs(solve).max(axis=1) * single, np.sqrt(spread))


# Linear queries of a histogram: integer matrices, and how far one unit moves their answers.

MOST_ENTRIES = 1 << 24
MOST_PAIRS = 1500
_LARGEST = 1 << 20
_PRIME = (1 << 61) - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """The queries M theta, theta a histogram of which one unit moves at most `rows` rows.

    add-or-remove: the rows of one unit come or go, and M theta moves by rows times a convex combination of columns of
    M. replace-one: by rows times differences of two columns. `absent`: a row may also lie in no cell (or a
    person have no row). Say False only if every row surely lies in one: then sums over all cells cannot move.
    """

    matrix: npt.NDArray[Any]
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE
    rows: int = 1
    absent: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", integer_matrix(self.matrix))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        set_fields(self, rows=whole("rows", self.rows, least=1))
        set_fields(self, absent=flag("absent", self.absent))

    @property
    def cells(self) -> int:
        """The number of cells of the histogram."""
        return int(self.matrix.shape[1])

    @property
    def queries(self) -> int:
        """The number of answers."""
        return int(self.matrix.shape[0])

    def moves(self, matrix: Integers) -> Integers:
        """The possible moves of these queries by one row of data, up to sign, before the factor `rows`."""
        columns = np.unique(matrix.T, axis=0)
        if self.neighbours is Neighbours.ADD_OR_REMOVE:
            return columns
        if self.absent or self.rows > 1:
            columns = np.unique(np.vstack([columns, np.zeros((1, columns.shape[1]), np.int64)]), axis=0)
        first, second = np.triu_indices(len(columns), 1)
        return np.unique(np.vstack([columns[first] - columns[second], columns[:1] * 0]), axis=0)

    def sensitivities(self, matrix: Integers) -> tuple[int, int]:
        """L1 and squared L2 sensitivity of these queries for one unit; 0 where no unit can move them.

        Exact over all pairs of different columns up to 1500 of them; beyond, a bound by the two largest.
        """
        columns = np.unique(matrix.T, axis=0)
        add = self.neighbours is Neighbours.ADD_OR_REMOVE
        if add or len(columns) <= MOST_PAIRS:
            l1, l2 = _largest(columns, add, self.absent or self.rows > 1)
        else:
            size, square = np.sort(np.abs(columns).sum(axis=1)), np.sort((columns**2).sum(axis=1))
            # |a - b|^2 <= |a|^2 + |b|^2 where no entry is negative, and twice that in general.
            twice = 1 if bool((columns >= 0).all()) else 2
            l1, l2 = int(size[-1] + size[-2]), twice * int(square[-1] + square[-2])
        return l1 * self.rows, l2 * self.rows**2


def _largest(columns: Integers, add: bool, absent: bool) -> tuple[int, int]:
    l1, l2 = np.abs(columns).sum(axis=1), (columns**2).sum(axis=1)
    best = [int(l1.max()), int(l2.max())] if add or absent else [0, 0]
    if not add:
        for column in columns:
            gap = columns - column
            best = [
                max(best[0], int(np.abs(gap).sum(axis=1).max())),
                max(best[1], int((gap**2).sum(axis=1).max())),
            ]
    return best[0], best[1]


def integer_matrix(values: Any) -> Integers:
    """A matrix of small integers with at least one entry that is not 0."""
    array = unmasked(values, name="matrix")
    if array.ndim != 2 or not array.size:
        raise EmptyComposition(what="the matrix of queries", hint="one row a query, one column a cell")
    if array.size > MOST_ENTRIES:
        raise TooManyCells(
            cells=array.size, limit=MOST_ENTRIES, hint="use RangeTree, or margins by their tables"
        )
    if array.dtype.kind == "f" and bool((array == np.rint(array)).all()):
        array = array.astype(np.int64)
    # |min| by Python's integers: the smallest of a narrow type has no absolute value of that type.
    if array.dtype.kind not in "iub" or max(abs(int(array.max())), abs(int(array.min()))) > _LARGEST:
        raise InvalidParameter(
            parameter="matrix", value=f"array of {array.dtype}", must=f"hold integers up to {_LARGEST:,}",
            hint="multiply rational queries by a common denominator",
        )  # fmt: skip
    if not array.any():
        raise EmptyComposition(what="the matrix of queries", hint="every entry is 0")
    return array.astype(np.int64)


def margin_matrices(sizes: Sequence[int], order: int) -> list[Integers]:
    """A matrix for each choice of `order` columns: it turns the full table, in C order, into their table."""
    shape = tuple(whole("sizes", s, least=1) for s in members("sizes", sizes))
    if not 1 <= whole("order", order, least=1) <= len(shape):
        raise InvalidParameter(parameter="order", value=order, must=f"lie between 1 and {len(shape)}")
    cells = math.prod(shape)
    out = []
    if cells * sum(math.prod(c) for c in itertools.combinations(shape, order)) > MOST_ENTRIES:
        raise TooManyCells(
            cells=cells, limit=MOST_ENTRIES, hint="plan by margin_errors, which needs no matrix"
        )
    keys = np.indices(shape).reshape(len(shape), cells)
    for chosen in itertools.combinations(range(len(shape)), order):
        dims = tuple(shape[c] for c in chosen)
        rows = np.ravel_multi_index(tuple(keys[c] for c in chosen), dims)
        block = np.zeros((math.prod(dims), cells), dtype=np.int64)
        block[rows, np.arange(cells)] = 1
        out.append(block)
    return out


def range_matrix(cells: int) -> Integers:
    """All p (p + 1) / 2 ranges of neighbouring cells."""
    p = whole("cells", cells, least=1)
    if p * p * (p + 1) // 2 > MOST_ENTRIES:
        raise TooManyCells(cells=p, limit=round(MOST_ENTRIES ** (1 / 3)), hint="use RangeTree")
    first, last = np.triu_indices(p)
    place = np.arange(p)
    return ((place >= first[:, None]) & (place <= last[:, None])).astype(np.int64)


def prefix_matrix(cells: int) -> Integers:
    """The p cumulative counts."""
    p = whole("cells", cells, least=1)
    if p * p > MOST_ENTRIES:
        raise TooManyCells(cells=p, limit=round(MOST_ENTRIES ** (1 / 2)), hint="use CumulativeTree")
    return np.tril(np.ones((p, p), dtype=np.int64))


def tree_matrices(cells: int, branching: int) -> list[Integers]:
    """The levels of a tree over the cells, root first: each node adds up `branching` nodes below it."""
    p, b = whole("cells", cells, least=1), whole("branching", branching, least=2)
    levels = []
    width = 1
    while True:
        nodes = -(-p // width)
        block = np.zeros((nodes, p), dtype=np.int64)
        block[np.arange(p) // width, np.arange(p)] = 1
        levels.append(block)
        if nodes == 1:
            return levels[::-1]
        width *= b


def disjoint_blocks(matrix: Integers) -> list[Integers]:
    """The rows, in order, grouped so that no group uses a cell twice: tables, levels, partitions."""
    groups: list[tuple[npt.NDArray[np.bool_], list[int]]] = []
    for i, row in enumerate(matrix != 0):
        for used, places in groups:
            if not (used & row).any():
                used |= row
                places.append(i)
                break
        else:
            groups.append((row.copy(), [i]))
    return [matrix[places] for _, places in groups]


def independent_rows(matrix: Integers) -> npt.NDArray[np.int64]:
    """The places of the first rows that span all rows.

    Found modulo a prime, where independent rows are independent over the rationals too.
    """
    from flint import nmod_mat

    queries, cells = matrix.shape
    reduced, rank = nmod_mat(cells, queries, [int(v) for v in matrix.T.ravel()], _PRIME).rref()
    pivots = [next(c for c in range(queries) if reduced[r, c] != 0) for r in range(rank)]
    return np.array(pivots, dtype=np.int64)


def shares_of(values: npt.NDArray[np.float64]) -> list[Fraction]:
    """Positive numbers as exact shares that add up to 1."""
    grain = 1 << 20
    whole = [max(1, round(float(v) / float(values.sum()) * grain)) for v in values]
    return [Fraction(w, sum(whole)) for w in whole]
