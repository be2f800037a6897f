"""Laws of coupled worlds on (epsilon, delta): from simulators to posteriors and to pairs of values.

Each takes the numbers of one definition and gives those of another, rounded against ourselves. What they are about is
in `tacit.coupled`; here are only the constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import NoLaw
from tacit.exact.balls import ball, lower, upper
from tacit.exact.checks import non_negative, probability
from tacit.exact.rounding import product, up
from tacit.guarantees.arguments import how_many
from tacit.guarantees.bounds import Approximate, Bound, Pure
from tacit.guarantees.laws.registry import law

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "pair_of_values",
    "posterior_coupled",
    "posterior_coupled_printed",
    "posterior_pufferfish",
    "semantic_to_dp",
]


@law("simulator-to-pair", operation="coupled")
def pair_of_values(*, epsilon: float, delta: float = 0.0) -> Bound:
    """(2 epsilon, (1 + e^epsilon) delta) between two values with the same scrubbed data."""
    e, d = non_negative("epsilon", epsilon), probability("delta", delta)
    return _bound("two values", product(2.0, e).high, upper(lambda: (1 + ball(e).exp()) * ball(d)))


@law("posteriors-in-coupled-worlds", operation="coupled")
def posterior_coupled(*, epsilon: float, delta: float = 0.0, family: int = 1) -> Bound:
    """(2 epsilon + ln(1/(1 - d)), d) for posteriors, d = sqrt((1 + e^epsilon) family delta)."""
    e, d, g = non_negative("epsilon", epsilon), probability("delta", delta), how_many("family", family)
    wider = upper(lambda: ((1 + ball(e).exp()) * g * ball(d)).sqrt())
    if wider >= 1:
        raise NoLaw(operation="posteriors", reason="delta would reach 1, and then nothing is promised")
    return _bound("posteriors", upper(lambda: 2 * ball(e) - (1 - ball(wider)).log()), wider)


@law("posteriors-in-coupled-worlds-printed", operation="coupled", rests_on="posteriors-in-coupled-worlds")
def posterior_coupled_printed(*, epsilon: float, delta: float = 0.0, family: int = 1) -> Bound:
    """The printed (3 epsilon, 2 sqrt(family delta)), where it is proved; NoLaw with the counterexample elsewhere."""
    e, d, g = non_negative("epsilon", epsilon), probability("delta", delta), how_many("family", family)
    wider = upper(lambda: 2 * (g * ball(d)).sqrt())
    if upper(lambda: ball(e).exp()) > 3 or wider > lower(lambda: 1 - (-ball(e)).exp()):
        raise NoLaw(
            operation="the printed form of Thm 5.2",
            reason="it was proved for e^epsilon <= 3 and 2 sqrt(family delta) <= 1 - e^-epsilon only",
            counterexample="at epsilon = ln 6, delta = 1/400 a row with nine values, whose posterior excludes one "
            "of them with probability 0.12 where at most 0.1 is allowed",
            hint="use the corrected form, posterior_coupled",
        )
    return _bound("posteriors", product(3.0, e).high, wider)


@law("posteriors-in-pufferfish", operation="coupled")
def posterior_pufferfish(*, epsilon: float, delta: float = 0.0, wider: float | None = None) -> Bound:
    """(c, (1 + e^-c) delta / (1 - e^(epsilon - c))), c = wider or 2 epsilon; epsilon itself for delta = 0."""
    e, d = non_negative("epsilon", epsilon), probability("delta", delta)
    c = product(2.0, e).high if wider is None else non_negative("wider", wider)
    if d == 0:
        return Pure(epsilon=e)
    if c <= e:
        raise NoLaw(
            operation="posteriors",
            reason="with a delta the epsilon of posteriors must be above the one of outputs",
        )

    def failing() -> arb:
        return (1 + (-ball(c)).exp()) * ball(d) / (1 - (ball(e) - ball(c)).exp())

    return _bound("posteriors", c, upper(failing))


@law("semantic-implies-dp", operation="coupled")
def semantic_to_dp(*, shift: float, delta: float = 0.0) -> Bound:
    """(ln((1 + 2s)/(1 - 2s)), 2 delta) for replaced rows."""
    s, d = probability("shift", shift), probability("delta", delta)
    if s >= 0.5:
        raise NoLaw(
            operation="semantic privacy to differential privacy",
            reason="beliefs between two data sets can never be more than 1/2 away from a fair coin",
        )
    wide = upper(lambda: ((1 + 2 * ball(s)) / (1 - 2 * ball(s))).log())
    return _bound("neighbours", wide, product(2.0, d).high)


def _bound(what: str, epsilon: float, delta: float) -> Bound:
    if delta >= 1:
        raise NoLaw(operation=what, reason="delta would reach 1, and then nothing is promised")
    return Pure(epsilon=epsilon) if delta == 0 else Approximate(epsilon=epsilon, delta=up(delta))
