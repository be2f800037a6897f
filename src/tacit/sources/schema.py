"""What is declared about a table: the columns that may be asked about, their bounds, what a missing value is.

Nothing is inferred. A declaration turns every stored value, whatever it is, into one value of a public set or
into "missing", row by row and without an error: out-of-range values are clamped or count as missing, text
that is no number, NaN and categories that were not declared are missing, and a missing value is left out or
replaced by a constant, as declared. A row's declared value therefore never depends on another row.

Numbers live on a grid of spacing 2^k: a value x is rounded to the nearest integer multiple of the spacing, and
the integer ("steps") is what the engine adds up. Rounding moves a value by at most spacing / 2.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

from tacit.errors import (
    EmptyComposition,
    InvalidParameter,
    MissingBounds,
    UnknownColumn,
    UnknownName,
    WrongType,
)

__all__ = [
    "Category",
    "Column",
    "Date",
    "Flag",
    "Integer",
    "Measured",
    "Number",
    "Schema",
    "category",
    "date",
    "flag",
    "integer",
    "number",
]

Outside = Literal["clamp", "missing"]
EXACT = 1 << 52
"""Steps stay below this, so that doubles hold them exactly."""
DEFAULT_LEVELS = 20
EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A declared column."""

    kind: ClassVar[str] = "a column"

    @property
    def may_be_missing(self) -> bool:
        """Can a row be without a value here? If not, every row counts in every statistic of the column."""
        return True

    def describe(self) -> dict[str, Any]:
        """The declaration as plain values, for plans and certificates."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Column):
    """A column with an order and a grid: its declared values are lowest..highest, in steps of `spacing`."""

    outside: Outside = "clamp"

    def __post_init__(self) -> None:
        if self.outside not in ("clamp", "missing"):
            raise UnknownName(
                what="policy for values outside", name=str(self.outside), known=("clamp", "missing")
            )

    @property
    def bounded(self) -> bool:
        """Were bounds declared?"""
        return True

    @property
    def spacing(self) -> Fraction:
        """What one step is worth."""
        return Fraction(1)

    @property
    def lowest(self) -> int:
        """The lowest value, in steps."""
        raise NotImplementedError

    @property
    def highest(self) -> int:
        """The highest value, in steps."""
        raise NotImplementedError

    @property
    def fill(self) -> int | None:
        """What a missing value counts as, in steps; None leaves it out."""
        return None

    @property
    def width(self) -> int:
        """highest - lowest, in steps."""
        return self.highest - self.lowest

    @property
    def may_be_missing(self) -> bool:
        return self.fill is None

    def steps_of(self, value: Any) -> Fraction:
        """A value that the caller typed, in steps, exactly."""
        raise NotImplementedError

    def label(self, steps: int) -> Any:
        """The value that these steps stand for, for people."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Measured):
    """A real number in [low, high], rounded record by record to a grid of spacing 2^k."""

    kind: ClassVar[str] = "a number"

    low: float | None = None
    high: float | None = None
    grid: Fraction | None = None
    missing: float | None = None

    def __post_init__(self) -> None:
        Measured.__post_init__(self)
        low, high = _pair(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if low is None or high is None:
            if self.grid is not None:
                _bad("spacing", self.grid, "come with bounds", "declare number(low, high, spacing=...)")
            if self.missing is not None:
                _bad("missing", self.missing, "come with bounds", "declare number(low, high, missing=...)")
            return
        object.__setattr__(self, "grid", _spacing(self.grid, low, high))
        if self.highest <= self.lowest:
            _bad("spacing", str(self.grid), "be finer than high - low", "choose a smaller power of two")
        if max(abs(self.lowest), abs(self.highest)) >= EXACT:
            _bad(
                "spacing",
                str(self.grid),
                f"leave bounds below 2^{EXACT.bit_length() - 1} steps",
                "choose a coarser grid",
            )
        if self.missing is not None:
            object.__setattr__(self, "missing", _inside("missing", self.missing, low, high))

    @property
    def bounded(self) -> bool:
        return self.low is not None

    @property
    def spacing(self) -> Fraction:
        return self.grid if self.grid is not None else Fraction(1)

    @property
    def lowest(self) -> int:
        assert self.low is not None
        return round(Fraction(self.low) / self.spacing)

    @property
    def highest(self) -> int:
        assert self.high is not None
        return round(Fraction(self.high) / self.spacing)

    @property
    def fill(self) -> int | None:
        return None if self.missing is None else round(Fraction(self.missing) / self.spacing)

    def steps_of(self, value: Any) -> Fraction:
        return Fraction(_finite("value", value)) / self.spacing

    def label(self, steps: int) -> float:
        return float(steps * self.spacing)

    def describe(self) -> dict[str, Any]:
        return {
            "type": "number", "low": self.low, "high": self.high,
            "spacing": None if self.grid is None else str(self.grid), "missing": self.missing, "outside": self.outside,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Measured):
    """A whole number in low..high; stored fractions are rounded to the nearest one."""

    kind: ClassVar[str] = "an integer"

    low: int | None = None
    high: int | None = None
    missing: int | None = None

    def __post_init__(self) -> None:
        Measured.__post_init__(self)
        _pair(self.low, self.high, whole=True)
        if self.low is None or self.high is None:
            if self.missing is not None:
                _bad("missing", self.missing, "come with bounds", "declare integer(low, high, missing=...)")
            return
        if max(abs(self.low), abs(self.high)) >= EXACT:
            _bad(
                "bounds",
                (self.low, self.high),
                f"stay below 2^{EXACT.bit_length() - 1}",
                "declare the range that matters",
            )
        if self.missing is not None:
            _whole("missing", self.missing)
            _inside("missing", self.missing, self.low, self.high)

    @property
    def bounded(self) -> bool:
        return self.low is not None

    @property
    def lowest(self) -> int:
        assert self.low is not None
        return self.low

    @property
    def highest(self) -> int:
        assert self.high is not None
        return self.high

    @property
    def fill(self) -> int | None:
        return self.missing

    def steps_of(self, value: Any) -> Fraction:
        return Fraction(_finite("value", value))

    def label(self, steps: int) -> int:
        return steps

    def describe(self) -> dict[str, Any]:
        return {
            "type": "integer", "low": self.low, "high": self.high,
            "missing": self.missing, "outside": self.outside,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Date(Measured):
    """A day in low..high; one step is one day, counted from 1970-01-01. Times of day are cut off."""

    kind: ClassVar[str] = "a date"

    low: datetime.date
    high: datetime.date
    missing: datetime.date | None = None

    def __post_init__(self) -> None:
        Measured.__post_init__(self)
        for name in ("low", "high", "missing"):
            value = getattr(self, name)
            if value is not None or name != "missing":
                object.__setattr__(self, name, _day(name, value))
        if not self.low < self.high:
            _bad("bounds", (str(self.low), str(self.high)), "have low below high", "give date(low, high)")
        if self.missing is not None:
            _inside("missing", self.missing, self.low, self.high)

    @property
    def lowest(self) -> int:
        return (self.low - EPOCH).days

    @property
    def highest(self) -> int:
        return (self.high - EPOCH).days

    @property
    def fill(self) -> int | None:
        return None if self.missing is None else (self.missing - EPOCH).days

    def steps_of(self, value: Any) -> Fraction:
        return Fraction((_day("value", value) - EPOCH).days)

    def label(self, steps: int) -> datetime.date:
        return EPOCH + datetime.timedelta(days=steps)

    def describe(self) -> dict[str, Any]:
        missing = None if self.missing is None else self.missing.isoformat()
        return {
            "type": "date", "low": self.low.isoformat(), "high": self.high.isoformat(),
            "missing": missing, "outside": self.outside,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag(Measured):
    """Yes or no. Stored as a boolean, as 0 and 1, or as text that reads as such; anything else is missing."""

    kind: ClassVar[str] = "a flag"

    outside: Outside = field(default="missing", init=False)
    missing: bool | None = None

    def __post_init__(self) -> None:
        if self.missing is not None and not isinstance(self.missing, bool):
            _bad("missing", self.missing, "be True, False or None", "flag() leaves missing values out")

    @property
    def lowest(self) -> int:
        return 0

    @property
    def highest(self) -> int:
        return 1

    @property
    def fill(self) -> int | None:
        return None if self.missing is None else int(self.missing)

    def steps_of(self, value: Any) -> Fraction:
        return Fraction(int(value))

    def label(self, steps: int) -> bool:
        return bool(steps)

    def describe(self) -> dict[str, Any]:
        return {"type": "flag", "missing": self.missing}


@dataclass(frozen=True, slots=True, kw_only=True)
class Category(Column):
    """One of a declared list of words (or of whole numbers); anything else is missing.

    Without a list the values are unknown, and grouping by them is a release of unknown keys, which spends delta.
    """

    kind: ClassVar[str] = "a category"

    values: tuple[str, ...] | tuple[int, ...] | None = None
    missing: str | int | None = None

    def __post_init__(self) -> None:
        if self.values is None:
            if self.missing is not None and not isinstance(self.missing, str):
                _bad("missing", self.missing, "be a word", "an undeclared category holds words")
            return
        values = tuple(self.values)
        if not values:
            raise EmptyComposition(
                what="the list of categories", hint="name them, or say category() for unknown keys"
            )
        kinds = {type(v) for v in values}
        if kinds not in ({str}, {int}):
            _bad(
                "values",
                values[:5],
                "be all words or all whole numbers",
                'for example category(["CA", "NY"])',
            )
        if len(set(values)) != len(values):
            _bad("values", values[:5], "be different from each other", "name each category once")
        object.__setattr__(self, "values", values)
        if self.missing is not None and self.missing not in values:
            raise UnknownName(what="category for missing", name=str(self.missing), known=map(str, values))

    @property
    def known(self) -> bool:
        """Was the list declared?"""
        return self.values is not None

    @property
    def of_words(self) -> bool:
        """Words, or whole numbers?"""
        return self.values is None or isinstance(self.values[0], str)

    @property
    def may_be_missing(self) -> bool:
        return self.missing is None

    def describe(self) -> dict[str, Any]:
        values = None if self.values is None else list(self.values)
        return {"type": "category", "values": values, "missing": self.missing}


def number(
    low: float | None = None,
    high: float | None = None,
    *,
    spacing: float | Fraction | None = None,
    missing: float | None = None,
    outside: Outside = "clamp",
) -> Number:
    """A number in [low, high]; without bounds it can be filtered by, and its rough bounds can be released.

    spacing is a power of two; by default the largest one that leaves at least 2^20 steps between the bounds.
    """
    grid = None if spacing is None else Fraction(spacing)
    return Number(low=low, high=high, grid=grid, missing=missing, outside=outside)


def integer(
    low: int | None = None, high: int | None = None, *, missing: int | None = None, outside: Outside = "clamp"
) -> Integer:
    """A whole number in low..high, both included."""
    return Integer(low=low, high=high, missing=missing, outside=outside)


def category(
    values: Sequence[str] | Sequence[int] | None = None, *, missing: str | int | None = None
) -> Category:
    """One of these values; without a list, values that are not known in advance."""
    if isinstance(values, str):
        _bad("values", values, "be a list", 'for example category(["CA", "NY"])')
    return Category(values=None if values is None else tuple(values), missing=missing)  # type: ignore[arg-type]


def flag(*, missing: bool | None = None) -> Flag:
    """Yes or no."""
    return Flag(missing=missing)


def date(
    low: datetime.date | str,
    high: datetime.date | str,
    *,
    missing: datetime.date | str | None = None,
    outside: Outside = "clamp",
) -> Date:
    """A day in low..high, both included; days are dates or ISO text."""
    return Date(low=low, high=high, missing=missing, outside=outside)  # type: ignore[arg-type]


class Schema(Mapping[str, Column]):
    """The declared columns by name; asking for another one is an error that names the nearest."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Column]) -> None:
        if not isinstance(columns, Mapping):
            _bad(
                "schema",
                type(columns).__name__,
                "map column names to declarations",
                "{'age': number(0, 120)}",
            )
        for name, column in columns.items():
            if not isinstance(name, str) or not name:
                _bad("schema", name, "have column names as keys", "{'age': number(0, 120)}")
            if not isinstance(column, Column):
                _bad(
                    f"schema[{name!r}]", type(column).__name__, "be a declaration",
                    "number(low, high), integer(low, high), category([...]), flag() or date(low, high)",
                )  # fmt: skip
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except (KeyError, TypeError):
            raise UnknownColumn(column=str(name), known=self._columns) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __repr__(self) -> str:
        return f"Schema({', '.join(self._columns)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._columns == other._columns

    def __hash__(self) -> int:
        return hash(tuple(self._columns.items()))

    def measured(self, name: str) -> Measured:
        """A column with an order and bounds: a number, an integer, a date or a flag."""
        column = self[name]
        if not isinstance(column, Measured):
            raise WrongType(
                column=name, found=column.kind, wanted="a number",
                hint="declare number(low, high) or integer(low, high), or count by the category instead",
            )  # fmt: skip
        if not column.bounded:
            raise MissingBounds(column=name)
        return column

    def describe(self) -> dict[str, dict[str, Any]]:
        """All declarations as plain values."""
        return {name: column.describe() for name, column in self._columns.items()}


def _bad(parameter: str, value: object, must: str, hint: str) -> None:
    raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidParameter(parameter=name, value=value, must="be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidParameter(
            parameter=name, value=value, must="be finite", hint="declare the range that matters"
        )
    return number


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidParameter(parameter=name, value=value, must="be a whole number")


def _pair(low: Any, high: Any, *, whole: bool = False) -> tuple[float | None, float | None]:
    if low is None and high is None:
        return None, None
    for name, value in (("low", low), ("high", high)):
        if value is None:
            _bad(name, value, "be given together with the other bound", "declare number(low, high)")
        if whole:
            _whole(name, value)
    a, b = _finite("low", low), _finite("high", high)
    if not a < b:
        _bad("bounds", (low, high), "have low below high", "are they reversed?")
    return a, b


def _inside(name: str, value: Any, low: Any, high: Any) -> Any:
    if isinstance(value, int | float):
        _finite(name, value)
    if not low <= value <= high:
        _bad(name, value, "lie between low and high", "a missing value counts as this one")
    return value


def _day(name: str, value: object) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(str(value))
    except ValueError:
        raise InvalidParameter(
            parameter=name, value=value, must="be a date", hint='for example "2020-01-31"'
        ) from None


def _spacing(given: Fraction | None, low: float, high: float) -> Fraction:
    """A power of two; by default the largest one with at least 2^20 steps between the bounds."""
    span = Fraction(high) - Fraction(low)
    if given is None:
        target = span / (1 << DEFAULT_LEVELS)
        exponent = target.numerator.bit_length() - target.denominator.bit_length()
        power = Fraction(2) ** exponent
        given = power if power <= target else power / 2
    numerator, denominator = given.numerator, given.denominator
    if given <= 0 or numerator & (numerator - 1) or denominator & (denominator - 1):
        _bad("spacing", str(given), "be a power of two", "for example 1, 0.5 or 2**-10")
    if not Fraction(1, 1 << 900) <= given <= 1 << 900:
        _bad("bounds", (low, high), "be of ordinary size", "rescale the column")
    return given
