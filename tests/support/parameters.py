"""Strange parameters, fed one at a time to a constructor whose other arguments are right.

What must happen follows from the annotation alone. A whole number takes integers and NumPy's integers, a flag takes
True and False, a real number takes numbers, text takes text; anything else is refused by a TacitError. What is
accepted must be right: the same object as with Python's own number, and no scalar of NumPy kept inside.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import TacitError

MASKED = np.ma.masked_array([1, 2], mask=[True, False])
MASKED_ONE = np.ma.masked_array(3, mask=True)
HUGE, LONG, TINY = 10**400, 10**5000, 1e-320

NEVER: dict[str, list[Any]] = {
    "whole": [1.9, 3.0, True, "3", "no", MASKED, MASKED_ONE, math.nan, math.inf, Fraction(7, 2), np.float64(3),
              np.bool_(True), [3], b"3", object()],
    "flag": [1, 0, 1.0, "no", "yes", "", MASKED, MASKED_ONE, math.nan, np.int8(1), [True], object()],
    "real": [True, "3", "no", math.nan, np.float32("nan"), MASKED, MASKED_ONE, np.bool_(True), [1.5], 1j, b"3",
             object()],
    "text": [3, 1.9, True, b"x", math.nan, MASKED, ["x"], object()],
}  # fmt: skip
"""What each kind refuses."""

MAYBE: dict[str, list[Any]] = {
    "whole": [np.int8(100), np.uint8(129), np.uint8(255), np.int16(300), np.uint64(7), np.int8(-128), -1, 0,
              HUGE, LONG, np.uint64(2**64 - 1)],
    "flag": [np.bool_(True), np.bool_(False), True, False],
    "real": [1.9, TINY, HUGE, -HUGE, LONG, Fraction(1, 3), Fraction(1, HUGE), Fraction(HUGE, 3), np.float32(0.1),
             np.float16(0.5), np.longdouble("0.1"), np.uint8(200), np.int8(-128), np.int8(3), 0, -1, math.inf,
             -math.inf, 5e-324, 1e308, np.float64(0.25)],
    "text": ["", "3", "no", "\x00", "x" * 5000],
    "other": [1.9, True, "3", "no", math.nan, MASKED, HUGE, TINY, np.uint8(3), Fraction(1, 3), b"3", object(), [],
              [[]], {}, [object()], np.array([]), np.array(1.5)],
}  # fmt: skip
"""What each kind may take, if it takes it right, or refuse."""

INSIDE: dict[str, list[Any]] = {
    "whole": [1.9, True, "3", math.nan, MASKED_ONE, np.bool_(True)],
    "real": [True, "3", math.nan, MASKED_ONE, np.bool_(True)],
}
"""What a sequence of such numbers refuses as one of its entries."""

_WHOLE, _REAL = {"int", "Whole"}, {"Exact", "float", "Fraction", "Number", "Decimal"}


def kind_of(annotation: Any) -> tuple[str, bool]:
    """whole, flag, real, text or other, and whether None is one of its values."""
    parts = {p.strip() for p in str(annotation).split("|")}
    optional = "None" in parts
    parts.discard("None")
    if parts and parts <= _WHOLE:
        return "whole", optional
    if parts == {"bool"}:
        return "flag", optional
    if parts and parts <= _WHOLE | _REAL:
        return "real", optional
    if parts == {"str"}:
        return "text", optional
    return "other", optional


def inside_of(annotation: Any) -> str | None:
    """The kind of a sequence's entries, where the annotation says it."""
    text = str(annotation)
    if "str" in text:
        return None
    for kind, names in (("real", _REAL), ("whole", _WHOLE)):
        if any(text.endswith(f"[{n}]") or f"[{n}, ...]" in text or f"[{n}]]" in text for n in names):
            return kind
    return None


def plain(value: Any) -> Any:
    """Python's own number for a NumPy scalar, exactly."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating) and math.isfinite(value):
        exact = Fraction(*value.as_integer_ratio())
        return float(exact) if Fraction(float(exact)) == exact else exact
    return value


def swapped(first: Any, strange: Any) -> Any:
    """A sequence with its first number (at any depth) replaced."""
    if isinstance(first, np.ndarray):
        first = first.tolist()
    if not isinstance(first, list | tuple) or not first:
        return None
    inner = swapped(first[0], strange)
    return type(first)([strange if inner is None else inner, *first[1:]])


def looked_at(made: Any, *, light: bool = False) -> str:
    """What an object says of itself: its fields and what it promises; every word must come without a raw error."""
    said = []
    for name in () if light else ("bound", "event", "noise_distribution", "kind", "describe", "to_dict"):
        found = getattr(type(made), name, None)
        if found is None or (getattr(found, "__doc__", None) or "").startswith("The old name of"):
            continue
        try:
            found = getattr(made, name)
            found = found() if callable(found) else found
            said.append(f"{name}: {found!r}" if not hasattr(found, "directions") else f"{name}: a curve")
        except TacitError as error:
            said.append(f"{name}: {type(error).__name__}")
    fields = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
    said += [
        f"{f.name}={getattr(made, f.name)!r}" for f in fields if f.repr and f.compare and f.name[0] != "_"
    ]
    if said:
        return "; ".join(said)
    # Objects of no fields are told by their state, never by their address.
    return repr(made) if " at 0x" not in repr(made) else type(made).__name__


def scalars_inside(made: Any) -> list[str]:
    """Fields that keep a scalar of NumPy."""
    fields = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
    return [f.name for f in fields if isinstance(getattr(made, f.name, None), np.generic)]


def problems(
    make: Callable[..., Any],
    example: Mapping[str, Any],
    *,
    numbers_only: bool = False,
    decimals: bool = False,
    light: bool = False,
) -> Iterator[str]:
    """Each way in which the constructor takes a strange parameter wrongly, as a sentence.

    `decimals`: numbers are read as they are printed, so that 0.1 of any length is one tenth. `light`: objects are
    told by their fields alone, where what they promise is looked at elsewhere.
    """
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name == "source":
            continue
        kind, optional = kind_of(parameter.annotation)
        if numbers_only and kind in ("text", "other"):
            continue
        fed = [(v, True) for v in NEVER.get(kind, [])] + [(v, False) for v in MAYBE[kind]]
        if not optional and parameter.default is not None and kind != "other":
            fed.append((None, True))
        inside = inside_of(parameter.annotation) if kind == "other" else None
        if inside is not None and name in example:
            entries = [(swapped(example[name], v), True) for v in INSIDE[inside]]
            fed += [(v, must) for v, must in entries if v is not None]
        for value, must in fed:
            if not (decimals and isinstance(value, np.floating)):
                yield from _problem(make, example, name, value, must, light)


def _problem(
    make: Callable[..., Any],
    example: Mapping[str, Any],
    name: str,
    value: Any,
    must_refuse: bool,
    light: bool,
) -> Iterator[str]:
    shown = f"{name}={type(value).__name__} {_short(value)}"
    try:
        made = make(**{**example, name: value})
        if must_refuse:
            yield f"{shown}: accepted"
            return
        said = looked_at(made, light=light)
        if bad := scalars_inside(made):
            yield f"{shown}: keeps NumPy's own scalar in {bad}"
        own = plain(value)
        if type(own) is not type(value):
            right = looked_at(make(**{**example, name: own}), light=light)
            if right != said:
                yield f"{shown}: is not the same as {type(own).__name__} {_short(own)}"
    except TacitError:
        return
    except Exception as error:
        yield f"{shown}: raised {type(error).__name__}: {str(error)[:80]}"


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a very long integer"
    return text if len(text) < 60 else text[:57] + "..."
