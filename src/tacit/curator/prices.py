"""The offer for a release: a price in one of the field's currencies, or an accuracy.

Numbers that people type are decimals: 0.2 means one fifth, not the binary number nearest to it. Prices,
calibration and ledger use fractions, so that five times 0.2 is 1.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Approximate, Bound, Concentrated, GaussianDP, Guarantee, Pure, RandomData

Number = int | float | Fraction | Decimal

CONFIDENCE = Fraction(95, 100)

MOST_DIGITS = 120
"""The largest number of digits in the numerator or denominator of a typed number; longer ones may take too
long to compute.
"""

LIMITS: dict[str, tuple[Fraction, Fraction]] = {
    "delta": (Fraction(1, 10**100), 1 - Fraction(1, 10**12)),
    "confidence": (Fraction(1, 1000), 1 - Fraction(1, 10**12)),
    "interval": (Fraction(1, 1000), 1 - Fraction(1, 10**12)),
    "random_data": (Fraction(1, 10**12), 1 - Fraction(1, 10**12)),
}
ANY = (Fraction(1, 10**12), Fraction(10**9))
"""The allowed range of epsilons, rhos, mus, errors and weights: no noise could be drawn for values outside."""

SMALLEST = Fraction(1, 10**30)
"""The smallest share of a price that weights may leave."""


def decimal(parameter: str, value: object) -> Fraction:
    """The typed number, exactly: a float stands for its shortest decimal."""
    exact = _exact(value)
    if exact is None:
        raise InvalidParameter(
            parameter=parameter, value=_shown(value), must=f"be a finite number of at most {MOST_DIGITS} digits",
            hint="0.5, 1e-6, Fraction(1, 3)",
        )  # fmt: skip
    if exact <= 0:
        raise InvalidParameter(parameter=parameter, value=_shown(value), must="be above 0")
    low, high = LIMITS.get(parameter, ANY)
    if not low <= exact <= high:
        most = f"at most {float(high):g}" if high >= 1 else "below 1 by 1e-12 or more"
        raise InvalidParameter(
            parameter=parameter, value=_shown(value), must=f"be at least {float(low):g} and {most}"
        )
    return exact


def _exact(value: object) -> Fraction | None:
    """A number as a fraction; None for other values, infinite ones, and numbers with too many digits."""
    import numpy as np

    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | Fraction | Decimal | np.integer | np.floating
    ):
        return None
    if isinstance(value, Decimal):
        # Check the text before converting it: 1e-999999999 is short, and its fraction does not fit into memory.
        if not value.is_finite() or (value and abs(value.adjusted()) > MOST_DIGITS):
            return None
    elif isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return None
        value = str(value)
    elif isinstance(value, np.integer):
        value = int(value)
    try:
        exact = Fraction(value)
    except ValueError:  # a float of another kind, whose text is no number
        return None
    longest = max(abs(exact.numerator), exact.denominator)
    # 1e-320 is a float of few digits, far below every limit: it is refused there, by name.
    return exact if longest < 10**MOST_DIGITS or isinstance(value, str) else None


def _shown(value: object) -> object:
    """The form of a value in an error: a short text, or its type."""
    try:
        short = len(repr(value)) <= 40
    except ValueError:  # an integer too long to be written
        short = False
    return value if short else f"a {type(value).__name__} of many digits"


def flag(parameter: str, value: object) -> bool:
    """True or False; refuses other values that Python counts as true or false."""
    import numpy as np

    if not isinstance(value, bool | np.bool_):
        raise InvalidParameter(parameter=parameter, value=_shown(value), must="be True or False")
    return bool(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One of epsilon (pure); epsilon and delta; rho; mu; or an accuracy, `within` at a confidence.

    With `simultaneous` all cells stay within the error at once, otherwise each cell separately. With an
    accuracy, `delta` is the largest delta that may be spent if that makes it cheaper. `weight` is a share of a plan's
    price; a release with a weight has no price of its own.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    mu: Fraction | None = None
    within: Fraction | None = None
    confidence: Fraction = CONFIDENCE
    simultaneous: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "simultaneous", flag("simultaneous", self.simultaneous))
        for name in ("epsilon", "delta", "rho", "mu", "within", "confidence"):
            value = getattr(self, name)
            if value is None and name != "confidence":
                continue
            if not (isinstance(value, Fraction) and value > 0):
                raise InvalidParameter(parameter=name, value=_shown(value), must="be a fraction above 0")
        for name in ("delta", "confidence"):
            if (getattr(self, name) or 0) >= 1:
                raise InvalidParameter(parameter=name, value=_shown(getattr(self, name)), must="be below 1")
        given = {n: v for n in ("epsilon", "rho", "mu", "within") if (v := getattr(self, n)) is not None}
        if len(given) != 1 or (self.delta is not None and not {"epsilon", "within"} & set(given)):
            raise InvalidParameter(
                parameter="price", value=sorted(given), must="be one of epsilon, rho, mu and within",
                hint="a delta goes with epsilon or within",
            )  # fmt: skip
        for name, value in given.items():
            if not SMALLEST <= value <= ANY[1]:
                raise InvalidParameter(
                    parameter=name, value=_shown(value), must="be at least 1e-30 and at most 1e+09",
                    hint="no noise could be drawn for a smaller share of a price",
                )  # fmt: skip

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

    @property
    def spent_delta(self) -> Fraction:
        """The part of delta that noise without a pure epsilon spends at this price."""
        return self.delta or Fraction(0)

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
                return GaussianDP(mu=float(self.mu or 0))
        raise InvalidParameter(parameter="price", value="an accuracy", must="be turned into a price first")

    def part(self, share: Fraction) -> Price:
        """This share of the price: epsilons, deltas and rhos add up, and the squares of mus do."""
        from tacit.exact.rounding import ball, lower

        if not isinstance(share, Fraction) or share <= 0:
            raise InvalidParameter(parameter="share", value=_shown(share), must="be a fraction above 0")

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


def stated(*, simultaneous: bool, **words: Number | None) -> Price | None:
    """The stated price; None if no part of it is given."""
    given = simultaneous is not False or any(value is not None for value in words.values())
    return price(simultaneous=simultaneous, **words) if given else None


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
    """The price that these words state. Nothing has a default, and two prices at once are refused."""
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
    simultaneous = flag("simultaneous", simultaneous)
    if within is None and (confidence is not None or simultaneous):
        raise InvalidParameter(
            parameter="confidence", value=confidence, must="come with within=",
            hint="intervals always have 95%; release(..., confidence=) belongs to within=",
        )  # fmt: skip
    level = CONFIDENCE if confidence is None else decimal("confidence", confidence)
    return Price(
        epsilon=None if epsilon is None else decimal("epsilon", epsilon),
        delta=None if delta is None else decimal("delta", delta),
        rho=None if rho is None else decimal("rho", rho),
        mu=None if mu is None else decimal("mu", mu),
        within=None if within is None else decimal("within", within),
        confidence=level,
        simultaneous=simultaneous,
    )


def exact_numbers(budget: Guarantee) -> dict[str, Fraction]:
    """The decimals that a budget's floats were typed as, for the ledger."""
    condition = budget.condition
    numbers: dict[str, Any] = {"gamma": condition.gamma} if isinstance(condition, RandomData) else {}
    if isinstance(budget.bound, Pure | Approximate | Concentrated):
        numbers |= budget.bound.parameters
    return {
        name: Fraction(repr(float(value)))
        for name, value in numbers.items()
        if isinstance(value, float) and math.isfinite(value)
    }
