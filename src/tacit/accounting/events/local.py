"""Answers that people randomise themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.accounting.events.base import SimpleEvent, both_orders
from tacit.errors import InvalidParameter
from tacit.exact.checks import positive, settle, whole
from tacit.guarantees.arguments import how_many
from tacit.guarantees.units import Neighbours
from tacit.pld import ApproximatePair, BalancedResponsePair, Pair

__all__ = ["BalancedResponseEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedResponseEvent(SimpleEvent):
    """One answer of one person, where an outcome that supports the truth has odds e^epsilon against one that does not.

    Every category is supported by `supporting` of `outcomes`, every two of them together by `shared`: subset selection
    and Hadamard response are of this kind. Only the ratios of the three numbers matter.
    """

    kind: ClassVar[str] = "balanced_response"
    epsilon: float
    outcomes: int
    supporting: int
    shared: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        settle(
            self, outcomes=how_many("outcomes", self.outcomes, least=2),
            supporting=how_many("supporting", self.supporting), shared=whole("shared", self.shared, least=0),
        )  # fmt: skip
        if not (self.shared < self.supporting and 2 * self.supporting - self.shared <= self.outcomes):
            raise InvalidParameter(
                parameter="shared", value=self.shared,
                must="be below supporting, and 2 supporting - shared at most outcomes",
            )  # fmt: skip

    def pure(self) -> float:
        """Its epsilon."""
        return self.epsilon

    def pairs(self, neighbours: Neighbours) -> tuple[Pair, Pair]:
        """A respondent's answer is exchanged; leaving one out is a change of another kind."""
        if neighbours is not Neighbours.REPLACE_ONE:
            return both_orders(ApproximatePair(epsilon=self.epsilon, delta=0.0))
        return both_orders(
            BalancedResponsePair(
                epsilon=self.epsilon, outcomes=self.outcomes, supporting=self.supporting, shared=self.shared
            )
        )
