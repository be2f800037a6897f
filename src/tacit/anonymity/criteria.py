"""What classes must satisfy in a search: k, l and t, evaluated for all classes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Booleans, Floats, Integers
from tacit.exact.checks import non_negative, positive, whole

__all__ = ["DIVERSITIES", "Criteria"]

DIVERSITIES = ("distinct", "entropy", "recursive")
MOST = 20_000_000
"""Entries of a table of classes by values that is held at once."""
SLACK = 1e-9
"""What the rounding of a sum may make of an equality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """k: the least size of a class. diverse: its least diversity, the l of l-diversity. t: its largest distance.

    distance: "equal", or "ordered" for values that are in order by their codes; "hierarchical" with the codes of the
    values at each level below the root. shares: of the values in the whole table, which t is about.
    """

    k: int = 1
    diverse: float | None = None
    diversity: str = "distinct"
    c: float = 3.0
    t: float | None = None
    distance: str = "equal"
    shares: Floats | None = None
    levels: Sequence[Integers] = ()

    def __post_init__(self) -> None:
        whole("k", self.k)
        positive("c", self.c)
        if self.diverse is not None and (positive("l", self.diverse) < 1):
            raise InvalidParameter(parameter="l", value=self.diverse, must="be at least 1")
        if self.diversity not in DIVERSITIES:
            raise UnknownName(what="diversity", name=str(self.diversity), known=DIVERSITIES)
        if self.t is not None:
            non_negative("t", self.t)
        if self.distance not in ("equal", "ordered", "hierarchical"):
            raise UnknownName(
                what="distance", name=str(self.distance), known=("equal", "hierarchical", "ordered")
            )

    @property
    def monotone(self) -> bool:
        """Does a class that is good stay good when others join it, whatever they are?

        So it is for k and for distinct diversity; the entropy, and the distance, of two classes together lie between
        those of the two. Without suppression the worst class never gets worse, for all of them.
        """
        return self.t is None and (self.diverse is None or self.diversity == "distinct")

    def violated(self, classes: Integers, values: Integers | None, counts: Integers) -> Booleans:
        """For each class, numbered from 0, whether it violates a criterion."""
        many = int(classes.max()) + 1
        sizes = _sums(classes, weights=counts, minlength=many)
        bad = np.asarray(sizes < self.k)
        if (self.diverse is None and self.t is None) or values is None or bad.all():
            return bad
        width = int(values.max()) + 1
        merged, inverse = np.unique(classes * width + values, return_inverse=True)
        n = _sums(inverse, weights=counts)
        group, value = merged // width, merged % width
        if self.diverse is not None:
            bad |= self._poor(group, n, sizes)
        if self.t is not None:
            bad |= self._far(group, value, n, sizes) > self.t + SLACK
        return bad

    def _poor(self, group: Integers, n: Floats, sizes: Floats) -> Booleans:
        assert self.diverse is not None
        many = len(sizes)
        if self.diversity == "distinct":
            return np.asarray(_sums(group, minlength=many) < self.diverse)
        if self.diversity == "entropy":
            inner = _sums(group, weights=n * np.log(n), minlength=many)
            return np.asarray(np.log(sizes) - inner / sizes < np.log(self.diverse) - SLACK)
        order = np.lexsort((-n, group))
        starts = np.searchsorted(group[order], np.arange(many))
        rank = np.arange(len(group)) - starts[group[order]]
        top = np.zeros(many)
        top[group[order][rank == 0]] = n[order][rank == 0]
        tail = _sums(group[order], weights=np.where(rank >= self.diverse - 1, n[order], 0), minlength=many)
        return np.asarray(~(top < self.c * tail))

    def _far(self, group: Integers, value: Integers, n: Floats, sizes: Floats) -> Floats:
        assert self.shares is not None
        if self.distance == "equal":
            return _equal(group, value, n, sizes, self.shares)
        if self.distance == "hierarchical":
            total = np.zeros(len(sizes))
            for lift in self.levels:
                width = int(lift.max()) + 1
                merged, inverse = np.unique(group * width + lift[value], return_inverse=True)
                shares = _sums(lift, weights=self.shares, minlength=width)
                total += _equal(merged // width, merged % width, _sums(inverse, weights=n), sizes, shares)
            return total / max(len(self.levels), 1)
        m = len(self.shares)
        if m < 2:
            return np.zeros(len(sizes))
        out = np.zeros(len(sizes))
        step = max(1, MOST // m)
        for start in range(0, len(sizes), step):
            stop = min(start + step, len(sizes))
            here = (group >= start) & (group < stop)
            dense = np.zeros((stop - start, m))
            dense[group[here] - start, value[here]] = n[here] / sizes[group[here]]
            out[start:stop] = np.abs(np.cumsum(dense - self.shares, axis=1)).sum(axis=1) / (m - 1)
        return out


def _sums(places: Integers, weights: npt.ArrayLike | None = None, minlength: int = 0) -> Floats:
    """Sums of weights, or numbers of entries, by place."""
    return np.asarray(np.bincount(places, weights=weights, minlength=minlength), dtype=np.float64)


def _equal(group: Integers, value: Integers, n: Floats, sizes: Floats, shares: Floats) -> Floats:
    more = np.maximum(n / sizes[group] - shares[value], 0.0)
    return _sums(group, weights=more, minlength=len(sizes))
