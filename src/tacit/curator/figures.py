"""Numbers for people: three significant digits, or as many as an interval needs to be told from its middle.

Machine formats carry everything; these words are for reading, on a page and on a terminal alike. The ends of an
interval are rounded outwards, so that what is printed never claims more than what was certified.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["SLACK", "Figures", "figures", "outwards", "three"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SLACK = 1e-9


def three(value: float) -> str:
    """Three significant digits: 16,500; 0.0123; 1.23×10⁻⁷."""
    if not math.isfinite(value):
        return "not known" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    place = math.floor(math.log10(abs(float(f"{value:.2e}")))) - 2
    if place > 9 or place < -6:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        power = f"10{str(int(exponent)).translate(_RAISED)}"
        return power if mantissa == "1" else _signed(f"{mantissa}×{power}")
    text = _at(round(value / 10.0**place), place)
    return text.rstrip("0").rstrip(".") if "." in text else text


def outwards(value: float, turn: Any) -> float:
    """Three significant digits, all of them on the far side: what is written holds what was certified."""
    if value == 0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    steps = value / unit
    near = round(steps)
    # A number of three digits stays itself, whatever the division made of it.
    return (near if abs(steps - near) <= SLACK * abs(steps) else turn(steps)) * unit


class Figures(tuple[str, str, str]):
    """Value, low and high in words, all rounded at one place."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The value, rounded to the nearest."""
        return self[0]

    @property
    def low(self) -> str:
        """The lower end, rounded down."""
        return self[1]

    @property
    def high(self) -> str:
        """The upper end, rounded up."""
        return self[2]

    @property
    def interval(self) -> str:
        """Both ends."""
        return f"{self.low} to {self.high}"


def figures(value: float | None, low: float | None, high: float | None) -> Figures:
    """A value with its interval, rounded at the coarser need: three digits of it, two of the half-width."""
    known = [v for v in (value, low, high) if v is not None and math.isfinite(v)]
    places = []
    if value:
        places.append(math.floor(math.log10(abs(value))) - 2)
    if low is not None and high is not None and 0 < (high - low) < math.inf:
        places.append(math.floor(math.log10((high - low) / 2)) - 1)
    place = min(places, default=0)
    if known and all(float(v).is_integer() for v in known):
        place = max(place, 0)
    if place > 9 or place < -9:
        return Figures([_maybe(value), _maybe(low), _maybe(high)])
    unit = 10.0**place

    def at(x: float | None, turn: Any) -> str:
        if x is None or not math.isfinite(x):
            return _maybe(x)
        return _at(turn(x / unit), place)

    return Figures(
        [
            at(value, round),
            at(low, lambda x: math.floor(x + SLACK * max(1, abs(x)))),
            at(high, lambda x: math.ceil(x - SLACK * max(1, abs(x)))),
        ]
    )


def _at(steps: float, place: int) -> str:
    """A whole number of 10^place."""
    if place >= 0:
        return _signed(f"{int(steps) * 10**place:,}")
    return _signed(f"{steps * 10.0**place:,.{-place}f}")


def _signed(text: str) -> str:
    return text.replace("-", "−", 1) if text.strip("-0.,") else text.lstrip("-")


def _maybe(value: float | None) -> str:
    return "none" if value is None else three(value)
