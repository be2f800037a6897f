"""What all mechanisms share: the sensitivity that sizes their noise; their bound, event, error and distribution.

A sensitivity is the largest move of a statistic by one unit, with its norm. A number alone does not name the norm
of its bound. Gaussian noise sized by an L1 bound where an L2 bound was meant, or the reverse, is a privacy bug,
so each norm is a type of its own. Values are exact rationals. A sensitivity is that of the statistic *on its grid*:
`rounded` adds the effect of rounding.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.accounting import events
from tacit.accounting.codec import to_record
from tacit.accounting.events import Event
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import (
    add_exact,
    check_fields,
    flag,
    integer_array,
    plain,
    refuse_if,
    set_fields,
    unmasked,
    whole,
)
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, exact_parameter, lower, up, upper
from tacit.guarantees import Approximate, Bound, Concentrated, GaussianDP, Guarantee, Pure, Unit
from tacit.noise import (
    ContinuousDistribution,
    DiscreteDistribution,
    GridVector,
    RoundedMarginal,
    grid_spacing,
)
from tacit.noise.source import Source, default_source

__all__ = [
    "L1",
    "L2",
    "AdditiveMechanism",
    "CountSensitivity",
    "Grid",
    "Linf",
    "Mechanism",
    "Released",
    "Score",
    "Sensitivity",
    "on_grid",
]


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


# Mechanisms: bound, event, error and noise distribution.
#
# Grids of spacing 2^-k: where statistics live, so that noise can be exact integers.
#
# Floats are never added to floats here. A real statistic is put on the grid record by record (`on_grid`, then
# exact integer sums), or once at the end, and then the rounding is counted in the sensitivity (`rounded`).


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The multiples of a power of two; integers stand for integer * spacing."""

    spacing: Exact = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))

    def put(self, values: npt.ArrayLike) -> AnyArray:
        """The nearest grid points of real numbers, as integers; ties go to the even one."""
        return on_grid(values, spacing=self.spacing)

    def read(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """integer * spacing as floats, for people."""
        return np.asarray(values).astype(np.float64) * float(self.spacing)


def on_grid(values: npt.ArrayLike, *, spacing: Exact) -> AnyArray:
    """Round real numbers to the grid exactly: integers k with k * spacing nearest to each value.

    Ties go to even k. The difference to the value is at most spacing / 2 in each coordinate, so a record that
    is rounded moves a sum by at most spacing / 2 more than before, and a replaced one by at most spacing more. A unit
    of m records moves it by m times as much: `sensitivity.rounded(spacing=..., records=m)` adds m spacings. Values
    must be finite; clip them to declared bounds first.
    """
    step = grid_spacing(spacing)
    array = unmasked(values)
    if array.size == 0:
        return np.empty(array.shape, dtype=np.int64)
    if array.dtype.kind not in "iufO" or any(
        isinstance(v, bool) for v in array.ravel() if array.dtype == object
    ):
        raise InvalidParameter(
            parameter="values",
            value=f"array of {array.dtype}",
            must="hold numbers",
            hint="give ints or floats",
        )
    if array.dtype.kind == "f":
        _finite(array)
        # Division by a power of two is exact unless it leaves the float range, and rint is exact.
        scaled = array.astype(np.float64) / float(step) if _is_float(step) else np.full(array.shape, np.inf)
        small = np.abs(scaled) < 2.0**62
        normal = (np.abs(scaled) > 2.0**-900) | (array == 0)
        if bool((small & normal).all()):
            return np.rint(scaled).astype(np.int64)
    exact = [round(_fraction(v) / step) for v in array.ravel()]
    fits = all(-(1 << 63) <= k < 1 << 63 for k in exact)
    out = np.empty(len(exact), dtype=np.int64 if fits else object)
    out[:] = exact
    return out.reshape(array.shape)


def _is_float(step: Fraction) -> bool:
    return Fraction(1, 1 << 1000) <= step <= 1 << 1000


def _finite(array: npt.NDArray[Any]) -> None:
    if not bool(np.isfinite(array).all()):
        # The offending number is not shown: it may be a person's.
        raise InvalidParameter(
            parameter="values", value="a value that is not finite", must="be finite",
            hint="clip the values to declared bounds and decide what a missing value counts as, before the noise",
        )  # fmt: skip


def _fraction(value: Any) -> Fraction:
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, float | np.floating):
        _finite(np.asarray(float(value)))
        return Fraction(float(value))
    raise InvalidParameter(
        parameter="values", value=type(value).__name__, must="hold ints, floats or Fractions"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Noisy integers on a grid, and what their sampling cost.

    `publishable` is False for noise from a seeded source. `numerical_delta` bounds the total variation
    distance between the distribution of `values` and the ideal one; 0 means exact.
    """

    values: AnyArray
    spacing: Fraction
    publishable: bool
    numerical_delta: float = 0.0

    def to_floats(self) -> npt.NDArray[np.float64]:
        """values * spacing, for reading; post-processing."""
        return np.asarray(self.values).astype(np.float64) * float(self.spacing)


LEAST_LOSS = Fraction(1, 10**100)


def epsilon_parameter(value: object, name: str = "epsilon") -> Fraction:
    """A finite epsilon above 0, exactly. There is no default, and 0 is refused because it allows no output at
    all.
    """
    exact = exact_parameter(name, value, positive=False)
    if exact <= 0:
        raise InvalidParameter(
            parameter=name,
            value=value,
            must="be a finite number above 0",
            hint="epsilon is the privacy loss; 0 would need infinite noise: then release nothing",
        )
    if not LEAST_LOSS <= exact <= 1 / LEAST_LOSS:
        raise InvalidParameter(
            parameter=name, value=value, must="lie between 10^-100 and 10^100",
            hint="a smaller one drowns every value in noise, and a larger one has no noise",
        )  # fmt: skip
    return exact


def epsilon_value(name: str, value: object) -> Any:
    """The given epsilon, if `epsilon_parameter` accepts it."""
    epsilon_parameter(value, name)
    return plain(value)


def float_noise_std(value: object) -> float:
    """A standard deviation as a float; a fraction that no float equals is kept exactly."""
    exact = exact_parameter("noise_std", value)
    number = float(exact)
    return number if Fraction(number) == exact else exact  # type: ignore[return-value]


def confidence_level(value: object) -> Fraction:
    """A number strictly between 0 and 1."""
    level = exact_parameter("confidence", value, positive=False)
    refuse_if(not 0 < level < 1, "confidence", value, "lie strictly between 0 and 1", "0.95 is usual")
    return level


def one_value(values: npt.ArrayLike, mechanism: str) -> AnyArray:
    """The integers, which must be exactly one (a scalar, or an array with one entry)."""
    array = integer_array(values)
    if array.size != 1:
        raise InvalidParameter(
            parameter="values",
            value=f"{array.size} numbers",
            must=f"be one number for the {mechanism} mechanism",
            hint="release each number by its own mechanism and compose, or use Laplace noise with an L1 sensitivity",
        )
    return array


class Mechanism(ABC):
    """A randomised function of numbers, with a proved bound and errors in closed form.

    Subclasses are frozen, keyword-only data classes, valid from birth. Every list of mechanisms uses the declarations
    of a class: the page of mechanisms its `row`, the contract tests its examples.
    """

    __slots__ = ()

    row: ClassVar[tuple[str, ...]] = ()
    """Its requirements, noise, bound and expected error, in a few words each."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters of one right call."""
    target_example: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a valid call of `for_target`."""

    @property
    @abstractmethod
    def bound(self) -> Bound:
        """The privacy loss of one release: an upper bound that is reached, unless the class says otherwise."""

    @property
    @abstractmethod
    def noise_distribution(self) -> dict[str, Any]:
        """The distribution of the noise for a certificate: plain JSON values, exact numbers as strings."""

    @classmethod
    def for_epsilon(cls, **parameters: Any) -> Self:
        """The old name of `for_target`."""
        warnings.warn(
            f"{cls.__name__}.for_epsilon is now {cls.__name__}.for_target; the next version has only the new name",
            DeprecationWarning,
            stacklevel=2,
        )
        made: Self = cls.for_target(**parameters)  # type: ignore[attr-defined]
        return made

    @property
    def event(self) -> Event:
        """The event of one release, for the accountants and the ledger. By default it is the bound."""
        return event_of(self.bound)

    @property
    def events(self) -> tuple[Event, ...]:
        """All that is run."""
        return (self.event,)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the bound rests on."""
        return ()

    def certificate_for(self, unit: Unit) -> dict[str, Any]:
        """The promise of one release by this mechanism to one unit, as plain JSON: bound, events, theorems, noise.

        It binds no values and no table (a curator's certificate does). `tacit.audit.opinion_on_certificate` computes
        its bound again from its events; the mechanism's tests check that the events describe the draws.
        """
        guarantee = Guarantee(bound=self.bound, unit=unit)
        return {
            "format": "tacit mechanism certificate 1",
            "guarantee": guarantee.to_dict(),
            "meaning": guarantee.explain(),
            "unit": str(unit),
            "neighbours": unit.neighbours.value,
            "condition": str(guarantee.condition),
            "mechanism": {"name": type(self).__name__, "noise_distribution": self.noise_distribution},
            "event": [to_record(event) for event in self.events],
            "theorems": list(self.theorems),
        }

    @property
    def exact_epsilon(self) -> Fraction | None:
        """The pure epsilon, exact if an exact one is known; None without one."""
        bound = self.bound
        return Fraction(float(bound.parameters["epsilon"])) if bound.kind == "pure" else None

    @property
    def exact_rho(self) -> Fraction | None:
        """A rho that holds (zCDP), rounded up: that of the pure epsilon, unless the mechanism knows its own."""
        epsilon = self.exact_epsilon
        return None if epsilon is None else rho_of_epsilon(epsilon)

    @property
    def exact_mu_squared(self) -> Fraction | None:
        """A squared mu that holds (Gaussian DP), rounded up: the sum of its events', unless it knows its own."""
        each = [(e.mu_squared(), n) for e, n in events.flatten(self.events)]
        found = [square * n for square, n in each if square is not None]
        return sum(found, Fraction(0)) if len(found) == len(each) else None


def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    """epsilon tanh(epsilon / 2), the least rho of every mechanism with this epsilon, rounded up (`pure-to-zcdp`)."""
    return Fraction(upper(lambda: ball(epsilon) * (ball(epsilon) / 2).tanh()))


def short_up(value: Fraction) -> Fraction:
    """The least number of 80 binary digits that is not below the value: sums of such numbers stay short, as those of
    decimals do.
    """
    if value.denominator.bit_length() <= 80:
        return value
    shift = 80 - (value.numerator.bit_length() - value.denominator.bit_length())
    scale = Fraction(2) ** shift
    return Fraction(math.ceil(value * scale)) / scale


def event_of(bound: Bound) -> Event:
    """The event that promises exactly this bound."""
    match bound:
        case Pure():
            return events.PureEvent(epsilon=float(bound.epsilon))
        case Approximate():
            return events.ApproximateEvent(epsilon=float(bound.epsilon), delta=float(bound.delta))
        case Concentrated():
            return events.ConcentratedEvent(rho=bound.rho)
        case GaussianDP():
            mu = bound.mu
            return events.GaussianEvent(noise_multiplier=lower(lambda: 1 / ball(mu)))
    raise NoLaw(
        operation=f"an event for a {bound.kind} bound",
        reason="a curve is not an event: the mechanism must say what was run",
    )


class AdditiveMechanism(Mechanism):
    """Integer noise, independent of the data, added to integers on a grid.

    The support of the noise is all integers, unless the class says otherwise, so that the reachable outputs do not
    depend on the true value.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def step(self) -> Fraction:
        """The grid's spacing."""

    @property
    @abstractmethod
    def distribution(self) -> DiscreteDistribution:
        """The distribution of the noise on one number, in grid steps."""

    def _checked(self, values: npt.ArrayLike) -> AnyArray:
        return integer_array(values)

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """values + noise, both in grid steps. Integers of any size, without overflow."""
        source = source if source is not None else default_source()
        array = self._checked(values)
        noise = self.distribution.sample(size=array.shape, source=source)
        return Released(values=add_exact(array, noise), spacing=self.step, publishable=source.publishable)

    @abstractmethod
    def expected_error(self) -> float:
        """E |noise| of one coordinate, in the statistic's unit."""

    @abstractmethod
    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on the noise of one coordinate, with this probability."""

    @abstractmethod
    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """The bound on the noise of all `dimension` coordinates at once."""


def in_units(steps: int | Fraction, spacing: Fraction) -> float:
    """Grid steps as a float in the statistic's unit, rounded up."""
    return up(Fraction(steps) * spacing)


def dimension_parameter(value: object) -> int:
    """A dimension of at least 1."""
    return whole("dimension", value, least=1)


def shown(value: Fraction) -> str:
    """An exact rational as text."""
    return str(value)


Pivot = Callable[[Sequence[Floats], Floats, float], Floats]
"""(weights, value, confidence): at least 0 where |sum w_i X_i| = |value| is within its quantile; continuous."""


class PartNoise(Mechanism):
    """Noise for some parts of a question at once."""

    __slots__ = ()

    @abstractmethod
    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        """The parts with noise, in order. `cells` gives the finest table, for noise on its cells."""

    @abstractmethod
    def half_widths(self, parts: int, confidence: Fraction, *, coordinates: int = 1) -> list[Floats]:
        """The bound on the noise of each cell of each part, for `coordinates` cells at once."""

    @abstractmethod
    def mean_errors(self, parts: int) -> list[float]:
        """E |noise| of a cell, for each part the mean over its cells."""

    @abstractmethod
    def mean_variances(self, parts: int) -> list[float]:
        """The variance of a cell, for each part the mean over its cells."""

    def to_dict(self, parts: Sequence[str] = ()) -> dict[str, Any]:
        """The noise of these parts as plain values, for a certificate."""
        return self.noise_distribution


class CellNoise(PartNoise):
    """Independent noise of one distribution on each of any number of integers."""

    __slots__ = ()

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of one draw, in steps."""

    @abstractmethod
    def step_error(self) -> float:
        """E |noise| of one number, in steps."""

    @abstractmethod
    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        """The least whole number of steps within which all coordinates stay, with this probability."""

    @abstractmethod
    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        """The integers of one vector with noise."""

    def pivot(self, noises: Sequence[Any]) -> Pivot:
        """The quantile of weighted sums of noises of this one's kind, for intervals of ratios."""
        raise NoLaw(
            operation=f"an interval of a ratio under {type(self).__name__} noise",
            reason="its pivot is not known",
        )

    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        """One draw for all parts, as one vector."""
        flat = [np.ravel(np.asarray(part)) for part in parts]
        wide = any(a.dtype == object for a in flat)
        joined = np.concatenate([a.astype(object) if wide else a for a in flat])
        if joined.size == 0:
            return [np.zeros(np.shape(part), dtype=np.int64) for part in parts]
        noisy = np.asarray(self.release_cells(joined, source=source))
        split = np.split(noisy, np.cumsum([a.size for a in flat])[:-1])
        return [some.reshape(np.shape(part)) for some, part in zip(split, parts, strict=True)]

    def half_widths(self, parts: int, confidence: Fraction, *, coordinates: int = 1) -> list[Floats]:
        half = np.asarray(float(_steps_within(self, confidence, coordinates)))
        return [half] * parts

    def mean_errors(self, parts: int) -> list[float]:
        return [self.step_error()] * parts

    def mean_variances(self, parts: int) -> list[float]:
        return [self.variance] * parts


@lru_cache(maxsize=1024)
def _steps_within(noise: CellNoise, confidence: Fraction, coordinates: int) -> int:
    """Certified by a search in ball arithmetic, and asked for several times in one release."""
    return noise.steps_within(confidence, coordinates)


class ShapedMechanism(Mechanism):
    """Noise of one distribution on R^d for one vector of d integers on a grid."""

    __slots__ = ()

    spacing: Exact

    @property
    def step(self) -> Fraction:
        """The grid's spacing."""
        return Fraction(self.spacing)

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """The length of the vectors that are released."""

    @abstractmethod
    def _draw(self, source: Source) -> GridVector: ...

    @property
    @abstractmethod
    def law(self) -> ContinuousDistribution:
        """The distribution of the noise, in the statistic's unit, before it is rounded to the grid."""

    @property
    def covariance(self) -> Floats:
        """The variance of the noise before rounding, which adds about spacing^2 / 12 to every variance."""
        return self.law.covariance

    def marginal(self, coordinate: int = 0) -> RoundedMarginal:
        """The distribution of one drawn coordinate, in grid steps; NoLaw without a known one."""
        return self.law.marginal(coordinate).rounded(self.step)

    def _largest_std(self) -> float:
        """The largest standard deviation of a drawn coordinate, with the grid; rounding counts as uniform if its
        distribution is unknown.
        """
        variances = self.covariance.diagonal()
        widest = int(np.argmax(variances))
        try:
            return self.marginal(widest).std * float(self.step)
        except NoLaw:
            return float(np.sqrt(variances[widest] + float(self.step) ** 2 / 12))

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Released:
        """values + noise; exactly `coordinates` integers, of any size."""
        source = source if source is not None else default_source()
        array = integer_array(values)
        if array.size != self.coordinates:
            raise InvalidParameter(
                parameter="values",
                value=f"{array.size} numbers",
                must=f"be {self.coordinates} numbers",
                hint="the shape of the noise is fixed by the sensitivity's dimension",
            )
        noise = self._draw(source)
        return Released(
            values=add_exact(array, noise.values.reshape(array.shape)),
            spacing=self.step,
            publishable=noise.publishable,
            numerical_delta=noise.numerical_delta,
        )
