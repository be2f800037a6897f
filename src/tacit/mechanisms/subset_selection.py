"""Subset selection: each person names a random set of categories, their own more often than any other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import SimpleEvent
from tacit.errors import InvalidParameter
from tacit.exact.checks import check_fields, integer_array, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, exact_parameter, upper
from tacit.mechanisms.base import Released, epsilon_parameter, epsilon_value, shown
from tacit.mechanisms.local import LocalMechanism, RandomizedResponse, Reports, settle_categories
from tacit.noise import Bernoulli, CertifiedReal, uniform_integer
from tacit.noise.source import Source, default_source

__all__ = ["HadamardResponse", "LocalCandidate", "LocalChoice", "SubsetSelection", "local_mechanism"]

MOST_CATEGORIES = 1 << 16
"""The largest number of categories in an answer, which lists about a share 1/(e^epsilon + 1) of all."""
_CELLS = 1 << 22
"""People times categories that are drawn at once."""


@lru_cache(maxsize=64)
def _own_named(epsilon: Fraction, categories: int, subset: int) -> Bernoulli:
    """The coin of naming one's own category: d e^epsilon / (d e^epsilon + k - d)."""
    k, d = categories, subset
    chance = CertifiedReal(
        evaluate=lambda: d * ball(epsilon).exp() / (d * ball(epsilon).exp() + (k - d)),
        name="the chance that one's own category is named",
    )
    return Bernoulli(probability_of_one=chance)


def _variance(epsilon: Fraction, k: int, d: int, share: Fraction) -> float:
    """n times less than the variance of the estimate for a category with this share of the people, rounded up.

    (f p (1 - p) + (1 - f) q (1 - q)) / (p - q)^2.
    """

    def value() -> Any:
        p, q, gap = _chance_balls(epsilon, k, d)
        f = ball(share)
        return (f * p * (1 - p) + (1 - f) * q * (1 - q)) / gap**2

    return upper(value)


def _chance_balls(epsilon: Fraction, k: int, d: int) -> tuple[Any, Any, Any]:
    grown = ball(epsilon).exp()
    total = d * grown + (k - d)
    q = d * ((d - 1) * grown + (k - d)) / ((k - 1) * total)
    gap = d * (k - d) * ball(epsilon).expm1() / ((k - 1) * total)
    return d * grown / total, q, gap


def best_subset(epsilon: Fraction, categories: int, share: Fraction = Fraction(0)) -> int:
    """The size d with the smallest variance for a category with this share of the people.

    For a share of 0 it is next to k / (e^epsilon + 1); a larger share asks for larger sets. With t = e^-epsilon the
    variance is (f t (k-1)^2 + (1-f) (d-1 + (k-d) t) (d + (k-1-d) t)) / (d (k-d) (1-t)^2), compared here for all d.
    """
    e, k = float(epsilon), categories
    if share == 0:
        near = math.floor(k / (math.exp(e) + 1) if e < 700 else 0.0) + np.arange(-1, 3)
    else:
        d, t, f = np.arange(1, k, dtype=np.float64), math.exp(-e), float(share)
        others = (d - 1 + (k - d) * t) * (d + (k - 1 - d) * t)
        near = (
            1 + int(np.argmin((f * t * (k - 1.0) ** 2 + (1 - f) * others) / (d * (k - d)))) + np.arange(-1, 2)
        )
    sizes = sorted({int(d) for d in np.clip(near, 1, k - 1)})
    return min(sizes, key=lambda d: _variance(epsilon, k, d, share))


def share_parameter(value: object) -> Fraction:
    """A declared share of the people, from 0 to 1."""
    share = exact_parameter("share", value, positive=False)
    if not 0 <= share <= 1:
        raise InvalidParameter(
            parameter="share", value=value, must="lie in [0, 1]",
            hint="the share of the people in the category that matters, from public knowledge; 0 for a rare one",
        )  # fmt: skip
    return share


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(LocalMechanism):
    """`subset` of the k categories: with probability p = d e^epsilon / (d e^epsilon + k - d) the truth and d - 1 of the
    others, else d of the others, uniformly.

    An answer is a row of d categories (labels, or 0..k-1) in the order of the list. If d is left out, it is the
    size with the smallest variance for a category with a declared `share` of the people: about k / (e^epsilon +
    1) for a share of 0, the default, and larger for larger shares. The share is public knowledge and no part of
    the guarantee. d = 1 is randomised response. Guarantee: Pure(epsilon) for each answer of each person;
    reached. Sampling is exact. Estimates are unbiased: (X - n q) / (p - q), X the number of answers that name
    the category, q = d ((d-1) e^epsilon + k - d) / ((k-1) (d e^epsilon + k - d)). Theorems `subset-selection`,
    `local-intervals`. Source: Ye and Barg 2018; Wang et al. 2016.
    """

    epsilon: Exact
    categories: int = 2
    labels: Sequence[str] | None = None
    subset: int | None = None
    share: InitVar[Exact] = 0

    def __post_init__(self, share: Exact) -> None:
        exact, declared = epsilon_parameter(self.epsilon), share_parameter(share)
        set_fields(self, epsilon=self.epsilon)
        settle_categories(self, most=MOST_CATEGORIES)
        chosen = best_subset(exact, self.categories, declared) if self.subset is None else self.subset
        d = whole("subset", chosen)
        if d >= self.categories:
            raise InvalidParameter(
                parameter="subset", value=d, must=f"be below the number of categories ({self.categories})",
                hint="all categories together would reveal nothing",
            )  # fmt: skip
        set_fields(self, subset=d)

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        categories: int = 2,
        labels: Sequence[str] | None = None,
        subset: int | None = None,
        share: Exact = 0,
    ) -> SubsetSelection:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, categories=categories, labels=labels, subset=subset, share=share)

    @property
    def size(self) -> int:
        """The number of categories that an answer names."""
        assert self.subset is not None
        return self.subset

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("subset-selection",)

    @property
    def event(self) -> SimpleEvent:
        """One answer: each category is in a share d/k of the sets, two of them in d (d-1) / (k (k-1))."""
        k, d = self.categories, self.size
        return events.BalancedResponseEvent(
            epsilon=float(self.bound.epsilon),
            outcomes=k * (k - 1),
            supporting=d * (k - 1),
            shared=d * (d - 1),
        )

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "subset selection",
            "epsilon": shown(epsilon_parameter(self.epsilon)),
            "categories": int(self.categories),
            "subset": self.size,
            "exact": True,
        }

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """One answer for each person: a row of `subset` categories, sorted as they are listed."""
        source = source if source is not None else default_source()
        truth = np.atleast_1d(self._column("values", values)).astype(np.int64)
        rows = max(1, _CELLS // self.categories)
        parts = [self._answers(truth[i : i + rows], source) for i in range(0, truth.size, rows)]
        codes = np.concatenate(parts) if parts else np.empty((0, self.size), dtype=np.int64)
        return self._named(codes, source.publishable)

    def _answers(self, truth: npt.NDArray[np.int64], source: Source) -> npt.NDArray[np.int64]:
        k, d, n = self.categories, self.size, truth.size
        own = _own_named(epsilon_parameter(self.epsilon), k, d).sample(size=n, source=source).astype(np.bool_)
        # The first steps of a shuffle of the k - 1 others, by place after the truth: as many draws for everyone.
        others = np.tile(np.arange(1, k, dtype=np.int64), (n, 1))
        people = np.arange(n)
        for i in range(min(d, k - 1)):
            j = i + uniform_integer(k - 1 - i, size=n, source=source).astype(np.int64)
            others[people, i], others[people, j] = others[people, j], others[people, i].copy()
        chosen = others[:, :d]
        chosen[:, d - 1] = np.where(own, 0, chosen[:, d - 1])  # one's own instead of the last
        return np.sort((chosen + truth[:, None]) % k, axis=1)

    def _sets(self, answers: object) -> npt.NDArray[np.int64]:
        """Answers as sorted rows of categories, checked."""
        coded = self._coded("answers", answers)
        if coded.size == 0:
            return np.empty((0, self.size), dtype=np.int64)
        if coded.ndim != 2 or coded.shape[1] != self.size:
            raise InvalidParameter(
                parameter="answers", value=f"an array of shape {coded.shape}",
                must=f"have a row an answer and {self.size} columns", hint="an answer names this many categories",
            )  # fmt: skip
        rows = np.sort(coded.astype(np.int64), axis=1)
        if bool((np.diff(rows, axis=1) == 0).any()):
            raise InvalidParameter(
                parameter="answers",
                value="an answer that names a category twice",
                must="name different categories",
            )
        return rows

    def supports(self, answers: object) -> npt.NDArray[np.bool_]:
        """Which categories each answer names."""
        rows = self._sets(answers)
        found = np.zeros((len(rows), self.categories), dtype=np.bool_)
        np.put_along_axis(found, rows, True, axis=1)
        return found

    def supported(self, answers: object) -> tuple[npt.NDArray[np.int64], int]:
        rows = self._sets(answers)
        return np.bincount(rows.ravel(), minlength=self.categories), len(rows)

    def _ball_chances(self) -> tuple[Any, Any, Any]:
        return _chance_balls(epsilon_parameter(self.epsilon), self.categories, self.size)


# Hadamard response: one answer of log2 k bits for any number of categories, estimated by a fast transform.

MOST_HADAMARD_CATEGORIES = (1 << 24) - 1


@lru_cache(maxsize=64)
def _even(epsilon: Fraction) -> Bernoulli:
    """The coin of an answer in the half of one's own category: e^epsilon / (e^epsilon + 1)."""
    chance = CertifiedReal(
        evaluate=lambda: ball(epsilon).exp() / (ball(epsilon).exp() + 1), name="the chance of one's own half"
    )
    return Bernoulli(probability_of_one=chance)


def walsh_hadamard(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """sum_y (-1)^popcount(r & y) values[y] for every r, in integers and K log2 K steps; K is a power of two."""
    out = values.astype(np.int64)
    width = 1
    while width < out.size:
        pairs = out.reshape(-1, 2, width)
        out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        width *= 2
    return out


def _odd(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether the number of ones is odd."""
    return (np.bitwise_count(bits) & 1).astype(np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(LocalMechanism):
    """A number y below K = 2^b, the least power of two above k: with probability e^epsilon / (e^epsilon + 1) one that
    has an even number of ones in common with the truth's row 1..k, else one with an odd number, uniformly.

    Guarantee: Pure(epsilon) for each answer of each person; reached. Sampling is exact. An answer has b bits, and all
    k estimates need one transform of the K counts of answers. Half of the answers support a category, so that p
    = e^epsilon / (e^epsilon + 1) and q = 1/2 for every k: n ((e^epsilon + 1) / (e^epsilon - 1))^2 is the
    variance of an empty category's estimate. Theorems `hadamard-response`, `local-intervals`. Source: Acharya,
    Sun and Zhang 2019.
    """

    epsilon: Exact
    categories: int = 2
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_fields(self, epsilon=epsilon_value)
        settle_categories(self, most=MOST_HADAMARD_CATEGORIES)

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, categories: int = 2, labels: Sequence[str] | None = None
    ) -> HadamardResponse:
        """The mechanism of this epsilon: the constructor itself, under the name that all mechanisms share."""
        return cls(epsilon=epsilon, categories=categories, labels=labels)

    @property
    def outcomes(self) -> int:
        """K, the number of possible answers."""
        return 1 << int(self.categories).bit_length()

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("hadamard-response",)

    @property
    def event(self) -> SimpleEvent:
        """One answer: half of the outcomes support a category, a quarter two of them."""
        return events.BalancedResponseEvent(
            epsilon=float(self.bound.epsilon), outcomes=4, supporting=2, shared=1
        )

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "Hadamard response",
            "epsilon": shown(epsilon_parameter(self.epsilon)),
            "categories": int(self.categories),
            "outcomes": self.outcomes,
            "exact": True,
        }

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """One answer for each person, a number 0..K-1; it has no label, since each answer supports half of the
        categories.
        """
        source = source if source is not None else default_source()
        row = self._column("values", values).astype(np.int64) + 1
        drawn = uniform_integer(self.outcomes, size=row.shape, source=source).astype(np.int64)
        even = _even(epsilon_parameter(self.epsilon)).sample(size=row.shape, source=source).astype(np.bool_)
        # Turning the lowest bit of the row maps one half onto the other.
        answers = np.where(_odd(row & drawn) == even, drawn ^ (row & -row), drawn)
        return Reports(
            values=np.asarray(answers, dtype=np.int64), spacing=Fraction(1), publishable=source.publishable
        )

    def _answers(self, answers: object) -> npt.NDArray[np.int64]:
        given = answers.values if isinstance(answers, Released) else answers
        column = integer_array(given, name="answers")  # type: ignore[arg-type]
        if column.ndim > 1 or (
            column.size and not (int(column.min()) >= 0 and int(column.max()) < self.outcomes)
        ):
            raise InvalidParameter(
                parameter="answers", value="what is no column of answers",
                must=f"be one number in 0..{self.outcomes - 1} a person", hint="what release() drew",
            )  # fmt: skip
        return column.astype(np.int64).ravel()

    def supports(self, answers: object) -> npt.NDArray[np.bool_]:
        """The categories whose halves contain each answer."""
        given = self._answers(answers)
        return ~_odd(given[:, None] & np.arange(1, self.categories + 1, dtype=np.int64)[None, :])

    def supported(self, answers: object) -> tuple[npt.NDArray[np.int64], int]:
        given = self._answers(answers)
        even_less_odd = walsh_hadamard(np.bincount(given, minlength=self.outcomes))
        return (given.size + even_less_odd[1 : self.categories + 1]) // 2, given.size

    def _ball_chances(self) -> tuple[Any, Any, Any]:
        epsilon = ball(epsilon_parameter(self.epsilon))
        grown = epsilon.exp()
        return grown / (grown + 1), 1 / ball(2), epsilon.expm1() / (grown + 1) / 2


# Which local mechanism a question gets: the one with the smallest error among those whose answers can be sent.


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCandidate:
    """A local mechanism, the variance of an estimated count per person, and the bits of an answer.

    The variance is that of a category with the declared share of the people.
    """

    mechanism: LocalMechanism
    variance: float
    bits: int
    allowed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChoice:
    """The mechanism, the reason for it, and the rejected candidates."""

    mechanism: LocalMechanism
    reason: str
    considered: tuple[LocalCandidate, ...]


def _candidate(mechanism: LocalMechanism, bits: int, most: int, share: float) -> LocalCandidate:
    outside, inside = (mechanism.variance(people=1, count=count) for count in (0, 1))
    variance = outside if share == 0 else (1 - share) * outside + share * inside
    return LocalCandidate(mechanism=mechanism, variance=variance, bits=bits, allowed=bits <= most)


def local_mechanism(
    *,
    epsilon: Exact,
    categories: int = 2,
    labels: Sequence[str] | None = None,
    most_bits: int = 8192,
    share: Exact = 0,
) -> LocalChoice:
    """The mechanism with the smallest variance among those whose answers have at most `most_bits` bits.

    It compares randomised response, subset selection and Hadamard response of the same epsilon by the variance of the
    estimated count of a category that a declared `share` of the people have. The default is a category that nobody
    has: most of the noise of a long list falls on such categories. No part of it reads answers. Of equal variances,
    the shorter answer wins.
    """
    declared = float(share_parameter(share))
    most = whole("most_bits", most_bits)
    response = RandomizedResponse(epsilon=epsilon, categories=categories, labels=labels)
    k = response.categories
    name = (k - 1).bit_length()
    found = [_candidate(response, name, most, declared)]
    if k <= MOST_CATEGORIES:
        subset = SubsetSelection(epsilon=epsilon, categories=categories, labels=labels, share=share)
        # A list of names, or a bit for each category.
        found.append(_candidate(subset, min(subset.size * name, k), most, declared))
    if k <= MOST_HADAMARD_CATEGORIES:
        hadamard = HadamardResponse(epsilon=epsilon, categories=categories, labels=labels)
        found.append(_candidate(hadamard, k.bit_length(), most, declared))
    allowed = [one for one in found if one.allowed]
    if not allowed:
        raise InvalidParameter(
            parameter="most_bits", value=most_bits, must=f"be at least {min(one.bits for one in found)}",
            hint="the shortest possible answer has this many bits",
        )  # fmt: skip
    # Rounding apart, subsets of one category are randomised response.
    best = min(allowed, key=lambda one: (float(f"{one.variance:.12g}"), one.bits, found.index(one)))
    return LocalChoice(
        mechanism=best.mechanism, reason=_reason(best, found, declared), considered=tuple(found)
    )


def _reason(best: LocalCandidate, found: list[LocalCandidate], share: float) -> str:
    others = [one for one in found if one is not best]
    words = [
        f"{_WORDS[type(one.mechanism)]} {one.variance:.3g}"
        + ("" if one.allowed else f" (but {one.bits:,} bits)")
        for one in others
    ]
    counted = f"a category with a share of {share:.3g}" if share else "an empty category"
    size = f" of {best.mechanism.size}" if isinstance(best.mechanism, SubsetSelection) else ""
    return (
        f"{_WORDS[type(best.mechanism)]}{size}: the count of {counted} has variance {best.variance:.3g} n, "
        f"an answer {best.bits:,} bits" + (f"; against {', '.join(words)}" if words else "")
    )


_WORDS: dict[type[LocalMechanism], str] = {
    RandomizedResponse: "randomised response",
    SubsetSelection: "subset selection",
    HadamardResponse: "Hadamard response",
}
