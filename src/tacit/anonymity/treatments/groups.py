"""Treatments of several numeric columns together: microaggregation (MDAV) and matrix masking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.anonymity.treatments.base import Treatment
from tacit.anonymity.treatments.columns import matrix, replaced
from tacit.anonymity.treatments.draws import Draws
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats, Integers
from tacit.exact.checks import whole

__all__ = ["MatrixMask", "Microaggregate", "masked", "mdav"]


def mdav(points: Floats, k: int) -> Integers:
    """Groups of k to 2k - 1 points that lie close together: maximum distance to average vector.

    Domingo-Ferrer and Mateo-Sanz 2002; as in Domingo-Ferrer and Torra 2005, algorithm 5.1: take r, the point furthest
    from the mean of those left, and s, the one furthest from r; r and s each form a group with their k - 1 nearest;
    until fewer than 3k are left. Takes rows^2 / k steps of arithmetic, in whole arrays.
    """
    rows = len(points)
    group = np.full(rows, -1, dtype=np.int64)
    left = np.arange(rows)
    x = np.array(points, dtype=np.float64, order="C")
    total = x.sum(axis=0)
    many = 0

    def closest(centre: Floats, count: int) -> Integers:
        away = np.einsum("ij,ij->i", x - centre, x - centre)
        return np.argpartition(away, count - 1)[:count] if count < len(away) else np.arange(len(away))

    def furthest(centre: Floats) -> int:
        return int(np.argmax(np.einsum("ij,ij->i", x - centre, x - centre)))

    def close(at: Integers) -> None:
        nonlocal left, x, total, many
        group[left[at]] = many
        many += 1
        total = total - x[at].sum(axis=0)
        # The last rows take the places of those that leave: no copy of all.
        stay = len(left) - len(at)
        gone = np.zeros(len(left), dtype=bool)
        gone[at] = True
        holes = at[at < stay]
        movers = np.flatnonzero(~gone[stay:]) + stay
        left[holes], x[holes] = left[movers], x[movers]
        left, x = left[:stay], x[:stay]

    while len(left) >= 3 * k:
        r = x[furthest(total / len(left))].copy()
        s = x[furthest(r)].copy()
        close(closest(r, k))
        close(closest(s, k))
    if len(left) >= 2 * k:
        r = x[furthest(total / len(left))].copy()
        close(closest(r, k))
    if len(left):
        close(np.arange(len(left)))
    return group


@dataclass(frozen=True, slots=True, kw_only=True)
class Microaggregate(Treatment):
    """Numbers become means of groups of at least k rows that are close in all of these columns, each standardised."""

    columns: tuple[str, ...]
    k: int

    def __post_init__(self) -> None:
        whole("k", self.k)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to aggregate")

    def apply(self, table: Any, draws: Draws) -> Any:
        values = matrix(table, self.columns)
        if self.k > len(values):
            raise InvalidParameter(
                parameter="k", value=self.k, must=f"be at most the {len(values):,} rows of the table"
            )
        spread = values.std(axis=0)
        group = mdav((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0), self.k)
        sizes = np.bincount(group)
        made = {
            name: (np.bincount(group, weights=values[:, i]) / sizes)[group]
            for i, name in enumerate(self.columns)
        }
        return replaced(table, made)

    def describe(self) -> str:
        return f"{', '.join(self.columns)} replaced by means of groups of at least {self.k} (MDAV)"


def masked(
    x: Floats, *, left: Floats | None = None, right: Floats | None = None, add: Floats | None = None
) -> Floats:
    """A X B + C: matrix masking in general (Duncan and Pearson 1991); what is left out is an identity, or zero."""
    made = np.asarray(x, dtype=np.float64)
    if left is not None:
        made = left @ made
    if right is not None:
        made = made @ right
    return made if add is None else made + add


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixMask(Treatment):
    """Rows are mixed by a random orthogonal matrix that keeps the vector of ones (Ting, Fienberg, Trottini 2008).

    X becomes A X with A' A = I and A 1 = 1, so that means, variances and covariances, the sufficient statistics of a
    normal model, stay exactly what they were. A is made of blocks of random rows, each Haar among such matrices.
    """

    columns: tuple[str, ...]
    block: int = 50

    def __post_init__(self) -> None:
        whole("block", self.block, least=2)
        if not self.columns:
            raise EmptyComposition(what="the list of columns to mask")

    def apply(self, table: Any, draws: Draws) -> Any:
        values = matrix(table, self.columns)
        rows = len(values)
        order = draws.permutation(rows)
        made = values.copy()
        edges = list(range(0, rows, self.block))
        if len(edges) > 1 and rows - edges[-1] < 2:
            edges.pop()
        for start, stop in zip(edges, [*edges[1:], rows], strict=True):
            here = order[start:stop]
            made[here] = _orthogonal(stop - start, draws) @ values[here]
        return replaced(table, {name: made[:, i] for i, name in enumerate(self.columns)})

    def describe(self) -> str:
        return (
            f"{', '.join(self.columns)} masked by a random orthogonal matrix that keeps means and covariances"
        )


def _orthogonal(size: int, draws: Draws) -> Floats:
    """A random orthogonal matrix with A 1 = 1: Haar on the complement of the vector of ones."""
    if size < 2:
        return np.eye(size)
    # A reflection that maps the first unit vector to 1/sqrt(size).
    ones = np.full(size, 1.0 / np.sqrt(size))
    v = ones.copy()
    v[0] -= 1.0
    reflect = np.eye(size) - 2.0 * np.outer(v, v) / float(v @ v)
    q, r = np.linalg.qr(draws.normal((size - 1) ** 2).reshape(size - 1, size - 1))
    inner = np.eye(size)
    inner[1:, 1:] = q * np.sign(np.diag(r))
    return np.asarray(reflect @ inner @ reflect, dtype=np.float64)
