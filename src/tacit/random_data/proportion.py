"""A proportion that is published exactly where few rows could tell: Hall's (5.1), both tails."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.checks import flag, settle, whole
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Neighbours, Pure
from tacit.guarantees.declarations import INDEPENDENT_DRAWS, LEAST_ROWS
from tacit.mechanisms import CountSensitivity, Geometric
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise.source import Source, default_source
from tacit.random_data.base import RandomMechanism, gamma_parameter, independent, rows_parameter
from tacit.random_data.outputs import Coordinate, Exactly, Noisy, breaks

__all__ = ["RandomProportion", "ReleasedCount", "pair_differs"]


def pair_differs(ones: int, rows: int) -> Fraction:
    """f(s) = 2s(n+1-s)/(n(n+1)): with s ones among n + 1 rows, how likely the last two of a random order differ."""
    return Fraction(2 * ones * (rows + 1 - ones), rows * (rows + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedCount:
    """A count, exact or noisy; which of the two may be told. `publishable` is False for a seeded source."""

    count: int
    exact: bool
    rows: int | None
    publishable: bool

    @property
    def proportion(self) -> float:
        """count / rows, where the number of rows is public."""
        if self.rows is None:
            raise InvalidParameter(
                parameter="neighbours", value="add-or-remove", must="be replace-one for a proportion",
                hint="under add-or-remove the number of rows is protected: divide by a noisy one",
            )  # fmt: skip
        return self.count / self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomProportion(RandomMechanism):
    """The count of rows with a property: exact if f(c) <= gamma and f(c + 1) <= gamma, else with geometric noise.

    Guarantee: (epsilon, 0) under RandomData(gamma), for independent rows of any law; random differential privacy, not
    differential privacy. f(s) = 2s(n+1-s)/(n(n+1)). Under add-or-remove `rows` is a declared least number of rows, n is
    not public, and c is exact if c + 1 <= gamma rows. The condition is the best one: see theorem `random-proportion`.
    Assumption: independent draws. Source: Hall 2012, (5.1), for one tail and by an upper bound on f.
    """

    rows: int
    epsilon: Exact
    gamma: Exact
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    independent: bool = True

    def __post_init__(self) -> None:
        settle(self, rows=rows_parameter(self.rows))
        epsilon_parameter(self.epsilon)
        gamma_parameter(self.gamma)
        settle(self, epsilon=self.epsilon, gamma=self.gamma)
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        independent(self.independent)
        settle(self, independent=flag("independent", self.independent))

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def _gamma(self) -> Fraction:
        return gamma_parameter(self.gamma)

    @property
    def _neighbours(self) -> Neighbours:
        return self.neighbours

    @property
    def _declared(self) -> tuple[str, ...]:
        least = () if self.neighbours is Neighbours.REPLACE_ONE else (LEAST_ROWS,)
        return (INDEPENDENT_DRAWS, *least)

    @property
    def noise(self) -> Geometric:
        """The noise of counts that are not exact: scale 1/epsilon, for either neighbour relation."""
        return Geometric(epsilon=self.epsilon, sensitivity=CountSensitivity(1))

    def is_exact(self, count: int) -> bool:
        """Is this count published as it is? A secret, unless it is asked of a made-up count."""
        c = self._count(count)
        if self.neighbours is Neighbours.ADD_OR_REMOVE:
            return c + 1 <= self._gamma * self.rows
        return max(pair_differs(c, self.rows), pair_differs(c + 1, self.rows)) <= self._gamma

    def largest_exact(self) -> int | None:
        """The largest count of the lower tail that is published exactly; None where none is."""
        if not self.is_exact(0):
            return None
        if self.neighbours is Neighbours.ADD_OR_REMOVE:
            return int(self._gamma * self.rows // 1) - 1
        low, high = (
            0,
            self.rows // 2 + 1,
        )  # f grows up to the middle, and f(middle) > 1/2 is found by is_exact too
        if self.is_exact(min(high, self.rows)):
            return self.rows
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.is_exact(middle) else (low, middle)
        return low

    def law(self, count: int) -> tuple[Coordinate]:
        """The law of the output for the referee."""
        if self.is_exact(count):
            return (Exactly(count),)
        return (Noisy(count, epsilon_parameter(self.epsilon)),)

    def breaks(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Do two tables (zeros, ones) have outputs that are not epsilon-indistinguishable?"""
        return breaks(self.law(one[1]), self.law(other[1]), epsilon_parameter(self.epsilon))

    def release(self, count: int, *, source: Source | None = None) -> ReleasedCount:
        """The count, exact or noisy."""
        source = source if source is not None else default_source()
        c = self._count(count)
        noisy = int(self.noise.release(np.asarray(c), source=source).values)
        exact = self.is_exact(c)
        n = self.rows if self.neighbours is Neighbours.REPLACE_ONE else None
        return ReleasedCount(count=c if exact else noisy, exact=exact, rows=n, publishable=source.publishable)

    def expected_error(self, count: int) -> float:
        """E |error| of a made-up count: 0 where it is exact."""
        return 0.0 if self.is_exact(count) else self.noise.expected_error()

    def _count(self, value: int) -> int:
        c = whole("count", value, least=0)
        if self.neighbours is Neighbours.REPLACE_ONE and c > self.rows:
            raise InvalidParameter(
                parameter="count", value="more than the rows", must="be at most the number of rows"
            )
        return c
