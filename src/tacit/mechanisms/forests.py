"""Log-linear models of binary columns whose graph is a forest: chosen from noisy tables, or by a private score.

Among forests, AIC, BIC and the likelihood-ratio test choose the heaviest one, with the weight G_ij - penalty for each
pair: G_ij is the likelihood ratio statistic of independence in the pair's table, and the penalty is 2, ln n or the 95%
quantile of chi-squared (Chow, Liu 1968; Lauritzen 1996, section 4.4). Noise on a table inflates every G_ij. So
a model chosen as if the noisy counts were exact has edges caused by the noise. Two ways account for the noise:

- `inflation` is the increase of a pair's statistic by noise alone; the penalty rises by the same amount; -
`ForestSelection` never publishes a table: it chooses edge by edge, by a score that one row moves by at most 1 (theorem
`pair-dependence`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, up
from tacit.guarantees import Pure
from tacit.mechanisms.base import Score, epsilon_parameter, shown
from tacit.mechanisms.selection import PermuteAndFlip
from tacit.noise.source import Source, default_source

Pair = tuple[int, int]
CHI_95 = 3.841458820694124
CRITERIA = ("aic", "bic", "likelihood-ratio")


def penalty(criterion: str, rows: float) -> float:
    """The least gain of one more edge: 2, ln n, or the 95% quantile of chi-squared with one degree of freedom."""
    match criterion:
        case "aic":
            return 2.0
        case "bic":
            return math.log(max(rows, 1.0))
        case "likelihood-ratio":
            return CHI_95
    raise UnknownName(what="criterion", name=str(criterion), known=CRITERIA)


def heaviest_forest(
    weights: Mapping[Pair, float], columns: int, *, most: int | None = None
) -> frozenset[Pair]:
    """The forest of positive weights with the largest sum (Kruskal); of equals the first pair."""
    root = list(range(columns))

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    found: list[Pair] = []
    for pair in sorted(weights, key=lambda p: (-weights[p], p)):
        if weights[pair] <= 0 or (most is not None and len(found) == most):
            break
        a, b = find(pair[0]), find(pair[1])
        if a != b:
            root[a] = b
            found.append(pair)
    return frozenset(found)


def likelihood_ratio(table: npt.ArrayLike) -> float:
    """2 sum o ln(o / e) of independence in a 2 x 2 table; negative counts of a noisy one are read as 0."""
    held = np.maximum(np.asarray(table, dtype=np.float64).reshape(2, 2), 0.0)
    total = held.sum()
    if total <= 0:
        return 0.0
    expected = np.outer(held.sum(axis=1), held.sum(axis=0)) / total
    there = held > 0
    return max(0.0, float(2 * (held[there] * np.log(held[there] / expected[there])).sum()))


def inflation(table: npt.ArrayLike, noise_variance: float) -> float:
    """1 + (variance of the noise) / (variance of sampling) of a pair's dependence.

    With d = (o11 o22 - o12 o21) / n, sampling alone gives d the variance V = 1 / sum(1 / e) under independence, and
    independent noise of variance v on every count adds v sum(o^2) / n^2. The statistic is about d^2 / V, so that under
    independence it is about chi-squared times this number. Infinite if a row or a column is empty.
    """
    held = np.maximum(np.asarray(table, dtype=np.float64).reshape(2, 2), 0.0)
    total = held.sum()
    if total <= 0:
        return math.inf
    expected = np.outer(held.sum(axis=1), held.sum(axis=0)) / total
    if bool((expected <= 0).any()):
        return math.inf
    return 1 + noise_variance * float((held**2).sum()) / float(total) ** 2 * float((1 / expected).sum())


def pair_tables(data: npt.ArrayLike) -> dict[Pair, npt.NDArray[np.int64]]:
    """The 2 x 2 table of every pair of binary columns."""
    rows = np.asarray(data, dtype=np.int64)
    return {
        (i, j): np.bincount(rows[:, i] * 2 + rows[:, j], minlength=4).reshape(2, 2)
        for i, j in combinations(range(rows.shape[1]), 2)
    }


def chosen_forest(
    tables: Mapping[Pair, Any], columns: int, criterion: str, *, noise_variance: float | None = None
) -> frozenset[Pair]:
    """The forest chosen by a criterion, as if the counts were exact or with the noise accounted for."""
    rows = float(np.mean([np.maximum(np.asarray(t, dtype=np.float64), 0).sum() for t in tables.values()]))
    cost = penalty(criterion, rows)
    if noise_variance is None:
        weights = {p: likelihood_ratio(t) - cost for p, t in tables.items()}
    else:
        weights = {p: likelihood_ratio(t) - cost * inflation(t, noise_variance) for p, t in tables.items()}
    return heaviest_forest(weights, columns)


def pair_score(table: npt.ArrayLike) -> int:
    """floor(|n n11 - n1. n.1| / n): rows away from independence; a replaced row moves it by at most 1."""
    held = [[int(v) for v in row] for row in np.asarray(table).reshape(2, 2)]
    total = sum(map(sum, held))
    if total == 0:
        return 0
    return abs(held[1][1] * total - (held[1][0] + held[1][1]) * (held[0][1] + held[1][1])) // total


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestSelection:
    """`edges` edges of a forest over binary columns, one after the other by permute-and-flip on `pair_score`.

    Guarantee: Pure(epsilon), replace-one neighbours, n public: epsilon / edges for each edge. A pair that would
    close a circle is no candidate, which is public given the edges before. Theorems `pair-dependence`,
    `permute-and-flip`. Source: the greedy step of Chow, Liu 1968; private scores as in McSherry, Talwar 2007.
    """

    epsilon: Exact
    columns: int
    edges: int

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        columns = whole("columns", self.columns, least=2)
        edges = whole("edges", self.edges, least=1)
        if edges >= columns:
            raise InvalidParameter(
                parameter="edges", value=edges, must=f"be at most {columns - 1}: a forest has no circle"
            )
        set_fields(self, epsilon=self.epsilon, columns=columns, edges=edges)

    @property
    def choice(self) -> PermuteAndFlip:
        """The choice of one edge."""
        return PermuteAndFlip(epsilon=epsilon_parameter(self.epsilon) / self.edges, sensitivity=Score(1))

    @property
    def bound(self) -> Pure:
        """The whole forest."""
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def events(self) -> tuple[Event, ...]:
        """One choice for each edge."""
        return (self.choice.event,) * self.edges

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the bound rests on."""
        return ("pair-dependence", "permute-and-flip", "compose-pure")

    @property
    def noise_distribution(self) -> dict[str, Any]:
        """The distribution of one choice, for a certificate."""
        return {
            "distribution": "permute-and-flip", "edges": self.edges, "rate": shown(self.choice.rate), "exact": True,
        }  # fmt: skip

    def release(self, tables: Mapping[Pair, Any], *, source: Source | None = None) -> list[Pair]:
        """The chosen edges, in the order of choice; `tables` are the exact 2 x 2 tables of all pairs."""
        source = source if source is not None else default_source()
        scores = {p: pair_score(t) for p, t in tables.items()}
        found: list[Pair] = []
        while len(found) < self.edges:
            open_ = [p for p in sorted(scores) if _fits(found, p)]
            found.append(open_[self.choice.choose([scores[p] for p in open_], source=source).index])
        return found


def _fits(edges: Sequence[Pair], pair: Pair) -> bool:
    """Would this pair close no circle?"""
    reached, grown = {pair[0]}, True
    while grown:
        more = {b for e in edges for a, b in (e, e[::-1]) if a in reached} - reached
        reached |= more
        grown = bool(more)
    return pair[1] not in reached
