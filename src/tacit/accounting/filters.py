"""Filters and odometers: running totals that stay valid when parameters are chosen as one goes.

A filter is given a budget before anything is run, and admits a release only while the budget holds. What
was spent so far (the odometer) is the same running sum. Valid are: the sum of epsilons; of epsilons and
deltas; of rhos; of the divergence at one order fixed in advance; of mu^2; and, for (epsilon, delta) releases
under an (epsilon, delta) budget, the fully adaptive form of advanced composition (Whitehouse, Ramdas, Rogers,
Wu 2023). Stopping when the *composed profile* reaches the budget is not among them: parameters that react to
past outputs make the sum of losses something that no fixed product of pairs describes. See
docs/theory/profile-filter.md for a counterexample.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from typing import Any

from tacit.errors import BudgetExceeded, InvalidParameter
from tacit.exact.balls import ball, upper
from tacit.exact.checks import non_negative, order_above_one, probability
from tacit.exact.rounding import up
from tacit.guarantees import Approximate, Bound, Concentrated, GaussianDP, Pure, Renyi, convert
from tacit.guarantees.arguments import instance
from tacit.guarantees.bounds.base import no_renyi

__all__ = [
    "AdvancedFilter",
    "ApproximateFilter",
    "ConcentratedFilter",
    "Filter",
    "GaussianFilter",
    "PureFilter",
    "RenyiFilter",
    "filter_for",
]


@dataclass(frozen=True, slots=True)
class Total:
    """Exact running sums, one for each quantity that the filter adds."""

    values: tuple[Fraction, ...]

    def plus(self, more: tuple[Fraction, ...]) -> Total:
        """The sums after one more release."""
        return Total(tuple(a + b for a, b in zip(self.values, more, strict=True)))


class Filter(ABC):
    """A running total under a budget. `admit` either adds the release or raises, and changes nothing then.

    Threads may share a filter: comparing with the budget and adding are one step under a lock.
    """

    def __init__(self, limits: tuple[Fraction, ...]) -> None:
        self._limits = limits
        self._total = Total(tuple(Fraction(0) for _ in limits))
        self._lock = Lock()

    @abstractmethod
    def _cost(self, bound: Bound) -> tuple[Fraction, ...]:
        """What one release adds, never rounded down."""

    @property
    @abstractmethod
    def spent(self) -> Bound:
        """The odometer: the bound of everything admitted so far."""

    @abstractmethod
    def _told(self, values: tuple[Fraction, ...]) -> str:
        """Sums as words."""

    def fits(self, bound: Bound) -> bool:
        """Would the budget still hold?"""
        return self._within(self._total.plus(self._cost(bound)))

    def admit(self, bound: Bound) -> None:
        """Charge the release, or refuse it: spent, asked and left are told."""
        cost = self._cost(bound)
        with self._lock:
            before = self._total
            after = before.plus(cost)
            if self._within(after):
                self._total = after
                return
        left = tuple(max(Fraction(0), a - b) for a, b in zip(self._limits, before.values, strict=True))
        raise BudgetExceeded(
            spent=self._told(before.values),
            asked=self._told(cost),
            left=self._told(left),
            hint=f"at most {self._told(left)} would fit",
        )

    def _within(self, total: Total) -> bool:
        return all(a <= b for a, b in zip(total.values, self._limits, strict=True))


def _a_budget(budget: Bound, kind: type[Bound]) -> None:
    instance(
        "budget", budget, kind, must=f"be of the kind {kind.__name__}", hint="filter_for() takes any kind"
    )


def _as(bound: Bound, kind: type[Any], **more: Any) -> Any:
    instance("bound", bound, Bound, must="be a bound", hint="a guarantee's is its .bound, if it holds always")
    return bound if type(bound) is kind else convert(bound, kind, **more)


class PureFilter(Filter):
    """The sum of epsilons (theorem `compose-pure`)."""

    def __init__(self, budget: Pure) -> None:
        _a_budget(budget, Pure)
        super().__init__((Fraction(float(budget.epsilon)),))

    def _cost(self, bound: Bound) -> tuple[Fraction, ...]:
        return (Fraction(float(_as(bound, Pure).epsilon)),)

    @property
    def spent(self) -> Pure:
        """The sum so far."""
        return Pure(epsilon=up(self._total.values[0]))

    def _told(self, values: tuple[Fraction, ...]) -> str:
        return f"epsilon {float(values[0]):.4g}"


class ApproximateFilter(Filter):
    """The sums of epsilons and of deltas (theorem `compose-approximate-basic`)."""

    def __init__(self, budget: Approximate) -> None:
        _a_budget(budget, Approximate)
        super().__init__((Fraction(float(budget.epsilon)), Fraction(float(budget.delta))))

    def _cost(self, bound: Bound) -> tuple[Fraction, ...]:
        stated = _as(bound, Approximate)
        return Fraction(float(stated.epsilon)), Fraction(float(stated.delta))

    @property
    def spent(self) -> Approximate:
        """The sums so far."""
        return Approximate(epsilon=up(self._total.values[0]), delta=up(self._total.values[1]))

    def _told(self, values: tuple[Fraction, ...]) -> str:
        return f"epsilon {float(values[0]):.4g} and delta {float(values[1]):.4g}"


class ConcentratedFilter(Filter):
    """The sum of rhos (theorem `compose-zcdp`)."""

    def __init__(self, budget: Concentrated) -> None:
        _a_budget(budget, Concentrated)
        super().__init__((Fraction(budget.rho),))

    def _cost(self, bound: Bound) -> tuple[Fraction, ...]:
        return (Fraction(_as(bound, Concentrated).rho),)

    @property
    def spent(self) -> Concentrated:
        """The sum so far."""
        return Concentrated(rho=up(self._total.values[0]))

    def _told(self, values: tuple[Fraction, ...]) -> str:
        return f"rho {float(values[0]):.4g}"


class GaussianFilter(Filter):
    """The sum of mu^2 (theorem `compose-gdp`), for Gaussian releases."""

    def __init__(self, budget: GaussianDP) -> None:
        _a_budget(budget, GaussianDP)
        super().__init__((Fraction(budget.mu) ** 2,))

    def _cost(self, bound: Bound) -> tuple[Fraction, ...]:
        return (Fraction(_as(bound, GaussianDP).mu) ** 2,)

    @property
    def spent(self) -> GaussianDP:
        """The root of the sum so far."""
        total = self._total.values[0]
        return GaussianDP(mu=upper(lambda: ball(total).sqrt()))

    def _told(self, values: tuple[Fraction, ...]) -> str:
        return f"mu {float(values[0]) ** 0.5:.4g}"


class RenyiFilter(Filter):
    """The sum of divergences at one order that was fixed before anything was run (theorem `compose-renyi`)."""

    def __init__(self, *, order: float, epsilon: float) -> None:
        self._order = order_above_one(order)
        super().__init__((Fraction(non_negative("epsilon", epsilon)),))

    def _cost(self, bound: Bound) -> tuple[Fraction, ...]:
        instance(
            "bound", bound, Bound, must="be a bound", hint="a guarantee's is its .bound, if it holds always"
        )
        divergence = bound.renyi(self._order)
        if math.isinf(divergence):
            raise no_renyi("this release")
        return (Fraction(divergence),)

    @property
    def spent(self) -> Renyi:
        """The sum so far, at the fixed order."""
        return Renyi(orders=(self._order,), epsilons=(up(self._total.values[0]),))

    def _told(self, values: tuple[Fraction, ...]) -> str:
        return f"divergence {float(values[0]):.4g} at order {self._order:g}"


class AdvancedFilter(Filter):
    """Advanced composition, fully adaptive: an (epsilon, delta) budget for (epsilon_i, delta_i) releases.

    A share of delta, fixed at the start, pays for the concentration of losses: releases are admitted while the
    sum of rho_i = epsilon_i tanh(epsilon_i/2) stays below the rho that gives (epsilon, share * delta), and the
    sum of delta_i below the rest. With epsilon_i^2/2 for rho_i and the printed conversion this is the filter of
    Whitehouse, Ramdas, Rogers, Wu 2023 (theorem `adaptive-advanced`).
    """

    def __init__(self, budget: Approximate, *, share: float = 0.5) -> None:
        from tacit.guarantees import concentrated_budget

        _a_budget(budget, Approximate)
        part = probability("share", share)
        if not 0 < part <= 1 or not budget.delta > 0:
            raise InvalidParameter(
                parameter="share", value=share, must="lie in (0, 1], with a budget whose delta is above 0"
            )
        for_losses = -up(-Fraction(part) * Fraction(float(budget.delta)))
        self._budget, self._for_losses = budget, for_losses
        rho = concentrated_budget(epsilon=float(budget.epsilon), delta=for_losses).rho
        super().__init__((Fraction(rho), Fraction(float(budget.delta)) - Fraction(for_losses)))

    def _cost(self, bound: Bound) -> tuple[Fraction, ...]:
        stated = _as(bound, Approximate)
        rho = convert(Pure(epsilon=float(stated.epsilon)), Concentrated).rho
        return Fraction(rho), Fraction(float(stated.delta))

    @property
    def spent(self) -> Approximate:
        """(epsilon, delta) of the releases so far, at the delta set aside for their losses."""
        losses = Concentrated(rho=up(self._total.values[0]))
        return Approximate(
            epsilon=losses.epsilon(self._for_losses),
            delta=up(self._total.values[1] + Fraction(self._for_losses)),
        )

    def _told(self, values: tuple[Fraction, ...]) -> str:
        return f"rho {float(values[0]):.4g} and delta {float(values[1]):.4g}"


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
        hint="a composed profile is not a valid filter when parameters are chosen as one goes",
    )
