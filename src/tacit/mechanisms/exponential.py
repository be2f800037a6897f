"""The exponential mechanism over a finite list, and on an interval of the line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.balls import precision
from tacit.exact.checks import plain, settle, whole
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Pure
from tacit.mechanisms.base import Mechanism, confidence_level, epsilon_parameter, shown
from tacit.mechanisms.sensitivity import Score, need
from tacit.noise import Categorical
from tacit.noise.source import Source, default_source

if TYPE_CHECKING:
    from tacit.guarantees import Profile

__all__ = ["Chosen", "Exponential", "exact_scores"]

HINT = "it is sized by how far one unit moves one candidate's score: Score(1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The index of the chosen candidate; `publishable` is False for choices by a seeded source."""

    index: int
    publishable: bool
    numerical_delta: float = 0.0


def exact_scores(scores: Sequence[Exact] | npt.NDArray[Any]) -> list[Fraction]:
    """Scores as exact rationals, larger is better; finite, at least one."""
    found: list[Fraction] = []
    for score in scores:
        if isinstance(score, bool) or not isinstance(
            score, int | float | Fraction | np.integer | np.floating
        ):
            raise InvalidParameter(
                parameter="scores", value=type(score).__name__, must="hold numbers", hint="larger is better"
            )
        if isinstance(score, float | np.floating) and not math.isfinite(score):
            # The score itself may be a person's secret, so that it is not shown.
            raise InvalidParameter(
                parameter="scores", value="a score that is not finite", must="be finite",
                hint="clip the scores to a public range; leave out a candidate only for public reasons",
            )  # fmt: skip
        found.append(Fraction(plain(score)))
    if not found:
        raise EmptyComposition(what="the list of candidates", hint="give at least one score")
    return found


def score_rate(epsilon: Exact, sensitivity: Score) -> Fraction:
    """What a unit of score weighs: epsilon / (2 sensitivity), or epsilon / sensitivity if scores move together."""
    return epsilon_parameter(epsilon) / (sensitivity.exact * (1 if sensitivity.monotone else 2))


class SelectionMechanism(Mechanism):
    """A choice among candidates by their scores; larger is better."""

    __slots__ = ()

    epsilon: Exact
    sensitivity: Score

    @property
    def rate(self) -> Fraction:
        """What a unit of score weighs in the exponent."""
        return score_rate(self.epsilon, self.sensitivity)

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    def choose(self, scores: Sequence[Exact] | npt.NDArray[Any], *, source: Source | None = None) -> Chosen:
        """The index of the chosen candidate."""
        source = source if source is not None else default_source()
        return Chosen(index=self._choose(exact_scores(scores), source), publishable=source.publishable)

    def _choose(self, scores: list[Fraction], source: Source) -> int:
        raise NotImplementedError

    def probabilities(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The law of the choice given the scores: a secret, for tests and plans on made-up scores."""
        raise NotImplementedError

    def loss(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> float:
        """E [best score - chosen score] given the scores: a secret too."""
        exact = exact_scores(scores)
        best = max(exact)
        return float(np.dot(self.probabilities(exact), [float(best - s) for s in exact]))

    def expected_error(self, *, candidates: int) -> float:
        """The worst E [best score - chosen score] over all scores of this many candidates."""
        raise NotImplementedError

    def error_quantile(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """What best score - chosen score stays within, for all scores of this many candidates."""
        raise NotImplementedError

    def max_error(self, *, confidence: Exact = 0.95, dimension: int, candidates: int) -> float:
        """For `dimension` independent choices at once."""
        level = float(confidence_level(confidence)) ** (1 / whole("dimension", dimension, least=1))
        return self.error_quantile(level, candidates=candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(SelectionMechanism):
    """Pr[i] proportional to exp(epsilon score_i / (2 sensitivity)), exactly, for scores of which larger is better.

    Guarantee: Pure(epsilon); its range of losses is bounded, so that its curve is better (`profile`). If the
    scores are monotone the factor 2 falls away. Reached as the number of candidates grows.
    Theorem `exponential-mechanism`. Source: McSherry, Talwar 2007; Hall 2012, Prop. 1.3.5; Groce 2014, Thm 3.4
    (whose sign is that of a loss).
    """

    epsilon: Exact
    sensitivity: Score

    def __post_init__(self) -> None:
        epsilon_parameter(self.epsilon)
        settle(self, epsilon=self.epsilon)
        need("exponential", self.sensitivity, (Score,), HINT)

    @property
    def profile(self) -> Profile:
        """The curve of a mechanism with epsilon-bounded range (Dong, Durfee, Rogers 2020)."""
        from tacit.guarantees import Profile
        from tacit.pld import ExponentialPair

        return Profile.of_pair(ExponentialPair(epsilon=float(self.bound.epsilon)))

    @property
    def event(self) -> Event:
        """The exponential mechanism: its losses range over an interval of length epsilon."""
        return events.ExponentialEvent(epsilon=float(self.bound.epsilon))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("exponential-mechanism",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {"distribution": "exponential mechanism", "rate": shown(self.rate), "exact": True}

    def _distribution(self, scores: list[Fraction]) -> Categorical:
        best = max(scores)
        return Categorical(log_weights=[(s - best) * self.rate for s in scores])

    def _choose(self, scores: list[Fraction], source: Source) -> int:
        return int(self._distribution(scores).sample(source=source))

    def probabilities(self, scores: Sequence[Exact] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        exact = exact_scores(scores)
        law = self._distribution(exact)
        with precision(128):
            return np.array([float(law.probability_ball(i).mid()) for i in range(len(exact))])

    def expected_error(self, *, candidates: int) -> float:
        """W((k - 1)/e) / rate, Lambert's W: reached when all but one candidate are equally bad."""
        from scipy.special import lambertw

        k = whole("candidates", candidates, least=1)
        return float(lambertw((k - 1) / math.e).real / float(self.rate))

    def error_quantile(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """ln((k - 1) c / (1 - c)) / rate at confidence c: exact for the worst scores."""
        k = whole("candidates", candidates, least=1)
        level = float(confidence_level(confidence))
        if k == 1:
            return 0.0
        return max(0.0, math.log((k - 1) * level / (1 - level)) / float(self.rate))
