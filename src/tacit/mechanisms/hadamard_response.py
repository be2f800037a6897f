"""Hadamard response: one answer of log2 k bits for any number of categories, estimated by a fast transform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import SimpleEvent
from tacit.errors import InvalidParameter
from tacit.exact.balls import ball
from tacit.exact.checks import settle
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact
from tacit.mechanisms.base import epsilon_parameter, shown
from tacit.mechanisms.grid import Released
from tacit.mechanisms.local import LocalMechanism, Reports, settle_categories
from tacit.noise import Bernoulli, CertifiedReal, uniform_integer
from tacit.noise.source import Source, default_source

__all__ = ["HadamardResponse", "walsh_hadamard"]

MOST_CATEGORIES = (1 << 24) - 1


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
    k estimates need one transform of the K counts of answers. A category is supported by half of the answers, so that
    p = e^epsilon / (e^epsilon + 1) and q = 1/2, whatever k is: n ((e^epsilon + 1) / (e^epsilon - 1))^2 is the variance
    of an empty category's estimate. Theorems `hadamard-response`, `local-intervals`. Source: Acharya, Sun and Zhang
    2019.
    """

    epsilon: Exact
    categories: int = 2
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        settle_categories(self, most=MOST_CATEGORIES)

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
        """One answer for each person, a number 0..K-1; no label, since each speaks for half of the categories."""
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
        """Which categories' halves each answer lies in."""
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
