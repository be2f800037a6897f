"""The largest move of a statistic by one unit, with its norm.

A number alone does not name the norm of its bound. Gaussian noise sized by an L1 bound where an L2
bound was meant, or the reverse, is a privacy bug, so each norm is a type of its own. Values are exact rationals.
A sensitivity is that of the statistic *on its grid*: `rounded` adds the effect of rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import partial
from typing import TypeVar

from tacit.errors import InvalidParameter
from tacit.exact.checks import check_fields, flag, plain, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, exact_parameter
from tacit.noise import grid_spacing

__all__ = ["L1", "L2", "CountSensitivity", "Linf", "Score", "Sensitivity"]


def exact_sensitivity(value: object, name: str = "sensitivity") -> Fraction:
    """A finite number above 0, exactly."""
    exact = exact_parameter(name, value, positive=False)
    refuse_if(exact < 0, name, value, "be above 0", "a sensitivity is the largest size of a move")
    if exact == 0:
        raise InvalidParameter(
            parameter=name,
            value=value,
            must="be above 0",
            hint="a statistic that no unit can move needs no noise: publish it as it is, without a mechanism",
        )
    return exact


class Sensitivity(ABC):
    """The largest move of a statistic between neighbours, in one named norm."""

    __slots__ = ()

    @abstractmethod
    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Sensitivity:
        """The sensitivity after each coordinate was rounded to the grid.

        `records` is the number of records of one unit that were rounded separately (at most m for a person with
        at most m rows, size times that for a group): between neighbours each is one that goes and one that
        comes, both rounded by at most spacing / 2. It is 1 if the whole statistic is rounded once, at the end.
        """


S = TypeVar("S", bound=Sensitivity)


def need(mechanism: str, sensitivity: object, kinds: tuple[type[S], ...], hint: str) -> S:
    """The sensitivity, if it is of a kind that sizes this mechanism's noise; otherwise an error with a hint."""
    if isinstance(sensitivity, kinds):
        return sensitivity
    names = " or ".join(k.__name__ for k in kinds)
    raise InvalidParameter(
        parameter="sensitivity",
        value=sensitivity,
        must=f"be a sensitivity of kind {names} for the {mechanism} mechanism",
        hint=hint
        if isinstance(sensitivity, Sensitivity)
        else f"say the norm: {kinds[0].__name__}(...); {hint}",
    )


def rounding(spacing: Exact, dimension: int, records: int) -> tuple[Fraction, int]:
    """The move of one coordinate by rounding, records * spacing, and the checked dimension."""
    d, m = (
        whole("dimension", dimension, least=1),
        whole("records", records, least=1),
    )
    return m * grid_spacing(spacing), d


def _steps(exact: Fraction, spacing: Fraction) -> int:
    """Integers that differ by at most x differ by at most floor(x)."""
    steps = exact // spacing
    if steps == 0:
        raise InvalidParameter(
            parameter="sensitivity",
            value=f"{float(exact):g}",
            must=f"be at least the grid's spacing ({float(spacing):g})",
            hint="on this grid the statistic could not move at all; choose a finer grid, or count the rounding"
            " with sensitivity.rounded(spacing=...)",
        )
    return int(steps)


@dataclass(frozen=True, slots=True)
class Sized(Sensitivity):
    """A sensitivity that is one number."""

    value: Exact

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact_sensitivity(self.value))

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)


@dataclass(frozen=True, slots=True)
class L1(Sized):
    """sup over neighbours of |f(D) - f(D')|_1, the sum of the coordinates' moves. Sizes Laplace noise."""

    def steps(self, spacing: Fraction) -> int:
        """In grid steps: an integer, since the statistic is on the grid."""
        return _steps(self.exact, spacing)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> L1:
        moved, d = rounding(spacing, dimension, records)
        return L1(self.exact + d * moved)

    def to_l2(self) -> L2:
        """|v|_2 <= |v|_1; equality for a move in one coordinate."""
        return L2(self.exact)


@dataclass(frozen=True, slots=True)
class L2(Sensitivity):
    """sup over neighbours of the Euclidean distance |f(D) - f(D')|_2. Sizes Gaussian noise.

    It is kept as its square, because many norms are roots: `L2.root(2)` is exactly the square root of 2.
    """

    value: Exact
    square: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        exact = exact_sensitivity(self.value)
        object.__setattr__(self, "value", exact)
        check_fields(self, square=partial(exact_parameter, positive=False))
        if not self.square:
            object.__setattr__(self, "square", exact**2)
        elif not exact**2 * Fraction(10**14 - 1, 10**14) <= self.square <= exact**2:
            raise InvalidParameter(parameter="square", value=self.square, must="be the square of the value")

    @classmethod
    def root(cls, square: Exact) -> L2:
        """The square root of an exact number."""
        from tacit.exact.rounding import ball, upper

        exact = exact_sensitivity(square)
        return cls(Fraction(upper(lambda: ball(exact).sqrt())), exact)

    def squared_steps(self, spacing: Fraction) -> int:
        """The squared length in grid steps: an integer, since it is a sum of squares of integers."""
        squares = self.square // spacing**2
        if squares == 0:
            _steps(self.exact, spacing)
        return int(max(squares, 1))

    @property
    def exact(self) -> Fraction:
        """The value, exactly or rounded up."""
        return Fraction(self.value)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> L2:
        """|v + u|_2 <= |v|_2 + sqrt(d) * records * spacing."""
        from tacit.exact.rounding import ball, upper

        moved, d = rounding(spacing, dimension, records)
        return L2(self.exact + moved * Fraction(upper(lambda: ball(d).sqrt())))


@dataclass(frozen=True, slots=True)
class Linf(Sized):
    """sup over neighbours of the largest move of a coordinate."""

    def steps(self, spacing: Fraction) -> int:
        """In grid steps."""
        return _steps(self.exact, spacing)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Linf:
        return Linf(self.exact + rounding(spacing, dimension, records)[0])

    def to_l1(self, *, dimension: int) -> L1:
        """|v|_1 <= d |v|_inf."""
        return L1(self.exact * whole("dimension", dimension, least=1))

    def to_l2(self, *, dimension: int) -> L2:
        """|v|_2 <= sqrt(d) |v|_inf."""
        return L2.root(self.exact**2 * whole("dimension", dimension, least=1))


@dataclass(frozen=True, slots=True)
class CountSensitivity(Sensitivity):
    """One integer count that a unit moves by at most `value`: 1 for a count of units."""

    value: int = 1

    def __post_init__(self) -> None:
        exact_sensitivity(self.value)
        if isinstance(plain(self.value), float):
            raise InvalidParameter(
                parameter="sensitivity",
                value=self.value,
                must="be an integer",
                hint="a count moves by integers",
            )
        set_fields(self, value=whole("sensitivity", self.value, least=1))

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)

    def steps(self, spacing: Fraction) -> int:
        """In grid steps."""
        return _steps(self.exact, spacing)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> L1:
        return L1(self.value).rounded(spacing=spacing, dimension=dimension, records=records)


@dataclass(frozen=True, slots=True)
class Score(Sensitivity):
    """The largest move of the score of any one candidate by one unit: sup over candidates and neighbours.

    `monotone`: between any two neighbours all scores move the same way (counts of votes under add-or-remove; never
    under replace-one, where a vote leaves one candidate for another). Then the exponential and the
    permute-and-flip mechanisms need half the noise.
    """

    value: Exact
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact_sensitivity(self.value))
        set_fields(self, monotone=flag("monotone", self.monotone))

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Score:
        """Rounded scores move by at most one spacing more for each record, and may no longer all move the same way."""
        return Score(self.exact + rounding(spacing, dimension, records)[0])
