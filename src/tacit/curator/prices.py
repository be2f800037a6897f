"""What is offered for a release: a price in one of the field's currencies, or an accuracy.

Numbers that people type are decimals: 0.2 means one fifth, not the binary number nearest to it. They are kept as
fractions, noise is calibrated to the fractions, and the ledger adds fractions, so that five times 0.2 is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter
from tacit.guarantees import Approximate, Bound, Concentrated, Gaussian, Pure

__all__ = ["Number", "Price", "decimal", "exact_numbers", "price"]

Number = int | float | Fraction | Decimal

CONFIDENCE = Fraction(95, 100)


def decimal(parameter: str, value: object, *, most: int | None = None, zero: bool = False) -> Fraction:
    """The number that was typed, exactly: a float stands for its shortest decimal."""
    numeric = isinstance(value, int | float | Fraction | Decimal) and not isinstance(value, bool)
    if not numeric or not math.isfinite(value):  # type: ignore[arg-type]
        raise InvalidParameter(parameter=parameter, value=value, must="be a finite number")
    exact = Fraction(repr(float(value)) if isinstance(value, float) else str(value))
    if exact < 0 or (exact == 0 and not zero):
        raise InvalidParameter(parameter=parameter, value=value, must="be above 0")
    if most is not None and exact >= most:
        raise InvalidParameter(parameter=parameter, value=value, must=f"be below {most}")
    return exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One of: epsilon (pure); epsilon and delta; rho; mu; or an accuracy, `within` at a confidence.

    `simultaneous` means that all cells stay within the error at once; without it each does by itself. With an
    accuracy, `delta` says what may be spent of delta if that makes it cheaper. `weight` is a share of a plan's
    price; a release with a weight has no price of its own.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    mu: Fraction | None = None
    within: Fraction | None = None
    confidence: Fraction = CONFIDENCE
    simultaneous: bool = False

    @property
    def kind(self) -> str:
        """pure, approximate, concentrated, gaussian or accuracy."""
        if self.within is not None:
            return "accuracy"
        if self.rho is not None:
            return "concentrated"
        if self.mu is not None:
            return "gaussian"
        return "pure" if self.delta is None else "approximate"

    def bound(self) -> Bound:
        """The price as a bound, for people; numbers as floats."""
        match self.kind:
            case "pure":
                return Pure(epsilon=float(self.epsilon or 0))
            case "approximate":
                return Approximate(epsilon=float(self.epsilon or 0), delta=float(self.delta or 0))
            case "concentrated":
                return Concentrated(rho=float(self.rho or 0))
            case "gaussian":
                return Gaussian(mu=float(self.mu or 0))
        raise InvalidParameter(parameter="price", value="an accuracy", must="be turned into a price first")

    def part(self, share: Fraction) -> Price:
        """This share of the price: epsilons, deltas and rhos add up, and the squares of mus do."""
        from tacit.guarantees.balls import ball, lower

        def times(value: Fraction | None) -> Fraction | None:
            return None if value is None else value * share

        mu = self.mu
        if mu is not None and share != 1:
            square = mu * mu * share
            mu = Fraction(lower(lambda: ball(square).sqrt()))
        return replace(self, epsilon=times(self.epsilon), delta=times(self.delta), rho=times(self.rho), mu=mu)

    def describe(self) -> dict[str, Any]:
        """Plain values, fractions as text."""
        out: dict[str, Any] = {
            k: str(v)
            for k in ("epsilon", "delta", "rho", "mu", "within")
            if (v := getattr(self, k)) is not None
        }
        if self.within is not None:
            out |= {"confidence": str(self.confidence), "simultaneous": self.simultaneous}
        return out

    def __str__(self) -> str:
        if self.within is not None:
            scope = "all cells at once" if self.simultaneous else "each cell"
            return f"within {float(self.within):g} in {float(self.confidence):.4g} of cases, {scope}"
        return str(self.bound())


def price(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    within: Number | None = None,
    confidence: Number | None = None,
    simultaneous: bool = False,
) -> Price:
    """The price that these words state; nothing has a default, and two prices at once are refused."""
    given = [
        n for n, v in (("epsilon", epsilon), ("rho", rho), ("mu", mu), ("within", within)) if v is not None
    ]
    if len(given) != 1:
        raise InvalidParameter(
            parameter="price", value=given or None, must="be exactly one of epsilon=, rho=, mu= and within=",
            hint="epsilon=0.2 is a pure release, with delta= an (epsilon, delta) one; within=50 pays by accuracy",
        )  # fmt: skip
    if delta is not None and given[0] in ("rho", "mu"):
        raise InvalidParameter(
            parameter="delta", value=delta, must=f"be left out with {given[0]}=",
            hint="a concentrated or Gaussian release has a curve, not one delta",
        )  # fmt: skip
    if within is None and (confidence is not None or simultaneous):
        raise InvalidParameter(
            parameter="confidence", value=confidence, must="come with within=",
            hint="intervals always have 95%; release(..., confidence=) belongs to within=",
        )  # fmt: skip
    level = CONFIDENCE if confidence is None else decimal("confidence", confidence, most=1)
    return Price(
        epsilon=None if epsilon is None else decimal("epsilon", epsilon),
        delta=None if delta is None else decimal("delta", delta, most=1),
        rho=None if rho is None else decimal("rho", rho),
        mu=None if mu is None else decimal("mu", mu),
        within=None if within is None else decimal("within", within),
        confidence=level,
        simultaneous=bool(simultaneous),
    )


def exact_numbers(bound: Bound) -> dict[str, Fraction]:
    """The decimals that a budget's floats were typed as, for the ledger."""
    if not isinstance(bound, Pure | Approximate | Concentrated):
        return {}
    return {
        name: Fraction(repr(float(value)))
        for name, value in bound.parameters.items()
        if isinstance(value, float) and math.isfinite(value)
    }
