"""Parameters that are valid from the start: each check returns a plain value, or raises a typed error.

No value is guessed from another kind: text is not a number, 1.9 is not a whole number, "no" is not a flag. NumPy's
scalars become Python's own numbers at once, since NumPy's wrap around.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from numpy.typing import NDArray

    from tacit.exact.arrays import AnyArray

MOST = 1 << 1023
_HINTS = {
    "epsilon": "epsilon is a privacy loss: 0 means no loss, 1 is a common budget",
    "delta": "delta is a probability: a guarantee that fails for one person in n needs delta well below 1/n",
}


def _real(parameter: str, value: object, must: str) -> float:
    """A float that is not below the exact value (rationals are rounded up, against us)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint="give a number")
    if isinstance(value, Integral):
        value = int(value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    if not isinstance(value, float) and math.isfinite(number) and Fraction(number) < _exact(value):
        number = math.nextafter(number, math.inf)
    return number


def _exact(value: Any) -> Fraction:
    """The exact value of a finite number; floats of other lengths than Python's also give their exact ratio."""
    return Fraction(value) if isinstance(value, Rational) else Fraction(*value.as_integer_ratio())


def non_negative(parameter: str, value: object, *, finite: bool = True) -> float:
    """A number in [0, inf), or in [0, inf] if infinity means 'no bound'."""
    must = "be a finite number of at least 0" if finite else "be a number of at least 0"
    number = _real(parameter, value, must)
    if number < 0 or (finite and math.isinf(number)):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    return number + 0.0  # -0.0 becomes 0.0


def positive(parameter: str, value: object) -> float:
    """A number in (0, inf)."""
    must = "be a finite number above 0"
    number = _real(parameter, value, must)
    if not 0 < number < math.inf:
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    return number


def probability(parameter: str, value: object, *, below_one: bool = False) -> float:
    """A number in [0, 1], or in [0, 1)."""
    must = "lie in [0, 1)" if below_one else "lie in [0, 1]"
    number = _real(parameter, value, must)
    if not 0 <= number <= 1 or (below_one and number == 1):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=_HINTS.get(parameter, ""))
    return number + 0.0


def rate(parameter: str, value: object) -> float:
    """A sampling rate in [0, 1]."""
    return probability(parameter, value)


def order_above_one(value: object) -> float:
    """The order of a Rényi divergence, in (1, inf]."""
    number = _real("order", value, "be above 1")
    if not number > 1:
        raise InvalidParameter(
            parameter="order", value=value, must="be above 1", hint="order infinity is pure epsilon"
        )
    return number


def whole(parameter: str, value: object, *, least: int | None = 1) -> int:
    """An integer of at least `least` (if given), as Python's own type."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or (least is not None and int(value) < least)
    ):
        must = "be an integer" if least is None else f"be an integer of at least {least}"
        raise InvalidParameter(parameter=parameter, value=value, must=must)
    if abs(int(value)) > MOST:
        raise InvalidParameter(parameter=parameter, value=value, must="be at most 2^1023 in size")
    return int(value)


def is_number(value: object) -> bool:
    """A number of Python's own kinds or of NumPy's; a flag is no number."""
    return not isinstance(value, bool) and (
        isinstance(value, int | float | Fraction) or (_of_numpy(value) and isinstance(value, Real))
    )


def _of_numpy(value: object) -> bool:
    """NumPy's scalars are known by their home, so that the checks need no NumPy."""
    return any(kind.__module__ == "numpy" for kind in type(value).__mro__)


def plain(value: Any) -> Any:
    """NumPy's scalars as Python's own numbers, exactly: theirs wrap around and lose digits. Others stay."""
    if type(value) in (int, float, str, bool, tuple, Fraction) or not _of_numpy(value):
        return value
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if not math.isfinite(value) or number == value else _exact(value)
    return value


def members(parameter: str, values: Any) -> tuple[Any, ...]:
    """The members of a list, a tuple or an array; text and values without members are refused."""
    masked = hasattr(values, "mask")
    if masked or not (isinstance(values, list | tuple) or bool(getattr(values, "ndim", False))):
        raise InvalidParameter(
            parameter=parameter,
            value=type(values).__name__,
            must="be a list, a tuple or an array without a mask",
        )
    return tuple(values)


def flag(parameter: str, value: object) -> bool:
    """True or False; refuses everything else, since every text but the empty one counts as true."""
    if not isinstance(plain(value), bool):
        raise InvalidParameter(
            parameter=parameter, value=value, must="be True or False", hint="a text or a number is not one"
        )
    return bool(value)


def text(parameter: str, value: object, *, empty: bool = True) -> str:
    """Text, as Python's own kind."""
    if not isinstance(value, str) or not (value or empty):
        must = "be text" if empty else "be text that is not empty"
        raise InvalidParameter(parameter=parameter, value=value, must=must)
    return str(value)


def require(ok: bool, *, parameter: str, value: object, must: str, hint: str = "") -> None:
    """Raise InvalidParameter unless ok."""
    if not ok:
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)


def refuse_if(wrong: object, parameter: str, value: object, must: str, hint: str = "") -> None:
    """Raise InvalidParameter if something is wrong with the value: the requirement, and perhaps a remedy."""
    if wrong:
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)


def check_fields(instance: object, **checks: Callable[[str, Any], Any]) -> None:
    """Declares the checks of a frozen object's fields: each becomes what its check returns, in Python's own numbers.

    `check_fields(self, epsilon=positive, times=partial(whole, least=2))`: a check takes the name and the value.
    """
    for name, check in checks.items():
        object.__setattr__(instance, name, plain(check(name, getattr(instance, name))))


def set_fields(instance: object, **values: object) -> None:
    """Puts checked values into the fields of a frozen object, NumPy's scalars as Python's own numbers.

    Later code computes with the checked values.
    """
    for name, value in values.items():
        object.__setattr__(instance, name, plain(value))


# --- Kinds, lists and numbers of a call ---------------------------------------------------------------------


T = TypeVar("T")
Numbers = TypeVar("Numbers", float, "NDArray[np.float64]")
"""A number, or an array of numbers: a function of one is applied to each."""

LARGEST = (1 << 63) - 1
"""The largest number of rows, groups, units or repetitions; products of two still have digits to print."""


def instance(parameter: str, value: T, kind: type[Any], *, must: str, hint: str = "") -> T:
    """The value, if it is of the kind; otherwise an error names its type and never the value."""
    if not isinstance(value, kind):
        raise InvalidParameter(parameter=parameter, value=type(value).__name__, must=must, hint=hint)
    return value


def a_kind(parameter: str, value: T, kind: type[Any], *, must: str, hint: str = "") -> T:
    """The class, if it is a subclass of `kind`."""
    if not isinstance(value, type) or not issubclass(value, kind):
        raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)
    return value


def how_many(parameter: str, value: object, *, least: int = 1) -> int:
    """A number of repetitions: whole, and of a sensible size."""
    number = whole(parameter, value, least=least)
    refuse_if(number > LARGEST, parameter, value, f"be at most {LARGEST}")
    return number


def listed(parameter: str, value: Iterable[Any] | object, *, must: str = "be a list") -> tuple[Any, ...]:
    """The members of a list, tuple, array or other iterable; a text does not count as a list of its letters."""
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise InvalidParameter(parameter=parameter, value=type(value).__name__, must=must)
    try:
        return tuple(value)
    except TypeError:
        # A zero-dimensional array says that it can be iterated over, and cannot.
        raise InvalidParameter(parameter=parameter, value=type(value).__name__, must=must) from None


def real(parameter: str, value: Any) -> float:
    """Any number, infinities included, as a float; a number beyond the floats is infinite."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise InvalidParameter(parameter=parameter, value=value, must="be a number")
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def each(parameter: str, value: Any, answer: Callable[[Any], float]) -> Any:
    """The answer to one number; for a list or an array of numbers the array of answers, in its shape."""
    if not isinstance(value, list | tuple) and not getattr(value, "ndim", 0):
        return answer(value)
    import numpy as np

    given = numbers(parameter, value)
    found = np.array([answer(x) for x in given.reshape(-1).tolist()], dtype=np.float64)
    return found.reshape(given.shape)


def numbers(parameter: str, value: Any) -> NDArray[Any]:
    """A list or an array as an array; with a mask, or of lists of several lengths, it is refused."""
    import numpy as np

    must = "be a number, or a list or an array of numbers without a mask"
    refuse_if(np.ma.is_masked(value), parameter, "masked", must)
    try:
        return np.asarray(value)
    except ValueError:
        raise InvalidParameter(parameter=parameter, value=type(value).__name__, must=must) from None


# --- Vectors of integers that never wrap around, and whose type depends on the sums alone -------------------


HALF = 1 << 62


def unmasked(values: Any, *, name: str = "values") -> npt.NDArray[Any]:
    """The values as an array; refuses masked values, since numpy would drop the mask and count the hidden numbers."""
    import numpy as np

    parts = values if isinstance(values, Sequence) and not isinstance(values, str | bytes) else ()
    if any(issubclass(kind, np.ma.MaskedArray) for kind in {type(values), *map(type, parts)}):
        raise InvalidParameter(
            parameter=name,
            value="a masked array",
            must="have no mask",
            hint="say what a masked entry counts as: values.filled(0)",
        )
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise InvalidParameter(
            parameter=name, value="rows of different lengths", must="be an array"
        ) from None


def real_array(values: npt.ArrayLike, *, name: str = "values") -> npt.NDArray[np.float64]:
    """Numbers as floats; text, flags and masked entries are refused."""
    import numpy as np

    array = unmasked(values, name=name)
    if array.size and (
        array.dtype.kind not in "iufO"
        or (array.dtype.kind == "O" and not all(type(v) in (int, float) for v in array.ravel()))
    ):
        raise InvalidParameter(parameter=name, value=f"array of {array.dtype}", must="hold numbers")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise InvalidParameter(
            parameter=name, value="a number beyond 10^308", must="hold numbers of ordinary size"
        ) from None


def integer_array(values: npt.ArrayLike, *, name: str = "values") -> AnyArray:
    """Integers of any length as an array: int64 if they fit, otherwise Python integers.

    Floats are refused, even whole ones: rounding to the grid is a decision that belongs to the caller.
    """
    import numpy as np

    array = unmasked(values, name=name)
    if array.size == 0:
        return np.empty(array.shape, dtype=np.int64)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        return array.astype(np.int64) if int(array.max()) < 1 << 63 else array.astype(object)
    if array.dtype.kind == "O" and all(type(v) is int for v in array.ravel()):
        return array
    raise InvalidParameter(
        parameter=name,
        value=f"array of {array.dtype}",
        must="hold integers",
        hint="put real numbers on a grid first and give the integer multiples",
    )


def narrowed(values: AnyArray) -> AnyArray:
    """The same integers, as int64 if all of them fit. Only the released integers decide the type.

    Intermediate numbers (the true values, the noise, dropped cells) must not choose the type of a release.
    """
    import numpy as np

    array = np.asarray(values)
    if array.dtype != object:
        return array.astype(np.int64, copy=False)
    fits = all(-(1 << 63) <= int(v) < 1 << 63 for v in array.ravel())
    return array.astype(np.int64) if fits else array


def add_exact(values: npt.ArrayLike, noise: AnyArray) -> AnyArray:
    """values + noise without overflow: int64 if every sum fits, otherwise Python integers.

    The sum. Its type depends on the sums alone, so that it reveals no more than they do.
    """
    import numpy as np

    left, right = integer_array(values), integer_array(noise, name="noise")
    small = left.dtype != object and right.dtype != object
    if small and all(a.size == 0 or (a.max() < HALF and a.min() >= -HALF) for a in (left, right)):
        return np.asarray(left + right)
    return narrowed(np.asarray(left.astype(object) + right.astype(object), dtype=object))
