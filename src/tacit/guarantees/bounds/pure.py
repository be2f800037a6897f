"""Pure epsilon: no output is more than e^epsilon times likelier on one neighbour than on the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from tacit.exact.checks import Numbers, non_negative
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, upper
from tacit.guarantees.bounds.base import Bound, Level

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(Bound):
    """epsilon-differential privacy.

    Randomised response with the same epsilon is the worst case (theorem `approximate-profile`), so that
        delta(e) = (e^epsilon - e^e) / (1 + e^epsilon) for e < epsilon, else 0,
        D_a = ln( cosh((a - 1/2) epsilon) / cosh(epsilon/2) ) / (a - 1)     (theorem `pure-to-renyi`).
    Source: Dwork, McSherry, Nissim, Smith 2006; Kairouz, Oh, Viswanath 2015; Groce 2014, Def. 3.3.
    """

    kind: ClassVar[str] = "pure"
    epsilon: Level

    def __init__(self, *, epsilon: float) -> None:
        value = non_negative("epsilon", epsilon)
        object.__setattr__(self, "epsilon", Level(value, self.epsilon_at))

    def delta(self, epsilon: Numbers) -> Numbers:  # type: ignore[override]
        """The smallest delta at this epsilon."""
        return self.delta_at(epsilon)

    def _delta(self, epsilon: float) -> float:
        own = float(self.epsilon)
        if epsilon >= own:
            return 0.0
        # (e^own - e^e)/(1 + e^own), written so that large epsilons cannot overflow and small ones cancel.
        return upper(lambda: -(ball(epsilon) - ball(own)).expm1() / (1 + (-ball(own)).exp()))

    def _epsilon(self, delta: float) -> float:
        own = float(self.epsilon)
        if delta == 0 or own == 0:
            return own

        def inverse() -> arb:
            return ball(own) + (-ball(delta) * (1 + (-ball(own)).exp())).log1p()

        if delta * (1 + math.exp(-own)) >= 1 - 1e-12:
            return 0.0 if self._delta(0.0) <= delta else own
        return min(own, max(0.0, upper(inverse)))

    def _renyi(self, order: float) -> float:
        own = float(self.epsilon)
        if math.isinf(order) or own == 0:
            return own

        def divergence() -> arb:
            e, a = ball(own), ball(order)
            # ln cosh(x) = x + ln(1 + e^{-2x}) - ln 2 for x >= 0
            top = (a - 0.5) * e + (-(2 * a - 1) * e).exp().log1p()
            return (top - e / 2 - (-e).exp().log1p()) / (a - 1)

        return min(own, upper(divergence))

    def _kullback_leibler(self) -> float:
        own = float(self.epsilon)
        return min(own, upper(lambda: ball(own) * (ball(own) / 2).tanh()))

    def describe(self) -> str:
        return f"epsilon = {self._short(self.epsilon)}"
