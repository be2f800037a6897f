"""Local collection: every person randomises their own answer, and tables are estimated from the answers.

All mechanisms here answer by one rule.
An answer names (supports) each category; the person's own with probability p, any
other with probability q < p. So X_j, the number of answers that name category j, is Bin(n_j, p) + Bin(n - n_j, q),
its estimate (X_j - n q)/(p - q) is unbiased, and exact intervals follow from that distribution.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import SimpleEvent
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import check_fields, flag, integer_array, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, bisected, up, upper
from tacit.guarantees import Profile, Pure
from tacit.guarantees.units import Neighbours
from tacit.mechanisms.base import (
    Mechanism,
    Released,
    confidence_level,
    epsilon_parameter,
    epsilon_value,
    shown,
)
from tacit.noise import Bernoulli, CertifiedReal, uniform_integer
from tacit.noise.source import Source, default_source

__all__ = [
    "EstimatedCount",
    "EstimatedTable",
    "LocalMechanism",
    "RandomizedResponse",
    "Reports",
    "ResponseComparison",
]

# The exact distribution of the number of answers that name a category: Bin(c, p) + Bin(n - c, q) for a true count of c.
#
# It rises with c, so that the counts that a test of the observed number does not reject are an interval: Clopper and
# Pearson's construction for one binomial, here for the sum of two. Theorem `local-intervals`. Numbers are floats;
# they speak of accuracy, not of privacy.

_REACH = 9.5
"""Probabilities of a binomial beyond this many standard deviations are omitted: below 1e-18 by Bernstein's
inequality for deviations above a few, with a least window for smaller deviations.
"""
_FLOOR = 60
_GRID = 256
"""The number of distinct observed counts with separate intervals; for more, the intervals of a grid of this
size are widened.
"""
_MOST_POINTS = 1 << 23
_DEAR = 16
"""A tail in closed form takes as long as this many listed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLaw:
    """The count of a category among n answers if c people belong to it: named with probability p if so, else q < p."""

    people: int
    p: float
    q: float
    gap: float
    """p - q, computed without subtraction."""

    def at_most(self, observed: float, count: int) -> float:
        """Pr[X <= observed] for a true count."""
        return self._tail(math.floor(observed), count, below=True)

    def at_least(self, observed: float, count: int) -> float:
        """Pr[X >= observed] for a true count."""
        return self._tail(math.ceil(observed), count, below=False)

    def _tail(self, observed: int, count: int, *, below: bool) -> float:
        rest = self.people - count
        # The narrower of the two is listed, the other one is summed in closed form.
        narrow = count * self.p * (1 - self.p) <= rest * self.q * (1 - self.q)
        one, other = ((count, self.p), (rest, self.q)) if narrow else ((rest, self.q), (count, self.p))
        start, masses = _masses(*one)
        left = observed - (start + np.arange(len(masses)))
        share = _tails(*other, left, below=below)
        return min(1.0, float(masses @ share))

    def interval(self, observed: int, miss: float) -> tuple[int, int]:
        """The true counts that the test does not reject (both tails above miss/2), or the nearest one."""
        n, half = self.people, miss / 2
        from scipy.special import ndtri

        guess = (observed - n * self.q) / self.gap
        spread = self._std(guess)
        away, step = -float(ndtri(max(half, 1e-300))) * spread, int(spread / 64) + 1
        low = _first(lambda c: self.at_least(observed, c) > half, n, int(guess - away), step)
        high = _first(lambda c: self.at_most(observed, c) <= half, n, int(guess + away), step)
        return min(low, n), max(high - 1, 0)

    def _std(self, count: float) -> float:
        inside = min(max(count, 0.0), float(self.people))
        p, q = self.p, self.q
        return math.sqrt(inside * p * (1 - p) + (self.people - inside) * q * (1 - q)) / self.gap

    def intervals(self, observed: npt.NDArray[np.int64], miss: float) -> tuple[Floats, Floats]:
        """Low and high ends for many observed numbers; both rise with the observation."""
        points = np.unique(observed)
        if len(points) > _GRID:
            points = np.unique(np.linspace(int(points[0]), int(points[-1]), _GRID).astype(np.int64))
        ends = np.array([self.interval(int(x), miss) for x in points], dtype=np.float64).reshape(-1, 2)
        before = np.searchsorted(points, observed, side="right") - 1
        after = np.searchsorted(points, observed, side="left")
        return ends[before, 0], ends[np.minimum(after, len(points) - 1), 1]

    def quantile(self, count: int, miss: float) -> float:
        """The least w with Pr[|(X - n q)/(p - q) - c| > w] <= miss, for a true count; infinite if it takes too long."""
        rest = self.people - count
        widths = [_window(m, r) for m, r in ((count, self.p), (rest, self.q))]
        if sum(w[1] - w[0] for w in widths) > _MOST_POINTS or miss < 1e-9:
            return math.inf
        (a, first), (b, second) = _masses(count, self.p), _masses(rest, self.q)
        size = len(first) + len(second) - 1
        length = 1 << (size - 1).bit_length() if size > 1 else 1
        both = np.fft.irfft(np.fft.rfft(first, length) * np.fft.rfft(second, length), length)[:size] if size > 1 else (
            first * second
        )  # fmt: skip
        away = np.abs(a + b + np.arange(size) - (count * self.p + rest * self.q))
        order = np.argsort(away)
        inside = np.cumsum(np.maximum(both[order], 0.0))
        place = int(np.searchsorted(inside, 1 - miss + 1e-13))
        return float(away[order][min(place, size - 1)]) / self.gap * (1 + 1e-12)

    def worst_quantile(self, miss: float) -> float:
        """The largest quantile over true counts: over all of them up to 64 people; beyond that at 33 counts, plus one
        step of the lattice.
        """
        n = self.people
        if n <= 64:
            return max(self.quantile(c, miss) for c in range(n + 1))
        # Between two of them the distribution moves by less than a step of the lattice 1/(p - q) against a smooth one.
        return max(self.quantile(round(n * i / 32), miss) for i in range(33)) + 1 / self.gap


def _first(true: Callable[[int], bool], n: int, start: int, step: int) -> int:
    """The least c in 0..n at which a rising condition holds, n + 1 if it never holds; the search begins around
    `start`.
    """
    start = min(max(start, 0), n)
    low, high = -1, n + 1
    if true(start):
        high = start
        while high - step > low:
            if not true(high - step):
                low = high - step
                break
            high, step = high - step, 2 * step
    else:
        low = start
        while low + step < high:
            if true(low + step):
                high = low + step
                break
            low, step = low + step, 2 * step
    return bisected(true, low, high)[1]


def _window(trials: int, chance: float) -> tuple[int, int]:
    reach = _REACH * math.sqrt(trials * chance * (1 - chance)) + _FLOOR
    mean = trials * chance
    return max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))


@lru_cache(maxsize=256)
def _masses(trials: int, chance: float) -> tuple[int, Floats]:
    """(First value, probabilities from there on) of a binomial, without its far tails, adding up to 1."""
    from scipy.special import gammaln, xlog1py, xlogy

    low, high = _window(trials, chance)
    x = np.arange(low, high + 1, dtype=np.float64)
    logs = (
        gammaln(trials + 1)
        - gammaln(x + 1)
        - gammaln(trials - x + 1)
        + xlogy(x, chance)
        + xlog1py(trials - x, -chance)
    )
    masses = np.exp(logs - logs.max())
    return low, masses / masses.sum()


def _tails(trials: int, chance: float, values: npt.NDArray[np.int64], *, below: bool) -> Floats:
    """Pr[Bin <= value], or >= value, of each of many values; what lies beyond the listed ones is 0 or 1."""
    low, high = _window(trials, chance)
    if high - low > _DEAR * len(values):
        return _closed_tails(trials, chance, values, below=below)
    start, masses = _masses(trials, chance)
    place = np.clip(values - start, -1, len(masses))
    if below:
        return np.concatenate([np.cumsum(masses), [1.0, 0.0]])[place]
    return np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0, 1.0]])[place]


def _closed_tails(trials: int, chance: float, values: npt.NDArray[np.int64], *, below: bool) -> Floats:
    """The same by the incomplete beta function."""
    from scipy.special import betainc

    least = 0 if below else 1
    inside = (values >= least) & (values < trials + least)
    x = np.where(inside, values, least).astype(np.float64)
    found = betainc(trials - x, x + 1, 1 - chance) if below else betainc(x, trials - x + 1, chance)
    outside = np.where(values < least, 0.0 if below else 1.0, 1.0 if below else 0.0)
    return np.where(inside, found, outside)


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
    """Estimated numbers of people, a row a category, with intervals from the exact distribution of the answers."""

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
    refuse_if(len(set(names)) < len(names), "labels", "a name that stands twice", "be different names")
    return tuple(str(x) for x in names)


def settle_categories(mechanism: LocalMechanism, *, most: int | None = None) -> None:
    """The number of categories, from the labels if they are given."""
    k = whole("categories", mechanism.categories, least=2)
    if mechanism.labels is not None:
        names = checked_labels(mechanism.labels)
        refuse_if(
            k not in (2, len(names)), "categories", k, f"be left out, or the number of labels ({len(names)})"
        )
        set_fields(mechanism, labels=names)
        k = len(names)
    if most is not None and k > most:
        raise InvalidParameter(parameter="categories", value=k, must=f"be at most {most}")
    set_fields(mechanism, categories=k)


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
        """The exact curve of an exchanged answer: below that of Pure(epsilon) if some outcomes do not distinguish
        between two categories.
        """
        pairs = self.event.pairs(Neighbours.REPLACE_ONE)
        assert pairs is not None
        return Profile.of_pair(pairs[0])

    @abstractmethod
    def _ball_chances(self) -> tuple[Any, Any, Any]:
        """p, q and p - q as balls."""

    @abstractmethod
    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """One answer for each person; `values` has one category for each person."""

    @abstractmethod
    def supports(self, answers: object) -> npt.NDArray[np.bool_]:
        """The categories that each answer names: a row per answer, a column per category."""

    @abstractmethod
    def supported(self, answers: object) -> tuple[npt.NDArray[np.int64], int]:
        """The number of answers that name each category, and the number of answers."""

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
        """Answers as labels, if the mechanism has labels."""
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
        """The distribution of the number of answers that name a category, for this many people."""
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
        """The bound on the estimated count of one category, by its exact distribution; without a count, the
        bound for the worst one.

        Never above the better of Chebyshev's and Hoeffding's bounds, which serve alone if the distribution has too many
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


# Randomised response: each person's bit or category is told with a known chance of a lie.


@lru_cache(maxsize=64)
def _lie(epsilon: Fraction, categories: int) -> Bernoulli:
    """The coin of a lie: (k - 1) / (e^epsilon + k - 1)."""
    k = categories - 1
    chance = CertifiedReal(evaluate=lambda: k / (ball(epsilon).exp() + k), name="the chance of a lie")
    return Bernoulli(probability_of_one=chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseComparison:
    """Errors of an estimated share of ones among n people, by randomised response and by central Laplace noise."""

    response_std: float
    laplace_std: float
    response_error: float
    laplace_error: float

    @property
    def ratio(self) -> float:
        """The ratio of the local error to the central one; it grows as sqrt(n)."""
        return self.response_std / self.laplace_std


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(LocalMechanism):
    """The truth with probability p = e^epsilon / (e^epsilon + k - 1), else one of the k - 1 others, uniformly.

    Categories are 0..k-1, or `labels`: then values and answers are labels.
    Guarantee: Pure(epsilon) for each answer of each person, without a trusted curator; the bound is reached.
    Sampling is exact. Estimates are unbiased: (c - n q) / (p - q), q = 1 / (e^epsilon + k - 1). For a bit the
    variance of the estimated count is exactly n e^epsilon / (e^epsilon - 1)^2, for any data. Theorems
    `randomised-response`, `local-intervals`. Source: Warner 1965; lecture 2, Thm 2.3 to 2.5 (whose variance is
    a bound, four times larger).
    """

    epsilon: Exact
    categories: int = 2
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        settle_categories(self)

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, categories: int = 2, labels: Sequence[str] | None = None
    ) -> RandomizedResponse:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, categories=categories, labels=labels)

    @property
    def event(self) -> SimpleEvent:
        """Randomised response of one person's answer."""
        return events.RandomizedResponseEvent(epsilon=float(self.bound.epsilon), categories=self.categories)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("randomised-response",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "randomised response",
            "epsilon": shown(epsilon_parameter(self.epsilon)),
            "categories": int(self.categories),
            "exact": True,
        }

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """One answer for each person; values are categories, one a person: labels, or 0..k-1."""
        source = source if source is not None else default_source()
        truth = self._column("values", values)
        k = int(self.categories)
        lie = _lie(epsilon_parameter(self.epsilon), k).sample(size=truth.shape, source=source)
        # A uniform other category: 1..k-1 further round, drawn for everyone so that time tells nothing.
        turn = 1 + uniform_integer(k - 1, size=truth.shape, source=source)
        # From 2^62 categories on the turns are Python integers; the type of the answers is that of the categories.
        answers = np.asarray((truth + lie * turn) % k, dtype=np.int64 if k <= 1 << 63 else object)
        return self._named(answers, source.publishable)

    def supports(self, answers: object) -> npt.NDArray[np.bool_]:
        """The category that was answered."""
        given = self._column("answers", answers)  # type: ignore[arg-type]
        return np.asarray(given[:, None] == np.arange(self.categories)[None, :])

    def supported(self, answers: object) -> tuple[npt.NDArray[np.int64], int]:
        given = self._column("answers", answers)  # type: ignore[arg-type]
        return np.bincount(given.ravel().astype(np.int64), minlength=self.categories), given.size

    def _ball_chances(self) -> tuple[Any, Any, Any]:
        grown, k = ball(epsilon_parameter(self.epsilon)).exp(), self.categories
        total = grown + (k - 1)
        return grown / total, 1 / total, ball(epsilon_parameter(self.epsilon)).expm1() / total

    def _chances(self) -> tuple[float, float, float]:
        """p, q and p - q as floats."""
        e, k = float(epsilon_parameter(self.epsilon)), self.categories
        shrink = math.exp(-e)
        total = 1 + (k - 1) * shrink
        return 1 / total, shrink / total, -math.expm1(-e) / total

    def variance(self, *, people: int, count: int | None = None) -> float:
        """Var of the estimated count of one category: [n_j p(1-p) + (n - n_j) q(1-q)] / (p-q)^2, rounded up.

        For a bit this is n e^epsilon / (e^epsilon - 1)^2 for every count; for more categories, without a count, the
        worst one.
        """
        n, inside = self._counts(people, count)
        exact, k = epsilon_parameter(self.epsilon), self.categories

        def formula(members: int) -> float:
            def value() -> Any:
                # With w = e^-epsilon: p(1-p) = (k-1) w / t^2, q(1-q) = w (1 + (k-2) w) / t^2, p-q = (1-w)/t.
                w = (-ball(exact)).exp()
                return (members * (k - 1) * w + (n - members) * w * (1 + (k - 2) * w)) / (
                    -ball(exact)
                ).expm1() ** 2

            return upper(value)

        return max(formula(0), formula(n)) if inside is None else formula(inside)

    def expected_error(self) -> float:
        """The chance that one answer is a lie: (k - 1) / (e^epsilon + k - 1)."""
        exact, k = epsilon_parameter(self.epsilon), self.categories
        return upper(lambda: (k - 1) / (ball(exact).exp() + (k - 1)))

    def compared_with_laplace(self, *, people: int, confidence: Exact = 0.95) -> ResponseComparison:
        """Lecture 2's comparison for the share of ones: sqrt(n) / epsilon locally, 1 / epsilon with a curator.

        Laplace noise of scale 1 / (n epsilon) for the share, replace-one neighbours, error b ln(1/miss).
        """
        n = whole("people", people, least=1)
        e, miss = float(epsilon_parameter(self.epsilon)), float(1 - confidence_level(confidence))
        return ResponseComparison(
            response_std=math.sqrt(self.variance(people=n)) / n,
            laplace_std=math.sqrt(2) / (n * e),
            response_error=self.count_error(people=n, confidence=confidence) / n,
            laplace_error=math.log(1 / miss) / (n * e),
        )
