"""Numbers for people: what is left of a budget is never said to be more than it is, and never much less."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.guarantees import Pure
from tacit.guarantees.bounds.base import remainder


@pytest.mark.parametrize("exact", ["0.3", "0.7", "1.15", "2.675", "0.1", "8.41", "1e-5", "123"])
def test_a_decimal_that_was_rounded_to_a_float_prints_as_itself(exact: str) -> None:
    """The float below 0.3 is left of 0.3: three digits of it are 0.3, not 0.299."""
    value = Fraction(exact)
    below = float(value)
    if Fraction(below) > value:
        import math

        below = math.nextafter(below, 0.0)
    assert f"epsilon = {float(value):.3g}" in str(remainder(Pure(epsilon=below)))


@pytest.mark.parametrize(
    ("left", "shown"), [(0.29999, "0.299"), (1.9999, "1.99"), (45678.0, "4.56e+04"), (0.5, "0.5")]
)
def test_what_is_left_is_rounded_down(left: float, shown: str) -> None:
    assert f"epsilon = {shown}" in str(remainder(Pure(epsilon=left)))
    assert float(shown) <= left


@pytest.mark.parametrize(
    ("value", "shown"), [(0.29999, "0.3"), (1.9999, "2"), (45678.0, "4.57e+04"), (0.0, "0")]
)
def test_what_is_promised_is_rounded_to_the_nearest(value: float, shown: str) -> None:
    """A promise is no remainder, and nothing is left as nothing."""
    assert f"epsilon = {shown}" in str(Pure(epsilon=value))
    assert f"epsilon = {float('0'):.3g}" in str(remainder(Pure(epsilon=0.0)))
