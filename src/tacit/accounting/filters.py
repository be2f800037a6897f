"""Filters and odometers: running totals that stay valid if parameters are chosen after earlier results.

A filter is given a budget before anything is run, and admits a release only while the budget holds. The odometer (the
amount spent so far) is the same running sum. Valid are: the sum of epsilons; of epsilons and deltas; of rhos; of the
divergence at one order fixed in advance; of mu^2; and, for (epsilon, delta) releases under an (epsilon, delta) budget,
the fully adaptive form of advanced composition (Whitehouse, Ramdas, Rogers, Wu 2023). A composed profile that
reaches the budget is no valid filter: if parameters react to past outputs, no fixed product of pairs describes
the sum of losses. See docs/theory/profile-filter.md for a counterexample.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from threading import Lock
from typing import Any, ClassVar

from tacit.accounting.events import Event, flatten
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw
from tacit.exact.checks import instance, non_negative, order_above_one, probability
from tacit.exact.rounding import down, up
from tacit.guarantees import Approximate, Bound, Concentrated, GaussianDP, Pure, Renyi, convert
from tacit.guarantees.bounds.base import no_renyi, remainder
from tacit.guarantees.running_sum import (
    APPROXIMATE,
    CONCENTRATED,
    GAUSSIAN,
    MOST_DIGITS,
    NOTHING,
    Amounts,
    Currency,
    Described,
    Divergences,
    added,
    currency_of,
    exceeds,
    rest,
    shown,
    summed,
    typed,
)
from tacit.guarantees.units import Neighbours


class Filter(ABC):
    """A running sum under a budget. `admit` either adds the release, or raises and changes nothing.

    Threads may share a filter: comparing with the budget and adding are one step under a lock.
    """

    def __init__(self, currency: Currency, limits: Amounts, stated: Bound | None = None) -> None:
        self._currency, self._limits, self._stated = currency, limits, stated
        self._total = currency.zero()
        self._lock = Lock()
        self._process = os.getpid()

    @abstractmethod
    def _cost(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        """The cost of one release, never rounded down."""

    @property
    def spent(self) -> Bound:
        """The odometer: the bound of everything admitted so far."""
        return self._currency.bound(self._total)

    @property
    def left(self) -> Bound:
        """The largest bound of the budget's kind that would still be admitted, rounded down, also in its text."""
        return remainder(self._currency.bound(rest(self._total, self._limits), down))

    def __repr__(self) -> str:
        total = self._total
        left = rest(total, self._limits)
        spent, of, remaining = _distinct(self._currency, (total, self._limits, left), self._limits, left)
        return f"{type(self).__name__}: spent {spent} of {of}, left {remaining}"

    def __reduce__(self) -> Any:
        raise NoLaw(
            operation="copying or pickling a filter",
            reason="each copy would admit the whole budget again",
            counterexample="two copies of a filter of epsilon 1 admit two releases of epsilon 1",
            hint="let threads share the filter; let processes share a tacit.Ledger, which keeps its sum on disk",
        )

    def __copy__(self) -> Any:
        return self.__reduce__()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__reduce__()

    def fits(
        self,
        release: Bound | Event,
        *,
        neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
        exact: Mapping[str, Fraction] | None = None,
    ) -> bool:
        """Would the budget still hold?"""
        return self._within(added(self._total, self._asked(release, neighbours, exact)))

    def admit(
        self,
        release: Bound | Event,
        *,
        neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
        exact: Mapping[str, Fraction] | None = None,
    ) -> None:
        """Charges a release, stated by its bound or as an event, or refuses it and states the amounts spent,
        requested and left.

        `exact` has a bound's numbers as fractions, if its floats are only approximations: ten releases of one tenth
        fill
        a budget of 1 exactly.
        """
        if os.getpid() != self._process:
            # A process that was forked has a copy of it, without a word.
            self.__reduce__()
        cost = self._asked(release, neighbours, exact)
        with self._lock:
            before = self._total
            after = added(before, cost)
            if self._within(after):
                self._total = after
                return
        left = rest(before, self._limits)
        spent, asked, remaining = _distinct(self._currency, (before, cost, left), cost, left)
        raise BudgetExceeded(spent=spent, asked=asked, left=remaining, hint=f"at most {remaining} would fit")

    def _asked(
        self, release: Bound | Event, neighbours: str | Neighbours, exact: Mapping[str, Fraction] | None
    ) -> Amounts:
        relation = Neighbours.parse(neighbours)
        if not isinstance(release, Event):
            return self._cost(release, _checked(release, exact) if exact is not None else NOTHING)
        if exact is not None:
            raise InvalidParameter(
                parameter="exact",
                value="of an event",
                must="be left out",
                hint="an event has its own numbers",
            )
        parts = []
        for simple, count in flatten(release):
            own = self._currency.of_release(simple, neighbours=relation)
            if (
                own is not None and self._currency.kind != Divergences.kind
            ):  # divergences ask for the relation
                simple.must_hold_for(relation)
            if own is None:
                raise self._no_law(
                    f"{simple.kind} noise" if simple.kind == "gaussian" else simple.kind,
                    lambda c, e=simple: c.of_release(e, neighbours=relation) is not None,  # type: ignore[misc]
                )
            parts.append((own, count))
        return summed(self._currency, parts)

    def _no_law(self, what: str, chargeable: Callable[[Currency], bool]) -> NoLaw:
        """Refuses a release that has no bound of the budget's kind, and names the budgets that can charge it."""
        stated = self._stated.parameters if self._stated is not None else {}
        given = ", ".join(
            f"{name}={stated[name]:.6g}" if stated.get(name) else f"{name}=..."
            for name in ("epsilon", "delta")
        )
        makers: dict[str, Currency] = {
            "gaussian_budget": GAUSSIAN,
            "concentrated_budget": CONCENTRATED,
            "renyi_budget": Divergences((2.0,)),
        }
        others = [
            f"filter_for(tacit.{name}({given}))"
            for name, currency in makers.items()
            if currency.kind != self._currency.kind and chargeable(currency)
        ]
        kind = self._currency.kind
        return NoLaw(
            operation=f"charging {what} to {'an' if kind[0] in 'aeiou' else 'a'} {kind} budget",
            reason="it has a curve of (epsilon, delta), and a running sum adds single pairs"
            if others and kind == APPROXIMATE.kind
            else "no theorem gives it a bound of that kind",
            hint=f"charge it to {' or '.join(others)}, which keeps within this epsilon and delta"
            if others
            else "account for the whole plan at once with tacit.account",
        )

    def _must_be_a_point(self, bound: Bound) -> None:
        """Refuse a curve: tacit would have to choose one of its (epsilon, delta), and would waste budget."""
        if isinstance(bound, GaussianDP | Concentrated | Renyi):
            kinds: dict[str, type[Bound]] = {GAUSSIAN.kind: GaussianDP, CONCENTRATED.kind: Concentrated}
            raise self._no_law(
                f"a {bound.kind} bound",
                lambda c: (
                    (c.kind == Divergences.kind and not isinstance(bound, Renyi))
                    or (c.kind in kinds and _reaches(bound, kinds[c.kind]))
                ),
            )

    def _within(self, total: Amounts) -> bool:
        return not exceeds(total, self._limits)


def _distinct(currency: Currency, amounts: Sequence[Amounts], asked: Amounts, left: Amounts) -> list[str]:
    """Sums in words, with enough digits that they do not contradict each other.

    Rounding shows a refused amount as larger than the amount left, and the amount spent as smaller than the budget
    while anything is left.
    """
    pairs = [(n, asked[n], top) for n, top in left.items() if None not in (top, asked[n]) and asked[n] != top]
    for name, rest_of in left.items():
        spent = amounts[0][name]
        if spent is not None and rest_of:
            pairs.append((name, spent, spent + rest_of))
    digits = 4
    while digits < MOST_DIGITS and any(
        currency.digits_of(n, a, digits) == currency.digits_of(n, b, digits) for n, a, b in pairs
    ):
        digits += 4
    return [currency.summary(a, digits) for a in amounts]


def _checked(bound: Bound, exact: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Fractions that round to the bound's own numbers."""
    instance("bound", bound, Bound, must="be a bound")
    instance("exact", exact, Mapping, must="be a table of fractions")
    for name, value in exact.items():
        stated = bound.parameters.get(name)
        rational = isinstance(value, Fraction | int) and not isinstance(value, bool)
        if not isinstance(stated, float) or not rational or stated not in (float(value), up(value)):
            raise InvalidParameter(
                parameter="exact",
                value=name,
                must="name numbers of the bound, as fractions that round to them",
            )
    return {name: Fraction(value) for name, value in exact.items()}


class _Plain(Filter):
    """The sum in the terms of one kind of bound, into which every release is converted."""

    kind: ClassVar[type[Bound]]

    def __init__(self, budget: Bound) -> None:
        instance(
            "budget", budget, self.kind, must=f"be of the kind {self.kind.__name__}",
            hint="filter_for() takes any kind",
        )  # fmt: skip
        currency = currency_of(budget)
        assert currency is not None
        super().__init__(currency, currency.of_bound(budget, typed(budget)), budget)

    def _cost(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        as_stated = isinstance(bound, self.kind)
        if self.kind is Approximate:
            self._must_be_a_point(bound)
        return self._currency.of_bound(_as(bound, self.kind), exact if as_stated else NOTHING)


def _reaches(bound: Bound, kind: type[Bound]) -> bool:
    """Whether a law leads from this bound to that kind."""
    try:
        convert(bound, kind)
    except NoLaw:
        return False
    return True


def _as(bound: Bound, kind: type[Any]) -> Any:
    instance(
        "bound", bound, Bound, must="be a bound", hint="a guarantee that always holds has a .bound: pass that"
    )
    return bound if type(bound) is kind else convert(bound, kind)


class PureFilter(_Plain):
    """The sum of epsilons (theorem `compose-pure`)."""

    kind: ClassVar[type[Bound]] = Pure


class ApproximateFilter(_Plain):
    """The sums of epsilons and of deltas (theorem `compose-approximate-basic`)."""

    kind: ClassVar[type[Bound]] = Approximate


class ConcentratedFilter(_Plain):
    """The sum of rhos (theorem `compose-zcdp`)."""

    kind: ClassVar[type[Bound]] = Concentrated


class GaussianFilter(_Plain):
    """The sum of mu^2 (theorem `compose-gdp`), for Gaussian releases."""

    kind: ClassVar[type[Bound]] = GaussianDP


class RenyiFilter(Filter):
    """The sum of divergences at one order that was fixed before anything was run (theorem `compose-renyi`)."""

    def __init__(self, *, order: float, epsilon: float) -> None:
        currency = Divergences((order_above_one(order),))
        limit = Renyi(orders=currency.orders, epsilons=(non_negative("epsilon", epsilon),))
        super().__init__(currency, currency.of_bound(limit))

    def _cost(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        instance(
            "bound",
            bound,
            Bound,
            must="be a bound",
            hint="a guarantee that always holds has a .bound: pass that",
        )
        divergence = self._currency.of_bound(bound)
        if None in divergence.values():
            raise no_renyi("this release")
        return divergence


class _RhosAndDeltas(Currency):
    """The sums of advanced composition: rho_i of the losses, and the deltas."""

    kind: ClassVar[str] = "approximate"
    theorem: ClassVar[str] = "adaptive-advanced"

    def __init__(self, for_losses: float) -> None:
        self._for_losses = for_losses

    @property
    def names(self) -> tuple[str, ...]:
        return ("rho", "delta")

    def of_bound(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        stated = APPROXIMATE.of_bound(bound, exact)
        rho = convert(Pure(epsilon=float(bound.parameters["epsilon"])), Concentrated).rho
        return {"rho": Fraction(rho), "delta": stated["delta"]}

    def of_release(self, release: Described, *, neighbours: Neighbours) -> Amounts | None:
        found = release.approximate()
        return None if found is None else self.of_bound(Approximate(epsilon=up(found[0]), delta=up(found[1])))

    def bound(self, amounts: Amounts, rounded: Callable[[Any], float] = up) -> Approximate:
        """(epsilon, delta) of the releases so far, at the delta set aside for their losses."""
        rho, delta = (amounts[name] or Fraction(0) for name in self.names)
        losses = Concentrated(rho=rounded(rho))
        return Approximate(
            epsilon=losses.epsilon(self._for_losses), delta=rounded(delta + Fraction(self._for_losses))
        )

    def summary(self, amounts: Amounts, digits: int = 4) -> str:
        return CONCENTRATED.summary(amounts, digits) + f" and delta {shown(amounts['delta'], digits)}"


class AdvancedFilter(Filter):
    """Advanced composition, fully adaptive: an (epsilon, delta) budget for (epsilon_i, delta_i) releases.

    A share of delta, fixed at the start, pays for the concentration of losses: releases are admitted while the
    sum of rho_i = epsilon_i tanh(epsilon_i/2) stays below the rho that gives (epsilon, share * delta), and the
    sum of delta_i below the rest. With epsilon_i^2/2 for rho_i and the printed conversion this is the filter of
    Whitehouse, Ramdas, Rogers, Wu 2023 (theorem `adaptive-advanced`).
    """

    def __init__(self, budget: Approximate, *, share: float = 0.5) -> None:
        from tacit.guarantees import concentrated_budget

        instance(
            "budget",
            budget,
            Approximate,
            must="be of the kind Approximate",
            hint="filter_for() takes any kind",
        )
        part = probability("share", share)
        if not 0 < part <= 1 or not budget.delta > 0:
            raise InvalidParameter(
                parameter="share", value=share, must="lie in (0, 1], with a budget whose delta is above 0"
            )
        for_losses = -up(-Fraction(part) * Fraction(float(budget.delta)))
        rho = concentrated_budget(epsilon=float(budget.epsilon), delta=for_losses).rho
        others = Fraction(float(budget.delta)) - Fraction(for_losses)
        super().__init__(_RhosAndDeltas(for_losses), {"rho": Fraction(rho), "delta": others}, budget)

    @property
    def left(self) -> Approximate:
        """The largest (epsilon, delta) of one release that would still be admitted, both rounded down."""
        remains = rest(self._total, self._limits)
        rho, delta = (remains[name] or Fraction(0) for name in ("rho", "delta"))
        low, high = 0.0, max(1.0, 2 * float(rho) + 2)  # epsilon tanh(epsilon/2) >= epsilon - 1
        while low < (middle := (low + high) / 2) < high:
            fits = Fraction(convert(Pure(epsilon=middle), Concentrated).rho) <= rho
            low, high = (middle, high) if fits else (low, middle)
        return remainder(Approximate(epsilon=low, delta=down(delta)))

    def _cost(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        self._must_be_a_point(bound)
        return self._currency.of_bound(_as(bound, Approximate))


def filter_for(budget: Bound) -> Filter:
    """The plain running sum in the budget's own terms."""
    instance("budget", budget, Bound, must="be a bound", hint="such as tacit.Pure(epsilon=1)")
    match budget:
        case Pure():
            return PureFilter(budget)
        case Approximate():
            return ApproximateFilter(budget)
        case Concentrated():
            return ConcentratedFilter(budget)
        case GaussianDP():
            return GaussianFilter(budget)
        case Renyi() if len(budget.orders) == 1:
            return RenyiFilter(order=budget.orders[0], epsilon=budget.epsilons[0])
    raise InvalidParameter(
        parameter="budget",
        value=budget.kind,
        must="be pure, approximate, concentrated, gaussian, or Rényi at one order",
        hint="a composed profile is not a valid filter when parameters depend on earlier results",
    )
