"""Prices and charges: the offer for a release, its cost in the budget's own terms, and the ledger's check of it.

An offer is a price in one of the field's currencies, or an accuracy. Numbers that people type are decimals: 0.2 means
one fifth, not the binary number nearest to it. Prices, calibration and ledger use fractions, so that five times 0.2
is 1. The ledger's check of a budget uses its own sums, or under
RandomData sums with gammas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import account, covers, events
from tacit.accounting.events import Event, flatten
from tacit.errors import BudgetExceeded, InternalError, InvalidParameter, NoLaw, TacitError
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down, up
from tacit.guarantees import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Guarantee,
    Neighbours,
    Priors,
    Pure,
    RandomData,
)
from tacit.guarantees.running_sum import APPROXIMATE, PURE, Amounts, Currency, currency_of, summed, typed
from tacit.ledger import (
    ChargeCheck,
    Ledger,
    Limit,
    on_random_data,
    parts_of,
    parts_words,
    standing_alone,
    standing_on_random_data,
)
from tacit.ledger import alone as paying_alone

if TYPE_CHECKING:
    from tacit.curator.assignments import Assignment
    from tacit.curator.planning import Plan


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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fractions as text."""
        out: dict[str, Any] = {
            k: str(v)
            for k in ("epsilon", "delta", "rho", "mu", "within")
            if (v := getattr(self, k)) is not None
        }
        if self.within is not None:
            out |= {"confidence": str(self.confidence), "simultaneous": self.simultaneous}
        return out

    describe = formerly("describe", method=True)

    def __str__(self) -> str:
        if self.within is not None:
            scope = "all cells at once" if self.simultaneous else "each cell"
            return f"within {float(self.within):g} in {float(self.confidence):.4g} of cases, {scope}"
        return str(self.bound())


def given_price(*, simultaneous: bool, **words: Number | None) -> Price | None:
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


# What a plan costs in the budget's own terms.
#
# The events of a plan are fixed before a row is read, so that the plan is one event, priced by the best theorem:
#
#     Pure          the sum of the epsilons, exactly
#     Approximate   the smaller of: the sum of epsilons and deltas; the epsilon of the composed curve at the plan's
#     delta
#     Concentrated  the sum of the rhos: mu^2/2 for Gaussian noise, epsilon tanh(epsilon/2) for pure epsilon
#     Gaussian      the root of the sum of mu^2, with Phi(mu/2) = e^epsilon/(1+e^epsilon) for pure epsilon
#     Renyi         the sum of the divergences at each of the budget's orders
#
# Sums are those of `tacit.guarantees.running_sum`. Charges of different plans then add up under a filter that is
# valid for questions chosen after earlier results.

WORTH_A_DELTA = Fraction(95, 100)
WORTH_A_CURVE = 2
"""The least number of events with a composed curve; a single event has its own price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A bound of the budget's kind, its exact numbers, and the theorem behind it."""

    bound: Bound
    exact: dict[str, Fraction] = field(default_factory=dict)
    theorem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The joint price of the releases without a separate price: a delta, and an epsilon that they divide.

    `epsilon` is None if each release pays for its own accuracy.
    """

    members: Sequence[int]
    epsilon: Fraction | None
    delta: Fraction


def charge(
    costs: Sequence[Assignment], budget: Bound, *, neighbours: Neighbours, shared: Shared | None = None
) -> Charged:
    """The price of releases fixed together; `shared` is the plan's own price, if several releases divide it.

    It is compared with the account of all events before it is returned (`must_cover`).
    """
    found = _priced(costs, budget, neighbours, shared)
    what = [e for c in costs for e in c.events]
    if not _adds_up(costs, found.bound, neighbours, shared):
        must_cover(found.bound, what, neighbours=neighbours, of="the charge of a plan")
    return found


def must_cover(bound: Bound, what: Sequence[Event], *, neighbours: Neighbours, of: str) -> None:
    """Raise InternalError unless the account of these events is at most this bound."""
    if not covers(bound, what, neighbours=neighbours):
        raise InternalError(what=of, reason="the account of its events is above the bound that it states")


def _adds_up(
    costs: Sequence[Assignment], bound: Bound, neighbours: Neighbours, shared: Shared | None
) -> bool:
    """Whether the epsilons and deltas of the releases, each at least the account of its own events, add up to the
    bound.

    The divided price counts as one release here. Epsilons and deltas of any releases add up
    (`compose-approximate-basic`).
    """
    if not isinstance(bound, Approximate):
        return False
    inside = set(shared.members) if shared is not None else set()
    groups: list[tuple[Fraction, Fraction, list[Event]]] = []
    if shared is not None and shared.epsilon is not None and inside:
        together = [e for i in sorted(inside) for e in costs[i].events]
        groups.append((shared.epsilon, shared.delta, together))
    else:
        inside = set()
    for i, cost in enumerate(costs):
        own = None if i in inside else cost.approximate()
        if own is not None:
            groups.append((*own, list(cost.events)))
        elif i not in inside:
            return False
    epsilon, delta = sum((g[0] for g in groups), Fraction(0)), sum((g[1] for g in groups), Fraction(0))
    if epsilon > Fraction(bound.epsilon) or delta > Fraction(bound.delta):
        return False
    return all(
        covers(Approximate(epsilon=up(e), delta=up(d)), found, neighbours=neighbours)
        for e, d, found in groups
    )


def _priced(
    costs: Sequence[Assignment], budget: Bound, neighbours: Neighbours, shared: Shared | None
) -> Charged:
    currency = currency_of(budget)
    if currency is None:
        raise NoLaw(
            operation=f"a charge to a {budget.kind} budget", reason="there is no running total of this kind"
        )
    if currency is APPROXIMATE:
        return _approximate(costs, neighbours, shared)
    each = []
    for cost in costs:
        own = currency.of_release(cost, neighbours=neighbours)
        if own is None:
            raise _no_price(currency, cost)
        each.append((own, 1))
    return _charged(currency, summed(currency, each), theorem=currency.theorem)


def _charged(currency: Currency, total: Amounts, *, theorem: str) -> Charged:
    """The sum as a bound, beside its numbers before they are rounded to floats."""
    return Charged(bound=currency.bound(total), exact=currency.exact(total), theorem=theorem)


_WHY: dict[str, tuple[str, str, str]] = {
    "pure": (
        "a pure", "Gaussian noise and unknown keys have no pure epsilon",
        "pay with epsilon= alone, or state the budget as Approximate or Concentrated",
    ),
    "concentrated": (
        "a concentrated", "selecting unknown keys has a delta, and no rho",
        "declare the keys with category([...]), or state the budget as Approximate",
    ),
    "gaussian": ("a Gaussian", "{kinds} has no mu", "state the budget as Concentrated or Approximate"),
    "renyi": ("a Rényi", "{kinds} has no divergence", "state the budget as Approximate"),
}  # fmt: skip


def _no_price(currency: Currency, cost: Assignment) -> NoLaw:
    whose, reason, hint = _WHY[currency.kind]
    kinds = ", ".join(sorted({f"a {e.kind} event" for e, _ in flatten(cost.events)}))
    return NoLaw(operation=f"paying from {whose} budget", reason=reason.format(kinds=kinds), hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Epsilons (None for a curve alone), their deltas, and the delta for reading a curve."""

    epsilon: Fraction | None
    delta: Fraction
    at: Fraction
    theorem: str


def _total(costs: Sequence[Assignment]) -> tuple[Fraction | None, Fraction]:
    each = [c.approximate() for c in costs]
    known: list[Amounts] = [{"epsilon": e, "delta": d} for e, d in filter(None, each)]
    total = summed(APPROXIMATE, [(amounts, 1) for amounts in known])
    return (None if None in each else total["epsilon"]), total["delta"] or Fraction(0)


def _sums(costs: Sequence[Assignment], shared: Shared | None) -> _Sums:
    """The divided price counts as one price. Its members stay within it by a theorem.

    The other releases have deltas of their own, which are added to this price and take nothing away from it.
    """
    inside = set(shared.members) if shared is not None else set()
    epsilon, delta = _total([c for i, c in enumerate(costs) if i not in inside])
    theorem = "compose-approximate-basic"
    if shared is None:
        return _Sums(epsilon=epsilon, delta=delta, at=delta, theorem=theorem)
    own, spent = _total([c for i, c in enumerate(costs) if i in inside])
    at = delta + max(shared.delta, spent)
    if own is None and shared.epsilon is not None:
        # Divided as squares of mu: the asked price holds for them together.
        own, spent, theorem = shared.epsilon, shared.delta, "compose-gdp"
    together = None if epsilon is None or own is None else epsilon + own
    return _Sums(epsilon=together, delta=delta + spent, at=at, theorem=theorem)


def _approximate(costs: Sequence[Assignment], neighbours: Neighbours, shared: Shared | None) -> Charged:
    sums = _sums(costs, shared)
    epsilon, spent, total = sums.epsilon, sums.delta, sums.at
    what = [e for c in costs for e in c.events]
    if total == 0 and epsilon is None:
        raise NoLaw(
            operation="paying from an (epsilon, delta) budget",
            reason="a concentrated or Gaussian price has a curve, and no delta was named at which to read it",
            hint="pay with epsilon= and delta=, or state the budget as Concentrated",
        )
    if total > 0 and (len(what) >= WORTH_A_CURVE or epsilon is None):
        found = account(_merged(what), delta=down(total), neighbours=neighbours).epsilon.high
        # Where the events' own deltas are all there is, the curve has no room: then the sum holds.
        curve = Fraction(found) if math.isfinite(found) else None
        # A delta is spent where it buys something: a plan is charged its own deltas unless the curve is clearly below.
        if curve is not None and (
            epsilon is None or curve < (epsilon if total == spent else epsilon * WORTH_A_DELTA)
        ):
            return _charged(APPROXIMATE, {"epsilon": curve, "delta": total}, theorem="compose-profile")
    if epsilon is None:
        raise NoLaw(
            operation="paying from an (epsilon, delta) budget",
            reason="the composed curve has no epsilon at this delta",
            hint="offer a larger delta for the plan",
        )
    if spent == 0:
        return _charged(PURE, {"epsilon": epsilon}, theorem=PURE.theorem)
    return _charged(APPROXIMATE, {"epsilon": epsilon, "delta": spent}, theorem=sums.theorem)


def _merged(what: Sequence[Event]) -> list[Event]:
    counts: dict[Event, int] = {}
    for event in what:
        counts[event] = counts.get(event, 0) + 1
    return [e if n == 1 else events.RepeatedEvent(event=e, times=n) for e, n in counts.items()]


# What each release of a plan costs by itself in the budget's own terms, as parts of the budget.
#
# A release alone is read at the delta that the whole plan is charged at, so that prices compare. Together they may
# cost less than their sum, and never more: what is charged is the plan's one price.


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A price in the budget's kind, and its parts of the budget; empty if no theorem gives one."""

    charged: Charged | None = None
    parts: dict[str, float] | None = None

    def to_dict(self) -> dict[str, Any] | None:
        """Plain values."""
        if self.charged is None:
            return None
        return {"kind": self.charged.bound.kind, **self.charged.bound.parameters, "of_budget": self.parts}

    def __str__(self) -> str:
        return "–" if self.parts is None else parts_words(self.parts)


def alone(plan: Plan, budget: Bound | None) -> tuple[Alone, ...]:
    """Each release separately."""
    if budget is None:
        return tuple(Alone() for _ in plan.releases)
    delta = plan.charged.exact.get("delta")
    shared = None if delta is None else Shared(members=(0,), epsilon=None, delta=delta)
    found = []
    for release in plan.releases:
        try:
            own = charge([release.assignment], budget, neighbours=plan.unit.neighbours, shared=shared)
            found.append(_of(own, budget))
        except TacitError:
            found.append(Alone())
    return tuple(found)


def together(plan: Plan, budget: Bound | None) -> Alone:
    """The plan's own price, which the ledger charges."""
    return Alone() if budget is None else _of(plan.charged, budget)


def divided_parts(plan: Plan, budget: Bound | None) -> tuple[dict[str, float] | None, ...]:
    """The plan's parts of the budget, divided among its releases in proportion to the cost of each release alone.

    They add up to the plan's parts, which may be less than the sum of the separate costs.
    """
    whole, own = together(plan, budget).parts, [a.parts for a in alone(plan, budget)]
    if whole is None or any(p is None for p in own):
        return tuple(None for _ in own)
    found: list[dict[str, float] | None] = []
    for one in own:
        part = {}
        for name, total in whole.items():
            sums = sum((p or {}).get(name, 0.0) for p in own)
            part[name] = total * (one or {}).get(name, 0.0) / sums if sums else total / len(own)
        found.append(part)
    return tuple(found)


def _of(charged: Charged, budget: Bound) -> Alone:
    limit = Limit(bound=budget, exact=typed(budget))
    return Alone(charged=charged, parts=parts_of(charged.bound, charged.exact, limit))


def check_of(budget: Guarantee) -> ChargeCheck | None:
    """The check for a charge to this budget; None if the ledger's own check is enough."""
    if isinstance(budget.condition, Priors):
        return paying_alone
    return on_random_data(budget) if isinstance(budget.condition, RandomData) else None


def payable_exactly(charge: Guarantee, budget: Guarantee) -> None:
    """Refuses an exact answer unless the budget has exactly its condition, before anything is opened or charged."""
    if isinstance(charge.condition, Priors) and charge.condition != budget.condition:
        raise InvalidParameter(
            parameter="given", value="an exact answer", must="be paid from a budget under its own condition",
            hint="budget=Guarantee(bound=..., unit=..., condition=plan.charge.condition), with plan from preview; such "
            "a table gives this one answer and no other",
        )  # fmt: skip


def payable(gamma: Fraction, budget: Guarantee) -> None:
    """Refuses random data if the budget grants no gamma, or a smaller one, before anything is opened or charged."""
    condition = budget.condition
    if gamma and isinstance(condition, RandomData) and gamma > Fraction(repr(condition.gamma)):
        raise BudgetExceeded(
            spent="what the ledger has",
            asked=f"gamma = {up(gamma)!r}",
            left=f"gamma = {condition.gamma!r} at most",
            whose="the budget",
            hint="ask for a smaller gamma; a plan's gamma is the total of its releases",
        )
    if gamma and not isinstance(condition, RandomData):
        raise InvalidParameter(
            parameter="given", value=f"random data with gamma = {float(gamma):.3g}",
            must="be paid from a budget that grants a gamma",
            hint="gamma = 0.1 under [budget]; in Python a Guarantee(..., condition=RandomData(gamma=0.1)) as budget=",
        )  # fmt: skip


def standing_of(ledger: Ledger, analyst: str) -> tuple[Guarantee, Guarantee]:
    """The spent part of a budget, and the part that is left for the analyst."""
    if isinstance(ledger.budget.condition, RandomData):
        return standing_on_random_data(ledger, analyst)
    if isinstance(ledger.budget.condition, Priors):
        return standing_alone(ledger)
    spent, left = ledger.standing(analyst)
    return replace(ledger.budget, bound=spent), replace(ledger.budget, bound=left)
