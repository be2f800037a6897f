"""The common base of releases under random differential privacy: gamma, the number of rows, and the guarantee.

They are not `Mechanism`s: a mechanism has an unconditional bound and an event that accountants add up. These
have a `guarantee` under `RandomData` only, which nobody can confuse with differential privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.checks import flag, whole
from tacit.exact.rounding import exact_parameter, up
from tacit.guarantees import Bound, Guarantee, Neighbours, RandomData, rows
from tacit.guarantees.conditions import INDEPENDENT_DRAWS

__all__ = ["RandomMechanism"]


def gamma_parameter(value: object, name: str = "gamma") -> Fraction:
    """A probability strictly between 0 and 1, exactly as typed."""
    exact = exact_parameter(name, value, positive=False)
    if not 0 < exact < 1:
        raise InvalidParameter(
            parameter=name, value=value, must="lie strictly between 0 and 1",
            hint="gamma is the share of data on which the bound may fail: 0 is differential privacy proper, and 1 "
            "promises nothing",
        )  # fmt: skip
    return exact


def rows_parameter(value: object, name: str = "rows") -> int:
    """The number of rows, public and at least two, because a single row has no others to be among."""
    n = whole(name, value, least=1)
    if n < 2:
        raise InvalidParameter(
            parameter=name, value=value, must="be at least 2",
            hint="a single row cannot be compared with others: use a mechanism of differential privacy",
        )  # fmt: skip
    return n


def independent(value: object) -> None:
    """Refuse rows that are declared to be dependent: gamma would mean nothing."""
    if not flag("independent", value):
        raise NoLaw(
            operation="random differential privacy of dependent rows",
            reason="gamma is a probability over rows that are drawn independently from one population",
            counterexample="publish every value that two rows share: of independent draws from a continuous population "
            "this tells nothing, ever; of rows that come in equal pairs it tells every value",
            hint="use a mechanism of differential privacy, which asks nothing of the data",
        )


class RandomMechanism(ABC):
    """A randomised function that is private for most data: an (epsilon, delta) bound and a gamma.

    Subclasses are frozen, keyword-only data classes, valid from birth.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _bound(self) -> Bound:
        """The privacy loss of one release, for all but a share gamma of the data."""

    @property
    @abstractmethod
    def _gamma(self) -> Fraction:
        """The share of the data on which the bound may fail."""

    @property
    def _neighbours(self) -> Neighbours:
        return Neighbours.REPLACE_ONE

    @property
    def _declared(self) -> tuple[str, ...]:
        return (INDEPENDENT_DRAWS,)

    @property
    def guarantee(self) -> Guarantee:
        """The bound, for one row, under `RandomData(gamma)`: random differential privacy."""
        return Guarantee(
            bound=self._bound,
            unit=rows(neighbours=self._neighbours),
            condition=RandomData(gamma=up(self._gamma)),
            declared=self._declared,
        )
