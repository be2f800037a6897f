"""Two questions whose answers each person randomises separately: the joint table, its error, and their dependence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.checks import members, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, up
from tacit.guarantees import Pure
from tacit.mechanisms.base import Mechanism, Released, confidence_level, epsilon_parameter
from tacit.mechanisms.local import LocalMechanism, RandomizedResponse
from tacit.noise.source import Source, default_source

__all__ = ["Correlation", "IndependenceTest", "JointTable", "TwoQuestions"]

_CELLS = 1 << 22
"""People times categories that are looked at together."""
_MOST_CELLS = 1 << 16
_BERRY_ESSEEN = 0.56
"""Shevtsova 2010, for sums of independent variables that need not be alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTable:
    """Estimated numbers of people by both answers, a row a category of the first question.

    `noise_std` belongs to each estimate at the estimated table, and `low`, `high` are normal intervals with it.
    `normal_error` bounds the distance of an estimate's distribution from a normal one with the right standard
    deviation:
    an interval covers with the stated confidence less twice this.
    """

    rows: tuple[str | int, ...]
    columns: tuple[str | int, ...]
    estimates: Floats
    noise_std: Floats
    low: Floats
    high: Floats
    people: int
    confidence: float
    normal_error: float

    def __getitem__(self, labels: tuple[str | int, str | int]) -> tuple[float, float, float]:
        row, column = labels
        if row not in self.rows or column not in self.columns:
            raise InvalidParameter(
                parameter="labels", value="labels that are not listed", must="be one of each question"
            )
        at = self.rows.index(row), self.columns.index(column)
        return float(self.estimates[at]), float(self.low[at]), float(self.high[at])

    def __str__(self) -> str:
        width = max([8, *(len(str(x)) for x in (*self.rows, *self.columns))])
        lines = [" ".join([f"{'':{width}}", *(f"{c!s:>{width}}" for c in self.columns)])]
        for label, values in zip(self.rows, self.estimates, strict=True):
            lines.append(" ".join([f"{label!s:{width}}", *(f"{v:{width}.4g}" for v in values)]))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """The estimated correlation of the true answers, its standard error, and an interval within [-1, 1]."""

    estimate: float
    standard_error: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependenceTest:
    """Pearson's statistic of the randomised answers, and its chance if the true answers are independent."""

    statistic: float
    degrees: int
    p_value: float
    smallest_expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoQuestions(Mechanism):
    """Two local mechanisms for the same people, with separate noise.

    Guarantee: Pure(epsilon_1 + epsilon_2) for the pair of answers of each person; reached. With phi_i = (1[answer names
    i] - q)/(p - q) for each question, the sum over people of phi_i psi_j is unbiased for the number of people in cell
    (i, j), since both have mean 1[i is the truth] and are independent given the truth. Theorem `joint-responses`.
    Source: Warner 1965; Groce 2014, section 2.6 (that correlations are kept).
    """

    first: LocalMechanism
    second: LocalMechanism

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            if not isinstance(getattr(self, name), LocalMechanism):
                raise InvalidParameter(
                    parameter=name, value=type(getattr(self, name)).__name__, must="be a local mechanism",
                    hint="for instance RandomizedResponse(epsilon=1.0)",
                )  # fmt: skip
        if self.first.categories * self.second.categories > _MOST_CELLS:
            raise InvalidParameter(
                parameter="second", value=f"{self.first.categories} by {self.second.categories} cells",
                must=f"have at most {_MOST_CELLS:,} cells with the first",
            )  # fmt: skip

    @property
    def bound(self) -> Pure:
        return Pure(
            epsilon=up(epsilon_parameter(self.first.epsilon) + epsilon_parameter(self.second.epsilon))
        )

    @property
    def event(self) -> Event:
        from tacit.accounting.events import ComposedEvent

        return ComposedEvent(events=self.events)

    @property
    def events(self) -> tuple[Event, ...]:
        return (*self.first.events, *self.second.events)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("joint-responses", *self.first.theorems, *self.second.theorems)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "two local answers",
            "first": self.first.noise_distribution,
            "second": self.second.noise_distribution,
            "exact": True,
        }

    def release(
        self, first: npt.ArrayLike, second: npt.ArrayLike, *, source: Source | None = None
    ) -> tuple[Released, Released]:
        """Both answers of each person; a person has the same place in both arrays."""
        source = source if source is not None else default_source()
        one, two = _together(first, second)
        return self.first.release(one, source=source), self.second.release(two, source=source)

    # --- sums over people ------------------------------------------------------------------------------
    def _parts(self, one: object, two: object) -> Iterator[tuple[Floats, Floats]]:
        """phi and psi of some people at a time: a row a person, a column a category."""
        one, two = _together(one, two)
        if len(one) == 0:
            raise EmptyComposition(what="the list of answers")
        size = max(1, _CELLS // max(self.first.categories, self.second.categories))
        chances = [m._chances() for m in (self.first, self.second)]
        for i in range(0, len(one), size):
            both = self.first.supports(one[i : i + size]), self.second.supports(two[i : i + size])
            yield tuple((named - q) / gap for named, (_, q, gap) in zip(both, chances, strict=True))  # type: ignore[misc]

    def estimate(self, first: object, second: object) -> Floats:
        """Unbiased estimates of the number of people in each cell, which may be negative."""
        return np.asarray(sum(phi.T @ psi for phi, psi in self._parts(first, second)))

    def variance(self, *, people: int, count: int, row: int, column: int) -> float:
        """Var of the estimate of a cell with this true count, whose row and column have these totals."""
        n, inside, across, down = (
            whole(name, value, least=0)
            for name, value in (("people", people), ("count", count), ("row", row), ("column", column))
        )
        if not (inside <= min(across, down) and across + down - inside <= n):
            raise InvalidParameter(
                parameter="count", value=count, must="add up with row, column and people",
                hint="a cell is at most its row and its column, and these cover at most all people",
            )  # fmt: skip
        cells = (np.array(float(x)) for x in (inside, across, down))
        return float(self._variances(n, *cells))

    def _variances(self, n: int, inside: Floats, across: Floats, down: Floats) -> Floats:
        (v1, v0), (w1, w0) = (
            (p * (1 - p) / gap**2, q * (1 - q) / gap**2)
            for p, q, gap in (self.first._chances(), self.second._chances())
        )
        return np.asarray(
            inside * ((1 + v1) * (1 + w1) - 1)
            + (across - inside) * (1 + v1) * w0
            + (down - inside) * v0 * (1 + w1)
            + (n - across - down + inside) * v0 * w0
        )

    def table(self, first: object, second: object, *, confidence: Exact = 0.95) -> JointTable:
        """The joint table, with the standard deviation and an interval of each cell."""
        from scipy.special import ndtri

        level = float(confidence_level(confidence))
        total: Floats = np.zeros((self.first.categories, self.second.categories))
        rows, columns, n = np.zeros(self.first.categories), np.zeros(self.second.categories), 0
        for phi, psi in self._parts(first, second):
            total += phi.T @ psi
            rows, columns, n = rows + phi.sum(axis=0), columns + psi.sum(axis=0), n + len(phi)
        # The variance at the nearest table there can be.
        across, down = np.clip(rows, 0, n)[:, None], np.clip(columns, 0, n)[None, :]
        inside = np.clip(total, np.maximum(0, across + down - n), np.minimum(across, down))
        noise_std = np.sqrt(self._variances(n, inside, across, down))
        reach = float(ndtri((1 + level) / 2)) * noise_std
        largest = math.prod(
            max(1 - q, q) / gap for _, q, gap in (self.first._chances(), self.second._chances())
        )
        return JointTable(
            rows=self.first._names(), columns=self.second._names(), estimates=total, noise_std=noise_std,
            low=np.clip(total - reach, 0, n), high=np.clip(total + reach, 0, n), people=n, confidence=level,
            normal_error=float(min(1.0, _BERRY_ESSEEN * (largest + 1) / noise_std.min())),
        )  # fmt: skip

    def covariance(self, first: object, second: object) -> Floats:
        """An unbiased estimate of the covariance of all estimated cells, row by row: k1 k2 by k1 k2."""
        cells = self.first.categories * self.second.categories
        refuse_if(cells > 1024, "first", f"{cells} cells", "have at most 1,024 cells")
        total, found = np.zeros(cells), np.zeros((cells, cells))
        for phi, psi in self._parts(first, second):
            for i in range(0, len(phi), 1 + _CELLS // cells):
                some = slice(i, i + 1 + _CELLS // cells)
                products = (phi[some, :, None] * psi[some, None, :]).reshape(-1, cells)
                found += products.T @ products
                total += products.sum(axis=0)
        return np.asarray(found - np.diag(total))

    def correlation(
        self,
        first: object,
        second: object,
        *,
        scores: tuple[Any, Any] | None = None,
        confidence: Exact = 0.95,
    ) -> Correlation:
        """The correlation of the true answers, valued by `scores` (0, 1, 2, ... in the order of the categories).

        The standard error counts the randomisation and that people are a sample (delta method, large n).
        """
        from scipy.special import ndtri

        level = float(confidence_level(confidence))
        own = (None, None) if scores is None else members("scores", scores)
        refuse_if(len(own) != 2, "scores", len(own), "be two lists, one a question")
        s, t = (_scores(x, m.categories) for x, m in zip(own, (self.first, self.second), strict=True))
        parts = [
            np.stack([phi @ s, psi @ t, (phi @ s) * (psi @ t), phi @ s**2, psi @ t**2], axis=1)
            for phi, psi in self._parts(first, second)
        ]
        values = np.concatenate(parts)
        n = len(values)
        a, b, ab, aa, bb = values.mean(axis=0)
        va, vb, cov = aa - a * a, bb - b * b, ab - a * b
        if va <= 0 or vb <= 0:  # so few people that a variance is estimated as nothing
            return Correlation(estimate=0.0, standard_error=math.inf, low=-1.0, high=1.0, confidence=level)
        r = float(cov) / math.sqrt(va * vb)
        x = values - (a, b, ab, aa, bb)
        moved = (x[:, 2] - b * x[:, 0] - a * x[:, 1]) / math.sqrt(va * vb)
        moved -= r / 2 * ((x[:, 3] - 2 * a * x[:, 0]) / va + (x[:, 4] - 2 * b * x[:, 1]) / vb)
        error = math.sqrt(float(np.mean(moved**2)) / max(n - 1, 1))
        reach = float(ndtri((1 + level) / 2)) * error
        return Correlation(
            estimate=min(1.0, max(-1.0, r)), standard_error=error, low=min(1.0, max(-1.0, r - reach)),
            high=max(-1.0, min(1.0, r + reach)), confidence=level,
        )  # fmt: skip

    def independence(self, first: object, second: object) -> IndependenceTest:
        """Pearson's test on the randomised answers, which are independent if and only if the true ones are.

        For people drawn independently from one population, and two questions by randomised response. The p-value is
        that of the chi-square distribution, good where `smallest_expected` is some 5 or more.
        """
        from scipy.special import gammaincc

        if not all(isinstance(m, RandomizedResponse) for m in (self.first, self.second)):
            raise NoLaw(
                operation="Pearson's test on answers that name several categories",
                reason="an answer is then in several cells, and the statistic has another distribution",
                hint="ask by RandomizedResponse, or read the correlation",
            )
        both = _together(first, second)
        if len(both[0]) == 0:
            raise EmptyComposition(what="the list of answers")
        one, two = self.first.supports(both[0]), self.second.supports(both[1])
        seen = one.T.astype(np.float64) @ two.astype(np.float64)
        seen = seen[seen.sum(axis=1) > 0][:, seen.sum(axis=0) > 0]
        expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
        statistic = float(((seen - expected) ** 2 / expected).sum())
        degrees = (seen.shape[0] - 1) * (seen.shape[1] - 1)
        return IndependenceTest(
            statistic=statistic, degrees=degrees, smallest_expected=float(expected.min()),
            p_value=float(gammaincc(degrees / 2, statistic / 2)) if degrees else 1.0,
        )  # fmt: skip


def _together(first: object, second: object) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Both columns as arrays of the same length, a person a place."""
    found = []
    for name, given in (("first", first), ("second", second)):
        if isinstance(given, Released):
            given = given.values
        array = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
        if array.ndim == 0 or np.ma.isMaskedArray(array):
            raise InvalidParameter(
                parameter=name,
                value=type(given).__name__,
                must="be a list or an array without a mask, an entry a person",
            )
        found.append(array)
    one, two = found
    refuse_if(len(one) != len(two), "second", f"{len(two)} entries", f"be as many as the first ({len(one)})")
    return one, two


def _scores(given: Any, categories: int) -> Floats:
    if given is None:
        return np.arange(categories, dtype=np.float64)
    try:
        values = np.array([float(x) for x in members("scores", given)])
    except (TypeError, ValueError):
        values = np.array([math.nan])
    if len(values) != categories or not bool(np.isfinite(values).all()) or float(np.ptp(values)) == 0:
        raise InvalidParameter(
            parameter="scores", value=f"{len(values)} values",
            must=f"be {categories} finite numbers that are not all the same",
        )  # fmt: skip
    return values
