"""Local collection: every person randomises their own answer, and tables are estimated from the answers.

All mechanisms here share one law. An answer names (supports) each category; the person's own with probability p, any
other with probability q < p. So X_j, the number of answers that name category j, is Bin(n_j, p) + Bin(n - n_j, q), its
estimate (X_j - n q)/(p - q) is unbiased, and intervals come from that law exactly.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import SimpleEvent
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import upper
from tacit.exact.checks import flag, settle, whole
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Profile, Pure
from tacit.guarantees.units import Neighbours
from tacit.mechanisms.base import Mechanism, confidence_level, epsilon_parameter
from tacit.mechanisms.grid import Released
from tacit.mechanisms.response_law import ResponseLaw
from tacit.noise.source import Source

__all__ = ["EstimatedCount", "EstimatedTable", "LocalMechanism", "Reports"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports(Released):
    """Answers as the names of categories, or other marks of a local mechanism."""

    def to_floats(self) -> Floats:
        """Answers are names: refused."""
        raise InvalidParameter(
            parameter="answers", value="names of categories", must="be estimated from, not read as numbers",
            hint="mechanism.table(answers)",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedCount:
    """One category: its unbiased estimate, which may be negative, and the interval of its true count."""

    label: str | int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedTable:
    """Estimated numbers of people, a row a category, with intervals from the exact law of the answers."""

    labels: tuple[str | int, ...]
    estimates: Floats
    low: Floats
    high: Floats
    people: int
    confidence: float
    simultaneous: bool

    def __iter__(self) -> Iterator[EstimatedCount]:
        for label, estimate, low, high in zip(self.labels, self.estimates, self.low, self.high, strict=True):
            yield EstimatedCount(label=label, estimate=float(estimate), low=float(low), high=float(high))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, label: str | int) -> EstimatedCount:
        if label not in self.labels:
            raise _unknown("label")
        i = self.labels.index(label)
        return EstimatedCount(
            label=self.labels[i],
            estimate=float(self.estimates[i]),
            low=float(self.low[i]),
            high=float(self.high[i]),
        )

    def shares(self) -> EstimatedTable:
        """The same as shares of the people."""
        n = max(self.people, 1)
        return EstimatedTable(
            labels=self.labels, estimates=self.estimates / n, low=self.low / n, high=self.high / n,
            people=self.people, confidence=self.confidence, simultaneous=self.simultaneous,
        )  # fmt: skip

    def __str__(self) -> str:
        width = max([8, *(len(str(x)) for x in self.labels)])
        rows = [f"{'':{width}} {'estimate':>10} {'low':>10} {'high':>10}"]
        rows += [f"{r.label!s:{width}} {r.estimate:10.4g} {r.low:10.4g} {r.high:10.4g}" for r in self]
        return "\n".join(rows)


def _unknown(name: str) -> InvalidParameter:
    # The label is not shown: it may be what a person said.
    return InvalidParameter(
        parameter=name, value="a label that is not listed", must="be one of the categories",
        hint="the list of categories is public and complete; add one such as 'other' before the answers are drawn",
    )  # fmt: skip


def checked_labels(given: object) -> tuple[str, ...]:
    """At least two different texts."""
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if not isinstance(given, list | tuple):
        raise InvalidParameter(
            parameter="labels", value=type(given).__name__, must="be a list of the names of all categories"
        )
    names = tuple(given)
    if len(names) < 2 or not all(isinstance(x, str) and x for x in names):
        raise InvalidParameter(
            parameter="labels", value=f"{len(names)} entries", must="be two names or more, each a text"
        )
    if len(set(names)) < len(names):
        raise InvalidParameter(
            parameter="labels", value="a name that stands twice", must="be different names"
        )
    return tuple(str(x) for x in names)


def settle_categories(mechanism: LocalMechanism, *, most: int | None = None) -> None:
    """The number of categories, which is that of the labels where there are any."""
    k = whole("categories", mechanism.categories, least=2)
    if mechanism.labels is not None:
        names = checked_labels(mechanism.labels)
        if k not in (2, len(names)):
            raise InvalidParameter(
                parameter="categories", value=k, must=f"be left out, or the number of labels ({len(names)})"
            )
        settle(mechanism, labels=names)
        k = len(names)
    if most is not None and k > most:
        raise InvalidParameter(parameter="categories", value=k, must=f"be at most {most}")
    settle(mechanism, categories=k)


class LocalMechanism(Mechanism):
    """One answer of one person, randomised before it leaves their hands.

    `labels` names the categories; without it they are 0..k-1. Guarantee: Pure(epsilon) for each answer.
    """

    __slots__ = ()
    epsilon: Exact
    categories: int
    labels: Sequence[str] | None

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    @abstractmethod
    def event(self) -> SimpleEvent:
        """One answer of one person."""

    @property
    def profile(self) -> Profile:
        """The exact curve of an answer that is exchanged: below that of Pure(epsilon) wherever some outcomes tell
        nothing between two categories."""
        pairs = self.event.pairs(Neighbours.REPLACE_ONE)
        assert pairs is not None
        return Profile.of_pair(pairs[0])

    @abstractmethod
    def _ball_chances(self) -> tuple[Any, Any, Any]:
        """p, q and p - q as balls."""

    @abstractmethod
    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """One answer for each person; values are their categories, one a person."""

    @abstractmethod
    def supports(self, answers: object) -> npt.NDArray[np.bool_]:
        """Which categories each answer names: a row an answer, a column a category."""

    @abstractmethod
    def supported(self, answers: object) -> tuple[npt.NDArray[np.int64], int]:
        """How many answers name each category, and how many answers there are."""

    # --- reading ---------------------------------------------------------------------------------------
    def _names(self) -> tuple[str | int, ...]:
        return tuple(self.labels) if self.labels is not None else tuple(range(self.categories))

    def _column(self, name: str, given: npt.ArrayLike) -> npt.NDArray[Any]:
        """The categories 0..k-1 of one question, one for each person.

        Several columns are several questions: each costs epsilon and has an estimate of its own.
        """
        column = self._coded(name, given)
        if column.ndim > 1:
            raise InvalidParameter(
                parameter=name, value=f"an array of shape {column.shape}", must="be one column, one answer a person",
                hint="answer and estimate each question by itself; a person pays epsilon for each of them",
            )  # fmt: skip
        return column

    def _coded(self, name: str, given: object) -> npt.NDArray[Any]:
        """Labels, or numbers of categories, as numbers of categories."""
        if isinstance(given, Released):
            given = given.values
        if self.labels is not None:
            places = {label: place for place, label in enumerate(self.labels)}
            told = np.asarray(given, dtype=object)
            coded = [places.get(x, -1) if isinstance(x, str) else -1 for x in told.ravel().tolist()]
            if -1 in coded:
                raise _unknown(name)
            return np.array(coded, dtype=np.int64).reshape(told.shape)
        column = integer_array(given, name=name)  # type: ignore[arg-type]
        if column.size and not (int(column.min()) >= 0 and int(column.max()) < self.categories):
            raise InvalidParameter(
                parameter=name, value="a category out of range", must=f"lie in 0..{self.categories - 1}",
                hint="number the categories from 0; the list of categories is public",
            )  # fmt: skip
        return column

    def _named(self, codes: npt.NDArray[Any], publishable: bool) -> Released:
        """Answers as labels where there are any."""
        if self.labels is None:
            return Released(values=codes, spacing=Fraction(1), publishable=publishable)
        names = np.array(list(self.labels), dtype=object)
        return Reports(values=names[codes.astype(np.int64)], spacing=Fraction(1), publishable=publishable)

    # --- estimates -------------------------------------------------------------------------------------
    def _chances(self) -> tuple[float, float, float]:
        """p, q and p - q as floats."""
        p, q, gap = (upper(lambda i=i: self._ball_chances()[i]) for i in range(3))  # type: ignore[misc]
        return p, q, gap

    def law(self, *, people: int) -> ResponseLaw:
        """The law of how often a category is named by so many people."""
        p, q, gap = self._chances()
        return ResponseLaw(people=whole("people", people, least=0), p=p, q=q, gap=gap)

    def estimate(self, answers: npt.ArrayLike | Released) -> Floats:
        """Unbiased estimates of the number of people in each category: (X_j - n q) / (p - q)."""
        counts, n = self.supported(answers)
        return self._unbiased(counts, n)

    def _unbiased(self, counts: npt.NDArray[np.int64], n: int) -> Floats:
        _, q, gap = self._chances()
        return (counts.astype(np.float64) - n * q) / gap

    def table(
        self, answers: npt.ArrayLike | Released, *, confidence: Exact = 0.95, simultaneous: bool = False
    ) -> EstimatedTable:
        """Estimates and intervals of every category's true count, which they cover with this probability or more.

        The interval of a category holds the counts c at which Bin(c, p) + Bin(n - c, q) does not lie above or below
        what was observed with a probability of half the miss; all of them at once with `simultaneous=True`.
        """
        counts, n = self.supported(answers)
        if n == 0:
            raise EmptyComposition(what="the list of answers")
        miss = float(1 - confidence_level(confidence)) / (
            self.categories if flag("simultaneous", simultaneous) else 1
        )
        low, high = self.law(people=n).intervals(counts, miss)
        return EstimatedTable(
            labels=self._names(), estimates=self._unbiased(counts, n), low=low, high=high, people=n,
            confidence=float(confidence_level(confidence)), simultaneous=bool(simultaneous),
        )  # fmt: skip

    def variance(self, *, people: int, count: int | None = None) -> float:
        """Var of the estimated count of one category: [n_j p(1-p) + (n - n_j) q(1-q)] / (p-q)^2, rounded up; without a
        count, the worst one."""
        n, inside = self._counts(people, count)

        def formula(members: int) -> float:
            def value() -> Any:
                p, q, gap = self._ball_chances()
                return (members * p * (1 - p) + (n - members) * q * (1 - q)) / gap**2

            return upper(value)

        return max(formula(0), formula(n)) if inside is None else formula(inside)

    def _counts(self, people: int, count: int | None) -> tuple[int, int | None]:
        n = whole("people", people, least=0)
        inside = None if count is None else whole("count", count, least=0)
        if inside is not None and inside > n:
            raise InvalidParameter(parameter="count", value=count, must=f"be at most people = {n}")
        return n, inside

    def count_error(self, *, people: int, confidence: Exact = 0.95, count: int | None = None) -> float:
        """What the estimated count of one category stays within, by its exact law; without a count, the worst one.

        Never above the better of Chebyshev's and Hoeffding's bounds, which serve alone where the law has too many
        points to be listed.
        """
        miss = float(1 - confidence_level(confidence))
        n, inside = self._counts(people, count)
        chebyshev = math.sqrt(self.variance(people=n, count=inside) / miss)
        hoeffding = math.sqrt(n * math.log(2 / miss) / 2) / self._chances()[2]
        law = self.law(people=n)
        exact = law.worst_quantile(miss) if inside is None else law.quantile(inside, miss)
        return min(chebyshev, hoeffding, exact)

    def error_quantile(self, confidence: Exact = 0.95, *, people: int = 1) -> float:
        """The error of an estimated count, as `count_error`."""
        return self.count_error(people=people, confidence=confidence)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int | None = None, people: int = 1) -> float:
        """For all categories (or `dimension` of them) at once, by the union of their misses."""
        d = self.categories if dimension is None else whole("dimension", dimension, least=1)
        return self.count_error(people=people, confidence=1 - (1 - confidence_level(confidence)) / d)
