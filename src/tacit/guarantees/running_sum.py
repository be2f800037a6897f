"""The one running sum: the currency of each kind of bound, exactly, and the bound of a sum.

    kind            what adds up                     theorem
    pure            epsilon                          compose-pure
    approximate     epsilon, and delta               compose-approximate-basic
    concentrated    rho                              compose-zcdp
    gaussian        mu^2                             compose-gdp
    renyi           the divergence at each order     compose-renyi

Composition of bounds, accountants, filters, the ledger and the price of a plan all add up here. Sums are exact
rationals. Reading a sum as a bound rounds it once: up for the spent amount, down for the rest. The same sums
are valid running totals when parameters are chosen after earlier results (see tacit.accounting.filters).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down, up
from tacit.guarantees.bounds import Approximate, Bound, Concentrated, GaussianDP, Pure, Renyi
from tacit.guarantees.units import Neighbours

Amounts = dict[str, Fraction | None]
"""Numbers that add up, by name; None is infinity."""

Rounded = Callable[[Any], float]

MOST_DIGITS = 120
"""Texts of a sum show at most this many digits."""
SUM_BITS = 4096
"""A running sum with a longer denominator is rounded up to this many binary places, because new denominators
would make each sum longer than the one before. Sums of floats and of decimals never reach it.
"""

ROOT_BITS = 160
"""The number of digits of roots kept as rationals, far above a float's, so that rounding never decides about a budget.
"""

NOTHING: Mapping[str, Fraction] = {}


class Described(Protocol):
    """An event that states its own cost in each kind; None if no theorem gives the cost."""

    def pure(self) -> float | Fraction | None:
        """An epsilon that holds with delta = 0."""

    def approximate(self) -> tuple[float | Fraction, float | Fraction] | None:
        """An epsilon with its delta."""

    def concentrated(self) -> float | Fraction | None:
        """A rho."""

    def mu_squared(self) -> Fraction | None:
        """A squared mu."""

    def renyi(self, order: float, *, neighbours: Neighbours) -> float | None:
        """The Rényi divergence at this order."""


class Currency(ABC):
    """The currency of a sum: its numbers by name, and the theorem by which they add."""

    kind: ClassVar[str]
    theorem: ClassVar[str]

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The numbers that add up."""

    @abstractmethod
    def of_bound(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        """The numbers of a bound of this kind; `exact` has the exact ones, which a float only approximates."""

    @abstractmethod
    def of_release(self, release: Described, *, neighbours: Neighbours) -> Amounts | None:
        """The cost of a release, as the release describes it; None without a bound of this kind."""

    @abstractmethod
    def bound(self, amounts: Amounts, rounded: Rounded = up) -> Bound:
        """The bound that a sum is."""

    @abstractmethod
    def summary(self, amounts: Amounts, digits: int = 4) -> str:
        """A sum in words, to this many digits."""

    def digits_of(self, name: str, value: Fraction | None, digits: int) -> str:
        """One sum as `summary` writes it."""
        return shown(value, digits)

    def exact(self, amounts: Amounts) -> dict[str, Fraction]:
        """The numbers of the bound that equals a sum, by their names, before they are rounded to floats."""
        return {name: value for name, value in amounts.items() if value is not None}

    def zero(self) -> Amounts:
        """Before anything was added."""
        return dict.fromkeys(self.names, Fraction(0))

    def _number(self, bound: Bound, name: str, exact: Mapping[str, Fraction]) -> Fraction | None:
        """One number of a bound; refuses a kind with further numbers (a delta), which this sum would lose."""
        if bound.kind != self.kind:
            raise InvalidParameter(
                parameter="bound", value=bound.kind, must=f"be of the sum's kind, {self.kind}", hint="convert it first"
            )  # fmt: skip
        return exact[name] if name in exact else _finite(float(getattr(bound, name)))


@dataclass(frozen=True, slots=True)
class _Epsilons(Currency):
    kind: ClassVar[str] = "pure"
    theorem: ClassVar[str] = "compose-pure"

    @property
    def names(self) -> tuple[str, ...]:
        return ("epsilon",)

    def of_bound(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        return {"epsilon": self._number(bound, "epsilon", exact)}

    def of_release(self, release: Described, *, neighbours: Neighbours) -> Amounts | None:
        return _one("epsilon", release.pure())

    def bound(self, amounts: Amounts, rounded: Rounded = up) -> Pure:
        return Pure(epsilon=_float(amounts["epsilon"], rounded))

    def summary(self, amounts: Amounts, digits: int = 4) -> str:
        return f"epsilon {shown(amounts['epsilon'], digits)}"


@dataclass(frozen=True, slots=True)
class _EpsilonsAndDeltas(Currency):
    kind: ClassVar[str] = "approximate"
    theorem: ClassVar[str] = "compose-approximate-basic"

    @property
    def names(self) -> tuple[str, ...]:
        return ("epsilon", "delta")

    def of_bound(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        if bound.kind == PURE.kind:
            return {**PURE.of_bound(bound, exact), "delta": Fraction(0)}
        return {name: self._number(bound, name, exact) for name in self.names}

    def of_release(self, release: Described, *, neighbours: Neighbours) -> Amounts | None:
        found = release.approximate()
        return None if found is None else {"epsilon": _finite(found[0]), "delta": _finite(found[1])}

    def bound(self, amounts: Amounts, rounded: Rounded = up) -> Approximate:
        epsilon, delta = (_float(amounts[name], rounded) for name in self.names)
        if delta >= 1:
            raise NoLaw(operation="the sum of the charges", reason="their deltas add up to 1 or more")
        return Approximate(epsilon=epsilon, delta=delta)

    def summary(self, amounts: Amounts, digits: int = 4) -> str:
        return f"epsilon {shown(amounts['epsilon'], digits)} and delta {shown(amounts['delta'], digits)}"


@dataclass(frozen=True, slots=True)
class _Rhos(Currency):
    kind: ClassVar[str] = "concentrated"
    theorem: ClassVar[str] = "compose-zcdp"

    @property
    def names(self) -> tuple[str, ...]:
        return ("rho",)

    def of_bound(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        return {"rho": self._number(bound, "rho", exact)}

    def of_release(self, release: Described, *, neighbours: Neighbours) -> Amounts | None:
        return _one("rho", release.concentrated())

    def bound(self, amounts: Amounts, rounded: Rounded = up) -> Concentrated:
        return Concentrated(rho=_float(amounts["rho"], rounded))

    def summary(self, amounts: Amounts, digits: int = 4) -> str:
        return f"rho {shown(amounts['rho'], digits)}"


@dataclass(frozen=True, slots=True)
class _SquaredMus(Currency):
    kind: ClassVar[str] = "gaussian"
    theorem: ClassVar[str] = "compose-gdp"

    @property
    def names(self) -> tuple[str, ...]:
        return ("mu squared",)

    def of_bound(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        mu = self._number(bound, "mu", exact)
        return {"mu squared": None if mu is None else mu * mu}

    def of_release(self, release: Described, *, neighbours: Neighbours) -> Amounts | None:
        return _one("mu squared", release.mu_squared())

    def bound(self, amounts: Amounts, rounded: Rounded = up) -> GaussianDP:
        square = amounts["mu squared"]
        return GaussianDP(mu=math.inf if square is None else root(square, rounded))

    def exact(self, amounts: Amounts) -> dict[str, Fraction]:
        """mu, if its square is finite; rounded up if mu is irrational."""
        square = amounts["mu squared"]
        return {} if square is None else {"mu": rational_root(square)}

    def summary(self, amounts: Amounts, digits: int = 4) -> str:
        return f"mu {self.digits_of('mu squared', amounts['mu squared'], digits)}"

    def digits_of(self, name: str, value: Fraction | None, digits: int) -> str:
        return shown(None if value is None else rational_root(value, bits=4 * MOST_DIGITS), digits)


@dataclass(frozen=True, slots=True)
class Divergences(Currency):
    """Rényi divergences at orders that were fixed before the first run; each order has its own sum."""

    kind: ClassVar[str] = "renyi"
    theorem: ClassVar[str] = "compose-renyi"

    orders: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Each order has a separate name, and so a separate sum and limit."""
        return tuple(f"epsilon at order {_order(a)}" for a in self.orders)

    def of_bound(self, bound: Bound, exact: Mapping[str, Fraction] = NOTHING) -> Amounts:
        listed = getattr(bound, "orders", None) == self.orders
        values = getattr(bound, "epsilons", ()) if listed else [bound.renyi(a) for a in self.orders]
        return {name: _finite(value) for name, value in zip(self.names, values, strict=True)}

    def of_release(self, release: Described, *, neighbours: Neighbours) -> Amounts | None:
        values = [release.renyi(a, neighbours=neighbours) for a in self.orders]
        if any(v is None for v in values):
            return None
        return {name: _finite(v) for name, v in zip(self.names, values, strict=True) if v is not None}

    def bound(self, amounts: Amounts, rounded: Rounded = up) -> Renyi:
        return Renyi(orders=self.orders, epsilons=tuple(_float(amounts[n], rounded) for n in self.names))

    def exact(self, amounts: Amounts) -> dict[str, Fraction]:
        """None, because its numbers are a list of floats."""
        return {}

    def summary(self, amounts: Amounts, digits: int = 4) -> str:
        sums = zip(self.names, self.orders, strict=True)
        return ", ".join(f"divergence {shown(amounts[n], digits)} at order {_order(a)}" for n, a in sums)


PURE, APPROXIMATE, CONCENTRATED, GAUSSIAN = _Epsilons(), _EpsilonsAndDeltas(), _Rhos(), _SquaredMus()
_BY_KIND: dict[str, Currency] = {c.kind: c for c in (PURE, APPROXIMATE, CONCENTRATED, GAUSSIAN)}


def currency_of(bound: Bound) -> Currency | None:
    """The currency of this bound; None for a kind without running sums (a curve)."""
    orders = getattr(bound, "orders", None)
    return Divergences(orders) if bound.kind == Divergences.kind and orders else _BY_KIND.get(bound.kind)


def added(total: Amounts, more: Amounts) -> Amounts:
    """A running sum with one further addend."""
    return {name: _plus(value, more[name]) for name, value in total.items()}


def _plus(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    if one is None or other is None:
        return None
    total = one + other
    if total.denominator.bit_length() <= SUM_BITS:
        return total
    return Fraction(-(-total.numerator * 2**SUM_BITS // total.denominator), 2**SUM_BITS)


def summed(currency: Currency, parts: Iterable[tuple[Amounts, int]]) -> Amounts:
    """The exact sum of addends, each with its multiplicity.

    Numerators are added up by denominator first: charges of a plan's few prices are many, fractions slow.
    """
    held: dict[str, dict[int, int]] = {name: {} for name in currency.names}
    unbounded: set[str] = set()
    for amounts, times in parts:
        for name, value in amounts.items():
            if value is None:
                unbounded.add(name)
                continue
            below = held[name]
            below[value.denominator] = below.get(value.denominator, 0) + value.numerator * times
    return {
        name: None if name in unbounded else sum((Fraction(n, d) for d, n in below.items()), Fraction(0))
        for name, below in held.items()
    }


def exceeds(total: Amounts, ceiling: Amounts) -> bool:
    """Does any sum pass its ceiling?"""
    for name, top in ceiling.items():
        done = total[name]
        if top is not None and (done is None or done > top):
            return True
    return False


def rest(total: Amounts, ceiling: Amounts) -> Amounts:
    """The largest next addend. It is 0 if any sum passes its ceiling."""
    over = exceeds(total, ceiling)
    return {
        name: Fraction(0) if over else None if top is None else top - (total[name] or 0)
        for name, top in ceiling.items()
    }


def root(square: Fraction, rounded: Rounded = up) -> float:
    """The square root of a rational as a float, in the direction of `rounded`."""
    return rounded(rational_root(square, rounded))


def rational_root(square: Fraction, rounded: Rounded = up, bits: int = ROOT_BITS) -> Fraction:
    """The square root of a rational: exact for a rational root, else to this number of binary digits in the given
    direction.
    """
    if square == 0:
        return Fraction(0)
    above, below = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if above * above == square.numerator and below * below == square.denominator:
        return Fraction(above, below)
    shift = max(0, bits - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    whole = math.isqrt(square.numerator * 4**shift // square.denominator)
    return Fraction(whole if rounded is down else whole + 1, 2**shift)


def _order(order: float) -> str:
    """An order as people type it, or to the last digit."""
    short = f"{order:g}"
    return short if float(short) == order else repr(order)


def _one(name: str, value: float | Fraction | None) -> Amounts | None:
    return None if value is None else {name: _finite(value)}


def _finite(value: float | Fraction) -> Fraction | None:
    return None if value == math.inf else Fraction(value)


def _float(value: Fraction | None, rounded: Rounded) -> float:
    return math.inf if value is None else rounded(value)


def shown(value: Fraction | None, digits: int = 4) -> str:
    """A number of any size in this many digits."""
    if value is None:
        return "inf"
    if digits <= 4:
        return f"{float(value):.{digits}g}"
    with localcontext(prec=digits):
        return f"{(Decimal(value.numerator) / Decimal(value.denominator)).normalize():g}"


def typed(bound: Bound) -> dict[str, Fraction]:
    """The exact numbers of a limit given as floats: the float, or the decimal that it prints as, if larger.

    A grant of 0.6 means six tenths, and the float is a little less. A grant of the float 0.1 is a little more than a
    tenth.
    """
    if bound.kind == Divergences.kind:
        return {}
    given = {k: v for k, v in bound.parameters.items() if isinstance(v, float) and math.isfinite(v)}
    return {name: max(Fraction(value), Fraction(repr(value))) for name, value in given.items()}
