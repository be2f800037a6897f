"""The interface of all bounds: a curve delta(epsilon), its inverse, and its Rényi divergences.

All three are upper bounds, rounded against us: the mechanism never reveals more.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tacit.errors import NoLaw
from tacit.exact.checks import Numbers, each, is_number, non_negative, order_above_one, probability
from tacit.exact.rounding import digits_down, digits_up

if TYPE_CHECKING:
    from tacit.exact.rounding import Interval


class Level(float):
    """A stated number that also answers for its curve.

    `Approximate(epsilon=1, delta=1e-6).epsilon` is the number 1.0; `.epsilon(1e-3)` is the curve's value.
    """

    __slots__ = ("_curve",)
    _curve: Callable[[float], float]

    def __new__(cls, value: float, curve: Callable[[float], float]) -> Level:
        self = super().__new__(cls, value)
        self._curve = curve
        return self

    def __call__(self, at: Numbers) -> Numbers:
        return self._curve(at)  # type: ignore[arg-type, return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)


BoundT = TypeVar("BoundT", bound="Bound")


class Bound(ABC):
    """How much may be revealed. Subclasses are frozen data classes, valid from birth.

    `delta_at(epsilon)` is the smallest certified delta such that the mechanism is (epsilon, delta)-private;
    `epsilon_at(delta)` its inverse (infinite where no epsilon will do); `renyi(order)` a bound on the Rényi
    divergence of that order between neighbours, or NoLaw where no theorem gives one. `delta(epsilon)` and
    `epsilon(delta)` are short for the first two.
    """

    __slots__ = ("_remains",)
    kind: ClassVar[str]

    if TYPE_CHECKING:
        # What a law returns is a bound of some kind: typed code may ask it for the numbers that bounds have, and a
        # name that none of them has is an error.
        @property
        def epsilon(self) -> Level: ...

        @property
        def delta(self) -> Level: ...

        @property
        def rho(self) -> float: ...

        @property
        def mu(self) -> float: ...

        @property
        def orders(self) -> tuple[float, ...]: ...

        @property
        def epsilons(self) -> tuple[float, ...]: ...

        def delta_between(self, epsilon: float, *, tolerance: float = 2e-4) -> Interval: ...

        def epsilon_between(self, delta: float, *, tolerance: float = 2e-4) -> Interval: ...

    def delta_at(self, epsilon: Numbers) -> Numbers:
        """The smallest certified delta such that (epsilon, delta)-privacy holds: a point of the privacy profile.

        An array of epsilons gives the array of deltas.
        """
        return each(  # type: ignore[no-any-return]
            "epsilon", epsilon, lambda e: self._delta(non_negative("epsilon", e, finite=False))
        )

    def epsilon_at(self, delta: Numbers) -> Numbers:
        """The smallest certified epsilon such that (epsilon, delta)-privacy holds; infinite if no epsilon is enough.

        An array of deltas gives the array of epsilons.
        """

        def one(given: object) -> float:
            level = probability("delta", given)
            return 0.0 if level == 1 else self._epsilon(level)

        return each("delta", delta, one)  # type: ignore[no-any-return]

    def renyi(self, order: Numbers) -> Numbers:
        """Upper bound on the Rényi divergence D_order between the outputs on neighbours, for orders of at least 1.

        Order 1 is the Kullback-Leibler divergence E_P ln(dP/dQ), the limit from above (theorem `kullback-leibler`).
        """

        def one(given: object) -> float:
            if is_number(given) and given == 1:
                return self._kullback_leibler()
            return self._renyi(order_above_one(given))

        return each("order", order, one)  # type: ignore[no-any-return]

    @abstractmethod
    def _delta(self, epsilon: float) -> float: ...

    @abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abstractmethod
    def _renyi(self, order: float) -> float: ...

    @abstractmethod
    def _kullback_leibler(self) -> float: ...

    @property
    def parameters(self) -> dict[str, Any]:
        """The stated parameters as plain values, in the order of the constructor."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @abstractmethod
    def describe(self) -> str:
        """The bound as a short phrase: three significant digits, rounded up."""

    def _short(self, value: float) -> str:
        """A number in three significant digits, rounded up; rounded down in the rest of a budget."""
        return (digits_down if getattr(self, "_remains", False) else digits_up)(float(value))

    def __str__(self) -> str:
        return self.describe()

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self.parameters)


def rebuild(cls: type[Bound], parameters: dict[str, Any]) -> Bound:
    """Make a bound anew from its plain parameters (for pickling and copying)."""
    return cls(**parameters)


def remainder(bound: BoundT) -> BoundT:
    """The same bound as the rest of a budget. Its text rounds down, so that nobody asks for more than the rest."""
    own: BoundT = rebuild(type(bound), bound.parameters)  # type: ignore[assignment]
    object.__setattr__(own, "_remains", True)
    return own


def no_renyi(kind: str) -> NoLaw:
    """The refusal of every bound that allows an outright failure with positive probability."""
    return NoLaw(
        operation=f"the Rényi divergence of {kind}",
        reason="with probability delta the output may give the data away, and then every order above 1 is infinite",
        counterexample="publish the table with probability delta, and nothing otherwise",
        hint="compose such bounds by their profile",
    )


def solve_epsilon(delta_at: Callable[[float], float], delta: float, *, start: float = 1.0) -> float:
    """The smallest float epsilon >= 0 (to within rounding) with delta_at(epsilon) <= delta.

    `delta_at` must be a non-increasing certified upper bound; the returned epsilon is always a point at
    which the inequality was checked, so that the search cannot err on the unsafe side. Guesses a point where
    the logarithm of delta, as a straight line, crosses (log delta is nearly one for the curves that are solved
    here), a little towards the side that has not moved. A guess that does not halve the bracket is followed by
    a halving.
    """
    above, below = delta_at(0.0), 0.0
    if above <= delta:
        return 0.0
    low, high = 0.0, start
    while (below := delta_at(high)) > delta:
        low, high, above = high, high * 2, below
        if math.isinf(high):
            return math.inf
    width = math.inf
    while True:
        middle = low + (high - low) / 2 if low else high / 2
        if (low and high - low <= 2e-16 * high) or middle <= 5e-324 or not low < middle < high:
            return high
        width, last = high - low, width
        if 2 * width <= last and 0 < below < above:
            middle = _crossing(low, high, math.log(above / delta), math.log(below / delta), middle)
        value = delta_at(middle)
        if value <= delta:
            high, below = middle, value
        else:
            low, above = middle, value


def _crossing(low: float, high: float, above: float, below: float, middle: float) -> float:
    """The zero of the line from (low, above > 0) to (high, below <= 0), moved towards the middle by a
    thousandth of the way, or by a few floats, so that the next point is on the other side and the bracket
    closes on both.
    """
    width = high - low
    found = low + width * (above / (above - below))
    step = min(max(1e-3 * abs(middle - found), 4e-16 * high), width / 2)
    found = found + step if found < middle else found - step
    return found if low < found < high else middle


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, float) else value
