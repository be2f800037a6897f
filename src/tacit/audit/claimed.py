"""Claims under audit: a bound in words or as an object, and the ladder of claims around it.

Along a ladder one parameter rises and the claims get weaker: if one claim is true, so are all later ones. An
audit bets against each of them at once. The lower bound is the end of the unbroken run of rejected claims from
the bottom up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, Approximate, Bound, Concentrated, GaussianDP, Guarantee, Pure

STEPS = (
    0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0,
    1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0,
)  # fmt: skip
"""The ladder, in multiples of the claim."""
FROM_ZERO = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
"""The ladder above a claim of 0."""
SHARES = (0.5, 0.1, 0.01)
"""Parts of delta(0) at which a curve is tested, besides epsilon = 0."""
_WORD = re.compile(r"\s*(epsilon|delta|rho|mu)\s*=\s*([^\s,;]+)\s*(?:[,;]|$|\s)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedClaim:
    """A claimed bound, with the parameter along which weaker and stronger claims lie."""

    bound: Bound
    parameter: str = ""
    """epsilon, mu or rho; empty for a curve without one."""

    @property
    def pure(self) -> bool:
        """Is it pure epsilon? Then single outputs are enough, with a coin."""
        return isinstance(self.bound, Pure)

    @property
    def value(self) -> float:
        """The claimed value of the parameter."""
        return float(getattr(self.bound, self.parameter)) if self.parameter else math.nan

    def at(self, value: float) -> Bound:
        """The claim of the ladder with this value."""
        if isinstance(self.bound, Pure):
            return Pure(epsilon=value)
        if isinstance(self.bound, Approximate):
            return Approximate(epsilon=value, delta=float(self.bound.delta))
        if isinstance(self.bound, GaussianDP):
            return GaussianDP(mu=value)
        if isinstance(self.bound, Concentrated):
            return Concentrated(rho=value)
        return self.bound

    def ladder(self) -> tuple[float, ...]:
        """The values at which claims are tested, rising; the claimed value is among them."""
        if not self.parameter:
            return (math.nan,)
        if self.value == 0:
            return (0.0, *FROM_ZERO)
        return tuple(self.value * step for step in STEPS)

    def epsilons(self) -> tuple[float, ...]:
        """The epsilons at which the claim's curve is held against frequencies."""
        if isinstance(self.bound, Pure):
            return (float(self.bound.epsilon),)
        top = float(self.bound.delta_at(0.0))
        found = {0.0}
        if isinstance(self.bound, Approximate):
            found |= {float(self.bound.epsilon) / 2, float(self.bound.epsilon)}
        else:
            found |= {float(self.bound.epsilon_at(top * share)) for share in SHARES if top > 0}
        return tuple(sorted(e for e in found if e < 30))

    def describe(self) -> str:
        """The claim as a phrase."""
        return self.bound.describe()


def claim_of(given: Any) -> AuditedClaim:
    """A claim from a text such as "epsilon=1, delta=1e-6", a bound or a guarantee."""
    if isinstance(given, AuditedClaim):
        return given
    if isinstance(given, Guarantee):
        if not isinstance(given.condition, Always):
            raise NoLaw(
                operation="an audit of a conditional guarantee",
                reason="neighbours fixed in advance say nothing about a claim under a condition on the data",
                hint="use tacit.audit.random_data or tacit.audit.distributional",
            )
        given = given.bound
    bound = _parsed(given) if isinstance(given, str) else given
    if not isinstance(bound, Bound):
        raise InvalidParameter(
            parameter="claim",
            value=given,
            must="be a bound or a text such as 'epsilon=1' or 'epsilon=1, delta=1e-6'",
        )
    kinds: dict[type, str] = {Pure: "epsilon", Approximate: "epsilon", GaussianDP: "mu", Concentrated: "rho"}
    if isinstance(bound, Approximate) and float(bound.delta) == 0:
        bound = Pure(epsilon=float(bound.epsilon))
    return AuditedClaim(bound=bound, parameter=kinds.get(type(bound), ""))


def _parsed(text: str) -> Bound:
    at, found = 0, dict[str, float]()
    while at < len(text.rstrip()):
        part = _WORD.match(text, at)
        if part is None:
            name = text[at:].strip().partition("=")[0].strip()
            if name not in ("epsilon", "delta", "rho", "mu") and name.isidentifier():
                raise UnknownName(
                    what="parameter of a claim", name=name, known=("epsilon", "delta", "rho", "mu")
                )
            raise InvalidParameter(
                parameter="claim",
                value=text,
                must="be such as 'epsilon=1', 'epsilon=1, delta=1e-6', 'rho=0.1' or 'mu=0.5'",
            )
        if part[1] in found:
            raise InvalidParameter(parameter="claim", value=text, must=f"name {part[1]} once")
        try:
            found[part[1]] = float(part[2])
        except ValueError:
            raise InvalidParameter(parameter=part[1], value=part[2], must="be a number") from None
        at = part.end()
    makers: dict[frozenset[str], Callable[..., Bound]] = {
        frozenset({"epsilon"}): Pure,
        frozenset({"epsilon", "delta"}): Approximate,
        frozenset({"rho"}): Concentrated,
        frozenset({"mu"}): GaussianDP,
    }
    make = makers.get(frozenset(found))
    if make is None:
        raise InvalidParameter(
            parameter="claim",
            value=text,
            must="name epsilon, or epsilon and delta, or rho, or mu",
            hint="one claim at a time: 'epsilon=1', 'epsilon=1, delta=1e-6', 'rho=0.1' or 'mu=0.5'",
        )
    return make(**found)
