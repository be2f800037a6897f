"""(epsilon, delta) in two strengths: for every event, and pointwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from tacit.exact.checks import non_negative, probability
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, upper
from tacit.guarantees.bounds.base import Bound, Level, no_renyi
from tacit.guarantees.bounds.pure import Pure

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximate(Bound):
    """(epsilon, delta)-differential privacy: P(S) <= e^epsilon Q(S) + delta for every event S.

    The worst case gives the data away with probability delta and is randomised response otherwise
    (Kairouz, Oh, Viswanath 2015; theorem `approximate-profile`), so that for e < epsilon
        delta(e) = delta + (1 - delta) (e^epsilon - e^e) / (1 + e^epsilon).
    delta is not a 'probability of failure' in general: see `Pointwise`.
    """

    kind: ClassVar[str] = "approximate"
    epsilon: Level
    delta: Level

    def __init__(self, *, epsilon: float, delta: float) -> None:
        object.__setattr__(self, "epsilon", Level(non_negative("epsilon", epsilon), self.epsilon_at))
        object.__setattr__(self, "delta", Level(probability("delta", delta, below_one=True), self.delta_at))

    def _delta(self, epsilon: float) -> float:
        own, stated = float(self.epsilon), float(self.delta)
        if epsilon >= own:
            return stated
        return upper(
            lambda: (
                ball(stated)
                - (1 - ball(stated)) * (ball(epsilon) - ball(own)).expm1() / (1 + (-ball(own)).exp())
            )
        )

    def _epsilon(self, delta: float) -> float:
        own, stated = float(self.epsilon), float(self.delta)
        if delta < stated:
            return math.inf
        if delta == stated or own == 0:
            return own
        if self._delta(0.0) <= delta:
            return 0.0

        def inverse() -> arb:
            rest = (ball(delta) - ball(stated)) / (1 - ball(stated))
            return ball(own) + (-rest * (1 + (-ball(own)).exp())).log1p()

        return min(own, max(0.0, upper(inverse)))

    def _renyi(self, order: float) -> float:
        if self.delta > 0:
            raise no_renyi("an (epsilon, delta) bound")
        return Pure(epsilon=float(self.epsilon)).renyi(order)

    def _kullback_leibler(self) -> float:
        if self.delta > 0:
            raise no_renyi("an (epsilon, delta) bound")
        return Pure(epsilon=float(self.epsilon))._kullback_leibler()

    def describe(self) -> str:
        return f"epsilon = {self._short(self.epsilon)} with delta = {self._short(self.delta)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise(Approximate):
    """Pointwise (epsilon, delta): outside an event of probability delta the loss is at most epsilon.

    For all neighbours there is a set A with P(A) >= 1 - delta on whose subsets P <= e^epsilon Q
    (Hall 2012, Prop. 1.2.3; Kasiviswanathan, Smith 2008). It implies `Approximate` with the same numbers
    and not conversely. It is what Groce's eq. (6.26) asks of a sample size. It is *not* closed under
    post-processing: merging outputs may spread the bad event (theorem `pointwise-post-processing`).
    """

    kind: ClassVar[str] = "pointwise"

    def __init__(self, *, epsilon: float, delta: float) -> None:
        Approximate.__init__(self, epsilon=epsilon, delta=delta)

    def describe(self) -> str:
        return (
            f"a loss of at most {self._short(self.epsilon)} except with probability {self._short(self.delta)}"
        )
