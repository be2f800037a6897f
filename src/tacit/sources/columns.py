"""Declarations about a table: the columns that may be asked about, their bounds, the meaning of a missing value.

Nothing is inferred. A declaration turns every stored value into one value of a public set or into "missing", row by
row and without an error. Out-of-range values are clamped or count as missing. Text that is no number, NaN and
undeclared categories are missing. A missing value is left out or replaced by a constant, as declared.
A row's declared value therefore never depends on another row.

Numbers live on a grid of spacing 2^k: a value x is rounded to the nearest integer multiple of the spacing, and
the integer ("steps") is what the engine adds up. Rounding moves a value by at most spacing / 2.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Literal

from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.canonical import formerly
from tacit.exact.checks import members
from tacit.exact.data_classes import dataclass

# Checks of what is declared: each returns a plain value or raises a typed error.

DEFAULT_LEVELS = 20


def refuse(parameter: str, value: object, must: str, hint: str) -> None:
    """Refuses a declaration, with the allowed values."""
    raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)


def finite(name: str, value: object) -> float:
    """A finite number."""
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


def whole(name: str, value: object) -> None:
    """A whole number, or an error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidParameter(parameter=name, value=value, must="be a whole number")


def bounds_pair(low: Any, high: Any, *, integers: bool = False) -> tuple[float | None, float | None]:
    """Both bounds, low below high, or neither."""
    if low is None and high is None:
        return None, None
    for name, value in (("low", low), ("high", high)):
        if value is None:
            refuse(name, value, "be given together with the other bound", "declare number(low, high)")
        if integers:
            whole(name, value)
    a, b = finite("low", low), finite("high", high)
    if not a < b:
        refuse("bounds", (low, high), "have low below high", "are they reversed?")
    return a, b


def inside(name: str, value: Any, low: Any, high: Any) -> Any:
    """A value between the bounds."""
    if isinstance(value, int | float):
        finite(name, value)
    if not low <= value <= high:
        refuse(name, value, "lie between low and high", "a missing value counts as this one")
    return value


def day(name: str, value: object) -> datetime.date:
    """A date, or ISO text of one."""
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


def grid_spacing_of(given: Fraction | None, low: float, high: float) -> Fraction:
    """A power of two; by default the largest one with at least 2^20 steps between the bounds."""
    span = Fraction(high) - Fraction(low)
    if given is None:
        target = span / (1 << DEFAULT_LEVELS)
        exponent = target.numerator.bit_length() - target.denominator.bit_length()
        power = Fraction(2) ** exponent
        given = power if power <= target else power / 2
    if type(given) is not Fraction:
        refuse("spacing", type(given).__name__, "be a Fraction", "or declare number(low, high, spacing=0.5)")
    numerator, denominator = given.numerator, given.denominator
    if given <= 0 or numerator & (numerator - 1) or denominator & (denominator - 1):
        refuse("spacing", str(given), "be a power of two", "for example 1, 0.5 or 2**-10")
    if not Fraction(1, 1 << 900) <= given <= 1 << 900:
        refuse("bounds", (low, high), "be of ordinary size", "rescale the column")
    return given


Outside = Literal["clamp", "missing"]
EXACT = 1 << 52
"""Steps stay below this, so that doubles hold them exactly."""
LONG = 1 << 63
LONGEST = 20_000
"""Characters of an expression."""
EPOCH = datetime.date(1970, 1, 1)
_DIGITS, _POINT = re.compile("[+-]?[0-9]+"), re.compile("[+-]?[0-9]+[.]0")


def _is_text(word: str) -> bool:
    """Has the word a form in UTF-8?"""
    return not any("\ud800" <= c <= "\udfff" for c in word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A declared column."""

    kind: ClassVar[str] = "a column"

    derived: str = ""
    """The source of a computed column: an expression in its canonical text."""

    def __post_init__(self) -> None:
        if type(self.derived) is not str or len(self.derived) > LONGEST:
            refuse("derived", self.derived, "be an expression, or nothing", 'derived("a * b", number(0, 9))')

    @property
    def may_be_missing(self) -> bool:
        """Can a row be without a value here? If not, every row counts in every statistic of the column."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain values, for plans and certificates."""
        raise NotImplementedError

    describe = formerly("describe", method=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Column):
    """A column with an order and a grid: its declared values are lowest..highest, in steps of `spacing`."""

    outside: Outside = "clamp"

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        if not isinstance(self.outside, str) or self.outside not in ("clamp", "missing"):
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
        """The number, in steps, that replaces a missing value; None leaves the value out."""
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
        low, high = bounds_pair(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if low is None or high is None:
            if self.grid is not None:
                refuse("spacing", self.grid, "come with bounds", "declare number(low, high, spacing=...)")
            if self.missing is not None:
                refuse("missing", self.missing, "come with bounds", "declare number(low, high, missing=...)")
            return
        object.__setattr__(self, "grid", grid_spacing_of(self.grid, low, high))
        if self.highest <= self.lowest:
            refuse("spacing", str(self.grid), "be finer than high - low", "choose a smaller power of two")
        if max(abs(self.lowest), abs(self.highest)) >= EXACT:
            refuse(
                "spacing",
                str(self.grid),
                f"leave bounds below 2^{EXACT.bit_length() - 1} steps",
                "choose a coarser grid",
            )
        if self.missing is not None:
            object.__setattr__(self, "missing", inside("missing", finite("missing", self.missing), low, high))

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
        return Fraction(finite("value", value)) / self.spacing

    def label(self, steps: int) -> float:
        return float(steps * self.spacing)

    def to_dict(self) -> dict[str, Any]:
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
        bounds_pair(self.low, self.high, integers=True)
        if self.low is None or self.high is None:
            if self.missing is not None:
                refuse("missing", self.missing, "come with bounds", "declare integer(low, high, missing=...)")
            return
        if max(abs(self.low), abs(self.high)) >= EXACT:
            refuse(
                "bounds",
                (self.low, self.high),
                f"stay below 2^{EXACT.bit_length() - 1}",
                "declare the range that matters",
            )
        if self.missing is not None:
            whole("missing", self.missing)
            inside("missing", self.missing, self.low, self.high)

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
        return Fraction(finite("value", value))

    def label(self, steps: int) -> int:
        return steps

    def to_dict(self) -> dict[str, Any]:
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
                object.__setattr__(self, name, day(name, value))
        if not self.low < self.high:
            refuse("bounds", (str(self.low), str(self.high)), "have low below high", "give date(low, high)")
        if self.missing is not None:
            inside("missing", self.missing, self.low, self.high)

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
        return Fraction((day("value", value) - EPOCH).days)

    def label(self, steps: int) -> datetime.date:
        return EPOCH + datetime.timedelta(days=steps)

    def to_dict(self) -> dict[str, Any]:
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
        Column.__post_init__(self)
        if self.missing is not None and not isinstance(self.missing, bool):
            refuse("missing", self.missing, "be True, False or None", "flag() leaves missing values out")

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

    def to_dict(self) -> dict[str, Any]:
        return {"type": "flag", "missing": self.missing}


@dataclass(frozen=True, slots=True, kw_only=True)
class Category(Column):
    """One of a declared list of words (or of whole numbers); any other value is missing.

    Without a list the values are unknown, and grouping by them is a release of unknown keys, which spends delta.
    """

    kind: ClassVar[str] = "a category"

    values: tuple[str, ...] | tuple[int, ...] | None = None
    missing: str | int | None = None
    of_digits: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether some of the words are whole numbers, and none of them ends in ".0". If one whole number is missing,
    programs write all others as "1.0"; for such a list that means the word "1".
    """

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        if self.values is None:
            if self.missing is not None and not isinstance(self.missing, str):
                refuse("missing", self.missing, "be a word", "an undeclared category holds words")
            return
        values = members("values", self.values)
        if not values:
            raise EmptyComposition(
                what="the list of categories", hint="name them, or say category() for unknown keys"
            )
        kinds = {type(v) for v in values}
        if kinds not in ({str}, {int}):
            refuse(
                "values",
                values[:5],
                "be all words or all whole numbers",
                'for example category(["CA", "NY"])',
            )
        if any(isinstance(v, int) and not -LONG <= v < LONG for v in values):
            refuse("values", values[:5], "fit into 64 bits", "declare longer numbers as words")
        if any(isinstance(v, str) and not _is_text(v) for v in values):
            refuse("values", len(values), "be text without lone surrogates", "give the words as UTF-8 text")
        if len(set(values)) != len(values):
            refuse("values", values[:5], "be different from each other", "name each category once")
        object.__setattr__(self, "values", values)
        digits = {v for v in values if isinstance(v, str) and _DIGITS.fullmatch(v)}
        object.__setattr__(
            self, "of_digits", bool(digits) and not any(_POINT.fullmatch(str(v)) for v in values)
        )
        if self.missing is not None and (type(self.missing) not in kinds or self.missing not in values):
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

    def to_dict(self) -> dict[str, Any]:
        values = None if self.values is None else list(self.values)
        return {"type": "category", "values": values, "missing": self.missing}
