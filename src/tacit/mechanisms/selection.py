"""Private selection of one candidate out of k, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.checks import members, settle
from tacit.exact.rationals import Exact
from tacit.guarantees import Pure
from tacit.mechanisms.base import Mechanism
from tacit.mechanisms.exponential import Exponential, SelectionMechanism
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.sensitivity import Score
from tacit.noise.source import Source

__all__ = ["Selected", "Selection"]

METHODS: dict[str, type[SelectionMechanism]] = {
    "exponential": Exponential,
    "permute-and-flip": PermuteAndFlip,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The name of the chosen candidate; `publishable` is False for choices by a seeded source."""

    name: str
    publishable: bool
    numerical_delta: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Mechanism):
    """The name of the (nearly) best of a public list of candidates: a noisy maximum.

    Guarantee: Pure(epsilon) by permute-and-flip (the default: never worse) or the exponential mechanism (which
    composes better). Only the name is told, not its score: release that by another mechanism.
    """

    epsilon: Exact
    sensitivity: Score
    candidates: Sequence[str]
    method: Literal["permute-and-flip", "exponential"] = "permute-and-flip"

    def __post_init__(self) -> None:
        settle(self, epsilon=self.epsilon)
        names = members("candidates", self.candidates)
        if not names:
            raise EmptyComposition(what="the list of candidates", hint="name at least one")
        if not all(isinstance(name, str) for name in names):
            raise InvalidParameter(parameter="candidates", value=names, must="be names")
        if len(set(names)) != len(names):
            raise InvalidParameter(parameter="candidates", value=names, must="have different names")
        object.__setattr__(self, "candidates", names)
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise UnknownName(what="method of selection", name=str(self.method), known=METHODS)
        _ = self.mechanism

    @property
    def mechanism(self) -> Any:
        """The mechanism that chooses."""
        return METHODS[self.method](epsilon=self.epsilon, sensitivity=self.sensitivity)  # type: ignore[call-arg]

    @property
    def bound(self) -> Pure:
        found: Pure = self.mechanism.bound
        return found

    @property
    def event(self) -> Event:
        """That of the method."""
        inner: Event = self.mechanism.event
        return inner

    @property
    def theorems(self) -> tuple[str, ...]:
        """Those of the method."""
        found: tuple[str, ...] = self.mechanism.theorems
        return found

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {**self.mechanism.noise_distribution, "candidates": len(self.candidates)}

    def choose(self, scores: Mapping[str, Exact], *, source: Source | None = None) -> Selected:
        """The chosen name; `scores` has one number for each candidate, larger is better."""
        if set(scores) != set(self.candidates):
            raise InvalidParameter(
                parameter="scores", value=f"{len(scores)} names", must="have one score for each candidate",
                hint="a candidate that is left out tells that it was left out",
            )  # fmt: skip
        chosen = self.mechanism.choose([scores[name] for name in self.candidates], source=source)
        return Selected(name=self.candidates[chosen.index], publishable=chosen.publishable)

    def expected_error(self) -> float:
        """The worst E [best score - chosen score]."""
        return float(self.mechanism.expected_error(candidates=len(self.candidates)))

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """What best score - chosen score stays within, whatever the scores."""
        return float(self.mechanism.error_quantile(confidence, candidates=len(self.candidates)))

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """For `dimension` independent selections at once."""
        k = len(self.candidates)
        return float(self.mechanism.max_error(confidence=confidence, dimension=dimension, candidates=k))
