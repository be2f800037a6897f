"""Checks of arguments: each is of the right kind, or one typed error names the parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import InvalidParameter
from tacit.exact.checks import refuse_if, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
Numbers = TypeVar("Numbers", float, "NDArray[np.float64]")
"""A number, or an array of numbers: a function of one is applied to each."""

LARGEST = (1 << 63) - 1
"""The largest number of rows, groups, units or repetitions; products of two still have digits to print."""


def instance(parameter: str, value: T, kind: type[Any], *, must: str, hint: str = "") -> T:
    """The value, if it is of the kind; else an error that names its type, never the value itself."""
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
